//! The values that every room speaks of: time, jobs, separators, task models, and the file they are written
//! to.
//!
//! Pure: no I/O, no clock. Nothing here infers a model (that is `extract`) or shows one (that is `report`).

pub mod check;
mod curve;
pub mod dataflow;
pub mod file;
pub mod job;
pub mod read;
pub mod request;
pub mod separator;
pub mod time;
mod write;

pub use check::{MAX_SEGMENTS, RecordedJob, Violation, check_stream};
pub use curve::Reach;
pub use dataflow::Dataflow;
pub use file::*;
pub use job::{Job, Release, Segment};
pub use read::ReadError;
pub use separator::{Call, FileClass, Object, Separator};
pub use time::{Duration, Instant, Window};
