//! The metrics of a watch: jobs as they are judged, and once a second how the terms of the contract stand.

use super::chains::Counts;
use crate::error::Result;
use crate::metrics::{Endpoint, Metrics, TaskMetrics};
use crate::record;
use punctual_conformance::{Checker, Contract, ContractTask, Standing, Tally, Term, Unit};
use punctual_extract::JobSeen;
use punctual_model::Duration;
use punctual_model::causes::LateTask;
use punctual_observe::Statistics;
use std::net::SocketAddr;
use std::sync::Arc;

/// Counts for scrapers, and answers them.
pub struct Gauges {
    metrics: Arc<Metrics>,
    endpoint: Endpoint,
    /// In the order of the contract.
    tasks: Vec<Counted>,
}

/// A task of the contract.
struct Counted {
    name: String,
    metrics: TaskMetrics,
    proven: Option<Duration>,
    /// The longest response so far, by this contract.
    response: Option<Duration>,
}

impl Gauges {
    /// Serves metrics of the tasks of a contract, with their headroom against proven bounds.
    pub fn serve(address: SocketAddr, contract: &Contract) -> Result<Gauges> {
        let metrics = Arc::new(Metrics::new());
        let endpoint = Endpoint::serve(address, Arc::clone(&metrics))?;
        let mut gauges = Gauges { metrics, endpoint, tasks: Vec::new() };
        gauges.change_contract(contract);
        Ok(gauges)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    /// Counts the tasks of another contract. What was agreed on before is no longer told.
    pub fn change_contract(&mut self, contract: &Contract) {
        self.metrics.forget_terms();
        let counted = |task: &ContractTask| Counted {
            name: task.name.clone(),
            metrics: self.metrics.task(&task.name),
            proven: task.proven,
            response: None,
        };
        self.tasks = contract.tasks.iter().map(counted).collect();
    }

    /// A job of a task was judged.
    pub fn job(&mut self, task: usize, seen: &JobSeen<'_>) {
        let Some(task) = self.tasks.get_mut(task) else { return };
        let (release, response) = (seen.job.release, seen.job.response());
        task.metrics.release(release.arrival.map(|arrival| release.window.latest().since(arrival)));
        task.metrics.job(response, seen.job.cost);
        task.response = task.response.max(Some(response));
    }

    /// A late job was explained: its task with this job alone.
    pub fn late_job(&self, task: &LateTask) {
        let culprit = task.causes.first().and_then(|cause| cause.reason.culprit());
        if let Some(job) = task.worst.first() {
            self.metrics.late_job(&task.task, job.cause.name(), culprit);
        }
    }

    /// Takes over what was counted of a dataflow program.
    pub fn flow(&self, counts: &Counts) {
        self.metrics.flow(counts.events, counts.lost, counts.data, counts.restarts);
    }

    /// Takes over what is known a second later; `others` are chains and processors.
    pub fn turn<'a>(
        &self,
        checker: &Checker,
        others: impl Iterator<Item = &'a Tally>,
        statistics: &Statistics,
    ) {
        for tally in checker.tallies().iter().chain(others.collect::<Vec<_>>()) {
            for Standing { term, agreed, worst, violations, .. } in &tally.standings {
                let value = |value: u64| match term.unit() {
                    Unit::Time => value as f64 / 1e9,
                    Unit::Count => value as f64,
                };
                self.metrics.violations(&tally.task, term.name(), *violations);
                if *term == Term::Bound {
                    // It was proven, not agreed on, and has metrics of its own.
                    continue;
                }
                let worst = worst.map(value);
                self.metrics.term(&tally.task, term.name(), value(*agreed), worst, term.is_lower_bound());
            }
        }
        for task in checker.task_threads() {
            self.metrics.living(task.name, task.living);
        }
        for task in &self.tasks {
            if let Some(bound) = task.proven {
                let response = task.response.map(Duration::as_secs_f64);
                self.metrics.bound(&task.name, bound.as_secs_f64(), response);
            }
        }
        let totals = record::totals(statistics);
        self.metrics.observation(statistics.records, &totals, checker.threads() as u64);
    }
}
