//! `punctual ctl run`: a command under admitted specs.

use super::args::Run;
use super::model::{self, Choice, Need, Needs};
use super::remarks::shown;
use super::threads::Watcher;
use crate::console;
use crate::failure::{Code, Failure};
use punctual_client::{Client, Error, Parameters};
use punctual_model::TimingModel;
use punctual_workflow::{plain_reason as reason, read_model};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

pub struct Plan {
    command: Vec<OsString>,
    quiet: bool,
    how: How,
}

enum How {
    /// One spec, for the command's first thread.
    Own { parameters: Parameters, name: String },
    /// One for each thread that the model has.
    Model(Needs),
}

impl Plan {
    pub fn new(arguments: Run) -> Result<Plan, Failure> {
        let Run { command, quiet, .. } = arguments;
        let declared = arguments.declared.parameters(arguments.plugin);
        let how = match arguments.model {
            None => {
                How::Own { parameters: declared, name: arguments.name.unwrap_or_else(|| name_of(&command)) }
            }
            Some(file) => {
                let model = read_model(&file)?;
                let Run { margin, runtime_quantile: quantile, min_jobs, thread: only, without, .. } =
                    arguments;
                let choice = Choice { margin, quantile, min_jobs, only, without };
                How::Model(
                    chosen(&model, &choice, &declared)
                        .map_err(|(code, why)| Failure::new(code, format!("{} {why}", file.display())))?,
                )
            }
        };
        Ok(Plan { command, quiet, how })
    }
}

/// What the threads of a model need, if any are to have a spec; why not, and what to do, if none is.
fn chosen(model: &TimingModel, choice: &Choice, declared: &Parameters) -> Result<Needs, (Code, String)> {
    if model.tasks().is_empty() {
        let remedy = "a program that is not real-time yet is observed by punctual extract --include-best-effort -o FILE -- COMMAND";
        return Err((Code::File, format!("has no thread at all; {remedy}")));
    }
    if let Some(name) = model::unknown(model, choice) {
        return Err((
            Code::Target,
            format!("has no thread named {}; punctual show --all lists them", shown(name)),
        ));
    }
    let needs = model::needs(model, choice, declared);
    if needs.needs.is_empty() {
        let why = match needs.remarks.is_empty() {
            true => "--thread and --without leave none".to_owned(),
            false => needs.remarks.join("; "),
        };
        return Err((Code::File, format!("has no thread that gets a spec: {why}")));
    }
    Ok(needs)
}

fn name_of(command: &[OsString]) -> String {
    let path = command.first().map(std::path::Path::new);
    path.and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy().into_owned()
}

pub fn run(plan: Plan, client: Client) -> Result<(), Failure> {
    match plan.how {
        How::Own { parameters, name } => become_command(&plan.command, &parameters, &name, client),
        How::Model(Needs { needs, remarks }) => {
            for remark in &remarks {
                console::message(remark);
            }
            accompany(&plan.command, needs, client, plan.quiet)
        }
    }
}

fn cannot_start(command: &[OsString], error: &std::io::Error) -> Failure {
    let name = command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    Failure::new(Code::Target, format!("{name} cannot be started: {}", reason(error)))
}

/// A spec belongs to a process, and a process stays the same through exec: so the command has it for as long
/// as it lives.
fn become_command(
    command: &[OsString],
    parameters: &Parameters,
    name: &str,
    mut client: Client,
) -> Result<(), Failure> {
    let spec = client.create_spec(parameters, Some(name))?.spec;
    // This is the only thread of this process.
    client.attach_thread(spec, std::process::id())?;
    let mut program = Command::new(&command[0]);
    let error = program.args(&command[1..]).exec();
    // The spec ends with this process.
    Err(cannot_start(command, &error))
}

/// The command is a child; the specs are this process's, which stays until the command has ended.
fn accompany(command: &[OsString], needs: Vec<Need>, mut client: Client, quiet: bool) -> Result<(), Failure> {
    let mut specs = Vec::new();
    for need in needs {
        let spec = client.create_spec(&need.parameters, Some(&need.name)).map_err(|error| {
            let name = shown(&need.name);
            let remedy = if matches!(error, Error::Refused(_)) {
                format!("; --without {name} leaves it out")
            } else {
                String::new()
            };
            let Failure { code, message } = error.into();
            let thread = format!("thread {name} (TID {} in the model, {} jobs seen)", need.tid, need.jobs);
            Failure::new(code, format!("{thread}, {}: {message}; nothing was started{remedy}", need.told()))
        })?;
        specs.push((need, spec.spec));
    }
    let listened = [SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH];
    let mut signals = SignalsInfo::<WithOrigin>::new(listened)
        .map_err(|error| Failure::new(Code::Other, format!("cannot handle signals: {}", reason(&error))))?;
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    let watcher = Watcher::start(child.id(), specs, client, quiet);
    let status = await_end(&mut child, &mut signals)?;
    for unmatched in watcher.stop() {
        console::message(&unmatched);
    }
    // Specs end with this process.
    std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
}

/// Waits for the command's end, and passes on what somebody sends. What the terminal sends, the command gets
/// by itself.
fn await_end(
    child: &mut Child,
    signals: &mut SignalsInfo<WithOrigin>,
) -> Result<std::process::ExitStatus, Failure> {
    let lost = |error: std::io::Error| {
        Failure::new(Code::Other, format!("lost sight of the command: {}", reason(&error)))
    };
    loop {
        if let Some(status) = child.try_wait().map_err(lost)? {
            return Ok(status);
        }
        for origin in signals.wait() {
            if origin.signal != SIGCHLD && matches!(origin.cause, Cause::Sent(_)) {
                let signal = rustix::process::Signal::from_named_raw(origin.signal);
                let process = rustix::process::Pid::from_child(child);
                if let Some(signal) = signal {
                    // It has not been waited for, so the number is its own; and if it has ended, the next
                    // round says so.
                    let _ = rustix::process::kill_process(process, signal);
                }
            }
        }
    }
}
