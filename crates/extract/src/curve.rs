//! Distance functions: the least and greatest spans of consecutive releases, exact up to a horizon. (papers:
//! LiME, Section II-B.)
//!
//! The curves end before the first span of 52 days or more, which would not be exact.

use crate::batch::{BATCH, WIDTH};
use crate::kernel;
use crate::ring::Ring;
use crate::short::Numbers;
use punctual_model::{Curve, Duration, Instant, Window};

/// Spans below this are exact: values this close to the newest one are.
pub(crate) const EXACT: f64 = (1_u64 << 52) as f64;

/// δ⁻ and δ⁺ of a stream of releases. Memory grows with the releases up to the horizon, then stays constant.
/// Pieces merge exactly.
#[derive(Clone, Debug)]
pub struct DistanceSummary {
    horizon: usize,
    count: u64,
    /// Instants in the rings are relative to this.
    base: u64,
    earliest: Ring,
    /// Absent as long as every release is exact.
    latest: Option<Ring>,
    /// Releases since the last window: so many newest values are equal in both rings.
    exact: usize,
    /// The newest releases, not yet in the curves.
    pending: usize,
    spans: Spans,
    /// The first releases, for merging with the piece before this one.
    head: Head,
}

/// Entry i covers i + 2 consecutive releases.
#[derive(Clone, Debug, Default)]
struct Spans {
    least: Vec<f64>,
    greatest: Vec<f64>,
}

#[derive(Clone, Debug, Default)]
struct Head {
    /// The first earliest bound.
    first: u64,
    /// From each earliest bound to the next, modulo 2^64; begins with zero.
    distances: Numbers,
    /// From the earliest to the latest bounds; empty as long as every release is exact.
    widths: Numbers,
    last: u64,
}

impl DistanceSummary {
    /// A summary of no releases, for δ(2) … δ(horizon + 1).
    pub fn new(horizon: usize) -> Self {
        // δ(2), the least separation, is always needed.
        let horizon = horizon.max(1);
        DistanceSummary {
            horizon,
            count: 0,
            base: 0,
            earliest: Ring::new(horizon),
            latest: None,
            exact: 0,
            pending: 0,
            spans: Spans::default(),
            head: Head::default(),
        }
    }

    /// Adds the next release.
    #[inline]
    pub fn push(&mut self, window: Window) {
        let (earliest, latest) = (window.earliest().ns(), window.latest().ns());
        if self.head.distances.len() < self.horizon {
            self.head.push(earliest, latest);
        }
        let mut newest = relative(latest, self.base);
        if newest.abs() >= EXACT {
            self.rebase(earliest);
            newest = relative(latest, self.base);
        }
        if self.latest.is_none() && earliest != latest {
            self.latest = Some(self.earliest.clone());
        }
        self.earliest.push(if earliest == latest { newest } else { relative(earliest, self.base) });
        if let Some(ring) = &mut self.latest {
            ring.push(newest);
        }
        self.exact = if earliest == latest { self.exact + 1 } else { 0 };
        self.count += 1;
        self.pending += 1;
        if self.pending == BATCH {
            self.flush();
        }
    }

    /// Appends a piece with the same horizon that follows this one: as if its releases had been pushed here.
    pub fn merge(&mut self, later: &DistanceSummary) {
        later.head.windows().for_each(|window| self.push(window));
        let pushed = later.head.distances.len() as u64;
        if pushed == later.count {
            return;
        }
        // Every pair across the border is done; left are pairs within the later piece, and its newest
        // releases.
        self.flush();
        self.horizon = self.horizon.min(later.horizon);
        self.count += later.count - pushed;
        self.spans.resize(self.entries());
        self.spans.combine(&later.up_to_date());
        self.base = later.base;
        self.earliest = later.earliest.clone();
        self.latest = later.latest.clone();
        self.exact = later.exact;
    }

    /// The least separation of two releases, which is δ⁻(2); `None` for fewer than two.
    pub fn least_separation(&self) -> Option<Duration> {
        let spans = self.up_to_date();
        (self.count > 1)
            .then(|| Duration::from_ns(lower_bound(spans.least.iter().copied().fold(EXACT, f64::min))))
    }

    /// The curves; `None` for fewer than two releases, or if no two are less than 52 days apart.
    pub fn curve(&self) -> Option<Curve> {
        let Spans { mut least, mut greatest } = self.up_to_date();
        least.truncate(self.entries());
        greatest.truncate(self.entries());
        // Bounds of releases in order never run backwards; if they did, the outer side is the sound one.
        least.iter_mut().rev().fold(f64::INFINITY, |next, span| {
            *span = span.min(next);
            *span
        });
        greatest.iter_mut().fold(0.0, |before, span| {
            *span = span.max(before);
            *span
        });
        let exact = greatest.partition_point(|&span| span < EXACT);
        (exact > 0).then(|| Curve {
            delta_min_ns: least[..exact].iter().map(|&span| Duration::from_ns(lower_bound(span))).collect(),
            delta_max_ns: greatest[..exact].iter().map(|&span| Duration::from_ns(span as u64)).collect(),
        })
    }

    /// How many entries the curve may have: fewer than its horizon only if spans are too long to be exact.
    pub(crate) fn reach(&self) -> u64 {
        let length = self.curve().map_or(0, |curve| curve.delta_min_ns.len());
        if length < self.entries() { length as u64 } else { self.horizon as u64 }
    }

    fn entries(&self) -> usize {
        usize::try_from(self.count.saturating_sub(1)).unwrap_or(usize::MAX).min(self.horizon)
    }

    #[cold]
    fn rebase(&mut self, base: u64) {
        // Older instants lose digits, so all comparisons with them come first.
        self.flush();
        let by = relative(base, self.base);
        self.earliest.rebase(by);
        if let Some(ring) = &mut self.latest {
            ring.rebase(by);
        }
        self.base = base;
    }

    fn flush(&mut self) {
        let mut spans = std::mem::take(&mut self.spans);
        self.extend(&mut spans);
        (self.spans, self.pending) = (spans, 0);
    }

    fn up_to_date(&self) -> Spans {
        let mut spans = self.spans.clone();
        self.extend(&mut spans);
        spans
    }

    /// Updates `spans` with the pending releases.
    fn extend(&self, spans: &mut Spans) {
        spans.resize(self.entries());
        let (earliest, pending) = (self.earliest.newest_first(), self.pending);
        match &self.latest {
            Some(latest) if self.exact < spans.least.len() + pending => {
                kernel::window_spans(
                    earliest,
                    latest.newest_first(),
                    pending,
                    &mut spans.least,
                    &mut spans.greatest,
                );
            }
            _ => kernel::spans(earliest, pending, &mut spans.least, &mut spans.greatest),
        }
    }
}

impl Spans {
    /// Makes room for this many entries, rounded up to whole blocks of the kernels.
    fn resize(&mut self, entries: usize) {
        let entries = entries.next_multiple_of(WIDTH);
        if entries > self.least.len() {
            self.least.resize(entries, f64::INFINITY);
            self.greatest.resize(entries, f64::NEG_INFINITY);
        }
    }

    fn combine(&mut self, other: &Spans) {
        for (mine, theirs) in self.least.iter_mut().zip(&other.least) {
            *mine = mine.min(*theirs);
        }
        for (mine, theirs) in self.greatest.iter_mut().zip(&other.greatest) {
            *mine = mine.max(*theirs);
        }
    }
}

impl Head {
    fn push(&mut self, earliest: u64, latest: u64) {
        if earliest != latest || self.widths.len() > 0 {
            (self.widths.len()..self.distances.len()).for_each(|_| self.widths.push(0));
            self.widths.push(latest - earliest);
        }
        if self.distances.len() == 0 {
            (self.first, self.last) = (earliest, earliest);
        }
        self.distances.push(earliest.wrapping_sub(self.last));
        self.last = earliest;
    }

    fn windows(&self) -> impl Iterator<Item = Window> + '_ {
        let widths = self.widths.iter().chain(std::iter::repeat(0));
        self.distances.iter().zip(widths).scan(self.first, |at, (distance, width)| {
            *at = at.wrapping_add(distance);
            let (earliest, latest) = (Instant::from_ns(*at), Instant::from_ns(at.wrapping_add(width)));
            Some(Window::new(earliest, latest).unwrap_or(Window::at(earliest)))
        })
    }
}

#[inline]
fn relative(instant: u64, base: u64) -> f64 {
    // Converting a signed number takes one instruction.
    match i64::try_from(instant.abs_diff(base)) {
        Ok(apart) if instant >= base => apart as f64,
        Ok(apart) => -(apart as f64),
        Err(_) if instant >= base => (instant - base) as f64,
        Err(_) => -((base - instant) as f64),
    }
}

/// Spans between windows that overlap are negative: such releases may have coincided.
fn lower_bound(span: f64) -> u64 {
    span.clamp(0.0, EXACT) as u64
}
