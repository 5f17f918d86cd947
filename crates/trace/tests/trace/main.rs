//! Recordings and flow traces: what was written comes back, and damage is reported. In
//! one program so that it is linked once.

/// Says that a test cannot run here: past the harness, which hides what passing tests print. `scripts/test`
/// counts these lines.
macro_rules! skipped {
    ($($message:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: {}", format_args!($($message)*));
    }};
}

mod ctf;
mod flow;
mod fuzz;
