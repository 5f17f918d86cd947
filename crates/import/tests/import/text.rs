//! Texts of ftrace, trace-cmd and perf: what they say of themselves, and what contradicts them.

use super::{activations, folder, import_with};
use punctual_import::{Machine, Options};
use punctual_model::Call;
use punctual_trace::Activation;

/// A thread that sleeps in a call of this number each 10 ms.
fn sleeping(number: u32, jobs: u64) -> String {
    let mut text = String::new();
    for job in 1..=jobs {
        let mut line = |us: u64, who: &str, event: &str| {
            let us = job * 10_000 + us;
            text += &format!("  {who} [001] {}.{:06}: {event}\n", us / 1_000_000, us % 1_000_000);
        };
        line(
            0,
            "<idle>-0",
            "sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> \
                             next_comm=control next_pid=40 next_prio=39",
        );
        line(5, "control-40", &format!("sys_exit: NR {number} = 0"));
        line(500, "control-40", &format!("sys_enter: NR {number} (1, 1, 7ffc0000, 0, 0, 0)"));
        line(
            501,
            "control-40",
            "sched_switch: prev_comm=control prev_pid=40 prev_prio=39 prev_state=S ==> \
                                 next_comm=swapper/1 next_pid=0 next_prio=120",
        );
        line(9_990, "<idle>-0", "sched_waking: comm=control pid=40 prio=39 target_cpu=001");
    }
    text
}

fn imported(text: &str, machine: Machine) -> (Vec<Activation>, Vec<String>) {
    let folder = folder(&[("trace.txt", text)]);
    let options = Options { machine: Some(machine), ..Options::default() };
    let (records, imported) = import_with(&folder.path().join("trace.txt"), &options).expect("imported");
    (activations(&records), imported.notes)
}

/// clock_nanosleep(2) is 230 on x86-64 and 115 on Arm, where 230 locks memory.
#[test]
fn calls_of_another_machine_are_noted() {
    let is_said = |notes: &[String]| notes.iter().any(|note| note.contains("--machine names the machine"));
    for (number, machine, other) in [(230, "x86_64", "aarch64"), (115, "aarch64", "x86_64")] {
        let [machine, other] = [machine, other].map(|name| Machine::from_name(name).expect("known"));
        let (seen, notes) = imported(&sleeping(number, 20), machine);
        assert!(seen.iter().any(|it| it.separator.call == Call::ClockNanosleep));
        assert!(!is_said(&notes), "{notes:?}");
        let (_, notes) = imported(&sleeping(number, 20), other);
        assert!(is_said(&notes), "{notes:?}");
        let (_, notes) = imported(&sleeping(number, 5), other);
        assert!(!is_said(&notes), "few sleeps prove nothing: {notes:?}");
    }
}

fn refused(text: &str) -> String {
    let folder = folder(&[("trace.txt", text)]);
    import_with(&folder.path().join("trace.txt"), &Options::default()).expect_err("refused").to_string()
}

/// What `cat` or `>>` makes of two texts.
#[test]
fn texts_one_behind_the_other_are_refused() {
    let machine = Machine::from_name("x86_64").expect("known");
    let (one, short) = (sleeping(230, 20), sleeping(230, 1));
    for (text, line) in [(one.repeat(2), 101), (sleeping(230, 2_000) + &short, 10_001)] {
        let error = refused(&text);
        assert!(
            error.contains(&format!("line {line} is ")) && error.contains("import each alone"),
            "{error}"
        );
    }
    let later = sleeping(230, 40).lines().skip(100).map(|line| format!("{line}\n")).collect::<String>();
    for header in ["cpus=2", "# tracer: nop", "# captured on    : Mon Nov 30 15:30:00 2026"] {
        let error = refused(&format!("{header}\n{one}{header}\n{later}"));
        assert!(error.contains("line 102 begins another text: import each alone"), "{error}");
        let (seen, _) = imported(&format!("{header}\n{one}{later}"), machine);
        assert_eq!(seen, imported(&sleeping(230, 40), machine).0);
    }
    // Without a header, a long pause is all that there is to see.
    let (_, notes) = imported(&(one.clone() + &later.replace(" 0.", " 9.")), machine);
    let said = "before line 101: if another text was appended there";
    assert!(notes.iter().any(|note| note.contains(said)), "{notes:?}");
    let (_, notes) = imported(&(one + &later), machine);
    assert!(!notes.iter().any(|note| note.contains("nothing happened")), "{notes:?}");
}

#[test]
fn lines_may_end_in_any_way() {
    let machine = Machine::from_name("x86_64").expect("known");
    let text = sleeping(230, 20);
    let (expected, notes) = imported(&text, machine);
    for end in ["\r\n", "\r"] {
        assert_eq!(imported(&text.replace('\n', end), machine), (expected.clone(), notes.clone()));
    }
    let said = "its last line has no end: the text may be cut off there";
    let (_, of_cut) = imported(text.trim_end(), machine);
    assert!(of_cut.contains(&said.to_owned()) && !notes.contains(&said.to_owned()), "{of_cut:?}");
}

#[test]
fn lines_that_cannot_be_read_are_counted() {
    let machine = Machine::from_name("x86_64").expect("known");
    let (text, line) = (sleeping(230, 20), "[001] 0.209999: sched_waking: comm=a pid=4 prio=1");
    let (expected, _) = imported(&text, machine);
    let long = format!("  a-4 {line} {}\n", "x".repeat(200_000));
    let (seen, notes) = imported(&format!("{text}  a-99999999999 {line}\n{long}"), machine);
    assert_eq!(seen, expected);
    let said = "2 × line of an event that is left out";
    assert!(notes.iter().any(|note| note.starts_with(said)), "{notes:?}");
    let error = refused(&text.replace("0.", "99999999999."));
    assert!(error.contains("sched_switch, without which nobody knows who ran; lines"), "{error}");
    let (_, notes) = imported(&(text + "  a-4 " + &line.replace("pid=4", "pid=99999999999")), machine);
    let said = "lines of sched_waking whose fields are not understood and are left out: 1";
    assert!(notes.iter().any(|note| note == said), "{notes:?}");
}

/// A text without the header that counts what was written over may have lost its beginning.
#[test]
fn processors_that_begin_apart_are_noted() {
    let machine = Machine::from_name("x86_64").expect("known");
    let waking = |cpu: u32, ms: u64| {
        let at = format!("{}.{:03}000", ms / 1_000, ms % 1_000);
        format!("  <idle>-0 [{cpu:03}] {at}: sched_waking: comm=control pid=40 prio=39 target_cpu=001\n")
    };
    let is_said = |text: &str| {
        imported(text, machine).1.iter().any(|note| note.starts_with("its processors begin 30 ms apart"))
    };
    let whole = "# entries-in-buffer/entries-written: 7/7   #P:2\n";
    let near = waking(0, 9) + &sleeping(230, 3);
    let apart = sleeping(230, 3) + &waking(0, 40);
    assert!(is_said(&apart), "{:?}", imported(&apart, machine).1);
    assert!(!is_said(&near) && !is_said(&(whole.to_owned() + &apart)));
}

/// `trace-cmd record -B`: what two buffers have counts once, whichever the lines name.
#[test]
fn buffers_of_trace_cmd_are_read_together() {
    let machine = Machine::from_name("x86_64").expect("known");
    let one = sleeping(230, 20);
    let (alone, _) = imported(&one, machine);
    let line = |line: &str| format!("      {line}\nmore: {line}\n");
    let both: String = one.lines().map(line).collect();
    let (seen, notes) = imported(&both, machine);
    assert_eq!(seen, alone);
    let note = "its buffers are read together (the main one, more); what two of them have counts once";
    assert!(notes.iter().any(|it| it == note), "{notes:?}");
    // Switches in one, calls in the other.
    let is_of_more = |line: &str| line.contains(": sys_");
    let line = |line| format!("{}{line}\n", if is_of_more(line) { "more: " } else { "      " });
    let split: String = one.lines().map(line).collect();
    assert_eq!(imported(&split, machine).0, alone);
    let (_, notes) = imported(&(split + "more: CPU:1 [7 EVENTS DROPPED]\n"), machine);
    assert!(notes.iter().any(|it| it.contains("events lost: at least 7")), "{notes:?}");
}
