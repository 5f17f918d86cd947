//! Analyses a dataflow program's trace in two passes: [`Graph`] first, which finds the chains, then
//! [`Analysis`], which gives the times of tasks and the end-to-end latencies of chains. Memory grows with the
//! graph and the data in flight, not with the trace. (papers: Jungmann et al., ERTS 2024, Section V.)
//!
//! Nothing is guessed: what cannot be followed, because a missing event might have changed it, is counted.

mod alternatives;
mod analysis;
mod chains;
mod clip;
mod ends;
mod finish;
mod follow;
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

pub use alternatives::Assumed;
pub use analysis::{Analysis, Executed, Options};
pub use chains::{ChainError, Chains, MOST_CHAINS, MOST_TASKS};
pub use clip::{Clip, Clipped};
pub use follow::Follower;
pub use graph::{Graph, GraphBuilder};
pub use kernel::{Split, Threads};
pub use sources::{EndToEnd, EndToEndKind};
