//! Recordings survive the disk: what was written comes back, whatever happened to the files.

/// Says that a test cannot run here: past the harness, which hides what passing tests print. `scripts/test`
/// counts these lines.
macro_rules! skipped {
    ($($message:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: {}", format_args!($($message)*));
    }};
}

mod babeltrace;
mod cut;
mod damage;
mod dispatch;
mod fuzz;
mod generate;
mod hardship;
mod latency;
mod limit;
mod roundtrip;
mod select;
