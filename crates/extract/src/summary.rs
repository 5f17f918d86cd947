//! Summaries of whole runs, which merge in any order: what is left of a run's streams once nothing follows
//! them. `docs/design/fleets.md` gives the reasons.
//!
//! Pieces of one stream, which follow each other, are merged by [`crate::Stream`].

mod blame;
pub(crate) mod curve;
mod file;
mod json;
mod kinds;
mod period;
pub(crate) mod spread;
pub(crate) mod stream;
mod task;

pub use blame::Blame;
pub use file::{FileError, MAGIC};

use crate::extractor::Ended;
use curve::RunNumber;
use punctual_model::causes::{Causes, LateTask};
use punctual_model::{ClockStep, Duration, Instant, Platform, Section, Threads, TimingModel};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use task::TaskSummary;

/// Most notes of a model of several runs: those of imports may have numbers in them.
const MOST_NOTES: usize = 30;

/// One observation, or one recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The machine's name; empty if unknown.
    pub host: String,
    /// The recording, as the user named it.
    pub name: String,
    /// The real time at the clock's zero, if known.
    pub clock_zero: Option<i64>,
    /// When it began.
    pub from: Instant,
    /// When it ended.
    pub until: Instant,
    /// The clock of its instants.
    pub clock: String,
    /// The machine.
    pub platform: Platform,
    /// Activation records.
    pub records: u64,
    /// Records known to be lost.
    pub lost: u64,
    /// Threads not watched.
    pub untracked: u64,
    /// Events that the kernel side skipped.
    pub skipped: u64,
    /// Time the hypervisor took.
    pub stolen: Duration,
    /// Tasks left out.
    pub omitted: u64,
    /// What is to be known of the recording. The file has it and the steps behind the tasks.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Steps of `CLOCK_REALTIME`.
    #[serde(skip)]
    pub clock_steps: Vec<ClockStep>,
}

impl Run {
    /// What no other run has.
    fn identity(&self) -> (&str, Option<i64>, Instant, Instant) {
        (&self.host, self.clock_zero, self.from, self.until)
    }
}

/// What merges of any number of runs. The same bits in any order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// In the order of their identities.
    runs: Vec<Run>,
    /// In the order of their keys.
    tasks: Vec<TaskSummary>,
    /// Why jobs were late, if somebody asked.
    #[serde(skip)]
    causes: Option<Causes>,
}

/// A run is in both of two summaries: its jobs would count twice.
#[derive(Clone, Debug, PartialEq)]
pub struct SameRun(pub Box<Run>);

impl std::error::Error for SameRun {}

impl fmt::Display for SameRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.name.escape_debug();
        write!(f, "the run {name} is already in an earlier file and would count twice; leave one of them out")
    }
}

impl Summary {
    /// Of one run, from [`crate::Extractor::finish_summarized`].
    pub fn new(run: Run, ended: Vec<Ended>) -> Summary {
        Summary { runs: vec![run], tasks: task::of_run(ended), causes: None }
    }

    /// The same, with the causes of late jobs.
    pub fn with_causes(self, causes: Causes) -> Summary {
        Summary { causes: Some(causes), ..self }
    }

    /// Its runs, in order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Number of tasks.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Adds other runs. Associative and commutative; [`Summary::default`] is neutral.
    ///
    /// # Errors
    /// If both have the same run; then nothing has changed.
    pub fn merge(&mut self, mut other: Summary) -> Result<(), SameRun> {
        if let Some(run) = other.runs.iter().find(|run| self.place(run).is_ok()) {
            return Err(SameRun(Box::new(run.clone())));
        }
        let old = std::mem::take(&mut self.runs);
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        let (mut left, mut right) =
            (old.into_iter().peekable(), std::mem::take(&mut other.runs).into_iter().peekable());
        loop {
            let next = self.runs.len() as RunNumber;
            let is_mine = match (left.peek(), right.peek()) {
                (Some(one), Some(other)) => one.identity() < other.identity(),
                (one, _) => one.is_some(),
            };
            let (from, numbers) = if is_mine { (&mut left, &mut mine) } else { (&mut right, &mut theirs) };
            let Some(run) = from.next() else { break };
            self.runs.push(run);
            numbers.push(next);
        }
        if !mine.iter().copied().eq(0..mine.len() as RunNumber) {
            self.tasks.iter_mut().for_each(|task| task.renumber(&mine));
        }
        for mut task in other.tasks {
            task.renumber(&theirs);
            match self.tasks.binary_search_by(|mine| mine.key.cmp(&task.key)) {
                Ok(place) => self.tasks[place].merge(&task),
                Err(place) => self.tasks.insert(place, task),
            }
        }
        self.causes = match (self.causes.take(), other.causes) {
            (Some(mut mine), Some(theirs)) => {
                mine.join(theirs);
                Some(mine)
            }
            (mine, theirs) => mine.or(theirs),
        };
        Ok(())
    }

    fn place(&self, run: &Run) -> Result<usize, usize> {
        self.runs.binary_search_by(|other| other.identity().cmp(&run.identity()))
    }

    /// Takes all runs to be of one program: tasks whose commands are unknown become one, too, if they agree
    /// in the rest. Before or after a merge gives the same.
    pub fn unite_programs(&mut self) {
        for task in std::mem::take(&mut self.tasks) {
            match self.tasks.last_mut().filter(|before| before.key.agrees(&task.key)) {
                // It has the first run of all: they are in order.
                Some(before) => before.merge(&task),
                None => self.tasks.push(task),
            }
        }
    }

    /// The names of tasks that are kept apart only because their commands are unknown, in order.
    pub fn apart(&self) -> Vec<&str> {
        let pairs = self.tasks.windows(2).filter(|pair| pair[0].key.agrees(&pair[1].key));
        let mut names: Vec<&str> = pairs.map(|pair| pair[0].key.name.as_str()).collect();
        names.dedup();
        names
    }

    /// Runs of one machine that overlap in time, with one that began earlier: jobs that both recorded count
    /// twice. By the machine's name and real time; by the clock where that is not known.
    pub fn overlaps(&self) -> Vec<(&Run, &Run)> {
        let place = |run: &Run, at: Instant| i128::from(at.ns()) + i128::from(run.clock_zero.unwrap_or(0));
        let machine = |run: &Run| (run.host.clone(), run.clock_zero.is_some(), run.clock.clone());
        let mut runs: Vec<&Run> = self.runs.iter().filter(|run| !run.host.is_empty()).collect();
        runs.sort_by_cached_key(|run| (machine(run), place(run, run.from)));
        let mut overlaps = Vec::new();
        let mut latest: Option<&Run> = None;
        for run in runs {
            let before = latest.filter(|before| machine(before) == machine(run));
            let is_before_end = |before: &&Run| place(run, run.from) < place(before, before.until);
            overlaps.extend(before.filter(is_before_end).map(|before| (before, run)));
            let is_later = before.is_none_or(|it| place(it, it.until) <= place(run, run.until));
            latest = if is_later { Some(run) } else { before };
        }
        overlaps
    }

    /// The models of all runs together.
    pub fn to_model(&self) -> TimingModel {
        let sum = |of: fn(&Run) -> u64| self.runs.iter().map(of).fold(0, u64::saturating_add);
        let mut clocks: Vec<&str> = self.runs.iter().map(|run| run.clock.as_str()).collect();
        clocks.sort_unstable();
        clocks.dedup();
        let mut causes = self.causes.clone();
        causes.iter_mut().flat_map(|causes| &mut causes.tasks).for_each(LateTask::bound);
        TimingModel {
            platform: self.platform().known(),
            causes,
            threads: Some(Threads {
                from_ns: self.runs.iter().map(|run| run.from).min().unwrap_or_default(),
                until_ns: self.runs.iter().map(|run| run.until).max().unwrap_or_default(),
                records: sum(|run| run.records),
                lost_records: sum(|run| run.lost),
                untracked_threads: sum(|run| run.untracked),
                skipped_events: sum(|run| run.skipped),
                stolen_ns: Duration::from_ns(sum(|run| run.stolen.ns())),
                omitted_tasks: sum(|run| run.omitted),
                clock_steps: self.clock_steps(),
                notes: self.notes(),
                tasks: self.task_models(),
            }),
            ..TimingModel::new(clocks.join(" and "))
        }
    }

    /// Runs have clocks of their own: times of one mean nothing in another.
    fn clock_steps(&self) -> Vec<ClockStep> {
        match &self.runs[..] {
            [only] => only.clock_steps.clone(),
            _ => Vec::new(),
        }
    }

    /// The notes of all runs, each once, with the runs that have it unless all do.
    fn notes(&self) -> Vec<String> {
        let mut all: BTreeMap<&str, Vec<RunNumber>> = BTreeMap::new();
        for (number, run) in (0..).zip(&self.runs) {
            let is_set = self.runs.len() > 1 && !run.clock_steps.is_empty();
            let set = is_set.then_some("CLOCK_REALTIME was set during the observation");
            for note in run.notes.iter().map(String::as_str).chain(set) {
                let runs = all.entry(note).or_default();
                if runs.last() != Some(&number) {
                    runs.push(number);
                }
            }
        }
        let mut notes: Vec<(&str, Vec<RunNumber>)> = all.into_iter().collect();
        // Those of the first run as it has them.
        let place = |note: &str, run: RunNumber| {
            self.runs[run as usize].notes.iter().position(|other| other == note).unwrap_or(usize::MAX)
        };
        notes.sort_by_cached_key(|(note, runs)| (runs[0], place(note, runs[0])));
        let left = notes.len().saturating_sub(MOST_NOTES);
        let sentence = |(note, runs): &(&str, Vec<RunNumber>)| match runs[..] {
            _ if runs.len() == self.runs.len() => (*note).to_owned(),
            [run] => format!("{note} ({})", self.name(run)),
            _ => format!("{note} ({} of {} runs)", runs.len(), self.runs.len()),
        };
        let rest = (left > 0).then(|| format!("and {left} more notes of the runs"));
        notes.iter().take(MOST_NOTES).map(sentence).chain(rest).collect()
    }

    /// Tasks of several runs first, then the others as they are in their recordings.
    fn task_models(&self) -> Vec<punctual_model::Task> {
        let mut tasks: Vec<&TaskSummary> = self.tasks.iter().collect();
        let place = |task: &&TaskSummary| {
            task.alone.as_ref().map(|alone| (alone.run, alone.pid, alone.tid, task.from, alone.phase))
        };
        tasks.sort_by_key(place);
        let recording = |task: &TaskSummary| match (&task.alone, self.runs.len(), task.runs) {
            (_, 0 | 1, _) => None,
            (Some(alone), ..) => Some(self.name(alone.run)),
            (None, _, 1) => Some(task.key.program.map_or("1 run".to_owned(), |run| self.name(run))),
            (None, _, runs) => Some(format!("{runs} runs")),
        };
        (1..).zip(tasks).map(|(number, task)| task.to_model(number, recording(task))).collect()
    }

    /// What is the same, or not known, of all machines.
    fn platform(&self) -> Platform {
        fn common<T: PartialEq + Default>(mut values: impl Iterator<Item = T>) -> T {
            let Some(first) = values.next() else { return T::default() };
            if values.all(|value| value == first) { first } else { T::default() }
        }
        let platforms = || self.runs.iter().map(|run| &run.platform);
        Platform {
            kernel: common(platforms().map(|it| it.kernel.clone())),
            machine: common(platforms().map(|it| it.machine.clone())),
            cpus: common(platforms().map(|it| it.cpus)),
        }
    }

    /// A run for the user: with its host, if there are several.
    fn name(&self, run: RunNumber) -> String {
        let Some(run) = self.runs.get(run as usize) else { return String::new() };
        match self.runs.iter().all(|other| other.host == run.host) {
            true => run.name.clone(),
            false => format!("{}:{}", run.host, run.name),
        }
    }

    /// Whether its parts fit together and make a valid timing model.
    fn check(&self) -> Result<(), String> {
        if !self.runs.is_sorted_by(|one, next| one.identity() < next.identity()) {
            return Err("expected runs in order, each once".to_owned());
        }
        if !self.tasks.is_sorted_by(|one, next| one.key < next.key) {
            return Err("expected tasks in order, each once".to_owned());
        }
        for (index, task) in self.tasks.iter().enumerate() {
            let wrong =
                |expected| format!("tasks[{index}] ({}): expected {expected}", task.key.name.escape_debug());
            task.check(self.runs.len()).map_err(wrong)?;
        }
        let model = self.to_model();
        let threads = model.threads.iter().try_for_each(|threads| threads.validate("threads"));
        let causes = || model.causes.iter().try_for_each(|causes| causes.validate("causes"));
        threads.and_then(|()| causes()).map_err(|error| error.to_string())
    }
}
