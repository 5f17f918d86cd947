//! Reads an input as a flow trace. Called by the fuzzer and by `tests/fuzz.rs`; `tests/flow` opens changed
//! traces with it.

use punctual_trace::flow::{About, ByteOrder, Item, Reader, metadata};

/// The first byte says what the rest is; the next two how long its first part is.
#[allow(dead_code)]
pub fn read(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let Some((length, data)) = data.split_first_chunk() else { return };
    let (one, other) = data.split_at(usize::from(u16::from_le_bytes(*length)).min(data.len()));
    let order = if kind & 2 == 0 { ByteOrder::Little } else { ByteOrder::Big };
    match kind & 1 {
        // Two streams.
        0 => open(
            metadata(&About { byte_order: order, ..About::default() }).as_bytes(),
            vec![(0, one.to_vec()), (1, other.to_vec())],
        ),
        // Metadata and a stream.
        _ => open(one, vec![(0, other.to_vec())]),
    }
}

/// Reads all of it. There is not more in it than its bytes can hold.
pub fn open(metadata: &[u8], streams: Vec<(u64, Vec<u8>)>) {
    let bytes: usize = streams.iter().map(|(_, stream)| stream.len()).sum();
    let Ok(reader) = Reader::in_memory(metadata, streams) else { return };
    let (mut events, mut gaps) = (0, 0);
    let mut each = |item| match item {
        Item::Event(_) => events += 1,
        Item::Count(_) | Item::Take(_) => {}
        Item::Gap(gap) => {
            assert!(gap.from <= gap.until);
            gaps += 1;
        }
    };
    let totals = reader.read(&mut each, &mut |_| {}).expect("memory can be read");
    assert!(
        events * 8 <= bytes && gaps * 56 <= bytes + 200,
        "{events} events and {gaps} gaps from {bytes} bytes"
    );
    assert_eq!(totals.events, events as u64);
    assert!(
        totals.damages.len() <= 400 && totals.damages.iter().all(|damage| !damage.to_string().is_empty())
    );
}
