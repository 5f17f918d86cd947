//! A replay in pieces gives the same as a single pass, whatever the records, the pieces and the number of
//! workers.

use crate::common::records::{begins, options, ordinary, records, sleep};
use proptest::prelude::*;
use punctual_extract::{Extractor, Options, Progress, Replay, Source, replay};
use punctual_model::{Duration, Instant, Task};
use punctual_test_support::is_all_wanted;
use punctual_trace::Record;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const TID: u32 = 7;
const UNTIL: Instant = Instant::from_ns(u64::MAX >> 4);

/// Records in memory, cut at some places. The sizes it claims make every stretch a piece, if there are enough
/// workers.
struct Memory<'a> {
    records: &'a [Record],
    cuts: Vec<usize>,
    unreadable: Option<usize>,
    /// Number of reads, and of records read.
    reads: AtomicUsize,
    read: AtomicUsize,
}

impl<'a> Memory<'a> {
    fn new(records: &'a [Record], cuts: &[prop::sample::Index]) -> Self {
        let mut cuts: Vec<usize> =
            cuts.iter().map(|cut| cut.index(records.len() + 1)).chain([0, records.len()]).collect();
        cuts.sort_unstable();
        Memory { records, cuts, unreadable: None, reads: AtomicUsize::new(0), read: AtomicUsize::new(0) }
    }
}

#[derive(Debug, PartialEq)]
struct Unreadable(usize);

impl Source for Memory<'_> {
    type Error = Unreadable;

    fn stretches(&self) -> usize {
        self.cuts.len() - 1
    }

    fn activations(&self, _: usize) -> u64 {
        1_000_000
    }

    fn read(&self, stretches: Range<usize>, each: &mut dyn FnMut(&Record)) -> Result<(), Unreadable> {
        if let Some(unreadable) = self.unreadable.filter(|stretch| stretches.contains(stretch)) {
            return Err(Unreadable(unreadable));
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        let records = &self.records[self.cuts[stretches.start]..self.cuts[stretches.end]];
        self.read.fetch_add(records.len(), Ordering::Relaxed);
        records.iter().for_each(each);
        Ok(())
    }
}

fn one_go(records: &[Record], options: &Options) -> (Vec<Task>, Progress) {
    let mut extractor = Extractor::new(options.clone());
    records.iter().for_each(|record| extractor.record(record));
    let progress = extractor.progress();
    (extractor.finish(UNTIL), progress)
}

fn in_pieces(source: &Memory, workers: usize, options: &Options) -> (Vec<Task>, Progress) {
    let replayed = replay(
        source,
        &Replay { workers: NonZeroUsize::new(workers).expect("some"), options: options.clone() },
        &|_| (),
    );
    let extractor = replayed.expect("readable");
    let progress = extractor.progress();
    (extractor.finish(UNTIL), progress)
}

/// Clears what only a parallel replay counts.
fn counts(progress: Progress) -> Progress {
    Progress { refed: 0, ..progress }
}

/// Checks that tasks are the same for any number of workers; returns how many threads four workers read
/// again.
fn check(records: &[Record], cuts: &[usize]) -> u64 {
    let options = options(100, false);
    let (expected, counted) = one_go(records, &options);
    let mut refed = 0;
    for workers in 1..5 {
        let cuts = [&[0], cuts, &[records.len()]].concat();
        let (tasks, progress) = in_pieces(&Memory { cuts, ..Memory::new(records, &[]) }, workers, &options);
        assert_eq!(counts(progress), counted, "{workers} workers");
        assert!(tasks == expected, "{workers} workers");
        refed = progress.refed;
    }
    refed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if is_all_wanted() { 4_000 } else { 800 }))]

    #[test]
    fn tasks_are_the_same_for_any_pieces(
        records in records(250),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
        workers in 1..5_usize,
        horizon in prop_oneof![Just(1_usize), Just(8), Just(100)],
        merge_transitions in any::<bool>(),
    ) {
        let options = options(horizon, merge_transitions);
        let (expected, counted) = one_go(&records, &options);
        let (tasks, progress) = in_pieces(&Memory::new(&records, &cuts), workers, &options);
        prop_assert_eq!(counts(progress), counted);
        prop_assert_eq!(tasks, expected);
    }
}

/// Records of one sleeping thread, with releases at these instants, and known arrivals if given.
fn releases(at: impl Iterator<Item = (u64, Option<u64>)>) -> Vec<Record> {
    let mut records = vec![begins(TID, 0, 0)];
    for (number, (at, due)) in at.enumerate() {
        let mut activation = sleep(TID, 1 + number as u32, at.saturating_sub(300), at);
        activation.arrival = due.map(Instant::from_ns);
        activation.cpu = Duration::from_ns(100 * number as u64);
        records.push(Record::Activation(activation));
    }
    records
}

#[test]
fn hulls_that_lose_corners_lose_the_same_ones() {
    // The period keeps growing, so that every release is a corner of the lower hull.
    let drifting = releases((0..24_000_u64).map(|job| (1_000 * job + job * job / 2, None)));
    assert!(check(&drifting, &[2_400, 4_800, 11_200, 14_400, 20_800]) > 0);
    // All corners vanish when the pace rises: what matters is how many there were before.
    let bursts = |job: u64| {
        let (cycle, job) = (job / 12_800, job % 12_800);
        1_000_000_000 * cycle + 1_000 * job.min(9_600) + job.min(9_600).pow(2) + job
    };
    assert!(
        check(
            &releases((0..25_600).map(|job| (10_000 + bursts(job), None))),
            &[2_400, 9_600, 15_200, 22_400]
        ) > 0
    );
}

#[test]
fn instants_out_of_range_are_so_in_every_piece() {
    let far = |job: u64| match job {
        0..20 => ((1 << 62) + 1_000 * job, None),
        // In range relative to the first release, but not to the first one of its piece.
        30 => ((3 << 61) + 1_000 * job, Some(1 << 20)),
        _ => ((3 << 61) + 1_000 * job, None),
    };
    assert!(check(&releases((0..60).map(far)), &[10, 25, 40]) > 0);
}

#[test]
fn endless_tasks_and_threads_are_the_same_in_pieces() {
    // More than are kept: of one thread number, and of many.
    for tid in [|_| TID, |number| 1_000 + number] {
        let mut records = Vec::new();
        for number in 0..8_000_u32 {
            let (at, tid) = (1_000 + 1_000 * u64::from(number), tid(number));
            let exit = Record::Exit { tid, sequence: 2, at: Instant::from_ns(at + 30) };
            records.extend([begins(tid, 0, at), Record::Activation(sleep(tid, 1, at + 10, at + 20)), exit]);
        }
        assert!(check(&records, &(1..16).map(|cut| 1_500 * cut).collect::<Vec<_>>()) > 0);
    }
    let alive: Vec<_> = (0..12_000).map(|tid| begins(tid, 0, u64::from(tid))).collect();
    assert!(check(&alive, &[400]) > 0);
}

#[test]
fn a_thread_that_changes_all_the_time_is_the_same_in_any_pieces() {
    let mut records = vec![begins(TID, 0, 0)];
    for number in 1..400_u32 {
        let at = 1_000 * u64::from(number);
        let name = format!("name {number}");
        records.push(match number % 3 {
            0 => Record::Renamed { tid: TID, sequence: number, name },
            _ => Record::Activation(sleep(TID, number, at, at + 200)),
        });
    }
    assert!(check(&records, &[100, 250]) > 0);
}

#[test]
fn ordinary_threads_are_never_read_again() {
    let records = ordinary(20, 40_000);
    let source =
        Memory { cuts: (0..=16).map(|cut| cut * records.len() / 16).collect(), ..Memory::new(&records, &[]) };
    let options = options(100, false);
    let (expected, counted) = one_go(&records, &options);
    let (tasks, progress) = in_pieces(&source, 4, &options);
    assert!(source.reads.load(Ordering::Relaxed) >= 8, "a piece for each worker and more");
    assert_eq!(source.read.load(Ordering::Relaxed), records.len());
    assert_eq!(progress, counted, "and so nothing refed");
    assert!(tasks == expected);
    assert!(tasks.iter().all(|task| task.streams.iter().all(|stream| stream.jobs > 100)));
}

#[test]
fn a_read_error_is_reported_by_any_worker() {
    let records = ordinary(3, 400);
    for workers in 1..4 {
        let cuts = (0..=8).map(|cut| cut * records.len() / 8).collect();
        let source = Memory { cuts, unreadable: Some(5), ..Memory::new(&records, &[]) };
        let replayed = replay(
            &source,
            &Replay { workers: workers.try_into().expect("some"), options: options(8, false) },
            &|_| (),
        );
        assert_eq!(replayed.err(), Some(Unreadable(5)), "{workers} workers");
    }
}

#[test]
fn a_panic_in_a_worker_panics_the_replay() {
    struct Panics;
    impl Source for Panics {
        type Error = ();
        fn stretches(&self) -> usize {
            8
        }
        fn activations(&self, _: usize) -> u64 {
            1 << 60
        }
        fn read(&self, stretches: Range<usize>, _: &mut dyn FnMut(&Record)) -> Result<(), ()> {
            assert!(!stretches.contains(&3), "as this test wants it");
            Ok(())
        }
    }
    let how = Replay { workers: NonZeroUsize::new(2).expect("some"), options: options(8, false) };
    assert!(std::panic::catch_unwind(|| replay(&Panics, &how, &|_| ()).is_ok()).is_err());
}

#[test]
fn progress_counts_every_activation_once() {
    let records = ordinary(3, 100_000);
    let activations = records.iter().filter(|record| matches!(record, Record::Activation(_))).count() as u64;
    for workers in 1..4 {
        let cuts = (0..=8).map(|cut| cut * records.len() / 8).collect();
        let source = Memory { cuts, ..Memory::new(&records, &[]) };
        let (most, calls) = (AtomicU64::new(0), AtomicU64::new(0));
        let how = Replay { workers: workers.try_into().expect("some"), options: options(8, false) };
        replay(&source, &how, &|taken| {
            most.fetch_max(taken, Ordering::Relaxed);
            calls.fetch_add(1, Ordering::Relaxed);
        })
        .expect("readable");
        assert_eq!(most.into_inner(), activations);
        assert!(calls.into_inner() > 1);
    }
}
