//! Recordings on disk: that they come back as they were, whatever happens to them.

mod babeltrace;
mod generate;
mod roundtrip;
mod select;
