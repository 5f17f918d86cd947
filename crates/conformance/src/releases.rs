//! Whether the releases of a thread keep to a period: one job after the other, in constant memory.
//!
//! What is agreed on: there are activations a₁ < a₂ < …, each a whole number of periods after the one before,
//! and job i is released between aᵢ and aᵢ + jitter. Where the phase lies is not agreed on. All that needs to
//! be remembered is when the activation of the last job may have been: an interval, which each release
//! shortens. A release for which no activation is left is a violation, whatever the phase; nothing else is.
//! After one, the releases may go on as before, or a new phase may have begun: both are followed, until one
//! of them is refuted.
//!
//! A period in whole nanoseconds may be a rounded one, so that the true period is within one nanosecond of
//! it: the interval grows by that much with each activation, and the rounding never adds up.

use punctual_model::{Duration, Instant, Window};

/// What is agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub period: Duration,
    pub jitter: Duration,
    /// Activations that may be left out in a row.
    pub skips: u64,
    /// Whether each release must have an activation a whole number of periods after the one before. If not,
    /// the period only tells when the next release is due.
    pub has_grid: bool,
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

/// When the activation of the last job may have been.
type Span = (i128, i128);

/// The releases so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Releases {
    grid: Option<Span>,
    /// After a release off the grid: the grid that would begin with it. Whichever of the two the next
    /// releases fit stays, so that neither a single slip nor a new phase is a violation twice.
    other: Option<Span>,
    /// Whether the release off the grid may have been that of the next activation.
    may_have_taken_next: bool,
}

/// How a release fits a grid.
enum Fit {
    Early(i128),
    Late(i128, Span),
    /// The activation, and how many were left out before it.
    On(Span, i128),
}

impl Releases {
    /// Takes the next release.
    pub fn next(&mut self, release: Window, rule: &Rule) -> Option<Astray> {
        let latest = i128::from(release.latest().ns());
        let least = i128::from(release.earliest().ns()) - i128::from(rule.jitter.ns());
        let Some(grid) = self.grid.filter(|_| rule.has_grid) else {
            self.grid = Some((least, latest));
            return None;
        };
        let taken = i128::from(std::mem::take(&mut self.may_have_taken_next));
        let skips = i128::from(rule.skips) + taken;
        let other = self.other.take().map(|other| fit(other, least, latest, rule, skips));
        let skipped = match (fit(grid, least, latest, rule, skips), other) {
            (Fit::On(grid, left_out), Some(Fit::On(other, of_other))) => {
                (self.grid, self.other) = (Some(grid), (other != grid).then_some(other));
                left_out.min(of_other) - taken
            }
            (Fit::On(grid, left_out), _) => {
                self.grid = Some(grid);
                left_out - taken
            }
            (_, Some(Fit::On(other, left_out))) => {
                self.grid = Some(other);
                left_out - taken
            }
            (Fit::Early(since), _) => {
                // An extra release takes no activation, or the next one before its time.
                (self.other, self.may_have_taken_next) = (Some((least, latest)), true);
                return Some(Astray::Early(time(since)));
            }
            (Fit::Late(late, grid), _) => {
                (self.grid, self.other, self.may_have_taken_next) = (Some(grid), Some((least, latest)), true);
                return Some(Astray::Late(time(late)));
            }
        };
        let skipped = u64::try_from(skipped).unwrap_or(if skipped < 0 { 0 } else { u64::MAX });
        (skipped > rule.skips).then_some(Astray::Skipped(skipped))
    }

    /// The latest time that the last activation before the next release may have: with the jitter after it,
    /// that release is overdue.
    pub fn due(&self, rule: &Rule) -> Option<Instant> {
        let (_, to) = self.grid?;
        let to = self.other.map_or(to, |(_, other)| to.max(other));
        let activations = i128::from(rule.skips) + 1 + i128::from(self.may_have_taken_next);
        let due = to.saturating_add(activations.saturating_mul(i128::from(rule.period.ns()) + 1));
        Some(Instant::from_ns(u64::try_from(due.max(0)).unwrap_or(u64::MAX)))
    }
}

/// `skips` activations may be left out.
#[inline]
fn fit((from, to): Span, least: i128, latest: i128, rule: &Rule, skips: i128) -> Fit {
    let period = i128::from(rule.period.ns());
    let (shortest, longest) = ((period - 1).max(1), period + 1);
    // Divisions are slow; nearly always the release is one of the next activation.
    let most = if (shortest..2 * shortest).contains(&(latest - from)) {
        1
    } else {
        (latest - from).div_euclid(shortest)
    };
    let fewest = if least - to <= longest { 1 } else { (least - to + longest - 1).div_euclid(longest) };
    if most < 1 {
        return Fit::Early(latest - from);
    }
    if fewest > most {
        let late = least + i128::from(rule.jitter.ns()) - (to + most * longest);
        return Fit::Late(late, (from + most * shortest, to + most * longest));
    }
    // With more jitter than a period, a release may be of many activations, but not beyond those left out.
    let most = most.min(fewest.max(1 + skips));
    Fit::On((least.max(from + fewest * shortest), latest.min(to + most * longest)), fewest - 1)
}

fn time(ns: i128) -> Duration {
    Duration::from_ns(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(period: u64, jitter: u64) -> Rule {
        Rule {
            period: Duration::from_ns(period),
            jitter: Duration::from_ns(jitter),
            skips: 0,
            has_grid: true,
        }
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
        // One too late, and on with the phase as before.
        assert_eq!(
            found(&[1_000, 2_000, 3_300, 4_000, 5_000], rule(1_000, 100)),
            [None, None, Some(Astray::Late(ns(299))), None, None]
        );
        // Before its time, and on with the phase as before: none was left out.
        assert_eq!(
            found(&[1_000, 2_000, 2_700, 4_000, 5_000], rule(1_000, 100)),
            [None, None, Some(Astray::Early(ns(800))), None, None]
        );
        // Another phase from the third on.
        assert_eq!(
            found(&[1_000, 2_000, 2_700, 3_700, 4_700, 5_700], rule(1_000, 100)),
            [None, None, Some(Astray::Early(ns(800))), None, None, None]
        );
        // Late again and again.
        let late = Some(Astray::Late(ns(299)));
        assert_eq!(
            found(&[1_000, 2_000, 3_300, 4_000, 5_300, 6_000], rule(1_000, 100)),
            [None, None, late, None, late, None]
        );
    }

    #[test]
    fn a_release_is_due_a_period_after_the_last_activation() {
        let mut releases = Releases::default();
        let rule = Rule { skips: 2, ..rule(1_000, 100) };
        assert_eq!(releases.due(&rule), None);
        releases.next(Window::at(Instant::from_ns(5_000)), &rule);
        assert_eq!(releases.due(&rule), Some(Instant::from_ns(5_000 + 3 * 1_001)));
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
        /// On a grid without skips, one release that is moved is one violation, and so is a new phase.
        #[test]
        fn one_slip_is_one_violation(
            (period, jitter) in (100..5_000_u64, 0..40_u64),
            lates in prop::collection::vec(0.0..1.0_f64, 12..40),
            (which, share) in (3..8_usize, 0.0..1.0_f64),
            goes_on in any::<bool>(),
        ) {
            // Beyond the jitter, and not near the next activation, wherever in its jitter each one lies.
            let (least, most) = (2 * jitter + 20, period.saturating_sub(2 * jitter + 20));
            prop_assume!(least < most);
            let shift = least + (share * (most - least) as f64) as u64;
            let times: Vec<u64> = lates.iter().enumerate().map(|(job, late)| {
                let is_moved = if goes_on { job == which } else { job >= which };
                let late = (late * jitter as f64) as u64;
                1_000_000 + job as u64 * period + late + if is_moved { shift } else { 0 }
            }).collect();
            prop_assume!(times.is_sorted());
            let all = found(&times, rule(period, jitter));
            let astray = all.iter().filter(|it| it.is_some()).count();
            prop_assert_eq!(astray, 1, "{:?}", all);
        }

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
