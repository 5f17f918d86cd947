//! Summaries of many runs, which are read and merged.

use punctual_bench::{Error, measure};
use punctual_extract::{Extractor, Options, Run, Summary};
use punctual_model::{Call, Duration, Instant, Object, Platform, Policy, Separator, Window};
use punctual_trace::{Activation, Begin, Record, Resumed, TaskRecord};
use std::path::Path;
use std::process::Command;
use std::time::Instant as Clock;

/// Runs with jobs of their own; the others repeat them under other names.
const DIFFERENT: u64 = 100;
/// Of each thread of a run.
const JOBS: u64 = 2_000;
const PERIOD: u64 = 1_000_000;

/// What `punctual merge` took.
pub struct Merged {
    /// Bytes of each task in a summary of one run, and in that of all.
    pub bytes: [f64; 2],
    /// Seconds until the summary of all was written.
    pub summary: f64,
    /// Seconds until their timing model was.
    pub model: f64,
    pub resident_mib: f64,
}

/// Merges as many summaries of runs of as many threads: medians of so many rounds.
pub fn merge(folder: &Path, summaries: u64, threads: u64, rounds: u64) -> Result<Merged, Error> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    for run in 0..summaries {
        let (file, summary) =
            (folder.join(format!("{run}.summary")), summary(run, run % DIFFERENT, threads, JOBS));
        bytes += summary.len() as u64;
        std::fs::write(&file, summary)?;
        files.push(file);
    }
    let (all, model) = (folder.join("all.summary"), folder.join("all.timing.json"));
    let (mut until, mut resident) = ([Vec::new(), Vec::new()], 0);
    for _ in 0..rounds {
        for (output, until) in [&all, &model].into_iter().zip(&mut until) {
            let began = Clock::now();
            let child = Command::new(measure::built("punctual"))
                .args(["merge", "--quiet", "--force", "-o"])
                .arg(output)
                .args(&files)
                .spawn()?;
            let (success, kib) = measure::end_of(child)?;
            if !success {
                return Err("punctual merge failed".into());
            }
            until.push(began.elapsed().as_secs_f64());
            resident = resident.max(kib);
        }
    }
    let model: serde_json::Value = serde_json::from_slice(&std::fs::read(&model)?)?;
    let jobs = |task: &serde_json::Value| task["streams"][0]["jobs"].as_u64();
    let tasks = model["threads"]["tasks"].as_array().ok_or("the model has no tasks")?;
    // The first job of each run is not whole.
    let expected = Some(summaries * (JOBS - 1));
    if tasks.len() as u64 != threads || tasks.iter().any(|task| jobs(task) != expected) {
        return Err(format!("{summaries} runs of {threads} tasks were not merged as that").into());
    }
    let [summary, model] = until.map(|mut seconds| {
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied().unwrap_or(0.0)
    });
    Ok(Merged {
        bytes: [
            bytes as f64 / (summaries * threads) as f64,
            std::fs::metadata(&all)?.len() as f64 / threads as f64,
        ],
        summary,
        model,
        resident_mib: resident as f64 / 1024.0,
    })
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
        notes: Vec::new(),
        clock_steps: Vec::new(),
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
