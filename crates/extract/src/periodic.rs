//! Exact periodic inference: which offset, period and jitter explain every release. (papers: LiME, Section IV-C.)
//!
//! Release j is the point (j, when). A model with period T is sound if a strip of slope T holds all points, and its jitter is the
//! strip's height, so the lower hull of the earliest bounds and the upper hull of the latest ones decide it for every period at
//! once. Which period to print is another matter, and [`crate::choice`]'s.

use crate::choice::{self, Evidence};
use crate::hull::{Hull, LIMIT, Point};
use crate::ratio::Ratio;
use punctual_model as model;
use punctual_model::{Choice, Duration, Instant, PeriodicOn, Release};

/// Fewest releases that a periodic model is made of: two have every jitter-free period between them, and mean nothing.
const FEWEST: u64 = 3;

/// Most releases that are taken into account, so that products of index and time fit 128 bits: a thousand years at 30 Hz.
const MOST_RELEASES: u64 = 1 << 40;

/// Everything that periodic models of a stream of releases depend on, in constant memory. Pieces merge exactly.
#[derive(Clone, Debug, Default)]
pub struct PeriodicSummary {
    /// The first release's earliest bound: coordinates are relative to it.
    base: u64,
    count: u64,
    known_arrivals: u64,
    /// The arrival or the earliest bound of every release.
    lower: Points,
    /// The points of `lower` that are no mere bounds: known arrivals and exact releases. Absent while that is all of them.
    certain: Option<Points>,
    /// The latest bound of every release, mirrored.
    upper: Hull,
    out_of_range: bool,
}

/// The lower hull of some points, with their number and their sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Points {
    pub hull: Hull,
    pub count: u64,
    pub sum_x: i128,
    pub sum_y: i128,
}

impl Points {
    #[inline]
    fn push(&mut self, point: Point) {
        self.count += 1;
        self.sum_x += i128::from(point.x);
        self.sum_y += i128::from(point.y);
        self.hull.push(point);
    }

    fn append(&mut self, later: &Points, x: i64, y: i64) {
        self.count += later.count;
        self.sum_x += later.sum_x + i128::from(later.count) * i128::from(x);
        self.sum_y += later.sum_y + i128::from(later.count) * i128::from(y);
        self.hull.append(&later.hull, x, y);
    }
}

impl PeriodicSummary {
    /// A summary of no releases.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next release. Amortised O(1).
    #[inline]
    pub fn push(&mut self, release: &Release) {
        let (earliest, latest) = (release.window.earliest(), release.window.latest());
        if self.count == 0 {
            self.base = earliest.ns();
        }
        // A release before the arrival is that of a sleep that a signal ended: the arrival has nothing to do with it.
        let arrival = release.arrival.filter(|&arrival| arrival <= latest);
        let lower = arrival.map_or(earliest, |arrival| arrival.min(earliest));
        let certain = arrival.or((earliest == latest).then_some(earliest));
        let x = self.count;
        self.count += 1;
        self.known_arrivals += u64::from(arrival.is_some());
        self.out_of_range |= self.base.abs_diff(lower.ns()).max(self.base.abs_diff(latest.ns())) > LIMIT as u64;
        self.out_of_range |= self.count > MOST_RELEASES;
        if self.out_of_range {
            return;
        }
        let point = |at: Instant| Point { x: x as i64, y: at.ns().wrapping_sub(self.base) as i64 };
        let (lower, upper, certain) = (point(lower), point(latest), certain.map(point));
        match (&mut self.certain, certain) {
            (None, Some(certain)) if certain == lower => {}
            (points, certain) => {
                let points = points.get_or_insert_with(|| self.lower.clone());
                if let Some(certain) = certain {
                    points.push(certain);
                }
            }
        }
        self.lower.push(lower);
        self.upper.push(Point { x: upper.x, y: -upper.y });
    }

    /// Adds all releases of a piece that follows this one: the same as if they had been pushed here (until a hull's cap is reached).
    pub fn merge(&mut self, later: &PeriodicSummary) {
        if self.count == 0 {
            *self = later.clone();
            return;
        }
        if later.count == 0 {
            return;
        }
        let (x, y) = (self.count as i64, later.base.wrapping_sub(self.base) as i64);
        self.count += later.count;
        self.known_arrivals += later.known_arrivals;
        self.out_of_range |= later.out_of_range || self.count > MOST_RELEASES || self.cannot_take(later);
        if self.out_of_range {
            return;
        }
        if self.certain.is_some() || later.certain.is_some() {
            let certain = self.certain.get_or_insert_with(|| self.lower.clone());
            certain.append(later.certain.as_ref().unwrap_or(&later.lower), x, y);
        }
        self.lower.append(&later.lower, x, y);
        self.upper.append(&later.upper, x, -y);
    }

    /// Whether merging gives the same as one go, with up to `between` more releases here before.
    pub fn can_merge(&self, later: &PeriodicSummary, between: usize) -> bool {
        let (certain, later_certain) = (self.certain.as_ref().unwrap_or(&self.lower), later.certain.as_ref().unwrap_or(&later.lower));
        !later.out_of_range
            && self.lower.hull.can_append(&later.lower.hull, between)
            && self.upper.can_append(&later.upper, between)
            && certain.hull.can_append(&later_certain.hull, between)
    }

    /// Whether the points of `later` lie out of range as seen from the first release here.
    fn cannot_take(&self, later: &PeriodicSummary) -> bool {
        let moved = i128::from(later.base) - i128::from(self.base);
        let beyond = |hull: &Hull, moved: i128| hull.points().iter().any(|point| (i128::from(point.y) + moved).abs() > i128::from(LIMIT));
        beyond(&later.lower.hull, moved) || beyond(&later.upper, -moved)
    }

    /// The periodic model to print: sound for every release. `None` for fewer than three releases, and where no period above
    /// zero explains them (all at once, or bounds that run backwards).
    pub fn model(&self) -> Option<model::Periodic> {
        if self.out_of_range || self.count < FEWEST {
            return None;
        }
        let least = self.least_jitter()?;
        let (period, choice) = match self.evidence() {
            Some(evidence) => choice::choose(&evidence, least),
            None => (least, Choice::LeastJitter),
        };
        let fraction =
            model::Fraction { numerator: u64::try_from(period.numerator()).ok()?, denominator: u64::try_from(period.denominator()).ok()? };
        let strip = self.strip(period)?;
        let offset = strip.bottom.div_euclid(strip.scale);
        let jitter = div_ceil(strip.top, strip.scale) - offset;
        Some(model::Periodic {
            on: if self.known_arrivals == self.count { PeriodicOn::Arrival } else { PeriodicOn::Release },
            period_ns: Duration::from_ns(u64::try_from(period.rounded()).ok().filter(|&ns| ns > 0)?),
            period_exact: (fraction.denominator > 1).then_some(fraction),
            offset_ns: i64::try_from(offset + i128::from(self.base)).ok()?,
            jitter_ns: Duration::from_ns(u64::try_from(jitter).ok()?),
            least_jitter_ns: Duration::from_ns(u64::try_from(self.strip(least)?.height()).ok()?),
            choice,
            approximate: self.lower.hull.is_cut() || self.upper.is_cut(),
            skipped: 0,
            extra: 0,
            slips: Vec::new(),
            typical: None,
        })
    }

    /// What the choice of a period rests on: the certain releases, or all of them where hardly any is certain.
    fn evidence(&self) -> Option<Evidence<'_>> {
        let certain = self.certain.as_ref().filter(|certain| certain.count >= FEWEST);
        Evidence::new(certain.unwrap_or(&self.lower))
    }

    /// The period of least jitter: the slope of a hull edge. `None` where it is not above zero.
    fn least_jitter(&self) -> Option<Ratio> {
        let mut slopes: Vec<Ratio> = self.lower.hull.slopes().chain(self.upper.slopes().map(Ratio::negated)).collect();
        slopes.sort_unstable();
        // The jitter is convex in the period, so the first slope that no next one improves on is the best; but not if the next
        // is the same one, of an edge of the other hull.
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
        Some(slopes[low]).filter(|period| period.is_positive())
    }

    /// The strip of slope `period` that holds all points.
    fn strip(&self, period: Ratio) -> Option<Strip> {
        Some(Strip {
            bottom: self.lower.hull.intercept(period)?,
            top: -self.upper.intercept(period.negated())?,
            scale: period.denominator(),
        })
    }
}

/// Where a strip crosses index 0, times `scale`.
struct Strip {
    bottom: i128,
    top: i128,
    scale: i128,
}

impl Strip {
    /// The least jitter that holds for the strip's period, rounded up.
    fn height(&self) -> i128 {
        div_ceil(self.top - self.bottom, self.scale)
    }

    /// Compares without multiplying heights, which would not fit.
    fn is_no_higher_than(&self, other: &Strip) -> bool {
        let parts = |strip: &Strip| {
            let height = strip.top - strip.bottom;
            (height.div_euclid(strip.scale), height.rem_euclid(strip.scale))
        };
        let ((whole, rest), (other_whole, other_rest)) = (parts(self), parts(other));
        (whole, rest * other.scale) <= (other_whole, other_rest * self.scale)
    }
}

fn div_ceil(dividend: i128, divisor: i128) -> i128 {
    -(-dividend).div_euclid(divisor)
}
