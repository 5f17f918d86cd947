//! Real-time threads that never wait. They have no jobs and so no figures, but may keep everything else from a
//! processor.

use crate::overview::policy;
use crate::visible;
use punctual_model::{Duration, Task};

/// Tasks observed for a shorter time are not mentioned: every thread runs for a moment before it first waits.
const LEAST: Duration = Duration::from_ms(100);

/// A sentence for each of these tasks that never waited.
pub(crate) fn sentences(tasks: &[&Task]) -> Vec<String> {
    tasks.iter().filter_map(|task| sentence(task)).collect()
}

fn sentence(task: &Task) -> Option<String> {
    let observed = task.until_ns.since(task.from_ns);
    let cpu = task.busy_ns.filter(|_| task.policy.is_real_time() && observed >= LEAST)?;
    let which = match task.affinity.parse::<u32>() {
        Ok(cpu) => format!("processor {cpu}"),
        Err(_) => "a processor".to_owned(),
    };
    Some(format!(
        "{} ({}, TID {}) never waits: it took {} of {which}, and has no jobs.",
        visible(&task.name),
        policy(task),
        task.tid,
        share(cpu, observed),
    ))
}

/// Readings of the account and of the clock are not of the same instant: at most all.
fn share(cpu: Duration, observed: Duration) -> String {
    format!("{:.0} %", (cpu.ns() as f64 / observed.ns() as f64).min(1.0) * 100.0)
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
    fn a_thread_that_never_waits_has_a_sentence() {
        let pinned = busy("1", Duration::from_ms(2_001));
        let expected = "spin (FIFO 40, TID 7) never waits: it took 100 % of processor 1, and has no jobs.";
        assert_eq!(sentences(&[&pinned]), [expected]);
        let budget = busy("0-1", Duration::from_ms(400));
        assert!(sentences(&[&budget])[0].contains("it took 20 % of a processor"));
    }

    #[test]
    fn others_have_none() {
        let mut brief = busy("1", Duration::from_ms(1));
        brief.until_ns = brief.from_ns + Duration::from_ms(1);
        let mut unknown = busy("1", Duration::ZERO);
        unknown.busy_ns = None;
        assert!(sentences(&[&brief, &unknown]).is_empty());
    }
}
