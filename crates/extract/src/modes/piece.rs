//! Cuts some hundred releases into pieces that the same sources explain.

use crate::modes::fit::{self, Fit, REACH};
use crate::modes::line::{self, Line, Source};
use crate::modes::query::{LEAST_JITTER, PRICE, skipping};
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

/// One piece if the same sources explain everything, unless those at the beginning and at the end explain it
/// in fewer words.
pub(super) fn pieces(times: &[f64]) -> Vec<Piece> {
    let fit = fit::fit(times);
    let is_plain =
        |fit: &Fit| matches!(&fit.sources[..], [source] if source.missed() * 8 <= source.hits.len());
    let is_plain = fit.as_ref().is_some_and(is_plain);
    let whole = fit.map(|fit| vec![trimmed(times.len(), fit)]);
    if let (Some(whole), true) = (&whole, is_plain) {
        return whole.clone();
    }
    let regular = |times: &[f64]| fit::regular_source(times);
    let any = |times: &[f64]| if times.len() < SEVERAL { fit::fit_one(times) } else { fit::fit(times) };
    let others = [ends(times, &any), ends(times, &regular)];
    let all = whole.into_iter().chain(others).map(|pieces| (length(times, &pieces), pieces));
    all.min_by(|one, other| one.0.total_cmp(&other.0)).map_or_else(Vec::new, |(_, pieces)| pieces)
}

/// What it takes to describe releases by pieces: their sources, how late each release is, and how many
/// activations are left out before it.
fn length(times: &[f64], pieces: &[Piece]) -> f64 {
    let anywhere = (times[times.len() - 1] - times[0]).ln();
    let of_source = |source: &Source| {
        let hits = source.hits.len() as f64;
        let spread = line::through_middle(times, &source.hits).map_or(source.line.period, |it| 2.0 * it.1);
        let late = spread.max(LEAST_JITTER as f64).ln();
        let skips = skipping(source.missed() as f64 / hits);
        PRICE + hits * (late + skips)
    };
    let of_piece = |piece: &Piece| {
        let Fit { sources, others } = &piece.fit;
        PRICE + sources.iter().map(of_source).sum::<f64>() + others.len() as f64 * anywhere
    };
    let outside = times.len() - pieces.iter().map(|piece| piece.range.len()).sum::<usize>();
    pieces.iter().map(of_piece).sum::<f64>() + outside as f64 * anywhere
}

/// Finds sources.
type Find<'a> = &'a dyn Fn(&[f64]) -> Option<Fit>;

/// The longest pieces at the beginning and at the end.
fn ends(times: &[f64], find: Find<'_>) -> Vec<Piece> {
    let first = grown(times, find);
    let mirrored: Vec<f64> = times.iter().rev().map(|time| -time).collect();
    let begin = first.as_ref().map_or(0, |first| first.range.end);
    let last = grown(&mirrored, find).and_then(|last| {
        let from = (times.len() - last.range.end).max(begin);
        let mut fit = find(&times[from..])?;
        if fit.sources.len() > 1 && times.len() - from < SEVERAL {
            return None;
        }
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
fn grown(times: &[f64], find: Find<'_>) -> Option<Piece> {
    FIRST.into_iter().filter(|first| *first < times.len()).find_map(|first| {
        let found = find(&times[..first])?;
        if found.sources.len() > 1 && first < SEVERAL {
            return None;
        }
        let known: Vec<Known> = found.sources.iter().map(Known::of).collect();
        let more = go_on(&known, times[first - 1], &times[first..]);
        // Releases of another period may go on, too, for a while: then fewer of them.
        let untils =
            (0..usize::BITS).map(|halved| first + (more >> halved)).take_while(|until| *until > first);
        let several = found.sources.len() > 1;
        let mut longer = untils.take(if several { 1 } else { usize::MAX });
        match longer.find_map(|until| Some(trimmed(until, find(&times[..until])?))) {
            None if several && more > 0 => None,
            longer => longer.or_else(|| Some(trimmed(first, found))),
        }
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
