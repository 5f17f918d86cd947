//! Cuts some hundred releases into pieces that the same sources explain.

use crate::modes::fit::{Fit, REACH, fit};
use crate::modes::line::{Line, Source};
use std::ops::Range;

/// The first releases that tell sources: as many as are needed for several, and for one.
const FIRST: [usize; 4] = [96, 64, 32, 16];
const SEVERAL: usize = 64;

/// So many of the last so many releases that nothing explains end a piece.
const FOREIGN: usize = 3;
const RECENT: usize = 8;

/// A source that has no release for so many activations has ended.
const ENDED: i64 = 4;

/// Releases in a row with the sources that explain them. Places are those in the releases looked at.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub range: Range<usize>,
    pub fit: Fit,
}

/// What is known of a source when more releases come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub line: Line,
    /// The longest burst, if there are bursts.
    pub within: f64,
}

impl Known {
    pub fn of(source: &Source) -> Known {
        Known { line: source.line, within: source.within }
    }

    /// The same with time running backwards.
    pub fn mirrored(self) -> Known {
        let line = Line { at: -self.line.at - self.within, ..self.line };
        Known { line, ..self }
    }

    /// The activation that explains a release best, and how far off the release is, in periods.
    pub fn explains(self, time: f64) -> (i64, f64) {
        let (activation, off) = self.line.nearest(time);
        let (before, _) = self.line.nearest(time - self.within);
        let rest = |activation: i64| time - self.line.due(activation);
        if self.within > 0.0 && (0.0..=self.within).contains(&rest(before)) {
            return (before, 0.0);
        }
        let late = rest(before) - self.within;
        if self.within > 0.0 && late >= 0.0 && late < off.abs() * self.line.period {
            return (before, late / self.line.period);
        }
        (activation, off.abs())
    }
}

/// One piece if the same sources explain everything, unless one or two shorter ones do with no more sources;
/// else those at the beginning and at the end.
pub(super) fn pieces(times: &[f64]) -> Vec<Piece> {
    let whole = fit(times);
    let number = whole.as_ref().map_or(usize::MAX, |fit| fit.sources.len());
    let two = if number > 1 { ends(times) } else { Vec::new() };
    let sources = two.iter().map(|piece| piece.fit.sources.len()).sum::<usize>();
    let missing = times.len() - two.iter().map(|piece| piece.range.len()).sum::<usize>();
    // Another source in between would leave no long stretch to fewer sources.
    let is_better = sources <= number && missing <= 1 || sources < number && missing * 4 < times.len();
    match whole {
        Some(fit) if !is_better => vec![trimmed(times.len(), fit)],
        _ => two,
    }
}

/// The longest pieces at the beginning and at the end.
fn ends(times: &[f64]) -> Vec<Piece> {
    let first = grown(times);
    let mirrored: Vec<f64> = times.iter().rev().map(|time| -time).collect();
    let begin = first.as_ref().map_or(0, |first| first.range.end);
    let last = grown(&mirrored).and_then(|last| {
        let from = (times.len() - last.range.end).max(begin);
        let mut fit = fit(&times[from..])?;
        fit.sources.iter_mut().flat_map(|source| &mut source.hits).for_each(|hit| {
            hit.first += from;
            hit.last += from;
        });
        fit.others.iter_mut().for_each(|other| *other += from);
        Some(Piece { range: from..times.len(), fit })
    });
    first.into_iter().chain(last).collect()
}

/// Without the releases at the edges that belong to no source: they may be the next piece's.
fn trimmed(count: usize, mut fit: Fit) -> Piece {
    let mut range = 0..count;
    while fit.others.last().is_some_and(|&at| at + 1 == range.end) {
        fit.others.pop();
        range.end -= 1;
    }
    let leading = fit.others.iter().enumerate().take_while(|(place, at)| place == *at).count();
    fit.others.drain(..leading);
    range.start = leading;
    Piece { range, fit }
}

/// The longest piece at the beginning.
fn grown(times: &[f64]) -> Option<Piece> {
    FIRST.into_iter().filter(|first| *first < times.len()).find_map(|first| {
        let found = fit(&times[..first])?;
        if found.sources.len() > 1 && first < SEVERAL {
            return None;
        }
        let known: Vec<Known> = found.sources.iter().map(Known::of).collect();
        let more = go_on(&known, times[first - 1], &times[first..]);
        let until = first + more;
        let fit = if more > 0 { fit(&times[..until])? } else { found };
        Some(trimmed(until, fit))
    })
}

/// How many releases go on as these sources do, after one at `last`.
pub(super) fn go_on(sources: &[Known], last: f64, times: &[f64]) -> usize {
    let mut latest: Vec<i64> = sources.iter().map(|source| source.explains(last).0).collect();
    let mut foreign: Vec<usize> = Vec::new();
    for (at, &time) in times.iter().enumerate() {
        for (source, latest) in sources.iter().zip(&latest) {
            if time > source.line.due(latest + ENDED) + source.within {
                let missed = source.line.due(latest + 1) - REACH * source.line.period;
                return times[..at].partition_point(|time| *time < missed);
            }
        }
        let best = (0..sources.len())
            .map(|source| (source, sources[source].explains(time)))
            .min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        match best {
            Some((source, (activation, off))) if off <= 1.5 * REACH => latest[source] = activation,
            _ => foreign.push(at),
        }
        if let [.., first, _, _] = foreign[..]
            && foreign.len() >= FOREIGN
            && at - first < RECENT
        {
            return first;
        }
    }
    // Those at the very end may be the next piece's.
    let trailing = foreign.iter().rev().enumerate().take_while(|(back, at)| times.len() - 1 - back == **at);
    times.len() - trailing.count()
}
