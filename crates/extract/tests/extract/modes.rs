//! Streams of several rates, bursts, and rates that change: simulated with seeds of their own, which no
//! constant was chosen by.

use crate::common::accuracy::{ROWS, summary};
use crate::common::mixed::{self, Mixed, mix, periods, releases, superposed};
use crate::common::release::exact;
use proptest::prelude::*;
use punctual_extract::stream::{Circumstances, Options, Stream};
use punctual_model::arrival::Source;
use punctual_model::check::modes;
use punctual_model::{Arrival, Instant, Release, Separator, Window};
use punctual_test_support::Random;

const MS: u64 = 1_000_000;

/// Of the traces with one period.
const SERIES: u64 = 78;

fn summed(releases: &[Release]) -> Stream {
    let mut stream = Stream::new(&Options::default());
    releases.iter().for_each(|release| stream.release(release, Circumstances::default()));
    stream
}

fn arrival(releases: &[Release]) -> Arrival {
    let found = summed(releases).to_model(Separator::SUSPENSION).arrival;
    let violations = modes(&found.modes, releases);
    assert!(violations.is_empty(), "{}: {:?}", violations[0], found.modes);
    found
}

/// Of so many streams, how many have the modes that they should.
fn named(seed: u64, streams: u64, simulate: impl Fn(&mut Random, u64) -> Mixed) -> u64 {
    let mut random = Random(seed);
    let is_named = |number: &u64| {
        let stream = simulate(&mut random, *number);
        let found = arrival(&stream.releases);
        if !stream.is_named_by(&found) {
            println!("{}: {:?}, {:?}", stream.about, periods(&found), found.periodic.map(|it| it.period_ns));
            return false;
        }
        true
    };
    (0..streams).filter(is_named).count() as u64
}

#[test]
fn rates_are_told_apart() {
    let found = named(102_947_001, 200, |random, _| mixed::several_rates(random));
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn changes_are_found() {
    let found = named(102_947_002, 200, |random, _| mixed::change_of_rate(random));
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn bursts_are_found() {
    let found = named(102_947_003, 200, |random, _| mixed::bursts(random));
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn one_rate_has_no_modes() {
    assert_eq!(named(102_947_005, 1_000, |random, _| mixed::one_rate(random)), 1_000);
}

#[test]
fn random_releases_have_no_modes() {
    assert_eq!(named(102_947_004, 1_000, mixed::no_rate), 1_000);
}

/// Timers of 10 and 15 ms in an event loop that wakes up every whole millisecond: where both expire, there is
/// one release. Those alone would allow 10 and 30 ms.
#[test]
fn timers_that_start_together_are_told_apart() {
    let pairs = [(10, 15), (20, 30), (4, 6), (5, 7), (10, 25)];
    for ((one, other), is_late) in pairs.into_iter().flat_map(|pair| [(pair, true), (pair, false)]) {
        let mut random = Random(102_947_006);
        let mut times: Vec<u64> = Vec::new();
        let mut last = 0;
        for ms in (1_000..4_000).filter(|ms| ms % one == 0 || ms % other == 0) {
            // Where both expire, the loop is at work for a while before.
            let late = random.below(if ms % one == 0 && ms % other == 0 { one } else { one / 2 } * 100_000);
            last = (ms * MS + if is_late { late } else { 0 }).max(last + MS);
            times.push(last);
        }
        assert_eq!(
            periods(&arrival(&releases(times))),
            [vec![one * MS, other * MS]],
            "{one} {other} {is_late}"
        );
    }
}

/// Known arrivals tell their sources exactly, however late the machine was.
#[test]
fn known_arrivals_are_exact_however_late() {
    let mut random = Random(102_947_008);
    let every = |period: u64| move |job: u64| job * period * MS;
    let jump = |job: u64| job * 10 * MS + if job < 200 { 0 } else { 3 * MS };
    let change = |job: u64| (job * 5 + job.saturating_sub(200) * 3) * MS;
    let burst = |job: u64| (job / 4) * 20 * MS + job % 4 * 200_000;
    let skipping = |job: u64| (job + job / 7) * 10 * MS;
    type Rule<'a> = (&'a dyn Fn(u64) -> u64, &'a [u64]);
    let rules: [Rule<'_>; 5] = [
        (&jump, &[10 * MS, 10 * MS]),
        (&change, &[5 * MS, 8 * MS]),
        (&burst, &[20 * MS]),
        (&every(10), &[]),
        (&skipping, &[]),
    ];
    for ((rule, wanted), stall) in rules.into_iter().flat_map(|it| [5, 12, 30].map(|ms| (it, ms * MS))) {
        let mut all: Vec<Release> = Vec::new();
        let mut stalled = 0;
        for arrival in (0..400).map(|job| 1_000 * MS + rule(job)) {
            if random.below(60) == 0 {
                stalled = arrival + random.below(stall);
            }
            let at = (arrival + random.below(100_000)).max(stalled);
            let at = at.max(all.last().map_or(0, |last| last.window.latest().ns() + 50_000));
            let window = Window::at(Instant::from_ns(at));
            all.push(Release { arrival: Some(Instant::from_ns(arrival)), window });
        }
        let found = arrival(&all);
        assert_eq!(periods(&found).concat(), wanted, "{stall}: {found:?}");
        if let Some(burst) = found.modes.first().and_then(|mode| mode.sources[0].burst) {
            assert_eq!((burst.jobs, burst.within_ns.ns()), (4, 600_000));
        }
    }
}

/// Bursts and several rates, with releases that are late, missing, one too many, or known as windows: what is
/// found allows each of them.
#[test]
fn disturbed_sources_are_within_their_model() {
    let mut random = Random(102_947_009);
    let mut with_sources = [0, 0];
    for _ in 0..3_000 {
        let disturbed = 8 + random.below(150);
        let mut arrivals = Vec::new();
        for _ in 0..1 + random.below(4) / 3 {
            let (jobs, apart) = (1 + random.below(4), 50_000 + random.below(400_000));
            let (period, count) = (4 * MS + random.below(20 * MS), 60 + random.below(140));
            for burst in 0..count {
                let more = if random.below(disturbed) == 0 { random.below(3) } else { 1 };
                let all = (0..(jobs + more).saturating_sub(1)).map(|job| burst * period + job * apart);
                arrivals.extend(all.map(|at| 1_000 * MS + at + random.below(20_000)));
            }
        }
        arrivals.sort_unstable();
        let found = arrival(&late(&arrivals, disturbed, &mut random));
        let has = |is_it: fn(&Source) -> bool| found.modes.iter().flat_map(|it| &it.sources).any(is_it);
        with_sources[0] += u64::from(has(|it| it.burst.is_some()));
        with_sources[1] += u64::from(found.modes.iter().any(|it| it.sources.len() > 1));
    }
    assert!(with_sources[0] > 500 && with_sources[1] > 30, "{with_sources:?} of 3,000");
}

/// When the machine released these; it stalls now and then, and one release never comes before another.
fn late(arrivals: &[u64], disturbed: u64, random: &mut Random) -> Vec<Release> {
    let has_arrivals = random.below(2) == 0;
    let (mut at, mut stalled) = (0, 0);
    let release = |&arrival: &u64| {
        if random.below(disturbed) == 0 {
            stalled = arrival + random.below(30 * MS);
        }
        let latest = arrival.max(stalled).max(at + 5_000);
        let earliest = if latest == at + 5_000 || random.below(100) == 0 { at.max(1) } else { latest };
        at = latest;
        let window = Window::new(Instant::from_ns(earliest), Instant::from_ns(latest)).expect("a window");
        Release { arrival: has_arrivals.then_some(Instant::from_ns(arrival)), window }
    };
    arrivals.iter().map(release).collect()
}

/// A mode that comes again is the same, to the nanosecond, as it was before.
#[test]
fn repeated_modes_are_the_same() {
    let mut random = Random(102_947_007);
    for first in [5 * MS, 4_999_873, 3_333_333] {
        let mut due = 1_000 * MS;
        let mut times = Vec::new();
        for (period, jobs) in [(first, 400), (8 * MS, 300), (first, 350), (8 * MS, 500)] {
            for _ in 0..jobs {
                due += period;
                times.push(due + random.below(period / 100));
            }
            due += MS * random.below(3);
        }
        let found = arrival(&releases(times));
        let [one, other, again, last] = &found.modes[..] else { panic!("{:#?}", found.modes) };
        assert!(one.is_like(again) && other.is_like(last) && !one.is_like(other), "{:#?}", found.modes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    /// Wherever the pieces are cut.
    #[test]
    fn pieces_have_the_modes_of_the_whole(
        seed in any::<u64>(),
        kind in 0..4,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let mut random = Random(seed);
        let mixed = mix(&mut random);
        let mut all = superposed(&mixed, 0.03, 700, &mut random);
        if kind > 0 {
            let end = all[all.len() - 1].window.latest().ns();
            let mut due = end + MS + random.below(5 * MS);
            let late = |random: &mut Random| random.below(mixed[0] / 50);
            all.extend((0..300).map(|_| {
                due += mixed[0];
                exact(due + late(&mut random))
            }));
        }
        if kind == 2 {
            all.retain(|_| random.below(10) > 0);
        }
        if kind == 3 {
            let mut at = all[all.len() - 1].window.latest().ns();
            all.extend((0..random.below(400)).map(|_| {
                at += 1 + (3e6 * random.exponential()) as u64;
                exact(at)
            }));
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for until in cuts.into_iter().chain([all.len()]) {
            pieces.push(summed(&all[from..until]));
            from = until;
        }
        // From the left, and from the right.
        let left = pieces.iter().skip(1).fold(pieces[0].clone(), |mut sum, piece| {
            sum.merge(piece);
            sum
        });
        let right = pieces.iter().rev().skip(1).fold(pieces[pieces.len() - 1].clone(), |sum, piece| {
            let mut piece = piece.clone();
            piece.merge(&sum);
            piece
        });
        let whole = summed(&all).to_model(Separator::SUSPENSION);
        prop_assert_eq!(&left.to_model(Separator::SUSPENSION).arrival, &whole.arrival);
        prop_assert_eq!(&right.to_model(Separator::SUSPENSION).arrival, &whole.arrival);
    }
}

/// Of the traces by which periods are judged, with skips, stalls, backlogs, windows and heavy lateness, none
/// with one period has modes, and all keep their period.
#[test]
fn one_period_with_noise_has_no_modes() {
    for row in ROWS {
        for case in 0..(row.traces / 6).min(30) {
            let trace = row.trace_of(SERIES, case);
            let releases = trace.releases();
            let arrival = arrival(&releases);
            if trace.period.is_some() {
                assert_eq!(periods(&arrival), Vec::<Vec<u64>>::new(), "{}: {case}", row.name);
                assert_eq!(arrival.periodic, summary(&releases).model(), "{}: {case}", row.name);
            }
        }
    }
}
