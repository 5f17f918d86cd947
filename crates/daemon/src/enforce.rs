//! Holds attached threads under SCHED_FIFO and SCHED_RR to their accepted runtime per period: measures them,
//! and stops those that exceed it. docs/design/enforcement.md says how and why.
//!
//! `worker` is a thread of its own, of the highest priority; the registry says whom it watches. Not for
//! SCHED_DEADLINE, which the kernel enforces.

mod account;
mod budget;
mod lock;
mod meter;
mod watched;
mod worker;

use crate::log;
use crate::poll::{Poll, Token};
use budget::Budget;
use lock::{Guard, Inheriting};
use punctual_linux::scheduling::{self, Processors, Scheduling, State};
use punctual_linux::thread::Thread;
use punctual_protocol::Enforced;
use rustc_hash::FxHashMap;
use rustix::event::{EventfdFlags, eventfd};
use std::cmp::Reverse;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use watched::{Events, Watched};

/// How long an attachment may wait for the first perf event of this daemon; usually some 10 ms.
const PATIENCE: Duration = Duration::from_millis(500);

/// Threads of which it is kept what they took, though nobody holds them: those with the farthest budgets.
const MOST_OWED: usize = 4096;

/// What is done about a thread that exceeds its runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overruns {
    /// It is counted.
    Count,
    /// It is logged, too.
    Warn,
    /// It is scheduled as before it was attached, until its next period.
    #[default]
    Demote,
    /// It is detached.
    Detach,
}

/// What is done about a thread whose scheduling someone else changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Changes {
    /// It is shown.
    Show,
    /// It is scheduled as admitted again.
    #[default]
    PutBack,
    /// It is detached.
    Detach,
}

/// What the configuration says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// About threads that exceed their runtime.
    pub overruns: Overruns,
    /// About threads that someone else changed.
    pub changes: Changes,
    /// Whether the daemon looks by its own timer, rather than being told by the kernel.
    pub polls: bool,
    /// Whether it looks at the kernel's own accounts, rather than at perf events.
    pub accounting: Accounting,
}

impl Policy {
    /// Whether threads are stopped that exceed their runtime.
    fn stops(&self) -> bool {
        matches!(self.overruns, Overruns::Demote | Overruns::Detach)
    }
}

/// When threads are measured by the kernel's own accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// Never: without perf events, runtimes are not enforced.
    Never,
    /// Where perf events are refused.
    #[default]
    IfRefused,
    /// Always.
    Always,
}

/// A thread, and what it is held to.
#[derive(Clone, Debug)]
pub struct Target {
    /// It.
    pub thread: Arc<Thread>,
    /// The user of its spec.
    pub user: u32,
    /// Whether a dispatcher schedules it: then only what it starts is sent home.
    pub is_guest: bool,
    /// As it is scheduled by admission.
    pub applied: State,
    /// The processors that it had before, and that what it starts gets.
    pub home: Processors,
    /// As it is scheduled when it has used up its budget.
    pub demoted: Scheduling,
    /// Q, in ns; 0 if it is not held to one.
    pub runtime: u64,
    /// T, in ns.
    pub period: u64,
    /// D, in ns.
    pub deadline: u64,
    /// When its first budget begins, on CLOCK_MONOTONIC in ns, if that is later.
    pub begins: u64,
}

impl Target {
    /// Whether it is held to its runtime.
    pub fn is_held(&self) -> bool {
        self.runtime > 0
    }

    fn times(&self) -> (u64, u64, u64) {
        (self.runtime, self.period, self.deadline)
    }
}

/// What a thread has started, and where that is sent.
struct Born {
    children: Vec<u32>,
    /// When the first of them was started, on CLOCK_MONOTONIC in ns.
    since: u64,
    /// What they inherited.
    from: Processors,
    /// What the thread had before it was attached.
    home: Processors,
}

impl Born {
    fn started(&self) -> Event {
        Event::Started { children: self.children.clone(), since: self.since }
    }
}

/// What the registry has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Of which spec.
    pub spec: u64,
    /// Of which thread.
    pub thread: u32,
    /// What happened.
    pub event: Event,
}

/// What happened to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It exceeded its runtime.
    Overrun,
    /// It exceeded its runtime, was demoted, and is to be detached.
    Exhausted,
    /// Someone else changed it to what is said here, and it was put back.
    PutBack(String),
    /// Someone else changed it to what is said here, and it is to be detached.
    Changed(String),
    /// It has started threads and processes, which were sent to the processors that it had before.
    Started {
        /// Their numbers.
        children: Vec<u32>,
        /// When it started the first of them, on CLOCK_MONOTONIC in ns.
        since: u64,
    },
    /// It was changed too often: it is demoted for so many seconds.
    Barred(u64),
    /// Something cannot be done, and why.
    Failed(String),
}

/// Now, on CLOCK_MONOTONIC, in ns.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How often threads of one user were put back lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Strikes {
    number: u32,
    last: u64,
    /// Until when threads of the user that are put back, or attached, are demoted.
    barred: u64,
}

impl Strikes {
    /// So many are nothing but put back.
    const PARDONED: u32 = 3;
    /// After so long they are forgotten.
    const MEMORY: u64 = 60_000_000_000;
    /// The first time for which a thread is barred; twice as long each time.
    const SHORTEST: u64 = 1_000_000_000;
    const MOST_DOUBLED: u32 = 6;

    /// One more. Until when the thread is barred, if it is. Under SCHED_DEADLINE, which goes before the one
    /// that puts it back, none is pardoned.
    fn strike(&mut self, is_deadline: bool, now: u64) -> Option<u64> {
        if now.saturating_sub(self.last) > Self::MEMORY.max(self.barred.saturating_sub(self.last)) {
            *self = Strikes::default();
        }
        self.number = if is_deadline { self.number.max(Self::PARDONED) + 1 } else { self.number + 1 };
        self.last = now;
        let doubled = self.number.checked_sub(Self::PARDONED + 1)?.min(Self::MOST_DOUBLED);
        self.barred = now.saturating_add(Self::SHORTEST << doubled);
        Some(self.barred)
    }
}

/// What both threads know.
#[derive(Debug, Default)]
pub struct Core {
    threads: FxHashMap<u64, Watched>,
    by_spec: FxHashMap<u64, u64>,
    next: u64,
    /// Those that are not measured yet.
    fresh: Vec<u64>,
    /// What threads have taken that are not held any more, until their next budget is due.
    owed: FxHashMap<u64, Budget>,
    /// The same of specs: whichever thread it is, they have one budget.
    owed_of_specs: FxHashMap<u64, Budget>,
    /// Users whose threads were changed behind the daemon's back, and put back.
    strikes: FxHashMap<u32, Strikes>,
    /// To be closed, which takes its time.
    gone: Vec<Events>,
    notices: Vec<Notice>,
    policy: Policy,
    is_over: bool,
}

impl Core {
    /// The thread of a spec, if it is held to a runtime.
    fn of(&self, spec: u64) -> Option<&Watched> {
        self.threads.get(self.by_spec.get(&spec)?)
    }

    /// What the thread of a spec was demoted to, if it is.
    pub fn demoted(&self, spec: u64) -> Option<Scheduling> {
        self.of(spec).filter(|it| it.is_demoted()).map(|it| it.target.demoted)
    }

    /// The registry gives the thread of a spec a policy that it is not held to by this.
    pub fn resume(&mut self, spec: u64) {
        if self.demoted(spec).is_some() {
            self.forget(spec);
        }
    }

    /// When what a spec has taken of its budget is paid at the rate that it was promised, and when the next
    /// one is due; 0 or past if it has taken nothing.
    pub fn due(&mut self, spec: u64) -> Option<(u64, u64)> {
        let watched = self.by_spec.get(&spec).and_then(|key| self.threads.get_mut(key));
        let held = watched.and_then(Watched::next_due);
        let owed = self.owed_of_specs.get(&spec).map(|it| (it.paid(), it.due()));
        held.into_iter().chain(owed).reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)))
    }

    /// A spec has ended: nobody asks for what it owes.
    pub fn forget_owed(&mut self, spec: u64) {
        self.owed_of_specs.remove(&spec);
    }

    /// What was counted of the thread of a spec.
    pub fn enforced(&self, spec: u64) -> Option<Enforced> {
        self.of(spec).and_then(Watched::enforced)
    }

    /// What admission makes of the thread of a spec from now on. Whether it is to be looked at where it runs.
    fn reschedule(&mut self, spec: u64, applied: Option<State>) -> bool {
        let key = self.by_spec.get(&spec).copied();
        let watched = key.and_then(|key| Some((key, self.threads.get_mut(&key)?)));
        let Some(((key, watched), applied)) = watched.zip(applied) else { return false };
        let before = std::mem::replace(&mut watched.target.applied, applied);
        if before.processors == applied.processors {
            return false;
        }
        // The events of before wait until it runs on the processor of before.
        let gone = watched.take_births();
        self.gone.push(gone);
        self.measure_anew(key);
        true
    }

    /// Whether the thread of a spec is demoted since its user has changed threads.
    pub fn is_barred(&self, spec: u64) -> bool {
        self.of(spec).is_some_and(Watched::is_barred)
    }

    /// A thread was put back so often before the last look. It may be barred, which is to be told.
    fn strike(&mut self, key: u64, before: u64) -> Option<Notice> {
        let watched = self.threads.get_mut(&key).filter(|it| it.times_put_back() > before)?;
        let (is_deadline, now) = (watched.target.applied.scheduling.is_deadline(), now());
        let strikes = self.strikes.entry(watched.target.user).or_default();
        let until = strikes.strike(is_deadline, now)?;
        self.gone.push(watched.bar(until));
        Some(watched.notice(Event::Barred((until - now) / 1_000_000_000)))
    }

    /// Watches the thread of a spec, or changes what it is held to. Whether it is a new one.
    fn watch(&mut self, spec: u64, target: Target) -> bool {
        if let Some(watched) = self.by_spec.get(&spec).and_then(|key| self.threads.get_mut(key)) {
            let is_same = Arc::ptr_eq(&watched.target.thread, &target.thread);
            if is_same && watched.target.is_held() == target.is_held() {
                watched.retarget(target, now());
                return false;
            }
        }
        self.forget(spec);
        let key = self.next;
        self.next += 1;
        let now = now();
        // Who is not held pays nothing meanwhile.
        let owed = match target.is_held() {
            true => [self.owed.remove(&target.thread.identity), self.owed_of_specs.remove(&spec)],
            false => [None, None],
        };
        let owed = owed.into_iter().flatten().filter(|it| it.due() > now);
        let owed = owed.min_by_key(|it| (it.left(), Reverse(it.due())));
        let barred = self.strikes.get(&target.user).map(|it| it.barred).filter(|until| *until > now);
        let mut watched = Watched::new(spec, target, owed.as_ref(), now);
        watched.begin_demoted(&self.policy, barred, now);
        self.threads.insert(key, watched);
        self.by_spec.insert(spec, key);
        self.fresh.push(key);
        true
    }

    /// A thread is measured from now on, or anew.
    fn measure_anew(&mut self, key: u64) {
        if !self.fresh.contains(&key) {
            self.fresh.push(key);
        }
    }

    /// Sends what a thread has started to the processors that the thread had before, unless it is attached
    /// itself, or somewhere else already.
    fn send_home(&self, born: &Born) {
        for &child in &born.children {
            let is_attached = self.threads.values().any(|it| it.target.thread.number == child);
            if !is_attached && scheduling::processors(child).is_ok_and(|now| now == born.from) {
                // It may have ended, or may not go there: then it stays.
                let _ = scheduling::pin(child, &born.home);
            }
        }
    }

    /// Leaves the thread of a spec as it is. What it was demoted to, if it was.
    fn forget(&mut self, spec: u64) -> Option<Scheduling> {
        let mut watched = self.threads.remove(&self.by_spec.remove(&spec)?)?;
        let demoted = watched.is_demoted().then_some(watched.target.demoted);
        if let Some(budget) = watched.owed() {
            if watched.target.thread.lives() {
                keep(&mut self.owed, watched.target.thread.identity, budget.clone());
            }
            keep(&mut self.owed_of_specs, spec, budget);
        }
        self.gone.push(watched.ended());
        demoted
    }
}

/// Keeps what a thread has taken: attached again, or another to the same spec, it gets no new budget.
fn keep(owed: &mut FxHashMap<u64, Budget>, whose: u64, budget: Budget) {
    let now = now();
    owed.retain(|_, it| it.due() > now);
    if owed.len() >= MOST_OWED {
        let next = owed.iter().min_by_key(|(_, it)| it.due()).map(|(&whose, _)| whose);
        next.map(|whose| owed.remove(&whose));
    }
    if budget.due() > now {
        owed.insert(whose, budget);
    }
}

/// The registry's side.
#[derive(Debug)]
pub struct Enforcer {
    shared: Arc<Shared>,
    worker: Option<std::thread::JoinHandle<()>>,
    /// Until the worker can begin.
    ready: Option<Receiver<()>>,
}

/// What both threads share.
#[derive(Debug)]
pub struct Shared {
    core: Inheriting<Core>,
    /// Wakes the worker.
    bell: OwnedFd,
    /// Wakes the registry.
    answer: OwnedFd,
}

impl Shared {
    /// Nobody else sees or changes the threads meanwhile. Not to be held across anything that waits.
    pub fn lock(&self) -> Guard<'_, Core> {
        self.core.lock()
    }
}

fn ring(bell: &OwnedFd) {
    // It can only be full, and then it rings.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

fn silence(bell: &OwnedFd) {
    let _ = rustix::io::read(bell, &mut [0; 8]);
}

impl Enforcer {
    /// Watches nothing yet; its notices wake `poll`.
    pub fn new(policy: Policy, poll: &Poll) -> io::Result<Enforcer> {
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let core = Inheriting::new(Core { policy, ..Core::default() })?;
        let shared = Arc::new(Shared { core, bell: bell()?, answer: bell()? });
        poll.add(&shared.answer, Token::Enforcer)?;
        Ok(Enforcer { shared, worker: None, ready: None })
    }

    /// What both threads share.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Another configuration.
    pub fn set_policy(&self, policy: Policy) {
        self.shared.lock().policy = policy;
    }

    /// Holds the thread of a spec to its runtime from now on.
    pub fn watch(&mut self, spec: u64, target: Target) {
        if self.shared.lock().watch(spec, target) {
            self.prepare();
            ring(&self.shared.bell);
        }
    }

    /// The same for a thread that is attached now: `enact` gives it its policy, or, if it has nothing left,
    /// that of one that is demoted.
    pub fn attach<T>(&mut self, spec: u64, target: Target, enact: impl FnOnce(Option<Scheduling>) -> T) -> T {
        self.prepare();
        let shared = self.shared.clone();
        let mut core = shared.lock();
        core.watch(spec, target);
        // Before: from then on, the thread may keep this one from its processor. The worker waits for the
        // lock, which lends this one its priority.
        ring(&shared.bell);
        enact(core.demoted(spec))
    }

    /// A thread is about to get a policy by which it may keep this one from its processor.
    pub fn announce(&mut self, core: &mut Core, spec: u64, target: Target) {
        if core.watch(spec, target) {
            self.prepare();
            ring(&self.shared.bell);
        }
    }

    /// Admission makes something else of the thread of a spec from now on.
    pub fn reschedule(&self, core: &mut Core, spec: u64, applied: Option<State>) {
        if core.reschedule(spec, applied) {
            ring(&self.shared.bell);
        }
    }

    /// Does not touch the thread of a spec any more. What it was demoted to, if it was.
    pub fn forget(&mut self, spec: u64) -> Option<Scheduling> {
        let mut core = self.shared.lock();
        let demoted = core.forget(spec);
        let has_closed = !core.gone.is_empty();
        drop(core);
        if has_closed {
            ring(&self.shared.bell);
        }
        demoted
    }

    /// What has happened since the last call.
    pub fn notices(&self) -> Vec<Notice> {
        silence(&self.shared.answer);
        std::mem::take(&mut self.shared.lock().notices)
    }

    /// Starts the thread that does it: there will be someone to watch.
    pub fn prepare(&mut self) {
        if self.worker.is_some() {
            return;
        }
        let (shared, (sender, receiver)) = (self.shared.clone(), channel());
        let run = move || worker::run(&shared, &sender);
        match std::thread::Builder::new().name("enforce".into()).spawn(run) {
            Ok(worker) => (self.worker, self.ready) = (Some(worker), Some(receiver)),
            Err(error) => log::error(&format!("runtimes are not enforced: starting a thread: {error}")),
        }
    }
}

impl Enforcer {
    /// Waits until threads can be watched, before one gets a policy that nothing else could take from it.
    pub fn await_ready(&mut self) {
        self.prepare();
        if let Some(ready) = self.ready.take() {
            if ready.recv_timeout(PATIENCE).is_err() {
                log::warning(
                    "the kernel takes its time to enforce runtimes: threads are not held to theirs yet",
                );
            }
        }
    }
}

impl Drop for Enforcer {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        ring(&self.shared.bell);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// What a thread is while it is demoted: as before, but not real-time.
pub fn demoted(before: &Scheduling) -> Scheduling {
    watched::demoted(before)
}

/// Whether the kernel tells of perf events too late to hold a thread to anything.
pub fn must_poll() -> bool {
    meter::is_told_late()
}

#[cfg(test)]
mod tests {
    use super::*;
    use meter::{Record, What};

    #[test]
    fn who_is_not_held_meanwhile_owes_the_same() {
        let number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let applied = State::read(number).unwrap();
        let target = Target {
            thread: Arc::new(Thread::pin(number).unwrap().0),
            user: 0,
            applied,
            home: applied.processors,
            demoted: Scheduling::ordinary(),
            runtime: 0,
            period: 0,
            deadline: 0,
            begins: 0,
            is_guest: false,
        };
        let mut core = Core::default();
        let mut budget = Budget::new((1, 1_000_000_000_000, 1), now());
        budget.advance(&[Record { time: now(), what: What::In }], 0);
        keep(&mut core.owed, target.thread.identity, budget.clone());
        keep(&mut core.owed_of_specs, 7, budget);
        core.watch(7, target.clone());
        core.forget(7);
        assert_eq!((core.owed.len(), core.owed_of_specs.len()), (1, 1));
        core.watch(7, Target { runtime: 1, period: 1_000_000_000_000, ..target });
        assert_eq!((core.owed.len(), core.owed_of_specs.len()), (0, 0));
    }

    #[test]
    fn what_is_owed_is_kept_until_it_is_paid() {
        let mut core = Core::default();
        let mut budget = Budget::new((1, 1_000_000_000_000, 1), now());
        keep(&mut core.owed, 1, budget.clone());
        assert!(core.owed.is_empty(), "nothing was taken");
        budget.advance(&[Record { time: now(), what: What::In }], 0);
        (1..=MOST_OWED as u64 + 10).for_each(|thread| keep(&mut core.owed, thread, budget.clone()));
        assert_eq!(core.owed.len(), MOST_OWED);
        let mut paid = Budget::new((1, 1, 1), 0);
        paid.advance(&[Record { time: 0, what: What::In }], 0);
        keep(&mut core.owed, 0, paid);
        assert!(!core.owed.contains_key(&0));
    }
}
