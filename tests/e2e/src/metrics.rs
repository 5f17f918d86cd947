//! Metrics of a program with known timing, scraped while it is watched against a contract.

use crate::run::{Running, directory, punctual, run, sleeps, wait_until, workload};
use crate::{Outcome, Result, Test, ensure};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

pub const ALL: &[(&str, Test)] =
    &[("metrics::a_watch_is_scraped", scraped), ("metrics::an_address_in_use_is_refused", refused)];

/// No job takes less than a nanosecond, and none takes an hour.
const CONTRACT: &str = "[[task]]\nname = \"task-0\"\nwcet = \"1ns\"\ndeadline = \"1h\"\n";

/// What `punctual prove --json` prints, as far as it is read.
const PROOF: &str = r#"{"holds":true,"tasks":[{"name":"task-0","response_ns":3600000000000}]}"#;

pub fn text(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer).filter(|answer| answer.ends_with("# EOF\n"))
}

/// The value of a sample.
pub fn value(text: &str, sample: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(sample)?.trim().parse().ok())
}

fn scraped() -> Result<Outcome> {
    let mut command = Command::new(workload("periodic"));
    command.args(["--for", "60", "2000"]);
    let threads = Running::start(command)?;
    wait_until("the workload to run", || sleeps(threads.pid(), "task-0").is_some_and(|sleeps| sleeps > 5))?;
    let folder = directory()?;
    let contract = folder.path().join("run.contract.toml");
    std::fs::write(&contract, CONTRACT)?;
    // Free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut watch = punctual(["watch", "--no-journal", "--pid", &threads.pid().to_string(), "--metrics"]);
    let proof = folder.path().join("proof.json");
    std::fs::write(&proof, PROOF)?;
    watch.arg(address.to_string()).arg("--bounds").arg(&proof).arg(&contract);
    let watch = Running::start(watch)?;
    let mut found = String::new();
    let violations = "punctual_violations_total{task=\"task-0\",term=\"wcet\"}";
    wait_until("200 jobs in the metrics", || {
        found = text(address).unwrap_or_default();
        // The last that is brought up to date in each turn.
        value(&found, violations) > Some(200.0) && value(&found, "punctual_threads ") == Some(1.0)
    })?;
    let response = value(&found, "punctual_response_seconds_count{task=\"task-0\"}");
    let jobs = value(&found, "punctual_jobs_total{task=\"task-0\"}");
    // The violation of a job may be known before its record comes, and those of the first jobs when it is
    // known where they end.
    let judged = jobs.map(|jobs| jobs + 1.0 + 8.0);
    ensure!(judged >= value(&found, violations) && response == jobs, "{jobs:?} jobs, {response:?} responses");
    let late = value(&found, "punctual_lateness_seconds_count{task=\"task-0\"}");
    ensure!(late == jobs, "{late:?} of {jobs:?} jobs with a known lateness");
    let headroom = |term: &str| {
        value(&found, &format!("punctual_headroom_ratio{{task=\"task-0\",term=\"{term}\"}}")).unwrap_or(0.0)
    };
    ensure!(headroom("wcet") < 0.0 && headroom("deadline") > 0.9, "{found}");
    // No job takes half an hour either.
    let bound = value(&found, "punctual_bound_seconds{task=\"task-0\"}");
    ensure!(bound == Some(3600.0) && (0.5..1.0).contains(&headroom("bound")), "{found}");
    // One that stalls, and one that goes while it is answered.
    let stalled = TcpStream::connect(address)?;
    TcpStream::connect(address)?.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
    let more = || text(address).and_then(|text| value(&text, violations));
    wait_until("more jobs", || more() > jobs.map(|jobs| jobs + 200.0))?;
    watch.signal(Signal::TERM)?;
    let ended = watch.end()?;
    ended.expect_code(8)?;
    ensure!(ended.stderr.contains(&format!("http://{address}/metrics")), "{}", ended.all());
    drop(stalled);
    Ok(Outcome::Completed)
}

fn refused() -> Result<Outcome> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let folder = directory()?;
    let contract = folder.path().join("run.contract.toml");
    std::fs::write(&contract, CONTRACT)?;
    let mut watch = punctual(["watch", "--for", "10", "--metrics", &address]);
    watch.arg(&contract);
    let ended = run(watch)?;
    ended.expect_code(1)?;
    ensure!(ended.stderr.contains("something else listens there"), "{}", ended.all());
    Ok(Outcome::Completed)
}
