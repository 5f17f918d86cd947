//! `punctual ctl run`: runs a command under admitted specs.

use super::args::Run;
use super::unit::tell_manager;
use crate::console;
use crate::failure::{Code, Failure};
use punctual_client::{Admission, Client, Error, Parameters, Refusal, SpecId};
use punctual_conformance::Contract;
use punctual_model::TimingModel;
use punctual_protocol::LONGEST_SPEC_NAME;
use punctual_report::daemon;
use punctual_workflow::specs::{self, Choice, Need, Needs, Reason, Watcher, printable};
use punctual_workflow::{Agreement, ThreadFilter, plain_reason as reason, read_agreement};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

pub struct Plan {
    command: Vec<OsString>,
    quiet: bool,
    interactive: bool,
    specs: Specs,
}

enum Specs {
    /// One for the command's first thread.
    Own { parameters: Parameters, name: String },
    /// One for each thread of a model.
    Model { needs: Vec<Need>, remarks: Vec<String>, keep_priorities: bool },
}

impl Plan {
    pub fn new(arguments: Run) -> Result<Plan, Failure> {
        let Run { command, quiet, interactive, .. } = arguments;
        let interactive = interactive || is_interactive();
        let declared = arguments.declared.parameters(arguments.plugin);
        let specs = match arguments.model {
            None => {
                let name = arguments.name.unwrap_or_else(|| name_of(&command));
                Specs::Own { parameters: declared, name }
            }
            Some(file) => {
                let agreement = read_agreement(&file)?;
                let Run { margin, runtime_quantile: quantile, min_jobs, keep_priorities, .. } = arguments;
                let only = ThreadFilter::new(&arguments.thread)?;
                let without = ThreadFilter::new(&arguments.without)?;
                let choice = Choice { margin, quantile, min_jobs, only, without, keep_priorities };
                let name = file.display().to_string();
                let found = match agreement {
                    Agreement::Model(model) => needs(&model, &name, &choice, &declared)
                        .map(|needs| (specs::remarks(&needs, &choice), needs.needs)),
                    Agreement::Contract(contract) => agreed(&contract, &choice, &declared),
                };
                let (remarks, needs) =
                    found.map_err(|(code, why)| Failure::new(code, format!("{name} {why}")))?;
                Specs::Model { remarks, needs, keep_priorities }
            }
        };
        Ok(Plan { command, quiet, interactive, specs })
    }
}

/// The specs from a model, at least one; otherwise the reason and what to do. `file` names the model.
fn needs(
    model: &TimingModel,
    file: &str,
    choice: &Choice,
    declared: &Parameters,
) -> Result<Needs, (Code, String)> {
    if model.tasks().is_empty() {
        let advice = "if the program is not real-time yet, make the model with punctual extract \
                      --include-best-effort -o FILE -- COMMAND";
        return Err((Code::File, format!("has no threads; {advice}")));
    }
    if let Some(pattern) = specs::unmatched(model, choice) {
        let why = format!("has no thread that matches '{}'", printable(pattern));
        return Err((Code::Target, format!("{why}; punctual show {file} --all lists them")));
    }
    let needs = specs::needs(model, choice, declared);
    if needs.needs.is_empty() {
        let remarks = specs::remarks(&needs, choice);
        let why = match remarks.is_empty() {
            true => "--thread and --without leave none".to_owned(),
            false => remarks.join("; "),
        };
        let advice: Vec<&str> = needs.reasons().into_iter().map(Reason::advice).collect();
        let advice = if advice.is_empty() { String::new() } else { format!("; {}", advice.join("; ")) };
        return Err((Code::File, format!("has no thread that gets a spec: {why}{advice}")));
    }
    Ok(needs)
}

/// The specs from a contract, at least one, and remarks; otherwise the reason.
fn agreed(
    contract: &Contract,
    choice: &Choice,
    declared: &Parameters,
) -> Result<(Vec<String>, Vec<Need>), (Code, String)> {
    if let Some(pattern) = specs::unmatched_in(contract, choice) {
        return Err((Code::Target, format!("has no task that matches '{}'", printable(pattern))));
    }
    match specs::agreed(contract, choice, declared) {
        (needs, remarks) if !needs.is_empty() => Ok((remarks, needs)),
        (_, remarks) if remarks.is_empty() => {
            Err((Code::File, "has no task that gets a spec: --thread and --without leave none".into()))
        }
        (_, remarks) => Err((Code::File, format!("has no task that gets a spec: {}", remarks.join("; ")))),
    }
}

fn name_of(command: &[OsString]) -> String {
    let path = command.first().map(std::path::Path::new);
    let mut name = path.and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    // Names of files may be longer.
    while name.len() > LONGEST_SPEC_NAME {
        name.pop();
    }
    name
}

/// Whether somebody sits at the terminal.
fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

pub fn run(plan: Plan, mut client: Client) -> Result<(), Failure> {
    client.set_interactive(plan.interactive);
    match plan.specs {
        Specs::Own { parameters, name } => {
            become_command(&plan.command, &parameters, &name, client, plan.quiet)
        }
        Specs::Model { needs, remarks, keep_priorities } => {
            for remark in &remarks {
                console::message(remark);
            }
            accompany(&plan.command, needs, keep_priorities, client, plan.quiet)
        }
    }
}

fn cannot_start(command: &[OsString], error: &std::io::Error) -> Failure {
    let name = command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    Failure::new(Code::Target, format!("{name} cannot be started: {}", reason(error)))
}

/// Replaces this process by the command. A spec belongs to a process, which stays the same through exec, so
/// the command has the spec for as long as it runs.
fn become_command(
    command: &[OsString],
    parameters: &Parameters,
    name: &str,
    mut client: Client,
    quiet: bool,
) -> Result<(), Failure> {
    let spec = client.create_spec(parameters, Some(name))?.spec;
    // This is the only thread of this process.
    let admission = attach(&mut client, spec, std::process::id())?;
    if let Some(time) = admission.begins_in.filter(|_| !quiet) {
        console::message(&format!(
            "spec {spec} begins in {time}, because specs that have ended have used its time until then; \
             meanwhile {name} is scheduled as before"
        ));
    }
    // Of a service, where systemd listens.
    tell_manager(&daemon::admission(&admission, parameters));
    let mut program = Command::new(&command[0]);
    let error = program.args(&command[1..]).exec();
    // The spec ends with this process.
    Err(cannot_start(command, &error))
}

/// Attaches a thread, when it has its turn: under SCHED_DEADLINE, a spec that has just ended may have used
/// the runtime of this period, such as that of the same program before it was started again.
pub fn attach(client: &mut Client, spec: SpecId, thread: u32) -> Result<Admission, Error> {
    const LONGEST: Duration = Duration::from_secs(10);
    const WORTH_TELLING: Duration = Duration::from_millis(200);
    let begin = Instant::now();
    loop {
        let (reason, wait) = match client.attach_thread(spec, thread) {
            Err(Error::Refused(Refusal::NotYet { reason, wait })) => (reason, wait),
            done => return done,
        };
        let pause = Duration::from_nanos(wait.ns());
        if begin.elapsed() + pause > LONGEST {
            return Err(Error::Refused(Refusal::NotYet { reason, wait }));
        }
        if pause > WORTH_TELLING {
            console::message(&format!("waiting for {wait}: {reason}"));
        }
        std::thread::sleep(pause);
    }
}

/// Why a spec of a model was not created.
fn not_created(need: &Need, error: Error, keep_priorities: bool) -> Failure {
    let mut advice = String::new();
    if let Error::Refused(refusal) = &error {
        if !keep_priorities && lacks_priority(refusal) {
            advice += "; --keep-priorities declares the priorities of the model, which plugins for fixed \
                       priorities need";
        }
        if let Some((permille, usual)) = need.usual.filter(|_| depends_on_runtime(refusal)) {
            let percent = permille as f64 / 10.0;
            advice += &format!(
                "; --runtime-quantile {percent}% declares a runtime of {usual}, which {percent} % of its \
                 observed jobs kept to"
            );
        }
        advice += &format!("; --without {} excludes it", ThreadFilter::literal(&need.name));
    }
    let Failure { code, message } = error.into();
    let name = printable(&need.name);
    let thread = match need.jobs {
        // Of a contract.
        0 => format!("thread {name}"),
        jobs => format!("thread {name} (TID {} in the model, {jobs} jobs observed)", need.tid),
    };
    Failure::new(code, format!("{thread}, {}: {message}; nothing was started{advice}", need.describe()))
}

/// Whether a shorter runtime could help.
fn depends_on_runtime(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::NotAdmitted { .. } => !lacks_priority(refusal),
        Refusal::OutOfBounds { parameter, .. } => parameter == "runtime_ns",
        _ => false,
    }
}

/// Whether every plugin that was asked needs a declared priority.
fn lacks_priority(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::NotAdmitted { reasons } => {
            !reasons.is_empty() && reasons.iter().all(|reason| reason.contains("needs a declared priority"))
        }
        _ => false,
    }
}

/// Runs the command as a child. The specs belong to this process, which stays until the command has ended.
fn accompany(
    command: &[OsString],
    needs: Vec<Need>,
    keep_priorities: bool,
    mut client: Client,
    quiet: bool,
) -> Result<(), Failure> {
    let mut specs = Vec::new();
    for need in needs {
        let created = client.create_spec(&need.parameters, Some(&need.name));
        let spec = created.map_err(|error| not_created(&need, error, keep_priorities))?.spec;
        specs.push((need, spec));
    }
    let listened = [SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH];
    let mut signals = SignalsInfo::<WithOrigin>::new(listened)
        .map_err(|error| Failure::new(Code::Other, format!("cannot handle signals: {}", reason(&error))))?;
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    let watcher = Watcher::start(child.id(), specs, client, !quiet, Box::new(console::message));
    let status = await_end(&mut child, &mut signals)?;
    for unmatched in watcher.stop() {
        console::message(&unmatched);
    }
    // Specs end with this process.
    std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
}

/// Waits for the command's end and forwards signals sent by processes. The command gets those of the terminal
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
                    // The child has not been waited for, so the PID is still its own. If it has ended, the
                    // next iteration finds out.
                    let _ = rustix::process::kill_process(process, signal);
                }
            }
        }
    }
}
