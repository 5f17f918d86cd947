//! The bound itself: the least fixed point of L = L_IF + I_NMI(L) + I_IRQ(L) (paper, Theorem 8), under six
//! models of interrupts (paper, Section 5).

use crate::variables::Variables;
use punctual_model::Duration;
use punctual_model::latency::InterruptCurves;

/// How interrupts are taken to interfere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterruptModel {
    /// Not at all: the interference-free latency.
    None,
    /// The longest interrupt of all sources once, and the longest NMI once.
    WorstSingle,
    /// The longest interrupt of each source once.
    WorstOfEach,
    /// As often as the least observed separation allows, each as long as the longest.
    Sporadic,
    /// As in the worst observed window, with the observed execution times.
    SlidingWindow,
    /// As often as in the worst observed window, each as long as the longest.
    SlidingWindowWcet,
}

impl InterruptModel {
    /// All models, in the paper's order.
    pub const ALL: [InterruptModel; 6] = [
        InterruptModel::None,
        InterruptModel::WorstSingle,
        InterruptModel::WorstOfEach,
        InterruptModel::Sporadic,
        InterruptModel::SlidingWindow,
        InterruptModel::SlidingWindowWcet,
    ];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            InterruptModel::None => "no interrupts",
            InterruptModel::WorstSingle => "worst single interrupt",
            InterruptModel::WorstOfEach => "worst of each interrupt",
            InterruptModel::Sporadic => "sporadic",
            InterruptModel::SlidingWindow => "sliding window",
            InterruptModel::SlidingWindowWcet => "sliding window with worst execution times",
        }
    }

    /// Its name in JSON.
    pub const fn field(self) -> &'static str {
        match self {
            InterruptModel::None => "none",
            InterruptModel::WorstSingle => "worst_single",
            InterruptModel::WorstOfEach => "worst_of_each",
            InterruptModel::Sporadic => "sporadic",
            InterruptModel::SlidingWindow => "sliding_window",
            InterruptModel::SlidingWindowWcet => "sliding_window_wcet",
        }
    }
}

/// What one source adds to the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Index of the source among those given.
    pub source: usize,
    /// Its interference.
    pub interference: Duration,
}

/// Whether there is a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The latency is never above this.
    Converged(Duration),
    /// No window that was tried is long enough for the interrupts that it may hold.
    DoesNotConverge,
}

/// A bound under one model of interrupts, and what it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// How interrupts were taken to interfere.
    pub model: InterruptModel,
    /// The bound, or that there is none.
    pub outcome: Outcome,
    /// What each source adds in the last window that was tried; sources that add nothing are left out.
    pub terms: Vec<Term>,
    /// The windows that were tried, in ascending order.
    pub windows: Vec<Duration>,
}

/// Windows are tried up to so many times the horizon, or the interference-free latency if that is longer; and
/// up to the longest that was observed.
const MOST_HORIZONS: u64 = 10;

/// What a sum is that does not fit.
const SATURATED: Duration = Duration::from_ns(u64::MAX);

/// The bound for one processor under `model`: of its thread variables, and of its interrupt sources with
/// whether each is the NMI. `horizon` must be the one that the sources were observed with, since long windows
/// are multiples of it. A window holds at most what the shorter windows hold that cover it, and what a longer
/// one holds.
pub fn bound(
    variables: &Variables,
    sources: &[(bool, &InterruptCurves)],
    model: InterruptModel,
    horizon: Duration,
) -> Bound {
    let alone = variables.interference_free();
    let mut window = alone.max(Duration::from_ns(1));
    let tried = Duration::from_ns(horizon.max(alone).ns().saturating_mul(MOST_HORIZONS));
    let longest = sources
        .iter()
        .flat_map(|(_, source)| long_windows(source, horizon))
        .fold(tried, |longest, (length, _)| longest.max(length));
    let mut windows = vec![window];
    loop {
        let terms = terms(sources, model, window, horizon);
        let next = terms.iter().fold(alone, |sum, term| sum + term.interference).max(window);
        // The sum may be more than fits: it would equal itself, and be no fixed point.
        if next == SATURATED {
            return Bound { model, outcome: Outcome::DoesNotConverge, terms, windows };
        }
        if next == window {
            return Bound { model, outcome: Outcome::Converged(window), terms, windows };
        }
        if next > longest {
            return Bound { model, outcome: Outcome::DoesNotConverge, terms, windows };
        }
        window = next;
        windows.push(window);
    }
}

fn terms(
    sources: &[(bool, &InterruptCurves)],
    model: InterruptModel,
    window: Duration,
    horizon: Duration,
) -> Vec<Term> {
    let interference = |source: usize| interference(sources[source].1, model, window, horizon);
    let term = |source: usize| Term { source, interference: interference(source) };
    let all = (0..sources.len()).map(term).filter(|term| !term.interference.is_zero());
    if model != InterruptModel::WorstSingle {
        return all.collect();
    }
    let mut longest: [Option<Term>; 2] = [None; 2];
    for term in all {
        let kind = &mut longest[usize::from(sources[term.source].0)];
        if kind.is_none_or(|other| other.interference < term.interference) {
            *kind = Some(term);
        }
    }
    longest.into_iter().flatten().collect()
}

/// I(L) of one source.
fn interference(
    source: &InterruptCurves,
    model: InterruptModel,
    window: Duration,
    horizon: Duration,
) -> Duration {
    let repeated = |count: u64| Duration::from_ns(source.wcet().ns().saturating_mul(count));
    match model {
        InterruptModel::None => Duration::ZERO,
        InterruptModel::WorstSingle | InterruptModel::WorstOfEach => source.wcet(),
        InterruptModel::Sporadic => repeated(sporadic(source, window)),
        InterruptModel::SlidingWindow => {
            let short = covering(window, horizon, |window| source.execution.sum(window).ns());
            let long = long_windows(source, horizon)
                .map(|(length, sum)| window.ns().div_ceil(length.ns()).saturating_mul(sum.ns()));
            let sum = long.fold(short, u64::min);
            Duration::from_ns(sum).min(repeated(arrivals(source, window, horizon)))
        }
        InterruptModel::SlidingWindowWcet => repeated(arrivals(source, window, horizon)),
    }
}

/// How many interrupts a window may hold.
fn arrivals(source: &InterruptCurves, window: Duration, horizon: Duration) -> u64 {
    covering(window, horizon, |window| source.arrivals(window)).min(sporadic(source, window))
}

/// The windows beyond the horizon that were observed: how long they are, and how much they hold at most.
fn long_windows(source: &InterruptCurves, horizon: Duration) -> impl Iterator<Item = (Duration, Duration)> {
    let lengths = std::iter::successors(Some(horizon.ns().max(1)), |length| length.checked_mul(2)).skip(1);
    lengths.map(Duration::from_ns).zip(source.long_execution_ns.iter().copied())
}

/// The sum of `of` over windows of at most `horizon` that cover `window`.
fn covering(window: Duration, horizon: Duration, of: impl Fn(Duration) -> u64) -> u64 {
    let horizon_ns = horizon.ns().max(1);
    let rest = Duration::from_ns(window.ns() % horizon_ns);
    match window.ns() / horizon_ns {
        0 => of(window),
        whole => whole.saturating_mul(of(horizon)).saturating_add(of(rest)),
    }
}

/// How many interrupts with the least separation a window holds that begins at the exit of the first:
/// ⌈(L + C) / T⌉, one at least.
fn sporadic(source: &InterruptCurves, window: Duration) -> u64 {
    match source.min_separation_ns {
        Some(separation) if !separation.is_zero() => {
            (window + source.wcet()).ns().div_ceil(separation.ns()).max(source.count.min(1))
        }
        Some(_) => u64::MAX,
        None => source.count,
    }
}
