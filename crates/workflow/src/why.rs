//! Why jobs were late, from a recording with switches.
//!
//! The recording is read three times: for its models, which say where jobs end and what is usual; for its
//! late jobs; and for what all threads did while those lasted. Not for what a part of a job's time is:
//! `causes` has that.

mod events;

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::monitor::{Monitor, Unit};
use crate::recording::{Recording, TimeRange};
use crate::replay::{self, Primaries, TaskKey, each_job, key_of, task_of};
use events::Events;
use punctual_causes::{Collector, Explanation, Job, Usual};
use punctual_extract::{JobSeen, Options as ExtractOptions, StreamOptions};
use punctual_model::{Duration, Instant, Stream, Task};
use punctual_report::why::{LateTask, Limit, Who, Why};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Which jobs to explain.
pub struct Options {
    /// A folder with a recording.
    pub recording: PathBuf,
    /// Which part of it.
    pub range: TimeRange,
    /// Whose jobs.
    pub threads: ThreadFilter,
    /// Those that took longer than this; by default, than the period of their task.
    pub longer_than: Option<std::time::Duration>,
    /// How many to show one by one, of each task.
    pub worst: usize,
    /// The number of workers that make the models.
    pub workers: NonZeroUsize,
}

/// Explains the late jobs of a recording.
pub fn why(options: &Options, monitor: &dyn Monitor) -> Result<Why> {
    let recording = Recording::open(&options.recording, &options.range)?;
    require_switches(&recording)?;
    let models = ExtractOptions {
        stream: StreamOptions { curve_horizon: 1, wcet_horizon: 1, ..StreamOptions::default() },
        merge_transitions: false,
    };
    let mut model = replay::model(std::slice::from_ref(&recording), &models, options.workers, monitor)?;
    recording.report_problems(monitor);
    options.threads.select(&mut model, "the recording")?;
    let mut choice = Choice::new(model.tasks(), options);
    let progress = monitor.begin("finding late jobs", recording.activations(), Unit::Activations);
    each_job(recording.stopped_by(monitor), false, &*progress, |_| {}, |seen| choice.job(seen))?;
    drop(progress);
    choice.explain(&recording, monitor)
}

/// Without switches nothing can be said of a job but how long it took.
fn require_switches(recording: &Recording) -> Result<()> {
    let about = recording.about();
    let path = recording.path().display();
    if about.latency {
        return Err(Error::usage(format!("{path} has no jobs"))
            .because("it is a measurement of scheduling latency")
            .advise("punctual latency --from-recording shows its causes"));
    }
    if about.switches {
        return Ok(());
    }
    Err(Error::usage(format!("{path} cannot say why jobs were late"))
        .because("it has no switches: nothing is known of what other threads did")
        .advise("record with --detail switches --all-threads"))
}

/// Late jobs as they are found.
struct Choice {
    tasks: HashMap<TaskKey, Chosen>,
    primaries: Primaries,
    late: Vec<(TaskKey, Job, bool)>,
}

/// A task whose jobs are looked at.
struct Chosen {
    order: usize,
    late: LateTask,
    previous_end: Option<Instant>,
}

impl Choice {
    fn new(tasks: &[Task], options: &Options) -> Choice {
        let in_ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let longer_than = options.longer_than.map(|time| Duration::from_ns(in_ns(time)));
        let chosen = |(order, task): (usize, &Task)| {
            let stream = task.streams.get(task.primary?)?;
            let limit = limit(stream, longer_than)?;
            let who = Who {
                tid: task.tid,
                name: task.name.clone(),
                policy: Some(task.policy),
                priority: task.priority,
            };
            let late = LateTask::new(who, stream.jobs, limit, usual(stream), options.worst);
            Some((key_of(task), Chosen { order, late, previous_end: None }))
        };
        Choice {
            tasks: tasks.iter().enumerate().filter_map(chosen).collect(),
            primaries: Primaries::new(tasks),
            late: Vec::new(),
        }
    }

    fn job(&mut self, seen: &JobSeen<'_>) {
        let key = task_of(seen);
        let Some(task) = self.tasks.get_mut(&key).filter(|_| self.primaries.is_primary(seen)) else { return };
        let job = seen.job;
        let previous_end = task.previous_end.replace(job.end);
        if job.response() > task.late.limit.time() {
            let begin = job.release.arrival.unwrap_or(job.release.window.earliest());
            let (thread, number) = (seen.tid, seen.number);
            let job = Job {
                thread,
                number,
                begin,
                previous_end,
                release: Some(job.release.window),
                start: job.start,
                end: job.end,
                cost: Some(job.cost),
            };
            self.late.push((key, job, seen.job.release.arrival.is_some()));
        }
    }

    /// Reads the recording for what all threads did while late jobs lasted.
    fn explain(mut self, recording: &Recording, monitor: &dyn Monitor) -> Result<Why> {
        // A thread has one job at a time.
        let late: HashMap<(u32, Instant), (TaskKey, bool)> = self
            .late
            .iter()
            .map(|(key, job, has_arrival)| ((job.thread, job.end), (*key, *has_arrival)))
            .collect();
        let jobs = self.late.iter().map(|(_, job, _)| *job).collect();
        let tasks = &mut self.tasks;
        let mut explained = |explanation: Explanation, who: &dyn Fn(u32) -> Who| {
            let job = &explanation.job;
            let Some((key, has_arrival)) = late.get(&(job.thread, job.end)) else { return };
            if let Some(task) = tasks.get_mut(key) {
                task.late.add(explanation, *has_arrival, who);
            }
        };
        let progress = monitor.begin("explaining late jobs", recording.activations(), Unit::Activations);
        let (mut events, mut activations) = (Events::default(), 0_u64);
        let mut collector = Collector::new(jobs, recording.from());
        recording.stopped_by(monitor).read_all(&mut |record| {
            if let Some(event) = events.of(record) {
                collector.event(event, &mut |explanation| explained(explanation, &|tid| events.who(tid)));
            }
            if matches!(record, punctual_trace::Record::Activation(_)) {
                activations += 1;
                if activations % 65_536 == 0 {
                    progress.set(activations);
                }
            }
        })?;
        collector.finish(&mut |explanation| explained(explanation, &|tid| events.who(tid)));
        drop(progress);
        let lacks = events.lacks();
        Ok(self.result(lacks, recording.from()))
    }

    fn result(self, lacks: Vec<String>, from: Instant) -> Why {
        let mut tasks: Vec<Chosen> = self.tasks.into_values().collect();
        tasks.sort_by_key(|task| task.order);
        let all = tasks.len();
        let tasks: Vec<LateTask> =
            tasks.into_iter().map(|task| task.late).filter(|task| task.late() > 0).collect();
        Why { punctual: (all - tasks.len()) as u64, tasks, lacks, from }
    }
}

/// Which jobs of a stream are late. `None` if it has too few to say.
fn limit(stream: &Stream, longer_than: Option<Duration>) -> Option<Limit> {
    if let Some(given) = longer_than {
        return Some(Limit::Given(given));
    }
    let period = stream.arrival.periodic.as_ref();
    let longest = || stream.percentiles.as_ref()?.response.as_ref().map(|response| response.p99_ns);
    match period {
        Some(periodic) => Some(Limit::Period(periodic.period_ns)),
        None => longest().map(Limit::Longest),
    }
}

/// What half of the jobs of a stream do not exceed.
fn usual(stream: &Stream) -> Usual {
    let cost = stream.percentiles.as_ref().and_then(|it| it.cost.as_ref()).map(|cost| cost.p50_ns);
    Usual { cost: cost.unwrap_or_default(), suspended: Duration::ZERO }
}
