//! Slots of all processors of a table at run time. As in the paper, slot shifting is partitioned: an accepted
//! job has one processor, on which its test is exact; a schedule that moved jobs of the table might find room
//! for more.

use super::pieces::{Piece, Repetition, pieces};
use super::{Granted, JobId, Owner, Plan, PlanError, Processor, Refused};
use punctual_model::Table;
use std::fmt;
use std::num::NonZeroU64;

/// The processors of a table. Tasks are numbered as in the table; those that are added follow.
#[derive(Clone, Debug)]
pub struct Machine {
    processors: Vec<Member>,
    pieces: Vec<Piece>,
    /// The task of each job of the table.
    tasks: Vec<usize>,
    added: usize,
    table_tasks: usize,
    /// One repetition of the table, whatever is added.
    length: u64,
}

#[derive(Clone, Debug)]
struct Member {
    number: u32,
    slots: Processor,
    /// Whether a task has it for itself.
    is_exclusive: bool,
}

/// A slot that is given to a guaranteed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The processor's number.
    pub processor: u32,
    /// What is served.
    pub work: Work,
    /// The slots that the job may still get on this processor.
    pub left: u64,
    granted: Granted,
}

/// What has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A job of the table.
    Planned {
        /// The job's place in the table.
        job: usize,
        /// The place of its task.
        task: usize,
    },
    /// A task that was added at run time, by the number that it got.
    Added(usize),
    /// A job that was accepted at run time.
    Aperiodic(JobId),
}

/// An aperiodic job that is guaranteed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The processor that it runs on.
    pub processor: u32,
    /// The job, among those of its processor.
    pub job: JobId,
}

/// A periodic task that was added for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The processor that it runs on.
    pub processor: u32,
    /// Its number.
    pub task: usize,
    /// The slot of its first release.
    pub first: u64,
}

/// Why a periodic task is not added: on every processor that takes tasks, its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAdded(pub Vec<(u32, PlanError)>);

impl fmt::Display for NotAdded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("tasks of the table have all processors for themselves");
        }
        let reasons: Vec<String> =
            self.0.iter().map(|(processor, error)| format!("processor {processor}: {error}")).collect();
        f.write_str(&reasons.join("; "))
    }
}

impl std::error::Error for NotAdded {}

impl Machine {
    /// The processors at the start of the table, which must keep to its tasks (`model::check::table`).
    ///
    /// # Errors
    /// If it does not.
    pub fn new(table: &Table) -> Result<Self, PlanError> {
        let pieces = pieces(table);
        let member = |(place, &number): (usize, &u32)| {
            let jobs = pieces.iter().filter(|piece| piece.processor == place).map(|piece| piece.planned);
            let is_exclusive = table.runs_on(number).iter().any(|run| table.task_of(run.job).exclusive);
            let slots = Processor::new(Plan::new(table.slots, jobs.collect())?);
            Ok(Member { number, slots, is_exclusive })
        };
        Ok(Self {
            processors: table.processors.iter().enumerate().map(member).collect::<Result<_, _>>()?,
            tasks: table.jobs.iter().map(|job| job.task).collect(),
            pieces,
            added: 0,
            table_tasks: table.tasks.len(),
            length: table.slots,
        })
    }

    /// The slot that is given out next.
    pub fn now(&self) -> u64 {
        self.processors.first().map_or(0, |member| member.slots.now())
    }

    /// Gives out the next slot of every processor, in the order of the table.
    pub fn next_slot(&mut self) -> Vec<Option<Served>> {
        let Self { processors, pieces, tasks, table_tasks, .. } = self;
        let serve = |member: &mut Member| {
            let granted = member.slots.next_slot()?;
            let work = match granted.owner {
                Owner::Task(piece) => match pieces.get(piece) {
                    Some(piece) => Work::Planned { job: piece.job, task: tasks[piece.job] },
                    None => Work::Added(*table_tasks + piece - pieces.len()),
                },
                Owner::Aperiodic => Work::Aperiodic(granted.job),
            };
            Some(Served { processor: member.number, work, left: granted.left, granted })
        };
        processors.iter_mut().map(serve).collect()
    }

    /// The slots until `deadline` that no guaranteed job needs, by processor; none of processors that tasks
    /// have for themselves.
    pub fn slack(&self, deadline: u64) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.open().map(move |member| (member.number, member.slots.slack(deadline)))
    }

    /// Accepts an aperiodic job that is ready now and needs at most `wcet` slots until `deadline`: on the
    /// processor with the least slack that suffices, so that the most is left for longer jobs.
    ///
    /// # Errors
    /// If no single processor has enough, with the earliest deadline that one would have accepted.
    pub fn accept(&mut self, wcet: NonZeroU64, deadline: u64) -> Result<Accepted, Refused> {
        let mut fits: Vec<(u64, usize)> = Vec::new();
        for (place, member) in self.processors.iter().enumerate().filter(|(_, member)| !member.is_exclusive) {
            fits.push((member.slots.slack(deadline), place));
        }
        let free = fits.iter().map(|&(slack, _)| slack).max().unwrap_or(0);
        fits.retain(|&(slack, _)| slack >= wcet.get());
        fits.sort_unstable();
        for (_, place) in fits {
            let member = &mut self.processors[place];
            if let Ok(job) = member.slots.accept(wcet, deadline) {
                return Ok(Accepted { processor: member.number, job });
            }
        }
        let earliest_deadline = self.open().filter_map(|member| member.slots.earliest_deadline(wcet)).min();
        Err(Refused { free, needed: wcet.get(), earliest_deadline })
    }

    /// The job that had this slot is over, although it might have got more: gives back the rest, on every
    /// processor. Whether there was any.
    pub fn complete(&mut self, served: &Served) -> bool {
        let Granted { job, owner, deadline, .. } = served.granted;
        let Some(member) = self.processors.iter_mut().find(|member| member.number == served.processor) else {
            return false;
        };
        let mut given_back = member.slots.complete(job);
        let Owner::Task(mut place) = owner else { return given_back };
        let Some(piece) = self.pieces.get(place) else { return given_back };
        let mut start = deadline - piece.planned.deadline;
        while let Some(Piece { next: Some(repetition), .. }) = self.pieces.get(place) {
            place += 1;
            if *repetition == Repetition::Next {
                start += self.length;
            }
            let Piece { processor, planned, .. } = self.pieces[place];
            given_back |= self.processors[processor].slots.cancel(place, start + planned.earliest);
        }
        given_back
    }

    /// Adds a periodic task for good, on the processor with the fewest slots in use that can take it. All
    /// that is guaranteed stays as it is.
    ///
    /// # Errors
    /// If no single processor can take it.
    pub fn add_periodic(&mut self, wcet: u64, period: u64, deadline: u64) -> Result<Added, NotAdded> {
        let use_of = |member: &Member| {
            let plan = member.slots.plan();
            let busy: u64 = plan.jobs().iter().map(|job| job.wcet).sum();
            (u128::from(busy) << 64) / u128::from(plan.length())
        };
        let mut order: Vec<usize> =
            (0..self.processors.len()).filter(|&place| !self.processors[place].is_exclusive).collect();
        order.sort_by_key(|&place| use_of(&self.processors[place]));
        let mut reasons = Vec::new();
        let owner = self.pieces.len() + self.added;
        for place in order {
            let Member { number, slots, .. } = &mut self.processors[place];
            match slots.add_periodic(owner, wcet, period, deadline) {
                Ok(first) => {
                    let task = self.table_tasks + self.added;
                    self.added += 1;
                    return Ok(Added { processor: *number, task, first });
                }
                Err(error) => reasons.push((*number, error)),
            }
        }
        Err(NotAdded(reasons))
    }

    fn open(&self) -> impl Iterator<Item = &Member> {
        self.processors.iter().filter(|member| !member.is_exclusive)
    }
}
