//! Why was this job late? The events of all threads give each thread one state at each instant. A job's time,
//! from its arrival to its end, is cut where that state changes or where another thread gets the processor;
//! each piece is a [`Part`] with one reason. Parts are disjoint, and their sum is exactly the job's time.
//! What was not seen is a part, too: [`Kind::Unknown`].
//!
//! ```text
//! events ─► Tracker: states ─► History: stretches ─► cut, follow ─► Explanation ─► main_cause ─► add: sums
//! ```
//!
//! Pure: nothing here knows where events come from. Not for deciding which jobs there are, or which are late.

mod cause;
mod collector;
mod cut;
mod event;
mod follow;
mod history;
mod part;
mod processor;
mod summary;
mod thread;
mod tracker;

pub use cause::main_cause;
pub use collector::Collector;
pub use event::{Departure, Event, Faults, Interrupt, Loss, Step, Urgency, Wait, Waker};
pub use history::History;
pub use part::{Chain, Culprit, Explanation, Job, Kind, Part, Role};
pub use summary::{Thread, add, finish};
