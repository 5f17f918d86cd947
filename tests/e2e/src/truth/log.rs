//! What jobs say of themselves, beside what was seen of them: shared by the tests and by `make bench-truth`.
//!
//! A driver's log has a line for each job: the index of its activation, when it was due, when the job saw
//! that its wait was over, and its processor time at both ends. Punctual's list has releases, ends and costs.

use punctual_model::{Periodic, Stream};
use std::collections::BTreeMap;

/// Drivers whose activations are on no grid, and why.
pub const OFF_GRID: &[(&str, &str)] = &[
    ("nanosleep_drifting", "each sleep begins when the job before ends"),
    ("read_block", "a device answers when it can"),
    ("preadv_block", "a device answers when it can"),
    ("read_back_to_back", "three activations at once"),
    ("yield", "the reservation begins anew where it is late, and counts on another clock"),
];

/// Whether this driver's activations are on a grid. Those of calls that cannot block do not count: they
/// sleep.
pub fn is_on_grid(driver: &str) -> bool {
    !driver.starts_with("no_") && !OFF_GRID.iter().any(|(name, _)| *name == driver)
}

/// A job by its own account.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    pub index: u64,
    pub seen_ns: u64,
    pub cpu_ns: u64,
}

/// A job as it was listed, at its thread's primary separator.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    pub arrival_ns: Option<u64>,
    /// Where its wake-up was seen before it ran.
    pub release_ns: Option<u64>,
    pub start_ns: u64,
    pub end_ns: u64,
    pub cost_ns: u64,
}

/// Rows of a CSV file by the names of its columns.
fn rows(text: &str) -> impl Iterator<Item = BTreeMap<&str, &str>> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    lines.map(move |line| head.iter().copied().zip(line.split(',')).collect())
}

fn number(row: &BTreeMap<&str, &str>, column: &str) -> Result<u64, String> {
    let field = row.get(column).copied().unwrap_or_default();
    field.parse().map_err(|_| format!("column {column} has no number, but '{field}'"))
}

/// A driver's log.
pub fn logged(text: &str) -> Result<Vec<Logged>, String> {
    let job = |row: BTreeMap<&str, &str>| {
        let cpu_ns = number(&row, "cpu_after_ns")? - number(&row, "cpu_before_ns")?;
        Ok(Logged { index: number(&row, "index")?, seen_ns: number(&row, "seen_ns")?, cpu_ns })
    };
    rows(text).map(job).collect()
}

/// A task of a recording, by its thread and its phase.
pub type Key = (u64, u64);

/// The jobs of all tasks of threads of this name, at their primary separators.
pub fn listed(text: &str, thread: &str) -> Result<BTreeMap<Key, Vec<Listed>>, String> {
    let mut tasks: BTreeMap<Key, Vec<Listed>> = BTreeMap::new();
    let is_wanted = |row: &BTreeMap<&str, &str>| {
        row.get("thread") == Some(&thread) && row.get("primary") == Some(&"true")
    };
    for row in rows(text).filter(is_wanted) {
        let (earliest, latest) = (number(&row, "release_earliest_ns")?, number(&row, "release_latest_ns")?);
        let start_ns = number(&row, "start_ns")?;
        let job = Listed {
            arrival_ns: number(&row, "arrival_ns").ok(),
            release_ns: (earliest == latest && latest < start_ns).then_some(latest),
            start_ns,
            end_ns: number(&row, "end_ns")?,
            cost_ns: number(&row, "cost_ns")?,
        };
        tasks.entry((number(&row, "tid")?, number(&row, "phase")?)).or_default().push(job);
    }
    Ok(tasks)
}

/// Jobs that were held against their own account.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    pub compared: u64,
    /// Their cost is less than the processor time that they know they took.
    pub too_little: u64,
    /// By how much at most.
    pub worst_ns: u64,
    /// Their cost exceeds the time from start to end by more than the kernel explains.
    pub too_much: u64,
}

impl std::ops::AddAssign for Costs {
    fn add_assign(&mut self, other: Costs) {
        self.compared += other.compared;
        self.too_little += other.too_little;
        self.worst_ns = self.worst_ns.max(other.worst_ns);
        self.too_much += other.too_much;
    }
}

/// The logged jobs that were in each listed one: those that began after the one before it had ended. Both are
/// in order. A start that was not seen itself may be late.
fn contained<'a>(
    listed: &'a [Listed],
    logged: &'a [Logged],
) -> impl Iterator<Item = (&'a Listed, &'a [Logged])> {
    let mut from = listed.first().map_or(0, |job| logged.partition_point(|own| own.seen_ns < job.start_ns));
    listed.iter().map(move |job| {
        let until = logged.partition_point(|own| own.seen_ns <= job.end_ns).max(from);
        (job, &logged[std::mem::replace(&mut from, until)..until])
    })
}

/// How far the kernel's clocks may be apart over a job, and its readings of them.
const CLOCKS_NS: u64 = 10_000;

/// Whether a job costs more than its thread can have had. A thread that preempts another when it is woken is
/// charged from then on, before it runs.
fn costs_too_much(job: &Listed) -> bool {
    job.release_ns.is_some_and(|woken| job.cost_ns > job.end_ns.saturating_sub(woken) + CLOCKS_NS)
}

/// Each listed job must have cost what those that say they were in it took.
pub fn costs(listed: &[Listed], logged: &[Logged]) -> Costs {
    let mut costs = Costs::default();
    for (job, inside) in contained(listed, logged) {
        let own: u64 = inside.iter().map(|own| own.cpu_ns).sum();
        costs.compared += u64::from(!inside.is_empty());
        costs.too_little += u64::from(job.cost_ns < own);
        costs.worst_ns = costs.worst_ns.max(own.saturating_sub(job.cost_ns));
        costs.too_much += u64::from(costs_too_much(job));
    }
    costs
}

/// Activations without a release of their own between the first release and the last: nobody waited for them,
/// their events became one, or the C library made no call since nothing was to be waited for. If there are
/// more releases than listed jobs, the job of the last one had not ended: it is the next that is logged.
pub fn skipped(listed: &[Listed], releases: u64, logged: &[Logged]) -> u64 {
    let ended = contained(listed, logged).filter_map(|(_, inside)| Some(inside.first()?.index));
    let after = logged.partition_point(|own| listed.last().is_some_and(|job| own.seen_ns <= job.end_ns));
    let unfinished = logged.get(after).filter(|_| releases > listed.len() as u64).map(|own| own.index);
    let mut released = ended.chain(unfinished);
    let Some(first) = released.next() else { return 0 };
    let (releases, last) = released.fold((1, first), |(releases, _), index| (releases + 1, index));
    (last - first + 1).saturating_sub(releases)
}

/// Activations that jobs with known arrivals, all on a grid of this period, left out.
pub fn skipped_by_arrivals(listed: &[Listed], period_ns: u64) -> Option<u64> {
    let (first, last) = (listed.first()?.arrival_ns?, listed.last()?.arrival_ns?);
    Some(((last - first) / period_ns + 1).saturating_sub(listed.len() as u64))
}

/// What is wrong with the period; `None`: nothing.
pub fn wrong_period(stream: &Stream, period_ns: u64) -> Option<String> {
    let Some(periodic) = &stream.arrival.periodic else { return Some("no periodic model".into()) };
    let right = periodic.period_ns.ns() == period_ns && periodic.period_exact.is_none();
    (!right).then(|| format!("period {}, not {period_ns} ns", describe(periodic)))
}

/// What is wrong with the slips, if so many activations were skipped in all that was logged. A model may miss
/// the first release and the last, but no activation is skipped there.
pub fn wrong_slips(stream: &Stream, skipped: u64) -> Option<String> {
    let periodic = stream.arrival.periodic.as_ref()?;
    let right = (periodic.skipped, periodic.extra) == (skipped, 0);
    (!right).then(|| format!("{}, but {skipped} were skipped", describe(periodic)))
}

fn describe(periodic: &Periodic) -> String {
    let fraction = periodic.period_exact.map(|exact| format!(" ({}/{})", exact.numerator, exact.denominator));
    format!(
        "{} ns{}, jitter {}, {} skipped, {} extra",
        periodic.period_ns.ns(),
        fraction.unwrap_or_default(),
        periodic.jitter_ns,
        periodic.skipped,
        periodic.extra
    )
}
