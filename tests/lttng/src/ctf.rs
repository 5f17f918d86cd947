//! A trace as LTTng lays it out: packetised metadata, and a stream file for each processor with packets of
//! whole pages.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// A type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 64 bits, unsigned.
    U64,
    /// 64 bits, signed.
    I64,
    /// 32 bits, signed.
    I32,
    /// A string.
    Text,
    /// So many bytes.
    Bytes(usize),
    /// 16 bytes of text.
    Comm,
    /// Six times 64 bits, unsigned.
    Arguments,
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of [`Type::U64`].
    U64(u64),
    /// Of [`Type::I64`].
    I64(i64),
    /// Of [`Type::I32`].
    I32(i32),
    /// Of [`Type::Text`] or [`Type::Comm`].
    Text(String),
    /// Of [`Type::Bytes`].
    Bytes(Vec<u8>),
    /// Of [`Type::Arguments`].
    Arguments([u64; 6]),
}

/// A kind of event: its name, and its fields.
pub type Class = (&'static str, &'static [(&'static str, Type)]);

/// How a trace is laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    /// `ust` or `kernel`.
    pub domain: &'static str,
    /// Whether integers are big-endian.
    pub is_big: bool,
    /// Headers of 16 and 32 bits, as for more than 30 kinds of events; else of 5 and 27.
    pub has_large_headers: bool,
    /// Bytes of a packet.
    pub packet_bytes: usize,
    /// Fields of the context of every event.
    pub context: &'static [(&'static str, Type)],
    /// Kinds of events, numbered as they stand here.
    pub classes: &'static [Class],
    /// The clock's name and ticks per second.
    pub clock: (&'static str, u64),
    /// Ticks from the epoch to its zero.
    pub offset: u64,
    /// Other lines of `env`.
    pub env: String,
}

/// A trace that is written.
pub struct Writer {
    layout: Layout,
    streams: Vec<Stream>,
    /// Events that are in it.
    pub events: u64,
}

struct Stream {
    file: BufWriter<File>,
    cpu: u32,
    packet: Packet,
    sequence: u64,
    discarded: u64,
    last: u64,
}

#[derive(Default)]
struct Packet {
    bytes: Vec<u8>,
    begin: u64,
    end: u64,
}

const HEADER: usize = 4 + 16 + 4 + 8;
const CONTEXT: usize = 8 * 6 + 4;

impl Writer {
    /// Makes the folder, with a stream for each of so many processors.
    pub fn create(folder: &Path, layout: Layout, cpus: u32) -> std::io::Result<Writer> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("metadata"), packetised(&metadata(&layout), layout.is_big))?;
        let stream = |cpu| {
            let file = BufWriter::with_capacity(1 << 20, File::create(stream_path(folder, cpu))?);
            Ok(Stream { file, cpu, packet: Packet::default(), sequence: 0, discarded: 0, last: 0 })
        };
        let streams = (0..cpus).map(stream).collect::<std::io::Result<_>>()?;
        Ok(Writer { layout, streams, events: 0 })
    }

    /// Writes an event: of a processor not before its event before.
    pub fn event(
        &mut self,
        cpu: u32,
        at: u64,
        class: &str,
        context: &[Value],
        fields: &[Value],
    ) -> std::io::Result<()> {
        let id = self.layout.classes.iter().position(|(name, _)| *name == class);
        let id = id.unwrap_or_else(|| panic!("{class} is not declared")) as u64;
        let is_big = self.layout.is_big;
        let stream = &mut self.streams[cpu as usize];
        assert!(at >= stream.last, "an event at {at} after one at {}", stream.last);
        let mut event = Vec::with_capacity(64);
        let since = at - stream.last;
        header(&mut event, id, at, since, &self.layout);
        let types = self.layout.context.iter().chain(self.layout.classes[id as usize].1);
        for ((_, of), value) in types.zip(context.iter().chain(fields)) {
            put(&mut event, *of, value, is_big);
        }
        if stream.packet.bytes.len() + event.len() > self.layout.packet_bytes {
            close(stream, &self.layout)?;
        }
        if stream.packet.bytes.is_empty() {
            stream.packet.bytes.resize(HEADER + CONTEXT, 0);
            stream.packet.begin = at;
            // The clock's high bits come from the packet.
            event.clear();
            header(&mut event, id, at, 0, &self.layout);
            let types = self.layout.context.iter().chain(self.layout.classes[id as usize].1);
            for ((_, of), value) in types.zip(context.iter().chain(fields)) {
                put(&mut event, *of, value, is_big);
            }
        }
        stream.packet.bytes.extend(event);
        (stream.packet.end, stream.last) = (at, at);
        self.events += 1;
        Ok(())
    }

    /// So many packets of this processor were written over, before any that is written.
    pub fn write_over(&mut self, cpu: u32, packets: u64) {
        self.streams[cpu as usize].sequence = packets;
    }

    /// Events of this processor were discarded, behind all that were written.
    pub fn discard(&mut self, cpu: u32, events: u64) -> std::io::Result<()> {
        let stream = &mut self.streams[cpu as usize];
        close(stream, &self.layout)?;
        stream.discarded += events;
        Ok(())
    }

    /// Ends the trace.
    pub fn finish(mut self) -> std::io::Result<u64> {
        for stream in &mut self.streams {
            close(stream, &self.layout)?;
            stream.file.flush()?;
        }
        Ok(self.events)
    }
}

/// The file of a processor's stream.
pub fn stream_path(folder: &Path, cpu: u32) -> PathBuf {
    folder.join(format!("channel0_{cpu}"))
}

fn close(stream: &mut Stream, layout: &Layout) -> std::io::Result<()> {
    if stream.packet.bytes.is_empty() {
        return Ok(());
    }
    let Packet { mut bytes, begin, end } = std::mem::take(&mut stream.packet);
    let content = 8 * bytes.len() as u64;
    bytes.resize(bytes.len().div_ceil(4096) * 4096, 0);
    let size = 8 * bytes.len() as u64;
    let is_big = layout.is_big;
    let mut header = Vec::new();
    put_u32(&mut header, 0xC1FC_1FC1, is_big);
    header.extend(UUID);
    put_u32(&mut header, 0, is_big);
    put_u64(&mut header, u64::from(stream.cpu), is_big);
    for value in [begin, end, content, size, stream.sequence, stream.discarded] {
        put_u64(&mut header, value, is_big);
    }
    put_u32(&mut header, stream.cpu, is_big);
    bytes[..header.len()].copy_from_slice(&header);
    stream.sequence += 1;
    stream.file.write_all(&bytes)
}

fn put_u32(bytes: &mut Vec<u8>, value: u32, is_big: bool) {
    bytes.extend(if is_big { value.to_be_bytes() } else { value.to_le_bytes() });
}

fn put_u64(bytes: &mut Vec<u8>, value: u64, is_big: bool) {
    bytes.extend(if is_big { value.to_be_bytes() } else { value.to_le_bytes() });
}

/// The extended form where so much time has passed that the low bits would not tell.
fn header(bytes: &mut Vec<u8>, id: u64, at: u64, since: u64, layout: &Layout) {
    let is_big = layout.is_big;
    let (compact, bits) = if layout.has_large_headers { (65_535, 32) } else { (31, 27) };
    let is_extended = id >= compact || since >= 1 << bits;
    match (is_extended, layout.has_large_headers) {
        (true, large) => {
            match (large, is_big) {
                (true, _) => bytes.extend([0xFF; 2]),
                (false, true) => bytes.push(31 << 3),
                (false, false) => bytes.push(31),
            }
            put_u32(bytes, id as u32, is_big);
            put_u64(bytes, at, is_big);
        }
        (false, true) => {
            let id = id as u16;
            bytes.extend(if is_big { id.to_be_bytes() } else { id.to_le_bytes() });
            put_u32(bytes, at as u32, is_big);
        }
        (false, false) => {
            let low = at as u32 & ((1 << 27) - 1);
            put_u32(bytes, if is_big { (id as u32) << 27 | low } else { id as u32 | low << 5 }, is_big);
        }
    }
}

fn put(bytes: &mut Vec<u8>, of: Type, value: &Value, is_big: bool) {
    match (of, value) {
        (Type::U64, Value::U64(value)) => put_u64(bytes, *value, is_big),
        (Type::I64, Value::I64(value)) => put_u64(bytes, *value as u64, is_big),
        (Type::I32, Value::I32(value)) => put_u32(bytes, *value as u32, is_big),
        (Type::Text, Value::Text(text)) => {
            bytes.extend(text.as_bytes());
            bytes.push(0);
        }
        (Type::Comm, Value::Text(text)) => {
            let mut comm = [0; 16];
            comm[..text.len()].copy_from_slice(text.as_bytes());
            bytes.extend(comm);
        }
        (Type::Bytes(count), Value::Bytes(value)) if value.len() == count => bytes.extend(value),
        (Type::Arguments, Value::Arguments(arguments)) => {
            arguments.iter().for_each(|value| put_u64(bytes, *value, is_big));
        }
        (of, value) => panic!("{value:?} is no {of:?}"),
    }
}

pub(crate) const UUID: [u8; 16] = *b"punctual's tests";

/// The text of the metadata, as `lttng-sessiond` writes it.
pub fn metadata(layout: &Layout) -> String {
    let order = if layout.is_big { "be" } else { "le" };
    let (clock, frequency) = layout.clock;
    let uuid: String = UUID
        .iter()
        .enumerate()
        .map(|(index, byte)| format!("{}{byte:02x}", if [4, 6, 8, 10].contains(&index) { "-" } else { "" }))
        .collect();
    let mut text = String::from("/* CTF 1.8 */\n\n");
    for (bits, align) in [(8, 8), (16, 8), (32, 8), (64, 8), (5, 1), (27, 1)] {
        let _ = writeln!(
            text,
            "typealias integer {{ size = {bits}; align = {align}; signed = false; }} := uint{bits}_t;"
        );
    }
    let _ = writeln!(
        text,
        "typealias integer {{ size = 64; align = 8; signed = false; }} := unsigned long;
trace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"{uuid}\";\n\tbyte_order = {order};
\tpacket.header := struct {{\n\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n\t\tuint32_t stream_id;
\t\tuint64_t stream_instance_id;\n\t}};\n}};
env {{\n\tdomain = \"{}\";\n\ttracer_name = \"lttng\";\n\thostname = \"robot\";\n{}}};
clock {{\n\tname = \"{clock}\";\n\tuuid = \"0e1b5bbd-08a4-4b40-8e2a-000000000000\";
\tdescription = \"Monotonic Clock\";\n\tfreq = {frequency}; /* Hz */\n\toffset = {};\n}};",
        layout.domain, layout.env, layout.offset
    );
    for bits in [27, 32, 64] {
        let align = if bits == 27 { 1 } else { 8 };
        let _ = writeln!(
            text,
            "typealias integer {{\n\tsize = {bits}; align = {align}; signed = false;
\tmap = clock.{clock}.value;\n}} := uint{bits}_clock_t;"
        );
    }
    let (id, low) = if layout.has_large_headers { (16, 32) } else { (5, 27) };
    let most = (1 << id) - 1;
    let _ = writeln!(
        text,
        "struct packet_context {{\n\tuint64_clock_t timestamp_begin;\n\tuint64_clock_t timestamp_end;
\tuint64_t content_size;\n\tuint64_t packet_size;\n\tuint64_t packet_seq_num;
\tunsigned long events_discarded;\n\tuint32_t cpu_id;\n}};
struct event_header {{\n\tenum : uint{id}_t {{ compact = 0 ... {}, extended = {most} }} id;
\tvariant <id> {{\n\t\tstruct {{\n\t\t\tuint{low}_clock_t timestamp;\n\t\t}} compact;
\t\tstruct {{\n\t\t\tuint32_t id;\n\t\t\tuint64_clock_t timestamp;\n\t\t}} extended;\n\t}} v;
}} align(8);
stream {{\n\tid = 0;\n\tevent.header := struct event_header;\n\tpacket.context := struct packet_context;
\tevent.context := struct {{\n{}\t}};\n}};",
        most - 1,
        fields(layout.context)
    );
    for (number, (name, of)) in layout.classes.iter().enumerate() {
        let _ = writeln!(
            text,
            "event {{\n\tname = \"{name}\";\n\tid = {number};\n\tstream_id = 0;\n\tloglevel = 13;
\tfields := struct {{\n{}\t}};\n}};",
            fields(of)
        );
    }
    text
}

fn fields(of: &[(&str, Type)]) -> String {
    let line = |(name, of): &(&str, Type)| {
        let integer = |bits, signed, base| {
            format!(
                "integer {{ size = {bits}; align = 8; signed = {signed}; encoding = none; base = {base}; }}"
            )
        };
        let character = "integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; }";
        match of {
            Type::U64 => format!("\t\t{} _{name};\n", integer(64, 0, 16)),
            Type::I64 => format!("\t\t{} _{name};\n", integer(64, 1, 10)),
            Type::I32 => format!("\t\t{} _{name};\n", integer(32, 1, 10)),
            Type::Text => format!("\t\tstring _{name};\n"),
            Type::Bytes(count) => format!("\t\t{} _{name}[{count}];\n", integer(8, 0, 10)),
            Type::Comm => format!("\t\t{character} _{name}[16];\n"),
            Type::Arguments => format!("\t\t{} _{name}[6];\n", integer(64, 0, 10)),
        }
    };
    of.iter().map(line).collect()
}

/// In packets of a page, as the session daemon writes them.
fn packetised(text: &str, is_big: bool) -> Vec<u8> {
    const HEADER: usize = 37;
    let mut bytes = Vec::new();
    for part in text.as_bytes().chunks(4096 - HEADER) {
        let mut packet = Vec::new();
        put_u32(&mut packet, 0x75D1_1D57, is_big);
        packet.extend(UUID);
        put_u32(&mut packet, 0, is_big);
        put_u32(&mut packet, 8 * (HEADER + part.len()) as u32, is_big);
        put_u32(&mut packet, 8 * 4096, is_big);
        packet.extend([0, 0, 0, 1, 8]);
        packet.extend(part);
        packet.resize(4096, 0);
        bytes.extend(packet);
    }
    bytes
}
