//! Recordings in which switches are missing without a record of the loss.

use crate::Result;
use punctual_trace::ctf::{Options, Reader, Recorder};
use punctual_trace::{Record, Step, Switch};
use std::path::Path;

/// One switch in so many is left out.
pub const ONE_IN: usize = 32;

/// Copies a recording without one switch in 32: neither the thread that leaves nor the one that comes is
/// seen. `first` is the first of them. Returns how many are missing.
pub fn without_some(recording: &Path, copy: &Path, first: usize) -> Result<usize> {
    let reader = Reader::open(recording)?;
    let mut recorder = Recorder::create(copy, reader.about(), &Options::default())?;
    let (mut last, mut switches) = (None, 0);
    let mut outcome = Ok(());
    reader.read(0..reader.stretches(), &mut |record| {
        if let Record::Switch(switch) = record
            && is_half(switch)
        {
            let this = Some((switch.cpu, switch.at));
            switches += usize::from(this != last);
            last = this;
            if switches % ONE_IN == first % ONE_IN {
                return;
            }
        }
        // The recorder repeats the state of threads by itself.
        if outcome.is_ok() && !matches!(record, Record::Known(_)) {
            outcome = recorder.record(record);
        }
    })?;
    outcome?;
    recorder.finish(reader.until(), reader.totals())?;
    Ok(switches / ONE_IN)
}

/// Whether a thread leaves a processor or gets one.
fn is_half(switch: &Switch) -> bool {
    !switch.step.is_detail() && !matches!(switch.step, Step::Woken { .. })
}
