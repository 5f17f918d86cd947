//! One processor: EDF, which meets all deadlines if any schedule does.
//!
//! A job may begin at the end of the table and end at its beginning. Then the schedule that repeats is the
//! one that EDF comes to after the greatest release and one repetition (Leung and Merrill 1980), if jobs
//! need no more slots than there are. If they do, it may take EDF any number of repetitions to miss a
//! deadline.

use super::windows::Windows;
use super::{Problem, Refusal};
use crate::slot_shifting::{Overload, PlannedJob, earliest_deadline_first};
use punctual_model::{TableJob, TableRun};

/// Releases are before the end of the second repetition, so that from the fourth on all are alike.
const REPETITIONS: u64 = 4;

/// The runs of some tasks on one processor.
pub(super) fn edf(
    problem: &Problem<'_>,
    windows: &Windows,
    tasks: &[usize],
    processor: u32,
) -> Result<Vec<TableRun>, Refusal> {
    let jobs = problem.jobs_of(windows, tasks);
    runs(&jobs, problem.slots, processor).map_err(|overload| {
        let is_whole = (overload.from, overload.to) == (0, problem.slots);
        let is_inside = |task: &&usize| {
            let mut jobs = windows.jobs_of(**task, &problem.tasks[**task], problem.slots);
            is_whole
                || jobs.any(|job| {
                    let repetitions = (0..REPETITIONS).map(|repetition| repetition * problem.slots);
                    repetitions.into_iter().any(|start| {
                        job.release + start >= overload.from && job.deadline + start <= overload.to
                    })
                })
        };
        let names = tasks.iter().filter(is_inside).map(|&task| problem.tasks[task].name.clone());
        let available = overload.to - overload.from;
        Refusal::Overload { processors: vec![processor], tasks: names.collect(), overload, available }
    })
}

/// The runs of jobs, given with their places in the list of all; or the slots in which there are too many.
pub(super) fn runs(
    jobs: &[(usize, TableJob)],
    slots: u64,
    processor: u32,
) -> Result<Vec<TableRun>, Overload> {
    let needed = jobs.iter().map(|(_, job)| job.slots).sum();
    if needed > slots {
        return Err(Overload { from: 0, to: slots, needed });
    }
    let wraps = jobs.iter().any(|(_, job)| job.deadline > slots);
    let repetitions = if wraps { REPETITIONS } else { 1 };
    let planned = |start: u64| {
        jobs.iter().map(move |(_, job)| PlannedJob {
            task: job.task,
            earliest: job.release + start,
            deadline: job.deadline + start,
            wcet: job.slots,
        })
    };
    let all: Vec<PlannedJob> = (0..repetitions).flat_map(|number| planned(number * slots)).collect();
    let from = (repetitions - 1) * slots;
    let runs = earliest_deadline_first(&all)?.into_iter().filter_map(|run| {
        let (start, end) = (run.from.max(from), run.to.min(from + slots));
        (start < end).then(|| TableRun {
            processor,
            from: start - from,
            to: end - from,
            job: jobs[run.job % jobs.len()].0,
        })
    });
    Ok(runs.collect())
}
