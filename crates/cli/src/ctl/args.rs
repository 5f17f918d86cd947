//! The command line of `punctual ctl`.

use clap::{Args, Subcommand, ValueHint};
use punctual_model::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

/// Ask punctuald: what is admitted, and have commands scheduled
///
/// Programs declare their timing needs to the daemon punctuald, which admits and schedules them. This looks
/// at what it does, and does the same for programs that know nothing of it.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes(), arg_required_else_help = false)]
pub struct Ctl {
    /// The daemon's socket [default: $PUNCTUALD_SOCKET, else /run/punctual/io.punctual.Scheduler1]
    #[arg(long, global = true, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Say how the daemon is, and who its clients are
    #[command(after_long_help = crate::failure::codes())]
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the specs of this user; as root, those of all
    #[command(after_long_help = crate::failure::codes())]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the plugins, in the order in which they are asked, and what their processors carry
    #[command(after_long_help = crate::failure::codes())]
    Plugins {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Release specs: their threads go back to how they were scheduled before
    #[command(after_long_help = crate::failure::codes())]
    Release {
        /// Their numbers, as punctual ctl list shows them
        #[arg(value_name = "ID", required = true)]
        specs: Vec<u64>,
    },
    Run(Box<Run>),
}

/// What is declared by hand. Options that speak of a model exclude each by itself: clap asks for no model
/// where there cannot be one.
const DECLARED: [&str; 5] = ["period", "runtime", "desired_runtime", "deadline", "priority"];

/// Run a command under admitted specs
///
/// With --period, --priority and the like, COMMAND's first thread is scheduled by one spec; threads and
/// processes that it starts are not. Nothing is run that is not admitted.
///
/// With --model, each thread of COMMAND (and of the processes that it starts) that has the name of one in the
/// timing model is scheduled by a spec of its own, with the period and the runtime of the task that tells
/// most of that thread: of those in which it was real-time, or else of all, the one with the most jobs; of a
/// task that was sometimes released more than once in a period, the runtime is that of as many jobs. All
/// specs are admitted before COMMAND is started. Threads of one name get theirs in the order in which they
/// start. What gets no spec is told, and stays as it is. The model of a program that is not real-time yet
/// comes from punctual extract --include-best-effort -o FILE -- COMMAND: without that option a model has just
/// the threads that were real-time already.
///
/// Ends with COMMAND's exit code, or 128 and the number of the signal that ended it. With --model, signals
/// are passed on to it.
#[derive(Args, Debug)]
#[command(after_long_help = crate::failure::codes())]
#[command(group = clap::ArgGroup::new("needs").required(true).multiple(true)
    .arg("model").args(DECLARED))]
pub struct Run {
    /// T: the time between two jobs (10ms)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub period: Option<Duration>,

    /// Q: what a job takes at most, in processor time (2ms)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub runtime: Option<Duration>,

    /// Q^d: what a job would like to have; what is accepted lies between
    #[arg(long, value_name = "TIME", value_parser = time, requires = "runtime")]
    pub desired_runtime: Option<Duration>,

    /// D: how long after its release a job has to be done [default: the period]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub deadline: Option<Duration>,

    /// P: greater is more urgent, as with chrt(1)
    #[arg(long, value_name = "N")]
    pub priority: Option<u32>,

    /// Ask this plugin alone
    #[arg(long, value_name = "NAME")]
    pub plugin: Option<String>,

    /// Have it taken even if the admission test says no, where the rules allow that
    #[arg(long)]
    pub ignore_admission: bool,

    /// What the spec is called in lists [default: the command's name]
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    pub name: Option<String>,

    /// Take periods and runtimes of the threads from this timing model (*.timing.json); extract it with
    /// --include-best-effort if they are not real-time yet
    #[arg(long, value_name = "FILE", conflicts_with_all = DECLARED, value_hint = ValueHint::FilePath)]
    pub model: Option<PathBuf>,

    /// How much more than was observed each runtime is to be, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "10%", requires = "model", conflicts_with_all = DECLARED)]
    pub margin: u32,

    /// Just the threads of this name, of those in the model; may be given several times
    #[arg(long, value_name = "NAME", requires = "model", conflicts_with_all = DECLARED)]
    pub thread: Vec<String>,

    /// Not the threads of this name; may be given several times
    #[arg(long, value_name = "NAME", requires = "model", conflicts_with_all = DECLARED)]
    pub without: Vec<String>,

    /// Leave out threads of which fewer jobs were seen: they came and went, or were not observed for long
    /// enough
    #[arg(long, value_name = "N", default_value_t = 10, requires = "model", conflicts_with_all = DECLARED)]
    pub min_jobs: u64,

    /// Show no hints; warnings stay
    #[arg(short, long)]
    pub quiet: bool,

    /// What to run
    #[arg(last = true, value_name = "COMMAND", required = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Zero is for the daemon to refuse: it says which bound that breaks.
fn time(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text)
        .map_err(|_| "expected a number with a unit, such as 10ms, 250us or 1s")?;
    let ns = u64::try_from(span.as_nanos()).map_err(|_| "expected less than 584 years")?;
    Ok(Duration::from_ns(ns))
}

fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    number.parse().ok().filter(|percent| *percent <= 1_000).ok_or_else(|| "expected 0% to 1000%".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command as Any};
    use clap::Parser;

    fn run(line: &str) -> Result<Run, clap::Error> {
        match Arguments::try_parse_from(line.split(' '))?.command {
            Any::Ctl(Ctl { command: Command::Run(run), .. }) => Ok(*run),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn needs_come_from_options_or_from_a_model() {
        let plan = run("punctual ctl run --period 10ms --runtime 2ms -- sleep --period 1").expect("needs");
        assert_eq!((plan.period, plan.runtime), (Some(Duration::from_ms(10)), Some(Duration::from_ms(2))));
        assert_eq!(plan.command, ["sleep", "--period", "1"]);
        assert_eq!(
            run("punctual ctl run --model a.timing.json --margin 25% -- a").expect("a model").margin,
            25
        );
        let plan = run("punctual ctl run --model a.timing.json --thread b --thread c --without d -- a")
            .expect("threads");
        assert_eq!((plan.thread.len(), plan.without.len(), plan.min_jobs), (2, 1, 10));
        for option in ["--thread b", "--without b", "--min-jobs 3", "--margin 3%"] {
            assert!(
                run(&format!("punctual ctl run --period 1ms {option} -- a")).is_err(),
                "{option} is about a model"
            );
        }
        assert!(run("punctual ctl run -- a").is_err(), "nothing is declared");
        assert!(run("punctual ctl run --plugin EDF -- a").is_err(), "a plugin alone declares nothing");
        assert!(run("punctual ctl run --model a --period 1ms -- a").is_err());
        assert!(run("punctual ctl run --period 1ms").is_err(), "nothing to run");
    }

    #[test]
    fn times_and_margins_have_bounds() {
        assert_eq!(time("250us"), Ok(Duration::from_us(250)));
        assert_eq!(time("0s"), Ok(Duration::ZERO));
        assert!(time("10").is_err() && time("600000000000000h").is_err() && time("-1ms").is_err());
        assert!(
            percent("10").is_ok()
                && percent("1001%").is_err()
                && percent("-5%").is_err()
                && percent("1.5%").is_err()
        );
    }
}
