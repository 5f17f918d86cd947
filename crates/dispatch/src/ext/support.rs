//! Whether this kernel and this table allow dispatch by sched_ext.

use super::load::{Flags, Loaded, WATCHDOG_MS};
use punctual_linux::system;
use punctual_model::Duration;
use punctual_tables::{Clock, Lane, OnOverrun, Plan, Turn};
use std::fs;

/// The longest that a ready thread may wait. The other half of the watchdog's time is for turns without a
/// thread, and because it looks twice in its time.
pub const LONGEST_WAIT: Duration = Duration::from_ms(WATCHDOG_MS as u64 / 2);

const STATE: &str = "/sys/kernel/sched_ext/state";

/// Why dispatch by sched_ext does not work here, and what to do; `Ok` if nothing speaks against it.
pub fn support() -> Result<(), String> {
    Flags::read()?;
    let state = fs::read_to_string(STATE).map_err(|error| format!("{STATE}: {error}"))?;
    if state.trim() != "disabled" {
        let name = fs::read_to_string("/sys/kernel/sched_ext/root/ops").unwrap_or_default();
        return Err(format!("another sched_ext scheduler is loaded ({}): stop it", name.trim()));
    }
    if system::boot_options().split_whitespace().any(|word| word.starts_with("isolcpus=")) {
        return Err("the kernel's option isolcpus= excludes sched_ext: leave it out, a table isolates its \
                    processors itself"
            .into());
    }
    if !system::is_first_pid_namespace() {
        return Err("this process is in a PID namespace: run it outside the container".into());
    }
    let mount = system::cgroups().ok_or("cgroups of version 2 are not mounted")?;
    let controllers = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
    match controllers.split_whitespace().any(|name| name == "cpuset") {
        true => Ok(()),
        false => Err("cgroups of version 2 have no cpuset controller: unmount that of version 1".into()),
    }
}

/// The same, by loading a scheduler, too.
pub fn works() -> Result<(), String> {
    support()?;
    let turn = Turn { from: 0, to: 1, job: None };
    let plan = Plan {
        slot: Duration::from_ms(1),
        slots: 1,
        clock: Clock::Monotonic,
        tasks: Vec::new(),
        table: None,
        lanes: vec![Lane { processor: 0, turns: vec![turn] }],
    };
    Loaded::new(&plan, &Flags::read()?).map(drop).map_err(|error| error.to_string())
}

/// The longest time that a thread of the table may have to wait though it is ready, and whether the kernel's
/// watchdog stands that.
///
/// # Errors
/// If it does not, in words.
pub fn longest_wait(plan: &Plan, until_start: Duration) -> Result<(), String> {
    let most = LONGEST_WAIT.ns();
    let too_long = |what: String, ns: u64| {
        let wait = Duration::from_ns(ns);
        Err(format!("{what} for {wait}, and the kernel's watchdog ejects schedulers after {WATCHDOG_MS} ms"))
    };
    if until_start.ns() > most {
        return too_long("its threads would be held until the table begins,".into(), until_start.ns());
    }
    for (number, task) in plan.tasks.iter().enumerate() {
        let rounds = if task.on_overrun == OnOverrun::Skip { 2 } else { 1 };
        let wait = longest_gap(plan, number).saturating_mul(rounds * plan.slot.ns());
        if wait > most {
            return too_long(format!("{} waits for its slots", task.name), wait);
        }
    }
    Ok(())
}

/// The most slots in a row that are not a task's, on any processor.
fn longest_gap(plan: &Plan, task: usize) -> u64 {
    let turns = plan.lanes.iter().flat_map(|lane| &lane.turns);
    let own = turns.filter(|turn| turn.job.is_some_and(|job| job.task as usize == task));
    let mut own: Vec<(u32, u32)> = own.map(|turn| (turn.from, turn.to)).collect();
    own.sort_unstable();
    // Without slots it is never bound.
    let Some(&(first, _)) = own.first() else { return 0 };
    let next = own.iter().skip(1).map(|turn| u64::from(turn.0));
    let next = next.chain([u64::from(first) + u64::from(plan.slots)]);
    own.iter().zip(next).map(|(turn, next)| next.saturating_sub(turn.1.into())).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_tables::example::example;

    #[test]
    fn gaps_go_round_and_over_all_processors() {
        let plan = example();
        // Slots 0–1 on one processor and 4–5 on another; slot 4.
        assert_eq!((longest_gap(&plan, 0), longest_gap(&plan, 1)), (4, 9));
    }

    #[test]
    fn a_wait_that_the_watchdog_does_not_stand_is_refused() {
        let mut plan = example();
        longest_wait(&plan, Duration::ZERO).expect("microseconds");
        longest_wait(&plan, Duration::from_ms(20_000)).expect_err("a late start");
        plan.slot = Duration::from_ms(2_000);
        let why = longest_wait(&plan, Duration::ZERO).expect_err("18 s");
        assert!(why.contains("b waits for its slots"), "{why}");
    }
}
