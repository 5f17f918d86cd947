//! Loads and attaches the programs.

use super::skeleton::types::range;
use super::skeleton::{LatencySkel, LatencySkelBuilder};
use super::symbols::Symbols;
use crate::error::{Error, ErrorKind};
use crate::loader::{
    attach_all, choose_tracepoints, has_tracepoint, information, lacks_settings, most_processors, refused,
    silence_libbpf, storage,
};
use crate::system;
use libbpf_rs::Link;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use punctual_linux::system::TRACEFS;
use punctual_model::Duration;
use punctual_model::latency::NoVariables;
use std::os::fd::AsFd;
use std::path::Path;
use std::{fmt, fs, io};

/// The tracepoints without which nothing can be measured, why a kernel lacks them, and what it would need.
const NEEDED: [(&str, NoVariables, &str); 4] = [
    ("irq_disable", NoVariables::KernelOptions, "CONFIG_IRQSOFF_TRACER"),
    ("preempt_disable", NoVariables::KernelOptions, "CONFIG_PREEMPT_TRACER"),
    ("sched_entry_tp", NoVariables::KernelVersion, "a kernel of version 6.12 or newer"),
    ("sched_exit_tp", NoVariables::KernelVersion, "a kernel of version 6.12 or newer"),
];

/// Why the variables cannot be observed.
#[derive(Debug)]
pub struct Unsupported {
    /// As timing models have it.
    pub reason: NoVariables,
    error: Error,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl From<Unsupported> for Error {
    fn from(unsupported: Unsupported) -> Error {
        unsupported.error
    }
}

/// What was not seen on all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Runs of the programs that the kernel skipped.
    pub skipped: u64,
    /// Runs of the programs, and the nanoseconds that they took (where the kernel counts them).
    pub runs: u64,
    /// See `runs`.
    pub program_ns: u64,
}

/// The programs in the kernel. They leave it when this is dropped.
pub struct Loaded {
    pub skeleton: LatencySkel<'static>,
    links: Vec<Link>,
}

/// An error that names what this kernel or this process lacks.
pub fn require_tracepoints() -> Result<(), Unsupported> {
    let lacking =
        |reason, what: String| Err(Unsupported { reason, error: Error::new(ErrorKind::Kernel, what) });
    if !cfg!(target_arch = "x86_64") {
        let what = "the scheduling latency is bounded on x86-64 only yet".into();
        return lacking(NoVariables::Architecture, what);
    }
    let btf =
        system::kernel_types().map_err(|error| Unsupported { reason: NoVariables::KernelOptions, error })?;
    for (tracepoint, reason, option) in NEEDED {
        if !has_tracepoint(&btf, tracepoint) {
            let what = format!(
                "this kernel has no tracepoint {tracepoint}; a bound of the scheduling latency needs {option}"
            );
            return lacking(reason, what);
        }
    }
    match tracefs(&TRACEFS.map(Path::new)) {
        Ok(()) => Ok(()),
        Err(NoVariables::Privileges) => lacking(
            NoVariables::Privileges,
            "tracefs (/sys/kernel/tracing), which a bound of the scheduling latency needs, may not be read \
             with these privileges; run as root (sudo), or mount it for a group (-o gid=GROUP,mode=750)"
                .into(),
        ),
        Err(reason) => lacking(
            reason,
            "tracefs, which a bound of the scheduling latency needs, is not mounted: mount -t tracefs \
             tracefs /sys/kernel/tracing"
                .into(),
        ),
    }
}

/// Whether the events of the bound can be read in one of these folders; or why not.
fn tracefs(folders: &[&Path]) -> Result<(), NoVariables> {
    let tried = |folder: &&Path| fs::read_dir(folder.join("events/preemptirq")).map(drop);
    let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let tried: Vec<io::Result<()>> = folders.iter().map(tried).collect();
    match tried.iter().any(Result::is_ok) {
        true => Ok(()),
        false if tried.iter().any(|it| it.as_ref().is_err_and(denied)) => Err(NoVariables::Privileges),
        false => Err(NoVariables::Tracefs),
    }
}

impl Loaded {
    /// Loads and attaches all programs; none does anything yet.
    pub fn new(symbols: &Symbols, threshold: Option<Duration>) -> Result<Loaded, Error> {
        silence_libbpf();
        system::require_privileges()?;
        require_tracepoints()?;
        let btf = system::kernel_types()?;
        let mut open = LatencySkelBuilder::default()
            .open(storage())
            .map_err(|error| refused("reading the eBPF program", &error))?;
        let rodata = open.maps.rodata_data.as_deref_mut().ok_or_else(lacks_settings)?;
        let within = |(begin, end): (u64, u64)| range { begin, length: end - begin };
        rodata.text = symbols.address("_stext")?;
        rodata.interrupt_entry = within(symbols.function("irqentry_enter")?);
        rodata.nmi_entry = within(symbols.function("irqentry_nmi_enter")?);
        rodata.need_resched_flag = 1 << need_resched_bit();
        rodata.threshold = threshold.map_or(0, |threshold| threshold.ns().max(1));
        choose_tracepoints(open.open_object_mut(), &btf, |_| true);
        open.maps
            .processors
            .set_max_entries(most_processors()?)
            .map_err(|error| refused("setting the number of processors", &error))?;
        let skeleton = open.load().map_err(|error| refused("loading the eBPF program", &error))?;
        let links = attach_all(skeleton.object())?;
        Ok(Loaded { skeleton, links })
    }

    /// Skipped and other runs so far.
    pub fn runs(&self) -> Losses {
        let loaded = self.skeleton.object().progs().filter(|program| program.autoload());
        loaded.fold(Losses::default(), |sum, program| {
            let about = information(program.as_fd());
            Losses {
                skipped: sum.skipped + about.recursion_misses,
                runs: sum.runs + about.run_cnt,
                program_ns: sum.program_ns + about.run_time_ns,
            }
        })
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.links.clear();
    }
}

/// The bit of a thread's flags that says that the scheduler is to be called: since 6.18 the same on all
/// machines with the generic ones.
fn need_resched_bit() -> u32 {
    if system::kernel_version() >= (6, 18) { 4 } else { 3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefs_is_readable_or_the_reason_is_known() {
        let scratch = tempfile::tempdir().unwrap();
        let (mounted, other) = (scratch.path().join("tracing"), scratch.path().join("none"));
        let both = [mounted.as_path(), other.as_path()];
        assert_eq!(tracefs(&both), Err(NoVariables::Tracefs));
        fs::create_dir_all(mounted.join("events/preemptirq")).unwrap();
        assert_eq!(tracefs(&both), Ok(()));
        assert_eq!(tracefs(&[&other, &mounted]), Ok(()));
    }

    /// As another user, root or not: a process that may not enter the folder.
    #[test]
    fn an_unreadable_tracefs_is_a_matter_of_privileges() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let mounted = scratch.path().join("tracing");
        fs::create_dir_all(mounted.join("events/preemptirq")).unwrap();
        fs::set_permissions(&mounted, fs::Permissions::from_mode(0o0)).unwrap();
        // SAFETY: takes no arguments.
        let expected = if unsafe { libc::geteuid() } == 0 { Ok(()) } else { Err(NoVariables::Privileges) };
        assert_eq!(tracefs(&[&mounted]), expected);
        fs::set_permissions(&mounted, fs::Permissions::from_mode(0o700)).unwrap();
    }
}
