//! Recordings in which switches are missing, and nothing says so.

use crate::Result;
use punctual_test_support::Random;
use punctual_trace::ctf::{Options, Reader, Recorder};
use punctual_trace::{Record, Step};
use std::path::Path;

/// One switch in so many is left out.
const ONE_IN: u64 = 32;

/// Copies a recording without some of its switches: neither the thread that leaves nor the one that comes is
/// seen. Returns how many are missing.
pub fn without_some(recording: &Path, copy: &Path, seed: u64) -> Result<u64> {
    let reader = Reader::open(recording)?;
    let mut recorder = Recorder::create(copy, reader.about(), &Options::default())?;
    let mut random = Random(seed);
    let (mut last, mut is_dropped, mut dropped) = (None, false, 0);
    let mut outcome = Ok(());
    reader.read(0..reader.stretches(), &mut |record| {
        if let Record::Switch(switch) = record
            && !switch.step.is_detail()
            && !matches!(switch.step, Step::Woken { .. })
        {
            let this = Some((switch.cpu, switch.at));
            if this != last {
                is_dropped = random.below(ONE_IN) == 0;
                dropped += u64::from(is_dropped);
            }
            last = this;
            if is_dropped {
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
    Ok(dropped)
}
