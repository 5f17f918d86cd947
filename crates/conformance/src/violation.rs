//! Violations: which task, which term, when, and by how much.

use crate::chance::{Allowance, BEYOND_MEDIAN, BEYOND_QUARTILE};
use crate::scheduling::policy_name;
use punctual_model::{Duration, Instant};
use std::fmt;
use std::sync::Arc;

/// What a contract may say of a task, chain or processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// Processor time of a job.
    Wcet,
    /// From the activation of a job to its end.
    Response,
    /// The same, against the deadline.
    Deadline,
    /// The same, against its proven bound.
    Bound,
    /// Time asleep inside a job.
    Suspension,
    /// A release less than a period after the activation before.
    Early,
    /// A release later after its activation than the jitter.
    Late,
    /// Activations left out in a row.
    Skipped,
    /// A release that has not come long after the last activation that may be its own.
    Overdue,
    /// The time between two releases.
    Separation,
    /// From the first task of a chain to the last.
    ReactionTime,
    /// The age of what the last task of a chain has read.
    DataAge,
    /// The scheduling latency of a processor.
    Latency,
    /// Processor time of several jobs in a row.
    WcetOfSeveral,
    /// The time between a release and one that is not the next.
    SeparationOfSeveral,
    /// The time between a release and a later one, which periodic sources limit.
    GapOfSeveral,
    /// The processor time of nearly all jobs: its lower quartile.
    QuartileCost,
    /// Most releases follow the one before too soon.
    Frequent,
    /// Most releases follow the one before too late.
    Rare,
    /// The scheduling policy.
    Policy,
    /// The real-time priority.
    Priority,
    /// A processor that a thread may use.
    Processors,
    /// No thread belongs to the task; or the chain or processor was not observed.
    Missing,
    /// Its threads had no jobs.
    NoJobs,
    /// A real-time thread belongs to no task.
    Unknown,
}

/// What the values of a term count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Activations or threads.
    Count,
}

impl Term {
    /// Every term.
    pub const ALL: [Term; 25] = [
        Term::Wcet,
        Term::Response,
        Term::Deadline,
        Term::Bound,
        Term::Suspension,
        Term::Early,
        Term::Late,
        Term::Skipped,
        Term::Overdue,
        Term::Separation,
        Term::ReactionTime,
        Term::DataAge,
        Term::Latency,
        Term::WcetOfSeveral,
        Term::SeparationOfSeveral,
        Term::GapOfSeveral,
        Term::QuartileCost,
        Term::Frequent,
        Term::Rare,
        Term::Policy,
        Term::Priority,
        Term::Processors,
        Term::Missing,
        Term::NoJobs,
        Term::Unknown,
    ];

    /// Its name in lists and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Term::Wcet => "wcet",
            Term::Response => "response",
            Term::Deadline => "deadline",
            Term::Bound => "bound",
            Term::Suspension => "suspension",
            Term::Early => "early",
            Term::Late => "late",
            Term::Skipped => "skipped",
            Term::Overdue => "overdue",
            Term::Separation => "separation",
            Term::ReactionTime => "reaction_time",
            Term::DataAge => "data_age",
            Term::Latency => "latency",
            Term::WcetOfSeveral => "wcet_of_several",
            Term::SeparationOfSeveral => "separation_of_several",
            Term::GapOfSeveral => "gap_of_several",
            Term::QuartileCost => "quartile_cost",
            Term::Frequent => "frequent",
            Term::Rare => "rare",
            Term::Policy => "policy",
            Term::Priority => "priority",
            Term::Processors => "processors",
            Term::Missing => "missing",
            Term::NoJobs => "no_jobs",
            Term::Unknown => "unknown",
        }
    }

    /// What its values count.
    pub const fn unit(self) -> Unit {
        match self {
            Term::Skipped | Term::Missing | Term::NoJobs | Term::Unknown => Unit::Count,
            Term::Policy | Term::Priority | Term::Processors => Unit::Count,
            _ => Unit::Time,
        }
    }

    /// Whether what is agreed on is the least value rather than the greatest.
    pub const fn is_lower_bound(self) -> bool {
        matches!(self, Term::Early | Term::Separation | Term::SeparationOfSeveral | Term::Frequent)
    }

    /// If it is about most jobs, so that single ones say nothing: how many may exceed its limit.
    pub(crate) fn of_most(self) -> Option<&'static Allowance> {
        match self {
            Term::QuartileCost => Some(&BEYOND_QUARTILE),
            Term::Frequent | Term::Rare => Some(&BEYOND_MEDIAN),
            _ => None,
        }
    }

    /// A value of it as text.
    pub fn text(self, value: u64) -> String {
        match self.unit() {
            Unit::Count if self == Term::Policy => policy_name(value).to_owned(),
            Unit::Time => Duration::from_ns(value).to_string(),
            Unit::Count => value.to_string(),
        }
    }
}

/// Which job it was; of a chain, which instance of its last task; of a processor, which wake-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The thread's name; of a chain, that of its last task.
    pub name: Arc<str>,
    /// Its process; of a chain, 0.
    pub pid: u32,
    /// Its number; of a chain, 0.
    pub tid: u32,
    /// Which of the thread's tasks.
    pub phase: u32,
    /// Number of the job at its separator, or of the instance, from 0; of a wake-up, 0.
    pub job: u64,
    /// When it was released, or woken, at the latest; of a chain, when its first task was activated.
    pub release: Instant,
    /// When it ended, or ran; if it is open, until when it had not.
    pub end: Instant,
    /// Whether it has not ended, or not even been released, as far as is known.
    pub is_open: bool,
}

/// A term that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The task, chain (`a → b`) or processor (`CPU 1`).
    pub task: Arc<str>,
    /// What was agreed on.
    pub term: Term,
    /// Which job; `None` if it is not about one.
    pub subject: Option<Subject>,
    /// What it was, in nanoseconds or a count.
    pub value: u64,
    /// What was agreed on.
    pub agreed: u64,
}

impl Violation {
    /// Whether it is about a job that has not ended.
    pub fn is_open(&self) -> bool {
        self.subject.as_ref().is_some_and(|subject| subject.is_open)
    }

    /// Which job it was, in words: of a chain, which instance of its last task; of a processor, which thread.
    pub fn which(&self) -> Option<String> {
        let Subject { name, tid, job, .. } = self.subject.as_ref()?;
        Some(match self.term {
            Term::Latency => format!("thread {tid}"),
            Term::ReactionTime | Term::DataAge => format!("instance {job} of {name}"),
            term if term.of_most().is_some() => format!("jobs up to {job} of thread {tid}"),
            _ => format!("job {job} of thread {tid}"),
        })
    }
}

/// `control: response 5.2 ms, agreed at most 4 ms (job 812 of thread 4711, ended at 12.34 s)`.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { task, term, value, agreed, .. } = self;
        match term {
            Term::Missing => write!(f, "{task}: not there")?,
            Term::NoJobs => write!(f, "{task}: no job")?,
            Term::Unknown => write!(f, "{task}: real-time thread of no task")?,
            Term::Bound => {
                let (value, agreed) = (term.text(*value), term.text(*agreed));
                write!(f, "{task}: response {value}, proven at most {agreed}")?;
            }
            Term::QuartileCost => {
                let (value, agreed) = (term.text(*value), term.text(*agreed));
                write!(f, "{task}: most jobs cost more than {agreed}, typically {value}")?;
            }
            Term::Frequent | Term::Rare => {
                let (value, agreed) = (term.text(*value), term.text(*agreed));
                let limit = if *term == Term::Rare { "more" } else { "less" };
                write!(
                    f,
                    "{task}: most releases come {limit} than {agreed} after the last, typically {value}"
                )?;
            }
            Term::Processors => write!(f, "{task}: may use CPU {value}, which is not agreed on")?,
            Term::Policy | Term::Priority => {
                let (value, agreed) = (term.text(*value), term.text(*agreed));
                write!(f, "{task}: {} {value}, agreed {agreed}", term.name())?;
            }
            _ => {
                let (value, agreed) = (term.text(*value), term.text(*agreed));
                let limit = if term.is_lower_bound() { "at least" } else { "at most" };
                write!(f, "{task}: {} {value}, agreed {limit} {agreed}", term.name())?;
            }
        }
        let Some((Subject { end, is_open, .. }, which)) = self.subject.as_ref().zip(self.which()) else {
            return Ok(());
        };
        let ended = match (is_open, term) {
            (_, Term::Latency) => "ran at",
            (false, _) => "ended at",
            (true, Term::Overdue) => "not released by",
            (true, _) => "not ended by",
        };
        let at = end.ns() / 1_000;
        write!(f, " ({which}, {ended} {}.{:06} s)", at / 1_000_000, at % 1_000_000)
    }
}
