//! The section `latency`: random ones, and the laws of merging.

use crate::generate::{duration, span};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use punctual_model::latency::*;
use punctual_model::{Duration, Instant, Policy, Section, TimingModel};
use serde_json::{Value, json};

const HORIZON: Duration = Duration::from_ms(10);

fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![0..4_u64, any::<u64>()].prop_map(Instant::from_ns)
}

fn name() -> impl Strategy<Value = String> {
    select(&["stress-ng", "kworker/0:1", "a b", "ü"]).prop_map(str::to_owned)
}

fn thread_id() -> impl Strategy<Value = ThreadId> {
    (name(), 0..3_u32, 0..3_u32).prop_map(|(name, pid, tid)| ThreadId { name, pid, tid })
}

fn place() -> impl Strategy<Value = String> {
    select(&["do_fork+0x14e", "schedule+0x1c [nvme]", "0xffffffff92a00091"]).prop_map(str::to_owned)
}

fn culprit() -> impl Strategy<Value = Culprit> {
    (instant(), thread_id(), option::of(place()), option::of(place()), vec(place(), 0..4))
        .prop_map(|(at_ns, thread, opened, closed, stack)| Culprit { at_ns, thread, opened, closed, stack })
}

/// Few values, so that two of them are often equal.
fn variable() -> impl Strategy<Value = Variable> {
    let max = prop_oneof![(0..4_u64).prop_map(ns), duration()];
    (max, any::<bool>(), option::of(culprit())).prop_map(|(max_ns, at_least, culprit)| Variable {
        max_ns,
        at_least,
        culprit,
    })
}

fn variables() -> impl Strategy<Value = Variables> {
    (variable(), variable(), variable(), variable()).prop_map(|(poid, psd, st, paie)| Variables {
        poid,
        psd,
        st,
        paie,
    })
}

/// What some interrupts leave: gaps before each, and execution times.
fn curves() -> impl Strategy<Value = InterruptCurves> {
    let gaps_and_times = vec((0..4_000_000_u64, 0..5_000_u64), 1..12);
    (gaps_and_times, vec(0..5_000_u64, 0..4)).prop_map(|(raw, longer)| {
        let mut curves = InterruptCurves { count: raw.len() as u64, ..InterruptCurves::default() };
        for last in 0..raw.len() {
            for first in (0..=last).rev() {
                let gaps: u64 = raw[first + 1..=last].iter().map(|it| it.0).sum();
                let inner: u64 = raw.get(first + 1..last).unwrap_or(&[]).iter().map(|it| it.1).sum();
                let sum: u64 = raw[first..=last].iter().map(|it| it.1).sum();
                if ns(gaps + inner) < HORIZON {
                    curves.insert(last - first, ns(gaps + inner), ns(sum));
                }
            }
        }
        let entries = raw.windows(2).map(|pair| pair[0].1 + pair[1].0);
        curves.min_separation_ns = entries.min().map(ns);
        let mut sum = curves.wcet_ns.last().map_or(0, |most| most.ns());
        curves.long_execution_ns.extend(longer.into_iter().map(|more| {
            sum += more;
            ns(sum)
        }));
        curves
    })
}

fn interrupt() -> impl Strategy<Value = (InterruptSource, Interrupt)> {
    use InterruptKind::*;
    let source = (select(&[Nmi, Irq, Vector, Softirq]), 0..3_u32, name());
    (source, any::<bool>(), option::of(instant()), curves()).prop_map(
        |((kind, number, name), at_least, longest_at_ns, curves)| {
            let source = InterruptSource { kind, number: (kind != Nmi).then_some(number), name };
            (source.clone(), Interrupt { source, at_least, longest_at_ns, curves })
        },
    )
}

fn wakeup() -> impl Strategy<Value = Wakeup> {
    let part = || (0..3_u64).prop_map(ns);
    let split =
        (part(), part(), part(), part()).prop_map(|(interrupts_ns, threads_ns, sections_ns, rest_ns)| {
            Split { interrupts_ns, threads_ns, sections_ns, rest_ns }
        });
    (instant(), split, any::<bool>(), vec(ran(), 0..3)).prop_map(|(at_ns, split, is_split, ran)| Wakeup {
        at_ns,
        latency_ns: split.total(),
        split: is_split.then_some(split),
        ran,
    })
}

fn ran() -> impl Strategy<Value = Ran> {
    use RanKind::*;
    let kind = select(&[Thread, Interrupt, Softirq, Nmi, Poid, Psd, St, Paie]);
    let section = (option::of(name()), option::of(duration()));
    (kind, name(), any::<u32>(), instant(), duration(), section).prop_map(
        |(kind, name, number, from_ns, duration_ns, (opened, before_ns))| Ran {
            kind,
            name,
            number,
            opened,
            before_ns,
            from_ns,
            duration_ns,
        },
    )
}

fn measured() -> impl Strategy<Value = Measured> {
    let thread = (thread_id(), select(&[Policy::Fifo, Policy::Deadline]), 0..3_u32);
    let thread = thread.prop_map(|(id, policy, priority)| RealTimeThread { id, policy, priority });
    (option::of(thread), vec(wakeup(), 0..9), any::<u8>()).prop_map(|(thread, wakeups, unmeasured)| {
        let mut measured = Measured { thread, unmeasured: unmeasured.into(), ..Measured::default() };
        wakeups
            .into_iter()
            .for_each(|wakeup| measured.add(wakeup.latency_ns, wakeup.split.is_some(), || wakeup));
        if measured.thread.is_none() && unmeasured > 99 {
            measured.from_due_max_ns = Some(ns(unmeasured.into()));
        }
        measured
    })
}

fn processor() -> impl Strategy<Value = Processor> {
    let timers = (any::<u64>(), duration(), variable()).prop_map(|(expired, total_ns, lateness)| Timers {
        expired,
        total_ns,
        lateness,
    });
    let interrupts = vec(interrupt(), 0..4);
    let parts = (option::of(variables()), interrupts, option::of(timers), vec(measured(), 0..3));
    (duration(), any::<[u16; 4]>(), parts).prop_map(
        |(observed_ns, counts, (variables, interrupts, timers, measured))| {
            let [skipped_events, lost_records, went_offline, negative_durations] =
                counts.map(|count| u64::from(count >> 8));
            let mut cpu = Processor {
                observed_ns,
                skipped_events,
                lost_records,
                went_offline,
                negative_durations,
                variables,
                timers,
                ..Processor::default()
            };
            let interrupts: std::collections::BTreeMap<_, _> = interrupts.into_iter().collect();
            cpu.interrupts = interrupts.into_values().collect();
            cpu.measured = measured;
            cpu.measured.sort_by_key(Measured::key);
            cpu.measured.dedup_by(|one, other| one.key() == other.key());
            cpu
        },
    )
}

pub fn section() -> impl Strategy<Value = SchedulingLatency> {
    let monitor = (duration(), any::<u8>());
    let monitors = btree_map(select(&["scpd", "snep", "sts"]), monitor, 0..3);
    let no_variables = option::of(select(&[NoVariables::KernelOptions, NoVariables::Privileges]));
    let processors = btree_map(0..4_u32, processor().boxed(), 0..3);
    (span(), processors, monitors, no_variables, any::<bool>()).prop_map(
        |((from_ns, until_ns), processors, monitors, no_variables, damaged)| SchedulingLatency {
            from_ns,
            until_ns,
            kernel: "7.2.0-rt".to_owned(),
            preemption: Preemption::Rt,
            no_variables,
            damaged_recordings: damaged.into(),
            horizon_ns: HORIZON,
            processors: processors.into_iter().map(|(cpu, it)| Processor { cpu, ..it }).collect(),
            monitors: monitors
                .into_iter()
                .map(|(name, (watched_ns, violations))| Monitor {
                    name: name.to_owned(),
                    rules: vec!["R6".to_owned()],
                    watched_ns,
                    violations: violations.into(),
                })
                .collect(),
        },
    )
}

fn merged(parts: [&SchedulingLatency; 3]) -> SchedulingLatency {
    let [one, two, three] = parts.map(Clone::clone);
    one.merge(two).and_then(|sum| sum.merge(three)).expect("of one kernel")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn sections_merge_in_any_order(a in section(), b in section(), c in section()) {
        let forward = merged([&a, &b, &c]);
        prop_assert_eq!(&forward, &merged([&c, &b, &a]));
        prop_assert_eq!(&forward, &merged([&b, &c, &a]));
        let right = b.clone().merge(c.clone()).and_then(|sum| a.clone().merge(sum)).expect("of one kernel");
        prop_assert_eq!(&forward, &right);
        let model = TimingModel { latency: Some(forward), ..TimingModel::new("CLOCK_MONOTONIC") };
        prop_assert_eq!(TimingModel::from_json(&model.to_json()), Ok(model.clone()));
    }

    /// Nothing that one of them has seen is forgotten.
    #[test]
    fn merging_covers_both(a in section(), b in section()) {
        let sum = a.clone().merge(b.clone()).expect("of one kernel");
        for cpu in a.processors.iter().chain(&b.processors) {
            let all = sum.processors.iter().find(|it| it.cpu == cpu.cpu).expect("there");
            if let (Some(part), Some(all)) = (&cpu.variables, &all.variables) {
                for ((_, part), (_, all)) in part.each().iter().zip(all.each()) {
                    prop_assert!(part.max_ns <= all.max_ns && part.at_least <= all.at_least);
                }
            }
            for part in &cpu.interrupts {
                let all = all.interrupts.iter().find(|it| it.source == part.source).expect("there");
                for window in [0, 1, 1_000, 3_000_000, 9_999_999].map(ns) {
                    prop_assert!(part.curves.arrivals(window) <= all.curves.arrivals(window));
                    prop_assert!(part.curves.execution.sum(window) <= all.curves.execution.sum(window));
                }
            }
        }
    }
}

#[test]
fn other_kernels_are_not_merged() {
    let section = |kernel: &str, horizon_ns| SchedulingLatency {
        from_ns: Instant::from_ns(0),
        until_ns: Instant::from_ns(1),
        kernel: kernel.to_owned(),
        preemption: Preemption::Rt,
        no_variables: None,
        damaged_recordings: 0,
        horizon_ns,
        processors: vec![],
        monitors: vec![],
    };
    assert!(section("a", HORIZON).merge(section("a", HORIZON)).is_ok());
    let error = section("a", HORIZON).merge(section("b", HORIZON)).expect_err("another kernel");
    assert!(error.to_string().contains("different kernels"), "{error}");
    let error = section("a", HORIZON).merge(section("a", ns(1))).expect_err("another horizon");
    assert!(error.to_string().contains("different horizons"), "{error}");
}

fn document() -> Value {
    let thread = json!({"name": "php", "pid": 1, "tid": 1});
    let variable = json!({"max_ns": 5, "culprit": {"at_ns": 3, "thread": thread, "stack": ["do_fork+0x1"]}});
    let nothing = json!({"max_ns": 0});
    json!({
        "format": "punctual.timing-model",
        "version": 2,
        "clock": "CLOCK_MONOTONIC",
        "latency": {
            "from_ns": 0, "until_ns": 9, "kernel": "7.2.0-rt", "preemption": "rt", "horizon_ns": 10_000_000,
            "monitors": [{"name": "sssw", "rules": ["O4", "O8"], "watched_ns": 9, "violations": 0}],
            "processors": [{
                "cpu": 0, "observed_ns": 9,
                "variables": {"poid": variable, "psd": nothing, "st": nothing, "paie": nothing},
                "interrupts": [{
                    "source": {"kind": "irq", "number": 33, "name": "nvme0q1"},
                    "curves": {
                        "count": 2, "min_separation_ns": 7, "delta_min_ns": [2], "wcet_ns": [5, 6],
                        "execution": {"window_ns": [0, 2], "sum_ns": [5, 6]},
                    },
                }],
                "measured": [{
                    "wakeups": 2, "total_ns": 7, "max_ns": 5, "bounded_max_ns": 5,
                    "worst": [
                        {"at_ns": 1, "latency_ns": 5, "split": {"interrupts_ns": 1, "threads_ns": 1,
                            "rest_ns": 3}},
                        {"at_ns": 2, "latency_ns": 2},
                    ],
                }],
            }],
        },
    })
}

#[test]
fn values_that_cannot_be_are_refused() {
    assert_eq!(TimingModel::from_json(&document().to_string()).map(|_| ()), Ok(()));
    let curves = "/latency/processors/0/interrupts/0/curves";
    let source = "/latency/processors/0/interrupts/0/source";
    let measured = "/latency/processors/0/measured/0";
    for (place, value, problem) in [
        (
            "/latency/horizon_ns",
            json!(2),
            "curves.delta_min_ns[0]: expected less than `horizon_ns` (2), found 2",
        ),
        ("/latency/horizon_ns", json!(0), "latency.horizon_ns: expected a number greater than zero"),
        ("/latency/until_ns", json!(null), "latency.until_ns: "),
        ("/latency/preemption", json!("soft"), "latency.preemption: expected one of `none`, "),
        (&format!("{curves}/count"), json!(0), "curves.count: expected a number greater than zero"),
        (&format!("{curves}/count"), json!(1), "curves.wcet_ns: expected one entry more than in"),
        (&format!("{curves}/wcet_ns"), json!([5]), "curves.wcet_ns: expected one entry more than in"),
        (&format!("{curves}/wcet_ns"), json!([6, 5]), "curves.wcet_ns[1]: expected no less than"),
        (&format!("{curves}/wcet_ns"), json!([5, 7]), "curves.execution: expected the last of `sum_ns`"),
        (&format!("{curves}/execution/sum_ns"), json!([5]), "execution: expected as many entries"),
        (&format!("{curves}/execution/sum_ns"), json!([6, 5]), "execution: expected both"),
        (
            &format!("{curves}/execution"),
            json!({"window_ns": [1, 2], "sum_ns": [5, 6]}),
            "curves.execution.window_ns[0]: expected 0, as any window may hold one interrupt, found 1",
        ),
        (
            &format!("{curves}/execution"),
            json!({"window_ns": [0, 2], "sum_ns": [4, 6]}),
            "curves.execution.sum_ns[0]: expected no less than `wcet_ns[0]` (5), found 4",
        ),
        (
            &format!("{curves}/execution"),
            json!({"window_ns": [0, 10_000_000], "sum_ns": [5, 6]}),
            "curves.execution.window_ns[1]: expected less than `horizon_ns` (10000000), found 10000000",
        ),
        (
            &format!("{curves}/wcet_ns"),
            json!([5, 11]),
            "curves.wcet_ns[1]: expected no more than 2 times the",
        ),
        (
            &format!("{curves}/min_separation_ns"),
            json!(1),
            "curves.min_separation_ns: expected no less than `delta_min_ns[0]` (2), found 1",
        ),
        (&format!("{curves}/delta_min_ns"), json!([8]), "min_separation_ns: expected no less than"),
        (&format!("{source}/kind"), json!("nmi"), "interrupts[0].source.number: expected nothing, as NMIs"),
        (
            "/latency/monitors/0/rules/1",
            json!("R15"),
            "latency.monitors[0].rules[1]: expected a rule from `R1` to `R14` or an operation from `O1` to",
        ),
        ("/latency/monitors/0/rules/0", json!("r6"), "latency.monitors[0].rules[0]: expected a rule"),
        (
            &format!("{measured}/total_ns"),
            json!(11),
            "measured[0].total_ns: expected no more than `wakeups` times `max_ns` (2 · 5), found 11",
        ),
        (
            measured,
            json!({"wakeups": 0, "total_ns": 0, "max_ns": 5, "worst": []}),
            "measured[0].max_ns: expected 0, as there was no wake-up, found 5",
        ),
        (
            measured,
            json!({"wakeups": 0, "total_ns": 0, "max_ns": 0, "bounded_max_ns": 0, "worst": []}),
            "measured[0].bounded_max_ns: expected nothing",
        ),
        (&format!("{measured}/max_ns"), json!(6), "worst[0].latency_ns: expected `max_ns` (6), found 5"),
        (
            &format!("{measured}/bounded_max_ns"),
            json!(6),
            "measured[0].bounded_max_ns: expected no more than `max_ns` (5), found more",
        ),
        (&format!("{measured}/wakeups"), json!(1), "measured[0].worst: expected no more than `wakeups`"),
        (
            &format!("{measured}/worst/0/split/rest_ns"),
            json!(4),
            "worst[0].split: expected parts that sum up to `latency_ns` (5), found 6",
        ),
        (&format!("{measured}/worst/1/latency_ns"), json!(9), "worst[1].latency_ns: expected no more than"),
    ] {
        let mut changed = document();
        *changed.pointer_mut(place).expect(place) = value;
        let error = TimingModel::from_json(&changed.to_string()).expect_err(place).to_string();
        assert!(error.contains(problem), "{place}: {error}");
    }
    for (place, field, problem) in [
        (
            curves,
            "min_separation_ns",
            "curves.min_separation_ns: expected a number, as `delta_min_ns` has one",
        ),
        (source, "number", "interrupts[0].source.number: expected a number, found nothing"),
    ] {
        let mut changed = document();
        changed.pointer_mut(place).and_then(Value::as_object_mut).expect(place).remove(field);
        let error = TimingModel::from_json(&changed.to_string()).expect_err(field).to_string();
        assert!(error.contains(problem), "{field}: {error}");
    }
    // The kernel's own account may know how long a thread waited whose wake-up was not seen.
    let mut unseen = document();
    *unseen.pointer_mut(measured).expect("there") =
        json!({"wakeups": 0, "unmeasured": 1, "total_ns": 0, "max_ns": 5, "worst": []});
    assert_eq!(TimingModel::from_json(&unseen.to_string()).map(|_| ()), Ok(()));
    let mut observed = document();
    *observed.pointer_mut(measured).expect("there") = json!({
        "thread": {"id": {"name": "php", "pid": 1, "tid": 1}, "policy": "SCHED_FIFO", "priority": 80},
        "wakeups": 1, "total_ns": 7, "max_ns": 7, "from_due_max_ns": 9, "worst": [],
    });
    let error = TimingModel::from_json(&observed.to_string()).expect_err("of an observed thread").to_string();
    assert!(error.contains("measured[0].from_due_max_ns: expected nothing"), "{error}");
    let mut twice = document();
    let processors = twice.pointer_mut("/latency/processors").and_then(Value::as_array_mut).expect("there");
    processors.push(processors[0].clone());
    let error = TimingModel::from_json(&twice.to_string()).expect_err("processor 0 twice").to_string();
    assert!(error.contains("latency.processors[1]: expected one that comes after"), "{error}");
}
