//! Makes traces of Perfetto, packet by packet, so that what is in them is known.

use super::perf_file::{ENTER, EXIT, FREE, LEND, MIGRATE, RUNTIME, SWITCH, WAKING};
use prost::encoding::encode_varint;

/// An event: nanoseconds, processor, thread, and its bytes as perf has them.
pub type Event = (u64, u32, i32, Vec<u8>);

/// How switches and wake-ups are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Compact,
}

/// A field with a number.
pub fn number(field: u32, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(u64::from(field) << 3, &mut bytes);
    encode_varint(value, &mut bytes);
    bytes
}

/// A field with a message or a text.
pub fn message(field: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(u64::from(field) << 3 | 2, &mut bytes);
    encode_varint(content.len() as u64, &mut bytes);
    bytes.extend(content);
    bytes
}

fn signed(field: u32, value: i64) -> Vec<u8> {
    number(field, value as u64)
}

/// A packet with this content, of the writer of events.
pub fn packet(content: &[u8]) -> Vec<u8> {
    message(1, &[content, &number(10, 2)].concat())
}

/// What the recorder knows of the machine.
pub fn system() -> Vec<u8> {
    let utsname = [message(1, b"Linux"), message(3, b"6.12.0-rt"), message(4, b"x86_64")].concat();
    packet(&message(45, &[message(1, &utsname), message(4, b"Perfetto v56.0 (N/A)"), number(8, 2)].concat()))
}

/// Real time and CLOCK_BOOTTIME at one moment.
pub fn clocks(realtime: u64, boottime: u64) -> Vec<u8> {
    let clock = |id, ns| message(1, &[number(1, id), number(2, ns)].concat());
    packet(&message(6, &[clock(1, realtime), clock(6, boottime)].concat()))
}

/// Thread 40, whose process is 39.
pub fn processes() -> Vec<u8> {
    let thread = [number(1, 40), message(2, b"control"), number(3, 39)].concat();
    packet(&message(2, &[message(1, &number(1, 39)), message(2, &thread)].concat()))
}

/// Packets within one.
pub fn packed(packing: &str, packets: &[u8]) -> Vec<u8> {
    match packing {
        "zlib" => {
            use std::io::Write as _;
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(packets).expect("packed");
            packet(&message(50, &encoder.finish().expect("packed")))
        }
        _ => {
            let mut bytes = vec![0; zstd_safe::compress_bound(packets.len())];
            let length = zstd_safe::compress(&mut bytes[..], packets, 1).expect("packed");
            packet(&message(133, &bytes[..length]))
        }
    }
}

/// A bundle of events of one processor. `follows` is when the one before ended.
pub fn bundle(style: Style, cpu: u32, events: &[&Event], follows: Option<u64>, more: &[u8]) -> Vec<u8> {
    let is_compact = |event: &Event| style == Style::Compact && matches!(kind(event), SWITCH | WAKING);
    let mut content = number(1, u64::from(cpu));
    for event in events.iter().filter(|event| !is_compact(event)) {
        content.extend(message(2, &plain(event)));
    }
    let compact: Vec<&Event> = events.iter().copied().filter(|event| is_compact(event)).collect();
    if !compact.is_empty() {
        content.extend(message(4, &columns(&compact)));
    }
    follows.iter().for_each(|end| content.extend(number(10, *end)));
    content.extend(more);
    message(1, &content)
}

fn kind(event: &Event) -> u16 {
    u16::from_le_bytes([event.3[0], event.3[1]])
}

fn word(bytes: &[u8], at: usize) -> i64 {
    i64::from(i32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")))
}

fn long(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn text(bytes: &[u8], at: usize) -> &[u8] {
    bytes[at..at + 16].split(|byte| *byte == 0).next().unwrap_or_default()
}

fn plain((ns, _, tid, bytes): &Event) -> Vec<u8> {
    let field = |field, at| signed(field, word(bytes, at));
    let (number_of_kind, fields) = match u16::from_le_bytes([bytes[0], bytes[1]]) {
        SWITCH => {
            let before = [message(1, text(bytes, 8)), field(2, 24), field(3, 28), signed(4, long(bytes, 32))];
            let next = [message(5, text(bytes, 40)), field(6, 56), field(7, 60)];
            (4, [before.concat(), next.concat()].concat())
        }
        WAKING => (20, [message(1, b"woken"), field(2, 8), number(3, 39)].concat()),
        ENTER => {
            let arguments = (0..6).map(|index| signed(2, long(bytes, 16 + 8 * index)));
            (329, [signed(1, long(bytes, 8)), arguments.collect::<Vec<_>>().concat()].concat())
        }
        EXIT => (330, [signed(1, long(bytes, 8)), signed(2, long(bytes, 16))].concat()),
        LEND => (353, [message(1, b"lent"), field(2, 16), field(3, 12), field(4, 8)].concat()),
        MIGRATE => (491, [message(1, b"moved"), field(2, 8)].concat()),
        FREE => (240, [message(1, b"freed"), field(2, 8)].concat()),
        RUNTIME => (327, account(word(bytes, 12), long(bytes, 16))),
        _ => (600, Vec::new()),
    };
    [number(1, *ns), number(2, *tid as u64), message(number_of_kind, &fields)].concat()
}

/// An event that the recorder does not know.
fn account(tid: i64, ran: i64) -> Vec<u8> {
    let field = |name: &[u8], value: &[u8]| message(2, &[&message(1, name), value].concat());
    let fields = [
        message(1, b"sched_stat_runtime"),
        field(b"comm", &message(3, b"task")),
        field(b"pid", &signed(4, tid)),
        field(b"runtime", &signed(5, ran)),
    ];
    fields.concat()
}

/// Switches and wake-ups in columns.
fn columns(events: &[&Event]) -> Vec<u8> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut intern = |name: &[u8]| {
        let place = names.iter().position(|known| known == name).unwrap_or(names.len());
        if place == names.len() {
            names.push(name.to_vec());
        }
        place as i64
    };
    let mut all: [Vec<u8>; 13] = Default::default();
    let mut last = [0; 2];
    for event in events {
        let (ns, bytes) = (event.0, &event.3);
        let is_switch = kind(event) == SWITCH;
        let since = ns - std::mem::replace(&mut last[usize::from(is_switch)], ns);
        let values = if is_switch {
            vec![
                (1, since as i64),
                (2, long(bytes, 32)),
                (3, word(bytes, 56)),
                (4, word(bytes, 60)),
                (6, intern(text(bytes, 40))),
            ]
        } else {
            vec![
                (7, since as i64),
                (8, word(bytes, 8)),
                (9, 0),
                (10, 39),
                (11, intern(b"woken")),
                (12, i64::from(bytes[2])),
            ]
        };
        for (column, value) in values {
            encode_varint(value as u64, &mut all[column]);
        }
    }
    let names: Vec<Vec<u8>> = names.iter().map(|name| message(5, name)).collect();
    let columns = all.iter().zip(0..).filter(|(column, _)| !column.is_empty());
    let columns: Vec<Vec<u8>> = columns.map(|(column, field)| message(field, column)).collect();
    [names.concat(), columns.concat()].concat()
}
