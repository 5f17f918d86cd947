//! The processes that a command has started, so that they end with it. Not those that it has left behind:
//! whose parent has ended belongs to nobody.

use punctual_linux::proc::{self, Stat};
use std::collections::BTreeMap;

/// A process: its number may later be another's, but not with the same start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// In ticks since the boot.
    start: u64,
}

/// Asks a process, which is our child, and all that it has started to end (SIGTERM): parents first, so that
/// none starts another child when one has ended.
pub fn ask_to_end(process: u32) {
    let processes = processes();
    for number in generations(process, &processes) {
        if number == process || read(number).map(|it| it.start) == Some(processes[&number].start) {
            // SAFETY: takes plain numbers; the process is our child, or a descendant of it.
            unsafe { libc::kill(number as i32, libc::SIGTERM) };
        }
    }
}

/// The process, then its children, theirs, and so on.
fn generations(process: u32, processes: &BTreeMap<u32, Process>) -> Vec<u32> {
    let mut all = vec![process];
    let mut next = 0;
    while let Some(&parent) = all.get(next) {
        let children = processes.iter().filter(|(child, it)| it.parent == parent && !all.contains(child));
        let children: Vec<u32> = children.map(|(child, _)| *child).collect();
        all.extend(children);
        next += 1;
    }
    all
}

/// All that there are.
fn processes() -> BTreeMap<u32, Process> {
    proc::processes().filter_map(|number| Some((number, read(number)?))).collect()
}

fn read(number: u32) -> Option<Process> {
    let stat = Stat::of(number)?;
    Some(Process { parent: stat.parent()?, start: stat.start()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_come_after_their_parents() {
        let processes = [(2, 1), (3, 1), (5, 4), (7, 5), (4, 3), (9, 8)];
        let processes = processes.map(|(number, parent)| (number, Process { parent, start: 1 })).into();
        assert_eq!(generations(3, &processes), [3, 4, 5, 7]);
        assert_eq!(generations(9, &processes), [9]);
    }
}
