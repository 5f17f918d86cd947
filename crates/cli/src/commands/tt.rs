//! `punctual tt`

use crate::args::{self, TtCommand};
use crate::console::{self, Console};
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::{stop, terminal, values};
use punctual_model::Duration;
use punctual_report::{shell_word, tt as report};
use punctual_workflow::tt::{self, Options, Priorities, Start, Tolerance};
use punctual_workflow::{RecordingFolder, display_name};
use serde_json::json;
use std::fs::File;
use std::os::fd::AsFd;

pub fn run(arguments: args::Tt) -> Result<(), Failure> {
    match arguments.command {
        TtCommand::Run(arguments) => dispatch(arguments),
        TtCommand::Status { json } => status(json),
        TtCommand::Check(arguments) => check(&arguments),
        TtCommand::Guard => guard(),
    }
}

fn dispatch(arguments: args::TtRun) -> Result<(), Failure> {
    let mappings: Vec<tt::Mapping> = arguments.threads.into_iter().map(|mapping| mapping.0).collect();
    let mut plan = tt::read_plan(&arguments.table, &mappings)?;
    tt::refuse_parallel(&plan, &arguments.table)?;
    tt::let_sleep_end_jobs(&mut plan, &arguments.sleep_ends_job)?;
    let console = Console::new(arguments.quiet);
    tt::warn_of_violations(&plan, &arguments.table, &console);
    let priorities = Priorities::new(arguments.priority)
        .ok_or_else(|| Failure::new(Code::Usage, "--priority must be from 4 to 97"))?;
    let record = arguments.record.as_deref();
    let options = Options {
        plan,
        name: display_name(&arguments.table).into_owned(),
        limit: arguments.duration,
        start: arguments.start.map_or(Start::Soon, |values::Start(start)| start),
        dispatcher: arguments.dispatcher.choice(),
        priorities,
        record: record.map(|path| RecordingFolder::new(path, arguments.force)).transpose()?,
        command: arguments.command,
        command_to_stderr: arguments.json,
        guardian: guardian(),
    };
    stop::ignore_suspension()?;
    let outcome = tt::run(options, &*stop::on_signals()?, &console)?;
    match arguments.json {
        true => print(&format!("{:#}\n", json!({"table": outcome.status})))?,
        false if arguments.quiet => {}
        false => print(&report::status(&outcome.status, &terminal::page()))?,
    }
    if let Some(recorded) = &outcome.recorded {
        let (path, table) = (shell_word(&recorded.path), shell_word(&arguments.table));
        console.note(&format!("Wrote {path}; punctual tt check {path} {table} checks it."));
    }
    outcome.failure.map_or(Ok(()), |failure| Err(failure.into()))
}

/// This program as the one that restores everything.
fn guardian() -> Vec<std::ffi::OsString> {
    let program = "/proc/self/exe".into();
    std::iter::once(program).chain(tt::guardian::WORDS.map(Into::into)).collect()
}

/// Puts everything back once standard input has ended.
fn guard() -> Result<(), Failure> {
    let cannot = |error| Failure::new(Code::Other, format!("cannot watch the dispatcher: {error}"));
    // Unbuffered: it is waited for.
    let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(cannot)?;
    let failed = tt::guardian::serve(File::from(input)).map_err(cannot)?;
    failed.iter().for_each(|what| console::message(&format!("could not restore {what}")));
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::Other, "some settings could not be restored")),
    }
}

fn status(as_json: bool) -> Result<(), Failure> {
    let all = tt::statuses().map_err(|error| {
        let message = format!("a table is being dispatched, but only root can ask for its status ({error})");
        Failure::new(Code::CannotHere, message)
    })?;
    match as_json {
        true => print(&format!("{:#}\n", json!({"tables": all.all, "silent": all.silent})))?,
        // "No table" would be wrong.
        false if all.all.is_empty() && !all.silent.is_empty() => {}
        false => print(&report::statuses(&all.all, &terminal::page()))?,
    }
    if all.silent.is_empty() {
        return Ok(());
    }
    let said = |process: &u32| {
        format!("process {process} dispatches a table but does not answer: it may be stopped")
    };
    let silent: Vec<String> = all.silent.iter().map(said).collect();
    Err(Failure::new(Code::Target, silent.join("; ")))
}

fn check(arguments: &args::TtCheck) -> Result<(), Failure> {
    let plan = tt::read_plan(&arguments.table, &[])?;
    let ns =
        |time: std::time::Duration| Duration::from_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let tolerance =
        Tolerance { error: arguments.error.map_or(plan.slot, ns), outside: ns(arguments.outside) };
    let console = Console::new(false);
    tt::warn_of_violations(&plan, &arguments.table, &console);
    let outcome = tt::check(&arguments.recording, &plan, tolerance, &console)?;
    match arguments.json {
        true => print(&format!("{:#}\n", report::check_json(&outcome)))?,
        false => print(&report::check(&outcome))?,
    }
    match outcome.is_clean() {
        true => Ok(()),
        false => {
            let recording = arguments.recording.display();
            let message = format!("{recording} does not show that every slot was given as planned");
            Err(Failure::new(Code::NotAsPlanned, message))
        }
    }
}
