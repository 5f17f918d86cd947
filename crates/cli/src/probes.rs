//! Dataflow programs that cannot be rebuilt: `punctual record --flow-probes` and `punctual flow-probes check`.

mod check;
mod recorder;

pub use check::{Arguments, run as check};

use crate::args;
use crate::failure::{Code, Failure};
use crate::folder::Folder;
use crate::progress::Line;
use crate::stop::Stop;
use punctual_observe::probes::{self, Counted, Located, ProbeFile, Tracer};
use punctual_report::counted;
use punctual_trace::flow::Kind;
use recorder::Recorder;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the command has to end by itself once it was asked to.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait for events: within this, a signal is noticed.
const TICK: Duration = Duration::from_millis(200);

/// What was asked for, with every function found.
pub struct Plan {
    path: PathBuf,
    file: ProbeFile,
    located: Vec<Located>,
    command: Vec<OsString>,
    program: PathBuf,
    folder: Folder,
    limit: Option<Duration>,
    quiet: bool,
}

impl Plan {
    pub fn new(path: &Path, arguments: args::Record) -> Result<Plan, Failure> {
        let usage = |what: &str| Failure::new(Code::Usage, what.to_owned());
        let command = arguments.watch.target.command;
        if command.is_empty() {
            return Err(usage("--flow-probes needs the command to run: -- COMMAND; probes have to be there before it begins"));
        }
        if arguments.limit.is_some() || arguments.watch.include_best_effort {
            return Err(usage("--limit and --include-best-effort are for recordings of threads, not for --flow-probes"));
        }
        let file = read(path)?;
        let program = probes::program_of(&command)?;
        let located = probes::locate(&file, &program)?;
        let missing = probes::missing(&file, &located);
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|kind| kind.name()).collect();
            return Err(Failure::new(
                Code::Target,
                format!(
                    "{} has no function for: {}; punctual flow-probes check {} {} says which were looked for",
                    program.display(),
                    names.join(", "),
                    path.display(),
                    program.display()
                ),
            ));
        }
        let folder = Folder::new(&arguments.output.unwrap_or_else(crate::record::by_date), arguments.force)?;
        let (limit, quiet) = (arguments.watch.duration, arguments.watch.quiet);
        Ok(Plan { path: path.to_owned(), file, located, command, program, folder, limit, quiet })
    }
}

fn read(path: &Path) -> Result<ProbeFile, Failure> {
    ProbeFile::read(path).map_err(|error| Failure::new(Code::File, error))
}

pub fn run(plan: Plan) -> Result<(), Failure> {
    let stop = Stop::install()?;
    plan.folder.clear()?;
    let mut tracer = Tracer::start(&plan.file, &plan.located, &plan.command)?;
    let mut recorder = Recorder::create(plan.folder.path(), &plan.file, &plan.program)?;
    let end = plan.limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut line = Line::new(plan.quiet, plan.limit);
    let mut failure = None;
    while !stop.asked() && !tracer.ended() && failure.is_none() {
        let left = end.map_or(TICK, |end| end.saturating_duration_since(Instant::now()).min(TICK));
        if left.is_zero() {
            break;
        }
        let polled = tracer.poll(left, &mut |seen| recorder.take(seen, &mut failure));
        failure = failure.or(polled.err().map(Failure::from)).or_else(|| recorder.tick(tracer.counted()).err());
        line.update(|| (counted(recorder.events(), "event"), tracer.counted().lost));
    }
    let (process, told) = (tracer.process(), tracer.counted());
    let status = tracer.finish(PATIENCE, &mut |seen| recorder.take(seen, &mut failure))?;
    line.clear();
    match status {
        None => eprintln!("punctual: the command (process {process}) was asked to end and still runs; kill -KILL {process} ends it"),
        Some(status) if !status.success() && !stop.asked() && end.is_none_or(|end| Instant::now() < end) => {
            eprintln!("punctual: the command ended with {status}; what was seen of it is kept");
        }
        Some(_) => {}
    }
    let (events, by_kind) = (recorder.events(), recorder.by_kind());
    recorder.finish(told)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    warn(told, by_kind);
    if events == 0 && told.unreadable > 0 {
        let message = format!(
            "{} is of another build of {}: nothing could be read where it says; the trace has no events",
            plan.path.display(),
            plan.file.framework
        );
        return Err(Failure::new(Code::Target, message));
    }
    if !plan.quiet {
        let place = plan.folder.path().display();
        eprintln!("Wrote {place}: {}. punctual chains {place} gives its times.", counted(events, "event"));
    }
    Ok(())
}

/// Whatever was not seen, or not as the file says, is told however quiet.
fn warn(told: Counted, by_kind: [u64; 4]) {
    if told.lost > 0 {
        eprintln!("punctual: {} lost; the trace says that they were discarded", counted(told.lost, "event"));
    }
    if told.unreadable > 0 {
        eprintln!(
            "punctual: {} of which id or name could not be read in the program's memory; are the offsets in the file right for this build of the framework?",
            counted(told.unreadable, "event")
        );
    }
    if told.unmatched > 0 {
        eprintln!(
            "punctual: {} of tasks that no thread was executing; do start and stop have the same id?",
            counted(told.unmatched, "stop")
        );
    }
    let never: Vec<&str> = Kind::ALL.into_iter().zip(by_kind).filter(|(_, count)| *count == 0).map(|(kind, _)| kind.name()).collect();
    match never.len() {
        0 => {}
        4 if told.unreadable > 0 => {}
        4 => eprintln!("punctual: none of the functions was called"),
        _ => eprintln!("punctual: there was no {}: are these functions ever called, or are their calls inlined?", never.join(", ")),
    }
}
