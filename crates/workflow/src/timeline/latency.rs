//! Timelines of measurements of scheduling latency.

use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::recording::{Recording, TimeRange};
use punctual_report::counted;
use punctual_report::timeline::latency::LatencyTimeline;
use punctual_trace::Record;
use std::io::Write;

/// Refuses what a timeline of a measurement cannot show.
pub(super) fn require_alone(recording: &Recording, range: &TimeRange, has_others: bool) -> Result<()> {
    let path = recording.path().display();
    if has_others {
        return Err(Error::usage(format!(
            "{path} is a measurement of scheduling latency; a timeline shows it alone"
        )));
    }
    match range.is_everything() {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "--from and --until apply to recordings of threads; {path} is a measurement of scheduling latency"
        ))),
    }
}

/// Writes the timeline; returns in words what it shows.
pub(super) fn write(
    recording: &Recording,
    out: &mut impl Write,
    name: &str,
    monitor: &dyn Monitor,
) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| Error::file(name.to_owned()).because(error.to_string());
    let mut timeline = LatencyTimeline::new(out, recording.about()).map_err(|error| failed(&error))?;
    let mut broken = None;
    recording.read_all(&mut |record| {
        if let (Record::Latency(latency), None) = (record, &broken) {
            broken = timeline.record(latency).err();
        }
    })?;
    if let Some(error) = broken {
        return Err(failed(&error));
    }
    let (_, counts) = timeline.finish().map_err(|error| failed(&error))?;
    recording.report_problems(monitor);
    let mut parts = vec![counted(counts.interrupts, "interrupt")];
    let others = [
        (counts.maxima, "greatest duration"),
        (counts.latencies, "slow wake-up"),
        (counts.witnessed, "flight-recorder event"),
    ];
    parts.extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what)));
    Ok(parts.join(", "))
}
