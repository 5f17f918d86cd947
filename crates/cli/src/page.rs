//! `punctual report`: the page to look at.

use crate::args;
use crate::chains::Trace;
use crate::failure::{Code, Failure};
use crate::output::{Destination, print};
use crate::progress::Bar;
use crate::recording::Recording;
use crate::replay::{Primaries, each_job};
use crate::show::{is_standard_input, name, read_model};
use punctual_extract::flow::Options;
use punctual_model::{EndedBy, Instant, Task, TimingModel};
use punctual_report::html::{Jobs, States, page};
use punctual_trace::flow::Reader;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Everything that was asked for, checked as far as it can be before reading recordings.
pub struct Plan {
    file: PathBuf,
    /// A trace in the place of the model: of a dataflow program, and analysed first.
    analysed: Option<Trace>,
    /// The trace of a dataflow program whose states are drawn, and where it is.
    flow: Option<(Reader, PathBuf)>,
    recordings: Vec<Recording>,
    /// None is standard output.
    destination: Option<Destination>,
    quiet: bool,
}

impl Plan {
    pub fn new(arguments: args::Report) -> Result<Plan, Failure> {
        let whole = args::Stretch { from: None, until: None };
        let destination = match &arguments.output {
            Some(path) if path.as_os_str() == "-" => None,
            Some(path) => Some(Destination::new(path, arguments.force)?),
            None if is_standard_input(&arguments.file) => None,
            None => Some(Destination::new(&beside(&arguments.file, ".timing.json", "html"), arguments.force)?),
        };
        let (mut analysed, mut flow, mut recordings) = (None, None, Vec::new());
        if arguments.file.is_dir() {
            flow = Some((alone(&arguments)?, arguments.file.clone()));
            analysed = Some(Trace::open(&arguments.file, &[], Options::default())?);
        }
        for path in &arguments.recordings {
            match Reader::open(path) {
                Ok(_) if flow.is_some() => {
                    let message = format!("{} is a second trace of a dataflow program; a page shows one", path.display());
                    return Err(Failure::new(Code::Usage, message));
                }
                Ok(reader) => flow = Some((reader, path.clone())),
                // Then it has to be one of threads, and whatever is wrong is wrong with that.
                Err(_) => recordings.push(Recording::open(path, &whole)?),
            }
        }
        Ok(Plan { analysed, flow, recordings, file: arguments.file, destination, quiet: arguments.quiet })
    }
}

/// A folder in the place of the model: the trace of a dataflow program.
fn alone(arguments: &args::Report) -> Result<Reader, Failure> {
    let path = &arguments.file;
    if let Some(other) = arguments.recordings.first() {
        let (trace, other) = (path.display(), other.display());
        return Err(Failure::new(
            Code::Usage,
            format!("{trace} is a folder; {other} can be drawn with a timing model alone, so give the model first"),
        ));
    }
    Reader::open(path).map_err(|error| {
        let path = path.display();
        let advice = format!("of a recording of threads, make the model first: punctual replay {path} -o FILE.timing.json, and then report FILE.timing.json {path}");
        Failure::new(Code::File, format!("{error}; {advice}"))
    })
}

/// The name of a file that is made from another: with another ending, in the current directory.
pub fn beside(path: &Path, ending: &str, other: &str) -> PathBuf {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let stem = name.strip_suffix(ending).unwrap_or(&name);
    PathBuf::from(format!("{stem}.{other}"))
}

pub fn run(mut plan: Plan) -> Result<(), Failure> {
    let model = match &plan.analysed {
        Some(trace) => trace.model(plan.quiet)?,
        None => read_model(&plan.file)?,
    };
    let states = match &plan.flow {
        Some((reader, path)) => Some(states(reader, path, &model, &plan)?),
        None => None,
    };
    let mut jobs = None;
    if !plan.recordings.is_empty() {
        let file = name(&plan.file);
        let mut seen = Jobs::new(&model);
        let names = names(&model, &plan.recordings, &file)?;
        for (recording, name) in plan.recordings.iter_mut().zip(&names) {
            draw(recording, name.as_deref(), &model, &file, &mut seen, plan.quiet)?;
        }
        jobs = Some(seen);
    }
    let title = plan.file.file_name().map_or("timing model".into(), |name| name.to_string_lossy().into_owned());
    let html = page(&model, jobs.as_ref(), states.as_ref(), &title);
    match &plan.destination {
        None => print(&html),
        Some(destination) => {
            destination.write_or_rescue(html.as_bytes())?;
            if !plan.quiet {
                eprintln!("Wrote {}; open it in a browser.", destination.path().display());
            }
            Ok(())
        }
    }
}

/// The stretch of a trace that the page shows of the program that it is of.
fn states(reader: &Reader, path: &Path, model: &TimingModel, plan: &Plan) -> Result<States, Failure> {
    let (path, file) = (path.display(), name(&plan.file));
    let Some(flow) = &model.dataflow else {
        return Err(Failure::new(
            Code::Usage,
            format!("{file} says nothing of a dataflow program, and {path} is the trace of one; punctual chains {path} makes its model"),
        ));
    };
    let mut states = States::new(flow, reader.about(), model.observation.from_ns);
    let bar = Bar::new(plan.quiet, "drawing states", reader.bytes(), "bytes");
    reader.read(&mut |item| states.item(&item), &mut |bytes| bar.set(bytes))?;
    drop(bar);
    if states.events() == 0 && flow.events > 0 {
        return Err(Failure::new(Code::File, format!("{path} has none of the events that {file} is about; are they of one run?")));
    }
    Ok(states)
}

/// What the model calls each recording: nothing where it is about one alone, else the path by which it was replayed.
fn names(model: &TimingModel, recordings: &[Recording], file: &str) -> Result<Vec<Option<String>>, Failure> {
    let wrong = |why: String| Err(Failure::new(Code::Usage, format!("{file} {why}")));
    let known: BTreeSet<&str> = model.tasks.iter().filter_map(|task| task.recording.as_deref()).collect();
    if known.is_empty() {
        return match recordings {
            [_] => Ok(vec![None]),
            _ => wrong("is about one recording; give that one alone".into()),
        };
    }
    let mut names = Vec::new();
    for recording in recordings {
        let path = recording.path();
        let is_it = |name: &&&str| {
            Path::new(name) == path || fs::canonicalize(name).ok().is_some_and(|name| fs::canonicalize(path).ok() == Some(name))
        };
        let Some(name) = known.iter().find(is_it).map(|name| Some((*name).to_owned())) else {
            let known: Vec<&str> = known.into_iter().collect();
            return wrong(format!("is not about {}, but about {}", path.display(), known.join(", ")));
        };
        if names.contains(&name) {
            return wrong(format!("has the jobs of {} once; give it once", path.display()));
        }
        names.push(name);
    }
    Ok(names)
}

/// Adds the jobs of a recording to those that the page shows.
fn draw(
    recording: &mut Recording,
    name: Option<&str>,
    model: &TimingModel,
    file: &str,
    seen: &mut Jobs,
    quiet: bool,
) -> Result<(), Failure> {
    let tasks: Vec<&Task> = model.tasks.iter().filter(|task| task.recording.as_deref() == name).collect();
    // A model of a stretch of it.
    let (from, until) = match name {
        None => (model.observation.from_ns, model.observation.until_ns),
        Some(_) => span(&tasks, recording),
    };
    recording.narrow(from, until)?;
    let bar = Bar::new(quiet, "reading jobs", recording.activations(), "activations");
    let merged = model.tasks.iter().any(|task| task.merged_transitions > 0);
    let primaries = Primaries::of(tasks);
    let mut known = 0_u64;
    seen.recording(name);
    each_job(
        recording,
        merged,
        &bar,
        |_| {},
        |job| {
            seen.job(job.tid, job.phase, &job.separator, job.number, job.job);
            known += u64::from(primaries.is_primary(job));
        },
    )?;
    drop(bar);
    recording.warn();
    if known == 0 {
        let recording = recording.path().display();
        return Err(Failure::new(
            Code::File,
            format!("{recording} has none of the jobs that {file} is about; are they of one observation?"),
        ));
    }
    Ok(())
}

/// The stretch of one of several recordings that its tasks are of: the model says only when the first of all began and the last ended.
fn span(tasks: &[&Task], recording: &Recording) -> (Instant, Instant) {
    let from = tasks.iter().map(|task| task.from_ns).min();
    let until = tasks.iter().find(|task| task.ended_by == EndedBy::ObservationEnd).map(|task| task.until_ns);
    (from.unwrap_or(recording.from()), until.unwrap_or(recording.reader().until()))
}
