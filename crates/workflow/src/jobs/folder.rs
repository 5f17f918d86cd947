//! A folder of Parquet files, one for each task: `recording=RUN/task=NAME-TID-PHASE/jobs.parquet`, which
//! DuckDB, Spark, pandas and others read as one table with the columns `recording` and `task` (Hive's way of
//! partitioning).
//!
//! Each run appears complete or not at all, beside those that the folder has of other runs.

use super::{Listing, Output, summary};
use crate::destination::own_name;
use crate::error::{Error, Result, plain_reason};
use crate::monitor::Monitor;
use crate::recording::Recording;
use crate::replay::{TaskKey, key_of};
use punctual_report::jobs::Writer;
use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Tasks whose files are written in one pass over a recording.
const AT_ONCE: usize = 256;
/// Rows that all files together hold in memory: some hundred megabytes.
const ROWS: usize = 1 << 20;
/// Fewer rows in a group are read slowly.
const LEAST_GROUP: usize = 1 << 12;
const MOST_GROUP: usize = 1 << 16;

/// A place for runs: a new folder, or one with jobs of other runs.
pub struct JobFolder {
    path: PathBuf,
    replace: bool,
    /// Beside it, until it is complete.
    unfinished: TempDir,
    jobs: Cell<u64>,
    tasks: Cell<u64>,
}

impl JobFolder {
    /// Checks that there is nothing at `path`, or a folder of jobs. Runs that it has stay, but for those that
    /// are written again, if `replace` allows it.
    pub fn new(path: &Path, replace: bool) -> Result<JobFolder> {
        let name = path.display();
        let refuse = |why: &str, advice: &str| {
            Err(Error::file(format!("cannot write jobs to {name}")).because(why).advise(advice))
        };
        match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) if !holds_jobs(path) => {
                return refuse("it holds something other than jobs", "name a new folder");
            }
            Ok(false) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return refuse("it is a file", "name a new folder");
            }
            Err(error) => return Err(Error::io("write jobs to", name, &error)),
        }
        let parent = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let unfinished = tempfile::Builder::new()
            .prefix(".punctual-")
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(parent);
        let unfinished = match unfinished {
            Ok(unfinished) => unfinished,
            Err(error) => return refuse(&plain_reason(&error), "choose another place"),
        };
        let path = path.to_path_buf();
        Ok(JobFolder { path, replace, unfinished, jobs: Cell::new(0), tasks: Cell::new(0) })
    }

    /// Checks that these runs are new, or may be replaced.
    pub(super) fn check(&self, names: &[String]) -> Result<()> {
        let there = names.iter().find(|name| self.path.join(of_run(name)).exists());
        match there.filter(|_| !self.replace) {
            None => Ok(()),
            Some(name) => Err(Error::file(format!("cannot write jobs to {}", self.path.display()))
                .because(format!("it has those of {name}"))
                .advise("--force replaces them, and leaves those of other recordings")),
        }
    }

    /// Adds the jobs of a recording.
    pub(super) fn add(&self, listing: &Listing<'_>, name: &str, monitor: &dyn Monitor) -> Result<()> {
        let folder = self.unfinished.path().join(of_run(name));
        // Also one without jobs replaces those of before.
        fs::create_dir_all(&folder).map_err(|error| Error::io("write", self.path.display(), &error))?;
        let tasks = listing.model.tasks();
        let mut namesakes: HashMap<String, u64> = HashMap::new();
        for tasks in tasks.chunks(AT_ONCE) {
            let named = tasks.iter().map(|task| {
                let name = format!("{}-{}-{}", task.name, task.tid, task.phase);
                let before = namesakes.entry(name.clone()).or_default();
                // The TID of a thread of this name that had ended was reused.
                let name = if *before > 0 { format!("{name}-{before}") } else { name };
                *before += 1;
                (key_of(task), folder.join(format!("task={}", escaped(&name))))
            });
            self.write(listing, named.collect(), monitor)?;
        }
        Ok(())
    }

    /// Writes the files of some tasks.
    fn write(
        &self,
        listing: &Listing<'_>,
        tasks: HashMap<TaskKey, PathBuf>,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let rows = (ROWS / tasks.len().max(1)).clamp(LEAST_GROUP, MOST_GROUP);
        let begin = |folder: &Path| -> io::Result<Writer<BufWriter<File>>> {
            fs::create_dir_all(folder)?;
            let file = BufWriter::new(File::create(folder.join("jobs.parquet"))?);
            Writer::in_groups(file, &listing.model.clock, rows, listing.late.is_some())
                .map_err(io::Error::other)
        };
        let mut writers: HashMap<TaskKey, Writer<BufWriter<File>>> = HashMap::new();
        let (mut jobs, mut broken) = (0_u64, None);
        listing.each_row(monitor, |key, row| {
            let Some(folder) = tasks.get(&key).filter(|_| broken.is_none()) else { return };
            let writer = match writers.entry(key) {
                Entry::Occupied(begun) => begun.into_mut(),
                Entry::Vacant(place) => match begin(folder) {
                    Ok(writer) => place.insert(writer),
                    Err(error) => return broken = Some(error),
                },
            };
            broken = writer.row(row).map_err(io::Error::other).err();
            jobs += 1;
        })?;
        let failed = |error: &io::Error| Error::io("write", self.path.display(), error);
        if let Some(error) = broken {
            return Err(failed(&error));
        }
        self.jobs.set(self.jobs.get() + jobs);
        self.tasks.set(self.tasks.get() + writers.len() as u64);
        for writer in writers.into_values() {
            let file = writer.finish().map_err(|error| failed(&io::Error::other(error)))?;
            file.into_inner().map_err(|error| failed(error.error()))?;
        }
        Ok(())
    }

    /// Puts the runs, which are complete, in their place.
    pub(super) fn finish(&self, monitor: &dyn Monitor) -> Result<()> {
        let failed = |error: io::Error| Error::io("write", self.path.display(), &error);
        let unfinished = self.unfinished.path();
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                for run in fs::read_dir(unfinished).map_err(failed)? {
                    let run = run.map_err(failed)?;
                    let place = self.path.join(run.file_name());
                    if self.replace && place.exists() {
                        fs::remove_dir_all(&place).map_err(failed)?;
                    }
                    fs::rename(run.path(), place).map_err(failed)?;
                }
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => fs::rename(unfinished, &self.path).map_err(failed)?,
        }
        let what = summary(self.jobs.get(), self.tasks.get());
        monitor.hint(&format!("wrote {what} to {}", self.path.display()));
        Ok(())
    }
}

/// The name of each recording in a folder; they must differ.
pub(super) fn names(recordings: &[Recording], output: &Output) -> Result<Vec<String>> {
    let names: Vec<String> = recordings
        .iter()
        .map(|recording| own_name(recording.path()).unwrap_or_else(|| "recording".into()))
        .map(|name| name.strip_suffix(".recording").map(str::to_owned).unwrap_or(name))
        .collect();
    let mut known = HashSet::new();
    match names.iter().find(|name| !known.insert(*name)) {
        Some(twice) if matches!(output, Output::Folder(_)) => {
            Err(Error::usage(format!("two recordings are called {twice}"))
                .because("their jobs are told apart by name")
                .advise("rename one of them"))
        }
        _ => Ok(names),
    }
}

fn holds_jobs(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else { return false };
    entries.flatten().all(|entry| entry.file_name().to_string_lossy().starts_with("recording="))
}

/// The folder of a run.
fn of_run(name: &str) -> String {
    format!("recording={}", escaped(name))
}

/// As in an address: readers turn `%20` back into a space.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => text.push(byte.into()),
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_names_of_folders() {
        assert_eq!(escaped("control-12-0"), "control-12-0");
        assert_eq!(escaped("a/b =%é"), "a%2Fb%20%3D%25%C3%A9");
    }

    #[test]
    fn only_the_same_run_is_ever_replaced() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("jobs");
        JobFolder::new(&path, false).expect("new");
        fs::create_dir_all(path.join("recording=a/task=b")).expect("made");
        let write = |runs: &[&str], replace| {
            let folder = JobFolder::new(&path, replace)?;
            let names: Vec<String> = runs.iter().map(|run| (*run).to_owned()).collect();
            folder.check(&names)?;
            for run in runs {
                fs::create_dir_all(folder.unfinished.path().join(of_run(run)).join("task=c")).expect("made");
            }
            folder.finish(&crate::monitor::Silent)
        };
        let refusal = |runs, replace| format!("{:#}", write(runs, replace).expect_err("refused"));
        assert!(refusal(&["b", "a"], false).contains("it has those of a; --force replaces them"));
        write(&["b"], false).expect("another run");
        assert!(path.join("recording=a/task=b").exists() && path.join("recording=b/task=c").exists());
        write(&["a"], true).expect("the same run");
        assert!(!path.join("recording=a/task=b").exists() && path.join("recording=a/task=c").exists());
        assert!(path.join("recording=b/task=c").exists());
        fs::write(path.join("thesis.tex"), "").expect("written");
        assert!(refusal(&["c"], true).contains("something other"));
        assert!(JobFolder::new(&place.path().join("no/where"), false).is_err());
    }
}
