//! What a live view shows of an observation under way: for each thread its recent jobs, seconds and
//! distributions, and now and then its model.
//!
//! Records and times in, values out; only [`Live::explain`] asks the observation. Memory is bounded:
//! [`Thread`](thread::Thread) keeps a fixed number of jobs and seconds, and threads that have ended are
//! forgotten after a while. Not for keys and terminals: [`crate::top`].

mod late;
mod thread;
mod view;

pub use view::{Action, Event, Key, View};

use crate::bounds::Bounds;
use crate::models::{self, Observed};
use crate::platform;
use crate::why::Explainer;
use punctual_conformance::{Contract, ContractTask, Locate, Matcher};
use punctual_extract::{Extractor, OpenJob};
use punctual_model::causes::{Causes, Limit};
use punctual_model::{Duration, Instant, Platform, Task, TimingModel};
use punctual_observe::Observer;
use punctual_report::live::{Details, Head, LiveTask};
use punctual_trace::{Glance, Record, TaskRecord, Totals};
use rustc_hash::{FxHashMap, FxHashSet};
use thread::Thread;

/// For how long a thread that has ended stays on the screen.
const REMEMBERED: Duration = Duration::from_ms(10_000);
/// Most threads that have ended on the screen.
const MOST_ENDED: usize = 100;
/// Most models made at a time, so that refreshing takes no longer the more threads there are.
const MOST_SKETCHES: usize = 50;

/// What was agreed on for threads, such as a contract. Whatever it says goes before what was observed.
pub trait Agreement: Send {
    /// The deadline of the jobs of a thread, counted from their arrival. Its control group is known only if
    /// the agreement asks for it.
    fn deadline(&self, thread: &TaskRecord, cgroup: Option<&str>) -> Option<Duration>;

    /// Whether it depends on control groups.
    fn asks_for_groups(&self) -> bool {
        false
    }

    /// What kind of limit its deadlines are.
    fn kind(&self) -> Limit {
        Limit::Contract
    }

    /// Whether the longest jobs are late where there is no other limit.
    fn or_longest(&self) -> bool {
        false
    }
}

/// Nothing was agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAgreement;

impl Agreement for NoAgreement {
    fn deadline(&self, _: &TaskRecord, _: Option<&str>) -> Option<Duration> {
        None
    }
}

/// The deadlines of a contract, by task.
pub struct Contracted(Vec<(Matcher, Option<Duration>)>);

impl Contracted {
    /// A task's deadline, or the response time that was agreed on where that is less.
    pub fn new(contract: &Contract) -> Contracted {
        let deadline = |task: &ContractTask| {
            let agreed = [task.deadline, task.response].into_iter().flatten().min();
            (Matcher::new(&task.pattern()), agreed)
        };
        Contracted(contract.tasks.iter().map(deadline).collect())
    }
}

impl Agreement for Contracted {
    /// That of the first task to which the thread belongs, as in a check.
    fn deadline(&self, thread: &TaskRecord, cgroup: Option<&str>) -> Option<Duration> {
        let is_meant = |threads: &Matcher| threads.means(&thread.name, &thread.command, cgroup);
        self.0.iter().find(|(threads, _)| is_meant(threads))?.1
    }

    fn asks_for_groups(&self) -> bool {
        self.0.iter().any(|(threads, _)| threads.asks_for_group())
    }
}

/// An observation under way.
pub struct Live {
    extractor: Extractor,
    threads: FxHashMap<u32, Thread>,
    /// Threads that have ended, the last one last.
    ended: Vec<Ended>,
    /// Whether the late jobs of threads that ended long ago are kept, too.
    keeps_causes: bool,
    agreement: Box<dyn Agreement>,
    /// What finds the control group of a process, if the agreement asks for it.
    locate: Option<Locate>,
    /// The control groups of threads.
    groups: FxHashMap<u32, String>,
    /// The names of threads that have changed theirs; the extractor takes them with the next job.
    renamed: FxHashMap<u32, String>,
    /// Explains late jobs, if that was asked for.
    explainer: Option<Explainer>,
    bounds: Bounds,
    /// The names of threads that have a bound.
    bounded: FxHashSet<String>,
    from: Instant,
    records: u64,
    totals: Totals,
}

struct Ended {
    at: Instant,
    thread: Thread,
    about: TaskRecord,
    /// Its number, if late jobs are explained.
    explained: Option<u32>,
}

impl Live {
    /// Nothing has been seen yet.
    pub fn new(options: punctual_extract::Options, agreement: Box<dyn Agreement>) -> Live {
        Live {
            extractor: Extractor::new(options),
            threads: FxHashMap::default(),
            ended: Vec::new(),
            keeps_causes: false,
            agreement,
            locate: None,
            groups: FxHashMap::default(),
            renamed: FxHashMap::default(),
            explainer: None,
            bounds: Bounds::default(),
            bounded: FxHashSet::default(),
            from: Instant::from_ns(0),
            records: 0,
            totals: Totals::default(),
        }
    }

    /// With what was proven of threads, by their names.
    pub fn with_bounds(self, bounds: Bounds) -> Live {
        Live { bounds, ..self }
    }

    /// The names of which something was proven, if there was no thread of any of them.
    pub fn without_threads(&self) -> Vec<String> {
        let mut names: Vec<String> = self.bounds.names().map(str::to_owned).collect();
        names.sort_unstable();
        if self.bounded.is_empty() { names } else { Vec::new() }
    }

    /// Late jobs of threads that ended long ago are kept, and so many of the worst of each thread.
    pub fn keeping_causes(&mut self, worst: usize) {
        self.keeps_causes = true;
        self.explainer = self.explainer.take().map(|explainer| explainer.with_all(worst));
    }

    /// Why jobs were late.
    pub fn into_causes(self) -> Causes {
        self.explainer.map(|explainer| explainer.finish(&mut |_| {})).unwrap_or_default()
    }

    /// The number of jobs so far, and of late ones that are explained.
    pub fn jobs(&self) -> (u64, u64) {
        (self.extractor.progress().jobs, self.explainer.as_ref().map_or(0, Explainer::late_jobs))
    }

    /// With what finds the control groups of processes; a thread's is looked up when it appears.
    pub fn locating(self, locate: Locate) -> Live {
        let locate = Some(locate).filter(|_| self.agreement.asks_for_groups());
        Live { locate, ..self }
    }

    /// The line of a thread.
    fn line(&self, thread: &Thread, about: &TaskRecord, now: Instant, has_ended: bool) -> LiveTask {
        LiveTask { bound: self.bounds.of(&about.name), ..thread.line(about, now, has_ended) }
    }

    /// The observation begins. Late jobs can be explained if the kernel keeps the switches of all threads.
    pub fn begin(&mut self, from: Instant, explains: bool) {
        self.from = from;
        self.explainer = explains.then(|| Explainer::start(from, true));
    }

    /// Whether late jobs are explained.
    pub fn explains(&self) -> bool {
        self.explainer.is_some()
    }

    /// Explains late jobs that have ended.
    pub fn explain(&mut self, observer: &Observer, is_last: bool) {
        if let Some(explainer) = &mut self.explainer {
            explainer.turn(observer, is_last, &mut |_| {});
        }
    }

    /// The counters so far.
    pub fn count(&mut self, records: u64, totals: Totals) {
        (self.records, self.totals) = (records, totals);
    }

    /// Takes a record.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Exit { tid, sequence, at } => self.end(*tid, *at, Some(*sequence)),
            // Its number is used again although its end was not seen.
            Record::Task(task) if task.begin == punctual_trace::Begin::Seen => {
                self.end(task.tid, task.at, None)
            }
            Record::Activation(activation) => {
                self.threads.entry(activation.tid).or_default().activation(activation);
            }
            _ => {}
        }
        let Live { extractor, threads, explainer, keeps_causes, .. } = self;
        extractor.record_jobs(record, &mut |seen| {
            let thread = threads.entry(seen.tid).or_default();
            let is_another = thread.phase() != seen.phase;
            let counts = thread.job(seen);
            if let Some(explainer) = explainer {
                if is_another && *keeps_causes {
                    explainer.retire(seen.tid);
                    explainer.limit(seen.tid, seen.name, thread.limit());
                }
                if counts {
                    explainer.job(seen.tid, seen);
                }
            }
        });
        if let Some(explainer) = explainer {
            explainer.record(record);
        }
        if let Record::Task(task) | Record::Known(task) = record {
            threads.entry(task.tid).or_default().begin();
            if self.bounds.of(&task.name).is_some() && !self.bounded.contains(&*task.name) {
                self.bounded.insert(task.name.to_string());
            }
            self.find_group(task);
        }
        match record {
            Record::Task(task) | Record::Known(task) => _ = self.renamed.remove(&task.tid),
            Record::Renamed { tid, name, .. } => _ = self.renamed.insert(*tid, name.clone()),
            Record::Command { .. } => {}
            _ => return,
        }
        self.agree(record.tid());
    }

    /// Finds what was agreed on for a thread, before its jobs come.
    fn agree(&mut self, tid: u32) {
        let Live { extractor, threads, agreement, groups, renamed, explainer, .. } = self;
        let (Some(thread), Some((_, about))) = (threads.get_mut(&tid), extractor.about(tid)) else { return };
        let name = renamed.get(&tid).unwrap_or(&about.name);
        let about = &TaskRecord { name: name.clone(), ..about.clone() };
        let deadline = agreement.deadline(about, groups.get(&tid).map(String::as_str));
        thread.agree(deadline.map(|it| (agreement.kind(), it)), agreement.or_longest(), about);
        if let Some(explainer) = explainer {
            explainer.limit(tid, &about.name, thread.limit());
        }
    }

    /// Looks at the threads that may never wait, of which there are no records.
    pub fn look(&mut self, glance: impl Fn(u32) -> Option<Glance>) {
        for (tid, thread) in self.threads.iter_mut().filter(|(_, thread)| thread.may_be_busy()) {
            if let Some(glance) = glance(*tid) {
                thread.glance(&glance);
            }
        }
    }

    fn find_group(&mut self, task: &TaskRecord) {
        let Live { locate: Some(locate), groups, .. } = self else { return };
        if !groups.contains_key(&task.tid) {
            groups.extend(locate(task.pid).map(|group| (task.tid, group)));
        }
    }

    /// A thread has ended. If its end was seen, `sequence` is the number of that record.
    fn end(&mut self, tid: u32, at: Instant, sequence: Option<u32>) {
        self.groups.remove(&tid);
        self.renamed.remove(&tid);
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        let Some((_, about)) = self.extractor.about(tid) else { return };
        if let Some(sketch) = self.extractor.sketch(tid, at) {
            thread.learn(sketch, at);
        }
        if let Some(explainer) = &mut self.explainer {
            explainer.limit(tid, &about.name, thread.limit());
            if let Some((next, open)) = self.extractor.open_jobs(tid) {
                // What lacks records is not known to be open.
                let is_job = |open: &OpenJob| {
                    sequence == Some(next) && thread.separator() == Some(open.separator.key())
                };
                open.filter(is_job).for_each(|open| explainer.cut_off(tid, at, &open));
            }
        }
        let name = thread.model().map_or_else(|| about.name.clone(), |task| task.name.clone());
        let explained = self.explainer.as_mut().map(|explainer| explainer.retire(tid));
        self.ended.push(Ended { at, thread, about: TaskRecord { name, ..about.clone() }, explained });
        if self.ended.len() > MOST_ENDED {
            self.forget(1);
        }
    }

    /// Forgets the first threads that ended.
    fn forget(&mut self, count: usize) {
        let forgotten = self.ended.drain(..count).filter_map(|ended| ended.explained);
        if let Some(explainer) = self.explainer.as_mut().filter(|_| !self.keeps_causes) {
            forgotten.for_each(|number| explainer.forget(number));
        }
    }

    /// Makes new models of threads that need one, and forgets threads that ended long ago.
    pub fn refresh(&mut self, now: Instant) {
        self.forget(self.ended.iter().take_while(|ended| now.since(ended.at) >= REMEMBERED).count());
        let Live { extractor, threads, explainer, .. } = self;
        let mut due: Vec<(Instant, u32)> = threads
            .iter()
            .filter(|(_, thread)| thread.needs_model(now))
            .map(|(tid, thread)| (thread.learned(), *tid))
            .collect();
        if due.len() > MOST_SKETCHES {
            due.select_nth_unstable(MOST_SKETCHES);
            due.truncate(MOST_SKETCHES);
        }
        for (_, tid) in due {
            let about = extractor.about(tid).map(|(_, about)| about);
            if let (Some(thread), Some(about)) = (threads.get_mut(&tid), about) {
                if let Some(sketch) = extractor.sketch(tid, now) {
                    thread.learn(sketch, now);
                    if let Some(explainer) = explainer {
                        explainer.limit(tid, &about.name, thread.limit());
                    }
                }
            }
        }
    }

    /// What the head of the screen says.
    pub fn head(&self, target: &str, now: Instant) -> Head {
        let progress = self.extractor.progress();
        Head {
            target: target.to_owned(),
            observed: now.since(self.from),
            threads: progress.threads as u64,
            jobs: progress.jobs,
            lost: self.totals.lost,
            untracked: self.totals.untracked,
            is_frozen: false,
            has_ended: false,
        }
    }

    /// A line for each thread, in no order.
    pub fn tasks(&self, now: Instant) -> Vec<LiveTask> {
        let alive = self.threads.iter().filter_map(|(tid, thread)| {
            let (_, about) = self.extractor.about(*tid)?;
            Some(self.line(thread, about, now, false))
        });
        let ended = self.ended.iter().map(|ended| self.line(&ended.thread, &ended.about, now, true));
        alive.chain(ended).collect()
    }

    /// Everything about one thread, described in lines of this width.
    pub fn details(&self, tid: u32, now: Instant, width: u16) -> Option<Details> {
        let (thread, about, number, has_ended) = match (self.threads.get(&tid), self.extractor.about(tid)) {
            (Some(thread), Some((_, about))) => (thread, about, Some(tid), false),
            _ => {
                let ended = self.ended.iter().rev().find(|ended| ended.about.tid == tid)?;
                (&ended.thread, &ended.about, ended.explained, true)
            }
        };
        let late = self.explainer.as_ref().zip(number).and_then(|(it, number)| it.late(number));
        let task = match has_ended {
            false => Task { busy_ns: thread.busy(), ..self.extractor.so_far(tid, now)? },
            true => thread.model()?.clone(),
        };
        let model = models::of_tasks(vec![task], 0, Vec::new(), self.observed(Platform::default(), now));
        let description = punctual_report::live::description(&model, width);
        let causes = self.explainer.is_some().then(|| {
            let tasks = late.into_iter().collect();
            let causes = Causes { from_ns: self.from, until_ns: now, lacks: Vec::new(), tasks };
            punctual_report::live::causes(&causes, width)
        });
        let line = self.line(thread, about, now, has_ended);
        Some(thread.details(line, description, causes, self.from))
    }

    /// The timing model so far: what [`extract`](crate::extract::extract) would return if it ended now.
    pub fn model(&self, platform: Platform, now: Instant) -> TimingModel {
        let omitted = self.extractor.progress().omitted;
        models::of_tasks(
            self.extractor.tasks(now),
            omitted,
            self.extractor.clock_steps().to_vec(),
            self.observed(platform, now),
        )
    }

    fn observed(&self, platform: Platform, now: Instant) -> Observed {
        Observed {
            platform,
            clock: platform::CLOCK.into(),
            from: self.from,
            until: now,
            records: self.records,
            totals: self.totals,
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
