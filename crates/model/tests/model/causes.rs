//! The section `causes`: what is refused when it is read, and that merging adds up and forgets the order.

use crate::generate::{duration, span};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use punctual_model::causes::*;
use punctual_model::{Duration, Instant, Policy, Section, TimingModel};
use serde_json::{Value, json};

fn reason() -> impl Strategy<Value = Reason> {
    let name = || option::of("[a-c]{0,1}");
    let policy = option::of(select(&[Policy::Fifo, Policy::Other]));
    (select(&Kind::ALL), (name(), policy, 0..2_u32), name(), name(), name()).prop_map(
        |(kind, (thread, policy, priority), interrupt, call, object)| Reason {
            kind,
            thread,
            policy,
            priority,
            interrupt,
            call,
            object,
        },
    )
}

/// Parts one after the other, from this moment.
fn parts(begin: u64, depth: u32) -> BoxedStrategy<Vec<Part>> {
    let chain = match depth {
        0 => Just(None).boxed(),
        _ => option::weighted(0.2, chain(depth - 1)).boxed(),
    };
    let part = (reason(), 0..1_000_000_u64, option::of(any::<(u32, u64)>()), any::<bool>(), chain);
    vec(part, 0..5)
        .prop_map(move |parts| {
            let mut reached = Instant::from_ns(begin);
            let parts = parts.into_iter().map(|(reason, ns, by, uninterruptible, waited_for)| {
                let (from_ns, ns) = (reached, Duration::from_ns(ns));
                reached = from_ns + ns;
                let (tid, job) = (by.map(|by| by.0), by.map(|by| by.1));
                let waited_for = waited_for.map(Box::new);
                Part { reason, from_ns, ns, tid, job, uninterruptible, waited_for }
            });
            parts.collect()
        })
        .boxed()
}

fn chain(depth: u32) -> impl Strategy<Value = Chain> {
    let role = select(&[Role::Owner, Role::Waker, Role::Previous]);
    (".{0,5}", any::<u32>(), role, any::<bool>(), parts(7, depth))
        .prop_map(|(thread, tid, role, inversion, parts)| Chain { thread, tid, role, inversion, parts })
}

fn cause() -> impl Strategy<Value = Cause> {
    let longest = parts(3, 1).prop_filter_map("a part", |parts| parts.into_iter().next());
    let counts = any::<[u32; 4]>();
    (reason(), any::<bool>(), counts, duration(), duration(), longest).prop_map(
        |(reason, inversion, [jobs, faulting, faults, major], ns, least_ns, longest)| Cause {
            reason,
            inversion,
            jobs: jobs.into(),
            ns,
            least_ns,
            faulting_jobs: faulting.into(),
            faults: faults.into(),
            major_faults: major.into(),
            longest,
        },
    )
}

fn job() -> impl Strategy<Value = LateJob> {
    let begin = 0..1_000_000_u64;
    let job = begin.prop_flat_map(|begin| (Just(begin), parts(begin, 2)));
    let name = || option::of(".{0,5}");
    (job, any::<(u64, u32, bool)>(), any::<[u32; 2]>(), select(&Kind::ALL), (name(), name(), name()))
        .prop_map(|((begin, parts), (job, tid, has_arrival), [faults, major], cause, names)| {
            let phase = tid / 2;
            let response_ns = parts.iter().fold(Duration::ZERO, |sum, part| sum + part.ns);
            let begin_ns = Instant::from_ns(begin);
            LateJob {
                phase,
                job,
                tid,
                arrival_ns: has_arrival.then_some(begin_ns),
                begin_ns,
                end_ns: begin_ns + response_ns,
                response_ns,
                faults: faults.into(),
                major_faults: major.into(),
                cause,
                cause_thread: names.0,
                cause_call: names.1,
                cause_object: names.2,
                parts,
            }
        })
}

fn task() -> impl Strategy<Value = LateTask> {
    let limit = select(&[Limit::Given, Limit::Period, Limit::Contract, Limit::Longest, Limit::None]);
    let policy = select(&[Policy::Fifo, Policy::Deadline]);
    let who = ("[ab]{1}", any::<u32>(), policy, 0..2_u32);
    let times = (limit, duration(), duration());
    let others = option::of((any::<u32>(), duration()));
    (who, any::<u32>(), times, vec(cause(), 0..5), others, vec(job(), 0..3)).prop_map(
        |(
            (task, tid, policy, priority),
            punctual,
            (limit, limit_ns, usual_cost_ns),
            causes,
            others,
            worst,
        )| {
            let others = others.map(|(jobs, ns)| Others { jobs: jobs.into(), ns });
            let of_others = others.map_or(0, |others| others.jobs);
            // Of one kind there is one.
            let mut kept: Vec<Cause> = Vec::new();
            for cause in causes {
                let like =
                    |it: &Cause| (it.reason.clone(), it.inversion) == (cause.reason.clone(), cause.inversion);
                if !kept.iter().any(like) {
                    kept.push(cause);
                }
            }
            let late = kept.iter().fold(of_others, |sum, cause| sum + cause.jobs);
            let mut task = LateTask {
                task,
                tid,
                policy,
                priority,
                jobs: late + u64::from(punctual),
                late,
                perhaps: u64::from(punctual),
                cut_off_ns: (punctual > 0).then_some(limit_ns),
                limit,
                limit_ns,
                usual_cost_ns,
                longest_ns: worst.iter().map(|job| job.response_ns).max().unwrap_or_default(),
                causes: kept,
                others,
                worst,
            };
            task.bound();
            task.worst.sort_by_key(|job| (std::cmp::Reverse(job.response_ns), job.tid, job.begin_ns));
            task
        },
    )
}

pub fn section() -> impl Strategy<Value = Causes> {
    let lacks = select(vec![vec![], vec![Lack::Interrupts], vec![Lack::OtherThreads, Lack::Interrupts]]);
    (span(), lacks, vec(task(), 0..4)).prop_map(|((from_ns, until_ns), lacks, tasks)| {
        let mut causes = Causes { from_ns, until_ns, ..Causes::default() };
        // Threads of one name and policy are one, as after a merge.
        for task in tasks {
            let one = Causes { from_ns, until_ns, lacks: lacks.clone(), tasks: vec![task] };
            causes = causes.merge(one).expect("causes can be merged");
        }
        causes
    })
}

/// Jobs, late ones and their time.
fn sums(causes: &Causes) -> [u64; 3] {
    let tasks = || causes.tasks.iter();
    let time = |task: &LateTask| {
        let listed = task.causes.iter().map(|cause| cause.ns.ns());
        let others = task.others.map(|others| others.ns.ns());
        listed.chain(others).fold(0_u64, u64::saturating_add)
    };
    [
        tasks().map(|task| task.jobs).sum(),
        tasks().map(|task| task.late).sum(),
        tasks().map(time).fold(0, u64::saturating_add),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merging_adds_up_and_forgets_the_order(one in section(), two in section(), three in section()) {
        let merge = |one: &Causes, other: &Causes| {
            one.clone().merge(other.clone()).expect("causes can be merged")
        };
        let forth = merge(&merge(&one, &two), &three);
        let back = merge(&three, &merge(&two, &one));
        prop_assert_eq!(sums(&forth), sums(&back));
        let each = [&one, &two, &three].map(sums);
        let added = |n: usize| each.iter().map(|sums| sums[n]).fold(0_u64, u64::saturating_add);
        prop_assert_eq!(sums(&forth), [added(0), added(1), added(2)]);
        let shown = |causes: &Causes| serde_json::to_value(causes).expect("JSON");
        prop_assert_eq!(shown(&forth), shown(&back));
        prop_assert_eq!(shown(&forth), shown(&merge(&one, &merge(&two, &three))));
    }
}

#[test]
fn contradictions_are_refused() {
    let whole = json!({
        "format": "punctual.timing-model", "version": 2, "clock": "CLOCK_MONOTONIC",
        "causes": { "from_ns": 0, "until_ns": 9, "tasks": [{
            "task": "a", "tid": 1, "policy": "SCHED_FIFO", "priority": 9, "jobs": 5, "late": 2,
            "limit": "period", "limit_ns": 3, "usual_cost_ns": 1, "longest_ns": 4,
            "causes": [{
                "kind": "own", "inversion": false, "jobs": 1, "ns": 4, "least_ns": 4,
                "longest": { "kind": "own", "from_ns": 0, "ns": 4 }
            }],
            "others": { "jobs": 1, "ns": 4 },
            "worst": [{
                "job": 3, "tid": 1, "arrival_ns": 0, "begin_ns": 0, "end_ns": 4, "response_ns": 4,
                "faults": 0, "major_faults": 0, "cause": "own",
                "parts": [
                    { "kind": "own", "from_ns": 0, "ns": 1 }, { "kind": "blocked", "from_ns": 1, "ns": 3 }
                ]
            }]
        }] }
    });
    let read = |model: &Value| TimingModel::from_json(&model.to_string()).map_err(|error| error.to_string());
    read(&whole).expect("the model is right");
    let changes = [
        ("/causes/tasks/0/late", json!(6), "no more than `jobs`"),
        ("/causes/tasks/0/late", json!(3), "the jobs of all causes (2)"),
        ("/causes/tasks/0/worst/0/response_ns", json!(5), "from `begin_ns` to `end_ns`"),
        ("/causes/tasks/0/worst/0/arrival_ns", json!(1), "`begin_ns` (0)"),
        ("/causes/tasks/0/worst/0/parts/1/from_ns", json!(2), "the end of the part before (1)"),
        ("/causes/tasks/0/worst/0/parts/1/ns", json!(2), "parts of 4 ns in all"),
        ("/causes/tasks/0/worst/0/cause", json!("whim"), "expected one of `backlog`"),
    ];
    for (place, value, expected) in changes {
        let mut model = whole.clone();
        *model.pointer_mut(place).expect(place) = value;
        let error = read(&model).expect_err(place);
        assert!(error.contains(expected), "{place}: {error}");
    }
}
