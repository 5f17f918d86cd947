//! Laws of periodic inference, worked examples, and the figures of the first prototype.

use crate::common::accuracy::ROWS;
use crate::common::noise::Random;
use crate::common::simulated::whole;
use crate::common::{exact, window};
use proptest::prelude::*;
use punctual_extract::periodic::PeriodicSummary;
use punctual_extract::stream::{Circumstances, Options, Stream};
use punctual_model::check::{periodic as check, typical as check_typical};
use punctual_model::{
    Choice, Disturbance, Duration, Fraction, Instant, Periodic, PeriodicOn, Release, Separator, Window,
};
use std::collections::HashSet;

fn summary(releases: &[Release]) -> PeriodicSummary {
    let mut summary = PeriodicSummary::new();
    releases.iter().for_each(|release| summary.push(release));
    summary
}

fn model(releases: &[Release]) -> Option<Periodic> {
    let model = summary(releases).model();
    if let Some(model) = &model {
        assert_eq!(check(model, releases), []);
    }
    model
}

fn at(releases: &[u64]) -> Vec<Release> {
    releases.iter().copied().map(exact).collect()
}

/// The least jitter with period `numerator / denominator`, rounded up, from every release.
fn jitter(releases: &[Release], numerator: i128, denominator: i128) -> i128 {
    let above =
        |instant: Instant, job: usize| i128::from(instant.ns()) * denominator - job as i128 * numerator;
    let highest = releases.iter().enumerate().map(|(job, release)| above(release.window.latest(), job)).max();
    let lowest =
        releases.iter().enumerate().map(|(job, release)| above(release.window.earliest(), job)).min();
    let height = highest.unwrap_or(0) - lowest.unwrap_or(0);
    -(-height).div_euclid(denominator)
}

/// The least jitter of all periods: jitter is convex and bends only at slopes between two bounds, so one of
/// those is the minimum.
fn least_jitter(releases: &[Release]) -> i128 {
    let bounds = |release: &Release| [release.window.earliest().ns(), release.window.latest().ns()];
    let mut least = i128::MAX;
    for (i, first) in releases.iter().enumerate() {
        for (j, second) in releases.iter().enumerate().skip(i + 1) {
            for (from, to) in bounds(first).into_iter().flat_map(|from| bounds(second).map(|to| (from, to))) {
                least = least.min(jitter(releases, i128::from(to) - i128::from(from), (j - i) as i128));
            }
        }
    }
    least
}

/// papers: LiME, Fig. 2: of all periods, 10 has the least jitter, 5.
#[test]
fn the_papers_example() {
    let model = model(&at(&[100, 115, 120, 135])).unwrap();
    assert_eq!(
        (model.period_ns.ns(), model.offset_ns, model.jitter_ns.ns(), model.least_jitter_ns.ns()),
        (10, 100, 5, 5)
    );
    assert_eq!(
        (model.on, model.choice, model.period_exact, model.approximate),
        (PeriodicOn::Release, Choice::Rounded, None, false)
    );
}

#[test]
fn too_few_releases_have_no_period() {
    assert_eq!(model(&[]), None);
    assert_eq!(model(&at(&[5])), None);
    assert_eq!(model(&at(&[5, 10])), None);
    assert_eq!(model(&at(&[7, 7, 7, 7])), None);
    assert!(model(&at(&[7, 7, 7, 8])).is_none_or(|model| model.period_ns.ns() > 0));
    assert!(model(&at(&[0, 0, 1 << 62])).is_some());
    assert_eq!(model(&at(&[0, 1, u64::MAX])), None);
}

/// The lower bounds of these releases do not rise in the middle, where the estimate is taken.
#[test]
fn bursts_get_the_period_of_least_jitter() {
    let model = model(&at(&[0, 0, 0, 0, 0, 0, 0, 900, 900])).unwrap();
    assert_eq!(model.choice, Choice::LeastJitter);
    assert_eq!(model.jitter_ns.ns().max(model.least_jitter_ns.ns() + 1), model.least_jitter_ns.ns() + 1);
}

#[test]
fn known_arrivals_have_their_exact_period() {
    let released = |job: u64, arrival: u64| Release {
        arrival: Some(Instant::from_ns(arrival)),
        ..exact(arrival + 100 + job * 977 % 5_000)
    };
    let whole: Vec<Release> = (0..50).map(|job| released(job, 1_000 + job * 1_000_003)).collect();
    let found = model(&whole).unwrap();
    assert_eq!((found.on, found.period_ns.ns(), found.period_exact), (PeriodicOn::Arrival, 1_000_003, None));
    assert_eq!(found.offset_ns, 1_000);

    let sixty_hertz: Vec<Release> =
        (0..50).map(|job| released(job, 1_000 + job * 1_000_000_000 / 60)).collect();
    let found = model(&sixty_hertz).unwrap();
    assert_eq!((found.on, found.period_ns.ns()), (PeriodicOn::Arrival, 16_666_667));
    assert_eq!(found.period_exact, Some(Fraction { numerator: 50_000_000, denominator: 3 }));

    let mut mixed = whole;
    mixed[20].arrival = None;
    assert_eq!(model(&mixed).unwrap().on, PeriodicOn::Release);
}

/// The arrivals around it are known, so it is as certain what was skipped.
#[test]
fn one_unknown_arrival_hides_no_slips() {
    for place in [700, 1_500, 2_200] {
        let (mut k, mut skipped) = (0, 0);
        let releases: Vec<Release> = (0..3_000)
            .map(|job| {
                // Stalls, one of them four releases before the end.
                let advance = if job > 0 && job % 128 == 100 || job == 2_996 { 3 + job % 5 } else { 1 };
                (k, skipped) = (k + advance, skipped + advance - 1);
                let due = 1_000_000 * k;
                let arrival = (job != place).then_some(Instant::from_ns(due));
                Release { arrival, ..exact(due + 40_000 + job * job * 7_919 % 300_000) }
            })
            .collect();
        let found = model(&releases).unwrap();
        assert_eq!((found.on, found.period_ns.ns()), (PeriodicOn::Release, 1_000_000));
        assert_eq!((found.skipped, found.extra), (skipped, 0), "{place}");
    }
}

/// A loop that is overloaded for a while skips every second activation. Its neighbours make that look like a
/// task of twice the period; the arrivals leave no doubt.
#[test]
fn skips_in_a_row_are_certain_on_arrivals() {
    for in_a_row in [8, 20, 300] {
        let mut k = 0;
        let releases: Vec<Release> = (0..1_000)
            .map(|job| {
                k += if (400..400 + in_a_row).contains(&job) { 2 } else { 1 };
                let due = 5_000_000 * k;
                let late = 30_000 + job * job * 7_919 % 40_000;
                Release { arrival: Some(Instant::from_ns(due)), ..exact(due + late) }
            })
            .collect();
        let found = model(&releases).unwrap();
        assert_eq!((found.on, found.period_ns.ns()), (PeriodicOn::Arrival, 5_000_000));
        assert_eq!((found.skipped, found.extra), (in_a_row, 0));
        assert!(found.jitter_ns.ns() < 70_000, "{}", found.jitter_ns);
        let first = found.slips.first().unwrap();
        assert_eq!((first.at_ns, first.activations), (releases[400].window.latest(), 1));
        for split in [1, 2, 400, 407, 600, 999] {
            let [mut whole, later] = [&releases[..split], &releases[split..]].map(|piece| {
                let mut summary = PeriodicSummary::new();
                piece.iter().for_each(|release| summary.push(release));
                summary
            });
            whole.merge(&later);
            assert_eq!(whole.model().as_ref(), Some(&found), "{in_a_row}, {split}");
        }
    }
}

/// Several slips a few releases apart are told apart: jitter is not the sum of what they skip.
#[test]
fn slips_near_each_other_are_told_apart() {
    let cases: [&[(u64, u64)]; 6] = [
        &[(1_000, 1), (1_001, 1)],
        &[(1_000, 2), (1_001, 1)],
        &[(1_000, 1), (1_001, 3)],
        &[(1_000, 1), (1_001, 1), (1_002, 1), (1_003, 1)],
        &[(1_000, 5), (1_004, 5), (1_007, 5), (1_012, 6)],
        &[(1_000, 1), (1_005, 1), (1_010, 1), (1_015, 1), (1_020, 1), (1_025, 1), (1_030, 1)],
    ];
    for slips in cases {
        let mut random = Random(9);
        let mut k = 0;
        let releases: Vec<Release> = (0..3_000)
            .map(|job| {
                k += 1 + slips.iter().find(|(at, _)| *at == job).map_or(0, |(_, skipped)| *skipped);
                exact(2_000_000 * k + 20_000 + random.below(40_000))
            })
            .collect();
        let found = model(&releases).unwrap();
        let skipped = slips.iter().map(|(_, skipped)| skipped).sum();
        assert_eq!((found.period_ns.ns(), found.skipped, found.extra), (2_000_000, skipped, 0));
        assert!(found.jitter_ns.ns() <= 40_000, "{}", found.jitter_ns);
        assert_eq!(found.slips.len(), slips.len());
    }
}

/// Every distance of known arrivals is a multiple of the shortest, but that is rare: no such grid is claimed.
#[test]
fn a_rare_short_distance_is_no_period() {
    let mut k = 0;
    let releases: Vec<Release> = (0..1_000_u64)
        .map(|job| {
            k += if job % 4 == 0 { 1 } else { 3 + job % 3 };
            Release { arrival: Some(Instant::from_ns(1_000_000 * k)), ..exact(1_000_000 * k + 30_000) }
        })
        .collect();
    let found = model(&releases).unwrap();
    assert_ne!(found.period_ns.ns(), 1_000_000);
}

/// Activations were skipped once, and at the end something else than a datum wakes the thread.
#[test]
fn an_early_last_release_hides_no_slip() {
    let mut random = Random(3);
    let mut due = 0;
    let mut releases: Vec<Release> = (0..3_000)
        .map(|job| {
            due += if job == 1_500 { 12_000_000 } else { 2_000_000 };
            exact(due + 20_000 + random.below(30_000))
        })
        .collect();
    releases.push(exact(due + 100_000));
    let found = model(&releases).unwrap();
    assert_eq!((found.period_ns.ns(), found.skipped, found.extra), (2_000_000, 5, 0));
    let typical = found.typical.unwrap();
    assert!(typical.jitter_ns.ns() < 50_000 && typical.left_out.len() == 1, "{typical:?}");
}

/// Lateness that hardly ever comes close to zero, and whose least wanders by 20 µs as the machine gets busy.
/// Least squares through all releases, stalls included, would make 4.000007 ms of it.
#[test]
fn stalls_do_not_tilt_the_period() {
    let mut random = Random(20);
    let releases: Vec<Release> = (0..5_000)
        .map(|job: u64| {
            let usual = (0..4).map(|_| random.below(15_000)).sum::<u64>() + 5 * job.saturating_sub(1_000);
            // Every stall makes three releases late, and there are more of them towards the end.
            let stalled = [9_000_000, 5_000_000, 1_000_000].get((job % 150) as usize).filter(|_| job > 2_500);
            exact(1_000_000_000 + 4_000_000 * job + 20_000 + usual.max(stalled.copied().unwrap_or(0)))
        })
        .collect();
    assert_eq!(model(&releases).unwrap().period_ns.ns(), 4_000_000);
}

/// Stalls make the mean lateness a fortieth of the period, and events that nobody took in time became one.
/// Two slips are certain although only 20 and 10 releases follow: all of these agree.
#[test]
fn slips_just_before_the_end_are_certain() {
    let mut random = Random(14);
    let mut k = 0;
    let releases: Vec<Release> = (0..3_000)
        .map(|job| {
            k += if job % 200 == 150 || job == 2_980 || job == 2_990 { 2 } else { 1 };
            let late = if job % 40 == 20 { 3_600_000 } else { 40_000 + random.below(20_000) };
            exact(4_000_000 * k + late)
        })
        .collect();
    let found = model(&releases).unwrap();
    assert_eq!((found.period_ns.ns(), found.skipped, found.extra), (4_000_000, 15 + 2, 0));
}

/// A sleep that a signal cut short has no arrival, and takes those of the others from no one.
#[test]
fn disturbed_releases_need_no_arrival() {
    let released = |job: u64| Release {
        arrival: (job != 20).then(|| Instant::from_ns(1_000 + job * 1_000_000)),
        ..exact(1_100 + job * 1_000_000 + job * 977 % 5_000)
    };
    let releases: Vec<Release> = (0..50).map(released).collect();
    let on = |disturbance: Option<Disturbance>, cut: usize| {
        let push = |range: std::ops::Range<usize>| {
            let mut summary = PeriodicSummary::new();
            for job in range {
                summary.push_with(&releases[job], 1, disturbance.filter(|_| job == 20));
            }
            summary
        };
        let mut whole = push(0..cut);
        whole.merge(&push(cut..50));
        let found = whole.model().unwrap();
        assert_eq!(check(&found, &releases), []);
        assert_eq!(found.period_ns.ns(), 1_000_000);
        found.on
    };
    for cut in [0, 10, 30] {
        assert_eq!(on(Some(Disturbance::Signal), cut), PeriodicOn::Arrival);
        assert_eq!(on(Some(Disturbance::Ending), cut), PeriodicOn::Arrival);
        assert_eq!(on(None, cut), PeriodicOn::Release);
    }
}

/// A signal may end a sleep long before its time: such an arrival does not count.
#[test]
fn an_arrival_after_the_release_does_not_count() {
    let never = Release { arrival: Some(Instant::from_ns(u64::MAX / 2)), ..exact(3_000_100) };
    let found = model(&[exact(1_000_000), exact(2_000_000), never, exact(4_000_000)]).unwrap();
    assert_eq!((found.on, found.period_ns.ns(), found.jitter_ns.ns()), (PeriodicOn::Release, 1_000_000, 100));
}

#[test]
fn windows_cost_jitter_but_not_the_period() {
    let releases: Vec<Release> = (0..1_000)
        .map(|job| {
            let at = 1_000_000_000 + job * 5_000_000 + job * 7_919 % 30_000;
            if job % 100 == 50 { window(at - 4_000_000, at) } else { exact(at) }
        })
        .collect();
    let found = model(&releases).unwrap();
    assert_eq!((found.period_ns.ns(), found.choice), (5_000_000, Choice::Rounded));
    assert!((4_000_000..4_030_000).contains(&found.jitter_ns.ns()));
}

#[test]
fn without_exact_releases_bounds_decide() {
    let releases: Vec<Release> = (0..100).map(|job| window(1_000_000 * job, 1_000_000 * job + 400)).collect();
    assert_eq!(model(&releases).unwrap().period_ns.ns(), 1_000_000);
}

/// Seed, period, releases, spread of the noise; then the prototype's period, offset, jitter and least jitter,
/// rounded up.
#[test]
fn the_prototype_agrees() {
    let expected = [
        ((1, 10_000_000, 100, 50_000), (10_000_000, 1_000_000_014, 42_693, 42_652)),
        ((2, 1_234_000, 1_000, 80_000), (1_234_000, 1_000_000_096, 1_587_281, 1_587_230)),
        ((3, 33_212_345, 3_000, 10_000), (33_212_345, 1_000_000_000, 205_663, 205_663)),
        ((4, 500_000_000, 20, 300_000), (500_000_000, 1_000_002_629, 4_485_236, 4_472_164)),
        ((5, 2_902_494, 2_000, 30_000), (2_902_494, 1_000_000_002, 613_703, 613_699)),
        ((6, 999_999, 5_000, 900_000), (1_000_000, 999_996_971, 18_437_792, 18_437_638)),
        ((7, 7_000_000, 7, 7_000_000), (7_000_000, 1_000_718_990, 5_004_684, 4_827_074)),
        ((8, 250_000, 400, 2_000_000), (250_000, 1_000_063_703, 27_750_084, 27_738_401)),
    ];
    for ((seed, period, jobs, spread), (chosen, offset, jitter, least_jitter)) in expected {
        let mut random = Random(seed);
        let mut last = 0;
        let releases: Vec<Release> = (0..jobs)
            .map(|job| {
                let mut late = random.below(spread).min(random.below(spread));
                if random.below(50) == 0 {
                    late += random.below(20 * spread);
                }
                last = last.max(1_000_000_000 + job * period + late);
                exact(last)
            })
            .collect();
        let found = model(&releases).unwrap();
        assert_eq!((found.period_ns.ns(), found.offset_ns), (chosen, offset), "seed {seed}");
        assert_eq!((found.jitter_ns.ns(), found.least_jitter_ns.ns()), (jitter, least_jitter), "seed {seed}");
    }
}

/// If a clock runs slower and slower, every release is a corner of the hulls.
#[test]
fn cut_corners_stay_sound() {
    for (acceleration, noise) in [(10, 0), (40, 1_000), (3_000, 0)] {
        let mut random = Random(acceleration);
        let releases: Vec<Release> = (0..24_000_u64)
            .map(|job| exact(job * 1_000_000 + job * job * acceleration / 2 + random.below(noise + 1)))
            .collect();
        let found = model(&releases).unwrap();
        let (numerator, denominator) = match found.period_exact {
            Some(exact) => (exact.numerator, exact.denominator),
            None => (found.period_ns.ns(), 1),
        };
        let tight = jitter(&releases, i128::from(numerator), i128::from(denominator));
        assert!(i128::from(found.jitter_ns.ns()) <= tight + tight / 100 + 2, "{found:?} over {tight}");
        assert!(found.approximate || noise > 0);

        let mut pieces = summary(&releases[..10_000]);
        pieces.merge(&summary(&releases[10_000..]));
        assert_eq!(check(&pieces.model().unwrap(), &releases), []);
    }
}

/// Edges of both hulls may have the same slope; the search must not take that for a minimum.
#[test]
fn parallel_edges_do_not_end_the_search() {
    let releases = at(&[100, 100, 128, 157, 197, 242, 270, 270]);
    assert_eq!(i128::from(model(&releases).unwrap().least_jitter_ns.ns()), least_jitter(&releases));
}

/// Many stalls in a long run: the typical model leaves them out, in any pieces, and only so many releases.
#[test]
fn typical_jitter_is_typical_in_long_runs() {
    for (jobs, stalls, most, jitter) in
        [(300_000, 80, 300, 350_000), (600_000, 160, 516, 350_000), (300_000, 0, 0, 400_000)]
    {
        let mut random = Random(jobs + stalls);
        let mut held_up = 0;
        let releases: Vec<Release> = (0..jobs)
            .map(|job| {
                let due = 1_000_000_000 + job * 1_000_000;
                if random.below(jobs) < stalls {
                    held_up = due + 2_000_000 + random.below(2_000_000);
                }
                held_up = (due + (20_000.0 * random.exponential()) as u64).max(held_up + 1);
                exact(held_up)
            })
            .collect();
        let whole = summary(&releases);
        let mut pieces = PeriodicSummary::new();
        releases.chunks(70_001).for_each(|piece| pieces.merge(&summary(piece)));
        let found = whole.model().unwrap();
        assert_eq!(pieces.model().as_ref(), Some(&found));
        assert_eq!((check(&found, &releases), check_typical(&found, &releases)), (vec![], vec![]));
        let typical = found.typical.unwrap();
        assert!(typical.left_out.len() <= most, "{} left out", typical.left_out.len());
        assert!(typical.jitter_ns.ns() < jitter, "{jobs} jobs: {}", typical.jitter_ns);
        assert!(found.jitter_ns.ns() > 2_000_000 || stalls == 0);
    }
}

/// The least lateness wobbles by a microsecond or two over minutes: that is no clock of its own.
#[test]
fn wobble_is_no_fraction_of_a_nanosecond() {
    let mut random = Random(9);
    let jobs = 72_000;
    let late = |job: u64| 22_000 - job / 24 + (20_000.0 * random.exponential()) as u64;
    let late: Vec<u64> = (0..jobs).map(late).collect();
    let releases: Vec<u64> = (0..).zip(&late).map(|(job, late)| 10_000_000 * job + late).collect();
    let found = model(&at(&releases)).unwrap();
    assert_eq!((found.period_ns.ns(), found.period_exact), (10_000_000, None));
}

/// Windows reach lower than a release that is left out for being early.
#[test]
fn wide_windows_leave_a_typical_model() {
    let mut random = Random(4);
    let mut releases = at(&[]);
    for job in 0..3_000_u64 {
        let at = 1_000_000_000 + job * 10_000_000 + (20_000.0 * random.exponential()) as u64;
        releases.push(match job {
            1_234 => exact(at - 3_500_000),
            _ if job % 300 == 7 => window(at - 9_000_000, at),
            _ => exact(at),
        });
    }
    let found = model(&releases).unwrap();
    assert_eq!(found.period_ns.ns(), 10_000_000);
    assert!(found.typical.is_some(), "{found:?}");
    assert_eq!(check_typical(&found, &releases), []);
}

/// What was sent in a stall is received without waiting, however often: a window that opens early makes no
/// other release late.
#[test]
fn wide_windows_do_not_widen_the_typical_jitter() {
    let mut random = Random(8);
    let mut before = 0;
    let releases: Vec<Release> = (0..6_000_u64)
        .map(|job| {
            let due = 1_000_000_000 + job * 10_000_000 + (20_000.0 * random.exponential()) as u64;
            let opened = std::mem::replace(&mut before, due);
            if job % 50 == 7 { window(opened, due) } else { exact(due) }
        })
        .collect();
    let found = model(&releases).unwrap();
    assert_eq!(check_typical(&found, &releases), []);
    assert!(found.jitter_ns > Duration::from_ms(9), "{found:?}");
    let typical = found.typical.unwrap();
    assert_eq!(typical.left_out, []);
    assert!(typical.jitter_ns < Duration::from_ms(1), "{typical:?}");
}

/// Arrivals that only some releases have: the model is on releases, but an early arrival that is left out is
/// early by as much as the list says.
#[test]
fn an_early_known_arrival_is_left_out_by_its_distance() {
    let later = 281_474_976_710_657;
    let known = |arrival: u64, at: u64| Release { arrival: Some(Instant::from_ns(arrival)), ..exact(at) };
    let mut releases = vec![known(0, 1), known(later, later)];
    releases.extend([exact(later); 18]);
    releases.extend([window(later, later + 400); 19]);
    let found = model(&releases).unwrap();
    assert_eq!(found.on, PeriodicOn::Release);
    assert_eq!(found.typical.as_ref().unwrap().left_out[0].at_ns, Instant::from_ns(1));
    assert_eq!(check_typical(&found, &releases), []);
    assert_eq!(check(&found, &releases), []);
}

/// What a live semaphore did under load: of each release off the grid its number, how late it was in
/// hundredths of a period, and activations since the release before. Some look early, with which lateness
/// is too great for slips at first.
#[test]
fn slips_are_found_where_stalls_merge_activations() {
    const PERIOD: u64 = 2_500_000;
    let stalls = [(1, 7, 2), (28, 2, 4), (40, 66, 2), (50, 1, 5), (62, 2, 3), (92, 31, 1), (104, 68, 1)];
    let merged =
        [(479, 87, 3), (480, 3, 2), (498, 82, 2), (499, 2, 2), (515, 74, 3), (516, 1, 2), (530, 2, 3)];
    let later = [(531, 46, 3), (532, 2, 2), (595, 2, 3), (661, 15, 4), (662, 1, 4)];
    let pauses = [130, 198, 266, 334, 402, 470, 727, 795, 863, 931].map(|job| (job, 2, 3));
    let odd: Vec<(u64, u64, u64)> = [&stalls[..], &merged, &later, &pauses].concat();
    let (mut random, mut activation) = (Random(5), 0);
    let releases: Vec<Release> = (0..947)
        .map(|job| {
            let found = odd.iter().find(|(number, ..)| *number == job);
            activation += found.map_or(1, |(_, _, advance)| *advance);
            let late = found.map_or_else(
                || 37_500 + (12_000.0 * random.exponential()) as u64,
                |(_, hundredths, _)| hundredths * PERIOD / 100,
            );
            exact(1_000_000_000 + activation * PERIOD + late)
        })
        .collect();
    let found = model(&releases).unwrap();
    assert_eq!((found.period_ns.ns(), found.skipped, found.extra), (PERIOD, 52, 0));
    assert_eq!([check(&found, &releases), check_typical(&found, &releases)].concat(), []);
}

/// Releases of a period with exponential lateness of 5 µs.
fn prompt(period: u64, count: u64, random: &mut Random) -> Vec<u64> {
    (0..count).map(|job| 1_000_000_000 + job * period + (5_000.0 * random.exponential()) as u64).collect()
}

/// More early releases than may be left out tilt the hull. A period that follows them has more jitter than
/// the true one.
#[test]
fn a_few_early_releases_do_not_tilt_the_period() {
    for (period, jobs, early) in [
        (10_000_000, 2_000, 3),
        (10_000_000, 2_000, 4),
        (10_000_000, 5_000, 5),
        (10_000_000, 5_000, 6),
        (10_000_000, 5_000, 8),
        (3_141_592, 2_000, 4),
        (3_141_592, 5_000, 5),
    ] {
        for seed in 0..10 {
            let mut random = Random(seed);
            let mut releases = prompt(period, jobs, &mut random);
            let mut moved = HashSet::new();
            while moved.len() < early {
                moved.insert(20 + random.below(jobs - 40) as usize);
            }
            moved.iter().for_each(|job| releases[*job] -= period * 3 / 10);
            let releases = at(&releases);
            let found = model(&releases).unwrap();
            assert_eq!(
                (found.period_ns.ns(), found.period_exact),
                (period, None),
                "{early} of {jobs}: {seed}"
            );
            let tight = jitter(&releases, i128::from(period), 1);
            assert_eq!(i128::from(found.jitter_ns.ns()), tight, "{early} of {jobs}: {seed}");
            assert_eq!(check_typical(&found, &releases), []);
        }
    }
}

/// A signal tells why a release is early, so few others have to show that it is.
#[test]
fn a_signal_excuses_an_early_release_of_a_short_run() {
    for (jobs, phase) in (20..150).step_by(13).flat_map(|jobs| [(jobs, 3), (jobs, 9)]) {
        let mut random = Random(jobs);
        let mut releases = prompt(10_000_000, jobs, &mut random);
        releases.push(1_000_000_000 + (jobs - 1) * 10_000_000 + phase * 1_000_000);
        let releases = at(&releases);
        let mut summary = summary(&releases[..jobs as usize]);
        summary.push_with(&releases[jobs as usize], 1, Some(Disturbance::Signal));
        let found = summary.model().unwrap();
        assert_eq!((check(&found, &releases), check_typical(&found, &releases)), (vec![], vec![]));
        let typical = found.typical.unwrap();
        let reasons: Vec<_> = typical.left_out.iter().map(|out| out.reason).collect();
        assert_eq!(reasons, [Some(Disturbance::Signal)], "{jobs} jobs, phase {phase}");
        assert!(typical.jitter_ns < Duration::from_us(100), "{typical:?}");
    }
}

/// Where arrivals are exact nothing is early, and leaving out an early one must not pay.
#[test]
fn one_late_release_after_known_arrivals_is_left_out() {
    for jobs in (20..400).chain([585, 592, 3_000]) {
        let mut random = Random(jobs);
        let releases: Vec<Release> = (0..jobs)
            .map(|job| {
                let arrival = 1_000_000_000 + (job + u64::from(job > jobs / 2)) * 10_000_000;
                let late =
                    if job == jobs / 2 { 15_000_000 } else { (15_000.0 * random.exponential()) as u64 };
                Release { arrival: Some(Instant::from_ns(arrival)), ..exact(arrival + late) }
            })
            .collect();
        let found = model(&releases).unwrap();
        let typical = found.typical.unwrap();
        assert_eq!(typical.left_out.len(), 1, "{jobs} jobs: {typical:?}");
        assert!(typical.jitter_ns < Duration::from_us(300), "{jobs} jobs: {typical:?}");
    }
}

/// Windows that open a period before lower the offset, but no one is late because of them.
#[test]
fn wide_windows_do_not_make_releases_late() {
    for jobs in [72_u64, 300, 1_000] {
        let mut random = Random(jobs);
        let times = prompt(10_000_000, jobs, &mut random);
        let mut releases = at(&times);
        for job in [jobs / 3, jobs / 2].map(|job| job as usize) {
            releases[job] = window(times[job - 1] + 1_000, times[job]);
        }
        let (found, lateness) = summary(&releases).models();
        assert_eq!(found.unwrap().period_ns.ns(), 10_000_000);
        let lateness = lateness.unwrap();
        assert!(lateness.p50_ns < Duration::from_us(10), "{jobs} jobs: {lateness:?}");
        assert!(lateness.p999_ns < Duration::from_us(100), "{jobs} jobs: {lateness:?}");
    }
}

/// What woke the thread to end it is no release, so it is not late either.
#[test]
fn the_end_of_a_thread_is_in_no_percentile() {
    for is_known in [false, true] {
        let mut random = Random(3);
        let times = prompt(10_000_000, 200, &mut random);
        let release = |at: u64, arrival: u64| Release {
            arrival: is_known.then_some(Instant::from_ns(arrival)),
            ..exact(at)
        };
        let mut pieces = [PeriodicSummary::new(), PeriodicSummary::new()];
        for (job, at) in (0..).zip(&times) {
            pieces[usize::from(job > 120)].push(&release(*at, 1_000_000_000 + job * 10_000_000));
        }
        let end = 1_000_000_000 + 200 * 10_000_000;
        pieces[1].push_with(&release(end + 6_000_000, end), 1, Some(Disturbance::Ending));
        let [mut merged, later] = pieces;
        merged.merge(&later);
        let lateness = merged.models().1.unwrap();
        assert!(lateness.p999_ns < Duration::from_us(100), "{lateness:?}");
    }
}

/// Clocks count whole nanoseconds: half of one is nothing that a few releases could tell.
#[test]
fn few_releases_have_no_fractions_of_nanoseconds() {
    for seed in 0..1_000 {
        let mut random = Random(seed);
        let (count, period) = (3 + random.below(18), 1_000_000 + random.below(50_000_000));
        let releases: Vec<u64> =
            (0..count).map(|job| 1_000_000_000 + job * period + random.below(2)).collect();
        let found = model(&at(&releases)).unwrap();
        assert_eq!(found.period_exact, None, "{count} releases, {period} ns");
    }
}

fn small_streams() -> impl Strategy<Value = Vec<Release>> {
    let release = (0_u64..60, prop_oneof![3 => Just(0_u64), 1 => 0_u64..50]);
    prop::collection::vec(release, 3..14).prop_map(|releases| {
        let mut now = 100;
        let mut seen = Vec::new();
        for (gap, width) in releases {
            now += gap;
            seen.push(window(now.saturating_sub(width), now));
        }
        seen
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_period_has_less_jitter(releases in small_streams()) {
        // With skipped or extra activations, `least_jitter_ns` refers to other indices.
        let found = model(&releases).filter(|found| found.skipped + found.extra == 0);
        let Some(found) = found else { return Ok(()) };
        prop_assert_eq!(i128::from(found.least_jitter_ns.ns()), least_jitter(&releases));
        for period in 1..200 {
            prop_assert!(found.least_jitter_ns.ns() as i128 <= jitter(&releases, period, 1));
        }
    }

    #[test]
    fn the_jitter_is_as_small_as_possible(releases in small_streams()) {
        let found = model(&releases).filter(|found| found.skipped + found.extra == 0);
        let Some(found) = found else { return Ok(()) };
        let (numerator, denominator) = match found.period_exact {
            Some(exact) => (exact.numerator.into(), exact.denominator.into()),
            None => (found.period_ns.ns().into(), 1),
        };
        let tight = jitter(&releases, numerator, denominator);
        // A fraction's offset is rounded down, its upper end up.
        let slack = i128::from(denominator > 1);
        prop_assert!((tight..=tight + slack).contains(&i128::from(found.jitter_ns.ns())));
        prop_assert!(found.period_ns > Duration::ZERO);
    }

    #[test]
    fn long_pieces_merge_to_the_whole(seed in any::<u64>(), cut in 0_usize..3_000, shift in 0_u64..1 << 50) {
        let mut random = Random(seed);
        let releases: Vec<Release> = (0..3_000_u64)
            .map(|job| {
                let at = shift + job * 1_000_000 + random.below(100_000);
                match random.below(200) {
                    0 => window(at.saturating_sub(900_000), at),
                    1 => Release {
                        arrival: Some(Instant::from_ns(at - at % 1_000)),
                        window: Window::at(Instant::from_ns(at)),
                    },
                    _ => exact(at),
                }
            })
            .collect();
        let mut merged = summary(&releases[..cut]);
        merged.merge(&summary(&releases[cut..]));
        prop_assert_eq!(merged.model(), model(&releases));
    }
}

/// A thread that is woken by an expiration of its timer and gets its processor late finds several: its
/// release is the first of them, and the next one comes after the last.
#[test]
fn a_woken_thread_was_released_by_the_first_of_its_expirations() {
    const PERIOD: u64 = 4_000_000;
    let mut random = Random(7);
    let mut stream = Stream::new(&Options::default());
    let mut pieces = [Stream::new(&Options::default()), Stream::new(&Options::default())];
    let (mut expiration, mut skipped) = (0, 0);
    for job in 0..1_200 {
        let expirations = if job % 97 == 50 { 2 + random.below(6) } else { 1 };
        let release = exact(1_000_000 + expiration * PERIOD + random.below(60_000));
        let circumstances = Circumstances { expirations, ..Circumstances::default() };
        stream.release(&release, circumstances);
        pieces[usize::from(job > 50)].release(&release, circumstances);
        expiration += expirations;
        skipped += expirations - 1;
    }
    let [mut merged, later] = pieces;
    merged.merge(&later);
    for stream in [stream, merged] {
        let model = stream.to_model(Separator::SUSPENSION).arrival.periodic.expect("a period");
        assert_eq!((model.period_ns, model.period_exact), (Duration::from_ns(PERIOD), None));
        assert_eq!((model.skipped, model.extra), (skipped, 0));
        assert!(model.jitter_ns < Duration::from_us(61), "{model:?}");
    }
}

/// Buffers of 128 samples at 44.1 kHz. The least lateness of the machine rises by 4 µs within some thousand
/// jobs, so the lowest releases suggest a period that is longer by a nanosecond.
#[test]
fn a_sampling_rate_is_found_where_the_least_lateness_wanders() {
    for (seed, jobs) in [(1, 3_000), (2, 4_000), (3, 5_000), (4, 5_000)] {
        let mut random = Random(seed);
        let releases: Vec<Release> = (0..jobs)
            .map(|job: u64| {
                let due = 1_000_000_000 + job * 1_280_000_000 / 441;
                let least = 20_000 + 4_000 * job / jobs;
                exact(due + least + (20_000.0 * random.exponential()) as u64)
            })
            .collect();
        let found = model(&releases).unwrap();
        let expected = Fraction { numerator: 1_280_000_000, denominator: 441 };
        assert_eq!(found.period_exact, Some(expected), "{jobs} releases: {}", found.period_ns);
        assert_eq!(found.choice, Choice::Rounded);
    }
}

/// A neighbour of the true period that has more jitter is not printed, although it lies closer to the lowest
/// releases or has fewer digits.
#[test]
fn of_periods_alike_the_one_with_less_jitter_is_found() {
    let row = |name: &str| ROWS.iter().find(|row| row.name == name).unwrap();
    let gamma = [3, 51, 66, 78, 93].map(|case| row("gamma lateness").trace(case));
    let hidden = [53, 59].map(|case| row("the same, 0.5 % of the releases windows").trace(case));
    for trace in gamma.iter().chain(&hidden) {
        let found = model(&trace.releases()).unwrap();
        let exact = found.period_exact.unwrap_or(whole(found.period_ns.ns()));
        assert_eq!((Some(exact), found.period_exact), (trace.period, None));
    }
    // Here a neighbour has less jitter than the true period.
    let trace = row("gamma lateness").trace(61);
    let found = model(&trace.releases()).unwrap();
    assert_eq!(found.period_exact, None);
    assert!(found.jitter_ns.ns() <= trace.true_jitter().unwrap(), "{found:?}");
}
