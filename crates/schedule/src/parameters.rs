//! What a client declares of a task (ReTiF, Table 3), and the bounds that no plugin can lift.

use punctual_model::Duration;

/// Declared timing needs. All of them may be left out; which a plugin needs is its own (ReTiF, Table 6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Q: what a job takes at most.
    pub runtime: Option<Duration>,
    /// Q^d ≥ Q: what a job would like to have; the accepted runtime lies between.
    pub desired_runtime: Option<Duration>,
    /// T: the least distance of two releases.
    pub period: Option<Duration>,
    /// D: from a release to the latest end; the period, if not given.
    pub deadline: Option<Duration>,
    /// P: higher is more urgent, as with `sched_setscheduler(2)`.
    pub priority: Option<u32>,
    /// The one plugin to ask; all in their order, if not given.
    pub plugin: Option<String>,
    /// Take it even if the admission test says no, where the rules allow that.
    pub ignore_admission: bool,
}

/// What the kernel accepts at all; read from it once, by the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Least runtime of SCHED_DEADLINE: 1,024 ns (`DL_SCALE`).
    pub least_runtime: Duration,
    /// `sched_deadline_period_min_us`.
    pub least_period: Duration,
    /// `sched_deadline_period_max_us`.
    pub greatest_period: Duration,
    /// `sched_get_priority_min/max(2)` of SCHED_FIFO.
    pub priorities: (u32, u32),
}

/// A parameter that is beyond a bound; says which. Messages name the parameter, its value, the bound and
/// where the bound comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// As in the protocol: `runtime_ns`, `period_ns`, …
    pub parameter: &'static str,
    /// What was asked for.
    pub value: u64,
    /// What it has to be, for people: "at least 1.024 µs (SCHED_DEADLINE's least runtime)".
    pub bound: String,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}, but has to be {}", self.parameter, self.value, self.bound)
    }
}

impl std::error::Error for Bound {}

/// The kernel's times are signed, so they end here; SCHED_DEADLINE refuses what has the top bit.
const GREATEST: u64 = i64::MAX as u64;

impl Default for Limits {
    /// Those of a kernel whose settings nobody has touched.
    fn default() -> Self {
        Self {
            least_runtime: Duration::from_ns(1 << 10),
            least_period: Duration::from_us(100),
            greatest_period: Duration::from_us(1 << 22),
            priorities: (1, 99),
        }
    }
}

impl Parameters {
    /// The bounds that hold whatever the plugin. The one that is broken first is named, in the order of Table
    /// 3's parameters.
    pub fn check(&self, limits: &Limits) -> Result<(), Bound> {
        let times = [
            ("runtime_ns", self.runtime),
            ("desired_runtime_ns", self.desired_runtime),
            ("period_ns", self.period),
            ("deadline_ns", self.deadline),
        ];
        for (parameter, time) in times {
            if let Some(time) = time {
                at_least(parameter, time, Duration::from_ns(1), "a time of nothing is none")?;
                at_most(
                    parameter,
                    time,
                    Duration::from_ns(GREATEST),
                    "the kernel's times are signed 64-bit numbers",
                )?;
            }
        }
        if let Some(runtime) = self.runtime {
            if let Some(desired) = self.desired_runtime {
                at_least("desired_runtime_ns", desired, runtime, "runtime_ns")?;
            }
            if let Some(period) = self.period {
                at_most("runtime_ns", runtime, period, "period_ns")?;
            }
            if let Some(deadline) = self.deadline {
                at_least("deadline_ns", deadline, runtime, "runtime_ns")?;
            }
        }
        if let Some(priority) = self.priority {
            let (least, greatest) = limits.priorities;
            if !(least..=greatest).contains(&priority) {
                let bound =
                    format!("{least} to {greatest} (the kernel's priorities for SCHED_FIFO and SCHED_RR)");
                return Err(Bound { parameter: "priority", value: priority.into(), bound });
            }
        }
        Ok(())
    }

    /// What SCHED_DEADLINE would refuse beyond [`check`](Self::check): the kernel's `__checkparam_dl`, with
    /// the period as the deadline if none is given.
    pub fn check_deadline_class(&self, limits: &Limits) -> Result<(), Bound> {
        if let Some(runtime) = self.runtime {
            at_least("runtime_ns", runtime, limits.least_runtime, "SCHED_DEADLINE's least runtime")?;
        }
        if let Some(period) = self.period {
            at_least("period_ns", period, limits.least_period, "sched_deadline_period_min_us")?;
            at_most("period_ns", period, limits.greatest_period, "sched_deadline_period_max_us")?;
            if let Some(deadline) = self.deadline {
                at_most(
                    "deadline_ns",
                    deadline,
                    period,
                    "period_ns; SCHED_DEADLINE knows no longer deadlines",
                )?;
            }
        }
        Ok(())
    }

    /// D, or T where no deadline is given; `None` without a period too.
    pub fn relative_deadline(&self) -> Option<Duration> {
        self.deadline.or(self.period)
    }
}

fn at_least(parameter: &'static str, value: Duration, least: Duration, whence: &str) -> Result<(), Bound> {
    if value >= least {
        return Ok(());
    }
    Err(Bound { parameter, value: value.ns(), bound: format!("at least {least} ({whence})") })
}

fn at_most(parameter: &'static str, value: Duration, greatest: Duration, whence: &str) -> Result<(), Bound> {
    if value <= greatest {
        return Ok(());
    }
    Err(Bound { parameter, value: value.ns(), bound: format!("at most {greatest} ({whence})") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ns(value: u64) -> Option<Duration> {
        Some(Duration::from_ns(value))
    }

    fn broken(parameters: Parameters) -> &'static str {
        parameters.check(&Limits::default()).expect_err("a bound is broken").parameter
    }

    fn broken_for_deadline(parameters: Parameters) -> &'static str {
        parameters.check(&Limits::default()).expect("the general bounds hold");
        parameters.check_deadline_class(&Limits::default()).expect_err("a bound is broken").parameter
    }

    #[test]
    fn every_bound_is_named() {
        let p = Parameters::default;
        assert_eq!(broken(Parameters { runtime: ns(0), ..p() }), "runtime_ns");
        assert_eq!(broken(Parameters { period: ns(0), ..p() }), "period_ns");
        assert_eq!(broken(Parameters { deadline: ns(0), ..p() }), "deadline_ns");
        assert_eq!(broken(Parameters { desired_runtime: ns(0), ..p() }), "desired_runtime_ns");
        assert_eq!(broken(Parameters { runtime: ns(11), period: ns(10), ..p() }), "runtime_ns");
        assert_eq!(
            broken(Parameters { runtime: ns(11), desired_runtime: ns(10), ..p() }),
            "desired_runtime_ns"
        );
        assert_eq!(
            broken(Parameters { runtime: ns(11), period: ns(20), deadline: ns(10), ..p() }),
            "deadline_ns"
        );
        assert_eq!(broken(Parameters { period: ns(1 << 63), ..p() }), "period_ns");
        assert_eq!(broken(Parameters { deadline: ns(u64::MAX), ..p() }), "deadline_ns");
        assert_eq!(broken(Parameters { priority: Some(0), ..p() }), "priority");
        assert_eq!(broken(Parameters { priority: Some(100), ..p() }), "priority");
        let long = Parameters { runtime: ns(GREATEST), period: ns(GREATEST), deadline: ns(GREATEST), ..p() };
        assert_eq!(long.check(&Limits::default()), Ok(()));
    }

    #[test]
    fn what_sched_deadline_refuses_is_refused() {
        let p = Parameters::default;
        assert_eq!(
            broken_for_deadline(Parameters { runtime: ns(1_023), period: ns(1_000_000), ..p() }),
            "runtime_ns"
        );
        assert_eq!(
            broken_for_deadline(Parameters { runtime: ns(1_024), period: ns(99_999), ..p() }),
            "period_ns"
        );
        assert_eq!(
            broken_for_deadline(Parameters { runtime: ns(1_024), period: ns(4_194_304_001), ..p() }),
            "period_ns"
        );
        assert_eq!(
            broken_for_deadline(Parameters { period: ns(1_000_000), deadline: ns(1_000_001), ..p() }),
            "deadline_ns"
        );
    }

    #[test]
    fn a_message_says_what_where_and_why() {
        let bound = Parameters { runtime: ns(1_000), ..Parameters::default() }
            .check_deadline_class(&Limits::default())
            .unwrap_err();
        assert_eq!(
            bound.to_string(),
            "runtime_ns is 1000, but has to be at least 1.024 µs (SCHED_DEADLINE's least runtime)"
        );
    }

    /// The kernel's own condition, as written there (kernel/sched/deadline.c, `__checkparam_dl`).
    fn checkparam_dl(runtime: u64, deadline: u64, period: u64, limits: &Limits) -> bool {
        deadline != 0
            && runtime >= 1 << 10
            && deadline & (1 << 63) == 0
            && period & (1 << 63) == 0
            && period >= deadline
            && deadline >= runtime
            && (limits.least_period.ns()..=limits.greatest_period.ns()).contains(&period)
    }

    fn time() -> impl Strategy<Value = u64> {
        let around = |centre: u64| (0..5u64).prop_map(move |d| centre.saturating_sub(2).saturating_add(d));
        prop_oneof![
            around(0),
            around(1 << 10),
            around(100_000),
            around(4_194_304_000),
            around(1 << 63),
            around(u64::MAX),
            any::<u64>()
        ]
    }

    proptest! {
        #[test]
        fn exactly_what_the_kernel_takes_passes(runtime in time(), deadline in time(), period in time()) {
            let limits = Limits::default();
            let parameters = Parameters { runtime: ns(runtime), deadline: ns(deadline), period: ns(period), ..Parameters::default() };
            let passes = parameters.check(&limits).is_ok() && parameters.check_deadline_class(&limits).is_ok();
            prop_assert_eq!(passes, checkparam_dl(runtime, deadline, period, &limits));
        }
    }
}
