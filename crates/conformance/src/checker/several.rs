//! Jobs in a row: what several of them need together, and how close their releases are.

use super::beyond::Beyond;
use super::{Agreed, Findings};
use crate::contract::ContractTask;
use crate::verdict::Tally;
use crate::violation::{Subject, Term, Violation};
use punctual_extract::JobSeen;
use punctual_model::{Disturbance, Duration, Window};
use std::collections::VecDeque;

/// What is agreed on of several jobs in a row: at [0] of two, and so on.
pub struct Several {
    wcets: Vec<Duration>,
    separations: Vec<Duration>,
}

/// The last jobs, oldest first.
#[derive(Default)]
pub struct Row {
    jobs: VecDeque<(Duration, Window)>,
    next: u64,
}

impl Several {
    pub fn of(task: &ContractTask) -> Several {
        Several { wcets: task.more_wcets.clone(), separations: task.more_separations.clone() }
    }

    pub fn is_empty(&self) -> bool {
        self.wcets.is_empty() && self.separations.is_empty()
    }
}

impl Row {
    /// Takes a job, and judges it together with those before it. Each term is broken once at most. A row that
    /// may exceed its limit ends: else a long job would count with each row that it is in.
    pub fn judge(
        &mut self,
        seen: &JobSeen<'_>,
        agreed: &Agreed,
        beyond: &mut Beyond,
        findings: &mut Findings<'_>,
        subject: &dyn Fn() -> Subject,
    ) {
        if seen.number != self.next || seen.disturbance == Some(Disturbance::Ending) {
            self.jobs.clear();
        }
        self.next = seen.number + 1;
        let Agreed { several, tolerance, .. } = agreed;
        let window = seen.job.release.window;
        let mut sum = seen.job.cost;
        let mut costs = self.jobs.iter().rev().map(|(cost, _)| {
            sum += *cost;
            sum
        });
        let wcet = worst(Term::WcetOfSeveral, &several.wcets, &mut costs, findings.tally);
        // From the release before the last on: the last one has a term of its own.
        let mut spans = self.jobs.iter().rev().skip(1).map(|(_, at)| window.latest().since(at.earliest()));
        let separation = worst(Term::SeparationOfSeveral, &several.separations, &mut spans, findings.tally);
        let mut is_over = false;
        for (term, value, limit) in wcet.into_iter().chain(separation) {
            let standings = &mut findings.tally.standings;
            let Some(place) = standings.iter().position(|it| it.term == term) else { continue };
            if !beyond.breaks(place, &mut standings[place], value, tolerance) {
                is_over = true;
                continue;
            }
            let task = findings.tally.task.clone();
            findings.found(Violation { task, term, subject: Some(subject()), value, agreed: limit });
        }
        if is_over {
            self.jobs.clear();
        }
        let most = several.wcets.len().max(several.separations.len() + 1);
        if seen.disturbance != Some(Disturbance::Ending) {
            self.jobs.push_back((seen.job.cost, window));
        }
        while self.jobs.len() > most {
            self.jobs.pop_front();
        }
    }
}

/// The first value that breaks its limit. The worst is kept of the longest rows only, as others cannot be
/// compared with them.
fn worst(
    term: Term,
    limits: &[Duration],
    values: &mut dyn Iterator<Item = Duration>,
    tally: &mut Tally,
) -> Option<(Term, u64, u64)> {
    let mut broken = None;
    let mut last = None;
    for (place, (limit, value)) in limits.iter().zip(values).enumerate() {
        let is_beyond = if term.is_lower_bound() { value < *limit } else { value > *limit };
        if is_beyond && broken.is_none() {
            broken = Some((term, value.ns(), limit.ns()));
        }
        last = (place + 1 == limits.len()).then_some(value);
    }
    if let (Some(last), Some(standing)) = (last, tally.standings.iter_mut().find(|it| it.term == term)) {
        standing.see(last.ns());
    }
    broken
}
