//! What was observed to contracts.

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::model_file::{display_name, read_model};
use crate::monitor::Monitor;
use crate::recording::TimeRange;
use crate::replay::{self, processors};
use punctual_conformance::{Contract, Limits, Margin, Observed, Quantile};
use punctual_model::{Percent, TimingModel};
use punctual_report::{counted, visible};
use std::path::{Path, PathBuf};

/// What a contract is made of.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Timing models and recordings of runs of one program; `-` is a timing model on standard input.
    pub inputs: Vec<PathBuf>,
    /// Percent added to what was observed; the rest is rounded up, unless it is zero.
    pub margin: Percent,
    /// Which observed values limits cover; if absent, all.
    pub quantile: Option<Quantile>,
    /// Which threads.
    pub threads: ThreadFilter,
}

/// Names of threads that are listed in a message at most.
const MOST_NAMES: usize = 10;

/// Makes a contract that covers every input.
///
/// # Errors
/// If there is nothing to agree on, or a quantile without a margin.
pub fn contract(options: &Options, monitor: &dyn Monitor) -> Result<Contract> {
    let margin = if options.margin.is_zero() { Margin::None } else { Margin::Percent(options.margin) };
    if margin == Margin::None && options.quantile.is_some() {
        return Err(Error::usage("--quantile needs a margin: with --margin 0%, no job may exceed a limit"));
    }
    let runs = options.inputs.iter().map(|path| run(path, monitor)).collect::<Result<Vec<_>>>()?;
    let names: Vec<_> = options.inputs.iter().map(|path| display_name(path)).collect();
    let all = names.join(", ");
    let threads = runs.iter().flat_map(TimingModel::tasks).map(|task| task.name.as_str());
    if let Some(pattern) = options.threads.unmatched(threads) {
        return Err(Error::target(format!("no thread of {all} matches '{pattern}'")));
    }
    let chosen = |name: &str| options.threads.matches(name);
    let limits = Limits { margin, quantile: options.quantile };
    let Observed { contract, left_out, missing, without_period, awake } =
        Contract::observed(&runs, limits, &chosen);
    if contract.tasks.is_empty() && contract.chains.is_empty() && contract.latencies.is_empty() {
        return Err(Error::target(format!("{all} has nothing to agree on")).advise(
            "a contract is made of threads with at least ten jobs, chains, or scheduling latencies",
        ));
    }
    let listed = |names: &[String]| {
        let more = if names.len() > MOST_NAMES { ", …" } else { "" };
        let shown = names.iter().take(MOST_NAMES).map(|name| visible(name)).collect::<Vec<_>>();
        (!names.is_empty()).then(|| shown.join(", ") + more)
    };
    if let Some(names) = listed(&left_out) {
        monitor.hint(&format!("without {names}: threads with fewer than ten jobs"));
    }
    if let Some(names) = listed(&without_period) {
        let why = "some releases keep to none, or were more than a period late";
        monitor.hint(&format!("the contract has no period for {names}: {why}"));
    }
    for (name, time) in awake.iter().take(MOST_NAMES) {
        let name = visible(name);
        monitor.hint(&format!(
            "{name} had run for {time} without waiting when it ended; its contract does not allow that"
        ));
    }
    for (name, lacking) in missing.iter().take(MOST_NAMES) {
        let lacking = lacking.iter().map(|run| &*names[*run]).collect::<Vec<_>>().join(", ");
        monitor.hint(&format!("{} is in the contract, but not in {lacking}", visible(name)));
    }
    if let Some(rest) = missing.len().checked_sub(MOST_NAMES).filter(|rest| *rest > 0) {
        monitor.hint(&format!("{} not in every run, either", counted(rest as u64, "more thread")));
    }
    Ok(contract)
}

/// The timing model of a run.
fn run(path: &Path, monitor: &dyn Monitor) -> Result<TimingModel> {
    if !path.is_dir() {
        return read_model(path);
    }
    let options = replay::Options {
        recordings: vec![path.to_owned()],
        range: TimeRange::default(),
        threads: ThreadFilter::default(),
        models: Default::default(),
        workers: processors(),
        jobs: None,
    };
    replay::replay(&options, monitor)
}
