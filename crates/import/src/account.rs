//! Accounts of imported traces: which of their events are read for what, and what they lack.

use punctual_trace::account::{Account, Events, Lack, Use};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Kinds of events that are listed; a broken source could have any number.
const MOST_KINDS: usize = 200;

/// What a kernel's event is read for. Calls have an event each in some traces.
pub fn use_of(name: &str) -> Option<Use> {
    Some(match name {
        "sched_switch" | "sched_stat_runtime" => Use::ExecutionTimes,
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" | "sched_migrate_task" => Use::Releases,
        "sched_pi_setprio" => Use::Priorities,
        "task_newtask" | "task_rename" | "lttng_statedump_process_state" => Use::Threads,
        _ if name.starts_with("sched_process_") => Use::Threads,
        _ if of_calls(name).is_some() => Use::Jobs,
        // Whether an interrupt woke a thread.
        _ if ["irq_", "timer_hrtimer_expire_"].iter().any(|group| name.starts_with(group)) => Use::Releases,
        _ => return None,
    })
}

/// Names that events of system calls begin with, where each call has its own.
const OF_CALLS: [&str; 4] = ["sys_enter", "sys_exit", "syscall_entry_", "syscall_exit_"];

fn of_calls(name: &str) -> Option<&'static str> {
    OF_CALLS.into_iter().find(|group| name.starts_with(group))
}

/// What no trace of the kernel has.
const FACTS: [Lack; 4] = [
    Lack::fact(
        Use::ExecutionTimes,
        "time of interrupts",
        "counted as execution time of the thread that was interrupted",
    ),
    Lack::fact(
        Use::Arrivals,
        "the time that a thread sleeps until",
        "when a job was due is not known: the trace has the address of that time only",
    ),
    Lack::fact(Use::Priorities, "FIFO or RR", "RR is shown as FIFO; budgets of DEADLINE are not known"),
    Lack::fact(
        Use::Threads,
        "affinity, command lines",
        "proofs need a contract that says where threads may run",
    ),
];

const NO_ACCOUNT: Lack = Lack::events(
    Use::ExecutionTimes,
    "sched_stat_runtime",
    "time between switches; too high where a switch is missing",
);
pub const NO_WAKES: Lack = Lack::events(
    Use::Releases,
    "sched_waking",
    "a release is known only to lie between two events, and responses are the worst case",
);
const NO_CALLS: Lack = Lack::events(Use::Jobs, "system calls", "every sleep ends a job");
const NO_MACHINE: Lack = Lack::fact(
    Use::Jobs,
    "machine",
    "the numbers of its system calls are not known, so every sleep ends a job",
);
const NO_DESCRIPTORS: Lack = Lack::fact(
    Use::Jobs,
    "what a descriptor is, and whether it blocks",
    "a read, accept or receive ends a job only where it slept",
);
const NO_LEND: Lack = Lack::events(
    Use::Priorities,
    "sched_pi_setprio",
    "a thread that inherits a priority is split into two tasks",
);
const NO_PROCESSES: Lack =
    Lack::events(Use::Threads, "task_newtask", "which process a thread belongs to is not known");

/// What decides, beside the kinds of its events, what a trace of the kernel lacks.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Whether it has system calls.
    pub calls: bool,
    /// Whether the numbers of its machine's calls are known.
    pub machine: bool,
    /// Whether it tells which process a thread belongs to.
    pub processes: bool,
    /// Events whose absence proves nothing: whether they were recorded is not known, or they cannot be.
    pub doubtful: &'static [&'static str],
}

fn lacks(has: &dyn Fn(&str) -> bool, known: Known) -> impl Iterator<Item = Lack> {
    let calls = match (known.calls, known.machine) {
        (false, _) => NO_CALLS,
        (true, false) => NO_MACHINE,
        (true, true) => NO_DESCRIPTORS,
    };
    let some = [
        (has("sched_stat_runtime"), NO_ACCOUNT),
        (has("sched_waking") || has("sched_wakeup"), NO_WAKES),
        (has("sched_pi_setprio"), NO_LEND),
        (known.processes, NO_PROCESSES),
    ];
    let some =
        missing(some).map(move |lack| Lack { is_recordable: !known.doubtful.contains(&lack.what), ..lack });
    FACTS.into_iter().chain([calls]).chain(some)
}

/// Those that are not there.
pub fn missing(all: impl IntoIterator<Item = (bool, Lack)>) -> impl Iterator<Item = Lack> {
    all.into_iter().filter(|(is_there, _)| !is_there).map(|(_, lack)| lack)
}

/// Of a trace of the kernel: events by name, how many there were, and what they were read for. `has`
/// tells whether events of a name are declared.
pub fn of_kernel(
    kinds: impl Iterator<Item = (impl AsRef<str>, u64, Option<Use>)>,
    has: &dyn Fn(&str) -> bool,
    known: Known,
    command: &'static str,
) -> Account {
    of(kinds, lacks(has, known), command)
}

/// Of events by name, how many there were, and what they were read for.
pub fn of(
    kinds: impl Iterator<Item = (impl AsRef<str>, u64, Option<Use>)>,
    lacks: impl Iterator<Item = Lack>,
    command: &'static str,
) -> Account {
    let mut counts = BTreeMap::<(String, Option<Use>), u64>::new();
    for (name, count, used_for) in kinds.filter(|(_, count, _)| *count > 0) {
        let count_before = counts.entry((group(name.as_ref(), used_for), used_for)).or_default();
        *count_before = count_before.saturating_add(count);
    }
    let mut events: Vec<Events> =
        counts.into_iter().map(|((name, used_for), count)| Events { name, count, used_for }).collect();
    events.sort_by_key(|events| Reverse(events.count));
    let others = events.iter().skip(MOST_KINDS).fold(0_u64, |sum, it| sum.saturating_add(it.count));
    events.truncate(MOST_KINDS);
    let mut lacks: Vec<Lack> = lacks.collect();
    lacks.sort_by_key(|lack| (lack.of, !lack.is_recordable));
    Account { events, others, lacks, command }
}

/// All calls whose events are read are one kind.
fn group(name: &str, used_for: Option<Use>) -> String {
    match of_calls(name).filter(|group| used_for.is_some() && name.len() > group.len()) {
        Some(group) => format!("{}_*", group.trim_end_matches('_')),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Known = Known { calls: true, machine: true, processes: true, doubtful: &[] };

    #[test]
    fn what_is_missing_is_said_with_its_cost() {
        let missing = |events: &[&str], known| {
            let account = of_kernel(
                std::iter::empty::<(&str, u64, Option<Use>)>(),
                &|name| events.contains(&name),
                known,
                "",
            );
            account
                .lacks
                .into_iter()
                .filter(|lack| lack.is_recordable)
                .map(|lack| lack.what)
                .collect::<Vec<_>>()
        };
        let whole = ["sched_switch", "sched_wakeup", "sched_stat_runtime", "sched_pi_setprio"];
        assert_eq!(missing(&whole, ALL), [""; 0]);
        assert_eq!(missing(&whole, Known { machine: false, ..ALL }), [""; 0]);
        let none = Known { calls: false, machine: false, processes: false, doubtful: &[] };
        let every =
            ["sched_stat_runtime", "sched_waking", "system calls", "sched_pi_setprio", "task_newtask"];
        assert_eq!(missing(&[], none), every);
        let doubtful = Known { doubtful: &["sched_pi_setprio"], ..none };
        assert_eq!(missing(&[], doubtful), [&every[..3], &every[4..]].concat());
    }

    #[test]
    fn events_are_counted_by_kind_and_calls_together() {
        let kinds = [
            ("sys_enter_read", 3, Some(Use::Jobs)),
            ("sys_enter_openat", 1, None),
            ("sys_enter_poll", 2, Some(Use::Jobs)),
            ("sys_exit", 4, Some(Use::Jobs)),
            ("sched_switch", 9, Some(Use::ExecutionTimes)),
            ("none", 0, None),
        ];
        let account = of(kinds.into_iter(), std::iter::empty(), "");
        let seen: Vec<_> =
            account.events.iter().map(|it| (it.name.as_str(), it.count, it.used_for)).collect();
        assert_eq!(
            seen,
            [
                ("sched_switch", 9, Some(Use::ExecutionTimes)),
                ("sys_enter_*", 5, Some(Use::Jobs)),
                ("sys_exit", 4, Some(Use::Jobs)),
                ("sys_enter_openat", 1, None),
            ]
        );
        let many: Vec<String> = (0..MOST_KINDS + 7).map(|number| format!("kind{number}")).collect();
        let account = of(many.iter().map(|name| (name.as_str(), 1, None)), std::iter::empty(), "");
        assert_eq!((account.events.len(), account.others), (MOST_KINDS, 7));
    }
}
