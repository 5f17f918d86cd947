//! Whether the releases of a thread keep to a period: one job after the other, in constant memory.
//!
//! What is agreed on: there are activations a₁ < a₂ < …, each a whole number of periods after the one before,
//! and job i is released between aᵢ and aᵢ + jitter. Where the phase lies is not agreed on. All that needs to
//! be remembered is when the activation of the last job may have been: an interval, which each release
//! shortens. A release for which no activation is left is a violation, whatever the phase; nothing else is.
//!
//! A period in whole nanoseconds may be a rounded one, so that the true period is within one nanosecond of
//! it: the interval grows by that much with each activation, and the rounding never adds up.

use punctual_model::{Duration, Window};

/// What is agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub period: Duration,
    pub jitter: Duration,
    /// Activations that may be left out in a row.
    pub skips: u64,
}

/// How a release breaks the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Astray {
    /// It came at most so long after the activation before: less than a period.
    Early(Duration),
    /// It came at least so long after its activation: more than the jitter.
    Late(Duration),
    /// So many activations were left out, at least.
    Skipped(u64),
}

/// The releases so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Releases {
    /// When the activation of the last job may have been.
    activation: Option<(i128, i128)>,
    /// Whether the last release was an extra one.
    was_early: bool,
}

impl Releases {
    /// Takes the next release.
    pub fn next(&mut self, release: Window, rule: &Rule) -> Option<Astray> {
        let period = i128::from(rule.period.ns());
        let latest = i128::from(release.latest().ns());
        let least = i128::from(release.earliest().ns()) - i128::from(rule.jitter.ns());
        let Some((from, to)) = self.activation else {
            self.activation = Some((least, latest));
            return None;
        };
        let (shortest, longest) = ((period - 1).max(1), period + 1);
        // Divisions are slow; nearly always the release is one of the next activation.
        let most = if (shortest..2 * shortest).contains(&(latest - from)) {
            1
        } else {
            (latest - from).div_euclid(shortest)
        };
        let fewest = if least - to <= longest { 1 } else { (least - to + longest - 1).div_euclid(longest) };
        if most < 1 {
            // An extra release takes no activation. If another follows, the phase has changed.
            if self.was_early {
                self.activation = Some((least, latest));
            }
            self.was_early = !self.was_early;
            return Some(Astray::Early(time(latest - from)));
        }
        self.was_early = false;
        if fewest > most {
            self.activation = Some((least, latest));
            return Some(Astray::Late(time(least + i128::from(rule.jitter.ns()) - (to + most * longest))));
        }
        self.activation = Some((least.max(from + fewest * shortest), latest.min(to + most * longest)));
        let skipped = u64::try_from(fewest - 1).unwrap_or(u64::MAX);
        (skipped > rule.skips).then_some(Astray::Skipped(skipped))
    }
}

fn time(ns: i128) -> Duration {
    Duration::from_ns(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_model::Instant;

    fn rule(period: u64, jitter: u64) -> Rule {
        Rule { period: Duration::from_ns(period), jitter: Duration::from_ns(jitter), skips: 0 }
    }

    fn found(times: &[u64], rule: Rule) -> Vec<Option<Astray>> {
        let mut releases = Releases::default();
        times.iter().map(|at| releases.next(Window::at(Instant::from_ns(*at)), &rule)).collect()
    }

    #[test]
    fn each_kind_is_found_once() {
        let ns = Duration::from_ns;
        // One too many, and on with the phase as before.
        assert_eq!(
            found(&[1_000, 2_000, 2_500, 3_000, 4_000], rule(1_000, 100)),
            [None, None, Some(Astray::Early(ns(600))), None, None]
        );
        assert_eq!(
            found(&[1_000, 2_000, 3_300, 4_300], rule(1_000, 100)),
            [None, None, Some(Astray::Late(ns(299))), None]
        );
        assert_eq!(
            found(&[1_000, 2_000, 5_050, 6_000], rule(1_000, 100)),
            [None, None, Some(Astray::Skipped(2)), None]
        );
        // Another phase from the third on.
        let shifted = found(&[1_000, 2_000, 2_700, 3_700, 4_700, 5_700], rule(1_000, 100));
        assert!(matches!(shifted[2..4], [Some(Astray::Early(_)), Some(_)]), "{shifted:?}");
        assert_eq!(shifted[4..], [None, None]);
    }

    #[test]
    fn jitter_within_the_rule_hides_no_burst() {
        // Three within 1 ms, at a period of 10 ms with 12 ms of jitter: two may be that close, three not.
        let all = found(&[100_000_000, 100_500_000, 101_000_000], rule(10_000_000, 12_000_000));
        assert!(matches!(all[..], [None, None, Some(Astray::Early(_))]), "{all:?}");
    }

    /// A year of a period of 33,333,333 + 1/3 ns.
    #[test]
    fn a_rounded_period_does_not_add_up() {
        let rule = rule(33_333_333, 1_000);
        let mut releases = Releases::default();
        let mut at = 0_u64;
        for job in 0..2_000_000_u64 {
            // Mostly long stretches, so that a year passes in a short test.
            at += if job % 2 == 0 { 1 } else { 1_000 };
            let exact = u128::from(at) * 100_000_000 / 3;
            let late = u64::from(job % 7 == 0) * 999;
            let rule = Rule { skips: 1_000, ..rule };
            let release = Window::at(Instant::from_ns(exact as u64 + late));
            assert_eq!(releases.next(release, &rule), None, "job {job}");
        }
    }

    proptest! {
        /// Whatever the phase, true period, skips and windows: what keeps to the rule is never astray.
        #[test]
        fn only_what_is_certain_is_found(
            (period, jitter) in (2..5_000_u64, 0..9_000_u64),
            rounding in -0.5..0.5_f64,
            jobs in prop::collection::vec((1..4_u64, 0.0..1.0_f64, 0..3_000_u64, 0..3_000_u64), 1..200),
        ) {
            let mut releases = Releases::default();
            let (mut activation, mut last) = (1e6, 0_u64);
            for (gap, late, before, after) in jobs {
                activation += gap as f64 * (period as f64 + rounding);
                let release = (activation + late * (jitter as f64)) as u64;
                // Releases come in order.
                let release = release.max(last);
                last = release;
                prop_assume!(release as f64 <= activation + jitter as f64);
                let window = Window::new(
                    Instant::from_ns(release.saturating_sub(before)),
                    Instant::from_ns(release + after),
                ).expect("a window");
                // Times are truncated to whole nanoseconds.
                let rule = Rule { skips: gap - 1, ..rule(period, jitter + 1) };
                prop_assert_eq!(releases.next(window, &rule), None);
            }
        }
    }
}
