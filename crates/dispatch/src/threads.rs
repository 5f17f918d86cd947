//! Threads that may be tasks, looked up in `/proc`.

use punctual_linux::proc::{self, Stat};
use punctual_tables::Candidate;
use std::collections::BTreeSet;

/// All threads of these processes; of the whole machine without. Kernel threads are no tasks.
pub fn candidates(processes: Option<&BTreeSet<u32>>) -> Vec<Candidate> {
    let all = || proc::processes().collect();
    let processes: Vec<u32> = processes.map_or_else(all, |some| some.iter().copied().collect());
    processes.into_iter().flat_map(threads_of).collect()
}

fn threads_of(process: u32) -> Vec<Candidate> {
    let arguments = proc::arguments(process);
    if arguments.is_empty() {
        return Vec::new();
    }
    let words = arguments.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let command = words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
    let thread = |tid: u32| {
        let (comm, cgroup) = (proc::name(tid)?, proc::cgroup(tid).unwrap_or_default());
        Some(Candidate { tid, process, comm, command: command.clone(), cgroup })
    };
    proc::threads(process).filter_map(thread).collect()
}

/// A process and everything that it has started and that still has its parent.
pub fn family(process: u32) -> BTreeSet<u32> {
    // Without CONFIG_PROC_CHILDREN.
    if proc::children(std::process::id()).is_none() {
        return family_by_parents(process);
    }
    let mut found = BTreeSet::from([process]);
    let mut left = vec![process];
    while let Some(process) = left.pop() {
        let children = proc::threads(process).filter_map(proc::children).flatten();
        left.extend(children.filter(|child| found.insert(*child)));
    }
    found
}

/// The same by the parents of all processes.
fn family_by_parents(process: u32) -> BTreeSet<u32> {
    let parent = |number: u32| Some((number, Stat::of(number)?.parent()?));
    let all: Vec<(u32, u32)> = proc::processes().filter_map(parent).collect();
    let mut found = BTreeSet::from([process]);
    loop {
        let before = found.len();
        for (number, parent) in &all {
            if found.contains(parent) {
                found.insert(*number);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_is_the_same_by_parents() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 100 & echo; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = [0];
        std::io::Read::read_exact(&mut shell.stdout.take().expect("its output"), &mut line).expect("a line");
        let family = family_by_parents(shell.id());
        let listed = proc::children(std::process::id()).is_some().then(|| super::family(shell.id()));
        for member in &family {
            let _ = std::process::Command::new("kill").arg(member.to_string()).status();
        }
        shell.wait().expect("its end");
        assert_eq!(family.len(), 2, "{family:?}");
        assert_eq!(*listed.as_ref().unwrap_or(&family), family);
    }

    #[test]
    fn this_thread_is_found() {
        let own = std::process::id();
        let found = candidates(Some(&BTreeSet::from([own])));
        assert!(found.iter().any(|thread| thread.tid == own && !thread.command.is_empty()));
        assert!(family(own).contains(&own));
    }
}
