//! Job streams of every kind.

pub mod accuracy;
pub mod lime;
pub mod mixed;
pub mod noise;
pub mod records;
pub mod release;
pub mod simulated;
pub mod streams;

use proptest::prelude::*;
use punctual_extract::stream::{Circumstances, Options, Stream};
use punctual_model::{Duration, Instant, Job, RecordedJob, Release, Segment, Window};
pub use release::{exact, window};

/// A job in a test.
#[derive(Clone, Debug)]
pub struct Seen {
    pub release: Release,
    pub back_to_back: bool,
    pub cost: u64,
    /// Time asleep and processor time of all segments after the first.
    pub sleeps: Vec<(u64, u64)>,
}

impl Seen {
    pub fn at(ns: u64) -> Seen {
        Seen { release: exact(ns), back_to_back: false, cost: 1_000, sleeps: Vec::new() }
    }

    pub fn recorded(&self) -> RecordedJob {
        let first = Segment { suspended: Duration::ZERO, cost: Duration::from_ns(self.cost) };
        let rest = self.sleeps.iter().map(|&(suspended, cost)| Segment {
            suspended: Duration::from_ns(suspended),
            cost: Duration::from_ns(cost),
        });
        let segments: Vec<Segment> = std::iter::once(first).chain(rest).collect();
        let cost = segments.iter().fold(Duration::ZERO, |sum, segment| sum + segment.cost);
        let suspended = segments.iter().fold(Duration::ZERO, |sum, segment| sum + segment.suspended);
        let start = self.release.window.latest();
        (Job { release: self.release, start, end: start + cost + suspended, cost, suspended }, segments)
    }
}

/// The stream of these jobs.
pub fn stream(options: &Options, jobs: &[Seen]) -> Stream {
    let mut stream = Stream::new(options);
    for seen in jobs {
        let (job, segments) = seen.recorded();
        stream.release(
            &seen.release,
            Circumstances { back_to_back: seen.back_to_back, ..Circumstances::default() },
        );
        stream.complete(&job, &segments);
    }
    stream
}

pub fn releases(jobs: &[Seen]) -> Vec<Release> {
    jobs.iter().map(|seen| seen.release).collect()
}

/// Streams that are random, bursty, periodic with noise, back to back, suspended, and adversarial.
pub fn jobs(most: usize) -> impl Strategy<Value = Vec<Seen>> {
    let gap = prop_oneof![
        4 => Just(Gap::Periodic),
        2 => (0_u64..5_000_000).prop_map(Gap::After),
        2 => Just(Gap::After(0)),
        1 => (0_u64..55).prop_map(|power| Gap::After(1 << power)),
    ];
    let job =
        (gap, 0_u64..200_000, 0_u8..20, costs(), prop::collection::vec((costs(), costs()), 0..20), 0_u8..4);
    let kind = prop_oneof![Just(Kind::Exact), Just(Kind::Windows), Just(Kind::Arrivals), Just(Kind::Mixed)];
    (kind, 1_000_u64..10_000_000, 0_u64..1 << 40, prop::collection::vec(job, 0..most)).prop_map(
        |(kind, period, begin, jobs)| {
            let mut now = begin;
            let mut before = begin;
            let mut seen = Vec::new();
            for (index, (gap, late, choice, cost, sleeps, suspends)) in jobs.into_iter().enumerate() {
                let due = match gap {
                    Gap::Periodic => (begin + index as u64 * period).max(now),
                    Gap::After(gap) => now + gap,
                };
                let at = due + if choice == 0 { late * 40 } else { late / 10 };
                let (release, back_to_back) = match kind {
                    Kind::Exact => (exact(at), false),
                    Kind::Arrivals => (arrival(due, at), false),
                    Kind::Windows | Kind::Mixed if choice < 5 => (window(before, at), choice < 3),
                    Kind::Mixed if choice < 10 => (arrival(due, at), false),
                    Kind::Mixed if choice == 10 => (arrival(at + late, at), false),
                    _ => (exact(at), false),
                };
                before = release.window.earliest().ns();
                now = at;
                let sleeps = if suspends == 0 { sleeps } else { Vec::new() };
                seen.push(Seen { release, back_to_back, cost, sleeps });
            }
            seen
        },
    )
}

#[derive(Clone, Copy, Debug)]
enum Gap {
    Periodic,
    After(u64),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Exact,
    Windows,
    Arrivals,
    Mixed,
}

fn costs() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0_u64..2_000_000, 1 => Just(0), 1 => 0_u64..1 << 50]
}

fn arrival(due: u64, at: u64) -> Release {
    Release { arrival: Some(Instant::from_ns(due)), window: Window::at(Instant::from_ns(at)) }
}
