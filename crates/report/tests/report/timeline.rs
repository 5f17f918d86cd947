//! Timelines say what happened: decoded with the messages that wrote them, and asked with Perfetto's own
//! trace processor.

mod dataflow;
mod decode;
mod latency;
mod machine;
mod perfetto;
#[allow(dead_code)]
#[path = "../../src/timeline/proto.rs"]
mod proto;

use decode::Decoded;
use machine::{FIRST, Run, about, history, records};
use proptest::prelude::*;
use punctual_model::{
    Arrival, Call, Duration, EndedBy, Instant, Job, Object, Release, Separator, Stream, Task, Threads,
    TimingModel, Window,
};
use punctual_report::timeline::{Counts, Timeline};
use punctual_trace::{Record, Step, Switch};
use std::io;

/// A model of the machine's threads, with this as their primary separator.
fn model(threads: u32, primary: Separator) -> TimingModel {
    let stream = |separator| Stream {
        separator,
        jobs: 0,
        releases: 0,
        uncertain_releases: 0,
        back_to_back: 0,
        arrival: Arrival::default(),
        execution: None,
        suspension: None,
        response: None,
        percentiles: None,
        late: None,
    };
    let task = |tid| {
        let seen = machine::seen(tid);
        Task {
            recording: None,
            name: seen.name,
            pid: seen.pid,
            tid,
            phase: 0,
            command: seen.command,
            policy: seen.policy,
            priority: seen.priority,
            nice: None,
            reservation: None,
            affinity: seen.affinity,
            from_ns: seen.at,
            until_ns: Instant::from_ns(1 << 62),
            ended_by: EndedBy::ObservationEnd,
            primary: Some(1),
            primary_reason: None,
            separators_capped: false,
            merged_transitions: 0,
            open_ns: None,
            busy_ns: None,
            streams: vec![stream(Separator::SUSPENSION), stream(primary)],
        }
    };
    let threads = Threads {
        from_ns: Instant::from_ns(500_000),
        until_ns: Instant::from_ns(1 << 62),
        tasks: (FIRST..FIRST + threads).map(task).collect(),
        ..Threads::default()
    };
    TimingModel { threads: Some(threads), ..TimingModel::new("CLOCK_MONOTONIC") }
}

const SLEEP: Separator =
    Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } };
const WAIT: Separator = Separator { call: Call::FutexWait, object: Object::address(0x1000) };

fn timeline(threads: u32, records: &[Record], jobs: &[(u32, Separator, Job)]) -> (Vec<u8>, Counts) {
    let mut timeline = Timeline::new(Vec::new(), &about(), &model(threads, SLEEP)).unwrap();
    for record in records {
        timeline.record(record).unwrap();
    }
    for (number, (tid, separator, job)) in jobs.iter().enumerate() {
        timeline.job(*tid, 0, separator, number as u64, job).unwrap();
    }
    timeline.finish().unwrap()
}

/// Jobs of a stream: they end one after the other, and are released whenever.
fn jobs(most: usize) -> impl Strategy<Value = Vec<Job>> {
    let one = (
        0..2_000u64,
        0..1_000u64,
        prop_oneof![Just(0), 0..300u64],
        proptest::option::of(0..3_000u64),
        0..500u64,
    );
    prop::collection::vec(one, 0..most).prop_map(|parts| {
        let mut end = 2_000_000;
        let job = |(response, after, width, arrival, cost): (u64, u64, u64, Option<u64>, u64)| {
            end += after;
            let at = Instant::from_ns;
            let window = Window::new(at(end - response), at(end - response + width)).unwrap();
            let release = Release { arrival: arrival.map(|early| at(end - early)), window };
            Job {
                release,
                start: at(end),
                end: at(end),
                cost: Duration::from_ns(cost),
                suspended: Duration::from_ns(cost / 3),
            }
        };
        parts.into_iter().map(job).collect()
    })
}

proptest! {
    #[test]
    fn processors_show_who_ran_when(acts in machine::acts(300)) {
        let history = history(5, &acts);
        let (bytes, counts) = timeline(5, &records(5, &history.steps), &[]);
        let decoded = Decoded::new(&bytes);
        prop_assert_eq!(decoded.runs(), history.runs);
        prop_assert_eq!(&decoded.wakes, &history.wakes);
        prop_assert_eq!(counts.steps, history.steps.len() as u64);
        prop_assert_eq!(counts.mended + counts.left_out, 0);
        let arrows = history.wakes.iter().filter(|(_, by, _)| *by >= FIRST).count();
        prop_assert_eq!(counts.arrows, arrows as u64);
        prop_assert_eq!(decoded.flows.len(), arrows);
        prop_assert!(decoded.flows.values().all(|ends| matches!(ends, (Some(from), Some(to)) if from != to)));
    }

    #[test]
    fn missing_steps_break_nothing(acts in machine::acts(300),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let mut steps = history(5, &acts).steps;
        for index in &lost {
            if !steps.is_empty() {
                steps.remove(index.index(steps.len()));
            }
        }
        let (bytes, _) = timeline(5, &records(5, &steps), &[]);
        let runs = Decoded::new(&bytes).runs();
        let mut by_thread = runs.clone();
        by_thread.sort_by_key(|run| (run.tid, run.from));
        for pair in by_thread.windows(2) {
            let apart = pair[0].tid != pair[1].tid
                || pair[0].until.is_some_and(|until| until <= pair[1].from);
            prop_assert!(apart, "a thread on two processors: {pair:?}");
        }
        // What was seen is shown at its time.
        for step in &steps {
            let at = step.at.ns();
            let shown = match step.step {
                Step::In => runs.iter().any(|run| run.tid == step.tid && run.cpu == step.cpu && run.from <= at
                    && run.until.is_none_or(|until| until >= at)),
                Step::Preempted | Step::Throttled | Step::Asleep { .. } | Step::Stopped => {
                    runs.iter().any(|run| run.tid == step.tid && run.cpu == step.cpu && run.until == Some(at))
                }
                _ => true,
            };
            prop_assert!(shown, "{step:?} in {runs:?}");
        }
    }

    #[test]
    fn every_job_has_its_slice(jobs in jobs(60)) {
        let given: Vec<_> = jobs.iter().map(|job| (FIRST, SLEEP, *job)).collect();
        let (bytes, counts) = timeline(1, &records(1, &[]), &given);
        prop_assert_eq!(counts.jobs, jobs.len() as u64);
        let decoded = Decoded::new(&bytes);
        for (number, job) in jobs.iter().enumerate() {
            let name = format!("job {number}");
            let slice = decoded.slices.iter().find(|slice| slice.name == name
                && decoded.tracks[&slice.track] == "jobs");
            let slice = slice.ok_or_else(|| TestCaseError::fail(format!("no slice for {name}")))?;
            let released = job.release.window.latest().min(job.end).ns();
            prop_assert_eq!(slice.begin, released + slice.numbers.get("shown_late_ns").copied()
                .unwrap_or(0) as u64);
            prop_assert_eq!(slice.end, job.end.ns());
            prop_assert_eq!(slice.numbers["cost_ns"], job.cost.ns() as i64);
            prop_assert_eq!(slice.numbers["suspended_ns"], job.suspended.ns() as i64);
            prop_assert_eq!(slice.numbers["response_ns"], job.response().ns() as i64);
            let lateness = job.release.arrival.map(|arrival| job.release.window.latest()
                .ns() as i64 - arrival.ns() as i64);
            prop_assert_eq!(slice.numbers.get("lateness_ns").copied(), lateness);
        }
        let windows = decoded.slices.iter().filter(|slice| slice.name.starts_with("release of job")).count();
        prop_assert_eq!(windows, jobs.iter().filter(|job| !job.release.window.is_exact()).count());
    }

    #[test]
    fn a_job_without_a_predecessor_is_shown_from_its_release(jobs in jobs(60)) {
        // Without more overlapping jobs than there are tracks nothing is shown late.
        let mut last = Instant::default();
        let apart: Vec<_> = jobs.into_iter().filter(|job| {
            let alone = job.release.window.latest() >= last;
            last = if alone { job.end } else { last };
            alone
        }).map(|job| (FIRST, SLEEP, job)).collect();
        let decoded = Decoded::new(&timeline(1, &records(1, &[]), &apart).0);
        prop_assert!(decoded.slices.iter().all(|slice| !slice.numbers.contains_key("shown_late_ns")));
        let on: std::collections::BTreeSet<_> = decoded.slices.iter()
            .filter(|slice| slice.name.starts_with("job ")).map(|slice| slice.track).collect();
        prop_assert!(on.len() <= 1);
    }

    #[test]
    fn arbitrary_records_cause_no_failure(strange in prop::collection::vec(strange(), 0..80)) {
        strange_timeline(&strange);
    }
}

type Strange = (Record, (u32, u32, Separator, Job));

fn strange_timeline(strange: &[Strange]) -> Vec<u8> {
    let mut timeline = Timeline::new(Vec::new(), &about(), &model(5, SLEEP)).unwrap();
    for (record, job) in strange {
        timeline.record(record).unwrap();
        timeline.job(job.0, job.1, &job.2, u64::MAX, &job.3).unwrap();
    }
    timeline.finish().unwrap().0
}

/// Records and jobs as only a broken recording has them.
fn strange() -> impl Strategy<Value = Strange> {
    let tid = || prop_oneof![FIRST..FIRST + 3, any::<u32>()];
    let at = || prop_oneof![0..100u64, any::<u64>()].prop_map(Instant::from_ns);
    let step = prop_oneof![
        Just(Step::In),
        Just(Step::Preempted),
        Just(Step::Throttled),
        Just(Step::Asleep { interruptible: true }),
        Just(Step::Stopped),
        Just(Step::Faulted { minor: 1, major: 0 }),
        tid().prop_map(|by| Step::Woken { by })
    ];
    let switch = (tid(), at(), prop_oneof![0..3u32, any::<u32>()], step);
    let begins = prop::sample::select(vec![
        punctual_trace::Begin::Seen,
        punctual_trace::Begin::Policy,
        punctual_trace::Begin::Exec,
        punctual_trace::Begin::Affinity,
    ]);
    let task = (tid(), tid(), at(), begins, 0..3usize, any::<String>());
    let record = prop_oneof![
        6 => switch.prop_map(|(tid, at, cpu, step)| Record::Switch(Switch { tid, at, cpu, step })),
        3 => task.prop_map(|(tid, pid, at, begin, kind, name)| {
            let task = Box::new(punctual_trace::TaskRecord { pid, at, begin, name, ..machine::seen(tid) });
            [Record::Known, Record::Task, Record::Bystander][kind](task)
        }),
        1 => (tid(), at()).prop_map(|(tid, at)| Record::Exit { tid, sequence: 0, at }),
        1 => (tid(), at()).prop_map(|(tid, at)| Record::BystanderExit { tid, at }),
        1 => (tid(), at()).prop_map(|(tid, at)| Record::Last { tid, sequence: 0, at }),
        1 => (tid(), any::<String>()).prop_map(|(tid, name)| Record::Renamed { tid, sequence: 0, name }),
        1 => (tid(), any::<String>()).prop_map(|(tid, command)| Record::Command { tid, sequence: 0,
            command }),
    ];
    let separator = prop::sample::select(vec![SLEEP, WAIT, Separator::SUSPENSION]);
    let job = (at(), at(), at(), at(), proptest::option::of(at()), any::<u64>()).prop_map(
        |(a, b, start, end, arrival, cost)| Job {
            release: Release { arrival, window: Window::new(a.min(b), a.max(b)).unwrap() },
            start,
            end,
            cost: Duration::from_ns(cost),
            suspended: Duration::from_ns(cost),
        },
    );
    (record, (tid(), 0..3u32, separator, job))
}

fn job_at(released: u64, end: u64) -> Job {
    let (released, end) = (Instant::from_ns(released), Instant::from_ns(end));
    let release = Release { arrival: Some(released), window: Window::at(released) };
    Job { release, start: released, end, cost: end.since(released), suspended: Duration::ZERO }
}

#[test]
fn jobs_of_other_separators_have_their_own_track_and_suspensions_are_omitted() {
    let job = job_at(1_000_000, 1_500_000);
    let (bytes, counts) = timeline(
        1,
        &records(1, &[]),
        &[(FIRST, SLEEP, job), (FIRST, WAIT, job), (FIRST, Separator::SUSPENSION, job), (9, SLEEP, job)],
    );
    let decoded = Decoded::new(&bytes);
    let on: Vec<&str> = decoded.slices.iter().map(|slice| decoded.tracks[&slice.track].as_str()).collect();
    assert_eq!(on, ["jobs", "jobs: futex_wait 0x1000"]);
    assert_eq!((counts.jobs, counts.other_jobs, counts.unknown), (1, 1, 1));
}

#[test]
fn changes_of_a_thread_are_shown() {
    let task =
        |at, begin| punctual_trace::TaskRecord { at: Instant::from_ns(at), begin, ..machine::seen(FIRST) };
    let policy =
        punctual_trace::TaskRecord { priority: 70, ..task(700_000, punctual_trace::Begin::Priority) };
    let affinity =
        punctual_trace::TaskRecord { affinity: "1".into(), ..task(800_000, punctual_trace::Begin::Affinity) };
    let exec = punctual_trace::TaskRecord {
        name: "next".into(),
        command: "/bin/next -v".into(),
        ..task(900_000, punctual_trace::Begin::Exec)
    };
    let mut input = records(1, &[]);
    input.extend([policy, affinity].map(|task| Record::Task(Box::new(task))));
    input.push(Record::Renamed { tid: FIRST, sequence: 0, name: "calm".into() });
    input.push(Record::Task(Box::new(exec)));
    input.push(Record::Exit { tid: FIRST, sequence: 0, at: Instant::from_ns(950_000) });
    let decoded = Decoded::new(&timeline(1, &input, &[]).0);
    let instants: Vec<(&str, u64)> =
        decoded.instants.iter().map(|instant| (instant.name.as_str(), instant.begin)).collect();
    assert_eq!(
        instants,
        [
            ("SCHED_FIFO 80", 600_000),
            ("SCHED_FIFO 70", 700_000),
            ("processors 1", 800_000),
            ("renamed calm", 800_000),
            ("exec /bin/next -v", 900_000),
            ("exit", 950_000)
        ]
    );
}

#[test]
fn a_bystander_that_is_watched_later_is_one_thread() {
    let at = |ns, pid| {
        Box::new(punctual_trace::TaskRecord { pid, at: Instant::from_ns(ns), ..machine::seen(FIRST) })
    };
    let pid = machine::seen(FIRST).pid;
    let input = [Record::Bystander(at(600_000, pid)), Record::Task(at(700_000, pid))];
    let (bytes, counts) = timeline(1, &input, &[]);
    let shown = |bytes: &[u8]| {
        let instants = Decoded::new(bytes).instants;
        instants.into_iter().map(|instant| (instant.name, instant.begin)).collect::<Vec<_>>()
    };
    let fifo = |at| ("SCHED_FIFO 80".to_owned(), at);
    assert_eq!(shown(&bytes), [fifo(600_000), fifo(700_000)]);
    assert_eq!((counts.threads, counts.bystanders), (1, 0));
    // One of another process has its TID: its end was not seen.
    let input = [Record::Bystander(at(600_000, pid + 1)), Record::Task(at(700_000, pid))];
    let (bytes, counts) = timeline(1, &input, &[]);
    assert_eq!(shown(&bytes), [fifo(600_000), ("exit".to_owned(), 699_999), fifo(700_000)]);
    assert_eq!((counts.threads, counts.bystanders), (1, 1));
}

#[test]
fn processors_and_threads_that_cannot_be_shown_are_counted() {
    let at = Instant::from_ns(1_000_000);
    let steps =
        [(FIRST, 1_024), (u32::MAX, 0), (0, 0)].map(|(tid, cpu)| Switch { tid, at, cpu, step: Step::In });
    let (bytes, counts) = timeline(1, &records(1, &steps), &[]);
    assert_eq!((counts.left_out, counts.steps), (3, 0));
    assert_eq!(Decoded::new(&bytes).runs(), []);
}

#[test]
fn a_thread_that_ends_leaves_its_processor() {
    let step = |at, step| Record::Switch(Switch { tid: FIRST, at: Instant::from_ns(at), cpu: 1, step });
    let mut input = records(1, &[]);
    input.extend([
        step(1_000_000, Step::In),
        Record::Exit { tid: FIRST, sequence: 0, at: Instant::from_ns(1_200_000) },
    ]);
    let decoded = Decoded::new(&timeline(1, &input, &[]).0);
    assert_eq!(decoded.runs(), [Run { from: 1_000_000, until: Some(1_200_000), cpu: 1, tid: FIRST }]);
}

/// The state in which a thread that was not seen to leave is shown to have left, when this is what is seen of
/// it next.
fn left(next: Step, cpu: u32) -> i64 {
    let step = |tid, at, cpu, step| Switch { tid, at: Instant::from_ns(at), cpu, step };
    let steps = [
        step(FIRST, 1_000_000, 0, Step::In),
        step(FIRST + 1, 1_100_000, 0, Step::In),
        step(FIRST, 1_200_000, cpu, next),
    ];
    let (bytes, counts) = timeline(2, &records(2, &steps), &[]);
    assert_eq!(counts.mended, 1);
    Decoded::new(&bytes).switches[&0].iter().find(|(at, _)| *at == 1_100_000).unwrap().1.prev_state
}

#[test]
fn an_unseen_switch_out_is_inferred_from_the_next_step() {
    assert_eq!(left(Step::Woken { by: 0 }, 1), 1, "asleep");
    assert_eq!(left(Step::In, 1), 0, "runnable");
    assert_eq!(left(Step::Preempted, 1), 0, "runnable");
}

#[test]
fn only_a_thread_with_a_reservation_returns_without_a_wake_up() {
    let steps =
        [(1_000_000, Step::In), (1_100_000, Step::Asleep { interruptible: true }), (1_900_000, Step::In)]
            .map(|(at, step)| Record::Switch(Switch { tid: FIRST, at: Instant::from_ns(at), cpu: 0, step }));
    for (policy, mended) in [(punctual_model::Policy::Deadline, 0), (punctual_model::Policy::Fifo, 1)] {
        let task = Record::Task(Box::new(punctual_trace::TaskRecord { policy, ..machine::seen(FIRST) }));
        let input: Vec<Record> = std::iter::once(task).chain(steps.iter().cloned()).collect();
        assert_eq!(timeline(1, &input, &[]).1.mended, mended);
    }
}

#[test]
fn a_recording_without_steps_shows_only_jobs() {
    let (bytes, counts) = timeline(1, &records(1, &[]), &[(FIRST, SLEEP, job_at(1_000_000, 1_500_000))]);
    assert_eq!(counts, Counts { threads: 1, jobs: 1, ..Counts::default() });
    assert!(Decoded::new(&bytes).switches.is_empty());
}

#[test]
fn jobs_that_wait_behind_many_are_shown_late_and_say_so() {
    let jobs: Vec<_> = (0..20)
        .map(|number| (FIRST, SLEEP, job_at(1_000_000 + number, 2_000_000 + 1_000 * number)))
        .collect();
    let decoded = Decoded::new(&timeline(1, &records(1, &[]), &jobs).0);
    let late: Vec<i64> =
        decoded.slices.iter().filter_map(|slice| slice.numbers.get("shown_late_ns").copied()).collect();
    assert_eq!((decoded.slices.len(), late.len()), (20, 12));
    // The ninth is shown from the end of the first on.
    assert_eq!(late.iter().min(), Some(&(2_000_000 - 1_000_008)));
}

struct Full;

impl io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported() {
    let error =
        Timeline::new(Full, &about(), &model(1, SLEEP)).and_then(Timeline::finish).err().unwrap().to_string();
    assert!(error.contains("cannot write the timeline") && error.contains("no storage space"), "{error}");
}
