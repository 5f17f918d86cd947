//! The checkers of what jobs do, and all checkers together.

use crate::generate::{curve_of, spans};
use proptest::collection::vec;
use proptest::prelude::*;
use punctual_model::check::{Model, counts, dynamic_suspension, execution, response, segmented_suspension};
use punctual_model::*;

fn segments(pairs: &[(u64, u64)]) -> Vec<Segment> {
    let segment = |&(suspended, cost)| Segment {
        suspended: Duration::from_ns(suspended),
        cost: Duration::from_ns(cost),
    };
    pairs.iter().map(segment).collect()
}

/// A job of these segments, released at `release` and done `response` later.
fn job(release: u64, response: u64, pairs: &[(u64, u64)]) -> RecordedJob {
    let release = Instant::from_ns(release);
    let job = Job {
        release: Release { arrival: None, window: Window::at(release) },
        start: release,
        end: release + Duration::from_ns(response),
        cost: Duration::from_ns(pairs.iter().map(|(_, cost)| cost).sum()),
        suspended: Duration::from_ns(pairs.iter().map(|(suspended, _)| suspended).sum()),
    };
    (job, segments(pairs))
}

#[test]
fn cost_outside_is_the_excess_over_the_time_from_start_to_end() {
    let (inside, _) = job(5, 100, &[(0, 40), (20, 40)]);
    let (outside, _) = job(5, 100, &[(0, 70), (20, 40)]);
    assert_eq!((inside.cost_outside().ns(), outside.cost_outside().ns()), (0, 10));
}

fn bag(dynamic: u64, vectors: &[&[(u64, u64)]]) -> Suspension {
    let bound = |&(suspended, cost)| SegmentBound {
        suspended_ns: Duration::from_ns(suspended),
        cost_ns: Duration::from_ns(cost),
    };
    Suspension {
        dynamic_ns: Duration::from_ns(dynamic),
        segmented: vectors.iter().map(|vector| vector.iter().map(bound).collect()).collect(),
    }
}

fn lines(found: &[Violation]) -> Vec<String> {
    found.iter().map(Violation::to_string).collect()
}

#[test]
fn costs_of_consecutive_jobs_are_bounded_together() {
    let jobs = [9, 1, 2, 9, 3].map(|cost| job(0, 10, &[(0, cost)]));
    let exact = Execution { wcet_ns: spans(&[9, 12, 14, 21, 24]), mean_ns: None };
    assert_eq!(execution(&exact, &jobs), []);
    let longer = Execution { wcet_ns: spans(&[9, 12, 14, 21, 24, 24, 24]), mean_ns: None };
    assert_eq!(execution(&longer, &jobs), []);
    let less = Execution { wcet_ns: spans(&[9, 11, 14, 20]), mean_ns: None };
    assert_eq!(
        lines(&execution(&less, &jobs)),
        [
            "WCET(2), jobs 3 to 4: observed 12 ns, allowed at most 11 ns",
            "WCET(4), jobs 0 to 3: observed 21 ns, allowed at most 20 ns"
        ]
    );
    let greatest = [u64::MAX; 3].map(|cost| job(0, 0, &[(0, cost)]));
    assert_eq!(execution(&Execution { wcet_ns: spans(&[u64::MAX]), mean_ns: None }, &greatest), []);
}

#[test]
fn total_suspension_is_bounded() {
    let jobs = [job(0, 50, &[(0, 5), (3, 5), (4, 5)])];
    assert_eq!(dynamic_suspension(&bag(7, &[]), &jobs), []);
    assert_eq!(
        lines(&dynamic_suspension(&bag(6, &[]), &jobs)),
        ["dynamic suspension, job 0: observed 7 ns, allowed at most 6 ns"]
    );
    // Either account of it counts.
    let (only_total, only_segments) =
        ((jobs[0].0, vec![]), (Job { suspended: Duration::ZERO, ..jobs[0].0 }, jobs[0].1.clone()));
    assert_eq!(dynamic_suspension(&bag(6, &[]), &[only_total, only_segments]).len(), 2);
}

#[test]
fn one_vector_must_bound_all_segments_of_a_job() {
    let model = bag(100, &[&[(0, 9), (1, 2)], &[(0, 2), (1, 9)], &[(0, 5)]]);
    let obeys = |pairs| segmented_suspension(&model, &[job(0, 50, pairs)]).is_empty();
    assert!(obeys(&[(0, 9), (1, 2)]) && obeys(&[(0, 1), (1, 9)]) && obeys(&[(0, 5)]));
    // Each segment alone is bounded by some vector, but none bounds both.
    assert!(!obeys(&[(0, 9), (1, 9)]));
    assert!(!obeys(&[(0, 1), (2, 1)]));
    // No vector is shorter or longer than its jobs.
    assert!(!obeys(&[(0, 1), (1, 1), (0, 1)]));
    assert_eq!(
        lines(&segmented_suspension(&model, &[job(0, 50, &[(0, 9), (1, 9)])])),
        [concat!(
            "segmented suspension, job 0: observed ⟨(0 ns, 9 ns); (1 ns, 9 ns)⟩, ",
            "allowed at most one of 2 vectors with this many segments"
        )]
    );
}

#[test]
fn the_first_segments_of_a_long_job_are_merged() {
    let count = MAX_SEGMENTS + 2;
    let pairs: Vec<(u64, u64)> = (0..count as u64).map(|k| (k, 10)).collect();
    let mut vector = vec![(3, 30)];
    vector.extend_from_slice(&pairs[3..]);
    assert_eq!(vector.len(), MAX_SEGMENTS);
    let jobs = [job(0, 500, &pairs)];
    assert_eq!(segmented_suspension(&bag(0, &[&vector]), &jobs), []);
    for first in [(2, 30), (3, 29)] {
        vector[0] = first;
        assert_eq!(segmented_suspension(&bag(0, &[&vector]), &jobs).len(), 1);
    }
    // A bag that tells all of them apart is finer still.
    assert_eq!(segmented_suspension(&bag(0, &[&pairs]), &jobs), []);
}

#[test]
fn a_job_without_recorded_segments_is_a_single_segment() {
    let (whole, _) = job(0, 50, &[(0, 5), (3, 5)]);
    assert_eq!(segmented_suspension(&bag(3, &[&[(3, 10)]]), &[(whole, vec![])]), []);
    assert_eq!(segmented_suspension(&bag(3, &[&[(2, 10)]]), &[(whole, vec![])]).len(), 1);
}

#[test]
fn response_times_count_from_the_arrival_if_known() {
    let model = Response { max_ns: Duration::from_ns(30), certain_max_ns: None, mean_ns: None };
    let on_time = job(100, 30, &[(0, 5)]);
    assert_eq!(response(&model, std::slice::from_ref(&on_time)), []);
    let mut late = on_time;
    late.0.release.arrival = Some(Instant::from_ns(99));
    assert_eq!(
        lines(&response(&model, &[late])),
        ["response time, job 0: observed 31 ns, allowed at most 30 ns"]
    );
    // What is certain of a window counts from its end.
    let mut window = job(100, 30, &[(0, 5)]);
    let from = window.0.release.window.latest() - Duration::from_ns(10);
    window.0.release.window = Window::new(from, window.0.release.window.latest()).expect("a window");
    let certain = |ns| Response {
        max_ns: Duration::from_ns(40),
        certain_max_ns: Some(Duration::from_ns(ns)),
        mean_ns: None,
    };
    assert_eq!(response(&certain(30), std::slice::from_ref(&window)), []);
    assert_eq!(
        lines(&response(&certain(29), &[window])),
        ["response time, job 0: observed 30 ns, allowed at most 29 ns"]
    );
}

fn stream(releases: &[Release], jobs: &[RecordedJob]) -> Stream {
    let curve = curve_of(releases, 5);
    let cost = |job: &RecordedJob| job.0.cost;
    let greatest = jobs.iter().map(cost).max().unwrap_or_default();
    let bound = |segment: &Segment| SegmentBound { suspended_ns: segment.suspended, cost_ns: segment.cost };
    Stream {
        separator: Separator::SUSPENSION,
        jobs: jobs.len() as u64,
        releases: releases.len() as u64,
        uncertain_releases: 0,
        back_to_back: 0,
        arrival: Arrival {
            periodic: None,
            sporadic: curve.delta_min_ns.first().map(|least| Sporadic { min_separation_ns: *least }),
            curve: Some(curve),
            modes: Vec::new(),
        },
        execution: Some(Execution { wcet_ns: vec![greatest], mean_ns: None }),
        suspension: Some(Suspension {
            dynamic_ns: jobs.iter().map(|(job, _)| job.suspended).max().unwrap_or_default(),
            segmented: jobs.iter().map(|(_, segments)| segments.iter().map(bound).collect()).collect(),
        }),
        response: Some(Response {
            max_ns: jobs.iter().map(|(job, _)| job.response()).max().unwrap_or_default(),
            certain_max_ns: None,
            mean_ns: None,
        }),
        late: None,
        percentiles: None,
    }
}

#[test]
fn counts_must_match_the_stream() {
    let jobs = [job(0, 5, &[(0, 1)]), job(10, 5, &[(0, 1)])];
    let releases: Vec<Release> = jobs.iter().map(|(job, _)| job.release).collect();
    let model = stream(&releases, &jobs);
    assert_eq!(counts(&model, &releases, &jobs), []);
    let model = Stream { uncertain_releases: 1, jobs: 1, ..model };
    let found = lines(&counts(&model, &releases, &jobs));
    assert_eq!(
        found,
        [
            "count of uncertain releases, jobs 0 to 1: observed 0, allowed 1",
            "count of jobs, jobs 0 to 1: observed 2, allowed 1"
        ]
    );
}

/// A model of this period that no release obeys.
fn periodic(period_ns: Duration) -> Periodic {
    Periodic {
        on: PeriodicOn::Release,
        period_ns,
        period_exact: None,
        offset_ns: i64::MAX,
        jitter_ns: period_ns,
        least_jitter_ns: period_ns,
        choice: Choice::Estimated,
        approximate: false,
        skipped: 0,
        extra: 0,
        slips: Vec::new(),
        typical: None,
    }
}

#[test]
fn late_jobs_are_counted_exactly_if_they_are_few() {
    // Two of three.
    let jobs: Vec<_> = (0..90).map(|k| job(100 * k, 100 + k % 3, &[(0, 1)])).collect();
    let of = |jobs: &[RecordedJob], late| {
        let releases: Vec<Release> = jobs.iter().map(|(job, _)| job.release).collect();
        let uncertain_releases = releases.iter().filter(|release| !release.window.is_exact()).count() as u64;
        let model = Stream { late: Some(late), uncertain_releases, ..stream(&releases, jobs) };
        let periodic = Some(periodic(Duration::from_ns(100)));
        let arrival = Arrival { periodic, ..model.arrival.clone() };
        lines(&counts(&Stream { arrival, ..model }, &releases, jobs))
    };
    assert_eq!(of(&jobs[..9], 6), [] as [String; 0]);
    assert_eq!(of(&jobs[..9], 5), ["count of late jobs, jobs 0 to 8: observed 6, allowed 5"]);
    assert_eq!(of(&jobs[..9], 7), ["count of late jobs, jobs 0 to 8: observed 6, allowed 7"]);
    assert_eq!((of(&jobs, 60), of(&jobs, 32)), (vec![], vec![]));
    assert_eq!(of(&jobs, 31), ["count of late jobs, jobs 0 to 89: observed 60, allowed 31"]);
    assert_eq!(of(&jobs, 61), ["count of late jobs, jobs 0 to 89: observed 60, allowed at least 61"]);
    // Where the release is a window, from its end on.
    let mut late = job(100, 101, &[(0, 1)]);
    late.0.release.window = Window::new(Instant::from_ns(0), Instant::from_ns(101)).expect("a window");
    assert_eq!(of(&[late], 0), [] as [String; 0]);
}

proptest! {
    /// Every model of a stream is checked: the tight one is accepted, and whatever is made tighter is found.
    #[test]
    fn check_stream_checks_every_model(
        recorded in vec((1..50_u64, 1..60_u64, vec((1..9_u64, 1..9_u64), 1..4)), 2..20),
    ) {
        let mut at = 0;
        let jobs: Vec<RecordedJob> = recorded.iter()
            .map(|(gap, response, pairs)| { at += gap; job(at, *response, pairs) }).collect();
        let releases: Vec<Release> = jobs.iter().map(|(job, _)| job.release).collect();
        let tight = stream(&releases, &jobs);
        prop_assert_eq!(check_stream(&tight, &releases, &jobs), []);

        let one = Duration::from_ns(1);
        let found = |change: &dyn Fn(&mut Stream)| {
            let mut model = tight.clone();
            change(&mut model);
            check_stream(&model, &releases, &jobs).into_iter().map(|violation| violation.model)
                .collect::<Vec<_>>()
        };
        let periodic = found(&|model| model.arrival.periodic = Some(periodic(one)));
        prop_assert_eq!(periodic, vec![Model::PeriodicEarly; jobs.len()]);
        let sporadic = found(&|model| model.arrival.sporadic.iter_mut()
            .for_each(|least| least.min_separation_ns += one));
        prop_assert!(sporadic.contains(&Model::Sporadic));
        let least = found(&|model| model.arrival.curve.iter_mut()
            .for_each(|curve| curve.delta_min_ns[0] += one));
        prop_assert_eq!(least, [Model::DeltaMin(2)]);
        let greatest = found(&|model| if let Some(curve) = &mut model.arrival.curve {
            curve.delta_max_ns[0] = curve.delta_max_ns[0].saturating_sub(one);
        });
        prop_assert_eq!(greatest, [Model::DeltaMax(2)]);
        let cost = found(&|model| model.execution.iter_mut()
            .for_each(|cost| cost.wcet_ns[0] = cost.wcet_ns[0].saturating_sub(one)));
        prop_assert_eq!(cost, [Model::Wcet(1)]);
        let sleep = found(&|model| model.suspension.iter_mut()
            .for_each(|sleep| sleep.dynamic_ns = sleep.dynamic_ns.saturating_sub(one)));
        prop_assert!(sleep.contains(&Model::DynamicSuspension));
        let segments = found(&|model| model.suspension.iter_mut().for_each(|sleep| sleep.segmented.clear()));
        prop_assert_eq!(segments, vec![Model::SegmentedSuspension; jobs.len()]);
        let late = found(&|model| model.response.iter_mut()
            .for_each(|late| late.max_ns = late.max_ns.saturating_sub(one)));
        prop_assert!(late.contains(&Model::Response));
    }
}
