//! Time-triggered tables: which thread has a processor in which slot.
//!
//! [`making`] makes them. A [`Plan`] is one as a sequence of turns, from which [`rows`] are cut for a
//! dispatcher; [`slot_shifting`] gives what it leaves free to [`guests`]. [`check`] proves from a recording
//! that every slot was given as planned.
//!
//! Pure: no I/O, no clock, no threads. The crate `dispatch` carries tables out.

pub mod check;
#[doc(hidden)]
pub mod example;
pub mod guests;
pub mod making;
mod plan;
pub mod rows;
mod selector;
pub mod slot_shifting;
mod statistics;
mod status;

pub use plan::{Clock, Decision, Job, Lane, OnOverrun, Plan, Planned, Run, Task, Turn};
pub use selector::{Candidate, Selector};
pub use statistics::{Errors, LaneStatistics, Statistics, TaskStatistics};
pub use status::{GuestStatus, LaneStatus, Status, TaskStatus};
