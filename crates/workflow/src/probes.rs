//! Dataflow programs that cannot be rebuilt: tracing them at the functions that probes files name.

mod both;
mod check;
mod connections;
mod doubts;
mod files;
mod recorder;

pub use both::{RECORDING, TRACE, make_folder, parts, trace_and_record};
pub use check::{Checked, check};
pub use punctual_observe::flow::Target;

use crate::error::{Error, Result};
use crate::folder::RecordingFolder;
use crate::monitor::{Monitor, Seen};
use crate::watch::{TICK, warn_command_failed, warn_still_running};
pub(crate) use doubts::Finding;
use punctual_observe::Output;
use punctual_observe::flow::{self as probes, Counted, Held, Located, ProbeFile};
use punctual_report::counted;
use punctual_trace::flow::Kind;
pub(crate) use recorder::{Recorder, Sink, Source, about};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the command may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to trace.
pub struct Options {
    /// Probes files, or names of those that come with Punctual.
    pub files: Vec<PathBuf>,
    /// The program to start, or the process to look at.
    pub target: Target,
    /// Where the trace goes.
    pub folder: RecordingFolder,
    /// When to end, if the command does not end before.
    pub limit: Option<Duration>,
}

/// A finished trace.
#[derive(Clone, Debug)]
pub struct Traced {
    /// Its folder.
    pub path: PathBuf,
    /// How many events are in it.
    pub events: u64,
}

/// A program whose functions have been found, and which is not traced yet.
pub struct Probed {
    /// The files, as they were given.
    files: String,
    file: ProbeFile,
    located: Vec<Located>,
    target: Target,
    program: PathBuf,
}

impl Probed {
    /// Reads the files and finds the functions in the program.
    pub fn new(paths: &[PathBuf], target: Target) -> Result<Probed> {
        let file = files::read(paths)?;
        let files = files::names(paths);
        let program = match &target {
            Target::Command(words) => probes::program_of(words)?,
            Target::Process(pid) => probes::program_of_process(*pid)?,
        };
        let located = probes::locate(&file, &program)?;
        let missing = probes::missing(&file, &located);
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|kind| kind.name()).collect();
            let program = program.display();
            return Err(Error::target(format!("{program} has no function for: {}", names.join(", ")))
                .advise(format!("punctual flow-probes check {files} {program} lists what was looked for")));
        }
        Ok(Probed { files, file, located, target, program })
    }

    /// Puts the probes in place; a command, which prints to `output`, has been forked then, but does not run
    /// yet.
    pub fn hold(&self, output: Output) -> Result<Held> {
        Ok(Held::start(&self.file, &self.located, &self.target, output)?)
    }

    pub(crate) fn is_command(&self) -> bool {
        matches!(self.target, Target::Command(_))
    }

    pub(crate) fn source(&self) -> Source<'_> {
        let Probed { file, located, program, .. } = self;
        Source { file, located, program, is_late: !self.is_command() }
    }

    /// That the files do not fit the program, if that is certain; with what else is to be said then.
    pub(crate) fn misfit(
        &self,
        events: u64,
        counts: Counted,
        findings: &[Finding],
        [empty, wrong]: [&str; 2],
    ) -> Option<Error> {
        if events == 0 && counts.unreadable.iter().any(|count| *count > 0) {
            let framework = self.file.framework.as_deref().unwrap_or("the framework");
            let error = Error::target(format!("{} does not fit this build of {framework}", self.files))
                .because("nothing could be read where it points");
            return Some(error.advise(empty.to_owned()));
        }
        let is_certain = findings.iter().any(|finding| finding.is_certain);
        is_certain.then(|| {
            let error = Error::target(format!("{} does not fit this program (see above)", self.files));
            error.advise(wrong.to_owned())
        })
    }
}

/// A program that is to be traced into a folder.
pub struct ProgramTracer {
    probed: Probed,
    folder: RecordingFolder,
    limit: Option<Duration>,
}

impl ProgramTracer {
    /// Reads the files and finds the functions in the program.
    pub fn new(options: Options) -> Result<ProgramTracer> {
        let Options { files, target, folder, limit } = options;
        Ok(ProgramTracer { probed: Probed::new(&files, target)?, folder, limit })
    }

    /// Puts the probes in place; a command has been forked then, but does not run yet.
    pub fn hold(&self) -> Result<Held> {
        self.folder.clear()?;
        self.probed.hold(Output::Shared)
    }

    /// Traces the program, from its first instruction on if it is a command.
    pub fn trace(self, stop: &AtomicBool, monitor: &dyn Monitor) -> Result<Traced> {
        let held = self.hold()?;
        self.run(held, stop, monitor)
    }

    /// Traces the program until the limit, its end, or `stop`.
    pub fn run(self, held: Held, stop: &AtomicBool, monitor: &dyn Monitor) -> Result<Traced> {
        let mut recorder = Recorder::create(self.folder.path(), &self.probed.source())?;
        let mut tracer = held.go()?;
        let end = self.limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut progress = monitor.watching(self.limit);
        let mut failure = None;
        let is_stopped = || stop.load(Ordering::Relaxed);
        while !is_stopped() && !tracer.ended() && failure.is_none() {
            let left = end.map_or(TICK, |end| end.saturating_duration_since(Instant::now()).min(TICK));
            if left.is_zero() {
                break;
            }
            let polled = tracer.poll(left, &mut |seen| recorder.take(seen, &mut failure));
            failure =
                failure.or(polled.err().map(Error::from)).or_else(|| recorder.tick(tracer.counted()).err());
            progress.update(&|| Seen {
                summary: counted(recorder.events(), "event"),
                lost: tracer.counted().lost,
            });
        }
        let process = tracer.process();
        let (status, counts) = tracer.finish(PATIENCE, &mut |seen| recorder.take(seen, &mut failure))?;
        drop(progress);
        match status {
            None if self.probed.is_command() => warn_still_running(process, monitor),
            None => {}
            Some(status)
                if !status.success() && !is_stopped() && end.is_none_or(|end| Instant::now() < end) =>
            {
                warn_command_failed(status, monitor);
            }
            Some(_) => {}
        }
        let (events, by_kind) = (recorder.events(), recorder.by_kind());
        let findings = recorder.findings(counts);
        recorder.finish(counts)?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.judge(events, by_kind, counts, &findings, monitor)?;
        Ok(Traced { path: self.folder.path().to_path_buf(), events })
    }

    /// Warns about doubts, and fails if the trace is certainly wrong.
    fn judge(
        &self,
        events: u64,
        by_kind: [u64; 4],
        counts: Counted,
        findings: &[Finding],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let place = self.folder.path().display();
        let advice = [format!("the trace {place} is empty"), format!("do not trust the trace {place}")];
        let misfit = self.probed.misfit(events, counts, findings, advice.each_ref().map(String::as_str));
        // Of one of which nothing could be read there is nothing else to be said.
        if events > 0 || counts.unreadable == [0; 4] {
            let losses = "the trace counts them as discarded";
            warn(counts, by_kind, findings, losses, monitor);
        }
        misfit.map_or(Ok(()), Err)
    }
}

/// Warns about everything that was missed or contradicts the files. `losses`: what becomes of lost events.
pub(crate) fn warn(
    counts: Counted,
    by_kind: [u64; 4],
    findings: &[Finding],
    losses: &str,
    monitor: &dyn Monitor,
) {
    if counts.lost > 0 {
        monitor.warn(&format!("{} lost; {losses}", counted(counts.lost, "event")));
    }
    findings.iter().for_each(|finding| monitor.warn(&finding.text));
    // What was called but could not be read or matched is in the findings.
    let was_called =
        |kind: Kind| counts.unreadable[kind as usize] > 0 || kind == Kind::Stop && counts.unmatched > 0;
    let kinds = Kind::ALL.into_iter().zip(by_kind).filter(|(kind, count)| *count == 0 && !was_called(*kind));
    let never: Vec<&str> = kinds.map(|(kind, _)| kind.name()).collect();
    match never.len() {
        0 => {}
        4 => monitor.warn("none of the functions was called"),
        _ => monitor.warn(&format!(
            "no {} was seen: are these functions never called, or are their calls inlined?",
            never.join(", ")
        )),
    }
}
