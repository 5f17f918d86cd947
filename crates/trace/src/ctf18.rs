//! Reads any trace in CTF 1.8, such as those of LTTng: its metadata, and its events merged by time. Our own
//! recordings have a reader of their own ([`crate::ctf`]).
//!
//! What is cut off or damaged is left out and said; the rest is read.

mod bits;
mod document;
mod find;
mod metadata;
mod nodes;
mod packets;
mod parse;
mod plan;
mod reader;
mod types;

pub use find::holds_trace;
pub use plan::{Class, Field};
pub use reader::{Event, Extent, Item, Lost, Reader, Totals};
