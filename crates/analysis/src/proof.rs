//! Everything that is found out about a system, for those who show it.

use crate::bound::NoBound;
use crate::deadlines::{Assignment, Room, Verdict, verdict};
use crate::system::{Bounds, System};
use crate::task::Task;
use punctual_model::{Duration, Policy};

/// What was found.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Tasks and processors.
    pub system: System,
    /// The bound of each task.
    pub bounds: Bounds,
    /// The thread of each task.
    pub threads: Vec<Thread>,
    /// The greatest response time that was observed of each task, where it certainly exceeded its deadline;
    /// empty if nothing was observed, or something was changed since.
    pub late: Vec<Option<Duration>>,
    /// How far each task may change, if asked for.
    pub rooms: Option<Vec<Option<Room>>>,
    /// Priorities, if asked for; or the tasks for which there is none.
    pub priorities: Option<Assignment<u32>>,
    /// Deadlines of reservations, if asked for; or the tasks that have none, or may miss their own with them.
    pub reserved_deadlines: Option<Assignment<Duration>>,
    /// Where threads and kernel were observed, as far as that is known; each platform once.
    pub observed_on: Vec<punctual_model::Platform>,
    /// What the result rests on, or leaves out: whole sentences.
    pub remarks: Vec<String>,
}

/// The thread of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its policy, if that is known.
    pub policy: Option<Policy>,
    /// Its priority; 0 where it has none.
    pub priority: u32,
}

impl Proof {
    /// The verdict of each task.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.system.tasks.iter().zip(&self.bounds).map(|(task, bound)| verdict(task, bound)).collect()
    }

    /// How many deadlines were asked for and not proven.
    pub fn missed(&self) -> usize {
        self.verdicts().into_iter().filter(|verdict| *verdict == Verdict::Missed).count()
    }

    /// Why a task has no bound, with the names of others in it; before that, that it was late if it was.
    pub fn reason(&self, task: usize, reason: &NoBound) -> String {
        let tasks = &self.system.tasks;
        let late = self.late.get(task).copied().flatten().zip(tasks[task].deadline);
        let Some((response, deadline)) = late else { return reason.text(task, tasks) };
        let missed = format!("it took {response} once, more than its deadline of {deadline}");
        match reason {
            NoBound::Gap(_) => reason.text(task, tasks),
            // What misses its deadline is no limit of the analysis.
            NoBound::Suspension => format!(
                "{missed}; its jobs suspend themselves for up to {}; a shorter suspension or a longer period \
                 helps",
                tasks[task].suspension
            ),
            _ => format!("{missed}; {}", reason.text(task, tasks)),
        }
    }

    /// The processors of any task with their load in the long run, ascending. Threads of several processors
    /// count for each in equal parts; `None` where a task's share is unknown.
    pub fn loads(&self) -> Vec<(u32, Option<f64>)> {
        let share = |cpu: u32| {
            let may_use = |task: &&Task| task.processors.is_empty() || task.processors.contains(&cpu);
            let own = self.system.tasks.iter().filter(may_use);
            own.map(|task| Some(task.utilization()? / task.processors.len() as f64))
                .try_fold(0.0, |sum, share| Some(sum + share?))
        };
        self.system.processors().into_iter().map(|cpu| (cpu, share(cpu))).collect()
    }
}
