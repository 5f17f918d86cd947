//! Reads any trace in CTF 1.8 or CTF 2, such as those of LTTng: its metadata, and its events merged by time.
//! Our own recordings have a reader of their own ([`crate::ctf`]).
//!
//! The versions differ in their metadata only. Both become the same types: TSDL by `parse`, JSON by
//! `fragments`.
//!
//! What is cut off or damaged is left out and said; the rest is read.

mod bits;
mod builder;
mod copies;
mod document;
mod find;
mod fragments;
mod json;
mod metadata;
mod nodes;
mod packets;
mod parse;
mod plan;
mod reader;
mod types;

pub use copies::Copied;
pub use find::holds_trace;
pub use plan::{Class, Field};
pub use reader::{Event, Extent, Item, Lost, Reader, Totals};
