//! Schedulability analysis: from what is known of tasks and of the kernel to bounds of response times.
//!
//! Pure: no I/O, no clock. Times are whole nanoseconds, and everything is rounded up; what exceeds the range
//! has no bound. See `docs/design/prove.md` for the assumptions.

mod arrivals;
mod bound;
mod critical;
mod deadlines;
mod demand;
mod edf;
mod fixed;
mod platform;
mod proof;
mod request;
mod simulate;
mod system;
mod task;
mod window;

pub use arrivals::Arrivals;
pub use bound::{Bound, Cause, Method, NoBound, Part};
pub use critical::{Stretch, WorstCase, worst_case};
pub use deadlines::{Assignment, MOST_PARTS, PARTS, Room, Verdict, verdict};
pub use platform::Platform;
pub use proof::{Proof, Thread};
pub use request::{RequestBound, request_bound};
pub use simulate::{Job, Run, Schedule, simulate};
pub use system::{Bounds, System};
pub use task::{Gap, Scheduling, Task};
