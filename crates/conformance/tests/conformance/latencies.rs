//! Records of measured latencies against contracts.

use punctual_conformance::{Contract, LatencyChecker, Term, Verdict, Violation};
use punctual_model::latency::{RealTimeThread, Split, ThreadId, Wakeup};
use punctual_model::{Duration, Instant, Policy};
use punctual_trace::latency::{Latency, Thread, ThreadWakeup};

const AGREED: &str = "[[processor]]\ncpu = 1\nlatency = \"80us\"\n";
const FIFO: u32 = 1;

/// Of a wake-up on a processor, how long it took, and how much of that a preferred thread ran; `None` where
/// that is not known.
fn wakeup(cpu: u32, tid: u32, us: u64, preferred: Option<u64>) -> Latency {
    let split = |us| Split { threads_ns: Duration::from_us(us), ..Split::default() };
    let wakeup = Wakeup {
        at_ns: Instant::from_ns(1_000_000_000),
        latency_ns: Duration::from_us(us),
        split: preferred.map(split),
        ran: Vec::new(),
    };
    Latency::Wakeup(Box::new(ThreadWakeup { cpu, tid, policy: FIFO, priority: 80, wakeup }))
}

fn sums(cpu: u32, tid: u32, wakeups: u64, max_us: u64) -> Latency {
    let id = ThreadId { name: format!("thread {tid}"), pid: 7, tid };
    Latency::Thread(Box::new(Thread {
        cpu,
        thread: RealTimeThread { id, policy: Policy::Fifo, priority: 80 },
        is_measuring: false,
        wakeups,
        unmeasured: 0,
        total: Duration::ZERO,
        max: Duration::from_us(max_us),
        bounded_max: Some(Duration::from_us(max_us)),
    }))
}

fn check(records: &[Latency], is_whole: bool) -> (Vec<Violation>, Verdict) {
    let contract = Contract::parse(AGREED).expect("a contract");
    let mut checker = LatencyChecker::new(&contract, is_whole).expect("a processor");
    let mut found = Vec::new();
    let mut verdict = Verdict::default();
    records.iter().for_each(|record| checker.record(record, &mut |it| found.push(it.clone())));
    checker.finish(None, &mut verdict, &mut |it| found.push(it.clone()));
    assert_eq!(verdict.violations(), found.len() as u64);
    (found, verdict)
}

#[test]
fn each_longer_wake_up_is_a_violation() {
    let records = [
        sums(1, 5, 1, 10),
        wakeup(1, 5, 80, Some(0)),
        wakeup(1, 5, 95, Some(0)),
        wakeup(1, 5, 81, Some(0)),
        // On another processor; behind a preferred thread.
        wakeup(0, 5, 500, Some(0)),
        wakeup(1, 5, 900, Some(700)),
        sums(1, 5, 4, 95),
    ];
    let (found, verdict) = check(&records, true);
    let texts: Vec<String> = found.iter().map(Violation::to_string).collect();
    assert_eq!(
        texts,
        [
            "CPU 1: latency 95 µs, agreed at most 80 µs (thread 5, ran at 1.000095 s)",
            "CPU 1: latency 81 µs, agreed at most 80 µs (thread 5, ran at 1.000081 s)",
        ]
    );
    assert!(found.iter().all(|it| it.subject.as_ref().is_some_and(|it| &*it.name == "thread 5")));
    let [tally] = &verdict.tallies[..] else { panic!("{verdict:?}") };
    assert_eq!((tally.jobs, tally.standing(Term::Latency).and_then(|it| it.worst)), (4, Some(95_000)));
}

/// The programs send a wake-up before anybody has read what its thread is called.
#[test]
fn a_violation_waits_for_the_name_of_its_thread() {
    let contract = Contract::parse(AGREED).expect("a contract");
    let mut checker = LatencyChecker::new(&contract, true).expect("a processor");
    let mut found = Vec::new();
    checker.record(&wakeup(1, 5, 95, Some(0)), &mut |it| found.push(it.clone()));
    assert!(found.is_empty() && checker.asks_for_names());
    checker.record(&sums(1, 6, 1, 3), &mut |it| found.push(it.clone()));
    assert!(found.is_empty());
    checker.record(&sums(1, 5, 1, 95), &mut |it| found.push(it.clone()));
    assert!(found.len() == 1 && !checker.asks_for_names());
    // If it never comes, the violation counts all the same.
    assert_eq!(check(&[wakeup(1, 5, 95, Some(0))], true).0.len(), 1);
}

#[test]
fn what_may_have_been_a_preferred_thread_is_a_note() {
    let (found, verdict) = check(&[sums(1, 5, 9, 20), wakeup(1, 5, 95, None)], true);
    assert!(found.is_empty() && verdict.notes[0].text.contains("may be beyond"), "{verdict:?}");
}

/// The record of a wake-up may be lost; sums are not.
#[test]
fn a_greatest_latency_without_its_wake_up_is_one_violation() {
    let records = [sums(1, 5, 9, 20), sums(1, 5, 10, 95), sums(1, 5, 11, 95)];
    let (found, verdict) = check(&records, true);
    assert_eq!(
        found.iter().map(|it| (it.value, it.subject.is_some())).collect::<Vec<_>>(),
        [(95_000, false)]
    );
    assert_eq!(verdict.tallies[0].jobs, 11);
    // In a piece, it may have been before the piece.
    let (found, verdict) = check(&records, false);
    assert_eq!((found.len(), verdict.tallies[0].jobs), (0, 2));
}

#[test]
fn a_processor_without_wake_ups_is_mentioned() {
    let (found, verdict) = check(&[sums(0, 5, 9, 200)], true);
    assert!(found.is_empty() && verdict.notes[0].text.contains("not observed"), "{verdict:?}");
}

#[test]
fn threads_that_have_ended_are_forgotten_with_their_sums_kept() {
    let contract = Contract::parse(AGREED).expect("a contract");
    let mut checker = LatencyChecker::new(&contract, true).expect("a processor");
    checker.record(&sums(1, 5, 9, 20), &mut |_| {});
    checker.forget(|tid| tid == 5);
    // Another thread of this number.
    checker.record(&sums(1, 5, 2, 30), &mut |_| {});
    let mut verdict = Verdict::default();
    checker.finish(None, &mut verdict, &mut |_| {});
    let tally = &verdict.tallies[0];
    assert_eq!((tally.jobs, tally.standing(Term::Latency).and_then(|it| it.worst)), (11, Some(30_000)));
}
