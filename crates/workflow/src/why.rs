//! Why jobs were late, from a recording with switches.
//!
//! The recording is read three times: for its models, which say where jobs end and what is usual; for its
//! late jobs; and for what all threads did while those lasted. Not for what a part of a job's time is:
//! `causes` has that.

mod events;
mod kept;
mod live;
mod watch;

pub(crate) use live::Explainer;
pub use watch::{can_watch, watch};

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::import::{self, Temporary};
use crate::monitor::{Monitor, Unit};
use crate::recording::{Recording, TimeRange};
use crate::replay::{self, Primaries, TaskKey, each_job, key_of, task_of};
use events::Events;
use punctual_causes::{Collector, Explanation, Job, Loss, Thread, add, finish};
use punctual_conformance::{Contract, ContractTask, Matcher};
use punctual_extract::{Extractor, JobSeen, OpenJob, Options as ExtractOptions, StreamOptions};
use punctual_model::causes::{Causes, Lack, LateTask, Limit};
use punctual_model::{Disturbance, Duration, Instant, Stream, Task, TimingModel};
use punctual_report::visible;
use punctual_trace::{About, Record, Step};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What to explain.
pub struct Options {
    /// A folder with a recording, or the trace of another tool.
    pub recording: PathBuf,
    /// Which part of it.
    pub range: TimeRange,
    /// Which jobs, and how.
    pub choice: Choice,
}

/// Which jobs to explain, and how.
#[derive(Clone)]
pub struct Choice {
    /// Whose jobs.
    pub threads: ThreadFilter,
    /// Which of these.
    pub jobs: Jobs,
    /// How many to show one by one, of each task.
    pub worst: usize,
    /// How precise the models of the threads are.
    pub stream: StreamOptions,
    /// The number of workers that make the models.
    pub workers: NonZeroUsize,
}

/// Which jobs of a thread to explain.
#[derive(Clone, Debug)]
pub enum Jobs {
    /// Those that took longer than the period of their task; of a task without a period, the longest 1 %.
    Late,
    /// Those that took longer than this.
    LongerThan(std::time::Duration),
    /// Those that missed the deadline of a contract, or its limit for response times; of tasks that have
    /// neither, as [`Jobs::Late`].
    Agreed(Box<Contract>),
    /// The one with this number.
    Numbered(u64),
    /// All.
    All,
}

/// Explains the late jobs of a recording: its timing model, with the section `causes`.
pub fn why(options: &Options, monitor: &dyn Monitor) -> Result<TimingModel> {
    let (recording, imported) = open(options, monitor)?;
    let model = explain(&recording, &options.choice, monitor)?;
    recording.report_problems(monitor);
    // Those of the import have been told.
    if imported.is_none() {
        recording.report_notes(monitor);
    }
    Ok(model)
}

/// The same, of a recording that is open.
pub(crate) fn explain(recording: &Recording, options: &Choice, monitor: &dyn Monitor) -> Result<TimingModel> {
    require_switches(recording)?;
    let models = ExtractOptions { stream: options.stream, merge_transitions: false };
    let mut model = replay::model(std::slice::from_ref(recording), &models, options.workers, monitor)?;
    options.threads.select(&mut model, "the recording")?;
    let mut tasks = model.tasks().to_vec();
    options.jobs.end_as_agreed(&mut tasks)?;
    let late = RefCell::new(LateJobs::new(&tasks, options));
    let progress = monitor.begin("finding late jobs", recording.activations(), Unit::Activations);
    let mut shows = Shows::default();
    let (mut losses, mut processors) = (Vec::new(), BTreeSet::new());
    let see = |record: &Record, extractor: &Extractor| {
        shows.see(record);
        late.borrow_mut().cut_off(record, extractor);
        if let Record::Switch(switch) = record {
            processors.insert(switch.cpu);
        }
        if let Record::Lost { since, until } = *record {
            losses.push(Loss { since, until });
        }
    };
    each_job(recording.stopped_by(monitor), false, &*progress, see, |seen| late.borrow_mut().job(seen))?;
    drop(progress);
    shows.hides_processors = hides_processors(recording.about(), &processors);
    let tasks = late.into_inner().explain(recording, shows, losses, monitor)?;
    let until_ns = model.threads.as_ref().map_or(recording.from(), |threads| threads.until_ns);
    let mut causes = Causes { from_ns: recording.from(), until_ns, lacks: shows.lacks(), tasks };
    causes.sort();
    model.causes = Some(causes);
    Ok(model)
}

/// What a recording shows besides the switches of watched threads.
#[derive(Clone, Copy, Default)]
struct Shows {
    other_threads: bool,
    interrupts: bool,
    /// Whether threads may have run on processors of which it has nothing.
    hides_processors: bool,
}

impl Shows {
    fn see(&mut self, record: &Record) {
        match record {
            Record::Bystander(_) => self.other_threads = true,
            Record::Switch(switch) => self.interrupts |= matches!(switch.step, Step::Taken { .. }),
            _ => {}
        }
    }

    /// What the recording does not tell apart.
    fn lacks(self) -> Vec<Lack> {
        let others = (!self.other_threads).then_some(Lack::OtherThreads);
        let interrupts = (!self.interrupts).then_some(Lack::Interrupts);
        others.into_iter().chain(interrupts).collect()
    }
}

/// Whether a recording may lack some processors. One of our own has all; on those without an event nobody
/// else ran. Other tools can be set to record some only.
fn hides_processors(about: &About, seen: &BTreeSet<u32>) -> bool {
    !about.source.starts_with("punctual") && seen.len() < about.platform.cpus as usize
}

/// Opens a recording, or imports the trace of another tool for the moment.
fn open(options: &Options, monitor: &dyn Monitor) -> Result<(Recording, Option<Temporary>)> {
    let source = &options.recording;
    if !source.is_file() && !import::is_foreign(source) {
        return Ok((Recording::open(source, &options.range)?, None));
    }
    let imported = import::for_the_moment(source, &options.choice.threads, false, monitor);
    let imported = imported.map_err(|error| match source.is_file() && is_program(source) {
        true => error.advise(format!("to watch a program: punctual why -- {}", source.display())),
        false => error,
    })?;
    let recording = imported.recording().ok_or_else(|| {
        let source = source.display();
        Error::file(format!("{source} has no events of the kernel"))
            .because("it is a trace of ROS 2 alone")
            .advise(format!("punctual chains {source} shows its chains"))
    })?;
    Ok((Recording::open(recording, &options.range)?.called(source), Some(imported)))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
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
struct LateJobs {
    tasks: HashMap<TaskKey, Chosen>,
    primaries: Primaries,
    /// Only the job with this number.
    number: Option<u64>,
    /// How many of a task's jobs to keep.
    worst: usize,
    /// One for each thread, policy and priority: several tasks of a thread are shown together.
    late: Vec<LateTask>,
    jobs: Vec<(usize, Job, bool)>,
}

/// A task whose jobs are looked at.
struct Chosen {
    /// Its place among the late ones.
    place: usize,
    limit: Limit,
    limit_ns: Duration,
    previous_end: Option<Instant>,
}

impl LateJobs {
    fn new(tasks: &[Task], options: &Choice) -> LateJobs {
        let number = match options.jobs {
            Jobs::Numbered(number) => Some(number),
            _ => None,
        };
        let primaries = Primaries::new(tasks);
        let (late, jobs) = (Vec::new(), Vec::new());
        let worst = options.worst;
        let mut all = LateJobs { tasks: HashMap::new(), primaries, number, worst, late, jobs };
        for task in tasks {
            let Some(stream) = task.primary.and_then(|primary| task.streams.get(primary)) else { continue };
            let Some((limit, limit_ns)) = options.jobs.limit(task, stream) else { continue };
            let Task { tid, policy, priority, .. } = *task;
            let (jobs, usual_cost_ns) = (stream.jobs, usual_cost(stream));
            let late = LateTask::new(task.name.clone(), limit, limit_ns);
            let place = all.place(LateTask { tid, policy, priority, jobs, usual_cost_ns, ..late });
            all.tasks.insert(key_of(task), Chosen { place, limit, limit_ns, previous_end: None });
        }
        all
    }

    /// The place of a task: that of an earlier one of the same thread. What is usual, and which jobs are
    /// late, is then shown as of the one with most jobs.
    fn place(&mut self, task: LateTask) -> usize {
        let who = |it: &LateTask| (it.tid, it.policy, it.priority);
        let same = |known: &LateTask| who(known) == who(&task) && known.task == task.task;
        match self.late.iter().position(same) {
            Some(place) => {
                let known = &mut self.late[place];
                let jobs = known.jobs + task.jobs;
                if task.jobs > known.jobs {
                    *known = task;
                }
                known.jobs = jobs;
                place
            }
            None => {
                self.late.push(task);
                self.late.len() - 1
            }
        }
    }

    fn job(&mut self, seen: &JobSeen<'_>) {
        let task = self.tasks.get_mut(&task_of(seen)).filter(|_| self.primaries.is_primary(seen));
        let Some(task) = task else { return };
        let job = seen.job;
        let previous_end = task.previous_end.replace(job.end);
        // Where the release is not known exactly, only what is certainly late.
        let is_chosen = match task.limit {
            Limit::None => self.number.is_none_or(|number| number == seen.number),
            _ => job.least_response() > task.limit_ns,
        };
        let is_perhaps = !is_chosen && task.limit != Limit::None && job.response() > task.limit_ns;
        self.late[task.place].perhaps += u64::from(is_perhaps);
        if is_chosen {
            self.jobs.push((task.place, job_of(seen, previous_end), job.release.arrival.is_some()));
        }
    }

    /// If a thread ends, notes its job that has not, if that is late so far.
    fn cut_off(&mut self, record: &Record, extractor: &Extractor) {
        let Record::Exit { tid, sequence, at } = *record else { return };
        let (Some((phase, about)), Some((next, open))) = (extractor.about(tid), extractor.open_jobs(tid))
        else {
            return;
        };
        let key = (about.pid, tid, phase, about.at);
        let Some(task) = self.tasks.get(&key) else { return };
        // What lacks records is not known to be open.
        let open = open.filter(|open| next == sequence && self.primaries.is_at(&key, open.separator));
        let times = open.filter_map(|open| time_until(at, &open));
        let longest = times.filter(|time| task.limit != Limit::None && *time > task.limit_ns).max();
        let known = &mut self.late[task.place].cut_off_ns;
        *known = longest.max(*known);
    }

    /// Reads the recording for what all threads did while late jobs lasted.
    /// Without the switches of others, who had a processor is unknown where no watched thread had it.
    fn explain(
        self,
        recording: &Recording,
        shows: Shows,
        losses: Vec<Loss>,
        monitor: &dyn Monitor,
    ) -> Result<Vec<LateTask>> {
        let LateJobs { mut late, jobs, number, worst, .. } = self;
        // A thread has one job at a time.
        let places: HashMap<(u32, Instant), (usize, bool)> =
            jobs.iter().map(|(place, job, arrives)| ((job.thread, job.end), (*place, *arrives))).collect();
        let jobs = jobs.into_iter().map(|(_, job, _)| job).collect();
        let mut explained = |explanation: Explanation, who: &dyn Fn(u32) -> Thread| {
            let job = &explanation.job;
            if let Some((place, arrives)) = places.get(&(job.thread, job.end)) {
                add(&mut late[*place], worst, &explanation, *arrives, who);
            }
        };
        let progress = monitor.begin("explaining late jobs", recording.activations(), Unit::Activations);
        let (mut events, mut activations) = (Events::default(), 0_u64);
        let collector = Collector::new(jobs, recording.from()).with_losses(losses);
        let collector = if shows.other_threads { collector } else { collector.partial() };
        let mut collector = if shows.hides_processors { collector.of_some_processors() } else { collector };
        recording.stopped_by(monitor).read_all(&mut |record| {
            events.of(record, &mut |event| collector.event(event));
            collector.explain(&mut |explanation| explained(explanation, &|tid| events.who(tid)));
            if matches!(record, Record::Activation(_)) {
                activations += 1;
                if activations % 65_536 == 0 {
                    progress.set(activations);
                }
            }
        })?;
        collector.finish(&mut |explanation| explained(explanation, &|tid| events.who(tid)));
        drop(progress);
        if let (Some(number), true) = (number, late.iter().all(|task| task.late == 0)) {
            return Err(Error::usage(format!("no thread has a job {number}"))
                .advise("jobs count from 0; punctual jobs lists them"));
        }
        late.iter_mut().for_each(|task| finish(task, worst));
        Ok(late)
    }
}

/// How long a job had taken at the end of its thread. Whoever ends a thread releases no job.
fn time_until(end: Instant, open: &OpenJob) -> Option<Duration> {
    let since = open.release.arrival.unwrap_or(open.release.window.latest());
    (open.disturbance != Some(Disturbance::Ending)).then(|| end.since(since))
}

/// A job to explain; the one before it ended at `previous_end`.
fn job_of(seen: &JobSeen<'_>, previous_end: Option<Instant>) -> Job {
    let release = seen.job.release;
    Job {
        thread: seen.tid,
        phase: seen.phase,
        number: seen.number,
        begin: release.arrival.unwrap_or(release.window.earliest()),
        previous_end,
        release: Some(release.window),
        start: seen.job.start,
        end: seen.job.end,
        cost: Some(seen.job.cost),
    }
}

impl Jobs {
    /// Lets the jobs of tasks end where a contract says.
    fn end_as_agreed(&self, tasks: &mut [Task]) -> Result<()> {
        let Jobs::Agreed(contract) = self else { return Ok(()) };
        for task in &mut *tasks {
            let Some(agreed) = agreed(contract, task) else { continue };
            task.primary = agreed.stream_of(task);
            // A phase may be too short for a job.
            let has_jobs = task.streams.iter().any(|stream| stream.jobs > 0);
            if let (None, Some(separator), true) = (task.primary, &agreed.separator, has_jobs) {
                let problem =
                    format!("thread {} ({}) has no job that ends at {separator}", task.name, task.tid);
                return Err(Error::usage(problem).advise("punctual show --task lists its separators"));
            }
        }
        if !tasks.iter().any(|task| agreed(contract, task).is_some()) {
            let names: Vec<_> = contract.tasks.iter().map(|task| visible(&task.name)).collect();
            let problem = format!("no thread belongs to a task of the contract ({})", names.join(", "));
            return Err(
                Error::target(problem).advise("tasks name threads; thread = { … } chooses them otherwise")
            );
        }
        Ok(())
    }

    /// Which jobs of a task's stream to explain: those later than this. `None` if it has too few to say.
    fn limit(&self, task: &Task, stream: &Stream) -> Option<(Limit, Duration)> {
        let period = stream.arrival.periodic.as_ref().map(|periodic| (Limit::Period, periodic.period_ns));
        let longest = || Some((Limit::Longest, stream.percentiles.as_ref()?.response.as_ref()?.p99_ns));
        let late = || period.or_else(longest);
        match self {
            Jobs::Late => late(),
            Jobs::LongerThan(time) => {
                let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                Some((Limit::Given, Duration::from_ns(ns)))
            }
            Jobs::Agreed(contract) => {
                let agreed = agreed(contract, task).and_then(|agreed| agreed.deadline.or(agreed.response));
                agreed.map(|time| (Limit::Contract, time)).or_else(late)
            }
            Jobs::Numbered(_) | Jobs::All => Some((Limit::None, Duration::ZERO)),
        }
    }
}

/// What a contract says of a task.
fn agreed<'a>(contract: &'a Contract, task: &Task) -> Option<&'a ContractTask> {
    let means =
        |agreed: &&ContractTask| Matcher::new(&agreed.pattern()).means(&task.name, &task.command, None);
    contract.tasks.iter().find(means)
}

/// The processor time that half of the jobs of a stream do not exceed.
fn usual_cost(stream: &Stream) -> Duration {
    let cost = stream.percentiles.as_ref().and_then(|it| it.cost.as_ref());
    cost.map(|cost| cost.p50_ns).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Platform;

    #[test]
    fn other_tools_may_record_some_processors_only() {
        let hides = |source: &str, cpus: u32| {
            let about = About {
                platform: Platform { kernel: String::new(), machine: String::new(), cpus },
                host: String::new(),
                source: source.to_owned(),
                clock: String::new(),
                clock_zero: None,
                from: Instant::from_ns(0),
                switches: true,
                latency: false,
            };
            hides_processors(&about, &BTreeSet::from([0, 2]))
        };
        assert_eq!([hides("perf 6.1", 3), hides("perf 6.1", 2), hides("perf", 0)], [true, false, false]);
        assert!(!hides("punctual 0.1.0", 3), "it has all");
    }
}
