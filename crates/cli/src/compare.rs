//! `punctual compare`: runs of a program side by side.

use crate::args;
use crate::chains::Trace;
use crate::failure::{Code, Failure};
use crate::output::{Destination, print};
use crate::show::{is_standard_input, name, read_model};
use crate::terminal;
use punctual_extract::flow::Options;
use punctual_model::TimingModel;
use punctual_report::compare::{By, Comparison, Input, NothingInCommon};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Everything that was asked for, checked as far as it can be before reading.
pub struct Plan {
    runs: Vec<(PathBuf, Source)>,
    by: Vec<By>,
    page: Page,
    json: bool,
    quiet: bool,
}

/// Where a model comes from.
enum Source {
    Trace(Box<Trace>),
    /// Read when its turn comes.
    Model,
}

/// Where the page goes.
enum Page {
    Nowhere,
    /// Instead of tables.
    Printed,
    File(Destination),
}

impl Plan {
    pub fn new(arguments: args::Compare) -> Result<Plan, Failure> {
        let page = match &arguments.output {
            Some(path) if path.as_os_str() == "-" && arguments.json => {
                let message = "-o - and --json both want standard output; name a file for the page";
                return Err(Failure::new(Code::Usage, message));
            }
            Some(path) if path.as_os_str() == "-" => Page::Printed,
            Some(path) => Page::File(Destination::new(path, arguments.force)?),
            None => Page::Nowhere,
        };
        unless_twice(&arguments.runs)?;
        // Curves are not compared; the shortest cost least.
        let options = || Options { curve_horizon: 1 };
        let source = |path: &Path| match path.is_dir() {
            true => {
                Trace::open(path, &arguments.chains, options()).map(|trace| Source::Trace(Box::new(trace)))
            }
            false => Ok(Source::Model),
        };
        let runs: Vec<(PathBuf, Source)> = arguments
            .runs
            .iter()
            .map(|path| Ok((path.clone(), source(path)?)))
            .collect::<Result<_, Failure>>()?;
        if !arguments.chains.is_empty() && !runs.iter().any(|(_, source)| matches!(source, Source::Trace(_)))
        {
            let message =
                "--chain is for traces; timing models have the chains that were followed when they were made";
            return Err(Failure::new(Code::Usage, message));
        }
        Ok(Plan {
            runs,
            by: arguments.by.into_iter().map(by).collect(),
            page,
            json: arguments.json,
            quiet: arguments.quiet,
        })
    }
}

fn by(by: args::By) -> By {
    match by {
        args::By::Program => By::Program,
        args::By::Platform => By::Platform,
        args::By::Policy => By::Policy,
        args::By::Executors => By::Executors,
        args::By::File => By::File,
    }
}

/// A run that counts twice would make the spread look smaller than it is.
fn unless_twice(paths: &[PathBuf]) -> Result<(), Failure> {
    let mut seen = HashMap::new();
    for path in paths {
        let real = if is_standard_input(path) {
            path.clone()
        } else {
            fs::canonicalize(path).unwrap_or_else(|_| path.clone())
        };
        if let Some(before) = seen.insert(real, path) {
            let same = if before == path { String::new() } else { format!(", as {}", name(before)) };
            let message = format!(
                "{} is given twice{same}; a run says nothing on the spread of another that is itself, give it once",
                name(path)
            );
            return Err(Failure::new(Code::Usage, message));
        }
    }
    Ok(())
}

pub fn run(plan: &Plan) -> Result<(), Failure> {
    let model = |(path, source): &(PathBuf, Source)| -> Result<Input, Failure> {
        let model: TimingModel = match source {
            Source::Trace(trace) => trace.model(None, plan.quiet)?,
            Source::Model => read_model(path)?,
        };
        Ok(Input { name: name(path).into_owned(), model })
    };
    let inputs: Vec<Input> = plan.runs.iter().map(model).collect::<Result<_, _>>()?;
    let comparison = Comparison::new(&inputs, &plan.by).map_err(|nothing| cannot(&inputs, nothing))?;
    let written = match &plan.page {
        Page::Printed => return print(&comparison.html()),
        Page::File(destination) => {
            destination.write_or_rescue(comparison.html().as_bytes())?;
            Some(destination.path().display())
        }
        Page::Nowhere => None,
    };
    print(&if plan.json { comparison.json() } else { comparison.text(&terminal::page()) })?;
    if let Some(written) = written.filter(|_| !plan.quiet) {
        eprintln!("Wrote {written}; open it in a browser.");
    }
    Ok(())
}

fn cannot(inputs: &[Input], nothing: NothingInCommon) -> Failure {
    let named = |number: usize| inputs[number].name.as_str();
    let why = match (nothing.flow, nothing.threads) {
        (Some(flow), Some(threads)) => {
            format!(
                "{} has a dataflow program and {} has threads, and neither all have",
                named(flow),
                named(threads)
            )
        }
        (Some(flow), None) => format!("{} has a dataflow program, and not all have one", named(flow)),
        (None, Some(threads)) => format!("{} has threads, and not all have some", named(threads)),
        (None, None) => "there is neither a dataflow program nor a thread in any".into(),
    };
    Failure::new(Code::Usage, format!("nothing can be compared: {why}; give traces or models of one kind"))
}
