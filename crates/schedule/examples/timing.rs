//! How long admission takes with how many specs admitted, without a daemon: `cargo run --release -p
//! punctual-schedule --example timing`.
//!
//! For each plugin and test: how many specs were refused while it was filled, how many of them because it was
//! too complex to test, and then the median and the 99th percentile of consider, admit and release of one
//! more spec, on one processor.

use punctual_model::Duration;
use punctual_schedule::{Answer, Kind, Limits, Parameters, Plugin, Refusal, Settings, SpecId, Test, plugin};
use std::time::Instant;

/// Small and well known (xorshift), so that runs can be compared.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// One of `count` specs that take `load` of a processor together; periods of 1 ms to 1 s.
fn spec(random: &mut Random, count: u64, load: f64, tight: bool) -> Parameters {
    let period =
        1_000_000 + if random.below(2) == 0 { random.below(9_000_000) } else { random.below(999_000_000) };
    let share = load / count as f64 * (0.5 + random.below(1_000) as f64 / 1_000.0);
    let runtime = ((period as f64 * share) as u64).max(1);
    let deadline = if tight { runtime.max(period / 2 + random.below(period / 2)) } else { period };
    Parameters {
        runtime: Some(Duration::from_ns(runtime)),
        period: Some(Duration::from_ns(period)),
        deadline: Some(Duration::from_ns(deadline)),
        priority: Some(99 - ((period as f64 / 1e6).ln() * 14.0) as u32),
        ..Parameters::default()
    }
}

fn filled(
    kind: Kind,
    test: Test,
    count: u64,
    load: f64,
    tight: bool,
    random: &mut Random,
) -> (Box<dyn Plugin>, u64, u64) {
    let limits = Limits { least_runtime: Duration::from_ns(1), ..Limits::default() };
    let settings = Settings {
        name: "timing".into(),
        processors: vec![0],
        priorities: (1, 99),
        threshold: 1.0,
        test,
        limits,
        platforms: Vec::new(),
        reserves: Vec::new(),
        without_runtime_up_to: None,
    };
    let mut plugin = plugin(kind, settings).expect("these settings hold");
    let (mut refused, mut unproven) = (0, 0);
    for id in 0..count {
        let parameters = spec(random, count.max(1), load, tight);
        match plugin.consider(&parameters, None) {
            Answer::Ok(offer) | Answer::Partial(offer) => plugin.admit(SpecId(id), &parameters, offer),
            Answer::No(refusal) => {
                refused += 1;
                unproven +=
                    u64::from(matches!(refusal, Refusal::Unschedulable(why) if why.contains("too much")));
            }
        }
    }
    (plugin, refused, unproven)
}

fn main() {
    println!(
        "{:4} {:11} {:>4} {:>9} {:>5} {:>8} {:>9} {:>9}",
        "", "test", "load", "deadlines", "specs", "refused", "median µs", "99 % µs"
    );
    for kind in Kind::REAL_TIME {
        for (test, load, tight) in [
            (Test::Utilization, 0.6, false),
            (Test::Exact, 0.6, false),
            (Test::Exact, 0.6, true),
            (Test::Exact, 0.8, false),
            (Test::Exact, 0.9, false),
            (Test::Exact, 0.9, true),
            (Test::Exact, 1.0, false),
            (Test::Exact, 1.0, true),
        ] {
            for count in [0, 128, 512, 1024] {
                let mut random = Random(0x9E37_79B9_7F4A_7C15);
                let (mut plugin, refused, unproven) = filled(kind, test, count, load, tight, &mut random);
                let mut times: Vec<u128> = (0..500)
                    .map(|_| {
                        let parameters = spec(&mut random, count.max(1_000), load, tight);
                        let begin = Instant::now();
                        if let Answer::Ok(offer) | Answer::Partial(offer) = plugin.consider(&parameters, None)
                        {
                            plugin.admit(SpecId(u64::MAX), &parameters, offer);
                            plugin.release(SpecId(u64::MAX));
                        }
                        begin.elapsed().as_nanos()
                    })
                    .collect();
                times.sort_unstable();
                let us = |ns: u128| ns as f64 / 1e3;
                println!(
                    "{:4} {:11} {:4} {:>9} {:5} {:8} {:8} {:9.2} {:9.2}",
                    kind.to_string(),
                    test.to_string(),
                    load,
                    if tight { "tight" } else { "periods" },
                    count,
                    refused,
                    unproven,
                    us(times[times.len() / 2]),
                    us(times[times.len() * 99 / 100])
                );
            }
        }
    }
}
