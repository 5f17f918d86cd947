//! Why jobs were late, against a program that knows.

pub mod as_lttng;
mod dropped;
mod judge;
mod last;
mod quota;
mod raised;

use crate::disturbed::rows;
use crate::run::{Ended, directory, offline, punctual, run, workload};
use crate::tool::tool;
use crate::trace_cmd::trace_cmd;
use crate::{Outcome, Result, Test, ensure, fail, is_all_wanted, skip, timing};
use judge::{Detail, Judged, Logged, PERIOD, judge, sums_up, time_of};
use punctual_model::MANY_LATE;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

pub const ALL: &[(&str, Test)] = &[
    ("why::recordings_without_switches_are_refused", without_switches),
    ("why::jobs_that_somebody_asks_for", asked_for),
    ("why::a_model_keeps_the_causes", kept),
    ("why::a_program_that_fails_within_its_last_job", last::row),
];

pub const ALONE: &[(&str, Test)] = &[
    ("why::causes_of_a_program_that_knows_them", causes),
    ("why::a_model_counts_the_same_late_jobs", counted),
    ("why::a_thousand_late_jobs", a_thousand),
    ("why::a_thread_of_the_kernel", kernel),
    ("why::many_interrupts", interrupts),
    ("why::a_budget_that_was_used_up", budget),
    ("why::quota", quota::row),
    ("why::a_job_within_which_the_priority_changed", raised::row),
    ("why::real_time_throttling", throttling),
    ("why::timers_with_slack", slack),
    ("why::causes_are_told_at_once", told),
    ("why::causes_in_a_trace_of_perf", in_a_trace_of_perf),
    ("why::causes_in_a_trace_of_lttng", in_a_trace_of_lttng),
    ("why::perf_sched_timehist_agrees", timehist),
    ("why::causes_in_a_trace_of_trace_cmd", in_a_trace_of_trace_cmd),
    ("why::what_was_lost_is_no_reason", what_was_lost),
    ("why::what_perf_lost_is_no_reason", what_perf_lost),
    ("why::switches_that_nobody_misses", without_some),
];

fn causes() -> Result<Outcome> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("needs two processors");
    }
    let folder = directory()?;
    let recording = folder.path().join("run.recording");
    let mut why = punctual(["why", "--json", "--worst", "1000", "--thread", "control", "--keep"]);
    why.arg(&recording);
    why.args(["--", &workload("late"), "400"]).arg(folder.path().join("late.file"));
    let stolen_before = stolen()?;
    let ended = run(why)?;
    ended.expect_code(0)?;
    let stolen = stolen()?.saturating_sub(stolen_before);
    let explained = ended.json()?;
    let jobs = explained["jobs"].as_array().into_iter().flatten();
    let shown_stolen: u64 = jobs.map(|job| time_of(job, "steal")).sum();
    ensure!(shown_stolen <= stolen + STEAL_UNIT, "{shown_stolen} ns of the {stolen} ns that were stolen");
    listed(&recording, &explained)?;
    checked(&recording, &explained)?;
    judge(&explained, &ended.stderr, Detail::Calls)?.is_enough()
}

/// A list of jobs says the same of late ones.
fn listed(recording: &Path, explained: &Value) -> Result {
    let list = |options: &[&str]| -> Result<Vec<HashMap<String, String>>> {
        let mut jobs = punctual(["jobs", "-q", "--primary", "--thread", "control"]);
        jobs.args(options).arg(recording);
        let ended = run(jobs)?;
        ended.expect_code(0)?;
        Ok(rows(&ended.stdout))
    };
    let (all, late, worst) = (list(&["--causes"])?, list(&["--late"])?, list(&["--worst", "3"])?);
    let of_late: Vec<_> = all.iter().filter(|row| row["late"] == "true").cloned().collect();
    ensure!(all.len() > late.len() && of_late == late, "{} of {} late", late.len(), all.len());
    let jobs: Vec<&Value> = explained["jobs"].as_array().into_iter().flatten().collect();
    ensure!(jobs.len() == late.len(), "{} late jobs are listed, not {}", late.len(), jobs.len());
    let longest: Vec<u64> = jobs.iter().take(3).filter_map(|job| job["response_ns"].as_u64()).collect();
    let mut responses: Vec<u64> = worst.iter().filter_map(|row| row["response_ns"].parse().ok()).collect();
    responses.sort_unstable_by_key(|response| std::cmp::Reverse(*response));
    ensure!(responses == longest, "the worst are listed as {responses:?}, not {longest:?}");
    for job in jobs {
        let row = late.iter().find(|row| row["end_ns"].parse().ok() == job["end_ns"].as_u64());
        let Some(row) = row else { return fail(format!("job {} is not listed", job["job"])) };
        for name in ["cause", "cause_thread", "cause_call", "cause_object"] {
            ensure!(row[name] == job[name].as_str().unwrap_or_default(), "{name}: {row:?}, not {job:#}");
        }
        for (name, time) in row.iter().filter(|(name, _)| name.starts_with("part_")) {
            let kind = name["part_".len()..name.len() - "_ns".len()].replace('_', "-");
            ensure!(*time == time_of(job, &kind).to_string(), "{name}: {row:?}, not {job:#}");
        }
    }
    Ok(())
}

/// The timing model of a recording has as many late jobs as `why` explains; of many, at least as many as it
/// counts.
fn counted() -> Result<Outcome> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("needs two processors");
    }
    let folder = directory()?;
    for jobs in ["40", "300"] {
        let recording = folder.path().join(jobs);
        let mut record = punctual(["record", "-q", "--detail", "switches", "--all-threads", "-o"]);
        record.arg(&recording).args(["--", &workload("late"), jobs]).arg(folder.path().join("late.file"));
        run(record)?.expect_code(0)?;
        let of = |command: &str| -> Result<Value> {
            let mut command = offline([command, "-q", "--json", "--thread", "control"]);
            command.arg(&recording);
            let ended = run(command)?;
            ended.expect_code(0)?;
            ended.json()
        };
        let (explained, model) = (of("why")?, of("replay")?);
        let explained = &explained["tasks"][0];
        ensure!(explained["limit"] == "period", "{explained:#}");
        // The program changes its policy: its tasks are one for `why`.
        let tasks = model["threads"]["tasks"].as_array().into_iter().flatten();
        let primary = |task: &Value| task["streams"][task["primary"].as_u64()? as usize]["late"].as_u64();
        let counts: Vec<u64> = tasks.filter_map(primary).collect();
        let (late, expected) = (counts.iter().sum::<u64>(), explained["late"].as_u64());
        let is_same = match counts.iter().all(|count| *count < MANY_LATE) {
            true => expected == Some(late),
            false => Some(late) <= expected,
        };
        ensure!(is_same && expected > Some(0), "{counts:?} of {jobs} jobs late, not {expected:?}");
    }
    Ok(Outcome::Completed)
}

/// A check of the recording says why jobs missed their deadline.
fn checked(recording: &Path, explained: &Value) -> Result {
    let folder = directory()?;
    let contract = folder.path().join("agreed.toml");
    fs::write(&contract, "[[task]]\nname = \"control\"\ndeadline = \"10 ms\"\n")?;
    let check = |option: Option<&str>| -> Result<Ended> {
        let mut check = punctual(["check", "-q"]);
        check.args(option).arg(&contract).arg(recording);
        let ended = run(check)?;
        ended.expect_code(8)?;
        Ok(ended)
    };
    let causes = &check(Some("--json"))?.json()?["inputs"][0]["causes"];
    let late = |of: &Value| of["tasks"][0]["late"].clone();
    ensure!(late(causes) == late(explained), "{causes:#}");
    for shown in [check(None)?.stdout, check(Some("--junit=-"))?.stdout] {
        ensure!(shown.contains("preempted by urgent (FIFO 70)"), "no cause: {shown}");
    }
    Ok(())
}

/// All causes, alone and two at a time, of more jobs than every change is tested with.
fn a_thousand() -> Result<Outcome> {
    if !is_all_wanted() {
        return skip("takes minutes: tried with PUNCTUAL_TEST_ALL=1");
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("needs two processors");
    }
    let mut all = Judged::default();
    while all.judged < 1_000 {
        let folder = directory()?;
        let mut why = late(&["--"], &["2000"]);
        why.arg(folder.path().join("late.file"));
        let ended = run(why)?;
        ended.expect_code(0)?;
        let judged = judge(&ended.json()?, &ended.stderr, Detail::Calls)?;
        timing(judged.many_enough())?;
        all += judged;
    }
    println!("{all:?}");
    all.is_enough()
}

fn kernel() -> Result<Outcome> {
    only("kernel")
}

fn interrupts() -> Result<Outcome> {
    only("interrupts")
}

/// A cause that not every machine has.
fn only(cause: &str) -> Result<Outcome> {
    let ended = run(late(&["--"], &["only", cause, "60"]))?;
    let (log, reason) = (&ended.stderr, format!("no {cause}: "));
    if let Some(reason) = log.lines().find_map(|line| line.strip_prefix(&reason)) {
        return skip(format!("late cannot have this cause: {reason}"));
    }
    if !log.lines().any(|line| Logged::of(line).is_some()) {
        return skip("needs two processors");
    }
    ended.expect_code(0)?;
    judge(&ended.json()?, log, Detail::Calls)?.is_enough()
}

/// Whether or not somebody else had the processor meanwhile.
fn budget() -> Result<Outcome> {
    let ended = run(late(&["--"], &["budget", "200"]))?;
    if !ended.stderr.lines().any(|line| Logged::of(line).is_some()) {
        return skip("the kernel refuses the reservation");
    }
    ended.expect_code(0)?;
    judge(&ended.json()?, &ended.stderr, Detail::Calls)?.is_enough()
}

/// The kernel gives the processor to an ordinary thread that has waited for a second, even if real-time
/// threads want it.
fn throttling() -> Result<Outcome> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("needs two processors");
    }
    let ended = run(late(&["--"], &["server", "400"]))?;
    ended.expect_code(0)?;
    if !ended.stderr.lines().filter_map(Logged::of).any(|logged| logged.has("server")) {
        return skip("the kernel gave the ordinary thread nothing");
    }
    judge(&ended.json()?, &ended.stderr, Detail::Calls)?.is_enough()
}

/// The kernel may wake ordinary threads later than they asked for.
fn slack() -> Result<Outcome> {
    let ended = run(late(&["--include-best-effort", "--"], &["slack", "200"]))?;
    ended.expect_code(0)?;
    judge(&ended.json()?, &ended.stderr, Detail::Calls)?.is_enough()
}

/// Explains late jobs of a loop of `late`.
fn late(options: &[&str], arguments: &[&str]) -> Command {
    let mut why = punctual(["why", "--json", "--worst", "1000", "--thread", "control"]);
    why.args(options).arg(workload("late")).args(arguments);
    why
}

/// As in the checker: a job without a seen end is late only if it exceeds its deadline by more than this.
const GRACE: u64 = 20_000_000;

/// A watch tells the causes of late jobs while the program runs.
fn told() -> Result<Outcome> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("needs two processors");
    }
    let folder = directory()?;
    let contract = folder.path().join("agreed.toml");
    fs::write(
        &contract,
        "[[task]]\nname = \"control\"\nseparator = \"clock_nanosleep*\"\ndeadline = \"10 ms\"\n",
    )?;
    let mut watch = punctual(["watch", "--json", "--no-journal", "--causes"]);
    watch.arg(&contract).args(["--", &workload("late"), "400"]).arg(folder.path().join("late.file"));
    let ended = run(watch)?;
    ended.expect_code(8)?;
    let lines: Vec<Value> = ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let jobs: Vec<&Value> = lines.iter().filter(|it| it["event"] == "cause").map(|it| &it["late"]).collect();
    let judged = judge(&serde_json::json!({ "jobs": jobs }), &ended.stderr, Detail::CallsOfSome)?;
    // All are summed up in the end.
    let Some(end) = lines.last().filter(|it| it["event"] == "end") else { return fail("no end") };
    let outcome = &end["outcome"]["inputs"][0];
    let of_terms = outcome["tasks"][0]["terms"].as_array().into_iter().flatten();
    let mut missed = of_terms.filter(|term| term["term"] == "deadline").map(|term| &term["violations"]);
    let missed = missed.next().and_then(Value::as_u64).unwrap_or_default();
    let late = outcome["causes"]["tasks"][0]["late"].as_u64().unwrap_or_default();
    // The end of the thread cuts its last job off: that is a violation, if it is late beyond doubt, and not
    // explained.
    let last = ended.stderr.lines().rev().find_map(Logged::of).map_or(0, |logged| logged.response());
    let cut_off = u64::from(missed > late && last + 1_000_000 > PERIOD + GRACE);
    ensure!(missed == late + cut_off, "{late} late jobs: {outcome:#}");
    judged.is_enough()
}

/// The same run recorded by other tools: the causes are the same, without what only our recording has.
fn in_a_trace_of_perf() -> Result<Outcome> {
    in_a_trace_by_perf("16M", Detail::SwitchesOnly)
}

/// With a buffer of this size for each processor.
fn in_a_trace_by_perf(buffer: &str, detail: Detail) -> Result<Outcome> {
    let folder = directory()?;
    let data = folder.path().join("perf.data");
    let Some(perf) = perf(&data, buffer) else { return skip("no perf here") };
    in_a_trace(perf, &data, detail)
}

/// Events that perf recorded, converted to a trace of LTTng's kernel tracer, which cannot be built for every
/// kernel.
fn in_a_trace_of_lttng() -> Result<Outcome> {
    let folder = directory()?;
    let data = folder.path().join("perf.data");
    let (Some(recorder), Some(mut script)) = (perf(&data, "16M"), tool("perf", &["script", "-i"])) else {
        return skip("no perf here");
    };
    if cfg!(not(target_arch = "x86_64")) {
        return skip("the numbers of system calls are those of x86-64");
    }
    let log = match recorded(recorder, &data, QUIETLY)? {
        Recorded::Log(log) => log,
        Recorded::Not(why) => return skip(why),
    };
    script.arg(&data).args(as_lttng::OPTIONS);
    let printed = run(script)?;
    printed.expect_code(0)?;
    let trace = folder.path().join("lttng");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    as_lttng::write(&printed.stdout, &trace, processors as u32)?;
    explained(&trace, &log, Detail::SwitchesOnly)
}

/// perf, to record what a program does.
fn perf(data: &Path, buffer: &str) -> Option<Command> {
    let events = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_process_exit,\
                  raw_syscalls:*";
    let options = ["record", "-q", "-a", "-k", "mono", "-m", buffer, "-e", events, "--exclude-perf", "-o"];
    let mut perf = tool("perf", &options)?;
    perf.arg(data);
    Some(perf)
}

/// A line of `perf sched timehist`: a thread was ready, and then had a processor.
struct Turn {
    tid: u64,
    ready: u64,
    from: u64,
    until: u64,
}

impl Turn {
    /// `7262.058687 [0000]  control[3787/3786]   1.562  0.002  0.075`: the turn's end; milliseconds asleep,
    /// ready, running. Rounded to microseconds.
    fn of(line: &str) -> Option<Turn> {
        let ns = |text: &str, unit: u64| {
            let (whole, part) = text.split_once('.')?;
            let scale = unit / 10_u64.pow(part.len() as u32);
            Some(whole.parse::<u64>().ok()? * unit + part.parse::<u64>().ok()? * scale)
        };
        let (at, rest) = line.trim().split_once(" [")?;
        let mut figures = rest.rsplit(' ').filter(|word| !word.is_empty());
        let (ran, waited) = (ns(figures.next()?, 1_000_000)?, ns(figures.next()?, 1_000_000)?);
        let (_, ids) = rest.rsplit_once('[')?;
        let tid = ids.split([']', '/']).next()?.parse().ok()?;
        let until = ns(at, 1_000_000_000)?;
        let from = until.checked_sub(ran)?;
        Some(Turn { tid, ready: from.checked_sub(waited)?, from, until })
    }
}

/// Running and ready times of all threads with jobs, by the trace's own tool: to its microseconds, except
/// where a switch is hidden.
fn timehist() -> Result<Outcome> {
    let folder = directory()?;
    let data = folder.path().join("perf.data");
    let Some(mut perf) = perf(&data, "16M") else { return skip("no perf here") };
    perf.args(["--", &workload("late"), "100"]);
    let recorded = run(perf)?;
    if !data.exists() {
        return skip(format!("cannot record here: {}", recorded.stderr.lines().next().unwrap_or_default()));
    }
    let Some(mut tool) = tool("perf", &["sched", "timehist", "-i"]) else { return skip("no perf here") };
    tool.arg(&data);
    let turns: Vec<Turn> = run(tool)?.stdout.lines().filter_map(Turn::of).collect();
    let mut why = offline(["why", "-q", "--json", "--all", "--worst", "1000"]);
    why.arg(&data);
    let ended = run(why)?;
    ended.expect_code(0)?;
    let (mut running, mut ready) = (0, 0);
    for job in ended.json()?["jobs"].as_array().into_iter().flatten() {
        let number = |key: &str| job[key].as_u64().unwrap_or_default();
        let (begin, end) = (number("begin_ns"), number("end_ns"));
        let own: Vec<&Turn> =
            turns.iter().filter(|it| it.tid == number("tid") && it.until > begin && it.ready < end).collect();
        if time_of(job, "unknown") == 0 {
            let ran: u64 = own.iter().map(|it| it.until.min(end).saturating_sub(it.from.max(begin))).sum();
            let differ = ran.abs_diff(time_of(job, "own"));
            ensure!(differ <= 1_000 * (own.len() as u64 + 1), "perf says that it ran for {ran} ns: {job:#}");
            running += own.len();
        }
        for turn in own.iter().filter(|it| begin <= it.ready && it.ready < it.from && it.from <= end) {
            let time = |kinds: &[&str]| within(job, kinds, turn.ready, turn.from);
            let waited = time(&["preempted", "queued", "dispatch", "throttled"]);
            let hidden = time(&["unknown"]);
            let differ = (turn.from - turn.ready).abs_diff(waited + hidden);
            // The three figures of its line are each rounded.
            ensure!(differ <= 3_000, "perf says that it was ready at {}: {job:#}", turn.ready);
            ready += usize::from(hidden == 0);
        }
    }
    timing(match running > 50 && ready > 10 {
        true => Ok(()),
        false => fail(format!("{running} turns and {ready} waits are not many")),
    })?;
    Ok(Outcome::Completed)
}

/// How long a job's parts of these kinds last between two instants.
fn within(job: &Value, kinds: &[&str], from: u64, until: u64) -> u64 {
    let parts = job["parts"].as_array().into_iter().flatten();
    let parts = parts.filter(|part| part["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)));
    let spans = parts.filter_map(|part| Some((part["from_ns"].as_u64()?, part["ns"].as_u64()?)));
    spans.map(|(begin, ns)| (begin + ns).min(until).saturating_sub(begin.max(from))).sum()
}

fn in_a_trace_of_trace_cmd() -> Result<Outcome> {
    if tool("trace-cmd", &[]).is_none() || tool("unshare", &[]).is_none() {
        return skip("no trace-cmd here");
    }
    let folder = directory()?;
    let data = folder.path().join("trace.dat");
    in_a_trace(trace_cmd(folder.path(), "7", &data), &data, Detail::SwitchesOnly)
}

/// Where a recorder loses events, that is unknown, and nothing else is said instead.
fn what_was_lost() -> Result<Outcome> {
    let folder = directory()?;
    let data = folder.path().join("recording");
    let mut record =
        punctual(["record", "--detail", "switches", "--all-threads", "--buffer", "512KiB", "-o"]);
    record.arg(&data).arg("--");
    in_a_trace(record, &data, Detail::WithGaps)
}

fn what_perf_lost() -> Result<Outcome> {
    in_a_trace_by_perf("64K", Detail::WithGaps)
}

/// Some machines do not show all switches, and nobody counts which are missing.
fn without_some() -> Result<Outcome> {
    let folder = directory()?;
    let data = folder.path().join("recording");
    let mut record = punctual(["record", "-q", "--detail", "switches", "--all-threads", "-o"]);
    record.arg(&data).arg("--");
    let log = match recorded(record, &data, QUIETLY)? {
        Recorded::Log(log) => log,
        Recorded::Not(why) => return skip(why),
    };
    for first in (0..dropped::ONE_IN).step_by(8) {
        let copy = folder.path().join(format!("without {first}"));
        let dropped = dropped::without_some(&data, &copy, first)?;
        ensure!(dropped > 50, "{dropped} switches are few");
        explained(&copy, &log, Detail::WithGaps)?;
    }
    Ok(Outcome::Completed)
}

/// Shell scripts that run a program: perf takes a stop of its child for its end.
const QUIETLY: &str = "shift; \"$@\"; exit";
/// While others switch more often than a small buffer can hold, once the loop runs and is known.
const IN_BURSTS: &str = "storm=$1; shift; \"$@\" & late=$!
    until grep -qx control /proc/$late/task/*/comm; do sleep 0.02; done; sleep 0.2
    while kill -0 $late; do timeout 0.1 \"$storm\" >/dev/null; sleep 0.3; done 2>/dev/null
    wait $late";

fn in_a_trace(recorder: Command, data: &Path, detail: Detail) -> Result<Outcome> {
    let how = if detail == Detail::WithGaps { IN_BURSTS } else { QUIETLY };
    match recorded(recorder, data, how)? {
        Recorded::Log(log) => explained(data, &log, detail),
        Recorded::Not(why) => skip(why),
    }
}

/// The program's log, or the reason why it could not be recorded.
enum Recorded {
    Log(String),
    Not(String),
}

fn recorded(mut recorder: Command, data: &Path, how: &str) -> Result<Recorded> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Ok(Recorded::Not("needs two processors".into()));
    }
    recorder.args(["sh", "-c", how, "sh", &workload("pingpong"), &workload("late"), "200"]);
    let recorded = run(recorder)?;
    if !data.exists() {
        let said = recorded.stderr.lines().next().unwrap_or_default();
        return Ok(Recorded::Not(format!("cannot record here: {said}")));
    }
    Ok(Recorded::Log([recorded.stdout, recorded.stderr].concat()))
}

/// Judges the causes found in a recording by the program's own log.
fn explained(data: &Path, log: &str, detail: Detail) -> Result<Outcome> {
    let mut why = offline(["why", "--json", "--worst", "1000", "--thread", "control"]);
    why.arg(data);
    let ended = run(why)?;
    if detail == Detail::WithGaps && ended.stderr.contains("has no thread that matches") {
        return skip("what was lost has the loop itself in it");
    }
    ended.expect_code(0)?;
    let judged = judge(&ended.json()?, log, detail)?;
    match detail {
        Detail::WithGaps => judged.has_gaps(),
        _ => judged.is_enough(),
    }
}

/// What /proc/stat counts in.
const STEAL_UNIT: u64 = 10_000_000;

/// What a hypervisor has taken from the loop's processor so far, in nanoseconds.
fn stolen() -> Result<u64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line =
        stat.lines().find_map(|line| line.strip_prefix("cpu0 ")).ok_or("no line cpu0 in /proc/stat")?;
    let units: u64 = line.split_whitespace().nth(7).ok_or("no stolen time in /proc/stat")?.parse()?;
    Ok(units * STEAL_UNIT)
}

/// One job, all jobs, and those that miss the deadline of a contract.
fn asked_for() -> Result<Outcome> {
    let folder = directory()?;
    let recording = folder.path().join("run.recording");
    let mut record = punctual(["record", "-q", "--detail", "switches", "--all-threads", "-o"]);
    record.arg(&recording).args(["--", &workload("periodic"), "--for", "0.3", "--cost-us", "500", "10000"]);
    run(record)?.expect_code(0)?;
    let asked = |options: &[&str]| -> Result<Vec<Value>> {
        let mut why = offline(["why", "--json", "--worst", "1000"]);
        why.args(options).arg(&recording);
        let ended = run(why)?;
        ended.expect_code(0)?;
        let jobs = ended.json()?["jobs"].as_array().cloned().unwrap_or_default();
        jobs.iter().try_for_each(sums_up)?;
        Ok(jobs)
    };
    let all = asked(&["--all"])?;
    ensure!(all.len() > 20, "{} jobs of 0.3 s", all.len());
    for job in &all {
        let number = job["job"].as_u64().unwrap_or_default().to_string();
        ensure!(asked(&["--job", &number])? == [job.clone()], "not job {number}");
    }
    let response = |job: &Value| job["response_ns"].as_u64().unwrap_or_default();
    let middle = all.iter().map(response).sum::<u64>() / all.len() as u64;
    let contract = folder.path().join("agreed.toml");
    fs::write(&contract, format!("[[task]]\nname = \"task-0\"\ndeadline = \"{middle} ns\"\n"))?;
    let late = asked(&["--contract", &contract.display().to_string()])?;
    let expected: Vec<Value> = all.iter().filter(|job| response(job) > middle).cloned().collect();
    ensure!(late == expected, "not those of more than {middle} ns: {late:#?}");

    let mut why = offline(["why", "--job", "1000000"]);
    why.arg(&recording);
    let refused = run(why)?;
    refused.expect_code(2)?;
    ensure!(refused.stderr.contains("no thread has a job 1000000"), "{}", refused.all());
    Ok(Outcome::Completed)
}

/// What `why` prints of a recording, `show` prints of its model, and the page draws it. `merge` adds up
/// summaries.
fn kept() -> Result<Outcome> {
    let folder = directory()?;
    let path = |name: &str| folder.path().join(name);
    let recording = path("run.recording");
    let mut record = punctual(["record", "-q", "--detail", "switches", "--all-threads", "-o"]);
    record.arg(&recording).args(["--", &workload("periodic"), "--for", "0.5", "--cost-us", "500", "10000"]);
    run(record)?.expect_code(0)?;
    let printed = |arguments: &[&str], files: &[&Path]| -> Result<String> {
        let mut command = offline(arguments);
        command.args(files);
        let ended = run(command)?;
        ended.expect_code(0)?;
        Ok(ended.stdout)
    };
    let model = path("why.timing.json");
    let explained = printed(&["why", "-q", "--longer-than", "1us", "-o"], &[&model, &recording])?;
    ensure!(explained.contains("jobs took longer than 1 µs"), "{explained}");
    let shown = printed(&["show"], &[&model])?;
    ensure!(shown.ends_with(&explained), "{shown}\ndoes not end with\n{explained}");
    let page = path("page.html");
    printed(&["report", "-q", "-o"], &[&page, &model])?;
    let drawn = fs::read_to_string(&page).or_else(|error| fail(error.to_string()))?;
    let worst = explained.lines().find_map(|line| line.strip_prefix("worst: ")?.split_once(", "));
    let Some((job, _)) = worst else { return fail(format!("no worst job: {explained}")) };
    let title = job.replacen("job", "Job", 1);
    ensure!(drawn.contains(&title) && drawn.contains("cause runs"), "the page does not draw {title}");
    let contract = path("other.toml");
    fs::write(&contract, "[[task]]\nname = \"other\"\ndeadline = \"1 ms\"\n")?;
    let mut why = offline(["why", "-q", "--contract"]);
    why.arg(&contract).arg(&recording);
    let ended = run(why)?;
    ended.expect_code(4)?;
    ensure!(ended.stderr.contains("no thread belongs to a task of the contract"), "{}", ended.stderr);
    // Two halves of the run, as two runs.
    let (first, second, merged) = (path("first.summary"), path("second.summary"), path("both.timing.json"));
    printed(&["summarize", "-q", "--causes", "--until", "0.25", "-o"], &[&first, &recording])?;
    printed(&["summarize", "-q", "--causes", "--from", "0.25", "-o"], &[&second, &recording])?;
    let merge = |summaries: &[&Path]| -> Result<(u64, u64)> {
        printed(&[&["merge", "-q", "--force", "-o"][..]].concat(), &[&[&*merged], summaries].concat())?;
        let text = fs::read_to_string(&merged).or_else(|error| fail(error.to_string()))?;
        let model: Value = serde_json::from_str(&text).or_else(|error| fail(error.to_string()))?;
        let count = |figure: &str| model["causes"]["tasks"][0][figure].as_u64().unwrap_or_default();
        Ok((count("jobs"), count("late")))
    };
    let (one, two, both) = (merge(&[&first])?, merge(&[&second])?, merge(&[&first, &second])?);
    ensure!(one.0 > 0 && two.0 > 0, "no jobs in a half: {one:?}, {two:?}");
    ensure!(both == (one.0 + two.0, one.1 + two.1), "{one:?} and {two:?} make {both:?}");
    Ok(Outcome::Completed)
}

fn without_switches() -> Result<Outcome> {
    let folder = directory()?;
    let recording = folder.path().join("plain.recording");
    let mut record = punctual(["record", "-q", "-o"]);
    record.arg(&recording).args(["--", &workload("periodic"), "--for", "0.2"]);
    run(record)?.expect_code(0)?;
    let mut why = offline(["why"]);
    why.arg(&recording);
    let ended = run(why)?;
    ended.expect_code(2)?;
    let advice = "record with --detail switches --all-threads";
    ensure!(ended.stderr.contains(advice), "no advice: {}", ended.all());
    // A program is no recording, but can be watched.
    let ended = run(offline(["why", &workload("periodic")]))?;
    ended.expect_code(5)?;
    let advice = format!("punctual why -- {}", workload("periodic"));
    ensure!(ended.stderr.contains(&advice), "no advice: {}", ended.all());
    Ok(Outcome::Completed)
}
