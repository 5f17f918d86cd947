//! One repetition of a time-triggered table as a timeline: a track for each processor, with the slots of each
//! job.

use super::Error;
use super::packets::{Argument, Packets};
use super::proto::Track;
use punctual_model::{Instant, Platform, Table, TimingModel};
use punctual_trace::About;
use std::io::Write;

/// Writes the timeline of the model's table, from time zero on; returns how many runs it shows.
///
/// # Errors
/// If it cannot be written.
pub fn write(out: impl Write, model: &TimingModel, table: &Table) -> Result<u64, Error> {
    let about = About {
        platform: Platform { kernel: String::new(), ..model.platform.clone().unwrap_or_default() },
        host: String::new(),
        source: format!("punctual {}", env!("CARGO_PKG_VERSION")),
        clock: table.clock.name().to_owned(),
        clock_zero: None,
        from: Instant::from_ns(0),
        switches: false,
        latency: false,
    };
    let mut packets = Packets::new(out, &about)?;
    let at = |slot: u64| Instant::from_ns(slot.saturating_mul(table.slot_ns.ns()));
    for &processor in &table.processors {
        let id = packets.new_track();
        let name = Some(format!("CPU {processor}"));
        let rank = Some(i32::try_from(processor).unwrap_or(i32::MAX));
        packets.track(about.from, Track { id, name, rank, ..Track::default() })?;
        for run in table.runs_on(processor) {
            let (task, job) = (table.task_of(run.job), &table.jobs[run.job]);
            let arguments = vec![
                Argument::number("first slot", run.from),
                Argument::number("slots", run.slots()),
                Argument::number("release (slot)", job.release),
                Argument::number("deadline (slot)", job.deadline),
            ];
            packets.slice(id, "slots", task.name.clone(), (at(run.from), at(run.to)), arguments)?;
        }
    }
    packets.finish()?;
    Ok(table.runs.len() as u64)
}
