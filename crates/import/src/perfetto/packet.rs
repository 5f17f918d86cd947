//! The packets of a trace: what is read of them.

use super::super::bytes::Packing;
use super::wire::{Fields, Malformed, Value};

/// The only field of a trace.
pub const PACKET: u32 = 1;

/// A packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet<'a> {
    pub content: Content<'a>,
    /// Its writer. Packets of one writer are in order.
    pub sequence: u32,
    /// The machine it comes from; 0 is that of the recorder.
    pub machine: u32,
    /// Packets of its writer are missing before it.
    pub follows_loss: bool,
    /// It is the first one of its writer.
    pub is_first: bool,
}

/// What is in a packet.
#[derive(Clone, Copy, Debug, Default)]
pub enum Content<'a> {
    #[default]
    Other,
    /// Events of one processor.
    Ftrace(&'a [u8]),
    /// Packets, each a field of a trace.
    Packed(Packing, &'a [u8]),
    Processes(&'a [u8]),
    Clocks(&'a [u8]),
    Config(&'a [u8]),
    FtraceStatistics(&'a [u8]),
    TraceStatistics(&'a [u8]),
    System(&'a [u8]),
    /// Which trace it is: one of the first packets.
    Uuid,
    /// An event of a program, or what it belongs to.
    Track,
}

impl<'a> Packet<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let mut packet = Packet::default();
        for field in Fields::of(bytes) {
            match field? {
                (10, Value::Number(sequence)) => packet.sequence = sequence as u32,
                (42, Value::Number(lost)) => packet.follows_loss = lost != 0,
                (87, Value::Number(is_first)) => packet.is_first = is_first != 0,
                (98, Value::Number(machine)) => packet.machine = machine as u32,
                (number, Value::Bytes(bytes)) => {
                    packet.content = content(number, bytes).unwrap_or(packet.content)
                }
                _ => {}
            }
        }
        Ok(packet)
    }
}

fn content(number: u32, bytes: &[u8]) -> Option<Content<'_>> {
    match number {
        1 => Some(Content::Ftrace(bytes)),
        2 => Some(Content::Processes(bytes)),
        6 => Some(Content::Clocks(bytes)),
        11 | 60 => Some(Content::Track),
        33 => Some(Content::Config(bytes)),
        34 => Some(Content::FtraceStatistics(bytes)),
        35 => Some(Content::TraceStatistics(bytes)),
        45 => Some(Content::System(bytes)),
        50 => Some(Content::Packed(Packing::Zlib, bytes)),
        89 => Some(Content::Uuid),
        133 => Some(Content::Packed(Packing::Zstd, bytes)),
        _ => None,
    }
}

/// The processor of a bundle of events.
pub fn cpu(bundle: &[u8]) -> Result<u32, Malformed> {
    for field in Fields::of(bundle) {
        if let (1, Value::Number(cpu)) = field? {
            return Ok(cpu as u32);
        }
    }
    Ok(0)
}
