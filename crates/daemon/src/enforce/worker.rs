//! The thread that watches: waits for events of threads and for its own times, at a priority above all of
//! them.

use super::account::Account;
use super::meter::{self, Births, Meter};
use super::watched::{Events, GRAIN, Measure, Unmeasured};
use super::{Accounting, Shared, Target, now, ring, silence};
use crate::log;
use punctual_linux::scheduling::{self, Scheduling};
use punctual_schedule::AssignedPolicy;
use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The bell's token; others are keys of threads.
const BELL: u64 = u64::MAX;
/// Above everything that it may have to stop.
const PRIORITY: u32 = 99;

/// Runs until the registry says that it is over.
pub(super) fn run(shared: &Shared, ready: &Sender<()>) {
    // Before there is anyone to stop: the kernel waits for a grace period of RCU with its first event, and
    // that can be as long as a thread is not stopped.
    let accounting = shared.lock().policy.accounting;
    let prepared = (accounting != Accounting::Always).then(meter::prepare);
    let mut has_warned = false;
    let _events = match prepared.transpose() {
        Ok(events) => events,
        Err(error) if accounting == Accounting::IfRefused => {
            warn_of_accounts(&mut has_warned, &unavailable(&error));
            None
        }
        Err(error) => {
            log::warning(&format!("runtimes are not enforced: {}", unavailable(&error)));
            None
        }
    };
    let scheduling = Scheduling::from_policy(AssignedPolicy::Fifo(PRIORITY));
    if let Err(error) = scheduling::schedule(0, &scheduling) {
        log::warning(&format!(
            "runtimes are enforced by an ordinary thread, which others can starve: {error}"
        ));
    }
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).and_then(|poll| {
        epoll::add(&poll, &shared.bell, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN).map(|()| poll)
    });
    // Not before it has its priority: the first thread that it watches could keep it from its processor.
    let _ = ready.send(());
    let poll = match poll {
        Ok(poll) => poll,
        Err(error) => return log::error(&format!("runtimes are not enforced: watching for events: {error}")),
    };
    let mut events = Vec::with_capacity(64);
    let mut records = Vec::new();
    loop {
        let next = shared.lock().threads.values().filter_map(|it| it.due()).min();
        let wait = next.map(|next| Duration::from_nanos(next.saturating_sub(now())));
        let timeout =
            wait.map(|wait| Timespec { tv_sec: wait.as_secs() as _, tv_nsec: wait.subsec_nanos().into() });
        if let Err(error) = wait_for(&poll, timeout, &mut events) {
            return log::error(&format!("runtimes are not enforced any more: {error}"));
        }
        let mut keys = Vec::new();
        for event in &events {
            let (key, flags) = ({ event.u64 }, { event.events });
            match key {
                BELL => silence(&shared.bell),
                key if flags & (libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0 => end(shared, key),
                key => keys.push(key),
            }
        }
        look(shared, &keys, &mut records);
        if begin(shared, &poll, &mut has_warned) {
            return;
        }
    }
}

/// Waits for events to the nanosecond, with `epoll_pwait2(2)` (Linux 5.11): `epoll_wait` has milliseconds, by
/// which threads would be promoted too late. Perf events are told once, so there is only one look at them.
fn wait_for(
    poll: &OwnedFd,
    timeout: Option<Timespec>,
    events: &mut Vec<libc::epoll_event>,
) -> io::Result<()> {
    let timeout = timeout.as_ref().map_or(std::ptr::null(), |timeout| &raw const *timeout);
    let (room, no_mask) = (events.capacity(), std::ptr::null::<libc::sigset_t>());
    events.clear();
    // SAFETY: the kernel writes at most `room` events and reads a timespec of 64 bits, as rustix has it.
    let count = unsafe {
        let events = events.as_mut_ptr();
        libc::syscall(libc::SYS_epoll_pwait2, poll.as_raw_fd(), events, room, timeout, no_mask, 0)
    };
    match usize::try_from(count) {
        // SAFETY: the kernel has written so many.
        Ok(count) => unsafe { events.set_len(count) },
        Err(_) => {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
    }
    Ok(())
}

/// With so many unread notices of one spec, what its thread has started is not told again.
const NOTICES_OF_A_SPEC: usize = 64;

/// Looks at those that have events, and at those whose time has come.
fn look(shared: &Shared, keys: &[u64], records: &mut Vec<super::meter::Record>) {
    let at = now();
    let due: Vec<u64> = {
        let core = shared.lock();
        let is_due = |watched: &super::Watched| watched.due().is_some_and(|due| due <= at);
        core.threads.iter().filter(|(_, it)| is_due(it)).map(|(&key, _)| key).collect()
    };
    for key in keys.iter().chain(due.iter().filter(|key| !keys.contains(key))) {
        let mut core = shared.lock();
        let policy = core.policy;
        let Some(watched) = core.threads.get_mut(key) else { continue };
        let lacks_events = watched.lacks_events(at);
        let born = watched.born();
        let before = watched.times_put_back();
        let started = born.as_ref().map(|born| watched.notice(born.started()));
        let notice = watched.look(&policy, records);
        born.iter().for_each(|born| core.send_home(born));
        tell(shared, &mut core, started);
        if lacks_events {
            core.measure_anew(*key);
        }
        let barred = core.strike(*key, before);
        tell(shared, &mut core, notice);
        tell(shared, &mut core, barred);
    }
}

fn tell(shared: &Shared, core: &mut super::Core, notice: Option<super::Notice>) {
    let Some(notice) = notice else { return };
    // Of many children it is enough to know some: their siblings are found by them.
    let is_known = matches!(notice.event, super::Event::Started { .. })
        && core.notices.iter().filter(|it| it.spec == notice.spec).count() >= NOTICES_OF_A_SPEC;
    if !is_known {
        core.notices.push(notice);
    }
    ring(&shared.answer);
}

/// The events of a thread have ended, and would be told forever. If the thread has not, it gets others.
fn end(shared: &Shared, key: u64) {
    let mut core = shared.lock();
    let lost = core.threads.get_mut(&key).map(|it| it.lost());
    if lost.as_ref().is_some_and(|(_, lives)| *lives) {
        core.measure_anew(key);
    }
    drop(core);
    // Closing takes its time.
    drop(lost);
}

/// Begins to measure those that are new, and closes what was measured. Whether it is all over.
fn begin(shared: &Shared, poll: &impl AsFd, has_warned: &mut bool) -> bool {
    let (fresh, gone, is_over, accounting) = {
        let mut core = shared.lock();
        let (fresh, gone) = (std::mem::take(&mut core.fresh), std::mem::take(&mut core.gone));
        (fresh, gone, core.is_over, core.policy.accounting)
    };
    for key in fresh {
        let found = shared.lock().threads.get(&key).map(|it| (it.target.clone(), it.meter.is_some()));
        let Some((target, is_measured)) = found else { continue };
        let events = measure(&target, is_measured, key, poll, accounting, has_warned);
        let mut core = shared.lock();
        let policy = core.policy;
        match core.threads.get_mut(&key) {
            Some(watched) if watched.target.thread.lives() => {
                let before = watched.times_put_back();
                let notice = watched.begin(events, &policy, now());
                let barred = core.strike(key, before);
                tell(shared, &mut core, notice);
                tell(shared, &mut core, barred);
            }
            // Detached or ended meanwhile.
            _ => drop(core),
        }
    }
    // Takes its time, in which others run that are to be measured.
    drop(gone);
    is_over
}

/// Says once why threads are measured in another way.
fn warn_of_accounts(has_warned: &mut bool, why: &str) {
    if !std::mem::replace(has_warned, true) {
        log::warning(&format!(
            "threads are held to their runtimes by the kernel's accounts, which are less exact, and what \
             they start stays on their processors: {why}"
        ));
    }
}

/// Opens what tells of a thread. `is_measured`: its runtime is already.
fn measure(
    target: &Target,
    is_measured: bool,
    key: u64,
    poll: &impl AsFd,
    accounting: Accounting,
    has_warned: &mut bool,
) -> Result<Events, Unmeasured> {
    let number = target.thread.number;
    let watch = |fd: std::os::fd::BorrowedFd<'_>| {
        epoll::add(poll, fd, epoll::EventData::new_u64(key), epoll::EventFlags::IN)
            .map_err(|error| Unmeasured::Refused(format!("watching for its events: {error}")))
    };
    let mut events = Events { meter: None, births: None };
    if target.is_held() && !is_measured {
        let meter = match accounting {
            Accounting::Always => None,
            _ => Some(Meter::new(number, target.runtime.max(GRAIN)).map_err(unmeasured)),
        };
        events.meter = Some(match meter {
            Some(Ok(meter)) => {
                watch(meter.events())?;
                Measure::Events(meter)
            }
            Some(Err(Unmeasured::Refused(why))) if accounting == Accounting::IfRefused => {
                warn_of_accounts(has_warned, &why);
                Measure::Accounts(Account::open(number).map_err(unaccounted)?)
            }
            Some(Err(why)) => return Err(why),
            None => Measure::Accounts(Account::open(number).map_err(unaccounted)?),
        });
    }
    let stays = Some(target.applied.processors).filter(|it| !target.is_guest && it.is_one());
    if target.applied.processors != target.home || stays.is_some() {
        // The meter tells of migrations, too.
        let tells_migrations = stays.is_some() && !target.is_held();
        match Births::new(number, stays, tells_migrations).map_err(unmeasured) {
            Ok(births) => {
                watch(births.events())?;
                events.births = Some(births);
            }
            // It is held to its runtime nevertheless.
            Err(Unmeasured::Refused(_)) if matches!(events.meter, Some(Measure::Accounts(_))) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(events)
}

fn unmeasured(error: io::Error) -> Unmeasured {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Unmeasured::Ending,
        _ => Unmeasured::Refused(unavailable(&error)),
    }
}

fn unaccounted(error: io::Error) -> Unmeasured {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Unmeasured::Ending,
        _ => Unmeasured::Refused(error.to_string()),
    }
}

fn unavailable(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            // Debian and Ubuntu have levels above 2, the strictest of the kernel's own.
            let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            let admin = match level.trim().parse::<i32>() {
                Ok(level @ 3..) => {
                    format!(", and CAP_SYS_ADMIN, as kernel.perf_event_paranoid is {level}, above 2")
                }
                _ => String::new(),
            };
            format!("perf events: {error}; they need CAP_PERFMON, CAP_SYS_PTRACE{admin}")
        }
        Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => {
            format!("perf events: {error}; the kernel has none (CONFIG_PERF_EVENTS)")
        }
        _ => format!("perf events: {error}"),
    }
}
