//! `punctual tt` on the command line.

use super::examples;
use crate::values;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Run threads by a time-triggered table
///
/// A table assigns each processor's time slots to tasks (punctual table makes one). While it is dispatched,
/// its threads run in their slots and at no other time.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Tt {
    #[command(subcommand)]
    pub command: TtCommand,
}

#[derive(Subcommand, Debug)]
pub enum TtCommand {
    Run(TtRun),
    /// Show the tables being dispatched
    ///
    /// For each table: the current slot and its task, how late slots began, overruns, and threads.
    #[command(after_long_help = examples("  punctual tt status
  punctual tt status --json | jq '.tables[].tasks[] | select(.overruns > 0)'"))]
    Status {
        /// Print JSON (docs/dispatch.md)
        #[arg(long)]
        json: bool,
    },
    Check(TtCheck),
    /// Restores what a dispatcher has changed when it ends. Internal.
    #[command(hide = true)]
    Guard,
}

/// Dispatch a table
///
/// Finds the thread of each task (by name, unless the table says otherwise; with COMMAND only among the
/// threads that it starts) and gives it the task's slots, until the time is up, COMMAND has ended, or
/// SIGINT or SIGTERM arrives. Then every setting is restored, even after kill -9.
///
/// A thread that is not done at the end of its slots loses the processor; the table says what happens next.
/// Idle slots are for everything else (docs/dispatch.md).
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual tt run robot.table.json -- ./robot           until the program ends
  punctual tt run robot.table.json --for 10             threads that run already, for ten seconds
  punctual tt run robot.table.json --thread control=812 a thread by its number
  punctual tt run robot.table.json --record tt --for 60 every turn, for punctual tt check"))]
pub struct TtRun {
    /// The table (*.table.json; - is standard input)
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub table: PathBuf,

    /// Stop TIME (seconds, or 500ms, 5min, 2h) after the first slot
    #[arg(long = "for", value_name = "TIME", value_parser = values::time)]
    pub duration: Option<Duration>,

    /// Begin the first slot at INSTANT (nanoseconds on the table's clock), or +TIME from now
    ///
    /// Machines with clocks synchronized by PTP start together if the table's clock is CLOCK_TAI. If INSTANT
    /// has passed, dispatch joins the table at the current slot. [default: as soon as everything is set up]
    #[arg(long, value_name = "INSTANT", value_parser = values::start)]
    pub start: Option<values::Start>,

    /// Record every turn in DIR; --force replaces an existing recording
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub record: Option<PathBuf>,

    /// Replace the recording in DIR if it exists
    #[arg(long, requires = "record")]
    pub force: bool,

    /// The dispatcher (docs/dispatch.md)
    #[arg(long, value_enum, default_value_t = Dispatcher::Auto)]
    pub dispatcher: Dispatcher,

    /// Use thread TID for TASK; repeatable
    #[arg(long = "thread", value_name = "TASK=TID", value_parser = values::mapping)]
    pub threads: Vec<values::Mapping>,

    /// A job of TASK is over once its thread sleeps: give the rest of its slots back; repeatable
    #[arg(long = "sleep-ends-job", value_name = "TASK")]
    pub sleep_ends_job: Vec<String>,

    /// Priority of a thread during its turn; the dispatcher uses priorities from three below to two above it
    #[arg(long, value_name = "PRIORITY", default_value_t = 80)]
    #[arg(value_parser = clap::value_parser!(u32).range(4..=97))]
    pub priority: u32,

    /// Print the state at the end as JSON (docs/dispatch.md)
    #[arg(long)]
    pub json: bool,

    /// Print only warnings and errors, and no table
    #[arg(short, long)]
    pub quiet: bool,

    /// Run COMMAND, and look for threads only among those that it starts
    ///
    /// If it is still running at the end, it gets SIGTERM.
    #[arg(value_name = "COMMAND", last = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Check in a recording that every slot was given as planned
///
/// Reads a recording of punctual tt run --record. The exit code is 0 if every turn began in time, with the
/// thread of its task, and no thread ran outside its turns; otherwise violations are listed, and it is 9.
#[derive(Args, Debug)]
#[command(after_long_help = examples("  punctual tt check tt.recording robot.table.json
  punctual tt check tt.recording robot.table.json --error 50us --json"))]
pub struct TtCheck {
    /// The recording
    #[arg(value_name = "RECORDING", value_hint = ValueHint::DirPath)]
    pub recording: PathBuf,

    /// The table (*.table.json; - is standard input)
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub table: PathBuf,

    /// How late a turn may begin [default: one slot]
    #[arg(long, value_name = "TIME", value_parser = values::offset)]
    pub error: Option<Duration>,

    /// Processor time that a thread may use between two turns (the kernel's own work to freeze it counts)
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = values::offset)]
    pub outside: Duration,

    /// Print JSON (docs/dispatch.md)
    #[arg(long)]
    pub json: bool,
}

/// A kind of dispatcher.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatcher {
    /// The best that works here
    Auto,
    /// A BPF scheduler (sched_ext, Linux 6.12 or newer); nothing else runs on the table's processors
    SchedExt,
    /// A thread of high priority on each processor; works on all supported kernels
    #[value(alias = "user")]
    UserSpace,
}

impl Dispatcher {
    /// As the dispatchers name it.
    pub fn choice(self) -> punctual_workflow::tt::Choice {
        use punctual_workflow::tt::Choice;
        match self {
            Dispatcher::Auto => Choice::Auto,
            Dispatcher::SchedExt => Choice::SchedExt,
            Dispatcher::UserSpace => Choice::User,
        }
    }
}
