//! Whether recordings, other tools' traces and timing models keep to a contract.

mod threads;

use crate::bounds::Bounds;
use crate::chains::Trace;
use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::guard::tell_unproven;
use crate::import::{self, Temporary};
use crate::inputs::open_trace;
use crate::measure::log;
use crate::model_file::{Given, read_model};
use crate::monitor::Monitor;
use crate::probes;
use crate::recording::{Recording, TimeRange};
use crate::replay::latency::observe_with;
use crate::why;
use punctual_conformance::{
    Answer, ChainChecker, Contract, LatencyChecker, Note, Standing, Term, Verdict, check_model,
};
use punctual_extract::StreamOptions;
use punctual_extract::flow::Options as FlowOptions;
use punctual_model::causes::{Causes, Limit};
use punctual_model::{Platform, Policy};
use punctual_report::conformance::Checked;
use std::num::NonZeroUsize;
use std::path::Path;
use threads::check_threads;

/// What is checked against what.
#[derive(Clone, Debug)]
pub struct Options {
    /// The contract, or a timing model.
    pub contract: Given,
    /// Recordings, traces and timing models.
    pub inputs: Vec<Given>,
    /// Which part of each recording.
    pub range: TimeRange,
    /// What was proven of the tasks: longer responses are violations, too.
    pub bounds: Bounds,
    /// The number of workers; the result does not depend on it.
    pub workers: NonZeroUsize,
}

/// An input, and its import if it is another tool's.
struct Opened {
    name: String,
    input: Input,
    imported: Option<Temporary>,
}

/// What an input is.
enum Input {
    Recording(Box<Recording>),
    Program(Box<Trace>),
    Model(Box<punctual_model::TimingModel>),
}

/// Checks all inputs, each for itself.
pub fn check(options: &Options, monitor: &dyn Monitor) -> Result<Vec<Checked>> {
    let mut contract = options.contract.contract()?;
    if agrees_on_nothing(&contract) {
        return Err(Error::usage(format!(
            "{} agrees on nothing: it has no task, no chain with times, and no processor with a latency",
            options.contract.name()
        )));
    }
    tell_unproven(&options.bounds.apply(&mut contract), monitor);
    // As `punctual import` does, unless the contract is about others.
    let is_of_others = |policy: Policy| !policy.is_real_time();
    let include_best_effort = contract.tasks.iter().any(|task| task.policy.is_some_and(is_of_others));
    let open = |given: &Given| Opened::new(given, options, include_best_effort, monitor);
    let inputs = options.inputs.iter().flat_map(parts);
    let inputs = inputs.map(|given| open(&given)).collect::<Result<Vec<_>>>()?;
    let check = |Opened { name, input, imported }: Opened| {
        let doubt = input.platform().and_then(|platform| options.bounds.doubt(platform));
        doubt.iter().for_each(|doubt| monitor.warn(&format!("{name}: {doubt}")));
        // Those of an import have been told.
        if let (Input::Recording(recording), None) = (&input, &imported) {
            recording.report_notes(monitor);
        }
        let (verdict, causes) = input.check(&contract, options.workers, monitor)?;
        Ok(Checked { input: name, verdict, causes })
    };
    inputs.into_iter().map(check).collect()
}

/// Whether no input could break it.
fn agrees_on_nothing(contract: &Contract) -> bool {
    let forbids_threads = contract.unknown_threads == Some(Answer::Violation);
    let has_chains = contract.chains.iter().any(|chain| chain.has_times());
    contract.tasks.is_empty() && !has_chains && contract.latencies.is_empty() && !forbids_threads
}

/// The trace of a program and the recording of its threads, where both are in one folder.
fn parts(given: &Given) -> Vec<Given> {
    match given {
        Given::File(path) => probes::parts(path).map(|parts| parts.map(Given::File).into()),
        Given::Model(_) => None,
    }
    .unwrap_or_else(|| vec![given.clone()])
}

impl Opened {
    fn new(
        given: &Given,
        options: &Options,
        include_best_effort: bool,
        monitor: &dyn Monitor,
    ) -> Result<Opened> {
        let name = given.name().into_owned();
        let everyone = ThreadFilter::default();
        let (input, imported) = match given {
            Given::File(path) if import::is_foreign(path) => {
                let imported = import::for_the_moment(path, &everyone, include_best_effort, monitor)?;
                let input = match Input::recognise(imported.path(), options)? {
                    Input::Recording(recording) => Input::Recording(Box::new(recording.called(path))),
                    other => other,
                };
                (input, Some(imported))
            }
            Given::File(path) => (Input::recognise(path, options)?, None),
            Given::Model(model) => (Input::Model(model.clone()), None),
        };
        let has_parts = match &input {
            Input::Recording(recording) => !recording.about().latency,
            Input::Program(_) => true,
            Input::Model(_) => false,
        };
        match has_parts || options.range.is_everything() {
            true => Ok(Opened { name, input, imported }),
            false => Err(Error::usage(format!(
                "--from and --until are for recordings of threads and traces of programs; {name} is neither"
            ))),
        }
    }
}

impl Input {
    fn recognise(path: &Path, options: &Options) -> Result<Input> {
        if path.is_dir() {
            if let Ok(reader) = open_trace(path) {
                let trace = Trace::new(reader, path, &[], FlowOptions { curve_horizon: 1 })?;
                let trace = trace.within(options.range);
                return Ok(Input::Program(Box::new(trace)));
            }
            return Ok(Input::Recording(Box::new(Recording::open(path, &options.range)?)));
        }
        Ok(Input::Model(Box::new(read_model(path)?)))
    }

    /// Where its threads ran, if that is known.
    fn platform(&self) -> Option<&Platform> {
        match self {
            Input::Recording(recording) => Some(&recording.about().platform),
            Input::Model(model) => model.platform.as_ref(),
            Input::Program(_) => None,
        }
    }

    fn check(
        self,
        contract: &Contract,
        workers: NonZeroUsize,
        monitor: &dyn Monitor,
    ) -> Result<(Verdict, Option<Causes>)> {
        let verdict = match self {
            Input::Model(model) => {
                let mut verdict = check_model(contract, &model);
                let unchecked = Unchecked { chains: false, latencies: false, tasks: model.threads.is_none() };
                verdict.notes.extend(unchecked.note(contract));
                verdict
            }
            Input::Program(trace) => check_program(&trace, contract, monitor)?,
            Input::Recording(recording) if recording.about().latency => {
                check_latency(&recording, contract, monitor)?
            }
            Input::Recording(recording) => {
                let verdict = check_threads(&recording, contract, workers, monitor)?;
                let causes = causes(&recording, contract, &verdict, workers, monitor);
                return Ok((verdict, causes));
            }
        };
        Ok((verdict, None))
    }
}

/// Why jobs were later than agreed, where they were and the recording has what all threads did.
fn causes(
    recording: &Recording,
    contract: &Contract,
    verdict: &Verdict,
    workers: NonZeroUsize,
    monitor: &dyn Monitor,
) -> Option<Causes> {
    let mut standings = verdict.tallies.iter().flat_map(|tally| &tally.standings);
    let is_late = |it: &Standing| matches!(it.term, Term::Deadline | Term::Response) && it.violations > 0;
    if !recording.about().switches || !standings.any(is_late) {
        return None;
    }
    let choice = why::Choice {
        threads: ThreadFilter::default(),
        jobs: why::Jobs::Agreed(Box::new(contract.clone())),
        worst: 1,
        stream: StreamOptions::without_curves(),
        workers,
    };
    match why::explain(recording, &choice, monitor) {
        Ok(model) => model.causes.map(|mut causes| {
            causes.tasks.retain(|task| task.limit == Limit::Contract && task.late > 0);
            causes
        }),
        Err(error) => {
            monitor.warn(&format!("the late jobs are not explained: {error}"));
            None
        }
    }
}

/// A recording of a measurement of scheduling latency.
fn check_latency(recording: &Recording, contract: &Contract, monitor: &dyn Monitor) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let mut checker = LatencyChecker::new(contract, true);
    let observation = observe_with(recording, &mut |record| {
        if let Some(checker) = &mut checker {
            checker.record(record, &mut |_| {});
        }
    })?;
    recording.report_problems(monitor);
    if let Some(checker) = checker {
        let model = log::model(&observation, recording.about(), recording.reader().until());
        checker.finish(model.latency.as_ref(), &mut verdict, &mut |_| {});
    }
    if verdict.violations() > 0 {
        let text = "there may be more violations: it has the longest wake-ups of each thread only";
        verdict.notes.push(Note { task: "".into(), text: text.into() });
    }
    let unchecked = Unchecked { chains: true, latencies: false, tasks: true };
    verdict.notes.extend(unchecked.note(contract));
    Ok(verdict)
}

/// The trace of a dataflow program.
fn check_program(trace: &Trace, contract: &Contract, monitor: &dyn Monitor) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    if let Some(mut checker) = ChainChecker::new(contract) {
        trace.check(&mut checker, monitor)?;
        checker.finish(&mut verdict);
    }
    let unchecked = Unchecked { chains: false, latencies: true, tasks: true };
    verdict.notes.extend(unchecked.note(contract));
    Ok(verdict)
}

/// What an input does not tell of.
struct Unchecked {
    tasks: bool,
    chains: bool,
    latencies: bool,
}

impl Unchecked {
    /// What of a contract that is, in words; `None` if nothing.
    fn note(&self, contract: &Contract) -> Option<Note> {
        let tasks = self.tasks && !contract.tasks.is_empty();
        let chains = self.chains && contract.chains.iter().any(|chain| chain.has_times());
        let latencies = self.latencies && !contract.latencies.is_empty();
        let what = [
            (tasks, "tasks (by recordings of threads)"),
            (chains, "chains (by the trace of the program)"),
            (latencies, "scheduling latencies (by recordings of punctual latency)"),
        ];
        let what: Vec<&str> = what.into_iter().filter(|it| it.0).map(|it| it.1).collect();
        let text = format!("not checked here: {}", what.join(", "));
        (!what.is_empty()).then(|| Note { task: "".into(), text })
    }
}
