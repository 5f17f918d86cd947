//! `punctual watch`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::stop;
use crate::terminal;
use punctual_report::conformance::{self as report, Checked};
use punctual_report::{counted, why};
use punctual_workflow::guard::{Alarm, Guarded, Options, Output, guard};
use punctual_workflow::{extract, read_bounds, record};
use serde_json::json;
use std::time::SystemTime;

pub fn run(arguments: args::Watching) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet).beside(&arguments.target.command);
    let json = arguments.json;
    let shared = args::Watch {
        duration: arguments.duration,
        target: arguments.target,
        threads: args::Threads { thread: Vec::new() },
        include_best_effort: arguments.include_best_effort,
        attach: arguments.attach,
        buffer: arguments.buffer,
        quiet: arguments.quiet,
    };
    let has_switches = arguments.causes || arguments.keep.is_some();
    let buffer_bytes = if has_switches { record::BUFFER_BYTES } else { extract::BUFFER_BYTES };
    let mut watch = options::watch(&shared, buffer_bytes)?;
    // Standard output is for violations.
    watch.observe.command_output = punctual_observe::Output::StandardError;
    let options = Options {
        watch,
        contract: arguments.contract,
        flow_probes: arguments.flow_probes,
        on_violation: arguments.on_violation,
        journal: !arguments.no_journal,
        keep: arguments.keep,
        before: arguments.before,
        causes: arguments.causes,
        metrics: arguments.metrics,
        bounds: arguments.bounds.map(|path| read_bounds(&path)).transpose()?.unwrap_or_default(),
    };
    let signals = stop::on_signals_with_reload()?;
    // A standard output that cannot be written must not end the watch.
    let output: Output = Box::new(move |alarm| _ = print(&if json { object(alarm) } else { line(alarm) }));
    let guarded = guard(options, &signals.stop, &signals.reload, output, &console)?;
    finish(guarded, json, console)
}

fn finish(guarded: Guarded, json: bool, console: Console) -> Result<(), Failure> {
    let number = guarded.violations();
    let told = told(&guarded);
    let Guarded { verdict, earlier, counters, causes, failure } = guarded;
    let causes = causes.filter(|causes| !causes.tasks.is_empty());
    let checked = [Checked { input: "live".into(), verdict, causes }];
    match json {
        true => {
            let end = json!({
                "event": "end",
                "violations": number,
                "of_earlier_contracts": earlier,
                "alarms": { "told": counters.told, "dropped": counters.dropped, "journal": counters.journal },
                "commands": {
                    "started": counters.commands,
                    "left_out": counters.without_command,
                    "failed": counters.failed_commands,
                },
                "recordings": {
                    "kept": counters.recordings,
                    "left_out": counters.without_recording,
                    "failed": counters.failed_recordings,
                },
                "outcome": report::document(&checked),
            });
            print(&format!("{end}\n"))?;
        }
        false => {
            print(&report::text(&checked, true, &terminal::page()))?;
            if let Some(told) = told {
                console.note(&told);
            }
        }
    }
    if let Some(error) = failure {
        return Err(error.into());
    }
    match number {
        0 => Ok(()),
        number => {
            let message = format!("the contract was not kept: {}", counted(number, "violation"));
            Err(Failure::new(Code::Exceeded, message))
        }
    }
}

/// What was not told, not run or not kept, in words.
fn told(guarded: &Guarded) -> Option<String> {
    let it = &guarded.counters;
    let parts = [
        (it.dropped, "alarm", "that nobody took in time"),
        (it.commands, "command", "run"),
        (it.without_command, "violation", "without a command, since one had just been started"),
        (it.failed_commands, "command", "that failed or could not be started"),
        (it.recordings, "recording", "kept"),
        (it.without_recording, "violation", "without a recording of its own"),
        (it.failed_recordings, "recording", "that could not be written"),
        (guarded.earlier, "violation", "of earlier contracts"),
    ];
    let parts = parts.into_iter().filter(|part| part.0 > 0);
    let parts: Vec<String> =
        parts.map(|(number, noun, what)| format!("{} {what}", counted(number, noun))).collect();
    (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
}

/// A line for people.
fn line(alarm: &Alarm) -> String {
    let text = match alarm {
        Alarm::Violation(violation) => violation.to_string(),
        Alarm::Late(task) => why::one_line(task),
        Alarm::More { task, term, number, worst } => {
            format!("{task}: {} more of {}, worst {}", number, term.name(), term.text(*worst))
        }
    };
    format!("{} {}\n", now(), punctual_report::visible(&text))
}

/// A line for programs.
fn object(alarm: &Alarm) -> String {
    let object = match alarm {
        Alarm::Violation(violation) => {
            json!({ "event": "violation", "time": now(), "violation": report::violation(violation) })
        }
        Alarm::Late(task) => json!({ "event": "cause", "time": now(), "late": why::one_job(task) }),
        Alarm::More { task, term, number, worst } => json!({
            "event": "more",
            "time": now(),
            "task": &**task,
            "term": term.name(),
            "violations": number,
            "worst": worst,
        }),
    };
    format!("{object}\n")
}

fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
