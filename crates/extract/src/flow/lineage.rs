//! The way of data from push to push: what an instance carries on of the source's instance it comes from.

use punctual_model::{Duration, Instant};
use std::collections::VecDeque;
use std::rc::Rc;

/// An instance of a task, as part of the way of a datum: that way, up to its activation.
#[derive(Debug)]
pub struct Carried {
    /// The instance of the chain's source, and its activation.
    pub source: u64,
    pub source_activation: Instant,
    /// The instance itself.
    pub instance: u64,
    pub activation: Instant,
    /// How long its task was busy with earlier data, since the datum had come.
    pub busy: Option<Duration>,
    /// How the datum came here; `None` in the source's own.
    pub via: Option<Via>,
}

/// A push of a datum.
#[derive(Debug, Clone)]
pub struct Via {
    /// The instance that made it, when that had started, when it pushed.
    pub from: Rc<Carried>,
    pub start: Instant,
    pub pushed_at: Instant,
    pub channel: u16,
    /// How long the task that it goes to had been busy then, since the trace began; where that says how long
    /// it has to wait.
    pub busy: Option<Duration>,
}

/// What an instance has of a chain.
#[derive(Debug, Clone, Default)]
pub enum Carry {
    /// No datum.
    #[default]
    Nothing,
    Known(Rc<Carried>),
    /// Perhaps a datum, perhaps not this one: an event that might have changed it is missing.
    Unknown,
}

/// The newest datum of those that an instance will read together: that of the latest instance of the source.
#[derive(Debug, Clone, Default)]
pub enum Window {
    #[default]
    Empty,
    Datum(Via),
    Unknown,
}

impl Window {
    /// A push of what an instance carries.
    #[inline]
    pub fn of(
        carry: &Carry,
        start: Instant,
        pushed_at: Instant,
        channel: u16,
        busy: Option<Duration>,
    ) -> Window {
        match carry {
            Carry::Nothing => Window::Empty,
            Carry::Unknown => Window::Unknown,
            Carry::Known(from) => {
                Window::Datum(Via { from: Rc::clone(from), start, pushed_at, channel, busy })
            }
        }
    }

    /// The newer of both, as one that reads both sees them.
    #[inline]
    pub fn join(&mut self, other: Window) {
        let is_newer = match (&*self, &other) {
            (Window::Unknown, _) | (_, Window::Empty) => false,
            (_, Window::Unknown) | (Window::Empty, _) => true,
            (Window::Datum(one), Window::Datum(other)) => {
                (one.from.source, one.pushed_at) <= (other.from.source, other.pushed_at)
            }
        };
        if is_newer {
            *self = other;
        }
    }

    /// What an instance has that reads it; `busy` is how long its task had been when it was activated.
    #[inline]
    pub fn read(self, instance: u64, activation: Instant, busy: Option<Duration>) -> Carry {
        match self {
            Window::Empty => Carry::Nothing,
            Window::Unknown => Carry::Unknown,
            Window::Datum(via) => {
                let (source, source_activation) = (via.from.source, via.from.source_activation);
                let most = activation.since(via.pushed_at);
                let since = |(before, now): (Duration, Duration)| {
                    Duration::from_ns(now.ns().saturating_sub(before.ns())).min(most)
                };
                let busy = via.busy.zip(busy).map(since);
                Carry::Known(Rc::new(Carried {
                    source,
                    source_activation,
                    instance,
                    activation,
                    busy,
                    via: Some(via),
                }))
            }
        }
    }
}

/// Data that an input keeps, in the order of their pushes.
#[derive(Debug, Clone, Default)]
pub struct Backlog {
    entries: VecDeque<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// Which pushes they are; more than one where it is not known of each.
    from: u64,
    until: u64,
    window: Window,
}

/// Data that an input keeps; of what comes beyond, nobody knows any more which is which.
const MOST_KEPT: usize = 1 << 14;

impl Backlog {
    /// Keeps what an instance carries, or nobody knows what.
    #[inline]
    pub fn put(&mut self, place: u64, window: Window) {
        // They come in order, but for ticks that coincide.
        let behind = self.entries.iter().rev().take_while(|entry| entry.from > place).count();
        let index = self.entries.len() - behind;
        if index == MOST_KEPT {
            let last = &mut self.entries[MOST_KEPT - 1];
            (last.until, last.window) = (place + 1, Window::Unknown);
            return;
        }
        self.entries.insert(index, Entry { from: place, until: place + 1, window });
    }

    /// Takes these out, and forgets those before.
    #[inline]
    pub fn take(&mut self, from: u64, until: u64) -> Window {
        let mut taken = Window::Empty;
        while let Some(entry) = self.entries.front_mut().filter(|entry| entry.from < until) {
            if entry.until > until {
                // There is more of those that are not known.
                entry.from = until;
                taken.join(Window::Unknown);
                break;
            }
            if let Some(entry) = self.entries.pop_front().filter(|entry| entry.until > from) {
                taken.join(entry.window);
            }
        }
        taken
    }
}

/// A whole way, from the source's instance to the end of the sink's.
#[derive(Debug, Clone)]
pub struct Way {
    /// The source's instance that it is about, and its activation; the datum may be of a later one.
    pub source: u64,
    pub from: Instant,
    pub sink: Rc<Carried>,
    pub start: Instant,
    pub stop: Instant,
}

impl Way {
    pub fn latency(&self) -> Duration {
        self.stop.since(self.from)
    }
}
