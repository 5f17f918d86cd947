//! What a slot of the journal holds of one spec, as bytes.

use crate::journal::CELL;
use crate::kernel::{Processors, Scheduling, State};
use punctual_model::Duration;
use punctual_schedule::{Assignment, Parameters};
use std::rc::Rc;

/// Bytes of a spec's name, and of a plugin's, at most.
pub const LONGEST_NAME: usize = 64;

/// A spec, so that it can be admitted again exactly as it was, and undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub spec: u64,
    /// Whose it is.
    pub user: u32,
    /// Their group.
    pub group: u32,
    /// The process that it ends with.
    pub process: u32,
    /// When that started, in clock ticks since the machine did.
    pub process_start: u64,
    /// What was declared.
    pub parameters: Parameters,
    /// Who took it.
    pub plugin: Rc<str>,
    /// As the client calls it.
    pub name: Option<Rc<str>>,
    /// Where.
    pub processor: u32,
    /// Q^a.
    pub accepted_runtime: Option<Duration>,
    /// Whether the answer was `partial`.
    pub partial: bool,
    /// Whether the admission test was ignored.
    pub ignored: bool,
    /// What its thread is told, or would have been when it was admitted.
    pub assigned: Told,
    /// Its thread.
    pub thread: Option<Attached>,
}

/// A thread, and what is to be undone of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its number here.
    pub number: u32,
    /// Its number as the client said it, in another PID namespace perhaps.
    pub named: u32,
    /// Tells it from others that had its number before, or get it.
    pub identity: u64,
    /// What it was before.
    pub before: State,
    /// What the kernel is told now, or was told last.
    pub told: Told,
    /// What it was told before that: until the new is told, the thread is still so.
    pub told_before: Option<Told>,
}

/// What the kernel was told: always of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// How.
    pub scheduling: Scheduling,
    /// Where.
    pub processor: u32,
}

impl Told {
    /// What an assignment is to the kernel.
    pub fn of(assignment: Assignment) -> Self {
        Self { scheduling: Scheduling::of(assignment.policy), processor: assignment.processor }
    }

    /// The assignment that it was.
    pub fn assignment(&self) -> Option<Assignment> {
        Some(Assignment { processor: self.processor, policy: self.scheduling.assigned()? })
    }

    /// As the kernel sees it.
    pub fn state(&self) -> Option<State> {
        Some(State { scheduling: self.scheduling, processors: Processors::one(self.processor)? })
    }
}

impl Record {
    /// Writes it; how many bytes that are. Names are no longer than [`LONGEST_NAME`], so there is room.
    pub(crate) fn encode(&self, bytes: &mut [u8; CELL - 16]) -> usize {
        let mut to = Writer { bytes, at: 0 };
        to.u64(self.spec);
        to.u32(self.user);
        to.u32(self.group);
        to.u32(self.process);
        to.u64(self.process_start);
        let declared = &self.parameters;
        for duration in [
            declared.runtime,
            declared.desired_runtime,
            declared.period,
            declared.deadline,
            self.accepted_runtime,
        ] {
            to.option(duration.map(Duration::ns));
        }
        to.option(declared.priority.map(u64::from));
        for flag in [declared.ignore_admission, self.partial, self.ignored] {
            to.u8(flag.into());
        }
        to.text(declared.plugin.as_deref());
        to.text(Some(&self.plugin));
        to.text(self.name.as_deref());
        to.u32(self.processor);
        to.told(&self.assigned);
        to.u8(self.thread.is_some().into());
        if let Some(thread) = &self.thread {
            to.u32(thread.number);
            to.u32(thread.named);
            to.u64(thread.identity);
            to.scheduling(&thread.before.scheduling);
            thread.before.processors.words().into_iter().for_each(|word| to.u64(word));
            to.told(&thread.told);
            to.u8(thread.told_before.is_some().into());
            if let Some(told) = &thread.told_before {
                to.told(told);
            }
        }
        to.at
    }

    /// Reads it; `None` if it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader { bytes };
        let (spec, user, group, process, process_start) =
            (from.u64()?, from.u32()?, from.u32()?, from.u32()?, from.u64()?);
        let mut durations = [None; 5];
        for duration in &mut durations {
            *duration = from.option()?.map(Duration::from_ns);
        }
        let [runtime, desired_runtime, period, deadline, accepted_runtime] = durations;
        let priority = from.option()?.map(u32::try_from).transpose().ok()?;
        let (ignore_admission, partial, ignored) = (from.flag()?, from.flag()?, from.flag()?);
        let parameters = Parameters {
            runtime,
            desired_runtime,
            period,
            deadline,
            priority,
            plugin: from.text()?,
            ignore_admission,
        };
        let (plugin, name, processor) = (from.text()??.into(), from.text()?.map(Rc::from), from.u32()?);
        let assigned = from.told()?;
        let thread = if from.flag()? { Some(from.attached()?) } else { None };
        Some(Self {
            spec,
            user,
            group,
            process,
            process_start,
            parameters,
            plugin,
            name,
            processor,
            accepted_runtime,
            partial,
            ignored,
            assigned,
            thread,
        })
    }
}

struct Writer<'a> {
    bytes: &'a mut [u8; CELL - 16],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn option(&mut self, value: Option<u64>) {
        self.u8(value.is_some().into());
        self.u64(value.unwrap_or_default());
    }

    fn text(&mut self, text: Option<&str>) {
        let bytes = text.map(|text| &text.as_bytes()[..text.len().min(LONGEST_NAME)]);
        self.u8(bytes.map_or(u8::MAX, |bytes| bytes.len() as u8));
        self.put(bytes.unwrap_or_default());
    }

    fn scheduling(&mut self, it: &Scheduling) {
        self.u32(it.policy);
        self.u64(it.flags);
        self.u32(it.nice as u32);
        self.u32(it.priority);
        [it.runtime_ns, it.deadline_ns, it.period_ns].into_iter().for_each(|ns| self.u64(ns));
    }

    fn told(&mut self, told: &Told) {
        self.scheduling(&told.scheduling);
        self.u32(told.processor);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        self.u8().map(|byte| byte == 1)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn option(&mut self) -> Option<Option<u64>> {
        let has = self.flag()?;
        self.u64().map(|value| has.then_some(value))
    }

    fn text(&mut self) -> Option<Option<String>> {
        let length = self.u8()?;
        if length == u8::MAX {
            return Some(None);
        }
        let (text, rest) = self.bytes.split_at_checked(length.into())?;
        self.bytes = rest;
        Some(Some(String::from_utf8(text.to_vec()).ok()?))
    }

    fn scheduling(&mut self) -> Option<Scheduling> {
        let mut it = Scheduling::ordinary();
        (it.policy, it.flags, it.nice, it.priority) =
            (self.u32()?, self.u64()?, self.u32()? as i32, self.u32()?);
        (it.runtime_ns, it.deadline_ns, it.period_ns) = (self.u64()?, self.u64()?, self.u64()?);
        Some(it)
    }

    fn told(&mut self) -> Option<Told> {
        Some(Told { scheduling: self.scheduling()?, processor: self.u32()? })
    }

    fn attached(&mut self) -> Option<Attached> {
        let (number, named, identity, scheduling) =
            (self.u32()?, self.u32()?, self.u64()?, self.scheduling()?);
        let mut words = [0; Processors::MOST / 64];
        for word in &mut words {
            *word = self.u64()?;
        }
        let before = State { scheduling, processors: Processors::from_words(words) };
        let told = self.told()?;
        let told_before = if self.flag()? { Some(self.told()?) } else { None };
        Some(Attached { number, named, identity, before, told, told_before })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use punctual_schedule::Policy;

    /// As large as a record can be.
    pub(crate) fn example() -> Record {
        let ns = |ns| Some(Duration::from_ns(ns));
        let name = "ä".repeat(LONGEST_NAME / 2);
        let told = |priority| Told { scheduling: Scheduling::of(Policy::Fifo(priority)), processor: 3 };
        Record {
            spec: 1,
            user: 1000,
            group: 100,
            process: 4711,
            process_start: 42,
            parameters: Parameters {
                runtime: ns(1),
                desired_runtime: ns(2),
                period: ns(u64::MAX),
                deadline: None,
                priority: Some(7),
                plugin: Some(name.clone()),
                ignore_admission: true,
            },
            plugin: name.as_str().into(),
            name: Some(name.into()),
            processor: 3,
            accepted_runtime: ns(2),
            partial: true,
            ignored: false,
            assigned: told(51),
            thread: Some(Attached {
                number: 4712,
                named: 2,
                identity: 43,
                before: State {
                    scheduling: Scheduling::ordinary(),
                    processors: Processors::from_words([3; 32]),
                },
                told: told(50),
                told_before: Some(told(51)),
            }),
        }
    }

    #[test]
    fn the_largest_record_has_room_and_is_read_back() {
        let mut bytes = [0; CELL - 16];
        for record in [example(), Record { thread: None, name: None, ..example() }] {
            let length = record.encode(&mut bytes);
            assert_eq!(Record::decode(&bytes[..length]), Some(record));
            assert_eq!(Record::decode(&bytes[..length - 1]), None);
        }
    }
}
