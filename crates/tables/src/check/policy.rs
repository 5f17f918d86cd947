//! What the table says about overruns: a job is left out after one where it says so, and nowhere else.

use crate::plan::{OnOverrun, Plan};
use punctual_trace::dispatch::Turn;
use std::collections::BTreeMap;

/// Turns that wait for those of other processors. So many are not apart in a recording.
const WAITING: usize = 1 << 14;

/// What is known of tasks of which the table says that a job is left out after an overrun.
#[derive(Default)]
pub struct Policy {
    /// Turns, by first slot: those of a processor are recorded in order, those of several are not.
    waiting: BTreeMap<(u64, u32), Turn>,
    /// By task, what its last overrun leads to.
    tasks: BTreeMap<u32, State>,
}

/// After an overrun.
#[derive(Clone, Copy)]
struct State {
    /// The thread that overran.
    tid: u32,
    /// The first turn that was left out.
    left_out: Option<Turn>,
}

impl Policy {
    /// Takes a turn. Those that break the policy are returned, with the reason; `until` is the first slot
    /// that a processor lacks.
    pub fn turn(&mut self, plan: &Plan, turn: &Turn, until: u64) -> Vec<(Turn, &'static str)> {
        let skips =
            |task| plan.tasks.get(task as usize).is_some_and(|task| task.on_overrun == OnOverrun::Skip);
        let Some(task) = turn.task else { return Vec::new() };
        if !skips(task) {
            let why = "left out, which is not what its table says of overruns";
            return turn.is_skipped.then_some((*turn, why)).into_iter().collect();
        }
        self.waiting.insert((turn.slot, turn.cpu), *turn);
        self.until(plan, until)
    }

    /// Looks at the turns that begin before a slot.
    pub fn until(&mut self, plan: &Plan, until: u64) -> Vec<(Turn, &'static str)> {
        let mut broken = Vec::new();
        while let Some((&(slot, _), _)) = self.waiting.first_key_value() {
            if slot >= until && self.waiting.len() <= WAITING {
                break;
            }
            if let Some((_, turn)) = self.waiting.pop_first() {
                broken.extend(self.next(plan, &turn).map(|why| (turn, why)));
            }
        }
        broken
    }

    /// Dispatch goes on by another dispatcher, which does not know of overruns before.
    pub fn forget(&mut self, plan: &Plan) -> Vec<(Turn, &'static str)> {
        let broken = self.until(plan, u64::MAX);
        self.tasks.clear();
        broken
    }

    /// Takes the next turn of a task.
    fn next(&mut self, plan: &Plan, turn: &Turn) -> Option<&'static str> {
        let task = turn.task?;
        let state = self.tasks.get(&task).copied();
        if turn.is_skipped {
            let Some(state) = state else { return Some("left out without an overrun before") };
            let is_same = |first: Turn| {
                first.job == turn.job && turn.slot.saturating_sub(first.slot) < u64::from(plan.slots)
            };
            if !state.left_out.is_none_or(is_same) {
                return Some("left out, though one job was left out since the overrun before");
            }
            self.tasks.insert(task, State { left_out: state.left_out.or(Some(*turn)), ..state });
            return None;
        }
        // Nobody could be left out.
        if turn.is_missed || turn.tid == 0 {
            return None;
        }
        let was_to_be = state.is_some_and(|state| state.left_out.is_none() && state.tid == turn.tid);
        self.tasks.remove(&task);
        if turn.is_overrun {
            self.tasks.insert(task, State { tid: turn.tid, left_out: None });
        }
        was_to_be.then_some("given, though the table leaves out the job after an overrun")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::example;

    /// What is wrong with turns of the first task, one each ten slots: whether each overruns, and is left
    /// out.
    fn broken(on_overrun: OnOverrun, turns: &[(bool, bool)]) -> Vec<u64> {
        let mut plan = example();
        plan.tasks[0].on_overrun = on_overrun;
        let mut policy = Policy::default();
        let mut broken = Vec::new();
        for (number, &(is_overrun, is_skipped)) in turns.iter().enumerate() {
            let tid = if is_skipped { 0 } else { 7 };
            let slot = number as u64 * 10;
            let turn = Turn {
                cpu: 1,
                slot,
                slots: 2,
                task: Some(0),
                tid,
                is_overrun,
                is_skipped,
                ..Turn::default()
            };
            broken.extend(policy.turn(&plan, &turn, slot));
        }
        broken.extend(policy.until(&plan, u64::MAX));
        broken.into_iter().map(|(turn, _)| turn.slot / 10).collect()
    }

    #[test]
    fn a_job_is_left_out_after_an_overrun_and_only_then() {
        const GIVEN: (bool, bool) = (false, false);
        const OVERRUN: (bool, bool) = (true, false);
        const LEFT_OUT: (bool, bool) = (false, true);
        let nothing = Vec::<u64>::new();
        assert_eq!(broken(OnOverrun::Skip, &[GIVEN, OVERRUN, LEFT_OUT, GIVEN, OVERRUN, LEFT_OUT]), nothing);
        assert_eq!(broken(OnOverrun::Skip, &[GIVEN, LEFT_OUT, GIVEN]), [1]);
        assert_eq!(broken(OnOverrun::Skip, &[OVERRUN, LEFT_OUT, LEFT_OUT]), [2]);
        assert_eq!(broken(OnOverrun::Skip, &[OVERRUN, OVERRUN, LEFT_OUT, GIVEN]), [1]);
        for other in [OnOverrun::Continue, OnOverrun::Stop, OnOverrun::Tell] {
            assert_eq!(broken(other, &[OVERRUN, GIVEN, OVERRUN, GIVEN]), nothing);
            assert_eq!(broken(other, &[OVERRUN, LEFT_OUT, GIVEN]), [1]);
        }
    }

    #[test]
    fn turns_of_several_processors_may_be_recorded_out_of_order() {
        let mut plan = example();
        plan.tasks[0].on_overrun = OnOverrun::Skip;
        let turn = |cpu, slot, is_overrun, is_skipped| {
            let tid = if is_skipped { 0 } else { 7 };
            Turn { cpu, slot, slots: 1, task: Some(0), tid, is_overrun, is_skipped, ..Turn::default() }
        };
        let mut policy = Policy::default();
        assert_eq!(policy.turn(&plan, &turn(3, 4, false, true), 0), []);
        assert_eq!(policy.turn(&plan, &turn(1, 2, true, false), 4), []);
        assert_eq!(policy.turn(&plan, &turn(1, 12, false, false), 5), []);
        assert_eq!(policy.until(&plan, u64::MAX), []);
    }
}
