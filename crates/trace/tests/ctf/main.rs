//! Recordings on disk: that they come back as they were, whatever happens to them.

/// Says that a test cannot run here: past the harness, which hides what passing tests print. `scripts/test`
/// counts these lines.
macro_rules! skipped {
    ($($said:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: {}", format_args!($($said)*));
    }};
}

mod babeltrace;
mod cut;
mod damage;
mod fuzz;
mod generate;
mod hardship;
mod limit;
mod roundtrip;
mod select;
