//! The settings of built-in plugins, as an administrator configures them (ReTiF, Section 3.5).

use crate::{Limits, Parameters, Refusal, Reserve, Utilization};
use punctual_analysis::Platform;
use punctual_model::Duration;
use std::fmt;
use std::str::FromStr;

/// The built-in plugins (ReTiF, Section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Earliest deadline first, by SCHED_DEADLINE.
    Edf,
    /// Rate monotonic, by SCHED_FIFO.
    Rm,
    /// Fixed priorities as requested, by SCHED_FIFO.
    Fp,
    /// Like FP, by SCHED_RR.
    Rr,
    /// Global EDF, by SCHED_DEADLINE.
    Gedf,
    /// Nice levels, by SCHED_OTHER: no promise.
    Nice,
}

impl Kind {
    /// Those that give each thread a processor, and test what they admit.
    pub const REAL_TIME: [Kind; 4] = [Kind::Edf, Kind::Rm, Kind::Fp, Kind::Rr];

    /// All kinds.
    pub const ALL: [Kind; 6] = [Kind::Edf, Kind::Rm, Kind::Fp, Kind::Rr, Kind::Gedf, Kind::Nice];
}

impl Kind {
    /// Whether it schedules by SCHED_DEADLINE, and so takes no priorities.
    pub fn is_deadline(self) -> bool {
        matches!(self, Kind::Edf | Kind::Gedf)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Edf => "EDF",
            Kind::Rm => "RM",
            Kind::Fp => "FP",
            Kind::Rr => "RR",
            Kind::Gedf => "GEDF",
            Kind::Nice => "NICE",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.to_string().eq_ignore_ascii_case(name));
        kind.ok_or_else(|| {
            format!("there is no built-in plugin `{name}`; there is EDF, RM, FP, RR, GEDF or NICE")
        })
    }
}

/// An admission test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Test {
    /// The paper's: the sum of Q / min(T, D) up to the threshold for EDF and RM, none for FP and RR.
    Utilization,
    /// Processor demand for EDF, response times for RM, FP and RR, where runtime and period are known; the
    /// sum of Q / T up to the threshold as well.
    #[default]
    Exact,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Test::Utilization => "utilization",
            Test::Exact => "exact",
        })
    }
}

impl FromStr for Test {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "utilization" => Ok(Test::Utilization),
            "exact" => Ok(Test::Exact),
            _ => Err(format!("there is no admission test `{name}`; there are `utilization` and `exact`")),
        }
    }
}

/// One plugin's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Its name in the configuration and in requests.
    pub name: String,
    /// The processors it may use; the first of equally loaded ones is taken.
    pub processors: Vec<u32>,
    /// The lowest and highest priority it may use. EDF does not use them.
    pub priorities: (u32, u32),
    /// U^thr: greatest utilization of each processor, above 0 and up to 1.
    pub threshold: f64,
    /// The admission test.
    pub test: Test,
    /// The kernel's limits.
    pub limits: Limits,
    /// What the kernel takes from threads, for each of the processors; none: it does not count. Only for
    /// exact tests of RM, FP and RR.
    pub platforms: Vec<Platform>,
    /// What the kernel keeps for ordinary threads, by processor. Only for exact tests.
    pub reserves: Vec<Reserve>,
    /// Specs that declare no runtime or no period may request priorities up to this one, all others only
    /// higher ones; none: whoever comes first decides. Only for FP and RR.
    pub without_runtime_up_to: Option<u32>,
}

impl Settings {
    /// Checks the settings for this kind of plugin. Errors are messages for administrators.
    pub fn check(&self, kind: Kind) -> Result<(), String> {
        let name = &self.name;
        if self.processors.is_empty() {
            return Err(format!("plugin `{name}`: needs at least one processor"));
        }
        let mut sorted = self.processors.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("plugin `{name}`: processor {} is listed twice", twice[0]));
        }
        if self.threshold > 1.0 || Utilization::limit(self.threshold).is_none() {
            return Err(format!(
                "plugin `{name}`: the threshold is {}, but has to be above 0 and at most 1",
                self.threshold
            ));
        }
        self.check_platforms(kind)?;
        if let Some(reserve) = self.reserves.iter().find(|it| it.runtime >= it.period) {
            return Err(format!(
                "plugin `{name}`: {reserve} leaves nothing of processor {}",
                reserve.processor
            ));
        }
        let (lowest, highest) = self.priorities;
        let (least, greatest) = self.limits.priorities;
        let is_range = least.max(1) <= lowest && lowest <= highest && highest <= greatest;
        if !kind.is_deadline() && !is_range {
            return Err(format!(
                "plugin `{name}`: priorities {lowest} to {highest} are not a range within the kernel's \
                 {least} to {greatest}"
            ));
        }
        match self.without_runtime_up_to {
            Some(_) if !matches!(kind, Kind::Fp | Kind::Rr) => {
                Err(format!("plugin `{name}`: only FP and RR reserve priorities for specs without a runtime"))
            }
            Some(most) if most < lowest || most >= highest => Err(format!(
                "plugin `{name}`: specs without a runtime have priorities up to {most}, expected {lowest} \
                 to {}",
                highest - 1
            )),
            _ => Ok(()),
        }
    }

    fn check_platforms(&self, kind: Kind) -> Result<(), String> {
        let name = &self.name;
        if self.platforms.is_empty() {
            return Ok(());
        }
        if kind.is_deadline() || self.test != Test::Exact {
            return Err(format!(
                "plugin `{name}`: the kernel's latency counts only in the exact test of RM, FP and RR"
            ));
        }
        let is_known = |cpu: &u32| self.platforms.iter().any(|platform| platform.cpu == *cpu);
        match self.processors.iter().find(|cpu| !is_known(cpu)) {
            Some(cpu) => Err(format!("plugin `{name}`: the latency of processor {cpu} is unknown")),
            None => Ok(()),
        }
    }

    /// What the kernel keeps of a processor for ordinary threads, as far as the test counts that.
    pub(crate) fn reserves_on(&self, processor: u32) -> Vec<Reserve> {
        let counts = |reserve: &&Reserve| self.test == Test::Exact && reserve.processor == processor;
        self.reserves.iter().filter(counts).copied().collect()
    }

    /// Refuses a blocking that the test would not count.
    pub(crate) fn check_blocking(&self, parameters: &Parameters) -> Result<(), Refusal> {
        match parameters.blocking {
            Some(blocking) if blocking > Duration::ZERO && self.test == Test::Utilization => {
                let why =
                    "the test of utilization does not count blocking; the plugin needs admission = \"exact\"";
                Err(Refusal::Unschedulable(why.into()))
            }
            _ => Ok(()),
        }
    }

    /// U^thr. Valid if the settings passed [`check`](Self::check).
    pub(crate) fn limit(&self) -> Utilization {
        Utilization::limit(self.threshold).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("edf".parse(), Ok(Kind::Edf));
        assert!("CBS".parse::<Kind>().is_err());
        for test in [Test::Utilization, Test::Exact] {
            assert_eq!(test.to_string().parse(), Ok(test));
        }
        assert!("".parse::<Test>().is_err());
    }
}
