//! The bound against the paper's example, and against brute force.

use proptest::prelude::*;
use punctual_latency::{Bound, HORIZON, InterruptModel, Occurrence, Outcome, Tracker, Variables, bound};
use punctual_model::latency::{InterruptCurves, Staircase, Step};
use punctual_model::{Duration, Instant};

fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

/// An interrupt source with these steps of execution time.
fn source(steps: &[(u64, u64)], separation: u64) -> InterruptCurves {
    let execution: Staircase =
        steps.iter().map(|&(span, sum)| Step { span: ns(span), sum: ns(sum) }).collect();
    InterruptCurves {
        count: 1_000,
        min_separation_ns: Some(ns(separation)),
        delta_min_ns: steps[1..].iter().map(|&(span, _)| ns(span)).collect(),
        wcet_ns: steps.iter().map(|&(_, sum)| ns(sum)).collect(),
        execution,
        long_execution_ns: Vec::new(),
    }
}

/// Paper, Figure 24: variables and interrupts by number.
fn figure_24() -> (Variables, Vec<InterruptCurves>) {
    let variables = Variables { poid: ns(22_510), psd: ns(19_702), st: ns(19_312), paie: Duration::ZERO };
    let sources = vec![
        InterruptCurves::default(),                      // NMI
        source(&[(0, 16_914)], 1_000_000),               // 33
        source(&[(0, 14_588)], 1_000_000),               // 35
        source(&[(0, 20_728), (60_000, 21_029)], 5_000), // 236
        source(&[(0, 3_299)], 1_000_000),                // 246
    ];
    (variables, sources)
}

fn bound_of(variables: &Variables, sources: &[InterruptCurves], model: InterruptModel) -> Bound {
    let sources: Vec<_> = sources.iter().enumerate().map(|(at, source)| (at == 0, source)).collect();
    bound(variables, &sources, model, HORIZON)
}

#[test]
fn figure_24_without_interrupts() {
    let (variables, sources) = figure_24();
    let bound = bound_of(&variables, &sources, InterruptModel::None);
    assert_eq!(bound.outcome, Outcome::Converged(ns(42_212)));
    assert!(bound.terms.is_empty());
}

#[test]
fn figure_24_with_a_sliding_window() {
    let (variables, sources) = figure_24();
    let bound = bound_of(&variables, &sources, InterruptModel::SlidingWindow);
    assert_eq!(bound.windows, [ns(42_212), ns(97_741), ns(98_042)]);
    assert_eq!(bound.outcome, Outcome::Converged(ns(98_042)));
    let terms: Vec<_> = bound.terms.iter().map(|term| (term.source, term.interference.ns())).collect();
    assert_eq!(terms, [(1, 16_914), (2, 14_588), (3, 21_029), (4, 3_299)]);
}

#[test]
fn figure_24_sporadic_does_not_converge() {
    let (variables, sources) = figure_24();
    let bound = bound_of(&variables, &sources, InterruptModel::Sporadic);
    assert_eq!(bound.outcome, Outcome::DoesNotConverge);
}

#[test]
fn single_interrupts_count_once() {
    let (variables, mut sources) = figure_24();
    sources[0].wcet_ns = vec![ns(500)];
    let single = bound_of(&variables, &sources, InterruptModel::WorstSingle);
    assert_eq!(single.outcome, Outcome::Converged(ns(42_212 + 20_728 + 500)));
    let each = bound_of(&variables, &sources, InterruptModel::WorstOfEach);
    assert_eq!(each.outcome, Outcome::Converged(ns(42_212 + 16_914 + 14_588 + 20_728 + 3_299 + 500)));
}

/// A sum that does not fit equals itself, whatever is added.
#[test]
fn sums_that_do_not_fit_do_not_converge() {
    let (mut variables, mut sources) = figure_24();
    variables.poid = ns(u64::MAX);
    for model in InterruptModel::ALL {
        assert_eq!(bound_of(&variables, &sources, model).outcome, Outcome::DoesNotConverge, "{model:?}");
    }
    (variables, _) = figure_24();
    sources[1].wcet_ns = vec![ns(u64::MAX)];
    for model in [InterruptModel::WorstSingle, InterruptModel::WorstOfEach, InterruptModel::SlidingWindowWcet]
    {
        assert_eq!(bound_of(&variables, &sources, model).outcome, Outcome::DoesNotConverge, "{model:?}");
    }
}

/// Single interrupts need no window, and windows beyond the horizon consist of shorter ones.
#[test]
fn latencies_beyond_the_horizon_have_bounds() {
    let (mut variables, sources) = figure_24();
    variables.poid = HORIZON + HORIZON;
    let single = bound_of(&variables, &sources, InterruptModel::WorstSingle);
    let alone = variables.interference_free();
    assert_eq!(single.outcome, Outcome::Converged(alone + ns(20_728)));
    let Outcome::Converged(window) = bound_of(&variables, &sources, InterruptModel::SlidingWindow).outcome
    else {
        panic!("it converges");
    };
    let sum = |window: Duration| -> u64 { sources.iter().map(|it| it.execution.sum(window).ns()).sum() };
    let rest = window.saturating_sub(HORIZON).saturating_sub(HORIZON);
    assert_eq!(window, alone + ns(2 * sum(HORIZON) + sum(rest)));
}

/// A host takes the processor out of one interrupt for longer than the horizon, once in a second. Windows of
/// the horizon alone would hold it in each.
#[test]
fn one_interrupt_longer_than_the_horizon_has_a_bound() {
    let (mut variables, _) = figure_24();
    let mut tracker = Tracker::new(HORIZON);
    for tick in 0..2_000 {
        let entry = tick * 1_000_000;
        let execution = if tick % 1_000 == 500 { 12_000_000 } else { 2_000 };
        // Ticks meanwhile are late, or lost.
        if tick % 1_000 > 500 && tick % 1_000 <= 512 {
            continue;
        }
        tracker.add(Occurrence {
            entry: Instant::from_ns(entry),
            exit: Instant::from_ns(entry + execution),
            execution: ns(execution),
        });
    }
    variables.poid = ns(14_000_000);
    let sliding = |source| bound_of(&variables, &[source], InterruptModel::SlidingWindow).outcome;
    let alone = variables.interference_free().ns();
    // The long one, and the ticks of a window of 40 ms and a sixteenth.
    let Outcome::Converged(latency) = sliding(tracker.curves().clone()) else { panic!("it converges") };
    assert!((alone + 12_000_000..alone + 12_000_000 + 43 * 2_000).contains(&latency.ns()), "{latency}");
    // Files of older versions have no such windows.
    let older = InterruptCurves { long_execution_ns: Vec::new(), ..tracker.curves().clone() };
    assert_eq!(sliding(older), Outcome::DoesNotConverge);
}

/// Occurrences of one source: gaps before each, and execution times.
fn occurrences() -> impl Strategy<Value = Vec<Occurrence>> {
    let gap = prop_oneof![3 => 0..2_000_u64, 2 => 0..400_000_u64, 1 => 0..20_000_000_u64];
    prop::collection::vec((gap, 1..5_000_u64, 0..300_u64), 1..60).prop_map(|raw| {
        let mut now = 1_000;
        raw.into_iter()
            .map(|(gap, execution, nmi)| {
                let entry = now + gap;
                now = entry + execution + nmi;
                Occurrence {
                    entry: Instant::from_ns(entry),
                    exit: Instant::from_ns(now),
                    execution: ns(execution),
                }
            })
            .collect()
    })
}

fn tracked(occurrences: &[Occurrence]) -> InterruptCurves {
    let mut tracker = Tracker::new(HORIZON);
    for &occurrence in occurrences {
        tracker.add(occurrence);
    }
    tracker.curves().clone()
}

/// Sum and number of all that is served, whole or in part, in a window of this length, of all windows that
/// begin while an interrupt is served.
fn brute_force(occurrences: &[Occurrence], length: u64) -> (u64, u64) {
    let mut greatest = (0, 0);
    for first in occurrences {
        // Just before its exit: the window reaches furthest, and the interrupt counts whole.
        let begin = first.exit.ns() - 1;
        let inside = || {
            occurrences.iter().filter(|it| it.exit.ns() > begin && it.entry.ns() < first.exit.ns() + length)
        };
        greatest.0 = greatest.0.max(inside().map(|it| it.execution.ns()).sum());
        greatest.1 = greatest.1.max(inside().count() as u64);
    }
    greatest
}

proptest! {
    #[test]
    fn windows_are_those_of_brute_force(
        occurrences in occurrences(),
        lengths in prop::collection::vec(1..10_000_000_u64, 20),
    ) {
        let interrupts = tracked(&occurrences);
        let ends = occurrences.iter().flat_map(|it| {
            let spans = occurrences.iter().map(|other| other.entry.since(it.exit).ns());
            spans.filter(|&span| span < HORIZON.ns())
        });
        for length in ends.flat_map(|span| [span, span + 1]).filter(|&length| length > 0).chain(lengths) {
            let (sum, count) = brute_force(&occurrences, length);
            prop_assert_eq!(interrupts.execution.sum(ns(length)).ns(), sum, "in {}", length);
            prop_assert_eq!(interrupts.arrivals(ns(length)), count, "in {}", length);
        }
        prop_assert_eq!(interrupts.wcet(), occurrences.iter().map(|it| it.execution).max().unwrap());
        let separation = occurrences.windows(2).map(|pair| pair[1].entry.since(pair[0].entry)).min();
        prop_assert_eq!(interrupts.min_separation_ns, separation);
    }

    /// Beyond the horizon windows double in length; each is rounded up by at most a sixteenth.
    #[test]
    fn long_windows_cover_those_of_brute_force(occurrences in occurrences()) {
        let interrupts = tracked(&occurrences);
        for (doubled, sum) in interrupts.long_execution_ns.iter().enumerate() {
            let length = HORIZON.ns() << (doubled + 1);
            prop_assert!(sum.ns() >= brute_force(&occurrences, length).0, "in {}", length);
            prop_assert!(sum.ns() <= brute_force(&occurrences, length + length / 16 + 1).0, "in {}", length);
        }
    }

    /// WCET(n) is that of up to n consecutive interrupts, and never more than the window's sum.
    #[test]
    fn consecutive_execution_is_that_of_brute_force(occurrences in occurrences()) {
        let curves = tracked(&occurrences);
        for (index, wcet) in curves.wcet_ns.iter().enumerate() {
            let runs = (1..=index + 1).flat_map(|n| occurrences.windows(n));
            let windows = runs.filter(|run| run[run.len() - 1].entry.since(run[0].exit) < HORIZON);
            let greatest = windows.map(|run| run.iter().map(|it| it.execution.ns()).sum()).max();
            prop_assert_eq!(Some(wcet.ns()), greatest, "of {}", index + 1);
        }
    }

    #[test]
    fn observations_merge_in_any_order(a in occurrences(), b in occurrences(), c in occurrences()) {
        let [a, b, c] = [tracked(&a), tracked(&b), tracked(&c)];
        let merged = |parts: [&InterruptCurves; 3]| {
            let mut sum = InterruptCurves::default();
            parts.into_iter().for_each(|part| sum.merge(part));
            sum
        };
        let forward = merged([&a, &b, &c]);
        prop_assert_eq!(&forward, &merged([&c, &a, &b]));
        for length in [1, 1_000, 100_000, 9_000_000] {
            let greatest = [&a, &b, &c].map(|part| part.execution.sum(ns(length))).into_iter().max();
            prop_assert_eq!(Some(forward.execution.sum(ns(length))), greatest);
        }
        for (doubled, &sum) in forward.long_execution_ns.iter().enumerate() {
            let greatest = [&a, &b, &c].map(|part| part.long_execution_ns[doubled]).into_iter().max();
            prop_assert_eq!(Some(sum), greatest);
        }
    }

    #[test]
    fn no_window_spans_a_gap(before in occurrences(), after in occurrences()) {
        let mut tracker = Tracker::new(HORIZON);
        before.iter().for_each(|&it| tracker.add(it));
        tracker.gap();
        after.iter().for_each(|&it| tracker.add(it));
        let mut apart = tracked(&before);
        apart.merge(&tracked(&after));
        prop_assert_eq!(tracker.curves(), &apart);
    }

    /// The bound is a fixed point, the least one, and each model covers the less pessimistic ones.
    #[test]
    fn bounds_are_least_fixed_points(
        sources in prop::collection::vec(occurrences(), 0..4),
        durations in prop::array::uniform4(0..30_000_u64),
    ) {
        let [poid, psd, st, paie] = durations.map(ns);
        let variables = Variables { poid, psd, st, paie };
        let sources: Vec<_> = sources.iter().map(|source| tracked(source)).collect();
        let found = |model| bound_of(&variables, &sources, model).outcome;
        if let Outcome::Converged(length) = found(InterruptModel::SlidingWindow) {
            let right = |window: u64| {
                let (whole, rest) = (window / HORIZON.ns(), window % HORIZON.ns());
                let sum = |source: &InterruptCurves, window| source.execution.sum(ns(window)).ns();
                let interference =
                    sources.iter().map(|source| whole * sum(source, HORIZON.ns()) + sum(source, rest));
                variables.interference_free().ns() + interference.sum::<u64>()
            };
            prop_assert_eq!(right(length.ns()).max(1), length.ns());
            let lesser = (1..length.ns()).step_by(97).find(|&window| right(window) <= window);
            prop_assert_eq!(lesser, None, "a shorter window is enough");
        }
        let value = |model| match found(model) {
            Outcome::Converged(length) => length,
            Outcome::DoesNotConverge => ns(u64::MAX),
        };
        prop_assert!(value(InterruptModel::None) <= value(InterruptModel::WorstSingle));
        prop_assert!(value(InterruptModel::WorstSingle) <= value(InterruptModel::WorstOfEach));
        prop_assert!(value(InterruptModel::WorstOfEach) <= value(InterruptModel::SlidingWindowWcet));
        prop_assert!(value(InterruptModel::SlidingWindow) <= value(InterruptModel::SlidingWindowWcet));
        prop_assert!(value(InterruptModel::SlidingWindowWcet) <= value(InterruptModel::Sporadic));
    }
}
