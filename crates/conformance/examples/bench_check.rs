//! What judging costs beside extraction, and whether memory stays the same.
//!
//!     cargo run --release -p punctual-conformance --example bench_check -- [ACTIVATIONS]
//!
//! Eight threads with a period of 1 ms each, one record at a time: through extractors with the curves that
//! `punctual extract` makes, and with the shortest; through a checker whose contract is kept; and through one
//! whose contract every job breaks. Then a day of eight threads with a period of 10 ms, with a look every
//! 50 ms at what is overdue: by then the last job of each thread has been open for longer than its deadline,
//! as far as records tell, so each time the thread is asked what it does. (It waits: its job has ended.)

use punctual_conformance::{Checker, Contract};
use punctual_extract::{Extractor, Options, StreamOptions};
use punctual_model::{Call, Duration, Instant, Object, Policy, Separator, Window};
use punctual_trace::{Activation, Begin, Glance, Record, Resumed, TaskRecord};

const THREADS: u32 = 8;
const PERIOD: u64 = 1_000_000;
const SEPARATOR: Separator =
    Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } };

fn main() {
    let activations = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000_000_u64);
    let mut extractor = Extractor::new(Options::default());
    let alone = time("extraction", activations, |record| extractor.record(record));
    let stream = StreamOptions::without_curves();
    let mut extractor = Extractor::new(Options { stream, merge_transitions: false });
    let bare = time("extraction without curves", activations, |record| extractor.record(record));
    let contracts = [("contract kept", "1s", "100us"), ("contract broken by each job", "1ns", "0s")];
    for (name, wcet, jitter) in contracts {
        let mut checker = Checker::new(&contract(wcet, jitter));
        let mut violations = 0_u64;
        let took = time(name, activations, |record| checker.record(record, &mut |_| violations += 1));
        println!(
            "  {violations} violations, {:.3} × extraction, {:.3} × without curves, peak {} KiB",
            took / alone,
            took / bare,
            peak()
        );
    }
    day();
}

/// A day of simulated time through a checker, and the memory that it takes.
fn day() {
    const PERIOD: u64 = 10_000_000;
    const HOUR: u64 = 3_600 * 1_000_000_000 / PERIOD * THREADS as u64;
    let began = processor_time();
    let mut checker = Checker::new(&contract_of("10ms", "1s", "1s", "2ms"));
    let (mut number, mut looks, mut glances, mut violations) = (0_u64, 0_u64, 0_u64, 0_u64);
    records(24 * HOUR, PERIOD, |record| {
        checker.record(record, &mut |_| violations += 1);
        if !matches!(record, Record::Activation(_)) {
            return;
        }
        number += 1;
        if number % (5 * u64::from(THREADS)) == 0 {
            let job = number / u64::from(THREADS);
            let now = Instant::from_ns(job * PERIOD + 5_000_000);
            let mut glance = |_| {
                glances += 1;
                Some(waiting(job, PERIOD, now))
            };
            checker.overdue(now, &mut glance, &mut |_| violations += 1);
            looks += 1;
        }
        if number % (6 * HOUR) == HOUR {
            println!("  after {} h: peak {} KiB", number / HOUR, peak());
        }
    });
    let took = processor_time() - began;
    println!(
        "24 hours, {} activations, {looks} looks, {glances} glances at threads: {violations} violations, \
         {took:.1} s, peak {} KiB",
        24 * HOUR,
        peak()
    );
}

/// A thread that has ended this job and waits for the next.
fn waiting(job: u64, period: u64, at: Instant) -> Glance {
    let cpu = Duration::from_ns((job + 1) * 200_000);
    let stopped = Activation {
        tid: 0,
        sequence: job as u32 + 1,
        separator: SEPARATOR,
        slept: true,
        stop: Instant::from_ns(job * period + 300_000),
        cpu,
        arrival: None,
        resumed: None,
    };
    Glance { sequence: job as u32 + 1, at, cpu, stopped: Some(stopped), busy: None }
}

fn contract(wcet: &str, jitter: &str) -> Contract {
    contract_of("1ms", wcet, jitter, "1s")
}

fn contract_of(period: &str, wcet: &str, jitter: &str, deadline: &str) -> Contract {
    let text = format!(
        "[[task]]\nname = \"worker\"\nseparator = \"clock_nanosleep*\"\nwcet = \"{wcet}\"\n\
         response = \"1s\"\ndeadline = \"{deadline}\"\nsuspension = \"1s\"\n\
         period = \"{period}\"\njitter = \"{jitter}\"\n"
    );
    Contract::parse(&text).expect("a contract")
}

/// Seconds of processor time of this thread.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

/// Processor time for all records in seconds; that of making them is taken off.
fn time(name: &str, activations: u64, mut take: impl FnMut(&Record)) -> f64 {
    let began = processor_time();
    records(activations, PERIOD, |record| _ = std::hint::black_box(record));
    let making = processor_time() - began;
    let began = processor_time();
    records(activations, PERIOD, |record| take(record));
    let took = processor_time() - began - making;
    println!("{name}: {:.1} ns for each of {activations} activations", took * 1e9 / activations as f64);
    took
}

fn records(activations: u64, period: u64, mut each: impl FnMut(&Record)) {
    for tid in 0..THREADS {
        each(&Record::Task(Box::new(TaskRecord {
            tid,
            pid: 1,
            sequence: 0,
            at: Instant::from_ns(1),
            begin: Begin::Seen,
            name: "worker".into(),
            command: "robot".into(),
            policy: Policy::Fifo,
            priority: 50,
            nice: None,
            reservation: None,
            affinity: "0".into(),
        })));
    }
    let mut random = 1_u64;
    for number in 0..activations {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (tid, job) = ((number % u64::from(THREADS)) as u32, number / u64::from(THREADS) + 1);
        let release = job * period + (random >> 33) % 50_000;
        let release = Window::at(Instant::from_ns(release));
        each(&Record::Activation(Activation {
            tid,
            sequence: job as u32,
            separator: SEPARATOR,
            slept: true,
            stop: Instant::from_ns((job - 1) * period + 300_000),
            cpu: Duration::from_ns(job * 200_000 + (random >> 40)),
            arrival: None,
            resumed: Some(Resumed::new(Some(release), release.latest() + Duration::from_us(5))),
        }));
    }
}

/// The most memory that the process has had.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("unknown").trim().trim_end_matches(" kB").to_owned()
}
