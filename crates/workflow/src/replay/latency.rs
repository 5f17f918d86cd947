//! Recordings of measurements of scheduling latency.

use crate::error::{Error, Result};
use crate::latency::Together;
use crate::measure::log;
use crate::monitor::Monitor;
use crate::recording::Recording;
use punctual_latency::Observation;
use punctual_model::TimingModel;
use punctual_trace::Record;
use punctual_trace::latency::Latency;

/// One model of all of these recordings, which has no other sections; `None` of none.
pub(super) fn replay(recordings: &[Recording], monitor: &dyn Monitor) -> Result<Option<TimingModel>> {
    let mut all = Together::default();
    for recording in recordings {
        let observation = observe(recording)?;
        recording.report_problems(monitor);
        if !observation.witnessed().is_empty() {
            monitor.hint(&format!(
                "it has the last events before the threshold: punctual timeline {} shows them",
                recording.path().display()
            ));
        }
        let model = log::model(&observation, recording.about(), recording.reader().until());
        if model.latency.is_none() {
            let path = recording.path().display();
            return Err(Error::file(format!("cannot replay {path}"))
                .because("the part that says what was measured is missing"));
        }
        all.add(recording.path().display().to_string(), model)?;
    }
    Ok(all.model)
}

/// All that a recording says. Where some of it is missing, everything may have been greater.
pub(crate) fn observe(recording: &Recording) -> Result<Observation> {
    observe_with(recording, &mut |_| {})
}

/// The same, for those who want to see the records as well.
pub(crate) fn observe_with(recording: &Recording, each: &mut dyn FnMut(&Latency)) -> Result<Observation> {
    let mut observation = Observation::default();
    recording.read_all(&mut |record| {
        if let Record::Latency(latency) = record {
            observation.record(latency);
            each(latency);
        }
    })?;
    if recording.is_damaged() {
        observation.mark_damaged();
    }
    Ok(observation)
}

/// Both in one.
pub(super) fn merge(one: TimingModel, other: Option<TimingModel>) -> Result<TimingModel> {
    let Some(other) = other else { return Ok(one) };
    one.merge(other).map_err(|error| {
        Error::file("the recordings do not make one timing model").because(error.to_string())
    })
}
