//! The summary of one separator's job stream: everything its models need, in memory that does not grow with
//! time.

use crate::certain::Certain;
use crate::curve::DistanceSummary;
use crate::histogram::Times;
use crate::modes::{Modes, Next, Told};
use crate::periodic::PeriodicSummary;
use crate::summary::spread::Spread;
use crate::suspension::SuspensionSummary;
use crate::wcet::CostSummary;
use punctual_model as model;
use punctual_model::{
    Arrival, Disturbance, Execution, Job, Percentiles, Release, Response, Segment, Separator, Sporadic,
};
use punctual_trace::Ready;

/// Fewer releases have a period only if their arrivals are known, or their jitter is less than the period by
/// this factor.
const FEW: u64 = 10;

/// How far the curves go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Longest arrival-curve window, in releases minus one: δ⁻ and δ⁺ end there.
    pub curve_horizon: usize,
    /// Longest run of jobs in WCET(n).
    pub wcet_horizon: usize,
    /// What is summed up.
    pub sums: Sums,
}

/// How much of a stream is summed up. Callers that only take jobs as they end need little or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sums {
    /// Everything that its models need.
    #[default]
    Models,
    /// Enough to choose the primary separator of a task.
    Choice,
    /// Nothing.
    Nothing,
}

impl Default for Options {
    fn default() -> Self {
        Options { curve_horizon: 1000, wcet_horizon: 1000, sums: Sums::Models }
    }
}

impl Options {
    /// With curves as short as they can be, for callers that do not need them.
    pub fn without_curves() -> Self {
        Options { curve_horizon: 1, wcet_horizon: 1, ..Options::default() }
    }
}

/// What a record says about a release besides its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// The call did not wait, because the event had already happened.
    pub back_to_back: bool,
    /// Expirations of its timer that the call reported (`timerfd`): more than one means several activations
    /// at once. Zero: unknown.
    pub expirations: u64,
    /// What moved the release, if the kernel side saw it.
    pub disturbance: Option<Disturbance>,
    /// What was ready, if the call waits for several things.
    pub ready: Ready,
}

/// A job stream, taken in release by release and job by job. Consecutive pieces of a stream merge to the same
/// models as the whole.
#[derive(Clone, Debug)]
pub struct Stream {
    sums: Sums,
    has_curve: bool,
    jobs: u64,
    releases: u64,
    uncertain: u64,
    back_to_back: u64,
    periodic: PeriodicSummary,
    modes: Modes,
    told: Told,
    distances: DistanceSummary,
    costs: CostSummary,
    suspension: SuspensionSummary,
    cost_times: Times,
    response_times: Times,
    certain: Certain,
}

/// The parts of a stream that has ended that its models do not show, but those of several runs need.
pub(crate) struct Closed {
    /// Most entries that the curves may have.
    pub curve_reach: u64,
    pub wcet_reach: u64,
    /// `None` if times are out of range.
    pub spread: Option<Spread>,
    pub cost_times: Times,
    pub response_times: Times,
    pub certain: Certain,
    /// Weighed: each release counts many times.
    pub lateness: Times,
    /// Whether every arrival is known.
    pub knows_arrivals: bool,
}

impl Stream {
    /// An empty stream.
    pub fn new(options: &Options) -> Self {
        Stream {
            sums: options.sums,
            has_curve: options.curve_horizon > 0,
            jobs: 0,
            releases: 0,
            uncertain: 0,
            back_to_back: 0,
            periodic: PeriodicSummary::new(),
            modes: Modes::default(),
            told: Told::default(),
            distances: DistanceSummary::new(options.curve_horizon),
            costs: CostSummary::new(options.wcet_horizon),
            suspension: SuspensionSummary::new(),
            cost_times: Times::default(),
            response_times: Times::default(),
            certain: Certain::default(),
        }
    }

    /// Adds a release. Releases come in order; a bound that runs backwards makes models wider, never wrong.
    #[inline]
    pub fn release(&mut self, release: &Release, circumstances: Circumstances) {
        self.releases += 1;
        if self.sums == Sums::Nothing {
            return;
        }
        let uncertain = !release.window.is_exact();
        self.uncertain += u64::from(uncertain);
        self.back_to_back += u64::from(uncertain && circumstances.back_to_back);
        // A call that slept was woken by the first of its expirations; one that did not wait finds the last.
        let expirations = circumstances.expirations.max(1);
        let (before, behind) =
            if circumstances.back_to_back { (expirations, 0) } else { (1, expirations - 1) };
        if self.sums == Sums::Models {
            let Circumstances { ready, expirations, disturbance, .. } = circumstances;
            self.told.push(&self.periodic, Next { release, ready, expirations, disturbance });
        }
        self.periodic.push_with(release, before, circumstances.disturbance);
        self.periodic.skip(behind);
        if self.sums == Sums::Models {
            self.distances.push(release.window);
            self.modes.push(release);
        }
    }

    /// Adds the job of the last release once it has ended: at most one per release. `segments` are all of its
    /// segments, or one that sums up the first ones and then the rest.
    #[inline]
    pub fn complete(&mut self, job: &Job, segments: &[Segment]) {
        self.jobs += 1;
        if self.sums != Sums::Models {
            return;
        }
        self.costs.push(job.cost);
        self.suspension.push(job, segments);
        self.cost_times.add(job.cost);
        self.certain.add(job, &self.response_times);
        self.response_times.add(job.response());
    }

    /// Jobs observed from release to end.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Releases so far.
    pub fn releases(&self) -> u64 {
        self.releases
    }

    /// Whether merging gives the same models as one pass, even where summaries are capped, if up to `between`
    /// more releases are added here first.
    pub fn can_merge(&self, later: &Stream, between: usize) -> bool {
        self.periodic.can_merge(&later.periodic, between)
            && self.told.can_merge(&self.periodic, &later.told, &later.periodic, between)
    }

    /// Appends a piece with the same options that follows this one, split between two jobs.
    pub fn merge(&mut self, later: &Stream) {
        self.jobs += later.jobs;
        self.releases += later.releases;
        self.uncertain += later.uncertain;
        self.back_to_back += later.back_to_back;
        self.told.merge(&self.periodic, &later.told, &later.periodic);
        self.periodic.merge(&later.periodic);
        self.modes.merge(&later.modes);
        self.distances.merge(&later.distances);
        self.costs.merge(&later.costs);
        self.suspension.merge(&later.suspension);
        self.cost_times.merge(&later.cost_times);
        self.certain.merge(&later.certain, &self.response_times, &later.response_times);
        self.response_times.merge(&later.response_times);
    }

    /// Typical jitter divided by period, of the periodic model: 0 is perfectly regular. `None` without such a
    /// model.
    pub fn regularity(&self) -> Option<f64> {
        let periodic = self.periodic.model()?;
        let jitter = periodic.typical.map_or(periodic.jitter_ns, |typical| typical.jitter_ns);
        Some(jitter.ns() as f64 / periodic.period_ns.ns() as f64)
    }

    /// What merges with other runs, besides [`Stream::to_model`].
    pub(crate) fn close(&self) -> Closed {
        let mut lateness = Times::default();
        for (ns, weight) in self.periodic.weighed().1.unwrap_or_default() {
            lateness.add_times(ns, weight);
        }
        Closed {
            curve_reach: if self.has_curve { self.distances.reach() } else { 0 },
            wcet_reach: self.costs.reach(),
            spread: self.periodic.spread(),
            cost_times: self.cost_times.clone(),
            response_times: self.response_times.clone(),
            certain: self.certain.clone(),
            lateness,
            knows_arrivals: self.periodic.knows_arrivals(),
        }
    }

    /// All models of the stream, so far.
    pub fn to_model(&self, separator: Separator) -> model::Stream {
        let curve = self.distances.curve().filter(|_| self.has_curve);
        let separation = self.distances.least_separation();
        let (periodic, lateness) = self.periodic.models();
        let periodic = periodic.filter(|periodic| self.is_meant(periodic));
        let modes = self.modes(periodic.as_ref());
        let (periodic, lateness) = match modes.is_empty() {
            true => (periodic, lateness),
            // Lateness on a grid that the releases do not keep to.
            false => (None, lateness.filter(|_| self.periodic.knows_arrivals())),
        };
        let percentiles = Percentiles {
            lateness,
            cost: self.cost_times.quantiles(),
            response: self.response_times.quantiles(),
        };
        let mut stream = model::Stream {
            separator,
            jobs: self.jobs(),
            releases: self.releases,
            uncertain_releases: self.uncertain,
            back_to_back: self.back_to_back,
            arrival: Arrival {
                periodic,
                sporadic: separation.map(|min_separation_ns| Sporadic { min_separation_ns }),
                curve,
                modes,
            },
            execution: self.execution(),
            suspension: self.suspension.suspension(),
            response: self.response(),
            late: None,
            percentiles: (percentiles != Percentiles::default()).then_some(percentiles),
        };
        if stream.is_random() {
            let without = |percentiles| Percentiles { lateness: None, ..percentiles };
            stream.arrival.periodic = None;
            stream.percentiles = stream.percentiles.map(without).filter(|it| *it != Percentiles::default());
        }
        stream.late = self.late(stream.arrival.periodic.as_ref());
        stream
    }

    /// The modes, if they describe the releases better than this period does: one of the sources that the
    /// kernel tells apart, else what the times of the releases show.
    fn modes(&self, periodic: Option<&model::Periodic>) -> Vec<model::Mode> {
        let told = self.told.mode(self.releases, periodic);
        let inferred = || self.modes.better_than(periodic, self.periodic.knows_arrivals());
        told.map(|mode| vec![mode]).or_else(inferred).unwrap_or_default()
    }

    /// Whether the period is more than a way to describe a few releases.
    fn is_meant(&self, periodic: &model::Periodic) -> bool {
        let is_regular = periodic.skipped == 0
            && periodic.usual_jitter().ns().saturating_mul(FEW) <= periodic.period_ns.ns();
        self.releases >= FEW || self.periodic.knows_arrivals() || is_regular
    }

    fn execution(&self) -> Option<Execution> {
        let wcet_ns = self.costs.curve();
        (!wcet_ns.is_empty()).then(|| Execution { wcet_ns, mean_ns: self.cost_times.mean() })
    }

    fn response(&self) -> Option<Response> {
        let max_ns = self.response_times.greatest()?;
        let certain_max_ns = (self.uncertain > 0).then_some(self.certain.greatest());
        Some(Response { max_ns, certain_max_ns, mean_ns: self.response_times.mean() })
    }

    /// The number of jobs that certainly took longer than the period.
    fn late(&self, periodic: Option<&model::Periodic>) -> Option<u64> {
        let period = periodic.filter(|_| self.sums == Sums::Models)?.period_ns;
        Some(self.certain.longer_than(period, &self.response_times))
    }
}
