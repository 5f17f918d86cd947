//! Several processors without migration: each task has one. Which one, is bin packing, so heuristics decide;
//! whether a processor can take a task, EDF decides exactly.
//!
//! Tried in this order, until one succeeds: worst fit, which leaves slack on every processor, and first fit,
//! which packs tighter; first with tasks that must keep an order on one processor, where that costs nothing,
//! then with each for itself in windows that do not overlap.

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
    Err(refusal.unwrap_or(Refusal::Unplaced { tasks: Vec::new(), closest: None }))
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
    let demand = |item: &[usize]| item.iter().map(|&task| problem.demand(task)).sum::<u64>();
    let mut items: Vec<&Vec<usize>> = items.iter().collect();
    items.sort_by_key(|item| Reverse(demand(item)));
    let empty = |&processor: &u32| Bin { processor, tasks: Vec::new(), demand: 0, runs: Vec::new() };
    let mut bins: Vec<Bin> = problem.processors.iter().map(empty).collect();
    for item in items {
        let needed = demand(item);
        let mut order: Vec<usize> = (0..bins.len()).collect();
        if method == Method::WorstFit {
            order.sort_by_key(|&bin| bins[bin].demand);
        }
        let mut closest: Option<(u32, Overload)> = None;
        let fits = order.into_iter().find_map(|place| {
            let bin = &bins[place];
            if !item.iter().all(|&task| problem.allowed[task].contains(&bin.processor)) {
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
            return Err(Refusal::Unplaced { tasks, closest });
        };
        bins[place] = bin;
    }
    Ok(bins.into_iter().flat_map(|bin| bin.runs).collect())
}
