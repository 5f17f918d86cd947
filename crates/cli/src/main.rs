//! The command `punctual`: arguments in, rooms called, errors out. What it shows, observes and infers is in
//! the rooms.

mod args;
mod chains;
mod compare;
mod ctl;
mod doctor;
mod extract;
mod failure;
mod folder;
mod given;
mod import;
mod manual;
mod output;
mod page;
mod platform;
mod probes;
mod progress;
mod record;
mod recording;
mod replay;
mod results;
mod rules;
mod show;
mod stop;
mod terminal;
mod timeline;
mod watch;

use args::{Arguments, Command};
use clap::Parser;
use failure::{Code, Failure};
use std::process::ExitCode;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| eprintln!("{}", failure::of_panic(panic))));
    let ended = std::panic::catch_unwind(|| match Arguments::try_parse() {
        Ok(arguments) => run(arguments.command),
        // Help and version are what was asked for.
        Err(asked) if !asked.use_stderr() => output::print(&help(&asked)),
        Err(error) => Err(failure::of_usage(&error)),
    });
    match ended {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            eprintln!("punctual: {}", failure.message);
            ExitCode::from(failure.code as u8)
        }
        Err(_) => ExitCode::from(Code::Other as u8),
    }
}

fn help(asked: &clap::Error) -> String {
    match terminal::page().colour {
        true => asked.render().ansi().to_string(),
        false => asked.render().to_string(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Extract(arguments) => extract::run(extract::Plan::new(arguments)?),
        Command::Record(mut arguments) => match &std::mem::take(&mut arguments.flow_probes)[..] {
            [] => record::run(record::Plan::new(arguments)?),
            files => probes::run(probes::Plan::new(files, arguments)?),
        },
        Command::FlowProbes(arguments) => probes::check(&arguments),
        Command::Replay(arguments) => replay::run(&replay::Plan::new(arguments)?),
        Command::Import(arguments) => import::run(&import::Plan::new(arguments)?),
        Command::Timeline(arguments) => timeline::run(&timeline::Plan::new(arguments)?),
        Command::Chains(arguments) => chains::run(chains::Plan::new(arguments)?),
        Command::Compare(arguments) => compare::run(&compare::Plan::new(arguments)?),
        Command::Report(arguments) => page::run(page::Plan::new(arguments)?),
        Command::Show(arguments) => show::run(&arguments),
        Command::Rules(arguments) => rules::run(&arguments),
        Command::Ctl(arguments) => ctl::run(arguments),
        Command::Doctor { json } => doctor::run(json),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory } => manual::pages(&directory),
    }
}
