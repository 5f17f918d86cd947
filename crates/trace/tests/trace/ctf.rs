//! Recordings survive the disk: what was written comes back, whatever happened to the files.

mod babeltrace;
mod cut;
mod damage;
mod dispatch;
mod fuzz;
mod generate;
mod hardship;
mod latency;
mod limit;
mod roundtrip;
mod select;
