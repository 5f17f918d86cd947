//! How often a task's jobs are released.

use punctual_model::Duration;
use punctual_model::arrival::{Arrival, Curve};

/// An upper bound of the releases in any interval.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// By a distance function. Past its table, by superadditivity.
    Curve(Curve),
    /// Every `period`, each up to `jitter` late.
    Periodic {
        /// From one arrival to the next; greater than zero.
        period: Duration,
        /// Longest time from an arrival to its release.
        jitter: Duration,
    },
    /// At least `separation` apart.
    Sporadic {
        /// Least time from one release to the next; greater than zero.
        separation: Duration,
    },
}

impl Arrivals {
    /// The arrivals of a stream: its curve, else its periodic model, else its least separation. `None` if
    /// none of them bounds the number of releases.
    pub fn observed(arrival: &Arrival) -> Option<Arrivals> {
        let curve = arrival.curve.clone().map(Arrivals::Curve);
        let periodic = arrival.periodic.as_ref().map(|it| {
            let exact = it.period_exact.map(|exact| exact.numerator / exact.denominator.max(1));
            let period = Duration::from_ns(exact.unwrap_or(it.period_ns.ns()));
            Arrivals::Periodic { period, jitter: it.jitter_ns }
        });
        let separation = arrival.sporadic.as_ref().map(|it| it.min_separation_ns);
        let sporadic = separation.map(|separation| Arrivals::Sporadic { separation });
        [curve, periodic, sporadic].into_iter().flatten().find(|it| it.most(1).is_some())
    }

    /// η⁺(Δ): the greatest number of releases in a half-open interval of `span` ns; `None` if unbounded.
    pub fn most(&self, span: u64) -> Option<u64> {
        if span == 0 {
            return Some(0);
        }
        match self {
            Arrivals::Curve(curve) => curve.eta_max(Duration::from_ns(span)),
            Arrivals::Periodic { period, jitter } => jobs(span.checked_add(jitter.ns())?, period.ns()),
            Arrivals::Sporadic { separation } => jobs(span, separation.ns()),
        }
    }

    /// δ⁻(n): the least time in ns from the first to the last of `n` consecutive releases.
    pub fn span(&self, n: u64) -> u64 {
        let gaps = n.saturating_sub(1);
        match self {
            Arrivals::Curve(curve) => curve.delta_min(n).ns(),
            Arrivals::Periodic { period, jitter } => {
                gaps.saturating_mul(period.ns()).saturating_sub(jitter.ns())
            }
            Arrivals::Sporadic { separation } => gaps.saturating_mul(separation.ns()),
        }
    }

    /// Releases per ns in the long run; `None` if unbounded.
    pub(crate) fn rate(&self) -> Option<f64> {
        let (releases, span) = match self {
            Arrivals::Curve(curve) => {
                (curve.delta_min_ns.len() as f64, curve.delta_min_ns.last().copied().unwrap_or_default())
            }
            Arrivals::Periodic { period, .. } => (1.0, *period),
            Arrivals::Sporadic { separation } => (1.0, *separation),
        };
        (!span.is_zero()).then(|| releases / span.ns() as f64)
    }

    /// The least time in ns from the earliest possible release of the first of `n` consecutive jobs to the
    /// last one's arrival, `late` before its release at most; plus `late`.
    pub(crate) fn earlier(&self, n: u64, late: u64) -> u64 {
        match self {
            // Arrivals themselves are periodic.
            Arrivals::Periodic { period, jitter } if late <= jitter.ns() => {
                let arrival = n.saturating_sub(1).saturating_mul(period.ns()).saturating_add(late);
                self.span(n).max(arrival.saturating_sub(jitter.ns()))
            }
            _ => self.span(n),
        }
    }

    /// The same with every distance multiplied by `numerator / denominator`, rounded down.
    pub fn scaled(&self, numerator: u64, denominator: u64) -> Arrivals {
        let scale = |it: &Duration| {
            let product = u128::from(it.ns()) * u128::from(numerator) / u128::from(denominator.max(1));
            Duration::from_ns(u64::try_from(product).unwrap_or(u64::MAX))
        };
        match self {
            Arrivals::Curve(curve) => Arrivals::Curve(Curve {
                delta_min_ns: curve.delta_min_ns.iter().map(scale).collect(),
                delta_max_ns: Vec::new(),
            }),
            Arrivals::Periodic { period, jitter } => {
                Arrivals::Periodic { period: scale(period), jitter: *jitter }
            }
            Arrivals::Sporadic { separation } => Arrivals::Sporadic { separation: scale(separation) },
        }
    }
}

fn jobs(span: u64, separation: u64) -> Option<u64> {
    (separation > 0).then(|| span.div_ceil(separation))
}
