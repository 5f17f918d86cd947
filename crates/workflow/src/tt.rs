//! Time-triggered dispatch: carrying a table out on this machine, and checking a recording of that.

mod plan;
mod recording;

pub use plan::{Mapping, let_sleep_end_jobs, read_plan, refuse_parallel, warn_of_violations};
pub use punctual_dispatch::{Choice, Priorities, guardian, statuses};
pub use punctual_tables::Status;
pub use punctual_tables::check::{Outcome as Checked, Tolerance};

use crate::error::{Error, ErrorKind, Result};
use crate::folder::RecordingFolder;
use crate::monitor::{Monitor, Seen};
use crate::record::Recorded;
use crate::watch;
use punctual_dispatch::{Event, Readable as _, Session};
use punctual_model::{Instant, Table};
use punctual_report::dispatched::Dispatched;
use punctual_report::{counted, visible};
use punctual_tables::check::Check;
use punctual_tables::{Plan, Statistics};
use punctual_trace::Record;
use punctual_trace::ctf::Reader;
use recording::Log;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it is looked at what the dispatcher did.
const TICK: Duration = Duration::from_millis(20);

/// How long a thread may run between two turns before it counts as a violation, if nothing else is said.
const OUTSIDE: punctual_model::Duration = punctual_model::Duration::from_ms(1);

/// How long a command may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(3);

/// When the first slot begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// As soon as everything is set up.
    Soon,
    /// This long from now.
    After(Duration),
    /// At this instant of the table's clock. If it has passed, the table is joined at the current slot.
    At(Instant),
}

/// How to carry a table out.
pub struct Options {
    /// The table.
    pub plan: Plan,
    /// What to call it.
    pub name: String,
    /// Stop this long after the first slot began, or after the table was joined.
    pub limit: Option<Duration>,
    /// When the first slot begins.
    pub start: Start,
    /// The dispatcher.
    pub dispatcher: Choice,
    /// Priorities on the table's processors.
    pub priorities: Priorities,
    /// Where to record every turn.
    pub record: Option<RecordingFolder>,
    /// A command to run; its threads and those of what it starts are the table's. Empty: any thread is.
    pub command: Vec<OsString>,
    /// Whether what it prints goes to standard error.
    pub command_to_stderr: bool,
    /// The program that restores everything, with its words ([`guardian`]).
    pub guardian: Vec<OsString>,
}

/// What a table came to.
pub struct Outcome {
    /// The state at its end.
    pub status: Status,
    /// Sums of all turns.
    pub statistics: Statistics,
    /// The recording.
    pub recorded: Option<Recorded>,
    /// What failed beside, if the table itself was carried out.
    pub failure: Option<Error>,
}

/// Dispatches until the limit, the end of the command, or `stop`, and restores everything.
pub fn run(options: Options, stop: &AtomicBool, monitor: &dyn Monitor) -> Result<Outcome> {
    let mut log = Log::new();
    let mut command = Running::start(&options.command, options.command_to_stderr)?;
    let result = dispatch(&options, command.as_mut(), stop, monitor, &mut log);
    // Not before its threads are what they were.
    if let Some(command) = command {
        command.end(monitor);
    }
    let (status, statistics, is_restored) = result?;
    let recorded = log.finish();
    let (recorded, failure) = match recorded {
        Ok(recorded) => (recorded, None),
        Err(error) => (None, Some(error)),
    };
    let not_restored = || Error::new(ErrorKind::Other, "some settings could not be restored; see above");
    let failure = failure.or_else(|| (!is_restored).then(not_restored));
    Ok(Outcome { status, statistics, recorded, failure })
}

fn dispatch(
    options: &Options,
    mut command: Option<&mut Running>,
    stop: &AtomicBool,
    monitor: &dyn Monitor,
    log: &mut Log,
) -> Result<(Status, Statistics, bool)> {
    let clock = options.plan.clock;
    let start = match options.start {
        Start::Soon => None,
        Start::At(instant) => Some(instant),
        Start::After(time) => Some(clock.now() + punctual_model::Duration::from_ns(time.as_nanos() as u64)),
    };
    let dispatch = punctual_dispatch::Options {
        start,
        table: options.name.clone(),
        dispatcher: options.dispatcher,
        priorities: options.priorities,
        within: command.as_ref().map(|command| command.child.id()),
        guardian: options.guardian.clone(),
    };
    let mut session = Session::start(options.plan.clone(), dispatch)?;
    // A recording that is to be replaced is not lost to a table that is refused.
    if let Err(error) = options.record.as_ref().map_or(Ok(()), |folder| log.start(folder)) {
        session.finish(&mut |event| take(event, log, monitor))?;
        return Err(error);
    }
    // A table that began before is joined now.
    let begins = session.begins().max(clock.now());
    let end = options.limit.map(|limit| {
        begins + punctual_model::Duration::from_ns(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
    });
    let mut progress = monitor.watching(options.limit);
    let mut is_missed_said = false;
    let mut failure = None;
    while failure.is_none() && !stop.load(Ordering::Relaxed) && end.is_none_or(|end| clock.now() < end) {
        failure = session.tick(&mut |event| take(event, log, monitor)).err();
        log.tick(monitor);
        progress.update(&|| seen(session.statistics()));
        if !is_missed_said && clock.now() >= session.begins() {
            is_missed_said = true;
            if let Some(message) = missing(&session.missing()) {
                monitor.warn(&message);
            }
        }
        if command.as_mut().is_some_and(|command| command.status().is_some()) {
            break;
        }
        session.wait(TICK);
    }
    drop(progress);
    let (status, statistics, is_restored) = session.finish(&mut |event| take(event, log, monitor))?;
    match failure {
        Some(failure) => Err(failure.into()),
        None => Ok((status, statistics, is_restored)),
    }
}

/// What to say of tasks without a thread.
fn missing(tasks: &[&str]) -> Option<String> {
    let names: Vec<String> = tasks.iter().map(|task| visible(task)).collect();
    let names = (!names.is_empty()).then(|| names.join(", "))?;
    let whose = if tasks.len() == 1 { "its" } else { "their" };
    Some(format!("no thread for {names} yet: {whose} slots are given to nobody until then"))
}

fn take(event: Event, log: &mut Log, monitor: &dyn Monitor) {
    match event {
        Event::Record(record) => log.record(Record::Dispatch(record), monitor),
        // It may have names of tasks and threads.
        Event::Warning(message) => monitor.warn(&visible(&message)),
    }
}

fn seen(statistics: &Statistics) -> Seen {
    let turns = statistics.lanes.iter().map(|lane| lane.turns).sum();
    let missed: u64 = statistics.lanes.iter().map(|lane| lane.missed).sum();
    let worst =
        statistics.errors().map_or(String::new(), |errors| format!(", error at most {}", errors.max_ns));
    let overruns = counted(statistics.overruns(), "overrun");
    Seen { summary: format!("{}, {missed} missed, {overruns}{worst}", counted(turns, "turn")), lost: 0 }
}

/// Checks a recording of [`run`] against a table.
pub fn check(recording: &Path, plan: &Plan, tolerance: Tolerance, monitor: &dyn Monitor) -> Result<Checked> {
    let reader = Reader::open(recording)?;
    let mut check = Check::new(plan, tolerance);
    check.began_at(reader.about().from);
    let mut refused = None;
    let damage = reader.read(0..reader.stretches(), &mut |record: &Record| {
        if let (Record::Dispatch(dispatch), None) = (record, &refused) {
            refused = check.record(dispatch).err();
        }
    })?;
    for damage in reader.damage().into_iter().chain(damage) {
        monitor.warn(&format!("{}: {damage}", recording.display()));
    }
    if !reader.complete() {
        check.was_cut();
        monitor
            .warn(&format!("{}: the recording was cut off; it is checked until then", recording.display()));
    }
    let outcome = match refused {
        Some(why) => Err(why),
        None => check.finish(),
    };
    // It may have names of tasks.
    let refused = |why: String| {
        Error::file(format!("{} cannot be checked", recording.display())).because(visible(&why))
    };
    outcome.map_err(refused)
}

/// Whether a recording is of a dispatcher.
pub(crate) fn is_dispatched(reader: &Reader) -> bool {
    let mut found = false;
    // It is among the first records. What is damaged is reported by who reads it all.
    for stretch in 0..reader.stretches() {
        let _ = reader.read(stretch..stretch + 1, &mut |record: &Record| {
            found |= matches!(record, Record::Dispatch(_));
        });
        if found {
            break;
        }
    }
    found
}

/// What a dispatcher did with a table, for the page.
pub(crate) fn dispatched(recording: &Path, table: &Table, monitor: &dyn Monitor) -> Result<Dispatched> {
    let refused = |why: String| Error::file(format!("the table of {}", recording.display())).because(why);
    let plan = plan::plan(table, &[]).map_err(refused)?;
    let mut dispatched = Dispatched::new(&plan);
    let slot = table.slot_ns;
    // As `tt check` by default.
    dispatched.outcome = check(recording, &plan, Tolerance { error: slot, outside: OUTSIDE }, monitor)?;
    let reader = Reader::open(recording)?;
    type Take = fn(&mut Dispatched, &punctual_trace::dispatch::Dispatch);
    for take in [Dispatched::count as Take, Dispatched::keep] {
        reader.read(0..reader.stretches(), &mut |record: &Record| {
            if let Record::Dispatch(record) = record {
                take(&mut dispatched, record);
            }
        })?;
    }
    Ok(dispatched)
}

/// A command that runs beside the table.
struct Running {
    child: Child,
    status: Option<ExitStatus>,
}

impl Running {
    fn start(words: &[OsString], to_stderr: bool) -> Result<Option<Running>> {
        let Some((name, arguments)) = words.split_first() else { return Ok(None) };
        let mut command = Command::new(name);
        command.args(arguments);
        if to_stderr {
            command.stdout(std::io::stderr());
        }
        let started = command.spawn();
        let child = started.map_err(|error| {
            let name = PathBuf::from(name);
            Error::target(format!("cannot start {}", name.display())).because(crate::plain_reason(&error))
        })?;
        Ok(Some(Running { child, status: None }))
    }

    fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Asks it to end if it has not, and says what became of it.
    fn end(mut self, monitor: &dyn Monitor) {
        if let Some(status) = self.status() {
            if !status.success() {
                watch::warn_command_failed(status, monitor);
            }
            return;
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        // It has not been waited for, so its number is its own.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let deadline = std::time::Instant::now() + PATIENCE;
        while self.status().is_none() {
            if std::time::Instant::now() > deadline {
                return watch::warn_still_running(self.child.id(), monitor);
            }
            std::thread::sleep(TICK);
        }
    }
}

impl From<punctual_dispatch::Error> for Error {
    fn from(error: punctual_dispatch::Error) -> Error {
        let kind = match error.kind() {
            punctual_dispatch::ErrorKind::Unsupported => ErrorKind::Unsupported,
            punctual_dispatch::ErrorKind::Target => ErrorKind::Target,
            punctual_dispatch::ErrorKind::File => ErrorKind::File,
            _ => ErrorKind::Other,
        };
        let advise = kind == ErrorKind::Unsupported;
        let error = Error::new(kind, error.to_string());
        if advise { error.advise("punctual doctor says what is missing") } else { error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::{Progress, Silent, Unit, Watching};
    use std::sync::Mutex;

    /// Keeps what it is told.
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Monitor for Heard {
        fn warn(&self, message: &str) {
            self.0.lock().expect("one thread").push(message.into());
        }

        fn hint(&self, _: &str) {}

        fn begin(&self, _: &'static str, _: u64, _: Unit) -> Box<dyn Progress> {
            Box::new(Silent)
        }

        fn watching(&self, _: Option<Duration>) -> Box<dyn Watching> {
            Box::new(Silent)
        }
    }

    #[test]
    fn names_cannot_write_to_the_terminal() {
        assert_eq!(missing(&[]), None);
        let said = missing(&["a\u{1b}[2J", "b"]).expect("two are missing");
        assert!(said.starts_with("no thread for a\\u{1b}[2J, b yet"), "{said}");
        let (heard, mut log) = (Heard::default(), Log::new());
        take(Event::Warning("a\u{7} is thread 7".into()), &mut log, &heard);
        assert_eq!(*heard.0.lock().expect("one thread"), ["a\\u{7} is thread 7"]);
    }
}
