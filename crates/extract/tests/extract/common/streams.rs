//! Streams of releases with everything that makes periods hard to find.

use super::noise::Random;
use punctual_extract::periodic::PeriodicSummary;
use punctual_model::{Disturbance, Instant, Release, Window};

/// A release and its circumstances.
pub struct Known {
    pub earliest: u64,
    pub latest: u64,
    pub arrival: Option<u64>,
    pub advance: u64,
    pub disturbance: Option<Disturbance>,
}

/// A stream with some of: skips, extra releases, stalls, drift, windows, known arrivals, counted expirations.
pub fn stream(seed: u64) -> Vec<Known> {
    let mut random = Random(seed);
    let period = 1_000_000 + random.below(20_000_000);
    let releases = [3, 5, 12, 15, 16, 17, 40, 300, 1_200, 3_000][random.below(10) as usize];
    let noise = [0, 20, 20_000, period / 20, period / 2, 2 * period][random.below(6) as usize];
    let [skips, extras, stalls, early] = [(); 4].map(|()| [0, 0, 1, 4, 60][random.below(5) as usize]);
    let [windows, arrivals, counts, ends] = [(); 4].map(|()| random.below(4) == 0);
    let (base, drifts) = (random.below(1 << 50), random.below(5) == 0);
    let one_of = |random: &mut Random, many: u64| many > 0 && random.below(releases) < many;
    let (mut k, mut before, mut busy, mut drift, mut opened) = (0, base, 0, 0, base);
    let mut known = Vec::new();
    for job in 0..releases {
        let advance =
            if job > 5 && one_of(&mut random, skips) { 2 + random.below(3) } else { u64::from(job > 0) };
        k += advance;
        let due = base + drift + k * period;
        let late = if noise > 0 { random.below(noise).min(random.below(noise)) } else { 0 };
        if one_of(&mut random, stalls) {
            busy = due + random.below(9 * period);
        }
        let mut latest = (due + late).max(busy).max(before + 1);
        let is_early = one_of(&mut random, early) && latest - before > period / 2;
        if is_early {
            latest -= period / 3;
        }
        if drifts {
            drift += latest.saturating_sub(due);
        }
        let earliest = if windows && random.below(3) > 0 {
            let most = if random.below(40) == 0 { 9 * period } else { period / 4 };
            opened.max(latest.saturating_sub(random.below(most)))
        } else {
            latest
        };
        opened = earliest;
        let arrival = (arrivals && random.below(50) > 0).then_some(due);
        let advance = if counts { advance.max(1) } else { 1 };
        let disturbance = if ends && job + 1 == releases {
            Some(Disturbance::Ending)
        } else {
            (is_early && job % 2 == 0).then_some(Disturbance::Signal)
        };
        known.push(Known { earliest, latest, arrival, advance, disturbance });
        before = latest;
        if one_of(&mut random, extras) {
            before += period / 3;
            known.push(Known {
                earliest: before,
                latest: before,
                arrival: None,
                advance: 1,
                disturbance: None,
            });
        }
    }
    known
}

impl Known {
    pub fn release(&self) -> Release {
        let window = Window::new(Instant::from_ns(self.earliest), Instant::from_ns(self.latest)).unwrap();
        Release { arrival: self.arrival.map(Instant::from_ns), window }
    }
}

pub fn summary(stream: &[Known]) -> PeriodicSummary {
    let mut summary = PeriodicSummary::new();
    for known in stream {
        summary.push_with(&known.release(), known.advance, known.disturbance);
    }
    summary
}
