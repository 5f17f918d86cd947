//! The processors of a table as an isolated cpuset partition, with the table's threads in it and no others.
//!
//! Threads of the fair class run before those of sched_ext, so there must be none. The partition is a
//! threaded cgroup below the one that the threads' processes are in: it takes single threads of these, and
//! they keep every limit that they have.

use crate::error::Error;
use crate::undo::{Undo, threads_in};
use punctual_linux::proc;
use punctual_linux::scheduling::Processors;
use punctual_tables::Candidate;
use punctual_tables::Plan;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A partition, and how to remove it.
#[derive(Debug)]
pub struct Partition {
    pub path: PathBuf,
    /// Where the processes of its threads are.
    parent: PathBuf,
    /// Its processors.
    pub processors: Processors,
    list: String,
    /// From the root downwards, files that do not hand on the controller cpuset, and those that name
    /// processors for partitions.
    controls: Vec<PathBuf>,
    exclusive: Vec<PathBuf>,
    undo: Undo,
}

/// The cgroup that these threads share, as the mount has it; that of this process if there are none.
///
/// # Errors
/// If they are in several: a partition takes threads of one.
pub fn shared_cgroup<'a>(threads: impl Iterator<Item = &'a Candidate>) -> Result<String, String> {
    let cgroups: BTreeSet<&str> = threads.map(|thread| thread.cgroup.as_str()).collect();
    let mut all = cgroups.into_iter();
    match (all.next(), all.next()) {
        (None, _) => proc::cgroup(std::process::id()).map_err(|error| error.to_string()),
        (Some(one), None) => Ok(one.to_owned()),
        (Some(one), Some(other)) => Err(format!(
            "the table's threads are in different cgroups ({one}, {other}); an isolated partition needs them \
             in one"
        )),
    }
}

impl Partition {
    /// One below `cgroup`, with the processors of the table. It is not made yet.
    pub fn planned(mount: &Path, cgroup: &str, plan: &Plan) -> Partition {
        let parent = mount.join(cgroup.trim_start_matches('/'));
        let path = parent.join(format!("punctual-tt-{}", std::process::id()));
        // From below the root to the parent.
        let above: Vec<PathBuf> =
            parent.ancestors().take_while(|folder| *folder != mount).map(Path::to_path_buf).collect();
        let folders = above.iter().map(PathBuf::as_path).chain([mount]);
        let mut controls: Vec<PathBuf> = folders.map(|folder| folder.join(CONTROL)).collect();
        controls.retain(|file| !has_cpuset(file));
        controls.reverse();
        let exclusive: Vec<PathBuf> = above.iter().rev().map(|folder| folder.join(EXCLUSIVE)).collect();
        let undo = Undo::Partition {
            path: path.clone(),
            parent: parent.clone(),
            processors: plan.lanes.iter().map(|lane| lane.processor).collect(),
            exclusive: exclusive.iter().rev().cloned().map(before).collect(),
            controls: controls.clone(),
        };
        Partition { path, parent, processors: set(plan), list: list(plan), controls, exclusive, undo }
    }

    /// How to remove it, to be noted before it is made.
    pub fn undo(&self) -> &Undo {
        &self.undo
    }

    /// Makes it.
    pub fn make(&self) -> Result<(), Error> {
        self.try_make().map_err(|error| {
            // What fails is tried again at the end.
            let _ = self.undo.run();
            let what = format!("making processors {} a partition of {}", self.list, self.parent.display());
            Error::unsupported(&what, error)
        })
    }

    fn try_make(&self) -> io::Result<()> {
        let Partition { path, list, .. } = self;
        fs::create_dir(path)?;
        fs::write(path.join("cgroup.type"), "threaded")?;
        self.controls.iter().try_for_each(|file| fs::write(file, "+cpuset"))?;
        self.exclusive.iter().try_for_each(|file| extend(file, list))?;
        for file in ["cpuset.cpus", EXCLUSIVE] {
            fs::write(path.join(file), list)?;
        }
        fs::write(path.join("cpuset.cpus.partition"), "isolated")?;
        let is = fs::read_to_string(path.join("cpuset.cpus.partition"))?;
        match is.trim() {
            "isolated" => Ok(()),
            why => Err(io::Error::other(format!("the kernel reports \"{why}\""))),
        }
    }

    /// Takes a thread in.
    ///
    /// # Errors
    /// What the kernel refused, in words.
    pub fn take(&self, tid: u32) -> Result<(), String> {
        fs::write(self.path.join("cgroup.threads"), tid.to_string()).map_err(|error| {
            let own = proc::cgroup(tid).unwrap_or_default();
            let parent = self.parent.display();
            match own.is_empty() || self.parent.ends_with(own.trim_start_matches('/')) {
                true => format!("entering the table's partition: {error}"),
                false => format!(
                    "it is in the cgroup {own}, and the table's partition takes threads of {parent} only: \
                     start it there, or the table with --dispatcher user-space"
                ),
            }
        })
    }

    /// Puts a thread where its process is.
    pub fn release(&self, tid: u32) -> io::Result<()> {
        fs::write(self.parent.join("cgroup.threads"), tid.to_string())
    }

    /// All threads that are in it.
    pub fn threads(&self) -> Vec<u32> {
        threads_in(&self.path)
    }

    /// Removes it; threads that are in it go where their processes are.
    pub fn remove(&self) -> Result<(), String> {
        self.undo.run()
    }
}

const CONTROL: &str = "cgroup.subtree_control";
const EXCLUSIVE: &str = "cpuset.cpus.exclusive";

fn has_cpuset(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|list| list.split_whitespace().any(|name| name == "cpuset"))
}

fn before(file: PathBuf) -> (PathBuf, String) {
    let text = fs::read_to_string(&file).unwrap_or_default();
    (file, text.trim().to_owned())
}

/// Adds processors to a list.
fn extend(file: &Path, list: &str) -> io::Result<()> {
    let present = fs::read_to_string(file)?;
    let all = match present.trim() {
        "" => list.to_owned(),
        present => format!("{present},{list}"),
    };
    fs::write(file, all)
}

fn list(plan: &Plan) -> String {
    let numbers: Vec<String> = plan.lanes.iter().map(|lane| lane.processor.to_string()).collect();
    numbers.join(",")
}

fn set(plan: &Plan) -> Processors {
    let mut words = [0_u64; Processors::MOST / 64];
    for lane in &plan.lanes {
        if let Some(word) = words.get_mut(lane.processor as usize / 64) {
            *word |= 1 << (lane.processor % 64);
        }
    }
    Processors::from_words(words)
}
