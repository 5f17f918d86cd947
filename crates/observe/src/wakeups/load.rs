//! Loads and attaches the programs, and reads their maps.

use super::records::{self, Key, Latencies, Processor, Timers};
use super::skeleton::{WakeupsSkel, WakeupsSkelBuilder};
use crate::error::{Error, ErrorKind};
use crate::latency::symbols::Symbols;
use crate::loader::{
    attach_all, choose_tracepoints, information, lacks_settings, most_processors, refused, silence_libbpf,
    storage,
};
use crate::{preemption, system};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags};
use punctual_model::Duration;
use std::os::fd::AsFd;

/// The programs in the kernel. They leave it when this is dropped.
pub struct Loaded {
    pub skeleton: WakeupsSkel<'static>,
    links: Vec<Link>,
}

impl Loaded {
    /// Loads and attaches all programs; none does anything yet. Without `interrupts`, those are not handed
    /// over one by one.
    pub fn new(interrupts: bool) -> Result<Loaded, Error> {
        silence_libbpf();
        system::require_privileges()?;
        let btf = system::kernel_types()?;
        let mut open = WakeupsSkelBuilder::default()
            .open(storage())
            .map_err(|error| refused("reading the eBPF program", &error))?;
        let rodata = open.maps.rodata_data.as_deref_mut().ok_or_else(lacks_settings)?;
        rodata.switch_has_state = system::switch_has_state()?;
        rodata.timer_points_to_time = system::timer_points_to_time()?;
        rodata.interrupts_are_sent = interrupts;
        let softirqs_are_threads = preemption::is_real_time_kernel();
        // Under PREEMPT_RT threads serve softirqs, and are preempted in them.
        choose_tracepoints(open.open_object_mut(), &btf, |tracepoint| {
            !(softirqs_are_threads && tracepoint.starts_with("softirq"))
        });
        open.maps
            .processors
            .set_max_entries(most_processors()?)
            .map_err(|error| refused("setting the number of processors", &error))?;
        open.maps
            .limits
            .set_max_entries(most_processors()?)
            .map_err(|error| refused("setting the number of processors", &error))?;
        let skeleton = open.load().map_err(|error| refused("loading the eBPF program", &error))?;
        let links = attach_all(skeleton.object())?;
        let loaded = Loaded { skeleton, links };
        loaded.set_limits(&[])?;
        Ok(loaded)
    }

    /// Has every longer latency of these processors handed over; of the others, only the greatest ones.
    pub fn set_limits(&self, limits: &[(u32, Duration)]) -> Result<(), Error> {
        for cpu in 0..most_processors()? {
            let limit = limits.iter().find(|(number, _)| *number == cpu).map_or(u64::MAX, |(_, it)| it.ns());
            let map = &self.skeleton.maps.limits;
            map.update(&cpu.to_ne_bytes(), &limit.to_ne_bytes(), MapFlags::ANY)
                .map_err(|error| refused("setting the limits of latencies", &error))?;
        }
        Ok(())
    }

    /// Whether the programs do anything.
    pub fn set_active(&mut self, is_active: bool) -> Result<(), Error> {
        let bss = self.skeleton.maps.bss_data.as_deref_mut().ok_or_else(lacks_settings)?;
        // SAFETY: a valid, aligned byte, which the programs only read.
        unsafe { (&raw mut bss.is_active).cast::<bool>().write_volatile(is_active) };
        Ok(())
    }

    /// What is known of a processor.
    pub fn processor(&self, number: u32, symbols: Option<&Symbols>) -> Result<Processor, Error> {
        let bytes = self.skeleton.maps.processors.lookup(&number.to_ne_bytes(), MapFlags::ANY);
        let bytes = bytes.map_err(|error| refused("reading what was measured", &error))?;
        let (missed, lost, raw) = bytes
            .as_deref()
            .and_then(records::processor)
            .ok_or_else(|| Error::new(ErrorKind::Other, format!("there is no processor {number}")))?;
        Ok(Processor { number, missed, lost, timers: Timers::new(&raw, symbols) })
    }

    /// The latencies of each thread on each processor.
    pub fn latencies(&self) -> Vec<Latencies> {
        let map = &self.skeleton.maps.latencies;
        let entry = |key: Vec<u8>| {
            let value = map.lookup(&key, MapFlags::ANY).ok()??;
            records::latencies(&key, &value)
        };
        map.keys().filter_map(entry).collect()
    }

    /// Forgets the latencies of a thread that is no more.
    pub fn forget(&self, key: &Key) {
        // Whoever measured one just now makes a new entry, and it goes at the next turn.
        _ = self.skeleton.maps.latencies.delete(&records::key_bytes(key));
    }

    /// Threads that found no room.
    pub fn untracked(&self) -> u64 {
        let bss = self.skeleton.maps.bss_data.as_deref();
        // SAFETY: a valid, aligned word; the programs only ever add to the whole word.
        bss.map_or(0, |bss| unsafe { (&raw const bss.untracked).read_volatile() })
    }

    /// Runs that the kernel skipped so far.
    pub fn skipped(&self) -> u64 {
        let loaded = self.skeleton.object().progs().filter(|program| program.autoload());
        loaded.map(|program| information(program.as_fd()).recursion_misses).sum()
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.links.clear();
    }
}
