//! One processor's dispatching thread.
#![allow(clippy::vec_box, reason = "boxes are handed over, not taken apart, where nothing may be freed")]

use super::plug::Plug;
use super::{AHEAD, EARLY, LEAST_LOAN, Shared, was_running};
use crate::clock::Readable as _;
use punctual_model::{Duration, Instant};
use punctual_tables::rows::{COMING, Cursor, Rows};
use punctual_tables::{Decision, Job, OnOverrun};
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
    /// The turns that come.
    cursor: Cursor,
    /// Rows that are over, until somebody frees them.
    over: Vec<Box<Rows>>,
    /// The turn that is under way.
    current: Option<Current>,
    /// Whether the job of the current turn is not done, as of just before the next turn begins.
    overran: bool,
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
    /// Of the lane with this number, with the turns that come.
    pub fn new(
        (number, cursor): (usize, Cursor),
        shared: Arc<Shared>,
        plug: Plug,
        turns: SyncSender<Turn>,
    ) -> Lane {
        let processor = shared.plan.lanes[number].processor;
        let over = Vec::with_capacity(2 * COMING);
        Lane { number, processor, shared, plug, turns, cursor, over, current: None, overran: false }
    }

    pub fn priority(&self) -> u32 {
        self.shared.priorities.dispatcher()
    }

    /// Dispatches until it is stopped.
    pub fn run(mut self) {
        let Shared { plan, start, .. } = &*self.shared;
        let first = plan.slot_at(plan.clock.now(), *start).map_or(0, |slot| slot + 1);
        self.cursor.skip_to(first);
        loop {
            let rings = self.shared.bells[self.number].count();
            if self.shared.stop.load(Ordering::SeqCst) {
                break;
            }
            self.look_for_rows();
            let decision = self.decide();
            // Woken before: there may be other rows, or it is the end.
            let Some(now) = self.wait(&decision, rings) else { continue };
            let over = self.cursor.advance();
            self.keep(over);
            match now < decision.until {
                true => self.hand_over(decision),
                false => self.miss(decision, now),
            }
        }
        self.cut();
        self.end_turn();
    }

    /// The turn that is under way ends here, with the slots that have begun.
    fn cut(&mut self) {
        let Shared { plan, start, .. } = &*self.shared;
        let Some(Current { decision, .. }) = &mut self.current else { return };
        let present = plan.slot_at(plan.clock.now(), *start).unwrap_or(0);
        let begun = present.saturating_sub(decision.slot).saturating_add(1);
        if begun < decision.slots.into() {
            decision.slots = begun as u32;
            decision.job = decision.job.map(|job| Job { is_last: false, ..job });
        }
    }

    /// The turn that comes next.
    fn decide(&self) -> Decision {
        let Shared { plan, start, .. } = &*self.shared;
        let next = self.cursor.next();
        let slots = u32::try_from(next.to - next.from).unwrap_or(u32::MAX);
        let (at, until) = (plan.instant(next.from, *start), plan.instant(next.to, *start));
        Decision { slot: next.from, slots, job: next.job, at, until }
    }

    /// Takes rows that were published, if they begin in the future.
    fn look_for_rows(&mut self) {
        let Lane { shared, number, cursor, over, .. } = self;
        let mut ended = None;
        shared.mail[*number].look(over, |rows| {
            if shared.plan.clock.now() >= shared.plan.instant(rows.from, shared.start) {
                return Err(rows);
            }
            ended = cursor.take(rows)?;
            Ok(())
        });
        self.keep(ended);
        let next = self.cursor.slot();
        let end = self.shared.plan.instant(next, self.shared.start);
        let Some(Current { decision, .. }) = &mut self.current else { return };
        if decision.slot + u64::from(decision.slots) > next {
            // It ends earlier than planned, and its job gets the rest later, or is over.
            decision.slots = (next - decision.slot) as u32;
            decision.until = end;
            decision.job = decision.job.map(|job| Job { is_last: false, ..job });
        }
    }

    /// Keeps rows for who frees them; there is room for all that can come in between.
    fn keep(&mut self, over: Option<Box<Rows>>) {
        if self.over.len() < self.over.capacity() {
            self.over.extend(over);
        }
    }

    /// Waits until a turn begins, or shortly before if it can be handed over ahead. `None` if it was woken
    /// before.
    fn wait(&mut self, next: &Decision, rings: u32) -> Option<Instant> {
        let clock = self.shared.plan.clock;
        if self.current.as_ref().is_some_and(|current| current.is_lent) {
            self.shared.bells[self.number].sleep_until(clock, next.at - AHEAD, rings)?;
            self.take_back(next);
        }
        self.shared.bells[self.number].sleep_until(clock, next.at - self.early(), rings)?;
        self.prepare(next);
        if self.can_be_ahead(next) {
            return Some(self.shared.plan.clock.now());
        }
        let begun = self.shared.bells[self.number].spin_until(clock, next.at, rings);
        if begun.is_none() {
            // The turn goes on.
            self.forget(next);
        }
        begun
    }

    /// Whether the next turn can be handed over before it begins: its thread cannot run until this one
    /// sleeps. It must not be taken from another processor early.
    fn can_be_ahead(&self, next: &Decision) -> bool {
        let is_here = |job: Job| {
            let task = self.shared.try_task(job.task);
            task.is_some_and(|task| task.as_ref().is_some_and(|bound| bound.is_on(self.processor)))
        };
        !self.early().is_zero() && next.job.is_some_and(is_here)
    }

    /// Keeps the processor until a turn begins, if that is soon.
    fn keep_until(&self, at: Instant) {
        let (clock, since) = (self.shared.plan.clock, super::now());
        // CLOCK_TAI may be set meanwhile.
        while clock.now() < at && super::now().since(since) <= EARLY {
            std::hint::spin_loop();
        }
    }

    /// How long before the next turn this one ends, to take accounts.
    fn early(&self) -> Duration {
        let current = self.current.as_ref().map(|current| &current.decision);
        let length = current.map_or(Duration::ZERO, |it| it.until.since(it.at));
        if length >= LEAST_LOAN { EARLY } else { Duration::ZERO }
    }

    /// Reads accounts ahead of the next turn, so that it does not begin late. The lane keeps the processor
    /// until then.
    fn prepare(&mut self, next: &Decision) {
        self.overran = self.may_have_overrun().is_some_and(|job| self.is_ready(job));
        self.read_ahead(next, true);
    }

    fn forget(&mut self, next: &Decision) {
        self.read_ahead(next, false);
    }

    /// Reads, or forgets, what the threads of the current and of the next turn have used.
    fn read_ahead(&self, next: &Decision, is_wanted: bool) {
        let current = self.current.as_ref().and_then(|current| current.decision.job);
        for job in [current, next.job].into_iter().flatten() {
            // Who has a task begins a turn with its thread, or looks at it; what it used is read later then.
            let Some(mut task) = self.shared.try_task(job.task) else { continue };
            if let Some(bound) = task.as_mut() {
                bound.read_ahead(is_wanted && bound.is_on(self.processor));
            }
        }
    }

    /// Takes a processor that is lent back before the next turn begins.
    fn take_back(&mut self, next: &Decision) {
        self.plug.keep();
        if let Some(job) = next.job {
            let mut task = self.shared.task(job.task);
            let thawed =
                task.as_mut().filter(|bound| bound.waits_on(self.processor)).map(|bound| bound.thaw());
            if let Some(Err(_)) = thawed {
                *task = None;
            }
        }
    }

    /// Ends the turn before and begins this one.
    fn hand_over(&mut self, decision: Decision) {
        let overran = std::mem::take(&mut self.overran);
        if overran {
            self.note_overrun();
        }
        let is_same = self.goes_on(decision.job);
        let mut over = if is_same { None } else { self.end_turn_of(false) };
        // Not before the processor was taken from another thread: see `Shared::task`.
        let is_skipped = decision.job.is_some_and(|job| self.skips(job));
        let goes_on = is_same && !is_skipped;
        if is_same {
            over = self.end_turn_of(goes_on);
        }
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
        if let Some(turn) = &mut over {
            turn.is_overrun = overran;
        }
        // What need not be done in the turn is done before it, if there is time.
        let is_ahead = self.shared.plan.clock.now() < decision.at;
        if is_ahead {
            self.show(&decision, tid);
            over.take().into_iter().for_each(|turn| self.send(turn));
            self.keep_until(decision.at);
        }
        let now = self.shared.plan.clock.now();
        let error = now.since(decision.at.min(now));
        self.current = Some(Current { decision, given: Given { tid, is_skipped }, error, is_lent });
        if !is_ahead {
            self.show(&decision, tid);
            over.into_iter().for_each(|turn| self.send(turn));
        }
    }

    /// Shows who looks from elsewhere which turn is under way.
    fn show(&self, decision: &Decision, tid: u32) {
        let begun = decision.job.filter(|_| tid != 0).and_then(|job| {
            let task = self.shared.task(job.task);
            Some(task.as_ref()?.begun())
        });
        self.shared.present[self.number].begin(decision.slot, begun.map_or(0, |_| tid), begun.unwrap_or(0));
    }

    /// Whether the turn that begins is left out.
    fn skips(&self, job: Job) -> bool {
        self.shared.task_soon(job.task).as_mut().is_some_and(|bound| bound.skips(job))
    }

    /// The job of the current turn, if it has no slots left and its thread had the processor until now.
    fn may_have_overrun(&self) -> Option<Job> {
        let current = self.current.as_ref().filter(|current| current.given.tid != 0)?;
        // Nothing follows from overruns of guests.
        let is_planned = |job: &Job| (job.task as usize) < self.shared.plan.tasks.len();
        let job = current.decision.job.filter(|job| job.is_last && is_planned(job))?;
        (!was_running(self.plug.seen(), super::now())).then_some(job)
    }

    fn on_overrun(&self, job: Job) -> OnOverrun {
        let task = self.shared.plan.tasks.get(job.task as usize);
        // Guests get what they declared, and then nothing.
        task.map_or(OnOverrun::Continue, |task| task.on_overrun)
    }

    /// Whether the thread of the current turn is still ready.
    fn is_ready(&self, job: Job) -> bool {
        let tid = self.current.as_ref().map_or(0, |current| current.given.tid);
        let mut task = self.shared.task_soon(job.task);
        let bound = task.as_mut().filter(|bound| bound.tid == tid);
        bound.is_some_and(|bound| bound.is_ready().unwrap_or(false))
    }

    /// The current turn's job loses the next one, if the table says so.
    fn note_overrun(&self) {
        let Some(job) = self.current.as_ref().and_then(|current| current.decision.job) else { return };
        if self.on_overrun(job) == OnOverrun::Skip {
            if let Some(bound) = self.shared.task_soon(job.task).as_mut() {
                bound.skip_next();
            }
        }
    }

    /// The turn is over already: nobody gets it, and who had the processor keeps it no longer.
    fn miss(&mut self, decision: Decision, now: Instant) {
        self.end_turn();
        self.plug.keep();
        self.shared.present[self.number].begin(0, 0, 0);
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
            let mut task = self.shared.task_soon(job.task);
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
        // The plug has the processor while this waits for a kernel lock.
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
