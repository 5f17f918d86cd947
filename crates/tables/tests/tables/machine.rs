//! Slot shifting on all processors of a table, against brute force. An accepted job always has its slots by
//! its deadline, no job of the table is late or runs on two processors at once, and orders are kept: over
//! random tables, arrivals, early completions and additions. What a flow that may move all jobs would accept
//! and slot shifting refuses is counted.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use punctual_model::table::{Clock, OnOverrun};
use punctual_model::{Duration, Table, TableJob, TableTask, check};
use punctual_tables::making::{Request, make, replan};
use punctual_tables::slot_shifting::{Machine, Periodic, Served, Stretch, Then, Upcoming, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

fn task(place: usize, period: u64, wcet: u64, deadline: u64) -> TableTask {
    TableTask {
        name: format!("t{place}"),
        thread: None,
        period,
        wcet,
        offset: 0,
        deadline,
        processors: vec![],
        exclusive: false,
        after: vec![],
        on_overrun: OnOverrun::default(),
    }
}

fn request(processors: u32, migration: bool, tasks: Vec<TableTask>) -> Request {
    let slot = Duration::from_ms(3);
    Request { slot, clock: Clock::Monotonic, processors: (1..=processors).collect(), migration, tasks }
}

/// Tables with and without migration, offsets, orders and restrictions; plain ones without the last three.
fn tables(plain: bool) -> impl Strategy<Value = Table> {
    let part = (select(&[3, 4, 6, 12]), any::<(u8, u8, u8)>(), any::<[bool; 3]>());
    let parts = prop::collection::vec(part, 1..7);
    (1..4_u32, any::<bool>(), parts, prop::option::weighted(0.1, 0..7_usize)).prop_filter_map(
        "a table",
        move |(processors, migration, parts, exclusive)| {
            let mut tasks: Vec<TableTask> = Vec::new();
            for (place, (period, (wcet, deadline, offset), [after, restricted, moved])) in
                parts.into_iter().enumerate()
            {
                let deadline = period - u64::from(deadline) % period / 2;
                let wcet = 1 + u64::from(wcet) % deadline / 2;
                let mut next = task(place, period, wcet, deadline);
                next.offset = if moved && !plain { u64::from(offset) % period } else { 0 };
                next.processors = if restricted && !plain { vec![1] } else { vec![] };
                let before = (0..tasks.len()).find(|&it| tasks[it].period == period);
                next.after = before.filter(|_| after && !plain).into_iter().collect();
                next.exclusive = exclusive == Some(place) && !plain;
                tasks.push(next);
                // What is not schedulable with it goes without it.
                if make(&request(processors, migration, tasks.clone())).is_err() {
                    tasks.pop();
                }
            }
            let table = make(&request(processors, migration, tasks)).ok()?;
            (!table.tasks.is_empty()).then_some(table)
        },
    )
}

/// What happens before a slot.
#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    /// A job asks for slots until a deadline from now.
    Arrival(u64, u64),
    /// The job that had this processor's last slot is over.
    Completion(usize),
    /// It becomes known that the job of the table that had a processor's slot so many slots ago was over.
    Known(usize, usize),
    /// A periodic task: slots, period, deadline.
    Addition(Periodic),
    /// An accepted job gives back what it has not got.
    Withdrawal(usize),
    /// A task that was added is removed.
    Removal(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => Just(Event::Nothing),
        4 => (1..9_u64, 0..30_u64).prop_map(|(wcet, deadline)| Event::Arrival(wcet, deadline)),
        2 => (0..3_usize).prop_map(Event::Completion),
        2 => (0..3_usize, 1..6_usize).prop_map(|(place, ago)| Event::Known(place, ago)),
        1 => (1..4_u64, select(&[6, 12, 8]), 1..13_u64, prop_oneof![Just(0), 0..8_u64]).prop_map(
            |(wcet, period, deadline, offset)| {
                let (deadline, offset) = (deadline.min(period), offset.min(period - deadline.min(period)));
                Event::Addition(Periodic { wcet, period, deadline, offset })
            },
        ),
        1 => (0..4_usize).prop_map(Event::Withdrawal),
        1 => (0..2_usize).prop_map(Event::Removal),
    ];
    prop::collection::vec(event, 0..60)
}

/// What has been given, by job.
#[derive(Default)]
struct Books {
    /// Of each job of the table in each repetition: its slots, with their processors.
    planned: BTreeMap<(usize, u64), Vec<(u64, u32)>>,
    /// Those that were over early.
    over: BTreeSet<(usize, u64)>,
    /// Accepted jobs, by processor: deadline and slots that are missing.
    accepted: BTreeMap<(u32, String), (u64, u64)>,
    /// Added tasks: slots by task.
    added: BTreeMap<usize, Vec<u64>>,
}

/// The repetition whose job this slot is for. Within the first, a job's rest may come before it began.
fn repetition(table: &Table, job: usize, now: u64) -> Option<u64> {
    let TableJob { release, deadline, .. } = table.jobs[job];
    let start = now / table.slots * table.slots;
    let inside = |start: u64| (start + release..start + deadline).contains(&now);
    if inside(start) {
        return Some(start);
    }
    // It began in the repetition before, or in the one before that.
    (1..=2)
        .map(|back| start.checked_sub(back * table.slots))
        .find_map(|start| start.filter(|&start| inside(start)))
}

impl Books {
    fn serve(&mut self, table: &Table, now: u64, served: &[Option<Served>]) {
        let mut running = BTreeSet::new();
        for it in served.iter().flatten() {
            match it.work {
                Work::Planned { job, task } => {
                    assert_eq!(table.jobs[job].task, task);
                    assert!(running.insert(job), "job {job} on two processors in slot {now}");
                    let allowed = table.task_of(job).allowed(&table.processors);
                    assert!(allowed.contains(&it.processor), "job {job} on processor {}", it.processor);
                    let Some(start) = repetition(table, job, now) else {
                        // The rest of a job that would have begun before the table.
                        assert!(
                            now < table.slots && table.jobs[job].deadline > table.slots,
                            "job {job} at {now}"
                        );
                        continue;
                    };
                    assert!(!self.over.contains(&(job, start)), "job {job} at {now}, although it is over");
                    self.planned.entry((job, start)).or_default().push((now, it.processor));
                }
                Work::Added(task) => self.added.entry(task).or_default().push(now),
                Work::Aperiodic(job) => {
                    let key = (it.processor, format!("{job:?}"));
                    let (deadline, left) = self.accepted.get_mut(&key).expect("accepted");
                    assert!(now < *deadline && *left > 0, "{key:?} at {now}");
                    *left -= 1;
                    assert_eq!(*left, it.left);
                }
            }
        }
    }

    /// Nothing is late at the beginning of slot `now`.
    fn check(&self, table: &Table, now: u64) {
        for (key, (deadline, left)) in &self.accepted {
            assert!(*deadline > now || *left == 0, "{key:?} lacks {left} slots at {deadline}");
        }
        for (place, job) in table.jobs.iter().enumerate() {
            let starts = (0..).map(|number| number * table.slots);
            for start in starts.take_while(|start| start + job.deadline <= now) {
                let given = self.planned.get(&(place, start)).map_or(0, Vec::len) as u64;
                let is_over = self.over.contains(&(place, start));
                assert!(given == job.slots || is_over, "job {place} of {start} got {given} of {}", job.slots);
            }
        }
    }

    /// Jobs that must be in an order are.
    fn check_order(&self, table: &Table) {
        for (after, job) in table.jobs.iter().enumerate() {
            let number = |place: usize| {
                table.jobs[..place].iter().filter(|it| it.task == table.jobs[place].task).count()
            };
            for &task in &table.task_of(after).after {
                let before = (0..table.jobs.len())
                    .find(|&place| table.jobs[place].task == task && number(place) == number(after))
                    .expect("its counterpart");
                for ((_, start), slots) in self.planned.range((after, 0)..(after + 1, 0)) {
                    let ended = self.planned.get(&(before, *start)).and_then(|slots| slots.iter().max());
                    let began = slots.iter().min().expect("a slot");
                    assert!(ended.is_none_or(|ended| ended.0 < began.0), "{} before {task}", job.task);
                }
            }
        }
    }
}

/// What is foretold is what is served.
fn check_upcoming(machine: &Machine, table: &Table) {
    let mut machine = machine.clone();
    let mut foretold: Vec<_> = table
        .processors
        .iter()
        .map(|&processor| {
            let Upcoming { once, then } = machine.upcoming(processor).expect("a processor of the table");
            let each = |stretch: &Stretch| {
                let &Stretch { slots, work, is_last } = stretch;
                (0..slots).map(move |slot| (work, is_last && slot + 1 == slots)).collect::<Vec<_>>()
            };
            let mut foretold: Vec<_> = once.iter().flat_map(each).collect();
            if let Then::Cycle(cycle) = &then {
                let cycle: Vec<_> = cycle.iter().flat_map(each).collect();
                while foretold.len() < 60 {
                    foretold.extend(&cycle);
                }
            }
            foretold.into_iter()
        })
        .collect();
    for now in machine.now()..machine.now() + 60 {
        let served = machine.next_slot();
        for ((served, foretold), &processor) in served.iter().zip(&mut foretold).zip(&table.processors) {
            match foretold.next() {
                Some(foretold) => {
                    let served = served.map(|served| (Some(served.work), served.is_last));
                    assert_eq!(served.unwrap_or_default(), foretold);
                }
                None => {
                    let job = served.map(|served| match served.work {
                        Work::Planned { job, .. } => job,
                        _ => panic!("{served:?}"),
                    });
                    assert_eq!(table.job_at(processor, now % table.slots), job);
                }
            }
        }
    }
}

/// A processor that does not take what was given back is what it was before.
fn check_restoring(machine: &Machine, table: &Table, job: usize, slot: u64) {
    let mut tried = machine.clone();
    let slack = |machine: &Machine| machine.slack(machine.now() + 50).collect::<Vec<_>>();
    for &processor in &table.processors {
        if let Some(before) = tried.give_back(processor, job, slot) {
            let gained = slack(&tried).into_iter().zip(slack(machine)).any(|(now, then)| now.1 > then.1);
            assert!(gained || !slack(machine).iter().any(|(it, _)| *it == processor), "no slack for it");
            tried.restore(before);
        }
        assert_eq!(tried.upcoming(processor), machine.upcoming(processor));
        assert_eq!(slack(&tried), slack(machine));
    }
}

fn slots(wcet: u64) -> NonZeroU64 {
    NonZeroU64::new(wcet).expect("not zero")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn guarantees_are_kept_on_every_processor(
        (table, events) in (tables(false), events()), keeps_table in any::<bool>(),
    ) {
        prop_assert_eq!(check::table(&table), []);
        let start = if keeps_table { Machine::keeping } else { Machine::new };
        let mut machine = start(&table).expect("a table that was checked");
        let mut books = Books::default();
        let (mut accepted, mut is_plain) = (Vec::new(), keeps_table);
        let mut last: Vec<Option<Served>> = vec![None; table.processors.len()];
        let mut history: Vec<Vec<Option<Served>>> = Vec::new();
        let mut additions = Vec::new();
        let until = events.len() as u64 + 120;
        for now in 0..until {
            match events.get(now as usize).copied().unwrap_or(Event::Nothing) {
                Event::Nothing => {}
                Event::Arrival(wcet, deadline) => {
                    let most = machine.slack(now + deadline).map(|(_, slack)| slack).max().unwrap_or(0);
                    match machine.accept(slots(wcet), now + deadline) {
                        Ok(job) => {
                            prop_assert!(wcet <= most);
                            (accepted, is_plain) = ([accepted, vec![job]].concat(), false);
                            let key = (job.processor, format!("{:?}", job.job));
                            books.accepted.insert(key, (now + deadline, wcet));
                        }
                        Err(refused) => {
                            prop_assert!(most < wcet, "{} of {} free", wcet, most);
                            if let Some(earliest) = refused.earliest_deadline {
                                prop_assert!(machine.slack(earliest).any(|(_, slack)| slack >= wcet));
                                prop_assert!(machine.slack(earliest - 1).all(|(_, slack)| slack < wcet));
                            }
                        }
                    }
                }
                Event::Completion(place) => {
                    if let Some(served) = last.get(place).copied().flatten() {
                        machine.complete(&served);
                        match served.work {
                            Work::Planned { job, .. } => {
                                books.over.extend(repetition(&table, job, now - 1).map(|start| (job, start)));
                            }
                            Work::Aperiodic(job) => {
                                books.accepted.remove(&(served.processor, format!("{job:?}")));
                            }
                            // Its jobs are counted.
                            Work::Added(_) => {}
                        }
                        // A job can be over once.
                        last[place] = None;
                    }
                }
                Event::Known(place, ago) => {
                    let then = history.iter().rev().nth(ago - 1);
                    let had = then.and_then(|served| served.get(place).copied()?);
                    let job = had.and_then(|had| match had.work {
                        Work::Planned { job, .. } => Some(job),
                        _ => None,
                    });
                    // What has a processor for itself keeps its slots.
                    if let Some(job) = job.filter(|&job| !table.task_of(job).exclusive) {
                        let slot = now - ago as u64;
                        check_restoring(&machine, &table, job, slot);
                        for &processor in &table.processors {
                            machine.give_back(processor, job, slot);
                        }
                        books.over.extend(repetition(&table, job, slot).map(|start| (job, start)));
                    }
                }
                Event::Addition(periodic) => {
                    if let Ok(added) = machine.add_periodic(periodic) {
                        let runs = table.runs_on(added.processor);
                        prop_assert!(!runs.iter().any(|run| table.task_of(run.job).exclusive));
                        additions.push((added, periodic));
                        is_plain = false;
                    }
                }
                Event::Withdrawal(place) => {
                    if let Some(job) = accepted.get(place) {
                        machine.withdraw(job);
                        books.accepted.remove(&(job.processor, format!("{:?}", job.job)));
                    }
                }
                Event::Removal(place) => {
                    if place < additions.len() {
                        machine.remove_periodic(&additions.remove(place).0);
                    }
                }
            }
            if now % 7 == 0 {
                check_upcoming(&machine, &table);
            }
            last = machine.next_slot();
            for (served, &processor) in last.iter().zip(&table.processors).filter(|_| is_plain) {
                let Some(served) = served else { continue };
                let planned = table.job_at(processor, now % table.slots);
                let Work::Planned { job, .. } = served.work else { panic!("{served:?}") };
                prop_assert_eq!(Some(job), planned);
            }
            books.serve(&table, now, &last);
            books.check(&table, now + 1);
            history.push(last.clone());
        }
        books.check_order(&table);
        // What was over early, or removed, gets less.
        let completed = events.iter().any(|event| matches!(event, Event::Completion(_) | Event::Removal(_)));
        for (added, periodic) in additions.into_iter().filter(|_| !completed) {
            let Periodic { wcet, period, deadline, offset } = periodic;
            let given = books.added.remove(&added.task).unwrap_or_default();
            let releases = (added.first + offset..).step_by(period as usize);
            for release in releases.take_while(|release| release + deadline <= until) {
                let inside = given.iter().filter(|&&slot| (release..release + deadline).contains(&slot));
                prop_assert_eq!(inside.count() as u64, wcet, "{:?} released at {}", added, release);
            }
        }
    }
}

/// Remaining jobs of the table until slot `until`, for a plan from `now` on.
fn remaining(table: &Table, books: &Books, now: u64, until: u64) -> Vec<TableJob> {
    let mut jobs = Vec::new();
    for (place, job) in table.jobs.iter().enumerate() {
        for start in (0..until).step_by(table.slots as usize).filter(|start| start + job.deadline > now) {
            let given = books.planned.get(&(place, start)).map_or(0, Vec::len) as u64;
            if given < job.slots {
                let release = (start + job.release).max(now) - now;
                let slots = job.slots - given;
                jobs.push(TableJob { task: 0, release, deadline: start + job.deadline - now, slots });
            }
        }
    }
    jobs.extend(books.accepted.values().filter(|(_, left)| *left > 0).map(|&(deadline, slots)| TableJob {
        task: 0,
        release: 0,
        deadline: deadline - now,
        slots,
    }));
    jobs
}

/// How often all processors together have room for a job, if every job may move, and no single one has. The
/// converse never happens.
#[test]
fn what_a_flow_would_accept_is_counted() {
    let mut runner = TestRunner::deterministic();
    let (mut accepted, mut missed, mut refused) = (0, 0, 0);
    for _ in 0..120 {
        let table = tables(true).new_tree(&mut runner).expect("a table").current();
        let events = events().new_tree(&mut runner).expect("events").current();
        let mut machine = Machine::new(&table).expect("a table that was checked");
        let mut books = Books::default();
        for (now, event) in (0..).zip(events) {
            if let Event::Arrival(wcet, deadline) = event {
                let latest = books.accepted.values().map(|&(deadline, _)| deadline).max().unwrap_or(0);
                let until = latest.max(now + deadline).next_multiple_of(table.slots) + table.slots;
                let mut jobs = remaining(&table, &books, now, until);
                jobs.push(TableJob { task: 0, release: 0, deadline, slots: wcet });
                let fits = deadline >= wcet && replan(&jobs, &table.processors, until - now).is_some();
                match machine.accept(slots(wcet), now + deadline) {
                    Ok(job) => {
                        assert!(fits, "{wcet} until {deadline} accepted at {now}");
                        books
                            .accepted
                            .insert((job.processor, format!("{:?}", job.job)), (now + deadline, wcet));
                        accepted += 1;
                    }
                    Err(_) if fits => missed += 1,
                    Err(_) => refused += 1,
                }
            }
            let served = machine.next_slot();
            books.serve(&table, now, &served);
        }
    }
    println!("accepted {accepted}; refused {refused}; refused although a flow would accept {missed}");
    assert!(accepted > 300 && refused > 200, "{accepted} accepted, {refused} refused");
}

/// A job that moves from processor 1 to 2 and is over early gives both back.
#[test]
fn early_completion_gives_back_on_every_processor() {
    let tasks = vec![task(0, 3, 2, 3), task(1, 3, 2, 3), task(2, 3, 2, 3)];
    let table = make(&request(2, true, tasks)).expect("a table");
    let mut machine = Machine::new(&table).expect("a machine");
    assert_eq!(machine.accept(slots(1), 3).map_err(|refused| refused.free), Err(0));
    let first = machine.next_slot();
    let moving = first.iter().flatten().find(|served| {
        let Work::Planned { job, .. } = served.work else { return false };
        let used: BTreeSet<u32> =
            table.runs.iter().filter(|run| run.job == job).map(|run| run.processor).collect();
        used.len() == 2
    });
    let moving = moving.copied().expect("one of them moves");
    assert!(machine.complete(&moving) && !machine.complete(&moving));
    let accepted = machine.accept(slots(1), 3).expect("a slot was given back");
    assert_ne!(accepted.processor, moving.processor);
}

/// What is known late gives back what is not given out yet: a job of 6 slots that was over in its first.
#[test]
fn what_is_given_back_is_counted_and_then_free() {
    let table = make(&request(1, false, vec![task(0, 10, 6, 10)])).expect("a table");
    let mut machine = Machine::keeping(&table).expect("a machine");
    (0..3).for_each(|_| _ = machine.next_slot());
    assert_eq!(machine.accept(slots(6), 10).map_err(|refused| refused.free), Err(4));
    assert!(machine.give_back(1, 0, 0).is_some());
    assert!(machine.give_back(1, 0, 0).is_none(), "it is over already");
    let idle = Stretch { slots: 7, work: None, is_last: false };
    assert_eq!(machine.upcoming(1), Some(Upcoming { once: vec![idle], then: Then::Table }));
    machine.accept(slots(7), 10).expect("the whole rest of the repetition");
}

#[test]
fn exclusive_processors_take_nothing_else() {
    let own = TableTask { exclusive: true, ..task(0, 6, 1, 6) };
    let table = make(&request(1, false, vec![own])).expect("a table");
    let mut machine = Machine::new(&table).expect("a machine");
    let refused = machine.accept(slots(1), 100).expect_err("nothing is open");
    assert_eq!((refused.free, refused.earliest_deadline), (0, None));
    let refused = machine
        .add_periodic(Periodic { wcet: 1, period: 6, deadline: 6, offset: 0 })
        .expect_err("nothing is open")
        .to_string();
    assert_eq!(refused, "every processor is reserved by a task of the table");
}
