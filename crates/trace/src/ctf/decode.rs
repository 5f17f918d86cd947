//! Decodes the events of one packet into records. Packets are untrusted: an invalid event ends the reading of
//! its packet.

use super::fields::{Fields, TOO_EARLY};
use super::layout::*;
use super::{dispatch, latency};
use crate::{Activation, Begin, Blocked, Ready, Record, Resumed, Step, Switch, Taker, TaskRecord};
use punctual_model::{
    Disturbance, Duration, Instant, Object, ObjectName, Policy, Reservation, Separator, Window,
};

/// Where a packet is invalid, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense {
    pub offset: usize,
    pub what: &'static str,
}

/// Fields of an activation that its own event has no room for.
struct Circumstances {
    tid: u32,
    expirations: u64,
    disturbance: Option<Disturbance>,
}

/// Reads packets, one after the other.
#[derive(Default)]
pub struct Decoder {
    separators: Vec<(Separator, Ready)>,
    /// Belongs to the activation that must come next.
    circumstances: Option<Circumstances>,
    /// When the observation ended, once that event has been read.
    pub until_ns: Option<u64>,
    /// The notes that have been read.
    pub notes: Vec<String>,
}

impl Decoder {
    /// Passes on each record of a packet with its event's timestamp, in order.
    pub fn packet(
        &mut self,
        packet: &[u8],
        begin_ns: u64,
        each: &mut impl FnMut(u64, &Record),
    ) -> Result<(), Nonsense> {
        self.separators.clear();
        self.circumstances = None;
        let mut at_ns = begin_ns;
        let mut rest = packet.get(HEADER..).unwrap_or_default();
        while let Some((head, fields)) = rest.split_first_chunk::<EVENT>() {
            let offset = packet.len() - rest.len();
            let low = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
            let passed = low.wrapping_sub(at_ns as u32);
            let event = at_ns
                .checked_add(passed.into())
                .ok_or("a timestamp beyond the end of time")
                .and_then(|now| {
                    at_ns = now;
                    let mut fields = Fields { rest: fields, is_short: false };
                    self.event(head[0], now, &mut fields, each)?;
                    if fields.is_short { Err("an event that is cut off") } else { Ok(fields.rest) }
                });
            rest = event.map_err(|what| Nonsense { offset, what })?;
        }
        let what = match rest {
            [] if self.circumstances.is_none() => return Ok(()),
            [] => NO_ACTIVATION,
            _ => "an event that is cut off",
        };
        Err(Nonsense { offset: packet.len() - rest.len(), what })
    }

    #[inline(always)]
    fn event(
        &mut self,
        event: u8,
        now: u64,
        fields: &mut Fields<'_>,
        each: &mut impl FnMut(u64, &Record),
    ) -> Result<(), &'static str> {
        let activation = match event {
            ACTIVATION => self.compact(fields.array()?, now, None, 0),
            ACTIVATION_TIMED => {
                let bytes: &[u8; ACTIVATION_TIMED_BYTES - EVENT] = fields.array()?;
                let [front @ .., a0, a1, a2, a3, a4] = bytes;
                self.compact(front, now, Some(signed([*a0, *a1, *a2, *a3, *a4])), 0)
            }
            ACTIVATION_COUNTED => {
                let bytes: &[u8; ACTIVATION_COUNTED_BYTES - EVENT] = fields.array()?;
                let [front @ .., e0, e1, e2, e3] = bytes;
                self.compact(front, now, None, u32::from_le_bytes([*e0, *e1, *e2, *e3]).into())
            }
            ACTIVATION_WITHOUT_SLEEP => self.without_sleep(fields.array()?, now),
            ACTIVATION_WIDE => self.wide(fields.array()?),
            _ => {
                if self.circumstances.is_some() {
                    return Err(NO_ACTIVATION);
                }
                let record = self.other(event, now, fields)?;
                if let Some(record) = record.filter(|_| !fields.is_short) {
                    each(now, &record);
                }
                return Ok(());
            }
        };
        let mut activation = activation?;
        if let Some(circumstances) = self.circumstances.take() {
            circumstances.complete(&mut activation)?;
        }
        each(now, &Record::Activation(activation));
        Ok(())
    }

    #[inline(always)]
    fn separator(&self, number: [u8; 2]) -> Result<(Separator, Ready), &'static str> {
        let separator = self.separators.get(usize::from(u16::from_le_bytes(number)));
        separator.copied().ok_or("a separator that was not declared")
    }

    #[inline(always)]
    fn compact(
        &self,
        bytes: &[u8; ACTIVATION_BYTES - EVENT],
        now: u64,
        arrival: Option<u64>,
        expirations: u64,
    ) -> Result<Activation, &'static str> {
        let start = now.checked_sub(u32_at(bytes, 11).into()).ok_or(TOO_EARLY)?;
        let release = start.checked_sub(u32_at(bytes, 15).into()).ok_or(TOO_EARLY)?;
        let stop = start.checked_sub(low_u64(bytes, 19, 5)).ok_or(TOO_EARLY)?;
        let (separator, ready) = self.separator([bytes[1], bytes[2]])?;
        Ok(Activation {
            tid: u32_at(bytes, 3),
            sequence: u32_at(bytes, 7),
            separator,
            slept: true,
            stop: Instant::from_ns(stop),
            cpu: Duration::from_ns(low_u64(bytes, 24, 7)),
            arrival: arrival.map(|after| Instant::from_ns(release.wrapping_add(after))),
            resumed: Some(Resumed {
                expirations,
                ready,
                ..Resumed::new(Some(Window::at(Instant::from_ns(release))), Instant::from_ns(start))
            }),
        })
    }

    #[inline(always)]
    fn without_sleep(
        &self,
        bytes: &[u8; ACTIVATION_WITHOUT_SLEEP_BYTES - EVENT],
        now: u64,
    ) -> Result<Activation, &'static str> {
        let start = now.checked_sub(u32_at(bytes, 11).into()).ok_or(TOO_EARLY)?;
        let stop = start.checked_sub(low_u64(bytes, 15, 5)).ok_or(TOO_EARLY)?;
        let [.., a0, a1, a2, a3, a4] = *bytes;
        let arrival = stop.wrapping_add(signed([a0, a1, a2, a3, a4]));
        let (separator, ready) = self.separator([bytes[1], bytes[2]])?;
        Ok(Activation {
            tid: u32_at(bytes, 3),
            sequence: u32_at(bytes, 7),
            separator,
            slept: false,
            stop: Instant::from_ns(stop),
            cpu: Duration::from_ns(low_u64(bytes, 20, 7)),
            arrival: (bytes[27] != 0).then_some(Instant::from_ns(arrival)),
            resumed: Some(Resumed { ready, ..Resumed::new(None, Instant::from_ns(start)) }),
        })
    }

    fn wide(&self, bytes: &[u8; ACTIVATION_WIDE_BYTES - EVENT]) -> Result<Activation, &'static str> {
        let instant = |word: usize| Instant::from_ns(low_u64(bytes, 15 + word * 8, 8));
        let duration = |word: usize| Duration::from_ns(low_u64(bytes, 15 + word * 8, 8));
        let [slept, has_arrival, has_resumed, has_release] =
            [bytes[11], bytes[12], bytes[13], bytes[14]].map(|flag| flag != 0);
        let release = match has_release {
            true => Some(
                Window::new(instant(3), instant(4))
                    .ok_or("a release that is latest before it is earliest")?,
            ),
            false => None,
        };
        let (separator, ready) = self.separator([bytes[1], bytes[2]])?;
        Ok(Activation {
            tid: u32_at(bytes, 3),
            sequence: u32_at(bytes, 7),
            separator,
            slept,
            stop: instant(0),
            cpu: duration(1),
            arrival: has_arrival.then(|| instant(2)),
            resumed: has_resumed.then(|| Resumed {
                suspended_after: duration(6),
                ready,
                ..Resumed::new(release, instant(5))
            }),
        })
    }

    #[inline(never)]
    fn other(
        &mut self,
        event: u8,
        now: u64,
        fields: &mut Fields<'_>,
    ) -> Result<Option<Record>, &'static str> {
        let before = |ns: u64| now.checked_sub(ns).map(Instant::from_ns).ok_or(TOO_EARLY);
        Ok(Some(match event {
            SEPARATOR | SEPARATOR_NAMED | SEPARATOR_READY => {
                self.declare(event, fields)?;
                return Ok(None);
            }
            CIRCUMSTANCES => {
                let (tid, expirations) = (fields.u32(), fields.u64());
                let disturbance = disturbance(fields.u8()).ok_or("a disturbance that is not known")?;
                self.circumstances = Some(Circumstances { tid, expirations, disturbance });
                return Ok(None);
            }
            OBSERVATION_END => {
                self.until_ns = Some(before(u64::from_le_bytes(*fields.array()?))?.ns());
                return Ok(None);
            }
            NOTE => {
                self.notes.push(fields.text()?);
                return Ok(None);
            }
            TASK => Record::Task(Box::new(task(fields, now)?)),
            THREAD_KNOWN => Record::Known(Box::new(task(fields, now)?)),
            BYSTANDER => Record::Bystander(Box::new(task(fields, now)?)),
            BYSTANDER_EXIT => {
                let (tid, _sequence) = (fields.u32(), fields.u32());
                Record::BystanderExit { tid, at: before(fields.u64())? }
            }
            RENAMED => Record::Renamed { tid: fields.u32(), sequence: fields.u32(), name: fields.text()? },
            COMMAND => Record::Command { tid: fields.u32(), sequence: fields.u32(), command: fields.text()? },
            BUSY => Record::Busy {
                tid: fields.u32(),
                sequence: fields.u32(),
                cpu: Duration::from_ns(fields.u64()),
            },
            CLOCK_SET => Record::ClockSet { at: before(fields.u64())?, by_ns: fields.u64() as i64 },
            LOST => {
                Record::Lost { since: Instant::from_ns(fields.u64()), until: Instant::from_ns(fields.u64()) }
            }
            EXIT => Record::Exit { tid: fields.u32(), sequence: fields.u32(), at: before(fields.u64())? },
            LAST => Record::Last { tid: fields.u32(), sequence: fields.u32(), at: before(fields.u64())? },
            SWITCH_IN | SWITCH_OUT | WOKEN | MOVED | BLOCKED | FAULTED => {
                let (tid, cpu, at) = (fields.u32(), fields.u32(), before(fields.u64())?);
                let step = match event {
                    SWITCH_IN => Step::In,
                    WOKEN => Step::Woken { by: fields.u32() },
                    MOVED => Step::Moved { to: fields.u32() },
                    BLOCKED => Step::Blocked(Blocked {
                        owner: fields.u32(),
                        call: lasting(&fields.text()?).unwrap_or("system call"),
                        object: lasting(&fields.text()?),
                    }),
                    FAULTED => Step::Faulted { minor: fields.u32(), major: fields.u32() },
                    _ => match fields.u8() {
                        0 => Step::Preempted,
                        1 => Step::Asleep { interruptible: true },
                        2 => Step::Asleep { interruptible: false },
                        3 => Step::Stopped,
                        4 => Step::Throttled,
                        _ => return Err("a step of the scheduler that is not known"),
                    },
                };
                Record::Switch(Switch { tid, at, cpu, step })
            }
            TAKEN => {
                let (cpu, at, time) = (fields.u32(), before(fields.u64())?, Duration::from_ns(fields.u64()));
                let (kind, number, name) = (fields.u8(), fields.u32(), fields.text()?);
                let by = match kind {
                    0 => Taker::Device { number, name: lasting(&name).unwrap_or_default() },
                    1 => Taker::Softirq(number),
                    2 => Taker::Timer,
                    3 => Taker::Processor,
                    4 => Taker::Hypervisor,
                    _ => return Err("what takes a processor is not known"),
                };
                Record::Switch(Switch { tid: 0, at, cpu, step: Step::Taken { by, time } })
            }
            event if LATENCY.contains(&event) || LATENCY_LATER.contains(&event) => {
                Record::Latency(latency::record(event, now, fields)?)
            }
            event if DISPATCH.contains(&event) => Record::Dispatch(dispatch::record(event, now, fields)?),
            _ => return Err("an event that is not known"),
        }))
    }

    fn declare(&mut self, event: u8, fields: &mut Fields<'_>) -> Result<(), &'static str> {
        let number = u16::from_le_bytes([fields.u8(), fields.u8()]);
        let mut separator = separator(fields.u8(), fields.u8(), fields.u32() as i32, fields.u64())
            .ok_or("a separator that is not known")?;
        if event == SEPARATOR_NAMED {
            let text = fields.text()?;
            let Object::Address { name, .. } = &mut separator.object else {
                return Err("a name of what is not an address");
            };
            *name = ObjectName::new(&text);
        }
        if usize::from(number) != self.separators.len() {
            return Err("a separator whose number is not the next");
        }
        let ready = if event == SEPARATOR_READY { ready(fields)? } else { Ready::default() };
        self.separators.push((separator, ready));
        Ok(())
    }
}

fn ready(fields: &mut Fields<'_>) -> Result<Ready, &'static str> {
    let count = usize::from(fields.u8()).min(Ready::MOST + 1);
    let keys: Vec<u32> = (0..count).map(|_| fields.u32()).collect();
    Ready::new(&keys).ok_or("no descriptors that were ready, or too many")
}

/// A text that lives as long as the process, if there is room for it.
fn lasting(text: &str) -> Option<&'static str> {
    ObjectName::new(text).map(ObjectName::text)
}

impl Circumstances {
    /// Adds them to their activation.
    #[cold]
    fn complete(self, activation: &mut Activation) -> Result<(), &'static str> {
        let resumed =
            activation.resumed.as_mut().filter(|_| activation.tid == self.tid).ok_or(NO_ACTIVATION)?;
        resumed.expirations = self.expirations;
        resumed.disturbance = self.disturbance;
        Ok(())
    }
}

const NO_ACTIVATION: &str = "circumstances without the activation that they are of";

fn task(fields: &mut Fields<'_>, now: u64) -> Result<TaskRecord, &'static str> {
    let (tid, pid, sequence, before) = (fields.u32(), fields.u32(), fields.u32(), fields.u64());
    let begin = match fields.u8() {
        0 => Begin::Seen,
        1 => Begin::Policy,
        2 => Begin::Priority,
        3 => Begin::Affinity,
        4 => Begin::Exec,
        _ => return Err("a begin of a task that is not known"),
    };
    let policy = Policy::from_number(fields.u8().into()).ok_or("a scheduling policy that is not known")?;
    let priority = fields.u32();
    let (has_nice, nice) = (fields.u8() != 0, fields.u32() as i32);
    let is_reserved = fields.u8() != 0;
    let reservation = Reservation {
        runtime_ns: Duration::from_ns(fields.u64()),
        deadline_ns: Duration::from_ns(fields.u64()),
        period_ns: Duration::from_ns(fields.u64()),
    };
    Ok(TaskRecord {
        tid,
        pid,
        sequence,
        at: Instant::from_ns(now.checked_sub(before).ok_or(TOO_EARLY)?),
        begin,
        name: fields.text()?,
        command: fields.text()?,
        policy,
        priority,
        nice: has_nice.then_some(nice),
        reservation: is_reserved.then_some(reservation),
        affinity: fields.text()?,
    })
}

#[inline(always)]
fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A number of `length` bytes.
#[inline(always)]
fn low_u64<const N: usize>(bytes: &[u8; N], at: usize, length: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..length].copy_from_slice(&bytes[at..at + length]);
    u64::from_le_bytes(wide)
}

/// A signed number of 40 bits, for a wrapping addition.
#[inline(always)]
fn signed(bytes: [u8; 5]) -> u64 {
    let [a, b, c, d, e] = bytes;
    (i64::from_le_bytes([0, 0, 0, a, b, c, d, e]) >> 24) as u64
}
