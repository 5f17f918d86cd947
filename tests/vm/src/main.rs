//! The lab: runs the tests on other kernels, in virtual machines (docs/lab.md).

mod bench;
mod bench_latency;
mod bench_tt;
mod channel;
mod elf;
mod error;
mod lock;
mod log;
mod lttng;
mod machine;
mod matrix;
mod programs;
mod repeat;
mod results;
mod root;
mod smoke;
mod suite;
mod table;

use clap::{Parser, Subcommand};
use error::{Error, Result};
use lock::RunFolder;
use machine::Machine;
use std::io::Write;
use std::path::{Path, PathBuf};
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
    /// A name (see `lab kernels`), or the path of a bzImage or Image
    #[arg(long, default_value = "6.1")]
    kernel: String,
    /// One nanosecond per instruction, nothing random
    #[arg(long)]
    icount: bool,
    /// Number of processors; by default two, or one with --icount
    #[arg(long)]
    processors: Option<u32>,
    /// MiB of memory
    #[arg(long, default_value_t = 1024)]
    memory: u64,
    /// More kernel options
    #[arg(long, default_value = "")]
    append: String,
    /// Add LTTng's kernel tracer (kernel 6.1)
    #[arg(long)]
    lttng: bool,
}

/// A suite of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SuiteName {
    /// Observing, recording, reporting: tests/e2e
    EndToEnd,
    /// punctuald and its clients: crates/daemon/tests, tests/daemon
    Daemon,
    /// A little of everything, on the traced kernel, in one machine: what `make test` runs
    Smoke,
}

/// The runs for each kernel.
fn runs_of(named: &[SuiteName], attach: &[suite::Attach]) -> Vec<suite::Tests> {
    let attach = if attach.is_empty() { &[suite::Attach::Fentry, suite::Attach::Tracepoint] } else { attach };
    let named = if named.is_empty() { &[SuiteName::EndToEnd, SuiteName::Daemon] } else { named };
    let runs = named.iter().flat_map(|name| match name {
        SuiteName::EndToEnd => attach.iter().copied().map(suite::Tests::EndToEnd).collect(),
        SuiteName::Daemon => vec![suite::Tests::Daemon],
        SuiteName::Smoke => vec![suite::Tests::Smoke],
    });
    runs.collect()
}

#[derive(Subcommand)]
enum Action {
    /// Run one command in a machine; its output and exit code are the command's
    Run {
        #[command(flatten)]
        machine: Where,
        /// Stop the machine after this many seconds
        #[arg(long, default_value_t = 600)]
        limit: u64,
        /// The command and its arguments, as in: lab run --kernel 6.1 -- punctual doctor
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// Run the end-to-end tests and those of the daemon on each kernel; print a table of results
    Test {
        /// Names or paths of kernels; by default, all that come as packages
        #[arg(long = "kernel", value_delimiter = ' ')]
        kernels: Vec<String>,
        /// Which tests; by default both suites (with --attach, the end-to-end tests)
        #[arg(long = "suite", value_enum)]
        suites: Vec<SuiteName>,
        /// How the end-to-end tests see system calls; by default, both ways
        #[arg(long, value_enum)]
        attach: Vec<suite::Attach>,
        /// Number of processors; with more than one, times mean nothing
        #[arg(long, default_value_t = 1)]
        processors: u32,
        /// MiB of memory of each machine
        #[arg(long, default_value_t = 1024)]
        memory: u64,
        /// Stop a machine after this many seconds
        #[arg(long, default_value_t = 3600)]
        limit: u64,
        /// Parts of names of tests; by default, all tests
        tests: Vec<String>,
    },
    /// Count the instructions that observed events cost; write the table to docs/benchmarks.md
    Bench {
        /// Names or paths of kernels
        #[arg(long = "kernel", value_delimiter = ' ', default_value = "6.1 7.2-rt")]
        kernels: Vec<String>,
        /// Runs of each event's loop; the median counts
        #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..=1000))]
        batches: u32,
        /// MiB of memory of each machine
        #[arg(long, default_value_t = 1024)]
        memory: u64,
        /// Stop a machine after this many seconds
        #[arg(long, default_value_t = 1800)]
        limit: u64,
    },
    /// Measure what observing the scheduling latency costs; write the table to docs/benchmarks.md
    BenchLatency {
        /// A kernel with preemptirq tracepoints
        #[arg(long, default_value = matrix::TRACED)]
        kernel: String,
        /// MiB of memory of the machine
        #[arg(long, default_value_t = 1024)]
        memory: u64,
        /// Stop the machine after this many seconds
        #[arg(long, default_value_t = 1800)]
        limit: u64,
    },
    /// Measure how late the slots of a table begin; write the table to docs/benchmarks.md
    BenchTt {
        /// A kernel with sched_ext
        #[arg(long, default_value = "7.2-rt")]
        kernel: String,
        /// MiB of memory of the machine
        #[arg(long, default_value_t = 1024)]
        memory: u64,
        /// Stop the machine after this many seconds
        #[arg(long, default_value_t = 3600)]
        limit: u64,
    },
    /// Run one command twice with --icount; compare its output and the kernel's log byte by byte
    Repeat {
        #[command(flatten)]
        machine: Where,
        /// Stop the machine after this many seconds
        #[arg(long, default_value_t = 600)]
        limit: u64,
        /// The command; by default, one that prints whatever could differ
        #[arg(trailing_var_arg = true)]
        words: Vec<String>,
    },
    /// Test the daemon's units under systemd, in small Debian systems; or run one command there
    Systemd {
        /// Releases of Debian; by default, 12 and 13
        #[arg(long = "release", value_parser = ["bookworm", "trixie"])]
        releases: Vec<String>,
        /// The DESTDIR of `make install`
        #[arg(long, value_name = "FOLDER")]
        installed: PathBuf,
        /// Stop a machine after this many seconds
        #[arg(long, default_value_t = 600)]
        limit: u64,
        /// The command; by default, the tests
        #[arg(trailing_var_arg = true)]
        words: Vec<String>,
    },
    /// List the kernels, and whether they are available
    Kernels,
    /// Open a shell in a machine (leave it with exit)
    Shell {
        #[command(flatten)]
        machine: Where,
    },
}

/// An empty folder for a run.
fn folder(name: &str) -> Result<RunFolder> {
    RunFolder::take(&programs::folder().join("runs"), name)
}

fn machine<'a>(kernel: &'a matrix::Kernel, at: &'a Where, limit: u64) -> Machine<'a> {
    Machine {
        kernel,
        processors: at.processors.unwrap_or(if at.icount { 1 } else { 2 }),
        memory_mib: at.memory,
        counting: at.icount,
        turn_us: None,
        limit: Duration::from_secs(limit),
        append: &at.append,
    }
}

/// The root for a machine.
fn root(kernel: &matrix::Kernel, at: &Where) -> Result<root::Root> {
    let mut root = programs::root(kernel.arch)?;
    if at.lttng {
        let layer = lttng::layer(kernel);
        root.set_layer(Some(layer.map_err(|missing| Error(format!("{}: {}", at.kernel, missing.reason)))?));
    }
    Ok(root)
}

/// The kernel of that name; an error says why there is none.
fn kernel(name: &str) -> Result<matrix::Kernel> {
    matrix::get(name).map_err(|missing| Error(format!("{name}: {}", missing.reason)))
}

/// The options of a kernel's configuration that make a difference to Punctual.
fn options_of(kernel: &matrix::Kernel) -> String {
    let options = [
        "PREEMPT_RT",
        "PREEMPT_DYNAMIC",
        "DYNAMIC_FTRACE_WITH_DIRECT_CALLS",
        "SCHED_CLASS_EXT",
        "IRQSOFF_TRACER",
    ];
    options.into_iter().filter(|option| kernel.has(option)).collect::<Vec<_>>().join(", ")
}

/// Passes on what a job prints.
fn print(is_error: bool, bytes: &[u8]) -> std::io::Result<()> {
    if is_error {
        std::io::stderr().write_all(bytes)
    } else {
        std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush())
    }
}

/// Reports what went wrong in a machine, and keeps its kernel's log if anything did. The job's exit code.
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

fn exit_code(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_command(at: &Where, limit: u64, words: &[String]) -> Result<ExitCode> {
    let kernel = kernel(&at.kernel)?;
    let mut root = root(&kernel, at)?;
    let folder = folder(&format!("run-{}", std::process::id()))?;
    eprintln!("lab: booting {} …", at.kernel);
    let ended = machine(&kernel, at, limit).run(&mut root, words, &folder, &mut print)?;
    Ok(ExitCode::from(finish(&ended, &folder)))
}

/// Refuses words that are neither names of kernels nor paths: those are mistakes, not kernels that are
/// missing today.
fn check_names(kernels: &[String]) -> Result {
    let Some(name) = kernels.iter().find(|name| !name.contains('/') && !matrix::is_name(name)) else {
        return Ok(());
    };
    match matrix::get(name) {
        Err(missing) => Err(Error(format!("{name}: {}", missing.reason))),
        Ok(_) => Err(Error(format!("{name}: this file is not a kernel's name; give its path with a /"))),
    }
}

fn test(suite: &Suite) -> Result<ExitCode> {
    let report = suite.run()?;
    print!("{}", table::text(&report));
    Ok(exit_code(report.is_good()))
}

/// Releases of Debian, with the kernel that the lab boots for each.
const SYSTEMS: &[(&str, &str)] = &[("bookworm", "6.1"), ("trixie", "6.12-rt")];

fn systemd(releases: &[String], installed: &Path, limit: u64, words: Vec<String>) -> Result<ExitCode> {
    let job = if words.is_empty() { vec!["sh".to_owned(), "/lab/systemd.sh".to_owned()] } else { words };
    let is_asked = |release: &str| releases.is_empty() || releases.iter().any(|name| name == release);
    let mut is_good = true;
    for (release, name) in SYSTEMS.iter().filter(|(release, _)| is_asked(release)) {
        let kernel = kernel(name)?;
        let mut root = programs::system(release, installed)?;
        eprintln!("lab: booting {release} with {name} …");
        let machine = Machine {
            kernel: &kernel,
            processors: 1,
            memory_mib: 2048,
            counting: true,
            turn_us: None,
            limit: Duration::from_secs(limit),
            append: "systemd.log_target=kmsg",
        };
        let folder = folder(&format!("systemd-{release}"))?;
        let ended = machine.run_beside_systemd(&mut root, &job, &folder, &mut print)?;
        is_good &= finish(&ended, &folder) == 0;
    }
    Ok(exit_code(is_good))
}

fn list_kernels() {
    for name in matrix::names().chain([matrix::TRACED]) {
        match matrix::get(name) {
            Ok(kernel) => {
                println!("{name:15}{}\n{:15}{}", options_of(&kernel), "", kernel.image.display());
            }
            Err(missing) => println!("{name:15}missing: {}", missing.reason),
        }
    }
}

fn shell(at: &Where) -> Result {
    let kernel = kernel(&at.kernel)?;
    let mut root = root(&kernel, at)?;
    let folder = folder(&format!("shell-{}", std::process::id()))?;
    machine(&kernel, at, 0).shell(&mut root, &["bash".into(), "-i".into()], &folder)
}

fn run() -> Result<ExitCode> {
    match Arguments::parse().command {
        Action::Run { machine: at, limit, words } => run_command(&at, limit, &words),
        Action::Test { mut kernels, mut suites, attach, processors, memory, limit, tests } => {
            check_names(&kernels)?;
            if kernels.is_empty() && suites == [SuiteName::Smoke] {
                kernels.push(matrix::TRACED.to_owned());
            } else if kernels.is_empty() {
                kernels = matrix::names().map(str::to_owned).collect();
            }
            if suites.is_empty() && !attach.is_empty() {
                suites.push(SuiteName::EndToEnd);
            }
            let suite = Suite {
                kernels,
                suites: runs_of(&suites, &attach),
                tests,
                memory_mib: memory,
                processors: processors.max(1),
                limit: Duration::from_secs(limit),
            };
            test(&suite)
        }
        Action::Bench { kernels, batches, memory, limit } => {
            bench::run(&kernels, batches, memory, Duration::from_secs(limit))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::BenchLatency { kernel, memory, limit } => {
            bench_latency::run(&kernel, memory, Duration::from_secs(limit))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::BenchTt { kernel, memory, limit } => {
            bench_tt::run(&kernel, memory, Duration::from_secs(limit))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Repeat { machine: mut at, limit, words } => {
            at.icount = true;
            let kernel = kernel(&at.kernel)?;
            repeat::check(&machine(&kernel, &at, limit), &mut root(&kernel, &at)?, &words)
        }
        Action::Systemd { releases, installed, limit, words } => systemd(&releases, &installed, limit, words),
        Action::Kernels => {
            list_kernels();
            Ok(ExitCode::SUCCESS)
        }
        Action::Shell { machine: at } => {
            shell(&at)?;
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
