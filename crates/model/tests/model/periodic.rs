//! The periodic checker: the example of the paper (LiME, Section IV-C), fractions, windows, arrivals.

use crate::generate::{exactly, releases};
use proptest::prelude::*;
use punctual_model::check::{Model, periodic};
use punctual_model::*;

fn model(offset_ns: i64, period: u64, jitter: u64) -> Periodic {
    Periodic {
        on: PeriodicOn::Release,
        period_ns: Duration::from_ns(period),
        period_exact: None,
        offset_ns,
        jitter_ns: Duration::from_ns(jitter),
        least_jitter_ns: Duration::ZERO,
        choice: Choice::Estimated,
        approximate: false,
        skipped: 0,
        extra: 0,
        slips: Vec::new(),
        typical: None,
    }
}

fn broken(model: &Periodic, releases: &[Release]) -> Vec<(Model, usize)> {
    periodic(model, releases).iter().map(|violation| (violation.model, violation.first)).collect()
}

const PAPER: [u64; 4] = [100, 115, 120, 135];

#[test]
fn sound_sequences_of_the_paper_need_exactly_their_jitter() {
    let observed = exactly(&PAPER);
    assert_eq!(broken(&model(100, 10, 5), &observed), []);
    assert_eq!(broken(&model(100, 10, 4), &observed), [(Model::PeriodicLate, 1), (Model::PeriodicLate, 3)]);
    assert_eq!(broken(&model(100, 5, 20), &observed), []);
    assert_eq!(broken(&model(100, 5, 19), &observed), [(Model::PeriodicLate, 3)]);
}

#[test]
fn the_unsound_sequence_of_the_paper_is_refused_for_any_jitter() {
    let observed = exactly(&PAPER);
    assert_eq!(
        broken(&model(100, 15, u64::MAX), &observed),
        [(Model::PeriodicEarly, 2), (Model::PeriodicEarly, 3)]
    );
    // Its offset moved to before the worst of them is sound.
    assert_eq!(broken(&model(90, 15, 10), &observed), []);
}

#[test]
fn a_violation_states_what_was_observed_and_allowed() {
    let found = periodic(&model(100, 15, 50), &exactly(&PAPER));
    assert_eq!(found[0].to_string(), "periodic arrival, job 2: observed 120 ns, allowed at least 130 ns");
}

#[test]
fn a_fraction_does_not_drift() {
    let sixty_hertz = Fraction { numerator: 50_000_000, denominator: 3 };
    let instants: Vec<u64> =
        (0..10_000).map(|j| (j * sixty_hertz.numerator).div_ceil(sixty_hertz.denominator)).collect();
    let rounded = model(0, 16_666_667, 1);
    let exact = Periodic { period_exact: Some(sixty_hertz), ..rounded.clone() };
    assert_eq!(broken(&exact, &exactly(&instants)), []);
    assert!(broken(&rounded, &exactly(&instants)).len() > 9_000);
    // A release at the whole nanosecond below the exact arrival is early.
    assert_eq!(broken(&Periodic { offset_ns: 1, ..exact.clone() }, &exactly(&instants[..2])).len(), 2);
    let early = Periodic { jitter_ns: Duration::from_ns(5), ..exact };
    assert_eq!(broken(&early, &exactly(&[0, 16_666_666])), [(Model::PeriodicEarly, 1)]);
}

#[test]
fn the_whole_window_counts() {
    let window = Window::new(Instant::from_ns(108), Instant::from_ns(117)).expect("not empty");
    let releases = [exactly(&[100])[0], Release { arrival: None, window }];
    assert_eq!(broken(&model(98, 10, 9), &releases), []);
    assert_eq!(broken(&model(98, 10, 8), &releases), [(Model::PeriodicLate, 1)]);
    assert_eq!(broken(&model(99, 10, 9), &releases), [(Model::PeriodicEarly, 1)]);
}

#[test]
fn known_arrivals_count_if_the_model_is_measured_on_them() {
    let release = Release { arrival: Some(Instant::from_ns(100)), window: Window::at(Instant::from_ns(104)) };
    let on_release = model(104, 10, 0);
    assert_eq!(broken(&on_release, &[release]), []);
    let on_arrival = Periodic { on: PeriodicOn::Arrival, ..on_release };
    assert_eq!(broken(&on_arrival, &[release]), [(Model::PeriodicEarly, 0)]);
    let on_arrival = Periodic { on: PeriodicOn::Arrival, ..model(100, 10, 4) };
    assert_eq!(broken(&on_arrival, &[release]), []);
    // A signal made it early: its arrival has not come, and says nothing. The release still counts.
    let due_after = Release { arrival: Some(Instant::from_ns(105)), ..release };
    assert_eq!(broken(&on_arrival, &[due_after]), []);
    let early = Release { arrival: Some(Instant::from_ns(105)), window: Window::at(Instant::from_ns(99)) };
    assert_eq!(broken(&on_arrival, &[early]), [(Model::PeriodicEarly, 0)]);
}

#[test]
fn the_greatest_numbers_do_not_overflow() {
    let exact = Some(Fraction { numerator: u64::MAX, denominator: 1 });
    let greatest = Periodic { period_exact: exact, ..model(i64::MAX, u64::MAX, u64::MAX) };
    assert_eq!(
        broken(&greatest, &exactly(&[u64::MAX; 3])),
        [(Model::PeriodicEarly, 1), (Model::PeriodicEarly, 2)]
    );
    let least = Periodic {
        period_exact: Some(Fraction { numerator: 1, denominator: u64::MAX }),
        ..model(i64::MIN, 1, 0)
    };
    assert_eq!(broken(&least, &exactly(&[0])), [(Model::PeriodicLate, 0)]);
    // No fraction at all: the whole nanoseconds count.
    let none =
        Periodic { period_exact: Some(Fraction { numerator: 1, denominator: 0 }), ..model(100, 10, 5) };
    assert_eq!(broken(&none, &exactly(&PAPER)), []);
}

proptest! {
    /// The model's two inequalities as they are written, multiplied by the denominator.
    #[test]
    fn agrees_with_the_definition(
        releases in releases(30),
        (numerator, denominator) in (1..400_u64, 1..7_u64),
        offset in -50..150_i64,
        jitter in 0..200_u64,
    ) {
        let exact = Fraction { numerator, denominator };
        let model = Periodic { period_exact: Some(exact), ..model(offset, numerator / denominator, jitter) };
        let obeys = releases.iter().zip(0_i128..).all(|(release, j)| {
            let scaled = |ns: u64| i128::from(ns) * i128::from(denominator);
            let arrival = i128::from(offset) * i128::from(denominator) + j * i128::from(numerator);
            arrival <= scaled(release.window.earliest().ns())
                && scaled(release.window.latest().ns()) <= arrival + scaled(jitter)
        });
        prop_assert_eq!(periodic(&model, &releases).is_empty(), obeys);
    }
}
