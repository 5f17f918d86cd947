//! What a job list says of each job: declared once, for both formats and `docs/job-lists.md`.

use super::row::Row;
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
        assert_eq!(documented, COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>());
    }
}
