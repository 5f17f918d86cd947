//! Flow traces: what was written comes back, other tools read it, and damage is left out and reported.

mod babeltrace;
mod damage;
mod generate;
mod roundtrip;
