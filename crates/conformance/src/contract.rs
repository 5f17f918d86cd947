//! Contracts: what someone agreed on rather than observed. See `docs/contracts.md` and `docs/table.md`.

mod group;
mod margin;
mod observed;
mod read;
mod separators;
mod sources;
mod typical;
mod write;

pub use margin::Margin;
pub(crate) use observed::latency;
pub use observed::{Limits, Observed};
pub use read::Faulty;
pub(crate) use separators::{Meant, meant, primary};
pub use typical::Quantile;
pub(crate) use typical::median_separation_of;

use crate::spans::{Spans, least_of_any};
use crate::threads::Pattern;
use punctual_model::arrival::{Burst, Curve};
use punctual_model::table::{Clock, OnOverrun};
use punctual_model::{Duration, Percent, Policy, Reservation, Task};

/// Modes of one task.
const MOST_MODES: usize = 16;

/// What a contract says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contract {
    /// Length of a slot of a table.
    pub slot: Option<Duration>,
    /// The processors of a table, ascending; empty if it says nothing of them.
    pub processors: Vec<u32>,
    /// The clock of a table.
    pub clock: Option<Clock>,
    /// Whether a job of a table may continue on another processor.
    pub migration: bool,
    /// What real-time threads are that belong to no task; if absent, a note.
    pub unknown_threads: Option<Answer>,
    /// What a task is whose threads had no job; if absent, a note.
    pub tasks_without_jobs: Option<Answer>,
    /// What a task is whose threads are scheduled in another way than agreed; if absent, a note.
    pub scheduling: Option<Answer>,
    /// The tasks.
    pub tasks: Vec<ContractTask>,
    /// Tasks that run one after the other.
    pub chains: Vec<ContractChain>,
    /// The processors' scheduling latencies.
    pub latencies: Vec<ContractProcessor>,
}

/// What a contract says of a task. What is absent is not agreed on; commands that need it take it from a
/// timing model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContractTask {
    /// Its name.
    pub name: String,
    /// Which threads it is; if absent, those with its name.
    pub thread: Option<Pattern>,
    /// How many threads those are at once, for proofs; if absent, one.
    pub threads: Option<u64>,
    /// Where its jobs end, as a glob; if absent, it is found out.
    pub separator: Option<String>,
    /// From one activation to the next.
    pub period: Option<Duration>,
    /// The longest time from an activation to its release; without it, `period` binds no release.
    pub jitter: Option<Duration>,
    /// Activations that may be left out in a row; if absent, none.
    pub skips: Option<u64>,
    /// What releases its jobs, if that is more than one period: several sources, bursts, or one mode after
    /// another.
    pub modes: Vec<ContractMode>,
    /// The least time between two releases.
    pub separation: Option<Duration>,
    /// The least time from a release to the second after it, the third, …; never decreasing.
    pub more_separations: Vec<Duration>,
    /// The most that a job needs.
    pub wcet: Option<Duration>,
    /// The most that two consecutive jobs need, three, …; never decreasing.
    pub more_wcets: Vec<Duration>,
    /// The longest time from an activation to the end of its job.
    pub response: Option<Duration>,
    /// From an activation until its job must have ended.
    pub deadline: Option<Duration>,
    /// The bound of its response time that was proven; not in files, which say what was agreed on.
    pub proven: Option<Duration>,
    /// The most that a job sleeps.
    pub suspension: Option<Duration>,
    /// How often a job sleeps at most.
    pub suspensions: Option<u64>,
    /// The share of its jobs that may exceed each limit but `deadline`; if absent, none.
    pub may_exceed: Option<Percent>,
    /// The most that at least a quarter of the jobs need.
    pub quartile_cost: Option<Duration>,
    /// Between which times at least half of the separations of releases lie.
    pub median_separation: Option<MedianSeparation>,
    /// How Linux schedules it.
    pub policy: Option<Policy>,
    /// Its real-time priority.
    pub priority: Option<u32>,
    /// Its reservation, under SCHED_DEADLINE.
    pub reservation: Option<Reservation>,
    /// What it is if no thread belongs to it; if absent, a violation.
    pub missing: Option<Answer>,
    /// The first activation.
    pub offset: Option<Duration>,
    /// Tasks that it must follow.
    pub after: Vec<String>,
    /// Processors that it may use, ascending; empty if all.
    pub processors: Vec<u32>,
    /// Whether it has its processor for itself.
    pub exclusive: bool,
    /// What happens when it has used its slots.
    pub on_overrun: Option<OnOverrun>,
}

/// Periodic sources that release the jobs of a task while they last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractMode {
    /// One or more.
    pub sources: Vec<ContractSource>,
    /// Activations of each that may be left out in a row; if absent, none.
    pub skips: Option<u64>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractSource {
    /// From one activation to the next.
    pub period: Duration,
    /// The longest time from an activation to its release; without it, the period binds no release.
    pub jitter: Option<Duration>,
    /// If each activation may release several jobs.
    pub burst: Option<Burst>,
}

/// Limits for the median time from a release to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MedianSeparation {
    /// The least.
    pub least: Duration,
    /// The greatest; not below the least.
    pub most: Duration,
}

/// A chain of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContractChain {
    /// Its tasks, first to last.
    pub tasks: Vec<String>,
    /// Of a dataflow program: from the activation of the first task to the end of the last one that has read
    /// its datum or a later one.
    pub reaction_time: Option<Duration>,
    /// Of a dataflow program: from the activation of the task whose datum is read to the end of the reader.
    pub data_age: Option<Duration>,
}

/// What a contract says of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractProcessor {
    /// Its number.
    pub cpu: u32,
    /// The longest scheduling latency.
    pub latency: Duration,
}

/// What something out of order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The contract is broken.
    Violation,
    /// It is mentioned.
    Note,
    /// Nothing.
    Ignore,
}

/// Which threads of a timing model a contract is made of.
pub type ThreadChoice<'a> = &'a dyn Fn(&str) -> bool;

impl Answer {
    /// Its name in contracts.
    pub const fn name(self) -> &'static str {
        match self {
            Answer::Violation => "violation",
            Answer::Note => "note",
            Answer::Ignore => "ignore",
        }
    }
}

impl ContractMode {
    /// Its source and skips, if that is one period.
    pub fn plain(&self) -> Option<(&ContractSource, Option<u64>)> {
        match &self.sources[..] {
            [source] if source.burst.is_none() => Some((source, self.skips)),
            _ => None,
        }
    }
}

impl ContractChain {
    /// Whether it says how long data takes, which is about a dataflow program; else it orders tasks only.
    pub fn has_times(&self) -> bool {
        self.reaction_time.is_some() || self.data_age.is_some()
    }
}

impl ContractTask {
    /// What its threads must match: its pattern, else its name.
    pub fn pattern(&self) -> Pattern {
        self.thread.clone().unwrap_or_else(|| Pattern::named(&self.name))
    }

    /// The least times between its releases, of several sources, bursts and modes; `None` if it has none.
    pub fn curve(&self) -> Option<Curve> {
        let spans: Vec<Spans> = self.modes.iter().map(Spans::of).collect();
        let delta_min_ns = least_of_any(&spans);
        (!spans.is_empty()).then_some(Curve { delta_min_ns, delta_max_ns: Vec::new() })
    }

    /// Whether it says how often its jobs are released.
    pub fn has_period(&self) -> bool {
        self.least_period().is_some()
    }

    /// Whether its periods bind releases.
    pub fn has_jitter(&self) -> bool {
        self.sources().all(|source| source.jitter.is_some())
            && (!self.modes.is_empty() || self.jitter.is_some())
    }

    /// The longest time from an activation to its release, or to the last one of its burst.
    pub fn greatest_jitter(&self) -> Option<Duration> {
        let last = |source: &ContractSource| {
            let within = source.burst.map_or(Duration::ZERO, |burst| burst.within_ns);
            source.jitter.map(|jitter| jitter + within)
        };
        self.jitter.into_iter().chain(self.sources().filter_map(last)).max()
    }

    fn sources(&self) -> impl Iterator<Item = &ContractSource> {
        self.modes.iter().flat_map(|mode| &mode.sources)
    }

    /// The shortest time between two activations of one source.
    pub fn least_period(&self) -> Option<Duration> {
        self.period.into_iter().chain(self.sources().map(|source| source.period)).min()
    }

    /// The place of the stream whose jobs were agreed on, among those of a task: at the separator, else the
    /// primary one.
    pub fn stream_of(&self, task: &Task) -> Option<usize> {
        let Some(separator) = &self.separator else { return task.primary };
        let meant = Meant::new(separator);
        task.streams.iter().position(|stream| meant.has(stream.separator))
    }
}
