//! The raster of states of a dataflow program.

use super::decode::Decoded;
use proptest::prelude::*;
use punctual_model::Instant;
use punctual_report::jobs::Passage;
use punctual_report::timeline::dataflow::{Counts, Dataflow};
use punctual_trace::flow::{About, Event, Gap, Item, Kind};

const CAMERA: u16 = 1;
const NAVIGATION: u16 = 2;
const IMAGE: u16 = 7;

fn about() -> About {
    let mut about = About::default();
    about.tasks.extend([(CAMERA, "cam1".into()), (NAVIGATION, "navi".into())]);
    about.channels.insert(IMAGE, "image".into());
    about.producers.insert(0, "executor 0".into());
    about
}

fn event(at: u64, producer: u32, kind: Kind, object: u16, number: u64) -> Item {
    Item::Event(Event { at: Instant::from_ns(at), producer, kind, object, number })
}

/// The same behind what is in `out`.
pub fn behind(out: Vec<u8>, items: &[Item]) -> Vec<u8> {
    let mut timeline = Dataflow::behind_threads(
        out,
        &About { clock: "CLOCK_MONOTONIC".into(), ..about() },
        Instant::from_ns(0),
    )
    .unwrap();
    items.iter().for_each(|item| timeline.item(item).unwrap());
    timeline.finish().unwrap().0
}

/// Two executions, the second caused by the first.
pub fn executions(at: u64) -> Vec<Item> {
    use Kind::{Activation, Push, Start, Stop};
    vec![
        event(at + 10, 1, Activation, CAMERA, 0),
        event(at + 15, 0, Start, CAMERA, 0),
        event(at + 20, 0, Push, IMAGE, 0),
        event(at + 21, 0, Activation, NAVIGATION, 0),
        event(at + 30, 0, Stop, CAMERA, 0),
        event(at + 32, 0, Start, NAVIGATION, 0),
        event(at + 40, 0, Stop, NAVIGATION, 0),
    ]
}

fn drawn(items: &[Item]) -> (Decoded, Counts) {
    let mut timeline = Dataflow::new(Vec::new(), &about(), Instant::from_ns(0)).unwrap();
    items.iter().for_each(|item| timeline.item(item).unwrap());
    let (bytes, counts) = timeline.finish().unwrap();
    (Decoded::new(&bytes), counts)
}

#[test]
fn states_follow_the_events() {
    let (decoded, counts) = drawn(&executions(0));
    assert_eq!(counts, Counts { executions: 2, pushes: 1, ..Counts::default() });
    let slices_on = |track: &str| {
        let slices = decoded.slices.iter().filter(|slice| decoded.tracks[&slice.track] == track);
        let mut seen: Vec<_> = slices
            .map(|slice| (slice.begin, slice.end, slice.name.as_str(), slice.numbers["instance"]))
            .collect();
        seen.sort_unstable();
        seen
    };
    assert_eq!(slices_on("cam1"), [(10, 15, "queued", 0), (15, 30, "executes", 0)]);
    assert_eq!(slices_on("navi"), [(21, 32, "queued", 0), (32, 40, "executes", 0)]);
    assert_eq!(slices_on("executor 0"), [(15, 30, "cam1", 0), (32, 40, "navi", 0)]);
    let arrows: Vec<_> = decoded
        .flows
        .values()
        .map(|(from, to)| (&decoded.tracks[&from.unwrap()], &decoded.tracks[&to.unwrap()]))
        .collect();
    assert_eq!(arrows, [(&"image".to_owned(), &"navi".to_owned())]);
}

#[test]
fn an_instance_is_not_taken_for_the_next_one() {
    use Kind::{Activation, Start, Stop};
    let (decoded, counts) = drawn(&[
        event(1, 0, Activation, CAMERA, 0),
        event(2, 0, Activation, CAMERA, 1),
        // The start of instance 0 is lost, and the stop of instance 1.
        event(5, 0, Start, CAMERA, 1),
        event(9, 0, Stop, CAMERA, 2),
    ]);
    let states: Vec<_> =
        decoded.slices.iter().map(|slice| (slice.begin, slice.end, slice.name.as_str())).collect();
    assert_eq!(states, [(2, 5, "queued")]);
    assert_eq!(counts, Counts { left_out: 2, ..Counts::default() });
}

/// From these times to those, of one chain.
fn passages(spans: &[(u64, u64)]) -> (Decoded, Counts) {
    let mut timeline = Dataflow::new(Vec::new(), &about(), Instant::from_ns(0)).unwrap();
    for (number, (from, until)) in (0..).zip(spans) {
        let [from, until] = [*from, *until].map(Instant::from_ns);
        let (source, sink) = (number, 100 + number);
        let passage = Passage { chain: "cam1 → navi", latency: "reaction", source, from, sink, until };
        timeline.passage(&passage).unwrap();
    }
    let (bytes, counts) = timeline.finish().unwrap();
    (Decoded::new(&bytes), counts)
}

#[test]
fn data_on_their_way_at_the_same_time_have_rows_of_their_own() {
    let (decoded, counts) = passages(&[(10, 40), (20, 50), (45, 60)]);
    assert_eq!(counts, Counts { passages: 3, ..Counts::default() });
    assert!(decoded.slices.iter().all(|it| decoded.tracks[&it.track] == "cam1 → navi: reaction"));
    let mut seen: Vec<_> = decoded
        .slices
        .iter()
        .map(|it| (it.begin, it.end, it.name.as_str(), it.numbers["sink instance"]))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [(10, 40, "0 → 100", 100), (20, 50, "1 → 101", 101), (45, 60, "2 → 102", 102)]);
    let track = |begin| decoded.slices.iter().find(|it| it.begin == begin).unwrap().track;
    assert_eq!(track(10), track(45));
    assert_ne!(track(10), track(20));
}

#[test]
fn rows_of_a_chain_are_bounded() {
    let spans: Vec<_> = (0..300).map(|at| (at, 1_000)).collect();
    let (decoded, counts) = passages(&spans);
    assert_eq!(counts, Counts { passages: 256, passages_left_out: 44, ..Counts::default() });
    assert_eq!(decoded.slices.len(), 256);
}

proptest! {
    /// Decoding panics where slices of a row overlap, or an end has no begin.
    #[test]
    fn arbitrary_events_give_a_valid_timeline(
        items in proptest::collection::vec((0u64..5, 0u32..3, 0usize..5, 1u16..4, 0u64..4), 0..200),
    ) {
        let mut at = 0;
        let items: Vec<Item> = items.into_iter().map(|(later, producer, kind, object, number)| {
            at += later;
            match Kind::ALL.get(kind) {
                Some(kind) => event(at, producer, *kind, object, number),
                None => Item::Gap(Gap { producer, from: Instant::from_ns(at), until: Instant::from_ns(at + 1),
                    discarded: 1, packets: 0 }),
            }
        }).collect();
        let starts = items.iter().filter(|item| matches!(item,
            Item::Event(event) if event.kind == Kind::Start)).count() as u64;
        let (_, counts) = drawn(&items);
        prop_assert!(counts.executions <= starts);
    }
}

#[test]
fn tracks_and_arrows_of_a_program_do_not_clash_with_threads() {
    let history = super::machine::history(3, &[]);
    let job = super::job_at(1_000_000, 2_000_000);
    let (threads, _) = super::timeline(
        3,
        &super::machine::records(3, &history.steps),
        &[(super::machine::FIRST, super::SLEEP, job)],
    );
    let alone = Decoded::new(&threads);
    let both = Decoded::new(&behind(threads, &executions(1_000_000)));
    let (of_program, _) = drawn(&executions(1_000_000));
    assert_eq!(both.tracks.len(), alone.tracks.len() + of_program.tracks.len());
    assert_eq!(both.slices.len(), alone.slices.len() + of_program.slices.len());
    assert_eq!(both.flows.len(), alone.flows.len() + of_program.flows.len());
    let instances = |decoded: &Decoded| {
        decoded.slices.iter().filter(|slice| slice.numbers.contains_key("instance")).count()
    };
    assert_eq!(instances(&both), instances(&of_program));
}
