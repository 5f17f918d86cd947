//! Whether recordings and models keep to a contract: text, JSON, and JUnit XML for build servers.

use crate::figures::Fit;
use crate::number::{agreeing, count, counted};
use crate::table::{Column, Table, Tone, figures, words};
use crate::text::since;
use crate::{Page, paragraph, visible, why};
use punctual_conformance::{Standing, Tally, Term, Unit, Verdict, Violation};
use punctual_model::{Causes, Instant};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};

/// An input and what came of it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What it is called.
    pub input: String,
    /// What came of it.
    pub verdict: Verdict,
    /// Why jobs were late, where they were and the input says that.
    pub causes: Option<Causes>,
}

const TERMS: [Column; 7] = [
    words("Task", Fit::Keep),
    words("Term", Fit::Keep),
    figures("Agreed", Fit::Keep),
    figures("Worst", Fit::Keep),
    figures("Jobs", Fit::Drop(2)),
    figures("Violations", Fit::Keep),
    words("First", Fit::Drop(1)),
];

/// Notes of an input that are listed.
const MOST_NOTES: usize = 20;

/// All inputs: what was broken; with `all`, every term and how far it is from what was agreed on.
pub fn text(inputs: &[Checked], all: bool, page: &Page) -> String {
    inputs.iter().map(|checked| one(checked, all, None, page)).collect::<Vec<_>>().join("\n")
}

/// One input whose times are counted from `begin`, with every term.
pub fn text_since(checked: &Checked, begin: Instant, page: &Page) -> String {
    one(checked, true, Some(begin), page)
}

/// The sum of all violations.
pub fn violations(inputs: &[Checked]) -> u64 {
    inputs.iter().map(|checked| checked.verdict.violations()).fold(0, u64::saturating_add)
}

fn one(checked: &Checked, all: bool, begin: Option<Instant>, page: &Page) -> String {
    let Checked { input, verdict, causes } = checked;
    let mut text = paragraph(&format!("{}: {}", visible(input), headline(verdict)), page);
    let mut table = Table::new(&TERMS);
    for tally in &verdict.tallies {
        let shown = tally.standings.iter().filter(|standing| all || standing.violations > 0);
        table.rows.extend(shown.map(|standing| row(tally, standing, begin)));
    }
    if !table.rows.is_empty() {
        text += &table.text(page);
    }
    for line in remarks(verdict) {
        text += &paragraph(&line, page);
    }
    if let Some(causes) = causes {
        text += "\n";
        text += &why::text(causes, page);
    }
    text
}

fn headline(verdict: &Verdict) -> String {
    let sums = |number: &dyn Fn(&Tally) -> u64, noun: &dyn Fn(Kind) -> &'static str| {
        let of = |kind: Kind| verdict.tallies.iter().filter(move |tally| Kind::of(tally) == kind);
        let sum = |kind| of(kind).map(number).fold(0, u64::saturating_add);
        let known = Kind::ALL.into_iter().map(|kind| (kind, sum(kind))).filter(|(_, sum)| *sum > 0);
        known.map(|(kind, sum)| counted(sum, noun(kind))).collect::<Vec<_>>().join(", ")
    };
    let judged = sums(&|tally| tally.jobs, &Kind::judged);
    let (is_none, is_asked) = (judged.is_empty(), !verdict.tallies.is_empty() || !verdict.notes.is_empty());
    let judged = if is_none { counted(0, "job") } else { judged };
    match verdict.violations() {
        0 if is_none && is_asked => "nothing breaks the contract, but no job was judged.".to_owned(),
        0 => format!("the contract is kept ({judged})."),
        number => {
            let unknown = match verdict.unknown_violations {
                0 => String::new(),
                number => format!("{} of no task", counted(number, "thread")),
            };
            let broken = sums(&|tally| u64::from(tally.violations() > 0), &Kind::name);
            let by: Vec<String> = [broken, unknown].into_iter().filter(|it| !it.is_empty()).collect();
            format!("NOT KEPT: {} by {} ({judged}).", counted(number, "violation"), by.join(", "))
        }
    }
}

/// What a contract says something of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Task,
    Chain,
    Processor,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Task, Kind::Chain, Kind::Processor];

    fn of(tally: &Tally) -> Kind {
        match tally.standings.first().map(|standing| standing.term) {
            Some(Term::ReactionTime | Term::DataAge) => Kind::Chain,
            Some(Term::Latency) => Kind::Processor,
            _ => Kind::Task,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::Task => "task",
            Kind::Chain => "chain",
            Kind::Processor => "processor",
        }
    }

    /// What of it is judged.
    const fn judged(self) -> &'static str {
        match self {
            Kind::Task => "job",
            Kind::Chain => "reaction",
            Kind::Processor => "wake-up",
        }
    }
}

fn row(tally: &Tally, standing: &Standing, begin: Option<Instant>) -> Vec<(String, Tone)> {
    let broken = standing.violations > 0;
    let is_known = !matches!(standing.term, Term::Missing | Term::NoJobs);
    let agreed = if is_known { standing.term.text(standing.agreed) } else { String::new() };
    let first = standing.examples.first();
    let first = first.and_then(|it| it.subject.as_ref().zip(it.which())).map(|(it, which)| {
        if let Some(begin) = begin {
            return format!("{} at {}", visible(&which), since(it.end.since(begin)));
        }
        let ms = it.end.ns() / 1_000_000;
        let (seconds, rest) = (ms / 1_000, ms % 1_000);
        format!("{} at {seconds}.{rest:03} s", visible(&which))
    });
    let cells = [
        visible(&tally.task),
        standing.term.name().replace('_', " "),
        agreed,
        standing.worst.map_or(String::new(), |worst| standing.term.text(worst)),
        count(tally.jobs),
        count(standing.violations),
        first.unwrap_or_default(),
    ];
    let tone = |column: usize| if broken && column == 5 { Tone::Bad } else { Tone::Plain };
    cells.into_iter().enumerate().map(|(column, text)| (text, tone(column))).collect()
}

/// What is to be mentioned, as sentences.
fn remarks(verdict: &Verdict) -> Vec<String> {
    let mut lines = Vec::new();
    let notes = verdict.notes.iter().take(MOST_NOTES);
    lines.extend(notes.map(|note| match note.task.is_empty() {
        true => format!("Note: {}.", note.text),
        false => format!("Note: {}: {}.", visible(&note.task), note.text),
    }));
    if verdict.notes.len() > MOST_NOTES {
        lines.push(format!("And {}.", counted((verdict.notes.len() - MOST_NOTES) as u64, "more note")));
    }
    if !verdict.unknown.is_empty() {
        let names: Vec<String> = verdict.unknown.keys().take(MOST_NOTES).map(|name| visible(name)).collect();
        let more = if verdict.unknown.len() > MOST_NOTES { ", …" } else { "" };
        lines.push(format!("Real-time threads of no task: {}{more}.", names.join(", ")));
    }
    let tolerated = verdict.tallies.iter().flat_map(|tally| &tally.standings).map(|it| it.tolerated);
    let tolerated = tolerated.fold(0, u64::saturating_add);
    if tolerated > 0 {
        lines.push(format!(
            "Limits were exceeded {}, which the contract tolerates (may_exceed).",
            counted(tolerated, "time")
        ));
    }
    if verdict.withdrawn > 0 {
        lines.push(format!(
            "{} reported before it was certain where jobs end; not counted. Name a separator to avoid that.",
            counted(verdict.withdrawn, "violation")
        ));
    }
    if verdict.gaps + verdict.lost > 0 {
        lines.push(format!(
            "{} and {} in the records: nothing was judged across {}.",
            counted(verdict.lost, "lost record"),
            counted(verdict.gaps, "gap"),
            agreeing(verdict.gaps, "it", "them"),
        ));
    }
    lines
}

/// What `punctual check --json` prints (docs/contracts.md).
pub fn json(inputs: &[Checked]) -> String {
    format!("{:#}\n", document(inputs))
}

/// The same as a value.
pub fn document(inputs: &[Checked]) -> Value {
    let total = violations(inputs);
    json!({
        "kept": total == 0,
        "violations": total,
        "inputs": inputs.iter().map(input).collect::<Vec<_>>(),
    })
}

fn input(checked: &Checked) -> Value {
    let verdict = &checked.verdict;
    let unknown = verdict.unknown.iter().map(|(name, number)| json!({ "name": name, "threads": number }));
    let notes = verdict.notes.iter().map(|note| json!({ "task": &*note.task, "text": note.text }));
    let mut shown = json!({
        "input": checked.input,
        "violations": verdict.violations(),
        "gaps": verdict.gaps,
        "lost_records": verdict.lost,
        "withdrawn_violations": verdict.withdrawn,
        "tasks": verdict.tallies.iter().map(tally).collect::<Vec<_>>(),
        "unknown_threads": unknown.collect::<Vec<_>>(),
        "unknown_violations": verdict.unknown_violations,
        "notes": notes.collect::<Vec<_>>(),
    });
    if let Some(causes) = &checked.causes {
        shown["causes"] = why::document(causes);
    }
    shown
}

fn tally(tally: &Tally) -> Value {
    let term = |it: &Standing| {
        json!({
            "term": it.term.name(),
            "unit": unit(it.term),
            "agreed": amount(it.term, it.agreed),
            "worst": it.worst.map(|value| amount(it.term, value)),
            "violations": it.violations,
            "tolerated": it.tolerated,
            "examples": it.examples.iter().map(violation).collect::<Vec<_>>(),
        })
    };
    json!({
        "name": &*tally.task,
        "threads": tally.threads,
        "jobs": tally.jobs,
        "terms": tally.standings.iter().map(term).collect::<Vec<_>>(),
    })
}

fn unit(term: Term) -> &'static str {
    match term.unit() {
        Unit::Time => "ns",
        Unit::Count => "count",
    }
}

/// A number, or the name of a policy.
fn amount(term: Term, value: u64) -> Value {
    match term {
        Term::Policy => term.text(value).into(),
        _ => value.into(),
    }
}

/// A violation for programs.
pub fn violation(violation: &Violation) -> Value {
    let subject = violation.subject.as_ref();
    let is_of_chain = matches!(violation.term, Term::ReactionTime | Term::DataAge);
    let thread = subject.filter(|_| !is_of_chain);
    let job = subject.filter(|_| violation.term != Term::Latency);
    json!({
        "task": &*violation.task,
        "term": violation.term.name(),
        "unit": unit(violation.term),
        "value": amount(violation.term, violation.value),
        "agreed": amount(violation.term, violation.agreed),
        "thread": thread.map(|it| &*it.name),
        "pid": thread.map(|it| it.pid),
        "tid": thread.map(|it| it.tid),
        "phase": thread.and(job).map(|it| it.phase),
        "job": job.map(|it| it.job),
        "release_ns": subject.map(|it| it.release.ns()),
        "end_ns": subject.map(|it| it.end.ns()),
        "open": subject.map(|it| it.is_open),
    })
}

/// JUnit XML: a suite for each input, a case for each term of each task.
pub fn junit(inputs: &[Checked]) -> Result<String, String> {
    let mut report = Report::new("punctual check");
    for Checked { input, verdict, causes } in inputs {
        let mut suite = TestSuite::new(input.as_str());
        for tally in &verdict.tallies {
            suite.add_test_cases(tally.standings.iter().map(|standing| case(tally, standing)));
        }
        if verdict.unknown_violations > 0 {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let names: Vec<&str> = verdict.unknown.keys().map(String::as_str).collect();
            status.set_message(format!("real-time threads of no task: {}", names.join(", ")));
            suite.add_test_case(TestCase::new(Term::Unknown.name(), status));
        }
        if let Some(causes) = causes {
            suite.set_system_out(why::text(causes, &Page::default()));
        }
        report.add_test_suite(suite);
    }
    report.to_string().map_err(|error| error.to_string())
}

fn case(tally: &Tally, standing: &Standing) -> TestCase {
    let status = match standing.violations {
        0 => TestCaseStatus::success(),
        number => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(counted(number, "violation"));
            let examples: Vec<String> = standing.examples.iter().map(ToString::to_string).collect();
            status.set_description(examples.join("\n"));
            status
        }
    };
    let mut case = TestCase::new(standing.term.name(), status);
    case.set_classname(&*tally.task);
    case
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_names() {
        let violation = |term| Violation { task: "control".into(), term, value: 1, agreed: 0, subject: None };
        let shown = super::violation(&violation(Term::Policy));
        assert_eq!(shown["value"], Term::Policy.text(1));
        assert_ne!(shown["value"], shown["agreed"]);
        assert_eq!(super::violation(&violation(Term::Priority))["value"], 1);
    }
}
