//! The way of data from push to push: what an instance carries on of the source's instance it comes from.

use punctual_model::{Duration, Instant};
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

/// The newest datum that was put where the next instance will read it.
#[derive(Debug, Clone, Default)]
pub enum Window {
    #[default]
    Empty,
    Datum(Via),
    Unknown,
}

impl Window {
    /// Puts what an instance carries. The newest is that of the latest instance of the source.
    #[inline]
    pub fn put(&mut self, carry: &Carry, start: Instant, pushed_at: Instant, channel: u16) {
        match (carry, &*self) {
            (Carry::Nothing, _) | (_, Window::Unknown) => {}
            (Carry::Unknown, _) => *self = Window::Unknown,
            (Carry::Known(from), Window::Datum(via)) if via.from.source > from.source => {}
            (Carry::Known(from), _) => *self = Window::Datum(Via { from: Rc::clone(from), start, pushed_at, channel }),
        }
    }

    /// What an instance has that reads it.
    #[inline]
    pub fn read(&mut self, instance: u64, activation: Instant) -> Carry {
        match std::mem::take(self) {
            Window::Empty => Carry::Nothing,
            Window::Unknown => Carry::Unknown,
            Window::Datum(via) => {
                let (source, source_activation) = (via.from.source, via.from.source_activation);
                Carry::Known(Rc::new(Carried { source, source_activation, instance, activation, via: Some(via) }))
            }
        }
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
