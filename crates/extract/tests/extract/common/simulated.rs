//! Simulated streams of releases with known truth: a periodic task, and what can happen to it.
//!
//! A release has the index of its activation and a lateness. Events change these two and the truth with them;
//! times are computed at the end. Seeds are fixed: every machine gets the same streams.

use super::noise::{Lateness, Random};
use punctual_model::{Fraction, Instant, Release, Window};

/// Whole nanoseconds as a period.
pub fn whole(ns: u64) -> Fraction {
    Fraction { numerator: ns, denominator: 1 }
}

/// Sets that periods are drawn from, as in LiME's evaluation. (papers: LiME, Section V-A.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Periods {
    Automotive,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Periods {
    pub const ALL: [Periods; 4] =
        [Self::Automotive, Self::Milliseconds, Self::Microseconds, Self::Nanoseconds];

    /// Periods in milliseconds, with their shares of 100 tasks, from Kramer et al.
    #[rustfmt::skip]
    const KRAMER: [(u64, u64); 10] =
        [(1, 3), (2, 2), (5, 2), (10, 28), (20, 29), (50, 5), (100, 23), (200, 2), (500, 1), (1_000, 5)];

    /// In 1 ms … 1 s.
    pub fn draw(self, random: &mut Random) -> u64 {
        let grain = match self {
            Periods::Automotive => {
                let mut place = random.below(100);
                let found = Self::KRAMER.iter().find(|(_, share)| match place.checked_sub(*share) {
                    Some(rest) => {
                        place = rest;
                        false
                    }
                    None => true,
                });
                return found.map_or(10, |(ms, _)| *ms) * 1_000_000;
            }
            Periods::Milliseconds => 1_000_000,
            Periods::Microseconds => 1_000,
            Periods::Nanoseconds => 1,
        };
        (random.log_uniform(1e6, 1e9) as u64 / grain).max(1_000_000 / grain) * grain
    }
}

/// A stream of releases with its truth.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// `None` if it is not periodic.
    pub period: Option<Fraction>,
    pub skipped: u64,
    pub extra: u64,
    /// Releases before their arrival.
    pub early: u64,
    /// Whether arrivals are known, as for sleeps until a time.
    pub arrivals_known: bool,
    begin: i64,
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    /// Index of the activation.
    index: u64,
    late: i64,
    /// Width of the window.
    width: i64,
}

impl Simulated {
    pub fn periodic(period: Fraction, late: impl IntoIterator<Item = u64>) -> Simulated {
        let point = |(index, late)| Point { index, late: late as i64, width: 0 };
        Simulated {
            period: Some(period),
            skipped: 0,
            extra: 0,
            early: 0,
            arrivals_known: false,
            begin: 5_000_000_000,
            points: (0..).zip(late).map(point).collect(),
        }
    }

    /// Releases at these times, with no period.
    pub fn sporadic(times: impl IntoIterator<Item = u64>) -> Simulated {
        let mut stream = Simulated::periodic(whole(0), times);
        stream.period = None;
        stream
    }

    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// The period in whole nanoseconds, rounded down.
    fn period_ns(&self) -> i64 {
        self.period.map_or(0, |period| (period.numerator / period.denominator) as i64)
    }

    fn due(&self, place: usize) -> i64 {
        let period = self.period.map_or((0, 1), |period| (period.numerator, period.denominator));
        let after = u128::from(self.points[place].index) * u128::from(period.0) / u128::from(period.1);
        self.begin + after as i64
    }

    fn at(&self, place: usize) -> i64 {
        self.due(place) + self.points[place].late
    }

    /// Places that are `apart` or more from one another and from both ends.
    pub fn places(&self, count: usize, apart: usize, random: &mut Random) -> Vec<usize> {
        let free = self.len() - (count + 1) * apart;
        let mut gaps: Vec<usize> = (0..count).map(|_| random.below(free as u64) as usize).collect();
        gaps.sort_unstable();
        gaps.iter().enumerate().map(|(number, gap)| gap + (number + 1) * apart).collect()
    }

    /// Leaves out some activations before the release at `place`.
    pub fn skip(&mut self, place: usize, activations: u64) {
        self.points[place..].iter_mut().for_each(|point| point.index += activations);
        self.skipped += activations;
    }

    /// Releases the activation at `place` once more, a third of a period later.
    pub fn repeat(&mut self, place: usize) {
        let point = self.points[place];
        self.points.insert(place + 1, Point { late: point.late + self.period_ns() / 3, ..point });
        self.extra += 1;
    }

    /// The machine stalls at the release at `place`; missed releases follow one by one.
    pub fn stall(&mut self, place: usize, ns: i64) {
        self.hold(place, self.due(place) + ns);
    }

    /// The machine stalls when the release at `place` is due; what was due in the meantime has one release.
    pub fn merge(&mut self, place: usize, ns: i64) {
        let until = self.at(place) + ns;
        let merged = (place + 1..self.len()).take_while(|next| self.due(*next) <= until).count();
        self.points[place].index = self.points[place + merged].index;
        self.points.drain(place + 1..place + 1 + merged);
        self.points[place].late = until - self.due(place);
        self.skipped += merged as u64;
    }

    /// Nothing is released before `until`, from `place` on.
    fn hold(&mut self, place: usize, until: i64) {
        let step = self.period_ns() / 20;
        for (number, place) in (place..self.len()).enumerate() {
            let least = until + number as i64 * step - self.due(place);
            if self.points[place].late >= least {
                break;
            }
            self.points[place].late = least;
        }
    }

    /// A signal ends the sleep before the release at `place`, and the thread stops for `ns`.
    pub fn stop(&mut self, place: usize, early_ns: i64, ns: i64) {
        self.points[place].late = -early_ns;
        self.early += 1;
        self.hold(place + 1, self.at(place) + ns);
    }

    /// Makes each release a window: back to where another thread, with its own period, began to run, but at
    /// most a quarter of this period, and not past the release before.
    pub fn hide(&mut self, other_period_ns: i64, phase_ns: i64) {
        let most = self.period_ns() / 4;
        for place in 0..self.len() {
            let at = self.at(place);
            let before = if place == 0 { 0 } else { self.at(place - 1) };
            let ran = (at + phase_ns).rem_euclid(other_period_ns).clamp(1, most);
            self.points[place].width = ran.min(at - before).max(0);
        }
    }

    /// Makes the release at `place` a window that reaches back to the release before.
    pub fn hide_one(&mut self, place: usize) {
        let before = if place == 0 { self.begin } else { self.at(place - 1) };
        self.points[place].width = (self.at(place) - before).max(0);
    }

    pub fn releases(&self) -> Vec<Release> {
        let instant = |ns: i64| Instant::from_ns(ns as u64);
        let release = |place: usize| {
            let at = self.at(place);
            let earliest = instant(at - self.points[place].width);
            let window = Window::new(earliest, instant(at)).unwrap_or(Window::at(instant(at)));
            Release { arrival: self.arrivals_known.then(|| instant(self.due(place))), window }
        };
        (0..self.len()).map(release).collect()
    }

    /// The least jitter of the true period with the true indices, in whole nanoseconds. `None` if indices do
    /// not increase: no sound model can have those.
    pub fn true_jitter(&self) -> Option<u64> {
        let period = self.period.filter(|_| self.extra == 0)?;
        let (rise, scale) = (i128::from(period.numerator), i128::from(period.denominator));
        let index = |place: usize| i128::from(self.points[place].index);
        let above = |place: usize, at: i64| i128::from(at) * scale - rise * index(place);
        let width = |place: usize| self.points[place].width;
        let bottom = (0..self.len()).map(|place| above(place, self.at(place) - width(place))).min()?;
        let top = (0..self.len()).map(|place| above(place, self.at(place))).max()?;
        u64::try_from(-(-top).div_euclid(scale) - bottom.div_euclid(scale)).ok()
    }
}

/// Latenesses of this shape, `1 / divisor` as great as [`Lateness`] has them.
pub fn lateness(shape: Lateness, divisor: u64, count: u64, random: &mut Random) -> Vec<u64> {
    (0..count).map(|_| shape.ns(random) / divisor).collect()
}
