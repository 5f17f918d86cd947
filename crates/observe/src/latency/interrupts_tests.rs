use super::*;
use std::io::Write;
use std::process::{Command, Stdio};

/// What the programs' own code, compiled for user space, leaves in the buffer of these interrupts: their
/// source, entry, exit and execution time. Source 0 asks for the buffer as it is there.
fn all_written(interrupts: &[[u64; 4]]) -> Vec<latency_buffer> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/latency/interrupts_tests.c");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hand_over");
    let compiled =
        Command::new("cc").args(["-O1", "-Wall", "-Werror", "-o"]).arg(&program).arg(source).status();
    assert!(compiled.unwrap().success());
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines: String = interrupts.iter().map(|[a, b, c, d]| format!("{a} {b} {c} {d}\n")).collect();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap().stdout;
    writer.join().unwrap().unwrap();
    assert_eq!(output.len() % size_of::<latency_buffer>(), 0);
    let buffers = output.chunks(size_of::<latency_buffer>());
    // SAFETY: plain numbers, of which every bit pattern is one; as long as the chunk.
    buffers.map(|bytes| unsafe { bytes.as_ptr().cast::<latency_buffer>().read_unaligned() }).collect()
}

/// The buffer at the end.
fn written(interrupts: &[[u64; 4]]) -> latency_buffer {
    all_written(interrupts).pop().unwrap()
}

fn drained(reader: &mut Reader, buffer: &latency_buffer) -> Vec<Event> {
    let mut events = Vec::new();
    // SAFETY: nobody writes to it.
    unsafe { reader.drain(buffer, &mut events) };
    events
}

fn event([source, entry, exit, execution]: [u64; 4]) -> Event {
    Event::Interrupt(Interrupt {
        source: u32::try_from(source).unwrap(),
        entry: Instant::from_ns(entry),
        exit: Instant::from_ns(exit),
        execution: Duration::from_ns(execution),
    })
}

/// So many interrupts of 40 sources that follow one another, some of which NMIs prolong; every form is among
/// them.
fn many(count: u64) -> Vec<[u64; 4]> {
    let mut state = 7_u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut now = 5_000_000_000;
    let mut next = |_| {
        let gap_bits = 1 + below(32);
        let execution_bits = 1 + below(22);
        let entry = now + below(1 << gap_bits);
        let execution = below(1 << execution_bits);
        let nmi = if below(50) == 0 { below(5_000) } else { 0 };
        now = entry + execution + nmi;
        [200 + below(40) * 50, entry, now, execution]
    };
    (0..count).map(&mut next).collect()
}

#[test]
fn what_is_handed_over_is_read_again() {
    let interrupts = many(5_000);
    let buffer = written(&interrupts);
    let expected: Vec<Event> = interrupts.into_iter().map(event).collect();
    assert_eq!(drained(&mut Reader::default(), &buffer), expected);
}

/// Interrupts lie across the end of the buffer, too.
#[test]
fn the_buffer_is_used_again() {
    let interrupts = many(100_000);
    let mut asked = Vec::new();
    for some in interrupts.chunks(2_999) {
        asked.extend_from_slice(some);
        asked.push([0; 4]);
    }
    let (mut reader, mut events) = (Reader::default(), Vec::new());
    let buffers = all_written(&asked);
    buffers.iter().for_each(|buffer| events.extend(drained(&mut reader, buffer)));
    let expected: Vec<Event> = interrupts.into_iter().map(event).collect();
    assert_eq!(events.len(), expected.len());
    assert_eq!(events.iter().zip(&expected).position(|(found, expected)| found != expected), None);
}

#[test]
fn frequent_interrupts_take_five_bytes() {
    let timer = |at: u64| [236, at * 1_000_000, at * 1_000_000 + 9_000, 9_000];
    let buffer = written(&(1..=1_000).map(timer).collect::<Vec<_>>());
    // Two of them have their times, as long as that: one in 2,048 bytes.
    assert_eq!(buffer.end, 998 * 5 + 2 * 40);
}

#[test]
fn after_a_loss_the_next_with_its_times_counts() {
    let interrupts = many(40_000);
    let buffer = written(&interrupts);
    let mut reader = Reader::default();
    let events = drained(&mut reader, &buffer);
    let Some(Event::Lost(lost)) = events.first() else { panic!("nothing is lost: {:?}", events.first()) };
    let rest = &interrupts[usize::try_from(*lost).unwrap()..];
    assert_eq!(events[1..], rest.iter().copied().map(event).collect::<Vec<_>>());
    assert!(drained(&mut reader, &buffer).is_empty());
}
