//! Following data through a dataflow program: from its trace to its graph, the times of its tasks, and the
//! latencies of its chains; with the threads of a recording or of a model beside them.

mod deadlines;
mod lists;
mod passages;

pub use deadlines::Deadlines;
pub use lists::{List, Lists};

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::import::{self, Temporary};
use crate::inputs::{DIFFERENT_TIMES, clock_mismatch};
use crate::model_file::{display_name, read_model};
use crate::monitor::{Monitor, Unit};
use crate::probes;
use crate::recording::{Recording, TimeRange};
use crate::replay;
use lists::Listing;
use punctual_conformance::{ChainChecker, Verdict};
use punctual_extract::StreamOptions;
use punctual_extract::flow::{
    Analysis, Assumed, ChainError, Chains, Clip, Clipped, Graph, GraphBuilder, Options as FlowOptions,
    Threads,
};
use punctual_import::is_trace;
use punctual_model::{Duration, Instant, Section, TimingModel};
use punctual_report::counted;
use punctual_trace::flow::{About, Item, Reader, Totals};
use punctual_trace::{ErrorKind, Record};
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
    /// Which part of the trace.
    pub range: TimeRange,
    /// How long data may take.
    pub deadlines: Deadlines,
    /// Where to list instances and passages.
    pub lists: Lists,
}

/// What was found.
pub struct Analysed {
    /// The timing model.
    pub model: TimingModel,
    /// Whether deadlines are met, if there are any.
    pub verdict: Option<Verdict>,
}

/// Inputs that were opened and fit together.
pub struct Analyser {
    /// The folder of a trace that was imported for this.
    imported: Option<Temporary>,
    trace: Trace,
    kernel: Option<Recording>,
    /// A model of threads, used instead of those of the recording.
    beside: Option<TimingModel>,
    threads: ThreadFilter,
    deadlines: Deadlines,
    lists: Lists,
}

/// A trace, and what to find in it.
pub(crate) struct Trace {
    reader: Reader,
    path: PathBuf,
    /// Names of tasks; all chains if empty.
    chains: Vec<Vec<String>>,
    options: FlowOptions,
    part: Part,
}

/// Which part of a trace is read.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// From its first event on.
    Since(TimeRange),
    Between(Instant, Instant),
}

impl Part {
    fn is_everything(&self) -> bool {
        matches!(self, Part::Since(range) if range.is_everything())
    }

    /// Of a trace that begins then.
    fn span(&self, begin: Instant) -> (Instant, Instant) {
        let at = |offset: std::time::Duration| {
            begin + Duration::from_ns(u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX))
        };
        match self {
            Part::Since(TimeRange { from, until }) => {
                (from.map_or(begin, at), until.map_or(Instant::from_ns(u64::MAX), at))
            }
            Part::Between(from, until) => (*from, *until),
        }
    }
}

/// What the first pass finds.
struct Program {
    graph: Graph,
    /// What the trace says, of the part that is analysed.
    about: About,
    /// That part, if it is not everything.
    span: Option<(Instant, Instant)>,
}

impl Analyser {
    /// Opens the inputs and checks that they fit together.
    pub fn open(options: Options, monitor: &dyn Monitor) -> Result<Analyser> {
        let flow = FlowOptions { curve_horizon: options.curve_horizon };
        let imported = import::is_of_ros(&options.trace)
            .then(|| import::for_the_moment(&options.trace, &options.threads, false, monitor))
            .transpose()?;
        let (path, beside) = match (&imported, probes::parts(&options.trace)) {
            (Some(program), _) => (program.path().to_owned(), program.recording().map(Path::to_owned)),
            (None, Some([trace, recording])) => (trace, Some(recording)),
            (None, None) => (options.trace.clone(), None),
        };
        let trace = Trace::open(&path, &options.chains, flow)?.within(options.range);
        let kernel = options.kernel.or(beside);
        let kernel = kernel.as_deref().map(|path| open_kernel(path, &trace.reader)).transpose()?;
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
        let Options { threads, deadlines, lists, .. } = options;
        Ok(Analyser { imported, trace, kernel, beside, threads, deadlines, lists })
    }

    /// Reads the inputs, makes the timing model and judges the deadlines.
    pub fn run(self, monitor: &dyn Monitor) -> Result<Analysed> {
        let program = self.trace.program(monitor)?;
        let checker = self.deadlines.checker(&program.graph)?;
        let model = self.trace.model_of(&program, self.kernel.as_ref(), &self.lists, monitor)?;
        let verdict = checker.map(|checker| self.trace.verdict(&program, checker, monitor)).transpose()?;
        let model = self.with_threads(model, monitor)?;
        Ok(Analysed { model, verdict })
    }

    /// Puts threads beside the program, if there are some.
    fn with_threads(self, model: TimingModel, monitor: &dyn Monitor) -> Result<TimingModel> {
        let horizon = self.trace.options.curve_horizon;
        let threads = match (self.beside, &self.kernel) {
            (Some(threads), _) => Some(threads),
            (None, Some(recording)) => Some(kernel_threads(recording, horizon, monitor)?),
            (None, None) => None,
        };
        if let Some(recording) = &self.kernel {
            recording.report_problems(monitor);
            // Those of the import have been told.
            if self.imported.is_none() {
                recording.report_notes(monitor);
            }
        }
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
        let reader = Reader::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotATrace if path.is_dir() => Error::from(error).advise(
                "traces of ROS 2 and of other tools are read by punctual import, recordings of threads by \
                 punctual replay",
            ),
            ErrorKind::NotATrace if is_trace(path) => Error::from(error)
                .advise("it is a trace of threads by another tool, which punctual import reads"),
            _ => error.into(),
        })?;
        Trace::new(reader, path, chains, options)
    }

    /// A trace that is already open.
    pub fn new(reader: Reader, path: &Path, chains: &[String], options: FlowOptions) -> Result<Trace> {
        let names = |chain: &String| chain.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
        let split: Vec<Vec<String>> = chains.iter().map(names).collect();
        if let Some(place) = split.iter().position(|chain| chain.iter().any(String::is_empty)) {
            return Err(Error::usage(format!("--chain {:?} has an empty task name", chains[place]))
                .advise("separate names with single commas: --chain TASK,TASK"));
        }
        Ok(Trace {
            reader,
            path: path.to_owned(),
            chains: split,
            options,
            part: Part::Since(TimeRange::default()),
        })
    }

    /// Reads this part only; its offsets count from the first event.
    pub fn within(self, range: TimeRange) -> Trace {
        Trace { part: Part::Since(range), ..self }
    }

    /// Reads the part between two times only.
    pub fn between(self, from: Instant, until: Instant) -> Trace {
        Trace { part: Part::Between(from, until), ..self }
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
        self.model_of(&self.program(monitor)?, kernel, &Lists::default(), monitor)
    }

    /// The first pass: the graph of the part that is analysed.
    fn program(&self, monitor: &dyn Monitor) -> Result<Program> {
        let (mut builder, mut clip) = (GraphBuilder::new(), None);
        let about = self.reader.about();
        let is_everything = self.part.is_everything();
        let mut span = None;
        self.pass("finding the graph", monitor, |item| {
            if is_everything {
                return builder.item(&item);
            }
            let clip = clip.get_or_insert_with(|| {
                let (from, until) = self.part.span(item.at());
                span = Some((from, until));
                Clip::new(from, until, about)
            });
            clip.item(&item).and_then(Clipped::inside).iter().for_each(|item| builder.item(item));
        })?;
        let about = clip.map_or_else(|| about.clone(), |clip| clip.about(about));
        let graph = builder.finish(&about);
        if !is_everything && graph.is_empty() {
            let path = self.path.display();
            return Err(Error::usage(format!("{path} has no events between --from and --until")));
        }
        Ok(Program { graph, about, span })
    }

    /// The second pass.
    fn model_of(
        &self,
        program: &Program,
        kernel: Option<&Recording>,
        lists: &Lists,
        monitor: &dyn Monitor,
    ) -> Result<TimingModel> {
        let Program { graph, about, .. } = program;
        let chains = self.chains(graph)?;
        let threads = kernel.map(|recording| self.executors(recording, monitor)).transpose()?;
        let mut analysis = Analysis::new(graph, &chains, &self.options);
        if let Some(threads) = &threads {
            analysis = analysis.with_kernel(threads, about.threads.clone());
        }
        if lists.instances.is_some() {
            analysis = analysis.with_instances();
        }
        if lists.passages.is_some() {
            analysis = analysis.with_latencies();
        }
        let assumed = graph.assumed();
        let mut others: Vec<(&Assumed, Analysis<'_>)> =
            assumed.iter().map(|it| (it, Analysis::new(&it.graph, &chains, &self.options))).collect();
        let mut listing = Listing::begin(lists, graph, &chains, &about.clock)?;
        let totals = self.follow(program, monitor, |item| {
            analysis.clipped(item);
            others.iter_mut().for_each(|(_, other)| other.clipped(item));
            listing.take(&mut analysis);
        })?;
        listing.finish(monitor)?;
        let mut flow = analysis.finish(about, &totals);
        for (assumed, other) in others {
            assumed.put_beside(&mut flow, other.finish(about, &totals));
        }
        let model = TimingModel { dataflow: Some(flow), ..TimingModel::new(&about.clock) };
        self.report_problems(graph, &chains, &totals, monitor);
        Ok(model)
    }

    /// Follows data through the part that is analysed.
    fn follow(
        &self,
        program: &Program,
        monitor: &dyn Monitor,
        mut each: impl FnMut(&Clipped),
    ) -> Result<Totals> {
        let mut clip = program.span.map(|(from, until)| Clip::new(from, until, self.reader.about()));
        let totals = self.pass("following data", monitor, |item| match &mut clip {
            None => each(&Clipped::Inside(item)),
            Some(clip) => clip.item(&item).iter().for_each(&mut each),
        })?;
        let events = if clip.is_some() { program.graph.events() } else { totals.events };
        Ok(Totals { events, ..totals })
    }

    /// Judges every end-to-end latency of a contract's chains, in two passes over the trace.
    pub fn check(&self, checker: &mut ChainChecker, monitor: &dyn Monitor) -> Result<()> {
        self.judge(&self.program(monitor)?, checker, monitor)
    }

    fn verdict(
        &self,
        program: &Program,
        mut checker: ChainChecker,
        monitor: &dyn Monitor,
    ) -> Result<Verdict> {
        self.judge(program, &mut checker, monitor)?;
        let mut verdict = Verdict::default();
        checker.finish(&mut verdict);
        Ok(verdict)
    }

    fn judge(&self, program: &Program, checker: &mut ChainChecker, monitor: &dyn Monitor) -> Result<()> {
        let graph = &program.graph;
        // By chain of the program: those of the contract, which may have one twice.
        let (mut known, mut numbers): (Vec<Vec<String>>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        let agreed: Vec<Vec<String>> = checker.tasks().map(<[String]>::to_vec).collect();
        for (number, chain) in agreed.into_iter().enumerate() {
            match Chains::given(graph, std::slice::from_ref(&chain)) {
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
        let chains = Chains::given(graph, &known).unwrap_or_default();
        let mut analysis = Analysis::new(graph, &chains, &self.options).with_latencies();
        self.follow(program, monitor, |item| {
            analysis.clipped(item);
            for latency in analysis.ended() {
                numbers[latency.chain].iter().for_each(|it| checker.latency(*it, &latency, &mut |_| {}));
            }
        })?;
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
                ChainError::NotConnected { .. }
                | ChainError::NoPath { .. }
                | ChainError::TooMany { .. }
                | ChainError::Length(_) => Error::usage(message),
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
