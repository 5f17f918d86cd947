//! Checks what works on this kernel with these privileges.

use crate::error::Error;
use crate::jobs::{self, Attach, Settings};
use crate::loader::ADVICE;
use crate::{preemption, system};
use punctual_model::latency::NoVariables;
use std::fs;
use std::path::Path;

/// Whether something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Works,
    /// It does not; Punctual works without it, at some cost.
    Degraded,
    /// It does not, and observing needs it.
    Missing,
}

/// One check.
#[derive(Clone, Debug)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// Whether it works.
    pub ok: Verdict,
    /// The finding.
    pub detail: String,
    /// What to do about it.
    pub advice: Option<String>,
    /// What it is needed for.
    pub needed_for: &'static str,
}

impl Check {
    fn works(name: &'static str, needed_for: &'static str, detail: impl Into<String>) -> Check {
        Check { name, ok: Verdict::Works, detail: detail.into(), advice: None, needed_for }
    }

    fn fails(
        name: &'static str,
        needed_for: &'static str,
        ok: Verdict,
        detail: impl Into<String>,
        advice: &str,
    ) -> Check {
        Check { name, ok, detail: detail.into(), advice: Some(advice.to_owned()), needed_for }
    }
}

/// Checks everything that observing needs, by trying it.
pub fn doctor() -> Vec<Check> {
    let mut checks = vec![kernel_release(), privileges(), types()];
    if checks.iter().all(|check| check.ok == Verdict::Works) {
        checks.extend([tracepoints(), functions(), latency()]);
    } else {
        let not_tried = |name, needed_for, ok| {
            Check::fails(name, needed_for, ok, "not tried", "fix the item above first")
        };
        checks.push(not_tried(TRACEPOINTS, "observing", Verdict::Missing));
        checks.push(not_tried(FUNCTIONS, FULL_SPEED, Verdict::Degraded));
        checks.push(not_tried(LATENCY, BOUND, Verdict::Degraded));
    }
    checks.extend([cgroups(), throttling()]);
    checks
}

const TRACEPOINTS: &str = "tracepoints";
const FUNCTIONS: &str = "function tracing (fentry)";
const FULL_SPEED: &str = "keeping unobserved system calls at full speed";

const LATENCY: &str = "scheduling latency";
const BOUND: &str = "a bound of the scheduling latency";

/// A bound, or measured latencies alone.
fn latency() -> Check {
    let Err(unsupported) = crate::latency::supported() else {
        if let Err(error) = crate::latency::symbols::Symbols::read() {
            let advice = "run as root (sudo), or grant the file CAP_SYSLOG as well";
            return Check::fails(LATENCY, BOUND, Verdict::Degraded, without_advice(&error), advice);
        }
        return match preemption::is_real_time_kernel() {
            true => Check::works(LATENCY, BOUND, "bounded: the kernel shows what the bound is made of"),
            false => Check::fails(
                LATENCY,
                BOUND,
                Verdict::Degraded,
                "measured, and its variables; no bound, whose rules are those of PREEMPT_RT",
                "use a kernel built with CONFIG_PREEMPT_RT",
            ),
        };
    };
    let detail = match crate::wakeups::supported() {
        Ok(()) => format!("measured, not bounded: {unsupported}"),
        Err(error) => format!("neither bounded nor measured: {}", without_advice(&error)),
    };
    let advice = match unsupported.reason {
        NoVariables::Privileges => "run as root (sudo)",
        NoVariables::Tracefs => "mount -t tracefs tracefs /sys/kernel/tracing",
        _ => "use a kernel built with CONFIG_PREEMPT_RT, CONFIG_IRQSOFF_TRACER and CONFIG_PREEMPT_TRACER",
    };
    Check::fails(LATENCY, BOUND, Verdict::Degraded, detail, advice)
}

fn without_advice(error: &Error) -> String {
    let text = error.to_string();
    text.strip_suffix(ADVICE).unwrap_or(&text).to_owned()
}

fn kernel_release() -> Check {
    let (name, needed_for) = ("kernel", "observing");
    let release = punctual_linux::system::kernel_release();
    match system::kernel_version() >= (5, 15) {
        true => Check::works(name, needed_for, format!("Linux {release}")),
        false => Check::fails(
            name,
            needed_for,
            Verdict::Missing,
            format!("Linux {release}"),
            "boot Linux 5.15 or newer",
        ),
    }
}

fn privileges() -> Check {
    let (name, needed_for) = ("privileges", "observing");
    let missing = system::missing_capabilities();
    match missing.is_empty() {
        true => Check::works(name, needed_for, "eBPF programs may be loaded and attached"),
        false => Check::fails(
            name,
            needed_for,
            Verdict::Missing,
            format!("lacks {}", missing.join(" and ")),
            "run as root (sudo), or grant the file the capabilities: setcap cap_bpf,cap_perfmon+ep punctual",
        ),
    }
}

fn types() -> Check {
    let (name, needed_for) = ("kernel types (BTF)", "observing");
    match system::kernel_types() {
        Ok(_) => Check::works(name, needed_for, system::KERNEL_TYPES),
        Err(error) => Check::fails(
            name,
            needed_for,
            Verdict::Missing,
            error.to_string(),
            "use a kernel built with CONFIG_DEBUG_INFO_BTF",
        ),
    }
}

fn tracepoints() -> Check {
    let (name, needed_for) = (TRACEPOINTS, "observing");
    match jobs::load(&Settings { buffer_bytes: 4096, ..Settings::default() }, Attach::Tracepoint) {
        Ok(_) => Check::works(name, needed_for, "scheduler and system calls can be traced"),
        Err(error) => Check::fails(
            name,
            needed_for,
            Verdict::Missing,
            without_advice(&error),
            "use a kernel with CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS and CONFIG_FTRACE_SYSCALLS that is not \
             locked down",
        ),
    }
}

fn functions() -> Check {
    let (name, needed_for) = (FUNCTIONS, FULL_SPEED);
    let tried = system::require_privileges()
        .and_then(|()| system::kernel_types())
        .and_then(|btf| jobs::try_fentry(&btf));
    match tried {
        Ok(()) if preemption::may_be_preempted() => Check::works(
            name,
            needed_for,
            "works; but this kernel preempts threads in it and then skips it for others, so tracepoints are \
             used unless it is asked for",
        ),
        Ok(()) => Check::works(name, needed_for, "the functions of system calls can be traced"),
        Err(error) => Check::fails(
            name,
            needed_for,
            Verdict::Degraded,
            without_advice(&error),
            "nothing: tracepoints are used instead, which makes every system call a little slower while \
             observing",
        ),
    }
}

fn cgroups() -> Check {
    let (name, needed_for) = ("cgroups of version 2", "--cgroup");
    match punctual_linux::system::cgroups() {
        Some(path) => Check::works(name, needed_for, format!("mounted at {}", path.display())),
        None => Check::fails(
            name,
            needed_for,
            Verdict::Degraded,
            "not mounted",
            "mount -t cgroup2 none /sys/fs/cgroup",
        ),
    }
}

fn throttling() -> Check {
    let path = Path::new("/proc/sys/kernel/sched_rt_runtime_us");
    let runtime = fs::read_to_string(path).ok();
    let period = fs::read_to_string(path.with_file_name("sched_rt_period_us")).unwrap_or_default();
    throttled(runtime.as_deref().map(str::trim), period.trim())
}

/// Real-time threads get `runtime` of each `period`, in microseconds; −1 is all of it.
fn throttled(runtime: Option<&str>, period: &str) -> Check {
    let (name, needed_for) = ("real-time throttling", "real-time threads that the kernel never holds back");
    match runtime {
        None => Check::works(name, needed_for, "not in this kernel"),
        Some("-1") => Check::works(name, needed_for, "off"),
        Some(runtime) => Check::fails(
            name,
            needed_for,
            Verdict::Degraded,
            format!("on: {runtime} of every {period} µs for real-time threads"),
            "sysctl kernel.sched_rt_runtime_us=-1; a real-time thread that never sleeps then keeps its \
             processor",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_is_a_restriction() {
        let verdict = |runtime| throttled(runtime, "1000000").ok;
        assert_eq!(verdict(Some("950000")), Verdict::Degraded);
        assert_eq!([verdict(Some("-1")), verdict(None)], [Verdict::Works; 2]);
    }
}
