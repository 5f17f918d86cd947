//! What the jobs of a recording add to a model's page: rasters, histograms, activity and worst jobs, in
//! memory that does not grow with their number.

use super::grid::{Grid, signed};
use super::histogram::Histogram;
use super::raster::{Point, Raster};
use crate::derived::primary;
use crate::shape::Shape;
use punctual_model::causes::Limit;
use punctual_model::{Duration, Instant, Job, Release, Separator, Stream, Task, TimingModel, Window};
use rustc_hash::FxHashMap;

/// Points of the stream that is shown for a task are at most twice so many, …
const BUCKETS: usize = 1_000;
/// … those of its other streams fewer.
const BUCKETS_OF_OTHERS: usize = 128;

/// Stretches of a task's time whose processor time is counted.
pub(crate) const BINS: usize = 240;

/// A job that is the worst of its stream in some respect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worst {
    /// Which release of the stream it is, from 0; what the job is called in timelines.
    pub(crate) number: u64,
    /// Its earliest release.
    pub(crate) released: Instant,
    /// The most that it can have been late, or the least after the job before.
    pub(crate) measure: Option<i64>,
    /// Whether it may have been later, by whole periods.
    pub(crate) is_truncated: bool,
    pub(crate) cost: Duration,
    pub(crate) response: Duration,
}

/// What the jobs of a recording add: rasters and histograms, in bounded memory.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// In the order of tasks and streams in the model.
    streams: Vec<StreamJobs>,
    /// By recording, thread, phase and what tells separators apart: the first stream that it can be.
    index: FxHashMap<(usize, u32, u32, Separator), usize>,
    /// The recordings that the model names.
    recordings: Vec<String>,
    /// Which of them jobs come from: 0 means none; they are numbered from 1.
    recording: usize,
    unknown: u64,
}

/// The jobs of one stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamJobs {
    /// When its task was observed: the TID of an ended thread can be reused.
    span: (Instant, Instant),
    /// The stream of the next thread of that number.
    namesake: Option<usize>,
    /// How many there are.
    pub(crate) jobs: u64,
    /// Of them, those whose release is a window.
    pub(crate) windows: u64,
    /// Those that may be later than is drawn, by whole periods.
    pub(crate) truncated: u64,
    /// Those that the model does not allow.
    pub(crate) outside: u64,
    /// What is drawn over time.
    pub(crate) measure: Measure,
    /// The job before.
    last: Option<(u64, Window)>,
    pub(crate) raster: Raster,
    /// Of what is drawn over time, the worst that it can be: lateness at its greatest, separations at their
    /// least.
    pub(crate) worst: Histogram,
    pub(crate) cost: Histogram,
    pub(crate) response: Histogram,
    /// Response times over time.
    pub(crate) responses: Raster,
    /// The job with the longest response, the first of several.
    pub(crate) slowest: Option<Worst>,
    /// The job that cost most.
    pub(crate) dearest: Option<Worst>,
    /// The job that was released latest, or closest after the one before.
    pub(crate) latest: Option<Worst>,
    /// Processor time in each of [`BINS`] stretches of the task's time; of primary streams.
    busy: Vec<u64>,
}

/// What is drawn of releases over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// How much later than its place in the periodic grid a job was released.
    Lateness(Box<Grid>),
    /// How long after the release before it a job was released, where jobs follow no period.
    Separation {
        /// δ⁻(2).
        least_ns: u64,
        /// δ⁺(2).
        most_ns: u64,
    },
}

/// Within which time after its arrival a job has to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) after: Duration,
    /// The name of that limit.
    pub(crate) name: &'static str,
}

/// The limit by which jobs of a task were explained, if the model has causes; else its deadline, else its
/// period. Only jobs at its primary separator are due.
pub(crate) fn due(model: &TimingModel, task: &Task, stream: &Stream) -> Option<Due> {
    primary(task).filter(|primary| std::ptr::eq(*primary, stream))?;
    let late = model.causes.iter().flat_map(|causes| &causes.tasks);
    let late = late.filter(|late| late.tid == task.tid && late.task == task.name);
    let explained =
        late.filter_map(|late| Some(Due { after: late.limit_ns, name: limit(late.limit)? })).next();
    let deadline = || task.reservation.map(|it| Due { after: it.deadline_ns, name: "deadline" });
    explained.or_else(deadline).or_else(|| match Shape::new(stream) {
        Shape::Periodic(periodic) => Some(Due { after: periodic.period_ns, name: "period" }),
        _ => None,
    })
}

fn limit(limit: Limit) -> Option<&'static str> {
    match limit {
        Limit::Period => Some("period"),
        Limit::Contract => Some("limit by contract"),
        Limit::Given | Limit::Longest => Some("limit"),
        Limit::None => None,
    }
}

impl Measure {
    fn new(stream: &Stream) -> Self {
        if let Shape::Periodic(periodic) = Shape::new(stream) {
            return Measure::Lateness(Box::new(Grid::new(periodic)));
        }
        let curve = stream.arrival.curve.as_ref();
        let separation = stream.arrival.sporadic.as_ref().map(|sporadic| sporadic.min_separation_ns);
        Measure::Separation {
            least_ns: separation.map_or(0, |separation| separation.ns()),
            most_ns: curve.and_then(|curve| curve.delta_max_ns.first()).map_or(u64::MAX, |most| most.ns()),
        }
    }

    /// The least and the most that the measure of a job can be.
    fn range(&self, number: u64, release: &Release, last: Option<(u64, Window)>) -> Option<(i64, i64)> {
        let window = release.window;
        match self {
            Measure::Lateness(grid) => {
                let place = grid.place(number, release);
                Some((difference(window.earliest(), place), difference(window.latest(), place)))
            }
            Measure::Separation { .. } => {
                let (before, last) = last?;
                (before.checked_add(1) == Some(number)).then_some(())?;
                let least = window.earliest().since(last.latest());
                let most = window.latest().since(last.earliest());
                Some((signed(least.ns()), signed(most.ns())))
            }
        }
    }

    /// Whether the measure may exceed [`Measure::range`] by whole periods.
    fn truncates(&self, release: &Release) -> bool {
        matches!(self, Measure::Lateness(grid) if grid.truncates(release))
    }

    /// Whether the model allows a job of this range: some instant of a window that it does is enough.
    fn allows(&self, window: Window, low_ns: i64, high_ns: i64) -> bool {
        match self {
            // Offset and jitter hold for every instant of every window.
            Measure::Lateness(grid) => {
                grid.leaves_out(window) || low_ns >= 0 && high_ns.unsigned_abs() <= grid.jitter_ns
            }
            Measure::Separation { least_ns, most_ns } => {
                high_ns.unsigned_abs() >= *least_ns && low_ns.unsigned_abs() <= *most_ns
            }
        }
    }
}

fn difference(at: Instant, grid: i64) -> i64 {
    signed(at.ns()).saturating_sub(grid)
}

impl Jobs {
    /// No jobs yet, for the tasks of `model`.
    pub fn new(model: &TimingModel) -> Jobs {
        let mut jobs = Jobs {
            streams: Vec::new(),
            index: FxHashMap::default(),
            recordings: Vec::new(),
            recording: 0,
            unknown: 0,
        };
        for task in model.tasks() {
            for (position, stream) in task.streams.iter().enumerate() {
                jobs.add(task, stream, task.primary == Some(position));
            }
        }
        jobs
    }

    fn add(&mut self, task: &Task, stream: &Stream, primary: bool) {
        let place = self.streams.len();
        let known = self.place_of(task.recording.as_deref());
        let recording = known.unwrap_or_else(|| {
            self.recordings.extend(task.recording.clone());
            self.recordings.len()
        });
        let namesake = self.index.insert((recording, task.tid, task.phase, stream.separator.key()), place);
        let buckets = if primary { BUCKETS } else { BUCKETS_OF_OTHERS };
        self.streams.push(StreamJobs {
            span: (task.from_ns, task.until_ns),
            namesake,
            jobs: 0,
            windows: 0,
            truncated: 0,
            outside: 0,
            measure: Measure::new(stream),
            last: None,
            raster: Raster::new(buckets),
            worst: Histogram::default(),
            cost: Histogram::default(),
            response: Histogram::default(),
            responses: Raster::new(buckets),
            slowest: None,
            dearest: None,
            latest: None,
            busy: if primary { vec![0; BINS] } else { Vec::new() },
        });
    }

    /// Sets the recording of the jobs that follow, if the model is of several ([`Task::recording`]);
    /// initially none. A recording that the model does not name has no tasks in it.
    pub fn recording(&mut self, name: Option<&str>) {
        self.recording = self.place_of(name).unwrap_or(usize::MAX);
    }

    fn place_of(&self, recording: Option<&str>) -> Option<usize> {
        let Some(name) = recording else { return Some(0) };
        Some(1 + self.recordings.iter().position(|known| known == name)?)
    }

    /// Adds a job of the task of thread `tid` and `phase`, of its stream at `separator`. `number` is which
    /// release of the stream it is, from 0. O(1), amortised; a job of a task that the model does not have is
    /// only counted.
    pub fn job(&mut self, tid: u32, phase: u32, separator: &Separator, number: u64, job: &Job) {
        let Some(&first) = self.index.get(&(self.recording, tid, phase, separator.key())) else {
            self.unknown += 1;
            return;
        };
        let mut place = first;
        while !self.streams[place].covers(job) {
            match self.streams[place].namesake {
                Some(namesake) => place = namesake,
                None => {
                    place = first;
                    break;
                }
            }
        }
        self.streams[place].add(number, job);
    }

    /// Jobs of tasks that the model does not have.
    pub(crate) fn unknown(&self) -> u64 {
        self.unknown
    }

    /// By position: streams are counted through all tasks, as the model has them.
    pub(crate) fn stream(&self, position: usize) -> Option<&StreamJobs> {
        self.streams.get(position)
    }
}

impl StreamJobs {
    fn covers(&self, job: &Job) -> bool {
        (self.span.0..=self.span.1).contains(&job.end)
    }

    fn add(&mut self, number: u64, job: &Job) {
        let window = job.release.window;
        self.jobs += 1;
        self.windows += u64::from(!window.is_exact());
        self.cost.push(job.cost.ns());
        let response = job.response().ns();
        self.response.push(response);
        let (at_ns, response_ns) = (window.earliest().ns(), signed(response));
        self.responses.push(Point { number, at_ns, low_ns: response_ns, high_ns: response_ns });
        let range = self.measure.range(number, &job.release, self.last);
        self.truncated += u64::from(self.measure.truncates(&job.release));
        self.busy(job);
        self.compare(number, job, range);
        if let Some((low_ns, high_ns)) = range {
            self.outside += u64::from(!self.measure.allows(window, low_ns, high_ns));
            self.raster.push(Point { number, at_ns: window.earliest().ns(), low_ns, high_ns });
            let worst = match self.measure {
                Measure::Lateness(_) => high_ns,
                Measure::Separation { .. } => low_ns,
            };
            self.worst.push(worst.try_into().unwrap_or(0));
        }
        self.last = Some((number, window));
    }
}

impl StreamJobs {
    fn compare(&mut self, number: u64, job: &Job, range: Option<(i64, i64)>) {
        let measure = match self.measure {
            Measure::Lateness(_) => range.map(|(_, high)| high),
            Measure::Separation { .. } => range.map(|(low, _)| low),
        };
        let released = job.release.window.earliest();
        let is_truncated = self.measure.truncates(&job.release);
        let (cost, response) = (job.cost, job.response());
        let this = Worst { number, released, measure, is_truncated, cost, response };
        let keep = |place: &mut Option<Worst>, is_worse: &dyn Fn(&Worst) -> bool| {
            if place.as_ref().is_none_or(is_worse) {
                *place = Some(this);
            }
        };
        keep(&mut self.slowest, &|worst| this.response > worst.response);
        keep(&mut self.dearest, &|worst| this.cost > worst.cost);
        if let Some(value) = measure {
            let is_late = matches!(self.measure, Measure::Lateness(_));
            keep(&mut self.latest, &|worst| {
                worst.measure.is_none_or(|before| if is_late { value > before } else { value < before })
            });
        }
    }

    /// Spreads the job's cost evenly over its time.
    fn busy(&mut self, job: &Job) {
        let (from, until) = (self.span.0.ns(), self.span.1.ns());
        let length = u128::from(until.saturating_sub(from));
        if self.busy.is_empty() || length == 0 {
            return;
        }
        let place = |at: u64| u128::from(at.clamp(from, until) - from) * BINS as u128;
        let (start, end) = (place(job.start.ns()), place(job.end.ns()));
        let span = end.saturating_sub(start).max(1);
        let last = BINS as u128 - 1;
        for bin in (start / length).min(last)..=(end / length).min(last) {
            let within = end.min((bin + 1) * length).saturating_sub(start.max(bin * length));
            let within = if end == start { 1 } else { within };
            let cost = u128::from(job.cost.ns()) * within / span;
            let place = &mut self.busy[bin as usize];
            *place = place.saturating_add(cost.try_into().unwrap_or(u64::MAX));
        }
    }

    /// The share of a processor in each stretch of the task's time, in thousandths, rounded up.
    pub(crate) fn shares(&self) -> Vec<u64> {
        let length = u128::from(self.span.1.since(self.span.0).ns()).max(1);
        let share =
            |busy: &u64| (u128::from(*busy) * 1_000 * BINS as u128).div_ceil(length).min(1_000) as u64;
        self.busy.iter().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{model, task};
    use punctual_model::{Call, Fraction, MAX_SLIPS, Object, PeriodicOn, Slip};

    const PERIOD: u64 = 5_000_000;

    fn separator() -> Separator {
        Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } }
    }

    /// Released between these instants, 700 µs of cost, done 100 µs later than that.
    fn job(earliest: u64, latest: u64) -> Job {
        let window = Window::new(Instant::from_ns(earliest), Instant::from_ns(latest)).expect("a window");
        let end = window.latest() + Duration::from_us(800);
        let release = Release { arrival: None, window };
        Job { release, start: window.latest(), end, cost: Duration::from_us(700), suspended: Duration::ZERO }
    }

    fn second(ns: u64) -> u64 {
        1_000_000_000 + ns
    }

    #[test]
    fn lateness_is_counted_from_the_grid() {
        let model = model(vec![task("ctl", 7, 80)]);
        let mut jobs = Jobs::new(&model);
        jobs.job(7, 0, &separator(), 0, &job(second(40_000), second(40_000)));
        jobs.job(7, 0, &separator(), 3, &job(second(3 * PERIOD), second(3 * PERIOD + 12_000)));
        jobs.job(7, 0, &separator(), 4, &job(second(4 * PERIOD + 41_001), second(4 * PERIOD + 41_001)));
        let stream = jobs.stream(0).expect("the stream");
        let ranges: Vec<(u64, i64, i64)> =
            stream.raster.points().iter().map(|point| (point.number, point.low_ns, point.high_ns)).collect();
        assert_eq!(ranges, [(0, 40_000, 40_000), (3, 0, 12_000), (4, 41_001, 41_001)]);
        assert_eq!((stream.jobs, stream.windows, stream.outside), (3, 1, 1));
        assert_eq!((stream.cost.count(), stream.response.count(), stream.worst.count()), (3, 3, 3));
        assert_eq!(stream.response.range(), Some((800_000, 812_000)));
        assert_eq!(
            stream.worst.range(),
            Some((12_000, 41_001)),
            "what was not seen counts as late as it can have been"
        );
    }

    #[test]
    fn lateness_past_the_listed_slips_counts_from_the_arrival() {
        let mut tasks = model(vec![task("ctl", 7, 80)]);
        let stream = &mut tasks.threads.as_mut().expect("threads").tasks[0].streams[0];
        let periodic = stream.arrival.periodic.as_mut().expect("a period");
        let slip = |place| Slip { at_ns: Instant::from_ns(second(place)), activations: 1 };
        (periodic.skipped, periodic.on) = (100, PeriodicOn::Arrival);
        periodic.slips = (1..=MAX_SLIPS as u64).map(slip).collect();
        let mut jobs = Jobs::new(&tasks);
        // Two periods late by its arrival, which is not known at first.
        let mut late = job(second(50 * PERIOD + 185_900), second(50 * PERIOD + 185_900));
        late.cost = Duration::from_ms(1);
        jobs.job(7, 0, &separator(), 30, &late);
        let dearest = |jobs: &Jobs| jobs.stream(0).and_then(|stream| stream.dearest).expect("a job");
        assert_eq!((dearest(&jobs).measure, dearest(&jobs).is_truncated), (Some(185_900), true));
        late.release.arrival = Some(Instant::from_ns(second(48 * PERIOD)));
        late.cost = Duration::from_ms(2);
        jobs.job(7, 0, &separator(), 31, &late);
        let found = (dearest(&jobs).measure, dearest(&jobs).is_truncated);
        assert_eq!(found, (Some(2 * PERIOD as i64 + 185_900), false));
        assert_eq!(jobs.stream(0).map(|stream| stream.truncated), Some(1));
    }

    /// Every job costs 700 µs and is done 800 µs after its latest release.
    #[test]
    fn worst_jobs_are_named_and_activity_is_counted() {
        let mut jobs = Jobs::new(&model(vec![task("ctl", 7, 80)]));
        let mut costly = job(second(2 * PERIOD), second(2 * PERIOD));
        costly.cost = Duration::from_ms(1);
        jobs.job(7, 0, &separator(), 0, &job(second(40_000), second(40_000)));
        jobs.job(7, 0, &separator(), 1, &job(second(PERIOD), second(PERIOD + 12_000)));
        jobs.job(7, 0, &separator(), 2, &costly);
        let stream = jobs.stream(0).expect("the stream");
        let number = |worst: Option<Worst>| worst.map(|worst| worst.number);
        assert_eq!([stream.latest, stream.slowest, stream.dearest].map(number), [Some(0), Some(1), Some(2)]);
        // All within the first of the stretches, which is ten seconds over 240.
        assert_eq!(stream.busy[0], 2_400_000);
        assert_eq!((stream.shares()[0], stream.shares()[1]), (58, 0));
    }

    #[test]
    fn a_grid_of_60_hz_does_not_drift() {
        let mut video = task("video", 7, 80);
        let periodic = video.streams[0].arrival.periodic.as_mut().expect("periodic");
        periodic.period_ns = Duration::from_ns(16_666_667);
        periodic.period_exact = Some(Fraction { numerator: 50_000_000, denominator: 3 });
        let mut jobs = Jobs::new(&model(vec![video]));
        // A day of frames.
        let (number, at) = (5_184_000, second(86_400_000_000_000));
        jobs.job(7, 0, &separator(), number, &job(at, at));
        assert_eq!(jobs.stream(0).map(|stream| stream.raster.points()[0].low_ns), Some(0));
    }

    /// One activation skipped, one release left out: on the grid that the typical model has.
    #[test]
    fn skipped_activations_are_passed_over() {
        let mut odd = task("ctl", 7, 80);
        let periodic = crate::example::disturbed();
        let period = periodic.period_ns.ns();
        odd.streams[0].arrival.periodic = Some(periodic);
        let mut jobs = Jobs::new(&model(vec![odd]));
        // Before release 499 one activation was skipped, before 797 two; 1,997 was early and 2,997 late, and
        // both are left out.
        let at = |number: u64, late: u64| (number, second(number * period + late));
        let seen = [
            at(498, 9),
            (499, 1_500_004_000),
            (797, 1_800_002_000),
            (1_997, 2_999_690_000),
            (2_997, 4_030_016_000),
            at(2_998, 0),
        ];
        for (number, at) in seen {
            jobs.job(7, 0, &separator(), number, &job(at, at));
        }
        let stream = jobs.stream(0).expect("the stream");
        let ranges: Vec<(u64, i64)> =
            stream.raster.points().iter().map(|point| (point.number, point.low_ns)).collect();
        let late = [
            (498, 9),
            (499, 4_000),
            (797, 2_000),
            (1_997, -310_000),
            (2_997, 30_016_000),
            (2_998, -3_000_000),
        ];
        assert_eq!(ranges, late);
        // Only the last is neither listed nor allowed.
        assert_eq!(stream.outside, 1);
    }

    #[test]
    fn jobs_without_a_period_show_their_separation() {
        let mut random = task("random", 7, 80);
        random.streams[0].arrival.periodic = None;
        let mut jobs = Jobs::new(&model(vec![random]));
        for (number, at) in [(0, 0), (1, 6_000_000), (3, 7_000_000), (4, 7_000_100)] {
            jobs.job(7, 0, &separator(), number, &job(second(at), second(at)));
        }
        let stream = jobs.stream(0).expect("the stream");
        let points: Vec<(u64, i64)> =
            stream.raster.points().iter().map(|point| (point.number, point.low_ns)).collect();
        assert_eq!(points, [(1, 6_000_000), (4, 100)]);
        assert_eq!(stream.outside, 2, "further apart than the curve allows, and closer");
    }

    #[test]
    fn threads_of_separate_recordings_are_separate() {
        let (mut first, mut second_one) = (task("ctl", 7, 80), task("ctl", 7, 80));
        first.recording = Some("monday".into());
        second_one.recording = Some("tuesday".into());
        let mut jobs = Jobs::new(&model(vec![first, second_one]));
        let seen = job(second(0), second(0));
        jobs.job(7, 0, &separator(), 0, &seen);
        for (name, count) in [("monday", 1), ("tuesday", 2), ("friday", 3)] {
            jobs.recording(Some(name));
            (0..count).for_each(|number| jobs.job(7, 0, &separator(), number, &seen));
        }
        let counts: Vec<u64> = (0..2).filter_map(|position| Some(jobs.stream(position)?.jobs)).collect();
        assert_eq!((counts, jobs.unknown()), (vec![1, 2], 4));
    }

    #[test]
    fn a_reused_tid_is_another_thread() {
        let first = task("first", 7, 80);
        let mut second_life = task("second", 7, 80);
        second_life.pid = 9_000;
        second_life.from_ns = Instant::from_ns(20_000_000_000);
        second_life.until_ns = Instant::from_ns(30_000_000_000);
        let mut jobs = Jobs::new(&model(vec![first, second_life]));
        jobs.job(7, 0, &separator(), 0, &job(21_000_000_000, 21_000_000_000));
        jobs.job(7, 0, &separator(), 0, &job(second(0), second(0)));
        jobs.job(7, 0, &separator(), 1, &job(second(PERIOD), second(PERIOD)));
        jobs.job(7, 1, &separator(), 0, &job(second(0), second(0)));
        let counts: Vec<u64> = (0..2).filter_map(|position| Some(jobs.stream(position)?.jobs)).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(jobs.unknown(), 1);
    }
}
