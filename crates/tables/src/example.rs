//! Plans for tests.

use crate::{Clock, OnOverrun, Plan, Planned, Run, Selector, Task};
use punctual_model::Duration;

/// A plan without lanes, of tasks of these names.
pub fn head(slot_ns: u64, slots: u32, tasks: &[&str]) -> Plan {
    let task = |name: &&str| Task {
        name: (*name).to_owned(),
        thread: Selector::named(name),
        on_overrun: OnOverrun::default(),
        sleep_ends_job: false,
    };
    Plan {
        slot: Duration::from_ns(slot_ns),
        slots,
        clock: Clock::Monotonic,
        tasks: tasks.iter().map(task).collect(),
        lanes: Vec::new(),
        table: None,
    }
}

/// Slots 0–1 of task a on processor 1, 2–3 idle, 4 of task b, 5–9 idle; on processor 3: 4–5 of task a.
pub fn example() -> Plan {
    let run = |processor, from, to, job| Run { processor, from, to, job };
    let jobs = [0, 1, 0].map(|task| Planned { task, release: 0 });
    let runs = [run(1, 0, 2, 0), run(1, 4, 5, 1), run(3, 4, 6, 2)];
    Plan::new(head(1_000, 10, &["a", "b"]), &[1, 3], &runs, &jobs).expect("a table")
}
