//! One chain: the instances of its source that wait for a reaction, and what became of the others.

use super::Histogram;
use super::lineage::{Carried, Way};
use punctual_model::dataflow::Moment;
use punctual_model::{Duration, Instant};
use std::collections::VecDeque;
use std::rc::Rc;

/// Most instances of a source that may wait for a reaction at once; more are not followed.
const MOST_WAITING: usize = 1 << 14;

/// Latencies, and the first occurrence of the greatest.
#[derive(Debug, Default)]
pub struct Latencies {
    pub histogram: Histogram,
    pub worst: Option<Way>,
    pub series: Series,
}

/// Parts of the trace's span.
const PARTS: u64 = 240;

/// Least and greatest latencies by the part of the trace in which they ended.
#[derive(Debug, Default)]
pub struct Series {
    begin: Instant,
    /// Length of a part, at least 1 ns.
    length: u64,
    /// Count, least and greatest.
    parts: Vec<(u64, Duration, Duration)>,
}

impl Series {
    fn new(begin: Instant, end: Instant) -> Series {
        let length = end.since(begin).ns() / PARTS + 1;
        Series { begin, length, parts: Vec::new() }
    }

    #[inline]
    fn add(&mut self, at: Instant, latency: Duration) {
        let part = (at.since(self.begin).ns() / self.length.max(1)).min(PARTS) as usize;
        if self.parts.len() <= part {
            self.parts.resize(part + 1, (0, Duration::ZERO, Duration::ZERO));
        }
        let (count, least, greatest) = &mut self.parts[part];
        *least = if *count == 0 { latency } else { latency.min(*least) };
        *greatest = latency.max(*greatest);
        *count += 1;
    }

    pub fn finish(&self, begin: Instant) -> Vec<Moment> {
        let moment = |(part, (count, min_ns, max_ns)): (usize, &(u64, Duration, Duration))| Moment {
            from_ns: begin + Duration::from_ns(part as u64 * self.length),
            count: *count,
            min_ns: *min_ns,
            max_ns: *max_ns,
        };
        self.parts.iter().enumerate().filter(|(_, (count, ..))| *count > 0).map(moment).collect()
    }
}

impl Latencies {
    #[inline]
    fn add(&mut self, way: Way) {
        self.series.add(way.stop, way.latency());
        if self.histogram.add(way.latency()) {
            self.worst = Some(way);
        }
    }
}

/// The latency of one datum, end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndToEnd {
    /// Of which chain.
    pub chain: usize,
    /// Which latency.
    pub kind: EndToEndKind,
    /// The instance of the chain's first task.
    pub source: u64,
    /// When that was activated.
    pub from: Instant,
    /// The instance of the last task.
    pub sink: u64,
    /// When that ended.
    pub until: Instant,
}

/// What is measured from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndToEndKind {
    /// Reaction time.
    Reaction,
    /// Data age.
    Age,
}

/// A source's instance that waits for a reaction.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    pub instance: u64,
    pub activation: Instant,
}

/// State of one chain.
#[derive(Debug, Default)]
pub struct ChainState {
    pub reaction: Latencies,
    pub age: Latencies,
    /// In order of instances.
    waiting: VecDeque<Waiting>,
    /// The latest instance of the source whose datum the sink has read.
    reacted: Option<u64>,
    /// When an instance of the sink last read unknown data.
    unknown: Option<Instant>,
    pub sources: u64,
    pub overwritten: u64,
    pub overtaken: u64,
    pub lost: u64,
    pub incomplete: u64,
    pub sinks: u64,
    pub sinks_lost: u64,
    pub sinks_incomplete: u64,
    pub sinks_in_flight: u64,
    pub in_flight: u64,
}

impl ChainState {
    /// Nothing yet, of a trace with this span.
    pub fn new(begin: Instant, end: Instant) -> ChainState {
        let mut state = ChainState::default();
        (state.reaction.series, state.age.series) = (Series::new(begin, end), Series::new(begin, end));
        state
    }

    /// A source's instance puts its first datum on the chain.
    #[inline]
    pub fn put(&mut self, carried: &Carried) {
        self.sources += 1;
        if self.reacted.is_some_and(|reacted| reacted >= carried.source) {
            self.overtaken += 1;
        } else if self.waiting.len() == MOST_WAITING
            || self.unknown.is_some_and(|unknown| unknown >= carried.source_activation)
        {
            // An earlier datum of it may have been read.
            self.lost += 1;
        } else {
            let behind =
                self.waiting.iter().rev().take_while(|waiting| waiting.instance > carried.source).count();
            let waiting = Waiting { instance: carried.source, activation: carried.source_activation };
            self.waiting.insert(self.waiting.len() - behind, waiting);
        }
    }

    /// A source's instance puts a datum on the chain, but its activation is not in the trace.
    pub fn put_unknown(&mut self) {
        self.sources += 1;
        self.lost += 1;
    }

    /// An instance of the sink reads a datum. Whoever waited for this datum, or an earlier one, now waits for
    /// the end of that instance.
    #[inline]
    pub fn read(&mut self, carried: &Carried, each: &mut impl FnMut(Waiting)) {
        self.sinks += 1;
        while let Some(waiting) = self.waiting.front().filter(|waiting| waiting.instance <= carried.source) {
            each(*waiting);
            self.waiting.pop_front();
        }
        self.reacted = self.reacted.max(Some(carried.source));
    }

    /// An instance of the sink may have read anything.
    pub fn read_unknown(&mut self, at: Instant) {
        self.sinks += 1;
        self.sinks_lost += 1;
        self.forget_waiting(at);
    }

    /// Whoever waits may have had a reaction that is not followed.
    pub fn forget_waiting(&mut self, at: Instant) {
        self.unknown = Some(at);
        self.lost += std::mem::take(&mut self.waiting).len() as u64;
    }

    /// An instance of the sink has ended.
    #[inline]
    pub fn end(&mut self, sink: &Rc<Carried>, start: Instant, stop: Instant) {
        self.age.add(Way {
            source: sink.source,
            from: sink.source_activation,
            sink: Rc::clone(sink),
            start,
            stop,
        });
    }

    /// That instance was the reaction that a source's instance had waited for.
    #[inline]
    pub fn react(&mut self, waiting: Waiting, sink: &Rc<Carried>, start: Instant, stop: Instant) {
        self.overwritten += u64::from(waiting.instance != sink.source);
        self.reaction.add(Way {
            source: waiting.instance,
            from: waiting.activation,
            sink: Rc::clone(sink),
            start,
            stop,
        });
    }

    /// The trace ends.
    pub fn finish(&mut self) {
        self.in_flight += std::mem::take(&mut self.waiting).len() as u64;
    }
}
