//! What is one task in all runs.

use super::curve::RunNumber;
use super::json;
use super::stream::StreamSummary;
use crate::extractor::Ended;
use punctual_model::threads::UNKNOWN_COMMAND;
use punctual_model::{
    self as model, Duration, EndedBy, Instant, Object, Policy, Reservation, Separator, ThreadId, ThreadIds,
    either_list_of_processors, list_of_processors, processor_list,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// What makes a task the same in two runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key {
    pub name: String,
    pub command: String,
    policy: u32,
    pub priority: u32,
    nice: Option<i32>,
    /// Runtime, deadline, period.
    reservation: Option<(u64, u64, u64)>,
    /// Among the threads of a run that agree in all of that.
    pub number: u32,
    /// If the command is unknown: the first of the runs known to be of one program. Runs of two programs
    /// would look alike without it. The file has it behind the tasks.
    #[serde(skip)]
    pub program: Option<RunNumber>,
}

impl Key {
    fn new(task: &model::Task) -> Key {
        Key {
            name: task.name.clone(),
            command: task.command.clone(),
            policy: task.policy.number(),
            priority: task.priority,
            nice: task.nice,
            reservation: task
                .reservation
                .map(|it| (it.runtime_ns.ns(), it.deadline_ns.ns(), it.period_ns.ns())),
            number: 0,
            program: (task.command == UNKNOWN_COMMAND).then_some(0),
        }
    }

    pub fn is_unknown(&self) -> bool {
        self.command == UNKNOWN_COMMAND
    }

    /// Whether they are the same, if the runs are of one program.
    pub fn agrees(&self, other: &Key) -> bool {
        let known = |key: &Key| Key { program: None, ..key.clone() };
        self.name == other.name && known(self) == known(other)
    }

    pub fn policy(&self) -> Option<Policy> {
        Policy::from_number(self.policy)
    }
}

/// What only a single task has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Alone {
    pub pid: u32,
    pub tid: u32,
    pub phase: u32,
    pub run: RunNumber,
    primary: Option<u32>,
    primary_reason: Option<String>,
    affinity: String,
}

/// One task in all runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TaskSummary {
    pub key: Key,
    pub alone: Option<Box<Alone>>,
    /// How many runs have it, and as how many tasks: a run that lost records has several.
    pub runs: u64,
    pub tasks: u64,
    /// Those of all runs; empty if one's are not known.
    affinity: String,
    pub from: u64,
    pub until: u64,
    /// `None` if they ended in different ways.
    #[serde(with = "json")]
    ended_by: Option<EndedBy>,
    capped: bool,
    merged_transitions: u64,
    /// The longest open job, in ns. In the file it comes after everything else.
    #[serde(skip)]
    pub open: Option<u64>,
    /// The processor time of a task alone that never waited, in ns. In the file it is last.
    #[serde(skip)]
    pub busy: Option<u64>,
    /// In the order of their keys.
    pub streams: Vec<StreamSummary>,
}

/// The tasks of one run, in order.
pub(crate) fn of_run(ended: Vec<Ended>) -> Vec<TaskSummary> {
    let ids = ThreadIds::new(ended.iter().map(|ended| &ended.task));
    let mut threads: BTreeMap<Key, HashMap<ThreadId<'_>, usize>> = BTreeMap::new();
    let mut numbers = Vec::with_capacity(ended.len());
    for Ended { task, .. } in &ended {
        let threads = threads.entry(Key::new(task)).or_default();
        let next = threads.len();
        numbers.push(u32::try_from(*threads.entry(ids.of(task)).or_insert(next)).unwrap_or(u32::MAX));
    }
    let mut tasks: BTreeMap<Key, TaskSummary> = BTreeMap::new();
    for (Ended { task, streams }, number) in ended.into_iter().zip(numbers) {
        let key = Key { number, ..Key::new(&task) };
        let summary = TaskSummary::new(key.clone(), &task, streams);
        match tasks.get_mut(&key) {
            Some(before) => before.merge(&summary),
            None => drop(tasks.insert(key, summary)),
        }
    }
    let mut tasks: Vec<_> = tasks.into_values().collect();
    tasks.iter_mut().for_each(|task| task.runs = 1);
    tasks
}

impl TaskSummary {
    fn new(key: Key, task: &model::Task, mut streams: Vec<StreamSummary>) -> TaskSummary {
        number_objects(&mut streams);
        if let Some(primary) = task.primary.and_then(|place| streams.get_mut(place)) {
            (primary.primary_in, primary.primary_jobs) = (1, primary.jobs());
        }
        streams.sort_by_key(|stream| stream.key);
        TaskSummary {
            key,
            alone: Some(Box::new(Alone {
                pid: task.pid,
                tid: task.tid,
                phase: task.phase,
                run: 0,
                primary: task.primary.and_then(|place| u32::try_from(place).ok()),
                primary_reason: task.primary_reason.clone(),
                affinity: task.affinity.clone(),
            })),
            runs: 1,
            tasks: 1,
            affinity: processor_list(&task.affinity).map(list_of_processors).unwrap_or_default(),
            from: task.from_ns.ns(),
            until: task.until_ns.ns(),
            ended_by: Some(task.ended_by),
            capped: task.separators_capped,
            merged_transitions: task.merged_transitions,
            open: task.open_ns.map(Duration::ns),
            busy: task.busy_ns.map(Duration::ns),
            streams,
        }
    }

    pub fn renumber(&mut self, numbers: &[RunNumber]) {
        self.alone.iter_mut().for_each(|alone| alone.run = numbers[alone.run as usize]);
        self.key.program = self.key.program.map(|run| numbers[run as usize]);
        self.streams.iter_mut().for_each(|stream| stream.renumber(numbers));
    }

    /// Adds the tasks of other runs. What only a single one has goes.
    pub fn merge(&mut self, other: &TaskSummary) {
        self.alone = None;
        self.runs = self.runs.saturating_add(other.runs);
        self.tasks = self.tasks.saturating_add(other.tasks);
        self.affinity = either_list_of_processors(&self.affinity, &other.affinity);
        self.from = self.from.min(other.from);
        self.until = self.until.max(other.until);
        self.ended_by = self.ended_by.filter(|mine| other.ended_by == Some(*mine));
        self.capped |= other.capped;
        self.merged_transitions = self.merged_transitions.saturating_add(other.merged_transitions);
        self.open = self.open.max(other.open);
        self.busy = None;
        for theirs in &other.streams {
            match self.streams.binary_search_by_key(&theirs.key, |stream| stream.key) {
                Ok(place) => self.streams[place].merge(theirs),
                Err(place) => self.streams.insert(place, theirs.clone()),
            }
        }
        self.streams.iter_mut().for_each(|stream| stream.alone = None);
    }

    /// The stream to show first.
    pub fn primary(&self) -> Option<&StreamSummary> {
        let primary = self.streams.iter().rev().max_by_key(|stream| (stream.primary_jobs, stream.primary_in));
        primary.filter(|stream| stream.primary_in > 0)
    }

    /// The task for the file: itself if it is alone, else number `number` of those that are several.
    pub fn to_model(&self, number: u32, recording: Option<String>) -> model::Task {
        let mut streams: Vec<&StreamSummary> = self.streams.iter().collect();
        streams.sort_by_key(|stream| stream.alone.as_ref().map(|alone| alone.place));
        let alone = self.alone.as_deref();
        let several = || {
            let primary = self.primary()?;
            let reason = format!("it is that of {} of {} tasks", primary.primary_in, self.tasks);
            Some((streams.iter().position(|stream| stream.key == primary.key)?, reason))
        };
        let (primary, primary_reason) = match alone {
            Some(alone) => (alone.primary.map(|place| place as usize), alone.primary_reason.clone()),
            None => several().unzip(),
        };
        let duration = Duration::from_ns;
        model::Task {
            name: self.key.name.clone(),
            pid: alone.map_or(0, |alone| alone.pid),
            tid: alone.map_or(number, |alone| alone.tid),
            phase: alone.map_or(0, |alone| alone.phase),
            command: self.key.command.clone(),
            policy: self.key.policy().unwrap_or(Policy::Other),
            priority: self.key.priority,
            nice: self.key.nice,
            reservation: self.key.reservation.map(|(runtime, deadline, period)| Reservation {
                runtime_ns: duration(runtime),
                deadline_ns: duration(deadline),
                period_ns: duration(period),
            }),
            affinity: alone.map_or_else(|| self.affinity.clone(), |alone| alone.affinity.clone()),
            from_ns: Instant::from_ns(self.from),
            until_ns: Instant::from_ns(self.until),
            ended_by: self.ended_by.unwrap_or(EndedBy::ObservationEnd),
            primary,
            primary_reason,
            separators_capped: self.capped,
            merged_transitions: self.merged_transitions,
            open_ns: self.open.map(duration),
            busy_ns: self.busy.map(duration),
            recording,
            streams: streams.into_iter().map(StreamSummary::to_model).collect(),
        }
    }

    /// Whether its parts fit together, in a summary of so many runs.
    pub fn check(&self, runs: usize) -> Result<(), &'static str> {
        let is_alone = self.alone.is_some();
        let places: Vec<_> = self.streams.iter().filter_map(|it| Some(it.alone.as_ref()?.place)).collect();
        let fits = [
            (self.key.policy().is_some(), "a scheduling policy"),
            (!is_alone || self.tasks == 1, "one task, if it is alone"),
            ((1..=self.tasks).contains(&self.runs) && self.runs <= runs as u64, "a number of runs"),
            (self.alone.as_ref().is_none_or(|it| (it.run as usize) < runs), "a run that is listed"),
            (self.key.program.is_none_or(|run| (run as usize) < runs), "a program of a run that is listed"),
            (self.key.program.is_some() == self.key.is_unknown(), "a program, if the command is unknown"),
            (self.streams.is_sorted_by(|one, next| one.key < next.key), "streams in order"),
            (places.len() == if is_alone { self.streams.len() } else { 0 }, "streams that are alone, or not"),
            (places.iter().all(|place| (*place as usize) < places.len()), "the places of all streams"),
            (self.streams.iter().all(|it| it.primary_in <= self.tasks), "fewer primary streams than tasks"),
        ];
        let wrong = fits.into_iter().find(|(fits, _)| !fits);
        wrong.map_or(Ok(()), |(_, expected)| Err(expected))?;
        self.streams.iter().try_for_each(|stream| stream.check(runs))
    }
}

/// Addresses and System V identifiers are others in every run: they become numbers, by call and name, in the
/// order of first use.
fn number_objects(streams: &mut [StreamSummary]) {
    let mut counts: Vec<(Separator, u16)> = Vec::new();
    for stream in streams {
        let kind = match stream.key.object {
            Object::Address { name, .. } => Object::Address { address: 0, name },
            Object::Id(_) => Object::Id(0),
            _ => continue,
        };
        let kind = Separator { object: kind, ..stream.key };
        let place = counts.iter().position(|(other, _)| *other == kind).unwrap_or(counts.len());
        if place == counts.len() {
            counts.push((kind, 0));
        }
        counts[place].1 += 1;
        stream.key.object = match kind.object {
            Object::Id(_) => Object::Id(i32::from(counts[place].1)),
            other => Object::Address { address: counts[place].1.into(), name: other.name() },
        };
    }
}
