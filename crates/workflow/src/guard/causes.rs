//! Why jobs were later than agreed, told as soon as it is known. How they are explained is in
//! [`why::Explainer`](crate::why::Explainer).

use super::alarms::{Alarm, Alarms};
use super::gauges::Gauges;
use super::sampler::Sampler;
use crate::why::Explainer;
use punctual_conformance::Contract;
use punctual_extract::JobSeen;
use punctual_model::causes::LateTask;
use punctual_model::{Causes, Instant};
use punctual_trace::Record;

/// The late jobs of the tasks of a contract.
pub struct LateJobs {
    explainer: Explainer,
    /// Where the explainer has the tasks of the contract.
    places: Vec<usize>,
}

impl LateJobs {
    pub fn start(from: Instant, contract: &Contract) -> LateJobs {
        let mut late = LateJobs { explainer: Explainer::start(from), places: Vec::new() };
        late.change_contract(contract);
        late
    }

    /// From now on, jobs are late by this contract.
    pub fn change_contract(&mut self, contract: &Contract) {
        let tasks = contract.tasks.iter();
        let tasks = tasks.map(|task| (task.name.as_str(), task.deadline.or(task.response)));
        self.places = self.explainer.judge(tasks);
    }

    pub fn record(&mut self, record: &Record) {
        self.explainer.record(record);
    }

    /// A job of this task of the contract has ended.
    pub fn job(&mut self, task: usize, seen: &JobSeen<'_>) {
        self.explainer.job(self.places[task], seen);
    }

    /// Tells what was found out meanwhile.
    pub fn turn(&mut self, sampler: &mut Sampler, alarms: &mut Alarms, gauges: Option<&Gauges>) {
        self.explainer.turn(&mut |late| tell(late, sampler, alarms, gauges));
    }

    /// Tells the rest; returns all causes.
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
