//! How long it takes to read and merge summaries of many runs, and how large they are.
//!
//! `cargo run --release -p punctual-extract --example bench_merge [SUMMARIES [THREADS [JOBS]]]`

use punctual_extract::{Extractor, Options, Run, Summary};
use punctual_model::{Call, Duration, Instant, Object, Platform, Policy, Separator, Window};
use punctual_trace::{Activation, Begin, Record, Resumed, TaskRecord};
use std::time::Instant as Clock;

/// Runs with jobs of their own; the others repeat them under other names.
const DIFFERENT: u64 = 100;
const PERIOD: u64 = 1_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |it| it.parse().expect("a number"));
    let (summaries, threads, jobs) = (number(1_000), number(10), number(2_000));
    let files: Vec<Vec<u8>> =
        (0..DIFFERENT.min(summaries)).map(|run| summary(run, run, threads, jobs)).collect();
    let repeated = (files.len() as u64..summaries).map(|run| summary(run, run % DIFFERENT, threads, jobs));
    let files: Vec<Vec<u8>> = files.iter().cloned().chain(repeated).collect();
    let bytes: usize = files.iter().map(Vec::len).sum();
    let begin = Clock::now();
    let mut all = Summary::default();
    for file in &files {
        all.merge(Summary::from_bytes(file).expect("a summary")).expect("other runs");
    }
    let merged = begin.elapsed().as_secs_f64();
    let model = all.to_model();
    let whole = begin.elapsed().as_secs_f64();
    println!(
        "| summaries | tasks of each | kB per task | read, merged, s | and the model, s | merged, kB/task |"
    );
    println!("|---|---|---|---|---|---|");
    println!(
        "| {summaries} | {threads} | {:.1} | {merged:.2} | {whole:.2} | {:.1} |",
        bytes as f64 / 1e3 / (summaries * threads) as f64,
        all.to_bytes().len() as f64 / 1e3 / model.tasks().len() as f64,
    );
}

/// The summary of a run of periodic threads.
fn summary(number: u64, seed: u64, threads: u64, jobs: u64) -> Vec<u8> {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = move |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let mut extractor = Extractor::summarizing(Options::default());
    for tid in 1..=threads as u32 {
        extractor.record(&begins(tid));
        let (period, mut cpu) = (PERIOD * u64::from(tid), 0);
        for job in 1..=jobs {
            cpu += 200_000 + below(50_000);
            let arrival = job * period;
            let release = Instant::from_ns(arrival + below(20_000));
            extractor.record(&Record::Activation(Activation {
                tid,
                sequence: job as u32,
                separator: Separator {
                    call: Call::ClockNanosleep,
                    object: Object::Clock { id: 1, absolute: true },
                },
                slept: true,
                stop: Instant::from_ns(arrival - period / 2),
                cpu: Duration::from_ns(cpu),
                arrival: Some(Instant::from_ns(arrival)),
                resumed: Some(Resumed::new(Some(Window::at(release)), release + Duration::from_us(5))),
            }));
        }
    }
    let until = Instant::from_ns((jobs + 1) * PERIOD * threads);
    let run = Run {
        host: format!("machine{number}"),
        name: format!("run{number}"),
        clock_zero: None,
        from: Instant::from_ns(0),
        until,
        clock: "CLOCK_MONOTONIC".into(),
        platform: Platform::default(),
        records: threads * jobs,
        lost: 0,
        untracked: 0,
        skipped: 0,
        stolen: Duration::ZERO,
        omitted: 0,
    };
    Summary::new(run, extractor.finish_summarized(until)).to_bytes()
}

fn begins(tid: u32) -> Record {
    Record::Task(Box::new(TaskRecord {
        tid,
        pid: 1,
        sequence: 0,
        at: Instant::from_ns(0),
        begin: Begin::Seen,
        name: format!("control-{tid}"),
        command: "/usr/bin/robot --simulated".into(),
        policy: Policy::Fifo,
        priority: 50,
        nice: None,
        reservation: None,
        affinity: "0-1".into(),
    }))
}
