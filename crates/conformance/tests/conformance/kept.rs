//! Whatever a timing model was made of keeps to the contract made of that model.

use crate::records::{options, ordinary, records};
use proptest::prelude::*;
use punctual_conformance::{Checker, Contract, Verdict, Violation, check_model};
use punctual_extract::Extractor;
use punctual_model::{Instant, Threads, TimingModel};
use punctual_trace::Record;

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

proptest! {
    #[test]
    fn all_threads_keep_to_what_they_did(records in records(600)) {
        let records = named(records);
        let model = model(&records);
        let contract = Contract::from(&model);
        let (found, verdict) = check(&contract, &records);
        prop_assert_eq!(&found, &[], "{}", contract.to_toml());
        prop_assert_eq!(verdict.violations(), 0);
        prop_assert_eq!(check_model(&contract, &model).violations(), 0, "{}", contract.to_toml());
    }

    /// What is found does not depend on how the records are cut into pieces: there is no other state.
    #[test]
    fn violations_are_those_of_one_piece(records in records(400), cut in 0.0..1.0_f64) {
        let mut contract = Contract::from(&model(&records));
        for task in &mut contract.tasks {
            // Half of what was needed.
            let half = |it: punctual_model::Duration| punctual_model::Duration::from_ns(it.ns() / 2);
            (task.wcet, task.response) = (task.wcet.map(half), task.response.map(half));
        }
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
