//! Who has a processor, and which interrupts it serves, from its events.

use crate::event::Interrupt;
use punctual_model::{Duration, Instant};

/// Who has a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// Not known, as nothing happened there yet: the first event tells.
    Unseen,
    /// Not known, as something was not seen.
    Unknown,
    /// No thread.
    Idle,
    Thread(u32),
}

/// Whether the scheduler gave a processor to its occupant although a more urgent thread wanted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Favour {
    pub is_given: bool,
    /// When the processor was last idle, and nobody wanted it. Events since then decide.
    pub known_from: Instant,
    /// Whether it depends on an event that was not seen.
    pub is_doubtful: bool,
}

/// A stretch of a processor's time with one occupant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occupancy {
    pub from: Instant,
    pub until: Instant,
    pub by: Occupant,
    /// The same, as far as it was known before the event that ended the stretch.
    pub begun: Occupant,
    pub favour: Favour,
}

/// A stretch of a processor's time in an interrupt. `None`: its end was not seen, so it lasted until some
/// time in the stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub from: Instant,
    pub until: Instant,
    pub what: Option<Interrupt>,
}

/// What a hypervisor took in a stretch of a processor's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StolenTime {
    pub from: Instant,
    pub until: Instant,
    pub time: Duration,
}

/// A processor at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    pub occupant: Occupant,
    pub since: Instant,
    pub favour: Favour,
    /// Whether a switch was not seen since it was last idle, and nobody wanted it.
    pub is_doubtful: bool,
    /// Real-time threads that left it and wanted to keep it.
    pub wanted_by: Vec<u32>,
    /// Interrupts that it serves, the innermost last; each has been running since then.
    serving: Vec<(Interrupt, Instant)>,
    pub stolen_since: Instant,
}

impl Processor {
    pub fn unseen(since: Instant) -> Processor {
        Processor {
            occupant: Occupant::Unseen,
            since,
            favour: Favour { is_given: false, known_from: since, is_doubtful: false },
            is_doubtful: false,
            wanted_by: Vec::new(),
            serving: Vec::new(),
            stolen_since: since,
        }
    }

    /// The stretch that ends at `at`.
    pub fn stretch(&self, at: Instant) -> Occupancy {
        Occupancy {
            from: self.since,
            until: at,
            by: self.occupant,
            begun: self.occupant,
            favour: self.favour,
        }
    }

    /// Ends the stretch, whose occupant was `seen`, and begins one of `next`.
    pub fn turn(&mut self, at: Instant, seen: Occupant, next: Occupant) -> Occupancy {
        let stretch = Occupancy { by: seen, ..self.stretch(at) };
        (self.occupant, self.since) = (next, at);
        stretch
    }

    /// An interrupt begins. Returns the stretch of the one that it interrupts.
    pub fn begin(&mut self, at: Instant, what: Interrupt) -> Option<Service> {
        let outer = self.serving.last().map(|(outer, from)| served(*from, at, Some(*outer)));
        self.serving.push((what, at));
        outer
    }

    /// An interrupt ends; those within it whose ends were not seen end, too.
    pub fn end(&mut self, at: Instant, what: Interrupt) -> Option<Service> {
        let place = self.serving.iter().rposition(|(serving, _)| *serving == what)?;
        let innermost = place + 1 == self.serving.len();
        let (_, from) = self.serving[place];
        self.serving.truncate(place);
        if let Some((_, from)) = self.serving.last_mut() {
            *from = at;
        }
        Some(served(from, at, innermost.then_some(what)))
    }

    /// The processor goes from thread to thread, which no interrupt outlasts. Softirqs are served by threads,
    /// too, so one is not known to have ended late.
    pub fn switch(&mut self, at: Instant) -> Option<Service> {
        let first = self.serving.drain(..).next();
        first.filter(|(what, _)| !matches!(what, Interrupt::Soft(_))).map(|(_, from)| served(from, at, None))
    }

    /// The stretch of the interrupt that it serves, if any, up to `at`.
    pub fn serving_at(&self, at: Instant) -> Option<Service> {
        self.serving.last().map(|(what, from)| served(*from, at, Some(*what)))
    }
}

fn served(from: Instant, until: Instant, what: Option<Interrupt>) -> Service {
    Service { from, until, what }
}
