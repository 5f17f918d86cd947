//! Extraction, against brute force, the reference implementation and simulated programs; in one program so
//! that they are linked once.

mod accuracy;
mod baseline;
mod common;
mod conservative;
mod curves;
mod extractor;
mod flow;
mod jobs;
mod memory;
mod modes;
mod periodic;
mod reference;
mod replay;
mod ros2;
mod simulation;
mod so_far;
mod summary;
mod told;
