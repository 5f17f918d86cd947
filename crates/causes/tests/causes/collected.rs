//! The collector gives what the whole history gives, in any order that is not too far from that of time.

use crate::script::{at, events};
use proptest::prelude::*;
use punctual_causes::{Collector, Event, Explanation, History, Job, Kind, Step};
use std::collections::BTreeSet;

const PERIOD: u64 = 1_000;
const JOBS: u64 = 200;

/// A thread of 1 kHz that another preempts now and then, for 200 ms.
fn run() -> (Vec<Event>, Vec<Job>) {
    let (mut script, mut jobs) = (String::new(), Vec::new());
    for number in 0..JOBS {
        let due = 1_000 + number * PERIOD;
        let (start, end) = (due + 5, due + 500 + number % 7 * 60);
        script += &format!("{} cpu0 woken 10 interrupt\n{start} cpu0 in 10/80\n", due + 2);
        if number % 3 == 0 {
            let (from, until) = (due + 50, due + 350);
            script += &format!(
                "{from} cpu0 out 10/80 preempted\n{from} cpu0 in 20/90\n\
                 {until} cpu0 out 20/90 asleep\n{until} cpu0 in 10/80\n"
            );
        }
        script += &format!("{end} cpu0 out 10/80 asleep\n");
        let previous_end = (number > 0).then(|| at(due - PERIOD + 500));
        jobs.push(Job {
            thread: 10,
            number,
            begin: at(due),
            previous_end,
            start: at(start),
            end: at(end),
            cost: None,
            release: None,
        });
    }
    (events(&script), jobs)
}

fn collected(events: &[Event], jobs: Vec<Job>) -> Vec<Explanation> {
    let mut explained = Vec::new();
    let mut collector = Collector::new(jobs, at(0));
    for event in events {
        collector.event(*event, &mut |explanation| explained.push(explanation));
    }
    collector.finish(&mut |explanation| explained.push(explanation));
    explained
}

#[test]
fn the_same_as_from_everything_at_once() {
    let (events, jobs) = run();
    let history = History::new(at(0), at(10_000_000), &events, Vec::new());
    let expected: Vec<Explanation> = jobs.iter().map(|job| history.explain(*job)).collect();
    assert_eq!(collected(&events, jobs), expected);
    let preempted = expected.iter().filter(|it| it.parts.len() > 3).count();
    assert_eq!(preempted, 67);
}

/// Where the events of other threads are missing, nothing is said of whoever has the processor.
#[test]
fn a_processor_without_a_known_thread_is_not_idle() {
    let (events, jobs) = run();
    let own = events.iter().filter(|event| {
        matches!(event.step, Step::In { thread: 10, .. } | Step::Out { thread: 10, .. } | Step::Woken { .. })
    });
    let (mut collector, mut kinds) = (Collector::new(jobs, at(0)).partial(), BTreeSet::new());
    let mut each = |explanation: Explanation| kinds.extend(explanation.parts.iter().map(|part| part.kind));
    own.for_each(|event| collector.event(*event, &mut each));
    collector.finish(&mut each);
    assert_eq!(kinds, BTreeSet::from([Kind::LateWakeup, Kind::Own, Kind::Unknown]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn order_among_processors_does_not_matter(delays in prop::collection::vec(0..100_000_u64, 2_000)) {
        let (events, jobs) = run();
        let expected = collected(&events, jobs.clone());
        // As if buffers were read at different times; events at the same time keep their order.
        let delayed = |event: &Event| {
            let (at, delay) = (event.at.ns(), delays[(event.at.ns() / 1_000) as usize % delays.len()]);
            (at + delay * 1_000, at, *event)
        };
        let mut arrived: Vec<(u64, u64, Event)> = events.iter().map(delayed).collect();
        arrived.sort_by_key(|(arrival, at, _)| (*arrival, *at));
        let arrived: Vec<Event> = arrived.into_iter().map(|(_, _, event)| event).collect();
        prop_assert_eq!(collected(&arrived, jobs), expected);
    }
}
