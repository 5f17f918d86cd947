//! The one `epoll` of the daemon, and what its events are about.

use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

pub use rustix::event::epoll::EventFlags as Ready;

/// Whom an event is about. Numbers are never used again, so an event that comes late is about nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Somebody wants to connect.
    Listener,
    /// A signal came.
    Signal,
    /// A connection, by its number.
    Connection(u64),
    /// A process ended, by its number here.
    Process(u64),
    /// The thread of a spec ended.
    Thread(u64),
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
        };
        kind << Self::KIND | number & ((1 << Self::KIND) - 1)
    }

    fn of(number: u64) -> Self {
        let (kind, number) = (number >> Self::KIND, number & ((1 << Self::KIND) - 1));
        match kind {
            0 => Token::Listener,
            1 => Token::Signal,
            2 => Token::Connection(number),
            3 => Token::Process(number),
            _ => Token::Thread(number),
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

    /// Watches it for something else.
    pub fn modify(&self, fd: impl AsFd, token: Token, ready: Ready) -> io::Result<()> {
        Ok(epoll::modify(&*self.0, fd, epoll::EventData::new_u64(token.number()), ready)?)
    }

    /// Waits until something happens, at most for `timeout`. An empty answer is one too.
    pub fn wait(&self, events: &mut Events, timeout: Option<Timespec>) -> io::Result<()> {
        events.buffer.clear();
        match epoll::wait(&*self.0, rustix::buffer::spare_capacity(&mut events.buffer), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// What happened; the room for it is used again.
pub struct Events {
    buffer: Vec<epoll::Event>,
}

impl Default for Events {
    fn default() -> Self {
        Self { buffer: Vec::with_capacity(256) }
    }
}

impl Events {
    /// Whom it is about, and what they are ready for.
    pub fn iter(&self) -> impl Iterator<Item = (Token, Ready)> + '_ {
        // The struct is packed: its fields are copied, not borrowed.
        self.buffer.iter().map(|event| (Token::of({ event.data }.u64()), { event.flags }))
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_back() {
        for token in
            [Token::Listener, Token::Signal, Token::Connection(7), Token::Process(1 << 40), Token::Thread(0)]
        {
            assert_eq!(Token::of(token.number()), token);
        }
    }
}
