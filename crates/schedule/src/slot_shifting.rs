//! Slot shifting on one processor (Fohler 1995; Gala, Kadusale and Fohler, Section III.A): jobs of a table
//! keep their guarantees, and what the table leaves free is given to jobs that come at run time.
//!
//! Time is counted in slots of equal length. A [`Plan`] holds the jobs of the table; a [`Processor`] gives
//! out one slot after the other, earliest deadline first, and accepts aperiodic jobs.
//!
//! Pure: it knows neither threads nor the length of a slot.

mod intervals;
mod plan;
mod processor;
mod timeline;

pub use intervals::Interval;
pub use plan::{Overload, Plan, PlanError, PlannedJob};
pub use processor::{Granted, JobId, Owner, Processor, Refused};
pub use timeline::Run;
