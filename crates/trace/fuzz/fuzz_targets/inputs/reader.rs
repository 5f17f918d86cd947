//! Reads an input as a recording, in every way there is. Called by the fuzzer and by `tests/fuzz.rs`.

use punctual_model::Instant;
use punctual_trace::ctf::Reader;

/// The metadata that belong to the packets of the corpus.
const METADATA: &[u8] = include_bytes!("../../metadata");
/// Bytes of a packet before its events, and where its size and its checksum are.
const HEADER: usize = 116;
const SIZE: usize = 52;
const CRC: usize = 112;
/// The shortest event has this many bytes.
const LEAST_EVENT: usize = 9;

/// The first byte says what the rest is.
pub fn read(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 4 {
        // A stream file.
        0 => open(METADATA, vec![(0, data.to_vec())]),
        // The same with all checksums made right, else hardly an input gets as far as the events.
        1 => open(METADATA, vec![(0, with_checksums(data))]),
        // Two stream files, one between them missing.
        2 => {
            let (one, other) = split(data);
            open(METADATA, vec![(3, one.to_vec()), (5, other.to_vec())]);
        }
        // Metadata and a stream file.
        _ => {
            let (metadata, stream) = split(data);
            open(metadata, vec![(0, stream.to_vec())]);
        }
    }
}

/// Two parts; two bytes before them say how long the first is.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, data)) = data.split_first_chunk() else { return (data, &[]) };
    data.split_at(usize::from(u16::from_le_bytes(*length)).min(data.len()))
}

fn with_checksums(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    let mut rest = &mut data[..];
    while rest.len() >= HEADER {
        let bits = rest[SIZE..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let bytes = usize::try_from(bits / 8).unwrap_or(usize::MAX);
        if !(HEADER..=rest.len()).contains(&bytes) {
            break;
        }
        let (packet, behind) = rest.split_at_mut(bytes);
        packet[CRC..HEADER].fill(0);
        let crc = crc32fast::hash(packet);
        packet[CRC..HEADER].copy_from_slice(&crc.to_le_bytes());
        rest = behind;
    }
    data
}

fn open(metadata: &[u8], streams: Vec<(u64, Vec<u8>)>) {
    let bytes: usize = streams.iter().map(|(_, stream)| stream.len()).sum();
    let Ok(mut reader) = Reader::in_memory(metadata, streams) else { return };
    let all = read_all(&reader, bytes);
    let length: u64 = (0..reader.stretches()).map(|index| reader.stretch(index).bytes).sum();
    assert!(length <= bytes as u64 && all * LEAST_EVENT <= bytes, "{all} records from {bytes} bytes");
    assert!(reader.until() >= reader.about().from);
    if reader.stretches() > 0 {
        let middle = reader.stretch(reader.stretches() / 2);
        let span = middle.end.since(middle.begin).ns();
        let from = Instant::from_ns(middle.begin.ns() + span / 3);
        let until = Instant::from_ns(middle.begin.ns() + span / 2);
        reader.select(Some(from), Some(until)).expect("memory can be read");
        read_all(&reader, bytes);
        assert!(reader.until() >= reader.about().from);
    }
}

/// How many records there are. What is said of damages is bounded, and can be displayed.
fn read_all(reader: &Reader, bytes: usize) -> usize {
    let mut records = 0;
    let mut damages = reader.read(0..reader.stretches(), &mut |_| records += 1).expect("memory can be read");
    assert!(damages.len() <= 100 && reader.damage().len() <= 300);
    damages.extend(reader.damage());
    assert!(
        damages
            .iter()
            .all(|damage| damage.offset() <= bytes.max(1 << 16) as u64 && !damage.to_string().is_empty())
    );
    records
}
