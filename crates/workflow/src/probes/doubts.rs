//! Whether what is read in a program's memory can be what the probes file says it is. An offset that is wrong
//! often gives numbers too, and a trace of them says nothing of the program.
//!
//! What is told here cannot come of a right file where identities belong to objects that stay where they are,
//! and where a task is queued before it is executed. Some of it can come of right files of other frameworks:
//! that is told as a question, and is no failure.

use punctual_observe::flow::{Counted, Name, ProbeFile};
use punctual_report::counted;
use punctual_trace::flow::Kind;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Addresses that are remembered, at most: a file where each event has one of its own is none of objects.
const PLACES: usize = 1 << 16;
/// Fewer objects say nothing on whether there are too many.
const SOME: usize = 8;
const MANY: usize = 64;

/// What one trace has that speaks against its file.
#[derive(Debug, Default)]
pub struct Doubts {
    /// Channels and tasks, by number.
    objects: [Vec<Object>; 2],
    /// What was read at an address, by which probe.
    places: HashMap<(u32, u64), u64>,
    /// Identities that were found where another had been, of channels and of tasks.
    changed: [u64; 2],
    /// What each thread executes that ever executed something.
    executing: HashMap<u32, Option<u16>>,
    events: [u64; 4],
    unactivated: u64,
    nested: u64,
    parallel: u64,
    two_names: Option<[String; 3]>,
    no_text: [u64; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Object {
    /// Pushes, or activations.
    events: u64,
    /// Starts of activations that were seen have smaller numbers.
    activated: u32,
    /// Where its identity was read last, and by which probe.
    read: Option<(u32, u64)>,
    thread: Option<u32>,
    is_named: bool,
}

/// What speaks against a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the trace is good for nothing, or for little.
    pub is_certain: bool,
    pub text: String,
}

/// An event, its object known by number.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub kind: Kind,
    pub object: u16,
    pub id: u64,
    pub thread: u32,
    pub number: u32,
    pub probe: u32,
    pub place: u64,
}

impl Doubts {
    pub fn event(&mut self, event: Event) {
        self.events[event.kind as usize] += 1;
        let which = usize::from(event.kind != Kind::Push);
        match event.kind {
            Kind::Push | Kind::Activation => {
                let object = room(&mut self.objects[which], event.object);
                object.events += 1;
                object.activated = object.activated.max(event.number.saturating_add(1));
                let read = Some((event.probe, event.place));
                if event.place != 0 && object.read != read {
                    object.read = read;
                    self.found_at(event, which);
                }
            }
            Kind::Start => {
                if let Some(before) = self.executing.insert(event.thread, Some(event.object)).flatten() {
                    self.nested += 1;
                    self.leave(before, event.thread);
                }
                let object = room(&mut self.objects[which], event.object);
                self.unactivated += u64::from(event.number >= object.activated);
                self.parallel += u64::from(object.thread.is_some());
                object.thread = Some(event.thread);
            }
            Kind::Stop => {
                self.executing.insert(event.thread, None);
                self.leave(event.object, event.thread);
            }
        }
    }

    fn leave(&mut self, task: u16, thread: u32) {
        let object = room(&mut self.objects[1], task);
        if object.thread == Some(thread) {
            object.thread = None;
        }
    }

    /// How many threads executed tasks.
    pub fn executors(&self) -> usize {
        self.executing.len()
    }

    fn found_at(&mut self, event: Event, which: usize) {
        let has_room = self.places.len() < PLACES;
        match self.places.entry((event.probe, event.place)) {
            Entry::Occupied(mut id) => self.changed[which] += u64::from(id.insert(event.id) != event.id),
            Entry::Vacant(entry) if has_room => _ = entry.insert(event.id),
            Entry::Vacant(_) => {}
        }
    }

    /// A name that was read; `before`, of the same object.
    pub fn name(&mut self, channel: bool, object: u16, text: &str, before: Option<&str>) {
        let which = usize::from(!channel);
        let object = room(&mut self.objects[which], object);
        let is_first = !std::mem::replace(&mut object.is_named, true);
        self.no_text[which] += u64::from(is_first && !is_text(text));
        if let Some(before) = before.filter(|before| *before != text) {
            self.two_names
                .get_or_insert_with(|| [what(channel).to_owned(), before.to_owned(), text.to_owned()]);
        }
    }

    /// At the end. `with_characters`: how many ids of channels and of tasks have some.
    pub fn findings(&self, file: &ProbeFile, counts: Counted, with_characters: [usize; 2]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut say = |is_certain: bool, text: String| findings.push(Finding { is_certain, text });
        self.unread(file, counts, with_characters, &mut say);
        // A program may have one channel, or one task; with one of each there is little to trace.
        let alone = [true, false].map(|channel| self.one_for_all(channel, file));
        let is_certain = alone.iter().all(Option::is_some);
        alone.into_iter().flatten().for_each(|text| say(is_certain, text));
        self.identities(true, file, &mut say);
        let are_tasks = self.identities(false, file, &mut say);
        if let Some([what, one, other]) = &self.two_names {
            say(
                true,
                format!(
                    "a {what} is called {one:?} and {other:?}: is its id that of several, or the place of its name wrong?"
                ),
            );
        }
        // Where events are missing, others seem to come in a wrong order.
        if counts.lost == 0 && are_tasks {
            self.sequence(file, counts, &mut say);
        }
        let executors = self.executors();
        if let Some(declared) = file.executors.filter(|declared| executors > *declared as usize) {
            say(false, format!("executors = {declared}, but {executors} threads executed tasks"));
        }
        findings
    }

    /// What could not be read, or is not what it should be.
    fn unread(
        &self,
        file: &ProbeFile,
        counts: Counted,
        with_characters: [usize; 2],
        say: &mut dyn FnMut(bool, String),
    ) {
        let unreadable: Vec<String> = Kind::ALL
            .iter()
            .zip(counts.unreadable)
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| counted(count, kind.name()))
            .collect();
        if !unreadable.is_empty() {
            let (unread, all) = (counts.unreadable.iter().sum(), self.events.iter().sum::<u64>());
            let text = format!(
                "the id could not be read at {}, which are missing: is the id of these probes where the file says, in this build of the framework?",
                unreadable.join(", ")
            );
            say(is_much(unread, all + unread), text);
        }
        for (channel, count) in [true, false].into_iter().zip(counts.nameless).filter(|(_, count)| *count > 0)
        {
            let text = format!(
                "{} of {}s could not be read, which are called by their ids: is the name of these probes where the file says?",
                counted(count, "name"),
                what(channel)
            );
            say(false, text);
        }
        for (channel, count) in [true, false].into_iter().zip(self.no_text).filter(|(_, count)| *count > 0) {
            let text = format!(
                "what is read as the name of {} is no text (UTF-8), so ids are shown instead: is the name of these probes where the file says?",
                counted(count, what(channel))
            );
            say(false, text);
        }
        for channel in [true, false] {
            let is_name = file
                .probes
                .iter()
                .any(|probe| (probe.kind == Kind::Push) == channel && probe.name == Name::Id);
            let (seen, which) = (self.objects[usize::from(!channel)].len(), usize::from(!channel));
            if is_name && seen >= 2 && with_characters[which] == 0 {
                let text = format!(
                    "no id of {} is of characters, as name = \"id\" says: is the id of these probes where the file says?",
                    counted(seen as u64, what(channel))
                );
                say(false, text);
            }
        }
    }

    /// At how many places one probe found identities, at most.
    fn places(&self, kind: Kind, file: &ProbeFile) -> u64 {
        let mut places: HashMap<u32, u64> = HashMap::new();
        let of_kind = |probe: u32| file.probes.get(probe as usize).is_some_and(|probe| probe.kind == kind);
        self.places
            .keys()
            .filter(|(probe, _)| of_kind(*probe))
            .for_each(|(probe, _)| *places.entry(*probe).or_default() += 1);
        places.into_values().max().unwrap_or(0)
    }

    /// Whether all have one identity, which is in several places.
    fn one_for_all(&self, channel: bool, file: &ProbeFile) -> Option<String> {
        let (kind, what, objects) = (kind(channel), what(channel), &self.objects[usize::from(!channel)]);
        let seen = objects.iter().filter(|object| object.events > 0).count();
        let places = self.places(kind, file);
        (seen == 1 && places >= 2).then(|| {
            format!(
                "all {} are of one {what}, though its id was read at {} of memory: is there only one? Else the place of the id is wrong",
                counted(self.events[kind as usize], kind.name()),
                counted(places, "place")
            )
        })
    }

    /// Whether what is read as identities may be some: else what follows says no more.
    fn identities(&self, channel: bool, file: &ProbeFile, say: &mut dyn FnMut(bool, String)) -> bool {
        let (kind, what, which) = (kind(channel), what(channel), usize::from(!channel));
        let objects = &self.objects[which];
        let seen = objects.iter().filter(|object| object.events > 0).count();
        let once = objects.iter().filter(|object| object.events == 1).count();
        // What counts, or is used up, passes each number once at each place.
        let places = self.places(kind, file);
        let passed = objects.iter().filter(|object| (1..=places.max(1)).contains(&object.events)).count();
        let is_changing = seen >= SOME
            && seen as u64 > 2 * places
            && passed * 4 >= seen * 3
            && 2 * self.changed[which] >= seen as u64;
        if is_changing {
            let text = format!(
                "what is read as the id of {what}s changes: {} at {} of memory; the place of the id is wrong",
                counted(seen as u64, "number"),
                counted(places, "place")
            );
            say(true, text);
        } else if seen >= MANY && once * 4 >= seen * 3 {
            say(
                false,
                format!(
                    "of {seen} {what}s, {once} were seen only once: is their id that of the {what}, or of a single {}?",
                    kind.name()
                ),
            );
        }
        !is_changing
    }

    /// What comes in an order in which it cannot.
    fn sequence(&self, file: &ProbeFile, counts: Counted, say: &mut dyn FnMut(bool, String)) {
        let [_, activations, starts, stops] = self.events;
        // What could not be read has been told, and what comes of that needs no words.
        if self.unactivated > 0 && counts.unreadable[Kind::Activation as usize] == 0 {
            let text = format!(
                "{} of tasks that were not activated: do activation and start have the same id, and are there other functions that activate?",
                counted(self.unactivated, "start")
            );
            say(is_much(self.unactivated, starts), text);
        }
        let tasks = self.objects[1].len() as u64;
        if starts > 0
            && activations > starts.saturating_mul(2)
            && activations - starts > tasks.max(SOME as u64)
        {
            let text = format!(
                "of {activations} activations only {starts} were started: are there other functions that start a task?"
            );
            say(false, text);
        }
        if counts.unreadable[Kind::Start as usize] > 0 {
            return;
        }
        if counts.unmatched > 0 {
            let text = format!(
                "{} of tasks that no thread was executing: do start and stop have the same id?",
                counted(counts.unmatched, "stop")
            );
            say(is_much(counts.unmatched, stops + counts.unmatched), text);
            // Then starts seem to be within others.
            return;
        }
        if self.nested > 0 {
            let text = format!(
                "{} while the same thread was executing another task: does each execution pass the function of the stop?",
                counted(self.nested, "start")
            );
            say(is_much(self.nested, starts), text);
        }
        // At a return, what the end of a task makes ready may be under way already.
        let at_return = file.probes.iter().any(|probe| probe.at_return);
        if self.parallel > 0 && !at_return && self.nested == 0 {
            let text = format!(
                "{} of tasks that another thread was executing: do several tasks have the same id, or does a task run in parallel to itself? Then its instances cannot be told apart",
                counted(self.parallel, "start")
            );
            say(is_much(self.parallel, starts), text);
        }
    }
}

/// More than a tenth.
fn is_much(part: u64, all: u64) -> bool {
    part.saturating_mul(10) > all
}

/// Whether a program would call something so.
pub fn is_text(name: &str) -> bool {
    !name.contains(|character: char| character.is_control() || character == char::REPLACEMENT_CHARACTER)
}

/// The event that objects of a kind are counted by.
fn kind(channel: bool) -> Kind {
    if channel { Kind::Push } else { Kind::Activation }
}

pub fn what(channel: bool) -> &'static str {
    if channel { "channel" } else { "task" }
}

fn room(objects: &mut Vec<Object>, number: u16) -> &mut Object {
    let at = usize::from(number);
    if objects.len() <= at {
        objects.resize(at + 1, Object::default());
    }
    &mut objects[at]
}

#[cfg(test)]
mod tests;
