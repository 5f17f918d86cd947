//! The checkers of separation, distance functions and arrival curves: they accept what no placement breaks,
//! and for what they refuse there is a placement that breaks it.

use crate::generate::{curve_of, exactly, placement, releases, spans};
use proptest::collection::vec;
use proptest::prelude::*;
use punctual_model::check::{Model, arrival_counts, curve, order, sporadic};
use punctual_model::*;

fn window(earliest: u64, latest: u64) -> Release {
    let window = Window::new(Instant::from_ns(earliest), Instant::from_ns(latest)).expect("not empty");
    Release { arrival: None, window }
}

fn separation(ns: u64) -> Sporadic {
    Sporadic { min_separation_ns: Duration::from_ns(ns) }
}

#[test]
fn separation_is_measured_from_latest_to_earliest_bound() {
    let observed = [window(100, 104), window(115, 115), window(114, 130)];
    assert_eq!(sporadic(&separation(0), &observed), []);
    let found = sporadic(&separation(12), &observed);
    let lines: Vec<String> = found.iter().map(Violation::to_string).collect();
    assert_eq!(
        lines,
        [
            "sporadic separation, jobs 0 to 1: observed 11 ns, allowed at least 12 ns",
            "sporadic separation, jobs 1 to 2: observed 0 ns, allowed at least 12 ns",
        ]
    );
}

#[test]
fn distances_equal_those_of_the_papers_example() {
    let observed = exactly(&[100, 115, 120, 135]);
    let exact = Curve { delta_min_ns: spans(&[5, 20, 35]), delta_max_ns: spans(&[15, 20, 35]) };
    assert_eq!(curve(&exact, &observed), []);
    let tighter = Curve { delta_min_ns: spans(&[6, 20, 35]), delta_max_ns: spans(&[15, 19, 35]) };
    let found = curve(&tighter, &observed);
    assert_eq!(
        found.iter().map(|violation| violation.model).collect::<Vec<_>>(),
        [Model::DeltaMin(2), Model::DeltaMax(3)]
    );
    assert_eq!(found[0].to_string(), "δ⁻(2), jobs 1 to 2: observed 5 ns, allowed at least 6 ns");
}

#[test]
fn releases_that_cannot_be_in_order_are_refused() {
    assert_eq!(order(&[window(0, 100), window(50, 60), window(90, 95)]), []);
    let found = order(&[window(10, 20), window(5, 9)]);
    assert_eq!(found.iter().map(|violation| violation.first).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(found[0].to_string(), "order of releases, job 0: observed 9 ns, allowed at least 10 ns");
}

#[test]
fn order_narrows_windows() {
    // The first can be no later than 60, as the second is not; so the third is at least 30 later.
    let observed = [window(0, 100), window(50, 60), window(90, 95)];
    let narrow = Curve { delta_min_ns: spans(&[0, 30]), delta_max_ns: spans(&[60, 95]) };
    assert_eq!(curve(&narrow, &observed), []);
    let refused = Curve { delta_min_ns: spans(&[0, 31]), delta_max_ns: spans(&[60, 95]) };
    assert_eq!(curve(&refused, &observed).len(), 1);
}

/// The placement that makes this run as short, or as long, as it can be.
fn witness(releases: &[Release], violation: &Violation) -> Vec<u64> {
    let ends = |job: usize| (releases[job].window.earliest().ns(), releases[job].window.latest().ns());
    let makes_long = matches!(violation.model, Model::DeltaMax(_));
    let place = |job: usize| match ends(job) {
        (earliest, _) if makes_long && job < violation.last => earliest,
        (_, latest) if makes_long => latest,
        (earliest, latest) => ends(violation.first).1.clamp(earliest, latest),
    };
    (0..releases.len()).map(place).collect()
}

fn loosened(tight: &Curve, less: u64, more: u64) -> Curve {
    Curve {
        delta_min_ns: tight
            .delta_min_ns
            .iter()
            .map(|span| span.saturating_sub(Duration::from_ns(less)))
            .collect(),
        delta_max_ns: tight.delta_max_ns.iter().map(|span| *span + Duration::from_ns(more)).collect(),
    }
}

/// Any curve whose values do not decrease, obeyed or not.
fn any_curve() -> impl Strategy<Value = Curve> {
    (vec(0..30_u64, 1..8), vec(1..60_u64, 1..8)).prop_map(|(least, greatest)| {
        let rising = |steps: Vec<u64>| {
            steps
                .iter()
                .scan(0, |sum, step| {
                    *sum += step;
                    Some(Duration::from_ns(*sum))
                })
                .collect()
        };
        Curve { delta_min_ns: rising(least), delta_max_ns: rising(greatest) }
    })
}

proptest! {
    #[test]
    fn accepted_models_hold_for_every_placement(
        releases in releases(40), choices in vec(any::<u64>(), 1..40), horizon in 1..12_usize,
        less in 0..9_u64, more in 0..9_u64,
    ) {
        let model = loosened(&curve_of(&releases, horizon), less, more);
        prop_assert_eq!(curve(&model, &releases), []);
        let placed = exactly(&placement(&releases, &choices));
        prop_assert_eq!(curve(&model, &placed), []);
        prop_assert_eq!(arrival_counts(&model, &placed), []);
        let least = separation(model.delta_min_ns.first().map_or(0, |span| span.ns()));
        prop_assert_eq!(sporadic(&least, &releases), []);
        prop_assert_eq!(sporadic(&least, &placed), []);
    }

    #[test]
    fn some_placement_violates_a_refused_model(releases in releases(20), model in any_curve()) {
        for violation in curve(&model, &releases) {
            let placed = exactly(&witness(&releases, &violation));
            prop_assert_eq!(order(&placed), []);
            prop_assert!(curve(&model, &placed).iter().any(|found| found.model == violation.model), "{}",
                violation);
        }
    }

    #[test]
    fn counting_and_measuring_agree(releases in releases(20), model in any_curve()) {
        prop_assert_eq!(arrival_counts(&model, &releases).is_empty(), curve(&model, &releases).is_empty());
    }

    #[test]
    fn separation_equals_the_distance_of_two_releases(releases in releases(20), least in 0..30_u64) {
        let model = Curve { delta_min_ns: spans(&[least]), delta_max_ns: vec![] };
        prop_assert_eq!(sporadic(&separation(least), &releases).is_empty(),
            curve(&model, &releases).is_empty());
    }
}
