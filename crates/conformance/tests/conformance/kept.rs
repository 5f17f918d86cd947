//! Whatever a timing model was made of keeps to the contract made of that model.

use crate::records::{options, ordinary, records};
use proptest::prelude::*;
use punctual_conformance::{Checker, Contract, Verdict, Violation, check_model};
use punctual_extract::Extractor;
use punctual_model::{Instant, Threads, TimingModel};
use punctual_trace::ctf::{Options, Reader, Recorder};
use punctual_trace::{About, Begin, Record, TaskRecord, Totals};

/// The same records, of threads that keep one name each: a model knows a thread by its last name only.
pub fn named(mut records: Vec<Record>) -> Vec<Record> {
    for record in &mut records {
        let own = format!("thread {}", record.tid());
        match record {
            Record::Task(task) | Record::Known(task) => task.name = own,
            Record::Renamed { name, .. } => *name = own,
            _ => {}
        }
    }
    records
}

/// The timing model of records.
pub fn model(records: &[Record]) -> TimingModel {
    let mut extractor = Extractor::new(options(100, false));
    records.iter().for_each(|record| extractor.record(record));
    let until_ns = Instant::from_ns(u64::MAX / 2);
    let threads = Threads { until_ns, tasks: extractor.finish(until_ns), ..Threads::default() };
    TimingModel { threads: Some(threads), ..TimingModel::new("CLOCK_MONOTONIC") }
}

/// What a checker finds, and its verdict.
pub fn check(contract: &Contract, records: &[Record]) -> (Vec<Violation>, Verdict) {
    let mut checker = Checker::new(contract);
    let mut found = Vec::new();
    records.iter().for_each(|record| checker.record(record, &mut |violation| found.push(violation.clone())));
    let verdict = checker.finish(0, &mut |violation| found.push(violation.clone()));
    (found, verdict)
}

#[test]
fn ordinary_threads_keep_to_what_they_did() {
    let records = named(ordinary(9, 20_000));
    let model = model(&records);
    let contract = Contract::from(&model);
    assert_eq!(contract.tasks.len(), 9);
    // Periods are found, and kept.
    assert!(contract.tasks.iter().filter(|task| task.jitter.is_some()).count() >= 5, "{contract:#?}");
    let (found, verdict) = check(&contract, &records);
    assert_eq!(found, []);
    assert!(verdict.tallies.iter().all(|tally| tally.jobs > 100 && tally.violations() == 0));
    assert_eq!(check_model(&contract, &model).violations(), 0);
}

/// A thread that gets its priority before its first job has that one, whatever it had before.
#[test]
fn how_a_thread_was_scheduled_before_its_first_job_is_of_no_account() {
    let mut records = named(ordinary(1, 2_000));
    let Some(Record::Task(first)) = records.first().cloned() else { panic!("a thread first") };
    for record in &mut records[1..] {
        match record {
            Record::Activation(activation) => activation.sequence += 1,
            Record::Exit { sequence, .. } | Record::Last { sequence, .. } => *sequence += 1,
            _ => {}
        }
    }
    let priority = first.priority + 1;
    let changed = TaskRecord { sequence: 1, begin: Begin::Priority, priority, ..*first };
    records.insert(1, Record::Task(Box::new(changed)));
    let contract = Contract::from(&model(&records));
    let [task] = &contract.tasks[..] else { panic!("{contract:#?}") };
    assert_eq!(
        (task.priority, task.policy.is_some(), task.processors.is_empty()),
        (Some(priority), true, false)
    );
    let (found, verdict) = check(&contract, &records);
    assert_eq!((found, verdict.notes), (vec![], vec![]));
}

proptest! {
    #[test]
    fn all_threads_keep_to_what_they_did(records in records(600)) {
        let records = named(records);
        let model = model(&records);
        let contract = Contract::from(&model);
        let (mut found, verdict) = check(&contract, &records);
        // Models have the jobs that ended.
        let all = found.len() as u64;
        found.retain(|violation| !violation.is_open());
        prop_assert_eq!(&found, &[], "{}", contract.to_toml());
        prop_assert_eq!(verdict.violations(), all);
        prop_assert_eq!(check_model(&contract, &model).violations(), 0, "{}", contract.to_toml());
    }

    /// What is found does not depend on how the records are cut into pieces: there is no other state.
    #[test]
    fn violations_are_those_of_one_piece(records in records(400), cut in 0.0..1.0_f64) {
        let contract = half_of(&records);
        let (whole, verdict) = check(&contract, &records);
        let mut checker = Checker::new(&contract);
        let mut found = Vec::new();
        let (first, second) = records.split_at((records.len() as f64 * cut) as usize);
        for batch in [first, second] {
            batch.iter().for_each(|record| checker.record(record, &mut |it| found.push(it.clone())));
        }
        prop_assert_eq!(checker.finish(0, &mut |it| found.push(it.clone())), verdict);
        prop_assert_eq!(found, whole);
    }
}

/// The same records, written to a recording and read back.
fn recorded(records: &[Record]) -> Vec<Record> {
    let folder = tempfile::tempdir().expect("a directory");
    let about = About {
        platform: punctual_model::Platform::default(),
        host: "test".into(),
        source: "test".into(),
        clock: "CLOCK_MONOTONIC".into(),
        clock_zero: None,
        from: Instant::from_ns(0),
        switches: true,
        latency: false,
    };
    let path = folder.path().join("run.recording");
    let options = Options { packet_bytes: 4 << 10, ..Options::default() };
    let mut recorder = Recorder::create(&path, &about, &options).expect("begun");
    records.iter().for_each(|record| recorder.record(record).expect("recorded"));
    recorder.finish(Instant::from_ns(u64::MAX / 2), Totals::default()).expect("written");
    let reader = Reader::open(&path).expect("a recording");
    let mut read = Vec::new();
    reader.read(0..reader.stretches(), &mut |record| read.push(record.clone())).expect("read");
    read
}

/// A contract that the records break often.
fn half_of(records: &[Record]) -> Contract {
    let mut contract = Contract::from(&model(records));
    let half = |it: punctual_model::Duration| punctual_model::Duration::from_ns(it.ns() / 2);
    for task in &mut contract.tasks {
        (task.wcet, task.response, task.jitter) =
            (task.wcet.map(half), task.response.map(half), task.jitter.map(half));
        task.separation = task.separation.map(|it| it + it);
    }
    contract
}

#[test]
fn a_replay_finds_what_was_found_live() {
    let records = named(ordinary(9, 20_000));
    let contract = half_of(&records);
    let live = check(&contract, &records);
    assert!(live.0.len() > 1_000, "{}", live.0.len());
    assert_eq!(check(&contract, &recorded(&records)), live);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_replay_finds_what_was_found_live(records in records(400)) {
        let contract = half_of(&records);
        prop_assert_eq!(check(&contract, &recorded(&records)), check(&contract, &records));
    }
}
