//! `punctual report`: the page to look at.

use crate::args;
use crate::chains::{self, Trace};
use crate::failure::{Code, Failure};
use crate::given::{Given, apart};
use crate::output::{Destination, print};
use crate::progress::Bar;
use crate::recording::Recording;
use crate::replay::{self, Primaries, each_job};
use crate::show::{is_standard_input, name, read_model};
use punctual_extract::flow::Options;
use punctual_model::{EndedBy, Instant, Task, TimingModel};
use punctual_report::html::{Jobs, States, page};
use std::collections::BTreeSet;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

/// Everything that was asked for, checked as far as it can be before reading recordings.
pub struct Plan {
    /// The timing model, or the first of the folders.
    file: PathBuf,
    /// Whether there are folders alone, of which the model is made first.
    is_made: bool,
    /// The trace of a dataflow program whose states are drawn.
    flow: Option<Trace>,
    recordings: Vec<Recording>,
    /// None is standard output.
    destination: Option<Destination>,
    quiet: bool,
}

impl Plan {
    pub fn new(arguments: args::Report) -> Result<Plan, Failure> {
        let (file, folders) =
            apart_from_folders(iter::once(arguments.file).chain(arguments.recordings).collect())?;
        let is_made = file.is_none();
        let Some(file) = file.or_else(|| folders.first().cloned()) else {
            unreachable!("the parser wants one")
        };
        let destination = match &arguments.output {
            Some(path) if path.as_os_str() == "-" => None,
            Some(path) => Some(Destination::new(path, arguments.force)?),
            None if is_standard_input(&file) => None,
            None => Some(Destination::new(&beside(&file, ".timing.json", "html"), arguments.force)?),
        };
        let Given { recordings, flow } = Given::open(&folders, &args::Stretch::default(), "a page")?;
        if let Some((reader, path)) = flow.as_ref().filter(|_| is_made) {
            for recording in &recordings {
                if let Some(why) = apart(recording, reader) {
                    let (recording, path) = (recording.path().display(), path.display());
                    return Err(Failure::new(
                        Code::Usage,
                        format!("{recording} cannot be drawn beside {path}: {why}"),
                    ));
                }
            }
        }
        let flow =
            flow.map(|(reader, path)| Trace::of(reader, &path, &[], Options::default())).transpose()?;
        Ok(Plan { is_made, flow, recordings, file, destination, quiet: arguments.quiet })
    }
}

/// The timing model, which may stand anywhere; and the folders.
fn apart_from_folders(paths: Vec<PathBuf>) -> Result<(Option<PathBuf>, Vec<PathBuf>), Failure> {
    let is_alone = paths.len() == 1;
    // What is not there is missed as what it is most likely to be.
    let is_file = |path: &PathBuf| is_standard_input(path) || !path.is_dir() && (path.exists() || is_alone);
    let (mut files, folders): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(is_file);
    if let [one, other, ..] = &files[..] {
        let message = format!(
            "{} and {} are two files; a page shows one timing model, with the recordings and the trace that it was made from, which are folders",
            name(one),
            name(other)
        );
        return Err(Failure::new(Code::Usage, message));
    }
    Ok((files.pop(), folders))
}

/// The model of the folders alone: as `punctual replay` and `punctual chains --kernel` make it.
fn make(plan: &Plan) -> Result<TimingModel, Failure> {
    let flow = match &plan.flow {
        Some(trace) => {
            let kernel = match &plan.recordings[..] {
                [] => None,
                [recording] => match chains::unable(recording, trace.reader()) {
                    None => Some(recording),
                    Some(why) => unsplit(&format!("{}: {why}", recording.path().display()), plan.quiet),
                },
                // Each may know some of the executors' threads; that is not put together.
                _ => unsplit("there are several recordings", plan.quiet),
            };
            Some(trace.model(kernel, plan.quiet)?)
        }
        None => None,
    };
    let threads = match plan.recordings.is_empty() {
        true => None,
        false => {
            Some(replay::model(&plan.recordings, &Default::default(), replay::processors(), plan.quiet)?)
        }
    };
    match (threads, flow) {
        (Some(threads), Some(flow)) => Ok(chains::beside(threads, flow)),
        (Some(one), None) | (None, Some(one)) => Ok(one),
        (None, None) => unreachable!("a folder is a recording or a trace"),
    }
}

/// Says why execution times are not split by what the kernel did.
fn unsplit<'a>(why: &str, quiet: bool) -> Option<&'a Recording> {
    if !quiet {
        eprintln!("punctual: {why}; so execution times are not split by what the kernel did");
    }
    None
}

/// The name of a file that is made from another: with another ending, in the current directory.
pub fn beside(path: &Path, ending: &str, other: &str) -> PathBuf {
    let name = own_name(path).unwrap_or_else(|| "punctual".into());
    let stem = name.strip_suffix(ending).unwrap_or(&name);
    PathBuf::from(format!("{stem}.{other}"))
}

/// What a file or folder is called in its folder: that of `.` too.
fn own_name(path: &Path) -> Option<String> {
    let real = if path.file_name().is_none() { fs::canonicalize(path).ok() } else { None };
    real.as_deref().unwrap_or(path).file_name().map(|name| name.to_string_lossy().into_owned())
}

pub fn run(mut plan: Plan) -> Result<(), Failure> {
    let model = if plan.is_made { make(&plan)? } else { read_model(&plan.file)? };
    let states = plan.flow.as_ref().map(|trace| states(trace, &model, &plan)).transpose()?;
    let mut jobs = None;
    if !plan.recordings.is_empty() {
        let file = name(&plan.file);
        let mut seen = Jobs::new(&model);
        let names = names(&model, &plan.recordings, &file)?;
        for (recording, name) in plan.recordings.iter_mut().zip(&names) {
            let known = draw(recording, name.as_deref(), &model, &mut seen, plan.quiet)?;
            if known == 0 && !plan.is_made {
                let recording = recording.path().display();
                let message = format!(
                    "{recording} has none of the jobs that {file} is about; are they of one observation?"
                );
                return Err(Failure::new(Code::File, message));
            }
        }
        jobs = Some(seen);
    }
    let title = own_name(&plan.file)
        .filter(|_| !is_standard_input(&plan.file))
        .unwrap_or_else(|| "timing model".into());
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
fn states(trace: &Trace, model: &TimingModel, plan: &Plan) -> Result<States, Failure> {
    let (reader, path, file) = (trace.reader(), trace.path().display(), name(&plan.file));
    let Some(flow) = &model.dataflow else {
        return Err(Failure::new(
            Code::Usage,
            format!(
                "{file} says nothing of a dataflow program, and {path} is the trace of one; punctual chains {path} makes its model"
            ),
        ));
    };
    let mut states = States::new(flow, reader.about(), flow.from_ns);
    let bar = Bar::new(plan.quiet, "drawing states", reader.bytes(), "bytes");
    reader.read(&mut |item| states.item(&item), &mut |bytes| bar.set(bytes))?;
    drop(bar);
    if states.events() == 0 && flow.events > 0 {
        return Err(Failure::new(
            Code::File,
            format!("{path} has none of the events that {file} is about; are they of one run?"),
        ));
    }
    Ok(states)
}

/// What the model calls each recording: nothing where it is about one alone, else the path by which it was
/// replayed.
fn names(model: &TimingModel, recordings: &[Recording], file: &str) -> Result<Vec<Option<String>>, Failure> {
    let wrong = |why: String| Err(Failure::new(Code::Usage, format!("{file} {why}")));
    let known: BTreeSet<&str> = model.tasks().iter().filter_map(|task| task.recording.as_deref()).collect();
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
            Path::new(name) == path
                || fs::canonicalize(name).ok().is_some_and(|name| fs::canonicalize(path).ok() == Some(name))
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

/// Adds the jobs of a recording to those that the page shows; how many of them are of primary separators.
fn draw(
    recording: &mut Recording,
    name: Option<&str>,
    model: &TimingModel,
    seen: &mut Jobs,
    quiet: bool,
) -> Result<u64, Failure> {
    let tasks: Vec<&Task> = model.tasks().iter().filter(|task| task.recording.as_deref() == name).collect();
    // A model of a stretch of it.
    let (from, until) = match name {
        None => match &model.threads {
            Some(threads) => (threads.from_ns, threads.until_ns),
            None => span(&tasks, recording),
        },
        Some(_) => span(&tasks, recording),
    };
    recording.narrow(from, until)?;
    let bar = Bar::new(quiet, "reading jobs", recording.activations(), "activations");
    let merged = model.tasks().iter().any(|task| task.merged_transitions > 0);
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
    Ok(known)
}

/// The stretch of one of several recordings that its tasks are of: the model says only when the first of all
/// began and the last ended.
fn span(tasks: &[&Task], recording: &Recording) -> (Instant, Instant) {
    let from = tasks.iter().map(|task| task.from_ns).min();
    let until = tasks.iter().find(|task| task.ended_by == EndedBy::ObservationEnd).map(|task| task.until_ns);
    (from.unwrap_or(recording.from()), until.unwrap_or(recording.reader().until()))
}
