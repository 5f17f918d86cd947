//! The lab: runs what is to be tested on other kernels, in virtual machines. ARCHITECTURE.md, "The lab", says
//! how.

mod bench;
mod channel;
mod elf;
mod error;
mod log;
mod machine;
mod matrix;
mod programs;
mod repeat;
mod results;
mod root;
mod suite;
mod table;

use clap::{Parser, Subcommand};
use error::{Error, Result, cannot};
use machine::Machine;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use suite::Suite;

#[derive(Parser)]
#[command(name = "lab", about = "Runs Punctual on other kernels, in virtual machines", version)]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(clap::Args)]
struct Where {
    /// A name of the matrix (see `lab kernels`), or the path of a bzImage or Image
    #[arg(long, default_value = "6.1")]
    kernel: String,
    /// One processor on which an instruction takes a nanosecond, and nothing is random
    #[arg(long)]
    icount: bool,
    /// How many processors (one with --icount)
    #[arg(long, default_value_t = 2)]
    processors: u32,
    /// MiB of memory
    #[arg(long, default_value_t = 1024)]
    memory: u64,
    /// Further options of the kernel
    #[arg(long, default_value = "")]
    append: String,
}

/// Tests that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SuiteName {
    /// Observing, recording, reporting: tests/e2e
    EndToEnd,
    /// punctuald and its clients: crates/daemon/tests, tests/daemon
    Daemon,
}

/// The runs that are meant, on each kernel.
fn runs_of(named: &[SuiteName], attach: &[suite::Attach]) -> Vec<suite::Tests> {
    let attach = if attach.is_empty() { &[suite::Attach::Fentry, suite::Attach::Tracepoint] } else { attach };
    let named = if named.is_empty() { &[SuiteName::EndToEnd, SuiteName::Daemon] } else { named };
    let runs = named.iter().flat_map(|name| match name {
        SuiteName::EndToEnd => attach.iter().copied().map(suite::Tests::EndToEnd).collect(),
        SuiteName::Daemon => vec![suite::Tests::Daemon],
    });
    runs.collect()
}

#[derive(Subcommand)]
enum Action {
    /// Run one command in a machine; its output and exit code are the command's
    Run {
        #[command(flatten)]
        machine: Where,
        /// End the machine after so many seconds
        #[arg(long, default_value_t = 600)]
        limit: u64,
        /// The command and its arguments, as in: lab run --kernel 6.1 -- punctual doctor
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// The end-to-end tests and those of the daemon on each kernel; prints a table kernel × test
    Test {
        /// Names of the matrix, or paths of images; all of the matrix, if none is given
        #[arg(long = "kernel", value_delimiter = ' ')]
        kernels: Vec<String>,
        /// Which tests; both, if none is given (the end-to-end tests, if --attach is)
        #[arg(long = "suite", value_enum)]
        suites: Vec<SuiteName>,
        /// How the end-to-end tests are to see system calls; both ways, if none is given
        #[arg(long, value_enum)]
        attach: Vec<suite::Attach>,
        /// How many processors; of more than one, times mean nothing, and QEMU may lose its way where
        /// functions are traced or kernels are new
        #[arg(long, default_value_t = 1)]
        processors: u32,
        /// MiB of memory of each machine
        #[arg(long, default_value_t = 1024)]
        memory: u64,
        /// End a machine after so many seconds
        #[arg(long, default_value_t = 3600)]
        limit: u64,
        /// Do not fail where no kernel at all is to be had
        #[arg(long)]
        missing_is_fine: bool,
        /// Tests whose name contains one of these; all, if none is given
        tests: Vec<String>,
    },
    /// Count the instructions that observed events cost; puts the table into docs/benchmarks.md
    Bench {
        /// Names of the matrix, or paths of images
        #[arg(long = "kernel", value_delimiter = ' ', default_value = "6.1 7.2-rt")]
        kernels: Vec<String>,
        /// How often each event's loop is run, of which the median counts
        #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..=1000))]
        batches: u32,
        /// MiB of memory of each machine
        #[arg(long, default_value_t = 1024)]
        memory: u64,
        /// End a machine after so many seconds
        #[arg(long, default_value_t = 1800)]
        limit: u64,
    },
    /// Run one command twice with --icount, and compare every byte of its output and of the kernel's log
    Repeat {
        #[command(flatten)]
        machine: Where,
        /// End the machine after so many seconds
        #[arg(long, default_value_t = 600)]
        limit: u64,
        /// The command; one that asks for whatever may differ, if none is given
        #[arg(trailing_var_arg = true)]
        words: Vec<String>,
    },
    /// The daemon's units under systemd, in small systems of Debian; or one command there, when systemd has
    /// started it
    Systemd {
        /// Debian's release; 12 and 13, if none is given
        #[arg(long = "release", value_parser = ["bookworm", "trixie"])]
        releases: Vec<String>,
        /// What `make install DESTDIR=FOLDER` has installed
        #[arg(long, value_name = "FOLDER")]
        installed: PathBuf,
        /// End a machine after so many seconds
        #[arg(long, default_value_t = 600)]
        limit: u64,
        /// The command; the tests, if none is given
        #[arg(trailing_var_arg = true)]
        words: Vec<String>,
    },
    /// The kernels, and whether they are here
    Kernels,
    /// A shell in a machine (leave it with exit)
    Shell {
        #[command(flatten)]
        machine: Where,
    },
}

/// A folder of its own for a run.
fn folder(name: &str) -> Result<PathBuf> {
    let folder = programs::folder().join("runs").join(name);
    let made = std::fs::remove_dir_all(&folder)
        .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) });
    made.and_then(|()| std::fs::create_dir_all(&folder)).map_err(|error| cannot("create", &folder, error))?;
    Ok(folder)
}

fn machine<'a>(kernel: &'a matrix::Kernel, at: &'a Where, limit: u64) -> Machine<'a> {
    Machine {
        kernel,
        processors: at.processors,
        memory_mib: at.memory,
        counting: at.icount,
        limit: Duration::from_secs(limit),
        append: &at.append,
    }
}

/// What of a kernel's configuration makes a difference to Punctual.
fn what_it_has(kernel: &matrix::Kernel) -> String {
    let options = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "DYNAMIC_FTRACE_WITH_DIRECT_CALLS", "SCHED_CLASS_EXT"];
    options.into_iter().filter(|option| kernel.has(option)).collect::<Vec<_>>().join(", ")
}

/// What a job prints, to where it belongs.
fn print(is_error: bool, bytes: &[u8]) -> std::io::Result<()> {
    if is_error {
        std::io::stderr().write_all(bytes)
    } else {
        std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush())
    }
}

/// Tells what was wrong with a machine, and keeps its kernel's log if anything was. The job's exit code.
fn finish(ended: &machine::Ended, folder: &std::path::Path) -> u8 {
    for fault in ended.faults() {
        eprintln!("lab: {fault}");
    }
    if ended.faults().is_empty() {
        let _ = std::fs::remove_dir_all(folder);
    } else {
        eprintln!("lab: the kernel's log is in {}", folder.join("kernel.log").display());
    }
    ended.code()
}

/// Releases of Debian, and the kernel of each that the lab has.
const SYSTEMS: &[(&str, &str)] = &[("bookworm", "6.1"), ("trixie", "6.12-rt")];

fn run() -> Result<ExitCode> {
    match Arguments::parse().command {
        Action::Run { machine: at, limit, words } => {
            let kernel = matrix::get(&at.kernel)
                .map_err(|missing| Error(format!("{}: {}", at.kernel, missing.reason)))?;
            let mut root = programs::root(kernel.arch)?;
            let folder = folder(&format!("run-{}", std::process::id()))?;
            eprintln!("lab: booting {} …", at.kernel);
            let ended = machine(&kernel, &at, limit).run(&mut root, &words, &folder, &mut print)?;
            Ok(ExitCode::from(finish(&ended, &folder)))
        }
        Action::Test { kernels, mut suites, attach, processors, memory, limit, missing_is_fine, tests } => {
            // A name that is no kernel's is a mistake, not a kernel that cannot be had today.
            if let Some(name) = kernels
                .iter()
                .find(|name| !name.contains('/') && !matrix::names().any(|known| known == name.as_str()))
            {
                let reason = matrix::get(name).err().map_or_else(
                    || "it is there, but is no kernel's name: give its path with a /".into(),
                    |missing| missing.reason,
                );
                return Err(Error(format!("{name}: {reason}")));
            }
            if suites.is_empty() && !attach.is_empty() {
                suites.push(SuiteName::EndToEnd);
            }
            let suite = Suite {
                kernels: if kernels.is_empty() {
                    matrix::names().map(str::to_owned).collect()
                } else {
                    kernels
                },
                suites: runs_of(&suites, &attach),
                tests,
                memory_mib: memory,
                processors: processors.max(1),
                limit: Duration::from_secs(limit),
            };
            let report = suite.run()?;
            print!("{}", table::text(&report));
            let fine = report.is_good() || (missing_is_fine && report.runs.is_empty());
            Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Action::Bench { kernels, batches, memory, limit } => {
            bench::run(&kernels, batches, memory, Duration::from_secs(limit))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Repeat { machine: mut at, limit, words } => {
            at.icount = true;
            let kernel = matrix::get(&at.kernel)
                .map_err(|missing| Error(format!("{}: {}", at.kernel, missing.reason)))?;
            repeat::check(&machine(&kernel, &at, limit), &mut programs::root(kernel.arch)?, &words)
        }
        Action::Systemd { releases, installed, limit, words } => {
            let job =
                if words.is_empty() { vec!["sh".to_owned(), "/lab/systemd.sh".to_owned()] } else { words };
            let mut fine = true;
            for (release, kernel) in SYSTEMS
                .iter()
                .filter(|(release, _)| releases.is_empty() || releases.iter().any(|name| name == release))
            {
                let kernel =
                    matrix::get(kernel).map_err(|missing| Error(format!("{kernel}: {}", missing.reason)))?;
                let mut root = programs::system(release, &installed)?;
                eprintln!("lab: booting {release} with {} …", kernel.name);
                let append = "systemd.log_target=kmsg";
                let limit = Duration::from_secs(limit);
                let machine = Machine {
                    kernel: &kernel,
                    processors: 1,
                    memory_mib: 2048,
                    counting: true,
                    limit,
                    append,
                };
                let folder = folder(&format!("systemd-{release}"))?;
                let ended = machine.run_beside_systemd(&mut root, &job, &folder, &mut print)?;
                fine &= finish(&ended, &folder) == 0;
            }
            Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Action::Kernels => {
            for name in matrix::names() {
                match matrix::get(name) {
                    Ok(kernel) => {
                        println!("{name:12}{}\n{:12}{}", what_it_has(&kernel), "", kernel.image.display())
                    }
                    Err(missing) => println!("{name:12}missing: {}", missing.reason),
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        Action::Shell { machine: at } => {
            let kernel = matrix::get(&at.kernel)
                .map_err(|missing| Error(format!("{}: {}", at.kernel, missing.reason)))?;
            let mut root = programs::root(kernel.arch)?;
            let folder = folder(&format!("shell-{}", std::process::id()))?;
            machine(&kernel, &at, 0).shell(&mut root, &["bash".into(), "-i".into()], &folder)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("lab: {error}");
        ExitCode::from(125)
    })
}
