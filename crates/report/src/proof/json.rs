//! A proof for programs.

use super::{ProofRow, cause};
use punctual_analysis::{Proof, Verdict, WorstCase, worst_case};
use serde_json::{Value, json};

/// What `punctual prove --json` prints (docs/prove.md).
pub fn json(proof: &Proof) -> String {
    let tasks = (0..proof.system.tasks.len()).map(|task| row(&ProofRow { proof, task })).collect();
    document(proof, tasks)
}

/// The same of some tasks, each with the schedule that reaches its bound, if one is known.
pub fn tasks(proof: &Proof, tasks: &[usize]) -> String {
    let with_schedule = |&task: &usize| {
        let worst = proof.bounds[task].as_ref().ok().and_then(|bound| worst_case(&proof.system, task, bound));
        let mut row = row(&ProofRow { proof, task });
        row["schedule"] = worst.map_or(Value::Null, |worst| schedule(proof, &worst));
        row
    };
    document(proof, tasks.iter().map(with_schedule).collect())
}

fn schedule(proof: &Proof, worst: &WorstCase) -> Value {
    let stretches = worst.stretches.iter().map(|stretch| {
        json!({
            "cause": cause(proof, stretch.cause),
            "from_ns": stretch.from.ns(),
            "to_ns": stretch.to.ns(),
        })
    });
    json!({
        "release_ns": worst.release.ns(),
        "end_ns": worst.end.ns(),
        "stretches": stretches.collect::<Vec<_>>(),
    })
}

fn document(proof: &Proof, tasks: Vec<Value>) -> String {
    let loads: Vec<Value> =
        proof.loads().into_iter().map(|(cpu, load)| json!({ "cpu": cpu, "load": load })).collect();
    let reserved = proof.reserved_deadlines.as_ref().is_none_or(Result::is_ok);
    let assigned = proof.priorities.as_ref().map(|priorities| priorities.is_ok() && reserved);
    let document = json!({
        "holds": proof.missed() == 0,
        "tasks": tasks,
        "processors": loads,
        "assigned": assigned,
        "observed_on": proof.observed_on,
        "remarks": proof.remarks,
    });
    format!("{document:#}\n")
}

fn row(row: &ProofRow<'_>) -> Value {
    let task = row.task();
    let bound = row.bound();
    let parts = bound.iter().flat_map(|bound| &bound.parts);
    let parts: Vec<Value> = parts
        .map(|part| json!({ "cause": cause(row.proof, part.cause), "duration_ns": part.duration.ns() }))
        .collect();
    let priorities = row.proof.priorities.as_ref().and_then(|it| it.as_ref().ok());
    let reserved = row.proof.reserved_deadlines.as_ref().and_then(|it| it.as_ref().ok());
    json!({
        "name": task.name,
        "tid": row.thread().tid,
        "policy": row.thread().policy.map(|it| it.name()),
        "priority": row.thread().priority,
        "cpus": task.processors,
        "deadline_ns": task.deadline.map(|it| it.ns()),
        "response_ns": bound.ok().map(|bound| bound.response.ns()),
        "verdict": match row.verdict() {
            Verdict::Met => "met",
            Verdict::Missed => "not proven",
            Verdict::NotAsked => "not asked for",
        },
        "method": bound.ok().map(|bound| bound.method.name()),
        "exact": bound.ok().map(|bound| bound.method.is_exact() && task.suspension.is_zero()),
        "parts": parts,
        "earlier_ns": bound.ok().map(|bound| bound.earlier.ns()),
        "job": bound.ok().map(|bound| bound.job),
        "reason": bound.err().map(|reason| row.proof.reason(row.task, reason)),
        "wcet_permille": row.room().map(|room| room.cost),
        "period_permille": row.room().map(|room| room.distance),
        "assigned_priority": priorities.and_then(|all| all[row.task]),
        "assigned_deadline_ns": reserved.and_then(|all| all[row.task]).map(|it| it.ns()),
    })
}
