//! A bound of the scheduling latency, from measured variables and interrupt curves (paper:
//! scheduling-latency, "rtsl"): the time from the instant at which a thread becomes the ready thread of
//! highest priority on its processor to the instant at which the scheduler lets it run.
//!
//! Pure: no I/O, no clock, no kernel. What the variables are is measured elsewhere; that the kernel obeys the
//! rules R1 to R14 (Section 3) is an assumption of every bound made here.

mod analysis;
mod bound;
mod explain;
mod observation;
mod tracker;
mod variables;

pub use analysis::{Bounds, Cause, NoBound, Part, all_bounds, worst};
pub use bound::{Bound, InterruptModel, Outcome, Term, bound};
pub use explain::{Inside, Section, Wait, WaitPart};
pub use observation::Observation;
pub use tracker::{HORIZON, Occurrence, Tracker};
pub use variables::Variables;
