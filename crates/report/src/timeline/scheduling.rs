//! Who ran where: steps of watched threads, turned into the events that the kernel's tracer would have
//! written for each processor. From those Perfetto draws processors, states of threads, and wake-ups.
//!
//! Only watched threads are known. Where none runs, a processor is given to the idle thread, which Perfetto
//! shows as nothing. Perfetto wants every switch to follow from the one before, so missed steps are
//! reconstructed, with as few events as possible.

use super::proto::{FtraceEvent, SchedSwitch, SchedThread};
use punctual_model::Instant;
use punctual_trace::{Step, Switch};
use std::collections::BTreeMap;
use std::collections::HashMap;

/// Events of a processor in one packet.
const PACKET_EVENTS: usize = 128;
/// Perfetto refuses traces with a higher one.
const MAX_CPUS: u32 = 1_024;
/// No TID is higher, on any Linux.
const MAX_TID: u32 = 1 << 22;

/// The states of a thread that stops running, as the kernel's tracer encodes them.
mod state {
    pub const RUNNABLE: i64 = 0;
    pub const INTERRUPTIBLE: i64 = 1;
    pub const UNINTERRUPTIBLE: i64 = 2;
    pub const STOPPED: i64 = 4;
    pub const DEAD: i64 = 16;
    /// Since Linux 4.14.
    pub const PREEMPTED: i64 = 0x100;
}

/// Name and priority of a thread in the tracer's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    /// As the kernel counts: lower is more urgent.
    pub priority: i32,
}

/// How a step fits the known state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It follows.
    Follows,
    /// A wake-up of a thread that was asleep.
    Wakes,
    /// A step before it was missed.
    Mended,
    /// Its processor or TID is out of range.
    OutOfRange,
}

/// What a thread was last seen doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Running {
        cpu: u32,
        /// A wake-up may be seen just before the sleep that it ends.
        woken: bool,
    },
    Ready,
    Asleep {
        woken: bool,
    },
}

/// A processor: who runs there (0: no watched thread), and who has just left, until the successor is known.
#[derive(Default)]
struct Cpu {
    runs: u32,
    leaving: Option<Leaving>,
    events: Vec<FtraceEvent>,
}

#[derive(Clone, Copy)]
struct Leaving {
    tid: u32,
    at: Instant,
    state: i64,
}

/// Every processor and every thread that was seen on one.
pub struct Scheduling {
    preempted: i64,
    cpus: BTreeMap<u32, Cpu>,
    places: HashMap<u32, Place>,
    /// Switches away from threads whose leaving was missed, by thread: their next step tells how they left.
    unseen: HashMap<u32, (u32, FtraceEvent)>,
}

impl Scheduling {
    /// `kernel` is the release that was observed (`6.12.43+deb13-amd64`); empty where it is not known.
    pub fn new(kernel: &str) -> Self {
        let preempted = if tells_preemption(kernel) { state::PREEMPTED } else { state::RUNNABLE };
        Self { preempted, cpus: BTreeMap::new(), places: HashMap::new(), unseen: HashMap::new() }
    }

    /// Takes a step of a thread.
    pub fn step(&mut self, switch: &Switch, label: impl Fn(u32) -> Label) -> Seen {
        let Switch { tid, at, cpu, step } = *switch;
        if cpu >= MAX_CPUS || tid > MAX_TID || tid == 0 {
            return Seen::OutOfRange;
        }
        self.settle(
            tid,
            if matches!(step, Step::Woken { .. }) { state::INTERRUPTIBLE } else { state::RUNNABLE },
        );
        match step {
            Step::In => self.switched_in(tid, at, cpu, &label),
            Step::Preempted | Step::Throttled => self.switched_out(tid, at, cpu, self.preempted, &label),
            Step::Asleep { interruptible: true } => {
                self.switched_out(tid, at, cpu, state::INTERRUPTIBLE, &label)
            }
            Step::Asleep { interruptible: false } => {
                self.switched_out(tid, at, cpu, state::UNINTERRUPTIBLE, &label)
            }
            Step::Stopped => self.switched_out(tid, at, cpu, state::STOPPED, &label),
            Step::Woken { by } => self.woken(tid, at, cpu, by, &label),
            _ => Seen::Follows,
        }
    }

    /// A thread ended; it need not have been seen to leave its processor. `free` are the threads whose
    /// numbers can be used again.
    pub fn exit(&mut self, tid: u32, at: Instant, free: &[u32], label: impl Fn(u32) -> Label) {
        let cpu = self.end(tid, at, state::DEAD, &label).unwrap_or(0);
        for &tid in free {
            let Label { name, priority } = label(tid);
            let free = SchedThread { name, tid: tid as i32, priority };
            self.cpus.entry(cpu).or_default().events.push(FtraceEvent {
                timestamp: at.ns(),
                free: Some(free),
                ..FtraceEvent::default()
            });
        }
    }

    /// The thread continues unobserved.
    pub fn last(&mut self, tid: u32, at: Instant, label: impl Fn(u32) -> Label) {
        self.end(tid, at, self.preempted, &label);
    }

    /// The events of a processor, if they fill a packet.
    pub fn full(&mut self, cpu: u32) -> Option<Vec<FtraceEvent>> {
        let events = &mut self.cpus.get_mut(&cpu)?.events;
        (events.len() >= PACKET_EVENTS).then(|| std::mem::take(events))
    }

    /// All remaining events, by processor.
    pub fn finish(mut self, label: impl Fn(u32) -> Label) -> impl Iterator<Item = (u32, Vec<FtraceEvent>)> {
        let unseen: Vec<u32> = self.unseen.keys().copied().collect();
        for tid in unseen {
            self.settle(tid, state::INTERRUPTIBLE);
        }
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            self.settle_cpu(cpu, &label);
        }
        self.cpus
            .into_iter()
            .map(|(number, cpu)| (number, cpu.events))
            .filter(|(_, events)| !events.is_empty())
    }

    /// Nothing is known of the thread from now on. Where it ran until now, if it did.
    fn end(&mut self, tid: u32, at: Instant, state: i64, label: &impl Fn(u32) -> Label) -> Option<u32> {
        self.settle(tid, state::INTERRUPTIBLE);
        let Some(Place::Running { cpu, .. }) = self.places.remove(&tid) else { return None };
        self.leave(cpu, Leaving { tid, at, state });
        self.settle_cpu(cpu, label);
        Some(cpu)
    }

    fn switched_in(&mut self, tid: u32, at: Instant, cpu: u32, label: &impl Fn(u32) -> Label) -> Seen {
        let mut seen = match self.places.insert(tid, Place::Running { cpu, woken: false }) {
            None | Some(Place::Ready | Place::Asleep { woken: true }) => Seen::Follows,
            // A SCHED_DEADLINE thread that gave its budget back is not woken; it runs again when its budget
            // is there.
            Some(Place::Asleep { woken: false }) if label(tid).priority < 0 => Seen::Follows,
            // It was woken unseen.
            Some(Place::Asleep { woken: false }) => Seen::Mended,
            // It left and came back unseen: there is nothing to show of that.
            Some(Place::Running { cpu: before, .. }) if before == cpu => return Seen::Mended,
            Some(Place::Running { cpu: before, .. }) => {
                // It left there before it came here; had both the same timestamp, Perfetto could take them
                // the other way round.
                let at = just_before(at);
                self.leave(before, Leaving { tid, at, state: state::RUNNABLE });
                self.settle_cpu(before, label);
                Seen::Mended
            }
        };
        let there = self.cpus.entry(cpu).or_default();
        if there.leaving.is_some_and(|leaving| leaving.at != at) {
            self.settle_cpu(cpu, label);
        }
        let there = self.cpus.entry(cpu).or_default();
        let displaced = std::mem::replace(&mut there.runs, tid);
        match there.leaving.take() {
            Some(leaving) => there.events.push(switch(leaving, tid, label)),
            None if displaced == 0 => there.events.push(switch(idle(at), tid, label)),
            None => {
                self.unseen_leave(cpu, displaced, at, tid, label);
                seen = Seen::Mended;
            }
        }
        seen
    }

    fn switched_out(
        &mut self,
        tid: u32,
        at: Instant,
        cpu: u32,
        state: i64,
        label: &impl Fn(u32) -> Label,
    ) -> Seen {
        let before = self.places.get(&tid).copied();
        let woken = matches!(before, Some(Place::Running { woken: true, .. }));
        let seen = match before {
            Some(Place::Running { cpu: there, .. }) if there == cpu => Seen::Follows,
            // It came to this processor unseen, or before anything was seen. How long it ran there is not
            // known: one nanosecond is shown.
            _ => {
                self.switched_in(tid, just_before(at), cpu, label);
                if before.is_some() { Seen::Mended } else { Seen::Follows }
            }
        };
        self.leave(cpu, Leaving { tid, at, state });
        let asleep = matches!(state, state::INTERRUPTIBLE | state::UNINTERRUPTIBLE | state::STOPPED);
        self.places.insert(tid, if asleep { Place::Asleep { woken } } else { Place::Ready });
        seen
    }

    fn woken(&mut self, tid: u32, at: Instant, cpu: u32, by: u32, label: &impl Fn(u32) -> Label) -> Seen {
        let seen = match self.places.get_mut(&tid) {
            // It did not sleep, or its sleep will be seen later than this.
            Some(Place::Running { woken, .. }) => {
                *woken = true;
                return Seen::Follows;
            }
            Some(Place::Ready) => return Seen::Follows,
            Some(place) => {
                *place = Place::Ready;
                Seen::Wakes
            }
            None => {
                self.places.insert(tid, Place::Ready);
                Seen::Wakes
            }
        };
        let Label { name, priority } = label(tid);
        let waking = SchedThread { name, tid: tid as i32, priority };
        let event =
            FtraceEvent { timestamp: at.ns(), tid: by, waking: Some(waking), ..FtraceEvent::default() };
        self.cpus.entry(cpu).or_default().events.push(event);
        seen
    }

    /// A thread leaves its processor; the next step there tells its successor.
    fn leave(&mut self, cpu: u32, leaving: Leaving) {
        let there = self.cpus.entry(cpu).or_default();
        there.runs = 0;
        there.leaving = Some(leaving);
    }

    /// No watched thread followed the one that left last.
    fn settle_cpu(&mut self, cpu: u32, label: &impl Fn(u32) -> Label) {
        if let Some(there) = self.cpus.get_mut(&cpu) {
            if let Some(leaving) = there.leaving.take() {
                there.events.push(switch(leaving, 0, label));
            }
        }
    }

    /// `tid` follows a thread whose leaving was missed.
    fn unseen_leave(
        &mut self,
        cpu: u32,
        displaced: u32,
        at: Instant,
        tid: u32,
        label: &impl Fn(u32) -> Label,
    ) {
        let event = switch(Leaving { tid: displaced, at, state: state::RUNNABLE }, tid, label);
        // What it is doing now is what it will be seen to have done.
        if self.places.remove(&displaced).is_some() {
            self.unseen.insert(displaced, (cpu, event));
        } else {
            self.cpus.entry(cpu).or_default().events.push(event);
        }
    }

    /// It is now known how a thread left its processor.
    fn settle(&mut self, tid: u32, state: i64) {
        if let Some((cpu, mut event)) = self.unseen.remove(&tid) {
            if let Some(switch) = &mut event.switch {
                switch.prev_state = state;
            }
            self.cpus.entry(cpu).or_default().events.push(event);
        }
    }
}

fn just_before(at: Instant) -> Instant {
    Instant::from_ns(at.ns().saturating_sub(1))
}

fn idle(at: Instant) -> Leaving {
    Leaving { tid: 0, at, state: state::RUNNABLE }
}

fn switch(from: Leaving, to: u32, label: &impl Fn(u32) -> Label) -> FtraceEvent {
    let named = |tid| if tid == 0 { Label { name: "swapper".into(), priority: 120 } } else { label(tid) };
    let (prev, next) = (named(from.tid), named(to));
    FtraceEvent {
        timestamp: from.at.ns(),
        tid: from.tid,
        switch: Some(SchedSwitch {
            prev_name: prev.name,
            prev_tid: from.tid as i32,
            prev_priority: prev.priority,
            prev_state: from.state,
            next_name: next.name,
            next_tid: to as i32,
            next_priority: next.priority,
        }),
        ..FtraceEvent::default()
    }
}

/// Whether this kernel's tracer distinguishes preempted from runnable threads as Perfetto expects.
fn tells_preemption(kernel: &str) -> bool {
    let mut numbers =
        kernel.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(4), Some(14))
}
