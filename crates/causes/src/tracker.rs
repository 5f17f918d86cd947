//! The states of all threads and processors, event by event.

use crate::event::{Departure, Event, Faults, Step, Urgency};
use crate::processor::{Favour, Occupancy, Occupant, Processor, Service, StolenTime};
use crate::thread::{State, Stretch, Thread};
use punctual_model::Instant;
use rustc_hash::FxHashMap;

/// Receives stretches when they end.
pub(crate) trait Sink {
    fn thread(&mut self, _thread: u32, _stretch: Stretch) {}
    fn occupied(&mut self, _cpu: u32, _stretch: Occupancy) {}
    fn served(&mut self, _cpu: u32, _stretch: Service) {}
    fn stolen(&mut self, _cpu: u32, _stretch: StolenTime) {}
    fn faulted(&mut self, _thread: u32, _at: Instant, _faults: Faults) {}
}

/// Keeps states only.
pub(crate) struct Nothing;
impl Sink for Nothing {}

/// All threads and processors at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Tracker {
    pub threads: FxHashMap<u32, Thread>,
    pub processors: FxHashMap<u32, Processor>,
    /// Before this, nothing was seen.
    from: Instant,
    /// Whether the events are those of some threads only, so that other occupants of processors are unknown.
    is_partial: bool,
    /// Whether threads may have run on processors of which there are no events.
    pub hides_processors: bool,
}

impl Tracker {
    pub fn new(from: Instant) -> Tracker {
        let (threads, processors) = Default::default();
        Tracker { threads, processors, from, is_partial: false, hides_processors: false }
    }

    /// The same, for the events of some threads only.
    pub fn partial(self) -> Tracker {
        Tracker { is_partial: true, ..self }
    }

    /// The same, for the events of some processors only.
    pub fn of_some_processors(self) -> Tracker {
        Tracker { hides_processors: true, ..self }
    }

    /// Takes the next event, which is not earlier than those before.
    pub fn event(&mut self, event: &Event, sink: &mut impl Sink) {
        let Event { at, cpu, step } = *event;
        match step {
            Step::In { thread, urgency } => self.enter(at, cpu, thread, urgency, sink),
            Step::Out { thread, urgency, why } => {
                let occupant = self.processor(cpu).occupant;
                self.expel(at, cpu, occupant, thread, sink);
                let had = occupant_of(thread);
                let seen =
                    if occupant == had || occupant == Occupant::Unseen { had } else { Occupant::Unknown };
                self.turn(at, cpu, seen, self.vacant(), sink);
                if matches!(why, Departure::Preempted) && urgency < Urgency::FAIR {
                    self.processor(cpu).wanted_by.push(thread);
                }
                if thread != 0 {
                    let stretch = self.thread(thread).leave(at, cpu, urgency, why);
                    sink.thread(thread, stretch);
                    if self.thread(thread).state == State::Ended {
                        self.threads.remove(&thread);
                    }
                }
            }
            Step::Woken { thread, by } => {
                if let Some(stretch) = self.thread(thread).wake(at, by) {
                    sink.thread(thread, stretch);
                }
            }
            Step::Moved { thread, to } => {
                if let Some(stretch) = self.thread(thread).moved(at, cpu, to) {
                    sink.thread(thread, stretch);
                }
            }
            Step::Began(what) => {
                if let Some(outer) = self.processor(cpu).begin(at, what) {
                    sink.served(cpu, outer);
                }
            }
            Step::Ended(what) => {
                if let Some(served) = self.processor(cpu).end(at, what) {
                    sink.served(cpu, served);
                }
            }
            Step::Stolen(time) => {
                let processor = self.processor(cpu);
                sink.stolen(cpu, StolenTime { from: processor.stolen_since, until: at, time });
                processor.stolen_since = at;
            }
            Step::Faulted { thread, faults } => sink.faulted(thread, at, faults),
        }
    }

    fn enter(&mut self, at: Instant, cpu: u32, thread: u32, urgency: Urgency, sink: &mut impl Sink) {
        let occupant = self.processor(cpu).occupant;
        self.expel(at, cpu, occupant, thread, sink);
        let seen = match occupant {
            Occupant::Thread(_) => Occupant::Unknown,
            Occupant::Unseen => self.vacant(),
            other => other,
        };
        self.turn(at, cpu, seen, occupant_of(thread), sink);
        let favour = self.favour(at, cpu, thread, urgency);
        self.processor(cpu).favour = favour;
        if thread != 0 {
            let stretch = self.thread(thread).enter(at, cpu, urgency);
            sink.thread(thread, stretch);
        }
    }

    /// Whether a thread gets the processor although a more urgent one wants it.
    fn favour(&mut self, at: Instant, cpu: u32, thread: u32, urgency: Urgency) -> Favour {
        let Tracker { threads, processors, from, .. } = self;
        let processor = processors.entry(cpu).or_insert_with(|| Processor::unseen(*from));
        let wants = |it: &u32| *it != thread && threads.get(it).is_some_and(|it| it.wants(cpu));
        processor.wanted_by.retain(wants);
        if thread == 0 && processor.wanted_by.is_empty() {
            processor.is_doubtful = false;
            return Favour { is_given: false, known_from: at, is_doubtful: false };
        }
        let more_urgent = |it: &&u32| threads[*it].urgency < urgency;
        let is_given = processor.wanted_by.iter().any(|it| more_urgent(&it));
        // One that was seen leaving at this very moment certainly wants it.
        let is_certain = processor.wanted_by.iter().any(|it| more_urgent(&it) && threads[it].since == at);
        let is_doubtful = processor.is_doubtful && !is_certain;
        Favour { is_given, is_doubtful, ..processor.favour }
    }

    /// The occupant of a processor that has no thread of the events.
    fn vacant(&self) -> Occupant {
        if self.is_partial { Occupant::Unknown } else { Occupant::Idle }
    }

    /// If another thread than `thread` has the processor as far as is known, it left unseen.
    fn expel(&mut self, at: Instant, cpu: u32, occupant: Occupant, thread: u32, sink: &mut impl Sink) {
        let Occupant::Thread(other) = occupant else { return };
        // Unless it was seen elsewhere since.
        if other != thread && self.thread(other).state == (State::Running { cpu }) {
            let stretch = self.thread(other).lose(at);
            sink.thread(other, stretch);
        }
    }

    fn turn(&mut self, at: Instant, cpu: u32, seen: Occupant, next: Occupant, sink: &mut impl Sink) {
        let is_doubtful = seen == Occupant::Unknown && !self.is_partial;
        let processor = self.processor(cpu);
        processor.is_doubtful |= is_doubtful;
        let (served, stretch) = (processor.switch(at), processor.turn(at, seen, next));
        processor.stolen_since = at;
        sink.occupied(cpu, stretch);
        if let Some(served) = served {
            sink.served(cpu, served);
        }
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        self.threads.entry(thread).or_insert_with(|| Thread::unseen(self.from))
    }

    fn processor(&mut self, cpu: u32) -> &mut Processor {
        self.processors.entry(cpu).or_insert_with(|| Processor::unseen(self.from))
    }
}

fn occupant_of(thread: u32) -> Occupant {
    if thread == 0 { Occupant::Idle } else { Occupant::Thread(thread) }
}
