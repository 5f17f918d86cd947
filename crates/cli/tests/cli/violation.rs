//! A recording in which the kernel was later than its bound allows, which no kernel of ours ever was.

use punctual_model::latency::{
    Culprit, InterruptKind, InterruptSource, Monitor, Preemption, Ran, RanKind, RealTimeThread, Split,
    ThreadId, Wakeup,
};
use punctual_model::{Duration, Instant, Platform, Policy};
use punctual_trace::ctf::{Options, Recorder};
use punctual_trace::latency::{
    Interrupt, Latency, Maximum, Processor, Scope, Source, Thread, ThreadWakeup, Variable,
};
use punctual_trace::{About, Record, Totals};
use std::path::Path;
use std::process::{Command, Output};

fn us(us: u64) -> Duration {
    Duration::from_ns(us * 1_000)
}

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

fn id(name: &str, tid: u32) -> ThreadId {
    ThreadId { name: name.into(), pid: tid, tid }
}

/// L_IF is 12 + 3 + 20 µs, and any window holds at most one interrupt of 5 µs: the bound is 40 µs.
fn platform() -> Vec<Latency> {
    let source = InterruptSource { kind: InterruptKind::Vector, number: Some(236), name: "timer".into() };
    let interrupt = |entry: u64| {
        let (exit, execution) = (at(entry + 5), us(5));
        Latency::Interrupt(Interrupt { cpu: 0, source: 236, entry: at(entry), exit, execution })
    };
    let maximum = |variable, duration, ended: u64| {
        let culprit = Culprit { at_ns: at(ended), thread: id("php", 9), ..Culprit::default() };
        Latency::Maximum(Box::new(Maximum { cpu: 0, variable, duration, culprit: Some(culprit) }))
    };
    vec![
        Latency::Scope(Scope {
            preemption: Preemption::Rt,
            horizon: Duration::from_ms(10),
            no_variables: None,
        }),
        Latency::Processor(Processor::default()),
        Latency::Source(Box::new(Source { number: 236, source, row: None })),
        interrupt(10_000),
        interrupt(11_010),
        maximum(Variable::Poid, us(12), 11_030),
        maximum(Variable::Paie, us(3), 9_000),
        maximum(Variable::Psd, us(20), 9_000),
        maximum(Variable::St, us(10), 9_000),
    ]
}

/// The thread was ready at 11 ms.
fn latency(latency: Duration) -> [Latency; 2] {
    let ran = |kind, name: &str, number, from: u64, span| Ran {
        kind,
        name: name.into(),
        number,
        from_ns: at(from),
        duration_ns: us(span),
        ..Ran::default()
    };
    let split = Split {
        interrupts_ns: us(5),
        sections_ns: us(12),
        rest_ns: latency.saturating_sub(us(17)),
        ..Split::default()
    };
    let wakeup = Wakeup {
        at_ns: at(11_000),
        latency_ns: latency,
        split: Some(split),
        ran: vec![ran(RanKind::Interrupt, "timer", 236, 11_010, 5), ran(RanKind::Poid, "php", 9, 11_018, 12)],
    };
    let thread = RealTimeThread { id: id("control", 7), policy: Policy::Fifo, priority: 80 };
    [
        Latency::Wakeup(Box::new(ThreadWakeup { cpu: 0, tid: 7, policy: 1, priority: 80, wakeup })),
        Latency::Thread(Box::new(Thread {
            cpu: 0,
            thread,
            is_measuring: false,
            wakeups: 1,
            unmeasured: 0,
            total: latency,
            max: latency,
            bounded_max: Some(latency),
        })),
    ]
}

fn about() -> About {
    About {
        platform: Platform { kernel: "7.2.13-rt".into(), machine: "x86_64".into(), cpus: 1 },
        host: "testbed".into(),
        source: "punctual".into(),
        clock: "CLOCK_MONOTONIC".into(),
        clock_zero: None,
        from: at(8_000),
        switches: false,
        latency: true,
    }
}

fn record(folder: &Path, measured: Duration) {
    let mut recorder = Recorder::create(folder, &about(), &Options::default()).expect("a recording");
    for latency in platform().into_iter().chain(latency(measured)) {
        recorder.record(&Record::Latency(latency)).expect("recorded");
    }
    recorder.finish(at(20_000), Totals::default()).expect("a whole recording");
}

fn punctual(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_punctual")).args(arguments).output().expect("it runs")
}

/// A violated rule, or durations that cannot be: no bound follows, live, from a recording or from a file.
fn bound_with(record: Latency) -> Output {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("recording");
    let mut recorder = Recorder::create(&path, &about(), &Options::default()).expect("a recording");
    for latency in platform().into_iter().chain([record]) {
        recorder.record(&Record::Latency(latency)).expect("recorded");
    }
    recorder.finish(at(20_000), Totals::default()).expect("a whole recording");
    replayed(folder.path(), &path)
}

/// Replays the recording of a latency, and computes the bound from that.
fn bound(measured: Duration) -> Output {
    let folder = tempfile::tempdir().expect("a directory");
    let recording = folder.path().join("recording");
    record(&recording, measured);
    replayed(folder.path(), &recording)
}

fn replayed(folder: &Path, recording: &Path) -> Output {
    let model = folder.join("x.timing.json");
    let replayed = punctual(&["replay".as_ref(), "-q".as_ref(), "-o".as_ref(), &model, recording]);
    assert!(replayed.status.success(), "{replayed:?}");
    punctual(&["latency".as_ref(), &model])
}

#[test]
fn a_page_of_a_measurement_shows_the_measurement() {
    let folder = tempfile::tempdir().expect("a directory");
    let (recording, page) = (folder.path().join("recording"), folder.path().join("page.html"));
    record(&recording, us(40));
    let made = punctual(&["report".as_ref(), &recording, "-o".as_ref(), &page]);
    assert!(made.status.success(), "{made:?}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("control") && !page.contains("No task was seen"), "{page}");
    // Beside a timing model, it has nothing to draw.
    let model = folder.path().join("x.timing.json");
    assert!(punctual(&["replay".as_ref(), "-o".as_ref(), &model, &recording]).status.success());
    let refused = punctual(&["report".as_ref(), &model, &recording]);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && why.contains("is a measurement of scheduling latency"), "{why}");
}

#[test]
fn a_latency_above_its_bound_is_reported_with_what_happened_meanwhile() {
    let within = bound(us(40));
    assert_eq!(within.status.code(), Some(0), "{within:?}");
    let above = bound(Duration::from_ns(40_001));
    assert_eq!(above.status.code(), Some(8), "{above:?}");
    let (printed, failed) = (String::from_utf8_lossy(&above.stdout), String::from_utf8_lossy(&above.stderr));
    assert!(printed.contains("MEASURED ABOVE THE BOUND"), "{printed}");
    for happened in ["control (7) on CPU 0", "40.001 µs", "timer 5 µs", "D_POID of php (9) 12 µs", "rest 23"]
    {
        assert!(failed.contains(happened), "{happened} is missing: {failed}");
    }
}

#[test]
fn a_bound_that_is_not_to_be_relied_on_has_an_exit_code() {
    let monitor = |violations| {
        let (name, rules) = ("scpd".into(), vec!["R6".into()]);
        Latency::Monitor(Box::new(Monitor { name, rules, watched_ns: us(12_000), violations }))
    };
    let kept = bound_with(monitor(0));
    assert_eq!(kept.status.code(), Some(0), "{kept:?}");
    let negative = Latency::Processor(Processor { negative_durations: 2, ..Processor::default() });
    for (record, reason) in
        [(monitor(3), "found 3 VIOLATIONS OF THE RULES"), (negative, "2 durations came out negative")]
    {
        let broken = bound_with(record);
        assert_eq!(broken.status.code(), Some(8), "{broken:?}");
        let printed = String::from_utf8_lossy(&broken.stdout);
        let headline = printed.lines().find(|line| line.starts_with("NOT TO BE RELIED ON: "));
        assert!(headline.is_some(), "{printed}");
        assert!(String::from_utf8_lossy(&broken.stderr).contains(reason), "{broken:?}");
    }
}
