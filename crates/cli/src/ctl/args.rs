//! The command line of `punctual ctl`.

use super::declared::Declared;
use clap::{Args, Subcommand, ValueHint};
use punctual_model::Percent;
use punctual_protocol::parameter;
use punctual_workflow::specs::Quantile;
use std::ffi::OsString;
use std::path::PathBuf;

/// Ask punctuald what is admitted, and run commands under it
///
/// Programs declare their timing needs to the daemon punctuald, which admits and schedules them. These
/// commands show its state, and run programs under it that do not use its library.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Ctl {
    /// The daemon's socket [default: $PUNCTUALD_SOCKET, else /run/punctual/io.punctual.Scheduler1]
    #[arg(long, global = true, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Show the daemon's status and its clients
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List your specs; as root, those of all users
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show how threads keep to their runtimes: jobs, worst cost, overruns, misses
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print OpenMetrics, for the textfile collector of Prometheus' node exporter and the like
        #[arg(long, conflicts_with = "json")]
        openmetrics: bool,
    },
    /// List the plugins, in the order in which they are asked, and the load of their processors
    Plugins {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Release specs: their threads go back to how they were scheduled before
    Release {
        /// Their numbers, as punctual ctl list shows them
        #[arg(value_name = "ID", required = true)]
        specs: Vec<u64>,
    },
    Run(Box<Run>),
    /// Schedule the main process of a systemd unit as its section [X-Punctual] says
    ///
    /// For ExecStartPost= of a service; the generator that is installed adds it to each unit with that
    /// section. The unit fails if the spec is refused, unless Required=no.
    Unit {
        /// The unit
        #[arg(value_name = "UNIT")]
        name: String,
    },
}

/// Parameters declared by hand. Options about a model exclude each of them, so that clap does not ask for a
/// model in vain.
const DECLARED: [&str; 8] =
    ["period", "runtime", "desired_runtime", "deadline", "offset", "blocking", "priority", "nice"];

/// Run a command under admitted specs
///
/// With --period, --priority and the like, one spec schedules COMMAND's first thread; threads and processes
/// that it starts are not affected. COMMAND does not run unless the spec is admitted.
///
/// With --model, each thread of COMMAND and of its child processes gets a spec of its own if the timing model
/// has a thread of the same name. Period and runtime come from the task of that thread with the most jobs
/// (real-time tasks first). If the task was sometimes released several times in a period, the runtime covers
/// that many jobs. One exceptionally long job can make a program inadmissible: --runtime-quantile excludes
/// such jobs. All specs are admitted before COMMAND starts. Threads of the same name get their specs in the
/// order in which they start. Threads without a spec are listed and keep their scheduling. If the program is
/// not real-time yet, make its model with punctual extract --include-best-effort -o FILE -- COMMAND.
///
/// Ends with COMMAND's exit code, or 128 and the number of the signal that ended it. With --model, signals
/// are passed on to it.
#[derive(Args, Debug)]
#[command(override_usage = "punctual ctl run [OPTIONS] --model FILE -- COMMAND...
       punctual ctl run [OPTIONS] --period TIME --runtime TIME ... -- COMMAND...")]
#[command(group = clap::ArgGroup::new("needs").required(true).multiple(true)
    .arg("model").args(DECLARED))]
pub struct Run {
    #[command(flatten)]
    pub declared: Declared,

    #[arg(long, value_name = "NAME", help = parameter("plugin").help())]
    pub plugin: Option<String>,

    /// The spec's name in lists [default: the command's name]
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    pub name: Option<String>,

    /// Take periods and runtimes of the threads from this timing model (*.timing.json), or from this contract
    /// (*.toml), whose deadlines are declared, too; extract a model with --include-best-effort if they are
    /// not real-time yet
    #[arg(long, value_name = "FILE", conflicts_with_all = DECLARED, value_hint = ValueHint::FilePath)]
    pub model: Option<PathBuf>,

    /// Take this percentile of the observed costs as the runtime, or the next higher one that the model has
    /// (50, 90, 99, 99.9, 100). Jobs that take longer are not covered by any guarantee
    #[arg(long, value_name = "PERCENT", value_parser = quantile, default_value = "100%")]
    #[arg(requires = "model", conflicts_with_all = DECLARED)]
    pub runtime_quantile: Quantile,

    /// Percentage added to each runtime that was observed; what a contract says is taken as it is
    #[arg(long, value_name = "PERCENT", value_parser = crate::values::percent, default_value = "10%")]
    #[arg(requires = "model", conflicts_with_all = DECLARED)]
    pub margin: Percent,

    /// Only threads of the model whose name matches GLOB (*, ? and [...] as in a shell); repeatable
    #[arg(long, value_name = "GLOB", requires = "model", conflicts_with_all = DECLARED)]
    pub thread: Vec<String>,

    /// Exclude threads of the model whose name matches GLOB; repeatable
    #[arg(long, value_name = "GLOB", requires = "model", conflicts_with_all = DECLARED)]
    pub without: Vec<String>,

    /// Exclude threads with fewer jobs in the model: they ended soon, or were not observed for long enough
    #[arg(long, value_name = "N", default_value_t = 10, requires = "model", conflicts_with_all = DECLARED)]
    pub min_jobs: u64,

    /// Also declare the real-time priorities that the threads have in the model, for plugins that schedule by
    /// declared priorities (FP, RR)
    #[arg(long, requires = "model", conflicts_with_all = DECLARED)]
    pub keep_priorities: bool,

    /// Let Polkit ask you, where punctuald's rules leave the request to it [default: on a terminal]
    #[arg(long)]
    pub interactive: bool,

    /// Print warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,

    /// What to run
    #[arg(last = true, value_name = "COMMAND", required = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

fn quantile(text: &str) -> Result<Quantile, String> {
    let expected = || "expected a percentage above 0% and up to 100%, such as 99.9%".to_owned();
    let number = text.strip_suffix('%').unwrap_or(text);
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 3 {
        return Err(expected());
    }
    let thousandths = format!("{whole}{part:0<3}").parse().map_err(|_| expected())?;
    Some(Quantile(thousandths)).filter(|it| (1..=Quantile::ALL.0).contains(&it.0)).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command as Any};
    use crate::values::percent;
    use clap::Parser;
    use punctual_model::Duration;

    fn run(line: &str) -> Result<Run, clap::Error> {
        match Arguments::try_parse_from(line.split(' '))?.command {
            Any::Ctl(Ctl { command: Command::Run(run), .. }) => Ok(*run),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn specs_come_from_options_or_from_a_model() {
        let plan = run("punctual ctl run --period 10ms --runtime 2ms -- sleep --period 1").expect("needs");
        let Declared { period, runtime, .. } = plan.declared;
        assert_eq!((period, runtime), (Some(Duration::from_ms(10)), Some(Duration::from_ms(2))));
        assert_eq!(plan.command, ["sleep", "--period", "1"]);
        assert_eq!(
            run("punctual ctl run --model a.timing.json --margin 25% -- a").expect("a model").margin,
            Percent::whole(25)
        );
        let plan = run("punctual ctl run --model a.timing.json --thread b --thread c --without d -- a")
            .expect("threads");
        assert_eq!((plan.thread.len(), plan.without.len(), plan.min_jobs), (2, 1, 10));
        for option in [
            "--thread b",
            "--without b",
            "--min-jobs 3",
            "--margin 3%",
            "--runtime-quantile 99%",
            "--keep-priorities",
        ] {
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
    fn margins_and_quantiles_have_bounds() {
        for (text, thousandths) in [("99.9%", 99_900), ("100", 100_000), ("50%", 50_000), ("0.001%", 1)] {
            assert_eq!(quantile(text), Ok(Quantile(thousandths)));
        }
        for wrong in ["0%", "100.001%", "-1%", "99.9999%", "99,9%", "%", "", ".5%", "1e2", "p99"] {
            assert!(quantile(wrong).is_err(), "{wrong}");
        }
        assert!(
            percent("10").is_ok()
                && percent("1001%").is_err()
                && percent("-5%").is_err()
                && percent("1.5%").is_ok()
                && percent("1.5555%").is_err()
        );
    }
}
