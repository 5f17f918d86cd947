use super::*;
use crate::Page;
use punctual_causes::{Job, Role, Wait};

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

fn part(kind: Kind, culprit: Option<u32>, from: u64, us: u64) -> Part {
    Part {
        kind,
        culprit: culprit.map(Culprit::Thread),
        wait: (kind == Kind::Blocked).then(Wait::default),
        from: at(from),
        time: Duration::from_us(us),
        chain: None,
    }
}

fn explanation(number: u64, parts: Vec<Part>, minor: u64) -> Explanation {
    let (begin, last) = (parts[0].from, parts.last().expect("a part"));
    let end = last.from + last.time;
    let job =
        Job { thread: 10, number, begin, previous_end: None, release: None, start: begin, end, cost: None };
    Explanation { job, parts, faults: Faults { minor, major: 0 } }
}

fn who(tid: u32) -> ThreadInfo {
    let name = format!("t{tid}\u{1b}");
    ThreadInfo { tid, name, policy: Some(Policy::Fifo), priority: tid }
}

/// A task with three late jobs: two preempted, one long by itself; the worst two are shown.
fn why() -> Why {
    let usual = Duration::from_us(100);
    let limit = Limit::Period(Duration::from_us(1_000));
    let mut task = LateTask::new(who(10), 40, limit, usual, 2);
    for (number, preempted) in [(3, 950), (4, 1_250)] {
        let parts = vec![part(Kind::Own, None, 0, 100), part(Kind::Preempted, Some(90), 100, preempted)];
        task.add(explanation(number, parts, 0), true, &who);
    }
    task.add(explanation(9, vec![part(Kind::Own, None, 0, 1_100)], 1_200), true, &who);
    let punctual = vec![LateTask::new(who(11), 70, limit, usual, 2)];
    Why { tasks: vec![task], punctual, lacks: vec!["No interrupts.".into()], from: at(0) }
}

#[test]
fn causes_are_summed_up_and_the_worst_jobs_shown() {
    let text = why().text(&Page::default());
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
    assert!(text.contains(other) && text.ends_with("(No interrupts.)\n"), "{text}");
}

#[test]
fn advice_follows_from_causes() {
    let advice = advice::of(&why().tasks[0]);
    assert_eq!(advice.len(), 2, "{advice:?}");
    assert!(advice[0].contains("t90") && advice[1].contains("mlockall"), "{advice:?}");
    let mut waits = why().tasks.remove(0);
    let mut blocked = part(Kind::Blocked, Some(20), 0, 5_000);
    let parts = vec![part(Kind::Preempted, Some(50), 0, 5_000)];
    blocked.chain = Some(Box::new(Chain { thread: 20, role: Role::Owner, parts, inversion: true }));
    waits.add(explanation(20, vec![blocked], 0), true, &who);
    let advice = advice::of(&waits);
    assert!(advice.iter().any(|it| it.contains("PTHREAD_PRIO_INHERIT")), "{advice:?}");
    let text = Why { tasks: vec![waits], ..Why::default() }.text(&Page::default());
    let expected = "waited for t20\\u{1b} (FIFO 20): a lock";
    let evidence = "priority inversion: t20\\u{1b} was preempted by t50";
    assert!(text.contains(expected) && text.contains(evidence), "{text}");
}

#[test]
fn json_has_every_part() {
    let json: serde_json::Value = serde_json::from_str(&why().json()).expect("JSON");
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
    let text = Why::default().text(&Page::default());
    assert_eq!(text, "No real-time thread had jobs: nothing to explain.\n");
}
