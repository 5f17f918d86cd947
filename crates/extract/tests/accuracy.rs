//! Some traces of every row of the accuracy table; `make bench-accuracy` tries all of them and prints the
//! table.

mod common;

use common::accuracy::{Counts, ROWS, judge, summary};
use common::noise::Random;
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
        if counts.unsound + counts.fractions > 0 {
            wrong.push(format!("{}: unsound or a fraction for whole nanoseconds: {counts:?}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
