//! One thread of a live view: its last jobs and seconds, the distributions of its times, and its model as of
//! a moment ago.

use super::late::Late;
use punctual_extract::{Histogram, JobSeen};
use punctual_model::causes::Limit;
use punctual_model::{Duration, Instant, Job, Periodic, PeriodicOn, Separator, Stream, Task};
use punctual_report::live::{Counts, Details, LiveJob, LiveTask, Times, period};
use punctual_trace::{Activation, Glance, TaskRecord};
use std::collections::VecDeque;
use std::sync::Arc;

/// Jobs that are kept of a thread.
const JOBS: usize = 64;
/// Seconds that are kept of a thread.
const SECONDS: usize = 60;
/// Seconds over which the utilization is a mean.
const RECENT: u64 = 10;
const SECOND: u64 = 1_000_000_000;
/// The oldest that a model gets while there are new jobs.
const OLDEST: Duration = Duration::from_ms(10_000);

/// Threads that have run for a shorter time may still wait.
const UNTIL_BUSY: Duration = Duration::from_ms(100);

/// Times to one part in 32.
type Distribution = Histogram<6>;

/// A thread.
#[derive(Default)]
pub(super) struct Thread {
    phase: u32,
    /// At which separator its jobs are counted: that of its model, or, until it has one, the first seen.
    separator: Option<Separator>,
    jobs: u64,
    response: Sum,
    cost: Sum,
    lateness: Distribution,
    late: Late,
    agreed: Agreed,
    /// The deadline, and where it comes from.
    limit: Option<(Limit, Duration)>,
    recent: VecDeque<Recent>,
    seconds: Seconds,
    model: Option<Model>,
    has_waited: bool,
    /// The processor time of its task, which has not waited.
    busy: Option<Duration>,
}

/// Deadlines that do not depend on what is observed.
#[derive(Clone, Copy, Default, PartialEq)]
struct Agreed {
    deadline: Option<(Limit, Duration)>,
    reservation: Option<Duration>,
    /// Without a period, the longest jobs are late.
    or_longest: bool,
}

struct Model {
    task: Arc<Task>,
    at: Instant,
    jobs: u64,
}

#[derive(Clone, Copy)]
struct Recent {
    number: u64,
    job: Job,
    lateness: Option<Duration>,
}

/// Times of jobs.
#[derive(Default)]
struct Sum {
    jobs: u64,
    sum: u128,
    last: Option<Duration>,
    max: Option<Duration>,
    distribution: Distribution,
}

impl Sum {
    /// Continues from what a model says of jobs that were not counted here.
    fn from_model(jobs: u64, mean: Option<Duration>, max: Option<Duration>) -> Sum {
        let sum = u128::from(jobs) * u128::from(mean.map_or(0, Duration::ns));
        Sum { jobs: if mean.is_some() { jobs } else { 0 }, sum, max, ..Sum::default() }
    }

    fn add(&mut self, time: Duration) {
        self.jobs += 1;
        self.sum += u128::from(time.ns());
        self.last = Some(time);
        self.max = self.max.max(Some(time));
        self.distribution.add(time);
    }

    fn times(&self) -> Times {
        let mean = self.sum.checked_div(u128::from(self.jobs)).map(|mean| Duration::from_ns(mean as u64));
        Times { last: self.last, mean, max: self.max }
    }
}

/// The last seconds, by the clock, so that those of all threads stand below each other.
#[derive(Default)]
struct Seconds {
    /// The number of the last one.
    last: u64,
    ring: VecDeque<Second>,
    /// The thread's processor time when it was last seen.
    cpu: Option<Duration>,
    /// The first second in which that was known.
    since: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Second {
    cpu: Duration,
    response: Option<Duration>,
    cost: Option<Duration>,
}

impl Seconds {
    /// The second of this instant; none if it is too long ago.
    fn at(&mut self, at: Instant) -> Option<&mut Second> {
        let number = at.ns() / SECOND;
        if self.ring.is_empty() {
            self.last = number;
            self.ring.push_back(Second::default());
        }
        let new = number.saturating_sub(self.last);
        if new >= SECONDS as u64 {
            self.ring.clear();
        }
        for _ in 0..new.min(SECONDS as u64) {
            if self.ring.len() == SECONDS {
                self.ring.pop_front();
            }
            self.ring.push_back(Second::default());
        }
        self.last = self.last.max(number);
        let back = (self.last - number) as usize;
        let place = self.ring.len().checked_sub(back + 1)?;
        self.ring.get_mut(place)
    }

    fn cpu(&mut self, at: Instant, cpu: Duration) {
        let used = self.cpu.map(|before| cpu.saturating_sub(before));
        self.cpu = Some(cpu);
        self.since.get_or_insert(at.ns() / SECOND);
        if let (Some(second), Some(used)) = (self.at(at), used) {
            second.cpu += used;
        }
    }

    /// Processor time of the last whole seconds, in hundredths of a percent.
    fn utilization(&self, now: Instant) -> Option<u64> {
        let present = now.ns() / SECOND;
        // The second in which it was first seen is not whole.
        let first = (self.since? + 1).max(present.saturating_sub(RECENT));
        let seconds = present.checked_sub(first).filter(|seconds| *seconds > 0)?;
        let used: u64 =
            self.numbered().filter(|(n, _)| (first..present).contains(n)).map(|(_, s)| s.cpu.ns()).sum();
        Some(used / (seconds * (SECOND / 10_000)))
    }

    /// The seconds that are kept, with their numbers.
    fn numbered(&self) -> impl Iterator<Item = (u64, &Second)> {
        let first = (self.last + 1).saturating_sub(self.ring.len() as u64);
        (first..).zip(&self.ring)
    }

    /// One of the times of each of the last seconds, until the present one.
    fn times(&self, now: Instant, of: impl Fn(&Second) -> Option<Duration>) -> Vec<Option<Duration>> {
        let present = (now.ns() / SECOND).max(self.last);
        let mut times = vec![None; SECONDS];
        for (number, second) in self.numbered() {
            let place = (SECONDS - 1).checked_sub((present - number) as usize);
            if let Some(time) = place.and_then(|place| times.get_mut(place)) {
                *time = of(second);
            }
        }
        times
    }
}

impl Thread {
    /// A task of the thread begins.
    pub fn begin(&mut self) {
        (self.has_waited, self.busy) = (false, None);
    }

    /// The thread was seen.
    pub fn activation(&mut self, activation: &Activation) {
        (self.has_waited, self.busy) = (true, None);
        self.seconds.cpu(activation.stop, activation.cpu);
    }

    /// Whether its task has not waited, as far as is known.
    pub fn may_be_busy(&self) -> bool {
        !self.has_waited
    }

    /// The thread was looked at.
    pub fn glance(&mut self, glance: &Glance) {
        self.busy = glance.busy;
        if self.busy.is_some() {
            self.seconds.cpu(glance.at, glance.cpu);
        }
    }

    /// The processor time of its task, if that has not waited.
    pub fn busy(&self) -> Option<Duration> {
        self.busy
    }

    /// A job ended. Whether it counts: others are at a separator that was not chosen.
    pub fn job(&mut self, seen: &JobSeen<'_>) -> bool {
        if seen.phase != self.phase {
            let seconds = std::mem::take(&mut self.seconds);
            let agreed = self.agreed;
            *self = Thread { phase: seen.phase, seconds, agreed, has_waited: true, ..Thread::default() };
            self.set_limit();
        }
        let key = seen.separator.key();
        self.late.job(key, seen.job.least_response());
        if *self.separator.get_or_insert(key) != key {
            return false;
        }
        let (job, response) = (*seen.job, seen.job.response());
        let lateness = self.lateness_of(&job);
        self.jobs += 1;
        self.response.add(response);
        self.cost.add(job.cost);
        if let Some(lateness) = lateness {
            self.lateness.add(lateness);
        }
        if self.recent.len() == JOBS {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent { number: seen.number, job, lateness });
        if let Some(second) = self.seconds.at(job.end) {
            second.response = second.response.max(Some(response));
            second.cost = second.cost.max(Some(job.cost));
        }
        true
    }

    /// Which of its tasks it is in.
    pub fn phase(&self) -> u32 {
        self.phase
    }

    /// Where its jobs are counted.
    pub fn separator(&self) -> Option<Separator> {
        self.separator
    }

    /// Later than this is late.
    pub fn limit(&self) -> Option<(Limit, Duration)> {
        self.limit
    }

    fn deadline(&self) -> Option<Duration> {
        self.limit.map(|(_, deadline)| deadline)
    }

    /// This was agreed on. As in a check, earlier jobs are not judged by it.
    pub fn agree(&mut self, deadline: Option<(Limit, Duration)>, or_longest: bool, about: &TaskRecord) {
        let reservation = about.reservation.map(|reservation| reservation.deadline_ns);
        let agreed = Agreed { deadline, reservation, or_longest };
        if self.agreed != agreed {
            self.agreed = agreed;
            self.late = Late::default();
            self.set_limit();
        }
    }

    fn set_limit(&mut self) {
        let Agreed { deadline, reservation, or_longest } = self.agreed;
        let found = self.model.as_ref().and_then(|model| period(&model.task));
        let longest = || self.stream()?.percentiles.as_ref()?.response.as_ref().map(|it| it.p99_ns);
        self.limit = deadline
            .or_else(|| Some((Limit::Given, reservation?)))
            .or_else(|| Some((Limit::Period, found?)))
            .or_else(|| Some((Limit::Longest, or_longest.then(longest)??)));
        self.late.judge(self.deadline());
    }

    /// After its arrival; where that is unknown, after its place on the grid of the model.
    fn lateness_of(&self, job: &Job) -> Option<Duration> {
        let release = job.release.window.earliest();
        if let Some(arrival) = job.release.arrival {
            return Some(release.since(arrival));
        }
        let periodic = self.stream()?.arrival.periodic.as_ref()?;
        (periodic.on == PeriodicOn::Release).then(|| on_grid(periodic, release))
    }

    fn stream(&self) -> Option<&Stream> {
        let task = &self.model.as_ref()?.task;
        task.streams.get(task.primary?)
    }

    /// Whether its model is out of date: many new jobs, or some and it is old.
    pub fn needs_model(&self, now: Instant) -> bool {
        match &self.model {
            None => self.jobs > 0 || self.seconds.cpu.is_some(),
            Some(model) => {
                self.jobs > model.jobs + model.jobs / 4
                    || (self.jobs != model.jobs && now.since(model.at) >= OLDEST)
            }
        }
    }

    /// When its model was made.
    pub fn learned(&self) -> Instant {
        self.model.as_ref().map_or(Instant::from_ns(0), |model| model.at)
    }

    /// The model made last.
    pub fn model(&self) -> Option<&Task> {
        self.model.as_ref().map(|model| &*model.task)
    }

    /// Takes a new model. If it has another primary separator, the jobs there count from the first one on.
    pub fn learn(&mut self, task: Task, now: Instant) {
        if let Some(stream) = task.primary.and_then(|primary| task.streams.get(primary)) {
            let key = stream.separator.key();
            if self.separator != Some(key) || self.phase != task.phase {
                self.count_at(stream, task.phase);
            }
        }
        self.model = Some(Model { task: Arc::new(task), at: now, jobs: self.jobs });
        self.set_limit();
    }

    fn count_at(&mut self, stream: &Stream, phase: u32) {
        let seconds = std::mem::take(&mut self.seconds);
        let late = if self.phase == phase { std::mem::take(&mut self.late) } else { Late::default() };
        let (response, execution) = (stream.response.as_ref(), stream.execution.as_ref());
        *self = Thread {
            phase,
            separator: Some(stream.separator.key()),
            jobs: stream.jobs,
            response: Sum::from_model(
                stream.jobs,
                response.and_then(|it| it.mean_ns),
                response.map(|it| it.max_ns),
            ),
            cost: Sum::from_model(
                stream.jobs,
                execution.and_then(|it| it.mean_ns),
                execution.and_then(|it| it.wcet_ns.first().copied()),
            ),
            late,
            agreed: self.agreed,
            seconds,
            has_waited: self.has_waited,
            ..Thread::default()
        };
    }

    /// Its line.
    pub fn line(&self, about: &TaskRecord, now: Instant, has_ended: bool) -> LiveTask {
        LiveTask {
            tid: about.tid,
            pid: about.pid,
            name: about.name.clone(),
            policy: about.policy,
            priority: about.priority,
            nice: about.nice,
            has_ended,
            never_waits: self.busy.is_some() && now.since(about.at) >= UNTIL_BUSY,
            model: self.model.as_ref().map(|model| Arc::clone(&model.task)),
            jobs: self.jobs,
            utilization: self.seconds.utilization(now),
            response: self.response.times(),
            cost: self.cost.times(),
            deadline: self.deadline(),
            late: self.late.at(self.separator),
            bound: None,
            responses: self.seconds.times(now, |second| second.response),
            costs: self.seconds.times(now, |second| second.cost),
        }
    }

    /// Everything about it; times of jobs are counted from `begin`.
    pub fn details(
        &self,
        task: LiveTask,
        description: String,
        causes: Option<String>,
        begin: Instant,
    ) -> Details {
        let deadline = self.deadline();
        let line = |recent: &Recent| LiveJob {
            number: recent.number,
            release: recent.job.release.window.earliest().since(begin),
            lateness: recent.lateness,
            response: recent.job.response(),
            cost: recent.job.cost,
            suspended: recent.job.suspended,
            is_late: deadline.is_some_and(|deadline| recent.job.least_response() > deadline),
        };
        let counts = |of: &Distribution| -> Counts { of.values() };
        Details {
            task,
            description,
            causes,
            response: counts(&self.response.distribution),
            cost: counts(&self.cost.distribution),
            lateness: counts(&self.lateness),
            jobs: self.recent.iter().rev().map(line).collect(),
        }
    }
}

/// How long after the last point of the grid.
fn on_grid(periodic: &Periodic, release: Instant) -> Duration {
    let (numerator, denominator) = match periodic.period_exact {
        Some(exact) if exact.denominator > 0 => (exact.numerator, exact.denominator),
        _ => (periodic.period_ns.ns(), 1),
    };
    let after = i128::from(release.ns()) - i128::from(periodic.offset_ns);
    let scaled = (after * i128::from(denominator)).rem_euclid(i128::from(numerator).max(1));
    Duration::from_ns((scaled / i128::from(denominator)) as u64)
}
