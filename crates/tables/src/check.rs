//! Whether a recording shows that every slot was given as its table says. Pure: turns in, violations out.

mod coverage;
mod guests;
mod policy;

use crate::plan::{Clock, Plan};
use coverage::{Bounds, Coverage, Missing};
use guests::Ledger;
use policy::Policy;
use punctual_model::{Duration, Instant, counted};
use punctual_trace::dispatch::{Dispatch, Turn};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Violations that are kept with their details.
const KEPT: usize = 100;

/// A check of one recording, turn by turn.
pub struct Check<'a> {
    plan: &'a Plan,
    tolerance: Tolerance,
    /// The recording's description of its table.
    table: Option<punctual_trace::dispatch::Table>,
    /// By processor, the slot that comes next.
    next: BTreeMap<u32, u64>,
    coverage: Coverage,
    /// When the recording began (CLOCK_MONOTONIC), and whether it was cut off.
    from: Option<Instant>,
    is_cut: bool,
    ledger: Ledger,
    policy: Policy,
    /// Names of guests, by number, and the last one that gave its slots back, with the first of them.
    guests: BTreeMap<u32, String>,
    last_over: Option<(u32, u64)>,
    outcome: Outcome,
}

/// What is no violation yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// How late a processor may be handed over.
    pub error: Duration,
    /// How long a thread may run between two turns: what the kernel does in its name to take it off.
    pub outside: Duration,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Slots that were checked: of turns within which dispatch ended, those that were over.
    pub slots: u64,
    /// Turns that were checked.
    pub turns: u64,
    /// Turns of a task that had a thread and got the processor in time.
    pub given: u64,
    /// Ends of jobs at which the thread was still ready: no violation, the dispatcher took the processor
    /// away.
    pub overruns: u64,
    /// Turns that were left out after an overrun, as the table says.
    pub skipped: u64,
    /// Jobs and periodic tasks that were admitted meanwhile.
    pub guests: u64,
    /// Jobs of the table that ended early and gave slots back.
    pub early: u64,
    /// Whether the recording was cut off: what came then was not checked.
    pub is_cut: bool,
    /// All violations, by kind.
    pub counts: BTreeMap<Kind, u64>,
    /// The first of them.
    pub violations: Vec<Violation>,
}

/// What was not as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A turn of another owner than the table's, or another length.
    Wrong,
    /// Slots that the recording says nothing about.
    Gap,
    /// Slots that the recording has twice, or out of order.
    Twice,
    /// The dispatcher came when the turn was over.
    Missed,
    /// The processor was handed over later than is tolerated.
    Late,
    /// The task had no thread.
    Unserved,
    /// A thread ran outside of its turns for longer than is tolerated.
    Outside,
    /// A job did not get all its slots by its deadline.
    Short,
    /// A job was left out, or was not, against what the table says of overruns.
    Policy,
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub kind: Kind,
    /// The processor.
    pub cpu: u32,
    /// The first slot, counted since the start.
    pub slot: u64,
    /// What, in words.
    pub detail: String,
}

impl Kind {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Wrong => "wrong owner",
            Kind::Gap => "not recorded",
            Kind::Twice => "twice",
            Kind::Missed => "missed",
            Kind::Late => "late",
            Kind::Unserved => "no thread",
            Kind::Outside => "ran outside",
            Kind::Short => "too few slots",
            Kind::Policy => "against the overrun policy",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { kind, cpu, slot, detail } = self;
        write!(f, "slot {slot} on processor {cpu}: {}: {detail}", kind.name())
    }
}

impl Outcome {
    /// Whether every slot was given as planned.
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty() && self.turns > 0
    }

    fn add(&mut self, kind: Kind, turn: &Turn, detail: String) {
        *self.counts.entry(kind).or_default() += 1;
        if self.violations.len() < KEPT {
            self.violations.push(Violation { kind, cpu: turn.cpu, slot: turn.slot, detail });
        }
    }
}

impl<'a> Check<'a> {
    /// Of recordings of this table.
    pub fn new(plan: &'a Plan, tolerance: Tolerance) -> Check<'a> {
        Check {
            plan,
            tolerance,
            table: None,
            next: BTreeMap::new(),
            coverage: Coverage::default(),
            from: None,
            is_cut: false,
            ledger: Ledger::default(),
            policy: Policy::default(),
            guests: BTreeMap::new(),
            last_over: None,
            outcome: Outcome::default(),
        }
    }

    /// When the recording began (CLOCK_MONOTONIC): a table that had begun before was joined. Without, no
    /// table was.
    pub fn began_at(&mut self, from: Instant) {
        self.from = Some(from);
    }

    /// The recording ends before dispatch did.
    pub fn was_cut(&mut self) {
        self.is_cut = true;
    }

    /// Takes a record, in the recording's order.
    ///
    /// # Errors
    /// If the recording is one of another table, in words.
    pub fn record(&mut self, record: &Dispatch) -> Result<(), String> {
        match record {
            Dispatch::Table(table) => {
                if (table.slot, table.slots) != (self.plan.slot, self.plan.slots) {
                    return Err(format!(
                        "the recording is of another table, with {} of {}; this one has {} of {}",
                        counted(table.slots.into(), "slot"),
                        table.slot,
                        self.plan.slots,
                        self.plan.slot
                    ));
                }
                let clock = |is_tai| if is_tai { "CLOCK_TAI" } else { "CLOCK_MONOTONIC" };
                let is_tai = self.plan.clock == Clock::Tai;
                if table.is_tai != is_tai {
                    return Err(format!(
                        "the recording is of another table, on {}; this one is on {}",
                        clock(table.is_tai),
                        clock(is_tai)
                    ));
                }
                // After the kernel has ended its scheduler, there is another one.
                if self.table.is_some() {
                    let broken = self.policy.forget(self.plan);
                    self.against_policy(broken);
                }
                self.table.get_or_insert(*table);
            }
            Dispatch::Task(task) => {
                let planned = self.plan.tasks.get(task.number as usize).map(|planned| &planned.name);
                // Those after the table's tasks are guests.
                if planned.is_none() {
                    self.guests.insert(task.number, task.name.clone());
                }
                if planned.is_some_and(|planned| *planned != task.name) {
                    return Err(format!(
                        "the recording is of another table, whose task {} is {}",
                        task.number, task.name
                    ));
                }
            }
            Dispatch::Turn(turn) => self.turn(turn),
            // The gap in the slots is found at the next turn, if there is one.
            Dispatch::Lost { cpu, count } => self.coverage.lost(*cpu, *count),
            Dispatch::Guest(guest) => {
                // One whose slots were guaranteed anew is the same.
                let is_renewed = self.last_over == Some((guest.number, guest.slot));
                self.outcome.guests += u64::from(!is_renewed);
                self.ledger.guest((**guest).clone(), is_renewed);
            }
            Dispatch::GuestOver { number, slot } => match &self.plan.table {
                Some(table) if (*number as usize) < table.tasks.len() => {
                    self.outcome.early += 1;
                    self.ledger.job_over(table, *number, *slot);
                }
                _ => {
                    self.last_over = Some((*number, *slot));
                    self.ledger.over(*number, *slot);
                }
            },
        }
        Ok(())
    }

    /// The result. What is checked ends where the recording does, on all processors.
    ///
    /// # Errors
    /// If there was no table in the recording, in words.
    pub fn finish(mut self) -> Result<Outcome, String> {
        let table = self.table.ok_or("not a recording of punctual tt run")?;
        let bounds = Bounds { table, from: self.from, is_cut: self.is_cut };
        let broken = self.policy.until(self.plan, u64::MAX);
        self.against_policy(broken);
        self.outcome.is_cut = self.is_cut;
        self.outcome.slots -= self.coverage.not_over(self.plan.slot, &bounds);
        // Without a turn, there is nothing of which the others could be told.
        if self.outcome.turns > 0 {
            let kept = std::mem::take(&mut self.outcome.violations);
            for (cpu, missing) in self.coverage.missing(self.plan, &self.next, &bounds) {
                self.lacks(cpu, missing);
            }
            // What a processor lacks says more than any of many turns.
            self.outcome.violations.extend(kept);
            self.outcome.violations.truncate(KEPT);
        }
        Ok(self.outcome)
    }

    fn lacks(&mut self, cpu: u32, missing: Missing) {
        let (slot, detail) = match missing {
            Missing::Slots(slots) => (slots.start, named(&slots)),
            Missing::Turns(slot, 1) => (slot, "one turn was lost".into()),
            Missing::Turns(slot, count) => (slot, format!("{count} turns were lost")),
        };
        self.outcome.add(Kind::Gap, &Turn { cpu, slot, ..Turn::default() }, detail);
    }

    fn turn(&mut self, turn: &Turn) {
        let lane = self.plan.lanes.iter().position(|lane| lane.processor == turn.cpu);
        self.outcome.turns += 1;
        self.outcome.slots += u64::from(turn.slots);
        self.outcome.overruns += u64::from(turn.is_overrun);
        let next = self.next.insert(turn.cpu, turn.slot + u64::from(turn.slots));
        match next {
            Some(next) if turn.slot > next => {
                self.lacks(turn.cpu, Missing::Slots(next..turn.slot));
            }
            Some(next) if turn.slot < next => {
                self.outcome.add(
                    Kind::Twice,
                    turn,
                    format!("the previous turn ended with slot {}", next - 1),
                );
            }
            _ => {}
        }
        match lane {
            Some(lane) => {
                self.coverage.turn(turn, self.plan.slot, next.is_some_and(|next| turn.slot > next));
                self.owner(lane, turn);
            }
            None => self.outcome.add(Kind::Wrong, turn, "the processor is not in the table".into()),
        }
        self.times(turn);
        self.due();
        let all = self.plan.lanes.iter().map(|lane| self.next.get(&lane.processor).copied().unwrap_or(0));
        let until = all.min().unwrap_or(0);
        let broken = self.policy.turn(self.plan, turn, until);
        self.against_policy(broken);
    }

    fn against_policy(&mut self, broken: Vec<(Turn, &str)>) {
        for (turn, why) in broken {
            let detail = format!("{}: {why}", self.name(turn.task));
            self.outcome.add(Kind::Policy, &turn, detail);
        }
    }

    /// Jobs whose deadlines have passed must have all their slots.
    fn due(&mut self) {
        let Some(table) = &self.plan.table else { return };
        for (cpu, slot, detail) in self.ledger.due(table, &self.next) {
            self.outcome.add(Kind::Short, &Turn { cpu, slot, ..Turn::default() }, detail);
        }
    }

    /// Every slot of the turn must be its owner's. Where guests are served, jobs may shift in their windows.
    fn owner(&mut self, lane: usize, turn: &Turn) {
        let slots = turn.slot..turn.slot + u64::from(turn.slots);
        let found = (turn.task, turn.task.map(|_| turn.job));
        for slot in slots {
            if let Some(table) = &self.plan.table {
                self.ledger.count(table, turn, slot);
                if self.ledger.is_shifted(table, turn.cpu, slot) {
                    if let Err(why) = self.ledger.slot(table, turn, slot) {
                        let detail = format!("{}: {why}", self.name(found.0));
                        return self.outcome.add(Kind::Wrong, &Turn { slot, ..*turn }, detail);
                    }
                    continue;
                }
            }
            let planned = self.plan.owner(lane, slot);
            let planned = (planned.map(|job| job.task), planned.map(|job| job.number));
            let is_given_back = found.0.is_none()
                && planned.1.is_some_and(|job| {
                    self.plan.table.as_ref().is_some_and(|table| self.ledger.is_over(table, job, slot))
                });
            if planned != found && !is_given_back {
                let detail = match found.0 == planned.0 {
                    true => format!("another job of {}", self.name(found.0)),
                    false => format!("{} instead of {}", self.name(found.0), self.name(planned.0)),
                };
                return self.outcome.add(Kind::Wrong, &Turn { slot, ..*turn }, detail);
            }
        }
    }

    fn times(&mut self, turn: &Turn) {
        let name = self.name(turn.task);
        if turn.is_missed {
            return self.outcome.add(Kind::Missed, turn, format!("{name}, noticed {} late", turn.error));
        }
        if turn.error > self.tolerance.error {
            self.outcome.add(Kind::Late, turn, format!("{name}, by {}", turn.error));
        }
        // Before its first slot, a guest may run in slots of nobody.
        let is_guest = turn.task.is_some_and(|task| task as usize >= self.plan.tasks.len());
        if turn.outside > self.tolerance.outside && !is_guest {
            let detail = format!("{name}, for {} since its previous turn", turn.outside);
            self.outcome.add(Kind::Outside, turn, detail);
        }
        if turn.is_skipped {
            self.outcome.skipped += 1;
            return;
        }
        match (turn.task, turn.tid) {
            // A guest's thread may come later, or end early.
            (Some(task), 0) if task as usize >= self.plan.tasks.len() => {}
            (Some(_), 0) => self.outcome.add(Kind::Unserved, turn, name),
            (Some(_), _) => self.outcome.given += 1,
            (None, _) => {}
        }
    }

    fn name(&self, task: Option<u32>) -> String {
        let Some(task) = task else { return "idle".into() };
        let planned = self.plan.tasks.get(task as usize).map(|task| &task.name);
        let known = planned.or_else(|| self.guests.get(&task));
        known.map_or_else(|| format!("guest no. {task}"), String::clone)
    }
}

/// Slots as a violation names them; at least one.
fn named(slots: &Range<u64>) -> String {
    match slots.end - slots.start {
        1 => format!("slot {}", slots.start),
        _ => format!("slots {}–{}", slots.start, slots.end - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::example;
    use punctual_model::Instant;
    use punctual_trace::dispatch::{self, Table};

    const TOLERANCE: Tolerance = Tolerance { error: Duration::from_ns(500), outside: Duration::from_ns(100) };

    /// What a perfect dispatcher records of the first `turns` turns of each lane.
    fn perfect(plan: &Plan, turns: u64) -> Vec<Turn> {
        let lanes = plan.lanes.iter().enumerate();
        let of_lane = |(lane, it): (usize, &crate::plan::Lane)| {
            let cpu = it.processor;
            (0..turns).map(move |number| {
                let decision = plan.decision(lane, number, Instant::from_ns(0));
                let (task, job) =
                    (decision.job.map(|job| job.task), decision.job.map_or(0, |job| job.number));
                let tid = task.map_or(0, |task| task + 100);
                let (slot, slots) = (decision.slot, decision.slots);
                Turn { cpu, slot, slots, task, job, tid, ..Turn::default() }
            })
        };
        lanes.flat_map(of_lane).collect()
    }

    fn checked(plan: &Plan, turns: &[Turn]) -> Outcome {
        let (slot, slots, start) = (plan.slot, plan.slots, Instant::from_ns(0));
        let table = Table { start, slot, slots, is_tai: false, is_sched_ext: false };
        let mut check = Check::new(plan, TOLERANCE);
        check.record(&Dispatch::Table(table)).expect("the same table");
        turns.iter().for_each(|turn| check.record(&Dispatch::Turn(*turn)).expect("a turn"));
        check.finish().expect("a table")
    }

    fn kinds(outcome: &Outcome) -> Vec<Kind> {
        outcome.counts.keys().copied().collect()
    }

    #[test]
    fn a_perfect_recording_is_clean() {
        let plan = example();
        let outcome = checked(&plan, &perfect(&plan, 9));
        assert!(outcome.is_clean(), "{outcome:?}");
        assert_eq!((outcome.turns, outcome.given), (18, 8));
        assert!(!checked(&plan, &[]).is_clean(), "an empty recording proves nothing");
    }

    #[test]
    fn every_kind_of_violation_is_found() {
        let plan = example();
        let good = perfect(&plan, 9);
        let changed = |change: &dyn Fn(&mut Turn)| {
            let mut turns = good.clone();
            change(&mut turns[4]);
            kinds(&checked(&plan, &turns))
        };
        assert_eq!(changed(&|turn| turn.task = Some(1)), [Kind::Wrong]);
        assert_eq!(changed(&|turn| turn.job += 1), [Kind::Wrong]);
        assert_eq!(changed(&|turn| turn.slots += 1), [Kind::Wrong, Kind::Twice]);
        assert_eq!(changed(&|turn| turn.slots -= 1), [Kind::Gap]);
        assert_eq!(changed(&|turn| turn.cpu = 2), [Kind::Wrong, Kind::Gap]);
        assert_eq!(changed(&|turn| turn.is_missed = true), [Kind::Missed]);
        assert_eq!(changed(&|turn| turn.error = Duration::from_ns(501)), [Kind::Late]);
        assert_eq!(changed(&|turn| turn.outside = Duration::from_ns(101)), [Kind::Outside]);
        assert_eq!(changed(&|turn| turn.tid = 0), [Kind::Unserved]);
        let mut turns = good.clone();
        turns.remove(3);
        assert_eq!(kinds(&checked(&plan, &turns)), [Kind::Gap]);
    }

    #[test]
    fn what_a_processor_lacks_is_reported() {
        let plan = Plan { slot: Duration::from_ms(1), ..example() };
        let all = perfect(&plan, 12);
        let lacking = |is_kept: &dyn Fn(&Turn) -> bool| {
            let kept: Vec<Turn> = all.iter().copied().filter(is_kept).collect();
            let outcome = checked(&plan, &kept);
            assert_eq!(outcome.counts.values().sum::<u64>(), outcome.violations.len() as u64);
            outcome.violations.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let nothing = Vec::<String>::new();
        // Twelve turns are three repetitions on one processor, and four on the other.
        assert_eq!(lacking(&|turn| turn.slot < 30), nothing);
        let short = lacking(&|_| true);
        assert_eq!(short, ["slot 30 on processor 1: not recorded: slots 30–36"]);
        let none = lacking(&|turn| turn.cpu == 1);
        assert_eq!(none, ["slot 0 on processor 3: not recorded: slots 0–25"]);
        let late = lacking(&|turn| turn.slot < 30 && (turn.cpu == 3 || turn.slot >= 10));
        assert_eq!(late, ["slot 0 on processor 1: not recorded: slots 0–9"]);
        let between = lacking(&|turn| turn.slot < 30 && (turn.cpu == 3 || turn.slot != 14));
        assert_eq!(between, ["slot 14 on processor 1: not recorded: slot 14"]);
    }

    /// Ten slots of which a job of one task has five.
    fn planned() -> Plan {
        use punctual_model::table::{Clock, Method, OnOverrun};
        use punctual_model::{Table, TableJob, TableRun, TableTask};
        let task = TableTask {
            name: "a".into(),
            thread: None,
            period: 10,
            wcet: 5,
            offset: 0,
            deadline: 10,
            processors: Vec::new(),
            exclusive: false,
            after: Vec::new(),
            on_overrun: OnOverrun::Continue,
        };
        let table = Table {
            slot_ns: Duration::from_ms(1),
            slots: 10,
            clock: Clock::Monotonic,
            processors: vec![1],
            method: Method::Other,
            tasks: vec![task],
            jobs: vec![TableJob { task: 0, release: 0, deadline: 10, slots: 5 }],
            runs: vec![TableRun { processor: 1, from: 0, to: 5, job: 0 }],
        };
        let head = crate::example::head(1_000_000, 10, &["a"]);
        let head = Plan { table: Some(std::sync::Arc::new(table)), ..head };
        let runs = [crate::Run { processor: 1, from: 0, to: 5, job: 0 }];
        Plan::new(head, &[1], &runs, &[crate::Planned { task: 0, release: 0 }]).expect("a plan")
    }

    /// Slots of processor 1, with a thread if they have an owner.
    fn turn(slot: u64, slots: u32, task: Option<u32>) -> Dispatch {
        let tid = task.map_or(0, |task| task + 100);
        Dispatch::Turn(Turn { cpu: 1, slot, slots, task, tid, ..Turn::default() })
    }

    fn begins(plan: &Plan) -> Dispatch {
        let (slot, slots, start) = (plan.slot, plan.slots, Instant::from_ns(0));
        Dispatch::Table(Table { start, slot, slots, is_tai: false, is_sched_ext: false })
    }

    #[test]
    fn slots_of_a_job_that_ended_early_may_stay_empty_or_go_to_guests() {
        let plan = planned();
        let checked = |records: &[Dispatch]| {
            let mut check = Check::new(&plan, TOLERANCE);
            check.record(&begins(&plan)).expect("the same table");
            records.iter().for_each(|record| check.record(record).expect("a record"));
            check.finish().expect("a table")
        };
        let over = Dispatch::GuestOver { number: 0, slot: 2 };
        let rest = [turn(2, 8, None), turn(10, 5, Some(0)), turn(15, 15, None)];
        let early = |first: &[Dispatch]| checked(&[first, &rest[..]].concat());
        let outcome = early(&[over.clone(), turn(0, 2, Some(0))]);
        assert_eq!(kinds(&outcome), [Kind::Wrong], "the third repetition has no job: {outcome:?}");
        assert_eq!((outcome.early, outcome.violations[0].slot), (1, 20));
        assert_eq!(early(&[turn(0, 2, Some(0))]).violations[0].slot, 2, "nothing was given back");
        let later = Dispatch::GuestOver { number: 0, slot: 3 };
        assert_eq!(early(&[later, turn(0, 2, Some(0))]).violations[0].slot, 2, "not yet");
        // A guest gets them; the job lacks them, which is no violation.
        let guest = |slots| {
            let name = "guest".to_owned();
            let guest = dispatch::Guest { number: 1, cpu: 1, slot: 2, deadline: 8, slots, period: 0, name };
            Dispatch::Guest(Box::new(guest))
        };
        let turns = |slots: u32| {
            let mut turns = vec![
                turn(0, 2, Some(0)),
                turn(2, slots, Some(1)),
                turn(2 + u64::from(slots), 8 - slots, None),
            ];
            (1..5).for_each(|at| turns.extend([turn(10 * at, 5, Some(0)), turn(10 * at + 5, 5, None)]));
            turns
        };
        let all = [vec![over, guest(8)], turns(8)].concat();
        assert!(checked(&all).is_clean(), "{:?}", checked(&all));
        assert_eq!(kinds(&checked(&all[1..])), [Kind::Short], "the job was not over");
    }

    #[test]
    fn slots_without_a_thread_are_guaranteed_anew() {
        let plan = planned();
        let guest = |slot, slots| {
            let name = "guest".to_owned();
            let deadline = 20 - slot;
            Dispatch::Guest(Box::new(dispatch::Guest {
                number: 1,
                cpu: 1,
                slot,
                deadline,
                slots,
                period: 0,
                name,
            }))
        };
        let without = |from, slots| match turn(from, slots, Some(1)) {
            Dispatch::Turn(turn) => Dispatch::Turn(Turn { tid: 0, ..turn }),
            other => other,
        };
        // It has its thread from slot 7 on.
        let checked = |anew: u32| {
            let mut records = vec![begins(&plan), guest(5, 4), turn(0, 5, Some(0)), without(5, 2)];
            records.extend([Dispatch::GuestOver { number: 1, slot: 7 }, guest(7, anew)]);
            records.extend([turn(7, 3, Some(1)), turn(10, 5, Some(0)), turn(15, anew - 3, Some(1))]);
            records.push(turn(12 + u64::from(anew), 8 - anew, None));
            records.extend([turn(20, 5, Some(0)), turn(25, 5, None)]);
            records.retain(|record| !matches!(record, Dispatch::Turn(turn) if turn.slots == 0));
            let mut check = Check::new(&plan, TOLERANCE);
            records.iter().for_each(|record| check.record(record).expect("a record"));
            check.finish().expect("a table")
        };
        assert!(checked(4).is_clean(), "{:?}", checked(4));
        let outcome = checked(3);
        assert_eq!(kinds(&outcome), [Kind::Short], "{outcome:?}");
        assert_eq!(outcome.violations[0].detail, "guest got 0 of 4 with its thread, and 3 anew");
    }

    #[test]
    fn a_processor_stays_shifted_until_the_table_begins_anew() {
        let plan = planned();
        let name = "guest".to_owned();
        let guest = dispatch::Guest { number: 1, cpu: 1, slot: 0, deadline: 3, slots: 3, period: 0, name };
        let mut check = Check::new(&plan, TOLERANCE);
        let mut records = vec![begins(&plan), Dispatch::Guest(Box::new(guest))];
        // The guest's deadline has passed when the job gets its slots, later than the table says.
        records.extend([turn(0, 3, Some(1)), turn(3, 5, Some(0)), turn(8, 2, None)]);
        let repetition = |slot| [turn(slot, 5, Some(0)), turn(slot + 5, 5, None)];
        records.extend([10, 20, 30].into_iter().flat_map(repetition));
        records.push(turn(40, 2, None));
        records.iter().for_each(|record| check.record(record).expect("a record"));
        let outcome = check.finish().expect("a table");
        let found: Vec<_> = outcome.violations.iter().map(|it| (it.kind, it.slot)).collect();
        assert_eq!(found, [(Kind::Wrong, 40)], "only the last repetition is not the table's");
    }

    #[test]
    fn a_periodic_guest_with_an_offset_is_served_from_the_beginning_of_its_first_period() {
        let plan = planned();
        let name = "guest".to_owned();
        let guest = dispatch::Guest { number: 1, cpu: 1, slot: 12, deadline: 3, slots: 1, period: 10, name };
        let mut check = Check::new(&plan, TOLERANCE);
        let mut records = vec![begins(&plan), Dispatch::Guest(Box::new(guest))];
        let shifted = |at: u64, guest: u64| {
            [
                turn(at, guest as u32, Some(0)),
                turn(at + guest, 1, Some(1)),
                turn(at + guest + 1, 5 - guest as u32, Some(0)),
                turn(at + 6, 4, None),
            ]
        };
        records.extend([turn(0, 5, Some(0)), turn(5, 5, None)]);
        records.extend([10, 20].into_iter().flat_map(|at| shifted(at, 3)));
        // The third job begins before its release.
        records.extend(shifted(30, 1));
        records.iter().for_each(|record| check.record(record).expect("a record"));
        let outcome = check.finish().expect("a table");
        assert_eq!(kinds(&outcome)[0], Kind::Wrong, "{outcome:?}");
        assert_eq!(outcome.violations[0].slot, 31, "{outcome:?}");
    }

    #[test]
    fn slots_that_were_not_over_when_dispatch_ended_are_not_counted() {
        let plan = planned();
        let checked = |at_us: u64, slots: u32| {
            let mut check = Check::new(&plan, TOLERANCE);
            check.record(&begins(&plan)).expect("the same table");
            let ended = |turn: Dispatch, at| match turn {
                Dispatch::Turn(turn) => Dispatch::Turn(Turn { at: Instant::from_ns(at), ..turn }),
                other => other,
            };
            check.record(&ended(turn(0, 5, Some(0)), 5_000_000)).expect("a turn");
            check.record(&ended(turn(5, slots, None), at_us * 1_000)).expect("a turn");
            let outcome = check.finish().expect("a table");
            assert!(outcome.is_clean(), "{outcome:?}");
            outcome.slots
        };
        assert_eq!(checked(10_000, 5), 10);
        assert_eq!(checked(9_960, 5), 10, "accounts are taken before the end");
        assert_eq!(checked(9_000, 5), 9);
        assert_eq!(checked(7_300, 5), 7, "as it was recorded once");
        assert_eq!(checked(7_300, 3), 7);
        assert_eq!(checked(5_100, 1), 5);
    }

    #[test]
    fn a_recording_of_another_table_is_refused() {
        let plan = example();
        let (slot, start) = (plan.slot, Instant::from_ns(0));
        let other = Table { start, slot, slots: 11, is_tai: false, is_sched_ext: false };
        let refused = |table| {
            let mut check = Check::new(&plan, TOLERANCE);
            check.record(&Dispatch::Table(table)).expect_err("refused")
        };
        assert!(refused(other).contains("another table"));
        let tai = Table { slots: plan.slots, is_tai: true, ..other };
        assert!(refused(tai).contains("on CLOCK_TAI; this one is on CLOCK_MONOTONIC"));
        Check::new(&plan, TOLERANCE).finish().expect_err("no table");
    }
}
