//! Steps of the wall clock during an observation, in words.

use crate::number::about;
use punctual_model::{ClockStep, Duration, Threads};

/// A sentence for each step of `CLOCK_REALTIME`.
pub(crate) fn steps(seen: &Threads) -> impl Iterator<Item = String> {
    seen.clock_steps.iter().map(|step| sentence(step, seen))
}

fn sentence(step: &ClockStep, seen: &Threads) -> String {
    let sign = if step.by_ns < 0 { '-' } else { '+' };
    format!(
        "CLOCK_REALTIME was set by {sign}{} at {} of the observation: what was due in between on that clock \
         is counted from then.",
        about(Duration::from_ns(step.by_ns.unsigned_abs())),
        about(step.at_ns.since(seen.from_ns)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Instant;

    #[test]
    fn steps_have_a_sign_and_a_time() {
        let step = |by_ns| ClockStep { at_ns: Instant::from_ns(13_315_000_000), by_ns };
        let seen = Threads {
            from_ns: Instant::from_ns(10_000_000_000),
            clock_steps: vec![step(5_000_000_000), step(-1_000_000)],
            ..Threads::default()
        };
        let all: Vec<String> = steps(&seen).collect();
        assert!(
            all[0].starts_with("CLOCK_REALTIME was set by +5 s at 3.315 s of the observation"),
            "{all:?}"
        );
        assert!(all[1].starts_with("CLOCK_REALTIME was set by -1 ms at"), "{all:?}");
    }
}
