//! From the events of a dataflow program to its graph, the times of its tasks and the end-to-end latencies of
//! its chains, in two passes over the trace: [`Graph`] first, which decides what a chain is, then
//! [`Analysis`]. Memory is the graph's size and what is on its way at one time, not the trace's. (papers:
//! Jungmann et al., ERTS 2024, Section V.)
//!
//! Nothing is guessed: whatever cannot be followed, because an event is missing that might have changed it,
//! is counted instead.

mod analysis;
mod chains;
mod finish;
mod graph;
mod inputs;
mod instances;
mod kernel;
mod lineage;
mod losses;
mod names;
mod paths;
mod sources;
mod tasks;
mod times;
mod tree;

/// Times of instances and chains, to three significant digits.
type Histogram = crate::histogram::Histogram<11>;

pub use analysis::{Analysis, Options};
pub use chains::{ChainError, Chains, MOST_CHAINS, MOST_TASKS};
pub use graph::{Graph, GraphBuilder};
pub use kernel::{Split, Threads};
