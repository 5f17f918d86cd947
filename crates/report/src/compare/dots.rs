//! Figures without distributions as SVG: a dot for each run, a line for each configuration, so that the eye
//! sees whether the runs of two configurations overlap.

use super::axis::{Axis, HEAD, LABELS, LINE, WIDTH, colour, label, number};
use super::comparison::Comparison;
use super::figures::{Row, Section};
use crate::figures::{Figure, Unit};
use maud::{Markup, html};
use punctual_model::Duration;

/// A figure, and its place in the table.
type Placed = (usize, &'static Figure);

/// The pictures of a table, one for each row; none if it has no times of which less is better.
pub(super) fn plot(comparison: &Comparison, section: &Section) -> Option<Markup> {
    let figures: Vec<Placed> = section
        .table
        .figures()
        .into_iter()
        .enumerate()
        .filter(|(_, figure)| figure.unit != Unit::Count && section.table.less_is_better(figure))
        .collect();
    let runs = comparison.names.len();
    let times = |row: &'_ Row, place: usize| -> Vec<Duration> {
        (0..runs).filter_map(|run| row.value(run, place)).map(Duration::from_ns).collect()
    };
    let of_row = |row| figures.iter().flat_map(move |(place, _)| times(row, *place)).collect::<Vec<_>>();
    let all: Vec<Duration> = section.rows.iter().flat_map(of_row).collect();
    if all.is_empty() {
        return None;
    }
    let axis = Axis::new(all.into_iter());
    Some(html! {
        div.scroll {
            @for row in &section.rows {
                @let shown = shown(row, &figures, runs);
                @if !shown.is_empty() { (picture(comparison, section, row, &shown, &axis)) }
            }
        }
    })
}

/// The figures that any run has.
fn shown(row: &Row, figures: &[Placed], runs: usize) -> Vec<Placed> {
    let is_shown = |(place, _): &&Placed| (0..runs).any(|run| row.value(run, *place).is_some());
    figures.iter().filter(is_shown).copied().collect()
}

fn picture(comparison: &Comparison, section: &Section, row: &Row, figures: &[Placed], axis: &Axis) -> Markup {
    let block = LINE * (comparison.configurations.len() + 1) as f64;
    let height = number(HEAD + HEAD + block * figures.len() as f64);
    html! {
        svg.boxes viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
            aria-label={ "Runs: " (section.table.title) ", " (row.name) } {
            (axis.grid(&height))
            text.name x="0" y=(number(HEAD + HEAD - 6.0)) { (row.name) }
            @for (number_of_it, (place, figure)) in figures.iter().enumerate() {
                @let top = HEAD + HEAD + block * number_of_it as f64;
                text.label x="5" y=(number(top + LINE / 2.0 + 4.0)) { (figure.title) }
                @for (line, configuration) in comparison.configurations.iter().enumerate() {
                    @let y = top + LINE * (line + 1) as f64 + LINE / 2.0;
                    (label(configuration, y))
                    @let dots: Vec<(usize, u64)> = configuration.runs.iter()
                        .filter_map(|run| Some((*run, row.value(*run, *place)?))).collect();
                    @if dots.is_empty() { text.absent x=(LABELS) y=(number(y + 4.0)) { "missing" } }
                    g class=(colour(line)) {
                        @for (run, value) in dots {
                            @let value = Duration::from_ns(value);
                            circle cx=(number(axis.place(value))) cy=(number(y)) r="4" {
                                title { (comparison.names[run]) ": " (value) }
                            }
                        }
                    }
                }
            }
        }
    }
}
