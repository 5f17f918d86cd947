//! What a figure is: how one is declared, and its values.

use punctual_model::{Duration, Instant, Mode, Periodic, Policy, Separator};

/// A displayed quantity.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name in JSON; ends in its unit.
    pub field: &'static str,
    /// The head of its column.
    pub title: &'static str,
    /// The symbol in the literature; empty where it has none.
    pub symbol: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// Which side of the truth it is on.
    pub bound: Bound,
    /// How its values are rounded for display.
    pub rounding: Rounding,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// Its column in terminal tables; none where it is too much for a terminal.
    pub table: Option<Fit>,
    /// Whether the table on the page has it.
    pub page: bool,
    /// Whether it is one of the key figures of a task.
    pub key: bool,
    /// Which comparison it belongs to.
    pub compared: Option<Group>,
    /// Whether most rows have none: then its cell stays empty.
    pub sparse: bool,
}

/// A figure, and how it is read from the rows of its section.
#[derive(Clone, Copy)]
pub struct Entry<S: Section> {
    /// What it is.
    pub figure: Figure,
    /// Its value in a row, if the row has one.
    pub value: for<'a> fn(&S::Row<'a>) -> Option<Value>,
}

/// A part of a model with a list of figures.
pub trait Section {
    /// What a line of its table is about.
    type Row<'a>;
}

/// What the values of a figure are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A span of time.
    Time,
    /// A point in time.
    Instant,
    /// A number of things.
    Count,
    /// A share of a processor.
    Share,
    /// Words.
    Words,
    /// Words that have a rank.
    Ranked,
    /// Remarks, which are caveats.
    Notes,
}

impl Unit {
    /// Whether values are aligned right.
    pub const fn is_number(self) -> bool {
        matches!(self, Unit::Time | Unit::Instant | Unit::Count | Unit::Share)
    }

    /// For documents.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Time => "time",
            Unit::Instant => "instant",
            Unit::Count => "count",
            Unit::Share => "%",
            Unit::Words | Unit::Ranked | Unit::Notes => "text",
        }
    }
}

/// Which side of the truth a figure is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// At least the exact value of everything observed.
    Upper,
    /// At most the exact value of everything observed.
    Lower,
    /// Near the exact value.
    Estimate,
    /// The value itself.
    Exact,
}

impl Bound {
    /// For documents.
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Upper => "upper",
            Bound::Lower => "lower",
            Bound::Estimate => "estimate",
            Bound::Exact => "exact",
        }
    }
}

/// How a time is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To four significant digits, never down.
    Up,
    /// To four significant digits, never up.
    Down,
    /// To the nearest of four significant digits.
    Nearest,
    /// To the nearest of three significant digits.
    ThreeDigits,
    /// Not at all.
    None,
}

impl Rounding {
    /// For documents.
    pub const fn name(self) -> &'static str {
        match self {
            Rounding::Up => "up, 4 digits",
            Rounding::Down => "down, 4 digits",
            Rounding::Nearest => "nearest, 4 digits",
            Rounding::ThreeDigits => "nearest, 3 digits",
            Rounding::None => "–",
        }
    }
}

/// How a column behaves where the page is narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Always whole.
    Keep,
    /// Its words may go over several lines.
    Fold,
    /// On lines of its own below the row, unless all columns fit beside it.
    Below,
    /// Left out, the highest number first.
    Drop(u8),
}

/// Figures that are compared in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Key figures of threads.
    Threads,
    /// Activations without a release, releases without an activation.
    Slips,
    /// Percentiles of lateness.
    Lateness,
    /// Percentiles of processor time.
    Cost,
    /// Percentiles of response times.
    Response,
    /// How a time is distributed: of tasks and of chains.
    Distribution,
    /// The same, of chains alone.
    Chains,
    /// Bounds and measured latencies of processors.
    SchedulingLatency,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A time, which the figure's rounding is for.
    Time(Duration),
    /// A time within two others, as those are displayed.
    Between(Duration, Duration, Duration),
    /// At least this time: something was missed that may have made it greater.
    OrMore(Duration),
    /// A time to the nanosecond, whatever the figure's rounding.
    Exactly(Duration),
    /// An exact period.
    Period(Box<Periodic>),
    /// Modes, and since when their times are shown.
    Modes(Vec<Mode>, Instant),
    /// At most so many releases in any interval of this length.
    Burst(usize, Duration),
    /// Releases that are at least so far apart.
    Apart(Duration),
    /// A time since the observation began.
    Since(Duration),
    /// A number of things.
    Count(u64),
    /// At least so many: not all of them could be counted.
    CountOrMore(u64),
    /// Which one, counted from 0.
    Number(u64),
    /// A number that names something; its digits are not grouped.
    Id(u64),
    /// Hundredths of a percent.
    Share(u64),
    /// A name, as the program gave it.
    Text(String),
    /// One of our words.
    Word(&'static str),
    /// Names in a row.
    Path(Vec<String>),
    /// Where a thread waits.
    Separator(Separator),
    /// A policy, with its priority or nice value.
    Policy(Policy, u32, Option<i32>),
    /// Caveats.
    Notes(Vec<Note>),
}

impl Value {
    /// The number to sort and to compare by.
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Time(time)
            | Value::Between(_, time, _)
            | Value::OrMore(time)
            | Value::Exactly(time)
            | Value::Burst(_, time)
            | Value::Apart(time)
            | Value::Since(time) => Some(time.ns()),
            Value::Period(periodic) => Some(periodic.period_ns.ns()),
            Value::Modes(modes, _) => {
                modes.iter().flat_map(|mode| &mode.sources).map(|source| source.period_ns.ns()).next()
            }
            Value::Count(number)
            | Value::CountOrMore(number)
            | Value::Number(number)
            | Value::Id(number)
            | Value::Share(number) => Some(*number),
            Value::Policy(policy, priority, _) => Some(urgency(*policy, *priority).into()),
            Value::Text(_) | Value::Word(_) | Value::Path(_) | Value::Separator(_) | Value::Notes(_) => None,
        }
    }
}

/// SCHED_DEADLINE first, then by priority, then the rest.
pub(crate) fn urgency(policy: Policy, priority: u32) -> u32 {
    match policy {
        Policy::Deadline => 0,
        Policy::Fifo | Policy::Rr => 100_u32.saturating_sub(priority),
        _ => 1_000,
    }
}

impl Figure {
    pub(crate) const fn new(
        field: &'static str,
        title: &'static str,
        unit: Unit,
        bound: Bound,
        meaning: &'static str,
    ) -> Figure {
        let rounding = match (unit, bound) {
            (Unit::Time | Unit::Share, Bound::Upper) => Rounding::Up,
            (Unit::Time, Bound::Lower) => Rounding::Down,
            (Unit::Time, Bound::Estimate) => Rounding::Nearest,
            _ => Rounding::None,
        };
        Figure {
            field,
            title,
            symbol: "",
            unit,
            bound,
            rounding,
            meaning,
            table: None,
            page: false,
            key: false,
            compared: None,
            sparse: false,
        }
    }
}

/// An entry; what follows says where it is shown.
pub(crate) const fn entry<S: Section>(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    bound: Bound,
    meaning: &'static str,
    value: for<'a> fn(&S::Row<'a>) -> Option<Value>,
) -> Entry<S> {
    Entry { figure: Figure::new(field, title, unit, bound, meaning), value }
}

impl<S: Section> Entry<S> {
    pub(crate) const fn symbol(mut self, symbol: &'static str) -> Self {
        self.figure.symbol = symbol;
        self
    }

    pub(crate) const fn rounded(mut self, rounding: Rounding) -> Self {
        self.figure.rounding = rounding;
        self
    }

    pub(crate) const fn table(mut self, fit: Fit) -> Self {
        self.figure.table = Some(fit);
        self
    }

    pub(crate) const fn page(mut self) -> Self {
        self.figure.page = true;
        self
    }

    pub(crate) const fn key(mut self) -> Self {
        self.figure.key = true;
        self
    }

    pub(crate) const fn compared(mut self, group: Group) -> Self {
        self.figure.compared = Some(group);
        self
    }

    pub(crate) const fn sparse(mut self) -> Self {
        self.figure.sparse = true;
        self
    }
}

/// The entries that are compared in a group.
pub(crate) fn of_group<S: Section>(
    list: &'static [Entry<S>],
    group: Group,
) -> impl Iterator<Item = &'static Entry<S>> {
    list.iter().filter(move |entry| entry.figure.compared == Some(group))
}

/// What a reader must know before relying on a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// One of a thread's tasks.
    Phase {
        /// Which, from 1.
        number: u32,
        /// Of how many.
        phases: u64,
    },
    /// The sum of several tasks of a thread.
    Phases {
        /// How many.
        phases: u64,
        /// Under how many policies or priorities.
        policies: u64,
    },
    /// Which of several recordings it comes from.
    Recording(String),
    /// It never waited, and has no jobs.
    NeverWaits {
        /// How much of a processor it took.
        percent: u64,
        /// The only one that it may use.
        processor: Option<u32>,
    },
    /// For how long it had not waited when it ended. No job covers that time.
    Awake(Duration),
    /// Changes of policy, priority or affinity that did not end the task.
    Changes(u64),
    /// Records were lost, so that the task ends.
    EndedByLoss,
    /// Some separators share a stream.
    SeparatorsCapped,
    /// Activations without a release.
    Skipped(u64),
    /// Releases without an activation.
    Extra(u64),
    /// Releases that the typical jitter leaves out.
    LeftOut(u64),
    /// Releases whose exact time is unknown.
    Windows(u64),
    /// Releases while the job before was still running.
    BackToBack(u64),
    /// Jitter and offset are larger than necessary.
    Approximate,
    /// Something was missed that may have been greater.
    MayBeGreater,
    /// So many of something.
    Some(u64, &'static str),
    /// At least so many of something.
    AtLeast(u64, &'static str),
    /// About another task.
    About(String, Box<Note>),
}

/// So many of something.
pub(crate) fn some(parts: &[(u64, &'static str)]) -> Vec<Note> {
    let some = parts.iter().filter(|(number, _)| *number > 0);
    some.map(|(number, what)| Note::Some(*number, what)).collect()
}

/// When `at` was, counted from when the observation began.
pub(crate) fn since(begin: Instant, at: Instant) -> Value {
    Value::Since(at.since(begin))
}
