//! Why jobs were late: their time in parts, and the causes that it is put down to.

mod advice;
mod json;
#[cfg(test)]
mod tests;
mod text;
mod words;

use punctual_causes::{Chain, Culprit, Explanation, Faults, Interrupt, Kind, Part, main_cause};
use punctual_model::{Duration, Instant, Policy};
use std::collections::BTreeMap;

/// A thread, as it was when a job was explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its TID.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its policy; `None` if nothing is known but the TID.
    pub policy: Option<Policy>,
    /// Its real-time priority, if the policy has one.
    pub priority: u32,
}

/// Which jobs count as late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Those that took longer than the user asked for.
    Given(Duration),
    /// Those that took longer than the period of their task.
    Period(Duration),
    /// Those that took longer than a contract allows.
    Agreed(Duration),
    /// The user chose them, whether late or not.
    Chosen,
    /// The longest of a task without a period: those that took longer than 99 % of all.
    Longest(Duration),
}

impl Limit {
    /// Later than this is late.
    pub fn time(self) -> Duration {
        match self {
            Limit::Given(time) | Limit::Period(time) | Limit::Agreed(time) | Limit::Longest(time) => time,
            Limit::Chosen => Duration::ZERO,
        }
    }
}

/// What a page fault costs at least. Faults that take less than a tenth of a job's own work are not evidence.
const FAULT_NS: u64 = 500;

/// The late jobs of one task.
#[derive(Clone, Debug)]
pub struct LateTask {
    /// Its thread.
    pub who: ThreadInfo,
    /// All its jobs.
    pub jobs: u64,
    /// Which of them are late.
    pub limit: Limit,
    /// The processor time that half of its jobs do not exceed; zero if it is unknown.
    pub usual_cost: Duration,
    late: u64,
    longest: Duration,
    causes: Vec<(CauseKey, Cause)>,
    /// The worst first.
    shown: Vec<Explained>,
    most: usize,
}

/// What causes are told apart by. Threads of the same name and policy are one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CauseKey {
    kind: Kind,
    who: Option<Named>,
    /// What the jobs were blocked on: call and object.
    on: Option<(&'static str, Option<&'static str>)>,
    inversion: bool,
}

/// The thread or interrupt that caused a part, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    Thread { name: String, policy: Option<Policy>, priority: u32 },
    Interrupt(Interrupt),
}

/// Late jobs with the same cause.
#[derive(Clone, Debug)]
struct Cause {
    jobs: u64,
    /// The time of the part that each of them is put down to, in all.
    time: Duration,
    least: Duration,
    greatest: Duration,
    /// How many had page faults, and the most of one.
    faulting: u64,
    faults: Faults,
    /// The longest of these parts.
    example: Part,
    threads: BTreeMap<u32, ThreadInfo>,
}

/// A late job.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Its time.
    pub explanation: Explanation,
    /// Whether its time begins at a known arrival; else at its release.
    pub has_arrival: bool,
    /// What it is put down to.
    cause: Part,
    /// The threads that its parts name.
    threads: BTreeMap<u32, ThreadInfo>,
}

/// The late jobs of all tasks.
#[derive(Clone, Debug, Default)]
pub struct Why {
    /// Those with late jobs, in the order in which they were found.
    pub tasks: Vec<LateTask>,
    /// Tasks that had no late job.
    pub punctual: Vec<LateTask>,
    /// What the input lacks: which parts cannot be told apart.
    pub lacks: Vec<String>,
    /// When the observation began: jobs are shown by the time since then.
    pub from: Instant,
}

impl Why {
    /// The late job that took longest: the name of its thread, and its number.
    pub fn worst(&self) -> Option<(&str, u64)> {
        let worst = self.tasks.iter().filter_map(|task| Some((task, task.shown.first()?)));
        let (task, job) = worst.max_by_key(|(_, job)| job.explanation.job.time())?;
        Some((&task.who.name, job.explanation.job.number))
    }
}

impl LateTask {
    /// No late jobs yet. The `most` worst will be shown one by one.
    pub fn new(who: ThreadInfo, jobs: u64, limit: Limit, usual_cost: Duration, most: usize) -> LateTask {
        let (late, longest) = (0, Duration::ZERO);
        LateTask { who, jobs, limit, usual_cost, late, longest, causes: Vec::new(), shown: Vec::new(), most }
    }

    /// Another task of the same thread: what is usual, and which jobs are late, is shown as of the one with
    /// most jobs.
    pub fn join(&mut self, other: &LateTask) {
        if other.jobs > self.jobs {
            (self.limit, self.usual_cost) = (other.limit, other.usual_cost);
        }
        self.jobs += other.jobs;
    }

    /// Adds a late job. `who` knows the threads by their TIDs.
    pub fn add(&mut self, explanation: Explanation, has_arrival: bool, who: &dyn Fn(u32) -> ThreadInfo) {
        let Some(cause) = main_cause(&explanation, self.usual_cost) else { return };
        self.late += 1;
        self.longest = self.longest.max(explanation.job.time());
        let mut threads = BTreeMap::new();
        gather(&explanation.parts, who, &mut threads);
        let (time, faults) = (cause.time, explanation.faults);
        let mut key = key(&cause, &threads);
        if cause.kind == Kind::Throttled && self.who.policy == Some(Policy::Deadline) {
            // Its own runtime was used up, whoever ran meanwhile.
            key.who = None;
        }
        let sum = self.cause(key, &cause);
        sum.jobs += 1;
        sum.time += time;
        sum.least = sum.least.min(time);
        let is_faulting = faults.major > 0 || faults.all().saturating_mul(FAULT_NS) >= time.ns() / 10;
        sum.faulting += u64::from(faults.all() > 0 && is_faulting);
        sum.faults = sum.faults.max(faults);
        if time > sum.greatest {
            (sum.greatest, sum.example, sum.threads) = (time, cause.clone(), threads.clone());
        }
        let place = self.shown.partition_point(|it| it.explanation.job.time() >= explanation.job.time());
        if place < self.most {
            self.shown.insert(place, Explained { explanation, has_arrival, cause, threads });
            self.shown.truncate(self.most);
        }
    }

    /// The sum of the cause's jobs; a new one with `example`.
    fn cause(&mut self, key: CauseKey, example: &Part) -> &mut Cause {
        let place = self.causes.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            self.causes.push((key, Cause::new(example)));
            self.causes.len() - 1
        });
        &mut self.causes[place].1
    }

    /// How many jobs were late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// The causes, those of most time first.
    fn causes(&self) -> Vec<(&CauseKey, &Cause)> {
        let mut causes: Vec<_> = self.causes.iter().map(|(key, cause)| (key, cause)).collect();
        causes.sort_by_key(|(_, cause)| std::cmp::Reverse((cause.time, cause.jobs)));
        causes
    }
}

impl Cause {
    fn new(example: &Part) -> Cause {
        Cause {
            jobs: 0,
            time: Duration::ZERO,
            least: example.time,
            greatest: Duration::ZERO,
            faulting: 0,
            faults: Faults::default(),
            example: example.clone(),
            threads: BTreeMap::new(),
        }
    }
}

fn key(cause: &Part, threads: &BTreeMap<u32, ThreadInfo>) -> CauseKey {
    let who = match cause.culprit {
        Some(Culprit::Thread(tid)) => threads.get(&tid).map(|who| Named::Thread {
            name: who.name.clone(),
            policy: who.policy,
            priority: who.priority,
        }),
        Some(Culprit::Interrupt(interrupt)) => Some(Named::Interrupt(interrupt)),
        Some(Culprit::Job(_)) | None => None,
    };
    let on = cause.wait.and_then(|wait| Some((wait.call?, wait.object)));
    CauseKey { kind: cause.kind, who, on, inversion: cause.chain.as_deref().is_some_and(has_inversion) }
}

/// Whether less urgent threads held up somebody on the way to what the job waited for.
fn has_inversion(chain: &Chain) -> bool {
    let longest = chain.parts.iter().max_by_key(|part| part.time);
    chain.inversion || longest.and_then(|part| part.chain.as_deref()).is_some_and(has_inversion)
}

/// Every thread that parts name.
fn gather(parts: &[Part], who: &dyn Fn(u32) -> ThreadInfo, threads: &mut BTreeMap<u32, ThreadInfo>) {
    for part in parts {
        if let Some(Culprit::Thread(tid)) = part.culprit {
            threads.entry(tid).or_insert_with(|| who(tid));
        }
        if let Some(chain) = &part.chain {
            threads.entry(chain.thread).or_insert_with(|| who(chain.thread));
            gather(&chain.parts, who, threads);
        }
    }
}
