//! Why jobs were late, against a program that knows.

use crate::run::{directory, punctual, run, workload};
use crate::{Outcome, Result, Test, ensure, fail, skip, timing};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

pub const ALL: &[(&str, Test)] = &[
    ("why::recordings_without_switches_are_refused", without_switches),
    ("why::jobs_that_somebody_asks_for", asked_for),
];

pub const ALONE: &[(&str, Test)] = &[("why::causes_of_a_program_that_knows_them", causes)];

/// As in tests/workloads/late.c.
const PERIOD: u64 = 10_000_000;
/// Fewer would not be worth a test. Each of the nine causes has twelve jobs.
const LEAST_JUDGED: usize = 30;

/// What the program logged of a job, in nanoseconds.
struct Logged<'a> {
    due: u64,
    end: u64,
    cause: &'a str,
    reason: u64,
    cpu: u64,
    faults: u64,
}

impl Logged<'_> {
    fn of(line: &str) -> Option<Logged<'_>> {
        let words: Vec<&str> = line.split(' ').collect();
        let [due, end, cause, reason, cpu, faults] = words[..] else { return None };
        let number = |word: &str| word.parse().ok();
        Some(Logged {
            due: number(due)?,
            end: number(end)?,
            cause,
            reason: number(reason)?,
            cpu: number(cpu)?,
            faults: number(faults)?,
        })
    }

    fn response(&self) -> u64 {
        self.end - self.due
    }

    /// What the job is late for, if the program knows that: not where the job before was late, nor where what
    /// is left of its time, which other load took, is more than a tenth.
    fn known(&self, previous_end: u64) -> Option<Known> {
        let left = self.response().saturating_sub(self.reason + self.cpu);
        if previous_end > self.due || left > self.response() / 10 {
            return None;
        }
        // Whoever stops it, or it waits for, may come late.
        if !matches!(self.cause, "own" | "faults") && self.reason < self.cpu {
            return None;
        }
        let of = |kind| Known { kind, thread: None, inversion: false, call: None, object: None };
        let by = |kind, thread| Known { thread: Some(thread), ..of(kind) };
        let lock =
            |owner| Known { call: Some("futex_wait"), object: Some("late:lock"), ..by("blocked", owner) };
        Some(match self.cause {
            "own" | "faults" => of("own"),
            "preempted" => by("preempted", "urgent"),
            "queued" => by("queued", "equal"),
            "lock" => lock("holder"),
            "inversion" => Known { inversion: true, ..lock("victim") },
            "worker" => by("blocked", "worker"),
            "stopped" => of("stopped"),
            // Who wakes the loop depends on the file system. The disk may be too fast for a wait to be most
            // of the job's time, without the way from a wake-up to the processor.
            "disk" if self.reason > self.response() / 4 * 3 => {
                Known { call: Some("fsync"), object: Some("late.file"), ..of("blocked") }
            }
            _ => return None,
        })
    }
}

/// What a job is put down to: what is `None` is not known.
#[derive(Debug)]
struct Known {
    kind: &'static str,
    thread: Option<&'static str>,
    inversion: bool,
    call: Option<&'static str>,
    object: Option<&'static str>,
}

impl Known {
    fn is(&self, job: &Value) -> bool {
        let says = |key: &str, known: Option<&str>| known.is_none() || job[key].as_str() == known;
        // Threads of the machine may keep whoever is waited for from its processor in other jobs, too.
        says("cause", Some(self.kind))
            && says("cause_thread", self.thread)
            && says("cause_call", self.call)
            && says("cause_object", self.object)
            && has_inversion(job) >= self.inversion
    }
}

fn causes() -> Result<Outcome> {
    let mut why = punctual(["why", "--json", "--worst", "1000"]);
    let folder = directory()?;
    why.args(["--thread", "control", "--", &workload("late"), "550"]).arg(folder.path().join("late.file"));
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("needs two processors");
    }
    let stolen_before = stolen()?;
    let ended = run(why)?;
    ended.expect_code(0)?;
    let stolen = stolen()?.saturating_sub(stolen_before);
    let explained = ended.json()?;
    let jobs: BTreeMap<u64, &Value> = explained["jobs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|job| Some((job["arrival_ns"].as_u64()?, job)))
        .collect();
    let shown_stolen: u64 = jobs.values().map(|job| time_of(job, "steal")).sum();
    ensure!(shown_stolen <= stolen + STEAL_UNIT, "{shown_stolen} ns of the {stolen} ns that were stolen");
    let (mut judged, mut unknown, mut previous_end) = (0, 0, 0);
    for logged in ended.stderr.lines().filter_map(Logged::of) {
        let known = logged.known(previous_end);
        previous_end = logged.end;
        let Some(known) = known.filter(|_| logged.response() > PERIOD) else { continue };
        let Some(job) = jobs.get(&logged.due) else {
            return fail(format!("the job that was due at {} is missing: {}", logged.due, ended.all()));
        };
        sums_up(job)?;
        // The program cannot know of that.
        if time_of(job, "steal") > logged.response() / 10 {
            continue;
        }
        judged += 1;
        if job["cause"] == "unknown" {
            unknown += 1;
            continue;
        }
        ensure!(known.is(job), "{known:?}, not {job:#}");
        let faults = job["faults"].as_u64().unwrap_or_default();
        ensure!(faults >= logged.faults, "{faults} page faults, not {}: {job:#}", logged.faults);
    }
    timing(many_enough(judged, unknown))?;
    Ok(Outcome::Completed)
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

/// A job's time of one kind.
fn time_of(job: &Value, kind: &str) -> u64 {
    let parts = job["parts"].as_array().into_iter().flatten();
    parts.filter(|part| part["kind"] == kind).filter_map(|part| part["ns"].as_u64()).sum()
}

/// The kernel of some virtual machines does not show all switches.
fn many_enough(judged: usize, unknown: usize) -> Result {
    ensure!(judged >= LEAST_JUDGED, "{judged} jobs were late for known causes only");
    ensure!(unknown * 10 <= judged, "{unknown} of {judged} causes are unknown");
    Ok(())
}

/// The parts of a job leave no gap, and their sum is its time.
fn sums_up(job: &Value) -> Result {
    let mut reached = job["begin_ns"].as_u64();
    for part in job["parts"].as_array().into_iter().flatten() {
        ensure!(part["from_ns"].as_u64() == reached, "a gap or an overlap: {job:#}");
        reached = reached.zip(part["ns"].as_u64()).map(|(reached, ns)| reached + ns);
    }
    ensure!(reached == job["end_ns"].as_u64(), "the parts have another sum: {job:#}");
    Ok(())
}

/// Whether a part of the main cause is an inversion.
fn has_inversion(job: &Value) -> bool {
    let mut parts = job["parts"].as_array().into_iter().flatten();
    parts.any(|part| part["kind"] == job["cause"] && part["waited_for"]["inversion"] == true)
}

/// One job, all jobs, and those that miss the deadline of a contract.
fn asked_for() -> Result<Outcome> {
    let folder = directory()?;
    let recording = folder.path().join("run.recording");
    let mut record = punctual(["record", "-q", "--detail", "switches", "--all-threads", "-o"]);
    record.arg(&recording).args(["--", &workload("periodic"), "--for", "0.3", "--cost-us", "500", "10000"]);
    run(record)?.expect_code(0)?;
    let asked = |options: &[&str]| -> Result<Vec<Value>> {
        let mut why = punctual::<&str>([]);
        why.args(["why", "--json", "--worst", "1000"]).args(options).arg(&recording);
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

    let mut why = punctual::<&str>([]);
    why.args(["why", "--job", "1000000"]).arg(&recording);
    let refused = run(why)?;
    refused.expect_code(2)?;
    ensure!(refused.stderr.contains("no thread has a job 1000000"), "{}", refused.all());
    Ok(Outcome::Completed)
}

fn without_switches() -> Result<Outcome> {
    let folder = directory()?;
    let recording = folder.path().join("plain.recording");
    let mut record = punctual(["record", "-q", "-o"]);
    record.arg(&recording).args(["--", &workload("periodic"), "--for", "0.2"]);
    run(record)?.expect_code(0)?;
    // Without --attach, which recordings do not take.
    let mut why = punctual::<&str>([]);
    why.arg("why").arg(&recording);
    let ended = run(why)?;
    ended.expect_code(2)?;
    let advice = "record with --detail switches --all-threads";
    ensure!(ended.stderr.contains(advice), "no advice: {}", ended.all());
    Ok(Outcome::Completed)
}
