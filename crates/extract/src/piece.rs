//! A piece of a long sequence of records, summed up without knowing what came before, so that pieces can be
//! processed in parallel.
//!
//! For each thread it keeps what happened, in order: consecutive activations as a [`Run`], everything else as
//! it is. [`Extractor::append`] then changes the extractor of all records before as the piece's own records
//! would have. Runs detect where that would not be exact (a release whose window depends on too much, hulls
//! that may have lost corners, more separators than a task can have); then, and where there is too much to
//! keep, the thread's records are read again from there on.

use crate::clock::ClockSteps;
use crate::extractor::Extractor;
use crate::run::Run;
use crate::stream::Options;
use punctual_trace::{Activation, Record};
use rustc_hash::FxHashMap;

/// Most events that a piece keeps of one thread; a run can take as much memory as a task.
const MAX_EVENTS_OF_THREAD: usize = 16;
/// Most events of all threads.
const MAX_EVENTS: usize = 2_000;
/// Most threads of a piece. With more, nothing is summed up.
const MAX_THREADS: usize = 10_000;

enum Event {
    Run(Box<Run>),
    Record(Record),
}

/// What happened to the threads of one number.
#[derive(Default)]
struct Events {
    /// Each with the number of records before it.
    list: Vec<(u64, Event)>,
    records: u64,
    /// The number that the next record must have.
    next: u32,
    /// Whether a thread of this number is known, whatever came before the piece; `None` if that depends on
    /// it.
    known: Option<bool>,
    /// Whether the events are right only if it was known before.
    must_be_known: bool,
    /// Number of records that the events stand for, if there were too many.
    full_at: Option<u64>,
}

/// A piece.
pub(crate) struct Piece {
    options: Options,
    threads: FxHashMap<u32, Events>,
    /// How many events there are, of all threads.
    events: usize,
    /// Most tasks that can end by it.
    ends: usize,
    has_too_many_threads: bool,
    clock_steps: ClockSteps,
}

/// The threads whose records must be taken one by one, each after so many records.
pub(crate) type Again = FxHashMap<u32, u64>;

impl Piece {
    pub fn new(options: &Options) -> Piece {
        Piece {
            options: *options,
            threads: FxHashMap::default(),
            events: 0,
            ends: 0,
            has_too_many_threads: false,
            clock_steps: ClockSteps::default(),
        }
    }

    /// Takes the next record.
    pub fn record(&mut self, record: &Record) {
        let Some(events) = self.threads.get_mut(&record.tid()) else { return self.meet(record) };
        if let Record::Activation(activation) = record {
            if events.next == activation.sequence && events.go_on(activation, &self.options) {
                return;
            }
        }
        self.begin(record);
    }

    /// Takes the first record of a thread.
    #[cold]
    fn meet(&mut self, record: &Record) {
        self.has_too_many_threads |= self.threads.len() == MAX_THREADS;
        if !self.has_too_many_threads {
            self.threads.insert(record.tid(), Events::default());
            self.begin(record);
        }
    }

    /// Takes a record that does not continue a run.
    #[cold]
    fn begin(&mut self, record: &Record) {
        if let Record::ClockSet { at, by_ns } = record {
            return self.clock_steps.take(*at, *by_ns);
        }
        let (Some(events), Some(sequence)) = (self.threads.get_mut(&record.tid()), sequence(record)) else {
            return;
        };
        events.records += 1;
        // Such a record repeats what is known: no task ends with it.
        if !matches!(record, Record::Known(_)) {
            events.next = sequence.wrapping_add(1);
            // One for a gap before it, and one for the record itself.
            self.ends += 2;
        }
        match record {
            Record::Known(_) if events.known == Some(true) => return,
            // Means nothing if the thread was known before, which is likely.
            Record::Known(_) if events.known.is_none() && !events.list.is_empty() => {
                (events.known, events.must_be_known) = (Some(true), true);
                return;
            }
            Record::Known(_) | Record::Task(_) => events.known = Some(true),
            Record::Exit { .. } | Record::Last { .. } => events.known = Some(false),
            _ => {}
        }
        if events.full_at.is_some() {
            return;
        }
        if events.list.len() == MAX_EVENTS_OF_THREAD || self.events == MAX_EVENTS {
            events.full_at = Some(events.records - 1);
            return;
        }
        let event = match record {
            Record::Activation(activation) => {
                let mut run = Box::new(Run::new(activation.sequence));
                run.take(activation, &self.options);
                Event::Run(run)
            }
            other => Event::Record(other.clone()),
        };
        events.list.push((events.records - 1, event));
        self.events += 1;
    }
}

impl Events {
    /// Takes an activation that continues the current run; nothing is missing before it.
    #[inline]
    fn go_on(&mut self, activation: &Activation, options: &Options) -> bool {
        match (self.full_at, self.list.last_mut()) {
            (None, Some((_, Event::Run(run)))) => run.take(activation, options),
            (None, _) => return false,
            (Some(_), _) => {}
        }
        self.records += 1;
        self.next = activation.sequence.wrapping_add(1);
        true
    }
}

/// The record's number among its thread's; `None` for records without one.
fn sequence(record: &Record) -> Option<u32> {
    match record {
        Record::Task(task) | Record::Known(task) => Some(task.sequence),
        Record::Activation(activation) => Some(activation.sequence),
        Record::Renamed { sequence, .. }
        | Record::Command { sequence, .. }
        | Record::Busy { sequence, .. }
        | Record::Exit { sequence, .. }
        | Record::Last { sequence, .. } => Some(*sequence),
        Record::Bystander(_)
        | Record::BystanderExit { .. }
        | Record::Switch(_)
        | Record::ClockSet { .. }
        | Record::Lost { .. }
        | Record::Latency(_)
        | Record::Dispatch(_) => None,
    }
}

impl Extractor {
    /// Merges a piece; returns the threads whose records must be taken one by one next. `None` if that is all
    /// of them, because so many tasks end that their order decides which are kept; then nothing has changed.
    pub(crate) fn append(&mut self, piece: Piece) -> Option<Again> {
        if piece.has_too_many_threads || !self.has_room_for(piece.ends) {
            self.count_refed(piece.threads.len());
            return None;
        }
        self.append_clock_steps(&piece.clock_steps);
        let mut again = Again::default();
        for (tid, events) in piece.threads {
            if let Some(from) = self.append_events(tid, events) {
                again.insert(tid, from);
            }
        }
        self.count_refed(again.len());
        Some(again)
    }

    /// Returns the number of records after which the others must be taken one by one.
    fn append_events(&mut self, tid: u32, events: Events) -> Option<u64> {
        if events.must_be_known && !self.knows(tid) {
            return Some(0);
        }
        for (before, event) in events.list {
            match event {
                Event::Record(record) => self.record(&record),
                Event::Run(run) if self.run(tid, &run) => {}
                Event::Run(_) => return Some(before),
            }
        }
        events.full_at
    }
}
