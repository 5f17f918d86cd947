//! Encodes records as the events of one packet.

use super::layout::*;
use super::packet::Packet;
use super::{dispatch, latency};
use crate::{Activation, Begin, Blocked, Ready, Record, Resumed, Step, Switch, Taker, TaskRecord};
use punctual_model::{ObjectName, Separator};

impl Packet {
    /// Whether this event still fits into a non-empty packet of at most `most` bytes.
    pub fn has_room(&self, record: &Record, at_ns: u64, packet_bytes: usize) -> bool {
        self.bytes.len() + most_bytes(record) <= packet_bytes && at_ns - self.end_ns < 1 << 32
    }

    /// Adds an event at this timestamp, which is not earlier than the one before and less than 2³² later. The
    /// packet has room.
    pub fn add(&mut self, record: &Record, at_ns: u64) {
        if self.is_empty() {
            self.begin_ns = at_ns;
        }
        self.end_ns = at_ns;
        match record {
            Record::Activation(activation) => self.activation(activation, at_ns),
            Record::Task(task) => self.task(TASK, task, at_ns),
            Record::Known(task) => self.task(THREAD_KNOWN, task, at_ns),
            Record::Renamed { tid, sequence, name } => {
                self.put(at_ns, RENAMED, &[tid.to_le_bytes(), sequence.to_le_bytes()].concat());
                self.text(name, MAX_TEXT - 1);
            }
            Record::Command { tid, sequence, command } => {
                self.put(at_ns, COMMAND, &[tid.to_le_bytes(), sequence.to_le_bytes()].concat());
                self.text(command, MAX_TEXT - 1);
            }
            Record::Exit { tid, sequence, at } => self.end(EXIT, *tid, *sequence, at.ns(), at_ns),
            Record::Last { tid, sequence, at } => self.end(LAST, *tid, *sequence, at.ns(), at_ns),
            Record::Busy { tid, sequence, cpu } => {
                self.put(at_ns, BUSY, &[tid.to_le_bytes(), sequence.to_le_bytes()].concat());
                self.bytes.extend_from_slice(&cpu.ns().to_le_bytes());
            }
            Record::ClockSet { at, by_ns } => {
                self.put(at_ns, CLOCK_SET, &(at_ns - at.ns()).to_le_bytes());
                self.bytes.extend_from_slice(&by_ns.to_le_bytes());
            }
            Record::Lost { since, until } => {
                self.put(at_ns, LOST, &since.ns().to_le_bytes());
                self.bytes.extend_from_slice(&until.ns().to_le_bytes());
            }
            Record::Bystander(task) => self.task(BYSTANDER, task, at_ns),
            Record::BystanderExit { tid, at } => self.end(BYSTANDER_EXIT, *tid, 0, at.ns(), at_ns),
            Record::Switch(switch) => self.switch(switch, at_ns),
            Record::Latency(latency) => self.latency(latency, at_ns),
            Record::Dispatch(dispatch) => self.dispatch(dispatch, at_ns),
        }
    }

    #[inline]
    fn activation(&mut self, activation: &Activation, at_ns: u64) {
        self.activations += 1;
        let ready = activation.resumed.map_or(Ready::default(), |resumed| resumed.ready);
        let separator = self.separator(activation.separator, ready, at_ns);
        let mut bytes = [0; ACTIVATION_WIDE_BYTES];
        let length = compact(activation, at_ns, &mut bytes).unwrap_or_else(|| wide(activation, &mut bytes));
        bytes[1..5].copy_from_slice(&(at_ns as u32).to_le_bytes());
        bytes[5] = activation.separator.call as u8;
        bytes[6..8].copy_from_slice(&separator.to_le_bytes());
        bytes[8..12].copy_from_slice(&activation.tid.to_le_bytes());
        bytes[12..16].copy_from_slice(&activation.sequence.to_le_bytes());
        let is_known = |resumed: &&Resumed| resumed.expirations > 0 || resumed.disturbance.is_some();
        if let Some(resumed) =
            activation.resumed.as_ref().filter(is_known).filter(|_| bytes[0] != ACTIVATION_COUNTED)
        {
            self.circumstances(activation.tid, resumed, at_ns);
        }
        // The compiler knows the length, so this copy takes a few instructions.
        let end = self.bytes.len() + length;
        self.bytes.extend_from_slice(&bytes);
        self.bytes.truncate(end);
    }

    /// What the layouts have no room for.
    #[cold]
    fn circumstances(&mut self, tid: u32, resumed: &Resumed, at_ns: u64) {
        self.put(at_ns, CIRCUMSTANCES, &tid.to_le_bytes());
        self.bytes.extend_from_slice(&resumed.expirations.to_le_bytes());
        self.bytes.push(disturbance_number(resumed.disturbance));
    }

    /// The number of a separator in this packet; declares it at its first use.
    #[inline]
    fn separator(&mut self, separator: Separator, ready: Ready, at_ns: u64) -> u16 {
        let (class, number, object) = object_fields(separator.object);
        let name = separator.object.name();
        // What has a name has no number.
        let [n0, n1, n2, n3] = name.map_or(number as u32, ObjectName::number).to_le_bytes();
        let kind = [class, separator.call as u8, u8::from(name.is_some()), 0];
        let key = (u64::from_le_bytes([n0, n1, n2, n3, kind[0], kind[1], kind[2], kind[3]]), object);
        // What has a name is waited for alone.
        let is_ready = ready.is_known() && name.is_none();
        let known = match is_ready {
            true => self.with_ready.get(&(key.0, key.1, ready)),
            false => self.separators.get(&key),
        };
        if let Some(number) = known {
            return *number;
        }
        let new = (self.separators.len() + self.with_ready.len()) as u16;
        match is_ready {
            true => self.with_ready.insert((key.0, key.1, ready), new),
            false => self.separators.insert(key, new),
        };
        let mut fields = [0; SEPARATOR_BYTES - EVENT];
        fields[..2].copy_from_slice(&new.to_le_bytes());
        fields[2] = separator.call as u8;
        fields[3] = class;
        fields[4..8].copy_from_slice(&number.to_le_bytes());
        fields[8..].copy_from_slice(&object.to_le_bytes());
        match name {
            None if is_ready => {
                self.put(at_ns, SEPARATOR_READY, &fields);
                self.bytes.push(ready.keys().len() as u8);
                ready.keys().iter().for_each(|key| self.bytes.extend_from_slice(&key.to_le_bytes()));
            }
            None => self.put(at_ns, SEPARATOR, &fields),
            Some(name) => {
                self.put(at_ns, SEPARATOR_NAMED, &fields);
                self.text(name.text(), ObjectName::MOST_BYTES);
            }
        }
        new
    }

    fn task(&mut self, event: u8, task: &TaskRecord, at_ns: u64) {
        let reservation = task
            .reservation
            .map_or([0; 3], |given| [given.runtime_ns.ns(), given.deadline_ns.ns(), given.period_ns.ns()]);
        let start = self.bytes.len();
        self.put(at_ns, event, &task.tid.to_le_bytes());
        self.bytes.extend_from_slice(&task.pid.to_le_bytes());
        self.bytes.extend_from_slice(&task.sequence.to_le_bytes());
        self.bytes.extend_from_slice(&(at_ns - task.at.ns()).to_le_bytes());
        self.bytes.push(begin_number(task.begin));
        self.bytes.push(task.policy.number() as u8);
        self.bytes.extend_from_slice(&task.priority.to_le_bytes());
        self.bytes.push(u8::from(task.nice.is_some()));
        self.bytes.extend_from_slice(&task.nice.unwrap_or(0).to_le_bytes());
        self.bytes.push(u8::from(task.reservation.is_some()));
        for value in reservation {
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
        debug_assert_eq!(self.bytes.len() - start, TASK_BYTES);
        self.text(&task.name, MAX_TEXT - 1);
        self.text(&task.command, MAX_TEXT - 1);
        self.text(&task.affinity, MAX_TEXT - 1);
    }

    fn end(&mut self, event: u8, tid: u32, sequence: u32, own_ns: u64, at_ns: u64) {
        self.put(at_ns, event, &tid.to_le_bytes());
        self.bytes.extend_from_slice(&sequence.to_le_bytes());
        self.bytes.extend_from_slice(&(at_ns - own_ns).to_le_bytes());
    }

    fn switch(&mut self, switch: &Switch, at_ns: u64) {
        let mut fields = [0; 16];
        fields[..4].copy_from_slice(&switch.tid.to_le_bytes());
        fields[4..8].copy_from_slice(&switch.cpu.to_le_bytes());
        fields[8..].copy_from_slice(&(at_ns - switch.at.ns()).to_le_bytes());
        let out = match switch.step {
            Step::In => return self.put(at_ns, SWITCH_IN, &fields),
            Step::Woken { by } => {
                self.put(at_ns, WOKEN, &fields);
                return self.bytes.extend_from_slice(&by.to_le_bytes());
            }
            Step::Moved { to } => {
                self.put(at_ns, MOVED, &fields);
                return self.bytes.extend_from_slice(&to.to_le_bytes());
            }
            Step::Blocked(Blocked { call, object, owner }) => {
                self.put(at_ns, BLOCKED, &fields);
                self.bytes.extend_from_slice(&owner.to_le_bytes());
                self.text(call, ObjectName::MOST_BYTES);
                return self.text(object.unwrap_or_default(), ObjectName::MOST_BYTES);
            }
            Step::Faulted { minor, major } => {
                self.put(at_ns, FAULTED, &fields);
                self.bytes.extend_from_slice(&minor.to_le_bytes());
                return self.bytes.extend_from_slice(&major.to_le_bytes());
            }
            Step::Taken { by, time } => {
                let (kind, number, name) = match by {
                    Taker::Device { number, name } => (0, number, name),
                    Taker::Softirq(number) => (1, number, ""),
                    Taker::Timer => (2, 0, ""),
                    Taker::Processor => (3, 0, ""),
                    Taker::Hypervisor => (4, 0, ""),
                };
                // It is of no thread.
                self.put(at_ns, TAKEN, &fields[4..]);
                self.bytes.extend_from_slice(&time.ns().to_le_bytes());
                self.bytes.push(kind);
                self.bytes.extend_from_slice(&number.to_le_bytes());
                return self.text(name, ObjectName::MOST_BYTES);
            }
            Step::Preempted => 0,
            Step::Asleep { interruptible: true } => 1,
            Step::Asleep { interruptible: false } => 2,
            Step::Stopped => 3,
            Step::Throttled => 4,
        };
        self.put(at_ns, SWITCH_OUT, &fields);
        self.bytes.push(out);
    }
}

/// When a record happened, if it says so. An event's timestamp is never earlier.
#[inline]
pub fn own_ns(record: &Record) -> Option<u64> {
    let at = match record {
        Record::Activation(activation) => {
            activation.resumed.as_ref().map_or(activation.stop, |resumed| resumed.start)
        }
        Record::Task(task) | Record::Known(task) | Record::Bystander(task) => task.at,
        Record::Exit { at, .. } | Record::Last { at, .. } | Record::BystanderExit { at, .. } => *at,
        Record::Switch(switch) => switch.at,
        Record::ClockSet { at, .. } => *at,
        Record::Latency(latency) => latency.at()?,
        Record::Dispatch(dispatch) => dispatch.at()?,
        // What comes next may have happened before the end of a loss is known.
        Record::Renamed { .. } | Record::Command { .. } | Record::Busy { .. } | Record::Lost { .. } => {
            return None;
        }
    };
    Some(at.ns())
}

/// Most bytes that a record's event takes, with the separator that it may have to declare.
#[inline]
fn most_bytes(record: &Record) -> usize {
    let text = |text: &str| text.len().min(MAX_TEXT - 1) + 1;
    match record {
        Record::Activation(activation) => {
            let name = activation.separator.object.name().map_or(READY_BYTES, |_| ObjectName::MOST_BYTES + 1);
            SEPARATOR_BYTES + name + CIRCUMSTANCES_BYTES + ACTIVATION_WIDE_BYTES
        }
        Record::Task(task) | Record::Known(task) | Record::Bystander(task) => {
            TASK_BYTES + text(&task.name) + text(&task.command) + text(&task.affinity)
        }
        Record::Renamed { name, .. } => EVENT + 8 + text(name),
        Record::Command { command, .. } => EVENT + 8 + text(command),
        Record::Busy { .. }
        | Record::ClockSet { .. }
        | Record::Lost { .. }
        | Record::Exit { .. }
        | Record::Last { .. }
        | Record::BystanderExit { .. } => EVENT + 20,
        Record::Switch(switch) => match switch.step {
            Step::Blocked(blocked) => {
                EVENT + 20 + text(blocked.call) + text(blocked.object.unwrap_or_default())
            }
            Step::Taken { by: Taker::Device { name, .. }, .. } => EVENT + 25 + text(name),
            _ => EVENT + 26,
        },
        Record::Latency(record) => latency::most_bytes(record),
        Record::Dispatch(record) => dispatch::most_bytes(record),
    }
}

pub fn begin_number(begin: Begin) -> u8 {
    match begin {
        Begin::Seen => 0,
        Begin::Policy => 1,
        Begin::Priority => 2,
        Begin::Affinity => 3,
        Begin::Exec => 4,
    }
}

/// Writes an activation in one of the compact layouts, and returns its size; `None` if it fits none.
#[inline]
fn compact(activation: &Activation, at_ns: u64, bytes: &mut [u8; ACTIVATION_WIDE_BYTES]) -> Option<usize> {
    let resumed = activation.resumed.as_ref()?;
    let start = resumed.start.ns();
    let before = u32::try_from(at_ns - start).ok()?;
    let stop = start.checked_sub(activation.stop.ns())?;
    let cpu = activation.cpu.ns();
    if resumed.suspended_after.ns() != 0 || stop >> 40 != 0 || cpu >> 56 != 0 {
        return None;
    }
    bytes[16..20].copy_from_slice(&before.to_le_bytes());
    let arrival = |since: u64| match activation.arrival {
        Some(arrival) => forty_bits(arrival.ns(), since).map(Some),
        None => Some(None),
    };
    if !activation.slept {
        if resumed.release.is_some() {
            return None;
        }
        let arrival = arrival(activation.stop.ns())?;
        bytes[0] = ACTIVATION_WITHOUT_SLEEP;
        bytes[20..25].copy_from_slice(&stop.to_le_bytes()[..5]);
        bytes[25..32].copy_from_slice(&cpu.to_le_bytes()[..7]);
        bytes[32] = u8::from(arrival.is_some());
        bytes[33..38].copy_from_slice(&arrival.unwrap_or([0; 5]));
        return Some(ACTIVATION_WITHOUT_SLEEP_BYTES);
    }
    let release = resumed.release.filter(|release| release.is_exact())?.earliest().ns();
    let arrival = arrival(release)?;
    bytes[20..24].copy_from_slice(&u32::try_from(start.checked_sub(release)?).ok()?.to_le_bytes());
    bytes[24..29].copy_from_slice(&stop.to_le_bytes()[..5]);
    bytes[29..36].copy_from_slice(&cpu.to_le_bytes()[..7]);
    let Some(arrival) = arrival else {
        let expirations = u32::try_from(resumed.expirations)
            .ok()
            .filter(|number| *number > 0 && resumed.disturbance.is_none());
        let Some(expirations) = expirations else {
            bytes[0] = ACTIVATION;
            return Some(ACTIVATION_BYTES);
        };
        bytes[0] = ACTIVATION_COUNTED;
        bytes[36..40].copy_from_slice(&expirations.to_le_bytes());
        return Some(ACTIVATION_COUNTED_BYTES);
    };
    bytes[0] = ACTIVATION_TIMED;
    bytes[36..41].copy_from_slice(&arrival);
    Some(ACTIVATION_TIMED_BYTES)
}

/// The time from `since` to an instant, as a signed number of 40 bits.
#[inline]
fn forty_bits(instant: u64, since: u64) -> Option<[u8; 5]> {
    let distance = instant.wrapping_sub(since) as i64;
    let [low @ .., _, _, _] = distance.to_le_bytes();
    (distance << 24 >> 24 == distance).then_some(low)
}

/// Writes an activation in the layout that fits all, and returns its size.
#[cold]
fn wide(activation: &Activation, bytes: &mut [u8; ACTIVATION_WIDE_BYTES]) -> usize {
    let resumed = activation.resumed.as_ref();
    let release = resumed.and_then(|resumed| resumed.release);
    bytes[0] = ACTIVATION_WIDE;
    bytes[16] = u8::from(activation.slept);
    bytes[17] = u8::from(activation.arrival.is_some());
    bytes[18] = u8::from(resumed.is_some());
    bytes[19] = u8::from(release.is_some());
    let words = [
        activation.stop.ns(),
        activation.cpu.ns(),
        activation.arrival.map_or(0, |arrival| arrival.ns()),
        release.map_or(0, |release| release.earliest().ns()),
        release.map_or(0, |release| release.latest().ns()),
        resumed.map_or(0, |resumed| resumed.start.ns()),
        resumed.map_or(0, |resumed| resumed.suspended_after.ns()),
    ];
    for (place, word) in bytes[20..].chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    ACTIVATION_WIDE_BYTES
}
