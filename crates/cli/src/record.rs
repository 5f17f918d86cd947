//! `punctual record`: observe, and keep the records on disk.

use crate::args::{self, Detail};
use crate::failure::{Code, Failure};
use crate::folder::Folder;
use crate::platform;
use crate::watch::{self, Sink};
use bytesize::ByteSize;
use punctual_model::Instant;
use punctual_observe::Statistics;
use punctual_report::counted;
use punctual_trace::ctf::{self, Recorded, Recorder};
use punctual_trace::{About, Record, Totals};
use std::path::PathBuf;
use std::time::SystemTime;

/// Size of the buffer between kernel and user space: a second of 200,000 records, should the disk be busy for
/// so long.
pub const BUFFER: u32 = 32 << 20;

/// Everything that was asked for, checked as far as it can be before observing.
pub struct Plan {
    watch: watch::Plan,
    folder: Folder,
    limit: Option<u64>,
}

impl Plan {
    pub fn new(arguments: args::Record) -> Result<Plan, Failure> {
        let mut watch = watch::Plan::new(arguments.watch, BUFFER)?;
        watch.observe.switches = arguments.detail == Detail::Switches;
        let folder = Folder::new(&arguments.output.unwrap_or_else(by_date), arguments.force)?;
        Ok(Plan { watch, folder, limit: arguments.limit })
    }
}

pub fn by_date() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    PathBuf::from(format!("recording-{}", now.replace(':', "-")))
}

/// A recording that is being written.
pub struct Recording {
    recorder: Recorder,
    activations: u64,
    place: String,
}

impl Recording {
    pub fn start(folder: &Folder, about: &About, limit: Option<u64>) -> Result<Recording, Failure> {
        folder.clear()?;
        let recorder =
            Recorder::create(folder.path(), about, &ctf::Options { limit, ..ctf::Options::default() })?;
        Ok(Recording { recorder, activations: 0, place: folder.path().display().to_string() })
    }

    pub fn finish(self, until: Instant, totals: Totals) -> Result<Recorded, Failure> {
        let place = self.place;
        self.recorder.finish(until, totals).map_err(|error| broken(&place, error))
    }

    fn check<T>(&self, result: Result<T, punctual_trace::Error>) -> Result<T, Failure> {
        result.map_err(|error| broken(&self.place, error))
    }
}

/// What was written before is worth telling of.
fn broken(place: &str, error: punctual_trace::Error) -> Failure {
    let failure = Failure::from(error);
    Failure::new(failure.code, format!("{}; punctual replay {place} gives what there is", failure.message))
}

impl Sink for Recording {
    fn record(&mut self, record: &Record) -> Result<(), Failure> {
        self.activations += u64::from(matches!(record, Record::Activation(_)));
        let result = self.recorder.record(record);
        self.check(result)
    }

    fn tick(&mut self, statistics: &Statistics) -> Result<(), Failure> {
        self.recorder.totals(totals(statistics));
        let result = self.recorder.tick();
        self.check(result)
    }

    fn progress(&self) -> String {
        counted(self.activations, "activation")
    }
}

/// What was counted, as a recording has it.
pub fn totals(statistics: &Statistics) -> Totals {
    Totals {
        lost: statistics.lost,
        untracked: statistics.untracked,
        skipped: statistics.missed,
        stolen: statistics.stolen,
    }
}

/// What was written, and what to do with it.
pub fn written(folder: &Folder, recorded: &Recorded) -> String {
    let place = folder.path().display();
    let dropped = match recorded.dropped.activations {
        0 => String::new(),
        dropped => {
            format!(" The oldest part, {}, is gone because of the limit.", counted(dropped, "activation"))
        }
    };
    let (activations, bytes) = (counted(recorded.activations, "activation"), ByteSize(recorded.bytes));
    format!("Wrote {place}: {activations}, {bytes}.{dropped} punctual replay {place} gives its models.")
}

pub fn run(plan: Plan) -> Result<(), Failure> {
    let switches = plan.watch.observe.switches;
    let (recording, watched) = watch::run(&plan.watch, |observer| {
        Recording::start(&plan.folder, &platform::about(observer.from(), switches), plan.limit)
    })?;
    if let Some(failure) = watched.failure {
        // What failed was mostly the writing itself; if not, what was seen before is worth a good end.
        if failure.code != Code::File {
            recording.finish(watched.summary.until, totals(&watched.summary.statistics))?;
        }
        return Err(failure);
    }
    let recorded = recording.finish(watched.summary.until, totals(&watched.summary.statistics))?;
    if recorded.activations == 0 && !plan.watch.quiet {
        eprintln!(
            "punctual: no real-time thread of the target ran; --include-best-effort watches the others too"
        );
    }
    if !plan.watch.quiet {
        eprintln!("{}", written(&plan.folder, &recorded));
    }
    Ok(())
}
