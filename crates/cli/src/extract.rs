//! `punctual extract`: observe, extract, hand over the models.

use crate::args;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::platform;
use crate::record::{self, Recording};
use crate::results::{self, Observed, Results};
use crate::watch::{self, Sink};
use punctual_extract::Extractor;
use punctual_observe::Statistics;
use punctual_report::counted;
use punctual_trace::Record;

/// Size of the buffer between kernel and user space.
const BUFFER: u32 = 4 << 20;

/// Everything that was asked for, checked as far as it can be before observing.
pub struct Plan {
    watch: watch::Plan,
    extract: punctual_extract::Options,
    results: Results,
    record: Option<Folder>,
}

impl Plan {
    pub fn new(arguments: args::Extract) -> Result<Plan, Failure> {
        let results = Results::new(&arguments.results)?;
        let buffer = if arguments.record.is_some() { record::BUFFER } else { BUFFER };
        let mut watch = watch::Plan::new(arguments.watch, buffer)?;
        watch.observe.command_to_stderr = results.are_printed();
        let record =
            arguments.record.as_deref().map(|path| Folder::new(path, arguments.results.force)).transpose()?;
        Ok(Plan { watch, extract: results::options(&arguments.models), results, record })
    }
}

/// Records on their way to models, and on the side into a recording.
struct Extracting {
    extractor: Extractor,
    recording: Option<Recording>,
    /// Why the recording ended before the observation: the models are worth going on for.
    broken: Option<Failure>,
}

impl Extracting {
    fn aside(&mut self, write: impl FnOnce(&mut Recording) -> Result<(), Failure>) {
        if let Some(Err(failure)) = self.recording.as_mut().map(write) {
            eprintln!("punctual: {}; the observation goes on", failure.message);
            (self.recording, self.broken) = (None, Some(failure));
        }
    }
}

impl Sink for Extracting {
    fn record(&mut self, record: &Record) -> Result<(), Failure> {
        self.extractor.record(record);
        self.aside(|recording| recording.record(record));
        Ok(())
    }

    fn tick(&mut self, statistics: &Statistics) -> Result<(), Failure> {
        self.aside(|recording| recording.tick(statistics));
        Ok(())
    }

    fn progress(&self) -> String {
        let progress = self.extractor.progress();
        format!("{}, {}", counted(progress.threads as u64, "thread"), counted(progress.jobs, "job"))
    }
}

pub fn run(plan: Plan) -> Result<(), Failure> {
    let quiet = plan.watch.quiet;
    let (sink, watched) = watch::run(&plan.watch, |observer| {
        let start =
            |folder: &Folder| Recording::start(folder, &platform::about(observer.from(), false), None);
        let recording = plan.record.as_ref().map(start).transpose()?;
        Ok(Extracting { extractor: Extractor::new(plan.extract), recording, broken: None })
    })?;
    let summary = &watched.summary;
    let totals = record::totals(&summary.statistics);
    let recorded = sink.recording.map(|recording| recording.finish(summary.until, totals));

    let observed = Observed {
        platform: platform::here(),
        clock: platform::CLOCK.into(),
        from: summary.from,
        until: summary.until,
        records: summary.statistics.records,
        totals,
    };
    let model = results::model(sink.extractor, observed);
    if model.tasks().is_empty() && !quiet {
        eprintln!(
            "punctual: no real-time thread of the target ran; --include-best-effort watches the others too"
        );
    }
    plan.results.hand_over(&model, quiet)?;
    if let (Some(Ok(recorded)), Some(folder), false) = (&recorded, &plan.record, quiet) {
        eprintln!("{}", record::written(folder, recorded));
    }
    let failures = [watched.failure, sink.broken, recorded.and_then(Result::err)];
    failures.into_iter().flatten().next().map_or(Ok(()), Err)
}
