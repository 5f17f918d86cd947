//! `punctual prove`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_report::{counted, proof as report};
use punctual_workflow::prove::{Options, prove};
use punctual_workflow::values::{Change, Deadline};
use punctual_workflow::{Destination, Given, ThreadFilter, display_name};

pub fn run(arguments: args::Prove) -> Result<(), Failure> {
    let force = arguments.force;
    let destination = arguments.output.as_deref().map(|path| Destination::new(path, force)).transpose()?;
    let page_is_printed = destination.as_ref().is_some_and(Destination::is_standard_output);
    if page_is_printed && (arguments.json || arguments.task.is_some()) {
        let message = "-o - prints the page to standard output, where --json or --task would print too; name \
                       a file for the page";
        return Err(Failure::new(Code::Usage, message));
    }
    let writes_contract =
        arguments.output.as_deref().is_some_and(|path| path.extension().is_some_and(|it| it == "toml"));
    if writes_contract && !arguments.assign {
        let message = "-o *.toml writes a contract with the priorities that --assign finds, which is \
                       missing; punctual contract writes one of what was observed";
        return Err(Failure::new(Code::Usage, message));
    }
    let title = format!("Proof of {}", display_name(&arguments.model));
    let options = Options {
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
    };
    let proven = prove(&options)?;
    let proof = &proven.proof;
    let page = terminal::page();
    let text = match (&arguments.task, arguments.json) {
        (Some(name), _) => {
            let named = (0..proof.system.tasks.len()).filter(|&task| proof.system.tasks[task].name == *name);
            let all: Vec<String> = named.map(|task| report::task(proof, task, &page)).collect();
            if all.is_empty() {
                let message = format!("no real-time thread of the model is named {name}");
                return Err(Failure::new(Code::Target, message));
            }
            all.join("\n")
        }
        (None, true) => report::json(proof),
        (None, false) => report::proof(proof, &page),
    };
    match &destination {
        Some(_) if page_is_printed => print(&report::html(proof, &title))?,
        Some(destination) if writes_contract => {
            print(&text)?;
            destination.write_or_rescue(proven.assigned(&options)?.to_toml().as_bytes())?;
            let path = destination.path().display();
            let note =
                format!("Wrote {path}; punctual ctl run --keep-priorities --model {path} schedules by it.");
            Console::new(arguments.quiet).note(&note);
            return Ok(());
        }
        Some(destination) => {
            destination.write_or_rescue(report::html(proof, &title).as_bytes())?;
            print(&text)?;
            let path = destination.path().display();
            Console::new(arguments.quiet).note(&format!("Wrote {path}; open it in a browser."));
        }
        None => print(&text)?,
    }
    let missed = proof.missed();
    match missed {
        0 => Ok(()),
        number => {
            Err(Failure::new(Code::Refused, format!("{} not proven", counted(number as u64, "deadline"))))
        }
    }
}
