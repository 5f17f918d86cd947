//! Curves are exact: the same as from every run of jobs, by brute force.

use crate::common::noise::Random;
use crate::common::{Seen, exact, jobs, releases, window};
use proptest::prelude::*;
use punctual_extract::curve::DistanceSummary;
use punctual_extract::stream::{Circumstances, Options, Stream};
use punctual_extract::wcet::CostSummary;
use punctual_model::{Duration, Release, Separator};

/// Curves end before spans of 52 days.
const LONGEST: i128 = 1 << 52;

/// δ⁻ and δ⁺ of `gaps + 1` releases.
fn spans(releases: &[Release], gaps: usize) -> (i128, i128) {
    let ends = releases.iter().zip(&releases[gaps..]).map(|(first, last)| (first.window, last.window));
    let least = ends
        .clone()
        .map(|(first, last)| i128::from(last.earliest().ns()) - i128::from(first.latest().ns()))
        .min();
    let greatest =
        ends.map(|(first, last)| i128::from(last.latest().ns()) - i128::from(first.earliest().ns())).max();
    (least.unwrap_or(0).max(0), greatest.unwrap_or(0))
}

fn check_spans(releases: &[Release], horizon: usize) {
    let mut summary = DistanceSummary::new(horizon);
    releases.iter().for_each(|release| summary.push(release.window));
    let (mut least, mut greatest) = (Vec::new(), Vec::new());
    for (min, max) in (1..releases.len().min(horizon + 1))
        .map(|gaps| spans(releases, gaps))
        .take_while(|&(_, max)| max < LONGEST)
    {
        least.push(Duration::from_ns(min as u64));
        greatest.push(Duration::from_ns(max as u64));
    }
    let curve = summary.curve();
    assert_eq!(curve.is_some(), !least.is_empty());
    if let Some(curve) = curve {
        assert_eq!((curve.delta_min_ns, curve.delta_max_ns), (least, greatest));
    }
    let separation =
        (releases.len() > 1).then(|| Duration::from_ns(spans(releases, 1).0.min(LONGEST) as u64));
    assert_eq!(summary.least_separation(), separation);
}

fn check_costs(costs: &[u64], horizon: usize) {
    let mut summary = CostSummary::new(horizon);
    costs.iter().for_each(|&cost| summary.push(Duration::from_ns(cost)));
    let greatest = |jobs: usize| {
        costs.windows(jobs).map(|run| run.iter().map(|&cost| i128::from(cost)).sum::<i128>()).max()
    };
    let expected: Vec<Duration> = (1..=costs.len().min(horizon))
        .filter_map(greatest)
        .take_while(|&total| total < LONGEST)
        .map(|total| Duration::from_ns(total as u64))
        .collect();
    assert_eq!(summary.curve(), expected);
}

#[test]
fn a_worked_example() {
    let mut summary = DistanceSummary::new(1000);
    for release in [exact(100), exact(115), window(117, 120), exact(135)] {
        summary.push(release.window);
    }
    let curve = summary.curve().unwrap();
    assert_eq!(curve.delta_min_ns.iter().map(|span| span.ns()).collect::<Vec<_>>(), [2, 17, 35]);
    assert_eq!(curve.delta_max_ns.iter().map(|span| span.ns()).collect::<Vec<_>>(), [18, 20, 35]);

    let mut costs = CostSummary::new(2);
    [5, 1, 4, 4, 1].iter().for_each(|&cost| costs.push(Duration::from_ns(cost)));
    assert_eq!(costs.curve(), [Duration::from_ns(5), Duration::from_ns(8)]);
}

#[test]
fn means_are_rounded_down() {
    let mut stream = Stream::new(&Options::default());
    for (job, cost) in (0..).zip([5, 1, 4, 4, 2]) {
        let seen = Seen { cost, sleeps: vec![(10 * cost, 1)], ..Seen::at(1_000 * job) };
        let (job, segments) = seen.recorded();
        stream.release(&seen.release, Circumstances::default());
        stream.complete(&job, &segments);
    }
    let model = stream.to_model(Separator::SUSPENSION);
    let (execution, response) = (model.execution.unwrap(), model.response.unwrap());
    assert_eq!((execution.wcet_ns[0].ns(), execution.mean_ns.unwrap().ns()), (6, 4));
    assert_eq!((response.max_ns.ns(), response.mean_ns.unwrap().ns()), (56, 36));
}

/// Every length around those at which rings grow and move, and batches end.
#[test]
fn every_number_of_jobs() {
    for horizon in [0, 1, 31, 32, 33, 100] {
        for count in 0..400 {
            let releases: Vec<Release> =
                (0..count).map(|job: u64| exact(job * 1_000 + job * job % 977)).collect();
            check_spans(&releases, horizon.max(1));
            check_costs(
                &releases.iter().map(|release| release.window.earliest().ns() % 500).collect::<Vec<_>>(),
                horizon.max(1),
            );
        }
    }
}

/// Long enough that most batches change nothing and are skipped; those that do must not be.
#[test]
fn rare_extremes_are_not_skipped() {
    for (seed, spread, odd) in [(1, 1_000, 500), (2, 50_000, 2_000), (3, 2_000_000, 100), (4, 1, 3_000)] {
        let mut random = Random(seed);
        let mut now = 5_000_000_000;
        let (mut releases, mut costs) = (Vec::new(), Vec::new());
        for job in 0..20_000_u64 {
            // Every few thousand jobs the pace changes; now and then a job is early, late, unseen, or costs
            // far more.
            now += if job / 6_000 % 2 == 0 { 1_000_000 } else { 1_000_700 };
            let at = match random.below(odd) {
                0 => now + 3 * spread + random.below(100_000),
                1 => now - random.below(400_000),
                _ => now + random.below(spread),
            };
            releases.push(if random.below(odd) == 2 {
                window(at - random.below(800_000), at)
            } else {
                exact(at)
            });
            costs.push(
                200_000
                    + random.below(spread)
                    + if random.below(odd) == 3 { random.below(1_000_000) } else { 0 },
            );
        }
        check_spans(&releases, 300);
        check_costs(&costs, 300);
    }
}

#[test]
fn an_extreme_by_one_nanosecond_is_not_skipped() {
    let late = |job: u64| u64::from(job == 3_000);
    check_spans(&(0..6_000).map(|job| exact(1_000_000 * job + late(job))).collect::<Vec<_>>(), 300);
    check_costs(&(0..6_000).map(|job| 500 + late(job)).collect::<Vec<_>>(), 300);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn curves_are_exact(jobs in jobs(300), horizon in 1_usize..150) {
        check_spans(&releases(&jobs), horizon);
        check_costs(&jobs.iter().map(|Seen { cost, .. }| *cost).collect::<Vec<_>>(), horizon);
    }
}
