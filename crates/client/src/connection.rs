//! A connection: sends a message and receives one, each terminated by a NUL. Handles timeouts; not for the
//! content of messages.

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recvmsg, send, socket_with,
};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer replies are errors.
const LONGEST: usize = 16 << 20;
/// Most replies fit into this; memory for longer ones is freed.
const USUAL: usize = 16 << 10;

/// Why a connection can no longer be used.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The other side closed it before reading the request.
    Unread,
    /// The other side closed it after reading the request, without a reply.
    Unanswered,
    /// Timeout.
    TimedOut,
    /// The reply is malformed or too long.
    Nonsense(&'static str),
    /// Something else.
    Kernel(Errno),
}

#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    limit: Option<Duration>,
    received: Vec<u8>,
    /// What came with a reply.
    file: Option<OwnedFd>,
}

impl Connection {
    /// Connects. The timeout `limit` applies to this and to each exchange.
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
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "too many clients are waiting to connect",
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Connection { socket, limit, received: vec![0; USUAL], file: None })
    }

    /// Sends `message`, including its NUL, and waits for the reply, which is returned without it.
    pub fn exchange(&mut self, message: &[u8]) -> Result<&[u8], Fault> {
        // Reading the clock is expensive, so it is read only if one system call each way is not enough.
        let mut begin = None;
        let length = match self.send(message, &mut begin) {
            Ok(()) => self.receive(&mut begin)?,
            // A refused client gets an unsolicited reply, possibly before the connection was closed.
            Err(Fault::Unread) => self.receive(&mut begin).map_err(|_| Fault::Unread)?,
            Err(fault) => return Err(fault),
        };
        if begin.is_some() {
            // Restore the full timeout for the next exchange.
            set_socket_timeout(&self.socket, Timeout::Send, self.limit).map_err(Fault::Kernel)?;
            set_socket_timeout(&self.socket, Timeout::Recv, self.limit).map_err(Fault::Kernel)?;
        }
        Ok(&self.received[..length])
    }

    fn send(&self, message: &[u8], begin: &mut Option<Instant>) -> Result<(), Fault> {
        let mut sent = 0;
        loop {
            // A program must not be killed by SIGPIPE because the daemon ended.
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

    /// The file that came with the last reply.
    pub fn take_file(&mut self) -> Option<OwnedFd> {
        self.file.take()
    }

    fn receive(&mut self, begin: &mut Option<Instant>) -> Result<usize, Fault> {
        if self.received.len() > USUAL {
            self.received = vec![0; USUAL];
        }
        let mut filled = 0;
        loop {
            match receive_some(&self.socket, &mut self.received[filled..], &mut self.file) {
                Ok(0) => return Err(Fault::Unanswered),
                Ok(count) => {
                    let end = memchr::memchr(0, &self.received[filled..filled + count]);
                    filled += count;
                    match end {
                        Some(end) if end + 1 == count => return Ok(filled - 1),
                        Some(_) => return Err(Fault::Nonsense("more than one message in reply")),
                        None => {}
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(Fault::TimedOut),
                // The kernel reports this if the other side closed the socket with unread data.
                Err(Errno::CONNRESET) => return Err(Fault::Unread),
                Err(error) => return Err(Fault::Kernel(error)),
            }
            if filled == self.received.len() {
                if filled >= LONGEST {
                    return Err(Fault::Nonsense("longer than 16 MiB"));
                }
                self.received.resize(filled * 2, 0);
            }
            self.leave_the_rest(begin, Timeout::Recv)?;
        }
    }

    /// Limits the next system call to the remaining time.
    fn leave_the_rest(&self, begin: &mut Option<Instant>, which: Timeout) -> Result<(), Fault> {
        let begin = *begin.get_or_insert_with(Instant::now);
        let Some(limit) = self.limit else { return Ok(()) };
        let left =
            limit.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()).ok_or(Fault::TimedOut)?;
        set_socket_timeout(&self.socket, which, Some(left)).map_err(Fault::Kernel)
    }
}

/// Receives once; keeps a file that comes with it.
fn receive_some(socket: &OwnedFd, into: &mut [u8], file: &mut Option<OwnedFd>) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut with, RecvFlags::CMSG_CLOEXEC)?;
    for message in with.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            *file = files.last();
        }
    }
    Ok(received.bytes)
}
