//! A process that restores everything when the dispatcher ends, however it ends.
//!
//! The dispatcher writes every change into a pipe before making it. What is in the pipe survives `kill -9`;
//! its end tells the guardian that the dispatcher is gone. A normal end takes the same way, so there is
//! only one.

use crate::error::Error;
use crate::notes::{Notes, announce_end_of_parent};
use crate::undo::{Undo, set_ordinary, wait_for_sched_ext};
use punctual_linux::scheduling::{self, Scheduling};
use punctual_schedule::AssignedPolicy;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// How a process of this program becomes a guardian: the words after its name.
pub const WORDS: [&str; 2] = ["tt", "guard"];

/// What the dispatcher tells its guardian, a line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Note<'a> {
    /// A change that is about to be made.
    Change(Cow<'a, Undo>),
    /// One that was put back already: what is changed from now on is not the dispatcher's doing.
    Withdrawn(Cow<'a, Undo>),
}

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
        let written = write(self.notes.as_mut(), &Note::Change(Cow::Borrowed(&undo)));
        self.noted.push(undo);
        written.or_else(|_| self.revive())
    }

    /// Withdraws notes of changes that were put back. Afterwards, whoever makes the same change keeps it.
    pub fn withdraw(&mut self, is_put_back: impl Fn(&Undo) -> bool) -> Result<(), Error> {
        let (over, left) = std::mem::take(&mut self.noted).into_iter().partition(|undo| is_put_back(undo));
        self.noted = left;
        let over: Vec<Undo> = over;
        let mut withdrawn = over.into_iter().map(|undo| Note::Withdrawn(Cow::Owned(undo)));
        withdrawn.try_for_each(|note| write(self.notes.as_mut(), &note)).or_else(|_| self.revive())
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
            write(Some(&mut notes), &Note::Change(Cow::Borrowed(undo)))
                .map_err(|error| Error::other("telling the guardian", error))?;
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
    let scheduled = scheduling::schedule(process.id(), &fifo);
    let notes = process.stdin.take().ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
    match scheduled {
        Ok(()) => Ok((process, notes)),
        // Its input ends here, so it does too.
        Err(refused) => Err(Error::unsupported("a table needs real-time priorities", refused)),
    }
}

fn write(notes: Option<&mut ChildStdin>, note: &Note<'_>) -> std::io::Result<()> {
    let notes = notes.ok_or(std::io::ErrorKind::BrokenPipe)?;
    let mut line = serde_json::to_vec(note)?;
    line.push(b'\n');
    notes.write_all(&line)
}

/// The guardian itself: reads notes to their end, then restores everything. A thread that never sleeps would
/// keep its priority over what the kernel needs to run for the rest (moving a thread to another cgroup waits
/// for RCU): so those that had a real-time priority before are made ordinary ones first, and get it back last
/// of all; until then the kernel's threads keep the ones that they were given. Between that come partitions,
/// since threads cannot have processors again that these still have; then threads; and otherwise the last
/// change first.
/// Returns what could not be put back.
///
/// # Errors
/// It cannot wait for the dispatcher's end.
pub fn serve(notes: impl Read + AsFd) -> std::io::Result<Vec<String>> {
    Ok(put_back(BufReader::new(Notes::new(notes)?)))
}

pub(crate) fn put_back(notes: impl BufRead) -> Vec<String> {
    let noted = changes(notes);
    let (partitions, others) = split(noted.iter().rev(), |undo| matches!(undo, Undo::Partition { .. }));
    let (threads, others) = split(others.into_iter(), |undo| matches!(undo, Undo::Thread { .. }));
    let (urgent, threads) = split(threads.into_iter(), Undo::is_urgent);
    let (mut calmed, mut last) = (Vec::new(), Vec::new());
    for undo in urgent {
        match undo.calm() {
            Some(thread) => calmed.push(thread),
            None => last.push(undo),
        }
    }
    if !partitions.is_empty() {
        wait_for_sched_ext();
    }
    let inside: Vec<u32> = partitions.iter().flat_map(|undo| undo.threads()).collect();
    let mut failed: Vec<String> = Vec::new();
    failed.extend(partitions.into_iter().chain(threads).filter_map(|undo| undo.run().err()));
    for undo in others {
        let done = if undo.is_urgent() { undo.run_calmly(&mut calmed) } else { undo.run() };
        failed.extend(done.err());
    }
    failed.extend(calmed.iter().filter_map(|thread| thread.run().err()));
    failed.extend(last.into_iter().filter_map(|undo| undo.run().err()));
    // What threads of the table have started.
    inside.into_iter().for_each(set_ordinary);
    failed
}

/// The changes that were noted and not withdrawn, in order.
fn changes(notes: impl BufRead) -> Vec<Undo> {
    let read = |line: std::io::Result<String>| serde_json::from_str::<Note<'_>>(&line.ok()?).ok();
    let mut noted: Vec<Undo> = Vec::new();
    // A line that was cut off announces a change that was not made, or withdraws one that was put back.
    for note in notes.lines().map_while(read) {
        match note {
            Note::Change(undo) => noted.push(undo.into_owned()),
            Note::Withdrawn(undo) => {
                let at = noted.iter().rposition(|noted| *noted == *undo);
                at.into_iter().for_each(|at| drop(noted.remove(at)));
            }
        }
    }
    noted
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

    fn line(note: Note<'_>) -> String {
        serde_json::to_string(&note).expect("JSON") + "\n"
    }

    fn change(undo: Undo) -> Note<'static> {
        Note::Change(Cow::Owned(undo))
    }

    #[test]
    fn a_note_that_was_cut_off_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("made");
        std::fs::write(&path, "").expect("made");
        let mut notes = line(change(Undo::File { path: path.clone() }));
        notes.push_str("{\"change\":{\"file\":{\"pa");
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
            line(change(Undo::Setting { path: path.clone(), before, written }))
        };
        let notes = step("1", "2") + &step("2", "3");
        assert_eq!(put_back(notes.as_bytes()), Vec::<String>::new());
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "1");
    }

    #[test]
    fn what_cannot_be_put_back_is_said() {
        let path = std::path::PathBuf::from("/proc/nonsense/setting");
        let undo = Undo::Setting { path, before: "1".into(), written: "2".into() };
        assert_eq!(put_back(line(change(undo)).as_bytes()).len(), 1);
    }

    #[test]
    fn what_was_put_back_before_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").expect("made");
            path
        };
        let (one, other) = (file("one"), file("other"));
        let noted = |path: &std::path::Path| Undo::File { path: path.to_owned() };
        let notes = line(change(noted(&one)))
            + &line(change(noted(&other)))
            + &line(Note::Withdrawn(Cow::Owned(noted(&one))));
        assert_eq!(put_back(notes.as_bytes()), Vec::<String>::new());
        assert!(one.exists() && !other.exists());
        // It was changed once more.
        assert_eq!(put_back((notes + &line(change(noted(&one)))).as_bytes()), Vec::<String>::new());
        assert!(!one.exists());
    }

    /// What is put back meanwhile is a setting whose file can be read only when somebody has written there.
    #[test]
    fn real_time_priorities_are_put_back_last() {
        use punctual_linux::scheduling::{Processors, State, schedule, scheduling};
        let (thread, end, handle) = crate::living::living();
        let tid = thread.number;
        let fifo = |priority| Scheduling::from_policy(AssignedPolicy::Fifo(priority));
        if let Err(refused) = schedule(tid, &fifo(7)) {
            return eprintln!("SKIPPED: real-time priorities: {refused}");
        }
        let before = Box::new(State::read(tid).expect("it lives"));
        schedule(tid, &fifo(60)).expect("another priority");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("setting");
        assert!(Command::new("mkfifo").arg(&path).status().expect("coreutils").success());
        let undo = Undo::Thread {
            tid,
            identity: thread.identity,
            before,
            priorities: vec![60],
            processors: vec![Processors::MOST as u32 - 1],
            policies: Vec::new(),
        };
        let setting = Undo::Setting { path: path.clone(), before: "1".into(), written: "2".into() };
        let notes = line(change(setting)) + &line(change(undo));
        let done = std::thread::spawn(move || put_back(notes.as_bytes()));
        let mut writer = std::fs::OpenOptions::new().write(true).open(&path).expect("a reader");
        let meanwhile = scheduling(tid).expect("it lives");
        writer.write_all(b"3").expect("written");
        drop(writer);
        assert_eq!(done.join().expect("no panic"), Vec::<String>::new());
        assert!(meanwhile.matches(&Scheduling::ordinary()), "{meanwhile}");
        assert!(scheduling(tid).expect("it lives").matches(&fifo(7)));
        drop(end);
        handle.join().expect("it ends");
    }
}
