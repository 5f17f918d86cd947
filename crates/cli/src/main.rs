//! The command `punctual`: arguments, calls of `workflow`, output, errors and exit codes.

// Both panic if their stream cannot be written; see `output` and `console`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod commands;
mod console;
mod ctl;
mod failure;
mod manual;
mod output;
mod rules;
mod screen;
mod stop;
mod terminal;
mod usage;
mod values;

use args::{Arguments, Command};
use clap::Parser;
use clap::error::ErrorKind;
use failure::{Code, Failure};
use std::process::ExitCode;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        // The message would be lost with a screen that is gone in a moment.
        screen::restore();
        console::line(&usage::bug(panic));
    }));
    let ended = std::panic::catch_unwind(|| match Arguments::try_parse() {
        Ok(arguments) => run(arguments.command),
        Err(error) if is_help(&error) => output::print(&help(&error)),
        Err(error) => Err(usage::usage_failure(&error)),
    });
    match ended {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            console::message(&failure.message);
            ExitCode::from(failure.code as u8)
        }
        Err(_) => ExitCode::from(Code::Other as u8),
    }
}

/// Help and version, and a command that was named without anything to do.
fn is_help(error: &clap::Error) -> bool {
    !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

fn help(help: &clap::Error) -> String {
    match terminal::page().colour {
        true => help.render().ansi().to_string(),
        false => help.render().to_string(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Extract(arguments) => commands::extract::run(&arguments),
        Command::Top(arguments) => commands::top::run(arguments),
        Command::Why(arguments) => commands::why::run(arguments),
        Command::Record(arguments) => commands::record::run(arguments),
        Command::FlowProbes(arguments) => commands::flow_probes::run(&arguments),
        Command::Replay(arguments) => commands::replay::run(arguments),
        Command::Jobs(arguments) => commands::jobs::run(arguments),
        Command::Summarize(arguments) => commands::summary::summarize(arguments),
        Command::Merge(arguments) => commands::summary::merge(&arguments),
        Command::Import(arguments) => commands::import::run(arguments),
        Command::Timeline(arguments) => commands::timeline::run(arguments),
        Command::Chains(arguments) => commands::chains::run(arguments),
        Command::Compare(arguments) => commands::compare::run(arguments),
        Command::Latency(arguments) => commands::latency::run(arguments),
        Command::Contract(arguments) => commands::contract::run(arguments),
        Command::Check(arguments) => commands::check::run(arguments),
        Command::Watch(arguments) => commands::watch::run(arguments),
        Command::Prove(arguments) => commands::prove::run(arguments),
        Command::Table(arguments) => commands::table::run(arguments),
        Command::Report(arguments) => commands::report::run(arguments),
        Command::Show(arguments) => commands::show::run(&arguments),
        Command::Tt(arguments) => commands::tt::run(arguments),
        Command::Rules(arguments) => rules::run(&arguments),
        Command::Ctl(arguments) => ctl::run(arguments),
        Command::Doctor { pid, json } => commands::doctor::run(pid, json),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory } => manual::pages(&directory),
    }
}
