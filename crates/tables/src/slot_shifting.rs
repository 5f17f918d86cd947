//! Slot shifting (Fohler 1995; Gala, Kadusale and Fohler, Section III.A): jobs of a table keep their
//! guarantees, and what the table leaves free is given to jobs that come at run time.
//!
//! Time is counted in slots of equal length. A [`Plan`] holds the jobs of one processor; a [`Processor`]
//! gives out one slot after the other, earliest deadline first, and accepts aperiodic jobs. A [`Machine`] is
//! all processors of a table.
//!
//! Pure: it knows neither threads nor the length of a slot.

mod intervals;
mod machine;
mod pieces;
mod plan;
mod processor;
mod timeline;
mod upcoming;

pub use intervals::Interval;
pub use machine::{Accepted, Added, Before, Machine, NotAdded, Served, Work};
pub use plan::{Overload, Periodic, Plan, PlanError, PlannedJob};
pub use processor::{FARTHEST, Granted, JobId, Owner, Processor, Refused};
pub use timeline::Run;
pub(crate) use timeline::earliest_deadline_first;
pub use upcoming::{Stretch, Then, Upcoming};
