//! Late jobs as JSON: what `punctual why --json` prints. As in the timing model, but with jobs in a list of
//! their own, evidence and advice.

use super::{advice, text, words};
use punctual_model::causes::{Causes, LateTask};
use serde::Serialize;
use serde_json::{Value, json};

/// As one JSON document: `tasks` of which a job was late, their worst `jobs`, and what the input `lacks`.
pub fn json(causes: &Causes) -> String {
    format!("{:#}\n", document(causes))
}

/// The same as a value.
pub(crate) fn document(causes: &Causes) -> Value {
    let late = || causes.tasks.iter().filter(|task| task.late > 0);
    let jobs = late().flat_map(|task| {
        let of = |mut job: Value| {
            job["task"] = json!(task.task);
            job
        };
        task.worst.iter().map(value).map(of)
    });
    json!({
        "tasks": late().map(one_task).collect::<Vec<_>>(),
        "jobs": jobs.collect::<Vec<_>>(),
        "lacks": causes.lacks.iter().map(|lack| text::lack(*lack)).collect::<Vec<_>>(),
    })
}

/// The only late job of a task, as one of `jobs`, with the evidence for its cause.
pub fn one_job(task: &LateTask) -> Value {
    let mut job = task.worst.first().map(value).unwrap_or_default();
    job["task"] = json!(task.task);
    job["evidence"] = json!(task.causes.first().map(|cause| words::evidence(task, cause)));
    job
}

fn one_task(task: &LateTask) -> Value {
    let mut shown = value(&LateTask { worst: Vec::new(), ..task.clone() });
    for (place, cause) in task.causes.iter().enumerate() {
        shown["causes"][place]["evidence"] = json!(words::evidence(task, cause));
    }
    shown["advice"] = json!(advice::of(task));
    shown
}

fn value<T: Serialize>(of: &T) -> Value {
    serde_json::to_value(of).expect("plain values")
}
