//! One thread, from plain events to activations: what `observe` does in the kernel, by the same rules (its
//! `thread.h`).
//!
//! Events may be missing: at every event, what must have happened before it is made up for, and a release
//! that was not seen becomes a window.

use punctual_model::wait::On;
use punctual_model::{Call, Duration, Instant, Separator, Window};
use punctual_trace::{Activation, Begin, Record, Resumed, Step, Switch, TaskRecord};
use std::ops::AddAssign;

/// A call that may separate jobs.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which, on what.
    pub separator: Separator,
    /// When it is to end, where it says so.
    pub arrival: Option<Instant>,
    /// Whether it can block for certain: then it separates jobs even if it does not sleep. Of a read it may
    /// not be known; it separates only where it waits as calls do that wait for events. Waiting for a disk is
    /// a suspension: most files that are read are regular ones.
    pub always: bool,
}

/// The results of system calls that matter here.
mod result {
    pub const EAGAIN: i64 = -11;
    pub const ETIMEDOUT: i64 = -110;
    pub const ERESTARTNOHAND: i64 = -514;
    /// All by which a call is left for a signal; without a handler it goes on where it was.
    pub const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;
}

/// A sleep until a time that had passed already ends at once. One that lasts longer was timed by another
/// clock than that of the trace.
const AT_ONCE: Duration = Duration::from_ms(1);

/// How a thread left its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Still ready to run.
    Preempted,
    /// To wait.
    Asleep {
        /// Whether a signal would wake it.
        interruptible: bool,
    },
    /// A signal or a debugger stopped it.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Running,
    Preempted,
    Asleep,
}

/// Kinds of sleep. A later one of a lesser kind than the one that the release comes from is a suspension
/// inside the next job.
const NONE: u8 = 0;
const UNINTERRUPTIBLE: u8 = 1;
const INTERRUPTIBLE: u8 = 2;

/// The call that the thread is in, and what has happened in it.
#[derive(Clone, Copy, Debug)]
struct Within {
    entry: Entry,
    at: Instant,
    cpu: Duration,
    first_stop: Option<Instant>,
    cpu_at_stop: Duration,
    released: u8,
    release: Option<Window>,
    start: Instant,
    suspended_after: Duration,
    /// Left for a signal; may be restarted.
    interrupted: bool,
}

/// A thread that is followed.
#[derive(Clone, Debug)]
pub struct Thread {
    tid: u32,
    sequence: u32,
    state: State,
    /// Processor time up to the last switch.
    cpu: Duration,
    running_since: Option<Instant>,
    /// When it certainly had no processor for the last time, but for wake-ups: it left one, was moved, or
    /// another thread got the one that it has now.
    idle_until: Instant,
    unseen: Unseen,
    /// The kernel's last account of its processor time (`sched_stat_runtime`), or where it left a processor
    /// since, and what was counted then.
    account: Option<(Instant, Duration)>,
    /// What waits for the next one.
    guess: Option<Guess>,
    /// Processor time in the last record.
    recorded_cpu: Duration,
    woken: Option<Instant>,
    /// When somebody last began to wake it.
    waking: Option<Instant>,
    stop: Instant,
    cpu_at_stop: Duration,
    sleep: u8,
    /// Whether that sleep is the call's own.
    sleep_is_within: bool,
    within: Option<Within>,
}

/// A stretch on a processor whose beginning was not seen: after the one time, and before the other.
#[derive(Clone, Copy, Debug)]
struct Guess {
    after: Instant,
    before: Instant,
}

/// Switches that must have happened and are not in the trace: virtual machines hide some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Either, where the kernel's account says how long it ran; not counted below.
    pub accounted: u64,
    /// Of a thread that gets a processor.
    pub gets: u64,
    /// Of one that leaves it.
    pub leaves: u64,
}

impl AddAssign for Unseen {
    fn add_assign(&mut self, other: Unseen) {
        self.accounted += other.accounted;
        self.gets += other.gets;
        self.leaves += other.leaves;
    }
}

/// Takes records as they come.
pub type Out<'a> = &'a mut dyn FnMut(Record);

impl Thread {
    /// Comes into view with this task; its sequence begins here.
    pub fn new(task: TaskRecord, out: Out) -> Thread {
        let (tid, at) = (task.tid, task.at);
        out(Record::Task(Box::new(TaskRecord { sequence: 0, ..task })));
        Thread {
            tid,
            sequence: 1,
            state: State::Unknown,
            cpu: Duration::ZERO,
            running_since: None,
            idle_until: at,
            unseen: Unseen::default(),
            account: None,
            guess: None,
            recorded_cpu: Duration::ZERO,
            woken: None,
            waking: None,
            stop: at,
            cpu_at_stop: Duration::ZERO,
            sleep: NONE,
            sleep_is_within: false,
            within: None,
        }
    }

    /// Its parameters changed, it executed another program, or it comes into view again.
    pub fn change(&mut self, task: TaskRecord, out: Out) {
        self.emit_stop(out);
        match task.begin {
            Begin::Seen => self.forget(),
            Begin::Exec => self.within = None,
            Begin::Policy | Begin::Priority | Begin::Affinity => {}
        }
        let sequence = self.next();
        out(Record::Task(Box::new(TaskRecord { sequence, tid: self.tid, ..task })));
    }

    /// It has another name.
    pub fn rename(&mut self, name: &str, out: Out) {
        let sequence = self.next();
        out(Record::Renamed { tid: self.tid, sequence, name: name.to_owned() });
    }

    /// Enters a call, or another part of the kernel that separates nothing.
    pub fn enter(&mut self, at: Instant, entry: Option<Entry>, out: Out) {
        self.run(at, out);
        if let Some(within) = &mut self.within {
            let same = entry.is_some_and(|entry| entry.separator == within.entry.separator);
            if within.interrupted && same {
                within.interrupted = false;
                return;
            }
            self.finish_call(at, None, out);
        }
        self.within = entry.map(|entry| Within {
            entry,
            at,
            cpu: self.cpu_now(at),
            first_stop: None,
            cpu_at_stop: Duration::ZERO,
            released: NONE,
            release: None,
            start: at,
            suspended_after: Duration::ZERO,
            interrupted: false,
        });
    }

    /// Goes on with the call that a signal interrupted, by restart_syscall(2).
    pub fn restart(&mut self, at: Instant, out: Out) {
        self.run(at, out);
        if let Some(within) = &mut self.within {
            within.interrupted = false;
        }
    }

    /// Leaves the call, with this result where it is known.
    pub fn leave(&mut self, at: Instant, result: Option<i64>, out: Out) {
        self.run(at, out);
        let Some(within) = &mut self.within else { return };
        if within.interrupted {
            return;
        }
        // Calls that wait for a handler to run always end so: for them it is the end.
        let waits_for_handler = within.entry.separator.call.wait().on == On::Handler;
        let left_for_signal = |result| {
            result::RESTARTS.contains(&result) && !(waits_for_handler && result == result::ERESTARTNOHAND)
        };
        if result.is_some_and(left_for_signal) {
            within.interrupted = true;
            return;
        }
        self.finish_call(at, result, out);
    }

    /// Somebody begins to wake it (`sched_waking`). The kernel does so once for each sleep: a thread that had
    /// been woken before has run and gone to sleep since, and none of its switches was seen.
    pub fn begin_to_wake(&mut self, at: Instant, cpu: u32, by: u32, out: Out) {
        if self.state == State::Asleep && self.waking.is_some_and(|waking| waking >= self.stop && waking < at)
        {
            self.run(at, out);
            self.unseen.leaves += 1;
            self.stop_running(at);
            self.fall_asleep(at, self.sleep);
        }
        self.waking = Some(at);
        self.wake(at, cpu, by, out);
    }

    /// Somebody wakes it.
    pub fn wake(&mut self, at: Instant, cpu: u32, by: u32, out: Out) {
        // Waking and woken are two events of most sources: the first is when it became ready.
        if self.state == State::Asleep && self.woken_since_stop().is_some() {
            return;
        }
        self.woken = Some(at);
        out(Record::Switch(Switch { tid: self.tid, at, cpu, step: Step::Woken { by } }));
    }

    /// Is moved to another processor, so it does not run.
    pub fn migrate(&mut self, at: Instant) {
        self.idle_until = self.idle_until.max(at);
    }

    /// Is about to do something on a processor that had its last switch at this time: if that brought in
    /// another thread, this one has not run there before.
    pub fn is_on_processor(&mut self, last_switch: Instant) {
        if matches!(self.state, State::Preempted | State::Asleep) {
            self.idle_until = self.idle_until.max(last_switch);
        }
    }

    /// The kernel says how long it ran since the last time that it said so, or since it got its processor. It
    /// does so at the latest where the thread leaves.
    pub fn account(&mut self, at: Instant, ran: Duration, out: Out) {
        if self.state != State::Running && at <= self.idle_until {
            return;
        }
        self.run(at, out);
        if self.guess.take().is_some() {
            self.unseen.gets -= 1;
            self.unseen.accounted += 1;
            self.settle(at, ran);
        }
        self.account = Some((at, self.cpu_now(at)));
    }

    /// Of a stretch whose beginning was not seen, what the kernel says counts.
    fn settle(&mut self, at: Instant, ran: Duration) {
        let (before, counted) = self.account.unwrap_or((self.idle_until, self.cpu));
        let counted = counted.max(self.recorded_cpu);
        self.cpu = counted + ran.min(at.since(before));
        self.running_since = Some(at);
        // The call that it has entered since then.
        if let Some(within) = self.within.as_mut().filter(|within| within.at > before) {
            within.cpu = counted.max(self.cpu.saturating_sub(at.since(within.at)));
        }
    }

    /// Whether it has a processor, as far as was seen.
    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// Switches that it made and that are missing, so far.
    pub fn unseen(&self) -> Unseen {
        self.unseen
    }

    /// Gets a processor.
    pub fn switch_in(&mut self, at: Instant, cpu: u32, out: Out) {
        match (self.state, self.running_since) {
            (State::Running, Some(since)) => self.miss_stop(at, since),
            _ => self.wake_up(at, out),
        }
        self.state = State::Running;
        self.running_since = Some(at);
        out(Record::Switch(Switch { tid: self.tid, at, cpu, step: Step::In }));
    }

    /// Leaves its processor.
    pub fn switch_out(&mut self, at: Instant, cpu: u32, leave: Leave, out: Out) {
        // Of one that comes into view here, nothing is known of the time before.
        if self.state != State::Unknown {
            self.run(at, out);
        }
        self.stop_running(at);
        let step = match leave {
            Leave::Preempted => Step::Preempted,
            Leave::Asleep { interruptible } => Step::Asleep { interruptible },
            Leave::Stopped => Step::Stopped,
        };
        out(Record::Switch(Switch { tid: self.tid, at, cpu, step }));
        match leave {
            Leave::Preempted => self.state = State::Preempted,
            Leave::Asleep { interruptible } => {
                self.fall_asleep(at, if interruptible { INTERRUPTIBLE } else { UNINTERRUPTIBLE })
            }
            Leave::Stopped => self.fall_asleep(at, UNINTERRUPTIBLE),
        }
    }

    /// The timer goes off that gives a SCHED_DEADLINE thread its budget back; it was to go off at `arrival`.
    pub fn replenish(&mut self, at: Instant, cpu: u32, arrival: Option<Instant>, out: Out) {
        if let (Some(within), State::Asleep) = (&mut self.within, self.state) {
            if within.entry.separator.call == Call::SchedYield {
                within.entry.arrival = arrival;
                self.wake(at, cpu, 0, out);
            }
        }
    }

    /// Whether it is in a call of this kind.
    pub fn is_in(&self, call: Call) -> bool {
        self.within.is_some_and(|within| within.entry.separator.call == call)
    }

    /// Some of its events are missing: a number is left out, so that the gap shows.
    pub fn lose(&mut self) {
        self.next();
        self.forget();
    }

    /// What it is doing is not known any more.
    fn forget(&mut self) {
        self.within = None;
        self.state = State::Unknown;
        (self.running_since, self.guess) = (None, None);
        (self.woken, self.waking) = (None, None);
        self.cpu = self.cpu.max(self.recorded_cpu);
        // What the kernel says next is of after that.
        self.account = self.account.map(|(at, _)| (at, self.cpu));
    }

    /// It ended.
    pub fn exit(&mut self, at: Instant, out: Out) {
        self.emit_stop(out);
        let sequence = self.next();
        out(Record::Exit { tid: self.tid, sequence, at });
    }

    /// The trace ends while it lives.
    pub fn end(&mut self, at: Instant, out: Out) {
        self.emit_stop(out);
        out(Record::Last { tid: self.tid, sequence: self.sequence, at });
    }

    fn next(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence.wrapping_sub(1)
    }

    /// A thread that does something runs, whether or not it was seen to get a processor. If it was not, all
    /// the time counts in which it may have had one, unless the kernel's account will say it.
    fn run(&mut self, at: Instant, out: Out) {
        let since = match self.state {
            State::Running => return,
            State::Unknown => at,
            State::Preempted => self.idle_until,
            State::Asleep => self.woken_since_stop().map_or(self.idle_until, |it| it.max(self.idle_until)),
        };
        let since = since.min(at);
        let is_guess = self.state != State::Unknown;
        self.unseen.gets += u64::from(is_guess);
        self.wake_up(at, out);
        self.state = State::Running;
        self.guess = is_guess.then_some(Guess { after: since, before: at });
        self.running_since = Some(if is_guess && self.account.is_some() { at } else { since });
    }

    /// What it ran counts.
    fn stop_running(&mut self, at: Instant) {
        self.count_guess();
        if let Some(since) = self.running_since.take() {
            self.cpu += at.since(since);
        }
        self.idle_until = self.idle_until.max(at);
        self.account = self.account.map(|_| (at, self.cpu));
    }

    /// The kernel's account is missing, too.
    fn count_guess(&mut self) {
        if let (Some(guess), Some(_)) = (self.guess.take(), self.account) {
            self.cpu += guess.before.since(guess.after);
        }
    }

    fn woken_since_stop(&self) -> Option<Instant> {
        self.woken.filter(|woken| *woken >= self.stop)
    }

    fn cpu_now(&self, at: Instant) -> Duration {
        self.cpu + self.running_since.map_or(Duration::ZERO, |since| at.since(since))
    }

    /// It gets a processor though it had one: a stop was not seen. In a call that can block that was most
    /// likely a sleep.
    fn miss_stop(&mut self, at: Instant, since: Instant) {
        self.count_guess();
        // Where it left, the kernel said how long it had run.
        let account = self.account.map(|(at, _)| at).filter(|account| *account >= since);
        match account {
            Some(_) => self.unseen.accounted += 1,
            None => self.unseen.leaves += 1,
        }
        match &mut self.within {
            Some(within) if within.entry.always && within.first_stop.is_none() => {
                let woken = self.woken.filter(|woken| *woken > within.at && *woken <= at);
                within.first_stop = Some(within.at);
                within.cpu_at_stop = within.cpu;
                within.released = INTERRUPTIBLE;
                within.release =
                    Some(woken.map_or_else(|| unseen(within.at, within.entry.arrival, at), Window::at));
                within.start = at;
                self.cpu = within.cpu;
            }
            // How long it was away may not be known: then all of it counts.
            _ => self.cpu += account.unwrap_or(at).since(since),
        }
        self.account = self.account.map(|_| (at, self.cpu));
    }

    fn fall_asleep(&mut self, at: Instant, kind: u8) {
        self.state = State::Asleep;
        self.sleep = kind;
        self.stop = at;
        self.sleep_is_within = false;
        self.cpu_at_stop = self.cpu;
        if let Some(within) = &mut self.within {
            let counts = within.entry.always || kind == INTERRUPTIBLE || within.first_stop.is_some();
            self.sleep_is_within = counts;
            // A call that sleeps again after it was left for a signal is being restarted.
            within.interrupted = within.interrupted && kind != INTERRUPTIBLE;
            if counts && kind >= within.released {
                within.first_stop.get_or_insert(at);
                within.cpu_at_stop = self.cpu;
            }
        }
    }

    /// First sign of life after a sleep. If no wake-up was seen, the release is a window from the stop, or
    /// the known arrival, until now.
    fn wake_up(&mut self, at: Instant, out: Out) {
        if self.state != State::Asleep {
            return;
        }
        self.state = State::Running;
        self.running_since = Some(at);
        let woken = self.woken_since_stop().filter(|woken| *woken <= at);
        let arrival = self.within.filter(|_| self.sleep_is_within).and_then(|within| within.entry.arrival);
        let window = woken.map_or_else(|| unseen(self.stop, arrival, at), Window::at);
        match &mut self.within {
            Some(within) if self.sleep_is_within && self.sleep >= within.released => {
                within.released = self.sleep;
                within.release = Some(window);
                within.start = at;
                within.suspended_after = Duration::ZERO;
            }
            Some(within) if self.sleep_is_within => {
                within.suspended_after += window.latest().since(self.stop)
            }
            _ => {
                // The call that it is in has nothing to do with that wake-up.
                self.woken = None;
                let resumed = Resumed::new(Some(window), at);
                self.emit(Separator::SUSPENSION, self.stop, self.cpu_at_stop, None, true, Some(resumed), out);
            }
        }
    }

    /// The call is over: one record, and none if it separated nothing. A call without a known result is taken
    /// for one that succeeded.
    fn finish_call(&mut self, at: Instant, result: Option<i64>, out: Out) {
        let Some(mut within) = self.within.take() else { return };
        let woken = self.woken.filter(|woken| within.entry.always && *woken > within.at && *woken <= at);
        if let (None, Some(woken)) = (within.first_stop, woken) {
            // It slept, or was about to, and the switch was not seen.
            within.first_stop = Some(within.at);
            within.cpu_at_stop = within.cpu;
            within.release = Some(Window::at(woken));
            within.start = woken;
        }
        let Within { entry, .. } = within;
        if let (Some(stop), Some(release)) = (within.first_stop, within.release) {
            // One that ended before its time was ended by a signal: the arrival has nothing to do with it.
            let at_once = release.latest().since(stop) <= AT_ONCE;
            let arrival = entry
                .arrival
                .filter(|arrival| *arrival <= release.latest() && (*arrival >= within.at || at_once));
            let resumed = Resumed {
                suspended_after: within.suspended_after,
                ..Resumed::new(Some(release), within.start)
            };
            self.emit(entry.separator, stop, within.cpu_at_stop, arrival, true, Some(resumed), out);
        } else if entry.always && result.is_none_or(|result| separates_at_once(entry.separator.call, result))
        {
            let arrival = entry.arrival.filter(|arrival| *arrival <= at);
            let resumed = Resumed::new(None, within.at);
            self.emit(entry.separator, within.at, within.cpu, arrival, false, Some(resumed), out);
        }
    }

    /// The job before its sleep has ended; what follows belongs to another task, or is not seen any more.
    fn emit_stop(&mut self, out: Out) {
        match self.within {
            _ if self.state == State::Asleep && !self.sleep_is_within => {
                self.emit(Separator::SUSPENSION, self.stop, self.cpu_at_stop, None, true, None, out)
            }
            Some(Within { entry, first_stop: Some(stop), cpu_at_stop, .. }) => {
                self.emit(entry.separator, stop, cpu_at_stop, None, true, None, out);
            }
            _ => {}
        }
    }

    #[allow(clippy::too_many_arguments)] // the fields of a record
    fn emit(
        &mut self,
        separator: Separator,
        stop: Instant,
        cpu: Duration,
        arrival: Option<Instant>,
        slept: bool,
        resumed: Option<Resumed>,
        out: Out,
    ) {
        let sequence = self.next();
        self.recorded_cpu = cpu;
        out(Record::Activation(Activation {
            tid: self.tid,
            sequence,
            separator,
            slept,
            stop,
            cpu,
            arrival,
            resumed,
        }));
    }
}

/// A release that was not seen: after the stop, or the known arrival, and before the first sign of life.
fn unseen(stop: Instant, arrival: Option<Instant>, at: Instant) -> Window {
    let earliest = arrival.filter(|arrival| *arrival > stop && *arrival <= at).unwrap_or(stop);
    Window::new(earliest.min(at), at).unwrap_or(Window::at(at))
}

/// Whether a call with this result separates jobs though it did not sleep. One that found nothing and did not
/// wait had not been asked to: a wait for descriptors without a time, a read that does not block. A futex may
/// have changed just before.
fn separates_at_once(call: Call, result: i64) -> bool {
    let wait = call.wait();
    match result {
        0 => !wait.returns_ready(),
        // Of a lock it means that the owner is ending.
        result::EAGAIN => matches!(wait.on, On::Futex(_) | On::Futexes(..)) && call != Call::FutexLockPi,
        result => result > 0 || result == result::ETIMEDOUT,
    }
}

#[cfg(test)]
mod tests;
