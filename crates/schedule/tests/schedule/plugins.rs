//! The plugins of ReTiF's Section 5, with numbers that can be checked by hand.

use punctual_model::Duration;
use punctual_schedule::{
    Answer, AssignedPolicy, Assignment, Kind, Limits, Offer, Parameters, Plugin, Refusal, Reserve,
    ReserveKind, Settings, SpecId, Test, plugin,
};

fn new_plugin(
    kind: Kind,
    test: Test,
    processors: &[u32],
    priorities: (u32, u32),
    threshold: f64,
) -> Box<dyn Plugin> {
    let settings = Settings {
        name: kind.to_string(),
        processors: processors.to_vec(),
        priorities,
        threshold,
        test,
        limits: Limits::default(),
        platforms: Vec::new(),
        reserves: Vec::new(),
        without_runtime_up_to: None,
    };
    plugin(kind, settings).unwrap()
}

/// Runtime, period and deadline in milliseconds.
fn task(runtime: u64, period: u64, deadline: u64) -> Parameters {
    let ms = |ms| Some(Duration::from_ms(ms));
    Parameters { runtime: ms(runtime), period: ms(period), deadline: ms(deadline), ..Parameters::default() }
}

fn with_priority(priority: u32) -> Parameters {
    Parameters { priority: Some(priority), ..Parameters::default() }
}

fn offered(answer: Answer) -> Offer {
    match answer {
        Answer::Ok(offer) | Answer::Partial(offer) => offer,
        Answer::No(refusal) => panic!("{refusal:?}"),
    }
}

fn refused(answer: Answer) -> String {
    match answer {
        Answer::No(Refusal::Unschedulable(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn take(plugin: &mut dyn Plugin, spec: u64, parameters: &Parameters) -> Offer {
    let offer = offered(plugin.consider(parameters, None));
    plugin.admit(SpecId(spec), parameters, offer);
    offer
}

fn priority(plugin: &dyn Plugin, spec: u64) -> u32 {
    match plugin.assignment(SpecId(spec)).unwrap().policy {
        AssignedPolicy::Fifo(priority) | AssignedPolicy::RoundRobin(priority) => priority,
        other => panic!("{other:?}"),
    }
}

#[test]
fn edf_takes_the_least_loaded_processor() {
    let mut edf = new_plugin(Kind::Edf, Test::Utilization, &[4, 5], (1, 1), 0.9);
    assert_eq!(take(&mut *edf, 1, &task(3, 10, 10)).processor, 4);
    assert_eq!(take(&mut *edf, 2, &task(5, 10, 10)).processor, 5);
    assert_eq!(take(&mut *edf, 3, &task(1, 10, 10)).processor, 4);
    // Equation 1: 2 ms in every 4 ms, since the deadline is shorter than the period. On 4 there is 0.4
    // already; 0.9 is the threshold.
    assert_eq!(take(&mut *edf, 4, &task(2, 10, 4)).processor, 4);
    let loads: Vec<_> = edf
        .loads()
        .iter()
        .map(|load| (load.processor, (load.utilization * 1000.0).round() as u64, load.specs))
        .collect();
    assert_eq!(loads, [(4, 900, 3), (5, 500, 1)]);
    // Equation 3.
    let why = refused(edf.consider(&task(5, 10, 10), None));
    assert_eq!(
        why,
        "utilization, processor 5: 50.00 % needed, 50.00 % already taken, the threshold is 90.00 %"
    );
    let ms = Duration::from_ms;
    let policy = AssignedPolicy::Deadline { runtime: ms(2), deadline: ms(4), period: ms(4) };
    assert_eq!(edf.assignment(SpecId(4)), Some(Assignment { processor: 4, policy }));
}

#[test]
fn edf_accepts_up_to_the_desired_runtime() {
    for test in [Test::Utilization, Test::Exact] {
        let mut edf = new_plugin(Kind::Edf, test, &[0], (1, 1), 0.9);
        take(&mut *edf, 1, &task(5, 10, 10));
        let desiring =
            |desired| Parameters { desired_runtime: Some(Duration::from_ms(desired)), ..task(1, 10, 10) };
        // Equation 4: (0.9 − 0.5) · 10 ms.
        assert_eq!(offered(edf.consider(&desiring(8), None)).accepted_runtime, Some(Duration::from_ms(4)));
        assert_eq!(offered(edf.consider(&desiring(3), None)).accepted_runtime, Some(Duration::from_ms(3)));
        // With the test ignored it is the least.
        let ignoring = Parameters {
            ignore_admission: true,
            desired_runtime: Some(Duration::from_ms(8)),
            ..task(6, 10, 10)
        };
        let offer = Offer { processor: 0, accepted_runtime: Some(Duration::from_ms(6)), ignored: true };
        assert_eq!(edf.consider(&ignoring, None), Answer::Ok(offer));
    }
}

/// The kernel holds a thread that wakes up between its deadline and its next period, wherever that began. So
/// it gets the deadline as its period, and that is what counts.
#[test]
fn edf_has_the_kernel_serve_deadlines_as_periods() {
    // Buttazzo's example: 2/4 + 2/5 + 3/7 is more than one processor. All deadlines could be met if nobody
    // took more than declared, but the kernel would let everybody.
    let tasks = [task(2, 6, 4), task(2, 8, 5), task(3, 9, 7)];
    let ms = Duration::from_ms;
    for test in [Test::Utilization, Test::Exact] {
        let mut edf = new_plugin(Kind::Edf, test, &[0], (1, 1), 1.0);
        take(&mut *edf, 0, &tasks[0]);
        take(&mut *edf, 1, &tasks[1]);
        let policy = AssignedPolicy::Deadline { runtime: ms(2), deadline: ms(5), period: ms(5) };
        assert_eq!(edf.assignment(SpecId(1)).unwrap().policy, policy);
        let why = refused(edf.consider(&tasks[2], None));
        assert!(why.contains("90.00 % already taken"), "{why}");
        // In a change, the old spec counts as released, and nothing else.
        assert_eq!(offered(edf.consider(&task(2, 9, 4), Some(SpecId(1)))).accepted_runtime, Some(ms(2)));
        refused(edf.consider(&tasks[2], Some(SpecId(77))));
        // 0.1 is left of every 7 ms.
        let open = Parameters { desired_runtime: Some(ms(9)), ..task(0, 9, 7) };
        let open = Parameters { runtime: Some(Duration::from_us(100)), ..open };
        let most = offered(edf.consider(&open, None)).accepted_runtime.unwrap().ns();
        assert!((699_999..=700_000).contains(&most), "{most}");
    }
}

/// 4 ms and a blocking of 5 ms in 10 ms leave 1 ms.
#[test]
fn edf_counts_the_blocking_of_admitted_specs() {
    let mut edf = new_plugin(Kind::Edf, Test::Exact, &[0], (1, 1), 1.0);
    let blocked = Parameters { blocking: Some(Duration::from_ms(5)), ..task(4, 10, 10) };
    take(&mut *edf, 1, &blocked);
    refused(edf.consider(&task(2, 10, 10), None));
    take(&mut *edf, 2, &task(1, 10, 10));
}

#[test]
fn edf_refuses_what_the_kernel_would() {
    let edf = new_plugin(Kind::Edf, Test::Exact, &[0], (1, 1), 1.0);
    let bound = |parameters: &Parameters| match edf.consider(parameters, None) {
        Answer::No(Refusal::Bound(bound)) => bound.parameter,
        other => panic!("{other:?}"),
    };
    assert_eq!(bound(&task(1, 5_000, 5_000)), "period_ns");
    assert_eq!(bound(&task(1, 10, 11)), "deadline_ns");
    let us = |us| Some(Duration::from_us(us));
    assert_eq!(bound(&Parameters { runtime: us(50), deadline: us(99), ..task(1, 10, 10) }), "deadline_ns");
    assert_eq!(bound(&Parameters { runtime: Some(Duration::from_us(1)), ..task(1, 10, 10) }), "runtime_ns");
}

#[test]
fn rm_keeps_priorities_inverse_to_periods() {
    let mut rm = new_plugin(Kind::Rm, Test::Exact, &[0], (50, 53), 1.0);
    let mut shifted = Vec::new();
    for (spec, period) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 20)] {
        take(&mut *rm, spec, &task(1, period, period));
        shifted.push(rm.shifted());
    }
    assert_eq!([1, 2, 5, 3, 4].map(|spec| priority(&*rm, spec)), [53, 52, 52, 51, 50]);
    assert_eq!(rm.assignment(SpecId(4)).unwrap().policy, AssignedPolicy::Fifo(50));
    // The first is put in the middle, so the third has to move two, and the fourth three.
    assert_eq!(shifted, [false, false, true, true, false]);
}

#[test]
fn rm_keeps_priorities_inverse_to_deadlines() {
    let mut rm = new_plugin(Kind::Rm, Test::Exact, &[0], (1, 99), 1.0);
    // By period, the first would delay the second, which has to end within 3 ms.
    take(&mut *rm, 1, &task(3, 10, 10));
    take(&mut *rm, 2, &task(2, 20, 3));
    assert!(priority(&*rm, 2) > priority(&*rm, 1));
}

#[test]
fn rm_without_a_runtime_is_partial_and_carries_no_utilization() {
    let mut rm = new_plugin(Kind::Rm, Test::Exact, &[0, 1], (1, 99), 1.0);
    let unknown = Parameters { runtime: None, deadline: None, ..task(1, 10, 10) };
    let answer = rm.consider(&unknown, None);
    assert_eq!(answer, Answer::Partial(Offer { processor: 0, accepted_runtime: None, ignored: false }));
    take(&mut *rm, 1, &unknown);
    assert_eq!(rm.loads()[0].utilization, 0.0);
    assert_eq!(take(&mut *rm, 2, &unknown).processor, 1, "equally loaded, so the one with fewer specs");
    assert_eq!(rm.consider(&Parameters::default(), None), Answer::No(Refusal::Lacks("period_ns")));
}

#[test]
fn rm_proves_what_utilization_cannot() {
    // 2/5 + 4/7 is less than one processor, and yet the second one is late.
    let mut exact = new_plugin(Kind::Rm, Test::Exact, &[0, 1], (1, 99), 1.0);
    let mut necessary = new_plugin(Kind::Rm, Test::Utilization, &[0], (1, 99), 1.0);
    take(&mut *necessary, 1, &task(2, 5, 5));
    take(&mut *necessary, 2, &task(4, 7, 7));
    take(&mut *exact, 1, &task(2, 5, 5));
    take(&mut *exact, 2, &task(2, 5, 5));
    let why = refused(exact.consider(&task(4, 7, 7), None));
    assert_eq!(
        why,
        "response-time analysis, processor 0: this spec (runtime 4 ms, deadline 7 ms) could take 8 ms or more"
    );
    // The other way round it is the one that was there before; and where the least loaded processor cannot
    // take it, another one is asked.
    let mut exact = new_plugin(Kind::Rm, Test::Exact, &[0], (1, 99), 1.0);
    take(&mut *exact, 1, &task(4, 7, 7));
    let why = refused(exact.consider(&task(2, 5, 5), None));
    assert_eq!(
        why,
        "response-time analysis, processor 0: an admitted spec (runtime 4 ms, deadline 7 ms) could take 8 ms \
         or more"
    );
    let mut exact = new_plugin(Kind::Rm, Test::Exact, &[0, 1], (1, 99), 1.0);
    take(&mut *exact, 1, &task(4, 7, 7));
    take(&mut *exact, 2, &task(6, 10, 10));
    assert_eq!(take(&mut *exact, 3, &task(2, 10, 10)).processor, 0);
    assert_eq!(take(&mut *exact, 4, &task(1, 10, 10)).processor, 1);
    assert_eq!(offered(exact.consider(&task(1, 10, 8), None)).processor, 1);
}

#[test]
fn fp_and_rr_take_the_processor_with_the_fewest_specs() {
    for (kind, policy) in [
        (Kind::Fp, AssignedPolicy::Fifo as fn(u32) -> AssignedPolicy),
        (Kind::Rr, AssignedPolicy::RoundRobin),
    ] {
        let mut plugin = new_plugin(kind, Test::Exact, &[1, 2], (1, 99), 1.0);
        for spec in 0..4 {
            assert_eq!(
                take(&mut *plugin, spec, &with_priority(10 + spec as u32)).processor,
                [1, 2][spec as usize % 2]
            );
            assert_eq!(plugin.assignment(SpecId(spec)).unwrap().policy, policy(10 + spec as u32));
        }
        plugin.release(SpecId(2));
        assert_eq!(offered(plugin.consider(&with_priority(99), None)).processor, 1);
        assert_eq!(plugin.consider(&task(1, 2, 2), None), Answer::No(Refusal::Lacks("priority")));
    }
}

#[test]
fn fp_keeps_the_order_of_requests_while_the_range_allows() {
    let mut fp = new_plugin(Kind::Fp, Test::Utilization, &[0], (1, 3), 1.0);
    for (spec, request) in [(1, 70), (2, 90), (3, 80)] {
        take(&mut *fp, spec, &with_priority(request));
    }
    assert_eq!([2, 3, 1].map(|spec| priority(&*fp, spec)), [3, 2, 1]);
    // Equation 6 does not hold for a fourth one: it shares a priority.
    take(&mut *fp, 4, &with_priority(75));
    let priorities = [2, 3, 4, 1].map(|spec| priority(&*fp, spec));
    assert!(priorities.is_sorted_by(|a, b| a >= b), "{priorities:?}");
}

#[test]
fn fp_and_rr_test_response_times() {
    let urgent = |priority, task: Parameters| Parameters { priority: Some(priority), ..task };
    let mut fp = new_plugin(Kind::Fp, Test::Exact, &[0], (1, 99), 1.0);
    take(&mut *fp, 1, &urgent(10, task(4, 7, 7)));
    refused(fp.consider(&urgent(20, task(2, 5, 5)), None));
    refused(fp.consider(&urgent(5, task(2, 5, 5)), None));
    assert!(
        offered(fp.consider(&Parameters { ignore_admission: true, ..urgent(20, task(2, 5, 5)) }, None))
            .ignored
    );
    // Their sum alone, which is less than one processor.
    let mut fp = new_plugin(Kind::Fp, Test::Utilization, &[0], (1, 99), 1.0);
    take(&mut *fp, 1, &urgent(10, task(4, 7, 7)));
    take(&mut *fp, 2, &urgent(20, task(2, 5, 5)));
}

fn both_tests(kind: Kind) -> [(Kind, Test); 2] {
    [(kind, Test::Utilization), (kind, Test::Exact)]
}

/// A single spec that declares only a priority once switched the test off for its processor: a utilization of
/// 160 % was admitted although the threshold is 95 %.
#[test]
fn a_spec_without_a_runtime_does_not_switch_off_the_test_of_others() {
    for (kind, test) in [Kind::Fp, Kind::Rr].into_iter().flat_map(both_tests) {
        let urgent = |priority, task: Parameters| Parameters { priority: Some(priority), ..task };
        let mut plugin = new_plugin(kind, test, &[0], (1, 99), 0.95);
        take(&mut *plugin, 1, &with_priority(1));
        take(&mut *plugin, 2, &urgent(20, task(8, 10, 10)));
        assert_eq!(
            refused(plugin.consider(&urgent(30, task(8, 10, 10)), None)),
            "utilization, processor 0: 80.00 % needed, 80.00 % already taken, the threshold is 95.00 %"
        );
        take(&mut *plugin, 3, &urgent(30, task(1, 10, 10)));
    }
}

#[test]
fn a_spec_without_a_runtime_runs_below_all_that_declare_one() {
    for test in [Test::Utilization, Test::Exact] {
        a_spec_without_a_runtime_runs_below(test);
    }
}

fn a_spec_without_a_runtime_runs_below(test: Test) {
    let urgent = |priority, task: Parameters| Parameters { priority: Some(priority), ..task };
    let below = "processor 0: a spec without a declared runtime and period must run below all specs that \
                 declare both, and this one would not";
    let above = "processor 0 already has a spec without a declared runtime and period, and this one would \
                 not run above it";
    let mut fp = new_plugin(Kind::Fp, test, &[0], (1, 99), 0.95);
    take(&mut *fp, 1, &urgent(20, task(1, 10, 10)));
    for priority in [20, 21, 99] {
        assert_eq!(refused(fp.consider(&with_priority(priority), None)), below);
        let only_runtime = Parameters { period: None, deadline: None, ..urgent(priority, task(1, 10, 10)) };
        assert_eq!(refused(fp.consider(&only_runtime, None)), below);
    }
    take(&mut *fp, 2, &with_priority(19));
    for priority in [1, 18, 19] {
        assert!(refused(fp.consider(&urgent(priority, task(1, 10, 10)), None)).starts_with(above));
    }
    // In a change, the old spec counts as released.
    assert!(matches!(fp.consider(&with_priority(99), Some(SpecId(1))), Answer::Ok(_)));
    assert!(matches!(fp.consider(&urgent(1, task(1, 10, 10)), Some(SpecId(2))), Answer::Ok(_)));

    // If the first processor cannot take it, the next one is tested.
    let mut fp = new_plugin(Kind::Fp, test, &[0, 1], (1, 99), 0.95);
    take(&mut *fp, 1, &urgent(20, task(1, 10, 10)));
    take(&mut *fp, 2, &with_priority(50));
    assert_eq!(offered(fp.consider(&with_priority(30), None)).processor, 1);
    assert_eq!(offered(fp.consider(&urgent(30, task(1, 10, 10)), None)).processor, 0);

    // Specs with and without a runtime never share a priority.
    let mut fp = new_plugin(Kind::Fp, test, &[0], (10, 11), 0.95);
    take(&mut *fp, 1, &with_priority(10));
    take(&mut *fp, 2, &with_priority(20));
    assert!(matches!(fp.consider(&urgent(30, task(1, 10, 10)), None), Answer::No(_)));
    let mut fp = new_plugin(Kind::Fp, test, &[0], (10, 10), 0.95);
    take(&mut *fp, 1, &with_priority(10));
    assert_eq!(
        refused(fp.consider(&urgent(30, task(1, 10, 10)), None)),
        format!(
            "{above}, since the plugin has no priority left between them, so its deadline cannot be \
             guaranteed"
        )
    );

    // With the test ignored, at everybody's risk.
    let mut fp = new_plugin(Kind::Fp, test, &[0], (1, 99), 0.95);
    take(&mut *fp, 1, &urgent(20, task(1, 10, 10)));
    let ignoring = Parameters { ignore_admission: true, ..with_priority(30) };
    assert!(take(&mut *fp, 2, &ignoring).ignored);
    refused(fp.consider(&urgent(25, task(1, 10, 10)), None));
    take(&mut *fp, 3, &urgent(31, task(1, 10, 10)));
}

#[test]
fn rm_puts_specs_without_a_runtime_last() {
    let unknown = |period| Parameters { runtime: None, deadline: None, ..task(1, period, period) };
    for (kind, test) in both_tests(Kind::Rm) {
        let mut rm = new_plugin(kind, test, &[0], (1, 99), 0.95);
        take(&mut *rm, 1, &unknown(1));
        take(&mut *rm, 2, &unknown(5));
        take(&mut *rm, 3, &task(5, 1000, 1000));
        assert!([3, 1, 2].map(|spec| priority(&*rm, spec)).is_sorted_by(|a, b| a > b));
        refused(rm.consider(&task(950, 1000, 1000), None));
    }
}

#[test]
fn a_cpuset_leaves_out_processors() {
    for kind in [Kind::Edf, Kind::Rm, Kind::Fp, Kind::Rr] {
        for test in [Test::Exact, Test::Utilization] {
            let mut plugin = new_plugin(kind, test, &[0, 1, 2], (1, 9), 0.9);
            let spec = Parameters { priority: Some(5), ..task(6, 10, 10) };
            assert_eq!(offered(plugin.consider_within(&spec, None, &|cpu| cpu != 0)).processor, 1);
            let offer = offered(plugin.consider_within(&spec, None, &|cpu| cpu == 2));
            assert_eq!(offer.processor, 2);
            plugin.admit(SpecId(1), &spec, offer);
            let why = refused(plugin.consider_within(&spec, None, &|cpu| cpu == 2));
            assert!(why.contains("processor 2"), "{why}");
            assert_eq!(offered(plugin.consider_within(&spec, Some(SpecId(1)), &|cpu| cpu == 2)).processor, 2);
            let ignoring = Parameters { ignore_admission: true, ..spec.clone() };
            assert_eq!(offered(plugin.consider_within(&ignoring, None, &|cpu| cpu == 2)).processor, 2);
            let why = refused(plugin.consider_within(&ignoring, None, &|_| false));
            assert!(why.contains("excludes all of its processors"), "{why}");
        }
    }
}

/// Processor 0, with an exact test.
fn settings() -> Settings {
    Settings {
        name: "P".into(),
        processors: vec![0],
        priorities: (1, 50),
        threshold: 0.95,
        test: Test::Exact,
        limits: Limits::default(),
        platforms: Vec::new(),
        reserves: Vec::new(),
        without_runtime_up_to: None,
    }
}

/// 50 ms in a second for ordinary threads, as Linux has it since 6.12.
fn with_fair_server(kind: Kind) -> Box<dyn Plugin> {
    let reserve = Reserve {
        processor: 0,
        kind: ReserveKind::FairServer,
        runtime: Duration::from_ms(50),
        period: Duration::from_ms(1000),
    };
    plugin(kind, Settings { reserves: vec![reserve], ..settings() }).unwrap()
}

#[test]
fn priorities_can_be_reserved_for_specs_without_a_runtime() {
    let up_to = |most| Settings { without_runtime_up_to: Some(most), ..settings() };
    for kind in [Kind::Fp, Kind::Rr] {
        let plugin = plugin(kind, up_to(20)).unwrap();
        let unbounded = |priority| Parameters { priority: Some(priority), ..Parameters::default() };
        let bounded = |priority| Parameters { priority: Some(priority), ..task(1, 10, 10) };
        offered(plugin.consider(&unbounded(20), None));
        offered(plugin.consider(&bounded(21), None));
        let why = refused(plugin.consider(&unbounded(21), None));
        assert!(why.contains("priority 21 needs a declared runtime"), "{why}");
        let why = refused(plugin.consider(&bounded(20), None));
        assert!(why.contains("priority 20 is reserved for specs without"), "{why}");
    }
    for (kind, most) in [(Kind::Rm, 20), (Kind::Fp, 50), (Kind::Fp, 0)] {
        assert!(plugin(kind, up_to(most)).is_err());
    }
}

#[test]
fn what_the_kernel_keeps_for_ordinary_threads_counts() {
    for kind in [Kind::Rm, Kind::Fp, Kind::Rr] {
        let mut plugin = with_fair_server(kind);
        let spec =
            |runtime, period, deadline| Parameters { priority: Some(30), ..task(runtime, period, deadline) };
        // It runs for a second and leaves ordinary threads nothing of it: 1,000 + 2 · 50 ms, and 5 % of the
        // rest, make 1,152.6.
        let why = refused(plugin.consider(&spec(1000, 2000, 1030), None));
        assert!(why.contains("with 50 ms in 1 s of the kernel's fair server"), "{why}");
        refused(plugin.consider(&spec(1000, 2000, 1152), None));
        let offer = offered(plugin.consider(&spec(1000, 2000, 1153), None));
        // Those that leave them enough never meet it.
        let offer_of_short = offered(plugin.consider(&spec(9, 10, 10), None));
        refused(plugin.consider(&spec(19, 20, 20), None));
        // A spec that may take everything lets it act, and is named.
        let mut beside = with_fair_server(kind);
        let unbounded = Parameters { priority: Some(20), ..Parameters::default() };
        if let Answer::Ok(offer) | Answer::Partial(offer) = beside.consider(&unbounded, None) {
            beside.admit(SpecId(1), &unbounded, offer);
            let why = refused(beside.consider(&spec(9, 10, 10), None));
            assert!(why.contains("which acts, as a spec there declares no runtime or no period"), "{why}");
        }
        // Beside one that does not, everyone does.
        plugin.admit(SpecId(1), &spec(1000, 2000, 1153), offer);
        let why = refused(plugin.consider(&Parameters { priority: Some(40), ..spec(1, 100, 20) }, None));
        assert!(why.contains("this spec"), "{why}");
        plugin.release(SpecId(1));
        plugin.admit(SpecId(2), &spec(9, 10, 10), offer_of_short);
        let why = refused(plugin.consider(&spec(900, 20_000, 15_000), None));
        assert!(why.contains("an admitted spec (runtime 9 ms"), "{why}");
        // Nor does a spec that may run for ever leave them anything.
        let open =
            Parameters { priority: Some(10), period: Some(Duration::from_ms(50)), ..Parameters::default() };
        let why = refused(plugin.consider(&open, None));
        assert!(why.contains("an admitted spec (runtime 9 ms"), "{why}");
    }
}

#[test]
fn under_edf_the_fair_server_is_one_server_among_others() {
    let edf = with_fair_server(Kind::Edf);
    assert_eq!(offered(edf.consider(&task(950, 1000, 1000), None)).processor, 0);
    assert_eq!(offered(edf.consider(&task(19, 20, 20), None)).processor, 0);
    refused(edf.consider(&task(1000, 2000, 1030), None));
    refused(edf.consider(&task(1000, 2000, 1052), None));
    assert_eq!(offered(edf.consider(&task(1000, 2000, 1053), None)).processor, 0);
}
