//! `punctual table`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_model::check::TableViolation;
use punctual_model::table::Clock;
use punctual_model::{Duration, Table};
use punctual_report::{shell_word, time_table as report};
use punctual_workflow::Destination;
use punctual_workflow::table::{self, Options};

pub fn run(arguments: args::Table) -> Result<(), Failure> {
    match &arguments.from {
        Some(path) => check(path, arguments.json),
        None => make(arguments),
    }
}

/// A table that is there already.
fn check(path: &std::path::Path, json: bool) -> Result<(), Failure> {
    let (model, found) = table::read(path)?;
    let table = table::table_of(&model, path)?;
    show(table, &found, json)?;
    if found.is_empty() {
        return Ok(());
    }
    if !json {
        print(&report::violations(&found))?;
    }
    let count = punctual_report::counted(found.len() as u64, "violation");
    Err(Failure::new(Code::Refused, format!("the table breaks requirements of its tasks: {count}")))
}

fn make(arguments: args::Table) -> Result<(), Failure> {
    let destination = arguments.output.as_deref();
    let destination = destination.map(|path| Destination::new(path, arguments.force)).transpose()?;
    let is_for_standard_output = destination.as_ref().is_some_and(Destination::is_standard_output);
    if is_for_standard_output && arguments.json {
        let message = "-o - and --json both write to standard output; give a file name for the table";
        return Err(Failure::new(Code::Usage, message));
    }
    let options = Options {
        slot: arguments.slot.map(|slot| Duration::from_ns(slot.as_nanos().try_into().unwrap_or(u64::MAX))),
        processors: arguments.cpus.map_or_else(Vec::new, |cpus| cpus.0.into_iter().collect()),
        migration: arguments.migration,
        margin: arguments.margin,
        shorten: arguments.shorten_periods,
        clock: arguments.clock.map(|clock| match clock {
            args::TableClock::Monotonic => Clock::Monotonic,
            args::TableClock::Tai => Clock::Tai,
        }),
        threads: options::threads(&arguments.threads)?,
        inputs: arguments.files,
    };
    let console = Console::new(arguments.quiet);
    let model = table::make(&options, &console)?;
    let Some(table) = &model.table else {
        return Err(Failure::new(Code::Other, "no table to show"));
    };
    match destination {
        Some(destination) if destination.is_standard_output() => print(&model.to_json()),
        Some(destination) => {
            destination.write_or_rescue(model.to_json().as_bytes())?;
            if !arguments.quiet || arguments.json {
                show(table, &[], arguments.json)?;
            }
            let path = shell_word(destination.path());
            console.note(&format!("Wrote {path}; punctual table --from {path} checks and shows it."));
            Ok(())
        }
        None => show(table, &[], arguments.json),
    }
}

fn show(table: &Table, found: &[TableViolation], json: bool) -> Result<(), Failure> {
    print(&if json { report::json(table, found) } else { report::time_table(table, &terminal::page()) })
}
