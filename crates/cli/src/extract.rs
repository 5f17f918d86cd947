//! `punctual extract`: arguments to a plan, then observe, extract, and hand over the models.

use crate::args;
use crate::failure::{Code, Failure};
use crate::output::{Destination, print};
use crate::progress::Line;
use crate::stop::Stop;
use crate::{platform, terminal};
use punctual_extract::{Extractor, StreamOptions};
use punctual_model::{FORMAT, Observation, TimingModel, VERSION};
use punctual_observe::{Attach, Observer, Options, Statistics, Summary, Target};
use punctual_report as report;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Where the models go.
enum Results {
    Table,
    Json,
    File(Destination),
}

/// Everything that was asked for, checked as far as it can be before observing.
pub struct Plan {
    observe: Options,
    extract: punctual_extract::Options,
    limit: Option<Duration>,
    results: Results,
    quiet: bool,
}

impl Plan {
    pub fn new(arguments: args::Extract) -> Result<Plan, Failure> {
        if arguments.target.command.is_empty() && std::env::args_os().next_back().is_some_and(|last| last == "--") {
            return Err(Failure::new(
                Code::Usage,
                "there is no command after --; name one, or leave -- out to watch all real-time threads",
            ));
        }
        let results = match &arguments.output {
            Some(path) if path.as_os_str() == "-" => Results::Json,
            Some(path) => Results::File(Destination::new(path, arguments.force)?),
            None if arguments.json => Results::Json,
            None => Results::Table,
        };
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
                buffer_bytes: arguments.buffer,
                command_to_stderr: matches!(results, Results::Json),
            },
            extract: punctual_extract::Options {
                stream: StreamOptions { curve_horizon: arguments.curve_horizon as usize, wcet_horizon: arguments.wcet_horizon as usize },
                merge_transitions: arguments.merge_transitions,
            },
            limit: arguments.duration,
            results,
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

/// How long to wait for records at most: within this, a signal or the end of the target is noticed.
const TICK: Duration = Duration::from_millis(200);

pub fn run(plan: Plan) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let mut observer = Observer::start(&plan.observe)?;
    let end = plan.limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut line = Line::new(plan.quiet, plan.limit);
    let mut extractor = Extractor::new(plan.extract);

    let mut broken = None;
    let mut target_ended = false;
    while !stop.asked() && !target_ended {
        let left = end.map_or(TICK, |end| end.saturating_duration_since(Instant::now()).min(TICK));
        if left == Duration::ZERO {
            break;
        }
        // What was seen before a failure is still worth its models.
        if let Err(error) = observer.poll(left, &mut |record| extractor.record(record)) {
            broken = Some(error);
            break;
        }
        line.update(extractor.progress(), || observer.statistics().lost);
        target_ended = observer.target_ended();
    }
    let summary = observer.finish(&mut |record| extractor.record(record))?;
    line.clear();

    let model = model(extractor, &summary);
    warn(&summary.statistics, model.observation.omitted_tasks);
    if let Some(pid) = summary.command_left {
        eprintln!("punctual: the command (process {pid}) was asked to end and still runs; kill -KILL {pid} ends it");
    }
    if target_ended {
        tell_command(summary.command_status);
    }
    if model.tasks.is_empty() && !plan.quiet {
        eprintln!("punctual: no real-time thread of the target ran; --include-best-effort watches the others too");
    }
    hand_over(&model, &plan.results, plan.quiet)?;
    broken.map_or(Ok(()), |error| Err(error.into()))
}

fn model(extractor: Extractor, summary: &Summary) -> TimingModel {
    let omitted_tasks = extractor.progress().omitted;
    TimingModel {
        format: FORMAT.into(),
        version: VERSION,
        platform: platform::here(),
        observation: Observation {
            clock: "CLOCK_MONOTONIC".into(),
            from_ns: summary.from,
            until_ns: summary.until,
            records: summary.statistics.records,
            lost_records: summary.statistics.lost,
            untracked_threads: summary.statistics.untracked,
            skipped_events: summary.statistics.missed,
            omitted_tasks,
        },
        tasks: extractor.finish(summary.until),
    }
}

/// Whatever was not seen is said, however quiet.
fn warn(statistics: &Statistics, omitted: u64) {
    if statistics.lost > 0 {
        let lost = report::counted(statistics.lost, "record");
        eprintln!("punctual: {lost} lost, tasks end where they are missing; a larger --buffer makes room for more");
    }
    if statistics.untracked > 0 {
        let untracked = report::counted(statistics.untracked, "thread");
        eprintln!("punctual: {untracked} not watched, there was no room for more; watch fewer with --pid, --cgroup or -- COMMAND");
    }
    if omitted > 0 {
        let omitted = report::counted(omitted, "task");
        eprintln!("punctual: {omitted} left out, there were too many; --merge-transitions keeps one task for each thread");
    }
}

fn tell_command(status: Option<ExitStatus>) {
    if let Some(status) = status.filter(|status| !status.success()) {
        eprintln!("punctual: the command ended with {status}; what was seen of it is kept");
    }
}

fn hand_over(model: &TimingModel, results: &Results, quiet: bool) -> Result<(), Failure> {
    match results {
        Results::Json => print(&model.to_json()),
        Results::Table => {
            print(&(report::summary(model) + "\n" + &report::overview(model, &terminal::page(), false)))?;
            if !quiet {
                eprintln!("(-o FILE writes the whole timing model; punctual show FILE --task NAME then tells all of a task)");
            }
            Ok(())
        }
        Results::File(destination) => {
            destination.write_or_rescue(model.to_json().as_bytes())?;
            if !quiet {
                eprint!("{}", report::summary(model));
                eprintln!("{}", written(destination.path()));
            }
            Ok(())
        }
    }
}

fn written(path: &Path) -> String {
    format!("Wrote {}; punctual show {} shows it.", path.display(), path.display())
}
