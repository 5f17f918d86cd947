//! The command line. Help, manual pages and completions are made from it.

mod contract;
mod prove;
mod summary;
mod top;
mod tt;
mod watch;
mod why;

pub use contract::{Check, Contract};
pub use prove::Prove;
pub use summary::{Merge, Summarize};
pub use top::Top;
pub use tt::{Tt, TtCheck, TtCommand, TtRun};
pub use watch::Watching;
pub use why::Why;

use crate::failure::codes;
use crate::values;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use punctual_model::Percent;
use punctual_workflow::timeline::JobName;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Measures the timing of real-time threads on Linux.
///
/// Punctual watches running threads through eBPF and writes a timing model: when the jobs of each thread are
/// released, how much processor time they take, and when they finish. It needs no source code, no annotations
/// and no changes to the program.
#[derive(Parser, Debug)]
#[command(name = "punctual", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_long_help = top_level_help(
    "  punctual doctor                                        check that this machine can run it
  punctual extract -- ./robot                            the timing of every thread of a program
  punctual extract --for 10 --pid 1234 -o r.timing.json  keep the timing model of a running process
  punctual show r.timing.json --task control             everything about one thread
  punctual report r.timing.json                          the same as a web page"))]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    Extract(Extract),
    Top(Top),
    Why(Why),
    Record(Record),
    FlowProbes(FlowProbes),
    Replay(Replay),
    Jobs(Jobs),
    Summarize(Summarize),
    Merge(Merge),
    Import(Import),
    Show(Show),
    Report(Report),
    Timeline(Timeline),
    Chains(Chains),
    Compare(Compare),
    Latency(Latency),
    Prove(Prove),
    Contract(Contract),
    Check(Check),
    Watch(Watching),
    Table(Table),
    Tt(Tt),
    Rules(crate::rules::Arguments),
    Ctl(crate::ctl::args::Ctl),
    /// Check what works on this kernel with your privileges, or how a program is set up
    ///
    /// Tries everything that observing needs and says what to do about what is missing. The exit code is 0
    /// only if extraction works. With --pid, looks at a program for a second instead, and says what may
    /// make its jobs late: policies, locked memory, page faults, processors, interrupts, mutexes without
    /// inheritance.
    Doctor {
        /// Look at this process
        #[arg(long)]
        pid: Option<u32>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print shell completions
    ///
    /// Prints them to standard output, for example: punctual completions bash >
    /// /etc/bash_completion.d/punctual
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages to a directory
    ///
    /// Those of the commands (section 1), of the configuration files (5) and of punctuald (8). To read one:
    /// punctual man pages && man pages/punctual-extract.1
    Man {
        /// The directory
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

/// The end of a command's help: examples.
fn examples(examples: &str) -> String {
    format!("Examples:\n{examples}")
}

/// The end of the help of `punctual` itself: examples, and the exit codes of all commands.
fn top_level_help(commands: &str) -> String {
    format!("{}\n\n{}", examples(commands), codes())
}

/// Watch running threads and extract their timing models
///
/// Prints a table of all threads. With -o it also writes the timing model to a file, for punctual show,
/// report and compare. Without a target it watches every real-time thread of the machine.
///
/// Extraction ends when the time is up, when the target has ended, or on SIGINT or SIGTERM. It always
/// prints and writes what it has found by then.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual extract --for 10                              every real-time thread, for ten seconds
  punctual extract -o robot.timing.json -- ./robot -v    a program, from start to end
  punctual extract --pid 1234 --thread 'control*'        some threads of a running process
  punctual extract --include-best-effort -- ./robot      threads that are not real-time (yet), too"))]
pub struct Extract {
    #[command(flatten)]
    pub results: Results,

    #[command(flatten)]
    pub watch: Watch,

    #[command(flatten)]
    pub models: Models,

    /// Also write a recording to DIR; --force replaces an existing one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub record: Option<PathBuf>,
}

/// Watch running threads and record what they do
///
/// Writes a folder in the Common Trace Format (CTF 1.8), which babeltrace2 and Trace Compass read too.
/// punctual replay makes from it the same models as punctual extract would have made.
///
/// Recording ends when the time is up, when the target has ended, or on SIGINT or SIGTERM. What is on disk
/// is a complete recording at any time, even after a crash.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual record --for 1min -o monday.recording                 every real-time thread
  punctual record --detail switches -o run.recording -- ./robot  a program, for a timeline
  punctual record --limit 500MiB                                 until Ctrl-C, the newest 500 MiB
  punctual record --flow-probes tasking-framework-1.2 -- ./app   a dataflow program"))]
pub struct Record {
    /// Write the recording to DIR, which must be new or empty [default: recording-<date>-<time>]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// Replace an existing recording in DIR
    #[arg(long, requires = "output")]
    pub force: bool,

    /// How much to record
    #[arg(long, value_enum, default_value_t = Detail::Activations)]
    pub detail: Detail,

    /// With --detail switches: also every context switch of all other threads of the machine
    ///
    /// A timeline then shows who preempted the watched threads. Only the watched threads have models. The
    /// recording and its timelines have the full command lines of all processes that ran, with whatever
    /// secrets are in them.
    #[arg(long)]
    pub all_threads: bool,

    /// Trace the tasks and channels of a dataflow program at the functions named in FILE
    ///
    /// FILE is a probes file (TOML, see docs/flow-probes.md), or the name of one that comes with Punctual:
    /// punctual-flow for its own executor, tasking-framework-1.2 for DLR's Tasking Framework. Several files
    /// add up: one for the framework, one for the connections, policy and executors of the program.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    ///
    /// The program is COMMAND, or a single --pid that runs already. With --detail switches its threads are
    /// recorded too: DIR then has two folders, flow and threads.
    #[arg(conflicts_with_all = ["cgroup", "all_rt"])]
    pub flow_probes: Vec<PathBuf>,

    /// Keep at most SIZE on disk (8MiB or more) by dropping the oldest part
    #[arg(long, value_name = "SIZE", value_parser = values::limit)]
    pub limit: Option<u64>,

    #[command(flatten)]
    pub watch: Watch,
}

/// Extract timing models from recordings
///
/// Makes the same models from a recording as punctual extract would have made live. With several recordings,
/// the timing model says which recording each task is from. A damaged or incomplete recording is replayed as
/// far as possible, with a warning.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual replay monday.recording                               a table
  punctual replay monday.recording -o monday.timing.json         and a timing model
  punctual replay monday.recording --from 10 --until 20          ten seconds of it
  punctual replay monday.recording --jobs-out jobs.csv           and a list of all jobs"))]
pub struct Replay {
    /// Recordings: folders written by punctual record or punctual import
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub recordings: Vec<PathBuf>,

    #[command(flatten)]
    pub results: Results,

    #[command(flatten)]
    pub threads: Threads,

    #[command(flatten)]
    pub models: Models,

    #[command(flatten)]
    pub range: Range,

    /// Number of workers; it does not change the result [default: one per processor]
    #[arg(short, long, value_name = "N", value_parser = values::workers)]
    pub jobs: Option<NonZeroUsize>,

    /// Also list every job in FILE: *.csv or *.parquet
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub jobs_out: Option<PathBuf>,

    /// Print warnings and errors only on standard error, and no table with -o
    #[arg(short, long)]
    pub quiet: bool,
}

/// List every job of recordings: CSV, Parquet, or a folder of Parquet files
///
/// Prints comma-separated values unless told otherwise. docs/job-lists.md explains the columns and has
/// examples of queries. Each stretch of a thread's execution belongs to one job of each of its separators;
/// --primary keeps the jobs of the separator that explains the thread best.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual jobs monday.recording --primary | less
  punctual jobs monday.recording -o jobs.parquet
  punctual jobs *.recording --primary --partitioned jobs
  duckdb -c \"from 'jobs/**/*.parquet' order by response_ns desc limit 10\""))]
pub struct Jobs {
    /// Recordings: folders written by punctual record or punctual import; several with --partitioned only
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub recordings: Vec<PathBuf>,

    /// Write the list to FILE: *.csv or *.parquet; - is standard output, as CSV [default: -]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "partitioned")]
    pub output: Option<PathBuf>,

    /// Write a Parquet file for each task, DIR/recording=RUN/task=NAME-TID-PHASE/jobs.parquet; runs that DIR
    /// has already stay
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub partitioned: Option<PathBuf>,

    /// Replace FILE, or the jobs that DIR has of the same recordings
    #[arg(long)]
    pub force: bool,

    /// Only the jobs of each task's primary separator
    #[arg(long)]
    pub primary: bool,

    /// Add columns for late jobs (longer than the period) and their causes; needs a recording with --detail
    /// switches --all-threads
    #[arg(long)]
    pub causes: bool,

    /// List late jobs only, with these columns
    #[arg(long)]
    pub late: bool,

    /// List the N longest late jobs of each task, with these columns
    #[arg(long, value_name = "N")]
    pub worst: Option<usize>,

    #[command(flatten)]
    pub threads: Threads,

    /// Do not start a new task when the policy, priority or affinity of a thread changes
    #[arg(long)]
    pub merge_transitions: bool,

    #[command(flatten)]
    pub range: Range,

    /// Print warnings and errors only on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// Convert another tool's trace to a recording
///
/// Reads perf.data files of perf sched record, or of perf record -e 'sched:*,raw_syscalls:*' -a, with -z or
/// without, what perf wrote to a pipe (-o -) or to a folder (--threads); trace.dat files of trace-cmd record
/// -C mono -e sched -e raw_syscalls; traces of Perfetto with events of ftrace (sched/*, raw_syscalls/*);
/// kernel traces of LTTng in CTF 1.8 and CTF 2; traces of LiME (a folder of *.events.json and *.infos.json);
/// and what ftrace, trace-cmd report, perf script and systrace print. LTTng traces of ROS 2 (ros2_tracing,
/// CARET) become the trace of a dataflow program, for punctual chains. Prints what the source lacks.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  perf sched record -o run.data -- ./robot
  punctual import run.data && punctual replay run.recording
  punctual import ~/.ros/tracing/run1 -o run1 && punctual chains run1
  perf script --ns --show-lost-events -i run.data | punctual import - --machine x86_64 -o run2"))]
pub struct Import {
    /// The trace: a folder of LTTng (ROS 2, CARET), of LiME or of perf, a perf.data or trace.dat file, a
    /// trace of Perfetto, or the text of ftrace, trace-cmd report, perf script or systrace; - is standard
    /// input
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub source: PathBuf,

    /// Write the recording to DIR, which must be new or empty [default: SOURCE's name with .recording]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// Replace an existing recording in DIR
    #[arg(long, requires = "output")]
    pub force: bool,

    #[command(flatten)]
    pub threads: Threads,

    /// Import threads that are not real-time too
    #[arg(long)]
    pub include_best_effort: bool,

    /// Machine it was recorded on, if the trace does not name it; decides the numbers of system calls
    #[arg(long, value_name = "NAME", value_parser = ["x86_64", "aarch64"])]
    pub machine: Option<String>,

    /// ROS 2: data go from one callback to another of the same node, which reads the newest; or none. Without
    /// it, from those that publish nothing to those that publish
    #[arg(long = "variable", value_name = "WRITER,READER")]
    pub variables: Vec<String>,

    /// Print what the trace had and lacks as JSON
    #[arg(long)]
    pub json: bool,

    /// Print warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
}

/// Make a web page of a timing model: tables and interactive plots
///
/// Writes one HTML file that needs no network and no other files. With the recordings that the model was made
/// from, the page also shows every job. With the trace of its dataflow program, it also shows the states of
/// tasks around the worst case. Without a model, one is made of the recordings and the trace first.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual report robot.timing.json                      a page of the model
  punctual report robot.timing.json monday.recording     with every job
  punctual report monday.recording -o monday.html        straight from a recording"))]
pub struct Report {
    /// A timing model (*.timing.json; - is standard input), or a recording or trace (a folder)
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub file: PathBuf,

    /// The recordings the model was made from, and the trace of its dataflow program, in any order
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub recordings: Vec<PathBuf>,

    /// Write the page to FILE; - is standard output [default: the name of the model or first folder, with
    /// .html]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub threads: Threads,

    /// Print warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
}

/// Make a timeline for the Perfetto UI
///
/// Shows the jobs of each thread. A recording made with --detail switches also shows which thread ran where
/// and who woke whom; with --all-threads also the threads that preempted them. The trace of a dataflow
/// program shows the states of tasks, pushes, and which executor ran what. A recording and a trace of the
/// same time can be shown together.
///
/// Open the file at https://ui.perfetto.dev. It stays in your browser. It has the full command lines of all
/// threads that it shows; those of a recording made with --all-threads are of unrelated processes too, so
/// look before you send it to others.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual record --detail switches --all-threads -o run.recording -- ./robot
  punctual timeline run.recording
  punctual timeline run.recording --from 2s --until 2500ms --thread 'control*'
  punctual timeline run.recording --around control:3150    a job that punctual why explains"))]
pub struct Timeline {
    /// A recording, the trace of a dataflow program, or one of each (also in one folder)
    #[arg(value_name = "TRACE", required = true, num_args = 1..=2, value_hint = ValueHint::DirPath)]
    pub recordings: Vec<PathBuf>,

    /// Write the timeline to FILE; - is standard output [default: the first TRACE's name with
    /// .perfetto-trace]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub threads: Threads,

    #[command(flatten)]
    pub range: Range,

    /// Show the time around a job by its number, of THREAD where several have that many
    #[arg(long, value_name = "[THREAD:]JOB", conflicts_with_all = ["from", "until"])]
    pub around: Option<JobName>,

    /// Print warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
}

/// Analyse a dataflow program: task times and end-to-end latencies
///
/// Reads the trace of a program of tasks and channels (docs/flow-traces.md; flow/trace writes such traces).
/// Finds its graph, the execution and queuing times of its tasks, and for each chain of tasks how long data
/// takes from source to sink, and where that time goes.
///
/// The threads of a recording (--kernel) or of a timing model (--model) of the same time can be put beside
/// it.
///
/// Which pushes an instance of a task reads follows from how its inputs buffer data (docs/flow-traces.md,
/// "What an input keeps"). If the trace does not say, an instance is assumed to read everything pushed since
/// the activation before its own.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual chains run.trace
  punctual chains run.trace --chain camera,vision,control -o run.timing.json
  punctual chains run.trace --graph run.dot && dot -Tsvg run.dot -o run.svg"))]
pub struct Chains {
    /// The trace (a folder): Punctual's own, or LTTng's of ROS 2, which is imported for this
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,

    /// Follow this chain: its tasks from source to sink; repeatable [default: all paths from sources to
    /// sinks]
    #[arg(long = "chain", value_name = "TASK,TASK,...")]
    pub chains: Vec<String>,

    /// How long data may take from task to task; misses are counted, and the exit code is 8; repeatable
    ///
    /// 'cam1..ter1: reaction<50ms, age<80ms' is about all paths between two tasks, 'cam1,navi,ter1: age<80ms'
    /// about one. punctual check CONTRACT TRACE --json judges the deadlines of a contract for other programs.
    #[arg(long = "deadline", value_name = "CHAIN: reaction<TIME, age<TIME")]
    pub deadlines: Vec<String>,

    /// The same from a contract (*.toml, *.timing.json): its chains with reaction_time or data_age
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub contract: Option<PathBuf>,

    /// Write the graph to FILE for Graphviz; - is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub graph: Option<PathBuf>,

    /// Write every instance of every task to FILE (*.csv or *.parquet)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub jobs_out: Option<PathBuf>,

    /// Write every reaction time and data age of every chain to FILE (*.csv or *.parquet)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub passages_out: Option<PathBuf>,

    #[command(flatten)]
    pub range: Range,

    /// Split execution times into running, preempted and suspended, using a recording of the same time made
    /// with --detail switches, and show its threads
    #[arg(long, value_name = "RECORDING", value_hint = ValueHint::DirPath)]
    pub kernel: Option<PathBuf>,

    /// Show the threads of this timing model instead of those of RECORDING; its dataflow program is replaced
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub threads: Threads,

    #[command(flatten)]
    pub results: Results,

    /// Longest arrival-curve window, in activations minus one
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = values::horizon())]
    pub curve_horizon: u32,

    /// Print warnings and errors only on standard error, and no table with -o
    #[arg(short, long)]
    pub quiet: bool,
}

/// Compare runs: policies, numbers of executors, platforms, versions
///
/// Compares the tasks and chains of dataflow programs, and the periods, jitter, costs and response times of
/// threads, by name. Inputs of the same program, platform, policy and number of executors are runs of one
/// configuration. A difference between configurations is marked only if it exceeds the spread of their runs,
/// so give several runs of each.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual compare fifo-1 fifo-2 priority-1 priority-2 -o compare.html
  punctual compare before.timing.json after.timing.json --thread 'control*'
  punctual compare --by folder before/*.timing.json after/*.timing.json --fail-on-worse"))]
pub struct Compare {
    /// Traces of dataflow programs (folders) and timing models (*.timing.json; - is standard input)
    #[arg(value_name = "RUN", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    pub runs: Vec<PathBuf>,

    /// What distinguishes configurations: inputs that agree in all of it are runs of one configuration
    ///
    /// [default: program,platform,policy,executors; for threads: file]
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub by: Vec<By>,

    /// Follow this chain in the traces; repeatable [default: all paths from sources to sinks]
    #[arg(long = "chain", value_name = "TASK,TASK,...")]
    pub chains: Vec<String>,

    #[command(flatten)]
    pub threads: Threads,

    /// Also write a page with pictures to FILE (HTML); - is standard output, which then has only the page
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    /// Exit with 8 if a configuration is worse than the first, and with 2 if there are too few runs to tell
    #[arg(long)]
    pub fail_on_worse: bool,

    /// Print JSON (docs/compare.md) instead of tables
    #[arg(long)]
    pub json: bool,

    /// Print warnings and errors only on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// Bound the scheduling latency of each processor, and say who causes it
///
/// How late can the kernel make the ready thread of highest priority? Prints for each processor how long the
/// kernel kept preemption or interrupts disabled, and who did; its interrupts; the bound of the latency that
/// follows, under six models of interrupts; and measured latencies beside it.
///
/// The bound rests on rules that PREEMPT_RT kernels obey. On other kernels measured latencies are shown, and
/// why there is no bound (docs/latency.md).
///
/// Without FILE it measures this machine, until the time is up, COMMAND has ended, or on SIGINT (Ctrl-C) or
/// SIGTERM. The exit code is 8 if a measured latency is above its bound.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual latency --for 60                              measure this machine for a minute
  punctual latency -o monday.timing.json -- ./robot      while a program runs
  punctual latency --threshold 60us --record DIR         until something takes that long, for a timeline
  punctual latency monday.timing.json                    bound and causes from a timing model
  punctual latency mon.timing.json tue.timing.json       of two runs together
  punctual latency monday.timing.json --cpus 2-3 --json  of two processors, for programs"))]
pub struct Latency {
    /// Timing models with latencies (*.timing.json; - is standard input); several are merged
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,

    /// Stop measuring after TIME (seconds, or 500ms, 5min, 2h) if COMMAND has not ended before
    #[arg(long = "for", value_name = "TIME", value_parser = values::time, conflicts_with = "files")]
    #[arg(allow_negative_numbers = true)]
    pub duration: Option<Duration>,

    /// Period of the measuring thread on each processor (SCHED_FIFO); off: no measuring threads
    #[arg(long, value_name = "TIME|off", default_value = "1ms", value_parser = values::period)]
    #[arg(conflicts_with = "files")]
    pub measure: values::Period,

    /// Stop at the first variable or latency of TIME or longer, and print what happened before
    #[arg(long, value_name = "TIME", value_parser = values::time, conflicts_with = "files")]
    #[arg(allow_hyphen_values = true)]
    pub threshold: Option<Duration>,

    /// Also write a recording to DIR; --force replaces an existing one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "files")]
    pub record: Option<PathBuf>,

    /// Have the kernel's monitors (CONFIG_RV) watch the rules that the bound rests on, which costs time
    #[arg(long, conflicts_with = "files")]
    pub verify: bool,

    /// Run COMMAND meanwhile
    ///
    /// It is not observed in any special way: it is load. If it is still running at the end, it gets SIGTERM.
    #[arg(value_name = "COMMAND", last = true, conflicts_with = "files")]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,

    /// Only these processors, as a list: 0-1,4
    #[arg(long, value_name = "LIST", value_parser = values::cpus)]
    pub cpus: Option<values::Cpus>,

    /// Write the timing model to FILE; - is standard output, which then has only the model
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE, or the recording in DIR, if it exists
    #[arg(long)]
    pub force: bool,

    /// Print JSON (docs/latency.md) instead of tables
    #[arg(long)]
    pub json: bool,

    /// Print warnings and errors only on standard error, and no table with -o
    #[arg(short, long)]
    pub quiet: bool,
}

/// Make a time-triggered table: which task each processor serves in each slot
///
/// Takes periods and costs from timing models, and what was agreed on from contracts (*.toml, docs/table.md):
/// deadlines, order, processors, tasks that were not observed. Every job of every task then gets its slots
/// before its deadline; or the refusal says on which processors and in which slots how much is too much.
///
/// One processor: EDF, which finds a table if there is one. Several, with --migration: maximum flow, which
/// does too. Several without migration: worst fit, then first fit, which may miss one.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual table robot.timing.json --slot 1ms --cpus 2 -o robot.table.json
  punctual table robot.timing.json robot.toml -o robot.table.json    slot and processors from the contract
  punctual table robot.toml --slot 3ms --cpus 1-3 --migration        print it only
  punctual table --from robot.table.json                             check a table and show it
  punctual report robot.table.json                                   as a web page
  punctual report robot.table.json tt                                beside what was dispatched
  punctual timeline robot.table.json                                 for the Perfetto UI"))]
pub struct Table {
    /// Timing models (*.timing.json; - is standard input) and contracts (*.toml)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "from")]
    pub files: Vec<PathBuf>,

    /// Check the table in FILE and show it; the exit code is 6 if it does not keep to its tasks
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["files", "slot", "cpus", "migration", "margin", "shorten_periods", "clock",
        "thread", "output"])]
    pub from: Option<PathBuf>,

    /// Length of a slot, such as 3ms or 250us
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub slot: Option<Duration>,

    /// The processors that follow the table, as a list: 1-3,5
    #[arg(long, value_name = "LIST", value_parser = values::cpus)]
    pub cpus: Option<values::Cpus>,

    /// Let jobs continue on another processor
    #[arg(long)]
    pub migration: bool,

    /// Percentage added to each observed cost; what a contract says is taken as it is
    #[arg(long, value_name = "PERCENT", value_parser = values::percent, default_value = "10%")]
    pub margin: Percent,

    /// Where a period is not a whole number of slots, take the next shorter one that is
    #[arg(long)]
    pub shorten_periods: bool,

    /// The clock whose instants begin slots [default: that of a contract, or monotonic]
    #[arg(long, value_enum)]
    pub clock: Option<TableClock>,

    #[command(flatten)]
    pub threads: Threads,

    /// Write the table to FILE; - is standard output, which then has only the table
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    /// Print JSON (docs/table.md) instead of tables
    #[arg(long)]
    pub json: bool,

    /// Print warnings and errors only on standard error, and no table with -o
    #[arg(short, long)]
    pub quiet: bool,
}

/// A clock that can begin slots.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableClock {
    /// CLOCK_MONOTONIC
    Monotonic,
    /// CLOCK_TAI, which several machines can share
    Tai,
}

/// What distinguishes configurations.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The program
    Program,
    /// The operating system and processor
    Platform,
    /// The scheduling policy of the executors
    Policy,
    /// The number of executors
    Executors,
    /// The file: every input is a configuration of its own
    File,
    /// The folder that a file is in: runs of one configuration lie together
    Folder,
}

/// Where results go.
#[derive(Args, Debug)]
pub struct Results {
    /// Write the timing model to FILE; - is standard output, which then has only the model
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    /// Print the timing model as JSON instead of a table
    #[arg(long, conflicts_with_all = ["output", "phases"])]
    pub json: bool,

    /// Print one row per phase of a thread (its tasks, one after the other) instead of their sum
    #[arg(long)]
    pub phases: bool,
}

/// Which threads.
#[derive(Args, Clone, Debug)]
pub struct Threads {
    /// Only threads whose name matches GLOB (*, ? and [...] as in a shell); repeatable
    #[arg(long, value_name = "GLOB")]
    pub thread: Vec<String>,
}

/// Which models.
#[derive(Args, Debug)]
pub struct Models {
    /// Do not start a new task when the policy, priority or affinity of a thread changes
    #[arg(long)]
    pub merge_transitions: bool,

    /// Longest arrival-curve window, in releases minus one
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = values::horizon())]
    pub curve_horizon: u32,

    /// Longest WCET-curve window, in jobs
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = values::horizon())]
    pub wcet_horizon: u32,
}

/// A part of a recording or trace.
#[derive(Args, Debug, Default)]
pub struct Range {
    /// Start TIME after the beginning of the recording or trace (seconds, or 500ms, 2min)
    #[arg(long, value_name = "TIME", value_parser = values::offset)]
    pub from: Option<Duration>,

    /// End TIME after the beginning of the recording or trace
    #[arg(long, value_name = "TIME", value_parser = values::offset)]
    pub until: Option<Duration>,
}

/// What to watch, how, and for how long.
#[derive(Args, Debug)]
pub struct Watch {
    /// Stop after TIME (seconds, or 500ms, 5min, 2h) if the target has not ended before
    #[arg(long = "for", value_name = "TIME", value_parser = values::time, allow_negative_numbers = true)]
    pub duration: Option<Duration>,

    #[command(flatten)]
    pub target: Target,

    #[command(flatten)]
    pub threads: Threads,

    /// Watch threads that are not real-time (SCHED_OTHER and the like) too; needs --pid, --cgroup or COMMAND
    #[arg(long)]
    pub include_best_effort: bool,

    /// How to trace system calls
    #[arg(long, value_enum, default_value_t = Attach::Auto)]
    pub attach: Attach,

    /// Buffer between the kernel and Punctual, 64KiB to 1GiB, rounded up to a power of two [default: 4MiB;
    /// 32MiB for a recording]
    #[arg(long, value_name = "SIZE", value_parser = values::buffer)]
    pub buffer: Option<u32>,

    /// Print warnings and errors only on standard error, and no table with -o
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Args, Debug)]
#[group(multiple = false)]
pub struct Target {
    /// Watch all threads of these processes
    #[arg(long, value_name = "PID", num_args = 1.., value_delimiter = ',', value_parser = values::pid)]
    pub pid: Vec<u32>,

    /// Watch the processes of this cgroup (version 2) and its descendants
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub cgroup: Option<PathBuf>,

    /// Watch every real-time thread of the machine, including kernel threads (the default)
    #[arg(long)]
    pub all_rt: bool,

    /// Run COMMAND and watch it and everything it starts
    ///
    /// Options of Punctual must precede it; everything from COMMAND on is its own. If it is still running at
    /// the end, it gets SIGTERM.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, num_args = 0..)]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Show a timing model
///
/// Prints a table with one line per task, and the tables of a dataflow program; with --task everything about
/// one task.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual show robot.timing.json
  punctual show robot.timing.json --task control
  ssh robot punctual extract --for 10 --json | punctual show -"))]
pub struct Show {
    /// The timing model (*.timing.json); - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Everything about one thread (its name or TID), or about the task of this name of a dataflow program
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    #[command(flatten)]
    pub threads: Threads,

    /// Include tasks with fewer than two jobs and best-effort phases
    #[arg(long, conflicts_with = "task")]
    pub all: bool,

    /// Show one row per phase of a thread (its tasks, one after the other) instead of their sum
    #[arg(long, conflicts_with = "task")]
    pub phases: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Compare with the configured timing in FILE, a JSON array as the demonstration workload prints with
    /// --truth
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["task", "all", "phases", "json"])]
    pub truth: Option<PathBuf>,
}

/// Check probes files, which name the functions of a dataflow framework
///
/// With probes files, punctual record --flow-probes traces a program that cannot be rebuilt.
/// docs/flow-probes.md describes them.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct FlowProbes {
    #[command(subcommand)]
    pub command: FlowProbesCommand,
}

#[derive(Subcommand, Debug)]
pub enum FlowProbesCommand {
    /// List which of the functions a program has
    ///
    /// Looks in the program and the libraries it is linked to, without running anything. The exit code is 0
    /// only if there is a function for each of the four events.
    #[command(after_long_help = examples(
        "  punctual flow-probes check tasking-framework-1.2 ./app"))]
    Check {
        /// Probes files (TOML), or names of those that come with Punctual: punctual-flow,
        /// tasking-framework-1.2; several add up
        #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// The program
        #[arg(value_hint = ValueHint::ExecutablePath)]
        program: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// The best way the kernel offers
    Auto,
    /// At the functions of the chosen system calls; other calls cost nothing more
    Fentry,
    /// At the tracepoints of all system calls; works on every kernel
    Tracepoint,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// One record per job: all that models need
    Activations,
    /// Every context switch and wake-up of the watched threads too, for timelines
    Switches,
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
    fn only_the_top_level_help_lists_exit_codes() {
        let lists = |command: &clap::Command| {
            command.get_after_long_help().is_some_and(|help| help.to_string().contains("Exit codes"))
        };
        let command = Arguments::command();
        assert!(lists(&command) && !command.get_subcommands().any(lists));
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

    /// A list of processes must not swallow the contract, before or after it.
    #[test]
    fn a_contract_may_follow_the_process() {
        for line in [
            "punctual watch --pid 1,2 robot.toml --json",
            "punctual watch --json robot.toml --pid 1 --pid 2",
            "punctual watch --pid 1 --pid 2 --json robot.toml",
        ] {
            let Command::Watch(plan) = Arguments::try_parse_from(line.split(' ')).expect(line).command else {
                panic!("{line}");
            };
            assert_eq!((plan.contract, plan.target.pid), ("robot.toml".into(), vec![1, 2]), "{line}");
        }
    }

    #[test]
    fn wrong_values_are_answered_with_what_is_expected() {
        for (line, expected) in [
            ("punctual extract --pid abc", "expected numbers of processes, such as 1234 or 1234,1240"),
            ("punctual extract --for -5", "expected seconds, or a number with a unit"),
            ("punctual latency --for -5", "expected seconds, or a number with a unit"),
        ] {
            let error = Arguments::try_parse_from(line.split(' ')).expect_err(line);
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn a_command_keeps_its_own_flags() {
        for separator in ["-- ", ""] {
            let line = format!("punctual extract --for 10s {separator}ls --for -o -- -q");
            let plan = extract(&line).expect("a command");
            assert_eq!(plan.watch.target.command, ["ls", "--for", "-o", "--", "-q"], "{line}");
            assert_eq!((plan.watch.duration, plan.results.output), (Some(Duration::from_secs(10)), None));
            assert!(!plan.watch.quiet);
        }
        let plan = extract("punctual extract -q ./app --for 5").expect("a command");
        assert_eq!((plan.watch.quiet, plan.watch.target.command.len()), (true, 3));
        assert!(extract("punctual extract --no-such-option ls").is_err());
    }

    #[test]
    fn one_target_at_a_time() {
        assert!(extract("punctual extract --all-rt --pid 1").is_err());
        assert!(extract("punctual extract --pid 1 -- ls").is_err());
        assert!(extract("punctual extract --all-rt ls").is_err());
    }

    #[test]
    fn threads_are_chosen_by_patterns() {
        let plan = extract("punctual extract --thread a* --thread b -- ls").expect("patterns");
        assert_eq!(plan.watch.threads.thread, ["a*", "b"]);
    }
}
