//! Slots of all processors of a table at run time. As in the paper, slot shifting is partitioned: an accepted
//! job has one processor, on which its test is exact; a schedule that moved jobs of the table might find room
//! for more.
//!
//! From a job's acceptance, or the first release of a task that was added, until the table begins anew and
//! nothing else is to be served, a processor serves the earliest deadline. Otherwise it does as well, or
//! keeps to the table.

use super::pieces::{Piece, Repetition, pieces};
use super::{Granted, JobId, Owner, Periodic, Plan, PlanError, Processor, Refused};
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
    pub(super) length: u64,
    pub(super) keeps_table: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    number: u32,
    pub(super) slots: Processor,
    /// The table's slots `[from, to)` and the piece that has them, by slot.
    runs: Vec<(u64, u64, usize)>,
    /// Whether it serves the earliest deadline instead of the table.
    pub(super) is_shifted: bool,
    /// Tasks that were added, by the numbers of their jobs' owners, with their first releases.
    pub(super) additions: Vec<(usize, u64)>,
    /// Whether a task has it for itself.
    is_exclusive: bool,
    /// Before this slot, the table has slots of jobs that are over.
    pub(super) vacant_until: u64,
}

/// A processor as it was, for [`Machine::restore`].
#[derive(Clone, Debug)]
pub struct Before(Box<Member>);

/// A slot that is given to a guaranteed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The processor's number.
    pub processor: u32,
    /// What is served.
    pub work: Work,
    /// The slots that the job may still get on this processor.
    pub left: u64,
    /// Whether the job gets no slots after this one, on any processor.
    pub is_last: bool,
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
    /// The slot from which on its processor counts with it: that of its first release, less its offset.
    pub first: u64,
}

/// Why a periodic task is not added: on every processor that takes tasks, its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAdded(pub Vec<(u32, PlanError)>);

impl fmt::Display for NotAdded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("every processor is reserved by a task of the table");
        }
        let reasons: Vec<String> =
            self.0.iter().map(|(processor, error)| format!("processor {processor}: {error}")).collect();
        f.write_str(&reasons.join("; "))
    }
}

impl std::error::Error for NotAdded {}

impl Machine {
    /// The processors at the start of the table, which must keep to its tasks (`model::check::table`). Each
    /// serves the earliest deadline.
    ///
    /// # Errors
    /// If it does not.
    pub fn new(table: &Table) -> Result<Self, PlanError> {
        Self::start(table, false)
    }

    /// The same, but a processor gives every slot as the table has it while it serves nothing else.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn keeping(table: &Table) -> Result<Self, PlanError> {
        Self::start(table, true)
    }

    fn start(table: &Table, keeps_table: bool) -> Result<Self, PlanError> {
        let pieces = pieces(table);
        let member = |(place, &number): (usize, &u32)| {
            let jobs = pieces.iter().filter(|piece| piece.processor == place).map(|piece| piece.planned);
            let is_exclusive = table.runs_on(number).iter().any(|run| table.task_of(run.job).exclusive);
            let slots = Processor::new(Plan::new(table.slots, jobs.collect())?);
            let runs = runs(table, &pieces, number, place);
            let additions = Vec::new();
            Ok(Member { number, slots, runs, is_shifted: false, additions, is_exclusive, vacant_until: 0 })
        };
        Ok(Self {
            processors: table.processors.iter().enumerate().map(member).collect::<Result<_, _>>()?,
            tasks: table.jobs.iter().map(|job| job.task).collect(),
            pieces,
            added: 0,
            table_tasks: table.tasks.len(),
            length: table.slots,
            keeps_table,
        })
    }

    /// The slot that is given out next.
    pub fn now(&self) -> u64 {
        self.processors.first().map_or(0, |member| member.slots.now())
    }

    /// Gives out the next slot of every processor, in the order of the table.
    pub fn next_slot(&mut self) -> Vec<Option<Served>> {
        let mut processors = std::mem::take(&mut self.processors);
        let served = processors.iter_mut().map(|member| self.serve(member)).collect();
        self.processors = processors;
        served
    }

    /// Gives out the next slot of a processor.
    pub(super) fn serve(&self, member: &mut Member) -> Option<Served> {
        member.settle(self.length);
        let granted = match self.keeps_table && !member.is_shifted {
            true => member.slots.next_slot_for(member.planned(self.length))?,
            false => member.slots.next_slot()?,
        };
        let (work, goes_on) = match granted.owner {
            Owner::Task(owner) => match self.pieces.get(owner) {
                Some(&Piece { job, next, .. }) => {
                    (Work::Planned { job, task: self.tasks[job] }, next.is_some())
                }
                None => (Work::Added(self.table_tasks + owner - self.pieces.len()), false),
            },
            Owner::Aperiodic => (Work::Aperiodic(granted.job), false),
        };
        let is_last = granted.left == 0 && !goes_on;
        Some(Served { processor: member.number, work, left: granted.left, is_last, granted })
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
                member.is_shifted = true;
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
        let Some(place) = self.processors.iter().position(|member| member.number == served.processor) else {
            return false;
        };
        let Owner::Task(piece) = owner else { return self.processors[place].slots.complete(job) };
        let Some(&Piece { planned, .. }) = self.pieces.get(piece) else {
            return self.processors[place].slots.complete(job);
        };
        let rest = self.rest(piece, deadline - planned.deadline);
        self.cancel_all(rest)
    }

    /// A job of the table, to which `slot` belongs, is over, although it might get more slots on this
    /// processor: gives these back. What the processor was before, if there were any; none where a task has
    /// it for itself.
    ///
    /// Slots before [`Machine::now`] are given out. To have slots of a job on other processors given back,
    /// ask for those.
    pub fn give_back(&mut self, processor: u32, job: usize, slot: u64) -> Option<Before> {
        let place = self.processors.iter().position(|member| member.number == processor)?;
        if self.processors[place].is_exclusive {
            return None;
        }
        let mut rest = self.rest_of_job(job, slot);
        rest.retain(|&(piece, _)| self.pieces[piece].processor == place);
        let before = Before(Box::new(self.processors[place].clone()));
        self.cancel_all(rest).then_some(before)
    }

    /// Whether a processor keeps to the table at present.
    pub fn follows_table(&self, processor: u32) -> bool {
        self.keeps_table && self.member(processor).is_some_and(|member| !member.is_shifted)
    }

    /// Makes a processor what it was, while no slot has been given out since.
    pub fn restore(&mut self, before: Before) {
        let Before(before) = before;
        if let Some(member) = self.processors.iter_mut().find(|member| member.number == before.number) {
            *member = *before;
        }
    }

    /// The piece of a job to which a slot belongs, and those that follow, each with the beginning of its
    /// repetition.
    fn rest_of_job(&self, job: usize, slot: u64) -> Vec<(usize, u64)> {
        let first = self.pieces.partition_point(|piece| piece.job < job);
        let (start, inside) = (slot - slot % self.length, slot % self.length);
        let pieces = self.pieces[first..].iter().take_while(|piece| piece.job == job);
        let has = |piece: &Piece| (piece.planned.earliest..piece.planned.deadline).contains(&inside);
        let found = pieces.into_iter().position(has);
        found.map(|place| self.rest(first + place, start)).unwrap_or_default()
    }

    /// A piece whose repetition begins at `start`, and those of its job that follow.
    fn rest(&self, first: usize, start: u64) -> Vec<(usize, u64)> {
        let (mut place, mut start, mut rest) = (first, start, vec![(first, start)]);
        while let Some(Piece { next: Some(repetition), .. }) = self.pieces.get(place) {
            place += 1;
            if *repetition == Repetition::Next {
                start += self.length;
            }
            rest.push((place, start));
        }
        rest
    }

    fn cancel_all(&mut self, rest: Vec<(usize, u64)>) -> bool {
        rest.into_iter().fold(false, |any, (piece, start)| any | self.cancel(piece, start))
    }

    /// Gives back what is left of a piece. Whether there was any.
    fn cancel(&mut self, piece: usize, start: u64) -> bool {
        let Piece { processor, planned, .. } = self.pieces[piece];
        let member = &mut self.processors[processor];
        let is_cancelled = member.slots.cancel(piece, start + planned.earliest);
        if is_cancelled {
            member.vacant_until = member.vacant_until.max(start + planned.deadline);
        }
        is_cancelled
    }

    /// An accepted job is over, although it might have got more slots: gives back the rest. Whether there was
    /// any.
    pub fn withdraw(&mut self, accepted: &Accepted) -> bool {
        let mut members = self.processors.iter_mut();
        let member = members.find(|member| member.number == accepted.processor);
        member.is_some_and(|member| member.slots.complete(accepted.job))
    }

    /// Guarantees an accepted job `wcet` slots from now until `deadline`, instead of those that it might
    /// still get, on the same processor.
    ///
    /// # Errors
    /// If there are not enough; then it keeps what it has.
    pub fn renew(&mut self, job: &Accepted, wcet: NonZeroU64, deadline: u64) -> Result<Accepted, Refused> {
        let mut members = self.processors.iter_mut();
        let Some(member) = members.find(|member| member.number == job.processor) else {
            return Err(Refused { free: 0, needed: wcet.get(), earliest_deadline: None });
        };
        let mut slots = member.slots.clone();
        slots.complete(job.job);
        let job = Accepted { job: slots.accept(wcet, deadline)?, ..*job };
        (member.slots, member.is_shifted) = (slots, true);
        Ok(job)
    }

    /// Removes a task that was added.
    pub fn remove_periodic(&mut self, added: &Added) {
        let owner = added.task - self.table_tasks + self.pieces.len();
        for member in &mut self.processors {
            if member.additions.iter().any(|addition| addition.0 == owner) {
                member.additions.retain(|addition| addition.0 != owner);
                member.slots.remove_periodic(owner);
            }
        }
    }

    /// Adds a periodic task for good, on the processor with the fewest slots in use that can take it. All
    /// that is guaranteed stays as it is.
    ///
    /// # Errors
    /// If no single processor can take it.
    pub fn add_periodic(&mut self, periodic: Periodic) -> Result<Added, NotAdded> {
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
            let Member { number, slots, additions, .. } = &mut self.processors[place];
            match slots.add_periodic(owner, periodic) {
                Ok(first) => {
                    let task = self.table_tasks + self.added;
                    self.added += 1;
                    additions.push((owner, first));
                    return Ok(Added { processor: *number, task, first });
                }
                Err(error) => reasons.push((*number, error)),
            }
        }
        Err(NotAdded(reasons))
    }

    pub(super) fn member(&self, processor: u32) -> Option<&Member> {
        self.processors.iter().find(|member| member.number == processor)
    }

    fn open(&self) -> impl Iterator<Item = &Member> {
        self.processors.iter().filter(|member| !member.is_exclusive)
    }
}

impl Member {
    /// Leaves the table where a task that was added is released first, and goes back to it where it begins
    /// anew and there is nothing else to serve.
    pub(super) fn settle(&mut self, length: u64) {
        let now = self.slots.now();
        let is_added = self.additions.iter().any(|&(_, first)| first <= now);
        let goes_on = now % length != 0 || self.slots.has_aperiodic();
        self.is_shifted = is_added || (self.is_shifted && goes_on);
    }

    /// The piece that has the present slot in the table.
    fn planned(&self, length: u64) -> Option<usize> {
        let slot = self.slots.now() % length;
        let &(from, _, piece) = self.runs.get(self.runs.partition_point(|&(_, to, _)| to <= slot))?;
        (from <= slot).then_some(piece)
    }
}

/// The slots of a processor with their pieces. A run may be the end of one piece and the beginning of
/// another, of the next activation.
fn runs(table: &Table, pieces: &[Piece], number: u32, place: usize) -> Vec<(u64, u64, usize)> {
    let piece = |job: usize, slot: u64| {
        let first = pieces.partition_point(|piece| piece.job < job);
        let of_job = pieces[first..].iter().take_while(|piece| piece.job == job);
        let has = |piece: &Piece| (piece.planned.earliest..piece.planned.deadline).contains(&slot);
        Some(first + of_job.into_iter().position(|piece| piece.processor == place && has(piece))?)
    };
    let mut runs: Vec<(u64, u64, usize)> = Vec::new();
    let own = table.runs_on(number).iter();
    for (slot, job) in own.flat_map(|run| (run.from..run.to).map(|slot| (slot, run.job))) {
        let Some(piece) = piece(job, slot) else { continue };
        match runs.last_mut().filter(|last| last.1 == slot && last.2 == piece) {
            Some(last) => last.1 += 1,
            None => runs.push((slot, slot + 1, piece)),
        }
    }
    runs
}
