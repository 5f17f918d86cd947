//! Kernel threads that dispatching threads may have to wait for.
//!
//! Threads of the table are frozen and thawed under a lock of all cgroups, and who has it may wait for RCU
//! meanwhile: moving a thread to another cgroup does. A dispatching thread that waits for the lock keeps its
//! processor from everything below its plug. RCU needs threads of its own, and timers for them, which on
//! PREEMPT_RT are run by threads, too. If the plugs kept those from running, all would wait for one another
//! for ever.

use super::Event;
use crate::error::Error;
use crate::guardian::Guardian;
use crate::undo::Undo;
use crate::user::Priorities;
use punctual_linux::proc::{self, Stat};
use punctual_linux::scheduling::{self, Scheduling, State};
use punctual_linux::system;
use punctual_linux::thread::Thread;
use punctual_schedule::AssignedPolicy;
use punctual_tables::Plan;

/// One on each processor: timers of ordinary threads, callbacks of RCU.
const OF_PROCESSORS: [&str; 2] = ["ktimers", "rcuc"];

/// On any processor: grace periods of RCU, priorities of who holds them up, callbacks of processors in
/// `rcu_nocbs=`.
const ANYWHERE: [&str; 6] = ["rcu_preempt", "rcu_sched", "rcub", "rcuog", "rcuop", "rcuos"];

/// Gives those threads a priority above the plugs' and below that of turns. The guardian is told before.
pub(super) fn raise(
    plan: &Plan,
    priorities: Priorities,
    guardian: &mut Guardian,
    events: &mut Vec<Event>,
) -> Result<(), Error> {
    let (processors, fifo) = (plan.processors(), AssignedPolicy::Fifo(priorities.kernel()));
    let online = system::online().unwrap_or_default();
    let is_everywhere = online.iter().all(|processor| processors.contains(processor));
    for tid in proc::processes() {
        let stat = Stat::of(tid).filter(Stat::is_of_kernel);
        let name = stat.as_ref().and_then(Stat::name);
        if !name.is_some_and(|name| is_needed(name, &processors, is_everywhere)) {
            continue;
        }
        if let Some(why) = raise_one(tid, &Scheduling::from_policy(fifo), guardian)? {
            events.push(Event::Warning(format!("slots may begin late: {why}")));
        }
    }
    Ok(())
}

/// Raises one thread, if it has a lower priority. Says in words what the kernel refused.
fn raise_one(tid: u32, to: &Scheduling, guardian: &mut Guardian) -> Result<Option<String>, Error> {
    let (Ok((thread, _)), Ok(before)) = (Thread::pin(tid), State::read(tid)) else { return Ok(None) };
    let is_above = before.scheduling.is_fixed_priority() && before.scheduling.priority >= to.priority;
    if is_above || before.scheduling.is_deadline() {
        return Ok(None);
    }
    guardian.note(Undo::Thread {
        tid,
        identity: thread.identity,
        before: Box::new(before),
        priorities: vec![to.priority],
        processors: Vec::new(),
        policies: Vec::new(),
    })?;
    Ok(scheduling::schedule(tid, to).err().map(|refused| refused.to_string()))
}

/// Whether a table that runs on these processors, perhaps all, has to let a thread of this name run.
fn is_needed(name: &str, processors: &[u32], is_everywhere: bool) -> bool {
    let (kind, number) = name.split_once('/').unwrap_or((name, ""));
    // Those that may run anywhere have other processors, if there are any.
    let is_here = || number.parse().is_ok_and(|number| processors.contains(&number));
    (is_everywhere && ANYWHERE.contains(&kind)) || (OF_PROCESSORS.contains(&kind) && is_here())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_tables_processors_are_needed_and_others_if_it_has_all() {
        let names = [
            "rcu_preempt",
            "rcub/0",
            "rcuc/0",
            "rcuc/1",
            "ktimers/0",
            "ktimers/1",
            "ksoftirqd/1",
            "rcuop/3",
            "migration/1",
            "rcu_tasks_kthread",
            "kworker/1:0",
        ];
        let needed = |is_everywhere| {
            let mut names = names.to_vec();
            names.retain(|name| is_needed(name, &[1, 3], is_everywhere));
            names
        };
        assert_eq!(needed(false), ["rcuc/1", "ktimers/1"]);
        assert_eq!(needed(true), ["rcu_preempt", "rcub/0", "rcuc/1", "ktimers/1", "rcuop/3"]);
    }
}
