//! Streams whose releases say which timer was ready, simulated with seeds of their own.

use crate::common::mixed::{self, mix, periods};
use crate::common::release::exact;
use proptest::prelude::*;
use punctual_extract::stream::{Circumstances, Options, Stream};
use punctual_model::check::check_stream;
use punctual_model::{Arrival, Instant, Release, Separator, Window};
use punctual_test_support::Random;
use punctual_trace::Ready;

const MS: u64 = 1_000_000;
const BEGIN: u64 = 1_000 * MS;

/// A release, and what was ready.
type Seen = (Release, Ready);

fn summed(seen: &[Seen]) -> Stream {
    let mut stream = Stream::new(&Options::default());
    for (release, ready) in seen {
        stream.release(release, Circumstances { ready: *ready, ..Circumstances::default() });
    }
    stream
}

fn arrival(seen: &[Seen]) -> Arrival {
    let found = summed(seen).to_model(Separator::SUSPENSION);
    let releases: Vec<Release> = seen.iter().map(|(release, _)| *release).collect();
    let violations = check_stream(&found, &releases, &[]);
    assert!(violations.is_empty(), "{}: {:?}", violations[0], found.arrival.modes);
    found.arrival
}

/// When timers of these periods expire, each up to `share` of the period late; keys are their places.
fn expiries(periods: &[u64], share: f64, wanted: u64, random: &mut Random) -> Vec<(u64, u32)> {
    let rate: f64 = periods.iter().map(|period| 1.0 / *period as f64).sum();
    let until = BEGIN + (wanted as f64 / rate) as u64;
    let mut all = Vec::new();
    for (key, period) in (0..).zip(periods) {
        let mut due = BEGIN + random.below(*period);
        while due < until {
            all.push((due + (share * *period as f64 * random.unit()) as u64, key));
            due += period;
        }
    }
    all.sort_unstable();
    all
}

/// An event loop that serves them, each for up to `longest`. What expires meanwhile is ready at its next
/// wait, and is released at some time since the last release.
fn served(expiries: &[(u64, u32)], longest: u64, random: &mut Random) -> Vec<Seen> {
    let (mut idle, mut last, mut seen) = (0, BEGIN, Vec::new());
    let mut rest = expiries;
    while let Some((first, _)) = rest.first() {
        let at = idle.max(*first);
        let count = rest.iter().take_while(|(expiry, _)| *expiry <= at).count();
        let keys: Vec<u32> = rest[..count].iter().map(|(_, key)| *key).collect();
        let earliest = if *first < idle { last } else { at };
        let window = Window::new(Instant::from_ns(earliest), Instant::from_ns(at)).expect("a window");
        seen.push((Release { arrival: None, window }, Ready::new(&keys).unwrap_or_default()));
        last = earliest;
        idle = at + 5_000 + random.below(longest);
        rest = &rest[count..];
    }
    seen
}

/// With more jitter than inference gets by with, and jobs that make each other wait.
#[test]
fn timers_with_keys_are_told_apart() {
    let (mut random, mut inferred, mut told) = (Random(204_311_001), 0, 0);
    for _ in 0..200 {
        let wanted = mix(&mut random);
        let share = 0.15 * random.unit();
        let seen = served(&expiries(&wanted, share, 1_500, &mut random), wanted[0] / 4, &mut random);
        let without: Vec<Seen> = seen.iter().map(|(release, _)| (*release, Ready::default())).collect();
        inferred += u32::from(periods(&arrival(&without)) == [wanted.clone()]);
        match periods(&arrival(&seen)) {
            found if found == [wanted.clone()] => told += 1,
            found => println!("{wanted:?} {share:.3}: {found:?}"),
        }
    }
    println!("{told} told, {inferred} inferred of 200");
    assert!(told >= 190 && inferred < 170, "{told} told, {inferred} inferred of 200");
}

/// Harmonic periods, in any phase.
#[test]
fn harmonic_timers_are_told_apart() {
    let mut random = Random(204_311_002);
    for wanted in
        [vec![10, 20], vec![5, 10], vec![5, 10, 20], vec![7, 11, 13], vec![10, 10], vec![4, 6, 8, 9]]
    {
        for share in [0.02, 0.2] {
            let wanted: Vec<u64> = wanted.iter().map(|ms| ms * MS).collect();
            let seen = served(&expiries(&wanted, share, 1_000, &mut random), MS, &mut random);
            assert_eq!(periods(&arrival(&seen)), std::slice::from_ref(&wanted), "{share}");
        }
    }
}

/// Timers that always come together have the jobs of the fastest one.
#[test]
fn timers_that_always_come_together_have_one_period() {
    let mut random = Random(204_311_003);
    let seen: Vec<Seen> = (0..500)
        .map(|job| {
            let keys: &[u32] = if job % 2 == 0 { &[3, 4] } else { &[3] };
            (exact(BEGIN + job * 10 * MS + random.below(50_000)), Ready::new(keys).expect("keys"))
        })
        .collect();
    let found = arrival(&seen);
    assert_eq!(periods(&found), Vec::<Vec<u64>>::new());
    assert_eq!(found.periodic.map(|it| it.period_ns.ns()), Some(10 * MS));
}

/// One key changes nothing, and neither do keys that are not periodic.
#[test]
fn keys_that_tell_nothing_change_nothing() {
    let mut random = Random(204_311_004);
    for case in 0..60 {
        let mut at = BEGIN;
        let releases: Vec<Release> = (0..600)
            .map(|_| {
                at += if case % 2 == 0 {
                    5 * MS + random.below(MS)
                } else {
                    (3e6 * random.exponential()) as u64
                };
                exact(at)
            })
            .collect();
        let with = |key: &dyn Fn(usize) -> u32| -> Vec<Seen> {
            let ready = |number| Ready::new(&[key(number)]).expect("a key");
            releases.iter().enumerate().map(|(number, release)| (*release, ready(number))).collect()
        };
        let without: Vec<Seen> = releases.iter().map(|release| (*release, Ready::default())).collect();
        let expected = arrival(&without);
        assert_eq!(arrival(&with(&|_| 7)), expected);
        assert_eq!(arrival(&with(&|number| [1, 2, 2][number * number % 3])), expected);
        assert_eq!(arrival(&with(&|number| number as u32)), expected);
    }
}

/// Descriptors that are ready at random have no periods.
#[test]
fn random_releases_of_several_keys_have_no_modes() {
    let mut random = Random(204_311_006);
    for case in 0..300 {
        let stream = mixed::no_rate(&mut random, case);
        let keys = 2 + random.below(2);
        let mut ready = |_| Ready::new(&[random.below(keys) as u32]).expect("a key");
        let seen: Vec<Seen> = stream.releases.iter().map(|release| (*release, ready(release))).collect();
        assert_eq!(periods(&arrival(&seen)), Vec::<Vec<u64>>::new(), "{}", stream.about);
    }
}

/// Whatever the timers do, and whatever else is ready or not known: each release is allowed. So are those of
/// pieces, which have the models of the whole wherever they are cut.
#[test]
fn disturbed_timers_are_within_their_model() {
    let (mut random, mut told) = (Random(204_311_005), 0);
    for _ in 0..800 {
        let seen = disturbed(&mut random);
        let found = arrival(&seen);
        let by_key = found.modes.first().is_some_and(|mode| mode.sources.len() > 1);
        told += u32::from(by_key);
        let at = random.below(seen.len() as u64 + 1) as usize;
        let mut first = summed(&seen[..at]);
        let last = summed(&seen[at..]);
        if first.can_merge(&last, 0) {
            first.merge(&last);
            assert_eq!(first.to_model(Separator::SUSPENSION).arrival, found, "{at}");
        }
    }
    assert!(told > 400, "{told} of 800");
}

/// Two to four timers, of which some expire late or not at all; rarely something else, or nothing known.
fn disturbed(random: &mut Random) -> Vec<Seen> {
    let wanted: Vec<u64> = (0..2 + random.below(3)).map(|_| MS + random.below(20 * MS)).collect();
    let mut all = expiries(&wanted, 0.2 * random.unit(), 60 + random.below(500), random);
    let rarely = 20 + random.below(400);
    all.retain(|_| random.below(rarely) > 0);
    let mut stalled = 0;
    for (at, key) in &mut all {
        if random.below(rarely) == 0 {
            stalled = *at + random.below(20 * MS);
        }
        *at = stalled.max(*at);
        if random.below(rarely) == 0 {
            *key = 10 + random.below(4) as u32;
        }
    }
    all.sort_unstable();
    let mut seen = served(&all, MS, random);
    for (_, ready) in &mut seen {
        if random.below(2 * rarely) == 0 {
            *ready = Ready::default();
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    /// Wherever the pieces are cut, and in whatever order they are merged.
    #[test]
    fn pieces_tell_what_the_whole_does(
        seed in any::<u64>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let seen = disturbed(&mut Random(seed));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(seen.len() + 1)).collect();
        cuts.sort_unstable();
        let ends = cuts.iter().copied().chain([seen.len()]);
        let begins = [0].into_iter().chain(cuts.iter().copied());
        let pieces: Vec<Stream> = begins.zip(ends).map(|(from, until)| summed(&seen[from..until])).collect();
        let append = |mut sum: Stream, piece: &Stream| {
            sum.merge(piece);
            sum
        };
        let left = pieces[1..].iter().fold(pieces[0].clone(), append);
        let right = pieces.iter().rev().skip(1).fold(pieces[pieces.len() - 1].clone(), |sum, piece| {
            append(piece.clone(), &sum)
        });
        let whole = summed(&seen).to_model(Separator::SUSPENSION).arrival;
        prop_assert_eq!(&left.to_model(Separator::SUSPENSION).arrival, &whole);
        prop_assert_eq!(&right.to_model(Separator::SUSPENSION).arrival, &whole);
    }
}
