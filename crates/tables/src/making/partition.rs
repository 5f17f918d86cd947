//! Several processors without migration: each task has one. Which one, is bin packing, so heuristics decide;
//! whether a processor can take a task, EDF decides exactly.
//!
//! Tried in this order, until one succeeds: worst fit, which leaves slack on every processor, and first fit,
//! which packs tighter; first with tasks that must keep an order on one processor, where that costs nothing,
//! then with each for itself in windows that do not overlap. Then all partitions are searched, as long as
//! that takes no more than a few seconds: tasks with few processors first, and a processor that is empty only
//! if no other such one has been tried.

use super::windows::Windows;
use super::{Problem, Refusal, uniprocessor};
use crate::slot_shifting::Overload;
use punctual_model::TableRun;
use punctual_model::table::Method;
use std::cmp::Reverse;

/// The schedule, the windows that it keeps, and how it was found.
pub(super) fn schedule(problem: &Problem<'_>) -> Result<(Method, Windows, Vec<TableRun>), Refusal> {
    let together = Windows::overlapping(problem.tasks)?;
    let apart = Windows::disjoint(problem.tasks)?;
    let has_order = problem.tasks.iter().any(|task| !task.after.is_empty());
    let items = [
        (together, components(problem)),
        (apart, problem.all().into_iter().map(|task| vec![task]).collect()),
    ];
    let tries = if has_order { &items[..] } else { &items[1..] };
    let mut refusal = None;
    for (windows, items) in tries {
        for method in [Method::WorstFit, Method::FirstFit] {
            match place(problem, windows, items, method) {
                Ok(runs) => return Ok((method, windows.clone(), runs)),
                Err(refused) => refusal = Some(refused),
            }
        }
    }
    let mut is_certain = !has_order;
    for (windows, items) in tries {
        let mut search = Search::new(problem, windows, items);
        match search.place(0) {
            Some(runs) => return Ok((Method::Search, windows.clone(), runs)),
            None => is_certain &= search.left > 0,
        }
    }
    match refusal {
        Some(Refusal::Unplaced { tasks, closest, .. }) => {
            Err(Refusal::Unplaced { tasks, closest, is_certain })
        }
        other => Err(other.unwrap_or(Refusal::Unplaced { tasks: Vec::new(), closest: None, is_certain })),
    }
}

/// Jobs that the search gives to EDF at most, all in all.
const MOST_WORK: u64 = 1 << 21;

/// A search of all partitions.
struct Search<'a> {
    problem: &'a Problem<'a>,
    windows: &'a Windows,
    /// Those with few processors first, then those that need much.
    items: Vec<&'a Vec<usize>>,
    bins: Vec<Bin>,
    /// Of the work that may be done; none if the search has not ended.
    left: u64,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, windows: &'a Windows, items: &'a [Vec<usize>]) -> Search<'a> {
        let empty = |&processor: &u32| Bin { processor, tasks: Vec::new(), demand: 0, runs: Vec::new() };
        let bins: Vec<Bin> = problem.processors.iter().map(empty).collect();
        let may_use = |item: &[usize]| {
            problem.processors.iter().filter(|&&processor| problem.may_use(item, processor)).count()
        };
        let mut items: Vec<&Vec<usize>> = items.iter().collect();
        items.sort_by_key(|item| (may_use(item), Reverse(problem.demand_of(item))));
        Search { problem, windows, items, bins, left: MOST_WORK }
    }

    /// Whether the same tasks may use two processors.
    fn are_alike(&self, one: u32, other: u32) -> bool {
        self.problem.allowed.iter().all(|allowed| allowed.contains(&one) == allowed.contains(&other))
    }

    /// The runs of all, if the items from this one on have places beside those before.
    fn place(&mut self, next: usize) -> Option<Vec<TableRun>> {
        let Some(&item) = self.items.get(next) else {
            return Some(self.bins.iter().flat_map(|bin| bin.runs.iter().copied()).collect());
        };
        let demand = self.problem.demand_of(item);
        let mut order: Vec<usize> = (0..self.bins.len()).collect();
        order.sort_by_key(|&bin| self.bins[bin].demand);
        let mut empty: Vec<u32> = Vec::new();
        for bin in order {
            let processor = self.bins[bin].processor;
            let is_empty = self.bins[bin].tasks.is_empty();
            let is_known = is_empty && empty.iter().any(|&other| self.are_alike(other, processor));
            let is_full = self.bins[bin].demand + demand > self.problem.slots;
            if is_known || is_full || !self.problem.may_use(item, processor) {
                continue;
            }
            empty.extend(is_empty.then_some(processor));
            let Some(with) = self.with(bin, item, demand) else { continue };
            let without = std::mem::replace(&mut self.bins[bin], with);
            if let Some(runs) = self.place(next + 1) {
                return Some(runs);
            }
            self.bins[bin] = without;
        }
        None
    }

    /// A processor with an item more; `None` if EDF does not serve it, or nothing is left of the work.
    fn with(&mut self, bin: usize, item: &[usize], demand: u64) -> Option<Bin> {
        let Bin { processor, tasks, demand: before, .. } = &self.bins[bin];
        let mut tasks = [&tasks[..], item].concat();
        tasks.sort_unstable();
        let jobs = self.problem.jobs_of(self.windows, &tasks);
        self.left = self.left.saturating_sub(jobs.len() as u64);
        if self.left == 0 {
            return None;
        }
        let runs = uniprocessor::runs(&jobs, self.problem.slots, *processor).ok()?;
        Some(Bin { processor: *processor, tasks, demand: before + demand, runs })
    }
}

/// Tasks that must keep an order, directly or through others.
fn components(problem: &Problem<'_>) -> Vec<Vec<usize>> {
    let mut of: Vec<usize> = problem.all();
    for (task, it) in problem.tasks.iter().enumerate() {
        for &before in &it.after {
            let (one, other) = (of[task], of[before]);
            of.iter_mut().filter(|component| **component == one).for_each(|component| *component = other);
        }
    }
    let members = |component: usize| (0..of.len()).filter(|&task| of[task] == component).collect::<Vec<_>>();
    (0..of.len()).map(members).filter(|members| !members.is_empty()).collect()
}

/// What is on a processor.
struct Bin {
    processor: u32,
    tasks: Vec<usize>,
    demand: u64,
    runs: Vec<TableRun>,
}

fn place(
    problem: &Problem<'_>,
    windows: &Windows,
    items: &[Vec<usize>],
    method: Method,
) -> Result<Vec<TableRun>, Refusal> {
    let mut items: Vec<&Vec<usize>> = items.iter().collect();
    items.sort_by_key(|item| Reverse(problem.demand_of(item)));
    let empty = |&processor: &u32| Bin { processor, tasks: Vec::new(), demand: 0, runs: Vec::new() };
    let mut bins: Vec<Bin> = problem.processors.iter().map(empty).collect();
    for item in items {
        let needed = problem.demand_of(item);
        let mut order: Vec<usize> = (0..bins.len()).collect();
        if method == Method::WorstFit {
            order.sort_by_key(|&bin| bins[bin].demand);
        }
        let mut closest: Option<(u32, Overload)> = None;
        let fits = order.into_iter().find_map(|place| {
            let bin = &bins[place];
            if !problem.may_use(item, bin.processor) {
                return None;
            }
            let mut tasks = [&bin.tasks[..], item].concat();
            tasks.sort_unstable();
            match uniprocessor::runs(&problem.jobs_of(windows, &tasks), problem.slots, bin.processor) {
                Ok(runs) => {
                    let demand = bin.demand + needed;
                    Some((place, Bin { processor: bin.processor, tasks, demand, runs }))
                }
                Err(overload) => {
                    let excess = |overload: &Overload| overload.needed - (overload.to - overload.from);
                    if closest.is_none_or(|(_, least)| excess(&overload) < excess(&least)) {
                        closest = Some((bin.processor, overload));
                    }
                    None
                }
            }
        });
        let Some((place, bin)) = fits else {
            let tasks = item.iter().map(|&task| problem.tasks[task].name.clone()).collect();
            return Err(Refusal::Unplaced { tasks, closest, is_certain: false });
        };
        bins[place] = bin;
    }
    Ok(bins.into_iter().flat_map(|bin| bin.runs).collect())
}
