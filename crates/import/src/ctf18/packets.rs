//! One stream's file, packet by packet and event by event, through a window.

use super::bits::{Bits, Stop};
use super::nodes::State;
use super::plan::{Class, Plan, StreamPlan};
use punctual_trace::damage::{Damage, Damages};
use punctual_trace::source::{Bytes, Stream};
use std::io;

pub const MAGIC: u32 = 0xC1FC_1FC1;
/// Greatest event.
const MOST_WINDOW: usize = 8 << 20;
/// Where packets may begin behind a damaged one: tracers write pages.
const PAGE: u64 = 4096;

/// What comes next in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// An event of this class, which is decoded.
    Event(usize),
    /// So many events were discarded by the tracer, and packets are missing or damaged, from the last event
    /// until this tick.
    Lost {
        events: u64,
        packets: u64,
        until: u64,
    },
    End,
}

/// What was found in a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    pub events: u64,
    pub discarded: u64,
    pub packets: u64,
}

/// From where to where the packets of a file go, in ticks, as far as they have been opened.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The class of the stream, and the processor.
    pub of: (u64, Option<u32>),
    /// Number of the first packet.
    pub sequence: u64,
    pub begin: Option<u64>,
    pub end: Option<u64>,
}

/// The packet that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    /// Byte in the file.
    from: u64,
    /// Its content ends at this bit.
    end: u64,
    is_open: bool,
}

/// What a packet says of itself.
struct Said {
    stream: u64,
    /// Bits.
    content: u64,
    size: u64,
    begin: Option<u64>,
    end: Option<u64>,
    sequence: Option<u64>,
    discarded: Option<u64>,
    cpu: Option<u32>,
    /// Where its events begin.
    at: u64,
}

/// A stream as it is read.
pub struct Cursor<'a> {
    plan: &'a Plan,
    classes: &'a [Class],
    stream: &'a Stream,
    bytes: Bytes<'a>,
    /// A part of the file, and where that begins.
    window: Vec<u8>,
    window_at: u64,
    window_size: usize,
    packet: Packet,
    stream_plan: Option<&'a StreamPlan>,
    /// The next packet's byte in the file; the next event's bit in the packet.
    next: u64,
    at: u64,
    sequence: Option<u64>,
    discarded: Option<u64>,
    /// Whether any packet made sense.
    has_packets: bool,
    /// The file's length by its index, until it has been compared.
    indexed: Option<u64>,
    /// Packets that were left out, wholly or in part, since the last that was taken.
    left_out: u64,
    state: State,
    pub cpu: Option<u32>,
    /// Ticks of the head; never less than before.
    pub tick: u64,
    pub head: Head,
    pub found: Found,
    pub damages: Damages,
    /// Of the packets that were opened.
    pub span: Option<Span>,
}

impl<'a> Cursor<'a> {
    /// `window` is how many bytes it keeps, as long as no event is greater.
    pub fn new(
        plan: &'a Plan,
        classes: &'a [Class],
        stream: &'a Stream,
        window: usize,
    ) -> io::Result<Cursor<'a>> {
        let mut cursor = Cursor {
            plan,
            classes,
            stream,
            bytes: stream.open()?,
            indexed: stream.indexed,
            window: Vec::new(),
            window_at: 0,
            window_size: window,
            packet: Packet::default(),
            stream_plan: None,
            next: 0,
            at: 0,
            sequence: None,
            discarded: None,
            has_packets: false,
            left_out: 0,
            state: State::new(plan.places),
            cpu: None,
            tick: 0,
            head: Head::End,
            found: Found::default(),
            damages: Damages::default(),
            span: None,
        };
        cursor.advance()?;
        Ok(cursor)
    }

    /// How far it has come in its file.
    pub fn offset(&self) -> u64 {
        (self.packet.from + self.at / 8).min(self.stream.length)
    }

    /// Values of the head, and the bytes that strings among them lie in.
    pub fn values(&self) -> (&State, &[u8]) {
        (&self.state, self.slice().0)
    }

    /// The bytes at hand from the packet's first on, and the place of the first of them, in bits.
    #[inline]
    fn slice(&self) -> (&[u8], u64) {
        slice(&self.window, self.window_at, self.packet.from)
    }

    /// Goes on to what comes next.
    pub fn advance(&mut self) -> io::Result<()> {
        loop {
            if self.packet.is_open && self.at < self.packet.end {
                match self.event()? {
                    Ok(class) => {
                        self.tick = self.tick.max(self.state.clock);
                        self.found.events += 1;
                        self.head = Head::Event(class);
                        return Ok(());
                    }
                    Err(what) => self.leave_out_rest(what),
                }
            }
            self.packet.is_open = false;
            if self.next < self.stream.length {
                if self.open_packet()? {
                    return Ok(());
                }
                continue;
            }
            self.compare_with_index();
            self.head = match std::mem::take(&mut self.left_out) {
                0 => Head::End,
                _ if self.is_foreign() => {
                    self.found.packets = 0;
                    Head::End
                }
                packets => Head::Lost { events: 0, packets, until: u64::MAX },
            };
            return Ok(());
        }
    }

    /// A file that was cut off between two packets looks whole.
    fn compare_with_index(&mut self) {
        if let Some(indexed) = self.indexed.take().filter(|indexed| *indexed > self.stream.length) {
            let what = format!("the file ends here, and its index has packets up to byte {indexed}");
            self.damages.push(Damage::new(&self.stream.name, self.stream.length, what));
            self.left_out += 1;
            self.found.packets += 1;
        }
    }

    /// Whether the file is no stream: nothing in it is a packet, and it has no number as streams have. Of a
    /// stream that is destroyed, all is missing.
    fn is_foreign(&self) -> bool {
        !self.has_packets && !self.stream.name.ends_with(|last: char| last.is_ascii_digit())
    }

    /// Decodes the next event; or says why it cannot be.
    fn event(&mut self) -> io::Result<Result<usize, &'static str>> {
        loop {
            let Some(plan) = self.stream_plan else { return Ok(Err("a packet is of no stream")) };
            let clock = self.state.clock;
            let (bytes, first) = slice(&self.window, self.window_at, self.packet.from);
            let mut bits = Bits::new(bytes, first, self.at, self.packet.end);
            match event(plan, self.classes, &mut self.state, &mut bits) {
                Ok(class) if bits.at() > self.at => {
                    self.at = bits.at();
                    return Ok(Ok(class));
                }
                Ok(_) => return Ok(Err("an event is empty")),
                // Fewer bits than an event has are padding.
                Err(Stop::End) if self.packet.end - self.at < 8 => {
                    self.at = self.packet.end;
                    return Ok(Err(""));
                }
                Err(Stop::End) => return Ok(Err("an event reaches beyond the end of its packet")),
                Err(Stop::Nonsense(what)) => return Ok(Err(what)),
                Err(Stop::More) => {
                    self.state.clock = clock;
                    if !self.refill(self.packet.from + self.at / 8)? {
                        return Ok(Err("an event is larger than 8 MiB"));
                    }
                }
            }
        }
    }

    #[cold]
    fn leave_out_rest(&mut self, what: &str) {
        if !what.is_empty() {
            let at = self.packet.from + self.at / 8;
            let what = format!("{what}; the rest of the packet is left out");
            self.damages.push(Damage::new(&self.stream.name, at, what));
            self.left_out += 1;
            self.found.packets += 1;
        }
        self.at = self.packet.end;
    }

    /// Has more of the file from this byte on; false if there is no more, or it is too much.
    fn refill(&mut self, from: u64) -> io::Result<bool> {
        let is_same = from == self.window_at && !self.window.is_empty();
        let wanted = if is_same { 2 * self.window.len() } else { self.window_size };
        let length = wanted.min(usize::try_from(self.stream.length.saturating_sub(from)).unwrap_or(wanted));
        if wanted > MOST_WINDOW || is_same && length <= self.window.len() {
            return Ok(false);
        }
        self.window.resize(length, 0);
        self.window_at = from;
        self.bytes.read(from, &mut self.window)?;
        Ok(true)
    }

    /// Opens the next packet. Returns whether the head is that something is missing before it.
    fn open_packet(&mut self) -> io::Result<bool> {
        let from = self.next;
        let left = self.stream.length - from;
        self.packet = Packet { from, end: left.saturating_mul(8), is_open: false };
        let said = match self.said()? {
            Ok(said) => said,
            Err(what) => {
                let what = format!("{what}; what follows up to the next packet is left out");
                self.damages.push(Damage::new(&self.stream.name, from, what));
                self.left_out += 1;
                self.found.packets += 1;
                self.next = self.search(from)?;
                return Ok(false);
            }
        };
        self.has_packets = true;
        let Said { stream, cpu, sequence, begin, end, .. } = said;
        let span = Span { of: (stream, cpu), sequence: sequence.unwrap_or(0), begin, end };
        self.span.get_or_insert(span).end = end;
        self.next = from.saturating_add(said.size / 8);
        self.packet.end = said.content;
        if self.next > self.stream.length {
            self.packet.end = said.content.min(8 * left);
            let what = "the file was cut off in this packet; what is there of it is read";
            self.damages.push(Damage::new(&self.stream.name, from, what));
        }
        let is_cut = self.packet.end < said.content;
        (self.packet.is_open, self.at) = (true, said.at);
        self.cpu = said.cpu;
        self.stream_plan = self.plan.streams.get(&said.stream);
        let missing = self.missing(&said);
        if is_cut {
            self.left_out += 1;
            self.found.packets += 1;
        }
        if let Some(begin) = said.begin {
            self.state.clock = begin;
        }
        self.head = missing;
        Ok(matches!(missing, Head::Lost { .. }))
    }

    /// What is missing between the last packet and this one.
    fn missing(&mut self, said: &Said) -> Head {
        let expected = self.sequence.map(|sequence| sequence.wrapping_add(1));
        let skipped = said.sequence.zip(expected).map_or(0, |(it, expected)| it.saturating_sub(expected));
        // Of one file of several, or one that was written over, the beginning is missing by intention.
        let is_first = self.discarded.is_none() && said.sequence.unwrap_or(0) == 0;
        let before = if is_first { Some(0) } else { self.discarded };
        let discarded = said.discarded.zip(before).map_or(0, |(it, before)| it.saturating_sub(before));
        (self.sequence, self.discarded) =
            (said.sequence.or(self.sequence), said.discarded.or(self.discarded));
        let left_out = std::mem::take(&mut self.left_out);
        self.found.discarded = self.found.discarded.saturating_add(discarded);
        self.found.packets = self.found.packets.saturating_add(skipped.saturating_sub(left_out));
        match (discarded, skipped.max(left_out)) {
            (0, 0) => Head::End,
            (events, packets) => {
                Head::Lost { events, packets, until: said.begin.unwrap_or(u64::MAX).max(self.tick) }
            }
        }
    }

    /// Decodes the packet's header and context; or says why that is none.
    fn said(&mut self) -> io::Result<Result<Said, &'static str>> {
        let clock = self.state.clock;
        loop {
            self.state.begin();
            let (bytes, first) = slice(&self.window, self.window_at, self.packet.from);
            let mut bits = Bits::new(bytes, first, 0, self.packet.end);
            let said = said(self.plan, &mut self.state, &mut bits);
            self.state.clock = clock;
            match said {
                Ok(said) => return Ok(Ok(said)),
                Err(Stop::More) if self.refill(self.packet.from)? => {}
                Err(Stop::Nonsense(what)) => return Ok(Err(what)),
                Err(Stop::More | Stop::End) => return Ok(Err("a packet's header is cut off")),
            }
        }
    }

    /// Where the next packet may begin behind one that makes no sense.
    fn search(&self, from: u64) -> io::Result<u64> {
        if self.plan.packet.place("magic").is_none() {
            return Ok(self.stream.length);
        }
        let magic = if self.plan.is_big { MAGIC.to_be_bytes() } else { MAGIC.to_le_bytes() };
        let mut at = (from / PAGE + 1) * PAGE;
        let mut bytes = [0; 4];
        while at + 4 <= self.stream.length {
            self.bytes.read(at, &mut bytes)?;
            if bytes == magic {
                return Ok(at);
            }
            at += PAGE;
        }
        Ok(self.stream.length)
    }
}

#[inline]
fn slice(window: &[u8], window_at: u64, packet_from: u64) -> (&[u8], u64) {
    match packet_from.checked_sub(window_at) {
        Some(skip) => (window.get(skip as usize..).unwrap_or(&[]), 0),
        None => (window, 8 * (window_at - packet_from)),
    }
}

/// Decodes an event; its class.
#[inline]
fn event(
    plan: &StreamPlan,
    classes: &[Class],
    state: &mut State,
    bits: &mut Bits<'_>,
) -> Result<usize, Stop> {
    state.begin();
    if let Some(header) = &plan.event_header {
        header.decode(bits, state)?;
    }
    let class = plan.class(state.id).ok_or(Stop::Nonsense("an event is of no declared kind"))?;
    if let Some(context) = &plan.event_context {
        context.decode(bits, state)?;
    }
    classes[class].nodes().try_for_each(|node| node.decode(bits, state))?;
    Ok(class)
}

fn said(plan: &Plan, state: &mut State, bits: &mut Bits<'_>) -> Result<Said, Stop> {
    let end = bits.end();
    if let Some(header) = &plan.packet.header {
        header.decode(bits, state)?;
    }
    let value = |state: &State, place: Option<usize>| {
        place.and_then(|place| state.values[place].number()).and_then(|value| u64::try_from(value).ok())
    };
    let of_packet = |name: &str| value(state, plan.packet.place(name));
    if plan.packet.place("magic").is_some() && of_packet("magic") != Some(u64::from(MAGIC)) {
        return Err(Stop::Nonsense("there should be a packet"));
    }
    let stream = of_packet("stream_id").unwrap_or(0);
    let of_stream = plan.streams.get(&stream).ok_or(Stop::Nonsense("a packet is of no declared stream"))?;
    if let Some(context) = &of_stream.packet_context {
        context.decode(bits, state)?;
    }
    let of_context = |name: &str| value(state, of_stream.place(name));
    let size = of_context("packet_size").or(of_context("content_size")).unwrap_or(end);
    let content = of_context("content_size").unwrap_or(size);
    if content > size || content < bits.at() || size % 8 != 0 || size == 0 {
        return Err(Stop::Nonsense("a packet has an impossible size"));
    }
    Ok(Said {
        stream,
        content,
        size,
        begin: of_context("timestamp_begin"),
        end: of_context("timestamp_end"),
        sequence: of_context("packet_seq_num"),
        discarded: of_context("events_discarded"),
        cpu: of_context("cpu_id").and_then(|cpu| u32::try_from(cpu).ok()),
        at: bits.at(),
    })
}
