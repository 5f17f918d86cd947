//! Specs for `punctuald` from a timing model or a contract: one for each selected thread. [`remarks`] says
//! what users must know before the threads start; a [`Watcher`] attaches them to their specs.

mod agreed;
mod live;
mod remarks;
mod surplus;
mod threads;

pub use agreed::{agreed, unmatched_in};
pub use remarks::{printable, remarks};
pub use threads::Watcher;

use crate::ThreadFilter;
use punctual_client::Parameters;
use punctual_model::{Duration, Execution, Percent, Periodic, Slip, Stream, Task, ThreadIds, TimingModel};
use std::collections::{BTreeMap, BTreeSet};

/// Which threads of a model get specs, and with how much margin.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Percent added to the observed cost.
    pub margin: Percent,
    /// The share of the observed jobs that a runtime covers.
    pub quantile: Quantile,
    /// Threads with fewer jobs get no spec.
    pub min_jobs: u64,
    /// The threads to include.
    pub only: ThreadFilter,
    /// The threads to exclude; none if it is empty.
    pub without: ThreadFilter,
    /// Whether to declare the observed real-time priorities.
    pub keep_priorities: bool,
}

impl Choice {
    fn includes(&self, name: &str) -> bool {
        self.only.matches(name) && (self.without.is_empty() || !self.without.matches(name))
    }
}

/// A share of the observed jobs, in thousandths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantile(pub u64);

impl Quantile {
    /// Every job.
    pub const ALL: Quantile = Quantile(100_000);
    /// All but those that took exceptionally long: of few jobs, the first is the longest.
    const USUAL: [Quantile; 3] = [Quantile(99_900), Quantile(99_000), Quantile(90_000)];

    /// The cost that covers at least this share: the next percentile in the model, and how many in a thousand
    /// it covers; `None` if only the greatest cost does.
    fn cost(self, stream: &Stream) -> Option<(u64, Duration)> {
        let costs = stream.percentiles.as_ref()?.cost.as_ref()?;
        costs.each().into_iter().find(|(permille, _)| permille * 100 >= self.0)
    }
}

/// A runtime that some of the observed jobs exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    /// How many of a thousand jobs it covers.
    pub permille: u64,
    /// What those took at most, without a margin.
    pub observed: Duration,
    /// What the longest took.
    pub longest: Duration,
}

/// The spec of one thread, and how it was derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The thread's name.
    pub name: String,
    /// Its TID in the model.
    pub tid: u32,
    /// Whether it was, or may have been, the first thread of its process (imported traces do not always
    /// say).
    pub first: bool,
    /// Number of observed jobs.
    pub jobs: u64,
    /// Number of jobs that a period may have: one, plus extra releases.
    pub together: u64,
    /// What the runtime covers, if not all jobs.
    pub covered: Option<Covered>,
    /// The greatest of some usual shares of the observed jobs, in thousandths, that keeps to a shorter
    /// runtime, and that runtime, with the same margin.
    pub usual: Option<(u64, Duration)>,
    /// Whether the model has percentiles of the jobs' costs.
    pub has_percentiles: bool,
    /// What to declare.
    pub parameters: Parameters,
}

impl Need {
    /// Describes the declared parameters.
    pub fn describe(&self) -> String {
        let time = |time: Option<Duration>| time.map_or("unknown".into(), |time| time.to_string());
        let priority = self.parameters.priority.map_or(String::new(), |it| format!(", priority {it}"));
        format!(
            "period {}, runtime {}{priority}",
            time(self.parameters.period),
            time(self.parameters.runtime)
        )
    }
}

/// A thread of the model without a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// The thread's name.
    pub name: String,
    /// Its TID in the model.
    pub tid: u32,
    /// As [`Need::first`].
    pub first: bool,
    /// Why it has none.
    pub reason: Reason,
}

/// Why a thread has no spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Fewer jobs than required: it ended soon, or was not observed for long enough.
    FewJobs,
    /// No execution time is known.
    NoRuntime,
    /// No period is known.
    NoPeriod,
    /// Releases closer together than a job is long.
    Bursts,
}

impl Reason {
    /// What is missing, in words.
    pub fn explanation(self) -> &'static str {
        match self {
            Reason::FewJobs => "it had too few jobs",
            Reason::NoRuntime => "its cost is not known",
            Reason::NoPeriod => "its period is not known",
            Reason::Bursts => "its releases come closer together than a job is long",
        }
    }

    /// What a user can do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Reason::FewJobs => "observe it for longer, or lower --min-jobs",
            Reason::NoRuntime | Reason::NoPeriod => {
                "observe it for longer, or declare it by hand with --period and --runtime"
            }
            Reason::Bursts => "declare it by hand: --period and --runtime of a whole burst",
        }
    }
}

/// The specs for the threads of a model.
pub struct Needs {
    /// In the order in which the threads were started.
    pub needs: Vec<Need>,
    /// Selected threads without a spec.
    pub unserved: Vec<Unserved>,
    /// Number of recordings in the model.
    pub recordings: usize,
}

impl Needs {
    /// Why threads have no spec, each reason once.
    pub fn reasons(&self) -> Vec<Reason> {
        let mut reasons: Vec<Reason> = Vec::new();
        for thread in &self.unserved {
            if !reasons.contains(&thread.reason) {
                reasons.push(thread.reason);
            }
        }
        reasons
    }
}

/// Period and runtime of a task.
#[derive(Clone, Copy)]
struct Timing {
    period: Duration,
    runtime: Duration,
    covered: Option<Covered>,
    usual: Option<(u64, Duration)>,
    together: u64,
}

/// The first pattern of `choice` that matches no thread of the model.
pub fn unmatched<'a>(model: &TimingModel, choice: &'a Choice) -> Option<&'a str> {
    let names = model.tasks().iter().map(|task| task.name.as_str());
    choice.only.unmatched(names.clone()).or_else(|| choice.without.unmatched(names))
}

/// Derives the specs of the selected threads. Parameters that the model does not determine are those of
/// `declared`.
pub fn needs(model: &TimingModel, choice: &Choice, declared: &Parameters) -> Needs {
    let (mut needs, mut unserved) = (Vec::new(), Vec::new());
    for phases in &threads(model) {
        let Some((task, timing)) = most_informative(phases, choice) else { continue };
        if !choice.includes(&task.name) {
            continue;
        }
        match timing {
            Ok(timing) => needs.push(need(task, timing, choice, declared)),
            Err(reason) => {
                let (name, tid, first) = (task.name.clone(), task.tid, task.pid == task.tid);
                unserved.push(Unserved { name, tid, first, reason });
            }
        }
    }
    Needs { needs, unserved, recordings: recordings(model) }
}

fn need(task: &Task, timing: Timing, choice: &Choice, declared: &Parameters) -> Need {
    let Timing { period, runtime, covered, usual, together } = timing;
    let mut parameters = Parameters { period: Some(period), runtime: Some(runtime), ..declared.clone() };
    if choice.keep_priorities && task.priority > 0 {
        parameters.priority = Some(task.priority);
    }
    Need {
        name: task.name.clone(),
        tid: task.tid,
        first: task.pid == task.tid,
        jobs: jobs(task),
        together,
        covered,
        usual,
        has_percentiles: stream(task).and_then(|stream| stream.percentiles.as_ref()?.cost.as_ref()).is_some(),
        parameters,
    }
}

fn recordings(model: &TimingModel) -> usize {
    model.tasks().iter().map(|task| &task.recording).collect::<BTreeSet<_>>().len()
}

/// The tasks of each thread, in the order in which the threads were started.
fn threads(model: &TimingModel) -> Vec<Vec<&Task>> {
    let ids = ThreadIds::new(model.tasks());
    // The kernel assigns TIDs in ascending order.
    let mut threads: BTreeMap<_, Vec<&Task>> = BTreeMap::new();
    for task in model.tasks() {
        threads.entry((&task.recording, task.tid, ids.of(task))).or_default().push(task);
    }
    threads.into_values().collect()
}

/// The most informative task of a thread, and its period and runtime. Prefers real-time tasks, then those
/// that can be declared, then those with more jobs, then later ones: a thread often starts under another name
/// and policy.
fn most_informative<'a>(phases: &[&'a Task], choice: &Choice) -> Option<(&'a Task, Result<Timing, Reason>)> {
    let real_time = phases.iter().any(|task| task.policy.is_real_time());
    let candidates = phases.iter().filter(|task| task.policy.is_real_time() == real_time);
    let timings = candidates
        .map(|task| (*task, stream(task).ok_or(Reason::NoPeriod).and_then(|stream| timing(stream, choice))));
    let (task, timing) = timings.max_by_key(|(task, timing)| (timing.is_ok(), jobs(task)))?;
    Some((task, if jobs(task) < choice.min_jobs { Err(Reason::FewJobs) } else { timing }))
}

fn jobs(task: &Task) -> u64 {
    stream(task).map_or(0, |stream| stream.jobs)
}

fn stream(task: &Task) -> Option<&Stream> {
    task.streams.get(task.primary?)
}

/// The period, rounded down, or the least separation of releases; and the runtime that covers the chosen
/// share of jobs, with the margin, rounded up. Releases closer together than a job is long are bursts, which
/// have no period.
///
/// Skipped activations need no more than others. With extra releases, the runtime covers all the jobs that a
/// period may have.
fn timing(stream: &Stream, choice: &Choice) -> Result<Timing, Reason> {
    let execution = stream.execution.as_ref().filter(|execution| !execution.wcet_ns.is_empty());
    let execution = execution.ok_or(Reason::NoRuntime)?;
    let arrival = &stream.arrival;
    let together = arrival.periodic.as_ref().map_or(1, |periodic| extra_together(periodic).saturating_add(1));
    let greatest = demand(execution, together);
    let quantile = choice.quantile.cost(stream);
    let all_jobs = |cost: Duration| u128::from(cost.ns()).saturating_mul(together.into());
    let cost = quantile.map_or(greatest, |(_, cost)| all_jobs(cost).min(greatest));
    let runtime = with_margin(cost, choice.margin);
    let covered = quantile.filter(|_| cost < greatest).map(|(permille, _)| Covered {
        permille,
        observed: with_margin(cost, Percent::ZERO),
        longest: with_margin(greatest, Percent::ZERO),
    });
    let usual = Quantile::USUAL
        .iter()
        .filter_map(|quantile| quantile.cost(stream))
        .map(|(permille, cost)| (permille, with_margin(all_jobs(cost), choice.margin)))
        .find(|(_, usual)| *usual < runtime);
    let period = match (&arrival.periodic, &arrival.sporadic) {
        (Some(periodic), _) => match periodic.period_exact {
            Some(exact) if exact.denominator > 0 => Duration::from_ns(exact.numerator / exact.denominator),
            _ => periodic.period_ns,
        },
        (None, Some(sporadic)) if sporadic.min_separation_ns < runtime => return Err(Reason::Bursts),
        (None, Some(sporadic)) => sporadic.min_separation_ns,
        (None, None) => return Err(Reason::NoPeriod),
    };
    match () {
        () if period == Duration::ZERO => Err(Reason::NoPeriod),
        () if together > 1 && runtime > period => Err(Reason::Bursts),
        () => Ok(Timing { period, runtime, covered, usual, together }),
    }
}

/// The greatest number of extra releases of one activation: those listed less than a period apart; all of
/// them, if the list is incomplete.
fn extra_together(periodic: &Periodic) -> u64 {
    let extra = || periodic.slips.iter().filter(|slip| slip.activations < 0);
    let sum = |slips: &mut dyn Iterator<Item = &Slip>| {
        slips.fold(0_u64, |sum, slip| sum.saturating_add(slip.activations.unsigned_abs()))
    };
    if sum(&mut extra()) != periodic.extra {
        return periodic.extra;
    }
    let near = |first: &Slip| {
        sum(&mut extra()
            .filter(|slip| slip.at_ns >= first.at_ns && slip.at_ns.since(first.at_ns) <= periodic.period_ns))
    };
    extra().map(near).max().unwrap_or(0)
}

/// The cost of this many consecutive jobs; past the curve, as many whole curves as fit, plus the remainder.
fn demand(execution: &Execution, jobs: u64) -> u128 {
    let curve = &execution.wcet_ns;
    let cost = |jobs: u64| {
        jobs.checked_sub(1)
            .and_then(|index| curve.get(index as usize))
            .map_or(0, |cost| u128::from(cost.ns()))
    };
    let length = curve.len() as u64;
    u128::from(jobs / length) * cost(length) + cost(jobs % length)
}

fn with_margin(cost: u128, margin: Percent) -> Duration {
    Duration::from_ns(u64::try_from(margin.above(cost)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Threads;
    use serde_json::{Value, json};

    fn task(name: &str, tid: u32, phase: u32, policy: &str, stream: Value) -> Value {
        json!({
            "name": name, "pid": 1, "tid": tid, "phase": phase, "command": "a", "policy": policy,
            "priority": if policy == "SCHED_OTHER" { 0 } else { tid }, "affinity": "0", "from_ns": 0,
            "until_ns": 9, "ended_by": "observation_end", "primary": 0, "streams": [stream]
        })
    }

    fn stream(jobs: u64, arrival: Value, wcet: Value) -> Value {
        json!({
            "separator": {"call": "clock_nanosleep", "clock": "CLOCK_MONOTONIC", "absolute": true},
            "jobs": jobs, "uncertain_releases": 0, "arrival": arrival, "execution": {"wcet_ns": wcet}
        })
    }

    fn periodic(period: u64) -> Value {
        json!({"periodic": {
            "on": "release", "period_ns": period, "offset_ns": 0, "jitter_ns": 0, "least_jitter_ns": 0,
            "choice": "rounded"
        }})
    }

    fn model(tasks: Vec<Value>) -> TimingModel {
        let tasks: Vec<Task> =
            tasks.into_iter().map(|task| serde_json::from_value(task).expect("a task")).collect();
        TimingModel {
            threads: Some(Threads { tasks, ..Threads::default() }),
            ..TimingModel::new("monotonic")
        }
    }

    fn all() -> Choice {
        Choice {
            margin: Percent::whole(10),
            quantile: Quantile::ALL,
            min_jobs: 10,
            only: ThreadFilter::default(),
            without: ThreadFilter::default(),
            keep_priorities: false,
        }
    }

    fn filter(patterns: &[&str]) -> ThreadFilter {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        ThreadFilter::new(&patterns).expect("patterns")
    }

    fn chosen(model: &TimingModel, choice: &Choice) -> Vec<(String, u64, u64)> {
        let ns = |time: Option<Duration>| time.map_or(0, Duration::ns);
        let needs = needs(model, choice, &Parameters::default()).needs;
        needs
            .into_iter()
            .map(|need| (need.name, ns(need.parameters.period), ns(need.parameters.runtime)))
            .collect()
    }

    fn declared(model: &TimingModel) -> Vec<(String, u64, u64)> {
        chosen(model, &all())
    }

    fn remarked(model: &TimingModel) -> Vec<String> {
        remarks(&needs(model, &all(), &Parameters::default()), &all())
    }

    #[test]
    fn specs_are_the_observed_period_and_runtime_with_a_margin() {
        let sporadic = json!({"sporadic": {"min_separation_ns": 700}});
        let model = model(vec![
            task("starting", 2, 0, "SCHED_OTHER", stream(90, periodic(3), json!([1]))),
            task("worker", 2, 1, "SCHED_FIFO", stream(50, periodic(1_000), json!([101, 150]))),
            task("worker", 3, 0, "SCHED_FIFO", stream(50, periodic(2_000), json!([100]))),
            task("events", 4, 0, "SCHED_RR", stream(50, sporadic, json!([30]))),
        ]);
        let expected =
            [("worker".into(), 1_000, 112), ("worker".into(), 2_000, 110), ("events".into(), 700, 33)];
        assert_eq!(declared(&model), expected);
    }

    #[test]
    fn the_most_informative_task_of_a_thread_is_used() {
        let model = model(vec![
            // Tasks from before it became real-time are ignored, even if the rest cannot be declared.
            task("before", 2, 0, "SCHED_OTHER", stream(90, periodic(3), json!([1]))),
            task(
                "bursts",
                2,
                1,
                "SCHED_FIFO",
                stream(50, json!({"sporadic": {"min_separation_ns": 5}}), json!([6])),
            ),
            task("moved", 3, 0, "SCHED_FIFO", stream(20, periodic(1_000), json!([1]))),
            task("moved", 3, 1, "SCHED_FIFO", stream(20, periodic(2_000), json!([1]))),
            task("moved", 3, 2, "SCHED_FIFO", stream(90, json!({}), json!([1]))),
        ]);
        assert_eq!(declared(&model), [("moved".into(), 2_000, 2)]);
        let remarks = remarked(&model);
        assert!(remarks.len() == 1 && remarks[0].contains("thread bursts (TID 2"), "{remarks:?}");
    }

    #[test]
    fn threads_are_in_the_order_of_their_start() {
        let model = model(vec![
            task("control", 12, 0, "SCHED_FIFO", stream(50, periodic(1_000), json!([10]))),
            task("control", 11, 0, "SCHED_FIFO", stream(50, periodic(2_000), json!([10]))),
        ]);
        assert_eq!(declared(&model), [("control".into(), 2_000, 11), ("control".into(), 1_000, 11)]);
    }

    #[test]
    fn models_of_several_recordings_are_pointed_out() {
        let recorded = |recording: &str| {
            let mut task = task("control", 11, 0, "SCHED_FIFO", stream(50, periodic(1_000), json!([10])));
            task["recording"] = recording.into();
            task
        };
        let model = model(vec![recorded("monday"), recorded("tuesday")]);
        assert_eq!(declared(&model).len(), 2);
        assert_eq!(
            remarked(&model),
            ["the model has 2 recordings: a thread that is in several of them gets a spec for each"]
        );
    }

    #[test]
    fn threads_with_few_jobs_or_not_selected_get_no_spec() {
        let model = model(vec![
            task("control", 2, 0, "SCHED_FIFO", stream(10, periodic(1_000), json!([10]))),
            task("sh", 3, 0, "SCHED_OTHER", stream(2, periodic(400), json!([10]))),
            task("vision", 4, 0, "SCHED_OTHER", stream(50, periodic(3_000), json!([10]))),
        ]);
        let names =
            |choice: &Choice| chosen(&model, choice).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
        assert_eq!(names(&all()), ["control", "vision"]);
        assert_eq!(names(&Choice { min_jobs: 2, ..all() }), ["control", "sh", "vision"]);
        assert_eq!(names(&Choice { min_jobs: 11, ..all() }), ["vision"]);
        assert_eq!(names(&Choice { without: filter(&["vision"]), ..all() }), ["control"]);
        assert_eq!(names(&Choice { only: filter(&["v*", "sh"]), ..all() }), ["vision"]);
        assert_eq!(names(&Choice { only: filter(&["vision"]), without: filter(&["v*"]), ..all() }), [""; 0]);
        let choice = Choice { only: filter(&["vision"]), without: filter(&["visoin"]), ..all() };
        assert_eq!(unmatched(&model, &choice), Some("visoin"));
        let choice = Choice { only: filter(&["vision"]), without: filter(&["s?"]), ..all() };
        assert_eq!(unmatched(&model, &choice), None);
    }

    #[test]
    fn observed_priorities_are_declared_on_request() {
        let model = model(vec![
            task("control", 42, 0, "SCHED_FIFO", stream(50, periodic(1_000), json!([10]))),
            task("vision", 43, 0, "SCHED_OTHER", stream(50, periodic(3_000), json!([10]))),
        ]);
        let priorities = |keep_priorities| {
            let needs = needs(&model, &Choice { keep_priorities, ..all() }, &Parameters::default()).needs;
            needs.iter().map(|need| need.parameters.priority).collect::<Vec<_>>()
        };
        assert_eq!(priorities(false), [None, None]);
        assert_eq!(priorities(true), [Some(42), None]);
    }

    #[test]
    fn threads_that_cannot_be_declared_are_listed_with_the_reason() {
        let no_runtime = json!({
            "separator": {"call": "pause"}, "jobs": 50, "uncertain_releases": 0, "arrival": periodic(5)
        });
        let model = model(vec![
            task("often", 2, 0, "SCHED_FIFO", stream(50, json!({}), json!([1]))),
            task(
                "zero",
                3,
                0,
                "SCHED_OTHER",
                stream(50, json!({"sporadic": {"min_separation_ns": 0}}), json!([0])),
            ),
            task("free", 4, 0, "SCHED_FIFO", no_runtime),
            task("idle", 5, 0, "SCHED_OTHER", stream(1, json!({}), json!([1]))),
        ]);
        assert!(declared(&model).is_empty());
        let remarks = remarked(&model);
        let expected = [
            "than 10 jobs gets no spec (--min-jobs): idle",
            "often (TID 2 in",
            "zero (TID 3 in",
            "free (TID 4 in the model) gets no spec: no runtime",
        ];
        assert!(
            remarks.len() == 4 && remarks.iter().zip(expected).all(|(remark, part)| remark.contains(part)),
            "{remarks:?}"
        );
        let reasons = needs(&model, &all(), &Parameters::default()).reasons();
        assert_eq!(reasons, [Reason::NoPeriod, Reason::NoRuntime, Reason::FewJobs]);
    }

    /// The period stays the same; with extra releases, the runtime covers all jobs of a period.
    #[test]
    fn specs_cover_slips() {
        let with_slips = |fields: Value, wcet: Value| {
            let mut arrival = periodic(1_000);
            arrival["periodic"]
                .as_object_mut()
                .expect("an object")
                .extend(fields.as_object().cloned().expect("an object"));
            model(vec![task("a", 2, 0, "SCHED_FIFO", stream(50, arrival, wcet))])
        };
        let slips = |places: &[(u64, i64)]| -> Value {
            places.iter().map(|(at, activations)| json!({"at_ns": at, "activations": activations})).collect()
        };
        let declared = |model: TimingModel| {
            declared(&model).into_iter().map(|(_, period, runtime)| (period, runtime)).collect::<Vec<_>>()
        };
        let skipped = json!({"skipped": 2, "slips": slips(&[(5_000, 2)])});
        assert_eq!(declared(with_slips(skipped, json!([100, 150]))), [(1_000, 110)]);
        // Far apart, then close together.
        let apart = json!({"extra": 2, "slips": slips(&[(5_000, -1), (9_000, -1)])});
        let model = with_slips(apart, json!([100, 150, 170]));
        assert_eq!(
            remarked(&model),
            ["thread a (TID 2 in the model) was released up to 2 times in a period: its runtime is that of \
                 2 jobs"]
        );
        assert_eq!(declared(model), [(1_000, 165)]);
        let close = json!({"extra": 2, "slips": slips(&[(5_000, -1), (5_900, -1)])});
        assert_eq!(declared(with_slips(close.clone(), json!([100, 150, 170]))), [(1_000, 187)]);
        // A shorter curve: two jobs plus one.
        assert_eq!(declared(with_slips(close.clone(), json!([100, 150]))), [(1_000, 275)]);
        // An incomplete list: all extra releases may have been in one period.
        let many: Vec<(u64, i64)> = (0..10).map(|place| (5_000 * place, -1)).collect();
        assert_eq!(
            declared(with_slips(json!({"extra": 12, "slips": slips(&many)}), json!([10]))),
            [(1_000, 143)]
        );
        // More than fits in a period.
        let model = with_slips(close, json!([400]));
        assert!(remarked(&model)[0].contains("its jobs come in bursts"), "{:?}", remarked(&model));
        assert!(declared(model).is_empty());
    }

    /// One job in some thousand takes very long.
    #[test]
    fn a_quantile_excludes_outliers_and_says_so() {
        let outlier = |with: bool| {
            let mut stream = stream(5_000, periodic(1_000), json!([900, 950]));
            if with {
                let cost = json!({"p50_ns": 80, "p90_ns": 90, "p99_ns": 99, "p999_ns": 120});
                stream["percentiles"] = json!({ "cost": cost });
            }
            model(vec![task("a", 2, 0, "SCHED_FIFO", stream)])
        };
        let runtime = |model: &TimingModel, quantile| {
            chosen(model, &Choice { quantile: Quantile(quantile), ..all() })[0].2
        };
        let model = outlier(true);
        // The next percentile upwards, and a tenth.
        let asked = [1, 50_000, 50_001, 99_000, 99_001, 99_900, 99_901, 100_000];
        assert_eq!(asked.map(|quantile| runtime(&model, quantile)), [88, 88, 99, 109, 132, 132, 990, 990]);
        let remarked = |model: &TimingModel, quantile| {
            let choice = Choice { quantile: Quantile(quantile), ..all() };
            remarks(&needs(model, &choice, &Parameters::default()), &choice)
        };
        assert_eq!(
            remarked(&model, 99_500),
            ["1 thread gets a runtime that some of its jobs exceed: a (99.9 % took at most 120 ns, the \
                 longest 900 ns; runtime with the margin of 10 %: 132 ns); such jobs wait for the next \
                 period under SCHED_DEADLINE and delay less urgent threads under SCHED_FIFO and SCHED_RR; \
                 the guarantee does not cover them"]
        );
        assert!(remarked(&model, 100_000).is_empty());
        // Where every job is covered, it is known what would help.
        let usual = |quantile| {
            let choice = Choice { quantile: Quantile(quantile), ..all() };
            needs(&model, &choice, &Parameters::default()).needs[0].usual
        };
        let known = |permille, ns| Some((permille, Duration::from_ns(ns)));
        assert_eq!([100_000, 99_900, 90_000].map(usual), [known(999, 132), known(990, 109), None]);
        // Of few jobs, the longest is among 99.9 %.
        let mut few = outlier(true);
        let streams = few.threads.iter_mut().flat_map(|threads| &mut threads.tasks[0].streams);
        for percentiles in streams.filter_map(|stream| stream.percentiles.as_mut()) {
            let cost = percentiles.cost.as_mut().expect("costs");
            cost.p999_ns = Duration::from_ns(900);
        }
        assert_eq!(
            remarked(&few, 99_900),
            ["--runtime-quantile excludes no job of 1 thread, which gets its greatest runtime: a \
                 (5000 jobs)"]
        );
        let choice = all();
        assert_eq!(needs(&few, &choice, &Parameters::default()).needs[0].usual, known(990, 109));
        let model = outlier(false);
        assert_eq!(runtime(&model, 99_900), 990);
        assert_eq!(
            remarked(&model, 99_900),
            ["1 thread has no percentiles in the model and gets its greatest runtime: a"]
        );
    }

    #[test]
    fn a_margin_does_not_overflow() {
        let model = model(vec![task("a", 2, 0, "SCHED_FIFO", stream(10, periodic(5), json!([u64::MAX])))]);
        assert_eq!(declared(&model), [("a".into(), 5, u64::MAX)]);
    }
}
