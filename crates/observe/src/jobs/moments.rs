//! The last moments of each processor: a ring of steps of the scheduler, in memory that the programs share
//! with user space and overwrite without asking. Copied only on demand, which stops nobody; another thread
//! may read the copy.

use super::blocked;
use super::names::{Names, Threads};
use super::records::{self, Entry};
use super::skeleton::types::{
    blocked_flags, blocked_record, header, limits, moments as Ring, record_kind, step as RawStep,
    switch_record, taken_record,
};
use crate::error::{Error, ErrorKind};
use crate::loader::{Plain, read_plain};
use memmap2::{MmapOptions, MmapRaw};
use punctual_model::{Duration, Instant};
use punctual_trace::{Record, Step, Switch};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::HashMap;
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
/// Of the time before a job that is still kept, one part in so many is read.
const SHARE_OF_LEAD: u64 = 4;
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

/// A copy of the rings, and what is needed to read it.
pub struct LastMoments {
    rings: Vec<Copied>,
    /// When they began to be kept.
    began: Instant,
    translation: Translation,
}

/// The numbers of threads, and the names of addresses.
#[derive(Default)]
pub struct Translation {
    /// The observer's numbers of threads, where they differ.
    pub numbers: HashMap<u32, u32>,
    /// The names found so far.
    pub threads: Threads,
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

    /// Copies what they have kept since `began`.
    pub fn copy(&self, began: Instant, translation: Translation) -> LastMoments {
        let rings = (0..self.processors).map(|cpu| self.processor(cpu)).collect();
        LastMoments { rings, began, translation }
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

impl LastMoments {
    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        self.rings.iter().map(|ring| ring.bytes.len()).sum()
    }

    /// Reads the moments since `since` that were still kept, and some before it: at most `lead`, and less
    /// where they are soon overwritten. Names of addresses are looked up once, and remembered in `names`.
    pub fn read(&self, since: Instant, lead: Duration, names: &mut Names) -> Moments {
        names.follow(&self.translation.threads);
        self.translated(since, lead, |entry| self.translation.switch(entry, names))
    }

    fn translated(
        &self,
        since: Instant,
        lead: Duration,
        mut translate: impl FnMut(Entry) -> Option<Switch>,
    ) -> Moments {
        let since = since.max(self.began);
        let oldest = self.rings.iter().filter_map(Copied::oldest).max().unwrap_or_default();
        let known = Duration::from_ns(since.since(oldest).ns() / SHARE_OF_LEAD);
        let lead = lead.min(since.since(self.began)).min(known);
        let from = oldest.max(Instant::from_ns(since.ns().saturating_sub(lead.ns())));
        let mut moments = Moments { from, ..Moments::default() };
        let mut before = FxHashMap::default();
        for ring in &self.rings {
            ring.walk(&mut moments, &mut before, &mut translate);
        }
        moments.steps.sort_by_key(|step| step.at);
        let states = states(before, from, &mut translate);
        moments.steps.splice(..0, states);
        moments
    }
}

impl Translation {
    /// The step of an entry, with the observer's numbers.
    fn switch(&self, entry: Entry, names: &mut Names) -> Option<Switch> {
        let seen = |original: u32| self.numbers.get(&original).copied().unwrap_or(original);
        match entry {
            Entry::Record(Record::Switch(switch)) => Some(Switch { tid: seen(switch.tid), ..switch }),
            Entry::Blocked(raw) => Some(blocked::switch(seen(raw.header.tid), &raw, names)),
            _ => None,
        }
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
    /// The wait that a thread begins: just before its step, and without a time of its own.
    Blocked(blocked_record),
    /// A step, or both of a switch.
    Steps(Option<Switch>, Option<Switch>),
    /// The last switch of a thread, and who came.
    Ended { tid: u32, at: Instant, came: Option<Switch> },
}

/// The last steps of a thread.
#[derive(Default)]
struct Last {
    at: Instant,
    /// It got a processor, or left it, and perhaps waits for something; none if it has ended.
    step: Option<(Option<blocked_record>, Switch)>,
    /// Later wake-ups and migrations.
    since: Vec<Switch>,
}

impl Copied {
    /// Where older steps were overwritten: when the oldest was that is left.
    fn oldest(&self) -> Option<Instant> {
        let mut places = if self.first > 0 { self.first..self.until } else { 0..0 };
        places.find_map(|place| match self.kept(place)?.0 {
            Kept::Steps(left, came) => left.or(came).map(|step| step.at),
            Kept::Blocked(_) | Kept::Ended { .. } => None,
        })
    }

    /// Adds the steps of this processor to the moments, and of earlier ones the last of each thread to
    /// `before`.
    fn walk(
        &self,
        moments: &mut Moments,
        before: &mut FxHashMap<u32, Last>,
        translate: &mut impl FnMut(Entry) -> Option<Switch>,
    ) {
        let (mut place, mut last, mut is_broken) = (self.first, None, false);
        let mut waits: Option<blocked_record> = None;
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
                Kept::Ended { tid, at, came } => {
                    if at < moments.from {
                        before.entry(tid).or_default().note(at, None);
                    }
                    (None, came)
                }
            };
            for step in [left, came].into_iter().flatten() {
                let at = step.at;
                if let Some(last) = last.filter(|_| is_broken) {
                    moments.gaps.push((last, at));
                }
                (last, is_broken) = (Some(at), false);
                let waits = waits.take_if(|raw| raw.header.tid == step.tid);
                if at >= moments.from {
                    moments.steps.extend(translated(waits, step, translate));
                } else if step.step == Step::In || leaves(&step) {
                    before.entry(step.tid).or_default().note(at, Some((waits, step)));
                } else if matches!(step.step, Step::Woken { .. } | Step::Moved { .. }) {
                    before.entry(step.tid).or_default().since.push(step);
                }
            }
        }
    }

    /// The record that begins at a slot, and how many slots it takes; `None` if no whole record begins there.
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
                    tid if u32::from(header.flags) == RawStep::STEP_ENDED.0 => {
                        Kept::Ended { tid, at: Instant::from_ns(raw.at), came }
                    }
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

impl Last {
    fn note(&mut self, at: Instant, step: Option<(Option<blocked_record>, Switch)>) {
        if self.at <= at {
            self.since.retain(|since| since.at > at);
            (self.at, self.step) = (at, step);
        }
    }

    /// The processor that it has.
    fn runs_on(&self) -> Option<u32> {
        self.step.as_ref().filter(|(_, step)| step.step == Step::In).map(|(_, step)| step.cpu)
    }
}

/// The steps that lead to the state of each thread, all at this moment.
fn states(
    before: FxHashMap<u32, Last>,
    from: Instant,
    translate: &mut impl FnMut(Entry) -> Option<Switch>,
) -> Vec<Switch> {
    let mut before: Vec<Last> = before.into_values().collect();
    // Of the two halves of a switch, who left comes first.
    before.sort_by_key(|last| Reverse((last.at, last.runs_on().is_some())));
    // A thread whose end or departure was not seen has no processor.
    let mut taken = FxHashSet::default();
    before.retain(|last| last.runs_on().is_none_or(|cpu| taken.insert(cpu)));
    let mut states = Vec::new();
    for mut last in before.into_iter().rev() {
        // Who runs may be woken all the same: from a sleep that it does not get to.
        if last.runs_on().is_some() {
            last.since.clear();
        }
        if let Some((waits, step)) = last.step {
            // Whoever left a processor had it.
            let had = leaves(&step).then_some(Switch { step: Step::In, ..step });
            states.extend(had.into_iter().flat_map(|had| translated(None, had, translate)));
            states.extend(translated(waits, step, translate));
        }
        last.since.sort_by_key(|step| step.at);
        states.extend(last.since.into_iter().flat_map(|step| translated(None, step, translate)));
    }
    states.into_iter().map(|step| Switch { at: from, ..step }).collect()
}

/// A step, preceded by the wait that it begins.
fn translated(
    waits: Option<blocked_record>,
    step: Switch,
    translate: &mut impl FnMut(Entry) -> Option<Switch>,
) -> Vec<Switch> {
    let waits = waits.map(|raw| Entry::Blocked(Box::new(blocked_record { at: step.at.ns(), ..raw })));
    let entries = waits.into_iter().chain([Entry::Record(Record::Switch(step))]);
    entries.filter_map(translate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::text;
    use memmap2::MmapMut;
    use proptest::prelude::*;

    const SLOTS: usize = 16;
    const RING: usize = size_of::<Ring>() + SLOTS * SLOT;

    #[test]
    fn rings_fit_into_their_memory() {
        assert_eq!(slots(1) as usize * SLOT, 2 << 20);
        assert_eq!(slots(16) as usize * SLOT, 2 << 20);
        assert_eq!(slots(17) as usize * SLOT, 1 << 20);
        assert_eq!(slots(4096) as usize * SLOT, 64 << 10);
    }

    /// Rings of two processors, as the programs write them.
    struct Writer(Vec<u8>);

    impl Writer {
        fn new() -> Writer {
            Writer(vec![0; 2 * RING])
        }

        fn claim(&mut self, cpu: usize, slots: usize) -> u64 {
            let taken = &mut self.0[cpu * RING..][..8];
            let place = u64::from_ne_bytes((&*taken).try_into().expect("eight bytes"));
            taken.copy_from_slice(&(place + slots as u64).to_ne_bytes());
            place
        }

        fn put(&mut self, cpu: usize, slots: usize, kind: record_kind, head: header, rest: &[u8]) {
            let place = self.claim(cpu, slots);
            let mut bytes = vec![kind.0 as u8, head.flags, head.call, slots as u8];
            bytes.extend(head.tid.to_ne_bytes());
            bytes.extend((place as u32).to_ne_bytes());
            bytes.extend(head.number.to_ne_bytes());
            bytes.extend(rest);
            let at = cpu * RING + SLOTS_AT + place as usize % SLOTS * SLOT;
            self.0[at..at + bytes.len()].copy_from_slice(&bytes);
        }

        /// One thread leaves, another comes; 0 is nobody.
        fn switch(&mut self, cpu: usize, at: u64, left: u32, step: RawStep, came: u32) {
            let mut rest = at.to_ne_bytes().to_vec();
            rest.extend((cpu as u32).to_ne_bytes());
            rest.extend(came.to_ne_bytes());
            self.put(cpu, 1, record_kind::RECORD_BOTH, header_of(left, step), &rest);
        }

        /// A thread is about to wait for a file.
        fn wait(&mut self, cpu: usize, tid: u32, name: &str) {
            let mut head = header_of(tid, RawStep(0));
            let mut rest = vec![0; SHORT_NAME];
            if name.len() < SHORT_NAME {
                head.flags = blocked_flags::BLOCKED_SHORT_NAME.0 as u8;
                rest[..name.len()].copy_from_slice(name.as_bytes());
                return self.put(cpu, 1, record_kind::RECORD_BLOCKED, head, &rest);
            }
            rest.resize(size_of::<blocked_record>() - size_of::<header>(), 0);
            let from = offset_of!(blocked_record, name) - size_of::<header>();
            rest[from..][..name.len()].copy_from_slice(name.as_bytes());
            self.put(cpu, MOST_SLOTS, record_kind::RECORD_BLOCKED, head, &rest);
        }

        /// The moments since then: `time tid step`, or the name of what a thread waits for.
        fn read(&self, since: u64) -> (u64, Vec<String>, usize) {
            let mut memory = MmapMut::map_anon(self.0.len()).expect("memory");
            memory.copy_from_slice(&self.0);
            let rings = Rings { memory: memory.into(), processors: 2, slots: SLOTS };
            let mut names = HashMap::new();
            let copied = rings.copy(Instant::default(), Translation::default());
            let moments = copied.translated(Instant::from_ns(since), Duration::ZERO, |entry| match entry {
                Entry::Record(Record::Switch(step)) => Some(step),
                Entry::Blocked(raw) => {
                    names.insert(raw.header.tid, text(&raw.name));
                    let step = Step::Faulted { minor: 0, major: 0 };
                    let (tid, at) = (raw.header.tid, Instant::from_ns(raw.at));
                    Some(Switch { tid, at, cpu: raw.cpu, step })
                }
                _ => unreachable!("nothing else is kept"),
            });
            let shown = moments.steps.iter().map(|it| match it.step {
                Step::In => format!("{} {} in", it.at.ns(), it.tid),
                Step::Faulted { .. } => format!("{} {} waits for {}", it.at.ns(), it.tid, names[&it.tid]),
                _ => format!("{} {} out", it.at.ns(), it.tid),
            });
            (moments.from.ns(), shown.collect(), moments.gaps.len())
        }
    }

    #[test]
    fn what_is_kept_is_read() {
        let mut rings = Writer::new();
        rings.switch(0, 10, 0, RawStep::STEP_IN, 1);
        rings.wait(0, 1, "short");
        rings.switch(0, 20, 1, RawStep::STEP_ASLEEP, 2);
        rings.switch(1, 15, 0, RawStep::STEP_IN, 3);
        rings.wait(1, 3, "a name that does not fit");
        rings.switch(1, 25, 3, RawStep::STEP_ASLEEP, 0);
        let (from, shown, gaps) = rings.read(5);
        assert_eq!((from, gaps), (5, 0));
        let waits = "25 3 waits for a name that does not fit";
        assert_eq!(
            shown,
            ["10 1 in", "15 3 in", "20 1 waits for short", "20 1 out", "20 2 in", waits, "25 3 out"]
        );
    }

    /// What was before shows in the state that it left; who has ended is forgotten.
    #[test]
    fn the_beginning_has_the_state_of_each_thread() {
        let mut rings = Writer::new();
        rings.switch(0, 10, 0, RawStep::STEP_IN, 1);
        rings.switch(0, 20, 1, RawStep::STEP_PREEMPTED, 2);
        rings.switch(0, 30, 2, RawStep::STEP_ENDED, 4);
        rings.switch(1, 12, 0, RawStep::STEP_IN, 5);
        // The end of thread 5 was not seen.
        rings.switch(1, 13, 0, RawStep::STEP_IN, 6);
        rings.switch(0, 50, 4, RawStep::STEP_PREEMPTED, 1);
        let (from, shown, _) = rings.read(40);
        assert_eq!(from, 40);
        assert_eq!(shown, ["40 6 in", "40 1 in", "40 1 out", "40 4 in", "50 4 out", "50 1 in"]);
    }

    /// A record that is still being written, or was overwritten while it was read.
    #[test]
    fn what_is_not_whole_is_a_gap() {
        let mut rings = Writer::new();
        rings.switch(0, 10, 0, RawStep::STEP_IN, 1);
        rings.claim(0, 1);
        rings.switch(0, 30, 1, RawStep::STEP_ASLEEP, 0);
        assert_eq!(rings.read(5), (5, vec!["10 1 in".to_owned(), "30 1 out".to_owned()], 1));
    }

    proptest! {
        /// However often a ring goes round, its moments are the last ones, from the oldest that is whole.
        #[test]
        fn the_last_moments_are_kept(waits in proptest::collection::vec(0..3_u8, 1..100)) {
            let mut rings = Writer::new();
            let mut all = Vec::new();
            for (number, wait) in waits.iter().enumerate() {
                let (at, tid) = (10 * number as u64 + 10, number as u32 + 1);
                match wait {
                    0 => {}
                    1 => rings.wait(0, tid, "short"),
                    _ => rings.wait(0, tid, "a name that does not fit"),
                }
                rings.switch(0, at, tid, RawStep::STEP_ASLEEP, tid + 1);
                all.extend([format!("{at} {tid} out"), format!("{at} {} in", tid + 1)]);
            }
            let (from, shown, gaps) = rings.read(0);
            prop_assert_eq!(gaps, 0);
            let steps: Vec<String> = shown.into_iter().filter(|step| !step.contains("waits")).collect();
            prop_assert!(all.ends_with(&steps));
            let first = steps[0].split(' ').next().and_then(|at| at.parse().ok()).unwrap_or(0_u64);
            prop_assert!(from == first || from == 0 && steps.len() == all.len());
            // No more than what was overwritten is missing.
            prop_assert!(steps.len() / 2 >= waits.len().min(SLOTS / (MOST_SLOTS + 1) - 1));
        }
    }
}
