//! Exact periodic inference: the offset, period and jitter that explain the releases, with skipped and extra
//! activations. (papers: LiME, Section IV-C.)
//!
//! Release j is the point (k_j, time). A model with period T is sound if a strip of slope T contains all
//! points, and its jitter is the strip's height, so hulls give it for every period at once. The k_j, and the
//! period to print, are chosen only at the query, when everything is known: [`resolve`] and [`choice`]. The
//! state until then does not depend on the pieces that the releases come in:
//!
//! - each gap between two releases is scored by its neighbours ([`score`]); one that is not a slip is closed
//!   at once,
//! - of the others the [`CUTS`] highest stay open, those whose neighbours agree on no shift before all
//!   others; the rest are closed with the shift that their neighbours agree on,
//! - of the segment between two open gaps ([`segment`]), the lowest and the highest points for every period
//!   are kept ([`layers`]),
//! - where all arrivals are known, the distances between them are counted ([`steps`]),
//! - once a gap was closed with a shift that is only inferred, the same is kept of all releases without such
//!   shifts: a query may find that they explained nothing.
//!
//! `docs/design/periods.md` gives the reasons; `tests/reference/periodic_inference.py` is the same algorithm
//! in Python.

mod block;
pub(crate) mod choice;
mod joined;
mod late;
pub(crate) mod lateness;
mod layers;
mod models;
mod nearby;
mod resolve;
mod scan;
mod score;
mod segment;
mod steps;
mod tail;

use crate::hull::LIMIT;
use block::{BLOCK, Block, Entry};
use lateness::Lateness;
use punctual_model::{self as model, Disturbance, MAX_SLIPS, Release};
use scan::Scan;
use score::{AROUND, Gap};
use segment::Segment;
use std::cell::RefCell;
use std::cmp::Reverse;
use steps::Steps;
use tail::Tail;

/// Fewest releases of a periodic model: two fit any period without jitter.
const FEWEST: u64 = 3;

/// Greatest index, so that products of index and time fit 128 bits: more than a thousand years at 30 Hz.
const MOST_INDEX: i64 = 1 << 40;

/// Most open gaps.
const CUTS: usize = 32;

/// Most points kept. Periodic streams have some hundred, sporadic ones two or three thousand; a rate that
/// drifts forever would need more and more.
const MOST_POINTS: usize = 8_192;

/// Most points of each hull, once there have been too many.
const CAP: usize = 1_024;

/// Points that may come and go between two counts.
const SLACK: usize = 2_048;

/// Late releases beyond the [`late::MOST`] before some are given up.
const SPARE_LATE: usize = 32;

/// Most disturbed releases kept: the last ones.
const MOST_DISTURBED: usize = punctual_model::MAX_ENDING;

/// Most stalls kept: those of the latest releases.
const MOST_STALLS: usize = 128;

/// Everything that the periodic models of a stream of releases depend on, in bounded memory. Pieces merge
/// exactly.
#[derive(Clone, Debug, Default)]
pub struct PeriodicSummary {
    /// The first release's earliest bound: times are relative to it.
    base: u64,
    count: u64,
    known_arrivals: u64,
    /// Disturbed releases without a known arrival: a signal ended the sleep, or the thread.
    excused: u64,
    /// Activations between the last release and the next, already known.
    owed: u64,
    /// The first releases, of which the first `REACH` are in no segment.
    head: Vec<Entry>,
    /// The last releases, not yet in a segment.
    tail: Tail,
    segments: Vec<Segment>,
    /// The least score of the open gaps, if there are as many as can be and none has a shift that its
    /// neighbours agree on; else 0.
    least: i64,
    /// Kept from the first inferred shift that is joined.
    unshifted: Option<Box<Unshifted>>,
    /// The first places inside segments where activations are known to be skipped: latest bound of the next
    /// release, and how many.
    slips: Vec<(i64, i64)>,
    /// The last disturbed releases; without those of stalls, of which there may be many.
    disturbed: Vec<(i64, Disturbance)>,
    /// The latest releases of those that a stall made late: lateness, latest bound.
    stalls: Vec<(i64, i64)>,
    lateness: Lateness,
    /// Distances of arrivals, if all are known.
    steps: Steps,
    /// How late a release has to be to be kept one by one.
    least_late: i64,
    /// The greatest count of points so far.
    most: u32,
    /// Whether there were too many points: then only the hulls of one segment are kept.
    is_plain: bool,
    is_cut: bool,
    out_of_range: bool,
}

/// What it takes to undo shifts that are only inferred.
#[derive(Clone, Debug)]
struct Unshifted {
    /// All releases in segments as one, without those shifts.
    all: Segment,
    /// The first of those shifts, like `slips`.
    slips: Vec<(i64, i64)>,
}

impl PeriodicSummary {
    /// An empty summary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next release. Amortised O(1).
    #[inline]
    pub fn push(&mut self, release: &Release) {
        self.push_with(release, 1, None);
    }

    /// Adds the next release, `advance` activations after the one before, and perhaps disturbed.
    #[inline]
    pub fn push_with(&mut self, release: &Release, advance: u64, disturbance: Option<Disturbance>) {
        let (earliest, latest) = (release.window.earliest().ns(), release.window.latest().ns());
        if self.count == 0 {
            self.base = earliest;
        }
        // A release before its arrival: a signal ended the sleep, and the arrival means nothing.
        let arrival = release.arrival.map(model::Instant::ns).filter(|&arrival| arrival <= latest);
        let floor = arrival.map_or(earliest, |arrival| arrival.min(earliest));
        let advance = advance.max(1).saturating_add(std::mem::take(&mut self.owed));
        self.count += 1;
        self.known_arrivals += u64::from(arrival.is_some());
        let farthest = self.base.abs_diff(floor).max(self.base.abs_diff(latest));
        self.out_of_range |= farthest > LIMIT as u64 || advance.max(self.count) > MOST_INDEX as u64;
        if self.out_of_range {
            return;
        }
        let is_known = arrival.is_some();
        let relative = |ns: u64| ns.wrapping_sub(self.base) as i64;
        let (floor, evidence, latest) =
            (relative(floor), relative(arrival.unwrap_or(latest)), relative(latest));
        match (is_known, self.count) {
            (false, _) => self.steps.give_up(),
            (true, 1) => self.steps.begin(floor, evidence, latest),
            (true, _) => self.steps.push(floor, evidence, latest),
        }
        match disturbance {
            Some(Disturbance::Ending) => self.lateness.push_other(latest),
            _ => self.lateness.push(latest, arrival.map(relative)),
        }
        if let Some(disturbance) = disturbance {
            self.excused += u64::from(!is_known && disturbance != Disturbance::Stall);
        }
        match disturbance {
            Some(Disturbance::Stall) => keep_stall(&mut self.stalls, (latest.wrapping_sub(evidence), latest)),
            Some(disturbance) => self.disturb((latest, disturbance)),
            None => {}
        }
        self.take(Entry { floor, evidence, latest, advance: advance as i64 });
        if self.count % BLOCK as u64 == AROUND as u64 {
            self.take_block();
            self.bound_points();
        }
    }

    /// The next release comes `activations` later than it would: so many more followed the last one without a
    /// release of their own.
    #[inline]
    pub fn skip(&mut self, activations: u64) {
        self.owed = self.owed.saturating_add(activations);
    }

    /// Releases so far.
    pub(crate) fn releases(&self) -> u64 {
        self.count
    }

    /// The first releases: all, if there are at most [`AROUND`] and no time is out of range.
    pub(crate) fn first_releases(&self) -> impl Iterator<Item = model::Window> + '_ {
        let at = |relative: i64| model::Instant::from_ns(self.base.wrapping_add(relative as u64));
        self.head.iter().filter_map(move |entry| model::Window::new(at(entry.floor), at(entry.latest)))
    }

    /// Whether every arrival is known but those of disturbed releases.
    pub(crate) fn knows_arrivals(&self) -> bool {
        self.known_arrivals > 0 && self.known_arrivals + self.excused == self.count
    }

    #[inline]
    fn take(&mut self, entry: Entry) {
        if self.head.len() < AROUND {
            self.keep_first(entry);
        }
        self.tail.push(entry);
        if self.tail.is_full() {
            self.take_block();
        }
    }

    #[cold]
    fn keep_first(&mut self, entry: Entry) {
        if self.head.len() == self.head.capacity() {
            // Most streams of a thread have only a few releases.
            self.head.reserve_exact(if self.head.is_empty() { 3 } else { AROUND - self.head.len() });
        }
        self.head.push(entry);
    }

    /// Moves the block into segments.
    fn take_block(&mut self) {
        let (mut scan, mut scanned) = (Scan::new(self.tail.gaps(), self.least), self.least);
        let mut from = 0;
        if self.segments.is_empty() && self.tail.block().len() > 0 {
            let gap = self.gap(0, None);
            self.begin_segment(0, gap);
            scan = Scan::new(self.tail.gaps(), self.least);
        }
        while let Some((at, median)) = scan.next(from) {
            let gap = self.gap(at, median);
            from = at + 1;
            if gap.shift > 0 || !gap.is_closed && gap.score > self.least {
                self.begin_segment(at, gap);
                from = 0;
                scan.forget(at + 1);
                if self.least < scanned {
                    (scan, scanned) = (Scan::new(self.tail.gaps(), self.least), self.least);
                }
            }
        }
        let block = self.tail.block();
        extend(&mut self.segments, &mut self.unshifted, &block, self.least_late);
        let taken = block.len();
        self.tail.take(taken);
        self.tail.forget();
        self.give_up_late(late::MOST + SPARE_LATE);
        self.count_points();
    }

    fn gap(&self, at: usize, median: Option<i64>) -> Gap {
        let gaps = self.tail.gaps();
        match gaps.advance_of(at) {
            1 => gaps.score(at, median),
            advance => Gap::known(advance),
        }
    }

    /// Moves the first releases of the block into the last segment; the one after those begins a segment.
    fn begin_segment(&mut self, at: usize, gap: Gap) {
        let (before, middle) = self.tail.split(at);
        extend(&mut self.segments, &mut self.unshifted, &before, self.least_late);
        let segment = Segment::of_block(gap, &middle, self.least_late);
        self.tail.take(at + 1);
        self.join(segment);
        self.give_up_late(late::MOST + SPARE_LATE);
    }

    /// Keeps the latest releases one by one, but no more than `most`.
    fn give_up_late(&mut self, most: usize) {
        if let Some(least) = give_up(&mut self.segments, most) {
            self.least_late = self.least_late.max(late::end(least));
        }
    }

    /// Appends a segment, and closes a gap if too many are open.
    fn join(&mut self, segment: Segment) {
        let closed = segment.gap.is_closed || self.is_plain;
        if closed && segment.gap.infers_shift() {
            self.begin_unshifted();
        }
        if let Some(unshifted) = &mut self.unshifted {
            unshifted.all.append_unshifted(segment.clone());
        }
        if !self.segments.is_empty() && closed {
            self.keep_shift(&segment);
            if let Some(last) = self.segments.last_mut() {
                last.append(&segment, segment.gap.shift);
                self.out_of_range |= last.span > MOST_INDEX;
            }
        } else {
            if let Some(last) = self.segments.last_mut() {
                last.settle();
            }
            if self.segments.len() == self.segments.capacity() {
                // Most streams need only one.
                self.segments.reserve_exact(self.segments.len().clamp(1, 4));
            }
            self.segments.push(segment);
            if self.segments.len() > CUTS + 1 {
                self.close_one();
            }
            self.least = self.find_least();
        }
        self.count_points();
    }

    fn find_least(&self) -> i64 {
        let open = self.segments.get(1..).unwrap_or_default();
        let agree = open.len() < CUTS || open.iter().any(|segment| segment.gap.shift > 0);
        if agree { 0 } else { open.iter().map(|segment| segment.gap.score).min().unwrap_or(0) }
    }

    /// Closes the open gap that matters least: one whose neighbours agree on a shift, else the one with the
    /// lowest score; of equals the later one.
    fn close_one(&mut self) {
        let key = |segment: &Segment| (segment.gap.shift == 0, segment.gap.score);
        let lowest = (1..self.segments.len()).reduce(|least, at| {
            if key(&self.segments[at]) <= key(&self.segments[least]) { at } else { least }
        });
        if let Some(at) = lowest {
            if self.segments[at].gap.infers_shift() {
                self.begin_unshifted();
            }
            let later = self.segments.remove(at);
            self.keep_shift(&later);
            self.segments[at - 1].append(&later, later.gap.shift);
            if at < self.segments.len() {
                self.segments[at - 1].settle();
            }
        }
    }

    /// Begins to keep all releases without inferred shifts, unless that has begun.
    #[cold]
    fn begin_unshifted(&mut self) {
        if self.unshifted.is_none() {
            self.unshifted = Unshifted::new(&self.segments);
        }
    }

    /// Records the activations skipped before a segment that is joined to the one before.
    fn keep_shift(&mut self, segment: &Segment) {
        let slips = match &mut self.unshifted {
            Some(unshifted) if segment.gap.infers_shift() => &mut unshifted.slips,
            _ => &mut self.slips,
        };
        if segment.gap.shift > 0 {
            keep_slip(slips, segment.from, segment.gap.shift);
        }
    }

    /// Counts the points kept of either kind.
    fn count_points(&mut self) -> usize {
        let size: usize = self.segments.iter().map(Segment::size).sum();
        let size = self.unshifted.as_ref().map_or(0, |unshifted| unshifted.all.size()).max(size);
        self.most = self.most.max(size as u32);
        size
    }

    /// Keeps memory bounded. When, and what is left, depends on the releases alone, not on the pieces they
    /// came in: on their number, and on corners of hulls, since how many other points are kept may differ.
    fn bound_points(&mut self) {
        let limit = if self.is_plain { 4 * CAP } else { MOST_POINTS };
        if self.count_points() <= limit {
            return;
        }
        self.give_up_late(late::MOST);
        self.segments.iter_mut().for_each(Segment::settle);
        let corners: usize = self.segments.iter().map(Segment::corners).sum();
        if self.unshifted.as_ref().map_or(0, |unshifted| unshifted.all.corners()).max(corners) <= limit {
            return;
        }
        self.is_plain = true;
        while self.segments.len() > 1 {
            self.close_one();
        }
        let unshifted = self.unshifted.as_mut().map(|unshifted| &mut unshifted.all);
        for segment in self.segments.iter_mut().chain(unshifted) {
            self.is_cut |= segment.flatten(CAP);
        }
        self.least = 0;
    }

    fn disturb(&mut self, disturbed: (i64, Disturbance)) {
        if self.disturbed.len() == MOST_DISTURBED {
            self.disturbed.remove(0);
        }
        self.disturbed.push(disturbed);
    }

    /// Appends a piece that follows this one: as if its releases had been pushed here, if
    /// [`Self::can_merge`].
    pub fn merge(&mut self, later: &PeriodicSummary) {
        if self.count == 0 {
            *self = later.clone();
            return;
        }
        if later.count == 0 {
            return;
        }
        let y = later.base.wrapping_sub(self.base) as i64;
        let owed = std::mem::replace(&mut self.owed, later.owed);
        self.out_of_range |= owed > MOST_INDEX as u64;
        self.out_of_range |=
            later.out_of_range || self.count + later.count > MOST_INDEX as u64 || self.cannot_take(later);
        self.count += later.count;
        self.known_arrivals += later.known_arrivals;
        self.excused += later.excused;
        if self.out_of_range {
            return;
        }
        let mut later = later.clone();
        later.take_block();
        self.lateness.merge(&later.lateness, y);
        self.steps.merge(&later.steps, y);
        later.disturbed.iter().for_each(|&(at, disturbance)| self.disturb((at + y, disturbance)));
        later.stalls.iter().for_each(|&(late, at)| keep_stall(&mut self.stalls, (late, at + y)));
        for (at, entry) in later.head.iter().enumerate() {
            let mut entry = entry.lifted(y);
            if at == 0 {
                entry.advance += owed as i64;
            }
            self.take(entry);
        }
        if later.segments.is_empty() {
            return;
        }
        self.take_block();
        self.is_plain |= later.is_plain;
        self.is_cut |= later.is_cut;
        self.most = self.most.max(later.most);
        for &(at, activations) in &later.slips {
            keep_slip(&mut self.slips, at + y, activations);
        }
        self.least_late = self.least_late.max(later.least_late);
        let unshifted = later.unshifted.map(|mut later| {
            later.lift(y);
            match self.unshifted.take().or_else(|| Unshifted::new(&self.segments)) {
                Some(mut unshifted) => {
                    unshifted.append(*later);
                    unshifted
                }
                None => later,
            }
        });
        for segment in &later.segments {
            let mut segment = segment.clone();
            segment.lift(y);
            self.join(segment);
        }
        // The shifts joined here are in one begun meanwhile.
        let begun = self.unshifted.take();
        self.unshifted = match (unshifted, begun) {
            (Some(mut unshifted), Some(begun)) => {
                unshifted.keep_slips(&begun);
                Some(unshifted)
            }
            (unshifted, begun) => unshifted.or(begun),
        };
        self.tail = later.tail.clone();
        self.tail.lift(y);
        self.give_up_late(late::MOST + SPARE_LATE);
    }

    /// Whether merging gives the same as one pass, if up to `between` more releases are added here first.
    pub fn can_merge(&self, later: &PeriodicSummary, between: usize) -> bool {
        let few = (self.most + later.most) as usize + 3 * between + SLACK <= MOST_POINTS;
        !later.out_of_range && !self.is_plain && !later.is_plain && few
    }

    /// Whether any point of `later` is out of range, relative to the first release here.
    fn cannot_take(&self, later: &PeriodicSummary) -> bool {
        let moved = i128::from(later.base) - i128::from(self.base);
        let is_out_of_range = |at: i64| (i128::from(at) + moved).abs() > i128::from(LIMIT);
        let entries =
            later.head.iter().flat_map(|entry| [entry.floor, entry.latest]).chain(later.tail.bounds());
        let segments = later.segments.iter().flat_map(|segment| {
            let floor = segment.floor.iter().flat_map(|floor| floor.points());
            segment
                .low
                .points()
                .iter()
                .chain(floor)
                .map(|point| point.y)
                .chain(segment.high.points().iter().map(|point| -point.y))
                .chain(segment.late.iter().map(|late| late.latest))
        });
        entries.chain(segments).any(is_out_of_range)
    }
}

/// How late a release is, its segment and its index there: of equals the first is the greatest.
type Rank = (u64, Reverse<(usize, i64)>);

/// If more than so many late releases are kept one by one, gives up all but the latest [`late::MOST`], of
/// equals the first; returns how late those are at least.
fn give_up(segments: &mut [Segment], most: usize) -> Option<u64> {
    let kept: usize = segments.iter().map(|segment| segment.late.len()).sum();
    if kept <= most.max(late::MOST) {
        return None;
    }
    thread_local! {
        static RANKS: RefCell<Vec<Rank>> = RefCell::default();
    }
    let least = RANKS.with_borrow_mut(|ranks| {
        ranks.clear();
        for (number, segment) in segments.iter().enumerate() {
            ranks.extend(segment.late.iter().map(|late| (late.by(), Reverse((number, late.x())))));
        }
        *ranks.select_nth_unstable_by(late::MOST - 1, |a, b| b.cmp(a)).1
    });
    for (number, segment) in segments.iter_mut().enumerate() {
        segment.give_up(|late| (late.by(), Reverse((number, late.x()))) < least);
    }
    Some(least.0)
}

/// Adds the releases of a block to the last segment, and to those without inferred shifts.
#[inline]
fn extend(segments: &mut [Segment], unshifted: &mut Option<Box<Unshifted>>, block: &Block, least_late: i64) {
    if let Some(last) = segments.last_mut() {
        last.extend(block, least_late);
    }
    if let Some(unshifted) = unshifted {
        unshifted.all.extend(block, i64::MAX);
    }
}

impl Unshifted {
    /// Of segments before any inferred shift is joined. `None` if there are none.
    fn new(segments: &[Segment]) -> Option<Box<Unshifted>> {
        let (first, rest) = segments.split_first()?;
        let mut all = first.clone();
        all.give_up(|_| true);
        rest.iter().for_each(|segment| all.append_unshifted(segment.clone()));
        Some(Box::new(Unshifted { all, slips: Vec::new() }))
    }

    fn append(&mut self, later: Unshifted) {
        self.keep_slips(&later);
        self.all.append_unshifted(later.all);
    }

    fn keep_slips(&mut self, other: &Unshifted) {
        other.slips.iter().for_each(|slip| keep_slip(&mut self.slips, slip.0, slip.1));
    }

    /// Moves all times up, relative to another first release.
    fn lift(&mut self, y: i64) {
        self.all.lift(y);
        self.slips.iter_mut().for_each(|slip| slip.0 += y);
    }
}

/// Keeps the stalls of the latest releases; of equals the first.
fn keep_stall(stalls: &mut Vec<(i64, i64)>, stall: (i64, i64)) {
    let place = stalls.partition_point(|other| other.0 >= stall.0);
    stalls.insert(place, stall);
    stalls.truncate(MOST_STALLS);
}

/// Keeps the first slips. Those at one instant are ordered by size, so that the order in which pieces merge
/// does not show.
fn keep_slip(slips: &mut Vec<(i64, i64)>, at: i64, activations: i64) {
    let place = slips.partition_point(|slip| *slip <= (at, activations));
    slips.insert(place, (at, activations));
    slips.truncate(MAX_SLIPS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_the_same_whatever_the_order_of_merges() {
        let mut given: Vec<(i64, i64)> = (0..2 * MAX_SLIPS as i64).map(|slip| (slip / 4, slip % 4)).collect();
        let mut forwards = Vec::new();
        given.iter().for_each(|&(at, activations)| keep_slip(&mut forwards, at, activations));
        assert_eq!(forwards, given[..MAX_SLIPS]);
        given.reverse();
        let mut backwards = Vec::new();
        given.iter().for_each(|&(at, activations)| keep_slip(&mut backwards, at, activations));
        assert_eq!(backwards, forwards);
    }

    /// Activations during a stop are released one after another when it ends: all for the same reason.
    #[test]
    fn a_backlog_has_the_reason_of_its_first_release() {
        let mut summary = PeriodicSummary::new();
        for job in 0..9_000 {
            let arrival = 1_000_000 * job;
            let released = match job {
                // Stopped for almost five periods. The last of the backlog is activated after the stop.
                4_000..4_006 => 4_004_800_000 + (job - 4_000) * 100_000,
                // Another late one, for no known reason.
                6_000 => 6_003_000_000,
                _ => arrival + 20_000 + job % 7 * 1_000,
            };
            let [arrival, released] = [arrival, released].map(model::Instant::from_ns);
            let release = Release { arrival: Some(arrival), window: model::Window::at(released) };
            summary.push_with(&release, 1, (job == 4_000).then_some(Disturbance::Signal));
        }
        let typical = summary.model().and_then(|model| model.typical).expect("a typical model");
        let reasons: Vec<_> = typical.left_out.iter().map(|out| (out.at_ns.ns(), out.reason)).collect();
        let signal = Some(Disturbance::Signal);
        let backlog = (0..6).map(|job| (4_004_800_000 + job * 100_000, signal));
        let expected: Vec<_> = backlog.chain([(6_003_000_000, None)]).collect();
        assert_eq!(reasons, expected);
    }

    /// However many releases a stall made less late after it.
    #[test]
    fn the_latest_release_keeps_its_stall() {
        let mut summary = PeriodicSummary::new();
        for job in 0..4_000 {
            let arrival = model::Instant::from_ns(1_000_000 * job);
            let (late, disturbance) = match job {
                100 => (30_000_000, Some(Disturbance::Stall)),
                _ if job % 20 == 7 => (150_000, Some(Disturbance::Stall)),
                _ => (20_000 + job % 7 * 1_000, None),
            };
            let released = arrival + model::Duration::from_ns(late);
            let release = Release { arrival: Some(arrival), window: model::Window::at(released) };
            summary.push_with(&release, 1, disturbance);
        }
        let typical = summary.model().and_then(|model| model.typical).expect("a typical model");
        let reasons: Vec<_> = typical.left_out.iter().map(|out| out.reason).collect();
        assert_eq!(reasons, [Some(Disturbance::Stall)]);
    }
}
