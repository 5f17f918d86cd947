//! What works on this machine: observing, measuring, dispatching tables; and how a program is set up.

mod facts;
mod program;
mod quiet;

use crate::error::{Result, plain_reason};
use punctual_dispatch::{Support, support};
use punctual_observe::{Check, Verdict};

const MEASURING: &str = "measuring threads";
const DISPATCH: &str = "time-triggered dispatch";
const DISPATCHING: &str = "punctual tt run";

/// Checks everything by trying it.
pub fn doctor() -> Vec<Check> {
    let mut checks = punctual_observe::doctor();
    let found = support();
    checks.push(measuring());
    checks.extend(monitors());
    checks.extend([dispatch(&found), quiet::quiet(&found)]);
    checks
}

/// Looks at a program for a second: what may make its jobs late.
pub fn of_program(pid: u32) -> Result<Vec<Check>> {
    Ok(program::judge(&facts::Facts::of(pid)?))
}

/// CAP_BPF and CAP_PERFMON do not allow real-time priorities.
fn measuring() -> Check {
    let check = |ok, detail: String, advice: Option<&str>| Check {
        name: MEASURING,
        ok,
        detail,
        advice: advice.map(Into::into),
        needed_for: "punctual latency with a thread that measures on each processor",
    };
    match crate::measure::measuring_permitted() {
        Ok(()) => check(Verdict::Works, "may have real-time priorities".into(), None),
        Err(refused) => check(
            Verdict::Degraded,
            format!("may not have real-time priorities: {}", plain_reason(&refused)),
            Some(
                "run as root (sudo), or grant the file CAP_SYS_NICE as well: setcap \
                 cap_bpf,cap_perfmon,cap_syslog,cap_sys_nice+ep punctual; punctual latency --measure off \
                 needs no such threads",
            ),
        ),
    }
}

/// Only where something is left over.
fn monitors() -> Option<Check> {
    let left = crate::measure::monitors_left();
    let monitors: Vec<&str> = left.iter().flat_map(|it| &it.monitors).map(String::as_str).collect();
    (!left.is_empty()).then(|| Check {
        name: "monitors of the kernel",
        ok: Verdict::Degraded,
        detail: format!("left on by a measurement that was killed: {}", monitors.join(", ")),
        advice: Some("punctual latency --verify --for 1 switches them off".into()),
        needed_for: "a kernel as fast as before",
    })
}

fn dispatch(found: &Support) -> Check {
    let check = |ok, detail: &str, advice: Option<&str>| Check {
        name: DISPATCH,
        ok,
        detail: detail.into(),
        advice: advice.map(Into::into),
        needed_for: DISPATCHING,
    };
    match (&found.priorities, found.freezes) {
        (Err(why), _) => check(
            Verdict::Degraded,
            &format!("not possible: {why}"),
            Some("run as root (sudo), or grant the file CAP_SYS_NICE"),
        ),
        (Ok(()), false) => check(
            Verdict::Degraded,
            "from user space; nothing else runs in idle slots, because threads cannot be frozen",
            Some("mount cgroups of version 2 (mount -t cgroup2 none /sys/fs/cgroup), writable for punctual"),
        ),
        (Ok(()), true) => match &found.sched_ext {
            Ok(()) => check(Verdict::Works, "by sched_ext, or from user space", None),
            Err(why) => check(Verdict::Works, &format!("from user space; not by sched_ext: {why}"), None),
        },
    }
}
