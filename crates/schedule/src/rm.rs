//! The plugin RM: partitioned, worst fit, rate-monotonic priorities of SCHED_FIFO (ReTiF, Section 5.2).

use crate::partitioned::{Partitioned, Urgency, worst_fit};
use crate::{Answer, Assignment, Load, Offer, Parameters, Plugin, Policy, Refusal, Settings, SpecId, Utilization};

/// Rate monotonic: the shorter a period, the higher the priority.
#[derive(Debug)]
pub(crate) struct RateMonotonic {
    settings: Settings,
    threshold: Utilization,
    partitioned: Partitioned,
}

impl RateMonotonic {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { threshold: settings.limit(), partitioned: Partitioned::new(&settings, Policy::Fifo), settings }
    }

    /// Equation 5, in its order; the priorities themselves only matter by that.
    fn urgency(parameters: &Parameters) -> Option<Urgency> {
        Some(Urgency { key: parameters.period?.ns(), wish: None })
    }
}

impl Plugin for RateMonotonic {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn consider(&self, parameters: &Parameters, replacing: Option<SpecId>) -> Answer {
        if let Err(bound) = parameters.check(&self.settings.limits) {
            return Answer::No(Refusal::Bound(bound));
        }
        let Some(period) = parameters.period else { return Answer::No(Refusal::Lacks("period_ns")) };
        let books = self.partitioned.books_without(replacing);
        let books = &books[worst_fit(&books, |books| (books.utilization, books.specs))];
        let mut offer = Offer { processor: books.processor, accepted_runtime: parameters.runtime, ignored: false };
        let Some(runtime) = parameters.runtime else { return Answer::Partial(offer) };

        let needed = Utilization::of(runtime, parameters.deadline.map_or(period, |deadline| deadline.min(period)));
        if books.utilization + needed <= self.threshold {
            return Answer::Ok(offer);
        }
        if parameters.ignore_admission {
            offer.ignored = true;
            return Answer::Ok(offer);
        }
        Answer::No(Refusal::Unschedulable(format!(
            "utilization test: {needed} of processor {} are needed; {} are taken, and the threshold is {}",
            books.processor, books.utilization, self.threshold
        )))
    }

    fn admit(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer) {
        if let Some(urgency) = Self::urgency(parameters) {
            self.partitioned.admit(spec, parameters, urgency, offer);
        }
    }

    fn restore(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer, was: Assignment) {
        match (Self::urgency(parameters), was.policy) {
            (Some(urgency), Policy::Fifo(priority)) => self.partitioned.restore(spec, parameters, urgency, offer, priority),
            _ => self.admit(spec, parameters, offer),
        }
    }

    fn release(&mut self, spec: SpecId) {
        self.partitioned.release(spec);
    }

    fn assignment(&self, spec: SpecId) -> Option<Assignment> {
        self.partitioned.assignment(spec)
    }

    fn shifted(&mut self) -> bool {
        self.partitioned.take_shifted()
    }

    fn loads(&self) -> Vec<Load> {
        self.partitioned.loads()
    }
}
