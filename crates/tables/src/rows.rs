//! The slots of a processor from some slot on, and a cursor over them. A dispatcher serves rows until it is
//! given others; both kinds of dispatcher read them in the same way.
//!
//! Pure.

use crate::plan::{Job, Plan, Turn};
use std::collections::VecDeque;

/// Changes that may be under way at once for a processor: each begins some milliseconds after it was made.
pub const COMING: usize = 16;

/// From slot `from` on: these turns, then a cycle over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The first slot, counted since the start.
    pub from: u64,
    /// Turns from there on; each begins where the one before ends, the first with 0.
    pub once: Vec<Turn>,
    /// A slot with which the cycle begins; at most the first after `once`. There the cycle may be entered in
    /// its midst.
    pub origin: u64,
    /// The turns of the cycle; at least one.
    pub cycle: Vec<Turn>,
}

/// A row of slots of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// First slot, counted since the start.
    pub from: u64,
    /// Slot after the last.
    pub to: u64,
    /// The owner; `None`: idle.
    pub job: Option<Job>,
}

impl Rows {
    /// The table, from its beginning.
    pub fn table(plan: &Plan, lane: usize) -> Rows {
        Rows { from: 0, once: Vec::new(), origin: 0, cycle: plan.lanes[lane].turns.clone() }
    }

    /// Whose a slot is, from that slot on.
    pub fn at(&self, slot: u64) -> Stretch {
        let within = |turns: &[Turn], start: u64| {
            let place = turns.partition_point(|turn| start + u64::from(turn.to) <= slot);
            turns.get(place).map(|turn| Stretch { from: slot, to: start + u64::from(turn.to), job: turn.job })
        };
        let after_once = self.from + self.once.last().map_or(0, |turn| u64::from(turn.to));
        let length = self.cycle.last().map_or(1, |turn| u64::from(turn.to));
        let found = match slot < after_once {
            true => within(&self.once, self.from),
            false => within(&self.cycle, slot - (slot - self.origin) % length),
        };
        found.unwrap_or(Stretch { from: slot, to: slot + 1, job: None })
    }
}

/// What comes next on a processor. It allocates nothing.
#[derive(Clone, Debug)]
pub struct Cursor {
    rows: Box<Rows>,
    coming: VecDeque<Box<Rows>>,
    next: u64,
}

impl Cursor {
    /// Before the slot `next`.
    pub fn new(rows: Rows, next: u64) -> Cursor {
        Cursor { rows: Box::new(rows), coming: VecDeque::with_capacity(COMING), next }
    }

    /// The turn that comes next.
    pub fn next(&self) -> Stretch {
        let mut turn = self.rows.at(self.next);
        // Other rows may begin in the middle of it; then its job has slots there, or is over.
        if let Some(coming) = self.coming.front().filter(|coming| coming.from < turn.to) {
            turn.to = coming.from;
            turn.job = turn.job.map(|job| Job { is_last: false, ..job });
        }
        turn
    }

    /// The turn that came next has begun. Returns rows that are over.
    pub fn advance(&mut self) -> Option<Box<Rows>> {
        self.next = self.next().to;
        self.replace()
    }

    /// Skips to a slot, and drops rows that are over there.
    pub fn skip_to(&mut self, slot: u64) {
        self.next = self.next.max(slot);
        while self.replace().is_some() {}
    }

    /// The turns from here until a slot; the last one ends there.
    pub fn until(&mut self, slot: u64) -> Vec<Stretch> {
        let mut turns = Vec::new();
        while self.next < slot {
            let turn = self.next();
            turns.push(Stretch { to: turn.to.min(slot), ..turn });
            self.advance();
        }
        turns
    }

    /// Whether rows from a slot on would be taken.
    pub fn has_room(&self, from: u64) -> bool {
        match self.coming.back() {
            Some(last) if last.from >= from => last.from == from,
            _ => self.coming.len() < COMING,
        }
    }

    /// Takes rows that begin in the future. If the turn under way is to end earlier for them, `next` moves
    /// back to where they begin. Returns the rows if there is no room for them, or those that are over.
    pub fn take(&mut self, rows: Box<Rows>) -> Result<Option<Box<Rows>>, Box<Rows>> {
        let is_full = self.coming.len() == COMING;
        match self.coming.back_mut() {
            Some(last) if last.from > rows.from => return Err(rows),
            Some(last) if last.from == rows.from => return Ok(Some(std::mem::replace(last, rows))),
            _ if is_full => return Err(rows),
            _ => self.next = self.next.min(rows.from),
        }
        self.coming.push_back(rows);
        Ok(self.replace())
    }

    /// The first slot of the turn that comes next.
    pub fn slot(&self) -> u64 {
        self.next
    }

    fn replace(&mut self) -> Option<Box<Rows>> {
        if self.coming.front()?.from > self.next {
            return None;
        }
        let rows = self.coming.pop_front()?;
        Some(std::mem::replace(&mut self.rows, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::example;
    use proptest::prelude::*;

    fn job(task: u32) -> Option<Job> {
        Some(Job { task, number: 0, is_last: true })
    }

    fn turn(from: u32, to: u32, job: Option<Job>) -> Turn {
        Turn { from, to, job }
    }

    #[test]
    fn rows_are_once_and_then_a_cycle_that_began_before() {
        let cycle = vec![turn(0, 2, job(0)), turn(2, 5, None)];
        let rows = Rows { from: 11, once: vec![turn(0, 3, job(7))], origin: 10, cycle };
        let owner = |slot| rows.at(slot).job.map(|job| job.task);
        let owners: Vec<_> = (11..22).map(owner).collect();
        let seven = Some(7);
        assert_eq!(owners, [seven, seven, seven, None, Some(0), Some(0), None, None, None, Some(0), Some(0)]);
        assert_eq!(rows.at(18), Stretch { from: 18, to: 20, job: None });
    }

    #[test]
    fn a_turn_ends_where_other_rows_begin() {
        let plan = example();
        let mut cursor = Cursor::new(Rows::table(&plan, 0), 0);
        assert_eq!((cursor.next().from, cursor.next().to), (0, 2));
        cursor.advance();
        cursor.advance();
        // Slot 4 of task b has begun; 5 to 9 are idle.
        cursor.advance();
        let rows =
            Rows { from: 7, once: vec![turn(0, 2, job(9))], origin: 0, cycle: plan.lanes[0].turns.clone() };
        assert_eq!(cursor.take(Box::new(rows.clone())), Ok(None));
        assert_eq!((cursor.next().from, cursor.next().to), (5, 7));
        assert!(cursor.advance().is_some(), "the table's own rows are over");
        assert_eq!((cursor.next().to, cursor.next().job), (9, job(9)));
        cursor.advance();
        assert_eq!(cursor.next(), Stretch { from: 9, to: 10, job: None });
        cursor.advance();
        assert_eq!(cursor.next().job.map(|job| job.task), Some(0));
        // An idle turn is under way that shall end earlier.
        cursor.advance();
        cursor.advance();
        assert_eq!(cursor.slot(), 14);
        assert!(matches!(cursor.take(Box::new(Rows { from: 13, ..rows })), Ok(Some(_))));
        assert_eq!((cursor.next().from, cursor.next().job), (13, job(9)));
    }

    proptest! {
        /// Turns follow each other without a gap, whatever comes meanwhile, and each slot is that of the last
        /// rows that were taken for it.
        #[test]
        fn every_slot_has_its_owner(changes in prop::collection::vec((0_u64..30, 1_u64..9, 0_u32..5), 0..9)) {
            let plan = example();
            let mut all = vec![Rows::table(&plan, 0)];
            let mut cursor = Cursor::new(all[0].clone(), 0);
            let (mut changes, mut from) = (changes.into_iter().peekable(), 0);
            let mut now = 0;
            while now < 120 {
                while let Some((_, ahead, task)) = changes.next_if(|(at, ..)| at * 3 <= now) {
                    from = from.max(now + ahead);
                    let once = vec![turn(0, 4, job(10 + task))];
                    let rows = Rows { from, once, origin: 0, cycle: plan.lanes[0].turns.clone() };
                    if cursor.take(Box::new(rows.clone())).is_ok() {
                        all.push(rows);
                    }
                }
                // What was taken may have cut the turn under way.
                now = now.min(cursor.slot());
                let next = cursor.next();
                prop_assert!(next.from == now && next.to > now);
                let last = all.iter().rev().find(|rows| rows.from <= now).expect("the table");
                let owner = |job: Option<Job>| job.map(|job| job.task);
                prop_assert_eq!(owner(next.job), owner(last.at(now).job));
                cursor.advance();
                now = next.to;
            }
        }
    }
}
