//! Events written as a line each: `5 cpu0 in 80/10`, microseconds first; threads are numbers, with a
//! real-time priority where it is not 0, or `?`.

use punctual_causes::{Departure, Event, Faults, Interrupt, Step, Urgency, Wait, Waker};
use punctual_model::{Duration, Instant};

pub fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

pub fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

/// The events of a script, in its order.
pub fn events(script: &str) -> Vec<Event> {
    script.lines().map(str::trim).filter(|line| !line.is_empty()).map(event).collect()
}

fn event(line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.parse::<u64>().unwrap_or_else(|_| panic!("{word} in {line}"));
    let thread = |place: usize| {
        let (tid, priority) = words[place].split_once('/').unwrap_or((words[place], "0"));
        if priority == "?" {
            return (number(tid) as u32, Urgency::UNKNOWN);
        }
        (number(tid) as u32, urgency(tid, number(priority) as u32))
    };
    let cpu = number(words[1].trim_start_matches("cpu")) as u32;
    let interrupt = |place: usize| match words[place] {
        "timer" => Interrupt::Timer,
        other => other.strip_prefix("soft").map_or_else(
            || Interrupt::Device { number: number(other) as u32, name: "" },
            |softirq| Interrupt::Soft(number(softirq) as u32),
        ),
    };
    let step = match words[2] {
        "in" => Step::In { thread: thread(3).0, urgency: thread(3).1 },
        "out" => Step::Out { thread: thread(3).0, urgency: thread(3).1, why: departure(&words[4..]) },
        "woken" => Step::Woken { thread: thread(3).0, by: waker(words.get(4)) },
        "moved" => Step::Moved { thread: thread(3).0, to: number(words[4]) as u32 },
        "began" => Step::Began(interrupt(3)),
        "ended" => Step::Ended(interrupt(3)),
        "stolen" => Step::Stolen(us(number(words[3]))),
        "fault" => Step::Faulted { thread: thread(3).0, faults: Faults { minor: 1, major: 0 } },
        other => panic!("{other} in {line}"),
    };
    Event { at: at(number(words[0])), cpu, step }
}

fn urgency(tid: &str, priority: u32) -> Urgency {
    match (tid, priority) {
        ("0", _) => Urgency::IDLE,
        (_, 100) => Urgency::DEADLINE,
        _ => Urgency::real_time(priority),
    }
}

fn departure(words: &[&str]) -> Departure {
    match words {
        [] | ["preempted"] => Departure::Preempted,
        ["throttled"] => Departure::Throttled,
        ["stopped"] => Departure::Stopped,
        ["ended"] => Departure::Ended,
        ["asleep"] => Departure::Asleep(Wait::default()),
        ["asleep", owner] => {
            Departure::Asleep(Wait { owner: Some(owner.parse().expect("a TID")), ..Wait::default() })
        }
        other => panic!("{other:?}"),
    }
}

fn waker(word: Option<&&str>) -> Waker {
    match word {
        None => Waker::Unknown,
        Some(&"interrupt") => Waker::Interrupt,
        Some(tid) => Waker::Thread(tid.parse().expect("a TID")),
    }
}
