//! From records of all threads to tasks: follows transitions, losses and ends.

use crate::clock::ClockSteps;
use crate::lane::OpenJob;
use crate::lanes::Lanes;
use crate::run::Run;
use crate::stream::Options as StreamOptions;
use crate::summary::stream::StreamSummary;
use crate::task::{JobSeen, Task};
use punctual_model::{
    self as model, ClockStep, Duration, EndedBy, Instant, Separator, either_list_of_processors,
};
use punctual_trace::{Activation, Begin, Record, TaskRecord};
use rustc_hash::FxHashMap;

/// Most tasks kept, and most if they had jobs. A thread whose priority changes with every job makes a task of
/// each: memory must not grow without end.
const MAX_TASKS: usize = 5_000;
const MAX_TASKS_WITH_JOBS: usize = 10_000;

/// So many changes of affinity in a row end a task. A thread that goes on changing it is one task.
const MOST_MOVES: u32 = 2;

/// What to extract.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Horizons of the curves.
    pub stream: StreamOptions,
    /// Whether a task goes on after any change of policy, priority or affinity.
    pub merge_transitions: bool,
}

/// Progress of an extraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Threads alive.
    pub threads: usize,
    /// Jobs that have ended.
    pub jobs: u64,
    /// Gaps in the records; each ended a task.
    pub gaps: u64,
    /// Tasks dropped because there were too many.
    pub omitted: u64,
    /// Activations of unknown threads: the records that introduce them are missing.
    pub unknown: u64,
    /// Threads whose records had to be read again in a parallel replay ([`crate::replay`]), counted once per
    /// piece.
    pub refed: u64,
}

/// A thread: its current task, and the number that its next record must have.
struct Thread {
    task: Task,
    next: u32,
    /// A new name, not yet applied. An exec renames first and is reported afterwards: then the name belongs
    /// to the next task.
    renamed: Option<String>,
    /// Whether the command line was read in the kernel; read later, it may be that of a later exec.
    command_known: bool,
    /// Changes of affinity in a row that began its last tasks.
    moves: u32,
}

impl Thread {
    fn new(task: Task, next: u32) -> Self {
        Self { task, next, renamed: None, command_known: false, moves: 0 }
    }

    /// Its task as far as it has been observed: with all streams, or with the primary one alone.
    fn so_far(&self, until: Instant, all_streams: bool) -> model::Task {
        let task = match all_streams {
            true => self.task.to_model(until, EndedBy::ObservationEnd),
            false => self.task.sketch(until),
        };
        model::Task { name: self.renamed.clone().unwrap_or(task.name), ..task }
    }

    /// Its task, whose end is in the records.
    fn end(&self, until: Instant, ended_by: EndedBy, summarizes: bool) -> Ended {
        self.ended(self.task.to_whole_model(until, ended_by), summarizes)
    }

    /// Its task, of which later records are missing: the thread may have slept since.
    fn break_off(&self, until: Instant, ended_by: EndedBy, summarizes: bool) -> Ended {
        self.ended(self.task.to_model(until, ended_by), summarizes)
    }

    fn ended(&self, task: model::Task, summarizes: bool) -> Ended {
        let streams = if summarizes { self.task.summaries(&task) } else { Vec::new() };
        Ended { task, streams }
    }

    fn take_name(&mut self) {
        if let Some(name) = self.renamed.take() {
            self.task.about_mut().name = name;
        }
    }
}

/// A task that has ended.
pub struct Ended {
    pub(crate) task: model::Task,
    /// What merges with other runs, if that was asked for.
    pub(crate) streams: Vec<StreamSummary>,
}

impl Ended {
    /// The task.
    pub fn task(&self) -> &model::Task {
        &self.task
    }
}

/// Takes records, in order for each thread, and returns the tasks at the end.
pub struct Extractor {
    options: Options,
    /// Whether tasks are kept with what merges with other runs.
    summarizes: bool,
    threads: FxHashMap<u32, Thread>,
    ended: Vec<Ended>,
    jobs: u64,
    gaps: u64,
    omitted: u64,
    unknown: u64,
    refed: u64,
    clock_steps: ClockSteps,
}

impl Extractor {
    /// An extractor without records.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            summarizes: false,
            threads: FxHashMap::default(),
            ended: Vec::new(),
            jobs: 0,
            gaps: 0,
            omitted: 0,
            unknown: 0,
            refed: 0,
            clock_steps: ClockSteps::default(),
        }
    }

    /// The same, for [`Extractor::finish_summarized`].
    pub fn summarizing(options: Options) -> Self {
        Self { summarizes: true, ..Self::new(options) }
    }

    /// Takes one record.
    pub fn record(&mut self, record: &Record) {
        self.record_jobs(record, &mut |_| {});
    }

    /// Takes one record, and hands out every job that ended with it, even of tasks that are dropped in the
    /// end.
    pub fn record_jobs(&mut self, record: &Record, each: &mut impl FnMut(&JobSeen)) {
        match record {
            Record::Activation(activation) => self.activation(activation, each),
            Record::Task(task) => self.task(task),
            Record::Renamed { tid, sequence, name } => {
                if let Some(thread) = self.expect(*tid, *sequence) {
                    thread.take_name();
                    thread.renamed = Some(name.clone());
                }
            }
            Record::Command { tid, sequence, command } => {
                if let Some(thread) = self.expect(*tid, *sequence) {
                    thread.task.about_mut().command.clone_from(command);
                    thread.command_known = true;
                }
            }
            Record::Busy { tid, sequence, cpu } => self.busy(*tid, *sequence, *cpu),
            Record::ClockSet { at, by_ns } => self.clock_steps.take(*at, *by_ns),
            Record::Exit { tid, sequence, at } => self.end(*tid, *sequence, *at, EndedBy::Exit),
            Record::Last { tid, sequence, at } => self.end(*tid, *sequence, *at, EndedBy::ObservationEnd),
            Record::Known(task) => self.known(task),
            Record::Bystander(_)
            | Record::BystanderExit { .. }
            | Record::Switch(_)
            | Record::Lost { .. }
            | Record::Latency(_)
            | Record::Dispatch(_) => {}
        }
    }

    /// Takes a run of one thread's activations, summed up elsewhere, if that gives the same as one by one;
    /// returns whether it does.
    pub(crate) fn run(&mut self, tid: u32, run: &Run) -> bool {
        let options = self.options.stream;
        let Some(thread) = self.threads.get(&tid) else {
            self.unknown += run.activations;
            return true;
        };
        let is_next = thread.next == run.first;
        let fits = if is_next {
            thread.task.can_append(&run.lanes, &options)
        } else {
            Lanes::new().can_append(&run.lanes, &options)
        };
        if !fits {
            return false;
        }
        if !is_next {
            self.gap(tid, run.first);
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.next = run.next;
            thread.take_name();
            self.jobs += run.jobs + thread.task.append(&run.lanes, &options);
        }
        true
    }

    /// Whether this thread is known.
    pub(crate) fn knows(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Whether every task is kept even if this many more end.
    pub(crate) fn has_room_for(&self, tasks: usize) -> bool {
        self.ended.len() + tasks <= MAX_TASKS
    }

    /// Counts threads whose records of a piece were taken one by one.
    pub(crate) fn count_refed(&mut self, threads: usize) {
        self.refed += threads as u64;
    }

    /// Takes the steps of a clock in the records that follow.
    pub(crate) fn append_clock_steps(&mut self, later: &ClockSteps) {
        self.clock_steps.append(later);
    }

    /// Drops the tasks that have ended: for those who want their jobs only, for however long.
    pub fn forget_ended(&mut self) {
        self.ended.clear();
    }

    /// Steps of `CLOCK_REALTIME` so far, the first ones.
    pub fn clock_steps(&self) -> &[ClockStep] {
        self.clock_steps.all()
    }

    /// Progress so far.
    pub fn progress(&self) -> Progress {
        Progress {
            threads: self.threads.len(),
            jobs: self.jobs,
            gaps: self.gaps,
            omitted: self.omitted,
            unknown: self.unknown,
            refed: self.refed,
        }
    }

    /// The task that a thread is in, as far as it has been observed; `None` for an unknown thread.
    pub fn so_far(&self, tid: u32, until: Instant) -> Option<model::Task> {
        Some(self.threads.get(&tid)?.so_far(until, true))
    }

    /// [`Extractor::so_far`] without streams other than the primary one: enough for a line of a table, and
    /// cheaper where a thread waits in many places.
    pub fn sketch(&self, tid: u32, until: Instant) -> Option<model::Task> {
        Some(self.threads.get(&tid)?.so_far(until, false))
    }

    /// What a thread now is, and the number of its task.
    pub fn about(&self, tid: u32) -> Option<(u32, &TaskRecord)> {
        self.threads.get(&tid).map(|thread| (thread.task.phase(), thread.task.about()))
    }

    /// The key of the primary separator of a thread's current task, by the records so far.
    pub fn primary_key(&self, tid: u32) -> Option<Separator> {
        self.threads.get(&tid)?.task.primary_key()
    }

    /// Whether a thread's current task ends with this record, or ended before it because records are missing.
    pub fn ends_task(&self, record: &Record) -> bool {
        if let Record::Task(task) = record {
            return !self.goes_on(task);
        }
        let (tid, sequence) = match record {
            Record::Activation(activation) => (activation.tid, activation.sequence),
            Record::Renamed { tid, sequence, .. }
            | Record::Command { tid, sequence, .. }
            | Record::Busy { tid, sequence, .. } => (*tid, *sequence),
            Record::Exit { .. } | Record::Last { .. } => return true,
            _ => return false,
        };
        self.threads.get(&tid).is_some_and(|thread| thread.next != sequence)
    }

    /// Whether a thread's current task goes on although its parameters change.
    fn goes_on(&self, record: &TaskRecord) -> bool {
        let moves_on = |thread: &Thread| record.begin == Begin::Affinity && thread.moves >= MOST_MOVES;
        let is_asked = self.options.merge_transitions && !matches!(record.begin, Begin::Exec | Begin::Seen);
        self.threads
            .get(&record.tid)
            .is_some_and(|thread| thread.next == record.sequence && (is_asked || moves_on(thread)))
    }

    /// The number that a thread's next record must have, and its jobs that have not ended by the records so
    /// far.
    pub fn open_jobs(&self, tid: u32) -> Option<(u32, impl Iterator<Item = OpenJob>)> {
        self.threads.get(&tid).map(|thread| (thread.next, thread.task.open_jobs()))
    }

    /// What [`Extractor::finish`] would return if the observation ended here.
    pub fn tasks(&self, until: Instant) -> Vec<model::Task> {
        let alive = self.threads.values().map(|thread| thread.so_far(until, true));
        in_order(self.ended.iter().map(|ended| ended.task.clone()).chain(alive).collect())
    }

    /// All tasks, ordered by process, thread and phase.
    pub fn finish(self, until: Instant) -> Vec<model::Task> {
        self.finish_summarized(until).into_iter().map(|ended| ended.task).collect()
    }

    /// The same; if it was [`Extractor::summarizing`], with what [`crate::Summary`] is made of.
    pub fn finish_summarized(mut self, until: Instant) -> Vec<Ended> {
        for mut thread in self.threads.into_values() {
            thread.take_name();
            self.ended.push(thread.break_off(until, EndedBy::ObservationEnd, self.summarizes));
        }
        self.ended.sort_by_key(|ended| order(&ended.task));
        self.ended
    }

    fn activation(&mut self, activation: &Activation, each: &mut impl FnMut(&JobSeen)) {
        let Some(thread) = self.threads.get_mut(&activation.tid) else {
            self.unknown += 1;
            return;
        };
        if thread.next != activation.sequence {
            self.gap(activation.tid, activation.sequence);
        }
        if let Some(thread) = self.threads.get_mut(&activation.tid) {
            thread.next = activation.sequence.wrapping_add(1);
            thread.take_name();
            self.jobs += thread.task.activation(activation, &self.options.stream, each);
        }
    }

    fn task(&mut self, record: &TaskRecord) {
        let next = record.sequence.wrapping_add(1);
        if record.begin == Begin::Seen {
            // Its number is used again although its end was not seen: another thread.
            if let Some(mut old) = self.threads.remove(&record.tid) {
                old.take_name();
                let until = old.task.last_seen();
                self.gaps += 1;
                self.keep(old.break_off(until, EndedBy::Loss, self.summarizes));
            }
            self.threads.insert(record.tid, Thread::new(Task::new(record.clone(), 0), next));
            return;
        }
        let ended_by = match record.begin {
            Begin::Policy => EndedBy::PolicyChange,
            Begin::Priority => EndedBy::PriorityChange,
            Begin::Affinity => EndedBy::AffinityChange,
            Begin::Exec | Begin::Seen => EndedBy::Exec,
        };
        let goes_on = self.goes_on(record);
        if self.threads.get(&record.tid).is_some_and(|thread| thread.next != record.sequence) {
            self.gap(record.tid, record.sequence);
        }
        let Some(mut thread) = self.threads.remove(&record.tid) else {
            // The record that introduced the thread was lost.
            self.gaps += 1;
            self.threads.insert(record.tid, Thread::new(Task::new(record.clone(), 0), next));
            return;
        };
        thread.next = next;
        if record.begin == Begin::Exec {
            thread.renamed = None;
            let about = thread.task.about_mut();
            if !thread.command_known && about.command == record.command {
                about.command.clear();
            }
        }
        thread.take_name();
        if goes_on {
            let TaskRecord { at, affinity, .. } = thread.task.about();
            let affinity = match self.options.merge_transitions {
                true => record.affinity.clone(),
                false => either_list_of_processors(affinity, &record.affinity),
            };
            *thread.task.about_mut() = TaskRecord { at: *at, affinity, ..record.clone() };
            thread.task.merge_transition();
            self.threads.insert(record.tid, thread);
            return;
        }
        let phase = thread.task.phase() + 1;
        let moves = if record.begin == Begin::Affinity { thread.moves + 1 } else { 0 };
        self.keep(thread.end(record.at, ended_by, self.summarizes));
        let thread = Thread::new(Task::new(record.clone(), phase), next);
        self.threads.insert(record.tid, Thread { command_known: true, moves, ..thread });
    }

    /// Introduces a thread whose beginning is not among these records.
    fn known(&mut self, record: &TaskRecord) {
        self.threads
            .entry(record.tid)
            .or_insert_with(|| Thread::new(Task::new(record.clone(), 0), record.sequence));
    }

    fn end(&mut self, tid: u32, sequence: u32, at: Instant, ended_by: EndedBy) {
        if self.threads.get(&tid).is_some_and(|thread| thread.next != sequence) {
            self.gap(tid, sequence);
        }
        if let Some(mut thread) = self.threads.remove(&tid) {
            thread.take_name();
            self.keep(thread.end(at, ended_by, self.summarizes));
        }
    }

    /// After a gap it is not known how much of the processor time is the new task's.
    fn busy(&mut self, tid: u32, sequence: u32, cpu: Duration) {
        let is_whole = self.threads.get(&tid).is_some_and(|thread| thread.next == sequence);
        if let Some(thread) = self.expect(tid, sequence) {
            thread.task.set_busy(is_whole.then_some(cpu));
        }
    }

    fn keep(&mut self, ended: Ended) {
        let worked = ended.task.streams.iter().any(|stream| stream.jobs > 0);
        if self.ended.len() < MAX_TASKS || (worked && self.ended.len() < MAX_TASKS_WITH_JOBS) {
            self.ended.push(ended);
        } else {
            self.omitted += 1;
        }
    }

    /// The thread, with its next record counted; a gap before that record ends the task.
    fn expect(&mut self, tid: u32, sequence: u32) -> Option<&mut Thread> {
        if self.threads.get(&tid)?.next != sequence {
            self.gap(tid, sequence);
        }
        let thread = self.threads.get_mut(&tid)?;
        thread.next = sequence.wrapping_add(1);
        Some(thread)
    }

    /// Records of a thread were lost: its task ends with the last thing seen, and another begins with the
    /// same parameters.
    fn gap(&mut self, tid: u32, sequence: u32) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        thread.take_name();
        self.gaps += 1;
        // An estimated start may lie before the beginning of the task.
        let until = thread.task.last_seen().max(thread.task.about().at);
        let about = TaskRecord { at: until, ..thread.task.about().clone() };
        let phase = thread.task.phase() + 1;
        self.keep(thread.break_off(until, EndedBy::Loss, self.summarizes));
        self.threads.insert(tid, Thread::new(Task::new(about, phase), sequence));
    }
}

fn in_order(mut tasks: Vec<model::Task>) -> Vec<model::Task> {
    tasks.sort_by_key(order);
    tasks
}

fn order(task: &model::Task) -> (u32, u32, Instant, u32) {
    (task.pid, task.tid, task.from_ns, task.phase)
}
