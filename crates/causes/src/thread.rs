//! The state of one thread, from its events.
//!
//! An event that does not fit the state (a thread leaves a processor that it had not got) means that an event
//! was not seen: the time since the last event of the thread is then unknown.

use crate::event::{Departure, Urgency, Wait, Waker};
use punctual_model::{Duration, Instant};

/// A wake-up can be recorded before the sleep that it ends: the waker's processor is ahead by at most this.
const EARLY_WAKE_UP: Duration = Duration::from_us(100);

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not known, as it had no event yet: the first one tells.
    Unseen,
    /// Not known, as something was not seen.
    Unknown,
    Running {
        cpu: u32,
    },
    Ready {
        queue: Queue,
        since: Since,
    },
    /// The waker is known when it ends.
    Asleep {
        wait: Wait,
        waker: Option<Waker>,
    },
    Stopped,
    Ended,
}

/// What made a thread wait for a processor. One that is moved waits for the next one as if woken there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    Woken,
    Preempted,
    Throttled,
}

/// On which processor a ready thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// This one.
    Of(u32),
    /// The one that it left, until its next event tells whether it was moved.
    Left(u32),
    /// The one that it left, and then the one that it got: when it was moved is not recorded.
    Moved { from: u32, to: u32 },
    /// The one that it gets: where it was put when it was woken is not recorded.
    Next,
}

/// A stretch of time in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub from: Instant,
    pub until: Instant,
    pub state: State,
    /// The state as far as it was known before the event that ended it.
    pub begun: State,
    pub urgency: Urgency,
}

/// A thread at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub state: State,
    pub since: Instant,
    pub urgency: Urgency,
    /// A wake-up while it ran: perhaps of the sleep that follows.
    early: Option<(Instant, Waker)>,
}

impl Thread {
    pub fn unseen(since: Instant) -> Thread {
        Thread { state: State::Unseen, since, urgency: Urgency::UNKNOWN, early: None }
    }

    /// The stretch that ends at `at`, in the state as it is known by now.
    pub fn stretch(&self, at: Instant) -> Stretch {
        let Thread { state, since, urgency, .. } = *self;
        Stretch { from: since, until: at, state, begun: state, urgency }
    }

    /// Ends the stretch, which was in `seen`, and begins one in `next`.
    fn turn(&mut self, at: Instant, seen: State, next: State) -> Stretch {
        let stretch = Stretch { state: seen, ..self.stretch(at) };
        (self.state, self.since) = (next, at);
        stretch
    }

    /// Whether it was preempted, and waits for this processor again as far as is known.
    pub fn wants(&self, cpu: u32) -> bool {
        match self.state {
            State::Ready { queue: Queue::Of(of) | Queue::Left(of), since: Since::Preempted } => of == cpu,
            _ => false,
        }
    }

    /// It got a processor.
    pub fn enter(&mut self, at: Instant, cpu: u32, urgency: Urgency) -> Stretch {
        let woken = |queue| State::Ready { queue, since: Since::Woken };
        let seen = match self.state {
            State::Ready { queue: Queue::Next, since } => State::Ready { queue: Queue::Of(cpu), since },
            State::Ready { queue: Queue::Left(from), since } => {
                let queue = if from == cpu { Queue::Of(cpu) } else { Queue::Moved { from, to: cpu } };
                State::Ready { queue, since }
            }
            ready @ State::Ready { .. } => ready,
            State::Unseen => woken(Queue::Of(cpu)),
            // It was woken while it was falling asleep.
            State::Asleep { .. }
                if self.early.is_some_and(|(woken, _)| woken + EARLY_WAKE_UP >= self.since) =>
            {
                woken(Queue::Of(cpu))
            }
            _ => State::Unknown,
        };
        self.early = None;
        self.urgency = urgency;
        self.turn(at, seen, State::Running { cpu })
    }

    /// It left a processor.
    pub fn leave(&mut self, at: Instant, cpu: u32, urgency: Urgency, why: Departure) -> Stretch {
        let running = State::Running { cpu };
        let seen =
            if self.state == running || self.state == State::Unseen { running } else { State::Unknown };
        let next = match why {
            Departure::Preempted => State::Ready { queue: Queue::Left(cpu), since: Since::Preempted },
            Departure::Throttled => State::Ready { queue: Queue::Left(cpu), since: Since::Throttled },
            Departure::Asleep(wait) => State::Asleep { wait, waker: None },
            Departure::Stopped => State::Stopped,
            Departure::Ended => State::Ended,
        };
        self.urgency = urgency;
        self.turn(at, seen, next)
    }

    /// It was woken. `None` if that changes nothing: it was not asleep yet.
    pub fn wake(&mut self, at: Instant, by: Waker) -> Option<Stretch> {
        let seen = match self.state {
            State::Asleep { wait, .. } => State::Asleep { wait, waker: Some(by) },
            State::Unseen => State::Asleep { wait: Wait::default(), waker: Some(by) },
            State::Stopped | State::Unknown => self.state,
            State::Ended => State::Unknown,
            // It must have run and fallen asleep meanwhile.
            State::Ready { .. } if at > self.since + EARLY_WAKE_UP => State::Unknown,
            State::Running { .. } | State::Ready { .. } => {
                self.early = Some((at, by));
                return None;
            }
        };
        Some(self.turn(at, seen, State::Ready { queue: Queue::Next, since: Since::Woken }))
    }

    /// It was moved from the queue of one processor to that of another.
    pub fn moved(&mut self, at: Instant, from: u32, to: u32) -> Option<Stretch> {
        let State::Ready { queue, since } = self.state else { return None };
        let seen = match queue {
            // The queue that it was put in when it was woken is the first one of which it is known.
            Queue::Next => State::Ready { queue: Queue::Of(from), since },
            Queue::Of(cpu) | Queue::Left(cpu) if cpu == from => State::Ready { queue: Queue::Of(cpu), since },
            _ => State::Unknown,
        };
        let then = if since == Since::Preempted { Since::Woken } else { since };
        Some(self.turn(at, seen, State::Ready { queue: Queue::Of(to), since: then }))
    }

    /// What it did since its last event is not known.
    pub fn lose(&mut self, at: Instant) -> Stretch {
        self.early = None;
        self.turn(at, State::Unknown, State::Unknown)
    }
}
