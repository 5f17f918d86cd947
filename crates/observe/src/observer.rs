//! An observation under way: from attaching to the last record.

use crate::error::{Error, ErrorKind};
use crate::interface::{self, Entry};
use crate::program::{self, Attach, Attached, Loaded, Settings};
use crate::system;
use libbpf_rs::{MapCore, MapFlags, RingBuffer, RingBufferBuilder};
use punctual_model::Instant;
use punctual_trace::Record;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::rc::Rc;
use std::time::{Duration, Instant as WallInstant};

/// Records are handed on in batches of this many, so that memory does not grow with the backlog.
const BATCH: usize = 512;
/// How long the reader sleeps between two looks at the buffer. The kernel side never wakes it: that would
/// cost the observed threads. Long, so that each look finds its memory cold but once; short when there was
/// much.
const NAP: Duration = Duration::from_millis(200);
const SHORT_NAP: Duration = Duration::from_millis(10);
/// What is much, in records.
const MUCH: usize = 4096;
/// How long a command that was started here may take to end when it is asked to.
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

/// How to observe.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which threads.
    pub target: Target,
    /// Threads under SCHED_OTHER and its like too (of processes, cgroups and commands).
    pub include_best_effort: bool,
    /// Every step of the scheduler too ([`punctual_trace::Switch`]), for timelines.
    pub switches: bool,
    /// By which way.
    pub attach: Attach,
    /// Size of the buffer between kernel and user space in bytes; rounded up to a power of two.
    pub buffer_bytes: u32,
    /// Whether what the command prints goes to standard error, because standard output is for the models.
    pub command_to_stderr: bool,
}

/// What was counted.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    /// Activation records received.
    pub records: u64,
    /// Records that found no room in the buffer.
    pub lost: u64,
    /// Threads that found no room in the kernel side's map.
    pub untracked: u64,
    /// Runs of the programs that the kernel skipped (recursion).
    pub missed: u64,
    /// Time that the hypervisor took from the machine's processors, since it began.
    pub stolen: punctual_model::Duration,
    /// Nanoseconds spent in the programs, where the kernel counts them (`kernel.bpf_stats_enabled`).
    pub program_ns: u64,
    /// How system calls were seen.
    pub attach: Attach,
}

/// What an observation came to.
#[derive(Debug)]
pub struct Summary {
    /// What was counted.
    pub statistics: Statistics,
    /// From when.
    pub from: Instant,
    /// Until when.
    pub until: Instant,
    /// How the command ended, if there was one and it has ended.
    pub command_status: Option<ExitStatus>,
    /// The command, if it was asked to end and goes on all the same.
    pub command_left: Option<u32>,
    /// What is still to leave the kernel. Results come first: keep it until they are out.
    pub attached: Attached,
}

/// What the ring buffer's callback leaves for the reader.
#[derive(Default)]
struct Inbox {
    records: Vec<Record>,
    numbers: Numbers,
    broken: u64,
}

/// An observation under way. The programs leave the kernel when it is dropped.
pub struct Observer {
    ring: RingBuffer<'static>,
    inbox: Rc<RefCell<Inbox>>,
    loaded: Loaded,
    pids: Vec<u32>,
    child: Option<Child>,
    command_status: Option<ExitStatus>,
    records: u64,
    busy: bool,
    from: Instant,
    /// What was stolen before.
    stolen_before: punctual_model::Duration,
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
                settings.target = 1;
                given.iter().try_for_each(|pid| system::require_process(*pid))?;
                pids.clone_from(given);
            }
            Target::Cgroup(path) => {
                settings.target = 2;
                settings.cgroup_id = system::cgroup_id(path)?;
            }
            Target::Command(_) => settings.target = 1,
        }
        let mut loaded = program::load(&settings, options.attach)?;
        for pid in &pids {
            watch_process(&loaded, *pid, false)?;
        }
        loaded.begin_to_count();
        let inbox = Rc::new(RefCell::new(Inbox::default()));
        let ring = open_ring(&loaded, Rc::clone(&inbox))?;
        let from = loaded.from;
        let stolen_before = system::stolen();
        let mut observer = Observer {
            ring,
            inbox,
            loaded,
            pids,
            child: None,
            command_status: None,
            records: 0,
            busy: false,
            from,
            stolen_before,
        };
        if let Target::Command(words) = &options.target {
            observer.start_command(words, options.command_to_stderr)?;
        }
        Ok(observer)
    }

    /// The child is watched from its creation on: the kernel side follows what this process starts, which is
    /// nothing else.
    fn start_command(&mut self, words: &[OsString], to_stderr: bool) -> Result<(), Error> {
        let Some((name, arguments)) = words.split_first() else {
            return Err(Error::new(ErrorKind::CommandFailed, "there is no command after --"));
        };
        watch_process(&self.loaded, std::process::id(), true)?;
        self.loaded.begin_to_count();
        let mut command = Command::new(name);
        command.args(arguments);
        if to_stderr {
            command.stdout(std::io::stderr());
        }
        self.child = Some(command.spawn().map_err(|error| cannot_start(name, &error))?);
        Ok(())
    }

    /// Waits a moment, `timeout` at most, then hands on what has come. A signal cuts the wait short, so that
    /// the caller sees it.
    pub fn poll(&mut self, timeout: Duration, each: &mut dyn FnMut(&Record)) -> Result<(), Error> {
        let nap = timeout.min(if self.busy { SHORT_NAP } else { NAP });
        let request = libc::timespec { tv_sec: 0, tv_nsec: nap.subsec_nanos().into() };
        // SAFETY: `request` is a valid time; the remaining time is not asked for.
        unsafe { libc::nanosleep(&request, std::ptr::null_mut()) };
        self.busy = self.drain(each)? > MUCH;
        Ok(())
    }

    /// Hands on all that is in the buffer; returns how many entries that was.
    fn drain(&mut self, each: &mut dyn FnMut(&Record)) -> Result<usize, Error> {
        let mut total = 0;
        loop {
            let result = self.ring.consume_raw_n(BATCH);
            if result < 0 {
                let error = std::io::Error::from_raw_os_error(-result);
                return Err(Error::new(
                    ErrorKind::Other,
                    format!("cannot read the buffer of records: {error}"),
                ));
            }
            let mut inbox = self.inbox.borrow_mut();
            total += inbox.records.len();
            for record in inbox.records.drain(..) {
                self.records += u64::from(matches!(record, Record::Activation(_)));
                each(&record);
            }
            if (result as usize) < BATCH {
                return Ok(total);
            }
        }
    }

    /// Whether all that was to be observed has ended: the command, or every process that was named.
    pub fn target_ended(&mut self) -> bool {
        if let Some(child) = &mut self.child {
            match child.try_wait() {
                Ok(None) => return false,
                Ok(Some(status)) => self.command_status = Some(status),
                Err(_) => {}
            }
            self.child = None;
            return true;
        }
        if self.command_status.is_some() {
            return true;
        }
        !self.pids.is_empty()
            && self.loaded.counted(interface::COUNTER_ENDED) > 0
            && self.pids.iter().all(|pid| {
                matches!(
                    self.loaded.skeleton.maps.processes.lookup(&pid.to_ne_bytes(), MapFlags::ANY),
                    Ok(None)
                )
            })
    }

    /// When it began.
    pub fn from(&self) -> Instant {
        self.from
    }

    /// What has been counted so far.
    pub fn statistics(&self) -> Statistics {
        let (missed, program_ns) = self.loaded.programs();
        Statistics {
            records: self.records,
            lost: self.loaded.counted(interface::COUNTER_DROPPED) + self.inbox.borrow().broken,
            untracked: self.loaded.counted(interface::COUNTER_UNTRACKED),
            missed,
            stolen: system::stolen().saturating_sub(self.stolen_before),
            program_ns,
            attach: self.loaded.attach,
        }
    }

    /// Stops, hands on everything that was seen, and ends the command if it still runs. What detaches comes
    /// back with the rest.
    pub fn finish(mut self, each: &mut dyn FnMut(&Record)) -> Result<Summary, Error> {
        let statistics_of_programs = self.loaded.programs();
        let attached = self.loaded.stop()?;
        let until = system::now();
        self.drain(each)?;
        let threads = &self.loaded.skeleton.maps.threads;
        for key in threads.keys() {
            let Ok(Some(bytes)) = threads.lookup(&key, MapFlags::ANY) else {
                continue;
            };
            if let Some((end, last)) = interface::last_records(&bytes, until) {
                for record in end.into_iter().chain([last]) {
                    self.records += u64::from(matches!(record, Record::Activation(_)));
                    each(&self.inbox.borrow_mut().numbers.translate(Entry::Record(record)));
                }
            }
        }
        let command_left = self.end_command();
        let mut statistics = self.statistics();
        (statistics.missed, statistics.program_ns) = statistics_of_programs;
        Ok(Summary {
            statistics,
            from: self.from,
            until,
            command_status: self.command_status,
            command_left,
            attached,
        })
    }

    /// Asks the command to end and waits a little; gives its number if it does not.
    fn end_command(&mut self) -> Option<u32> {
        let mut child = self.child.take()?;
        let deadline = WallInstant::now() + PATIENCE;
        let mut asked = false;
        while WallInstant::now() < deadline {
            if let Ok(Some(status)) = child.try_wait() {
                self.command_status = Some(status);
                return None;
            }
            if !asked {
                // SAFETY: the child has not been waited for, so its number is its own.
                unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
                asked = true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(child.id())
    }
}

pub(crate) fn cannot_start(name: &OsStr, error: &std::io::Error) -> Error {
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such command; give its path, or look at PATH".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be executed; is it a program?".to_owned(),
        _ => error.to_string(),
    };
    Error::new(ErrorKind::CommandFailed, format!("cannot start {}: {why}", name.to_string_lossy()))
}

/// From numbers of the initial PID namespace to the observer's.
#[derive(Default)]
struct Numbers {
    /// Only the threads whose number differs.
    seen: HashMap<u32, u32>,
    /// Command lines as executed, for processes that have ended before they could be asked.
    commands: HashMap<u32, String>,
}

/// How many command lines are remembered at most.
const COMMANDS: usize = 1024;

impl Numbers {
    fn translate(&mut self, entry: Entry) -> Record {
        let mut record = match entry {
            Entry::Record(record) => record,
            Entry::Task(task) => return self.task(*task),
            Entry::Command(entry) => {
                let command = whole_command(entry.command, entry.cut, entry.seen_tgid);
                Record::Command { tid: entry.tid, sequence: entry.sequence, command }
            }
        };
        if !self.seen.is_empty() {
            let tid = match &mut record {
                Record::Task(task) | Record::Known(task) => &mut task.tid,
                Record::Activation(activation) => &mut activation.tid,
                Record::Switch(switch) => &mut switch.tid,
                Record::Renamed { tid, .. }
                | Record::Command { tid, .. }
                | Record::Exit { tid, .. }
                | Record::Last { tid, .. } => tid,
            };
            *tid = self.seen.get(tid).copied().unwrap_or(*tid);
        }
        record
    }

    fn task(&mut self, entry: interface::TaskEntry) -> Record {
        let mut record = entry.record;
        let (tid, tgid) = entry.seen;
        if tid != 0 && tid != record.tid {
            self.seen.insert(record.tid, tid);
            record.tid = tid;
        }
        record.command =
            whole_command(record.command, entry.command_cut, if tgid != 0 { tgid } else { record.pid });
        if record.command.is_empty() && !entry.kernel_thread {
            record.command = system::command_line(if tgid != 0 { tgid } else { record.pid });
            if record.command.is_empty() {
                record.command = self.commands.get(&record.pid).cloned().unwrap_or_default();
            }
        } else if !record.command.is_empty() && self.commands.len() < COMMANDS {
            self.commands.insert(record.pid, record.command.clone());
        }
        if tgid != 0 {
            record.pid = tgid;
        }
        Record::Task(Box::new(record))
    }
}

/// What of a command line was cut off in the kernel, if the process still has the same.
fn whole_command(command: String, cut: bool, pid: u32) -> String {
    let asked = if cut { system::command_line(pid) } else { String::new() };
    if asked.starts_with(&command) { asked } else { command }
}

fn watch_process(loaded: &Loaded, pid: u32, follow: bool) -> Result<(), Error> {
    loaded
        .skeleton
        .maps
        .processes
        .update(&pid.to_ne_bytes(), &u32::from(follow).to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| {
            Error::new(
                ErrorKind::Other,
                format!("cannot tell the kernel side to watch process {pid}: {error}"),
            )
        })
}

fn open_ring(loaded: &Loaded, inbox: Rc<RefCell<Inbox>>) -> Result<RingBuffer<'static>, Error> {
    let failed = |error: libbpf_rs::Error| {
        Error::new(ErrorKind::Other, format!("cannot map the buffer of records: {error}"))
    };
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&loaded.skeleton.maps.records, move |bytes| {
            let mut inbox = inbox.borrow_mut();
            match interface::decode(bytes) {
                Some(entry) => {
                    let record = inbox.numbers.translate(entry);
                    inbox.records.push(record);
                }
                None => inbox.broken += 1,
            }
            0
        })
        .map_err(failed)?;
    builder.build().map_err(failed)
}
