//! Records of a measurement of scheduling latency: what goes in comes out, and babeltrace2 reads it.

use super::babeltrace::{babeltrace, field};
use super::generate::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use punctual_model::latency::*;
use punctual_model::{Duration, Instant, Policy};
use punctual_trace::ctf::{Options, Reader};
use punctual_trace::latency::{self, *};
use punctual_trace::{About, Record};

/// Whatever can be recorded.
pub fn any_latency() -> impl Strategy<Value = Latency> {
    let cpu = || prop_oneof![9 => 0..4_u32, 1 => any::<u32>()];
    prop_oneof![
        8 => interrupt(cpu()).prop_map(Latency::Interrupt),
        1 => (preemption(), duration(), no_variables()).prop_map(|(preemption, horizon, no_variables)| {
            Latency::Scope(Scope { preemption, horizon, no_variables })
        }),
        1 => (cpu(), any::<(u64, u64, bool)>()).prop_map(
            |(cpu, (skipped_events, negative_durations, is_partial))| {
                Latency::Processor(latency::Processor { cpu, skipped_events, negative_durations, is_partial })
            }
        ),
        1 => (any::<u32>(), source(), place()).prop_map(|(number, source, row)| {
            Latency::Source(Box::new(Source { number, source, row }))
        }),
        1 => (cpu(), any::<u64>()).prop_map(|(cpu, count)| Latency::Lost { cpu, count }),
        1 => (cpu(), any::<u32>()).prop_map(|(cpu, source)| Latency::Missed { cpu, source }),
        1 => cpu().prop_map(|cpu| Latency::Offline { cpu }),
        2 => (cpu(), select(&latency::Variable::ALL[..]), duration(), option::of(culprit())).prop_map(
            |(cpu, variable, duration, culprit)| {
                Latency::Maximum(Box::new(Maximum { cpu, variable, duration, culprit }))
            }
        ),
        2 => thread(cpu()).prop_map(|thread| Latency::Thread(Box::new(thread))),
        2 => wakeup(cpu()).prop_map(|wakeup| Latency::Wakeup(Box::new(wakeup))),
        1 => (cpu(), duration()).prop_map(|(cpu, max)| Latency::FromDue { cpu, max }),
        1 => (cpu(), timers()).prop_map(|(cpu, timers)| Latency::Timers { cpu, timers: Box::new(timers) }),
        1 => (cpu(), name(), any::<u64>()).prop_map(|(cpu, row, count)| Latency::Counted { cpu, row, count }),
        1 => (name(), vec(name(), 0..4), duration(), any::<u64>()).prop_map(
            |(name, rules, watched_ns, violations)| {
                Latency::Monitor(Box::new(Monitor { name, rules, watched_ns, violations }))
            }
        ),
        2 => witnessed(cpu()).prop_map(|witnessed| Latency::Witnessed(Box::new(witnessed))),
    ]
}

fn preemption() -> impl Strategy<Value = Preemption> {
    use Preemption::*;
    select(&[None, Voluntary, Full, Lazy, Rt, Unknown][..])
}

fn no_variables() -> impl Strategy<Value = Option<NoVariables>> {
    use NoVariables::*;
    option::of(select(&[Unknown, Architecture, KernelVersion, KernelOptions, Tracefs, Privileges][..]))
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![4 => 0..1_u64 << 22, 1 => any::<u64>()].prop_map(Duration::from_ns)
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z/0-9 -]{0,15}", "[^\u{0}]{0,20}"]
}

/// An empty one means that there is none.
fn place() -> impl Strategy<Value = Option<String>> {
    option::of("[a-z_]{1,30}\\+0x[0-9a-f]{1,3}( \\[[a-z]{1,10}\\])?")
}

/// Around the sizes of the compact layout.
fn interrupt(cpu: impl Strategy<Value = u32>) -> impl Strategy<Value = latency::Interrupt> {
    let cpu = prop_oneof![8 => cpu, 1 => 65_534..65_538_u32];
    let execution = prop_oneof![8 => 0..30_000_u64, 1 => (1_u64 << 32) - 2..(1 << 32) + 2, 1 => any::<u64>()];
    (cpu, any::<u32>(), instant(), execution, prop_oneof![4 => Just(0_u64), 1 => any::<u64>()]).prop_map(
        |(cpu, source, exit, execution, nested)| latency::Interrupt {
            cpu,
            source,
            entry: Instant::from_ns(exit.ns().saturating_sub(execution).saturating_sub(nested)),
            exit,
            execution: Duration::from_ns(execution),
        },
    )
}

fn source() -> impl Strategy<Value = InterruptSource> {
    use InterruptKind::*;
    (select(&[Nmi, Irq, Vector, Softirq][..]), option::of(any::<u32>()), name())
        .prop_map(|(kind, number, name)| InterruptSource { kind, number, name })
}

fn id() -> impl Strategy<Value = ThreadId> {
    (name(), any::<u32>(), any::<u32>()).prop_map(|(name, pid, tid)| ThreadId { name, pid, tid })
}

fn culprit() -> impl Strategy<Value = Culprit> {
    let frame = || "[a-z_]{1,40}\\+0x[0-9a-f]{1,4}";
    (instant(), id(), place(), place(), vec(frame(), 0..40))
        .prop_map(|(at_ns, thread, opened, closed, stack)| Culprit { at_ns, thread, opened, closed, stack })
}

fn thread(cpu: impl Strategy<Value = u32>) -> impl Strategy<Value = latency::Thread> {
    let policy = select(&[Policy::Fifo, Policy::Rr, Policy::Deadline, Policy::Other][..]);
    let thread = (id(), policy, any::<u32>()).prop_map(|(id, policy, priority)| RealTimeThread {
        id,
        policy,
        priority,
    });
    (cpu, thread, any::<bool>(), any::<(u64, u64)>(), (duration(), duration(), option::of(duration())))
        .prop_map(|(cpu, thread, is_measuring, (wakeups, unmeasured), (total, max, bounded_max))| {
            latency::Thread { cpu, thread, is_measuring, wakeups, unmeasured, total, max, bounded_max }
        })
}

fn ran() -> impl Strategy<Value = Ran> {
    use RanKind::*;
    let kind = select(&[Thread, Interrupt, Softirq, Nmi, Poid, Psd, St, Paie][..]);
    let before = (1..u64::MAX).prop_map(Duration::from_ns);
    let section = (option::of("[a-z_+]{1,20}"), option::of(before));
    (kind, name(), any::<u32>(), instant(), duration(), section).prop_map(
        |(kind, name, number, from_ns, duration_ns, (opened, before_ns))| Ran {
            kind,
            name,
            number,
            opened,
            before_ns,
            from_ns,
            duration_ns,
        },
    )
}

/// Not with sections: as the layout without them has it.
fn plain(ran: Ran) -> Ran {
    let kind = if ran.kind.variable().is_some() { RanKind::Thread } else { ran.kind };
    Ran { kind, opened: None, before_ns: None, ..ran }
}

fn wakeup(cpu: impl Strategy<Value = u32>) -> impl Strategy<Value = ThreadWakeup> {
    let split = (duration(), duration(), duration(), duration()).prop_map(
        |(interrupts_ns, threads_ns, sections_ns, rest_ns)| Split {
            interrupts_ns,
            threads_ns,
            sections_ns,
            rest_ns,
        },
    );
    let ran = prop_oneof![ran(), ran().prop_map(plain)];
    let wakeup = (instant(), duration(), option::of(split), vec(ran, 0..20))
        .prop_map(|(at_ns, latency_ns, split, ran)| Wakeup { at_ns, latency_ns, split, ran });
    (cpu, any::<(u32, u32, u32)>(), wakeup).prop_map(|(cpu, (tid, policy, priority), wakeup)| ThreadWakeup {
        cpu,
        tid,
        policy,
        priority,
        wakeup,
    })
}

fn timers() -> impl Strategy<Value = Timers> {
    (any::<u64>(), duration(), duration(), any::<bool>(), option::of(culprit())).prop_map(
        |(expired, total_ns, max_ns, at_least, culprit)| Timers {
            expired,
            total_ns,
            lateness: punctual_model::latency::Variable { max_ns, at_least, culprit },
        },
    )
}

fn witnessed(cpu: impl Strategy<Value = u32>) -> impl Strategy<Value = Witnessed> {
    use WitnessedKind::*;
    let kind = prop_oneof![
        select(&[IrqsOff, IrqsOn, InterruptEntry, InterruptExit, PreemptOff, PreemptOn][..]),
        select(&[SchedulerEntry, SchedulerExit][..]),
        any::<u32>().prop_map(InterruptSource),
        any::<u32>().prop_map(Wakeup),
    ];
    (cpu, instant(), any::<u32>(), kind, place()).prop_map(|(cpu, at, tid, kind, place)| Witnessed {
        cpu,
        at,
        tid,
        kind,
        place,
    })
}

fn about() -> About {
    About { latency: true, ..some_about() }
}

proptest! {
    #[test]
    fn a_measurement_is_read_back_unchanged(latencies in vec(any_latency(), 0..200)) {
        let scratch = tempfile::tempdir()?;
        let folder = scratch.path().join("recording");
        let records: Vec<Record> = latencies.into_iter().map(Record::Latency).collect();
        make(&folder, &about(), &Options { packet_bytes: 0, ..Options::default() }, &records);
        let reader = Reader::open(&folder)?;
        prop_assert!(reader.about().latency && reader.complete());
        prop_assert_eq!(read_all(&reader), records);
    }
}

#[test]
fn long_texts_and_lists_are_cut() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let long = "ü".repeat(2_000);
    let maximum = |stack: Vec<String>| {
        let culprit = Culprit { opened: Some(stack[0].clone()), stack, ..Culprit::default() };
        let (cpu, variable, duration) = (0, latency::Variable::St, Duration::from_ns(7));
        Record::Latency(Latency::Maximum(Box::new(Maximum {
            cpu,
            variable,
            duration,
            culprit: Some(culprit),
        })))
    };
    make(
        &folder,
        &about(),
        &Options { packet_bytes: 0, ..Options::default() },
        &[maximum(vec![long.clone(); 300])],
    );
    assert_eq!(read_all(&Reader::open(&folder).unwrap()), [maximum(vec![long[..1_000].to_owned(); 255])]);
}

/// One of each kind and layout.
pub fn one_of_each_latency() -> Vec<Record> {
    let ns = Instant::from_ns;
    let us = |us: u64| Duration::from_ns(us * 1_000);
    let id = ThreadId { name: "php".into(), pid: 25_707, tid: 25_708 };
    let culprit = Culprit {
        at_ns: ns(1_000_000_900),
        thread: id.clone(),
        opened: Some("rcu_read_lock+0x3".into()),
        closed: None,
        stack: vec!["finish+0x2a".into(), "work+0x10 [module]".into()],
    };
    let ran = Ran {
        kind: RanKind::Interrupt,
        name: "LOC".into(),
        number: 236,
        from_ns: ns(1_000_000_100),
        duration_ns: us(2),
        ..Ran::default()
    };
    let wakeup = Wakeup {
        at_ns: ns(1_000_000_000),
        latency_ns: us(9),
        split: Some(Split {
            interrupts_ns: us(2),
            threads_ns: us(3),
            sections_ns: Duration::ZERO,
            rest_ns: us(4),
        }),
        ran: vec![ran.clone(), ran],
    };
    let thread = RealTimeThread { id, policy: Policy::Fifo, priority: 80 };
    let interrupt = latency::Interrupt {
        cpu: 1,
        source: 236,
        entry: ns(1_000_001_000),
        exit: ns(1_000_003_000),
        execution: us(2),
    };
    let all = vec![
        Latency::Scope(Scope {
            preemption: Preemption::Rt,
            horizon: Duration::from_ms(10),
            no_variables: None,
        }),
        Latency::Processor(latency::Processor { cpu: 1, ..Default::default() }),
        Latency::Source(Box::new(Source {
            number: 236,
            source: InterruptSource { kind: InterruptKind::Vector, number: Some(236), name: "LOC".into() },
            row: Some("LOC".into()),
        })),
        Latency::Interrupt(interrupt),
        Latency::Interrupt(latency::Interrupt { execution: us(1), ..interrupt }),
        Latency::Lost { cpu: 1, count: 3 },
        Latency::Missed { cpu: 1, source: 236 },
        Latency::Offline { cpu: 1 },
        Latency::Maximum(Box::new(Maximum {
            cpu: 1,
            variable: latency::Variable::Psd,
            duration: us(19),
            culprit: Some(culprit.clone()),
        })),
        Latency::Thread(Box::new(latency::Thread {
            cpu: 1,
            thread,
            is_measuring: false,
            wakeups: 5,
            unmeasured: 1,
            total: us(20),
            max: us(9),
            bounded_max: Some(us(8)),
        })),
        Latency::Wakeup(Box::new(ThreadWakeup { cpu: 1, tid: 25_708, policy: 1, priority: 80, wakeup })),
        Latency::Timers {
            cpu: 1,
            timers: Box::new(Timers {
                expired: 4,
                total_ns: us(8),
                lateness: punctual_model::latency::Variable {
                    max_ns: us(5),
                    at_least: false,
                    culprit: Some(culprit),
                },
            }),
        },
        Latency::FromDue { cpu: 1, max: us(988) },
        Latency::Counted { cpu: 1, row: "LOC".into(), count: 17 },
        Latency::Monitor(Box::new(Monitor {
            name: "scpd".into(),
            rules: vec!["R6".into(), "R7".into()],
            watched_ns: us(50),
            violations: 0,
        })),
        Latency::Witnessed(Box::new(Witnessed {
            cpu: 1,
            at: ns(1_000_002_000),
            tid: 25_708,
            kind: WitnessedKind::InterruptSource(236),
            place: Some("finish+0x2a".into()),
        })),
    ];
    all.into_iter().map(Record::Latency).collect()
}

#[test]
fn babeltrace_finds_every_field_of_a_measurement() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    make(&folder, &about(), &Options::default(), &one_of_each_latency());
    let Some(lines) = babeltrace(&folder, &["--clock-cycles"]) else { return };
    let labelled = |label: &str, number: u8| format!("( \"{label}\" : container = {number} )");
    let (yes, no) = (labelled("yes", 1), labelled("no", 0));
    let culprit = |closed: &str| {
        [
            field("culprit_known", &yes),
            field("at_ns", 1_000_000_900),
            "tid = 25708, pid = 25707, name = \"php\", opened = \"rcu_read_lock+0x3\"".into(),
            format!("closed = \"{closed}\", depth = 2"),
            "stack = [ [0] = \"finish+0x2a\", [1] = \"work+0x10 [module]\" ]".into(),
        ]
        .join(", ")
    };
    let ran = format!(
        "{{ kind = {}, number = 236, from_ns = 1000000100, duration_ns = 2000, name = \"LOC\" }}",
        labelled("interrupt", 1)
    );
    let expected = [
        ("scope", format!("preemption = {}, horizon_ns = 10000000, variables = {yes}", labelled("rt", 4))),
        ("processor", format!("cpu = 1, skipped_events = 0, negative_durations = 0, partial = {no}")),
        (
            "source",
            format!(
                "source = 236, kind = {}, numbered = {yes}, number = 236, name = \"LOC\", row = \"LOC\"",
                labelled("vector", 2)
            ),
        ),
        ("interrupt", "cpu = 1, source = 236, before_ns = 0, execution_ns = 2000".into()),
        (
            "interrupt_wide",
            "cpu = 1, source = 236, entry_ns = 1000001000, exit_ns = 1000003000, execution_ns = 1000".into(),
        ),
        ("interrupts_lost", "cpu = 1, count = 3".into()),
        ("interrupt_missed", "cpu = 1, source = 236".into()),
        ("offline", "cpu = 1".into()),
        (
            "maximum",
            format!("cpu = 1, variable = {}, duration_ns = 19000, {}", labelled("psd", 1), culprit("")),
        ),
        (
            "thread_latencies",
            format!(
                "cpu = 1, tid = 25708, pid = 25707, policy = {}, priority = 80, measuring = {no}, \
                 wakeups = 5, unmeasured = 1, total_ns = 20000, max_ns = 9000, bounded_known = {yes}, \
                 bounded_max_ns = 8000, \
                 name = \"php\"",
                labelled("SCHED_FIFO", 1)
            ),
        ),
        (
            "wakeup",
            format!(
                "cpu = 1, tid = 25708, policy = 1, priority = 80, at_ns = 1000000000, latency_ns = 9000, \
                 split = {yes}, interrupts_ns = 2000, threads_ns = 3000, rest_ns = 4000, count = 2, \
                 ran = [ [0] = {ran}, [1] = {ran} ]"
            ),
        ),
        (
            "timers",
            format!("cpu = 1, expired = 4, total_ns = 8000, max_ns = 5000, at_least = {no}, {}", culprit("")),
        ),
        ("from_due", "cpu = 1, max_ns = 988000".into()),
        ("interrupts_counted", "cpu = 1, count = 17, row = \"LOC\"".into()),
        (
            "monitor",
            "watched_ns = 50000, violations = 0, name = \"scpd\", count = 2, \
             rules = [ [0] = \"R6\", [1] = \"R7\" ]"
                .into(),
        ),
        (
            "witnessed",
            format!(
                "cpu = 1, at_ns = 1000002000, tid = 25708, kind = {}, detail = 236, place = \"finish+0x2a\"",
                labelled("interrupt_source", 3)
            ),
        ),
    ];
    for (line, (name, fields)) in lines.iter().zip(&expected) {
        assert!(line.contains(&format!(" testbed {name}: ")), "{line}, and not {name}");
        assert!(line.ends_with(&format!("{{ {fields} }}")), "{line}\nand not {fields}");
    }
    assert_eq!(lines.len(), expected.len() + 1, "{lines:#?}");
}
