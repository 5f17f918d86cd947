//! Curves with fewer points: straight lines between some of them, imperceptibly off and never on the unsafe
//! side.

use punctual_model::Duration;

/// Which side of the curve the lines may not cross to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The curve bounds from below (δ⁻): lines stay at it or below.
    Below,
    /// The curve bounds from above (δ⁺, WCET): lines stay at it or above.
    Above,
}

/// The corners of a thinned curve: index (from 1) and value. Between two corners it is straight.
pub(crate) type Corners = Vec<(u64, u64)>;

/// Off by at most so much of the value: figures are printed to four digits, and no eye or screen tells more
/// apart.
const FINEST: f64 = 0.0005;
/// More corners than this are not drawn any better.
const MOST_CORNERS: usize = 2_000;
/// What arithmetic in floating point may be off by, with room to spare.
const ROUNDING: f64 = 1e-12;

/// The corners of a non-decreasing table of values for 1, 2, … The last corner is that of the last value.
pub(crate) fn thin(table: &[Duration], bound: Bound) -> Corners {
    let mut tolerance = FINEST;
    loop {
        let corners = within(table, bound, tolerance);
        // A tolerance of one and more would say nothing; by then there are only a few corners left.
        if corners.len() <= MOST_CORNERS || tolerance >= 0.5 {
            return corners;
        }
        tolerance *= 2.0;
    }
}

/// One pass: a line from the last corner is followed for as long as some slope keeps it within the band of
/// all values passed.
fn within(table: &[Duration], bound: Bound, tolerance: f64) -> Corners {
    let Some(first) = table.first() else { return Vec::new() };
    let mut corners = vec![(1, first.ns())];
    let (mut from, mut least, mut greatest) = ((0, first.ns() as f64), 0.0_f64, f64::INFINITY);
    for (index, value) in table.iter().enumerate().skip(1) {
        let (low, high) = band(value.ns() as f64, bound, tolerance);
        let length = (index - from.0) as f64;
        let slopes = (least.max((low - from.1) / length), greatest.min((high - from.1) / length));
        if slopes.0 <= slopes.1 {
            (least, greatest) = slopes;
            continue;
        }
        from = corner(table, from, index - 1, bound, (least, greatest));
        corners.push((from.0 as u64 + 1, from.1 as u64));
        let (low, high) = band(value.ns() as f64, bound, tolerance);
        (least, greatest) = ((low - from.1).max(0.0), (high - from.1).max(0.0));
    }
    if table.len() > 1 {
        let last = corner(table, from, table.len() - 1, bound, (least, greatest));
        corners.push((last.0 as u64 + 1, last.1 as u64));
    }
    corners
}

/// Where a line may pass at a value.
fn band(value: f64, bound: Bound, tolerance: f64) -> (f64, f64) {
    match bound {
        Bound::Below => (value * (1.0 - tolerance), value * (1.0 - ROUNDING)),
        Bound::Above => (value * (1.0 + ROUNDING), value * (1.0 + tolerance)),
    }
}

/// The end of the tightest line.
fn corner(
    table: &[Duration],
    from: (usize, f64),
    index: usize,
    bound: Bound,
    (least, greatest): (f64, f64),
) -> (usize, f64) {
    let length = (index - from.0) as f64;
    let exact = table[index].ns() as f64;
    let end = match bound {
        Bound::Below => (from.1 + greatest * length).floor().min(exact),
        Bound::Above => (from.1 + least * length).ceil().max(exact),
    };
    (index, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the page's script makes of corners, in the same arithmetic.
    fn expand(corners: &Corners, bound: Bound) -> Vec<f64> {
        let mut values: Vec<f64> = corners.first().map(|first| first.1 as f64).into_iter().collect();
        for pair in corners.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let length = (to.0 - from.0) as f64;
            for step in 1..=to.0 - from.0 {
                let value = from.1 as f64 + (to.1 as f64 - from.1 as f64) * step as f64 / length;
                values.push(if bound == Bound::Below { value.floor() } else { value.ceil() });
            }
        }
        values
    }

    fn check(table: &[u64]) -> Result<(), TestCaseError> {
        let durations: Vec<Duration> = table.iter().copied().map(Duration::from_ns).collect();
        for bound in [Bound::Below, Bound::Above] {
            let drawn = expand(&thin(&durations, bound), bound);
            prop_assert_eq!(drawn.len(), table.len());
            prop_assert!(drawn.is_sorted());
            for (drawn, &exact) in drawn.iter().zip(table) {
                let exact = exact as f64;
                let off = if bound == Bound::Below { exact - drawn } else { drawn - exact };
                prop_assert!(off >= 0.0, "{bound:?}: {drawn} for {exact}");
                prop_assert!(off <= exact * FINEST + 2.0, "{bound:?}: {drawn} for {exact}");
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn lines_stay_on_the_safe_side_and_close(
            gaps in prop::collection::vec(prop_oneof![Just(0_u64), 0_u64..5_000, 4_900_000_u64..5_100_000,
                0_u64..1 << 40], 1..300),
        ) {
            let mut sum = 0;
            let table: Vec<u64> = gaps.iter().map(|gap| { sum += gap; sum }).collect();
            check(&table)?;
        }
    }

    #[test]
    fn a_periodic_curve_takes_few_corners() {
        let table: Vec<Duration> =
            (1..=1_000).map(|n| Duration::from_ns(n * 5_000_000 - 41_000 + (n * 7_919) % 3_000)).collect();
        let corners = thin(&table, Bound::Below);
        assert!(corners.len() < 60, "{}", corners.len());
        assert_eq!(corners.last().map(|corner| corner.0), Some(1_000));
    }

    #[test]
    fn short_tables_and_large_values_are_kept() {
        assert_eq!(thin(&[], Bound::Below), []);
        assert_eq!(thin(&[Duration::from_ns(7)], Bound::Above), [(1, 7)]);
        let great = [Duration::from_ns(u64::MAX), Duration::from_ns(u64::MAX)];
        assert_eq!(thin(&great, Bound::Above).last().map(|corner| corner.1), Some(u64::MAX));
    }

    #[test]
    fn a_wild_curve_has_a_bounded_number_of_corners() {
        let mut value = 1_u64;
        let table: Vec<Duration> = (0..100_000_u64)
            .map(|n| {
                value += if n % 3 == 0 { value / 900 + 1 } else { n % 7 };
                value = value.min(1 << 60);
                Duration::from_ns(value)
            })
            .collect();
        assert!(thin(&table, Bound::Above).len() <= MOST_CORNERS);
    }
}
