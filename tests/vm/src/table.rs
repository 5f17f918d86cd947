//! Kernel × test, for people; and what failed, with its reasons.

use crate::results::Outcome;
use crate::suite::{Report, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// How many lines of a failure's message are shown; all of it is in the run's folder.
const MESSAGE_LINES: usize = 12;

/// The whole report.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let names: BTreeSet<&String> = report.runs.iter().flat_map(|run| run.results.tests.keys()).collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or(4);
    if !names.is_empty() {
        let _ = writeln!(
            out,
            "\n{:width$}  {}",
            "test",
            report.runs.iter().map(column).collect::<Vec<_>>().join("  ")
        );
    }
    for name in names {
        let cells = report.runs.iter().map(|run| {
            let cell = match run.results.tests.get(name) {
                Some(Outcome::Passed) => "passed",
                Some(Outcome::Failed(_)) => "FAILED",
                Some(Outcome::Skipped(_)) => "skipped",
                None => "-",
            };
            format!("{cell:len$}", len = column(run).len())
        });
        let _ = writeln!(out, "{name:width$}  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    skipped(report, &mut out);
    failed(report, &mut out);
    out.push('\n');
    for run in &report.runs {
        let _ = writeln!(out, "{}", summary(run));
        for note in &run.notes {
            let _ = writeln!(out, "  {note}");
        }
    }
    for (kernel, reason) in &report.missing {
        let _ = writeln!(out, "{kernel}: skipped: {reason}");
    }
    let count = |is: fn(&Outcome) -> bool| report.runs.iter().map(|run| run.results.count(is)).sum::<usize>();
    let faults: usize = report.runs.iter().map(|run| run.faults.len()).sum();
    // As the tests of crates end, so that a sum over all can be made.
    let _ = writeln!(
        out,
        "\ntest result: {}. {} passed; {} failed; {} ignored",
        if report.is_good() { "ok" } else { "FAILED" },
        count(|outcome| *outcome == Outcome::Passed),
        count(|outcome| matches!(outcome, Outcome::Failed(_))) + faults,
        count(|outcome| matches!(outcome, Outcome::Skipped(_))) + report.missing.len(),
    );
    out
}

fn column(run: &Run) -> String {
    format!("{} {}", run.kernel.rsplit('/').next().unwrap_or(&run.kernel), run.suite.name())
}

fn summary(run: &Run) -> String {
    let count = |is: fn(&Outcome) -> bool| run.results.count(is);
    format!(
        "{} ({}): {} passed, {} failed, {} skipped{}; {} s",
        column(run),
        run.release.as_deref().unwrap_or("did not boot"),
        count(|outcome| *outcome == Outcome::Passed),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        if run.faults.is_empty() { String::new() } else { format!(", {} faults", run.faults.len()) },
        run.took.as_secs()
    )
}

/// Reasons, each with the tests and runs that it kept away.
fn skipped(report: &Report, out: &mut String) {
    let mut reasons: BTreeMap<&str, BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
    for run in &report.runs {
        for (name, outcome) in &run.results.tests {
            if let Outcome::Skipped(reason) = outcome {
                reasons.entry(reason).or_default().entry(name).or_default().insert(column(run));
            }
        }
    }
    if !reasons.is_empty() {
        out.push_str("\nskipped, and why:\n");
    }
    for (reason, tests) in reasons {
        let _ = writeln!(out, "  {reason}");
        for (test, runs) in tests {
            let _ = writeln!(out, "    {test} ({})", runs.into_iter().collect::<Vec<_>>().join(", "));
        }
    }
}

fn failed(report: &Report, out: &mut String) {
    for run in report.runs.iter().filter(|run| !run.is_good()) {
        let _ = writeln!(out, "\n{}:", column(run));
        for fault in &run.faults {
            let _ = writeln!(out, "  {fault}");
        }
        for (name, outcome) in &run.results.tests {
            if let Outcome::Failed(message) = outcome {
                let _ = writeln!(out, "  {name} failed:");
                for line in message.lines().filter(|line| !line.is_empty()).take(MESSAGE_LINES) {
                    let _ = writeln!(out, "    {line}");
                }
            }
        }
        if let Some(folder) = &run.folder {
            let _ = writeln!(out, "  its kernel's log and its output: {}", folder.display());
        }
    }
}
