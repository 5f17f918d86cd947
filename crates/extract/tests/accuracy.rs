//! Some traces of every row of the accuracy table; `make bench-accuracy` tries all, and prints the table.

mod common;

use common::accuracy::{Counts, ROWS, judge, summary};
use common::noise::Random;
use punctual_extract::periodic::PeriodicSummary;

/// One in so many traces, and at least this many of a row.
const ONE_IN: u64 = 10;
const FEWEST: u64 = 12;

#[test]
fn periods_and_slips_are_what_they_were() {
    let mut wrong = Vec::new();
    for row in ROWS {
        let tried = (row.traces / ONE_IN).max(FEWEST);
        let mut counts = Counts::default();
        // Spread over the row, and the same for every kind in it.
        (0..tried).for_each(|case| counts += judge(&row.trace(case)));
        // No more than the row's share of misses, and one that may be among the first by chance.
        let misses = row.traces - row.target;
        let allowed = if misses == 0 { 0 } else { misses / ONE_IN + 1 };
        let (all, period) = (counts.all, counts.period);
        if all + allowed < tried {
            wrong.push(format!("{}: {all} of {tried}, periods of {period}", row.name));
        }
        for (what, found) in [
            ("a release breaks the model", counts.unsound),
            ("whole nanoseconds are printed as a fraction", counts.fractions),
            ("the true period has less jitter", counts.beaten),
        ] {
            if found > 0 {
                wrong.push(format!("{}: in {found} of {tried}, {what}", row.name));
            }
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
