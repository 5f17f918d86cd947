//! Flow traces: what was written comes back, others read it, and whatever is damaged is left out and told.

mod babeltrace;
mod damage;
mod generate;
mod roundtrip;
