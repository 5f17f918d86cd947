//! The values that all crates share: time, jobs, separators, task models, and the file they are written to.
//!
//! Pure: no I/O, no clock. Nothing here infers a model (that is `extract`) or shows one (that is `report`).

pub mod arrival;
pub mod causes;
pub mod check;
mod curve;
pub mod dataflow;
mod error;
pub mod file;
pub mod job;
pub mod latency;
mod percent;
pub mod percentiles;
pub mod policy;
mod processors;
pub mod read;
pub mod request;
pub mod section;
pub mod separator;
pub mod table;
mod text;
mod thread_ids;
pub mod threads;
pub mod time;
mod valid;
mod write;

pub use arrival::*;
pub use causes::Causes;
pub use check::{MAX_SEGMENTS, RecordedJob, Violation, check_stream};
pub use curve::{Reach, together_at_least, together_at_most};
pub use dataflow::Dataflow;
pub use error::ReadError;
pub use file::{FORMAT, Platform, TimingModel, VERSION};
pub use job::{Job, Release, Segment};
pub use latency::SchedulingLatency;
pub use percent::{NoPercent, Percent};
pub use percentiles::{Percentiles, QUANTILE_ERROR_PARTS, Quantiles};
pub use policy::{Policy, Reservation};
pub use processors::{either_list_of_processors, list_of_processors, processor_list};
pub use section::{Loss, MergeError, Section, Span};
pub use separator::{Call, FileClass, Object, ObjectName, Separator, wait};
pub use table::{Table, TableJob, TableRun, TableTask};
pub use text::counted;
pub use thread_ids::{ThreadId, ThreadIds};
pub use threads::{
    ClockStep, EndedBy, Execution, MANY_LATE, Response, SegmentBound, Stream, Suspension, Task, Threads,
};
pub use time::{Duration, Instant, Window};
