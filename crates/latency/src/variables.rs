//! The variables of threads (paper, Table 1): greatest durations, less the time of interrupts inside.

use punctual_model::{Duration, latency};

/// Greatest observed durations on one processor, with the time of interrupts and NMIs taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// D_POID: preemption or interrupts disabled by a thread, but not to schedule.
    pub poid: Duration,
    /// D_PSD: preemption disabled to schedule, until the scheduler enables it again.
    pub psd: Duration,
    /// D_ST: interrupts disabled by the scheduler for a context switch, until it enables preemption.
    pub st: Duration,
    /// D_PAIE: preemption and interrupts enabled, although the scheduler is to be called.
    pub paie: Duration,
}

impl Variables {
    /// L_IF = max(D_ST, D_POID) + D_PAIE + D_PSD: the latency without interference. (paper, Lemma 7)
    pub fn interference_free(&self) -> Duration {
        self.st.max(self.poid) + self.paie + self.psd
    }

    /// The greater of each: what holds for both observations.
    pub fn merge(&mut self, other: &Variables) {
        self.poid = self.poid.max(other.poid);
        self.psd = self.psd.max(other.psd);
        self.st = self.st.max(other.st);
        self.paie = self.paie.max(other.paie);
    }
}

impl From<&latency::Variables> for Variables {
    fn from(recorded: &latency::Variables) -> Variables {
        let latency::Variables { poid, psd, st, paie } = recorded;
        Variables { poid: poid.max_ns, psd: psd.max_ns, st: st.max_ns, paie: paie.max_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interference_free_latency_of_figure_24() {
        let variables = Variables {
            poid: Duration::from_ns(22_510),
            psd: Duration::from_ns(19_702),
            st: Duration::from_ns(19_312),
            paie: Duration::ZERO,
        };
        assert_eq!(variables.interference_free().ns(), 42_212);
    }
}
