//! How late the timers of one processor expired, whichever programs saw it.

use punctual_model::{Duration, Instant};

/// How late the timers of a processor expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timers {
    /// How many.
    pub expired: u64,
    /// The sum of their latenesses.
    pub total: Duration,
    /// The greatest.
    pub max: Duration,
    /// When that was.
    pub at: Instant,
    /// The timer's function, where its name is known.
    pub function: Option<String>,
    /// The thread that was interrupted: process, thread, name.
    pub interrupted: (u32, u32, String),
}
