//! Simulates schedules, one unit of time after the other: admitted tasks meet their deadlines, and sets that
//! an exact test refuses do not. Shares nothing with the analyses.

use proptest::prelude::*;
use punctual_model::Duration;
use punctual_schedule::{
    Answer, AssignedPolicy, Kind, Limits, Offer, Parameters, Plugin, Refusal, Settings, SpecId, Test, plugin,
};
use std::collections::{BTreeMap, VecDeque};

/// All periods divide it.
const HYPERPERIOD: u64 = 120;
const PERIODS: [u64; 10] = [2, 3, 4, 5, 6, 8, 10, 12, 20, 30];

#[derive(Clone, Copy, Debug)]
struct Task {
    runtime: u64,
    period: u64,
    deadline: u64,
    policy: AssignedPolicy,
}

const NONE: Vec<usize> = Vec::new();

struct Job {
    release: u64,
    left: u64,
}

/// Who runs among equals.
#[derive(Clone, Copy, PartialEq)]
enum Ties {
    FirstComeFirstServed,
    RoundRobin,
    /// This one is always last.
    Against(usize),
}

/// The tasks that have a late job. `arrival` gives the release of job n of a task, at least a period after
/// the one before.
fn late(tasks: &[Task], ties: Ties, horizon: u64, arrival: impl Fn(usize, u64) -> u64) -> Vec<usize> {
    let mut late = vec![false; tasks.len()];
    let mut queues: Vec<VecDeque<Job>> = tasks.iter().map(|_| VecDeque::new()).collect();
    let mut next: Vec<(u64, u64)> = (0..tasks.len()).map(|task| (0, arrival(task, 0))).collect();
    let mut last_run = vec![0u64; tasks.len()];
    for now in 0..horizon {
        for (task, (number, at)) in next.iter_mut().enumerate() {
            if *at == now {
                queues[task].push_back(Job { release: now, left: tasks[task].runtime });
                *number += 1;
                *at = arrival(task, *number).max(now + tasks[task].period);
            }
        }
        let urgency = |task: usize| {
            let job = queues[task].front()?;
            let class = match tasks[task].policy {
                AssignedPolicy::Deadline { .. } => job.release + tasks[task].deadline,
                AssignedPolicy::Fifo(priority) | AssignedPolicy::RoundRobin(priority) => {
                    u64::from(99 - priority)
                }
                AssignedPolicy::Other { .. } => panic!("no plugin under test gives nice levels"),
                AssignedPolicy::Dispatched { .. } => panic!("no pure plugin gives slots of a table"),
            };
            let tie = match ties {
                Ties::FirstComeFirstServed => job.release,
                Ties::RoundRobin => last_run[task],
                Ties::Against(victim) => u64::from(victim == task),
            };
            Some((class, tie))
        };
        let Some(running) =
            (0..tasks.len()).filter(|&task| urgency(task).is_some()).min_by_key(|&task| urgency(task))
        else {
            continue;
        };
        last_run[running] = now + 1;
        let job = queues[running].front_mut().unwrap();
        job.left -= 1;
        if job.left == 0 {
            late[running] |= now + 1 > job.release + tasks[running].deadline;
            queues[running].pop_front();
        }
    }
    for (task, queue) in queues.iter().enumerate() {
        late[task] |= queue.iter().any(|job| job.release + tasks[task].deadline <= horizon);
    }
    (0..tasks.len()).filter(|&task| late[task]).collect()
}

fn all_at_once(tasks: &[Task]) -> impl Fn(usize, u64) -> u64 {
    |task, number| number * tasks[task].period
}

/// Arbitrary offsets, and now and then a job that is released later than it might be.
fn sporadic(tasks: &[Task], seed: u64) -> impl Fn(usize, u64) -> u64 {
    move |task, number| {
        let offset = seed.wrapping_mul(task as u64 + 7) % tasks[task].period;
        let delays = (number / 3) * (seed.wrapping_add(task as u64) % 3);
        offset + number * tasks[task].period + delays
    }
}

#[test]
fn the_simulation_agrees_with_known_examples() {
    let task = |runtime, period, deadline, priority| Task {
        runtime,
        period,
        deadline,
        policy: AssignedPolicy::Fifo(priority),
    };
    let tasks = [task(1, 4, 3, 4), task(1, 5, 4, 3), task(2, 6, 5, 2), task(1, 12, 10, 1)];
    assert_eq!(late(&tasks, Ties::FirstComeFirstServed, HYPERPERIOD, all_at_once(&tasks)), NONE);
    let tasks = [tasks[0], tasks[1], tasks[2], task(1, 12, 9, 1)];
    assert_eq!(late(&tasks, Ties::FirstComeFirstServed, HYPERPERIOD, all_at_once(&tasks)), [3]);
    let equals = [task(2, 10, 4, 1), task(2, 10, 3, 1)];
    assert_eq!(late(&equals, Ties::Against(1), HYPERPERIOD, all_at_once(&equals)), [1]);
    assert_eq!(late(&equals, Ties::Against(0), HYPERPERIOD, all_at_once(&equals)), NONE);
}

#[derive(Clone, Debug)]
enum Step {
    Create(Parameters),
    Change(usize, Parameters),
    Release(usize),
}

fn parameters(kind: Kind) -> impl Strategy<Value = Parameters> {
    let deadline =
        prop_oneof![2 => Just(None), 2 => (0.0..=1.0f64).prop_map(Some), 1 => (1.0..=3.0f64).prop_map(Some)];
    (
        prop::sample::select(&PERIODS[..]),
        0.0..0.5f64,
        deadline,
        1..=99u32,
        prop::option::weighted(0.3, 1..20u64),
    )
        .prop_map(move |(period, share, deadline, priority, more)| {
            let runtime = ((period as f64 * share) as u64).max(1);
            let deadline = deadline.map(|stretch| ((period as f64 * stretch) as u64).max(runtime));
            let deadline =
                if kind == Kind::Edf { deadline.map(|deadline| deadline.min(period)) } else { deadline };
            Parameters {
                runtime: Some(Duration::from_ns(runtime)),
                desired_runtime: more.map(|more| Duration::from_ns(runtime + more)),
                period: Some(Duration::from_ns(period)),
                deadline: deadline.map(Duration::from_ns),
                priority: Some(priority),
                ..Parameters::default()
            }
        })
}

fn step(kind: Kind) -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => parameters(kind).prop_map(Step::Create),
        1 => (any::<prop::sample::Index>(), parameters(kind))
            .prop_map(|(which, parameters)| Step::Change(which.index(1 << 16), parameters)),
        1 => any::<prop::sample::Index>().prop_map(|which| Step::Release(which.index(1 << 16))),
    ]
}

/// A spec that declares only its urgency, so it may run forever.
fn hog(kind: Kind) -> impl Strategy<Value = Step> {
    parameters(kind).prop_map(move |parameters| {
        let period = parameters.period.filter(|_| kind == Kind::Rm);
        Step::Create(Parameters {
            runtime: None,
            desired_runtime: None,
            deadline: None,
            period,
            ..parameters
        })
    })
}

/// A plugin and its admitted specs.
#[derive(Debug)]
struct Rig {
    plugin: Box<dyn Plugin>,
    specs: BTreeMap<SpecId, (Parameters, Offer)>,
    next: u64,
}

impl Rig {
    fn new(kind: Kind, test: Test, processors: u32, width: u32, threshold: f64) -> Self {
        let limits = Limits {
            least_runtime: Duration::from_ns(1),
            least_period: Duration::from_ns(1),
            ..Limits::default()
        };
        let processors = (0..processors).collect();
        let settings = Settings {
            name: "simulated".into(),
            processors,
            priorities: (10, 9 + width),
            threshold,
            test,
            limits,
            platforms: Vec::new(),
            reserves: Vec::new(),
            without_runtime_up_to: None,
        };
        Self { plugin: plugin(kind, settings).unwrap(), specs: BTreeMap::new(), next: 0 }
    }

    fn admit(&mut self, parameters: &Parameters, offer: Offer) -> SpecId {
        let spec = SpecId(self.next);
        self.next += 1;
        self.plugin.admit(spec, parameters, offer);
        self.specs.insert(spec, (parameters.clone(), offer));
        spec
    }

    fn release(&mut self, spec: SpecId) {
        self.plugin.release(spec);
        self.specs.remove(&spec);
    }

    fn nth(&self, which: usize) -> Option<SpecId> {
        self.specs.keys().copied().nth(which % self.specs.len().max(1))
    }

    /// Returns the reason if it was refused.
    fn take(&mut self, step: &Step) -> Option<(Parameters, String)> {
        let (parameters, replaced) = match step {
            Step::Create(parameters) => (parameters, None),
            Step::Change(which, parameters) => (parameters, Some(self.nth(*which)?)),
            Step::Release(which) => {
                let spec = self.nth(*which)?;
                self.release(spec);
                return None;
            }
        };
        match self.plugin.consider(parameters, replaced) {
            Answer::Ok(offer) | Answer::Partial(offer) => {
                if let Some(spec) = replaced {
                    self.release(spec);
                }
                self.admit(parameters, offer);
                None
            }
            Answer::No(Refusal::Unschedulable(why)) => {
                Some((parameters.clone(), why)).filter(|_| replaced.is_none())
            }
            other => panic!("everything is declared and within bounds: {other:?}"),
        }
    }

    fn tasks_on(&self, processor: u32) -> (Vec<SpecId>, Vec<Task>) {
        let task = |(&spec, (parameters, offer)): (&SpecId, &(Parameters, Offer))| {
            let assignment = self.plugin.assignment(spec).expect("it was admitted");
            assert_eq!(assignment.processor, offer.processor);
            let (runtime, period) = match offer.accepted_runtime {
                Some(runtime) => (runtime.ns(), parameters.period?.ns()),
                None => (2 * LONG, 2 * LONG),
            };
            let deadline = parameters.relative_deadline().filter(|_| runtime < LONG);
            let deadline = deadline.map_or(2 * LONG, Duration::ns);
            (assignment.processor == processor)
                .then_some((spec, Task { runtime, period, deadline, policy: assignment.policy }))
        };
        self.specs.iter().filter_map(task).unzip()
    }
}

const LONG: u64 = 4 * HYPERPERIOD;

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(&Kind::REAL_TIME[..])
}

fn course() -> impl Strategy<Value = (Kind, Vec<Step>)> {
    kinds().prop_flat_map(|kind| (Just(kind), prop::collection::vec(step(kind), 1..16)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn admitted_tasks_meet_their_deadlines(
        (kind, steps) in course(),
        processors in 1..3u32,
        width in 1..8u32,
        full in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let test = if kind == Kind::Edf && seed % 3 == 0 { Test::Utilization } else { Test::Exact };
        let mut rig = Rig::new(kind, test, processors, width, if full { 1.0 } else { 0.8 });
        for step in &steps {
            rig.take(step);
            for processor in 0..processors {
                let (_, tasks) = rig.tasks_on(processor);
                let ties = if kind == Kind::Rr { Ties::RoundRobin } else { Ties::FirstComeFirstServed };
                let late_at_once = late(&tasks, ties, LONG, all_at_once(&tasks));
                prop_assert_eq!(late_at_once, NONE, "all at once: {:?}", tasks);
                let late_sporadic = late(&tasks, ties, LONG, sporadic(&tasks, seed));
                prop_assert_eq!(late_sporadic, NONE, "sporadic: {:?}", tasks);
                for victim in 0..tasks.len() {
                    let unfair = late(&tasks, Ties::Against(victim), LONG, all_at_once(&tasks));
                    prop_assert!(!unfair.contains(&victim), "{victim} is last among equals: {:?}", tasks);
                }
            }
        }
    }

    #[test]
    fn specs_with_a_runtime_meet_their_deadlines_beside_specs_without(
        (kind, steps) in prop::sample::select(&[Kind::Rm, Kind::Fp, Kind::Rr][..]).prop_flat_map(|kind| {
            (Just(kind), prop::collection::vec(prop_oneof![2 => step(kind), 1 => hog(kind)], 1..16))
        }),
        processors in 1..3u32,
        width in 1..8u32,
    ) {
        let mut rig = Rig::new(kind, Test::Exact, processors, width, 1.0);
        for step in &steps {
            rig.take(step);
            for processor in 0..processors {
                let (_, tasks) = rig.tasks_on(processor);
                for victim in (0..tasks.len()).filter(|&task| tasks[task].runtime < LONG) {
                    let late = late(&tasks, Ties::Against(victim), LONG, all_at_once(&tasks));
                    prop_assert!(!late.contains(&victim), "{victim} is late: {:?}", tasks);
                }
            }
        }
    }

    #[test]
    fn sets_refused_by_an_exact_test_miss_a_deadline((kind, steps) in course(), width in 1..12u32) {
        let mut rig = Rig::new(kind, Test::Exact, 1, width, 1.0);
        for step in &steps {
            let Some((parameters, why)) = rig.take(step) else { continue };
            if !why.starts_with("response-time analysis") && !why.starts_with("processor demand") {
                prop_assert!(why.starts_with("utilization"), "{why}");
                continue;
            }
            prop_assert!(!why.contains("too complex"), "so few are never too complex: {why}");
            // If it is admitted anyway, some task must be late.
            let ignoring = Parameters { ignore_admission: true, ..parameters };
            let Answer::Ok(offer) = rig.plugin.consider(&ignoring, None) else {
                panic!("the test was to be ignored")
            };
            prop_assert!(offer.ignored && offer.accepted_runtime == ignoring.runtime);
            let spec = rig.admit(&ignoring, offer);
            let (_, tasks) = rig.tasks_on(0);
            let is_late =
                |victim| late(&tasks, Ties::Against(victim), LONG, all_at_once(&tasks)).contains(&victim);
            prop_assert!((0..tasks.len()).any(is_late), "{why}, but none of these is late: {:?}", tasks);
            rig.release(spec);
        }
    }

    #[test]
    fn the_accepted_runtime_is_the_longest_possible(
        steps in prop::collection::vec(step(Kind::Edf), 1..12),
        full in any::<bool>(),
        exact in any::<bool>(),
    ) {
        let test = if exact { Test::Exact } else { Test::Utilization };
        let mut rig = Rig::new(Kind::Edf, test, 1, 1, if full { 1.0 } else { 0.75 });
        for step in &steps {
            if let Step::Create(parameters) = step {
                let answer = rig.plugin.consider(parameters, None);
                if let Answer::Ok(Offer { accepted_runtime: Some(accepted), .. }) = answer {
                    let least = parameters.runtime.unwrap();
                    let window = parameters.period.unwrap().min(parameters.relative_deadline().unwrap());
                    let most = parameters.desired_runtime.unwrap_or(least);
                    prop_assert!(least <= accepted && accepted <= most && accepted <= window);
                    let longer = Parameters {
                        runtime: Some(Duration::from_ns(accepted.ns() + 1)),
                        desired_runtime: None,
                        ..parameters.clone()
                    };
                    if accepted < most && accepted < window {
                        let answer = rig.plugin.consider(&longer, None);
                        prop_assert!(matches!(answer, Answer::No(Refusal::Unschedulable(_))));
                    }
                }
            }
            rig.take(step);
        }
    }
}
