//! `punctual summarize` and `punctual merge`

use super::options;
use super::results::Results;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_report::{blame, counted, shell_word};
use punctual_workflow::Destination;
use punctual_workflow::replay::processors;
use punctual_workflow::summary::{self, Options};

pub fn summarize(arguments: args::Summarize) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let destination = Destination::new(&arguments.output, arguments.force)?;
    let options = Options {
        range: options::range(&arguments.range),
        threads: options::threads(&arguments.threads)?,
        must_match: true,
        models: options::models(&arguments.models),
        causes: arguments.causes,
        workers: arguments.jobs.unwrap_or_else(processors),
        recordings: arguments.recordings,
    };
    let made = summary::summarize(&options, &console)?;
    summary::write(&made, &destination)?;
    if !destination.is_standard_output() {
        let (tasks, path) = (counted(made.tasks() as u64, "task"), shell_word(destination.path()));
        console.note(&format!("Wrote {path}: {tasks}; punctual merge {path} shows them."));
    }
    Ok(())
}

pub fn merge(arguments: &args::Merge) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let output = arguments.results.output.as_deref();
    let again = output.filter(|path| path.extension().is_some_and(|it| it == "summary"));
    let again = again.map(|path| Destination::new(path, arguments.results.force)).transpose()?;
    if again.is_some() && arguments.results.phases {
        let message = "--phases is for the table of tasks, which -o FILE.summary does not print";
        return Err(Failure::new(Code::Usage, message));
    }
    let results = if again.is_none() { Some(Results::new(&arguments.results)?) } else { None };
    if arguments.blame && results.as_ref().is_some_and(Results::is_json) {
        let message = "-o - and --blame both write to standard output; name a file for the timing model";
        return Err(Failure::new(Code::Usage, message));
    }
    let mut merged = summary::merge(&arguments.summaries, processors())?;
    if arguments.same_program {
        merged.unite_programs();
    }
    summary::review(&merged, "--same-program merges them", &console);
    if let Some(destination) = &again {
        summary::write(&merged, destination)?;
        let runs = counted(merged.runs().len() as u64, "run");
        console.note(&format!("Wrote {}: {runs}.", destination.path().display()));
    }
    if let Some(results) = results.filter(|_| output.is_some() || !arguments.blame) {
        results.deliver(&merged.to_model(), arguments.quiet || arguments.blame, console)?;
    }
    match arguments.blame {
        true => print(&blame::text(&summary::blame(&merged), &terminal::page())),
        false => Ok(()),
    }
}
