//! Comparing runs: traces of dataflow programs, and timing models.

use crate::chains::Trace;
use crate::destination::is_standard_stream;
use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::model_file::{display_name, read_model};
use crate::monitor::Monitor;
use crate::probes;
use punctual_extract::flow::Options as FlowOptions;
use punctual_report::compare::{By, Comparison, Input, NothingInCommon};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What to compare.
pub struct Options {
    /// Traces (folders) and timing models (files; `-` is standard input): at least two.
    pub runs: Vec<PathBuf>,
    /// What makes a configuration; the default if empty.
    pub by: Vec<By>,
    /// Chains to follow in the traces; all paths from sources to sinks if there is none.
    pub chains: Vec<String>,
    /// Which threads to compare.
    pub threads: ThreadFilter,
}

/// Inputs that were opened.
pub struct Comparer {
    runs: Vec<(PathBuf, Source)>,
    by: Vec<By>,
    threads: ThreadFilter,
}

/// Where a model comes from.
enum Source {
    Trace(Box<Trace>),
    /// Read when its turn comes.
    Model,
}

impl Comparer {
    /// Opens the traces and checks the inputs.
    pub fn open(options: Options) -> Result<Comparer> {
        refuse_duplicates(&options.runs, "the spread of runs needs different runs")?;
        // Curves are not compared; the shortest cost least.
        let open = |path: &Path| -> Result<Source> {
            if !path.is_dir() {
                return Ok(Source::Model);
            }
            // Of a trace with the recording of its threads, the trace.
            let parts = probes::parts(path);
            let path = parts.as_ref().map_or(path, |[trace, _]| trace);
            let trace = Trace::open(path, &options.chains, FlowOptions { curve_horizon: 1 })?;
            Ok(Source::Trace(Box::new(trace)))
        };
        let runs: Vec<(PathBuf, Source)> =
            options.runs.iter().map(|path| Ok((path.clone(), open(path)?))).collect::<Result<_>>()?;
        if !options.chains.is_empty() && !runs.iter().any(|(_, source)| matches!(source, Source::Trace(_))) {
            return Err(Error::usage("--chain applies only to traces of dataflow programs")
                .advise("a timing model has the chains that were chosen when it was made"));
        }
        Ok(Comparer { runs, by: options.by, threads: options.threads })
    }

    /// Reads the inputs and compares them.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<Comparison> {
        let input = |(path, source): &(PathBuf, Source)| -> Result<Input> {
            let name = display_name(path).into_owned();
            let mut model = match source {
                Source::Trace(trace) => trace.model(None, monitor)?,
                Source::Model => read_model(path)?,
            };
            self.threads.select(&mut model, &name)?;
            Ok(Input { name, model })
        };
        let inputs: Vec<Input> = self.runs.iter().map(input).collect::<Result<_>>()?;
        Comparison::new(&inputs, &self.by).map_err(|nothing| incomparable(&inputs, nothing))
    }
}

/// No input counts twice; `advice` says why that matters.
pub(crate) fn refuse_duplicates(paths: &[PathBuf], advice: &str) -> Result<()> {
    let mut seen = HashMap::new();
    for path in paths {
        let real = if is_standard_stream(path) {
            path.clone()
        } else {
            fs::canonicalize(path).unwrap_or_else(|_| path.clone())
        };
        if let Some(before) = seen.insert(real, path) {
            let other =
                if before == path { String::new() } else { format!(", also as {}", display_name(before)) };
            return Err(Error::usage(format!("{} is given twice{other}", display_name(path))).advise(advice));
        }
    }
    Ok(())
}

fn incomparable(inputs: &[Input], nothing: NothingInCommon) -> Error {
    let name = |number: usize| inputs[number].name.as_str();
    let NothingInCommon(kinds) = nothing;
    let found: Vec<String> =
        kinds.iter().filter_map(|(what, input)| Some(format!("{} has {what}", name((*input)?)))).collect();
    let all: Vec<&str> = kinds.iter().map(|(what, _)| *what).collect();
    let why = match &found[..] {
        [] => format!("none has {}", all.join(" or ")),
        [one] => format!("{one}, and others have none"),
        several => format!("{}, and no kind is in all", several.join(", ")),
    };
    Error::usage("the inputs have nothing in common")
        .because(why)
        .advise("compare traces, or models of one kind")
}
