//! Distances of arrivals that follow one another. If all are multiples of one of them, and that is at least
//! every second one, it is the period, and it is certain which activations were skipped: however many in a
//! row, where gaps scored by their neighbours look like a longer period.

use crate::periodic::keep_slip;
use punctual_model::MAX_SLIPS;
use std::cmp::Reverse;

/// Most different distances. A task on a grid has few.
const MOST: usize = 32;

/// Of releases whose arrivals are all known. `None` before the first, and once there are too many distances
/// or an arrival is not known: most streams have no known arrivals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps(Option<Box<Arrivals>>);

#[derive(Clone, Debug)]
struct Arrivals {
    first: i64,
    first_latest: i64,
    last: i64,
    /// The least of earliest bound less arrival; at most 0.
    least: i64,
    /// The greatest of latest bound less arrival.
    greatest: i64,
    distances: Vec<Distance>,
}

#[derive(Clone, Debug)]
struct Distance {
    ns: i64,
    count: u64,
    /// Latest bounds of the first releases at this distance from the one before.
    first: Vec<i64>,
}

/// Arrivals on a grid.
pub(crate) struct Regular {
    pub period: i64,
    /// Relative to the same as the arrivals.
    pub offset: i64,
    pub jitter: i64,
    pub skipped: u64,
    /// The first slips: latest bound of the next release, and how many activations.
    pub slips: Vec<(i64, i64)>,
}

impl Steps {
    /// Begins with the first release. `arrival` is no later than `latest`, and `floor` no later than
    /// `arrival`.
    pub fn begin(&mut self, floor: i64, arrival: i64, latest: i64) {
        self.0 = Some(Box::new(Arrivals::new(floor, arrival, latest)));
    }

    /// Adds the next release.
    #[inline]
    pub fn push(&mut self, floor: i64, arrival: i64, latest: i64) {
        let Some(arrivals) = &mut self.0 else { return };
        let ns = arrival.wrapping_sub(arrivals.last);
        arrivals.last = arrival;
        arrivals.least = arrivals.least.min(floor.wrapping_sub(arrival));
        arrivals.greatest = arrivals.greatest.max(latest.wrapping_sub(arrival));
        let few = match arrivals.distances.first_mut() {
            Some(usual) if usual.ns == ns && usual.first.len() == MAX_SLIPS => {
                usual.count += 1;
                true
            }
            _ => arrivals.add(ns, 1, [latest]),
        };
        if !few {
            self.give_up();
        }
    }

    /// Adds a release whose arrival is not known.
    #[inline]
    pub fn give_up(&mut self) {
        self.0 = None;
    }

    /// Appends a piece that follows this one, whose times are moved by `later`.
    pub fn merge(&mut self, piece: &Steps, later: i64) {
        let Some(after) = &piece.0 else { return self.give_up() };
        let first = after.first + later;
        self.push(first + after.least, first, after.first_latest + later);
        let Some(own) = &mut self.0 else { return };
        let mut few = true;
        for distance in &after.distances {
            few &= own.add(distance.ns, distance.count, distance.first.iter().map(|at| at + later));
        }
        own.last = after.last + later;
        own.greatest = own.greatest.max(after.greatest);
        if !few {
            self.give_up();
        }
    }

    /// The grid, if all arrivals lie on one.
    pub fn regular(&self) -> Option<Regular> {
        let Arrivals { first, least, greatest, distances, .. } = self.0.as_deref()?;
        let steps: u64 = distances.iter().map(|distance| distance.count).sum();
        let usual = distances.iter().max_by_key(|distance| (distance.count, Reverse(distance.ns)))?;
        let period = usual.ns;
        let is_multiple = |distance: &Distance| distance.ns > 0 && distance.ns % period == 0;
        if period <= 0 || 2 * usual.count < steps || !distances.iter().all(is_multiple) {
            return None;
        }
        let mut slips = Vec::new();
        let mut skipped = 0;
        for distance in distances.iter().filter(|distance| distance.ns > period) {
            let activations = distance.ns / period - 1;
            skipped += distance.count * activations.unsigned_abs();
            distance.first.iter().for_each(|at| keep_slip(&mut slips, *at, activations));
        }
        Some(Regular { period, offset: first + least, jitter: greatest - least, skipped, slips })
    }
}

impl Arrivals {
    fn new(floor: i64, arrival: i64, latest: i64) -> Arrivals {
        Arrivals {
            first: arrival,
            first_latest: latest,
            last: arrival,
            least: floor.wrapping_sub(arrival),
            greatest: latest.wrapping_sub(arrival),
            distances: Vec::new(),
        }
    }

    /// Whether there is room for the distance.
    fn add(&mut self, ns: i64, count: u64, first: impl IntoIterator<Item = i64>) -> bool {
        let at = match self.distances.iter().position(|distance| distance.ns == ns) {
            Some(at) => at,
            None if self.distances.len() == MOST => return false,
            None => {
                self.distances.push(Distance { ns, count: 0, first: Vec::new() });
                self.distances.len() - 1
            }
        };
        let distance = &mut self.distances[at];
        distance.count += count;
        let room = MAX_SLIPS - distance.first.len();
        distance.first.extend(first.into_iter().take(room));
        true
    }
}
