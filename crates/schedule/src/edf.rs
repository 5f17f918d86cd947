//! The plugin EDF: partitioned, worst fit, on SCHED_DEADLINE (ReTiF, Section 5.1).

use crate::books::{Books, exceeds, first_fit, least_loaded};
use crate::demand::{Others, longest_runtime};
use crate::reserve::{Reserve, ReserveKind};
use crate::task::Task;
use crate::work::Work;
use crate::{
    Answer, AssignedPolicy, Assignment, Bound, Load, Offer, Parameters, Plugin, Refusal, Settings, SpecId,
    Test, Utilization,
};
use punctual_model::Duration;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Books and admitted specs.
#[derive(Debug)]
pub(crate) struct Edf {
    settings: Settings,
    threshold: Utilization,
    processors: Vec<Processor>,
    specs: FxHashMap<SpecId, Admitted>,
}

#[derive(Debug)]
struct Processor {
    books: Books,
    /// By deadline.
    tasks: BTreeMap<(Duration, SpecId), Task>,
    /// The bandwidth that the kernel keeps for ordinary threads.
    reserved: Utilization,
    /// How many of the tasks declare a blocking.
    blocked: usize,
}

#[derive(Debug)]
struct Admitted {
    /// Its place in `processors`.
    place: usize,
    task: Task,
}

/// The task as the kernel serves it: a deadline shorter than the period is its period as well.
///
/// The kernel's constant-bandwidth server holds a thread that wakes up between its deadline and its next
/// period until that period. Its periods begin when the thread is attached, and not when it is released: so
/// each job of a thread could be held, for up to T − D. A server with T = D holds nobody who is released at
/// most every D.
pub(crate) fn served(task: Task) -> Task {
    let period = task.period.min(task.deadline);
    Task { blocking: task.blocking, ..Task::new(task.runtime, period, task.deadline, task.guaranteed) }
}

/// Whether the kernel takes a deadline as the period of its server.
pub(crate) fn check_served(deadline: Duration, settings: &Settings) -> Result<(), Refusal> {
    let least = settings.limits.least_period;
    if deadline >= least {
        return Ok(());
    }
    let bound =
        format!("at least {least} (sched_deadline_period_min_us, since the kernel gets it as the period)");
    Err(Refusal::Bound(Bound { parameter: "deadline_ns", value: deadline.ns(), bound }))
}

/// The parameters of a request, with everything that is mandatory. The period is that of the kernel's server.
struct Request {
    least: Duration,
    most: Duration,
    period: Duration,
    deadline: Duration,
    blocking: Duration,
}

impl Request {
    fn from_parameters(parameters: &Parameters, settings: &Settings) -> Result<Self, Refusal> {
        let least = parameters.runtime.ok_or(Refusal::Lacks("runtime_ns"))?;
        let period = parameters.period.ok_or(Refusal::Lacks("period_ns"))?;
        parameters.check(&settings.limits).map_err(Refusal::Bound)?;
        parameters.check_deadline_class(&settings.limits).map_err(Refusal::Bound)?;
        settings.check_blocking(parameters)?;
        let most = parameters.desired_runtime.map_or(least, |desired| desired.max(least));
        let deadline = parameters.deadline.unwrap_or(period);
        check_served(deadline, settings)?;
        let blocking = parameters.blocking.unwrap_or_default();
        Ok(Self { least, most, period: period.min(deadline), deadline, blocking })
    }
}

impl Edf {
    pub(crate) fn new(settings: Settings) -> Self {
        // The throttle does not concern SCHED_DEADLINE.
        let counts = |reserve: &Reserve| reserve.kind == ReserveKind::FairServer;
        let processor = |&number| Processor {
            books: Books::new(number),
            tasks: BTreeMap::new(),
            blocked: 0,
            reserved: settings
                .reserves_on(number)
                .iter()
                .filter(|it| counts(it))
                .map(Reserve::bandwidth)
                .sum(),
        };
        let processors = settings.processors.iter().map(processor).collect();
        Self { threshold: settings.limit(), processors, specs: FxHashMap::default(), settings }
    }

    fn books_without(&self, replaced: Option<SpecId>) -> Vec<Books> {
        let mut books: Vec<_> = self.processors.iter().map(|processor| processor.books.clone()).collect();
        if let Some(admitted) = replaced.and_then(|spec| self.specs.get(&spec)) {
            books[admitted.place].remove(Some(&admitted.task));
        }
        books
    }

    /// Q^a by Equations 3 and 4.
    fn by_utilization(&self, request: &Request, books: &Books) -> Result<Duration, String> {
        let window = request.period.min(request.deadline);
        self.within_threshold(request, window, books.utilization, books.processor, self.threshold)
    }

    /// The longest runtime in every `window` within the threshold.
    fn within_threshold(
        &self,
        request: &Request,
        window: Duration,
        taken: Utilization,
        processor: u32,
        threshold: Utilization,
    ) -> Result<Duration, String> {
        let needed = Utilization::new(request.least, window);
        let free = threshold - taken;
        if needed > free {
            return Err(exceeds(threshold, processor, taken, needed));
        }
        Ok(request.most.min(free.runtime_in(window)))
    }

    /// Q^a by processor demand: Equation 4 in spirit, the longest that passes.
    fn by_demand(
        &self,
        request: &Request,
        books: &Books,
        place: usize,
        replaced: Option<SpecId>,
        work: &mut Work,
    ) -> Result<Duration, String> {
        let reserved = self.processors[place].reserved;
        let threshold = self.threshold.min(Utilization::ONE - reserved);
        let most = self
            .within_threshold(request, request.period, books.rate, books.processor, threshold)?
            .min(request.deadline);
        let task = Task::new(most, request.period, request.deadline, true);
        let task = Task { blocking: request.blocking, ..task };
        let is_blocked = self.processors[place].blocked > 0 || request.blocking > Duration::ZERO;
        if !is_blocked && books.utilization + task.utilization() + reserved <= Utilization::ONE {
            return Ok(most);
        }
        let others = self.processors[place].tasks.iter().filter(|((_, spec), _)| Some(*spec) != replaced);
        let others: Vec<Task> = others.map(|(_, &task)| task).collect();
        longest_runtime(Others { tasks: &others, reserved }, task, request.least, work)
            .map_err(|unproven| unproven.message("processor demand", books.processor))
    }
}

impl Plugin for Edf {
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
        let request = match Request::from_parameters(parameters, &self.settings) {
            Ok(request) => request,
            Err(refusal) => return Answer::No(refusal),
        };
        let books = self.books_without(replacing);
        let places = least_loaded(&books, may_use, |books| (books.utilization, books.specs));
        let offer = |place: usize, runtime, ignored| Offer {
            processor: books[place].processor,
            accepted_runtime: Some(runtime),
            ignored,
        };
        let mut work = Work::default();
        let found = match self.settings.test {
            // If it does not fit the least loaded processor, it fits none.
            Test::Utilization => first_fit(&places[..places.len().min(1)], |place| {
                self.by_utilization(&request, &books[place])
            }),
            Test::Exact => first_fit(&places, |place| {
                self.by_demand(&request, &books[place], place, replacing, &mut work)
            }),
        };
        match found {
            Ok((place, accepted)) => Answer::Ok(offer(place, accepted, false)),
            Err(_) if parameters.ignore_admission && !places.is_empty() => {
                Answer::Ok(offer(places[0], request.least, true))
            }
            Err(why) => Answer::No(Refusal::Unschedulable(why)),
        }
    }

    fn admit(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer) {
        self.release(spec);
        let place = self.processors.iter().position(|processor| processor.books.processor == offer.processor);
        let task =
            Task::from_parameters(parameters, offer.accepted_runtime.or(parameters.runtime), !offer.ignored);
        if let (Some(place), Some(task)) = (place, task.map(served)) {
            let processor = &mut self.processors[place];
            processor.books.add(Some(&task));
            processor.tasks.insert((task.deadline, spec), task);
            processor.blocked += usize::from(task.blocking > Duration::ZERO);
            self.specs.insert(spec, Admitted { place, task });
        }
    }

    fn release(&mut self, spec: SpecId) {
        if let Some(admitted) = self.specs.remove(&spec) {
            let processor = &mut self.processors[admitted.place];
            processor.books.remove(Some(&admitted.task));
            processor.tasks.remove(&(admitted.task.deadline, spec));
            processor.blocked -= usize::from(admitted.task.blocking > Duration::ZERO);
        }
    }

    fn assignment(&self, spec: SpecId) -> Option<Assignment> {
        let Admitted { place, task } = self.specs.get(&spec)?;
        let policy =
            AssignedPolicy::Deadline { runtime: task.runtime, deadline: task.deadline, period: task.period };
        Some(Assignment { processor: self.processors[*place].books.processor, policy })
    }

    fn shifted(&mut self) -> bool {
        false
    }

    fn loads(&self) -> Vec<Load> {
        self.processors.iter().map(|processor| processor.books.load()).collect()
    }
}
