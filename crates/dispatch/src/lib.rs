//! Time-triggered dispatch: gives every slot of a table to the thread that it belongs to.
//!
//! A [`Session`] carries a plan of the crate `tables` out on this machine. What is changed on the machine is
//! noted first and put back by a process of its own ([`guardian`]).

mod bell;
mod clock;
mod engine;
mod error;
mod ext;
mod freezer;
pub mod guardian;
mod leftovers;
#[cfg(test)]
mod living;
mod managers;
mod mender;
mod notes;
mod session;
mod status;
mod support;
mod threads;
mod undo;
mod user;

pub use clock::Readable;
pub use engine::Choice;
pub use error::{Error, ErrorKind};
pub use session::{Event, Options, Session};
pub use status::{Statuses, statuses};
pub use support::{Support, support};
pub use undo::Undo;
pub use user::Priorities;
