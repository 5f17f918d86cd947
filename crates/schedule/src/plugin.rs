//! What every plugin does. Built-in ones are here; those from shared objects are wrapped by the daemon,
//! behind the same trait.

use crate::Parameters;
use punctual_model::Duration;

/// A spec's number, given by the daemon, never used again in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecId(pub u64);

/// What the kernel is to be told of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignedPolicy {
    /// SCHED_DEADLINE.
    Deadline {
        /// Budget in each period.
        runtime: Duration,
        /// Relative.
        deadline: Duration,
        /// Of replenishment.
        period: Duration,
    },
    /// SCHED_FIFO at a priority of 1 to 99.
    Fifo(u32),
    /// SCHED_RR at a priority of 1 to 99.
    RoundRobin(u32),
}

/// Where and how a spec's thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The one processor that it is pinned to.
    pub processor: u32,
    /// How.
    pub policy: AssignedPolicy,
}

/// What a plugin would do for a spec. It binds nothing until [`Plugin::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Where.
    pub processor: u32,
    /// Q^a, where a runtime was declared.
    pub accepted_runtime: Option<Duration>,
    /// Whether the admission test said no, and was ignored as asked.
    pub ignored: bool,
}

/// Why a plugin cannot take a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A mandatory parameter is missing; its name in the protocol.
    Lacks(&'static str),
    /// A parameter is out of bounds for this plugin.
    Bound(crate::Bound),
    /// The admission test says no; a sentence with the figures: which test, on which processor, what was
    /// needed and what there is.
    Unschedulable(String),
}

/// What a plugin answers (ReTiF, Section 3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// RTF_OK: everything that is needed is known, and met.
    Ok(Offer),
    /// RTF_PARTIAL: it can be taken, but a recommended parameter is missing.
    Partial(Offer),
    /// RTF_NO.
    No(Refusal),
}

/// What a processor carries on behalf of one plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Its number.
    pub processor: u32,
    /// Sum of Q^a / min(T, D) over the specs that declare both (ReTiF, Equation 2).
    pub utilization: f64,
    /// How many specs.
    pub specs: usize,
}

/// An admission test with its books, and what follows of them for each thread.
///
/// The order of calls for a new spec: [`consider`](Plugin::consider), then [`admit`](Plugin::admit) with the
/// offer. For a change within a plugin: `consider` with `replacing`, then `release` and `admit`, without
/// anything between. Nothing that `consider` does can be observed.
pub trait Plugin: std::fmt::Debug {
    /// The name in the configuration.
    fn name(&self) -> &str;
    /// The admission test. `replacing` counts as gone.
    fn consider(&self, parameters: &Parameters, replacing: Option<SpecId>) -> Answer;
    /// Takes a spec in, as offered. If the offer's processor is not one of the plugin's (any more), the spec
    /// is not taken in, and has no assignment.
    fn admit(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer);
    /// As [`admit`](Plugin::admit), for a spec that an earlier daemon admitted and scheduled as `was`; that
    /// is kept where possible, so that the guarantees of then hold where priorities had to be shared, and no
    /// thread need be touched.
    fn restore(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer, was: Assignment) {
        let _ = was;
        self.admit(spec, parameters, offer);
    }
    /// Forgets a spec. Unknown ones are none of its business.
    fn release(&mut self, spec: SpecId);
    /// What holds for a spec now; it may change when others come and go.
    fn assignment(&self, spec: SpecId) -> Option<Assignment>;
    /// Whether the assignments of specs other than the one admitted or released may have changed since this
    /// was last asked. The daemon then looks at those whose threads are attached.
    fn shifted(&mut self) -> bool;
    /// A spec's thread is scheduled as assigned from now on. For plugins that look after threads themselves
    /// (ReTiF, Table 4: attach); the number is a TID in the daemon's PID namespace. Telling the kernel is the
    /// daemon's, and done.
    fn attached(&mut self, spec: SpecId, thread: u32) {
        let _ = (spec, thread);
    }
    /// It is so no longer; it may have ended.
    fn detached(&mut self, spec: SpecId) {
        let _ = spec;
    }
    /// The books.
    fn loads(&self) -> Vec<Load>;
}
