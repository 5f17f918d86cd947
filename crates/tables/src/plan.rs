//! A table as a dispatcher needs it: for every processor the sequence of turns, with absolute instants.
//!
//! Pure. A turn is a row of slots that belong to the same job, or to nobody; a dispatcher acts where a turn
//! begins. Instants are `start + slot × length`, never sums of earlier ones, so nothing drifts.

use punctual_model::{Duration, Instant, Table};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a dispatcher carries out.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Length of a slot.
    pub slot: Duration,
    /// Slots of the hyperperiod, after which everything repeats.
    pub slots: u32,
    /// The clock of the slots.
    pub clock: Clock,
    /// The tasks, in the table's order.
    pub tasks: Vec<Task>,
    /// The processors, in the table's order.
    pub lanes: Vec<Lane>,
    /// What it was made of, with the windows of its jobs; without, there are no guests.
    pub table: Option<Arc<Table>>,
}

/// The clock that slots are counted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clock {
    /// CLOCK_MONOTONIC: of this machine alone.
    #[default]
    #[serde(rename = "CLOCK_MONOTONIC")]
    Monotonic,
    /// CLOCK_TAI: shared by machines that PTP keeps in step.
    #[serde(rename = "CLOCK_TAI")]
    Tai,
}

impl Clock {
    /// Its name in the kernel.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Monotonic => "CLOCK_MONOTONIC",
            Clock::Tai => "CLOCK_TAI",
        }
    }
}

/// A task of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name in the table.
    pub name: String,
    /// Which thread it is.
    pub thread: crate::Selector,
    /// What happens to a thread that is not done when its job's slots are over.
    pub on_overrun: OnOverrun,
    /// Whether a job is over once its thread has run in its slots and sleeps.
    pub sleep_ends_job: bool,
}

/// What happens to a thread that is still ready at the end of its job's last slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnOverrun {
    /// It goes on in its next slot. Counted.
    #[default]
    Continue,
    /// It loses the slots of its task's next job.
    Skip,
    /// Its process is stopped (SIGSTOP) until the table ends, or somebody continues it.
    Stop,
    /// As `Continue`, and every overrun is reported when it happens.
    Tell,
}

/// A processor and its turns in one hyperperiod, which they fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The processor's number.
    pub processor: u32,
    /// At least one; each begins where the one before ends.
    pub turns: Vec<Turn>,
}

/// A row of slots with one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// First slot of the hyperperiod.
    pub from: u32,
    /// Slot after the last.
    pub to: u32,
    /// The owner; `None`: idle.
    pub job: Option<Job>,
}

/// A part of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Place of its task in [`Plan::tasks`].
    pub task: u32,
    /// Place of the job in the table.
    pub number: u32,
    /// Whether the job has no slots after this turn.
    pub is_last: bool,
}

/// Slots `[from, to)` of a processor that belong to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The processor's number.
    pub processor: u32,
    /// First slot.
    pub from: u32,
    /// Slot after the last.
    pub to: u32,
    /// Place of the job in the table.
    pub job: u32,
}

/// A job of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Place of its task in [`Plan::tasks`].
    pub task: u32,
    /// Its first slot. Runs before belong to its end: its window goes on at the table's beginning.
    pub release: u32,
}

impl Planned {
    fn slots_after_release(&self, run: &Run, slots: u32) -> u32 {
        if run.from >= self.release { run.from - self.release } else { slots - self.release + run.from }
    }
}

/// A turn at its place in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// First slot, counted since the start.
    pub slot: u64,
    /// How many slots.
    pub slots: u32,
    /// The owner; `None`: idle.
    pub job: Option<Job>,
    /// When it begins.
    pub at: Instant,
    /// When it ends.
    pub until: Instant,
}

impl Plan {
    /// Makes the turns of these runs of these jobs, which are in the table's order.
    ///
    /// # Errors
    /// What is wrong with the runs, in words: the table is not one that was checked.
    pub fn new(head: Plan, processors: &[u32], runs: &[Run], jobs: &[Planned]) -> Result<Plan, String> {
        if head.slot.is_zero() || head.slots == 0 {
            return Err("a table needs at least one slot, and slots longer than zero".into());
        }
        if let Some(job) = jobs.iter().find(|job| job.task as usize >= head.tasks.len()) {
            return Err(format!("the table has no task {}", job.task));
        }
        if let Some(run) = runs.iter().find(|run| !processors.contains(&run.processor)) {
            return Err(format!("processor {} is not in the table", run.processor));
        }
        let lane = |&processor: &u32| lane(processor, head.slots, runs, jobs);
        let lanes = processors.iter().map(lane).collect::<Result<_, _>>()?;
        Ok(Plan { lanes, ..head })
    }

    /// The processors of the table.
    pub fn processors(&self) -> Vec<u32> {
        self.lanes.iter().map(|lane| lane.processor).collect()
    }

    /// The lane on which a task runs first; `None` if it has no slots.
    pub fn home(&self, task: usize) -> Option<usize> {
        let first = |lane: &Lane| lane.turns.iter().find(|turn| turn.is_of(task)).map(|turn| turn.from);
        let first_by_lane = self.lanes.iter().enumerate().filter_map(|(at, lane)| Some((first(lane)?, at)));
        first_by_lane.min().map(|(_, at)| at)
    }

    /// The turn of a lane that has this number since the start.
    pub fn decision(&self, lane: usize, number: u64, start: Instant) -> Decision {
        let turns = &self.lanes[lane].turns;
        let (round, at) = (number / turns.len() as u64, number % turns.len() as u64);
        let turn = turns[at as usize];
        let slot = round.saturating_mul(self.slots.into()).saturating_add(turn.from.into());
        let slots = turn.to - turn.from;
        let begin = self.instant(slot, start);
        let until = self.instant(slot.saturating_add(slots.into()), start);
        Decision { slot, slots, job: turn.job, at: begin, until }
    }

    /// When a slot begins.
    pub fn instant(&self, slot: u64, start: Instant) -> Instant {
        start + Duration::from_ns(slot.saturating_mul(self.slot.ns()))
    }

    /// The slot at an instant; `None` before the start.
    pub fn slot_at(&self, now: Instant, start: Instant) -> Option<u64> {
        Some(now.ns().checked_sub(start.ns())? / self.slot.ns())
    }

    /// The slot in which all lanes join a table that has begun: the first that begins after `at`.
    pub fn joined(&self, at: Instant, start: Instant) -> u64 {
        self.slot_at(at, start).map_or(0, |slot| slot.saturating_add(1))
    }

    /// The number of the first turn of a lane that begins at `now` or later.
    pub fn next(&self, lane: usize, now: Instant, start: Instant) -> u64 {
        let Some(slot) = self.slot_at(now, start) else { return 0 };
        let turns = &self.lanes[lane].turns;
        let (round, within) = (slot / u64::from(self.slots), slot % u64::from(self.slots));
        let current = turns.partition_point(|turn| u64::from(turn.from) <= within).saturating_sub(1);
        let number = round * turns.len() as u64 + current as u64;
        if self.decision(lane, number, start).at >= now { number } else { number + 1 }
    }

    /// Who owns a slot, counted since the start; `None` if it is idle.
    pub fn owner(&self, lane: usize, slot: u64) -> Option<Job> {
        let within = slot % u64::from(self.slots);
        let turns = &self.lanes[lane].turns;
        turns.get(turns.partition_point(|turn| u64::from(turn.from) <= within).checked_sub(1)?)?.job
    }

    /// Share of a lane's slots that have an owner, in parts of 100.
    pub fn percent_owned(&self, lane: usize) -> u32 {
        let owned = self.lanes[lane].turns.iter().filter(|turn| turn.job.is_some());
        let slots: u64 = owned.map(|turn| u64::from(turn.to - turn.from)).sum();
        (slots * 100 / u64::from(self.slots)) as u32
    }
}

impl Turn {
    fn is_of(&self, task: usize) -> bool {
        self.job.is_some_and(|job| job.task as usize == task)
    }
}

/// The turns of one processor.
fn lane(processor: u32, slots: u32, runs: &[Run], jobs: &[Planned]) -> Result<Lane, String> {
    let mut own: Vec<Run> = runs.iter().copied().filter(|run| run.processor == processor).collect();
    own.sort_by_key(|run| run.from);
    let mut turns: Vec<Turn> = Vec::new();
    let mut reached = 0;
    for run in own {
        if run.from < reached || run.to <= run.from || run.to > slots {
            return Err(format!(
                "slots {} to {} of processor {processor} are given twice, are none, or lie outside of the \
                 table",
                run.from, run.to
            ));
        }
        let planned = jobs.get(run.job as usize).ok_or("a run of a job that is not in the table")?;
        if run.from > reached {
            turns.push(Turn { from: reached, to: run.from, job: None });
        }
        let after = |run: &Run| planned.slots_after_release(run, slots);
        let last = runs.iter().filter(|other| other.job == run.job).map(after).max();
        let job = Job { task: planned.task, number: run.job, is_last: last == Some(after(&run)) };
        match turns.last_mut() {
            Some(Turn { to, job: Some(before), .. }) if before.number == run.job && *to == run.from => {
                *to = run.to;
                *before = job;
            }
            _ => turns.push(Turn { from: run.from, to: run.to, job: Some(job) }),
        }
        reached = run.to;
    }
    if reached < slots {
        turns.push(Turn { from: reached, to: slots, job: None });
    }
    Ok(Lane { processor, turns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{example, head};
    use proptest::prelude::*;

    /// Jobs of these tasks, released with the table.
    fn jobs(tasks: &[u32]) -> Vec<Planned> {
        tasks.iter().map(|&task| Planned { task, release: 0 }).collect()
    }

    #[test]
    fn turns_fill_the_hyperperiod() {
        let plan = example();
        let turns: Vec<_> = plan.lanes[0].turns.iter().map(|turn| (turn.from, turn.to)).collect();
        assert_eq!(turns, [(0, 2), (2, 4), (4, 5), (5, 10)]);
        assert_eq!(plan.owner(0, 24).map(|job| job.task), Some(1));
        assert_eq!((plan.owner(0, 2), plan.owner(1, 3)), (None, None));
        assert_eq!((plan.home(0), plan.home(1), plan.percent_owned(0)), (Some(0), Some(0), 30));
    }

    #[test]
    fn parts_of_a_job_side_by_side_are_one_turn() {
        let runs = [
            Run { processor: 0, from: 0, to: 1, job: 0 },
            Run { processor: 0, from: 1, to: 3, job: 0 },
            Run { processor: 0, from: 3, to: 4, job: 1 },
            Run { processor: 0, from: 5, to: 6, job: 1 },
        ];
        let plan = Plan::new(head(10, 6, &["a"]), &[0], &runs, &jobs(&[0, 0])).expect("a table");
        let turns: Vec<_> = plan.lanes[0]
            .turns
            .iter()
            .map(|turn| (turn.from, turn.to, turn.job.map(|job| (job.number, job.is_last))))
            .collect();
        assert_eq!(
            turns,
            [(0, 3, Some((0, true))), (3, 4, Some((1, false))), (4, 5, None), (5, 6, Some((1, true)))]
        );
    }

    #[test]
    fn a_window_may_go_on_at_the_beginning_of_the_table() {
        let runs =
            [Run { processor: 0, from: 0, to: 1, job: 0 }, Run { processor: 0, from: 5, to: 6, job: 0 }];
        let planned = [Planned { task: 0, release: 4 }];
        let plan = Plan::new(head(10, 6, &["a"]), &[0], &runs, &planned).expect("a table");
        let lasts: Vec<_> =
            plan.lanes[0].turns.iter().filter_map(|turn| Some((turn.from, turn.job?.is_last))).collect();
        assert_eq!(lasts, [(0, true), (5, false)]);
    }

    #[test]
    fn runs_that_overlap_are_refused() {
        let runs =
            [Run { processor: 0, from: 0, to: 2, job: 0 }, Run { processor: 0, from: 1, to: 3, job: 0 }];
        Plan::new(head(10, 6, &["a"]), &[0], &runs, &jobs(&[0])).expect_err("overlap");
        let beyond = [Run { processor: 0, from: 5, to: 7, job: 0 }];
        Plan::new(head(10, 6, &["a"]), &[0], &beyond, &jobs(&[0])).expect_err("outside");
        let elsewhere = [Run { processor: 2, from: 0, to: 1, job: 0 }];
        Plan::new(head(10, 6, &["a"]), &[0], &elsewhere, &jobs(&[0])).expect_err("no such processor");
    }

    #[test]
    fn instants_do_not_drift() {
        let plan = example();
        let start = Instant::from_ns(7);
        let turns = plan.lanes[0].turns.len() as u64;
        let million = plan.decision(0, 1_000_000 * turns, start);
        assert_eq!((million.slot, million.at.ns()), (10_000_000, 7 + 10_000_000 * 1_000));
    }

    #[test]
    fn all_lanes_join_a_table_in_the_same_slot() {
        let (plan, start) = (example(), Instant::from_ns(7));
        let joined = |at| plan.joined(Instant::from_ns(at), start);
        assert_eq!((joined(6), joined(7), joined(1_006), joined(1_007)), (0, 1, 1, 2));
    }

    proptest! {
        /// One after the other without a gap, each slot with the owner that the runs name.
        #[test]
        fn decisions_are_the_table(
            lengths in prop::collection::vec((0_u32..4, 1_u32..4), 1..12), start in 0_u64..1_000_000,
        ) {
            let (mut runs, mut at) = (Vec::new(), 0);
            for (job, (gap, length)) in lengths.iter().enumerate() {
                at += gap;
                runs.push(Run { processor: 5, from: at, to: at + length, job: job as u32 });
                at += length;
            }
            let tasks = jobs(&vec![0; runs.len()]);
            let plan = Plan::new(head(100, at, &["a"]), &[5], &runs, &tasks).expect("a table");
            let start = Instant::from_ns(start);
            let mut reached = 0;
            for number in 0..3 * plan.lanes[0].turns.len() as u64 {
                let decision = plan.decision(0, number, start);
                prop_assert_eq!(decision.slot, reached);
                prop_assert_eq!(decision.at.ns(), start.ns() + reached * 100);
                reached += u64::from(decision.slots);
                prop_assert_eq!(decision.until.ns(), start.ns() + reached * 100);
                for slot in decision.slot..reached {
                    let within = (slot % u64::from(at)) as u32;
                    let run = runs.iter().find(|run| (run.from..run.to).contains(&within));
                    prop_assert_eq!(decision.job.map(|job| job.number), run.map(|run| run.job));
                    prop_assert_eq!(plan.owner(0, slot), decision.job);
                }
                prop_assert_eq!(plan.next(0, decision.at, start), number);
                prop_assert_eq!(plan.next(0, decision.at + Duration::from_ns(1), start), number + 1);
            }
        }
    }
}
