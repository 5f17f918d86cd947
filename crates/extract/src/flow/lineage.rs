//! The path of data from push to push: what an instance passes on of the source's instance that its data come
//! from.

use super::inputs::MOST_BEHIND;
use punctual_model::{Duration, Instant};
use std::collections::VecDeque;
use std::rc::Rc;

/// An instance of a task on the path of a datum: that path, up to its activation.
#[derive(Debug)]
pub struct Carried {
    /// The instance of the chain's source, and its activation.
    pub source: u64,
    pub source_activation: Instant,
    /// The instance itself.
    pub instance: u64,
    pub activation: Instant,
    /// How long its task was busy with earlier data after the datum had come.
    pub busy: Option<Duration>,
    /// How the datum came here; `None` for the source itself.
    pub via: Option<Via>,
}

/// A push of a datum.
#[derive(Debug, Clone)]
pub struct Via {
    /// The instance that pushed it, that instance's start, and the time of the push.
    pub from: Rc<Carried>,
    pub start: Instant,
    pub pushed_at: Instant,
    pub channel: u16,
    /// Total time the receiving task had been busy by then, if that tells how long the datum has to wait.
    pub busy: Option<Duration>,
}

/// What an instance holds of a chain.
#[derive(Debug, Clone, Default)]
pub enum Carry {
    /// No datum.
    #[default]
    Nothing,
    Known(Rc<Carried>),
    /// Perhaps a datum, perhaps not this one: an event that might have changed it is missing.
    Unknown,
}

/// The newest of the data that an instance will read together: that of the latest instance of the source.
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
    pub fn of_push(
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

    /// The newer of both, for an instance that reads both.
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

    /// What an instance holds after reading it; `busy` is the total busy time of its task at its activation.
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

/// Data that an input keeps, in order of their pushes.
#[derive(Debug, Clone, Default)]
pub struct Backlog {
    entries: VecDeque<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// The pushes they stand for: more than one if they cannot be told apart.
    from: u64,
    until: u64,
    window: Window,
}

/// Most data kept for an input; beyond that they cannot be told apart.
const MOST_KEPT: usize = 1 << 14;

impl Backlog {
    /// Keeps what an instance carries, or unknown data.
    #[inline]
    pub fn put(&mut self, place: u64, window: Window) {
        // They come in order, except within one tick.
        let behind = self.entries.iter().rev().take_while(|entry| entry.from > place).count();
        let index = self.entries.len() - behind;
        if index == MOST_KEPT {
            let last = &mut self.entries[MOST_KEPT - 1];
            (last.until, last.window) = (place + 1, Window::Unknown);
            return;
        }
        self.entries.insert(index, Entry { from: place, until: place + 1, window });
    }

    /// Removes these, and drops those before.
    #[inline]
    pub fn take(&mut self, from: u64, until: u64) -> Window {
        let mut taken = Window::Empty;
        while let Some(entry) = self.entries.front_mut().filter(|entry| entry.from < until) {
            if entry.until > until {
                // More unknown data are left.
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

impl Backlog {
    /// Removes this one, and drops those that come too late by now.
    pub fn take_one(&mut self, place: u64) -> Window {
        while self.entries.front().is_some_and(|entry| entry.until.saturating_add(MOST_BEHIND) <= place) {
            self.entries.pop_front();
        }
        let index = self.entries.iter().position(|entry| (entry.from..entry.until).contains(&place));
        match index {
            // Those that cannot be told apart stay.
            Some(index) if self.entries[index].until - self.entries[index].from > 1 => Window::Unknown,
            Some(index) => self.entries.remove(index).map_or(Window::Empty, |entry| entry.window),
            None => Window::Empty,
        }
    }
}

/// A whole path, from the source's instance to the end of the sink's.
#[derive(Debug, Clone)]
pub struct Way {
    /// The source's instance whose latency this is, and its activation; the datum may be of a later one.
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
