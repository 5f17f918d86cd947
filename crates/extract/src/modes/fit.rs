//! Which periodic sources explain some hundred releases in a row.
//!
//! A source is looked for by the distances between releases that are close to each other: the shortest one
//! after which a release comes again and again is the period of the fastest source. Its releases are set
//! apart, and the same is done with the others.

use crate::modes::line::{self, Hit, Line, Source};

/// Most sources that are told apart, and most among fewer releases than `FEW`.
const MOST_SOURCES: usize = 3;
const MOST_OF_FEW: usize = 2;
const FEW: usize = 64;

/// How far from its line a release of a source may be, as a part of the period.
pub(super) const REACH: f64 = 0.12;

/// The least share of activations with a release, of a source; and of one that skips activations.
const REGULAR: f64 = 0.9;
const SKIPPING: f64 = 0.5;

/// Fewest releases that a fit is made of, and fewest of a source.
pub(super) const FEWEST: usize = 8;
const FEWEST_OF_SOURCE: usize = 4;

/// One in so many releases may belong to no source.
const OTHERS: usize = 50;

/// Further sources have more releases than activations of the first one have none, by this factor: else they
/// are the late releases of those.
const MORE: usize = 3;

/// A further source may seem faster than the first one by this factor.
const FASTER: f64 = 1.2;

/// If all sources may be one that is faster, one in so many activations may be without a release.
const PERFECT: usize = 100;

/// Sources that together have more than this share of the activations of a faster one are that one.
const DENSE: f64 = 0.9;

/// Distances between this many releases and as many after each are candidates for a period.
const ANCHORS: usize = 12;
const AFTER: usize = 4;

/// Candidates that are as close to each other as a hundredth, and tried.
const ALIKE: f64 = 0.01;
const TRIES: usize = 3;

/// A shorter period may share releases with other sources, if one comes where it is due by chance with at
/// most the first probability, and so many do with at most the second one. If the longer period is a multiple
/// of another source's, all come with one, or none does: then its activations must be as close to that
/// source's as those of timers that were started together, compared with how far releases are from them, and
/// with the period.
const ONE_BY_CHANCE: f64 = 0.15;
const ALL_BY_CHANCE: f64 = 1e-4;
const TOGETHER: f64 = 0.6;
const TOGETHER_AT_MOST: f64 = 0.1;

/// Activations this close, in periods, coincide even without jitter.
const CLOSE: f64 = 0.005;
const MOST_PARTS: i64 = 8;

/// Releases of a burst are closer to each other than bursts are by this factor at least, and this share of
/// all gaps, at least, is within bursts.
const APART: f64 = 3.0;
const WITHIN: f64 = 1.0 / 3.0;

/// The longest burst, as a part of the period.
const LONGEST: f64 = 0.75;

/// Fewest bursts.
const FEWEST_BURSTS: usize = 4;

/// Sources that explain releases, and the places of those that belong to none.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub sources: Vec<Source>,
    pub others: Vec<usize>,
}

impl Fit {
    fn of(source: Source) -> Fit {
        Fit { sources: vec![source], others: Vec::new() }
    }
}

/// The fewest sources that explain nearly all of these releases; times begin near zero.
pub(super) fn fit(times: &[f64]) -> Option<Fit> {
    if times.len() < FEWEST {
        return None;
    }
    regular_source(times).or_else(|| several(times)).or_else(|| other_source(times))
}

/// The same, of releases too few for several sources.
pub(super) fn fit_one(times: &[f64]) -> Option<Fit> {
    regular_source(times).or_else(|| other_source(times))
}

/// One source with bursts, or one that skips activations.
fn other_source(times: &[f64]) -> Option<Fit> {
    let is_enough = times.len() >= FEWEST;
    let source = is_enough.then(|| bursts(times).or_else(|| single(times, SKIPPING)))??;
    Some(Fit::of(source))
}

/// One source with a release for nearly each activation, and no other release.
pub(super) fn regular_source(times: &[f64]) -> Option<Fit> {
    (times.len() >= FEWEST).then(|| single(times, REGULAR).map(Fit::of))?
}

/// One source without any other release.
fn single(times: &[f64], least: f64) -> Option<Source> {
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let (shortest, longest) =
        gaps.clone().fold((f64::MAX, 0.0_f64), |(low, high), gap| (low.min(gap), high.max(gap)));
    let count = times.len() - 1;
    let span = times[count] - times[0];
    if shortest <= 0.0 {
        return None;
    }
    let usual = match longest < 1.5 * shortest {
        true => span / count as f64,
        false => {
            let mut gaps: Vec<f64> = gaps.clone().collect();
            *gaps.select_nth_unstable_by(count / 4, f64::total_cmp).1
        }
    };
    // No more than this many activations can be worth a count.
    if span / usual > 4.0 * count as f64 {
        return None;
    }
    let mut activation = 0;
    let hits = std::iter::once(0).chain(gaps.map(|gap| ((gap / usual).round() as i64).max(1)));
    let hits: Vec<Hit> = hits
        .enumerate()
        .map(|(at, advance)| {
            activation += advance;
            Hit::new(activation, at)
        })
        .collect();
    if (count as f64) < least * activation as f64 {
        return None;
    }
    let (line, spread) = line::through_middle(times, &hits)?;
    (spread <= REACH * line.period).then(|| Source::new(line, hits))
}

/// Up to three sources; if they are as fast as each other, rather bursts of one.
fn several(times: &[f64]) -> Option<Fit> {
    let mut free: Vec<usize> = (0..times.len()).collect();
    let mut sources: Vec<Source> = Vec::new();
    let most = (times.len() / OTHERS).max(1);
    let most_sources = if times.len() < FEW { MOST_OF_FEW } else { MOST_SOURCES };
    while sources.len() < most_sources {
        let source = next(times, &free, &sources)?;
        let mut taken = source.hits.iter().map(|hit| hit.first).peekable();
        let before = free.len();
        free.retain(|&at| {
            while taken.next_if(|&hit| hit < at).is_some() {}
            taken.peek() != Some(&at)
        });
        if free.len() == before {
            return None;
        }
        sources.push(source);
        // The first one is the fastest: the others cannot take more releases than it has activations.
        let activations = (sources[0].hits.len() + sources[0].missed() + 1) as f64;
        if free.len() as f64 > most as f64 + (most_sources - sources.len()) as f64 * FASTER * activations {
            return None;
        }
        if free.len() <= most {
            if sources.len() > 1 && are_doubtful(&sources) {
                return None;
            }
            let alike = |source: &Source| {
                (source.line.period - sources[0].line.period).abs() < ALIKE * source.line.period
            };
            let is_burst = sources.len() > 1 && sources.iter().all(alike);
            let burst = if is_burst { bursts(times).map(Fit::of) } else { None };
            return burst.or(Some(Fit { sources, others: free }));
        }
    }
    None
}

/// Whether the further sources may be the late releases of the first one, or all of them one that is faster
/// and skips activations.
fn are_doubtful(sources: &[Source]) -> bool {
    let own = sources[1..].iter().flat_map(|source| &source.hits).filter(|hit| !hit.is_shared).count();
    if own < FEWEST_OF_SOURCE + MORE * sources[0].missed() {
        return true;
    }
    let Some(fastest) = sources.iter().map(|source| source.line).min_by(|a, b| a.period.total_cmp(&b.period))
    else {
        return true;
    };
    let mut grids = (1..=MOST_SOURCES).map(|parts| fastest.divided(parts));
    let is_on = |grid: Line, line: Line| grid.is_part_of(line) && grid.nearest(line.at).1.abs() < REACH;
    let Some(one) = grids.find(|grid| sources.iter().all(|source| is_on(*grid, source.line))) else {
        return false;
    };
    let missed = sources.iter().map(Source::missed).sum::<usize>();
    let hits = sources.iter().map(|source| source.hits.len()).sum::<usize>();
    // A longer period reaches further: it would hide a change of phase.
    let share = sources.iter().map(|source| one.period / source.line.period).sum::<f64>();
    missed > (hits / PERFECT).max(1) || one.period < fastest.period && share > DENSE
}

/// The fastest source of the releases that belong to none yet.
fn next(times: &[f64], free: &[usize], taken: &[Source]) -> Option<Source> {
    let anchors = 0..ANCHORS.min(free.len().saturating_sub(1));
    let mut candidates: Vec<(f64, usize)> = anchors
        .flat_map(|from| {
            let until = (from + 1 + AFTER).min(free.len());
            (from + 1..until).map(move |to| (times[free[to]] - times[free[from]], from))
        })
        .filter(|(period, _)| *period > 0.0)
        .collect();
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut tried: Vec<f64> = Vec::new();
    candidates.into_iter().find_map(|(period, from)| {
        let alike = tried.iter().rev().take_while(|other| period - **other < ALIKE * period);
        if alike.count() >= TRIES {
            return None;
        }
        tried.push(period);
        let line = follow(times, free, from, period)?;
        let rough = regular(times, free, line)?;
        let source = regular(times, free, line::through_middle(times, &rough.hits)?.0)?;
        let (line, spread) = line::through_middle(times, &source.hits)?;
        let source = Source { line, ..source };
        Some(shorter(times, free, taken, &source, spread).unwrap_or(source))
    })
}

/// Follows a source from one of its releases, and learns its period on the way.
fn follow(times: &[f64], free: &[usize], from: usize, period: f64) -> Option<Line> {
    let (anchor, last) = (times[free[from]], times[*free.last()?]);
    let mut squares = line::Squares::default();
    squares.add(0.0, 0.0);
    let (mut slope, mut intercept, mut place, mut missed) = (period, 0.0, from, 0);
    for activation in 1.. {
        let seen = squares.count();
        let due = anchor + intercept + slope * activation as f64;
        // The first distances tell the period only roughly.
        let reach = if seen < 4 { 1.5 * REACH } else { REACH } * slope;
        if due > last + reach {
            break;
        }
        match nearest(times, free, &mut place, due).filter(|(at, off)| *at != from && *off <= reach) {
            Some((at, _)) => {
                squares.add(activation as f64, times[free[at]] - anchor);
                (slope, intercept) = match seen < 3 {
                    true => ((times[free[at]] - anchor) / activation as f64, 0.0),
                    false => squares.line()?,
                };
            }
            None => missed += 1,
        }
        if missed > 2 && !is_regular(squares.count(), squares.count() + missed * 2 / 3) {
            return None;
        }
    }
    let enough = squares.count() >= FEWEST_OF_SOURCE;
    let (period, intercept) = squares.line().filter(|_| enough)?;
    Some(Line { at: anchor + intercept, period })
}

/// The place of the release nearest to `due`, and how far it is; `place` only grows.
fn nearest(times: &[f64], free: &[usize], place: &mut usize, due: f64) -> Option<(usize, f64)> {
    while free.get(*place + 1).is_some_and(|&at| times[at] <= due) {
        *place += 1;
    }
    let off = |at: usize| Some((at, (times[*free.get(at)?] - due).abs()));
    let (before, after) = (off(*place), off(*place + 1));
    match (before, after) {
        (Some(one), Some(other)) if other.1 < one.1 => Some(other),
        _ => before,
    }
}

/// The releases of a line among the free ones, if it has enough.
fn regular(times: &[f64], free: &[usize], line: Line) -> Option<Source> {
    let (hits, due) = matched(times, free, line, REACH * line.period)?;
    is_regular(hits.len(), due).then(|| Source::new(line, hits))
}

/// Whether a source has a release for nearly all of its activations.
fn is_regular(hits: usize, due: usize) -> bool {
    let missed = due.saturating_sub(hits);
    hits >= FEWEST_OF_SOURCE && (missed <= 1 || missed as f64 <= (1.0 - REGULAR) * due as f64)
}

/// The nearest free release to each activation of a line, and how many activations there should be. `None` if
/// there are too few releases for a source.
fn matched(times: &[f64], free: &[usize], line: Line, reach: f64) -> Option<(Vec<Hit>, usize)> {
    let (begin, end) = (times[0], times[times.len() - 1]);
    let first = ((begin - reach - line.at) / line.period).ceil() as i64;
    let last = ((end + reach - line.at) / line.period).floor() as i64;
    if last.saturating_sub(first) as f64 > 2.0 * free.len() as f64 {
        return None;
    }
    let most_missed = ((1.0 - REGULAR) * (last - first + 1) as f64).max(1.0);
    let (mut hits, mut place, mut missed) = (Vec::with_capacity((last - first + 1).max(0) as usize), 0, 0);
    for activation in first..=last {
        let due = line.due(activation);
        let found = nearest(times, free, &mut place, due).filter(|(_, off)| *off <= reach);
        let found =
            found.map(|(at, _)| free[at]).filter(|&at| hits.last().is_none_or(|hit: &Hit| hit.first != at));
        hits.extend(found.map(|at| Hit::new(activation, at)));
        // The release of one at the edge may have been outside.
        let is_inside = due >= begin + reach && due <= end - reach;
        missed += usize::from(is_inside && found.is_none());
        if missed as f64 > most_missed {
            return None;
        }
    }
    let due = hits.len() + missed;
    Some((hits, due))
}

/// The same source with a shorter period whose other activations have no releases of their own, since they
/// come together with those of the sources before: timers of 10 and 25 ms expire together every 50 ms.
fn shorter(times: &[f64], free: &[usize], taken: &[Source], source: &Source, spread: f64) -> Option<Source> {
    let fastest = taken.iter().map(|other| other.line.period).reduce(f64::min)?;
    let span = times[times.len() - 1] - times[0];
    let reach = 2.0 * spread + CLOSE * source.line.period.min(fastest);
    let by_chance = taken.iter().map(|other| 2.0 * reach / other.line.period).sum::<f64>();
    let all: Vec<usize> = (0..times.len()).collect();
    (2..=MOST_PARTS).rev().find_map(|parts| {
        let line = Line { period: source.line.period / parts as f64, ..source.line };
        // All but a few of its activations need a release.
        if REGULAR * (span / line.period - 2.0) > times.len() as f64 {
            return None;
        }
        if taken.iter().any(|other| other.line.contains(line) || line.contains(other.line)) {
            return None;
        }
        let multiple = taken.iter().find(|other| other.line.is_part_of(source.line));
        let reach = multiple.map_or(reach, |_| 1.5 * REACH * line.period);
        let (mut hits, due) = matched(times, &all, line, reach)?;
        hits.iter_mut().for_each(|hit| hit.is_shared = free.binary_search(&hit.first).is_err());
        let shared: Vec<f64> =
            hits.iter().filter(|hit| hit.is_shared).map(|hit| line.due(hit.activation)).collect();
        let is_meant = match multiple {
            Some(other) => are_together(times, other, &shared, spread),
            None => by_chance < ONE_BY_CHANCE && by_chance.powi(shared.len() as i32) < ALL_BY_CHANCE,
        };
        (is_meant && is_regular(hits.len(), due)).then(|| Source::new(line, hits))
    })
}

/// Whether activations at these times, with releases up to `spread` away, are activations of a source, too.
fn are_together(times: &[f64], source: &Source, dues: &[f64], spread: f64) -> bool {
    let Some((_, other)) = line::through_middle(times, &source.hits) else { return false };
    let most = (TOGETHER * (spread + other) / source.line.period + CLOSE).min(TOGETHER_AT_MOST);
    dues.iter().all(|due| source.line.nearest(*due).1.abs() < most)
}

/// Bursts that begin periodically: gaps within them are much shorter than those between them.
fn bursts(times: &[f64]) -> Option<Source> {
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let fewest = (WITHIN * gaps.len() as f64).ceil() as usize;
    let most = gaps.len().checked_sub(FEWEST_BURSTS - 1)?;
    // Without a gap so long, which is quickly seen, there is no use in sorting.
    let longest = gaps.iter().copied().fold(0.0, f64::max);
    let (_, short, _) = gaps.select_nth_unstable_by(fewest.max(1) - 1, f64::total_cmp);
    if longest < APART * short.max(1.0) {
        return None;
    }
    gaps.sort_unstable_by(f64::total_cmp);
    let ratio = |at: usize| gaps[at] / gaps[at - 1].max(1.0);
    let split = (fewest.max(1)..most).max_by(|&a, &b| ratio(a).total_cmp(&ratio(b)))?;
    if ratio(split) < APART {
        return None;
    }
    let least = (gaps[split] * gaps[split - 1].max(1.0)).sqrt();
    let begins: Vec<usize> =
        (0..times.len()).filter(|&at| at == 0 || times[at] - times[at - 1] > least).collect();
    let starts: Vec<f64> = begins.iter().map(|&at| times[at]).collect();
    let mut source = single(&starts, REGULAR)?;
    let ends = begins.iter().skip(1).copied().chain([times.len()]);
    for (hit, (first, end)) in source.hits.iter_mut().zip(begins.iter().copied().zip(ends)) {
        (hit.first, hit.last) = (first, end - 1);
    }
    source.measure_bursts(times);
    (source.within < LONGEST * source.line.period).then_some(source)
}
