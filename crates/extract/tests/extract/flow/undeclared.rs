//! Programs that declare nothing: whatever is called end-to-end is, whichever connections are known.

use super::oracle::{analyse, items};
use super::programs::{about, aton, random};
use super::simulator::{History, Numbers, Policy, Program, Simulator};
use proptest::prelude::*;
use punctual_model::Instant;
use punctual_model::dataflow::{Connections, Dataflow};
use punctual_trace::flow::{About, Arming, Barrier, Connection, Count, Event, Input, Item, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// Tasks to which data of each task went, by the program's books.
fn edges(program: &Program, history: &History) -> BTreeSet<(usize, usize)> {
    let mut edges = BTreeSet::new();
    for push in &history.pushes {
        let Some(maker) = push.maker else { continue };
        let from = history.instances[maker].task;
        for (to, task) in program.tasks.iter().enumerate() {
            if task.inputs.iter().any(|input| input.channel == push.channel) {
                edges.insert((from, to));
            }
        }
    }
    edges
}

/// All that can be reached, and the task itself.
fn reached(edges: &BTreeSet<(usize, usize)>, task: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([task]);
    loop {
        let next: Vec<usize> = edges.iter().filter(|it| reached.contains(&it.0)).map(|it| it.1).collect();
        let before = reached.len();
        reached.extend(next);
        if reached.len() == before {
            return reached;
        }
    }
}

/// Whether a chain is whole: all before its first task, and behind its last one, is in a cycle with it.
fn is_whole(edges: &BTreeSet<(usize, usize)>, first: usize, last: usize) -> bool {
    let turned: BTreeSet<(usize, usize)> = edges.iter().map(|(from, to)| (*to, *from)).collect();
    reached(&turned, first).is_subset(&reached(edges, first))
        && reached(edges, last).is_subset(&reached(&turned, last))
}

fn number(name: &str) -> usize {
    name.trim_start_matches('t').parse().expect("the name of a task")
}

/// Inputs of channels on which something was pushed: those that a probe sees being notified.
fn seen(program: &Program, history: &History) -> Vec<Input> {
    let pushed: BTreeSet<usize> = history.pushes.iter().map(|push| push.channel).collect();
    let mut inputs = Vec::new();
    for (task, it) in program.tasks.iter().enumerate() {
        for input in it.inputs.iter().filter(|input| pushed.contains(&input.channel)) {
            inputs.push(Connection { channel: input.channel as u16, task: task as u16 }.into());
        }
    }
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}

fn check(flow: &Dataflow, program: &Program, history: &History) {
    let edges = edges(program, history);
    for chain in &flow.chains {
        let (first, last) = (number(&chain.tasks[0]), number(&chain.tasks[chain.tasks.len() - 1]));
        let may_be = flow.connections != Some(Connections::Inferred);
        assert_eq!(
            chain.end_to_end,
            Some(may_be && is_whole(&edges, first, last)),
            "{:?} {edges:?}",
            chain.tasks
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_is_called_end_to_end_is(
        seed in any::<u64>(),
        events in 1..500_usize,
        executors in 1..3_usize,
    ) {
        let mut numbers = Numbers(seed);
        let program = Program { executors, ..random(&mut numbers) };
        let history = Simulator::new(&program, numbers.below(u64::MAX)).run(events);
        let items = items(&history.events);
        let declared = about(&program);
        let by_probe = About {
            inputs: seen(&program, &history),
            has_all_inputs: false,
            has_seen_inputs: true,
            ..declared.clone()
        };
        let nothing = About { has_seen_inputs: false, inputs: Vec::new(), ..by_probe.clone() };
        let found = [&declared, &by_probe, &nothing].map(|about| analyse(&items, about, None));
        found.iter().for_each(|flow| check(flow, &program, &history));
        // What probes see is all through which data went.
        let chains = |flow: &Dataflow| -> BTreeSet<Vec<String>> {
            flow.chains.iter().map(|chain| chain.tasks.clone()).collect()
        };
        prop_assert_eq!(chains(&found[0]), chains(&found[1]));
    }
}

/// The paper's set-up: on one executor, the second input of the join always comes last.
#[test]
fn an_undeclared_join_on_one_executor_is_not_called_end_to_end() {
    let (program, declared) = aton(1, Policy::Fifo);
    let history = Simulator::new(&program, 7).run(4_000);
    let nothing = About { inputs: Vec::new(), has_all_inputs: false, ..declared.clone() };
    let flow = analyse(&items(&history.events), &nothing, None);
    assert!(flow.chains.iter().all(|chain| chain.end_to_end == Some(false)));
    let by_probe =
        About { inputs: seen(&program, &history), has_all_inputs: false, has_seen_inputs: true, ..declared };
    let flow = analyse(&items(&history.events), &by_probe, None);
    assert_eq!(flow.chains.len(), 4);
    assert!(flow.chains.iter().all(|chain| chain.end_to_end == Some(true)));
}

/// Two tasks push to a barrier; a probe sees the pushes, and when the count is complete.
fn barrier(is_complete: bool) -> Dataflow {
    const NEVER: u32 = u32::MAX;
    let mut items = Vec::new();
    let event = |at: u64, kind, object, number| {
        Item::Event(Event { at: Instant::from_ns(at), producer: 0, kind, object, number })
    };
    let count =
        |at: u64, count| Item::Count(Count { at: Instant::from_ns(at), producer: 0, channel: 1, count });
    for round in 0..5_u64 {
        let at = round * 100;
        items.push(event(at, Kind::Push, 0, round));
        for (task, from) in [(0_u16, at + 1), (1, at + 20)] {
            items.push(event(at, Kind::Activation, task, round));
            items.push(event(from, Kind::Start, task, round));
            items.push(event(from + 1, Kind::Push, 1, 2 * round + u64::from(task)));
            if task == 1 && is_complete {
                items.extend([count(from + 1, 1), count(from + 1, NEVER)]);
                items.push(event(from + 1, Kind::Activation, 2, round));
            }
            items.push(event(from + 2, Kind::Stop, task, round));
        }
        if is_complete {
            items.push(event(at + 30, Kind::Start, 2, round));
            items.push(event(at + 40, Kind::Stop, 2, round));
        }
    }
    items.sort_by_key(Item::at);
    let input = |channel, task, arming| Input { connection: Connection { channel, task }, arming };
    let mut inputs = vec![input(0, 0, Some(Arming::default())), input(0, 1, Some(Arming::default()))];
    inputs.extend(is_complete.then(|| input(1, 2, Some(Arming::default()))));
    let about = About {
        inputs,
        has_seen_inputs: true,
        barriers: BTreeMap::from([(1, Barrier { count: NEVER, arrived: 0 })]),
        tasks: (0..3).map(|task| (task, format!("t{task}"))).collect(),
        ..About::default()
    };
    analyse(&items, &about, None)
}

#[test]
fn every_push_on_a_barrier_is_data_of_its_round() {
    let flow = barrier(true);
    assert!(flow.channels[1].barrier && flow.channels[1].pushes == 10);
    let chains: Vec<_> = flow.chains.iter().map(|chain| chain.tasks.join(" ")).collect();
    assert_eq!(chains, ["t0 t2", "t1 t2"]);
    for chain in &flow.chains {
        assert_eq!(chain.end_to_end, Some(true));
        let found = &chain.reaction.as_ref().expect("reactions").distribution;
        assert_eq!((found.count, found.min_ns.ns(), found.max_ns.ns()), (5, 40, 40));
    }
}

#[test]
fn a_barrier_that_is_never_complete_leaves_ends_open() {
    let flow = barrier(false);
    assert!(flow.channels[1].is_unread());
    assert!(flow.chains.is_empty());
}
