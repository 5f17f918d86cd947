//! The jobs of one task at one separator, as they open and close.

use crate::stream::{Circumstances, Options, Stream};
use punctual_model::{
    Disturbance, Duration, Instant, Job, MAX_SEGMENTS, Release, Segment, Separator, Window,
};
use punctual_trace::{Activation, Ready, Resumed};

/// A sleep of the thread: its processor time until then, and how long it slept.
#[derive(Clone, Copy, Debug, Default)]
struct Sleep {
    cpu: Duration,
    suspended: Duration,
}

/// The thread's last sleeps and its total time asleep: the source of the segments of every lane's jobs.
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

    /// Whether the total time asleep is still exact after appending `later`.
    pub fn can_append(&self, later: &Sleeps) -> bool {
        self.total.ns().checked_add(later.total.ns()).is_some()
    }

    /// These, followed by those of a later stretch.
    pub fn followed_by(&self, later: &Sleeps) -> Sleeps {
        let mut all = self.clone();
        let known = later.count.min(later.last.len() as u64);
        all.count += later.count - known;
        for number in later.count - known..later.count {
            let sleep = later.last[number as usize % later.last.len()];
            all.push(sleep.cpu, sleep.suspended);
        }
        all.total = self.total + later.total;
        all
    }

    /// The segments of a job that began at `open` and ended with `cpu`. The oldest are merged into the first,
    /// if there are too many.
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
                // Time asleep before the sleeps still in the ring.
                let known: Duration = (self.count - kept..self.count)
                    .fold(Duration::ZERO, |sum, n| sum + self.last[n as usize % self.last.len()].suspended);
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

/// A job that has been released but has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    release: Release,
    start: Instant,
    /// The thread's counters at the release.
    cpu: Duration,
    asleep: Duration,
    sleeps: u64,
    circumstances: Circumstances,
}

/// A job that has been released and has not ended, as far as the thread's records say.
#[derive(Clone, Copy, Debug)]
pub struct OpenJob {
    /// Where it will end, as [`crate::JobSeen::separator`].
    pub separator: Separator,
    /// The index of its release in its stream, from 0.
    pub number: u64,
    /// Its release.
    pub release: Release,
    /// When it began to run.
    pub start: Instant,
    /// The thread's cumulative processor time at the release.
    pub cpu: Duration,
    /// What moved its release.
    pub disturbance: Option<Disturbance>,
}

/// A job that has ended, and the circumstances of its release.
pub struct Closed {
    pub job: Job,
    pub circumstances: Circumstances,
}

/// The beginning of a lane in a stretch of its task, as long as its jobs depend on what came before: a job
/// may be open, and releases keep their order.
#[derive(Clone, Debug, Default)]
struct Head {
    /// The first activations, and the sleeps in the stretch until each. The last is the first with a release
    /// of its own, from which on the lane depends on nothing earlier; what it resumed to is not part of the
    /// head.
    activations: Vec<(Activation, Sleeps)>,
    /// That release's earliest bound.
    settled: Option<Instant>,
    is_too_long: bool,
}

/// Longest head. Only calls that never wait make one longer than 1.
const MAX_HEAD: usize = 16;

impl Head {
    /// Takes an activation, unless the head has ended with a release.
    fn take(&mut self, activation: &Activation, sleeps: &Sleeps) -> bool {
        if self.settled.is_some() {
            return false;
        }
        if self.activations.len() < MAX_HEAD {
            self.activations.push((*activation, sleeps.clone()));
        } else {
            self.is_too_long = true;
        }
        true
    }

    /// The activations before the one that settles the lane.
    fn unsettled(&self) -> &[(Activation, Sleeps)] {
        match self.settled {
            Some(_) => &self.activations[..self.activations.len() - 1],
            None => &self.activations,
        }
    }
}

/// The jobs of one task at one separator.
#[derive(Clone, Debug)]
pub struct Lane {
    separator: Separator,
    /// Identifies the lane among others.
    key: Separator,
    stream: Stream,
    open: Option<Open>,
    last_release: Option<Window>,
    /// The first known arrival and the last one, of those until their releases.
    first_arrival: Option<Instant>,
    last_arrival: Option<Instant>,
    waited: Duration,
    known_arrivals: u64,
    /// Present if the task began before the lane's stretch of it.
    head: Option<Box<Head>>,
}

impl Lane {
    pub fn new(separator: Separator, options: &Options) -> Self {
        Self {
            separator,
            key: separator.key(),
            stream: Stream::new(options),
            open: None,
            last_release: None,
            first_arrival: None,
            last_arrival: None,
            waited: Duration::ZERO,
            known_arrivals: 0,
            head: None,
        }
    }

    /// A lane of a task that began earlier.
    pub fn continuing(separator: Separator, options: &Options) -> Self {
        Self { head: Some(Box::default()), ..Self::new(separator, options) }
    }

    pub fn separator(&self) -> Separator {
        self.separator
    }

    pub fn renamed(&self, separator: Separator) -> Self {
        Self { separator, key: separator.key(), ..self.clone() }
    }

    pub fn key(&self) -> Separator {
        self.key
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The job that has not ended.
    pub fn open_job(&self) -> Option<OpenJob> {
        let Open { release, start, cpu, circumstances, .. } = self.open?;
        Some(OpenJob {
            separator: self.separator,
            number: self.stream.releases().saturating_sub(1),
            release,
            start,
            cpu,
            disturbance: circumstances.disturbance,
        })
    }

    /// Total time asleep at this separator.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Whether most arrivals are known.
    pub fn knows_arrivals(&self) -> bool {
        self.known_arrivals * 2 > self.stream.releases()
    }

    /// Handles a separator with the same key. If it is another file at the same descriptor, only the key is
    /// kept as a name. An address keeps the first name that it had.
    pub fn meet(&mut self, separator: Separator) {
        if self.separator != separator && self.separator.object.name().is_none() {
            let is_address = separator.object.name().is_some();
            self.separator = if is_address { separator } else { self.key };
        }
    }

    /// Ends the open job where `activation` stopped.
    pub fn close(
        &mut self,
        activation: &Activation,
        sleeps: &Sleeps,
        segments: &mut Vec<Segment>,
    ) -> Option<Closed> {
        if self.head.as_mut().is_some_and(|head| head.take(activation, sleeps)) {
            return None;
        }
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
        Some(Closed { job, circumstances: open.circumstances })
    }

    /// Opens the next job; returns when it was due. `sleeps` includes the activation's own sleep already, so
    /// that it is not part of the job.
    pub fn open(&mut self, activation: &Activation, resumed: &Resumed, sleeps: &Sleeps) -> Option<Instant> {
        let window = self.release_of(activation, resumed);
        if let Some(head) = self.head.as_mut().filter(|head| head.settled.is_none()) {
            if resumed.release.is_none() && activation.arrival.is_none() {
                return None;
            }
            head.settled = Some(window.earliest());
        }
        let arrival = self.arrival_of(activation, window);
        let release = Release { arrival, window };
        let circumstances = Circumstances {
            back_to_back: resumed.release.is_none(),
            expirations: resumed.expirations,
            disturbance: resumed.disturbance,
            ready: self.ready_of(resumed),
        };
        self.stream.release(&release, circumstances);
        self.last_release = Some(window);
        self.known_arrivals += u64::from(arrival.is_some());
        if let Some(slept) = resumed.release {
            self.waited += slept.latest().since(activation.stop);
        }
        self.open = Some(Open {
            release,
            start: resumed.start.max(window.earliest()),
            cpu: activation.cpu,
            asleep: sleeps.total,
            sleeps: sleeps.count,
            circumstances,
        });
        arrival
    }

    /// When the next job was due: not before the one that came before it, as it seems after a step of a clock
    /// that the records do not tell of. What is due after its release, where a signal ended its sleep, says
    /// nothing of later ones. Sleeps in different calls are due in any order: a job that is late sleeps for a
    /// while, and then until an instant that may be past. So the stream of all sleeps has the due times
    /// that the calls' own streams take.
    fn arrival_of(&mut self, activation: &Activation, window: Window) -> Option<Instant> {
        let due = activation.arrival.filter(|arrival| *arrival <= window.latest());
        let Some(due) = due.filter(|_| self.separator != Separator::SUSPENSION) else {
            return activation.arrival;
        };
        let due = self.last_arrival.map_or(due, |last| due.max(last.min(window.latest())));
        self.first_arrival = self.first_arrival.or(Some(due));
        self.last_arrival = Some(due);
        Some(due)
    }

    /// What was ready; keys of different calls mean different things.
    fn ready_of(&self, resumed: &Resumed) -> Ready {
        if self.separator == Separator::SUSPENSION { Ready::default() } else { resumed.ready }
    }

    /// When the next job was released. If the call did not wait, its event had happened already: at its known
    /// arrival, else between the release before (releases keep their order) and the call.
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

    /// Whether appending `later`, of the stretch that follows, gives the same as taking its activations here.
    pub fn can_append(&self, later: &Lane) -> bool {
        let Some(head) = &later.head else { return false };
        let mut floor = self.last_release.map(Window::earliest);
        for (activation, _) in head.unsettled().iter().filter(|(activation, _)| activation.resumed.is_some())
        {
            // Its release was not before the last one; the very first was at its stop.
            floor = floor.or(Some(activation.stop));
        }
        let in_order = floor.is_none_or(|floor| head.settled.is_none_or(|settled| floor <= settled));
        let arrives_in_order =
            self.last_arrival.zip(later.first_arrival).is_none_or(|(last, first)| last <= first);
        !head.is_too_long
            && in_order
            && arrives_in_order
            && self.stream.can_merge(&later.stream, head.activations.len())
    }

    /// Appends a lane that [`Self::can_append`] accepts. `sleeps` are those until its stretch. Returns how
    /// many jobs ended by activations that `count`, of the jobs that the stretch could not know.
    pub fn append(
        &mut self,
        later: &Lane,
        sleeps: &Sleeps,
        segments: &mut Vec<Segment>,
        count: impl Fn(&Activation) -> bool,
    ) -> u64 {
        let Some(head) = &later.head else { return 0 };
        let mut ended = 0;
        for (number, (activation, since)) in head.activations.iter().enumerate() {
            let sleeps = sleeps.followed_by(since);
            let job = self.close(activation, &sleeps, segments);
            ended += u64::from(job.is_some() && count(activation));
            if let Some(resumed) = activation.resumed.as_ref().filter(|_| number < head.unsettled().len()) {
                self.open(activation, resumed, &sleeps);
            }
        }
        if head.settled.is_some() {
            self.stream.merge(&later.stream);
            self.last_release = later.last_release;
            self.first_arrival = self.first_arrival.or(later.first_arrival);
            self.last_arrival = later.last_arrival.or(self.last_arrival);
            self.open = later.open.map(|open| Open {
                asleep: sleeps.total + open.asleep,
                sleeps: sleeps.count + open.sleeps,
                ..open
            });
            self.waited += later.waited;
            self.known_arrivals += later.known_arrivals;
        }
        ended
    }
}
