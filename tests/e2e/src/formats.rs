//! One run of the demonstration, recorded at once by Punctual, trace-cmd and perf, and read from every format
//! that comes of it: the models agree figure by figure, but for differences with a reason.
//!
//! `make test-formats` runs it. The table of docs/observing.md is [`MATRIX`], which each run checks.

use crate::imported::model;
use crate::model::{only_task, primary, threads};
use crate::run::{directory, offline, punctual, run, workload};
use crate::tool::tool;
use crate::trace_cmd::trace_cmd_with;
use crate::why::as_lttng;
use crate::{Outcome, Result, Test, ensure, fail, in_context, skip};
use punctual_model::arrival::PeriodicOn;
use punctual_model::{Duration, Object, Policy, Stream, TimingModel};
use punctual_test_support::{Running, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const ALL: &[(&str, Test)] =
    &[("formats::the_table_of_the_documents", documented), ("formats::of_perfetto", of_perfetto)];

/// Tests that need the machine to themselves, and time.
pub const ALONE: &[(&str, Test)] = &[("formats::of_one_run", of_one_run)];

/// Whether this is `make test-formats`, which has babeltrace2.
pub fn are_all_wanted() -> bool {
    std::env::var_os("PUNCTUAL_TEST_FORMATS").is_some()
}

/// What is known of threads from a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    format: &'static str,
    /// What it was tested with.
    versions: &'static str,
    arrivals: bool,
    releases: bool,
    /// Whether switches that are missing are made up for by the kernel's account.
    account: bool,
    calls: Calls,
    /// Whether `punctual why` finds causes in it.
    causes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    /// With their descriptors.
    Whole,
    /// Whether a read blocks shows only where it slept.
    WithoutDescriptors,
}

const KERNELS: Row = Row {
    format: "",
    versions: "",
    arrivals: false,
    releases: true,
    account: true,
    calls: Calls::WithoutDescriptors,
    causes: true,
};

const OWN: &str = "Punctual's own";

/// Each row is checked by a test: those of LTTng by the lab on Linux 6.1, too; that of LiME by a recording as
/// its description has it.
const MATRIX: &[Row] = &[
    Row { format: OWN, versions: "this one", arrivals: true, calls: Calls::Whole, ..KERNELS },
    Row { format: "`trace.dat`", versions: "trace-cmd 3.1", ..KERNELS },
    Row { format: "`perf.data`", versions: "perf 6.1, a file", ..KERNELS },
    Row { format: "`perf.data`", versions: "perf 6.1, to a pipe, packed (`-z`)", ..KERNELS },
    Row { format: "`perf.data`", versions: "perf 6.1, to a folder (`--threads`)", ..KERNELS },
    Row { format: "text", versions: "trace-cmd report 3.1, with `--machine`", ..KERNELS },
    Row { format: "text", versions: "perf script 6.1, with `--machine`", ..KERNELS },
    Row { format: "LTTng", versions: "2.13, CTF 1.8", ..KERNELS },
    Row { format: "LTTng", versions: "CTF 1.8, by babeltrace2 2.1", ..KERNELS },
    Row { format: "LTTng", versions: "CTF 2, by babeltrace2 2.1", ..KERNELS },
    Row { format: "Perfetto", versions: "56, plain and compact", account: false, ..KERNELS },
    Row {
        format: "LiME",
        versions: "its description",
        arrivals: true,
        account: false,
        calls: Calls::Whole,
        ..KERNELS
    },
];

/// A format that the run was recorded in.
struct Trace {
    row: Row,
    path: PathBuf,
    /// Only threads that wait in calls that its converter knows.
    is_partial: bool,
}

/// Events that are recorded. Without write(2), by which recorders would record each other, and without
/// clock_gettime(2), by which the demonstration burns its time: both end no job.
const SCHED: [&str; 7] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup_new",
    "sched_process_exit",
    "sched_process_exec",
    "sched_pi_setprio",
    "sched_stat_runtime",
];
const CALLS: &str = "id != 1 && id != 228";

/// Seconds that the demonstration is recorded for.
const SECONDS: &str = "4s";

/// Tracers lose events where the machine is busy, and say so: then it is recorded again.
const TRIES: u32 = 3;

fn of_one_run() -> Result<Outcome> {
    if tool("perf", &[]).is_none() || tool("trace-cmd", &[]).is_none() || tool("unshare", &[]).is_none() {
        return skip("no perf or no trace-cmd here");
    }
    for _ in 0..TRIES {
        let directory = directory()?;
        let home = directory.path();
        let own = home.join("own");
        if let Some(why) = recorded(home, &own)? {
            return skip(why);
        }
        let ours = model(&own)?;
        let traces = traces(home)?;
        let imported: Vec<(&Trace, Imported)> =
            traces.iter().map(|trace| Ok((trace, imported(trace, home)?))).collect::<Result<_>>()?;
        if let Some(what) = disturbed(&ours, &imported) {
            println!("REPEATED: {what}");
            continue;
        }
        ensure!(own_row(&ours, &own)? == MATRIX[0], "{:?}", own_row(&ours, &own)?);
        for (trace, imported) in &imported {
            let what = format!("{}, {}", trace.row.format, trace.row.versions);
            in_context(&what, agrees(&ours, trace, imported))?;
        }
        in_context("LTTng", are_the_same(&imported))?;
        println!("{} formats agree with {} threads", imported.len(), ours.tasks().len());
        return Ok(Outcome::Completed);
    }
    skip(format!("recorders lost events {TRIES} times"))
}

/// Who lost events, began late or ended early; the busy machine may make any of them.
fn disturbed(ours: &TimingModel, imported: &[(&Trace, Imported)]) -> Option<String> {
    let own = threads(ours);
    let all = imported.iter().map(|(trace, it)| (trace.path.file_name().unwrap_or_default(), &it.model));
    let mut all = all.chain([("own".as_ref(), ours)]);
    all.find_map(|(name, model)| {
        let it = threads(model);
        let (lost, begins, ends) = (it.lost_records, it.from_ns <= own.from_ns, it.until_ns >= own.until_ns);
        let is_whole = lost == 0 && begins && ends;
        (!is_whole).then(|| format!("{}: lost {lost}, begins {begins}, ends {ends}", name.to_string_lossy()))
    })
}

/// Records the demonstration in every way at once; or says why that is not possible here.
fn recorded(home: &Path, own: &Path) -> Result<Option<String>> {
    let to_file = Running::start(perf(&home.join("perf.data"), &[]))?;
    let to_folder = Running::start(perf(&home.join("perf.folder"), &["--threads=cpu"]))?;
    let mut piped = Command::new("sh");
    let to_pipe = perf(Path::new("-"), &["-z"]);
    piped.args(["-c", "exec perf \"$@\" >\"$0\""]).arg(home.join("perf.pipe")).args(to_pipe.get_args());
    let to_pipe = Running::start(piped)?;
    // Who begins late all the same is found later.
    let begun = |name: &&str| fs::metadata(home.join(name)).is_ok_and(|file| file.len() > 1 << 10);
    let files = ["perf.data", "perf.pipe", "perf.folder/data"];
    wait_until("perf to begin", || files.iter().all(begun))?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    let mut record =
        punctual(["record", "-q", "--detail", "switches", "--all-threads", "--for", SECONDS, "-o"]);
    record.arg(own).args(["--", &workload("demo")]);
    let data = home.join("trace.dat");
    let mut recorder = trace_cmd_with(home, &data, &SCHED, CALLS);
    recorder.arg(record.get_program()).args(record.get_args());
    let ended = run(recorder)?;
    let recorders = [to_file, to_folder, to_pipe];
    recorders.iter().for_each(|perf| _ = perf.signal(Signal::INT));
    let [of_file, ..] = recorders.map(Running::end);
    let of_file = of_file?;
    for (path, said) in [(data, ended.stderr), (home.join("perf.data"), of_file.stderr)] {
        if !path.exists() {
            return Ok(Some(format!("cannot record here: {}", said.trim().replace('\n', "; "))));
        }
    }
    Ok(None)
}

/// Every format that comes of it.
fn traces(home: &Path) -> Result<Vec<Trace>> {
    let paths = ["trace.dat", "perf.data", "perf.pipe", "perf.folder"].map(|name| home.join(name));
    let mut traces: Vec<Trace> = MATRIX[1..]
        .iter()
        .zip(paths.clone())
        .map(|(row, path)| Trace { row: *row, path, is_partial: false })
        .collect();
    pass_over_programs(&paths[1])?;
    let mut report = Command::new("trace-cmd");
    report.args(["report", "-t", "-i"]).arg(&paths[0]);
    let mut script = Command::new("perf");
    script.args(["script", "--ns", "--show-lost-events", "-F"]);
    script.args(["comm,pid,tid,cpu,time,event,trace", "-i"]).arg(&paths[1]);
    for (row, name, printer) in [(MATRIX[5], "report.txt", report), (MATRIX[6], "script.txt", script)] {
        let path = home.join(name);
        fs::write(&path, printed(printer)?)?;
        traces.push(Trace { row, path, is_partial: false });
    }
    traces.extend(of_lttng(home, &paths[1])?);
    Ok(traces)
}

/// perf 6.1 cannot print what it recorded of our own recorder's BPF programs, and what comes after that: such
/// records become others that say nothing.
fn pass_over_programs(data: &Path) -> Result {
    const KSYMBOL_AND_BPF_EVENT: [u8; 2] = [17, 18];
    const FINISHED_INIT: u8 = 82;
    let mut bytes = fs::read(data)?;
    let word = |bytes: &[u8], at: usize| {
        bytes[at..at + 8].iter().rev().fold(0, |all, it| all << 8 | usize::from(*it))
    };
    let (mut at, size) = (word(&bytes, 40), word(&bytes, 48));
    let end = at + size;
    while at + 8 <= end {
        if KSYMBOL_AND_BPF_EVENT.contains(&bytes[at]) && bytes[at + 1..at + 4] == [0; 3] {
            bytes[at] = FINISHED_INIT;
        }
        at += (word(&bytes, at) >> 48).max(8);
    }
    Ok(fs::write(data, bytes)?)
}

fn printed(printer: Command) -> Result<String> {
    let ended = run(printer)?;
    ended.expect_code(0)?;
    Ok(ended.stdout)
}

/// The same events as LTTng writes them, and as babeltrace2 converts that.
fn of_lttng(home: &Path, perf: &Path) -> Result<Vec<Trace>> {
    if cfg!(not(target_arch = "x86_64")) {
        return Ok(Vec::new());
    }
    let mut script = Command::new("perf");
    script.args(["script", "-i"]).arg(perf).args(as_lttng::OPTIONS);
    let printed = printed(script)?;
    let trace = home.join("lttng");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    as_lttng::write(&printed, &trace, processors as u32)?;
    let mut traces = vec![Trace { row: MATRIX[7], path: trace.clone(), is_partial: true }];
    traces.extend(conversions(home, &trace)?);
    Ok(traces)
}

/// What babeltrace2 makes of a trace of LTTng.
fn conversions(home: &Path, trace: &Path) -> Result<Vec<Trace>> {
    let mut traces = Vec::new();
    for (row, version) in [(MATRIX[8], "1"), (MATRIX[9], "2")] {
        let folder = home.join(format!("converted-{version}"));
        let Some(mut converter) = babeltrace2() else {
            println!("SKIPPED: {}: no babeltrace2 2.1 here", row.versions);
            continue;
        };
        converter.arg(trace).args(["--component", "sink.ctf.fs", "--params"]);
        converter.arg(format!("path=\"{}\",ctf-version=\"{version}\"", folder.display()));
        run(converter)?.expect_code(0)?;
        traces.push(Trace { row, path: folder, is_partial: true });
    }
    Ok(traces)
}

/// Checks that a trace of LTTng that another test has made is imported as what babeltrace2 makes of it.
pub fn is_converted_as_it_is(trace: &Path) -> Result {
    let directory = directory()?;
    let home = directory.path();
    let first = Trace { row: MATRIX[7], path: trace.to_owned(), is_partial: true };
    let all: Vec<Trace> = [first].into_iter().chain(conversions(home, trace)?).collect();
    let imported: Vec<(&Trace, Imported)> =
        all.iter().map(|trace| Ok((trace, imported(trace, home)?))).collect::<Result<_>>()?;
    println!("{} forms of it", imported.len());
    are_the_same(&imported)
}

/// One that writes CTF 2: the system's, or the one in a folder laid out as a system's root.
fn babeltrace2() -> Option<Command> {
    let Some(root) = std::env::var_os("BABELTRACE2_ROOT").filter(|it| !it.is_empty()).map(PathBuf::from)
    else {
        let version = run(tool("babeltrace2", &["--version"])?).ok()?;
        return if version.stdout.starts_with("Babeltrace 2.0") { None } else { tool("babeltrace2", &[]) };
    };
    let libraries = root.join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(&libraries).arg(root.join("usr/bin/babeltrace2"));
    command.env("BABELTRACE_PLUGIN_PATH", libraries.join("babeltrace2/plugins"));
    command.env("LIBBABELTRACE2_PLUGIN_PROVIDER_DIR", libraries.join("babeltrace2/plugin-providers"));
    Some(command)
}

struct Imported {
    model: TimingModel,
    folder: PathBuf,
    /// What `import --json` says of the trace.
    account: Value,
}

fn imported(trace: &Trace, home: &Path) -> Result<Imported> {
    let name = trace.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = home.join(format!("{name}.imported"));
    let mut import = punctual(["import", "--json", "-o"]);
    import.arg(&folder).arg(&trace.path);
    if trace.row.format == "text" {
        import.args(["--machine", std::env::consts::ARCH]);
    }
    let ended = run(import)?;
    ended.expect_code(0)?;
    let json: Value = serde_json::from_str(&ended.stdout).or_else(|error| fail(error.to_string()))?;
    Ok(Imported { model: model(&folder)?, folder, account: json["traces"][0].clone() })
}

/// What is known from it is what the table has, and the figures are ours.
fn agrees(ours: &TimingModel, trace: &Trace, imported: &Imported) -> Result {
    ensure!(known(trace.row, imported)? == trace.row, "{:?}", known(trace.row, imported)?);
    let theirs = &imported.model;
    let own_clock = ours.clock.as_str();
    ensure!(trace.row.format == "text" || theirs.clock == own_clock, "{} and {own_clock}", theirs.clock);
    let mut compared = 0;
    for task in ours.tasks().iter().filter(|task| task.policy != Policy::Other && !task.streams.is_empty()) {
        let stream = primary(task)?;
        if trace.is_partial && !is_converted(stream) {
            continue;
        }
        let their_task = only_task(theirs, &task.name)?;
        ensure!(
            (their_task.tid, their_task.policy, their_task.priority)
                == (task.tid, task.policy, task.priority),
            "{their_task:?}"
        );
        in_context(&task.name, are_alike(stream, primary(their_task)?))?;
        compared += 1;
    }
    ensure!(compared >= if trace.is_partial { 8 } else { 17 }, "{compared} threads only");
    Ok(())
}

/// What its import says.
fn known(row: Row, imported: &Imported) -> Result<Row> {
    let list = |name: &str| imported.account[name].as_array().cloned().unwrap_or_default();
    let missing = list("missing");
    let lacks = |of: &str, what: &str| {
        missing.iter().any(|it| it["of"] == of && (what.is_empty() || it["what"] == what))
    };
    let jobs: Vec<&Value> = missing.iter().filter(|lack| lack["of"] == "jobs").collect();
    let calls = match &jobs[..] {
        [] => Calls::Whole,
        [only] if only["what"] == "what a descriptor is, and whether it blocks" => Calls::WithoutDescriptors,
        other => return fail(format!("{other:?}")),
    };
    let account = list("events").iter().any(|events| events["name"] == "sched_stat_runtime");
    let (arrivals, releases) = (!lacks("arrivals", ""), !lacks("releases", "sched_waking"));
    Ok(Row { arrivals, releases, account, calls, causes: has_causes(&imported.folder)?, ..row })
}

fn own_row(model: &TimingModel, folder: &Path) -> Result<Row> {
    let mut periods =
        model.tasks().iter().flat_map(|task| &task.streams).filter_map(|it| it.arrival.periodic.as_ref());
    Ok(Row {
        arrivals: periods.any(|it| it.on == PeriodicOn::Arrival),
        causes: has_causes(folder)?,
        ..MATRIX[0]
    })
}

/// Whether causes of late jobs are found in a recording: what else ran is in it.
fn has_causes(folder: &Path) -> Result<bool> {
    let mut why = offline(["why", "--json", "--longer-than", "1us"]);
    why.arg(folder);
    let ended = run(why)?;
    let json: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    let jobs = json["jobs"].as_array().cloned().unwrap_or_default();
    let kinds = jobs.iter().flat_map(|job| job["parts"].as_array().cloned().unwrap_or_default());
    let has_causes = kinds.into_iter().any(|part| part["kind"] != "unknown");
    if !has_causes {
        println!("no causes: {}", ended.all());
    }
    Ok(has_causes)
}

/// Checks what `import` says of such a trace, which another test has made.
pub fn is_as_documented(format: &str, versions: &str, trace: &Path) -> Result {
    let row = MATRIX.iter().find(|row| row.format == format && row.versions.starts_with(versions));
    let Some(row) = row else { return fail(format!("{format} has no row")) };
    let directory = directory()?;
    let trace = Trace { row: *row, path: trace.to_owned(), is_partial: false };
    let found = known(*row, &imported(&trace, directory.path())?)?;
    ensure!(found == *row, "{found:?} instead of {row:?}");
    Ok(())
}

/// Whether the converter to LTTng's traces knows the call.
fn is_converted(stream: &Stream) -> bool {
    let call = stream.separator.call.name();
    ["read", "clock_nanosleep"].contains(&call) || call.starts_with("futex")
}

/// The same figures, but for differences with a reason.
fn are_alike(ours: &Stream, theirs: &Stream) -> Result {
    let (our, their) = (&ours.separator, &theirs.separator);
    ensure!(our.call == their.call, "separators {our} and {their}");
    // A read that did not have to wait divides nothing there: what a descriptor is, is not known.
    let back_to_back = if reads(ours) { ours.back_to_back } else { 0 };
    let few = 4 + ours.jobs / 50;
    ensure!(
        theirs.jobs <= ours.jobs + few && theirs.jobs + back_to_back + few >= ours.jobs,
        "{} and {} jobs",
        ours.jobs,
        theirs.jobs
    );
    let period = |stream: &Stream| stream.arrival.periodic.as_ref().map(|it| it.period_ns.ns());
    match (period(ours), period(theirs)) {
        (Some(one), Some(other)) => ensure!(one.abs_diff(other) <= one / 50, "periods {one} and {other} ns"),
        // Sleeps for a span drift with the jobs between them, unless it is known when they were due.
        (Some(_), None) if matches!(our.object, Object::Clock { absolute: false, .. }) => {}
        (Some(one), None) => return fail(format!("a period of {one} ns, and none")),
        (None, _) => {}
    }
    let on = theirs.arrival.periodic.as_ref().map(|it| it.on);
    ensure!(on != Some(PeriodicOn::Arrival), "arrivals that are not in the trace");
    // The kernel charges a thread that preempts another from its wake-up; a stretch between switches has what
    // tracers and interrupts take.
    let (one, other) = (time(ours), time(theirs));
    let taken = 50_000 * ours.jobs;
    ensure!(
        other <= one + one / 2 + taken && other >= one / 2,
        "execution times of {one} and {other} ns in all"
    );
    Ok(())
}

fn reads(stream: &Stream) -> bool {
    ["read", "recvfrom"].contains(&stream.separator.call.name())
}

/// Nanoseconds that all jobs took.
fn time(stream: &Stream) -> u64 {
    stream.execution.as_ref().and_then(|it| it.mean_ns).map_or(0, Duration::ns) * stream.jobs
}

/// What babeltrace2 converted is the same to the nanosecond.
fn are_the_same(imported: &[(&Trace, Imported)]) -> Result {
    let of_lttng: Vec<_> = imported.iter().filter(|(trace, _)| trace.is_partial).collect();
    let Some(((_, first), converted)) = of_lttng.split_first() else { return Ok(()) };
    for (trace, other) in converted {
        let tasks = [&first.model, &other.model].map(|model| model.tasks().to_vec());
        ensure!(tasks[0] == tasks[1], "{}: not the tasks of what was converted", trace.row.versions);
    }
    Ok(())
}

fn perf(data: &Path, options: &[&str]) -> Command {
    let sched = SCHED.map(|event| format!("sched:{event}")).join(",");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-a", "-m", "8M", "-k", "mono", "-e", &sched]);
    perf.args(options);
    for call in ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"] {
        perf.args(["-e", call, "--filter", CALLS]);
    }
    perf.arg("-o").arg(data);
    perf
}

/// What was recorded where its recorder was to be had.
fn of_perfetto() -> Result<Outcome> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/import/tests/data/perfetto"));
    if !folder.exists() {
        return skip("no recordings of Perfetto here");
    }
    for name in ["plain.pftrace", "compact.pftrace"] {
        in_context(name, is_as_documented("Perfetto", "56", &folder.join(name)))?;
    }
    Ok(Outcome::Completed)
}

/// The table of the documents is [`MATRIX`]; with `PUNCTUAL_BLESS=1` it is written.
fn documented() -> Result<Outcome> {
    const BEGIN: &str = "<!-- by tests/e2e/src/formats.rs -->\n";
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/observing.md"));
    let Ok(text) = fs::read_to_string(path) else { return skip("no documents here") };
    let Some((before, rest)) = text.split_once(BEGIN) else { return fail("no place for the table") };
    let Some((found, after)) = rest.split_once("\n\n") else { return fail("the table has no end") };
    let table = table();
    if std::env::var_os("PUNCTUAL_BLESS").is_some() {
        fs::write(path, format!("{before}{BEGIN}{table}\n\n{after}"))?;
    } else {
        ensure!(found == table, "PUNCTUAL_BLESS=1 writes it:\n{table}");
    }
    Ok(Outcome::Completed)
}

fn table() -> String {
    let mut lines = vec![
        "| format | tested with | arrivals | releases | execution times | jobs end | causes |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    let yes = |is_known: bool| if is_known { "yes" } else { "–" };
    lines.extend(MATRIX.iter().map(|row| {
        let times = match (row.account, row.format) {
            (_, OWN) => "the kernel's account",
            (true, _) => "between switches; the kernel's account where some are missing",
            (false, _) => "between switches",
        };
        let jobs = match row.calls {
            Calls::Whole => "at calls",
            Calls::WithoutDescriptors => "at calls; reads only where they slept",
        };
        let Row { format, versions, arrivals, releases, causes, .. } = *row;
        let [arrivals, releases, causes] = [arrivals, releases, causes].map(yes);
        format!("| {format} | {versions} | {arrivals} | {releases} | {times} | {jobs} | {causes} |")
    }));
    lines.join("\n")
}
