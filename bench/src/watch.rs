//! What it costs to watch threads and say at once how they are doing: the live view's display.
//!
//! Prints a table and writes it into `docs/benchmarks.md`, between the marks of its section. Needs root, tmux
//! and a quiet machine. Not for: what observing costs the watched (`make bench-overhead`).

use punctual_bench::measure::{built, target};
use punctual_bench::{Error, document};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Threads that are watched.
const THREADS: u32 = 200;
/// How long each measurement takes, after its models have settled.
const SETTLING: Duration = Duration::from_secs(15);
const MEASURED: Duration = Duration::from_secs(30);

fn main() -> std::process::ExitCode {
    punctual_bench::ended(env!("CARGO_BIN_NAME"), run())
}

fn run() -> Result<(), Error> {
    let mut rows = Vec::new();
    for (size, keys, what) in [
        ((80, 24), &[][..], "80 × 24"),
        ((200, 60), &[], "200 × 60"),
        ((200, 60), &["Enter"], "200 × 60, details of a thread"),
    ] {
        eprintln!("{THREADS} threads on a terminal of {what}: {} s …", (SETTLING + MEASURED).as_secs());
        rows.push(display(size, keys, what)?);
    }
    document::publish(
        "watch",
        "make bench-watch",
        &["what", "display", "whole command", "resident memory", "target"],
        &rows,
    )
}

/// Processor time of the live view's display, as a share of one processor.
fn display(size: (u16, u16), keys: &[&str], what: &str) -> Result<[String; 5], Error> {
    let workload = Workload::start()?;
    let terminal = Terminal::start(size, workload.0.id())?;
    let top = terminal.process()?;
    for key in keys {
        terminal.tmux(&["send-keys", key])?;
    }
    std::thread::sleep(SETTLING);
    let (began, before) = (Instant::now(), top.processor_time()?);
    std::thread::sleep(MEASURED);
    let (elapsed, after) = (began.elapsed().as_nanos() as f64, top.processor_time()?);
    let share = |before: f64, after: f64| format!("{:.2} %", (after - before) / elapsed * 100.0);
    let target = if keys.is_empty() { "display ≤ 2 %" } else { "" };
    Ok([
        format!("{THREADS} threads, 6,000 jobs per second, {what}"),
        share(before.0, after.0),
        share(before.1, after.1),
        format!("{:.1} MiB", top.resident_kib()? / 1024.0),
        target.into(),
    ])
}

/// The watched threads. Dropping this ends them.
struct Workload(Child);

impl Workload {
    fn start() -> Result<Workload, Error> {
        let mut command = Command::new(target().join("workloads/periodic"));
        command.args(["--tasks", &THREADS.to_string(), "--rate", "6000", "--for", "300"]);
        Ok(Workload(command.stdout(Stdio::null()).spawn()?))
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A terminal in which the live view runs. Dropping this ends both.
struct Terminal(String);

impl Terminal {
    fn start((width, height): (u16, u16), process: u32) -> Result<Terminal, Error> {
        let terminal = Terminal(format!("punctual-bench-{}", std::process::id()));
        let (punctual, process) = (built("punctual"), process.to_string());
        let punctual = fs::canonicalize(punctual)?;
        let (width, height) = (width.to_string(), height.to_string());
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, "sh"])?;
        let line = format!("exec {} top --pid {process}", punctual.display());
        terminal.tmux(&["send-keys", "-l", &line])?;
        terminal.tmux(&["send-keys", "Enter"])?;
        Ok(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String, Error> {
        let output =
            Command::new("tmux").args(["-L", &self.0]).args(arguments).env_remove("TMUX").output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("tmux: {}", String::from_utf8_lossy(&output.stderr).trim()).into()),
        }
    }

    /// The live view, once it has drawn.
    fn process(&self) -> Result<Process, Error> {
        let pid = self.tmux(&["display-message", "-p", "#{pane_pid}"])?.trim().to_owned();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if self.tmux(&["capture-pane", "-p"])?.contains(&format!("{THREADS} threads")) {
                return Ok(Process(pid));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!("the live view does not start: {}", self.tmux(&["capture-pane", "-p"])?).into())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

struct Process(String);

impl Process {
    /// Of the thread that draws, and of all.
    fn processor_time(&self) -> Result<(f64, f64), Error> {
        let (mut display, mut all) = (None, 0.0);
        for thread in fs::read_dir(format!("/proc/{}/task", self.0))? {
            let thread = thread?.path();
            let text = fs::read_to_string(thread.join("schedstat"))?;
            let ns: f64 = text.split(' ').next().unwrap_or("0").parse()?;
            all += ns;
            if fs::read_to_string(thread.join("comm"))?.trim() == "display" {
                display = Some(ns);
            }
        }
        Ok((display.ok_or("no thread called display")?, all))
    }

    fn resident_kib(&self) -> Result<f64, Error> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no resident memory")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}
