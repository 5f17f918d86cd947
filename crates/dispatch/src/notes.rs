//! Where the guardian reads what to put back.
//!
//! The pipe ends when the last thread of the dispatcher has ended. After `kill -9` that can take for ever: a
//! thread of the dispatcher with a low priority does not even get to its end while a thread of the table,
//! with its turn and no reason to sleep, has the processor. So the guardian is also told when the
//! dispatcher's first thread ends (PR_SET_PDEATHSIG), and then gives all others a priority at which they
//! can.

use punctual_linux::proc;
use punctual_linux::scheduling::{self, Scheduling, State};
use punctual_schedule::AssignedPolicy;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// Tells the guardian that the thread which started it has ended.
const PARENT_ENDED: libc::c_int = libc::SIGUSR1;

/// The priority for threads that are to end if the guardian has none itself.
const GREATEST: u32 = 99;

/// Between two looks at threads that are to end.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Has the calling process told when its parent's thread ends. For between fork and exec: two system calls,
/// no lock, no allocation.
pub(crate) fn announce_end_of_parent() -> io::Result<()> {
    // SAFETY: both only read and write what is on this stack.
    let set = unsafe {
        let mut set = parent_ended();
        match libc::sigprocmask(libc::SIG_BLOCK, &raw mut set, std::ptr::null_mut()) {
            0 => libc::prctl(libc::PR_SET_PDEATHSIG, PARENT_ENDED),
            failed => failed,
        }
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn parent_ended() -> libc::sigset_t {
    // SAFETY: sigemptyset makes it a set of signals, and the signal exists.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, PARENT_ENDED);
        set
    }
}

/// Standard input of the guardian.
pub(crate) struct Notes<I> {
    input: I,
    dispatcher: i32,
    /// Readable when the dispatcher's first thread has ended.
    ended: OwnedFd,
    has_ended: bool,
}

impl<I: AsFd + Read> Notes<I> {
    /// Must be called before the dispatcher can have ended all of its threads.
    pub(crate) fn new(input: I) -> io::Result<Notes<I>> {
        let set = parent_ended();
        // SAFETY: it reads the set and returns a descriptor of its own.
        let ended = match unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC) } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: nothing else has it.
            number => unsafe { OwnedFd::from_raw_fd(number) },
        };
        // SAFETY: no memory is involved.
        let dispatcher = unsafe { libc::getppid() };
        Ok(Notes { input, dispatcher, ended, has_ended: false })
    }

    /// Waits for something to read. While there is nothing, the end of the dispatcher is helped along.
    fn wait(&mut self) -> io::Result<()> {
        loop {
            let mut inputs = vec![PollFd::new(&self.input, PollFlags::IN)];
            inputs.extend((!self.has_ended).then(|| PollFd::new(&self.ended, PollFlags::IN)));
            match poll(&mut inputs, self.has_ended.then_some(&PAUSE)) {
                Err(rustix::io::Errno::INTR) => continue,
                result => _ = result?,
            }
            if !inputs[0].revents().is_empty() {
                return Ok(());
            }
            self.has_ended = true;
            // Its input is open: some thread of it is left, so the number is still its own.
            raise(self.dispatcher as u32);
        }
    }
}

impl<I: AsFd + Read> Read for Notes<I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.input.read(buffer)
    }
}

/// Gives all threads of a process the priority of the caller.
fn raise(process: u32) {
    let own = State::read(0).map(|state| state.scheduling);
    let fifo = Scheduling::from_policy(AssignedPolicy::Fifo(GREATEST));
    let scheduling = own.ok().filter(|own| own.policy == fifo.policy).unwrap_or(fifo);
    for thread in proc::threads(process) {
        // One that ends meanwhile needs nothing.
        let _ = scheduling::schedule(thread, &scheduling);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_written_is_read_to_its_end() {
        let (reader, mut writer) = UnixStream::pair().expect("sockets");
        let mut notes = Notes::new(reader).expect("notes");
        writer.write_all(b"one\ntwo").expect("written");
        drop(writer);
        let mut text = String::new();
        notes.read_to_string(&mut text).expect("read");
        assert_eq!(text, "one\ntwo");
    }
}
