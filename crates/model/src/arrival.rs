//! Arrival models: how often a thread's jobs are released, or a dataflow task is activated.

mod modes;
mod regular;
mod validate;

pub use modes::{Burst, MAX_MODES, Mode, Source};

use crate::section::is_zero;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// How often jobs are released. Every model allows every observed release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// Periodic with offset and jitter; needs three releases.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub periodic: Option<Periodic>,
    /// Sporadic; needs two releases.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sporadic: Option<Sporadic>,
    /// Arrival curves; needs two releases.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub curve: Option<Curve>,
    /// Several rates, bursts, or rates that change, if they explain the releases better than one period; then
    /// there is no periodic model.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub modes: Vec<Mode>,
}

/// What the offset and jitter of a periodic model are measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeriodicOn {
    /// Known arrivals: jitter is how much later than its arrival a job was released.
    Arrival,
    /// Releases alone.
    Release,
}

/// Why a period was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// A round number explains the releases well enough.
    Rounded,
    /// The estimate itself: no rounder number explains the releases.
    Estimated,
    /// The period of least jitter.
    LeastJitter,
}

/// Job j (from 0) is released at most `jitter` after the arrival of activation k_j: with P the exact period,
/// `offset + k_j·P <= r_j <= offset + k_j·P + jitter`. The k_j begin at 0 and increase; they are never more
/// than `skipped` above j. (papers: LiME, Eq. 1, where k_j = j.)
///
/// Releases before an extra release count as late, by a period for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Periodic {
    /// What it is measured on.
    pub on: PeriodicOn,
    /// The period, rounded to whole nanoseconds; greater than zero.
    pub period_ns: Duration,
    /// The exact period, if it is not a whole number of nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub period_exact: Option<Fraction>,
    /// Arrival of the first job, on the observation's clock (may lie before the clock's zero).
    pub offset_ns: i64,
    /// Longest time from arrival to release.
    pub jitter_ns: Duration,
    /// The jitter of the period with the least jitter.
    pub least_jitter_ns: Duration,
    /// Why this period was chosen.
    pub choice: Choice,
    /// Whether offset and jitter are over-approximated because the hulls reached their cap.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub approximate: bool,
    /// Activations without a release: the sum of k_j − k_{j−1} − 1 where that is positive.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub skipped: u64,
    /// Releases in excess of one per activation: the sum of 1 − (k_j − k_{j−1}) where that is positive.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub extra: u64,
    /// Where activations were skipped and where releases were extra: the first [`MAX_SLIPS`] places.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub slips: Vec<Slip>,
    /// The same period without the few releases that are outliers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub typical: Option<Typical>,
}

impl Periodic {
    /// The typical jitter, or that of all releases if there is no typical model.
    pub fn usual_jitter(&self) -> Duration {
        self.typical.as_ref().map_or(self.jitter_ns, |typical| typical.jitter_ns)
    }
}

/// Greatest number of slips that a model lists.
pub const MAX_SLIPS: usize = 10;

/// Fewest releases of which a typical model leaves any out.
pub const FEWEST_TYPICAL: u64 = 20;

/// Greatest number of wake-ups at the end of a thread that a typical model leaves out: they are no releases.
pub const MAX_ENDING: usize = 32;

/// Greatest number of releases that a typical model leaves out because they are early.
pub const MAX_EARLY: usize = 4;

/// Greatest number of releases that a typical model leaves out because they are late.
pub const MAX_LATE: usize = 516;

/// A place where activations were skipped, or where one was released more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slip {
    /// The latest bound of the first release after it.
    pub at_ns: Instant,
    /// Activations skipped before that release; if negative, extra releases.
    pub activations: i64,
}

/// The periodic model of all releases except those listed, with the period and slips of the conservative
/// model. A release whose time is not known counts at its latest bound, and from its known arrival on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Typical {
    /// Arrival of the first job, even if it is left out. Here k_j is one more than k_{j−1} except at slips;
    /// extra releases share an activation.
    pub offset_ns: i64,
    /// Longest time from arrival to latest bound, of the releases that are not left out. With more than
    /// [`MAX_LATE`] late ones this is not typical; `percentiles.lateness` has the value that 99.9 % of the
    /// releases do not exceed.
    pub jitter_ns: Duration,
    /// The releases that are left out, in order: at most max(1, 0.1 %) of all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<LeftOut>,
}

/// A release that the typical model leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its latest bound, or its known arrival if that is early.
    pub at_ns: Instant,
    /// How far it is outside: negative, from the first allowed nanosecond back to its known arrival, or else
    /// its latest bound; positive, from the last allowed one to its latest bound.
    pub off_ns: i64,
    /// The reason, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Disturbance>,
}

/// What can move a release away from the intended time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disturbance {
    /// A signal ended or interrupted the sleep.
    Signal,
    /// The thread was being terminated, or what it waited for was shut down.
    Ending,
    /// The machine stalled: a hypervisor took the processor.
    Stall,
}

/// A fraction of nanoseconds in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// Nanoseconds, times the denominator.
    pub numerator: u64,
    /// Greater than zero.
    pub denominator: u64,
}

/// Least time between consecutive releases. (papers: LiME, Section II-B.)
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sporadic {
    /// Least separation; zero if two releases may coincide.
    pub min_separation_ns: Duration,
}

/// Distance functions, the pseudo-inverses of the arrival curves: `delta_min_ns[i]` is δ⁻(i+2), the least
/// span of i+2 consecutive releases; `delta_max_ns[i]` is δ⁺(i+2), the greatest. Both never decrease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// δ⁻(2), δ⁻(3), …
    pub delta_min_ns: Vec<Duration>,
    /// δ⁺(2), δ⁺(3), …
    pub delta_max_ns: Vec<Duration>,
}
