//! All inference: activations → jobs → models. Pure: records in, models out.
//!
//! `docs/design/extract.md` gives the design and its reasons.

mod batch;
mod certain;
mod clock;
mod extractor;
mod histogram;
mod hull;
mod kernel;
mod lane;
mod lanes;
mod longest;
mod modes;
mod piece;
mod primary;
mod ratio;
mod replay;
mod ring;
mod run;
mod short;
mod sieve;
mod task;

pub mod curve;
pub mod flow;
pub mod periodic;
pub mod stream;
pub mod summary;
pub mod suspension;
pub mod wcet;

pub use extractor::{Ended, Extractor, Options, Progress};
pub use histogram::Histogram;
pub use lane::OpenJob;
pub use lanes::MAX_SEPARATORS;
pub use replay::{Replay, Source, replay, replay_into};
pub use stream::{Options as StreamOptions, Stream, Sums};
pub use summary::{Run, Summary};
pub use task::JobSeen;
