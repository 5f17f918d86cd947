//! The events of lttng-modules: switches, wake-ups, and the system calls that the demonstration uses.

use crate::ctf::Type::{Arguments, Comm, I32, I64, U64};
use crate::ctf::{Class, Layout, Value};

const CLASSES: &[Class] = &[
    (
        "sched_switch",
        &[
            ("prev_comm", Comm),
            ("prev_tid", I32),
            ("prev_prio", I32),
            ("prev_state", I64),
            ("next_comm", Comm),
            ("next_tid", I32),
            ("next_prio", I32),
        ],
    ),
    ("sched_waking", &[("comm", Comm), ("tid", I32), ("prio", I32), ("target_cpu", I32)]),
    ("sched_pi_setprio", &[("comm", Comm), ("tid", I32), ("oldprio", I32), ("newprio", I32)]),
    ("sched_process_exit", &[("comm", Comm), ("tid", I32), ("prio", I32)]),
    ("sched_stat_runtime", &[("comm", Comm), ("tid", I32), ("runtime", U64), ("vruntime", U64)]),
    ("syscall_entry_clock_nanosleep", &[("which_clock", I32), ("flags", I32), ("rqtp", U64)]),
    ("syscall_entry_nanosleep", &[("rqtp", U64)]),
    ("syscall_entry_read", &[("fd", I32), ("count", U64)]),
    ("syscall_entry_futex", &[("uaddr", U64), ("op", I32), ("val", I32), ("utime", U64)]),
    ("syscall_entry_getpid", &[]),
    ("syscall_entry_unknown", &[("id", I32), ("args", Arguments)]),
    ("syscall_exit_clock_nanosleep", &[("ret", I64)]),
    ("syscall_exit_nanosleep", &[("ret", I64)]),
    ("syscall_exit_read", &[("ret", I64)]),
    ("syscall_exit_futex", &[("ret", I64)]),
    ("syscall_exit_getpid", &[("ret", I64)]),
    ("syscall_exit_unknown", &[("id", I32), ("ret", I64), ("args", Arguments)]),
    ("irq_handler_entry", &[("irq", I32)]),
    ("irq_handler_exit", &[("irq", I32), ("ret", I32)]),
];

/// As the kernel tracer lays it out.
pub fn layout() -> Layout {
    Layout {
        domain: "kernel",
        is_big: false,
        has_large_headers: true,
        packet_bytes: 64 << 10,
        context: &[],
        classes: CLASSES,
        clock: ("monotonic", 1_000_000_000),
        // Measured a little later than that of user space.
        offset: 1_700_000_000_000_004_321,
        env: "\tkernel_release = \"6.1.0\";\n\ttracer_major = 2;\n\ttracer_minor = 13;\n".into(),
    }
}

/// A thread in a switch: its name, number, and the kernel's priority.
pub type Thread<'a> = (&'a str, i32, i32);

/// Nobody.
pub const IDLE: Thread<'_> = ("swapper/0", 0, 120);

/// Fields of `sched_switch`. LTTng writes priorities less 100.
pub fn switch(from: Thread<'_>, state: i64, to: Thread<'_>) -> Vec<Value> {
    vec![
        Value::Text(from.0.into()),
        Value::I32(from.1),
        Value::I32(from.2 - 100),
        Value::I64(state),
        Value::Text(to.0.into()),
        Value::I32(to.1),
        Value::I32(to.2 - 100),
    ]
}

/// Fields of `sched_waking`.
pub fn waking(thread: Thread<'_>) -> Vec<Value> {
    vec![Value::Text(thread.0.into()), Value::I32(thread.1), Value::I32(thread.2 - 100), Value::I32(0)]
}

/// Fields of `sched_stat_runtime`: how long a thread ran.
pub fn account(name: &str, tid: i32, ns: u64) -> Vec<Value> {
    vec![Value::Text(name.into()), Value::I32(tid), Value::U64(ns), Value::U64(0)]
}
