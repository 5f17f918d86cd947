//! Which functions of a probes file a program has.

use super::files;
use crate::error::{Error, Result};
use punctual_observe::flow::{self as probes, Declared, First, Located, ProbeFile};
use punctual_trace::flow::{Arming, Kind};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What was found.
pub struct Checked {
    file: ProbeFile,
    located: Vec<Located>,
    missing: Vec<Kind>,
    program: PathBuf,
}

/// Looks for the functions of probes files in a program and the libraries it is linked to. Nothing runs.
pub fn check(files: &[PathBuf], program: &Path) -> Result<Checked> {
    let file = files::read(files)?;
    let found = probes::program(program.as_os_str()).ok_or_else(|| {
        Error::target(format!("there is no program {}", program.display()))
            .advise("give its path, or check PATH")
    })?;
    let located = probes::locate(&file, &found)?;
    let missing = probes::missing(&file, &located);
    Ok(Checked { file, located, missing, program: program.to_path_buf() })
}

impl Checked {
    /// Fails if the program has no function for one of the four events.
    pub fn verdict(&self) -> Result<()> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.missing.iter().map(|kind| kind.name()).collect();
        let framework = self.file.framework.as_deref().unwrap_or("this framework");
        Err(Error::target(format!("{} has no function for: {}", self.program.display(), names.join(", ")))
            .advise(format!("is it built with {framework}, and not stripped?")))
    }

    /// For people.
    pub fn text(&self) -> String {
        as_text(&self.file, &self.located)
    }

    /// For programs.
    pub fn json(&self) -> String {
        as_json(&self.file, &self.located)
    }
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
                        "; slow: its first instruction is single-stepped, at ten times the cost"
                    }
                    Some(First::Refused) => {
                        "; unusable: the kernel sets no breakpoint on its first instruction, which is locked"
                    }
                    Some(First::Emulated) | None => "",
                };
                format!("{} at {:#x}{cost}", function.file.display(), function.offset)
            }
        };
        let _ = writeln!(text, "  {:10} {}{at}: {place}", probe.sees.name(), it.symbol);
    }
    for Declared { channel, task, arming } in &file.connections {
        let arming = arming.map(describe).unwrap_or_default();
        let _ = writeln!(text, "  connection {channel} ─► {task}{arming}");
    }
    if let Some(policy) = &file.policy {
        let _ = writeln!(text, "  policy     {policy}");
    }
    if let Some(executors) = file.executors {
        let _ = writeln!(text, "  executors  {executors}");
    }
    text
}

fn describe(arming: Arming) -> String {
    let count = if arming.synchronised { "synchronised" } else { "unsynchronised" };
    let words = [(arming.optional, ", optional"), (arming.is_final, ", final")];
    let words: String = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
    format!(": threshold {}, {count}{words}", arming.threshold)
}

fn name(first: First) -> &'static str {
    match first {
        First::Emulated => "emulated",
        First::SingleStepped => "single-stepped",
        First::Refused => "refused",
    }
}

fn as_json(file: &ProbeFile, located: &[Located]) -> String {
    let probes: Vec<_> = located
        .iter()
        .map(|it| {
            let probe = &file.probes[it.probe];
            json!({
                "event": probe.sees.name(),
                "symbol": it.symbol,
                "at_return": probe.at_return,
                "file": it.function.as_ref().map(|function| function.file.display().to_string()),
                "offset": it.function.as_ref().map(|function| function.offset),
                "first_instruction": it.function.as_ref().and_then(|function| function.first).map(name),
            })
        })
        .collect();
    let connections: Vec<_> = file
        .connections
        .iter()
        .map(|Declared { channel, task, arming }| match arming {
            None => json!({ "channel": channel, "task": task }),
            Some(Arming { threshold, synchronised, optional, is_final, .. }) => json!({
                "channel": channel, "task": task, "threshold": threshold, "synchronised": synchronised,
                "optional": optional, "final": is_final,
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
