//! Bounds of `punctual prove` beside running threads: no response is longer than its bound, unless something
//! happened that the proof leaves out and the tools themselves report; then the test is skipped, and says so.
//!
//! Threads and kernel are observed at the same time, and proven by what was observed. Where the kernel shows
//! no bound of its latency, the greatest that was measured takes its place.

use crate::run::{Running, directory, punctual, run, sleeps, wait_until, workload};
use crate::{Outcome, Result, Test, ensure, fail, metrics, skip, timing};
use punctual_model::TimingModel;
use punctual_model::latency::{Processor, Variable, Variables};
use rustix::process::Signal;
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

pub const ALONE: &[(&str, Test)] = &[
    ("proven::fixed_priorities_on_one_processor", fixed_priorities),
    ("proven::tasks_of_all_kinds_on_all_processors", all_kinds),
    ("proven::a_disturbance_outside_of_the_proof_is_told", disturbed),
    ("proven::the_kernel_holds_jobs_of_early_deadlines_no_longer_than_proven", held),
];

/// For how long threads and kernel are observed, in seconds.
const OBSERVED: &str = "3";

/// Three threads on the last processor, each more urgent than those with longer periods; a quarter of its
/// time.
fn fixed_priorities() -> Result<Outcome> {
    let program = pinned(&["--cost-us", "300", "--for", "60", "2000", "5000", "10000"])?;
    wait_until("the workload to run", || sleeps(program.pid(), "task-2").is_some_and(|sleeps| sleeps > 5))?;
    let outcome = responses_are_within_bounds(&["task-0", "task-1", "task-2"]);
    drop(program);
    outcome
}

/// The demonstration: SCHED_DEADLINE and SCHED_FIFO, wherever the kernel puts its threads. With the latency
/// that is measured on some machines, only the reservation has a bound for certain.
fn all_kinds() -> Result<Outcome> {
    let mut program = Command::new(workload("demo"));
    program.args(["--for", "60"]);
    let program = Running::start(program)?;
    wait_until("the workload to run", || {
        sleeps(program.pid(), "sleep-abs").is_some_and(|sleeps| sleeps > 5)
    })?;
    let outcome = responses_are_within_bounds(&["deadline-yield"]);
    drop(program);
    outcome
}

/// A thread on the last processor keeps to its bound, until another program takes that processor for longer
/// now and then, of which the proof knows nothing.
fn disturbed() -> Result<Outcome> {
    let folder = directory()?;
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (model, contract, proof) = (file("a.timing.json"), file("a.toml"), file("proof.json"));
    let program = pinned(&["--cost-us", "300", "--for", "60", "20000"])?;
    let pid = program.pid().to_string();
    wait_until("the workload to run", || sleeps(program.pid(), "task-0").is_some_and(|sleeps| sleeps > 5))?;
    run(punctual(["extract", "--quiet", "--for", "2", "--pid", &pid, "-o", &model]))?.expect_code(0)?;
    // Ten times what was observed leaves room for the noise of this machine.
    run(punctual(["contract", "--quiet", "--margin", "900%", &model, "-o", &contract]))?.expect_code(0)?;
    // So does the deadline: only the bound matters.
    let proven = run(punctual(["prove", "--json", "--deadline", "task-0=2s", &contract]))?;
    proven.expect_code(0)?;
    let Some(bound) = proven.json()?["tasks"][0]["response_ns"].as_u64() else {
        return fail(format!("no bound: {}", proven.stdout));
    };
    std::fs::write(&proof, &proven.stdout)?;
    let watch = |options: &[&str]| {
        let mut watch = punctual(["watch", "--no-journal", "--pid", &pid, "--bounds", &proof]);
        watch.args(options).arg(&contract);
        watch
    };
    let calm = run(watch(&["--for", "2"]))?;
    if calm.stdout.contains("proven at most") {
        return skip(format!("something else took the processor: {}", calm.stdout));
    }
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let watched = Running::start(watch(&["--metrics", &address.to_string()]))?;
    let sample = |name: &str| metrics::value(&metrics::text(address)?, name);
    let headroom = || sample("punctual_headroom_ratio{task=\"task-0\",term=\"bound\"}");
    wait_until("headroom", || headroom().is_some())?;
    let cost = bound / 1_000 + 4_000;
    let disturber =
        pinned(&["--cost-us", &cost.to_string(), "--for", "60", &(2 * cost + 1_300).to_string()])?;
    wait_until("headroom to be used up", || headroom() < Some(0.0))?;
    drop(disturber);
    let violations = "punctual_violations_total{task=\"task-0\",term=\"bound\"}";
    wait_until("the violation in the metrics", || sample(violations) >= Some(1.0))?;
    watched.signal(Signal::TERM)?;
    let ended = watched.end()?;
    ended.expect_code(8)?;
    ensure!(
        ended.stdout.contains("task-0: response ") && ended.stdout.contains(", proven at most "),
        "{}",
        ended.all()
    );
    Ok(Outcome::Completed)
}

/// A job that comes between the deadline of its reservation and the next period has to wait for that,
/// although nobody else is there. By the thread's own clock, which also tells which jobs came there. What
/// noise adds to some of them does not matter: it is the median.
fn held() -> Result<Outcome> {
    let folder = directory()?;
    let contract = folder.path().join("a.toml");
    std::fs::write(
        &contract,
        "[[task]]\nname = \"held\"\npolicy = \"SCHED_DEADLINE\"\nprocessors = \"0\"\nperiod = \"10ms\"\n\
         wcet = \"600us\"\ndeadline = \"10ms\"\nsuspension = \"0s\"\n\
         reservation = { runtime = \"3ms\", deadline = \"4ms\", period = \"10ms\" }\n",
    )?;
    let mut prove = punctual(["prove", "--json"]);
    prove.arg(&contract);
    let proven = run(prove)?;
    proven.expect_code(0)?;
    let Some(bound) = proven.json()?["tasks"][0]["response_ns"].as_u64() else {
        return fail(format!("no bound: {}", proven.stdout));
    };
    ensure!(bound == 6_600_000, "0.6 ms and 6 ms of waiting, not {bound} ns");
    let ended = run(Command::new(workload("held")))?;
    if ended.code == Some(77) {
        return skip(ended.stderr);
    }
    ended.expect_code(0)?;
    let responses: Vec<u64> = ended.stdout.split_whitespace().map_while(|it| it.parse().ok()).collect();
    let [jobs, least, median, _] = responses[..] else {
        return timing(fail(format!("no job came when it was to come: {}", ended.all())));
    };
    ensure!(least > 2_000_000, "one of {jobs} jobs took only {least} ns, although it had to wait");
    timing(within(jobs, median, bound))?;
    Ok(Outcome::Completed)
}

fn within(jobs: u64, median: u64, bound: u64) -> Result {
    ensure!(jobs >= 10, "only {jobs} jobs came when they were to come");
    ensure!(median <= bound, "{median} ns, proven {bound} ns");
    Ok(())
}

/// The workload on the last processor.
fn pinned(arguments: &[&str]) -> Result<Running> {
    let processors = std::thread::available_parallelism()?.get();
    let mut program = Command::new("taskset");
    program.args(["-c", &(processors - 1).to_string()]).arg(workload("periodic")).args(arguments);
    Running::start(program)
}

/// Of all threads that have a bound; these must have one.
fn responses_are_within_bounds(names: &[&str]) -> Result<Outcome> {
    let folder = directory()?;
    let (threads, kernel) = (folder.path().join("a.timing.json"), folder.path().join("kernel.timing.json"));
    let mut latency = punctual(["latency", "--quiet", "--for", OBSERVED, "-o"]);
    latency.arg(&kernel);
    let latency = Running::start(latency)?;
    // Every real-time thread of the machine: all of them delay others.
    let mut extract = punctual(["extract", "--quiet", "--for", OBSERVED, "-o"]);
    extract.arg(&threads);
    run(extract)?.expect_code(0)?;
    latency.end()?.expect_code(0)?;
    let mut platform = crate::model::read(&kernel)?;
    let mut outside = measured_for_bounds(&mut platform)?;
    std::fs::write(&kernel, platform.to_json())?;
    let model = crate::model::read(&threads)?;
    outside.extend(reported(&model));
    let proof = proof(&threads, &kernel)?;
    compare(&model, &proof, names, outside)
}

/// The greatest latency that was measured, where there is no bound. Returns what was missed.
fn measured_for_bounds(model: &mut TimingModel) -> Result<Vec<String>> {
    let Some(latency) = &mut model.latency else { return fail("no latency was written") };
    let mut missed = Vec::new();
    for cpu in &mut latency.processors {
        let events = cpu.skipped_events + cpu.lost_records;
        if events > 0 {
            missed.push(format!("{events} events of the kernel were missed on processor {}", cpu.cpu));
        }
        if cpu.variables.is_none() {
            cpu.variables = Some(greatest_measured(cpu));
        }
    }
    Ok(missed)
}

fn greatest_measured(cpu: &Processor) -> Variables {
    let greatest = cpu.measured.iter().map(|it| it.max_ns).max().unwrap_or_default();
    Variables { poid: Variable { max_ns: greatest, ..Variable::default() }, ..Variables::default() }
}

/// What the observation of threads says was missed.
fn reported(model: &TimingModel) -> Vec<String> {
    let lost = model.losses().into_iter().filter(|(_, loss)| loss.count > 0);
    lost.map(|(_, loss)| format!("{} {}", loss.count, loss.counter)).collect()
}

fn proof(threads: &Path, kernel: &Path) -> Result<Value> {
    let mut prove = punctual(["prove", "--json"]);
    prove.arg(threads).arg("--platform").arg(kernel);
    let ended = run(prove)?;
    // 6: deadlines are none of this test's business.
    if ended.code != Some(6) {
        ended.expect_code(0)?;
    }
    ended.json()
}

fn compare(model: &TimingModel, proof: &Value, names: &[&str], mut outside: Vec<String>) -> Result<Outcome> {
    let remarks = proof["remarks"].as_array().into_iter().flatten().filter_map(Value::as_str);
    outside.extend(remarks.filter(|remark| remark.starts_with("Not proven")).map(str::to_owned));
    let (mut compared, mut longer, mut excess) = (0, Vec::new(), 0);
    for task in proof["tasks"].as_array().into_iter().flatten() {
        let name = task["name"].as_str().unwrap_or_default();
        let Some(bound) = task["response_ns"].as_u64() else { continue };
        let tid = task["tid"].as_u64();
        let observed = model.tasks().iter().filter(|it| it.name == name && Some(it.tid.into()) == tid);
        let streams = observed.filter_map(|it| it.streams.get(it.primary?));
        let Some(response) = streams.filter_map(|it| it.response.as_ref()).map(|it| it.max_ns.ns()).max()
        else {
            continue;
        };
        compared += usize::from(names.contains(&name));
        eprintln!("{name}: {response} ns of at most {bound} ns");
        if response > bound {
            longer.push(format!("{name} took {response} ns, its bound is {bound} ns"));
            excess = excess.max(response - bound);
        }
    }
    let stolen = crate::model::threads(model).stolen_ns;
    if excess > 0 && stolen.ns() >= excess {
        outside.push(format!("the hypervisor took {stolen}"));
    }
    let outside = outside.join("; ");
    if compared < names.len() {
        ensure!(!outside.is_empty(), "{compared} of {} threads have bounds: {proof:#}", names.len());
        return skip(format!("{compared} of {} threads have bounds; {outside}", names.len()));
    }
    match (longer.is_empty(), outside.is_empty()) {
        (true, _) => Ok(Outcome::Completed),
        (false, false) => skip(format!("{}; outside of the model: {outside}", longer.join("; "))),
        (false, true) => fail(format!("{}, and nothing explains it: {proof:#}", longer.join("; "))),
    }
}
