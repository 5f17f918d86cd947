//! Why jobs are late, while they are observed: each late job is explained soon after its end, in constant
//! memory. The switches of all threads either come as records, of which those of the last seconds are kept,
//! or stay in the kernel and are read when a job was late.

use super::events::Events;
use super::kept::Kept;
use super::{job_of, time_until};
use punctual_causes::{Collector, Explanation, Job, Loss, add};
use punctual_extract::{Histogram, JobSeen, OpenJob};
use punctual_model::causes::{Causes, LateJob, LateTask, Limit, Others};
use punctual_model::{Duration, Instant, Policy};
use punctual_observe::Observer;
use punctual_trace::Record;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration as WallDuration, Instant as WallInstant};

/// Of longer jobs, the beginning is unknown where switches come as records.
const KEEP: Duration = Duration::from_ms(2_000);

/// From one explanation to the next, then: for each, the events that are kept are gone through.
const BETWEEN: WallDuration = WallDuration::from_millis(250);

/// The worst jobs of each task that are kept, if nothing else is asked for.
const MOST_WORST: usize = 8;

/// Jobs explained at once; others are counted.
const MOST_AT_ONCE: usize = 1_000;

/// Jobs of a task that are judged again when another limit is known: the longest that were not late, and the
/// late ones.
const MOST_CANDIDATES: usize = 256;

/// Explains late jobs of tasks, which have numbers of the caller's choice.
pub(crate) struct Explainer {
    source: Source,
    tasks: HashMap<u32, Explained>,
    /// By TID.
    threads: HashMap<u32, Watched>,
    /// Jobs to be explained: the number of their task, and whether their arrival is known.
    waiting: HashMap<(u32, Instant), (u32, bool)>,
    from: Instant,
    until: Instant,
    /// Whether tasks without late jobs count, too.
    all: bool,
    /// How many of the worst jobs of each task are kept.
    worst: usize,
    /// The number of the task that was retired last: they count downwards.
    retired: u32,
}

/// Where switches come from.
enum Source {
    /// From records.
    Records { events: Events, collector: Collector, explained: WallInstant },
    /// From the kernel, on demand.
    Kept(Kept),
}

/// A thread that is watched.
#[derive(Default)]
struct Watched {
    policy: Option<Policy>,
    priority: u32,
    /// When its last job ended. `None` if its parameters changed since: within another job, perhaps.
    end: Option<Instant>,
}

/// A task, and its late jobs so far.
struct Explained {
    late: LateTask,
    costs: Histogram<6>,
    /// Later than this is late.
    limit: Option<Duration>,
    /// The longest jobs that were not late.
    candidates: Vec<Candidate>,
    /// The last late jobs, each by itself.
    apart: VecDeque<LateTask>,
    /// The longest of the others.
    worst: Vec<LateJob>,
}

#[derive(Clone, Copy)]
struct Candidate {
    job: Job,
    has_arrival: bool,
    least: Duration,
    most: Duration,
}

impl Explainer {
    /// Begins at this moment. The observation must have the switches of all threads, as records or kept.
    pub fn start(from: Instant, is_kept: bool) -> Explainer {
        let source = match is_kept {
            true => Source::Kept(Kept::new()),
            false => Source::Records {
                events: Events::forgetting_after(KEEP + KEEP),
                collector: Collector::following(from, KEEP),
                explained: WallInstant::now(),
            },
        };
        Explainer {
            source,
            tasks: HashMap::new(),
            threads: HashMap::new(),
            waiting: HashMap::new(),
            from,
            until: from,
            all: false,
            worst: MOST_WORST,
            retired: u32::MAX,
        }
    }

    /// With all tasks, late or not, and so many of the worst jobs of each.
    pub fn with_all(self, worst: usize) -> Explainer {
        Explainer { all: true, worst, ..self }
    }

    /// From now on, jobs of this task that take longer than the limit are late. If the limit was found and
    /// not given, those of a moment ago are judged again.
    pub fn limit(&mut self, task: u32, name: &str, limit: Option<(Limit, Duration)>) {
        let known = self.tasks.entry(task).or_insert_with(|| {
            let late = LateTask::new(name.to_owned(), Limit::None, Duration::ZERO);
            Explained {
                late,
                costs: Histogram::default(),
                limit: None,
                candidates: Vec::new(),
                apart: VecDeque::new(),
                worst: Vec::new(),
            }
        });
        if known.late.task != name {
            name.clone_into(&mut known.late.task);
        }
        let before = std::mem::replace(&mut known.limit, limit.map(|(_, limit)| limit));
        let Some((kind, limit)) = limit.filter(|(_, limit)| before != Some(*limit)) else { return };
        (known.late.limit, known.late.limit_ns) = (kind, limit);
        if !matches!(kind, Limit::Period | Limit::Longest) {
            return;
        }
        known.apart.retain(|job| job.longest_ns > limit);
        let is_late = |candidate: &Candidate| candidate.least > limit;
        let late: Vec<Candidate>;
        (late, known.candidates) = std::mem::take(&mut known.candidates).into_iter().partition(is_late);
        late.into_iter().for_each(|candidate| self.judge(task, candidate));
    }

    /// The late jobs of a task so far.
    pub fn late(&self, task: u32) -> Option<LateTask> {
        let task = self.tasks.get(&task)?;
        let mut late = task.late.clone();
        task.apart.iter().for_each(|job| late.join(job.clone()));
        Some(late)
    }

    /// The thread of a task has ended within this job.
    pub fn cut_off(&mut self, task: u32, end: Instant, open: &OpenJob) {
        let Some(Explained { late, limit: Some(limit), .. }) = self.tasks.get_mut(&task) else { return };
        let time = time_until(end, open).filter(|time| time > limit);
        late.cut_off_ns = late.cut_off_ns.max(time);
    }

    /// There are no more jobs of this task; its number may be used again. Returns the number that it has from
    /// now on.
    pub fn retire(&mut self, task: u32) -> u32 {
        self.retired -= 1;
        let number = self.retired;
        if let Some(known) = self.tasks.remove(&task) {
            self.tasks.insert(number, known);
        }
        for (waiting, _) in self.waiting.values_mut().filter(|(waiting, _)| *waiting == task) {
            *waiting = number;
        }
        number
    }

    /// Forgets a task and its late jobs.
    pub fn forget(&mut self, task: u32) {
        self.tasks.remove(&task);
    }

    /// How many jobs were late.
    pub fn late_jobs(&self) -> u64 {
        self.tasks.values().map(|task| task.late.late + task.apart.len() as u64).sum()
    }

    /// Takes a record.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Task(task) | Record::Known(task) => {
                let watched = self.threads.entry(task.tid).or_default();
                (watched.policy, watched.priority, watched.end) = (Some(task.policy), task.priority, None);
            }
            Record::Exit { tid, .. } => _ = self.threads.remove(tid),
            _ => {}
        }
        match &mut self.source {
            Source::Records { events, collector, .. } => {
                if let Record::Lost { since, until } = *record {
                    collector.lost(Loss { since, until });
                }
                events.of(record, &mut |event| {
                    self.until = self.until.max(event.at);
                    collector.event(event);
                });
            }
            Source::Kept(kept) => kept.record(record, &mut self.until),
        }
    }

    /// A job of a task has ended.
    pub fn job(&mut self, number: u32, seen: &JobSeen<'_>) {
        let Some(task) = self.tasks.get_mut(&number) else { return };
        let late = &mut task.late;
        let thread = self.threads.entry(seen.tid).or_default();
        if late.jobs == 0 {
            (late.tid, late.priority) = (seen.tid, thread.priority);
            late.policy = thread.policy.unwrap_or(late.policy);
        }
        late.jobs += 1;
        task.costs.add(seen.job.cost);
        self.until = self.until.max(seen.job.end);
        let previous_end = thread.end.replace(seen.job.end);
        let candidate = Candidate {
            job: job_of(seen, previous_end),
            has_arrival: seen.job.release.arrival.is_some(),
            least: seen.job.least_response(),
            most: seen.job.response(),
        };
        self.judge(number, candidate);
    }

    /// Whether a job is to be explained.
    fn judge(&mut self, number: u32, candidate: Candidate) {
        let Some(task) = self.tasks.get_mut(&number) else { return };
        let Candidate { job, has_arrival, least, most } = candidate;
        if task.limit.is_none_or(|limit| least <= limit) {
            task.late.perhaps += u64::from(task.limit.is_some_and(|limit| most > limit));
            return task.consider(candidate);
        }
        let late = &mut task.late;
        if self.waiting.len() >= MOST_AT_ONCE {
            late.late += 1;
            late.longest_ns = late.longest_ns.max(job.time());
            late.others.get_or_insert_default().add(Others { jobs: 1, ns: job.time() });
            return;
        }
        self.waiting.insert((job.thread, job.end), (number, has_arrival));
        match &mut self.source {
            Source::Records { collector, .. } => collector.job(job),
            Source::Kept(kept) => kept.job(job),
        }
    }

    /// Explains late jobs, now and then: passes on each as its task with this one job and cause. `observer`
    /// has the kept moments; `is_last` is whether the observation has ended.
    pub fn turn(&mut self, observer: &Observer, is_last: bool, each: &mut impl FnMut(&LateTask)) {
        let Explainer { source, tasks, waiting, worst, .. } = self;
        match source {
            Source::Records { events, collector, explained: last } => {
                if collector.is_due() && last.elapsed() >= BETWEEN {
                    *last = WallInstant::now();
                    collector.explain(&mut |it| explained(&it, tasks, waiting, events, *worst, each));
                }
            }
            Source::Kept(kept) => {
                kept.turn(observer.now(), is_last, || observer.moments(), &mut |it, threads| {
                    explained(&it, tasks, waiting, threads, *worst, each);
                });
            }
        }
    }

    /// Explains the rest; returns all causes.
    pub fn finish(mut self, each: &mut impl FnMut(&LateTask)) -> Causes {
        let Explainer { source, tasks, waiting, from, until, worst, all, .. } = &mut self;
        if let Source::Records { events, collector, .. } = source {
            let collector = std::mem::replace(collector, Collector::new(Vec::new(), *from));
            collector.finish(&mut |it| explained(&it, tasks, waiting, events, *worst, each));
        }
        let (from_ns, until_ns, worst, all) = (*from, *until, *worst, *all);
        let mut tasks: Vec<LateTask> = Vec::new();
        for task in self.tasks.into_values().map(|task| task.finish(worst)) {
            let who = |it: &LateTask| (it.tid, it.policy, it.priority);
            let same = |known: &&mut LateTask| who(known) == who(&task) && known.task == task.task;
            match tasks.iter_mut().find(same) {
                Some(known) => join(known, task, worst),
                None if task.late > 0 || (all && task.jobs > 0) => tasks.push(task),
                None => {}
            }
        }
        let mut causes = Causes { from_ns, until_ns, lacks: Vec::new(), tasks };
        causes.tasks.iter_mut().for_each(LateTask::bound);
        causes.sort();
        causes
    }
}

/// Adds the jobs of another task of the same thread.
fn join(known: &mut LateTask, mut other: LateTask, most: usize) {
    let mut worst = std::mem::take(&mut known.worst);
    worst.append(&mut other.worst);
    worst.sort_by_key(|job| (Reverse(job.response_ns), job.begin_ns));
    worst.truncate(most);
    known.join(other);
    known.worst = worst;
}

impl Explained {
    /// Its late jobs, with the longest so many.
    fn finish(mut self, most: usize) -> LateTask {
        while let Some(job) = self.apart.pop_front() {
            self.settle(job, most);
        }
        self.worst.sort_by_key(|job| (Reverse(job.response_ns), job.begin_ns));
        self.worst.truncate(most);
        LateTask { worst: self.worst, ..self.late }
    }

    /// A late job is explained.
    fn add(&mut self, job: LateTask, most: usize) {
        self.apart.push_back(job);
        if self.apart.len() > MOST_CANDIDATES {
            self.apart.pop_front().into_iter().for_each(|oldest| self.settle(oldest, most));
        }
    }

    fn settle(&mut self, job: LateTask, most: usize) {
        self.worst.extend(job.worst.iter().cloned());
        if self.worst.len() > most.saturating_mul(2) {
            self.worst.sort_by_key(|job| (Reverse(job.response_ns), job.begin_ns));
            self.worst.truncate(most);
        }
        self.late.join(job);
    }

    /// Keeps a job that may be late by another limit.
    fn consider(&mut self, candidate: Candidate) {
        if self.candidates.len() < MOST_CANDIDATES {
            return self.candidates.push(candidate);
        }
        let shortest = self.candidates.iter_mut().min_by_key(|kept| kept.most);
        if let Some(shortest) = shortest.filter(|kept| kept.most < candidate.most) {
            *shortest = candidate;
        }
    }
}

fn explained(
    explanation: &Explanation,
    tasks: &mut HashMap<u32, Explained>,
    waiting: &mut HashMap<(u32, Instant), (u32, bool)>,
    events: &Events,
    most: usize,
    each: &mut impl FnMut(&LateTask),
) {
    let job = &explanation.job;
    let Some((number, has_arrival)) = waiting.remove(&(job.thread, job.end)) else { return };
    let Some(task) = tasks.get_mut(&number) else { return };
    // Another limit is known since it was judged.
    if task.limit.is_some_and(|limit| job.time() <= limit) {
        return;
    }
    let Explained { late, costs, .. } = task;
    late.usual_cost_ns = costs.quantiles().map_or(late.usual_cost_ns, |it| it.p50_ns);
    let mut alone = late.without_jobs();
    add(&mut alone, 1, explanation, has_arrival, &|tid| events.who(tid));
    each(&alone);
    task.add(alone, most);
}
