//! One separator's jobs in all runs.

use super::curve::{Curve, Extreme, Keep, RunNumber};
use super::json;
use super::kinds;
use super::period::{self, Period};
use super::spread::Spread;
use crate::certain::Certain;
use crate::histogram::Times;
use crate::stream::Closed;
use punctual_model::{
    self as model, Arrival, Duration, Execution, Instant, MAX_SLIPS, Mode, Percentiles, Periodic, PeriodicOn,
    Quantiles, Response, SegmentBound, Separator, Slip, Sporadic, Suspension,
};
use serde::{Deserialize, Serialize};

/// What only the stream of a single task has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Alone {
    /// Its place in the task.
    pub place: u32,
    #[serde(with = "json")]
    separator: Separator,
    #[serde(with = "json")]
    shape: Shape,
    #[serde(with = "json")]
    lateness: Option<Quantiles>,
}

/// A periodic model, or modes instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Shape {
    Modes { modes: Vec<Mode> },
    Periodic(Option<Periodic>),
}

impl Shape {
    fn new(arrival: &Arrival) -> Shape {
        match &arrival.modes[..] {
            [] => Shape::Periodic(arrival.periodic.clone()),
            modes => Shape::Modes { modes: modes.to_vec() },
        }
    }

    fn periodic(&self) -> Option<Periodic> {
        match self {
            Shape::Periodic(periodic) => periodic.clone(),
            Shape::Modes { .. } => None,
        }
    }

    fn modes(&self) -> Vec<Mode> {
        match self {
            Shape::Periodic(_) => Vec::new(),
            Shape::Modes { modes } => modes.clone(),
        }
    }
}

/// One separator's jobs in all runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StreamSummary {
    /// System V identifiers are numbered, and so are addresses, those of one name apart from others.
    #[serde(with = "json")]
    pub key: Separator,
    pub alone: Option<Box<Alone>>,
    /// Tasks in which it was the primary stream, and the jobs it had there.
    pub primary_in: u64,
    pub primary_jobs: u64,
    pub releases: u64,
    uncertain: u64,
    back_to_back: u64,
    pub separation: Option<Extreme>,
    pub least: Curve,
    pub greatest: Curve,
    pub wcet: Curve,
    pub suspended: Option<Extreme>,
    /// At index n the bounds of n + 1 segments; none if no job had as many.
    segmented: Vec<Vec<(u64, u64)>>,
    pub response: Option<Extreme>,
    cost_times: Times,
    response_times: Times,
    lateness: Times,
    /// `None` if a run's times were out of range.
    pub spread: Option<Spread>,
    pub periods: Vec<Period>,
    knows_arrivals: bool,
    approximate: bool,
    skipped: u64,
    extra: u64,
    slips: Vec<(u64, i64)>,
    /// Modes of all runs that have any. In the file, those of streams of a single task are `alone`.
    #[serde(skip)]
    pub kinds: Vec<Mode>,
    /// The greatest response that is certain; `None` if that is not known, as in older files. The file has it
    /// behind the tasks.
    #[serde(skip)]
    pub certain_response: Option<u64>,
    /// All that are certain; `None` if they are not known, as in older files. The file has them last.
    #[serde(skip)]
    pub certain: Option<Certain>,
}

impl StreamSummary {
    /// The stream of one task, of the run with number 0.
    pub fn new(place: u32, model: &model::Stream, closed: Closed) -> StreamSummary {
        let extreme = |value: Duration| Extreme { ns: value.ns(), run: 0 };
        let curve = model.arrival.curve.as_ref();
        let entries = |values: Option<&Vec<Duration>>| -> Vec<u64> {
            values.into_iter().flatten().map(|value| value.ns()).collect()
        };
        let (least, greatest) =
            (entries(curve.map(|it| &it.delta_min_ns)), entries(curve.map(|it| &it.delta_max_ns)));
        let wcet = entries(model.execution.as_ref().map(|it| &it.wcet_ns));
        let periodic = model.arrival.periodic.as_ref();
        let mut segmented: Vec<Vec<(u64, u64)>> = Vec::new();
        for vector in model.suspension.iter().flat_map(|it| &it.segmented) {
            segmented.resize(vector.len() - 1, Vec::new());
            segmented.push(vector.iter().map(|it| (it.suspended_ns.ns(), it.cost_ns.ns())).collect());
        }
        StreamSummary {
            key: model.separator.lasting(),
            primary_in: 0,
            primary_jobs: 0,
            releases: model.releases,
            uncertain: model.uncertain_releases,
            back_to_back: model.back_to_back,
            separation: model.arrival.sporadic.as_ref().map(|it| extreme(it.min_separation_ns)),
            least: Curve::new(closed.curve_reach, least.into_iter()),
            greatest: Curve::new(closed.curve_reach, greatest.into_iter()),
            wcet: Curve::new(closed.wcet_reach, wcet.into_iter()),
            suspended: model.suspension.as_ref().map(|it| extreme(it.dynamic_ns)),
            segmented,
            response: model.response.as_ref().map(|it| extreme(it.max_ns)),
            cost_times: closed.cost_times,
            response_times: closed.response_times,
            lateness: model
                .percentiles
                .and_then(|it| it.lateness)
                .map(|_| closed.lateness)
                .unwrap_or_default(),
            spread: closed.spread,
            periods: periodic.map(|it| Period::new(it, model.releases)).into_iter().collect(),
            knows_arrivals: closed.knows_arrivals,
            approximate: periodic.is_some_and(|it| it.approximate),
            skipped: periodic.map_or(0, |it| it.skipped),
            extra: periodic.map_or(0, |it| it.extra),
            slips: periodic
                .into_iter()
                .flat_map(|it| &it.slips)
                .map(|it| (it.at_ns.ns(), it.activations))
                .collect(),
            kinds: kinds::of(&model.arrival.modes),
            certain_response: Some(closed.certain.greatest().ns()),
            certain: Some(closed.certain),
            alone: Some(Box::new(Alone {
                place,
                separator: model.separator,
                shape: Shape::new(&model.arrival),
                lateness: model.percentiles.and_then(|it| it.lateness),
            })),
        }
    }

    pub fn jobs(&self) -> u64 {
        self.cost_times.count()
    }

    pub fn renumber(&mut self, numbers: &[RunNumber]) {
        let extremes = [&mut self.separation, &mut self.suspended, &mut self.response];
        extremes.into_iter().flatten().for_each(|it| it.run = numbers[it.run as usize]);
        [&mut self.least, &mut self.greatest, &mut self.wcet].into_iter().for_each(|it| it.renumber(numbers));
        self.spread.iter_mut().for_each(|it| it.renumber(numbers));
    }

    /// Adds the jobs of other tasks. What only a single one has goes.
    pub fn merge(&mut self, other: &StreamSummary) {
        self.alone = None;
        for (mine, theirs) in [
            (&mut self.primary_in, other.primary_in),
            (&mut self.primary_jobs, other.primary_jobs),
            (&mut self.releases, other.releases),
            (&mut self.uncertain, other.uncertain),
            (&mut self.back_to_back, other.back_to_back),
            (&mut self.skipped, other.skipped),
            (&mut self.extra, other.extra),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        self.separation = Keep::Least.of(self.separation, other.separation);
        self.suspended = Keep::Greatest.of(self.suspended, other.suspended);
        self.response = Keep::Greatest.of(self.response, other.response);
        self.least.merge(&other.least, Keep::Least);
        self.greatest.merge(&other.greatest, Keep::Greatest);
        self.wcet.merge(&other.wcet, Keep::Greatest);
        self.merge_segments(&other.segmented);
        self.cost_times.merge(&other.cost_times);
        self.certain = self.certain.take().zip(other.certain.as_ref()).map(|(mut mine, theirs)| {
            mine.merge(theirs, &self.response_times, &other.response_times);
            mine
        });
        self.response_times.merge(&other.response_times);
        self.lateness.merge(&other.lateness);
        self.certain_response = self.certain_response.max(other.certain_response);
        self.spread = self.spread.take().zip(other.spread.as_ref()).map(|(mut mine, theirs)| {
            mine.merge(theirs);
            mine
        });
        period::merge(&mut self.periods, &other.periods);
        self.knows_arrivals &= other.knows_arrivals;
        self.approximate |= other.approximate;
        self.slips.extend(&other.slips);
        self.slips.sort_unstable();
        self.slips.truncate(MAX_SLIPS);
        kinds::merge(&mut self.kinds, other.kinds.iter().cloned());
    }

    /// Its modes, if it is of a single task.
    pub fn modes_alone(&self) -> Option<Vec<Mode>> {
        self.alone.as_ref().map(|alone| kinds::of(&alone.shape.modes()))
    }

    /// The modes of several tasks, if each of them has modes.
    fn modes(&self) -> Vec<Mode> {
        let releases = self.kinds.iter().map(|mode| u128::from(mode.releases)).sum::<u128>();
        if releases == self.releases.into() { self.kinds.clone() } else { Vec::new() }
    }

    fn merge_segments(&mut self, others: &[Vec<(u64, u64)>]) {
        if self.segmented.len() < others.len() {
            self.segmented.resize(others.len(), Vec::new());
        }
        for (mine, theirs) in self.segmented.iter_mut().zip(others) {
            match mine.is_empty() {
                true => mine.clone_from(theirs),
                false => mine
                    .iter_mut()
                    .zip(theirs)
                    .for_each(|(mine, theirs)| *mine = (mine.0.max(theirs.0), mine.1.max(theirs.1))),
            }
        }
    }

    /// The models of all of these jobs.
    pub fn to_model(&self) -> model::Stream {
        let durations = |values: &mut dyn Iterator<Item = Extreme>| -> Vec<Duration> {
            values.map(|value| Duration::from_ns(value.ns)).collect()
        };
        let (delta_min_ns, delta_max_ns) = (
            durations(&mut self.least.values.iter().copied()),
            durations(&mut self.greatest.never_falling()),
        );
        let wcet_ns = durations(&mut self.wcet.never_falling());
        let alone = self.alone.as_deref();
        let modes = alone.map_or_else(|| self.modes(), |alone| alone.shape.modes());
        let percentiles = Percentiles {
            lateness: alone.map_or_else(|| self.lateness.quantiles(), |alone| alone.lateness),
            cost: self.cost_times.quantiles(),
            response: self.response_times.quantiles(),
        };
        let periodic = match alone {
            Some(alone) => alone.shape.periodic(),
            None => self.periodic().filter(|_| modes.is_empty()),
        };
        let late = self.late(periodic.as_ref());
        model::Stream {
            separator: alone.map_or(self.key, |alone| alone.separator),
            jobs: self.jobs(),
            releases: self.releases,
            uncertain_releases: self.uncertain,
            back_to_back: self.back_to_back,
            arrival: Arrival {
                periodic,
                sporadic: self.separation.map(|it| Sporadic { min_separation_ns: Duration::from_ns(it.ns) }),
                curve: (!delta_min_ns.is_empty()).then_some(model::Curve { delta_min_ns, delta_max_ns }),
                modes,
            },
            late,
            execution: (!wcet_ns.is_empty()).then(|| Execution { wcet_ns, mean_ns: self.cost_times.mean() }),
            suspension: self.suspension(),
            response: self.response_times.greatest().map(|max_ns| Response {
                max_ns,
                certain_max_ns: self.certain_response.filter(|_| self.uncertain > 0).map(Duration::from_ns),
                mean_ns: self.response_times.mean(),
            }),
            percentiles: (percentiles != Percentiles::default()).then_some(percentiles),
        }
    }

    /// The number of jobs that certainly took longer than the period.
    fn late(&self, periodic: Option<&Periodic>) -> Option<u64> {
        Some(self.certain.as_ref()?.longer_than(periodic?.period_ns, &self.response_times))
    }

    fn suspension(&self) -> Option<Suspension> {
        let bound = |&(suspended, cost): &(u64, u64)| SegmentBound {
            suspended_ns: Duration::from_ns(suspended),
            cost_ns: Duration::from_ns(cost),
        };
        let vectors = self.segmented.iter().filter(|vector| !vector.is_empty());
        Some(Suspension {
            dynamic_ns: Duration::from_ns(self.suspended?.ns),
            segmented: vectors.map(|vector| vector.iter().map(bound).collect()).collect(),
        })
    }

    /// The period that most releases voted for, and the greatest jitter that any run needs for it.
    pub fn period(&self) -> Option<(&Period, Extreme)> {
        let period = period::elected(&self.periods)?;
        let jitter = self.spread.as_ref()?.jitter(period.ratio()?)?;
        // Offsets are whole nanoseconds.
        let rounding = u64::from(period.is_fraction());
        Some((period, Extreme { ns: jitter.ns.saturating_add(rounding), ..jitter }))
    }

    /// The periodic model of several tasks, each with an offset of its own.
    fn periodic(&self) -> Option<Periodic> {
        let (period, jitter) = self.period()?;
        let least = self.spread.as_ref()?.least_jitter().unwrap_or(jitter.ns).min(jitter.ns);
        let slip = |&(at, activations): &(u64, i64)| Slip { at_ns: Instant::from_ns(at), activations };
        Some(Periodic {
            on: if self.knows_arrivals { PeriodicOn::Arrival } else { PeriodicOn::Release },
            period_ns: period.rounded()?,
            period_exact: period.exact(),
            offset_ns: 0,
            jitter_ns: Duration::from_ns(jitter.ns),
            least_jitter_ns: Duration::from_ns(least),
            choice: period.choice,
            approximate: self.approximate,
            skipped: self.skipped,
            extra: self.extra,
            slips: self.slips.iter().map(slip).collect(),
            typical: None,
        })
    }

    /// Whether its parts fit together, in a summary of so many runs. What a timing model shows is checked
    /// there.
    pub fn check(&self, runs: usize) -> Result<(), &'static str> {
        let is_run = |it: &Extreme| (it.run as usize) < runs;
        let values = [&self.least, &self.greatest, &self.wcet].into_iter().flat_map(|it| &it.values);
        let extremes = [self.separation, self.suspended, self.response];
        let fits = [
            (values.chain(extremes.iter().flatten()).all(is_run), "an extreme of a run that is listed"),
            (self.least.reach == self.greatest.reach, "curves of the same reach"),
            (self.least.values.len() == self.greatest.values.len(), "curves of the same length"),
            (self.spread.as_ref().is_none_or(|it| it.is_valid(runs)), "the corners of a hull"),
            (period::are_valid(&self.periods), "periods in order"),
            (kinds::are_valid(&self.kinds), "modes in order, without times"),
            (self.has_valid_slips(), "the first slips, in order, and as many as are counted"),
            (self.has_valid_segments(), "as many bounds as segments"),
            (self.primary_jobs <= self.jobs(), "no more jobs of primary streams than jobs"),
            (self.suspended.is_some() == (self.jobs() > 0), "suspension of jobs"),
            (
                self.response.map(|it| it.ns) == self.response_times.greatest().map(Duration::ns),
                "the greatest response time",
            ),
            (self.response_times.count() == self.jobs(), "a response time for each job"),
            (self.has_valid_certain(), "the certain response times of all jobs"),
        ];
        fits.into_iter().find(|(fits, _)| !fits).map_or(Ok(()), |(_, expected)| Err(expected))
    }

    fn has_valid_certain(&self) -> bool {
        let greatest = |certain: &Certain| Some(certain.greatest().ns());
        self.certain.as_ref().is_none_or(|certain| {
            certain.is_of(&self.response_times) && greatest(certain) == self.certain_response
        })
    }

    fn has_valid_slips(&self) -> bool {
        let sum = |sign: i128| -> i128 {
            self.slips
                .iter()
                .map(|(_, activations)| sign * i128::from(*activations))
                .filter(|it| *it > 0)
                .sum()
        };
        let is_whole = self.slips.len() < MAX_SLIPS;
        let fits = |listed: i128, all: u64| listed == all.into() || (!is_whole && listed < all.into());
        self.slips.len() <= MAX_SLIPS
            && self.slips.is_sorted()
            && self.slips.iter().all(|(_, activations)| *activations != 0)
            && fits(sum(1), self.skipped)
            && fits(sum(-1), self.extra)
    }

    fn has_valid_segments(&self) -> bool {
        let mut vectors = self.segmented.iter().enumerate();
        vectors.all(|(index, vector)| vector.is_empty() || vector.len() == index + 1)
            && self.segmented.last().is_none_or(|last| !last.is_empty())
            && self.segmented.len() <= model::MAX_SEGMENTS
    }
}
