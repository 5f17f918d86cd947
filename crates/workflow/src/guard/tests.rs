//! A storm of violations, by records that were never observed: all are counted, few are told one by one, none
//! is fatal, and nobody waits for whoever takes alarms.

use super::*;
use crate::Silent;
use punctual_conformance::Term;
use punctual_model::{Call, Instant as At, Object, Policy, Separator, Window};
use punctual_trace::{Activation, Begin, Resumed, TaskRecord};
use std::path::Path;
use std::sync::mpsc::channel;

const JOBS: u64 = 100_000;
const CONTRACT: &str = "[[task]]\nname = \"storm\"\nseparator = \"clock_nanosleep*\"\nwcet = \"1ns\"\n\
    response = \"1ns\"\nperiod = \"10us\"\njitter = \"1s\"\n";

/// A thread with a job every 10 µs: each breaks both terms.
fn records(each: &mut dyn FnMut(&Record)) {
    each(&Record::Task(Box::new(TaskRecord {
        tid: 7,
        pid: 7,
        sequence: 0,
        at: At::from_ns(1),
        begin: Begin::Seen,
        name: "storm".into(),
        command: "storm".into(),
        policy: Policy::Fifo,
        priority: 50,
        nice: None,
        reservation: None,
        affinity: "0".into(),
    })));
    let clock = Object::Clock { id: 1, absolute: true };
    for job in 1..=JOBS + 1 {
        let release = Window::at(At::from_ns(job * 10_000));
        each(&Record::Activation(Activation {
            tid: 7,
            sequence: job as u32,
            separator: Separator { call: Call::ClockNanosleep, object: clock },
            slept: true,
            stop: At::from_ns((job - 1) * 10_000 + 3_000),
            cpu: punctual_model::Duration::from_ns(job * 2_000),
            arrival: None,
            resumed: Some(Resumed::new(Some(release), At::from_ns(job * 10_000 + 1_000))),
        }));
    }
}

fn guard<'a>(alarms: Alarms, folder: &Path, reload: &'a AtomicBool) -> Guard<'a> {
    let contract = Contract::parse(CONTRACT).expect("a contract");
    let before = Duration::from_secs(1);
    Guard {
        checker: Checker::new(&contract),
        sampler: Sampler::default(),
        alarms,
        flight: Some(FlightRecorder::new(folder.join("kept"), before).expect("a folder")),
        causes: Some(LateJobs::start(At::default(), false, &contract)),
        gauges: Some(Gauges::serve(([127, 0, 0, 1], 0).into(), &contract).expect("a port")),
        accounts: Accounts::start(),
        turned: Instant::now(),
        presence: Presence::since(Instant::now()),
        path: folder.join("run.toml"),
        bounds: Bounds::default(),
        latencies: None,
        chains: None,
        unwatched: Unwatched::default(),
        reload,
        earlier: 0,
        violations: 0,
        monitor: &Silent,
    }
}

#[test]
fn a_storm_is_counted_and_not_fatal() {
    let folder = tempfile::tempdir().expect("a directory");
    // Whoever shows alarms does not come back until the storm is over.
    let (release, held) = channel::<()>();
    let (show, shown) = channel();
    let output: Output = Box::new(move |alarm| {
        let _ = held.recv();
        show.send(alarm.clone()).expect("a test that listens");
    });
    let alarms = Alarms::start(output, None, false).expect("a thread");
    let reload = AtomicBool::new(false);
    let mut guard = guard(alarms, folder.path(), &reload);
    let mut failures = 0;
    let mut records_taken = 0_u64;
    records(&mut |record| {
        failures += u32::from(guard.record(record).is_err());
        records_taken += 1;
        // A second of the storm is over, by the clock of the sampler.
        if records_taken % 10_000 == 0 {
            let Guard { sampler, alarms, .. } = &mut guard;
            sampler.turn().into_iter().for_each(|more| alarms.tell(more));
        }
    });
    drop(release);
    let Guard { checker, mut sampler, mut alarms, violations, flight, causes, gauges, .. } = guard;
    let causes = causes.map(|it| it.finish(&mut sampler, &mut alarms, gauges.as_ref())).expect("causes");
    let verdict = checker.finish(0, &mut |_| {});
    sampler.turn().into_iter().for_each(|more| alarms.tell(more));
    let mut counters = alarms.finish();
    flight.into_iter().for_each(|it| it.finish(&mut counters, &Silent));
    assert_eq!((failures, verdict.gaps), (0, 0));
    let tally = &verdict.tallies[0];
    let of = |term: Term| tally.standing(term).map_or(0, |it| it.violations);
    assert_eq!((of(Term::Wcet), of(Term::Response)), (JOBS, JOBS));
    assert_eq!((violations, verdict.violations()), (2 * JOBS, 2 * JOBS));
    // Ten of each kind in a second one by one, and the rest in sum: each violation once.
    let (mut single, mut sum, mut explained) = (0, 0, 0);
    for alarm in shown.try_iter() {
        match alarm {
            Alarm::Violation(_) => single += 1,
            Alarm::Late(late) => explained += late.late,
            Alarm::More { number, .. } => sum += number,
        }
    }
    assert_eq!(counters.dropped, 0);
    assert!((200..=220).contains(&single), "{single} were told one by one");
    assert_eq!(single + sum, 2 * JOBS);
    // So are causes; where there are too many at once, the rest is counted.
    let late = &causes.tasks[0];
    let others = late.others.map_or(0, |others| others.jobs);
    assert_eq!((explained, late.jobs, late.late), (10, JOBS, JOBS));
    assert_eq!(others + late.causes.iter().map(|cause| cause.jobs).sum::<u64>(), JOBS);
    // The disk has one recording of it, and what came within ten seconds is counted.
    assert_eq!((counters.recordings, counters.failed_recordings), (1, 0));
}
