//! Makes a trace of events seen from outside a program: threads become producers, identities numbers. Where
//! it goes is another's: to the disk, or to whoever follows it.

use super::connections::{self, Inputs};
use super::doubts::{Doubts, Event, Finding, is_text, noun};
use crate::error::{Error, Result};
use crate::platform;
use punctual_observe::flow::{Counted, Located, Name, ProbeFile, Seen, Sees};
use punctual_trace::flow::{About, Barrier, Connection, Kind, OBJECTS, Writer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Room for the events of some milliseconds of a busy thread.
const PACKET_BYTES: usize = 48 + 8 * 506;

/// The count of a barrier between its rounds: probes see each round's end, so no number of pushes is one.
const NEVER: u32 = u32::MAX;

/// What is traced, and how.
pub struct Source<'a> {
    pub file: &'a ProbeFile,
    pub located: &'a [Located],
    pub program: &'a Path,
    /// Whether it ran before, so that inputs may hold pushes that nobody saw.
    pub is_late: bool,
}

/// Where a trace goes. Times are nanoseconds.
pub trait Sink {
    /// Another producer; its number.
    fn add_producer(&mut self) -> Result<usize>;
    /// An event; those of a producer come in order.
    fn event(&mut self, producer: usize, at: u64, kind: Kind, object: u16, number: u64) -> Result<()>;
    /// A barrier's count is another from here on.
    fn count(&mut self, producer: usize, at: u64, channel: u16, count: u32) -> Result<()>;
    /// So many events found no room.
    fn discard(&mut self, events: u32) -> Result<()>;
    /// What is true of the whole trace has changed.
    fn describe(&mut self, about: &About) -> Result<()>;
    /// Everything so far is to be where it goes.
    fn flush(&mut self) -> Result<()>;
}

impl Sink for Writer {
    fn add_producer(&mut self) -> Result<usize> {
        Ok(Writer::add_producer(self)?)
    }

    fn event(&mut self, producer: usize, at: u64, kind: Kind, object: u16, number: u64) -> Result<()> {
        Ok(Writer::event(self, producer, at, kind, object, number)?)
    }

    fn count(&mut self, producer: usize, at: u64, channel: u16, count: u32) -> Result<()> {
        Ok(Writer::count(self, producer, at, channel, count)?)
    }

    /// The first producer counts losses, which belong to no thread.
    fn discard(&mut self, events: u32) -> Result<()> {
        Ok(Writer::discard(self, 0, events)?)
    }

    fn describe(&mut self, about: &About) -> Result<()> {
        Ok(Writer::describe(self, about)?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(Writer::flush(self)?)
    }
}

/// A trace in the making.
pub struct Recorder<'a, S> {
    file: &'a ProbeFile,
    sink: S,
    about: About,
    /// Whether what the sink knows of the trace is out of date.
    is_new: bool,
    producers: HashMap<u32, usize>,
    objects: [HashMap<u64, u16>; 2],
    id_is_name: [bool; 2],
    /// How many ids of channels and of tasks consist of characters.
    with_characters: [usize; 2],
    /// Names that were read, by object.
    named: [HashMap<u16, String>; 2],
    by_kind: [u64; 4],
    lost: u64,
    doubts: Doubts,
    inputs: Inputs,
    /// Whether there is a probe that sees all connections.
    sees_inputs: bool,
    policies: BTreeSet<String>,
}

impl<'a> Recorder<'a, Writer> {
    /// A trace on the disk.
    pub fn create(folder: &Path, source: &Source<'a>) -> Result<Recorder<'a, Writer>> {
        let about = about(source);
        let writer = Writer::create(folder, &about, 0, PACKET_BYTES)?;
        Ok(Recorder::new(source, about, writer))
    }

    pub fn finish(mut self, counted: Counted) -> Result<()> {
        self.tick(counted)?;
        Ok(self.sink.finish()?)
    }
}

/// What is known of a trace before its first event.
pub fn about(source: &Source<'_>) -> About {
    let Source { file, program, .. } = *source;
    let here = platform::here();
    About {
        program: Some(program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()),
        platform: Some(format!("Linux {} {}", here.kernel, here.machine)),
        policy: file.policy.clone(),
        executors: file.executors,
        clock_zero: u64::try_from(platform::clock_zero()).ok(),
        ..About::default()
    }
}

impl<'a, S: Sink> Recorder<'a, S> {
    /// A trace that goes to this sink, which knows what is known of it.
    pub fn new(source: &Source<'a>, about: About, sink: S) -> Recorder<'a, S> {
        let Source { file, .. } = *source;
        let is_name =
            |channel: bool| file.probes.iter().any(|probe| probe.names(channel) && probe.name == Name::Id);
        let sees_input =
            |it: &Located| it.function.is_some() && matches!(file.probes[it.probe].sees, Sees::Connection(_));
        Recorder {
            file,
            sink,
            about,
            is_new: false,
            producers: HashMap::new(),
            objects: Default::default(),
            id_is_name: [true, false].map(is_name),
            with_characters: [0; 2],
            named: Default::default(),
            by_kind: [0; 4],
            lost: 0,
            doubts: Doubts::default(),
            inputs: Inputs::new(source.is_late),
            sees_inputs: source.located.iter().any(sees_input),
            policies: BTreeSet::new(),
        }
    }

    /// Where it goes.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    pub fn events(&self) -> u64 {
        self.by_kind.iter().sum()
    }

    /// Events by kind, in the order of [`Kind::ALL`].
    pub fn by_kind(&self) -> [u64; 4] {
        self.by_kind
    }

    /// What contradicts the file, and what it declares that was not seen.
    pub fn findings(&self, counts: Counted) -> Vec<Finding> {
        let mut findings = self.doubts.findings(self.file, counts, self.with_characters);
        findings.extend(
            connections::unseen(&self.file.connections, &self.about)
                .map(|text| Finding { is_certain: false, text }),
        );
        findings
    }

    /// Takes an event; nothing more after a failure.
    pub fn take(&mut self, seen: Seen, failure: &mut Option<Error>) {
        if failure.is_none() {
            *failure = self.put(seen).err();
        }
    }

    fn put(&mut self, seen: Seen) -> Result<()> {
        match seen {
            Seen::Named { channel, id, text } => {
                let number = self.object(channel, id)?;
                if !text.is_empty() {
                    self.name(channel, number, text);
                }
            }
            Seen::Event { at, thread, kind, probe, id, place, number } => {
                let object = self.object(kind == Kind::Push, id)?;
                let producer = self.producer(thread)?;
                self.configuration(kind, object, probe, thread);
                self.sink.event(producer, at.ns(), kind, object, number.into())?;
                self.by_kind[kind as usize] += 1;
                self.doubts.event(Event { kind, object, id, thread, number, probe, place });
            }
            Seen::Round { at, thread, channel } => {
                let (channel, producer) = (self.object(true, channel)?, self.producer(thread)?);
                for count in [1, NEVER] {
                    self.sink.count(producer, at.ns(), channel, count)?;
                }
            }
            Seen::Connection { probe, channel, task, synchronised, threshold, is_final } => {
                let connection =
                    Connection { channel: self.object(true, channel)?, task: self.object(false, task)? };
                if let Some(Sees::Connection(places)) =
                    self.file.probes.get(probe as usize).map(|it| &it.sees)
                {
                    self.inputs.see(connection, places, synchronised, threshold, is_final);
                    self.is_new = true;
                }
            }
        }
        Ok(())
    }

    /// What an event shows of the program's configuration.
    fn configuration(&mut self, kind: Kind, object: u16, probe: u32, thread: u32) {
        let Some(probe) = self.file.probes.get(probe as usize) else { return };
        if probe.sees == Sees::BarrierPush && !self.about.barriers.contains_key(&object) {
            self.about.barriers.insert(object, Barrier { count: NEVER, arrived: 0 });
            self.is_new = true;
        }
        if let Some(policy) = probe.policy.as_ref().filter(|policy| !self.policies.contains(*policy)) {
            self.policies.insert(policy.clone());
            self.is_new = true;
        }
        self.is_new |= kind == Kind::Start && !self.doubts.executes(thread);
    }

    /// What the metadata say of the program: what its files declare, and else what was seen.
    fn describe(&mut self, counted: Counted) {
        let seen: Vec<&str> = self.policies.iter().map(String::as_str).collect();
        let policy = (!seen.is_empty()).then(|| seen.join(", "));
        self.about.policy = self.file.policy.clone().or(policy);
        let executors = u32::try_from(self.doubts.executors()).ok().filter(|executors| *executors > 0);
        self.about.executors = self.file.executors.or(executors);
        let declared = connections::known(&self.file.connections, &self.about);
        self.about.inputs = self.inputs.with(declared, &self.about.barriers);
        self.about.has_seen_inputs = self.sees_inputs && counted.unconnected == 0;
    }

    /// Keeps the first name that was read.
    fn name(&mut self, channel: bool, number: u16, text: String) {
        let before = self.named[usize::from(!channel)].get(&number);
        self.doubts.name(channel, number, &text, before.map(String::as_str));
        if before.is_some() {
            return;
        }
        self.named[usize::from(!channel)].insert(number, text.clone());
        if is_text(&text) {
            self.names(channel).insert(number, text);
            self.is_new = true;
        }
    }

    fn names(&mut self, channel: bool) -> &mut BTreeMap<u16, String> {
        if channel { &mut self.about.channels } else { &mut self.about.tasks }
    }

    fn object(&mut self, channel: bool, id: u64) -> Result<u16> {
        let (which, what) = (usize::from(!channel), noun(channel));
        if let Some(&number) = self.objects[which].get(&id) {
            return Ok(number);
        }
        let count = self.objects[which].len();
        // Long before the trace's room for objects runs out, what is read cannot be an identity.
        let number = u16::try_from(count).ok().filter(|_| count < OBJECTS / 16).ok_or_else(|| {
            let probes = if channel { "push" } else { "activation or start" };
            Error::target(format!("more than {count} {what}s were seen")).because(format!(
                "what is read as their id is not one: the id of {probes} is in the wrong place"
            ))
        })?;
        self.objects[which].insert(id, number);
        let characters = characters(id).filter(|_| self.id_is_name[which]);
        self.with_characters[which] += usize::from(characters.is_some());
        let name = characters.unwrap_or_else(|| format!("{what} {id:#x}"));
        self.names(channel).insert(number, name);
        self.is_new = true;
        Ok(number)
    }

    fn producer(&mut self, thread: u32) -> Result<usize> {
        if let Some(&producer) = self.producers.get(&thread) {
            return Ok(producer);
        }
        let producer = self.sink.add_producer()?;
        self.producers.insert(thread, producer);
        self.about.producers.insert(producer as u32, format!("thread {thread}"));
        self.about.threads.insert(producer as u32, thread);
        self.is_new = true;
        Ok(producer)
    }

    /// Called several times a second; the sink has everything so far afterwards.
    pub fn tick(&mut self, counted: Counted) -> Result<()> {
        let lost = counted.lost - self.lost;
        if lost > 0 && !self.producers.is_empty() {
            self.sink.discard(u32::try_from(lost).unwrap_or(u32::MAX))?;
            self.lost = counted.lost;
        }
        if std::mem::take(&mut self.is_new) {
            self.describe(counted);
            self.sink.describe(&self.about)?;
        }
        self.sink.flush()
    }
}

/// The text of an id whose bytes are characters, the most significant first.
fn characters(id: u64) -> Option<String> {
    let bytes = id.to_be_bytes();
    let text: Vec<u8> = bytes.into_iter().skip_while(|&byte| byte == 0).collect();
    let text = std::str::from_utf8(&text).ok()?.trim_end();
    (!text.is_empty() && is_text(text)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::characters;

    #[test]
    fn ids_made_of_characters_become_names() {
        for (id, text) in [
            (0x6361_6d31, Some("cam1")),
            (0x6361_6d20, Some("cam")),
            (0x0163_616d, None),
            (0x2020, None),
            (0, None),
        ] {
            assert_eq!(characters(id).as_deref(), text, "{id:#x}");
        }
    }
}
