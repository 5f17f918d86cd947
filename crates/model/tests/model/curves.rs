//! Curves beyond their tables and as arrival curves: sound for streams longer than the table, and exact where
//! it reaches.

use crate::generate::{curve_of, exactly, releases, spans};
use proptest::collection::vec;
use proptest::prelude::*;
use punctual_model::*;

fn ns(span: Option<Duration>) -> Option<u64> {
    span.map(Duration::ns)
}

/// Two releases at once every 10 ns.
fn pairs() -> Curve {
    Curve { delta_min_ns: spans(&[0, 10]), delta_max_ns: spans(&[10, 10]) }
}

#[test]
fn tables_extend_by_repetition() {
    let curve = pairs();
    assert_eq!((0..8).map(|n| curve.delta_min(n).ns()).collect::<Vec<_>>(), [0, 0, 0, 10, 10, 20, 20, 30]);
    assert_eq!(
        (0..8).map(|n| ns(curve.delta_max(n))).collect::<Vec<_>>(),
        [0, 0, 10, 10, 20, 20, 30, 30].map(Some)
    );
    let execution = Execution { wcet_ns: spans(&[5, 7]), mean_ns: None };
    assert_eq!((0..6).map(|n| ns(execution.wcet(n))).collect::<Vec<_>>(), [0, 5, 7, 12, 14, 19].map(Some));
}

#[test]
fn intervals_are_half_open() {
    let curve = pairs();
    let most = |span| curve.eta_max(Duration::from_ns(span));
    assert_eq!([0, 1, 10, 11, 20, 21].map(most), [0, 2, 2, 4, 4, 6].map(Some));
    let least = |span| curve.eta_min(Duration::from_ns(span));
    assert_eq!([0, 1, 9, 10, 11, 19, 20], [0, 1, 9, 10, 11, 19, 20]);
    assert_eq!([0, 1, 9, 10, 11, 19, 20].map(least), [0, 0, 0, 2, 2, 2, 4]);
}

#[test]
fn strictly_periodic_releases_have_the_textbook_curves() {
    let every = Curve { delta_min_ns: spans(&[5]), delta_max_ns: spans(&[5]) };
    for span in 0..100 {
        assert_eq!(every.eta_max(Duration::from_ns(span)), Some(span.div_ceil(5)));
        assert_eq!(every.eta_min(Duration::from_ns(span)), span / 5);
    }
}

#[test]
fn empty_curves_bound_nothing() {
    let unknown = Curve { delta_min_ns: vec![], delta_max_ns: vec![] };
    let some = Duration::from_ns(1);
    assert_eq!((unknown.delta_min(9), unknown.delta_max(9)), (Duration::ZERO, None));
    assert_eq!((unknown.eta_max(some), unknown.eta_min(some)), (None, 0));
    assert_eq!((unknown.eta_max(Duration::ZERO), unknown.delta_max(1)), (Some(0), Some(Duration::ZERO)));
    let coinciding = Curve { delta_min_ns: spans(&[0, 0]), delta_max_ns: spans(&[0, 0]) };
    assert_eq!((coinciding.eta_max(some), coinciding.eta_min(some)), (None, 0));
    assert_eq!(Execution { wcet_ns: vec![], mean_ns: None }.wcet(1), None);
}

#[test]
fn the_greatest_numbers_stay_sound() {
    let longest = Curve { delta_min_ns: spans(&[u64::MAX]), delta_max_ns: spans(&[u64::MAX]) };
    assert_eq!((longest.delta_min(u64::MAX).ns(), longest.delta_max(3)), (u64::MAX, None));
    let shortest = Curve { delta_min_ns: spans(&[0, 1]), delta_max_ns: spans(&[0, 1]) };
    assert_eq!(shortest.eta_max(Duration::from_ns(u64::MAX)), None);
    assert_eq!(Execution { wcet_ns: spans(&[u64::MAX]), mean_ns: None }.wcet(u64::MAX), None);
}

/// Least and greatest count over every interval of this length that lies between first and last release.
fn counted(instants: &[u64], span: u64) -> (usize, usize) {
    let inside = |from: u64| instants.iter().filter(|at| (from..from + span).contains(at)).count();
    let (first, last) = (instants[0], instants[instants.len() - 1]);
    let most = (first - first.min(span)..=last).map(inside).max().unwrap_or(0);
    let least = (first + 1..=last - span).map(inside).min().unwrap_or(usize::MAX);
    (least, most)
}

proptest! {
    #[test]
    fn arrival_curves_equal_the_counts(gaps in vec(0..9_u64, 2..12)) {
        let instants: Vec<u64> = gaps.iter().scan(100, |at, gap| { *at += gap; Some(*at) }).collect();
        let curve = curve_of(&exactly(&instants), instants.len());
        for span in 1..instants[instants.len() - 1] - instants[0] {
            let (least, most) = counted(&instants, span);
            prop_assert_eq!(curve.eta_max(Duration::from_ns(span)), Some(most as u64));
            prop_assert_eq!(curve.eta_min(Duration::from_ns(span)), least as u64);
        }
    }

    #[test]
    fn arrival_curves_are_pseudo_inverses(releases in releases(30), horizon in 1..8_usize,
        span in 1..2_000_u64) {
        let curve = curve_of(&releases, horizon);
        if let Some(most) = curve.eta_max(Duration::from_ns(span)) {
            prop_assert!(curve.delta_min(most).ns() < span && span <= curve.delta_min(most + 1).ns());
        }
        let least = curve.eta_min(Duration::from_ns(span));
        if curve.delta_max_ns.last().is_some_and(|last| last.ns() > 0) {
            prop_assert!(ns(curve.delta_max(least + 1)) <= Some(span)
                && Some(span) < ns(curve.delta_max(least + 2)));
        }
    }

    #[test]
    fn distances_hold_past_the_horizon(releases in releases(60), horizon in 1..8_usize, less in 0..5_u64) {
        let full = curve_of(&releases, releases.len());
        let mut short = curve_of(&releases, horizon);
        // What is obeyed but not tight extends soundly too.
        short.delta_min_ns.iter_mut().for_each(|span| *span = span.saturating_sub(Duration::from_ns(less)));
        for n in 2..=releases.len() {
            prop_assert!(short.delta_min(n as u64) <= full.delta_min_ns[n - 2]);
            prop_assert!(short.delta_max(n as u64) >= Some(full.delta_max_ns[n - 2]));
        }
    }

    #[test]
    fn costs_hold_past_the_horizon(costs in vec(0..1_000_u64, 1..60), horizon in 1..8_usize,
        more in 0..5_u64) {
        let greatest = |n: usize| costs.windows(n).map(|run| run.iter().sum::<u64>()).max();
        let wcet_ns = (1..=horizon.min(costs.len())).filter_map(greatest)
            .map(|cost| Duration::from_ns(cost + more)).collect();
        let execution = Execution { wcet_ns, mean_ns: None };
        for n in 1..=costs.len() {
            prop_assert!(ns(execution.wcet(n as u64)) >= greatest(n));
        }
    }
}
