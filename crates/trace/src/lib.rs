//! Observations of threads: records ([`Record`]), recordings on disk ([`ctf`]), and imports of other tools'
//! traces ([`import`]). A measurement of scheduling latency ([`latency`]) and a time-triggered dispatcher
//! ([`dispatch`]) have records of their own, and dataflow programs trace themselves by events of their own
//! ([`flow`]).
//!
//! There is one [`Activation`] per separation of jobs, not one event per context switch. Its counters are
//! cumulative, so the cost of a job is the difference of two readings. The crate `extract` decides what a job
//! is.

mod about;
mod damage;
mod error;
mod ready;
mod record;
mod roster;
mod source;
mod tsdl;

pub mod ctf;
pub mod ctf18;
pub mod dispatch;
pub mod flow;
pub mod import;
pub mod latency;

pub use about::{About, Totals};
pub use error::{Error, ErrorKind};
pub use ready::Ready;
pub use record::{Activation, Begin, Blocked, Glance, Record, Resumed, Step, Switch, Taker, TaskRecord};
pub use roster::Roster;
