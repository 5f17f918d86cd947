//! Releases for tests.

use punctual_model::{Instant, Release, Window};

/// A release at a known time.
pub fn exact(ns: u64) -> Release {
    Release { arrival: None, window: Window::at(Instant::from_ns(ns)) }
}

/// A release between two times; at the later one if they are out of order.
pub fn window(earliest: u64, latest: u64) -> Release {
    let latest = Instant::from_ns(latest);
    let window = Window::new(Instant::from_ns(earliest), latest).unwrap_or(Window::at(latest));
    Release { arrival: None, window }
}
