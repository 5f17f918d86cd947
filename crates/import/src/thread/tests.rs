use super::*;
use proptest::prelude::*;
use punctual_model::{Object, Policy};

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

fn task() -> TaskRecord {
    TaskRecord {
        tid: 7,
        pid: 7,
        sequence: 0,
        at: at(0),
        begin: Begin::Seen,
        name: "t".into(),
        command: String::new(),
        policy: Policy::Fifo,
        priority: 60,
        nice: None,
        reservation: None,
        affinity: String::new(),
    }
}

const SLEEP: Separator =
    Separator { call: Call::ClockNanosleep, object: Object::Clock { id: 1, absolute: true } };

fn sleep(arrival: u64) -> Option<Entry> {
    Some(Entry { separator: SLEEP, arrival: Some(at(arrival)), always: true })
}

/// What a thread's events become, without the switches.
fn follow(events: impl FnOnce(&mut Thread, Out)) -> Vec<Activation> {
    let mut records = Vec::new();
    let mut out = |record: Record| records.push(record);
    let mut thread = Thread::new(task(), &mut out);
    events(&mut thread, &mut out);
    let activation =
        |record| if let Record::Activation(activation) = record { Some(activation) } else { None };
    records.into_iter().filter_map(activation).collect()
}

const ASLEEP: Leave = Leave::Asleep { interruptible: true };

#[test]
fn a_sleep_until_a_known_time() {
    let seen = follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        thread.enter(at(30), sleep(100), out);
        thread.switch_out(at(35), 0, ASLEEP, out);
        thread.wake(at(101), 1, 0, out);
        thread.switch_in(at(105), 0, out);
        thread.leave(at(107), Some(0), out);
    });
    let resumed = Resumed::new(Some(Window::at(at(101))), at(105));
    let expected = Activation {
        tid: 7,
        sequence: 1,
        separator: SLEEP,
        slept: true,
        stop: at(35),
        cpu: Duration::from_us(25),
        arrival: Some(at(100)),
        resumed: Some(resumed),
    };
    assert_eq!(seen, [expected]);
}

#[test]
fn an_unseen_wake_up_is_a_window_from_the_arrival() {
    let seen = follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        thread.enter(at(30), sleep(100), out);
        thread.switch_out(at(35), 0, ASLEEP, out);
        thread.is_on_processor(at(118));
        thread.leave(at(120), Some(0), out);
        thread.switch_out(at(150), 0, ASLEEP, out);
        thread.switch_in(at(190), 0, out);
    });
    assert_eq!(seen[0].resumed.expect("resumed").release, Window::new(at(100), at(120)));
    // A sleep outside of calls, without a wake-up: from the stop on.
    assert_eq!((seen[1].separator, seen[1].cpu), (Separator::SUSPENSION, Duration::from_us(25 + 32)));
    assert_eq!(seen[1].resumed.expect("resumed").release, Window::new(at(150), at(190)));
}

/// Processor time of each job of a thread that sleeps between them, and the switches that were missing.
fn costs(events: impl FnOnce(&mut Thread, Out)) -> (Vec<u64>, Unseen) {
    let mut unseen = Unseen::default();
    let seen = follow(|thread, out| {
        thread.switch_in(at(5), 0, out);
        thread.switch_out(at(10), 0, ASLEEP, out);
        events(thread, out);
        thread.end(at(1_000), out);
        unseen = thread.unseen();
    });
    let cpu: Vec<u64> = seen.iter().map(|activation| activation.cpu.ns() / 1_000).collect();
    (cpu.windows(2).map(|pair| pair[1] - pair[0]).collect(), unseen)
}

/// Virtual machines hide some switches from tracers.
#[test]
fn a_processor_that_it_was_not_seen_to_get_counts_from_the_last_event_before() {
    let gets = |gets| Unseen { gets, ..Unseen::default() };
    // From its wake-up, the last switch of the processor, and its migration.
    let from = |event: fn(&mut Thread)| {
        costs(|thread, out| {
            thread.wake(at(100), 0, 0, out);
            event(thread);
            thread.switch_out(at(120), 0, ASLEEP, out);
        })
    };
    assert_eq!(from(|_| ()), (vec![20], gets(1)));
    assert_eq!(from(|thread| thread.is_on_processor(at(90))), (vec![20], gets(1)));
    assert_eq!(from(|thread| thread.is_on_processor(at(104))), (vec![16], gets(1)));
    assert_eq!(from(|thread| thread.migrate(at(102))), (vec![18], gets(1)));
    // Without a wake-up, from its last switch; so after it was preempted, whatever it does then.
    let seen = costs(|thread, out| thread.switch_out(at(120), 0, ASLEEP, out));
    assert_eq!(seen, (vec![110], gets(1)));
    let seen = costs(|thread, out| {
        thread.wake(at(100), 0, 0, out);
        thread.switch_in(at(101), 0, out);
        thread.switch_out(at(110), 0, Leave::Preempted, out);
        thread.enter(at(130), None, out);
        thread.switch_out(at(140), 0, Leave::Preempted, out);
        thread.switch_out(at(150), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![49], gets(2)));
}

/// The kernel says how long a thread has run where it leaves its processor, and in between.
#[test]
fn the_kernels_account_counts_where_switches_are_missing() {
    fn us(us: u64) -> Duration {
        Duration::from_us(us)
    }
    let unseen = |accounted, gets, leaves| Unseen { accounted, gets, leaves };
    // It has been accounted for before: what is seen counts, not what the kernel says.
    let after = |events: fn(&mut Thread, Out)| {
        costs(|thread, out| {
            thread.switch_in(at(20), 0, out);
            thread.account(at(28), us(11), out);
            thread.switch_out(at(30), 0, ASLEEP, out);
            events(thread, out);
        })
    };
    // It was not seen to be woken, nor to get the processor.
    let seen = after(|thread, out| {
        thread.leave(at(110), Some(0), out);
        thread.enter(at(112), sleep(200), out);
        thread.account(at(115), us(12), out);
        thread.switch_out(at(116), 0, ASLEEP, out);
        thread.switch_in(at(205), 0, out);
        thread.leave(at(206), Some(0), out);
    });
    assert_eq!(seen, (vec![10, 13], unseen(1, 0, 0)));
    // The account itself is the first sign of it; a second one goes on from there.
    let seen = after(|thread, out| {
        thread.account(at(115), us(12), out);
        thread.account(at(120), us(5), out);
        thread.switch_out(at(121), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![10, 18], unseen(1, 0, 0)));
    // A call that ends at once in between has the time up to its beginning.
    let seen = after(|thread, out| {
        thread.leave(at(110), Some(0), out);
        thread.enter(at(112), sleep(100), out);
        thread.account(at(115), us(12), out);
        thread.leave(at(117), Some(0), out);
        thread.switch_out(at(120), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![10, 9, 8], unseen(1, 0, 0)));
    // More than there was time for is damage.
    let seen = after(|thread, out| {
        thread.account(at(115), us(500), out);
        thread.switch_out(at(116), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![10, 86], unseen(1, 0, 0)));
    // Where that is missing as well, all the time counts.
    let seen = after(|thread, out| {
        thread.leave(at(110), Some(0), out);
        thread.switch_out(at(116), 0, ASLEEP, out);
        thread.account(at(220), us(7), out);
        thread.switch_out(at(221), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![10, 86, 8], unseen(1, 1, 0)));
    // It had left where the kernel said so, before it got the processor again.
    let seen = after(|thread, out| {
        thread.switch_in(at(100), 0, out);
        thread.account(at(104), us(5), out);
        thread.switch_in(at(150), 0, out);
        thread.account(at(157), us(8), out);
        thread.switch_out(at(158), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![10, 12], unseen(1, 0, 0)));
    // One that comes late says nothing new.
    let seen = after(|thread, out| {
        thread.account(at(30), us(10), out);
        thread.switch_in(at(100), 0, out);
        thread.switch_out(at(110), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![10, 10], unseen(0, 0, 0)));
}

#[test]
fn a_processor_that_it_was_not_seen_to_leave_counts_all_the_time() {
    let seen = costs(|thread, out| {
        thread.wake(at(100), 0, 0, out);
        thread.switch_in(at(101), 0, out);
        thread.switch_in(at(131), 0, out);
        thread.switch_out(at(141), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![40], Unseen { leaves: 1, ..Unseen::default() }));
}

/// It was woken at 100, ran and slept again until 140, and neither switch is in the trace.
#[test]
fn a_job_of_which_only_the_wake_ups_were_seen_counts_until_the_next() {
    let seen = costs(|thread, out| {
        thread.begin_to_wake(at(100), 0, 0, out);
        thread.wake(at(101), 0, 0, out);
        thread.begin_to_wake(at(140), 0, 0, out);
        thread.switch_in(at(141), 0, out);
        thread.switch_out(at(150), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![40, 9], Unseen { gets: 1, leaves: 1, ..Unseen::default() }));
}

/// Its task ends at the gap, and so does what is known of it.
#[test]
fn nothing_counts_from_before_a_gap() {
    let seen = costs(|thread, out| {
        thread.lose();
        thread.switch_out(at(120), 0, ASLEEP, out);
        thread.wake(at(200), 0, 0, out);
        thread.switch_in(at(201), 0, out);
        thread.switch_out(at(208), 0, ASLEEP, out);
    });
    assert_eq!(seen, (vec![7], Unseen::default()));
}

/// A call that ends within a microsecond.
fn at_once(call: Call, always: bool, result: i64) -> Vec<Activation> {
    follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        thread.enter(
            at(30),
            Some(Entry { separator: Separator { call, object: Object::None }, arrival: None, always }),
            out,
        );
        thread.leave(at(31), Some(result), out);
    })
}

#[test]
fn a_call_that_did_not_sleep_is_back_to_back_only_if_it_could_have() {
    let seen = at_once(Call::ClockNanosleep, true, 0);
    assert_eq!((seen[0].slept, seen[0].resumed.expect("resumed").release), (false, None));
    assert_eq!((seen[0].stop, seen[0].cpu), (at(30), Duration::from_us(20)));
    let separates = |call, always, result| !at_once(call, always, result).is_empty();
    assert!(separates(Call::Read, true, 8) && !separates(Call::Read, false, 8));
    // A futex that had changed is an event that had come; a descriptor that had nothing was only looked at.
    assert!(separates(Call::FutexWait, true, -11) && !separates(Call::Read, true, -11));
    assert!(separates(Call::Poll, true, 1) && !separates(Call::Poll, true, 0));
    assert!(!separates(Call::FutexWait, true, -4));
}

#[test]
fn a_signal_without_a_handler_does_not_end_a_call() {
    let seen = follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        thread.enter(at(30), sleep(100), out);
        thread.switch_out(at(35), 0, ASLEEP, out);
        thread.wake(at(50), 0, 0, out);
        thread.switch_in(at(52), 0, out);
        thread.leave(at(53), Some(-514), out);
        thread.enter(at(54), sleep(100), out);
        thread.switch_out(at(55), 0, ASLEEP, out);
        thread.wake(at(101), 0, 0, out);
        thread.switch_in(at(103), 0, out);
        thread.leave(at(104), Some(0), out);
    });
    assert_eq!(seen.len(), 1);
    // What it took between is in the cost of the job before.
    assert_eq!(
        (seen[0].stop, seen[0].cpu, seen[0].arrival),
        (at(35), Duration::from_us(25 + 3), Some(at(100)))
    );
    assert_eq!(seen[0].resumed.expect("resumed").release, Some(Window::at(at(101))));
}

/// restart_syscall(2) is a call of its own, which not every source shows.
#[test]
fn a_restart_continues_the_same_call() {
    for seen_restart in [false, true] {
        let seen = follow(|thread, out| {
            thread.switch_in(at(10), 0, out);
            thread.enter(at(30), sleep(100), out);
            thread.switch_out(at(35), 0, ASLEEP, out);
            thread.wake(at(50), 0, 0, out);
            thread.switch_in(at(52), 0, out);
            thread.leave(at(53), Some(-516), out);
            if seen_restart {
                thread.restart(at(54), out);
            }
            thread.switch_out(at(55), 0, ASLEEP, out);
            thread.wake(at(101), 0, 0, out);
            thread.switch_in(at(103), 0, out);
            if seen_restart {
                thread.leave(at(104), Some(0), out);
            }
            // The next job's own sleep is another call, though it looks the same.
            thread.enter(at(130), sleep(100), out);
            thread.leave(at(131), Some(0), out);
        });
        let releases: Vec<_> =
            seen.iter().map(|activation| activation.resumed.expect("resumed").release).collect();
        assert_eq!(releases, [Some(Window::at(at(101))), None], "{seen_restart}");
    }
}

#[test]
fn a_call_that_waits_for_a_handler_ends_with_it() {
    let seen = follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        let pause = Separator { call: Call::Pause, object: Object::None };
        thread.enter(at(30), Some(Entry { separator: pause, arrival: None, always: true }), out);
        thread.switch_out(at(35), 0, ASLEEP, out);
        thread.wake(at(50), 0, 9, out);
        thread.switch_in(at(52), 0, out);
        thread.leave(at(53), Some(-514), out);
    });
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].resumed.expect("resumed").start, at(52));
}

#[test]
fn an_unseen_stop_counts_as_a_sleep_if_the_call_waits() {
    let seen = follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        thread.enter(at(30), sleep(100), out);
        thread.switch_in(at(105), 0, out);
        thread.leave(at(106), Some(0), out);
        thread.switch_out(at(126), 0, ASLEEP, out);
    });
    assert_eq!((seen[0].slept, seen[0].stop, seen[0].cpu), (true, at(30), Duration::from_us(20)));
    assert_eq!(seen[0].resumed.expect("resumed").release, Window::new(at(100), at(105)));
}

/// The disk that a read waits for is no event: the file may be any.
#[test]
fn a_read_of_an_unknown_file_separates_jobs_only_if_it_waits() {
    let separator = Separator { call: Call::Read, object: Object::None };
    let seen = follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        for (begin, interruptible) in [(30, false), (130, true)] {
            thread.enter(at(begin), Some(Entry { separator, arrival: None, always: false }), out);
            thread.switch_out(at(begin + 5), 0, Leave::Asleep { interruptible }, out);
            thread.wake(at(begin + 50), 0, 9, out);
            thread.switch_in(at(begin + 52), 0, out);
            thread.leave(at(begin + 53), Some(8), out);
        }
    });
    assert_eq!([seen[0].separator, seen[1].separator], [Separator::SUSPENSION, separator]);
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1].cpu, Duration::from_us(25 + 53));
}

/// The machine was suspended for 5 ms: what it sleeps until has another zero than the trace.
#[test]
fn an_impossible_arrival_is_omitted() {
    let seen = follow(|thread, out| {
        thread.switch_in(at(10_000), 0, out);
        thread.enter(at(13_000), sleep(15_000), out);
        thread.switch_out(at(13_005), 0, ASLEEP, out);
        thread.wake(at(15_001), 0, 0, out);
        thread.switch_in(at(15_003), 0, out);
        thread.leave(at(15_004), Some(0), out);
        // Would have ended at once.
        thread.enter(at(23_000), sleep(20_000), out);
        thread.switch_out(at(23_005), 0, ASLEEP, out);
        thread.wake(at(25_001), 0, 0, out);
        thread.switch_in(at(25_003), 0, out);
        thread.leave(at(25_004), Some(0), out);
        // Late: did end at once.
        thread.enter(at(33_000), sleep(32_000), out);
        thread.switch_out(at(33_005), 0, ASLEEP, out);
        thread.wake(at(33_008), 0, 0, out);
        thread.switch_in(at(33_009), 0, out);
        thread.leave(at(33_010), Some(0), out);
    });
    let arrivals: Vec<_> = seen.iter().map(|activation| activation.arrival).collect();
    assert_eq!(arrivals, [Some(at(15_000)), None, Some(at(32_000))]);
}

#[test]
fn a_budget_comes_back_with_the_timer() {
    let yields = Separator { call: Call::SchedYield, object: Object::None };
    let seen = follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        // A timer while it does not yield throttled it: that is no arrival.
        thread.enter(at(11), sleep(20), out);
        thread.replenish(at(12), 0, Some(at(12)), out);
        thread.switch_out(at(13), 0, ASLEEP, out);
        thread.wake(at(21), 0, 0, out);
        thread.switch_in(at(22), 0, out);
        thread.leave(at(23), Some(0), out);
        thread.enter(at(30), Some(Entry { separator: yields, arrival: None, always: true }), out);
        thread.switch_out(at(31), 0, ASLEEP, out);
        thread.replenish(at(101), 0, Some(at(100)), out);
        thread.switch_in(at(103), 0, out);
        thread.leave(at(104), Some(0), out);
    });
    assert_eq!((seen[0].arrival, seen[1].arrival), (Some(at(20)), Some(at(100))));
    assert_eq!(seen[1].resumed.expect("resumed").release, Some(Window::at(at(101))));
}

#[test]
fn state_does_not_carry_over_a_gap() {
    let seen = follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        thread.enter(at(30), sleep(100), out);
        thread.switch_out(at(35), 0, ASLEEP, out);
        thread.lose();
        thread.switch_in(at(205), 0, out);
        thread.leave(at(206), Some(0), out);
        thread.enter(at(230), sleep(300), out);
        thread.leave(at(231), Some(0), out);
    });
    // 0 is the task, 1 what was lost.
    assert_eq!((seen.len(), seen[0].sequence, seen[0].stop), (1, 2, at(230)));
}

#[test]
fn a_lock_of_the_kernel_after_the_release_is_a_suspension() {
    let seen = follow(|thread, out| {
        thread.switch_in(at(10), 0, out);
        thread.enter(at(30), sleep(100), out);
        thread.switch_out(at(35), 0, ASLEEP, out);
        thread.wake(at(100), 0, 0, out);
        thread.switch_in(at(102), 0, out);
        thread.switch_out(at(103), 0, Leave::Asleep { interruptible: false }, out);
        thread.wake(at(110), 0, 9, out);
        thread.switch_in(at(111), 0, out);
        thread.leave(at(112), Some(0), out);
    });
    let resumed = seen[0].resumed.expect("resumed");
    assert_eq!(
        (resumed.release, resumed.start, resumed.suspended_after),
        (Some(Window::at(at(100))), at(102), Duration::from_us(7))
    );
}

proptest! {
    /// Whatever comes, in whatever order, with whatever missing.
    #[test]
    fn records_are_consistent(events in prop::collection::vec((0_u8..15, 0_u64..50), 0..200)) {
        let mut now = 1;
        let mut numbers = Vec::new();
        let mut gaps = 0;
        let seen = follow(|thread, out| {
            let mut out = |record: Record| {
                match &record {
                    Record::Task(task) => numbers.push(task.sequence),
                    Record::Activation(activation) => numbers.push(activation.sequence),
                    Record::Last { sequence, .. } => numbers.push(*sequence),
                    _ => {}
                }
                out(record);
            };
            let out: Out = &mut out;
            for (kind, step) in events {
                now += step;
                let uncertain = Entry { separator: SLEEP, arrival: None, always: false };
                match kind {
                    0 => thread.switch_in(at(now), 0, out),
                    1 => thread.switch_out(at(now), 0, Leave::Preempted, out),
                    2 => thread.switch_out(at(now), 0, ASLEEP, out),
                    3 => thread.switch_out(at(now), 0, Leave::Asleep { interruptible: false }, out),
                    4 => thread.wake(at(now), 0, 0, out),
                    5 => thread.enter(at(now), sleep(now + 20), out),
                    6 => thread.enter(at(now), if step % 2 == 0 { None } else { Some(uncertain) }, out),
                    7 => thread.leave(at(now), Some(0), out),
                    8 => thread.leave(at(now), Some(-516 + (step % 5) as i64), out),
                    9 => thread.restart(at(now), out),
                    12 => thread.begin_to_wake(at(now), 0, 0, out),
                    13 => thread.is_on_processor(at(now - step)),
                    10 => thread.replenish(at(now), 0, Some(at(now)), out),
                    11 => {
                        thread.lose();
                        gaps += 1;
                    }
                    _ => {
                        let begin = [Begin::Seen, Begin::Policy, Begin::Exec][(step % 3) as usize];
                        thread.change(TaskRecord { at: at(now), begin, ..task() }, out);
                    }
                }
            }
            thread.end(at(now), out);
        });
        // The first is the task, which `follow` sees alone.
        let between = std::iter::once(&0).chain(&numbers).zip(&numbers)
            .map(|(before, number)| number - before - 1);
        let missing: u32 = between.sum();
        prop_assert!(missing == gaps, "{numbers:?} with {gaps} gaps");
        for pair in seen.windows(2) {
            prop_assert!(pair[0].cpu <= pair[1].cpu && pair[0].stop <= pair[1].stop, "{pair:?}");
        }
        for activation in &seen {
            if let Some(resumed) = activation.resumed {
                if let Some(release) = resumed.release {
                    prop_assert!(activation.stop <= release.earliest() && release.latest() <= resumed.start);
                }
                prop_assert!(activation.stop <= resumed.start);
                prop_assert_eq!(activation.slept, resumed.release.is_some());
            }
        }
    }
}
