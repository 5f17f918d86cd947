//! Recordings of live threads: replay, other tools, and what remains when something goes wrong.

use crate::formats::is_as_documented;
use crate::model::{only_task, primary, read, tasks, threads};
use crate::run::{Ended, Running, children, directory, punctual, run, sleeps, wait_until, workload};
use crate::shared::{DEMO, SWITCHES, THREADS};
use crate::tool::tool;
use crate::{Outcome, Result, Test, ensure, fail, skip};
use punctual_model::{EndedBy, TimingModel};
use punctual_trace::ctf::Reader;
use punctual_trace::{Record, Step, Switch};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tests that can run in parallel.
pub const ALL: &[(&str, Test)] = &[
    ("recordings::replay_gives_what_extraction_gave", replay_is_extraction),
    ("recordings::babeltrace2_reads_every_record", babeltrace2),
    ("recordings::a_stretch", stretch),
    ("recordings::several_at_once", several),
    ("recordings::every_job_is_listed", every_job),
    ("recordings::every_switch_is_recorded", every_switch),
    ("recordings::all_threads_besides_the_watched_ones", all_threads),
    ("recordings::a_timeline", timeline),
    ("recordings::a_page", page),
    ("recordings::an_imported_lime_recording", lime),
    ("recordings::killed_while_recording", killed),
    ("recordings::truncated", cut_off),
    ("recordings::a_flipped_byte", flipped),
    ("recordings::the_disk_is_full", disk_full),
    ("recordings::a_folder_in_use", folder_in_use),
    ("recordings::the_recording_in_the_repository", sample),
    ("recordings::the_demonstration_without_privileges", demonstration),
];

/// Tests that need the machine to themselves.
pub const ALONE: &[(&str, Test)] = &[
    ("recordings::replay_in_pieces_gives_what_extraction_gave", pieces_are_extraction),
    ("recordings::the_oldest_part_is_dropped_first", limit),
    ("recordings::babeltrace2_reports_losses", lost_in_babeltrace2),
    ("recordings::an_imported_perf_recording", perf),
    ("recordings::who_is_interrupted_wakes_nobody", interrupted),
];

/// Records `command` into a folder of this directory, with further options.
fn record(directory: &Path, options: &[&str], command: &[&str]) -> Result<(PathBuf, Ended)> {
    let folder = directory.join("recording");
    let mut record = punctual(["record", "-o"]);
    record.arg(&folder).args(options).arg("--").args(command);
    let ended = run(record)?;
    ended.expect_code(0)?;
    Ok((folder, ended))
}

/// Three threads with periods of 2, 5 and 10 ms.
fn periodic(seconds: &str) -> Vec<String> {
    let words = [&workload("periodic"), "--for", seconds, "2000", "5000", "10000"];
    words.map(str::to_owned).to_vec()
}

fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// Replays, with further options, into a file beside the recording. Returns the file and the output.
fn replay(folders: &[&Path], name: &str, options: &[&str]) -> Result<(PathBuf, Ended)> {
    let Some(file) = folders.first().and_then(|folder| folder.parent()).map(|parent| parent.join(name))
    else {
        return fail("no folder");
    };
    let mut replay = punctual(["replay", "--force", "-o"]);
    replay.arg(&file).args(options).args(folders);
    let ended = run(replay)?;
    Ok((file, ended))
}

fn replayed(folder: &Path, name: &str, options: &[&str]) -> Result<TimingModel> {
    let (file, ended) = replay(&[folder], name, options)?;
    ended.expect_code(0)?;
    read(&file)
}

fn replay_is_extraction() -> Result<Outcome> {
    let directory = directory()?;
    same_as_extracted(&DEMO.recording(directory.path())?, &DEMO.get()?.model(), 17, &["1", "2", "3", "8"])
}

/// Long enough to be split between workers.
fn pieces_are_extraction() -> Result<Outcome> {
    // Of two pieces. A record takes up to 40 bytes.
    const RECORDS: u64 = 200_000;
    let directory = directory()?;
    let (folder, online) = (directory.path().join("recording"), directory.path().join("online.timing.json"));
    let mut extract = punctual(["extract", "-q", "-o"]);
    extract.arg(&online).arg("--record").arg(&folder).args(["--", &workload("pingpong"), "--for", "60"]);
    let observer = Running::start(extract)?;
    let written = || fs::metadata(folder.join("stream_0")).map_or(0, |stream| stream.len());
    wait_until("enough records", || written() > 40 * RECORDS)?;
    end_workload(&observer)?;
    observer.end()?.expect_code(0)?;
    let records = threads(&read(&online)?).records;
    ensure!(records > RECORDS, "{records} records are one piece");
    // However many workers there are is a test of `extract`.
    same_as_extracted(&folder, &online, 2, &["2"])
}

/// Compares the models of extraction and replay of one observation, with numbers of workers.
fn same_as_extracted(folder: &Path, online: &Path, tasks: usize, workers: &[&str]) -> Result<Outcome> {
    let expected = fs::read_to_string(online)?;
    let found = read(online)?.tasks().len();
    ensure!(found >= tasks, "{found} tasks, expected at least {tasks}");
    for workers in workers {
        let (file, ended) = replay(&[folder], "replayed.timing.json", &["--jobs", workers])?;
        ended.expect_code(0)?;
        let found = fs::read_to_string(&file)?;
        if found != expected {
            let line = expected.lines().zip(found.lines()).position(|(expected, found)| expected != found);
            let line = line.unwrap_or_else(|| expected.lines().count().min(found.lines().count()));
            let at = |text: &str| text.lines().skip(line).take(3).collect::<Vec<_>>().join("\n");
            return fail(format!(
                "with {workers} workers, line {} differs\n--- extracted\n{}\n--- replayed\n{}",
                line + 1,
                at(&expected),
                at(&found)
            ));
        }
    }
    Ok(Outcome::Completed)
}

/// What babeltrace2 prints of a recording, and its warnings.
fn events_of(folder: &Path) -> Result<Option<Ended>> {
    let Some(mut babeltrace) = tool("babeltrace2", &["--clock-cycles"]) else { return Ok(None) };
    babeltrace.arg(folder);
    let ended = run(babeltrace)?;
    ended.expect_code(0)?;
    Ok(Some(ended))
}

fn count(events: &Ended, name: &str) -> u64 {
    let begin = format!(" {name}");
    events
        .stdout
        .lines()
        .filter(|line| line.split(": {").next().is_some_and(|head| head.contains(&begin)))
        .count() as u64
}

fn babeltrace2() -> Result<Outcome> {
    let directory = directory()?;
    let folder = THREADS.recording(directory.path())?;
    let Some(events) = events_of(&folder)? else { return skip("no babeltrace2 here") };
    ensure!(events.stderr.is_empty(), "babeltrace2 complains: {}", events.stderr);
    let model = replayed(&folder, "replayed.timing.json", &[])?;
    let (activations, records) = (count(&events, "activation"), threads(&model).records);
    ensure!(activations == records, "{activations} activations, {} in the model", records);
    ensure!(
        count(&events, "task") >= 3,
        "three threads were introduced: {}",
        events.stdout.lines().next().unwrap_or_default()
    );
    ensure!(events.stdout.contains("clock_nanosleep"), "calls have no names");
    Ok(Outcome::Completed)
}

fn stretch() -> Result<Outcome> {
    let directory = directory()?;
    let (folder, _) = record(directory.path(), &[], &words(&periodic("3")))?;
    let whole = replayed(&folder, "whole.timing.json", &[])?;
    let part = replayed(&folder, "part.timing.json", &["--from", "1s", "--until", "2s"])?;
    for name in ["task-0", "task-1", "task-2"] {
        let (whole, part) = (primary(only_task(&whole, name)?)?, primary(only_task(&part, name)?)?);
        let third = whole.releases / 3;
        ensure!(
            part.releases.abs_diff(third) <= third / 3 + 2,
            "{} releases in one second of three, {}",
            part.releases,
            whole.releases
        );
    }
    let length = threads(&part).until_ns.since(threads(&part).from_ns).ns();
    ensure!(length == 1_000_000_000, "a second is {length} ns long");
    let (_, refused) = replay(&[&folder], "none.timing.json", &["--from", "1h"])?;
    refused.expect_code(2)?;
    ensure!(refused.stderr.contains("--from is beyond the end"), "{}", refused.all());
    let (_, shorter) = replay(&[&folder], "shorter.timing.json", &["-q", "--until", "1h"])?;
    shorter.expect_code(0)?;
    ensure!(
        shorter.stderr.matches("the recording ends before --until").count() == 1,
        "it is not an hour long: {}",
        shorter.all()
    );
    Ok(Outcome::Completed)
}

fn several() -> Result<Outcome> {
    let (one, other) = (directory()?, directory()?);
    let first = THREADS.recording(one.path())?;
    let (second, _) = record(other.path(), &[], &words(&periodic("1")))?;
    let (file, ended) = replay(&[&first, &second], "both.timing.json", &[])?;
    ended.expect_code(0)?;
    let both = read(&file)?;
    for folder in [&first, &second] {
        let name = folder.display().to_string();
        let tasks = both
            .tasks()
            .iter()
            .filter(|task| task.recording.as_ref() == Some(&name) && task.name.starts_with("task-"))
            .count();
        ensure!(tasks == 3, "{tasks} tasks of {name}, expected three: {}", ended.all());
    }
    let html = one.path().join("both.html");
    let report = |folders: &[&Path]| -> Result<Ended> {
        let mut report = punctual(["report", "--force", "-o"]);
        report.arg(&html).arg(&file).args(folders);
        run(report)
    };
    // A raster for each of six tasks; for three if one recording is left out.
    for (folders, rasters) in [(&[&*first, &*second][..], 6), (&[&*second], 3)] {
        report(folders)?.expect_code(0)?;
        let text = fs::read_to_string(&html)?;
        let found = text.matches("<h4>Release raster").count();
        ensure!(found == rasters, "{found} rasters, expected {rasters}");
        ensure!(!text.contains("outside of what the model allows"), "jobs are at another recording's tasks");
    }
    let unknown = directory()?;
    let (third, _) = record(unknown.path(), &[], &["true"])?;
    let refused = report(&[&first, &third])?;
    refused.expect_code(2)?;
    ensure!(refused.stderr.contains(&format!("is not of {}", third.display())), "{}", refused.all());
    Ok(Outcome::Completed)
}

fn every_job() -> Result<Outcome> {
    let directory = directory()?;
    let folder = DEMO.recording(directory.path())?;
    let (csv, parquet) = (directory.path().join("jobs.csv"), directory.path().join("jobs.parquet"));
    let list = |path: &Path| -> Result<TimingModel> {
        replayed(&folder, "replayed.timing.json", &["--jobs-out", &path.display().to_string()])
    };
    let model = list(&csv)?;
    list(&parquet)?;
    let text = fs::read_to_string(&csv)?;
    let expected: u64 = model.tasks().iter().flat_map(|task| &task.streams).map(|stream| stream.jobs).sum();
    ensure!(
        text.lines().count() as u64 == expected + 1,
        "{} lines for {expected} jobs and a head",
        text.lines().count()
    );
    let suspending = primary(only_task(&model, "suspending")?)?.jobs;
    let rows =
        text.lines().filter(|line| line.starts_with("suspending,") && line.contains(",true,")).count() as u64;
    ensure!(
        rows == suspending,
        "{rows} jobs of thread suspending at its primary separator, the model has {suspending}"
    );
    ensure!(fs::read(&parquet)?.starts_with(b"PAR1"), "no Parquet file");
    let (_, refused) = replay(&[&folder], "x.timing.json", &["--jobs-out", "jobs.xlsx"])?;
    refused.expect_code(2)?;
    Ok(Outcome::Completed)
}

fn every_switch() -> Result<Outcome> {
    let directory = directory()?;
    let folder = SWITCHES.recording(directory.path())?;
    let Some(events) = events_of(&folder)? else { return skip("no babeltrace2 here") };
    ensure!(events.stderr.is_empty(), "babeltrace2 complains: {}", events.stderr);
    let model = replayed(&folder, "replayed.timing.json", &[])?;
    let task = only_task(&model, "task-0")?;
    let tid = format!("tid = {},", task.tid);
    let of_it = |name: &str| {
        let lines = events.stdout.lines().filter(|line| line.contains(&tid));
        lines.filter(|line| line.contains(&format!(" {name}: "))).count() as u64
    };
    let printed: serde_json::Value = serde_json::from_str(SWITCHES.get()?.ended().stdout.trim())?;
    let slept = printed["task_0_slept"].as_u64().ok_or("the program counted no sleeps")?;
    ensure!(slept > 0, "{printed}");
    // After each sleep it is woken and runs; some machines hide a few wake-ups from all tracers.
    for name in ["switch_in", "switch_out", "woken"] {
        let seen = of_it(name);
        ensure!(seen + slept / 20 + 3 >= slept, "{seen} {name} of a thread that slept {slept} times");
    }
    Ok(Outcome::Completed)
}

/// Every thread that ran is introduced before its first step, and only the watched ones have models.
fn all_threads() -> Result<Outcome> {
    let directory = directory()?;
    let options = ["--detail", "switches", "--all-threads"];
    let (folder, _) = record(directory.path(), &options, &words(&periodic("1")))?;
    let reader = Reader::open(&folder).map_err(|error| error.to_string())?;
    let (mut watched, mut bystanders) = (BTreeSet::new(), BTreeSet::new());
    let (mut steps, mut interrupts, mut strangers) = (0_u64, 0_u64, BTreeSet::new());
    let damage = reader.read(0..reader.stretches(), &mut |record| match record {
        Record::Task(task) | Record::Known(task) => _ = watched.insert(task.tid),
        Record::Bystander(task) => _ = bystanders.insert(task.tid),
        Record::Switch(Switch { step: Step::Taken { .. }, .. }) => interrupts += 1,
        Record::Switch(switch) if watched.contains(&switch.tid) => {}
        Record::Switch(switch) if bystanders.contains(&switch.tid) => steps += 1,
        Record::Switch(switch) => _ = strangers.insert(switch.tid),
        _ => {}
    });
    let damage = damage.map_err(|error| error.to_string())?;
    ensure!(damage.is_empty() && reader.totals().lost == 0, "{damage:?}, {:?}", reader.totals());
    ensure!(strangers.is_empty(), "steps of threads that nothing introduced: {strangers:?}");
    // Punctual itself, and other threads of a running machine.
    ensure!(bystanders.len() > 1 && steps > 10, "{bystanders:?}, {steps} steps");
    // Timers, at least.
    ensure!(interrupts > 10, "{interrupts} interrupts");

    let model = replayed(&folder, "watched.timing.json", &[])?;
    let modelled: BTreeSet<u32> = model.tasks().iter().map(|task| task.tid).collect();
    ensure!(modelled == watched, "models of {modelled:?}, watched were {watched:?}");

    let mut timeline = punctual(["timeline", "-o", "/dev/null"]);
    timeline.arg(&folder);
    let ended = run(timeline)?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains(" not watched"), "{}", ended.all());

    let refused = run(punctual(["record", "--all-threads", "--for", "1", "-o", "/nowhere/at/all"]))?;
    ensure!(refused.code.is_some_and(|code| code != 0), "{}", refused.all());
    Ok(Outcome::Completed)
}

/// On every processor a shell runs that wakes nobody. Timers and the disk interrupt it, and wake the loop.
fn interrupted() -> Result<Outcome> {
    let directory = directory()?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let busy = || {
        let mut busy = Command::new("sh");
        busy.args(["-c", "while :; do :; done"]);
        Running::start(busy)
    };
    let busy: Vec<Running> = (0..processors).map(|_| busy()).collect::<Result<_>>()?;
    let options = ["--detail", "switches", "--all-threads"];
    let (folder, _) = record(directory.path(), &options, &words(&[workload("gate"), "disk".into()]))?;
    let busy: BTreeSet<u32> = busy.iter().map(Running::pid).collect();
    let reader = Reader::open(&folder).map_err(|error| error.to_string())?;
    let (mut watched, mut by_interrupts, mut by_busy) = (BTreeSet::new(), 0, 0);
    let damage = reader.read(0..reader.stretches(), &mut |record| match record {
        Record::Task(task) | Record::Known(task) => _ = watched.insert(task.tid),
        Record::Switch(Switch { tid, step: Step::Woken { by }, .. }) if watched.contains(tid) => {
            by_interrupts += u32::from(*by == 0);
            by_busy += u32::from(busy.contains(by));
        }
        _ => {}
    });
    ensure!(damage.is_ok_and(|damage| damage.is_empty()), "the recording is damaged");
    ensure!(by_interrupts > 10 && by_busy == 0, "woken by interrupts: {by_interrupts}, by shells: {by_busy}");
    Ok(Outcome::Completed)
}

fn timeline() -> Result<Outcome> {
    let directory = directory()?;
    let folder = SWITCHES.recording(directory.path())?;
    let file = directory.path().join("trace.perfetto-trace");
    let mut timeline = punctual(["timeline", "-o"]);
    timeline.arg(&file).arg(&folder);
    let ended = run(timeline)?;
    ended.expect_code(0)?;
    let bytes = fs::read(&file)?;
    // A trace is a sequence of packets, each field 1 with its length; unit tests check their contents.
    ensure!(
        bytes.len() > 10_000 && bytes[0] == 0x0a,
        "{} bytes, beginning with {:?}",
        bytes.len(),
        bytes.first()
    );
    ensure!(bytes.windows(6).any(|name| name == b"task-0"), "the thread's name is not in it");
    // The same around one job.
    let around = |job: &str| {
        let mut timeline = punctual(["timeline", "--force", "--around", job, "-o"]);
        timeline.arg(&file).arg(&folder);
        run(timeline)
    };
    let ended = around("task-0:9")?;
    ended.expect_code(0)?;
    let part = fs::read(&file)?;
    ensure!(ended.stderr.contains("visStart="), "{}", ended.all());
    ensure!(part.len() < bytes.len() / 2, "{} of {} bytes", part.len(), bytes.len());
    // Jobs have the numbers that they have in the whole.
    ensure!(part.windows(5).any(|text| text == b"job 9"), "job 9 is not in it");
    around("task-0:1000000")?.expect_code(2)?;
    around("9th")?.expect_code(2)?;
    Ok(Outcome::Completed)
}

fn page() -> Result<Outcome> {
    let directory = directory()?;
    let folder = THREADS.recording(directory.path())?;
    replayed(&folder, "model.timing.json", &[])?;
    let (model, html) = (directory.path().join("model.timing.json"), directory.path().join("report.html"));
    let mut report = punctual(["report", "-o"]);
    report.arg(&html).arg(&model).arg(&folder);
    run(report)?.expect_code(0)?;
    let text = fs::read_to_string(&html)?;
    ensure!(text.contains("task-0") && text.contains("<html"), "no page");
    let mut refused = punctual(["report", "-o"]);
    refused.arg(&html).arg(&model);
    run(refused)?.expect_code(5)?;
    let mut recording = punctual(["report", "--force", "-o"]);
    recording.arg(&html).arg(&folder);
    // A recording alone is replayed first.
    run(recording)?.expect_code(0)?;
    let text = fs::read_to_string(&html)?;
    ensure!(text.contains("task-0") && text.contains("<h4>Release raster"), "no page of the recording alone");
    Ok(Outcome::Completed)
}

/// As perf writes a file, with the records packed, and with a file for each processor.
fn perf() -> Result<Outcome> {
    for way in [&[][..], &["-z"], &["--threads=cpu", "-z"]] {
        match perf_with(way)? {
            Outcome::Completed => {}
            other => return Ok(other),
        }
    }
    Ok(Outcome::Completed)
}

/// perf loses events where the machine is busy, and says so: then the recording is made again.
fn perf_with(way: &[&str]) -> Result<Outcome> {
    const TRIES: u32 = 3;
    for _ in 0..TRIES {
        if let Some(outcome) = perf_once(way)? {
            return Ok(outcome);
        }
        println!("REPEATED: perf lost events");
    }
    skip(format!("perf lost events {TRIES} times"))
}

/// `None` if events were lost.
fn perf_once(way: &[&str]) -> Result<Option<Outcome>> {
    let directory = directory()?;
    let data = directory.path().join("perf.data");
    // The fewest events that suffice, without perf's own: a busy machine would fill the disk.
    let events = "sched:sched_switch,sched:sched_waking,sched:sched_process_exit,raw_syscalls:*";
    let Some(mut perf) = tool("perf", &["record", "-q", "-a", "-e", events, "--exclude-perf", "-o"]) else {
        return skip("no perf here").map(Some);
    };
    perf.arg(&data).args(way).arg("--").args(periodic("1"));
    let recorded = run(perf)?;
    if !data.exists() {
        return skip(format!(
            "perf cannot record here: {}",
            recorded.stderr.lines().next().unwrap_or_default()
        ))
        .map(Some);
    }
    let folder = directory.path().join("imported");
    let mut import = punctual(["import", "-o"]);
    import.arg(&folder).arg(&data);
    let ended = run(import)?;
    ended.expect_code(0)?;
    let model = replayed(&folder, "imported.timing.json", &[])?;
    if crate::model::threads(&model).lost_records > 0 {
        return Ok(None);
    }
    for (name, period) in [("task-0", 2_000_000), ("task-1", 5_000_000), ("task-2", 10_000_000)] {
        let stream = primary(only_task(&model, name)?)?;
        let found = stream.arrival.periodic.as_ref().map_or(0, |periodic| periodic.period_ns.ns());
        let right = found.abs_diff(period) <= period / 100;
        crate::timing(if right {
            Ok(())
        } else {
            fail(format!("{name} has period {found} ns: {}", ended.all()))
        })?;
    }
    Ok(Some(Outcome::Completed))
}

/// A folder as LiME writes it: a thread with a period of 10 ms that is now and then released late, with some
/// wake-ups missing.
fn lime() -> Result<Outcome> {
    const JOBS: u64 = 300;
    let directory = directory()?;
    let source = directory.path().join("lime");
    fs::create_dir(&source)?;
    let mut events = String::from("[\n");
    for job in 1..=JOBS {
        let arrival = 1_478_000_000_000 + job * 10_000_000;
        let woken = arrival + 1_000 + job * 7_919 % 40_000;
        events += &format!(
            "{{\"ts\":{},\"event\":\"enter_clock_nano_sleep\",\"clock_id\":\"CLOCK_MONOTONIC\",\
             \"abs_time\":true,\"required_ns\":{arrival}}},\n",
            arrival - 9_000_000
        );
        events += &format!(
            "{{\"ts\":{},\"event\":\"sched_switched_out\",\"cpu\":1,\"prio\":60,\"state\":1}},\n",
            arrival - 8_999_000
        );
        if job % 50 != 0 {
            events += &format!("{{\"ts\":{woken},\"event\":\"sched_waking\",\"cpu\":1}},\n");
        }
        events += &format!(
            "{{\"ts\":{},\"event\":\"sched_switched_in\",\"cpu\":1,\"prio\":60,\"preempt\":false}},\n",
            woken + 4_000
        );
        events += &format!("{{\"ts\":{},\"event\":\"exit_arrival_site\",\"ret\":0}},\n", woken + 5_000);
    }
    fs::write(source.join("4711-0.events.json"), events + "{\"ts\":0,\"event\":\"unheard_of\"}\n]\n")?;
    let infos = concat!(
        r#"{"pid":4711,"tgid":4700,"ppid":1,"comm":"lime-task","cmd":"./task","#,
        r#""policy":{"SCHED_FIFO":{"prio":60}},"affinity_mask":2}"#
    );
    fs::write(source.join("4711-0.infos.json"), infos)?;
    let folder = directory.path().join("imported");
    let mut import = punctual(["import", "-o"]);
    import.arg(&folder).arg(&source);
    let ended = run(import)?;
    ended.expect_code(0)?;
    ensure!(
        ended.stderr.matches("unheard_of").count() == 1,
        "what is unknown is to be said once: {}",
        ended.all()
    );
    is_as_documented("LiME", "", &source)?;
    let model = replayed(&folder, "imported.timing.json", &[])?;
    let stream = primary(only_task(&model, "lime-task")?)?;
    let period = stream.arrival.periodic.as_ref().map_or(0, |periodic| periodic.period_ns.ns());
    ensure!(
        (period, stream.releases, stream.uncertain_releases) == (10_000_000, JOBS, JOBS / 50),
        "period {period}: {stream:?}"
    );
    ensure!(model.clock == "CLOCK_BOOTTIME", "{}", model.clock);
    if let Some(events) = events_of(&folder)? {
        ensure!(events.stderr.is_empty(), "babeltrace2 complains: {}", events.stderr);
    }
    Ok(Outcome::Completed)
}

/// Starts to record the three threads and waits until thread task-0 has slept this often.
fn begin(folder: &Path, options: &[&str], jobs: u64) -> Result<Running> {
    let mut record = punctual(["record", "--for", "120s", "-o"]);
    record.arg(folder).args(options).arg("--").args(periodic("100"));
    let recorder = Running::start(record)?;
    let slept = || children(recorder.pid()).into_iter().find_map(|pid| sleeps(pid, "task-0"));
    wait_until("the workload to run", || slept().is_some_and(|sleeps| sleeps > jobs))?;
    Ok(recorder)
}

fn end_workload(recorder: &Running) -> Result {
    for pid in children(recorder.pid()) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM)?;
        }
    }
    Ok(())
}

fn killed() -> Result<Outcome> {
    let directory = directory()?;
    let folder = directory.path().join("recording");
    let recorder = begin(&folder, &[], 1500)?;
    let workload: Vec<u32> = children(recorder.pid());
    recorder.signal(Signal::KILL)?;
    for pid in workload {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM)?;
        }
    }
    let killed = recorder.end()?;
    ensure!(killed.code.is_none(), "it was to be killed: {}", killed.all());
    let (file, ended) = replay(&[&folder], "replayed.timing.json", &[])?;
    ended.expect_code(0)?;
    ensure!(
        ended.stderr.contains("cut off") || ended.stderr.contains("did not end"),
        "it does not say that the end is missing: {}",
        ended.all()
    );
    // Everything except the packets not yet written: the last second or two of three.
    let jobs = primary(only_task(&read(&file)?, "task-0")?)?.jobs;
    ensure!(jobs > 300, "{jobs} jobs of more than 1,500");
    Ok(Outcome::Completed)
}

fn streams(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("stream_")));
    files.sort();
    ensure!(!files.is_empty(), "there is no stream in {}", folder.display());
    Ok(files)
}

fn cut_off() -> Result<Outcome> {
    let directory = directory()?;
    let (folder, _) = record(directory.path(), &[], &words(&periodic("2.5")))?;
    let whole = replayed(&folder, "whole.timing.json", &[])?;
    let stream = &streams(&folder)?[0];
    let length = fs::metadata(stream)?.len();
    fs::OpenOptions::new().write(true).open(stream)?.set_len(length - 100)?;
    let (file, ended) = replay(&[&folder], "cut.timing.json", &[])?;
    ended.expect_code(0)?;
    ensure!(
        ended.stderr.contains("stream_0") && ended.stderr.contains("cut off"),
        "it does not say what is missing: {}",
        ended.all()
    );
    let cut = read(&file)?;
    ensure!(threads(&cut).records <= threads(&whole).records, "more than there was");
    ensure!(threads(&cut).records > threads(&whole).records / 4, "more than the last packet is missing");
    Ok(Outcome::Completed)
}

fn flipped() -> Result<Outcome> {
    let directory = directory()?;
    let folder = THREADS.recording(directory.path())?;
    let stream = &streams(&folder)?[0];
    let mut bytes = fs::read(stream)?;
    let place = bytes.len() / 2;
    bytes[place] ^= 0x10;
    fs::write(stream, &bytes)?;
    let (_, ended) = replay(&[&folder], "flipped.timing.json", &[])?;
    ended.expect_code(0)?;
    // A checksum shows which packet is damaged, but not where. Of the last packet, even its number is in
    // doubt.
    let left_out = ended.stderr.split("bytes ").nth(1).and_then(|rest| rest.split_once(" to "));
    let bounds = left_out.and_then(|(from, rest)| {
        let to = rest.split(|end: char| !end.is_ascii_digit()).next()?;
        Some(from.parse::<usize>().ok()?..to.parse::<usize>().ok()?)
    });
    let is_named = bounds.is_some_and(|bounds| bounds.contains(&place)) && ended.stderr.contains("stream_0");
    ensure!(is_named, "the packet with byte {place} is not named: {}", ended.all());
    Ok(Outcome::Completed)
}

fn disk_full() -> Result<Outcome> {
    let directory = directory()?;
    let mount = directory.path().join("small");
    fs::create_dir(&mount)?;
    let Some(mut mounted) = tool("mount", &["-t", "tmpfs", "-o", "size=1M", "none"]) else {
        return skip("no mount here");
    };
    if !mounted.arg(&mount).status()?.success() {
        return skip("no tmpfs can be mounted here");
    }
    let folder = mount.join("recording");
    let check = || -> Result {
        let mut record = punctual(["record", "--for", "60s", "-o"]);
        record.arg(&folder).args(["--", &workload("pingpong"), "--for", "20"]);
        let ended = run(record)?;
        ended.expect_code(5)?;
        ensure!(ended.stderr.contains("replay"), "it does not say what is left: {}", ended.all());
        // The model goes elsewhere: this disk is full.
        let file = directory.path().join("full.timing.json");
        let mut replay = punctual(["replay", "-q", "-o"]);
        replay.arg(&file).arg(&folder);
        run(replay)?.expect_code(0)?;
        let jobs = primary(only_task(&read(&file)?, "ping")?)?.jobs;
        ensure!(jobs > 1000, "{jobs} jobs on a disk with room for thousands");
        // A short list may still fit where a packet did not.
        ensure!(fs::write(mount.join("rest"), vec![1; 1 << 20]).is_err(), "the disk was not full");
        for name in ["jobs.csv", "jobs.parquet"] {
            let list = mount.join(name);
            let mut replay = punctual(["replay", "-q", "--jobs-out"]);
            replay.arg(&list).arg(&folder);
            let ended = run(replay)?;
            ended.expect_code(5)?;
            let beginning = format!(
                "punctual: {}: cannot write the job list: no space left on device; make room",
                list.display()
            );
            let last = ended.stderr.lines().last().unwrap_or_default();
            ensure!(
                last.starts_with(&beginning) && !last.contains(".punctual-"),
                "expected {beginning}: {}",
                ended.all()
            );
        }
        Ok(())
    };
    let checked = check();
    if let Some(mut unmount) = tool("umount", &[]) {
        unmount.arg(&mount).status()?;
    }
    checked?;
    Ok(Outcome::Completed)
}

fn folder_in_use() -> Result<Outcome> {
    let directory = directory()?;
    let (folder, _) = record(directory.path(), &[], &["true"])?;
    let again = |options: &[&str]| -> Result<Ended> {
        let mut record = punctual(["record", "-o"]);
        record.arg(&folder).args(options).args(["--", "true"]);
        run(record)
    };
    again(&[])?.expect_code(5)?;
    again(&["--force"])?.expect_code(0)?;
    fs::write(folder.join("thesis.tex"), "years of work")?;
    again(&["--force"])?.expect_code(5)?;
    ensure!(folder.join("thesis.tex").exists(), "what is no recording was taken away");
    let (_, refused) = replay(&[directory.path()], "x.timing.json", &[])?;
    refused.expect_code(5)?;
    Ok(Outcome::Completed)
}

fn limit() -> Result<Outcome> {
    const LIMIT: u64 = 8 << 20;
    let directory = directory()?;
    let folder = directory.path().join("recording");
    let mut record = punctual(["record", "--detail", "switches", "--limit", "8MiB", "-o"]);
    record.arg(&folder).args(["--", &workload("pingpong"), "--for", "30"]);
    let recorder = Running::start(record)?;
    // The second part is there once half of what is allowed is full; the first goes once all of it is.
    let is_dropped = || {
        let parts = streams(&folder).unwrap_or_default();
        !parts.is_empty() && !parts.contains(&folder.join("stream_0"))
    };
    let process = PathBuf::from(format!("/proc/{}", recorder.pid()));
    wait_until("the oldest part to be dropped", || is_dropped() || !process.exists())?;
    end_workload(&recorder)?;
    let recorded = recorder.end()?;
    recorded.expect_code(0)?;
    if !is_dropped() {
        // An emulated machine is that slow.
        return skip(format!("this machine makes too little to fill a recording: {}", recorded.stdout));
    }
    let bytes: u64 =
        streams(&folder)?.iter().map(|path| fs::metadata(path).map_or(0, |data| data.len())).sum();
    ensure!(bytes <= LIMIT, "{bytes} bytes");
    ensure!(
        bytes >= LIMIT / 2,
        "{bytes} bytes: it dropped more than it had to, or there was too little: {}",
        recorded.all()
    );
    ensure!(recorded.stderr.contains("limit"), "it does not say that the oldest is gone: {}", recorded.all());
    let (file, ended) = replay(&[&folder], "limited.timing.json", &[])?;
    ended.expect_code(0)?;
    ensure!(
        ended.stderr.contains("oldest"),
        "the recording does not know that its oldest part is gone: {}",
        ended.all()
    );
    let model = read(&file)?;
    let found = tasks(&model, "ping");
    // Where a busy machine loses records, the gap ends one task and begins another.
    ensure!(found.len() == 1 || threads(&model).lost_records > 0, "{} tasks, none by a loss", found.len());
    let jobs: u64 = found.iter().filter_map(|task| primary(task).ok()).map(|stream| stream.jobs).sum();
    let ended_by = found.last().map(|task| task.ended_by);
    ensure!(jobs > 10_000 && ended_by == Some(EndedBy::Exit), "{jobs} jobs, {ended_by:?}");
    if let Some(events) = events_of(&folder)? {
        ensure!(events.stderr.is_empty(), "babeltrace2 complains: {}", events.stderr);
    }
    Ok(Outcome::Completed)
}

fn lost_in_babeltrace2() -> Result<Outcome> {
    let directory = directory()?;
    let folder = directory.path().join("recording");
    let mut record = punctual(["record", "--for", "120s", "--buffer", "64KiB", "-o"]);
    record.arg(&folder).args(["--", &workload("pingpong"), "--for", "100"]);
    let reader = Running::start(record)?;
    let workload = Cell::new(0);
    let slept = || {
        children(reader.pid()).into_iter().find_map(|pid| sleeps(pid, "ping").inspect(|_| workload.set(pid)))
    };
    wait_until("the workload to run", || slept().is_some_and(|sleeps| sleeps > 1000))?;
    reader.signal(Signal::STOP)?;
    let so_far = slept().unwrap_or(0);
    let more = wait_until("more records than fit", || slept().is_some_and(|sleeps| sleeps > so_far + 20_000));
    reader.signal(Signal::CONT)?;
    more?;
    end_workload(&reader)?;
    let ended = reader.end()?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains("lost"), "it does not say that records were lost: {}", ended.all());
    let model = replayed(&folder, "lost.timing.json", &[])?;
    ensure!(threads(&model).lost_records > 10_000, "{} records lost", threads(&model).lost_records);
    let Some(events) = events_of(&folder)? else { return skip("no babeltrace2 here") };
    ensure!(events.stderr.contains("discarded"), "babeltrace2 does not know of them: {}", events.stderr);
    Ok(Outcome::Completed)
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The current reader against an old recording: finds the known timing of its threads.
fn sample() -> Result<Outcome> {
    let directory = directory()?;
    let (file, sample) =
        (directory.path().join("sample.timing.json"), project().join("tests/recordings/demo"));
    let mut replay = punctual(["replay", "-o"]);
    replay.arg(&file).arg(&sample);
    run(replay)?.expect_code(0)?;
    let model = read(&file)?;
    let truth: serde_json::Value =
        serde_json::from_slice(&fs::read(project().join("tests/recordings/demo.truth.json"))?)?;
    let mut periodic = 0;
    for row in truth.as_array().map(Vec::as_slice).unwrap_or_default() {
        let task = only_task(&model, row["thread"].as_str().unwrap_or_default())?;
        let found = primary(task)?.arrival.periodic.as_ref().map_or(0, |periodic| periodic.period_ns.ns());
        if row["kind"] == "periodic" {
            periodic += 1;
            ensure!(
                row["period_ns"].as_u64() == Some(found),
                "{} has period {found} ns, configured {}",
                task.name,
                row["period_ns"]
            );
        }
    }
    ensure!(periodic >= 15, "{periodic} periodic threads");
    Ok(Outcome::Completed)
}

fn demonstration() -> Result<Outcome> {
    let Some(mut demo) = tool("setpriv", &crate::circumstances::NOBODY) else {
        return skip("no setpriv here");
    };
    let directory = directory()?;
    let copy = |from: &str| -> Result {
        let to = directory.path().join(from);
        fs::create_dir_all(to.parent().unwrap_or(directory.path()))?;
        fs::copy(project().join(from), to)?;
        Ok(())
    };
    for file in [
        "scripts/demo",
        "tests/recordings/demo/metadata",
        "tests/recordings/demo/stream_0",
        "tests/recordings/demo.truth.json",
    ] {
        copy(file)?;
    }
    let anyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(directory.path(), anyone)?;
    let punctual = crate::circumstances::for_anyone(directory.path())?;
    demo.arg(directory.path().join("scripts/demo"))
        .env("PUNCTUAL", punctual)
        .env("WORKLOADS", "nowhere")
        .env_remove("SUDO");
    let ended = run(demo)?;
    ended.expect_code(0)?;
    ensure!(
        ended.stdout.contains("made on another machine"),
        "it does not say that it replays: {}",
        ended.all()
    );
    ensure!(ended.stdout.contains("15 of 15 periods found exactly"), "{}", ended.all());
    ensure!(directory.path().join("demo.html").exists(), "no report: {}", ended.all());
    Ok(Outcome::Completed)
}
