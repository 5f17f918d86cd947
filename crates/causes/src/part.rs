//! Parts of a job's time, and what they say of it.

use crate::event::{Faults, Interrupt, Wait};
pub use punctual_model::causes::{Kind, Role};
use punctual_model::{Duration, Instant, Window};

/// A job to be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its thread.
    pub thread: u32,
    /// Which of the thread's tasks it belongs to.
    pub phase: u32,
    /// Its number within its task.
    pub number: u64,
    /// When its time begins: its arrival; if that is unknown, its release, or the earliest that it can be.
    pub begin: Instant,
    /// When the job before ended, if that is known.
    pub previous_end: Option<Instant>,
    /// When it was released, if that is known.
    pub release: Option<Window>,
    /// When it first ran.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// Its processor time by the kernel's account, if known: an upper bound of the time that it ran.
    pub cost: Option<Duration>,
}

impl Job {
    /// Its time, from `begin` to `end`.
    pub fn time(&self) -> Duration {
        self.end.since(self.begin)
    }
}

/// The thread, interrupt or job that caused a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Culprit {
    /// A thread, by its TID.
    Thread(u32),
    /// An interrupt.
    Interrupt(Interrupt),
    /// A job before, by its number.
    Job(u64),
}

/// A stretch of a job's time with one reason, or all such stretches of the job together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The reason.
    pub kind: Kind,
    /// Its culprit, where known.
    pub culprit: Option<Culprit>,
    /// What the thread waited for, if it was [`Kind::Blocked`].
    pub wait: Option<Wait>,
    /// When it began; of several stretches, the first.
    pub from: Instant,
    /// How long.
    pub time: Duration,
    /// The activity of the thread that was waited for.
    pub chain: Option<Box<Chain>>,
}

/// The activity of another thread while a job waited for it; of a backlog, that of the job's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// That thread.
    pub thread: u32,
    /// Its role for the waiting thread.
    pub role: Role,
    /// Its time meanwhile, in parts, in the order of time.
    pub parts: Vec<Part>,
    /// Whether threads that are less urgent than the one that waits kept it from its processor for at least
    /// half of that time.
    pub inversion: bool,
}

/// A job's time, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The job.
    pub job: Job,
    /// Its time in parts, in the order of time; disjoint, and their sum is the job's time.
    pub parts: Vec<Part>,
    /// Page faults of its turns on a processor. Jobs between which the thread did not sleep share a turn.
    pub faults: Faults,
}

impl Explanation {
    /// The parts of the same kind, culprit and object together, the longest first. Their sum is the job's
    /// time.
    pub fn summed(&self) -> Vec<Part> {
        let mut sums: Vec<Part> = Vec::new();
        for part in &self.parts {
            let same = sums
                .iter_mut()
                .find(|sum| (sum.kind, sum.culprit, sum.wait) == (part.kind, part.culprit, part.wait));
            match same {
                Some(sum) => {
                    // The chain of the longest stretch stands for all.
                    if chained(part) > chained(sum) {
                        sum.chain.clone_from(&part.chain);
                    }
                    sum.time += part.time;
                }
                None => sums.push(part.clone()),
            }
        }
        sums.sort_by_key(|part| std::cmp::Reverse(part.time));
        sums
    }

    /// The job's time of one kind.
    pub fn of(&self, kind: Kind) -> Duration {
        let of_kind = self.parts.iter().filter(|part| part.kind == kind);
        of_kind.fold(Duration::ZERO, |sum, part| sum + part.time)
    }
}

fn chained(part: &Part) -> Duration {
    part.chain.iter().flat_map(|chain| &chain.parts).fold(Duration::ZERO, |sum, part| sum + part.time)
}
