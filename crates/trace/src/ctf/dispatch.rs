//! Events of a time-triggered dispatcher: encoded into a packet, and decoded.

use super::fields::{Fields, TOO_EARLY};
use super::layout::*;
use super::packet::Packet;
use crate::dispatch::{Dispatch, Guest, Table, Task, Turn};
use punctual_model::{Duration, Instant};

const NO_TASK: u32 = u32::MAX;
const OVERRUN: u8 = 1;
const MISSED: u8 = 2;
const SKIPPED: u8 = 4;

/// Most bytes of an event, as [`Packet::dispatch`] writes it.
pub fn most_bytes(record: &Dispatch) -> usize {
    DISPATCH_MOST
        + match record {
            Dispatch::Task(task) => task.name.len().min(MAX_SHORT_TEXT) + 1,
            Dispatch::Guest(guest) => guest.name.len().min(MAX_SHORT_TEXT) + 1,
            _ => 0,
        }
}

impl Packet {
    /// Adds an event; the packet has room.
    pub fn dispatch(&mut self, record: &Dispatch, at_ns: u64) {
        match record {
            Dispatch::Table(table) => {
                let event = self.begin(TABLE, at_ns).u64(table.start.ns()).u64(table.slot.ns());
                event.u32(table.slots).flag(table.is_tai).flag(table.is_sched_ext);
            }
            Dispatch::Task(task) => {
                self.begin(TABLE_TASK, at_ns).u32(task.number).u32(task.tid).short(&task.name);
            }
            Dispatch::Turn(turn) => {
                let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
                let flags = flag(OVERRUN, turn.is_overrun)
                    | flag(MISSED, turn.is_missed)
                    | flag(SKIPPED, turn.is_skipped);
                let event = self.begin(TURN, at_ns).u32(turn.cpu).u64(turn.slot).u32(turn.slots);
                let event = event.u32(turn.task.unwrap_or(NO_TASK)).u32(turn.job).u32(turn.tid);
                let event = event.u64(turn.error.ns()).u64(turn.ran.ns()).u64(turn.outside.ns());
                event.u8(flags).u64(at_ns.wrapping_sub(turn.at.ns()));
            }
            Dispatch::Lost { cpu, count } => {
                self.begin(TURNS_LOST, at_ns).u32(*cpu).u64(*count);
            }
            Dispatch::Guest(guest) => {
                let event = self.begin(GUEST, at_ns).u32(guest.number).u32(guest.cpu).u64(guest.slot);
                event.u64(guest.deadline).u32(guest.slots).u64(guest.period).short(&guest.name);
            }
            Dispatch::GuestOver { number, slot } => {
                self.begin(GUEST_OVER, at_ns).u32(*number).u64(*slot);
            }
        }
    }
}

/// The record of an event of this kind.
pub fn record(event: u8, now: u64, fields: &mut Fields<'_>) -> Result<Dispatch, &'static str> {
    Ok(match event {
        TABLE => Dispatch::Table(Table {
            start: fields.instant(),
            slot: fields.duration(),
            slots: fields.u32(),
            is_tai: fields.flag(),
            is_sched_ext: fields.flag(),
        }),
        TABLE_TASK => {
            let (number, tid) = (fields.u32(), fields.u32());
            Dispatch::Task(Box::new(Task { number, tid, name: fields.text()? }))
        }
        TURN => Dispatch::Turn(turn(now, fields)?),
        TURNS_LOST => Dispatch::Lost { cpu: fields.u32(), count: fields.u64() },
        GUEST => Dispatch::Guest(Box::new(guest(fields)?)),
        GUEST_OVER => Dispatch::GuestOver { number: fields.u32(), slot: fields.u64() },
        _ => return Err("an event that is not known"),
    })
}

fn turn(now: u64, fields: &mut Fields<'_>) -> Result<Turn, &'static str> {
    let (cpu, slot, slots) = (fields.u32(), fields.u64(), fields.u32());
    let (task, job, tid) = (fields.u32(), fields.u32(), fields.u32());
    let [error, ran, outside] = [(); 3].map(|()| Duration::from_ns(fields.u64()));
    let (flags, before) = (fields.u8(), fields.u64());
    if flags & !(OVERRUN | MISSED | SKIPPED) != 0 {
        return Err("a flag of a turn that is not known");
    }
    Ok(Turn {
        cpu,
        slot,
        slots,
        task: Some(task).filter(|task| *task != NO_TASK),
        job,
        tid,
        error,
        ran,
        outside,
        is_overrun: flags & OVERRUN != 0,
        is_missed: flags & MISSED != 0,
        is_skipped: flags & SKIPPED != 0,
        at: now.checked_sub(before).map(Instant::from_ns).ok_or(TOO_EARLY)?,
    })
}

fn guest(fields: &mut Fields<'_>) -> Result<Guest, &'static str> {
    let (number, cpu, slot) = (fields.u32(), fields.u32(), fields.u64());
    let (deadline, slots, period) = (fields.u64(), fields.u32(), fields.u64());
    Ok(Guest { number, cpu, slot, deadline, slots, period, name: fields.text()? })
}
