//! `punctual compare`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_report::compare::{By, Comparison, Outcome};
use punctual_workflow::Destination;
use punctual_workflow::compare::{Comparer, Options};

pub fn run(arguments: args::Compare) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let force = arguments.force;
    let page = arguments.output.as_deref().map(|path| Destination::new(path, force)).transpose()?;
    let page_is_printed = page.as_ref().is_some_and(Destination::is_standard_output);
    if page_is_printed && arguments.json {
        let message = "-o - and --json both write to standard output; name a file for the page";
        return Err(Failure::new(Code::Usage, message));
    }
    let comparer = Comparer::open(Options {
        runs: arguments.runs,
        by: arguments.by.into_iter().map(by).collect(),
        chains: arguments.chains,
        threads: options::threads(&arguments.threads)?,
    })?;
    let comparison = comparer.run(&console)?;
    if page_is_printed {
        print(&comparison.html())?;
    } else {
        if let Some(destination) = &page {
            destination.write_or_rescue(comparison.html().as_bytes())?;
        }
        print(&if arguments.json { comparison.json() } else { comparison.text(&terminal::page()) })?;
        if let Some(destination) = &page {
            console.note(&format!("Wrote {}; open it in a browser.", destination.path().display()));
        }
    }
    if arguments.fail_on_worse { demand_not_worse(&comparison) } else { Ok(()) }
}

/// A check that cannot tell does not pass.
fn demand_not_worse(comparison: &Comparison) -> Result<(), Failure> {
    let outcomes: Vec<Outcome> = comparison.outcomes().collect();
    let failure = |code| Err(Failure::new(code, comparison.verdict().join(" ")));
    if outcomes.is_empty() {
        let message =
            "--fail-on-worse needs two configurations, and all runs are of one; choose another --by";
        Err(Failure::new(Code::Usage, message))
    } else if outcomes.iter().any(|outcome| outcome.is_worse()) {
        failure(Code::Exceeded)
    } else if outcomes.contains(&Outcome::TooFewRuns) {
        failure(Code::Usage)
    } else {
        Ok(())
    }
}

fn by(by: args::By) -> By {
    match by {
        args::By::Program => By::Program,
        args::By::Platform => By::Platform,
        args::By::Policy => By::Policy,
        args::By::Executors => By::Executors,
        args::By::File => By::File,
        args::By::Folder => By::Folder,
    }
}
