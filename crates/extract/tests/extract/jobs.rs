//! The jobs handed out one by one are those that the models count.

use crate::common::records::{options, records};
use proptest::prelude::*;
use punctual_extract::Extractor;
use punctual_model::{Duration, Instant, Separator};
use punctual_trace::{Begin, Record};
use std::collections::HashMap;

/// Sums that a stream's models must agree with.
#[derive(Debug, Default, PartialEq)]
struct Sum {
    jobs: u64,
    greatest_cost: Duration,
    greatest_response: Duration,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_stream_gets_the_jobs_that_it_counts(
        records in records(200),
        merge_transitions in any::<bool>(),
    ) {
        let mut given: HashMap<(u32, u32, Separator), Sum> = HashMap::new();
        let mut extractor = Extractor::new(options(8, merge_transitions));
        for record in &records {
            extractor.record_jobs(record, &mut |seen| {
                let sum = given.entry((seen.tid, seen.phase, seen.separator.key())).or_default();
                sum.jobs += 1;
                sum.greatest_cost = sum.greatest_cost.max(seen.job.cost);
                sum.greatest_response = sum.greatest_response.max(seen.job.response());
            });
        }
        let mut plain = Extractor::new(options(8, merge_transitions));
        records.iter().for_each(|record| plain.record(record));
        prop_assert_eq!(plain.progress(), extractor.progress());
        let tasks = extractor.finish(Instant::from_ns(u64::MAX >> 4));
        prop_assert_eq!(&plain.finish(Instant::from_ns(u64::MAX >> 4)), &tasks);
        // A reused thread number starts again with phase 0, so streams of several threads may share a key.
        let mut counted: HashMap<(u32, u32, Separator), Sum> = HashMap::new();
        for task in &tasks {
            for stream in task.streams.iter().filter(|stream| stream.jobs > 0) {
                let sum = counted.entry((task.tid, task.phase, stream.separator.key())).or_default();
                let worst = stream.execution.as_ref().and_then(|it| it.wcet_ns.first().copied());
                let longest = stream.response.as_ref().map_or(Duration::ZERO, |it| it.max_ns);
                sum.jobs += stream.jobs;
                sum.greatest_cost = sum.greatest_cost.max(worst.unwrap_or_default());
                sum.greatest_response = sum.greatest_response.max(longest);
            }
        }
        prop_assert_eq!(given, counted);
    }

    #[test]
    fn jobs_are_numbered_by_their_releases(records in records(200)) {
        let mut extractor = Extractor::new(options(8, false));
        let mut next: HashMap<(u32, u32, Separator), u64> = HashMap::new();
        for record in &records {
            // From here on its number belongs to another thread.
            let is_new = matches!(record, Record::Task(task) if task.begin == Begin::Seen);
            if is_new || matches!(record, Record::Exit { .. } | Record::Last { .. }) {
                next.retain(|(tid, ..), _| *tid != record.tid());
            }
            let mut wrong = None;
            extractor.record_jobs(record, &mut |seen| {
                let next = next.entry((seen.tid, seen.phase, seen.separator.key())).or_default();
                if *next != seen.number {
                    wrong = Some((*next, seen.number));
                }
                *next += 1;
            });
            prop_assert_eq!(wrong, None);
        }
    }
}
