//! Records of tracepoints in a layout of our own, for sources that have fields one by one: lines of text and
//! messages of Perfetto.

use super::format::{Format, formats};
use super::threads::{Seen, Threads};
use punctual_trace::Record;

/// What a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Number,
    /// A number that texts have in base 16.
    Flags,
    /// The state of a thread: a number, or letters in texts.
    State,
    Name,
    /// A path, of which the record has the last part.
    Path,
    /// Six arguments of a call.
    Arguments,
}

use Kind::{Arguments, Flags, Name, Number, Path, State};

impl Kind {
    /// Bytes in a record.
    pub fn size(self) -> usize {
        match self {
            Number | Flags | State => 8,
            Name | Path => 32,
            Arguments => 48,
        }
    }
}

/// A field's name with `=` behind it, as texts have it, and its kind.
pub type Field = (&'static str, Kind);

/// Tracepoints that are read, with the fields of each as they stand in texts, in order.
pub const KNOWN: &[(&str, &[Field])] = &[
    (
        "sched_switch",
        &[
            ("prev_comm=", Name),
            ("prev_pid=", Number),
            ("prev_prio=", Number),
            ("prev_state=", State),
            ("next_comm=", Name),
            ("next_pid=", Number),
            ("next_prio=", Number),
        ],
    ),
    ("sched_waking", &[("comm=", Name), ("pid=", Number), ("prio=", Number)]),
    ("sched_wakeup", &[("comm=", Name), ("pid=", Number), ("prio=", Number)]),
    ("sched_wakeup_new", &[("comm=", Name), ("pid=", Number), ("prio=", Number)]),
    ("sched_migrate_task", &[("comm=", Name), ("pid=", Number)]),
    ("sched_stat_runtime", &[("comm=", Name), ("pid=", Number), ("runtime=", Number)]),
    ("sched_pi_setprio", &[("comm=", Name), ("pid=", Number), ("oldprio=", Number), ("newprio=", Number)]),
    ("sched_process_exit", &[("comm=", Name), ("pid=", Number)]),
    ("sched_process_exec", &[("filename=", Path), ("pid=", Number), ("old_pid=", Number)]),
    (BORN, &[("pid=", Number), ("comm=", Name), ("clone_flags=", Flags)]),
    (RENAMED, &[("pid=", Number), ("oldcomm=", Name), ("newcomm=", Name)]),
    ("sys_enter", &[("id=", Number), ("args=", Arguments)]),
    ("sys_exit", &[("id=", Number), ("ret=", Number)]),
];

/// The creation of a thread, with its flags.
pub const BORN: &str = "task_newtask";
/// A thread gets another name.
pub const RENAMED: &str = "task_rename";

/// Bytes before the first field; the flags are among them.
pub const COMMON: usize = 8;
/// Where the flags are.
pub const FLAGS: usize = 2;
/// As the kernel has them: in an interrupt.
pub const IN_INTERRUPT: u8 = 0x08;

/// The formats of [`KNOWN`], in its order.
pub fn known() -> Vec<(Format, &'static [Field])> {
    let mut found = formats(description().as_bytes());
    let numbered = KNOWN.iter().zip(1_u16..);
    numbered.filter_map(|((_, fields), id)| Some((found.remove(&id)?, *fields))).collect()
}

/// The tracepoints as the kernel describes them, with fields as they are laid out here.
fn description() -> String {
    let mut text = String::new();
    for ((name, fields), id) in KNOWN.iter().zip(1..) {
        text += &format!("name: {name}\nID: {id}\nformat:\n");
        text += &format!("\tfield:unsigned char common_flags;\toffset:{FLAGS};\tsize:1;\tsigned:0;\n");
        let mut offset = COMMON;
        for (field, kind) in *fields {
            let size = kind.size();
            let field = field.trim_end_matches('=');
            text += &format!("\tfield:long {field};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
            offset += size;
        }
        text += "print fmt: \"\"\n";
    }
    text
}

/// A name or the last part of a path as a record has it, with zeros behind it.
pub fn name(kind: Kind, name: &[u8]) -> [u8; 32] {
    let name = match kind {
        Path => file_name(name),
        _ => name,
    };
    let mut bytes = [0; 32];
    let length = name.len().min(31);
    bytes[..length].copy_from_slice(&name[..length]);
    bytes
}

/// The last part of a path, as the kernel cuts it.
fn file_name(path: &[u8]) -> &[u8] {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    &name[..name.len().min(15)]
}

/// Takes an event whose record is laid out so.
pub fn take(threads: &mut Threads, seen: &Seen, out: &mut dyn FnMut(Record)) {
    let Some(tid) = number(seen, "pid").filter(|_| is_of_names(seen)) else {
        return threads.sample(seen, out);
    };
    match seen.format.name.as_str() {
        BORN => born(threads, seen, tid),
        RENAMED => rename(threads, seen, ("newcomm", tid), out),
        _ => {
            rename(threads, seen, ("filename", tid), out);
            threads.sample(seen, out);
        }
    }
}

/// Whether a thread gets its name or its process by it.
fn is_of_names(seen: &Seen) -> bool {
    matches!(seen.format.name.as_str(), BORN | RENAMED | "sched_process_exec")
}

fn born(threads: &mut Threads, seen: &Seen, child: i32) {
    const CLONE_THREAD: i64 = 0x1_0000;
    let flags = seen.format.number("clone_flags", seen.bytes);
    let is_thread = flags.is_some_and(|flags| flags & CLONE_THREAD != 0);
    // A creator of before the recording is taken for its process, as it is where it is named.
    let of = |tid: i32| threads.process(tid).unwrap_or(tid);
    let process = if is_thread && seen.tid > 0 { of(seen.tid) } else { child };
    threads.born(process, child);
}

fn rename(threads: &mut Threads, seen: &Seen, (field, tid): (&str, i32), out: &mut dyn FnMut(Record)) {
    let name = seen.format.text(field, seen.bytes).filter(|name| !name.is_empty());
    let executed = (field == "filename").then_some(seen.at);
    if let Some(name) = name {
        let process = threads.process(tid).unwrap_or(tid);
        threads.name(process, tid, &name, executed, out);
    }
}

fn number(seen: &Seen, field: &str) -> Option<i32> {
    seen.format.number(field, seen.bytes).and_then(|number| i32::try_from(number).ok())
}
