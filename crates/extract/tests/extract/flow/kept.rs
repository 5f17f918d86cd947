//! What inputs keep, by hand: bursts, what was there before the trace, barriers.

use super::oracle::analyse;
use punctual_model::Instant;
use punctual_model::dataflow::{Chain, Dataflow, FlowTask};
use punctual_trace::flow::{About, Arming, Barrier, Connection, Count, Event, Gap, Input, Item, Kind};
use std::collections::BTreeMap;

const CAM: u16 = 0;
const NAV: u16 = 1;
const TICK: u16 = 0;
const IMAGE: u16 = 1;

/// Events of a timer (producer 2), of cam on executor 0 and of nav on executor 1, with their numbers.
#[derive(Default)]
struct Trace {
    items: Vec<Item>,
    numbers: BTreeMap<(bool, u16), u64>,
}

impl Trace {
    fn add(&mut self, at: u64, producer: u32, kind: Kind, object: u16) {
        let number = self.numbers.entry((kind == Kind::Push, object)).or_default();
        let event = Event { at: Instant::from_ns(at), producer, kind, object, number: *number };
        *number += u64::from(matches!(kind, Kind::Push | Kind::Stop));
        self.items.push(Item::Event(event));
    }

    fn count(&mut self, at: u64, count: u32) {
        self.items.push(Item::Count(Count { at: Instant::from_ns(at), producer: 2, channel: IMAGE, count }));
    }

    /// cam is activated, and pushes an image a nanosecond after its start. `activates`: nav was idle, and has
    /// all that it needs then.
    fn image(&mut self, at: u64, activates: bool) {
        self.add(at, 2, Kind::Push, TICK);
        self.add(at, 2, Kind::Activation, CAM);
        self.add(at, 0, Kind::Start, CAM);
        self.add(at + 1, 0, Kind::Push, IMAGE);
        if activates {
            self.add(at + 1, 0, Kind::Activation, NAV);
            self.add(at + 1, 1, Kind::Start, NAV);
        }
        self.add(at + 2, 0, Kind::Stop, CAM);
    }

    /// nav ends, and perhaps begins again with what it has.
    fn nav_ends(&mut self, at: u64, begins_again: bool) {
        self.add(at, 1, Kind::Stop, NAV);
        if begins_again {
            self.add(at, 1, Kind::Activation, NAV);
            self.add(at, 1, Kind::Start, NAV);
        }
    }

    fn analyse(&self, image: Arming, barrier: Option<Barrier>) -> Dataflow {
        let input =
            |channel, task, arming| Input { connection: Connection { channel, task }, arming: Some(arming) };
        let about = About {
            inputs: vec![input(TICK, CAM, Arming::default()), input(IMAGE, NAV, image)],
            has_all_inputs: true,
            barriers: barrier.map(|barrier| (IMAGE, barrier)).into_iter().collect(),
            ..About::default()
        };
        analyse(&self.items, &about, None)
    }
}

fn chain(flow: &Dataflow) -> &Chain {
    assert_eq!(flow.chains.len(), 1);
    &flow.chains[0]
}

fn nav(flow: &Dataflow) -> &FlowTask {
    &flow.tasks[usize::from(NAV)]
}

/// Ages' and reactions' least and greatest, in ns.
fn ends(chain: &Chain) -> Option<[u64; 4]> {
    let (reaction, age) = (&chain.reaction.as_ref()?.distribution, &chain.age.as_ref()?.distribution);
    Some([reaction.min_ns, reaction.max_ns, age.min_ns, age.max_ns].map(|time| time.ns()))
}

/// Ten images within 100 ns, of which each takes nav 500 ns: the last has waited for all others.
#[test]
fn a_burst_is_worked_off_one_by_one() {
    let mut trace = Trace::default();
    (0..10).for_each(|image| trace.image(10 * image, image == 0));
    (1..=10).for_each(|end| trace.nav_ends(1 + 500 * end, end < 10));
    let flow = trace.analyse(Arming::default(), None);
    let chain = chain(&flow);
    assert_eq!((chain.sources, chain.sinks, chain.overwritten, chain.in_flight), (10, 10, 0, 0));
    assert_eq!(ends(chain), Some([501, 5_001 - 90, 501, 5_001 - 90]));
    let worst = &chain.age.as_ref().expect("an age").worst;
    assert_eq!((worst.source_instance, worst.path[1].instance), (9, 9));
    // All of its wait was for nav, which was busy with the others.
    assert_eq!((worst.queuing_ns.ns(), worst.execution_ns.ns(), worst.waiting_ns.ns()), (4_501 - 91, 501, 0));
    assert_eq!(nav(&flow).unexplained, 0);
    // With the newest value only, two instances have the first and the last.
    let mut trace = Trace::default();
    (0..10).for_each(|image| trace.image(10 * image, image == 0));
    trace.nav_ends(501, true);
    trace.nav_ends(1_001, false);
    let flow = trace.analyse(Arming { synchronised: false, ..Arming::default() }, None);
    assert_eq!(ends(self::chain(&flow)), Some([501, 1_001 - 10, 501, 1_001 - 90]));
}

/// Three images make an instance; two were there before the trace.
#[test]
fn what_was_there_before_the_trace_counts() {
    let mut trace = Trace::default();
    trace.image(0, true);
    trace.nav_ends(5, false);
    trace.image(10, false);
    trace.image(20, false);
    trace.image(30, true);
    trace.nav_ends(35, false);
    let arming = Arming { threshold: 3, pending: 2, ..Arming::default() };
    let flow = trace.analyse(arming, None);
    let first = chain(&flow);
    assert_eq!((first.sources, first.sinks, first.overwritten), (4, 2, 2));
    assert_eq!((ends(first), nav(&flow).unexplained), (Some([5, 25, 5, 5]), 0));
    // Of a barrier that counts to three, of which two had come.
    let flow = trace.analyse(Arming::default(), Some(Barrier { count: 3, arrived: 2 }));
    assert_eq!(chain(&flow), first);
    // If the trace did not say so, it would tell that something is wrong.
    let flow = trace.analyse(Arming { pending: 0, ..arming }, None);
    assert_eq!(nav(&flow).unexplained, 1);
}

/// A barrier counts to two; rounds that end while nav runs are for instances to come.
#[test]
fn rounds_of_a_barrier_are_kept() {
    let mut trace = Trace::default();
    trace.image(0, false);
    trace.image(10, true);
    (2..6).for_each(|image| trace.image(10 * image, false));
    trace.nav_ends(100, true);
    trace.nav_ends(200, true);
    trace.nav_ends(300, false);
    let flow = trace.analyse(Arming::default(), Some(Barrier { count: 2, arrived: 0 }));
    let chain = chain(&flow);
    assert_eq!((chain.sources, chain.sinks, chain.lost), (6, 3, 0));
    assert_eq!(ends(chain), Some([90, 260, 90, 250]));
}

/// A barrier's count is raised and lowered.
#[test]
fn a_barrier_whose_count_changes() {
    let mut trace = Trace::default();
    trace.image(0, false);
    trace.image(10, true);
    trace.nav_ends(15, false);
    trace.count(16, 3);
    (2..4).for_each(|image| trace.image(10 * image, false));
    trace.image(40, true);
    // A whole round, and one image more, while nav runs.
    (5..9).for_each(|image| trace.image(10 * image, false));
    trace.nav_ends(85, true);
    // As many as have come: a round ends without a push.
    trace.count(86, 1);
    trace.nav_ends(95, true);
    trace.nav_ends(99, false);
    let flow = trace.analyse(Arming::default(), Some(Barrier { count: 2, arrived: 0 }));
    let chain = chain(&flow);
    assert_eq!((chain.sources, chain.sinks, chain.lost, nav(&flow).unexplained), (9, 4, 0, 0));
    // Images at 0 and 10; 20 to 40; 50 to 70; 80.
    assert_eq!(ends(chain), Some([5, 65, 5, 45]));
}

/// nav is activated by a clock, and has the newest image, however often: it is older each time.
#[test]
fn the_newest_value_is_there_until_there_is_another() {
    const CLOCK: u16 = 2;
    let mut trace = Trace::default();
    trace.image(0, false);
    for at in [10, 20, 30] {
        trace.add(at, 2, Kind::Push, CLOCK);
        trace.add(at, 2, Kind::Activation, NAV);
        trace.add(at, 1, Kind::Start, NAV);
        trace.add(at + 5, 1, Kind::Stop, NAV);
    }
    let input = |channel, task, synchronised: bool| {
        let optional = !synchronised;
        Input {
            connection: Connection { channel, task },
            arming: Some(Arming { synchronised, optional, ..Arming::default() }),
        }
    };
    let about = About {
        inputs: vec![input(TICK, CAM, true), input(IMAGE, NAV, false), input(CLOCK, NAV, true)],
        has_all_inputs: true,
        ..About::default()
    };
    let flow = analyse(&trace.items, &about, None);
    let first = chain(&flow);
    assert_eq!((first.sources, first.sinks, ends(first)), (1, 3, Some([15, 15, 15, 35])));
    let worst = &first.age.as_ref().expect("an age").worst;
    assert_eq!((worst.queuing_ns.ns(), worst.execution_ns.ns(), worst.waiting_ns.ns()), (0, 6, 29));
    // Somebody else's image takes its place.
    trace.add(36, 2, Kind::Push, IMAGE);
    trace.add(40, 2, Kind::Push, CLOCK);
    trace.add(40, 2, Kind::Activation, NAV);
    trace.add(40, 1, Kind::Start, NAV);
    trace.add(45, 1, Kind::Stop, NAV);
    assert_eq!(chain(&analyse(&trace.items, &about, None)).sinks, 3);
}

/// A stream that ends early, where a packet does: no gap says so, and the numbers do.
#[test]
fn a_stream_that_ends_early() {
    let mut trace = Trace::default();
    for round in 0..20 {
        trace.image(1_000 * round, true);
        trace.nav_ends(1_000 * round + 500, false);
    }
    // Those of executor 0, which activates nav, are not there between two of its packets.
    let is_lost = |event: &Event| event.producer == 0 && (5_000..15_000).contains(&event.at.ns());
    trace.items.retain(|item| !matches!(item, Item::Event(event) if is_lost(event)));
    let flow = trace.analyse(Arming::default(), None);
    assert_eq!((nav(&flow).activations, nav(&flow).missing_activations), (10, 10));
    let curve = nav(&flow).arrival.curve.as_ref().expect("a curve");
    assert_eq!(
        curve.delta_max_ns.first().map(|most| most.ns()),
        Some(1_000),
        "no curve spans what is missing"
    );
    assert_eq!(ends(chain(&flow)), Some([500, 500, 500, 500]));
}

/// nav starts and ends without its start and stop being there: then it has ended, since the next instance was
/// activated, and has read nobody knows what.
#[test]
fn an_end_that_is_missing() {
    let mut trace = Trace::default();
    for round in 0..3 {
        trace.image(1_000 * round, true);
        trace.nav_ends(1_000 * round + 500, false);
    }
    let unsynchronised = Arming { synchronised: false, ..Arming::default() };
    let whole = trace.analyse(unsynchronised, None);
    assert_eq!(ends(chain(&whole)), Some([500, 500, 500, 500]));
    let is_first = |event: &Event| {
        event.object == NAV && event.number == 0 && matches!(event.kind, Kind::Start | Kind::Stop)
    };
    trace.items.retain(|item| !matches!(item, Item::Event(event) if is_first(event)));
    let flow = trace.analyse(unsynchronised, None);
    assert_eq!((nav(&flow).in_flight, nav(&flow).incomplete), (0, 1));
    assert_eq!(chain(&flow).reaction.as_ref().map(|reaction| reaction.distribution.max_ns.ns()), None);
    // A gap behind all of it changes nothing.
    let at = Instant::from_ns(2_600);
    trace.items.push(Item::Gap(Gap {
        producer: 0,
        from: at,
        until: Instant::from_ns(u64::MAX),
        discarded: 0,
        packets: 1,
    }));
    assert!(chain(&trace.analyse(unsynchronised, None)).reaction.is_none());
}

/// Who activates cam is not there at all: starts show that activations are missing, and notes of the
/// barrier's count may be, too.
#[test]
fn starts_without_activations() {
    let mut trace = Trace::default();
    trace.image(0, true);
    trace.nav_ends(5, false);
    trace.count(6, 2);
    (1..5).for_each(|image| trace.image(10 * image, image % 2 == 0));
    trace.nav_ends(45, false);
    trace.items.retain(|item| match item {
        Item::Event(event) => event.producer != 2,
        _ => false,
    });
    let flow = trace.analyse(Arming::default(), Some(Barrier { count: 1, arrived: 0 }));
    assert_eq!(flow.tasks[usize::from(CAM)].missing_activations, 5);
    assert!(chain(&flow).reaction.is_none() && chain(&flow).age.is_none());
}

/// A gap at the end does not say where a push is that is missing before.
#[test]
fn a_gap_elsewhere_explains_nothing() {
    let mut trace = Trace::default();
    for round in 0..3 {
        trace.image(1_000 * round, true);
        if round == 1 {
            trace.add(1_000 * round + 100, 2, Kind::Push, IMAGE);
        }
        trace.nav_ends(1_000 * round + 500, false);
    }
    trace
        .items
        .retain(|item| !matches!(item, Item::Event(event) if event.producer == 2 && event.object == IMAGE));
    let at = Instant::from_ns(2_500);
    trace.items.push(Item::Gap(Gap {
        producer: 0,
        from: at,
        until: Instant::from_ns(u64::MAX),
        discarded: 0,
        packets: 1,
    }));
    let chain = |arming| chain(&trace.analyse(arming, None)).clone();
    // The last instance may have read it, be it of the newest value or of a queue; those before have not.
    let newest = chain(Arming { synchronised: false, ..Arming::default() });
    assert_eq!((newest.sinks, newest.age.as_ref().map_or(0, |age| age.distribution.count)), (3, 2));
    let queue = chain(Arming::default());
    assert_eq!((queue.sinks, queue.age.as_ref().map_or(0, |age| age.distribution.count)), (3, 2));
}

/// Of two inputs of one channel, nobody knows which counts a push before the activation in it.
#[test]
fn a_channel_that_is_connected_twice() {
    let mut trace = Trace::default();
    trace.image(0, true);
    trace.nav_ends(5, false);
    let input = |task, threshold| {
        let channel = if task == CAM { TICK } else { IMAGE };
        Input {
            connection: Connection { channel, task },
            arming: Some(Arming { threshold, optional: threshold > 1, ..Arming::default() }),
        }
    };
    let about = About {
        inputs: vec![input(CAM, 1), input(NAV, 1), input(NAV, 2)],
        has_all_inputs: true,
        ..About::default()
    };
    let flow = analyse(&trace.items, &about, None);
    assert_eq!((chain(&flow).sinks_lost, chain(&flow).age.is_none()), (1, true));
}

/// More than are kept one by one: what is behind is counted, not guessed.
#[test]
fn a_backlog_without_end() {
    let mut trace = Trace::default();
    let images = 20_000;
    (0..images).for_each(|image| trace.image(10 * image, image == 0));
    (1..=images).for_each(|end| trace.nav_ends(1_000_000 + 10 * end, end < images));
    let flow = trace.analyse(Arming::default(), None);
    let chain = chain(&flow);
    let known = chain.age.as_ref().map_or(0, |age| age.distribution.count);
    assert!(chain.sinks == images && known > 16_000 && known + chain.sinks_lost == images, "{chain:?}");
}
