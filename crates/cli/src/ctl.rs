//! `punctual ctl`: the daemon from a shell.

pub mod args;
pub mod declared;
mod run;
mod unit;

use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use args::{Command, Ctl};
use punctual_client::{Client, Error, default_socket};
use punctual_report::daemon;
use punctual_workflow::spec_metrics;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

pub fn run(arguments: Ctl) -> Result<(), Failure> {
    let socket = arguments.socket.unwrap_or_else(default_socket);
    // A plan that fails does not need the daemon.
    let plan = match arguments.command {
        Command::Run(arguments) => Plan::Run(run::Plan::new(*arguments)?),
        Command::Unit { name } => match unit::Plan::new(name)? {
            Some(plan) => Plan::Unit(plan),
            None => return Ok(()),
        },
        other => Plan::Ask(other),
    };
    let mut client = match (Client::connect_to(&socket), &plan) {
        (Err(error), Plan::Unit(plan)) => return plan.refused(error.into()),
        (client, _) => client?,
    };
    match plan {
        Plan::Run(plan) => run::run(plan, client),
        Plan::Unit(plan) => plan.run(&mut client),
        Plan::Ask(command) => ask(&command, &mut client),
    }
}

enum Plan {
    Run(run::Plan),
    Unit(unit::Plan),
    Ask(Command),
}

fn ask(command: &Command, client: &mut Client) -> Result<(), Failure> {
    let page = terminal::page();
    match command {
        Command::Status { json: true } => {
            let (status, clients) = (client.status()?, client.list_clients()?);
            print(&format!("{:#}\n", json!({"status": status, "clients": clients})))
        }
        Command::Status { json: false } => {
            let (status, clients) = (client.status()?, client.list_clients()?);
            let warnings = daemon::warnings(&client.list_plugins()?, &page);
            print(&(daemon::status(&status, now()) + &warnings + &daemon::clients(&clients, &page)))
        }
        Command::List { json: true } => print(&format!("{:#}\n", json!({"specs": client.list_specs()?}))),
        Command::List { json: false } => {
            let warnings = daemon::warnings(&client.list_plugins()?, &page);
            print(&(daemon::specs(&client.list_specs()?, &page) + &warnings))
        }
        Command::Stats { json: true, .. } => {
            print(&format!("{:#}\n", json!({"specs": client.list_specs()?})))
        }
        Command::Stats { openmetrics: true, .. } => print(&spec_metrics(&client.list_specs()?)),
        Command::Stats { .. } => print(&daemon::statistics(&client.list_specs()?, &page)),
        Command::Plugins { json: true } => {
            print(&format!("{:#}\n", json!({"plugins": client.list_plugins()?})))
        }
        Command::Plugins { json: false } => print(&daemon::plugins(&client.list_plugins()?, &page)),
        Command::Release { specs } => release(specs, client),
        // Already made a plan by `run`.
        Command::Run(_) | Command::Unit { .. } => Ok(()),
    }
}

/// Releases all specs that can be released, even if others cannot.
fn release(specs: &[u64], client: &mut Client) -> Result<(), Failure> {
    let refused: Vec<Error> = specs.iter().filter_map(|&spec| client.release_spec(spec).err()).collect();
    let Some(worst) = refused.iter().map(code).max_by_key(|code| *code as u8) else { return Ok(()) };
    let messages: Vec<String> = refused.iter().map(Error::to_string).collect();
    Err(Failure::new(worst, messages.join("; ")))
}

fn now() -> punctual_model::Instant {
    let now = clock_gettime(ClockId::Monotonic);
    punctual_model::Instant::from_ns(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

fn code(error: &Error) -> Code {
    match error {
        Error::Refused(_) => Code::Refused,
        Error::Unreachable { .. } | Error::TimedOut { .. } | Error::Lost { .. } | Error::Protocol(_) => {
            Code::Daemon
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(code(&error), error.to_string())
    }
}
