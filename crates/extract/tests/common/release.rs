//! Releases as tests write them.

use punctual_model::{Instant, Release, Window};

/// One whose time is known.
pub fn exact(ns: u64) -> Release {
    Release { arrival: None, window: Window::at(Instant::from_ns(ns)) }
}

/// One between two times; at the later one where they are out of order.
pub fn window(earliest: u64, latest: u64) -> Release {
    let latest = Instant::from_ns(latest);
    let window = Window::new(Instant::from_ns(earliest), latest).unwrap_or(Window::at(latest));
    Release { arrival: None, window }
}
