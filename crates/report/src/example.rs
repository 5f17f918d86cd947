//! A hand-made timing model with figures that are easy to follow: what the tests of this room print.

use punctual_model::*;

/// Released every `period_ns`, `jitter_ns` late at most, on known arrivals.
pub(crate) fn periodic(period_ns: u64, jitter_ns: u64) -> Periodic {
    Periodic {
        on: PeriodicOn::Arrival,
        period_ns: Duration::from_ns(period_ns),
        period_exact: None,
        offset_ns: 1_000_000_000,
        jitter_ns: Duration::from_ns(jitter_ns),
        least_jitter_ns: Duration::from_ns(jitter_ns - jitter_ns / 80),
        choice: Choice::Rounded,
        approximate: false,
        skipped: 0,
        extra: 0,
        slips: Vec::new(),
        typical: None,
    }
}

/// Every millisecond: three activations skipped, one release early by a signal, one late as the machine stood
/// still.
pub(crate) fn disturbed() -> Periodic {
    let at = Instant::from_ns;
    Periodic {
        offset_ns: 999_690_000,
        jitter_ns: Duration::from_ns(30_326_000),
        least_jitter_ns: Duration::from_ms(30),
        skipped: 3,
        slips: vec![
            Slip { at_ns: at(1_500_004_000), activations: 1 },
            Slip { at_ns: at(1_800_002_000), activations: 2 },
        ],
        typical: Some(Typical {
            offset_ns: 1_000_000_000,
            jitter_ns: Duration::from_us(16),
            left_out: vec![
                LeftOut { at_ns: at(2_999_690_000), off_ns: -310_000, reason: Some(Disturbance::Signal) },
                LeftOut { at_ns: at(4_030_016_000), off_ns: 30_000_000, reason: Some(Disturbance::Stall) },
            ],
        }),
        ..periodic(1_000_000, 16_000)
    }
}

/// Every millisecond, with one release more than that.
pub(crate) fn extra() -> Periodic {
    Periodic {
        offset_ns: 999_000_000,
        jitter_ns: Duration::from_us(1_016),
        extra: 1,
        slips: vec![Slip { at_ns: Instant::from_ns(1_500_400_000), activations: -1 }],
        typical: Some(Typical {
            offset_ns: 1_000_000_000,
            jitter_ns: Duration::from_us(16),
            left_out: Vec::new(),
        }),
        ..periodic(1_000_000, 16_000)
    }
}

/// Of [`stream`]. Of the greatest costs, a little more than there was.
pub(crate) fn percentiles() -> Percentiles {
    let quantiles = |us: [u64; 4]| {
        let [p50_ns, p90_ns, p99_ns, p999_ns] = us.map(Duration::from_us);
        Some(Quantiles { p10_ns: None, p25_ns: None, p50_ns, p90_ns, p99_ns, p999_ns })
    };
    Percentiles {
        lateness: quantiles([6, 12, 14, 16]),
        cost: quantiles([700, 750, 790, 810]),
        response: quantiles([720, 760, 850, 890]),
    }
}

/// 2,000 jobs of an absolute sleep: 800 µs at most each, ten of them 7.2 ms.
pub(crate) fn stream(period_ns: u64, jitter_ns: u64) -> Stream {
    let spans = |shift: i64| -> Vec<Duration> {
        (1..200).map(|n| Duration::from_ns((n * period_ns).saturating_add_signed(shift))).collect()
    };
    let jitter = jitter_ns as i64;
    Stream {
        separator: Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } },
        jobs: 2_000,
        releases: 2_001,
        uncertain_releases: 0,
        back_to_back: 0,
        arrival: Arrival {
            periodic: Some(periodic(period_ns, jitter_ns)),
            sporadic: Some(Sporadic { min_separation_ns: Duration::from_ns(4_959_000) }),
            curve: Some(Curve { delta_min_ns: spans(-jitter), delta_max_ns: spans(jitter) }),
            modes: Vec::new(),
        },
        execution: Some(Execution {
            wcet_ns: (1..200).map(|n| Duration::from_us(800 + (n - 1) * 711 + (n - 1) / 9)).collect(),
            mean_ns: Some(Duration::from_us(700)),
        }),
        suspension: Some(Suspension {
            dynamic_ns: Duration::ZERO,
            segmented: vec![vec![SegmentBound {
                suspended_ns: Duration::ZERO,
                cost_ns: Duration::from_us(800),
            }]],
        }),
        response: Some(Response {
            max_ns: Duration::from_us(900),
            certain_max_ns: None,
            mean_ns: Some(Duration::from_us(720)),
        }),
        late: Some(0),
        percentiles: None,
    }
}

/// A FIFO task with [`stream`] of 5 ms and 41 µs.
pub(crate) fn task(name: &str, tid: u32, priority: u32) -> Task {
    Task {
        name: name.into(),
        pid: 1_200,
        tid,
        phase: 0,
        command: "/usr/bin/plant --fast".into(),
        policy: Policy::Fifo,
        priority,
        nice: None,
        reservation: None,
        affinity: "0-1".into(),
        from_ns: Instant::from_ns(1_000_000_000),
        until_ns: Instant::from_ns(11_000_000_000),
        ended_by: EndedBy::ObservationEnd,
        primary: Some(0),
        primary_reason: Some("it is the only call that separates jobs".into()),
        separators_capped: false,
        merged_transitions: 0,
        open_ns: None,
        busy_ns: None,
        recording: None,
        streams: vec![stream(5_000_000, 41_000)],
    }
}

/// These tasks, observed for ten seconds.
pub(crate) fn model(tasks: Vec<Task>) -> TimingModel {
    TimingModel {
        platform: Some(Platform { kernel: "6.18.44".into(), machine: "x86_64".into(), cpus: 2 }),
        threads: Some(Threads {
            from_ns: Instant::from_ns(1_000_000_000),
            until_ns: Instant::from_ns(11_000_000_000),
            records: 12_345,
            tasks,
            ..Threads::default()
        }),
        ..TimingModel::new("CLOCK_MONOTONIC")
    }
}

/// `task` as the next phase of its thread, under SCHED_OTHER.
pub(crate) fn best_effort_phase(mut task: Task) -> Task {
    task.phase += 1;
    task.policy = Policy::Other;
    task.priority = 0;
    task.nice = Some(0);
    task
}

/// Ten slots: `sense` every five, `act` once.
pub(crate) fn time_table() -> Table {
    use punctual_model::table::{Clock, Method, OnOverrun};
    let task = |name: &str, period, wcet| TableTask {
        name: name.to_owned(),
        thread: None,
        period,
        wcet,
        offset: 0,
        deadline: period,
        processors: Vec::new(),
        exclusive: false,
        after: Vec::new(),
        on_overrun: OnOverrun::Continue,
    };
    let job = |task, release, deadline, slots| TableJob { task, release, deadline, slots };
    let run = |processor, from, to, job| TableRun { processor, from, to, job };
    Table {
        slot_ns: Duration::from_ms(3),
        slots: 10,
        clock: Clock::Monotonic,
        processors: vec![1, 2],
        method: Method::MaximumFlow,
        tasks: vec![task("sense", 5, 2), task("act", 10, 3)],
        jobs: vec![job(0, 0, 5, 2), job(0, 5, 10, 2), job(1, 0, 10, 3)],
        runs: vec![run(1, 0, 2, 0), run(1, 2, 3, 2), run(1, 6, 8, 1), run(2, 3, 5, 2)],
    }
}
