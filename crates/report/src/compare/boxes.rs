//! Box plots as SVG: a box for each run, the runs of a configuration together, so that the eye sees their
//! spread beside their difference.

use super::axis::{Axis, HEAD, LABELS, LINE, WIDTH, colour, label, number};
use super::comparison::Comparison;
use super::figures::{Row, Section};
use crate::flow::cells;
use maud::{Markup, html};
use punctual_model::Duration;
use punctual_model::dataflow::Distribution;

/// The plot of a table; nothing where it is not about distributions.
pub(super) fn plot(comparison: &Comparison, section: &Section) -> Option<Markup> {
    let all = section
        .rows
        .iter()
        .flat_map(|row| row.runs.iter().flatten().filter_map(|sample| sample.distribution.as_ref()));
    all.clone().next()?;
    let ends = |it: &Distribution| [it.min_ns, it.median_ns, it.max_ns];
    let axis = Axis::new(all.flat_map(ends));
    let height = number(HEAD + HEAD + LINE * comparison.names.len() as f64 + 4.0);
    let title = section.table.title;
    Some(html! {
        div.scroll {
            // A drawing for each, which a printed page does not have to break.
            @for row in &section.rows {
                svg.boxes viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
                    aria-label={ "Box plots: " (title) ", " (row.name) } {
                    (axis.grid(&height))
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
            @if is_first { (label(configuration, y)) }
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
        g class=(colour(configuration)) {
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
