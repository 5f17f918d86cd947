//! Which buffers of a file are read: the main one and those of instances (`trace-cmd record -B`), as far as
//! they have the same clock. What two of them have is read once.

use super::super::bytes::Bytes;
use super::super::tracepoints::SWITCH;
use super::file::{Cpu, Header};
use super::stream::{Next, Stream};

/// Events that are looked at to see whether a buffer has switches.
const MOST_LOOKED_AT: usize = 10_000;

/// Leaves out buffers that cannot be read together with the one that has the switches. Returns the clock.
pub fn choose(header: &mut Header, bytes: &Bytes) -> Result<String, String> {
    let mut used: Vec<usize> = header.cpus.iter().filter(|cpu| cpu.size > 0).map(|cpu| cpu.buffer).collect();
    used.dedup();
    let clock = |buffer: usize| header.buffers.get(buffer).map(|buffer| buffer.clock.clone());
    let first = used.first().copied().unwrap_or(0);
    let mut chosen = first;
    if used.iter().any(|buffer| clock(*buffer) != clock(first)) {
        for buffer in &used {
            if has_switches(header, bytes, *buffer)? {
                chosen = *buffer;
                break;
            }
        }
    }
    let clock = clock(chosen).unwrap_or_default();
    leave_out(header, &used, &clock);
    Ok(clock)
}

/// Leaves out those with another clock.
fn leave_out(header: &mut Header, used: &[usize], clock: &str) {
    for buffer in used {
        let Some(other) = header.buffers.get(*buffer).filter(|other| other.clock != clock) else { continue };
        let name = match other.name.as_str() {
            "" => "the main buffer".to_owned(),
            name => format!("the buffer {name}"),
        };
        header.notes.push(format!("events of {name}, by another clock ({})", other.clock));
    }
    let has_clock = |cpu: &Cpu| header.buffers.get(cpu.buffer).is_some_and(|it| it.clock == clock);
    header.cpus.retain(has_clock);
}

/// Whether several buffers have events.
pub fn are_several(header: &Header) -> bool {
    let mut buffers = header.cpus.iter().filter(|cpu| cpu.size > 0).map(|cpu| cpu.buffer);
    let first = buffers.next();
    buffers.any(|buffer| Some(buffer) != first)
}

/// Whether there are switches among the first events of some processor.
fn has_switches(header: &Header, bytes: &Bytes, buffer: usize) -> Result<bool, String> {
    for cpu in header.cpus.iter().filter(|cpu| cpu.buffer == buffer) {
        let mut stream = Stream::new(bytes, header, cpu)?;
        for _ in 0..MOST_LOOKED_AT {
            let Some(next) = stream.next(bytes) else { break };
            let Next::Event { place, .. } = next else { continue };
            let number = stream.bytes(&place).first_chunk().map(|number| u16::from_le_bytes(*number));
            if number.and_then(|number| header.formats.get(&number)).is_some_and(|it| it.name == SWITCH) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
