//! `punctual timeline`: a recording for the Perfetto UI.

mod dataflow;

use crate::args;
use crate::failure::{Code, Failure, reason};
use crate::output::Destination;
use crate::page::beside;
use crate::progress::Bar;
use crate::recording::Recording;
use crate::replay::{Primaries, each_job};
use crate::results::{self, Observed};
use punctual_extract::{Extractor, Options, StreamOptions};
use punctual_report::counted;
use punctual_report::timeline::Timeline;
use punctual_trace::flow::Reader;
use std::cell::RefCell;
use std::io::BufWriter;
use std::path::Path;

/// Everything that was asked for, checked as far as it can be before reading.
pub enum Plan {
    /// Of threads.
    Threads(Box<Threads>),
    /// Of tasks and channels.
    Dataflow(Box<dataflow::Plan>),
}

/// The timeline of a recording of threads.
pub struct Threads {
    recording: Recording,
    destination: Destination,
    quiet: bool,
}

impl Plan {
    pub fn new(arguments: args::Timeline) -> Result<Plan, Failure> {
        let output = match arguments.output {
            Some(path) => path,
            None => beside(&arguments.recording, ".recording", "perfetto-trace"),
        };
        let destination = Destination::new(Path::new(&output), arguments.force)?;
        let quiet = arguments.quiet;
        if let Ok(reader) = Reader::open(&arguments.recording) {
            if arguments.stretch.from.is_some() || arguments.stretch.until.is_some() {
                return Err(Failure::new(
                    Code::Usage,
                    "--from and --until are for recordings of threads; this is the trace of a dataflow program",
                ));
            }
            return Ok(Plan::Dataflow(Box::new(dataflow::Plan { reader, destination, quiet })));
        }
        let recording = Recording::open(&arguments.recording, &arguments.stretch)?;
        Ok(Plan::Threads(Box::new(Threads { recording, destination, quiet })))
    }
}

pub fn run(plan: &Plan) -> Result<(), Failure> {
    match plan {
        Plan::Threads(plan) => threads(plan),
        Plan::Dataflow(plan) => dataflow::run(plan),
    }
}

fn threads(plan: &Threads) -> Result<(), Failure> {
    let recording = &plan.recording;
    let name = plan.destination.path().display();
    let failed = |error: &dyn std::fmt::Display| Failure::new(Code::File, format!("{name}: {error}"));

    // Which separator a task's jobs are shown by is known only at the end of all records.
    let mut extractor = Extractor::new(Options { stream: StreamOptions { curve_horizon: 1, wcet_horizon: 1 }, merge_transitions: false });
    let bar = Bar::new(plan.quiet, "reading", recording.activations(), "activations");
    recording.read_all(&mut |record| extractor.record(record))?;
    drop(bar);
    let about = recording.about();
    let (from, until, totals) = (recording.from(), recording.reader().until(), recording.reader().totals());
    let (platform, clock) = (about.platform.clone(), about.clock.clone());
    let model = results::model(extractor, Observed { platform, clock, from, until, records: 0, totals });
    let primaries = Primaries::of(&model.tasks);

    let pending = plan.destination.begin().map_err(|error| Failure::file("write", &name, reason(&error)))?;
    let timeline = RefCell::new(Timeline::new(BufWriter::new(pending), about, &model).map_err(|error| failed(&error))?);
    let bar = Bar::new(plan.quiet, "drawing", recording.activations(), "activations");
    let broken = RefCell::new(None);
    let keep = |result: Result<(), _>| {
        if let Err(error) = result {
            broken.borrow_mut().get_or_insert(error);
        }
    };
    each_job(
        recording,
        false,
        &bar,
        |record| keep(timeline.borrow_mut().record(record)),
        |seen| {
            if primaries.is_primary(seen) {
                keep(timeline.borrow_mut().job(seen.tid, seen.phase, &seen.separator, seen.number, seen.job));
            }
        },
    )?;
    drop(bar);
    if let Some(error) = broken.into_inner() {
        return Err(failed(&error));
    }
    let (writer, counts) = timeline.into_inner().finish().map_err(|error| failed(&error))?;
    let pending = writer.into_inner().map_err(|error| Failure::file("write", &name, reason(error.error())))?;
    pending.finish().map_err(|error| Failure::file("write", &name, reason(&error)))?;
    recording.warn();
    if !plan.quiet {
        let (threads, jobs) = (counted(counts.threads, "thread"), counted(counts.jobs, "job"));
        let steps = if about.switches { format!(", {}", counted(counts.steps, "step") + " of the scheduler") } else { String::new() };
        eprintln!("Wrote {name}: {threads}, {jobs}{steps}. Open it at https://ui.perfetto.dev (it stays in your browser).");
        if about.switches {
            eprintln!("(It knows watched threads only: where none of them runs, a processor looks idle.)");
        } else {
            eprintln!("(It shows jobs alone; of a recording with --detail switches it shows who ran when, and who woke whom.)");
        }
    }
    Ok(())
}
