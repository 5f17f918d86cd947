//! What a job list says of each job: declared once, for both formats and `docs/job-lists.md`.

use super::row::Row;
use punctual_model::causes::{Kind as Part, LateJob};
use punctual_model::{Disturbance, Separator};
use std::borrow::Cow;

/// One entry of a row.
#[derive(Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// The text of a separator, made only where it is needed.
    Separator(Separator),
    /// A number.
    Number(u64),
    /// Whether something is so.
    Flag(bool),
    /// What is not known.
    Unknown,
}

/// What the entries of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Value::Text`] or [`Value::Separator`].
    Text,
    /// [`Value::Number`].
    Number,
    /// A number that may be unknown.
    Known,
    /// [`Value::Flag`].
    Flag,
}

/// What a list is called in a file, and the names and kinds of its columns.
pub struct Schema {
    pub name: &'static str,
    pub columns: Vec<(&'static str, Kind)>,
}

/// One column.
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub value: for<'a> fn(&Row<'a>) -> Value<'a>,
}

const fn column(name: &'static str, kind: Kind, value: for<'a> fn(&Row<'a>) -> Value<'a>) -> Column {
    Column { name, kind, value }
}

/// As the timing model has it.
fn name(disturbance: Disturbance) -> &'static str {
    match disturbance {
        Disturbance::Signal => "signal",
        Disturbance::Ending => "ending",
        Disturbance::Stall => "stall",
    }
}

/// Every column, in order.
pub const COLUMNS: [Column; 19] = [
    column("thread", Kind::Text, |row| Value::Text(row.name.into())),
    column("pid", Kind::Number, |row| Value::Number(row.pid.into())),
    column("tid", Kind::Number, |row| Value::Number(row.tid.into())),
    column("phase", Kind::Number, |row| Value::Number(row.phase.into())),
    column("separator", Kind::Text, |row| Value::Separator(row.separator)),
    column("primary", Kind::Flag, |row| Value::Flag(row.primary)),
    column("job", Kind::Number, |row| Value::Number(row.number)),
    column("arrival_ns", Kind::Known, |row| {
        row.job.release.arrival.map_or(Value::Unknown, |arrival| Value::Number(arrival.ns()))
    }),
    column("release_earliest_ns", Kind::Number, |row| Value::Number(row.job.release.window.earliest().ns())),
    column("release_latest_ns", Kind::Number, |row| Value::Number(row.job.release.window.latest().ns())),
    column("start_ns", Kind::Number, |row| Value::Number(row.job.start.ns())),
    column("end_ns", Kind::Number, |row| Value::Number(row.job.end.ns())),
    column("cost_ns", Kind::Number, |row| Value::Number(row.job.cost.ns())),
    column("cost_outside_ns", Kind::Number, |row| Value::Number(row.job.cost_outside().ns())),
    column("suspended_ns", Kind::Number, |row| Value::Number(row.job.suspended.ns())),
    column("response_ns", Kind::Number, |row| Value::Number(row.job.response().ns())),
    column("segments", Kind::Number, |row| Value::Number(row.segments.len() as u64)),
    column("expirations", Kind::Known, |row| {
        if row.expirations > 0 { Value::Number(row.expirations) } else { Value::Unknown }
    }),
    column("disturbance", Kind::Text, |row| Value::Text(row.disturbance.map_or("", name).into())),
];

const fn part(name: &'static str, value: for<'a> fn(&Row<'a>) -> Value<'a>) -> Column {
    column(name, Kind::Known, value)
}

/// The time of one kind within a late job.
fn time<'a>(row: &Row<'a>, kind: Part) -> Value<'a> {
    row.late.map_or(Value::Unknown, |late| Value::Number(late.of(kind).ns()))
}

fn word<'a>(row: &Row<'a>, of: fn(&'a LateJob) -> Option<&'a str>) -> Value<'a> {
    Value::Text(row.late.and_then(of).unwrap_or_default().into())
}

/// The columns of late jobs, in order, behind all others.
pub const CAUSES: [Column; 18] = [
    column("late", Kind::Flag, |row| Value::Flag(row.late.is_some())),
    column("cause", Kind::Text, |row| word(row, |late| Some(late.cause.name()))),
    column("cause_thread", Kind::Text, |row| word(row, |late| late.cause_thread.as_deref())),
    column("cause_call", Kind::Text, |row| word(row, |late| late.cause_call.as_deref())),
    column("cause_object", Kind::Text, |row| word(row, |late| late.cause_object.as_deref())),
    part("part_backlog_ns", |row| time(row, Part::Backlog)),
    part("part_late_wakeup_ns", |row| time(row, Part::LateWakeup)),
    part("part_preempted_ns", |row| time(row, Part::Preempted)),
    part("part_queued_ns", |row| time(row, Part::Queued)),
    part("part_throttled_ns", |row| time(row, Part::Throttled)),
    part("part_dispatch_ns", |row| time(row, Part::Dispatch)),
    part("part_interrupt_ns", |row| time(row, Part::Interrupt)),
    part("part_softirq_ns", |row| time(row, Part::Softirq)),
    part("part_steal_ns", |row| time(row, Part::Steal)),
    part("part_own_ns", |row| time(row, Part::Own)),
    part("part_blocked_ns", |row| time(row, Part::Blocked)),
    part("part_stopped_ns", |row| time(row, Part::Stopped)),
    part("part_unknown_ns", |row| time(row, Part::Unknown)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_every_column_in_order() {
        let documented: Vec<&str> = include_str!("../../../../docs/job-lists.md")
            .lines()
            .take_while(|line| !line.starts_with("## Instances"))
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
            .map(|(name, _)| name)
            .collect();
        let all = COLUMNS.iter().chain(&CAUSES);
        assert_eq!(documented, all.map(|column| column.name).collect::<Vec<_>>());
    }

    #[test]
    fn each_part_has_a_column() {
        let parts = CAUSES.iter().filter_map(|column| column.name.strip_prefix("part_")?.strip_suffix("_ns"));
        let names = Part::ALL.map(|kind| kind.name().replace('-', "_"));
        assert_eq!(parts.collect::<Vec<_>>(), names.each_ref().map(String::as_str));
    }
}
