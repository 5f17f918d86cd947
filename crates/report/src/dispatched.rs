//! What a dispatcher did with a table, from its recording: how late turns began, and who had the processors
//! in the repetition with the worst turn. The page draws it beside the table.
//!
//! A recording is read twice: [`Dispatched::count`] finds that repetition, [`Dispatched::keep`] takes it. So
//! memory does not depend on how long a table was dispatched.

use punctual_model::Duration;
use punctual_tables::check::Outcome;
use punctual_tables::{Errors, Plan, Statistics};
use punctual_trace::dispatch::{Dispatch, Turn};
use std::collections::BTreeMap;

/// The first range of errors ends here; each of the others is twice as wide as the one before.
const FIRST: Duration = Duration::from_us(1);

/// A recording of a dispatcher, counted.
#[derive(Debug)]
pub struct Dispatched {
    statistics: Statistics,
    processors: Vec<u32>,
    slots: u64,
    /// Turns by the range of their error: up to 1 µs, 2 µs, 4 µs, …
    ranges: Vec<u64>,
    /// Whether sched_ext dispatched, at the end.
    pub is_sched_ext: bool,
    /// Names of guests, by number.
    guests: BTreeMap<u32, String>,
    worst: Option<Turn>,
    /// Turns of the repetition that has the worst one, by processor.
    kept: BTreeMap<u32, Vec<Turn>>,
    /// What a check of all of it found.
    pub outcome: Outcome,
}

/// A processor of the table, and how its turns began.
#[derive(Clone, Copy, Debug)]
pub struct LaneRow<'a> {
    /// The recording.
    pub dispatched: &'a Dispatched,
    /// Its place among the processors.
    pub lane: usize,
}

impl LaneRow<'_> {
    pub(crate) fn processor(&self) -> u32 {
        self.dispatched.processors[self.lane]
    }

    pub(crate) fn turns(&self) -> u64 {
        self.dispatched.statistics.lanes[self.lane].turns
    }

    pub(crate) fn missed(&self) -> u64 {
        self.dispatched.statistics.lanes[self.lane].missed
    }

    pub(crate) fn errors(&self) -> Option<Errors> {
        self.dispatched.statistics.lanes[self.lane].errors()
    }
}

impl Dispatched {
    /// Of a plan, with nothing counted yet.
    pub fn new(plan: &Plan) -> Dispatched {
        Dispatched {
            statistics: Statistics::new(plan),
            processors: plan.lanes.iter().map(|lane| lane.processor).collect(),
            slots: u64::from(plan.slots).max(1),
            ranges: Vec::new(),
            is_sched_ext: false,
            guests: BTreeMap::new(),
            worst: None,
            kept: BTreeMap::new(),
            outcome: Outcome::default(),
        }
    }

    /// Counts a record.
    pub fn count(&mut self, record: &Dispatch) {
        match record {
            Dispatch::Table(table) => self.is_sched_ext = table.is_sched_ext,
            Dispatch::Guest(guest) => _ = self.guests.insert(guest.number, guest.name.clone()),
            Dispatch::Turn(turn) => self.count_turn(turn),
            Dispatch::Task(_) | Dispatch::Lost { .. } | Dispatch::GuestOver { .. } => {}
        }
    }

    fn count_turn(&mut self, turn: &Turn) {
        let lane = self.processors.iter().position(|processor| *processor == turn.cpu);
        self.statistics.add(lane.unwrap_or(usize::MAX), turn);
        if !turn.is_missed {
            let range = range(turn.error);
            self.ranges.resize(self.ranges.len().max(range + 1), 0);
            self.ranges[range] += 1;
        }
        let weight = |turn: &Turn| (turn.is_missed, turn.error);
        if self.worst.is_none_or(|worst| weight(turn) > weight(&worst)) {
            self.worst = Some(*turn);
        }
    }

    /// Keeps a record if it belongs to the repetition with the worst turn. Call it for all records once all
    /// are counted.
    pub fn keep(&mut self, record: &Dispatch) {
        let Dispatch::Turn(turn) = record else { return };
        let (from, to) = self.repetition();
        if turn.slot < to && turn.slot + u64::from(turn.slots) > from {
            self.kept.entry(turn.cpu).or_default().push(*turn);
        }
    }

    /// Slots of the repetition with the worst turn, since the start; the second is the one after them.
    pub(crate) fn repetition(&self) -> (u64, u64) {
        let from = self.worst.map_or(0, |worst| worst.slot - worst.slot % self.slots);
        (from, from + self.slots)
    }

    /// The turn that was missed, or began the latest.
    pub(crate) fn worst(&self) -> Option<&Turn> {
        self.worst.as_ref()
    }

    /// Turns of a processor in that repetition.
    pub(crate) fn turns(&self, processor: u32) -> &[Turn] {
        self.kept.get(&processor).map_or(&[], Vec::as_slice)
    }

    /// The name of a guest.
    pub(crate) fn guest(&self, number: u32) -> &str {
        self.guests.get(&number).map_or("a guest", String::as_str)
    }

    /// A row for each processor.
    pub(crate) fn rows(&self) -> impl Iterator<Item = LaneRow<'_>> {
        (0..self.processors.len()).map(|lane| LaneRow { dispatched: self, lane })
    }

    /// Ranges of errors, from the first to the last that has a turn: where each ends, and its turns.
    pub(crate) fn ranges(&self) -> Vec<(Duration, u64)> {
        let bound = |range: usize| Duration::from_ns(FIRST.ns() << range);
        let all = self.ranges.iter().enumerate().map(|(range, turns)| (bound(range), *turns));
        all.skip_while(|(_, turns)| *turns == 0).collect()
    }
}

/// The range of an error, from 0 on.
fn range(error: Duration) -> usize {
    let units = error.ns().div_ceil(FIRST.ns()).max(1);
    units.next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use punctual_tables::{Clock, Planned, Run, Selector, Task};

    /// Ten slots of 3 ms, of `sense` and `act`, as the example's table has them.
    pub(crate) fn plan() -> Plan {
        let task = |name: &str| Task {
            name: name.into(),
            thread: Selector::named(name),
            on_overrun: Default::default(),
            sleep_ends_job: false,
        };
        let head = Plan {
            slot: Duration::from_ms(3),
            slots: 10,
            clock: Clock::Monotonic,
            tasks: vec![task("sense"), task("act")],
            lanes: Vec::new(),
            table: None,
        };
        let runs = [
            Run { processor: 1, from: 0, to: 2, job: 0 },
            Run { processor: 1, from: 2, to: 3, job: 1 },
            Run { processor: 1, from: 6, to: 8, job: 0 },
        ];
        let jobs = [0, 1].map(|task| Planned { task, release: 0 });
        Plan::new(head, &[1], &runs, &jobs).expect("a table")
    }

    pub(crate) fn turn(slot: u64, slots: u32, task: Option<u32>, error_us: u64) -> Turn {
        let error = Duration::from_us(error_us);
        Turn { cpu: 1, slot, slots, task, tid: 7, error, ran: Duration::from_ms(1), ..Turn::default() }
    }

    /// Two repetitions; in the second one, a slot is late and one is missed.
    pub(crate) fn example() -> Dispatched {
        let mut dispatched = Dispatched::new(&plan());
        let mut turns: Vec<Turn> = Vec::new();
        for from in [0, 10] {
            let late = if from == 10 { 700 } else { 3 };
            turns.push(turn(from, 2, Some(0), 1));
            turns.push(turn(from + 2, 1, Some(1), late));
            turns.push(turn(from + 3, 3, None, 2));
            turns.push(Turn { is_missed: from == 10, ..turn(from + 6, 2, Some(0), 5) });
            turns.push(turn(from + 8, 2, None, 2));
        }
        let records: Vec<Dispatch> = turns.into_iter().map(Dispatch::Turn).collect();
        records.iter().for_each(|record| dispatched.count(record));
        records.iter().for_each(|record| dispatched.keep(record));
        dispatched
    }

    #[test]
    fn errors_are_in_ranges_whose_bounds_are_powers_of_two() {
        let us = |error| range(Duration::from_us(error));
        assert_eq!([0, 1, 2, 3, 4, 5, 1_024].map(us), [0, 0, 1, 2, 2, 3, 10]);
        assert_eq!(range(Duration::from_ns(1_001)), 1);
        let dispatched = example();
        let ranges: Vec<(u64, u64)> =
            dispatched.ranges().iter().map(|(bound, turns)| (bound.ns() / 1_000, *turns)).collect();
        let of = |bound| ranges.iter().find(|range| range.0 == bound).map(|range| range.1);
        assert_eq!((of(1), of(2), of(4), of(8), of(1_024)), (Some(2), Some(4), Some(1), Some(1), Some(1)));
        assert_eq!(ranges.iter().map(|range| range.1).sum::<u64>(), 9, "the missed one has no error");
    }

    #[test]
    fn the_repetition_with_the_worst_turn_is_kept() {
        let dispatched = example();
        assert_eq!(dispatched.repetition(), (10, 20));
        let slots: Vec<u64> = dispatched.turns(1).iter().map(|turn| turn.slot).collect();
        assert_eq!(slots, [10, 12, 13, 16, 18]);
        assert!(dispatched.worst().is_some_and(|worst| worst.is_missed && worst.slot == 16));
        assert!(dispatched.turns(3).is_empty());
    }
}
