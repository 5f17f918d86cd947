//! The flight recorder's events, for people: what happened on a processor before the threshold was exceeded.

use super::names::Names;
use super::place;
use punctual_observe::latency::{Witnessed, WitnessedKind};
use std::fmt::Write;

/// One line for each event; times count back from the last.
pub fn text(cpu: u32, events: &[Witnessed], names: &Names) -> String {
    let mut text = format!("The last events on CPU {cpu} before the threshold was exceeded:\n");
    let Some(last) = events.last() else { return text };
    for event in events {
        let before = last.at.since(event.at).ns();
        let what = what(event.kind, names);
        let place = event.place.as_ref().map_or_else(String::new, |frame| format!("  {}", place(frame)));
        let us = before as f64 / 1_000.0;
        let _ = writeln!(text, "  {:>12}  thread {:<7} {what}{place}", format!("-{us:.3} µs"), event.tid);
    }
    text
}

fn what(kind: WitnessedKind, names: &Names) -> String {
    match kind {
        WitnessedKind::IrqsOff => "interrupts off".into(),
        WitnessedKind::IrqsOn => "interrupts on".into(),
        WitnessedKind::InterruptEntry => "interrupt or exception begins".into(),
        WitnessedKind::InterruptSource(source) => format!("  it is {}", names.source(source).name),
        WitnessedKind::InterruptExit => "interrupt or exception ends".into(),
        WitnessedKind::PreemptOff => "preemption off".into(),
        WitnessedKind::PreemptOn => "preemption on".into(),
        WitnessedKind::SchedulerEntry => "scheduler is called".into(),
        WitnessedKind::SchedulerExit => "scheduler returns".into(),
        WitnessedKind::Wakeup(tid) => format!("wakes thread {tid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Instant;

    #[test]
    fn times_count_back_from_the_last_event() {
        let event = |at, kind| Witnessed { at: Instant::from_ns(at), tid: 7, kind, place: None };
        let events = [event(1_000, WitnessedKind::IrqsOff), event(63_500, WitnessedKind::IrqsOn)];
        let text = text(2, &events, &Names::read());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("CPU 2"));
        assert!(lines[1].contains("-62.500 µs") && lines[1].ends_with("interrupts off"), "{text}");
        assert!(lines[2].contains("-0.000 µs") && lines[2].ends_with("interrupts on"), "{text}");
    }
}
