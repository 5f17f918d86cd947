//! From activations to jobs to models: all inference. Pure: records in, models out.

mod choice;
mod extractor;
mod hull;
mod kernel;
mod lane;
mod primary;
mod ratio;
mod ring;
mod sieve;
mod task;

pub mod curve;
pub mod periodic;
pub mod response;
pub mod stream;
pub mod suspension;
pub mod wcet;

pub use extractor::{Extractor, Options, Progress};
pub use stream::{Options as StreamOptions, Stream};
pub use task::{JobSeen, MAX_SEPARATORS};
