//! `punctual prove`

use super::{Threads, examples};
use crate::values;
use clap::{Args, ValueHint};
use punctual_model::Percent;
use std::path::PathBuf;

/// Prove that threads meet their deadlines, from a timing model or a contract
///
/// Bounds the response time of each real-time thread of MODEL: FIFO and RR by priority, DEADLINE before both,
/// on one processor or several, with suspension, jitter and what the kernel takes (docs/prove.md). Shows the
/// deadline (declared, else the period), whether it is met, and what the bound is made of. The exit code is 6
/// if a deadline is not proven.
///
/// A bound holds as far as the model does: for an observation, as long as threads and kernel behave as they
/// did. Real-time threads that are not in the model are not in the proof. A contract is taken as it is, with
/// its own deadlines, policies and priorities (docs/contracts.md).
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual prove robot.timing.json                              deadlines are the periods
  punctual prove robot.timing.json --platform rt.timing.json    with the latency of the kernel
  punctual prove robot.timing.json --deadline 'control*=4ms'
  punctual prove robot.timing.json --what-if control.wcet=+20% --what-if 'cam*.period=-10%'
  punctual prove robot.timing.json --task control               the worst schedule of one thread
  punctual prove robot.timing.json --sensitivity --assign       how far each may change; priorities
  punctual prove robot.timing.json --assign -o new.toml         for punctual ctl run --model
  punctual prove robot.contract.toml                            what was agreed on"))]
pub struct Prove {
    /// The timing model (*.timing.json), or a contract (*.toml); - is standard input
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub model: PathBuf,

    /// Timing model with the latency of the kernel (punctual latency -o FILE) [default: MODEL]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub platform: Option<PathBuf>,

    /// Deadline of the threads that a pattern matches, from the arrival of a job; repeatable, the last counts
    #[arg(long = "deadline", value_name = "THREAD=TIME", value_parser = values::deadline)]
    pub deadlines: Vec<values::Deadline>,

    /// Percentage added to each observed cost
    #[arg(long, value_name = "PERCENT", value_parser = values::percent, default_value = "0%")]
    pub margin: Percent,

    /// Change the processor time or the period of threads: control.wcet=+20%, cam*.period=-10%; repeatable
    #[arg(long = "what-if", value_name = "THREAD.WHAT=PERCENT", value_parser = values::change)]
    pub changes: Vec<values::Change>,

    /// Show how far each thread alone may change until the first deadline is missed
    #[arg(long)]
    pub sensitivity: bool,

    /// Look for priorities of the FIFO and RR threads, and for deadlines of reservations (DEADLINE), under
    /// which all deadlines are met
    #[arg(long)]
    pub assign: bool,

    /// Show what the bound of one thread is made of, and a schedule that reaches it
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    /// Write a page (*.html) with the verdicts, what the bounds are made of, and the worst schedules (- is
    /// standard output); or JSON (*.json); or, with --assign, a contract (*.toml) with the priorities and
    /// reservations that were found
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub force: bool,

    /// Print warnings and errors only on standard error
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub threads: Threads,

    /// Assume that threads whose names match PATTERN never run; repeatable. The output repeats it
    #[arg(long = "ignore", value_name = "PATTERN")]
    pub ignored: Vec<String>,

    /// Print JSON (docs/prove.md) instead of a table
    #[arg(long)]
    pub json: bool,
}
