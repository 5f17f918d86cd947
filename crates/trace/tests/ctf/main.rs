//! Recordings on disk: that they come back as they were, whatever happens to them.

mod babeltrace;
mod cut;
mod damage;
mod fuzz;
mod generate;
mod hardship;
mod limit;
mod roundtrip;
mod select;
