//! A cgroup of its own for a thread of the table, which the kernel's freezer can take off its processor.
//!
//! It is a threaded child of the cgroup that the thread is in already, so the thread keeps every limit that
//! it has. The freezer of version 2 needs no controller and takes threads one by one.

use punctual_linux::proc;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A cgroup with one thread, and whatever that thread starts.
#[derive(Debug)]
pub struct Freezer {
    switch: File,
    is_frozen: bool,
}

impl Freezer {
    /// Where the cgroup of a thread would be made: its path, and the one that it is in.
    pub fn place(mount: &Path, tid: u32) -> io::Result<(PathBuf, PathBuf)> {
        let own = proc::cgroup(tid)?;
        let parent = mount.join(own.trim_start_matches('/'));
        Ok((parent.join(format!("punctual-tt-{}-{tid}", std::process::id())), parent))
    }

    /// Makes the cgroup and moves the thread there.
    pub fn create(path: &Path, tid: u32) -> io::Result<Freezer> {
        fs::create_dir(path)?;
        let made = || {
            fs::write(path.join("cgroup.type"), "threaded")?;
            fs::write(path.join("cgroup.threads"), tid.to_string())?;
            File::options().write(true).open(path.join("cgroup.freeze"))
        };
        match made() {
            Ok(switch) => Ok(Freezer { switch, is_frozen: false }),
            Err(error) => {
                // Empty: the thread was not moved. Whoever undoes later looks again.
                let _ = fs::remove_dir(path);
                Err(error)
            }
        }
    }

    /// Takes the thread off its processor, or lets it go on. Does nothing if it is so already.
    pub fn set_frozen(&mut self, frozen: bool) -> io::Result<()> {
        if self.is_frozen != frozen {
            self.switch.write_at(if frozen { b"1" } else { b"0" }, 0)?;
            self.is_frozen = frozen;
        }
        Ok(())
    }
}
