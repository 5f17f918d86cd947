//! A table and what was found in it, for programs.

use super::{ProcessorRow, TaskRow};
use punctual_model::Table;
use punctual_model::check::TableViolation;
use serde_json::{Value, json};

/// What `punctual table --json` prints (docs/table.md).
pub fn json(table: &Table, found: &[TableViolation]) -> String {
    let document = json!({
        "slot_ns": table.slot_ns.ns(),
        "slots": table.slots,
        "length_ns": table.length().ns(),
        "clock": table.clock.name(),
        "method": table.method,
        "processors": ProcessorRow::all(table).map(|row| processor(&row)).collect::<Vec<Value>>(),
        "tasks": TaskRow::all(table).map(|row| task(&row)).collect::<Vec<Value>>(),
        "violations": found.iter().map(ToString::to_string).collect::<Vec<String>>(),
    });
    format!("{document:#}\n")
}

fn processor(row: &ProcessorRow<'_>) -> Value {
    let tasks: Vec<&str> = row.tasks().iter().map(|&place| row.table.tasks[place].name.as_str()).collect();
    json!({
        "cpu": row.processor,
        "busy_slots": row.table.busy_slots(row.processor),
        "longest_busy_slots": row.longest_busy(),
        "tasks": tasks,
    })
}

fn task(row: &TaskRow<'_>) -> Value {
    let task = row.task();
    json!({
        "name": task.name,
        "period_slots": task.period,
        "wcet_slots": task.wcet,
        "offset_slots": task.offset,
        "deadline_slots": task.deadline,
        "response_slots": row.response(),
        "processors": row.processors(),
        "migrations": row.migrations(),
    })
}
