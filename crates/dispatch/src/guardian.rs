//! A process that restores everything when the dispatcher ends, however it ends.
//!
//! The dispatcher writes every change into a pipe before making it. What is in the pipe survives `kill -9`;
//! its end tells the guardian that the dispatcher is gone. A normal end takes the same way, so there is
//! only one.

use crate::error::Error;
use crate::notes::{Notes, announce_end_of_parent};
use crate::undo::{Undo, set_ordinary, wait_for_sched_ext};
use punctual_daemon::kernel::{self, Scheduling};
use punctual_schedule::AssignedPolicy;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// How a process of this program becomes a guardian: the words after its name.
pub const WORDS: [&str; 2] = ["tt", "guard"];

/// The guardian, as the dispatcher sees it.
#[derive(Debug)]
pub struct Guardian {
    process: Child,
    notes: Option<ChildStdin>,
    /// Everything noted so far, for a guardian that has to be started again.
    noted: Vec<Undo>,
    program: Vec<OsString>,
    priority: u32,
}

impl Guardian {
    /// Starts `program` (its file, and words that make it call [`serve`]). `priority` is above that of all
    /// threads of the table: it must get a processor when the dispatcher is gone.
    pub fn start(program: Vec<OsString>, priority: u32) -> Result<Guardian, Error> {
        let (process, notes) = spawn(&program, priority)?;
        Ok(Guardian { process, notes: Some(notes), noted: Vec::new(), program, priority })
    }

    /// Notes a change. Make it after this returns.
    pub fn note(&mut self, undo: Undo) -> Result<(), Error> {
        self.noted.push(undo);
        let written = self.noted.last().map(|undo| write(self.notes.as_mut(), undo));
        match written {
            Some(Err(_)) => self.revive(),
            _ => Ok(()),
        }
    }

    /// Replaces a guardian that somebody has killed.
    pub fn check(&mut self) -> Result<bool, Error> {
        match self.process.try_wait() {
            Ok(None) => Ok(false),
            _ => self.revive().map(|()| true),
        }
    }

    fn revive(&mut self) -> Result<(), Error> {
        let (process, mut notes) = spawn(&self.program, self.priority)?;
        for undo in &self.noted {
            write(Some(&mut notes), undo).map_err(|error| Error::other("telling the guardian", error))?;
        }
        (self.process, self.notes) = (process, Some(notes));
        Ok(())
    }

    /// Has everything put back, and waits for that. What could not be put back is on standard error, and
    /// the result is false.
    pub fn finish(mut self) -> Result<bool, Error> {
        // If it was killed meanwhile, another does it.
        self.check()?;
        drop(self.notes.take());
        let ended = self.process.wait().map_err(|error| Error::other("waiting for the guardian", error))?;
        Ok(ended.success())
    }
}

fn spawn(program: &[OsString], priority: u32) -> Result<(Child, ChildStdin), Error> {
    let failed = |error: std::io::Error| Error::other("starting the process that restores everything", error);
    let (file, words) = program.split_first().ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
    let mut command = Command::new(file);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::null());
    // SAFETY: between fork and exec it makes system calls, takes no lock and allocates nothing. In a session
    // of its own, signals to the dispatcher's group or terminal do not reach it.
    unsafe {
        command.pre_exec(|| match libc::setsid() {
            -1 => Err(std::io::Error::last_os_error()),
            _ => announce_end_of_parent(),
        })
    };
    let mut process = command.spawn().map_err(failed)?;
    let fifo = Scheduling::from_policy(AssignedPolicy::Fifo(priority));
    let scheduled = kernel::schedule(process.id(), &fifo);
    let notes = process.stdin.take().ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
    match scheduled {
        Ok(()) => Ok((process, notes)),
        // Its input ends here, so it does too.
        Err(refused) => Err(Error::unsupported("a table needs real-time priorities", refused)),
    }
}

fn write(notes: Option<&mut ChildStdin>, undo: &Undo) -> std::io::Result<()> {
    let notes = notes.ok_or(std::io::ErrorKind::BrokenPipe)?;
    let mut line = serde_json::to_vec(undo)?;
    line.push(b'\n');
    notes.write_all(&line)
}

/// The guardian itself: reads notes to their end, then restores everything: partitions first, since threads
/// cannot have processors again that these still have; then threads, since one that never sleeps would keep
/// its priority over what the kernel needs to run for the rest; and otherwise the last change first.
/// Returns what could not be put back.
///
/// # Errors
/// It cannot wait for the dispatcher's end.
pub fn serve(notes: impl Read + AsFd) -> std::io::Result<Vec<String>> {
    Ok(put_back(BufReader::new(Notes::new(notes)?)))
}

fn put_back(notes: impl BufRead) -> Vec<String> {
    let read = |line: std::io::Result<String>| serde_json::from_str::<Undo>(&line.ok()?).ok();
    // A line that was cut off announces a change that was not made.
    let noted: Vec<Undo> = notes.lines().map_while(read).collect();
    let (partitions, others) = split(noted.iter().rev(), |undo| matches!(undo, Undo::Partition { .. }));
    let (threads, others) = split(others.into_iter(), |undo| matches!(undo, Undo::Thread { .. }));
    if !partitions.is_empty() {
        wait_for_sched_ext();
    }
    let inside: Vec<u32> = partitions.iter().flat_map(|undo| undo.threads()).collect();
    let all = partitions.into_iter().chain(threads).chain(others);
    let failed = all.filter_map(|undo| undo.run().err()).collect();
    // What threads of the table have started.
    inside.into_iter().for_each(set_ordinary);
    failed
}

fn split<'a>(
    all: impl Iterator<Item = &'a Undo>,
    is_first: impl Fn(&Undo) -> bool,
) -> (Vec<&'a Undo>, Vec<&'a Undo>) {
    all.partition(|undo| is_first(undo))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_was_cut_off_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("made");
        std::fs::write(&path, "").expect("made");
        let mut notes = serde_json::to_string(&Undo::File { path: path.clone() }).expect("JSON");
        notes.push_str("\n{\"file\":{\"pa");
        assert_eq!(put_back(notes.as_bytes()), Vec::<String>::new());
        assert!(!path.exists());
    }

    #[test]
    fn the_last_change_is_undone_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("setting");
        std::fs::write(&path, "3").expect("written");
        let step = |before: &str, written: &str| {
            let (before, written) = (before.to_owned(), written.to_owned());
            serde_json::to_string(&Undo::Setting { path: path.clone(), before, written }).expect("JSON")
                + "\n"
        };
        let notes = step("1", "2") + &step("2", "3");
        assert_eq!(put_back(notes.as_bytes()), Vec::<String>::new());
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "1");
    }

    #[test]
    fn what_cannot_be_put_back_is_said() {
        let path = std::path::PathBuf::from("/proc/nonsense/setting");
        let undo = Undo::Setting { path, before: "1".into(), written: "2".into() };
        let notes = serde_json::to_string(&undo).expect("JSON");
        assert_eq!(put_back(notes.as_bytes()).len(), 1);
    }
}
