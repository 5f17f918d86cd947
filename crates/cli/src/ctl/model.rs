//! What the threads of a timing model need.

use punctual_client::Parameters;
use punctual_model::{Duration, Policy, Stream, Task, TimingModel};

/// What one thread needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The thread's name.
    pub name: String,
    pub parameters: Parameters,
}

impl Need {
    /// What is declared, for people.
    pub fn told(&self) -> String {
        let time = |time: Option<Duration>| time.map_or("unknown".into(), |time| time.to_string());
        format!("period {}, runtime {}", time(self.parameters.period), time(self.parameters.runtime))
    }
}

/// One need for each thread of the model, with `margin` percent added to its greatest observed cost and with what `declared` says beside; and in words,
/// which threads have none, and why.
pub fn needs(model: &TimingModel, margin: u32, declared: &Parameters) -> (Vec<Need>, Vec<String>) {
    let mut threads: Vec<Vec<&Task>> = Vec::new();
    for task in &model.tasks {
        let same = |phases: &&mut Vec<&Task>| (phases[0].tid, &phases[0].recording) == (task.tid, &task.recording);
        match threads.iter_mut().find(same) {
            Some(phases) => phases.push(task),
            None => threads.push(vec![task]),
        }
    }
    let (mut needs, mut unfit) = (Vec::new(), Vec::new());
    for phases in threads {
        // A thread begins as what it was started as, and then becomes what it is: its most jobs are those of its later life.
        let fit = phases.iter().filter_map(|task| Some((task, stream(task)?, needed(stream(task)?, margin)?)));
        match fit.max_by_key(|(task, stream, _)| (is_real_time(task.policy), stream.jobs)) {
            Some((task, _, (period, runtime))) => {
                let parameters = Parameters { period: Some(period), runtime: Some(runtime), ..declared.clone() };
                needs.push(Need { name: task.name.clone(), parameters });
            }
            // Best-effort threads that were only just seen are none of anybody's concern.
            None if phases.iter().any(|task| is_real_time(task.policy)) => {
                unfit.push(format!("thread {} of the model has no period and comes in bursts, or has no runtime", phases[0].name));
            }
            None => {}
        }
    }
    (needs, unfit)
}

fn is_real_time(policy: Policy) -> bool {
    matches!(policy, Policy::Fifo | Policy::Rr | Policy::Deadline)
}

fn stream(task: &Task) -> Option<&Stream> {
    task.streams.get(task.primary?)
}

/// The period, rounded down, or else the least distance of two releases; and the runtime with its margin, rounded up. Releases closer to each other
/// than a job is long are bursts, which no period describes.
fn needed(stream: &Stream, margin: u32) -> Option<(Duration, Duration)> {
    let arrival = &stream.arrival;
    let period = arrival.periodic.as_ref().map(|periodic| match periodic.period_exact {
        Some(exact) if exact.denominator > 0 => Duration::from_ns(exact.numerator / exact.denominator),
        _ => periodic.period_ns,
    });
    let wcet = *stream.execution.as_ref()?.wcet_ns.first()?;
    let with_margin = (u128::from(wcet.ns()) * u128::from(100 + margin)).div_ceil(100);
    let runtime = Duration::from_ns(u64::try_from(with_margin).unwrap_or(u64::MAX));
    let distance = || arrival.sporadic.as_ref().map(|sporadic| sporadic.min_separation_ns).filter(|distance| *distance >= runtime);
    period.or_else(distance).filter(|period| *period > Duration::ZERO).map(|period| (period, runtime))
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let tasks: Vec<Task> = tasks.into_iter().map(|task| serde_json::from_value(task).expect("a task")).collect();
        let platform = json!({"kernel": "", "machine": "", "cpus": 1});
        let observation = json!({"clock": "monotonic", "from_ns": 0, "until_ns": 9, "records": 1, "lost_records": 0});
        TimingModel {
            format: String::new(),
            version: 1,
            platform: serde_json::from_value(platform).expect("a platform"),
            observation: serde_json::from_value(observation).expect("an observation"),
            tasks,
        }
    }

    fn declared(model: &TimingModel) -> Vec<(String, u64, u64)> {
        let (needs, _) = needs(model, 10, &Parameters::default());
        let ns = |time: Option<Duration>| time.map_or(0, Duration::ns);
        needs.into_iter().map(|need| (need.name, ns(need.parameters.period), ns(need.parameters.runtime))).collect()
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
        let expected = [("worker".into(), 1_000, 112), ("worker".into(), 2_000, 110), ("events".into(), 700, 33)];
        assert_eq!(declared(&model), expected);
    }

    #[test]
    fn what_has_no_period_is_said() {
        let model = model(vec![
            task("often", 2, 0, "SCHED_FIFO", stream(1, json!({}), json!([1]))),
            task("bursts", 4, 0, "SCHED_FIFO", stream(9, json!({"sporadic": {"min_separation_ns": 5}}), json!([6]))),
            task("idle", 3, 0, "SCHED_OTHER", stream(1, json!({}), json!([1]))),
        ]);
        let (needs, unfit) = needs(&model, 10, &Parameters::default());
        assert!(needs.is_empty());
        assert_eq!(unfit.len(), 2, "{unfit:?}");
        assert_eq!(unfit[0], "thread often of the model has no period and comes in bursts, or has no runtime");
    }

    #[test]
    fn a_margin_does_not_overflow() {
        let model = model(vec![task("a", 2, 0, "SCHED_FIFO", stream(9, periodic(5), json!([u64::MAX])))]);
        assert_eq!(declared(&model), [("a".into(), 5, u64::MAX)]);
    }
}
