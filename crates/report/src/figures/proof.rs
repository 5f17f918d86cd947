//! Figures of proofs: tasks, their bounds and deadlines.

use super::figure::Fit::{Drop, Fold, Keep};
use super::figure::{Bound, Entry, Section, Unit, Value, entry};
use crate::proof::ProofRow;
use punctual_analysis::{MOST_PARTS, PARTS, Verdict};

/// The tasks of a proof.
#[derive(Clone, Copy, Debug)]
pub struct ProvenTasks;

impl Section for ProvenTasks {
    type Row<'a> = ProofRow<'a>;
}

const fn of(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    bound: Bound,
    meaning: &'static str,
    value: for<'a> fn(&ProofRow<'a>) -> Option<Value>,
) -> Entry<ProvenTasks> {
    entry::<ProvenTasks>(field, title, unit, bound, meaning, value)
}

/// Every figure of a task.
pub const PROVEN_TASKS: &[Entry<ProvenTasks>] = &[
    of("thread", "Thread", Unit::Words, Bound::Exact, "The thread's name.", |row| {
        Some(Value::Text(row.task().name.clone()))
    })
    .table(Keep)
    .page(),
    of("tid", "TID", Unit::Count, Bound::Exact, "The thread's number.", |row| {
        Some(Value::Id(row.thread().tid.into()))
    })
    .table(Drop(3))
    .page(),
    of("policy", "Policy", Unit::Ranked, Bound::Exact, "Its policy and priority.", |row| {
        Some(Value::Policy(row.thread().policy?, row.thread().priority, None))
    })
    .table(Drop(2))
    .page(),
    of("cpus", "CPUs", Unit::Words, Bound::Exact, "The processors that it may use.", |row| {
        Some(Value::Text(row.processors()))
    })
    .table(Drop(1))
    .page(),
    of(
        "deadline_ns",
        "Deadline",
        Unit::Time,
        Bound::Exact,
        "The declared deadline, else the reservation's, else the period. From the arrival of a job.",
        |row| row.task().deadline.map(Value::Exactly),
    )
    .table(Keep)
    .page(),
    of(
        "response_ns",
        "Bound",
        Unit::Time,
        Bound::Upper,
        "No job takes longer from its arrival to its end, if all tasks and the kernel keep to their models.",
        |row| row.bound().ok().map(|bound| Value::Time(bound.response)),
    )
    .symbol("R")
    .table(Keep)
    .page(),
    of("slack_ns", "Slack", Unit::Time, Bound::Lower, "The deadline less the bound.", |row| {
        let (deadline, bound) = (row.task().deadline?, row.bound().ok()?);
        (bound.response <= deadline).then(|| Value::Time(deadline.saturating_sub(bound.response)))
    })
    .table(Drop(4))
    .page(),
    of("verdict", "Deadline met", Unit::Words, Bound::Exact, "Whether R is within it.", |row| {
        Some(Value::Word(match row.verdict() {
            Verdict::Met => "yes",
            Verdict::Missed => "NO",
            Verdict::NotAsked => "–",
        }))
    })
    .table(Keep)
    .page(),
    of(
        "wcet_factor",
        "Cost up to",
        Unit::Words,
        Bound::Lower,
        "The factor by which its processor time alone may grow until the first deadline is missed.",
        |row| {
            let parts = row.room()?.cost;
            let more = if parts == MOST_PARTS { "≥ " } else { "" };
            Some(Value::Text(format!("{more}{}", factor(parts))))
        },
    )
    .table(Drop(5))
    .page()
    .sparse(),
    of(
        "period_factor",
        "Period down to",
        Unit::Words,
        Bound::Upper,
        "The factor by which its period alone may shrink until the first deadline is missed.",
        |row| Some(Value::Text(factor(row.room()?.distance))),
    )
    .table(Drop(6))
    .page()
    .sparse(),
    of("method", "Analysis", Unit::Words, Bound::Exact, "Where the bound comes from.", |row| {
        Some(Value::Word(row.bound().ok()?.method.name()))
    })
    .table(Drop(7))
    .page(),
    of(
        "reason",
        "Remarks",
        Unit::Words,
        Bound::Exact,
        "The largest parts of the bound; or why there is none.",
        |row| Some(Value::Text(row.remark())),
    )
    .table(Fold),
];

/// `× 1.25`.
fn factor(parts: u64) -> String {
    let (whole, rest) = (parts / PARTS, parts % PARTS);
    match rest {
        0 => format!("× {whole}"),
        rest => format!("× {whole}.{}", format!("{rest:03}").trim_end_matches('0')),
    }
}
