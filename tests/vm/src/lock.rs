//! Labs that run at the same time in the same target folder: each has run folders of its own, and one at a
//! time builds.

use crate::error::{Result, cannot};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An empty folder for one run. Other labs take another one until this is dropped.
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// `NAME` in `parent`; if another lab is using it, `NAME-PID`.
    pub fn take(parent: &Path, name: &str) -> Result<RunFolder> {
        let path = parent.join(name);
        let taken = RunFolder::try_take(&path).map_err(|error| cannot("create", &path, error))?;
        if let Some(folder) = taken {
            return Ok(folder);
        }
        let own = parent.join(format!("{name}-{}", std::process::id()));
        let taken = RunFolder::try_take(&own).map_err(|error| cannot("create", &own, error))?;
        taken.ok_or_else(|| cannot("lock", &own, "two runs of this lab have the same name"))
    }

    /// `None` if another lab is using it.
    fn try_take(path: &Path) -> io::Result<Option<RunFolder>> {
        loop {
            fs::create_dir_all(path)?;
            let lock = match File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                locked => locked?,
            }
            // Its last user may have removed it meanwhile.
            if fs::metadata(path).is_ok_and(|now| lock.metadata().is_ok_and(|ours| ours.ino() == now.ino())) {
                empty(path)?;
                return Ok(Some(RunFolder { path: path.to_path_buf(), _lock: lock }));
            }
        }
    }
}

impl Deref for RunFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for RunFolder {
    fn as_ref(&self) -> &Path {
        self
    }
}

fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Held while this lab builds what goes into machines, or reads it.
pub struct Building {
    _lock: File,
}

impl Building {
    /// Waits for other labs that build in `folder`.
    pub fn wait(folder: &Path) -> Result<Building> {
        let path = folder.join("building.lock");
        let locked = || {
            fs::create_dir_all(folder)?;
            let file = File::create(&path)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                eprintln!("lab: waiting for another lab that is building in {} …", folder.display());
                flock(&file, FlockOperation::LockExclusive)?;
            }
            Ok::<_, io::Error>(file)
        };
        Ok(Building { _lock: locked().map_err(|error| cannot("lock", &path, error))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_folder_that_is_in_use_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let first = RunFolder::take(parent.path(), "run").unwrap();
        fs::write(first.join("log"), "first").unwrap();
        let second = RunFolder::take(parent.path(), "run").unwrap();
        assert_ne!(*first, *second);
        assert_eq!(fs::read_to_string(first.join("log")).unwrap(), "first");
        let path = first.to_path_buf();
        drop(first);
        let third = RunFolder::take(parent.path(), "run").unwrap();
        assert_eq!(*third, *path);
        assert!(!third.join("log").exists(), "what an earlier run has left is gone");
    }
}
