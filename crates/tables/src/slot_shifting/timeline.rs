//! The schedule of jobs that are all known: EDF, which meets all deadlines on one processor if any schedule
//! does (Dertouzos 1974). In time O(n log n) for n jobs, whatever their number of slots.

use super::{Overload, PlannedJob};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Consecutive slots of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The job's place in the plan.
    pub job: usize,
    /// The first slot.
    pub from: u64,
    /// The first slot after.
    pub to: u64,
}

/// When each job runs; or the slots in which some have too little time.
pub(crate) fn earliest_deadline_first(jobs: &[PlannedJob]) -> Result<Vec<Run>, Overload> {
    let mut by_release: Vec<usize> = (0..jobs.len()).collect();
    by_release.sort_by_key(|&job| jobs[job].earliest);
    let mut coming = by_release.into_iter().peekable();
    let mut left: Vec<u64> = jobs.iter().map(|job| job.wcet).collect();
    let mut ready = BinaryHeap::new();
    let mut runs: Vec<Run> = Vec::new();
    let mut now = 0;
    loop {
        while let Some(job) = coming.next_if(|&job| jobs[job].earliest <= now) {
            ready.push(Reverse((jobs[job].deadline, job)));
        }
        let next_release = coming.peek().map(|&job| jobs[job].earliest);
        let Some(&Reverse((deadline, job))) = ready.peek() else {
            match next_release {
                Some(release) => now = release,
                None => return Ok(runs),
            }
            continue;
        };
        if now + left[job] > deadline {
            return Err(overload(jobs, &runs, now, deadline));
        }
        let end = (now + left[job]).min(next_release.unwrap_or(u64::MAX));
        match runs.last_mut().filter(|last| last.job == job && last.to == now) {
            Some(last) => last.to = end,
            None => runs.push(Run { job, from: now, to: end }),
        }
        left[job] -= end - now;
        if left[job] == 0 {
            ready.pop();
        }
        now = end;
    }
}

/// The overload that makes EDF miss a deadline: since the last slot before `now` that was idle or had a job
/// with a later deadline, jobs that were released since then have used all slots, and need more.
fn overload(jobs: &[PlannedJob], runs: &[Run], now: u64, deadline: u64) -> Overload {
    let mut from = now;
    for run in runs.iter().rev().take_while(|run| jobs[run.job].deadline <= deadline) {
        if run.to != from {
            break;
        }
        from = run.from;
    }
    let within = jobs.iter().filter(|job| job.earliest >= from && job.deadline <= deadline);
    Overload { from, to: deadline, needed: within.map(|job| job.wcet).sum() }
}
