//! The checkers of periodic models with slips, of typical models and of percentiles: worked examples; models
//! of a random truth pass, and fail as soon as one of their figures is false.

use crate::generate::{exactly, releases};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use punctual_model::check::{Model, percentiles, periodic, typical};
use punctual_model::*;

fn grid(offset_ns: i64, period: u64, jitter: u64) -> Periodic {
    Periodic {
        on: PeriodicOn::Release,
        period_ns: Duration::from_ns(period),
        period_exact: None,
        offset_ns,
        jitter_ns: Duration::from_ns(jitter),
        least_jitter_ns: Duration::ZERO,
        choice: Choice::Rounded,
        approximate: false,
        skipped: 0,
        extra: 0,
        slips: Vec::new(),
        typical: None,
    }
}

fn slip(at: u64, activations: i64) -> Slip {
    Slip { at_ns: Instant::from_ns(at), activations }
}

fn left_out(at: u64, off_ns: i64) -> LeftOut {
    LeftOut { at_ns: Instant::from_ns(at), off_ns, reason: None }
}

fn typical_of(offset_ns: i64, jitter: u64, left_out: Vec<LeftOut>) -> Option<Typical> {
    Some(Typical { offset_ns, jitter_ns: Duration::from_ns(jitter), left_out })
}

fn lines(found: &[Violation]) -> Vec<String> {
    found.iter().map(Violation::to_string).collect()
}

fn both(model: &Periodic, releases: &[Release]) -> Vec<Violation> {
    let mut found = periodic(model, releases);
    found.extend(typical(model, releases));
    found
}

#[test]
fn only_skipped_activations_are_passed_over() {
    // Activations 0, 1, 3, 6.
    let observed = exactly(&[100, 112, 131, 163]);
    let model = Periodic { skipped: 3, slips: vec![slip(131, 1), slip(163, 2)], ..grid(100, 10, 3) };
    assert_eq!(lines(&both(&model, &observed)), [""; 0]);
    let fewer = Periodic { skipped: 2, slips: vec![slip(131, 1), slip(163, 1)], ..model.clone() };
    let found = lines(&both(&fewer, &observed));
    assert_eq!(
        found,
        [
            "periodic jitter, job 3: observed 163 ns, allowed at most 153 ns",
            "typical jitter, job 3: observed 163 ns, allowed at most 153 ns",
        ]
    );
    // Without slips it takes the jitter of Eq. 1.
    assert_eq!(lines(&both(&grid(100, 10, 33), &observed)), [""; 0]);
    assert_eq!(periodic(&grid(100, 10, 32), &observed).len(), 1);
}

#[test]
fn a_release_gets_the_least_remaining_activation() {
    // With a jitter of more than a period the second is of activation 1 or 2; if it were of 2, the third
    // would be too early.
    let observed = exactly(&[100, 120, 125]);
    let model = Periodic { skipped: 1, ..grid(100, 10, 12) };
    assert_eq!(periodic(&model, &observed), []);
    // The first is never of another activation than the first.
    let found = periodic(&model, &exactly(&[115]));
    assert_eq!(lines(&found), ["periodic jitter, job 0: observed 115 ns, allowed at most 112 ns"]);
}

#[test]
fn releases_before_an_extra_release_count_as_late() {
    // Activations 0, 1, 1, 2: conservatively 0 to 3, the first two a period late.
    let observed = exactly(&[100, 110, 114, 121]);
    let model = Periodic {
        extra: 1,
        slips: vec![slip(114, -1)],
        typical: typical_of(100, 4, vec![]),
        ..grid(90, 10, 10)
    };
    assert_eq!(lines(&both(&model, &observed)), [""; 0]);
    let found = lines(&both(&Periodic { jitter_ns: Duration::from_ns(9), ..model.clone() }, &observed));
    assert_eq!(
        found,
        [
            "periodic jitter, job 0: observed 100 ns, allowed at most 99 ns",
            "periodic jitter, job 1: observed 110 ns, allowed at most 109 ns"
        ]
    );
    // Strictly increasing: two releases are never of one activation there.
    assert_eq!(
        periodic(&Periodic { offset_ns: 100, jitter_ns: Duration::from_ns(4), ..model.clone() }, &observed)
            .len(),
        2
    );
    let none = Periodic { slips: vec![], extra: 0, ..model.clone() };
    assert_eq!(
        lines(&typical(&none, &observed))[0],
        "typical arrival, job 2: observed 114 ns, allowed at least 120 ns"
    );
    let found = lines(&typical(&Periodic { extra: 2, ..model }, &observed));
    assert_eq!(found[0], "count of extra releases, job 0: observed 1, allowed 2");
}

/// A release that was not seen counts at its latest bound; one whose arrival is known, from then on, unless
/// something else released it before.
#[test]
fn typical_models_count_latest_bounds_and_known_arrivals() {
    let window = |earliest, latest| Window::new(Instant::from_ns(earliest), Instant::from_ns(latest));
    let mut observed = exactly(&[100, 112, 121, 132]);
    observed[2].window = window(103, 121).expect("not empty");
    let model = Periodic { typical: typical_of(100, 2, vec![]), ..grid(83, 10, 19) };
    assert_eq!(lines(&both(&model, &observed)), [""; 0]);
    observed[2].arrival = Some(Instant::from_ns(125));
    assert_eq!(lines(&both(&model, &observed)), [""; 0]);
    observed[2].arrival = Some(Instant::from_ns(119));
    let expected = "typical arrival, job 2: observed 119 ns, allowed at least 120 ns";
    assert_eq!(lines(&both(&model, &observed)), [expected]);
    let late = exactly(&[100, 112, 123, 132]);
    let expected = "typical jitter, job 2: observed 123 ns, allowed at most 122 ns";
    assert_eq!(lines(&typical(&model, &late)), [expected]);
}

#[test]
fn left_out_releases_have_the_listed_distance() {
    let observed = exactly(&[100, 112, 117, 133]);
    let model = |left_out| Periodic { typical: typical_of(100, 3, vec![left_out]), ..grid(97, 10, 6) };
    let found = |release| lines(&both(&model(release), &observed));
    assert_eq!(found(left_out(117, -3)), [""; 0]);
    assert_eq!(found(left_out(117, -2)).len(), 2);
    // Inside, and no release at all.
    assert_eq!(found(left_out(112, -1))[1], "releases left out, job 3: observed nothing, allowed 112 ns");
    assert_eq!(found(left_out(118, -2)).len(), 2);
    let late = Periodic { typical: typical_of(97, 5, vec![left_out(133, 1)]), ..grid(97, 10, 6) };
    assert_eq!(lines(&both(&late, &observed)), [""; 0]);
}

#[test]
fn only_a_few_releases_may_be_left_out() {
    let instants: Vec<u64> = (0..3_000).map(|j| 100 + 10 * j + if j % 750 == 749 { 5 } else { 0 }).collect();
    let all: Vec<LeftOut> = instants.iter().filter(|at| *at % 10 != 0).map(|at| left_out(*at, 4)).collect();
    let model = |left_out: &[LeftOut]| Periodic {
        typical: typical_of(100, 1, left_out.to_vec()),
        ..grid(100, 10, 5)
    };
    let found = lines(&typical(&model(&all), &exactly(&instants)));
    assert_eq!(found, ["releases left out, job 0: observed 4, allowed at most 3"]);
    let found = lines(&typical(&model(&all[..3]), &exactly(&instants)));
    assert_eq!(found, ["typical jitter, job 2999: observed 30095 ns, allowed at most 30091 ns"]);
}

/// Twice as many as are listed: the others are found, since no two activations have an instant in common.
#[test]
fn slips_past_the_end_of_the_list_are_counted() {
    let instants: Vec<u64> = (0..200_u64).map(|j| 100 + 10 * (j + j / 10)).collect();
    let slips: Vec<Slip> = (1..=MAX_SLIPS).map(|place| slip(instants[10 * place], 1)).collect();
    let model = Periodic { skipped: 19, slips: slips.clone(), ..grid(100, 10, 0) };
    assert_eq!(lines(&both(&model, &exactly(&instants))), [""; 0]);
    let found = lines(&typical(&Periodic { skipped: 20, ..model.clone() }, &exactly(&instants)));
    assert_eq!(found, ["count of skipped activations, job 0: observed 19, allowed 20"]);
    let found = lines(&typical(&Periodic { slips: slips[1..].to_vec(), ..model }, &exactly(&instants)));
    assert_eq!(found[0], "count of skipped activations, job 0: observed 9, allowed 19");
}

/// An activation that was released twice at the same time.
#[test]
fn a_slip_is_at_one_of_the_releases_with_the_same_bound() {
    let observed = exactly(&[100, 110, 110, 120]);
    let model = Periodic {
        extra: 1,
        slips: vec![slip(110, -1)],
        typical: typical_of(100, 0, vec![]),
        ..grid(90, 10, 10)
    };
    assert_eq!(lines(&both(&model, &observed)), [""; 0]);
}

#[test]
fn the_greatest_numbers_do_not_overflow() {
    let exact = Some(Fraction { numerator: u64::MAX, denominator: 1 });
    for (period_exact, offset, jitter) in
        [(exact, i64::MAX, u64::MAX), (exact, i64::MIN, 0), (None, i64::MIN, 0), (None, 0, u64::MAX)]
    {
        let model = Periodic {
            period_exact,
            skipped: u64::MAX,
            extra: u64::MAX,
            slips: vec![slip(u64::MAX, i64::MIN), slip(u64::MAX, i64::MAX)],
            typical: typical_of(
                i64::MIN,
                u64::MAX,
                vec![left_out(u64::MAX, i64::MIN), left_out(u64::MAX, i64::MAX)],
            ),
            ..grid(offset, 1, jitter)
        };
        both(&model, &exactly(&[0, u64::MAX, u64::MAX, u64::MAX]));
        both(&Periodic { typical: None, extra: 0, ..model }, &exactly(&[0, u64::MAX, u64::MAX, u64::MAX]));
    }
    let least = Some(Fraction { numerator: 1, denominator: u64::MAX });
    both(
        &Periodic { period_exact: least, skipped: u64::MAX, ..grid(0, 1, 0) },
        &exactly(&[0, u64::MAX, u64::MAX]),
    );
}

/// What happened: which activation each release is of, and how late it was; and the model that follows from
/// it, as tight as it can be.
#[derive(Clone, Debug)]
struct Truth {
    releases: Vec<Release>,
    model: Periodic,
    /// The releases that are not left out.
    kept: Vec<Release>,
}

const JITTER: i128 = 300;

/// A release as it is drawn: lateness, width of its window, and a number that seldom makes a slip or
/// something far outside.
type Drawn = (i128, i128, u32);

fn truth() -> impl Strategy<Value = Truth> {
    let drawn = (0..JITTER - 40, prop_oneof![3 => Just(0), 1 => 0..40_i128], 0..60_u32);
    let slips = (select(&[4_u32, 60]), any::<bool>());
    (vec(drawn, 20..150), 2_000..5_000_u64, 1..7_u64, slips).prop_map(
        |(mut drawn, period, denominator, (rarity, with_extra))| {
            drawn.iter_mut().for_each(|(_, _, special)| *special %= rarity);
            let fraction = Fraction { numerator: period * denominator + 1, denominator };
            tight(&drawn, fraction, with_extra)
        },
    )
}

fn tight(drawn: &[Drawn], period: Fraction, with_extra: bool) -> Truth {
    let (numerator, denominator) = (i128::from(period.numerator), i128::from(period.denominator));
    let down = |k: i128| (k * numerator).div_euclid(denominator);
    let up = |k: i128| -(-k * numerator).div_euclid(denominator);
    // One release that is far outside, early or late, somewhere in the middle.
    let odd = drawn.len() / 2;
    let off = if drawn[0].0 % 2 == 0 { -500 } else { JITTER + 200 };
    let start = 1_000_000_i128;
    let mut activations: Vec<i128> = Vec::new();
    let (mut spans, mut slips, mut before) = (Vec::new(), Vec::new(), (0, 0));
    for (job, (late, width, special)) in drawn.iter().enumerate() {
        let may_slip = job > 0 && job.abs_diff(odd) > 1;
        let is_extra = with_extra && *special == 1 && may_slip && slips.last() != Some(&(job - 1, -1));
        let step = match special {
            0 if may_slip => 3,
            _ if is_extra => 0,
            _ => 1,
        };
        let k = activations.last().map_or(0, |last| last + step);
        let late = if job == odd { off } else { *late };
        let earliest = (start + up(k) + late).max(before.0 + 1);
        let latest = (earliest + if job == odd { 0 } else { *width }).max(before.1 + 1);
        if step != 1 && job > 0 {
            slips.push((job, step - 1));
        }
        activations.push(k);
        spans.push((earliest, latest));
        before = (earliest, latest);
    }
    // Strictly increasing ones: each gives way to the extra releases behind it.
    let mut increasing = activations.clone();
    for job in (1..increasing.len()).rev() {
        increasing[job - 1] = increasing[job - 1].min(increasing[job] - 1);
    }
    let first = increasing[0];
    increasing.iter_mut().for_each(|k| *k -= first);
    let strip = |placed: &[(i128, (i128, i128))]| {
        let lowest = placed.iter().map(|(k, (first, _))| first - up(*k)).min();
        let highest = placed.iter().map(|(k, (_, last))| last - down(*k)).max();
        lowest.zip(highest).map(|(lowest, highest)| (lowest, highest - lowest)).expect("there are some")
    };
    let whole: Vec<_> = increasing.iter().copied().zip(spans.iter().copied()).collect();
    // A typical model has each release at its latest bound.
    let mut at_latest: Vec<_> =
        activations.iter().zip(&spans).map(|(k, (_, latest))| (*k, (*latest, *latest))).collect();
    let (k, (latest, _)) = at_latest.remove(odd);
    let ((offset, jitter), (typical_offset, typical_jitter)) = (strip(&whole), strip(&at_latest));
    let off = match latest - up(k) < typical_offset {
        true => latest - up(k) - typical_offset,
        false => latest - down(k) - typical_offset - typical_jitter,
    };
    let instant = |ns: i128| Instant::from_ns(ns.try_into().expect("fits"));
    let releases: Vec<Release> = spans
        .iter()
        .map(|(earliest, latest)| Release {
            arrival: None,
            window: Window::new(instant(*earliest), instant(*latest)).expect("not empty"),
        })
        .collect();
    let sum =
        |sign: i128| slips.iter().map(|(_, slip)| slip * sign).filter(|slip| *slip > 0).sum::<i128>() as u64;
    let listed = slips
        .iter()
        .take(MAX_SLIPS)
        .map(|(job, slip)| Slip { at_ns: releases[*job].window.latest(), activations: *slip as i64 });
    let model = Periodic {
        period_exact: Some(period),
        offset_ns: offset as i64,
        jitter_ns: Duration::from_ns(jitter as u64),
        skipped: sum(1),
        extra: sum(-1),
        slips: listed.collect(),
        typical: typical_of(
            typical_offset as i64,
            typical_jitter as u64,
            vec![left_out(latest as u64, off as i64)],
        ),
        ..grid(0, (period.numerator / period.denominator).max(1), 0)
    };
    let kept =
        releases.iter().enumerate().filter(|(job, _)| *job != odd).map(|(_, release)| *release).collect();
    Truth { releases, model, kept }
}

/// Every figure of a model, falsified: what it is, and the model.
fn falsified(truth: &Truth) -> Vec<(String, Periodic)> {
    let model = &truth.model;
    let mut all: Vec<(String, Periodic)> = Vec::new();
    let mut falsify = |what: String, change: &dyn Fn(&mut Periodic)| {
        let mut changed = model.clone();
        change(&mut changed);
        all.push((what, changed));
    };
    let typical =
        |model: &mut Periodic, change: &dyn Fn(&mut Typical)| model.typical.iter_mut().for_each(change);
    let one = Duration::from_ns(1);
    falsify("period".into(), &|model| {
        let span = model.jitter_ns.ns() + 2;
        model.period_exact.iter_mut().for_each(|period| period.numerator += span * period.denominator);
    });
    if model.extra == 0 {
        // Only then no two activations have an instant in common, conservatively.
        falsify("offset + 1".into(), &|model| model.offset_ns += 1);
        falsify("offset - 1".into(), &|model| model.offset_ns -= 1);
        falsify("jitter - 1".into(), &|model| model.jitter_ns = model.jitter_ns.saturating_sub(one));
    } else {
        falsify("conservative as typical".into(), &|model| {
            let typical = model.typical.clone().expect("there");
            (model.offset_ns, model.jitter_ns) = (typical.offset_ns, typical.jitter_ns);
        });
    }
    falsify("skipped + 1".into(), &|model| model.skipped += 1);
    falsify("extra + 1".into(), &|model| model.extra += 1);
    if model.skipped > 0 {
        falsify("skipped - 1".into(), &|model| model.skipped -= 1);
    }
    if model.extra > 0 {
        falsify("extra - 1".into(), &|model| model.extra -= 1);
    }
    for place in 0..model.slips.len() {
        falsify(format!("slip {place} removed"), &|model| {
            model.slips.remove(place);
        });
        falsify(format!("slip {place} of one more"), &|model| model.slips[place].activations += 1);
        falsify(format!("slip {place} elsewhere"), &|model| {
            model.slips[place].at_ns = model.slips[place].at_ns + one
        });
    }
    if let Some((at, extra)) = truth.kept.get(1).map(|release| (release.window.latest(), 1)) {
        falsify("a slip where none is".into(), &|model| {
            model.slips.insert(0, Slip { at_ns: at, activations: extra });
            model.slips.truncate(MAX_SLIPS);
        });
    }
    falsify("typical offset + 1".into(), &|model| typical(model, &|typical| typical.offset_ns += 1));
    falsify("typical offset - 1".into(), &|model| typical(model, &|typical| typical.offset_ns -= 1));
    falsify("typical jitter - 1".into(), &|model| {
        typical(model, &|typical| typical.jitter_ns = typical.jitter_ns.saturating_sub(one))
    });
    falsify("nothing left out".into(), &|model| typical(model, &|typical| typical.left_out.clear()));
    falsify("left out elsewhere".into(), &|model| {
        typical(model, &|typical| typical.left_out[0].at_ns = Instant::from_ns(1))
    });
    falsify("off by one more".into(), &|model| typical(model, &|typical| typical.left_out[0].off_ns += 1));
    falsify("one more left out".into(), &|model| {
        typical(model, &|typical| {
            typical.left_out.push(LeftOut {
                at_ns: truth.kept[truth.kept.len() - 1].window.latest(),
                off_ns: 1,
                reason: None,
            })
        });
    });
    all
}

proptest! {
    #[test]
    fn true_models_pass_and_falsified_ones_fail(truth in truth()) {
        let found = both(&truth.model, &truth.releases);
        prop_assert_eq!(lines(&found), [""; 0]);
        for (what, model) in falsified(&truth) {
            prop_assert!(!both(&model, &truth.releases).is_empty(), "{}: {:?}", what, model);
        }
    }

    /// Strictly increasing activations are sought for, one release after the other, among all there are.
    #[test]
    fn the_least_activations_fit_if_any_do(
        releases in releases(12),
        (numerator, denominator) in (10..400_u64, 1..7_u64),
        (offset, jitter, skipped) in (-50..150_i64, 0..200_u64, 0..6_u64),
    ) {
        let exact = Fraction { numerator, denominator };
        let model = Periodic { period_exact: Some(exact), skipped,
            ..grid(offset, numerator / denominator, jitter) };
        let scaled = |ns: u64| i128::from(ns) * i128::from(denominator);
        let fits = |release: &Release, k: usize| {
            let arrival = i128::from(offset) * i128::from(denominator) + k as i128 * i128::from(numerator);
            arrival <= scaled(release.window.earliest().ns())
                && scaled(release.window.latest().ns()) <= arrival + scaled(jitter)
        };
        let mut reached = vec![0; usize::from(fits(&releases[0], 0))];
        for (job, release) in releases.iter().enumerate().skip(1) {
            let all = 0..=job + skipped as usize;
            reached = all.filter(|k| fits(release, *k) && reached.iter().any(|before| before < k)).collect();
        }
        prop_assert_eq!(periodic(&model, &releases).is_empty(), !reached.is_empty());
    }

    #[test]
    fn percentiles_are_at_most_a_64th_too_large(costs in vec(0..100_000_u64, 1..300), above in 0..=64_u64) {
        let quantiles = |values: &mut Vec<u64>| {
            values.sort_unstable();
            let quantile = |permille: usize| {
                let exact = values[(values.len() * permille).div_ceil(1_000) - 1];
                Duration::from_ns(exact + exact * above / 64 / 64)
            };
            let [p50_ns, p90_ns, p99_ns, p999_ns] = [500, 900, 990, 999].map(quantile);
            Quantiles { p10_ns: None, p25_ns: None, p50_ns, p90_ns, p99_ns, p999_ns }
        };
        let at = |ns| Instant::from_ns(1_000_000 + ns);
        let jobs: Vec<RecordedJob> = costs.iter().map(|cost| {
            let release = Release { arrival: Some(at(0)),
                window: Window::new(at(0), at(*cost)).expect("not empty") };
            let cost = Duration::from_ns(*cost);
            (Job { release, start: at(0), end: at(2 * cost.ns()), cost, suspended: Duration::ZERO }, vec![])
        }).collect();
        let mut releases: Vec<Release> = jobs.iter().map(|(job, _)| job.release).collect();
        let (mut once, mut twice) = (costs.clone(), costs.iter().map(|cost| 2 * cost).collect::<Vec<_>>());
        let model = Percentiles {
            lateness: Some(quantiles(&mut once)), cost: Some(quantiles(&mut once)),
            response: Some(quantiles(&mut twice)),
        };
        prop_assert_eq!(percentiles(&model, &releases, &jobs), []);
        let models = |change: &dyn Fn(&mut Percentiles), releases: &[Release]| {
            let mut changed = model;
            change(&mut changed);
            percentiles(&changed, releases, &jobs).iter().map(|violation| violation.model).collect::<Vec<_>>()
        };
        let much = |value: Duration| Duration::from_ns(value.ns() + value.ns() / 64 + 1);
        prop_assert_eq!(models(&|it| it.cost.iter_mut().for_each(|it| it.p999_ns = much(it.p999_ns)),
            &releases), [Model::CostPercentile(999)]);
        prop_assert_eq!(models(&|it| it.response.iter_mut().for_each(|it| it.p50_ns = much(it.p50_ns)),
            &releases), [Model::ResponsePercentile(500)]);
        let late = |it: &mut Percentiles| it.lateness.iter_mut().for_each(|it| it.p99_ns = much(it.p99_ns));
        prop_assert_eq!(models(&late, &releases), [Model::LatenessPercentile(990)]);
        if once[costs.len() / 2] > 0 {
            let low = |it: &mut Percentiles| it.cost.iter_mut()
                .for_each(|it| it.p999_ns = Duration::from_ns(once[once.len() - 1] - 1));
            prop_assert!(models(&low, &releases).contains(&Model::CostPercentile(999)));
        }
        // Where an arrival is not known, lateness is a sample's.
        releases[0].arrival = None;
        prop_assert_eq!(models(&late, &releases), []);
    }
}
