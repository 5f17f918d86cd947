//! Events from outside a program into a trace of it: threads become producers, identities become numbers.

use super::connections;
use super::doubts::{Doubts, Finding, Of, is_text, what};
use crate::failure::{Code, Failure};
use crate::platform;
use punctual_observe::flow::{Counted, Name, ProbeFile, Seen};
use punctual_trace::flow::{About, Kind, OBJECTS, Writer};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Of a packet: what comes in some milliseconds of a busy thread.
const PACKET_BYTES: usize = 48 + 8 * 506;

/// A trace that is being written.
pub struct Recorder<'a> {
    file: &'a ProbeFile,
    writer: Writer,
    about: About,
    /// Whether the metadata on disk does not say all of it.
    is_new: bool,
    producers: HashMap<u32, usize>,
    objects: [HashMap<u64, u16>; 2],
    id_is_name: [bool; 2],
    /// Ids of characters, of channels and of tasks.
    with_characters: [usize; 2],
    /// Objects of which a name was read.
    named: [HashMap<u16, String>; 2],
    by_kind: [u64; 4],
    lost: u64,
    doubts: Doubts,
}

impl<'a> Recorder<'a> {
    pub fn create(folder: &Path, file: &'a ProbeFile, program: &Path) -> Result<Recorder<'a>, Failure> {
        let here = platform::here();
        let about = About {
            program: Some(program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()),
            platform: Some(format!("Linux {} {}", here.kernel, here.machine)),
            policy: file.policy.clone(),
            executors: file.executors,
            clock_zero: u64::try_from(platform::clock_zero()).ok(),
            ..About::default()
        };
        // The first producer takes what is lost of nobody in particular.
        let writer = Writer::create(folder, &about, 0, PACKET_BYTES)?;
        let is_name = |channel: bool| {
            file.probes.iter().any(|probe| (probe.kind == Kind::Push) == channel && probe.name == Name::Id)
        };
        Ok(Recorder {
            file,
            writer,
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
        })
    }

    pub fn events(&self) -> u64 {
        self.by_kind.iter().sum()
    }

    /// As in [`Kind::ALL`].
    pub fn by_kind(&self) -> [u64; 4] {
        self.by_kind
    }

    /// What speaks against the file, and what it declares and nobody saw.
    pub fn findings(&self, told: Counted) -> Vec<Finding> {
        let mut findings = self.doubts.findings(self.file, told, self.with_characters);
        findings.extend(
            connections::unseen(&self.file.connections, &self.about)
                .map(|text| Finding { is_certain: false, text }),
        );
        findings
    }

    /// After a failure nothing more is taken.
    pub fn take(&mut self, seen: Seen, failure: &mut Option<Failure>) {
        if failure.is_none() {
            *failure = self.put(seen).err();
        }
    }

    fn put(&mut self, seen: Seen) -> Result<(), Failure> {
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
                self.writer.event(producer, at.ns(), kind, object, number.into())?;
                self.by_kind[kind as usize] += 1;
                self.doubts.event(Of { kind, object, id, thread, number, probe, place });
            }
        }
        Ok(())
    }

    /// The first name that was read stays.
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

    fn object(&mut self, channel: bool, id: u64) -> Result<u16, Failure> {
        let (which, what) = (usize::from(!channel), what(channel));
        if let Some(&number) = self.objects[which].get(&id) {
            return Ok(number);
        }
        let count = self.objects[which].len();
        // A trace has room for no more; long before, what is read is no identity.
        let number = u16::try_from(count).ok().filter(|_| count < OBJECTS / 16).ok_or_else(|| {
            let probes = if channel { "push" } else { "activation or start" };
            let message =
                format!("more than {count} {what}s were seen: what is read as their id is none; the place of the id is wrong, of {probes}");
            Failure::new(Code::Target, message)
        })?;
        self.objects[which].insert(id, number);
        let characters = characters(id).filter(|_| self.id_is_name[which]);
        self.with_characters[which] += usize::from(characters.is_some());
        let name = characters.unwrap_or_else(|| format!("{what} {id:#x}"));
        self.names(channel).insert(number, name);
        self.is_new = true;
        Ok(number)
    }

    fn producer(&mut self, thread: u32) -> Result<usize, Failure> {
        if let Some(&producer) = self.producers.get(&thread) {
            return Ok(producer);
        }
        let producer = self.writer.add_producer()?;
        self.producers.insert(thread, producer);
        self.about.producers.insert(producer as u32, format!("thread {thread}"));
        self.about.threads.insert(producer as u32, thread);
        self.is_new = true;
        Ok(producer)
    }

    /// A few times a second: what is on the disk is a whole trace then.
    pub fn tick(&mut self, counted: Counted) -> Result<(), Failure> {
        let lost = counted.lost - self.lost;
        if lost > 0 && !self.producers.is_empty() {
            self.writer.discard(0, u32::try_from(lost).unwrap_or(u32::MAX))?;
            self.lost = counted.lost;
        }
        if std::mem::take(&mut self.is_new) {
            self.about.inputs = connections::known(&self.file.connections, &self.about);
            self.writer.describe(&self.about)?;
        }
        Ok(self.writer.flush()?)
    }

    pub fn finish(mut self, counted: Counted) -> Result<(), Failure> {
        self.tick(counted)?;
        Ok(self.writer.finish()?)
    }
}

/// An id whose bytes are characters, the most significant first.
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
    fn ids_of_characters_are_read() {
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
