//! The events of all processors in order of time. Those of one are in order in the file; where the packets of
//! the others are is looked up no further ahead than needed.

use super::super::bytes::Bytes;
use super::bundle::{Bundle, Event, Place};
use super::file::{Found, Packets, Part, Spot};
use super::packet::{Content, Packet, cpu};
use super::survey::{Begin, Survey};
use super::wire::Malformed;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Packets that are remembered while one of a processor is looked for. Beyond, it is not waited for.
const MOST_WAITING: usize = 1 << 20;

/// A writer and a processor.
type Key = (u32, u32);

/// What comes next of all processors.
pub enum Item {
    /// An event, which is in [`Merge::event`].
    Event { at: u64, stream: usize },
    /// Events of a processor are missing before its next one.
    Gap { stream: usize, is_first: bool },
    /// There is nothing more of a processor.
    End { stream: usize },
}

/// The events of one processor by one writer.
struct Stream {
    key: Key,
    begin: Begin,
    waiting: VecDeque<Entry>,
    bundle: Bundle,
    /// The event that is next or was last in the bundle.
    next: usize,
    place: Option<Place>,
    /// When the bundle before ended.
    end: Option<u64>,
    is_begun: bool,
    /// Bundles may be missing before the next one.
    is_doubtful: bool,
    /// It ended, or is not waited for.
    is_left: bool,
}

/// What was found of a stream.
enum Entry {
    Bundle(Spot),
    /// A packet is missing or cannot be read, which may have been one of it: the next bundle tells.
    Doubt,
}

/// What comes next of a stream.
enum Next {
    Event(u64),
    Gap,
}

/// All streams.
pub struct Merge<'b> {
    packets: Packets<'b>,
    streams: Vec<Stream>,
    numbers: HashMap<Key, usize>,
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// Streams whose next event is to be looked for.
    open: Vec<usize>,
    waiting: usize,
    /// What could not be read.
    pub damage: Vec<String>,
    /// Events without a time.
    pub untimed: u64,
}

impl<'b> Merge<'b> {
    pub fn new(bytes: &'b Bytes, survey: &Survey) -> Merge<'b> {
        let streams: Vec<Stream> =
            survey.streams.iter().map(|(key, begin)| Stream::new(*key, *begin)).collect();
        Merge {
            packets: Packets::of(bytes),
            numbers: streams.iter().enumerate().map(|(number, stream)| (stream.key, number)).collect(),
            open: (0..streams.len()).rev().collect(),
            streams,
            heads: BinaryHeap::new(),
            waiting: 0,
            damage: Vec::new(),
            untimed: 0,
        }
    }

    pub fn next(&mut self) -> Option<Item> {
        while let Some(stream) = self.open.pop() {
            match self.advance(stream) {
                Some(Next::Event(at)) => self.heads.push(Reverse((at, stream))),
                Some(Next::Gap) => {
                    self.open.push(stream);
                    let is_first = !std::mem::replace(&mut self.streams[stream].is_begun, true);
                    return Some(Item::Gap { stream, is_first });
                }
                None => {
                    self.streams[stream].leave();
                    return Some(Item::End { stream });
                }
            }
        }
        let Reverse((at, stream)) = self.heads.pop()?;
        self.open.push(stream);
        self.streams[stream].is_begun = true;
        Some(Item::Event { at, stream })
    }

    /// The last event of a stream.
    pub fn event(&self, stream: usize) -> Option<Event<'_>> {
        let Stream { bundle, place, .. } = &self.streams[stream];
        place.map(|place| bundle.event(place))
    }

    pub fn cpu(&self, stream: usize) -> u32 {
        self.streams[stream].key.1
    }

    pub fn position(&self) -> u64 {
        self.packets.at
    }

    fn advance(&mut self, number: usize) -> Option<Next> {
        loop {
            if let Some(at) = self.streams[number].step() {
                return Some(Next::Event(at));
            }
            match self.entry(number) {
                Some(Entry::Doubt) => self.streams[number].is_doubtful = true,
                Some(Entry::Bundle(spot)) if self.load(number, spot) => return Some(Next::Gap),
                Some(Entry::Bundle(_)) => {}
                None if std::mem::take(&mut self.streams[number].is_doubtful) => return Some(Next::Gap),
                None => return None,
            }
        }
    }

    /// Reads a bundle. Returns whether events are missing before it.
    fn load(&mut self, number: usize, spot: Spot) -> bool {
        let stream = &mut self.streams[number];
        let part = self.packets.part(spot);
        match part.and_then(|part| stream.load(&part)) {
            Ok(is_gap) => {
                self.untimed += stream.bundle.untimed;
                is_gap
            }
            Err(why) => {
                stream.bundle.free();
                (stream.end, stream.is_doubtful) = (None, false);
                self.note(why);
                true
            }
        }
    }

    /// What was found of a stream, looking on if nothing was yet.
    fn entry(&mut self, number: usize) -> Option<Entry> {
        loop {
            if let Some(entry) = self.streams[number].waiting.pop_front() {
                self.waiting -= 1;
                return Some(entry);
            }
            if self.packets.at > self.streams[number].begin.last_packet {
                return None;
            }
            if self.waiting >= MOST_WAITING || !self.look() {
                return None;
            }
        }
    }

    /// Looks at the next packet of the file. Returns false at its end.
    fn look(&mut self) -> bool {
        match self.packets.next() {
            None | Some(Found::Cut(_)) => return false,
            Some(Found::Damage(why)) => self.damaged(why),
            Some(Found::Packet) => match self.found() {
                Ok(Some((key, entry))) => self.put(key, entry),
                Ok(None) => {}
                Err(Malformed) => self.damaged("a packet that is no message".to_owned()),
            },
        }
        true
    }

    /// What the packet has for a stream.
    fn found(&mut self) -> Result<Option<(Key, Entry)>, Malformed> {
        let packet = Packet::read(self.packets.current())?;
        if packet.machine != 0 {
            return Ok(None);
        }
        let (sequence, follows_loss) = (packet.sequence, packet.follows_loss && !packet.is_first);
        let found = match packet.content {
            Content::Ftrace(bundle) => {
                let cpu = cpu(bundle)?;
                self.packets.spot_of(bundle).map(|spot| ((sequence, cpu), Entry::Bundle(spot)))
            }
            _ => None,
        };
        if follows_loss {
            self.lose(|key| key.0 == sequence);
        }
        Ok(found)
    }

    fn put(&mut self, key: Key, entry: Entry) {
        let Some(number) = self.numbers.get(&key).copied() else { return };
        let stream = &mut self.streams[number];
        stream.waiting.push_back(entry);
        self.waiting += 1;
        if std::mem::take(&mut stream.is_left) {
            self.open.push(number);
        }
    }

    /// Packets of these streams are missing.
    fn lose(&mut self, is_meant: impl Fn(Key) -> bool) {
        let keys: Vec<_> = self.numbers.keys().copied().filter(|key| is_meant(*key)).collect();
        for key in keys {
            let Some(number) = self.numbers.get(&key).copied() else { continue };
            let is_known = matches!(self.streams[number].waiting.back(), Some(Entry::Doubt));
            if !is_known && !self.streams[number].is_left {
                self.put(key, Entry::Doubt);
            }
        }
    }

    fn damaged(&mut self, why: String) {
        self.note(why);
        self.lose(|_| true);
    }

    fn note(&mut self, why: String) {
        const MOST: usize = 20;
        if self.damage.len() < MOST {
            self.damage.push(why);
        }
    }
}

impl Stream {
    fn new(key: Key, begin: Begin) -> Stream {
        Stream {
            key,
            begin,
            waiting: VecDeque::new(),
            bundle: Bundle::default(),
            next: 0,
            place: None,
            end: None,
            is_begun: false,
            is_doubtful: false,
            is_left: false,
        }
    }

    /// Goes on to the next event of the bundle.
    fn step(&mut self) -> Option<u64> {
        self.place = self.bundle.place_at(self.next);
        self.next += 1;
        Some(self.place?.at)
    }

    /// Reads a bundle. Returns whether events are missing before it.
    fn load(&mut self, part: &Part) -> Result<bool, String> {
        self.next = 0;
        let malformed = |_| format!("events of processor {} that are no messages", self.key.1);
        self.bundle.read(part.bytes()).map_err(malformed)?;
        if self.bundle.is_damaged {
            return Err(format!("events of processor {} that the recorder could not read", self.key.1));
        }
        let end = self.end;
        self.end = self.bundle.end().or(end);
        let is_doubtful = std::mem::take(&mut self.is_doubtful);
        let is_gap = match (end, self.bundle.follows) {
            (Some(end), Some(follows)) => end != follows,
            (None, Some(_)) => false,
            (_, None) => is_doubtful,
        };
        Ok(self.bundle.follows_loss || is_gap)
    }

    fn leave(&mut self) {
        self.bundle.free();
        self.place = None;
        self.is_left = true;
    }
}
