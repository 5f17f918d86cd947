//! Recordings, flow traces and traces of other tools: what was written comes back, and damage is reported. In
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
mod ctf18;
mod ctf2;
mod flow;
mod fuzz;
mod import;
