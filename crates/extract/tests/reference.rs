//! The inference and its reference in Python agree on random streams, to the last bit.

mod common;

use common::noise::Random;
use punctual_extract::periodic::PeriodicSummary;
use punctual_model::{Disturbance, Instant, Release, Window};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::Command;

const STREAMS: u64 = 120;

/// A release and what is known of it.
struct Known {
    earliest: u64,
    latest: u64,
    arrival: Option<u64>,
    advance: u64,
    is_none: bool,
}

/// A stream with skips, extra releases, stalls, windows, known arrivals and counted expirations, each only in some.
fn stream(seed: u64) -> Vec<Known> {
    let mut random = Random(seed);
    let period = 1_000_000 + random.below(20_000_000);
    let releases = [3, 5, 12, 15, 16, 17, 40, 300, 1_200, 3_000][random.below(10) as usize];
    let noise = [0, 20, 20_000, period / 20, period / 2, 2 * period][random.below(6) as usize];
    let [skips, extras, stalls, early] = [(); 4].map(|()| [0, 0, 1, 4, 60][random.below(5) as usize]);
    let [windows, arrivals, counts, ends] = [(); 4].map(|()| random.below(4) == 0);
    let base = random.below(1 << 50);
    let one_of = |random: &mut Random, many: u64| many > 0 && random.below(releases) < many;
    let (mut k, mut before, mut busy) = (0, base, 0);
    let mut known = Vec::new();
    for job in 0..releases {
        let advance = if job > 5 && one_of(&mut random, skips) { 2 + random.below(3) } else { u64::from(job > 0) };
        k += advance;
        let due = base + k * period;
        let late = if noise > 0 { random.below(noise).min(random.below(noise)) } else { 0 };
        if one_of(&mut random, stalls) {
            busy = due + random.below(9 * period);
        }
        let mut latest = (due + late).max(busy).max(before + 1);
        if one_of(&mut random, early) && latest - before > period / 2 {
            latest -= period / 3;
        }
        let earliest = if windows && random.below(3) > 0 { before.max(latest - random.below(period / 4)) } else { latest };
        let arrival = (arrivals && random.below(50) > 0).then_some(due);
        let advance = if counts { advance.max(1) } else { 1 };
        known.push(Known { earliest, latest, arrival, advance, is_none: ends && job + 1 == releases });
        before = latest;
        if one_of(&mut random, extras) {
            before += period / 3;
            known.push(Known { earliest: before, latest: before, arrival: None, advance: 1, is_none: false });
        }
    }
    known
}

fn inferred(stream: &[Known]) -> Value {
    let mut summary = PeriodicSummary::new();
    for known in stream {
        let window = Window::new(Instant::from_ns(known.earliest), Instant::from_ns(known.latest)).unwrap();
        let release = Release { arrival: known.arrival.map(Instant::from_ns), window };
        summary.push_with(&release, known.advance, known.is_none.then_some(Disturbance::Ending));
    }
    let Some(model) = summary.model().filter(|model| model.typical.is_some()) else { return Value::Null };
    let typical = model.typical.unwrap();
    let period = model.period_exact.map_or(json!([model.period_ns.ns(), 1]), |exact| json!([exact.numerator, exact.denominator]));
    let mut left_out: Vec<u64> = typical.left_out.iter().map(|out| out.at_ns.ns()).collect();
    left_out.sort_unstable();
    json!({
        "period": period,
        "conservative": [model.offset_ns, model.jitter_ns.ns()],
        "typical": [typical.offset_ns, typical.jitter_ns.ns()],
        "skipped": model.skipped,
        "extra": model.extra,
        "left_out": left_out,
    })
}

#[test]
fn the_reference_agrees() {
    let streams: Vec<Vec<Known>> = (0..STREAMS).map(stream).collect();
    let mut text = String::new();
    for known in streams.iter().flat_map(|stream| stream.iter().map(Some).chain([None])) {
        let Some(Known { earliest, latest, arrival, advance, is_none }) = known else {
            text.push('\n');
            continue;
        };
        let arrival = arrival.map_or_else(String::new, |arrival| arrival.to_string());
        writeln!(text, "{earliest},{latest},{arrival},{advance},{}", u8::from(*is_none)).unwrap();
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
            let mut left_out: Vec<u64> = [early, late].iter().flat_map(|side| side.as_array().unwrap()).map(|at| at.as_u64().unwrap()).collect();
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
