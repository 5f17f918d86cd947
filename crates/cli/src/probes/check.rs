//! `punctual flow-probes check`: which functions of a probes file a program has.

use super::files;
use crate::failure::{Code, Failure};
use crate::output;
use clap::{Args, Subcommand, ValueHint};
use punctual_observe::flow::{self as probes, Declared, First, Located, ProbeFile};
use punctual_trace::flow::Arming;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Look after files that name the functions of a dataflow framework
///
/// With such files, punctual record --flow-probes traces a program that cannot be rebuilt.
/// docs/flow-probes.md says what is in them.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes(), arg_required_else_help = false)]
pub struct Arguments {
    #[command(subcommand)]
    command: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Say which of the functions a program has
    ///
    /// Looks in the program and in the libraries that it is linked to; nothing of it runs. The exit code is 0
    /// only if there is a function for each of the four events.
    #[command(after_long_help = crate::failure::codes())]
    Check {
        /// The probes file (TOML), or the name of one that comes with Punctual: punctual-flow,
        /// tasking-framework-1.2; several add up
        #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// The program
        #[arg(value_hint = ValueHint::ExecutablePath)]
        program: PathBuf,
        /// Print what was found as JSON
        #[arg(long)]
        json: bool,
    },
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let What::Check { files, program, json } = &arguments.command;
    let probes = files::read(files)?;
    let found = probes::program(program.as_os_str()).ok_or_else(|| {
        let message = format!(
            "cannot look for functions in {}: there is no such program; give its path, or look at PATH",
            program.display()
        );
        Failure::new(Code::Target, message)
    })?;
    let located = probes::locate(&probes, &found)?;
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
        probes.framework.as_deref().unwrap_or("this framework")
    );
    Err(Failure::new(Code::Target, message))
}

fn as_text(file: &ProbeFile, located: &[Located]) -> String {
    let mut text = file.framework.iter().map(|framework| format!("{framework}\n")).collect::<String>();
    for it in located {
        let probe = &file.probes[it.probe];
        let at = if probe.at_return { " at return" } else { "" };
        let place = match &it.function {
            None => "not found".to_owned(),
            Some(function) => {
                // A probe at the return begins with one at the entry.
                let cost = match function.first {
                    Some(First::SingleStepped) => {
                        "; its first instruction is single-stepped, which costs ten times as much"
                    }
                    Some(First::Refused) => {
                        "; its first instruction is locked: the kernel sets no breakpoint there"
                    }
                    Some(First::Emulated) | None => "",
                };
                format!("{} at {:#x}{cost}", function.file.display(), function.offset)
            }
        };
        let _ = writeln!(text, "  {:10} {}{at}: {place}", probe.kind.name(), it.symbol);
    }
    for Declared { channel, task, arming } in &file.connections {
        let _ = writeln!(text, "  connection {channel} ─► {task}{}", arming.map(how).unwrap_or_default());
    }
    if let Some(policy) = &file.policy {
        let _ = writeln!(text, "  policy     {policy}");
    }
    if let Some(executors) = file.executors {
        let _ = writeln!(text, "  executors  {executors}");
    }
    text
}

fn how(arming: Arming) -> String {
    let count = if arming.synchronised { "synchronised" } else { "unsynchronised" };
    let words = [(arming.optional, ", optional"), (arming.is_final, ", final")];
    let words: String = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
    format!(": threshold {}, {count}{words}", arming.threshold)
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
    let connections: Vec<_> = file
        .connections
        .iter()
        .map(|Declared { channel, task, arming }| match arming {
            None => json!({ "channel": channel, "task": task }),
            Some(Arming { threshold, synchronised, optional, is_final, .. }) => json!({
                "channel": channel, "task": task, "threshold": threshold, "synchronised": synchronised, "optional": optional, "final": is_final,
            }),
        })
        .collect();
    let found = json!({
        "framework": file.framework,
        "probes": probes,
        "connections": connections,
        "policy": file.policy,
        "executors": file.executors,
    });
    format!("{found:#}\n")
}
