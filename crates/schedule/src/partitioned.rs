//! What RM, FP and RR have in common: specs on processors, each with a key of urgency that becomes a priority
//! (see `levels`).

use crate::books::Books;
use crate::levels::Levels;
use crate::reserve::Reserve;
use crate::response::FixedPriorities;
use crate::task::Task;
use crate::work::{Unproven, Work};
use crate::{AssignedPolicy, Assignment, Offer, Parameters, Settings, SpecId};
use punctual_analysis::Platform;
use punctual_model::Duration;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Books, levels and admitted specs.
#[derive(Debug)]
pub(crate) struct Partitioned {
    processors: Vec<Processor>,
    specs: FxHashMap<SpecId, Admitted>,
    policy: fn(u32) -> AssignedPolicy,
    shifted: bool,
}

#[derive(Debug)]
struct Processor {
    books: Books,
    levels: Levels,
    /// Specs that declare a runtime and a period, most urgent first.
    tasks: BTreeMap<(u64, SpecId), Task>,
    /// The others: nothing below them can be guaranteed.
    unbounded: BTreeSet<(u64, SpecId)>,
    /// What its kernel takes, if that counts.
    platform: Option<Platform>,
    /// What it keeps for ordinary threads.
    reserves: Vec<Reserve>,
}

#[derive(Debug)]
struct Admitted {
    /// Its place in `processors`.
    place: usize,
    key: u64,
    task: Option<Task>,
}

/// How urgent a spec is: a smaller key is more urgent. `wish` is the priority it requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Urgency {
    pub(crate) key: u64,
    pub(crate) wish: Option<u32>,
}

impl Partitioned {
    pub(crate) fn new(settings: &Settings, policy: fn(u32) -> AssignedPolicy) -> Self {
        let (lowest, highest) = settings.priorities;
        let processor = |&number| Processor {
            books: Books::new(number),
            levels: Levels::new(lowest, highest),
            tasks: BTreeMap::new(),
            unbounded: BTreeSet::new(),
            platform: settings.platforms.iter().find(|platform| platform.cpu == number).cloned(),
            reserves: settings.reserves_on(number),
        };
        Self {
            processors: settings.processors.iter().map(processor).collect(),
            specs: FxHashMap::default(),
            policy,
            shifted: false,
        }
    }

    /// The books as if one spec had been released.
    pub(crate) fn books_without(&self, replaced: Option<SpecId>) -> Vec<Books> {
        let mut books: Vec<_> = self.processors.iter().map(|processor| processor.books.clone()).collect();
        if let Some(admitted) = replaced.and_then(|spec| self.specs.get(&spec)) {
            books[admitted.place].remove(admitted.task.as_ref());
        }
        books
    }

    /// Whether a spec can join the processor at `place`: every guaranteed task runs above every spec that
    /// declares no runtime or no period, and the task and all less urgent ones meet their deadlines by
    /// response-time analysis. `task` is `None` for a spec that cannot be analysed: it delays none of those
    /// above it, but may have the kernel take time from all for ordinary threads. `books` are those without
    /// the spec that is replaced. Tests a copy of the levels to which the spec has been added.
    pub(crate) fn prove(
        &self,
        place: usize,
        books: &Books,
        task: Option<Task>,
        urgency: Urgency,
        replaced: Option<SpecId>,
        work: &mut Work,
    ) -> Result<(), String> {
        let processor = &self.processors[place];
        let (levels, replaced) = self.levels_with(place, urgency, replaced);
        let reserves = books.acting(&processor.reserves, task.as_ref());
        match task {
            Some(_) => processor.above_unbounded(&levels, urgency.key, replaced)?,
            None => processor.below_guaranteed(&levels, urgency.key, replaced)?,
        }
        if task.is_none() && reserves.is_empty() {
            return Ok(());
        }
        processor.meets_deadlines(&levels, task, urgency.key, replaced, &reserves, work)
    }

    /// The first part of `prove`: whether guaranteed tasks would still run above all specs that declare no
    /// runtime or no period. Takes no time where there are only tasks, or none.
    pub(crate) fn keeps_order(
        &self,
        place: usize,
        task: Option<Task>,
        urgency: Urgency,
        replaced: Option<SpecId>,
    ) -> Result<(), String> {
        let processor = &self.processors[place];
        match task {
            Some(_) if processor.unbounded.is_empty() => return Ok(()),
            None if processor.tasks.is_empty() => return Ok(()),
            _ => {}
        }
        let (levels, replaced) = self.levels_with(place, urgency, replaced);
        match task {
            Some(_) => processor.above_unbounded(&levels, urgency.key, replaced),
            None => processor.below_guaranteed(&levels, urgency.key, replaced),
        }
    }

    /// A copy of a processor's levels with a spec added, and the spec that it replaces, if that is there.
    fn levels_with(
        &self,
        place: usize,
        urgency: Urgency,
        replaced: Option<SpecId>,
    ) -> (Levels, Option<(u64, SpecId)>) {
        let mut levels = self.processors[place].levels.clone();
        let replaced = replaced.and_then(|spec| {
            Some((self.specs.get(&spec).filter(|admitted| admitted.place == place)?.key, spec))
        });
        if let Some((key, _)) = replaced {
            levels.remove(key);
        }
        levels.insert(urgency.key, urgency.wish);
        (levels, replaced)
    }

    pub(crate) fn admit(&mut self, spec: SpecId, parameters: &Parameters, urgency: Urgency, offer: Offer) {
        self.enter(spec, parameters, urgency.key, offer, |levels| levels.insert(urgency.key, urgency.wish));
    }

    /// Like `admit`, at the priority it had before.
    pub(crate) fn restore(
        &mut self,
        spec: SpecId,
        parameters: &Parameters,
        urgency: Urgency,
        offer: Offer,
        priority: u32,
    ) {
        self.enter(spec, parameters, urgency.key, offer, |levels| levels.restore(urgency.key, priority));
    }

    fn enter(
        &mut self,
        spec: SpecId,
        parameters: &Parameters,
        key: u64,
        offer: Offer,
        insert: impl FnOnce(&mut Levels) -> bool,
    ) {
        self.release(spec);
        let Some(place) =
            self.processors.iter().position(|processor| processor.books.processor == offer.processor)
        else {
            return;
        };
        let task = Task::from_parameters(parameters, offer.accepted_runtime, !offer.ignored);
        let processor = &mut self.processors[place];
        processor.books.add(task.as_ref());
        self.shifted |= insert(&mut processor.levels);
        match task {
            Some(task) => drop(processor.tasks.insert((key, spec), task)),
            None => drop(processor.unbounded.insert((key, spec))),
        }
        self.specs.insert(spec, Admitted { place, key, task });
    }

    pub(crate) fn release(&mut self, spec: SpecId) {
        if let Some(admitted) = self.specs.remove(&spec) {
            let processor = &mut self.processors[admitted.place];
            processor.books.remove(admitted.task.as_ref());
            processor.tasks.remove(&(admitted.key, spec));
            processor.unbounded.remove(&(admitted.key, spec));
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

impl Processor {
    /// Whether a task with this key runs above all specs that declare no runtime or no period.
    fn above_unbounded(
        &self,
        levels: &Levels,
        key: u64,
        replaced: Option<(u64, SpecId)>,
    ) -> Result<(), String> {
        let Some(&(other, _)) = self.unbounded.iter().find(|&&id| Some(id) != replaced) else {
            return Ok(());
        };
        let (own, theirs) = (levels.priority(key), levels.priority(other));
        if own > theirs {
            return Ok(());
        }
        Err(format!(
            "processor {} already has a spec without a declared runtime and period, and this one would not \
             run above it{}, so its deadline cannot be guaranteed",
            self.books.processor,
            no_room(key < other)
        ))
    }

    /// Whether a spec with this key, which declares no runtime or no period, runs below all guaranteed tasks.
    fn below_guaranteed(
        &self,
        levels: &Levels,
        key: u64,
        replaced: Option<(u64, SpecId)>,
    ) -> Result<(), String> {
        let mut guaranteed =
            self.tasks.iter().rev().filter(|&(&id, task)| task.guaranteed && Some(id) != replaced);
        let Some((&(other, _), _)) = guaranteed.next() else { return Ok(()) };
        let (own, theirs) = (levels.priority(key), levels.priority(other));
        if own < theirs {
            return Ok(());
        }
        Err(format!(
            "processor {}: a spec without a declared runtime and period must run below all specs that \
             declare both, and this one would not{}",
            self.books.processor,
            no_room(key > other)
        ))
    }

    /// Response-time analysis of `task` and all that it can delay; of all, where the kernel may take
    /// `reserves`.
    fn meets_deadlines(
        &self,
        levels: &Levels,
        task: Option<Task>,
        key: u64,
        replaced: Option<(u64, SpecId)>,
        reserves: &[Reserve],
        work: &mut Work,
    ) -> Result<(), String> {
        let mut kept = self
            .tasks
            .iter()
            .filter(|&(id, _)| Some(*id) != replaced)
            .map(|(&(key, _), &task)| (key, task))
            .peekable();
        let mut tasks = FixedPriorities::on(self.platform.as_ref(), reserves);
        let mut added = task;
        let (mut first, mut place_of_added) = (0, usize::MAX);
        for (level, last) in levels.last_keys().enumerate() {
            while let Some((_, task)) = kept.next_if(|&(kept, _)| kept <= last) {
                tasks.push(task);
            }
            if key <= last {
                if let Some(task) = added.take() {
                    // What ordinary threads get is taken from all.
                    first = if reserves.is_empty() { level } else { 0 };
                    place_of_added = tasks.tasks().len();
                    tasks.push(task);
                }
            }
            tasks.end_level();
        }
        let shared = if levels.shares() {
            "; the plugin has fewer priorities than needed, so some specs share one"
        } else {
            ""
        };
        let kernel = if self.platform.is_some() { ", with what the kernel takes" } else { "" };
        let mut reserved: String = reserves.iter().map(|reserve| format!(", with {reserve}")).collect();
        if !reserves.is_empty() {
            let is_there = self.unbounded.iter().any(|&id| Some(id) != replaced);
            reserved += match (task, is_there) {
                (None, _) => ", which acts, as this spec declares no runtime or no period",
                (_, true) => ", which acts, as a spec there declares no runtime or no period",
                _ => "",
            };
        }
        tasks.prove(first, work).map_err(|unproven| {
            let processor = self.books.processor;
            match unproven {
                Unproven::Late { task, response } => {
                    let whose = if task == place_of_added { "this spec" } else { "an admitted spec" };
                    let Task { runtime, deadline, blocking, .. } = tasks.tasks()[task];
                    let blocked = match blocking.is_zero() {
                        true => String::new(),
                        false => format!(", blocking {blocking}"),
                    };
                    format!(
                        "response-time analysis, processor {processor}: {whose} (runtime {runtime}, deadline \
                         {deadline}{blocked}) could take {} or more{kernel}{reserved}{shared}",
                        Duration::from_ns(u64::try_from(response).unwrap_or(u64::MAX))
                    )
                }
                other => other.message("response-time analysis", processor),
            }
        })
    }
}

/// Why it fails although the order is right: the range of priorities is too narrow.
fn no_room(ordered: bool) -> &'static str {
    if ordered { ", since the plugin has no priority left between them" } else { "" }
}
