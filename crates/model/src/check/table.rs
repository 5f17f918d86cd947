//! Does a table give every job what its task needs? Slot by slot, without any knowledge of how it was made.

use crate::table::{Table, TableJob, TableTask};
use crate::text::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A job, as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobName {
    /// The name of its task.
    pub task: String,
    /// Which job of the task in one repetition of the table, from 0.
    pub number: usize,
}

/// Something that a table does not keep to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableViolation {
    /// A task does not have one job for each of its periods.
    Jobs {
        /// The task.
        task: String,
        /// Periods in one repetition.
        expected: u64,
        /// Jobs of the task.
        found: u64,
    },
    /// A job's window is not within that of its activation.
    Window {
        /// The job.
        job: JobName,
        /// The activation, and its deadline.
        allowed: (u64, u64),
        /// The job's window.
        found: (u64, u64),
    },
    /// A job does not get the slots that its task needs.
    Slots {
        /// The job.
        job: JobName,
        /// What it needs.
        needed: u64,
        /// What it gets.
        given: u64,
    },
    /// A job has a slot outside its window.
    Outside {
        /// The job.
        job: JobName,
        /// The processor.
        processor: u32,
        /// The slot.
        slot: u64,
    },
    /// Two jobs have the same slot of a processor.
    Twice {
        /// The processor.
        processor: u32,
        /// The first such slot of the two jobs.
        slot: u64,
        /// The jobs.
        jobs: Box<[JobName; 2]>,
    },
    /// A job has two processors in the same slot.
    Parallel {
        /// The job.
        job: JobName,
        /// The first such slot.
        slot: u64,
        /// The processors.
        processors: [u32; 2],
    },
    /// A job runs on a processor that its task may not use.
    Processor {
        /// The job.
        job: JobName,
        /// The processor.
        processor: u32,
    },
    /// A task shares the processor of a task that has it for itself.
    Shared {
        /// The processor.
        processor: u32,
        /// The task that has it for itself.
        exclusive: String,
        /// A task that runs there too.
        other: String,
    },
    /// A job begins before one that it must follow has ended.
    Order {
        /// The job that must end first.
        before: JobName,
        /// The job that must follow.
        after: JobName,
    },
}

/// Everything that the table does not keep to. The table's parts must fit together, as those of a table that
/// was read do.
pub fn table(table: &Table) -> Vec<TableViolation> {
    let grid = Grid::new(table);
    let mut found = grid.activations();
    found.extend(grid.budgets());
    found.extend(grid.places());
    found.extend(grid.overlaps());
    found.extend(grid.parallel());
    found.extend(grid.exclusive());
    found.extend(grid.order());
    found
}

/// The slots of every job.
struct Grid<'a> {
    table: &'a Table,
    /// Of each job, the slots and their processors.
    slots: Vec<Vec<(u64, u32)>>,
    /// Of each task, its jobs in order.
    jobs: Vec<Vec<usize>>,
}

impl<'a> Grid<'a> {
    fn new(table: &'a Table) -> Self {
        let mut slots = vec![Vec::new(); table.jobs.len()];
        for run in &table.runs {
            slots[run.job].extend((run.from..run.to).map(|slot| (slot, run.processor)));
        }
        slots.iter_mut().for_each(|slots: &mut Vec<_>| slots.sort_unstable());
        let mut jobs = vec![Vec::new(); table.tasks.len()];
        table.jobs.iter().enumerate().for_each(|(place, job)| jobs[job.task].push(place));
        Self { table, slots, jobs }
    }

    fn name(&self, job: usize) -> JobName {
        let task = self.table.jobs[job].task;
        let number = self.jobs[task].iter().position(|&it| it == job).unwrap_or_default();
        JobName { task: self.table.tasks[task].name.clone(), number }
    }

    fn tasks(&self) -> impl Iterator<Item = (&'a TableTask, &Vec<usize>)> {
        self.table.tasks.iter().zip(&self.jobs)
    }

    /// One job for each period, within its activation's window.
    fn activations(&self) -> Vec<TableViolation> {
        let mut found = Vec::new();
        for (task, jobs) in self.tasks() {
            let expected = self.table.slots / task.period;
            if expected != jobs.len() as u64 {
                found.push(TableViolation::Jobs {
                    task: task.name.clone(),
                    expected,
                    found: jobs.len() as u64,
                });
            }
            for (number, &job) in (0..expected).zip(jobs) {
                let TableJob { release, deadline, .. } = self.table.jobs[job];
                let activation = task.offset + number * task.period;
                let allowed = (activation, activation + task.deadline);
                if release < allowed.0 || deadline > allowed.1 {
                    let found_window = (release, deadline);
                    found.push(TableViolation::Window { job: self.name(job), allowed, found: found_window });
                }
            }
        }
        found
    }

    fn budgets(&self) -> Vec<TableViolation> {
        let jobs = self.slots.iter().enumerate().filter_map(|(job, slots)| {
            let (needed, given) = (self.table.task_of(job).wcet, slots.len() as u64);
            let planned = self.table.jobs[job].slots;
            let fits = needed == given && needed == planned;
            let given = if needed == given { planned } else { given };
            (!fits).then(|| TableViolation::Slots { job: self.name(job), needed, given })
        });
        jobs.collect()
    }

    /// The first slot of each job that is outside its window, and on each processor that it may not use.
    fn places(&self) -> Vec<TableViolation> {
        let mut found = Vec::new();
        for (job, slots) in self.slots.iter().enumerate() {
            let window = &self.table.jobs[job];
            let outside = slots.iter().find(|(slot, _)| window.unwrapped(*slot, self.table.slots).is_none());
            found.extend(outside.map(|&(slot, processor)| TableViolation::Outside {
                job: self.name(job),
                processor,
                slot,
            }));
            let allowed = self.table.task_of(job).allowed(&self.table.processors);
            let used: BTreeSet<u32> = slots.iter().map(|&(_, processor)| processor).collect();
            let wrong = used.into_iter().filter(|processor| !allowed.contains(processor));
            found.extend(wrong.map(|processor| TableViolation::Processor { job: self.name(job), processor }));
        }
        found
    }

    fn overlaps(&self) -> Vec<TableViolation> {
        self.table.processors.iter().flat_map(|&processor| self.overlaps_on(processor)).collect()
    }

    fn overlaps_on(&self, processor: u32) -> Vec<TableViolation> {
        let mut taken: Vec<Option<usize>> = vec![None; self.table.slots as usize];
        let mut known = BTreeSet::new();
        let mut found = Vec::new();
        for run in self.table.runs.iter().filter(|run| run.processor == processor) {
            for slot in run.from..run.to {
                let Some(other) = taken[slot as usize].replace(run.job) else { continue };
                if known.insert((other, run.job)) {
                    let jobs = Box::new([self.name(other), self.name(run.job)]);
                    found.push(TableViolation::Twice { processor, slot, jobs });
                }
            }
        }
        found
    }

    fn parallel(&self) -> Vec<TableViolation> {
        let jobs = self.slots.iter().enumerate().filter_map(|(job, slots)| {
            let pair = slots.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1)?;
            let processors = [pair[0].1, pair[1].1];
            Some(TableViolation::Parallel { job: self.name(job), slot: pair[0].0, processors })
        });
        jobs.collect()
    }

    fn exclusive(&self) -> Vec<TableViolation> {
        let mut users: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for run in &self.table.runs {
            users.entry(run.processor).or_default().insert(self.table.jobs[run.job].task);
        }
        let mut found = Vec::new();
        for (processor, tasks) in users {
            let Some(&owner) = tasks.iter().find(|&&task| self.table.tasks[task].exclusive) else { continue };
            let name = |task: usize| self.table.tasks[task].name.clone();
            let others = tasks.iter().filter(|&&task| task != owner);
            found.extend(others.map(|&other| TableViolation::Shared {
                processor,
                exclusive: name(owner),
                other: name(other),
            }));
        }
        found
    }

    /// Jobs of one activation, in the order of their tasks.
    fn order(&self) -> Vec<TableViolation> {
        let ends = |job: usize| self.span(job).map(|(_, end)| end);
        let starts = |job: usize| self.span(job).map(|(start, _)| start);
        let mut found = Vec::new();
        for (task, jobs) in self.tasks() {
            for &before in &task.after {
                let pairs = self.jobs[before].iter().zip(jobs);
                let wrong = pairs.filter(|&(&first, &then)| ends(first) >= starts(then));
                found.extend(
                    wrong.filter(|&(&first, &then)| ends(first).is_some() && starts(then).is_some()).map(
                        |(&first, &then)| TableViolation::Order {
                            before: self.name(first),
                            after: self.name(then),
                        },
                    ),
                );
            }
        }
        found
    }

    /// The first and the last slot of a job, counted from its activation's repetition. Slots outside its
    /// window, which are a violation of their own, do not count.
    fn span(&self, job: usize) -> Option<(u64, u64)> {
        let window = &self.table.jobs[job];
        let slots =
            || self.slots[job].iter().filter_map(|(slot, _)| window.unwrapped(*slot, self.table.slots));
        Some((slots().min()?, slots().max()?))
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} of {}", self.number, self.task)
    }
}

impl fmt::Display for TableViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jobs { task, expected, found } => {
                let (jobs, periods) = (counted(*found, "job"), counted(*expected, "period"));
                write!(f, "{task} has {jobs}, but {periods}")
            }
            Self::Window { job, allowed: (from, to), found: (release, deadline) } => {
                write!(f, "{job} may run in [{release}, {deadline}), its activation only in [{from}, {to})")
            }
            Self::Slots { job, needed, given } => {
                write!(f, "{job} needs {} and gets {given}", counted(*needed, "slot"))
            }
            Self::Outside { job, processor, slot } => {
                write!(f, "{job} has slot {slot} of processor {processor}, which is outside its window")
            }
            Self::Twice { processor, slot, jobs } => {
                write!(f, "slot {slot} of processor {processor} belongs to {} and to {}", jobs[0], jobs[1])
            }
            Self::Parallel { job, slot, processors: [one, other] } => {
                write!(f, "{job} has slot {slot} on processors {one} and {other}")
            }
            Self::Processor { job, processor } => {
                write!(f, "{job} runs on processor {processor}, which its task may not use")
            }
            Self::Shared { processor, exclusive, other } => {
                write!(f, "{other} runs on processor {processor}, which is reserved by {exclusive}")
            }
            Self::Order { before, after } => write!(f, "{after} starts before {before} has ended"),
        }
    }
}
