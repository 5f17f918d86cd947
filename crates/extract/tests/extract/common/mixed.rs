//! Simulated streams of several rates, bursts, and rates that change; and of one rate, or none.

use super::release::exact;
use punctual_model::{Arrival, Release};
use punctual_test_support::Random;

const MS: u64 = 1_000_000;

/// When the first activation may come.
const BEGIN: u64 = 1_000 * MS;

/// A stream, and its correct model.
pub struct Mixed {
    pub releases: Vec<Release>,
    /// The periods of each mode, ascending. Empty if one period describes the stream, or none does.
    pub modes: Vec<Vec<u64>>,
    /// The jobs of a burst.
    pub jobs: Option<u64>,
    pub about: String,
}

impl Mixed {
    /// Whether this names the modes.
    pub fn is_named_by(&self, arrival: &Arrival) -> bool {
        let burst = arrival.modes.first().and_then(|mode| mode.sources.first()?.burst);
        periods(arrival) == self.modes && burst.map(|it| it.jobs) == self.jobs
    }
}

/// The periods of each mode, in order.
pub fn periods(arrival: &Arrival) -> Vec<Vec<u64>> {
    let of = |mode: &punctual_model::Mode| {
        let mut periods: Vec<u64> = mode.sources.iter().map(|source| source.period_ns.ns()).collect();
        periods.sort_unstable();
        periods
    };
    arrival.modes.iter().map(of).collect()
}

/// Instants in nanoseconds, in order.
pub fn releases(mut times: Vec<u64>) -> Vec<Release> {
    times.sort_unstable();
    // Whoever is released twice within some microseconds notices once.
    times.dedup_by(|later, earlier| *later - *earlier < 20_000);
    times.into_iter().map(exact).collect()
}

/// A source: releases up to `share` of the period late.
struct Source {
    offset: u64,
    period: u64,
    share: f64,
}

impl Source {
    fn times(&self, random: &mut Random, from: u64, until: u64) -> Vec<u64> {
        let mut times = Vec::new();
        let mut due = from + self.offset;
        while due < until {
            times.push(due + (self.share * self.period as f64 * random.unit()) as u64);
            due += self.period;
        }
        times
    }
}

/// A period of 1 ms to 1 s, rounded as people do.
fn period(random: &mut Random, least: f64, most: f64) -> u64 {
    let drawn = random.log_uniform(least, most) as u64;
    let grain = if random.below(2) == 0 { MS } else { 100_000 };
    (drawn / grain).max(1) * grain
}

/// Two or three periods, of a ratio of at most 20, no two alike.
pub fn mix(random: &mut Random) -> Vec<u64> {
    loop {
        let first = period(random, 1e6, 5e7);
        let more = 1 + random.below(2);
        let mut all = vec![first];
        all.extend((0..more).map(|_| period(random, first as f64, (20 * first) as f64)));
        all.sort_unstable();
        let apart = |pair: &[u64]| pair[1] as f64 > 1.05 * pair[0] as f64;
        if all.windows(2).all(apart) {
            return all;
        }
    }
}

/// Releases of sources with these periods, in any phase.
pub fn superposed(periods: &[u64], share: f64, releases_wanted: u64, random: &mut Random) -> Vec<Release> {
    let rate: f64 = periods.iter().map(|period| 1.0 / *period as f64).sum();
    let until = BEGIN + (releases_wanted as f64 / rate) as u64;
    let times = periods.iter().flat_map(|&period| {
        let source = Source { offset: random.below(period), period, share };
        source.times(random, BEGIN, until)
    });
    releases(times.collect())
}

/// Two or three rates.
pub fn several_rates(random: &mut Random) -> Mixed {
    let wanted = mix(random);
    let share = 0.05 * random.unit();
    let releases = superposed(&wanted, share, 1_500, random);
    Mixed { releases, about: format!("{wanted:?} {share:.3}"), modes: vec![wanted], jobs: None }
}

/// One rate, then another.
pub fn change_of_rate(random: &mut Random) -> Mixed {
    let (first, share) = (period(random, 1e6, 1e8), 0.05 * random.unit());
    let second = loop {
        let other = period(random, first as f64 / 4.0, first as f64 * 4.0);
        if (other as f64 / first as f64).ln().abs() > 0.1 {
            break other;
        }
    };
    let change = BEGIN + first * (100 + random.below(600));
    let mut times = Source { offset: 0, period: first, share }.times(random, BEGIN, change);
    let until = change + second * (100 + random.below(600));
    let source = Source { offset: random.below(second), period: second, share };
    times.extend(source.times(random, change, until));
    Mixed {
        releases: releases(times),
        modes: vec![vec![first], vec![second]],
        jobs: None,
        about: format!("{first} {second} {share:.3}"),
    }
}

/// Several jobs in a row, periodically.
pub fn bursts(random: &mut Random) -> Mixed {
    let (period, jobs) = (period(random, 5e6, 2e8), 2 + random.below(7));
    let apart = period / (jobs * (5 + random.below(20)));
    let share = 0.05 * random.unit();
    let begins = Source { offset: 0, period, share }.times(random, BEGIN, BEGIN + 300 * period);
    let jobs_of = |begin: u64| (0..jobs).map(move |job| begin + job * apart);
    Mixed {
        releases: releases(begins.into_iter().flat_map(jobs_of).collect()),
        modes: vec![vec![period]],
        jobs: Some(jobs),
        about: format!("{jobs} in {period}, {apart} apart, {share:.3}"),
    }
}

/// One rate, with skips, and with delays that the machine causes.
pub fn one_rate(random: &mut Random) -> Mixed {
    let (period, share) = (period(random, 1e6, 1e8), 0.05 * random.unit());
    let until = BEGIN + period * (100 + random.below(900));
    let skips = random.below(4);
    let mut times = Source { offset: 0, period, share }.times(random, BEGIN, until);
    times.retain(|_| skips == 0 || random.below(20) >= skips);
    // The machine delays some, and those after them.
    let one_in = [0, 300, 100, 40][random.below(4) as usize];
    let mut delayed = 0;
    for at in 1..times.len() {
        if one_in > 0 && random.below(one_in) == 0 {
            delayed = 1 + random.below(4);
        }
        if delayed > 0 {
            times[at] += random.below(period);
            delayed -= 1;
        }
        times[at] = times[at].max(times[at - 1] + 30_000);
    }
    let about = format!("{period} {share:.3} skips {skips} delays {one_in}");
    Mixed { releases: releases(times), modes: Vec::new(), jobs: None, about }
}

/// Random releases: exponential or uniform distances, or the work of a chain.
pub fn no_rate(random: &mut Random, case: u64) -> Mixed {
    let (mean, count) = (period(random, 1e6, 1e8) as f64, 20 + random.below(1_500));
    let mut at = BEGIN;
    let times = (0..count).map(|_| {
        at += match case % 3 {
            0 => (mean * random.exponential()) as u64,
            1 => (mean * (0.5 + random.unit())) as u64,
            // Each job of a chain takes one of three times, or nearly.
            _ => (mean * (0.2 + 0.3 * random.below(3) as f64 + 0.2 * random.unit())) as u64,
        };
        at
    });
    let releases = releases(times.collect());
    let about = format!("{case}, {mean}, {count}");
    Mixed { releases, modes: Vec::new(), jobs: None, about }
}
