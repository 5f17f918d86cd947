//! Figures of time-triggered tables: their processors and their tasks.

use super::figure::Fit::{Drop, Fold, Keep};
use super::figure::{Bound, Entry, Section, Unit, Value, entry};
use crate::dispatched::LaneRow;
use crate::time_table::{ProcessorRow, TaskRow};
use punctual_model::Duration;
use punctual_model::table::OnOverrun;

/// The processors of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableProcessors;

impl Section for TableProcessors {
    type Row<'a> = ProcessorRow<'a>;
}

/// The tasks of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableTasks;

impl Section for TableTasks {
    type Row<'a> = TaskRow<'a>;
}

/// The processors of a table that was dispatched.
#[derive(Clone, Copy, Debug)]
pub struct DispatchedProcessors;

impl Section for DispatchedProcessors {
    type Row<'a> = LaneRow<'a>;
}

const fn of_processor(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&ProcessorRow<'a>) -> Option<Value>,
) -> Entry<TableProcessors> {
    entry::<TableProcessors>(field, title, unit, Bound::Exact, meaning, value).page().table(Keep)
}

const fn of_task(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&TaskRow<'a>) -> Option<Value>,
) -> Entry<TableTasks> {
    entry::<TableTasks>(field, title, unit, Bound::Exact, meaning, value).page()
}

const fn of_lane(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&LaneRow<'a>) -> Option<Value>,
) -> Entry<DispatchedProcessors> {
    entry::<DispatchedProcessors>(field, title, unit, Bound::Exact, meaning, value).page().table(Keep)
}

/// `part` of `whole` in hundredths of a percent, rounded up.
fn share(part: u64, whole: u64) -> Option<Value> {
    Some(Value::Share((part * 10_000).div_ceil(whole.max(1))))
}

/// Every figure of a processor.
pub const TABLE_PROCESSORS: &[Entry<TableProcessors>] = &[
    of_processor("cpu", "CPU", Unit::Words, "The processor.", |row| Some(Value::Id(row.processor.into()))),
    of_processor("busy", "Busy", Unit::Share, "The share of its slots that belong to jobs.", |row| {
        share(row.table.busy_slots(row.processor), row.table.slots)
    }),
    of_processor(
        "idle_slots",
        "Idle slots",
        Unit::Count,
        "Slots of one repetition that no job has.",
        |row| Some(Value::Count(row.table.slots - row.table.busy_slots(row.processor))),
    ),
    of_processor(
        "longest_busy_ns",
        "Longest busy",
        Unit::Time,
        "The longest time without an idle slot, within one repetition.",
        |row| Some(Value::Time(slots(row.table.slot_ns, row.longest_busy()))),
    ),
    of_processor(
        "runs",
        "Runs",
        Unit::Count,
        "How often a job begins or continues in one repetition.",
        |row| Some(Value::Count(row.table.runs_on(row.processor).len() as u64)),
    ),
    of_processor("tasks", "Tasks", Unit::Count, "Tasks that run on it.", |row| {
        Some(Value::Count(row.tasks().len() as u64))
    }),
];

/// Every figure of a processor that was dispatched.
pub const DISPATCHED_PROCESSORS: &[Entry<DispatchedProcessors>] = &[
    of_lane("cpu", "CPU", Unit::Words, "The processor.", |row| Some(Value::Id(row.processor().into()))),
    of_lane("turns", "Turns", Unit::Count, "Turns that are over, idle ones too.", |row| {
        Some(Value::Count(row.turns()))
    }),
    of_lane(
        "missed",
        "Missed",
        Unit::Count,
        "Turns at whose end the dispatcher came, so that nobody got them.",
        |row| Some(Value::Count(row.missed())),
    ),
    of_lane(
        "error_p50_ns",
        "Error p50",
        Unit::Time,
        "Median of the time from the beginning of a turn until the processor was handed over.",
        |row| Some(Value::Time(row.errors()?.p50_ns)),
    ),
    of_lane("error_p99_ns", "p99", Unit::Time, "99th percentile of that time.", |row| {
        Some(Value::Time(row.errors()?.p99_ns))
    }),
    of_lane("error_max_ns", "Max", Unit::Time, "The longest such time.", |row| {
        Some(Value::Time(row.errors()?.max_ns))
    }),
];

fn slots(slot: Duration, count: u64) -> Duration {
    Duration::from_ns(slot.ns().saturating_mul(count))
}

/// Every figure of a task.
pub const TABLE_TASKS: &[Entry<TableTasks>] = &[
    of_task("name", "Task", Unit::Words, "Its name.", |row| Some(Value::Text(row.task().name.clone())))
        .table(Keep),
    of_task("period_ns", "Period", Unit::Time, "Time from one activation to the next.", |row| {
        Some(Value::Time(slots(row.table.slot_ns, row.task().period)))
    })
    .table(Keep),
    of_task("offset_ns", "Offset", Unit::Time, "The first activation, from the start of the table.", |row| {
        let offset = row.task().offset;
        (offset > 0).then(|| Value::Time(slots(row.table.slot_ns, offset)))
    })
    .table(Drop(1))
    .sparse(),
    of_task("wcet_ns", "Budget", Unit::Time, "The slots that each job gets, as a time.", |row| {
        Some(Value::Time(slots(row.table.slot_ns, row.task().wcet)))
    })
    .table(Keep),
    of_task(
        "deadline_ns",
        "Deadline",
        Unit::Time,
        "Time from an activation until its job must have ended.",
        |row| Some(Value::Time(slots(row.table.slot_ns, row.task().deadline))),
    )
    .table(Keep),
    of_task(
        "response_ns",
        "Response",
        Unit::Time,
        "The longest time from an activation to the end of its job's last slot.",
        |row| Some(Value::Time(slots(row.table.slot_ns, row.response()?))),
    )
    .table(Drop(2)),
    of_task("utilization", "Utilization", Unit::Share, "Its budget as a share of a processor.", |row| {
        share(row.task().wcet, row.task().period)
    })
    .table(Drop(3)),
    of_task("cpus", "CPUs", Unit::Words, "The processors that its jobs have slots of.", |row| {
        let numbers: Vec<String> = row.processors().iter().map(u32::to_string).collect();
        (!numbers.is_empty()).then(|| Value::Text(numbers.join(",")))
    })
    .table(Keep),
    of_task(
        "migrations",
        "Migrations",
        Unit::Count,
        "Changes of the processor within jobs, per repetition.",
        |row| Some(row.migrations()).filter(|count| *count > 0).map(Value::Count),
    )
    .table(Drop(4))
    .sparse(),
    of_task("after", "After", Unit::Words, "Tasks whose jobs end before its own start.", |row| {
        let names = row.task().after.iter().filter_map(|&place| row.table.tasks.get(place));
        let names: Vec<String> = names.map(|task| task.name.clone()).collect();
        (!names.is_empty()).then(|| Value::Text(names.join(", ")))
    })
    .table(Fold)
    .sparse(),
    of_task(
        "on_overrun",
        "On overrun",
        Unit::Words,
        "What happens to a job that has used its slots.",
        |row| match row.task().on_overrun {
            OnOverrun::Continue => None,
            OnOverrun::Skip => Some(Value::Word("skip")),
            OnOverrun::Stop => Some(Value::Word("stop")),
            OnOverrun::Tell => Some(Value::Word("tell")),
        },
    )
    .table(Drop(5))
    .sparse(),
];
