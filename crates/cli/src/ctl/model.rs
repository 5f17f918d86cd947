//! What the threads of a timing model need: one spec for each, of those that are to have one.

use super::remarks;
use punctual_client::Parameters;
use punctual_model::{Duration, Execution, Periodic, Slip, Stream, Task, TimingModel};

/// Which threads of a model are to have specs, and how much to spare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Percent added to the observed cost.
    pub margin: u32,
    /// How many of the observed jobs a runtime covers.
    pub quantile: Quantile,
    /// Threads with fewer jobs have none.
    pub min_jobs: u64,
    /// Just the threads of these names; all, where there are none.
    pub only: Vec<String>,
    /// Not the threads of these names.
    pub without: Vec<String>,
}

/// A share of the observed jobs, in thousandths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantile(pub u64);

impl Quantile {
    /// Every job.
    pub const ALL: Quantile = Quantile(100_000);

    /// The cost that covers at least this share: the next percentile that the model has, and how many in a
    /// thousand it covers; `None` where only the greatest cost does.
    fn cost(self, stream: &Stream) -> Option<(u64, Duration)> {
        let costs = stream.percentiles.as_ref()?.cost.as_ref()?;
        costs.each().into_iter().find(|(permille, _)| permille * 100 >= self.0)
    }
}

/// A runtime that some of the observed jobs exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    /// How many of a thousand jobs do not.
    pub permille: u64,
    /// The greatest runtime, with the same margin.
    pub greatest: Duration,
}

/// What one thread needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The thread's name.
    pub name: String,
    /// Its number when it was observed.
    pub tid: u32,
    /// Whether it was, or may have been, the first thread of its process: traces of other tools do not always
    /// say.
    pub first: bool,
    /// From how many jobs this is known.
    pub jobs: u64,
    /// How many jobs a period may have: one, and the releases that were extra.
    pub together: u64,
    /// Where its runtime does not cover all jobs.
    pub covered: Option<Covered>,
    /// Whether the model says how its jobs' costs are distributed.
    pub has_percentiles: bool,
    pub parameters: Parameters,
}

impl Need {
    /// What is declared, for people.
    pub fn told(&self) -> String {
        let time = |time: Option<Duration>| time.map_or("unknown".into(), |time| time.to_string());
        format!("period {}, runtime {}", time(self.parameters.period), time(self.parameters.runtime))
    }
}

/// A thread of the model that has no spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Without {
    pub name: String,
    pub tid: u32,
    pub first: bool,
    pub why: Why,
}

/// Why a thread has no spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Fewer jobs than there have to be: a thread that came and went, or that was not observed for long
    /// enough.
    FewJobs,
    NoRuntime,
    NoPeriod,
    /// Releases closer to each other than a job is long.
    Bursts,
}

/// What becomes of a model's threads.
pub struct Needs {
    /// In the order in which the threads were started.
    pub needs: Vec<Need>,
    /// What a user has to know before anything is run, a line each.
    pub remarks: Vec<String>,
}

/// What a task needs.
#[derive(Clone, Copy)]
struct Needed {
    period: Duration,
    runtime: Duration,
    covered: Option<Covered>,
    together: u64,
}

type Known = Result<Needed, Why>;

/// A name of `choice` that no thread of the model has.
pub fn unknown<'a>(model: &TimingModel, choice: &'a Choice) -> Option<&'a String> {
    choice
        .only
        .iter()
        .chain(&choice.without)
        .find(|name| !model.tasks().iter().any(|task| task.name == **name))
}

/// One need for each thread of the model that is to have a spec, with what `declared` says beside.
pub fn needs(model: &TimingModel, choice: &Choice, declared: &Parameters) -> Needs {
    let mut threads: Vec<Vec<&Task>> = Vec::new();
    for task in model.tasks() {
        let same =
            |phases: &&mut Vec<&Task>| (phases[0].tid, &phases[0].recording) == (task.tid, &task.recording);
        match threads.iter_mut().find(same) {
            Some(phases) => phases.push(task),
            None => threads.push(vec![task]),
        }
    }
    // Numbers of threads are given out in ascending order.
    threads.sort_by(|one, other| (&one[0].recording, one[0].tid).cmp(&(&other[0].recording, other[0].tid)));
    let (mut needs, mut without) = (Vec::new(), Vec::new());
    for phases in &threads {
        let Some((task, known)) = most_telling(phases, choice) else { continue };
        let named = |names: &[String]| names.contains(&task.name);
        if !(choice.only.is_empty() || named(&choice.only)) || named(&choice.without) {
            continue;
        }
        let (name, tid, first) = (task.name.clone(), task.tid, task.pid == task.tid);
        match known {
            Ok(Needed { period, runtime, covered, together }) => {
                let parameters =
                    Parameters { period: Some(period), runtime: Some(runtime), ..declared.clone() };
                let has_percentiles =
                    stream(task).and_then(|stream| stream.percentiles.as_ref()?.cost.as_ref()).is_some();
                let jobs = jobs(task);
                needs.push(Need { name, tid, first, jobs, together, covered, has_percentiles, parameters });
            }
            Err(why) => without.push(Without { name, tid, first, why }),
        }
    }
    let mut remarks = remarks::on(&needs, &without, choice);
    let mut recordings: Vec<&Option<String>> = model.tasks().iter().map(|task| &task.recording).collect();
    recordings.sort();
    recordings.dedup();
    if recordings.len() > 1 {
        remarks.push(format!(
            "the model is of {} recordings: a thread that is in several of them has a spec for each",
            recordings.len()
        ));
    }
    Needs { needs, remarks }
}

/// The task of a thread's life that tells most of it, and its period and runtime: of those in which it was
/// real-time, if there are any, the one with the most jobs, rather one that can be declared; the later one of
/// equals. A thread begins as what it was started as, and then becomes what it is.
fn most_telling<'a>(phases: &[&'a Task], choice: &Choice) -> Option<(&'a Task, Known)> {
    let real_time = phases.iter().any(|task| task.policy.is_real_time());
    let candidates = phases.iter().filter(|task| task.policy.is_real_time() == real_time);
    let known = candidates
        .map(|task| (*task, stream(task).ok_or(Why::NoPeriod).and_then(|stream| needed(stream, choice))));
    let (task, known) = known.max_by_key(|(task, known)| (known.is_ok(), jobs(task)))?;
    Some((task, if jobs(task) < choice.min_jobs { Err(Why::FewJobs) } else { known }))
}

fn jobs(task: &Task) -> u64 {
    stream(task).map_or(0, |stream| stream.jobs)
}

fn stream(task: &Task) -> Option<&Stream> {
    task.streams.get(task.primary?)
}

/// The period, rounded down, or else the least distance of two releases; and the runtime that covers the
/// chosen share of jobs, with its margin, rounded up. Releases closer to each other than a job is long are bursts, which no period describes.
///
/// Skipped activations need no more than others. Where releases were extra, a period has to have time for all
/// the jobs that it may have.
fn needed(stream: &Stream, choice: &Choice) -> Known {
    let execution =
        stream.execution.as_ref().filter(|execution| !execution.wcet_ns.is_empty()).ok_or(Why::NoRuntime)?;
    let arrival = &stream.arrival;
    let together = arrival.periodic.as_ref().map_or(1, |periodic| extra_together(periodic).saturating_add(1));
    let greatest = demand(execution, together);
    let quantile = choice.quantile.cost(stream);
    let typical = |cost: Duration| u128::from(cost.ns()).saturating_mul(together.into());
    let cost = quantile.map_or(greatest, |(_, cost)| typical(cost).min(greatest));
    let runtime = with_margin(cost, choice.margin);
    let covered = quantile
        .filter(|_| cost < greatest)
        .map(|(permille, _)| Covered { permille, greatest: with_margin(greatest, choice.margin) });
    let period = match (&arrival.periodic, &arrival.sporadic) {
        (Some(periodic), _) => match periodic.period_exact {
            Some(exact) if exact.denominator > 0 => Duration::from_ns(exact.numerator / exact.denominator),
            _ => periodic.period_ns,
        },
        (None, Some(sporadic)) if sporadic.min_separation_ns < runtime => return Err(Why::Bursts),
        (None, Some(sporadic)) => sporadic.min_separation_ns,
        (None, None) => return Err(Why::NoPeriod),
    };
    match () {
        () if period == Duration::ZERO => Err(Why::NoPeriod),
        () if together > 1 && runtime > period => Err(Why::Bursts),
        () => Ok(Needed { period, runtime, covered, together }),
    }
}

/// How many extra releases may be of one activation: those listed less than a period apart; all of them,
/// where not all are listed.
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

/// What so many jobs in a row take together; beyond the curve, as many whole curves as fit, and the rest.
fn demand(execution: &Execution, jobs: u64) -> u128 {
    let curve = &execution.wcet_ns;
    let of = |jobs: u64| {
        jobs.checked_sub(1)
            .and_then(|index| curve.get(index as usize))
            .map_or(0, |cost| u128::from(cost.ns()))
    };
    let length = curve.len() as u64;
    u128::from(jobs / length) * of(length) + of(jobs % length)
}

fn with_margin(cost: u128, margin: u32) -> Duration {
    let with_margin = cost.saturating_mul(u128::from(100 + margin)).div_ceil(100);
    Duration::from_ns(u64::try_from(with_margin).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Threads;
    use serde_json::{Value, json};

    fn task(name: &str, tid: u32, phase: u32, policy: &str, stream: Value) -> Value {
        json!({
            "name": name, "pid": 1, "tid": tid, "phase": phase, "command": "a", "policy": policy, "priority": 0, "affinity": "0", "from_ns": 0,
            "until_ns": 9, "ended_by": "observation_end", "primary": 0, "streams": [stream]
        })
    }

    fn stream(jobs: u64, arrival: Value, wcet: Value) -> Value {
        json!({
            "separator": {"call": "clock_nanosleep", "clock": "CLOCK_MONOTONIC", "absolute": true}, "jobs": jobs, "uncertain_releases": 0, "arrival": arrival,
            "execution": {"wcet_ns": wcet}
        })
    }

    fn periodic(period: u64) -> Value {
        json!({"periodic": {"on": "release", "period_ns": period, "offset_ns": 0, "jitter_ns": 0, "least_jitter_ns": 0, "choice": "rounded"}})
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
        Choice { margin: 10, quantile: Quantile::ALL, min_jobs: 10, only: Vec::new(), without: Vec::new() }
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

    fn remarks(model: &TimingModel) -> Vec<String> {
        needs(model, &all(), &Parameters::default()).remarks
    }

    #[test]
    fn a_thread_needs_what_it_was_seen_to_need_and_the_margin() {
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
    fn the_task_that_tells_most_of_a_thread_counts() {
        let model = model(vec![
            // What it was before it became real-time has no say, even where the rest cannot be declared.
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
        let said = remarks(&model);
        assert!(said.len() == 1 && said[0].contains("thread bursts (TID 2"), "{said:?}");
    }

    #[test]
    fn threads_are_in_the_order_in_which_they_were_started() {
        let model = model(vec![
            task("control", 12, 0, "SCHED_FIFO", stream(50, periodic(1_000), json!([10]))),
            task("control", 11, 0, "SCHED_FIFO", stream(50, periodic(2_000), json!([10]))),
        ]);
        assert_eq!(declared(&model), [("control".into(), 2_000, 11), ("control".into(), 1_000, 11)]);
    }

    #[test]
    fn several_recordings_are_told() {
        let of = |recording: &str| {
            let mut task = task("control", 11, 0, "SCHED_FIFO", stream(50, periodic(1_000), json!([10])));
            task["recording"] = recording.into();
            task
        };
        let model = model(vec![of("monday"), of("tuesday")]);
        assert_eq!(declared(&model).len(), 2);
        assert_eq!(
            remarks(&model),
            ["the model is of 2 recordings: a thread that is in several of them has a spec for each"]
        );
    }

    #[test]
    fn threads_with_few_jobs_and_those_that_are_not_wanted_have_none() {
        let model = model(vec![
            task("control", 2, 0, "SCHED_FIFO", stream(10, periodic(1_000), json!([10]))),
            task("sh", 3, 0, "SCHED_OTHER", stream(2, periodic(400), json!([10]))),
            task("vision", 4, 0, "SCHED_OTHER", stream(50, periodic(3_000), json!([10]))),
        ]);
        let names =
            |choice: &Choice| chosen(&model, choice).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
        let of = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&all()), ["control", "vision"]);
        assert_eq!(names(&Choice { min_jobs: 2, ..all() }), ["control", "sh", "vision"]);
        assert_eq!(names(&Choice { min_jobs: 11, ..all() }), ["vision"]);
        assert_eq!(names(&Choice { without: of(&["vision"]), ..all() }), ["control"]);
        assert_eq!(names(&Choice { only: of(&["vision", "sh"]), ..all() }), ["vision"]);
        assert_eq!(names(&Choice { only: of(&["vision"]), without: of(&["vision"]), ..all() }), [""; 0]);
        assert_eq!(
            unknown(&model, &Choice { only: of(&["vision"]), without: of(&["visoin"]), ..all() }),
            Some(&"visoin".into())
        );
        assert_eq!(unknown(&model, &Choice { only: of(&["vision"]), without: of(&["sh"]), ..all() }), None);
    }

    #[test]
    fn what_cannot_be_declared_is_told_with_its_reason() {
        let no_runtime = json!({"separator": {"call": "pause"}, "jobs": 50, "uncertain_releases": 0, "arrival": periodic(5)});
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
        let said = remarks(&model);
        let expected = [
            "than 10 jobs gets no spec (--min-jobs): idle",
            "often (TID 2 in",
            "zero (TID 3 in",
            "free (TID 4 in the model) gets no spec: no runtime",
        ];
        assert!(
            said.len() == 4 && said.iter().zip(expected).all(|(said, expected)| said.contains(expected)),
            "{said:?}"
        );
    }

    /// Ten times in a second, but for some: the same period and, where releases were extra, time for all of a
    /// period's jobs.
    #[test]
    fn slips_make_no_declaration_too_small() {
        let of = |fields: Value, wcet: Value| {
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
        assert_eq!(declared(of(skipped, json!([100, 150]))), [(1_000, 110)]);
        // Far apart, then close together.
        let apart = json!({"extra": 2, "slips": slips(&[(5_000, -1), (9_000, -1)])});
        let model = of(apart, json!([100, 150, 170]));
        assert_eq!(
            remarks(&model),
            [
                "thread a (TID 2 in the model) was released up to 2 times in a period: its runtime is that of 2 jobs"
            ]
        );
        assert_eq!(declared(model), [(1_000, 165)]);
        let close = json!({"extra": 2, "slips": slips(&[(5_000, -1), (5_900, -1)])});
        assert_eq!(declared(of(close.clone(), json!([100, 150, 170]))), [(1_000, 187)]);
        // A curve that ends before: two and one.
        assert_eq!(declared(of(close.clone(), json!([100, 150]))), [(1_000, 275)]);
        // More than are listed: all of them may have been at once.
        let many: Vec<(u64, i64)> = (0..10).map(|place| (5_000 * place, -1)).collect();
        assert_eq!(declared(of(json!({"extra": 12, "slips": slips(&many)}), json!([10]))), [(1_000, 143)]);
        // No period has time for that.
        let model = of(close, json!([400]));
        assert!(remarks(&model)[0].contains("its jobs come in bursts"), "{:?}", remarks(&model));
        assert!(declared(model).is_empty());
    }

    /// One job in some thousand took very long.
    #[test]
    fn a_quantile_leaves_outliers_out_and_says_so() {
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
        let said = |model: &TimingModel, quantile| {
            needs(model, &Choice { quantile: Quantile(quantile), ..all() }, &Parameters::default()).remarks
        };
        assert_eq!(
            said(&model, 99_500),
            ["1 thread gets a runtime that not all of its jobs keep to: a (99.9 % take at most 132 ns, the \
                 longest 990 ns); under SCHED_DEADLINE the others wait for their next period, under \
                 SCHED_FIFO and SCHED_RR they delay what is less urgent: the guarantee does not cover that"]
        );
        assert!(said(&model, 100_000).is_empty());
        let model = outlier(false);
        assert_eq!(runtime(&model, 99_900), 990);
        assert_eq!(
            said(&model, 99_900),
            ["1 thread has no percentiles in the model and gets its greatest runtime: a"]
        );
    }

    #[test]
    fn a_margin_does_not_overflow() {
        let model = model(vec![task("a", 2, 0, "SCHED_FIFO", stream(10, periodic(5), json!([u64::MAX])))]);
        assert_eq!(declared(&model), [("a".into(), 5, u64::MAX)]);
    }
}
