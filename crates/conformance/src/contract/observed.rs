//! Contracts from timing models: what was observed, taken as agreed on.
//!
//! Whatever the models were made of keeps to their contract: terms cover every stream of jobs that the
//! checker will judge by them.

use super::group::Group;
use super::typical::Quantile;
use super::{Contract, ContractChain, ContractProcessor, Margin, ThreadChoice};
use punctual_latency::{Bounds, Outcome};
use punctual_model::latency::{Processor, SchedulingLatency};
use punctual_model::{Duration, Task, TimingModel};
use std::collections::BTreeMap;

/// How limits follow from observed values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How far they are from those. Without a margin, no job may exceed them.
    pub margin: Margin,
    /// Which values of cost, response and jitter they cover; if absent, all.
    pub quantile: Option<Quantile>,
}

/// A contract of what was observed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// It covers all runs.
    pub contract: Contract,
    /// Names of threads with too few jobs.
    pub left_out: Vec<String>,
    /// Names of threads that have a period or modes in a run, but none in the contract.
    pub without_period: Vec<String>,
    /// Threads that had ceased to wait when they ended, and how long before. No limit covers that time.
    pub awake: Vec<(String, Duration)>,
    /// Names of threads that some runs do not have, each with the places of these runs.
    pub missing: Vec<(String, Vec<usize>)>,
}

impl From<&TimingModel> for Contract {
    fn from(model: &TimingModel) -> Contract {
        Contract::observed(std::slice::from_ref(model), Limits::default(), &|_| true).contract
    }
}

impl From<TimingModel> for Contract {
    fn from(model: TimingModel) -> Contract {
        Contract::from(&model)
    }
}

impl Contract {
    /// A contract of what was observed in one or more runs of a program, of the threads whose names are
    /// chosen. Threads of one name are one task.
    pub fn observed(runs: &[TimingModel], limits: Limits, choose: ThreadChoice<'_>) -> Observed {
        let mut groups: BTreeMap<&str, Vec<(usize, &Task)>> = BTreeMap::new();
        for (run, model) in runs.iter().enumerate() {
            for task in model.tasks().iter().filter(|task| choose(&task.name) && !task.name.is_empty()) {
                groups.entry(&task.name).or_default().push((run, task));
            }
        }
        let mut observed = Observed::default();
        for (name, members) in groups {
            let lacks =
                |run: &usize| runs[*run].threads.is_some() && !members.iter().any(|(other, _)| other == run);
            match Group::new(&members) {
                Some(group) => {
                    let task = group.agreed(name, limits);
                    observed.awake.extend(group.awake().map(|time| (name.to_owned(), time)));
                    if !task.has_period() && group.has_period() {
                        observed.without_period.push(name.to_owned());
                    }
                    observed.contract.tasks.push(task);
                    let missing: Vec<usize> = (0..runs.len()).filter(lacks).collect();
                    if !missing.is_empty() {
                        observed.missing.push((name.to_owned(), missing));
                    }
                }
                None => observed.left_out.push(name.to_owned()),
            }
        }
        observed.contract.chains = chains(runs, limits.margin);
        observed.contract.latencies = latencies(runs, limits.margin);
        observed
    }
}

fn chains(runs: &[TimingModel], margin: Margin) -> Vec<ContractChain> {
    let mut chains: Vec<ContractChain> = Vec::new();
    for chain in runs.iter().flat_map(|run| &run.dataflow).flat_map(|program| &program.chains) {
        let reaction_time = chain.reaction.as_ref().map(|it| margin.above(it.distribution.max_ns));
        let data_age = chain.age.as_ref().map(|it| margin.above(it.distribution.max_ns));
        match chains.iter_mut().find(|other| other.tasks == chain.tasks) {
            Some(other) => {
                other.reaction_time = other.reaction_time.max(reaction_time);
                other.data_age = other.data_age.max(data_age);
            }
            None => chains.push(ContractChain { tasks: chain.tasks.clone(), reaction_time, data_age }),
        }
    }
    chains.retain(ContractChain::has_times);
    chains
}

fn latencies(runs: &[TimingModel], margin: Margin) -> Vec<ContractProcessor> {
    let mut all: BTreeMap<u32, Duration> = BTreeMap::new();
    for section in runs.iter().filter_map(|run| run.latency.as_ref()) {
        for processor in &section.processors {
            if let Some(latency) = latency(section, processor) {
                let limit = all.entry(processor.cpu).or_default();
                *limit = margin.above(latency).max(*limit);
            }
        }
    }
    all.into_iter().map(|(cpu, latency)| ContractProcessor { cpu, latency }).collect()
}

/// The bound of the scheduling latency, or the greatest measured one if that is greater or there is no bound.
pub fn latency(section: &SchedulingLatency, processor: &Processor) -> Option<Duration> {
    let bound = Bounds::new(section, processor).ok().and_then(|bounds| match bounds.latency() {
        Outcome::Converged(latency) => Some(latency),
        Outcome::DoesNotConverge => None,
    });
    let measured = processor.measured.iter().filter_map(|it| it.bounded_max_ns).max();
    bound.max(measured)
}
