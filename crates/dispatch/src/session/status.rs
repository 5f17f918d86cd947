//! The state of a session, for people and programs.

use super::Session;
use super::threads::Known;
use crate::clock::Readable as _;
use punctual_tables::Job;
use punctual_tables::{LaneStatus, Status, TaskStatus};

impl Session {
    /// The present state.
    pub fn status(&self) -> Status {
        let slot = self.plan.slot_at(self.plan.clock.now(), self.start);
        let lanes = self.plan.lanes.iter().zip(&self.statistics.lanes).enumerate();
        let lane = |(number, (lane, statistics)): (
            usize,
            (&punctual_tables::Lane, &punctual_tables::LaneStatistics),
        )| {
            let owner = slot.and_then(|slot| self.owner(number, slot));
            LaneStatus {
                cpu: lane.processor,
                slot,
                task: owner.map(|job| self.name(job.task as usize)),
                turns: statistics.turns,
                missed: statistics.missed,
                error: statistics.errors(),
            }
        };
        let tasks = self.plan.tasks.iter().zip(&self.statistics.tasks).zip(&self.threads);
        let task = |((task, statistics), known): (
            (&punctual_tables::Task, &punctual_tables::TaskStatistics),
            &Option<Known>,
        )| {
            TaskStatus {
                name: task.name.clone(),
                tid: known.as_ref().map(|known| known.thread.number),
                turns: statistics.turns,
                unserved: statistics.unserved,
                overruns: statistics.overruns,
                early: statistics.early,
                ran_ns: statistics.ran,
                outside_max_ns: statistics.outside_max,
            }
        };
        Status {
            pid: std::process::id(),
            dispatcher: self.engine.name().into(),
            table: self.options.table.clone(),
            clock: self.plan.clock,
            start_ns: self.start,
            slot_ns: self.plan.slot,
            slots: self.plan.slots,
            processors: lanes.map(lane).collect(),
            tasks: tasks.map(task).collect(),
            guests: self.guest_statuses(),
        }
    }

    pub(super) fn owner(&self, lane: usize, slot: u64) -> Option<Job> {
        match &self.guests {
            Some(guests) => guests.owner(lane, slot),
            None => self.plan.owner(lane, slot),
        }
    }
}
