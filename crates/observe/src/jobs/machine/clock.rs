//! What is due when somebody sets the clock.

use super::records_of;
use punctual_trace::Record;

/// Arrivals of sleeps on CLOCK_REALTIME, and steps of that clock, in milliseconds, of a thread that sleeps
/// until 10 ms and is woken at 4 ms, when the clock is set by so much. It then asks for 12 ms, which it need
/// not wait for.
fn arrivals_over_step(set_by: i64, returns_first: bool) -> (Vec<Option<u64>>, Vec<(u64, i64)>) {
    const AHEAD: i64 = 1_700_000_000_000_000_000;
    const MS: i64 = 1_000_000;
    let (first, second, set) = (AHEAD + 10 * MS, AHEAD + 12 * MS, AHEAD + set_by * MS);
    let is_set = "isset 4000500 0 0\n";
    let (before, after) = if returns_first { (is_set, "") } else { ("", is_set) };
    let text = format!(
        "in 1000 0 0\nahead 1500 0 {AHEAD}\nuntil 2000 0 {first}\nout 3000 0 1\nset 4000000 0 {set}\n{before}\
         wake 4001000 0 0\nin 4002000 0 0\nexit 4003000 0 0\nuntil 4004000 0 {second}\nexit 4005000 0 0\n\
         {after}"
    );
    let (mut arrivals, mut steps) = (Vec::new(), Vec::new());
    for record in records_of(&text) {
        match record {
            Record::Activation(activation) => arrivals.push(activation.arrival.map(|at| at.ns() / MS as u64)),
            Record::ClockSet { at, by_ns } => steps.push((at.ns() / MS as u64, by_ns / MS)),
            _ => {}
        }
    }
    (arrivals, steps)
}

#[test]
fn what_a_step_of_the_clock_passes_is_due_at_the_step() {
    for returns_first in [true, false] {
        let far = arrivals_over_step(5_000, returns_first);
        assert_eq!(far, (vec![Some(4), Some(4)], vec![(4, 5_000)]));
        // 10 ms are 2 ms, and 12 ms are 4 ms.
        assert_eq!(arrivals_over_step(8, returns_first).0, [Some(4), Some(4)]);
    }
}

#[test]
fn a_clock_that_is_not_moved_is_no_step() {
    assert_eq!(arrivals_over_step(0, true).1, []);
}
