//! An observation from its beginning to its end: what starts and ends it, what is shown meanwhile. What
//! becomes of the records is the caller's.

use crate::args;
use crate::failure::{Code, Failure};
use crate::progress::Line;
use crate::stop::Stop;
use punctual_observe::{Attach, Observer, Options, Statistics, Summary, Target};
use punctual_report as report;
use punctual_trace::Record;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How long to wait for records at most: within this, a signal or the end of the target is noticed.
const TICK: Duration = Duration::from_millis(200);

/// What was asked for, checked as far as it can be before observing.
pub struct Plan {
    pub observe: Options,
    limit: Option<Duration>,
    pub quiet: bool,
}

impl Plan {
    /// `buffer` is the size of the buffer where none was given.
    pub fn new(arguments: args::Watch, buffer: u32) -> Result<Plan, Failure> {
        if arguments.target.command.is_empty()
            && std::env::args_os().next_back().is_some_and(|last| last == "--")
        {
            return Err(Failure::new(
                Code::Usage,
                "there is no command after --; name one, or leave -- out to watch all real-time threads",
            ));
        }
        Ok(Plan {
            observe: Options {
                target: target(arguments.target),
                include_best_effort: arguments.include_best_effort,
                switches: false,
                attach: match arguments.attach {
                    args::Attach::Auto => Attach::Auto,
                    args::Attach::Fentry => Attach::Fentry,
                    args::Attach::Tracepoint => Attach::Tracepoint,
                },
                buffer_bytes: arguments.buffer.unwrap_or(buffer),
                command_to_stderr: false,
            },
            limit: arguments.duration,
            quiet: arguments.quiet,
        })
    }
}

fn target(target: args::Target) -> Target {
    match target.cgroup {
        Some(path) => Target::Cgroup(path),
        None if !target.pid.is_empty() => Target::Pids(target.pid),
        None if !target.command.is_empty() => Target::Command(target.command),
        None => Target::AllRealTime,
    }
}

/// Where records go.
pub trait Sink {
    /// Takes a record. A failure ends the observation.
    fn record(&mut self, record: &Record) -> Result<(), Failure>;

    /// Called a few times a second.
    fn tick(&mut self, statistics: &Statistics) -> Result<(), Failure>;

    /// How far it has come, for a person who waits.
    fn progress(&self) -> String;
}

/// What became of an observation.
pub struct Watched {
    pub summary: Summary,
    /// What ended it early. Whatever was seen before has gone to the sink.
    pub failure: Option<Failure>,
}

/// Observes; `sink` is made when the observation has begun.
pub fn run<S: Sink>(
    plan: &Plan,
    sink: impl FnOnce(&Observer) -> Result<S, Failure>,
) -> Result<(S, Watched), Failure> {
    let stop = Stop::install()?;
    let mut observer = Observer::start(&plan.observe)?;
    let end = plan.limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut line = Line::new(plan.quiet, plan.limit);
    let mut sink = sink(&observer)?;

    let mut failure = None;
    let mut target_ended = false;
    while !stop.asked() && !target_ended && failure.is_none() {
        let left = end.map_or(TICK, |end| end.saturating_duration_since(Instant::now()).min(TICK));
        if left == Duration::ZERO {
            break;
        }
        let polled = observer.poll(left, &mut |record| take(&mut sink, record, &mut failure));
        failure =
            failure.or(polled.err().map(Failure::from)).or_else(|| sink.tick(&observer.statistics()).err());
        line.update(|| (sink.progress(), observer.statistics().lost));
        target_ended = observer.target_ended();
    }
    let summary = observer.finish(&mut |record| take(&mut sink, record, &mut failure))?;
    line.clear();
    if let Some(pid) = summary.command_left {
        eprintln!(
            "punctual: the command (process {pid}) was asked to end and still runs; kill -KILL {pid} ends it"
        );
    }
    if target_ended {
        tell_command(summary.command_status);
    }
    warn(&summary.statistics);
    Ok((sink, Watched { summary, failure }))
}

/// After a failure nothing more is taken: what there is stays in one piece.
fn take(sink: &mut impl Sink, record: &Record, failure: &mut Option<Failure>) {
    if failure.is_none() {
        *failure = sink.record(record).err();
    }
}

fn tell_command(status: Option<ExitStatus>) {
    if let Some(status) = status.filter(|status| !status.success()) {
        eprintln!("punctual: the command ended with {status}; what was seen of it is kept");
    }
}

/// Whatever was not seen is said, however quiet.
fn warn(statistics: &Statistics) {
    if statistics.lost > 0 {
        let lost = report::counted(statistics.lost, "record");
        eprintln!(
            "punctual: {lost} lost, tasks end where they are missing; a larger --buffer makes room for more"
        );
    }
    if statistics.untracked > 0 {
        let untracked = report::counted(statistics.untracked, "thread");
        eprintln!(
            "punctual: {untracked} not watched, there was no room for more; watch fewer with --pid, --cgroup or -- COMMAND"
        );
    }
}
