//! What the figures of a table are read from.

use punctual_model::table::{Table, TableTask};
use std::collections::BTreeSet;

/// A processor of a table.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorRow<'a> {
    /// The table.
    pub table: &'a Table,
    /// The processor's number.
    pub processor: u32,
}

impl<'a> ProcessorRow<'a> {
    /// A row for each processor.
    pub fn all(table: &'a Table) -> impl Iterator<Item = ProcessorRow<'a>> {
        table.processors.iter().map(move |&processor| ProcessorRow { table, processor })
    }

    /// The most slots in a row that belong to jobs.
    pub fn longest_busy(&self) -> u64 {
        let (mut longest, mut from, mut to) = (0, 0, 0);
        for run in self.table.runs_on(self.processor) {
            if run.from != to {
                from = run.from;
            }
            to = run.to;
            longest = longest.max(to - from);
        }
        longest
    }

    /// The places of the tasks that run on it.
    pub fn tasks(&self) -> BTreeSet<usize> {
        self.table.runs_on(self.processor).iter().map(|run| self.table.jobs[run.job].task).collect()
    }
}

/// A task of a table.
#[derive(Clone, Debug)]
pub struct TaskRow<'a> {
    /// The table.
    pub table: &'a Table,
    /// The task's place.
    pub place: usize,
    /// Of each of its jobs: slots since the job's release, and processors, by slot.
    jobs: Vec<Vec<(u64, u32)>>,
}

impl<'a> TaskRow<'a> {
    /// A row for each task.
    pub fn all(table: &'a Table) -> impl Iterator<Item = TaskRow<'a>> {
        let mut slots: Vec<Vec<(u64, u32)>> = vec![Vec::new(); table.jobs.len()];
        for run in &table.runs {
            let job = &table.jobs[run.job];
            let inside = (run.from..run.to).filter_map(|slot| job.unwrapped(slot, table.slots));
            slots[run.job].extend(inside.map(|slot| (slot, run.processor)));
        }
        slots.iter_mut().for_each(|slots| slots.sort_unstable());
        let mut of_task: Vec<Vec<Vec<(u64, u32)>>> = vec![Vec::new(); table.tasks.len()];
        for (job, slots) in table.jobs.iter().zip(slots) {
            of_task[job.task].push(slots);
        }
        of_task.into_iter().enumerate().map(move |(place, jobs)| TaskRow { table, place, jobs })
    }

    /// The task.
    pub fn task(&self) -> &'a TableTask {
        &self.table.tasks[self.place]
    }

    /// The processors that its jobs have slots of.
    pub fn processors(&self) -> BTreeSet<u32> {
        self.jobs.iter().flatten().map(|&(_, processor)| processor).collect()
    }

    /// Changes of the processor within its jobs.
    pub fn migrations(&self) -> u64 {
        let changes =
            |job: &Vec<(u64, u32)>| job.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as u64;
        self.jobs.iter().map(changes).sum()
    }

    /// The most slots from an activation to the end of its job.
    pub fn response(&self) -> Option<u64> {
        let task = self.task();
        let ends = self.jobs.iter().enumerate().filter_map(|(number, job)| {
            let activation = task.offset + number as u64 * task.period;
            Some((job.last()?.0 + 1).saturating_sub(activation))
        });
        ends.max()
    }
}
