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
use punctual_model::Duration;
use std::os::fd::AsFd;
use std::path::Path;

/// The tracepoints without which nothing can be measured, and the kernel options that make them.
const NEEDED: [(&str, &str); 4] = [
    ("irq_disable", "CONFIG_IRQSOFF_TRACER"),
    ("preempt_disable", "CONFIG_PREEMPT_TRACER"),
    ("sched_entry_tp", "a kernel of version 6.12 or newer"),
    ("sched_exit_tp", "a kernel of version 6.12 or newer"),
];

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

/// An error that names what this kernel lacks.
pub fn require_tracepoints() -> Result<(), Error> {
    let lacking = |what: String| Err(Error::new(ErrorKind::Kernel, what));
    if !cfg!(target_arch = "x86_64") {
        return lacking("the scheduling latency is bounded on x86-64 only yet".into());
    }
    let btf = system::kernel_types()?;
    for (tracepoint, option) in NEEDED {
        if !has_tracepoint(&btf, tracepoint) {
            return lacking(format!(
                "this kernel has no tracepoint {tracepoint}; a bound of the scheduling latency needs {option}"
            ));
        }
    }
    let events = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    if !events.iter().any(|folder| Path::new(folder).join("events/preemptirq").is_dir()) {
        return lacking(
            "tracefs is not mounted, or cannot be read: mount -t tracefs tracefs /sys/kernel/tracing".into(),
        );
    }
    Ok(())
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
        rodata.timer_points_to_time = system::timer_points_to_time()?;
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
