//! The plugin EDF: partitioned, worst fit, on SCHED_DEADLINE (ReTiF, Section 5.1).

use crate::books::{Books, least_loaded};
use crate::task::Task;
use crate::{Answer, Assignment, Load, Offer, Parameters, Plugin, Policy, Refusal, Settings, SpecId, Utilization};
use punctual_model::Duration;
use std::collections::BTreeMap;

/// Books and admitted specs.
#[derive(Debug)]
pub(crate) struct Edf {
    settings: Settings,
    threshold: Utilization,
    books: Vec<Books>,
    specs: BTreeMap<SpecId, Admitted>,
}

#[derive(Debug)]
struct Admitted {
    /// Its place in `books`.
    place: usize,
    task: Task,
}

/// What is asked for, with everything that is mandatory.
struct Request {
    least: Duration,
    most: Duration,
    period: Duration,
    deadline: Duration,
}

impl Request {
    fn of(parameters: &Parameters, settings: &Settings) -> Result<Self, Refusal> {
        let least = parameters.runtime.ok_or(Refusal::Lacks("runtime_ns"))?;
        let period = parameters.period.ok_or(Refusal::Lacks("period_ns"))?;
        parameters.check(&settings.limits).map_err(Refusal::Bound)?;
        parameters.check_deadline_class(&settings.limits).map_err(Refusal::Bound)?;
        let most = parameters.desired_runtime.map_or(least, |desired| desired.max(least));
        Ok(Self { least, most, period, deadline: parameters.deadline.unwrap_or(period) })
    }
}

impl Edf {
    pub(crate) fn new(settings: Settings) -> Self {
        let books = settings.processors.iter().map(|&processor| Books::new(processor)).collect();
        Self { threshold: settings.limit(), books, specs: BTreeMap::new(), settings }
    }

    fn books_without(&self, replaced: Option<SpecId>) -> Vec<Books> {
        let mut books = self.books.clone();
        if let Some(admitted) = replaced.and_then(|spec| self.specs.get(&spec)) {
            books[admitted.place].strike(Some(&admitted.task));
        }
        books
    }

    /// Q^a on this processor by Equations 3 and 4.
    fn by_utilization(&self, request: &Request, books: &Books) -> Result<Duration, String> {
        let window = request.period.min(request.deadline);
        let needed = Utilization::of(request.least, window);
        let free = self.threshold - books.utilization;
        if needed > free {
            return Err(format!(
                "utilization test: {needed} of processor {} are needed; {} are taken, and the threshold is {}",
                books.processor, books.utilization, self.threshold
            ));
        }
        Ok(request.most.min(free.runtime_in(window)))
    }
}

impl Plugin for Edf {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn consider(&self, parameters: &Parameters, replacing: Option<SpecId>) -> Answer {
        let request = match Request::of(parameters, &self.settings) {
            Ok(request) => request,
            Err(refusal) => return Answer::No(refusal),
        };
        let books = self.books_without(replacing);
        let place = least_loaded(&books, |books| (books.utilization, books.specs))[0];
        let processor = books[place].processor;
        match self.by_utilization(&request, &books[place]) {
            Ok(accepted) => Answer::Ok(Offer { processor, accepted_runtime: Some(accepted), ignored: false }),
            Err(_) if parameters.ignore_admission => Answer::Ok(Offer { processor, accepted_runtime: Some(request.least), ignored: true }),
            Err(why) => Answer::No(Refusal::Unschedulable(why)),
        }
    }

    fn admit(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer) {
        self.release(spec);
        let place = self.books.iter().position(|books| books.processor == offer.processor);
        let task = Task::of(parameters, offer.accepted_runtime.or(parameters.runtime), !offer.ignored);
        if let (Some(place), Some(task)) = (place, task) {
            self.books[place].enter(Some(&task));
            self.specs.insert(spec, Admitted { place, task });
        }
    }

    fn release(&mut self, spec: SpecId) {
        if let Some(admitted) = self.specs.remove(&spec) {
            self.books[admitted.place].strike(Some(&admitted.task));
        }
    }

    fn assignment(&self, spec: SpecId) -> Option<Assignment> {
        let Admitted { place, task } = self.specs.get(&spec)?;
        let policy = Policy::Deadline { runtime: task.runtime, deadline: task.deadline, period: task.period };
        Some(Assignment { processor: self.books[*place].processor, policy })
    }

    fn shifted(&mut self) -> bool {
        false
    }

    fn loads(&self) -> Vec<Load> {
        self.books.iter().map(Books::load).collect()
    }
}
