//! Processors that tasks have for themselves.
//!
//! Each such task gets one of those that it may use: a matching, so that all get one if that is possible. Of
//! the rest, the others may use what they could before.

use super::Refusal;
use punctual_model::TableTask;

/// The processors that each task may use.
pub(super) fn allowed(processors: &[u32], tasks: &[TableTask]) -> Result<Vec<Vec<u32>>, Refusal> {
    let owners: Vec<usize> = (0..tasks.len()).filter(|&task| tasks[task].exclusive).collect();
    let mut owner_of: Vec<Option<usize>> = vec![None; processors.len()];
    for &owner in &owners {
        let mut seen = vec![false; processors.len()];
        if !give(owner, processors, tasks, &mut owner_of, &mut seen) {
            return Err(Refusal::NoProcessor { task: tasks[owner].name.clone(), exclusive: true });
        }
    }
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
