//! Guests of a running table: aperiodic jobs and periodic tasks that get slots in its slack by slot shifting.
//!
//! The machine is a few milliseconds ahead of the table: slots before [`Guests::settle`]'s are decided. Pure
//! but for `publish`, which hands rows to a dispatcher and says whether that took them in time.

use crate::plan::{Job, Plan, Turn};
use crate::rows::Rows;
use crate::slot_shifting::{Accepted, Added, FARTHEST, Machine, Periodic, Refused, Stretch, Then, Work};
use punctual_model::{Duration, Instant, counted};
use punctual_protocol::dispatcher::{GuestId, Reservation};
use punctual_trace::dispatch;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;

/// Guests at one time. They have the numbers after those of the table's tasks.
pub const MOST: usize = 64;

/// Decisions are made at least this long before the slots that they are about.
const LEAD: Duration = Duration::from_ms(3);

/// Each attempt that a dispatcher does not take in time is followed by one twice as far ahead, the last one
/// 96 ms.
const ATTEMPTS: u32 = 6;

const TOO_SLOW: &str = "the dispatcher did not accept the slots in time; try again";

/// Rows of a processor that are kept, to say whose the present slot is.
const KEPT: usize = 8;

/// All guests of a table, and the intervals and spare capacities of its processors.
#[derive(Debug)]
pub struct Guests {
    plan: Arc<Plan>,
    start: Instant,
    machine: Machine,
    /// The slot that is the machine's first.
    base: u64,
    guests: BTreeMap<GuestId, Guest>,
    known: GuestId,
    /// By lane, what was published, the latest last.
    rows: Vec<VecDeque<Rows>>,
    /// The longest that a ready thread may wait, if there is a limit.
    longest_wait: Option<Duration>,
}

/// A guest.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Its number among the tasks.
    pub task: usize,
    /// Its name.
    pub name: String,
    /// The processor's number.
    pub processor: u32,
    /// The spec that it belongs to; none: not confirmed.
    pub spec: Option<u64>,
    /// When it was reserved, on the table's clock, and the connection that it belongs to while that lasts.
    pub reserved: (Instant, Option<u64>),
    /// Its need, in slots.
    pub need: Need,
    kind: Kind,
    /// The first slot of its first job.
    pub from: u64,
    /// The slot after its last one, once that is known.
    pub end: Option<u64>,
    /// Whether it is to be released as soon as the dispatcher takes that.
    pub is_leaving: bool,
    /// Whether its slots have been some thread's.
    is_bound: bool,
    /// What is guaranteed at present: slots of a job from this slot on.
    guaranteed: (NonZeroU64, u64),
    /// Slots of a single job that were given out before it had a thread.
    given: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Job(Accepted),
    Task(Added),
}

/// What a guest needs, in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Of each job.
    pub slots: NonZeroU64,
    /// From the release of a periodic task's job; of a single job, the slot, counted since the start.
    pub deadline: u64,
    /// Between two releases; none: a single job.
    pub period: Option<u64>,
    /// From the beginning of the table to the first release of a periodic task.
    pub offset: u64,
}

impl Need {
    fn periodic(&self, period: u64, deadline: u64) -> Periodic {
        Periodic { wcet: self.slots.get(), period, deadline, offset: self.offset }
    }
}

/// Why there is no guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReserved {
    /// In words.
    pub reason: String,
    /// The earliest deadline that would be accepted at this instant.
    pub earliest_deadline: Option<Duration>,
}

impl NotReserved {
    fn new(reason: impl Into<String>) -> NotReserved {
        NotReserved { reason: reason.into(), earliest_deadline: None }
    }
}

/// Hands the rows of a lane to its dispatcher. False: their first slot has begun, so they were not taken.
pub type Publish<'a> = &'a mut dyn FnMut(usize, Rows) -> bool;

impl Guests {
    /// None yet. `now` is on the table's clock.
    ///
    /// # Errors
    /// Why this table takes none, in words.
    pub fn new(
        plan: Arc<Plan>,
        start: Instant,
        now: Instant,
        longest_wait: Option<Duration>,
    ) -> Result<Guests, String> {
        let table = plan.table.as_ref().ok_or("its tasks are unknown")?;
        let machine = Machine::keeping(table).map_err(|error| error.to_string())?;
        let slots = u64::from(plan.slots);
        let base = plan.slot_at(now, start).map_or(0, |slot| slot / slots * slots);
        let rows = (0..plan.lanes.len()).map(|lane| VecDeque::from([Rows::table(&plan, lane)])).collect();
        let guests = BTreeMap::new();
        Ok(Guests { machine, base, guests, known: 0, rows, plan, start, longest_wait })
    }

    /// All that are not over, by number.
    pub fn all(&self) -> impl Iterator<Item = (GuestId, &Guest)> {
        self.guests.iter().map(|(id, guest)| (*id, guest))
    }

    /// One that still has slots to come.
    pub fn get(&self, id: GuestId) -> Option<&Guest> {
        self.guests.get(&id)
    }

    /// The one with this number among the tasks.
    pub fn of_task(&self, task: usize) -> Option<&Guest> {
        self.guests.values().find(|guest| guest.task == task)
    }

    /// It belongs to a spec of this connection now. False if there is no such guest.
    pub fn confirm(&mut self, id: GuestId, spec: u64, by: u64) -> bool {
        let Some(guest) = self.guests.get_mut(&id) else { return false };
        (guest.spec, guest.reserved.1, guest.name) = (Some(spec), Some(by), format!("spec {spec}"));
        true
    }

    /// A connection has ended: its confirmed guests stay.
    pub fn disconnected(&mut self, connection: u64) {
        let its = self.guests.values_mut().filter(|guest| guest.reserved.1 == Some(connection));
        its.for_each(|guest| guest.reserved.1 = None);
    }

    /// Whose a slot of a lane is.
    pub fn owner(&self, lane: usize, slot: u64) -> Option<Job> {
        self.rows[lane].iter().rev().find(|rows| rows.from <= slot)?.at(slot).job
    }

    /// Guarantees what is asked for at `now`, if it can be guaranteed.
    ///
    /// # Errors
    /// Why not.
    pub fn reserve(
        &mut self,
        asked: &Reservation,
        by: u64,
        clock: &dyn Fn() -> Instant,
        publish: Publish<'_>,
    ) -> Result<GuestId, NotReserved> {
        let now = clock();
        let need = self.need(asked, now)?;
        let first = self.plan.tasks.len();
        let task = (first..first + MOST).find(|&task| self.of_task(task).is_none()).ok_or_else(|| {
            NotReserved::new(format!("the table already has {MOST} guests, the most possible"))
        })?;
        for attempt in 0..ATTEMPTS {
            let first = self.undecided(clock(), attempt);
            if attempt > 0 && need.period.is_none() && need.deadline <= first {
                break;
            }
            self.settle(first);
            let mut machine = self.machine.clone();
            let kind = match self.accept(&mut machine, need, now) {
                Err(_) if attempt > 0 => break,
                other => other?,
            };
            let (processor, from) = match kind {
                Kind::Job(accepted) => (accepted.processor, self.base + machine.now()),
                Kind::Task(added) => (added.processor, self.base + added.first + need.offset),
            };
            self.known += 1;
            let (name, spec, reserved) = (format!("guest {}", self.known), None, (now, Some(by)));
            let guest = Guest {
                task,
                name,
                processor,
                spec,
                reserved,
                need,
                kind,
                from,
                end: None,
                is_leaving: false,
                is_bound: false,
                guaranteed: (need.slots, from),
                given: Vec::new(),
            };
            self.guests.insert(self.known, guest);
            if self.publish(processor, &machine, publish) {
                self.machine = machine;
                return Ok(self.known);
            }
            self.guests.remove(&self.known);
        }
        Err(NotReserved::new(TOO_SLOW))
    }

    /// A guest has got its thread. What a single job was given before is guaranteed to it anew, until the
    /// same deadline; also the rest of a turn that is under way, unless the thread `joins` that. Whether that
    /// was necessary.
    ///
    /// # Errors
    /// If it cannot be guaranteed any more: the guest keeps what it has.
    pub fn bound(
        &mut self,
        id: GuestId,
        joins: bool,
        clock: &dyn Fn() -> Instant,
        publish: Publish<'_>,
    ) -> Result<bool, NotReserved> {
        for attempt in 0..ATTEMPTS {
            let now = clock();
            let first = self.undecided(now, attempt);
            let is_late = |guest: &Guest| guest.need.period.is_none() && guest.need.deadline <= first;
            if attempt > 0 && self.guests.get(&id).is_some_and(is_late) {
                break;
            }
            self.settle(first);
            let Some(guest) = self.guests.get(&id).filter(|guest| !guest.is_bound) else { return Ok(false) };
            let (Kind::Job(accepted), need) = (guest.kind, guest.need) else {
                self.stop_counting(id);
                return Ok(false);
            };
            let present = self.plan.slot_at(now, self.start).unwrap_or(0);
            let lost = lost(&guest.given, present, joins) as u64;
            let to_come = guest.given.len() as u64 - lost;
            let Some(wcet) = NonZeroU64::new(need.slots.get() - to_come).filter(|_| lost > 0) else {
                self.stop_counting(id);
                return Ok(false);
            };
            let mut machine = self.machine.clone();
            let deadline = need.deadline.saturating_sub(self.base).min(machine.now() + FARTHEST);
            let renewed = match machine.renew(&accepted, wcet, deadline) {
                Ok(renewed) => renewed,
                Err(_) if attempt > 0 => break,
                Err(refused) => {
                    let NotReserved { reason, earliest_deadline } = self.refused_job(&refused, now);
                    let passed = counted(lost, "slot");
                    let reason = format!("{passed} had passed before its thread was there, and now {reason}");
                    return Err(NotReserved { reason, earliest_deadline });
                }
            };
            let before = guest.clone();
            let from = self.base + machine.now();
            self.guests.entry(id).and_modify(|guest| {
                (guest.kind, guest.end, guest.guaranteed) = (Kind::Job(renewed), None, (wcet, from));
            });
            if self.publish(accepted.processor, &machine, publish) {
                self.machine = machine;
                self.stop_counting(id);
                return Ok(true);
            }
            self.guests.insert(id, before);
        }
        Err(NotReserved::new(TOO_SLOW))
    }

    /// It has a thread: its slots are no longer counted.
    fn stop_counting(&mut self, id: GuestId) {
        self.guests.entry(id).and_modify(|guest| (guest.is_bound, guest.given) = (true, Vec::new()));
    }

    /// Gives back the slots that it has not had. It is over when those that are decided have passed. False if
    /// that has to be tried again.
    pub fn release(&mut self, id: GuestId, clock: &dyn Fn() -> Instant, publish: Publish<'_>) -> bool {
        self.settle(self.undecided(clock(), 0));
        self.guests.entry(id).and_modify(|guest| guest.is_leaving = true);
        let Some(guest) = self.guests.get(&id).filter(|guest| guest.end.is_none()).cloned() else {
            return true;
        };
        let mut machine = self.machine.clone();
        match guest.kind {
            Kind::Job(accepted) => _ = machine.withdraw(&accepted),
            Kind::Task(added) => machine.remove_periodic(&added),
        }
        let is_taken = self.publish(guest.processor, &machine, publish);
        if is_taken {
            self.machine = machine;
            let end = self.base + self.machine.now();
            self.guests.entry(id).and_modify(|guest| guest.end = Some(end));
        }
        is_taken
    }

    /// A job of the table in whose slot `slot` its thread went to sleep is over: gives back the slots that it
    /// has not had. Returns the first that may be given to others; none if the job has none left.
    ///
    /// A processor that follows the table is told only if it `lends` unowned slots.
    pub fn over_early(
        &mut self,
        job: Job,
        slot: u64,
        lends: bool,
        clock: &dyn Fn() -> Instant,
        publish: Publish<'_>,
    ) -> Option<u64> {
        self.settle(self.undecided(clock(), 0));
        let (slot, first) = (slot.checked_sub(self.base)?, self.base + self.machine.now());
        let mut is_given_back = false;
        for lane in 0..self.plan.lanes.len() {
            let processor = self.plan.lanes[lane].processor;
            let Some(before) = self.machine.give_back(processor, job.number as usize, slot) else { continue };
            let is_needed = lends || !self.machine.follows_table(processor);
            let rows = self.rows(lane, &self.machine).filter(|_| is_needed);
            if is_needed && !rows.is_some_and(|rows| self.offer(lane, rows, publish)) {
                self.machine.restore(before);
            } else {
                is_given_back = true;
            }
        }
        is_given_back.then_some(first)
    }

    /// Accounts for the slots until a short time from now, and removes the guests whose last slot has passed.
    pub fn tick(&mut self, now: Instant) -> Vec<(GuestId, Guest)> {
        self.settle(self.undecided(now, 0));
        let slot = self.plan.slot_at(now, self.start).unwrap_or(0);
        // Without a thread, a single job has had nothing: it may be guaranteed its slots until its deadline.
        let is_waiting =
            |guest: &Guest| !guest.is_bound && guest.need.period.is_none() && slot < guest.need.deadline;
        let is_over = |guest: &Guest| {
            guest.end.is_some_and(|end| end <= slot) && (guest.is_leaving || !is_waiting(guest))
        };
        let over: Vec<GuestId> = self.all().filter(|(_, guest)| is_over(guest)).map(|(id, _)| id).collect();
        over.into_iter().filter_map(|id| Some((id, self.guests.remove(&id)?))).collect()
    }

    /// As it is recorded.
    pub fn record(&self, id: GuestId) -> Option<dispatch::Guest> {
        let guest = self.guests.get(&id)?;
        let (slots, slot) = guest.guaranteed;
        let deadline = guest.need.deadline - if guest.need.period.is_none() { slot } else { 0 };
        Some(dispatch::Guest {
            number: guest.task as u32,
            cpu: guest.processor,
            slot,
            deadline,
            slots: u32::try_from(slots.get()).unwrap_or(u32::MAX),
            period: guest.need.period.unwrap_or(0),
            name: guest.name.clone(),
        })
    }

    /// The first slot that can be decided at this instant.
    fn undecided(&self, now: Instant, attempt: u32) -> u64 {
        let ahead = Duration::from_ns(LEAD.ns() << attempt);
        self.plan.slot_at(now + ahead, self.start).map_or(0, |slot| slot + 1)
    }

    /// Gives out all slots before this one.
    fn settle(&mut self, first: u64) {
        while self.base + self.machine.now() < first {
            let slot = self.base + self.machine.now();
            for served in self.machine.next_slot().into_iter().flatten() {
                let Work::Aperiodic(job) = served.work else { continue };
                let accepted = Accepted { processor: served.processor, job };
                let is_it = |kind| matches!(kind, Kind::Job(it) if it == accepted);
                let Some(guest) = self.guests.values_mut().find(|guest| is_it(guest.kind)) else { continue };
                if served.is_last {
                    guest.end = Some(slot + 1);
                }
                if !guest.is_bound {
                    guest.given.push(slot);
                }
            }
        }
    }

    /// What is asked for, in slots: the runtime up, the deadline down.
    fn need(&self, asked: &Reservation, now: Instant) -> Result<Need, NotReserved> {
        let slot = self.plan.slot;
        let longest =
            asked.period_ns.map(|period| period + period).or(asked.deadline_ns).unwrap_or(Duration::ZERO);
        if let Some(most) = self.longest_wait.filter(|most| longest > *most) {
            let reason = format!(
                "under sched_ext a thread may wait for at most {most}, for the sake of the kernel's \
                 watchdog; this one might wait for {longest}"
            );
            return Err(NotReserved { reason, earliest_deadline: None });
        }
        let slots = NonZeroU64::new(asked.runtime_ns.ns().div_ceil(slot.ns()))
            .ok_or_else(|| NotReserved::new("the runtime must be greater than zero"))?;
        let Some(period) = asked.period_ns else {
            let deadline = asked.deadline_ns.ok_or_else(|| NotReserved::new("a deadline is required"))?;
            let deadline = self.plan.slot_at(now + deadline, self.start).unwrap_or(0);
            if !asked.offset_ns.is_zero() {
                return Err(NotReserved::new("only periodic tasks have an offset: a period is required"));
            }
            return Ok(Need { slots, deadline, period: None, offset: 0 });
        };
        let offset = asked.offset_ns;
        let deadline = asked.deadline_ns.unwrap_or(period.saturating_sub(offset));
        if period.is_zero() || period.ns() % slot.ns() != 0 {
            let reason = format!("the period of {period} is not a whole number of slots of {slot}");
            return Err(NotReserved::new(reason));
        }
        if deadline > period {
            let reason = format!("the deadline of {deadline} is longer than the period of {period}");
            return Err(NotReserved { reason, earliest_deadline: None });
        }
        if offset.ns() % slot.ns() != 0 {
            let reason = format!("the offset of {offset} is not a whole number of slots of {slot}");
            return Err(NotReserved::new(reason));
        }
        if offset > period.saturating_sub(deadline) {
            let reason = format!(
                "the offset of {offset} and the deadline of {deadline} together are longer than the period \
                 of {period}"
            );
            return Err(NotReserved::new(reason));
        }
        let [deadline, period, offset] = [deadline, period, offset].map(|time| time.ns() / slot.ns());
        Ok(Need { slots, deadline, period: Some(period), offset })
    }

    fn accept(&self, machine: &mut Machine, need: Need, now: Instant) -> Result<Kind, NotReserved> {
        match need.period {
            None => {
                let deadline = need.deadline.saturating_sub(self.base).min(machine.now() + FARTHEST);
                let refused = |refused: Refused| self.refused_job(&refused, now);
                machine.accept(need.slots, deadline).map(Kind::Job).map_err(refused)
            }
            Some(period) => {
                let added = machine.add_periodic(need.periodic(period, need.deadline));
                added.map(Kind::Task).map_err(|error| {
                    let Need { slots, deadline, offset, .. } = need;
                    let shifted = match offset {
                        0 => String::new(),
                        _ => format!(", {offset} after the beginning of the table"),
                    };
                    let reason = format!(
                        "no processor has {} in every {period}, within {deadline} of each release{shifted}: \
                         {error}",
                        counted(slots.get(), "slot")
                    );
                    let earliest_deadline =
                        earliest_deadline(machine, need, period).map(|deadline| self.slots(deadline));
                    NotReserved { reason, earliest_deadline }.with_earliest()
                })
            }
        }
    }

    fn refused_job(&self, refused: &Refused, now: Instant) -> NotReserved {
        let Refused { free, needed, earliest_deadline } = refused;
        let slot = self.plan.slot;
        let are = |slots: u64| if slots == 1 { "is" } else { "are" };
        let farthest = self.slots(FARTHEST);
        let within = match earliest_deadline {
            Some(_) => String::new(),
            None => format!(" within {farthest}, the farthest possible deadline"),
        };
        let reason = format!(
            "{} of {slot} {} needed before the deadline, and at most {free} {} free on any one \
             processor{within}",
            counted(*needed, "slot"),
            are(*needed),
            are(*free),
        );
        let earliest = earliest_deadline.map(|deadline| {
            // In full tenths of a millisecond, so that people can type it.
            let exact = self.plan.instant(self.base + deadline, self.start).since(now);
            Duration::from_us(exact.ns().div_ceil(100_000) * 100)
        });
        NotReserved { reason, earliest_deadline: earliest }.with_earliest()
    }

    fn slots(&self, number: u64) -> Duration {
        Duration::from_ns(number.saturating_mul(self.plan.slot.ns()))
    }

    fn publish(&mut self, processor: u32, machine: &Machine, publish: Publish<'_>) -> bool {
        let lane = self.plan.lanes.iter().position(|lane| lane.processor == processor);
        let Some((lane, rows)) = lane.and_then(|lane| Some((lane, self.rows(lane, machine)?))) else {
            return false;
        };
        self.offer(lane, rows, publish)
    }

    fn offer(&mut self, lane: usize, rows: Rows, publish: Publish<'_>) -> bool {
        let is_taken = publish(lane, rows.clone());
        if is_taken {
            let kept = &mut self.rows[lane];
            kept.push_back(rows);
            let excess = kept.len().saturating_sub(KEPT);
            kept.drain(..excess);
        }
        is_taken
    }

    /// What a lane serves from the machine's present slot on.
    fn rows(&self, lane: usize, machine: &Machine) -> Option<Rows> {
        let upcoming = machine.upcoming(self.plan.lanes[lane].processor)?;
        let from = self.base + machine.now();
        let once = self.turns(lane, &upcoming.once);
        let after = from + once.last().map_or(0, |turn| u64::from(turn.to));
        Some(match upcoming.then {
            Then::Table => Rows { from, once, origin: 0, cycle: self.plan.lanes[lane].turns.clone() },
            Then::Cycle(cycle) => Rows { from, once, origin: after, cycle: self.turns(lane, &cycle) },
        })
    }

    fn turns(&self, lane: usize, stretches: &[Stretch]) -> Vec<Turn> {
        let processor = self.plan.lanes[lane].processor;
        let mut from = 0;
        let turn = |stretch: &Stretch| {
            let to = from + u32::try_from(stretch.slots).unwrap_or(u32::MAX);
            let job = stretch.work.and_then(|work| self.job(processor, work, stretch.is_last));
            let turn = Turn { from, to, job };
            from = to;
            turn
        };
        stretches.iter().map(turn).collect()
    }

    fn job(&self, processor: u32, work: Work, is_last: bool) -> Option<Job> {
        let guest = |is_it: &dyn Fn(Kind) -> bool| {
            let guest = self.guests.values().find(|guest| is_it(guest.kind))?;
            Some(Job { task: guest.task as u32, number: 0, is_last })
        };
        match work {
            Work::Planned { job, task } => Some(Job { task: task as u32, number: job as u32, is_last }),
            Work::Aperiodic(job) => {
                let accepted = Accepted { processor, job };
                guest(&|kind| matches!(kind, Kind::Job(it) if it == accepted))
            }
            Work::Added(task) => guest(&|kind| matches!(kind, Kind::Task(it) if it.task == task)),
        }
    }
}

impl NotReserved {
    fn with_earliest(mut self) -> NotReserved {
        self.reason += &match self.earliest_deadline {
            Some(deadline) => format!("; the earliest deadline that would be accepted now is {deadline}"),
            None => "; no deadline would be accepted".to_owned(),
        };
        self
    }
}

/// The least deadline with which a periodic task can be added; none if there is none up to its period.
fn earliest_deadline(machine: &Machine, need: Need, period: u64) -> Option<u64> {
    let fits = |deadline| machine.clone().add_periodic(need.periodic(period, deadline)).is_ok();
    let (mut impossible, mut possible) = (need.deadline, period - need.offset);
    if !fits(possible) {
        return None;
    }
    while possible - impossible > 1 {
        let between = impossible.midpoint(possible);
        if fits(between) { possible = between } else { impossible = between }
    }
    Some(possible)
}

/// How many of these slots, in their order, a thread does not get that comes in the slot `present`. Slots in
/// a row are one turn.
fn lost(given: &[u64], present: u64, joins: bool) -> usize {
    let passed = given.partition_point(|slot| *slot <= present);
    let is_under_way = passed > 0 && given[passed - 1] == present;
    let rest = given[passed..].iter().zip(present + 1..).take_while(|(slot, next)| *slot == next);
    passed + if is_under_way && !joins { rest.count() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::head;
    use crate::plan::Run;
    use punctual_model::table::{Clock, Method, OnOverrun};
    use punctual_model::{Table, TableJob, TableRun, TableTask};

    /// Ten slots of 1 ms on processor 1: a a . b b b . . . .
    fn table() -> Table {
        let task = |(name, wcet): (&str, u64)| TableTask {
            name: name.into(),
            thread: None,
            period: 10,
            wcet,
            offset: 0,
            deadline: 10,
            processors: Vec::new(),
            exclusive: false,
            after: Vec::new(),
            on_overrun: OnOverrun::default(),
        };
        let run = |job, from, to| TableRun { processor: 1, from, to, job };
        let job = |(task, slots)| TableJob { task, release: 0, deadline: 10, slots };
        Table {
            slot_ns: Duration::from_ms(1),
            slots: 10,
            clock: Clock::Monotonic,
            processors: vec![1],
            method: Method::Other,
            tasks: [("a", 2), ("b", 3)].map(task).to_vec(),
            jobs: [(0, 2), (1, 3)].map(job).to_vec(),
            runs: vec![run(0, 0, 2), run(1, 3, 6)],
        }
    }

    fn plan() -> Arc<Plan> {
        let table = table();
        let runs =
            [Run { processor: 1, from: 0, to: 2, job: 0 }, Run { processor: 1, from: 3, to: 6, job: 1 }];
        let jobs = [0, 1].map(|task| crate::Planned { task, release: 0 });
        let head = Plan { table: Some(Arc::new(table)), ..head(1_000_000, 10, &["a", "b"]) };
        Arc::new(Plan::new(head, &[1], &runs, &jobs).expect("a table"))
    }

    fn at(ms: u64) -> Instant {
        Instant::from_ns(1_000_000 * ms)
    }

    fn job(runtime: u64, deadline: u64) -> Reservation {
        let ms = Duration::from_ms;
        Reservation {
            runtime_ns: ms(runtime),
            deadline_ns: Some(ms(deadline)),
            period_ns: None,
            offset_ns: Duration::ZERO,
        }
    }

    /// Guests at the start of the table, and all that was published.
    struct Rig {
        guests: Guests,
        rows: Vec<Rows>,
        takes: bool,
        joins: bool,
    }

    impl Rig {
        fn new() -> Rig {
            let guests = Guests::new(plan(), at(0), at(0), None).expect("guests");
            Rig { guests, rows: Vec::new(), takes: true, joins: true }
        }

        fn reserve(&mut self, now: u64, asked: &Reservation) -> Result<GuestId, NotReserved> {
            let Rig { guests, rows, takes, .. } = self;
            let mut publish = |_, it| {
                rows.push(it);
                *takes
            };
            guests.reserve(asked, 1, &|| at(now), &mut publish)
        }

        fn bound(&mut self, now: u64, id: GuestId) -> Result<bool, NotReserved> {
            let Rig { guests, rows, takes, .. } = self;
            let mut publish = |_, it| {
                rows.push(it);
                *takes
            };
            guests.bound(id, self.joins, &|| at(now), &mut publish)
        }

        fn release(&mut self, now: u64, id: GuestId) -> bool {
            let Rig { guests, rows, takes, .. } = self;
            let mut publish = |_, it| {
                rows.push(it);
                *takes
            };
            guests.release(id, &|| at(now), &mut publish)
        }

        /// Owners of slots, by what was published last.
        fn owners(&self, slots: std::ops::Range<u64>) -> String {
            let rows = self.rows.last().expect("rows");
            let name = |task: u32| ["a", "b"].get(task as usize).copied().unwrap_or("G");
            slots.map(|slot| rows.at(slot).job.map_or(".", |job| name(job.task))).collect()
        }
    }

    #[test]
    fn a_job_runs_in_the_slack_and_the_table_goes_on_after_it() {
        let mut rig = Rig::new();
        // At 12 ms, slots until 15 are decided. Until slot 32 there are 17 slots, of which the table needs 8.
        let id = rig.reserve(12, &job(6, 20)).expect("accepted");
        assert_eq!(rig.rows[0].from, 16);
        // Job b's window ends at 20: it comes first. Then the guest's deadline, 32, is later than theirs, 30.
        assert_eq!(rig.owners(16..30), "GGGGaabbbGG...");
        assert_eq!(rig.owners(30..40), "aa.bbb....");
        rig.bound(15, id).expect("a thread");
        assert_eq!(rig.guests.tick(at(30)).len(), 1);
        assert!(rig.guests.get(id).is_none(), "it has had all its slots");
    }

    #[test]
    fn a_refusal_names_the_earliest_deadline_which_is_then_accepted() {
        let mut rig = Rig::new();
        let refused = rig.reserve(12, &job(6, 8)).expect_err("too short");
        let earliest = refused.earliest_deadline.expect("there is one");
        assert!(refused.reason.contains("at most 4 are free on any one processor"), "{}", refused.reason);
        assert!(refused.reason.ends_with("accepted now is 10 ms"), "{}", refused.reason);
        let before = earliest.ns() / 1_000_000 - 1;
        rig.reserve(12, &job(6, before)).expect_err("a slot less");
        assert!(rig.rows.is_empty(), "nothing was published");
        rig.reserve(12, &Reservation { deadline_ns: Some(earliest), ..job(6, 0) }).expect("accepted");
    }

    #[test]
    fn what_is_given_back_can_be_given_to_others() {
        let mut rig = Rig::new();
        let id = rig.reserve(0, &job(9, 30)).expect("accepted");
        rig.reserve(1, &job(8, 30)).expect_err("it is full");
        assert!(rig.release(2, id));
        // Slots until 5 are decided.
        assert_eq!(rig.guests.get(id).and_then(|guest| guest.end), Some(6));
        rig.reserve(3, &job(8, 30)).expect("there is room again");
        assert_eq!(rig.guests.tick(at(6)).len(), 1);
    }

    #[test]
    fn slots_before_a_job_has_its_thread_are_guaranteed_anew() {
        let mut rig = Rig::new();
        let id = rig.reserve(12, &job(6, 20)).expect("accepted");
        assert_eq!(rig.owners(16..32), "GGGGaabbbGG...aa");
        // At 21 ms, slots until 24 are decided, and the guest has had those from 16 to 19.
        assert_eq!(rig.bound(21, id), Ok(true));
        assert_eq!(rig.rows.last().map(|rows| rows.from), Some(25));
        assert_eq!(rig.owners(25..34), "GGGGGGaab");
        let record = rig.guests.record(id).expect("it is there");
        assert_eq!((record.slot, record.slots, record.slot + record.deadline), (25, 6, 32));
        assert_eq!(rig.bound(26, id), Ok(false), "once");
        assert!(rig.guests.tick(at(30)).is_empty());
        assert_eq!(rig.guests.tick(at(31)).len(), 1);
    }

    #[test]
    fn slots_that_are_decided_but_to_come_are_not_lost() {
        let mut rig = Rig::new();
        let id = rig.reserve(12, &job(6, 20)).expect("accepted");
        assert_eq!(rig.bound(15, id), Ok(false), "none has passed");
        assert_eq!(rig.rows.len(), 1, "nothing had to be published");
        let mut rig = Rig::new();
        let id = rig.reserve(12, &job(6, 20)).expect("accepted");
        // Slot 16 is lost, 17 to 19 are decided, and its own.
        assert_eq!(rig.bound(16, id), Ok(true));
        assert_eq!(rig.owners(20..30), "aabbbGGG..");
        assert_eq!(rig.guests.record(id).map(|record| record.slots), Some(3));
        // From user space, the turn that is under way goes on without the thread.
        let mut rig = Rig { joins: false, ..Rig::new() };
        let id = rig.reserve(12, &job(6, 20)).expect("accepted");
        assert_eq!(rig.bound(16, id), Ok(true));
        assert_eq!(rig.guests.record(id).map(|record| record.slots), Some(6));
        assert_eq!(rig.owners(20..32), "aabbbGGGGGGa");
    }

    #[test]
    fn a_turn_is_slots_in_a_row() {
        let given = [3, 4, 7, 8, 9, 12];
        let without: Vec<usize> = (2..13).map(|present| lost(&given, present, false)).collect();
        assert_eq!(without, [0, 2, 2, 2, 2, 5, 5, 5, 5, 5, 6]);
        let with: Vec<usize> = (2..13).map(|present| lost(&given, present, true)).collect();
        assert_eq!(with, [0, 1, 2, 2, 2, 3, 4, 5, 5, 5, 6]);
    }

    #[test]
    fn a_job_whose_slots_have_passed_waits_for_its_thread_until_its_deadline() {
        let mut rig = Rig::new();
        let id = rig.reserve(0, &job(3, 60)).expect("accepted");
        assert!(rig.guests.tick(at(40)).is_empty(), "its slots have passed, but not its deadline");
        assert_eq!(rig.bound(50, id), Ok(true));
        assert_eq!(rig.owners(54..60), "bbGGG.");
        let mut rig = Rig::new();
        let id = rig.reserve(0, &job(3, 60)).expect("accepted");
        let refused = rig.bound(58, id).expect_err("too late");
        assert!(refused.reason.starts_with("3 slots had passed before its thread was there"), "{refused:?}");
        assert_eq!(rig.guests.tick(at(60)).len(), 1);
    }

    #[test]
    fn a_periodic_task_stays_until_it_is_released() {
        let mut rig = Rig::new();
        let ms = |time| Some(Duration::from_ms(time));
        let offset_ns = Duration::ZERO;
        let runtime_ns = Duration::from_ms(1);
        let asked = Reservation { runtime_ns, deadline_ns: None, period_ns: ms(5), offset_ns };
        let id = rig.reserve(0, &asked).expect("accepted");
        let first = rig.guests.get(id).expect("it is there").from;
        assert_eq!(first % 10, 0);
        assert_eq!(rig.owners(first..first + 20), "GaabbbG...GaabbbG...");
        let other = Reservation { runtime_ns: Duration::from_ms(4), ..asked.clone() };
        let refused = rig.reserve(40, &other).expect_err("too much");
        assert_eq!(refused.earliest_deadline, None, "{}", refused.reason);
        let odd = Reservation { period_ns: Some(Duration::from_us(5_500)), ..asked.clone() };
        assert!(rig.reserve(40, &odd).expect_err("odd").reason.contains("whole number of slots"));
        assert!(rig.release(50, id));
        assert_eq!(rig.owners(60..70), "aa.bbb....");
    }

    #[test]
    fn a_periodic_task_may_have_an_offset() {
        let mut rig = Rig::new();
        let ms = |time| Some(Duration::from_ms(time));
        let asked = Reservation { offset_ns: Duration::from_ms(2), period_ns: ms(5), ..job(1, 1) };
        let id = rig.reserve(0, &asked).expect("accepted");
        let first = rig.guests.get(id).expect("it is there").from;
        assert_eq!(first % 10, 2);
        assert_eq!(rig.owners(first - 2..first + 18), "aaGbbb.G..aaGbbb.G..");
        let record = rig.guests.record(id).expect("it is there");
        assert_eq!((record.slot, record.deadline, record.period), (first, 1, 5));
        let why = |rig: &mut Rig, asked: &Reservation| rig.reserve(0, asked).expect_err("refused").reason;
        let late = Reservation { offset_ns: Duration::from_ms(5), ..asked.clone() };
        assert!(
            why(&mut rig, &late).contains("together are longer than the period"),
            "{}",
            why(&mut rig, &late)
        );
        let odd = Reservation { offset_ns: Duration::from_us(500), ..asked.clone() };
        assert!(why(&mut rig, &odd).contains("whole number of slots"));
        let single = Reservation { period_ns: None, deadline_ns: ms(50), ..asked.clone() };
        assert!(why(&mut rig, &single).contains("a period is required"));
        let again = why(&mut rig, &asked);
        assert!(again.contains("within 1 of each release, 2 after the beginning"), "{again}");
    }

    #[test]
    fn what_a_job_that_ended_early_gives_back_is_lent_and_can_be_promised() {
        let mut rig = Rig::new();
        // From slot 4 to 30 there are 26 slots, of which b's job still needs 2, and four other jobs 10.
        rig.reserve(0, &job(15, 30)).expect_err("14 are free");
        let over = |rig: &mut Rig, takes: bool, lends: bool| {
            let Rig { guests, rows, .. } = rig;
            let mut publish = |_, it| {
                rows.push(it);
                takes
            };
            let b = Job { task: 1, number: 1, is_last: false };
            guests.over_early(b, 3, lends, &|| at(0), &mut publish)
        };
        assert_eq!(over(&mut rig, false, true), None, "nobody took it: nothing has changed");
        rig.reserve(0, &job(15, 30)).expect_err("still");
        assert_eq!(over(&mut rig, true, true), Some(4));
        assert_eq!(rig.owners(4..20), "......aa.bbb....");
        assert_eq!(over(&mut rig, true, true), None, "it is over already");
        rig.reserve(0, &job(17, 30)).expect_err("two of its slots were left");
        rig.reserve(0, &job(16, 30)).expect("they are free now");
    }

    #[test]
    fn a_processor_that_lends_nothing_is_not_told_of_a_job_that_ended_early() {
        let mut rig = Rig::new();
        let b = Job { task: 1, number: 1, is_last: false };
        let mut publish = |_, _| panic!("published");
        assert_eq!(rig.guests.over_early(b, 3, false, &|| at(0), &mut publish), Some(4));
        rig.reserve(0, &job(16, 30)).expect("two slots more than before");
        assert_eq!(rig.owners(4..10), "GGGGGG");
    }

    #[test]
    fn what_no_dispatcher_takes_is_not_reserved() {
        let mut rig = Rig { takes: false, ..Rig::new() };
        let why = rig.reserve(0, &job(6, 40)).expect_err("not taken").reason;
        assert!(why.contains("did not accept"), "{why}");
        assert_eq!((rig.rows.len(), rig.guests.all().count()), (4, 0));
        assert!(rig.rows.windows(2).all(|pair| pair[0].from < pair[1].from), "further ahead each time");
        rig.takes = true;
        rig.reserve(0, &job(6, 40)).expect("all slots are free still");
    }
}
