//! What a dispatcher changes outside of itself, noted before it is changed, and how each is put back.

use punctual_linux::scheduling::{self, Processors, Scheduling, State};
use punctual_linux::thread::Thread;
use punctual_schedule::AssignedPolicy;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One change to put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// A thread's policy and processors. Each part is put back if it is still one that the dispatcher gives.
    Thread {
        /// Its number.
        tid: u32,
        /// Tells it from others of that number.
        identity: u64,
        /// As it was.
        before: Box<State>,
        /// Priorities of SCHED_FIFO that the dispatcher gives; none: its policy is not changed.
        priorities: Vec<u32>,
        /// Processors of the table.
        processors: Vec<u32>,
        /// Policies without a priority that the dispatcher gives.
        policies: Vec<u32>,
    },
    /// A process that was stopped because a thread of it overran its slots.
    Stopped {
        /// The thread's number.
        tid: u32,
        /// Tells it from others of that number.
        identity: u64,
    },
    /// A cgroup that was made, with what is in it.
    Cgroup {
        /// Its folder.
        path: PathBuf,
        /// Where its threads go.
        parent: PathBuf,
        /// What its thread has started may have inherited its processor, and by exec its priority: all of
        /// it gets what the thread had before.
        before: Box<State>,
        /// Priorities of SCHED_FIFO that the dispatcher gives.
        priorities: Vec<u32>,
        /// Processors of the table.
        processors: Vec<u32>,
    },
    /// A cpuset partition that was made, with whatever is in it.
    Partition {
        /// Its folder.
        path: PathBuf,
        /// Where its threads go.
        parent: PathBuf,
        /// Processors of the table.
        processors: Vec<u32>,
        /// Files that name processors for partitions, from the parent upwards, with what was there.
        exclusive: Vec<(PathBuf, String)>,
        /// Files that hand on the controller cpuset, from the root downwards; they did not before.
        controls: Vec<PathBuf>,
    },
    /// A setting of the kernel.
    Setting {
        /// Its file.
        path: PathBuf,
        /// What was there.
        before: String,
        /// What the dispatcher wrote; if something else is there by now, it stays.
        written: String,
    },
    /// A file to remove.
    File {
        /// Its path.
        path: PathBuf,
    },
}

/// How often it is tried to remove a cgroup, and the time between: 10 s in all.
const REMOVALS: u32 = 500;
const BETWEEN_REMOVALS: std::time::Duration = std::time::Duration::from_millis(20);

/// The policy of sched_ext (SCHED_EXT).
pub const SCHED_EXT: u32 = 7;

impl Undo {
    /// The threads in a partition at present.
    pub fn threads(&self) -> Vec<u32> {
        match self {
            Undo::Partition { path, .. } => threads_in(path),
            _ => Vec::new(),
        }
    }

    /// Whether it is about the policy or the processors of this thread.
    pub fn is_of_thread(&self, number: u32, identity_of: u64) -> bool {
        matches!(self, Undo::Thread { tid, identity, .. } if (*tid, *identity) == (number, identity_of))
    }

    /// Puts it back. What is gone by now needs nothing.
    ///
    /// # Errors
    /// What could not be put back, and why.
    pub fn run(&self) -> Result<(), String> {
        match self {
            Undo::Thread { tid, identity, before, priorities, processors, policies } => {
                let given = given(before, priorities, processors, policies);
                restore_thread(*tid, *identity, before, &given)
            }
            Undo::Stopped { tid, identity } => continue_process(*tid, *identity),
            Undo::Cgroup { path, parent, before, priorities, processors } => {
                let given = given(before, priorities, processors, &[]);
                remove_cgroup(path, parent, &mut |tid| {
                    // One that ends meanwhile needs nothing.
                    let _ = before.restore(tid, &given);
                })
                .map_err(|error| format!("cgroup {}: {error}", path.display()))
            }
            Undo::Partition { path, parent, exclusive, controls, .. } => {
                remove_partition(path, parent, exclusive, controls)
                    .map_err(|error| format!("partition {}: {error}", path.display()))
            }
            Undo::Setting { path, before, written } => restore_setting(path, before, written)
                .map_err(|error| format!("putting {} back to {before}: {error}", path.display())),
            Undo::File { path } => gone_is_well(fs::remove_file(path))
                .map_err(|error| format!("removing {}: {error}", path.display())),
        }
    }
}

/// A thread that is to have a real-time priority again, and is an ordinary one meanwhile.
pub struct Calmed<'a> {
    thread: Thread,
    before: &'a State,
    given: Vec<State>,
}

impl<'a> Calmed<'a> {
    /// `None` if its policy is not one that the dispatcher gives, or cannot be changed.
    fn new(thread: Thread, before: &'a State, mut given: Vec<State>) -> Option<Calmed<'a>> {
        let now = scheduling::scheduling(thread.number).ok()?;
        given.iter().find(|state| state.scheduling.matches(&now))?;
        scheduling::schedule(thread.number, &Scheduling::ordinary()).ok()?;
        let ordinary = State { scheduling: scheduling::scheduling(thread.number).ok()?, ..*before };
        given.push(ordinary);
        Some(Calmed { thread, before, given })
    }

    /// Gives it its priority.
    ///
    /// # Errors
    /// What could not be put back, and why.
    pub fn run(&self) -> Result<(), String> {
        restore_thread(self.thread.number, self.thread.identity, self.before, &self.given)
    }
}

impl Undo {
    /// Whether somebody is to have a real-time priority again.
    pub fn is_urgent(&self) -> bool {
        match self {
            Undo::Thread { before, .. } | Undo::Cgroup { before, .. } => {
                before.scheduling.is_fixed_priority() || before.scheduling.is_deadline()
            }
            _ => false,
        }
    }

    /// Makes the thread an ordinary one until [`Calmed::run`]. `None` for what is not about a thread of the
    /// table: threads of the kernel keep the priorities that they were given.
    pub fn calm(&self) -> Option<Calmed<'_>> {
        let Undo::Thread { tid, identity, before, priorities, processors, policies } = self else {
            return None;
        };
        let (thread, _) = Thread::pin(*tid).ok()?;
        if thread.identity != *identity || processors.is_empty() {
            return None;
        }
        Calmed::new(thread, before, given(before, priorities, processors, policies))
    }

    /// As [`Undo::run`], but the threads of a cgroup are ordinary ones until [`Calmed::run`].
    ///
    /// # Errors
    /// What could not be put back, and why.
    pub fn run_calmly<'a>(&'a self, calmed: &mut Vec<Calmed<'a>>) -> Result<(), String> {
        let Undo::Cgroup { path, parent, before, priorities, processors } = self else { return self.run() };
        let all = given(before, priorities, processors, &[]);
        remove_cgroup(path, parent, &mut |tid| {
            let Ok((thread, _)) = Thread::pin(tid) else { return };
            match Calmed::new(thread, before, all.clone()) {
                Some(thread) => calmed.push(thread),
                // It keeps its policy. One that ends meanwhile needs nothing.
                None => _ = before.restore(tid, &all),
            }
        })
        .map_err(|error| format!("cgroup {}: {error}", path.display()))
    }

    /// Takes threads out of a cgroup and restores their settings, as [`Undo::run`] does, without waiting
    /// until the kernel releases the cgroup ([`remove_emptied`]). `run` repeats at the end what fails here.
    pub fn vacate(&self) {
        let Undo::Cgroup { path, parent, before, priorities, processors } = self else { return };
        let given = given(before, priorities, processors, &[]);
        let _ = fs::write(path.join("cgroup.freeze"), "0");
        // What is moved may start more meanwhile.
        for _ in 0..10 {
            let _ = empty(path, parent, &mut |tid| _ = before.restore(tid, &given));
            if threads_in(path).is_empty() {
                break;
            }
        }
    }
}

/// Removes a cgroup without threads as soon as the kernel lets it go. Touches no thread.
pub fn remove_emptied(path: &Path) {
    for _ in 0..REMOVALS {
        match fs::remove_dir(path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(BETWEEN_REMOVALS),
            _ => return,
        }
    }
}

/// Waits until sched_ext is off: the kernel ends a scheduler after the process that had it.
pub fn wait_for_sched_ext() {
    let is_on =
        || fs::read_to_string("/sys/kernel/sched_ext/state").is_ok_and(|state| state.trim() != "disabled");
    // Another one may have come; then nothing is to be waited for.
    for _ in 0..REMOVALS {
        if !is_on() {
            return;
        }
        std::thread::sleep(BETWEEN_REMOVALS);
    }
}

/// Makes a thread that inherited SCHED_EXT an ordinary one. If it has another policy, nothing is to be done.
pub fn set_ordinary(tid: u32) {
    if scheduling::scheduling(tid).is_ok_and(|scheduling| scheduling.policy == SCHED_EXT) {
        // One that ends meanwhile needs nothing.
        let _ = scheduling::schedule(tid, &Scheduling::ordinary());
        let _ = scheduling::pin(tid, &Processors::from_words([u64::MAX; Processors::MOST / 64]));
    }
}

/// The threads of a cgroup.
pub fn threads_in(cgroup: &Path) -> Vec<u32> {
    let list = fs::read_to_string(cgroup.join("cgroup.threads")).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

/// A policy that has no priority, as SCHED_EXT.
pub fn without_priority(policy: u32) -> Scheduling {
    let mut scheduling = Scheduling::ordinary();
    scheduling.policy = policy;
    scheduling
}

/// Everything that the dispatcher may have made of the thread.
fn given(before: &State, priorities: &[u32], processors: &[u32], policies: &[u32]) -> Vec<State> {
    let fifo = priorities.iter().map(|&priority| Scheduling::from_policy(AssignedPolicy::Fifo(priority)));
    let without = policies.iter().map(|&policy| without_priority(policy));
    let places = processors.iter().filter_map(|&number| Processors::one(number));
    let elsewhere = places.map(|processors| State { scheduling: before.scheduling, processors });
    let policies = fifo.chain(without).map(|scheduling| State { scheduling, ..*before });
    // `State::restore` looks at both parts on their own.
    policies.chain(elsewhere).collect()
}

fn restore_thread(tid: u32, identity: u64, before: &State, given: &[State]) -> Result<(), String> {
    // Its number may be another's by now.
    let Ok((thread, _)) = Thread::pin(tid) else { return Ok(()) };
    if thread.identity != identity {
        return Ok(());
    }
    match before.restore(tid, given) {
        Err(refused) if !refused.is_gone() => Err(refused.to_string()),
        _ => Ok(()),
    }
}

fn continue_process(tid: u32, identity: u64) -> Result<(), String> {
    match Thread::pin(tid) {
        Ok((thread, owner)) if thread.identity == identity => {
            // SAFETY: no memory is involved.
            unsafe { libc::kill(owner.process as i32, libc::SIGCONT) };
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Thaws the cgroup, moves what is in it back, and removes it.
pub fn remove_cgroup(path: &Path, parent: &Path, each: &mut dyn FnMut(u32)) -> io::Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    gone_is_well(fs::write(path.join("cgroup.freeze"), "0"))?;
    remove_folder(path, parent, each)
}

/// Moves what is in a cgroup to its parent, and removes it.
fn remove_folder(path: &Path, parent: &Path, each: &mut dyn FnMut(u32)) -> io::Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    // What is moved may start more meanwhile, and who has ended leaves only when the kernel gets round to it.
    for _ in 0..REMOVALS {
        empty(path, parent, each)?;
        match gone_is_well(fs::remove_dir(path)) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(BETWEEN_REMOVALS),
            other => return other,
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}

/// Moves the threads of a cgroup to its parent.
fn empty(path: &Path, parent: &Path, each: &mut dyn FnMut(u32)) -> io::Result<()> {
    for tid in threads_in(path) {
        match fs::write(parent.join("cgroup.threads"), tid.to_string()) {
            Err(error) if !is_gone(&error) => return Err(error),
            _ => each(tid),
        }
    }
    Ok(())
}

/// Gives its processors back, moves what is in it to the parent, and removes it.
fn remove_partition(
    path: &Path,
    parent: &Path,
    exclusive: &[(PathBuf, String)],
    controls: &[PathBuf],
) -> io::Result<()> {
    if path.is_dir() {
        // If it is none yet, there is nothing to give back.
        let _ = fs::write(path.join("cpuset.cpus.partition"), "member");
    }
    remove_folder(path, parent, &mut |_| ())?;
    for (file, before) in exclusive {
        // Without a cpuset there, there is no such file.
        let _ = fs::write(file, format!("{before}\n"));
    }
    for file in controls.iter().rev() {
        let folder = file.parent().unwrap_or(file);
        if !has_cpusets(folder) {
            // Whoever uses it by now keeps it.
            let _ = fs::write(file, "-cpuset");
        }
    }
    Ok(())
}

/// Whether somebody has set processors for a cgroup below.
fn has_cpusets(folder: &Path) -> bool {
    let is_set = |path: PathBuf| fs::read_to_string(path).is_ok_and(|list| !list.trim().is_empty());
    let below = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    below.into_iter().any(|child| is_set(child.join("cpuset.cpus")) || is_set(child.join("cpuset.mems")))
}

fn restore_setting(path: &Path, before: &str, written: &str) -> io::Result<()> {
    match fs::read_to_string(path)?.trim() == written {
        true => fs::write(path, before),
        false => Ok(()),
    }
}

/// Whether a thread or a cgroup had gone.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT | libc::ENODEV))
}

fn gone_is_well(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if is_gone(&error) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_somebody_else_changed_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("setting");
        let undo = |written: &str| Undo::Setting {
            path: path.clone(),
            before: "950000".into(),
            written: written.into(),
        };
        fs::write(&path, "-1\n").expect("written");
        undo("-1").run().expect("put back");
        assert_eq!(fs::read_to_string(&path).expect("there"), "950000");
        fs::write(&path, "7\n").expect("written");
        undo("-1").run().expect("left alone");
        assert_eq!(fs::read_to_string(&path).expect("there"), "7\n");
    }

    #[test]
    fn what_is_gone_is_well() {
        let folder = tempfile::tempdir().expect("a folder");
        let nowhere = folder.path().join("nowhere");
        Undo::File { path: nowhere.clone() }.run().expect("no file");
        let before = Box::new(State::read(0).expect("own state"));
        let (path, parent) = (nowhere.clone(), folder.path().to_path_buf());
        let (priorities, processors) = (vec![80], vec![0]);
        let before_all = before.clone();
        Undo::Cgroup { path, parent, before: before_all, priorities, processors }.run().expect("no cgroup");
        let (priorities, processors) = (vec![80], vec![0]);
        Undo::Thread { tid: u32::MAX >> 2, identity: 1, before, priorities, processors, policies: vec![] }
            .run()
            .expect("no thread");
        let text = serde_json::to_string(&Undo::File { path: nowhere.clone() }).expect("JSON");
        assert_eq!(serde_json::from_str::<Undo>(&text).expect("Undo"), Undo::File { path: nowhere });
    }
}
