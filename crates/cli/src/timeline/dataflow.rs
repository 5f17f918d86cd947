//! The timeline of a dataflow program.

use crate::failure::{Code, Failure, reason};
use crate::output::Destination;
use crate::progress::Bar;
use punctual_model::Instant;
use punctual_report::counted;
use punctual_report::timeline::dataflow::Dataflow;
use punctual_trace::flow::{Item, Reader};
use std::io::BufWriter;

/// Everything that was asked for.
pub struct Plan {
    pub reader: Reader,
    pub destination: Destination,
    pub quiet: bool,
}

pub fn run(plan: &Plan) -> Result<(), Failure> {
    let name = plan.destination.path().display();
    let failed = |error: &dyn std::fmt::Display| Failure::new(Code::File, format!("{name}: {error}"));
    let pending = plan.destination.begin().map_err(|error| Failure::file("write", &name, reason(&error)))?;
    let bar = Bar::new(plan.quiet, "drawing", plan.reader.bytes(), "bytes");
    let mut out = Some(BufWriter::new(pending));
    let mut timeline: Option<Dataflow<_>> = None;
    let mut broken = None;
    let mut take = |item: Item| {
        if timeline.is_none() && broken.is_none() {
            let from = match &item {
                Item::Event(event) => event.at,
                Item::Gap(gap) => gap.from,
            };
            let Some(out) = out.take() else { return };
            match Dataflow::new(out, plan.reader.about(), from) {
                Ok(begun) => timeline = Some(begun),
                Err(error) => broken = Some(error),
            }
        }
        if let Some(timeline) = timeline.as_mut().filter(|_| broken.is_none()) {
            broken = timeline.item(&item).err();
        }
    };
    let totals = plan.reader.read(&mut take, &mut |bytes| bar.set(bytes))?;
    drop(bar);
    if let Some(error) = broken {
        return Err(failed(&error));
    }
    let timeline = match (timeline, out) {
        (Some(timeline), _) => timeline,
        (None, Some(out)) => Dataflow::new(out, plan.reader.about(), Instant::from_ns(0)).map_err(|error| failed(&error))?,
        (None, None) => return Err(failed(&"nothing was begun")),
    };
    let (writer, counts) = timeline.finish().map_err(|error| failed(&error))?;
    let pending = writer.into_inner().map_err(|error| Failure::file("write", &name, reason(error.error())))?;
    pending.finish().map_err(|error| Failure::file("write", &name, reason(&error)))?;
    if totals.discarded + totals.missing_packets + totals.damaged_packets > 0 {
        let (events, packets) = (counted(totals.discarded, "event"), counted(totals.missing_packets + totals.damaged_packets, "packet"));
        eprintln!("punctual: {events} discarded by the tracer and {packets} missing or damaged are not shown");
    }
    if !plan.quiet {
        let (executions, pushes) = (counted(counts.executions, "execution"), counted(counts.pushes, "push"));
        let left_out = if counts.left_out > 0 {
            format!(" ({} without a counterpart left out)", counted(counts.left_out, "event"))
        } else {
            String::new()
        };
        eprintln!("Wrote {name}: {executions}, {pushes}{left_out}. Open it at https://ui.perfetto.dev (it stays in your browser).");
    }
    Ok(())
}
