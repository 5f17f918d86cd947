//! Assignments of runs to two configurations, and in what share of them chance does what was observed.
//!
//! Where nothing differs, every assignment of the runs is equally likely, so the share is a probability. It
//! needs no model of how figures depend on each other. (Westfall, Young: Resampling-Based Multiple Testing,
//! 1993.)

use super::range::RUNS_FOR_SPREAD;

/// Up to so many assignments all are tried; of more, so many are drawn.
const MOST_ASSIGNMENTS: usize = 2_000;

/// The assignments that are tried, as whether each run is one of the first configuration. The observed one
/// comes first.
pub(super) struct Assignments(Vec<Vec<bool>>);

impl Assignments {
    /// Of `runs` runs, of which the first `size` are those of the first configuration.
    pub(super) fn new(runs: usize, size: usize) -> Assignments {
        Assignments(assignments(runs, size))
    }

    pub(super) fn observed(&self) -> &[bool] {
        &self.0[0]
    }

    /// In what share of them a statistic is at least as great as each of these values.
    pub(super) fn shares(&self, values: &[f64], statistic: impl Fn(&[bool]) -> f64) -> Vec<f64> {
        let found: Vec<f64> = self.0.iter().map(|is_first| statistic(is_first)).collect();
        let reached = |value: &f64| found.iter().filter(|found| *found >= value).count();
        values.iter().map(|value| reached(value) as f64 / found.len() as f64).collect()
    }

    /// In what share of them something happens.
    pub(super) fn share(&self, happens: impl Fn(&[bool]) -> bool) -> f64 {
        let found = self.0.iter().filter(|is_first| happens(is_first)).count();
        found as f64 / self.0.len() as f64
    }
}

/// A figure's values over the runs of one side.
struct Side {
    least: u64,
    greatest: u64,
    runs: usize,
}

/// Those of the first configuration, then of the other; none if either has too few to know its spread.
fn sides(figure: &[Option<u64>], is_first: &[bool]) -> Option<[Side; 2]> {
    let mut sides = [(); 2].map(|()| Side { least: u64::MAX, greatest: 0, runs: 0 });
    for (value, is_first) in figure.iter().zip(is_first) {
        let Some(value) = *value else { continue };
        let side = &mut sides[usize::from(!is_first)];
        (side.least, side.greatest) = (side.least.min(value), side.greatest.max(value));
        side.runs += 1;
    }
    sides.iter().all(|side| side.runs >= RUNS_FOR_SPREAD).then_some(sides)
}

/// Whether all values of the other are above (or below) those of the first, as `Range::is_apart` has it.
pub(super) fn is_more(figure: &[Option<u64>], is_first: &[bool]) -> Option<bool> {
    let [first, other] = sides(figure, is_first)?;
    match (first.greatest < other.least, other.greatest < first.least) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// How far the values of both are apart, as a factor of at least 1; zero where they overlap.
pub(super) fn gap(figure: &[Option<u64>], is_first: &[bool]) -> f64 {
    let Some([first, other]) = sides(figure, is_first) else { return 0.0 };
    let (lower, upper) = if first.least < other.least { (first, other) } else { (other, first) };
    match lower.greatest < upper.least {
        true => upper.least as f64 / lower.greatest.max(1) as f64,
        false => 0.0,
    }
}

/// Which side has something in all of its runs, where the other has it in none: whether it is the first.
pub(super) fn one_side(is_there: &[bool], is_first: &[bool]) -> Option<bool> {
    let runs = is_first.iter().filter(|is_first| **is_first).count();
    if runs.min(is_first.len() - runs) < RUNS_FOR_SPREAD {
        return None;
    }
    let mut pairs = is_there.iter().zip(is_first);
    let is_in_first = is_there.first()? == is_first.first()?;
    pairs.all(|(is_there, is_first)| (is_there == is_first) == is_in_first).then_some(is_in_first)
}

/// Assignments of runs to the first configuration, the observed one among them: all, or of many a fixed
/// sample, so that the same runs have the same verdict.
fn assignments(runs: usize, size: usize) -> Vec<Vec<bool>> {
    let observed: Vec<bool> = (0..runs).map(|run| run < size).collect();
    let mut found = vec![observed.clone()];
    let mut next = observed.clone();
    while found.len() <= MOST_ASSIGNMENTS && previous_permutation(&mut next) {
        found.push(next.clone());
    }
    if found.len() <= MOST_ASSIGNMENTS {
        return found;
    }
    found.truncate(1);
    // splitmix64 (Steele, Lea, Flood: OOPSLA 2014)
    let mut state = 0_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % below as u64) as usize
    };
    while found.len() < MOST_ASSIGNMENTS {
        let mut shuffled = observed.clone();
        (1..runs).rev().for_each(|place| shuffled.swap(place, random(place + 1)));
        found.push(shuffled);
    }
    found
}

/// The next one in descending order; false if there is none.
fn previous_permutation(places: &mut [bool]) -> bool {
    let Some(pivot) = places.windows(2).rposition(|pair| pair[0] && !pair[1]) else { return false };
    let set = places[pivot + 1..].iter().filter(|place| **place).count();
    places[pivot] = false;
    let rest = &mut places[pivot + 1..];
    rest.iter_mut().enumerate().for_each(|(index, place)| *place = index <= set);
    true
}
