//! What tests share: how a test fails or is skipped, how long it takes, programs that run with a time limit,
//! random numbers, and inputs for fuzz targets.
//!
//! A test that the machine cannot run is counted as ignored and says why. Not for anything about a program
//! under test.

mod durations;
mod failure;
mod fuzz;
mod mutator;
mod program;
mod random;

pub use durations::{measured, run_all};
pub use failure::{Failure, fail, in_context, timing};
pub use fuzz::FuzzTarget;
pub use libtest_mimic::Completion as Outcome;
pub use mutator::Mutator;
pub use program::{Ended, Running, run, wait_until};
pub use random::Random;

use libtest_mimic::Failed;

/// The result of a check.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// Whether everything is tried (`make test-all`), not only what every change needs to pass.
pub fn is_all_wanted() -> bool {
    std::env::var_os("PUNCTUAL_TEST_ALL").is_some()
}

/// Says why this machine cannot run a test.
pub fn skip(reason: impl Into<String>) -> Result<Outcome> {
    Ok(Outcome::ignored_with(reason.into()))
}

/// A test's result as the harness has it.
pub fn to_harness(result: Result<Outcome>) -> std::result::Result<Outcome, Failed> {
    result.map_err(|failure| Failed::from(failure.message))
}

/// Fails unless the condition holds; the rest is the message.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {{
        let holds: bool = $condition;
        if !holds {
            return $crate::fail(format!($($message)+));
        }
    }};
}
