//! `punctual chains`: the trace of a dataflow program to its graph, the times of its tasks, and the latencies
//! of its chains; beside threads, where there is a recording or a model of some.

use crate::args;
use crate::failure::{Code, Failure, reason};
use crate::given::{AT_ANOTHER_TIME, apart};
use crate::output::Destination;
use crate::progress::Bar;
use crate::recording::Recording;
use crate::replay;
use crate::results::Results;
use crate::show::{name, read_model};
use punctual_extract::StreamOptions;
use punctual_extract::flow::{Analysis, ChainError, Chains, Graph, GraphBuilder, Options, Threads};
use punctual_model::{Dataflow, Section, TimingModel};
use punctual_report as report;
use punctual_trace::Record;
use punctual_trace::flow::{Item, Reader, Totals};
use std::path::{Path, PathBuf};

/// Everything that was asked for, checked as far as it can be before reading.
pub struct Plan {
    trace: Trace,
    /// What the kernel did at the same time.
    kernel: Option<Recording>,
    /// A model of threads that the program is to stand beside, instead of those of the recording.
    beside: Option<TimingModel>,
    graph: Option<Destination>,
    results: Results,
    quiet: bool,
}

/// A trace, and what is wanted of it.
pub struct Trace {
    reader: Reader,
    path: PathBuf,
    /// By names of tasks; none are all.
    chains: Vec<Vec<String>>,
    options: Options,
}

impl Plan {
    pub fn new(arguments: args::Chains) -> Result<Plan, Failure> {
        let results = Results::new(&arguments.results)?;
        let graph = match arguments.graph.as_deref() {
            Some(path) if path.as_os_str() == "-" && results.are_printed() => {
                let message = "--graph - and --json both want standard output; name a file for one of them";
                return Err(Failure::new(Code::Usage, message));
            }
            Some(path) => Some(Destination::new(path, arguments.results.force)?),
            None => None,
        };
        let options = Options { curve_horizon: arguments.curve_horizon as usize };
        let trace = Trace::open(&arguments.trace, &arguments.chains, options)?;
        let kernel =
            arguments.kernel.as_deref().map(|path| of_the_kernel(path, &trace.reader)).transpose()?;
        let beside = arguments.model.as_deref().map(|path| of_threads(path, &trace.reader)).transpose()?;
        if let (Some(model), Some(path), false) = (&beside, &arguments.model, arguments.quiet) {
            if model.dataflow.is_some() {
                let (path, trace) = (name(path), trace.path.display());
                eprintln!("punctual: {path} has a dataflow program already; that of {trace} takes its place");
            }
        }
        Ok(Plan { trace, kernel, beside, graph, results, quiet: arguments.quiet })
    }
}

pub fn run(plan: Plan) -> Result<(), Failure> {
    let mut model = plan.trace.model(plan.kernel.as_ref(), plan.quiet)?;
    let horizon = plan.trace.options.curve_horizon;
    let threads = match (plan.beside, &plan.kernel) {
        (Some(threads), _) => Some(threads),
        (None, Some(recording)) => Some(threads(recording, horizon, plan.quiet)?),
        (None, None) => None,
    };
    plan.kernel.iter().for_each(Recording::warn);
    if let Some(threads) = threads {
        model = beside(threads, model);
    }
    if let (Some(destination), Some(flow)) = (&plan.graph, &model.dataflow) {
        write_graph(destination, flow, plan.quiet)?;
    }
    plan.results.hand_over(&model, plan.quiet)
}

/// The threads of a recording, as `punctual replay` finds them.
fn threads(recording: &Recording, curve_horizon: usize, quiet: bool) -> Result<TimingModel, Failure> {
    let stream = StreamOptions { curve_horizon, wcet_horizon: StreamOptions::default().wcet_horizon };
    let options = punctual_extract::Options { stream, merge_transitions: false };
    replay::model(std::slice::from_ref(recording), &options, replay::processors(), quiet)
}

/// Both in one model.
pub fn beside(threads: TimingModel, flow: TimingModel) -> TimingModel {
    let Some(seen) = &threads.threads else { return flow };
    if flow.dataflow.as_ref().is_some_and(|traced| !traced.span().overlaps(seen.span())) {
        eprintln!("punctual: {AT_ANOTHER_TIME}; the model says when each was");
    }
    TimingModel { dataflow: flow.dataflow, ..threads }
}

impl Trace {
    /// `chains` as they are given: `TASK,TASK,…`.
    pub fn open(path: &Path, chains: &[String], options: Options) -> Result<Trace, Failure> {
        Trace::of(Reader::open(path)?, path, chains, options)
    }

    /// The same of a trace that has been opened.
    pub fn of(reader: Reader, path: &Path, chains: &[String], options: Options) -> Result<Trace, Failure> {
        let names = |chain: &String| chain.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
        let split: Vec<Vec<String>> = chains.iter().map(names).collect();
        if let Some(place) = split.iter().position(|chain| chain.iter().any(String::is_empty)) {
            let message = format!(
                "--chain {:?}: a task has no name; give names with one comma between two: --chain TASK,TASK",
                chains[place]
            );
            return Err(Failure::new(Code::Usage, message));
        }
        Ok(Trace { reader, path: path.to_owned(), chains: split, options })
    }

    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything that is known of the program, in two passes; with what the kernel did meanwhile, where a
    /// recording says so.
    pub fn model(&self, kernel: Option<&Recording>, quiet: bool) -> Result<TimingModel, Failure> {
        let mut builder = GraphBuilder::new();
        pass(self, quiet, "finding the graph", |item| builder.item(&item))?;
        let graph = builder.finish(self.reader.about());
        let chains = chains(self, &graph)?;

        let threads = kernel.map(|recording| self.executors(recording)).transpose()?;
        let mut analysis = Analysis::new(&graph, &chains, &self.options);
        if let Some(threads) = &threads {
            analysis = analysis.with_kernel(threads, self.reader.about().threads.clone());
        }
        let totals = pass(self, quiet, "following data", |item| analysis.item(&item))?;
        let model = TimingModel {
            dataflow: Some(analysis.finish(self.reader.about(), &totals)),
            ..TimingModel::new(&self.reader.about().clock)
        };
        warn(self, &graph, &chains, &totals);
        Ok(model)
    }

    /// What the kernel did with the executors' threads.
    fn executors(&self, recording: &Recording) -> Result<Threads, Failure> {
        let mut threads = Threads::new(self.reader.about().threads.values().copied());
        recording.read_all(&mut |record| {
            if let Record::Switch(switch) = record {
                threads.step(switch);
            }
        })?;
        if threads.seen() == 0 {
            let message = "the recording knows none of the trace's threads; was it made at the same time, with --include-best-effort where they are not real-time?";
            eprintln!("punctual: {message}");
        }
        Ok(threads)
    }
}

/// A recording that can say what the kernel did at the time of the trace.
fn of_the_kernel(path: &Path, trace: &Reader) -> Result<Recording, Failure> {
    let recording = Recording::open(path, &args::Stretch::default())?;
    match unable(&recording, trace) {
        Some(why) => Err(Failure::new(Code::Usage, format!("{}: {why}", path.display()))),
        None => Ok(recording),
    }
}

/// Why a recording cannot say what the kernel did with the executors of the trace, if so.
pub fn unable(recording: &Recording, trace: &Reader) -> Option<String> {
    if !recording.about().switches {
        return Some(
            "it has no steps of the scheduler; punctual record --detail switches makes one that has".into(),
        );
    }
    if trace.about().threads.is_empty() {
        return Some(
            "the trace does not say which threads its executors were, so the recording says nothing of it"
                .into(),
        );
    }
    apart(recording, trace)
}

/// A model of threads, whose instants can stand beside those of the trace.
fn of_threads(path: &Path, trace: &Reader) -> Result<TimingModel, Failure> {
    let model = read_model(path)?;
    let (clock, of_trace) = (&model.clock, &trace.about().clock);
    if clock != of_trace && model.threads.is_some() {
        let message = format!(
            "{}: its clock is {clock}, that of the trace is {of_trace}; all times of a model are of one clock",
            name(path)
        );
        return Err(Failure::new(Code::Usage, message));
    }
    Ok(model)
}

/// Once through the trace.
fn pass(
    trace: &Trace,
    quiet: bool,
    what: &'static str,
    mut each: impl FnMut(Item),
) -> Result<Totals, Failure> {
    let bar = Bar::new(quiet, what, trace.reader.bytes(), "bytes");
    Ok(trace.reader.read(&mut each, &mut |bytes| bar.set(bytes))?)
}

fn chains(trace: &Trace, graph: &Graph) -> Result<Chains, Failure> {
    if trace.chains.is_empty() {
        return Ok(Chains::all(graph));
    }
    Chains::given(graph, &trace.chains).map_err(|error| {
        let code = match error {
            ChainError::NoSuchTask { .. } => Code::Target,
            ChainError::NotConnected { .. } | ChainError::Length(_) => Code::Usage,
        };
        Failure::new(code, format!("{}: {error}", trace.path.display()))
    })
}

/// Says what is missing or damaged, however quiet.
fn warn(trace: &Trace, graph: &Graph, chains: &Chains, totals: &Totals) {
    let place = trace.path.display();
    for damage in &totals.damages {
        eprintln!("punctual: {place}: {damage}");
    }
    if totals.discarded > 0 {
        let discarded = report::counted(totals.discarded, "event");
        eprintln!(
            "punctual: {place}: {discarded} discarded by the tracer, which had no room; what they may have changed is not followed"
        );
    }
    if graph.is_empty() {
        eprintln!("punctual: {place}: there is no event in it");
    }
    if chains.is_too_many {
        let most = punctual_extract::flow::MOST_CHAINS;
        eprintln!(
            "punctual: {place}: there are more than {most} paths from sources to sinks; name those that you want with --chain"
        );
    }
}

fn write_graph(destination: &Destination, flow: &Dataflow, quiet: bool) -> Result<(), Failure> {
    let name = destination.path().display();
    destination
        .write(report::flow::dot(flow).as_bytes())
        .map_err(|error| Failure::file("write", &name, reason(&error)))?;
    if !quiet {
        eprintln!("Wrote {name}: the graph; dot -Tsvg {name} draws it.");
    }
    Ok(())
}
