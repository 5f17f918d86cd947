//! What a processor will serve if nothing else comes. Dispatchers are told ahead: they must not wait for a
//! decision when a slot begins.

use super::machine::Member;
use super::{Machine, Served, Work};

/// Slots in a row of one job, or of none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// How many.
    pub slots: u64,
    /// What has them.
    pub work: Option<Work>,
    /// Whether the job gets no slots after these.
    pub is_last: bool,
}

/// The slots of one processor from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upcoming {
    /// What is served first.
    pub once: Vec<Stretch>,
    /// What is served after that.
    pub then: Then,
}

/// What is served over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// The table, which began with slot 0.
    Table,
    /// These slots.
    Cycle(Vec<Stretch>),
}

impl Machine {
    /// What a processor will serve; `None` if the table does not have it.
    pub fn upcoming(&self, processor: u32) -> Option<Upcoming> {
        let mut member = self.member(processor)?.clone();
        let mut once = Vec::new();
        loop {
            member.settle(self.length);
            let keeps = self.keeps_table && !member.is_shifted && member.additions.is_empty();
            if keeps && member.slots.now() >= member.vacant_until {
                return Some(Upcoming { once, then: Then::Table });
            }
            if member.slots.repeats_plan() {
                break;
            }
            push(&mut once, self.serve(&mut member));
        }
        Some(Upcoming { once, then: Then::Cycle(self.cycle(&mut member)) })
    }

    /// One repetition of the plan, which begins now.
    fn cycle(&self, member: &mut Member) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        (0..member.slots.plan().length()).for_each(|_| push(&mut stretches, self.serve(member)));
        stretches
    }
}

fn push(stretches: &mut Vec<Stretch>, served: Option<Served>) {
    let work = served.map(|served| served.work);
    let is_last = served.is_some_and(|served| served.is_last);
    match stretches.last_mut().filter(|last| last.work == work && !last.is_last) {
        Some(last) => (last.slots, last.is_last) = (last.slots + 1, is_last),
        None => stretches.push(Stretch { slots: 1, work, is_last }),
    }
}
