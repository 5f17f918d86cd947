//! From the fields of a line to a record of its tracepoint, and to who runs.

use super::super::account::{self, Known};
use super::super::notes::Notes;
use super::super::tracepoints::layout::Kind::{Arguments, Flags, Name, Number, Path, State};
use super::super::tracepoints::layout::{self, COMMON, FLAGS, Field, IN_INTERRUPT, Kind};
use super::super::tracepoints::{Format, Seen, Threads, kinds};
use super::line::Event;
use punctual_model::Instant;
use punctual_trace::Record;
use punctual_trace::account::Account;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// All tracepoints, and what was not read.
pub struct Events {
    known: FxHashMap<String, (Format, &'static [Field])>,
    /// Events of other kinds, by name.
    others: FxHashMap<String, u64>,
    /// Events whose fields are not understood, by name.
    unreadable: BTreeMap<String, u64>,
    record: Vec<u8>,
}

impl Default for Events {
    fn default() -> Events {
        let known = layout::known().into_iter().map(|it| (it.0.name.clone(), it));
        Events {
            known: known.collect(),
            others: FxHashMap::default(),
            unreadable: BTreeMap::new(),
            record: Vec::new(),
        }
    }
}

impl Events {
    /// Takes an event at this time.
    pub fn take(
        &mut self,
        event: &Event<'_>,
        at: Instant,
        threads: &mut Threads,
        out: &mut dyn FnMut(Record),
    ) {
        const MOST_OTHERS: usize = 10_000;
        let Some((format, fields)) = self.known.get(event.name) else {
            if self.others.len() < MOST_OTHERS || self.others.contains_key(event.name) {
                *self.others.entry(event.name.to_owned()).or_default() += 1;
            }
            return;
        };
        format.count();
        self.record.clear();
        self.record.resize(COMMON, 0);
        // Without flags, the thread that ran is not known to be the waker.
        self.record[FLAGS] = if event.is_in_interrupt == Some(false) { 0 } else { IN_INTERRUPT };
        // Newer kernels leave it out: a thread gives itself its name.
        let own = (event.name == layout::RENAMED && !event.fields.starts_with("pid="))
            .then(|| format!("pid={} {}", event.tid, event.fields));
        let text = own.as_deref().unwrap_or(event.fields);
        if !encode(event.name, text, fields, &mut self.record) {
            format.count_unread();
            *self.unreadable.entry(event.name.to_owned()).or_default() += 1;
            return;
        }
        let Event { cpu, pid, tid, .. } = *event;
        let seen = Seen { at, cpu, pid, tid, format, bytes: &self.record };
        layout::take(threads, &seen, out);
    }

    /// What there was; lines that are not understood are noted.
    pub fn account(
        &self,
        notes: &mut Notes,
        all: &BTreeSet<String>,
        known: Known,
        command: &'static str,
    ) -> Account {
        for (name, count) in &self.unreadable {
            notes.say(format!("lines of {name} whose fields are not understood and are left out: {count}"));
        }
        let others = self.others.iter().map(|(name, count)| (name.as_str(), *count, None));
        let kinds = kinds(self.known.values().map(|(format, _)| format)).chain(others);
        account::of_kernel(kinds, &|name| all.contains(name), known, command)
    }
}

/// Puts the fields into a record; false if one is not there.
fn encode(name: &str, text: &str, fields: &[Field], record: &mut Vec<u8>) -> bool {
    let short = match name {
        "sys_enter" | "sys_exit" => return call(text, name == "sys_enter", record),
        "sched_switch" => short_switch,
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => short_wake_up,
        _ => return long(text, fields, record),
    };
    // A name may look like a field.
    if text.contains("pid=") && long(text, fields, record) {
        return true;
    }
    record.truncate(COMMON);
    short(text, record)
}

/// The same of `field=value`.
fn long(text: &str, fields: &[Field], record: &mut Vec<u8>) -> bool {
    let mut rest = text;
    for (place, (field, kind)) in fields.iter().enumerate() {
        let Some(at) = field_at(rest, field) else { return false };
        let found = &rest[at + field.len()..];
        // A name may have spaces: it ends where the next field begins.
        let next = fields.get(place + 1).map_or(BEHIND_NAMES, |(next, _)| next);
        let end = match kind {
            Name | Path => end_of_name(found, next, *kind),
            _ => found.find(' '),
        };
        let (value, after) = found.split_at(end.unwrap_or(found.len()));
        rest = after;
        let is_thread = field.ends_with("pid=");
        if is_thread && value.parse::<i32>().is_err() || !put(*kind, value, record) {
            return false;
        }
    }
    true
}

/// What follows a name that is the last field which is read.
const BEHIND_NAMES: &str = "oom_score_adj=";

/// Where a field begins: at the beginning, or behind a space.
fn field_at(text: &str, field: &str) -> Option<usize> {
    fields_at(text, field).next()
}

/// All places where it may begin.
fn fields_at<'t>(text: &'t str, field: &'t str) -> impl Iterator<Item = usize> + 't {
    let places = text.match_indices(field).map(|(at, _)| at);
    places.filter(|at| *at == 0 || text.as_bytes()[at - 1] == b' ')
}

/// Where a name ends, in which there may be something that looks like the next field: names of threads have
/// at most 15 letters.
fn end_of_name(text: &str, next: &str, kind: Kind) -> Option<usize> {
    const LONGEST: usize = 15;
    let ends = || fields_at(text, next).filter_map(|at| at.checked_sub(1));
    let last = ends().filter(|end| kind == Path || text[..*end].chars().count() <= LONGEST).last();
    last.or_else(|| ends().next())
}

fn put(kind: Kind, value: &str, record: &mut Vec<u8>) -> bool {
    let number = match kind {
        Name | Path => {
            record.extend(layout::name(kind, value.as_bytes()));
            return true;
        }
        State => Some(state(value)),
        Flags => u64::from_str_radix(value.trim_start_matches("0x"), 16).ok().map(|flags| flags as i64),
        Number | Arguments => value.parse::<i64>().ok(),
    };
    number.iter().for_each(|number| record.extend(number.to_le_bytes()));
    number.is_some()
}

/// The state of a thread that leaves its processor, as the kernel's number.
fn state(letters: &str) -> i64 {
    if let Ok(number) = letters.parse() {
        return number;
    }
    let bit = |letter: char| match letter {
        'S' => 0x1,
        'D' => 0x2,
        'T' => 0x4,
        't' => 0x8,
        'X' | 'x' => 0x10,
        'Z' => 0x20,
        'P' => 0x40,
        'I' => 0x80,
        '+' => 0x100,
        _ => 0,
    };
    letters.chars().map(bit).fold(0, |all, bit| all | bit)
}

/// The value of a field.
fn value<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    text[field_at(text, field)? + field.len()..].split_whitespace().next()
}

/// `id=230 args=ARRAY[01, 00, …]`, or `id=230 ret=0`: as `trace-cmd report -R` has it.
fn raw_call(text: &str, enters: bool, record: &mut Vec<u8>) -> bool {
    let both = [value(text, "id="), value(text, "ret=")];
    let mut put_number = |number: Option<&str>| number.is_some_and(|number| put(Number, number, record));
    if !enters {
        return both.into_iter().all(put_number);
    }
    let arguments = text.split_once("args=ARRAY[").and_then(|(_, rest)| rest.strip_suffix(']'));
    let bytes = arguments.and_then(|all| all.split(", ").map(|it| u8::from_str_radix(it, 16).ok()).collect());
    let bytes: Option<Vec<u8>> = bytes;
    let is_whole = put_number(both[0]) && bytes.as_ref().is_some_and(|bytes| bytes.len() == Arguments.size());
    record.extend(bytes.into_iter().flatten());
    is_whole
}

/// `NR 230 (1, 1, 7ffc0000, 0, 0, 0)`, or `NR 230 = 0`.
fn call(text: &str, enters: bool, record: &mut Vec<u8>) -> bool {
    if text.starts_with("id=") {
        return raw_call(text, enters, record);
    }
    let Some(rest) = text.strip_prefix("NR ") else { return false };
    let Some((number, rest)) = rest.split_once(' ') else { return false };
    if !put(Number, number, record) {
        return false;
    }
    if !enters {
        return rest.strip_prefix("= ").is_some_and(|result| put(Number, result.trim(), record));
    }
    let Some(arguments) = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let mut arguments = arguments.split(", ").map(|it| u64::from_str_radix(it, 16).ok());
    for _ in 0..6 {
        let Some(argument) = arguments.next().unwrap_or(Some(0)) else { return false };
        record.extend(argument.to_le_bytes());
    }
    true
}

/// `name:18 [0] S ==> other:6315 [120]`
fn short_switch(text: &str, record: &mut Vec<u8>) -> bool {
    // A name may have an arrow, too.
    text.match_indices(ARROW).any(|(at, _)| {
        record.truncate(COMMON);
        let left = short_thread(&text[..at], record);
        let is_left = left.is_some_and(|left| put(State, left.trim(), record));
        is_left && short_thread(&text[at + ARROW.len()..], record).is_some()
    })
}

/// Between who leaves and who comes.
const ARROW: &str = " ==> ";

/// `name:18 [0] CPU:001`
fn short_wake_up(text: &str, record: &mut Vec<u8>) -> bool {
    short_thread(text, record).is_some()
}

/// `name:18 [0]`; and what follows.
fn short_thread<'a>(text: &'a str, record: &mut Vec<u8>) -> Option<&'a str> {
    let (who, rest) = text.rsplit_once(" [")?;
    let (name, tid) = who.rsplit_once(':').filter(|(_, tid)| tid.parse::<i32>().is_ok())?;
    let (priority, rest) = rest.split_once(']')?;
    (put(Name, name, record) && put(Number, tid, record) && put(Number, priority, record)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(name: &str, text: &str) -> Option<(Format, Vec<u8>)> {
        let mut events = Events::default();
        let (format, fields) = events.known.remove(name)?;
        let mut record = vec![0; COMMON];
        encode(name, text, fields, &mut record).then_some((format, record))
    }

    #[test]
    fn switches_are_read_in_both_forms() {
        let long = "prev_comm=my task prev_pid=7 prev_prio=9 prev_state=R+ ==> next_comm=b=c next_pid=8 \
                    next_prio=120";
        let raw = "prev_comm=my task prev_pid=7 prev_prio=9 prev_state=256 next_comm=b=c next_pid=8 \
                   next_prio=120";
        for text in [long, raw] {
            let (format, record) = fields("sched_switch", text).expect("a switch");
            let number = |field| format.number(field, &record);
            assert_eq!(format.text("prev_comm", &record).as_deref(), Some("my task"));
            assert_eq!(format.text("next_comm", &record).as_deref(), Some("b=c"));
            assert_eq!(["prev_pid", "prev_prio", "prev_state"].map(number), [7, 9, 0x100].map(Some));
            assert_eq!(["next_pid", "next_prio"].map(number), [8, 120].map(Some));
        }
        for (name, text) in [
            ("p ==> q", "p ==> q:18 [-1] D ==> c d:6 [120]"),
            ("ab:12 [120] R", "ab:12 [120] R:18 [-1] D ==> c d:6 [120]"),
            (
                "x prev_pid=1",
                "prev_comm=x prev_pid=1 prev_pid=18 prev_prio=-1 prev_state=D ==> next_comm=c d \
                              next_pid=6 next_prio=120",
            ),
        ] {
            let (format, record) = fields("sched_switch", text).expect("a switch");
            assert_eq!(format.text("prev_comm", &record).as_deref(), Some(name));
            assert_eq!(format.text("next_comm", &record).as_deref(), Some("c d"));
            let numbers = ["prev_pid", "next_pid"].map(|field| format.number(field, &record));
            assert_eq!(numbers, [Some(18), Some(6)], "{text}");
        }
        let large = "prev_comm=a prev_pid=99999999999 prev_prio=9 prev_state=S ==> next_comm=b next_pid=8 \
                     next_prio=120";
        assert!(fields("sched_switch", large).is_none());
        assert!(fields("sched_switch", "a:99999999999 [9] S ==> b:8 [120]").is_none());
        let (format, record) = fields("sched_switch", "a:b:18 [-1] D ==> c d:6 [120]").expect("a switch");
        let number = |field| format.number(field, &record);
        assert_eq!(format.text("prev_comm", &record).as_deref(), Some("a:b"));
        assert_eq!(["prev_pid", "prev_prio", "prev_state", "next_pid"].map(number), [18, -1, 2, 6].map(Some));
    }

    #[test]
    fn names_may_have_spaces() {
        for (text, name) in [
            ("pid=7 oldcomm=a newcomm=b c oom_score_adj=0", "b c"),
            ("pid=7 oldcomm=a b newcomm=c d oom_score_adj=-1", "c d"),
            ("pid=7 oldcomm=a newcomm=b c", "b c"),
        ] {
            let (format, record) = fields(layout::RENAMED, text).expect("a name");
            assert_eq!(format.text("newcomm", &record).as_deref(), Some(name), "{text}");
        }
        let (format, record) = fields("sched_waking", "comm=comm=z pid=1 pid=77 prio=9").expect("a wake-up");
        assert_eq!(format.number("pid", &record), Some(77));
        let short = "comm=z pid=1:77 [9] CPU:000";
        let (format, record) = fields("sched_wakeup", short).expect("a wake-up");
        assert_eq!(format.number("pid", &record), Some(77));
        assert_eq!(format.text("comm", &record).as_deref(), Some("comm=z pid=1"));
        let exec = "filename=/opt/my app/a pid=1 pid=7 old_pid=7";
        let (format, record) = fields("sched_process_exec", exec).expect("a program");
        assert_eq!(
            (format.number("pid", &record), format.text("filename", &record).as_deref()),
            (Some(7), Some("a pid=1"))
        );
    }

    #[test]
    fn calls_and_their_results_are_read() {
        let (format, record) = fields("sys_enter", "NR 230 (1, 1, 7ffc00000000, 0, 0, 5)").expect("a call");
        assert_eq!(format.number("id", &record), Some(230));
        let arguments: Vec<u64> =
            (0..6).map(|index| format.element("args", index, &record).unwrap_or(0)).collect();
        assert_eq!(arguments, [1, 1, 0x7ffc_0000_0000, 0, 0, 5]);
        for result in ["NR 230 = -516", "id=230 ret=-516"] {
            let (format, record) = fields("sys_exit", result).expect("a result");
            assert_eq!(format.number("ret", &record), Some(-516));
        }
        let bytes = [["01, 00, 00, 00, 00, 00, 00, 80"; 5].join(", "), ["ff"; 8].join(", ")].join(", ");
        let (format, record) = fields("sys_enter", &format!("id=230 args=ARRAY[{bytes}]")).expect("a call");
        let argument = |index| format.element("args", index, &record);
        assert_eq!((argument(0), argument(5)), (Some(0x8000_0000_0000_0001), Some(u64::MAX)));
        for broken in
            ["", "NR", "NR x (1)", "NR 1 (g)", "NR 1 = ", "id=1", "id=1 args=ARRAY[01]", "id=1 args=ARRAY[x"]
        {
            assert!(
                fields("sys_enter", broken).is_none() && fields("sys_exit", broken).is_none(),
                "{broken}"
            );
        }
    }
}
