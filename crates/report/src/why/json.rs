//! Late jobs as JSON: what `punctual why --json` prints.

use super::{Explained, LateTask, Limit, Named, ThreadInfo, Why, words};
use punctual_causes::{Chain, Culprit, Part, Role};
use punctual_model::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Shown<'a> {
    tasks: Vec<Task<'a>>,
    jobs: Vec<Job<'a>>,
    lacks: &'a [String],
}

#[derive(Serialize)]
struct Task<'a> {
    task: &'a str,
    tid: u32,
    jobs: u64,
    late: u64,
    limit_ns: Duration,
    limit: &'static str,
    longest_ns: Duration,
    causes: Vec<Cause>,
    advice: Vec<String>,
}

#[derive(Serialize)]
struct Cause {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'static str>,
    inversion: bool,
    jobs: u64,
    ns: Duration,
    evidence: String,
}

#[derive(Serialize)]
struct Job<'a> {
    task: &'a str,
    tid: u32,
    job: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival_ns: Option<Instant>,
    begin_ns: Instant,
    end_ns: Instant,
    response_ns: Duration,
    faults: u64,
    major_faults: u64,
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause_thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause_call: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause_object: Option<&'static str>,
    parts: Vec<OnePart>,
}

#[derive(Serialize)]
struct OnePart {
    kind: &'static str,
    from_ns: Instant,
    ns: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_for: Option<OneChain>,
}

#[derive(Serialize)]
struct OneChain {
    thread: String,
    tid: u32,
    role: &'static str,
    inversion: bool,
    parts: Vec<OnePart>,
}

impl Why {
    /// As one JSON document.
    pub fn json(&self) -> String {
        let jobs = self.tasks.iter().flat_map(|task| task.shown.iter().map(|job| one_job(task, job)));
        let shown = Shown {
            tasks: self.tasks.iter().map(one_task).collect(),
            jobs: jobs.collect(),
            lacks: &self.lacks,
        };
        serde_json::to_string_pretty(&shown).expect("plain values") + "\n"
    }
}

fn one_task(task: &LateTask) -> Task<'_> {
    let causes = task.causes().into_iter().map(|(key, cause)| {
        let (thread, interrupt) = match &key.who {
            Some(Named::Thread { name, .. }) => (Some(name.clone()), None),
            Some(Named::Interrupt(interrupt)) => (None, Some(words::interrupt(*interrupt))),
            None => (None, None),
        };
        let evidence = words::evidence(key, cause);
        let (kind, inversion) = (key.kind.name(), key.inversion);
        let (call, object) = (key.on.map(|on| on.0), key.on.and_then(|on| on.1));
        Cause { kind, thread, interrupt, call, object, inversion, jobs: cause.jobs, ns: cause.time, evidence }
    });
    Task {
        task: &task.who.name,
        tid: task.who.tid,
        jobs: task.jobs,
        late: task.late,
        limit_ns: task.limit.time(),
        limit: match task.limit {
            Limit::Given(_) => "given",
            Limit::Period(_) => "period",
            Limit::Agreed(_) => "contract",
            Limit::Longest(_) => "longest",
            Limit::Chosen => "none",
        },
        longest_ns: task.longest,
        causes: causes.collect(),
        advice: super::advice::of(task),
    }
}

fn one_job<'a>(task: &'a LateTask, explained: &Explained) -> Job<'a> {
    let job = &explained.explanation.job;
    Job {
        task: &task.who.name,
        tid: job.thread,
        job: job.number,
        arrival_ns: explained.has_arrival.then_some(job.begin),
        begin_ns: job.begin,
        end_ns: job.end,
        response_ns: job.time(),
        faults: explained.explanation.faults.all(),
        major_faults: explained.explanation.faults.major,
        cause: explained.cause.kind.name(),
        cause_thread: match explained.cause.culprit {
            Some(Culprit::Thread(tid)) => explained.threads.get(&tid).map(|who| who.name.clone()),
            _ => None,
        },
        cause_call: explained.cause.wait.and_then(|wait| wait.call),
        cause_object: explained.cause.wait.and_then(|wait| wait.object),
        parts: parts(&explained.explanation.parts, &explained.threads),
    }
}

fn parts(parts: &[Part], threads: &BTreeMap<u32, ThreadInfo>) -> Vec<OnePart> {
    parts.iter().map(|part| one_part(part, threads)).collect()
}

fn one_part(part: &Part, threads: &BTreeMap<u32, ThreadInfo>) -> OnePart {
    let mut shown = OnePart {
        kind: part.kind.name(),
        from_ns: part.from,
        ns: part.time,
        thread: None,
        tid: None,
        interrupt: None,
        job: None,
        call: part.wait.and_then(|wait| wait.call),
        object: part.wait.and_then(|wait| wait.object),
        waited_for: part.chain.as_deref().map(|chain| one_chain(chain, threads)),
    };
    match part.culprit {
        Some(Culprit::Thread(tid)) => {
            (shown.tid, shown.thread) = (Some(tid), threads.get(&tid).map(|who| who.name.clone()));
        }
        Some(Culprit::Interrupt(it)) => shown.interrupt = Some(words::interrupt(it)),
        Some(Culprit::Job(number)) => shown.job = Some(number),
        None => {}
    }
    shown
}

fn one_chain(chain: &Chain, threads: &BTreeMap<u32, ThreadInfo>) -> OneChain {
    OneChain {
        thread: threads.get(&chain.thread).map(|who| who.name.clone()).unwrap_or_default(),
        tid: chain.thread,
        role: match chain.role {
            Role::Owner => "owner",
            Role::Waker => "waker",
        },
        inversion: chain.inversion,
        parts: parts(&chain.parts, threads),
    }
}
