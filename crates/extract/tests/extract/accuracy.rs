//! Some traces of every row of the accuracy table; `make bench-accuracy` tries all of them and prints the
//! table.

use crate::common::accuracy::{Counts, ROWS, judge, summary};
use crate::common::noise::{Lateness, Random};
use crate::common::simulated::{Simulated, lateness, whole};
use punctual_extract::periodic::PeriodicSummary;

/// One in so many traces is tried, and at least `FEWEST` of a row.
const ONE_IN: u64 = 10;
const FEWEST: u64 = 12;
/// Step from one trace to the next: not a multiple of the number of kinds in a row, nor a divisor of its
/// traces.
const STEP: u64 = 11;
/// Misses allowed by chance, beyond their share of the row's misses.
const BY_CHANCE: u64 = 2;

#[test]
fn periods_and_slips_are_found() {
    let mut wrong = Vec::new();
    for row in ROWS {
        let tried = (row.traces / ONE_IN).max(FEWEST);
        let mut counts = Counts::default();
        let cases = (0..tried).map(|number| number * STEP % row.traces);
        cases.for_each(|case| counts += judge(&row.trace(case)));
        let misses = row.traces - row.target;
        let allowed = if misses == 0 { 0 } else { misses * tried / row.traces + BY_CHANCE };
        let (all, period) = (counts.all, counts.period);
        if all + allowed < tried {
            wrong.push(format!("{}: {all} of {tried}, periods of {period}", row.name));
        }
        if counts.unsound + counts.fractions + counts.beaten > 0 {
            let what = "unsound, a fraction for whole nanoseconds, or more jitter than the true period";
            wrong.push(format!("{}: {what}: {counts:?}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Traces of other series, in which other periods looked better.
#[test]
fn periods_that_were_mistaken_are_found() {
    let cases = [
        // 23.219955 ms had less jitter than 44.1 kHz / 1,024 without the releases that it left out.
        ("44.1 and 48 kHz / 2^i, wandering lateness", 0, 12),
        // 725.62 µs, 666.67 µs, and whole nanoseconds, each with more jitter than the true period.
        ("44.1 and 48 kHz / 2^i, wandering lateness", 2, 4),
        ("44.1 and 48 kHz / 2^i, wandering lateness", 9, 112),
        ("44.1 and 48 kHz / 2^i, wandering lateness", 2, 90),
        ("ms and µs periods, wandering lateness", 4, 54),
        ("ms and µs periods, wandering lateness", 7, 23),
        // A buffer of 16 samples of 2.19 kHz, and of 5.91 kHz.
        ("five activations skipped", 2, 7),
        ("several skipped at once, windows", 2, 38),
        // Frequencies of seven digits.
        ("gamma lateness", 3, 121),
        ("gamma lateness", 4, 92),
    ];
    for (name, series, case) in cases {
        let row = ROWS.iter().find(|row| row.name == name).unwrap();
        let counts = judge(&row.trace_of(series, case));
        assert_eq!((counts.period, counts.all), (1, 1), "{name}, series {series}, trace {case}");
    }
}

/// However many skips follow each other closely, after one or two releases each. At worst the slips are found
/// as one, and the jitter is their sum.
#[test]
fn skips_in_a_row_cost_jitter_but_not_the_period() {
    const PERIOD: u64 = 10_000_000;
    for skips in [5, 7, 8, 12, 20, 40] {
        for apart in 1..=3 {
            let mut random = Random(skips);
            let late = lateness(Lateness::Exponential, 1, 5_000, &mut random);
            let mut trace = Simulated::periodic(whole(PERIOD), late);
            (0..skips).for_each(|skip| trace.skip(2_000 + (skip * apart) as usize, 1));
            let found = summary(&trace.releases()).model().unwrap();
            let counted = (found.period_ns.ns(), found.skipped, found.extra);
            assert_eq!(counted, (PERIOD, skips, 0), "{skips} skips, {apart} releases apart");
            let most = trace.true_jitter().unwrap() + skips * PERIOD;
            assert!(found.jitter_ns.ns() <= most, "{skips} skips, {apart} releases apart: {found:?}");
        }
    }
}

#[test]
fn pieces_merge_to_the_whole() {
    for row in ROWS {
        for case in 0..3 {
            let releases = row.trace(case).releases();
            let mut random = Random(case);
            let mut merged = PeriodicSummary::new();
            let mut rest = &releases[..releases.len().min(5_000)];
            let whole = summary(rest).model();
            while !rest.is_empty() {
                let size = random.one_of(&[1, 5, 15, 16, 40, 1_000]).min(rest.len());
                merged.merge(&summary(&rest[..size]));
                rest = &rest[size..];
            }
            assert_eq!(merged.model(), whole, "{}, trace {case}", row.name);
        }
    }
}
