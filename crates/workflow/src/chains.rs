//! Following data through a dataflow program: from its trace to its graph, the times of its tasks, and the
//! latencies of its chains; with the threads of a recording or of a model beside them.

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::inputs::{DIFFERENT_TIMES, clock_mismatch};
use crate::model_file::{display_name, read_model};
use crate::monitor::{Monitor, Unit};
use crate::recording::{Recording, TimeRange};
use crate::replay;
use punctual_conformance::ChainChecker;
use punctual_extract::StreamOptions;
use punctual_extract::flow::{
    Analysis, ChainError, Chains, Graph, GraphBuilder, Options as FlowOptions, Threads,
};
use punctual_model::{Section, TimingModel};
use punctual_report::counted;
use punctual_trace::Record;
use punctual_trace::flow::{Item, Reader, Totals};
use std::path::{Path, PathBuf};

/// What to analyse.
pub struct Options {
    /// The trace of the dataflow program.
    pub trace: PathBuf,
    /// Chains to follow, each `TASK,TASK,...`; all paths from sources to sinks if there is none.
    pub chains: Vec<String>,
    /// The longest window of arrival curves, in activations minus one.
    pub curve_horizon: usize,
    /// A recording of the same time: it splits execution times by what the kernel did, and its threads are
    /// put beside the program.
    pub kernel: Option<PathBuf>,
    /// A timing model whose threads are put beside the program, instead of those of the recording.
    pub model: Option<PathBuf>,
    /// Which threads are put beside the program.
    pub threads: ThreadFilter,
}

/// Inputs that were opened and fit together.
pub struct Analyser {
    trace: Trace,
    kernel: Option<Recording>,
    /// A model of threads, used instead of those of the recording.
    beside: Option<TimingModel>,
    threads: ThreadFilter,
}

/// A trace, and what to find in it.
pub(crate) struct Trace {
    reader: Reader,
    path: PathBuf,
    /// Names of tasks; all chains if empty.
    chains: Vec<Vec<String>>,
    options: FlowOptions,
}

impl Analyser {
    /// Opens the inputs and checks that they fit together.
    pub fn open(options: &Options, monitor: &dyn Monitor) -> Result<Analyser> {
        let flow = FlowOptions { curve_horizon: options.curve_horizon };
        let trace = Trace::open(&options.trace, &options.chains, flow)?;
        let kernel = options.kernel.as_deref().map(|path| open_kernel(path, &trace.reader)).transpose()?;
        let beside = options.model.as_deref().map(|path| open_model(path, &trace.reader)).transpose()?;
        if let (Some(model), Some(path)) = (&beside, &options.model) {
            if model.dataflow.is_some() {
                let (path, trace) = (display_name(path), trace.path.display());
                monitor.hint(&format!("the dataflow program in {path} is replaced by that of {trace}"));
            }
        }
        if kernel.is_none() && beside.is_none() {
            options.threads.refuse_without_threads(&display_name(&options.trace))?;
        }
        Ok(Analyser { trace, kernel, beside, threads: options.threads.clone() })
    }

    /// Reads the inputs and makes the timing model.
    pub fn run(self, monitor: &dyn Monitor) -> Result<TimingModel> {
        let model = self.trace.model(self.kernel.as_ref(), monitor)?;
        let horizon = self.trace.options.curve_horizon;
        let threads = match (self.beside, &self.kernel) {
            (Some(threads), _) => Some(threads),
            (None, Some(recording)) => Some(kernel_threads(recording, horizon, monitor)?),
            (None, None) => None,
        };
        self.kernel.iter().for_each(|recording| recording.report_problems(monitor));
        let Some(mut threads) = threads else { return Ok(model) };
        self.threads.apply(&mut threads);
        Ok(combine(threads, model, monitor))
    }
}

/// The threads of a recording, as a replay finds them.
fn kernel_threads(recording: &Recording, curve_horizon: usize, monitor: &dyn Monitor) -> Result<TimingModel> {
    let stream = StreamOptions { curve_horizon, ..StreamOptions::default() };
    let options = punctual_extract::Options { stream, merge_transitions: false };
    replay::model(std::slice::from_ref(recording), &options, replay::processors(), monitor)
}

/// Threads and a dataflow program in one model.
pub(crate) fn combine(threads: TimingModel, flow: TimingModel, monitor: &dyn Monitor) -> TimingModel {
    let Some(seen) = &threads.threads else { return flow };
    let spans = flow.dataflow.as_ref().and_then(Section::span).zip(seen.span());
    if spans.is_some_and(|(traced, seen)| !traced.overlaps(seen)) {
        monitor.warn(&format!("{DIFFERENT_TIMES}; the model has both times"));
    }
    TimingModel { dataflow: flow.dataflow, ..threads }
}

impl Trace {
    /// Opens a trace; each of `chains` is `TASK,TASK,...`.
    pub fn open(path: &Path, chains: &[String], options: FlowOptions) -> Result<Trace> {
        Trace::new(Reader::open(path)?, path, chains, options)
    }

    /// A trace that is already open.
    pub fn new(reader: Reader, path: &Path, chains: &[String], options: FlowOptions) -> Result<Trace> {
        let names = |chain: &String| chain.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
        let split: Vec<Vec<String>> = chains.iter().map(names).collect();
        if let Some(place) = split.iter().position(|chain| chain.iter().any(String::is_empty)) {
            return Err(Error::usage(format!("--chain {:?} has an empty task name", chains[place]))
                .advise("separate names with single commas: --chain TASK,TASK"));
        }
        Ok(Trace { reader, path: path.to_owned(), chains: split, options })
    }

    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The model of the program, in two passes over the trace. `kernel` splits execution times by what the
    /// kernel did meanwhile.
    pub fn model(&self, kernel: Option<&Recording>, monitor: &dyn Monitor) -> Result<TimingModel> {
        let mut builder = GraphBuilder::new();
        self.pass("finding the graph", monitor, |item| builder.item(&item))?;
        let graph = builder.finish(self.reader.about());
        let chains = self.chains(&graph)?;

        let threads = kernel.map(|recording| self.executors(recording, monitor)).transpose()?;
        let mut analysis = Analysis::new(&graph, &chains, &self.options);
        if let Some(threads) = &threads {
            analysis = analysis.with_kernel(threads, self.reader.about().threads.clone());
        }
        let totals = self.pass("following data", monitor, |item| analysis.item(&item))?;
        let model = TimingModel {
            dataflow: Some(analysis.finish(self.reader.about(), &totals)),
            ..TimingModel::new(&self.reader.about().clock)
        };
        self.report_problems(&graph, &chains, &totals, monitor);
        Ok(model)
    }

    /// Judges every end-to-end latency of a contract's chains, in two passes over the trace.
    pub fn check(&self, checker: &mut ChainChecker, monitor: &dyn Monitor) -> Result<()> {
        let mut builder = GraphBuilder::new();
        self.pass("finding the graph", monitor, |item| builder.item(&item))?;
        let graph = builder.finish(self.reader.about());
        // By chain of the program: those of the contract, which may have one twice.
        let (mut known, mut numbers): (Vec<Vec<String>>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        let agreed: Vec<Vec<String>> = checker.tasks().map(<[String]>::to_vec).collect();
        for (number, chain) in agreed.into_iter().enumerate() {
            match Chains::given(&graph, std::slice::from_ref(&chain)) {
                Ok(_) => match known.iter().position(|it| *it == chain) {
                    Some(place) => numbers[place].push(number),
                    None => {
                        known.push(chain);
                        numbers.push(vec![number]);
                    }
                },
                Err(error) => checker.is_absent(number, error.to_string()),
            }
        }
        let chains = Chains::given(&graph, &known).unwrap_or_default();
        let mut analysis = Analysis::new(&graph, &chains, &self.options).with_latencies();
        let totals = self.pass("following data", monitor, |item| {
            analysis.item(&item);
            for latency in analysis.ended() {
                numbers[latency.chain].iter().for_each(|it| checker.latency(*it, &latency, &mut |_| {}));
            }
        })?;
        self.report_problems(&graph, &chains, &totals, monitor);
        Ok(())
    }

    /// What the kernel did with the executors' threads.
    fn executors(&self, recording: &Recording, monitor: &dyn Monitor) -> Result<Threads> {
        let mut threads = Threads::new(self.reader.about().threads.values().copied());
        recording.read_all(&mut |record| {
            if let Record::Switch(switch) = record {
                threads.step(switch);
            }
        })?;
        if threads.seen() == 0 {
            monitor.warn(
                "the recording has none of the trace's threads; was it made at the same time, and with \
                 --include-best-effort if they are not real-time?",
            );
        }
        Ok(threads)
    }

    /// Reads the trace once.
    fn pass(
        &self,
        activity: &'static str,
        monitor: &dyn Monitor,
        mut each: impl FnMut(Item),
    ) -> Result<Totals> {
        let progress = monitor.begin(activity, self.reader.bytes(), Unit::Bytes);
        Ok(self.reader.read(&mut each, &mut |bytes| progress.set(bytes))?)
    }

    fn chains(&self, graph: &Graph) -> Result<Chains> {
        if self.chains.is_empty() {
            return Ok(Chains::all(graph));
        }
        Chains::given(graph, &self.chains).map_err(|error| {
            let message = format!("{}: {error}", self.path.display());
            match error {
                ChainError::NoSuchTask { .. } => Error::target(message),
                ChainError::NotConnected { .. } | ChainError::Length(_) => Error::usage(message),
            }
        })
    }

    /// Reports what is missing from the trace or damaged.
    fn report_problems(&self, graph: &Graph, chains: &Chains, totals: &Totals, monitor: &dyn Monitor) {
        let warn = |what: String| monitor.warn(&format!("{}: {what}", self.path.display()));
        for damage in &totals.damages {
            warn(damage.to_string());
        }
        if totals.discarded > 0 {
            let discarded = counted(totals.discarded, "event");
            warn(format!(
                "{discarded} discarded by the tracer, whose buffers were full; data that they may have \
                 changed is not followed"
            ));
        }
        if graph.is_empty() {
            warn("the trace has no events".into());
        }
        if chains.is_too_many {
            let most = punctual_extract::flow::MOST_CHAINS;
            warn(format!("there are more than {most} paths from sources to sinks; choose some with --chain"));
        }
    }
}

/// Opens a recording that can split the trace's execution times.
fn open_kernel(path: &Path, trace: &Reader) -> Result<Recording> {
    let recording = Recording::open(path, &TimeRange::default())?;
    match cannot_split(&recording, trace) {
        Some(why) => Err(Error::usage(format!("cannot use {}", path.display())).because(why)),
        None => Ok(recording),
    }
}

/// Why a recording cannot split the trace's execution times, if it cannot.
pub(crate) fn cannot_split(recording: &Recording, trace: &Reader) -> Option<String> {
    if !recording.about().switches {
        return Some("it has no context switches; record it with --detail switches".into());
    }
    if trace.about().threads.is_empty() {
        return Some("the trace does not say which threads its executors were".into());
    }
    clock_mismatch(recording, trace)
}

/// Reads a model whose times can stand beside those of the trace.
fn open_model(path: &Path, trace: &Reader) -> Result<TimingModel> {
    let model = read_model(path)?;
    let (clock, of_trace) = (&model.clock, &trace.about().clock);
    if clock != of_trace && model.threads.is_some() {
        return Err(Error::usage(format!(
            "{} uses {clock}, the trace {of_trace}; all times of a model must be of one clock",
            display_name(path)
        )));
    }
    Ok(model)
}
