//! What was seen of threads: as records ([`Record`]), as recordings of them on disk ([`ctf`]), and as other
//! tools' traces, read into the same records ([`import`]). What dataflow programs say of themselves has
//! events of its own ([`flow`]).
//!
//! One [`Activation`] per separation, not one event per context switch: its counters are cumulative, so that
//! every job stream of a thread takes its costs as differences of two readings. What is a job is not decided
//! here.

mod about;
mod damage;
mod error;
mod record;
mod roster;
mod source;
mod tsdl;

pub mod ctf;
pub mod flow;
pub mod import;

pub use about::{About, Totals};
pub use error::{Error, ErrorKind};
pub use record::{Activation, Begin, Record, Resumed, Step, Switch, TaskRecord};
pub use roster::Roster;
