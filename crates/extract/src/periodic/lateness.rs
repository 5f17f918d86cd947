//! Percentiles of lateness: after known arrivals, else after those of the periodic model.
//!
//! That model is known only at the end, so a sample is kept of the releases without a known arrival: in each
//! stratum those whose times have the least hash. Strata are by how far a release is from the middle of its
//! neighbours, so that the few late ones have strata of their own, which are kept whole. The sample is a
//! function of the releases, whatever pieces they come in.

use crate::histogram::{Times, at_rank, rank};
use punctual_model::{Duration, Fraction, Quantiles};

/// Most releases kept of a stratum.
const MOST: usize = 64;

/// Weights of samples are in releases divided by this, rounded.
const PARTS: u64 = 1 << 16;

/// A release: its latest bound.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    latest: i64,
    /// Whether it is not sampled: its arrival is known, or it is no release.
    is_counted: bool,
}

/// The releases of one stratum with the least hashes.
#[derive(Clone, Debug)]
struct Stratum {
    count: u64,
    /// Hash and number ([`Key`]), latest bound.
    kept: Vec<(Key, i64)>,
    /// The greatest key among them, once there are [`MOST`]; else the greatest there is.
    limit: Key,
}

impl Default for Stratum {
    fn default() -> Stratum {
        Stratum { count: 0, kept: Vec::new(), limit: Key(u64::MAX) }
    }
}

/// Strata, by the number of binary digits of the distance from the middle; more than there can be count as
/// one fewer.
const STRATA: usize = 64;

/// The strata that have releases.
#[derive(Clone, Debug)]
struct Strata {
    /// The place of each in `all`, or one that is in none.
    places: [u8; STRATA],
    all: Vec<Stratum>,
}

impl Default for Strata {
    fn default() -> Strata {
        Strata { places: [u8::MAX; STRATA], all: Vec::new() }
    }
}

impl Strata {
    #[inline]
    fn get(&mut self, digits: usize) -> &mut Stratum {
        let digits = digits.min(STRATA - 1);
        if usize::from(self.places[digits]) >= self.all.len() {
            self.begin(digits);
        }
        &mut self.all[usize::from(self.places[digits])]
    }

    #[cold]
    fn begin(&mut self, digits: usize) {
        self.places[digits] = self.all.len() as u8;
        self.all.reserve_exact(1);
        self.all.push(Stratum::default());
    }

    fn merge(&mut self, later: &Strata, number: u64, y: i64) {
        for (digits, place) in later.places.iter().enumerate() {
            if let Some(theirs) = later.all.get(usize::from(*place)) {
                let mine = self.get(digits);
                mine.count += theirs.count;
                theirs.kept.iter().for_each(|(key, latest)| mine.keep(key.moved(number), latest + y));
            }
        }
    }
}

/// Binary digits of a release's number.
const NUMBER: u32 = 40;

/// A hash and the release's number, to order releases by: in few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    #[inline]
    fn new(hash: u64, number: u64) -> Key {
        Key(hash >> NUMBER << NUMBER | number)
    }

    fn number(self) -> u64 {
        self.0 & ((1 << NUMBER) - 1)
    }

    /// The same of a release that comes so many later.
    fn moved(self, by: u64) -> Key {
        Key(self.0 + by)
    }
}

impl Stratum {
    #[inline]
    fn take(&mut self, key: Key, latest: i64) {
        self.count += 1;
        if key < self.limit {
            self.keep(key, latest);
        }
    }

    #[inline(never)]
    fn keep(&mut self, key: Key, latest: i64) {
        if key >= self.limit {
            return;
        }
        if self.kept.len() < MOST {
            if self.kept.len() == self.kept.capacity() {
                // Most streams of a thread have only a few releases.
                self.kept.reserve_exact(if self.kept.is_empty() { 2 } else { MOST - self.kept.len() });
            }
            self.kept.push((key, latest));
        } else if let Some(greatest) = self.kept.iter_mut().find(|kept| kept.0 == self.limit) {
            *greatest = (key, latest);
        }
        if self.kept.len() == MOST {
            self.limit = self.kept.iter().map(|kept| kept.0).max().unwrap_or(self.limit);
        }
    }
}

/// Everything that the percentiles of lateness depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lateness {
    /// Lateness after known arrivals.
    known: Times,
    strata: Strata,
    /// Number of releases, with those that turned out to be none.
    count: u64,
    /// The first two and the last two releases (fewer if there are fewer), some of whose neighbours are not
    /// known.
    first: [Place; 2],
    last: [Place; 2],
}

/// The first release and activation of each segment.
pub(crate) type Starts = Vec<(u64, i64)>;

/// The arrivals of a periodic model, relative like the releases.
pub(crate) struct Grid {
    pub base: i128,
    pub exact: Fraction,
    pub jitter: u64,
    /// `None` if activations were skipped inside a segment.
    pub starts: Option<Starts>,
}

impl Lateness {
    /// Adds the next release.
    #[inline]
    pub fn push(&mut self, latest: i64, arrival: Option<i64>) {
        if let Some(arrival) = arrival {
            self.known.add(Duration::from_ns(latest.abs_diff(arrival)));
        }
        self.follow(Place { latest, is_counted: arrival.is_some() });
    }

    /// Adds what is no release: it counts only as a neighbour.
    #[cold]
    pub fn push_other(&mut self, latest: i64) {
        self.follow(Place { latest, is_counted: true });
    }

    #[inline]
    fn follow(&mut self, place: Place) {
        if self.count >= 2 {
            let [before, middle] = self.last;
            if !middle.is_counted {
                self.sample(before.latest, middle.latest, place.latest);
            }
        } else {
            self.first[self.count as usize] = place;
        }
        self.last = [self.last[1], place];
        self.count += 1;
    }

    /// Adds the last release, given the next one, to its stratum.
    #[inline]
    fn sample(&mut self, before: i64, middle: i64, after: i64) {
        let distance = middle.wrapping_sub(before);
        let bend = distance.wrapping_sub(after.wrapping_sub(middle));
        let stratum = (u64::BITS - bend.unsigned_abs().leading_zeros()) as usize;
        self.strata.get(stratum).take(Key::new(hash(distance, bend), self.count - 1), middle);
    }

    /// Appends a piece that follows this one, `y` later.
    pub fn merge(&mut self, later: &Lateness, y: i64) {
        let number = self.count;
        self.known.merge(&later.known);
        self.strata.merge(&later.strata, number, y);
        let moved = |place: Place| Place { latest: place.latest + y, ..place };
        for place in later.first.into_iter().take(later.count.min(2) as usize) {
            self.follow(moved(place));
        }
        if later.count > 2 {
            self.last = later.last.map(moved);
            self.count = number + later.count;
        }
    }

    /// How late releases were, in order, each value with its weight; releases without a known arrival count
    /// from that of the model. `None` if there are such releases and no model, or if its activations overlap
    /// and are not known; or of nothing.
    pub fn weighed(&self, grid: Option<&Grid>) -> Option<Weighed> {
        let ends = [(0, self.first[0]), (self.count.saturating_sub(1), self.last[1])];
        let ends = &ends[..self.count.min(2) as usize];
        let mut values: Weighed =
            self.known.values().into_iter().map(|(value, count)| (value, count * PARTS)).collect();
        if self.strata.all.is_empty() && ends.iter().all(|(_, place)| place.is_counted) {
            return (!values.is_empty()).then_some(values);
        }
        let grid = grid?;
        for stratum in &self.strata.all {
            for (key, latest) in &stratum.kept {
                let weight = u128::from(stratum.count) * u128::from(PARTS) / stratum.kept.len() as u128;
                values.push((grid.lateness(key.number(), *latest)?, weight as u64));
            }
        }
        for (number, place) in ends {
            if !place.is_counted {
                values.push((grid.lateness(*number, place.latest)?, PARTS));
            }
        }
        values.sort_unstable();
        Some(values)
    }
}

/// How late releases were, in order, and how many times [`PARTS`] were as late.
pub(crate) type Weighed = Vec<(u64, u64)>;

/// The percentiles of values with weights; `None` of nothing.
pub(crate) fn quantiles(values: &[(u64, u64)]) -> Option<Quantiles> {
    let count = values.iter().map(|(_, weight)| weight).sum();
    let quantile = |per_mille| Duration::from_ns(at_rank(values, rank(count, per_mille)));
    (!values.is_empty()).then(|| Quantiles {
        p10_ns: Some(quantile(100)),
        p25_ns: Some(quantile(250)),
        p50_ns: quantile(500),
        p90_ns: quantile(900),
        p99_ns: quantile(990),
        p999_ns: quantile(999),
    })
}

impl Grid {
    /// How long after its activation's arrival a release is; zero if before.
    fn lateness(&self, number: u64, latest: i64) -> Option<u64> {
        let (numerator, denominator) = (i128::from(self.exact.numerator), i128::from(self.exact.denominator));
        let since = i128::from(latest) - self.base;
        let activation = match &self.starts {
            Some(starts) => {
                let (release, activation) =
                    starts[starts.partition_point(|(release, _)| *release <= number).checked_sub(1)?];
                i128::from(activation) + i128::from(number - release)
            }
            None if u128::from(self.jitter) * u128::from(self.exact.denominator)
                < u128::from(self.exact.numerator) =>
            {
                (since * denominator).div_euclid(numerator)
            }
            None => return None,
        };
        let arrival = (activation * numerator).div_euclid(denominator);
        Some(u64::try_from((since - arrival).max(0)).unwrap_or(u64::MAX))
    }
}

/// Hashes differences, since those are the same in every piece.
#[inline]
fn hash(distance: i64, bend: i64) -> u64 {
    let mut hash = (distance as u64 ^ (bend as u64).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32;
    hash.wrapping_mul(0xd6e8_feb8_6659_fd93)
}
