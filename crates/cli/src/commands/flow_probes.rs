//! `punctual flow-probes`, and `punctual record --flow-probes`

use super::options;
use crate::args::{self, Detail, FlowProbesCommand};
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::stop;
use punctual_observe::Switches;
use punctual_report::{counted, shell_word};
use punctual_workflow::RecordingFolder;
use punctual_workflow::probes::{
    Options, ProgramTracer, RECORDING, TRACE, Target, check, make_folder, trace_and_record,
};
use punctual_workflow::record::{self, BUFFER_BYTES};
use std::path::Path;

pub fn run(arguments: &args::FlowProbes) -> Result<(), Failure> {
    let FlowProbesCommand::Check { files, program, json } = &arguments.command;
    let checked = check(files, program)?;
    print(&if *json { checked.json() } else { checked.text() })?;
    Ok(checked.verdict()?)
}

/// Traces a dataflow program; with `--detail switches`, records its threads at the same time.
pub fn trace(arguments: args::Record, output: &Path) -> Result<(), Failure> {
    let console = Console::new(arguments.watch.quiet);
    let target = target(&arguments.watch.target)?;
    let is_both = arguments.detail == Detail::Switches;
    check_options(&arguments, is_both)?;
    let folder = |name: Option<&str>| {
        let path = name.map_or_else(|| output.to_path_buf(), |name| output.join(name));
        RecordingFolder::new(&path, arguments.force)
    };
    if is_both {
        make_folder(output)?;
    }
    let tracer = ProgramTracer::new(Options {
        files: arguments.flow_probes.clone(),
        target,
        folder: folder(is_both.then_some(TRACE))?,
        limit: arguments.watch.duration,
    })?;
    let stop = stop::on_signals()?;
    if !is_both {
        let traced = tracer.trace(&stop, &console)?;
        let (place, events) = (shell_word(&traced.path), counted(traced.events, "event"));
        console.note(&format!("Wrote {place}: {events}. punctual chains {place} analyses it."));
        return Ok(());
    }
    let mut watch = options::watch(&arguments.watch, BUFFER_BYTES)?;
    watch.observe.switches = if arguments.all_threads { Switches::All } else { Switches::Watched };
    // The threads of this process are all that is recorded.
    watch.observe.include_best_effort = true;
    let threads = options::threads(&arguments.watch.threads)?;
    let folder = folder(Some(RECORDING))?;
    let threads = record::Options { watch, threads, folder, limit: arguments.limit };
    let (traced, recorded) = trace_and_record(tracer, threads, &stop, &console)?;
    let (trace, events) = (shell_word(&traced.path), counted(traced.events, "event"));
    let recording = shell_word(&recorded.path);
    console.note(&format!(
        "Wrote {trace}: {events}. {recorded} punctual chains {} analyses both; punctual timeline {recording} \
         {trace} draws them.",
        shell_word(output)
    ));
    Ok(())
}

fn target(target: &args::Target) -> Result<Target, Failure> {
    match (&target.command[..], &target.pid[..]) {
        ([], [pid]) => Ok(Target::Process(*pid)),
        ([_, ..], []) => Ok(Target::Command(target.command.clone())),
        ([], [_, ..]) => {
            Err(Failure::new(Code::Usage, "--flow-probes traces one process; give a single --pid"))
        }
        _ => Err(Failure::new(
            Code::Usage,
            "--flow-probes needs the program: -- COMMAND starts one, --pid names one that runs",
        )),
    }
}

/// Options that say something about the recording of threads.
fn check_options(arguments: &args::Record, is_both: bool) -> Result<(), Failure> {
    let given = [
        ("--limit", arguments.limit.is_some()),
        ("--all-threads", arguments.all_threads),
        ("--thread", !arguments.watch.threads.thread.is_empty()),
    ];
    match given.iter().find(|(_, is_given)| *is_given && !is_both) {
        Some((name, _)) => Err(Failure::new(
            Code::Usage,
            format!("{name} is about threads; with --flow-probes it needs --detail switches"),
        )),
        None => Ok(()),
    }
}
