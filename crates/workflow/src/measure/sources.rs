//! The interrupts of all processors, by source.

use super::names::Names;
use punctual_latency::{HORIZON, Occurrence, Tracker};
use punctual_model::Instant;
use punctual_model::latency::Interrupt;
use punctual_observe::latency::Event;
use std::collections::BTreeMap;

/// What is known of the interrupts of each processor.
pub struct Sources {
    processors: BTreeMap<u32, Processor>,
    count: u64,
}

#[derive(Default)]
struct Processor {
    sources: BTreeMap<u32, Source>,
    lost: u64,
}

struct Source {
    tracker: Tracker,
    /// When the longest one ended.
    longest_at: Instant,
}

impl Sources {
    /// None so far.
    pub fn new(cpus: &[u32]) -> Sources {
        Sources { processors: cpus.iter().map(|&cpu| (cpu, Processor::default())).collect(), count: 0 }
    }

    /// The next event of a processor.
    pub fn add(&mut self, cpu: u32, event: Event) {
        let processor = self.processors.entry(cpu).or_default();
        match event {
            Event::Interrupt(interrupt) => {
                self.count += 1;
                let new = || Source { tracker: Tracker::new(HORIZON), longest_at: Instant::default() };
                let source = processor.sources.entry(interrupt.source).or_insert_with(new);
                if interrupt.execution > source.tracker.curves().wcet() {
                    source.longest_at = interrupt.exit;
                }
                let (entry, exit, execution) = (interrupt.entry, interrupt.exit, interrupt.execution);
                source.tracker.add(Occurrence { entry, exit, execution });
            }
            Event::Lost(count) => {
                processor.lost += count;
                processor.gap();
            }
        }
    }

    /// Something was not seen on this processor: no window spans it.
    pub fn gap(&mut self, cpu: u32) {
        if let Some(processor) = self.processors.get_mut(&cpu) {
            processor.gap();
        }
    }

    /// How many interrupts there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many records were lost on all processors.
    pub fn lost(&self) -> u64 {
        self.processors.values().map(|processor| processor.lost).sum()
    }

    /// How many records were lost on one.
    pub fn lost_on(&self, cpu: u32) -> u64 {
        self.processors.get(&cpu).map_or(0, |processor| processor.lost)
    }

    /// What was seen on a processor, by source.
    pub fn interrupts(&self, cpu: u32, names: &Names, at_least: bool) -> Vec<Interrupt> {
        let Some(processor) = self.processors.get(&cpu) else { return Vec::new() };
        let interrupt = |(&number, source): (&u32, &Source)| Interrupt {
            source: names.source(number),
            at_least: at_least || processor.lost > 0,
            longest_at_ns: Some(source.longest_at),
            curves: source.tracker.curves().clone(),
        };
        let mut interrupts: Vec<Interrupt> = processor.sources.iter().map(interrupt).collect();
        interrupts.sort_by(|one, other| one.source.cmp(&other.source));
        interrupts
    }
}

impl Processor {
    fn gap(&mut self) {
        self.sources.values_mut().for_each(|source| source.tracker.gap());
    }
}
