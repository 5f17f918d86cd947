//! One connection: bytes into messages, replies into bytes. Bounded both ways, and never waited for.

use crate::registry::Caller;
use memchr::memchr;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of a message at most, without its NUL.
pub const LONGEST_MESSAGE: usize = 64 * 1024;

/// A client's.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    /// Who is at its other end.
    pub caller: Caller,
    /// What came and was not a whole message then, or was more than one.
    input: Vec<u8>,
    /// How much of it is known to have no NUL.
    searched: usize,
    /// What could not be sent yet.
    output: Vec<u8>,
    /// Nothing more is read; it is closed when the output is sent.
    pub closing: bool,
    /// Whether it waits to send, not to receive.
    pub waits_to_send: bool,
    /// Whether it is in the backlog.
    pub queued: bool,
    /// What its user was charged for it.
    pub charged: usize,
}

/// How reading or sending went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// As far as it goes now.
    On,
    /// The other end is not there any more.
    Over,
}

impl Connection {
    /// A connection that was accepted just now.
    pub fn new(socket: OwnedFd, caller: Caller) -> Self {
        Self {
            socket,
            caller,
            input: Vec::new(),
            searched: 0,
            output: Vec::new(),
            closing: false,
            waits_to_send: false,
            queued: false,
            charged: 0,
        }
    }

    /// For the poll.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Bytes that it keeps.
    pub fn size(&self) -> usize {
        self.input.len() + self.output.len()
    }

    /// Whether there is output that waits.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Receives once, and hands over the first message that is whole, if one is. `buffer` is anybody's; it
    /// holds a message and its NUL.
    pub fn receive(&mut self, buffer: &mut [u8], mut message: impl FnMut(&mut Self, &[u8])) -> Went {
        let received = match recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Went::Over,
            Ok((received, _)) => &buffer[..received],
            Err(Errno::AGAIN | Errno::INTR) => return Went::On,
            Err(_) => return Went::Over,
        };
        // Nearly always one whole message comes, and nothing is copied.
        if self.input.is_empty() {
            if let Some(end) = memchr(0, received) {
                self.keep(&received[end + 1..]);
                message(self, &received[..end]);
                return Went::On;
            }
        }
        self.keep(received);
        self.next(message);
        Went::On
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Hands over the next message of those that came already.
    pub fn next(&mut self, mut message: impl FnMut(&mut Self, &[u8])) {
        let Some(end) = self.end() else { return };
        // Taken out, so that the callee may keep what it sends.
        let mut input = std::mem::take(&mut self.input);
        message(self, &input[..end]);
        input.drain(..=end);
        self.searched = 0;
        if !input.is_empty() {
            self.input = input;
        }
    }

    /// Whether a whole message came already.
    pub fn has_message(&mut self) -> bool {
        self.end().is_some()
    }

    /// Whether a message came that is too long, whole or not.
    pub fn is_too_long(&mut self) -> bool {
        self.end().unwrap_or(self.input.len()) > LONGEST_MESSAGE
    }

    fn end(&mut self) -> Option<usize> {
        match memchr(0, &self.input[self.searched..]) {
            Some(at) => Some(self.searched + at),
            None => {
                self.searched = self.input.len();
                None
            }
        }
    }

    /// Forgets what came.
    pub fn drop_input(&mut self) {
        (self.input, self.searched) = (Vec::new(), 0);
    }

    /// Sends a reply, after what waits already; keeps what the other end does not take yet.
    pub fn send(&mut self, reply: &[u8]) -> Went {
        if self.has_output() {
            self.output.extend_from_slice(reply);
            return Went::On;
        }
        match self.push(reply) {
            Ok(sent) => {
                self.output.extend_from_slice(&reply[sent..]);
                Went::On
            }
            Err(_) => Went::Over,
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self) -> Went {
        match self.push(&self.output) {
            Ok(sent) if sent == self.output.len() => {
                self.output = Vec::new();
                Went::On
            }
            Ok(sent) => {
                self.output.drain(..sent);
                Went::On
            }
            Err(_) => Went::Over,
        }
    }

    fn push(&self, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        match send(&self.socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(sent) => Ok(sent),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error),
        }
    }
}
