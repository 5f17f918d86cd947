//! Figures of the live view: one row for each thread, one for each of its recent jobs.

use super::figure::Fit::{Drop, Keep};
use super::figure::{Bound, Entry, Rounding, Section, Unit, Value, entry};
use crate::figures::{THREADS, ThreadRow};
use crate::live::{LiveJob, LiveTask, Trend};
use punctual_model::{Duration, ThreadIds};

/// The threads of the live view.
#[derive(Clone, Copy, Debug)]
pub struct Live;

impl Section for Live {
    type Row<'a> = LiveTask;
}

/// The recent jobs of one thread.
#[derive(Clone, Copy, Debug)]
pub struct LiveJobs;

impl Section for LiveJobs {
    type Row<'a> = LiveJob;
}

const fn time(
    field: &'static str,
    title: &'static str,
    bound: Bound,
    meaning: &'static str,
    value: for<'a> fn(&LiveTask) -> Option<Value>,
) -> Entry<Live> {
    entry::<Live>(field, title, Unit::Time, bound, meaning, value)
}

const fn of_job(
    field: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: for<'a> fn(&LiveJob) -> Option<Value>,
) -> Entry<LiveJobs> {
    entry::<LiveJobs>(field, title, unit, Bound::Exact, meaning, value).table(Keep)
}

/// A time as a share of another, rounded up.
fn share(time: Duration, of: Duration) -> Option<Value> {
    let share = (u128::from(time.ns()) * 10_000).div_ceil(u128::from(of.ns().max(1)));
    Some(Value::Share(u64::try_from(share).unwrap_or(u64::MAX)))
}

/// A figure as it is declared for threads of a model.
fn of_model(task: &LiveTask, field: &str) -> Option<Value> {
    let model = task.model.as_deref()?;
    let row = ThreadRow::new(&ThreadIds::default(), model);
    THREADS.iter().find(|entry| entry.figure.field == field).and_then(|entry| (entry.value)(&row))
}

/// Every figure of a thread in the live view, in the order of its columns.
pub const LIVE: &[Entry<Live>] = &[
    entry::<Live>("thread", "Thread", Unit::Words, Bound::Exact, "The thread's name.", |task| {
        Some(Value::Text(task.name.clone()))
    })
    .table(Keep),
    entry::<Live>("tid", "TID", Unit::Count, Bound::Exact, "Its number in the kernel.", |task| {
        Some(Value::Id(task.tid.into()))
    })
    .table(Drop(8)),
    entry::<Live>(
        "policy",
        "Policy",
        Unit::Ranked,
        Bound::Exact,
        "Scheduling policy and priority.",
        |task| Some(Value::Policy(task.policy, task.priority, task.nice)),
    )
    .table(Drop(10)),
    entry::<Live>(
        "arrival",
        "Period",
        Unit::Time,
        Bound::Exact,
        "The exact period; without one, the most releases in a burst or the least separation of releases.",
        |task| if task.never_waits { Some(Value::Word("never waits")) } else { of_model(task, "arrival") },
    )
    .table(Keep),
    entry::<Live>(
        "recent_utilization",
        "U",
        Unit::Share,
        Bound::Estimate,
        "Processor time of the last ten seconds, as a share of one processor.",
        |task| task.utilization.map(Value::Share),
    )
    .rounded(Rounding::Nearest)
    .table(Drop(6)),
    time("last_response_ns", "Last R", Bound::Exact, "Response time of the last job.", |task| {
        task.response.last.map(Value::Time)
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(12)),
    time("mean_response_ns", "Mean R", Bound::Estimate, "Mean response time.", |task| {
        task.response.mean.map(Value::Time)
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(22)),
    time("response_ns", "Max R", Bound::Upper, "Longest response time.", |task| {
        task.response.max.map(Value::Time)
    })
    .table(Keep),
    time(
        "deadline_ns",
        "Deadline",
        Bound::Exact,
        "The deadline: what was agreed on, else that of the reservation, else the period.",
        |task| task.deadline.map(Value::Time),
    )
    .table(Drop(30)),
    entry::<Live>(
        "of_deadline",
        "R/D",
        Unit::Share,
        Bound::Upper,
        "Longest response time as a share of the deadline; above 100 % a job was late, unless \
         its release is not known exactly.",
        |task| share(task.response.max?, task.deadline?),
    )
    .table(Keep),
    entry::<Live>(
        "late",
        "Late",
        Unit::Count,
        Bound::Exact,
        "Jobs that certainly ended after their deadline, as a check counts them; by a period, those before \
         it was found, too.",
        |task| task.deadline.map(|_| Value::Count(task.late)),
    )
    .table(Keep),
    entry::<Live>(
        "of_bound",
        "R/Bound",
        Unit::Share,
        Bound::Upper,
        "Longest response time as a share of its proven bound; above 100 %, something happened that the \
         proof leaves out.",
        |task| share(task.response.max?, task.bound?),
    )
    .table(Drop(32)),
    time("last_cost_ns", "Last C", Bound::Exact, "Processor time of the last job.", |task| {
        task.cost.last.map(Value::Time)
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(26)),
    time("mean_cost_ns", "Mean C", Bound::Estimate, "Mean processor time of a job.", |task| {
        task.cost.mean.map(Value::Time)
    })
    .rounded(Rounding::ThreeDigits)
    .table(Drop(24)),
    time("wcet_ns", "Max C", Bound::Upper, "Most processor time of a job.", |task| {
        task.cost.max.map(Value::Time)
    })
    .table(Drop(14)),
    entry::<Live>("jobs", "Jobs", Unit::Count, Bound::Exact, "Jobs seen from release to end.", |task| {
        Some(Value::Count(task.jobs))
    })
    .table(Drop(28)),
];

/// The greatest value of each of the last seconds, drawn beside the figures.
pub(crate) fn trend_title(trend: Trend) -> &'static str {
    match trend {
        Trend::Response => "Recent R",
        Trend::Cost => "Recent C",
    }
}

/// Every figure of a job in the details of a thread, in the order of its columns.
pub const LIVE_JOBS: &[Entry<LiveJobs>] = &[
    of_job("number", "Job", Unit::Count, "Which job of its task, from 0.", |job| {
        Some(Value::Number(job.number))
    }),
    of_job(
        "release",
        "Released",
        Unit::Instant,
        "When it became ready to run, since the observation began.",
        |job| Some(Value::Since(job.release)),
    ),
    of_job(
        "lateness_ns",
        "Lateness",
        Unit::Time,
        "How long after its arrival, or after its place on the periodic grid, it was released.",
        |job| job.lateness.map(Value::Time),
    ),
    of_job(
        "response_ns",
        "Response",
        Unit::Time,
        "Time from its arrival (where it is unknown, release) to its end.",
        |job| Some(Value::Time(job.response)),
    ),
    of_job("cost_ns", "Cost", Unit::Time, "Processor time that it took.", |job| Some(Value::Time(job.cost))),
    of_job("suspended_ns", "Suspended", Unit::Time, "Time that it slept.", |job| {
        Some(Value::Time(job.suspended))
    }),
    of_job("deadline_missed", "Deadline", Unit::Words, "Whether it ended after its deadline.", |job| {
        job.is_late.then_some(Value::Word("missed"))
    }),
];
