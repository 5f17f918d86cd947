//! A mode: a span of time in which the same sources explain the releases.

use crate::hull::{self, Point};
use crate::modes::fit::REACH;
use crate::modes::line::{Hit, Line, Source};
use crate::modes::piece::{Known, Piece, go_on};
use crate::modes::plain::Plain;
use crate::modes::query::LEAST_JITTER;
use crate::modes::releases::{Entry, Row};

/// Sources of two pieces are the same if the period differs by this share at most, and the phase by this
/// share of the period.
pub(super) const SAME_PERIOD: f64 = 0.02;
pub(super) const SAME_PHASE: f64 = 2.0 * REACH;

/// Most digits of a rounded period.
pub(super) const MOST_DIGITS: u32 = 9;

/// Most releases of a mode that belong to no source, before it is given up.
const MOST_OTHERS: usize = 64;

/// The sources of a span of time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mode {
    pub first: Entry,
    pub last: Entry,
    pub releases: u64,
    pub sources: Vec<Track>,
    /// All releases, as long as nothing was joined.
    pub all: Vec<Entry>,
}

/// A source in a mode.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Track {
    /// The lowest floors, and the highest latest bounds, mirrored.
    pub lower: Vec<Point>,
    pub upper: Vec<Point>,
    /// Releases that are far from the others.
    pub others: Vec<Far>,
    /// Releases in excess of one per activation.
    pub extra: u64,
    /// The first and the last activation.
    pub first: i64,
    pub last: i64,
    /// Activations with a release.
    pub hits: u64,
    /// Most releases of an activation, and the longest time from the first to the last one.
    pub jobs: usize,
    pub within: i64,
    /// Releases of the first and of the last activation.
    at_first: usize,
    at_last: usize,
    /// How far, at most, known arrivals are from their line, or its pieces from each other.
    off: i64,
    /// Where it began, and where it is now.
    begin: Anchor,
    end: Anchor,
}

/// A release that is not near its line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Far {
    pub activation: i64,
    pub floor: i64,
    pub latest: i64,
}

/// A line found in some hundred releases; times are relative to `origin`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Anchor {
    pub origin: i64,
    pub line: Line,
    /// What is to be added to the line's activations.
    pub shift: i64,
    /// The longest burst there.
    pub within: f64,
}

/// From a line to that of the same source later.
#[derive(Clone, Copy, Debug)]
struct Shift {
    activations: i64,
    /// How far they are from each other, in periods.
    off: f64,
}

impl Anchor {
    fn time(&self, at: i64) -> f64 {
        at.wrapping_sub(self.origin) as f64
    }

    /// By how much the activations of the same source later have to be shifted, and how far off they are.
    fn phase(&self, later: Anchor) -> Option<Shift> {
        let (mine, other) = (self.line.period, later.line.period);
        let start = later.origin.wrapping_add(later.line.due(-later.shift) as i64);
        let (activation, off) = self.nearest(start);
        let is_same = (mine - other).abs() <= SAME_PERIOD * mine && off.abs() <= SAME_PHASE;
        is_same.then_some(Shift { activations: activation, off: off.abs() })
    }

    fn nearest(&self, at: i64) -> (i64, f64) {
        let (activation, off) = self.line.nearest(self.time(at));
        (activation.saturating_add(self.shift), off)
    }

    fn known(&self, origin: i64) -> Known {
        let at = self.line.at + self.origin.wrapping_sub(origin) as f64;
        Known { line: Line { at, ..self.line }, within: self.within }
    }

    fn moved(self, by: i64) -> Anchor {
        Anchor { shift: self.shift + by, ..self }
    }
}

impl Mode {
    pub fn of_plain(plain: &Plain, row: Row<'_>) -> Mode {
        let later = plain.later();
        let source = Track {
            lower: later.lower.to_vec(),
            upper: later.upper.to_vec(),
            others: Vec::new(),
            extra: 0,
            first: 0,
            last: later.last,
            hits: later.hits,
            jobs: 1,
            within: 0,
            at_first: 1,
            at_last: 1,
            off: later.off,
            begin: later.begin,
            end: later.end,
        };
        let (first, last, releases) = (plain.first, plain.last, later.hits);
        Mode { first, last, releases, sources: vec![source], all: row.to_vec() }
    }

    /// Takes a plain mode that follows, if the only source explains it, too.
    pub fn join_plain(&mut self, plain: &Plain) -> bool {
        let ([source], later) = (&mut self.sources[..], plain.later()) else { return false };
        let Some(shift) = source.phase(later.begin, 1) else { return false };
        source.append(&later, shift);
        self.last = plain.last;
        self.releases += later.hits;
        self.all = Vec::new();
        true
    }

    /// The mode of a piece of these releases, whose times are relative to `origin`.
    pub fn new(entries: &[Entry], origin: i64, piece: &Piece) -> Mode {
        let inside = &entries[piece.range.clone()];
        let mut mode = Mode {
            first: inside[0],
            last: inside[inside.len() - 1],
            releases: inside.len() as u64,
            sources: Vec::with_capacity(piece.fit.sources.len()),
            all: inside.to_vec(),
        };
        mode.sources.extend(piece.fit.sources.iter().map(|source| Track::new(entries, origin, source)));
        mode.sources.sort_by(|a, b| a.end.line.period.total_cmp(&b.end.line.period));
        for &at in &piece.fit.others {
            mode.take_far(&entries[at]);
        }
        mode
    }

    /// A release that belongs to no source counts as one too many of the fastest: sources are in order of
    /// period.
    fn take_far(&mut self, entry: &Entry) {
        if let Some(fastest) = self.sources.first_mut() {
            let (nearest, off) = fastest.end.nearest(entry.evidence);
            let activation = if off < 0.0 { nearest - 1 } else { nearest };
            if activation < fastest.first {
                (fastest.first, fastest.at_first) = (activation, 1);
            } else if activation > fastest.last {
                (fastest.last, fastest.at_last) = (activation, 1);
            } else {
                fastest.extra += 1;
            }
            fastest.others.push(Far { activation, floor: entry.floor, latest: entry.latest });
        }
    }

    /// Takes the mode that follows, and what is between, if the same sources explain both.
    pub fn join(&mut self, between: &[Entry], later: &Mode) -> bool {
        let Some(shifts) = self.shifts(later) else { return false };
        if !self.goes_on(between) {
            return false;
        }
        self.absorb(between);
        for (source, (mine, shift)) in later.sources.iter().zip(shifts) {
            self.sources[mine].append(&source.later(), shift);
        }
        self.last = later.last;
        self.releases += later.releases;
        self.all = Vec::new();
        true
    }

    /// For each source of a later mode the one that goes on in it, and by how much its activations shift.
    fn shifts(&self, later: &Mode) -> Option<Vec<(usize, Shift)>> {
        if self.sources.len() != later.sources.len() {
            return None;
        }
        let mut free: Vec<usize> = (0..self.sources.len()).collect();
        let mut found = Vec::with_capacity(free.len());
        for source in &later.sources {
            let (place, shift) = free
                .iter()
                .enumerate()
                .filter_map(|(place, &mine)| {
                    Some((place, self.sources[mine].phase(source.begin, source.jobs)?))
                })
                .min_by(|a, b| a.1.off.total_cmp(&b.1.off))?;
            found.push((free.remove(place), shift));
        }
        Some(found)
    }

    /// Whether nearly all of the next releases go on as this mode does.
    pub fn goes_on(&self, next: &[Entry]) -> bool {
        next.len() <= RECENT_OTHERS || self.going_on(next) + RECENT_OTHERS >= next.len()
    }

    /// The same, looking backwards.
    pub fn goes_back(&self, before: &[Entry]) -> bool {
        before.len() <= RECENT_OTHERS || self.going_back(before) + RECENT_OTHERS >= before.len()
    }

    /// How many of the next releases go on as this mode does.
    pub fn going_on(&self, next: &[Entry]) -> usize {
        let Some(first) = self.sources.first() else { return 0 };
        let origin = first.end.origin;
        let known: Vec<Known> = self.sources.iter().map(|source| source.end.known(origin)).collect();
        let times: Vec<f64> = next.iter().map(|entry| entry.evidence.wrapping_sub(origin) as f64).collect();
        go_on(&known, self.last.evidence.wrapping_sub(origin) as f64, &times)
    }

    /// How many of the releases before go on as this mode does, looking backwards.
    pub fn going_back(&self, before: &[Entry]) -> usize {
        let Some(first) = self.sources.first() else { return 0 };
        let origin = first.begin.origin;
        let known: Vec<Known> =
            self.sources.iter().map(|source| source.begin.known(origin).mirrored()).collect();
        let mirrored = |at: i64| origin.wrapping_sub(at) as f64;
        let times: Vec<f64> = before.iter().rev().map(|entry| mirrored(entry.evidence)).collect();
        go_on(&known, mirrored(self.first.evidence), &times)
    }

    /// Takes the releases that follow; those that belong to no source are far from one.
    pub fn absorb(&mut self, next: &[Entry]) {
        for entry in next {
            self.take(entry, |track| track.end);
            self.last = *entry;
        }
        if !self.all.is_empty() {
            self.all.extend(next);
        }
    }

    /// The same of the releases before.
    pub fn absorb_before(&mut self, before: &[Entry]) {
        for entry in before.iter().rev() {
            self.take(entry, |track| track.begin);
            self.first = *entry;
        }
        if !self.all.is_empty() {
            self.all.splice(0..0, before.iter().copied());
        }
    }

    fn take(&mut self, entry: &Entry, anchor: impl Fn(&Track) -> Anchor) {
        self.releases += 1;
        let near = self.sources.iter_mut().filter_map(|track| {
            let anchor = anchor(track);
            let (activation, off) = anchor.known(anchor.origin).explains(anchor.time(entry.evidence));
            let activation = activation + anchor.shift;
            let is_free = activation < track.first || activation > track.last || track.jobs > 1;
            (off <= 1.5 * REACH && is_free).then_some((off, activation, track))
        });
        match near.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((_, activation, track)) => track.add(activation, entry),
            None => self.take_far(entry),
        }
    }

    /// Whether the sources are a single one with skipped activations.
    pub fn is_thinned(&self) -> bool {
        let Some(fastest) = self.sources.first() else { return false };
        let origin = fastest.end.origin;
        let line = |track: &Track| track.end.known(origin).line;
        let span = self.last.evidence.wrapping_sub(self.first.evidence) as f64;
        let lines: Vec<Line> = self.sources.iter().map(line).collect();
        let are_alike = |two: &[Line]| (two[1].period / two[0].period - 1.0).abs() < ALIKE;
        let has_alike = lines.windows(2).any(are_alike);
        (1..=3).map(|parts| line(fastest).divided(parts)).any(|grid| {
            let share = self.releases as f64 * grid.period / span;
            let rate = lines.iter().map(|line| grid.period / line.period).sum::<f64>();
            let is_multiple = |line: &Line| grid.nearest(grid.at + line.period).1.abs() < NEARLY;
            let is_on_grid = |line: &Line| is_multiple(line) && grid.nearest(line.at).1.abs() < REACH;
            lines.len() > 1
                && (has_alike && rate >= NEARLY_ALL && lines.iter().all(is_multiple)
                    || (DENSE..=ONE).contains(&share) && lines.iter().all(is_on_grid))
        })
    }

    pub fn is_lost(&self) -> bool {
        self.sources.iter().any(|source| source.others.len() > MOST_OTHERS)
    }

    /// Whether each source explains its known arrivals to the microsecond, however late the releases were.
    pub fn is_exact(&self) -> bool {
        self.sources.iter().all(|source| source.off <= LEAST_JITTER as i64 && source.others.is_empty())
    }
}

/// Several sources are a single one with skipped activations if their periods are multiples of its period
/// (within `NEARLY`), and if the share of its activations with a release is from `DENSE` to `ONE`. If two
/// of them have nearly the same period, their phases are ignored, because disturbances shift them; the
/// share must then be `NEARLY_ALL` or more.
const DENSE: f64 = 0.8;
const NEARLY_ALL: f64 = 0.95;
const ONE: f64 = 1.05;
const NEARLY: f64 = 0.1;
const ALIKE: f64 = 0.05;

/// Most releases between two pieces of a mode that belong to no source.
const RECENT_OTHERS: usize = 4;

/// Whether the arrival is known.
fn is_known(entry: &Entry) -> bool {
    entry.evidence < entry.latest
}

/// The number with so many significant digits that is nearest.
pub(super) fn rounded(number: i64, digits: u32) -> i64 {
    let unit = 10_i64.pow(number.max(1).ilog10().saturating_sub(digits - 1));
    (number + unit / 2) / unit * unit
}

/// A track that may go on from another.
pub(super) struct Later<'a> {
    pub lower: &'a [Point],
    pub upper: &'a [Point],
    pub others: &'a [Far],
    pub extra: u64,
    pub first: i64,
    pub last: i64,
    pub hits: u64,
    pub jobs: usize,
    pub within: i64,
    pub at_last: usize,
    pub off: i64,
    pub begin: Anchor,
    pub end: Anchor,
}

impl Track {
    fn later(&self) -> Later<'_> {
        Later {
            lower: &self.lower,
            upper: &self.upper,
            others: &self.others,
            extra: self.extra,
            first: self.first,
            last: self.last,
            hits: self.hits,
            jobs: self.jobs,
            within: self.within,
            at_last: self.at_last,
            off: self.off,
            begin: self.begin,
            end: self.end,
        }
    }

    fn new(entries: &[Entry], origin: i64, source: &Source) -> Track {
        let first = source.hits.iter().find(|hit| !hit.is_shared).map_or(0, |hit| hit.activation);
        let anchor = Anchor { origin, line: source.line, shift: -first, within: source.within };
        let off = |hit: &Hit| {
            let off = anchor.time(entries[hit.first].evidence) - source.line.due(hit.activation);
            if is_known(&entries[hit.first]) { off.abs() as i64 } else { 0 }
        };
        let mut track = Track {
            lower: Vec::new(),
            upper: Vec::new(),
            others: Vec::new(),
            extra: 0,
            first: 0,
            last: source.hits.iter().rfind(|hit| !hit.is_shared).map_or(0, |hit| hit.activation - first),
            hits: source.hits.len() as u64,
            jobs: source.jobs,
            within: 0,
            at_first: source.hits.first().map_or(1, Hit::releases),
            at_last: source.hits.last().map_or(1, Hit::releases),
            off: source.hits.iter().map(off).max().unwrap_or(0),
            begin: anchor,
            end: anchor,
        };
        let slope = source.line.period as i64;
        let x = |hit: &Hit| hit.activation - first;
        if source.jobs == 1 {
            let lower = source.hits.iter().map(|hit| Point { x: x(hit), y: entries[hit.first].floor });
            let upper = source.hits.iter().map(|hit| Point { x: x(hit), y: -entries[hit.first].latest });
            track.lower = corners(lower, slope);
            track.upper = corners(upper, -slope);
            return track;
        }
        let burst = |hit: &Hit| entries[hit.first..=hit.last].iter();
        let floor = |hit: &Hit| burst(hit).map(|entry| entry.floor).min().unwrap_or_default();
        // A late release makes jitter, not a longer burst.
        let since = |hit: &Hit, entry: &Entry| entry.evidence - entries[hit.first].evidence;
        let latest = |hit: &Hit| burst(hit).map(|entry| entry.latest - since(hit, entry)).max().unwrap_or(0);
        let span = |hit: &Hit| burst(hit).map(|entry| since(hit, entry)).max();
        track.lower = corners(source.hits.iter().map(|hit| Point { x: x(hit), y: floor(hit) }), slope);
        track.upper = corners(source.hits.iter().map(|hit| Point { x: x(hit), y: -latest(hit) }), -slope);
        track.within = source.hits.iter().filter_map(span).max().unwrap_or_default();
        track
    }

    /// Whether a later track may be of the same source: from its beginning or its end, since either may be in
    /// a disturbed stretch.
    pub fn may_be(&self, later: &Track) -> bool {
        let from = [self.end, self.begin];
        let to = [later.begin, later.end];
        let same = |from: &Anchor| to.iter().any(|to| from.phase(*to).is_some());
        from.iter().any(same)
    }

    /// By how much the activations of the same source later have to be shifted, and how far off they are.
    fn phase(&self, later: Anchor, jobs: usize) -> Option<Shift> {
        self.end.phase(later).filter(|_| (self.jobs > 1) == (jobs > 1))
    }

    fn append(&mut self, later: &Later<'_>, shift: Shift) {
        let off = (shift.off * self.end.line.period) as i64;
        let shift = shift.activations;
        let moved = |point: &Point| Point { x: point.x + shift, ..*point };
        // Its first activations may be the last ones here.
        let last = self.last;
        self.extra += later.extra + last.saturating_sub(later.first + shift).saturating_add(1).max(0) as u64;
        extend(&mut self.lower, later.lower.iter().map(moved));
        extend(&mut self.upper, later.upper.iter().map(moved));
        self.others.extend(later.others.iter().map(|far| Far { activation: far.activation + shift, ..*far }));
        if later.last + shift >= last {
            (self.last, self.at_last) = (later.last + shift, later.at_last);
        }
        self.hits += later.hits;
        self.jobs = self.jobs.max(later.jobs);
        self.within = self.within.max(later.within);
        self.off = self.off.max(later.off).max(off);
        self.end = later.end.moved(shift);
    }

    /// Takes a release of an activation. A burst has what comes after the first one within its own time.
    fn add(&mut self, activation: i64, entry: &Entry) {
        let latest = if self.jobs == 1 { entry.latest } else { entry.latest - self.within };
        extend(&mut self.lower, [Point { x: activation, y: entry.floor }]);
        extend(&mut self.upper, [Point { x: activation, y: -latest }]);
        self.hits += 1;
        self.count(activation);
    }

    /// Counts one more release of an activation. How many one in the middle has is not known.
    fn count(&mut self, activation: i64) {
        match (activation - self.first, activation - self.last) {
            (_, after) if after > 0 => (self.last, self.at_last) = (activation, 1),
            (before, _) if before < 0 => (self.first, self.at_first) = (activation, 1),
            (_, 0) => self.at_last += 1,
            (0, _) => self.at_first += 1,
            _ => self.extra += 1,
        }
        self.jobs = self.jobs.max(self.at_first).max(self.at_last);
    }
}

/// The lower hull of points near a line of this slope. Relative to the line their heights are small, and the
/// hull has the same corners.
fn corners(points: impl Iterator<Item = Point> + Clone, slope: i64) -> Vec<Point> {
    const SMALL: u64 = 1 << 40;
    let mut kept: Vec<Point> = Vec::with_capacity(16);
    let mut origin = None;
    for point in points.clone() {
        let origin = *origin.get_or_insert(point);
        let (x, y) = (point.x - origin.x, point.y.wrapping_sub(origin.y));
        let height = y.wrapping_sub(slope.wrapping_mul(x));
        if x.unsigned_abs() > SMALL >> 20 || height.unsigned_abs() > SMALL {
            return hull::lower(points);
        }
        while let [.., a, b] = kept[..] {
            // Products of 20 and 41 bits.
            let (before, after) = ((b.y - a.y).wrapping_mul(x - b.x), (height - b.y).wrapping_mul(b.x - a.x));
            if before < after {
                break;
            }
            kept.pop();
        }
        kept.push(Point { x, y: height });
    }
    let Some(origin) = origin else { return kept };
    kept.iter().map(|it| Point { x: origin.x + it.x, y: origin.y + slope * it.x + it.y }).collect()
}

/// Adds points to a hull, wherever they are.
fn extend(hull: &mut Vec<Point>, points: impl IntoIterator<Item = Point>) {
    for point in points {
        if hull.last().is_none_or(|last| last.x < point.x) {
            hull::push(hull, point);
            continue;
        }
        let mut all = std::mem::take(hull);
        let place = all.partition_point(|other| (other.x, other.y) < (point.x, point.y));
        all.insert(place, point);
        all.dedup_by_key(|point| point.x);
        *hull = hull::lower(all);
    }
}
