//! From activations to jobs to models: all inference. Pure: records in, models out.

mod choice;
mod hull;
mod kernel;
mod ratio;
mod ring;

pub mod curve;
pub mod periodic;
pub mod response;
pub mod stream;
pub mod suspension;
pub mod wcet;

pub use stream::{Options, Stream};
