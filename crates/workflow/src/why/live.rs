//! Why jobs are late, while they are observed. Events of the last seconds are kept in memory; a late job is
//! explained within half a second, in constant memory.

use super::events::Events;
use super::job_of;
use punctual_causes::{Collector, Explanation, Loss, add};
use punctual_extract::{Histogram, JobSeen};
use punctual_model::causes::{Causes, LateTask, Limit, Others};
use punctual_model::{Duration, Instant};
use punctual_trace::Record;
use std::collections::HashMap;
use std::time::{Duration as WallDuration, Instant as WallInstant};

/// Of longer jobs, the beginning is unknown.
const KEEP: Duration = Duration::from_ms(2_000);

/// From one explanation to the next: for each, the events that are kept are gone through.
const BETWEEN: WallDuration = WallDuration::from_millis(250);

/// Jobs explained at once; others are counted.
const MOST_AT_ONCE: usize = 1_000;

/// Explains late jobs of tasks, which have numbers of the caller's choice.
pub(crate) struct Explainer {
    events: Events,
    collector: Collector,
    tasks: HashMap<u32, Explained>,
    /// When the last job of each thread ended.
    ends: HashMap<u32, Instant>,
    /// Jobs to be explained: the number of their task, and whether their arrival is known.
    waiting: HashMap<(u32, Instant), (u32, bool)>,
    from: Instant,
    until: Instant,
    turned: WallInstant,
}

/// A task, and its late jobs so far.
struct Explained {
    late: LateTask,
    costs: Histogram<6>,
    /// Later than this is late.
    limit: Option<Duration>,
}

impl Explainer {
    /// Begins at this moment. The observation must have the switches of all threads.
    pub fn start(from: Instant) -> Explainer {
        Explainer {
            events: Events::forgetting_after(KEEP + KEEP),
            collector: Collector::following(from, KEEP),
            tasks: HashMap::new(),
            ends: HashMap::new(),
            waiting: HashMap::new(),
            from,
            until: from,
            turned: WallInstant::now(),
        }
    }

    /// From now on, jobs of this task that take longer than the limit are late.
    pub fn limit(&mut self, task: u32, name: &str, limit: Option<(Limit, Duration)>) {
        let known = self.tasks.entry(task).or_insert_with(|| {
            let late = LateTask::new(name.to_owned(), Limit::None, Duration::ZERO);
            Explained { late, costs: Histogram::default(), limit: None }
        });
        known.limit = limit.map(|(_, limit)| limit);
        if let Some((kind, limit)) = limit {
            (known.late.limit, known.late.limit_ns) = (kind, limit);
        }
    }

    /// The late jobs of a task so far.
    pub fn late(&self, task: u32) -> Option<&LateTask> {
        self.tasks.get(&task).map(|task| &task.late)
    }

    /// There are no more jobs of this task; returns the late ones.
    pub fn forget(&mut self, task: u32) -> Option<LateTask> {
        self.tasks.remove(&task).map(|task| task.late)
    }

    /// Takes a record.
    pub fn record(&mut self, record: &Record) {
        match *record {
            Record::Lost { since, until } => self.collector.lost(Loss { since, until }),
            Record::Exit { tid, .. } => _ = self.ends.remove(&tid),
            _ => {}
        }
        self.events.of(record, &mut |event| {
            self.until = self.until.max(event.at);
            self.collector.event(event);
        });
    }

    /// A job of a task has ended.
    pub fn job(&mut self, number: u32, seen: &JobSeen<'_>) {
        let Some(task) = self.tasks.get_mut(&number) else { return };
        let late = &mut task.late;
        if late.jobs == 0 {
            let thread = self.events.who(seen.tid);
            (late.tid, late.priority) = (seen.tid, thread.priority);
            late.policy = thread.policy.unwrap_or(late.policy);
        }
        late.jobs += 1;
        task.costs.add(seen.job.cost);
        let previous_end = self.ends.insert(seen.tid, seen.job.end);
        if task.limit.is_none_or(|limit| seen.job.least_response() <= limit) {
            late.perhaps += u64::from(task.limit.is_some_and(|limit| seen.job.response() > limit));
            return;
        }
        let job = job_of(seen, previous_end);
        if self.waiting.len() >= MOST_AT_ONCE {
            late.late += 1;
            late.longest_ns = late.longest_ns.max(job.time());
            late.others.get_or_insert_default().add(Others { jobs: 1, ns: job.time() });
            return;
        }
        self.waiting.insert((seen.tid, job.end), (number, seen.job.release.arrival.is_some()));
        self.collector.job(job);
    }

    /// Explains what can be, now and then: each late job as its task with this one job and cause.
    pub fn turn(&mut self, each: &mut impl FnMut(&LateTask)) {
        if !self.collector.is_due() || self.turned.elapsed() < BETWEEN {
            return;
        }
        self.turned = WallInstant::now();
        let Explainer { collector, tasks, waiting, events, .. } = self;
        collector.explain(&mut |it| explained(&it, tasks, waiting, events, each));
    }

    /// Explains the rest; returns all causes.
    pub fn finish(mut self, each: &mut impl FnMut(&LateTask)) -> Causes {
        let Explainer { collector, ref mut tasks, ref mut waiting, ref events, .. } = self;
        collector.finish(&mut |it| explained(&it, tasks, waiting, events, each));
        let late = self.tasks.into_values().map(|task| task.late).filter(|task| task.late > 0);
        let (from_ns, until_ns) = (self.from, self.until);
        let mut causes = Causes { from_ns, until_ns, lacks: Vec::new(), tasks: late.collect() };
        causes.tasks.iter_mut().for_each(LateTask::bound);
        causes.sort();
        causes
    }
}

fn explained(
    explanation: &Explanation,
    tasks: &mut HashMap<u32, Explained>,
    waiting: &mut HashMap<(u32, Instant), (u32, bool)>,
    events: &Events,
    each: &mut impl FnMut(&LateTask),
) {
    let job = &explanation.job;
    let Some((number, has_arrival)) = waiting.remove(&(job.thread, job.end)) else { return };
    let Some(Explained { late, costs, .. }) = tasks.get_mut(&number) else { return };
    late.usual_cost_ns = costs.quantiles().map_or(late.usual_cost_ns, |it| it.p50_ns);
    let mut alone = late.without_jobs();
    add(&mut alone, 1, explanation, has_arrival, &|tid| events.who(tid));
    each(&alone);
    late.join(alone);
}
