//! Which chains a graph has.

use punctual_extract::flow::{ChainError, Chains, Graph, GraphBuilder, MOST_CHAINS};
use punctual_model::Instant;
use punctual_trace::flow::{About, Event, Item, Kind};

/// A graph in which each task pushes on a channel of its own for each task behind it. Task 0 is activated by
/// a timer.
fn graph(edges: &[(u16, u16)]) -> Graph {
    let mut builder = GraphBuilder::new();
    let (mut at, mut pushes) = (0, 0);
    let mut event = |producer, kind, object| {
        at += 1;
        builder.item(&Item::Event(Event {
            at: Instant::from_ns(at),
            producer,
            kind,
            object,
            number: pushes / 4,
        }));
        pushes += 1;
    };
    event(9, Kind::Activation, 0);
    for (channel, (from, to)) in edges.iter().enumerate() {
        event(0, Kind::Start, *from);
        event(0, Kind::Push, channel as u16);
        event(0, Kind::Activation, *to);
        event(0, Kind::Stop, *from);
    }
    builder.finish(&About::default())
}

fn chains(edges: &[(u16, u16)]) -> Vec<String> {
    let chains = Chains::all(&graph(edges));
    assert!(!chains.is_too_many);
    chains
        .numbers()
        .iter()
        .map(|chain| chain.iter().map(u16::to_string).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn all_paths_from_sources_to_sinks() {
    assert_eq!(chains(&[(0, 1), (1, 2)]), ["0 1 2"]);
    assert_eq!(
        chains(&[(0, 2), (1, 2), (2, 3), (2, 4), (0, 3)]),
        ["0 2 3", "0 2 4", "0 3", "1 2 3", "1 2 4"]
    );
}

#[test]
fn feedback_ends_where_it_comes_back() {
    // The last pushes back.
    assert_eq!(chains(&[(0, 1), (1, 2), (2, 1)]), ["0 1 2"]);
    // A cycle on the way is left again.
    assert_eq!(chains(&[(0, 1), (1, 2), (2, 1), (1, 3)]), ["0 1 3"]);
    // A task that activates itself.
    assert_eq!(chains(&[(0, 0), (0, 1), (1, 1)]), ["0 1"]);
    // Nothing but a cycle: from where it is activated from outside.
    assert_eq!(chains(&[(1, 0), (0, 1)]), ["0 1"]);
}

#[test]
fn too_many_paths_are_none() {
    let layers = |layers: u16| {
        let pairs = |layer: u16| {
            [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(from, to)| (2 * layer + from, 2 * layer + 2 + to))
        };
        (0..layers).flat_map(pairs).collect::<Vec<_>>()
    };
    assert_eq!(chains(&layers(7)).len(), MOST_CHAINS);
    let chains = Chains::all(&graph(&layers(8)));
    assert!(chains.is_too_many && chains.is_empty());
    // Everything connected with everything does not take for ever.
    let all: Vec<(u16, u16)> = (0..40).flat_map(|from| (0..40).map(move |to| (from, to))).collect();
    assert!(Chains::all(&graph(&all)).is_too_many);
    // A very long one does not take the stack.
    let long: Vec<(u16, u16)> = (0..20_000).map(|task| (task, task + 1)).collect();
    assert!(Chains::all(&graph(&long)).is_too_many);
}

#[test]
fn a_chain_that_is_none_says_why() {
    let graph = graph(&[(0, 1), (1, 2)]);
    let given = |chain: &[&str]| Chains::given(&graph, &[chain.to_vec()]).map(|chains| chains.len());
    assert_eq!(given(&["task 0", "task 1", "task 2"]), Ok(1));
    let refused = |chain: &[&str]| given(chain).map_err(|error| error.to_string()).expect_err("no chain");
    assert_eq!(refused(&["task 0", "task 7"]), "there is no task task 7; there are task 0, task 1, task 2");
    let message = "task 0 and task 2 are not connected: task 0 pushes on no channel that activates task 2; \
        after task 0 can come task 1";
    assert_eq!(refused(&["task 0", "task 2"]), message);
    assert_eq!(given(&["task 0"]), Err(ChainError::Length(1)));
}
