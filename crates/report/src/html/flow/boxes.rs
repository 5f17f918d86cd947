//! Box plots: least, quartiles and greatest of times, a row for each task or chain, and all on one axis.

use crate::html::scale::{Scale, percent};
use crate::number::counted;
use maud::{Markup, html};
use punctual_model::Duration;
use punctual_model::dataflow::Distribution;

/// More rows are left to the table.
pub(super) const MOST_ROWS: usize = 100;
const HEIGHT: u32 = 14;

/// A row of boxes.
pub(super) struct Row<'a> {
    pub(super) name: String,
    /// Where the numbers are there.
    pub(super) boxes: [Option<&'a Distribution>; 2],
}

/// What the two boxes of each row are.
pub(super) struct Kinds {
    pub(super) names: [&'static str; 2],
    pub(super) classes: [&'static str; 2],
}

/// The figure; its caption says what the axis is, since that differs from page to page.
pub(super) fn figure(title: &str, rows: &[Row], kinds: &Kinds, caption: &str) -> Markup {
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    let values = shown
        .iter()
        .flat_map(|row| row.boxes.into_iter().flatten())
        .flat_map(|found| [found.min_ns, found.quartile_1_ns, found.max_ns]);
    let scale = Scale::new(values);
    let left_out = rows.len() - shown.len();
    html! {
        figure.wide {
            h4 { (title) }
            p.key {
                @for (name, class) in kinds.names.iter().zip(&kinds.classes) {
                    svg.sample width="32" height="14" aria-hidden="true" {
                        g class=(class) { rect.quartiles x="2" y="1" width="28" height="12" {} }
                    }
                    (name) ". "
                }
            }
            (scale.axis())
            ol.rows {
                @for row in shown {
                    li {
                        span { bdi { (row.name) } }
                        svg.boxes height=(2 * HEIGHT + 8) aria-hidden="true" {
                            (scale.grid())
                            @for (index, found) in row.boxes.into_iter().enumerate() {
                                @if let Some(found) = found {
                                    @let top = 2 + index as u32 * (HEIGHT + 4);
                                    g class=(kinds.classes[index]) { (plot(found, &scale, top)) }
                                }
                            }
                        }
                    }
                }
            }
            (scale.axis())
            @if left_out > 0 { p.missing { (counted(left_out as u64, "row")) " more in the table." } }
            figcaption {
                "A box reaches from the first to the third quartile, the line in it is the median; whiskers \
                 reach to the least and the greatest. "
                @if scale.is_log { "The axis is logarithmic" @if has_zero(shown) { "; zero lies at its left \
                 end" } ". " }
                (caption)
            }
        }
    }
}

fn has_zero(rows: &[Row]) -> bool {
    rows.iter().flat_map(|row| row.boxes.into_iter().flatten()).any(|found| found.min_ns == Duration::ZERO)
}

fn plot(found: &Distribution, scale: &Scale, top: u32) -> Markup {
    let [min, first, median, third, max] =
        [found.min_ns, found.quartile_1_ns, found.median_ns, found.quartile_3_ns, found.max_ns]
            .map(|value| scale.percent(value));
    let middle = top + HEIGHT / 2;
    let (low, high) = (top + 3, top + HEIGHT - 3);
    html! {
        line x1=(percent(min)) x2=(percent(first)) y1=(middle) y2=(middle) {}
        line x1=(percent(third)) x2=(percent(max)) y1=(middle) y2=(middle) {}
        line.end x1=(percent(min)) x2=(percent(min)) y1=(low) y2=(high) {}
        line.end x1=(percent(max)) x2=(percent(max)) y1=(low) y2=(high) {}
        rect.quartiles x=(percent(first)) y=(top) width=(percent((third - first).max(0.1))) height=(HEIGHT) {}
        line.median x1=(percent(median)) x2=(percent(median)) y1=(top) y2=(top + HEIGHT) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_lie_where_the_quartiles_are() {
        let us = Duration::from_us;
        let found = Distribution {
            count: 9,
            min_ns: us(100),
            quartile_1_ns: us(200),
            median_ns: us(300),
            quartile_3_ns: us(500),
            max_ns: us(1_000),
            mean_ns: None,
            p99_ns: None,
            p95_ns: None,
            p999_ns: None,
            histogram: Vec::new(),
        };
        let rows = [Row { name: "a<b".into(), boxes: [Some(&found), None] }];
        let page = figure(
            "Times",
            &rows,
            &Kinds { names: ["one", "two"], classes: ["one", "two"] },
            "What it means.",
        )
        .into_string();
        assert!(page.contains(r#"<rect class="quartiles" x="20%" y="2" width="30%" height="14">"#), "{page}");
        assert!(
            page.contains(r#"<line class="median" x1="30%" x2="30%""#)
                && page.contains(r#"<line x1="50%" x2="100%""#),
            "{page}"
        );
        assert!(page.contains("a&lt;b") && !page.contains("logarithmic"));
    }

    #[test]
    fn rows_without_values_and_omitted_rows_are_mentioned() {
        let rows: Vec<Row> =
            (0..MOST_ROWS + 2).map(|row| Row { name: format!("task {row}"), boxes: [None, None] }).collect();
        let page = figure("Times", &rows, &Kinds { names: ["one", "two"], classes: ["one", "two"] }, "")
            .into_string();
        assert!(page.contains("2 rows more in the table"));
    }
}
