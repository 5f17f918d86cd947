//! The command line. What is written here is also the help, the manual pages and the completions.

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Makes the timing of real-time Linux threads known.
///
/// Watches live threads through eBPF and writes, for each, what it does in time: when its jobs come, what they need, how long
/// they take. Without source code, annotations or changes to the program.
#[derive(Parser, Debug)]
#[command(name = "punctual", version, arg_required_else_help = false, disable_help_subcommand = true, max_term_width = 100, after_long_help = crate::failure::codes())]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    Extract(Extract),
    Show(Show),
    /// Say what of this kernel and these privileges lets which function work
    ///
    /// Looks at everything that observing needs, by trying it, and says what to do about what is missing. The exit code is 0 only if
    /// extraction can run.
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
    #[command(hide = true)]
    Man {
        /// The directory to write them to
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

/// Watch live threads and extract their task models
///
/// Ends when the time is over, when all that is watched has ended, or at SIGINT or SIGTERM, and then always gives its models. Without a
/// target it watches every real-time thread of the machine. Without -o and --json it prints a table.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
pub struct Extract {
    /// Watch for this long (500ms, 10s, 5min, 2h), or until the target has ended
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub duration: Option<Duration>,

    /// Write the timing model to FILE (whole or not at all); - is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub force: bool,

    /// Print the timing model as JSON to standard output
    #[arg(long, conflicts_with = "output")]
    pub json: bool,

    #[command(flatten)]
    pub target: Target,

    /// Watch best-effort threads (SCHED_OTHER and its like) too
    #[arg(long)]
    pub include_best_effort: bool,

    /// Do not begin a new task where the policy, priority or affinity of a thread changes
    #[arg(long)]
    pub merge_transitions: bool,

    /// Most releases that the arrival curves are about, less one
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub curve_horizon: u32,

    /// Most jobs that the WCET curve is about
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub wcet_horizon: u32,

    /// How system calls are traced
    #[arg(long, value_enum, default_value_t = Attach::Auto)]
    pub attach: Attach,

    /// Size of the buffer between kernel and punctual (64KiB to 1GiB; rounded up to a power of two)
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = buffer)]
    pub buffer: u32,

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
/// Prints one line per task, or with --task everything known of one.
#[derive(Args, Debug)]
pub struct Show {
    /// The timing model (*.timing.json); - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Tell everything known of the tasks of this thread (its name or its TID), in words
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    /// Show tasks with fewer than two jobs and best-effort phases too
    #[arg(long, conflicts_with = "task")]
    pub all: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Show what was configured beside what was found; FILE is a JSON array as the demonstration workload prints it with --truth
    #[arg(long, value_name = "FILE", conflicts_with_all = ["task", "all", "json"], value_hint = ValueHint::FilePath)]
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

fn span(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be longer than nothing".into()),
        Ok(span) => Ok(span),
        Err(_) => Err("expected a number with a unit, such as 500ms, 10s, 5min or 2h".into()),
    }
}

fn buffer(text: &str) -> Result<u32, String> {
    let size: bytesize::ByteSize = text.parse().map_err(|_| "expected a size such as 512KiB or 4MiB")?;
    let allowed = (64 << 10)..=(1 << 30);
    u32::try_from(size.as_u64()).ok().filter(|size| allowed.contains(size)).ok_or_else(|| "expected 64KiB to 1GiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_parser_is_consistent() {
        Arguments::command().debug_assert();
    }

    fn extract(line: &str) -> Result<Extract, clap::Error> {
        match Arguments::try_parse_from(line.split(' '))?.command {
            Command::Extract(extract) => Ok(extract),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pids_may_be_listed_in_either_way() {
        assert_eq!(extract("punctual extract --pid 1 2").expect("two").target.pid, [1, 2]);
        assert_eq!(extract("punctual extract --pid 1,2 -q").expect("two").target.pid, [1, 2]);
    }

    #[test]
    fn a_command_keeps_its_own_flags() {
        let plan = extract("punctual extract --for 10s -- ls --for -o").expect("a command");
        assert_eq!(plan.target.command, ["ls", "--for", "-o"]);
        assert_eq!((plan.duration, plan.output), (Some(Duration::from_secs(10)), None));
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
        assert!(span("0s").is_err() && span("10").is_err());
    }
}
