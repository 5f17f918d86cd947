//! An observation under way: from attaching to the last record.

use super::load::{self, Attach, Kept, Loaded, Settings, Switches};
use super::moments::{LastMoments, Rings};
use super::namespace::Namespace;
use super::records::{self, Entry};
use super::skeleton::types::target;
use crate::command::{Output, Running, Waiting};
use crate::error::{Error, ErrorKind};
use crate::loader::Attached;
use crate::ring::Ring;
use crate::{programs32, system};
use libbpf_rs::{MapCore, MapFlags};
use punctual_model::Instant;
use punctual_trace::{Glance, Record};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// How long the reader sleeps between two looks at the buffer. The programs never wake it: that would cost
/// the observed threads. Long, since each look begins with cold caches; short when there was much.
const NAP: Duration = Duration::from_millis(200);
const SHORT_NAP: Duration = Duration::from_millis(10);
/// What is much, in entries.
const MUCH: usize = 4096;
/// How long a command may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(3);

/// Which threads to observe.
#[derive(Clone, Debug)]
pub enum Target {
    /// Every real-time thread of the machine, kernel threads included.
    AllRealTime,
    /// The threads of these processes, those that they create meanwhile included.
    Pids(Vec<u32>),
    /// The threads of a cgroup (version 2) and of all below it.
    Cgroup(PathBuf),
    /// A command, started once everything is attached, and all that it starts.
    Command(Vec<OsString>),
}

impl Target {
    /// Whether programs of 32 bits are among those that it names, as far as is known now.
    fn has_programs_of_32_bits(&self) -> bool {
        match self {
            Target::AllRealTime | Target::Cgroup(_) => programs32::any(),
            Target::Pids(pids) => pids.iter().copied().any(programs32::is_run_by),
            Target::Command(words) => words.first().is_some_and(|word| programs32::is_command(word)),
        }
    }
}

/// How to observe.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which threads.
    pub target: Target,
    /// Threads under SCHED_OTHER and its like too (of processes, cgroups and commands).
    pub include_best_effort: bool,
    /// Steps of the scheduler too ([`punctual_trace::Switch`]), for timelines and causes.
    pub switches: Switches,
    /// By which way.
    pub attach: Attach,
    /// Size of the buffer between kernel and user space in bytes; rounded up to a power of two.
    pub buffer_bytes: u32,
    /// Where the output of the command goes.
    pub command_output: Output,
}

/// Counters of an observation.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    /// Activation records received.
    pub records: u64,
    /// Records that found no room in the buffer.
    pub lost: u64,
    /// How often a thread that found no room in the programs' map ran.
    pub untracked: u64,
    /// Threads that ended before they were seen: the kernel may run no program at the only switch to one.
    pub unseen: u64,
    /// Runs of the programs that the kernel skipped (recursion).
    pub missed: u64,
    /// Time that the hypervisor took from the machine's processors meanwhile.
    pub stolen: punctual_model::Duration,
    /// Nanoseconds spent in the programs, where the kernel counts them (`kernel.bpf_stats_enabled`).
    pub program_ns: u64,
    /// How system calls were seen.
    pub attach: Attach,
}

/// The result of an observation, but for its records.
#[derive(Debug)]
pub struct Summary {
    /// Its counters.
    pub statistics: Statistics,
    /// When it began.
    pub from: Instant,
    /// When it ended.
    pub until: Instant,
    /// How the command ended, if there was one and it has ended.
    pub command_status: Option<ExitStatus>,
    /// The command's process, if it was asked to end and still runs.
    pub command_left: Option<u32>,
    /// Programs that are still to leave the kernel. Results come first: keep this until they are written.
    pub attached: Attached,
}

/// An observation under way. The programs leave the kernel when it is dropped.
pub struct Observer {
    ring: Ring<Entry>,
    /// If moments are kept.
    rings: Option<Rings>,
    namespace: Namespace,
    loaded: Loaded,
    pids: Vec<u32>,
    command: Option<Running>,
    records: u64,
    is_busy: bool,
    from: Instant,
    stolen_before: punctual_model::Duration,
    /// Records that found no room, as they were counted at this time.
    lost: (u64, Instant),
}

impl Observer {
    /// Attaches, and starts the command if there is one.
    pub fn start(options: &Options) -> Result<Observer, Error> {
        let mut settings = Settings {
            best_effort_too: options.include_best_effort,
            switches: options.switches,
            buffer_bytes: options.buffer_bytes.max(4096).checked_next_power_of_two().unwrap_or(1 << 31),
            ..Settings::default()
        };
        let mut pids = Vec::new();
        match &options.target {
            Target::AllRealTime => {}
            Target::Pids(given) => {
                settings.target = target::TARGET_PROCESSES;
                given.iter().try_for_each(|pid| system::require_process(*pid))?;
                pids.clone_from(given);
            }
            Target::Cgroup(path) => {
                settings.target = target::TARGET_CGROUP;
                settings.cgroup_id = system::cgroup_id(path)?;
            }
            Target::Command(_) => settings.target = target::TARGET_PROCESSES,
        }
        // The functions of their calls are not traced.
        let attach = match options.attach {
            Attach::Auto if options.target.has_programs_of_32_bits() => Attach::Tracepoint,
            chosen => chosen,
        };
        let mut loaded = load::load(&settings, attach)?;
        for pid in &pids {
            watch_process(&loaded, *pid, false)?;
        }
        loaded.begin_to_count();
        let ring = Ring::open(&loaded.skeleton.maps.records, records::decode)?;
        let kept = Kept::choose(options.switches)?;
        let moments = &loaded.skeleton.maps.moments;
        let rings = kept.map(|kept| Rings::open(moments, kept.processors, kept.slots)).transpose()?;
        let from = loaded.from;
        let stolen_before = system::stolen();
        let mut observer = Observer {
            ring,
            rings,
            namespace: Namespace::default(),
            loaded,
            pids,
            command: None,
            records: 0,
            is_busy: false,
            from,
            stolen_before,
            lost: (0, from),
        };
        if let Target::Command(words) = &options.target {
            observer.start_command(words, options.command_output)?;
        }
        Ok(observer)
    }

    /// The command and what it starts are watched from its first instruction on.
    fn start_command(&mut self, words: &[OsString], output: Output) -> Result<(), Error> {
        let waiting = Waiting::start(words, output)?;
        watch_process(&self.loaded, waiting.pid(), true)?;
        self.loaded.begin_to_count();
        self.command = Some(waiting.go()?);
        Ok(())
    }

    /// Waits a moment, `timeout` at most, then hands on what has come. A signal cuts the wait short, so that
    /// the caller sees it.
    pub fn poll(&mut self, timeout: Duration, each: &mut dyn FnMut(&Record)) -> Result<(), Error> {
        let nap = timeout.min(if self.is_busy { SHORT_NAP } else { NAP });
        let request = libc::timespec { tv_sec: 0, tv_nsec: nap.subsec_nanos().into() };
        // SAFETY: `request` is a valid time; the remaining time is not asked for.
        unsafe { libc::nanosleep(&request, std::ptr::null_mut()) };
        self.is_busy = self.drain(each)? > MUCH;
        self.tell_losses(each);
        Ok(())
    }

    /// Hands on that records found no room, if any did since the last time.
    fn tell_losses(&mut self, each: &mut dyn FnMut(&Record)) {
        let (now, lost) = (system::now(), self.lost());
        if lost > self.lost.0 {
            each(&Record::Lost { since: self.lost.1, until: system::now() });
        }
        self.lost = (lost, now);
    }

    fn lost(&self) -> u64 {
        self.loaded.counter(records::COUNTER_DROPPED) + self.ring.undecodable()
    }

    /// Hands on everything in the buffer; returns how many entries that was.
    fn drain(&mut self, each: &mut dyn FnMut(&Record)) -> Result<usize, Error> {
        let Observer { ring, namespace, records, .. } = self;
        ring.drain(|entry| {
            let record = namespace.translate(entry);
            *records += u64::from(matches!(record, Record::Activation(_)));
            each(&record);
        })
    }

    /// Whether everything that was to be observed has ended: the command, or every process that was named.
    pub fn target_ended(&mut self) -> bool {
        if let Some(command) = &mut self.command {
            return command.status().is_some();
        }
        !self.pids.is_empty()
            && self.loaded.counter(records::COUNTER_ENDED) > 0
            && self.pids.iter().all(|pid| {
                matches!(
                    self.loaded.skeleton.maps.processes.lookup(&pid.to_ne_bytes(), MapFlags::ANY),
                    Ok(None)
                )
            })
    }

    /// What a thread is doing right now; `None` if it is not watched, or is changing at this moment.
    pub fn glance(&self, tid: u32) -> Option<Glance> {
        let key = self.namespace.original(tid).to_ne_bytes();
        let look = || self.loaded.skeleton.maps.threads.lookup(&key, MapFlags::ANY).ok().flatten();
        let bytes = look()?;
        let (_, glance) = records::glance(&bytes, system::now())?;
        let glance = up_to_date(glance, tid, &bytes)?;
        // It was written meanwhile, perhaps while it was read.
        (look()? == bytes).then_some(glance)
    }

    /// Copies what all threads did lately, as far as it is still kept; `None` if nothing is.
    pub fn moments(&self) -> Option<LastMoments> {
        Some(self.rings.as_ref()?.copy(self.from, self.namespace.translation()))
    }

    /// The time, on the clock of the records.
    pub fn now(&self) -> Instant {
        system::now()
    }

    /// When it began.
    pub fn from(&self) -> Instant {
        self.from
    }

    /// The counters so far.
    pub fn statistics(&self) -> Statistics {
        let (missed, program_ns) = self.loaded.programs();
        Statistics {
            records: self.records,
            lost: self.lost(),
            untracked: self.loaded.counter(records::COUNTER_UNTRACKED),
            unseen: self.loaded.counter(records::COUNTER_UNSEEN),
            missed,
            stolen: system::stolen().saturating_sub(self.stolen_before),
            program_ns,
            attach: self.loaded.attach,
        }
    }

    /// Stops, hands on everything that was seen, and ends the command if it still runs. The programs are only
    /// detached when [`Summary::attached`] is dropped. What was kept can still be read.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Record)) -> Result<Summary, Error> {
        let (missed, program_ns) = self.loaded.programs();
        let attached = self.loaded.stop()?;
        let until = system::now();
        self.drain(each)?;
        self.tell_losses(each);
        let threads = &self.loaded.skeleton.maps.threads;
        for key in threads.keys() {
            let Ok(Some(bytes)) = threads.lookup(&key, MapFlags::ANY) else {
                continue;
            };
            if let Some((tid, mut glance)) = records::glance(&bytes, until) {
                if glance.busy.is_some() {
                    glance = up_to_date(glance, self.namespace.seen(tid), &bytes).unwrap_or(glance);
                }
                for record in glance.last_records(tid) {
                    self.records += u64::from(matches!(record, Record::Activation(_)));
                    each(&self.namespace.translate(Entry::Record(record)));
                }
            }
        }
        let mut summary = Summary {
            statistics: Statistics { missed, program_ns, ..self.statistics() },
            from: self.from,
            until,
            command_status: None,
            command_left: None,
            attached,
        };
        if let Some(command) = &mut self.command {
            summary.command_status = command.end(PATIENCE, || Ok(()))?;
            summary.command_left = summary.command_status.is_none().then(|| command.pid());
        }
        Ok(summary)
    }
}

/// The same by the kernel's account, which grows while the thread runs; what the programs remember does not.
fn up_to_date(glance: Glance, tid: u32, bytes: &[u8]) -> Option<Glance> {
    let account = system::processor_time(tid) + records::unaccounted(bytes)?;
    let since = account.saturating_sub(glance.cpu);
    Some(Glance { cpu: glance.cpu + since, busy: glance.busy.map(|busy| busy + since), ..glance })
}

fn watch_process(loaded: &Loaded, pid: u32, follow: bool) -> Result<(), Error> {
    loaded
        .skeleton
        .maps
        .processes
        .update(&pid.to_ne_bytes(), &u32::from(follow).to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| Error::new(ErrorKind::Other, format!("cannot have process {pid} watched: {error}")))
}
