//! How an operation talks to whoever runs it: warnings, hints and progress.

use std::time::Duration;

/// Receives what an operation reports while it runs.
pub trait Monitor: Sync {
    /// Something is missing, damaged or doubtful. Front ends show it even when asked to be quiet.
    fn warn(&self, message: &str);

    /// Something helpful to know. Front ends may drop it.
    fn hint(&self, message: &str);

    /// Begins an activity that will process `total` units. It ends when the result is dropped.
    fn begin(&self, activity: &'static str, total: u64, unit: Unit) -> Box<dyn Progress>;

    /// Begins watching threads, for at most `limit`. It ends when the result is dropped.
    fn watching(&self, limit: Option<Duration>) -> Box<dyn Watching>;

    /// Whether the result is no longer wanted. What reads recordings looks now and then, and fails with
    /// [`ErrorKind::Stopped`](crate::ErrorKind::Stopped).
    fn is_stopped(&self) -> bool {
        false
    }
}

/// What an activity counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of input.
    Bytes,
    /// Activations of threads.
    Activations,
}

/// An activity under way.
pub trait Progress: Send + Sync {
    /// So many units are done.
    fn set(&self, done: u64);
}

/// An observation under way.
pub trait Watching {
    /// Called several times a second. `seen` is costly; call it only to show its result.
    fn update(&mut self, seen: &dyn Fn() -> Seen);
}

/// What an observation has seen so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// In words: `17 threads, 1,200 jobs`.
    pub summary: String,
    /// Records lost.
    pub lost: u64,
}

/// A monitor that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Monitor for Silent {
    fn warn(&self, _: &str) {}

    fn hint(&self, _: &str) {}

    fn begin(&self, _: &'static str, _: u64, _: Unit) -> Box<dyn Progress> {
        Box::new(Silent)
    }

    fn watching(&self, _: Option<Duration>) -> Box<dyn Watching> {
        Box::new(Silent)
    }
}

impl Progress for Silent {
    fn set(&self, _: u64) {}
}

impl Watching for Silent {
    fn update(&mut self, _: &dyn Fn() -> Seen) {}
}
