//! `punctual flow-probes check`: which functions of a probes file a program has.

use crate::failure::{Code, Failure};
use crate::output;
use clap::{Args, Subcommand, ValueHint};
use punctual_observe::probes::{self, First, Located, ProbeFile};
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Look after files that name the functions of a dataflow framework
///
/// With such a file, punctual record --flow-probes traces a program that cannot be rebuilt.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Arguments {
    #[command(subcommand)]
    command: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Say which of the functions a program has
    ///
    /// Looks in the program and in the libraries that it is linked to; nothing of it runs. The exit code is 0 only if there is a function for each of the four
    /// events.
    #[command(after_long_help = crate::failure::codes())]
    Check {
        /// The probes file (TOML)
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The program
        #[arg(value_hint = ValueHint::ExecutablePath)]
        program: PathBuf,
        /// Print what was found as JSON
        #[arg(long)]
        json: bool,
    },
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let What::Check { file, program, json } = &arguments.command;
    let probes = super::read(file)?;
    let located = probes::locate(&probes, &probes::program_of(&[program.into()])?)?;
    let missing = probes::missing(&probes, &located);
    let text = if *json { as_json(&probes, &located) } else { as_text(&probes, &located) };
    output::print(&text)?;
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|kind| kind.name()).collect();
    let message = format!(
        "{} has no function for: {}; is it built with {}, and not stripped?",
        program.display(),
        names.join(", "),
        probes.framework
    );
    Err(Failure::new(Code::Target, message))
}

fn as_text(file: &ProbeFile, located: &[Located]) -> String {
    let mut text = format!("{}\n", file.framework);
    for it in located {
        let probe = &file.probes[it.probe];
        let at = if probe.at_return { " at return" } else { "" };
        let place = match &it.function {
            None => "not found".to_owned(),
            Some(function) => {
                // A probe at the return begins with one at the entry.
                let cost = match function.first {
                    Some(First::SingleStepped) => "; its first instruction is single-stepped, which costs ten times as much",
                    Some(First::Refused) => "; its first instruction is locked: the kernel sets no breakpoint there",
                    Some(First::Emulated) | None => "",
                };
                format!("{} at {:#x}{cost}", function.file.display(), function.offset)
            }
        };
        let _ = writeln!(text, "  {:10} {}{at}: {place}", probe.kind.name(), it.symbol);
    }
    text
}

fn as_json(file: &ProbeFile, located: &[Located]) -> String {
    let probes: Vec<_> = located
        .iter()
        .map(|it| {
            let probe = &file.probes[it.probe];
            json!({
                "event": probe.kind.name(),
                "symbol": it.symbol,
                "at_return": probe.at_return,
                "file": it.function.as_ref().map(|function| function.file.display().to_string()),
                "offset": it.function.as_ref().map(|function| function.offset),
                "first_instruction": it.function.as_ref().and_then(|function| function.first).map(|first| match first {
                    First::Emulated => "emulated",
                    First::SingleStepped => "single-stepped",
                    First::Refused => "refused",
                }),
            })
        })
        .collect();
    format!("{:#}\n", json!({ "framework": file.framework, "probes": probes }))
}
