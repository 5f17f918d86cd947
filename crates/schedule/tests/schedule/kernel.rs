//! Admission that counts what the kernel takes: the bounds are those of `punctual prove`, so that a spec is
//! admitted if, and only if, all bounds are within their deadlines.

use proptest::prelude::*;
use punctual_analysis::{Arrivals, Scheduling, System, Task};
use punctual_model::latency::{Staircase, Step};
use punctual_model::{Duration, Execution};
use punctual_schedule::{
    Answer, Kind, Limits, Parameters, Platform, Plugin, Refusal, Settings, SpecId, Test, plugin,
};

fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

fn new_plugin(kind: Kind, platforms: Vec<Platform>) -> Result<Box<dyn Plugin>, String> {
    let limits = Limits { least_runtime: ns(1), least_period: ns(1), ..Limits::default() };
    let settings = Settings {
        name: "A".into(),
        processors: vec![3],
        priorities: (1, 99),
        threshold: 1.0,
        test: Test::Exact,
        limits,
        platforms,
        reserves: Vec::new(),
        without_runtime_up_to: None,
    };
    plugin(kind, settings)
}

fn parameters(runtime: u64, period: u64, deadline: u64, priority: u32) -> Parameters {
    Parameters {
        runtime: Some(ns(runtime)),
        period: Some(ns(period)),
        deadline: Some(ns(deadline)),
        priority: Some(priority),
        ..Parameters::default()
    }
}

/// What `punctual prove` makes of the same specs.
fn is_proven(specs: &[Parameters], platform: &Platform) -> bool {
    system(specs, platform).meets_deadlines()
}

fn system(specs: &[Parameters], platform: &Platform) -> System {
    let task = |spec: &Parameters| {
        Some(Task {
            name: String::new(),
            scheduling: Scheduling::Priority(spec.priority?),
            processors: vec![3],
            arrivals: Arrivals::Sporadic { separation: spec.period? },
            execution: Execution { wcet_ns: vec![spec.runtime?], mean_ns: None },
            suspension: Duration::ZERO,
            suspensions: 0,
            jitter: Duration::ZERO,
            deadline: spec.deadline,
            deadline_is_period: false,
            gap: None,
        })
    };
    let tasks = specs.iter().map(|spec| task(spec).expect("all is declared")).collect();
    System { tasks, platforms: vec![platform.clone()] }
}

/// Whether specs and kernel may take the whole processor in the long run, to within what rounding amounts to:
/// `prove` takes long for windows that may never end, so these sets are left out.
fn is_full(specs: &[Parameters], platform: &Platform) -> bool {
    let share = |spec: &Parameters| {
        let (runtime, period) = (spec.runtime.expect("declared"), spec.period.expect("declared"));
        (runtime + platform.switch + platform.switch).ns() as f64 / period.ns() as f64
    };
    let interrupts = platform.interference(platform.horizon.ns()).expect("short") as f64;
    let shares: f64 = specs.iter().map(share).sum();
    shares + interrupts / platform.horizon.ns() as f64 > 1.0 - 1e-9
}

/// Blocking, a pass of the scheduler, and what interrupts take in windows of growing lengths.
fn platform() -> impl Strategy<Value = Platform> {
    let steps = prop::collection::vec((0..60u64, 1..4u64), 0..5);
    (0..12u64, 0..3u64, prop::collection::vec(steps, 0..3)).prop_map(|(blocking, switch, sources)| Platform {
        cpu: 3,
        blocking: ns(blocking),
        switch: ns(switch),
        interrupts: sources
            .into_iter()
            .map(|steps| steps.into_iter().map(|(span, sum)| Step { span: ns(span), sum: ns(sum) }))
            .map(Iterator::collect::<Staircase>)
            .collect(),
        horizon: ns(60),
        at_least: false,
    })
}

fn spec() -> impl Strategy<Value = Parameters> {
    (5..80u64, 0.0..0.4f64, 0.5..2.5f64, 1..9u32).prop_map(|(period, share, stretch, priority)| {
        let runtime = ((period as f64 * share) as u64).max(1);
        let deadline = ((period as f64 * stretch) as u64).max(runtime);
        parameters(runtime, period, deadline, priority)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn a_spec_is_admitted_if_all_bounds_with_the_kernel_meet_their_deadlines(
        platform in platform(),
        specs in prop::collection::vec(spec(), 1..9),
        round_robin in any::<bool>(),
    ) {
        let kind = if round_robin { Kind::Rr } else { Kind::Fp };
        let mut plugin = new_plugin(kind, vec![platform.clone()]).expect("settings");
        let mut admitted: Vec<Parameters> = Vec::new();
        for (number, spec) in specs.iter().enumerate() {
            let all: Vec<Parameters> = admitted.iter().chain([spec]).cloned().collect();
            if is_full(&all, &platform) {
                continue;
            }
            match plugin.consider(spec, None) {
                Answer::Ok(offer) => {
                    prop_assert!(is_proven(&all, &platform), "{all:?}");
                    plugin.admit(SpecId(number as u64), spec, offer);
                    admitted.push(spec.clone());
                }
                Answer::No(Refusal::Unschedulable(why)) => {
                    prop_assert!(!why.contains("too complex"), "{why}");
                    prop_assert!(!is_proven(&all, &platform), "{why}: {all:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Deadline-monotonic priorities are optimal: RM refuses what no priorities allow.
    #[test]
    fn rm_admits_whatever_some_priorities_admit(
        platform in platform(),
        specs in prop::collection::vec(spec(), 1..9),
    ) {
        let constrained =
            specs.into_iter().map(|spec| Parameters { deadline: spec.deadline.min(spec.period), ..spec });
        let specs: Vec<Parameters> = constrained.collect();
        let mut plugin = new_plugin(Kind::Rm, vec![platform.clone()]).expect("settings");
        let mut admitted: Vec<Parameters> = Vec::new();
        for (number, spec) in specs.iter().enumerate() {
            let all: Vec<Parameters> = admitted.iter().chain([spec]).cloned().collect();
            if is_full(&all, &platform) {
                continue;
            }
            let can_be = system(&all, &platform).assign(99).is_ok();
            match plugin.consider(spec, None) {
                Answer::Ok(offer) => {
                    prop_assert!(can_be, "{all:?}");
                    plugin.admit(SpecId(number as u64), spec, offer);
                    admitted.push(spec.clone());
                }
                Answer::No(Refusal::Unschedulable(why)) => prop_assert!(!can_be, "{why}: {all:?}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn what_the_kernel_takes_counts() {
    let kernel = Platform { cpu: 3, blocking: ns(3_000), switch: ns(500), ..Platform::default() };
    let mut fp = new_plugin(Kind::Fp, vec![kernel]).expect("settings");
    // 6 + 3 µs of the kernel.
    let urgent = |deadline| parameters(6_000, 20_000, deadline, 9);
    let refused = |fp: &dyn Plugin, spec: &Parameters| match fp.consider(spec, None) {
        Answer::No(Refusal::Unschedulable(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(&*fp, &urgent(8_999)),
        "response-time analysis, processor 3: this spec (runtime 6 µs, deadline 8.999 µs) could take 9 µs or \
         more, with what the kernel takes"
    );
    let Answer::Ok(offer) = fp.consider(&urgent(9_000), None) else { panic!("9 µs are enough") };
    fp.admit(SpecId(1), &urgent(9_000), offer);
    // 5 + 6 + 3 µs, and two passes of the scheduler for the job that interferes.
    let other = |deadline| parameters(5_000, 40_000, deadline, 8);
    assert!(refused(&*fp, &other(14_999)).contains("could take 15 µs or more"));
    assert!(matches!(fp.consider(&other(15_000), None), Answer::Ok(_)));
}

#[test]
fn a_kernel_of_which_too_little_is_known_is_refused() {
    let of = |cpu| vec![Platform { cpu, ..Platform::default() }];
    let refused = |kind, platforms| new_plugin(kind, platforms).err().unwrap_or_default();
    assert_eq!(refused(Kind::Rm, of(2)), "plugin `A`: the latency of processor 3 is unknown");
    assert!(refused(Kind::Edf, of(3)).contains("only in the exact test of RM, FP and RR"));
    assert!(new_plugin(Kind::Rm, of(3)).is_ok());
}
