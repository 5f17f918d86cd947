//! The sched_ext dispatcher: a scheduler in the kernel carries the table out, on processors that are an
//! isolated partition. docs/design/time-triggered.md has the reasons.
//!
//! A thread of SCHED_FIFO on each processor wakes up where a turn begins, and sleeps again. That is all it
//! does: what runs next is decided in the kernel.

mod interface;
mod lane;
mod load;
mod lowered;
mod partition;
mod support;
mod timer;

pub use lowered::Lowered;
pub use partition::{Partition, shared_cgroup};
pub use support::{LONGEST_WAIT, longest_wait, support, works};

use crate::clock::Readable as _;
use crate::clock::now_monotonic;
use crate::error::Error;
use crate::mender::Threads;
use crate::undo::{SCHED_EXT, without_priority};
use crate::user::{Priorities, enter};
use interface::{NONE, Record};
use lane::{Awaited, Lane};
use load::{Flags, Loaded, handover, mark};
use punctual_linux::proc::processor_time;
use punctual_linux::scheduling::{self, Scheduling, State};
use punctual_linux::thread::Thread;
use punctual_model::{Duration, Instant};
use punctual_tables::Plan;
use punctual_tables::rows::{COMING, Cursor, Rows, Stretch};
use punctual_trace::dispatch::Turn;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use timer::{Seen, Timer};

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, non_camel_case_types, dead_code)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/tt.skel.rs"));
}

/// A dispatcher at work. Dropping it takes the scheduler out of the kernel; the partition stays.
pub struct Dispatcher {
    plan: Arc<Plan>,
    loaded: Loaded,
    pub partition: Partition,
    start: Instant,
    stop: Arc<AtomicBool>,
    ticks: Vec<JoinHandle<()>>,
    /// By lane, its timer, if it has one.
    timed: Vec<Option<Timed>>,
    /// By task or guest, its thread; and who gives them their policy again.
    bound: Arc<Threads>,
    mender: Option<JoinHandle<()>>,
    lanes: Vec<Lane>,
    lost: Vec<u64>,
}

/// How threads of the table are scheduled.
pub fn scheduling() -> Scheduling {
    without_priority(SCHED_EXT)
}

impl Dispatcher {
    /// Loads and enables the scheduler and starts a tick on each processor; nothing is dispatched yet.
    pub fn prepare(
        plan: Arc<Plan>,
        partition: Partition,
        priorities: Priorities,
    ) -> Result<Dispatcher, Error> {
        let flags = Flags::read().map_err(|why| Error::unsupported("sched_ext", why))?;
        let mut loaded = Loaded::new(&plan, &flags)?;
        loaded.attach()?;
        let dispatcher = Dispatcher {
            bound: Threads::new(load::tasks(&plan)),
            mender: None,
            lanes: loaded.lanes(&plan),
            lost: vec![0; plan.lanes.len()],
            start: Instant::from_ns(0),
            stop: Arc::new(AtomicBool::new(false)),
            ticks: Vec::new(),
            timed: Vec::new(),
            plan,
            loaded,
            partition,
        };
        dispatcher.check_processors(priorities)?;
        Ok(dispatcher)
    }

    /// Fails before anything is bound if the ticks could not be where they have to be.
    fn check_processors(&self, priorities: Priorities) -> Result<(), Error> {
        let (stop, far) = (Arc::new(AtomicBool::new(true)), Instant::from_ns(u64::MAX / 2));
        for lane in 0..self.plan.lanes.len() {
            let _ = self.start_tick(lane, far, priorities, &stop, None)?.join();
        }
        Ok(())
    }

    /// Has the table carried out from `start` on.
    pub fn begin(&mut self, start: Instant, priorities: Priorities) -> Result<(), Error> {
        self.start = start;
        let instead = |found: &Scheduling| (found.policy != SCHED_EXT).then(scheduling);
        let mender = self.bound.start(&self.stop, Box::new(instead));
        self.mender = Some(mender.map_err(|error| Error::other("starting a thread", error))?);
        let mut seen = self.loaded.trace_timers(self.plan.lanes.len()).into_iter();
        for lane in 0..self.plan.lanes.len() {
            let timed = seen.next().and_then(|seen| Timed::new(&self.plan, lane, seen));
            let tick = self.start_tick(lane, start, priorities, &self.stop, timed.clone())?;
            self.ticks.push(tick);
            self.timed.push(timed);
        }
        self.loaded.begin(&self.plan, &mut self.lanes, start)
    }

    /// Lets the tick threads take over from timers that are late.
    pub fn watch(&self) {
        let (now, start) = (now_monotonic(), due(&self.plan, self.start));
        for (timed, tick) in self.timed.iter().zip(&self.ticks) {
            let Some(timed) = timed else { continue };
            if timed.state.load(Ordering::SeqCst) == AT_WORK && !timed.timer.is_well(now, start) {
                timed.state.store(LOST, Ordering::SeqCst);
                tick.thread().unpark();
            }
        }
    }

    fn start_tick(
        &self,
        lane: usize,
        start: Instant,
        priorities: Priorities,
        stop: &Arc<AtomicBool>,
        timed: Option<Timed>,
    ) -> Result<JoinHandle<()>, Error> {
        let processor = self.plan.lanes[lane].processor;
        let (plan, stop) = (Arc::clone(&self.plan), Arc::clone(stop));
        let awaited = Arc::clone(&self.lanes[lane].tick);
        let threads = self.partition.path.join("cgroup.threads");
        let (ready, is_ready) = sync_channel(1);
        let tick = std::thread::Builder::new()
            .name(format!("tt/{processor}"))
            .spawn(move || {
                let own = rustix::thread::gettid().as_raw_nonzero().to_string();
                let entered = fs::write(threads, own)
                    .map_err(|error| Error::unsupported("entering the table's partition", error))
                    .and_then(|()| enter(processor, priorities.dispatcher()));
                let may_run = entered.is_ok();
                // Whoever started it waits for this.
                let _ = ready.send(entered);
                if may_run {
                    Tick { awaited, plan, start, stop, timed }.run();
                }
            })
            .map_err(|error| Error::other("starting a thread", error))?;
        is_ready.recv().map_err(|error| Error::other("starting a thread", error))??;
        Ok(tick)
    }

    /// Gives a task its thread. Note how to undo that before.
    ///
    /// # Errors
    /// What the kernel refused, in words.
    pub fn bind(&mut self, task: usize, thread: &Thread, process: u32) -> Result<(), String> {
        let tid = thread.number;
        // A pin of its own, for who gives it its policy again as long as it is bound.
        let (pinned, _) = Thread::pin(tid).map_err(|error| error.to_string())?;
        if pinned.identity != thread.identity {
            return Err("it has ended".into());
        }
        let used = processor_time(process, tid).map_err(|error| error.to_string())?;
        self.loaded.write_task(&self.plan, task, tid, used.ns()).map_err(|error| error.to_string())?;
        self.loaded.know(tid, task).map_err(|error| error.to_string())?;
        let given = || {
            self.partition.take(tid)?;
            let place = &self.partition.processors;
            scheduling::pin(tid, place).map_err(|refused| refused.to_string())?;
            scheduling::schedule(tid, &scheduling()).map_err(|refused| refused.to_string())
        };
        let given = given();
        self.bound.set(task, Some(pinned));
        if given.is_err() {
            self.unbind(task);
        }
        given
    }

    /// Takes a task's thread from it.
    pub fn unbind(&mut self, task: usize) {
        if let Some(tid) = self.bound.set(task, None) {
            self.loaded.forget(tid);
            // The map is there as long as the scheduler.
            let _ = self.loaded.write_task(&self.plan, task, 0, 0);
        }
    }

    /// Takes a guest's thread from it, and puts it where its process is.
    pub fn let_go(&mut self, task: usize) {
        let Some(tid) = self.bound.get(task) else { return };
        self.unbind(task);
        // It may have been cut off in the midst of starting another, for whose end this waits.
        self.loaded.let_leave(Some(task));
        // One that has ended is nowhere.
        let _ = self.partition.release(tid);
        self.loaded.let_leave(None);
    }

    /// Serves these rows on a lane from their first slot on. False, and nothing changes, if it is too late
    /// for that, or if there is no room for them.
    pub fn publish(&mut self, number: usize, rows: Rows) -> bool {
        let Dispatcher { plan, loaded, lanes, start, .. } = self;
        let lane = &mut lanes[number];
        let (published, begin) = (lane.published(), plan.instant(rows.from, *start));
        let is_early = |by: Duration| plan.clock.now() + by < begin;
        if !is_early(AHEAD) || loaded.under_way(number, published) >= COMING as u64 {
            return false;
        }
        let Some(placed) = lane.place(&rows) else { return false };
        if loaded.offer(number, published, &placed).is_err() || !is_early(ENOUGH) {
            return false;
        }
        if loaded.announce(number, published + 1).is_err() {
            return false;
        }
        lane.keep(rows, placed);
        true
    }

    /// The first slot of the turn in which a task's thread slept last, if it has.
    pub fn slept(&self, task: usize) -> Option<u64> {
        self.loaded.slept(task)
    }

    /// Gives a thread again what it should have. Returns what was found, in words.
    pub fn mend(&self, task: usize) -> Option<String> {
        let tid = self.bound.get(task)?;
        let found = State::read(tid).ok()?;
        let mut changed: Vec<String> = self.bound.found(task).into_iter().collect();
        if found.processors != self.partition.processors {
            changed.push(format!("the processors to {:?}", found.processors));
            let _ = self.partition.take(tid);
            // One that is gone meanwhile is noticed soon.
            let _ = scheduling::pin(tid, &self.partition.processors);
        }
        (!changed.is_empty()).then(|| changed.join(" and "))
    }

    /// Puts what threads of the table have started where their processes are, as SCHED_OTHER.
    pub fn release_children(&self, before: &State) {
        let own = std::process::id();
        for tid in self.partition.threads() {
            let is_own = || fs::metadata(format!("/proc/{own}/task/{tid}")).is_ok();
            if self.bound.contains(tid) || is_own() {
                continue;
            }
            let is_ext = scheduling::scheduling(tid).is_ok_and(|scheduling| scheduling.policy == SCHED_EXT);
            // The kernel does not stand it (7.2) that a thread's policy is changed while it is being started.
            if (is_ext && !self.loaded.has_started(tid)) || self.partition.release(tid).is_err() {
                continue;
            }
            if is_ext {
                // One that ends meanwhile needs nothing.
                let _ = scheduling::schedule(tid, &Scheduling::ordinary());
            }
            let _ = scheduling::pin(tid, &before.processors);
        }
    }

    /// Hands on the turns that are over, those of each processor in order, and by lane how many are lost.
    pub fn drain(
        &mut self,
        mut each: impl FnMut(Turn),
        mut lost: impl FnMut(usize, u64),
    ) -> Result<(), Error> {
        let Dispatcher { plan, loaded, lanes, start, .. } = self;
        loaded.drain(|record| {
            let number = record.lane as usize;
            let Some(lane) = lanes.get_mut(number) else { return };
            let at = Instant::from_ns(record.at);
            let missed = lane.missed(record.previous, record.slot);
            missed.iter().for_each(|missed| each(missed_turn(plan, number, missed, *start, at)));
            lane.unread.skip_to(record.slot + u64::from(record.slots));
            each(turn(plan, &record));
        })?;
        for lane in 0..self.lost.len() {
            let now = self.loaded.lost(lane);
            match now - std::mem::replace(&mut self.lost[lane], now) {
                0 => {}
                count => lost(lane, count),
            }
        }
        Ok(())
    }

    /// By lane, the turns after the last one that was read.
    pub fn unread(&self) -> Vec<Cursor> {
        self.lanes.iter().map(|lane| lane.unread.clone()).collect()
    }

    /// Why the kernel has ended the scheduler, if it has.
    pub fn ejected(&self) -> Option<String> {
        self.loaded.ejected()
    }

    /// Ends the scheduler and the ticks. The last turns can still be drained.
    pub fn stop(&mut self) {
        // Until then the mender is needed: the kernel waits for threads that one of SCHED_OTHER would keep
        // from running.
        self.loaded.detach();
        self.stop.store(true, Ordering::SeqCst);
        self.ticks.iter().for_each(|tick| tick.thread().unpark());
        self.lanes.iter().for_each(|lane| lane.tick.bell.ring());
        for tick in self.ticks.drain(..) {
            let _ = tick.join();
        }
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
        write!(f, "a scheduler of {} processors", self.plan.lanes.len())
    }
}

/// A lane's timer, as its tick and those who watch it share it.
#[derive(Clone)]
struct Timed {
    timer: Arc<Timer>,
    state: Arc<AtomicU32>,
}

/// Not yet started; at work; to be started again.
const WAITING: u32 = 0;
const AT_WORK: u32 = 1;
const LOST: u32 = 2;

/// So long before the table begins, its tick no longer tries to start a timer.
const SETTLED: Duration = Duration::from_ms(10);

impl Timed {
    fn new(plan: &Plan, lane: usize, seen: Seen) -> Option<Timed> {
        let processor = plan.lanes[lane].processor;
        let period = timer::period(plan.slot).filter(|_| timer::suits(processor))?;
        let timer = Timer::new(processor, period, mark(lane), seen).ok()?;
        Some(Timed { timer: Arc::new(timer), state: Arc::new(AtomicU32::new(WAITING)) })
    }
}

/// A thread on a processor of the table. It starts the processor's timer, and then sleeps. Where there is
/// none, it wakes up where turns begin: the kernel takes the running thread off for that, and then decides
/// anew.
struct Tick {
    awaited: Arc<Awaited>,
    plan: Arc<Plan>,
    start: Instant,
    stop: Arc<AtomicBool>,
    timed: Option<Timed>,
}

impl Tick {
    fn run(self) {
        let mut left = STARTS;
        while !self.stop.load(Ordering::SeqCst) {
            let is_timed = left > 0 && self.start_timer();
            left = left.saturating_sub(1);
            match &self.timed {
                Some(timed) if is_timed => {
                    while timed.state.load(Ordering::SeqCst) == AT_WORK && !self.stop.load(Ordering::SeqCst) {
                        std::thread::park();
                    }
                }
                _ => return self.wake_up(),
            }
        }
    }

    /// Starts the timer. False if there is none, or if it does not come when slots begin.
    fn start_timer(&self) -> bool {
        let Some(Timed { timer, state }) = &self.timed else { return false };
        let Tick { plan, start, stop, .. } = self;
        let is_early = plan.clock.now() < *start;
        let is_over = || {
            let is_due = is_early && plan.clock.now() + SETTLED > *start;
            is_due || stop.load(Ordering::SeqCst)
        };
        let is_started = timer.start(due(plan, *start), is_over).unwrap_or(false);
        if is_started {
            state.store(AT_WORK, Ordering::SeqCst);
        }
        is_started
    }

    /// Wakes up where turns are handed over.
    fn wake_up(&self) {
        let Tick { awaited, plan, start, stop, .. } = self;
        let handover = handover(plan);
        loop {
            // Rung: there may be other turns, or it is the end.
            let rings = awaited.bell.count();
            if stop.load(Ordering::SeqCst) {
                return;
            }
            let next = {
                let (mut turns, now) = (awaited.turns(), plan.clock.now() + handover);
                turns.skip_to(plan.slot_at(now, *start).unwrap_or(0));
                while plan.instant(turns.slot(), *start) <= now {
                    turns.advance();
                }
                plan.instant(turns.slot(), *start) - handover
            };
            awaited.bell.sleep_until(plan.clock, next, rings);
        }
    }
}

/// How long before their first slot rows have to come, and how long before it they have to be written.
const AHEAD: Duration = Duration::from_ms(1);
const ENOUGH: Duration = Duration::from_us(100);

/// How often a timer is started before its tick does its work for good.
const STARTS: u32 = 5;

/// When the first turn of a table is handed over that begins at `start`, on CLOCK_MONOTONIC.
fn due(plan: &Plan, start: Instant) -> Instant {
    monotonic(plan, start) - handover(plan)
}

/// An instant of the table's clock on CLOCK_MONOTONIC, as the two stand now.
fn monotonic(plan: &Plan, at: Instant) -> Instant {
    let (now, there) = (now_monotonic().ns(), plan.clock.now().ns());
    Instant::from_ns(at.ns().wrapping_sub(there).wrapping_add(now))
}

/// What is recorded of a turn that nobody carried out, as was noticed at `at` (CLOCK_MONOTONIC).
pub fn missed_turn(plan: &Plan, lane: usize, missed: &Stretch, start: Instant, at: Instant) -> Turn {
    let begin = plan.instant(missed.from, start);
    Turn {
        cpu: plan.lanes[lane].processor,
        slot: missed.from,
        slots: u32::try_from(missed.to - missed.from).unwrap_or(u32::MAX),
        task: missed.job.map(|job| job.task),
        job: missed.job.map_or(0, |job| job.number),
        error: plan.instant(missed.to, start).since(begin),
        is_missed: true,
        at,
        ..Turn::default()
    }
}

fn turn(plan: &Plan, record: &Record) -> Turn {
    Turn {
        cpu: plan.lanes[record.lane as usize].processor,
        slot: record.slot,
        slots: record.slots,
        task: (record.task != NONE).then_some(record.task),
        job: record.job,
        tid: record.tid,
        error: Duration::from_ns(record.error),
        ran: Duration::from_ns(record.ran),
        outside: Duration::from_ns(record.outside),
        is_overrun: record.is_overrun != 0,
        is_skipped: record.is_skipped != 0,
        is_missed: false,
        at: Instant::from_ns(record.at),
    }
}
