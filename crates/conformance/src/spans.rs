//! How close to each other, and how far apart, the releases of periodic sources may be: the distance
//! functions δ⁻ and δ⁺ of several sources, bursts and modes that were agreed on.
//!
//! Of any releases in a row, no more lie in a window than the sources release there, and no fewer. Two
//! sources whose activations coincide may have one job between them, so the least number is that of all
//! activations without those that may coincide. Nothing needs to be known of the phases: what breaks these
//! limits breaks the contract whatever they are.
//!
//! A period in whole nanoseconds may be a rounded one: limits allow for one nanosecond with each activation.

use crate::checker::LEAST_OF_MODE;
use crate::contract::{ContractMode, ContractSource};
use punctual_model::Duration;

/// Limits are of up to so many releases after a release.
pub const MOST_GAPS: usize = 64;

/// The limits of a mode. At [0] from a release to the next, at [1] to the second after it, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    /// δ⁻: the least times.
    pub least: Vec<Duration>,
    /// δ⁺: the greatest ones.
    pub most: Vec<Duration>,
}

impl Spans {
    /// Those of a mode.
    pub fn of(mode: &ContractMode) -> Spans {
        let sources: Vec<Source> =
            mode.sources.iter().map(|it| Source::new(it, mode.skips.unwrap_or(0))).collect();
        Spans { least: least(&sources), most: most(&sources) }
    }

    /// Whether releases that are so close to each other, and so far apart, keep to the limits.
    pub fn allow(&self, least: &[Duration], most: &[Duration]) -> bool {
        self.least.iter().zip(least).all(|(limit, span)| span >= limit)
            && self.most.iter().zip(most).all(|(limit, span)| span <= limit)
    }
}

/// δ⁻ of releases that are in one of these modes each, with any changes between them.
///
/// Releases of one mode may follow those of another at once. The mode then lasts for [`LEAST_OF_MODE`]
/// releases or more, some of which may belong to the other mode, too: then nothing is between those that
/// neither limits. So one gap in that many may be zero, and the others are of parts of modes, however short.
pub fn least_of_any(modes: &[Spans]) -> Vec<Duration> {
    if let [only] = modes {
        return only.least.clone();
    }
    let within = |gaps: usize| modes.iter().filter_map(|mode| mode.least.get(gaps - 1).copied()).min();
    let mut parts = vec![Duration::ZERO];
    while let gaps @ 1..=MOST_GAPS = parts.len() {
        let last = (1..=gaps).filter_map(|last| Some(parts[gaps - last] + within(last)?)).min();
        let Some(least) = last else { return Vec::new() };
        parts.push(least);
    }
    (1..=MOST_GAPS).map(|gaps| parts[gaps - gaps.div_ceil(LEAST_OF_MODE as usize)]).collect()
}

/// A source in nanoseconds.
struct Source {
    period: u64,
    /// From an activation to its first release.
    jitter: u64,
    /// From the first to the last release of a burst.
    within: u64,
    jobs: u64,
    /// Of so many activations in a row, one has a release for certain that no other of them has.
    stride: u64,
}

impl Source {
    fn new(agreed: &ContractSource, skips: u64) -> Source {
        let (period, jitter) = (agreed.period.ns(), agreed.jitter.unwrap_or_default().ns());
        let (jobs, within) = agreed.burst.map_or((1, 0), |burst| (burst.jobs, burst.within_ns.ns()));
        let stride = skips.saturating_add(1).max(jitter / period.max(1) + 1);
        Source { period, jitter, within, jobs, stride }
    }

    /// Activations that certainly have their releases between two that are so far apart.
    fn certain(&self, span: u64) -> u64 {
        span.saturating_sub(self.jitter).saturating_sub(1) / self.period.saturating_add(1)
    }
}

fn least(sources: &[Source]) -> Vec<Duration> {
    let more = |source: &Source| {
        let (period, late) = ((source.period - 1).max(1), source.jitter.saturating_add(source.within));
        let jobs = source.jobs;
        (0..=MOST_GAPS as u64).map(move |number| (number.saturating_mul(period).saturating_sub(late), jobs))
    };
    // How many more releases a window may have from a length on.
    let mut steps: Vec<(u64, u64)> = sources.iter().flat_map(more).collect();
    steps.sort_unstable();
    let mut spans = Vec::new();
    let mut releases = 0_u64;
    for (span, more) in steps {
        releases = releases.saturating_add(more);
        let gaps = usize::try_from(releases.saturating_sub(1)).unwrap_or(MOST_GAPS).min(MOST_GAPS);
        spans.resize(gaps.max(spans.len()), Duration::from_ns(span));
    }
    spans
}

fn most(sources: &[Source]) -> Vec<Duration> {
    let is_each = sources.iter().all(|source| source.stride == 1);
    let pairs: Vec<(usize, usize, Vec<u64>)> = if is_each { coinciding(sources) } else { Vec::new() };
    let longer = |source: &Source| {
        let (period, jitter, stride) = (source.period.saturating_add(1), source.jitter, source.stride);
        (1..=MOST_GAPS as u64).map(move |number| {
            number.saturating_mul(stride).saturating_mul(period).saturating_add(jitter).saturating_add(1)
        })
    };
    let mut spans: Vec<u64> = sources.iter().flat_map(longer).collect();
    spans.sort_unstable();
    let mut limits = Vec::new();
    for span in spans {
        let certain: Vec<u64> = sources.iter().map(|source| source.certain(span)).collect();
        let of_one = certain.iter().zip(sources).map(|(number, source)| number / source.stride).max();
        let of_all = is_each.then(|| {
            let coincide = |(one, other, most): &(usize, usize, Vec<u64>)| {
                let (slow, fast) = (certain[*one], certain[*other]);
                most.get(slow as usize).copied().unwrap_or(slow).min(fast)
            };
            let coinciding = pairs.iter().map(coincide).fold(0, u64::saturating_add);
            certain.iter().fold(0_u64, |sum, it| sum.saturating_add(*it)).saturating_sub(coinciding)
        });
        let inside = of_one.max(of_all).unwrap_or(0);
        let inside = usize::try_from(inside).unwrap_or(MOST_GAPS).min(MOST_GAPS);
        limits.resize(inside.max(limits.len()), Duration::from_ns(span - 1));
    }
    limits
}

/// Of each two sources, the slower one first: of 0, 1, 2, … activations of it in a row, how many may have one
/// release with the other.
fn coinciding(sources: &[Source]) -> Vec<(usize, usize, Vec<u64>)> {
    let mut all = Vec::new();
    for one in 0..sources.len() {
        for other in 0..one {
            let is_slower = sources[one].period >= sources[other].period;
            let (slow, fast) = if is_slower { (one, other) } else { (other, one) };
            all.push((slow, fast, most_coinciding(&sources[slow], &sources[fast])));
        }
    }
    all
}

fn most_coinciding(slow: &Source, fast: &Source) -> Vec<u64> {
    let ratio = slow.period / fast.period.max(1) + 2;
    let phases: Vec<u64> = (0..=MOST_GAPS as u64)
        .map(|number| (u128::from(number) * u128::from(slow.period) % u128::from(fast.period)) as u64)
        .collect();
    let of = |activations: usize| {
        // Rounded periods shift the phases.
        let width = slow.jitter.saturating_add(fast.jitter).saturating_add(activations as u64 * ratio);
        let near = |from: u64| {
            let after = |phase: u64| u128::from(phase) + u128::from(fast.period) - u128::from(from);
            let is_near = |phase: &&u64| after(**phase) % u128::from(fast.period) <= u128::from(width);
            phases[..activations].iter().filter(is_near).count() as u64
        };
        phases[..activations].iter().map(|from| near(*from)).max().unwrap_or(0)
    };
    (0..phases.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_model::Burst;

    const MS: u64 = 1_000_000;

    fn mode(sources: &[(u64, u64)], skips: u64) -> ContractMode {
        let source = |(period, jitter): &(u64, u64)| ContractSource {
            period: Duration::from_ns(*period),
            jitter: Some(Duration::from_ns(*jitter)),
            burst: None,
        };
        ContractMode { sources: sources.iter().map(source).collect(), skips: Some(skips) }
    }

    fn ms(spans: &[Duration]) -> Vec<u64> {
        spans[..6].iter().map(|span| (span.ns() + MS / 2) / MS).collect()
    }

    #[test]
    fn one_period() {
        let spans = Spans::of(&mode(&[(10 * MS, 2 * MS)], 0));
        assert_eq!(
            (ms(&spans.least), ms(&spans.most)),
            (vec![8, 18, 28, 38, 48, 58], vec![12, 22, 32, 42, 52, 62])
        );
        assert_eq!((spans.least.len(), spans.most.len()), (MOST_GAPS, MOST_GAPS));
        assert_eq!(ms(&Spans::of(&mode(&[(10 * MS, 2 * MS)], 2)).most), [32, 62, 92, 122, 152, 182]);
        assert_eq!(ms(&Spans::of(&mode(&[(10 * MS, 12 * MS)], 0)).most), [32, 52, 72, 92, 112, 132]);
    }

    /// 10 and 25 ms have one release in common every 50 ms, at most: in 50 ms there are five or more
    /// releases, and eight or fewer.
    #[test]
    fn two_periods() {
        let spans = Spans::of(&mode(&[(10 * MS, 0), (25 * MS, 0)], 0));
        assert_eq!(ms(&spans.least), [0, 10, 20, 25, 30, 40]);
        assert_eq!(ms(&spans.most), [10, 20, 30, 40, 50, 50]);
    }

    #[test]
    fn bursts() {
        let burst = Some(Burst { jobs: 3, within_ns: Duration::from_ns(MS) });
        let mut mode = mode(&[(20 * MS, 0)], 0);
        mode.sources[0].burst = burst;
        let spans = Spans::of(&mode);
        assert_eq!(ms(&spans.least), [0, 0, 19, 19, 19, 39]);
        assert_eq!(ms(&spans.most), [20, 40, 60, 80, 100, 120]);
    }

    #[test]
    fn a_change_of_mode_has_any_length() {
        let modes = [Spans::of(&mode(&[(5 * MS, 0)], 0)), Spans::of(&mode(&[(8 * MS, 0)], 0))];
        // Two releases of which each belongs to another mode. After that, the mode goes on for a while.
        let spans = least_of_any(&modes);
        assert_eq!(ms(&spans), [0, 5, 10, 15, 20, 25]);
        assert_eq!(ms(&spans[9..]), [45, 45, 50, 55, 60, 65]);
        assert_eq!(ms(&least_of_any(&modes[..1])), [5, 10, 15, 20, 25, 30]);
        assert!(least_of_any(&[]).is_empty());
    }

    /// Source, skipped activations at each, and how late its releases are, as shares of what is allowed.
    type Simulated = (u64, f64, f64, Option<(u64, f64)>, Vec<(u64, f64, f64)>);

    fn simulated() -> impl Strategy<Value = Simulated> {
        let activations = prop::collection::vec((0..3_u64, 0.0..1.0_f64, 0.0..1.0_f64), 40..90);
        let burst = prop::option::of((2..5_u64, 0.0..0.4_f64));
        (100..3_000_u64, 0.0..0.7_f64, 0.0..1.0_f64, burst, activations)
    }

    fn share(of: u64, share: f64) -> u64 {
        (of as f64 * share) as u64
    }

    proptest! {
        /// Modes of ten releases or more, one right after another, and a part of one at either end.
        #[test]
        fn modes_one_after_another_keep_to_the_limits(
            (one, other) in ((100..3_000_u64, 0.0..0.9_f64), (100..3_000_u64, 0.0..0.9_f64)),
            runs in prop::collection::vec(prop::collection::vec(0.0..1.0_f64, 10..25), 2..8),
            (first, last) in (1..10_usize, 1..10_usize),
        ) {
            let sources = [one, other].map(|(period, jitter)| (period, share(period, jitter)));
            let modes = sources.map(|source| Spans::of(&mode(&[source], 0)));
            let (mut releases, mut begin) = (Vec::new(), 10_000);
            for (number, late) in runs.iter().enumerate() {
                let (period, jitter) = sources[number % 2];
                let count = match number {
                    0 => first,
                    _ if number + 1 == runs.len() => last,
                    _ => late.len(),
                };
                let after = |(job, late): (u64, &f64)| job * period + share(jitter, *late);
                let run: Vec<u64> = (0_u64..).zip(&late[..count]).map(after).collect();
                releases.extend(run.iter().map(|at| begin + at - run[0]));
                begin = releases[releases.len() - 1];
            }
            releases.sort_unstable();
            let limits = least_of_any(&modes);
            for (gaps, limit) in (1..).zip(&limits) {
                let closest = releases.windows(gaps + 1).map(|all| all[gaps] - all[0]).min();
                prop_assert!(closest.is_none_or(|it| it >= limit.ns()), "{gaps}: {closest:?}, {limit}");
            }
        }

        /// Whatever the phases are, however late the releases: they keep to the limits, with and without
        /// skips, and with one job for two activations.
        #[test]
        fn sources_keep_to_their_limits(
            all in prop::collection::vec(simulated(), 1..4),
            may_skip in 0..3_u64,
            coincide in any::<bool>(),
        ) {
            let mut mode = ContractMode { sources: Vec::new(), skips: Some(may_skip) };
            let (mut until, mut releases) = (u64::MAX, Vec::new());
            for (place, (period, jitter, phase, burst, activations)) in all.iter().enumerate() {
                let jitter = share(*period, *jitter);
                // A burst is over before the next one.
                let most_within = period.saturating_sub(jitter + 1);
                let burst = burst.map(|(jobs, within)| Burst {
                    jobs,
                    within_ns: Duration::from_ns(share(*period, within).min(most_within)),
                });
                mode.sources.push(ContractSource {
                    period: Duration::from_ns(*period),
                    jitter: Some(Duration::from_ns(jitter)),
                    burst,
                });
                let mut at = 10_000 + share(*period, *phase);
                for (skips, late, more) in activations {
                    let first = at + share(jitter, *late);
                    releases.push((first, place, at, at + jitter));
                    if let Some(Burst { jobs, within_ns }) = burst {
                        let jobs = (1..jobs).map(|job| {
                            let after = share(within_ns.ns(), more * job as f64 / jobs as f64);
                            (first + after, usize::MAX, 0, 0)
                        });
                        releases.extend(jobs);
                    }
                    at += period * (1 + (*skips).min(may_skip));
                }
                until = until.min(at);
            }
            releases.sort_unstable();
            releases.retain(|(at, ..)| *at < until && *at >= 13_000);
            if coincide {
                // A release that another source's activation has, too.
                let mut one_of_each: Vec<(u64, usize, u64, u64)> = Vec::new();
                for it in releases {
                    let serves = |last: &&(u64, usize, u64, u64)| {
                        last.1 != it.1 && it.1 != usize::MAX && last.1 != usize::MAX && it.2 <= last.0
                    };
                    // Only one that no third source has.
                    match one_of_each.last().filter(serves) {
                        Some(last) if last.3 > 0 => {
                            let place = one_of_each.len() - 1;
                            one_of_each[place].1 = usize::MAX;
                        }
                        _ => one_of_each.push(it),
                    }
                }
                releases = one_of_each;
            }
            let spans = Spans::of(&mode);
            for (first, from) in releases.iter().enumerate() {
                for (gaps, to) in releases[first + 1..].iter().take(MOST_GAPS).enumerate() {
                    let span = Duration::from_ns(to.0 - from.0);
                    prop_assert!(span >= spans.least[gaps], "{gaps}: {span} {:?}", spans.least[gaps]);
                    prop_assert!(span <= spans.most[gaps], "{gaps}: {span} {:?}", spans.most[gaps]);
                }
            }
        }
    }
}
