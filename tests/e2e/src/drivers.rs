//! A row for each driver: which separator must be found.

use crate::model::{only_task, primary, tasks};
use crate::run::{run, workload};
use crate::{Failure, Outcome, Result, ensure, fail, skip, timing};
use punctual_model::{Call, Choice, PeriodicOn, Policy, Stream, Task, TimingModel};
use serde_json::Value;
use std::cell::Cell;
use std::process::Command;
use together::All;

mod narrow;
mod together;

/// The workload with all drivers.
const DRIVERS: &str = "drivers";

/// The expected object of a separator.
#[derive(Clone, Copy)]
enum On {
    /// None.
    Nothing,
    /// A descriptor of this class.
    A(&'static str),
    Clock(&'static str, Sleep),
    Address,
    Identifier,
}
use On::{A, Address, Clock, Identifier, Nothing};

#[derive(Clone, Copy, PartialEq)]
enum Sleep {
    Absolute,
    Relative,
}
use Sleep::{Absolute, Relative};

/// The expected period.
#[derive(Clone, Copy, PartialEq)]
enum Period {
    /// Exactly the configured one: arrivals are known.
    Exact,
    /// The configured one, unless the model marks it as an estimate.
    Configured,
    /// Releases have no period of their own.
    Free,
}
use Period::{Configured, Exact, Free};

#[derive(Clone, Copy)]
struct Row {
    driver: &'static str,
    call: &'static str,
    on: On,
    period: Period,
}

const fn row(driver: &'static str, call: &'static str, on: On, period: Period) -> Row {
    Row { driver, call, on, period }
}

const ROWS: &[Row] = &[
    row("sleep_absolute", "clock_nanosleep", Clock("CLOCK_MONOTONIC", Absolute), Exact),
    row("sleep_absolute_realtime", "clock_nanosleep", Clock("CLOCK_REALTIME", Absolute), Exact),
    row("sleep_absolute_boottime", "clock_nanosleep", Clock("CLOCK_BOOTTIME", Absolute), Exact),
    row("sleep_relative", "clock_nanosleep", Clock("CLOCK_MONOTONIC", Relative), Configured),
    row("sleep_relative_realtime", "clock_nanosleep", Clock("CLOCK_REALTIME", Relative), Configured),
    row("nanosleep", "nanosleep", Clock("CLOCK_MONOTONIC", Relative), Configured),
    row("nanosleep_drifting", "nanosleep", Clock("CLOCK_MONOTONIC", Relative), Free),
    row("select_timeout", "select", Nothing, Configured),
    row("ppoll_timeout", "ppoll", Nothing, Configured),
    // The kernel sets the replenishment timer by its last reading of the clock: exact to some microseconds.
    row("yield", "sched_yield", Nothing, Configured),
    // A signal in the middle of a sleep, with and without a handler: the sleep until the same time continues,
    // as one activation.
    row("sleep_interrupted", "clock_nanosleep", Clock("CLOCK_MONOTONIC", Absolute), Exact),
    row("sleep_stopped", "clock_nanosleep", Clock("CLOCK_MONOTONIC", Absolute), Exact),
    row("select", "select", Nothing, Configured),
    row("pselect6", "pselect6", Nothing, Configured),
    row("poll", "poll", A("pipe"), Configured),
    row("poll_then_read", "poll", A("pipe"), Configured),
    row("ppoll", "ppoll", A("eventfd"), Configured),
    row("ppoll_moving_array", "ppoll", Nothing, Configured),
    row("epoll_wait", "epoll_wait", A("epoll"), Configured),
    row("epoll_pwait", "epoll_pwait", A("epoll"), Configured),
    row("epoll_pwait2", "epoll_pwait2", A("epoll"), Configured),
    row("read_pipe", "read", A("pipe"), Configured),
    row("read_fifo", "read", A("pipe"), Configured),
    row("read_terminal", "read", A("char"), Configured),
    row("read_socket", "read", A("socket"), Configured),
    // The arrival is the expiration of the kernel's timer.
    row("read_timerfd", "read", A("timerfd"), Exact),
    row("read_timerfd_realtime", "read", A("timerfd"), Exact),
    row("read_eventfd", "read", A("eventfd"), Configured),
    row("read_signalfd", "read", A("signalfd"), Configured),
    row("read_inotify", "read", A("inotify"), Configured),
    row("read_block", "read", A("block"), Free),
    row("readv", "readv", A("pipe"), Configured),
    row("preadv_block", "preadv", A("block"), Free),
    row("preadv2", "preadv2", A("pipe"), Configured),
    row("read_back_to_back", "read", A("pipe"), Free),
    row("accept", "accept", A("socket"), Configured),
    row("accept4", "accept4", A("socket"), Configured),
    row("recv", "recvfrom", A("socket"), Configured),
    row("recvfrom_udp", "recvfrom", A("socket"), Configured),
    row("recvmsg", "recvmsg", A("socket"), Configured),
    row("recvmmsg", "recvmmsg", A("socket"), Configured),
    row("futex_wait", "futex_wait", Address, Configured),
    row("futex_wait_bitset", "futex_wait_bitset", Address, Configured),
    row("futex_alternating_words", "futex_wait_bitset", Address, Configured),
    row("futex_wait2", "futex_wait", Address, Configured),
    row("futex_waitv", "futex_waitv", Nothing, Configured),
    row("futex_lock_pi", "futex_lock_pi", Address, Configured),
    row("futex_lock_pi2", "futex_lock_pi", Address, Configured),
    row("futex_wait_requeue_pi", "futex_wait_requeue_pi", Address, Configured),
    row("semaphore", "futex_wait_bitset", Address, Configured),
    row("condition_variable", "futex_wait_bitset", Address, Configured),
    row("sigwait", "rt_sigtimedwait", Nothing, Exact),
    row("sigtimedwait", "rt_sigtimedwait", Nothing, Configured),
    row("sigsuspend", "rt_sigsuspend", Nothing, Configured),
    row("pause", "pause", Nothing, Exact),
    row("mq_timedreceive", "mq_timedreceive", A("mqueue"), Configured),
    row("msgrcv", "msgrcv", Identifier, Configured),
    row("semop", "semop", Identifier, Configured),
    row("semtimedop", "semtimedop", Identifier, Configured),
    row("wait4", "wait4", Nothing, Configured),
    row("waitid", "waitid", Nothing, Configured),
    row("io_getevents", "io_getevents", Address, Configured),
    row("io_pgetevents", "io_pgetevents", Address, Configured),
    row("io_uring_poll", "io_uring_enter", A("io_uring"), Configured),
    row("io_uring_timeout", "io_uring_enter", A("io_uring"), Configured),
];

/// Drivers of calls that cannot block, which must not become separators.
const NEGATIVE: &[&str] = &[
    "no_read_nonblocking",
    "no_read_regular_file",
    "no_preadv2_nowait",
    "no_recv_dontwait",
    "no_recvmsg_nonblocking",
    "no_accept4_nonblocking",
    "no_poll_zero",
    "no_ppoll_zero",
    "no_select_zero",
    "no_pselect6_zero",
    "no_epoll_wait_zero",
    "no_epoll_pwait_zero",
    "no_epoll_pwait2_zero",
    "no_futex_wake",
    "no_futex_trylock_pi",
    "no_wait4_nohang",
    "no_waitid_nohang",
    "no_msgrcv_nowait",
    "no_semtimedop_nowait",
    "no_mq_nonblocking",
    "no_sigtimedwait_zero",
    "no_yield_fifo",
];

type RowTest = Box<dyn Fn() -> Result<Outcome> + Send>;

/// All rows.
fn rows() -> impl Iterator<Item = Row> {
    let negative = NEGATIVE
        .iter()
        .map(|driver| row(driver, "clock_nanosleep", Clock("CLOCK_MONOTONIC", Absolute), Exact));
    ROWS.iter().copied().chain(negative)
}

/// Name and test of each row.
pub fn all() -> Vec<(String, RowTest)> {
    let mut tests: Vec<(String, RowTest)> = Vec::new();
    for row in rows() {
        let is_first = Cell::new(true);
        let test = move || check_row(&row, is_first.replace(false));
        tests.push((format!("driver::{}", row.driver), Box::new(test)));
    }
    tests.push(("driver::every_driver_has_a_row".into(), Box::new(every_driver_has_a_row)));
    tests.push(("driver::programs_of_32_bits".into(), Box::new(narrow::programs_of_32_bits)));
    tests.push(("driver::a_program_of_32_bits".into(), Box::new(narrow::a_program_of_32_bits)));
    tests
}

/// The names of all drivers that this workload has.
fn list(drivers: &str) -> Result<Vec<String>> {
    let mut command = Command::new(workload(drivers));
    command.arg("list");
    Ok(run(command)?.stdout.lines().map(str::to_owned).collect())
}

fn every_driver_has_a_row() -> Result<Outcome> {
    for driver in list(DRIVERS)? {
        let has_one = ROWS.iter().any(|row| row.driver == driver) || NEGATIVE.contains(&driver.as_str());
        ensure!(has_one, "driver {driver} is in no table");
    }
    Ok(Outcome::Completed)
}

/// A driver's report.
struct Done {
    printed: Value,
}

impl Done {
    fn number(&self, field: &str) -> Result<u64> {
        self.printed[field].as_u64().map_or_else(|| fail(format!("the driver does not say {field}")), Ok)
    }
}

fn period_us(driver: &str) -> &'static str {
    if driver == "read_back_to_back" { "30000" } else { "10000" }
}

/// By the observation of all; a repetition, by one of its own.
fn check_row(row: &Row, is_first: bool) -> Result<Outcome> {
    if !is_first {
        return check_in(row, &All::observe(DRIVERS, &[row.driver.to_owned()], &[])?);
    }
    if !list(DRIVERS)?.iter().any(|driver| driver == row.driver) {
        return skip(format!("{}: no such system call on this kind of processor", row.driver));
    }
    let all = together::all()?;
    check_in(row, all).map_err(|failure| Failure { since: Some(all.began()), ..failure })
}

fn check_in(row: &Row, all: &All) -> Result<Outcome> {
    let (observed, done) = all.of(row.driver)?;
    if let Some(reason) = done.printed["skip"].as_str() {
        return skip(format!("{}: {reason}", row.driver));
    }
    observed.explain(observed.ended.expect_code(0))?;
    observed.explain(check(row, &done, &observed.model))?;
    Ok(Outcome::Completed)
}

fn check(row: &Row, done: &Done, model: &TimingModel) -> Result {
    ensure!(crate::model::threads(model).lost_records == 0, "records were lost");
    let task = only_task(model, "drv")?;
    check_task(row, done, task)?;
    let stream = primary(task)?;
    check_separator(row, stream)?;
    check_jobs(row, done, stream)?;
    timing(check_mean(done, stream))?;
    timing(check_period(row.period, done, stream))?;
    match row.driver {
        "read_back_to_back" => timing(check_back_to_back(done, stream))?,
        "wait4" | "waitid" => {} // its events are threads called `src`, too
        _ => timing(check_source(done, model))?,
    }
    Ok(())
}

fn check_task(row: &Row, done: &Done, task: &Task) -> Result {
    let policy = if row.call == "sched_yield" { Policy::Deadline } else { Policy::Fifo };
    ensure!(task.policy == policy, "policy {:?}, expected {policy:?}", task.policy);
    let covers =
        task.from_ns.ns() <= done.number("began_ns")? && done.number("ended_ns")? <= task.until_ns.ns();
    ensure!(covers, "the task does not cover all that the driver did");
    let same = task.streams.iter().filter(|stream| stream.separator.call.name() == row.call).count();
    ensure!(same == 1, "{same} streams of {}, expected one", row.call);
    if let Some(forbidden) = done.printed["forbidden"].as_str() {
        let found = task.streams.iter().find(|stream| stream.separator.call.name().starts_with(forbidden));
        ensure!(
            found.is_none(),
            "{} separates jobs although it cannot block",
            found.map_or(String::new(), |s| s.separator.to_string())
        );
    }
    Ok(())
}

fn check_separator(row: &Row, stream: &Stream) -> Result {
    let separator = stream.separator;
    ensure!(separator.call.name() == row.call, "primary separator {separator}, expected {}", row.call);
    let written = serde_json::to_value(separator)?;
    let fits = match row.on {
        Nothing => ["object", "clock", "address", "id"].iter().all(|field| written.get(field).is_none()),
        A(class) => {
            let object = written["object"].as_str().unwrap_or_default();
            object.split([' ', ':']).next() == Some(class) && written["fd"].is_u64()
        }
        Clock(name, sleep) => written["clock"] == name && written["absolute"] == (sleep == Absolute),
        Address => written["address"].is_string(),
        Identifier => written["id"].is_i64(),
    };
    ensure!(fits, "the separator is written as {written}, which is not what the driver waits on");
    Ok(())
}

fn check_jobs(row: &Row, done: &Done, stream: &Stream) -> Result {
    let did = done.number("jobs")?;
    // The first has no release, and the end of the last may not be observed.
    let right = (did.saturating_sub(2)..=did).contains(&stream.jobs);
    let count = if right { Ok(()) } else { fail(format!("{} jobs, the driver did {did}", stream.jobs)) };
    // The C library makes no call if what it would wait for is already there.
    if ["semaphore", "condition_variable"].contains(&row.driver) {
        timing(count)?
    } else {
        count?
    }
    // Nothing wakes a thread whose budget is replenished: its release is never observed.
    let is_seen = stream.separator.call != Call::SchedYield;
    ensure!(
        !is_seen || stream.uncertain_releases < stream.releases || stream.back_to_back > 0,
        "all releases are uncertain"
    );
    let cost = done.number("cost_ns")?;
    let Some(execution) = &stream.execution else { return fail("no execution model") };
    let wcet = execution.wcet_ns.first().map_or(0, |wcet| wcet.ns());
    ensure!(wcet >= cost, "WCET {wcet} ns, but every job takes {cost} ns");
    Ok(())
}

fn check_mean(done: &Done, stream: &Stream) -> Result {
    let cost = done.number("cost_ns")?;
    // Not about speed, but about wrong units and costs counted twice.
    let mean =
        stream.execution.as_ref().and_then(|execution| execution.mean_ns).map_or(cost, |mean| mean.ns());
    ensure!((cost..20 * cost).contains(&mean), "mean cost {mean} ns, but every job takes {cost} ns");
    Ok(())
}

/// Whether a period is the configured one. The kernel keeps reservations by the clock of its scheduler, whose
/// rate differs slightly from that of CLOCK_MONOTONIC: by 0.05 millionths in the lab, where `ktime` and
/// `cpu_clk` of /sys/kernel/debug/sched/debug grew by 20,007.871647 ms and 20,007.872627 ms.
pub fn is_rounded(found: u64, configured: u64, stream: &Stream) -> bool {
    let is_reservation = stream.separator.call == Call::SchedYield;
    found.abs_diff(configured) <= if is_reservation { configured / 1_000_000 } else { 0 }
}

fn check_period(period: Period, done: &Done, stream: &Stream) -> Result {
    if period == Free {
        return Ok(());
    }
    let configured = done.number("period_ns")?;
    let Some(periodic) = &stream.arrival.periodic else { return fail("no periodic model") };
    let found = periodic.period_ns.ns();
    if period == Exact {
        ensure!(
            periodic.on == PeriodicOn::Arrival,
            "its arrivals are known, but the period is measured on releases"
        );
        ensure!(
            found == configured && periodic.period_exact.is_none(),
            "period {found} ns, configured {configured} ns"
        );
    } else if periodic.choice == Choice::Rounded {
        ensure!(
            is_rounded(found, configured, stream),
            "rounded period {found} ns, configured {configured} ns"
        );
    } else {
        ensure!(
            found.abs_diff(configured) * 100 <= configured,
            "period {found} ns, configured {configured} ns"
        );
    }
    Ok(())
}

/// The source of events sleeps until absolute times.
fn check_source(done: &Done, model: &TimingModel) -> Result {
    let [source] = tasks(model, "src")[..] else { return Ok(()) };
    let Some(stream) = source.streams.iter().find(|stream| stream.separator.call.name() == "clock_nanosleep")
    else {
        return fail("src has no stream of clock_nanosleep");
    };
    // It also sleeps in between, until `drv` has the lock.
    if done.printed["call"] == "futex_lock_pi" {
        return Ok(());
    }
    let period = stream.arrival.periodic.as_ref().map_or(0, |periodic| periodic.period_ns.ns());
    ensure!(period == done.number("period_ns")?, "src has a period of {period} ns");
    Ok(())
}

/// Three messages at once: two of three reads find theirs without waiting.
fn check_back_to_back(done: &Done, stream: &Stream) -> Result {
    let (jobs, burst) = (done.number("jobs")?, done.number("burst")?);
    let expected = jobs - jobs / burst;
    let found = stream.back_to_back;
    ensure!(
        found.abs_diff(expected) <= expected / 4,
        "{found} jobs are back to back, expected about {expected}"
    );
    let Some(curve) = &stream.arrival.curve else { return fail("no arrival curve") };
    let least: Vec<u64> = curve.delta_min_ns.iter().map(|span| span.ns()).collect();
    ensure!(
        least.len() > 2 && least[0] == 0 && least[1] == 0,
        "three releases can coincide, but the curve begins {least:?}"
    );
    ensure!(least[2] > 0, "four releases cannot coincide, but the curve says so");
    let Some(sporadic) = &stream.arrival.sporadic else { return fail("no sporadic model") };
    ensure!(sporadic.min_separation_ns.ns() == 0, "releases coincide, but have a least separation");
    Ok(())
}
