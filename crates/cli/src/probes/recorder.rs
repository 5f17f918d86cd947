//! Events from outside a program into a trace of it: threads become producers, identities become numbers.

use crate::failure::{Code, Failure};
use crate::platform;
use punctual_observe::probes::{Counted, Name, ProbeFile, Seen};
use punctual_trace::flow::{About, Kind, OBJECTS, Writer};
use std::collections::HashMap;
use std::path::Path;

/// Of a packet: what comes in some milliseconds of a busy thread.
const PACKET_BYTES: usize = 48 + 8 * 506;

/// A trace that is being written.
pub struct Recorder {
    writer: Writer,
    about: About,
    /// Whether the metadata on disk does not say all of it.
    is_new: bool,
    producers: HashMap<u32, usize>,
    objects: HashMap<(bool, u64), u16>,
    id_is_name: [bool; 2],
    by_kind: [u64; 4],
    lost: u64,
}

impl Recorder {
    pub fn create(folder: &Path, file: &ProbeFile, program: &Path) -> Result<Recorder, Failure> {
        let here = platform::here();
        let about = About {
            program: Some(program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()),
            platform: Some(format!("Linux {} {}", here.kernel, here.machine)),
            clock_zero: u64::try_from(platform::clock_zero()).ok(),
            ..About::default()
        };
        // The first producer takes what is lost of nobody in particular.
        let writer = Writer::create(folder, &about, 0, PACKET_BYTES)?;
        let is_name = |channel: bool| file.probes.iter().any(|probe| (probe.kind == Kind::Push) == channel && probe.name == Name::Id);
        let id_is_name = [is_name(false), is_name(true)];
        Ok(Recorder {
            writer,
            about,
            is_new: false,
            producers: HashMap::new(),
            objects: HashMap::new(),
            id_is_name,
            by_kind: [0; 4],
            lost: 0,
        })
    }

    pub fn events(&self) -> u64 {
        self.by_kind.iter().sum()
    }

    /// As in [`Kind::ALL`].
    pub fn by_kind(&self) -> [u64; 4] {
        self.by_kind
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
                    self.names(channel).insert(number, text);
                    self.is_new = true;
                }
            }
            Seen::Event { at, thread, kind, id, number } => {
                let object = self.object(kind == Kind::Push, id)?;
                let producer = self.producer(thread)?;
                self.writer.event(producer, at.ns(), kind, object, number.into())?;
                self.by_kind[kind as usize] += 1;
            }
        }
        Ok(())
    }

    fn names(&mut self, channel: bool) -> &mut std::collections::BTreeMap<u16, String> {
        if channel { &mut self.about.channels } else { &mut self.about.tasks }
    }

    fn object(&mut self, channel: bool, id: u64) -> Result<u16, Failure> {
        if let Some(&number) = self.objects.get(&(channel, id)) {
            return Ok(number);
        }
        let count = self.objects.keys().filter(|(is_channel, _)| *is_channel == channel).count();
        let what = if channel { "channel" } else { "task" };
        // A trace has room for no more; long before, what is read is no identity.
        let number = u16::try_from(count).ok().filter(|_| count < OBJECTS / 16).ok_or_else(|| {
            let message =
                format!("more than {count} {what}s: what is read as their id is none; punctual flow-probes check shows where it is read");
            Failure::new(Code::Target, message)
        })?;
        self.objects.insert((channel, id), number);
        let name = match self.id_is_name[usize::from(channel)] {
            true => characters(id),
            false => format!("{what} {id:#x}"),
        };
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
fn characters(id: u64) -> String {
    let bytes = id.to_be_bytes();
    let text: Vec<u8> = bytes.into_iter().skip_while(|&byte| byte == 0).collect();
    match std::str::from_utf8(&text).ok().filter(|text| !text.is_empty() && !text.contains(char::is_control)) {
        Some(text) => text.trim_end().to_owned(),
        None => format!("{id:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::characters;

    #[test]
    fn ids_of_characters_are_read() {
        assert_eq!(characters(0x6361_6d31), "cam1");
        assert_eq!(characters(0x6361_6d20), "cam");
        assert_eq!(characters(0x0163_616d), "0x163616d");
        assert_eq!(characters(0), "0x0");
    }
}
