//! Every quantity that is shown, declared once: what it is called, what it means, what it bounds, how it is
//! rounded, and how it is read from a model.
//!
//! Terminal tables, the page, `compare`, its JSON and the table in `docs/report.md` go through these lists: a
//! new column is one entry. Entries give values; [`crate::text`] and the page's cells make text of them.

mod dataflow;
mod latency;
mod threads;

pub(crate) use dataflow::some;
pub use dataflow::{Chains, DataflowTasks, Kernel, KernelRow, LATENCY, LatencyRow, SPLIT, TIMES, TimesRow};
pub use latency::{
    BOUNDS, BoundRow, Bounds, INTERRUPTS, InterruptRow, Interrupts, MEASURED, MeasuredLatencies, MeasuredRow,
    PROCESSORS, Processors, VARIABLES, VariableRow, Variables,
};
pub use threads::{Note, Phases, THREADS, ThreadRow, Threads};

use punctual_model::{Duration, Instant, Periodic, Policy, Separator};

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
    /// Its value in a row; none where there is none.
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
        matches!(self, Unit::Time | Unit::Count | Unit::Share)
    }

    /// For documents.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Time => "time",
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
    /// At most so many releases in any interval of this length.
    Burst(usize, Duration),
    /// Releases that are at least so far apart.
    Apart(Duration),
    /// A time since the observation began.
    Since(Duration),
    /// A number of things.
    Count(u64),
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
            Value::Count(number) | Value::Number(number) | Value::Id(number) | Value::Share(number) => {
                Some(*number)
            }
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
    const fn new(
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
const fn entry<S: Section>(
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
    const fn symbol(mut self, symbol: &'static str) -> Self {
        self.figure.symbol = symbol;
        self
    }

    const fn rounded(mut self, rounding: Rounding) -> Self {
        self.figure.rounding = rounding;
        self
    }

    const fn table(mut self, fit: Fit) -> Self {
        self.figure.table = Some(fit);
        self
    }

    const fn page(mut self) -> Self {
        self.figure.page = true;
        self
    }

    const fn key(mut self) -> Self {
        self.figure.key = true;
        self
    }

    const fn compared(mut self, group: Group) -> Self {
        self.figure.compared = Some(group);
        self
    }

    const fn sparse(mut self) -> Self {
        self.figure.sparse = true;
        self
    }

    /// The text of its cell in a row.
    pub(crate) fn cell(&self, row: &S::Row<'_>) -> String {
        match (self.value)(row) {
            Some(value) => crate::text::value(&value, self.figure.rounding),
            None if self.figure.sparse => String::new(),
            None => "–".into(),
        }
    }
}

/// The entries that are compared in a group.
pub(crate) fn of_group<S: Section>(
    list: &'static [Entry<S>],
    group: Group,
) -> impl Iterator<Item = &'static Entry<S>> {
    list.iter().filter(move |entry| entry.figure.compared == Some(group))
}

/// A table for the terminal, with a row for each of `rows`.
pub(crate) fn table<'a, S: Section + 'static>(
    list: &'static [Entry<S>],
    rows: impl Iterator<Item = S::Row<'a>>,
) -> crate::table::Table {
    use crate::table::{Table, Tone};
    let rows: Vec<S::Row<'a>> = rows.collect();
    // Columns without a single value are left out.
    let has_value = |entry: &Entry<S>| rows.iter().any(|row| (entry.value)(row).is_some());
    let shown: Vec<(&Entry<S>, Fit)> = list
        .iter()
        .filter(|entry| has_value(entry))
        .filter_map(|entry| Some((entry, entry.figure.table?)))
        .collect();
    let columns: Vec<_> =
        shown.iter().map(|(entry, fit)| entry.figure.unit.column(entry.figure.title, *fit)).collect();
    let mut table = Table::new(&columns);
    for row in &rows {
        let cell = |(entry, _): &(&Entry<S>, Fit)| {
            let tone = if entry.figure.unit == Unit::Notes { Tone::Warning } else { Tone::Plain };
            (entry.cell(row), tone)
        };
        table.rows.push(shown.iter().map(cell).collect());
    }
    table
}

/// When `at` was, counted from when the observation began.
pub(crate) fn since(begin: Instant, at: Instant) -> Value {
    Value::Since(at.since(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// The lists of figures, as `docs/report.md` has them.
    fn documented() -> String {
        let lists: [(&str, Vec<Figure>); 9] = [
            ("Threads", THREADS.iter().map(|entry| entry.figure).collect()),
            ("Tasks of dataflow programs", TIMES.iter().map(|entry| entry.figure).collect()),
            ("Chains of dataflow programs", LATENCY.iter().map(|entry| entry.figure).collect()),
            ("Executions by what the kernel did", SPLIT.iter().map(|entry| entry.figure).collect()),
            ("Scheduling latency of processors", PROCESSORS.iter().map(|entry| entry.figure).collect()),
            ("Variables of the bound", VARIABLES.iter().map(|entry| entry.figure).collect()),
            ("Interrupts", INTERRUPTS.iter().map(|entry| entry.figure).collect()),
            ("Bounds by model of interrupts", BOUNDS.iter().map(|entry| entry.figure).collect()),
            ("Measured latencies", MEASURED.iter().map(|entry| entry.figure).collect()),
        ];
        let mut text = String::new();
        for (title, list) in lists {
            let _ = writeln!(text, "### {title}\n");
            text += "| figure | symbol | unit | bound | rounded | meaning |\n|---|---|---|---|---|---|\n";
            for Figure { title, symbol, unit, bound, rounding, meaning, .. } in list {
                let (unit, bound, rounding) = (unit.name(), bound.name(), rounding.name());
                let _ = writeln!(text, "| {title} | {symbol} | {unit} | {bound} | {rounding} | {meaning} |");
            }
            text.push('\n');
        }
        text
    }

    /// `PUNCTUAL_BLESS=1 cargo test -p punctual-report documents` writes the lists anew.
    #[test]
    fn the_documents_list_every_figure() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.md");
        let page = std::fs::read_to_string(path).expect("docs/report.md");
        let (begin, end) = ("<!-- figures: generated by a test -->\n", "<!-- end of figures -->");
        let (before, rest) = page.split_once(begin).expect("the begin of the lists");
        let (found, after) = rest.split_once(end).expect("the end of the lists");
        let expected = documented();
        if std::env::var_os("PUNCTUAL_BLESS").is_some() {
            std::fs::write(path, format!("{before}{begin}{expected}{end}{after}")).expect("docs/report.md");
        } else {
            assert_eq!(found, expected, "docs/report.md is not current: run this with PUNCTUAL_BLESS=1");
        }
    }

    #[test]
    fn every_figure_is_declared_completely() {
        let all = THREADS
            .iter()
            .map(|entry| entry.figure)
            .chain(TIMES.iter().map(|entry| entry.figure))
            .chain(LATENCY.iter().map(|entry| entry.figure))
            .chain(SPLIT.iter().map(|entry| entry.figure))
            .chain(PROCESSORS.iter().map(|entry| entry.figure))
            .chain(VARIABLES.iter().map(|entry| entry.figure))
            .chain(INTERRUPTS.iter().map(|entry| entry.figure))
            .chain(BOUNDS.iter().map(|entry| entry.figure))
            .chain(MEASURED.iter().map(|entry| entry.figure));
        for figure in all {
            assert!(figure.meaning.ends_with('.') && !figure.title.is_empty(), "{}", figure.field);
            let is_time = figure.unit == Unit::Time && figure.field != "arrival";
            let is_suffixed = figure.field.ends_with("_ns");
            assert_eq!(is_time, is_suffixed, "{}: the unit of a time is in its name", figure.field);
            // A bound that is rounded to the nearest is none.
            let is_safe = match (figure.unit, figure.bound) {
                (Unit::Time, Bound::Upper) => figure.rounding == Rounding::Up,
                (Unit::Time, Bound::Lower) => figure.rounding == Rounding::Down,
                _ => true,
            };
            assert!(is_safe, "{}", figure.field);
        }
    }
}
