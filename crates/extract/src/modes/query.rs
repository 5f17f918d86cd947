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
const DEARER: f64 = 0.5;
const DEARER_NS: f64 = 1_000.0;

/// The length that each source and each mode adds to the description of a stream, in nats.
const PRICE: f64 = 30.0;

/// Less jitter than this, in nanoseconds, makes no description shorter.
const LEAST_JITTER: u64 = 1_000;

/// Of the releases, one in so many may be in no mode with sources.
const MOST_IRREGULAR: u64 = 5;

/// Several sources are one if so many of its activations have releases, from the first share to the second
/// one, and each of their periods is so near to a multiple of its own.
const DENSE: f64 = 0.8;
const ONE: f64 = 1.05;
const NEARLY: f64 = 0.03;

impl Modes {
    /// The modes, if they explain the releases in fewer words than this periodic model does.
    pub fn better_than(&self, periodic: Option<&model::Periodic>) -> Option<Vec<model::Mode>> {
        let modes = self.modes()?;
        let releases = |modes: &[&model::Mode]| modes.iter().map(|mode| mode.releases).sum::<u64>();
        let irregular: Vec<&model::Mode> = modes.iter().filter(|mode| mode.sources.is_empty()).collect();
        let all = releases(&modes.iter().collect::<Vec<_>>());
        let is_plain = is_one_source(&modes)
            || releases(&irregular) * MOST_IRREGULAR > all
            || modes.iter().any(is_thinned);
        let is_shorter = || periodic.is_none_or(|periodic| length(&modes) < length_of_one(periodic, all));
        (!is_plain && is_shorter()).then_some(modes)
    }

    /// The modes, each with its sources; without sources where nothing explains the releases. `None` if there
    /// is no rule at all.
    fn modes(&self) -> Option<Vec<model::Mode>> {
        let parts = settled(self.all()?);
        let modes = parts.iter().map(mode).collect::<Option<Vec<_>>>()?;
        // Latest bounds may run backwards.
        let instants = modes.iter().flat_map(|mode| [mode.from_ns, mode.until_ns]);
        ((1..=model::MAX_MODES).contains(&modes.len()) && instants.is_sorted()).then_some(modes)
    }
}

/// Whether a single source explains all modes that have any: between them it was disturbed.
fn is_one_source(modes: &[model::Mode]) -> bool {
    let mut sources = modes.iter().map(|mode| &mode.sources[..]).filter(|sources| !sources.is_empty());
    let first = match sources.next() {
        Some([first]) if first.burst.is_none() => first,
        None => return true,
        _ => return false,
    };
    let period = first.period_ns.ns() as f64;
    let goes_on = |sources: &[model::Source]| match sources {
        [source] if source.burst.is_none() => {
            let moved = (source.offset_ns as f64 - first.offset_ns as f64) / period;
            let drift = (source.period_ns.ns() as f64 / period - 1.0).abs();
            drift < SAME_PERIOD && (moved - moved.round()).abs() < SAME_PHASE
        }
        _ => false,
    };
    sources.all(goes_on)
}

/// Whether several sources are one that skips some activations: all their periods are multiples of its own,
/// and nearly each of its activations has a release.
fn is_thinned(mode: &model::Mode) -> bool {
    let periods = mode.sources.iter().map(|source| source.period_ns.ns() as f64);
    let Some(fastest) = periods.clone().reduce(f64::min).filter(|_| mode.sources.len() > 1) else {
        return false;
    };
    let span = (mode.until_ns.ns() - mode.from_ns.ns()) as f64;
    (1..=3).map(|parts| fastest / f64::from(parts)).any(|period| {
        let off = |other: f64| (other / period - (other / period).round()).abs();
        let share = mode.releases as f64 * period / span;
        (DENSE..=ONE).contains(&share) && periods.clone().all(|other| off(other) < NEARLY)
    })
}

/// What it takes to describe the modes: their sources, and how late each release is.
fn length(modes: &[model::Mode]) -> f64 {
    let each = modes.iter().map(|mode| {
        let usual = mode.sources.iter().map(|source| source.usual_jitter().ns()).max();
        // Without sources a release may be anywhere.
        let span = mode.until_ns.ns() - mode.from_ns.ns();
        let spread = usual.unwrap_or(span);
        PRICE * (1 + mode.sources.len()) as f64 + mode.releases as f64 * lateness(spread)
    });
    each.sum()
}

fn length_of_one(periodic: &model::Periodic, releases: u64) -> f64 {
    // The entropy of how many activations are skipped before a release.
    let advance = 1.0 + periodic.skipped as f64 / releases as f64;
    let skips = advance * advance.ln() - (advance - 1.0) * (advance - 1.0).max(f64::MIN_POSITIVE).ln();
    2.0 * PRICE + releases as f64 * (lateness(periodic.usual_jitter().ns()) + skips)
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

fn mode(part: &Part) -> Option<model::Mode> {
    let (first, last) = part.ends();
    let at = |entry: Entry| u64::try_from(entry.latest).ok().map(Instant::from_ns);
    let sources = match part {
        Part::Mode(mode) => mode.sources.iter().map(source).collect::<Option<Vec<_>>>()?,
        _ => Vec::new(),
    };
    Some(model::Mode { from_ns: at(first)?, until_ns: at(last)?, releases: part.releases(), sources })
}

/// The source with the roundest period that explains its releases nearly as well as any.
fn source(track: &Track) -> Option<model::Source> {
    let period = period(track)?;
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

fn period(track: &Track) -> Option<Ratio> {
    let jitter = |period: Ratio| strip(track, period).map(|strip| strip.height() as f64);
    let slopes = hull::slopes(&track.lower).chain(hull::slopes(&track.upper).map(Ratio::negated));
    let best = slopes
        .filter(|slope| slope.is_positive())
        .filter_map(|slope| Some((jitter(slope)?, slope)))
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    let most = best.0 * (1.0 + DEARER) + DEARER_NS;
    let whole = i64::try_from(best.1.rounded()).ok()?;
    let rounded = (1..=MOST_DIGITS).map(|digits| Ratio::whole(rounded(whole, digits).into()));
    let mut fitting = rounded.filter(|period| jitter(*period).is_some_and(|jitter| jitter <= most));
    Some(fitting.next().unwrap_or(best.1))
}
