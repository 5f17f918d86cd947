//! One example of each reason.

use crate::script::{at, events, us};
use punctual_causes::{Culprit, Explanation, Faults, History, Interrupt, Job, Kind, Loss, Role, main_cause};
use punctual_model::Duration;

/// Thread 10 arrives at 100 µs, and its job ends at `end`.
fn job(start: u64, end: u64) -> Job {
    Job {
        thread: 10,
        phase: 0,
        number: 7,
        begin: at(100),
        previous_end: Some(at(50)),
        start: at(start),
        end: at(end),
        cost: None,
        release: None,
    }
}

fn explained(job: Job, script: &str) -> Explanation {
    with_losses(job, script, Vec::new())
}

fn with_losses(job: Job, script: &str, losses: Vec<Loss>) -> Explanation {
    History::new(at(0), at(1_000_000), &events(script), losses).explain(job)
}

/// Kind, culprit and microseconds of each part.
fn shown(explanation: &Explanation) -> Vec<String> {
    let sum = explanation.parts.iter().fold(Duration::ZERO, |sum, part| sum + part.time);
    assert_eq!(sum, explanation.job.time(), "the sum of {explanation:?}");
    let culprit = |culprit: Option<Culprit>| match culprit {
        None => String::new(),
        Some(Culprit::Thread(thread)) => format!(" {thread}"),
        Some(Culprit::Interrupt(Interrupt::Soft(number))) => format!(" soft{number}"),
        Some(Culprit::Interrupt(Interrupt::Device { number, .. })) => format!(" device{number}"),
        Some(Culprit::Interrupt(interrupt)) => format!(" {interrupt:?}"),
        Some(Culprit::Job(number)) => format!(" job{number}"),
    };
    let shown = |part: &punctual_causes::Part| {
        format!("{}{} {}", part.kind.name(), culprit(part.culprit), part.time.ns() / 1_000)
    };
    explanation.parts.iter().map(shown).collect()
}

/// A sleep of thread 10 from 50 µs until it is woken at `woken`.
fn woken(woken: u64) -> String {
    format!("0 cpu0 in 10/80\n50 cpu0 out 10/80 asleep\n{woken} cpu0 woken 10 interrupt\n")
}

#[test]
fn a_prompt_job_is_its_own() {
    let of = explained(job(110, 300), &(woken(105) + "110 cpu0 in 10/80\n300 cpu0 out 10/80 asleep"));
    assert_eq!(shown(&of), ["late-wakeup 5", "dispatch 5", "own 190"]);
}

/// Thread 10 is preempted on cpu0, and moved to cpu1, which 30 has; nobody sees when.
#[test]
fn it_waits_where_it_was_moved_to() {
    let script = woken(105)
        + "0 cpu1 in 30/90
        110 cpu0 in 10/80\n150 cpu0 out 10/80\n150 cpu0 in 20/99\n160 cpu0 out 20/99 asleep\n160 cpu0 in 0
        500 cpu1 out 30/90 asleep\n500 cpu1 in 0\n510 cpu1 out 0\n510 cpu1 in 10/80
        600 cpu1 out 10/80 asleep";
    let parts =
        ["late-wakeup 5", "dispatch 5", "own 40", "preempted 20 10", "preempted 30 340", "dispatch 10"];
    let of = explained(job(110, 600), &script);
    assert_eq!(shown(&of), [&parts[..], &["own 90"]].concat());
    // Seen, the same.
    let moved = script.replace("\n160 cpu0 out 20/99", "\n160 cpu0 moved 10 1\n160 cpu0 out 20/99");
    assert_eq!(shown(&explained(job(110, 600), &moved)), shown(&of));
}

/// The same beside a less urgent thread on cpu0, after a contradiction there.
#[test]
fn it_waits_there_whoever_has_the_processor_that_it_left() {
    let script = "0 cpu0 in 60/20\n".to_owned()
        + &woken(105)
        + "0 cpu1 in 30/90
        110 cpu0 in 10/80\n150 cpu0 out 10/80\n150 cpu0 in 20/99\n160 cpu0 out 20/99 asleep\n160 cpu0 in 50
        500 cpu1 out 30/90 asleep\n500 cpu1 in 10/80\n600 cpu1 out 10/80 asleep\n700 cpu0 out 50 asleep";
    let parts = ["late-wakeup 5", "dispatch 5", "own 40", "preempted 20 10", "preempted 30 340", "own 100"];
    assert_eq!(shown(&explained(job(110, 600), &script)), parts);
}

/// Moved by the kernel's own thread, it may wait on either processor.
#[test]
fn it_waits_on_either_of_two_busy_processors() {
    let script = woken(105)
        + "0 cpu1 in 30/90
        110 cpu0 in 10/80\n150 cpu0 out 10/80\n150 cpu0 in 20/99\n160 cpu0 out 20/99 asleep\n160 cpu0 in 40/80
        500 cpu1 out 30/90 asleep\n500 cpu1 in 10/80\n600 cpu1 out 10/80 asleep\n700 cpu0 out 40/80 asleep";
    let parts = ["late-wakeup 5", "dispatch 5", "own 40", "preempted 20 10", "unknown 340", "own 100"];
    assert_eq!(shown(&explained(job(110, 600), &script)), parts);
}

/// Thread 10 waits for 20 on cpu0, and is pulled to cpu1 when 30 has left that.
#[test]
fn it_waits_where_it_was_until_it_is_pulled_away() {
    let script = woken(105)
        + "0 cpu1 in 30/90
        110 cpu0 in 10/80\n150 cpu0 out 10/80\n150 cpu0 in 20/99
        500 cpu1 out 30/90 asleep\n500 cpu1 in 10/80\n600 cpu1 out 10/80 asleep\n700 cpu0 out 20/99 asleep";
    let parts = ["late-wakeup 5", "dispatch 5", "own 40", "preempted 20 350", "own 100"];
    assert_eq!(shown(&explained(job(110, 600), &script)), parts);
}

/// A thread that is woken again has run and fallen asleep meanwhile, though nobody saw that.
#[test]
fn a_second_wake_up_reveals_a_missing_turn() {
    let script = woken(105) + "0 cpu1 in 20\n10105 cpu0 woken 10 interrupt\n10110 cpu0 in 10/80";
    assert_eq!(shown(&explained(job(110, 300), &script)), ["late-wakeup 5", "unknown 195"]);
}

/// 20 may have left its processor for good, so 30 may not be the one that it was kept for.
#[test]
fn favour_is_unknown_after_a_missing_switch() {
    let wanted = "0 cpu0 in 20/90\n20 cpu0 out 20/90\n20 cpu0 in 40/99\n";
    let seen = "30 cpu0 out 40/99 asleep\n30 cpu0 in 40/99\n40 cpu0 out 40/99 asleep\n40 cpu0 in 30/10\n";
    let missing = "40 cpu0 out 50/99 asleep\n40 cpu0 in 30/10\n";
    let rest =
        "105 cpu1 woken 10 interrupt\n110 cpu0 out 30/10 asleep\n110 cpu0 in 10/80\n300 cpu0 out 10/80";
    let sleep = "0 cpu1 in 10/80\n10 cpu1 out 10/80 asleep\n";
    let of = |middle: &str| shown(&explained(job(110, 300), &[sleep, wanted, middle, rest].concat()));
    assert_eq!(of(seen), ["late-wakeup 5", "throttled 30 5", "own 190"]);
    assert_eq!(of(missing), ["late-wakeup 5", "unknown 5", "own 190"]);
}

/// Whether it is moved cannot be known where its next event was lost.
#[test]
fn a_free_processor_is_no_reason_before_a_loss() {
    let script = woken(105)
        + "110 cpu0 in 10/80\n150 cpu0 out 10/80\n150 cpu0 in 20/99\n160 cpu0 out 20/99 asleep\n160 cpu0 in 0
        600 cpu1 in 10/80\n700 cpu1 out 10/80 asleep";
    let losses = vec![Loss { since: at(300), until: at(550) }];
    let parts = ["late-wakeup 5", "dispatch 5", "own 40", "preempted 20 10", "unknown 440", "own 100"];
    assert_eq!(shown(&with_losses(job(110, 700), &script, losses)), parts);
}

#[test]
fn preemption_by_priority() {
    let script = woken(105)
        + "110 cpu0 in 10/80
           200 cpu0 out 10/80 preempted
           200 cpu0 in 20/90
           500 cpu0 out 20/90 asleep
           500 cpu0 in 10/80
           600 cpu0 out 10/80 asleep";
    let of = explained(job(110, 600), &script);
    assert_eq!(shown(&of), ["late-wakeup 5", "dispatch 5", "own 90", "preempted 20 300", "own 100"]);
    let cause = main_cause(&of, Duration::ZERO).expect("a cause");
    assert_eq!(
        (cause.kind, cause.culprit, cause.time),
        (Kind::Preempted, Some(Culprit::Thread(20)), us(300))
    );
}

#[test]
fn equal_and_lesser_priorities() {
    let behind = |who: &str| {
        let script = woken(105)
            + &format!(
                "60 cpu0 in {who}\n400 cpu0 out {who} preempted\n400 cpu0 in 10/80\n500 cpu0 out 10/80 asleep"
            );
        let mut events = events(&script);
        events.sort_by_key(|event| event.at);
        shown(&History::new(at(0), at(1_000), &events, Vec::new()).explain(job(400, 500)))
    };
    assert_eq!(behind("20/80"), ["late-wakeup 5", "queued 20 295", "own 100"]);
    assert_eq!(behind("20/10"), ["late-wakeup 5", "dispatch 20 295", "own 100"]);
    assert_eq!(behind("20"), ["late-wakeup 5", "dispatch 20 295", "own 100"]);
}

#[test]
fn the_kernel_keeps_time_for_less_urgent_threads() {
    let script = woken(105)
        + "110 cpu0 in 10/80
           200 cpu0 out 10/80 preempted
           200 cpu0 in 20/90
           300 cpu0 out 20/90 asleep
           300 cpu0 in 21
           350 cpu0 out 21 preempted
           350 cpu0 in 10/80
           400 cpu0 out 10/80 asleep";
    assert_eq!(
        shown(&explained(job(110, 400), &script)),
        ["late-wakeup 5", "dispatch 5", "own 90", "preempted 20 100", "throttled 21 50", "own 50"]
    );
    // The same at once: its runtime is used up.
    let script = woken(105)
        + "110 cpu0 in 10/80
           200 cpu0 out 10/80 preempted
           200 cpu0 in 21
           350 cpu0 out 21 preempted
           350 cpu0 in 10/80
           400 cpu0 out 10/80 asleep";
    assert_eq!(
        shown(&explained(job(110, 400), &script)),
        ["late-wakeup 5", "dispatch 5", "own 90", "throttled 21 150", "own 50"]
    );
    // Or nobody else wants the processor.
    let script = woken(105)
        + "110 cpu0 in 10/80
           200 cpu0 out 10/80 preempted
           200 cpu0 in 0
           250 cpu0 out 0 preempted
           250 cpu0 in 21
           260 cpu0 out 21 asleep
           260 cpu0 in 0
           350 cpu0 out 0 preempted
           350 cpu0 in 10/80
           400 cpu0 out 10/80 asleep";
    assert_eq!(
        shown(&explained(job(110, 400), &script)),
        [
            "late-wakeup 5",
            "dispatch 5",
            "own 90",
            "throttled 50",
            "throttled 21 10",
            "throttled 90",
            "own 50"
        ]
    );
    // The same after somebody else, if it is a real-time thread: an ordinary one may be elsewhere.
    let later = |thread: &str, other: &str| {
        let script = woken(105)
            + &format!(
                "110 cpu0 in {thread}
                 200 cpu0 out {thread} preempted
                 200 cpu0 in {other}
                 280 cpu0 out {other} asleep
                 280 cpu0 in 0
                 350 cpu0 out 0 preempted
                 350 cpu0 in {thread}
                 400 cpu0 out {thread} asleep"
            );
        shown(&explained(job(110, 400), &script)).split_off(3)
    };
    assert_eq!(later("10/80", "20/90"), ["preempted 20 80", "throttled 70", "own 50"]);
    assert_eq!(later("10/80", "21"), ["throttled 21 80", "throttled 70", "own 50"]);
    assert_eq!(later("10/100", "21"), ["throttled 150", "own 50"], "whoever ran");
    assert_eq!(later("10", "20/90"), ["preempted 20 80", "dispatch 70", "own 50"]);
}

/// A thread is woken while the kernel gives its processor to ordinary threads, although a real-time thread
/// that never waits wants it.
#[test]
fn the_kernel_kept_time_for_less_urgent_threads_before() {
    let script = |hog: &str| {
        format!(
            "0 cpu0 in 10/80
             50 cpu0 out 10/80 asleep
             50 cpu0 in 30/10
             90 cpu0 out 30/10 {hog}
             90 cpu0 in 21
             95 cpu0 out 21 preempted
             95 cpu0 in 22
             105 cpu0 woken 10 interrupt
             400 cpu0 out 22 preempted
             400 cpu0 in 10/80
             500 cpu0 out 10/80 asleep"
        )
    };
    let of = |hog: &str| shown(&explained(job(400, 500), &script(hog)));
    assert_eq!(of("asleep"), ["late-wakeup 5", "dispatch 22 295", "own 100"]);
    assert_eq!(of("preempted"), ["late-wakeup 5", "throttled 22 295", "own 100"]);
    // Whoever had the processor in between.
    let script = script("preempted").replace(
        "95 cpu0 out 21 preempted",
        "92 cpu0 out 21 preempted\n92 cpu0 in 40/90\n95 cpu0 out 40/90 asleep",
    );
    assert_eq!(shown(&explained(job(400, 500), &script)), ["late-wakeup 5", "throttled 22 295", "own 100"]);
}

/// It had begun to before the thread was woken, and nobody else waited: the next choice shows it.
#[test]
fn the_kernel_still_keeps_time_for_less_urgent_threads() {
    let script = |next: &str| {
        format!(
            "0 cpu0 in 10/80
             50 cpu0 out 10/80 asleep
             50 cpu0 in 22
             105 cpu0 woken 10 interrupt
             200 cpu0 out 22 preempted
             200 cpu0 in {next}
             400 cpu0 out {next} preempted
             400 cpu0 in 10/80
             500 cpu0 out 10/80 asleep"
        )
    };
    let of = |next: &str| shown(&explained(job(400, 500), &script(next)));
    assert_eq!(of("21"), ["late-wakeup 5", "throttled 22 95", "throttled 21 200", "own 100"]);
    assert_eq!(of("21/90"), ["late-wakeup 5", "dispatch 22 95", "preempted 21 200", "own 100"]);
    // Without the choice, nothing is known of the time before it.
    let lost = vec![Loss { since: at(190), until: at(210) }];
    let of = shown(&with_losses(job(400, 500), &script("21"), lost));
    assert_eq!(of, ["late-wakeup 5", "unknown 295", "own 100"]);
}

/// Real-time throttling leaves a processor idle if there is no ordinary thread.
#[test]
fn a_processor_that_idles_may_be_wanted() {
    let script = "0 cpu0 in 10/80
                  50 cpu0 out 10/80 asleep
                  50 cpu0 in 30/10
                  90 cpu0 out 30/10 preempted
                  90 cpu0 in 0
                  95 cpu0 out 0 preempted
                  95 cpu0 in 22
                  105 cpu0 woken 10 interrupt
                  400 cpu0 out 22 preempted
                  400 cpu0 in 10/80
                  500 cpu0 out 10/80 asleep";
    assert_eq!(shown(&explained(job(400, 500), script)), ["late-wakeup 5", "throttled 22 295", "own 100"]);
}

#[test]
fn a_ready_thread_waits_where_it_was_moved_to() {
    let script = woken(105)
        + "60 cpu1 in 21/90
           110 cpu0 in 10/80
           200 cpu0 out 10/80 preempted
           200 cpu0 in 20/90
           250 cpu0 moved 10 1
           300 cpu0 out 20/90 asleep
           400 cpu1 out 21/90 asleep
           400 cpu1 in 10/80
           450 cpu1 out 10/80 asleep";
    let parts = ["late-wakeup 5", "dispatch 5", "own 90", "preempted 20 50", "preempted 21 150", "own 50"];
    assert_eq!(shown(&explained(job(110, 450), &script)), parts);
    // Of who is woken, the first queue is known only from that.
    let script = "0 cpu0 in 10/80\n50 cpu0 out 10/80 asleep\n50 cpu0 in 20/90\n60 cpu1 in 21/90\n".to_owned()
        + "105 cpu2 woken 10 interrupt
           250 cpu0 moved 10 1
           400 cpu1 out 21/90 asleep
           400 cpu1 in 10/80
           450 cpu1 out 10/80 asleep";
    let parts = ["late-wakeup 5", "preempted 20 145", "preempted 21 150", "own 50"];
    assert_eq!(shown(&explained(job(400, 450), &script)), parts);
}

#[test]
fn who_is_woken_while_falling_asleep_is_not_throttled() {
    let script = woken(105)
        + "110 cpu0 in 10/80
           150 cpu1 woken 10 30
           155 cpu0 out 10/80 asleep
           155 cpu0 in 21
           205 cpu0 out 21 preempted
           205 cpu0 in 10/80
           300 cpu0 out 10/80 asleep";
    assert_eq!(
        shown(&explained(job(110, 300), &script)),
        ["late-wakeup 5", "dispatch 5", "own 45", "dispatch 21 50", "own 95"]
    );
}

#[test]
fn a_lock_that_changes_hands() {
    // It was 30's when 10 began to wait, and 20's when the wait ended.
    let script = woken(105)
        + "106 cpu1 in 30/10
           110 cpu0 in 10/80
           150 cpu0 out 10/80 asleep 30
           200 cpu1 out 30/10 asleep
           200 cpu1 in 20/90
           800 cpu1 woken 10 20
           805 cpu0 in 10/80
           900 cpu0 out 10/80 asleep";
    let of = explained(job(110, 900), &script);
    let chain = of.parts[3].chain.as_deref().expect("a chain");
    assert_eq!((of.parts[3].culprit, chain.role), (Some(Culprit::Thread(20)), Role::Waker));
    assert_eq!(chain.parts.last().map(|part| (part.kind, part.time)), Some((Kind::Own, us(600))));
}

#[test]
fn a_lock_and_an_inversion() {
    // Thread 30 owns the lock on processor 1, where 25 preempts it: less urgent than 10.
    let script = woken(105)
        + "106 cpu1 in 30/10
           110 cpu0 in 10/80
           150 cpu0 out 10/80 asleep 30
           200 cpu1 out 30/10 preempted
           200 cpu1 in 25/50
           700 cpu1 out 25/50 asleep
           700 cpu1 in 30/10
           800 cpu1 woken 10 30
           805 cpu0 in 10/80
           900 cpu0 out 10/80 asleep";
    let of = explained(job(110, 900), &script);
    assert_eq!(
        shown(&of),
        ["late-wakeup 5", "dispatch 5", "own 40", "blocked 30 650", "dispatch 5", "own 95"]
    );
    let chain = of.parts[3].chain.as_deref().expect("a chain");
    assert_eq!((chain.thread, chain.role, chain.inversion), (30, Role::Owner, true));
    let times: Vec<_> = chain.parts.iter().map(|part| (part.kind, part.culprit, part.time)).collect();
    assert_eq!(
        times,
        [
            (Kind::Own, None, us(50)),
            (Kind::Preempted, Some(Culprit::Thread(25)), us(500)),
            (Kind::Own, None, us(100))
        ]
    );
}

#[test]
fn a_backlog_is_the_job_before() {
    let script = "0 cpu0 in 10/80\n120 cpu0 out 10/80\n120 cpu0 in 20/90\n200 cpu0 out 20/90 asleep
        200 cpu0 in 10/80\n300 cpu0 fault 10\n400 cpu0 out 10/80 asleep";
    let late = Job { previous_end: Some(at(250)), ..job(250, 400) };
    let of = explained(late, script);
    assert_eq!(shown(&of), ["backlog job6 150", "own 150"]);
    assert_eq!(of.faults, Faults { minor: 1, major: 0 });
    let before = of.parts[0].chain.as_deref().expect("what the job before did");
    assert_eq!((before.thread, before.role), (10, Role::Previous));
    let times: Vec<_> = before.parts.iter().map(|part| (part.kind, part.culprit, part.time)).collect();
    let preempted = (Kind::Preempted, Some(Culprit::Thread(20)), us(80));
    assert_eq!(times, [(Kind::Own, None, us(20)), preempted, (Kind::Own, None, us(50))]);
    // Its end is not known, but the thread did not sleep until this one ran.
    assert_eq!(shown(&explained(Job { previous_end: None, ..late }, script)), shown(&of));
}

#[test]
fn a_thread_that_slept_has_no_backlog() {
    let slept = Job { previous_end: None, ..job(260, 400) };
    let script = "0 cpu0 in 10/80\n150 cpu0 out 10/80 asleep\n250 cpu0 woken 10 interrupt
        260 cpu0 in 10/80\n400 cpu0 out 10/80 asleep";
    assert_eq!(shown(&explained(slept, script))[0], "own 50");
    assert_eq!(shown(&explained(slept, &(woken(250) + "260 cpu0 in 10/80")))[0], "late-wakeup 150");
}

#[test]
fn interrupts_and_the_hypervisor_take_time() {
    let script = woken(105)
        + "110 cpu0 stolen 0
           110 cpu0 in 10/80
           200 cpu0 began 9
           210 cpu0 began timer
           215 cpu0 ended timer
           240 cpu0 ended 9
           240 cpu0 began soft3
           300 cpu0 ended soft3
           500 cpu0 stolen 60
           500 cpu0 out 10/80 asleep";
    assert_eq!(
        shown(&explained(job(110, 500), &script)),
        [
            "late-wakeup 5",
            "dispatch 5",
            "own 90",
            "interrupt device9 10",
            "interrupt Timer 5",
            "interrupt device9 25",
            "softirq soft3 60",
            "own 140",
            "steal 60"
        ]
    );
}

#[test]
fn throttled_and_stopped() {
    let script = woken(105)
        + "105 cpu0 in 10/80
           200 cpu0 out 10/80 throttled
           250 cpu0 in 10/80
           300 cpu0 out 10/80 stopped
           400 cpu0 woken 10 99
           400 cpu0 in 10/80
           450 cpu0 out 10/80 asleep";
    assert_eq!(
        shown(&explained(job(105, 450), &script)),
        ["late-wakeup 5", "own 95", "throttled 50", "own 50", "stopped 100", "own 50"]
    );
}

#[test]
fn what_was_not_seen_is_unknown() {
    let preempted = "110 cpu0 in 10/80
                     200 cpu0 out 10/80 preempted
                     200 cpu0 in 20/90";
    // The switch back is missing.
    let script = woken(105) + preempted + "\n600 cpu0 out 10/80 asleep";
    assert_eq!(
        shown(&explained(job(110, 600), &script)),
        ["late-wakeup 5", "dispatch 5", "own 90", "unknown 400"]
    );
    // The wake-up is missing.
    let script = woken(105)
        + "110 cpu0 in 10/80
           200 cpu0 out 10/80 asleep
           300 cpu0 in 10/80
           600 cpu0 out 10/80 asleep";
    assert_eq!(
        shown(&explained(job(110, 600), &script)),
        ["late-wakeup 5", "dispatch 5", "own 90", "unknown 100", "own 300"]
    );
    // Nothing was seen.
    assert_eq!(shown(&explained(job(110, 500), "")), ["unknown 400"]);
}

#[test]
fn what_was_lost_is_unknown() {
    let from = |since, until| vec![Loss { since: at(since), until: at(until) }];
    let of = |job, script: &str, losses| shown(&with_losses(job, script, losses));
    // It may have slept and run again meanwhile.
    let script = woken(105) + "110 cpu0 in 10/80\n500 cpu0 out 10/80 asleep";
    assert_eq!(
        of(job(110, 500), &script, from(200, 400)),
        ["late-wakeup 5", "dispatch 5", "own 90", "unknown 300"]
    );
    // What began within a loss may have ended within it, too.
    let script = woken(105)
        + "110 cpu0 in 10/80
           200 cpu0 out 10/80 preempted
           200 cpu0 in 20/90
           300 cpu0 out 20/90 asleep
           300 cpu0 in 10/80
           500 cpu0 out 10/80 asleep";
    assert_eq!(
        of(job(110, 500), &script, from(150, 250)),
        ["late-wakeup 5", "dispatch 5", "own 40", "unknown 150", "own 200"]
    );
    // Who woke it, and where it waited until then, is not known from what came after.
    let script = woken(105)
        + "110 cpu0 in 10/80
           200 cpu0 out 10/80 asleep
           300 cpu1 in 30/10
           600 cpu0 woken 10/80 30
           610 cpu0 in 10/80
           700 cpu0 out 10/80 asleep";
    assert_eq!(
        of(job(110, 700), &script, from(400, 500)),
        ["late-wakeup 5", "dispatch 5", "own 90", "blocked 200", "unknown 210", "own 90"]
    );
    let script = woken(105) + "250 cpu1 in 10/80\n300 cpu1 out 10/80 asleep";
    assert_eq!(of(job(250, 300), &script, from(150, 200)), ["late-wakeup 5", "unknown 145", "own 50"]);
    // It ended before, or began after.
    let script = woken(105) + "110 cpu0 in 10/80\n500 cpu0 out 10/80 asleep";
    for losses in [from(500, 600), from(0, 0)] {
        assert_eq!(of(job(110, 500), &script, losses), ["late-wakeup 5", "dispatch 5", "own 390"]);
    }
}

#[test]
fn the_release_stands_for_a_wake_up_that_was_not_seen() {
    let script = "0 cpu0 in 10/80
                  50 cpu0 out 10/80 asleep
                  50 cpu0 in 20/90
                  300 cpu0 out 20/90 asleep
                  300 cpu0 in 10/80
                  400 cpu0 out 10/80 asleep";
    assert_eq!(shown(&explained(job(300, 400), script)), ["unknown 200", "own 100"]);
    let release = punctual_model::Window::new(at(105), at(107));
    assert_eq!(
        shown(&explained(Job { release, ..job(300, 400) }, script)),
        ["late-wakeup 5", "unknown 2", "preempted 20 193", "own 100"]
    );
}

#[test]
fn a_thread_runs_for_no_longer_than_the_kernel_counted() {
    // Two switches are missing.
    let script = woken(105) + "105 cpu0 in 10/80\n1000 cpu0 out 10/80 asleep";
    let of = |cost| shown(&explained(Job { cost: Some(us(cost)), ..job(105, 1_000) }, &script));
    assert_eq!(of(880), ["late-wakeup 5", "own 895"]);
    assert_eq!(of(500), ["late-wakeup 5", "own 500", "unknown 395"]);
}

#[test]
fn only_what_is_unusual_makes_a_job_late() {
    let script = woken(105)
        + "105 cpu0 in 10/80
           1105 cpu0 out 10/80 preempted
           1105 cpu0 in 20/90
           1505 cpu0 out 20/90 asleep
           1505 cpu0 in 10/80
           1600 cpu0 out 10/80 asleep";
    let of = explained(job(105, 1600), &script);
    let cause = |usual_cost| main_cause(&of, usual_cost).map(|part| part.kind);
    assert_eq!(cause(Duration::ZERO), Some(Kind::Own));
    assert_eq!(cause(us(1_000)), Some(Kind::Preempted));
}

#[test]
fn what_is_unknown_may_have_made_another_part_the_longest() {
    let script = woken(105)
        + "105 cpu0 in 10/80
           400 cpu0 out 10/80 preempted
           400 cpu0 in 20/90
           800 cpu0 out 20/90 asleep
           800 cpu0 in 10/80
           900 cpu0 out 10/80 asleep";
    let cause = |since, until| {
        let loss = Loss { since: at(since), until: at(until) };
        main_cause(&with_losses(job(105, 900), &script, vec![loss]), us(350)).map(|part| part.kind)
    };
    // Of the 400 us, 300 are known, and there are 45 beyond what is usual.
    assert_eq!(cause(700, 800), Some(Kind::Preempted));
    assert_eq!(cause(550, 800), Some(Kind::Unknown));
}

#[test]
fn whose_priority_is_unknown_is_not_blamed() {
    let script = woken(105)
        + "110 cpu0 in 10/80
           200 cpu0 out 10/80 preempted
           200 cpu0 in 20/?
           500 cpu0 out 20/? asleep
           500 cpu0 in 10/80
           600 cpu0 out 10/80 asleep";
    let of = explained(job(110, 600), &script);
    assert_eq!(shown(&of), ["late-wakeup 5", "dispatch 5", "own 90", "unknown 300", "own 100"]);
}
