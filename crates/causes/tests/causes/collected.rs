//! The collector gives what the whole history gives, in any order that is not too far from that of time.

use crate::script::{at, events};
use proptest::prelude::*;
use punctual_causes::{Collector, Event, Explanation, History, Job, Kind, Loss, Part, Step};
use punctual_model::Duration;
use std::collections::BTreeSet;

const PERIOD: u64 = 1_000;
const JOBS: u64 = 200;

/// A thread of 1 kHz that another preempts now and then, for 200 ms.
fn run() -> (Vec<Event>, Vec<Job>) {
    run_of(JOBS)
}

fn run_of(number: u64) -> (Vec<Event>, Vec<Job>) {
    let (mut script, mut jobs) = (String::new(), Vec::new());
    for number in 0..number {
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
            phase: 0,
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
        collector.event(*event);
        collector.explain(&mut |explanation| explained.push(explanation));
    }
    collector.finish(&mut |explanation| explained.push(explanation));
    explained
}

/// Jobs become known when they have ended, and are explained now and then.
fn followed(events: &[Event], jobs: &[Job], keep: Duration) -> Vec<Explanation> {
    let mut explained = Vec::new();
    let mut collector = Collector::following(at(0), keep);
    let mut jobs = jobs.iter().peekable();
    for (number, event) in events.iter().enumerate() {
        collector.event(*event);
        while let Some(job) = jobs.next_if(|job| job.end < event.at) {
            collector.job(*job);
        }
        if number % 100 == 0 {
            collector.explain(&mut |explanation| explained.push(explanation));
        }
    }
    jobs.for_each(|job| collector.job(*job));
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

#[test]
fn jobs_that_become_known_late_are_explained_alike() {
    let (events, jobs) = run();
    assert_eq!(followed(&events, &jobs, Duration::from_ms(250)), collected(&events, jobs));
}

/// A job that began before what is kept has no reasons there but `unknown`.
#[test]
fn what_is_no_longer_kept_is_unknown() {
    let (events, jobs) = run_of(3 * JOBS);
    let (first, last) = (jobs[0], jobs[jobs.len() - 1]);
    // As if it had taken all the time.
    let long = Job { begin: first.begin, previous_end: None, ..last };
    let all = collected(&events, vec![long]);
    let recent = followed(&events, &[long], Duration::from_ns(1));
    let unknown = |explanation: &Explanation| {
        let parts = explanation.parts.iter().filter(|part| part.kind == Kind::Unknown);
        parts.map(|part| part.time.ns()).sum::<u64>()
    };
    assert_eq!(unknown(&all[0]), 0);
    assert!(unknown(&recent[0]) > 0, "{recent:?}");
    // What is known is the same.
    let known = recent[0].parts.iter().filter(|part| part.kind != Kind::Unknown);
    known.for_each(|part| {
        let end = part.from + part.time;
        let same = |of: &&Part| of.kind == part.kind && of.from <= part.from && end <= of.from + of.time;
        assert!(all[0].parts.iter().any(|it| same(&it)), "{part:?}");
    });
}

/// Losses that come as they are found count as those that are known from the beginning.
#[test]
fn a_loss_is_taken_when_it_is_found() {
    let (events, jobs) = run();
    let loss = Loss { since: jobs[50].begin, until: jobs[60].end };
    let mut known = Collector::new(jobs.clone(), at(0)).with_losses(vec![loss]);
    let mut found = Collector::new(jobs, at(0));
    let (mut expected, mut explained) = (Vec::new(), Vec::new());
    for event in events.iter().filter(|event| event.at < loss.since || event.at > loss.until) {
        if event.at > loss.until {
            found.lost(loss);
        }
        known.event(*event);
        found.event(*event);
        known.explain(&mut |it| expected.push(it));
        found.explain(&mut |it| explained.push(it));
    }
    known.finish(&mut |it| expected.push(it));
    found.finish(&mut |it| explained.push(it));
    assert_eq!(explained, expected);
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
    own.for_each(|event| {
        collector.event(*event);
        collector.explain(&mut each);
    });
    collector.finish(&mut each);
    assert_eq!(kinds, BTreeSet::from([Kind::LateWakeup, Kind::Own, Kind::Unknown]));
}

/// A thread that is not kept from its processor for long ran on one of which there are no events.
#[test]
fn waits_for_nobody_are_unknown_where_processors_are_hidden() {
    let script = "50 cpu0 out 10/80 asleep
                  50 cpu0 in 0
                  100 cpu0 woken 10 interrupt
                  110 cpu0 out 0 preempted
                  110 cpu0 in 10/80
                  200 cpu0 out 10/80 preempted
                  200 cpu0 in 20/90
                  300 cpu0 out 20/90 asleep
                  300 cpu0 in 0
                  500 cpu0 out 0 preempted
                  500 cpu0 in 10/80
                  600 cpu0 out 10/80 asleep";
    let (release, previous_end) = (None, None);
    let (begin, start, end) = (at(100), at(110), at(600));
    let job = Job { thread: 10, phase: 0, number: 0, begin, previous_end, start, end, cost: None, release };
    let kinds = |collector: Collector| {
        let (mut collector, mut kinds) = (collector, Vec::new());
        events(script).into_iter().for_each(|event| collector.event(event));
        collector.finish(&mut |it| kinds.extend(it.parts.iter().map(|part| part.kind.name())));
        kinds
    };
    let all = Collector::new(vec![job], at(0));
    assert_eq!(kinds(all), ["dispatch", "own", "preempted", "throttled", "own"]);
    let some = Collector::new(vec![job], at(0)).of_some_processors();
    assert_eq!(kinds(some), ["dispatch", "own", "preempted", "unknown", "own"]);
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
