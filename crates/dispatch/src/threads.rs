//! Threads that may be tasks, looked up in `/proc`.

use punctual_tables::Candidate;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Processor time of a thread so far.
pub fn used_ns(process: u32, tid: u32) -> std::io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{tid}/schedstat"))?;
    let used = text.split_whitespace().next().and_then(|word| word.parse().ok());
    used.ok_or_else(|| std::io::Error::other("schedstat has no number"))
}

/// All threads of these processes; of the whole machine without. Kernel threads are no tasks.
pub fn candidates(processes: Option<&BTreeSet<u32>>) -> Vec<Candidate> {
    let all = || numbers(Path::new("/proc"));
    let processes = processes.map_or_else(all, |some| some.iter().copied().collect());
    processes.into_iter().flat_map(threads_of).collect()
}

fn threads_of(process: u32) -> Vec<Candidate> {
    let folder = format!("/proc/{process}");
    let command = fs::read(format!("{folder}/cmdline")).unwrap_or_default();
    if command.is_empty() {
        return Vec::new();
    }
    let words: Vec<_> = command
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    let command = words.join(" ");
    let thread = |tid: u32| {
        let comm = fs::read_to_string(format!("{folder}/task/{tid}/comm")).ok()?;
        let cgroups = fs::read_to_string(format!("{folder}/task/{tid}/cgroup")).unwrap_or_default();
        let cgroup = cgroups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
        Some(Candidate {
            tid,
            process,
            comm: comm.trim_end_matches('\n').to_owned(),
            command: command.clone(),
            cgroup: cgroup.to_owned(),
        })
    };
    numbers(&Path::new(&folder).join("task")).into_iter().filter_map(thread).collect()
}

/// A process and everything that it has started and that still has its parent.
pub fn family(process: u32) -> BTreeSet<u32> {
    // Without CONFIG_PROC_CHILDREN.
    if !Path::new("/proc/thread-self/children").exists() {
        return family_by_parents(process);
    }
    let mut found = BTreeSet::from([process]);
    let mut left = vec![process];
    while let Some(process) = left.pop() {
        for tid in numbers(Path::new(&format!("/proc/{process}/task"))) {
            let children = fs::read_to_string(format!("/proc/{process}/task/{tid}/children"));
            let children = children.unwrap_or_default();
            let new = children.split_whitespace().filter_map(|number| number.parse().ok());
            left.extend(new.filter(|child| found.insert(*child)));
        }
    }
    found
}

/// The same by the parents of all processes.
fn family_by_parents(process: u32) -> BTreeSet<u32> {
    let parent = |number: u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // Behind the name, which can hold anything: its state, its parent.
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let all = numbers(Path::new("/proc")).into_iter();
    let all: Vec<(u32, u32)> = all.filter_map(|number| Some((number, parent(number)?))).collect();
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

fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
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
        let listed = Path::new("/proc/thread-self/children").exists().then(|| super::family(shell.id()));
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
