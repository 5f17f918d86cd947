//! Arguments of `punctual top`.

use super::{Models, Watch, examples};
use crate::values;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Watch running threads on a live display
///
/// Shows a line for each thread: its period, utilization, response times and costs of its jobs beside their
/// deadline, and the last seconds as a small chart. The deadline is that of --contract, else of the thread's
/// reservation (SCHED_DEADLINE), else its period. Without a target it watches every real-time thread of the
/// machine.
///
/// Press ? for the keys, Enter for the details of a thread, s to save the timing model, q to quit. It needs a
/// terminal; punctual extract prints and writes what it has found without one. A COMMAND has no input and its
/// output is discarded: the terminal is in use.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual top                                every real-time thread of the machine
  punctual top --pid 1234                     a running process
  punctual top --include-best-effort ./robot  a program, threads that are not real-time (yet), too
  punctual top --causes --pid 1234            and why its jobs are late
  NO_COLOR=1 punctual top                     without colours"))]
pub struct Top {
    #[command(flatten)]
    pub watch: Watch,

    #[command(flatten)]
    pub models: Models,

    /// Take deadlines from a contract (*.toml) or, as one, a timing model
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub contract: Option<PathBuf>,

    /// Explain late jobs on a page of each thread's details, as punctual why does
    ///
    /// This traces every context switch of all threads, which costs time.
    #[arg(long)]
    pub causes: bool,

    /// Show response times beside the bounds in FILE, which punctual prove --json printed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub bounds: Option<PathBuf>,

    /// How often the figures change, from 100ms to 1min
    #[arg(long, value_name = "TIME", value_parser = values::interval, default_value = "1s")]
    pub interval: Duration,

    /// Save the timing model to FILE when s is first pressed [default: top-<date>-<time>.timing.json]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub force: bool,
}
