//! Threads that may take their work from a common queue, such as those of Go, Java and thread pools. Chance
//! decides there which thread does a job, so the figures of one thread say little.

use crate::derived::primary;
use crate::overview::policy;
use crate::shape::Shape;
use crate::visible;
use punctual_model::{Call, Stream, Task};
use std::collections::BTreeMap;

/// A sentence for each group of threads of one process that are named alike, wait on futexes and have no
/// period.
pub(crate) fn sentences(tasks: &[&Task]) -> Vec<String> {
    let mut pools: BTreeMap<_, Vec<&Task>> = BTreeMap::new();
    for task in tasks.iter().filter(|task| primary(task).is_some_and(takes_work)) {
        let pool = (task.recording.as_deref(), task.pid, stem(&task.name), policy(task));
        pools.entry(pool).or_default().push(task);
    }
    pools
        .into_iter()
        .filter_map(|((_, pid, name, policy), tasks)| {
            let mut threads: Vec<u32> = tasks.iter().map(|task| task.tid).collect();
            threads.sort_unstable();
            threads.dedup();
            (threads.len() > 1).then(|| {
            format!(
                "{} ({policy}): {} threads of process {pid} wait for work without a period. If a runtime or \
                 a pool moves work between them, as Go and Java do, chance decides which thread does a job: \
                 read their rows together.",
                visible(name),
                threads.len(),
            )
        })
        })
        .collect()
}

/// Names of such threads differ in their numbers.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

fn takes_work(stream: &Stream) -> bool {
    let is_futex = matches!(
        stream.separator.call,
        Call::FutexWait | Call::FutexWaitBitset | Call::FutexWaitRequeuePi | Call::FutexWaitv
    );
    is_futex && !matches!(Shape::new(stream), Shape::Periodic(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::task;
    use punctual_model::{Object, Separator};

    fn worker(name: &str, tid: u32) -> Task {
        let mut task = task(name, tid, 20);
        task.pid = 5;
        task.streams[0].separator = Separator {
            call: Call::FutexWaitBitset,
            object: Object::Address { address: u64::from(tid), name: None },
        };
        task.streams[0].arrival.periodic = None;
        task
    }

    #[test]
    fn threads_that_may_share_work_have_a_sentence() {
        let (first, second, other) = (worker("pool-1", 7), worker("pool-2", 8), worker("other", 9));
        let text = sentences(&[&first, &second, &other]);
        assert!(text[0].starts_with("pool- (FIFO 20): 2 threads of process 5 wait for work"), "{text:?}");
        assert_eq!(text.len(), 1, "{text:?}");
    }

    #[test]
    fn periodic_threads_and_phases_have_none() {
        let (first, second) = (worker("a", 7), worker("a", 7));
        assert!(sentences(&[&first, &second]).is_empty());
        let (first, second) = (task("a1", 7, 20), task("a2", 8, 20));
        assert!(sentences(&[&first, &second]).is_empty());
    }
}
