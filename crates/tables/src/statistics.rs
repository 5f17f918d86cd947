//! What the turns of a table came to: counts, and how late the processor was handed over. Pure.

use crate::plan::Plan;
use punctual_extract::Histogram;
use punctual_model::Duration;
use punctual_trace::dispatch::Turn;
use serde::{Deserialize, Serialize};

/// Sums over all turns so far.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// By processor of the plan.
    pub lanes: Vec<LaneStatistics>,
    /// By task of the plan.
    pub tasks: Vec<TaskStatistics>,
}

/// Of one processor.
#[derive(Clone, Debug, Default)]
pub struct LaneStatistics {
    /// Turns that are over, idle ones too.
    pub turns: u64,
    /// Their slots.
    pub slots: u64,
    /// Turns at whose end the dispatcher came, so that nobody got them.
    pub missed: u64,
    /// Turns that are not recorded.
    pub lost: u64,
    /// Errors of the turns that were not missed.
    errors: Histogram<7>,
}

/// Of one task.
#[derive(Clone, Debug, Default)]
pub struct TaskStatistics {
    /// Turns that are over.
    pub turns: u64,
    /// Turns in which it had no thread.
    pub unserved: u64,
    /// Ends of jobs at which its thread was still ready.
    pub overruns: u64,
    /// Turns that were left out after an overrun.
    pub skipped: u64,
    /// Turns that were missed.
    pub missed: u64,
    /// Jobs that ended early and gave slots back.
    pub early: u64,
    /// Processor time in its turns.
    pub ran: Duration,
    /// The most that it ran between two turns.
    pub outside_max: Duration,
}

/// From the beginning of a slot until the processor was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Median.
    pub p50_ns: Duration,
    /// 99th percentile.
    pub p99_ns: Duration,
    /// Greatest.
    pub max_ns: Duration,
}

impl Statistics {
    /// Of no turns.
    pub fn new(plan: &Plan) -> Statistics {
        Statistics {
            lanes: vec![LaneStatistics::default(); plan.lanes.len()],
            tasks: vec![TaskStatistics::default(); plan.tasks.len()],
        }
    }

    /// Adds a turn of a lane.
    pub fn add(&mut self, lane: usize, turn: &Turn) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.turns += 1;
            lane.slots += u64::from(turn.slots);
            match turn.is_missed {
                true => lane.missed += 1,
                false => _ = lane.errors.add(turn.error),
            }
        }
        let task = turn.task.and_then(|task| self.tasks.get_mut(task as usize));
        let Some(task) = task else { return };
        task.turns += 1;
        task.overruns += u64::from(turn.is_overrun);
        task.missed += u64::from(turn.is_missed);
        task.skipped += u64::from(turn.is_skipped);
        task.unserved += u64::from(turn.tid == 0 && !turn.is_missed && !turn.is_skipped);
        task.ran += turn.ran;
        task.outside_max = task.outside_max.max(turn.outside);
    }

    /// Overruns of all tasks.
    pub fn overruns(&self) -> u64 {
        self.tasks.iter().map(|task| task.overruns).sum()
    }

    /// Errors of all lanes.
    pub fn errors(&self) -> Option<Errors> {
        let mut all = Histogram::<7>::default();
        self.lanes.iter().for_each(|lane| all.merge(&lane.errors));
        errors(&all)
    }
}

impl LaneStatistics {
    /// Errors of the turns so far; `None` if there was none.
    pub fn errors(&self) -> Option<Errors> {
        errors(&self.errors)
    }
}

/// Percentiles are at most one part in 64 above the exact value.
fn errors(histogram: &Histogram<7>) -> Option<Errors> {
    let (quantiles, max_ns) = (histogram.quantiles()?, histogram.greatest()?);
    Some(Errors { p50_ns: quantiles.p50_ns, p99_ns: quantiles.p99_ns, max_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::example;

    #[test]
    fn turns_are_counted_by_processor_and_task() {
        let mut statistics = Statistics::new(&example());
        let us = Duration::from_us;
        let turn = Turn { slots: 2, task: Some(0), tid: 9, error: us(5), ran: us(3), ..Turn::default() };
        statistics.add(0, &turn);
        statistics.add(0, &Turn { task: None, error: us(7), ..turn });
        statistics.add(1, &Turn { is_overrun: true, outside: us(1), ..turn });
        statistics.add(1, &Turn { is_missed: true, error: us(9_000), tid: 0, ..turn });
        statistics.add(1, &Turn { tid: 0, ..turn });
        let lane = &statistics.lanes[0];
        assert_eq!((lane.turns, lane.slots, lane.missed), (2, 4, 0));
        assert_eq!(lane.errors().map(|errors| errors.max_ns), Some(us(7)));
        let task = &statistics.tasks[0];
        assert_eq!((task.turns, task.overruns, task.missed, task.unserved), (4, 1, 1, 1));
        assert_eq!(task.outside_max, us(1));
        assert_eq!(statistics.errors().map(|errors| errors.max_ns), Some(us(7)), "a missed one has no error");
    }
}
