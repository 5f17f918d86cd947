//! The daemon's one `epoll`, and the sources of its events.

use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

pub use rustix::event::epoll::EventFlags as Ready;

/// The source of an event. Numbers are never used again, so a late event matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A client wants to connect.
    Listener,
    /// A signal came.
    Signal,
    /// A connection, by its number.
    Connection(u64),
    /// A process ended, by its key in the registry.
    Process(u64),
    /// The thread of a spec ended.
    Thread(u64),
    /// Something is to be known of threads that are held to their runtime.
    Enforcer,
    /// A client of the system bus asks.
    Bus,
    /// Polkit answers.
    Polkit,
}

impl Token {
    const KIND: u32 = 56;

    fn number(self) -> u64 {
        let (kind, number) = match self {
            Token::Listener => (0, 0),
            Token::Signal => (1, 0),
            Token::Connection(number) => (2, number),
            Token::Process(number) => (3, number),
            Token::Thread(number) => (4, number),
            Token::Enforcer => (5, 0),
            Token::Bus => (6, 0),
            Token::Polkit => (7, 0),
        };
        kind << Self::KIND | number & ((1 << Self::KIND) - 1)
    }

    fn from_number(number: u64) -> Self {
        let (kind, number) = (number >> Self::KIND, number & ((1 << Self::KIND) - 1));
        match kind {
            0 => Token::Listener,
            1 => Token::Signal,
            2 => Token::Connection(number),
            3 => Token::Process(number),
            4 => Token::Thread(number),
            5 => Token::Enforcer,
            6 => Token::Bus,
            _ => Token::Polkit,
        }
    }
}

/// Watches descriptors until they are closed.
#[derive(Clone, Debug)]
pub struct Poll(Rc<OwnedFd>);

impl Poll {
    /// Watches nothing yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Rc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?)))
    }

    /// Watches `fd` for reading.
    pub fn add(&self, fd: impl AsFd, token: Token) -> io::Result<()> {
        Ok(epoll::add(&*self.0, fd, epoll::EventData::new_u64(token.number()), Ready::IN)?)
    }

    /// Changes what to watch for.
    pub fn modify(&self, fd: impl AsFd, token: Token, ready: Ready) -> io::Result<()> {
        Ok(epoll::modify(&*self.0, fd, epoll::EventData::new_u64(token.number()), ready)?)
    }

    /// Waits for events, at most for `timeout`; there may be none.
    pub fn wait(&self, events: &mut Events, timeout: Option<Timespec>) -> io::Result<()> {
        events.buffer.clear();
        match epoll::wait(&*self.0, rustix::buffer::spare_capacity(&mut events.buffer), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A buffer of events, to be reused.
pub struct Events {
    buffer: Vec<epoll::Event>,
}

impl Default for Events {
    fn default() -> Self {
        Self { buffer: Vec::with_capacity(256) }
    }
}

impl Events {
    /// The sources, and what they are ready for.
    pub fn iter(&self) -> impl Iterator<Item = (Token, Ready)> + '_ {
        // The struct is packed: its fields are copied, not borrowed.
        self.buffer.iter().map(|event| (Token::from_number({ event.data }.u64()), { event.flags }))
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_back() {
        for token in [
            Token::Listener,
            Token::Signal,
            Token::Connection(7),
            Token::Process(1 << 40),
            Token::Thread(0),
            Token::Enforcer,
            Token::Bus,
            Token::Polkit,
        ] {
            assert_eq!(Token::from_number(token.number()), token);
        }
    }
}
