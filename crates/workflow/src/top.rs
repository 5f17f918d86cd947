//! Observing threads and showing on a terminal how they are doing.
//!
//! One thread observes, as for [`extract`](crate::extract); another, called `display`, reads keys and draws.
//! The terminal is whatever implements [`Terminal`]: this module neither draws nor knows escape sequences.

use crate::bounds::Bounds;
use crate::destination::Destination;
use crate::error::{Error, ErrorKind, Result, plain_reason};
use crate::filter::{RecordFilter, ThreadFilter};
use crate::live::{Action, Agreement, Event, Live, View};
use crate::monitor::{Monitor, Progress, Silent, Unit, Watching};
use crate::platform;
use crate::record;
use crate::watch::{self, Sink, Watch};
use punctual_model::Instant;
use punctual_observe::{Observer, Statistics, Switches, Target};
use punctual_report::live::{Screen, Widths};
use punctual_trace::Record;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant as Clock};

/// The longest wait for a key. A signal is noticed within it.
const TICK: Duration = Duration::from_millis(200);

/// What to show.
pub struct Options {
    /// What to watch.
    pub watch: Watch,
    /// Which threads to show.
    pub threads: ThreadFilter,
    /// Which models.
    pub models: punctual_extract::Options,
    /// Whether late jobs are explained.
    pub causes: bool,
    /// What was agreed on for the threads.
    pub agreement: Box<dyn Agreement>,
    /// What was proven of them, by their names.
    pub bounds: Bounds,
    /// How often the figures change.
    pub interval: Duration,
    /// Where models are saved; by default to a new file each time.
    pub output: Option<Destination>,
    /// Whether there are colours.
    pub colour: bool,
}

/// A terminal. Dropping it leaves it as it was.
pub trait Terminal {
    /// Columns and lines.
    fn size(&self) -> (u16, u16);

    /// Draws a screen.
    fn draw(&mut self, screen: &Screen<'_>, widths: &mut Widths) -> io::Result<()>;

    /// Waits for a key, so long at most.
    fn wait(&mut self, timeout: Duration) -> io::Result<Event>;
}

/// Shows threads until a key or `stop` ends it, or the limit of time. When the target has ended, what it was
/// stays on the screen. `open` takes the terminal, once the observation has begun.
pub fn top<T: Terminal>(
    mut options: Options,
    stop: &AtomicBool,
    monitor: &dyn Monitor,
    open: impl FnOnce() -> Result<T> + Send,
) -> Result<()> {
    options.watch.check()?;
    let causes = options.causes;
    options.watch.observe.switches = if causes { Switches::Kept } else { Switches::None };
    options.bounds.doubt(&platform::here()).iter().for_each(|doubt| monitor.warn(doubt));
    let live = Live::new(options.models.clone(), options.agreement).with_bounds(options.bounds);
    let live = Mutex::new(live.locating(Box::new(watch::cgroup)));
    let view = View::new(name(&options.watch.observe.target, &options.threads), options.colour);
    let display = Display {
        live: &live,
        stop,
        ended: &AtomicBool::new(false),
        interval: options.interval,
        output: options.output,
    };
    let ended = display.ended;
    let held = Held::default();
    let outcome = thread::scope(|scope| {
        let (begun, beginning) = mpsc::channel();
        let shown = thread::Builder::new().name("display".into()).spawn_scoped(scope, move || {
            let _stop = StopOnDrop(stop);
            // Without privileges, say, the terminal stays as it is.
            if beginning.recv().is_err() {
                return Ok(());
            }
            display.show(view, open()?)
        });
        let shown = shown.map_err(|error| {
            Error::new(ErrorKind::Other, "cannot start a thread for the display")
                .because(plain_reason(&error))
        })?;
        let _stop = StopOnDrop(stop);
        let began = Clock::now();
        let watched = watch::run(&options.watch, stop, &held, |observer| {
            lock(&live).begin(observer.from(), causes);
            let _ = begun.send(());
            let threads = options.threads.records();
            Ok(Feed { live: &live, threads: if causes { threads.with_others() } else { threads } })
        });
        let is_over = options.watch.limit.is_some_and(|limit| began.elapsed() >= limit);
        match &watched {
            Ok((_, watched)) if !is_over && watched.failure.is_none() => ended.store(true, Ordering::Relaxed),
            _ => stop.store(true, Ordering::Relaxed),
        }
        match shown.join() {
            Ok(shown) => watched.and_then(|(_, watched)| watched.failure.map_or(shown, Err)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    held.pass_on(monitor);
    let names = lock(&live).without_threads();
    if outcome.is_ok() && !names.is_empty() {
        let names = punctual_report::few(&names, 5, " and ");
        monitor.warn(&format!("no response was compared with a bound: no thread was called {names}"));
    }
    outcome
}

fn lock<'a>(live: &'a Mutex<Live>) -> MutexGuard<'a, Live> {
    // If the other thread has panicked, this one is about to end.
    live.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is watched, in words.
fn name(target: &Target, threads: &ThreadFilter) -> String {
    let target = match target {
        Target::AllRealTime => "all real-time threads".into(),
        Target::Pids(pids) if pids.len() == 1 => format!("process {}", pids[0]),
        Target::Pids(pids) => {
            format!("processes {}", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
        Target::Cgroup(path) => format!("cgroup {}", path.display()),
        Target::Command(words) => {
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        }
    };
    let target = punctual_report::visible(&target);
    if threads.is_empty() { target } else { format!("{target} {threads}") }
}

/// Ends both threads when one of them ends, even by a panic.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Hands records to the view.
struct Feed<'a> {
    live: &'a Mutex<Live>,
    threads: RecordFilter,
}

impl Sink for Feed<'_> {
    fn record(&mut self, record: &Record) -> Result<()> {
        self.threads.pass(record, |record| lock(self.live).record(record));
        Ok(())
    }

    fn look(&mut self, observer: &Observer) {
        lock(self.live).look(|tid| observer.glance(tid));
    }

    fn patience(&self) -> Duration {
        if lock(self.live).explains() { watch::PROMPT } else { watch::TICK }
    }

    fn look_back(&mut self, observer: &Observer, has_ended: bool) {
        lock(self.live).explain(observer, has_ended);
    }

    fn tick(&mut self, statistics: &Statistics) -> Result<()> {
        lock(self.live).count(statistics.records, record::totals(statistics));
        Ok(())
    }

    fn progress(&self) -> String {
        String::new()
    }
}

/// The thread that draws.
struct Display<'a> {
    live: &'a Mutex<Live>,
    stop: &'a AtomicBool,
    /// Whether the target has ended.
    ended: &'a AtomicBool,
    interval: Duration,
    output: Option<Destination>,
}

impl Display<'_> {
    fn show(mut self, mut view: View, mut terminal: impl Terminal) -> Result<()> {
        let mut widths = Widths::default();
        let mut next = Clock::now();
        let mut size = (0, 0);
        let mut is_stale = true;
        // When the target ended, time stands still on the screen.
        let mut until = None;
        while !self.stop.load(Ordering::Relaxed) {
            if size != terminal.size() {
                size = terminal.size();
                view.resize(size.0, size.1);
                is_stale = true;
            }
            if Clock::now() >= next {
                if self.ended.load(Ordering::Relaxed) {
                    until.get_or_insert_with(platform::now);
                    view.end();
                }
                self.update(&mut view, until.unwrap_or_else(platform::now));
                // After a pause, the figures do not catch up.
                next = Clock::now() + self.interval;
                is_stale = true;
            }
            if is_stale && terminal.draw(&view.screen(), &mut widths).is_err() {
                return Ok(());
            }
            is_stale = false;
            let wait = next.saturating_duration_since(Clock::now()).min(TICK);
            match terminal.wait(wait) {
                // Nobody is there to be told.
                Ok(Event::Closed) | Err(_) => return Ok(()),
                Ok(Event::Redraw) => {}
                Ok(Event::Key(key)) => {
                    is_stale = true;
                    match view.key(key) {
                        Action::Quit => return Ok(()),
                        Action::Save => self.save(&mut view),
                        Action::None => {}
                    }
                    if let Some((tid, width)) = view.wants_details() {
                        let now = until.unwrap_or_else(platform::now);
                        let details = lock(self.live).details(tid, now, width);
                        view.take_details(details);
                    }
                }
            }
        }
        Ok(())
    }

    fn update(&self, view: &mut View, now: Instant) {
        let mut live = lock(self.live);
        live.refresh(now);
        view.update(&live, now);
    }

    fn save(&mut self, view: &mut View) {
        let model = lock(self.live).model(platform::here(), platform::now());
        let destination = match self.output.take() {
            Some(destination) => Ok(destination),
            None => Destination::new(&dated_path(), false),
        };
        let saved = destination.and_then(|destination| {
            destination.write(model.to_json().as_bytes()).map_err(|error| {
                Error::file(format!("cannot write {}", destination.path().display()))
                    .because(plain_reason(&error))
            })?;
            Ok(destination)
        });
        view.say(match &saved {
            Ok(destination) => {
                let path = destination.path().display();
                format!("Wrote {path}; punctual show {path} shows it.")
            }
            Err(error) => format!("{error:#}"),
        });
    }
}

/// The default name of a saved model: `top-DATE-TIME.timing.json`.
fn dated_path() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    PathBuf::from(format!("top-{}.timing.json", now.replace(':', "-")))
}

/// Keeps messages until the terminal is as it was.
#[derive(Default)]
struct Held(Mutex<Vec<String>>);

impl Held {
    fn pass_on(self, monitor: &dyn Monitor) {
        let messages = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        messages.iter().for_each(|message| monitor.warn(message));
    }
}

impl Monitor for Held {
    fn warn(&self, message: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned());
    }

    fn hint(&self, _: &str) {}

    fn begin(&self, _: &'static str, _: u64, _: Unit) -> Box<dyn Progress> {
        Box::new(Silent)
    }

    fn watching(&self, _: Option<Duration>) -> Box<dyn Watching> {
        Box::new(Silent)
    }
}
