//! Every printed model allows everything that was observed, according to a checker that shares no code with
//! the inference.

use crate::common::{Seen, jobs, releases, stream};
use proptest::prelude::*;
use punctual_extract::stream::Options;
use punctual_model::check::{arrival_counts, check_stream, counts};
use punctual_model::{RecordedJob, Separator};

fn horizons() -> impl Strategy<Value = Options> {
    (0_usize..80, 0_usize..80).prop_map(|(curve_horizon, wcet_horizon)| Options {
        curve_horizon,
        wcet_horizon,
        ..Options::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_model_allows_what_was_seen(jobs in jobs(200), options in horizons()) {
        let model = stream(&options, &jobs).to_model(Separator::SUSPENSION);
        let recorded: Vec<RecordedJob> = jobs.iter().map(Seen::recorded).collect();
        let violations = check_stream(&model, &releases(&jobs), &recorded);
        prop_assert!(violations.is_empty(), "{}", violations[0]);
        let violations = counts(&model, &releases(&jobs), &recorded);
        prop_assert!(violations.is_empty(), "{}", violations[0]);
        if let Some(curve) = &model.arrival.curve {
            prop_assert!(curve.delta_min_ns.is_sorted() && curve.delta_max_ns.is_sorted());
            let violations = arrival_counts(curve, &releases(&jobs));
            prop_assert!(violations.is_empty(), "{}", violations[0]);
        }
        if let Some(periodic) = &model.arrival.periodic {
            prop_assert!(periodic.least_jitter_ns <= periodic.jitter_ns && periodic.period_ns.ns() > 0);
        }
    }

    #[test]
    fn consecutive_pieces_merge_to_the_whole(
        jobs in jobs(300),
        options in horizons(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(jobs.len() + 1)).collect();
        cuts.sort_unstable();
        let mut merged = stream(&options, &[]);
        let mut from = 0;
        for until in cuts.into_iter().chain([jobs.len()]) {
            merged.merge(&stream(&options, &jobs[from..until]));
            from = until;
        }
        let whole = stream(&options, &jobs).to_model(Separator::SUSPENSION);
        prop_assert_eq!(merged.to_model(Separator::SUSPENSION), whole);
    }
}
