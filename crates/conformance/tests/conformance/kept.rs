//! Whatever a timing model was made of keeps to the contract made of that model.

use crate::records::{begins, moved, options, ordinary, records, sleep};
use proptest::prelude::*;
use punctual_conformance::{Answer, Checker, Contract, Term, Verdict, Violation, check_model};
use punctual_extract::Extractor;
use punctual_model::{Instant, Threads, TimingModel};
use punctual_trace::ctf::{Options, Reader, Recorder};
use punctual_trace::{About, Begin, Record, TaskRecord, Totals};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

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
    let clock_steps = extractor.clock_steps().to_vec();
    let threads = Threads { until_ns, clock_steps, tasks: extractor.finish(until_ns), ..Threads::default() };
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

    /// The contract of a run fits the next one, in which the program is elsewhere in memory.
    #[test]
    fn a_contract_does_not_depend_on_where_a_program_is(records in records(400)) {
        let records = named(records);
        let contract = Contract::from(&model(&records));
        let moved = moved(&records);
        prop_assert_eq!(&Contract::from(&model(&moved)), &contract);
        prop_assert_eq!(check(&contract, &moved), check(&contract, &records));
        let models = [&records, &moved].map(|records| check_model(&contract, &model(records)));
        prop_assert_eq!(&models[0].tallies, &models[1].tallies);
    }

    /// Where jobs end has one answer, whether the contract or the records say it: the verdict is the same, to
    /// the last violation.
    #[test]
    fn where_jobs_end_has_one_answer(records in records(400)) {
        let records = named(records);
        let [with, without] = with_and_without_separators(&records);
        let [expected, found] = [&with, &without].map(|it| outcome(check(it, &records).1));
        prop_assert_eq!(&found, &expected, "{}", with.to_toml());
        let mut live = Checker::live(&without, Box::new(|_| None));
        let mut told = 0;
        records.iter().for_each(|record| live.record(record, &mut |_| told += 1));
        let verdict = live.finish(0, &mut |_| told += 1);
        // Of what was known late, the first of each kind are told.
        prop_assert!(told <= verdict.violations() + verdict.withdrawn);
        prop_assert_eq!(Verdict { withdrawn: 0, ..outcome(verdict) }, expected);
    }

    /// Checkers that share the threads find what one finds, in the same order.
    #[test]
    fn shares_find_what_one_finds(
        records in records(400),
        of in 2..6_u32,
        answers in (answer(), answer(), answer()),
        tasks in any::<usize>(),
    ) {
        let mut contract = half_of(&records);
        (contract.unknown_threads, contract.tasks_without_jobs, contract.scheduling) = answers;
        // Some threads belong to no task.
        contract.tasks.truncate(tasks % (contract.tasks.len() + 1));
        for task in &mut contract.tasks {
            task.priority = task.priority.map(|it| it + 1);
        }
        prop_assert_eq!(shared(&contract, &records, of), check(&contract, &records));
    }
}

/// Contracts with the separators of the models, of threads with one each; and without.
fn with_and_without_separators(records: &[Record]) -> [Contract; 2] {
    let tasks = model(records).threads.expect("threads").tasks;
    let mut separators: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for task in &tasks {
        if let Some(primary) = task.primary {
            let key = task.streams[primary].separator.key().to_string();
            separators.entry(task.name.clone()).or_default().insert(glob::Pattern::escape(&key));
        }
    }
    let mut with = half_of(records);
    with.scheduling = Some(Answer::Violation);
    with.tasks.retain(|task| separators[&task.name].len() == 1);
    for task in &mut with.tasks {
        task.separator = separators[&task.name].first().cloned();
        task.priority = task.priority.map(|it| it + 1);
    }
    let mut without = with.clone();
    without.tasks.iter_mut().for_each(|task| task.separator = None);
    [with, without]
}

/// A verdict but for what says how it came about.
fn outcome(mut verdict: Verdict) -> Verdict {
    verdict.notes.retain(|note| !note.text.contains("were not judged"));
    for tally in &mut verdict.tallies {
        (tally.has_others, tally.has_unnamed) = (false, false);
    }
    verdict
}

fn answer() -> impl Strategy<Value = Option<Answer>> {
    prop_oneof![
        Just(None),
        Just(Some(Answer::Violation)),
        Just(Some(Answer::Note)),
        Just(Some(Answer::Ignore)),
    ]
}

/// What several checkers find between them, and their verdict.
fn shared(contract: &Contract, records: &[Record], of: u32) -> (Vec<Violation>, Verdict) {
    let of = NonZeroU32::new(of).expect("a number of checkers");
    let mut shares: Vec<Checker> = Checker::shares(contract, of).collect();
    let mut found = Vec::new();
    for checker in &mut shares {
        for (place, record) in records.iter().enumerate() {
            checker.record(record, &mut |violation| found.push((place, violation.clone())));
        }
    }
    found.sort_by_key(|(place, _)| *place);
    let mut found: Vec<Violation> = found.into_iter().map(|(_, violation)| violation).collect();
    let first = shares.remove(0);
    let verdict = first.finish_with(shares, 0, &mut |violation| found.push(violation.clone()));
    (found, verdict)
}

/// More unknown names, notes and examples than are kept.
#[test]
fn shares_keep_what_one_keeps() {
    let mut records = named(ordinary(9, 20_000));
    let mut contract = Contract { scheduling: Some(Answer::Note), ..half_of(&records) };
    for task in &mut contract.tasks {
        (task.separator, task.period, task.jitter) = (None, None, None);
        task.priority = Some(99);
    }
    let prioritised = |number: u32, name: &str| {
        let mut begins = begins(10_000 + number * 7 % 1_000, 0, 1_000);
        if let Record::Task(task) = &mut begins {
            (task.name, task.priority) = (name.to_owned(), 1 + number % 98);
        }
        begins
    };
    // Unknown threads, some of one name; and threads of tasks with priorities of all kinds.
    for number in 0..900_u32 {
        let name = if number % 2 == 0 {
            format!("stray {}", number % 300)
        } else {
            format!("thread {}", number % 9)
        };
        records.push(prioritised(number, &name));
        let tid = records[records.len() - 1].tid();
        let jobs = (0..20)
            .map(|job| sleep(tid, 1 + job, u64::from(job) * 1_000 + 2_000, u64::from(job) * 1_000 + 2_500));
        records.extend(jobs.map(Record::Activation));
    }
    let (told, verdict) = check(&contract, &records);
    assert_eq!((verdict.unknown.len(), verdict.notes.len()), (100, 100));
    for of in [2, 3, 8] {
        let (told_by_shares, of_shares) = shared(&contract, &records, of);
        assert_eq!(of_shares, verdict);
        assert_eq!(told_by_shares.len(), told.len());
    }
}

/// The records as a recording.
fn written(records: &[Record]) -> tempfile::TempDir {
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
    let options = Options { packet_bytes: 4 << 10, ..Options::default() };
    let mut recorder = Recorder::create(&folder.path().join("run"), &about, &options).expect("begun");
    records.iter().for_each(|record| recorder.record(record).expect("recorded"));
    recorder.finish(Instant::from_ns(u64::MAX / 2), Totals::default()).expect("written");
    folder
}

/// The records of a part of a recording.
fn part(recording: &tempfile::TempDir, from: Option<u64>, until: Option<u64>) -> Vec<Record> {
    let mut reader = Reader::open(&recording.path().join("run")).expect("a recording");
    if from.is_some() || until.is_some() {
        reader.select(from.map(Instant::from_ns), until.map(Instant::from_ns)).expect("selected");
    }
    let mut read = Vec::new();
    reader.read(0..reader.stretches(), &mut |record| read.push(record.clone())).expect("read");
    read
}

/// The same records, written to a recording and read back.
fn recorded(records: &[Record]) -> Vec<Record> {
    part(&written(records), None, None)
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

/// Release, end and value of jobs, by task, thread and term.
type OfJobs = BTreeMap<(String, u32, Term), BTreeSet<(u64, u64, u64)>>;

/// What is of single jobs.
fn of_jobs(found: &[Violation]) -> OfJobs {
    let mut all = BTreeMap::<_, BTreeSet<_>>::new();
    for violation in found {
        let single = matches!(violation.term, Term::Wcet | Term::Response | Term::Suspension);
        let Some(it) = violation.subject.as_ref().filter(|it| single && !it.is_open) else { continue };
        let of = all.entry((violation.task.to_string(), it.tid, violation.term)).or_default();
        assert!(of.insert((it.release.ns(), it.end.ns(), violation.value)), "{violation} twice");
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A recording that is checked in two parts: no part finds what the whole does not, and all that they
    /// miss is of the job of each thread that the cut goes through. Where a contract names no separator, a
    /// part finds out anew where jobs end, and does not judge the first ones; and of a thread with more
    /// separators than fit, parts keep others.
    #[test]
    fn parts_find_what_the_whole_finds(records in records(400), at in 0..=100_u64) {
        let records = named(records);
        prop_assume!(!model(&records).tasks().iter().any(|task| task.separators_capped));
        let contract = half_of(&records);
        let recording = written(&records);
        let end = recording_end(&records);
        let cut = end / 100 * at;
        let whole = of_jobs(&check(&contract, &part(&recording, None, None)).0);
        let first = of_jobs(&check(&contract, &part(&recording, None, Some(cut))).0);
        let second = of_jobs(&check(&contract, &part(&recording, Some(cut + 1), None)).0);
        let names_separator = |of: &(String, u32, Term)| {
            contract.tasks.iter().any(|task| task.name == of.0 && task.separator.is_some())
        };
        for (of, found) in first.iter().chain(&second).filter(|(of, _)| names_separator(of)) {
            let all = whole.get(of).cloned().unwrap_or_default();
            prop_assert!(found.is_subset(&all), "{of:?}: {found:?} of {all:?}, cut at {cut}");
        }
        for (of, all) in whole.iter().filter(|(of, _)| names_separator(of)) {
            let has = |part: &OfJobs, it| part.get(of).is_some_and(|part| part.contains(it));
            let missed: Vec<_> = all.iter().filter(|it| !has(&first, it) && !has(&second, it)).collect();
            prop_assert!(missed.len() <= 1, "{of:?}: {missed:?}, cut at {cut}");
        }
    }
}

/// The last time that a record tells.
fn recording_end(records: &[Record]) -> u64 {
    let time = |record: &Record| match record {
        Record::Activation(it) => it.resumed.map_or(it.stop, |it| it.start).ns(),
        _ => 0,
    };
    records.iter().map(time).max().unwrap_or(0)
}
