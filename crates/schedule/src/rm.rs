//! The plugin RM: partitioned, worst fit, rate-monotonic priorities of SCHED_FIFO (ReTiF, Section 5.2).
//!
//! Where a deadline is declared, it takes the place of the period: deadline-monotonic priorities admit every
//! set that any priorities admit, if no deadline exceeds its period (Leung and Whitehead 1982).

use crate::books::{Books, exceeds, first_fit, least_loaded};
use crate::partitioned::{Partitioned, Urgency};
use crate::task::Task;
use crate::work::Work;
use crate::{
    Answer, AssignedPolicy, Assignment, Load, Offer, Parameters, Plugin, Refusal, Settings, SpecId, Test,
    Utilization,
};

/// Rate monotonic: the shorter a period, or the deadline if one is declared, the higher the priority.
#[derive(Debug)]
pub(crate) struct RateMonotonic {
    settings: Settings,
    threshold: Utilization,
    partitioned: Partitioned,
}

impl RateMonotonic {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            threshold: settings.limit(),
            partitioned: Partitioned::new(&settings, AssignedPolicy::Fifo),
            settings,
        }
    }

    /// Equation 5 for deadlines; only the order of priorities matters. Specs without a runtime come after all
    /// that declare one, in the same order: they may use all the remaining time.
    fn urgency(parameters: &Parameters) -> Option<Urgency> {
        /// Longer than any period or deadline (see `Parameters::check`).
        const LAST: u64 = 1 << 63;
        let key = parameters.deadline.unwrap_or(parameters.period?).ns()
            | if parameters.runtime.is_none() { LAST } else { 0 };
        Some(Urgency { key, wish: None })
    }

    fn fits(&self, books: &Books, taken: Utilization, needed: Utilization) -> Result<(), String> {
        if taken + needed <= self.threshold {
            return Ok(());
        }
        Err(exceeds(self.threshold, books.processor, taken, needed))
    }
}

impl Plugin for RateMonotonic {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn consider(&self, parameters: &Parameters, replacing: Option<SpecId>) -> Answer {
        self.consider_within(parameters, replacing, &|_| true)
    }

    fn consider_within(
        &self,
        parameters: &Parameters,
        replacing: Option<SpecId>,
        may_use: &dyn Fn(u32) -> bool,
    ) -> Answer {
        if let Err(bound) = parameters.check(&self.settings.limits) {
            return Answer::No(Refusal::Bound(bound));
        }
        if let Err(refusal) = self.settings.check_blocking(parameters) {
            return Answer::No(refusal);
        }
        let Some(urgency) = Self::urgency(parameters) else { return Answer::No(Refusal::Lacks("period_ns")) };
        let books = self.partitioned.books_without(replacing);
        let places = least_loaded(&books, may_use, |books| (books.utilization, books.specs));
        let offer = |place: usize, ignored| Offer {
            processor: books[place].processor,
            accepted_runtime: parameters.runtime,
            ignored,
        };
        let task = Task::from_parameters(parameters, parameters.runtime, true);

        let mut work = Work::default();
        let found = first_fit(&places, |place| match self.settings.test {
            Test::Utilization => {
                if let Some(task) = task {
                    self.fits(&books[place], books[place].utilization, task.utilization())?;
                }
                self.partitioned.keeps_order(place, task, urgency, replacing)
            }
            Test::Exact => {
                if let Some(task) = task {
                    self.fits(&books[place], books[place].rate, task.rate)?;
                }
                self.partitioned.prove(place, &books[place], task, urgency, replacing, &mut work)
            }
        });
        let answer = if task.is_some() { Answer::Ok } else { Answer::Partial };
        match found {
            Ok((place, ())) => answer(offer(place, false)),
            Err(_) if parameters.ignore_admission && !places.is_empty() => answer(offer(places[0], true)),
            Err(why) => Answer::No(Refusal::Unschedulable(why)),
        }
    }

    fn admit(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer) {
        if let Some(urgency) = Self::urgency(parameters) {
            self.partitioned.admit(spec, parameters, urgency, offer);
        }
    }

    fn restore(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer, was: Assignment) {
        match (Self::urgency(parameters), was.policy) {
            (Some(urgency), AssignedPolicy::Fifo(priority)) => {
                self.partitioned.restore(spec, parameters, urgency, offer, priority)
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
