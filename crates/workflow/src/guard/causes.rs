//! Reports why jobs were later than agreed. Not for explaining them: [`Explainer`] does that.

use super::alarms::{Alarm, Alarms};
use super::gauges::Gauges;
use super::sampler::Sampler;
use crate::why::Explainer;
use punctual_conformance::Contract;
use punctual_extract::JobSeen;
use punctual_model::causes::{LateTask, Limit};
use punctual_model::{Causes, Instant};
use punctual_observe::Observer;
use punctual_trace::Record;

/// The late jobs of the tasks of a contract.
pub struct LateJobs {
    explainer: Explainer,
    /// The names of all tasks that any contract had; their places are their numbers.
    names: Vec<String>,
    /// The numbers of the tasks of this contract.
    tasks: Vec<u32>,
}

impl LateJobs {
    /// `is_kept` is whether switches stay in the kernel.
    pub fn start(from: Instant, is_kept: bool, contract: &Contract) -> LateJobs {
        let explainer = Explainer::start(from, is_kept);
        let mut late = LateJobs { explainer, names: Vec::new(), tasks: Vec::new() };
        late.change_contract(contract);
        late
    }

    /// From now on, jobs are late by this contract.
    pub fn change_contract(&mut self, contract: &Contract) {
        self.tasks.clear();
        for task in &contract.tasks {
            let place = self.names.iter().position(|name| *name == task.name).unwrap_or_else(|| {
                self.names.push(task.name.clone());
                self.names.len() - 1
            });
            let limit = task.deadline.or(task.response).map(|limit| (Limit::Contract, limit));
            self.explainer.limit(place as u32, &task.name, limit);
            self.tasks.push(place as u32);
        }
    }

    pub fn record(&mut self, record: &Record) {
        self.explainer.record(record);
    }

    /// A job of this task of the contract has ended.
    pub fn job(&mut self, task: usize, seen: &JobSeen<'_>) {
        self.explainer.job(self.tasks[task], seen);
    }

    /// Reports the jobs explained meanwhile.
    pub fn turn(
        &mut self,
        observer: &Observer,
        has_ended: bool,
        sampler: &mut Sampler,
        alarms: &mut Alarms,
        gauges: Option<&Gauges>,
    ) {
        self.explainer.turn(observer, has_ended, &mut |late| tell(late, sampler, alarms, gauges));
    }

    /// Reports the rest; returns all causes.
    pub fn finish(self, sampler: &mut Sampler, alarms: &mut Alarms, gauges: Option<&Gauges>) -> Causes {
        self.explainer.finish(&mut |late| tell(late, sampler, alarms, gauges))
    }
}

fn tell(late: &LateTask, sampler: &mut Sampler, alarms: &mut Alarms, gauges: Option<&Gauges>) {
    if let Some(gauges) = gauges {
        gauges.late_job(late);
    }
    if sampler.admits_cause(&late.task) {
        alarms.tell(Alarm::Late(Box::new(late.clone())));
    }
}
