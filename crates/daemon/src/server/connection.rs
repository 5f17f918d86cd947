//! One connection: bytes into messages, replies into bytes, both bounded and without blocking.

use crate::poll::Ready;
use crate::registry::Caller;
use memchr::memchr;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of a message at most, without its NUL.
pub const LONGEST_MESSAGE: usize = 64 * 1024;

/// A client's connection.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    /// The client.
    pub caller: Caller,
    /// Received bytes that are not answered yet.
    input: Vec<u8>,
    /// How much of the input was searched for NUL already.
    searched: usize,
    /// What could not be sent yet.
    output: Vec<u8>,
    /// What goes with its first byte.
    file: Option<OwnedFd>,
    /// Nothing more is read; it is closed when the output is sent.
    pub closing: bool,
    /// What it waits for.
    pub interest: Ready,
    /// The message that Polkit is asked about: nothing more is read until the answer.
    pub asked: Option<Asked>,
    /// Whether it is in the backlog.
    pub queued: bool,
    /// Bytes counted against its user.
    pub charged: usize,
}

/// A message that Polkit is asked about.
#[derive(Debug)]
pub struct Asked {
    /// It, without its NUL.
    pub message: Vec<u8>,
    /// The plugin that would admit what it asks for.
    pub plugin: String,
    /// The line that leaves it to Polkit.
    pub rule: String,
}

/// The outcome of reading or sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The connection is still open.
    Open,
    /// The other end is closed.
    Closed,
}

impl Connection {
    /// A new connection.
    pub fn new(socket: OwnedFd, caller: Caller) -> Self {
        Self {
            socket,
            caller,
            input: Vec::new(),
            searched: 0,
            output: Vec::new(),
            file: None,
            closing: false,
            interest: Ready::IN,
            asked: None,
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
        let asked = self.asked.as_ref().map_or(0, |asked| asked.message.len());
        self.input.len() + self.output.len() + asked
    }

    /// Whether it can be served now: its replies are read, and it waits for nothing.
    pub fn is_ready(&self) -> bool {
        self.interest == Ready::IN && self.asked.is_none() && !self.closing
    }

    /// What it is to wait for now. Its end is always told.
    pub fn next_interest(&self) -> Ready {
        match self.has_output() {
            true => Ready::OUT,
            false if self.asked.is_some() => Ready::empty(),
            false => Ready::IN,
        }
    }

    /// Whether there is output that waits.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Receives once, and hands over the first complete message, if there is one. `buffer` is scratch space
    /// for a message and its NUL.
    pub fn receive(&mut self, buffer: &mut [u8], mut message: impl FnMut(&mut Self, &[u8])) -> Outcome {
        let received = match recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Outcome::Closed,
            Ok((received, _)) => &buffer[..received],
            Err(Errno::AGAIN | Errno::INTR) => return Outcome::Open,
            Err(_) => return Outcome::Closed,
        };
        // The usual case is one complete message, which is not copied.
        if self.input.is_empty() {
            if let Some(end) = memchr(0, received) {
                self.keep(&received[end + 1..]);
                message(self, &received[..end]);
                return Outcome::Open;
            }
        }
        self.keep(received);
        self.next(message);
        Outcome::Open
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Hands over the next buffered message.
    pub fn next(&mut self, mut message: impl FnMut(&mut Self, &[u8])) {
        let Some(end) = self.end() else { return };
        // Taken out, so that the callee may buffer its reply.
        let mut input = std::mem::take(&mut self.input);
        message(self, &input[..end]);
        input.drain(..=end);
        self.searched = 0;
        if !input.is_empty() {
            self.input = input;
        }
    }

    /// Whether a complete message is buffered.
    pub fn has_message(&mut self) -> bool {
        self.end().is_some()
    }

    /// Whether the next message is too long, complete or not.
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

    /// Discards the input.
    pub fn drop_input(&mut self) {
        (self.input, self.searched) = (Vec::new(), 0);
    }

    /// Sends a reply after the buffered output; buffers what the other end does not take yet.
    pub fn send(&mut self, reply: &[u8]) -> Outcome {
        if self.has_output() {
            self.output.extend_from_slice(reply);
            return Outcome::Open;
        }
        match self.push(reply) {
            Ok(sent) => {
                self.output.extend_from_slice(&reply[sent..]);
                Outcome::Open
            }
            Err(_) => Outcome::Closed,
        }
    }

    /// The same for a reply that a file goes with; nothing may be buffered.
    pub fn send_with(&mut self, reply: &[u8], file: OwnedFd) -> Outcome {
        self.file = Some(file);
        self.send(reply)
    }

    /// Sends buffered output.
    pub fn flush(&mut self) -> Outcome {
        let mut output = std::mem::take(&mut self.output);
        match self.push(&output) {
            Ok(sent) if sent == output.len() => Outcome::Open,
            Ok(sent) => {
                output.drain(..sent);
                self.output = output;
                Outcome::Open
            }
            Err(_) => Outcome::Closed,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = match &self.file {
            None => send(&self.socket, bytes, flags),
            Some(file) => {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let (mut with, files) = (SendAncillaryBuffer::new(&mut space), [file.as_fd()]);
                with.push(SendAncillaryMessage::ScmRights(&files));
                sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut with, flags)
            }
        };
        match sent {
            Ok(sent) => {
                self.file = None;
                Ok(sent)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Who;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, recvmsg};
    use std::io::IoSliceMut;
    use std::os::unix::net::UnixStream;
    use std::rc::Rc;

    /// What goes with a reply goes with it even where the other end does not read at once.
    #[test]
    fn a_file_waits_with_its_reply() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let who = Who { user: 1, group: 1, groups: vec![] };
        let mut connection = Connection::new(ours.into(), Caller::new(Rc::new(who), None));
        let piece = [b'x'; 4096];
        let mut before = 0;
        while let Ok(sent) = send(&connection.socket, &piece, SendFlags::DONTWAIT) {
            before += sent;
        }
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(connection.send_with(b"reply", file.into()), Outcome::Open);
        assert!(connection.has_output());
        let mut buffer = vec![0; before];
        std::io::Read::read_exact(&mut &theirs, &mut buffer).unwrap();
        assert_eq!(connection.flush(), Outcome::Open);
        assert!(!connection.has_output());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let received =
            recvmsg(&theirs, &mut [IoSliceMut::new(&mut buffer)], &mut with, RecvFlags::DONTWAIT).unwrap();
        assert_eq!(&buffer[..received.bytes], b"reply");
        let files: usize = with
            .drain()
            .map(|message| match message {
                RecvAncillaryMessage::ScmRights(files) => files.count(),
                _ => 0,
            })
            .sum();
        assert_eq!(files, 1);
    }
}
