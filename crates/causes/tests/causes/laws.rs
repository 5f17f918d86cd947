//! What holds for any events: parts are disjoint, leave no gap, and have an exact sum.

use crate::script::at;
use proptest::prelude::*;
use punctual_causes::{
    Departure, Event, Explanation, History, Interrupt, Job, Kind, Loss, Part, Step, Urgency, Wait, Waker,
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

/// Microseconds since the choice before, a processor, and what is chosen there.
fn choices() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
    prop::collection::vec((1..80_u64, 0..2_u32, any::<u32>()), 0..60)
}

/// What threads of different priorities may do on two processors, from random choices.
fn possible(choices: &[(u64, u32, u32)]) -> Vec<Event> {
    let urgency = |thread: u32| if thread == 0 { Urgency::IDLE } else { Urgency::real_time(thread * 10) };
    let (mut running, mut ready, mut asleep) = ([0, 0], Vec::new(), (1..THREADS).collect::<Vec<u32>>());
    let (mut events, mut now) = (Vec::new(), 0);
    for (time, cpu, choice) in choices {
        now += time;
        let mut put = |step| events.push(Event { at: at(now), cpu: *cpu, step });
        let left = running[*cpu as usize];
        if choice % 2 == 0 && !asleep.is_empty() {
            let thread = asleep.remove(*choice as usize / 2 % asleep.len());
            let by = if left == 0 { Waker::Interrupt } else { Waker::Thread(left) };
            put(Step::Woken { thread, by });
            ready.push(thread);
            continue;
        }
        let sleeps = choice % 3 == 0 && left != 0;
        let why = if sleeps { Departure::Asleep(Wait::default()) } else { Departure::Preempted };
        let thread = if ready.is_empty() { 0 } else { ready.remove(*choice as usize / 3 % ready.len()) };
        put(Step::Out { thread: left, urgency: urgency(left), why });
        put(Step::In { thread, urgency: urgency(thread) });
        running[*cpu as usize] = thread;
        match left {
            0 => {}
            _ if sleeps => asleep.push(left),
            _ => ready.push(left),
        }
    }
    events
}

/// All threads fall asleep, and then both processors are idle.
fn known_at_first() -> Vec<Event> {
    let urgency = |thread: u32| Urgency::real_time(thread * 10);
    let asleep = Departure::Asleep(Wait::default());
    let threads = (1..THREADS).flat_map(|thread| {
        let came = Step::In { thread, urgency: urgency(thread) };
        [(0, came), (0, Step::Out { thread, urgency: urgency(thread), why: asleep })]
    });
    let idle = |cpu| (cpu, Step::In { thread: 0, urgency: Urgency::IDLE });
    let steps = threads.chain([idle(0), idle(1)]);
    steps.map(|(cpu, step)| Event { at: at(0), cpu, step }).collect()
}

fn loss() -> impl Strategy<Value = Loss> {
    (0..END, 0..END / 4).prop_map(|(since, time)| Loss { since: at(since), until: at(since + time) })
}

fn losses() -> impl Strategy<Value = Vec<Loss>> {
    prop::collection::vec(loss(), 0..4)
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
            Job {
                thread,
                phase: 0,
                number: 3,
                begin,
                previous_end: Some(previous),
                start,
                end,
                cost,
                release,
            }
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
    fn parts_are_the_job(events in events(), losses in losses(), job in job()) {
        let explanation = History::new(at(0), at(END), &events, losses).explain(job);
        check(&explanation.parts, job.begin, job.end);
        let sum = explanation.summed().iter().fold(Duration::ZERO, |sum, part| sum + part.time);
        prop_assert_eq!(sum, job.time());
    }

    /// Nothing is said of a time in which events were lost.
    #[test]
    fn lost_time_is_unknown(events in events(), losses in losses(), job in job()) {
        let history = History::new(at(0), at(END), &events, losses.clone());
        for part in history.explain(Job { release: None, ..job }).parts {
            let is_lost = |loss: &Loss| {
                loss.since < loss.until && part.from < loss.until && loss.since < part.from + part.time
            };
            let is_told = matches!(part.kind, Kind::Unknown | Kind::Backlog);
            prop_assert!(is_told || !losses.iter().any(is_lost), "{part:?}");
        }
    }

    /// What is said although events were lost is what is said where they were not.
    #[test]
    fn a_loss_changes_no_reason(choices in choices(), losses in losses(), job in job()) {
        // It may have slept until its end.
        let job = Job { start: job.end, release: None, cost: None, ..job };
        let events = possible(&choices);
        let holds = |loss: &Loss, event: &Event| loss.since < event.at && event.at < loss.until;
        let is_lost = |event: &&Event| losses.iter().any(|loss| holds(loss, event));
        let left: Vec<Event> = events.iter().filter(|event| !is_lost(event)).copied().collect();
        let truth = History::new(at(0), at(END), &events, Vec::new()).explain(job);
        let told = History::new(at(0), at(END), &left, losses.clone()).explain(job);
        agree(&told, &truth);
    }

    /// The same if a switch is missing, and nobody knows that until the next one on that processor.
    #[test]
    fn a_missing_switch_changes_no_reason(
        choices in choices(), job in job(), missing in any::<prop::sample::Index>()
    ) {
        let job = Job { start: job.end, release: None, cost: None, ..job };
        let events = [known_at_first(), possible(&choices)].concat();
        let is_half = |event: &&Event| matches!(event.step, Step::In { .. } | Step::Out { .. });
        let switches: Vec<&Event> = events.iter().filter(is_half).filter(|it| it.at > at(0)).collect();
        let is_followed = |it: &&Event| switches.iter().any(|next| next.cpu == it.cpu && next.at > it.at);
        let followed: Vec<Event> = switches.iter().copied().filter(is_followed).copied().collect();
        if followed.is_empty() {
            return Ok(());
        }
        let missing = followed[missing.index(followed.len())];
        let is_left = |it: &&Event| !is_half(it) || (it.at, it.cpu) != (missing.at, missing.cpu);
        let left: Vec<Event> = events.iter().filter(is_left).copied().collect();
        let truth = History::new(at(0), at(END), &events, Vec::new()).explain(job);
        let told = History::new(at(0), at(END), &left, Vec::new()).explain(job);
        // A thread whose way to another processor was not seen still seems to want the one that it left.
        let (told, truth) = (without_favour(told), without_favour(truth));
        agree(&told, &truth);
    }
}

/// The same without a difference between a processor that was given to others and one that was not yet given.
fn without_favour(explanation: Explanation) -> Explanation {
    let parts = explanation.parts.into_iter().map(|part| match part.kind {
        Kind::Throttled => Part { kind: Kind::Dispatch, ..part },
        _ => part,
    });
    Explanation { parts: parts.collect(), ..explanation }
}

/// What is said of the same job with fewer events is what is said with all.
fn agree(told: &Explanation, truth: &Explanation) {
    for part in told.parts.iter().filter(|part| part.kind != Kind::Unknown) {
        let until = part.from + part.time;
        let same = |it: &&Part| {
            let culprit = part.culprit.is_none() || part.culprit == it.culprit;
            it.kind == part.kind && culprit && it.from < until && part.from < it.from + it.time
        };
        let agreed = truth.parts.iter().filter(same).fold(Duration::ZERO, |sum, it| {
            sum + (it.from + it.time).min(until).since(it.from.max(part.from))
        });
        assert_eq!(agreed, part.time, "{:?}: {:#?}", part, truth);
    }
}
