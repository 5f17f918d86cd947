//! Threads and processes that do one job each, such as those of timers with SIGEV_THREAD. Alone, none of them
//! has a period; together they do. They are grouped by name and policy.

use crate::number::{about, at_least, at_most, count};
use crate::overview::policy;
use crate::visible;
use punctual_model::{Duration, EndedBy, Task};
use std::collections::BTreeMap;

/// Smaller groups are not mentioned: their threads may have ended for other reasons.
const LEAST: usize = 8;

/// The groups among these tasks, which have fewer than two jobs each.
pub(crate) fn groups<'a>(tasks: &[&'a Task]) -> Vec<Vec<&'a Task>> {
    let mut kinds: BTreeMap<_, Vec<&Task>> = BTreeMap::new();
    for &task in tasks.iter().filter(|task| task.ended_by == EndedBy::Exit && task.phase == 0) {
        let kind = (task.recording.as_deref(), &task.name, policy(task));
        kinds.entry(kind).or_default().push(task);
    }
    kinds.into_values().filter(|kind| kind.len() >= LEAST).collect()
}

/// What a group does.
pub(crate) fn sentence(mut tasks: Vec<&Task>) -> String {
    tasks.sort_by_key(|task| task.from_ns);
    let first = tasks[0];
    let what = if tasks.iter().all(|task| task.pid == first.pid) { "threads" } else { "processes" };
    let apart = || tasks.windows(2).map(|pair| pair[1].from_ns.since(pair[0].from_ns));
    let lived = || tasks.iter().map(|task| task.until_ns.since(task.from_ns));
    format!(
        "{} ({}): {} {what} with one job each; one starts every {} ({} to {} apart) and lives for {} (at \
         most {}).",
        visible(&first.name),
        policy(first),
        count(tasks.len() as u64),
        about(mean(apart())),
        at_least(apart().min().unwrap_or_default()),
        at_most(apart().max().unwrap_or_default()),
        about(mean(lived())),
        at_most(lived().max().unwrap_or_default()),
    )
}

fn mean(all: impl Iterator<Item = Duration>) -> Duration {
    let (count, sum) = all.fold((0_u64, 0_u128), |(count, sum), it| (count + 1, sum + u128::from(it.ns())));
    Duration::from_ns(u64::try_from(sum / u128::from(count.max(1))).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::task;
    use punctual_model::Instant;

    fn short(number: u64, name: &str) -> Task {
        let mut task = task(name, 100 + number as u32, 40);
        task.streams.clear();
        task.primary = None;
        task.pid = 7;
        task.from_ns = Instant::from_ns(number * 10_000_000 + number % 2 * 100_000);
        task.until_ns = task.from_ns + Duration::from_us(100 + 20 * (number % 2));
        task.ended_by = EndedBy::Exit;
        task
    }

    fn sentences(tasks: &[&Task]) -> Vec<String> {
        groups(tasks).into_iter().map(sentence).collect()
    }

    #[test]
    fn those_of_a_kind_have_one_sentence() {
        let mut tasks: Vec<Task> = (0..1_000).map(|number| short(number, "timer")).collect();
        tasks.extend((0..7).map(|number| short(number, "few")));
        let all: Vec<&Task> = tasks.iter().collect();
        let expected = "timer (FIFO 40): 1,000 threads with one job each; one starts every 10 ms (9.9 ms to \
                        10.1 ms apart) and lives for 110 µs (at most 120 µs).";
        assert_eq!(sentences(&all), [expected]);
        tasks.iter_mut().for_each(|task| task.pid = task.tid);
        assert!(sentences(&tasks.iter().collect::<Vec<_>>())[0].contains("1,000 processes"));
    }
}
