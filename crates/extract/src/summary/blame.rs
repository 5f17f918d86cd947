//! Which run each extreme is from.

use super::Summary;
use super::curve::Extreme;
use super::stream::StreamSummary;
use punctual_model::{Duration, Separator};

/// An extreme of a task that several runs have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The task's name.
    pub task: String,
    /// Its number in the timing model (`tid`).
    pub number: u32,
    /// The stream.
    pub separator: Separator,
    /// What is extreme: `jitter`, `WCET`.
    pub figure: &'static str,
    /// For which numbers of jobs or releases, if it has a value for each: first and last of some in a row
    /// that are from one run.
    pub range: Option<(usize, usize)>,
    /// Its value, the last one of several.
    pub value: Duration,
    /// The first of the runs that have it.
    pub run: String,
}

impl Blame {
    /// What is extreme, in words: `jitter`, `WCET(2)`, `WCET(2..5)`.
    pub fn what(&self) -> String {
        match self.range {
            None => self.figure.to_owned(),
            Some((one, last)) if one == last => format!("{}({one})", self.figure),
            Some((first, last)) => format!("{}({first}..{last})", self.figure),
        }
    }
}

/// A figure, a range of its numbers, and the extreme.
type Found = (&'static str, Option<(usize, usize)>, Extreme);

impl Summary {
    /// The extremes of the primary stream of each task that several runs have, in the order of the model.
    pub fn blame(&self) -> Vec<Blame> {
        let several = (1..).zip(self.tasks.iter().filter(|task| task.alone.is_none()));
        let several = several.filter(|(_, task)| task.runs > 1);
        several
            .filter_map(|(number, task)| Some((number, task, task.primary()?)))
            .flat_map(|(number, task, stream)| {
                extremes(stream).into_iter().map(move |(figure, range, extreme)| Blame {
                    task: task.key.name.clone(),
                    number,
                    separator: stream.key,
                    figure,
                    range,
                    value: Duration::from_ns(extreme.ns),
                    run: self.name(extreme.run),
                })
            })
            .collect()
    }
}

fn extremes(stream: &StreamSummary) -> Vec<Found> {
    let jitter = stream.period().map(|(_, jitter)| jitter);
    let single = [
        ("jitter", jitter),
        ("least separation", stream.separation),
        ("suspension", stream.suspended),
        ("response time", stream.response),
    ];
    let mut all: Vec<_> = single.into_iter().filter_map(|(figure, it)| Some((figure, None, it?))).collect();
    in_ranges("WCET", 1, stream.wcet.never_falling(), &mut all);
    in_ranges("least span", 2, stream.least.values.iter().copied(), &mut all);
    in_ranges("greatest span", 2, stream.greatest.never_falling(), &mut all);
    all
}

/// Joins entries in a row that are from one run.
fn in_ranges(
    figure: &'static str,
    first: usize,
    values: impl Iterator<Item = Extreme>,
    into: &mut Vec<Found>,
) {
    let values: Vec<(usize, Extreme)> = (first..).zip(values).collect();
    for range in values.chunk_by(|one, next| one.1.run == next.1.run) {
        if let (Some((from, _)), Some((until, last))) = (range.first(), range.last()) {
            into.push((figure, Some((*from, *until)), *last));
        }
    }
}
