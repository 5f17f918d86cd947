//! Figures of late jobs: their causes.

use super::figure::Fit::{Below, Fold, Keep};
use super::figure::{Bound, Entry, Rounding, Section, Unit, Value, entry};
use crate::why::CauseRow;

/// The causes of a task's late jobs.
#[derive(Clone, Copy, Debug)]
pub struct CausesOfTask;

impl Section for CausesOfTask {
    type Row<'a> = CauseRow;
}

const fn of_cause(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&CauseRow) -> Option<Value>,
) -> Entry<CausesOfTask> {
    entry::<CausesOfTask>(field, title, unit, Bound::Exact, meaning, value).page()
}

/// Every figure of a cause.
pub const CAUSES: &[Entry<CausesOfTask>] = &[
    of_cause("jobs", "Jobs", Unit::Count, "Late jobs that are put down to this cause.", |row| {
        Some(Value::Count(row.jobs))
    })
    .table(Keep),
    of_cause("time_ns", "Time", Unit::Time, "The time that the cause took in these jobs, in all.", |row| {
        Some(Value::Time(row.time))
    })
    .rounded(Rounding::ThreeDigits)
    .table(Keep),
    of_cause("cause", "Cause", Unit::Words, "What made the jobs late.", |row| {
        Some(Value::Text(row.cause.clone()))
    })
    .table(Fold),
    of_cause("evidence", "Evidence", Unit::Words, "What speaks for this cause.", |row| {
        (!row.evidence.is_empty()).then(|| Value::Text(row.evidence.clone()))
    })
    .sparse()
    .table(Below),
];
