//! Figures on the page: heads that explain themselves, cells that sort.

use crate::figures::{Entry, Figure, Section, Unit};
use crate::text;
use maud::{Markup, html};

/// The entries that a table on the page has.
pub(crate) fn on_page<S: Section>(list: &'static [Entry<S>]) -> Vec<&'static Entry<S>> {
    list.iter().filter(|entry| entry.figure.page).collect()
}

/// The head of a column.
pub(crate) fn head(figure: &Figure) -> Markup {
    let Figure { title, symbol, meaning, unit, .. } = *figure;
    let is_ranked = unit.is_number() || unit == Unit::Ranked;
    let hint = match symbol {
        "" => meaning.to_owned(),
        symbol => format!("{symbol}: {meaning}"),
    };
    html! {
        th.figure[unit.is_number()] scope="col" data-ranked=[is_ranked.then_some("")] title=(hint) { (title) }
    }
}

/// A cell that is not the first of its row.
pub(crate) fn cell<S: Section>(entry: &Entry<S>, row: &S::Row<'_>) -> Markup {
    let unit = entry.figure.unit;
    let number = (entry.value)(row).and_then(|value| value.number());
    let text = text::cell(entry, row);
    html! {
        @if unit.is_number() || unit == Unit::Ranked {
            td.figure[unit.is_number()] data-v=[number] { (text) }
        } @else {
            td.notes[unit == Unit::Notes] { bdi { (text) } }
        }
    }
}

/// A table with a row for each of `rows`, in a frame that scrolls. Columns without a value are left out.
pub(crate) fn table<'a, S: Section + 'static>(
    list: &'static [Entry<S>],
    rows: impl Iterator<Item = S::Row<'a>>,
    label: &str,
) -> Markup {
    let rows: Vec<S::Row<'a>> = rows.collect();
    let has_value = |entry: &&Entry<S>| rows.iter().any(|row| (entry.value)(row).is_some());
    let shown: Vec<_> = on_page(list).into_iter().filter(has_value).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for entry in &shown { (head(&entry.figure)) } } }
                tbody {
                    @for row in &rows {
                        tr {
                            @for (index, entry) in shown.iter().enumerate() {
                                @if index == 0 {
                                    th scope="row" { bdi { (text::cell(entry, row)) } }
                                } @else {
                                    (cell(entry, row))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
