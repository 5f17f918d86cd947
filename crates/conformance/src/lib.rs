//! Contracts: what was agreed on of the timing of threads, and whether they keep to it.
//!
//! Pure: no I/O, no clock. A [`Contract`] is read from text, or made of a timing model; a [`Checker`] takes
//! records one by one, live or replayed, and hands out violations; [`check_model`] compares a timing model
//! with a contract. See `docs/design/contracts.md`.

mod chains;
mod chance;
mod checker;
mod contract;
mod latency;
mod models;
mod releases;
mod scheduling;
mod spans;
mod threads;
mod tolerance;
mod verdict;
mod violation;

pub use chains::ChainChecker;
pub use checker::{Checker, GRACE, Locate, TaskThreads};
pub use contract::{
    Answer, Contract, ContractChain, ContractMode, ContractProcessor, ContractSource, ContractTask, Faulty,
    Limits, Margin, MedianSeparation, Observed, Quantile, ThreadChoice,
};
pub use latency::LatencyChecker;
pub use models::check_model;
pub use threads::{Matcher, Pattern};
pub use verdict::{MAX_EXAMPLES, MAX_UNKNOWN, Note, Standing, Tally, Verdict};
pub use violation::{Subject, Term, Unit, Violation};
