//! When deadlines of chains were missed.

use super::since;
use crate::number::count;
use crate::{Page, paragraph, visible};
use punctual_conformance::Verdict;
use punctual_model::Instant;

/// A line for each deadline that was missed: the first times, counted from the beginning of the trace, and
/// how many there were.
pub fn misses(verdict: &Verdict, begin: Instant, page: &Page) -> String {
    let mut text = String::new();
    for tally in &verdict.tallies {
        for standing in tally.standings.iter().filter(|standing| standing.violations > 0) {
            let subjects = standing.examples.iter().filter_map(|miss| miss.subject.as_ref());
            let times: Vec<String> = subjects.map(|it| since(begin, it.release)).collect();
            let more = match standing.violations - times.len() as u64 {
                0 => String::new(),
                more => format!(", and {} more", count(more)),
            };
            let line = format!(
                "{}: {} missed by data from {}{more}.",
                visible(&tally.task),
                standing.term.name().replace('_', " "),
                times.join(", ")
            );
            text += &paragraph(&line, page);
        }
    }
    text
}
