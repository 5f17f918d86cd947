//! What RM, FP and RR have in common: specs on processors, each with a key of urgency that becomes a priority (see `levels`).

use crate::books::{Books, least_loaded};
use crate::levels::Levels;
use crate::task::Task;
use crate::{Assignment, Offer, Parameters, Policy, Settings, SpecId};
use std::collections::BTreeMap;

/// Books, levels and admitted specs.
#[derive(Debug)]
pub(crate) struct Partitioned {
    processors: Vec<Processor>,
    specs: BTreeMap<SpecId, Admitted>,
    policy: fn(u32) -> Policy,
    shifted: bool,
}

#[derive(Debug)]
struct Processor {
    books: Books,
    levels: Levels,
}

#[derive(Debug)]
struct Admitted {
    /// Its place in `processors`.
    place: usize,
    key: u64,
    task: Option<Task>,
}

/// How urgent a spec is: the smaller, the more; and the priority that it would like to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Urgency {
    pub(crate) key: u64,
    pub(crate) wish: Option<u32>,
}

impl Partitioned {
    pub(crate) fn new(settings: &Settings, policy: fn(u32) -> Policy) -> Self {
        let (lowest, highest) = settings.priorities;
        let processor = |&number| Processor { books: Books::new(number), levels: Levels::new(lowest, highest) };
        Self { processors: settings.processors.iter().map(processor).collect(), specs: BTreeMap::new(), policy, shifted: false }
    }

    /// The books with one spec counted as gone.
    pub(crate) fn books_without(&self, replaced: Option<SpecId>) -> Vec<Books> {
        let mut books: Vec<_> = self.processors.iter().map(|processor| processor.books.clone()).collect();
        if let Some(admitted) = replaced.and_then(|spec| self.specs.get(&spec)) {
            books[admitted.place].strike(admitted.task.as_ref());
        }
        books
    }

    pub(crate) fn admit(&mut self, spec: SpecId, parameters: &Parameters, urgency: Urgency, offer: Offer) {
        self.enter(spec, parameters, urgency.key, offer, |levels| levels.insert(urgency.key, urgency.wish));
    }

    /// As `admit`, at the priority that it had.
    pub(crate) fn restore(&mut self, spec: SpecId, parameters: &Parameters, urgency: Urgency, offer: Offer, priority: u32) {
        self.enter(spec, parameters, urgency.key, offer, |levels| levels.restore(urgency.key, priority));
    }

    fn enter(&mut self, spec: SpecId, parameters: &Parameters, key: u64, offer: Offer, insert: impl FnOnce(&mut Levels) -> bool) {
        self.release(spec);
        let Some(place) = self.processors.iter().position(|processor| processor.books.processor == offer.processor) else { return };
        let task = Task::of(parameters, offer.accepted_runtime, !offer.ignored);
        let processor = &mut self.processors[place];
        processor.books.enter(task.as_ref());
        self.shifted |= insert(&mut processor.levels);
        self.specs.insert(spec, Admitted { place, key, task });
    }

    pub(crate) fn release(&mut self, spec: SpecId) {
        if let Some(admitted) = self.specs.remove(&spec) {
            let processor = &mut self.processors[admitted.place];
            processor.books.strike(admitted.task.as_ref());
            self.shifted |= processor.levels.remove(admitted.key);
        }
    }

    pub(crate) fn assignment(&self, spec: SpecId) -> Option<Assignment> {
        let admitted = self.specs.get(&spec)?;
        let processor = &self.processors[admitted.place];
        let priority = processor.levels.priority(admitted.key)?;
        Some(Assignment { processor: processor.books.processor, policy: (self.policy)(priority) })
    }

    pub(crate) fn take_shifted(&mut self) -> bool {
        std::mem::take(&mut self.shifted)
    }

    pub(crate) fn loads(&self) -> Vec<crate::Load> {
        self.processors.iter().map(|processor| processor.books.load()).collect()
    }
}

/// The first of them by `measure`.
pub(crate) fn worst_fit<K: Ord>(books: &[Books], measure: impl Fn(&Books) -> K) -> usize {
    least_loaded(books, measure)[0]
}
