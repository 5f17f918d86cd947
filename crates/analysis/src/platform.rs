//! What the kernel takes from threads on one processor.

use punctual_model::Duration;
use punctual_model::latency::{InterruptKind, Processor, Staircase};

/// One processor, as far as it delays threads. The default delays none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Platform {
    /// Its number.
    pub cpu: u32,
    /// The longest that the kernel keeps a ready thread of the highest priority from running, without
    /// interrupts. (papers: scheduling-latency, L_IF, Lemma 7.)
    pub blocking: Duration,
    /// The longest that one pass of the scheduler takes. (papers: scheduling-latency, D_PSD.)
    pub switch: Duration,
    /// The greatest execution time of interrupts in any window, by source, up to `horizon`.
    pub interrupts: Vec<Staircase>,
    /// Windows of interrupts are exact up to this length; greater than zero if there are any.
    pub horizon: Duration,
    /// Whether some of it may be longer, because events were missed.
    pub at_least: bool,
}

impl Platform {
    /// What was observed of a processor; `None` if its kernel does not show the variables of the bound.
    pub fn observed(processor: &Processor, horizon: Duration) -> Option<Platform> {
        let variables = processor.variables.as_ref()?;
        let longest = variables.poid.max_ns.max(variables.st.max_ns);
        let interrupts = processor.interrupts.iter().filter(|it| it.source.kind != InterruptKind::Softirq);
        Some(Platform {
            cpu: processor.cpu,
            blocking: longest + variables.paie.max_ns + variables.psd.max_ns,
            switch: variables.psd.max_ns + variables.paie.max_ns,
            interrupts: interrupts.clone().map(|it| it.curves.execution.clone()).collect(),
            horizon,
            at_least: variables.each().iter().any(|(_, variable)| variable.at_least)
                || interrupts.clone().any(|it| it.at_least),
        })
    }

    /// The greatest execution time of interrupts in a window of `span` ns; beyond the horizon, that of as
    /// many windows as cover it. `None` beyond 64 bits.
    pub fn interference(&self, span: u64) -> Option<u64> {
        let horizon = self.horizon.ns().max(1);
        let sum = |span: u64| {
            let sums = self.interrupts.iter().map(|it| it.sum(Duration::from_ns(span)).ns());
            crate::window::sum(sums.map(Some))
        };
        if self.interrupts.is_empty() {
            return Some(0);
        }
        sum(horizon)?.checked_mul(span / horizon)?.checked_add(sum(span % horizon)?)
    }
}
