//! When the jobs of each task may run, with regard to the tasks before and after it.
//!
//! On one processor, EDF keeps an order of jobs if each is released after those before it can have ended, and
//! has its deadline before those after it must begin (Chetto, Silly, Bouchentouf 1990): r'_j = max(r_j,
//! r'_i + C_i), d'_i = min(d_i, d'_j − C_j) for i before j. That is exact. On several processors windows of
//! tasks in order must not overlap: the time of a chain is shared out by WCET, which may miss a table.

use super::Refusal;
use punctual_model::{TableJob, TableTask};

/// The window of each task's jobs, from the beginning of the task's period on.
#[derive(Clone, Debug)]
pub(super) struct Windows(Vec<Window>);

#[derive(Clone, Copy, Debug)]
struct Window {
    release: u64,
    deadline: u64,
}

impl Windows {
    /// Windows in which EDF on one processor keeps the order.
    pub(super) fn overlapping(tasks: &[TableTask]) -> Result<Self, Refusal> {
        let mut windows: Vec<Window> = tasks
            .iter()
            .map(|task| Window { release: task.offset, deadline: task.offset + task.deadline })
            .collect();
        let order = order(tasks);
        for &task in &order {
            for &before in &tasks[task].after {
                let earliest = windows[before].release + tasks[before].wcet;
                windows[task].release = windows[task].release.max(earliest);
            }
        }
        for &task in order.iter().rev() {
            for &before in &tasks[task].after {
                let latest = windows[task].deadline.saturating_sub(tasks[task].wcet);
                windows[before].deadline = windows[before].deadline.min(latest);
            }
        }
        let short = (0..tasks.len())
            .find(|&task| windows[task].deadline < windows[task].release.saturating_add(tasks[task].wcet));
        match short {
            Some(task) => Err(Refusal::Window {
                task: tasks[task].name.clone(),
                from: windows[task].release,
                to: windows[task].deadline,
                needed: tasks[task].wcet,
            }),
            None => Ok(Self(windows)),
        }
    }

    /// Windows of which those of tasks in order do not overlap, so that any schedule keeps the order.
    pub(super) fn disjoint(tasks: &[TableTask]) -> Result<Self, Refusal> {
        let mut windows = Self::overlapping(tasks)?.0;
        let order = order(tasks);
        let followers = followers(tasks, &order);
        for &task in &order {
            let begun = tasks[task].after.iter().map(|&before| windows[before].deadline).max();
            let Window { release, deadline } = &mut windows[task];
            *release = (*release).max(begun.unwrap_or(0));
            if followers[task] > 0 {
                let wcet = tasks[task].wcet;
                let spare = *deadline - *release - wcet;
                *deadline = *release + wcet + spare * wcet / (wcet + followers[task]);
            }
        }
        Ok(Self(windows))
    }

    /// The jobs of all tasks in one repetition, by task and release.
    pub(super) fn jobs(&self, tasks: &[TableTask], slots: u64) -> Vec<TableJob> {
        tasks.iter().enumerate().flat_map(|(place, task)| self.jobs_of(place, task, slots)).collect()
    }

    /// The jobs of one task.
    pub(super) fn jobs_of(
        &self,
        place: usize,
        task: &TableTask,
        slots: u64,
    ) -> impl Iterator<Item = TableJob> + use<> {
        let (Window { release, deadline }, period, wcet) = (self.0[place], task.period, task.wcet);
        (0..slots / period).map(move |number| TableJob {
            task: place,
            release: release + number * period,
            deadline: deadline + number * period,
            slots: wcet,
        })
    }
}

/// The tasks, each behind those that it must follow. There are no circles: the request was checked.
fn order(tasks: &[TableTask]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(tasks.len());
    let mut is_placed = vec![false; tasks.len()];
    while order.len() < tasks.len() {
        let before = order.len();
        for task in 0..tasks.len() {
            if !is_placed[task] && tasks[task].after.iter().all(|&before| is_placed[before]) {
                is_placed[task] = true;
                order.push(task);
            }
        }
        if order.len() == before {
            break;
        }
    }
    order
}

/// The slots that the longest chain of tasks after each needs.
fn followers(tasks: &[TableTask], order: &[usize]) -> Vec<u64> {
    let mut needed = vec![0; tasks.len()];
    for &task in order.iter().rev() {
        for &before in &tasks[task].after {
            needed[before] = needed[before].max(needed[task] + tasks[task].wcet);
        }
    }
    needed
}
