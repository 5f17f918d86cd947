//! Under any sequence of admissions, changes and releases: the sums are those of the admitted specs,
//! priorities are in the right order, the kernel would accept all assignments, and shifts are reported.

use proptest::prelude::*;
use punctual_model::Duration;
use punctual_schedule::{
    Answer, AssignedPolicy, Assignment, Kind, Limits, Load, Offer, Parameters, Plugin, Refusal, Settings,
    SpecId, Test, Utilization, plugin,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Step {
    Create(Parameters),
    Change(usize, Parameters),
    Release(usize),
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let period =
        prop_oneof![(1..8u64).prop_map(|ms| ms * 1_000_000), 100_000..4_000_000_000u64, 1..1u64 << 63];
    (
        prop::option::weighted(0.9, period),
        prop::option::weighted(0.8, 0.0..0.4f64),
        prop::option::weighted(0.3, 0.5..1.5f64),
        prop::option::weighted(0.8, 1..=99u32),
        any::<(bool, bool)>(),
    )
        .prop_map(|(period, share, stretch, priority, (desired, ignore))| {
            let span = period.unwrap_or(10_000_000);
            let runtime = share.map(|share| ((span as f64 * share) as u64).clamp(1, span));
            let deadline = stretch
                .map(|stretch| ((span as f64 * stretch) as u64).clamp(runtime.unwrap_or(1), i64::MAX as u64));
            Parameters {
                runtime: runtime.map(Duration::from_ns),
                desired_runtime: runtime
                    .filter(|_| desired)
                    .map(|runtime| Duration::from_ns(runtime.saturating_mul(2).min(i64::MAX as u64))),
                period: period.map(Duration::from_ns),
                deadline: deadline.map(Duration::from_ns),
                priority,
                plugin: None,
                ignore_admission: ignore,
                ..Parameters::default()
            }
        })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => parameters().prop_map(Step::Create),
        2 => (any::<usize>(), parameters()).prop_map(|(which, parameters)| Step::Change(which, parameters)),
        2 => any::<usize>().prop_map(Step::Release),
    ];
    prop::collection::vec(step, 1..60)
}

fn settings(test: Test, width: u32) -> Settings {
    Settings {
        name: "books".into(),
        processors: vec![3, 1, 2],
        priorities: (10, 9 + width),
        threshold: 0.9,
        test,
        limits: Limits::default(),
        platforms: Vec::new(),
        reserves: Vec::new(),
        without_runtime_up_to: None,
    }
}

type Specs = BTreeMap<SpecId, (Parameters, Offer)>;

/// The load of each processor, summed up from the specs.
fn sums(specs: &Specs) -> Vec<Load> {
    let load = |processor: u32| {
        let here = || specs.values().filter(|(_, offer)| offer.processor == processor);
        let share = |(parameters, offer): &(Parameters, Offer)| {
            let (runtime, period) = (offer.accepted_runtime?, parameters.period?);
            Some(Utilization::new(runtime, period.min(parameters.deadline.unwrap_or(period))))
        };
        Load {
            processor,
            utilization: here().filter_map(share).sum::<Utilization>().as_f64(),
            specs: here().count(),
        }
    };
    [3, 1, 2].map(load).to_vec()
}

fn check_enactable(kind: Kind, parameters: &Parameters, offer: &Offer, assignment: Assignment, width: u32) {
    assert_eq!(assignment.processor, offer.processor);
    match (kind, assignment.policy) {
        (Kind::Edf, AssignedPolicy::Deadline { runtime, deadline, period }) => {
            // kernel/sched/deadline.c, __checkparam_dl
            assert!(runtime.ns() >= 1 << 10 && runtime <= deadline && deadline <= period);
            assert!((Duration::from_us(100)..=Duration::from_us(1 << 22)).contains(&period));
            assert_eq!((Some(runtime), period), (offer.accepted_runtime, deadline));
            assert_eq!(Some(period), parameters.deadline.or(parameters.period));
            assert!(
                parameters.runtime <= Some(runtime)
                    && (offer.ignored
                        || runtime <= parameters.desired_runtime.max(parameters.runtime).unwrap())
            );
        }
        (Kind::Rm | Kind::Fp, AssignedPolicy::Fifo(priority))
        | (Kind::Rr, AssignedPolicy::RoundRobin(priority)) => {
            assert!((10..=9 + width).contains(&priority))
        }
        (kind, policy) => panic!("{kind} assigned {policy:?}"),
    }
}

/// Equations 5 and 6.
fn check_order(kind: Kind, plugin: &dyn Plugin, specs: &Specs, width: u32) {
    for processor in [1, 2, 3] {
        let mut order = BTreeMap::<u64, BTreeSet<u32>>::new();
        for (&spec, (parameters, _)) in specs {
            let Some(Assignment {
                processor: on,
                policy: AssignedPolicy::Fifo(priority) | AssignedPolicy::RoundRobin(priority),
            }) = plugin.assignment(spec)
            else {
                continue;
            };
            let key = if kind == Kind::Rm {
                // Specs without a runtime come last.
                let last = parameters.runtime.is_none();
                parameters.deadline.unwrap_or(parameters.period.unwrap()).ns()
                    + if last { 1 << 63 } else { 0 }
            } else {
                99 - u64::from(parameters.priority.unwrap())
            };
            if on == processor {
                order.entry(key).or_default().insert(priority);
            }
        }
        assert!(
            order.values().all(|priorities| priorities.len() == 1),
            "equals have equal priorities: {order:?}"
        );
        let priorities: Vec<u32> = order.values().flatten().copied().collect();
        assert!(priorities.is_sorted_by(|a, b| a >= b), "{order:?}");
        assert!(
            order.len() > width as usize || priorities.is_sorted_by(|a, b| a > b),
            "the range allows distinct ones: {order:?}"
        );
    }
}

fn assignments(plugin: &dyn Plugin, specs: &Specs) -> BTreeMap<SpecId, Assignment> {
    specs.keys().map(|&spec| (spec, plugin.assignment(spec).expect("it was admitted"))).collect()
}

fn offer(answer: &Answer) -> Option<Offer> {
    match answer {
        Answer::Ok(offer) | Answer::Partial(offer) => Some(*offer),
        Answer::No(_) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn books_balance(kind in prop::sample::select(&Kind::REAL_TIME[..]), exact in any::<bool>(),
        width in 1..12u32,
        steps in steps()) {
        let test = if exact { Test::Exact } else { Test::Utilization };
        let mut plugin = plugin(kind, settings(test, width)).unwrap();
        let empty = format!("{plugin:?}");
        let mut specs = Specs::new();
        for (number, step) in steps.iter().enumerate() {
            let mut spec = SpecId(number as u64);
            let nth = |which: usize| specs.keys().copied().nth(which % specs.len().max(1));
            let (parameters, replaced) = match step {
                Step::Create(parameters) => (Some(parameters), None),
                Step::Change(which, parameters) => (Some(parameters), nth(*which)),
                Step::Release(which) => (None, nth(*which)),
            };
            let before = assignments(&*plugin, &specs);
            if let Some(parameters) = parameters {
                let looks = format!("{plugin:?}");
                let answer = plugin.consider(parameters, replaced);
                prop_assert_eq!(&answer, &plugin.consider(parameters, replaced));
                prop_assert_eq!(looks, format!("{plugin:?}"), "considering changes nothing");
                prop_assert!(!plugin.shifted());
                let lacks = match kind {
                    Kind::Edf if parameters.runtime.is_none() => Some("runtime_ns"),
                    Kind::Edf | Kind::Rm if parameters.period.is_none() => Some("period_ns"),
                    Kind::Fp | Kind::Rr if parameters.priority.is_none() => Some("priority"),
                    _ => None,
                };
                match &answer {
                    Answer::No(Refusal::Lacks(what)) => prop_assert_eq!(Some(*what), lacks),
                    Answer::No(Refusal::Bound(_)) => prop_assert!(kind == Kind::Edf,
                        "the general bounds are met here"),
                    Answer::No(Refusal::Unschedulable(why)) => prop_assert!(!parameters.ignore_admission
                        && !why.is_empty()),
                    Answer::Partial(_) => prop_assert!(kind == Kind::Rm && parameters.runtime.is_none()),
                    Answer::Ok(_) => prop_assert!(lacks.is_none()),
                }
                let Some(offered) = offer(&answer) else { continue };
                prop_assert!(!offered.ignored || parameters.ignore_admission);
                if let Some(replaced) = replaced {
                    spec = replaced;
                    plugin.release(spec);
                    let released = plugin.consider(parameters, None);
                    prop_assert_eq!(&answer, &released, "a replaced spec counts as released");
                }
                plugin.admit(spec, parameters, offered);
                specs.insert(spec, (parameters.clone(), offered));
            } else if let Some(replaced) = replaced {
                spec = replaced;
                plugin.release(spec);
                specs.remove(&spec);
                prop_assert_eq!(plugin.assignment(spec), None);
            }
            prop_assert_eq!(plugin.loads(), sums(&specs));
            for (&spec, (parameters, offer)) in &specs {
                check_enactable(kind, parameters, offer, plugin.assignment(spec).unwrap(), width);
            }
            check_order(kind, &*plugin, &specs, width);
            let after = assignments(&*plugin, &specs);
            let changed =
                before.iter().any(|(other, was)| *other != spec
                    && after.get(other).is_some_and(|is| is != was));
            prop_assert!(plugin.shifted() || !changed, "a change of other assignments was not reported");
            prop_assert!(!plugin.shifted(), "a shift is reported once");
        }

        // Specs of an earlier daemon are restored in any order, and are scheduled as before.
        let was = assignments(&*plugin, &specs);
        let mut again = punctual_schedule::plugin(kind, settings(test, width)).unwrap();
        for (&spec, (parameters, offer)) in specs.iter().rev() {
            again.restore(spec, parameters, *offer, was[&spec]);
        }
        prop_assert_eq!(assignments(&*again, &specs), was);
        prop_assert_eq!(again.loads(), plugin.loads());

        for &spec in specs.keys() {
            plugin.release(spec);
        }
        plugin.release(SpecId(u64::MAX));
        plugin.shifted();
        prop_assert_eq!(format!("{plugin:?}"), empty, "nothing is left behind");
    }
}

#[test]
fn a_spec_is_not_admitted_to_a_processor_of_another_plugin() {
    for kind in Kind::REAL_TIME {
        let mut plugin = plugin(kind, settings(Test::Exact, 9)).unwrap();
        let parameters = Parameters {
            runtime: Some(Duration::from_ms(1)),
            period: Some(Duration::from_ms(10)),
            priority: Some(7),
            ..Parameters::default()
        };
        plugin.admit(
            SpecId(1),
            &parameters,
            Offer { processor: 77, accepted_runtime: parameters.runtime, ignored: false },
        );
        assert_eq!(plugin.assignment(SpecId(1)), None);
        assert!(plugin.loads().iter().all(|load| load.specs == 0));
    }
}
