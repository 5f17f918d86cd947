//! `punctual contract` and `punctual check`

use super::{Range, Threads, examples};
use crate::values;
use clap::{Args, ValueHint};
use punctual_model::Percent;
use punctual_workflow::Quantile;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Write a contract from what was observed
///
/// For each thread name, the contract has the period, and limits for jitter (or the least time between
/// releases), processor time, response time and suspension; for each chain of a dataflow program, limits
/// for its times; for each processor, one for its scheduling latency. Limits are the greatest observed
/// values plus a margin. As further runs have other outliers, the contract also lets a share of the jobs
/// exceed these limits, and limits the processor time of nearly all jobs and the median time between
/// releases, with half of the margin. It is a TOML file with comments, to be edited (docs/contracts.md).
/// punctual check, watch, prove and table take it.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual contract robot.timing.json -o robot.contract.toml
  punctual contract mon.recording tue.recording wed.timing.json    limits for all three
  punctual contract robot.timing.json --quantile 99%    ignores the longest 1 % of jobs
  punctual contract robot.timing.json --margin 0% --thread 'control*'    the observed values; no job may \
     exceed them"))]
pub struct Contract {
    /// Timing models (*.timing.json; - is standard input) and recordings of runs of one program
    #[arg(value_name = "INPUT", required = true, value_hint = ValueHint::AnyPath)]
    pub inputs: Vec<PathBuf>,

    /// Percentage added to what was observed; periods stay as they are
    #[arg(long, value_name = "PERCENT", value_parser = values::percent, default_value = "20%")]
    pub margin: Percent,

    /// Take limits for processor time, response time and jitter from this quantile of the observed jobs, not
    /// from the greatest values: 50%, 90%, 99% or 99.9%
    #[arg(long, value_name = "PERCENT", value_parser = values::quantile)]
    pub quantile: Option<Quantile>,

    #[command(flatten)]
    pub threads: Threads,

    /// Write the contract to FILE [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    /// Print warnings and errors only on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// Check recordings, traces and timing models against a contract
///
/// Prints for each input the terms that were not kept: how often, how far, and the first job. Only what is
/// certain is a violation: lost records and unknown release times never make one. Timing models are checked
/// by their curves and greatest values. The exit code is 8 if there is a violation.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual check robot.contract.toml monday.recording
  punctual check robot.contract.toml mon.recording tue.timing.json    each for itself
  punctual check v1.timing.json v2.recording --all                    a release against the one before
  punctual check robot.contract.toml run.data --junit report.xml      a perf trace, for a build server"))]
pub struct Check {
    /// The contract (*.toml), or a timing model as one; - is standard input
    #[arg(value_name = "CONTRACT", value_hint = ValueHint::FilePath)]
    pub contract: PathBuf,

    /// Recordings, traces of dataflow programs or of what punctual import takes, or timing models
    #[arg(value_name = "INPUT", required = true, value_hint = ValueHint::AnyPath)]
    pub inputs: Vec<PathBuf>,

    /// Show every term of the contract and its worst value, not just those that were broken
    #[arg(long)]
    pub all: bool,

    /// Compare responses with the bounds in FILE, too, which punctual prove --json printed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub bounds: Option<PathBuf>,

    /// Also write JUnit XML to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "junit")]
    pub force: bool,

    #[command(flatten)]
    pub range: Range,

    /// Number of workers; it does not change the result [default: one per processor]
    #[arg(short, long, value_name = "N", value_parser = values::workers)]
    pub jobs: Option<NonZeroUsize>,

    /// Print JSON (docs/contracts.md) instead of tables
    #[arg(long, conflicts_with = "all")]
    pub json: bool,

    /// Print warnings and errors only on standard error
    #[arg(short, long)]
    pub quiet: bool,
}
