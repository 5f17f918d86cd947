//! `punctual latency` on kernels that do not show what a bound is made of: every figure against what the
//! workload and the kernel themselves say.

use crate::run::{Ended, directory, punctual, run, workload};
use crate::tool::tool;
use crate::{Outcome, Result, Test, ensure, fail, skip};
use punctual_model::latency::{InterruptKind, Measured, Processor, RanKind};
use punctual_model::{SchedulingLatency, TimingModel};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub const ALL: &[(&str, Test)] = &[
    ("latency::without_the_tracepoints_there_is_no_bound", no_bound),
    ("latency::a_thread_kept_waiting_is_split", kept_waiting),
    ("latency::interrupts_are_those_that_the_kernel_counted", interrupts),
    ("latency::a_recording_gives_the_same", recording),
    ("latency::a_slow_wakeup_ends_at_the_threshold", threshold),
];

const ROUNDS: usize = 60;

/// Why the tests here do not apply; `None` where they do.
fn has_bound() -> Option<&'static str> {
    let folders = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let shows = folders.iter().any(|folder| Path::new(folder).join("events/preemptirq").is_dir());
    shows.then_some("this kernel has the tracepoints of the bound")
}

/// What was measured while `command` ran.
fn measured(options: &[&str], command: &[&str]) -> Result<(SchedulingLatency, Ended)> {
    let directory = directory()?;
    let file = directory.path().join("x.timing.json");
    let mut latency = punctual(["latency", "-q", "-o"]);
    latency.arg(&file).args(options).arg("--").args(command);
    let ended = run(latency)?;
    ended.expect_code(0)?;
    let model = TimingModel::from_json(&fs::read_to_string(&file)?);
    let model = model.or_else(|error| fail(format!("the timing model is not valid: {error}")))?;
    model.latency.map_or_else(|| fail("there is no section latency"), |latency| Ok((latency, ended)))
}

fn processor(latency: &SchedulingLatency, cpu: u32) -> Result<&Processor> {
    let found = latency.processors.iter().find(|processor| processor.cpu == cpu);
    found.map_or_else(|| fail(format!("nothing of processor {cpu}")), Ok)
}

fn thread(processor: &Processor, tid: u64) -> Result<&Measured> {
    let is_it = |it: &&Measured| it.thread.as_ref().is_some_and(|thread| u64::from(thread.id.tid) == tid);
    processor.measured.iter().find(is_it).map_or_else(|| fail(format!("no latencies of thread {tid}")), Ok)
}

fn no_bound() -> Result<Outcome> {
    if let Some(reason) = has_bound() {
        return skip(reason);
    }
    let mut latency = punctual(["latency", "--json", "--for", "1"]);
    latency.args(["--measure", "1ms"]);
    let ended = run(latency)?;
    ended.expect_code(0)?;
    let document: Value = serde_json::from_str(&ended.stdout)?;
    for processor in document["processors"].as_array().into_iter().flatten() {
        ensure!(processor["bound_ns"].is_null(), "a bound without its variables: {processor}");
        let reason = processor["no_bound"].as_str().unwrap_or_default();
        ensure!(reason.contains("CONFIG_PREEMPTIRQ_TRACEPOINTS"), "no kernel option is named: {processor}");
        ensure!(processor["measured_max_ns"].as_u64() > Some(0), "nothing was measured: {processor}");
        let measuring = &processor["measured"][0];
        ensure!(measuring["thread"].is_null(), "no measuring thread: {processor}");
        ensure!(measuring["from_due_max_ns"].as_u64() > Some(0), "nothing from due: {processor}");
    }
    ensure!(ended.stderr.contains("without a bound"), "the reason is not said: {}", ended.all());
    Ok(Outcome::Completed)
}

/// As in the kernel's program (`RAN_MOST`).
const MOST_RAN: usize = 16;

/// The thread that the workload keeps waiting: when it was woken, for how long, and by whom, is known.
fn kept_waiting() -> Result<Outcome> {
    if let Some(reason) = has_bound() {
        return skip(reason);
    }
    let rounds = ROUNDS.to_string();
    let command = [&workload("kept_waiting"), "--rounds", &rounds, "--busy-us", "2000", "--cpu", "0"];
    let (latency, ended) = measured(&["--measure", "off"], &command)?;
    let report = ended.report()?;
    let list = |name: &str| -> Vec<u64> {
        report[name].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    };
    let (woken, left, ran) = (list("woken_ns"), list("left_ns"), list("ran_ns"));
    ensure!(woken.len() == ROUNDS && left.len() == ROUNDS && ran.len() == ROUNDS, "{report}");
    // Threads that set their own priority, as these do, are no skipped events. Elsewhere some may be.
    let skipped = processor(&latency, 0)?.skipped_events;
    ensure!(
        skipped == 0 || !Path::new("/lab/job").exists(),
        "{skipped} events were skipped: {}",
        ended.all()
    );
    let waiter = thread(processor(&latency, 0)?, report["waiter"].as_u64().unwrap_or(0))?;
    ensure!(
        waiter.wakeups + waiter.unmeasured == ROUNDS as u64,
        "{} wake-ups and {} unmeasured of {ROUNDS}",
        waiter.wakeups,
        waiter.unmeasured
    );
    let longest = woken.iter().zip(&ran).map(|(from, until)| until - from).max().unwrap_or(0);
    ensure!(waiter.max_ns.ns() <= longest, "latency {} of at most {longest} ns", waiter.max_ns);
    ensure!(waiter.max_ns.ns() >= 1_900_000, "it was kept waiting for 2 ms, not {}", waiter.max_ns);
    ensure!(waiter.bounded_max_ns.is_none(), "another thread delayed every wake-up: {waiter:?}");
    let mut split = 0;
    for wakeup in &waiter.worst {
        let at = wakeup.at_ns.ns();
        let Some(round) = (0..ROUNDS).find(|&round| (woken[round]..=left[round]).contains(&at)) else {
            return fail(format!("no round had a wake-up at {at}: {report}"));
        };
        let (waited, blocked) = (ran[round] - at, left[round] - at);
        let latency = wakeup.latency_ns.ns();
        ensure!((blocked..=waited).contains(&latency), "latency {latency} of {blocked} to {waited}");
        let Some(parts) = wakeup.split else { continue };
        split += 1;
        let preferred = parts.threads_ns + parts.interrupts_ns;
        ensure!(preferred.ns() >= blocked, "{parts:?}, but the blocker ran for {blocked} ns");
        let blocker = wakeup.ran.iter().find(|it| it.kind == RanKind::Thread && it.name == "blocker");
        // Of more, the kernel's program has room for the latest only.
        let is_cut = wakeup.ran.len() >= MOST_RAN;
        ensure!(blocker.is_some() || is_cut, "what ran does not name the blocker: {wakeup:?}");
    }
    ensure!(split > 0, "no wake-up has its parts: {waiter:?}");
    let timers = processor(&latency, 0)?.timers.as_ref().map_or(0, |timers| timers.expired);
    ensure!(timers >= ROUNDS as u64 * 9 / 10, "{timers} timers, but the blocker slept {ROUNDS} times");
    Ok(Outcome::Completed)
}

/// Counts of `/proc/interrupts` and `/proc/softirqs`, by row and processor.
fn counts(text: &str) -> BTreeMap<(String, usize), u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let Some((row, rest)) = line.split_once(':') else { continue };
        let numbers = rest.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        counts.extend(numbers.enumerate().map(|(cpu, number)| ((row.trim().to_owned(), cpu), number)));
    }
    counts
}

fn kernel_counts() -> Result<String> {
    Ok(fs::read_to_string("/proc/interrupts")? + &fs::read_to_string("/proc/softirqs")?)
}

/// Never more than the kernel counted around the measurement; and never fewer than it counted inside, unless
/// the figure says so.
fn interrupts() -> Result<Outcome> {
    if let Some(reason) = has_bound() {
        return skip(reason);
    }
    let before = counts(&kernel_counts()?);
    let script = format!(
        "cat /proc/interrupts /proc/softirqs; echo ----; {} --rounds 40 > /dev/null; \
         cat /proc/interrupts /proc/softirqs",
        workload("kept_waiting")
    );
    let (latency, ended) = measured(&[], &["sh", "-c", &script])?;
    let after = counts(&kernel_counts()?);
    let (begin, end) = ended.stdout.split_once("----").unwrap_or_default();
    let (begin, end) = (counts(begin), counts(end));
    let mut checked = 0;
    for processor in &latency.processors {
        let mut rows: BTreeMap<String, (u64, bool)> = BTreeMap::new();
        for interrupt in &processor.interrupts {
            let row = match (interrupt.source.kind, interrupt.source.number) {
                // Each handler of a shared line is an interrupt of its own.
                (InterruptKind::Irq, _) if interrupt.source.name.contains(',') => continue,
                (InterruptKind::Irq, Some(number)) => number.to_string(),
                (InterruptKind::Softirq, _) => interrupt.source.name.clone(),
                (InterruptKind::Vector, Some(0xec)) => "LOC".to_owned(),
                (InterruptKind::Vector, Some(0xfd)) => "RES".to_owned(),
                _ => continue,
            };
            let sum = rows.entry(row).or_default();
            sum.0 += interrupt.curves.count;
            sum.1 |= interrupt.at_least;
        }
        for (row, (seen, at_least)) in rows {
            let key = (row, processor.cpu as usize);
            let between = |late: &BTreeMap<_, u64>, early: &BTreeMap<_, u64>| {
                late.get(&key).unwrap_or(&0).saturating_sub(*early.get(&key).unwrap_or(&0))
            };
            let (outside, inside) = (between(&after, &before), between(&end, &begin));
            ensure!(seen <= outside, "{key:?}: {seen} seen, {outside} counted by the kernel");
            ensure!(
                seen >= inside || at_least,
                "{key:?}: {seen} seen, at least {inside} counted by the kernel"
            );
            checked += 1;
        }
    }
    ensure!(checked > 0, "no source was seen: {latency:?}");
    Ok(Outcome::Completed)
}

/// With or without a bound: what replay makes of a recording is, byte by byte, what was written live, and
/// babeltrace2 finds every interrupt.
pub fn replay_is_live(command: &[&str]) -> Result<Outcome> {
    let directory = directory()?;
    let path = |name: &str| directory.path().join(name);
    let mut latency = punctual(["latency", "-q", "-o"]);
    latency.arg(path("live.timing.json")).arg("--record").arg(path("recording")).arg("--").args(command);
    run(latency)?.expect_code(0)?;
    let mut replay = punctual(["replay", "-q", "-o"]);
    replay.arg(path("replayed.timing.json")).arg(path("recording"));
    run(replay)?.expect_code(0)?;
    let live = fs::read_to_string(path("live.timing.json"))?;
    let replayed = fs::read_to_string(path("replayed.timing.json"))?;
    ensure!(live == replayed, "--- live\n{live}\n--- replayed\n{replayed}");
    let mut timeline = punctual(["timeline", "-o"]);
    timeline.arg(path("x.perfetto-trace")).arg(path("recording"));
    run(timeline)?.expect_code(0)?;
    let bytes = fs::read(path("x.perfetto-trace"))?;
    ensure!(bytes.windows(5).any(|name| name == b"CPU 0"), "the timeline has no processor");
    let Some(mut babeltrace) = tool("babeltrace2", &[]) else { return skip("no babeltrace2 here") };
    babeltrace.arg(path("recording"));
    let events = run(babeltrace)?;
    events.expect_code(0)?;
    ensure!(events.stderr.is_empty(), "babeltrace2 complains: {}", events.stderr);
    let is_interrupt = |line: &&str| line.contains(" interrupt: ") || line.contains(" interrupt_wide: ");
    let found = events.stdout.lines().filter(is_interrupt).count() as u64;
    let model = TimingModel::from_json(&live).or_else(|error| fail(format!("not valid: {error}")))?;
    let interrupts = model.latency.iter().flat_map(|it| &it.processors).flat_map(|cpu| &cpu.interrupts);
    let expected: u64 = interrupts.map(|it| it.curves.count).sum();
    ensure!(found == expected && found > 0, "{found} interrupts in babeltrace2, {expected} in the model");
    Ok(Outcome::Completed)
}

fn recording() -> Result<Outcome> {
    if let Some(reason) = has_bound() {
        return skip(reason);
    }
    let rounds = ROUNDS.to_string();
    replay_is_live(&[&workload("kept_waiting"), "--rounds", &rounds, "--busy-us", "2000", "--cpu", "0"])
}

/// A thread that is kept waiting for 2 ms ends the measurement, and its workload.
fn threshold() -> Result<Outcome> {
    if let Some(reason) = has_bound() {
        return skip(reason);
    }
    let mut latency = punctual(["latency", "--measure", "off", "--threshold", "1500us", "--"]);
    latency.args([&workload("kept_waiting"), "--rounds", "200", "--busy-us", "2000", "--cpu", "0"]);
    let ended = run(latency)?;
    ended.expect_code(0)?;
    ensure!(ended.stdout.contains("Threshold of 1.5 ms reached on CPU 0: "), "not said: {}", ended.all());
    ensure!(ended.stdout.contains("What ran on CPU 0"), "nothing was kept: {}", ended.all());
    Ok(Outcome::Completed)
}
