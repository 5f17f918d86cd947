//! The user-space dispatcher: one thread of SCHED_FIFO on each processor of the table sleeps until the next
//! turn, then hands the processor over by priority. docs/design/time-triggered.md has the reasons.
//!
//! Priorities, one above the other, on every processor of the table:
//!
//! | priority | who |
//! |---|---|
//! | p + 1 | the dispatching thread |
//! | p | the thread whose turn it is |
//! | p − 1 | kernel threads that the dispatching thread may have to wait for |
//! | p − 2 | the *plug*: a thread that keeps the processor when those above sleep |
//! | p − 3 | the other threads of the table |
//!
//! In idle slots the threads of the table are frozen and the plug sleeps, so everything else may run.

mod bound;
mod lane;
mod mail;
mod plug;
mod present;

pub use bound::Bound;

use crate::bell::Bell;
use crate::clock::now_monotonic;
use crate::error::Error;
use crate::mender::Threads;
use lane::Lane;
use mail::Mail;
use plug::{Plug, Sight};
use present::Present;
use punctual_linux::scheduling::Scheduling;
use punctual_linux::thread::Thread;
use punctual_model::{Duration, Instant};
use punctual_schedule::AssignedPolicy;
use punctual_tables::Plan;
use punctual_tables::guests;
use punctual_tables::rows::{Cursor, Rows};
use punctual_trace::dispatch::Turn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

/// Turns that may wait to be read, for each processor.
const WAITING: usize = 1 << 14;

/// So long before the end of an idle turn, the processor is taken back and the next thread is thawed, for
/// which the kernel may have to wait for a lock.
const AHEAD: Duration = Duration::from_us(200);

/// So long before a turn ends, its thread loses the processor: accounts are taken and the next turn is handed
/// over then, and not when it has begun.
const EARLY: Duration = Duration::from_us(40);

/// So long a dispatching thread keeps its processor while somebody else has a task.
const SOON: Duration = Duration::from_us(50);

/// A dispatching thread that has not looked at rows for so long has no processor: then nobody is given any.
const PATIENCE: Duration = Duration::from_ms(50);

/// Shorter idle turns are not lent.
pub const LEAST_LOAN: Duration = Duration::from_us(400);

/// Priorities of SCHED_FIFO, as the module describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priorities {
    turn: u32,
}

impl Priorities {
    /// The least and the greatest priority that threads in their turn may have.
    pub const RANGE: std::ops::RangeInclusive<u32> = 4..=97;

    /// `turn` is the priority of a thread in its turn; `None` outside of [`Priorities::RANGE`].
    pub fn new(turn: u32) -> Option<Priorities> {
        Self::RANGE.contains(&turn).then_some(Priorities { turn })
    }

    /// Of the process that restores everything.
    pub fn guardian(self) -> u32 {
        self.turn + 2
    }

    /// Of dispatching threads.
    pub fn dispatcher(self) -> u32 {
        self.turn + 1
    }

    /// Of the thread whose turn it is.
    pub fn turn(self) -> u32 {
        self.turn
    }

    /// Of the kernel's threads that must run even where the processor is kept.
    pub fn kernel(self) -> u32 {
        self.turn - 1
    }

    /// Of what keeps the processor.
    pub fn plug(self) -> u32 {
        self.turn - 2
    }

    /// Of threads that wait for their turn.
    pub fn waiting(self) -> u32 {
        self.turn - 3
    }
}

/// What all threads of a dispatcher share.
struct Shared {
    plan: Arc<Plan>,
    start: Instant,
    priorities: Priorities,
    /// The thread of each task of the plan, and of each guest.
    tasks: Vec<Mutex<Option<Bound>>>,
    stop: AtomicBool,
    /// By lane, rows that come, and what wakes its thread.
    mail: Vec<Mail>,
    bells: Vec<Bell>,
    /// By lane, turns for which there was no room.
    lost: Vec<AtomicU64>,
    /// By lane, the turn that is under way.
    present: Vec<Present>,
}

impl Shared {
    /// Waits for who has it. A lane must have taken its processor from the thread of the turn before, unless
    /// it is that thread's: who has the lock may be waiting for another one to get that processor, and leave
    /// it.
    fn task(&self, number: u32) -> MutexGuard<'_, Option<Bound>> {
        let task = &self.tasks[number as usize];
        task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for a lane that ends a turn: while it slept, the turn's thread would go on. The session has a
    /// task only for moments, on another processor. Who has it for longer may need this one.
    fn task_soon(&self, number: u32) -> MutexGuard<'_, Option<Bound>> {
        let since = now();
        while now().since(since) <= SOON {
            if let Some(task) = self.try_task(number) {
                return task;
            }
            std::hint::spin_loop();
        }
        self.task(number)
    }

    /// The same, if nobody has it.
    fn try_task(&self, number: u32) -> Option<MutexGuard<'_, Option<Bound>>> {
        match self.tasks[number as usize].try_lock() {
            Ok(task) => Some(task),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A dispatcher at work. Dropping it ends its threads; the table's threads stay as they were last.
pub struct Dispatcher {
    shared: Arc<Shared>,
    turns: Vec<Receiver<Turn>>,
    threads: Vec<JoinHandle<()>>,
    /// By lane.
    plugs: Vec<Sight>,
    /// Threads that are bound, and who takes them back from priorities above the dispatching threads'.
    bound: Arc<Threads>,
    mender: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Dispatcher {
    /// Starts a thread and a plug for each processor; they dispatch `turns`, by lane, from `start` on.
    pub fn start(
        plan: Arc<Plan>,
        start: Instant,
        priorities: Priorities,
        turns: Vec<Cursor>,
    ) -> Result<Dispatcher, Error> {
        let lanes = plan.lanes.len();
        let shared = Arc::new(Shared {
            start,
            priorities,
            tasks: (0..plan.tasks.len() + guests::MOST).map(|_| Mutex::new(None)).collect(),
            stop: AtomicBool::new(false),
            mail: (0..lanes).map(|_| Mail::new()).collect(),
            bells: (0..lanes).map(|_| Bell::default()).collect(),
            lost: (0..lanes).map(|_| AtomicU64::new(0)).collect(),
            present: (0..lanes).map(|_| Present::default()).collect(),
            plan,
        });
        let (bound, is_over) = (Threads::new(shared.tasks.len()), Arc::new(AtomicBool::new(false)));
        let mender = bound.start(&is_over, Box::new(move |found| instead(found, priorities)));
        let mender = Some(mender.map_err(|error| Error::other("starting a thread", error))?);
        let (turns_read, threads, plugs) = (Vec::new(), Vec::new(), Vec::new());
        let mut dispatcher = Dispatcher { shared, turns: turns_read, threads, plugs, bound, mender, is_over };
        for (lane, turns) in turns.into_iter().enumerate() {
            dispatcher.start_lane(lane, turns)?;
        }
        Ok(dispatcher)
    }

    fn start_lane(&mut self, number: usize, turns: Cursor) -> Result<(), Error> {
        let shared = &self.shared;
        let processor = shared.plan.lanes[number].processor;
        let (plug, plugging) = Plug::start(processor, shared.priorities.plug())?;
        self.threads.push(plugging);
        self.plugs.push(plug.sight());
        let (sender, receiver) = sync_channel(WAITING);
        let (ready, is_ready) = sync_channel(1);
        let lane = Lane::new((number, turns), Arc::clone(shared), plug, sender);
        let thread = std::thread::Builder::new()
            .name(format!("tt/{processor}"))
            .spawn(move || {
                let entered = enter(processor, lane.priority());
                let may_run = entered.is_ok();
                // Whoever started it waits for this.
                let _ = ready.send(entered);
                match may_run {
                    true => lane.run(),
                    false => drop(lane),
                }
            })
            .map_err(|error| Error::other("starting a dispatching thread", error))?;
        self.threads.push(thread);
        self.turns.push(receiver);
        is_ready.recv().map_err(|error| Error::other("starting a dispatching thread", error))?
    }

    /// Gives a task its thread; the one that it had is given back.
    pub fn bind(&self, task: usize, bound: Option<Bound>) -> Option<Bound> {
        // One that has ended needs nobody.
        let pinned = bound.as_ref().and_then(|bound| Thread::pin(bound.tid).ok());
        self.bound.set(task, pinned.map(|(thread, _)| thread));
        std::mem::replace(&mut self.shared.task(task as u32), bound)
    }

    /// The policy above the table from which a task's thread was taken back since the last call, in words.
    pub fn found(&self, task: usize) -> Option<String> {
        self.bound.found(task)
    }

    /// Looks at the thread of a task.
    pub fn with_task<T>(&self, task: usize, look: impl FnOnce(Option<&mut Bound>) -> T) -> T {
        look(self.shared.task(task as u32).as_mut())
    }

    /// The first slot of a lane's turn, if its owner has run in it and sleeps now. `used` tells how much
    /// processor time a thread has used.
    pub fn slept(&self, lane: usize, used: impl Fn(u32) -> Option<u64>) -> Option<u64> {
        self.shared.present[lane].slept(&self.plugs[lane], used)
    }

    /// Serves these rows on a lane from their first slot on. False, and nothing changes, if that has begun
    /// before they were taken.
    pub fn publish(&self, lane: usize, rows: Rows) -> bool {
        let mail = &self.shared.mail[lane];
        mail.put(rows);
        self.shared.bells[lane].ring();
        let until = now() + PATIENCE;
        loop {
            if let Some(is_taken) = mail.answer() {
                return is_taken;
            }
            if now() > until && mail.withdraw() {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }

    /// Hands on the turns that are over, those of each processor in order, and by lane how many are lost.
    pub fn drain(&self, mut each: impl FnMut(Turn), mut lost: impl FnMut(usize, u64)) {
        for turns in &self.turns {
            turns.try_iter().for_each(&mut each);
        }
        for (lane, count) in self.shared.lost.iter().enumerate() {
            match count.swap(0, Ordering::Relaxed) {
                0 => {}
                count => lost(lane, count),
            }
        }
    }

    /// Ends all threads. Their last turns can still be drained.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.bells.iter().for_each(Bell::ring);
        for thread in self.threads.drain(..).rev() {
            // A lane ends its plug, so it is waited for first.
            let _ = thread.join();
        }
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(mender) = self.mender.take() {
            mender.thread().unpark();
            let _ = mender.join();
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a dispatcher of {} processors", self.turns.len())
    }
}

/// What a thread of the table gets that would keep the dispatching thread from its processor: the priority of
/// those that wait. The session then gives it what it should have.
fn instead(found: &Scheduling, priorities: Priorities) -> Option<Scheduling> {
    let is_above = found.is_deadline() || found.is_fixed_priority() && found.priority > priorities.turn();
    is_above.then(|| Scheduling::from_policy(AssignedPolicy::Fifo(priorities.waiting())))
}

/// Puts the calling thread on a processor, with a priority of SCHED_FIFO.
///
/// The priority first: an ordinary thread would wait there for one with a priority that never sleeps. On
/// PREEMPT_RT it may hold a lock of the kernel meanwhile, so that no grace period of RCU ends; RCU then gives
/// it priority 1, with which not even the fair server lets it run.
pub fn enter(processor: u32, priority: u32) -> Result<(), Error> {
    use punctual_linux::scheduling::{Processors, pin, schedule};
    let what = format!("dispatching on processor {processor}");
    let here = Processors::one(processor).ok_or_else(|| Error::unsupported(&what, "it does not exist"))?;
    schedule(0, &Scheduling::from_policy(AssignedPolicy::Fifo(priority)))
        .and_then(|()| pin(0, &here))
        .map_err(|refused| Error::unsupported(&what, refused))
}

/// Whether a plug that was last seen at `seen` had the processor until just before `now`.
fn was_running(seen: Instant, now: Instant) -> bool {
    const BETWEEN_LOOKS: Duration = Duration::from_us(50);
    now.since(seen) <= BETWEEN_LOOKS
}

/// The time on the clock of plugs and records.
fn now() -> Instant {
    now_monotonic()
}
