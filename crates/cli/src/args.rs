//! The command line. What is written here is also the help, the manual pages and the completions.

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Makes the timing of real-time Linux threads known.
///
/// Watches live threads through eBPF and writes, for each, what it does in time: when its jobs come, what
/// they need, how long they take. Without source code, annotations or changes to the program.
#[derive(Parser, Debug)]
#[command(name = "punctual", version, arg_required_else_help = false, max_term_width = 100, after_long_help = crate::failure::codes())]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    Extract(Extract),
    Record(Record),
    FlowProbes(crate::probes::Arguments),
    Replay(Replay),
    Import(Import),
    Show(Show),
    Report(Report),
    Timeline(Timeline),
    Chains(Chains),
    Compare(Compare),
    Rules(crate::rules::Arguments),
    Ctl(crate::ctl::args::Ctl),
    /// Say what of this kernel and these privileges lets which function work
    ///
    /// Looks at everything that observing needs, by trying it, and says what to do about what is missing. The
    /// exit code is 0 only if extraction can run.
    #[command(after_long_help = crate::failure::codes())]
    Doctor {
        /// Print what was found as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the completions for a shell
    ///
    /// For example: punctual completions bash > /etc/bash_completion.d/punctual
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    ///
    /// For example: punctual man /usr/local/share/man/man1
    Man {
        /// The directory to write them to
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

/// Watch live threads and extract their task models
///
/// Ends when the time is over, when all that is watched has ended, or at SIGINT or SIGTERM, and then always
/// gives its models. Without a target it watches every real-time thread of the machine. Without -o and --json
/// it prints a table.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Extract {
    #[command(flatten)]
    pub results: Results,

    #[command(flatten)]
    pub watch: Watch,

    #[command(flatten)]
    pub models: Models,

    /// Keep the records too, as a recording in DIR; --force replaces one that is there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub record: Option<PathBuf>,
}

/// Watch live threads and keep what was seen as a recording
///
/// Writes a folder in the Common Trace Format (CTF 1.8), which babeltrace2 and Trace Compass read. punctual
/// replay gives from it the models that punctual extract would have given. Ends as punctual extract does;
/// whatever happens, what is on the disk by then is a whole recording.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Record {
    /// Write the recording to DIR, which must not exist or be empty [default: recording-<date>-<time>]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// Replace the recording that DIR holds
    #[arg(long, requires = "output")]
    pub force: bool,

    /// What to record
    #[arg(long, value_enum, default_value_t = Detail::Activations)]
    pub detail: Detail,

    /// Trace the tasks and channels of a dataflow program, at the functions that FILE names
    ///
    /// FILE (TOML) is described in docs/flow-probes.md; or it is the name of one that comes with Punctual:
    /// punctual-flow for its own executor, tasking-framework-1.2 for DLR's Tasking Framework. Given several
    /// times, the files add up: one for the framework, one with the connections, the policy and the number of
    /// executors of the program.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["limit", "detail"])]
    pub flow_probes: Vec<PathBuf>,

    /// Keep no more than this on the disk: the oldest part goes first (at least 8MiB)
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    pub limit: Option<u64>,

    #[command(flatten)]
    pub watch: Watch,
}

/// Extract task models from recordings
///
/// Gives the models that punctual extract would have given from the same records. Of several recordings, each
/// task says which it comes from. A recording that was cut off is replayed as far as it goes, with a warning.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Replay {
    /// Recordings (folders that punctual record or punctual import wrote)
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub recordings: Vec<PathBuf>,

    #[command(flatten)]
    pub results: Results,

    #[command(flatten)]
    pub models: Models,

    #[command(flatten)]
    pub stretch: Stretch,

    /// How many workers; the result is the same with any number [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = workers)]
    pub jobs: Option<NonZeroUsize>,

    /// List every job too: FILE.csv or FILE.parquet
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub jobs_out: Option<PathBuf>,

    /// Show no progress and no hints; warnings stay
    #[arg(short, long)]
    pub quiet: bool,
}

/// Make a recording of another tool's trace
///
/// Reads what LiME recorded (a folder of *.events.json and *.infos.json) and perf.data files of perf sched
/// record, or of perf record
/// -e 'sched:*,raw_syscalls:*' -a. Says what the source lacks.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Import {
    /// The trace: LiME's folder or a perf.data file
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub source: PathBuf,

    /// Write the recording to DIR, which must not exist or be empty [default: the name of SOURCE with
    /// .recording]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// Replace the recording that DIR holds
    #[arg(long, requires = "output")]
    pub force: bool,

    /// Take best-effort threads (SCHED_OTHER and its like) too
    #[arg(long)]
    pub include_best_effort: bool,

    /// Show no progress and no hints; warnings stay
    #[arg(short, long)]
    pub quiet: bool,
}

/// Make a page to look at: tables and interactive plots
///
/// Writes one HTML file that needs nothing else and no network. With the recordings that the models were made
/// from, or some of them, it also shows every job: releases over time, and histograms. With the trace of the
/// dataflow program it also shows the states of tasks around the worst case. Folders alone do as well: the
/// model is made of them first, as punctual replay and punctual chains --kernel make it.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Report {
    /// The timing model (*.timing.json; - is standard input), or a recording or trace to make it of (a
    /// folder)
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub file: PathBuf,

    /// The recordings that it was made from, and the trace of its dataflow program; in any order
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub recordings: Vec<PathBuf>,

    /// Write the page to FILE; - is standard output [default: the name of the timing model, or else of the
    /// first folder, with .html; where that is standard input, standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    /// Show no progress and no hints; warnings stay
    #[arg(short, long)]
    pub quiet: bool,
}

/// Make a timeline for the Perfetto UI
///
/// Shows jobs, and of a recording with --detail switches also who ran when on which processor and who woke
/// whom. Only watched threads are known: where none of them runs, a processor looks idle. Of the trace of a
/// dataflow program it shows states of tasks, pushes, and who executed what; --from and --until are not for
/// those. Of one of each, of the same time, it shows both. Opens at https://ui.perfetto.dev, which keeps the
/// file in the browser.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Timeline {
    /// The recording, the trace of a dataflow program, or one of each
    #[arg(value_name = "TRACE", required = true, num_args = 1..=2, value_hint = ValueHint::DirPath)]
    pub recordings: Vec<PathBuf>,

    /// Write the timeline to FILE; - is standard output [default: the name of the first TRACE, with
    /// .perfetto-trace]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub stretch: Stretch,

    /// Show no progress and no hints; warnings stay
    #[arg(short, long)]
    pub quiet: bool,
}

/// Follow data through a dataflow program, from push to push
///
/// Reads what a program of tasks and channels said of itself (flow/trace writes such traces,
/// docs/flow-traces.md is their format). Finds its graph, execution and queuing times and activations of its
/// tasks, and for each chain of tasks how long data take from its source to its sink, and what that time went
/// into. For example: punctual chains TRACE --chain cam1,craT,navi,ter1
///
/// Threads of the same time may stand beside all that in the timing model: those of a recording (--kernel) or
/// of another model (--model).
///
/// What an instance of a task has read is what its inputs take, as far as the trace says it of them
/// (docs/flow-traces.md, "What an input keeps"); where it does not, all that was pushed since the activation
/// before its own.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Chains {
    /// The trace (a folder)
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,

    /// Follow this chain: its tasks from source to sink; may be given several times [default: all paths from
    /// sources to sinks]
    #[arg(long = "chain", value_name = "TASK,TASK,...")]
    pub chains: Vec<String>,

    /// Write the graph to FILE for Graphviz (dot -Tsvg FILE); - is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub graph: Option<PathBuf>,

    /// Split execution times into running, preempted and suspended, by a recording of the same time (punctual
    /// record --detail switches), and put its threads beside, as punctual replay finds them
    #[arg(long, value_name = "RECORDING", value_hint = ValueHint::DirPath)]
    pub kernel: Option<PathBuf>,

    /// Put the threads of this timing model (*.timing.json) beside, instead of those of RECORDING; a dataflow
    /// program in it is replaced
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub results: Results,

    /// Most activations that the arrival curves are about, less one
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub curve_horizon: u32,

    /// Show no progress and no hints; warnings stay
    #[arg(short, long)]
    pub quiet: bool,
}

/// Put runs side by side: which policy, how many executors, which platform?
///
/// Compares the execution and queuing times of tasks and the end-to-end latencies of chains of dataflow
/// programs, and period, jitter, slips, WCET, response times and percentiles of threads, by name. Inputs of
/// the same program, platform, policy and number of executors are runs of one configuration; a difference
/// between configurations is marked where it exceeds the spread of their runs, so give several of each. For
/// example: punctual compare fifo-1 fifo-2 priority-1 priority-2 -o compare.html
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Compare {
    /// Traces of dataflow programs (folders) and timing models (*.timing.json; - is standard input); two at
    /// least
    #[arg(value_name = "RUN", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    pub runs: Vec<PathBuf>,

    /// What makes a configuration: inputs that agree in it are its runs
    ///
    /// [default: program,platform,policy,executors; of threads: file]
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub by: Vec<By>,

    /// Follow this chain in the traces: its tasks from source to sink; may be given several times [default:
    /// all paths from sources to sinks]
    #[arg(long = "chain", value_name = "TASK,TASK,...")]
    pub chains: Vec<String>,

    /// Write a page with box plots to FILE (HTML) besides; - is standard output, and then nothing else is
    /// printed there
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    /// Print the comparison as JSON (docs/compare.md) instead of tables
    #[arg(long)]
    pub json: bool,

    /// Show no progress and no hints; warnings stay
    #[arg(short, long)]
    pub quiet: bool,
}

/// What makes a configuration.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The program
    Program,
    /// Operating system and processor
    Platform,
    /// The scheduling policy of the executors
    Policy,
    /// How many executors there are
    Executors,
    /// The file: every input is a configuration of its own
    File,
}

/// Where models go.
#[derive(Args, Debug)]
pub struct Results {
    /// Write the timing model to FILE (whole or not at all); - is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    /// Print the timing model as JSON to standard output
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
}

/// Which models.
#[derive(Args, Debug)]
pub struct Models {
    /// Do not begin a new task where the policy, priority or affinity of a thread changes
    #[arg(long)]
    pub merge_transitions: bool,

    /// Most releases that the arrival curves are about, less one
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub curve_horizon: u32,

    /// Most jobs that the WCET curve is about
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub wcet_horizon: u32,
}

/// Which stretch of a recording.
#[derive(Args, Debug, Default)]
pub struct Stretch {
    /// Begin this long after the beginning of the recording (1s, 2min)
    #[arg(long, value_name = "TIME", value_parser = offset)]
    pub from: Option<Duration>,

    /// End this long after the beginning of the recording
    #[arg(long, value_name = "TIME", value_parser = offset)]
    pub until: Option<Duration>,
}

/// What to watch, how, for how long.
#[derive(Args, Debug)]
pub struct Watch {
    /// Watch for this long (500ms, 10s, 5min, 2h), or until the target has ended
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub duration: Option<Duration>,

    #[command(flatten)]
    pub target: Target,

    /// Watch best-effort threads (SCHED_OTHER and its like) too
    #[arg(long)]
    pub include_best_effort: bool,

    /// How system calls are traced
    #[arg(long, value_enum, default_value_t = Attach::Auto)]
    pub attach: Attach,

    /// Size of the buffer between kernel and punctual (64KiB to 1GiB; rounded up to a power of two) [default:
    /// 4MiB; 32MiB for a recording]
    #[arg(long, value_name = "SIZE", value_parser = buffer)]
    pub buffer: Option<u32>,

    /// Show no progress and no hints; warnings stay
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Args, Debug)]
#[group(multiple = false)]
pub struct Target {
    /// Watch these processes with all their threads
    #[arg(long, value_name = "PID", num_args = 1.., value_delimiter = ',')]
    pub pid: Vec<u32>,

    /// Watch the processes of this cgroup (version 2) and of those below it
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub cgroup: Option<PathBuf>,

    /// Watch every real-time thread of the machine, kernel threads included (the default)
    #[arg(long)]
    pub all_rt: bool,

    /// Start COMMAND and watch it and all that it starts; if it still runs at the end, it is sent SIGTERM
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Show a timing model
///
/// Prints one line per task, and what is known of a dataflow program; or with --task everything known of one.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Show {
    /// The timing model (*.timing.json); - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Tell everything known of the tasks of this thread (its name or its TID), and of the task of this name
    /// of a dataflow program
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    /// Show tasks with fewer than two jobs and best-effort phases too
    #[arg(long, conflicts_with = "task")]
    pub all: bool,

    /// Show a row for each phase of a thread instead of their sum
    #[arg(long, conflicts_with = "task")]
    pub phases: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Show what was configured beside what was found; FILE is a JSON array as the demonstration workload
    /// prints it with --truth
    #[arg(long, value_name = "FILE", conflicts_with_all = ["task", "all", "phases", "json"], value_hint = ValueHint::FilePath)]
    pub truth: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// The best way that the kernel offers
    Auto,
    /// At the functions of the chosen system calls: other system calls cost nothing more
    Fentry,
    /// At the tracepoints of all system calls: works on every kernel
    Tracepoint,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A record for each separation of jobs: all that models need
    Activations,
    /// Every context switch and wake-up of the watched threads too, for timelines
    Switches,
}

/// A time that is not nothing.
pub fn span(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be longer than nothing".into()),
        Ok(span) => Ok(span),
        Err(_) => Err("expected a number with a unit, such as 500ms, 10s, 5min or 2h".into()),
    }
}

/// A time since the beginning, which may be nothing.
fn offset(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "expected a number with a unit, such as 0s, 500ms, 10s or 5min".into())
}

fn workers(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number of workers, 1 or more".into())
}

fn limit(text: &str) -> Result<u64, String> {
    let size: bytesize::ByteSize = text.parse().map_err(|_| "expected a size such as 500MiB or 2GiB")?;
    Some(size.as_u64()).filter(|size| *size >= 8 << 20).ok_or_else(|| "expected at least 8MiB".into())
}

fn buffer(text: &str) -> Result<u32, String> {
    let size: bytesize::ByteSize = text.parse().map_err(|_| "expected a size such as 512KiB or 4MiB")?;
    let allowed = (64 << 10)..=(1 << 30);
    u32::try_from(size.as_u64())
        .ok()
        .filter(|size| allowed.contains(size))
        .ok_or_else(|| "expected 64KiB to 1GiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_parser_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_tells_the_exit_codes_but_those_that_print_texts() {
        for command in Arguments::command().get_subcommands() {
            let tells =
                command.get_after_long_help().is_some_and(|help| help.to_string().contains("Exit codes"));
            assert_eq!(
                tells,
                !["completions", "man"].contains(&command.get_name()),
                "{}",
                command.get_name()
            );
        }
    }

    fn extract(line: &str) -> Result<Extract, clap::Error> {
        match Arguments::try_parse_from(line.split(' '))?.command {
            Command::Extract(extract) => Ok(extract),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pids_may_be_listed_in_either_way() {
        assert_eq!(extract("punctual extract --pid 1 2").expect("two").watch.target.pid, [1, 2]);
        assert_eq!(extract("punctual extract --pid 1,2 -q").expect("two").watch.target.pid, [1, 2]);
    }

    #[test]
    fn a_command_keeps_its_own_flags() {
        let plan = extract("punctual extract --for 10s -- ls --for -o").expect("a command");
        assert_eq!(plan.watch.target.command, ["ls", "--for", "-o"]);
        assert_eq!((plan.watch.duration, plan.results.output), (Some(Duration::from_secs(10)), None));
    }

    #[test]
    fn one_target_at_a_time() {
        assert!(extract("punctual extract --all-rt --pid 1").is_err());
        assert!(extract("punctual extract --pid 1 -- ls").is_err());
    }

    #[test]
    fn sizes_and_times_have_bounds() {
        assert_eq!(buffer("4MiB"), Ok(4 << 20));
        assert!(buffer("1KiB").is_err() && buffer("8GiB").is_err() && buffer("much").is_err());
        assert_eq!(span("1min 30s"), Ok(Duration::from_secs(90)));
        assert!(workers("0").is_err() && workers("-1").is_err() && workers("8").is_ok());
        assert!(span("0s").is_err() && span("10").is_err());
        assert_eq!((offset("0s"), offset("2s")), (Ok(Duration::ZERO), Ok(Duration::from_secs(2))));
        assert_eq!(limit("2GiB"), Ok(2 << 30));
        assert!(limit("1MiB").is_err() && limit("much").is_err());
    }
}
