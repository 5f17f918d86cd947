//! Modes: spans of time in which the same periodic sources explain the releases. Most streams have one mode
//! with one source, which [`periodic`](crate::periodic) describes better; this is for the others: several
//! timers in one loop, bursts, and rates or phases that change.
//!
//! Sources are looked for in some hundred releases at once ([`piece`]). Where those are cut depends on the
//! times of the releases alone: where a hash of one is less than those of its neighbours ([`WINDOW`]). So the
//! pieces that a recording comes in make no difference. Of a mode only the hulls of each source are kept
//! ([`mode`]); two neighbours are one mode if all their sources go on.
//!
//! `docs/design/modes.md` gives the reasons.

mod fit;
mod line;
mod mode;
mod piece;
mod plain;
mod query;
mod releases;
mod told;

use mode::Mode;
use piece::pieces;
use plain::Plain;
use punctual_model::Release;
use releases::{Entry, Releases, Row};
pub(crate) use told::{Next, Told};

/// Releases on either side of a cut whose hashes are greater.
const WINDOW: i64 = 80;

/// One in so many releases (a power of two) may be a cut.
const RARITY: u64 = 32;

/// A cut is moved to the longest of so many gaps, so that it divides no burst.
const NEAR: usize = 16;

/// Most releases without a cut; hashes hardly ever need more than 500.
const MOST: usize = 2_048;

/// Most parts of a stream, and most releases in those that nothing explains. With more, its releases follow
/// no rule that is worth a name, or its cost.
const MOST_PARTS: usize = 24;
const MOST_IRREGULAR: u64 = 2_048;

/// Most releases kept that no mode explains so far.
const MOST_OPEN: usize = 400;

/// What follows the part before in a stream.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Mode(Box<Mode>),
    /// Releases between two modes, which may belong to either.
    Open(Vec<Entry>),
    /// Releases that nothing explains.
    Irregular {
        first: Entry,
        last: Entry,
        releases: u64,
    },
}

impl Part {
    fn mode(&self) -> Option<&Mode> {
        match self {
            Part::Mode(mode) => Some(mode),
            _ => None,
        }
    }

    fn is_mode(&self) -> bool {
        self.mode().is_some()
    }

    /// The first and the last release.
    fn ends(&self) -> (Entry, Entry) {
        match self {
            Part::Mode(mode) => (mode.first, mode.last),
            Part::Open(entries) => (entries[0], entries[entries.len() - 1]),
            Part::Irregular { first, last, .. } => (*first, *last),
        }
    }

    fn releases(&self) -> u64 {
        match self {
            Part::Mode(mode) => mode.releases,
            Part::Open(entries) => entries.len() as u64,
            Part::Irregular { releases, .. } => *releases,
        }
    }
}

/// Everything that the modes of a stream depend on, in bounded memory. Pieces merge exactly.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modes {
    /// The releases since the last cut, or all.
    tail: Releases,
    /// With how many of them the next candidate can be decided on; zero if there is none.
    decide_at: usize,
    /// What most streams, which are short, do not need.
    more: Option<Box<More>>,
    /// Given up: there is no rule, or times are out of range.
    is_lost: bool,
}

#[derive(Clone, Debug, Default)]
struct More {
    /// The releases before the first cut.
    head: Releases,
    /// What is between the first cut and the last one.
    parts: Vec<Part>,
    /// Releases that may be cuts, and those shortly before the tail, by place in it.
    candidates: Vec<Candidate>,
    has_cut: bool,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    place: i64,
    hash: u64,
    is_decided: bool,
}

impl Modes {
    /// Adds the next release. Amortised O(1).
    #[inline]
    pub fn push(&mut self, release: &Release) {
        if !self.is_lost {
            match Entry::of(release) {
                Some(entry) => self.take_one(entry),
                None => self.give_up(),
            }
        }
    }

    #[inline]
    fn take_one(&mut self, entry: Entry) {
        let hash = hash(entry.evidence);
        if hash < u64::MAX / RARITY {
            self.add_candidate(hash);
        }
        self.tail.push(entry);
        let count = self.tail.len();
        if count == self.decide_at {
            self.decide();
        } else if count > MOST {
            self.give_up();
        }
    }

    /// The next release may be a cut.
    #[cold]
    fn add_candidate(&mut self, hash: u64) {
        let candidate = Candidate { place: self.tail.len() as i64, hash, is_decided: false };
        self.more.get_or_insert_default().candidates.push(candidate);
        self.plan();
    }

    #[cold]
    fn decide(&mut self) {
        if let Some(more) = &mut self.more {
            more.decide(&mut self.tail);
        }
        self.plan();
        self.check();
    }

    /// Finds out when the next candidate can be decided on.
    fn plan(&mut self) {
        // In order of place.
        let next = self.more.iter().flat_map(|more| &more.candidates).find(|it| !it.is_decided);
        let known = next.map(|next| next.place + WINDOW + 1);
        self.decide_at = known.map_or(0, |known| known.max(self.tail.len() as i64 + 1) as usize);
    }

    /// Gives up if there are too many parts.
    fn check(&mut self) {
        if self.more.as_ref().is_some_and(|more| is_without_rule(&more.parts)) {
            self.give_up();
        }
    }

    #[cold]
    fn give_up(&mut self) {
        *self = Modes { is_lost: true, ..Modes::default() };
    }

    /// Appends a piece of the same stream.
    pub fn merge(&mut self, later: &Modes) {
        if self.is_lost || later.is_lost {
            return self.give_up();
        }
        let cut = later.more.as_ref().filter(|more| more.has_cut);
        for entry in cut.map_or(&later.tail, |more| &more.head).row().iter() {
            if !self.is_lost {
                self.take_one(entry);
            }
        }
        let Some(cut) = cut.filter(|_| !self.is_lost) else { return };
        let more = self.more.get_or_insert_default();
        let count = self.tail.len();
        more.take(&mut self.tail, count);
        cut.parts.iter().for_each(|part| append(&mut more.parts, part.clone()));
        more.candidates.clone_from(&cut.candidates);
        self.tail = later.tail.clone();
        self.decide_at = later.decide_at;
        self.check();
    }

    /// All parts, in order.
    fn all(&self) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let none = More::default();
        let more = self.more.as_deref().unwrap_or(&none);
        add_explained(&mut parts, more.head.row());
        more.parts.iter().for_each(|part| append(&mut parts, part.clone()));
        add_explained(&mut parts, self.tail.row());
        (!self.is_lost && !is_without_rule(&parts)).then_some(parts)
    }
}

impl More {
    /// Decides on the first candidate whose neighbours are all known. Others stay as long as they are
    /// neighbours.
    #[cold]
    fn decide(&mut self, tail: &mut Releases) {
        let known = tail.len() as i64 - WINDOW;
        let Some(at) = self.candidates.iter().position(|it| !it.is_decided && it.place < known) else {
            return;
        };
        self.candidates[at].is_decided = true;
        let candidate = self.candidates[at];
        let is_least = self.candidates.iter().enumerate().all(|(other, near)| {
            let is_near = near.place.abs_diff(candidate.place) <= WINDOW as u64;
            !is_near || other == at || near.hash > candidate.hash || near.hash == candidate.hash && other > at
        });
        if is_least && (self.has_cut || candidate.place >= WINDOW) {
            self.take(tail, tail.longest_gap(candidate.place as usize, NEAR));
        }
        let known = tail.len() as i64 - WINDOW;
        self.candidates.retain(|it| !it.is_decided || it.place + WINDOW >= known);
    }

    /// Takes the first releases of the tail, which a cut follows.
    fn take(&mut self, tail: &mut Releases, count: usize) {
        match self.has_cut {
            true => add_explained(&mut self.parts, tail.first(count)),
            false => self.head = Releases::of(tail.first(count)),
        }
        tail.drop_first(count);
        self.candidates.iter_mut().for_each(|it| it.place -= count as i64);
        self.has_cut = true;
    }
}

/// Spreads times evenly.
fn hash(time: i64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (time as u64).wrapping_add(ODD).wrapping_mul(ODD);
    (mixed ^ (mixed >> 32)).wrapping_mul(ODD)
}

/// Adds what explains these releases.
fn add_explained(parts: &mut Vec<Part>, row: Row<'_>) {
    if let Some(plain) = Plain::new(row) {
        match parts.last_mut() {
            Some(Part::Mode(mode)) if mode.sources.len() == 1 => {
                if !mode.join_plain(&plain) {
                    parts.push(Part::Mode(Box::new(Mode::of_plain(&plain, row))));
                }
            }
            _ => append(parts, Part::Mode(Box::new(Mode::of_plain(&plain, row)))),
        }
        return;
    }
    let entries = row.to_vec();
    let Some(first) = entries.first() else { return };
    let times: Vec<f64> =
        entries.iter().map(|entry| entry.evidence.wrapping_sub(first.evidence) as f64).collect();
    let pieces = if times.is_sorted() { pieces(&times) } else { Vec::new() };
    let mut until = 0;
    for piece in &pieces {
        open(&entries[until..piece.range.start]).into_iter().for_each(|part| append(parts, part));
        append(parts, Part::Mode(Box::new(Mode::new(&entries, first.evidence, piece))));
        until = piece.range.end;
    }
    open(&entries[until..]).into_iter().for_each(|part| append(parts, part));
}

fn open(entries: &[Entry]) -> Option<Part> {
    match entries {
        [] => None,
        [first, .., last] if entries.len() > MOST_OPEN => {
            Some(Part::Irregular { first: *first, last: *last, releases: entries.len() as u64 })
        }
        _ => Some(Part::Open(entries.to_vec())),
    }
}

/// Adds a part, and joins it with those before.
fn append(parts: &mut Vec<Part>, part: Part) {
    match (&mut parts[..], part) {
        ([.., Part::Mode(mode)], Part::Mode(next)) => {
            if !mode.join(&[], &next) {
                parts.push(Part::Mode(next));
            }
        }
        ([.., Part::Mode(mode), Part::Open(between)], Part::Mode(next)) => match mode.join(between, &next) {
            true => drop(parts.pop()),
            false => parts.push(Part::Mode(next)),
        },
        ([.., Part::Open(before)], Part::Open(next)) if before.len() + next.len() <= MOST_OPEN => {
            before.extend(next);
        }
        ([.., before], next) if !before.is_mode() && !next.is_mode() => {
            let (first, last) = (before.ends().0, next.ends().1);
            *before = Part::Irregular { first, last, releases: before.releases() + next.releases() };
        }
        (_, next) => parts.push(next),
    }
}

/// Whether there are so many parts that no rule is left, or too many exceptions. Once true of some of the
/// parts, it is true of all.
fn is_without_rule(parts: &[Part]) -> bool {
    let modes = parts.iter().filter(|part| part.is_mode()).count();
    let irregular = parts.iter().filter(|part| matches!(part, Part::Irregular { .. }));
    if irregular.clone().map(Part::releases).sum::<u64>() > MOST_IRREGULAR {
        return true;
    }
    let irregular = irregular.count();
    let is_lost = |part: &Part| matches!(part, Part::Mode(mode) if mode.is_lost());
    modes.saturating_sub(1) + irregular.saturating_sub(1) > MOST_PARTS || parts.iter().any(is_lost)
}
