//! Whether a probes file fits the program. A wrong offset often reads plausible numbers, and the trace is
//! then worthless.
//!
//! A finding is certain if it is impossible with a correct file, provided that ids belong to objects that
//! stay in place and that tasks are activated before they start. Other findings may come from correct files
//! of other frameworks; they are phrased as questions and are not errors.

use punctual_observe::flow::{Counted, Name, ProbeFile};
use punctual_report::counted;
use punctual_trace::flow::Kind;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Most addresses to remember. Only a wrong file has a new address for every event.
const PLACES: usize = 1 << 16;
/// Too few objects to judge whether there are too many.
const SOME: usize = 8;
const MANY: usize = 64;

/// Evidence in one trace that its file is wrong.
#[derive(Debug, Default)]
pub struct Doubts {
    /// Channels and tasks, by number.
    objects: [Vec<Object>; 2],
    /// The id read at an address, by probe.
    places: HashMap<(u32, u64), u64>,
    /// How often an address had another id than before, for channels and tasks.
    changed: [u64; 2],
    /// What each executor is executing.
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
    /// One more than the highest activation seen.
    activated: u32,
    /// The probe and address that its id was last read at.
    read: Option<(u32, u64)>,
    thread: Option<u32>,
    is_named: bool,
}

/// One reason to doubt a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the trace must not be trusted.
    pub is_certain: bool,
    pub text: String,
}

/// An event of an object, which is numbered.
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

    /// Whether a thread has executed tasks.
    pub fn executes(&self, thread: u32) -> bool {
        self.executing.contains_key(&thread)
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

    /// Takes a name; `before` is the one read for the same object earlier.
    pub fn name(&mut self, channel: bool, object: u16, text: &str, before: Option<&str>) {
        let which = usize::from(!channel);
        let object = room(&mut self.objects[which], object);
        let is_first = !std::mem::replace(&mut object.is_named, true);
        self.no_text[which] += u64::from(is_first && !is_text(text));
        if let Some(before) = before.filter(|before| *before != text) {
            self.two_names
                .get_or_insert_with(|| [noun(channel).to_owned(), before.to_owned(), text.to_owned()]);
        }
    }

    /// All findings. `with_characters` counts the ids of channels and of tasks that consist of characters.
    pub fn findings(&self, file: &ProbeFile, counts: Counted, with_characters: [usize; 2]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut say = |is_certain: bool, text: String| findings.push(Finding { is_certain, text });
        self.unread(file, counts, with_characters, &mut say);
        // A program may have a single channel or a single task, but hardly both.
        let alone = [true, false].map(|channel| self.one_for_all(channel, file));
        let is_certain = alone.iter().all(Option::is_some);
        alone.into_iter().flatten().for_each(|text| say(is_certain, text));
        self.identities(true, file, &mut say);
        let are_tasks = self.identities(false, file, &mut say);
        if let Some([what, one, other]) = &self.two_names {
            say(
                true,
                format!(
                    "a {what} is called {one:?} and {other:?}: is its id shared by several, or the offset of \
                     its name wrong?"
                ),
            );
        }
        // Lost events make others seem out of order.
        if counts.lost == 0 && are_tasks {
            self.sequence(file, counts, &mut say);
        }
        let executors = self.executors();
        if let Some(declared) = file.executors.filter(|declared| executors > *declared as usize) {
            say(false, format!("executors = {declared}, but {executors} threads executed tasks"));
        }
        findings
    }

    /// Ids and names that could not be read or are not what they should be.
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
                "the id could not be read at {}, which are missing: does this build of the framework have \
                 the id of these probes elsewhere?",
                unreadable.join(", ")
            );
            say(is_much(unread, all + unread), text);
        }
        if counts.unconnected > 0 {
            let text = format!(
                "the channel or the task could not be read at {}: are the places of these probes elsewhere? \
                 Connections may be missing",
                counted(counts.unconnected, "connection")
            );
            say(false, text);
        }
        for (channel, count) in [true, false].into_iter().zip(counts.nameless).filter(|(_, count)| *count > 0)
        {
            let text = format!(
                "{} of {}s could not be read; ids are shown instead: is the name of these probes elsewhere?",
                counted(count, "name"),
                noun(channel)
            );
            say(false, text);
        }
        for (channel, count) in [true, false].into_iter().zip(self.no_text).filter(|(_, count)| *count > 0) {
            let text = format!(
                "the name of {} is not UTF-8 text; ids are shown instead: is the name of these probes \
                 elsewhere?",
                counted(count, noun(channel))
            );
            say(false, text);
        }
        for channel in [true, false] {
            let is_name = file.probes.iter().any(|probe| probe.names(channel) && probe.name == Name::Id);
            let (seen, which) = (self.objects[usize::from(!channel)].len(), usize::from(!channel));
            if is_name && seen >= 2 && with_characters[which] == 0 {
                let text = format!(
                    "no id of {} consists of characters, although the file has name = \"id\": is the id of \
                     these probes elsewhere?",
                    counted(seen as u64, noun(channel))
                );
                say(false, text);
            }
        }
    }

    /// The most addresses at which one probe read ids.
    fn places(&self, kind: Kind, file: &ProbeFile) -> u64 {
        let mut places: HashMap<u32, u64> = HashMap::new();
        let of_kind =
            |probe: u32| file.probes.get(probe as usize).is_some_and(|probe| probe.sees.kind() == Some(kind));
        self.places
            .keys()
            .filter(|(probe, _)| of_kind(*probe))
            .for_each(|(probe, _)| *places.entry(*probe).or_default() += 1);
        places.into_values().max().unwrap_or(0)
    }

    /// Whether all objects have one id, although it was read at several addresses.
    fn one_for_all(&self, channel: bool, file: &ProbeFile) -> Option<String> {
        let (kind, what, objects) = (kind(channel), noun(channel), &self.objects[usize::from(!channel)]);
        let seen = objects.iter().filter(|object| object.events > 0).count();
        let places = self.places(kind, file);
        (seen == 1 && places >= 2).then(|| {
            format!(
                "all {} are of one {what}, although its id was read at {} of memory: is there only one? If \
                 not, the offset of the id is wrong",
                counted(self.events[kind as usize], kind.name()),
                counted(places, "place")
            )
        })
    }

    /// Whether what is read as ids may be ids. If not, further checks are pointless.
    fn identities(&self, channel: bool, file: &ProbeFile, say: &mut dyn FnMut(bool, String)) -> bool {
        let (kind, what, which) = (kind(channel), noun(channel), usize::from(!channel));
        let objects = &self.objects[which];
        let seen = objects.iter().filter(|object| object.events > 0).count();
        let once = objects.iter().filter(|object| object.events == 1).count();
        // A counter passes each number once at each address.
        let places = self.places(kind, file);
        let passed = objects.iter().filter(|object| (1..=places.max(1)).contains(&object.events)).count();
        let is_changing = seen >= SOME
            && seen as u64 > 2 * places
            && passed * 4 >= seen * 3
            && 2 * self.changed[which] >= seen as u64;
        if is_changing {
            let text = format!(
                "what is read as the id of {what}s changes: {} at {} of memory; the offset of the id is \
                 wrong",
                counted(seen as u64, "number"),
                counted(places, "place")
            );
            say(true, text);
        } else if seen >= MANY && once * 4 >= seen * 3 {
            say(
                false,
                format!(
                    "{once} of {seen} {what}s were seen only once: is their id that of the {what}, or of a \
                     single {}?",
                    kind.name()
                ),
            );
        }
        !is_changing
    }

    /// Events in an impossible order.
    fn sequence(&self, file: &ProbeFile, counts: Counted, say: &mut dyn FnMut(bool, String)) {
        let [_, activations, starts, stops] = self.events;
        // Unreadable ids are a finding of their own; their consequences are not.
        if self.unactivated > 0 && counts.unreadable[Kind::Activation as usize] == 0 {
            let text = format!(
                "{} of tasks that were not activated: do activation and start have the same id, or do other \
                 functions activate tasks too?",
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
                "only {starts} of {activations} activations were started: do other functions start tasks too?"
            );
            say(false, text);
        }
        // What was queued or executed before the probes were there is a few at most.
        if counts.earlier > tasks.max(SOME as u64) + self.executors() as u64 {
            let text = format!(
                "{} or stops of what was not seen to be activated or started: do activation, start and stop \
                 have the same id?",
                counted(counts.earlier, "start")
            );
            say(is_much(counts.earlier, starts + stops + counts.earlier), text);
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
            // Without their stops, starts seem nested.
            return;
        }
        if self.nested > 0 {
            let text = format!(
                "{} while the same thread was executing another task: does every execution end in the \
                 function of the stop?",
                counted(self.nested, "start")
            );
            say(is_much(self.nested, starts), text);
        }
        // At a return, a task that the stop made ready may be running already.
        let at_return = file.probes.iter().any(|probe| probe.at_return);
        if self.parallel > 0 && !at_return && self.nested == 0 {
            let text = format!(
                "{} of tasks that another thread was executing: do several tasks have the same id, or does \
                 a task run in parallel with itself? If so, its instances cannot be told apart",
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

/// Whether it can be a name.
pub fn is_text(name: &str) -> bool {
    !name.contains(|character: char| character.is_control() || character == char::REPLACEMENT_CHARACTER)
}

/// The event that counts objects of a kind.
fn kind(channel: bool) -> Kind {
    if channel { Kind::Push } else { Kind::Activation }
}

pub fn noun(channel: bool) -> &'static str {
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
