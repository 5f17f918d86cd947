//! The comparison for programs: `docs/compare.md`.

use super::comparison::Comparison;
use super::configuration::{By, Value};
use super::range::{Difference, Range, Unit};
use super::verdict::Outcome;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    verdicts: Vec<Verdict<'a>>,
    configurations: Vec<Configuration<'a>>,
    figures: Vec<Figure<'a>>,
    decisions: Vec<String>,
    /// Of threads with several rates, bursts or modes.
    releases: &'a [String],
}

/// On a configuration, compared with the first.
#[derive(Serialize)]
struct Verdict<'a> {
    label: &'a str,
    outcome: Outcome,
    /// Numbers of figures.
    tested: usize,
    worse: usize,
    better: usize,
    /// Names of figures that differ without being better or worse.
    different: Vec<&'a str>,
    /// What only the first configuration has.
    missing: &'a [String],
    /// What only this one has.
    added: &'a [String],
}

#[derive(Serialize)]
struct Configuration<'a> {
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executors: Option<u32>,
    runs: Vec<&'a str>,
}

/// One figure of one task, chain or thread, in every configuration.
#[derive(Serialize)]
struct Figure<'a> {
    #[serde(rename = "of")]
    table: &'static str,
    name: &'a str,
    figure: &'static str,
    configurations: Vec<Option<Found>>,
}

#[derive(Serialize)]
struct Found {
    #[serde(flatten)]
    values: Values,
    runs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Changed>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Values {
    Times { value_ns: u64, least_ns: u64, greatest_ns: u64 },
    Counts { value: u64, least: u64, greatest: u64 },
}

impl From<&Range> for Values {
    fn from(&Range { value, least, greatest, unit, .. }: &Range) -> Values {
        match unit {
            Unit::Time => Values::Times { value_ns: value, least_ns: least, greatest_ns: greatest },
            Unit::Count => Values::Counts { value, least, greatest },
        }
    }
}

#[derive(Serialize)]
struct Changed {
    /// What the other has more, in the figure's unit.
    #[serde(flatten)]
    amount: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    /// Absent where there is no spread to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    exceeds_spread: Option<bool>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Amount {
    Time { amount_ns: i128 },
    Count { amount: i128 },
}

impl From<&Difference> for Amount {
    fn from(difference: &Difference) -> Amount {
        match difference.unit {
            Unit::Time => Amount::Time { amount_ns: difference.amount() },
            Unit::Count => Amount::Count { amount: difference.amount() },
        }
    }
}

pub(super) fn json(comparison: &Comparison) -> String {
    let all = &comparison.configurations;
    let configurations = all.iter().map(|configuration| {
        let known = |by: By| match configuration.value(by) {
            Value::Known(value) => Some(value.as_str()),
            Value::Unknown | Value::Mixed => None,
        };
        Configuration {
            label: &configuration.label,
            program: known(By::Program),
            platform: known(By::Platform),
            policy: known(By::Policy),
            executors: known(By::Executors).and_then(|executors| executors.parse().ok()),
            runs: configuration.runs.iter().map(|run| comparison.names[*run].as_str()).collect(),
        }
    });
    let verdicts = comparison.verdicts.iter().map(|verdict| Verdict {
        label: &all[verdict.configuration].label,
        outcome: verdict.outcome,
        tested: verdict.tested,
        worse: verdict.worse.len(),
        better: verdict.better.len(),
        different: verdict.changes.figures.iter().map(|figure| figure.name.as_str()).collect(),
        missing: &verdict.changes.missing,
        added: &verdict.changes.added,
    });
    let mut figures = Vec::new();
    for section in &comparison.sections {
        for row in &section.rows {
            for (index, figure) in section.table.figures().iter().enumerate() {
                let ranges: Vec<_> =
                    all.iter().map(|configuration| row.range(configuration, index, figure)).collect();
                let first = ranges[0];
                let found = ranges.into_iter().enumerate().map(|(number, range)| {
                    let range = range?;
                    let difference = first.filter(|_| number > 0).map(|first| {
                        let difference = Difference::new(&first, &range);
                        let has_spreads = first.has_spread() && range.has_spread();
                        Changed {
                            amount: Amount::from(&difference),
                            ratio: difference.ratio(),
                            exceeds_spread: has_spreads.then_some(difference.is_marked),
                        }
                    });
                    Some(Found { values: Values::from(&range), runs: range.runs, difference })
                });
                figures.push(Figure {
                    table: section.table.field,
                    name: &row.name,
                    figure: figure.field,
                    configurations: found.collect(),
                });
            }
        }
    }
    let document = Document {
        format: "punctual.comparison",
        version: 1,
        verdicts: verdicts.collect(),
        configurations: configurations.collect(),
        figures,
        decisions: super::decisions::all(comparison),
        releases: &comparison.arrivals,
    };
    // Numbers, text and lists alone: there is nothing in it that JSON could not say.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
