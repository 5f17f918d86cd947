//! Jobs beyond the limits of their task: whether they are more than the contract lets exceed a limit, and
//! whether they are most. A window of jobs is counted together.

use super::Findings;
use crate::chance::{Allowance, WINDOW};
use crate::tolerance::Tolerance;
use crate::verdict::Standing;
use crate::violation::{Subject, Term, Violation};
use punctual_extract::Histogram;
use punctual_model::Duration;

/// The terms that are about most jobs.
const OF_MOST: [Term; 3] = [Term::QuartileCost, Term::Frequent, Term::Rare];

/// The jobs of a thread at one separator since their window began.
#[derive(Default)]
pub struct Beyond {
    jobs: u64,
    /// Of each term of the task, how many jobs exceeded its limit.
    counts: Vec<u64>,
    most: [Most; OF_MOST.len()],
}

/// Jobs beyond the limit of a term that is about most.
#[derive(Default)]
struct Most {
    jobs: u64,
    values: Histogram<7>,
}

impl Beyond {
    /// Another job is judged.
    pub fn next_job(&mut self) {
        self.jobs += 1;
    }

    /// Whether the window has to be closed before the next job.
    pub fn is_full(&self) -> bool {
        self.jobs >= WINDOW as u64
    }

    /// Counts a job that exceeds the limit of the term at `place`. Returns whether that breaks the contract.
    pub fn breaks(&mut self, place: usize, standing: &mut Standing, value: u64, rule: &Tolerance) -> bool {
        self.all_break(1, place, standing, value, rule)
    }

    /// The same of one that stands for so many jobs.
    pub fn all_break(
        &mut self,
        jobs: u64,
        place: usize,
        standing: &mut Standing,
        value: u64,
        rule: &Tolerance,
    ) -> bool {
        if rule.is_certain(standing.term, value, standing.agreed) {
            return true;
        }
        let Some(allowance) = rule.of(standing.term) else { return true };
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += jobs;
        let is_broken = allowance.is_exceeded(self.counts[place], self.jobs);
        standing.tolerated += u64::from(!is_broken);
        is_broken
    }

    /// Counts a job that exceeds the limit of a term that is about most.
    pub fn count(&mut self, term: Term, value: u64) {
        if let Some(place) = OF_MOST.iter().position(|it| *it == term) {
            self.most[place].jobs += 1;
            self.most[place].values.add(Duration::from_ns(value));
        }
    }

    /// Ends the window: judges what most of its jobs did.
    pub fn close(&mut self, findings: &mut Findings<'_>, subject: &dyn Fn() -> Subject) {
        let Beyond { jobs, most, .. } = std::mem::take(self);
        for (term, most) in OF_MOST.into_iter().zip(most) {
            let is_exceeded = |allowance: &Allowance| allowance.is_exceeded(most.jobs, jobs.max(1));
            if !term.of_most().is_some_and(is_exceeded) {
                continue;
            }
            // An outlier does not move their median.
            let Some(value) = most.values.quantiles().map(|it| it.p50_ns.ns()) else { continue };
            let task = findings.tally.task.clone();
            let Some(standing) = findings.tally.standings.iter_mut().find(|it| it.term == term) else {
                continue;
            };
            standing.see(value);
            let agreed = standing.agreed;
            findings.found(Violation { task, term, subject: Some(subject()), value, agreed });
        }
    }
}
