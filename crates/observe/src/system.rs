//! What must be known of the machine before anything is loaded: privileges, types, namespaces, cgroups,
//! processes.

use crate::error::{Error, ErrorKind};
use libbpf_rs::Btf;
use libbpf_rs::btf::ReferencesType;
use libbpf_rs::btf::types::{FuncProto, Ptr, Typedef};
use punctual_linux::proc;
use punctual_linux::system::{self as linux, is_first_pid_namespace};
pub use punctual_linux::system::{kernel_version, now};
use punctual_model::Duration;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Where the kernel keeps its own types.
pub const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
const CGROUP2_SUPER_MAGIC: i64 = 0x6367_7270;

/// While this lives, the calling thread runs before all ordinary ones (SCHED_FIFO, priority 1). What it
/// starts does not.
#[must_use]
pub struct Urgent(Option<(i32, libc::sched_param)>);

impl Urgent {
    /// Begins to. Where that is not allowed, or the thread is not an ordinary one, it stays as it is.
    pub fn begin() -> Urgent {
        let urgent = libc::sched_param { sched_priority: 1 };
        let mut before = libc::sched_param { sched_priority: 0 };
        // SAFETY: the calling thread, and valid parameters.
        let (policy, result) = unsafe {
            let policy = libc::sched_getscheduler(0);
            libc::sched_getparam(0, &mut before);
            if policy != libc::SCHED_OTHER {
                return Urgent(None);
            }
            (policy, libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &urgent))
        };
        Urgent((result == 0).then_some((policy, before)))
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some((policy, before)) = self.0 {
            // SAFETY: the calling thread, and valid parameters. Nothing depends on its success.
            unsafe { libc::sched_setscheduler(0, policy, &before) };
        }
    }
}

/// The capabilities that this process lacks, by name; empty if it may observe.
pub fn missing_capabilities() -> Vec<&'static str> {
    let effective = fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            status.lines().find_map(|line| line.strip_prefix("CapEff:").map(|value| value.trim().to_owned()))
        })
        .and_then(|value| u64::from_str_radix(&value, 16).ok())
        .unwrap_or(0);
    let has = |capability: u32| effective >> capability & 1 == 1;
    if has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter_map(|(capability, name)| (!has(capability)).then_some(name))
        .collect()
}

/// An error unless this process may load and attach eBPF programs.
pub fn require_privileges() -> Result<(), Error> {
    let missing = missing_capabilities();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Privileges,
        format!(
            "observing needs {}: run it as root (sudo), or grant the file these capabilities with setcap",
            missing.join(" and ")
        ),
    ))
}

/// The kernel's types (BTF).
pub fn kernel_types() -> Result<Btf<'static>, Error> {
    let lacking = |why: &str| {
        Error::new(
            ErrorKind::Kernel,
            format!(
                "this kernel does not describe its types ({KERNEL_TYPES}: {why}): use one built with \
                 CONFIG_DEBUG_INFO_BTF, as Debian's and most others are"
            ),
        )
    };
    if let Err(error) = fs::metadata(KERNEL_TYPES) {
        return Err(lacking(&error.to_string()));
    }
    Btf::from_vmlinux().map_err(|error| lacking(&error.to_string()))
}

/// Time that the hypervisor has taken from all processors so far, as far as the kernel counts it: to a tick
/// of 10 ms.
pub fn stolen() -> Duration {
    fs::read_to_string("/proc/stat").map_or(Duration::ZERO, |stat| stolen_of(&stat))
}

/// The same from the text of `/proc/stat`: the eighth number of its first line.
fn stolen_of(stat: &str) -> Duration {
    const TICKS_OF_A_SECOND: u64 = 100;
    let ticks: u64 = stat
        .lines()
        .next()
        .and_then(|all| all.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok())
        .unwrap_or(0);
    Duration::from_ms(ticks.saturating_mul(1_000 / TICKS_OF_A_SECOND))
}

/// Whether the tracepoint sched_switch passes the state in which a thread was switched out (since 5.18).
pub fn switch_has_state() -> Result<bool, Error> {
    let btf = kernel_types()?;
    // The first argument is the tracepoint's own.
    Ok(prototype(&btf, "sched_switch")?.len() >= 5)
}

/// Whether the tracepoint hrtimer_expire_entry passes a pointer to the time (before 7.2) or the time itself.
pub fn timer_points_to_time() -> Result<bool, Error> {
    let btf = kernel_types()?;
    let time = prototype(&btf, "hrtimer_expire_entry")?.iter().nth(2).map(|argument| argument.ty);
    Ok(time.and_then(|time| btf.type_by_id::<Ptr<'_>>(time)).is_some())
}

/// What the kernel's types say of a tracepoint; the first argument is its own.
fn prototype<'a>(btf: &'a Btf<'_>, tracepoint: &str) -> Result<FuncProto<'a>, Error> {
    btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{tracepoint}"))
        .and_then(|name| Ptr::try_from(name.referenced_type()).ok())
        .and_then(|pointer| FuncProto::try_from(pointer.referenced_type()).ok())
        .ok_or_else(|| {
            let text = format!(
                "this kernel's types do not name the tracepoint {tracepoint}: Punctual needs Linux 5.15 or \
                 newer"
            );
            Error::new(ErrorKind::Kernel, text)
        })
}

/// The inode of this process's PID namespace, 0 if it is the initial one.
pub fn pid_namespace() -> u32 {
    match is_first_pid_namespace() {
        true => 0,
        false => linux::pid_namespace().and_then(|inode| u32::try_from(inode).ok()).unwrap_or(0),
    }
}

/// How many threads are watched at most: a machine has some real-time threads per processor, and those of its
/// programs. A small table stays in the processor's caches.
pub fn most_threads() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    (1024 + 32 * cpus).next_power_of_two()
}

/// How many words of 64 processors the kernel's masks have in use.
pub fn affinity_words() -> u32 {
    (linux::greatest_processor() / 64 + 1).min(crate::jobs::AFFINITY_WORDS as u32)
}

/// The kernel's number of the cgroup at `path`.
pub fn cgroup_id(path: &Path) -> Result<u64, Error> {
    let not_found = |why: &str| {
        Error::new(
            ErrorKind::TargetNotFound,
            format!(
                "cgroup {}: {why}; name a folder of the unified hierarchy, such as those below \
                 /sys/fs/cgroup",
                path.display()
            ),
        )
    };
    let metadata = fs::metadata(path).map_err(|error| not_found(&error.to_string()))?;
    let name =
        std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|_| not_found("the path holds a NUL"))?;
    let mut about = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: `name` is NUL-terminated and `about` has room for a statfs.
    let result = unsafe { libc::statfs(name.as_ptr(), about.as_mut_ptr()) };
    // SAFETY: zeroed is a valid statfs, whether or not the call filled it in.
    let about = unsafe { about.assume_init() };
    if result != 0 || about.f_type != CGROUP2_SUPER_MAGIC {
        return Err(not_found("it is not a cgroup of version 2"));
    }
    Ok(metadata.ino())
}

/// An error unless process `pid` exists.
pub fn require_process(pid: u32) -> Result<(), Error> {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return Err(Error::new(
            ErrorKind::TargetNotFound,
            format!("there is no process {pid}; `ps -eLo pid,tid,cls,rtprio,comm` lists what runs"),
        ));
    };
    let process = status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))
        .and_then(|value| value.trim().parse::<u32>().ok());
    match process {
        Some(process) if process != pid => Err(Error::new(
            ErrorKind::TargetNotFound,
            format!(
                "{pid} is a thread of process {process}, not a process; give --pid {process} to observe all \
                 its threads"
            ),
        )),
        _ => Ok(()),
    }
}

/// The command line of a process in this PID namespace; empty if it has none or is gone.
pub fn command_line(pid: u32) -> String {
    crate::jobs::command_line(&proc::arguments(pid))
}

/// Processor time that a thread has had by the kernel's account: as of the last tick, if it runs. Zero if it
/// is not known.
pub fn processor_time(tid: u32) -> Duration {
    proc::processor_time(tid, tid).unwrap_or_default()
}

/// Whether a program can read if an interrupt is being served. On x86-64 that needs a symbol which kernels
/// without `CONFIG_KALLSYMS_ALL` lack.
pub fn shows_interrupts() -> bool {
    if cfg!(target_arch = "aarch64") {
        return true;
    }
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .any(|name| name == "__preempt_count" || name == "pcpu_hot")
}

/// Whether the numbers of tracepoints are readable, by which perf identifies them.
pub fn names_tracepoints() -> bool {
    linux::TRACEFS
        .iter()
        .any(|root| fs::read_to_string(Path::new(root).join("events/raw_syscalls/sys_enter/id")).is_ok())
}

/// Whether threads may be preempted in programs on tracepoints, and programs therefore skipped: since 7.0,
/// where the kernel is preempted at all.
pub fn may_preempt_tracepoints() -> bool {
    kernel_version() >= (7, 0) && crate::preemption::may_be_preempted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number_of_all_processors() {
        assert_eq!(
            stolen_of("cpu  126387 40575 19745 241224 1428 0 151 360 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"),
            Duration::from_ms(3_600)
        );
        // Before 2.6.11, and where there is no such file.
        assert_eq!(stolen_of("cpu  1 2 3 4\n"), Duration::ZERO);
        assert_eq!(stolen_of(""), Duration::ZERO);
    }
}
