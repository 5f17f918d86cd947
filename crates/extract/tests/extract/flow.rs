//! Dataflow programs: what the analysis of a trace says is what happened in the program, which a simulator
//! knows.

mod follow;
mod graphs;
mod kept;
mod lossy;
mod oracle;
mod programs;
mod simulator;
mod truth;
mod undeclared;
