//! The timeline of a dataflow program.

use crate::chains::Trace;
use crate::error::{Error, Result};
use crate::monitor::{Monitor, Unit};
use punctual_extract::flow::Clipped;
use punctual_model::Instant;
use punctual_report::counted;
use punctual_report::timeline::dataflow::{Counts, Dataflow, MOST_PASSAGES};
use punctual_trace::flow::Item;
use std::io::Write;

/// Writes a program in two passes, behind the threads if there are some. Returns what is shown of it, in
/// words, and its time.
pub fn write(
    trace: &Trace,
    out: &mut impl Write,
    name: &str,
    is_behind_threads: bool,
    monitor: &dyn Monitor,
) -> Result<(String, Option<(Instant, Instant)>)> {
    let failed = |error: &dyn std::fmt::Display| Error::file(name.to_owned()).because(error.to_string());
    let reader = trace.reader();
    let begin = |out, from| match is_behind_threads {
        true => Dataflow::behind_threads(out, reader.about(), from),
        false => Dataflow::new(out, reader.about(), from),
    };
    let followed = trace.followed(monitor)?;
    let (mut passages, mut clip) = (followed.passages(), followed.clip(trace));
    let progress = monitor.begin("drawing", reader.bytes(), Unit::Bytes);
    let mut out = Some(out);
    let mut timeline: Option<Dataflow<_>> = None;
    let mut broken = None;
    let mut span: Option<(Instant, Instant)> = None;
    let mut take = |item: Item| {
        let item = match clip.as_mut().map(|clip| clip.item(&item)) {
            None => item,
            Some(Some(Clipped::Inside(item))) => item,
            Some(Some(before)) => return passages.before(&before),
            Some(None) => return,
        };
        let from = item.at();
        let until = if let Item::Gap(gap) = &item { gap.until } else { from };
        span = Some(span.map_or((from, until), |(first, last)| (first, last.max(until))));
        if timeline.is_none() && broken.is_none() {
            let Some(out) = out.take() else { return };
            match begin(out, from) {
                Ok(begun) => timeline = Some(begun),
                Err(error) => broken = Some(error),
            }
        }
        if let Some(timeline) = timeline.as_mut().filter(|_| broken.is_none()) {
            let ended = passages.item(&item, |passage| timeline.passage(&passage));
            broken = timeline.item(&item).and(ended).err();
        }
    };
    let totals = reader.read(&mut take, &mut |bytes| progress.set(bytes))?;
    drop(progress);
    if let Some(error) = broken {
        return Err(failed(&error));
    }
    let timeline = match (timeline, out) {
        (Some(timeline), _) => timeline,
        (None, Some(out)) => begin(out, Instant::from_ns(0)).map_err(|error| failed(&error))?,
        (None, None) => return Err(failed(&"the timeline was not begun")),
    };
    let (_, counts) = timeline.finish().map_err(|error| failed(&error))?;
    if totals.discarded + totals.missing_packets + totals.damaged_packets > 0 {
        let (events, packets) = (totals.discarded, totals.missing_packets + totals.damaged_packets);
        let missing =
            [(events, "event", "discarded by the tracer"), (packets, "packet", "missing or damaged")];
        let missing: Vec<String> = missing
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, what, why)| format!("{} {why}", counted(*count, what)))
            .collect();
        monitor.warn(&format!("not shown: {}", missing.join(", ")));
    }
    Ok((in_words(&counts), span))
}

fn in_words(counts: &Counts) -> String {
    let (executions, pushes) = (counted(counts.executions, "execution"), counted(counts.pushes, "push"));
    let passages = match counts.passages {
        0 => String::new(),
        passages => format!(", {} through chains", counted(passages, "passage")),
    };
    let mut left_out = Vec::new();
    if counts.left_out > 0 {
        left_out.push(format!("{} without a counterpart left out", counted(counts.left_out, "event")));
    }
    if counts.passages_left_out > 0 {
        let passages = counted(counts.passages_left_out, "passage");
        left_out.push(format!("{passages} left out: more than {MOST_PASSAGES} at a time"));
    }
    let left_out = if left_out.is_empty() { String::new() } else { format!(" ({})", left_out.join("; ")) };
    format!("{executions}, {pushes}{passages}{left_out}")
}
