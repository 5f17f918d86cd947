//! What the benchmarks share: running Punctual and its workloads, reading what the kernel counts, tables in the documentation.

pub mod document;
pub mod measure;

/// Whatever went wrong: a benchmark says it and ends.
pub type Error = Box<dyn std::error::Error>;
