//! Splits execution times by what the kernel did with the executor's thread: from a recording of the same
//! time that has every step of the scheduler.
//!
//! A recording may lack steps. Where two steps cannot follow each other, the time between them is unknown.

use punctual_model::{Duration, Instant};
use punctual_trace::{Step, Switch};
use rustc_hash::FxHashMap;

/// An execution time, split by the state of its thread; the parts add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// On a processor.
    pub running: Duration,
    /// Ready to run, without a processor.
    pub preempted: Duration,
    /// Waiting for something.
    pub suspended: Duration,
}

/// States of threads over time. Grows with the recording: sixteen bytes and the sums for each step.
#[derive(Debug, Default)]
pub struct Threads {
    threads: FxHashMap<u32, Vec<Mark>>,
    until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Preempted,
    Suspended,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    /// Since `at`.
    state: State,
    /// Whether the next step cannot follow this one: the state is unknown until then.
    is_doubtful: bool,
    /// Number of doubtful marks before this one.
    doubtful: u32,
    /// Nanoseconds running, preempted and suspended, from the thread's first mark to this one.
    sums: [u64; 3],
}

impl Mark {
    fn sums_at(&self, at: Instant) -> [u64; 3] {
        let mut sums = self.sums;
        sums[self.state as usize] += at.ns().saturating_sub(self.at.ns());
        sums
    }
}

impl Threads {
    /// Follows these threads of the recording: the kernel's numbers of executors.
    pub fn new(numbers: impl IntoIterator<Item = u32>) -> Threads {
        Threads { threads: numbers.into_iter().map(|number| (number, Vec::new())).collect(), until: None }
    }

    /// Takes the recording's next step, of any thread.
    pub fn step(&mut self, switch: &Switch) {
        self.until = Some(self.until.map_or(switch.at, |until| until.max(switch.at)));
        let Some(marks) = self.threads.get_mut(&switch.tid) else { return };
        let (state, is_after) = match switch.step {
            Step::In => (State::Running, State::Preempted),
            Step::Preempted | Step::Throttled => (State::Preempted, State::Running),
            Step::Asleep { .. } | Step::Stopped => (State::Suspended, State::Running),
            Step::Woken { .. } => (State::Preempted, State::Suspended),
            _ => return,
        };
        let Some(last) = marks.last_mut() else {
            return marks.push(Mark { at: switch.at, state, is_doubtful: false, doubtful: 0, sums: [0; 3] });
        };
        last.is_doubtful |= last.state != is_after;
        // A thread about to sleep may be woken first, and goes on. Or its sleep was not seen: then its
        // current state is unknown too.
        if last.is_doubtful && matches!(switch.step, Step::Woken { .. }) {
            return;
        }
        let (doubtful, sums) = (last.doubtful + u32::from(last.is_doubtful), last.sums_at(switch.at));
        marks.push(Mark { at: switch.at, state, is_doubtful: false, doubtful, sums });
    }

    /// Number of these threads that the recording has steps of.
    pub fn seen(&self) -> usize {
        self.threads.values().filter(|marks| !marks.is_empty()).count()
    }

    /// How long a thread was in each state from `begin` to `end`. It reported both itself, so it was running
    /// then. `None` if the recording does not cover that time, or contradicts it.
    pub fn split(&self, thread: u32, begin: Instant, end: Instant) -> Option<Split> {
        let marks = self.threads.get(&thread)?;
        if self.until.is_none_or(|until| end > until)
            || end < begin
            || !runs_at(marks, begin)
            || !runs_at(marks, end)
        {
            return None;
        }
        let (first, last) = (last_mark(marks, begin)?, last_mark(marks, end)?);
        if last.doubtful > first.doubtful {
            return None;
        }
        let (before, after) = (first.sums_at(begin), last.sums_at(end));
        let part = |state: State| Duration::from_ns(after[state as usize] - before[state as usize]);
        Some(Split {
            running: part(State::Running),
            preempted: part(State::Preempted),
            suspended: part(State::Suspended),
        })
    }
}

/// The last mark up to `at`.
fn last_mark(marks: &[Mark], at: Instant) -> Option<&Mark> {
    marks[..marks.partition_point(|mark| mark.at <= at)].last()
}

/// Whether a thread was running at `at`, or stopped or started running then.
fn runs_at(marks: &[Mark], at: Instant) -> bool {
    let (before, behind) =
        (marks.partition_point(|mark| mark.at < at), marks.partition_point(|mark| mark.at <= at));
    marks[before.saturating_sub(1)..behind]
        .iter()
        .any(|mark| mark.state == State::Running && !mark.is_doubtful)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ASLEEP: Step = Step::Asleep { interruptible: true };

    fn steps(steps: &[(u64, Step)]) -> Threads {
        let mut threads = Threads::new([7]);
        for &(at, step) in steps {
            threads.step(&Switch { tid: 7, at: Instant::from_ns(at), cpu: 0, step });
        }
        threads
    }

    fn parts(threads: &Threads, begin: u64, end: u64) -> Option<(u64, u64, u64)> {
        let split = threads.split(7, Instant::from_ns(begin), Instant::from_ns(end))?;
        Some((split.running.ns(), split.preempted.ns(), split.suspended.ns()))
    }

    #[test]
    fn an_execution_is_split_by_the_state_of_its_thread() {
        let threads = steps(&[
            (100, Step::In),
            (150, Step::Preempted),
            (170, Step::In),
            (200, Step::Asleep { interruptible: true }),
            (260, Step::Woken { by: 0 }),
            (265, Step::In),
            (300, Step::Asleep { interruptible: true }),
        ]);
        assert_eq!(parts(&threads, 110, 290), Some((40 + 30 + 25, 20 + 5, 60)));
        assert_eq!(parts(&threads, 100, 150), Some((50, 0, 0)));
        assert_eq!(parts(&threads, 300, 300), Some((0, 0, 0)));
        assert_eq!(parts(&threads, 99, 150), None, "it was not seen before");
        assert_eq!(parts(&threads, 290, 301), None, "the recording has ended");
        assert!(threads.split(8, Instant::from_ns(110), Instant::from_ns(120)).is_none());
    }

    #[test]
    fn a_thread_that_reports_is_running() {
        let threads = steps(&[
            (100, Step::In),
            (150, Step::Preempted),
            (200, Step::In),
            (250, ASLEEP),
            (300, Step::Woken { by: 0 }),
            (310, Step::In),
        ]);
        for (begin, end) in [(160, 220), (110, 160), (160, 170), (260, 310), (260, 270), (110, 305)] {
            assert_eq!(parts(&threads, begin, end), None, "{begin} to {end}");
        }
        assert_eq!(parts(&threads, 110, 310), Some((40 + 50, 50 + 10, 50)));
    }

    #[test]
    fn steps_that_cannot_follow_each_other_hide_what_was_between() {
        let woken = Step::Woken { by: 3 };
        for (what, there) in [
            ("a switch out", [Step::In, Step::In]),
            ("a switch out and in", [Step::Preempted, Step::Preempted]),
            ("a switch out and in", [Step::Preempted, ASLEEP]),
            ("a sleep, or nothing", [Step::In, woken]),
            ("a wake-up", [ASLEEP, Step::In]),
            ("a switch in and a sleep", [Step::Preempted, woken]),
            ("a wake-up and more", [ASLEEP, ASLEEP]),
        ] {
            let [one, other] = there;
            let before: &[_] =
                if one == Step::In { &[(2, Step::In), (5, Step::Preempted)] } else { &[(2, Step::In)] };
            let after: &[_] = if other == Step::In { &[(40, Step::Preempted)] } else { &[(40, Step::In)] };
            let threads = steps(
                &[
                    before,
                    &[(20, one), (30, other)],
                    after,
                    &[(45, Step::Preempted), (50, Step::In), (60, ASLEEP)],
                ]
                .concat(),
            );
            assert_eq!(parts(&threads, 2, 50), None, "{what} is missing");
            assert_eq!(parts(&threads, 25, 60), None, "{what} is missing");
            assert_eq!(parts(&threads, 50, 60), Some((10, 0, 0)));
        }
    }

    proptest! {
        #[test]
        fn parts_sum_up_and_parts_of_parts_too(
            seen in proptest::collection::vec((0u64..50, 0usize..4), 1..40),
            begin in 0u64..2000,
            middle in 0u64..2000,
            end in 0u64..2000,
        ) {
            let kinds =
                [Step::In, Step::Preempted, Step::Asleep { interruptible: false }, Step::Woken { by: 0 }];
            let mut at = 0;
            let seen = seen.into_iter().map(|(later, kind)| {
                at += later;
                (at, kinds[kind])
            });
            let seen: Vec<_> = seen.collect();
            let threads = steps(&seen);
            let mut times = [begin, middle, end];
            times.sort_unstable();
            let [begin, middle, end] = times;
            if let Some((running, preempted, suspended)) = parts(&threads, begin, end) {
                prop_assert_eq!(running + preempted + suspended, end - begin);
                let halves = (parts(&threads, begin, middle), parts(&threads, middle, end));
                if let (Some(first), Some(second)) = halves {
                    let sum = (first.0 + second.0, first.1 + second.1, first.2 + second.2);
                    prop_assert_eq!(sum, (running, preempted, suspended));
                }
            }
        }

        #[test]
        fn a_missing_step_makes_no_wrong_split(
            turns in proptest::collection::vec((1u64..50, 1u64..50, proptest::option::of(1u64..50)), 3..12),
            missing in any::<prop::sample::Index>(),
        ) {
            let (mut at, mut seen, mut runs) = (0, Vec::new(), Vec::new());
            for (running, ready, asleep) in turns {
                seen.push((at, Step::In));
                runs.extend([at, at + running / 2, at + running]);
                at += running;
                match asleep {
                    None => seen.push((at, Step::Preempted)),
                    Some(asleep) => {
                        seen.push((at, ASLEEP));
                        at += asleep;
                        seen.push((at, Step::Woken { by: 0 }));
                    }
                }
                at += ready;
            }
            let whole = steps(&seen);
            seen.remove(missing.index(seen.len()));
            let mended = steps(&seen);
            for (place, begin) in runs.iter().enumerate() {
                for end in &runs[place..] {
                    let truth = parts(&whole, *begin, *end);
                    prop_assert!(truth.is_some() || end == begin);
                    let found = parts(&mended, *begin, *end);
                    let is_right = found.is_none() || found == truth;
                    prop_assert!(is_right, "{} to {}: {:?}, but {:?}", begin, end, found, truth);
                }
            }
        }
    }
}
