//! The loop: who connects, what comes, in fair turns. One request of each connection a round, and nobody is
//! waited for.

pub mod connection;
pub mod peer;

use crate::error::Error;
use crate::log;
use crate::poll::{Events, Poll, Ready, Token};
use crate::protocol::{self, About};
use crate::registry::{Caller, Registry};
use connection::{Connection, LONGEST_MESSAGE, Went};
use peer::Peer;
use rustc_hash::FxHashMap as HashMap;
use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Bytes that all connections of a user may keep waiting, in and out; and of root.
const MOST_BYTES: (usize, usize) = (16 << 20, 256 << 20);
/// Connections taken in a round, so that those who have one are not kept waiting.
const ACCEPTED_AT_ONCE: usize = 32;
/// How often threads are looked at that the kernel says nothing of.
const SWEEP: Duration = Duration::from_secs(1);

/// Refused connections that stay open until so many others were refused: whoever has not asked yet would else
/// find the connection broken, and not read why.
const REFUSED: usize = 64;

/// What a user has of the server.
#[derive(Debug, Default)]
struct Account {
    connections: usize,
    bytes: usize,
}

/// Serves until it is told not to.
#[derive(Debug)]
pub struct Server {
    poll: Poll,
    listener: OwnedFd,
    /// All specs.
    pub registry: Registry,
    connections: HashMap<u64, Connection>,
    next: u64,
    accounts: HashMap<u32, Account>,
    /// Connections with a whole message that waits for its turn.
    backlog: VecDeque<u64>,
    /// Those who were told why there is no room for them. Nothing is read from them.
    refused: VecDeque<Connection>,
    about: About,
    /// For when there are no more descriptors: given up to take a connection and close it, as it would else
    /// be there for ever.
    reserve: Option<OwnedFd>,
    told_of_descriptors: Option<Instant>,
    /// When such threads were last looked at.
    swept: Instant,
    buffer: Box<[u8]>,
    reply: Vec<u8>,
}

impl Server {
    /// Listens on `listener`, a Unix stream socket. `signal` becomes readable when a signal came.
    pub fn new(poll: Poll, listener: OwnedFd, signal: impl AsFd, registry: Registry) -> io::Result<Self> {
        poll.add(&listener, Token::Listener)?;
        poll.add(signal, Token::Signal)?;
        Ok(Self {
            poll,
            listener,
            registry,
            connections: HashMap::default(),
            next: 1,
            accounts: HashMap::default(),
            backlog: VecDeque::new(),
            refused: VecDeque::new(),
            about: About::now(),
            reserve: reserve(),
            told_of_descriptors: None,
            swept: Instant::now(),
            buffer: vec![0; LONGEST_MESSAGE + 1].into(),
            reply: Vec::new(),
        })
    }

    /// One round. Whether a signal came.
    pub fn round(&mut self, events: &mut Events) -> io::Result<bool> {
        let has_unwatched = self.registry.has_unwatched();
        let timeout = match (self.backlog.is_empty(), has_unwatched) {
            (false, _) => Some(Timespec { tv_sec: 0, tv_nsec: 0 }),
            (true, true) => Some(Timespec { tv_sec: SWEEP.as_secs() as _, tv_nsec: 0 }),
            (true, false) => None,
        };
        self.poll.wait(events, timeout)?;
        // By the clock: where somebody asks all the time, there is no round without events.
        if has_unwatched && self.swept.elapsed() >= SWEEP {
            self.registry.sweep();
            self.swept = Instant::now();
        }
        let (mut listener, mut signal) = (false, false);
        // Who ended, before who asks: a connection speaks for nobody then.
        for (token, _) in events.iter() {
            match token {
                Token::Process(process) => self.registry.process_ended(process),
                Token::Thread(spec) => self.registry.thread_ended(punctual_schedule::SpecId(spec)),
                Token::Listener => listener = true,
                Token::Signal => signal = true,
                Token::Connection(_) => {}
            }
        }
        // Those with a message already, once each; who is put back to the end now has had its turn.
        for _ in 0..self.backlog.len() {
            let Some(number) = self.backlog.pop_front() else { break };
            self.serve_waiting(number);
        }
        for (token, ready) in events.iter() {
            if let Token::Connection(number) = token {
                self.serve(number, ready);
            }
        }
        if listener {
            self.accept();
        }
        Ok(signal)
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let socket = match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => socket,
                Err(Errno::MFILE | Errno::NFILE) => {
                    self.turn_away();
                    continue;
                }
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(_) => return,
            };
            if let Err(error) = peer::of(socket.as_fd()).and_then(|peer| self.admit(socket, peer)) {
                self.tell_of_descriptors(&error);
            }
        }
    }

    /// Takes a connection and closes it, since there is no descriptor for it.
    fn turn_away(&mut self) {
        self.reserve = None;
        drop(accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK));
        self.reserve = reserve();
        self.tell_of_descriptors(&Errno::MFILE.into());
    }

    /// Once a minute at most: who can make it happen can do so very often.
    fn tell_of_descriptors(&mut self, error: &io::Error) {
        if self.told_of_descriptors.is_none_or(|told| told.elapsed() > Duration::from_secs(60)) {
            self.told_of_descriptors = Some(Instant::now());
            log::warning(&format!(
                "a connection was turned away: {error} ({} are open)",
                self.connections.len()
            ));
        }
    }

    /// Serves a connection from now on, if its user may have one more. `socket` does not block.
    pub fn admit(&mut self, socket: OwnedFd, peer: Peer) -> io::Result<()> {
        let user = peer.who.user;
        let quotas = *self.registry.quotas();
        let theirs = self.accounts.get(&user).map_or(0, |account| account.connections);
        let all = self.connections.len();
        let refused =
            match (peer.who.is_root(), theirs >= quotas.connections_per_user, all >= quotas.connections) {
                (true, _, _) | (_, false, false) => None,
                (_, true, _) => Some((format!("connections of user {user}"), quotas.connections_per_user)),
                (_, _, true) => Some(("connections".to_owned(), quotas.connections)),
            };
        if let Some((what, limit)) = refused {
            let mut connection = Connection::new(socket, Caller { who: Rc::new(peer.who), process: None });
            self.reply.clear();
            protocol::refuse(&Error::TooMany { what, limit: limit as u64 }, &mut self.reply);
            // Whoever does not take it at once is not told.
            connection.send(&self.reply);
            self.refused.truncate(REFUSED - 1);
            self.refused.push_front(connection);
            return Ok(());
        }
        let process = match peer.process {
            Some((number, pidfd)) => match self.registry.connected(number, pidfd, user) {
                Ok(process) => Some(process),
                Err(error)
                    if error.raw_os_error() == Some(libc::ESRCH)
                        || error.kind() == io::ErrorKind::NotFound =>
                {
                    None
                }
                Err(error) => return Err(error),
            },
            None => None,
        };
        let number = self.next;
        self.next += 1;
        if let Err(error) = self.poll.add(&socket, Token::Connection(number)) {
            if let Some(process) = process {
                self.registry.disconnected(process);
            }
            return Err(error);
        }
        self.accounts.entry(user).or_default().connections += 1;
        self.connections.insert(number, Connection::new(socket, Caller { who: Rc::new(peer.who), process }));
        Ok(())
    }

    /// A message that came with another one has its turn.
    fn serve_waiting(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.queued = false;
        if connection.waits_to_send || connection.closing {
            return;
        }
        let (registry, about, reply) = (&mut self.registry, &self.about, &mut self.reply);
        let mut went = Went::On;
        if connection.is_too_long() {
            went = refuse_length(connection, reply);
        } else {
            connection.next(|connection, message| went = answer(connection, message, about, registry, reply));
        }
        self.settle(number, went);
    }

    fn serve(&mut self, number: u64, ready: Ready) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.waits_to_send || connection.closing {
            let went = connection.flush();
            self.settle(number, went);
            return;
        }
        // It has its turn in the backlog, and nothing more is read until that is empty.
        if !ready.intersects(Ready::IN | Ready::HUP | Ready::ERR) || connection.has_message() {
            return;
        }
        let (registry, about, reply) = (&mut self.registry, &self.about, &mut self.reply);
        let mut went = Went::On;
        let received = connection.receive(&mut self.buffer, |connection, message| {
            went = answer(connection, message, about, registry, reply)
        });
        if received == Went::Over {
            connection.closing = true;
            connection.drop_input();
        } else if connection.is_too_long() && !connection.closing {
            went = refuse_length(connection, reply);
        }
        self.settle(number, went);
    }

    /// After whatever happened to a connection: closes it, waits to send, or puts it into the backlog.
    fn settle(&mut self, number: u64, went: Went) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if went == Went::Over || connection.closing && !connection.has_output() {
            return self.close(number);
        }
        let account = self.accounts.entry(connection.caller.who.user).or_default();
        let size = connection.size();
        let grew = size > connection.charged;
        account.bytes = account.bytes - connection.charged + size;
        connection.charged = size;
        let most = if connection.caller.who.is_root() { MOST_BYTES.1 } else { MOST_BYTES.0 };
        if grew && account.bytes > most {
            return self.close(number);
        }
        let waits = connection.has_output();
        if waits != connection.waits_to_send {
            connection.waits_to_send = waits;
            let ready = if waits { Ready::OUT } else { Ready::IN };
            if self.poll.modify(connection.socket(), Token::Connection(number), ready).is_err() {
                return self.close(number);
            }
        }
        if !waits && !connection.queued && connection.has_message() {
            connection.queued = true;
            self.backlog.push_back(number);
        }
    }

    fn close(&mut self, number: u64) {
        let Some(connection) = self.connections.remove(&number) else { return };
        let user = connection.caller.who.user;
        if let Some(account) = self.accounts.get_mut(&user) {
            account.connections -= 1;
            account.bytes -= connection.charged;
            if account.connections == 0 {
                self.accounts.remove(&user);
            }
        }
        if let Some(process) = connection.caller.process {
            self.registry.disconnected(process);
        }
    }
}

fn reserve() -> Option<OwnedFd> {
    File::open("/dev/null").ok().map(OwnedFd::from)
}

fn answer(
    connection: &mut Connection,
    message: &[u8],
    about: &About,
    registry: &mut Registry,
    reply: &mut Vec<u8>,
) -> Went {
    reply.clear();
    if message.len() > LONGEST_MESSAGE {
        return refuse_length(connection, reply);
    }
    if !protocol::answer(message, &connection.caller, about, registry, reply) {
        connection.closing = true;
        connection.drop_input();
    }
    let went = connection.send(reply);
    // One long list is no reason to keep that much for ever.
    if reply.capacity() > 1 << 20 {
        *reply = Vec::new();
    }
    went
}

fn refuse_length(connection: &mut Connection, reply: &mut Vec<u8>) -> Went {
    reply.clear();
    let limit = LONGEST_MESSAGE as u64;
    protocol::refuse(&Error::TooMany { what: "bytes in a message".into(), limit }, reply);
    connection.closing = true;
    connection.drop_input();
    connection.send(reply)
}
