//! Threads with one name, in one or more runs: what a contract says of them.

use super::observed::Limits;
use super::separators::{meant, primary, separator_pattern};
use super::{ContractSource, ContractTask, Margin, sources, typical};
use crate::threads::Pattern;
use punctual_model::arrival::{Curve, MAX_SLIPS, Periodic};
use punctual_model::{Choice, Duration, Object, PeriodicOn, Separator, Stream, Task, processor_list};

/// Threads with fewer jobs say little about their timing.
pub const LEAST_JOBS: u64 = 10;

/// Jobs in a row of which a contract from a model says how long they take, where one job says little.
const IN_A_ROW: u64 = 8;
/// Releases in a row of which it says something at most.
const MOST_IN_A_ROW: u64 = 64;

/// All tasks with one name.
pub struct Group<'a> {
    /// Each with the place of its run.
    members: &'a [(usize, &'a Task)],
    /// The one that says most: real-time, and with the most jobs.
    main: &'a Task,
    /// The separator; `None` if its name would not fit the next run of the program.
    separator: Option<String>,
    /// The streams of all tasks at that separator, or at their primary ones.
    streams: Vec<&'a Stream>,
}

impl<'a> Group<'a> {
    /// `None` if no task has enough jobs.
    pub fn new(members: &'a [(usize, &'a Task)]) -> Option<Group<'a>> {
        let tasks = || members.iter().map(|(_, task)| *task);
        let jobs = |task: &Task| primary(task).map_or(0, |stream| stream.jobs);
        let known = tasks().filter(|task| jobs(task) >= LEAST_JOBS);
        let main = known.max_by_key(|task| (task.policy.is_real_time(), jobs(task)))?;
        let separator = separator_pattern(primary(main)?.separator, tasks());
        let streams = tasks().flat_map(|task| meant(task, separator.as_deref())).collect();
        Some(Group { members, main, separator, streams })
    }

    /// What the contract says of the threads with this name.
    pub fn agreed(&self, name: &str, limits: Limits) -> ContractTask {
        let Limits { margin, quantile } = limits;
        let most = |value: &dyn Fn(&Stream) -> Option<Duration>| {
            let greatest = self.streams.iter().filter_map(|stream| value(stream)).max();
            greatest.map(|most| margin.above_kernel(most, 1))
        };
        let periodic = self.periodic(limits);
        let wcet = most(&|stream| typical::cost(stream, quantile));
        let modes = match periodic {
            Some(_) => None,
            None => sources::agreed(&self.streams, limits),
        };
        let has_grid = periodic.is_some() || modes.is_some();
        // A source whose phase jumps has one mode: that is a period.
        let plain = modes.as_deref().and_then(sources::only);
        let modes = modes.filter(|_| plain.is_none());
        let grid = periodic.map_or(plain, |Agreed { period, jitter, skips }| {
            let jitter = Some(margin.above_kernel(jitter, 1));
            Some((ContractSource { period, jitter, burst: None }, Some(skips)))
        });
        let separations = if has_grid { Vec::new() } else { self.separations(margin) };
        let suspension = most(&|stream| stream.suspension.as_ref().map(|it| it.dynamic_ns));
        let segmented = self.streams.iter().filter_map(|stream| stream.suspension.as_ref());
        let segments = segmented.flat_map(|it| it.segmented.iter().map(Vec::len)).max();
        // Between two sleeps nobody sleeps.
        let sleeps = Separator::SUSPENSION.key();
        let suspension = suspension.filter(|_| self.streams.iter().any(|it| it.separator.key() != sleeps));
        let real_time = self.members.iter().filter(|(_, task)| task.policy.is_real_time());
        // How it was scheduled before it had work to do, while it set itself up, is of no account.
        let works = |task: &&Task| meant(task, self.separator.as_deref()).iter().any(|it| it.jobs > 0);
        let working = real_time.clone().map(|(_, task)| *task).filter(works);
        let is_uniform = working.clone().all(|task| scheduling(task) == scheduling(self.main));
        let is_placed = working.clone().all(|task| task.affinity == self.main.affinity);
        let mut threads: Vec<_> = real_time
            .map(|(run, task)| ((*run, &task.recording), task.tid, task.from_ns, task.until_ns))
            .collect();
        threads.sort_unstable();
        let pattern = Pattern::named(name);
        let is_plain = pattern.comm.as_deref() == Some(name);
        ContractTask {
            name: name.to_owned(),
            thread: (!is_plain).then_some(pattern),
            threads: Some(at_once(&threads)).filter(|threads| *threads > 1),
            separator: self.separator.clone(),
            period: grid.map(|(source, _)| source.period),
            jitter: grid.and_then(|(source, _)| source.jitter),
            skips: grid.and_then(|(_, skips)| skips).filter(|skips| *skips > 0),
            modes: modes.unwrap_or_default(),
            separation: separations.first().copied(),
            more_separations: separations.get(1..).unwrap_or_default().to_vec(),
            wcet,
            more_wcets: wcet
                .filter(|_| quantile.is_none())
                .map(|wcet| self.more_wcets(wcet, margin))
                .unwrap_or_default(),
            response: most(&|stream| typical::response(stream, quantile)),
            suspension,
            suspensions: segments
                .map(|most| most.saturating_sub(1) as u64)
                .filter(|_| suspension.is_some_and(|it| !it.is_zero())),
            may_exceed: typical::may_exceed(&self.streams, limits),
            quartile_cost: typical::quartile_cost(&self.streams, margin),
            median_separation: typical::agreed_separation(&self.streams, margin),
            policy: is_uniform.then_some(self.main.policy),
            priority: Some(self.main.priority).filter(|it| is_uniform && (1..=99).contains(it)),
            reservation: self.main.reservation.filter(|_| is_uniform),
            processors: Some(&self.main.affinity)
                .filter(|_| is_placed)
                .and_then(|list| processor_list(list))
                .unwrap_or_default(),
            ..ContractTask::default()
        }
    }

    /// Whether the main stream has a period or modes, however late its releases were.
    pub fn has_period(&self) -> bool {
        primary(self.main).is_some_and(|main| main_period(main).is_some() || !main.arrival.modes.is_empty())
    }

    /// The longest time that a thread had not waited for when it ended. No job covers it.
    pub fn awake(&self) -> Option<Duration> {
        self.members.iter().filter_map(|(_, task)| task.open_ns).max()
    }

    /// The period of the main stream, with a jitter that covers the releases of all streams; `None` if they
    /// have no period worth the name.
    fn periodic(&self, limits: Limits) -> Option<Agreed> {
        let main = primary(self.main)?;
        let model = main_period(main).filter(|_| main.nearly_regular().is_some())?;
        let mut agreed = Agreed { period: model.period_ns, jitter: Duration::ZERO, skips: 0 };
        for stream in &self.streams {
            agreed.cover(stream, limits);
        }
        // The period is certain even if releases were later than a period: where their arrivals keep to it,
        // or most of them do.
        let typical = model.typical.as_ref().map_or(model.jitter_ns, |typical| typical.jitter_ns);
        let is_certain = typical < model.period_ns || main.regular().is_some();
        (agreed.jitter < agreed.period || is_certain).then_some(agreed)
    }

    /// The least time between two releases; if that says little of more of them, from a release to the
    /// second after it, and so on.
    fn separations(&self, margin: Margin) -> Vec<Duration> {
        let sporadic = self.streams.iter().filter_map(|stream| stream.arrival.sporadic.as_ref());
        let Some(least) = sporadic.map(|it| margin.below(it.min_separation_ns)).min() else {
            return Vec::new();
        };
        let worked = self.streams.iter().filter(|stream| stream.releases > 1);
        let curves: Option<Vec<&Curve>> = worked.map(|stream| stream.arrival.curve.as_ref()).collect();
        let span = |gaps: u64| curves.as_ref()?.iter().map(|curve| curve.delta_min(gaps + 1)).min();
        let Some(longest) = span(MOST_IN_A_ROW) else { return vec![least] };
        // As many as tell a burst from what follows it: more would bound the rate hardly better.
        let is_enough = |gaps: &u64| {
            let (by_these, by_most) = (span(*gaps).unwrap_or_default(), u128::from(longest.ns()));
            u128::from(by_these.ns()) * u128::from(MOST_IN_A_ROW) * 6 >= by_most * u128::from(*gaps) * 5
        };
        let number = [8, 16, 32].into_iter().find(is_enough).unwrap_or(MOST_IN_A_ROW);
        let more: Option<Vec<Duration>> = (2..=number).map(|gaps| Some(margin.below(span(gaps)?))).collect();
        let more = more.filter(|more| {
            let by_one = u128::from(least.ns()) * u128::from(number);
            more.last().is_some_and(|last| u128::from(last.ns()) * 20 > by_one * 21)
        });
        let all: Vec<Duration> = std::iter::once(least).chain(more.into_iter().flatten()).collect();
        if all.iter().all(|it| it.is_zero()) { Vec::new() } else { all }
    }

    /// The most that several jobs in a row need, if that is clearly less than as many of the longest.
    fn more_wcets(&self, wcet: Duration, margin: Margin) -> Vec<Duration> {
        let executions = || self.streams.iter().filter_map(|stream| stream.execution.as_ref());
        let most = |jobs: u64| {
            let all: Option<Vec<Duration>> = executions().map(|execution| execution.wcet(jobs)).collect();
            all?.into_iter().max().map(|most| margin.above_kernel(most, jobs))
        };
        let more: Option<Vec<Duration>> = (2..=IN_A_ROW).map(most).collect();
        let more = more.filter(|more| {
            let by_one = u128::from(wcet.ns()) * u128::from(IN_A_ROW);
            more.last().is_some_and(|last| u128::from(last.ns()) * 20 < by_one * 19)
        });
        more.unwrap_or_default()
    }
}

/// The periodic model of a stream, if it keeps time.
fn main_period(main: &Stream) -> Option<&Periodic> {
    let model = main.arrival.periodic.as_ref()?;
    // Each sleep begins when a job ends: lateness adds up, without a bound.
    let drifts = matches!(main.separator.object, Object::Clock { absolute: false, .. });
    let is_none = model.choice == Choice::LeastJitter && model.on == PeriodicOn::Release;
    (!drifts && !is_none).then_some(model)
}

/// A periodic model that grows to cover streams.
struct Agreed {
    period: Duration,
    jitter: Duration,
    skips: u64,
}

impl Agreed {
    fn cover(&mut self, stream: &Stream, limits: Limits) {
        match (&stream.arrival.periodic, &stream.arrival.curve) {
            (Some(model), _) => {
                let activations = stream.releases.saturating_add(model.skipped);
                let drift = model.period_ns.ns().abs_diff(self.period.ns()).saturating_mul(activations);
                let jitter = typical::jitter(stream, model, limits.quantile);
                self.jitter = self.jitter.max(jitter + Duration::from_ns(drift));
                self.skips = self.skips.max(most_in_a_row(model));
            }
            (None, Some(curve)) => {
                let spans = curve.delta_min_ns.first().zip(curve.delta_max_ns.first());
                let Some((least, most)) = spans else { return };
                let periods = ((most.ns() + self.period.ns() / 2) / self.period.ns()).max(1);
                let grid = Duration::from_ns(periods.saturating_mul(self.period.ns()));
                let off = grid.saturating_sub(*least).max(most.saturating_sub(grid));
                self.jitter = self.jitter.max(off);
                self.skips = self.skips.max(periods - 1);
            }
            (None, None) => {}
        }
    }
}

/// Activations left out in a row; as far as slips are listed.
fn most_in_a_row(model: &Periodic) -> u64 {
    match model.slips.len() < MAX_SLIPS {
        true => model.slips.iter().filter_map(|slip| u64::try_from(slip.activations).ok()).max().unwrap_or(0),
        false => model.skipped,
    }
}

fn scheduling(task: &Task) -> impl PartialEq + use<> {
    (task.policy, task.priority, task.reservation)
}

/// How many of these threads there were at the same time. Those of several recordings were at different ones.
fn at_once<K: PartialEq, I: Ord + Copy>(threads: &[(K, u32, I, I)]) -> u64 {
    let overlap = |one: &(K, u32, I, I), at: I| one.2 <= at && at < one.3;
    let others = |it: &(K, u32, I, I)| {
        let same = threads.iter().filter(|other| other.0 == it.0 && overlap(other, it.2));
        let mut tids: Vec<u32> = same.map(|other| other.1).collect();
        tids.sort_unstable();
        tids.dedup();
        tids.len() as u64
    };
    threads.iter().map(others).max().unwrap_or(0)
}
