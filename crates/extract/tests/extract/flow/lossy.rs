//! Traces with events missing: whatever is still said is true.

use super::oracle::{analyse, numbers, same_worst};
use super::programs::{about, random};
use super::simulator::{Keeps, Numbers, Simulator};
use super::truth::{Fate, truth};
use proptest::prelude::*;
use punctual_model::Instant;
use punctual_model::dataflow::Distribution;
use punctual_trace::flow::{About, Arming, Barrier, Connection, Event, Gap, Input, Item, Kind};

/// Leaves out runs of some producers' events, and says so as a reader would.
fn with_gaps(events: &[Event], numbers: &mut Numbers) -> Vec<Item> {
    let (mut items, mut at) = (Vec::new(), Vec::new());
    let producers = events.iter().map(|event| event.producer + 1).max().unwrap_or(0);
    for producer in 0..producers {
        let own: Vec<(usize, &Event)> =
            events.iter().enumerate().filter(|(_, event)| event.producer == producer).collect();
        let mut index = 0;
        while index < own.len() {
            if numbers.below(40) > 0 {
                at.push((own[index].0 * 2, Item::Event(*own[index].1)));
                index += 1;
                continue;
            }
            let length = (1 + numbers.below(6) as usize).min(own.len() - index);
            let before = index.checked_sub(1).map(|before| own[before]);
            let until = own.get(index + length).map_or(u64::MAX, |(_, event)| event.at.ns());
            let gap = Gap {
                producer,
                from: before.map_or(Instant::from_ns(0), |(_, event)| event.at),
                until: Instant::from_ns(until),
                discarded: length as u64,
                packets: numbers.below(4) / 3,
            };
            at.push((before.map_or(0, |(place, _)| place * 2 + 1), Item::Gap(gap)));
            index += length;
        }
    }
    at.sort_by_key(|(place, _)| *place);
    items.extend(at.into_iter().map(|(_, item)| item));
    items
}

fn is_true(seed: u64, events: usize) {
    let mut numbers_of_all = Numbers(seed);
    let mut program = random(&mut numbers_of_all);
    // A task that is activated by itself takes nothing then, which cannot be known where events are missing.
    let has_queue = |task: usize| {
        program.tasks[task].inputs.iter().any(|input| matches!(input.keeps, Keeps::Queue { .. }))
    };
    program.timers.retain(|timer| !timer.task.is_some_and(has_queue));
    let history = Simulator::new(&program, numbers_of_all.below(u64::MAX)).run(events);
    let items = with_gaps(&history.events, &mut numbers_of_all);
    let flow = analyse(&items, &about(&program), None);
    let within = |found: &Distribution, all: Vec<u64>| {
        let is_one = |value: u64| all.contains(&value);
        assert!(
            found.count <= all.len() as u64 && is_one(found.min_ns.ns()) && is_one(found.max_ns.ns()),
            "{found:?} of {all:?}"
        );
    };
    for task in &flow.tasks {
        let instances = || history.instances.iter().filter(|instance| instance.task == task.id as usize);
        if let Some(times) = &task.execution {
            within(
                &times.distribution,
                instances().filter_map(|instance| Some(instance.stop? - instance.start?)).collect(),
            );
        }
        if let Some(times) = &task.queuing {
            within(
                &times.distribution,
                instances().filter_map(|instance| Some(instance.start? - instance.activation)).collect(),
            );
        }
    }
    for chain in &flow.chains {
        let truth = truth(&history, &program, &numbers(&flow, chain));
        if let Some(found) = &chain.reaction {
            let latency = |fate: &Fate| match fate {
                Fate::Reacted { latency, .. } => Some(*latency),
                _ => None,
            };
            within(&found.distribution, truth.reactions.values().filter_map(latency).collect());
            same_worst(found, &history, &truth, false);
        }
        if let Some(found) = &chain.age {
            within(&found.distribution, truth.ages.values().filter_map(|(_, age, _)| *age).collect());
            same_worst(found, &history, &truth, true);
        }
    }
}

/// The only push by which a task was known to push on a channel is missing.
#[test]
fn a_maker_that_is_not_known() {
    is_true(8_086_850_299_713_242_989, 209);
}

/// An instance whose start is missing has read the newest value, and the next instance that starts has not.
#[test]
fn a_start_that_is_missing() {
    is_true(5_074_637_397_275_686_510, 265);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_said_is_true_whatever_is_missing(seed in any::<u64>(), events in 1..900_usize) {
        is_true(seed, events);
    }
}

proptest! {
    /// Events that fit to nothing, and inputs that nobody has: nothing breaks.
    #[test]
    fn nonsense_breaks_nothing(seed in any::<u64>(), count in 1..300_u64) {
        let mut numbers = Numbers(seed);
        let mut some =
            |end: u64| if numbers.chance(3) { u64::MAX >> numbers.below(40) } else { numbers.below(end) };
        let mut about = About { has_all_inputs: some(2) == 0, ..About::default() };
        for _ in 0..some(10).min(10) {
            let connection = Connection { channel: some(3) as u16, task: some(4) as u16 };
            let threshold = (some(4) as u32).max(1);
            let arming = Arming {
                threshold, synchronised: some(3) > 0, optional: some(4) == 0, is_final: some(4) == 0,
                pending: some(4) as u32,
            };
            about.inputs.push(Input { connection, arming: (some(4) > 0).then_some(arming) });
            let channel = some(6) as u16;
            let barrier = Barrier { count: (some(4) as u32).max(1), arrived: some(3) as u32 };
            about.barriers.insert(channel, barrier);
        }
        let mut at = 0;
        let mut items = Vec::new();
        for _ in 0..count {
            at += some(3) % 1_000;
            let (producer, instant) = (some(3) as u32, Instant::from_ns(at));
            items.push(match some(30) {
                0 => Item::Gap(Gap {
                    producer, from: instant, until: Instant::from_ns(at + some(50) % 1_000),
                    discarded: some(5) % (1 << 32), packets: some(2),
                }),
                kind => {
                    let (kind, number) = (Kind::ALL[kind as usize % 4], some(6) % (1 << 60));
                    Item::Event(Event { at: instant, producer, kind, object: some(4) as u16, number })
                }
            });
        }
        analyse(&items, &about, None);
    }
}
