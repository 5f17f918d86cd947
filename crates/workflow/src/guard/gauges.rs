//! The metrics of a watch: jobs as they are judged, and once a second how the terms of the contract stand.

use crate::error::Result;
use crate::metrics::{Endpoint, Metrics, TaskMetrics};
use crate::record;
use punctual_conformance::{Checker, Contract, Standing, Unit};
use punctual_extract::JobSeen;
use punctual_observe::Statistics;
use std::net::SocketAddr;
use std::sync::Arc;

/// Counts for scrapers, and answers them.
pub struct Gauges {
    metrics: Arc<Metrics>,
    endpoint: Endpoint,
    /// In the order of the contract.
    tasks: Vec<TaskMetrics>,
}

impl Gauges {
    /// Serves metrics of the tasks of a contract.
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
        self.tasks = contract.tasks.iter().map(|task| self.metrics.task(&task.name)).collect();
    }

    /// A job of a task was judged.
    pub fn job(&self, task: usize, seen: &JobSeen<'_>) {
        let Some(task) = self.tasks.get(task) else { return };
        let release = seen.job.release;
        task.release(release.arrival.map(|arrival| release.window.latest().since(arrival)));
        task.job(seen.job.response(), seen.job.cost);
    }

    /// Takes over what is known a second later.
    pub fn turn(&self, checker: &Checker, statistics: &Statistics) {
        for tally in checker.tallies() {
            for Standing { term, agreed, worst, violations, .. } in &tally.standings {
                let value = |value: u64| match term.unit() {
                    Unit::Time => value as f64 / 1e9,
                    Unit::Count => value as f64,
                };
                self.metrics.violations(&tally.task, term.name(), *violations);
                let worst = worst.map(value);
                self.metrics.term(&tally.task, term.name(), value(*agreed), worst, term.is_lower_bound());
            }
        }
        let totals = record::totals(statistics);
        self.metrics.observation(statistics.records, &totals, checker.threads() as u64);
    }
}
