//! trace-cmd and Punctual record the same threads at once; the import has the models of our own recording.

use crate::imported::{has_models_of, model};
use crate::model::primary;
use crate::run::{directory, punctual, run, workload};
use crate::tool::tool;
use crate::{Outcome, Result, Test, ensure, fail, in_context, skip};
use punctual_model::{Duration, Stream};
use std::path::Path;
use std::process::Command;

/// Tests that need the machine to themselves.
pub const ALONE: &[(&str, Test)] = &[("trace_cmd::the_models_of_our_own_recording", at_once)];

/// Some machines deny ftrace's filters of functions even to root, and trace-cmd gives up where it cannot
/// clear them. There, it sees files in their place that nobody reads.
const WITHOUT_FILTERS: &str = "
    tracing=/sys/kernel/tracing
    [ -e $tracing/events ] || mount -t tracefs nodev $tracing
    echo 1 >\"$1/one\" && : >\"$1/none\"
    put() { [ ! -e \"$1\" ] || (cat \"$2\" >\"$1\") 2>/dev/null || mount --bind \"$2\" \"$1\"; }
    put /proc/sys/kernel/ftrace_enabled \"$1/one\"
    for file in set_ftrace_filter set_ftrace_notrace set_ftrace_pid set_ftrace_notrace_pid; do
        put $tracing/$file \"$1/none\"
    done
    shift
    exec trace-cmd \"$@\"";

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
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", WITHOUT_FILTERS, "sh"]).arg(directory);
    command.args(["record", "-q", "-C", "mono", "--file-version", version]);
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
    ensure!(of_text.tasks().len() == of_data.tasks().len(), "{} tasks", of_text.tasks().len());
    for (task, printed) in of_data.tasks().iter().zip(of_text.tasks()) {
        let (stream, printed) = (primary(task)?, primary(printed)?);
        let figures = |it: &Stream| (it.separator.key(), it.jobs, it.releases);
        ensure!(figures(stream) == figures(printed), "{:?} and {:?}", figures(stream), figures(printed));
        let (one, other) = (worst(stream), worst(printed));
        let are_near = one.iter().zip(&other).all(|(one, other)| one.abs_diff(*other) <= 3_000);
        ensure!(are_near, "{one:?} and {other:?}");
    }
    Ok(())
}

/// The greatest cost and response, in nanoseconds.
fn worst(stream: &Stream) -> [u64; 2] {
    let cost = stream.execution.as_ref().and_then(|it| it.wcet_ns.first());
    let response = stream.response.as_ref().map(|it| &it.max_ns);
    [cost, response].map(|it| it.map_or(0, |it: &Duration| it.ns()))
}
