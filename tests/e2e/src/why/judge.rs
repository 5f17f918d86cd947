//! Compares what `why` says of late jobs with the log of the program that was late, tests/workloads/late.

use crate::{Outcome, Result, ensure, fail, skip, timing};
use serde_json::Value;

/// As in tests/workloads/late.
pub const PERIOD: u64 = 10_000_000;
const USUAL_COST: u64 = 500_000;
/// Causes longer than this make a job late.
const SHORTEST: u64 = 2_000_000;

/// What the program logged of a job, in nanoseconds.
pub struct Logged<'a> {
    due: u64,
    end: u64,
    cpu: u64,
    faults: u64,
    /// Names of causes, and how long each lasted within the job.
    reasons: Vec<(&'a str, u64)>,
}

impl<'a> Logged<'a> {
    pub fn of(line: &'a str) -> Option<Logged<'a>> {
        let mut words = line.split(' ');
        let mut number = || words.next()?.parse().ok();
        let (due, end, cpu, faults) = (number()?, number()?, number()?, number()?);
        let mut reasons = Vec::new();
        while let Some(name) = words.next() {
            reasons.push((name, words.next()?.parse().ok()?));
        }
        Some(Logged { due, end, cpu, faults, reasons })
    }

    pub fn has(&self, cause: &str) -> bool {
        self.reasons.iter().any(|(name, _)| *name == cause)
    }

    pub fn response(&self) -> u64 {
        self.end - self.due
    }

    /// How long the ways between the thread and others may be that the clock of the thread and the events of
    /// the scheduler count as of different ones: into interrupts and out of them, from a wake-up to the
    /// processor. Only causes that last for thousands of short times have much of that.
    fn blur(&self) -> u64 {
        let is_blurred = ["disk", "cold", "interrupts"].iter().any(|cause| self.has(cause));
        if is_blurred { self.response() / 4 } else { 0 }
    }

    /// What is shown may differ from the log by this.
    fn tolerance(&self) -> u64 {
        self.blur().max(self.response() / 10)
    }

    /// Whether the program meant it to be late. The kernel may be on time all the same.
    fn is_meant(&self) -> bool {
        let depends = ["server", "slack", "quota"].iter().any(|cause| self.has(cause));
        !self.reasons.is_empty() && (!depends || self.response() > PERIOD)
    }

    /// What the job is late for, if the program knows that: not where the job before was late, nor where what
    /// is left of its time, which other load took, is more than a tenth.
    fn known(&self, previous_end: u64, detail: Detail) -> Option<Vec<Known>> {
        if previous_end > self.due {
            let time = previous_end - self.due;
            let is_main = time > self.response() / 10 * 9;
            return is_main.then(|| vec![Known::new("backlog", time)]);
        }
        let others = self.reasons.iter().filter(|(name, _)| !is_own(name));
        let taken: u64 = others.clone().map(|(_, time)| time).sum();
        if self.response().saturating_sub(taken + self.cpu) > self.response() / 10 {
            return None;
        }
        let mut known = vec![Known::new("own", self.cpu.saturating_sub(USUAL_COST))];
        for (name, time) in others {
            known.push(cause(name, *time, detail)?);
        }
        Some(known)
    }
}

/// Causes that use the job's own processor time.
fn is_own(cause: &str) -> bool {
    matches!(cause, "own" | "faults" | "backlog")
}

/// A cause by its name in the log; `None` where the recording cannot show it.
fn cause(name: &str, time: u64, detail: Detail) -> Option<Known> {
    let of = |kind| Known::new(kind, time);
    let by = |kind, thread| Known { thread: Some(thread), ..of(kind) };
    let lock = |call, object, owner| Known { call: Some(call), object: Some(object), ..by("blocked", owner) };
    let plain = |owner| lock("futex_wait", "late:lock", owner);
    Some(match name {
        "preempted" => by("preempted", "urgent"),
        "moved" => by("preempted", "magnet"),
        "kernel" => by("preempted", "poller"),
        "queued" => by("queued", "equal"),
        "turns" => by("queued", "turns"),
        "lock" => plain("holder"),
        "inherit" => lock("futex_lock_pi", "late:lent", "lender"),
        "inversion" => Known { inversion: true, ..plain("victim") },
        "worker" => by("blocked", "worker"),
        "stopped" => of("stopped"),
        "interrupts" if detail.has_calls() => of("interrupt"),
        "budget" | "quota" => of("throttled"),
        "server" => by("throttled", "ordinary"),
        "slack" => of("late-wakeup"),
        // Who wakes the loop depends on the file system.
        "disk" => Known { call: Some("fsync"), object: Some("late.file"), ..of("blocked") },
        "cold" => Known { call: Some("page fault"), ..of("blocked") },
        _ => return None,
    })
}

/// A cause that a job is put down to, as `why` says it: what is `None` is not known.
#[derive(Debug)]
struct Known {
    kind: &'static str,
    thread: Option<&'static str>,
    inversion: bool,
    call: Option<&'static str>,
    object: Option<&'static str>,
    time: u64,
}

impl Known {
    fn new(kind: &'static str, time: u64) -> Known {
        Known { kind, thread: None, inversion: false, call: None, object: None, time }
    }

    /// Whether this is the main cause of a job.
    fn is_main(&self, job: &Value, detail: Detail) -> bool {
        let said = |key: &str| &job[format!("cause{key}")];
        // Threads of the machine may keep whoever is waited for from its processor in other jobs, too.
        let inverted =
            has_inversion(job) >= self.inversion || detail == Detail::WithGaps || others_took_part(job);
        job["cause"] == self.kind
            && self.fits([said("_thread"), said("_call"), said("_object")], detail)
            && inverted
    }

    /// How long a job's parts last that have this cause.
    fn shown(&self, job: &Value, detail: Detail) -> u64 {
        let parts = job["parts"].as_array().into_iter().flatten().filter(|part| part["kind"] == self.kind);
        let fitting = parts.filter(|it| self.fits(["thread", "call", "object"].map(|key| &it[key]), detail));
        fitting.filter_map(|part| part["ns"].as_u64()).sum()
    }

    /// Whether a thread, a call and an object are those of this cause, as far as they are known.
    fn fits(&self, [thread, call, object]: [&Value; 3], detail: Detail) -> bool {
        // The name of a thread may have been lost, too: then it has its number.
        let is_lost = |name: &Value| {
            detail == Detail::WithGaps && name.as_str().is_none_or(|name| name.starts_with("thread "))
        };
        let is =
            |said: &Value, known: Option<&str>| known.is_none() || said.as_str() == known || is_lost(said);
        is(thread, self.thread)
            && is(call, self.call.filter(|_| detail.has_calls()))
            && is(object, self.object.filter(|_| detail.has_calls()))
    }
}

/// What a recording shows of waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Call, object and owner, and page faults.
    Calls,
    /// The same, but not of all jobs.
    CallsOfSome,
    SwitchesOnly,
    /// Not even all switches.
    WithGaps,
}

impl Detail {
    fn has_calls(self) -> bool {
        matches!(self, Detail::Calls | Detail::CallsOfSome)
    }
}

/// How many late jobs of known causes were judged, of how many that the program made late; and of how many
/// the causes are unknown.
#[derive(Debug, Default)]
pub struct Judged {
    pub judged: usize,
    pub unknown: usize,
    pub late: usize,
}

impl std::ops::AddAssign for Judged {
    fn add_assign(&mut self, more: Judged) {
        self.judged += more.judged;
        self.unknown += more.unknown;
        self.late += more.late;
    }
}

impl Judged {
    /// The kernel of some virtual machines does not show all switches.
    pub fn is_enough(&self) -> Result<Outcome> {
        if self.late == 0 {
            return skip("the program was never late");
        }
        timing(self.many_enough())?;
        Ok(Outcome::Completed)
    }

    pub fn many_enough(&self) -> Result {
        ensure!(self.judged * 4 >= self.late, "too few jobs were late for known causes: {self:?}");
        ensure!(self.unknown * 10 <= self.judged, "the causes of too many are unknown: {self:?}");
        Ok(())
    }

    /// A machine that lost nothing within a late job shows nothing of losses.
    pub fn has_gaps(&self) -> Result<Outcome> {
        match self.unknown {
            0 => skip(format!("no late job has a gap: {self:?}")),
            _ => Ok(Outcome::Completed),
        }
    }
}

/// Compares what is said of late jobs with what the program logged.
pub fn judge(explained: &Value, log: &str, detail: Detail) -> Result<Judged> {
    let jobs: Vec<&Value> = explained["jobs"].as_array().into_iter().flatten().collect();
    let instant = |job: &Value, key: &str| job[key].as_u64().unwrap_or_default();
    let all: Vec<Logged> = log.lines().filter_map(Logged::of).collect();
    let (mut judged, mut unknown, mut previous_end) = (0, 0, 0);
    // The end of the last job that was late and belongs to no task.
    let mut hidden_end = 0;
    // No wait ends the last job.
    for (logged, next) in all.iter().zip(all.iter().skip(1)) {
        let known = logged.known(previous_end, detail).filter(|_| hidden_end <= logged.due);
        previous_end = logged.end;
        let Some(known) = known.filter(|_| logged.response() > PERIOD) else { continue };
        // It ends a moment after the program has looked at its clock; the job after it may have arrived.
        let ends = logged.end..next.end;
        let Some(job) = jobs.iter().find(|job| ends.contains(&instant(job, "end_ns"))) else {
            // Without arrivals, a job begins when it is released, perhaps too late to be a late one; and the
            // first jobs of a thread are before its first switch.
            // If the affinity was seen to change within a job, that belongs to no task.
            if logged.has("moved") {
                hidden_end = logged.end;
                continue;
            }
            if detail != Detail::Calls {
                continue;
            }
            let said = &explained["tasks"];
            timing(fail(format!("the job that ended at {} is missing: {said:#}", logged.end)))?;
            continue;
        };
        sums_up(job)?;
        // Without its arrival, a job begins when it is released: the log knows what was before.
        let begin = instant(job, "begin_ns");
        let has_backlog = job["arrival_ns"].is_null() && begin > logged.due + logged.response() / 10;
        // The program cannot know of what a hypervisor took.
        if has_backlog || time_of(job, "steal") > logged.response() / 10 {
            continue;
        }
        // It counts the ways from many wake-ups to the processor as waiting.
        if logged.blur() > 0 && time_of(job, "dispatch") > logged.blur() {
            continue;
        }
        judged += 1;
        if job["cause"] == "unknown" {
            unknown += 1;
            continue;
        }
        agrees(job, logged, &known, detail)?;
    }
    let late = all.iter().filter(|logged| logged.is_meant()).count();
    Ok(Judged { judged, unknown, late })
}

/// The main cause of a job is the longest that the program knows of, or one that lasted for about as long;
/// and all of them are among its parts.
fn agrees(job: &Value, logged: &Logged, known: &[Known], detail: Detail) -> Result {
    let (tolerance, hidden) = (logged.tolerance(), time_of(job, "unknown"));
    let longest = known.iter().map(|it| it.time).max().unwrap_or_default();
    let as_long = (longest / 10 * 9).min(longest.saturating_sub(logged.blur()));
    let mut main = known.iter().filter(|it| it.time >= as_long);
    ensure!(main.any(|it| it.is_main(job, detail)), "{known:?}, not {job:#}");
    let faults = job["faults"].as_u64().unwrap_or_default();
    let too_few = detail.has_calls() && faults < logged.faults;
    ensure!(!too_few, "{faults} page faults, not {}: {job:#}", logged.faults);
    // The ways between the thread and others: the kernel counts some as waiting, some as the thread's time.
    let ways = || time_of(job, "dispatch") + time_of(job, "interrupt");
    let between = if logged.blur() > 0 { ways() } else { 0 };
    // Only calls tell waits apart that no thread ends; and the loops of their own do not know what of their
    // time other load took.
    let is_distinct = |it: &&Known| {
        let is_exact = !matches!(it.kind, "throttled" | "late-wakeup");
        is_exact && (it.call.is_none() || it.thread.is_some() || detail.has_calls())
    };
    for it in known.iter().filter(|it| it.time > SHORTEST).filter(is_distinct) {
        let usual = if it.kind == "own" { USUAL_COST } else { 0 };
        let shown = it.shown(job, detail);
        let is_short = shown <= it.time + usual + tolerance || detail == Detail::WithGaps;
        ensure!(is_short, "{shown} ns of {it:?} are too long: {job:#}");
        ensure!(
            shown + between + hidden + tolerance >= it.time,
            "{shown} ns of {it:?} are too short: {job:#}"
        );
    }
    Ok(())
}

/// A job's time of one kind.
pub fn time_of(job: &Value, kind: &str) -> u64 {
    let parts = job["parts"].as_array().into_iter().flatten();
    parts.filter(|part| part["kind"] == kind).filter_map(|part| part["ns"].as_u64()).sum()
}

/// The parts of a job leave no gap, and their sum is its time; so do those of all that it waited for.
pub fn sums_up(job: &Value) -> Result {
    let end = leave_no_gap(&job["parts"], job["begin_ns"].as_u64())?;
    ensure!(end == job["end_ns"].as_u64(), "the parts have another sum: {job:#}");
    Ok(())
}

/// Where parts end that begin here.
fn leave_no_gap(parts: &Value, from: Option<u64>) -> Result<Option<u64>> {
    let mut reached = from;
    for part in parts.as_array().into_iter().flatten() {
        ensure!(part["from_ns"].as_u64() == reached, "a gap or an overlap: {part:#}");
        let end = reached.zip(part["ns"].as_u64()).map(|(reached, ns)| reached + ns);
        let waited_for = &part["waited_for"];
        ensure!(waited_for.is_object() || part["kind"] != "backlog", "nothing of the job before: {part:#}");
        if waited_for.is_object() {
            ensure!(leave_no_gap(&waited_for["parts"], reached)? == end, "another sum: {part:#}");
        }
        reached = end;
    }
    Ok(reached)
}

/// Whether threads of the machine kept those that the job waited for from their processors for a tenth of its
/// time: a program that was waited for knows nothing of that.
fn others_took_part(job: &Value) -> bool {
    const OWN: [&str; 9] =
        ["control", "urgent", "equal", "turns", "holder", "lender", "victim", "middle", "worker"];
    let waits = job["parts"].as_array().into_iter().flatten();
    let parts = waits.flat_map(|wait| wait["waited_for"]["parts"].as_array().into_iter().flatten());
    let by_others = parts.filter(|part| part["thread"].as_str().is_some_and(|name| !OWN.contains(&name)));
    let taken: u64 = by_others.filter_map(|part| part["ns"].as_u64()).sum();
    taken * 10 > job["response_ns"].as_u64().unwrap_or_default()
}

/// Whether a part of the main cause is an inversion.
fn has_inversion(job: &Value) -> bool {
    let mut parts = job["parts"].as_array().into_iter().flatten();
    parts.any(|part| part["kind"] == job["cause"] && part["waited_for"]["inversion"] == true)
}
