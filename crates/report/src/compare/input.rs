//! What is compared.

use punctual_model::TimingModel;

/// A run that is compared: its model, and what the user calls it.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its file or folder, for people.
    pub name: String,
    /// What was made of it.
    pub model: TimingModel,
}

/// Why inputs cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NothingInCommon {
    /// The first input with a dataflow program, by number.
    pub flow: Option<usize>,
    /// The first input with threads.
    pub threads: Option<usize>,
    /// The first input with scheduling latencies.
    pub latency: Option<usize>,
}
