//! What the pictures of a comparison share: the logarithmic axis, labels and colours.

use super::configuration::Configuration;
use maud::{Markup, html};
use punctual_model::Duration;

/// Units of the drawing; it is scaled to the page.
pub(super) const WIDTH: f64 = 1_000.0;
pub(super) const LABELS: f64 = 230.0;
const RIGHT: f64 = 32.0;
pub(super) const HEAD: f64 = 20.0;
pub(super) const LINE: f64 = 16.0;
/// Of the style sheet.
const COLOURS: usize = 8;
/// As many letters of a label fit.
const LETTERS: usize = 34;

/// From the least to the greatest of all runs, by decades: what is short stays visible beside what is long.
pub(super) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    pub(super) fn new(values: impl Iterator<Item = Duration> + Clone) -> Axis {
        let least = values.clone().filter(|value| *value > Duration::ZERO).min();
        let greatest = values.max().unwrap_or(Duration::ZERO);
        let (least, greatest) = (least.map_or(1, Duration::ns), greatest.ns().max(1));
        let low = steps().take_while(|step| *step <= least as f64).last().unwrap_or(1.0);
        let high = steps().find(|step| *step >= greatest as f64 && *step > low).unwrap_or(low * 10.0);
        Axis { low, high }
    }

    /// What is shorter than the axis, like no time at all, lies at its begin.
    pub(super) fn place(&self, value: Duration) -> f64 {
        let part = (value.ns() as f64 / self.low).max(1.0).ln() / (self.high / self.low).ln();
        LABELS + part.min(1.0) * (WIDTH - LABELS - RIGHT)
    }

    /// Where there is something written: 1, 2, 5, 10, …, and of many decades each one alone.
    fn ticks(&self) -> Vec<Duration> {
        let is_long = self.high / self.low > 2_000.0;
        let within = steps().filter(|step| (self.low..=self.high).contains(step));
        let shown = within.filter(|step| !is_long || step.log10().fract().abs() < 1e-9);
        shown.map(|step| Duration::from_ns(step as u64)).collect()
    }

    /// A line for each tick from the head of a drawing down to `height`.
    pub(super) fn grid(&self, height: &str) -> Markup {
        html! {
            @for tick in self.ticks() {
                @let x = number(self.place(tick));
                line.grid-line x1=(x) x2=(x) y1=(HEAD) y2=(height) {}
                text.tick x=(x) y=(HEAD - 6.0) text-anchor="middle" { (tick) }
            }
        }
    }
}

/// 1, 2, 5, 10, … nanoseconds, as far as a duration goes.
fn steps() -> impl Iterator<Item = f64> {
    (0..=19).flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(decade)))
}

/// The name of a configuration at the left of its first line, whose middle is at `y`.
pub(super) fn label(configuration: &Configuration, y: f64) -> Markup {
    html! {
        text.label x="10" y=(number(y + 4.0)) {
            (shortened(&configuration.label))
            title { (configuration.label) }
        }
    }
}

/// The style of what belongs to a configuration.
pub(super) fn colour(configuration: usize) -> String {
    format!("c{}", configuration % COLOURS + 1)
}

fn shortened(label: &str) -> String {
    match label.chars().count() > LETTERS {
        true => label.chars().take(LETTERS - 1).chain(['…']).collect(),
        false => label.to_owned(),
    }
}

/// A tenth of a unit is less than a pixel.
pub(super) fn number(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: impl IntoIterator<Item = u64>) -> Axis {
        let values: Vec<Duration> = values.into_iter().map(Duration::from_ns).collect();
        Axis::new(values.into_iter())
    }

    #[test]
    fn an_axis_covers_all_values() {
        let axis = axis([0, 3_000, 70_000, 1_500, 5_000]);
        assert_eq!((axis.low, axis.high), (1_000.0, 100_000.0));
        assert_eq!(axis.place(Duration::ZERO), LABELS);
        assert_eq!(axis.place(Duration::from_ns(1_000)), LABELS);
        assert!(
            (axis.place(Duration::from_ns(10_000)) - (LABELS + (WIDTH - LABELS - RIGHT) / 2.0)).abs() < 1e-6
        );
        assert_eq!(axis.place(Duration::from_ns(100_000)), WIDTH - RIGHT);
        assert_eq!(
            axis.ticks().iter().map(|tick| tick.ns() / 1_000).collect::<Vec<_>>(),
            [1, 2, 5, 10, 20, 50, 100]
        );
    }

    #[test]
    fn an_axis_without_values_is_valid() {
        for value in [0, 7, u64::MAX] {
            let axis = axis([value]);
            assert!(axis.low < axis.high && !axis.ticks().is_empty(), "{value}");
            assert!(axis.place(Duration::from_ns(value)).is_finite());
        }
    }
}
