//! Sections for tests: the paper's Figure 24, and a kernel without the tracepoints of the bound.

use punctual_model::latency::*;
use punctual_model::{Duration, Instant, Policy};

fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

fn thread(name: &str, tid: u32) -> ThreadId {
    ThreadId { name: name.to_owned(), pid: tid, tid }
}

fn variable(max: u64, thread: ThreadId, stack: &[&str]) -> Variable {
    let culprit = Culprit {
        at_ns: Instant::from_ns(5_013_632_000),
        thread,
        opened: Some("_raw_spin_lock_irqsave+0x19".to_owned()),
        closed: Some("_raw_spin_unlock_irqrestore+0x2a".to_owned()),
        stack: stack.iter().map(|&frame| frame.to_owned()).collect(),
    };
    Variable { max_ns: ns(max), at_least: false, culprit: Some(culprit) }
}

fn interrupt(
    kind: InterruptKind,
    number: u32,
    name: &str,
    steps: &[(u64, u64)],
    separation: u64,
) -> Interrupt {
    Interrupt {
        source: InterruptSource { kind, number: Some(number), name: name.to_owned() },
        at_least: false,
        longest_at_ns: Some(Instant::from_ns(6_000_000_000)),
        curves: InterruptCurves {
            count: 1_000,
            min_separation_ns: Some(ns(separation)),
            delta_min_ns: steps[1..].iter().map(|&(span, _)| ns(span)).collect(),
            wcet_ns: steps.iter().map(|&(_, sum)| ns(sum)).collect(),
            execution: steps.iter().map(|&(span, sum)| Step { span: ns(span), sum: ns(sum) }).collect(),
            long_execution_ns: Vec::new(),
        },
    }
}

fn measured(thread: Option<RealTimeThread>, wakeups: &[(u64, Split, Vec<Ran>)]) -> Measured {
    let mut measured = Measured { thread, ..Measured::default() };
    for (at, split, ran) in wakeups {
        let latency_ns = split.total();
        let wakeup =
            Wakeup { at_ns: Instant::from_ns(*at), latency_ns, split: Some(*split), ran: ran.clone() };
        measured.add(latency_ns, !split.threads_ns.is_zero(), || wakeup);
    }
    measured
}

fn split(interrupts: u64, threads: u64, rest: u64) -> Split {
    Split { interrupts_ns: ns(interrupts), threads_ns: ns(threads), rest_ns: ns(rest), ..Split::default() }
}

/// The numbers of the paper's Figures 24 and 25, on processor 1.
pub(crate) fn figure_24() -> SchedulingLatency {
    let php = || thread("php", 25_708);
    let stack = ["_raw_spin_unlock_irqrestore+0x2a", "wake_up_new_task+0x1c5", "_do_fork+0x14e"];
    let mut processor = Processor {
        cpu: 1,
        observed_ns: Duration::from_ms(60_000),
        variables: Some(Variables {
            poid: variable(22_510, php(), &stack),
            psd: variable(19_702, php(), &["schedule+0x5f"]),
            st: variable(19_312, php(), &["schedule+0x5f"]),
            paie: Variable::default(),
        }),
        interrupts: vec![
            interrupt(InterruptKind::Irq, 33, "nvme0q1", &[(0, 16_914)], 1_000_000),
            interrupt(InterruptKind::Irq, 35, "enp3s0", &[(0, 14_588)], 1_000_000),
            interrupt(InterruptKind::Vector, 236, "LOC", &[(0, 20_728), (60_000, 21_029)], 5_000),
            interrupt(InterruptKind::Vector, 246, "IWI", &[(0, 3_299)], 1_000_000),
        ],
        measured: vec![measured(None, &[(5_000_000_000, split(0, 0, 27_000), vec![])])],
        ..Processor::default()
    };
    // Two short ones came close together.
    processor.interrupts[2].curves.delta_min_ns = vec![ns(4_000)];
    SchedulingLatency {
        from_ns: Instant::from_ns(1_000_000_000),
        until_ns: Instant::from_ns(61_000_000_000),
        kernel: "5.2.21-rt14".to_owned(),
        preemption: Preemption::Rt,
        no_variables: None,
        damaged_recordings: 0,
        horizon_ns: Duration::from_ms(10),
        processors: vec![processor],
        monitors: vec![],
    }
}

/// What a kernel without the tracepoints of the bound shows.
pub(crate) fn measured_only() -> SchedulingLatency {
    let control = RealTimeThread { id: thread("control", 71), policy: Policy::Fifo, priority: 80 };
    let ran = vec![
        Ran {
            kind: RanKind::Thread,
            name: "busy".to_owned(),
            number: 72,
            from_ns: Instant::from_ns(2_000_000_000),
            duration_ns: ns(2_000_000),
            ..Ran::default()
        },
        Ran {
            kind: RanKind::Interrupt,
            name: "LOC".to_owned(),
            number: 236,
            from_ns: Instant::from_ns(2_000_500_000),
            duration_ns: ns(4_000),
            ..Ran::default()
        },
    ];
    let mut section = figure_24();
    section.kernel = "6.18.44".to_owned();
    section.preemption = Preemption::Voluntary;
    section.no_variables = Some(NoVariables::KernelOptions);
    let cpu = &mut section.processors[0];
    cpu.variables = None;
    cpu.timers = Some(Timers {
        expired: 4_000,
        total_ns: ns(12_000_000),
        lateness: variable(150_000, thread("swapper/1", 0), &[]),
    });
    cpu.measured = vec![measured(Some(control), &[(2_000_000_000, split(4_000, 2_000_000, 6_000), ran)])];
    section
}
