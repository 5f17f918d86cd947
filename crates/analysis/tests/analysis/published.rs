//! The published analyses of the `response-time-analysis` crate find the same bounds.

use crate::{ns, task};
use punctual_analysis::{Arrivals, Scheduling, System};
use punctual_model::policy::Reservation;
use punctual_test_support::Random;
use response_time_analysis::arrival;
use response_time_analysis::demand::RBF;
use response_time_analysis::time as published;
use response_time_analysis::wcet;
use response_time_analysis::{edf, fixed_priority};

const LIMIT: u64 = 1_000_000;

type Rbf = RBF<arrival::Sporadic, wcet::Scalar>;

fn rbf(cost: u64, period: u64, jitter: u64) -> Rbf {
    let arrivals = arrival::Sporadic {
        min_inter_arrival: published::Duration::from(period),
        jitter: published::Duration::from(jitter),
    };
    RBF::new(arrivals, wcet::Scalar::from(published::Service::from(cost)))
}

fn some(random: &mut Random) -> Vec<(u64, u64, u64)> {
    (0..1 + random.below(5))
        .map(|_| {
            let period = 10 + random.below(90);
            (1 + random.below(period / 3 + 1), period, random.below(30))
        })
        .collect()
}

#[test]
fn fixed_priorities() {
    let mut random = Random(1);
    let mut bounded = 0;
    for _ in 0..2_000 {
        let some = some(&mut random);
        let tasks = some.iter().zip((1..99).rev()).map(|(&(cost, period, jitter), priority)| {
            let mut task = task(Scheduling::Priority(priority), cost, period);
            task.arrivals = Arrivals::Periodic { period: ns(period), jitter: ns(jitter) };
            task
        });
        let system = System { tasks: tasks.collect(), platforms: Vec::new() };
        for (me, found) in system.prove().into_iter().enumerate() {
            let all: Vec<Rbf> =
                some[..=me].iter().map(|&(cost, period, jitter)| rbf(cost, period, jitter)).collect();
            let limit = published::Duration::from(LIMIT);
            let theirs = fixed_priority::fully_preemptive::dedicated_uniproc_rta(&all[me], &all[..me], limit);
            let theirs = theirs.ok().map(u64::from);
            let found = found.ok().map(|it| it.response.ns()).filter(|&it| it < LIMIT / 2);
            if let Some(theirs) = theirs.filter(|&it| it < LIMIT / 2) {
                assert_eq!(found, Some(theirs), "task {me} of {some:?}");
                bounded += 1;
            } else {
                assert_eq!(found, None, "task {me} of {some:?}");
            }
        }
    }
    assert!(bounded > 2_000, "{bounded}");
}

#[test]
fn earliest_deadlines() {
    let mut random = Random(2);
    let mut bounded = 0;
    for _ in 0..2_000 {
        let some: Vec<(u64, u64, u64)> = some(&mut random)
            .into_iter()
            .map(|(cost, period, _)| {
                let least = (cost + 1).min(period);
                (cost, period, least + random.below(period - least + 1))
            })
            .collect();
        let tasks = some.iter().map(|&(cost, period, deadline)| {
            let spare = u64::from(deadline < period);
            let [runtime_ns, deadline_ns, period_ns] = [cost + spare, deadline, period].map(ns);
            let reservation = Reservation { runtime_ns, deadline_ns, period_ns };
            task(Scheduling::Deadline(reservation), cost, period)
        });
        let system = System { tasks: tasks.collect(), platforms: Vec::new() };
        for (me, found) in system.prove().into_iter().enumerate() {
            let Ok(found) = found else { continue };
            let other = |it: usize| {
                let (cost, period, deadline) = some[it];
                (rbf(cost, period, 0), published::Duration::from(deadline))
            };
            let own = other(me);
            let others: Vec<_> = (0..some.len()).filter(|&it| it != me).map(other).collect();
            let limit = published::Duration::from(LIMIT);
            let theirs = earliest_deadline(&own, &others, limit);
            // The kernel may hold a job until the next period of its reservation.
            let (_, period, deadline) = some[me];
            let found = found.response.ns() - (period - deadline);
            assert_eq!(Some(found), theirs, "task {me} of {some:?}");
            bounded += 1;
        }
    }
    assert!(bounded > 500, "{bounded}");
}

fn earliest_deadline(
    own: &(Rbf, published::Duration),
    others: &[(Rbf, published::Duration)],
    limit: published::Duration,
) -> Option<u64> {
    use edf::fully_preemptive::{Task, dedicated_uniproc_rta};
    fn task(it: &(Rbf, published::Duration)) -> Task<'_, Rbf> {
        Task { rbf: &it.0, deadline: it.1 }
    }
    let others: Vec<_> = others.iter().map(task).collect();
    dedicated_uniproc_rta(&task(own), &others, limit).ok().map(u64::from)
}
