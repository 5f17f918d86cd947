//! trace-cmd and Punctual record the same threads at once; the import has the models of our own recording.

use crate::imported::{has_models_of, model};
use crate::model::{only_task, primary};
use crate::run::{directory, punctual, run, workload};
use crate::tool::tool;
use crate::{Outcome, Result, Test, ensure, fail, in_context, skip, timing};
use punctual_model::{Duration, Stream, TimingModel};
use std::path::Path;
use std::process::Command;

/// Tests that need the machine to themselves.
pub const ALONE: &[(&str, Test)] = &[
    ("trace_cmd::the_models_of_our_own_recording", at_once),
    ("trace_cmd::a_file_of_the_newest_events", newest),
    ("trace_cmd::the_buffer_of_an_instance", instance),
];

/// Some machines deny ftrace's filters of functions even to root, and trace-cmd gives up where it cannot
/// clear them. There, it sees files in their place that nobody reads.
const WITHOUT_FILTERS: &str = "
    tracing=/sys/kernel/tracing
    [ -e $tracing/events ] || mount -t tracefs nodev $tracing
    echo 1 >\"$1/one\" && : >\"$1/none\"
    room=$(sed 's/.*expanded: \\([0-9]*\\).*/\\1/' $tracing/buffer_size_kb)
    put() { [ ! -e \"$1\" ] || (cat \"$2\" >\"$1\") 2>/dev/null || mount --bind \"$2\" \"$1\"; }
    put /proc/sys/kernel/ftrace_enabled \"$1/one\"
    instance=$tracing/instances/$2
    [ -z \"$2\" ] || mkdir \"$instance\" || exit 1
    for file in set_ftrace_filter set_ftrace_notrace set_ftrace_pid set_ftrace_notrace_pid; do
        put $tracing/$file \"$1/none\"
        [ -z \"$2\" ] || put $instance/$file \"$1/none\"
    done
    name=$2
    shift 2
    trace-cmd \"$@\"
    code=$?
    [ ! -e $tracing/buffer_size_kb ] || echo \"$room\" >$tracing/buffer_size_kb
    for file in \"$instance\"/set_ftrace_*; do umount -q \"$file\"; done
    [ -z \"$name\" ] || rmdir \"$instance\"
    exit $code";

const EVENTS: [&str; 8] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup_new",
    "sched_process_exit",
    "sched_process_exec",
    "sched_pi_setprio",
    "task_newtask",
    "raw_syscalls",
];

/// Records what the command does that is appended.
pub fn trace_cmd(directory: &Path, version: &str, data: &Path) -> Command {
    trace_cmd_into("", directory, version, data)
}

/// The same of these tracepoints of the scheduler, and of system calls by this filter.
pub fn trace_cmd_with(directory: &Path, data: &Path, events: &[&str], filter: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", WITHOUT_FILTERS, "sh"]).arg(directory).arg("");
    command.args(["record", "-q", "-C", "mono", "-b", "16384"]);
    events.iter().for_each(|event| _ = command.args(["-e", event]));
    command.args(["-e", "task_newtask", "-e", "raw_syscalls", "-f", filter, "-o"]).arg(data);
    command.current_dir(directory);
    command
}

/// The same into the buffer of an instance, if it has a name.
fn trace_cmd_into(instance: &str, directory: &Path, version: &str, data: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", WITHOUT_FILTERS, "sh"]).arg(directory).arg(instance);
    // Another recorder may have left less room.
    command.args(["record", "-q", "-C", "mono", "-b", "4096", "--file-version", version]);
    if !instance.is_empty() {
        command.args(["-B", instance, "-C", "mono"]);
    }
    for event in EVENTS {
        command.args(["-e", event]);
    }
    command.arg("-o").arg(data).current_dir(directory);
    command
}

fn at_once() -> Result<Outcome> {
    if tool("trace-cmd", &[]).is_none() || tool("unshare", &[]).is_none() {
        return skip("no trace-cmd here");
    }
    for version in ["6", "7"] {
        let directory = directory()?;
        let (data, own) = (directory.path().join("trace.dat"), directory.path().join("own"));
        let mut recorder = trace_cmd(directory.path(), version, &data);
        let mut record = punctual(["record", "-q", "-o"]);
        record.arg(&own).args(["--", &workload("periodic"), "--for", "1", "2000", "5000", "10000"]);
        recorder.arg(record.get_program()).args(record.get_args());
        let recorded = run(recorder)?;
        if !data.exists() {
            let why = recorded.stderr.lines().next().unwrap_or_default().to_owned();
            return skip(format!("trace-cmd cannot record here: {why}"));
        }
        let imported = directory.path().join("imported");
        in_context(&format!("version {version}"), has_models_of(&own, &data, &imported))?;
        let text = directory.path().join("report.txt");
        let mut report = Command::new("trace-cmd");
        report.args(["report", "-i"]).arg(&data);
        std::fs::write(&text, run(report)?.stdout).or_else(|error| fail(error.to_string()))?;
        in_context("as text", has_figures_of(&imported, &text, &directory.path().join("text")))?;
    }
    Ok(Outcome::Completed)
}

/// What is printed has the figures of what was recorded, to the microsecond.
fn has_figures_of(imported: &Path, text: &Path, folder: &Path) -> Result {
    let mut import = punctual(["import", "--machine", std::env::consts::ARCH, "-o"]);
    import.arg(folder).arg(text);
    run(import)?.expect_code(0)?;
    let (of_data, of_text) = (model(imported)?, model(folder)?);
    for name in ["task-0", "task-1", "task-2"] {
        let (stream, printed) = (primary(only_task(&of_data, name)?)?, primary(only_task(&of_text, name)?)?);
        let figures = |it: &Stream| (it.separator.key(), it.jobs, it.releases);
        ensure!(figures(stream) == figures(printed), "{:?} and {:?}", figures(stream), figures(printed));
        let (one, other) = (worst(stream), worst(printed));
        let are_near = one.iter().zip(&other).all(|(one, other)| one.abs_diff(*other) <= 3_000);
        ensure!(are_near, "{one:?} and {other:?}");
    }
    Ok(())
}

/// The tasks of three threads, imported from what trace-cmd recorded of them, and what was said; or why it
/// cannot record.
fn imported(
    mut recorder: Command,
    data: &Path,
    folder: &Path,
) -> Result<std::result::Result<(TimingModel, String), String>> {
    recorder.arg(workload("periodic")).args(["--for", "2", "2000", "5000", "10000"]);
    let recorded = run(recorder)?;
    if !data.exists() {
        return Ok(Err(recorded.stderr.lines().next().unwrap_or_default().to_owned()));
    }
    let mut import = punctual(["import", "-o"]);
    import.arg(folder).arg(data);
    let said = run(import)?;
    said.expect_code(0)?;
    Ok(Ok((model(folder)?, said.all())))
}

/// Of each processor the newest events only: those before the latest beginning are not read.
fn newest() -> Result<Outcome> {
    if tool("trace-cmd", &[]).is_none() || tool("unshare", &[]).is_none() {
        return skip("no trace-cmd here");
    }
    for version in ["6", "7"] {
        let directory = directory()?;
        let data = directory.path().join("trace.dat");
        let mut recorder = trace_cmd(directory.path(), version, &data);
        // Of so little, much is written over.
        recorder.args(["-m", "100", "-b", "200"]);
        match imported(recorder, &data, &directory.path().join("imported"))? {
            Err(why) => return skip(format!("trace-cmd cannot record here: {why}")),
            Ok((model, said)) => {
                in_context(&format!("version {version}, {said}"), timing(has_no_holes(&model)))?;
            }
        }
    }
    Ok(Outcome::Completed)
}

fn has_no_holes(model: &TimingModel) -> Result {
    for name in ["task-0", "task-1", "task-2"] {
        let stream = primary(only_task(model, name)?)?;
        let skipped = stream.arrival.periodic.as_ref().map_or(0, |periodic| periodic.skipped);
        ensure!(skipped == 0, "{name} has skipped {skipped} periods");
    }
    Ok(())
}

/// The greatest cost and response, in nanoseconds.
fn worst(stream: &Stream) -> [u64; 2] {
    let cost = stream.execution.as_ref().and_then(|it| it.wcet_ns.first());
    let response = stream.response.as_ref().map(|it| &it.max_ns);
    [cost, response].map(|it| it.map_or(0, |it: &Duration| it.ns()))
}

fn instance() -> Result<Outcome> {
    if tool("trace-cmd", &[]).is_none() || tool("unshare", &[]).is_none() {
        return skip("no trace-cmd here");
    }
    for version in ["6", "7"] {
        let directory = directory()?;
        let data = directory.path().join("trace.dat");
        let name = format!("punctual-e2e-{}-{version}", std::process::id());
        let recorder = trace_cmd_into(&name, directory.path(), version, &data);
        match imported(recorder, &data, &directory.path().join("imported"))? {
            Err(why) => return skip(format!("trace-cmd cannot record here: {why}")),
            Ok((model, said)) => {
                let tasks = ["task-0", "task-1", "task-2"]
                    .iter()
                    .try_for_each(|name| only_task(&model, name).map(|_| ()));
                in_context(&format!("version {version}, {said}"), tasks)?;
            }
        }
    }
    Ok(Outcome::Completed)
}
