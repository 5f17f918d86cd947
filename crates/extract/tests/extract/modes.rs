//! Streams of several rates, bursts, and rates that change: simulated with seeds of their own, which no
//! constant was chosen by.

use crate::common::accuracy::{ROWS, summary};
use crate::common::release::exact;
use proptest::prelude::*;
use punctual_extract::stream::{Circumstances, Options, Stream};
use punctual_model::check::modes;
use punctual_model::{Arrival, Release, Separator};
use punctual_test_support::Random;

const MS: u64 = 1_000_000;

/// Of the traces with one period.
const SERIES: u64 = 78;

/// Instants in nanoseconds, in order.
fn releases(mut times: Vec<u64>) -> Vec<Release> {
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

fn summed(releases: &[Release]) -> Stream {
    let mut stream = Stream::new(&Options::default());
    releases.iter().for_each(|release| stream.release(release, Circumstances::default()));
    stream
}

fn arrival(releases: &[Release]) -> Arrival {
    let found = summed(releases).to_model(Separator::SUSPENSION).arrival;
    let violations = modes(&found.modes, releases);
    assert!(violations.is_empty(), "{}: {:?}", violations[0], found.modes);
    found
}

/// The periods of each mode, in order.
fn periods(arrival: &Arrival) -> Vec<Vec<u64>> {
    let of = |mode: &punctual_model::Mode| {
        let mut periods: Vec<u64> = mode.sources.iter().map(|source| source.period_ns.ns()).collect();
        periods.sort_unstable();
        periods
    };
    arrival.modes.iter().map(of).collect()
}

/// A period of 1 ms to 1 s, rounded as people do.
fn period(random: &mut Random, least: f64, most: f64) -> u64 {
    let drawn = random.log_uniform(least, most) as u64;
    let grain = if random.below(2) == 0 { MS } else { 100_000 };
    (drawn / grain).max(1) * grain
}

/// Two or three periods, of a ratio of at most 20, no two alike.
fn mix(random: &mut Random) -> Vec<u64> {
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

fn superposed(periods: &[u64], share: f64, releases_wanted: u64, random: &mut Random) -> Vec<Release> {
    let rate: f64 = periods.iter().map(|period| 1.0 / *period as f64).sum();
    let until = 1_000 * MS + (releases_wanted as f64 / rate) as u64;
    let times = periods.iter().flat_map(|&period| {
        let source = Source { offset: random.below(period), period, share };
        source.times(random, 1_000 * MS, until)
    });
    releases(times.collect())
}

#[test]
fn rates_are_told_apart() {
    let mut random = Random(102_947_001);
    let mut found = 0;
    for _ in 0..200 {
        let wanted = mix(&mut random);
        let share = 0.05 * random.unit();
        let releases = superposed(&wanted, share, 1_500, &mut random);
        let arrival = arrival(&releases);
        if periods(&arrival) == [wanted.clone()] {
            found += 1;
        } else {
            println!(
                "{wanted:?} {share:.3}: {:?} {:?}",
                periods(&arrival),
                arrival.periodic.map(|it| it.period_ns)
            );
        }
    }
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn modes_are_found_and_none_is_invented() {
    let mut random = Random(102_947_002);
    let (mut found, mut invented) = (0, 0);
    for _ in 0..200 {
        let (first, share) = (period(&mut random, 1e6, 1e8), 0.05 * random.unit());
        let second = loop {
            let other = period(&mut random, first as f64 / 4.0, first as f64 * 4.0);
            if (other as f64 / first as f64).ln().abs() > 0.1 {
                break other;
            }
        };
        let change = 1_000 * MS + first * (100 + random.below(600));
        let mut times = Source { offset: 0, period: first, share }.times(&mut random, 1_000 * MS, change);
        let until = change + second * (100 + random.below(600));
        times.extend(Source { offset: random.below(second), period: second, share }.times(
            &mut random,
            change,
            until,
        ));
        let arrival = arrival(&releases(times));
        if periods(&arrival) == [vec![first], vec![second]] {
            found += 1;
        } else {
            println!("{first} {second} {share:.3}: {:?}", periods(&arrival));
        }
    }
    for _ in 0..1_000 {
        let (period, share) = (period(&mut random, 1e6, 1e8), 0.05 * random.unit());
        let until = 1_000 * MS + period * (100 + random.below(900));
        let skips = random.below(4);
        let mut times = Source { offset: 0, period, share }.times(&mut random, 1_000 * MS, until);
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
        let arrival = arrival(&releases(times));
        if !arrival.modes.is_empty() {
            invented += 1;
            println!("{period} {share:.3} skips {skips} delays {one_in}: {:?}", periods(&arrival));
        }
    }
    assert!(found >= 190 && invented == 0, "{found} of 200, {invented} of 1,000 invented");
}

#[test]
fn bursts_are_found() {
    let mut random = Random(102_947_003);
    let mut found = 0;
    for _ in 0..200 {
        let (period, jobs) = (period(&mut random, 5e6, 2e8), 2 + random.below(7));
        let apart = period / (jobs * (5 + random.below(20)));
        let share = 0.05 * random.unit();
        let bursts =
            Source { offset: 0, period, share }.times(&mut random, 1_000 * MS, 1_000 * MS + 300 * period);
        let jobs_of = |begin: u64| (0..jobs).map(move |job| begin + job * apart);
        let arrival = arrival(&releases(bursts.into_iter().flat_map(jobs_of).collect()));
        let burst = arrival.modes.first().and_then(|mode| mode.sources.first()?.burst);
        if periods(&arrival) == [vec![period]] && burst.map(|it| it.jobs) == Some(jobs) {
            found += 1;
        } else {
            println!("{jobs} in {period}, {apart} apart, {share:.3}: {:?} {burst:?}", periods(&arrival));
        }
    }
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn random_releases_have_no_modes() {
    let mut random = Random(102_947_004);
    let mut invented = 0;
    for case in 0..1_000 {
        let (mean, count) = (period(&mut random, 1e6, 1e8) as f64, 20 + random.below(1_500));
        let mut at = 1_000 * MS;
        let times = (0..count).map(|_| {
            at += match case % 3 {
                0 => (mean * random.exponential()) as u64,
                1 => (mean * (0.5 + random.unit())) as u64,
                // Each job of a chain takes one of three times, or nearly.
                _ => (mean * (0.2 + 0.3 * random.below(3) as f64 + 0.2 * random.unit())) as u64,
            };
            at
        });
        let arrival = arrival(&releases(times.collect()));
        if !arrival.modes.is_empty() {
            invented += 1;
            println!("{case}, {mean}, {count}: {:?}", periods(&arrival));
        }
    }
    assert!(invented == 0, "{invented} of 1,000");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    /// Wherever the pieces are cut.
    #[test]
    fn pieces_have_the_modes_of_the_whole(
        seed in any::<u64>(),
        kind in 0..4,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let mut random = Random(seed);
        let mixed = mix(&mut random);
        let mut all = superposed(&mixed, 0.03, 700, &mut random);
        if kind > 0 {
            let end = all[all.len() - 1].window.latest().ns();
            let (offset, period) = (random.below(5 * MS), mixed[0]);
            let until = end + 300 * period;
            let more = Source { offset, period, share: 0.02 }.times(&mut random, end + MS, until);
            all.extend(releases(more));
        }
        if kind == 2 {
            all.retain(|_| random.below(10) > 0);
        }
        if kind == 3 {
            let mut at = all[all.len() - 1].window.latest().ns();
            all.extend((0..random.below(400)).map(|_| {
                at += 1 + (3e6 * random.exponential()) as u64;
                exact(at)
            }));
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for until in cuts.into_iter().chain([all.len()]) {
            pieces.push(summed(&all[from..until]));
            from = until;
        }
        // From the left, and from the right.
        let left = pieces.iter().skip(1).fold(pieces[0].clone(), |mut sum, piece| {
            sum.merge(piece);
            sum
        });
        let right = pieces.iter().rev().skip(1).fold(pieces[pieces.len() - 1].clone(), |sum, piece| {
            let mut piece = piece.clone();
            piece.merge(&sum);
            piece
        });
        let whole = summed(&all).to_model(Separator::SUSPENSION);
        prop_assert_eq!(&left.to_model(Separator::SUSPENSION).arrival, &whole.arrival);
        prop_assert_eq!(&right.to_model(Separator::SUSPENSION).arrival, &whole.arrival);
    }
}

/// Of the traces by which periods are judged, with skips, stalls, backlogs, windows and heavy lateness, none
/// with one period has modes, and all keep their period.
#[test]
fn one_period_with_noise_has_no_modes() {
    for row in ROWS {
        for case in 0..(row.traces / 6).min(30) {
            let trace = row.trace_of(SERIES, case);
            let releases = trace.releases();
            let arrival = arrival(&releases);
            if trace.period.is_some() {
                assert_eq!(periods(&arrival), Vec::<Vec<u64>>::new(), "{}: {case}", row.name);
                assert_eq!(arrival.periodic, summary(&releases).model(), "{}: {case}", row.name);
            }
        }
    }
}
