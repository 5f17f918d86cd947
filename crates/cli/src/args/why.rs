//! `punctual why`

use super::{Attach, Range, Target, Threads, Watch, examples};
use crate::values;
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Explain late jobs
///
/// Cuts the time of each late job, from its arrival to its end, into parts: it ran, was preempted, waited for
/// a lock, for a disk, for the kernel. Names the thread behind each part, follows waits to their cause, and
/// sums up the causes. The parts of a job add up to its time exactly; time with missed events is shown as
/// unknown.
///
/// Takes a recording with --detail switches --all-threads, or watches a target for as long as it runs. The
/// kernel then keeps the last switches of all threads in memory, and they are read when a job was late. With
/// --keep, --contract, --job and --all, everything is recorded.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual why -- ./robot                          run a program, explain its late jobs
  punctual why --pid 1234 --for 10                 a running process, for ten seconds
  punctual why --longer-than 2ms robot.recording   jobs of a recording that took longer
  punctual why --job 3150 robot.recording          one job of a recording
  punctual why robot.recording --json --worst 100  for programs
  punctual why -o why.timing.json robot.recording  a file for punctual show and report"))]
pub struct Why {
    /// Explain the jobs that took longer than TIME [default: than the period of their task; without a period,
    /// the longest 1 %]
    #[arg(long, value_name = "TIME", value_parser = values::time, group = "which")]
    pub longer_than: Option<Duration>,

    /// Explain the jobs that missed the deadline of a contract (*.toml, *.timing.json), or its limit for
    /// response times
    #[arg(long, value_name = "CONTRACT", value_hint = ValueHint::FilePath, group = "which")]
    pub contract: Option<PathBuf>,

    /// Explain job N, late or not; with --thread, of these threads only
    #[arg(long, value_name = "N", group = "which")]
    pub job: Option<u64>,

    /// Explain all jobs, late or not
    #[arg(long, group = "which")]
    pub all: bool,

    /// Show the N worst jobs of each task one by one
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub worst: usize,

    /// Keep the recording of the target in DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "recording")]
    pub keep: Option<PathBuf>,

    /// Write the timing model with the causes to FILE, for punctual show and report; - is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub force: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub range: Range,

    #[command(flatten)]
    pub threads: Threads,

    /// Print warnings and errors only on standard error
    #[arg(short, long)]
    pub quiet: bool,

    /// Stop watching after TIME (seconds, or 500ms, 5min, 2h) if the target has not ended before
    #[arg(long = "for", value_name = "TIME", value_parser = values::time, conflicts_with = "recording")]
    pub duration: Option<Duration>,

    /// Explain jobs of threads that are not real-time (SCHED_OTHER and the like) too; needs --pid, --cgroup
    /// or COMMAND
    #[arg(long, conflicts_with = "recording")]
    pub include_best_effort: bool,

    /// How to trace system calls
    #[arg(long, value_enum, default_value_t = Attach::Auto, conflicts_with = "recording")]
    pub attach: Attach,

    #[command(flatten)]
    pub target: WhyTarget,
}

/// What to explain the jobs of.
#[derive(Args, Debug)]
#[group(multiple = false, required = true)]
pub struct WhyTarget {
    /// A recording with all threads' switches, or a trace that punctual import reads: perf.data, trace.dat, a
    /// folder of LTTng
    #[arg(value_name = "RECORDING", value_hint = ValueHint::AnyPath)]
    pub recording: Option<PathBuf>,

    /// Watch all threads of these processes
    #[arg(long, value_name = "PID", num_args = 1.., value_delimiter = ',', value_parser = values::pid)]
    pub pid: Vec<u32>,

    /// Watch the processes of this cgroup (version 2) and its descendants
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub cgroup: Option<PathBuf>,

    /// Watch every real-time thread of the machine, including kernel threads
    #[arg(long)]
    pub all_rt: bool,

    /// Run COMMAND and watch it and everything it starts; if it is still running at the end, it gets SIGTERM
    #[arg(value_name = "COMMAND", last = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

impl Why {
    /// What to watch, if that is no recording.
    pub fn watch(&self) -> Watch {
        let WhyTarget { pid, cgroup, command, all_rt, .. } = &self.target;
        let (pid, cgroup, command) = (pid.clone(), cgroup.clone(), command.clone());
        Watch {
            duration: self.duration,
            target: Target { all_rt: *all_rt, pid, cgroup, command },
            threads: self.threads.clone(),
            include_best_effort: self.include_best_effort,
            attach: self.attach,
            buffer: None,
            quiet: self.quiet,
        }
    }
}
