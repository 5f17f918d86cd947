//! The C functions of `libpunctual`. `include/punctual.h` documents them.

mod connection;
mod failure;
mod lists;
mod mode;
mod parameters;
mod spec;

pub(crate) use connection::Shared;
pub(crate) use failure::{Code, Failure, guarded};
pub(crate) use parameters::bounded_text;
