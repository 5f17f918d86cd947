//! `punctual summarize` and `punctual merge`.

use super::{Models, Range, Results, Threads, examples};
use crate::values;
use clap::{Args, ValueHint};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Summarize recordings, for merging with those of other runs and machines
///
/// A summary holds what the timing models of several runs need, in some kilobytes for each task: punctual
/// merge makes one timing model of any number of summaries. It does not matter how recordings are spread
/// over summaries.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual summarize monday.recording -o monday.summary
  punctual summarize week-*.recording -o week.summary
  punctual merge monday.summary week.summary -o fleet.timing.json"))]
pub struct Summarize {
    /// Recordings: folders written by punctual record or punctual import
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub recordings: Vec<PathBuf>,

    /// Write the summary to FILE; - is standard output
    #[arg(short, long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,

    /// Also explain the jobs that took longer than their period; needs recordings with --detail switches
    /// --all-threads
    #[arg(long)]
    pub causes: bool,

    #[command(flatten)]
    pub threads: Threads,

    #[command(flatten)]
    pub models: Models,

    #[command(flatten)]
    pub range: Range,

    /// Number of workers; it does not change the result [default: one per processor]
    #[arg(short, long, value_name = "N", value_parser = values::workers)]
    pub jobs: Option<NonZeroUsize>,

    /// Print warnings and errors only on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// Merge summaries into a timing model of all runs together
///
/// The same threads of several runs become one task, whose models allow everything that any run did. The
/// result is the same for any order and any grouping of the runs; docs/fleets.md says what counts as the same
/// thread. With -o FILE.summary the result is a summary again.
#[derive(Args, Debug)]
#[command(after_long_help = examples(
    "  punctual merge *.summary -o fleet.timing.json
  punctual merge *.summary --blame                   which run set each extreme
  punctual merge rack1/*.summary -o rack1.summary    a part of the fleet"))]
pub struct Merge {
    /// Summaries
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub summaries: Vec<PathBuf>,

    #[command(flatten)]
    pub results: Results,

    /// Take all runs to be of one program: threads whose commands are unknown (imported traces) are the same
    /// task if they agree in the rest
    #[arg(long)]
    pub same_program: bool,

    /// Print which run each extreme is from, in place of the table of tasks
    #[arg(long, conflicts_with = "json")]
    pub blame: bool,

    /// Print warnings and errors only on standard error, and no table with -o
    #[arg(short, long)]
    pub quiet: bool,
}
