//! Traces of dataflow programs on disk: a framework records by four events what its pool of threads executes.
//! docs/flow-traces.md specifies the format.
//!
//! The crate `extract` interprets the events (graph, chains, times).

mod about;
mod event;
mod header;
mod live;
mod merge;
mod metadata;
mod notes;
mod numbers;
mod reader;
mod stream;
mod writer;

pub use about::{About, Arming, Barrier, ByteOrder, Connection, Input, Opening};
pub use event::{Count, Event, Gap, Item, Kind, NUMBERS, OBJECTS, Take};
pub use live::Events;
pub use reader::{Reader, Totals};
pub use writer::{Writer, metadata};
