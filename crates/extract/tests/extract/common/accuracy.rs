//! The rows of the accuracy table: how often periods and slips are found, and how each trace is judged.
//!
//! `tests/extract/accuracy.rs` tries some traces of every row, `make bench-accuracy` all.

use super::lime;
use super::noise::{Lateness, Random};
use super::simulated::{Periods, Simulated, lateness, whole};
use punctual_extract::periodic::PeriodicSummary;
use punctual_model::{Fraction, Periodic, PeriodicOn, Release};
use std::ops::AddAssign;

/// A kind of trace.
pub struct Row {
    pub name: &'static str,
    pub traces: u64,
    /// Traces whose period and slips must be right; for sporadic streams, traces without a claimed slip.
    pub target: u64,
    make: Make,
    /// Rows with the same seed start from the same traces.
    seed: u64,
}

/// How far the least lateness wanders, in nanoseconds.
const WANDER: u64 = 8_000;

/// Makes one trace of a row.
type Make = fn(u64, &mut Random) -> Simulated;

const fn row(seed: u64, name: &'static str, traces: u64, target: u64, make: Make) -> Row {
    Row { name, traces, target, make, seed }
}

/// The accuracy table.
pub const ROWS: &[Row] = &[
    row(1, "periodic, exact releases", 1_120, 1_119, plain),
    row(1, "the same, every release a window", 1_120, 1_119, hidden),
    row(2, "ns periods, exponential lateness", 150, 147, exponential),
    row(3, "the same, 0.5 % of the releases windows", 150, 147, some_hidden),
    row(4, "half-normal lateness with spikes", 150, 149, half_normal),
    row(5, "gamma lateness", 150, 130, gamma),
    row(6, "one activation skipped", 60, 60, |_, random| skipping(1, random)),
    row(7, "two activations skipped", 60, 60, |_, random| skipping(2, random)),
    row(8, "five activations skipped", 60, 60, |_, random| skipping(5, random)),
    row(9, "twenty activations skipped", 60, 60, |_, random| skipping(20, random)),
    row(10, "one activation too many", 60, 60, |_, random| repeating(1, random)),
    row(11, "two skipped, two too many", 60, 60, skipping_and_repeating),
    row(12, "several skipped at once, windows", 60, 60, skipping_hidden),
    row(13, "known arrivals, twenty skipped anywhere", 60, 60, skipping_known),
    row(14, "up to 20 stalls of up to 12 periods", 144, 144, |_, random| stalling(&GRAINS[1..], 0, random)),
    row(15, "the same, two activations skipped", 144, 144, |_, random| stalling(&GRAINS[1..], 2, random)),
    row(20, "the same two, ns periods", 72, 70, stalling_ns),
    row(21, "30 to 40 stalls in which activations merge", 60, 60, merging),
    row(23, "15 to 20 such stalls among 1,000 releases", 60, 60, merging_often),
    row(16, "SIGSTOP: one early, 150 ms to catch up", 60, 58, stopped),
    row(17, "60 Hz, 30 Hz, 144 Hz", 60, 60, frequencies),
    row(18, "44.1 kHz / 128, 3,000 to 60,000 releases", 20, 20, sampling_rate),
    row(24, "44.1 and 48 kHz / 2^i, wandering lateness", 120, 105, wandering_buffers),
    row(25, "ms and µs periods, wandering lateness", 120, 115, wandering_rounded),
    row(19, "sporadic: slips claimed for none", 1_000, 985, sporadic),
    row(22, "drifting sleeps with stalls: the same", 60, 60, drifting),
];

/// The rows about periods in nanoseconds with noise of microseconds, and their joint goal: 97 %.
#[allow(dead_code, reason = "the table alone shows it")]
pub const NS_PERIODS: (std::ops::Range<usize>, u64) = (2..6, 582);

impl Row {
    /// A trace of the table.
    pub fn trace(&self, case: u64) -> Simulated {
        self.trace_of(0, case)
    }

    /// One of another series: the same with another seed.
    pub fn trace_of(&self, series: u64, case: u64) -> Simulated {
        // Seeds far apart, in case the generator mixes neighbouring ones badly.
        let mut random = Random(series << 48 | self.seed << 32 | case);
        (self.make)(case, &mut random)
    }
}

/// Shapes that come close to zero.
const SHAPES: [Lateness; 2] = [Lateness::Exponential, Lateness::HalfNormalWithSpikes];

/// Periods as in LiME's evaluation, on a machine as prompt as the one there.
fn plain(case: u64, random: &mut Random) -> Simulated {
    let periods = Periods::ALL[case as usize % 4];
    let period = periods.draw(random);
    // Only some thousand releases tell one nanosecond from another.
    let fewest = if periods == Periods::Nanoseconds { 2_000.0 } else { 100.0 };
    let count = random.log_uniform(fewest, 60_000.0) as u64;
    let shape = random.one_of(&SHAPES);
    let divisor = 4 + random.below(5);
    Simulated::periodic(whole(period), lateness(shape, divisor, count, random))
}

fn hidden(case: u64, random: &mut Random) -> Simulated {
    let mut trace = plain(case, random);
    let period = trace.period.map_or(0, |period| period.numerator) as f64;
    let other = random.log_uniform(period / 10.0, period * 3.0) as i64;
    trace.hide(other, random.below(1_000_000_000) as i64);
    trace
}

/// Ten minutes of a task with a period in whole nanoseconds.
fn noisy(shape: Lateness, random: &mut Random) -> Simulated {
    let period = Periods::Nanoseconds.draw(random);
    let count = (600_000_000_000 / period).min(60_000);
    Simulated::periodic(whole(period), lateness(shape, 1, count, random))
}

fn exponential(_: u64, random: &mut Random) -> Simulated {
    noisy(Lateness::Exponential, random)
}

fn half_normal(_: u64, random: &mut Random) -> Simulated {
    noisy(Lateness::HalfNormalWithSpikes, random)
}

fn gamma(_: u64, random: &mut Random) -> Simulated {
    noisy(Lateness::Gamma, random)
}

fn some_hidden(_: u64, random: &mut Random) -> Simulated {
    let mut trace = noisy(Lateness::Exponential, random);
    for place in 0..trace.len() {
        if random.below(200) == 0 {
            trace.hide_one(place);
        }
    }
    trace
}

/// Some thousand releases of a task with a period of this grain, up to 50 ms.
fn some_thousand(grain: u64, random: &mut Random) -> Simulated {
    let period = random.log_uniform(1e6, 50e6) as u64 / grain * grain;
    let shape = random.one_of(&SHAPES);
    let count = 4_000 + random.below(5_000);
    Simulated::periodic(whole(period), lateness(shape, 1, count, random))
}

/// Distance from the next slip, and from the ends, that tells a slip from a late release.
const APART: usize = 30;

const GRAINS: [u64; 3] = [1, 1_000, 1_000_000];

fn of_any_grain(random: &mut Random) -> Simulated {
    let grain = random.one_of(&GRAINS);
    some_thousand(grain, random)
}

fn skipping(slips: usize, random: &mut Random) -> Simulated {
    let grain = random.one_of(&GRAINS);
    skipping_of(grain, slips, random)
}

fn skipping_of(grain: u64, slips: usize, random: &mut Random) -> Simulated {
    let mut trace = some_thousand(grain, random);
    for place in trace.places(slips, APART, random) {
        trace.skip(place, 1);
    }
    trace
}

fn repeating(extra: usize, random: &mut Random) -> Simulated {
    let mut trace = of_any_grain(random);
    // From the end, so that earlier places stay valid.
    for place in trace.places(extra, APART, random).into_iter().rev() {
        trace.repeat(place);
    }
    trace
}

fn skipping_and_repeating(_: u64, random: &mut Random) -> Simulated {
    let mut trace = of_any_grain(random);
    let places = trace.places(4, APART, random);
    let first_skips = random.below(2) == 0;
    for (number, place) in places.into_iter().enumerate().rev() {
        if (number % 2 == 0) == first_skips { trace.skip(place, 1) } else { trace.repeat(place) }
    }
    trace
}

fn skipping_hidden(_: u64, random: &mut Random) -> Simulated {
    let mut trace = of_any_grain(random);
    for place in trace.places(3, APART, random) {
        trace.skip(place, 1 + random.below(4));
    }
    let period = trace.period.map_or(0, |period| period.numerator) as f64;
    trace.hide(random.log_uniform(period / 10.0, period * 3.0) as i64, random.below(1_000_000_000) as i64);
    trace
}

fn skipping_known(_: u64, random: &mut Random) -> Simulated {
    let mut trace = of_any_grain(random);
    for _ in 0..20 {
        let place = 1 + random.below(trace.len() as u64 - 1) as usize;
        trace.skip(place, 1 + random.below(3));
    }
    trace.arrivals_known = true;
    trace
}

/// With great lateness, few releases tell nanoseconds apart.
fn stalling(grains: &[u64], slips: usize, random: &mut Random) -> Simulated {
    let grain = random.one_of(grains);
    let mut trace = skipping_of(grain, slips, random);
    let period = trace.period.map_or(0, |period| period.numerator);
    let stalls = 1 + random.below(20) as usize;
    for place in trace.places(stalls, APART, random) {
        trace.stall(place, random.below(12 * period) as i64);
    }
    trace
}

fn stalling_ns(case: u64, random: &mut Random) -> Simulated {
    stalling(&GRAINS[..1], case as usize % 2 * 2, random)
}

/// What waits for an event that keeps no count: a semaphore, a condition variable, a signal.
fn merging(_: u64, random: &mut Random) -> Simulated {
    let (count, stalls) = (4_000 + random.below(5_000), 30 + random.below(11));
    merging_in(count, stalls, random)
}

/// Several of the few releases are late by nearly a period, and look early.
fn merging_often(_: u64, random: &mut Random) -> Simulated {
    let (count, stalls) = (900 + random.below(300), 15 + random.below(6));
    merging_in(count, stalls, random)
}

fn merging_in(count: u64, stalls: u64, random: &mut Random) -> Simulated {
    let period = random.log_uniform(1e6, 50e6) as u64 / 10_000 * 10_000;
    let late = |random: &mut Random| {
        let preempted = if random.below(10) == 0 { random.below(period * 2 / 5) } else { 0 };
        30_000 + Lateness::Exponential.ns(random) + preempted
    };
    let late: Vec<u64> = (0..count).map(|_| late(random)).collect();
    let mut trace = Simulated::periodic(whole(period), late);
    // From the end, so that earlier places stay valid.
    for (number, place) in trace.places(stalls as usize, APART, random).into_iter().enumerate().rev() {
        // Some end shortly before the next activation: does the release belong to that one?
        let ns = if number % 4 == 0 {
            period * (1 + random.below(3)) - random.below(period / 10)
        } else {
            random.below(3 * period)
        };
        trace.merge(place, ns as i64);
    }
    trace
}

fn stopped(_: u64, random: &mut Random) -> Simulated {
    let period = random.one_of(&[2_000_000, 5_000_000, 10_000_000, 20_000_000, 7_500_000, 3_141_000]);
    let count = 2_000 + random.below(6_000);
    let mut trace = Simulated::periodic(whole(period), lateness(Lateness::Exponential, 1, count, random));
    let place = 500 + random.below(count - 1_000) as usize;
    trace.stop(place, (period / 10 + random.below(period * 8 / 10)) as i64, 150_000_000);
    trace
}

fn frequency((numerator, denominator): (u64, u64), random: &mut Random) -> Simulated {
    let count = random.log_uniform(3_000.0, 60_000.0) as u64;
    let shape = random.one_of(&SHAPES);
    Simulated::periodic(Fraction { numerator, denominator }, lateness(shape, 1, count, random))
}

fn frequencies(case: u64, random: &mut Random) -> Simulated {
    let periods = [(50_000_000, 3), (100_000_000, 3), (62_500_000, 9)];
    frequency(periods[case as usize % 3], random)
}

fn sampling_rate(_: u64, random: &mut Random) -> Simulated {
    frequency((1_280_000_000, 441), random)
}

/// Buffers of a sound card, on a machine whose least lateness wanders by some microseconds as it gets busy.
fn wandering_buffers(_: u64, random: &mut Random) -> Simulated {
    let (rate, length) = (random.one_of(&[441, 480]), 1_u64 << (5 + random.below(7)));
    // 480 and the length share five factors of two, and with the nanoseconds of a second one of five.
    let shared = if rate == 480 { 160 } else { 1 };
    let period = Fraction { numerator: length * 10_000_000 / shared, denominator: rate / shared };
    let count = random.log_uniform(3_000.0, 20_000.0) as u64;
    wandering(period, count, random)
}

/// Periods of at most six digits, on such a machine.
fn wandering_rounded(case: u64, random: &mut Random) -> Simulated {
    let period = whole(Periods::ALL[case as usize % 3].draw(random));
    let count = random.log_uniform(300.0, 20_000.0) as u64;
    wandering(period, count, random)
}

fn wandering(period: Fraction, count: u64, random: &mut Random) -> Simulated {
    let shape = random.one_of(&SHAPES);
    let mut least = 0;
    let late: Vec<u64> = lateness(shape, 1, count, random)
        .into_iter()
        .map(|late| {
            if random.below(100) == 0 {
                least = (least + random.below(2_001)).saturating_sub(1_000).min(WANDER);
            }
            least + late
        })
        .collect();
    Simulated::periodic(period, late)
}

/// Events with a least distance, bursts, gaps of any length up to a limit, random walks, and drifting
/// relative sleeps.
fn sporadic(case: u64, random: &mut Random) -> Simulated {
    let (count, mean) = (random.log_uniform(100.0, 10_000.0) as u64, random.log_uniform(1e6, 1e8));
    let spread = random.unit();
    let mut now = 0;
    let mut next = |number: u64| {
        let gap = match case % 5 {
            0 => mean * (spread + random.exponential()),
            1 if number % 4 < 3 => mean * 0.02 * (1.0 + random.unit()),
            1 => mean * (1.0 + 3.0 * random.unit()),
            2 => mean * (spread + random.unit()),
            3 => mean * (1.0 + 0.3 * spread * random.normal()).max(0.05),
            _ => mean + 100_000.0 * random.exponential(),
        };
        now += gap as u64;
        now
    };
    Simulated::sporadic((0..count).map(&mut next).collect::<Vec<_>>())
}

/// Sleeps of a length, one after the other: what delays one delays all after it. Some delays happen to be as
/// long as whole sleeps.
fn drifting(_: u64, random: &mut Random) -> Simulated {
    let (count, sleep) = (random.log_uniform(10_000.0, 50_000.0) as u64, random.log_uniform(2e6, 5e7) as u64);
    let mut now = 0;
    let mut next = || {
        let delay = match random.below(2_000) {
            0 => random.below(8 * sleep),
            1..=5 => random.below(sleep),
            _ => 0,
        };
        now += sleep + 230_000 + (20_000.0 * random.exponential()) as u64 + delay;
        now
    };
    Simulated::sporadic((0..count).map(|_| next()).collect::<Vec<_>>())
}

/// Numbers of traces with some property.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub traces: u64,
    /// The period is exactly the intended one.
    pub period: u64,
    /// Period, skipped and extra activations, and early releases are all right.
    pub all: u64,
    /// The published algorithm finds the period, in whole nanoseconds.
    pub published: u64,
    /// Slips are claimed.
    pub slips: u64,
    /// A release breaks the conservative model.
    pub unsound: u64,
    /// A whole number of nanoseconds is printed as a fraction.
    pub fractions: u64,
    /// The printed period is wrong although the true one has less jitter.
    pub beaten: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        let Counts { traces, period, all, published, slips, unsound, fractions, beaten } = other;
        self.traces += traces;
        self.period += period;
        self.all += all;
        self.published += published;
        self.slips += slips;
        self.unsound += unsound;
        self.fractions += fractions;
        self.beaten += beaten;
    }
}

/// Judges the models of one trace.
pub fn judge(trace: &Simulated) -> Counts {
    let releases = trace.releases();
    let mut counts = Counts { traces: 1, ..Counts::default() };
    let Some(found) = summary(&releases).model() else { return counts };
    let slips = found.skipped + found.extra > 0;
    let right = trace.period == Some(period_of(&found));
    let left_out = found.typical.as_ref().map_or(0, |typical| typical.left_out.len() as u64);
    let slips_right = (found.skipped, found.extra) == (trace.skipped, trace.extra);
    let all = right && slips_right && left_out >= trace.early;
    let meant_whole = trace.period.is_some_and(|period| period.denominator == 1);
    counts.period = right.into();
    counts.all = if trace.period.is_some() { all } else { !slips }.into();
    counts.slips = slips.into();
    counts.unsound = (!is_sound(&found, &releases)).into();
    counts.fractions = (meant_whole && found.period_exact.is_some()).into();
    let less = trace.true_jitter().is_some_and(|jitter| jitter < found.jitter_ns.ns());
    counts.beaten = (!right && less).into();
    counts
}

/// Whether the published algorithm finds the period of this trace.
#[allow(dead_code, reason = "for the benchmark")]
pub fn judge_published(trace: &Simulated) -> Counts {
    let releases = trace.releases();
    let mut last = 0;
    // The algorithm expects releases in order.
    let in_order = releases.iter().map(|release| {
        last = release.window.latest().ns().max(last);
        last
    });
    let times: Vec<u64> = in_order.collect();
    let meant = trace.period.map(|period| (period.numerator + period.denominator / 2) / period.denominator);
    let right = meant == u64::try_from(lime::infer(&times).period).ok();
    Counts { published: right.into(), ..Counts::default() }
}

pub fn summary(releases: &[Release]) -> PeriodicSummary {
    let mut summary = PeriodicSummary::new();
    releases.iter().for_each(|release| summary.push(release));
    summary
}

fn period_of(found: &Periodic) -> Fraction {
    found.period_exact.unwrap_or(whole(found.period_ns.ns()))
}

/// Gives each release the least index left for it: a model is sound if none of these is too late.
fn is_sound(found: &Periodic, releases: &[Release]) -> bool {
    let period = period_of(found);
    let (rise, scale) = (i128::from(period.numerator), i128::from(period.denominator));
    let (offset, jitter) = (i128::from(found.offset_ns), i128::from(found.jitter_ns.ns()));
    let mut next = i128::MIN;
    releases.iter().all(|release| {
        let (mut first, mut last) = (release.window.earliest(), release.window.latest());
        if let (PeriodicOn::Arrival, Some(arrival)) = (found.on, release.arrival) {
            (first, last) = (first.min(arrival), last.max(arrival));
        }
        let least = -((offset + jitter - i128::from(last.ns())) * scale).div_euclid(rise);
        let index = next.max(least);
        next = index + 1;
        offset * scale + index * rise <= i128::from(first.ns()) * scale
    })
}
