//! The interface of plugins. The built-in ones are in this crate; the daemon wraps those from shared objects
//! in the same trait.

use crate::Parameters;
use punctual_model::Duration;

/// A spec's number, assigned by the daemon and never reused while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecId(pub u64);

/// The scheduling policy to set for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignedPolicy {
    /// SCHED_DEADLINE.
    Deadline {
        /// Budget in each period.
        runtime: Duration,
        /// Deadline, relative to the start of the period.
        deadline: Duration,
        /// Period of replenishment.
        period: Duration,
    },
    /// SCHED_FIFO at a priority of 1 to 99.
    Fifo(u32),
    /// SCHED_RR at a priority of 1 to 99.
    RoundRobin(u32),
    /// SCHED_OTHER at a nice level.
    Other {
        /// −20 to 19.
        nice: i32,
    },
    /// None: a dispatcher of a time-triggered table schedules the thread. The daemon changes nothing.
    Dispatched {
        /// The priority under SCHED_FIFO that it has in its slots; none: by sched_ext.
        priority: Option<u32>,
    },
}

/// In place of a processor: the thread is not pinned, and keeps its affinity.
pub const ANYWHERE: u32 = u32::MAX;

/// Where and how a spec's thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The processor it is pinned to, or [`ANYWHERE`].
    pub processor: u32,
    /// Policy and its parameters.
    pub policy: AssignedPolicy,
}

/// What a plugin would do for a spec. Not binding until [`Plugin::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The processor the thread would run on, or [`ANYWHERE`].
    pub processor: u32,
    /// Q^a, if a runtime was declared.
    pub accepted_runtime: Option<Duration>,
    /// Whether the admission test failed and was ignored on request.
    pub ignored: bool,
}

/// Why a plugin cannot take a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A mandatory parameter is missing; its name in the protocol.
    Lacks(&'static str),
    /// A parameter is out of bounds for this plugin.
    Bound(crate::Bound),
    /// The admission test failed. A sentence with the figures: which test, on which processor, what was
    /// needed and what is available.
    Unschedulable(String),
}

/// What a plugin answers (ReTiF, Section 3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// RTF_OK: all needs are known and can be met.
    Ok(Offer),
    /// RTF_PARTIAL: it can be admitted, but a recommended parameter is missing.
    Partial(Offer),
    /// RTF_NO.
    No(Refusal),
}

/// A processor's load from the specs of one plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Its number.
    pub processor: u32,
    /// Sum of Q^a / min(T, D) over the specs that declare both (ReTiF, Equation 2).
    pub utilization: f64,
    /// Number of specs.
    pub specs: usize,
}

/// An admission test, the specs it has admitted, and how each of their threads is scheduled.
///
/// Order of calls for a new spec: [`consider`](Plugin::consider), then [`admit`](Plugin::admit) with the
/// offer. To change a spec within a plugin: `consider` with `replacing`, then `release` and `admit`, with no
/// call in between. `consider` has no visible side effects.
pub trait Plugin: std::fmt::Debug {
    /// The name in the configuration.
    fn name(&self) -> &str;
    /// The admission test, as if the spec `replacing` had been released.
    fn consider(&self, parameters: &Parameters, replacing: Option<SpecId>) -> Answer;
    /// `consider` on those processors only for which `may_use` holds: those of the cpuset of a thread.
    fn consider_within(
        &self,
        parameters: &Parameters,
        replacing: Option<SpecId>,
        may_use: &dyn Fn(u32) -> bool,
    ) -> Answer {
        match self.consider(parameters, replacing) {
            Answer::Ok(offer) | Answer::Partial(offer) if !may_use(offer.processor) => {
                Answer::No(Refusal::Unschedulable(format!(
                    "it chose processor {}, which the thread's cpuset excludes",
                    offer.processor
                )))
            }
            answer => answer,
        }
    }
    /// Admits a spec as offered. If the plugin does not (or no longer) manage the offer's processor, the spec
    /// is not admitted and has no assignment.
    fn admit(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer);
    /// Like [`admit`](Plugin::admit), for a spec that an earlier daemon admitted and scheduled as `was`.
    /// Keeps that assignment if possible: the old guarantees then hold even where priorities are shared, and
    /// no thread has to be changed.
    fn restore(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer, was: Assignment) {
        let _ = was;
        self.admit(spec, parameters, offer);
    }
    /// Releases a spec. Unknown specs are ignored.
    fn release(&mut self, spec: SpecId);
    /// The current assignment of a spec; admitting or releasing others may change it.
    fn assignment(&self, spec: SpecId) -> Option<Assignment>;
    /// Whether assignments of specs other than the one admitted or released may have changed since the last
    /// call. The daemon then updates those with attached threads.
    fn shifted(&mut self) -> bool;
    /// A spec's thread is now scheduled as assigned; the daemon has already set its policy. For plugins that
    /// look after threads themselves (ReTiF, Table 4: attach). `thread` is a TID in the daemon's PID
    /// namespace. An error says in words why the thread cannot be scheduled after all.
    fn attached(&mut self, spec: SpecId, thread: u32) -> Result<(), String> {
        let _ = (spec, thread);
        Ok(())
    }
    /// The daemon is about to restore the spec's thread, which lives. For plugins whose threads are scheduled
    /// by somebody else: that has to end before.
    fn let_go(&mut self, spec: SpecId) {
        let _ = spec;
    }
    /// Why a spec has nothing any more of what it was admitted to, in words.
    fn lost(&self, spec: SpecId) -> Option<String> {
        let _ = spec;
        None
    }
    /// The spec's thread was detached, or has ended.
    fn detached(&mut self, spec: SpecId) {
        let _ = spec;
    }
    /// The load of each processor.
    fn loads(&self) -> Vec<Load>;
}
