//! Box plots as SVG: a box for each run, the runs of a configuration together, so that the eye sees their
//! spread beside their difference.

use super::comparison::Comparison;
use super::figures::{Row, Section};
use crate::flow::cells;
use maud::{Markup, html};
use punctual_model::Duration;
use punctual_model::dataflow::Distribution;

/// Units of the drawing; it is scaled to the page.
const WIDTH: f64 = 1_000.0;
const LABELS: f64 = 230.0;
const RIGHT: f64 = 32.0;
const HEAD: f64 = 20.0;
const LINE: f64 = 16.0;
/// Of the style sheet.
const COLOURS: usize = 8;
/// As many letters of a label fit.
const LETTERS: usize = 34;

/// From the least to the greatest of all runs, by decades: what is short stays visible beside what is long.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn new<'a>(all: impl Iterator<Item = &'a Distribution> + Clone) -> Axis {
        let least = all
            .clone()
            .flat_map(|distribution| [distribution.min_ns, distribution.median_ns, distribution.max_ns])
            .filter(|value| *value > Duration::ZERO)
            .min();
        let greatest = all.map(|distribution| distribution.max_ns).max().unwrap_or(Duration::ZERO);
        let (least, greatest) = (least.map_or(1, Duration::ns), greatest.ns().max(1));
        let low = steps().take_while(|step| *step <= least as f64).last().unwrap_or(1.0);
        let high = steps().find(|step| *step >= greatest as f64 && *step > low).unwrap_or(low * 10.0);
        Axis { low, high }
    }

    /// What is shorter than the axis, like no time at all, lies at its begin.
    fn place(&self, value: Duration) -> f64 {
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
}

/// 1, 2, 5, 10, … nanoseconds, as far as a duration goes.
fn steps() -> impl Iterator<Item = f64> {
    (0..=19).flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(decade)))
}

/// The plot of a table; nothing where it is not about distributions.
pub(super) fn plot(comparison: &Comparison, section: &Section) -> Option<Markup> {
    let all = section
        .rows
        .iter()
        .flat_map(|row| row.runs.iter().flatten().filter_map(|sample| sample.distribution.as_ref()));
    all.clone().next()?;
    let axis = Axis::new(all);
    let height = number(HEAD + HEAD + LINE * comparison.names.len() as f64 + 4.0);
    let title = section.table.title;
    Some(html! {
        div.scroll {
            // A drawing for each, which a printed page does not have to break.
            @for row in &section.rows {
                svg.boxes viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
                    aria-label={ "Box plots: " (title) ", " (row.name) } {
                    @for tick in axis.ticks() {
                        @let x = number(axis.place(tick));
                        line.grid-line x1=(x) x2=(x) y1=(HEAD) y2=(height) {}
                        text.tick x=(x) y=(HEAD - 6.0) text-anchor="middle" { (tick) }
                    }
                    (boxes(comparison, row, &axis, HEAD))
                }
            }
        }
    })
}

/// A task or chain: its name, and below that all its runs.
fn boxes(comparison: &Comparison, row: &Row, axis: &Axis, top: f64) -> Markup {
    let runs = comparison.configurations.iter().enumerate().flat_map(|(number, configuration)| {
        let of_it = configuration.runs.iter().enumerate();
        of_it.map(move |(place, run)| (number, configuration, place == 0, *run))
    });
    html! {
        text.name x="0" y=(number(top + HEAD - 6.0)) { (row.name) }
        @for (line, (number_of_it, configuration, is_first, run)) in runs.enumerate() {
            @let y = top + HEAD + LINE * line as f64 + LINE / 2.0;
            @if is_first {
                text.label x="10" y=(number(y + 4.0)) {
                    (shortened(&configuration.label))
                    title { (configuration.label) }
                }
            }
            @match row.runs[run].as_ref() {
                Some(sample) => {
                    @if let Some(distribution) = &sample.distribution {
                        (drawn(distribution, axis, y, number_of_it, &comparison.names[run]))
                    } @else {
                        text.absent x=(LABELS) y=(number(y + 4.0)) { "nothing measured" }
                    }
                }
                None => text.absent x=(LABELS) y=(number(y + 4.0)) { "missing" },
            }
        }
    }
}

fn drawn(distribution: &Distribution, axis: &Axis, y: f64, configuration: usize, run: &str) -> Markup {
    let Distribution { count, min_ns, quartile_1_ns, median_ns, quartile_3_ns, max_ns, .. } = distribution;
    let at = |value: &Duration| axis.place(*value);
    let (low, high) = (at(quartile_1_ns), at(quartile_3_ns));
    let [least, first, median, third, greatest] = cells(distribution);
    let spoken =
        format!("{run}: min {least}, quartiles {first}, {median}, {third}, max {greatest}, of {count}");
    html! {
        g class={ "c" (configuration % COLOURS + 1) } {
            title { (spoken) }
            line x1=(number(at(min_ns))) x2=(number(at(max_ns))) y1=(number(y)) y2=(number(y)) {}
            @for end in [at(min_ns), at(max_ns)] {
                line x1=(number(end)) x2=(number(end)) y1=(number(y - 3.0)) y2=(number(y + 3.0)) {}
            }
            // A box without any width would not be seen.
            rect x=(number(low)) y=(number(y - 5.0)) width=(number((high - low).max(1.0))) height="10" {}
            @let x = number(at(median_ns));
            line.median x1=(x) x2=(x) y1=(number(y - 5.0)) y2=(number(y + 5.0)) {}
        }
    }
}

fn shortened(label: &str) -> String {
    match label.chars().count() > LETTERS {
        true => label.chars().take(LETTERS - 1).chain(['…']).collect(),
        false => label.to_owned(),
    }
}

/// A tenth of a unit is less than a pixel.
fn number(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(ends: [u64; 5]) -> Distribution {
        let [min_ns, quartile_1_ns, median_ns, quartile_3_ns, max_ns] = ends.map(Duration::from_ns);
        let (mean_ns, p99_ns) = (None, None);
        let (p95_ns, p999_ns, histogram) = (None, None, Vec::new());
        Distribution {
            count: 5,
            min_ns,
            quartile_1_ns,
            median_ns,
            quartile_3_ns,
            max_ns,
            mean_ns,
            p95_ns,
            p99_ns,
            p999_ns,
            histogram,
        }
    }

    #[test]
    fn an_axis_covers_all_values() {
        let all =
            [distribution([0, 0, 3_000, 4_000, 70_000]), distribution([1_500, 2_000, 3_000, 4_000, 5_000])];
        let axis = Axis::new(all.iter());
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
        for ends in [[0; 5], [7; 5], [u64::MAX; 5]] {
            let axis = Axis::new([distribution(ends)].iter());
            assert!(axis.low < axis.high && !axis.ticks().is_empty(), "{ends:?}");
            assert!(axis.place(Duration::from_ns(ends[4])).is_finite());
        }
    }
}
