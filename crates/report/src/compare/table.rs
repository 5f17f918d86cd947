//! The comparison as text: the verdict, who is compared, tables, what the marks mean, and the decisions.

use super::comparison::Comparison;
use super::configuration::{By, Value, varies};
use super::figures::{self as compared, Row, Section};
use super::range::{Difference, RUNS_FOR_SPREAD, Whole, one_chance_in};
use super::verdict;
use crate::figures::{Figure, Fit};
use crate::number::{count, counted};
use crate::table::{Column, Table, Tone, figures, words};
use crate::{Page, paragraph};

pub(super) fn text(comparison: &Comparison, page: &Page) -> String {
    let mut text = paragraphs(&verdict::sentences(comparison), page);
    text += &paragraphs(&introduction(comparison), page);
    text += &configurations(comparison).text(page);
    let decisions = super::decisions::all(comparison);
    if !decisions.is_empty() {
        text += "\nDecisions\n";
        text += &paragraphs(&decisions, page);
    }
    for section in &comparison.sections {
        text += &format!("\n{}\n", section.table.title);
        if section.rows.is_empty() {
            text += "None.\n";
            continue;
        }
        text += &fitted(comparison, section, page);
    }
    text += "\n";
    text += &paragraphs(&legend(comparison), page);
    text
}

fn paragraphs(all: &[String], page: &Page) -> String {
    all.iter().map(|text| paragraph(text, page)).collect()
}

/// How many of what, and what they have in common.
pub(super) fn introduction(comparison: &Comparison) -> Vec<String> {
    let all = &comparison.configurations;
    let mut text = vec![format!(
        "{} in {}.",
        counted(comparison.names.len() as u64, "run"),
        counted(all.len() as u64, "configuration")
    )];
    let same = By::PROPERTIES
        .into_iter()
        .filter(|by| matches!(all[0].value(*by), Value::Known(_)) && !varies(all, *by));
    let same: Vec<String> = same.map(|by| by.words(all[0].value(by))).collect();
    if !same.is_empty() {
        text[0] += &format!(" The same in all: {}.", same.join(", "));
    }
    for configuration in all {
        let mixed = By::PROPERTIES.into_iter().filter(|by| *configuration.value(*by) == Value::Mixed);
        let mixed: Vec<&str> = mixed.map(By::name).collect();
        if !mixed.is_empty() {
            let (label, mixed) = (&configuration.label, mixed.join(" and "));
            text.push(format!(
                "The runs of {label} differ in {mixed}, so their spread is more than that of repeated runs."
            ));
        }
    }
    text.extend(comparison.arrivals.iter().cloned());
    text.extend(comparison.lacking.iter().cloned());
    text.extend(alone(comparison));
    if comparison.grouping.is_assumed {
        text.push(
            "Each file is a configuration of its own: models of threads do not say which are repeated runs. \
             With the runs of each configuration in a folder of its own, --by folder puts those together."
                .into(),
        );
    } else if all.len() == 1 {
        text.push(
            "These are runs of a single configuration; --by file compares them with each other.".into(),
        );
    }
    text
}

/// Which runs are configurations of their own, and why.
fn alone(comparison: &Comparison) -> Option<String> {
    let alone: Vec<_> = comparison.configurations.iter().filter(|it| it.is_alone).collect();
    let is_unknown = |by: &By| alone.iter().any(|it| *it.value(*by) == Value::Unknown);
    let by = By::PROPERTIES.into_iter().filter(|by| comparison.grouping.by.contains(by));
    let unknown: Vec<&str> = by.filter(is_unknown).map(By::name).collect();
    (!alone.is_empty()).then(|| {
        format!(
            "Of {}, it is not known of which {}: each is a configuration of its own. --by groups them by \
             something else, such as --by folder.",
            counted(alone.len() as u64, "run"),
            unknown.join(" and "),
        )
    })
}

/// Who is compared.
pub(super) fn configurations(comparison: &Comparison) -> Table {
    let mut table = Table::new(&[
        words("Configuration", Fit::Keep),
        figures("Runs", Fit::Keep),
        words("Inputs", Fit::Fold),
    ]);
    for configuration in &comparison.configurations {
        let mut names: Vec<&str> =
            configuration.runs.iter().map(|run| comparison.names[*run].as_str()).collect();
        // In whatever order they were given, they are the same runs.
        names.sort_unstable();
        let row = [configuration.label.clone(), count(names.len() as u64), names.join(", ")];
        table.rows.push(row.map(|cell| (cell, Tone::Plain)).to_vec());
    }
    table
}

const RUNS: &str = "(runs)";
const TO_FIRST: &str = "(to first)";

/// The table of a section. Differences that do not fit beside the figures go below them.
fn fitted(comparison: &Comparison, section: &Section, page: &Page) -> String {
    let wide = section_table(comparison, section);
    let differences_fit = !wide.print(page).1.contains(&TO_FIRST);
    if differences_fit || section.table.difference_fit == Fit::Keep {
        return wide.text(page);
    }
    let mut text = stacked_table(comparison, section).text(page);
    if comparison.names.len() > comparison.configurations.len() {
        text += &paragraph(&format!("(not shown at this width: {RUNS})"), page);
    }
    text
}

/// Below the row of each configuration but the first, its differences.
fn stacked_table(comparison: &Comparison, section: &Section) -> Table {
    let layout = section.table;
    let mut columns = vec![words(layout.row, layout.row_fit), words("Configuration", Fit::Fold)];
    columns.extend(layout.figures().into_iter().map(|figure| figures(figure.title, fit(figure))));
    columns.push(words("Notes", Fit::Below));
    let mut table = Table::new(&columns);
    let plain = |text: &str| (text.to_owned(), Tone::Plain);
    for row in &section.rows {
        for number in 0..comparison.configurations.len() {
            let mut cells = line(comparison, section, row, number).into_iter();
            let mut values: Vec<_> = cells.by_ref().take(2).collect();
            let mut differences = vec![plain(""), plain(TO_FIRST)];
            for _ in layout.figures() {
                values.extend(cells.next());
                cells.next();
                differences.extend(cells.next());
            }
            values.extend(cells);
            differences.push(plain(""));
            let differ = differences[2..].iter().any(|(text, _)| !text.is_empty());
            table.rows.push(values);
            table.rows.extend(differ.then_some(differences));
        }
    }
    table
}

/// Of three, the least matters least.
fn fit(figure: &Figure) -> Fit {
    match compared::whole(figure) == Whole::Least || figure.sparse {
        true => Fit::Drop(1),
        false => Fit::Keep,
    }
}

/// A row for each configuration of each task, chain or thread.
pub(super) fn section_table(comparison: &Comparison, section: &Section) -> Table {
    let layout = section.table;
    let mut columns: Vec<Column> = vec![words(layout.row, layout.row_fit), words("Configuration", Fit::Fold)];
    for figure in layout.figures() {
        let fit_of_difference = match fit(figure) {
            Fit::Keep => layout.difference_fit,
            _ => Fit::Drop(2),
        };
        columns.extend([
            figures(figure.title, fit(figure)),
            figures(RUNS, Fit::Drop(3)),
            figures(TO_FIRST, fit_of_difference),
        ]);
    }
    columns.push(words("Notes", Fit::Fold));
    let mut table = Table::new(&columns);
    for row in &section.rows {
        for number in 0..comparison.configurations.len() {
            table.rows.push(line(comparison, section, row, number));
        }
    }
    table
}

fn line(comparison: &Comparison, section: &Section, row: &Row, number: usize) -> Vec<(String, Tone)> {
    let (first, configuration) = (&comparison.configurations[0], &comparison.configurations[number]);
    let name = if number == 0 { row.name.clone() } else { String::new() };
    let mut cells = vec![(name, Tone::Plain), (configuration.label.clone(), Tone::Plain)];
    let present = row.present(configuration);
    for (index, figure) in section.table.figures().iter().enumerate() {
        let (Some(range), before) =
            (row.range(configuration, index, figure), row.range(first, index, figure).filter(|_| number > 0))
        else {
            let absent = if figure.sparse { "" } else { "–" };
            cells.extend([absent, "", ""].map(|cell| (cell.to_owned(), Tone::Plain)));
            continue;
        };
        cells.push((compared::value(figure, &range), Tone::Plain));
        cells.push((compared::spread(figure, &range), Tone::Plain));
        cells.push(before.map_or((String::new(), Tone::Plain), |before| {
            difference_cell(section, figure, &Difference::new(&before, &range))
        }));
    }
    let note = match present {
        0 => "missing".to_owned(),
        _ if present < configuration.runs.len() => {
            format!("in {present} of {}", counted(configuration.runs.len() as u64, "run"))
        }
        _ => String::new(),
    };
    cells.push((note, Tone::Warning));
    cells
}

/// Shorter times are better; a period is neither.
fn difference_cell(section: &Section, figure: &Figure, difference: &Difference) -> (String, Tone) {
    let text = difference.text();
    let tone = match section.table.less_is_better(figure) && difference.is_marked {
        false => Tone::Plain,
        true if text.starts_with('▼') => Tone::Good,
        true => Tone::Bad,
    };
    (text, tone)
}

/// What the columns and marks mean, of those that are there.
pub(super) fn legend(comparison: &Comparison) -> Vec<String> {
    let all = &comparison.configurations;
    let mut text = Vec::new();
    if comparison.names.len() > all.len() {
        text.push(
            "Over several runs, an upper bound is the greatest, a lower bound the least, any other \
                   figure the middle one (of two, the lower). (runs): the spread, from the least to the \
                   greatest of the runs."
                .into(),
        );
    }
    if all.len() < 2 {
        return text;
    }
    text.push(format!("(to first): difference from {}.", all[0].label));
    if comparison.has_spreads() {
        text.push(format!(
            "▲ ▼: more than the spread: the ranges over the runs do not overlap. {} \
             Where a configuration has fewer than {RUNS_FOR_SPREAD} runs, nothing is marked.",
            chance(comparison)
        ));
    } else {
        text.push(format!(
            "Differences are not marked, since each of them may be chance: \
             a mark takes at least {RUNS_FOR_SPREAD} runs of both configurations."
        ));
    }
    text.extend(comparison.sections.iter().filter_map(|section| section.table.remark).map(str::to_owned));
    text
}

/// What a mark is worth with so few runs.
fn chance(comparison: &Comparison) -> String {
    let mut runs: Vec<usize> = comparison
        .configurations
        .iter()
        .map(|configuration| configuration.runs.len())
        .filter(|runs| *runs >= RUNS_FOR_SPREAD)
        .collect();
    runs.sort_unstable();
    let (few, more) = (runs[0], runs[1]);
    let cases = one_chance_in(few, more);
    let cases = if cases < 1e6 { count(cases.round() as u64) } else { "more than a million".into() };
    format!(
        "Where nothing differs, chance marks one figure in {cases} with {few} and {more} runs, fewer with \
         more runs."
    )
}
