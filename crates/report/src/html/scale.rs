//! An axis of durations: where a value lies on it, in percent of its width, and where it is marked.
//!
//! Drawings over such an axis have no size of their own: what is across is percent, what is down is pixels.
//! So they fit any window, and texts stay as they are.

use maud::{Markup, html};
use punctual_model::Duration;

/// From here on a linear axis would show no difference between most values.
const SPREAD: u64 = 50;
/// Marks of an axis, at most.
const MOST_MARKS: usize = 6;

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    from: u64,
    until: u64,
    pub(crate) is_log: bool,
}

impl Scale {
    /// For these values, logarithmic where they are far apart.
    pub(crate) fn new(values: impl Iterator<Item = Duration> + Clone) -> Scale {
        let greatest = values.clone().map(Duration::ns).max().unwrap_or(0).max(1);
        let least = values.map(Duration::ns).filter(|ns| *ns > 0).min().unwrap_or(1);
        let is_log = greatest / least >= SPREAD;
        let from = if is_log { 10_u64.pow(least.ilog10()) } else { 0 };
        Scale { from, until: greatest, is_log }
    }

    /// From zero to this, evenly.
    pub(crate) fn linear(until: Duration) -> Scale {
        Scale { from: 0, until: until.ns().max(1), is_log: false }
    }

    /// Between 0 and 100. Zero lies at the left end, also of a logarithmic axis.
    pub(crate) fn percent(&self, value: Duration) -> f64 {
        let value = value.ns().clamp(self.from, self.until);
        let share = if self.is_log {
            let from = self.from as f64;
            (value as f64 / from).ln() / (self.until as f64 / from).ln()
        } else {
            (value - self.from) as f64 / (self.until - self.from).max(1) as f64
        };
        share * 100.0
    }

    /// Round values, not too many.
    fn marks(&self) -> Vec<Duration> {
        let decades = (0..=19).map(|power| 10_u64.pow(power));
        let marks: Vec<u64> = if self.is_log {
            let within: Vec<u64> = decades.filter(|mark| (self.from..=self.until).contains(mark)).collect();
            let stride = within.len().div_ceil(MOST_MARKS).max(1);
            within.into_iter().step_by(stride).collect()
        } else {
            let steps = decades.flat_map(|decade| [1, 2, 5].map(|digit| decade.checked_mul(digit))).flatten();
            let step =
                steps.into_iter().find(|step| self.until / step < MOST_MARKS as u64).unwrap_or(u64::MAX);
            (0..=self.until / step).map(|number| number * step).collect()
        };
        marks.into_iter().map(Duration::from_ns).collect()
    }

    /// The axis itself, with its marks.
    pub(crate) fn axis(&self) -> Markup {
        html! {
            svg.axis height="18" aria-hidden="true" {
                @for mark in self.marks() {
                    @let at = self.percent(mark);
                    line.grid-line x1=(percent(at)) x2=(percent(at)) y1="14" y2="18" {}
                    // The last would be cut by the edge.
                    text x=(percent(at)) y="11" class=(anchor(at)) {
                        @if mark == Duration::ZERO { "0" } @else { (mark) }
                    }
                }
            }
        }
    }

    /// Lines at the marks, behind what is drawn.
    pub(crate) fn grid(&self) -> Markup {
        html! {
            @for mark in self.marks() {
                @let at = percent(self.percent(mark));
                line.grid-line x1=(at) x2=(at) y1="0" y2="100%" {}
            }
        }
    }
}

fn anchor(at: f64) -> &'static str {
    match at {
        ..=4.0 => "from",
        96.0.. => "until",
        _ => "at",
    }
}

/// As an attribute: to a hundredth.
pub(crate) fn percent(value: f64) -> String {
    format!("{}%", (value * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(values: &[u64]) -> Vec<Duration> {
        values.iter().map(|ns| Duration::from_ns(*ns)).collect()
    }

    #[test]
    fn wide_ranges_get_a_logarithmic_axis() {
        let near = Scale::new(ns(&[20_000, 900_000]).into_iter());
        assert!(!near.is_log);
        assert_eq!(
            (
                near.percent(Duration::from_ns(0)),
                near.percent(Duration::from_us(450)),
                near.percent(Duration::from_ms(9))
            ),
            (0.0, 50.0, 100.0)
        );
        let far = Scale::new(ns(&[0, 1_000, 1_000_000]).into_iter());
        assert!(far.is_log);
        assert_eq!(
            (
                far.percent(Duration::ZERO),
                far.percent(Duration::from_us(1)),
                far.percent(Duration::from_ms(1))
            ),
            (0.0, 0.0, 100.0)
        );
        assert!((far.percent(Duration::from_ns(31_623)) - 50.0).abs() < 0.01);
    }

    #[test]
    fn marks_are_round_and_few() {
        for greatest in [0, 1, 7, 99, 12_345, 1_000_000, 777_777_777, u64::MAX] {
            for least in [1, greatest / 2] {
                let scale = Scale::new(ns(&[least, greatest]).into_iter());
                let marks = scale.marks();
                assert!((1..=MOST_MARKS).contains(&marks.len()), "{scale:?}: {marks:?}");
                assert!(marks.iter().all(|mark| (0.0..=100.0).contains(&scale.percent(*mark))));
            }
        }
        assert_eq!(
            Scale::linear(Duration::from_us(450)).marks(),
            ns(&[0, 100_000, 200_000, 300_000, 400_000])
        );
    }
}
