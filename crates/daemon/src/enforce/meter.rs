//! Measures one thread: its processor time against a limit, its context switches, whether it migrates. By
//! perf events of the kernel's software clock, which exist on every machine.

use memmap2::{MmapOptions, MmapRaw};
use punctual_linux::perf::{self, Event};
use punctual_linux::scheduling::{self, Processors};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pages of records of a thread's switches: room for 512.
const PAGES: usize = 2;

/// Something that happened to the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, on CLOCK_MONOTONIC.
    pub time: u64,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It begins to run.
    In,
    /// It does not run any more.
    Out {
        /// Though it could.
        preempted: bool,
    },
    /// It runs: the clock reached its limit, or the thread migrated.
    Sample,
    /// Records found no room.
    Lost,
}

const TASK_CLOCK: u64 = 1;
const CPU_MIGRATIONS: u64 = 4;
const DUMMY: u64 = 9;
const SAMPLE_TIME: u64 = 1 << 2;
const TASK: u64 = 1 << 13;
/// `wakeup_events` are bytes.
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
/// `_IOW('$', 4, __u64)` and `_IO('$', 5)`.
const SET_PERIOD: libc::c_ulong = 1 << 30 | 8 << 16 | 0x24 << 8 | 4;
const SET_OUTPUT: libc::c_ulong = 0x24 << 8 | 5;

/// Offsets in the first page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

const LOST: u32 = 2;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const SWITCH: u32 = 14;
const SWITCH_OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// Never, as a limit: an hour of processor time.
pub const NEVER: u64 = 3_600_000_000_000;

/// The events of one thread.
#[derive(Debug)]
pub struct Meter {
    clock: OwnedFd,
    _migrations: OwnedFd,
    ring: Ring,
    /// `/proc/TID/schedstat`: how long it has waited for a processor.
    waits: File,
    waited: u64,
    taken: u64,
}

impl Meter {
    /// Measures a thread from now on; the clock's limit is `limit` ns of processor time.
    pub fn new(thread: u32, limit: u64) -> io::Result<Meter> {
        let clock = open(thread, TASK_CLOCK, limit, SAMPLE_ID_ALL | CONTEXT_SWITCH)?;
        let ring = Ring::new(&clock, PAGES)?;
        let migrations = migrations_to(&clock, thread)?;
        let waits = File::open(format!("/proc/{thread}/task/{thread}/schedstat"))?;
        let mut meter = Meter { clock, _migrations: migrations, ring, waits, waited: 0, taken: 0 };
        meter.waited();
        Ok(meter)
    }

    /// Becomes readable when the clock reaches its limit, the thread migrates, or the ring is half full.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.clock.as_fd()
    }

    /// Sets the clock's limit, counted from now.
    pub fn set_limit(&self, limit: u64) -> io::Result<()> {
        // SAFETY: the kernel reads the number behind the pointer.
        match unsafe { libc::ioctl(self.clock.as_raw_fd(), SET_PERIOD as _, &raw const limit) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// How long it has waited for a processor since the last call, in ns.
    pub fn waited(&mut self) -> u64 {
        let mut bytes = [0; 96];
        let length = self.waits.read_at(&mut bytes, 0).unwrap_or(0);
        let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
        let Some(now) = text.split_ascii_whitespace().nth(1).and_then(|it| it.parse().ok()) else { return 0 };
        let before = std::mem::replace(&mut self.waited, now);
        now.saturating_sub(before)
    }

    /// How much processor time it has taken since the last call, in ns.
    pub fn taken(&mut self) -> u64 {
        let mut bytes = [0; 8];
        match rustix::io::read(&self.clock, &mut bytes) {
            Ok(8) => {
                let now = u64::from_ne_bytes(bytes);
                now.saturating_sub(std::mem::replace(&mut self.taken, now))
            }
            _ => 0,
        }
    }

    /// Takes the records out of the ring.
    pub fn read(&mut self, into: &mut Vec<Record>) {
        self.ring.take(|ring, at, kind, misc| {
            let what = match kind {
                SWITCH if misc & SWITCH_OUT == 0 => What::In,
                SWITCH => What::Out { preempted: misc & PREEMPTED != 0 },
                SAMPLE => What::Sample,
                LOST => What::Lost,
                _ => return,
            };
            // A lost record has its identifier and count before the time.
            into.push(Record { time: ring.word(at + if kind == LOST { 24 } else { 8 }), what });
        });
    }
}

/// Tells of the threads and processes that a thread starts.
#[derive(Debug)]
pub struct Births {
    thread: u32,
    event: OwnedFd,
    _migrations: Option<OwnedFd>,
    /// Its switches, until it has run on the processor where it is to stay. Until then it may be moved back
    /// to where it sleeps, and wakes up there without a migration.
    arrival: Option<(OwnedFd, Processors)>,
    ring: Ring,
}

impl Births {
    /// Tells from now on. With `stays`, the processor where the thread is to stay, also that it runs
    /// elsewhere before it has come there; with `tells_migrations`, also of each migration.
    pub fn new(thread: u32, stays: Option<Processors>, tells_migrations: bool) -> io::Result<Births> {
        // A dummy counts nothing, and is told each record at once.
        let event = open(thread, DUMMY, 0, TASK | WATERMARK)?;
        let ring = Ring::new(&event, 1)?;
        let migrations = tells_migrations.then(|| migrations_to(&event, thread)).transpose()?;
        // Migrations are told by now: if it is there, it cannot leave unseen.
        let mut births = Births { thread, event, _migrations: migrations, arrival: None, ring };
        if let Some(stays) = stays.filter(|stays| !was_last_on(thread, stays)) {
            births.wait_for_arrival(stays)?;
        }
        Ok(births)
    }

    /// The thread is about to be moved to the processor where it is to stay.
    pub fn wait_for_arrival(&mut self, stays: Processors) -> io::Result<()> {
        let switches = open(self.thread, DUMMY, 0, CONTEXT_SWITCH | WATERMARK)?;
        redirect(&switches, &self.event)?;
        self.arrival = Some((switches, stays));
        Ok(())
    }

    /// Becomes readable with each birth, and when the thread runs where it is not to stay.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Their TIDs, and when they were started (on CLOCK_MONOTONIC, before they ran), since the last call.
    pub fn read(&mut self) -> Vec<(u32, u64)> {
        let mut born = Vec::new();
        self.ring.take(|ring, at, kind, _| {
            if kind == FORK {
                // Process and parent, then thread and its parent, then when.
                born.push((ring.word(at + 16) as u32, ring.word(at + 24)));
            }
        });
        if self.arrival.as_ref().is_some_and(|(_, stays)| was_last_on(self.thread, stays)) {
            self.arrival = None;
        }
        born
    }

    /// The thread stays where it was found, elsewhere: from now on, its migrations tell all.
    pub fn stop_waiting(&mut self) {
        self.arrival = None;
    }
}

/// Whether a thread runs on one of these processors, or has run there last.
fn was_last_on(thread: u32, processors: &Processors) -> bool {
    let last = punctual_linux::proc::Stat::of(thread).and_then(|stat| stat.processor());
    last.is_some_and(|last| processors.has(last))
}

/// Records in memory that is shared with the kernel, after a page with its head and tail.
#[derive(Debug)]
struct Ring {
    map: MmapRaw,
    page: usize,
    pages: usize,
}

impl Ring {
    fn new(event: &OwnedFd, pages: usize) -> io::Result<Ring> {
        let page = rustix::param::page_size();
        let map = MmapOptions::new().len((1 + pages) * page).map_raw(event.as_raw_fd())?;
        Ok(Ring { map, page, pages })
    }

    /// Takes all records: where each is, its type, and its flags.
    fn take(&self, mut each: impl FnMut(&Ring, u64, u32, u16)) {
        let head = self.number(HEAD).load(Ordering::Acquire);
        let mut tail = self.number(TAIL).load(Ordering::Relaxed);
        while tail < head {
            let word = self.word(tail);
            let (kind, misc, size) = (word as u32, (word >> 32) as u16, (word >> 48) as u16);
            if size < 8 {
                // The kernel writes no such record.
                break;
            }
            each(self, tail, kind, misc);
            tail += u64::from(size);
        }
        self.number(TAIL).store(head, Ordering::Release);
    }

    /// Eight bytes. All records have multiples of eight.
    fn word(&self, at: u64) -> u64 {
        let offset = self.page + at as usize % (self.pages * self.page);
        self.number(offset / 8 * 8).load(Ordering::Relaxed)
    }

    fn number(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the mapping, which is aligned to pages, by the callers. It is atomic, since the
        // kernel writes there, too.
        unsafe { &*self.map.as_mut_ptr().add(offset).cast::<AtomicU64>() }
    }
}

/// Migrations of a thread, told in the ring of another event.
fn migrations_to(event: &OwnedFd, thread: u32) -> io::Result<OwnedFd> {
    let migrations = open(thread, CPU_MIGRATIONS, 1, 0)?;
    redirect(&migrations, event)?;
    Ok(migrations)
}

/// Lets the records of an event be told in the ring of another.
fn redirect(event: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    // SAFETY: the argument is a descriptor.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, to.as_raw_fd()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Events of the caller, which are not read: others can be opened at once as long as they are open.
pub fn prepare() -> io::Result<[OwnedFd; 2]> {
    Ok([open(0, TASK_CLOCK, NEVER, CONTEXT_SWITCH)?, open(0, CPU_MIGRATIONS, NEVER, 0)?])
}

fn open(thread: u32, counter: u64, period: u64, flags: u64) -> io::Result<OwnedFd> {
    let event = Event {
        counter,
        period,
        record: SAMPLE_TIME,
        flags: flags | USE_CLOCKID,
        wakeup: 1,
        clock: libc::CLOCK_MONOTONIC,
        ..Event::default()
    };
    perf::open(&event, thread as i32, -1)
}

/// Whether the kernel tells of events from a thread of low priority, which the one that is measured can
/// starve: that of PREEMPT_RT does.
pub fn is_told_late() -> bool {
    scheduling::is_preempt_rt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    /// Works until it has taken so much processor time.
    fn work(ms: i64) {
        let mut time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let end = time.tv_sec * 1000 + time.tv_nsec / 1_000_000 + ms;
        while time.tv_sec * 1000 + time.tv_nsec / 1_000_000 < end {
            time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        }
    }

    fn until_asleep(thread: u32) {
        let is_asleep = || {
            let stat = std::fs::read_to_string(format!("/proc/{thread}/task/{thread}/stat")).unwrap();
            stat.rsplit_once(')').is_some_and(|(_, behind)| behind.trim_start().starts_with('S'))
        };
        let begin = std::time::Instant::now();
        while !is_asleep() {
            assert!(begin.elapsed().as_secs() < 20, "it does not sleep");
            std::thread::yield_now();
        }
    }

    #[test]
    fn births_are_told() {
        let number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let mut births = match Births::new(number, None, false) {
            Ok(births) => births,
            Err(error) => return eprintln!("SKIPPED: perf events: {error}"),
        };
        let before = crate::enforce::now();
        let (child, began) = std::thread::spawn(|| {
            (rustix::thread::gettid().as_raw_nonzero().get() as u32, crate::enforce::now())
        })
        .join()
        .unwrap();
        let [(told, at)] = births.read()[..] else { panic!("one birth") };
        assert_eq!(told, child);
        assert!(before <= at && at <= began, "{before} {at} {began}");
        assert!(births.read().is_empty());
    }

    #[test]
    fn a_thread_that_wakes_up_on_another_processor_is_told() {
        let [Some(here), Some(there)] = [0, 1].map(Processors::one) else { panic!("two numbers") };
        let (send, receive) = std::sync::mpsc::channel();
        let (wake, woken) = std::sync::mpsc::channel();
        let (answer, answered) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            send.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
            while woken.recv().is_ok() {
                answer.send(()).unwrap();
            }
        });
        let number = receive.recv().unwrap();
        if scheduling::pin(number, &here).is_err() || scheduling::pin(number, &there).is_err() {
            return eprintln!("SKIPPED: there is one processor");
        }
        let runs = |processors: &Processors| {
            scheduling::pin(number, processors).unwrap();
            wake.send(()).unwrap();
            answered.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
            until_asleep(number);
            assert!(was_last_on(number, processors));
        };
        runs(&there);
        scheduling::pin(number, &here).unwrap();
        let mut births = match Births::new(number, Some(here), true) {
            Ok(births) => births,
            Err(error) => return eprintln!("SKIPPED: perf events: {error}"),
        };
        let told = |births: &mut Births| {
            let is_told = {
                let mut events = [PollFd::from_borrowed_fd(births.events(), PollFlags::IN)];
                let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
                poll(&mut events, Some(&now)).unwrap() == 1
            };
            births.read();
            is_told
        };
        assert!(!told(&mut births));
        runs(&there);
        assert!(told(&mut births), "it did not migrate");
        runs(&here);
        assert!(told(&mut births), "it migrated");
        runs(&here);
        assert!(!told(&mut births), "it stays");
        runs(&there);
        assert!(told(&mut births), "it migrated");
        drop(wake);
        worker.join().unwrap();
    }

    #[test]
    fn what_another_thread_takes_is_told() {
        let (send, receive) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            send.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
            work(60);
        });
        let mut meter = match Meter::new(receive.recv().unwrap(), NEVER) {
            Ok(meter) => meter,
            Err(error) => return eprintln!("SKIPPED: perf events: {error}"),
        };
        std::thread::sleep(std::time::Duration::from_millis(20));
        let so_far = meter.taken();
        assert!(so_far > 0, "it has run meanwhile");
        worker.join().unwrap();
        assert!(so_far + meter.taken() > 20_000_000);
    }

    #[test]
    fn switches_and_the_limit_are_told() {
        let number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let mut meter = match Meter::new(number, 3_000_000) {
            Ok(meter) => meter,
            Err(error) => return eprintln!("SKIPPED: perf events: {error}"),
        };
        let is_told = |meter: &Meter| {
            let events = meter.events();
            let mut watched = [PollFd::new(&events, PollFlags::IN)];
            matches!(poll(&mut watched, Some(&rustix::event::Timespec::default())), Ok(1..))
        };
        std::thread::sleep(std::time::Duration::from_millis(1));
        let mut records = Vec::new();
        meter.read(&mut records);
        let kinds: Vec<What> = records.iter().map(|record| record.what).collect();
        assert!(kinds.contains(&What::In) && kinds.contains(&What::Out { preempted: false }), "{kinds:?}");
        assert!(records.windows(2).all(|pair| pair[0].time <= pair[1].time), "{records:?}");
        work(20);
        assert!(is_told(&meter));
        records.clear();
        meter.read(&mut records);
        assert!(records.iter().any(|record| record.what == What::Sample), "{records:?}");
        // Nothing comes twice.
        let before = records.len();
        assert!(meter.taken() >= 19_000_000 && meter.taken() < 19_000_000);
        meter.set_limit(NEVER).unwrap();
        meter.read(&mut records);
        assert!(records.len() < before + 10);
    }
}
