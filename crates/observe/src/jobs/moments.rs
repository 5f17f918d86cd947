//! The last moments of each processor: a ring of steps of the scheduler, in memory that the programs share
//! with user space and overwrite without asking. Read only on demand; reading stops nobody.

use super::records::{self, Entry};
use super::skeleton::types::{
    blocked_flags, blocked_record, header, limits, moments as Ring, record_kind, step as RawStep,
    switch_record, taken_record,
};
use crate::error::{Error, ErrorKind};
use crate::loader::{Plain, read_plain};
use memmap2::{MmapOptions, MmapRaw};
use punctual_model::Instant;
use punctual_trace::{Record, Step, Switch};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::sync::atomic::{Ordering, fence};

const SLOT: usize = limits::SLOT_SIZE.0 as usize;
const MOST_SLOTS: usize = limits::SLOTS_WITH_NAME.0 as usize;
const SLOTS_AT: usize = offset_of!(Ring, slots);
const SHORT_NAME: usize = limits::SHORT_NAME_LENGTH.0 as usize;
const SHORT_NAME_AT: usize = offset_of!(blocked_record, argument);

/// Memory for one processor: 50,000 sleeps and wake-ups, or 200 ms of 80,000 switches per second.
const BYTES: u32 = 2 << 20;
/// Memory for all. With more than 16 processors, each has less.
const MOST_BYTES: u32 = 32 << 20;
/// The least that each has.
const LEAST_BYTES: u32 = 64 << 10;

// SAFETY: generated from a C struct of integers.
unsafe impl Plain for Ring {}

/// How many slots the ring of each of so many processors has; a power of two.
pub fn slots(processors: u32) -> u32 {
    let share = MOST_BYTES / processors.next_power_of_two().max(1);
    share.clamp(LEAST_BYTES, BYTES) / SLOT as u32
}

/// The size of a ring in memory.
pub fn size(slots: u32) -> u32 {
    size_of::<Ring>() as u32 + slots * SLOT as u32
}

/// The rings, as user space sees them.
pub struct Rings {
    memory: MmapRaw,
    processors: usize,
    slots: usize,
}

/// What was kept.
#[derive(Debug, Default)]
pub struct Moments {
    /// All steps since then.
    pub from: Instant,
    /// In the order of time. As of `from`, the last step of each thread from before.
    pub steps: Vec<Switch>,
    /// Times in which some were not readable.
    pub gaps: Vec<(Instant, Instant)>,
}

impl Rings {
    /// Maps the rings of so many processors.
    pub fn open(map: &impl AsFd, processors: u32, slots: u32) -> Result<Rings, Error> {
        let (processors, slots) = (processors as usize, slots as usize);
        let length = processors * size(slots as u32) as usize;
        let mapped = MmapOptions::new().len(length).map_raw_read_only(map.as_fd().as_raw_fd());
        let memory = mapped.map_err(|error| {
            Error::new(ErrorKind::Kernel, format!("cannot map the last moments of processors: {error}"))
        })?;
        Ok(Rings { memory, processors, slots })
    }

    /// Reads what happened since `since`, as far as it is still kept. `translate` makes records of entries.
    pub fn read(&self, since: Instant, mut translate: impl FnMut(Entry) -> Record) -> Moments {
        let rings: Vec<Copied> = (0..self.processors).map(|cpu| self.processor(cpu)).collect();
        let oldest = rings.iter().filter_map(Copied::oldest).max();
        let from = since.max(oldest.unwrap_or(since));
        let mut moments = Moments { from, ..Moments::default() };
        let mut before = HashMap::new();
        for ring in &rings {
            ring.walk(&mut moments, &mut before, &mut translate);
        }
        let mut before: Vec<Last> = before.into_values().collect();
        before.sort_by_key(|steps| Reverse(steps.last().map(|step| step.at)));
        // A thread whose end or departure was not seen has no processor.
        let mut taken = HashSet::new();
        let mut is_now = |step: &Switch| step.step != Step::In || taken.insert(step.cpu);
        before.retain(|steps| steps.last().is_some_and(&mut is_now));
        let before = before.into_iter().rev().flat_map(|mut steps| {
            // Whoever left a processor had it.
            let had = steps.last().filter(|step| leaves(step)).map(|step| Switch { step: Step::In, ..*step });
            steps.splice(..0, had);
            steps
        });
        let before = before.map(|step| Switch { at: from, ..step });
        moments.steps.sort_by_key(|step| step.at);
        moments.steps.splice(..0, before);
        moments
    }

    /// Copies the ring of a processor.
    fn processor(&self, cpu: usize) -> Copied {
        let at = cpu * size(self.slots as u32) as usize;
        // SAFETY: `taken` lies within the mapped memory, is aligned (so is the size of a ring), and only ever
        // written as a whole.
        let taken = || unsafe { self.memory.as_ptr().add(at).cast::<u64>().read_volatile() };
        let until = taken();
        fence(Ordering::Acquire);
        let used = (until.min(self.slots as u64) as usize + MOST_SLOTS - 1) * SLOT;
        let mut bytes = vec![0; used];
        // SAFETY: as many bytes are mapped from there. The programs may write to them meanwhile: bytes have
        // no invalid values, and those that may have changed are not used.
        unsafe { self.memory.as_ptr().add(at + SLOTS_AT).copy_to_nonoverlapping(bytes.as_mut_ptr(), used) };
        fence(Ordering::Acquire);
        // What was claimed meanwhile may have been overwritten while it was copied.
        let first = (taken() + MOST_SLOTS as u64).saturating_sub(self.slots as u64);
        Copied { cpu: cpu as u32, bytes, slots: self.slots, first, until }
    }
}

/// The last moments of a processor.
struct Copied {
    cpu: u32,
    bytes: Vec<u8>,
    slots: usize,
    /// The number of the first slot that is still what it was, and of the first that was not taken yet.
    first: u64,
    until: u64,
}

/// A record that was kept.
enum Kept {
    /// What a thread waits for, which comes just before its step and has no time of its own.
    Blocked(blocked_record),
    /// A step, or both of a switch.
    Steps(Option<Switch>, Option<Switch>),
    /// The last switch of a thread, and who came.
    Ended(u32, Option<Switch>),
}

/// The last step of a thread, after what was recorded with it.
type Last = Vec<Switch>;

impl Copied {
    /// Where older steps were overwritten: when the oldest was that is left.
    fn oldest(&self) -> Option<Instant> {
        let mut places = if self.first > 0 { self.first..self.until } else { 0..0 };
        places.find_map(|place| match self.kept(place)?.0 {
            Kept::Steps(left, came) => left.or(came).map(|step| step.at),
            Kept::Blocked(_) | Kept::Ended(..) => None,
        })
    }

    /// Adds what happened since the beginning of the moments to them, and the last steps before to those of
    /// other processors.
    fn walk(
        &self,
        moments: &mut Moments,
        before: &mut HashMap<u32, Last>,
        translate: &mut impl FnMut(Entry) -> Record,
    ) {
        let (mut place, mut last, mut is_broken) = (self.first, None, false);
        let (mut waits, mut details): (Option<blocked_record>, _) = (None, Vec::new());
        while place < self.until {
            let Some((kept, slots)) = self.kept(place) else {
                (is_broken, place) = (true, place + 1);
                continue;
            };
            place += slots;
            let (left, came) = match kept {
                Kept::Blocked(raw) => {
                    waits = Some(raw);
                    continue;
                }
                Kept::Steps(left, came) => (left, came),
                Kept::Ended(tid, came) => {
                    before.remove(&tid);
                    (None, came)
                }
            };
            for step in [left, came].into_iter().flatten() {
                let at = step.at;
                if let Some(last) = last.filter(|_| is_broken) {
                    moments.gaps.push((last, at));
                }
                (last, is_broken) = (Some(at), false);
                let with = waits.take_if(|raw| raw.header.tid == step.tid);
                let with = with.map(|raw| Entry::Blocked(Box::new(blocked_record { at: at.ns(), ..raw })));
                let entries = with.into_iter().chain([Entry::Record(Record::Switch(step))]);
                details.extend(entries.filter_map(|entry| match translate(entry) {
                    Record::Switch(step) => Some(step),
                    _ => None,
                }));
                if at >= moments.from {
                    moments.steps.append(&mut details);
                } else {
                    note_last(&mut details, before);
                }
            }
        }
    }

    /// What begins at a slot, and how many slots it takes; `None` if no record that is whole begins there.
    fn kept(&self, place: u64) -> Option<(Kept, u64)> {
        let at = (place % self.slots as u64) as usize * SLOT;
        let header: header = read_plain(self.bytes.get(at..)?)?;
        let slots = usize::from(header.object_class);
        if header.sequence != place as u32 || !(1..=MOST_SLOTS).contains(&slots) {
            return None;
        }
        let cpu = self.cpu;
        let mut bytes = [0; MOST_SLOTS * SLOT];
        let used = slots * SLOT;
        bytes[..used].copy_from_slice(self.bytes.get(at..at + used)?);
        let kept = match record_kind(header.kind.into()) {
            record_kind::RECORD_TAKEN => {
                let raw: taken_record = read_plain(&bytes)?;
                Kept::Steps(Some(records::taken(&taken_record { cpu, ..raw })?), None)
            }
            record_kind::RECORD_BLOCKED => {
                let raw = blocked_record { cpu, ..read_plain(&bytes)? };
                Kept::Blocked(if u32::from(header.flags) & blocked_flags::BLOCKED_SHORT_NAME.0 == 0 {
                    raw
                } else {
                    let mut name = [0; limits::FILE_NAME_LENGTH.0 as usize];
                    name[..SHORT_NAME].copy_from_slice(&bytes[SHORT_NAME_AT..][..SHORT_NAME]);
                    blocked_record { argument: 0, owner: 0, name, ..raw }
                })
            }
            record_kind::RECORD_BOTH => {
                let raw: switch_record = read_plain(&bytes)?;
                let came = switch_record { header: header_of(raw.by, RawStep::STEP_IN), ..raw };
                let came = (raw.by != 0).then(|| records::switch(&came)).flatten();
                match raw.header.tid {
                    0 => Kept::Steps(None, came),
                    ended if u32::from(header.flags) == RawStep::STEP_ENDED.0 => Kept::Ended(ended, came),
                    _ => Kept::Steps(records::switch(&raw), came),
                }
            }
            _ => match records::decode(&bytes)? {
                Entry::Record(Record::Switch(step)) => Kept::Steps(Some(step), None),
                _ => return None,
            },
        };
        Some((kept, slots as u64))
    }
}

/// Whether a thread leaves its processor.
fn leaves(switch: &Switch) -> bool {
    matches!(switch.step, Step::Preempted | Step::Throttled | Step::Asleep { .. } | Step::Stopped)
}

/// A header of a switch record of this thread.
fn header_of(tid: u32, step: RawStep) -> header {
    header { tid, flags: step.0 as u8, ..header::default() }
}

/// Of what was before, the last step of each thread counts, with what came with it.
fn note_last(details: &mut Vec<Switch>, before: &mut HashMap<u32, Last>) {
    let Some(step) = details.last().filter(|step| !matches!(step.step, Step::Faulted { .. })) else { return };
    if !matches!(step.step, Step::Taken { .. }) {
        let known = before.entry(step.tid).or_default();
        if known.last().is_none_or(|known| known.at <= step.at) {
            known.clone_from(details);
        }
    }
    details.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_fit_into_their_memory() {
        assert_eq!(slots(1) as usize * SLOT, 2 << 20);
        assert_eq!(slots(16) as usize * SLOT, 2 << 20);
        assert_eq!(slots(17) as usize * SLOT, 1 << 20);
        assert_eq!(slots(4096) as usize * SLOT, 64 << 10);
    }
}
