//! The periodic grid on which a recording's jobs are placed: that of the typical model, with its slips.

use punctual_model::{Instant, LeftOut, MAX_SLIPS, Periodic, PeriodicOn, Release, Slip, Window};

/// A period, and the activation of each release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// The grid's first place.
    offset_ns: i64,
    /// Its period, as a fraction.
    pub(crate) numerator: u64,
    pub(crate) denominator: u64,
    /// The greatest lateness of what is not left out.
    pub(crate) jitter_ns: u64,
    /// That of all releases, where it is another.
    pub(crate) greatest_ns: Option<u64>,
    /// Whether the grid is that of known arrivals.
    pub(crate) on: PeriodicOn,
    pub(crate) slips: Vec<Slip>,
    /// Whether these are all.
    is_complete: bool,
    pub(crate) left_out: Vec<LeftOut>,
}

impl Grid {
    pub(crate) fn new(periodic: &Periodic) -> Grid {
        let exact = periodic.period_exact.filter(|exact| exact.denominator > 0);
        let (numerator, denominator) =
            exact.map_or((periodic.period_ns.ns(), 1), |exact| (exact.numerator, exact.denominator));
        let typical = periodic.typical.as_ref();
        let listed: u64 =
            periodic.slips.iter().fold(0, |sum, slip| sum.saturating_add(slip.activations.unsigned_abs()));
        // A model of all releases has what came before an extra one on other places.
        let is_shifted = typical.is_none() && periodic.extra > 0;
        Grid {
            offset_ns: typical.map_or(periodic.offset_ns, |typical| typical.offset_ns),
            numerator,
            denominator,
            jitter_ns: periodic.usual_jitter().ns(),
            greatest_ns: Some(periodic.jitter_ns.ns())
                .filter(|greatest| *greatest != periodic.usual_jitter().ns()),
            on: periodic.on,
            slips: if is_shifted { Vec::new() } else { periodic.slips.clone() },
            is_complete: !is_shifted
                && (periodic.slips.len() < MAX_SLIPS
                    || listed == periodic.skipped.saturating_add(periodic.extra)),
            left_out: typical.map_or_else(Vec::new, |typical| typical.left_out.clone()),
        }
    }

    /// Where release `number` belongs. Past the listed slips, it is the place of its arrival, or else the
    /// last one before its latest bound ([`Grid::truncates`]).
    pub(crate) fn place(&self, number: u64, release: &Release) -> i64 {
        let window = release.window;
        if self.is_past_slips(window) {
            let [numerator, denominator] =
                [self.numerator, self.denominator].map(|part| i128::from(part.max(1)));
            let since =
                |at: Instant| (i128::from(signed(at.ns())) - i128::from(self.offset_ns)) * denominator;
            return self.at(match self.arrival(release) {
                Some(arrival) => (2 * since(arrival) + numerator).div_euclid(2 * numerator),
                None => since(window.latest()).div_euclid(numerator),
            });
        }
        let passed = self.slips.partition_point(|slip| slip.at_ns <= window.latest());
        let slips: i128 = self.slips[..passed].iter().map(|slip| i128::from(slip.activations)).sum();
        self.at(i128::from(number) + slips)
    }

    /// Whether a release may be later than its place by whole periods, since neither slips nor its arrival
    /// are known.
    pub(crate) fn truncates(&self, release: &Release) -> bool {
        self.is_past_slips(release.window) && self.arrival(release).is_none()
    }

    fn is_past_slips(&self, window: Window) -> bool {
        !self.is_complete && self.slips.last().is_none_or(|slip| slip.at_ns <= window.latest())
    }

    fn arrival(&self, release: &Release) -> Option<Instant> {
        release.arrival.filter(|_| self.on == PeriodicOn::Arrival)
    }

    /// Whether the release of this window is one of those that the typical model leaves out.
    pub(crate) fn leaves_out(&self, window: Window) -> bool {
        self.left_out.iter().any(|release| release.at_ns == window.latest())
    }

    fn at(&self, activation: i128) -> i64 {
        let place =
            activation.saturating_mul(self.numerator.into()).div_euclid(self.denominator.max(1).into());
        i64::try_from(place.saturating_add(self.offset_ns.into())).unwrap_or(i64::MAX)
    }
}

pub(super) fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use punctual_model::Instant;

    fn at(ns: u64) -> Window {
        Window::at(Instant::from_ns(ns))
    }

    fn released(ns: u64) -> Release {
        Release { arrival: None, window: at(ns) }
    }

    #[test]
    fn slips_determine_the_activation_of_each_release() {
        let grid = Grid::new(&example::disturbed());
        assert_eq!(grid.place(499, &released(1_499_000_007)), 1_499_000_000);
        assert_eq!(grid.place(499, &released(1_500_004_000)), 1_500_000_000);
        assert_eq!(grid.place(797, &released(1_800_002_000)), 1_800_000_000);
        assert!(grid.leaves_out(at(4_030_016_000)) && !grid.leaves_out(at(4_030_016_001)));
        let grid = Grid::new(&example::extra());
        assert_eq!(
            (grid.place(500, &released(1_500_000_000)), grid.place(501, &released(1_500_400_000))),
            (1_500_000_000, 1_500_000_000)
        );
    }

    #[test]
    fn past_the_listed_slips_a_release_belongs_to_the_activation_before_it() {
        let mut many = example::disturbed();
        many.skipped = 100;
        many.slips = (0..MAX_SLIPS as u64)
            .map(|place| Slip { at_ns: Instant::from_ns(1_010_000_000 + place), activations: 1 })
            .collect();
        let grid = Grid::new(&many);
        assert_eq!(grid.place(3, &released(1_003_000_005)), 1_003_000_000);
        assert_eq!(grid.place(3, &released(1_777_000_005)), 1_777_000_000);
        assert!(!grid.truncates(&released(1_003_000_005)) && grid.truncates(&released(1_777_000_005)));
        // Five periods late by its arrival.
        many.on = PeriodicOn::Arrival;
        let grid = Grid::new(&many);
        let late = Release { arrival: Some(Instant::from_ns(1_771_999_999)), ..released(1_777_000_005) };
        assert_eq!((grid.place(3, &late), grid.truncates(&late)), (1_772_000_000, false));
    }
}
