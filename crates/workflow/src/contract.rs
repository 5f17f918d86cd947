//! Timing models to contracts.

use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::model_file::{display_name, read_model};
use crate::monitor::Monitor;
use punctual_conformance::{Contract, Margin};
use punctual_model::Percent;
use std::path::PathBuf;

/// What a contract is made of.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The timing model; `-` is standard input.
    pub model: PathBuf,
    /// Percent added to what was observed; the rest is rounded up, unless it is zero.
    pub margin: Percent,
    /// Which threads.
    pub threads: ThreadFilter,
}

/// Names of threads that are listed in a message at most.
const MOST_NAMES: usize = 10;

/// Makes a contract of a timing model.
///
/// # Errors
/// If there is nothing to agree on.
pub fn contract(options: &Options, monitor: &dyn Monitor) -> Result<Contract> {
    let model = read_model(&options.model)?;
    let name = display_name(&options.model);
    let names = model.tasks().iter().map(|task| task.name.as_str());
    if let Some(pattern) = options.threads.unmatched(names) {
        return Err(Error::target(format!("no thread of {name} matches '{pattern}'")));
    }
    let chosen = |name: &str| options.threads.matches(name);
    let margin = if options.margin.is_zero() { Margin::None } else { Margin::Percent(options.margin) };
    let (contract, left_out) = Contract::observed(&model, margin, &chosen);
    if contract.tasks.is_empty() && contract.chains.is_empty() && contract.latencies.is_empty() {
        return Err(Error::target(format!("{name} has nothing to agree on")).advise(
            "a contract is made of threads with at least ten jobs, chains, or scheduling latencies",
        ));
    }
    if !left_out.is_empty() {
        let more = if left_out.len() > MOST_NAMES { ", …" } else { "" };
        let names = left_out.iter().take(MOST_NAMES).map(|name| punctual_report::visible(name));
        let names = names.collect::<Vec<_>>().join(", ");
        monitor.hint(&format!("without {names}{more}: threads with fewer than ten jobs"));
    }
    Ok(contract)
}
