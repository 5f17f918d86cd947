//! `libpunctual`, as `include/punctual.h` documents it: the same functions, with pointers. What they promise
//! is said there.

mod connection;
mod failure;
mod lists;
mod parameters;
mod spec;

pub(crate) use connection::Shared;
pub(crate) use failure::{Code, Failure, guarded};
pub(crate) use parameters::bounded_text;
