//! From the messages of events to records of their tracepoints, and to who runs.

use super::super::account::use_of;
use super::super::notes::Notes;
use super::super::tracepoints::layout::{self, COMMON, FLAGS, Field, IN_INTERRUPT, Kind};
use super::super::tracepoints::{Format, Seen, Threads};
use super::bundle::{Event, Switch, Waking, Who};
use super::wire::{Fields, Value, numbers};
use punctual_model::Instant;
use punctual_trace::Record;
use punctual_trace::account::Use;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Numbers of events that also come in columns.
pub const SWITCH: u32 = 4;
pub const WAKING: u32 = 20;
/// An event that the recorder does not know, with the names of its fields.
const GENERIC: u32 = 327;
/// A probe in the kernel's code, with its name.
const KPROBE: u32 = 542;

/// Events that are read: name, number, and the numbers of the fields in the layout's order.
const READ: &[(&str, u32, &[u32])] = &[
    ("sched_switch", SWITCH, &[1, 2, 3, 4, 5, 6, 7]),
    ("sched_waking", WAKING, &[1, 2, 3]),
    ("sched_wakeup", 17, &[1, 2, 3]),
    ("sched_wakeup_new", 114, &[1, 2, 3]),
    ("sched_migrate_task", 491, &[1, 2]),
    ("sched_pi_setprio", 353, &[1, 4, 3, 2]),
    ("sched_process_exit", 238, &[1, 2]),
    ("sched_process_exec", 237, &[1, 2, 3]),
    (layout::BORN, 235, &[1, 2, 3]),
    (layout::RENAMED, 236, &[1, 2, 3]),
    ("sys_enter", 329, &[1, 2]),
    ("sys_exit", 330, &[1, 2]),
];

/// Names of others that traces often have.
const NAMES: &[(&str, u32)] = &[
    ("print", 3),
    ("cpu_frequency", 11),
    ("cpu_idle", 13),
    ("sched_blocked_reason", 18),
    ("sched_cpu_hotplug", 19),
    ("ipi_entry", 21),
    ("ipi_exit", 22),
    ("ipi_raise", 23),
    ("softirq_entry", 24),
    ("softirq_exit", 25),
    ("softirq_raise", 26),
    ("irq_handler_entry", 36),
    ("irq_handler_exit", 37),
    ("sched_process_fork", 239),
    ("sched_process_free", 240),
    ("sched_process_hang", 241),
    ("sched_process_wait", 242),
    ("suspend_resume", 113),
];

/// The name of a kind of event.
pub fn name_of(kind: u32) -> Option<&'static str> {
    let read = READ.iter().map(|(name, number, _)| (name, number));
    let mut all = read.chain(NAMES.iter().map(|(name, number)| (name, number)));
    all.find(|(_, number)| **number == kind).map(|(name, _)| *name)
}

/// A kind of event that is read.
struct Known {
    format: Format,
    /// Its fields in the message, and where each is in the record.
    fields: Vec<(u32, Slot)>,
    count: u64,
    /// Events that lack a field.
    unreadable: u64,
}

/// Where a field is in a record.
#[derive(Clone, Copy)]
struct Slot {
    name: &'static str,
    at: usize,
    kind: Kind,
}

/// Who runs on a processor, as its last switch said.
#[derive(Clone, Copy)]
pub struct Running {
    tid: i32,
    priority: i32,
    name: [u8; 32],
}

/// All kinds of events, and how many there were of each.
pub struct Events {
    known: Vec<Known>,
    /// Places in `known` by number, and by name for those without one.
    numbers: Vec<Option<usize>>,
    names: FxHashMap<String, usize>,
    /// Events of kinds that are not read, by number and by name.
    others: FxHashMap<u32, u64>,
    generic: FxHashMap<String, u64>,
    record: Vec<u8>,
}

impl Default for Events {
    fn default() -> Events {
        let known: Vec<Known> = layout::known().into_iter().map(Known::new).collect();
        let number = |known: &Known| READ.iter().find(|(name, ..)| known.format.name == *name).map(|it| it.1);
        let mut numbers = vec![None; 512];
        for (at, known) in known.iter().enumerate() {
            if let Some(place) = number(known).and_then(|number| numbers.get_mut(number as usize)) {
                *place = Some(at);
            }
        }
        let names = known.iter().enumerate().map(|(at, known)| (known.format.name.clone(), at));
        Events {
            numbers,
            names: names.collect(),
            known,
            others: FxHashMap::default(),
            generic: FxHashMap::default(),
            record: Vec::new(),
        }
    }
}

impl Known {
    fn new((format, fields): (Format, &'static [Field])) -> Known {
        let numbers = READ.iter().find(|(name, ..)| format.name == *name).map_or(&[][..], |it| it.2);
        let mut at = COMMON;
        let slot = |(name, kind): &(&'static str, Kind)| {
            let slot = Slot { name: name.trim_end_matches('='), at, kind: *kind };
            at += kind.size();
            slot
        };
        let slots: Vec<Slot> = fields.iter().map(slot).collect();
        let numbers = numbers.iter().copied().chain(std::iter::repeat(0));
        Known { format, fields: numbers.zip(slots).collect(), count: 0, unreadable: 0 }
    }

    fn size(&self) -> usize {
        self.fields.last().map_or(COMMON, |(_, slot)| slot.at + slot.kind.size())
    }
}

/// Where events go, and when and where one was.
pub struct At<'a> {
    pub at: Instant,
    pub cpu: u32,
    pub threads: &'a mut Threads,
    pub out: &'a mut dyn FnMut(Record),
}

impl Events {
    /// Takes an event; `running` is who runs there.
    pub fn take(&mut self, event: Event, running: &mut Option<Running>, at: At) {
        match event {
            Event::Message(message) => self.message(message, at),
            Event::Switch(switch) => self.switch(switch, running, at),
            Event::Waking(waking) => self.waking(waking, *running, at),
        }
    }

    /// Passes over an event before the beginning.
    pub fn pass(event: Event, running: &mut Option<Running>) {
        if let Event::Switch(switch) = event {
            *running = Some(Running::of(switch.next));
        }
    }

    fn switch(&mut self, switch: Switch, running: &mut Option<Running>, at: At) {
        let Some(index) = self.begin(SWITCH) else { return };
        let next = Running::of(switch.next);
        let [comm, pid, prio, state, next_comm, next_pid, next_prio] = [0, 1, 2, 3, 4, 5, 6];
        let before = *running;
        if let Some(before) = before {
            // A lock may have lent it what it had when it got the processor.
            let own = at.threads.priority(before.tid).unwrap_or(i64::from(before.priority));
            self.put(index, comm, &before.name);
            self.put(index, pid, &i64::from(before.tid).to_le_bytes());
            self.put(index, prio, &own.to_le_bytes());
        }
        self.put(index, state, &switch.state.to_le_bytes());
        self.put(index, next_comm, &next.name);
        self.put(index, next_pid, &i64::from(next.tid).to_le_bytes());
        self.put(index, next_prio, &i64::from(next.priority).to_le_bytes());
        *running = Some(next);
        self.hand_on(index, before.map_or(0, |before| before.tid), at);
    }

    fn waking(&mut self, waking: Waking, running: Option<Running>, at: At) {
        let Some(index) = self.begin(WAKING) else { return };
        let woken = Running::of(waking.woken);
        self.put(index, 0, &woken.name);
        self.put(index, 1, &i64::from(woken.tid).to_le_bytes());
        self.put(index, 2, &i64::from(woken.priority).to_le_bytes());
        if let (Some(flags), true) = (waking.flags, running.is_some()) {
            self.record[FLAGS] = flags as u8;
        }
        self.hand_on(index, running.map_or(0, |running| running.tid), at);
    }

    fn message(&mut self, message: &[u8], at: At) {
        let (mut tid, mut event) = (0, None);
        for field in Fields::of(message).map_while(Result::ok) {
            match field {
                (2, Value::Number(pid)) => tid = pid as i32,
                (number, Value::Bytes(bytes)) => event = Some((number, bytes)),
                _ => {}
            }
        }
        let Some((number, bytes)) = event else { return self.count_other(0) };
        let taken = match number {
            GENERIC => self.generic(bytes),
            KPROBE => {
                count(&mut self.generic, &format!("kprobe {}", text(bytes, 1)));
                None
            }
            _ => self.fields(number, bytes, tid),
        };
        if let Some(index) = taken {
            self.hand_on(index, tid, at);
        }
    }

    /// Puts the fields of a message into a record. Returns its kind, if it is read.
    fn fields(&mut self, number: u32, message: &[u8], tid: i32) -> Option<usize> {
        let Some(index) = self.begin(number) else {
            self.count_other(number);
            return None;
        };
        let (mut found, mut arguments) = (0, 0);
        for (number, value) in Fields::of(message).map_while(Result::ok) {
            let fields = &self.known[index].fields;
            if let Some((at, (_, slot))) = fields.iter().enumerate().find(|(_, field)| field.0 == number) {
                found |= u32::from(put(*slot, value, &mut arguments, &mut self.record)) << at;
            }
        }
        // Newer kernels leave it out: a thread gives itself its name.
        if self.known[index].format.name == layout::RENAMED && found & 1 == 0 && tid > 0 {
            self.put(index, 0, &i64::from(tid).to_le_bytes());
            found |= 1;
        }
        self.is_whole(index, found)
    }

    /// The same of an event with the names of its fields.
    fn generic(&mut self, message: &[u8]) -> Option<usize> {
        let fields = || Fields::of(message).map_while(Result::ok);
        let name = text(message, 1);
        let Some(index) = self.names.get(name.as_ref()).copied() else {
            count(&mut self.generic, name.as_ref());
            return None;
        };
        self.start(index);
        let (mut found, mut arguments) = (0, 0);
        for field in fields().filter(|(number, _)| *number == 2).filter_map(|(_, value)| value.bytes()) {
            let Some((name, value)) = named(field) else { continue };
            let slots = self.known[index].fields.iter().map(|(_, slot)| *slot).enumerate();
            if let Some((at, slot)) = slots.into_iter().find(|(_, slot)| slot.name.as_bytes() == name) {
                found |= u32::from(put(slot, value, &mut arguments, &mut self.record)) << at;
            }
        }
        self.is_whole(index, found)
    }

    fn is_whole(&mut self, index: usize, found: u32) -> Option<usize> {
        let known = &mut self.known[index];
        let is_whole = found.count_ones() as usize == known.fields.len();
        known.unreadable += u64::from(!is_whole);
        is_whole.then_some(index)
    }

    /// Begins a record of a kind that is read.
    fn begin(&mut self, number: u32) -> Option<usize> {
        let index = (*self.numbers.get(number as usize)?)?;
        self.start(index);
        Some(index)
    }

    fn start(&mut self, index: usize) {
        self.known[index].count += 1;
        self.record.clear();
        self.record.resize(self.known[index].size(), 0);
        // Without flags, the thread that ran is not known to be the waker.
        self.record[FLAGS] = IN_INTERRUPT;
    }

    fn put(&mut self, index: usize, field: usize, bytes: &[u8]) {
        let at = self.known[index].fields[field].1.at;
        self.record[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn hand_on(&self, index: usize, tid: i32, At { at, cpu, threads, out }: At) {
        let Known { format, .. } = &self.known[index];
        layout::take(threads, &Seen { at, cpu, pid: 0, tid, format, bytes: &self.record }, out);
    }

    fn count_other(&mut self, number: u32) {
        *self.others.entry(number).or_default() += 1;
    }

    /// Every kind of event: its name, how many there were, and what they are read for. `described` has the
    /// names that the trace itself gives.
    pub fn kinds(&self, described: &BTreeMap<u32, String>) -> Vec<(String, u64, Option<Use>)> {
        let name = |number: &u32| {
            let name = name_of(*number).or_else(|| described.get(number).map(String::as_str));
            name.map_or_else(|| format!("event {number}"), str::to_owned)
        };
        let known = self.known.iter().map(|known| {
            let name = known.format.name.clone();
            let used_for = use_of(&name);
            (name, known.count, used_for)
        });
        let others = self.others.iter().map(|(number, count)| (name(number), *count, None));
        let generic = self.generic.iter().map(|(name, count)| (name.clone(), *count, None));
        known.chain(others).chain(generic).collect()
    }

    /// Notes what lacks a field.
    pub fn say(&self, notes: &mut Notes) {
        for Known { format, unreadable, .. } in self.known.iter().filter(|known| known.unreadable > 0) {
            notes.say(format!("events {} that lack a field and are left out: {unreadable}", format.name));
        }
    }
}

/// A field of an event that the recorder does not know: its name, and its value.
fn named(field: &[u8]) -> Option<(&[u8], Value<'_>)> {
    let parts = || Fields::of(field).map_while(Result::ok);
    let name = parts().find(|(number, _)| *number == 1)?.1.bytes()?;
    Some((name, parts().find(|(number, _)| (3..=5).contains(number))?.1))
}

/// A text in a message.
fn text(message: &[u8], number: u32) -> Cow<'_, str> {
    let mut fields = Fields::of(message).map_while(Result::ok);
    let text = fields.find(|field| field.0 == number).and_then(|(_, value)| value.bytes());
    String::from_utf8_lossy(text.unwrap_or_default())
}

/// The number and name of a kind of event, as the recorder describes one that it does not know.
pub fn described(description: &[u8]) -> Option<(u32, String)> {
    let mut fields = Fields::of(description).map_while(Result::ok);
    let number = fields.clone().find(|field| field.0 == 1)?.1.number()?;
    let name = text(fields.find(|field| field.0 == 2)?.1.bytes()?, 1);
    u32::try_from(number).ok().map(|number| (number, name.into_owned()))
}

fn count(counts: &mut FxHashMap<String, u64>, name: &str) {
    const MOST: usize = 10_000;
    if let Some(count) = counts.get_mut(name) {
        *count += 1;
    } else if counts.len() < MOST {
        counts.insert(name.to_owned(), 1);
    }
}

/// Puts a value into a record; false if it is of another kind. Arguments come one by one, or all at once:
/// `arguments` is how many there were before.
fn put(slot: Slot, value: Value, arguments: &mut usize, record: &mut [u8]) -> bool {
    let place = &mut record[slot.at..slot.at + slot.kind.size()];
    match (slot.kind, value) {
        (Kind::Name | Kind::Path, Value::Bytes(name)) => {
            place.copy_from_slice(&layout::name(slot.kind, name));
            true
        }
        (Kind::Arguments, value) => {
            let put = |number: u64| {
                let rest = place.chunks_exact_mut(8).nth(*arguments);
                rest.into_iter().for_each(|place| place.copy_from_slice(&number.to_le_bytes()));
                *arguments += 1;
            };
            numbers(value, put).is_ok()
        }
        (Kind::Number | Kind::Flags | Kind::State, Value::Number(number)) => {
            place.copy_from_slice(&number.to_le_bytes());
            true
        }
        _ => false,
    }
}

impl Running {
    fn of(who: Who) -> Running {
        let Who { tid, priority, name } = who;
        Running { tid, priority, name: layout::name(Kind::Name, name) }
    }
}
