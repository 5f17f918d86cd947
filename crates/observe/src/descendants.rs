//! The processes that a command has started, so that they end with it. Not those that it has left behind:
//! whose parent has ended belongs to nobody.

use std::collections::BTreeMap;
use std::fs;

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
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number: u32| Some((number, read(number)?))).collect()
}

fn read(number: u32) -> Option<Process> {
    parse(&fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
}

/// Number, name in brackets, state, parent; the start is the 22nd. A name may hold anything.
fn parse(stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Process { parent, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_start_are_behind_the_name() {
        let rest = "7 12 12 0 -1 4194304 80 0 0 0 0 0 0 0 20 0 1 0 8151 2600960";
        assert_eq!(parse(&format!("12 (a) S 9 (b) S {rest}")), Some(Process { parent: 7, start: 8_151 }));
        assert_eq!(parse("12 (sh"), None);
        let own = read(std::process::id()).expect("this process");
        assert!(own.start > 0 && own.parent > 0, "{own:?}");
    }

    #[test]
    fn descendants_come_after_their_parents() {
        let processes = [(2, 1), (3, 1), (5, 4), (7, 5), (4, 3), (9, 8)];
        let processes = processes.map(|(number, parent)| (number, Process { parent, start: 1 })).into();
        assert_eq!(generations(3, &processes), [3, 4, 5, 7]);
        assert_eq!(generations(9, &processes), [9]);
    }
}
