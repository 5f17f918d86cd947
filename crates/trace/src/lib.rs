//! Observations of threads: records ([`Record`]) and recordings on disk ([`ctf`]). A measurement of
//! scheduling latency ([`latency`]) and a time-triggered dispatcher ([`dispatch`]) have records of their own,
//! and dataflow programs trace themselves by events of their own ([`flow`]).
//!
//! There is one [`Activation`] per separation of jobs, not one event per context switch. Its counters are
//! cumulative, so the cost of a job is the difference of two readings. The crate `extract` decides what a job
//! is.

mod about;
mod error;
mod ready;
mod record;
mod roster;

pub mod account;
pub mod ctf;
pub mod damage;
pub mod dispatch;
pub mod flow;
pub mod latency;
pub mod source;
pub mod tsdl;

pub use about::{About, Totals};
pub use error::{Error, ErrorKind, reason};
pub use ready::Ready;
pub use record::{Activation, Begin, Blocked, Glance, Record, Resumed, Step, Switch, Taker, TaskRecord};
pub use roster::Roster;
