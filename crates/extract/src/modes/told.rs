//! Sources that the kernel tells apart: a stream whose releases say which of several things were ready, such
//! as the timers of an event loop. Each has a period of its own, found as that of a stream is.
//!
//! Not for sources that only the times of the releases show: those are found in [`super::piece`].

use crate::modes::query::{BLURRED, FEWEST_ACTIVATIONS};
use crate::modes::releases::Entry;
use crate::periodic::PeriodicSummary;
use crate::ratio::div_ceil;
use punctual_model::{Disturbance, Duration, Instant, Mode, Periodic, Quantiles, Release, Source};
use punctual_trace::Ready;

/// Most things that are told apart, and most of them that are periodic.
const MOST_KEYS: usize = 8;
const MOST_SOURCES: usize = 4;

/// Most releases of which is not known what was ready.
const MOST_UNKNOWN: usize = 16;

/// One release in so many may be of no source.
const OTHERS: u64 = 50;

/// One activation in so many may be without a release; and one release in so many may be one too many.
const SKIPPED: u64 = 10;
const EXTRA: u64 = 50;

/// A source is periodic if four in ten of its releases are late by times that differ by less than this share
/// of the period. Of random releases so many would differ by 0.4 periods.
const GATHERED: f64 = 0.125;

/// One period explains the releases as well as several sources if its jitter is not greater than that of the
/// fastest source by this share and so many nanoseconds.
const DEARER: f64 = 1.25;
const DEARER_NS: f64 = 1_000.0;

/// A release, as it comes into a stream.
#[derive(Clone, Copy)]
pub(crate) struct Next<'a> {
    pub release: &'a Release,
    pub ready: Ready,
    pub expirations: u64,
    pub disturbance: Option<Disturbance>,
}

/// What the releases of a stream say of their sources, in bounded memory. Pieces merge exactly.
#[derive(Clone, Debug, Default)]
pub(crate) enum Told {
    /// There is no release.
    #[default]
    Nothing,
    /// Nothing is known of all these releases, as of most streams: few, without more room than they need.
    Unknown(Vec<Entry>),
    Sources(Box<Sources>),
    /// Too much is not known, there are too many keys, or releases are not in order.
    Lost,
}

#[derive(Clone, Debug)]
pub(crate) struct Sources {
    first: Entry,
    last: Entry,
    /// All releases have this key and no other: the summary of the stream is that of the key.
    only: Option<u32>,
    /// By key.
    keyed: Vec<(u32, PeriodicSummary)>,
    unknown: Vec<Entry>,
}

impl Told {
    /// Adds the next release of a stream, of which `before` are all releases so far.
    #[inline]
    pub fn push(&mut self, before: &PeriodicSummary, next: Next<'_>) {
        if !matches!(self, Told::Lost) {
            self.take(before, next);
        }
    }

    fn take(&mut self, before: &PeriodicSummary, next: Next<'_>) {
        // A call that says when its timer expired, or how often, waits for that timer alone.
        let is_of_timer = next.release.arrival.is_some() || next.expirations > 1;
        let Some(entry) = Entry::of(next.release).filter(|_| !is_of_timer) else {
            *self = Told::Lost;
            return;
        };
        self.prepare(entry, next.ready);
        let is_kept = match self {
            Told::Unknown(entries) => add_unknown(entries, entry),
            Told::Sources(sources) => sources.take(before, entry, next),
            Told::Nothing | Told::Lost => false,
        };
        if !is_kept {
            *self = Told::Lost;
        }
    }

    /// Makes room for the next release.
    fn prepare(&mut self, entry: Entry, ready: Ready) {
        let sources = match self {
            Told::Nothing if ready.is_known() => Some(Sources::before(entry, ready)),
            Told::Unknown(entries) if ready.is_known() => Sources::unknown(std::mem::take(entries)),
            Told::Nothing => {
                *self = Told::Unknown(Vec::new());
                None
            }
            _ => None,
        };
        if let Some(sources) = sources {
            *self = Told::Sources(Box::new(sources));
        }
    }

    /// Appends what a piece says that follows; `before` and `after` are all releases here and there.
    pub fn merge(&mut self, before: &PeriodicSummary, later: &Told, after: &PeriodicSummary) {
        let is_kept = match (&mut *self, later) {
            (_, Told::Nothing) | (Told::Lost, _) => return,
            (Told::Nothing, _) => {
                self.clone_from(later);
                return;
            }
            (_, Told::Lost) => false,
            (Told::Unknown(mine), Told::Unknown(theirs)) => {
                theirs.iter().all(|entry| add_unknown(mine, *entry))
            }
            (Told::Unknown(mine), Told::Sources(theirs)) => {
                let Some(mut mine) = Sources::unknown(std::mem::take(mine)) else { return };
                let is_kept = mine.merge(before, theirs, after);
                *self = Told::Sources(Box::new(mine));
                is_kept
            }
            (Told::Sources(mine), Told::Unknown(theirs)) => {
                Sources::unknown(theirs.clone()).is_some_and(|theirs| mine.merge(before, &theirs, after))
            }
            (Told::Sources(mine), Told::Sources(theirs)) => mine.merge(before, theirs, after),
        };
        if !is_kept {
            *self = Told::Lost;
        }
    }

    /// Whether merging gives the same as one pass, if up to `between` more releases are added here first.
    pub fn can_merge(
        &self,
        before: &PeriodicSummary,
        later: &Told,
        after: &PeriodicSummary,
        between: usize,
    ) -> bool {
        let (Told::Sources(mine), Told::Sources(theirs)) = (self, later) else { return true };
        let can_merge = |(key, later): (u32, &PeriodicSummary)| {
            mine.summary(key, before).is_none_or(|summary| summary.can_merge(later, between))
        };
        theirs.summaries(after).all(can_merge)
    }

    /// The sources of all these releases, if they are periodic and there are several. `periodic` is the model
    /// of all releases.
    pub fn mode(&self, releases: u64, periodic: Option<&Periodic>) -> Option<Mode> {
        let Told::Sources(told) = self else { return None };
        let (sources, others) = told.periodic()?;
        let is_enough = periodic.is_some_and(|periodic| explains(periodic, &sources));
        if is_enough || sources.len() < 2 || others.len() as u64 > releases / OTHERS {
            return None;
        }
        let mut sources: Vec<Source> = sources.iter().map(Keyed::source).collect();
        sources.sort_by_key(|source| (source.period_ns, source.offset_ns, source.jitter_ns));
        allow(sources.first_mut()?, &others)?;
        let at = |entry: Entry| u64::try_from(entry.latest).ok().map(Instant::from_ns);
        Some(Mode { from_ns: at(told.first)?, until_ns: at(told.last)?, releases, sources })
    }
}

/// Adds a release of which nothing is known; false if it is out of order, or one too many.
fn add_unknown(entries: &mut Vec<Entry>, entry: Entry) -> bool {
    if entries.len() == entries.capacity() {
        // Most streams have only a few releases.
        entries.reserve_exact(if entries.is_empty() { 3 } else { MOST_UNKNOWN });
    }
    let is_kept = entries.len() < MOST_UNKNOWN && entries.last().is_none_or(|last| last.precedes(entry));
    entries.push(entry);
    is_kept
}

impl Sources {
    /// Of releases of which nothing is known; `None` if there are none.
    fn unknown(entries: Vec<Entry>) -> Option<Sources> {
        let (first, last) = (*entries.first()?, *entries.last()?);
        Some(Sources { first, last, only: None, keyed: Vec::new(), unknown: entries })
    }

    /// With no release yet, before this one.
    fn before(first: Entry, ready: Ready) -> Sources {
        let only = match ready.keys() {
            [key] => Some(*key),
            _ => None,
        };
        Sources { first, last: first, only, keyed: Vec::new(), unknown: Vec::new() }
    }

    /// Takes the next release; false if that tells too little.
    #[inline]
    fn take(&mut self, before: &PeriodicSummary, entry: Entry, next: Next<'_>) -> bool {
        if !self.last.precedes(entry) {
            return false;
        }
        self.last = entry;
        match (self.only, next.ready.keys()) {
            (Some(only), [key]) if only == *key => true,
            _ => self.take_any(before, entry, next),
        }
    }

    fn take_any(&mut self, before: &PeriodicSummary, entry: Entry, next: Next<'_>) -> bool {
        self.split(before);
        for key in next.ready.keys() {
            self.summary_mut(*key).push_with(next.release, 1, next.disturbance);
        }
        if !next.ready.is_known() {
            self.unknown.push(entry);
        }
        self.is_bounded()
    }

    /// Keeps the summary of the only key apart from that of all releases.
    fn split(&mut self, all: &PeriodicSummary) {
        if let Some(only) = self.only.take() {
            self.keyed.push((only, all.clone()));
        }
    }

    fn is_bounded(&self) -> bool {
        self.keyed.len() <= MOST_KEYS && self.unknown.len() <= MOST_UNKNOWN
    }

    /// The releases of each key, if `all` are those of the stream.
    fn summaries<'a>(&'a self, all: &'a PeriodicSummary) -> impl Iterator<Item = (u32, &'a PeriodicSummary)> {
        let only = self.only.map(|only| (only, all));
        only.into_iter().chain(self.keyed.iter().map(|(key, summary)| (*key, summary)))
    }

    fn summary<'a>(&'a self, key: u32, all: &'a PeriodicSummary) -> Option<&'a PeriodicSummary> {
        self.summaries(all).find(|(known, _)| *known == key).map(|(_, summary)| summary)
    }

    fn summary_mut(&mut self, key: u32) -> &mut PeriodicSummary {
        let place = self.keyed.partition_point(|(known, _)| *known < key);
        if self.keyed.get(place).is_none_or(|(known, _)| *known != key) {
            self.keyed.insert(place, (key, PeriodicSummary::new()));
        }
        &mut self.keyed[place].1
    }

    fn merge(&mut self, before: &PeriodicSummary, later: &Sources, after: &PeriodicSummary) -> bool {
        if !self.last.precedes(later.first) {
            return false;
        }
        self.last = later.last;
        if self.only.is_some() && self.only == later.only {
            return true;
        }
        self.split(before);
        for (key, summary) in later.summaries(after) {
            self.summary_mut(key).merge(summary);
        }
        self.unknown.extend(&later.unknown);
        self.is_bounded()
    }

    /// The models of the keys that have enough releases, and the other releases in order. `None` if one of
    /// the models says little.
    fn periodic(&self) -> Option<(Vec<Keyed>, Vec<Entry>)> {
        let (many, few): (Vec<_>, Vec<_>) =
            self.keyed.iter().map(|(_, it)| it).partition(|it| it.releases() >= FEWEST_ACTIVATIONS);
        if many.len() > MOST_SOURCES {
            return None;
        }
        let model = |summary: &&PeriodicSummary| {
            let (periodic, lateness) = summary.models();
            let found = Keyed { periodic: periodic?, lateness, releases: summary.releases() };
            found.is_plausible().then_some(found)
        };
        let sources = many.iter().map(model).collect::<Option<_>>()?;
        let window = |window| Entry::of(&Release { arrival: None, window });
        let few = few.iter().flat_map(|summary| summary.first_releases()).filter_map(window);
        let mut others: Vec<Entry> = few.chain(self.unknown.iter().copied()).collect();
        others.sort_unstable_by_key(|entry| (entry.latest, entry.floor));
        Some((sources, others))
    }
}

/// The model of the releases of one key.
struct Keyed {
    periodic: Periodic,
    lateness: Option<Quantiles>,
    releases: u64,
}

impl Keyed {
    /// Whether the period is more than a way to describe the releases.
    fn is_plausible(&self) -> bool {
        let Periodic { skipped, extra, .. } = self.periodic;
        (is_sharp(&self.periodic) || self.is_gathered())
            && skipped <= self.activations() / SKIPPED
            && extra <= self.releases / EXTRA
    }

    /// Whether four in ten releases are equally late, although others have to wait for the jobs of other
    /// sources, for more than a period after a stall.
    fn is_gathered(&self) -> bool {
        let most = GATHERED * self.periodic.period_ns.ns() as f64;
        self.lateness.is_some_and(|late| {
            let before = late.p10_ns.map_or(late.p50_ns, |p10| late.p50_ns.saturating_sub(p10));
            let behind = late.p90_ns.saturating_sub(late.p50_ns);
            (before.min(behind).ns() as f64) < most
        })
    }

    fn activations(&self) -> u64 {
        self.releases.saturating_add(self.periodic.skipped)
    }

    fn source(&self) -> Source {
        let Periodic { period_ns, period_exact, offset_ns, jitter_ns, .. } = self.periodic;
        let usual = self.periodic.usual_jitter();
        Source {
            period_ns,
            period_exact,
            offset_ns,
            jitter_ns,
            usual_jitter_ns: (usual < jitter_ns).then_some(usual),
            activations: self.activations(),
            burst: None,
        }
    }
}

/// Whether the jitter leaves no doubt of the period.
fn is_sharp(periodic: &Periodic) -> bool {
    (periodic.usual_jitter().ns() as f64) < BLURRED * periodic.period_ns.ns() as f64
}

/// Whether one period explains all releases, and as well as these sources do.
fn explains(periodic: &Periodic, sources: &[Keyed]) -> bool {
    let fastest = sources.iter().min_by_key(|it| it.periodic.period_ns);
    let usual = fastest.map_or(0, |it| it.periodic.usual_jitter().ns());
    let skipped = sources.iter().map(|it| it.periodic.skipped).sum::<u64>();
    is_sharp(periodic)
        && periodic.extra == 0
        && periodic.skipped <= skipped
        && periodic.usual_jitter().ns() as f64 <= DEARER * usual as f64 + DEARER_NS
}

/// Widens a source to allow these releases besides its own. Each of them may take the activation of its
/// neighbour, and so move all before it by a period.
fn allow(source: &mut Source, others: &[Entry]) -> Option<()> {
    if others.is_empty() {
        return Some(());
    }
    let (numerator, denominator) = match source.period_exact {
        Some(exact) => (i128::from(exact.numerator), i128::from(exact.denominator)),
        None => (i128::from(source.period_ns.ns()), 1),
    };
    let offset = i128::from(source.offset_ns);
    let activation = |entry: &Entry| ((i128::from(entry.floor) - offset) * denominator).div_euclid(numerator);
    let late = |entry: &Entry| {
        i128::from(entry.latest) - offset - (activation(entry) * numerator).div_euclid(denominator)
    };
    let more = others.len() as i128;
    let earlier = others.iter().map(activation).fold(0, i128::min).abs();
    let moved = |activations: i128| div_ceil(activations * numerator, denominator);
    let jitter = others.iter().map(late).fold(source.jitter_ns.ns().into(), i128::max);
    let usual = source.usual_jitter();
    source.offset_ns = i64::try_from(offset - moved(more + earlier)).ok()?;
    // Both are rounded: one more nanosecond.
    source.jitter_ns = Duration::from_ns(u64::try_from(jitter + moved(more) + 1).ok()?);
    source.usual_jitter_ns = (usual < source.jitter_ns).then_some(usual);
    source.activations = source.activations.saturating_add((more + earlier) as u64);
    Some(())
}
