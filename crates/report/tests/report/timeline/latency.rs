//! Timelines of measurements of scheduling latency.

use super::decode::Decoded;
use super::machine::about;
use punctual_model::latency::{Culprit, InterruptKind, InterruptSource, ThreadId, Wakeup};
use punctual_model::{Duration, Instant};
use punctual_report::timeline::latency::{Counts, LatencyTimeline};
use punctual_trace::latency::{
    Interrupt, Latency, Maximum, Source, ThreadWakeup, Variable, Witnessed, WitnessedKind,
};

fn at(ns: u64) -> Instant {
    Instant::from_ns(1_000_000_000 + ns)
}

fn witnessed(ns: u64, kind: WitnessedKind) -> Latency {
    let place = Some("work+0x10".to_owned());
    Latency::Witnessed(Box::new(Witnessed { cpu: 1, at: at(ns), tid: 7, kind, place }))
}

fn records() -> Vec<Latency> {
    let source = InterruptSource { kind: InterruptKind::Vector, number: Some(236), name: "LOC".into() };
    let thread = ThreadId { name: "php".into(), pid: 8, tid: 9 };
    let culprit = Culprit { at_ns: at(900), thread, stack: vec!["work+0x10".into()], ..Culprit::default() };
    let wakeup = Wakeup { at_ns: at(100), latency_ns: Duration::from_ns(70), ..Wakeup::default() };
    vec![
        Latency::Source(Box::new(Source { number: 236, source, row: None })),
        Latency::Interrupt(Interrupt {
            cpu: 1,
            source: 236,
            entry: at(100),
            exit: at(130),
            execution: Duration::from_ns(30),
        }),
        Latency::Maximum(Box::new(Maximum {
            cpu: 1,
            variable: Variable::Poid,
            duration: Duration::from_ns(300),
            culprit: Some(culprit),
        })),
        Latency::Wakeup(Box::new(ThreadWakeup { cpu: 1, tid: 7, policy: 1, priority: 80, wakeup })),
        witnessed(200, WitnessedKind::PreemptOff),
        witnessed(210, WitnessedKind::InterruptEntry),
        witnessed(215, WitnessedKind::InterruptSource(236)),
        witnessed(220, WitnessedKind::Wakeup(12)),
        witnessed(230, WitnessedKind::InterruptExit),
        witnessed(250, WitnessedKind::PreemptOn),
        // Its end was not seen: it lasts until the last event.
        witnessed(260, WitnessedKind::IrqsOff),
        witnessed(270, WitnessedKind::SchedulerEntry),
        witnessed(290, WitnessedKind::SchedulerExit),
    ]
}

#[test]
fn a_measurement_is_shown_by_processor() {
    let mut timeline = LatencyTimeline::new(Vec::new(), &about()).unwrap();
    records().iter().for_each(|record| timeline.record(record).unwrap());
    let (bytes, counts) = timeline.finish().unwrap();
    assert_eq!(counts, Counts { interrupts: 1, maxima: 1, latencies: 1, witnessed: 9 });
    let decoded = Decoded::new(&bytes);
    let mut slices: Vec<(String, String, u64, u64)> = decoded
        .slices
        .iter()
        .map(|slice| {
            let since = |ns: u64| ns - at(0).ns();
            (decoded.tracks[&slice.track].clone(), slice.name.clone(), since(slice.begin), since(slice.end))
        })
        .collect();
    slices.sort();
    let expected = [
        ("flight recorder: interrupts and exceptions", "vector 236 LOC", 210, 230),
        ("flight recorder: interrupts disabled", "interrupts disabled", 260, 290),
        ("flight recorder: preemption disabled", "preemption disabled", 200, 250),
        ("flight recorder: scheduler", "scheduler", 270, 290),
        ("greatest latencies of thread 7", "latency 70 ns", 100, 170),
        ("interrupts", "vector 236 LOC", 100, 130),
        ("longest D_POID", "D_POID 300 ns by php (9)", 600, 900),
    ];
    let expected = expected.map(|(track, name, begin, end)| (track.into(), name.into(), begin, end));
    assert_eq!(slices, expected);
    assert_eq!(decoded.instants.iter().map(|it| &it.name[..]).collect::<Vec<_>>(), ["wakes thread 12"]);
    assert!(decoded.tracks.values().any(|name| name == "CPU 1"));
}
