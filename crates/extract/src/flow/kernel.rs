//! What the kernel did with an executor's thread while it executed a task: from a recording of the same time, with every step of the scheduler.

use punctual_model::{Duration, Instant};
use punctual_trace::{Step, Switch};
use rustc_hash::FxHashMap;

/// An execution time, by what its thread was: the parts sum up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// On a processor.
    pub running: Duration,
    /// Ready to run, without a processor.
    pub preempted: Duration,
    /// Waiting for something.
    pub suspended: Duration,
}

/// What threads were, and when. Grows with the recording: sixteen bytes and the sums for each step of a thread.
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
    /// From then on.
    state: State,
    /// Until then, since the thread's first mark, in nanoseconds: running, preempted, suspended.
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
    /// Those of the recording that are of interest: the kernel's numbers of executors.
    pub fn new(numbers: impl IntoIterator<Item = u32>) -> Threads {
        Threads { threads: numbers.into_iter().map(|number| (number, Vec::new())).collect(), until: None }
    }

    /// Takes the recording's next step, of whatever thread.
    pub fn step(&mut self, switch: &Switch) {
        self.until = Some(self.until.map_or(switch.at, |until| until.max(switch.at)));
        let Some(marks) = self.threads.get_mut(&switch.tid) else { return };
        let state = match switch.step {
            Step::In => State::Running,
            Step::Preempted => State::Preempted,
            Step::Asleep { .. } => State::Suspended,
            // Who is not asleep is not made ready by being woken.
            Step::Woken { .. } if marks.last().is_some_and(|last| last.state != State::Suspended) => return,
            Step::Woken { .. } => State::Preempted,
        };
        let sums = marks.last().map_or([0; 3], |last| last.sums_at(switch.at));
        marks.push(Mark { at: switch.at, state, sums });
    }

    /// Of how many of the threads something was recorded.
    pub fn seen(&self) -> usize {
        self.threads.values().filter(|marks| !marks.is_empty()).count()
    }

    /// What a thread was from `begin` to `end`; `None` where the recording does not say for all of that time.
    pub fn split(&self, thread: u32, begin: Instant, end: Instant) -> Option<Split> {
        let marks = self.threads.get(&thread)?;
        if self.until.is_none_or(|until| end > until) || end < begin {
            return None;
        }
        let sums_at = |at: Instant| {
            let behind = marks.partition_point(|mark| mark.at <= at);
            Some(marks[behind.checked_sub(1)?].sums_at(at))
        };
        let (before, after) = (sums_at(begin)?, sums_at(end)?);
        let part = |state: State| Duration::from_ns(after[state as usize] - before[state as usize]);
        Some(Split { running: part(State::Running), preempted: part(State::Preempted), suspended: part(State::Suspended) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn an_execution_is_split_by_what_its_thread_was() {
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
        assert_eq!(parts(&threads, 150, 170), Some((0, 20, 0)));
        assert_eq!(parts(&threads, 300, 300), Some((0, 0, 0)));
        assert_eq!(parts(&threads, 99, 150), None, "it was not seen before");
        assert_eq!(parts(&threads, 290, 301), None, "the recording has ended");
        assert!(threads.split(8, Instant::from_ns(110), Instant::from_ns(120)).is_none());
    }

    #[test]
    fn waking_a_thread_that_runs_changes_nothing() {
        let threads = steps(&[(10, Step::In), (20, Step::Woken { by: 3 }), (30, Step::Preempted)]);
        assert_eq!(parts(&threads, 10, 30), Some((20, 0, 0)));
    }

    proptest! {
        #[test]
        fn parts_sum_up_and_parts_of_parts_too(
            seen in proptest::collection::vec((0u64..50, 0usize..4), 1..40), begin in 0u64..2000, middle in 0u64..2000, end in 0u64..2000,
        ) {
            let kinds = [Step::In, Step::Preempted, Step::Asleep { interruptible: false }, Step::Woken { by: 0 }];
            let mut at = 0;
            let seen: Vec<_> = seen.into_iter().map(|(later, kind)| { at += later; (at, kinds[kind]) }).collect();
            let threads = steps(&seen);
            let mut times = [begin, middle, end];
            times.sort_unstable();
            let [begin, middle, end] = times;
            if let Some((running, preempted, suspended)) = parts(&threads, begin, end) {
                prop_assert_eq!(running + preempted + suspended, end - begin);
                let (first, second) = (parts(&threads, begin, middle).unwrap(), parts(&threads, middle, end).unwrap());
                prop_assert_eq!((first.0 + second.0, first.1 + second.1, first.2 + second.2), (running, preempted, suspended));
            }
        }
    }
}
