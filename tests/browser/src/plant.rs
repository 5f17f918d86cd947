//! A recording made up of threads of every kind that the page draws in its own way, put through the extractor
//! as a replay is.

use punctual_extract::{Extractor, Options};
use punctual_model::{
    Call, Choice, Disturbance, Duration, FileClass, Instant, LeftOut, Object, Percentiles, Periodic,
    PeriodicOn, Platform, Policy, Quantiles, Separator, Slip, Threads, TimingModel, Typical, Window,
};
use punctual_report::compare::{Comparison, Input};
use punctual_report::html::{Jobs, page};
use punctual_trace::{Activation, Begin, Record, Resumed, TaskRecord};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
const BEGIN: u64 = 100_000 * MS;
/// How long the threads run.
const LENGTH: u64 = 15_000 * MS;

/// A name as nobody should give a thread; the kernel allows 15 bytes of anything.
pub const HOSTILE: &str = "</script><img/>";

/// A model, and the records that it is made from.
pub struct Plant {
    pub model: TimingModel,
    records: Vec<Record>,
}

impl Plant {
    /// A few threads, each of another kind.
    pub fn small() -> Plant {
        let mut records = Vec::new();
        for thread in [control(), suspending(), burst(), random(), changing(), once(), skipping()] {
            records.extend(thread);
        }
        let mut plant = Plant::new(records);
        describe_skipping(&mut plant.model);
        plant
    }

    /// As many periodic threads.
    pub fn large(threads: u32) -> Plant {
        let mut records = Vec::new();
        for index in 0..threads {
            let mut thread = Thread::new(2_000 + index, &format!("worker-{index}"), 1 + index % 90);
            let period = 10 * MS + u64::from(index) * 10 * US;
            thread.every(period, 0..LENGTH / period, |noise| {
                (noise.skewed(60 * US), 300 * US + noise.skewed(200 * US))
            });
            records.extend(thread.records);
        }
        Plant::new(records)
    }

    fn new(records: Vec<Record>) -> Plant {
        let mut extractor = Extractor::new(Options::default());
        records.iter().for_each(|record| extractor.record(record));
        let until = Instant::from_ns(BEGIN + LENGTH);
        let model = TimingModel {
            platform: Some(Platform { kernel: "6.18.0-rt".into(), machine: "x86_64".into(), cpus: 4 }),
            threads: Some(Threads {
                from_ns: Instant::from_ns(BEGIN),
                until_ns: until,
                records: records.len() as u64,
                lost_records: 1,
                skipped_events: 2,
                tasks: extractor.finish(until),
                ..Threads::default()
            }),
            ..TimingModel::new("CLOCK_MONOTONIC")
        };
        Plant { model, records }
    }

    /// The page as a replay makes it.
    pub fn page(&self) -> String {
        let mut jobs = Jobs::new(&self.model);
        let mut extractor = Extractor::new(Options::default());
        for record in &self.records {
            extractor.record_jobs(record, &mut |seen| {
                jobs.job(seen.tid, seen.phase, &seen.separator, seen.number, seen.job)
            });
        }
        page(&self.model, Some(&jobs), None, "plant.timing.json")
    }

    /// The page of a comparison with itself.
    pub fn compared(&self) -> crate::Result<String> {
        let input = |name: &str| Input { name: name.into(), model: self.model.clone() };
        let compared = Comparison::new(&[input("before"), input("after")], &[]);
        Ok(compared.map_err(|nothing| format!("{nothing:?}"))?.html())
    }

    /// The page without a recording.
    pub fn page_without_recording(&self) -> String {
        page(&self.model, None, None, "plant.timing.json")
    }
}

/// Numbers that look random and are always the same (xorshift).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Mostly small, rarely close to the limit.
    fn skewed(&mut self, limit: u64) -> u64 {
        let share = self.below(1_000_000) as f64 / 1e6;
        (limit as f64 * share.powi(8)) as u64
    }
}

fn absolute_sleep() -> Separator {
    Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } }
}

fn relative_sleep() -> Separator {
    Separator { call: Call::Nanosleep, object: Object::Clock { id: 1, absolute: false } }
}

fn socket() -> Separator {
    Separator {
        call: Call::Recvfrom,
        object: Object::File { class: FileClass::Socket, fd: 7, identity: 4_711 },
    }
}

/// Writes the records of one thread.
struct Thread {
    tid: u32,
    sequence: u32,
    cpu: u64,
    noise: Noise,
    records: Vec<Record>,
}

impl Thread {
    fn new(tid: u32, name: &str, priority: u32) -> Thread {
        let noise = Noise(0x9e37_79b9_7f4a_7c15 ^ u64::from(tid) << 20);
        let mut thread = Thread { tid, sequence: 0, cpu: 0, noise, records: Vec::new() };
        thread.begins(BEGIN, Begin::Seen, name, Policy::Fifo, priority);
        thread
    }

    fn begins(&mut self, at: u64, begin: Begin, name: &str, policy: Policy, priority: u32) {
        self.records.push(Record::Task(Box::new(TaskRecord {
            tid: self.tid,
            pid: 1_000,
            sequence: self.sequence,
            at: Instant::from_ns(at),
            begin,
            name: name.into(),
            command: "/usr/bin/plant --line=<2> & 'more'".into(),
            policy,
            priority,
            nice: (policy == Policy::Other).then_some(0),
            reservation: None,
            affinity: "0-3".into(),
        })));
        self.sequence += 1;
    }

    /// Stopped, and released in a window; `None` where the call did not sleep.
    fn waits(
        &mut self,
        separator: Separator,
        stop: u64,
        arrival: Option<u64>,
        release: Option<(u64, u64)>,
        start: u64,
    ) {
        let instant = Instant::from_ns;
        self.records.push(Record::Activation(Activation {
            tid: self.tid,
            sequence: self.sequence,
            separator,
            slept: release.is_some(),
            stop: instant(stop),
            cpu: Duration::from_ns(self.cpu),
            arrival: arrival.map(instant),
            resumed: Some(Resumed::new(
                release.and_then(|(earliest, latest)| Window::new(instant(earliest), instant(latest))),
                instant(start),
            )),
        }));
        self.sequence += 1;
    }

    /// Sleeps until every `period`, late and costly as said; one release in 250 is not seen itself.
    fn every(
        &mut self,
        period: u64,
        jobs: std::ops::Range<u64>,
        mut late_and_cost: impl FnMut(&mut Noise) -> (u64, u64),
    ) {
        let mut stop = BEGIN + jobs.start * period + 100 * US;
        for job in jobs {
            let arrival = BEGIN + (job + 1) * period;
            let (late, cost) = late_and_cost(&mut self.noise);
            let unseen = if job % 250 == 137 { 20 * US } else { 0 };
            let latest = arrival + late + unseen;
            self.waits(
                absolute_sleep(),
                stop,
                Some(arrival),
                Some((arrival + late, latest)),
                latest + 4 * US,
            );
            stop = latest + 4 * US + cost;
            self.cpu += cost;
        }
    }
}

/// Every 5 ms; every tenth job costs four times as much.
fn control() -> Vec<Record> {
    let mut thread = Thread::new(1_001, "control", 80);
    let mut job = 0;
    thread.every(5 * MS, 0..LENGTH / (5 * MS) - 1, |noise| {
        job += 1;
        let cost = if job % 10 == 0 { 800 * US } else { 200 * US };
        (2 * US + noise.skewed(90 * US), cost + noise.skewed(30 * US))
    });
    thread.records
}

/// Every 30 ms, and sleeps once or twice inside each job.
fn suspending() -> Vec<Record> {
    let mut thread = Thread::new(1_002, "suspending", 70);
    let period = 30 * MS;
    let mut stop = BEGIN + 100 * US;
    for job in 0..LENGTH / period - 1 {
        let arrival = BEGIN + (job + 1) * period;
        let mut now = arrival + 3 * US + thread.noise.skewed(50 * US);
        thread.waits(absolute_sleep(), stop, Some(arrival), Some((now, now)), now + 5 * US);
        now += 5 * US;
        for _ in 0..1 + job % 2 {
            let ran = 200 * US + thread.noise.below(60 * US);
            let asleep = MS + thread.noise.below(40 * US);
            thread.cpu += ran;
            let woken = now + ran + asleep;
            thread.waits(relative_sleep(), now + ran, None, Some((woken, woken)), woken + 5 * US);
            now = woken + 5 * US;
        }
        stop = now + 150 * US;
        thread.cpu += 150 * US;
    }
    thread.records
}

/// Three messages at once, every 40 ms: the call does not wait for the second and the third.
fn burst() -> Vec<Record> {
    let mut thread = Thread::new(1_003, "burst", 60);
    let mut stop = BEGIN + 100 * US;
    for burst in 0..LENGTH / (40 * MS) - 1 {
        let at = BEGIN + (burst + 1) * 40 * MS + thread.noise.below(300 * US);
        let mut now = at + 5 * US;
        thread.waits(socket(), stop, None, Some((at, at)), now);
        for _ in 0..2 {
            let cost = 150 * US + thread.noise.below(20 * US);
            thread.cpu += cost;
            thread.waits(socket(), now + cost, None, None, now + cost);
            now += cost;
        }
        let cost = 150 * US + thread.noise.below(20 * US);
        thread.cpu += cost;
        stop = now + cost;
    }
    thread.records
}

/// At random, never closer than 2 ms; what it costs varies over two orders of magnitude.
fn random() -> Vec<Record> {
    let mut thread = Thread::new(1_004, "random", 50);
    let (mut stop, mut release) = (BEGIN + 100 * US, BEGIN + 10 * MS);
    while release < BEGIN + LENGTH - 100 * MS {
        thread.waits(socket(), stop, None, Some((release, release)), release + 6 * US);
        let cost = 10 * US + thread.noise.skewed(1_500 * US);
        thread.cpu += cost;
        stop = release + 6 * US + cost;
        release += 2 * MS + thread.noise.skewed(60 * MS) + thread.noise.below(4 * MS);
    }
    thread.records
}

/// Has a name that is markup, and is best-effort in between; in the end a record of it is missing.
fn changing() -> Vec<Record> {
    let mut thread = Thread::new(1_005, HOSTILE, 40);
    let plain = |noise: &mut Noise| (5 * US + noise.below(10 * US), 100 * US + noise.below(5 * US));
    thread.every(20 * MS, 0..200, plain);
    thread.begins(BEGIN + 201 * 20 * MS, Begin::Policy, HOSTILE, Policy::Other, 0);
    thread.every(20 * MS, 201..400, plain);
    thread.begins(BEGIN + 401 * 20 * MS, Begin::Policy, HOSTILE, Policy::Fifo, 41);
    thread.every(20 * MS, 401..500, plain);
    thread.sequence += 1;
    thread.every(20 * MS, 502..740, plain);
    thread.records
}

const SKIPPING_PERIOD: u64 = 5 * MS;
/// Activations of `skipping` without a release.
const SKIPPED: std::ops::Range<u64> = 1_000..1_002;
/// The activation of `skipping` that is released so much later than the others.
const STALLED: (u64, u64) = (2_000, 3 * MS);

/// Every 5 ms, but for two activations that are skipped and one that comes late.
fn skipping() -> Vec<Record> {
    let mut thread = Thread::new(1_007, "skipping", 30);
    let mut stop = BEGIN + 100 * US;
    for activation in (1..LENGTH / SKIPPING_PERIOD).filter(|activation| !SKIPPED.contains(activation)) {
        let late = match activation {
            _ if activation == STALLED.0 => STALLED.1,
            _ if activation == SKIPPED.end => 0,
            _ => thread.noise.skewed(20 * US),
        };
        let release = BEGIN + activation * SKIPPING_PERIOD + late;
        thread.waits(absolute_sleep(), stop, None, Some((release, release)), release + 4 * US);
        let cost = 100 * US + thread.noise.skewed(30 * US);
        stop = release + 4 * US + cost;
        thread.cpu += cost;
    }
    thread.records
}

/// What is known of that thread, by hand: the page is what is tried, not the inference.
fn describe_skipping(model: &mut TimingModel) {
    let Some(task) =
        model.threads.iter_mut().flat_map(|threads| &mut threads.tasks).find(|task| task.name == "skipping")
    else {
        return;
    };
    let at = |activation: u64| Instant::from_ns(BEGIN + activation * SKIPPING_PERIOD);
    let (jitter_ns, quantiles) = (Duration::from_us(30), |us: [u64; 4]| {
        let [p50_ns, p90_ns, p99_ns, p999_ns] = us.map(Duration::from_us);
        Some(Quantiles { p10_ns: None, p25_ns: None, p50_ns, p90_ns, p99_ns, p999_ns })
    });
    // The first release is of activation 1.
    let offset_ns = at(1).ns() as i64;
    let late = Instant::from_ns(at(STALLED.0).ns() + STALLED.1);
    for stream in &mut task.streams {
        stream.arrival.periodic = Some(Periodic {
            on: PeriodicOn::Release,
            period_ns: Duration::from_ns(SKIPPING_PERIOD),
            period_exact: None,
            offset_ns,
            jitter_ns: Duration::from_ns(STALLED.1),
            least_jitter_ns: jitter_ns,
            choice: Choice::Rounded,
            approximate: false,
            skipped: SKIPPED.end - SKIPPED.start,
            extra: 0,
            slips: vec![Slip { at_ns: at(SKIPPED.end), activations: (SKIPPED.end - SKIPPED.start) as i64 }],
            typical: Some(Typical {
                offset_ns,
                jitter_ns,
                left_out: vec![LeftOut {
                    at_ns: late,
                    off_ns: STALLED.1 as i64 - jitter_ns.ns() as i64,
                    reason: Some(Disturbance::Stall),
                }],
            }),
        });
        stream.percentiles = Some(Percentiles {
            lateness: quantiles([1, 9, 18, 20]),
            cost: quantiles([100, 112, 128, 130]),
            response: quantiles([106, 120, 140, 160]),
        });
    }
}

/// Two activations: one job, too few for figures.
fn once() -> Vec<Record> {
    let mut thread = Thread::new(1_006, "once", 99);
    thread.every(5_000 * MS, 0..2, |_| (US, 40 * US));
    thread.records
}
