//! One processor's dispatching thread.

use super::plug::Plug;
use super::{AHEAD, LEAST_LOAN, Shared, was_running};
use crate::plan::{Decision, Job, OnOverrun};
use punctual_model::{Duration, Instant};
use punctual_trace::dispatch::Turn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

/// The thread of a processor. It allocates nothing once it runs.
pub struct Lane {
    number: usize,
    processor: u32,
    shared: Arc<Shared>,
    plug: Plug,
    turns: SyncSender<Turn>,
    /// The turn that is under way.
    current: Option<Current>,
}

struct Current {
    decision: Decision,
    given: Given,
    error: Duration,
    /// Whether everything but the table may run.
    is_lent: bool,
}

/// Who got a turn.
#[derive(Clone, Copy)]
struct Given {
    /// The thread; 0: none.
    tid: u32,
    is_skipped: bool,
}

impl Lane {
    pub fn new(number: usize, shared: Arc<Shared>, plug: Plug, turns: SyncSender<Turn>) -> Lane {
        let processor = shared.plan.lanes[number].processor;
        Lane { number, processor, shared, plug, turns, current: None }
    }

    pub fn priority(&self) -> u32 {
        self.shared.priorities.dispatcher()
    }

    /// Dispatches until it is stopped.
    pub fn run(mut self) {
        let clock = self.shared.plan.clock;
        let mut number = self.shared.plan.next(self.number, clock.now(), self.shared.start);
        loop {
            let decision = self.shared.plan.decision(self.number, number, self.shared.start);
            if !self.take_back(&decision) {
                break;
            }
            let Some(now) = clock.sleep_until(decision.at, &self.shared.stop) else { break };
            number += 1;
            match now < decision.until {
                true => self.hand_over(decision),
                false => self.miss(decision, now),
            }
        }
        self.end_turn();
    }

    /// Takes a processor that is lent back before the next turn begins. False if it was stopped.
    fn take_back(&mut self, next: &Decision) -> bool {
        let is_lent = self.current.as_ref().is_some_and(|current| current.is_lent);
        if !is_lent {
            return true;
        }
        let clock = self.shared.plan.clock;
        if clock.sleep_until(next.at - AHEAD, &self.shared.stop).is_none() {
            return false;
        }
        self.plug.keep();
        if let Some(job) = next.job {
            let mut task = self.shared.task(job.task);
            let thawed =
                task.as_mut().filter(|bound| bound.waits_on(self.processor)).map(|bound| bound.thaw());
            if let Some(Err(_)) = thawed {
                *task = None;
            }
        }
        true
    }

    /// Ends the turn before and begins this one.
    fn hand_over(&mut self, decision: Decision) {
        let suspect = self.may_have_overrun();
        // Who overran may lose the very turn that begins; otherwise it can wait.
        let is_urgent = suspect.is_some_and(|job| self.on_overrun(job) == OnOverrun::Skip);
        let early = suspect.filter(|_| is_urgent).map(|job| self.has_overrun(job));
        let is_skipped = decision.job.is_some_and(|job| self.skips(job));
        let goes_on = !is_skipped && self.goes_on(decision.job);
        let mut over = self.end_turn_of(goes_on);
        let tid = match (decision.job, goes_on) {
            _ if is_skipped => 0,
            (Some(_), true) => self.current.as_ref().map_or(0, |current| current.given.tid),
            (Some(job), false) => self.begin_turn(job),
            (None, _) => 0,
        };
        // Before the turn's owner can run, so that nothing below it does when it sleeps.
        let is_lent = decision.job.is_none() && self.lend(&decision);
        if !is_lent {
            self.plug.keep();
        }
        let error = self.shared.plan.clock.now().since(decision.at);
        if let Some(turn) = &mut over {
            let late = || suspect.is_some_and(|job| self.has_overrun(job));
            turn.is_overrun = early.unwrap_or_else(late);
        }
        self.current = Some(Current { decision, given: Given { tid, is_skipped }, error, is_lent });
        if let Some(turn) = over {
            self.send(turn);
        }
    }

    /// Whether the turn that begins is left out.
    fn skips(&self, job: Job) -> bool {
        self.shared.task(job.task).as_mut().is_some_and(|bound| bound.skips(job))
    }

    /// The job of the current turn, if it has no slots left and its thread had the processor until now.
    fn may_have_overrun(&self) -> Option<Job> {
        let current = self.current.as_ref().filter(|current| current.given.tid != 0)?;
        let job = current.decision.job.filter(|job| job.is_last)?;
        (!was_running(self.plug.seen(), super::now())).then_some(job)
    }

    fn on_overrun(&self, job: Job) -> OnOverrun {
        self.shared.plan.tasks[job.task as usize].on_overrun
    }

    /// Whether the thread of the current turn is still ready; notes what follows from that.
    fn has_overrun(&self, job: Job) -> bool {
        let tid = self.current.as_ref().map_or(0, |current| current.given.tid);
        let mut task = self.shared.task(job.task);
        let Some(bound) = task.as_mut().filter(|bound| bound.tid == tid) else { return false };
        let is_ready = bound.is_ready().unwrap_or(false);
        if is_ready && self.on_overrun(job) == OnOverrun::Skip {
            bound.skip_next();
        }
        is_ready
    }

    /// The turn is over already: nobody gets it, and who had the processor keeps it no longer.
    fn miss(&mut self, decision: Decision, now: Instant) {
        self.end_turn();
        self.plug.keep();
        let error = now.since(decision.at);
        self.send(Turn { is_missed: true, error, at: super::now(), ..self.turn(&decision) });
    }

    /// Whether the owner of the current turn owns the next one, too.
    fn goes_on(&self, next: Option<Job>) -> bool {
        let Some(current) = self.current.as_ref().filter(|current| current.given.tid != 0) else {
            return false;
        };
        let (Some(job), Some(next)) = (current.decision.job, next) else { return false };
        job.task == next.task
    }

    /// Ends the current turn and reports it, if there is one.
    fn end_turn(&mut self) {
        if let Some(turn) = self.end_turn_of(false) {
            self.send(turn);
        }
        self.current = None;
    }

    fn end_turn_of(&mut self, goes_on: bool) -> Option<Turn> {
        let Current { decision, given, error, .. } = self.current.as_ref()?;
        let Given { tid, is_skipped } = *given;
        let mut turn = Turn { tid, is_skipped, error: *error, at: super::now(), ..self.turn(decision) };
        if let Some(job) = decision.job.filter(|_| tid != 0) {
            let mut task = self.shared.task(job.task);
            let bound = task.as_mut().filter(|bound| bound.tid == tid);
            let used = bound.map(|bound| match goes_on {
                true => bound.turn_over(),
                false => bound.take(self.number),
            });
            match used {
                Some(Ok(used)) => (turn.ran, turn.outside) = (used.ran, used.outside),
                Some(Err(_)) => *task = None,
                None => {}
            }
        }
        Some(turn)
    }

    /// Gives the processor to a task's thread. Returns its number; 0 if there is none.
    fn begin_turn(&mut self, job: Job) -> u32 {
        let mut task = self.shared.task(job.task);
        let Some(bound) = task.as_mut() else { return 0 };
        match bound.give(self.number, self.processor) {
            Ok(()) => bound.tid,
            Err(_) => {
                *task = None;
                0
            }
        }
    }

    /// Leaves the processor to everything but the table, where that is possible and worth it.
    fn lend(&mut self, decision: &Decision) -> bool {
        let is_lent = decision.until.since(decision.at) >= LEAST_LOAN && self.freeze_all();
        if is_lent {
            self.plug.lend();
        }
        is_lent
    }

    /// Whether every thread of the table on this processor is frozen now.
    fn freeze_all(&mut self) -> bool {
        // The plug has the processor while this waits for a lock of the kernel's.
        self.plug.keep();
        (0..self.shared.tasks.len() as u32).all(|number| {
            let mut task = self.shared.task(number);
            match task.as_mut().filter(|bound| bound.waits_on(self.processor)).map(|bound| bound.freeze()) {
                Some(Ok(is_frozen)) => is_frozen,
                Some(Err(_)) => {
                    *task = None;
                    true
                }
                None => true,
            }
        })
    }

    fn turn(&self, decision: &Decision) -> Turn {
        let Decision { slot, slots, job, .. } = *decision;
        let (task, job) = (job.map(|job| job.task), job.map_or(0, |job| job.number));
        Turn { cpu: self.processor, slot, slots, task, job, ..Turn::default() }
    }

    fn send(&self, turn: Turn) {
        if self.turns.try_send(turn).is_err() {
            self.shared.lost[self.number].fetch_add(1, Ordering::Relaxed);
        }
    }
}
