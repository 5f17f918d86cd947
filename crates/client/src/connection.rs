//! One connection: a message out, a message in, each ended by a NUL. Knows time limits, and nothing of what
//! is said.

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// No answer of the daemon is longer; what is, is none.
const LONGEST: usize = 16 << 20;
/// What most answers fit into; a longer one's memory is given back.
const USUAL: usize = 16 << 10;

/// A connection that is of no use any more, and why.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The other side had gone before it read what was sent.
    Unread,
    /// The other side has read what was sent and has gone without an answer.
    Unanswered,
    /// Time is up.
    TimedOut,
    /// More came than an answer has.
    Nonsense(&'static str),
    /// Something else.
    Kernel(Errno),
}

#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    limit: Option<Duration>,
    received: Vec<u8>,
}

impl Connection {
    /// Connects. A `limit` is for this, and for each exchange.
    pub fn open(path: &Path, limit: Option<Duration>) -> io::Result<Connection> {
        let address = SocketAddrUnix::new(path)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Send, limit)?;
        set_socket_timeout(&socket, Timeout::Recv, limit)?;
        let begin = Instant::now();
        loop {
            match connect(&socket, &address) {
                Ok(()) => break,
                Err(Errno::INTR) if limit.is_none_or(|limit| begin.elapsed() < limit) => {}
                Err(Errno::AGAIN) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "too many wait to be let in"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Connection { socket, limit, received: vec![0; USUAL] })
    }

    /// Sends `message`, which ends with its NUL, and waits for the answer, without its NUL.
    pub fn exchange(&mut self, message: &[u8]) -> Result<&[u8], Fault> {
        // Asking the clock costs; it is asked only where one system call each way does not do.
        let mut begin = None;
        let length = match self.send(message, &mut begin) {
            Ok(()) => self.receive(&mut begin)?,
            // Who is refused is told so without being asked; that may have come before the connection was
            // closed.
            Err(Fault::Unread) => self.receive(&mut begin).map_err(|_| Fault::Unread)?,
            Err(fault) => return Err(fault),
        };
        if begin.is_some() {
            // The next exchange has all of its time again.
            set_socket_timeout(&self.socket, Timeout::Send, self.limit).map_err(Fault::Kernel)?;
            set_socket_timeout(&self.socket, Timeout::Recv, self.limit).map_err(Fault::Kernel)?;
        }
        Ok(&self.received[..length])
    }

    fn send(&self, message: &[u8], begin: &mut Option<Instant>) -> Result<(), Fault> {
        let mut sent = 0;
        loop {
            // A program must not die of SIGPIPE because a daemon has ended.
            match send(&self.socket, &message[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(Fault::TimedOut),
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Fault::Unread),
                Err(error) => return Err(Fault::Kernel(error)),
            }
            if sent == message.len() {
                return Ok(());
            }
            self.leave_the_rest(begin, Timeout::Send)?;
        }
    }

    fn receive(&mut self, begin: &mut Option<Instant>) -> Result<usize, Fault> {
        if self.received.len() > USUAL {
            self.received = vec![0; USUAL];
        }
        let mut filled = 0;
        loop {
            match recv(&self.socket, &mut self.received[filled..], RecvFlags::empty()) {
                Ok((0, _)) => return Err(Fault::Unanswered),
                Ok((count, _)) => {
                    let end = memchr::memchr(0, &self.received[filled..filled + count]);
                    filled += count;
                    match end {
                        Some(end) if end + 1 == count => return Ok(filled - 1),
                        Some(_) => return Err(Fault::Nonsense("more than one message came for one")),
                        None => {}
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(Fault::TimedOut),
                // The kernel says so where the other side has closed with something of ours unread.
                Err(Errno::CONNRESET) => return Err(Fault::Unread),
                Err(error) => return Err(Fault::Kernel(error)),
            }
            if filled == self.received.len() {
                if filled >= LONGEST {
                    return Err(Fault::Nonsense("it does not end within 16 MiB"));
                }
                self.received.resize(filled * 2, 0);
            }
            self.leave_the_rest(begin, Timeout::Recv)?;
        }
    }

    /// Leaves to the next system call what is left of the time since the first one that did not do.
    fn leave_the_rest(&self, begin: &mut Option<Instant>, which: Timeout) -> Result<(), Fault> {
        let begin = *begin.get_or_insert_with(Instant::now);
        let Some(limit) = self.limit else { return Ok(()) };
        let left =
            limit.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()).ok_or(Fault::TimedOut)?;
        set_socket_timeout(&self.socket, which, Some(left)).map_err(Fault::Kernel)
    }
}
