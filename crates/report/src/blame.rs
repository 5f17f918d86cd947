//! Which run of several each extreme is from, as a table: a row for each figure of a task, however often the
//! run changes along a curve.

use crate::figures::Fit;
use crate::number::few;
use crate::table::{Column, Table, Tone, figures, words};
use crate::{Page, visible};
use punctual_model::{Duration, Separator};
use std::cmp::Reverse;

/// An extreme of a task that several runs have.
pub struct Blame {
    /// The task's name.
    pub task: String,
    /// Its number in the timing model.
    pub number: u32,
    /// The stream.
    pub separator: Separator,
    /// What is extreme, without numbers of jobs or releases.
    pub figure: &'static str,
    /// The first and the last of the numbers in a row whose values are from the run.
    pub range: Option<(usize, usize)>,
    /// Both, in words.
    pub what: String,
    /// Its value.
    pub value: Duration,
    /// The first of the runs that have it.
    pub run: String,
}

const COLUMNS: [Column; 6] = [
    words("Task", Fit::Keep),
    figures("Number", Fit::Drop(1)),
    words("Separator", Fit::Drop(2)),
    words("Extreme", Fit::Keep),
    figures("Value", Fit::Keep),
    words("Run", Fit::Keep),
];

/// The table; a line that says so if no task is in several runs.
pub fn text(extremes: &[Blame], page: &Page) -> String {
    if extremes.is_empty() {
        return "No task is in several runs: nothing to blame.\n".to_owned();
    }
    let mut table = Table::new(&COLUMNS);
    let row = |all: &[Blame]| {
        let (it, last) = (all.first()?, all.last()?);
        let what = match (it.range, last.range) {
            (Some((from, _)), Some((_, until))) if all.len() > 1 => format!("{}({from}..{until})", it.figure),
            _ => it.what.clone(),
        };
        let cells = [
            visible(&it.task),
            it.number.to_string(),
            it.separator.to_string(),
            what,
            last.value.to_string(),
            if all.len() > 1 { runs(all) } else { visible(&it.run) },
        ];
        Some(cells.into_iter().map(|cell| (cell, Tone::Plain)).collect())
    };
    let figures = extremes.chunk_by(|one, next| {
        (one.number, one.separator, one.figure) == (next.number, next.separator, next.figure)
    });
    table.rows = figures.filter_map(row).collect();
    table.text(page)
}

/// Runs of a curve, and ranges of each, that are named.
const RUNS: usize = 3;
const RANGES: usize = 2;

/// The runs of a curve with their ranges: those with most values first.
fn runs(all: &[Blame]) -> String {
    let mut runs: Vec<(&str, Vec<(usize, usize)>)> = Vec::new();
    for it in all {
        match runs.iter_mut().find(|(run, _)| *run == it.run) {
            Some((_, ranges)) => ranges.extend(it.range),
            None => runs.push((&it.run, it.range.into_iter().collect())),
        }
    }
    let values =
        |ranges: &[(usize, usize)]| ranges.iter().map(|(from, until)| until - from + 1).sum::<usize>();
    runs.sort_by_key(|(_, ranges)| Reverse(values(ranges)));
    let range = |(from, until): &(usize, usize)| match from == until {
        true => from.to_string(),
        false => format!("{from}..{until}"),
    };
    let of_run = |(run, ranges): &(&str, Vec<(usize, usize)>)| {
        let named = few(&ranges.iter().map(range).collect::<Vec<_>>(), RANGES, " and ");
        format!("{} ({named})", visible(run))
    };
    few(&runs.iter().map(of_run).collect::<Vec<_>>(), RUNS, ", and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_one_row() {
        let of = |figure, range, run: &str| Blame {
            task: "ctl".into(),
            number: 1,
            separator: Separator::SUSPENSION,
            figure,
            range,
            what: format!(
                "{figure}{}",
                range.map_or("".into(), |(from, until)| format!("({from}..{until})"))
            ),
            value: Duration::from_us(7),
            run: run.into(),
        };
        let mut all = vec![of("jitter", None, "monday"), of("WCET", Some((1, 9)), "monday")];
        let ends = [10, 11, 12, 13, 14];
        for (end, run) in ends.into_iter().zip(["tuesday", "friday", "tuesday", "saturday", "sunday"]) {
            all.push(of("WCET", Some((end, end)), run));
        }
        all.push(of("WCET", Some((15, 16)), "tuesday"));
        all.push(of("least span", Some((2, 5)), "friday"));
        let text = text(&all, &Page::default());
        let cells = |line: &str| {
            line.split("  ").filter(|it| !it.is_empty()).map(str::trim).collect::<Vec<_>>().join("|")
        };
        let rows: Vec<String> = text.lines().skip(1).map(cells).collect();
        assert_eq!(rows.len(), 3, "{text}");
        assert!(rows[0].ends_with("|jitter|7 µs|monday"), "{text}");
        let wcet = "|WCET(1..16)|7 µs|monday (1..9), tuesday (10, 12 and 1 more), friday (11), and 2 more";
        assert!(rows[1].ends_with(wcet), "{text}");
        assert!(rows[2].ends_with("|least span(2..5)|7 µs|friday"), "{text}");
    }
}
