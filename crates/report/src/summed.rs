//! The phases of a thread as one task: where records are lost again and again, a thread has hundreds of them.
//!
//! Upper bounds are the greatest of all phases, lower bounds the least, counts their sum; a period is there
//! where all phases that have one agree. So every figure allows everything that its phases allow.

use crate::derived::primary;
use crate::figures::{Phases, ThreadRow};
use crate::shape::Shape;
use punctual_model::{
    Arrival, Duration, EndedBy, Execution, Percentiles, Periodic, Quantiles, Response, Sporadic, Stream,
    Suspension, Task, ThreadIds, Typical,
};
use std::borrow::Cow;
use std::collections::HashMap;

/// A task, or several of one thread with the same primary separator.
pub(crate) struct Summed<'a> {
    pub(crate) task: Cow<'a, Task>,
    /// Its phases.
    pub(crate) tasks: Vec<&'a Task>,
    /// Under how many policies or priorities.
    pub(crate) policies: u64,
}

impl<'a> Summed<'a> {
    /// Each by itself.
    pub(crate) fn each(tasks: &[&'a Task]) -> Vec<Summed<'a>> {
        tasks.iter().map(|task| Summed::one(task)).collect()
    }

    /// One for each thread and primary separator, in the order of their first tasks. Tasks that never waited
    /// stay apart: there may be others between them.
    pub(crate) fn by_separator(tasks: &[&'a Task], ids: &ThreadIds<'_>) -> Vec<Summed<'a>> {
        let key = |task: &Task| {
            (primary(task).map(|stream| stream.separator.key()), task.busy_ns.map(|_| task.phase))
        };
        let mut places = HashMap::new();
        let mut groups: Vec<Vec<&'a Task>> = Vec::new();
        for &task in tasks {
            let place = *places.entry((ids.of(task), key(task))).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.push(task),
                None => groups.push(vec![task]),
            }
        }
        groups.into_iter().map(Summed::new).collect()
    }

    /// Whether it is the sum of several phases.
    pub(crate) fn is_sum(&self) -> bool {
        self.tasks.len() > 1
    }

    /// Its row; `ids` are of all tasks of the model.
    pub(crate) fn row(&self, ids: &ThreadIds<'_>) -> ThreadRow<'_> {
        if !self.is_sum() {
            return ThreadRow::new(ids, &self.task);
        }
        let phases = Phases::Sum { phases: self.tasks.len() as u64, policies: self.policies };
        ThreadRow { task: &self.task, stream: primary(&self.task), phases }
    }

    fn one(task: &'a Task) -> Summed<'a> {
        Summed { task: Cow::Borrowed(task), tasks: vec![task], policies: 1 }
    }

    fn new(phases: Vec<&'a Task>) -> Summed<'a> {
        let longest = phases.iter().max_by_key(|task| primary(task).map_or(0, |stream| stream.jobs));
        let (Some(longest), [_, _, ..]) = (longest, &phases[..]) else {
            return Summed::one(phases.first().copied().expect("a group has a task"));
        };
        let streams: Vec<&Stream> = phases.iter().filter_map(|task| primary(task)).collect();
        let mut policies: Vec<_> =
            phases.iter().map(|task| (task.policy as u8, task.priority, task.nice)).collect();
        policies.sort_unstable();
        policies.dedup();
        let task = Task {
            from_ns: phases.iter().map(|task| task.from_ns).min().unwrap_or_default(),
            until_ns: phases.iter().map(|task| task.until_ns).max().unwrap_or_default(),
            ended_by: match phases.iter().any(|task| task.ended_by == EndedBy::Loss) {
                true => EndedBy::Loss,
                false => longest.ended_by,
            },
            separators_capped: phases.iter().any(|task| task.separators_capped),
            primary: streams.first().map(|_| 0),
            streams: streams.first().map(|_| sum(&streams)).into_iter().collect(),
            ..(*longest).clone()
        };
        Summed { task: Cow::Owned(task), policies: policies.len() as u64, tasks: phases }
    }
}

fn sum(streams: &[&Stream]) -> Stream {
    let total = |counter: fn(&Stream) -> u64| {
        streams.iter().map(|stream| counter(stream)).fold(0, u64::saturating_add)
    };
    let costs: Vec<(&Execution, u64)> =
        streams.iter().filter_map(|stream| Some((stream.execution.as_ref()?, stream.jobs))).collect();
    let responses: Vec<(&Response, u64)> =
        streams.iter().filter_map(|stream| Some((stream.response.as_ref()?, stream.jobs))).collect();
    let suspensions = streams.iter().filter_map(|stream| stream.suspension.as_ref());
    let least = streams.iter().filter_map(|stream| stream.arrival.sporadic.as_ref());
    let periodic = periodic(streams);
    Stream {
        separator: streams[0].separator,
        jobs: total(|stream| stream.jobs),
        releases: total(|stream| stream.releases),
        uncertain_releases: total(|stream| stream.uncertain_releases),
        back_to_back: total(|stream| stream.back_to_back),
        late: periodic.as_ref().and(late(streams)),
        arrival: Arrival {
            periodic,
            sporadic: least
                .map(|sporadic| sporadic.min_separation_ns)
                .min()
                .map(|min_separation_ns| Sporadic { min_separation_ns }),
            curve: None,
            modes: Vec::new(),
        },
        execution: costs.iter().filter_map(|(cost, _)| cost.wcet_ns.first().copied()).max().map(|greatest| {
            Execution {
                wcet_ns: vec![greatest],
                mean_ns: mean(costs.iter().map(|(cost, jobs)| (cost.mean_ns, *jobs))),
            }
        }),
        suspension: suspensions
            .map(|suspension| suspension.dynamic_ns)
            .max()
            .map(|dynamic_ns| Suspension { dynamic_ns, segmented: Vec::new() }),
        response: responses.iter().map(|(response, _)| response.max_ns).max().map(|max_ns| Response {
            max_ns,
            certain_max_ns: None,
            mean_ns: mean(responses.iter().map(|(response, jobs)| (response.mean_ns, *jobs))),
        }),
        percentiles: percentiles(streams),
    }
}

/// By the number of jobs; none where one is unknown.
fn mean(all: impl Iterator<Item = (Option<Duration>, u64)>) -> Option<Duration> {
    let (mut sum, mut count) = (0_u128, 0_u128);
    for (mean, jobs) in all {
        sum += u128::from(mean?.ns()) * u128::from(jobs);
        count += u128::from(jobs);
    }
    sum.checked_div(count).and_then(|mean| u64::try_from(mean).ok()).map(Duration::from_ns)
}

/// None where it is unknown of a phase with jobs.
fn late(streams: &[&Stream]) -> Option<u64> {
    let mut with_jobs = streams.iter().filter(|stream| stream.jobs > 0);
    with_jobs.try_fold(0_u64, |sum, stream| Some(sum.saturating_add(stream.late?)))
}

/// None where a phase has another period, or is not shown as periodic.
fn periodic(streams: &[&Stream]) -> Option<Periodic> {
    let mut all: Vec<&Periodic> = Vec::new();
    for stream in streams.iter().filter(|stream| stream.arrival.periodic.is_some()) {
        let Shape::Periodic(periodic) = Shape::new(stream) else { return None };
        all.push(periodic);
    }
    let first = *all.first()?;
    let same = |other: &&Periodic| {
        (other.period_ns, other.period_exact, other.on) == (first.period_ns, first.period_exact, first.on)
    };
    all.iter().all(same).then(|| {
        let greatest =
            |figure: fn(&Periodic) -> Duration| all.iter().map(|one| figure(one)).max().unwrap_or_default();
        let total =
            |figure: fn(&Periodic) -> u64| all.iter().map(|one| figure(one)).fold(0, u64::saturating_add);
        let left_out = all.iter().filter_map(|one| one.typical.as_ref()).flat_map(|one| &one.left_out);
        Periodic {
            jitter_ns: greatest(|one| one.jitter_ns),
            least_jitter_ns: greatest(|one| one.least_jitter_ns),
            approximate: all.iter().any(|one| one.approximate),
            skipped: total(|one| one.skipped),
            extra: total(|one| one.extra),
            slips: Vec::new(),
            typical: all.iter().any(|one| one.typical.is_some()).then(|| Typical {
                offset_ns: first.offset_ns,
                jitter_ns: greatest(|one| one.usual_jitter()),
                left_out: left_out.cloned().collect(),
            }),
            ..first.clone()
        }
    })
}

/// What so many of all do not exceed is at most the greatest of what so many of each do not exceed. None
/// where a phase with jobs has none.
fn percentiles(streams: &[&Stream]) -> Option<Percentiles> {
    let with_jobs = || streams.iter().filter(|stream| stream.jobs > 0);
    let greatest = |kind: fn(&Percentiles) -> Option<Quantiles>| {
        let all: Option<Vec<Quantiles>> =
            with_jobs().map(|stream| kind(stream.percentiles.as_ref()?)).collect();
        let all = all?;
        let most = |quantile: fn(&Quantiles) -> Duration| all.iter().map(quantile).max();
        Some(Quantiles {
            p10_ns: None,
            p25_ns: None,
            p50_ns: most(|one| one.p50_ns)?,
            p90_ns: most(|one| one.p90_ns)?,
            p99_ns: most(|one| one.p99_ns)?,
            p999_ns: most(|one| one.p999_ns)?,
        })
    };
    Some(Percentiles {
        lateness: greatest(|one| one.lateness),
        cost: greatest(|one| one.cost),
        response: greatest(|one| one.response),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn summed(tasks: &[Task]) -> Vec<Summed<'_>> {
        Summed::by_separator(&tasks.iter().collect::<Vec<_>>(), &ThreadIds::new(tasks))
    }

    fn lossy(phases: u32) -> Vec<Task> {
        let phase = |phase| {
            let mut task = example::task("ctl", 1_202, 80);
            (task.phase, task.ended_by) = (phase, EndedBy::Loss);
            let stream = &mut task.streams[0];
            stream.jobs = 10 + u64::from(phase);
            stream.percentiles = Some(example::percentiles());
            if let Some(execution) = &mut stream.execution {
                execution.wcet_ns[0] = Duration::from_us(800 + u64::from(phase));
            }
            task
        };
        (0..phases).map(phase).collect()
    }

    #[test]
    fn a_sum_allows_what_its_phases_allow() {
        let mut phases = lossy(3);
        phases[1].streams[0].arrival.sporadic = Some(Sporadic { min_separation_ns: Duration::from_us(3) });
        phases[2].streams[0].arrival.periodic = None;
        let tasks: Vec<&Task> = phases.iter().collect();
        let ids = ThreadIds::new(tasks.iter().copied());
        let found = Summed::by_separator(&tasks, &ids);
        assert_eq!(found.iter().map(|sum| (sum.tasks.len(), sum.policies)).collect::<Vec<_>>(), [(3, 1)]);
        let stream = primary(&found[0].task).expect("the sum of the streams");
        assert_eq!(stream.jobs, 10 + 11 + 12);
        assert_eq!(stream.execution.as_ref().map(|cost| cost.wcet_ns[0]), Some(Duration::from_us(802)));
        let least = stream.arrival.sporadic.as_ref().map(|sporadic| sporadic.min_separation_ns);
        assert_eq!(least, Some(Duration::from_us(3)));
        let period = stream.arrival.periodic.as_ref().map(|periodic| periodic.period_ns);
        assert_eq!(period, Some(Duration::from_ms(5)), "phases that have one agree");
        assert_eq!(found[0].task.ended_by, EndedBy::Loss);
    }

    #[test]
    fn late_jobs_add_up_where_all_are_known() {
        let late = |counts: [Option<u64>; 3], periods: usize| {
            let mut phases = lossy(3);
            phases.iter_mut().zip(counts).for_each(|(phase, late)| phase.streams[0].late = late);
            phases[2].streams[0].jobs = 0;
            phases[periods..].iter_mut().for_each(|phase| phase.streams[0].arrival.periodic = None);
            primary(&summed(&phases)[0].task).expect("the sum of the streams").late
        };
        assert_eq!(late([Some(1), Some(2), None], 3), Some(3), "of the last one's no job");
        assert_eq!(late([Some(1), None, Some(2)], 3), None);
        assert_eq!(late([Some(u64::MAX), Some(2), None], 3), Some(u64::MAX));
        assert_eq!(late([Some(1), Some(2), None], 0), None, "there is no period");
    }

    #[test]
    fn other_separators_threads_and_periods_stay_apart() {
        let mut phases = lossy(3);
        phases[1].streams[0].separator.call = punctual_model::Call::Nanosleep;
        phases[2].tid = 9;
        assert_eq!(summed(&phases).len(), 3);
        let mut phases = lossy(2);
        phases[1].streams[0].arrival.periodic = Some(example::periodic(7_000_000, 80));
        phases[1].priority = 7;
        let found = summed(&phases);
        assert_eq!((found.len(), found[0].policies), (1, 2));
        assert!(primary(&found[0].task).is_some_and(|stream| stream.arrival.periodic.is_none()));
    }
}
