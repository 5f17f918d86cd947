//! Several sources, bursts and modes: what keeps to them, and what does not.

use crate::jobs::{MS, SLEEP, Thread, contract, found};
use crate::kept::model;
use proptest::prelude::*;
use punctual_conformance::{Contract, Limits, Margin, Quantile, Term, check_model};
use punctual_model::{Duration, Instant, Percent};
use punctual_trace::Record;

const US: u64 = 1_000;

/// A thread that is released at these times.
fn thread(mut releases: Vec<u64>) -> Thread {
    releases.sort_unstable();
    releases.dedup_by(|later, earlier| *later < *earlier + MS / 2);
    let mut thread = Thread::new();
    releases.into_iter().for_each(|at| thread.sleep(at, 100 * US));
    thread
}

/// Activations every `period`, up to 0.3 ms late.
fn every(period: u64, from: u64, until: u64) -> impl Iterator<Item = u64> {
    let late = |number: u64| number * 7_919 % 300 * US;
    (0..).map(move |number| from + number * period + late(number)).take_while(move |at| *at < until)
}

fn two(slow: u64, until: u64) -> Vec<u64> {
    every(10 * MS, 20 * MS, 5_000 * MS).chain(every(slow, 22 * MS, until)).collect()
}

fn terms(found: &[(Term, u64, u64)]) -> Vec<Term> {
    let mut terms: Vec<Term> = found.iter().map(|it| it.0).collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

#[test]
fn two_timers_are_kept_and_one_that_stops_is_missed() {
    let agreed = contract(&format!("{SLEEP}period = [\"10ms\", \"25ms\"]\njitter = \"300us\"\n"));
    assert_eq!(found(&agreed, &thread(two(25 * MS, 5_000 * MS))), []);
    let stopped = found(&agreed, &thread(two(25 * MS, 2_000 * MS)));
    assert_eq!(terms(&stopped), [Term::GapOfSeveral]);
    assert!(stopped.len() > 10, "{stopped:?}");
    let faster = found(&agreed, &thread(two(20 * MS, 5_000 * MS)));
    assert_eq!(terms(&faster), [Term::SeparationOfSeveral]);
    // A late release is one violation.
    let mut late = two(25 * MS, 5_000 * MS);
    late.iter_mut().filter(|at| **at / MS == 1_020).for_each(|at| *at += 4 * MS);
    let late = found(&agreed, &thread(late));
    assert_eq!(late.len(), 1, "{late:?}");
}

#[test]
fn bursts_of_four() {
    let burst = |jobs: u64| {
        let all = every(20 * MS, 20 * MS, 3_000 * MS);
        thread(all.flat_map(move |at| (0..jobs).map(move |job| at + job * 600 * US)).collect())
    };
    let text = format!("{SLEEP}period = \"20ms\"\njitter = \"300us\"\nburst = 4\nwithin = \"2ms\"\n");
    let agreed = contract(&text);
    assert_eq!(found(&agreed, &burst(4)), []);
    assert_eq!(found(&agreed, &burst(1)), []);
    assert_eq!(terms(&found(&agreed, &burst(5))), [Term::SeparationOfSeveral]);
    assert_eq!(Contract::parse(&agreed.to_toml()), Ok(agreed));
}

#[test]
fn modes_follow_one_another() {
    let text = format!(
        "{SLEEP}[[task.mode]]\nperiod = \"5ms\"\njitter = \"300us\"\n\
         [[task.mode]]\nperiod = \"8ms\"\njitter = \"300us\"\n"
    );
    let agreed = contract(&text);
    let of = |periods: &[u64]| {
        let part = |(number, period): (usize, &u64)| {
            let from = 20 * MS + number as u64 * 1_000 * MS;
            every(*period, from, from + 996 * MS)
        };
        found(&agreed, &thread(periods.iter().enumerate().flat_map(part).collect()))
    };
    assert_eq!(of(&[5 * MS, 8 * MS, 5 * MS, 8 * MS]), []);
    assert_eq!(of(&[8 * MS, 8 * MS]).len(), 0);
    let unknown = of(&[5 * MS, 6 * MS, 8 * MS]);
    assert_eq!(terms(&unknown), [Term::SeparationOfSeveral, Term::GapOfSeveral]);
    assert!((2..40).contains(&unknown.len()), "{unknown:?}");
    assert_eq!(Contract::parse(&agreed.to_toml()), Ok(agreed.clone()));
}

/// A release that does not come is overdue.
#[test]
fn a_thread_that_hangs_is_overdue() {
    let agreed = contract(&format!("{SLEEP}period = [\"10ms\", \"25ms\"]\njitter = \"300us\"\n"));
    let releases = two(25 * MS, 5_000 * MS);
    let hanging = releases.into_iter().filter(|at| !(1_000 * MS..1_100 * MS).contains(at)).collect();
    let found = found(&agreed, &thread(hanging));
    assert_eq!(terms(&found), [Term::Overdue], "{found:?}");
    assert_eq!(found.len(), 1);
}

/// Contracts of models have the sources; the thread keeps to them, and another rate does not.
#[test]
fn what_was_observed_is_agreed_on() {
    let stream = || thread(two(25 * MS, 5_000 * MS));
    let observed = model(&stream().records);
    for limits in [Limits::default(), Limits { margin: Margin::Percent(Default::default()), quantile: None }]
    {
        let contract = Contract::observed(std::slice::from_ref(&observed), limits, &|_| true).contract;
        let [task] = &contract.tasks[..] else { panic!("{contract:#?}") };
        let [mode] = &task.modes[..] else { panic!("{task:#?}") };
        let periods: Vec<Duration> = mode.sources.iter().map(|it| it.period).collect();
        assert_eq!(periods, [Duration::from_ms(10), Duration::from_ms(25)]);
        assert_eq!((task.separation, mode.skips), (None, None));
        assert_eq!(found(&contract, &stream()), []);
        assert_eq!(check_model(&contract, &observed).violations(), 0);
        assert_eq!(Contract::parse(&contract.to_toml()).as_ref(), Ok(&contract));
        let other = thread(two(20 * MS, 5_000 * MS));
        assert!(found(&contract, &other).len() > 1);
        // One release of many may exceed a limit, and a model does not tell whether more do.
        let expected = u64::from(limits == Limits::default());
        assert_eq!(check_model(&contract, &model(&other.records)).violations(), expected);
    }
}

#[test]
fn observed_modes_are_agreed_on() {
    let parts = [(5, 20, 2_000), (8, 2_004, 4_000), (5, 4_003, 6_000)];
    let releases = parts.iter().flat_map(|(period, from, until)| every(period * MS, from * MS, until * MS));
    let stream = thread(releases.collect());
    let observed = model(&stream.records);
    let contract = Contract::from(&observed);
    let modes = &contract.tasks[0].modes;
    let periods: Vec<u64> = modes.iter().map(|mode| mode.sources[0].period.ns() / MS).collect();
    assert_eq!(periods, [5, 8], "{contract:#?}");
    assert_eq!(found(&contract, &stream), []);
    assert_eq!(check_model(&contract, &observed).violations(), 0);
    // Some jobs may exceed a limit, but not all of another rate.
    let limits = Limits { margin: Margin::Percent(Percent::whole(20)), quantile: None };
    let contract = Contract::observed(&[observed], limits, &|_| true).contract;
    assert_eq!(found(&contract, &stream), []);
    for period in [3, 12, 20] {
        let other = thread(every(period * MS, 20 * MS, 6_000 * MS).collect());
        assert!(terms(&found(&contract, &other)).len() == 1, "{period}");
    }
}

/// A thread that was released `late` after each of these known arrivals.
fn arriving(arrivals: &[u64], late: impl Fn(usize) -> u64) -> Thread {
    let mut thread = Thread::new();
    arrivals.iter().enumerate().for_each(|(number, at)| thread.sleep(at + late(number), 100 * US));
    for (record, at) in thread.records[1..].iter_mut().zip(arrivals) {
        let Record::Activation(activation) = record else { unreachable!("a sleep") };
        activation.arrival = Some(Instant::from_ns(*at));
    }
    thread
}

/// Whatever is made of a run is kept by it: bursts of which later jobs are late, and arrivals on no grid.
#[test]
fn a_run_keeps_to_its_own_contract() {
    let jobs = |burst: u64| (0..3).map(move |job| burst * 20 * MS + job * 1_500 * US);
    let bursts: Vec<u64> = (1..300).flat_map(jobs).collect();
    // Now and then the last job of a burst is.
    let late = |number: usize| if number % 99 == 50 { 3 * MS } else { number as u64 * 7_919 % 200 * US };
    let (mut at, mut random) = (10 * MS, 7_u64);
    let skewed: Vec<u64> = (0..900)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            at += if random >> 62 > 0 { 3 * MS } else { 12 * MS } + (random >> 32) % (MS / 2);
            at
        })
        .collect();
    let threads = [arriving(&bursts, late), arriving(&skewed, |number| number as u64 * 7_919 % 60 * US)];
    let margin = Margin::Percent(Percent::whole(20));
    for (place, thread) in threads.iter().enumerate() {
        let observed = [model(&thread.records)];
        for quantile in [None, Some(Quantile::P50), Some(Quantile::P999)] {
            let contract = Contract::observed(&observed, Limits { margin, quantile }, &|_| true).contract;
            assert_eq!(found(&contract, thread), [], "{place} {quantile:?}: {}", contract.to_toml());
        }
        let contract = Contract::from(&observed[0]);
        assert_eq!(found(&contract, thread), [], "{place}: {}", contract.to_toml());
    }
}

/// A phase that jumps is jitter: the contract has one period.
#[test]
fn a_jump_of_the_phase_is_agreed_on_as_jitter() {
    let parts = [(20, 2_000), (2_013, 4_000)];
    let releases = parts.iter().flat_map(|(from, until)| every(10 * MS, from * MS, until * MS));
    let stream = thread(releases.collect());
    let observed = model(&stream.records);
    let contract = Contract::from(&observed);
    let task = &contract.tasks[0];
    assert_eq!((task.period, &task.modes[..]), (Some(Duration::from_ms(10)), &[][..]), "{contract:#?}");
    let jitter = task.jitter.expect("a jitter");
    assert!((3 * MS..4 * MS).contains(&jitter.ns()), "{jitter}");
    assert_eq!(found(&contract, &stream), []);
    assert_eq!(check_model(&contract, &observed).violations(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What modes were found in keeps to the contract of them, to the last release.
    #[test]
    fn streams_with_modes_keep_to_what_they_did(
        slow in 11..90_u64,
        (phase, change) in (0..50_u64, prop::option::of(6..40_u64)),
        skipped in prop::collection::vec(0..300_usize, 0..4),
    ) {
        let mut releases: Vec<u64> = match change {
            Some(period) => every(10 * MS, 20 * MS, 2_000 * MS)
                .chain(every(period * MS, (2_000 + phase) * MS, 4_000 * MS))
                .collect(),
            None => every(10 * MS, 20 * MS, 3_000 * MS)
                .chain(every(slow * MS, (20 + phase) * MS, 3_000 * MS))
                .collect(),
        };
        skipped.into_iter().for_each(|at| _ = (at < releases.len()).then(|| releases.remove(at)));
        let stream = thread(releases);
        let observed = model(&stream.records);
        let contract = Contract::from(&observed);
        prop_assert_eq!(found(&contract, &stream), vec![], "{}", contract.to_toml());
        prop_assert_eq!(check_model(&contract, &observed).violations(), 0, "{}", contract.to_toml());
    }
}
