//! The section `table`: what is refused when it is read, and what the checker finds in what was read.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use punctual_model::check::{self, JobName, TableViolation};
use punctual_model::table::{Clock, Method, OnOverrun, Table, TableJob, TableRun, TableTask, ThreadPattern};
use punctual_model::{Duration, TimingModel};
use serde_json::{Value, json};

fn pattern() -> impl Strategy<Value = ThreadPattern> {
    let glob = || option::of(".{0,5}");
    (glob(), glob(), glob()).prop_map(|(comm, command, cgroup)| ThreadPattern { comm, command, cgroup })
}

fn task(slots: u64) -> impl Strategy<Value = TableTask> {
    let divisors: Vec<u64> = (1..=slots).filter(|period| slots % period == 0).collect();
    let on_overrun = select(&[OnOverrun::Continue, OnOverrun::Skip, OnOverrun::Stop, OnOverrun::Tell]);
    let rest = (any::<[u8; 3]>(), any::<[bool; 3]>(), option::of(pattern()), on_overrun);
    (select(divisors), rest).prop_map(|(period, (parts, [all, exclusive, after], thread, on_overrun))| {
        let deadline = 1 + u64::from(parts[0]) % period;
        TableTask {
            name: String::new(),
            thread,
            period,
            wcet: 1 + u64::from(parts[1]) % deadline,
            offset: u64::from(parts[2]) % period,
            deadline,
            processors: if all { vec![] } else { vec![3] },
            exclusive,
            after: if after { vec![0] } else { vec![] },
            on_overrun,
        }
    })
}

/// Parts that fit together; whether jobs get their slots is left to chance.
pub fn section() -> impl Strategy<Value = Table> {
    let method = select(&[
        Method::Edf,
        Method::MaximumFlow,
        Method::FirstFit,
        Method::WorstFit,
        Method::Search,
        Method::Other,
    ]);
    let head = (1..u64::MAX / 50, method, any::<bool>());
    let tasks = (1..25_u64).prop_flat_map(|slots| (Just(slots), vec(task(slots), 0..4)));
    let cuts = || vec((0..4_u64, 1..4_u64, any::<usize>()), 0..5);
    (head, tasks, [cuts(), cuts()]).prop_map(|((slot, method, tai), (slots, mut tasks), cuts)| {
        for index in 0..tasks.len() {
            tasks[index].name = format!("t{index}");
            if index == 0 || tasks[0].period != tasks[index].period {
                tasks[index].after.clear();
            }
        }
        let jobs: Vec<TableJob> =
            tasks.iter().enumerate().flat_map(|(place, task)| jobs(place, task, slots)).collect();
        let runs = [1, 3]
            .into_iter()
            .zip(cuts)
            .flat_map(|(processor, cuts)| runs(processor, &cuts, slots, jobs.len()));
        Table {
            slot_ns: Duration::from_ns(slot),
            slots,
            clock: if tai { Clock::Tai } else { Clock::Monotonic },
            processors: vec![1, 3],
            method,
            runs: runs.collect(),
            tasks,
            jobs,
        }
    })
}

fn jobs(place: usize, task: &TableTask, slots: u64) -> Vec<TableJob> {
    let job = |number| {
        let release = task.offset + number * task.period;
        TableJob { task: place, release, deadline: release + task.deadline, slots: task.wcet }
    };
    (0..slots / task.period).map(job).collect()
}

fn runs(processor: u32, cuts: &[(u64, u64, usize)], slots: u64, jobs: usize) -> Vec<TableRun> {
    let mut now = 0;
    let mut runs = Vec::new();
    for (gap, length, job) in cuts {
        let (from, to) = (now + gap, (now + gap + length).min(slots));
        if jobs > 0 && from < to {
            runs.push(TableRun { processor, from, to, job: job % jobs });
        }
        now = now + gap + length;
    }
    runs
}

/// Ten slots on processors 1 and 2: `a` runs in the first two, `b` after it, `c` migrates, `d` wraps.
fn example() -> Value {
    json!({
        "format": "punctual.timing-model", "version": 2, "clock": "CLOCK_MONOTONIC",
        "table": {
            "slot_ns": 3_000_000, "slots": 10, "clock": "CLOCK_MONOTONIC", "processors": [1, 2],
            "method": "maximum_flow",
            "tasks": [
                {"name": "a", "period": 5, "wcet": 2, "deadline": 5},
                {"name": "b", "period": 5, "wcet": 1, "deadline": 5, "after": [0], "processors": [1]},
                {"name": "c", "period": 10, "wcet": 4, "deadline": 8, "on_overrun": "stop",
                 "thread": {"comm": "c*"}},
                {"name": "d", "period": 10, "wcet": 2, "offset": 8, "deadline": 4},
            ],
            "jobs": [
                {"task": 0, "release": 0, "deadline": 4, "slots": 2},
                {"task": 0, "release": 5, "deadline": 9, "slots": 2},
                {"task": 1, "release": 2, "deadline": 5, "slots": 1},
                {"task": 1, "release": 7, "deadline": 10, "slots": 1},
                {"task": 2, "release": 0, "deadline": 8, "slots": 4},
                {"task": 3, "release": 8, "deadline": 12, "slots": 2},
            ],
            "runs": [
                {"processor": 1, "from": 0, "to": 2, "job": 0},
                {"processor": 1, "from": 2, "to": 3, "job": 2},
                {"processor": 1, "from": 5, "to": 7, "job": 1},
                {"processor": 1, "from": 7, "to": 8, "job": 3},
                {"processor": 1, "from": 9, "to": 10, "job": 5},
                {"processor": 2, "from": 0, "to": 1, "job": 5},
                {"processor": 2, "from": 2, "to": 6, "job": 4},
            ],
        },
    })
}

fn read(document: &Value) -> Table {
    TimingModel::from_json(&document.to_string()).expect("valid").table.expect("a table")
}

fn changed(changes: &[(&str, Value)]) -> Value {
    let mut document = example();
    for (place, value) in changes {
        let (parent, name) = place.rsplit_once('/').expect("a pointer");
        let parent = document.pointer_mut(&format!("/table{parent}")).expect(place);
        match parent {
            Value::Array(items) if name == "-" => items.push(value.clone()),
            Value::Array(items) => items[name.parse::<usize>().expect("an index")] = value.clone(),
            parent => parent[name] = value.clone(),
        }
    }
    document
}

#[test]
fn a_table_is_read_and_answers() {
    let table = read(&example());
    assert_eq!(table.length(), Duration::from_ms(30));
    assert_eq!(check::table(&table), []);
    assert_eq!([0, 2, 3, 4, 9].map(|slot| table.job_at(1, slot)), [Some(0), Some(2), None, None, Some(5)]);
    assert_eq!([0, 1, 5, 6].map(|slot| table.job_at(2, slot)), [Some(5), None, Some(4), None]);
    assert_eq!([1, 2, 3].map(|processor| table.busy_slots(processor)), [7, 5, 0]);
    assert!(table.migrates());
    assert_eq!(table.task_of(3).name, "b");
    assert_eq!(
        [8, 9, 0, 1, 2].map(|slot| table.jobs[5].unwrapped(slot, 10)),
        [Some(8), Some(9), Some(10), Some(11), None]
    );
    assert_eq!(table.tasks[1].allowed(&table.processors), [1]);
    assert_eq!(table.tasks[0].allowed(&table.processors), [1, 2]);
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    for (place, value, problem) in [
        ("/slot_ns", json!(0), "table.slot_ns: expected a number greater than zero"),
        (
            "/slot_ns",
            json!(1_u64 << 63),
            "table.slot_ns: expected a number from 1 to 922337203685477580, found 9223372036854775808",
        ),
        ("/slots", json!(0), "table.slots: expected a number from 1 to 1048576, found 0"),
        (
            "/slots",
            json!(11),
            "table.tasks[0].period: expected a divisor of the table's `slots` (11), found 5",
        ),
        ("/clock", json!("CLOCK_REALTIME"), "table.clock: expected"),
        ("/processors", json!([]), "table.processors: expected at least one processor"),
        ("/processors", json!([2, 1]), "table.processors[1]: expected more than the number before (2)"),
        ("/method", json!("luck"), "table.method: expected one of `edf`, "),
        ("/tasks/0/period", json!(20), "tasks[0].period: expected a number from 1 to 10"),
        ("/tasks/0/deadline", json!(6), "tasks[0].deadline: expected a number from 1 to 5, found 6"),
        ("/tasks/0/wcet", json!(0), "tasks[0].wcet: expected a number from 1 to 5, found 0"),
        ("/tasks/0/offset", json!(5), "tasks[0].offset: expected a number from 0 to 4, found 5"),
        ("/tasks/0/processors", json!([7]), "tasks[0].processors[0]: expected a processor of the table's"),
        ("/tasks/0/on_overrun", json!("cry"), "tasks[0].on_overrun: expected"),
        ("/tasks/0/name", json!("b"), "tasks[1].name: expected a unique name, found \"b\""),
        ("/tasks/0/name", json!(""), "tasks[0].name: expected a unique name"),
        ("/tasks/1/after", json!([4]), "tasks[1].after[0]: expected the place of a task, up to 3, found 4"),
        ("/tasks/1/after", json!([2]), "tasks[1].after[0]: expected a task with the same period (5)"),
        ("/tasks/1/after", json!([1]), "tasks[1].after: expected tasks that need not wait for this one"),
        ("/tasks/0/after", json!([1]), "tasks[0].after: expected tasks that need not wait for this one"),
        ("/jobs/0/task", json!(4), "jobs[0].task: expected the place of a task"),
        ("/jobs/0/slots", json!(5), "jobs[0].slots: expected a number from 1 to 4"),
        ("/jobs/0/release", json!(4), "jobs[0].release: expected a number from 0 to 3, found 4"),
        ("/jobs/0/deadline", json!(21), "jobs[0].deadline: expected a number from 1 to 20"),
        ("/jobs/0/deadline", json!(9), "jobs[0].release: expected a number from 4 to 8, found 0"),
        ("/jobs/0/release", json!(-1), "jobs[0].release: "),
        ("/jobs/1/release", json!(5.5), "jobs[1].release: "),
        ("/jobs/1/task", json!(3), "jobs[2]: expected one that comes after"),
        ("/runs/0/processor", json!(3), "runs[0].processor: expected a processor of the table's"),
        ("/runs/0/job", json!(6), "runs[0].job: expected the place of a job, up to 5, found 6"),
        ("/runs/0/to", json!(11), "runs[0].to: expected a number from 1 to 10"),
        ("/runs/0/from", json!(2), "runs[0].from: expected a number from 0 to 1"),
        ("/runs/0/processor", json!(2), "runs[1]: expected one that comes after"),
    ] {
        let error = TimingModel::from_json(&changed(&[(place, value.clone())]).to_string());
        let error = error.expect_err(place).to_string();
        assert!(error.contains(problem), "{place} = {value}: {error}");
    }
}

/// What is changed in the example, and what the checker then says.
type Case<'a> = (&'a [(&'a str, Value)], &'a [&'a str]);

fn violations(changes: &[(&str, Value)]) -> Vec<String> {
    check::table(&read(&changed(changes))).iter().map(TableViolation::to_string).collect()
}

#[test]
fn the_checker_finds_every_violation() {
    let run = |processor: u32, from: u64, to: u64, job: usize| -> Value {
        json!({"processor": processor, "from": from, "to": to, "job": job})
    };
    let cases: [Case; 12] = [
        (&[("/runs/0/to", json!(1))], &["job 0 of a needs 2 slots and gets 1"]),
        (
            &[("/tasks/0/wcet", json!(1)), ("/runs/0/to", json!(1)), ("/runs/2/to", json!(6))],
            &["job 0 of a needs 1 slot and gets 2", "job 1 of a needs 1 slot and gets 2"],
        ),
        (
            &[
                ("/runs/2", run(1, 5, 6, 1)),
                ("/runs/3", run(1, 7, 8, 3)),
                ("/runs/4", run(1, 9, 10, 1)),
                ("/jobs/5/slots", json!(1)),
            ],
            &[
                "job 0 of d needs 2 slots and gets 1",
                "job 1 of a has slot 9 of processor 1, which is outside its window",
            ],
        ),
        (
            &[("/runs/1", run(1, 1, 2, 2)), ("/jobs/2/release", json!(1))],
            &[
                "slot 1 of processor 1 belongs to job 0 of a and to job 0 of b",
                "job 0 of b starts before job 0 of a has ended",
            ],
        ),
        (
            &[("/runs/0/to", json!(1)), ("/runs/5", run(2, 0, 1, 0))],
            &["job 0 of d needs 2 slots and gets 1", "job 0 of a has slot 0 on processors 1 and 2"],
        ),
        (
            &[("/runs/1", run(1, 3, 4, 4)), ("/runs/6", run(2, 3, 6, 4))],
            &["job 0 of b needs 1 slot and gets 0", "job 0 of c has slot 3 on processors 1 and 2"],
        ),
        (
            &[("/tasks/0/processors", json!([2]))],
            &[
                "job 0 of a runs on processor 1, which its task may not use",
                "job 1 of a runs on processor 1, which its task may not use",
            ],
        ),
        (&[("/tasks/2/exclusive", json!(true))], &["d runs on processor 2, which is reserved by c"]),
        (
            &[("/tasks/1/exclusive", json!(true))],
            &[
                "a runs on processor 1, which is reserved by b",
                "d runs on processor 1, which is reserved by b",
            ],
        ),
        (
            &[("/tasks/0/offset", json!(1))],
            &[
                "job 0 of a may run in [0, 4), its activation only in [1, 6)",
                "job 1 of a may run in [5, 9), its activation only in [6, 11)",
            ],
        ),
        (
            &[("/tasks/1/after", json!([])), ("/tasks/0/after", json!([1]))],
            &[
                "job 0 of a starts before job 0 of b has ended",
                "job 1 of a starts before job 1 of b has ended",
            ],
        ),
        (
            &[("/tasks/2/period", json!(5)), ("/tasks/2/deadline", json!(5)), ("/jobs/4/deadline", json!(5))],
            &[
                "c has 1 job, but 2 periods",
                "job 0 of c has slot 5 of processor 2, which is outside its window",
            ],
        ),
    ];
    for (changes, expected) in cases {
        assert_eq!(violations(changes), expected, "{changes:?}");
    }
}

#[test]
fn violations_name_jobs_by_number() {
    let found = check::table(&read(&changed(&[("/runs/3/to", json!(9))])));
    let job = JobName { task: "b".to_owned(), number: 1 };
    assert_eq!(found, [TableViolation::Slots { job, needed: 1, given: 2 }]);
}

#[test]
fn tables_are_not_merged() {
    let model = TimingModel::from_json(&example().to_string()).expect("valid");
    let error = model.clone().merge(model.clone()).expect_err("two tables").to_string();
    assert!(error.starts_with("two tables cannot be merged"), "{error}");
    let none = TimingModel::new("CLOCK_MONOTONIC");
    assert_eq!(none.merge(model.clone()).map(|merged| merged.table), Ok(model.table));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The checker never fails on what the reader takes, and a table has what it is made of.
    #[test]
    fn every_table_can_be_checked(table in section()) {
        let model = TimingModel { table: Some(table.clone()), ..TimingModel::new("CLOCK_MONOTONIC") };
        prop_assert_eq!(TimingModel::from_json(&model.to_json()), Ok(model));
        check::table(&table);
        for &processor in &table.processors {
            let busy = (0..table.slots).filter(|&slot| table.job_at(processor, slot).is_some()).count();
            prop_assert_eq!(busy as u64, table.busy_slots(processor));
        }
    }
}
