//! Dataflow programs that cannot be rebuilt: `punctual record --flow-probes` and `punctual flow-probes
//! check`.

mod check;
mod connections;
mod doubts;
mod files;
mod recorder;

pub use check::{Arguments, run as check};

use crate::args;
use crate::failure::{Code, Failure};
use crate::folder::Folder;
use crate::progress::Line;
use crate::stop::Stop;
use doubts::Finding;
use punctual_observe::flow::{self as probes, Counted, Located, ProbeFile, Tracer};
use punctual_report::counted;
use punctual_trace::flow::Kind;
use recorder::Recorder;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the command has to end by itself once it was asked to.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait for events: within this, a signal is noticed.
const TICK: Duration = Duration::from_millis(200);

/// What was asked for, with every function found.
pub struct Plan {
    /// The files, as they were given.
    files: String,
    file: ProbeFile,
    located: Vec<Located>,
    command: Vec<OsString>,
    program: PathBuf,
    folder: Folder,
    limit: Option<Duration>,
    quiet: bool,
}

impl Plan {
    pub fn new(files: &[PathBuf], arguments: args::Record) -> Result<Plan, Failure> {
        let usage = |what: &str| Failure::new(Code::Usage, what.to_owned());
        let command = arguments.watch.target.command;
        if command.is_empty() {
            return Err(usage(
                "--flow-probes needs the command to run: -- COMMAND; probes have to be there before it begins",
            ));
        }
        if arguments.limit.is_some() || arguments.watch.include_best_effort {
            return Err(usage(
                "--limit and --include-best-effort are for recordings of threads, not for --flow-probes",
            ));
        }
        let file = files::read(files)?;
        let files = files::names(files);
        let program = probes::program_of(&command)?;
        let located = probes::locate(&file, &program)?;
        let missing = probes::missing(&file, &located);
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|kind| kind.name()).collect();
            return Err(Failure::new(
                Code::Target,
                format!(
                    "{0} has no function for: {1}; punctual flow-probes check {files} {0} says which were looked for",
                    program.display(),
                    names.join(", ")
                ),
            ));
        }
        let folder = Folder::new(&arguments.output.unwrap_or_else(crate::record::by_date), arguments.force)?;
        let (limit, quiet) = (arguments.watch.duration, arguments.watch.quiet);
        Ok(Plan { files, file, located, command, program, folder, limit, quiet })
    }
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
        failure =
            failure.or(polled.err().map(Failure::from)).or_else(|| recorder.tick(tracer.counted()).err());
        line.update(|| (counted(recorder.events(), "event"), tracer.counted().lost));
    }
    let (process, told) = (tracer.process(), tracer.counted());
    let status = tracer.finish(PATIENCE, &mut |seen| recorder.take(seen, &mut failure))?;
    line.clear();
    match status {
        None => eprintln!(
            "punctual: the command (process {process}) was asked to end and still runs; kill -KILL {process} ends it"
        ),
        Some(status) if !status.success() && !stop.asked() && end.is_none_or(|end| Instant::now() < end) => {
            eprintln!("punctual: the command ended with {status}; what was seen of it is kept");
        }
        Some(_) => {}
    }
    let (events, by_kind) = (recorder.events(), recorder.by_kind());
    let findings = recorder.findings(told);
    recorder.finish(told)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let place = plan.folder.path().display();
    if events == 0 && told.unreadable.iter().any(|count| *count > 0) {
        let framework = plan.file.framework.as_deref().unwrap_or("the framework");
        let message = format!(
            "{} does not fit this build of {framework}: nothing could be read where it says; the trace {place} has no events",
            plan.files
        );
        return Err(Failure::new(Code::Target, message));
    }
    warn(told, by_kind, &findings);
    if findings.iter().any(|finding| finding.is_certain) {
        let message = format!(
            "{} does not fit this program, as said above; the trace {place} is not to be trusted",
            plan.files
        );
        return Err(Failure::new(Code::Target, message));
    }
    if !plan.quiet {
        eprintln!("Wrote {place}: {}. punctual chains {place} gives its times.", counted(events, "event"));
    }
    Ok(())
}

/// Whatever was not seen, or not as the file says, is told however quiet.
fn warn(told: Counted, by_kind: [u64; 4], findings: &[Finding]) {
    if told.lost > 0 {
        eprintln!("punctual: {} lost; the trace says that they were discarded", counted(told.lost, "event"));
    }
    findings.iter().for_each(|finding| eprintln!("punctual: {}", finding.text));
    // What was called and could not be read, or not be matched, has been told.
    let was_called =
        |kind: Kind| told.unreadable[kind as usize] > 0 || kind == Kind::Stop && told.unmatched > 0;
    let counts = Kind::ALL.into_iter().zip(by_kind).filter(|(kind, count)| *count == 0 && !was_called(*kind));
    let never: Vec<&str> = counts.map(|(kind, _)| kind.name()).collect();
    match never.len() {
        0 => {}
        4 => eprintln!("punctual: none of the functions was called"),
        _ => eprintln!(
            "punctual: there was no {}: are these functions ever called, or are their calls inlined?",
            never.join(", ")
        ),
    }
}
