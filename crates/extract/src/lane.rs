//! The jobs of one task at one separator, as they open and close.

use crate::stream::{Options, Stream};
use punctual_model::{Duration, Instant, Job, MAX_SEGMENTS, Release, Segment, Separator, Window};
use punctual_trace::{Activation, Resumed};

/// A sleep of the thread: how much processor time it had had by then, and how long it slept.
#[derive(Clone, Copy, Debug, Default)]
struct Sleep {
    cpu: Duration,
    suspended: Duration,
}

/// The thread's last sleeps and how much it has slept in all: what the segments of every lane's jobs are made of.
#[derive(Clone, Debug, Default)]
pub struct Sleeps {
    last: [Sleep; MAX_SEGMENTS - 1],
    count: u64,
    total: Duration,
}

impl Sleeps {
    pub fn push(&mut self, cpu: Duration, suspended: Duration) {
        let place = self.count as usize % self.last.len();
        self.last[place] = Sleep { cpu, suspended };
        self.count += 1;
        self.total += suspended;
    }

    pub fn total(&self) -> Duration {
        self.total
    }

    /// The segments of a job that began at `open` and ended with `cpu`. Those that no longer fit are merged into the first.
    fn segments(&self, open: &Open, cpu: Duration, into: &mut Vec<Segment>) {
        into.clear();
        let inside = self.count - open.sleeps;
        let kept = inside.min(self.last.len() as u64);
        let mut suspended = self.total.saturating_sub(open.asleep);
        let mut from = open.cpu;
        let mut before = Duration::ZERO;
        for number in self.count - kept..self.count {
            let sleep = self.last[number as usize % self.last.len()];
            if into.is_empty() {
                // What was slept before the sleeps that are still known.
                let known: Duration =
                    (self.count - kept..self.count).fold(Duration::ZERO, |sum, n| sum + self.last[n as usize % self.last.len()].suspended);
                before = suspended.saturating_sub(known);
            }
            into.push(Segment { suspended: before, cost: sleep.cpu.saturating_sub(from) });
            from = sleep.cpu.max(from);
            before = sleep.suspended;
            suspended = suspended.saturating_sub(sleep.suspended);
        }
        into.push(Segment { suspended: before, cost: cpu.saturating_sub(from) });
    }
}

/// A job that has been released and has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    release: Release,
    start: Instant,
    /// The thread's counters at the release.
    cpu: Duration,
    asleep: Duration,
    sleeps: u64,
}

/// The jobs of one task at one separator.
#[derive(Clone, Debug)]
pub struct Lane {
    separator: Separator,
    /// What tells it from others.
    key: Separator,
    stream: Stream,
    open: Option<Open>,
    last_release: Option<Window>,
    waited: Duration,
    known_arrivals: u64,
}

impl Lane {
    pub fn new(separator: Separator, options: &Options) -> Self {
        Self {
            separator,
            key: separator.key(),
            stream: Stream::new(options),
            open: None,
            last_release: None,
            waited: Duration::ZERO,
            known_arrivals: 0,
        }
    }

    pub fn separator(&self) -> Separator {
        self.separator
    }

    pub fn rename(&mut self, separator: Separator) {
        self.separator = separator;
        self.key = separator.key();
    }

    pub fn key(&self) -> Separator {
        self.key
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Time asleep at this separator.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Whether arrivals are known here.
    pub fn knows_arrivals(&self) -> bool {
        self.known_arrivals * 2 > self.stream.releases()
    }

    /// The same descriptor, but another file: the name says only what stays.
    pub fn meet(&mut self, separator: Separator) {
        if self.separator != separator {
            self.separator = self.key;
        }
    }

    /// The job that is open ends where `activation` stopped.
    pub fn close(&mut self, activation: &Activation, sleeps: &Sleeps, segments: &mut Vec<Segment>) -> Option<Job> {
        let open = self.open.take()?;
        sleeps.segments(&open, activation.cpu, segments);
        let job = Job {
            release: open.release,
            start: open.start,
            end: activation.stop.max(open.start),
            cost: activation.cpu.saturating_sub(open.cpu),
            suspended: sleeps.total.saturating_sub(open.asleep),
        };
        self.stream.complete(&job, segments);
        Some(job)
    }

    /// The next job opens. `sleeps` holds the activation's own sleep already, so that it is no part of the job.
    pub fn open(&mut self, activation: &Activation, resumed: &Resumed, sleeps: &Sleeps) {
        let window = self.release_of(activation, resumed);
        let release = Release { arrival: activation.arrival, window };
        let back_to_back = resumed.release.is_none();
        self.stream.release(&release, back_to_back);
        self.last_release = Some(window);
        self.known_arrivals += u64::from(activation.arrival.is_some());
        if let Some(slept) = resumed.release {
            self.waited += slept.latest().since(activation.stop);
        }
        self.open = Some(Open {
            release,
            start: resumed.start.max(window.earliest()),
            cpu: activation.cpu,
            asleep: sleeps.total,
            sleeps: sleeps.count,
        });
    }

    /// When the next job was released. A call that did not wait found its event already there: it came at its known arrival, or
    /// else at some time since the release before (releases keep their order) and before the call.
    fn release_of(&self, activation: &Activation, resumed: &Resumed) -> Window {
        let floor = self.last_release.map(Window::earliest);
        let (earliest, latest) = match (resumed.release, activation.arrival) {
            (Some(window), _) => (window.earliest(), window.latest()),
            (None, Some(arrival)) => (arrival.min(activation.stop), arrival.min(activation.stop)),
            (None, None) => (floor.unwrap_or(activation.stop), activation.stop),
        };
        let earliest = floor.map_or(earliest, |floor| earliest.max(floor));
        Window::new(earliest, latest.max(earliest)).unwrap_or(Window::at(earliest))
    }
}
