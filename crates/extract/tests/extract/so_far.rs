//! A running extraction can be asked what it has found so far, and goes on as if it had not been asked.

use crate::common::records::{options, records};
use proptest::prelude::*;
use punctual_extract::Extractor;
use punctual_model::{Instant, Task};
use punctual_trace::Record;
use std::collections::BTreeSet;

const LATER: Instant = Instant::from_ns(u64::MAX >> 4);

fn extracted(records: &[Record], merge_transitions: bool) -> Extractor {
    let mut extractor = Extractor::new(options(8, merge_transitions));
    records.iter().for_each(|record| extractor.record(record));
    extractor
}

/// The task without other streams.
fn with_primary_alone(mut task: Task) -> Task {
    task.streams = task.primary.map(|primary| task.streams.swap_remove(primary)).into_iter().collect();
    task.primary = (!task.streams.is_empty()).then_some(0);
    task.primary_reason = task.primary_reason.filter(|_| task.primary.is_some());
    task
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_tasks_so_far_are_those_of_an_observation_that_ends_here(
        records in records(200),
        merge_transitions in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let cut = cut.index(records.len() + 1);
        let mut extractor = extracted(&records[..cut], merge_transitions);
        let so_far = extractor.tasks(LATER);
        prop_assert_eq!(&so_far, &extracted(&records[..cut], merge_transitions).finish(LATER));
        let threads: BTreeSet<u32> = records[..cut].iter().map(Record::tid).collect();
        for tid in threads {
            let Some((phase, about)) = extractor.about(tid) else { continue };
            let task = extractor.so_far(tid, LATER).expect("a known thread");
            prop_assert!(so_far.contains(&task));
            prop_assert_eq!((task.phase, task.tid), (phase, about.tid));
            let sketch = extractor.sketch(tid, LATER).expect("a known thread");
            prop_assert_eq!(sketch, with_primary_alone(task));
        }
        records[cut..].iter().for_each(|record| extractor.record(record));
        prop_assert_eq!(extractor.finish(LATER), extracted(&records, merge_transitions).finish(LATER));
    }
}
