//! Slot shifting against brute force: EDF of all remaining jobs, slot after slot, which is exact on one
//! processor. Shares nothing with the implementation.

use proptest::prelude::*;
use punctual_tables::slot_shifting::{
    Granted, Interval, JobId, Overload, Owner, Periodic, Plan, PlanError, PlannedJob, Processor,
};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

fn job(task: usize, earliest: u64, deadline: u64, wcet: u64) -> PlannedJob {
    PlannedJob { task, earliest, deadline, wcet }
}

fn slots(wcet: u64) -> NonZeroU64 {
    NonZeroU64::new(wcet).unwrap()
}

/// Whether EDF meets the deadlines of jobs `(release, deadline, slots)` from slot `now` on.
fn is_feasible(now: u64, mut jobs: Vec<(u64, u64, u64)>) -> bool {
    jobs.sort_by_key(|&(_, deadline, _)| deadline);
    let end = jobs.last().map_or(now, |&(_, deadline, _)| deadline);
    for slot in now..end {
        if let Some((_, _, left)) = jobs.iter_mut().find(|(release, _, left)| *release <= slot && *left > 0) {
            *left -= 1;
        }
        if jobs.iter().any(|&(_, deadline, left)| deadline == slot + 1 && left > 0) {
            return false;
        }
    }
    true
}

/// The jobs of a plan whose first begins with slot `start`, for some repetitions.
fn repeated(plan: &Plan, start: u64, times: u64) -> impl Iterator<Item = (usize, u64, u64, u64)> + '_ {
    (0..times).flat_map(move |cycle| {
        let start = start + cycle * plan.length();
        plan.jobs().iter().map(move |job| (job.task, start + job.earliest, start + job.deadline, job.wcet))
    })
}

/// What a run is checked against: every job that is guaranteed, with the slots that it may still need.
#[derive(Default)]
struct Books {
    /// By task and deadline, or by the accepted job.
    planned: BTreeMap<(usize, u64), (u64, u64)>,
    accepted: BTreeMap<JobId, (u64, u64)>,
}

impl Books {
    fn remaining(&self, now: u64) -> Vec<(u64, u64, u64)> {
        let planned = self.planned.iter().map(|(&(_, deadline), &(release, left))| (release, deadline, left));
        let accepted = self.accepted.values().map(|&(deadline, left)| (now, deadline, left));
        planned.chain(accepted).filter(|&(_, _, left)| left > 0).collect()
    }

    fn ran(&mut self, granted: Granted, now: u64) {
        assert!(now < granted.deadline, "slot {now} after the deadline of {granted:?}");
        let left = match granted.owner {
            Owner::Task(task) => {
                let (release, left) = self.planned.get_mut(&(task, granted.deadline)).unwrap();
                assert!(*release <= now, "{granted:?} in slot {now} before its release {release}");
                left
            }
            Owner::Aperiodic => &mut self.accepted.get_mut(&granted.job).unwrap().1,
        };
        *left -= 1;
        assert_eq!(*left, granted.left);
    }

    fn completed(&mut self, granted: Granted) {
        match granted.owner {
            Owner::Task(task) => self.planned.get_mut(&(task, granted.deadline)).unwrap().1 = 0,
            Owner::Aperiodic => self.accepted.get_mut(&granted.job).unwrap().1 = 0,
        }
    }

    /// None is late.
    fn check(&self, now: u64) {
        let late = |deadline: u64, left: u64| deadline <= now && left > 0;
        for (job, &(release, left)) in &self.planned {
            assert!(!late(job.1, left), "{job:?}, released at {release}, lacks {left} slots at {now}");
        }
        for (job, &(deadline, left)) in &self.accepted {
            assert!(!late(deadline, left), "{job:?} lacks {left} slots at its deadline {deadline}");
        }
    }
}

/// A feasible plan of at most 24 slots; tasks number their jobs, so that a task has one job with a deadline.
fn plans() -> impl Strategy<Value = Plan> {
    let windows = prop::collection::vec((0u64..24, 1u64..24, 1u64..5), 0..8);
    (1u64..25, windows).prop_map(|(length, windows)| {
        let mut jobs = Vec::new();
        for (task, (earliest, window, wcet)) in windows.into_iter().enumerate() {
            let earliest = earliest % length;
            let deadline = (earliest + window).min(length);
            jobs.push(job(task, earliest, deadline, wcet.min(deadline - earliest)));
            // What is not feasible with it goes without it.
            if Plan::new(length, jobs.clone()).is_err() {
                jobs.pop();
            }
        }
        Plan::new(length, jobs).unwrap()
    })
}

/// What happens before a slot: a job asks for slots until a deadline from now; or the job that ran completes.
#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    Arrival { wcet: u64, deadline: u64 },
    Completion,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        2 => Just(Event::Nothing),
        2 => (1u64..8, 0u64..60).prop_map(|(wcet, deadline)| Event::Arrival { wcet, deadline }),
        1 => Just(Event::Completion),
    ];
    prop::collection::vec(event, 0..80)
}

/// The task that is added at run time.
const ADDED: usize = usize::MAX;

/// More than the deadlines of all events are away.
const REPETITIONS: u64 = 200;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A job is accepted if and only if all guarantees hold with it; then all of them are kept.
    #[test]
    fn what_is_accepted_is_in_time_and_what_is_refused_cannot_be((plan, events) in (plans(), events())) {
        let mut processor = Processor::new(plan.clone());
        let mut books = Books::default();
        let until = events.len() as u64 + 100;
        for (task, release, deadline, wcet) in repeated(&plan, 0, until.div_ceil(plan.length())) {
            books.planned.insert((task, deadline), (release, wcet));
        }
        let mut last = None;
        for (now, event) in (0..).zip(events.iter().copied()) {
            match (event, last) {
                (Event::Arrival { wcet, deadline }, _) => {
                    let deadline = now + deadline;
                    let with = |deadline| {
                        let mut jobs = books.remaining(now);
                        jobs.push((now, deadline, wcet));
                        deadline > now && is_feasible(now, jobs)
                    };
                    match processor.accept(slots(wcet), deadline) {
                        Ok(id) => {
                            prop_assert!(with(deadline), "accepted at {}: {} until {}", now, wcet, deadline);
                            books.accepted.insert(id, (deadline, wcet));
                        }
                        Err(refused) => {
                            prop_assert!(!with(deadline), "refused in slot {}: {:?}", now, refused);
                            if let Some(earliest) = refused.earliest_deadline.filter(|&slot| slot <= until) {
                                prop_assert!(with(earliest) && !with(earliest - 1), "{:?}", refused);
                            }
                        }
                    }
                }
                (Event::Completion, Some(granted)) => {
                    let granted: Granted = granted;
                    prop_assert_eq!(processor.complete(granted.job), granted.left > 0);
                    books.completed(granted);
                }
                _ => {}
            }
            last = processor.next_slot();
            if let Some(granted) = last {
                books.ran(granted, now);
            }
            books.check(now + 1);
        }
        for now in processor.now()..until {
            if let Some(granted) = processor.next_slot() {
                books.ran(granted, now);
            }
            books.check(now + 1);
        }
    }

    /// Spare capacities that are kept from slot to slot are those of what remains.
    #[test]
    fn slack_is_what_brute_force_finds((plan, events) in (plans(), events())) {
        let mut processor = Processor::new(plan.clone());
        let mut planned: BTreeMap<(usize, u64), (u64, u64)> = repeated(&plan, 0, REPETITIONS)
            .map(|(task, release, deadline, wcet)| ((task, deadline), (release, wcet)))
            .collect();
        for (now, event) in (0..).zip(events) {
            if let Event::Arrival { deadline, .. } = event {
                let deadline = now + deadline;
                let fits = |wcet| {
                    let mut jobs: Vec<_> = planned
                        .iter()
                        .filter(|&(_, &(release, left))| left > 0 && release < now + 120)
                        .map(|(&(_, deadline), &(release, left))| (release, deadline, left))
                        .collect();
                    jobs.push((now, deadline, wcet));
                    is_feasible(now, jobs)
                };
                let most = (1..=deadline - now).take_while(|&wcet| fits(wcet)).count() as u64;
                prop_assert_eq!(processor.slack(deadline), most, "slot {}, deadline {}", now, deadline);
            }
            if let Some(Granted { owner: Owner::Task(task), deadline, .. }) = processor.next_slot() {
                planned.get_mut(&(task, deadline)).unwrap().1 -= 1;
            }
        }
    }

    /// A plan is refused if and only if EDF misses a deadline, and what it says is too much is too much.
    #[test]
    fn plans_are_refused_exactly(
        length in 1u64..25,
        windows in prop::collection::vec((0u64..24, 1u64..24, 1u64..6), 0..8),
    ) {
        let jobs: Vec<_> = windows
            .into_iter()
            .map(|(earliest, window, wcet)| {
                let earliest = earliest % length;
                let deadline = (earliest + window).min(length);
                job(0, earliest, deadline, wcet.min(deadline - earliest))
            })
            .collect();
        let feasible =
            is_feasible(0, jobs.iter().map(|job| (job.earliest, job.deadline, job.wcet)).collect());
        match Plan::new(length, jobs.clone()) {
            Ok(plan) => {
                prop_assert!(feasible);
                // Without other jobs, each slot goes to the job of the schedule.
                let mut processor = Processor::new(plan.clone());
                for slot in 0..length {
                    let run = plan.schedule().iter().find(|run| (run.from..run.to).contains(&slot));
                    let planned = run.map(|run| plan.jobs()[run.job].deadline);
                    prop_assert_eq!(processor.next_slot().map(|granted| granted.deadline), planned);
                }
            }
            Err(PlanError::Overload(Overload { from, to, needed })) => {
                prop_assert!(!feasible);
                let within: u64 = jobs
                    .iter()
                    .filter(|job| job.earliest >= from && job.deadline <= to)
                    .map(|job| job.wcet)
                    .sum();
                prop_assert_eq!(within, needed);
                prop_assert!(needed > to - from);
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    /// A periodic task that is added at run time gets all its jobs, and takes nothing that was guaranteed.
    #[test]
    fn a_periodic_task_is_added_for_good(
        plan in plans(),
        (wcet, period, deadline) in (1u64..6, 1u64..13, 1u64..13),
        offset in prop_oneof![Just(0u64), 0u64..10],
        arrival in (1u64..8, 1u64..60),
        at in 0u64..40,
    ) {
        let mut processor = Processor::new(plan.clone());
        for _ in 0..at {
            processor.next_slot();
        }
        let accepted = processor.accept(slots(arrival.0), at + arrival.1).ok();
        let Ok(first) = processor.add_periodic(ADDED, Periodic { wcet, period, deadline, offset }) else {
            let length = (1..).map(|cycles| cycles * plan.length()).find(|slots| slots % period == 0)
                .unwrap();
            let added = (0..length / period).map(|job| {
                let release = job * period + offset;
                (release, release + deadline, wcet)
            });
            let planned = repeated(&plan, 0, length / plan.length()).map(|(_, release, deadline, wcet)| {
                (release, deadline, wcet)
            });
            prop_assert!(offset + deadline > period || !is_feasible(0, added.chain(planned).collect()));
            return Ok(());
        };
        let mut got: BTreeMap<(Owner, u64), u64> = BTreeMap::new();
        let until = first + 3 * plan.length() * period;
        let begin = processor.now();
        for _ in begin..until {
            if let Some(granted) = processor.next_slot() {
                *got.entry((granted.owner, granted.deadline)).or_default() += 1;
            }
        }
        let slots_of = |owner, deadline| got.get(&(owner, deadline)).copied().unwrap_or(0);
        if accepted.is_some() {
            prop_assert_eq!(slots_of(Owner::Aperiodic, at + arrival.1), arrival.0);
        }
        let releases = (first + offset..).step_by(period as usize);
        for release in releases.take_while(|release| release + deadline < until) {
            prop_assert_eq!(slots_of(Owner::Task(ADDED), release + deadline), wcet);
        }
        for (task, release, deadline, wcet) in repeated(&plan, 0, until / plan.length()) {
            if release >= begin {
                prop_assert_eq!(slots_of(Owner::Task(task), deadline), wcet);
            }
        }
    }
}

/// Two tasks, the second borrows from the interval of the first.
#[test]
fn an_interval_borrows_from_the_one_before() {
    let plan = Plan::new(10, vec![job(0, 1, 5, 1), job(1, 2, 8, 4)]).unwrap();
    let ends: Vec<_> = plan.intervals().into_iter().map(|Interval { end, spare }| (end, spare)).collect();
    // [5, 8) needs one slot more than it has, which [1, 5) lends.
    assert_eq!(ends, [(1, 1), (5, 2), (8, -1), (10, 2)]);
}

#[test]
fn a_refused_job_is_told_the_earliest_deadline() {
    let plan = Plan::new(10, vec![job(0, 0, 10, 8)]).unwrap();
    let mut processor = Processor::new(plan);
    let refused = processor.accept(slots(3), 10).unwrap_err();
    assert_eq!((refused.free, refused.needed, refused.earliest_deadline), (2, 3, Some(11)));
    assert!(processor.accept(slots(3), 11).is_ok());
    assert_eq!(
        refused.to_string(),
        "needs 3 slots until its deadline, and 2 are free; the earliest deadline that would be accepted is \
         the start of slot 11"
    );
}

/// A job that completes early makes room for another.
#[test]
fn early_completion_gives_back() {
    let plan = Plan::new(10, vec![job(0, 0, 10, 8)]).unwrap();
    let mut processor = Processor::new(plan);
    let granted = processor.next_slot().unwrap();
    assert_eq!((granted.owner, granted.left), (Owner::Task(0), 7));
    assert_eq!(processor.slack(10), 2);
    assert!(processor.complete(granted.job));
    assert!(!processor.complete(granted.job));
    assert_eq!(processor.slack(10), 9);
}

#[test]
fn a_periodic_task_does_not_wait_for_jobs_that_are_over() {
    let mut processor = Processor::new(Plan::new(10, vec![job(0, 0, 10, 5)]).unwrap());
    let far = processor.accept(slots(3), 1_000).unwrap();
    let near = processor.accept(slots(2), 25).unwrap();
    let added = Periodic { wcet: 1, period: 10, deadline: 10, offset: 0 };
    assert_eq!(processor.clone().add_periodic(1, added), Ok(1_000));
    assert!(processor.complete(far));
    assert_eq!(processor.clone().add_periodic(1, added), Ok(30));
    assert!(processor.complete(near));
    assert_eq!(processor.slack(1_000), 500);
    // No slot has been given out.
    assert_eq!(processor.clone().add_periodic(1, added), Ok(0));
    processor.next_slot();
    assert_eq!(processor.add_periodic(1, added), Ok(10));
    assert_eq!(processor.slack(1_000), 500 - 99);
    // Another one does not begin before: the plan is another until then.
    let again = Periodic { period: 20, deadline: 20, ..added };
    assert_eq!(processor.add_periodic(2, again), Ok(10));
    assert_eq!(processor.slack(1_010), 505 - 100 - 50);
}

#[test]
fn what_cannot_be_planned_is_explained() {
    let error = |jobs| Plan::new(10, jobs).unwrap_err().to_string();
    assert_eq!(error(vec![job(3, 4, 6, 3)]), "task 3: 3 slots do not fit between slots 4 and 6 of the table");
    assert_eq!(
        error(vec![job(0, 0, 10, 7), job(1, 2, 8, 5)]),
        "jobs need 12 slots between slots 0 and 10: 2 too many"
    );
    let plan = Plan::new(10, vec![job(0, 0, 10, 5)]).unwrap();
    let with = |wcet, period, offset| {
        plan.with_periodic(1, Periodic { wcet, period, deadline: period - offset, offset })
    };
    assert!(matches!(with(3, 5, 0), Err(PlanError::Overload(_))));
    assert_eq!(with(1, 4, 0).unwrap().length(), 20);
    assert_eq!(with(1, 4, 3).unwrap().jobs().iter().filter(|job| job.earliest % 4 == 3).count(), 5);
    assert!(matches!(with(1, 4, 4), Err(PlanError::Window(_))), "nothing is left until the deadline");
}
