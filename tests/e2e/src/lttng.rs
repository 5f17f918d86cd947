//! LTTng's kernel tracer and Punctual record the same threads at once; the import has the models of our own
//! recording.

use crate::formats::{is_as_documented, is_converted_as_it_is};
use crate::imported::has_models_of;
use crate::run::{directory, punctual, run, wait_until, workload};
use crate::tool::tool;
use crate::{Outcome, Result, Test, fail, in_context, skip};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::path::Path;
use std::process::Command;

/// Tests that need the machine to themselves.
pub const ALONE: &[(&str, Test)] = &[("lttng::the_models_of_our_own_recording", at_once)];

/// As docs/observing.md says.
const EVENTS: &str = "sched_switch,sched_waking,sched_pi_setprio,sched_process_fork,sched_process_exec,\
    sched_process_exit,sched_stat_runtime";

/// Set to 1 where the lab has added the tracer, which must work then.
const IS_PROMISED: &str = "PUNCTUAL_E2E_LTTNG";

/// The session daemon. It loads the tracer's modules, and unloads them at its end.
struct Daemon(Pid);

impl Daemon {
    /// Returns when it is ready; `None` if it cannot be started.
    fn start(directory: &Path) -> Result<Option<Daemon>> {
        let file = directory.join("daemon.pid");
        let mut command = program("lttng-sessiond", directory);
        command.arg("--daemonize").arg("--pidfile").arg(&file);
        if run(command)?.code != Some(0) {
            return Ok(None);
        }
        let pid = std::fs::read_to_string(&file)?.trim().parse().ok().and_then(Pid::from_raw);
        Ok(pid.map(Daemon))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::TERM);
        let _ = wait_until("lttng-sessiond to end", || test_kill_process(self.0).is_err());
    }
}

/// One of LTTng's, with its settings in `directory`.
fn program(name: &str, directory: &Path) -> Command {
    let mut command = Command::new(name);
    command.env("LTTNG_HOME", directory);
    command
}

fn at_once() -> Result<Outcome> {
    if tool("lttng", &[]).is_none() || tool("lttng-sessiond", &[]).is_none() {
        return without_tracer("no lttng-sessiond");
    }
    let directory = directory()?;
    let Some(_daemon) = Daemon::start(directory.path())? else {
        return without_tracer("lttng-sessiond cannot be started, or runs already");
    };
    compare_with(directory.path())
}

fn compare_with(home: &Path) -> Result<Outcome> {
    let directory = directory()?;
    let (trace, own) = (directory.path().join("trace"), directory.path().join("own"));
    let lttng = |arguments: &[&str]| {
        let mut command = program("lttng", home);
        command.args(arguments);
        run(command)
    };
    lttng(&["create", "--output", &trace.to_string_lossy()])?.expect_code(0)?;
    let enabled = lttng(&["enable-event", "--kernel", EVENTS])?;
    if enabled.code != Some(0) {
        let mut said = enabled.stderr.lines().chain(enabled.stdout.lines());
        return without_tracer(said.find(|line| !line.is_empty()).unwrap_or("its events cannot be enabled"));
    }
    lttng(&["enable-event", "--kernel", "--syscall", "--all"])?.expect_code(0)?;
    lttng(&["add-context", "--kernel", "--type", "tid"])?.expect_code(0)?;
    lttng(&["start"])?.expect_code(0)?;
    let mut record = punctual(["record", "-q", "-o"]);
    record.arg(&own).args(["--", &workload("periodic"), "--for", "1", "2000", "5000", "10000"]);
    run(record)?.expect_code(0)?;
    let stopped = lttng(&["stop"])?;
    stopped.expect_code(0)?;
    lttng(&["destroy"])?.expect_code(0)?;
    let imported = directory.path().join("imported");
    in_context(&stopped.all(), has_models_of(&own, &trace, &imported))?;
    is_as_documented("LTTng", "2.13", &trace)?;
    is_converted_as_it_is(&trace)?;
    Ok(Outcome::Completed)
}

fn without_tracer(why: &str) -> Result<Outcome> {
    let why = format!("no LTTng kernel tracer here: {why}");
    if std::env::var(IS_PROMISED).is_ok_and(|value| value == "1") { fail(why) } else { skip(why) }
}
