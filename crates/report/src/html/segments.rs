//! Suspension segments as bars: run, sleep, run, one row per pattern, all to one scale.

use crate::number::at_most;
use maud::{Markup, html};
use punctual_model::{Duration, SegmentBound, Suspension};

/// More rows than these are left to the model file.
const MOST_ROWS: usize = 12;
const WIDTH: u64 = 1_000;

/// Part of a pattern.
struct Part {
    sleeps: bool,
    bound: Duration,
}

fn parts(vector: &[SegmentBound]) -> Vec<Part> {
    let mut parts = Vec::new();
    for (index, segment) in vector.iter().enumerate() {
        if index > 0 {
            parts.push(Part { sleeps: true, bound: segment.suspended_ns });
        }
        parts.push(Part { sleeps: false, bound: segment.cost_ns });
    }
    parts
}

fn total(parts: &[Part]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.bound.ns()))
}

/// The bars, each with what it says in words.
pub(crate) fn bars(model: &Suspension) -> Markup {
    let patterns: Vec<Vec<Part>> = model.segmented.iter().map(|vector| parts(vector)).collect();
    let longest = patterns.iter().map(|parts| total(parts)).max().unwrap_or(0).max(1);
    let left_out = patterns.len().saturating_sub(MOST_ROWS);
    html! {
        p.key {
            span.run { "run" } " " span.sleep { "sleep" }
            " The whole width is " (at_most(Duration::from_ns(longest))) "."
        }
        ol.patterns {
            @for parts in patterns.iter().take(MOST_ROWS) {
                li {
                    svg.segments viewBox={ "0 0 " (WIDTH) " 24" } preserveAspectRatio="none"
                        aria-hidden="true" {
                        @let edges = edges(parts, longest);
                        @for (part, edge) in parts.iter().zip(&edges) {
                            @if part.sleeps {
                                rect.sleep x=(edge.0) y="8" width=(edge.1) height="8" {}
                            } @else {
                                rect.run x=(edge.0) y="0" width=(edge.1) height="24" {}
                            }
                        }
                    }
                    span { (words(parts)) }
                }
            }
        }
        @if left_out > 0 { p { (left_out) " more patterns are in the model file." } }
    }
}

/// Where each part begins and how wide it is, at least so wide that it is seen.
fn edges(parts: &[Part], longest: u64) -> Vec<(u64, u64)> {
    let scaled = |ns: u64| (u128::from(ns) * u128::from(WIDTH) / u128::from(longest)) as u64;
    let mut before = 0_u64;
    let edge = |part: &Part| {
        let (begin, end) = (before, before.saturating_add(part.bound.ns()));
        before = end;
        (scaled(begin).min(WIDTH - 2), (scaled(end.min(longest)) - scaled(begin.min(longest))).max(2))
    };
    parts.iter().map(edge).collect()
}

fn words(parts: &[Part]) -> String {
    let word =
        |part: &Part| format!("{} ≤ {}", if part.sleeps { "sleep" } else { "run" }, at_most(part.bound));
    parts.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_do_not_overlap_and_stay_visible() {
        let bound = |suspended, cost| SegmentBound {
            suspended_ns: Duration::from_us(suspended),
            cost_ns: Duration::from_us(cost),
        };
        let parts = parts(&[bound(0, 250), bound(500, 250), bound(0, 0)]);
        assert_eq!(words(&parts), "run ≤ 250 µs, sleep ≤ 500 µs, run ≤ 250 µs, sleep ≤ 0 ns, run ≤ 0 ns");
        let edges = edges(&parts, total(&parts));
        assert_eq!(edges, [(0, 250), (250, 500), (750, 250), (998, 2), (998, 2)]);
    }

    #[test]
    fn huge_bounds_are_still_drawn() {
        let most =
            SegmentBound { suspended_ns: Duration::from_ns(u64::MAX), cost_ns: Duration::from_ns(u64::MAX) };
        let model = Suspension { dynamic_ns: most.cost_ns, segmented: vec![vec![most; 3]; 30] };
        let page = bars(&model).into_string();
        assert_eq!((page.matches("<svg").count(), page.contains("18 more patterns")), (MOST_ROWS, true));
    }
}
