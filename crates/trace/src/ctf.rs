//! Recordings on disk: CTF 1.8, a folder with `metadata` and stream files. docs/design/recordings.md has the
//! decisions, `ctf/events.tsdl` the layout of every event.
//!
//! A record is read back as it was written, except that texts lose NULs and everything beyond 65,535 bytes. A
//! reader also gets [`crate::Record::Known`] for each live thread, at the start of each file and from time to
//! time.

mod decode;
mod dispatch;
mod encode;
mod fields;
mod files;
mod index;
mod latency;
mod layout;
mod metadata;
mod packet;
mod reader;
mod recorder;
mod select;
mod selection;

pub use crate::damage::Damage;
pub use reader::{Reader, Stretch};
pub use recorder::Recorder;

/// Least [`Options::limit`], in bytes.
pub const MIN_LIMIT: u64 = 1 << 20;

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Most bytes on disk: the oldest packets are deleted, a sixteenth of the recording at a time. At least
    /// [`MIN_LIMIT`]. Many thousands of threads may take more, since each file begins with their state.
    pub limit: Option<u64>,
    /// Bytes of a packet, from 4 KiB to 1 MiB. A packet is also closed when it is a second old.
    pub packet_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { limit: None, packet_bytes: 256 << 10 }
    }
}

/// Summary of a finished recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Bytes on disk.
    pub bytes: u64,
    /// Packets on disk.
    pub packets: u64,
    /// Activations on disk.
    pub activations: u64,
    /// What was deleted to stay within the limit.
    pub dropped: Dropped,
}

/// What was deleted of a recording to stay within its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Packets.
    pub packets: u64,
    /// Activations in them.
    pub activations: u64,
}
