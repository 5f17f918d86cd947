//! Summaries of runs merge in any order and grouping to the same bits, and to models that allow every run.

use crate::common::records::{moved, options, records};
use crate::common::{Seen, jobs, releases};
use proptest::prelude::*;
use punctual_extract::summary::{FileError, MAGIC};
use punctual_extract::{Extractor, Run, Summary};
use punctual_model::causes::{Causes, LateTask};
use punctual_model::check::{arrival_counts, check_stream};
use punctual_model::threads::UNKNOWN_COMMAND;
use punctual_model::{
    Call, ClockStep, Duration, Instant, MANY_LATE, Mode, Object, ObjectName, Platform, Policy, Release,
    Separator, Stream, Task, TimingModel,
};
use punctual_trace::{Activation, Begin, Record, Resumed, TaskRecord};
use std::collections::BTreeSet;

const UNTIL: Instant = Instant::from_ns(u64::MAX >> 4);

fn run(number: u64) -> Run {
    Run {
        host: format!("machine{}", number % 3),
        name: format!("run{number}"),
        clock_zero: Some(1_700_000_000_000_000_000),
        from: Instant::from_ns(number),
        until: UNTIL,
        clock: "CLOCK_MONOTONIC".into(),
        platform: Platform { kernel: "6.18".into(), machine: "x86_64".into(), cpus: 2 },
        records: number,
        lost: 0,
        untracked: 1,
        skipped: 2,
        stolen: Duration::from_us(3),
        omitted: 4,
        notes: vec!["its wake-ups are not recorded".into(), format!("{number} events were left out")],
        clock_steps: match number % 2 {
            0 => Vec::new(),
            _ => vec![ClockStep { at_ns: Instant::from_ns(number), by_ns: -5 }],
        },
    }
}

fn summary(number: u64, records: &[Record], horizon: usize) -> Summary {
    let mut extractor = Extractor::summarizing(options(horizon, false));
    records.iter().for_each(|record| extractor.record(record));
    Summary::new(run(number), extractor.finish_summarized(UNTIL))
}

fn merged(summaries: impl IntoIterator<Item = Summary>) -> Summary {
    summaries.into_iter().fold(Summary::default(), |mut all, summary| {
        all.merge(summary).expect("other runs");
        all
    })
}

/// Takes all runs to be of one program.
fn united(mut summary: Summary) -> Summary {
    summary.unite_programs();
    summary
}

/// The records, with unknown commands of every other thread.
fn half_unknown(records: &[Record]) -> Vec<Record> {
    let unknown = |record: &Record| match record.clone() {
        Record::Task(mut task) if task.tid % 2 == 0 => {
            task.command = UNKNOWN_COMMAND.into();
            Record::Task(task)
        }
        other => other,
    };
    records.iter().map(unknown).collect()
}

/// Records of a thread that sleeps until each release and then works: those of `common::stream`.
fn thread(tid: u32, name: &str, jobs: &[Seen]) -> Vec<Record> {
    let mut cpu = Duration::ZERO;
    let begins = Record::Task(Box::new(TaskRecord {
        tid,
        pid: 1,
        sequence: 0,
        at: Instant::from_ns(0),
        begin: Begin::Seen,
        name: name.into(),
        command: "command".into(),
        policy: Policy::Fifo,
        priority: 50,
        nice: None,
        reservation: None,
        affinity: "0-1".into(),
    }));
    let activations = (1..).zip(jobs).map(|(sequence, seen)| {
        cpu += Duration::from_ns(seen.cost % (1 << 40));
        let earliest = seen.release.window.earliest();
        Record::Activation(Activation {
            tid,
            sequence,
            separator: Separator { call: Call::FutexWait, object: Object::address(0x1000 * u64::from(tid)) },
            slept: true,
            stop: earliest,
            cpu,
            arrival: seen.release.arrival,
            resumed: Some(Resumed::new(Some(seen.release.window), seen.release.window.latest())),
        })
    });
    std::iter::once(begins).chain(activations).collect()
}

/// Runs of a thread `many`, each with other jobs.
fn runs(most: usize) -> impl Strategy<Value = Vec<Vec<Seen>>> {
    prop::collection::vec(jobs(most), 1..5)
}

/// The models without what means nothing for a single run of several: the offset is its own.
fn without_period(stream: &Stream) -> Stream {
    let mut stream = stream.clone();
    stream.arrival.periodic = None;
    stream.percentiles = None;
    stream
}

/// Least jitter of releases with these activations: brute force.
fn jitter(releases: &[(i128, i128, i128)], numerator: i128, denominator: i128) -> i128 {
    let above = |(k, at): (i128, i128)| at * denominator - k * numerator;
    let top = releases.iter().map(|&(k, _, latest)| above((k, latest))).max().unwrap_or(0);
    let bottom = releases.iter().map(|&(k, floor, _)| above((k, floor))).min().unwrap_or(0);
    -(bottom - top).div_euclid(denominator)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merges_are_associative_and_commutative_and_survive_files(
        records in prop::collection::vec(records(120), 3),
        horizons in prop::collection::vec(1..40_usize, 3),
        swap in any::<bool>(),
    ) {
        let records: Vec<_> = records.iter().map(|records| half_unknown(records)).collect();
        let [a, b, c] = [0, 1, 2].map(|at| summary(at as u64, &records[at], horizons[at]));
        let bytes = merged([a.clone(), b.clone(), c.clone()]).to_bytes();
        let left = merged([merged([a.clone(), b.clone()]), c.clone()]);
        let right = merged([a.clone(), merged([b.clone(), c.clone()])]);
        prop_assert!(left.to_bytes() == bytes && right.to_bytes() == bytes);
        let other = match swap {
            true => merged([c.clone(), a.clone(), b.clone()]),
            false => merged([b.clone(), merged([c.clone(), a.clone()])]),
        };
        prop_assert!(other.to_bytes() == bytes);
        let reversed = merged([c.clone(), b.clone(), a.clone()]);
        prop_assert!(merged([Summary::default(), reversed]).to_bytes() == bytes);
        // Parts of one program, and the whole.
        let whole = united(other.clone()).to_bytes();
        prop_assert!(united(merged([united(merged([a.clone(), c.clone()])), b.clone()])).to_bytes() == whole);
        prop_assert!(united(merged([united(b.clone()), merged([c.clone(), a.clone()])])).to_bytes() == whole);
        let (part, ab) = (united(merged([a.clone(), b.clone()])), [c.clone(), united(merged([b, a]))]);
        prop_assert!(merged([part, c]).to_bytes() == merged(ab).to_bytes());
        prop_assert!(Summary::from_bytes(&whole).is_ok_and(|read| read.to_bytes() == whole));
        let read = Summary::from_bytes(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(read.to_bytes() == bytes);
        prop_assert_eq!(read.to_model(), other.to_model());
        prop_assert_eq!(read.blame(), other.blame());
        let json = read.to_model().to_json();
        prop_assert!(TimingModel::from_json(&json).is_ok());
    }

    /// A program is elsewhere in memory in its next run.
    #[test]
    fn addresses_with_names_are_the_same_in_another_run(records in records(120)) {
        let [one, same, moved] =
            [(0, records.clone()), (1, records.clone()), (1, moved(&records))].map(|(number, records)| {
                summary(number, &records, 20)
            });
        let (same, moved) = (merged([one.clone(), same]), merged([one, moved]));
        prop_assert!(same.to_bytes() == moved.to_bytes());
    }

    #[test]
    fn a_task_alone_is_that_of_a_replay(records in records(200), horizon in 1..40_usize) {
        let mut extractor = Extractor::new(options(horizon, false));
        records.iter().for_each(|record| extractor.record(record));
        let expected = extractor.finish(UNTIL);
        let model = Summary::from_bytes(&summary(0, &records, horizon).to_bytes()).expect("valid").to_model();
        let found = model.tasks();
        let alone = found.iter().filter(|task| task.pid != 0);
        prop_assert!(alone.clone().all(|task| expected.contains(task)));
        // Others are several tasks of a thread, or of one run.
        let several = found.iter().filter(|task| task.pid == 0).count();
        // In the order of names, not of threads.
        let are_all = || found.len() == expected.len() && expected.iter().all(|task| found.contains(task));
        prop_assert!(several > 0 || are_all());
        let releases = |tasks: &[Task]| -> u64 {
            tasks.iter().flat_map(|task| &task.streams).map(|stream| stream.releases).sum()
        };
        prop_assert_eq!(releases(found), releases(&expected));
        let names = |tasks: &[Task]| tasks.iter().map(|task| task.name.clone()).collect::<BTreeSet<_>>();
        prop_assert_eq!(names(found), names(&expected));
    }

    #[test]
    fn extremes_of_several_runs_are_those_of_each(runs in runs(80), horizon in 1..60_usize) {
        let records: Vec<_> = runs.iter().map(|jobs| thread(7, "many", jobs)).collect();
        let all = merged((0..).zip(&records).map(|(number, records)| summary(number, records, horizon)));
        let primary = |summary: &Summary| {
            let task = summary.to_model().tasks().first().cloned()?;
            task.streams.into_iter().find(|stream| stream.separator.call == Call::FutexWait)
        };
        let alone = |(number, records): (u64, &Vec<Record>)| primary(&summary(number, records, horizon));
        let each: Vec<Stream> = (0..).zip(&records).filter_map(alone).collect();
        let Some(found) = primary(&all) else { return Ok(()) };
        let sum = |of: fn(&Stream) -> u64| each.iter().map(of).sum::<u64>();
        prop_assert_eq!((found.jobs, found.releases), (sum(|it| it.jobs), sum(|it| it.releases)));
        let wcet = |stream: &Stream| stream.execution.as_ref().map_or(Vec::new(), |it| it.wcet_ns.clone());
        let delta = |stream: &Stream| match &stream.arrival.curve {
            Some(curve) => curve.delta_min_ns.clone(),
            None => Vec::new(),
        };
        for (n, value) in wcet(&found).into_iter().enumerate() {
            // A run of fewer jobs has no sum of so many: what its own jobs needed is allowed, too.
            let greatest = each.iter().filter_map(|it| wcet(it).iter().take(n + 1).max().copied()).max();
            prop_assert_eq!(Some(value), greatest, "WCET({})", n + 1);
        }
        for (n, value) in delta(&found).into_iter().enumerate() {
            let least = each.iter().filter_map(|it| delta(it).get(n).copied()).min();
            prop_assert_eq!(Some(value), least, "least span of {}", n + 2);
        }
        let response = |stream: &Stream| stream.response.as_ref().map(|it| it.max_ns);
        prop_assert_eq!(response(&found), each.iter().filter_map(response).max());
        let suspension = |stream: &Stream| stream.suspension.as_ref().map(|it| it.dynamic_ns);
        prop_assert_eq!(suspension(&found), each.iter().filter_map(suspension).max());
        for jobs in &runs {
            let seen: Vec<Release> = releases(jobs);
            let violations = check_stream(&without_period(&found), &seen, &[]);
            prop_assert!(violations.is_empty(), "{}", violations[0]);
            if let Some(curve) = &found.arrival.curve {
                prop_assert!(arrival_counts(curve, &seen).is_empty());
            }
        }
    }

    #[test]
    fn jitter_of_several_runs_is_the_greatest(
        period in 1_000_u64..1_000_000,
        runs in prop::collection::vec((0..1_u64 << 40, prop::collection::vec(0..900_u64, 3..60)), 1..6),
    ) {
        let jobs = |(begin, late): &(u64, Vec<u64>)| -> Vec<Seen> {
            (0..).zip(late).map(|(k, late)| Seen::at(begin + k * period + late)).collect()
        };
        let of = |(number, run): (u64, &(u64, Vec<u64>))| summary(number, &thread(7, "many", &jobs(run)), 8);
        let all = merged((0..).zip(&runs).map(of));
        let model = all.to_model();
        let task = &model.tasks()[0];
        let found = task.streams[task.primary.expect("a stream")].arrival.periodic.clone().expect("a period");
        prop_assume!(found.skipped == 0 && found.extra == 0);
        let (numerator, denominator) = match found.period_exact {
            Some(exact) => (i128::from(exact.numerator), i128::from(exact.denominator)),
            None => (i128::from(found.period_ns.ns()), 1),
        };
        let least = runs.iter().map(|(begin, late)| {
            let points: Vec<_> = (0..)
                .zip(late)
                .map(|(k, late)| {
                    let at = i128::from(*begin) + k * i128::from(period) + i128::from(*late);
                    (k, at, at)
                })
                .collect();
            jitter(&points, numerator, denominator)
        });
        let least = least.max().expect("a run");
        let printed = i128::from(found.jitter_ns.ns());
        // A single run has whole offsets; so have several with a fraction.
        prop_assert!(printed == least || (denominator > 1 && printed == least + 1), "{printed} for {least}");
        prop_assert!(found.least_jitter_ns <= found.jitter_ns);
    }

    #[test]
    fn late_jobs_of_several_runs_are_counted(
        period in 1_000_u64..1_000_000,
        runs in prop::collection::vec((0..1_u64 << 40, prop::collection::vec(0..900_u64, 3..60)), 1..6),
        is_old in prop::collection::vec(prop::bool::weighted(0.1), 6),
    ) {
        let jobs = |(begin, late): &(u64, Vec<u64>)| -> Vec<Seen> {
            (0..).zip(late).map(|(k, late)| Seen::at(begin + k * period + late)).collect()
        };
        let records: Vec<_> = runs.iter().map(|run| thread(7, "many", &jobs(run))).collect();
        let of = |(number, records): (u64, &Vec<Record>)| match is_old[number as usize] {
            true => of_version_10(&summary(number, records, 8)),
            false => summary(number, records, 8),
        };
        let model = merged((0..).zip(&records).map(of)).to_model();
        let task = &model.tasks()[0];
        let stream = &task.streams[task.primary.expect("a stream")];
        let Some(limit) = stream.arrival.periodic.as_ref().map(|periodic| periodic.period_ns) else {
            prop_assert_eq!(stream.late, None);
            return Ok(());
        };
        let expected = records.iter().map(|records| {
            let mut late = 0;
            let mut extractor = Extractor::new(options(8, false));
            for record in records {
                extractor.record_jobs(record, &mut |seen| {
                    let is_primary = seen.separator.call == stream.separator.call;
                    late += u64::from(is_primary && seen.job.least_response() > limit);
                });
            }
            late
        });
        let expected: u64 = expected.sum();
        match stream.late {
            None => prop_assert!(is_old[..runs.len()].contains(&true)),
            Some(found) => {
                prop_assert!(!is_old[..runs.len()].contains(&true));
                prop_assert!(found.min(MANY_LATE) == expected.min(MANY_LATE) && found <= expected);
            }
        }
    }

    #[test]
    fn files_that_were_changed_are_refused_or_valid(
        records in records(60),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        mends in any::<bool>(),
        is_packed in any::<bool>(),
    ) {
        let mut bytes = summary(0, &records, 8).to_bytes();
        let head = MAGIC.len() + 8;
        if !is_packed {
            let plain = unpacked(&bytes);
            let plain = without_programs_and_open_jobs(&plain);
            bytes.truncate(head);
            bytes[MAGIC.len()] = 1;
            bytes.extend(plain);
        }
        for (at, byte) in changes {
            let at = head + at.index(bytes.len() - head);
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if mends && bytes.len() >= head {
            let version = if is_packed { &bytes[MAGIC.len()..head - 4] } else { &[] };
            let sum = crc32fast::hash(&[version, &bytes[head..]].concat());
            bytes[head - 4..head].copy_from_slice(&sum.to_le_bytes());
        }
        if let Ok(mut read) = Summary::from_bytes(&bytes) {
            prop_assert!(TimingModel::from_json(&read.to_model().to_json()).is_ok());
            // Whatever is accepted merges.
            if read.merge(summary(1, &records, 8)).is_ok() {
                let json = read.to_model().to_json();
                prop_assert!(TimingModel::from_json(&json).is_ok(), "{:?}", TimingModel::from_json(&json));
                prop_assert!(!read.runs().is_empty());
                read.blame();
            }
        }
    }
}

/// What a program waits on first is another thing in the next run: names tell which is which.
#[test]
fn streams_of_one_name_merge_whatever_comes_first() {
    let run = |number: u64, waits: &[(u64, &str)]| {
        let jobs: Vec<Seen> = (1..20).map(|job| Seen::at(job * 1_000_000)).collect();
        let mut records = thread(7, "many", &jobs);
        let (waits, mut next) = (waits.iter().cycle(), 0);
        for (record, (address, name)) in records.iter_mut().zip(waits) {
            if let Record::Activation(activation) = record {
                let object = Object::Address { address: *address, name: ObjectName::new(name) };
                activation.separator.object = object;
                next += 1;
            }
        }
        assert_eq!(next, 19);
        summary(number, &records, 10)
    };
    let first = run(0, &[(0x10, "a:x"), (0x20, "a:y"), (0x30, ""), (0x40, "a:x")]);
    let second = run(1, &[(0x70, ""), (0x60, "a:y"), (0x50, "a:x"), (0x80, "a:x")]);
    let model = merged([first, second]).to_model();
    let [task] = model.tasks() else { panic!("{:?}", model.tasks()) };
    let mut separators: Vec<String> = Vec::new();
    for stream in task.streams.iter().filter(|it| it.separator.call == Call::FutexWait) {
        assert!(stream.jobs >= 6, "{stream:?}");
        separators.push(stream.separator.to_string());
    }
    // Two places of one name are still two places.
    assert_eq!(separators, ["futex_wait 0x1", "futex_wait a:x", "futex_wait a:y", "futex_wait a:x"]);
}

/// What the file of a summary has behind its checksum.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut plain = vec![0; 1 << 22];
    let length = zstd_safe::decompress(&mut plain[..], &bytes[MAGIC.len() + 8..]).unwrap();
    plain.truncate(length);
    plain
}

/// As if version 10 had written it, which has nothing of certain responses behind the greatest.
fn of_version_10(summary: &Summary) -> Summary {
    let plain = unpacked(&summary.to_bytes());
    let read = |length: usize| {
        let mut body = vec![0; zstd_safe::compress_bound(length)];
        let packed = zstd_safe::compress(&mut body[..], &plain[..length], 1).unwrap();
        body.truncate(packed);
        let version = 10_u32.to_le_bytes();
        let sum = crc32fast::hash(&[&version, &body[..]].concat()).to_le_bytes();
        Summary::from_bytes(&[MAGIC, &version[..], &sum, &body].concat()).ok()
    };
    // Only where it ends is it whole.
    (0..plain.len()).rev().find_map(read).expect("a summary")
}

/// What versions 1 and 2 have.
fn without_programs_and_open_jobs(plain: &[u8]) -> &[u8] {
    let (_, rest) = postcard::take_from_bytes::<Summary>(plain).expect("a summary");
    &plain[..plain.len() - rest.len()]
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let plain = Run { notes: Vec::new(), ..run(0) };
    let good = Summary::new(plain, Vec::new()).to_bytes();
    assert!(Summary::from_bytes(&good).is_ok());
    assert_eq!(Summary::from_bytes(b"{}").err(), Some(FileError::NotASummary));
    assert_eq!(Summary::from_bytes(MAGIC).err(), Some(FileError::Damaged));
    let mut newer = good.clone();
    newer[MAGIC.len()] = 12;
    assert_eq!(Summary::from_bytes(&newer).err(), Some(FileError::Version(12)));
    newer[MAGIC.len()] = 9;
    assert_eq!(Summary::from_bytes(&newer).err(), Some(FileError::Damaged));
    for cut in MAGIC.len()..good.len() {
        assert!(Summary::from_bytes(&good[..cut]).is_err(), "{cut}");
    }
    // A number that does not end, with its checksum.
    let of = |version: u32, body: &[u8]| {
        [MAGIC, &version.to_le_bytes()[..], &crc32fast::hash(body).to_le_bytes(), body].concat()
    };
    let packed = |body: &[u8]| {
        let mut packed = vec![0; zstd_safe::compress_bound(body.len())];
        let length = zstd_safe::compress(&mut packed[..], body, 3).unwrap();
        packed.truncate(length);
        packed
    };
    assert_eq!(Summary::from_bytes(&of(1, &[0xff; 16])).err(), Some(FileError::Undecodable));
    assert_eq!(Summary::from_bytes(&of(2, &packed(&[0xff; 16]))).err(), Some(FileError::Undecodable));
    // Not packed at all; packed, and cut off.
    assert_eq!(Summary::from_bytes(&of(2, &[0xff; 16])).err(), Some(FileError::Undecodable));
    let whole = packed(&[7; 100]);
    assert_eq!(Summary::from_bytes(&of(2, &whole[..whole.len() - 1])).err(), Some(FileError::Undecodable));
    // A small file that would take much memory.
    let bomb = Summary::from_bytes(&of(2, &packed(&vec![0; 64 << 20]))).err();
    assert!(matches!(&bomb, Some(FileError::Invalid(why)) if why.contains("67108864")), "{bomb:?}");
    // Those of version 1 are read, and written anew.
    let old = unpacked(&good);
    let old = without_programs_and_open_jobs(&old);
    assert_eq!(Summary::from_bytes(&of(1, old)).unwrap().to_bytes(), good);
    assert_eq!(Summary::from_bytes(&of(2, &packed(old))).unwrap().to_bytes(), good);
    assert_eq!(Summary::from_bytes(&of(3, &packed(&[old, &[0]].concat()))).unwrap().to_bytes(), good);
    let fewer = Summary::from_bytes(&of(4, &packed(&[old, &[0, 1, 0]].concat()))).err();
    assert!(matches!(&fewer, Some(FileError::Invalid(why)) if why.contains("a job was open")), "{fewer:?}");
    let longer = Summary::from_bytes(&of(3, &packed(&[old, &[1, 0]].concat()))).err();
    assert!(matches!(&longer, Some(FileError::Invalid(why)) if why.contains("more programs")), "{longer:?}");
    let long = [&good[..], &[0]].concat();
    assert_eq!(Summary::from_bytes(&long).err(), Some(FileError::Damaged));
}

/// Of each run: what its recording lacks, and when its clock was set.
#[test]
fn notes_of_runs_are_kept() {
    let threads = |model: TimingModel| model.threads.expect("threads");
    let alone = threads(Summary::new(run(1), Vec::new()).to_model());
    assert_eq!((alone.notes, alone.clock_steps), (run(1).notes, run(1).clock_steps));
    let several = (0..4).map(|number| Summary::new(run(number), Vec::new()));
    let several = threads(Summary::from_bytes(&merged(several).to_bytes()).expect("a summary").to_model());
    assert_eq!(several.clock_steps, []);
    assert_eq!(
        several.notes,
        [
            "its wake-ups are not recorded",
            "0 events were left out (machine0:run0)",
            "3 events were left out (machine0:run3)",
            "CLOCK_REALTIME was set during the observation (2 of 4 runs)",
            "1 events were left out (machine1:run1)",
            "2 events were left out (machine2:run2)",
        ]
    );
    let many = merged((0..100).map(|number| Summary::new(run(number), Vec::new())));
    let notes = threads(many.to_model()).notes;
    assert_eq!((notes.len(), notes[30].as_str()), (31, "and 72 more notes of the runs"));
}

#[test]
fn causes_of_late_jobs_add_up() {
    let task = |jobs: u64| {
        let text = format!(
            r#"{{"task":"a","tid":1,"policy":"SCHED_FIFO","priority":9,"jobs":{jobs},"late":1,
                "limit":"period","limit_ns":3,"usual_cost_ns":1,"longest_ns":4,
                "causes":[{{"kind":"own","inversion":false,"jobs":1,"ns":4,"least_ns":4,
                    "longest":{{"kind":"own","from_ns":0,"ns":4}}}}]}}"#
        );
        serde_json::from_str::<LateTask>(&text).expect("a task")
    };
    let of = |number: u64, jobs: u64| {
        let causes = Causes { tasks: vec![task(jobs)], ..Causes::default() };
        let summary = Summary::new(run(number), Vec::new()).with_causes(causes);
        let read = Summary::from_bytes(&summary.to_bytes()).expect("a summary");
        assert_eq!(read.to_bytes(), summary.to_bytes());
        read
    };
    let merged = |mut one: Summary, other: Summary| {
        one.merge(other).expect("different runs");
        one
    };
    let without = || Summary::new(run(2), Vec::new());
    let all = merged(merged(of(0, 5), without()), of(1, 7));
    assert_eq!(all.to_bytes(), merged(of(1, 7), merged(without(), of(0, 5))).to_bytes());
    let causes = all.to_model().causes.expect("causes");
    let sums = (causes.tasks[0].jobs, causes.tasks[0].late, causes.tasks[0].causes[0].ns.ns());
    assert_eq!((causes.tasks.len(), sums), (1, (12, 2, 8)));
}

/// Jobs of timers of these periods, in milliseconds, released up to 0.1 ms late.
fn timers(periods: &[u64]) -> Vec<Seen> {
    let mut at: Vec<u64> = periods
        .iter()
        .flat_map(|ms| (0..600).map(move |job| 500_000 * ms + job * ms * 1_000_000 + job * 7_919 % 100_000))
        .filter(|at| *at < 600_000_000 * periods[0])
        .collect();
    at.sort_unstable();
    at.into_iter().map(Seen::at).collect()
}

#[test]
fn modes_of_several_runs_are_those_of_each() {
    let of = |number, periods: &[u64]| summary(number, &thread(7, "loop", &timers(periods)), 32);
    let both = [of(0, &[5, 7]), of(1, &[10, 25]), of(2, &[5, 7])];
    let read = |summary: &Summary| Summary::from_bytes(&summary.to_bytes()).expect("a summary");
    let all = merged(both.iter().map(read));
    assert_eq!(read(&all).to_bytes(), all.to_bytes());
    assert_eq!(merged(both.into_iter().rev()).to_bytes(), all.to_bytes());
    let arrival = |summary: &Summary| {
        let model = summary.to_model();
        let task = &model.tasks()[0];
        task.streams[task.primary.expect("a primary stream")].arrival.clone()
    };
    let shown = arrival(&all);
    let periods =
        |mode: &Mode| mode.sources.iter().map(|it| it.period_ns.ns() / 1_000_000).collect::<Vec<_>>();
    let seen: Vec<_> = shown.modes.iter().map(periods).collect();
    assert_eq!((seen, &shown.periodic), (vec![vec![5, 7], vec![10, 25]], &None));
    let jitter = |mode: &Mode| mode.sources[0].jitter_ns.ns();
    assert!((90_000..101_000).contains(&jitter(&shown.modes[0])), "{:?}", shown.modes);
    // Not all have modes.
    let some = merged([all, of(3, &[10])]);
    assert_eq!(arrival(&some).modes, []);
    assert!(arrival(&some).periodic.is_some());
}

#[test]
fn a_run_counts_once() {
    let one = || Summary::new(Run { name: "run0\u{1b}[2J".into(), ..run(0) }, Vec::new());
    let mut both = one();
    let refused = both.merge(one()).expect_err("the same run");
    assert_eq!(
        refused.to_string(),
        r"the run run0\u{1b}[2J is already in an earlier file and would count twice; leave one of them out"
    );
    assert_eq!(both.to_bytes(), one().to_bytes());
}

/// Three runs, worked out by hand: costs, separations and jitter, and who is to blame.
#[test]
fn extremes_name_their_runs() {
    let jobs = |releases: &[u64], costs: &[u64]| -> Vec<Seen> {
        releases.iter().zip(costs).map(|(at, cost)| Seen { cost: *cost, ..Seen::at(*at) }).collect()
    };
    let runs = [
        jobs(&[1_000_000, 2_000_000, 3_000_000, 4_000_000], &[0, 10_000, 10_000, 10_000]),
        jobs(&[5_000_000, 6_000_300, 7_000_000, 8_000_000], &[0, 1_000, 30_000, 1_000]),
        jobs(&[9_000_000, 10_000_000, 11_000_000, 12_000_000, 13_000_000], &[0, 5, 5, 5, 5]),
    ];
    let all = merged((0..).zip(&runs).map(|(number, jobs)| summary(number, &thread(7, "many", jobs), 8)));
    let model = all.to_model();
    let [task] = model.tasks() else { panic!("{:?}", model.tasks()) };
    assert_eq!((task.pid, task.tid, task.recording.as_deref()), (0, 1, Some("3 runs")));
    let stream = &task.streams[task.primary.expect("a stream")];
    assert_eq!((stream.releases, stream.separator.to_string()), (13, "futex_wait 0x1".to_owned()));
    let periodic = stream.arrival.periodic.as_ref().expect("a period");
    assert_eq!((periodic.period_ns.ns(), periodic.jitter_ns.ns(), periodic.offset_ns), (1_000_000, 300, 0));
    let wcet: Vec<u64> = stream.execution.as_ref().expect("jobs").wcet_ns.iter().map(|it| it.ns()).collect();
    assert_eq!(wcet, [30_000, 31_000, 32_000, 32_000]);
    let blame = all.blame();
    let run_of = |what: &str| blame.iter().find(|it| it.what() == what).map(|it| it.run.as_str());
    assert_eq!(run_of("jitter"), Some("machine1:run1"));
    assert_eq!(run_of("least separation"), Some("machine1:run1"));
    assert_eq!(run_of("WCET(1..4)"), Some("machine1:run1"));
}

/// A thread of which only the name and the priority are known, in two runs.
fn two_unknown_workers() -> [Summary; 2] {
    let jobs = |cost: u64| [1_000, 2_000, 3_000, 4_000].map(|at| Seen { cost, ..Seen::at(at) });
    let of = |number: u64, tid: u32| {
        let mut records = thread(tid, "worker", &jobs(10 * (number + 1)));
        let Some(Record::Task(task)) = records.first_mut() else { panic!("a task") };
        task.command = UNKNOWN_COMMAND.into();
        summary(number, &records, 8)
    };
    [of(0, 7), of(1, 8)]
}

#[test]
fn threads_of_unknown_commands_are_not_the_same_in_two_runs() {
    let [camera, motor] = two_unknown_workers();
    let both = merged([motor, camera]);
    let model = both.to_model();
    let tasks: Vec<_> = model
        .tasks()
        .iter()
        .map(|task| (task.tid, task.recording.as_deref(), task.command.as_str()))
        .collect();
    let expected = [(7, Some("machine0:run0"), UNKNOWN_COMMAND), (8, Some("machine1:run1"), UNKNOWN_COMMAND)];
    assert_eq!(tasks, expected);
    assert_eq!((both.apart(), both.blame().len()), (vec!["worker"], 0));
    let one = united(both);
    assert_eq!((one.apart().len(), one.to_model().tasks().len()), (0, 1));
    assert_eq!(one.to_model().tasks()[0].recording.as_deref(), Some("2 runs"));
}

#[test]
fn runs_of_one_machine_that_overlap_are_found() {
    let of = |host: &str, name: &str, from: u64, until: u64| {
        let (from, until) = (Instant::from_ns(from), Instant::from_ns(until));
        Summary::new(Run { host: host.into(), name: name.into(), from, until, ..run(0) }, Vec::new())
    };
    let runs =
        [("a", "whole", 0, 100), ("a", "part", 20, 50), ("a", "late", 60, 200), ("b", "other", 10, 90)];
    let all = merged(runs.map(|(host, name, from, until)| of(host, name, from, until)));
    let names = |all: &Summary| -> Vec<(String, String)> {
        all.overlaps().into_iter().map(|(one, other)| (one.name.clone(), other.name.clone())).collect()
    };
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    assert_eq!(names(&all), [pair("whole", "part"), pair("whole", "late")]);
    // One after the other; unknown machines.
    assert!(names(&merged([of("a", "first", 0, 50), of("a", "second", 50, 90)])).is_empty());
    assert!(names(&merged([of("", "first", 0, 50), of("", "second", 20, 90)])).is_empty());
}
