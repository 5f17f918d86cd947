//! Runs the workloads and Punctual, and reads what the kernel counts of them.

use crate::Error;
use libbpf_rs::query::ProgInfoIter;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The programs of Punctual's kernel side at each wake-up, one of them. The kernel keeps 15 letters.
const WAKEUP: [&str; 3] = ["waking", "waking_of_curre", "waking_by_stack"];
/// Those at each switch.
const SWITCH: [&str; 2] = ["leaving", "switched"];
const ANY_CALL: [&str; 2] = ["enter_any", "exit_any"];

/// Where everything was built.
pub fn target() -> PathBuf {
    PathBuf::from(std::env::var_os("TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A program that users run, as it is installed.
pub fn built(program: &str) -> PathBuf {
    target().join("dist").join(program)
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(target().join("workloads").join(arguments[0]));
    command.args(&arguments[1..]);
    command
}

/// Runs a workload by itself; what it prints at its end.
pub fn workload(arguments: &[&str]) -> Result<Value, Error> {
    let output = command(arguments).stderr(Stdio::inherit()).output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Waits for a process: whether it succeeded, and the most memory that it had resident, in KiB.
pub fn end_of(child: Child) -> Result<(bool, u64), Error> {
    let mut status = 0;
    // SAFETY: all zeros are a value of this structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places are valid, and the child has not been waited for.
    let ended = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    if ended < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok((libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, usage.ru_maxrss as u64))
}

/// Another tool, which goes on until it is asked to end.
pub struct Tool(Child);

impl Tool {
    /// Starts it.
    pub fn start(command: &mut Command) -> Result<Tool, Error> {
        Ok(Tool(command.spawn()?))
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> Result<bool, Error> {
        Ok(self.0.try_wait()?.is_none())
    }

    /// Asks it to end, and waits for that.
    pub fn finish(mut self) -> Result<(), Error> {
        interrupt(&self.0);
        self.0.wait()?;
        Ok(())
    }
}

fn interrupt(child: &Child) {
    // SAFETY: the child has not been waited for, so its number is its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
}

/// Processor time that a process has had.
#[derive(Clone, Copy)]
pub struct Usage {
    /// In user space.
    pub user_ns: f64,
    /// In all.
    pub total_ns: f64,
}

/// A running `punctual extract` with a workload as its command.
pub struct Punctual {
    child: Child,
    model: PathBuf,
}

impl Punctual {
    /// Starts it with further options, which end with `--`.
    pub fn start(options: &[&str], arguments: &[&str]) -> Result<Self, Error> {
        let model = std::env::temp_dir().join(format!("punctual-bench-{}.timing.json", std::process::id()));
        let child = Command::new(built("punctual"))
            .args(["extract", "--quiet", "--force", "-o"])
            .arg(&model)
            .args(options)
            .arg(target().join("workloads").join(arguments[0]))
            .args(&arguments[1..])
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self { child, model })
    }

    /// User time by the kernel's ticks (it splits the exact total in their ratio), and the exact total.
    pub fn usage(&self) -> Result<Usage, Error> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.child.id()));
        let total: f64 = read("schedstat")?.split(' ').next().unwrap_or("0").parse()?;
        let stat = read("stat")?;
        let fields: Vec<f64> = stat
            .rsplit(')')
            .next()
            .unwrap_or("")
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|n| n.parse().ok())
            .collect();
        let [user, system] = fields[..] else {
            return Err("cannot read the processor time of punctual".into());
        };
        // Ticks are 10 ms here, so only a difference over a long time means anything.
        let share = if user + system > 0.0 { user / (user + system) } else { 0.0 };
        Ok(Usage { user_ns: total * share, total_ns: total })
    }

    /// Resident memory at the moment.
    pub fn resident_kib(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().split(' ').next()?.parse().ok()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> Result<bool, Error> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Ends it if the workload has not; the model that it wrote.
    pub fn finish(&mut self) -> Result<Value, Error> {
        if self.is_running()? {
            interrupt(&self.child);
        }
        self.child.wait()?;
        let model = serde_json::from_str(&fs::read_to_string(&self.model)?)?;
        fs::remove_file(&self.model)?;
        Ok(model)
    }

    /// Waits for the workload's end; what it printed.
    pub fn output(mut self) -> Result<Value, Error> {
        let stdout = self.child.stdout.take().ok_or("no output")?;
        let text = std::io::read_to_string(stdout)?;
        self.finish()?;
        let line = text.lines().find(|line| line.starts_with('{')).ok_or("the workload printed nothing")?;
        Ok(serde_json::from_str(line)?)
    }
}

/// The kernel's statistics of the programs. They are switched off again when this is dropped.
pub struct Programs {
    before: String,
}

const STATISTICS: &str = "/proc/sys/kernel/bpf_stats_enabled";

impl Programs {
    /// Switches the counting on.
    pub fn count() -> Result<Self, Error> {
        let before = fs::read_to_string(STATISTICS)?;
        fs::write(STATISTICS, "1")?;
        Ok(Self { before })
    }

    fn ours() -> impl Iterator<Item = libbpf_rs::query::ProgramInfo> {
        ProgInfoIter::default().filter(|program| {
            let name = program.name.to_string_lossy();
            let is_of_scheduler = WAKEUP.contains(&name.as_ref()) || SWITCH.contains(&name.as_ref());
            is_of_scheduler || name.starts_with("enter_") || name.starts_with("exit_")
        })
    }

    /// Nanoseconds in all of them.
    pub fn spent(&self) -> Result<u64, Error> {
        Ok(Self::ours().map(|program| program.run_time_ns).sum())
    }

    /// How many wake-ups there were.
    pub fn wakeups(&self) -> Result<u64, Error> {
        Ok(Self::named(&WAKEUP).map(|program| program.run_cnt).sum())
    }

    /// Nanoseconds in the programs of a switch.
    pub fn per_switch(&self) -> Result<f64, Error> {
        Ok(Self::per_run(&SWITCH))
    }

    /// Nanoseconds in the program of a wake-up.
    pub fn per_wakeup(&self) -> Result<f64, Error> {
        Ok(Self::per_run(&WAKEUP))
    }

    /// The sum of what each of the programs takes.
    fn per_run(names: &'static [&'static str]) -> f64 {
        let each = Self::named(names).filter(|program| program.run_cnt > 0);
        each.map(|program| program.run_time_ns as f64 / program.run_cnt as f64).sum()
    }

    fn named(names: &'static [&'static str]) -> impl Iterator<Item = libbpf_rs::query::ProgramInfo> {
        Self::ours().filter(|program| names.contains(&program.name.to_string_lossy().as_ref()))
    }

    /// How system calls are seen.
    pub fn way(&self) -> Result<&'static str, Error> {
        let any = Self::ours().any(|program| ANY_CALL.contains(&program.name.to_string_lossy().as_ref()));
        Ok(if any { "tracepoint" } else { "fentry" })
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = fs::write(STATISTICS, self.before.trim());
    }
}
