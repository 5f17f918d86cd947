//! Which slots a recording lacks at its beginning and at its end, where no turn before or after shows a gap.
//!
//! Every processor of the table has slots from the first that was owed to the end that all have in common.
//! That first slot is 0, or, if the table had begun before the recording did, the one that was joined.

use crate::plan::{Lane, Plan};
use punctual_model::{Duration, Instant};
use punctual_trace::dispatch::{Table, Turn};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Processors are stopped one after the other: what ends so long before the last turn may be lacking.
const APART: Duration = Duration::from_ms(1);

/// The same if the recording was cut off: turns of processors are written one after the other.
const CUT_APART: Duration = Duration::from_ms(1_000);

/// Turns may end so much before the next one begins: accounts are taken then.
const EARLY: Duration = Duration::from_us(100);

/// What the turns so far cover.
#[derive(Default)]
pub struct Coverage {
    /// By processor, the first slot.
    first: BTreeMap<u32, u64>,
    /// The last slot in which a turn began.
    begun: u64,
    /// By processor, when the end of the last turn was noticed, its slots, and the first slot after it.
    last: BTreeMap<u32, (Instant, u32, u64)>,
    /// When slot 0 began by the first turn, on CLOCK_MONOTONIC.
    zero: Option<Instant>,
    /// By processor, turns that were lost, and whether slots are known to be missing in between.
    lost: BTreeMap<u32, u64>,
    gaps: BTreeSet<u32>,
}

/// What is known of the recording as a whole.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub table: Table,
    /// When it began (CLOCK_MONOTONIC), if that is known.
    pub from: Option<Instant>,
    /// Whether it ends before dispatch did.
    pub is_cut: bool,
}

/// Slots that a processor lacks. If it is not known how many these are, the first, and how many turns.
#[derive(Debug, PartialEq, Eq)]
pub enum Missing {
    Slots(Range<u64>),
    Turns(u64, u64),
}

impl Coverage {
    /// A turn of a processor of the table; `is_gap`: slots before it are missing.
    pub fn turn(&mut self, turn: &Turn, slot: Duration, is_gap: bool) {
        self.first.entry(turn.cpu).or_insert(turn.slot);
        self.begun = self.begun.max(turn.slot);
        let end = turn.slot.saturating_add(turn.slots.into());
        self.last.insert(turn.cpu, (turn.at, turn.slots, end));
        if is_gap {
            self.gaps.insert(turn.cpu);
        }
        if !turn.is_missed && self.zero.is_none() {
            let since_zero = slot.ns().saturating_mul(end);
            self.zero = Some(Instant::from_ns(turn.at.ns().saturating_sub(since_zero)));
        }
    }

    /// So many turns of a processor are not recorded.
    pub fn lost(&mut self, cpu: u32, count: u64) {
        *self.lost.entry(cpu).or_default() += count;
    }

    /// What is lacking, with the processor. `next` is, by processor, the slot that comes next.
    pub fn missing(&self, plan: &Plan, next: &BTreeMap<u32, u64>, bounds: &Bounds) -> Vec<(u32, Missing)> {
        let is_joined = self.is_joined(bounds);
        let firsts = plan.lanes.iter().filter_map(|lane| self.first.get(&lane.processor));
        let from = if is_joined { firsts.min().copied().unwrap_or(0) } else { 0 };
        let mut missing = Vec::new();
        for lane in &plan.lanes {
            let cpu = lane.processor;
            let first = self.first.get(&cpu).copied().unwrap_or(from);
            // The kernel's scheduler joins a table where the next turn begins.
            let is_partial = is_joined && bounds.table.is_sched_ext && begin_of(lane, plan, first) < from;
            if first > from && !is_partial {
                missing.push((cpu, Missing::Slots(from..first)));
            }
            let next = next.get(&cpu).copied().unwrap_or(from);
            if self.lacks_end(plan, lane, next, bounds) {
                missing.push((cpu, Missing::Slots(next..self.begun.max(next) + 1)));
            } else if let Some(&count) = self.lost.get(&cpu).filter(|_| !self.gaps.contains(&cpu)) {
                missing.push((cpu, Missing::Turns(next, count)));
            }
        }
        missing
    }

    /// How many slots of last turns were not over when dispatch ended.
    pub fn not_over(&self, slot: Duration, bounds: &Bounds) -> u64 {
        let Some(zero) = self.zero(bounds) else { return 0 };
        let early = EARLY.ns().min(slot.ns() / 2);
        let of_turn = |&(at, slots, end): &(Instant, u32, u64)| {
            let end = zero.ns().saturating_add(slot.ns().saturating_mul(end));
            let before = end.saturating_sub(at.ns().saturating_add(early));
            before.div_ceil(slot.ns().max(1)).min(slots.into())
        };
        self.last.values().map(of_turn).sum()
    }

    /// When slot 0 began, on CLOCK_MONOTONIC.
    fn zero(&self, bounds: &Bounds) -> Option<Instant> {
        // On CLOCK_TAI, only turns tell when it was.
        if bounds.table.is_tai { self.zero } else { Some(bounds.table.start) }
    }

    /// Whether slot 0 had passed when the recording began.
    fn is_joined(&self, bounds: &Bounds) -> bool {
        let zero = self.zero(bounds);
        zero.zip(bounds.from).is_some_and(|(zero, from)| zero <= from)
    }

    /// Whether the turn that comes next must have been recorded. The kernel's scheduler does not record the
    /// turn in which it ends.
    fn lacks_end(&self, plan: &Plan, lane: &Lane, next: u64, bounds: &Bounds) -> bool {
        if !self.first.contains_key(&lane.processor) && !bounds.table.is_sched_ext && !bounds.is_cut {
            return true;
        }
        let apart = if bounds.is_cut { CUT_APART } else { APART };
        let slots = (apart.ns() / plan.slot.ns()).max(1);
        end_of(lane, plan, next).saturating_add(slots) <= self.begun
    }
}

/// The slot after the turn of the table that a slot belongs to.
fn end_of(lane: &Lane, plan: &Plan, slot: u64) -> u64 {
    let (slots, within) = (u64::from(plan.slots), slot % u64::from(plan.slots));
    let turn = lane.turns.iter().find(|turn| within < u64::from(turn.to));
    slot - within + turn.map_or(slots, |turn| turn.to.into())
}

/// The first slot of the turn of the table that ends where this slot begins, or in which this slot is.
fn begin_of(lane: &Lane, plan: &Plan, slot: u64) -> u64 {
    let last = slot.saturating_sub(1);
    let within = last % u64::from(plan.slots);
    let turn = lane.turns.iter().rev().find(|turn| u64::from(turn.from) <= within);
    last - within + turn.map_or(0, |turn| turn.from.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::example;

    /// Slots of 1 ms; turns end at 2, 4, 5 and 10 on processor 1, at 4, 6 and 10 on processor 3.
    fn plan() -> Plan {
        Plan { slot: Duration::from_ms(1), ..example() }
    }

    fn bounds(start_ms: u64) -> Bounds {
        let (start, slot) = (Instant::from_ns(start_ms * 1_000_000), Duration::from_ms(1));
        let table = Table { start, slot, slots: 10, is_tai: false, is_sched_ext: false };
        Bounds { table, from: Some(Instant::from_ns(1_000_000_000)), is_cut: false }
    }

    /// What is lacking if processors have these slots, with the last turn's first.
    fn missing(of: &[(u32, u64, u64, u64)], bounds: &Bounds) -> Vec<(u32, Missing)> {
        let (plan, mut coverage) = (plan(), Coverage::default());
        for &(cpu, first, last, to) in of {
            for slot in [first, last] {
                coverage.turn(&Turn { cpu, slot, slots: 1, ..Turn::default() }, plan.slot, false);
            }
            assert!(last < to);
        }
        let next = of.iter().map(|&(cpu, .., to)| (cpu, to)).collect();
        coverage.missing(&plan, &next, bounds)
    }

    #[test]
    fn every_processor_has_its_slots_from_the_first_to_the_end() {
        let future = bounds(1_100);
        assert_eq!(missing(&[(1, 0, 24, 25), (3, 0, 20, 24)], &future), []);
        let slots = |cpu, slots| [(cpu, Missing::Slots(slots))];
        assert_eq!(missing(&[(1, 0, 24, 25)], &future), slots(3, 0..25), "a processor has none");
        let late = [(1, 0, 24, 25), (3, 4, 20, 24)];
        assert_eq!(missing(&late, &future), slots(3, 0..4), "it begins late");
        let short = [(1, 0, 24, 25), (3, 0, 14, 16)];
        assert_eq!(missing(&short, &future), slots(3, 16..25), "it stops early");
        assert_eq!(missing(&short, &Bounds { is_cut: true, ..future }), [], "nor was the rest written");
    }

    #[test]
    fn a_table_that_had_begun_is_joined_in_one_slot() {
        let past = bounds(900);
        assert_eq!(missing(&[(1, 104, 120, 122), (3, 104, 120, 124)], &past), []);
        let apart = [(1, 104, 120, 122), (3, 106, 120, 124)];
        assert_eq!(missing(&apart, &past), [(3, Missing::Slots(104..106))]);
        let mut kernel = past;
        kernel.table.is_sched_ext = true;
        let turns_apart = [(1, 105, 120, 122), (3, 106, 120, 124)];
        assert_eq!(missing(&turns_apart, &kernel), [], "its turn had begun");
        assert_eq!(missing(&[(1, 104, 120, 122), (3, 110, 120, 124)], &kernel).len(), 1);
    }

    #[test]
    fn on_another_clock_turns_tell_when_the_table_began() {
        let mut tai = bounds(5);
        tai.table.is_tai = true;
        let began = |at_ms: u64| {
            let mut coverage = Coverage::default();
            let turn =
                Turn { slot: 100, slots: 1, at: Instant::from_ns(at_ms * 1_000_000), ..Turn::default() };
            coverage.turn(&turn, Duration::from_ms(1), false);
            coverage.is_joined(&tai)
        };
        assert!(began(1_050) && !began(1_200));
    }

    #[test]
    fn turns_that_were_lost_at_the_end_are_lacking() {
        let (plan, mut coverage) = (plan(), Coverage::default());
        let turn = |cpu| Turn { cpu, slots: 4, ..Turn::default() };
        [1, 3].iter().for_each(|&cpu| coverage.turn(&turn(cpu), plan.slot, false));
        coverage.lost(3, 7);
        let next = BTreeMap::from([(1, 4), (3, 4)]);
        assert_eq!(coverage.missing(&plan, &next, &bounds(1_100)), [(3, Missing::Turns(4, 7))]);
        coverage.turn(&Turn { slot: 30, ..turn(3) }, plan.slot, true);
        let next = BTreeMap::from([(1, 40), (3, 34)]);
        assert_eq!(coverage.missing(&plan, &next, &bounds(1_100)), [], "the gap is reported");
    }
}
