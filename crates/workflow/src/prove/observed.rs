//! What a timing model tells the analysis of one thread, and what it does not.

use super::{Options, jobs, primary};
use punctual_analysis::{Arrivals, Gap, Scheduling, Task};
use punctual_model::arrival::Curve;
use punctual_model::{
    Arrival, Duration, Execution, Percent, PeriodicOn, Policy, Stream, processor_list, threads,
};

/// Threads with fewer jobs get no verdict.
const LEAST_JOBS: u64 = 10;

/// Importers of other tools' traces do not learn them.
pub(super) const UNKNOWN_PROCESSORS: &str = "its processors are unknown";

/// What the analysis needs of a thread, or what of that is missing.
pub(super) fn task(observed: &threads::Task, options: &Options) -> Task {
    let stream = primary(observed);
    let scheduling = scheduling(observed);
    let processors = processor_list(&observed.affinity).unwrap_or_default();
    let execution = stream.and_then(|stream| stream.execution.clone());
    let arrivals = stream.and_then(|stream| arrivals(observed, stream));
    let gap = gap(observed, scheduling, &processors, execution.is_some(), arrivals.is_some());
    let (deadline, deadline_is_period) = deadline(observed, options);
    let suspension = stream.and_then(|stream| stream.suspension.as_ref());
    let segments = suspension.and_then(|it| it.segmented.iter().map(Vec::len).max());
    let task = Task {
        name: observed.name.clone(),
        scheduling,
        processors,
        arrivals: arrivals.unwrap_or(UNBOUNDED),
        execution: execution.unwrap_or(Execution { wcet_ns: Vec::new(), mean_ns: None }),
        suspension: suspension.map_or(Duration::ZERO, |it| it.dynamic_ns),
        suspensions: segments.map_or(0, |most| most.saturating_sub(1) as u64),
        jitter: stream.map_or(Duration::ZERO, jitter),
        deadline,
        deadline_is_period,
        gap,
    };
    task.with_cost_scaled(Percent::WHOLE + options.margin.parts(), Percent::WHOLE)
}

/// The longest time from a known arrival to its release, since responses count from arrivals. Of a stream
/// with modes, the model has lateness only if arrivals are known; where no source explains them, a release
/// is at most as late as the longest response.
fn jitter(stream: &Stream) -> Duration {
    let Arrival { periodic, modes, .. } = &stream.arrival;
    let on_arrival = periodic.as_ref().filter(|it| it.on == PeriodicOn::Arrival).map(|it| it.jitter_ns);
    let of_sources = modes.iter().flat_map(|mode| &mode.sources).map(|source| source.jitter_ns).max();
    let of_modes = match modes.iter().all(|mode| !mode.sources.is_empty()) {
        true => of_sources,
        false => stream.response.as_ref().map(|it| it.max_ns).max(of_sources),
    };
    let knows_arrivals = stream.percentiles.is_some_and(|percentiles| percentiles.lateness.is_some());
    on_arrival.or(of_modes.filter(|_| knows_arrivals)).unwrap_or(Duration::ZERO)
}

/// Releases without a limit.
pub(super) const UNBOUNDED: Arrivals = Arrivals::Sporadic { separation: Duration::ZERO };

fn scheduling(observed: &threads::Task) -> Scheduling {
    match (observed.policy, observed.reservation) {
        (Policy::Deadline, Some(_)) if observed.merged_transitions > 0 => Scheduling::Unknown,
        (Policy::Deadline, Some(reservation)) => Scheduling::Deadline(reservation),
        (Policy::Deadline, None) => Scheduling::Unknown,
        _ if observed.merged_transitions > 0 => Scheduling::Unknown,
        _ => Scheduling::Priority(observed.priority),
    }
}

/// The arrivals of a thread. With few jobs, it has no more of them in any time as long as its observation.
fn arrivals(observed: &threads::Task, stream: &Stream) -> Option<Arrivals> {
    let span = Duration::from_ns(observed.until_ns.ns().saturating_sub(observed.from_ns.ns()));
    let releases = stream.releases.max(stream.jobs);
    let known = stream.arrival.curve.as_ref().map_or(&[][..], |curve| &curve.delta_min_ns);
    if releases < LEAST_JOBS && known.len() as u64 + 1 == releases && !span.is_zero() {
        let delta_min_ns = known.iter().copied().chain([span]).collect();
        return Some(Arrivals::Curve(Curve { delta_min_ns, delta_max_ns: Vec::new() }));
    }
    Arrivals::observed(&stream.arrival)
}

fn gap(
    observed: &threads::Task,
    scheduling: Scheduling,
    processors: &[u32],
    has_cost: bool,
    has_arrivals: bool,
) -> Option<Gap> {
    let changes = observed.merged_transitions > 0;
    let missing = [
        (changes, "its policy, priority or processors changed, and the model has the last ones only"),
        (scheduling == Scheduling::Unknown, "its reservation is unknown"),
        (processors.is_empty(), UNKNOWN_PROCESSORS),
        (!has_cost, "its cost is unknown, as no job of it ended"),
        (!has_arrivals, "its releases have no bound"),
    ];
    let missing = missing.into_iter().find(|it| it.0).map(|it| Gap::Demand(it.1.into()));
    let missing = missing.or_else(|| {
        let open = observed.open_ns?;
        Some(Gap::Demand(format!(
            "its last job had been open for {open}, longer than any that ended, so its cost is unknown"
        )))
    });
    let jobs = jobs(observed);
    missing.or((jobs < LEAST_JOBS).then(|| Gap::Evidence(format!("{jobs} jobs of at least {LEAST_JOBS}"))))
}

/// The declared deadline, else that of the reservation, else the period; and whether it is that. What is only
/// seen in few jobs is none.
fn deadline(observed: &threads::Task, options: &Options) -> (Option<Duration>, bool) {
    if !options.threads.matches(&observed.name) {
        return (None, false);
    }
    let stream = primary(observed).filter(|stream| stream.jobs >= LEAST_JOBS);
    let reserved = observed.reservation.filter(|_| stream.is_some()).map(|it| it.deadline_ns);
    let told = options.declared(&observed.name).or(reserved);
    let period = stream.and_then(|stream| {
        let period = stream.arrival.shortest_period();
        period.or(stream.arrival.sporadic.as_ref().map(|it| it.min_separation_ns))
    });
    (told.or(period), told.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_extract::stream::{Circumstances, Options, Stream as Summary};
    use punctual_model::{Instant, Release, Separator, Window};

    /// Up to 0.3 ms after their arrivals: timers of 10 and 25 ms, and a change of rate.
    #[test]
    fn the_jitter_of_several_sources_covers_every_release() {
        const MS: u64 = 1_000_000;
        let late = |number: u64| number * 7_919 % 300 * 1_000;
        let every = |period: u64, from: u64, until: u64| {
            (0..(until - from) / period).map(move |number| (from + number * period, late(number)))
        };
        let two = every(10 * MS, MS, 5_000 * MS).chain(every(25 * MS, 3 * MS, 5_000 * MS));
        let changed = every(5 * MS, MS, 2_000 * MS).chain(every(8 * MS, 2_003 * MS, 5_000 * MS));
        for mut arrivals in [two.collect::<Vec<_>>(), changed.collect()] {
            arrivals.sort_unstable();
            let mut summary = Summary::new(&Options::default());
            for (arrival, late) in &arrivals {
                let window = Window::at(Instant::from_ns(arrival + late));
                let release = Release { window, arrival: Some(Instant::from_ns(*arrival)) };
                summary.release(&release, Circumstances::default());
            }
            let stream = summary.to_model(Separator::SUSPENSION);
            assert!(!stream.arrival.modes.is_empty() && stream.arrival.periodic.is_none());
            let latest = arrivals.iter().map(|(_, late)| *late).max().expect("releases");
            let jitter = jitter(&stream).ns();
            assert!((latest..latest + MS).contains(&jitter), "{jitter} of {latest}");
        }
    }
}
