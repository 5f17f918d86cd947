//! `punctual prove`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_report::{counted, proof as report, shell_word};
use punctual_workflow::prove::{Options, Proof, assign, prove};
use punctual_workflow::values::{Change, Deadline};
use punctual_workflow::{Destination, Given, ThreadFilter, display_name};
use std::path::Path;

/// What `-o` writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Json,
    Contract,
}

pub fn run(arguments: args::Prove) -> Result<(), Failure> {
    let kind = arguments.output.as_deref().map(kind).transpose()?;
    let force = arguments.force;
    let destination = arguments.output.as_deref().map(|path| Destination::new(path, force)).transpose()?;
    let page_is_printed = destination.as_ref().is_some_and(Destination::is_standard_output);
    if page_is_printed && (arguments.json || arguments.task.is_some()) {
        let message = "-o - prints the page to standard output, where --json or --task would print too; name \
                       a file for the page";
        return Err(Failure::new(Code::Usage, message));
    }
    if kind == Some(Kind::Contract) && !arguments.assign {
        let message = "-o *.toml writes a contract with what --assign finds, which is \
                       missing; punctual contract writes one of what was observed";
        return Err(Failure::new(Code::Usage, message));
    }
    let title = format!("Proof of {}", display_name(&arguments.model));
    let (shown, quiet) = ((arguments.task.clone(), arguments.json), arguments.quiet);
    let options = options_of(arguments)?;
    let (proof, contract) = match kind {
        Some(Kind::Contract) => {
            let assigned = assign(&options)?;
            (assigned.proof, Some(assigned.contract))
        }
        _ => (prove(&options)?, None),
    };
    let text = text(&proof, shown)?;
    let Some(destination) = destination else {
        print(&text)?;
        return verdict(&proof);
    };
    let path = shell_word(destination.path());
    let note = match (kind, contract) {
        _ if page_is_printed => {
            print(&report::html(&proof, &title))?;
            return verdict(&proof);
        }
        (_, Some(contract)) => {
            print(&text)?;
            destination.write_or_rescue(contract?.to_toml().as_bytes())?;
            format!("Wrote {path}; punctual ctl run --keep-priorities --model {path} asks punctuald for it.")
        }
        (Some(Kind::Json), None) => {
            destination.write_or_rescue(report::json(&proof).as_bytes())?;
            print(&text)?;
            format!("Wrote {path}; punctual watch --bounds {path} compares with it.")
        }
        _ => {
            destination.write_or_rescue(report::html(&proof, &title).as_bytes())?;
            print(&text)?;
            format!("Wrote {path}; open it in a browser.")
        }
    };
    Console::new(quiet).note(&note);
    verdict(&proof)
}

/// By the ending of the file's name.
fn kind(path: &Path) -> Result<Kind, Failure> {
    let Some(extension) = path.extension() else { return Ok(Kind::Page) };
    match extension.to_str() {
        Some("html" | "htm") => Ok(Kind::Page),
        Some("json") => Ok(Kind::Json),
        Some("toml") => Ok(Kind::Contract),
        _ => {
            let message = format!(
                "{}: -o writes *.html, *.json or, with --assign, *.toml; give the file such a name",
                path.display()
            );
            Err(Failure::new(Code::Usage, message))
        }
    }
}

fn options_of(arguments: args::Prove) -> Result<Options, Failure> {
    Ok(Options {
        deadlines: arguments.deadlines.iter().map(Deadline::resolve).collect::<Result<_, _>>()?,
        changes: arguments.changes.iter().map(Change::resolve).collect::<Result<_, _>>()?,
        margin: arguments.margin,
        threads: options::threads(&arguments.threads)?,
        ignored: match &arguments.ignored[..] {
            [] => None,
            patterns => Some(ThreadFilter::new(patterns)?),
        },
        sensitivity: arguments.sensitivity,
        assign: arguments.assign,
        platform: arguments.platform.map(Given::File),
        model: Given::File(arguments.model),
    })
}

/// All of a proof, or one task of it; as JSON or to read.
fn text(proof: &Proof, (task, json): (Option<String>, bool)) -> Result<String, Failure> {
    let page = terminal::page();
    let Some(name) = task else {
        return Ok(if json { report::json(proof) } else { report::proof(proof, &page) });
    };
    let named = |task: &usize| proof.system.tasks[*task].name == name;
    let tasks: Vec<usize> = (0..proof.system.tasks.len()).filter(named).collect();
    if tasks.is_empty() {
        let message = format!("no real-time thread of the model is named {name}");
        return Err(Failure::new(Code::Target, message));
    }
    if json {
        return Ok(report::json_of_tasks(proof, &tasks));
    }
    let all: Vec<String> = tasks.into_iter().map(|task| report::task(proof, task, &page)).collect();
    Ok(all.join("\n"))
}

fn verdict(proof: &Proof) -> Result<(), Failure> {
    match proof.missed() {
        0 => Ok(()),
        number => {
            Err(Failure::new(Code::Refused, format!("{} not proven", counted(number as u64, "deadline"))))
        }
    }
}
