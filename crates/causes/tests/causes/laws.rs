//! What holds for any events: parts are disjoint, leave no gap, and have an exact sum.

use crate::script::at;
use proptest::prelude::*;
use punctual_causes::{
    Departure, Event, History, Interrupt, Job, Kind, Part, Scope, Step, Urgency, Wait, Waker,
};
use punctual_model::{Duration, Instant, Window};

const THREADS: u32 = 5;
const END: u64 = 2_000;

fn step() -> impl Strategy<Value = Step> {
    let thread = 0..THREADS;
    let wait = (any::<bool>(), prop::option::of(0..THREADS)).prop_map(|(uninterruptible, owner)| Wait {
        uninterruptible,
        owner,
        ..Wait::default()
    });
    let why = prop_oneof![
        Just(Departure::Preempted),
        Just(Departure::Throttled),
        wait.prop_map(Departure::Asleep),
        Just(Departure::Stopped),
        Just(Departure::Ended),
    ];
    let waker =
        prop_oneof![(0..THREADS).prop_map(Waker::Thread), Just(Waker::Interrupt), Just(Waker::Unknown)];
    let interrupt = prop_oneof![
        (0..3_u32).prop_map(|number| Interrupt::Device { number, name: "" }),
        (0..3_u32).prop_map(Interrupt::Soft)
    ];
    let urgency = |thread: u32| Urgency::real_time(thread * 10);
    prop_oneof![
        4 => thread.clone().prop_map(move |thread| Step::In { thread, urgency: urgency(thread) }),
        4 => (thread.clone(), why).prop_map(move |(thread, why)| {
            Step::Out { thread, urgency: urgency(thread), why }
        }),
        2 => (thread.clone(), waker).prop_map(|(thread, by)| Step::Woken { thread, by }),
        1 => (thread, 0..3_u32).prop_map(|(thread, to)| Step::Moved { thread, to }),
        1 => interrupt.clone().prop_map(Step::Began),
        1 => interrupt.prop_map(Step::Ended),
        1 => (0..500_u64).prop_map(|ns| Step::Stolen(Duration::from_us(ns))),
        1 => (0..END).prop_map(|since| Step::Lost { since: at(since), of: Scope::All }),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0..END, 0..2_u32, step()), 0..60).prop_map(|events| {
        let mut events: Vec<Event> =
            events.into_iter().map(|(us, cpu, step)| Event { at: at(us), cpu, step }).collect();
        events.sort_by_key(|event| event.at);
        events
    })
}

fn job() -> impl Strategy<Value = Job> {
    let cost = prop::option::of((0..END).prop_map(Duration::from_us));
    let release = prop::option::of(
        (0..END, 0..END)
            .prop_map(|(one, other)| Window::new(at(one.min(other)), at(one.max(other))).expect("in order")),
    );
    (0..THREADS, [0..END, 0..END, 0..END, 0..END], cost, release).prop_map(
        |(thread, mut times, cost, release)| {
            times.sort_unstable();
            let [begin, previous, start, end] = times.map(at);
            Job { thread, number: 3, begin, previous_end: Some(previous), start, end, cost, release }
        },
    )
}

fn check(parts: &[Part], from: Instant, until: Instant) {
    let mut reached = from;
    for part in parts {
        assert_eq!(part.from, reached, "no gap and no overlap: {parts:#?}");
        assert!(part.time > Duration::ZERO, "{part:?}");
        reached = part.from + part.time;
        if let Some(chain) = &part.chain {
            check(&chain.parts, part.from, reached);
        }
    }
    assert_eq!(reached, until, "the sum: {parts:#?}");
}

proptest! {
    #[test]
    fn parts_are_the_job(events in events(), job in job()) {
        let explanation = History::new(at(0), at(END), &events).explain(job);
        check(&explanation.parts, job.begin, job.end);
        let sum = explanation.summed().iter().fold(Duration::ZERO, |sum, part| sum + part.time);
        prop_assert_eq!(sum, job.time());
    }

    /// The time of a thread that is known without an event is known with it: losing events never makes
    /// another reason out of one, but for those that follow from the events that are left.
    #[test]
    fn lost_time_is_unknown(events in events(), job in job(), since in 0..END, until in 0..END) {
        let (since, until) = (at(since.min(until)), at(since.max(until)));
        let lost = Event { at: until, cpu: 0, step: Step::Lost { since, of: Scope::All } };
        let mut left: Vec<Event> =
            events.into_iter().filter(|event| event.at < since || event.at > until).collect();
        left.retain(|event| !matches!(event.step, Step::Lost { .. }));
        left.push(lost);
        left.sort_by_key(|event| event.at);
        let explanation = History::new(at(0), at(END), &left).explain(Job { release: None, ..job });
        for part in &explanation.parts {
            let inside = part.from >= since && part.from + part.time <= until;
            let is_told = matches!(part.kind, Kind::Unknown | Kind::Backlog);
            prop_assert!(!inside || is_told, "{part:?}");
        }
    }
}
