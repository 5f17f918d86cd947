//! From records to tasks: streams compared with a plain reconstruction of every job; transitions, losses, the
//! primary separator.

use proptest::prelude::*;
use punctual_extract::{Extractor, Options, StreamOptions};
use punctual_model::{
    Call, Disturbance, Duration, EndedBy, FileClass, Instant, Job, MAX_SEGMENTS, Object, Policy, RecordedJob,
    Release, Segment, Separator, Task, ThreadIds, Window, check_stream,
};
use punctual_trace::{Activation, Begin, Record, Resumed, TaskRecord};

const TID: u32 = 7;

fn options() -> Options {
    Options {
        stream: StreamOptions { curve_horizon: 50, wcet_horizon: 50, ..StreamOptions::default() },
        merge_transitions: false,
    }
}

fn begins(sequence: u32, at: u64, begin: Begin, policy: Policy) -> Record {
    Record::Task(Box::new(TaskRecord {
        tid: TID,
        pid: 5,
        sequence,
        at: Instant::from_ns(at),
        begin,
        name: "ctl".into(),
        command: "ctl --fast".into(),
        policy,
        priority: if policy == Policy::Fifo { 50 } else { 0 },
        nice: (policy == Policy::Other).then_some(0),
        reservation: None,
        affinity: "0-1".into(),
    }))
}

fn absolute_sleep() -> Separator {
    Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } }
}

fn pipe(fd: i32) -> Separator {
    Separator {
        call: Call::Read,
        object: Object::File { class: FileClass::Pipe, fd, identity: 1000 + fd as u64 },
    }
}

/// A sleep until `arrival` that begins at `stop` and ends `late` after its time.
fn sleep_until(sequence: u32, stop: u64, cpu: u64, arrival: u64, late: u64) -> Activation {
    Activation {
        tid: TID,
        sequence,
        separator: absolute_sleep(),
        slept: true,
        stop: Instant::from_ns(stop),
        cpu: Duration::from_ns(cpu),
        arrival: Some(Instant::from_ns(arrival)),
        resumed: Some(Resumed::new(
            Some(Window::at(Instant::from_ns(arrival + late))),
            Instant::from_ns(arrival + late + 10),
        )),
    }
}

fn extract(records: &[Record]) -> Vec<Task> {
    let mut extractor = Extractor::new(options());
    records.iter().for_each(|record| extractor.record(record));
    extractor.finish(Instant::from_ns(1 << 50))
}

/// `jobs` jobs of 100 ns every 1,000 ns, from record number `first` on.
fn periodic(first: u32, from: u64, jobs: u64) -> Vec<Record> {
    (0..jobs)
        .map(|job| {
            let arrival = from + (job + 1) * 1_000;
            Record::Activation(sleep_until(
                first + job as u32,
                arrival - 880,
                from + (job + 1) * 100,
                arrival,
                20,
            ))
        })
        .collect()
}

/// Each job sleeps for a while within itself, and is late with its next sleep, whose time is past by then: of
/// all sleeps, every second one is 300 ns late.
#[test]
fn sleeps_in_different_calls_are_due_in_any_order() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    for job in 0..50_u32 {
        let begin = 1_000 * (u64::from(job) + 1);
        let mut within = sleep_until(1 + 2 * job, begin + 400, begin / 10, begin + 1_200, 0);
        within.separator.object = Object::Clock { id: 1, absolute: false };
        let until = sleep_until(2 + 2 * job, begin + 1_250, begin / 10 + 50, begin + 1_000, 300);
        records.extend([within, until].map(Record::Activation));
    }
    let tasks = extract(&records);
    let all = tasks[0].streams.iter().find(|stream| stream.separator == Separator::SUSPENSION);
    let percentiles = all.and_then(|stream| stream.percentiles.as_ref()).expect("percentiles");
    let lateness = percentiles.lateness.as_ref().expect("known arrivals");
    assert_eq!((lateness.p50_ns.ns(), lateness.p90_ns.ns()), (0, 300));
}

/// The clock was set, and the source does not tell of it: jobs seem to be due 4,000 ns before the last one.
/// An interrupted sleep, whose time has not come, counts for nothing.
#[test]
fn jobs_are_not_due_before_those_that_came_before() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    records.extend(periodic(1, 0, 50));
    let mut cut_short = sleep_until(51, 50_120, 5_100, 60_000, 0);
    cut_short.resumed = sleep_until(0, 0, 0, 50_500, 0).resumed;
    records.push(Record::Activation(cut_short));
    for job in 0..5 {
        let mut late = sleep_until(52 + job, 50_600 + u64::from(job) * 200, 5_200, 46_000, 0);
        late.resumed = sleep_until(0, 0, 0, 50_700 + u64::from(job) * 200, 0).resumed;
        records.push(Record::Activation(late));
    }
    let tasks = extract(&records);
    let stream = &tasks[0].streams[tasks[0].primary.expect("a primary separator")];
    // From 50,000, when the last one before the step was due, to 51,400.
    assert_eq!(stream.response.as_ref().expect("jobs").max_ns.ns(), 1_400);
}

#[test]
fn a_thread_that_sleeps_until_absolute_times_is_periodic_on_arrivals() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    records.extend(periodic(1, 0, 50));
    let tasks = extract(&records);
    assert_eq!(tasks.len(), 1);
    let task = &tasks[0];
    let stream = &task.streams[task.primary.expect("a primary separator")];
    let periodic = stream.arrival.periodic.as_ref().expect("a period");
    assert_eq!((stream.separator, stream.jobs, stream.releases), (absolute_sleep(), 49, 50));
    assert_eq!((periodic.period_ns.ns(), periodic.jitter_ns.ns(), periodic.offset_ns), (1_000, 20, 1_000));
    assert_eq!(stream.execution.as_ref().expect("jobs").wcet_ns[0].ns(), 100);
    // From the arrival to the end: 20 late, then 100 of work, as `periodic` has it.
    assert_eq!(stream.response.as_ref().expect("jobs").max_ns.ns(), 120);
    // The last one has not ended, and takes longer than any that did.
    let last = |sequence| Record::Last { tid: TID, sequence, at: Instant::from_ns(1 << 50) };
    let ended = extract(&[&records[..], &[last(51)]].concat());
    assert_eq!(ended[0].open_ns.map(Duration::ns), Some((1 << 50) - 50_020));
    assert_eq!(task.open_ns, None, "it may have slept");
    let mut sleeps = sleep_until(51, 50_140, 5_100, 51_000, 20);
    sleeps.resumed = None;
    let asleep = extract(&[&records[..], &[Record::Activation(sleeps), last(52)]].concat());
    assert_eq!(asleep[0].open_ns, None);
    // All sleeps are at one separator, so the jobs between sleeps are the same.
    let suspension = task
        .streams
        .iter()
        .find(|stream| stream.separator == Separator::SUSPENSION)
        .expect("the jobs between sleeps");
    assert_eq!(suspension.execution, stream.execution);
}

#[test]
fn a_task_that_never_waited_has_its_processor_time() {
    let busy = |sequence| Record::Busy { tid: TID, sequence, cpu: Duration::from_ns(90) };
    let last = |sequence| Record::Last { tid: TID, sequence, at: Instant::from_ns(100) };
    let tasks = extract(&[begins(0, 0, Begin::Seen, Policy::Fifo), busy(1), last(2)]);
    assert_eq!((tasks.len(), tasks[0].busy_ns), (1, Some(Duration::from_ns(90))));
    assert!(tasks[0].streams.is_empty());
    // Records are missing: the time is of more than the task that begins there.
    let tasks = extract(&[begins(0, 0, Begin::Seen, Policy::Fifo), busy(5), last(6)]);
    assert!(tasks.iter().all(|task| task.busy_ns.is_none()), "{tasks:?}");
}

#[test]
fn threads_that_had_the_same_tid_are_told_apart() {
    let exit = |sequence, at| Record::Exit { tid: TID, sequence, at: Instant::from_ns(at) };
    let records = [
        begins(0, 0, Begin::Seen, Policy::Other),
        begins(1, 10, Begin::Policy, Policy::Fifo),
        exit(2, 20),
        // The end of the second is not seen.
        begins(0, 30, Begin::Seen, Policy::Other),
        begins(1, 40, Begin::Policy, Policy::Fifo),
        begins(0, 50, Begin::Seen, Policy::Other),
        begins(1, 60, Begin::Policy, Policy::Fifo),
        begins(2, 70, Begin::Policy, Policy::Other),
    ];
    let tasks = extract(&records);
    let ids = ThreadIds::new(&tasks);
    assert_eq!(tasks.iter().map(|task| ids.phases(task)).collect::<Vec<_>>(), [2, 2, 2, 2, 3, 3, 3]);
    assert!(tasks.windows(2).all(|pair| { (ids.of(&pair[0]) == ids.of(&pair[1])) == (pair[1].phase > 0) }));
    // Where the first phase was left out, the exit tells.
    let known = [&tasks[1..2], &tasks[3..4]].concat();
    let ids = ThreadIds::new(&known);
    assert!(ids.of(&known[0]) < ids.of(&known[1]));
}

#[test]
fn a_stop_signal_suspends_the_job_and_releases_none() {
    let ns = Instant::from_ns;
    let stopped_sleep = |sequence: u32, disturbance: Option<Disturbance>| {
        let resumed = Resumed { disturbance, ..Resumed::new(Some(Window::at(ns(2_700))), ns(2_710)) };
        let stop = sleep_until(sequence, 2_250, 230, 0, 0);
        Record::Activation(Activation {
            separator: Separator::SUSPENSION,
            arrival: None,
            resumed: Some(resumed),
            ..stop
        })
    };
    let run = |disturbance| {
        let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
        records.extend(periodic(1, 0, 2));
        records.push(stopped_sleep(3, disturbance));
        records.extend(periodic(4, 2_000, 2));
        extract(&records)
    };
    let of_call = |tasks: &[Task], call: Call| {
        let stream =
            tasks[0].streams.iter().find(|stream| stream.separator.call == call).expect("a stream").clone();
        (stream.releases, stream.suspension.map_or(0, |suspension| suspension.dynamic_ns.ns()))
    };
    let stopped = run(Some(Disturbance::Signal));
    assert_eq!(of_call(&stopped, Call::Suspension), (4, 450));
    assert_eq!(of_call(&stopped, Call::ClockNanosleep), (4, 450));
    // A sleep elsewhere releases a job only of the stream of all sleeps.
    let slept = run(None);
    assert_eq!(of_call(&slept, Call::Suspension), (5, 0));
    assert_eq!(of_call(&slept, Call::ClockNanosleep), (4, 450));
}

#[test]
fn fifo_other_fifo_is_three_tasks() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    records.extend(periodic(1, 0, 5));
    records.push(begins(6, 5_100, Begin::Policy, Policy::Other));
    records.extend(periodic(7, 5_200, 4));
    records.push(begins(11, 9_400, Begin::Policy, Policy::Fifo));
    records.extend(periodic(12, 9_500, 3));
    let last = Record::Last { tid: TID, sequence: 15, at: Instant::from_ns(20_000) };
    records.push(last);
    let tasks = extract(&records);
    let seen: Vec<_> =
        tasks.iter().map(|task| (task.phase, task.policy, task.ended_by, task.streams[0].jobs)).collect();
    assert_eq!(
        seen,
        [
            (0, Policy::Fifo, EndedBy::PolicyChange, 4),
            (1, Policy::Other, EndedBy::PolicyChange, 3),
            (2, Policy::Fifo, EndedBy::ObservationEnd, 2)
        ]
    );
}

#[test]
fn merged_transitions_leave_one_task_with_the_latest_parameters() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    records.extend(periodic(1, 0, 5));
    records.push(begins(6, 5_050, Begin::Policy, Policy::Other));
    records.extend(periodic(7, 5_000, 5));
    let mut extractor = Extractor::new(Options { merge_transitions: true, ..options() });
    records.iter().for_each(|record| extractor.record(record));
    let tasks = extractor.finish(Instant::from_ns(20_000));
    assert_eq!(tasks.len(), 1);
    assert_eq!((tasks[0].policy, tasks[0].from_ns.ns(), tasks[0].streams[0].jobs), (Policy::Other, 0, 9));
    assert_eq!(tasks[0].merged_transitions, 1);
}

#[test]
fn a_thread_that_changes_its_affinity_again_and_again_is_one_task() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    for turn in 0..30_u32 {
        let Record::Task(mut moved) =
            begins(1 + 5 * turn, 50 + 4_000 * u64::from(turn), Begin::Affinity, Policy::Fifo)
        else {
            unreachable!("a task record")
        };
        moved.affinity = ["0", "2-3", "5"][turn as usize % 3].into();
        records.push(Record::Task(moved));
        records.extend(periodic(2 + 5 * turn, 100 + 4_000 * u64::from(turn), 4));
    }
    let tasks = extract(&records);
    let seen: Vec<_> =
        tasks.iter().map(|task| (task.affinity.as_str(), task.merged_transitions, task.ended_by)).collect();
    assert_eq!(
        seen[1..],
        [("0", 0, EndedBy::AffinityChange), ("0,2-3,5", 28, EndedBy::ObservationEnd)],
        "{seen:?}"
    );
    let stream = &tasks[2].streams[0];
    assert_eq!(
        (stream.releases, stream.arrival.periodic.as_ref().map(|it| it.period_ns.ns())),
        (116, Some(1_000))
    );
}

#[test]
fn tasks_are_capped_and_counted() {
    let mut extractor = Extractor::new(options());
    extractor.record(&begins(0, 0, Begin::Seen, Policy::Fifo));
    for change in 1..=20_000_u32 {
        let policy = if change % 2 == 0 { Policy::Fifo } else { Policy::Other };
        extractor.record(&begins(change, u64::from(change) * 10, Begin::Policy, policy));
    }
    let omitted = extractor.progress().omitted;
    let tasks = extractor.finish(Instant::from_ns(1 << 20));
    assert_eq!(tasks.len() as u64 + omitted, 20_001);
    assert!(tasks.len() <= 5_001, "{}", tasks.len());
    assert_eq!(tasks.last().map(|task| task.phase), Some(20_000), "the task of the moment is kept");
}

#[test]
fn an_exec_does_not_rename_the_task_before_it() {
    let renamed = |sequence, name: &str| Record::Renamed { tid: TID, sequence, name: name.into() };
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo), renamed(1, "worker")];
    records.push(Record::Command { tid: TID, sequence: 2, command: "ctl --slow".into() });
    records.extend(periodic(3, 0, 3));
    records.push(renamed(6, "next"));
    let Record::Task(mut after) = begins(7, 3_500, Begin::Exec, Policy::Fifo) else {
        unreachable!("a task record")
    };
    after.name = "next".into();
    records.push(Record::Task(after));
    let tasks = extract(&records);
    let seen: Vec<_> =
        tasks.iter().map(|task| (task.name.as_str(), task.command.as_str(), task.ended_by)).collect();
    assert_eq!(
        seen,
        [("worker", "ctl --slow", EndedBy::Exec), ("next", "ctl --fast", EndedBy::ObservationEnd)]
    );
}

#[test]
fn a_command_that_may_be_that_of_a_later_exec_is_left_out() {
    let records = [begins(0, 0, Begin::Seen, Policy::Fifo), begins(1, 10, Begin::Exec, Policy::Fifo)];
    let commands: Vec<_> = extract(&records).into_iter().map(|task| task.command).collect();
    assert_eq!(commands, ["", "ctl --fast"]);
}

#[test]
fn a_gap_ends_the_task_and_no_job_spans_it() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    records.extend(periodic(1, 0, 10));
    let mut after = periodic(11, 10_000, 10);
    after.drain(..3);
    records.extend(after);
    let tasks = extract(&records);
    let seen: Vec<_> =
        tasks.iter().map(|task| (task.ended_by, task.streams[0].jobs, task.streams[0].releases)).collect();
    assert_eq!(seen, [(EndedBy::Loss, 9, 10), (EndedBy::ObservationEnd, 6, 7)]);
    let longest = tasks
        .iter()
        .flat_map(|task| &task.streams[0].arrival.curve.as_ref().expect("a curve").delta_max_ns)
        .next();
    assert_eq!(longest.map(|span| span.ns()), Some(1_000));
}

#[test]
fn records_lost_at_the_very_end_end_the_task_by_loss() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    records.extend(periodic(1, 0, 3));
    records.push(Record::Exit { tid: TID, sequence: 9, at: Instant::from_ns(9_000) });
    let tasks = extract(&records);
    assert_eq!(tasks[0].ended_by, EndedBy::Loss);
}

#[test]
fn a_number_used_again_is_another_thread() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    records.extend(periodic(1, 0, 3));
    records.push(Record::Exit { tid: TID, sequence: 4, at: Instant::from_ns(4_000) });
    records.push(begins(0, 5_000, Begin::Seen, Policy::Fifo));
    records.extend(periodic(1, 5_000, 3));
    let tasks = extract(&records);
    let seen: Vec<_> = tasks.iter().map(|task| (task.phase, task.ended_by)).collect();
    assert_eq!(seen, [(0, EndedBy::Exit), (0, EndedBy::ObservationEnd)]);
}

#[test]
fn a_new_descriptor_per_job_is_capped_and_reported() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    for job in 0..200_u32 {
        let stop = u64::from(job) * 1_000 + 100;
        let mut activation = sleep_until(1 + job, stop, u64::from(job) * 100, stop + 500, 0);
        activation.separator = pipe(job as i32);
        activation.arrival = None;
        records.push(Record::Activation(activation));
    }
    let task = &extract(&records)[0];
    assert!(task.separators_capped);
    assert!(task.streams.len() <= punctual_extract::MAX_SEPARATORS + 2);
    let others = task
        .streams
        .iter()
        .find(|stream| stream.separator.object == Object::Others)
        .expect("a stream of all others");
    assert_eq!(others.releases, 200 - punctual_extract::MAX_SEPARATORS as u64);
}

#[test]
fn the_activation_is_primary_not_the_wait_inside_the_job() {
    let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
    let mut sequence = 1;
    for job in 0..30_u64 {
        let arrival = (job + 1) * 10_000;
        records.push(Record::Activation(sleep_until(sequence, arrival - 3_000, job * 200, arrival, 5)));
        let mut inner = sleep_until(sequence + 1, arrival + 1_000, job * 200 + 100, arrival + 6_000, 0);
        inner.separator = pipe(3);
        inner.arrival = None;
        records.push(Record::Activation(inner));
        sequence += 2;
    }
    let task = &extract(&records)[0];
    let stream = &task.streams[task.primary.expect("a primary separator")];
    assert_eq!(stream.separator, absolute_sleep());
    let suspension = stream.suspension.as_ref().expect("jobs");
    assert_eq!(suspension.dynamic_ns.ns(), 5_000);
    assert_eq!(suspension.segmented.iter().map(Vec::len).collect::<Vec<_>>(), [2]);
}

/// One step of a thread: how long it runs, where and how it waits.
#[derive(Clone, Debug)]
struct Step {
    runs: u64,
    place: usize,
    sleeps: Option<u64>,
    /// Width of the window in which the sleep ended.
    unseen: u64,
    after: u64,
}

fn places() -> [Separator; 4] {
    [absolute_sleep(), pipe(3), pipe(4), Separator::SUSPENSION]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        1..5_000_u64,
        0..4_usize,
        proptest::option::weighted(0.8, 1..9_000_u64),
        prop_oneof![4 => Just(0), 1 => 0..3_000_u64],
        prop_oneof![9 => Just(0), 1 => 1..500_u64],
    )
        .prop_map(|(runs, place, sleeps, unseen, after)| Step {
            runs,
            place,
            // Outside of separating calls there are only sleeps.
            sleeps: if place == 3 { sleeps.or(Some(5)) } else { sleeps },
            unseen,
            after: if place == 3 { 0 } else { after },
        });
    let mixed = proptest::collection::vec(step, 1..120);
    // Mostly one place, so that one stream stands for two for a while.
    let single = (mixed.clone(), 0..3_usize).prop_map(|(mut steps, place)| {
        let apart = steps.len() * 2 / 3;
        steps.iter_mut().take(apart).for_each(|step| {
            step.place = place;
            step.sleeps = step.sleeps.or(Some(7));
            step.after = 0;
        });
        steps
    });
    prop_oneof![mixed, single]
}

fn activations(steps: &[Step]) -> Vec<Activation> {
    let (mut now, mut cpu) = (1_000_u64, 0_u64);
    steps
        .iter()
        .enumerate()
        .map(|(number, step)| {
            now += step.runs;
            cpu += step.runs;
            let stop = now;
            let release = step.sleeps.map(|sleeps| {
                now += sleeps;
                let latest = now;
                Window::new(Instant::from_ns(latest - step.unseen.min(sleeps)), Instant::from_ns(latest))
                    .expect("in order")
            });
            now += if step.sleeps.is_some() { 3 } else { 0 };
            let start = now;
            let after = if step.sleeps.is_some() { step.after } else { 0 };
            now += after;
            Activation {
                tid: TID,
                sequence: 1 + number as u32,
                separator: places()[step.place],
                slept: step.sleeps.is_some(),
                stop: Instant::from_ns(stop),
                cpu: Duration::from_ns(cpu),
                arrival: None,
                resumed: Some(Resumed {
                    suspended_after: Duration::from_ns(after),
                    ..Resumed::new(release, Instant::from_ns(start))
                }),
            }
        })
        .collect()
}

/// Every release and job at `separator`, reconstructed from the whole list, without running counters.
fn reconstruct(separator: Separator, all: &[Activation]) -> (Vec<Release>, Vec<RecordedJob>) {
    let separates = |activation: &&(usize, &Activation)| match separator {
        Separator::SUSPENSION => activation.1.slept,
        _ => activation.1.separator == separator,
    };
    let numbered: Vec<_> = all.iter().enumerate().collect();
    let own: Vec<_> = numbered.iter().filter(separates).collect();
    let mut releases: Vec<Release> = Vec::new();
    for (_, activation) in &own {
        let floor = releases.last().map_or(Instant::from_ns(0), |release| release.window.earliest());
        let window = match activation.resumed.expect("each resumed").release {
            Some(window) => Window::new(window.earliest().max(floor), window.latest()).expect("in order"),
            None if releases.is_empty() => Window::at(activation.stop),
            None => Window::new(floor, activation.stop).expect("in order"),
        };
        releases.push(Release { arrival: None, window });
    }
    let jobs = own
        .windows(2)
        .zip(&releases)
        .map(|(pair, release)| {
            let ((first, opened), (last, closed)) = (pair[0], pair[1]);
            let resumed = opened.resumed.expect("each resumed");
            let mut sleeps = vec![(opened.cpu, resumed.suspended_after)];
            for inner in &all[first + 1..*last] {
                let resumed = inner.resumed.expect("each resumed");
                if let Some(window) = resumed.release {
                    sleeps.push((inner.cpu, window.latest().since(inner.stop)));
                }
                sleeps.push((inner.cpu, resumed.suspended_after));
            }
            sleeps.retain(|(_, suspended)| *suspended > Duration::ZERO);
            let mut segments = Vec::new();
            let (mut from, mut before) = (opened.cpu, Duration::ZERO);
            for (cpu, suspended) in sleeps {
                segments.push(Segment { suspended: before, cost: cpu.saturating_sub(from) });
                (from, before) = (cpu, suspended);
            }
            segments.push(Segment { suspended: before, cost: closed.cpu.saturating_sub(from) });
            let suspended = segments.iter().fold(Duration::ZERO, |sum, segment| sum + segment.suspended);
            let start = resumed.start.max(release.window.earliest());
            let job = Job {
                release: *release,
                start,
                end: closed.stop.max(start),
                cost: closed.cpu.saturating_sub(opened.cpu),
                suspended,
            };
            (job, segments)
        })
        .collect();
    (releases, jobs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_stream_allows_every_job_as_plainly_reconstructed(steps in steps()) {
        let all = activations(&steps);
        let mut records = vec![begins(0, 0, Begin::Seen, Policy::Fifo)];
        records.extend(all.iter().map(|activation| Record::Activation(*activation)));
        let tasks = extract(&records);
        prop_assert_eq!(tasks.len(), 1);
        let task = &tasks[0];
        for separator in places() {
            let (releases, jobs) = reconstruct(separator, &all);
            let stream = task.streams.iter().find(|stream| stream.separator == separator);
            let Some(stream) = stream else {
                prop_assert!(releases.is_empty(), "no stream for {}", separator);
                continue;
            };
            let counts = (releases.len() as u64, jobs.len() as u64);
            prop_assert_eq!((stream.releases, stream.jobs), counts, "{}", separator);
            let violations = check_stream(stream, &releases, &jobs);
            prop_assert!(violations.is_empty(), "{}: {}", separator, violations[0]);
            if let Some(worst) = jobs.iter().map(|(job, _)| job.cost).max() {
                let execution = stream.execution.as_ref().expect("jobs");
                prop_assert_eq!(execution.wcet_ns[0], worst, "exact, not only safe");
                let suspension = stream.suspension.as_ref().expect("jobs");
                let longest = jobs.iter().map(|(job, _)| job.suspended).max().expect("jobs");
                prop_assert_eq!(suspension.dynamic_ns, longest);
                prop_assert!(suspension.segmented.iter().all(|vector| vector.len() <= MAX_SEGMENTS));
                let longest = jobs.iter().map(|(job, _)| job.response()).max().expect("jobs");
                prop_assert_eq!(stream.response.as_ref().expect("jobs").max_ns, longest);
            }
        }
    }

    #[test]
    fn records_in_any_order_do_not_panic(
        picks in proptest::collection::vec((0..6_u8, any::<u32>(), any::<u64>()), 0..60),
    ) {
        let mut extractor = Extractor::new(options());
        for (kind, sequence, at) in picks {
            let sequence = sequence % 8;
            let at = at >> 8;
            extractor.record(&match kind {
                0 => begins(sequence, at, Begin::Seen, Policy::Fifo),
                1 => begins(sequence, at, Begin::Policy, Policy::Other),
                2 => Record::Exit { tid: TID, sequence, at: Instant::from_ns(at) },
                3 => Record::Renamed { tid: TID, sequence, name: "x".into() },
                _ => Record::Activation(sleep_until(sequence, at, at >> 3, at + 50, 1)),
            });
        }
        extractor.finish(Instant::from_ns(u64::MAX >> 4));
    }
}
