//! The flight recorder's events, for people: what happened on a processor before the threshold was exceeded.

use punctual_latency::Observation;
use punctual_report::visible;
use punctual_trace::latency::{Witnessed, WitnessedKind};
use std::collections::BTreeMap;
use std::fmt::Write;

/// One line for each event; times count back from the last. `None` without an event.
pub(super) fn text(observation: &Observation) -> Option<String> {
    let events = observation.witnessed();
    let Witnessed { cpu, at: last, .. } = events.last()?;
    let mut text = format!("The last events on CPU {cpu} before the threshold was exceeded:\n");
    let mut names = BTreeMap::new();
    for event in events {
        let before = last.since(event.at).ns();
        let mut name = |tid| names.entry(tid).or_insert_with(|| named(tid, observation)).clone();
        let (thread, what) = (name(event.tid), what(event.kind, observation, &mut name));
        let place = event.place.as_ref().map_or_else(String::new, |place| format!("  {place}"));
        let us = before as f64 / 1_000.0;
        let _ = writeln!(text, "  {:>12}  {thread:<24} {what}{place}", format!("-{us:.3} µs"));
    }
    Some(text)
}

/// A thread as tables have it; by its number alone if nobody knows its name.
fn named(tid: u32, observation: &Observation) -> String {
    if tid == 0 {
        return "idle".into();
    }
    let alive = || punctual_linux::proc::name(tid);
    match observation.thread_name(tid).map(str::to_owned).or_else(alive) {
        Some(name) => format!("{} ({tid})", visible(&name)),
        None => format!("thread {tid}"),
    }
}

fn what(kind: WitnessedKind, observation: &Observation, name: &mut dyn FnMut(u32) -> String) -> String {
    match kind {
        WitnessedKind::IrqsOff => "interrupts off".into(),
        WitnessedKind::IrqsOn => "interrupts on".into(),
        WitnessedKind::InterruptEntry => "interrupt or exception begins".into(),
        WitnessedKind::InterruptSource(number) => {
            let name = observation.source(number).map(|source| source.name.clone());
            format!("  it is {}", name.unwrap_or_else(|| number.to_string()))
        }
        WitnessedKind::InterruptExit => "interrupt or exception ends".into(),
        WitnessedKind::PreemptOff => "preemption off".into(),
        WitnessedKind::PreemptOn => "preemption on".into(),
        WitnessedKind::SchedulerEntry => "scheduler is called".into(),
        WitnessedKind::SchedulerExit => "scheduler returns".into(),
        WitnessedKind::Wakeup(tid) => format!("wakes {}", name(tid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Instant;
    use punctual_trace::latency::Latency;

    #[test]
    fn times_count_back_from_the_last_event() {
        let mut observation = Observation::default();
        for (at, kind) in [(1_000, WitnessedKind::IrqsOff), (63_500, WitnessedKind::IrqsOn)] {
            let event = Witnessed { cpu: 2, at: Instant::from_ns(at), tid: 7, kind, place: None };
            observation.record(&Latency::Witnessed(Box::new(event)));
        }
        let text = text(&observation).expect("events");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("CPU 2"));
        assert!(lines[1].contains("-62.500 µs") && lines[1].ends_with("interrupts off"), "{text}");
        assert!(lines[2].contains("-0.000 µs") && lines[2].ends_with("interrupts on"), "{text}");
    }
}
