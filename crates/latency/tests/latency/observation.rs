//! From records of a measurement to the section `latency`.

use punctual_latency::{Observation, Section, Wait, WaitPart};
use punctual_model::latency::{
    Culprit, InterruptKind, InterruptSource, NoVariables, Preemption, RanKind, RealTimeThread,
    SchedulingLatency, ThreadId, Timers, Wakeup,
};
use punctual_model::{Duration, Instant, Policy, Section as _};
use punctual_trace::latency::{
    Interrupt, Latency, Maximum, Processor, Scope, Source, Thread, ThreadWakeup, Variable,
};

const HORIZON: Duration = Duration::from_ms(10);

fn us(us: u64) -> Duration {
    Duration::from_ns(us * 1_000)
}

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

fn interrupt(entry: u64, execution: u64) -> Latency {
    let (exit, execution) = (at(entry + execution), us(execution));
    Latency::Interrupt(Interrupt { cpu: 1, source: 236, entry: at(entry), exit, execution })
}

fn begin(has_variables: bool) -> Vec<Latency> {
    let source = InterruptSource { kind: InterruptKind::Vector, number: Some(236), name: "LOC".into() };
    let no_variables = (!has_variables).then_some(NoVariables::Privileges);
    vec![
        Latency::Scope(Scope { preemption: Preemption::Rt, horizon: HORIZON, no_variables }),
        Latency::Processor(Processor { cpu: 1, ..Processor::default() }),
        Latency::Source(Box::new(Source { number: 236, source, row: Some("LOC".into()) })),
    ]
}

fn wakeup_and_thread(ready: u64, latency: u64) -> [Latency; 2] {
    let wakeup = Wakeup { at_ns: at(ready), latency_ns: us(latency), ..Wakeup::default() };
    let id = ThreadId { name: "control".into(), pid: 6, tid: 7 };
    let thread = Thread {
        cpu: 1,
        thread: RealTimeThread { id, policy: Policy::Fifo, priority: 80 },
        is_measuring: false,
        wakeups: 3,
        unmeasured: 0,
        total: us(latency * 2),
        max: us(latency),
        bounded_max: Some(us(latency)),
    };
    [
        Latency::Wakeup(Box::new(ThreadWakeup { cpu: 1, tid: 7, policy: 1, priority: 80, wakeup })),
        Latency::Thread(Box::new(thread)),
    ]
}

fn observe(records: &[Latency]) -> Observation {
    let mut observation = Observation::default();
    records.iter().for_each(|record| observation.record(record));
    observation
}

fn section(observation: &Observation) -> SchedulingLatency {
    let section = observation.section(at(0), at(1_000_000), "7.2.13-rt").expect("a scope");
    section.validate("latency").expect("to be valid");
    section
}

/// Sections that were recorded for their own sake say nothing of a latency: only what was measured with it.
#[test]
fn what_ran_during_the_greatest_latency_is_found() {
    let mut records = begin(true);
    // Before it, over its beginning, inside, and after its end.
    records.extend([interrupt(80, 10), interrupt(95, 10), interrupt(120, 4), interrupt(140, 5)]);
    let thread = ThreadId { name: "php".into(), pid: 8, tid: 9 };
    let culprit = Culprit { at_ns: at(119), thread, ..Culprit::default() };
    let (cpu, variable, duration) = (1, Variable::Poid, us(12));
    records.push(Latency::Maximum(Box::new(Maximum { cpu, variable, duration, culprit: Some(culprit) })));
    let mut observation = observe(&records);
    let kind = RanKind::Poid;
    let poid = Section { kind, name: "php".into(), tid: 9, opened: None, before: us(2) };
    let parts = vec![WaitPart { section: Some(poid), from: us(0), spent: us(21) }];
    let wait = Wait { ready: at(100), latency: us(30), overhead: us(0), parts: Some(parts) };
    let wakeup = observation.explain(1, &wait);
    let [Latency::Wakeup(mut record), thread] = wakeup_and_thread(100, 30) else { panic!("other records") };
    for (wakeup, sections) in [(wakeup, true), (record.wakeup.clone(), false)] {
        record.wakeup = wakeup;
        observation.record(&Latency::Wakeup(record.clone()));
        observation.record(&thread);
        let section = section(&observation);
        let worst = &section.processors[0].measured[0].worst;
        let ran = worst[0].ran.iter().map(|ran| (ran.kind, ran.from_ns, ran.duration_ns));
        let poid = [(RanKind::Poid, at(105), us(21))];
        let mut expected = vec![(RanKind::Interrupt, at(100), us(5)), (RanKind::Interrupt, at(120), us(4))];
        expected.splice(1..1, poid.into_iter().filter(|_| sections));
        assert_eq!((worst.len(), ran.collect::<Vec<_>>()), (1, expected));
        assert_eq!(worst[0].split.map(|split| split.total()), sections.then_some(us(30)));
        assert_eq!(section.processors[0].variables.as_ref().map(|it| it.poid.max_ns), Some(us(12)));
        assert_eq!(section.processors[0].interrupts[0].curves.count, 4);
        observation = observe(&records);
    }
}

/// Who reads rarely, reads many interrupts at once: none of them may be forgotten before the latencies among
/// them have been explained.
#[test]
fn interrupts_of_a_long_pause_are_remembered() {
    let mut records = begin(true);
    records.extend((0..26_214).map(|number| interrupt(100 + 10 * number, 4)));
    let mut observation = observe(&records);
    let wait = Wait { ready: at(100), latency: us(10), overhead: us(0), parts: None };
    let first = |observation: &Observation| observation.explain(1, &wait).ran.len();
    assert_eq!(first(&observation), 1);
    observation.forget();
    assert_eq!(first(&observation), 0);
    let wait = Wait { ready: at(100 + 10 * 26_000), ..wait.clone() };
    assert_eq!(observation.explain(1, &wait).ran.len(), 1);
}

#[test]
fn without_the_record_of_the_greatest_no_other_takes_its_place() {
    let mut records = begin(false);
    records.extend(wakeup_and_thread(100, 30));
    let [_, mut greater] = wakeup_and_thread(200, 50);
    let whole = section(&observe(&records));
    assert_eq!(whole.processors[0].measured[0].worst.len(), 1);
    records.push(std::mem::replace(&mut greater, Latency::Offline { cpu: 1 }));
    let partial = section(&observe(&records));
    assert_eq!(partial.processors[0].measured[0].max_ns, us(50));
    assert_eq!(partial.processors[0].measured[0].worst.len(), 0);
    assert!(partial.processors[0].variables.is_none());
}

#[test]
fn what_was_missed_makes_at_least() {
    let mut records = begin(true);
    records.extend([interrupt(80, 10), interrupt(95, 10)]);
    let is_at_least = |observation: &Observation| {
        let section = section(observation);
        let processor = &section.processors[0];
        (processor.variables.as_ref().is_some_and(|it| it.poid.at_least), processor.interrupts[0].at_least)
    };
    let after = |record: Latency| is_at_least(&observe(&[&records[..], &[record]].concat()));
    let counted = |count| Latency::Counted { cpu: 1, row: "LOC".into(), count };
    assert_eq!(after(counted(2)), (false, false));
    assert_eq!(after(counted(3)), (false, true), "the kernel counted one more");
    assert_eq!(after(Latency::Missed { cpu: 1, source: 236 }), (false, true));
    assert_eq!(after(Latency::Lost { cpu: 1, count: 1 }), (false, true));
    assert_eq!(after(Latency::Offline { cpu: 1 }), (true, true));
    let mut damaged = observe(&records);
    damaged.mark_damaged();
    assert_eq!(is_at_least(&damaged), (true, true));
    let losses = section(&damaged).losses();
    assert_eq!((losses.len(), losses[0].counter, losses[0].count), (1, "damaged_recordings", 1));
}

#[test]
fn a_missed_interrupt_of_the_timer_makes_the_latest_timer_at_least() {
    let name = "Local timer interrupts".to_owned();
    let source = InterruptSource { kind: InterruptKind::Vector, number: Some(236), name };
    let mut records = begin(false);
    let timers = Timers { expired: 2, total_ns: us(9), ..Timers::default() };
    records.extend([
        Latency::Source(Box::new(Source { number: 236, source, row: Some("LOC".into()) })),
        interrupt(80, 10),
        interrupt(95, 10),
        Latency::Timers { cpu: 1, timers: Box::new(timers) },
    ]);
    let is_at_least = |count| {
        let counted = Latency::Counted { cpu: 1, row: "LOC".into(), count };
        let section = section(&observe(&[&records[..], &[counted]].concat()));
        section.processors[0].timers.as_ref().map(|timers| timers.lateness.at_least)
    };
    assert_eq!((is_at_least(2), is_at_least(3)), (Some(false), Some(true)));
}

#[test]
fn no_window_spans_a_gap() {
    let mut records = begin(true);
    records.extend([interrupt(80, 10), Latency::Lost { cpu: 1, count: 1 }, interrupt(95, 10)]);
    let section = section(&observe(&records));
    let curves = &section.processors[0].interrupts[0].curves;
    assert_eq!((curves.count, curves.delta_min_ns.len(), curves.min_separation_ns), (2, 0, None));
    assert_eq!(section.processors[0].lost_records, 1);
}

#[test]
fn without_a_scope_there_is_no_section() {
    assert!(observe(&begin(true)[1..]).section(at(0), at(1), "").is_none());
}

#[test]
fn what_a_measuring_thread_measures_itself_is_with_its_latencies() {
    let mut records = begin(true);
    records.extend([988, 11].map(|max| Latency::FromDue { cpu: 1, max: us(max) }));
    let alone = section(&observe(&records));
    let measured = &alone.processors[0].measured;
    assert_eq!((measured.len(), measured[0].wakeups), (1, 0), "no wake-up was seen: {measured:?}");
    assert_eq!((&measured[0].thread, measured[0].from_due_max_ns), (&None, Some(us(988))));
    let [_, mut thread] = wakeup_and_thread(100, 11);
    if let Latency::Thread(thread) = &mut thread {
        thread.is_measuring = true;
    }
    records.push(thread);
    let both = section(&observe(&records));
    let measured = &both.processors[0].measured;
    assert_eq!((measured.len(), measured[0].max_ns), (1, us(11)));
    assert_eq!(measured[0].from_due_max_ns, Some(us(988)));
    // Of several runs the greatest; one of an older version has none.
    let older = section(&observe(&begin(true)));
    let merged = older.merge(both.clone()).and_then(|sum| sum.merge(alone)).expect("of one kernel");
    assert_eq!(merged.processors[0].measured, both.processors[0].measured);
}
