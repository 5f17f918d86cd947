//! `punctual watch`

use super::{Attach, Target, examples};
use crate::values;
use clap::{Args, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Watch running threads and tell at once when they break a contract
///
/// Each violation is a line on standard output (with --json a JSON object), an entry in the systemd journal,
/// and with --on-violation a command. A job is judged when its thread begins the next one. In a storm the
/// first ten violations of each kind in a second are told one by one, and the rest in sum.
///
/// With --causes, the alarm about a late job is followed by its cause. With --keep, the last seconds before a
/// violation are kept as a recording with every context switch of all threads, for punctual why and punctual
/// timeline. Violations soon after are in the next recording; there are a hundred in all.
///
/// Memory stays the same for however long it runs. SIGHUP makes it read the contract again; a faulty one is
/// refused, and the old one stays. It ends when the time is up, when the target has ended, or on SIGINT or
/// SIGTERM, and prints what became of each term. The exit code is 8 if there was a violation.
// A list of processes after spaces would take the contract for one.
#[derive(Args, Debug)]
#[command(mut_arg("pid", |pid| pid.num_args(1)))]
#[command(after_long_help = examples(
    "  punctual watch robot.contract.toml                              every real-time thread
  punctual watch robot.contract.toml --keep /var/tmp/robot        and keep what happened before
  punctual watch robot.contract.toml --cgroup /sys/fs/cgroup/system.slice/robot.service
  punctual watch robot.contract.toml --on-violation 'logger -p user.crit \"$PUNCTUAL_TASK\"'
  punctual watch robot.contract.toml --json -- ./robot            a program, from start to end
  punctual watch robot.contract.toml --flow-probes punctual-flow --pid 1234    and the chains of its data"))]
pub struct Watching {
    /// The contract (*.toml), or a timing model as one; - is standard input
    #[arg(value_name = "CONTRACT", value_hint = ValueHint::FilePath)]
    pub contract: PathBuf,

    /// Stop after TIME (seconds, or 500ms, 5min, 2h) if the target has not ended before
    #[arg(long = "for", value_name = "TIME", value_parser = values::time, allow_negative_numbers = true)]
    pub duration: Option<Duration>,

    #[command(flatten)]
    pub target: Target,

    /// Watch chains of a dataflow program, at the functions that FILE names (docs/flow-probes.md)
    ///
    /// The program is COMMAND, or a single --pid that runs already. May be given several times; all add up.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["cgroup", "all_rt"])]
    pub flow_probes: Vec<PathBuf>,

    /// Run COMMAND by /bin/sh for a violation
    ///
    /// It gets the violation as JSON on standard input, and in PUNCTUAL_TASK, _TERM, _VALUE, _AGREED (ns, or
    /// a count), _THREAD, _PID, _TID, _JOB and _END_NS. Violations that come while it runs, or within a
    /// second of its start, start none. Its output goes to standard error.
    #[arg(long, value_name = "COMMAND")]
    pub on_violation: Option<String>,

    /// Keep the last seconds before a violation as a recording in DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,

    /// How long before the violation a recording begins, as far as 8 MiB of memory reach
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "5s", requires = "keep")]
    pub before: Duration,

    /// Explain jobs that were later than agreed, as punctual why does; --keep includes it
    ///
    /// The cause follows the alarm within a second; a table of all causes is printed at the end. This traces
    /// every context switch of all threads, which costs time, and keeps the last two seconds in memory.
    #[arg(long)]
    pub causes: bool,

    /// Serve metrics for Prometheus at http://ADDRESS/metrics (docs/metrics.md), such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,

    /// Compare responses with the bounds in FILE, too, which punctual prove --json printed
    ///
    /// A response beyond its bound is a violation (term bound): something happened that the proof leaves out.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub bounds: Option<PathBuf>,

    /// Do not write to the systemd journal
    #[arg(long)]
    pub no_journal: bool,

    /// Watch threads that are not real-time (SCHED_OTHER and the like) too; needs --pid, --cgroup or COMMAND
    #[arg(long)]
    pub include_best_effort: bool,

    /// How to trace system calls
    #[arg(long, value_enum, default_value_t = Attach::Auto)]
    pub attach: Attach,

    /// Buffer between the kernel and Punctual, 64KiB to 1GiB, rounded up to a power of two [default: 4MiB;
    /// 32MiB with --causes or --keep]
    #[arg(long, value_name = "SIZE", value_parser = values::buffer)]
    pub buffer: Option<u32>,

    /// Print JSON lines (docs/contracts.md)
    #[arg(long)]
    pub json: bool,

    /// Print warnings and errors only on standard error
    #[arg(short, long)]
    pub quiet: bool,
}
