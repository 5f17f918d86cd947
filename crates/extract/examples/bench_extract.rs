//! Jobs per second and core that one stream takes in, at each horizon: releases, costs, suspensions and
//! responses, through all models.
//!
//! `cargo run --release -p punctual-extract --example bench_extract [STREAM [HORIZON [RUNS]]]`; `STREAM` is
//! the beginning of a row's name. One row at one horizon, run once, suits `valgrind --tool=callgrind`.

use punctual_extract::stream::{Circumstances, Options, Stream};
use punctual_model::{Duration, Instant, Job, Release, Segment, Separator, Window};
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant as Clock;

const JOBS: usize = 500_000;
const HORIZONS: [usize; 2] = [32, 1000];
const RUNS: usize = 7;

/// The release of a job that is due at some nanosecond.
type Source = fn(&mut Random, u64) -> Release;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next().unwrap_or_default();
    let mut number = || arguments.next().map(|argument| argument.parse().expect("a number"));
    let horizons = number().map_or(HORIZONS.to_vec(), |horizon| vec![horizon]);
    let runs = number().unwrap_or(RUNS).max(1);
    println!(
        "| stream | horizon | million jobs/s (median of {runs} runs) | slowest | fastest | models, ms |"
    );
    println!("|---|---|---|---|---|---|");
    let streams: [(&str, Source); 4] = [
        ("periodic, exact releases", |random, due| release(None, due + random.lateness(), 0)),
        ("periodic, 0.5 % windows", |random, due| {
            let width = if random.one_in(200) { 900_000 } else { 0 };
            release(None, due + random.lateness(), width)
        }),
        ("known arrivals", |random, due| release(Some(due), due + random.lateness(), 0)),
        ("sporadic", |random, due| release(None, due + random.below(900_000), 0)),
    ];
    for (name, next) in streams.into_iter().filter(|(name, _)| name.starts_with(&only)) {
        let jobs = jobs(next);
        for horizon in &horizons {
            measure(name, *horizon, runs, &jobs);
        }
    }
}

fn measure(name: &str, horizon: usize, runs: usize, jobs: &[(Job, [Segment; 2])]) {
    let options = Options { curve_horizon: horizon, wcet_horizon: horizon, ..Options::default() };
    let (mut rates, mut model_ms) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let begin = processor_time();
        let mut stream = Stream::new(&options);
        for (index, (job, segments)) in jobs.iter().enumerate() {
            stream.release(&job.release, Circumstances::default());
            stream.complete(job, &segments[..1 + index % 2]);
        }
        rates.push(jobs.len() as f64 / (processor_time() - begin) / 1e6);
        let begin = Clock::now();
        black_box(stream.to_model(Separator::SUSPENSION));
        model_ms.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    rates.sort_by(f64::total_cmp);
    model_ms.sort_by(f64::total_cmp);
    let (slowest, median, fastest) = (rates[0], rates[runs / 2], rates[runs - 1]);
    println!(
        "| {name} | {horizon} | {median:.2} | {slowest:.2} | {fastest:.2} | {:.3} |",
        model_ms[runs / 2]
    );
}

/// Seconds of processor time, so that other work on the machine hardly counts; wall-clock time where the
/// kernel has no account.
fn processor_time() -> f64 {
    static BEGIN: LazyLock<Clock> = LazyLock::new(Clock::now);
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = account.split(' ').next().and_then(|field| field.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGIN.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

fn jobs(next: Source) -> Vec<(Job, [Segment; 2])> {
    let mut random = Random(1);
    (0..JOBS as u64)
        .map(|index| {
            let release = next(&mut random, 1_000_000_000 + index * 1_000_000);
            let start = release.window.latest() + Duration::from_ns(5_000);
            let (cost, suspended) =
                (Duration::from_ns(200_000 + random.below(50_000)), Duration::from_ns(random.below(20_000)));
            let segments = [
                Segment { suspended: Duration::ZERO, cost: cost.saturating_sub(Duration::from_ns(50_000)) },
                Segment { suspended, cost: Duration::from_ns(50_000) },
            ];
            (Job { release, start, end: start + cost + suspended, cost, suspended }, segments)
        })
        .collect()
}

fn release(arrival: Option<u64>, latest: u64, width: u64) -> Release {
    let at = Window::at(Instant::from_ns(latest));
    let window = Window::new(Instant::from_ns(latest - width), Instant::from_ns(latest)).unwrap_or(at);
    Release { arrival: arrival.map(Instant::from_ns), window }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// Exponential with a mean of 20 µs.
    fn lateness(&mut self) -> u64 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (-20_000.0 * (1.0 - uniform).ln()) as u64
    }
}
