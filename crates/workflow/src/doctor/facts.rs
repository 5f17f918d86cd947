//! What `/proc` and `/sys` say of a program, its threads and their processors. Not for what that means.

use crate::error::{Error, Result};
use procfs::FromRead;
use procfs::process::{Process, Stat, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long it looks, and how often in that time at what threads wait for.
const LOOKED_AT: Duration = Duration::from_secs(1);
const GLANCE: Duration = Duration::from_millis(5);

/// What was found.
pub struct Facts {
    /// The program's real-time threads; all of them if there are none.
    pub threads: Vec<Thread>,
    /// Real-time threads of the kernel and of other programs.
    pub others: Vec<Thread>,
    /// Of its resident memory, what is not locked.
    pub unlocked_kib: u64,
    pub resident_kib: u64,
    /// Microseconds that real-time threads get, of how many. `None` if they get all.
    pub throttling: Option<(u64, u64)>,
    /// Those that the threads may use.
    pub processors: BTreeMap<u32, Processor>,
    pub interrupts: Vec<Interrupt>,
    /// `None` if that cannot be seen.
    pub mutexes: Option<Vec<Mutex>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Other,
    Fifo,
    RoundRobin,
    Deadline,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub name: String,
    pub policy: Policy,
    pub priority: u32,
    /// Those that it may use.
    pub processors: BTreeSet<u32>,
    /// The one that it used last.
    pub processor: u32,
    /// Of a processor, while it was looked at.
    pub percent: u64,
    /// Page faults meanwhile.
    pub faults: u64,
}

#[derive(Debug)]
pub struct Processor {
    /// What chooses its clock frequency, if anything does.
    pub governor: Option<String>,
    /// The idle state that takes longest to leave, and how many microseconds.
    pub idle: Option<(String, u64)>,
}

/// Interrupts of a device that a processor served meanwhile.
#[derive(Debug)]
pub struct Interrupt {
    pub name: String,
    pub processor: u32,
    pub count: u64,
}

/// A thread was seen waiting for a mutex without priority inheritance that a less urgent thread had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutex {
    pub waiter: String,
    pub owner: String,
}

impl Thread {
    pub fn is_real_time(&self) -> bool {
        self.policy != Policy::Other
    }

    /// Whether its policy knows priorities.
    pub fn has_priority(&self) -> bool {
        matches!(self.policy, Policy::Fifo | Policy::RoundRobin)
    }

    /// `control: 12`.
    pub fn with(&self, number: u64) -> String {
        format!("{}: {number}", self.name)
    }

    fn is_more_urgent(&self, other: &Thread) -> bool {
        let rank = |it: &Thread| (it.policy == Policy::Deadline, it.is_real_time(), it.priority);
        rank(self) > rank(other)
    }
}

impl fmt::Display for Thread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Thread { name, priority, .. } = self;
        match self.policy {
            Policy::Other => write!(formatter, "{name}"),
            Policy::Fifo => write!(formatter, "{name} (FIFO {priority})"),
            Policy::RoundRobin => write!(formatter, "{name} (RR {priority})"),
            Policy::Deadline => write!(formatter, "{name} (DEADLINE)"),
        }
    }
}

impl Facts {
    /// Looks at a program for a second.
    pub fn of(pid: u32) -> Result<Facts> {
        let number = i32::try_from(pid).unwrap_or(i32::MAX);
        let failed = |error: procfs::ProcError| match error {
            procfs::ProcError::NotFound(_) => Error::usage(format!("there is no process {pid}")),
            error => Error::usage(format!("process {pid} cannot be looked at: {error}")),
        };
        let status =
            status_of(number, number).ok_or_else(|| Error::usage(format!("there is no process {pid}")))?;
        // The number of any of its threads will do.
        let number = status.tgid;
        if status.vmrss.is_none() {
            return Err(Error::usage(format!(
                "process {pid} has no memory: it has ended, or is of the kernel"
            )));
        }
        let process = Process::new(number).map_err(failed)?;
        let began = Instant::now();
        let before = threads_of(&process).map_err(failed)?;
        let interrupts_before = interrupts();
        let others_before = other_threads(number);
        let memory_file = File::open(format!("/proc/{number}/mem")).ok();
        let (looked, mut mutexes) = (Instant::now(), memory_file.as_ref().map(|_| Vec::new()));
        while looked.elapsed() < LOOKED_AT {
            if let (Some(memory), Some(mutexes)) = (&memory_file, &mut mutexes) {
                mutexes.extend(contended(number, memory, &before));
            }
            std::thread::sleep(GLANCE);
        }
        let after = threads_of(&process).unwrap_or_default();
        if after.is_empty() {
            return Err(Error::usage(format!("process {pid} ended while it was looked at")));
        }
        let (elapsed, memory) = (began.elapsed(), memory(number));
        let mut threads = since(&before, after, elapsed);
        if threads.iter().any(Thread::is_real_time) {
            threads.retain(Thread::is_real_time);
        }
        let used: BTreeSet<u32> =
            threads.iter().flat_map(|thread| thread.processors.iter().copied()).collect();
        Ok(Facts {
            others: since(&others_before, other_threads(number), elapsed),
            unlocked_kib: memory.0,
            resident_kib: memory.1,
            throttling: throttling(),
            processors: used.into_iter().map(|cpu| (cpu, processor(cpu))).collect(),
            interrupts: served_since(&interrupts_before),
            threads,
            mutexes,
        })
    }
}

/// A thread, and what it had used by then: processor time and page faults.
type Seen = BTreeMap<i32, (Thread, u64, u64)>;

fn threads_of(process: &Process) -> procfs::ProcResult<Seen> {
    let tasks = process.tasks()?.flatten();
    Ok(tasks.filter_map(|task| Some((task.tid, seen(task.pid, task.tid)?))).collect())
}

fn status_of(pid: i32, tid: i32) -> Option<Status> {
    Status::from_read(readable(pid, tid, "status")?.as_bytes()).ok()
}

/// Names of threads may be anything.
fn readable(pid: i32, tid: i32, file: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/task/{tid}/{file}")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Resident memory in KiB that is not locked, and all of it, without what the kernel itself maps.
fn memory(pid: i32) -> (u64, u64) {
    let maps = fs::read(format!("/proc/{pid}/smaps")).unwrap_or_default();
    parse_memory(&String::from_utf8_lossy(&maps))
}

fn parse_memory(maps: &str) -> (u64, u64) {
    let (mut unlocked, mut all, mut resident) = (0, 0, 0);
    for line in maps.lines() {
        if let Some(size) = line.strip_prefix("Rss:") {
            resident = size.trim().trim_end_matches(" kB").parse().unwrap_or(0);
        }
        // The last line of a mapping.
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let has = |flag: &str| flags.split_whitespace().any(|it| it == flag);
            if !["io", "pf", "de"].into_iter().any(has) {
                all += resident;
                unlocked += if has("lo") { 0 } else { resident };
            }
        }
    }
    (unlocked, all)
}

/// A thread that ends meanwhile is not there.
fn seen(pid: i32, tid: i32) -> Option<(Thread, u64, u64)> {
    let stat = Stat::from_read(readable(pid, tid, "stat")?.as_bytes()).ok()?;
    let status = status_of(pid, tid)?;
    let schedstat = readable(pid, tid, "schedstat");
    let ran = schedstat.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let policy = match stat.policy? {
        1 => Policy::Fifo,
        2 => Policy::RoundRobin,
        6 => Policy::Deadline,
        _ => Policy::Other,
    };
    let thread = Thread {
        name: stat.comm,
        policy,
        priority: stat.rt_priority?,
        processors: status.cpus_allowed_list?.into_iter().flat_map(|(first, last)| first..=last).collect(),
        processor: u32::try_from(stat.processor?).ok()?,
        percent: 0,
        faults: 0,
    };
    Some((thread, ran, stat.minflt + stat.majflt))
}

/// The real-time threads of all other processes, the kernel's included, but for those that stop a whole
/// processor and hardly ever run.
fn other_threads(pid: i32) -> Seen {
    let others = procfs::process::all_processes().into_iter().flatten().flatten();
    let others = others.filter(|process| process.pid != pid);
    let threads = others.filter_map(|process| threads_of(&process).ok()).flatten();
    threads.filter(|(_, (thread, ..))| thread.has_priority() && thread.priority < 99).collect()
}

/// The threads with what they used since then.
fn since(before: &Seen, after: Seen, elapsed: Duration) -> Vec<Thread> {
    let total = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).max(1);
    let with_use = |(tid, (thread, ran, faults)): (i32, (Thread, u64, u64))| {
        let (ran_before, faults_before) =
            before.get(&tid).map_or((ran, faults), |(_, ran, faults)| (*ran, *faults));
        let percent = ran.saturating_sub(ran_before).saturating_mul(100) / total;
        Thread { percent, faults: faults.saturating_sub(faults_before), ..thread }
    };
    after.into_iter().map(with_use).collect()
}

fn throttling() -> Option<(u64, u64)> {
    let number = |name: &str| text(Path::new("/proc/sys/kernel").join(name))?.parse::<u64>().ok();
    let (runtime, period) = (number("sched_rt_runtime_us")?, number("sched_rt_period_us")?);
    (runtime < period).then_some((runtime, period))
}

fn processor(cpu: u32) -> Processor {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
    let states = fs::read_dir(format!("{folder}/cpuidle")).into_iter().flatten().flatten();
    let enabled =
        states.map(|state| state.path()).filter(|state| text(state.join("disable")).as_deref() == Some("0"));
    let with_exit = enabled
        .filter_map(|state| Some((text(state.join("name"))?, text(state.join("latency"))?.parse().ok()?)));
    Processor {
        governor: text(format!("{folder}/cpufreq/scaling_governor")),
        idle: with_exit.max_by_key(|(_, exit_us): &(String, u64)| *exit_us),
    }
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// How often each processor has served each device's interrupt.
fn interrupts() -> BTreeMap<(String, u32), u64> {
    let table = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    parse_interrupts(&table)
}

fn parse_interrupts(table: &str) -> BTreeMap<(String, u32), u64> {
    let mut lines = table.lines();
    let heads = lines.next().unwrap_or_default().split_whitespace();
    let cpus: Vec<u32> = heads.filter_map(|head| head.strip_prefix("CPU")?.parse().ok()).collect();
    let mut counts = BTreeMap::new();
    for line in lines {
        let Some((number, rest)) = line.split_once(':') else { continue };
        // Others are no device's: timers, requests of other processors.
        if number.trim().parse::<u32>().is_err() {
            continue;
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        let name = words.get(cpus.len()..).and_then(<[&str]>::last).copied().unwrap_or("unnamed");
        for (cpu, count) in cpus.iter().zip(&words) {
            let name = format!("{name} (interrupt {})", number.trim());
            counts.insert((name, *cpu), count.parse().unwrap_or(0));
        }
    }
    counts
}

fn served_since(before: &BTreeMap<(String, u32), u64>) -> Vec<Interrupt> {
    let served = |((name, processor), count): ((String, u32), u64)| {
        let count = count.saturating_sub(before.get(&(name.clone(), processor)).copied().unwrap_or(0));
        (count > 0).then_some(Interrupt { name, processor, count })
    };
    interrupts().into_iter().filter_map(served).collect()
}

/// Which threads wait at this moment for a mutex of glibc without inheritance whose owner is less urgent.
fn contended(pid: i32, memory: &File, threads: &Seen) -> Vec<Mutex> {
    let of = |(tid, (waiter, ..)): (&i32, &(Thread, u64, u64))| {
        let address = waits_on(pid, *tid)?;
        // pthread_mutex_t: lock, count, owner, users, kind.
        let mut bytes = [0; 20];
        memory.read_exact_at(&mut bytes, address).ok()?;
        let word =
            |index: usize| bytes[4 * index..].first_chunk().map_or(0, |word| i32::from_ne_bytes(*word));
        let (is_locked, users, kind) = (word(0) != 0, word(3), word(4));
        let is_mutex = is_locked && users > 0 && (0..1024).contains(&kind) && kind & LENDS == 0;
        threads.get(&word(2)).filter(|_| is_mutex)?;
        // As it is at this moment.
        let (owner, ..) = seen(pid, word(2))?;
        let mutex = || Mutex { waiter: waiter.to_string(), owner: owner.to_string() };
        waiter.is_more_urgent(&owner).then(mutex)
    };
    threads.iter().filter(|(_, (thread, ..))| thread.is_real_time()).filter_map(of).collect()
}

/// The bits of a mutex's kind that say that its owner gets the waiter's priority, or the mutex's own.
const LENDS: i32 = 32 | 64;

/// The address of the futex that a thread waits on, if it does: `202 0x7f… 0x80 …`.
fn waits_on(pid: i32, tid: i32) -> Option<u64> {
    const COMMAND: u64 = 127;
    let call = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    let mut words = call.split_whitespace();
    let number: libc::c_long = words.next()?.parse().ok()?;
    let mut hexadecimal = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (address, operation) = (hexadecimal()?, hexadecimal()? & COMMAND);
    let waits = [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET].iter().any(|wait| *wait as u64 == operation);
    (number == libc::SYS_futex && waits).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_devices_are_read() {
        let table = "           CPU0       CPU2\n\
                     \u{20}  4:          0         17   IO-APIC   4-edge      ttyS0\n\
                     \u{20} 24:       3000          0   PCI-MSI 512000-edge   nvme0q1\n\
                     \u{20}LOC:      99999      88888   Local timer interrupts\n\
                     \u{20}ERR:          0\n";
        let found = parse_interrupts(table);
        let of = |name: &str, cpu| found.get(&(name.to_owned(), cpu)).copied();
        assert_eq!(of("ttyS0 (interrupt 4)", 2), Some(17));
        assert_eq!(of("nvme0q1 (interrupt 24)", 0), Some(3_000));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn memory_that_is_not_locked_is_summed() {
        let maps = "55d0-55d1 r-xp 00000000 fe:01 1 /robot\nRss:  100 kB\nVmFlags: rd ex lo \n\
                    7f00-7f01 rw-p 00000000 00:00 0 \nRss:   20 kB\nVmFlags: rd wr mr \n\
                    7ffd-7ffe r--p 00000000 00:00 0 [vvar]\nRss:    4 kB\nVmFlags: rd mr pf io de dd \n";
        assert_eq!(parse_memory(maps), (20, 120));
    }

    #[test]
    fn urgency_is_that_of_the_scheduler() {
        let of = |policy, priority| Thread {
            name: String::new(),
            policy,
            priority,
            processors: BTreeSet::new(),
            processor: 0,
            percent: 0,
            faults: 0,
        };
        let rising =
            [of(Policy::Other, 0), of(Policy::Fifo, 1), of(Policy::RoundRobin, 99), of(Policy::Deadline, 0)];
        for (index, thread) in rising.iter().enumerate() {
            let less = rising.iter().filter(|other| thread.is_more_urgent(other)).count();
            assert_eq!(less, index);
        }
    }
}
