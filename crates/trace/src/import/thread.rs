//! One thread, from plain events to activations: what `observe` does in the kernel, by the same rules (its `thread.h`).
//!
//! Events may be missing: at every event, what must have happened before it is made up for, and a release that was not seen becomes
//! a window.

use crate::{Activation, Record, Resumed, Step, Switch, TaskRecord};
use punctual_model::{Call, Duration, Instant, Separator, Window};

/// A call that may separate jobs.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which, on what.
    pub separator: Separator,
    /// When it is to end, where it says so.
    pub arrival: Option<Instant>,
    /// Whether it separates jobs even if it does not sleep. Of a read it may not be known whether it could have blocked.
    pub always: bool,
}

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Running,
    Preempted,
    Asleep,
}

/// Kinds of sleep. A later one of a lesser kind than the one that the release comes from is a suspension inside the next job.
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
    woken: Option<Instant>,
    stop: Instant,
    cpu_at_stop: Duration,
    sleep: u8,
    within: Option<Within>,
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
            woken: None,
            stop: at,
            cpu_at_stop: Duration::ZERO,
            sleep: NONE,
            within: None,
        }
    }

    /// Its parameters changed.
    pub fn change(&mut self, task: TaskRecord, out: Out) {
        self.emit_stop(out);
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
        self.wake_up(at, out);
        self.run(at);
        if self.within.is_some() {
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
        });
    }

    /// Leaves the call, with this result where it is known.
    pub fn leave(&mut self, at: Instant, result: Option<i64>, out: Out) {
        self.wake_up(at, out);
        self.run(at);
        if self.within.is_some() {
            self.finish_call(at, result, out);
        }
    }

    /// Somebody wakes it.
    pub fn wake(&mut self, at: Instant, cpu: u32, by: u32, out: Out) {
        // Waking and woken are two events of most sources: the first is when it became ready.
        if self.state == State::Asleep && self.woken.is_some_and(|woken| woken >= self.stop) {
            return;
        }
        self.woken = Some(at);
        out(Record::Switch(Switch { tid: self.tid, at, cpu, step: Step::Woken { by } }));
    }

    /// Gets a processor.
    pub fn switch_in(&mut self, at: Instant, cpu: u32, out: Out) {
        self.wake_up(at, out);
        if let (State::Running, Some(since)) = (self.state, self.running_since) {
            // It ran already; when it stopped between is not known, so all of it counts.
            self.cpu += at.since(since);
        }
        self.state = State::Running;
        self.running_since = Some(at);
        out(Record::Switch(Switch { tid: self.tid, at, cpu, step: Step::In }));
    }

    /// Leaves its processor.
    pub fn switch_out(&mut self, at: Instant, cpu: u32, leave: Leave, out: Out) {
        self.wake_up(at, out);
        if let Some(since) = self.running_since.take() {
            self.cpu += at.since(since);
        }
        let step = match leave {
            Leave::Preempted => Step::Preempted,
            Leave::Asleep { interruptible } => Step::Asleep { interruptible },
        };
        out(Record::Switch(Switch { tid: self.tid, at, cpu, step }));
        match leave {
            Leave::Preempted => self.state = State::Preempted,
            Leave::Asleep { interruptible } => self.fall_asleep(at, if interruptible { INTERRUPTIBLE } else { UNINTERRUPTIBLE }),
        }
    }

    /// Gives its budget back until then: a SCHED_DEADLINE thread yields.
    pub fn expects(&mut self, arrival: Instant) {
        if let Some(within) = &mut self.within {
            within.entry.arrival = Some(arrival);
        }
    }

    /// Whether it is in a call of this kind.
    pub fn is_in(&self, call: Call) -> bool {
        self.within.is_some_and(|within| within.entry.separator.call == call)
    }

    /// Some of its events are missing: a number is left out, so that the gap shows. What it was doing is not known.
    pub fn lose(&mut self) {
        self.next();
        self.within = None;
        self.state = State::Unknown;
        self.running_since = None;
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

    /// A thread that does something runs, whether or not it was seen to get a processor.
    fn run(&mut self, at: Instant) {
        if self.state != State::Running {
            self.state = State::Running;
            self.running_since = Some(at);
        }
    }

    fn cpu_now(&self, at: Instant) -> Duration {
        self.cpu + self.running_since.map_or(Duration::ZERO, |since| at.since(since))
    }

    fn fall_asleep(&mut self, at: Instant, kind: u8) {
        self.state = State::Asleep;
        self.sleep = kind;
        self.stop = at;
        match &mut self.within {
            None => self.cpu_at_stop = self.cpu,
            Some(within) if kind >= within.released => {
                within.first_stop.get_or_insert(at);
                within.cpu_at_stop = self.cpu;
            }
            Some(_) => {}
        }
    }

    /// First sign of life after a sleep. If no wake-up was seen, the release is a window from the stop, or the known arrival, until now.
    fn wake_up(&mut self, at: Instant, out: Out) {
        if self.state != State::Asleep {
            return;
        }
        self.state = State::Running;
        self.running_since = Some(at);
        let woken = self.woken.filter(|woken| *woken >= self.stop && *woken <= at);
        let window = woken.map(Window::at).unwrap_or_else(|| {
            let arrival = self.within.and_then(|within| within.entry.arrival);
            let earliest = arrival.filter(|arrival| *arrival > self.stop && *arrival <= at).unwrap_or(self.stop);
            Window::new(earliest.min(at), at).unwrap_or(Window::at(at))
        });
        match &mut self.within {
            None => {
                let resumed = Resumed { release: Some(window), start: at, suspended_after: Duration::ZERO };
                self.emit(Separator::SUSPENSION, self.stop, self.cpu_at_stop, None, true, Some(resumed), out);
            }
            Some(within) if self.sleep >= within.released => {
                within.released = self.sleep;
                within.release = Some(window);
                within.start = at;
                within.suspended_after = Duration::ZERO;
            }
            Some(within) => within.suspended_after += window.latest().since(self.stop),
        }
    }

    /// The call is over: one record, and none if it separated nothing. A call without a known result is taken for one that succeeded.
    fn finish_call(&mut self, at: Instant, result: Option<i64>, out: Out) {
        const EAGAIN: i64 = -11;
        const ETIMEDOUT: i64 = -110;
        let Some(mut within) = self.within.take() else { return };
        let woken = self.woken.filter(|woken| *woken > within.at && *woken <= at);
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
            let arrival = entry.arrival.filter(|arrival| *arrival <= release.latest());
            let resumed = Resumed { release: Some(release), start: within.start, suspended_after: within.suspended_after };
            self.emit(entry.separator, stop, within.cpu_at_stop, arrival, true, Some(resumed), out);
        } else if entry.always && result.is_none_or(|result| result >= 0 || result == EAGAIN || result == ETIMEDOUT) {
            let arrival = entry.arrival.filter(|arrival| *arrival <= at);
            let resumed = Resumed { release: None, start: within.at, suspended_after: Duration::ZERO };
            self.emit(entry.separator, within.at, within.cpu, arrival, false, Some(resumed), out);
        }
    }

    /// The job before its sleep has ended; what follows belongs to another task, or is not seen any more.
    fn emit_stop(&mut self, out: Out) {
        match self.within {
            Some(Within { entry, first_stop: Some(stop), cpu_at_stop, .. }) => {
                self.emit(entry.separator, stop, cpu_at_stop, None, true, None, out);
            }
            None if self.state == State::Asleep => self.emit(Separator::SUSPENSION, self.stop, self.cpu_at_stop, None, true, None, out),
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
        out(Record::Activation(Activation { tid: self.tid, sequence, separator, slept, stop, cpu, arrival, resumed }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Begin;
    use proptest::prelude::*;
    use punctual_model::{Object, Policy};

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1_000)
    }

    fn task() -> TaskRecord {
        TaskRecord {
            tid: 7,
            pid: 7,
            sequence: 0,
            at: at(0),
            begin: Begin::Seen,
            name: "t".into(),
            command: String::new(),
            policy: Policy::Fifo,
            priority: 60,
            nice: None,
            reservation: None,
            affinity: String::new(),
        }
    }

    const SLEEP: Separator = Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } };

    fn sleep(arrival: u64) -> Option<Entry> {
        Some(Entry { separator: SLEEP, arrival: Some(at(arrival)), always: true })
    }

    /// What a thread's events become, without the switches.
    fn follow(events: impl FnOnce(&mut Thread, Out)) -> Vec<Activation> {
        let mut records = Vec::new();
        let mut out = |record: Record| records.push(record);
        let mut thread = Thread::new(task(), &mut out);
        events(&mut thread, &mut out);
        let activation = |record| if let Record::Activation(activation) = record { Some(activation) } else { None };
        records.into_iter().filter_map(activation).collect()
    }

    const ASLEEP: Leave = Leave::Asleep { interruptible: true };

    #[test]
    fn a_sleep_until_a_known_time() {
        let seen = follow(|thread, out| {
            thread.switch_in(at(10), 0, out);
            thread.enter(at(30), sleep(100), out);
            thread.switch_out(at(35), 0, ASLEEP, out);
            thread.wake(at(101), 1, 0, out);
            thread.switch_in(at(105), 0, out);
            thread.leave(at(107), Some(0), out);
        });
        let resumed = Resumed { release: Some(Window::at(at(101))), start: at(105), suspended_after: Duration::ZERO };
        let expected = Activation {
            tid: 7,
            sequence: 1,
            separator: SLEEP,
            slept: true,
            stop: at(35),
            cpu: Duration::from_us(25),
            arrival: Some(at(100)),
            resumed: Some(resumed),
        };
        assert_eq!(seen, [expected]);
    }

    #[test]
    fn an_unseen_wake_up_is_a_window_from_the_arrival() {
        let seen = follow(|thread, out| {
            thread.switch_in(at(10), 0, out);
            thread.enter(at(30), sleep(100), out);
            thread.switch_out(at(35), 0, ASLEEP, out);
            thread.leave(at(120), Some(0), out);
            thread.switch_out(at(150), 0, ASLEEP, out);
            thread.switch_in(at(190), 0, out);
        });
        assert_eq!(seen[0].resumed.expect("resumed").release, Window::new(at(100), at(120)));
        // A sleep outside of calls, without a wake-up: from the stop on.
        assert_eq!((seen[1].separator, seen[1].cpu), (Separator::SUSPENSION, Duration::from_us(25 + 30)));
        assert_eq!(seen[1].resumed.expect("resumed").release, Window::new(at(150), at(190)));
    }

    #[test]
    fn a_call_that_did_not_sleep_is_back_to_back_only_if_it_could_have() {
        let call = |always, result| {
            follow(|thread, out| {
                thread.switch_in(at(10), 0, out);
                thread.enter(at(30), Some(Entry { separator: SLEEP, arrival: None, always }), out);
                thread.leave(at(31), Some(result), out);
            })
        };
        assert_eq!(call(true, 0)[0].resumed.expect("resumed").release, None);
        assert_eq!((call(true, -11).len(), call(true, -4).len(), call(false, 0).len()), (1, 0, 0));
    }

    #[test]
    fn a_lock_of_the_kernel_after_the_release_is_a_suspension() {
        let seen = follow(|thread, out| {
            thread.switch_in(at(10), 0, out);
            thread.enter(at(30), sleep(100), out);
            thread.switch_out(at(35), 0, ASLEEP, out);
            thread.wake(at(100), 0, 0, out);
            thread.switch_in(at(102), 0, out);
            thread.switch_out(at(103), 0, Leave::Asleep { interruptible: false }, out);
            thread.wake(at(110), 0, 9, out);
            thread.switch_in(at(111), 0, out);
            thread.leave(at(112), Some(0), out);
        });
        let resumed = seen[0].resumed.expect("resumed");
        assert_eq!((resumed.release, resumed.start, resumed.suspended_after), (Some(Window::at(at(100))), at(102), Duration::from_us(7)));
    }

    proptest! {
        /// Whatever comes, in whatever order, with whatever missing.
        #[test]
        fn records_are_consistent(events in prop::collection::vec((0_u8..9, 0_u64..50), 0..200)) {
            let mut now = 1;
            let seen = follow(|thread, out| {
                for (kind, step) in events {
                    now += step;
                    match kind {
                        0 => thread.switch_in(at(now), 0, out),
                        1 => thread.switch_out(at(now), 0, Leave::Preempted, out),
                        2 => thread.switch_out(at(now), 0, ASLEEP, out),
                        3 => thread.switch_out(at(now), 0, Leave::Asleep { interruptible: false }, out),
                        4 => thread.wake(at(now), 0, 0, out),
                        5 => thread.enter(at(now), sleep(now + 20), out),
                        6 => thread.enter(at(now), None, out),
                        7 => thread.leave(at(now), Some(0), out),
                        _ => thread.change(TaskRecord { at: at(now), begin: Begin::Priority, ..task() }, out),
                    }
                }
                thread.end(at(now), out);
            });
            for pair in seen.windows(2) {
                prop_assert!(pair[0].sequence < pair[1].sequence && pair[0].cpu <= pair[1].cpu && pair[0].stop <= pair[1].stop);
            }
            for activation in &seen {
                if let Some(resumed) = activation.resumed {
                    if let Some(release) = resumed.release {
                        prop_assert!(activation.stop <= release.earliest() && release.latest() <= resumed.start);
                    }
                    prop_assert!(activation.stop <= resumed.start && activation.slept == resumed.release.is_some());
                }
            }
        }
    }
}
