//! Disturbances of threads, and costs of their jobs: each job and record against the workload's own report.

use crate::run::{directory, punctual, run, workload};
use crate::{Outcome, Result, Test, ensure, fail};
use punctual_model::{Disturbance, Instant};
use punctual_trace::ctf::Reader;
use punctual_trace::{Activation, Record};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

pub const ALL: &[(&str, Test)] = &[
    ("disturbed::stopped_in_a_sleep", stopped),
    ("disturbed::expirations_of_a_timerfd", || expirations("timerfd", "read timerfd")),
    ("disturbed::expirations_by_sigwaitinfo", || expirations("sigwait", "rt_sigtimedwait")),
    ("disturbed::expirations_by_a_signalfd", || expirations("signalfd", "read signalfd")),
    ("disturbed::interrupted_by_handlers", interrupted),
    ("disturbed::ended_while_waiting", ended),
    ("disturbed::sockets_shut_down", shut),
    ("disturbed::no_job_costs_too_little", costs),
];

/// A recorded run of the workload: its records, its list of jobs, and its report.
struct Recorded {
    records: Vec<Record>,
    /// Each with the columns of its row.
    jobs: Vec<HashMap<String, String>>,
    printed: Value,
}

impl Recorded {
    fn record(mode: &str, jobs: u32) -> Result<Recorded> {
        let directory = directory()?;
        let folder = directory.path().join("recording");
        let mut record = punctual(["record", "-q", "-o"]);
        record.arg(&folder).args(["--", &workload("disturbed"), mode, "--jobs", &jobs.to_string()]);
        let ended = run(record)?;
        ended.expect_code(0)?;
        let list = directory.path().join("jobs.csv");
        let mut replay = punctual(["replay", "-q", "--jobs-out"]);
        replay.arg(&list).arg("-o").arg(directory.path().join("x.timing.json")).arg(&folder);
        run(replay)?.expect_code(0)?;
        Ok(Recorded {
            records: records(&folder)?,
            jobs: rows(&std::fs::read_to_string(&list)?),
            printed: ended.report()?,
        })
    }

    /// The numbers of a list that the workload printed.
    fn numbers(&self, name: &str) -> Vec<u64> {
        self.printed[name].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    /// The jobs of thread `drv` at separators with this prefix, in order.
    fn jobs_at(&self, separator: &str) -> Vec<&HashMap<String, String>> {
        self.jobs
            .iter()
            .filter(|row| row["thread"] == "drv" && row["separator"].starts_with(separator))
            .collect()
    }

    /// The activations of the thread of this name.
    fn activations(&self, name: &str) -> Vec<&Activation> {
        let tid = self.records.iter().find_map(|record| match record {
            Record::Task(task) if task.name == name => Some(task.tid),
            _ => None,
        });
        let activations = self.records.iter().filter_map(|record| match record {
            Record::Activation(activation) => Some(activation),
            _ => None,
        });
        activations.filter(|activation| Some(activation.tid) == tid).collect()
    }
}

fn records(folder: &Path) -> Result<Vec<Record>> {
    let reader = Reader::open(folder).or_else(|error| fail(error.to_string()))?;
    let mut records = Vec::new();
    let damage = reader.read(0..reader.stretches(), &mut |record| records.push(record.clone()));
    ensure!(damage.is_ok_and(|damage| damage.is_empty()), "the recording is damaged");
    Ok(records)
}

/// The rows of a CSV file. No name here has a comma.
pub fn rows(list: &str) -> Vec<HashMap<String, String>> {
    let mut lines = list.lines().map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().into_iter().flatten().collect();
    lines.map(|row| names.iter().cloned().zip(row).collect()).collect()
}

fn number(row: &HashMap<String, String>, column: &str) -> Result<u64> {
    row[column].parse().or_else(|_| fail(format!("{column} is not a number: {row:?}")))
}

/// Whether or not the process was stopped in a sleep, before or past its end: there is one job for each
/// sleep, with a known arrival, and not before it.
fn stopped() -> Result<Outcome> {
    let recorded = Recorded::record("stopped", 60)?;
    let arrivals = recorded.numbers("arrivals_ns");
    let sleeps = recorded.activations("drv");
    let sleeps = sleeps.iter().filter(|activation| activation.separator.call.name() == "clock_nanosleep");
    let seen: Vec<&Activation> = sleeps.copied().filter(|activation| activation.resumed.is_some()).collect();
    ensure!(seen.len() == arrivals.len(), "{} activations for {} sleeps", seen.len(), arrivals.len());
    let mut disturbed = 0;
    for (activation, arrival) in seen.iter().zip(&arrivals) {
        let arrival = Instant::from_ns(*arrival);
        ensure!(activation.arrival == Some(arrival), "the arrival of {activation:?} is not {arrival:?}");
        let Some(resumed) = activation.resumed else { continue };
        let released = resumed.release.map_or(activation.stop, |release| release.latest());
        // No call waits for a timer that has already expired.
        ensure!(
            released >= arrival || !activation.slept,
            "released before its time {arrival:?}: {activation:?}"
        );
        disturbed += usize::from(resumed.disturbance == Some(Disturbance::Signal));
    }
    ensure!(disturbed > 0, "none of the sleeps that ended by being continued is marked");
    let rows = recorded.jobs_at("clock_nanosleep");
    ensure!(rows.len() + 1 >= arrivals.len(), "{} jobs for {} sleeps", rows.len(), arrivals.len());
    for row in rows {
        ensure!(
            number(row, "release_latest_ns")? >= number(row, "arrival_ns")? || row["segments"] == "0",
            "{row:?}"
        );
    }
    Ok(Outcome::Completed)
}

/// Of the workload's timer.
const TIMER_PERIOD_NS: u64 = 5_000_000;

/// Whether each arrival is the first or the last of its expirations. `origin` is the timer's first
/// expiration, `taken` the number that each call took.
fn are_expirations(arrivals: &[u64], origin: u64, taken: &[u64]) -> bool {
    let mut first = origin;
    arrivals.iter().zip(taken).all(|(arrival, taken)| {
        let last = first + TIMER_PERIOD_NS * (taken - 1);
        let is_one = *arrival == first || *arrival == last;
        first = last + TIMER_PERIOD_NS;
        is_one
    })
}

fn expirations(mode: &str, separator: &str) -> Result<Outcome> {
    let recorded = Recorded::record(mode, 40)?;
    let expirations = recorded.numbers("expirations");
    ensure!(expirations.iter().any(|number| *number > 1), "no expirations were coalesced: {expirations:?}");
    let listed: Vec<u64> =
        recorded.jobs_at(separator).iter().map(|row| number(row, "expirations")).collect::<Result<_>>()?;
    ensure!(
        listed.len() >= 39 && expirations[..].starts_with(&listed),
        "the reads told {expirations:?}, the list has {listed:?}"
    );
    let arrivals: Vec<u64> =
        recorded.jobs_at(separator).iter().map(|row| number(row, "arrival_ns")).collect::<Result<_>>()?;
    let origins = [arrivals[0], arrivals[0] - TIMER_PERIOD_NS * (expirations[0] - 1)];
    ensure!(
        origins.iter().any(|origin| are_expirations(&arrivals, *origin, &expirations)),
        "after {expirations:?} expirations the arrivals were {arrivals:?}"
    );
    Ok(Outcome::Completed)
}

/// Every wait except the last ends with a job that a signal released.
fn interrupted() -> Result<Outcome> {
    let recorded = Recorded::record("interrupted", 60)?;
    let waits = ["epoll_pwait", "ppoll", "futex_wait"];
    let activations = recorded.activations("drv");
    // Only the thread's own futex words: the C library may wait on another when the thread ends.
    let own: Vec<_> = activations.iter().take(3).map(|activation| activation.separator).collect();
    ensure!(
        own.iter().all(|separator| waits.contains(&separator.call.name())),
        "the first waits are {own:?}"
    );
    let seen: Vec<_> = activations.iter().filter(|activation| own.contains(&activation.separator)).collect();
    ensure!(seen.len() == 60, "{} waits, there were 60", seen.len());
    for activation in seen {
        let disturbance = activation.resumed.and_then(|resumed| resumed.disturbance);
        ensure!(disturbance == Some(Disturbance::Signal), "a signal ended this wait: {activation:?}");
    }
    Ok(Outcome::Completed)
}

/// The last wait of each thread released nothing, or is marked as its end.
fn ended() -> Result<Outcome> {
    let recorded = Recorded::record("ended", 1)?;
    for kind in 0..9 {
        let activations = recorded.activations(&format!("wait-{kind}"));
        let Some(last) = activations.last() else { return fail(format!("nothing was seen of wait-{kind}")) };
        let by = last.resumed.map(|resumed| resumed.disturbance);
        ensure!(
            matches!(by, None | Some(Some(Disturbance::Ending))),
            "the end of wait-{kind} released a job: {last:?}"
        );
    }
    Ok(Outcome::Completed)
}

fn shut() -> Result<Outcome> {
    let recorded = Recorded::record("shut", 1)?;
    for (kind, call) in [(4, "read"), (5, "recvfrom"), (6, "recvfrom"), (7, "accept4"), (8, "ppoll")] {
        let activations = recorded.activations(&format!("wait-{kind}"));
        let wait = activations.iter().find(|activation| activation.separator.call.name() == call);
        let Some(wait) = wait else { return fail(format!("no {call} of wait-{kind}: {activations:?}")) };
        let by = wait.resumed.and_then(|resumed| resumed.disturbance);
        ensure!(by == Some(Disturbance::Ending), "nothing came any more at {wait:?}");
    }
    Ok(Outcome::Completed)
}

/// Each job costs at least the processor time that the thread itself measured within it, and all together
/// cost no more than the elapsed time.
fn costs() -> Result<Outcome> {
    let recorded = Recorded::record("costs", 5_000)?;
    let logged = recorded.numbers("costs_ns");
    let rows = recorded.jobs_at("read eventfd");
    ensure!(rows.len() >= logged.len() - 1, "{} jobs for {} reads", rows.len(), logged.len());
    let (mut sum, mut first, mut last) = (0, u64::MAX, 0);
    for (row, logged) in rows.iter().zip(&logged) {
        let cost = number(row, "cost_ns")?;
        ensure!(cost >= *logged, "a job costs {cost} ns, and had {logged} ns by its own clock: {row:?}");
        sum += cost;
        first = first.min(number(row, "start_ns")?);
        last = last.max(number(row, "end_ns")?);
    }
    ensure!(sum <= last - first, "{sum} ns of processor time in {} ns", last - first);
    let back_to_back = rows.windows(2).filter(|pair| pair[0]["end_ns"] == pair[1]["start_ns"]).count();
    ensure!(back_to_back > rows.len() / 2, "only {back_to_back} of {} jobs are back to back", rows.len());
    Ok(Outcome::Completed)
}
