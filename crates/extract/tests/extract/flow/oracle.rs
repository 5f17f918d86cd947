//! The analysis against what happened.

use super::programs::{about, aton, random};
use super::simulator::{History, Numbers, Policy, Program, Simulator};
use super::truth::{Fate, Truth, truth};
use proptest::prelude::*;
use punctual_extract::flow::{Analysis, Chains, GraphBuilder, Options};
use punctual_model::dataflow::{Chain, Dataflow, Distribution, Latency};
use punctual_model::{Duration, Instant, TimingModel};
use punctual_trace::flow::{About, Event, Item, Kind, Totals};

/// Both passes over a trace, and what its file would be.
pub fn analyse(items: &[Item], about: &About, chains: Option<&[Vec<String>]>) -> Dataflow {
    let mut builder = GraphBuilder::new();
    items.iter().for_each(|item| builder.item(item));
    let graph = builder.finish(about);
    let chains = match chains {
        Some(chains) => Chains::given(&graph, chains).expect("chains"),
        None => Chains::all(&graph),
    };
    let mut analysis = Analysis::new(&graph, &chains, &Options { curve_horizon: 50 });
    items.iter().for_each(|item| analysis.item(item));
    let mut totals = Totals::default();
    for item in items {
        match item {
            Item::Event(_) => totals.events += 1,
            Item::Gap(gap) => totals.discarded += gap.discarded,
            Item::Count(_) | Item::Take(_) => {}
        }
    }
    let flow = analysis.finish(about, &totals);
    is_valid(&flow);
    flow
}

/// The file's own checks: parts that sum up, curves, counts.
fn is_valid(flow: &Dataflow) {
    let model = TimingModel { dataflow: Some(flow.clone()), ..TimingModel::new("CLOCK_MONOTONIC") };
    assert_eq!(TimingModel::from_json(&model.to_json()).expect("a valid file"), model);
}

pub fn items(events: &[Event]) -> Vec<Item> {
    events.iter().map(|event| Item::Event(*event)).collect()
}

/// Everything in a distribution, from all values.
pub fn same(found: Option<&Distribution>, mut values: Vec<u64>, what: &str) {
    values.sort_unstable();
    let Some(found) = found else { return assert!(values.is_empty(), "{what}: nothing found of {values:?}") };
    assert_eq!(found.count, values.len() as u64, "{what}: {values:?}");
    assert_eq!((found.min_ns.ns(), found.max_ns.ns()), (values[0], values[values.len() - 1]), "{what}");
    let p99_ns = found.p99_ns.expect("a percentile");
    let ranks =
        [(250, found.quartile_1_ns), (500, found.median_ns), (750, found.quartile_3_ns), (990, p99_ns)];
    for (per_mille, found) in ranks {
        let exact = values[(values.len() * per_mille).div_ceil(1_000) - 1];
        assert!(found.ns().abs_diff(exact) <= exact / 1_000, "{what}: {found} for {exact}");
    }
    let mean = values.iter().sum::<u64>() / values.len() as u64;
    assert_eq!(found.mean_ns, Some(Duration::from_ns(mean)), "{what}");
}

/// The tasks of a chain by number.
pub fn numbers(flow: &Dataflow, chain: &Chain) -> Vec<usize> {
    let number =
        |name: &String| flow.tasks.iter().find(|task| task.name == *name).expect("a task").id as usize;
    chain.tasks.iter().map(number).collect()
}

/// Whether the worst is where it really was, step by step.
pub fn same_worst(found: &Latency, history: &History, truth: &Truth, is_age: bool) {
    let (worst, steps) = (&found.worst, &found.worst.path);
    assert_eq!(worst.total(), found.distribution.max_ns);
    let parts = [worst.queuing_ns, worst.execution_ns, worst.waiting_ns];
    assert_eq!(parts.into_iter().fold(Duration::ZERO, |sum, part| sum + part), worst.total());
    let last = steps.last().expect("a path");
    let (newest, age, way) = &truth.ages[&last.instance];
    if is_age {
        assert_eq!((worst.source_instance, Some(worst.total().ns())), (*newest, *age));
    } else {
        let latency = worst.total().ns();
        assert_eq!(truth.reactions[&worst.source_instance], Fate::Reacted { latency, read: *newest });
    }
    assert_eq!(steps.len(), way.len());
    for (step, (instance, push)) in steps.iter().zip(way) {
        let instance = &history.instances[*instance];
        let until = push.map_or(instance.stop, |push| Some(history.pushes[push].at));
        let found =
            (step.instance, step.activation_ns.ns(), Some(step.start_ns.ns()), Some(step.until_ns.ns()));
        assert_eq!(found, (instance.number, instance.activation, instance.start, until));
    }
}

/// Of a whole trace everything is known.
fn check(history: &History, program: &Program, flow: &Dataflow) {
    for task in &flow.tasks {
        let instances = || history.instances.iter().filter(|instance| instance.task == task.id as usize);
        let ended = || {
            instances().filter_map(|instance| Some((instance.activation, instance.start?, instance.stop?)))
        };
        assert_eq!((task.activations, task.executions), (instances().count() as u64, ended().count() as u64));
        assert_eq!(
            (task.in_flight, task.incomplete, task.missing_activations),
            (task.activations - task.executions, 0, 0)
        );
        same(
            task.execution.as_ref().map(|times| &times.distribution),
            ended().map(|(_, start, stop)| stop - start).collect(),
            "execution",
        );
        same(
            task.queuing.as_ref().map(|times| &times.distribution),
            ended().map(|(at, start, _)| start - at).collect(),
            "queuing",
        );
        if let Some(times) = &task.queuing {
            let worst = instances().find(|instance| instance.number == times.worst.instance).expect("it");
            assert_eq!(
                worst.start.map(|start| start - worst.activation),
                Some(times.distribution.max_ns.ns())
            );
        }
    }
    for chain in &flow.chains {
        let truth = truth(history, program, &numbers(flow, chain));
        let what = format!("{:?}", chain.tasks);
        let reacted = truth.reactions.iter().filter_map(|(source, fate)| match fate {
            Fate::Reacted { latency, read } => Some((*latency, read != source)),
            _ => None,
        });
        let count = |fate: Fate| truth.reactions.values().filter(|found| **found == fate).count() as u64;
        same(
            chain.reaction.as_ref().map(|found| &found.distribution),
            reacted.clone().map(|(latency, _)| latency).collect(),
            &what,
        );
        assert_eq!(chain.sources, truth.reactions.len() as u64, "{what}");
        assert_eq!(
            chain.overwritten,
            reacted.filter(|(_, is_overwritten)| *is_overwritten).count() as u64,
            "{what}"
        );
        assert_eq!(
            (chain.overtaken, chain.in_flight),
            (count(Fate::Overtaken), count(Fate::InFlight)),
            "{what}"
        );
        assert_eq!(
            (chain.lost, chain.incomplete, chain.sinks_lost, chain.sinks_incomplete),
            (0, 0, 0, 0),
            "{what}"
        );
        same(
            chain.age.as_ref().map(|found| &found.distribution),
            truth.ages.values().filter_map(|(_, age, _)| *age).collect(),
            &what,
        );
        assert_eq!(chain.sinks, truth.ages.len() as u64, "{what}");
        chain.reaction.iter().for_each(|found| same_worst(found, history, &truth, false));
        chain.age.iter().for_each(|found| same_worst(found, history, &truth, true));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_latency_is_what_it_was(seed in any::<u64>(), events in 1..900_usize) {
        let mut numbers = Numbers(seed);
        let program = random(&mut numbers);
        let history = Simulator::new(&program, numbers.below(u64::MAX)).run(events);
        let flow = analyse(&items(&history.events), &about(&program), None);
        check(&history, &program, &flow);
    }

    /// Clocks with coarse ticks: what is at one tick cannot be told apart, but nothing breaks.
    #[test]
    fn events_may_coincide(seed in any::<u64>(), events in 1..600_usize, tick in 1..200_u64) {
        let mut numbers = Numbers(seed);
        let program = random(&mut numbers);
        let mut history = Simulator::new(&program, numbers.below(u64::MAX)).run(events);
        history.events.iter_mut().for_each(|event| event.at = Instant::from_ns(event.at.ns() / tick));
        let flow = analyse(&items(&history.events), &about(&program), None);
        prop_assert!(flow.tasks.iter().all(|task| task.incomplete == 0));
    }
}

#[test]
fn the_papers_program_has_four_chains() {
    for (executors, policy) in [(1, Policy::Fifo), (1, Policy::Lifo), (2, Policy::Fifo), (3, Policy::Any)] {
        let (program, about) = aton(executors, policy);
        let history = Simulator::new(&program, 1).run(20_000);
        let flow = analyse(&items(&history.events), &about, None);
        check(&history, &program, &flow);
        let chains: Vec<String> = flow.chains.iter().map(|chain| chain.tasks.join(",")).collect();
        assert_eq!(
            chains,
            ["cam1,craT,navi,ter1", "cam1,craT,navi,ter2", "cam2,feaT,navi,ter1", "cam2,feaT,navi,ter2"]
        );
        // The same without what the program declares: found from which pushes activated which tasks.
        let found = analyse(
            &items(&history.events),
            &About { inputs: Vec::new(), has_all_inputs: false, ..about },
            None,
        );
        // But nobody knows whether there are more.
        let inferred = flow.chains.iter().cloned().map(|chain| Chain { end_to_end: Some(false), ..chain });
        assert!(found.chains == inferred.collect::<Vec<_>>());
        assert!(flow.chains.iter().all(|chain| chain.end_to_end == Some(true)));
    }
}

/// Numbered by hand: cam pushes at 20, is read by an instance that another input activates at 50, and so on.
#[test]
fn a_chain_by_hand() {
    let event = |at, producer, kind, object, number| Event {
        at: Instant::from_ns(at),
        producer,
        kind,
        object,
        number,
    };
    let (cam, nav) = (0, 1);
    let (image, clock) = (0, 1);
    let events = [
        event(0, 0, Kind::Activation, cam, 0),
        event(10, 0, Kind::Start, cam, 0),
        event(20, 0, Kind::Push, image, 0),
        event(30, 0, Kind::Stop, cam, 0),
        event(50, 1, Kind::Push, clock, 0),
        event(50, 1, Kind::Activation, nav, 0),
        event(57, 0, Kind::Start, nav, 0),
        event(60, 0, Kind::Stop, nav, 0),
    ];
    let connection = |channel, task| punctual_trace::flow::Connection { channel, task }.into();
    let about = About { inputs: vec![connection(image, nav), connection(clock, nav)], ..About::default() };
    let flow = analyse(&items(&events), &about, None);
    let [chain] = &flow.chains[..] else { panic!("{:#?}", flow.chains) };
    let worst = &chain.reaction.as_ref().expect("a reaction").worst;
    let parts = [worst.queuing_ns, worst.execution_ns, worst.waiting_ns, worst.total()].map(Duration::ns);
    assert_eq!(parts, [10 + 7, 10 + 3, 30, 60]);
    assert_eq!(chain.age.as_ref().map(|age| &age.worst), Some(worst));
    assert_eq!(chain.tasks, ["task 0", "task 1"]);
}
