//! Time-triggered dispatch: gives every slot of a table to the thread that it belongs to.
//!
//! [`Plan`] is a table as a sequence of turns, [`Session`] carries it out on this machine, [`check`] proves
//! from a recording that every slot was given as planned. What is changed on the machine is noted first and
//! put back by a process of its own ([`guardian`]). Not for making tables: that is `schedule`.

mod bell;
pub mod check;
mod clock;
mod engine;
mod error;
mod ext;
mod freezer;
pub mod guardian;
mod guests;
mod leftovers;
#[cfg(test)]
mod living;
mod managers;
mod mender;
mod notes;
mod plan;
mod rows;
mod session;
mod statistics;
mod status;
mod support;
mod threads;
mod undo;
mod user;

pub use engine::Choice;
pub use error::{Error, ErrorKind};
pub use plan::{Clock, Decision, Job, Lane, OnOverrun, Plan, Planned, Run, Task, Turn};
pub use rows::{Rows, Stretch};
pub use session::{Event, Options, Session};
pub use statistics::{Errors, LaneStatistics, Statistics, TaskStatistics};
pub use status::{GuestStatus, LaneStatus, Status, Statuses, TaskStatus, statuses};
pub use support::{Support, support};
pub use threads::{Candidate, Selector};
pub use undo::Undo;
pub use user::Priorities;
