//! The plugins FP and RR: priorities as requested, of SCHED_FIFO or SCHED_RR, on the processor with the
//! fewest specs (ReTiF, Section 5.3).

use crate::books::{Books, exceeds, first_fit, least_loaded};
use crate::partitioned::{Partitioned, Urgency};
use crate::task::Task;
use crate::work::Work;
use crate::{
    Answer, AssignedPolicy, Assignment, Load, Offer, Parameters, Plugin, Refusal, Settings, SpecId, Test,
    Utilization,
};

/// Fixed priorities. Their order is preserved as long as the range allows (Equation 6); each spec gets the
/// priority it requests if that is free.
#[derive(Debug)]
pub(crate) struct Fixed {
    settings: Settings,
    threshold: Utilization,
    partitioned: Partitioned,
}

impl Fixed {
    /// FP.
    pub(crate) fn fifo(settings: Settings) -> Self {
        Self::new(settings, AssignedPolicy::Fifo)
    }

    /// RR.
    pub(crate) fn round_robin(settings: Settings) -> Self {
        Self::new(settings, AssignedPolicy::RoundRobin)
    }

    fn new(settings: Settings, policy: fn(u32) -> AssignedPolicy) -> Self {
        Self { threshold: settings.limit(), partitioned: Partitioned::new(&settings, policy), settings }
    }

    fn urgency(parameters: &Parameters) -> Option<Urgency> {
        let priority = parameters.priority?;
        Some(Urgency { key: u64::from(u32::MAX - priority), wish: Some(priority) })
    }

    /// Whether a spec requests a priority of the range that is reserved for its kind, if one is.
    fn check_range(&self, parameters: &Parameters, has_runtime: bool) -> Result<(), String> {
        let (lowest, highest) = self.settings.priorities;
        let Some((most, priority)) = self.settings.without_runtime_up_to.zip(parameters.priority) else {
            return Ok(());
        };
        match has_runtime {
            true if priority <= most => Err(format!(
                "priority {priority} is reserved for specs without a declared runtime and period; those with \
                 both have {} to {highest}",
                most + 1
            )),
            false if priority > most => Err(format!(
                "priority {priority} needs a declared runtime and period; specs without have {lowest} to \
                 {most}"
            )),
            _ => Ok(()),
        }
    }

    /// Specs that declare runtime and period are always tested against each other; one that does not must run
    /// below all of them, since it may use all the time they leave.
    fn test(
        &self,
        place: usize,
        books: &Books,
        task: Option<Task>,
        urgency: Urgency,
        replacing: Option<SpecId>,
        work: &mut Work,
    ) -> Result<(), String> {
        let (taken, needed) = match self.settings.test {
            Test::Utilization => (books.utilization, task.map(|task| task.utilization())),
            Test::Exact => (books.rate, task.map(|task| task.rate)),
        };
        if let Some(needed) = needed.filter(|&needed| taken + needed > self.threshold) {
            return Err(exceeds(self.threshold, books.processor, taken, needed));
        }
        match self.settings.test {
            Test::Utilization => self.partitioned.keeps_order(place, task, urgency, replacing),
            Test::Exact => self.partitioned.prove(place, books, task, urgency, replacing, work),
        }
    }
}

impl Plugin for Fixed {
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
        let Some(urgency) = Self::urgency(parameters) else { return Answer::No(Refusal::Lacks("priority")) };
        let task = Task::from_parameters(parameters, parameters.runtime, true);
        if let Err(why) = self.check_range(parameters, task.is_some()) {
            return Answer::No(Refusal::Unschedulable(why));
        }
        let books = self.partitioned.books_without(replacing);
        let places = least_loaded(&books, may_use, |books| books.specs);
        let offer = |place: usize, ignored| Offer {
            processor: books[place].processor,
            accepted_runtime: parameters.runtime,
            ignored,
        };
        let mut work = Work::default();
        match first_fit(&places, |place| self.test(place, &books[place], task, urgency, replacing, &mut work))
        {
            Ok((place, ())) => Answer::Ok(offer(place, false)),
            Err(_) if parameters.ignore_admission && !places.is_empty() => Answer::Ok(offer(places[0], true)),
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
            (Some(urgency), AssignedPolicy::Fifo(priority) | AssignedPolicy::RoundRobin(priority)) => {
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
