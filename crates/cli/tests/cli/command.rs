//! The built command as people type it, where neither privileges nor a particular kernel are needed.

use parquet::file::reader::{FileReader, SerializedFileReader};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A recording that comes with the project.
fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/demo")
}

fn punctual(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    punctual(arguments).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with the recording's timing model.
struct Fixture {
    folder: tempfile::TempDir,
    model: String,
    recording: String,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a directory");
        let model = folder.path().join("demo.timing.json").display().to_string();
        let recording = recording().display().to_string();
        let output = run(&["replay", "-q", &recording, "-o", &model]);
        assert!(output.status.success(), "{output:?}");
        Fixture { folder, model, recording }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// The names of the threads in a model that was printed as JSON.
fn threads(json: &[u8]) -> Vec<String> {
    let model = punctual_model::TimingModel::from_json(&text(json)).expect("a model");
    let mut names: Vec<String> = model.tasks().iter().map(|task| task.name.clone()).collect();
    names.dedup();
    names
}

#[test]
fn a_summary_of_no_thread_is_an_error() {
    let fixture = Fixture::new();
    let path = fixture.path("none.summary");
    let output = run(&["summarize", &fixture.recording, "--thread", "zz*", "-o", &path]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stderr).contains("has no thread that matches --thread 'zz*'"), "{output:?}");
    assert!(!Path::new(&path).exists());
}

/// The threads that there are instead are named, and nothing is left behind.
#[test]
fn an_import_of_no_thread_is_an_error() {
    let place = tempfile::tempdir().expect("a directory");
    let switch = "sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> \
                  next_comm=control next_pid=40 next_prio=39";
    let source = place.path().join("trace.txt");
    fs::write(&source, format!("  <idle>-0 [000] 1.000000: {switch}\n")).expect("written");
    let (source, folder) = (source.display().to_string(), place.path().join("imported"));
    let import =
        |pattern| run(&["import", &source, "--thread", pattern, "-o", &folder.display().to_string()]);
    let output = import("zz*");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("has no thread that matches --thread 'zz*'"), "{said}");
    assert!(said.contains("its threads are control"), "{said}");
    assert!(!folder.exists());
    assert_eq!(import("con*").status.code(), Some(0));
    assert!(folder.join("metadata").is_file());
}

/// Others alone have no models.
#[test]
fn an_import_without_real_time_threads_is_an_error() {
    let place = tempfile::tempdir().expect("a directory");
    let switch = "sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> \
                  next_comm=shell next_pid=40 next_prio=120";
    let text_of = place.path().join("\u{1b}[31mred.txt");
    fs::write(&text_of, format!("  <idle>-0 [000] 1.000000: {switch}\n")).expect("written");
    let (source, folder) = (text_of.display().to_string(), place.path().join("imported"));
    let import = |options: &[&str]| {
        run(&[&["import", &source, "-o", &folder.display().to_string()], options].concat())
    };
    let output = import(&[]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("has no real-time threads to import"), "{said}");
    assert!(said.contains("--include-best-effort imports the others too"), "{said}");
    assert!(said.contains("\\u{1b}[31mred.txt") && !said.contains('\u{1b}'), "{said}");
    assert!(!folder.exists());
    assert_eq!(import(&["--include-best-effort"]).status.code(), Some(0));
}

#[test]
fn an_import_reads_standard_input() {
    let place = tempfile::tempdir().expect("a directory");
    let switch = "sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> \
                  next_comm=control next_pid=40 next_prio=39";
    let source = place.path().join("trace.txt");
    fs::write(&source, format!("  <idle>-0 [000] 1.000000: {switch}\n")).expect("written");
    let import = |arguments: &[&str]| {
        let input = File::open(&source).expect("opened");
        punctual(&[&["import", "-"], arguments].concat()).stdin(input).output().expect("it runs")
    };
    let refused = import(&[]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("give it one with -o DIR"));
    let folder = place.path().join("my run").display().to_string();
    let imported = import(&["-o", &folder]);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    assert!(text(&imported.stderr).contains(&format!("punctual replay '{folder}' extracts")));
    let json = import(&["-o", &folder, "--force", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["source"], "-");
}

#[test]
fn a_command_without_arguments_prints_its_help() {
    for (arguments, usage) in [
        (&[][..], "Usage: punctual <COMMAND>"),
        (&["rules"], "Usage: punctual rules"),
        (&["ctl"], "Usage: punctual ctl"),
        (&["flow-probes"], "Usage: punctual flow-probes"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(text(&output.stdout).contains(usage) && output.stderr.is_empty(), "{output:?}");
    }
    assert_eq!(run(&["show"]).status.code(), Some(2), "a missing file is an error");
}

#[test]
fn best_effort_threads_need_a_target() {
    for command in ["extract", "record"] {
        let folder = tempfile::tempdir().expect("a directory");
        let output = punctual(&[command, "--include-best-effort", "--for", "1"])
            .current_dir(&folder)
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let message = text(&output.stderr);
        assert!(message.contains("--pid, --cgroup or -- COMMAND"), "{message}");
        assert_eq!(fs::read_dir(&folder).expect("there").count(), 0, "something was left behind");
    }
}

#[test]
fn output_to_a_file_keeps_the_table() {
    let fixture = Fixture::new();
    let file = fixture.path("again.timing.json");
    let written = run(&["replay", &fixture.recording, "-o", &file]);
    assert!(written.status.success(), "{written:?}");
    assert_eq!(text(&written.stdout), text(&run(&["replay", &fixture.recording]).stdout));
    assert!(text(&written.stderr).contains(&format!("Wrote {file}")), "{written:?}");
    let quiet = run(&["replay", "-q", &fixture.recording, "-o", &fixture.path("quiet.timing.json")]);
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty(), "{quiet:?}");
    // Standard output has the model alone.
    let printed = run(&["replay", &fixture.recording, "-o", "-"]);
    assert_eq!(threads(&printed.stdout), threads(&fs::read(&file).expect("written")));
}

#[test]
fn threads_are_chosen_by_pattern_everywhere() {
    let fixture = Fixture::new();
    let all = threads(&run(&["show", "--json", &fixture.model]).stdout);
    let some: Vec<String> = all.iter().filter(|name| name.starts_with('s')).cloned().collect();
    assert!(!some.is_empty() && some.len() < all.len(), "{all:?}");
    let other = all.iter().find(|name| !name.starts_with('s')).expect("another");

    for arguments in [
        &["show", "--json", "--thread", "s*", &fixture.model][..],
        &["replay", "--json", "--thread", "s*", &fixture.recording],
    ] {
        assert_eq!(threads(&run(arguments).stdout), some, "{arguments:?}");
    }
    let table = text(&run(&["show", "--thread", "s*", &fixture.model]).stdout);
    assert!(some.iter().all(|name| table.contains(name.as_str())) && !table.contains(other.as_str()));
    let copy = fixture.path("copy.timing.json");
    fs::copy(&fixture.model, &copy).expect("copied");
    let compared = text(&run(&["compare", "--json", "--thread", "s*", &fixture.model, &copy]).stdout);
    assert!(compared.contains(&some[0]) && !compared.contains(other.as_str()), "{compared}");

    let page = fixture.path("page.html");
    let report = run(&["report", "-q", "--thread", "s*", &fixture.model, &fixture.recording, "-o", &page]);
    assert!(report.status.success() && report.stderr.is_empty(), "{report:?}");
    let page = fs::read_to_string(page).expect("written");
    assert!(page.contains(&some[0]) && !page.contains(other.as_str()));

    let list = fixture.path("jobs.csv");
    let listed = run(&["replay", "-q", "--json", "--thread", "s*", "--jobs-out", &list, &fixture.recording]);
    assert!(listed.status.success(), "{listed:?}");
    let list = fs::read_to_string(list).expect("written");
    assert!(list.lines().count() > 10 && list.lines().skip(1).all(|line| line.starts_with('s')), "{list}");

    let timeline = |options: &[&str], name: &str| {
        let path = fixture.path(name);
        let output = run(&[&["timeline", &fixture.recording, "-o", &path][..], options].concat());
        assert!(output.status.success(), "{output:?}");
        fs::read(path).expect("written")
    };
    let contains = |bytes: &[u8], name: &str| bytes.windows(name.len()).any(|part| part == name.as_bytes());
    let (whole, part) = (timeline(&[], "whole"), timeline(&["--thread", "s*"], "part"));
    assert!(contains(&whole, other) && contains(&part, &some[0]) && !contains(&part, other));

    for arguments in [
        &["show", "--thread", "nobody", &fixture.model][..],
        &["replay", "--thread", "nobody", &fixture.recording],
        &["compare", "--thread", "nobody", &fixture.model, &copy],
        &["report", "--thread", "nobody", &fixture.model, "-o", "-"],
        &["timeline", "--thread", "nobody", &fixture.recording, "-o", "-"],
    ] {
        let output = run(arguments);
        let message = text(&output.stderr);
        assert!(output.status.code() == Some(4) && message.contains("'nobody'"), "{arguments:?}: {message}");
    }
    assert_eq!(run(&["show", "--thread", "[a", &fixture.model]).status.code(), Some(2));
}

/// Rows of all Parquet files below a folder, and the names of the folders that hold them.
fn rows_below(folder: &Path) -> (i64, Vec<String>) {
    let (mut rows, mut names) = (0, Vec::new());
    for run in fs::read_dir(folder).expect("a folder") {
        for task in fs::read_dir(run.expect("an entry").path()).expect("a folder of tasks") {
            let path = task.expect("an entry").path();
            let file = File::open(path.join("jobs.parquet")).expect("a file");
            let reader = SerializedFileReader::new(file).expect("Parquet");
            rows += reader.metadata().file_metadata().num_rows();
            names.push(path.file_name().expect("a name").to_string_lossy().into_owned());
        }
    }
    (rows, names)
}

#[test]
fn jobs_are_listed_and_partitioned() {
    let fixture = Fixture::new();
    let list = fixture.path("jobs.csv");
    assert!(run(&["replay", "-q", "--json", "--jobs-out", &list, &fixture.recording]).status.success());
    let printed = run(&["jobs", "-q", &fixture.recording]);
    assert!(printed.status.success() && printed.stderr.is_empty(), "{printed:?}");
    assert_eq!(text(&printed.stdout), fs::read_to_string(&list).expect("written"));
    let primary = text(&run(&["jobs", "-q", "--primary", &fixture.recording]).stdout);
    let is_primary = |line: &&str| line.split(',').any(|entry| entry == "true");
    let rows = text(&printed.stdout).lines().skip(1).filter(is_primary).count();
    assert!(rows > 10 && primary.lines().skip(1).count() == rows, "{rows}");

    let folder = fixture.path("jobs");
    let partition = |recordings: &[&str], options: &[&str]| {
        run(&[&["jobs", "--partitioned", &folder], options, recordings].concat())
    };
    let refused = partition(&[&fixture.recording, &fixture.recording], &[]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(!Path::new(&folder).exists());
    let written = partition(&[&fixture.recording], &["--primary"]);
    assert!(written.status.success(), "{written:?}");
    let (found, tasks) = rows_below(Path::new(&folder));
    assert_eq!(found, i64::try_from(rows).expect("few"));
    assert!(tasks.len() > 3 && tasks.iter().all(|name| name.starts_with("task=")), "{tasks:?}");

    let again = partition(&[&fixture.recording], &[]);
    assert!(text(&again.stderr).contains("--force"), "{again:?}");
    assert!(partition(&[&fixture.recording], &["--force", "--thread", "s*"]).status.success());
    assert!(rows_below(Path::new(&folder)).1.iter().all(|name| name.starts_with("task=s")));
    assert_eq!(run(&["jobs", &fixture.recording, &fixture.recording]).status.code(), Some(2));
    assert_eq!(run(&["jobs", &fixture.model]).status.code(), Some(5));
}

#[test]
fn summaries_merge_to_the_model_of_a_replay() {
    let fixture = Fixture::new();
    let (one, again) = (fixture.path("one.summary"), fixture.path("again.summary"));
    let made = run(&["summarize", "-q", &fixture.recording, "-o", &one]);
    assert!(made.status.success() && made.stdout.is_empty(), "{made:?}");
    assert!(run(&["merge", "-q", &one, "-o", &again]).status.success());
    assert_eq!(fs::read(&one).expect("written"), fs::read(&again).expect("written"));
    let merged = run(&["merge", "-q", "--json", &again]);
    assert!(merged.status.success(), "{merged:?}");
    let read = |json: &str| punctual_model::TimingModel::from_json(json).expect("a model");
    let replayed = read(&fs::read_to_string(&fixture.model).expect("written"));
    let found = read(&text(&merged.stdout));
    let threads = |model: &punctual_model::TimingModel| {
        let threads = model.threads.clone().expect("threads");
        (threads.records, threads.from_ns, threads.until_ns, threads.stolen_ns)
    };
    assert_eq!((threads(&found), &found.platform), (threads(&replayed), &replayed.platform));
    let alone: Vec<_> = found.tasks().iter().filter(|task| task.pid != 0).collect();
    assert!(alone.len() > 3 && alone.iter().all(|task| replayed.tasks().contains(task)));

    // The halves of a recording are two runs.
    let halves = [["--until", "1"], ["--from", "1"]].map(|range| {
        let half = fixture.path(&format!("half{}.summary", range[0]));
        let made = run(&["summarize", "-q", &fixture.recording, range[0], range[1], "-o", &half]);
        assert!(made.status.success(), "{made:?}");
        half
    });
    let [first, second] = &halves;
    let forwards = run(&["merge", "-q", "--json", first, second]);
    assert_eq!(forwards.stdout, run(&["merge", "-q", "--json", second, first]).stdout);
    let blame = run(&["merge", "-q", "--blame", first, second]);
    assert!(text(&blame.stdout).contains("response time"), "{blame:?}");

    // A part of a run beside the run: told, and merged.
    let part = run(&["merge", "-q", first, &one]);
    assert!(part.status.success() && text(&part.stderr).contains("overlap in time"), "{part:?}");
    let twice = run(&["merge", &one, &again]);
    assert_eq!(twice.status.code(), Some(2), "{twice:?}");
    assert!(text(&twice.stderr).contains("would count twice"), "{twice:?}");
    let phases = run(&["merge", &one, "--phases", "-o", &fixture.path("phases.summary")]);
    assert_eq!(phases.status.code(), Some(2), "{phases:?}");
    for wrong in [&fixture.recording, &fixture.model, "/dev/zero"] {
        let refused = run(&["merge", wrong]);
        assert_eq!(refused.status.code(), Some(5), "{refused:?}");
        assert!(text(&refused.stderr).contains("punctual summarize"), "{refused:?}");
    }
}

#[test]
fn a_folder_that_holds_recordings_is_not_called_one() {
    let fixture = Fixture::new();
    let inside = fixture.path("mixed");
    fs::create_dir_all(Path::new(&inside).join("copy")).expect("made");
    for file in fs::read_dir(&fixture.recording).expect("a recording") {
        let file = file.expect("a file");
        fs::copy(file.path(), Path::new(&inside).join("copy").join(file.file_name())).expect("copied");
    }
    let refused = |source: &str| {
        let refused = run(&["import", source, "-o", &fixture.path("imported")]);
        assert_eq!(refused.status.code(), Some(5), "{refused:?}");
        text(&refused.stderr).to_owned()
    };
    assert!(
        refused(&fixture.recording).contains("is a recording or trace of Punctual's own: other commands")
    );
    assert!(refused(&inside).contains("holds a recording or trace of Punctual's own; name the"));
}

#[test]
fn an_import_says_what_the_trace_had_and_lacks() {
    let fixture = Fixture::new();
    let source = fixture.path("ftrace.txt");
    let line = |at: u32, event: &str| format!("  loop-40  [000] d..2.  10.{at:06}: {event}\n");
    let sleeps = "sched_switch: prev_comm=loop prev_pid=40 prev_prio=39 prev_state=S ==> next_comm=swapper \
                  next_pid=0 next_prio=120";
    let lines = line(7, "timer_start: timer=1") + &line(8, sleeps) + &line(9, "timer_start: timer=1");
    fs::write(&source, lines).expect("written");
    let import = |options: &[&str]| {
        let folder = fixture.path("imported");
        let imported = run(&[&["import", &source, "-o", &folder, "--force"], options].concat());
        assert!(imported.status.success(), "{imported:?}");
        imported
    };
    let table = import(&[]);
    let printed = text(&table.stdout);
    let rows: Vec<&str> = printed.lines().collect();
    let starts = |start: &str| rows.iter().any(|row| row.starts_with(start));
    assert!(
        starts("execution times  sched_switch 1") && starts("not read         timer_start 2"),
        "{rows:?}"
    );
    let lacks = |row: &&str| row.contains(" system calls ") && row.ends_with(" every sleep ends a job");
    assert!(rows.iter().any(lacks), "{rows:?}");
    assert!(rows.last().is_some_and(|row| row.starts_with("To record what is missing: trace-cmd ")));
    assert!(import(&["--quiet"]).stdout.is_empty());
    let json: serde_json::Value = serde_json::from_slice(&import(&["--json"]).stdout).expect("JSON");
    let [trace] = json["traces"].as_array().expect("traces").as_slice() else { panic!("{json}") };
    assert_eq!(trace["events"][0]["name"], "timer_start");
    assert!(trace["missing"].as_array().is_some_and(|all| all.iter().any(|it| it["what"] == "sched_waking")));
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("/dev/full")
}

/// Commands that write to standard output, standard error, or both.
fn talkative(fixture: &Fixture) -> Vec<Vec<String>> {
    let file = |name: &str| fixture.path(name);
    let (model, recording) = (fixture.model.clone(), fixture.recording.clone());
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    vec![
        words(&[]),
        words(&["--help"]),
        words(&["no-such-command"]),
        words(&["completions", "bash"]),
        words(&["show", &model]),
        words(&["show", &model, "--json"]),
        words(&["show", "/no/such/file"]),
        words(&["replay", &recording]),
        words(&["replay", &recording, "--force", "-o", &file("full.timing.json")]),
        words(&["replay", &recording, "-o", "-"]),
        words(&["report", &model, "-o", "-"]),
        words(&["report", &model, "--force", "-o", &file("full.html")]),
        words(&["timeline", &recording, "-o", "-"]),
        words(&["timeline", &recording, "--force", "-o", &file("full.perfetto-trace")]),
        words(&["jobs", &recording]),
        words(&["rules", "check", "/no/such/file"]),
    ]
}

#[test]
fn streams_that_cannot_be_written_cause_no_panic() {
    let fixture = Fixture::new();
    for arguments in talkative(&fixture) {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let normal = run(&arguments);
        let silent = punctual(&arguments).stderr(full()).output().expect("it runs");
        assert_eq!(silent.status.code(), normal.status.code(), "standard error is full: {arguments:?}");
        assert_eq!(text(&silent.stdout), text(&normal.stdout), "standard error is full: {arguments:?}");

        let unwritten = punctual(&arguments).stdout(full()).output().expect("it runs");
        let message = text(&unwritten.stderr);
        assert!(!message.contains("bug"), "{arguments:?}: {message}");
        if !normal.stdout.is_empty() {
            assert_eq!(unwritten.status.code(), Some(5), "{arguments:?}: {message}");
            assert!(message.contains("standard output"), "{arguments:?}: {message}");
        }
        let neither = punctual(&arguments).stdout(full()).stderr(full()).output().expect("it runs");
        assert_eq!(neither.status.code(), unwritten.status.code(), "{arguments:?}");
    }
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let fixture = Fixture::new();
    for arguments in talkative(&fixture) {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let normal = run(&arguments);
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        drop(reader);
        let output = punctual(&arguments).stdout(writer).output().expect("it runs");
        assert_eq!(output.status.code(), normal.status.code(), "{arguments:?}: {output:?}");
        let message = text(&output.stderr).to_lowercase();
        assert!(!message.contains("pipe") && !message.contains("bug"), "{arguments:?}: {message}");

        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        drop(reader);
        let output = punctual(&arguments).stderr(writer).output().expect("it runs");
        assert_eq!(output.status.code(), normal.status.code(), "{arguments:?}");
    }
}

/// The numbers of the paper's Figure 24.
fn figure_24() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/figure-24.timing.json").display().to_string()
}

#[test]
fn a_bound_is_computed_from_a_timing_model() {
    let (model, folder) = (figure_24(), tempfile::tempdir().expect("a directory"));
    let output = run(&["latency", &model]);
    assert!(output.status.success(), "{output:?}");
    let table = text(&output.stdout);
    assert!(
        table.contains("Bound: 98.042 µs, on CPU 1") && table.contains("42.212 µs → 97.741 µs → 98.042 µs")
    );
    let shown = text(&run(&["show", &model]).stdout);
    assert!(shown.contains("Bound: 98.042 µs"), "{shown}");
    let json: serde_json::Value =
        serde_json::from_slice(&run(&["latency", "--json", &model]).stdout).expect("JSON");
    assert_eq!(json["processors"][0]["bound_ns"], 98_042);
    // Another run, of another processor.
    let path = |name: &str| folder.path().join(name).display().to_string();
    let other = fs::read_to_string(&model).expect("read").replace("\"cpu\": 1", "\"cpu\": 3");
    fs::write(path("other"), other).expect("written");
    let output = run(&["latency", "-q", &model, &path("other"), "-o", &path("both")]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let output = run(&["latency", &path("both"), "--cpus", "3"]);
    let table = text(&output.stdout);
    assert!(table.contains("on CPU 3") && !table.contains("CPU 1\n"), "{table}");
    // Of another machine or kernel; and the same under another name.
    let content = fs::read_to_string(&model).expect("read");
    let later = content.replace("\"from_ns\": 1000000000,", "\"from_ns\": 2000000000,");
    assert_ne!(later, content);
    fs::write(path("copy"), &content).expect("written");
    fs::write(path("later"), &later).expect("written");
    fs::write(path("machine"), later.replace("x86_64", "aarch64")).expect("written");
    fs::write(path("kernel"), later.replace("5.2.21-rt14", "5.2.22-rt14")).expect("written");
    fs::write(path("broken"), &content[..content.len() / 2]).expect("written");
    assert_eq!(run(&["latency", &model, &path("later")]).status.code(), Some(0));
    for (arguments, code, words) in [
        (vec!["latency", &model, &path("copy")], 5, "are the same observation"),
        (vec!["latency", &model, &path("machine")], 5, "another machine (aarch64, not x86_64)"),
        (vec!["latency", &model, &path("kernel")], 5, "kernel 5.2.22-rt14, not 5.2.21-rt14"),
        (vec!["latency", &path("broken")], 5, "broken"),
        (vec!["latency", &path("none")], 5, "none"),
        (vec!["latency", &path(".")], 5, ""),
        (vec!["latency", &model, "--cpus", "2"], 4, "no latency of processor 2"),
        (vec!["latency", &model, &model], 2, "is given twice"),
        (vec!["latency", &model, "--measure", "off"], 2, "cannot be used with"),
        (vec!["latency", &model, "--json", "-o", "-"], 2, "both write to standard output"),
        (vec!["latency", "--cpus", "1-0", &model], 2, "expected processors such as 0-1,4"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output.stderr).contains(words), "{output:?}");
    }
    let fixture = Fixture::new();
    let output = run(&["latency", &fixture.model]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(text(&output.stderr).contains("has no section `latency`"), "{output:?}");
}

#[test]
fn a_measured_latency_above_its_bound_has_its_own_exit_code() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("above.timing.json").display().to_string();
    let above = fs::read_to_string(figure_24()).expect("read").replace(": 27000", ": 98043");
    fs::write(&path, above).expect("written");
    let output = run(&["latency", &path]);
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    assert!(text(&output.stdout).contains("MEASURED ABOVE THE BOUND"), "{output:?}");
    assert!(text(&output.stderr).contains("measuring/1 on CPU 1: 98.043 µs"), "{output:?}");
}

/// Some terminals know their width but not their height.
#[test]
fn tables_fit_a_terminal_with_zero_rows() {
    let fixture = Fixture::new();
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&controller).expect("granted");
    unlockpt(&controller).expect("unlocked");
    let path = ptsname(&controller, Vec::new()).expect("a name");
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let terminal = OpenOptions::new().read(true).write(true).open(path).expect("its other end");
    let size = Winsize { ws_row: 0, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("a size");
    // The table, without the sentence above it.
    let widest =
        |output: &[u8]| text(output).lines().skip(1).map(|line| line.trim_end().chars().count()).max();

    let mut command = punctual(&["show", &fixture.model]);
    let mut child = command.env("NO_COLOR", "1").stdout(terminal).spawn().expect("it runs");
    drop(command);
    let mut output = Vec::new();
    // Reading fails once the other end is closed.
    let _ = File::from(controller).read_to_end(&mut output);
    assert!(child.wait().expect("ended").success());
    assert!(widest(&output) <= Some(80), "{}", text(&output));
    assert!(widest(&run(&["show", &fixture.model]).stdout) > Some(80), "without a terminal it is wider");
}

#[test]
fn names_are_quoted_in_errors() {
    let fixture = Fixture::new();
    let output = run(&["show", "--task", "", &fixture.model]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("no thread named ''"), "{output:?}");
}

#[test]
fn unreadable_files_are_reported_alike() {
    for arguments in [&["show", "nope"][..], &["replay", "nope"], &["rules", "check", "nope"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(5), "{arguments:?}");
        let message = "punctual: cannot read nope: no such file or directory\n";
        assert_eq!(text(&output.stderr), message, "{arguments:?}");
    }
}
