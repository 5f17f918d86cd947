//! `punctual timeline`: a recording of threads, the trace of a dataflow program, or both for the Perfetto UI.

mod dataflow;

use crate::args;
use crate::failure::{Code, Failure, reason};
use crate::given::{AT_ANOTHER_TIME, Given, apart};
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
use std::io::{BufWriter, Write};

/// Everything that was asked for, checked as far as it can be before reading.
pub struct Plan {
    /// Threads, tasks and channels of a program, or both: then beside each other.
    recording: Option<Recording>,
    flow: Option<Reader>,
    destination: Destination,
    quiet: bool,
}

impl Plan {
    pub fn new(arguments: args::Timeline) -> Result<Plan, Failure> {
        let folders = &arguments.recordings;
        let output = arguments.output.unwrap_or_else(|| beside(&folders[0], ".recording", "perfetto-trace"));
        let destination = Destination::new(&output, arguments.force)?;
        let Given { mut recordings, flow } = Given::open(folders, &arguments.stretch, "a timeline")?;
        let recording = recordings.pop();
        if let (Some(one), Some(other)) = (&recording, recordings.last()) {
            let (one, other) = (other.path().display(), one.path().display());
            let message = format!(
                "{one} and {other} are two recordings of threads; a timeline shows one, beside the trace of a dataflow program"
            );
            return Err(Failure::new(Code::Usage, message));
        }
        let flow = flow.map(|(reader, path)| (reader, path.display().to_string()));
        if let Some((reader, path)) = &flow {
            if arguments.stretch.from.is_some() || arguments.stretch.until.is_some() {
                let message = format!(
                    "--from and --until are for recordings of threads; {path} is the trace of a dataflow program"
                );
                return Err(Failure::new(Code::Usage, message));
            }
            if let Some((recording, why)) =
                recording.as_ref().and_then(|recording| Some((recording, apart(recording, reader)?)))
            {
                let message = format!("{} cannot be shown beside {path}: {why}", recording.path().display());
                return Err(Failure::new(Code::Usage, message));
            }
        }
        Ok(Plan { recording, flow: flow.map(|(reader, _)| reader), destination, quiet: arguments.quiet })
    }
}

pub fn run(plan: &Plan) -> Result<(), Failure> {
    let name = plan.destination.path().display().to_string();
    let unwritten = |error: &std::io::Error| Failure::file("write", &name, reason(error));
    let mut out = BufWriter::new(plan.destination.begin().map_err(|error| unwritten(&error))?);
    let mut shown = Vec::new();
    // Threads say what the clock is, and who is who; a program can stand behind them.
    if let Some(recording) = &plan.recording {
        shown.push(threads(recording, &mut out, &name, plan.quiet)?);
    }
    if let Some(reader) = &plan.flow {
        let (program, span) = dataflow::draw(reader, &mut out, &name, plan)?;
        shown.push(program);
        if let (Some(recording), Some((from, until))) = (&plan.recording, span) {
            if until < recording.from() || recording.reader().until() < from {
                eprintln!("punctual: {AT_ANOTHER_TIME}; the timeline shows each at its own");
            }
        }
    }
    let pending = out.into_inner().map_err(|error| unwritten(error.error()))?;
    pending.finish().map_err(|error| unwritten(&error))?;
    if let Some(recording) = &plan.recording {
        recording.warn();
    }
    if !plan.quiet {
        eprintln!(
            "Wrote {name}: {}. Open it at https://ui.perfetto.dev (it stays in your browser).",
            shown.join("; ")
        );
        match plan.recording.as_ref().map(|recording| recording.about().switches) {
            Some(true) => {
                eprintln!("(It knows watched threads only: where none of them runs, a processor looks idle.)")
            }
            Some(false) => {
                eprintln!(
                    "(It shows jobs alone; of a recording with --detail switches it shows who ran when, and who woke whom.)"
                );
            }
            None => {}
        }
    }
    Ok(())
}

/// Draws threads; what is shown of them, in words.
fn threads(recording: &Recording, out: &mut impl Write, name: &str, quiet: bool) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(Code::File, format!("{name}: {error}"));

    // Which separator a task's jobs are shown by is known only at the end of all records.
    let mut extractor = Extractor::new(Options {
        stream: StreamOptions { curve_horizon: 1, wcet_horizon: 1 },
        merge_transitions: false,
    });
    let bar = Bar::new(quiet, "reading", recording.activations(), "activations");
    recording.read_all(&mut |record| extractor.record(record))?;
    drop(bar);
    let about = recording.about();
    let (from, until, totals) = (recording.from(), recording.reader().until(), recording.reader().totals());
    let (platform, clock) = (about.platform.clone(), about.clock.clone());
    let model = results::model(extractor, Observed { platform, clock, from, until, records: 0, totals });
    let primaries = Primaries::of(model.tasks());

    let timeline = RefCell::new(Timeline::new(out, about, &model).map_err(|error| failed(&error))?);
    let bar = Bar::new(quiet, "drawing", recording.activations(), "activations");
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
    let (_, counts) = timeline.into_inner().finish().map_err(|error| failed(&error))?;
    let (threads, jobs) = (counted(counts.threads, "thread"), counted(counts.jobs, "job"));
    let steps = if about.switches {
        format!(", {}", counted(counts.steps, "step") + " of the scheduler")
    } else {
        String::new()
    };
    Ok(format!("{threads}, {jobs}{steps}"))
}
