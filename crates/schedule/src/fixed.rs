//! The plugins FP and RR: priorities as requested, of SCHED_FIFO or SCHED_RR, on the processor with the fewest specs (ReTiF, Section 5.3).

use crate::partitioned::{Partitioned, Urgency, worst_fit};
use crate::{Answer, Assignment, Load, Offer, Parameters, Plugin, Policy, Refusal, Settings, SpecId};

/// Fixed priorities. Their order is kept as long as the range allows (Equation 6), and they themselves where they are free.
#[derive(Debug)]
pub(crate) struct Fixed {
    settings: Settings,
    partitioned: Partitioned,
}

impl Fixed {
    /// FP.
    pub(crate) fn fifo(settings: Settings) -> Self {
        Self { partitioned: Partitioned::new(&settings, Policy::Fifo), settings }
    }

    /// RR.
    pub(crate) fn round_robin(settings: Settings) -> Self {
        Self { partitioned: Partitioned::new(&settings, Policy::RoundRobin), settings }
    }

    fn urgency(parameters: &Parameters) -> Option<Urgency> {
        let priority = parameters.priority?;
        Some(Urgency { key: u64::from(u32::MAX - priority), wish: Some(priority) })
    }
}

impl Plugin for Fixed {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn consider(&self, parameters: &Parameters, replacing: Option<SpecId>) -> Answer {
        if let Err(bound) = parameters.check(&self.settings.limits) {
            return Answer::No(Refusal::Bound(bound));
        }
        if parameters.priority.is_none() {
            return Answer::No(Refusal::Lacks("priority"));
        }
        let books = self.partitioned.books_without(replacing);
        let books = &books[worst_fit(&books, |books| books.specs)];
        Answer::Ok(Offer { processor: books.processor, accepted_runtime: parameters.runtime, ignored: false })
    }

    fn admit(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer) {
        if let Some(urgency) = Self::urgency(parameters) {
            self.partitioned.admit(spec, parameters, urgency, offer);
        }
    }

    fn restore(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer, was: Assignment) {
        match (Self::urgency(parameters), was.policy) {
            (Some(urgency), Policy::Fifo(priority) | Policy::RoundRobin(priority)) => {
                self.partitioned.restore(spec, parameters, urgency, offer, priority);
            }
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
