//! Detects that the machine lost its processors. A virtual machine may lose them to others for hundreds of
//! milliseconds, even under threads of the highest priority, and then a periodic thread is not periodic. Two
//! threads with a higher priority than all workloads notice that, independently of Punctual.

use crate::run::workload;
use crate::{Outcome, Result, skip};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Nothing on the machine itself delays a thread of that priority for as long.
const PRINT_ABOVE_US: u64 = 2000;
const TRIES: usize = 3;

/// When a witness was late, and by how much.
static SEEN: Mutex<Vec<(Instant, Duration)>> = Mutex::new(Vec::new());

/// One witness for each processor; they stop when dropped.
pub struct Witnesses(Vec<Child>);

impl Witnesses {
    pub fn start() -> Witnesses {
        let processors = std::thread::available_parallelism().map_or(1, |number| number.get());
        Witnesses((0..processors).filter_map(witness).collect())
    }
}

impl Drop for Witnesses {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn witness(processor: usize) -> Option<Child> {
    let mut command = Command::new(workload("latency"));
    command.args(["--print-above-us", &PRINT_ABOVE_US.to_string(), "--cpu", &processor.to_string()]);
    command.args(["--period-us", "2000", "--priority", "98"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let lines = BufReader::new(child.stdout.take()?).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(std::result::Result::ok) {
            let late =
                serde_json::from_str::<Value>(&line).ok().and_then(|report| report["late_ns"].as_u64());
            if let (Some(late), Ok(mut seen)) = (late, SEEN.lock()) {
                seen.push((Instant::now(), Duration::from_nanos(late)));
            }
        }
    });
    Some(child)
}

/// The longest time that the machine was away since `began`.
fn worst_since(began: Instant) -> Option<Duration> {
    // A witness may have written its latest report just now.
    std::thread::sleep(Duration::from_millis(50));
    let seen = SEEN.lock().ok()?;
    seen.iter().filter(|(at, _)| *at >= began).map(|(_, late)| *late).max()
}

/// Runs a test. A wrong time is not the program's fault if the machine was away meanwhile: then the test is
/// repeated, and skipped if the machine is always away. Both are said.
pub fn undisturbed(name: &str, test: impl Fn() -> Result<Outcome>) -> Result<Outcome> {
    let mut reason = String::new();
    for _ in 0..TRIES {
        let began = Instant::now();
        let failure = match test() {
            Ok(outcome) => return Ok(outcome),
            Err(failure) => failure,
        };
        let since = failure.since.unwrap_or(began);
        let Some(worst) = failure.is_timing.then(|| worst_since(since)).flatten() else {
            return Err(failure);
        };
        let message = failure.message.lines().next().unwrap_or_default();
        reason = format!("this machine lost its processors for {} ms: {message}", worst.as_millis());
        eprintln!("DISTURBED: {name}: {reason}");
    }
    skip(format!("{TRIES} times, the last time {reason}"))
}
