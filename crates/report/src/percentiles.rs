//! Percentiles of lateness, cost and response, beside the greatest.

use crate::number::at_most;
use crate::shape::Shape;
use punctual_model::{Duration, Object, Periodic, PeriodicOn, Quantiles, Stream};

/// From so many on, one in a thousand says something.
pub(crate) const MANY: u64 = 1_000;

/// The distribution of one kind of time.
pub(crate) struct Row {
    /// `Lateness`.
    pub(crate) what: &'static str,
    /// What half, 90 %, 99 % and, of many, 99.9 % do not exceed; never more than the greatest.
    pub(crate) values: Vec<Duration>,
    pub(crate) greatest: Duration,
    /// Whether it is estimated from a sample.
    pub(crate) is_sampled: bool,
}

/// The titles of [`Row::values`].
pub(crate) const TITLES: [&str; 4] = ["half", "90 %", "99 %", "99.9 %"];

/// Lateness of releases on the periodic grid, where the stream is shown as periodic.
pub(crate) fn lateness(stream: &Stream) -> Option<Row> {
    let Shape::Periodic(periodic) = Shape::new(stream) else { return None };
    let quantiles = stream.percentiles?.lateness?;
    let row = row("Lateness", &quantiles, periodic.jitter_ns, stream.releases);
    Some(Row { is_sampled: !is_requested(periodic, stream), ..row })
}

/// Whether lateness counts from times that the thread requested: all of them, or those of a sleep, of which
/// one may be unknown.
pub(crate) fn is_requested(periodic: &Periodic, stream: &Stream) -> bool {
    periodic.on == PeriodicOn::Arrival || matches!(stream.separator.object, Object::Clock { .. })
}

pub(crate) fn cost(stream: &Stream) -> Option<Row> {
    let greatest = *stream.execution.as_ref()?.wcet_ns.first()?;
    Some(row("Cost", &stream.percentiles?.cost?, greatest, stream.jobs))
}

pub(crate) fn response(stream: &Stream) -> Option<Row> {
    let greatest = stream.response.as_ref()?.max_ns;
    Some(row("Response", &stream.percentiles?.response?, greatest, stream.jobs))
}

/// All there are.
pub(crate) fn rows(stream: &Stream) -> Vec<Row> {
    [lateness(stream), cost(stream), response(stream)].into_iter().flatten().collect()
}

/// A percentile may be a little too great; what is greatest of all is exact.
fn row(what: &'static str, quantiles: &Quantiles, greatest: Duration, count: u64) -> Row {
    let shown = if count < MANY { 3 } else { 4 };
    let values = quantiles.each().into_iter().take(shown).map(|(_, value)| value.min(greatest)).collect();
    Row { what, values, greatest, is_sampled: false }
}

impl Row {
    /// `Half of the jobs needed at most 650 µs, 90 % 700 µs, 99 % 780 µs.`
    pub(crate) fn sentence(&self, verb: &str, noun: &str, end: &str) -> String {
        let mut parts = Vec::new();
        for (title, value) in TITLES.iter().zip(&self.values) {
            parts.push(match parts.is_empty() {
                true => format!("Half of the {noun} {verb} at most {}{end}", at_most(*value)),
                false => format!("{title} at most {}", at_most(*value)),
            });
        }
        let sampled = if self.is_sampled { " (estimated from a sample of them)" } else { "" };
        parts.join(", ") + sampled + "."
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_percentile_never_exceeds_the_maximum() {
        let mut stream = example::stream(5_000_000, 41_000);
        stream.percentiles = Some(example::percentiles());
        let sentence = |row: Option<Row>| row.map(|row| row.sentence("needed", "jobs", ""));
        let text = "Half of the jobs needed at most 700 µs, 90 % at most 750 µs, 99 % at most 790 µs, 99.9 \
                    % at most 800 µs.";
        assert_eq!(sentence(cost(&stream)).as_deref(), Some(text));
        // One in a thousand says nothing of a hundred.
        stream.jobs = 100;
        assert_eq!(cost(&stream).map(|row| row.values.len()), Some(3));
    }

    #[test]
    fn lateness_is_from_a_sample_if_arrivals_are_unknown() {
        let mut stream = example::stream(5_000_000, 41_000);
        stream.percentiles = Some(example::percentiles());
        assert_eq!(lateness(&stream).map(|row| row.is_sampled), Some(false));
        stream.arrival.periodic.iter_mut().for_each(|periodic| periodic.on = PeriodicOn::Release);
        assert_eq!(lateness(&stream).map(|row| row.is_sampled), Some(false), "those of a sleep are known");
        stream.separator.call = punctual_model::Call::Read;
        stream.separator.object = Object::None;
        let text = lateness(&stream).map(|row| row.sentence("were", "releases", " late")).unwrap_or_default();
        assert!(
            text.starts_with("Half of the releases were at most 6 µs late, 90 % at most 12 µs"),
            "{text}"
        );
        assert!(text.ends_with(" (estimated from a sample of them)."), "{text}");
        stream.arrival.periodic = None;
        assert!(lateness(&stream).is_none());
    }
}
