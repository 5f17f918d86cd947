//! A table beside what else the machine does, and its page.

use super::seen::dispatched;
use super::{dispatch, is_emulated, seconds, table, threads, unsuitable, write};
use crate::run::{Running, directory, punctual, run, workload};
use crate::{Outcome, Result, Test, ensure, skip};
use punctual_model::table::OnOverrun;
use rustix::process::Signal;
use std::fs;
use std::process::Command;

/// They need a processor for themselves.
pub const ALONE: &[(&str, Test)] = &[
    ("tt::noise_on_other_processors_takes_no_slot", noise::<false>),
    ("tt::reading_a_thread_within_exec_does_not_wait_for_it", within_exec),
    ("tt::the_page_shows_table_and_reality", page),
    ("tt::sched_ext::noise_on_other_processors_takes_no_slot", noise::<true>),
];

/// What disturbs the kernel beside the table: messages, timers, forks, interrupts, real-time threads.
const NOISE: [&str; 3] = [
    "hackbench -g 1 -l 1000000",
    "stress-ng -q --timer 1 --fork 1 --clock 1 -t 300",
    "cyclictest -q -t2 -p90 -i500 -D300",
];

fn noise<const EXT: bool>() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<EXT>() {
        return skip(reason);
    }
    let mut loads = Vec::new();
    for load in NOISE {
        // An emulated processor would have time for hardly anything else.
        let load = if is_emulated() { load.replace("-i500", "-i5000") } else { load.to_owned() };
        let mut words = load.split(' ');
        let name = words.next().unwrap_or_default();
        let mut found = Command::new("sh");
        found.args(["-c", &format!("command -v {name}")]);
        if run(found)?.code != Some(0) {
            return skip(format!("{name} is not installed"));
        }
        // It ends what it has started when it is ended itself. Only what the session leaves is taken: loading
        // its programs takes minutes with a fiftieth of an emulated processor.
        let mut command = Command::new("taskset");
        command.args(["-c", "0", "chrt", "-i", "0", "timeout", "300", name]).args(words);
        loads.push(Running::start(command)?);
    }
    let seen =
        dispatched::<EXT>(&["a:busy", "b:busy", "c:busy"], OnOverrun::Continue, &["--for", &seconds(3)]);
    // Where others take the session's processor, too, they may not even get the time to end.
    for load in loads {
        load.signal(Signal::TERM)?;
    }
    let seen = seen?;
    let used = seen.check()?;
    ensure!(used.len() == 3 && used.values().all(|&turns| turns > 5), "hardly a turn was used: {used:?}");
    Ok(Outcome::Completed)
}

/// The lanes read `wchan`, `stat` and `schedstat` of threads that they have just cut off, wherever that was.
fn within_exec() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<false>() {
        return skip(reason);
    }
    let mut cut = Command::new(workload("cut_exec"));
    cut.args(["--cpu", "1", "--rounds", if is_emulated() { "4000" } else { "8000" }]);
    let ended = run(cut)?;
    ended.expect_code(0)?;
    let ready = ended.stdout.trim().strip_prefix("ready ").and_then(|count| count.parse::<u32>().ok());
    ensure!(ready > Some(1_000), "it was hardly ever cut off: {}", ended.all());
    Ok(Outcome::Completed)
}

/// The page of a table with a recording of its dispatcher.
fn page() -> Result<Outcome> {
    if let Some(reason) = unsuitable::<false>() {
        return skip(reason);
    }
    let folder = directory()?;
    let table = write(table(&["a", "b"], OnOverrun::Continue), folder.path())?;
    let in_folder = |name: &str| folder.path().join(name);
    let (log, recording, page) = (in_folder("log"), in_folder("recording"), in_folder("page.html"));
    let mut tt = dispatch::<false>(&table);
    tt.args(["--for", &seconds(1), "--record"])
        .arg(&recording)
        .arg("--")
        .args(threads(&["a:busy", "b:busy"], &log));
    run(tt)?.expect_code(0)?;
    let mut report = punctual(["report", &table]);
    report.arg(&recording).arg("-o").arg(&page);
    run(report)?.expect_code(0)?;
    let text = fs::read_to_string(&page)?;
    for part in ["Table against reality", "Dispatched by user space", "How late turns began", "as given"] {
        ensure!(text.contains(part), "the page has no {part:?}");
    }
    // Not without the table.
    let mut alone = punctual(["report"]);
    alone.arg(&recording).arg("-o").arg(in_folder("alone.html"));
    let ended = run(alone)?;
    ended.expect_code(2)?;
    ensure!(ended.stderr.contains("name the table that was dispatched, too"), "{}", ended.all());
    Ok(Outcome::Completed)
}
