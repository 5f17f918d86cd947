//! Figures of threads: one row for each task, or for the summed phases of a thread.

use super::figure::Fit::{Below, Drop, Keep};
use super::figure::{Bound, Entry, Group, Note, Rounding, Section, Unit, Value, entry};
use crate::busy;
use crate::derived::{left_out, typical, utilization};
use crate::modes;
use crate::percentiles;
use crate::shape::Shape;
use punctual_model::{EndedBy, MANY_LATE, Periodic, Stream, Task, ThreadIds};

/// The section of threads.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

impl Section for Threads {
    type Row<'a> = ThreadRow<'a>;
}

/// A task, or the summed phases of a thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadRow<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its primary stream; none where no job was seen.
    pub stream: Option<&'a Stream>,
    /// How it stands to the other tasks of its thread.
    pub phases: Phases,
}

/// How a task stands to the other tasks of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phases {
    /// It is the only one.
    Only,
    /// One of several.
    One {
        /// How many there are.
        phases: u64,
    },
    /// The sum of several.
    Sum {
        /// How many.
        phases: u64,
        /// Under how many policies or priorities.
        policies: u64,
    },
}

impl<'a> ThreadRow<'a> {
    /// The row of `task`, whose thread is among `ids` if it has several phases.
    pub fn new(ids: &ThreadIds<'_>, task: &'a Task) -> Self {
        let phases = match ids.phases(task) {
            1 => Phases::Only,
            phases => Phases::One { phases },
        };
        ThreadRow { task, stream: crate::derived::primary(task), phases }
    }

    /// The periodic model, where the stream is shown as periodic.
    pub(crate) fn periodic(&self) -> Option<&'a Periodic> {
        match Shape::new(self.stream?) {
            Shape::Periodic(periodic) => Some(periodic),
            _ => None,
        }
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        let task = self.task;
        notes.extend(task.recording.clone().map(Note::Recording));
        match self.phases {
            Phases::Only => {}
            Phases::One { phases } => notes.push(Note::Phase { number: task.phase + 1, phases }),
            Phases::Sum { phases, policies } => notes.push(Note::Phases { phases, policies }),
        }
        notes.extend(busy::note(task));
        if task.merged_transitions > 0 {
            notes.push(Note::Changes(task.merged_transitions));
        }
        if task.ended_by == EndedBy::Loss {
            notes.push(Note::EndedByLoss);
        }
        if task.separators_capped {
            notes.push(Note::SeparatorsCapped);
        }
        let Some(stream) = self.stream else { return notes };
        let counted = |number: u64, note: fn(u64) -> Note| (number > 0).then(|| note(number));
        if let Some(periodic) = self.periodic() {
            notes.extend(counted(periodic.skipped, Note::Skipped));
            notes.extend(counted(periodic.extra, Note::Extra));
            notes.extend(counted(left_out(periodic), Note::LeftOut));
        }
        let windows = stream.uncertain_releases.saturating_sub(stream.back_to_back);
        notes.extend(counted(windows, Note::Windows));
        notes.extend(counted(stream.back_to_back, Note::BackToBack));
        if stream.arrival.periodic.as_ref().is_some_and(|periodic| periodic.approximate) {
            notes.push(Note::Approximate);
        }
        notes
    }
}

const fn figure(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    bound: Bound,
    meaning: &'static str,
    value: for<'a> fn(&ThreadRow<'a>) -> Option<Value>,
) -> Entry<Threads> {
    entry::<Threads>(field, title, unit, bound, meaning, value)
}

const fn time(
    field: &'static str,
    title: &'static str,
    bound: Bound,
    meaning: &'static str,
    value: for<'a> fn(&ThreadRow<'a>) -> Option<Value>,
) -> Entry<Threads> {
    entry::<Threads>(field, title, Unit::Time, bound, meaning, value)
}

/// What `kind` of time this share of jobs does not exceed: the one at `place` of the percentiles.
macro_rules! percentile {
    ($kind:ident, $place:literal, $field:literal, $title:literal, $meaning:literal) => {
        time($field, $title, Bound::Upper, $meaning, |row| {
            percentiles::$kind(row.stream?)?.values.get($place).copied().map(Value::Time)
        })
    };
}

/// Every figure of a thread, in the order in which they are shown.
pub const THREADS: &[Entry<Threads>] = &[
    figure("thread", "Thread", Unit::Words, Bound::Exact, "The thread's name.", |row| {
        Some(Value::Text(row.task.name.clone()))
    })
    .table(Keep)
    .page(),
    figure("tid", "TID", Unit::Count, Bound::Exact, "Its number in the kernel.", |row| {
        Some(Value::Id(row.task.tid.into()))
    })
    .table(Drop(2)),
    figure("policy", "Policy", Unit::Ranked, Bound::Exact, "Scheduling policy and priority.", |row| {
        Some(Value::Policy(row.task.policy, row.task.priority, row.task.nice))
    })
    .table(Drop(20))
    .page(),
    figure(
        "separator",
        "Separator",
        Unit::Words,
        Bound::Exact,
        "The system call at which one job ends and the next begins.",
        |row| Some(Value::Separator(row.stream?.separator)),
    )
    .table(Drop(4))
    .page(),
    figure(
        "arrival",
        "Period or arrival",
        Unit::Time,
        Bound::Exact,
        "The exact period, or several; without one, the most releases in a burst or the least separation of \
         releases.",
        |row| {
            Some(match Shape::new(row.stream?) {
                Shape::Periodic(periodic) => Value::Period(Box::new(periodic.clone())),
                Shape::Modes(modes) => Value::Modes(modes.to_vec(), row.task.from_ns),
                Shape::Bursts { jobs, span } => Value::Burst(jobs, span),
                Shape::Sporadic(separation) => Value::Apart(separation),
                Shape::Unknown => return None,
            })
        },
    )
    .table(Keep)
    .page()
    .key(),
    time("period_ns", "Period", Bound::Exact, "The exact period.", |row| {
        Some(Value::Period(Box::new(row.periodic()?.clone())))
    })
    .symbol("T")
    .compared(Group::Threads),
    time(
        "jitter_ns",
        "Jitter",
        Bound::Upper,
        "How late releases are on the periodic grid, at most; a few releases that are far off are left out \
         and counted.",
        |row| {
            Some(Value::Time(match Shape::new(row.stream?) {
                Shape::Modes(modes) => modes::jitter(modes)?,
                _ => row.periodic()?.usual_jitter(),
            }))
        },
    )
    .table(Keep)
    .page()
    .key()
    .compared(Group::Threads),
    time(
        "max_jitter_ns",
        "Max jitter",
        Bound::Upper,
        "How late any release was on the periodic grid, where that is more than the jitter.",
        |row| {
            let periodic = row.periodic()?;
            typical(periodic).map(|_| Value::Time(periodic.jitter_ns))
        },
    )
    .symbol("J")
    .table(Drop(14))
    .page()
    .key()
    .compared(Group::Threads)
    .sparse(),
    percentile!(
        lateness,
        0,
        "p50_ns",
        "p50 lateness",
        "Half of the releases are at most this late; estimated where arrivals are unknown."
    )
    .compared(Group::Lateness),
    percentile!(
        lateness,
        1,
        "p90_ns",
        "p90 lateness",
        "90 % of the releases are at most this late; estimated where arrivals are unknown."
    )
    .compared(Group::Lateness),
    percentile!(
        lateness,
        2,
        "p99_ns",
        "p99 lateness",
        "99 % of the releases are at most this late; estimated where arrivals are unknown."
    )
    .compared(Group::Lateness),
    percentile!(
        lateness,
        3,
        "p999_ns",
        "p99.9 lateness",
        "99.9 % of the releases are at most this late; from 1,000 releases on."
    )
    .compared(Group::Lateness),
    figure("skipped", "Skipped", Unit::Count, Bound::Exact, "Periods in which no job was released.", |row| {
        Some(Value::Count(row.periodic()?.skipped))
    })
    .key()
    .compared(Group::Slips),
    figure("extra", "Extra", Unit::Count, Bound::Exact, "Releases beyond one for each period.", |row| {
        Some(Value::Count(row.periodic()?.extra))
    })
    .key()
    .compared(Group::Slips),
    time(
        "min_separation_ns",
        "Least separation",
        Bound::Lower,
        "Least time between two releases in a row.",
        |row| Some(Value::Time(row.stream?.arrival.sporadic.as_ref()?.min_separation_ns)),
    )
    .symbol("δ⁻(2)")
    .key(),
    time("mean_cost_ns", "Mean cost", Bound::Estimate, "Mean processor time of a job.", |row| {
        Some(Value::Time(row.stream?.execution.as_ref()?.mean_ns?))
    })
    .table(Drop(26))
    .page()
    .key(),
    percentile!(cost, 0, "p50_ns", "p50 cost", "Half of the jobs need at most this processor time.")
        .compared(Group::Cost),
    percentile!(cost, 1, "p90_ns", "p90 cost", "90 % of the jobs need at most this processor time.")
        .compared(Group::Cost),
    percentile!(cost, 2, "p99_ns", "p99 cost", "99 % of the jobs need at most this processor time.")
        .table(Drop(22))
        .page()
        .compared(Group::Cost),
    percentile!(
        cost,
        3,
        "p999_ns",
        "p99.9 cost",
        "99.9 % of the jobs need at most this processor time; from 1,000 jobs on."
    )
    .compared(Group::Cost),
    time(
        "wcet_ns",
        "Max cost",
        Bound::Upper,
        "Most processor time of a job: the observed maximum. The true WCET may be higher.",
        |row| row.stream?.execution.as_ref()?.wcet_ns.first().copied().map(Value::Time),
    )
    .symbol("C")
    .table(Keep)
    .page()
    .key()
    .compared(Group::Threads),
    time("suspended_ns", "Suspended", Bound::Upper, "Most time asleep inside a job.", |row| {
        row.stream?.suspension.as_ref().map(|model| Value::Time(model.dynamic_ns))
    })
    .symbol("S")
    .table(Drop(30))
    .page()
    .key(),
    time(
        "mean_response_ns",
        "Mean response",
        Bound::Estimate,
        "Mean time from arrival (where it is unknown, release) to the end of a job.",
        |row| Some(Value::Time(row.stream?.response.as_ref()?.mean_ns?)),
    )
    .table(Drop(28))
    .page()
    .key(),
    percentile!(response, 0, "p50_ns", "p50 response", "Half of the jobs respond within this time.")
        .compared(Group::Response),
    percentile!(response, 1, "p90_ns", "p90 response", "90 % of the jobs respond within this time.")
        .compared(Group::Response),
    percentile!(response, 2, "p99_ns", "p99 response", "99 % of the jobs respond within this time.")
        .table(Drop(24))
        .page()
        .compared(Group::Response),
    percentile!(
        response,
        3,
        "p999_ns",
        "p99.9 response",
        "99.9 % of the jobs respond within this time; from 1,000 jobs on."
    )
    .compared(Group::Response),
    time(
        "response_ns",
        "Max response",
        Bound::Upper,
        "Longest time from arrival (where it is unknown, release) to the end of a job: the observed maximum.",
        |row| Some(Value::Time(row.stream?.response.as_ref()?.max_ns)),
    )
    .symbol("R")
    .table(Drop(16))
    .page()
    .key()
    .compared(Group::Threads),
    figure(
        "late",
        "Late",
        Unit::Count,
        Bound::Lower,
        "Jobs that certainly took longer than the period: exactly so many if fewer than 32, else at least.",
        |row| {
            row.periodic()?;
            Some(match row.stream?.late? {
                few @ 0..MANY_LATE => Value::Count(few),
                many => Value::CountOrMore(many),
            })
        },
    )
    .key(),
    figure("jobs", "Jobs", Unit::Count, Bound::Exact, "Jobs seen from release to end.", |row| {
        Some(Value::Count(row.stream.map_or(0, |stream| stream.jobs)))
    })
    .table(Drop(18))
    .page()
    .key(),
    figure(
        "utilization",
        "Utilization",
        Unit::Share,
        Bound::Upper,
        "Most processor time of many jobs in a row, as a share of the least time that they span.",
        |row| utilization(row.stream?).map(|(_, hundredths)| Value::Share(hundredths)),
    )
    .symbol("U")
    .rounded(Rounding::Up)
    .page()
    .key(),
    figure(
        "notes",
        "Notes",
        Unit::Notes,
        Bound::Exact,
        "What to know before relying on the figures.",
        |row| Some(Value::Notes(row.notes())),
    )
    .table(Below)
    .page(),
];
