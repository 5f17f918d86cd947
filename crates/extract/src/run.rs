//! A run of one thread's activations, summed up without knowing what came before.

use crate::lanes::Lanes;
use crate::stream::Options;
use punctual_trace::Activation;

/// Consecutive activations of one thread, none missing.
pub(crate) struct Run {
    /// The number of the first activation, and of the record that must come next.
    pub first: u32,
    pub next: u32,
    pub activations: u64,
    /// Jobs that began and ended in the run.
    pub jobs: u64,
    pub lanes: Lanes,
}

impl Run {
    pub fn new(first: u32) -> Run {
        Run { first, next: first, activations: 0, jobs: 0, lanes: Lanes::continuing() }
    }

    #[inline]
    pub fn take(&mut self, activation: &Activation, options: &Options) {
        self.next = activation.sequence.wrapping_add(1);
        self.activations += 1;
        self.jobs += self.lanes.activation(activation, options, &mut |_| {});
    }
}
