//! `punctual flow-probes`, and `punctual record --flow-probes`

use crate::args::{self, FlowProbesCommand};
use crate::console::Console;
use crate::failure::Failure;
use crate::output::print;
use crate::stop;
use punctual_report::counted;
use punctual_workflow::RecordingFolder;
use punctual_workflow::probes::{Options, ProgramTracer, check};

pub fn run(arguments: &args::FlowProbes) -> Result<(), Failure> {
    let FlowProbesCommand::Check { files, program, json } = &arguments.command;
    let checked = check(files, program)?;
    print(&if *json { checked.json() } else { checked.text() })?;
    Ok(checked.verdict()?)
}

/// Traces a dataflow program.
pub fn trace(arguments: args::Record, folder: RecordingFolder) -> Result<(), Failure> {
    let console = Console::new(arguments.watch.quiet);
    let tracer = ProgramTracer::new(Options {
        files: arguments.flow_probes,
        command: arguments.watch.target.command,
        folder,
        limit: arguments.watch.duration,
    })?;
    let traced = tracer.run(&*stop::on_signals()?, &console)?;
    let (place, events) = (traced.path.display(), counted(traced.events, "event"));
    console.note(&format!("Wrote {place}: {events}. punctual chains {place} analyses it."));
    Ok(())
}
