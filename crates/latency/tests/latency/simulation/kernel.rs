//! One processor of a kernel that obeys the rules R1 to R14 (paper, Section 3): a thread of high priority
//! that is woken now and then, threads of low priority that disable preemption and interrupts, interrupts and
//! NMIs. Notes every event that the latency parser sees, and every latency of the thread.

pub use punctual_test_support::Random;
use std::collections::VecDeque;
use std::fmt::Write as _;

/// What an interrupt does besides taking time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    /// It makes the thread of high priority ready.
    Wakes,
    /// It makes another thread ready that goes before the running one, but not before that of high priority.
    WakesOther,
}

/// An interrupt, or the NMI, that is to come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at: u64,
    /// 1 is the NMI.
    pub source: u32,
    pub execution: u64,
    pub effect: Effect,
}

/// How long each stretch of the scheduler takes, from EV1 to EV7, and the way from there to the next call.
#[derive(Clone, Copy, Debug)]
pub struct Scheduler {
    /// EV1 to EV2, to EV3, to EV4, to EV5, to EV6, to EV7.
    pub stretches: [u64; 6],
    /// Everything enabled, the call still to come.
    pub enabled: u64,
}

/// A latency of the thread of high priority.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// From when it became ready (Definition 1).
    pub from_ready: u64,
    /// From when the interrupt arrived that made it ready; as `from_ready` where a thread did, or where the
    /// processor was idle.
    pub from_arrival: u64,
    /// The case of Section 4.2.
    pub case: Case,
}

/// Where the event came that made the thread ready: the paper's cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Case {
    Ia,
    Ib,
    Ic,
    Iia,
    Iib,
    /// In the idle thread, which the paper treats as any other.
    Idle,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Running {
    Low,
    High,
    Idle,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Outside,
    Called,
    Entered,
    Masked,
}

pub struct Kernel {
    pub now: u64,
    pub events: String,
    pub latencies: Vec<Latency>,
    arrivals: VecDeque<Arrival>,
    pending: VecDeque<Arrival>,
    scheduler: Box<dyn FnMut() -> Scheduler>,
    running: Running,
    stage: Stage,
    irqs_off: bool,
    preempt_off: bool,
    serving: bool,
    need_resched: bool,
    high_is_ready: bool,
    other_is_ready: bool,
    /// When the thread of high priority became ready, and when the interrupt arrived.
    woken: Option<(u64, u64, Case)>,
    /// That thread is about to run its own code.
    runs: bool,
    depth: u32,
}

impl Kernel {
    pub fn new(arrivals: Vec<Arrival>, scheduler: Box<dyn FnMut() -> Scheduler>) -> Self {
        let mut arrivals = arrivals;
        arrivals.sort_by_key(|arrival| arrival.at);
        Self {
            now: 1_000,
            events: String::new(),
            latencies: Vec::new(),
            arrivals: arrivals.into(),
            pending: VecDeque::new(),
            scheduler,
            running: Running::Low,
            stage: Stage::Outside,
            irqs_off: false,
            preempt_off: false,
            serving: false,
            need_resched: false,
            high_is_ready: false,
            other_is_ready: false,
            woken: None,
            runs: false,
            depth: 0,
        }
    }

    fn event(&mut self, what: char, extra: u64) {
        let idle = u8::from(self.running == Running::Idle);
        let resched = u8::from(self.need_resched);
        writeln!(self.events, "{what} {} {idle} {resched} {extra}", self.now).unwrap();
    }

    /// The running thread executes for `span`; interrupts come between where they may.
    pub fn run(&mut self, span: u64) {
        let mut left = span;
        loop {
            self.serve_pending();
            let due = self.arrivals.front().map_or(u64::MAX, |arrival| arrival.at.max(self.now));
            if due - self.now >= left {
                self.now += left;
                return;
            }
            left -= due - self.now;
            self.now = due;
            let arrival = self.arrivals.pop_front().unwrap();
            match arrival.source {
                1 => self.nmi(arrival),
                _ => self.pending.push_back(arrival),
            }
            if self.running == Running::Idle && !self.irqs_off {
                self.serve_pending();
                if self.need_resched {
                    return;
                }
            }
        }
    }

    fn nmi(&mut self, arrival: Arrival) {
        self.now += arrival.execution;
        self.event('n', arrival.execution);
    }

    /// R4b: what arrived while interrupts were masked runs when they no longer are.
    fn serve_pending(&mut self) {
        while !self.irqs_off && !self.serving {
            let Some(arrival) = self.pending.pop_front() else { return };
            self.serve(arrival);
        }
    }

    fn serve(&mut self, arrival: Arrival) {
        self.serving = true;
        self.event('i', u64::from(arrival.source));
        let before = arrival.execution / 2;
        self.handle(before);
        match arrival.effect {
            Effect::Nothing => {}
            Effect::Wakes => self.wake_high(Some(arrival.at)),
            Effect::WakesOther if self.running != Running::High => {
                self.other_is_ready = true;
                self.need_resched = true;
            }
            Effect::WakesOther => {}
        }
        self.handle(arrival.execution - before);
        let calls = self.need_resched
            && !self.preempt_off
            && self.stage == Stage::Outside
            && self.running != Running::Idle;
        if calls {
            self.event('D', 0);
        }
        self.event('o', 0);
        self.serving = false;
        if calls {
            self.preempt_off = true;
            self.stage = Stage::Called;
            self.schedule();
        }
    }

    /// An interrupt's handler: only NMIs come between.
    fn handle(&mut self, span: u64) {
        let mut left = span;
        while let Some(&arrival) = self.arrivals.front().filter(|arrival| arrival.at < self.now + left) {
            self.arrivals.pop_front();
            left -= arrival.at.saturating_sub(self.now);
            self.now = self.now.max(arrival.at);
            match arrival.source {
                1 => self.nmi(arrival),
                _ => self.pending.push_back(arrival),
            }
        }
        self.now += left;
    }

    /// The thread of high priority becomes ready, if it was not.
    fn wake_high(&mut self, arrival: Option<u64>) {
        if self.high_is_ready {
            return;
        }
        self.high_is_ready = true;
        self.need_resched = true;
        let case = match (self.running, self.stage) {
            (_, Stage::Called) => Case::Ia,
            (_, Stage::Entered) => Case::Ib,
            (_, Stage::Masked) => Case::Ic,
            (Running::Idle, Stage::Outside) => Case::Idle,
            (_, Stage::Outside) if arrival.is_some() && !self.preempt_off => Case::Iia,
            (_, Stage::Outside) => Case::Iib,
        };
        let arrived = if case == Case::Idle { self.now } else { arrival.unwrap_or(self.now) };
        self.woken = Some((self.now, arrived, case));
        self.event('w', 0);
    }

    pub fn disable_interrupts(&mut self) {
        self.irqs_off = true;
        self.event('d', 0);
    }

    pub fn enable_interrupts(&mut self) {
        self.irqs_off = false;
        self.event('e', 0);
        self.serve_pending();
        self.preemption_point();
    }

    pub fn disable_preemption(&mut self) {
        self.preempt_off = true;
        self.event('D', 0);
    }

    pub fn enable_preemption(&mut self) {
        self.preempt_off = false;
        if self.runs {
            self.event('c', 0);
        }
        self.event('E', 0);
        if std::mem::take(&mut self.runs) {
            self.event('r', 0);
        }
        self.preemption_point();
    }

    /// R14: where both are enabled and the scheduler is to be called, it is.
    fn preemption_point(&mut self) {
        while self.need_resched && !self.irqs_off && !self.preempt_off && self.stage == Stage::Outside {
            let enabled = (self.scheduler)().enabled;
            self.run(enabled);
            // An interrupt may have called it meanwhile.
            if self.need_resched {
                self.call_scheduler();
            }
        }
    }

    fn call_scheduler(&mut self) {
        self.preempt_off = true;
        self.stage = Stage::Called;
        self.event('D', 0);
        self.schedule();
    }

    /// A thread makes the one of high priority ready (R10, R11).
    pub fn wake_from_thread(&mut self, before: u64, after: u64) {
        self.disable_preemption();
        self.disable_interrupts();
        self.run(before);
        self.wake_high(None);
        self.run(after);
        self.enable_interrupts();
        self.enable_preemption();
    }

    /// Not an interrupt, but entered like one: a section of the thread.
    pub fn exception(&mut self, span: u64) {
        self.serving = true;
        self.event('i', 0);
        self.handle(span);
        self.event('o', 0);
        self.serving = false;
        self.serve_pending();
    }

    /// The running thread sleeps: the processor idles for `span`, or until somebody is ready.
    pub fn sleep(&mut self, span: u64) {
        if self.running != Running::Low || self.depth > 0 {
            return;
        }
        self.preempt_off = true;
        self.stage = Stage::Called;
        self.event('D', 0);
        let scheduler = (self.scheduler)();
        self.enter(&scheduler);
        if self.high_is_ready || self.other_is_ready {
            // Somebody became ready before the switch: no need to idle.
            self.leave(&scheduler);
            return;
        }
        self.running = Running::Idle;
        self.run(scheduler.stretches[3]);
        self.irqs_off = false;
        self.event('e', 0);
        self.serve_pending();
        self.run_whole(scheduler.stretches[4]);
        self.event('x', 0);
        self.stage = Stage::Outside;
        if !self.need_resched {
            self.run(span);
        }
        // Its way out, with preemption off as always.
        if self.need_resched {
            self.run_whole(scheduler.enabled);
        }
        self.stage = Stage::Called;
        let scheduler = (self.scheduler)();
        self.enter(&scheduler);
        self.leave(&scheduler);
    }

    /// As `run`, but an idle processor does not end it early.
    fn run_whole(&mut self, span: u64) {
        let end = self.now + span;
        while self.now < end {
            let left = end - self.now;
            self.run(left);
        }
    }

    /// From EV1 to just before EV4.
    fn enter(&mut self, scheduler: &Scheduler) {
        if self.running != Running::Idle {
            self.run(scheduler.stretches[0]);
        }
        self.event('s', 0);
        self.stage = Stage::Entered;
        self.run_whole(scheduler.stretches[1]);
        self.irqs_off = true;
        self.event('d', 0);
        self.stage = Stage::Masked;
        self.run(scheduler.stretches[2]);
    }

    /// From EV4 to EV7, into the thread of highest priority that is ready; on, until there is none but that
    /// of low priority.
    fn leave(&mut self, scheduler: &Scheduler) {
        self.need_resched = false;
        let chosen = if self.high_is_ready { Running::High } else { Running::Low };
        let other = chosen == Running::Low && std::mem::take(&mut self.other_is_ready);
        self.running = chosen;
        let woken = self.woken.take().filter(|_| chosen == Running::High);
        self.run(scheduler.stretches[3]);
        self.irqs_off = false;
        self.event('e', 0);
        self.serve_pending();
        self.run(scheduler.stretches[4]);
        self.event('x', 0);
        self.run(scheduler.stretches[5]);
        self.stage = Stage::Outside;
        if let Some((ready, arrived, case)) = woken {
            let latency = Latency { from_ready: self.now - ready, from_arrival: self.now - arrived, case };
            self.latencies.push(latency);
            self.runs = true;
        }
        self.enable_preemption();
        if chosen == Running::High || other {
            // It works, and sleeps.
            self.depth += 1;
            let work = 1 + scheduler.stretches.iter().sum::<u64>() / 2;
            self.run(work);
            if chosen == Running::High {
                self.high_is_ready = false;
            }
            self.call_scheduler();
            self.depth -= 1;
        }
    }

    fn schedule(&mut self) {
        let scheduler = (self.scheduler)();
        self.enter(&scheduler);
        self.leave(&scheduler);
    }
}
