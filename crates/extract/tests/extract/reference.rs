//! The inference and its reference in Python agree to the last bit on random streams.

use crate::common::streams::{Known, stream, summary};
use proptest::prelude::*;
use punctual_extract::periodic::PeriodicSummary;
use punctual_model::{Choice, Disturbance, check};
use punctual_test_support::is_all_wanted;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::Command;

/// The reference takes a third of a second for each.
const STREAMS: u64 = 120;
const STREAMS_AT_FIRST: u64 = 50;

fn inferred(stream: &[Known]) -> Value {
    // The reference has no models where releases do not rise.
    let Some(model) = summary(stream).model().filter(|model| model.choice != Choice::LeastJitter) else {
        return Value::Null;
    };
    let period = model
        .period_exact
        .map_or(json!([model.period_ns.ns(), 1]), |exact| json!([exact.numerator, exact.denominator]));
    let typical = model.typical.as_ref();
    let mut left_out: Vec<u64> =
        typical.iter().flat_map(|typical| &typical.left_out).map(|out| out.at_ns.ns()).collect();
    left_out.sort_unstable();
    json!({
        "period": period,
        "conservative": [model.offset_ns, model.jitter_ns.ns()],
        "typical": typical.map(|typical| json!([typical.offset_ns, typical.jitter_ns.ns()])),
        "skipped": model.skipped,
        "extra": model.extra,
        "left_out": left_out,
    })
}

#[test]
fn the_reference_agrees() {
    let most = if is_all_wanted() { STREAMS } else { STREAMS_AT_FIRST };
    let streams: Vec<Vec<Known>> = (0..most).map(stream).collect();
    let mut text = String::new();
    for known in streams.iter().flat_map(|stream| stream.iter().map(Some).chain([None])) {
        let Some(Known { earliest, latest, arrival, advance, disturbance }) = known else {
            text.push('\n');
            continue;
        };
        let arrival = arrival.map_or_else(String::new, |arrival| arrival.to_string());
        let disturbed = match disturbance {
            Some(Disturbance::Ending) => 1,
            Some(Disturbance::Signal) => 2,
            _ => 0,
        };
        writeln!(text, "{earliest},{latest},{arrival},{advance},{disturbed}").unwrap();
    }
    let file = std::env::temp_dir().join(format!("punctual-streams-{}.csv", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/periodic_inference.py");
    let output = Command::new("python3").arg(script).arg(&file).output();
    std::fs::remove_file(&file).unwrap();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            println!("SKIPPED: python3 cannot be run: {error}");
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut disagree = 0;
    for (seed, (line, stream)) in printed.lines().zip(&streams).enumerate() {
        let mut expected: Value = serde_json::from_str(line).unwrap();
        if let Some(expected) = expected.as_object_mut() {
            let [early, late] = ["early", "late"].map(|side| expected.remove(side).unwrap());
            let mut left_out: Vec<u64> = [early, late]
                .iter()
                .flat_map(|side| side.as_array().unwrap())
                .map(|at| at.as_u64().unwrap())
                .collect();
            left_out.sort_unstable();
            expected.insert("left_out".into(), json!(left_out));
            expected.remove("slips");
        }
        let found = inferred(stream);
        if found != expected {
            disagree += 1;
            println!("stream {seed}, {} releases:\n  {found}\n  {expected}", stream.len());
        }
    }
    assert_eq!((disagree, printed.lines().count()), (0, streams.len() + 1));
}

/// A signal ended the last sleep before its time.
#[test]
fn arrivals_after_their_releases_break_no_model() {
    for seed in [17_094_327_436_941_202_313, 16_756_186_901_432_250_086, 4_201_509_538_578_961_640] {
        let stream = stream(seed);
        let releases: Vec<_> = stream.iter().map(Known::release).collect();
        assert!(releases.iter().any(|release| release.arrival > Some(release.window.latest())), "{seed}");
        let model = summary(&stream).model().unwrap();
        assert_eq!(check::periodic(&model, &releases), [], "{seed}: {model:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// On the same streams, the checkers accept both models, and pieces of any size merge to the same models.
    #[test]
    fn models_hold_for_any_pieces(
        seed in any::<u64>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream = stream(seed);
        let model = summary(&stream).model();
        let releases: Vec<_> = stream.iter().map(Known::release).collect();
        if let Some(model) = &model {
            let violations = [check::periodic(model, &releases), check::typical(model, &releases)].concat();
            prop_assert!(violations.is_empty(), "{}: {model:?}", violations[0]);
        }
        let cuts = cuts.iter().map(|cut| cut.index(stream.len() + 1));
        let mut cuts: Vec<usize> = cuts.chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let mut merged = PeriodicSummary::new();
        for piece in cuts.windows(2) {
            let piece = summary(&stream[piece[0]..piece[1]]);
            prop_assert!(merged.can_merge(&piece, 16));
            merged.merge(&piece);
        }
        prop_assert_eq!(merged.model(), model);
    }
}
