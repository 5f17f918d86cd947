//! Real-time threads that never wait, or have ceased to. No job covers that time, in which they may keep
//! everything else from a processor.

use crate::figures::Note;
use crate::text;
use punctual_model::{Duration, Task};

/// Shorter times are not mentioned: every thread runs for a moment before it first waits, and before it ends.
const LEAST: Duration = Duration::from_ms(100);

/// What a row says of a task that never waited, or had ceased to when it ended; `None` of others.
pub(crate) fn note(task: &Task) -> Option<Note> {
    let observed = task.until_ns.since(task.from_ns);
    if !task.policy.is_real_time() || observed < LEAST {
        return None;
    }
    if let Some(awake) = task.open_ns.filter(|open| *open >= LEAST) {
        return Some(Note::Awake(awake));
    }
    let cpu = task.busy_ns?;
    // Readings of the account and of the clock are not of the same instant: at most all.
    let share = (cpu.ns() as f64 / observed.ns() as f64).min(1.0);
    let percent = (share * 100.0).round() as u64;
    Some(Note::NeverWaits { percent, processor: task.affinity.parse().ok() })
}

/// Why a task without jobs has none.
pub(crate) fn without_jobs(task: &Task) -> String {
    match note(task) {
        Some(note) => format!("It has no jobs: it {}.", text::note(&note)),
        None => "No job was seen: it never waited and continued while it was observed.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::task;

    fn busy(affinity: &str, cpu: Duration) -> Task {
        let mut task = task("spin", 7, 40);
        task.streams.clear();
        task.primary = None;
        task.affinity = affinity.to_owned();
        task.until_ns = task.from_ns + Duration::from_ms(2_000);
        task.busy_ns = Some(cpu);
        task
    }

    #[test]
    fn a_thread_that_never_waits_has_a_note() {
        let words = |task: &Task| note(task).map(|note| text::note(&note));
        let pinned = busy("1", Duration::from_ms(2_001));
        assert_eq!(words(&pinned).as_deref(), Some("never waits, 100 % of CPU 1"));
        let budget = busy("0-1", Duration::from_ms(400));
        assert_eq!(words(&budget).as_deref(), Some("never waits, 20 % of a CPU"));
        assert_eq!(without_jobs(&pinned), "It has no jobs: it never waits, 100 % of CPU 1.");
    }

    #[test]
    fn one_that_ceased_to_wait_has_a_note() {
        let mut once = busy("1", Duration::ZERO);
        (once.busy_ns, once.open_ns) = (None, Some(Duration::from_ms(1_900)));
        assert_eq!(without_jobs(&once), "It has no jobs: it has been awake for the last 1.9 s.");
        once.open_ns = Some(Duration::from_ms(2));
        assert_eq!(note(&once), None);
    }

    #[test]
    fn others_have_none() {
        let mut brief = busy("1", Duration::from_ms(1));
        brief.until_ns = brief.from_ns + Duration::from_ms(1);
        let mut unknown = busy("1", Duration::ZERO);
        unknown.busy_ns = None;
        assert_eq!([note(&brief), note(&unknown)], [None, None]);
    }
}
