//! What user space keeps of a processor whose table the kernel's scheduler carries out: which rows it was
//! given, where these are in the map of turns, and how far its records have been read.

use super::interface;
use crate::bell::Bell;
use punctual_tables::rows::{Cursor, Rows, Stretch};
use punctual_tables::{Plan, Turn};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places in the map of turns for rows that are published, for each turn of the table, and besides. Rows are
/// the table's turns with those of guests in between; and the ones before them are in use for a while.
const TIMES: usize = 4;
const BESIDES: usize = 4096;

/// A processor.
#[derive(Debug)]
pub struct Lane {
    /// Its turns whose records have not been read.
    pub unread: Cursor,
    /// Those that its tick waits for.
    pub tick: Arc<Awaited>,
    /// The table's own turns, which are always in the map.
    table: Vec<Turn>,
    table_at: u32,
    room: Room,
    /// Changes of rows so far.
    published: u64,
}

/// Turns that a tick waits for, and how to tell it that there are others.
#[derive(Debug)]
pub struct Awaited {
    pub bell: Bell,
    turns: Mutex<Cursor>,
}

impl Awaited {
    /// The turns. Nobody keeps them for long.
    pub fn turns(&self) -> MutexGuard<'_, Cursor> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows, and what has to be written to the map of turns for them.
#[derive(Debug)]
pub struct Placed {
    /// As the kernel reads them.
    pub rows: interface::Rows,
    /// Turns, with the place of the first.
    pub turns: Vec<(u32, Vec<Turn>)>,
    used: Range<u32>,
}

impl Lane {
    /// Of a table whose turns for this processor begin at `table_at`. What is published goes to `room`.
    pub fn new(plan: &Plan, number: usize, table_at: u32, room: Range<u32>) -> Lane {
        let cursor = Cursor::new(Rows::table(plan, number), 0);
        Lane {
            unread: cursor.clone(),
            tick: Arc::new(Awaited { bell: Bell::default(), turns: Mutex::new(cursor) }),
            table: plan.lanes[number].turns.clone(),
            table_at,
            room: Room { all: room, used: VecDeque::new() },
            published: 0,
        }
    }

    /// Places that the map of turns needs for a processor, besides the table's.
    pub fn room(plan: &Plan, number: usize) -> u32 {
        u32::try_from(TIMES * plan.lanes[number].turns.len() + BESIDES).unwrap_or(u32::MAX)
    }

    /// The table, as the kernel reads it.
    pub fn table(&self) -> interface::Rows {
        interface::Rows {
            cycle: self.table_at,
            cycle_count: self.table.len() as u32,
            cycle_slots: length(&self.table),
            ..interface::Rows::default()
        }
    }

    /// How often rows have been published.
    pub fn published(&self) -> u64 {
        self.published
    }

    /// Finds a place for rows; `None` if there is no room.
    pub fn place(&mut self, rows: &Rows) -> Option<Placed> {
        let is_free = self.unread.has_room(rows.from) && self.tick.turns().has_room(rows.from);
        if !is_free || rows.cycle.is_empty() {
            return None;
        }
        let is_table = rows.cycle == self.table;
        let cycle = if is_table { &[][..] } else { &rows.cycle };
        let count = u32::try_from(rows.once.len() + cycle.len()).ok()?;
        let used = self.room.find(count, self.unread.slot())?;
        let once_at = used.start;
        let cycle_at = if is_table { self.table_at } else { once_at + rows.once.len() as u32 };
        let mut turns = vec![(once_at, rows.once.clone())];
        if !is_table {
            turns.push((cycle_at, rows.cycle.clone()));
        }
        let placed = interface::Rows {
            from: rows.from,
            after: rows.from + u64::from(length(&rows.once)),
            origin: rows.origin,
            once: once_at,
            once_count: rows.once.len() as u32,
            cycle: cycle_at,
            cycle_count: rows.cycle.len() as u32,
            cycle_slots: length(&rows.cycle),
            reserved: 0,
        };
        Some(Placed { rows: placed, turns, used })
    }

    /// These rows have been published.
    pub fn keep(&mut self, rows: Rows, placed: Placed) {
        self.room.used.push_back((rows.from, placed.used));
        self.published += 1;
        let rows = Box::new(rows);
        // There was room a moment ago, and only this adds to it.
        let _ = self.tick.turns().take(rows.clone());
        let _ = self.unread.take(rows);
        self.tick.bell.ring();
    }

    /// Turns that nobody carried out, from where records have been read to `slot`; or from `from`, if records
    /// are lost.
    pub fn missed(&mut self, from: u64, slot: u64) -> Vec<Stretch> {
        self.unread.skip_to(from);
        self.unread.until(slot)
    }
}

/// Slots of turns.
fn length(turns: &[Turn]) -> u32 {
    turns.last().map_or(0, |turn| turn.to)
}

/// Places in the map of turns.
#[derive(Debug)]
struct Room {
    all: Range<u32>,
    /// Those in use, in the order in which they were given, with the first slot of their rows.
    used: VecDeque<(u64, Range<u32>)>,
}

impl Room {
    /// As many places next to each other; those of rows that are over at `slot` are free.
    fn find(&mut self, count: u32, slot: u64) -> Option<Range<u32>> {
        while self.used.get(1).is_some_and(|(from, _)| *from <= slot) {
            self.used.pop_front();
        }
        let after_last = self.used.back().map_or(self.all.start, |(_, last)| last.end);
        [after_last, self.all.start].into_iter().find_map(|start| {
            let found = start..start.checked_add(count)?;
            let is_free =
                self.used.iter().all(|(_, used)| used.end <= found.start || found.end <= used.start);
            (found.end <= self.all.end && is_free).then_some(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_tables::Job;
    use punctual_tables::example::example;

    fn guest(from: u64, slots: u32, plan: &Plan) -> Rows {
        let job = Some(Job { task: 9, number: 0, is_last: true });
        let once = vec![Turn { from: 0, to: slots, job }];
        Rows { from, once, origin: 0, cycle: plan.lanes[0].turns.clone() }
    }

    #[test]
    fn the_table_is_in_the_map_only_once() {
        let plan = example();
        let mut lane = Lane::new(&plan, 0, 3, 100..200);
        let placed = lane.place(&guest(7, 2, &plan)).expect("room");
        assert_eq!((placed.rows.from, placed.rows.after, placed.rows.once), (7, 9, 100));
        assert_eq!((placed.rows.cycle, placed.rows.cycle_slots), (3, plan.slots));
        assert_eq!(placed.turns.len(), 1);
        let other = Rows { origin: 9, cycle: vec![Turn { from: 0, to: 5, job: None }], ..guest(7, 2, &plan) };
        let placed = lane.place(&other).expect("room");
        assert_eq!((placed.rows.once, placed.rows.cycle, placed.rows.cycle_slots), (100, 101, 5));
    }

    #[test]
    fn missed_turns_are_those_of_the_rows_at_that_time() {
        let plan = example();
        let mut lane = Lane::new(&plan, 0, 0, 100..200);
        let rows = guest(2, 2, &plan);
        let placed = lane.place(&rows).expect("room");
        lane.keep(rows, placed);
        let missed = lane.missed(0, 5);
        let owners: Vec<_> = missed.iter().map(|it| (it.from, it.to, it.job.map(|job| job.task))).collect();
        assert_eq!(owners, [(0, 2, Some(0)), (2, 4, Some(9)), (4, 5, Some(1))]);
        assert!(lane.missed(5, 5).is_empty());
        assert_eq!(lane.missed(12, 14).len(), 1, "slots 5 to 11 are lost, not missed");
    }

    proptest! {
        /// Places in use are never given again, and those of rows that are over are.
        #[test]
        fn places_are_not_shared(steps in prop::collection::vec((1_u64..9, 1_u32..30), 1..200)) {
            let mut room = Room { all: 10..110, used: VecDeque::new() };
            let (mut slot, mut given) = (0, Vec::<(u64, Range<u32>)>::new());
            for (ahead, count) in steps {
                let from = slot + ahead;
                if let Some(found) = room.find(count, slot) {
                    prop_assert!(found.len() == count as usize && found.start >= 10 && found.end <= 110);
                    let in_use = given.iter().enumerate().filter(|(at, _)| {
                        given.get(at + 1).is_none_or(|next| next.0 > slot)
                    });
                    for (_, (_, used)) in in_use {
                        prop_assert!(used.end <= found.start || found.end <= used.start);
                    }
                    room.used.push_back((from, found.clone()));
                    given.push((from, found));
                } else {
                    prop_assert!(!room.used.is_empty());
                }
                slot = from;
            }
        }
    }
}
