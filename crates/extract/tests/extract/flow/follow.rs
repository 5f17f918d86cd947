//! Following a program that runs: the same latencies as in two passes over its trace, in whatever batches it
//! comes, and nothing that did not happen where events are missing.

use super::oracle::items;
use super::programs::{about, random};
use super::simulator::{History, Keeps, Numbers, Program, Simulator};
use super::truth::{Fate, truth};
use proptest::prelude::*;
use punctual_extract::flow::{
    Analysis, Chains, Clip, Clipped, EndToEnd, EndToEndKind, Follower, Graph, GraphBuilder, Options,
};
use punctual_model::Instant;
use punctual_trace::flow::{About, Item, Kind};
use std::collections::BTreeSet;

/// A latency, with the number of its chain.
type Latency = (usize, EndToEnd);

fn graph(items: &[Item], about: &About) -> Graph {
    let mut builder = GraphBuilder::new();
    items.iter().for_each(|item| builder.item(item));
    builder.finish(about)
}

/// The names of all chains.
fn chains(graph: &Graph) -> Vec<Vec<String>> {
    let names: Vec<&str> = graph.tasks().collect();
    let name = |task: &u16| names[usize::from(*task)].to_owned();
    Chains::all(graph).numbers().iter().map(|chain| chain.iter().map(name).collect()).collect()
}

/// Two passes over a trace.
fn in_two_passes(items: &[Item], about: &About, chains: &[Vec<String>]) -> Vec<Latency> {
    let graph = graph(items, about);
    let chains = Chains::given(&graph, chains).expect("chains");
    let mut analysis = Analysis::new(&graph, &chains, &Options { curve_horizon: 1 }).with_latencies();
    let mut found = Vec::new();
    for item in items {
        analysis.item(item);
        found.extend(analysis.ended().map(|it| (it.chain, it)));
    }
    found
}

/// What is known of the program by now: its connections when a channel is first pushed on.
fn known(about: &About, items: &[Item], sees: &mut BTreeSet<u16>) -> About {
    for item in items {
        if let Item::Event(event) = item {
            if event.kind == Kind::Push {
                sees.insert(event.object);
            }
        }
    }
    let mut known = about.clone();
    known.inputs.retain(|input| sees.contains(&input.connection.channel));
    (known.has_all_inputs, known.has_seen_inputs) = (false, true);
    known
}

/// Batches end between two times.
fn batches<'a>(items: &'a [Item], numbers: &mut Numbers) -> Vec<&'a [Item]> {
    let mut batches: Vec<&[Item]> = Vec::new();
    let mut begin = 0;
    for end in 1..=items.len() {
        let is_end = items.get(end).is_none_or(|next| next.at() > items[end - 1].at());
        if is_end && (end == items.len() || numbers.chance(20)) {
            batches.push(&items[begin..end]);
            begin = end;
        }
    }
    batches
}

fn program(numbers: &mut Numbers) -> Program {
    let mut program = random(numbers);
    // A task that is activated by itself takes nothing then, which cannot be known where events are missing.
    let has_queue = |task: usize| {
        program.tasks[task].inputs.iter().any(|input| matches!(input.keeps, Keeps::Queue { .. }))
    };
    program.timers.retain(|timer| !timer.task.is_some_and(has_queue));
    program
}

/// A random program that has run.
struct Run {
    numbers: Numbers,
    program: Program,
    history: History,
    items: Vec<Item>,
    about: About,
}

impl Run {
    fn of(seed: u64, events: usize) -> Run {
        let mut numbers = Numbers(seed);
        let program = program(&mut numbers);
        let history = Simulator::new(&program, numbers.below(u64::MAX)).run(events);
        let (items, about) = (items(&history.events), about(&program));
        Run { numbers, program, history, items, about }
    }
}

fn in_order(mut found: Vec<Latency>) -> Vec<(usize, bool, u64, u64, Instant, Instant)> {
    let key =
        |(chain, it): Latency| (chain, it.kind == EndToEndKind::Age, it.source, it.sink, it.from, it.until);
    found.sort_by_key(|latency| key(*latency));
    found.into_iter().map(key).collect()
}

fn is_the_same(seed: u64, events: usize, is_revealed: bool) {
    let Run { mut numbers, history, items, mut about, .. } = Run::of(seed, events);
    if is_revealed {
        (about.has_all_inputs, about.has_seen_inputs) = (false, true);
        let pushed: BTreeSet<usize> = history.pushes.iter().map(|push| push.channel).collect();
        about.inputs.retain(|input| pushed.contains(&usize::from(input.connection.channel)));
    }
    let graph = graph(&items, &about);
    let chains = chains(&graph);
    let mut follower = Follower::new(chains.clone());
    let (mut found, mut sees) = (Vec::new(), BTreeSet::new());
    for batch in batches(&items, &mut numbers) {
        let before = sees.len();
        let now = if is_revealed { known(&about, batch, &mut sees) } else { about.clone() };
        follower.batch(batch, &now, sees.len() > before, &mut |chain, it| found.push((chain, *it)));
    }
    assert_eq!((follower.losses(), follower.restarts()), (0, 0));
    assert_eq!(in_order(found), in_order(in_two_passes(&items, &about, &chains)));
}

/// All latencies of chains without queues are among those that were.
fn are_real(found: &[Latency], chains: &[Vec<String>], history: &History, program: &Program) {
    let names: Vec<String> = (0..program.tasks.len()).map(|task| format!("t{task}")).collect();
    for (number, chain) in chains.iter().enumerate() {
        let tasks: Vec<usize> =
            chain.iter().map(|name| names.iter().position(|it| it == name).expect("a task")).collect();
        // What is unknown of queues is not certain; of the others, all that is said has happened.
        if tasks.iter().any(|task| program.tasks[*task].inputs.iter().any(|it| it.keeps != Keeps::Newest)) {
            continue;
        }
        let truth = truth(history, program, &tasks);
        for (_, it) in found.iter().filter(|(chain, _)| *chain == number) {
            let latency = it.until.since(it.from).ns();
            // Numbers are those of the part; times are not.
            let is_real = match it.kind {
                EndToEndKind::Age => truth.ages.values().any(|(_, age, _)| *age == Some(latency)),
                EndToEndKind::Reaction => truth
                    .reactions
                    .values()
                    .any(|fate| matches!(fate, Fate::Reacted { latency: real, .. } if *real == latency)),
            };
            assert!(is_real, "{it:?} of {chain:?}");
        }
    }
}

/// Loses everything for a while, now and then, and is told so.
fn is_true_with_losses(seed: u64, events: usize) -> usize {
    let Run { mut numbers, program, history, items, about } = Run::of(seed, events);
    let chains = chains(&graph(&items, &about));
    let mut follower = Follower::new(chains.clone());
    let mut found: Vec<Latency> = Vec::new();
    let mut lost = 0;
    for batch in batches(&items, &mut numbers) {
        if numbers.chance(4) {
            lost += 1;
            follower.lose(batch[batch.len() - 1].at());
            continue;
        }
        follower.batch(batch, &about, false, &mut |chain, it| found.push((chain, *it)));
    }
    assert!(follower.losses() >= lost);
    are_real(&found, &chains, &history, &program);
    found.len()
}

/// Two passes over a part of a trace.
fn is_true_of_a_part(seed: u64, events: usize) -> usize {
    let Run { mut numbers, program, history, items, about } = Run::of(seed, events);
    let all = chains(&graph(&items, &about));
    let from = items[numbers.below(items.len() as u64) as usize].at();
    let clip = || Clip::new(from, Instant::from_ns(u64::MAX), &about);
    let (mut first, mut builder) = (clip(), GraphBuilder::new());
    items
        .iter()
        .filter_map(|item| first.item(item).and_then(Clipped::inside))
        .for_each(|item| builder.item(&item));
    let graph = builder.finish(&first.about(&about));
    let given: Vec<Vec<String>> =
        all.into_iter().filter(|chain| Chains::given(&graph, std::slice::from_ref(chain)).is_ok()).collect();
    let chains = Chains::given(&graph, &given).expect("chains");
    let mut analysis = Analysis::new(&graph, &chains, &Options { curve_horizon: 1 }).with_latencies();
    let mut found = Vec::new();
    let mut second = clip();
    for clipped in items.iter().filter_map(|item| second.item(item)) {
        analysis.clipped(&clipped);
        found.extend(analysis.ended().map(|it| (it.chain, it)));
    }
    are_real(&found, &given, &history, &program);
    found.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn batches_give_what_two_passes_give(seed: u64, events in 10_usize..600) {
        is_the_same(seed, events, false);
    }

    #[test]
    fn a_graph_that_is_revealed_gives_what_two_passes_give(seed: u64, events in 10_usize..600) {
        is_the_same(seed, events, true);
    }

    #[test]
    fn nothing_is_followed_across_losses(seed: u64, events in 10_usize..600) {
        is_true_with_losses(seed, events);
    }

    #[test]
    fn all_latencies_of_a_part_were(seed: u64, events in 10_usize..600) {
        is_true_of_a_part(seed, events);
    }
}

/// An instance of the last task was activated before the part, and was the first to read a datum of the part.
#[test]
fn a_reaction_by_an_instance_of_before_is_no_later_one() {
    is_true_with_losses(2_469_480_622_714_155_118, 99);
}
