//! Summaries of many runs, which are read and merged.

use punctual_bench::Error;
use punctual_extract::{Extractor, Options, Run, Summary};
use punctual_model::{Call, Duration, Instant, Object, Platform, Policy, Separator, Window};
use punctual_trace::{Activation, Begin, Record, Resumed, TaskRecord};
use std::time::Instant as Clock;

/// Runs with jobs of their own; the others repeat them under other names.
const DIFFERENT: u64 = 100;
/// Of each thread of a run.
const JOBS: u64 = 2_000;
const PERIOD: u64 = 1_000_000;

/// What reading and merging took.
pub struct Merged {
    /// Bytes of each task in a summary of one run, and in that of all.
    pub bytes: [f64; 2],
    /// Seconds until all were one summary.
    pub merged: f64,
    /// Seconds until that was a timing model.
    pub whole: f64,
}

/// Merges as many summaries of runs of as many threads.
pub fn merge(summaries: u64, threads: u64) -> Result<Merged, Error> {
    let files: Vec<Vec<u8>> =
        (0..summaries).map(|run| summary(run, run % DIFFERENT, threads, JOBS)).collect();
    let bytes: usize = files.iter().map(Vec::len).sum();
    let begin = Clock::now();
    let mut all = Summary::default();
    for file in &files {
        all.merge(Summary::from_bytes(file)?)?;
    }
    let merged = begin.elapsed().as_secs_f64();
    let model = all.to_model();
    let whole = begin.elapsed().as_secs_f64();
    let one = bytes as f64 / (summaries * threads) as f64;
    Ok(Merged { bytes: [one, all.to_bytes().len() as f64 / model.tasks().len() as f64], merged, whole })
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
