use super::*;
use crate::Page;
use punctual_model::causes::{Cause, Chain, Kind, Lack, LateJob, LateTask, Limit, Part, Reason, Role};
use punctual_model::{Duration, Instant, Policy};

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

fn part(kind: Kind, thread: Option<u32>, from: u64, us: u64) -> Part {
    let policy = thread.map(|_| Policy::Fifo);
    let priority = thread.unwrap_or(0);
    let thread_name = thread.map(|tid| format!("t{tid}\u{1b}"));
    Part {
        reason: Reason { kind, thread: thread_name, policy, priority, ..Reason::default() },
        from_ns: at(from),
        ns: Duration::from_us(us),
        tid: thread,
        job: None,
        uninterruptible: false,
        waited_for: None,
    }
}

fn cause(jobs: u64, ns: u64, faults: u64, longest: Part) -> Cause {
    Cause {
        reason: longest.reason.clone(),
        inversion: longest.waited_for.as_ref().is_some_and(|chain| chain.inversion),
        jobs,
        ns: Duration::from_us(ns),
        least_ns: longest.ns,
        faulting_jobs: faults.min(1),
        faults,
        major_faults: 0,
        longest,
    }
}

fn job(number: u64, parts: Vec<Part>) -> LateJob {
    let response_ns = parts.iter().fold(Duration::ZERO, |sum, part| sum + part.ns);
    LateJob {
        phase: 0,
        job: number,
        tid: 10,
        arrival_ns: Some(at(0)),
        begin_ns: at(0),
        end_ns: at(0) + response_ns,
        response_ns,
        faults: 0,
        major_faults: 0,
        cause: parts[parts.len() - 1].reason.kind,
        cause_thread: None,
        cause_call: None,
        cause_object: None,
        parts,
    }
}

fn task(tid: u32, jobs: u64, late: u64, causes: Vec<Cause>, worst: Vec<LateJob>) -> LateTask {
    LateTask {
        task: format!("t{tid}\u{1b}"),
        tid,
        policy: Policy::Fifo,
        priority: tid,
        jobs,
        late,
        perhaps: 0,
        cut_off_ns: None,
        limit: Limit::Period,
        limit_ns: Duration::from_us(1_000),
        usual_cost_ns: Duration::from_us(100),
        longest_ns: worst.iter().map(|job| job.response_ns).max().unwrap_or_default(),
        causes,
        others: None,
        worst,
    }
}

/// A task with three late jobs: two preempted, one long by itself; the worst two are shown.
fn why() -> Causes {
    let preempted = |us| part(Kind::Preempted, Some(90), 100, us);
    let own = |us| part(Kind::Own, None, 0, us);
    let causes = vec![cause(2, 2_200, 0, preempted(1_250)), cause(1, 1_100, 1_200, own(1_100))];
    let worst = vec![job(4, vec![own(100), preempted(1_250)]), job(9, vec![own(1_100)])];
    let tasks = vec![task(10, 40, 3, causes, worst), task(11, 70, 0, vec![], vec![])];
    Causes { from_ns: at(0), until_ns: at(1_000_000), lacks: vec![Lack::Interrupts], tasks }
}

#[test]
fn causes_are_summed_up_and_the_worst_jobs_shown() {
    let text = text(&why(), &Page::default());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "t10\\u{1b} (FIFO 10): 3 of 40 jobs took longer than the period of 1 ms; the longest 1.35 ms."
    );
    let row = |start: &str| lines.iter().find(|line| line.trim_start().starts_with(start)).expect(start);
    assert!(row("2").contains("2.2 ms  preempted by t90\\u{1b} (FIFO 90)"), "{text}");
    assert!(row("1").contains("1.1 ms  own work: 1.1 ms, usually 100 µs"), "{text}");
    assert!(row("1").contains("1 had up to 1,200 page faults"), "{text}");
    let worst = row("worst");
    assert!(worst.starts_with("worst: job 4 at +0.000000 s, 1.35 ms: preempted by t90"), "{text}");
    assert!(text.contains("job 9 at") && !text.contains("job 3 at"), "{text}");
    let other = "t11\\u{1b} (FIFO 11): none of 70 jobs took longer than the period of 1 ms.";
    let perhaps = LateTask { perhaps: 2_000, ..task(11, 2_070, 0, vec![], vec![]) };
    assert_eq!(
        text::late(&perhaps),
        "t11\\u{1b} (FIFO 11): none of 2,070 jobs is known to have taken longer than the period of 1 ms; \
         2,000 may have: when they were released is not known exactly."
    );
    let cut_off = LateTask { cut_off_ns: Some(Duration::from_ms(25)), ..task(11, 70, 0, vec![], vec![]) };
    let sentence = " The thread's end cut off another after 25 ms: it is not judged.";
    assert_eq!(text::late(&cut_off), format!("{other}{sentence}"));
    assert!(text.contains(other) && text.ends_with("they count as what they interrupted.)\n"), "{text}");
}

#[test]
fn advice_follows_from_causes() {
    let advice = advice::of(&why().tasks[0]);
    assert_eq!(advice.len(), 2, "{advice:?}");
    assert!(advice[0].contains("t90") && advice[1].contains("mlockall"), "{advice:?}");
    let mut queued = cause(1, 5_000, 0, part(Kind::Queued, Some(20), 0, 5_000));
    queued.reason.policy = Some(Policy::Rr);
    let [advice] = &advice::of(&task(10, 40, 1, vec![queued], vec![]))[..] else { panic!("one piece") };
    assert!(advice.contains("under RR"), "{advice}");
    let mut blocked = part(Kind::Blocked, Some(20), 0, 5_000);
    let parts = vec![part(Kind::Preempted, Some(50), 0, 5_000)];
    let thread = "t20\u{1b}".to_owned();
    blocked.waited_for = Some(Box::new(Chain { thread, tid: 20, role: Role::Owner, inversion: true, parts }));
    let waits = task(10, 40, 1, vec![cause(1, 5_000, 0, blocked)], vec![]);
    let advice = advice::of(&waits);
    assert!(advice.iter().any(|it| it.contains("PTHREAD_PRIO_INHERIT")), "{advice:?}");
    let text = text(&Causes { tasks: vec![waits], ..Causes::default() }, &Page::default());
    let expected = "waited for t20\\u{1b} (FIFO 20): a lock";
    let evidence = "priority inversion: t20\\u{1b} was preempted by t50";
    assert!(text.contains(expected) && text.contains(evidence), "{text}");
}

#[test]
fn a_backlog_has_what_held_up_the_job_before() {
    let mut backlog = part(Kind::Backlog, None, 0, 700);
    let (thread, parts) = ("t10".to_owned(), vec![part(Kind::Preempted, Some(50), 0, 700)]);
    let before = Chain { thread, tid: 10, role: Role::Previous, inversion: false, parts };
    backlog.waited_for = Some(Box::new(before));
    let second = LateJob { phase: 1, ..job(1, vec![backlog.clone()]) };
    let tasks = vec![task(10, 40, 1, vec![cause(1, 700, 0, backlog)], vec![second])];
    let text = text(&Causes { tasks, ..Causes::default() }, &Page::default());
    assert!(text.contains("previous job was late  it was preempted by t50"), "{text}");
    assert!(text.contains("worst: job 1 of phase 1 at"), "{text}");
}

#[test]
fn json_has_every_part() {
    let json: serde_json::Value = serde_json::from_str(&json(&why())).expect("JSON");
    let job = &json["jobs"][0];
    assert_eq!((job["job"].as_u64(), job["cause"].as_str()), (Some(4), Some("preempted")));
    let parts = job["parts"].as_array().expect("parts");
    let sum: u64 = parts.iter().filter_map(|part| part["ns"].as_u64()).sum();
    assert_eq!(Some(sum), job["response_ns"].as_u64());
    assert_eq!(parts[1]["tid"], 90);
    assert_eq!(json["tasks"][0]["causes"][0]["jobs"], 2);
}

#[test]
fn a_recording_without_jobs_says_so() {
    let text = text(&Causes::default(), &Page::default());
    assert_eq!(text, "No real-time thread had jobs: nothing to explain.\n");
}
