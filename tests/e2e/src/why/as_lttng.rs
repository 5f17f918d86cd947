//! Converts events that perf recorded to a trace of LTTng's kernel tracer.

use crate::{Result, fail};
use punctual_test_lttng::ctf::{Layout, Type, Value, Writer};
use punctual_test_lttng::kernel;
use std::path::Path;

/// The fields of each event that `perf script` prints.
pub const OPTIONS: [&str; 4] = ["--ns", "--show-lost-events", "-F", "tid,cpu,time,event,trace"];

/// An event of LTTng: its class, and its fields.
type Event = (&'static str, Vec<Value>);

/// Writes events as `perf script` prints them with [`OPTIONS`], of an x86-64 machine, to a folder.
pub fn write(script: &str, folder: &Path, processors: u32) -> Result {
    // Perf hides switches, and LTTng says in no other way who runs.
    let layout = Layout { context: &[("tid", Type::I32)], ..kernel::layout() };
    let mut writer = Writer::create(folder, layout, processors)?;
    for line in script.lines() {
        if let Some((cpu, events)) = lost(line) {
            writer.discard(cpu, events)?;
            continue;
        }
        let seen =
            line.trim_start().split_once(' ').and_then(|(tid, rest)| Some((tid.parse().ok()?, read(rest)?)));
        let Some((tid, (cpu, at, event))) = seen else { return fail(format!("not understood: {line}")) };
        if let Some((class, fields)) = event {
            writer.event(cpu, at, class, &[Value::I32(tid)], &fields)?;
        }
    }
    writer.finish()?;
    Ok(())
}

/// `17076 [000] 43024.284309096: PERF_RECORD_LOST lost 17`: the processor, and how many.
fn lost(line: &str) -> Option<(u32, u64)> {
    let (head, lost) = line.split_once("PERF_RECORD_LOST lost ")?;
    let (_, cpu) = head.split_once('[')?;
    Some((cpu.split_once(']')?.0.parse().ok()?, lost.trim().parse().ok()?))
}

/// `[001] 6307.392047136: sched:sched_switch: prev_comm=…`: the processor, the time, and what LTTng would
/// write.
fn read(line: &str) -> Option<(u32, u64, Option<Event>)> {
    let (cpu, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (seconds, ns) = time.split_once('.')?;
    let at = seconds.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?;
    let (name, fields) = rest.trim_start().split_once(": ")?;
    let event = match name {
        "sched:sched_switch" => Some(switch(fields)?),
        "sched:sched_waking" => {
            let (comm, rest) = fields.strip_prefix("comm=")?.rsplit_once(" pid=")?;
            Some(("sched_waking", kernel::waking((comm, number(rest)?, after(rest, "prio=")?))))
        }
        "sched:sched_stat_runtime" => {
            let (comm, rest) = fields.strip_prefix("comm=")?.rsplit_once(" pid=")?;
            let ran = u64::try_from(after(rest, "runtime=")?).ok()?;
            Some(("sched_stat_runtime", kernel::account(comm, number(rest)?, ran)))
        }
        "sched:sched_process_exit" => {
            let (comm, rest) = fields.strip_prefix("comm=")?.rsplit_once(" pid=")?;
            let numbers = [number(rest)?, after(rest, "prio=")? - 100].map(Value::I32);
            Some(("sched_process_exit", [vec![Value::Text(comm.into())], numbers.to_vec()].concat()))
        }
        "raw_syscalls:sys_enter" => enter(fields.trim_start().strip_prefix("NR ")?)?,
        "raw_syscalls:sys_exit" => {
            let (call, result) = fields.trim_start().strip_prefix("NR ")?.split_once(" = ")?;
            let result = vec![Value::I64(result.trim().parse().ok()?)];
            CALLS.iter().find(|(number, ..)| call.parse() == Ok(*number)).map(|it| (it.2, result))
        }
        _ => None,
    };
    Some((cpu.parse().ok()?, at, event))
}

/// The calls that the program waits in, and the classes of their entries and exits.
const CALLS: [(i64, &str, &str); 4] = [
    (0, "syscall_entry_read", "syscall_exit_read"),
    (35, "syscall_entry_nanosleep", "syscall_exit_nanosleep"),
    (202, "syscall_entry_futex", "syscall_exit_futex"),
    (230, "syscall_entry_clock_nanosleep", "syscall_exit_clock_nanosleep"),
];

/// `230 (1, 1, 7ffc0b8, 0, 0, 0)`; nothing where the call is none of [`CALLS`].
fn enter(fields: &str) -> Option<Option<Event>> {
    let (call, arguments) = fields.trim_end().strip_suffix(')')?.split_once(" (")?;
    let call: i64 = call.parse().ok()?;
    let arguments: Vec<u64> = arguments
        .split(", ")
        .map(|argument| u64::from_str_radix(argument, 16).ok())
        .collect::<Option<Vec<u64>>>()?;
    let (&[first, second, third, fourth, ..], Some(known)) =
        (&arguments[..], CALLS.iter().find(|(number, ..)| *number == call))
    else {
        return Some(None);
    };
    let word = |argument: u64| Value::I32(argument as u32 as i32);
    let fields = match call {
        0 => vec![word(first), Value::U64(third)],
        35 => vec![Value::U64(first)],
        202 => vec![Value::U64(first), word(second), word(third), Value::U64(fourth)],
        _ => vec![word(first), word(second), Value::U64(third)],
    };
    Some(Some((known.1, fields)))
}

/// `prev_comm=a b prev_pid=18 prev_prio=0 prev_state=S ==> next_comm=c next_pid=29743 next_prio=120`.
fn switch(fields: &str) -> Option<Event> {
    let (from, to) = fields.split_once(" ==> next_comm=")?;
    let (from, rest) = from.strip_prefix("prev_comm=")?.rsplit_once(" prev_pid=")?;
    let (to, next) = to.rsplit_once(" next_pid=")?;
    let state = match rest.split_once("prev_state=")?.1.chars().next()? {
        'R' => 0,
        'S' => 1,
        'D' => 2,
        'T' => 4,
        't' => 8,
        'X' => 16,
        'Z' => 32,
        'P' => 64,
        'I' => 1026,
        _ => return None,
    };
    let from = (from, number(rest)?, after(rest, "prev_prio=")?);
    Some(("sched_switch", kernel::switch(from, state, (to, number(next)?, after(next, "next_prio=")?))))
}

/// The number at the beginning.
fn number(text: &str) -> Option<i32> {
    text.split(' ').next()?.parse().ok()
}

fn after(text: &str, name: &str) -> Option<i32> {
    number(text.split_once(name)?.1)
}
