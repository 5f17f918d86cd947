//! A recording as long as wanted: threads with known periods, late as real ones are, written as `punctual
//! record` writes it.

use punctual_model::{Call, Duration, FileClass, Instant, Object, Platform, Policy, Separator, Window};
use punctual_trace::ctf::{Options, Recorded, Recorder};
use punctual_trace::{About, Activation, Begin, Error, Record, Resumed, TaskRecord, Totals};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

/// A generator of numbers, always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// In [0, 1).
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponential with this mean.
    fn exponential(&mut self, mean_ns: f64) -> u64 {
        (-mean_ns * (1.0 - self.share()).ln()) as u64
    }
}

/// One thread: where it waits, how often it comes, what it has done.
struct Thread {
    tid: u32,
    separator: Separator,
    /// Whether the call says when it is to end.
    timed: bool,
    /// The share of its jobs that find their event already there.
    back_to_back: f64,
    /// Whether each job sleeps inside.
    suspends: bool,
    period_ns: u64,
    arrival_ns: u64,
    end_ns: u64,
    cpu_ns: u64,
    sequence: u32,
}

/// Writes a recording of this many activations by this many threads. A release in 300 is a window.
pub fn write(folder: &Path, activations: u64, threads: u32) -> Result<Recorded, Error> {
    write_of(folder, activations, threads, 0)
}

/// The same, of one of many machines: each has jobs of its own, and other periods.
pub fn write_of(folder: &Path, activations: u64, threads: u32, machine: u32) -> Result<Recorded, Error> {
    let begin = Instant::from_ns(1_000_000_000);
    let about = About {
        platform: Platform { kernel: "0.0.0-generated".into(), machine: "none".into(), cpus: 2 },
        host: if machine == 0 { "generated".into() } else { format!("generated-{machine}") },
        source: "bench-replay".into(),
        clock: "CLOCK_MONOTONIC".into(),
        clock_zero: Some(0),
        from: begin,
        switches: false,
        latency: false,
    };
    let mut recorder = Recorder::create(folder, &about, &Options::default())?;
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ u64::from(machine).wrapping_mul(0xbf58_476d_1ce4_e5b9));
    let mut all: Vec<Thread> = (0..threads).map(|index| thread(index, begin, &mut random)).collect();
    for thread in &mut all {
        recorder.record(&Record::Task(Box::new(task(thread, begin))))?;
        thread.sequence = 1;
    }
    let mut order: BinaryHeap<Reverse<(u64, usize)>> =
        all.iter().enumerate().map(|(index, thread)| Reverse((thread.arrival_ns, index))).collect();
    let mut until = begin.ns();
    let mut written = 0;
    while written < activations {
        let Some(Reverse((_, index))) = order.pop() else { break };
        let thread = &mut all[index];
        written += thread.job(&mut random, &mut recorder)?;
        until = until.max(thread.end_ns);
        order.push(Reverse((thread.arrival_ns, index)));
    }
    // As after a kill: nothing says whether threads sleep at the end.
    recorder.finish(Instant::from_ns(until), Totals::default())
}

fn thread(index: u32, begin: Instant, random: &mut Random) -> Thread {
    let (separator, timed, back_to_back) = match index % 4 {
        0 | 1 => (
            Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } },
            true,
            0.0,
        ),
        2 => (
            Separator {
                call: Call::FutexWaitBitset,
                object: Object::address(0x7f00_0000_1000 + u64::from(index) * 64),
            },
            false,
            0.0,
        ),
        _ => {
            let pipe = Object::File { class: FileClass::Pipe, fd: 5, identity: 9_000 + u64::from(index) };
            (Separator { call: Call::Read, object: pipe }, false, 0.05)
        }
    };
    // Log-uniform in whole milliseconds, from 1 to 20.
    let period_ns = (20_f64.powf(random.share()) as u64).max(1) * 1_000_000;
    Thread {
        tid: 1_000 + index,
        separator,
        timed,
        back_to_back,
        suspends: index == 5,
        period_ns,
        arrival_ns: begin.ns() + period_ns + random.next() % period_ns,
        end_ns: begin.ns() + 1_000,
        cpu_ns: 1_000,
        sequence: 0,
    }
}

fn task(thread: &Thread, at: Instant) -> TaskRecord {
    TaskRecord {
        tid: thread.tid,
        pid: 1_000,
        sequence: 0,
        at,
        begin: Begin::Seen,
        name: format!("thread-{}", thread.tid),
        command: "generated".into(),
        policy: Policy::Fifo,
        priority: 50,
        nice: None,
        reservation: None,
        affinity: "0-1".into(),
    }
}

impl Thread {
    /// The next job, with what it does inside; returns how many activations that was.
    fn job(&mut self, random: &mut Random, recorder: &mut Recorder) -> Result<u64, Error> {
        let arrival = self.arrival_ns;
        self.arrival_ns += self.period_ns;
        let release = arrival + random.exponential(20_000.0);
        let earliest = if random.next() % 300 == 0 { release - release.min(10_000) } else { release };
        let start = release + 3_000 + random.exponential(4_000.0);
        self.separate(
            self.separator,
            self.timed.then_some(arrival),
            Some((earliest.max(self.end_ns), release)),
            start,
            recorder,
        )?;
        let mut activations = 1;
        self.run(random);
        if self.suspends {
            let sleep = Separator { call: Call::Nanosleep, object: Object::Clock { id: 1, absolute: false } };
            let woken = self.end_ns + 200_000 + random.exponential(10_000.0);
            self.separate(sleep, Some(self.end_ns + 200_000), Some((woken, woken)), woken + 3_000, recorder)?;
            self.run(random);
            activations += 1;
        }
        if random.share() < self.back_to_back {
            self.separate(self.separator, None, None, self.end_ns, recorder)?;
            self.run(random);
            activations += 1;
        }
        Ok(activations)
    }

    fn run(&mut self, random: &mut Random) {
        let cost =
            self.period_ns / 16 + random.exponential(self.period_ns as f64 / 200.0).min(self.period_ns / 8);
        self.cpu_ns += cost;
        self.end_ns += cost;
    }

    fn separate(
        &mut self,
        separator: Separator,
        arrival: Option<u64>,
        release: Option<(u64, u64)>,
        start: u64,
        recorder: &mut Recorder,
    ) -> Result<(), Error> {
        let window = release.and_then(|(earliest, latest)| {
            Window::new(Instant::from_ns(earliest.min(latest)), Instant::from_ns(latest))
        });
        let activation = Activation {
            tid: self.tid,
            sequence: self.sequence,
            separator,
            slept: window.is_some(),
            stop: Instant::from_ns(self.end_ns),
            cpu: Duration::from_ns(self.cpu_ns),
            arrival: arrival.map(Instant::from_ns),
            resumed: Some(Resumed::new(window, Instant::from_ns(start))),
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.end_ns = start;
        recorder.record(&Record::Activation(activation))
    }
}
