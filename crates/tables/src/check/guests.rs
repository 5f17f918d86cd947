//! Slots of a processor while it serves guests: then jobs of the table may shift, but each still gets all its
//! slots between release and deadline, and so does each guest.
//!
//! A processor serves guests from the first slot of one on, until the table begins anew and there is none. A
//! periodic guest may have an offset: then its processor serves it from the repetition on in which the first
//! period begins.

use punctual_model::Table;
use punctual_trace::dispatch::{Guest, Turn};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of guests, and of jobs that may have shifted.
#[derive(Default)]
pub struct Ledger {
    guests: Vec<Known>,
    /// Processors that serve guests now.
    shifted: BTreeSet<u32>,
    /// Slots of jobs of the table, by the repetition of their release.
    given: BTreeMap<(u64, u32), u64>,
    /// Repetitions in which a processor has served guests.
    repetitions: BTreeSet<u64>,
    /// By processor, the first slot in the recording.
    first: BTreeMap<u32, u64>,
    /// Jobs of the table that are over, by the repetition of their release: from which slot on.
    over: BTreeMap<(u64, u32), u64>,
}

struct Known {
    guest: Guest,
    /// The slot from which on it has given back its own.
    over: Option<u64>,
    /// The job whose slots are counted, and those that it has got.
    job: u64,
    given: u64,
    /// Its slots in which it had its thread, or that were missed.
    served: u64,
    /// How many slots were guaranteed to it anew; `None` again once that was checked.
    anew: Option<u64>,
}

impl Known {
    fn is_live(&self, cpu: u32, slot: u64) -> bool {
        let is_served = self.guest.period == 0 && self.given >= u64::from(self.guest.slots);
        self.guest.cpu == cpu
            && self.guest.slot <= slot
            && self.over.is_none_or(|over| slot < over)
            && !is_served
    }

    /// Whether it is a periodic guest that may have an offset, in the period before its first release.
    fn comes(&self, cpu: u32, slot: u64, length: u64) -> bool {
        let Guest { slot: first, period, .. } = self.guest;
        // An offset is shorter than the period.
        let may_have_offset = first % length != 0 || period > length;
        let before = (first + 1).saturating_sub(period)..first;
        let is_there = self.over.is_none_or(|over| slot < over);
        self.guest.cpu == cpu && may_have_offset && before.contains(&slot) && is_there
    }

    /// The first slot after the window of the job whose slots are counted.
    fn deadline(&self) -> u64 {
        let release = self.guest.slot.saturating_add(self.job.saturating_mul(self.guest.period));
        release.saturating_add(self.guest.deadline)
    }
}

impl Ledger {
    /// A guest comes, or is guaranteed slots anew.
    pub fn guest(&mut self, guest: Guest, is_renewed: bool) {
        let is_it = |known: &&mut Known| known.guest.number == guest.number;
        if let Some(known) = self.guests.iter_mut().rev().find(is_it).filter(|_| is_renewed) {
            known.anew = Some(guest.slots.into());
        }
        self.guests.push(Known { guest, over: None, job: 0, given: 0, served: 0, anew: None });
    }

    /// A guest gives back its slots.
    pub fn over(&mut self, number: u32, slot: u64) {
        let is_it = |known: &&mut Known| known.guest.number == number && known.over.is_none();
        if let Some(known) = self.guests.iter_mut().rev().find(is_it) {
            known.over = Some(slot);
        }
    }

    /// The job of a task that has this slot in its window gives back its slots from there on.
    pub fn job_over(&mut self, table: &Table, task: u32, slot: u64) {
        let jobs = table.jobs.iter().enumerate().filter(|(_, job)| job.task == task as usize);
        for (number, _) in jobs {
            if let Some(repetition) = repetition(table, number, slot) {
                self.over.insert((repetition, number as u32), slot);
            }
        }
    }

    /// Whether a job of the table is over in one of its slots.
    pub fn is_over(&self, table: &Table, job: u32, slot: u64) -> bool {
        let repetition = repetition(table, job as usize, slot);
        repetition.is_some_and(|it| self.over.get(&(it, job)).is_some_and(|from| *from <= slot))
    }

    /// Whether a processor serves guests in this slot. Ask once for each slot, in order.
    pub fn is_shifted(&mut self, table: &Table, cpu: u32, slot: u64) -> bool {
        // A guest that is over leaves its processor shifted until the table begins anew.
        if self.guests.is_empty() && self.shifted.is_empty() {
            return false;
        }
        let any = |is_meant: &dyn Fn(&Known) -> bool| self.guests.iter().any(is_meant);
        let begins_anew = slot % table.slots == 0;
        let begins = |known: &Known| known.guest.slot == slot && known.is_live(cpu, slot);
        let serves = |known: &Known| known.is_live(cpu, slot) || known.comes(cpu, slot, table.slots);
        if any(&begins) || (begins_anew && any(&serves)) {
            self.shifted.insert(cpu);
        } else if begins_anew {
            self.shifted.remove(&cpu);
        }
        let is_shifted = self.shifted.contains(&cpu);
        if is_shifted {
            self.repetitions.insert(slot / table.slots);
        }
        is_shifted
    }

    /// A slot of a processor that serves guests. Returns what is wrong with it, in words.
    pub fn slot(&mut self, table: &Table, turn: &Turn, slot: u64) -> Result<(), String> {
        let Some(task) = turn.task else { return Ok(()) };
        if (task as usize) < table.tasks.len() {
            let job = table.jobs.get(turn.job as usize).filter(|job| job.task == task as usize);
            let job = job.ok_or("it belongs to no job of the table")?;
            let inside = job.unwrapped(slot % table.slots, table.slots);
            return inside.map(|_| ()).ok_or_else(|| "it is outside of the job's window".into());
        }
        let is_it = |known: &&mut Known| known.guest.number == task && known.guest.slot <= slot;
        let known = self.guests.iter_mut().rev().find(is_it).ok_or("there is no such guest")?;
        let Guest { cpu, slots, .. } = known.guest;
        if cpu != turn.cpu {
            return Err(format!("it is a guest on processor {cpu}"));
        }
        if known.over.is_some_and(|over| over <= slot) {
            return Err("it has given its slots back".into());
        }
        let release = known.guest.slot + known.job * known.guest.period;
        if !(release..known.deadline()).contains(&slot) || known.given >= u64::from(slots) {
            return Err(format!("its job {} has no slots left, or is not ready", known.job));
        }
        known.given += 1;
        // What was missed is told by itself.
        known.served += u64::from(turn.tid != 0 || turn.is_missed);
        Ok(())
    }

    /// Counts a slot of a job of the table, shifted or not.
    pub fn count(&mut self, table: &Table, turn: &Turn, slot: u64) {
        self.first.entry(turn.cpu).or_insert(slot);
        let is_planned = turn.task.is_some_and(|task| (task as usize) < table.tasks.len());
        let job = is_planned.then_some(turn.job as usize);
        // Of a job that would have been released before the table, there is the rest.
        if let Some(repetition) = job.and_then(|job| repetition(table, job, slot)) {
            *self.given.entry((repetition, turn.job)).or_default() += 1;
        }
    }

    /// What lacks slots, in words, with the slot by which they were due. `next` is, by processor, the slot
    /// that comes next.
    pub fn due(&mut self, table: &Table, next: &BTreeMap<u32, u64>) -> Vec<(u32, u64, String)> {
        let mut lacking = self.due_guests(next);
        let reached = next.values().copied().min().unwrap_or(0);
        let first = self.first.values().copied().max().unwrap_or(0);
        let past = |repetition: &u64| (repetition + 2) * table.slots <= reached;
        let over: Vec<u64> = self.repetitions.iter().copied().filter(past).collect();
        for repetition in over {
            self.repetitions.remove(&repetition);
            for (number, job) in table.jobs.iter().enumerate() {
                let start = repetition * table.slots;
                let given = self.given.get(&(repetition, number as u32)).copied().unwrap_or(0);
                let is_over = self.over.contains_key(&(repetition, number as u32));
                if start + job.release >= first && (given > job.slots || (given < job.slots && !is_over)) {
                    let name = &table.tasks[job.task].name;
                    let what = format!("{name} got {given} of {} before its deadline", job.slots);
                    lacking.push((table.processors[0], start + job.deadline, what));
                }
            }
        }
        // What no shifted repetition needs any more.
        let needed = self.repetitions.first().copied().unwrap_or(u64::MAX).min(reached / table.slots);
        self.given.retain(|(repetition, _), _| *repetition + 1 >= needed);
        self.over.retain(|(repetition, _), _| *repetition + 2 >= needed);
        lacking
    }

    fn due_guests(&mut self, next: &BTreeMap<u32, u64>) -> Vec<(u32, u64, String)> {
        let mut lacking = Vec::new();
        for known in &mut self.guests {
            let Some(&reached) = next.get(&known.guest.cpu) else { continue };
            if let Some((anew, over)) = known.anew.zip(known.over).filter(|(_, over)| *over <= reached) {
                known.anew = None;
                let Guest { cpu, slots, ref name, .. } = known.guest;
                if known.served + anew < u64::from(slots) {
                    let served = known.served;
                    let what = format!("{name} got {served} of {slots} with its thread, and {anew} anew");
                    lacking.push((cpu, over, what));
                }
            }
            let is_single = known.guest.period == 0;
            while known.deadline() <= reached && !(is_single && known.job > 0) {
                let deadline = known.deadline();
                let is_over = known.over.is_some_and(|over| over < deadline);
                let Guest { cpu, slots, ref name, .. } = known.guest;
                if !is_over && known.given < u64::from(slots) {
                    let what = format!("{name} got {} of {slots} before its deadline", known.given);
                    lacking.push((cpu, deadline, what));
                }
                if is_over || is_single {
                    // Nothing more is due.
                    known.over.get_or_insert(deadline);
                    known.guest.deadline = u64::MAX;
                    break;
                }
                (known.job, known.given) = (known.job + 1, 0);
            }
        }
        self.guests.retain(|known| known.guest.deadline != u64::MAX);
        lacking
    }
}

/// The repetition of the release of a job's activation that has this slot in its window.
fn repetition(table: &Table, job: usize, slot: u64) -> Option<u64> {
    let inside = table.jobs.get(job)?.unwrapped(slot % table.slots, table.slots)?;
    Some(slot.checked_sub(inside)? / table.slots)
}
