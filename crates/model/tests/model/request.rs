//! Request-bound functions (LiME, Section VI-A): worked by hand, in their order of tightness, and above all
//! demand there was.

use crate::generate::{curve_of, exactly, spans};
use proptest::collection::vec;
use proptest::prelude::*;
use punctual_model::request::{curve_scalar, curve_wcet, sporadic_scalar, sporadic_wcet};
use punctual_model::*;

fn bounds(curve: &Curve, execution: &Execution, span: u64) -> [Option<u64>; 4] {
    let sporadic = Sporadic { min_separation_ns: curve.delta_min(2) };
    let span = Duration::from_ns(span);
    [
        sporadic_scalar(&sporadic, execution, span),
        sporadic_wcet(&sporadic, execution, span),
        curve_scalar(curve, execution, span),
        curve_wcet(curve, execution, span),
    ]
    .map(|bound| bound.map(Duration::ns))
}

#[test]
fn curves_tighten_bounds_for_bursts_and_rare_costs() {
    // Two releases 2 ns apart every 100 ns; one job of ten takes 8 ns, the others 1 ns.
    let curve = Curve { delta_min_ns: spans(&[2, 100]), delta_max_ns: spans(&[98, 100]) };
    let execution = Execution { wcet_ns: spans(&[8, 9, 10, 11, 12, 13, 14, 15, 16, 17]), mean_ns: None };
    // ⌈300/2⌉ = 150 jobs: 150·8, or 15 tables of 17. η⁺(300) = 6 jobs: 6·8, or WCET(6).
    assert_eq!(bounds(&curve, &execution, 300), [1200, 255, 48, 13].map(Some));
    assert_eq!(bounds(&curve, &execution, 1), [8, 8, 8, 8].map(Some));
    assert_eq!(bounds(&curve, &execution, 0), [0, 0, 0, 0].map(Some));
}

#[test]
fn jobs_that_may_coincide_without_limit_have_no_bound() {
    let one = Execution { wcet_ns: spans(&[8]), mean_ns: None };
    let pairs = Curve { delta_min_ns: spans(&[0, 100]), delta_max_ns: spans(&[100, 100]) };
    assert_eq!(bounds(&pairs, &one, 300), [None, None, Some(48), Some(48)]);
    let many = Curve { delta_min_ns: spans(&[0, 0]), delta_max_ns: spans(&[0, 0]) };
    assert_eq!(bounds(&many, &one, 300), [None; 4]);
    assert_eq!(bounds(&many, &one, 0), [Some(0); 4]);
}

#[test]
fn an_overflowing_bound_is_none() {
    let every = Curve { delta_min_ns: spans(&[1]), delta_max_ns: spans(&[1]) };
    let execution = Execution { wcet_ns: spans(&[u64::MAX]), mean_ns: None };
    assert_eq!(bounds(&every, &execution, 2), [None; 4]);
    assert_eq!(bounds(&every, &execution, 1), [Some(u64::MAX); 4]);
}

proptest! {
    #[test]
    fn all_bounds_hold_and_curves_are_tighter(
        jobs in vec((0..20_u64, 0..50_u64), 2..30), horizon in 1..10_usize, span in 1..200_u64,
    ) {
        let instants: Vec<u64> = jobs.iter().scan(100, |at, (gap, _)| { *at += gap; Some(*at) }).collect();
        let curve = curve_of(&exactly(&instants), horizon);
        let greatest = |n: usize| jobs.windows(n).map(|run| run.iter().map(|(_, cost)| cost).sum::<u64>())
            .max();
        let wcet_ns = (1..=horizon.min(jobs.len())).filter_map(greatest).map(Duration::from_ns).collect();
        let execution = Execution { wcet_ns, mean_ns: None };

        let demand = |from: u64| -> u64 {
            let released = instants.iter().zip(&jobs).filter(|(at, _)| (from..from + span).contains(at));
            released.map(|(_, (_, cost))| cost).sum()
        };
        let greatest_demand = instants.iter().map(|from| demand(*from)).max().expect("some jobs");
        let bounds = bounds(&curve, &execution, span).map(|bound| bound.unwrap_or(u64::MAX));
        prop_assert!(bounds.iter().all(|bound| *bound >= greatest_demand), "{bounds:?} {greatest_demand}");
        let [scalar, wcet, arrivals, both] = bounds;
        prop_assert!(scalar >= wcet && scalar >= arrivals && wcet >= both && arrivals >= both, "{bounds:?}");
    }
}
