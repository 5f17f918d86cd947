//! Tables against the independent checker, and against exhaustive search where the method is said to find a
//! table whenever there is one. Shares nothing with the implementation.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree;
use punctual_model::table::{Clock, Method, OnOverrun};
use punctual_model::{Duration, Percent, Table, TableTask, check};
use punctual_tables::making::{Margin, Refusal, Request, SlotError, Timing, TimingInSlots, in_slots, make};
use std::collections::HashSet;

fn task(name: &str, period: u64, wcet: u64, deadline: u64) -> TableTask {
    TableTask {
        name: name.to_owned(),
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

fn made(request: &Request) -> Table {
    let table = make(request).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(check::table(&table), []);
    assert_eq!(table, make(request).expect("the same again"));
    table
}

/// A job for the search: its task, first slot, slot of its deadline, slots that it needs.
#[derive(Clone, Debug)]
struct Wanted {
    task: usize,
    release: u64,
    deadline: u64,
    slots: u64,
}

fn wanted(request: &Request, slots: u64) -> Vec<Wanted> {
    let jobs = request.tasks.iter().enumerate().flat_map(|(task, it)| {
        (0..slots / it.period).map(move |number| {
            let release = it.offset + number * it.period;
            Wanted { task, release, deadline: release + it.deadline, slots: it.wcet }
        })
    });
    jobs.collect()
}

/// Exhaustive search for a schedule with migration: who runs on which processor, slot after slot. No window
/// may exceed the table.
struct Search<'a> {
    request: &'a Request,
    jobs: Vec<Wanted>,
    dead: HashSet<(u64, Vec<u64>)>,
}

impl Search<'_> {
    fn exists(request: &Request) -> bool {
        let slots = request.tasks.iter().map(|task| task.period).fold(1, |one, other| {
            (1..).map(|times| one * times).find(|slots| slots % other == 0).expect("a multiple")
        });
        let jobs = wanted(request, slots);
        let left = jobs.iter().map(|job| job.slots).collect();
        Search { request, jobs, dead: HashSet::new() }.from(0, left)
    }

    fn from(&mut self, now: u64, left: Vec<u64>) -> bool {
        if left.iter().all(|&left| left == 0) {
            return true;
        }
        let late = |(job, &left): (&Wanted, &u64)| left > job.deadline.saturating_sub(now);
        if self.jobs.iter().zip(&left).any(late) || self.dead.contains(&(now, left.clone())) {
            return false;
        }
        let ready: Vec<usize> =
            (0..left.len()).filter(|&job| left[job] > 0 && self.is_ready(job, now, &left)).collect();
        let found = self.slot(now, &ready, 0, &mut HashSet::new(), left.clone());
        if !found {
            self.dead.insert((now, left));
        }
        found
    }

    fn is_ready(&self, job: usize, now: u64, left: &[u64]) -> bool {
        let it = &self.jobs[job];
        let period = self.request.tasks[it.task].period;
        let must_wait = |(place, other): (usize, &Wanted)| {
            let is_before = self.request.tasks[it.task].after.contains(&other.task);
            let activation = |job: &Wanted| job.release - self.request.tasks[job.task].offset;
            is_before && activation(other) / period == activation(it) / period && left[place] > 0
        };
        it.release <= now && !self.jobs.iter().enumerate().any(must_wait)
    }

    /// Fills the processors one after the other.
    fn slot(
        &mut self,
        now: u64,
        ready: &[usize],
        place: usize,
        running: &mut HashSet<usize>,
        left: Vec<u64>,
    ) -> bool {
        let Some(&processor) = self.request.processors.get(place) else { return self.from(now + 1, left) };
        for &job in ready {
            let allowed = self.request.tasks[self.jobs[job].task].allowed(&self.request.processors);
            if !allowed.contains(&processor) || !running.insert(job) {
                continue;
            }
            let mut left = left.clone();
            left[job] -= 1;
            let found = self.slot(now, ready, place + 1, running, left);
            running.remove(&job);
            if found {
                return true;
            }
        }
        self.slot(now, ready, place + 1, running, left)
    }
}

/// Tasks whose windows lie within their periods, so that none exceeds the table.
fn tasks(processors: u32, order: bool, restricted: bool) -> impl Strategy<Value = Vec<TableTask>> {
    let all: Vec<u32> = (1..=processors).collect();
    let least = if restricted { 1 } else { all.len() };
    let parts = (
        select(&[2, 3, 4, 6]),
        (0..6_u64, 0..6_u64, 0..6_u64),
        subsequence(all.clone(), least..=all.len()),
        any::<[bool; 4]>(),
    );
    prop::collection::vec(parts, 1..5).prop_map(move |parts| {
        let mut tasks: Vec<TableTask> = Vec::new();
        for (place, (period, (wcet, offset, deadline), processors, after)) in parts.into_iter().enumerate() {
            let offset = offset % period;
            let deadline = 1 + deadline % (period - offset);
            let before = (0..place).filter(|&it| order && after[it] && tasks[it].period == period).collect();
            let name = format!("t{place}");
            let wcet = 1 + wcet % deadline;
            tasks.push(TableTask {
                offset,
                processors,
                after: before,
                ..task(&name, period, wcet, deadline)
            });
        }
        tasks
    })
}

/// The same tasks, all of them later by some slots.
fn rotated(request: &Request, by: u64) -> Request {
    let later = |task: &TableTask| TableTask { offset: (task.offset + by) % task.period, ..task.clone() };
    Request { tasks: request.tasks.iter().map(later).collect(), ..request.clone() }
}

fn is_sound(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Overload { processors, tasks, overload, available } => {
            let most = (overload.to - overload.from) * processors.len() as u64;
            overload.needed > *available && *available <= most && !tasks.is_empty()
        }
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// One processor: a table is found if and only if there is one, with any order of tasks.
    #[test]
    fn one_processor_is_exact(tasks in tasks(1, true, false)) {
        let request = request(1, false, tasks);
        match make(&request) {
            Ok(table) => {
                prop_assert_eq!(check::table(&table), []);
                prop_assert_eq!(table.method, Method::Edf);
                prop_assert!(Search::exists(&request));
            }
            Err(refusal) => {
                prop_assert!(is_sound(&refusal), "{refusal}");
                prop_assert!(!Search::exists(&request), "{refusal}");
            }
        }
    }

    /// With migration: the same, for tasks without order, whatever processors they may use.
    #[test]
    fn migration_is_exact((processors, tasks) in (2..4_u32, any::<bool>()).prop_flat_map(|(processors, it)| {
        (Just(processors), tasks(processors, false, it))
    })) {
        let request = request(processors, true, tasks);
        match make(&request) {
            Ok(table) => {
                prop_assert_eq!(check::table(&table), []);
                prop_assert!(Search::exists(&request));
            }
            Err(refusal) => {
                prop_assert!(is_sound(&refusal), "{refusal}");
                prop_assert!(!Search::exists(&request), "{refusal}");
            }
        }
    }

    /// Whether there is a table does not depend on when it begins, and jobs that exceed it are served.
    #[test]
    fn tables_are_circles(
        (processors, tasks) in (1..4_u32).prop_flat_map(|it| (Just(it), tasks(it, false, false))),
        by in 1..12_u64,
    ) {
        let request = request(processors, true, tasks);
        let turned = make(&rotated(&request, by));
        prop_assert_eq!(make(&request).is_ok(), turned.is_ok());
        if let Ok(table) = turned {
            prop_assert_eq!(check::table(&table), []);
        }
    }

    /// Whatever is made obeys the checker: order, restrictions and tasks with a processor of their own, with
    /// migration and without.
    #[test]
    fn every_table_is_valid(
        (processors, tasks) in (1..4_u32).prop_flat_map(|it| (Just(it), tasks(it, true, true))),
        migration: bool,
        exclusive in prop::option::of(0..4_usize),
        by in 0..12_u64,
    ) {
        let mut request = rotated(&request(processors, migration, tasks), by);
        if let Some(task) = exclusive.and_then(|place| request.tasks.get_mut(place)) {
            task.exclusive = true;
        }
        match make(&request) {
            Ok(table) => prop_assert_eq!(check::table(&table), []),
            Err(refusal) => prop_assert!(is_sound(&refusal), "{refusal}"),
        }
    }
}

/// A partition is found if and only if there is one, also where tasks may use some processors only.
#[test]
fn partitions_are_exact() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut searched, mut tried) = (0, 0);
    for (processors, restricted) in [(2, false), (2, true), (3, true)] {
        for _ in 0..700 {
            let tree = tasks(processors, false, restricted).new_tree(&mut runner).expect("tasks");
            let request = request(processors, false, tree.current());
            let exists = partition_exists(&request.tasks, &mut vec![Vec::new(); processors as usize]);
            tried += usize::from(exists);
            match make(&request) {
                Ok(table) => {
                    assert_eq!(check::table(&table), []);
                    assert!(exists && !table.migrates());
                    searched += usize::from(table.method == Method::Search);
                }
                Err(Refusal::Unplaced { is_certain, .. }) => assert!(is_certain && !exists, "{request:?}"),
                Err(_) => assert!(!exists, "{request:?}"),
            }
        }
    }
    println!("{searched} of {tried} partitions were found by the search only");
    assert!(searched > 5 && tried > 800, "{searched} of {tried}");
}

/// By trying all: what the tasks before are on, by processor.
fn partition_exists(left: &[TableTask], on: &mut Vec<Vec<TableTask>>) -> bool {
    let alone = |tasks: &[TableTask]| {
        let free = |task: &TableTask| TableTask { processors: Vec::new(), ..task.clone() };
        Search::exists(&request(1, false, tasks.iter().map(free).collect()))
    };
    let Some((task, rest)) = left.split_first() else { return on.iter().all(|tasks| alone(tasks)) };
    (0..on.len()).any(|bin| {
        let number = bin as u32 + 1;
        let may = task.processors.is_empty() || task.processors.contains(&number);
        may && {
            on[bin].push(task.clone());
            let found = partition_exists(rest, on);
            on[bin].pop();
            found
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// With migration, and a task that has a processor for itself: a table is found if and only if there is
    /// one on the rest, for some processor of its own.
    #[test]
    fn a_processor_for_itself_is_exact(
        (processors, tasks) in (2..4_u32).prop_flat_map(|it| (Just(it), tasks(it, false, true))),
        place in 0..4_usize,
    ) {
        let mut request = request(processors, true, tasks);
        let place = place % request.tasks.len();
        request.tasks[place].exclusive = true;
        let may = |task: &TableTask, number: &u32| {
            task.processors.is_empty() || task.processors.contains(number)
        };
        let exists = (1..=processors).filter(|number| may(&request.tasks[place], number)).any(|own| {
            let others = request.tasks.iter().enumerate().filter(|(other, _)| *other != place);
            let others = others.map(|(_, task)| TableTask {
                processors: (1..=processors).filter(|it| *it != own && may(task, it)).collect(),
                ..task.clone()
            });
            let others: Vec<TableTask> = others.collect();
            let all_have_one = others.iter().all(|task| !task.processors.is_empty());
            all_have_one && Search::exists(&Request { tasks: others, ..request.clone() })
        });
        match make(&request) {
            Ok(table) => {
                prop_assert_eq!(check::table(&table), []);
                prop_assert!(exists);
            }
            Err(refusal) => prop_assert!(!exists, "{refusal}"),
        }
    }
}

/// Three tasks of 2/3 on two processors: no partition, but McNaughton's rule fills both.
#[test]
fn three_tasks_on_two_processors_need_migration() {
    let tasks = vec![task("a", 3, 2, 3), task("b", 3, 2, 3), task("c", 3, 2, 3)];
    let table = made(&request(2, true, tasks.clone()));
    assert_eq!((table.method, table.migrates(), table.slots), (Method::MaximumFlow, true, 3));
    assert_eq!([1, 2].map(|processor| table.busy_slots(processor)), [3, 3]);
    let refusal = make(&request(2, false, tasks)).expect_err("no partition");
    assert_eq!(
        refusal.to_string(),
        "no processor was found for c; on processor 1, where the least is missing, jobs would need 4 slots \
         between slots 0 and 3: 1 too many. No other partition serves all tasks either"
    );
}

/// Where the first row of processors and the second share jobs, wrap-around does not suffice.
#[test]
fn restricted_jobs_are_scheduled_as_an_open_shop() {
    let on = |name: &str, wcet, processors: &[u32]| TableTask {
        processors: processors.to_vec(),
        ..task(name, 4, wcet, 4)
    };
    let tasks = vec![on("a", 4, &[1, 2]), on("b", 4, &[2, 3]), on("c", 2, &[1, 3]), on("d", 2, &[1, 3])];
    let table = made(&request(3, true, tasks.clone()));
    assert_eq!(table.method, Method::MaximumFlow);
    let mut more = tasks;
    more.push(on("e", 1, &[1, 2, 3]));
    let refusal = make(&request(3, true, more)).expect_err("13 slots of 12").to_string();
    assert_eq!(refusal, "the tasks need 3.250 processors, and there are 3: 13 slots in 4");
}

#[test]
fn worst_fit_spreads_and_first_fit_packs() {
    let table = made(&request(2, false, vec![task("a", 10, 3, 10), task("b", 10, 3, 10)]));
    assert_eq!(table.method, Method::WorstFit);
    assert_eq!([1, 2].map(|processor| table.busy_slots(processor)), [3, 3]);
    // 4 + 4 + 2 and 5 + 5; worst fit puts 5 with 4.
    let tasks = [5, 5, 4, 4, 2].map(|wcet| task(&format!("t{wcet}"), 10, wcet, 10));
    let named =
        tasks.into_iter().enumerate().map(|(place, task)| TableTask { name: format!("t{place}"), ..task });
    let table = made(&request(2, false, named.collect()));
    assert_eq!(table.method, Method::FirstFit);
}

/// One slot too many in twelve: EDF misses no deadline in the first repetitions.
#[test]
fn jobs_that_go_on_at_the_beginning_need_no_more_slots_than_there_are() {
    let offset = |offset, task: TableTask| TableTask { offset, ..task };
    let tasks = vec![offset(1, task("a", 12, 5, 12)), offset(7, task("b", 12, 4, 10)), task("c", 3, 1, 3)];
    let table = made(&request(2, false, tasks));
    assert!(table.processors.iter().all(|&processor| !table.runs_on(processor).is_empty()));
}

#[test]
fn an_order_is_kept_with_and_without_migration() {
    let after =
        |name: &str, wcet, after: &[usize]| TableTask { after: after.to_vec(), ..task(name, 12, wcet, 12) };
    let tasks = vec![
        after("sense", 2, &[]),
        after("left", 3, &[0]),
        after("right", 3, &[0]),
        after("act", 2, &[1, 2]),
    ];
    for (processors, migration) in [(1, false), (2, false), (3, true)] {
        made(&request(processors, migration, tasks.clone()));
    }
    let tight: Vec<_> = tasks.iter().map(|task| TableTask { deadline: 6, ..task.clone() }).collect();
    let refusal = make(&request(2, true, tight)).expect_err("7 slots in a row").to_string();
    assert_eq!(
        refusal,
        "sense needs 2 slots after the tasks that it follows and before those that follow it; that leaves it \
         1 slot of its period, from 0 on"
    );
}

#[test]
fn a_task_can_have_a_processor_for_itself() {
    let own = |name: &str, processors: &[u32]| TableTask {
        exclusive: true,
        processors: processors.to_vec(),
        ..task(name, 10, 1, 10)
    };
    // "a" could take 2, but then "b" would have none.
    let tasks = vec![own("a", &[1, 2]), own("b", &[2]), task("c", 5, 5, 5), task("d", 10, 5, 10)];
    let refusal =
        make(&request(3, false, tasks[..].to_vec())).expect_err("c and d need more than processor 3");
    assert_eq!(
        refusal.to_string(),
        "no processor was found for d; on processor 3, where the least is missing, jobs would need 15 slots \
         between slots 0 and 10: 5 too many. No other partition serves all tasks either"
    );
    let table = made(&request(4, true, tasks.clone()));
    assert_eq!([1, 2].map(|processor| table.busy_slots(processor)), [1, 1]);
    let refused = |tasks| make(&request(2, false, tasks)).expect_err("no processor").to_string();
    assert_eq!(refused(tasks), "every processor that c may use is reserved by another task");
    assert_eq!(
        refused(vec![own("a", &[2]), own("b", &[2])]),
        "b needs a processor of its own, and none is left"
    );
}

#[test]
fn a_processor_that_others_need_is_left_to_them() {
    let io = TableTask { processors: vec![2], ..task("io", 10, 2, 10) };
    let safety = TableTask { exclusive: true, ..task("safety", 10, 2, 10) };
    for migration in [false, true] {
        let table = made(&request(2, migration, vec![safety.clone(), io.clone()]));
        assert_eq!([1, 2].map(|processor| table.busy_slots(processor)), [2, 2]);
    }
}

#[test]
fn a_refusal_names_processors_slots_and_excess() {
    let refused = |processors, migration, tasks| {
        make(&request(processors, migration, tasks)).expect_err("too much").to_string()
    };
    let tasks = vec![task("a", 10, 4, 4), task("b", 10, 3, 5), task("c", 20, 1, 20)];
    assert_eq!(
        refused(1, false, tasks.clone()),
        "processor 1: jobs of a and b need 7 slots between slots 0 and 5 and can get 5: 2 too many"
    );
    let more = vec![task("d", 10, 4, 4), task("e", 10, 4, 5), task("f", 10, 1, 9)];
    assert_eq!(
        refused(2, true, [tasks, more].concat()),
        "processors 1 and 2: jobs of a, b, d and e need 15 slots between slots 0 and 5 and can get 10: 5 too \
         many"
    );
    let primes = [97, 89, 83, 79].map(|period| task(&format!("t{period}"), period, 1, period));
    assert_eq!(
        refused(1, false, primes.to_vec()),
        "the hyperperiod would have more than 1048576 slots (periods in slots: t97 97, t89 89, t83 83, t79 \
         79)"
    );
    assert_eq!(
        refused(1, false, vec![task("a", 10, 4, 11)]),
        "table.tasks[0].deadline: expected a number from 1 to 10, found 11"
    );
    assert_eq!(
        refused(1, false, vec![task("a", 2, 2, 2), task("b", 3, 1, 3)]),
        "the tasks need 1.334 processors, and there is 1: 8 slots in 6"
    );
}

#[test]
fn times_become_slots_conservatively() {
    let us = Duration::from_us;
    let timing = |period, wcet, offset, deadline| Timing {
        period: us(period),
        wcet: us(wcet),
        offset: us(offset),
        deadline: us(deadline),
    };
    let slots = |it, shorten| in_slots(it, us(1_000), shorten);
    let later = |period, wcet, offset, deadline, skipped| {
        Ok(TimingInSlots { period, wcet, offset, skipped, deadline })
    };
    let expected = |period, wcet, offset, deadline| later(period, wcet, offset, deadline, 0);
    assert_eq!(slots(timing(10_000, 2_001, 0, 10_000), false), expected(10, 3, 0, 10));
    // From 0.5 ms to 6.4 ms: slots 1 to 6.
    assert_eq!(slots(timing(10_000, 1_000, 500, 5_900), false), expected(10, 1, 1, 5));
    // The third period has begun, and its only whole slots are those of the fourth.
    assert_eq!(slots(timing(10_000, 1_000, 29_500, 10_000), false), later(10, 1, 0, 9, 3));
    assert_eq!(
        slots(timing(10_400, 1_000, 0, 10_400), false),
        Err(SlotError::Period { period: us(10_400), shorter: us(10_000) })
    );
    assert_eq!(slots(timing(10_400, 1_000, 0, 10_400), true), expected(10, 1, 0, 10));
    assert_eq!(
        slots(timing(900, 100, 0, 900), true),
        Err(SlotError::Period { period: us(900), shorter: us(0) })
    );
    assert_eq!(slots(timing(5_000, 100, 0, 6_000), true), Err(SlotError::Deadline));
    assert_eq!(slots(timing(5_000, 1_100, 500, 2_000), true), Err(SlotError::Wcet { needed: 2, slots: 1 }));
    assert_eq!(slots(timing(5_000, 0, 500, 2_000), true), Err(SlotError::Zero("WCET")));
    assert_eq!(Margin(Percent::whole(20)).add_to(Duration::from_ns(11)), Duration::from_ns(14));
    assert_eq!(Margin(Percent::ZERO).add_to(us(7)), us(7));
}
