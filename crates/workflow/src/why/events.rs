//! Records of a recording as events of threads.

use punctual_causes::{
    Departure, Event, Faults, Interrupt, Step as What, Thread as ThreadInfo, Urgency, Wait, Waker,
};
use punctual_model::{Duration, Instant, Policy};
use punctual_trace::{Blocked, Record, Step, Switch, Taker, TaskRecord};
use rustc_hash::FxHashSet;
use std::collections::{HashMap, VecDeque};

/// The details of a step are recorded at most this long before it; else that step was not seen.
const AHEAD: Duration = Duration::from_ms(1);

/// Turns records into events, and knows the threads that they are about.
#[derive(Clone, Default)]
pub(super) struct Events {
    threads: HashMap<u32, Thread>,
    /// Threads that have ended are forgotten after this time; `None`: never.
    forget_after: Option<Duration>,
    /// In the order of their ends.
    ended: VecDeque<(Instant, u32)>,
}

#[derive(Clone)]
struct Thread {
    info: ThreadInfo,
    process: u32,
    /// The processor that it got last.
    cpu: Option<u32>,
    /// The details of its next step, and their time.
    ahead: Option<(Instant, Details)>,
    /// What it waited for in its last sleep.
    last: Option<Blocked>,
    ended: Option<Instant>,
}

/// What a recording has of a step besides the step itself.
#[derive(Clone, Copy, Default)]
struct Details {
    blocked: Option<Blocked>,
    faults: Faults,
}

impl Events {
    /// Forgets threads that have ended this long ago.
    pub fn forgetting_after(time: Duration) -> Events {
        Events { forget_after: Some(time), ..Events::default() }
    }

    /// The same for some threads only.
    pub fn of_threads(&self, tids: &FxHashSet<u32>) -> Events {
        let known = |tid: &u32| Some((*tid, self.threads.get(tid)?.clone()));
        Events { threads: tids.iter().filter_map(known).collect(), ..Events::default() }
    }

    /// Passes on the events of a record.
    pub fn of(&mut self, record: &Record, each: &mut impl FnMut(Event)) {
        match record {
            Record::Task(task) | Record::Known(task) | Record::Bystander(task) => self.introduce(task),
            Record::Renamed { tid, name, .. } => {
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.info.name.clone_from(name);
                }
            }
            Record::Switch(switch) => self.step(switch, each),
            Record::Exit { tid, at, .. } | Record::BystanderExit { tid, at } => self.end(*tid, *at, each),
            Record::Lost { .. } => self.threads.values_mut().for_each(|thread| thread.last = None),
            _ => {}
        }
    }

    fn introduce(&mut self, task: &TaskRecord) {
        let TaskRecord { tid, pid, .. } = *task;
        let info = Events::info(task);
        let new = Thread { info, process: pid, cpu: None, ahead: None, last: None, ended: None };
        let thread = match self.threads.remove(&tid) {
            Some(Thread { cpu, ahead, last, .. }) => Thread { cpu, ahead, last, ..new },
            None => new,
        };
        self.threads.insert(tid, thread);
    }

    /// Who a thread is.
    pub fn info(task: &TaskRecord) -> ThreadInfo {
        let TaskRecord { tid, policy, priority, .. } = *task;
        ThreadInfo { tid, name: task.name.clone(), policy: Some(policy), priority }
    }

    /// A thread ended: it left its processor for good.
    fn end(&mut self, thread: u32, at: Instant, each: &mut impl FnMut(Event)) {
        let Some(known) = self.threads.get_mut(&thread) else { return };
        let cpu = known.cpu.take();
        if let Some(time) = self.forget_after {
            known.ended = Some(at);
            self.ended.push_back((at, thread));
            self.forget(at, time);
        }
        let Some(cpu) = cpu else { return };
        let step = What::Out { thread, urgency: self.urgency(thread), why: Departure::Ended };
        each(Event { at, cpu, step });
    }

    fn forget(&mut self, now: Instant, after: Duration) {
        while let Some((at, thread)) = self.ended.front().copied().filter(|(at, _)| now.since(*at) > after) {
            self.ended.pop_front();
            // Its TID may have been used again.
            if self.threads.get(&thread).is_some_and(|thread| thread.ended == Some(at)) {
                self.threads.remove(&thread);
            }
        }
    }

    fn step(&mut self, switch: &Switch, each: &mut impl FnMut(Event)) {
        let Switch { tid: thread, at, cpu, step } = *switch;
        let details = match step {
            Step::Blocked(_) | Step::Faulted { .. } => return self.remember(switch),
            Step::Taken { by, time } => return self.taken(switch, by, time, each),
            Step::Woken { .. } | Step::Moved { .. } => Details::default(),
            _ => self.details(thread, at),
        };
        if details.faults != Faults::default() {
            each(Event { at, cpu, step: What::Faulted { thread, faults: details.faults } });
        }
        if let (Step::In, Some(known)) = (step, self.threads.get_mut(&thread)) {
            known.cpu = Some(cpu);
        }
        let urgency = self.urgency(thread);
        let step = match step {
            Step::In => What::In { thread, urgency },
            Step::Preempted => What::Out { thread, urgency, why: Departure::Preempted },
            Step::Throttled => What::Out { thread, urgency, why: Departure::Throttled },
            Step::Asleep { interruptible } => {
                let blocked = self.resumed(thread, details.blocked);
                let wait = Wait { uninterruptible: !interruptible, ..self.wait(thread, blocked) };
                What::Out { thread, urgency, why: Departure::Asleep(wait) }
            }
            Step::Stopped => What::Out { thread, urgency, why: Departure::Stopped },
            Step::Woken { by: 0 } => What::Woken { thread, by: Waker::Interrupt },
            Step::Woken { by } => What::Woken { thread, by: Waker::Thread(by) },
            Step::Moved { to } => What::Moved { thread, to },
            Step::Blocked(_) | Step::Faulted { .. } | Step::Taken { .. } => return,
        };
        each(Event { at, cpu, step });
    }

    /// Something else than a thread took the processor.
    fn taken(&self, switch: &Switch, by: Taker, time: Duration, each: &mut impl FnMut(Event)) {
        let Switch { at, cpu, .. } = *switch;
        let interrupt = match by {
            Taker::Device { number, name } => Interrupt::Device { number, name },
            Taker::Softirq(number) => Interrupt::Soft(number),
            Taker::Timer => Interrupt::Timer,
            Taker::Processor => Interrupt::Processor,
            Taker::Hypervisor => return each(Event { at, cpu, step: What::Stolen(time) }),
        };
        let began = Instant::from_ns(at.ns().saturating_sub(time.ns()));
        each(Event { at: began, cpu, step: What::Began(interrupt) });
        each(Event { at, cpu, step: What::Ended(interrupt) });
    }

    /// Keeps the details of a thread's next step.
    fn remember(&mut self, switch: &Switch) {
        let Some(thread) = self.threads.get_mut(&switch.tid) else { return };
        let (at, details) = thread.ahead.get_or_insert_with(|| (switch.at, Details::default()));
        *at = switch.at;
        match switch.step {
            Step::Blocked(blocked) => details.blocked = Some(blocked),
            Step::Faulted { minor, major } => {
                details.faults += Faults { minor: minor.into(), major: major.into() };
            }
            _ => {}
        }
    }

    /// The details of the step that a thread makes at this moment.
    fn details(&mut self, thread: u32, at: Instant) -> Details {
        let ahead = self.threads.get_mut(&thread).and_then(|thread| thread.ahead.take());
        ahead.filter(|(since, _)| at.since(*since) <= AHEAD).map(|(_, details)| details).unwrap_or_default()
    }

    /// What a thread waits for: after a stop within a wait, that of its sleep before. Its lock may have
    /// another owner by then.
    fn resumed(&mut self, thread: u32, blocked: Option<Blocked>) -> Option<Blocked> {
        let last = &mut self.threads.get_mut(&thread)?.last;
        *last = match (blocked, *last) {
            (Some(Blocked { call: "restart_syscall", .. }), Some(last)) => Some(Blocked { owner: 0, ..last }),
            _ => blocked,
        };
        *last
    }

    fn wait(&self, thread: u32, blocked: Option<Blocked>) -> Wait {
        let Some(Blocked { call, object, owner }) = blocked else { return Wait::default() };
        // What looked like the owner of a lock is one only if it is a thread that could hold it.
        let process = |tid: u32| self.threads.get(&tid).map(|thread| thread.process);
        let same_process = process(owner).is_some_and(|its| process(thread) == Some(its));
        let is_owner = owner != 0 && owner != thread && same_process;
        Wait { call: Some(call), object, owner: is_owner.then_some(owner), ..Wait::default() }
    }

    fn urgency(&self, tid: u32) -> Urgency {
        // Its description may have been lost.
        let Some(policy) = self.threads.get(&tid).and_then(|thread| thread.info.policy) else {
            return if tid == 0 { Urgency::IDLE } else { Urgency::UNKNOWN };
        };
        match policy {
            Policy::Deadline => Urgency::DEADLINE,
            Policy::Fifo | Policy::Rr => Urgency::real_time(self.threads[&tid].info.priority),
            _ => Urgency::FAIR,
        }
    }

    /// A thread as it is at this moment.
    pub fn who(&self, tid: u32) -> ThreadInfo {
        let unknown = || ThreadInfo { tid, name: format!("thread {tid}"), policy: None, priority: 0 };
        self.threads.get(&tid).map_or_else(unknown, |thread| thread.info.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_trace::Begin;

    fn task(tid: u32) -> Record {
        Record::Bystander(Box::new(TaskRecord {
            tid,
            pid: 1,
            sequence: 0,
            at: Instant::from_ns(0),
            begin: Begin::Seen,
            name: "control".to_owned(),
            command: String::new(),
            policy: Policy::Fifo,
            priority: 80,
            nice: None,
            reservation: None,
            affinity: String::new(),
        }))
    }

    /// The calls that thread 10 waits in, and the owners of their locks; before each wait it is stopped.
    fn waits(calls: &[&'static str], lost: bool) -> Vec<(Option<&'static str>, Option<u32>)> {
        let mut records = vec![task(10), task(20)];
        for (number, call) in calls.iter().enumerate() {
            let at = Instant::from_ns(1_000 * (1 + number as u64));
            let step = |step| Record::Switch(Switch { tid: 10, at, cpu: 0, step });
            records.push(step(Step::Blocked(Blocked { call, object: Some("lock"), owner: 20 })));
            records.push(step(Step::Asleep { interruptible: true }));
            records.extend([Step::Woken { by: 0 }, Step::In, Step::Stopped, Step::In].map(step));
            records.extend(lost.then_some(Record::Lost { since: at, until: at }));
        }
        let (mut events, mut seen) = (Events::default(), Vec::new());
        for record in &records {
            events.of(record, &mut |event| {
                if let What::Out { why: Departure::Asleep(wait), .. } = event.step {
                    seen.push((wait.call, wait.owner));
                }
            });
        }
        seen
    }

    #[test]
    fn a_wait_after_a_stop_is_that_of_the_call_before() {
        let (futex, resumed) = ("futex_wait", "restart_syscall");
        let first = (Some(futex), Some(20));
        assert_eq!(waits(&[futex, resumed, resumed], false)[1..], [(Some(futex), None); 2]);
        assert_eq!(waits(&[futex, resumed, "read"], false)[2].0, Some("read"));
        assert_eq!(waits(&[futex, resumed], true), [first, (Some(resumed), Some(20))]);
    }
}
