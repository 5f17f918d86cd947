//! From the parts of a stream to its modes, as the timing model has them.

use crate::hull;
use crate::modes::mode::{MOST_DIGITS, Mode, SAME_PERIOD, SAME_PHASE, Track, rounded};
use crate::modes::releases::Entry;
use crate::modes::{Modes, Part};
use crate::ratio::{Ratio, div_ceil};
use punctual_model as model;
use punctual_model::{Burst, Duration, Fraction, Instant};

/// Most releases between two modes that are put down to the first one.
const FEW: usize = 2;

/// The jitter of a rounder period may be greater by this share, and by so many nanoseconds.
const DEARER: f64 = 0.2;
const DEARER_NS: f64 = 1_000.0;

/// The length that each source and each mode adds to the description of a stream, in nats.
pub(super) const PRICE: f64 = 30.0;

/// Less jitter than this, in nanoseconds, makes no description shorter.
pub(super) const LEAST_JITTER: u64 = 1_000;

/// Of the releases, one in so many may be in no mode with sources.
const MOST_IRREGULAR: u64 = 5;

/// A mode between two modes of the same source is a backlog if it has fewer releases than this, lasts for
/// fewer periods of the source, or has nearly the same period.
const FEW_OF_BACKLOG: u64 = 64;
const SHORT: f64 = 8.0;
const CATCHING_UP: f64 = 0.06;

/// At most one release in this number is in backlogs.
const MOST_DISTURBED: u64 = 5;

/// A mode with fewer than one in this number of the releases of the longest mode is not used as a reference.
const FEW_OF_ALL: u64 = 20;

/// The greatest jitter, in periods, from which the phase can be determined.
const BLURRED_PHASE: f64 = 0.2;

/// The most modes with the same period. With more, the phase drifts.
const MOST_MOVES: usize = 4;

/// Fewest activations of one of several sources.
pub(super) const FEWEST_ACTIVATIONS: u64 = 8;

/// The least share of the activations of slower sources that have releases of their own; others coincide with
/// those of the fastest source.
const OWN: f64 = 0.4;

/// The greatest jitter, in periods, with which several sources can be told apart.
pub(super) const BLURRED: f64 = 0.5;

impl Modes {
    /// The modes, if their description of the releases is shorter than that by this periodic model.
    pub fn better_than(
        &self,
        periodic: Option<&model::Periodic>,
        knows_arrivals: bool,
    ) -> Option<Vec<model::Mode>> {
        let parts = settled(self.all()?);
        if are_one_source(&parts) || parts.iter().filter_map(Part::mode).any(Mode::is_thinned) {
            return None;
        }
        let modes = modes(&parts)?;
        let is_exact = knows_arrivals && parts.iter().all(|part| part.mode().is_some_and(Mode::is_exact));
        let releases = |modes: &[&model::Mode]| modes.iter().map(|mode| mode.releases).sum::<u64>();
        let irregular: Vec<&model::Mode> = modes.iter().filter(|mode| mode.sources.is_empty()).collect();
        let all = releases(&modes.iter().collect::<Vec<_>>());
        let is_plain = is_one_source(&modes, is_exact)
            || releases(&irregular) * MOST_IRREGULAR > all
            || !modes.iter().all(|mode| has_plausible_sources(mode, knows_arrivals));
        let is_shorter = || {
            // The jitter of exact arrivals says nothing about them.
            is_exact || periodic.is_none_or(|periodic| length(&modes) < length_of_one(periodic, all))
        };
        (!is_plain && is_shorter()).then_some(modes)
    }
}

/// The modes, each with its sources; without sources where nothing explains the releases.
fn modes(parts: &[Part]) -> Option<Vec<model::Mode>> {
    let tracks = || parts.iter().filter_map(Part::mode).flat_map(|mode| &mode.sources);
    let likely = tracks().map(Likely::of).collect::<Option<Vec<_>>>()?;
    let modes = parts.iter().map(|part| mode(part, &likely)).collect::<Option<Vec<_>>>()?;
    // Latest bounds may run backwards.
    let instants = modes.iter().flat_map(|mode| [mode.from_ns, mode.until_ns]);
    ((1..=model::MAX_MODES).contains(&modes.len()) && instants.is_sorted()).then_some(modes)
}

/// Whether the same source, disturbed in between, explains all modes; true if there are none.
fn are_one_source(parts: &[Part]) -> bool {
    let modes: Vec<&Mode> = parts.iter().filter_map(Part::mode).collect();
    let is_plain = |mode: &&Mode| matches!(&mode.sources[..], [source] if source.jobs == 1);
    modes.iter().all(is_plain) && modes.windows(2).all(|two| two[0].sources[0].may_be(&two[1].sources[0]))
}

/// The source of a mode that has one, without bursts.
fn only(mode: &model::Mode) -> Option<&model::Source> {
    match &mode.sources[..] {
        [source] if source.burst.is_none() => Some(source),
        _ => None,
    }
}

/// Whether one source explains all modes. It may have been disturbed and have caught up since, or its phase
/// may drift, like that of a thread that sleeps for a time rather than until one.
fn is_one_source(modes: &[model::Mode], is_exact: bool) -> bool {
    let with_sources = || modes.iter().filter(|mode| !mode.sources.is_empty());
    // The reference is the mode with the most precise period; backlogs are too short.
    let most = with_sources().map(|mode| mode.releases).max().unwrap_or(0);
    let long = with_sources().filter(|mode| mode.releases >= FEW_OF_BACKLOG.max(most / FEW_OF_ALL));
    let doubt = |source: &model::Source| source.usual_jitter().ns().max(1) as f64 / source.activations as f64;
    let exact = long.filter_map(only).min_by(|a, b| doubt(a).total_cmp(&doubt(b)));
    let Some(exact) = exact else { return false };
    let period = exact.period_ns.ns() as f64;
    let drift = |source: &model::Source| (source.period_ns.ns() as f64 / period - 1.0).abs();
    let goes_on = |mode: &model::Mode| {
        only(mode).filter(|source| drift(source) < SAME_PERIOD).is_some_and(|source| {
            let moved = (source.offset_ns as f64 - exact.offset_ns as f64) / period;
            let is_blurred = !is_exact && source.usual_jitter().ns() as f64 > BLURRED_PHASE * period;
            is_blurred || (moved - moved.round()).abs() < SAME_PHASE
        })
    };
    let catches_up = |mode: &model::Mode| {
        mode.sources.is_empty()
            || mode.releases < FEW_OF_BACKLOG
            || ((mode.until_ns.ns() - mode.from_ns.ns()) as f64) < SHORT * period
            || matches!(&mode.sources[..], [source] if drift(source) < CATCHING_UP)
    };
    let all = modes.iter().map(|mode| mode.releases).sum::<u64>();
    let others = || modes.iter().filter(|mode| !goes_on(mode));
    let disturbed = others().map(|mode| mode.releases).sum::<u64>();
    let ends_same = [with_sources().next(), with_sources().next_back()].into_iter().flatten().all(goes_on);
    let moves = with_sources().all(|mode| only(mode).is_some_and(|it| drift(it) < SAME_PERIOD));
    ends_same && others().all(catches_up) && disturbed * MOST_DISTURBED <= all
        || moves && with_sources().count() > MOST_MOVES
}

/// Whether several sources of a mode are plausible: they have enough releases, and all are near their
/// activations.
fn has_plausible_sources(mode: &model::Mode, knows_arrivals: bool) -> bool {
    let sources = &mode.sources;
    let Some(fastest) = sources.iter().min_by_key(|source| source.period_ns).filter(|_| sources.len() > 1)
    else {
        return true;
    };
    let share = |source: &model::Source| fastest.period_ns.ns() as f64 / source.period_ns.ns() as f64;
    let others = sources.iter().map(share).sum::<f64>() - 1.0;
    let is_near =
        |source: &model::Source| (source.usual_jitter().ns() as f64) < BLURRED * source.period_ns.ns() as f64;
    mode.releases as f64 >= fastest.activations as f64 * (1.0 + OWN * others)
        && sources.iter().all(|source| source.activations >= FEWEST_ACTIVATIONS)
        && (knows_arrivals || sources.iter().all(is_near))
}

/// What it takes to describe the modes: their sources, and how late each release is.
fn length(modes: &[model::Mode]) -> f64 {
    let each = modes.iter().map(|mode| {
        let all = mode.sources.iter().map(|source| source.activations as f64).sum::<f64>();
        let of_source =
            |source: &model::Source| source.activations as f64 / all * lateness(source.usual_jitter().ns());
        // Without sources a release may be anywhere.
        let each = match mode.sources.is_empty() {
            true => lateness(mode.until_ns.ns() - mode.from_ns.ns()),
            false => mode.sources.iter().map(of_source).sum(),
        };
        PRICE * (1 + mode.sources.len()) as f64 + mode.releases as f64 * each
    });
    each.sum()
}

fn length_of_one(periodic: &model::Periodic, releases: u64) -> f64 {
    let skips = skipping(periodic.skipped as f64 / releases as f64);
    2.0 * PRICE + releases as f64 * (lateness(periodic.usual_jitter().ns()) + skips)
}

/// The entropy of how many activations are left out before a release, in nats, if so many are on average.
pub(super) fn skipping(skipped: f64) -> f64 {
    let advance = 1.0 + skipped;
    advance * advance.ln() - skipped * skipped.max(f64::MIN_POSITIVE).ln()
}

fn lateness(jitter: u64) -> f64 {
    (jitter.max(LEAST_JITTER) as f64).ln()
}

/// Puts each release between two modes into one of them, if it belongs there; and each of a few hundred
/// whose sources are others, if those of a neighbour explain them too.
fn settled(parts: Vec<Part>) -> Vec<Part> {
    let mut settled: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Mode(mode) => settle(&mut settled, mode),
            Part::Open(mut entries) => {
                if let Some(Part::Mode(mode)) = settled.last_mut() {
                    let more = mode.going_on(&entries);
                    mode.absorb(&entries[..more]);
                    entries.drain(..more);
                }
                if !entries.is_empty() {
                    settled.push(Part::Open(entries));
                }
            }
            irregular => settled.push(irregular),
        }
    }
    settled
}

fn settle(settled: &mut Vec<Part>, mut mode: Box<Mode>) {
    if let Some(Part::Open(entries)) = settled.last_mut() {
        let rest = entries.len() - mode.going_back(entries);
        mode.absorb_before(&entries[rest..]);
        entries.truncate(rest);
        let few = if rest <= FEW { std::mem::take(entries) } else { Vec::new() };
        if rest <= FEW {
            settled.pop();
        }
        match settled.last_mut() {
            Some(Part::Mode(earlier)) => earlier.absorb(&few),
            _ if !few.is_empty() => settled.push(Part::Open(few)),
            _ => {}
        }
    }
    let Some(Part::Mode(earlier)) = settled.last_mut() else {
        settled.push(Part::Mode(mode));
        return;
    };
    if earlier.join(&[], &mode) {
        return;
    }
    if !mode.all.is_empty() && earlier.goes_on(&mode.all) {
        earlier.absorb(&mode.all);
    } else if !earlier.all.is_empty() && mode.goes_back(&earlier.all) {
        mode.absorb_before(&earlier.all);
        settled.pop();
        settle(settled, mode);
    } else {
        settled.push(Part::Mode(mode));
    }
}

fn mode(part: &Part, likely: &[Likely]) -> Option<model::Mode> {
    let (first, last) = part.ends();
    let at = |entry: Entry| u64::try_from(entry.latest).ok().map(Instant::from_ns);
    let source = |track: &Track| source(track, shared(track, likely)?);
    let sources = match part {
        Part::Mode(mode) => mode.sources.iter().map(source).collect::<Option<Vec<_>>>()?,
        _ => Vec::new(),
    };
    Some(model::Mode { from_ns: at(first)?, until_ns: at(last)?, releases: part.releases(), sources })
}

/// The source with this period.
fn source(track: &Track, period: Ratio) -> Option<model::Source> {
    let strip = strip(track, period)?;
    let (offset, usual) = (strip.bottom.div_euclid(strip.scale), strip.height());
    // Lines of releases that are far off, and of all before an extra one.
    let above = |x: i64, y: i64| i128::from(y) * strip.scale - i128::from(x) * period.numerator();
    let lowest = track.others.iter().map(|far| above(far.activation, far.floor));
    let highest = track.others.iter().map(|far| above(far.activation, far.latest));
    let lowered = i128::from(track.extra) * period.numerator();
    let begin = i128::from(track.first) * period.numerator();
    let bottom = lowest.fold(strip.bottom, i128::min) - lowered + begin;
    let top = highest.fold(strip.top, i128::max) + begin;
    let (least, offset) = (bottom.div_euclid(strip.scale), offset + begin.div_euclid(strip.scale));
    let jitter = div_ceil(top, strip.scale) - least;
    let ns = |ns: i128| u64::try_from(ns).ok().map(Duration::from_ns);
    let fraction = Fraction {
        numerator: u64::try_from(period.numerator()).ok()?,
        denominator: u64::try_from(period.denominator()).ok()?,
    };
    let activations = (track.last - track.first) as u64 + 1;
    Some(model::Source {
        period_ns: ns(period.rounded())?,
        period_exact: (fraction.denominator > 1).then_some(fraction),
        offset_ns: i64::try_from(least).ok()?,
        jitter_ns: ns(jitter)?,
        usual_jitter_ns: (least != offset || jitter != usual).then(|| ns(usual)).flatten(),
        activations: activations.max(track.hits),
        burst: (track.jobs > 1)
            .then(|| Burst { jobs: track.jobs as u64, within_ns: Duration::from_ns(track.within as u64) }),
    })
}

/// Heights at activation 0 of the lowest and the highest line of a slope, times `scale`.
struct Strip {
    bottom: i128,
    top: i128,
    scale: i128,
}

impl Strip {
    fn height(&self) -> i128 {
        div_ceil(self.top, self.scale) - self.bottom.div_euclid(self.scale)
    }
}

fn strip(track: &Track, period: Ratio) -> Option<Strip> {
    let bottom = hull::intercept(&track.lower, period)?;
    let top = -hull::intercept(&track.upper, period.negated())?;
    Some(Strip { bottom, top, scale: period.denominator() })
}

fn jitter(track: &Track, period: Ratio) -> Option<f64> {
    strip(track, period).map(|strip| strip.height() as f64)
}

/// The roundest period that explains the releases of a source nearly as well as any.
struct Likely<'a> {
    track: &'a Track,
    period: Ratio,
    /// The greatest jitter with which a period explains them nearly as well.
    most: f64,
}

impl Likely<'_> {
    fn of(track: &Track) -> Option<Likely<'_>> {
        let slopes = hull::slopes(&track.lower).chain(hull::slopes(&track.upper).map(Ratio::negated));
        let best = slopes
            .filter(|slope| slope.is_positive())
            .filter_map(|slope| Some((jitter(track, slope)?, slope)))
            .min_by(|a, b| a.0.total_cmp(&b.0))?;
        let most = best.0 * (1.0 + DEARER) + DEARER_NS;
        let likely = |period| Likely { track, period, most };
        let whole = i64::try_from(best.1.rounded()).ok()?;
        let mut rounded = (1..=MOST_DIGITS).map(|digits| likely(Ratio::whole(rounded(whole, digits).into())));
        Some(rounded.find(|it| it.may_have(it.period)).unwrap_or(likely(best.1)))
    }

    fn may_have(&self, period: Ratio) -> bool {
        jitter(self.track, period).is_some_and(|jitter| jitter <= self.most)
    }
}

/// The period of a source: of those that it may have, the one that most sources may have. So a mode that
/// comes again has the period that it had before.
fn shared(track: &Track, likely: &[Likely]) -> Option<Ratio> {
    let own = likely.iter().find(|likely| std::ptr::eq(likely.track, track))?;
    let periods = likely.iter().rev().map(|other| other.period).filter(|period| own.may_have(*period));
    let votes = |period: &Ratio| likely.iter().filter(|other| other.may_have(*period)).count();
    // Of equals the first one.
    periods.max_by_key(votes)
}
