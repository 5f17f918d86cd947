//! The parts of latencies, and the bound that follows, in one program so that they are linked once.

mod bound;
mod observation;
mod simulation;
