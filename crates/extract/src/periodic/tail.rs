//! The last releases of a stream. When a release has [`REACH`] others on its right, the gap before it is
//! scored. Unless that begins a segment, it waits in a block, and the last segment takes whole blocks.
//!
//! Most gaps are about as long as their neighbours, which a few bits tell. The others need the median of the
//! distances around them.

use crate::periodic::levels::{Between, Levels, REMEMBERED};
use crate::periodic::score::{self, Gap, REACH};
use crate::periodic::segment::Entry;

/// Most releases of a block.
pub(crate) const BLOCK: usize = 256;

/// Other releases that score a gap: the last ones of a stream are kept for the next gap, the first ones for
/// merging with the piece before.
pub(crate) const AROUND: usize = 2 * REACH - 1;

/// Releases between two attempts to find the usual distance.
const PATIENCE: usize = 16;

/// Distances that may be far from the median where neighbours agree on a shift.
const FAR: usize = 5;

/// Bits of the distances around a gap: the one in the middle, and the others.
const MIDDLE: u32 = 1 << (REACH - 1);
const OTHERS: u32 = ((1 << AROUND) - 1) & !MIDDLE;

#[derive(Clone, Debug)]
pub(crate) struct Tail {
    /// Latest bounds of `AROUND` releases and those after them, or of all.
    latest: Vec<i64>,
    /// The same of the evidence; empty as long as that is the latest bound.
    evidence: Vec<i64>,
    /// The same of the floors; empty as long as those are the evidence.
    floor: Vec<i64>,
    /// Activations since the release before; a ring.
    advance: [i64; 2 * REACH],
    /// Releases until the last one with an advance of more than one; 0 without one.
    advanced_at: usize,
    /// Releases so far.
    count: usize,
    /// Where the block begins in `latest`.
    begin: usize,
    /// One bit for each release, the newest lowest: whether its distance from the one before is `usual`.
    regular: u32,
    /// The least and the greatest usual distance.
    usual: (i64, i64),
    looked_at: usize,
    distances: [i64; REMEMBERED],
    levels: Levels,
}

impl Default for Tail {
    fn default() -> Tail {
        Tail {
            latest: Vec::new(),
            evidence: Vec::new(),
            floor: Vec::new(),
            advance: [1; 2 * REACH],
            advanced_at: 0,
            count: 0,
            begin: REACH,
            regular: 0,
            usual: (0, 0),
            looked_at: 0,
            distances: [0; REMEMBERED],
            levels: Levels::default(),
        }
    }
}

/// Releases in a row of a segment, and their neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    latest: &'a [i64],
    evidence: &'a [i64],
    floor: &'a [i64],
    begin: usize,
    end: usize,
}

impl<'a> Block<'a> {
    pub fn len(&self) -> usize {
        self.end - self.begin
    }

    pub fn latest(&self) -> &'a [i64] {
        &self.latest[self.begin..self.end]
    }

    pub fn evidence(&self) -> &'a [i64] {
        if self.evidence.is_empty() { self.latest() } else { &self.evidence[self.begin..self.end] }
    }

    /// The floors; `None` if they are the evidence.
    pub fn floor(&self) -> Option<&'a [i64]> {
        (!self.floor.is_empty()).then(|| &self.floor[self.begin..self.end])
    }

    /// Whether no arrival is known.
    pub fn has_latest_alone(&self) -> bool {
        self.evidence.is_empty()
    }

    /// The latest bounds, with [`REACH`] before the first and one fewer after the last.
    pub fn around(&self) -> &'a [i64] {
        &self.latest[self.begin - REACH..self.end + REACH - 1]
    }
}

impl Tail {
    /// Adds a release. Once `AROUND` others come before it, gives the gap before the one in the middle, which
    /// joins the block. If its neighbours agree on no shift and its score is not above `least`, that gap may
    /// be given as closed, without its score.
    #[inline]
    pub fn push(&mut self, entry: Entry, least: i64) -> Option<Gap> {
        let before = self.last_evidence();
        let distance = score::distance(before, (entry.evidence, entry.advance));
        if entry.floor != entry.latest || !self.evidence.is_empty() {
            self.keep_apart(entry);
        }
        if self.latest.len() == self.latest.capacity() {
            self.make_room();
        }
        self.latest.push(entry.latest);
        if entry.advance > 1 || self.advanced_at > 0 {
            self.advance(entry.advance);
        }
        self.distances[self.count % REMEMBERED] = distance;
        self.count += 1;
        self.regular = self.regular << 1 | u32::from(self.usual.0 <= distance && distance <= self.usual.1);
        if self.count <= AROUND {
            return None;
        }
        let advance = self.advance[(self.count - REACH) % (2 * REACH)];
        Some(if advance > 1 {
            Gap::known(advance)
        } else if self.regular & MIDDLE != 0 && (self.regular & OTHERS).count_ones() >= REACH as u32 {
            // Both the median and this gap are usual distances; the score is at most three times their
            // difference.
            Gap::CLOSED
        } else {
            self.score(least)
        })
    }

    /// Notes how many activations the next release is after the one before.
    #[cold]
    fn advance(&mut self, activations: i64) {
        self.advance[self.count % (2 * REACH)] = activations;
        if activations > 1 {
            self.advanced_at = self.count + 1;
        }
    }

    #[cold]
    fn make_room(&mut self) {
        let room = self.latest.len().clamp(REACH, BLOCK + AROUND - self.latest.len().min(BLOCK));
        self.latest.reserve_exact(room);
    }

    #[inline]
    fn last_evidence(&self) -> i64 {
        let all = if self.evidence.is_empty() { &self.latest } else { &self.evidence };
        all.last().copied().unwrap_or(0)
    }

    /// Adds evidence and floor where they differ from the latest bound.
    #[inline]
    fn keep_apart(&mut self, entry: Entry) {
        if self.evidence.is_empty() {
            self.evidence.clone_from(&self.latest);
            self.evidence.reserve_exact(self.latest.capacity() - self.latest.len());
        }
        if entry.floor != entry.evidence && self.floor.is_empty() {
            self.floor.clone_from(&self.evidence);
        }
        if entry.floor != entry.evidence || !self.floor.is_empty() {
            self.floor.push(entry.floor);
        }
        self.evidence.push(entry.evidence);
    }

    /// Whether the block has to be taken.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.latest.len() >= BLOCK + AROUND
    }

    /// The releases in the block.
    pub fn block(&self) -> Block<'_> {
        self.block_until((self.latest.len() + 1).saturating_sub(REACH))
    }

    /// The block without its last release, and that release alone.
    pub fn split(&self) -> (Block<'_>, Block<'_>) {
        let middle = self.latest.len() - REACH;
        let whole = self.block();
        (Block { end: middle, ..whole }, Block { begin: middle, ..whole })
    }

    fn block_until(&self, end: usize) -> Block<'_> {
        let Tail { latest, evidence, floor, begin, .. } = self;
        Block { latest, evidence, floor, begin: *begin, end: end.max(*begin) }
    }

    /// Empties the block.
    pub fn take_block(&mut self) {
        let begin = (self.latest.len() + 1).saturating_sub(REACH).max(self.begin);
        if begin == self.begin {
            return;
        }
        // The next release to come is the first one whose gap is scored then.
        let gone = begin - REACH;
        for values in [&mut self.latest, &mut self.evidence, &mut self.floor] {
            values.drain(..gone.min(values.len()));
        }
        self.begin = REACH;
        let has_floor = self.floor.iter().zip(&self.evidence).any(|(floor, evidence)| floor != evidence);
        if !has_floor {
            self.floor.clear();
            let is_known =
                self.evidence.iter().zip(&self.latest).any(|(evidence, latest)| evidence != latest);
            if !is_known {
                self.evidence.clear();
            }
        }
    }

    fn score(&mut self, least: i64) -> Gap {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the line above checked that the processor has AVX2.
            return unsafe { self.score_with_avx2(least) };
        }
        self.score_gap(least)
    }

    /// The same for processors with AVX2, which compare four distances at a time.
    ///
    /// # Safety
    ///
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn score_with_avx2(&mut self, least: i64) -> Gap {
        self.score_gap(least)
    }

    #[inline(always)]
    fn score_gap(&mut self, least: i64) -> Gap {
        self.levels.catch_up(&self.distances, self.count);
        let (around, needs_look) = (self.levels.median(), self.count >= self.looked_at + PATIENCE);
        if let Some(around) = around.filter(|around| !needs_look || self.are_usual(*around)) {
            if self.is_closed(around, least) {
                return Gap::CLOSED;
            }
        }
        let median = self.median(around.filter(|around| around.greatest - around.least < i32::MAX.into()));
        if needs_look && !self.are_usual(Between { least: median, greatest: median }) {
            self.look(median);
        }
        let evidence = if self.evidence.is_empty() { &self.latest } else { &self.evidence };
        let releases = &evidence[evidence.len() - 2 * REACH..];
        if self.count >= self.advanced_at + 2 * REACH {
            return score::of_whole(releases, &[1; 2 * REACH], median);
        }
        let advance = std::array::from_fn(|index| self.advance[(self.count + index) % (2 * REACH)]);
        score::of_whole(releases, &advance, median)
    }

    #[inline(always)]
    fn middle(&self) -> i64 {
        self.distances[(self.count - REACH) % REMEMBERED]
    }

    /// Whether distances in between are all usual.
    #[inline(always)]
    fn are_usual(&self, between: Between) -> bool {
        self.usual.0 <= between.least && between.greatest <= self.usual.1
    }

    /// Whether the gap in the middle is closed, whatever the median of all other distances is in between.
    #[inline(always)]
    fn is_closed(&self, Between { least: low, greatest: high }: Between, least: i64) -> bool {
        let middle = self.middle();
        // The score is at most this.
        let bound = (high - middle).max(middle.saturating_sub(low)).saturating_mul(3);
        if bound.saturating_mul(10) < 3 * low {
            return true;
        }
        // Neighbours agree on a shift only if their phases, but for one late release on either side, spread
        // less than an eighth of the median; then all but five distances lie that close to it.
        let near = Between { least: low - low / 8 - 1, greatest: high + high / 8 + 1 };
        bound <= least && self.levels.most(near) < AROUND - FAR
    }

    /// The median of all distances but the one in the middle, given where it is about.
    #[inline(always)]
    fn median(&self, around: Option<Between>) -> i64 {
        let mut all = [i64::MAX; 2 * REACH];
        for (distance, at) in all.iter_mut().zip(self.count - AROUND..self.count) {
            *distance = self.distances[at % REMEMBERED];
        }
        all[AROUND - REACH] = i64::MAX;
        let Some(Between { least, .. }) = around else {
            all.sort_unstable();
            return all[AROUND / 2];
        };
        // Short numbers tell apart those about as long as the median.
        let short =
            all.map(|distance| distance.saturating_sub(least).clamp(i32::MIN.into(), i32::MAX.into()) as i32);
        let mut as_low = [0_i32; 2 * REACH];
        for other in short {
            for (as_low, distance) in as_low.iter_mut().zip(&short) {
                *as_low += i32::from(other <= *distance);
            }
        }
        let mut median = i32::MAX;
        for (as_low, distance) in as_low.into_iter().zip(short) {
            median = if as_low > AROUND as i32 / 2 { median.min(distance) } else { median };
        }
        least + i64::from(median)
    }

    #[cold]
    fn look(&mut self, median: i64) {
        self.looked_at = self.count;
        self.levels.fit(median);
        let from = median.saturating_sub(median / 24);
        self.usual = (from, from.saturating_add(from / 11));
        self.regular = (self.count - AROUND..self.count).fold(0, |regular, at| {
            let distance = self.distances[at % REMEMBERED];
            regular << 1 | u32::from(self.usual.0 <= distance && distance <= self.usual.1)
        });
    }

    /// The last `AROUND` releases, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let (len, total) = (self.count.min(AROUND), self.latest.len());
        (0..len).map(move |index| {
            let at = total - len + index;
            let latest = self.latest[at];
            let evidence = self.evidence.get(at).copied().unwrap_or(latest);
            let floor = self.floor.get(at).copied().unwrap_or(evidence);
            let advance = self.advance[(self.count - len + index) % (2 * REACH)];
            Entry { floor, evidence, latest, advance }
        })
    }

    /// The bounds of all releases that it holds.
    pub fn bounds(&self) -> impl Iterator<Item = i64> {
        self.latest.iter().chain(&self.evidence).chain(&self.floor).copied()
    }

    /// Moves all times up, relative to another first release.
    pub fn lift(&mut self, y: i64) {
        for values in [&mut self.latest, &mut self.evidence, &mut self.floor] {
            values.iter_mut().for_each(|at| *at += y);
        }
    }
}
