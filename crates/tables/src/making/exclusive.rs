//! Processors that tasks have for themselves.
//!
//! Each such task gets one of those that it may use. Of the rest, the others may use what they could before.
//! Which ones remain, matters to the others: where there is no table by the first choice, the next one is
//! tried. Choices that leave as many of all kinds of processors are the same to them.

use super::Refusal;
use punctual_model::TableTask;
use std::collections::BTreeSet;

/// Most choices that are tried, and steps to find them.
const MOST_CHOICES: usize = 64;
const MOST_STEPS: usize = 10_000;

/// By choice, the processors that each task may use; best first.
pub(super) fn choices(processors: &[u32], tasks: &[TableTask]) -> Result<Vec<Vec<Vec<u32>>>, Refusal> {
    let mut choices = Choices::new(processors, tasks);
    let first = choices.matching()?;
    choices.keep(&first);
    choices.search(0, &mut vec![None; processors.len()]);
    let left: Vec<Result<Vec<Vec<u32>>, Refusal>> =
        choices.found.iter().map(|owner_of| allowed(processors, tasks, owner_of)).collect();
    match left.iter().any(Result::is_ok) {
        true => Ok(left.into_iter().flatten().collect()),
        false => left.into_iter().collect(),
    }
}

/// By task, with these owners of processors.
fn allowed(
    processors: &[u32],
    tasks: &[TableTask],
    owner_of: &[Option<usize>],
) -> Result<Vec<Vec<u32>>, Refusal> {
    let of = |(place, task): (usize, &TableTask)| {
        let mine = |number: &u32| {
            let owner = owner_of[index(processors, *number)];
            if task.exclusive { owner == Some(place) } else { owner.is_none() }
        };
        let left: Vec<u32> = task.allowed(processors).iter().copied().filter(mine).collect();
        match left.is_empty() {
            true => Err(Refusal::NoProcessor { task: task.name.clone(), exclusive: false }),
            false => Ok(left),
        }
    };
    tasks.iter().enumerate().map(of).collect()
}

fn index(processors: &[u32], number: u32) -> usize {
    processors.partition_point(|&other| other < number)
}

struct Choices<'a> {
    processors: &'a [u32],
    tasks: &'a [TableTask],
    /// The tasks that need a processor for themselves.
    owners: Vec<usize>,
    /// By processor, who may use it: of the other tasks, and of all.
    kinds: Vec<(Vec<bool>, Vec<bool>)>,
    /// How many processors of each kind were taken by choices so far.
    known: BTreeSet<Vec<Vec<bool>>>,
    /// The owners of processors.
    found: Vec<Vec<Option<usize>>>,
    steps: usize,
}

impl<'a> Choices<'a> {
    fn new(processors: &'a [u32], tasks: &'a [TableTask]) -> Choices<'a> {
        let users = |number: u32, others: bool| {
            let may = |task: &TableTask| task.allowed(processors).contains(&number);
            tasks.iter().map(|task| may(task) && !(others && task.exclusive)).collect::<Vec<bool>>()
        };
        Choices {
            processors,
            tasks,
            owners: (0..tasks.len()).filter(|&task| tasks[task].exclusive).collect(),
            kinds: processors.iter().map(|&number| (users(number, true), users(number, false))).collect(),
            known: BTreeSet::new(),
            found: Vec::new(),
            steps: 0,
        }
    }

    /// A processor for each owner, if that is possible.
    fn matching(&self) -> Result<Vec<Option<usize>>, Refusal> {
        let mut owner_of: Vec<Option<usize>> = vec![None; self.processors.len()];
        for &owner in &self.owners {
            let mut seen = vec![false; self.processors.len()];
            if !give(owner, self.processors, self.tasks, &mut owner_of, &mut seen) {
                let task = self.tasks[owner].name.clone();
                return Err(Refusal::NoProcessor { task, exclusive: true });
            }
        }
        Ok(owner_of)
    }

    fn keep(&mut self, owner_of: &[Option<usize>]) {
        let taken = owner_of.iter().zip(&self.kinds).filter(|(owner, _)| owner.is_some());
        let mut taken: Vec<Vec<bool>> = taken.map(|(_, (others, _))| others.clone()).collect();
        taken.sort_unstable();
        if self.known.insert(taken) {
            self.found.push(owner_of.to_vec());
        }
    }

    /// All other choices for the owners from this one on.
    fn search(&mut self, next: usize, owner_of: &mut Vec<Option<usize>>) {
        self.steps += 1;
        if self.steps > MOST_STEPS || self.found.len() >= MOST_CHOICES {
            return;
        }
        let Some(&owner) = self.owners.get(next) else { return self.keep(owner_of) };
        let mut tried: Vec<usize> = Vec::new();
        for &number in self.tasks[owner].allowed(self.processors).iter().rev() {
            let place = index(self.processors, number);
            let is_new = tried.iter().all(|&other| self.kinds[other].1 != self.kinds[place].1);
            if owner_of[place].is_none() && is_new {
                tried.push(place);
                owner_of[place] = Some(owner);
                self.search(next + 1, owner_of);
                owner_of[place] = None;
            }
        }
    }
}

/// Finds a processor for a task, from the last on; tasks that have one may be moved to another.
fn give(
    task: usize,
    processors: &[u32],
    tasks: &[TableTask],
    owner_of: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for &number in tasks[task].allowed(processors).iter().rev() {
        let place = index(processors, number);
        if std::mem::replace(&mut seen[place], true) {
            continue;
        }
        let is_free = match owner_of[place] {
            None => true,
            Some(other) => give(other, processors, tasks, owner_of, seen),
        };
        if is_free {
            owner_of[place] = Some(task);
            return true;
        }
    }
    false
}
