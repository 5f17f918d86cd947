//! Loads and attaches the programs, in the way that this kernel offers.

use super::skeleton::{JobsSkel, JobsSkelBuilder, OpenJobsSkel, types::target};
use super::{calls, moments};
use crate::error::{Error, ErrorKind};
use crate::loader::{
    Attached, attach_all, has_tracepoint, information, lacks_settings, most_processors, read_counter,
    refused, silence_libbpf, storage,
};
use crate::{preemption, system};
use libbpf_rs::btf::types::{Func, Struct};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Btf, Link, libbpf_sys};
use punctual_model::Instant;
use std::os::fd::AsFd;

/// How system calls are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// By the best way that the kernel offers.
    Auto,
    /// By tracing the functions of the calls that matter: no cost for all others.
    Fentry,
    /// By the tracepoints of system calls: works everywhere, and every call on the machine takes a little
    /// longer.
    Tracepoint,
}

impl Attach {
    /// The name on the command line and in output.
    pub const fn name(self) -> &'static str {
        match self {
            Attach::Auto => "auto",
            Attach::Fentry => "fentry",
            Attach::Tracepoint => "tracepoint",
        }
    }
}

/// Which steps of the scheduler are seen, besides the activations of watched threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switches {
    /// None.
    #[default]
    None,
    /// Those of watched threads.
    Watched,
    /// Those of all threads of the machine.
    All,
    /// Those of all threads, kept in the kernel until they are asked for ([`super::Observer::moments`]): only
    /// the last ones.
    Kept,
}

impl Switches {
    /// Whether those of threads that are not watched are among them.
    pub const fn of_all(self) -> bool {
        matches!(self, Switches::All | Switches::Kept)
    }
}

/// What the programs are set to before they are loaded.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Which threads are watched.
    pub target: target,
    /// Whether threads under SCHED_OTHER and its like are watched too.
    pub best_effort_too: bool,
    /// The cgroup to watch.
    pub cgroup_id: u64,
    /// Which steps of the scheduler make records too.
    pub switches: Switches,
    /// Size of the ring buffer in bytes; a power of two, and whole pages.
    pub buffer_bytes: u32,
}

/// How many moments are kept.
#[derive(Clone, Copy)]
pub struct Kept {
    pub processors: u32,
    pub slots: u32,
}

impl Kept {
    pub fn choose(switches: Switches) -> Result<Option<Kept>, Error> {
        if switches != Switches::Kept {
            return Ok(None);
        }
        let processors = most_processors()?;
        Ok(Some(Kept { processors, slots: moments::slots(processors) }))
    }
}

/// The programs in the kernel. They leave it when this is dropped.
pub struct Loaded {
    pub skeleton: JobsSkel<'static>,
    pub links: Vec<Link>,
    pub attach: Attach,
    /// When they were switched on: all of them were attached by then.
    pub from: Instant,
    missed_before: u64,
}

impl Loaded {
    /// Switches all programs on or off at once.
    fn set_active(&mut self, active: bool) -> Result<(), Error> {
        let Some(bss) = self.skeleton.maps.bss_data.as_deref_mut() else {
            return Err(Error::new(
                ErrorKind::Kernel,
                "this kernel does not share the eBPF programs' variables with user space",
            ));
        };
        // SAFETY: a byte of memory shared with the programs, which only read it.
        unsafe { (&raw mut bss.active).cast::<bool>().write_volatile(active) };
        Ok(())
    }

    /// Nothing is recorded from here on.
    pub fn stop(&mut self) -> Result<Attached, Error> {
        self.set_active(false)?;
        // Programs that began before may be halfway; they take microseconds.
        std::thread::sleep(std::time::Duration::from_millis(1));
        Ok(Attached(std::mem::take(&mut self.links)))
    }

    /// A counter of the programs.
    pub fn counter(&self, which: usize) -> u64 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |bss| read_counter(&bss.counters, which))
    }

    /// Runs that the kernel skipped, and nanoseconds spent (where it counts them), of all programs.
    pub fn programs(&self) -> (u64, u64) {
        let (missed, spent) = run_so_far(&self.skeleton);
        (missed.saturating_sub(self.missed_before), spent)
    }

    /// Counts skipped runs from here on: nothing was watched before.
    pub fn begin_to_count(&mut self) {
        self.missed_before = run_so_far(&self.skeleton).0;
    }
}

fn run_so_far(skeleton: &JobsSkel<'static>) -> (u64, u64) {
    let loaded = skeleton.object().progs().filter(|program| program.autoload());
    loaded.fold((0, 0), |(missed, spent), program| {
        let about = information(program.as_fd());
        (missed + about.recursion_misses, spent + about.run_time_ns)
    })
}

/// Where the programs see system calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hooks {
    /// In the functions of the watched ones.
    Functions,
    /// At the tracepoints of all.
    Tracepoint,
    /// At the same, by way of perf: slower, but the kernel never skips a run because a thread was preempted
    /// in one.
    Unpreempted,
}

impl Hooks {
    fn choose(attach: Attach) -> Hooks {
        match attach {
            Attach::Fentry => Hooks::Functions,
            _ if avoids_preemption() => Hooks::Unpreempted,
            _ => Hooks::Tracepoint,
        }
    }

    /// Whether this is one of their programs.
    fn need(self, program: &str) -> bool {
        let what = program.strip_prefix("enter_").or_else(|| program.strip_prefix("exit_"));
        what.is_some_and(|what| match what {
            "any" => self == Hooks::Tracepoint,
            "unpreempted" => self == Hooks::Unpreempted,
            _ => self == Hooks::Functions,
        })
    }
}

/// What happens to threads, besides system calls: each program once.
const SCHEDULER_PROGRAMS: [&str; 3] = ["switched", "signalled", "forked"];
/// The same in two ways, as [`Hooks::Tracepoint`] and [`Hooks::Unpreempted`].
const PROCESS_PROGRAMS: [&str; 3] = ["executed", "exited", "renamed"];

/// Whether a program adds details to recorded switches: what threads wait for, and where, and who takes
/// processors.
fn is_detail(program: &str) -> bool {
    matches!(program, "leaving" | "moving") || program.starts_with("taken_by_") || program.ends_with("_takes")
}

/// Whether programs have to be on perf's side of tracepoints, so that the kernel skips none.
fn avoids_preemption() -> bool {
    system::may_preempt_tracepoints() && system::names_tracepoints()
}

/// Loads and attaches everything.
pub fn load(settings: &Settings, attach: Attach) -> Result<Loaded, Error> {
    silence_libbpf();
    system::require_privileges()?;
    let btf = system::kernel_types()?;
    match attach {
        Attach::Fentry => load_with(settings, Attach::Fentry, &btf),
        Attach::Tracepoint => load_with(settings, Attach::Tracepoint, &btf),
        // Where threads are preempted in the kernel, only tracepoints see every call.
        Attach::Auto if !preemption::may_be_preempted() && try_fentry(&btf).is_ok() => {
            load_with(settings, Attach::Fentry, &btf)
                .or_else(|_| load_with(settings, Attach::Tracepoint, &btf))
        }
        Attach::Auto => load_with(settings, Attach::Tracepoint, &btf),
    }
}

/// Tries whether this kernel can trace the functions of system calls, with one of them.
pub fn try_fentry(btf: &Btf<'_>) -> Result<(), Error> {
    silence_libbpf();
    let mut open = open(&Settings { buffer_bytes: 4096, ..Settings::default() }, Hooks::Functions, btf)?;
    let chosen = choose(&mut open, btf, |name| name == "enter_nanosleep")?;
    if chosen == 0 {
        return Err(Error::new(
            ErrorKind::Kernel,
            "this kernel's types do not name the functions of system calls",
        ));
    }
    let loaded = open.load().map_err(|error| refused("loading a function trace", &error))?;
    attach_all(loaded.object()).map(drop)
}

fn load_with(settings: &Settings, attach: Attach, btf: &Btf<'_>) -> Result<Loaded, Error> {
    let hooks = Hooks::choose(attach);
    let mut open = open(settings, hooks, btf)?;
    let sees_switches = settings.switches != Switches::None;
    let waking = match (sees_switches, system::shows_interrupts()) {
        (false, _) => "waking",
        (true, true) => "waking_of_current",
        (true, false) => "waking_by_stack",
    };
    let way = if avoids_preemption() { "_unpreempted" } else { "_any" };
    choose(&mut open, btf, |name| {
        let process = name.strip_suffix(way).unwrap_or_default();
        name == waking
            || (sees_switches && is_detail(name))
            || SCHEDULER_PROGRAMS.contains(&name)
            || PROCESS_PROGRAMS.contains(&process)
            || hooks.need(name)
    })?;
    let skeleton = open.load().map_err(|error| refused("loading the eBPF program", &error))?;
    let links = attach_all(skeleton.object())?;
    let mut loaded = Loaded { skeleton, links, attach, from: system::now(), missed_before: 0 };
    loaded.set_active(true)?;
    Ok(loaded)
}

fn open(settings: &Settings, hooks: Hooks, btf: &Btf<'_>) -> Result<OpenJobsSkel<'static>, Error> {
    let mut open = JobsSkelBuilder::default()
        .open(storage())
        .map_err(|error| refused("reading the eBPF program", &error))?;
    let has_state = system::switch_has_state()?;
    let rodata = open.maps.rodata_data.as_deref_mut().ok_or_else(lacks_settings)?;
    rodata.target = settings.target.0;
    rodata.best_effort_too = settings.best_effort_too;
    rodata.own_tgid = std::process::id();
    rodata.pid_namespace = system::pid_namespace();
    rodata.cgroup_id = settings.cgroup_id;
    rodata.affinity_words = system::affinity_words();
    rodata.switch_has_state = has_state;
    rodata.with_switches = settings.switches != Switches::None;
    rodata.with_bystanders = settings.switches.of_all();
    let kept = Kept::choose(settings.switches)?;
    rodata.keeps_moments = kept.is_some();
    rodata.last_slot = kept.map_or(0, |kept| kept.slots - 1);
    rodata.call_of_key = calls::table();
    if hooks == Hooks::Functions {
        rodata.unhooked = calls::unhooked(|name| function_of(btf, name).is_some());
    }
    if btf.type_by_name::<Struct<'_>>("bpf_mem_alloc").is_some() {
        let on_demand = |error| refused("choosing how tables are allocated", &error);
        open.maps.threads.set_map_flags(libbpf_sys::BPF_F_NO_PREALLOC).map_err(on_demand)?;
        open.maps.processes.set_map_flags(libbpf_sys::BPF_F_NO_PREALLOC).map_err(on_demand)?;
    }
    open.maps
        .threads
        .set_max_entries(system::most_threads())
        .map_err(|error| refused("setting how many threads are watched", &error))?;
    if settings.switches.of_all() {
        open.maps
            .bystanders
            .set_max_entries(system::most_threads())
            .map_err(|error| refused("setting how many other threads are known", &error))?;
    }
    if let Some(kept) = kept {
        let resized = |error| refused("setting how many moments are kept", &error);
        open.maps.moments.set_max_entries(kept.processors).map_err(resized)?;
        open.maps.moments.set_value_size(moments::size(kept.slots)).map_err(resized)?;
    }
    open.maps
        .records
        .set_max_entries(settings.buffer_bytes)
        .map_err(|error| refused("setting the size of the buffer", &error))?;
    Ok(open)
}

/// The function behind a system call, if this kernel's types describe it. They do not for most calls without
/// arguments.
fn function_of(btf: &Btf<'_>, call: &str) -> Option<String> {
    Some(calls::function(call)).filter(|function| btf.type_by_name::<Func<'_>>(function).is_some())
}

/// Marks the programs to load: those that are `wanted` and whose function this kernel has. Returns their
/// number.
fn choose(
    open: &mut OpenJobsSkel<'static>,
    btf: &Btf<'_>,
    wanted: impl Fn(&str) -> bool,
) -> Result<usize, Error> {
    let mut chosen = 0;
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let section = program.section().to_string_lossy().into_owned();
        let traces = section.strip_prefix("tp_btf/");
        // Not every architecture has all interrupts.
        let mut load = wanted(&name) && traces.is_none_or(|tracepoint| has_tracepoint(btf, tracepoint));
        if let Some(call) = section
            .strip_prefix("fentry/sys_")
            .or_else(|| section.strip_prefix("fexit/sys_"))
            .filter(|_| load)
        {
            let function = function_of(btf, call);
            load = function.is_some();
            if let Some(function) = function {
                program
                    .set_attach_target(0, Some(function.clone()))
                    .map_err(|error| refused(&format!("choosing {function}"), &error))?;
            }
        }
        program.set_autoload(load);
        chosen += usize::from(load);
    }
    Ok(chosen)
}
