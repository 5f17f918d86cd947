//! `punctual chains`: the trace of a dataflow program to its graph, the times of its tasks, and the latencies of its chains.

use crate::args;
use crate::failure::{Code, Failure, reason};
use crate::output::Destination;
use crate::progress::Bar;
use crate::recording::Recording;
use crate::results::Results;
use punctual_extract::flow::{Analysis, ChainError, Chains, Graph, GraphBuilder, Options, Threads};
use punctual_model::{FORMAT, Observation, Platform, TimingModel, VERSION};
use punctual_report as report;
use punctual_trace::Record;
use punctual_trace::flow::{Item, Reader, Totals};
use std::path::{Path, PathBuf};

/// Everything that was asked for, checked as far as it can be before reading.
pub struct Plan {
    trace: Trace,
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
    kernel: Option<Recording>,
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
        let mut trace = Trace::open(&arguments.trace, &arguments.chains, options)?;
        trace.kernel = arguments.kernel.as_deref().map(|path| of_the_kernel(path, &trace.reader)).transpose()?;
        Ok(Plan { trace, graph, results, quiet: arguments.quiet })
    }
}

pub fn run(plan: &Plan) -> Result<(), Failure> {
    let model = plan.trace.model(plan.quiet)?;
    write_graph(plan, &model)?;
    plan.results.hand_over(&model, plan.quiet)
}

impl Trace {
    /// `chains` as they are given: `TASK,TASK,…`.
    pub fn open(path: &Path, chains: &[String], options: Options) -> Result<Trace, Failure> {
        let names = |chain: &String| chain.split(',').map(|name| name.trim().to_owned()).collect();
        let chains = chains.iter().map(names).collect();
        Ok(Trace { reader: Reader::open(path)?, path: path.to_owned(), chains, options, kernel: None })
    }

    /// Everything that is known of the program, in two passes.
    pub fn model(&self, quiet: bool) -> Result<TimingModel, Failure> {
        let mut builder = GraphBuilder::new();
        pass(self, quiet, "finding the graph", |item| builder.item(&item))?;
        let graph = builder.finish(self.reader.about());
        let chains = chains(self, &graph)?;

        let threads = self.threads()?;
        let mut analysis = Analysis::new(&graph, &chains, &self.options);
        if let Some(threads) = &threads {
            analysis = analysis.with_kernel(threads, self.reader.about().threads.clone());
        }
        let totals = pass(self, quiet, "following data", |item| analysis.item(&item))?;
        let model = TimingModel {
            format: FORMAT.into(),
            version: VERSION,
            platform: Platform { kernel: String::new(), machine: String::new(), cpus: 0 },
            observation: Observation {
                clock: self.reader.about().clock.clone(),
                from_ns: graph.from(),
                until_ns: graph.until(),
                records: 0,
                lost_records: 0,
                untracked_threads: 0,
                skipped_events: 0,
                omitted_tasks: 0,
                dataflow: None,
            },
            tasks: Vec::new(),
            dataflow: Some(analysis.finish(self.reader.about(), &totals)),
        };
        warn(self, &graph, &chains, &totals);
        Ok(model)
    }

    /// What the kernel did with the executors' threads.
    fn threads(&self) -> Result<Option<Threads>, Failure> {
        let Some(recording) = &self.kernel else { return Ok(None) };
        let mut threads = Threads::new(self.reader.about().threads.values().copied());
        recording.read_all(&mut |record| {
            if let Record::Switch(switch) = record {
                threads.step(switch);
            }
        })?;
        recording.warn();
        if threads.seen() == 0 {
            let message = "the recording knows none of the trace's threads; was it made at the same time, with --include-best-effort where they are not real-time?";
            eprintln!("punctual: {message}");
        }
        Ok(Some(threads))
    }
}

/// A recording that can say what the kernel did at the time of the trace.
fn of_the_kernel(path: &Path, trace: &Reader) -> Result<Recording, Failure> {
    let refused = |why: &str| Failure::new(Code::Usage, format!("{}: {why}", path.display()));
    let recording = Recording::open(path, &args::Stretch::default())?;
    let (about, of_trace) = (recording.about(), trace.about());
    if !about.switches {
        return Err(refused("it has no steps of the scheduler; punctual record --detail switches makes one that has"));
    }
    if about.clock != of_trace.clock {
        return Err(refused(&format!("its clock is {}, that of the trace is {}", about.clock, of_trace.clock)));
    }
    if of_trace.threads.is_empty() {
        return Err(refused("the trace does not say which threads its executors were, so the recording says nothing of it"));
    }
    // The zero of such a clock is when the machine started; the time of day may have been set meanwhile.
    let zeros = about.clock_zero.zip(of_trace.clock_zero.and_then(|zero| i64::try_from(zero).ok()));
    if zeros.is_some_and(|(one, other)| one.abs_diff(other) > 60_000_000_000) {
        return Err(refused("it is of another start of the machine than the trace"));
    }
    Ok(recording)
}

/// Once through the trace.
fn pass(trace: &Trace, quiet: bool, what: &'static str, mut each: impl FnMut(Item)) -> Result<Totals, Failure> {
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
        eprintln!("punctual: {place}: {discarded} discarded by the tracer, which had no room; what they may have changed is not followed");
    }
    if graph.is_empty() {
        eprintln!("punctual: {place}: there is no event in it");
    }
    if chains.is_too_many {
        let most = punctual_extract::flow::MOST_CHAINS;
        eprintln!("punctual: {place}: there are more than {most} paths from sources to sinks; name those that you want with --chain");
    }
}

fn write_graph(plan: &Plan, model: &TimingModel) -> Result<(), Failure> {
    let (Some(destination), Some(flow)) = (&plan.graph, &model.dataflow) else { return Ok(()) };
    let name = destination.path().display();
    destination.write(report::flow::dot(flow).as_bytes()).map_err(|error| Failure::file("write", &name, reason(&error)))?;
    if !plan.quiet {
        eprintln!("Wrote {name}: the graph; dot -Tsvg {name} draws it.");
    }
    Ok(())
}
