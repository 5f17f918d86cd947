//! From the summary to the models: offset, jitter, slips, and the releases that the typical model leaves out.

use crate::hull::{self, Point};
use crate::periodic::block::Entry;
use crate::periodic::choice::{self, Candidate};
use crate::periodic::joined::{Joined, Located};
use crate::periodic::late::LATE;
use crate::periodic::lateness::{self, Grid, Starts, Weighed};
use crate::periodic::resolve::{self, Evidence};
use crate::periodic::score::{self, Gap, REACH};
use crate::periodic::segment::Segment;
use crate::periodic::{FEWEST, PeriodicSummary, give_up, keep_slip, late, nearby};
use crate::ratio::{Ratio, div_ceil};
use crate::summary::spread::Spread;
use punctual_model::{
    self as model, Choice, Disturbance, Duration, FEWEST_TYPICAL, Fraction, Instant, LeftOut, PeriodicOn,
    Quantiles, Slip, Typical,
};
use rustc_hash::FxHashSet;

/// Least score of a slip, in periods.
const SUSPICIOUS: f64 = 0.4;

/// Each late release that is left out reduces the logarithm of the jitter by this much on average; together
/// they at least halve the jitter.
const EACH: f64 = 0.25;

/// If more than so many releases may be left out, each costs less: as much as these, if all are left out.
const FEW: f64 = 8.0;

/// A rounder period has clearly less jitter if it is less by one part in so many.
const CLEARLY: i128 = 8;

/// By how many times the mean lateness a rounder period may lie lower in the middle: windows that open early
/// say nothing about the period.
const MOST_DROP: f64 = 2.0;

impl PeriodicSummary {
    /// The periodic model, sound for every release. `None` for fewer than three releases, and if no period
    /// above zero explains them (all at once, or bounds that run backwards).
    pub fn model(&self) -> Option<model::Periodic> {
        self.inferred().map(|(model, ..)| model)
    }

    /// The periodic model, and percentiles of lateness: after known arrivals, else after those of the typical
    /// model.
    pub fn models(&self) -> (Option<model::Periodic>, Option<Quantiles>) {
        let (model, lateness) = self.weighed();
        (model, lateness.and_then(|values| lateness::quantiles(&values)))
    }

    /// The periodic model, and how late how many releases were, each with its weight.
    pub(crate) fn weighed(&self) -> (Option<model::Periodic>, Option<Weighed>) {
        if self.out_of_range {
            return (None, None);
        }
        let Some((model, starts, base)) = self.inferred() else {
            return (None, self.lateness.weighed(None));
        };
        let (offset, jitter) = model
            .typical
            .as_ref()
            .map_or((model.offset_ns, model.jitter_ns), |typical| (typical.offset_ns, typical.jitter_ns));
        let exact =
            model.period_exact.unwrap_or(Fraction { numerator: model.period_ns.ns(), denominator: 1 });
        let base = base.unwrap_or(i128::from(offset) - i128::from(self.base));
        let grid = Grid { base, exact, jitter: jitter.ns(), starts };
        let lateness = self.lateness.weighed(Some(&grid));
        (Some(model), lateness)
    }

    /// The model; the first release and activation of each segment, unless activations were skipped inside
    /// one; and from where the typical latest bounds are late, if that is known.
    fn inferred(&self) -> Option<Inferred> {
        if self.out_of_range || self.count < FEWEST {
            return None;
        }
        self.explained(|query, found| {
            let inferred = query.inferred(found);
            query.better(&inferred).map(|regular| (regular, None, None)).or(inferred)
        })
    }

    /// The least jitter for every period, with the activations of the model. `None` if that is out of range.
    pub(crate) fn spread(&self) -> Option<Spread> {
        if self.out_of_range {
            return None;
        }
        if self.count == 0 {
            return Some(Spread::default());
        }
        self.explained(|query, found| match query.better(&query.inferred(found)) {
            Some(regular) => Spread::around(
                i64::try_from(regular.period_ns.ns()).ok()?,
                i64::try_from(regular.jitter_ns.ns()).ok()?,
                (self.count - 1).saturating_add(regular.skipped),
            ),
            None => {
                let shifts = found.map_or(vec![0; query.segments.len()], |it| never_falling(&it.shifts));
                let sides = Sides::new(&query.segments, &shifts);
                Spread::new(&sides.lower, &sides.upper)
            }
        })
    }

    /// What a query finds with the slips that give the shorter description, and that description.
    fn explained<R>(&self, of: impl FnOnce(&Query, Option<&Evidence>) -> R) -> R {
        // The gaps of the block have not been looked at.
        let mut summary = self.clone();
        summary.take_block();
        let disturbed_by = |disturbance: Disturbance| -> Vec<i64> {
            self.disturbed.iter().filter(|(_, reason)| *reason == disturbance).map(|(at, _)| *at).collect()
        };
        let (not_releases, signalled) =
            (disturbed_by(Disturbance::Ending), disturbed_by(Disturbance::Signal));
        let unknown = (self.count - self.known_arrivals) as i64;
        let resolve = |query: &Query| match self.count < FEWEST {
            true => None,
            false => resolve::resolve(&query.segments, unknown, &not_releases, &signalled),
        };
        let mut query = summary.query();
        let mut found = resolve(&query);
        if let Some(unshifted) = summary.unshifted_query() {
            let other = resolve(&unshifted);
            // Slips are inferred only if that gives the shorter description.
            let is_shorter =
                |other: &Evidence| found.as_ref().is_none_or(|found| other.length < found.length);
            if found.is_none() || other.as_ref().is_some_and(is_shorter) {
                (query, found) = (unshifted, other);
            }
        }
        of(&query, found.as_ref())
    }

    /// All releases in segments that are joined where there is no slip.
    fn query(&self) -> Query<'_> {
        let mut inside = self.segments.clone();
        give_up(&mut inside, late::MOST);
        let all = self.with_ends(inside);
        let suspicious = SUSPICIOUS * resolve::mean_gap(&all);
        let is_closed = |gap: &Gap| self.is_plain || (gap.score as f64) < suspicious;
        let mut slips = self.slips.clone();
        let inferred = self.unshifted.iter().flat_map(|unshifted| &unshifted.slips);
        inferred.for_each(|slip| keep_slip(&mut slips, slip.0, slip.1));
        Query { summary: self, segments: joined(all, &mut slips, is_closed), slips }
    }

    /// The same with known slips alone. `None` if no others have been inferred.
    fn unshifted_query(&self) -> Option<Query<'_>> {
        let all = self.with_ends(vec![self.unshifted.as_ref()?.all.clone()]);
        let mut slips = self.slips.clone();
        Some(Query { summary: self, segments: joined(all, &mut slips, |_| true), slips })
    }

    /// These segments between those of the first and of the last releases.
    fn with_ends(&self, inside: Vec<Segment>) -> Vec<Segment> {
        let tail: Vec<Entry> = self.tail.entries().collect();
        if inside.is_empty() {
            return (0..tail.len()).map(|at| alone(&tail, at)).collect();
        }
        let first = (0..REACH).map(|at| alone(&self.head, at));
        first.chain(inside).chain((REACH..tail.len()).map(|at| alone(&tail, at))).collect()
    }
}

/// Joins segments where the gap between them is closed; keeps the slips there.
fn joined(all: Vec<Segment>, slips: &mut Vec<(i64, i64)>, is_closed: impl Fn(&Gap) -> bool) -> Vec<Segment> {
    let mut joined: Vec<Segment> = Vec::new();
    for segment in all {
        let shift = segment.gap.known_shift();
        match joined.last_mut().filter(|_| segment.gap.is_closed || is_closed(&segment.gap)) {
            Some(last) => {
                if shift > 0 {
                    keep_slip(slips, segment.from, shift);
                }
                last.append(&segment, shift);
            }
            None => joined.push(segment),
        }
    }
    joined
}

/// A segment of one release; its gap is scored by the neighbours that there are.
fn alone(entries: &[Entry], at: usize) -> Segment {
    let entry = entries[at];
    let from = at.saturating_sub(REACH);
    let (near, advance): (Vec<i64>, Vec<i64>) = entries[from..entries.len().min(at + REACH)]
        .iter()
        .map(|entry| (entry.evidence, entry.advance))
        .unzip();
    let gap = if entry.advance > 1 && at > 0 {
        Gap::known(entry.advance)
    } else {
        let near_enough = at >= 3 && entries.len() - at >= 3;
        let found = score::gap(&near, &advance, at - from).filter(|_| near_enough);
        Gap { shift: 0, is_closed: false, ..found.unwrap_or_default() }
    };
    Segment::new(gap, entry)
}

/// Everything the models are made of.
struct Query<'a> {
    summary: &'a PeriodicSummary,
    segments: Vec<Segment>,
    slips: Vec<(i64, i64)>,
}

/// A model; the first release and activation of each segment; from where typical latest bounds are late.
type Inferred = (model::Periodic, Option<Starts>, Option<i128>);

impl Query<'_> {
    /// The model of the shortest description, if there is one; else that of least jitter.
    fn inferred(&self, found: Option<&Evidence>) -> Option<Inferred> {
        match found {
            Some(evidence) => self
                .chosen(evidence)
                .map(|(model, lowest)| (model, self.starts(&evidence.shifts), Some(lowest))),
            None => {
                let starts = self.starts(&vec![0; self.segments.len()]);
                self.with_least_jitter().map(|model| (model, starts, None))
            }
        }
    }

    /// The model of arrivals on a grid, if the jitter of the other one is greater by half a period.
    fn better(&self, than: &Option<Inferred>) -> Option<model::Periodic> {
        let regular = self.regular()?;
        let most = regular.jitter_ns.ns() + regular.period_ns.ns() / 2;
        than.as_ref().is_none_or(|(model, ..)| model.jitter_ns.ns() > most).then_some(regular)
    }

    /// The models with the period that has the shortest description, and from where the typical latest bounds
    /// are late.
    fn chosen(&self, evidence: &Evidence) -> Option<(model::Periodic, i128)> {
        let candidates = choice::candidates(evidence);
        let mut best = *candidates.first()?;
        let sides = Sides::new(&self.segments, &never_falling(&evidence.shifts));
        let greatest = |period: Ratio| sides.strip(period).map(|strip| strip.height());
        if let Some(rounder) = rounder_with_less_jitter(evidence, &candidates, &best, greatest) {
            best = rounder;
        }
        if best.is_decimal {
            best = whole_instead(evidence, &candidates, best);
        }
        let jitter = |period: Ratio| Strips::new(evidence, period).jitter();
        best = nearby::preferred(evidence, &candidates, best, jitter, greatest);
        if best.is_long_frequency() {
            best = whole_instead(evidence, &candidates, best);
            best = nearby::preferred(evidence, &candidates, best, jitter, greatest);
        }
        let typical = Strips::new(evidence, best.period);
        let mut model = self.conservative(best.period, best.choice, &evidence.shifts)?;
        // Extra releases count differently in the two models; a typical jitter above the greatest one would
        // say nothing.
        model.typical =
            self.typical(&typical, evidence).filter(|typical| typical.jitter_ns <= model.jitter_ns);
        self.add_slips(&mut model, &evidence.shifts);
        Some((model, typical.offset))
    }

    /// If the lowest releases do not rise: the model with the period of least jitter.
    fn with_least_jitter(&self) -> Option<model::Periodic> {
        let shifts = vec![0; self.segments.len()];
        let (period, _) = Sides::new(&self.segments, &shifts).least_jitter()?;
        let mut model = self.conservative(period, Choice::LeastJitter, &shifts)?;
        self.add_slips(&mut model, &shifts);
        Some(model)
    }

    /// The model of arrivals that are all known and on a grid.
    fn regular(&self) -> Option<model::Periodic> {
        let regular = self.summary.steps.regular()?;
        let jitter_ns = Duration::from_ns(u64::try_from(regular.jitter).ok()?);
        let slip = |&(at, activations): &(i64, i64)| Some(Slip { at_ns: self.instant(at)?, activations });
        Some(model::Periodic {
            on: PeriodicOn::Arrival,
            period_ns: Duration::from_ns(u64::try_from(regular.period).ok()?),
            period_exact: None,
            offset_ns: self.at(i128::from(regular.offset))?,
            jitter_ns,
            least_jitter_ns: jitter_ns,
            choice: Choice::Rounded,
            approximate: false,
            skipped: regular.skipped,
            extra: 0,
            slips: regular.slips.iter().filter_map(slip).collect(),
            typical: None,
        })
    }

    /// The model that covers every release: shifts before an extra release are lowered, so that k_j
    /// increases.
    fn conservative(&self, period: Ratio, choice: Choice, shifts: &[i64]) -> Option<model::Periodic> {
        let sides = Sides::new(&self.segments, &never_falling(shifts));
        let (_, least_jitter) = sides.least_jitter()?;
        let strip = sides.strip(period)?;
        let offset = strip.bottom.div_euclid(strip.scale);
        let jitter = div_ceil(strip.top, strip.scale) - offset;
        let fraction = Fraction {
            numerator: u64::try_from(period.numerator()).ok()?,
            denominator: u64::try_from(period.denominator()).ok()?,
        };
        Some(model::Periodic {
            on: if self.summary.knows_arrivals() { PeriodicOn::Arrival } else { PeriodicOn::Release },
            period_ns: Duration::from_ns(u64::try_from(period.rounded()).ok().filter(|&ns| ns > 0)?),
            period_exact: (fraction.denominator > 1).then_some(fraction),
            offset_ns: self.at(offset)?,
            jitter_ns: Duration::from_ns(u64::try_from(jitter).ok()?),
            least_jitter_ns: Duration::from_ns(u64::try_from(least_jitter).ok()?),
            choice,
            approximate: self.summary.is_cut,
            skipped: 0,
            extra: 0,
            slips: Vec::new(),
            typical: None,
        })
    }

    fn typical(&self, strips: &Strips, evidence: &Evidence) -> Option<Typical> {
        let reason = |at: i64| {
            let disturbed = self.summary.disturbed.iter().find(|(disturbed, _)| *disturbed == at);
            let is_stall = self.summary.stalls.iter().any(|(_, stalled)| *stalled == at);
            disturbed.map(|(_, reason)| *reason).or(is_stall.then_some(Disturbance::Stall))
        };
        let mut left_out = Vec::new();
        for out in &evidence.left_out {
            let at = latest(evidence, out);
            let off = strips.off(out.point, at);
            // What is not a release may still lie within the jitter.
            left_out.extend((off != 0).then(|| (at, off, reason(at))));
        }
        left_out.extend(strips.late().map(|(out, off)| (-out.point.y, off, reason(-out.point.y))));
        left_out.sort_unstable();
        explain_backlogs(&mut left_out, strips.jitter());
        let release = |(at, off, reason): (i64, i128, Option<Disturbance>)| {
            Some(LeftOut { at_ns: self.instant(at)?, off_ns: i64::try_from(off).ok()?, reason })
        };
        Some(Typical {
            offset_ns: self.at(strips.offset)?,
            jitter_ns: Duration::from_ns(u64::try_from(strips.jitter()).ok()?),
            left_out: left_out.into_iter().map(release).collect::<Option<_>>()?,
        })
    }

    /// Adds the numbers of skipped activations and extra releases, and the first places.
    fn add_slips(&self, model: &mut model::Periodic, shifts: &[i64]) {
        let inside: i64 = self.segments.iter().map(|segment| segment.skipped).sum();
        let mut slips = self.slips.clone();
        let (mut skipped, mut extra) = (inside, 0);
        for (pair, segment) in shifts.windows(2).zip(self.segments.iter().skip(1)) {
            let rise = pair[1] - pair[0];
            skipped += rise.max(0);
            extra += (-rise).max(0);
            if rise != 0 {
                keep_slip(&mut slips, segment.from, rise);
            }
        }
        model.skipped = skipped.unsigned_abs();
        model.extra = extra.unsigned_abs();
        let slip = |&(at, activations): &(i64, i64)| Some(Slip { at_ns: self.instant(at)?, activations });
        model.slips = slips.iter().filter_map(slip).collect();
    }

    fn starts(&self, shifts: &[i64]) -> Option<Starts> {
        let (mut release, mut activation) = (0, 0);
        let mut starts = Vec::with_capacity(shifts.len());
        for (segment, shift) in self.segments.iter().zip(shifts) {
            starts.push((release, activation + shift - shifts[0]));
            release += segment.sums.count.unsigned_abs();
            activation += segment.span;
        }
        self.segments.iter().all(|segment| segment.skipped == 0).then_some(starts)
    }

    fn at(&self, relative: i128) -> Option<i64> {
        i64::try_from(relative + i128::from(self.summary.base)).ok()
    }

    fn instant(&self, relative: i64) -> Option<Instant> {
        u64::try_from(i128::from(relative) + i128::from(self.summary.base)).ok().map(Instant::from_ns)
    }
}

/// A period that takes fewer digits and has clearly less jitter over all releases, which `greatest` tells.
/// Early ones that may not be left out tilt the hull: a period that follows them is later on average, and in
/// all, than the true one.
fn rounder_with_less_jitter(
    evidence: &Evidence,
    candidates: &[Candidate],
    best: &Candidate,
    greatest: impl Fn(Ratio) -> Option<i128>,
) -> Option<Candidate> {
    let most = greatest(best.period)?;
    let typical = |period: Ratio| Strips::new(evidence, period).jitter();
    let rounder = candidates.iter().filter(|candidate| {
        candidate.digits < best.digits
            && evidence.drop(candidate.period) <= MOST_DROP * evidence.mean_lateness
    });
    let mut less: Vec<(i128, &Candidate)> = rounder
        .filter_map(|candidate| Some((greatest(candidate.period)?, candidate)))
        .filter(|(jitter, _)| jitter * CLEARLY <= most * (CLEARLY - 1))
        .collect();
    let least = less.iter().map(|(jitter, _)| *jitter).min()?;
    less.retain(|(jitter, _)| jitter * (CLEARLY - 1) <= least * CLEARLY);
    let (_, rounder) = less.into_iter().min_by_key(|(jitter, found)| (found.digits, *jitter))?;
    (typical(rounder.period) <= typical(best.period)).then_some(*rounder)
}

/// Whole nanoseconds in place of a fraction, if they hardly have more jitter: by less than releases are late
/// on average, or a clock counts, none can be told from another.
fn whole_instead(evidence: &Evidence, candidates: &[Candidate], best: Candidate) -> Candidate {
    let jitter = |period: Ratio| Strips::new(evidence, period).jitter();
    let slack = evidence.mean_lateness.max(1.0);
    let most = jitter(best.period) + slack as i128;
    let fits = |candidate: &&Candidate| {
        candidate.is_whole() && evidence.drop(candidate.period) <= slack && jitter(candidate.period) <= most
    };
    candidates.iter().find(fits).copied().unwrap_or(best)
}

/// The latest bound of one of the lowest releases. If it was dropped, a known arrival takes its place.
fn latest(evidence: &Evidence, out: &Located) -> i64 {
    let find = |points: &[Located]| points.iter().find(|located| located.is(out)).map(|found| found.point.y);
    find(&evidence.joined.high)
        .or_else(|| find(&evidence.joined.late))
        .map_or(out.point.y, |mirrored| -mirrored)
}

/// Whose activation came before a late release that a signal or a stall explains waited for the same reason;
/// so did, in turn, those whose activation came before its release. Releases are in order: latest bound, how
/// far outside, reason.
fn explain_backlogs(left_out: &mut [(i64, i128, Option<Disturbance>)], jitter: i128) {
    let mut before = None;
    for (at, off, reason) in left_out {
        if *off <= 0 {
            continue;
        }
        let activated = i128::from(*at) - *off - jitter;
        *reason = reason.or(before.and_then(|(end, why)| (activated <= end).then_some(why)));
        let delays = reason.filter(|reason| *reason != Disturbance::Ending);
        before = delays.map(|why| (i128::from(*at), why)).or(before);
    }
}

/// Each shift lowered to the least of those after it.
fn never_falling(shifts: &[i64]) -> Vec<i64> {
    let mut lowered = shifts.to_vec();
    for at in (1..lowered.len()).rev() {
        lowered[at - 1] = lowered[at - 1].min(lowered[at]);
    }
    lowered
}

/// The strip of a given slope that contains all releases but those left out: each from its known arrival, or
/// else its latest bound, to its latest bound. Windows may open a period before; an offset that followed them
/// would make every other release late by as much.
struct Strips {
    period: Ratio,
    offset: i128,
    jitter: i128,
    /// Late releases left out, and their heights above the offset.
    late: Vec<(i128, Located)>,
}

impl Strips {
    fn new(evidence: &Evidence, period: Ratio) -> Strips {
        let joined = &evidence.joined;
        let is_inside = |located: &&Located| !evidence.left_out.iter().any(|out| out.is(located));
        let scale = period.denominator();
        let lowest = joined.low.iter().filter(is_inside).map(|low| hull::above(low.point, period)).min();
        let offset = lowest.map_or(0, |above| above.div_euclid(scale));
        let above = |located: &Located| {
            let mirrored =
                i128::from(located.point.y) * scale + i128::from(located.point.x) * period.numerator();
            -mirrored.div_euclid(scale)
        };
        let mut latest: Vec<(i128, Located)> = [&joined.high, &joined.late]
            .into_iter()
            .flatten()
            .filter(is_inside)
            .map(|high| (above(high), *high))
            .collect();
        let allowed = (joined.sums.count / 1_000).max(1);
        let each = EACH * (FEW / allowed as f64).min(1.0);
        let allowed = allowed - evidence.left_out.len() as i64;
        let most = if joined.sums.count >= FEWEST_TYPICAL as i64 { allowed.max(0) as usize } else { 0 };
        keep_first(&mut latest, most + 1);
        let height = |late: usize| latest.get(late).map_or(0, |(above, _)| *above) - offset;
        let cost = |late: usize| (height(late).max(1) as f64).ln() + each * late as f64;
        let mut best = 0;
        let most = if most > 0 { most.min(most_late(&latest, &joined.late)) } else { 0 };
        for late in 1..=most {
            if cost(late) < cost(best) {
                best = late;
            }
        }
        if 2 * height(best) > height(0) {
            best = 0;
        }
        let jitter = height(best);
        latest.truncate(best);
        let late = latest.iter().map(|(above, located)| (above - offset, *located)).collect();
        Strips { period, offset, jitter, late }
    }

    /// The jitter without the releases left out.
    fn jitter(&self) -> i128 {
        self.jitter
    }

    /// Late releases left out, and how far beyond the jitter they are.
    fn late(&self) -> impl Iterator<Item = (&Located, i128)> {
        self.late.iter().map(|(above, located)| (located, above - self.jitter))
    }

    /// How far a release is before its arrival (negative) or beyond the jitter (positive); else 0.
    fn off(&self, low: Point, latest: i64) -> i128 {
        let above =
            |y: i64| hull::above(Point { y, ..low }, self.period) - self.offset * self.period.denominator();
        let down = above(low.y).div_euclid(self.period.denominator());
        if down < 0 {
            down
        } else {
            (div_ceil(above(latest), self.period.denominator()) - self.jitter()).max(0)
        }
    }
}

/// Keeps the so many latest, the latest first; of equal ones, the last by index of arrival, then the first of
/// the list.
fn keep_first(latest: &mut Vec<(i128, Located)>, number: usize) {
    let rank = |(above, located): &(i128, Located)| (-above, -located.point.x);
    if number < latest.len() {
        // As a stable sort of all would have it, which takes longer.
        let mut ranked: Vec<_> = latest.iter().map(rank).zip(0..).collect();
        let (_, &mut least, _) = ranked.select_nth_unstable(number);
        let mut at = 0;
        latest.retain(|it| {
            at += 1;
            (rank(it), at - 1) < least
        });
    }
    latest.sort_by_key(rank);
}

/// How many of the latest releases, the latest first, may be left out: what comes next has to be known, and
/// of the releases that are not kept one by one, only the `LATE + 1` latest are.
fn most_late(latest: &[(i128, Located)], one_by_one: &[Located]) -> usize {
    let one_by_one: FxHashSet<(usize, i64)> =
        one_by_one.iter().map(|located| (located.segment, located.point.x)).collect();
    let mut others = 0;
    let known = latest.iter().take_while(|(_, located)| {
        others += usize::from(!one_by_one.contains(&(located.segment, located.point.x)));
        others <= LATE + 1
    });
    known.count().saturating_sub(1)
}

/// The hulls of all releases, with shifts that never fall.
struct Sides {
    lower: Vec<Point>,
    upper: Vec<Point>,
}

impl Sides {
    fn new(segments: &[Segment], shifts: &[i64]) -> Sides {
        let joined = Joined::new(segments, shifts);
        let hull = |side: &[Located]| hull::lower(side.iter().map(|located| located.point));
        let mut high = [&joined.high[..], &joined.late].concat();
        high.sort_by_key(|located| (located.point.x, located.point.y));
        Sides { lower: hull(joined.floor()), upper: hull(&high) }
    }

    /// The period of least jitter, which is the slope of a hull edge, and that jitter. `None` unless the
    /// period is above zero.
    fn least_jitter(&self) -> Option<(Ratio, i128)> {
        let mut slopes: Vec<Ratio> =
            hull::slopes(&self.lower).chain(hull::slopes(&self.upper).map(Ratio::negated)).collect();
        slopes.sort_unstable();
        // Jitter is convex in the period, so the first slope that the next one does not improve on is the
        // best; unless the next one is the same slope, of an edge of the other hull.
        slopes.dedup();
        let (mut low, mut high) = (0, slopes.len().checked_sub(1)?);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.strip(slopes[middle])?.is_no_higher_than(&self.strip(slopes[middle + 1])?) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let period = Some(slopes[low]).filter(|period| period.is_positive())?;
        Some((period, self.strip(period)?.height()))
    }

    /// The strip of slope `period` that contains all points.
    fn strip(&self, period: Ratio) -> Option<Strip> {
        Some(Strip {
            bottom: hull::intercept(&self.lower, period)?,
            top: -hull::intercept(&self.upper, period.negated())?,
            scale: period.denominator(),
        })
    }
}

/// Where a strip crosses index 0; both ends times `scale`.
struct Strip {
    bottom: i128,
    top: i128,
    scale: i128,
}

impl Strip {
    /// The least jitter for the strip's period, rounded up.
    fn height(&self) -> i128 {
        div_ceil(self.top - self.bottom, self.scale)
    }

    /// Compares heights without cross-multiplying, which would overflow.
    fn is_no_higher_than(&self, other: &Strip) -> bool {
        let parts = |strip: &Strip| {
            let height = strip.top - strip.bottom;
            (height.div_euclid(strip.scale), height.rem_euclid(strip.scale))
        };
        let ((whole, rest), (other_whole, other_rest)) = (parts(self), parts(other));
        (whole, rest * other.scale) <= (other_whole, other_rest * self.scale)
    }
}
