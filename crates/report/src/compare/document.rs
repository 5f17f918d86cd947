//! The page: the verdict and decisions first, then for each kind of time its pictures and its table. Its only
//! script is the one for light and dark, and it loads nothing.

use super::comparison::Comparison;
use super::{boxes, decisions, dots, table};
use crate::html::{THEME, head, theme};
use crate::table::{Table, Tone};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLES: [&str; 2] = [include_str!("../html/assets/page.css"), include_str!("compare.css")];

pub(super) fn page(comparison: &Comparison) -> String {
    let labels: Vec<&str> =
        comparison.configurations.iter().map(|configuration| configuration.label.as_str()).collect();
    let title = format!("Compared: {}", labels.join("; "));
    let decisions = decisions::all(comparison);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title, &STYLES, &[THEME]))
            body {
                header.page { div.headline { h1 { (title) } (theme()) } }
                (contents(comparison, !decisions.is_empty()))
                main {
                    @if !comparison.verdicts.is_empty() {
                        section #verdict {
                            h2 { "Verdict" }
                            (paragraphs(&comparison.verdict()))
                        }
                    }
                    section #compared {
                        h2 { "What is compared" }
                        (paragraphs(&table::introduction(comparison)))
                        (grid(&table::configurations(comparison)))
                        (paragraphs(&table::legend(comparison)))
                    }
                    @if !decisions.is_empty() {
                        section #decisions {
                            h2 { "Decisions" }
                            (paragraphs(&decisions))
                        }
                    }
                    @for section in &comparison.sections {
                        section id=(section.table.field) {
                            h2 { (section.table.title) }
                            @if section.rows.is_empty() {
                                p { "None." }
                            } @else {
                                @if let Some(plot) = boxes::plot(comparison, section) {
                                    figure {
                                        (plot)
                                        figcaption {
                                            "A box for each run: from the first to the third quartile, with \
                                                the median; the line reaches from the least to the \
                                                greatest. "
                                            "The axis is logarithmic."
                                        }
                                    }
                                } @else if let Some(plot) = dots::plot(comparison, section) {
                                    figure {
                                        (plot)
                                        figcaption {
                                            "A dot for each run. The axis is logarithmic."
                                        }
                                    }
                                }
                                (grid(&table::section_table(comparison, section)))
                            }
                        }
                    }
                }
                footer { p { "Made by punctual compare " (env!("CARGO_PKG_VERSION")) "." } }
                script { (PreEscaped(THEME)) }
            }
        }
    };
    markup.into_string()
}

fn contents(comparison: &Comparison, has_decisions: bool) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ol {
                @if !comparison.verdicts.is_empty() { li { a href="#verdict" { "Verdict" } } }
                li { a href="#compared" { "What is compared" } }
                @if has_decisions { li { a href="#decisions" { "Decisions" } } }
                @for section in &comparison.sections {
                    li { a href={ "#" (section.table.field) } { (section.table.title) } }
                }
            }
        }
    }
}

fn paragraphs(all: &[String]) -> Markup {
    html! { @for text in all { p { (text) } } }
}

/// The same cells as the text's. A row that begins with a name begins a task or chain.
fn grid(table: &Table) -> Markup {
    let is_shown = |index: usize| table.rows.iter().any(|row| !row[index].0.is_empty());
    let shown: Vec<usize> = (0..table.columns.len()).filter(|index| is_shown(*index)).collect();
    html! {
        div.scroll {
            table {
                thead { tr {
                    @for column in shown.iter().map(|&index| &table.columns[index]) {
                        th.figure[column.right] scope="col" { (column.title) }
                    }
                } }
                tbody {
                    @for row in &table.rows {
                        tr.begin[!row[0].0.is_empty()] {
                            @for &index in &shown {
                                @let (text, tone) = &row[index];
                                @if index == 0 {
                                    th scope="row" { (text) }
                                } @else {
                                    @let is_figure = table.columns[index].right;
                                    td.figure[is_figure].good[*tone == Tone::Good].bad[*tone == Tone::Bad] {
                                        (text)
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
