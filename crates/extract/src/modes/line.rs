//! Lines through releases, and the releases that belong to one.

/// Activation k is due at `at + k * period`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub at: f64,
    pub period: f64,
}

/// An activation with its release, or with the first and last one of its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub activation: i64,
    pub first: usize,
    pub last: usize,
    /// The release belongs to another source, too.
    pub is_shared: bool,
}

/// A source with its releases, in order.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub line: Line,
    pub hits: Vec<Hit>,
    /// Most releases of an activation, and the longest time from the first to the last one.
    pub jobs: usize,
    pub within: f64,
}

impl Line {
    pub fn due(self, activation: i64) -> f64 {
        self.at + activation as f64 * self.period
    }

    /// The same activations and as many between them.
    pub fn divided(self, parts: usize) -> Line {
        Line { period: self.period / parts as f64, ..self }
    }

    /// The activation that is nearest to a time, and how far away that is, in periods.
    pub fn nearest(self, time: f64) -> (i64, f64) {
        let exact = (time - self.at) / self.period;
        (exact.round() as i64, exact - exact.round())
    }

    /// Whether all activations of another line are this one's, too.
    pub fn contains(self, other: Line) -> bool {
        self.is_part_of(other) && self.nearest(other.at).1.abs() < 0.05
    }

    /// Whether the period of another line is a multiple of this one's.
    pub fn is_part_of(self, other: Line) -> bool {
        let parts = other.period / self.period;
        parts.round() >= 1.0 && (parts - parts.round()).abs() < 0.01
    }
}

impl Hit {
    pub fn new(activation: i64, at: usize) -> Hit {
        Hit { activation, first: at, last: at, is_shared: false }
    }

    /// How many there are.
    pub fn releases(&self) -> usize {
        self.last - self.first + 1
    }
}

impl Source {
    pub fn new(line: Line, hits: Vec<Hit>) -> Source {
        Source { line, hits, jobs: 1, within: 0.0 }
    }

    /// Activations without a release.
    pub fn missed(&self) -> usize {
        let ends = self.hits.first().zip(self.hits.last());
        let all = ends.map_or(0, |(first, last)| last.activation - first.activation + 1);
        (all as usize).saturating_sub(self.hits.len())
    }

    pub fn measure_bursts(&mut self, times: &[f64]) {
        self.jobs = self.hits.iter().map(Hit::releases).max().unwrap_or(1);
        let spans = self.hits.iter().map(|hit| times[hit.last] - times[hit.first]);
        self.within = spans.fold(0.0, f64::max);
    }
}

/// The line of least squares, moved to the middle of its releases, and how far from it those are at most.
/// `None` for a single activation.
pub(super) fn through_middle(times: &[f64], hits: &[Hit]) -> Option<(Line, f64)> {
    let mut squares = Squares::default();
    hits.iter().for_each(|hit| squares.add(hit.activation as f64, times[hit.first]));
    let (period, at) = squares.line().filter(|(period, _)| *period > 0.0)?;
    let line = Line { at, period };
    let off = hits.iter().map(|hit| times[hit.first] - line.due(hit.activation));
    let (low, high) = off.fold((f64::MAX, f64::MIN), |(low, high), off| (low.min(off), high.max(off)));
    Some((Line { at: at + (low + high) / 2.0, period }, (high - low) / 2.0))
}

/// Sums for a line of least squares.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Squares {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Squares {
    pub fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Slope, and height at zero.
    pub fn line(&self) -> Option<(f64, f64)> {
        let scale = self.count * self.xx - self.x * self.x;
        let slope = (self.count * self.xy - self.x * self.y) / scale;
        (scale > 0.0).then(|| (slope, (self.y - slope * self.x) / self.count))
    }
}
