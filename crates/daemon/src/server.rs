//! The server loop: accepts connections and answers one request of each per round. It never blocks on a
//! client.

pub mod connection;
pub mod peer;

use crate::config::RealtimeKit;
use crate::error::Error;
use crate::log;
use crate::polkit::{Polkit, Verdict};
use crate::poll::{Events, Poll, Ready, Token};
use crate::protocol::{self, About, Answered};
use crate::realtimekit::Service;
use crate::registry::{Caller, Registry};
use connection::{Asked, Connection, LONGEST_MESSAGE, Outcome};
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

/// Buffered bytes allowed over all connections of a user, in and out; the second number is root's.
const MOST_BYTES: (usize, usize) = (16 << 20, 256 << 20);
/// Connections accepted per round, so that connected clients do not wait long.
const ACCEPTED_AT_ONCE: usize = 32;
/// How often to check threads whose end the kernel does not report.
const SWEEP: Duration = Duration::from_secs(1);

/// Refused connections stay open until this many later ones were refused: otherwise a client that has not
/// sent its request yet would find the connection broken, and not read the reason.
const REFUSED: usize = 64;

/// A user's share of the server.
#[derive(Debug, Default)]
struct Account {
    connections: usize,
    bytes: usize,
}

/// The server.
#[derive(Debug)]
pub struct Server {
    poll: Poll,
    listener: OwnedFd,
    /// All specs.
    pub registry: Registry,
    /// RealtimeKit's interface, where that is configured.
    pub realtimekit: Option<Service>,
    connections: HashMap<u64, Connection>,
    next: u64,
    accounts: HashMap<u32, Account>,
    /// Connections with a complete message that waits for its turn.
    backlog: VecDeque<u64>,
    /// Refused connections. Nothing is read from them.
    refused: VecDeque<Connection>,
    about: About,
    /// Questions about requests that the rules leave to Polkit.
    polkit: Polkit,
    /// Spare descriptor: closed on EMFILE to accept and refuse one connection.
    reserve: Option<OwnedFd>,
    warned_at: Option<Instant>,
    /// When unwatched threads were last checked.
    swept: Instant,
    buffer: Box<[u8]>,
    reply: Vec<u8>,
}

impl Server {
    /// Listens on `listener`, a Unix stream socket. `signal` becomes readable when a signal came.
    pub fn new(poll: Poll, listener: OwnedFd, signal: impl AsFd, registry: Registry) -> io::Result<Self> {
        poll.add(&listener, Token::Listener)?;
        poll.add(signal, Token::Signal)?;
        let polkit = Polkit::new(&poll)?;
        Ok(Self {
            poll,
            polkit,
            listener,
            registry,
            realtimekit: None,
            connections: HashMap::default(),
            next: 1,
            accounts: HashMap::default(),
            backlog: VecDeque::new(),
            refused: VecDeque::new(),
            about: About::now(),
            reserve: reserve(),
            warned_at: None,
            swept: Instant::now(),
            buffer: vec![0; LONGEST_MESSAGE + 1].into(),
            reply: Vec::new(),
        })
    }

    /// Serves one round. Returns whether a signal came.
    pub fn round(&mut self, events: &mut Events) -> io::Result<bool> {
        let has_unwatched = self.registry.has_unwatched();
        let sweep = has_unwatched.then_some(SWEEP);
        let due = [self.registry.limit_due(), self.registry.helpers_due(), self.polkit.due()];
        let due = due.into_iter().flatten().min().map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = match self.backlog.is_empty() {
            false => Some(Duration::ZERO),
            true => sweep.into_iter().chain(due).min(),
        };
        let timespec = |wait: Duration| Timespec {
            tv_sec: wait.as_secs() as _,
            // Not a round too early.
            tv_nsec: wait.subsec_nanos().into(),
        };
        self.poll.wait(events, timeout.map(timespec))?;
        self.registry.keep_limit();
        // By the clock: under constant load there is no round without events.
        if has_unwatched && self.swept.elapsed() >= SWEEP {
            self.registry.check_unwatched();
            self.swept = Instant::now();
        }
        let (mut listener, mut signal, mut enforcer, mut bus, mut polkit) =
            (false, false, false, false, false);
        // Ends before requests: a connection of an ended process speaks for no one.
        for (token, _) in events.iter() {
            match token {
                Token::Process(process) => self.registry.process_ended(process),
                Token::Thread(spec) => self.registry.thread_ended(punctual_schedule::SpecId(spec)),
                Token::Listener => listener = true,
                Token::Signal => signal = true,
                Token::Enforcer => enforcer = true,
                Token::Bus => bus = true,
                Token::Polkit => polkit = true,
                Token::Connection(_) => {}
            }
        }
        if enforcer {
            self.registry.heed_enforcer();
        }
        self.registry.send_descendants_home();
        // The backlog once: a connection that goes back to its end has had its turn.
        for _ in 0..self.backlog.len() {
            let Some(number) = self.backlog.pop_front() else { break };
            self.serve_waiting(number);
        }
        for (token, ready) in events.iter() {
            if let Token::Connection(number) = token {
                self.serve(number, ready);
            }
        }
        if polkit || self.polkit.due().is_some_and(|due| due <= Instant::now()) {
            for (number, verdict) in self.polkit.answers() {
                self.resume(number, verdict);
            }
        }
        if let Some(service) = self.realtimekit.as_ref().filter(|_| bus) {
            service.counter().serve(&mut self.registry);
        }
        if listener {
            self.accept();
        }
        Ok(signal)
    }

    /// Serves RealtimeKit's interface as configured now; continues if nothing changed.
    pub fn serve_bus(&mut self, kit: Option<RealtimeKit>) {
        if self.realtimekit.as_ref().map(|service| &service.kit) == kit.as_ref() {
            return;
        }
        // The old one gives the name back first.
        self.realtimekit = None;
        self.realtimekit = kit.and_then(|kit| match Service::start(kit, &self.poll) {
            Ok(service) => Some(service),
            Err(error) => {
                log::error(&format!("RealtimeKit's interface cannot be served: {error}"));
                None
            }
        });
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
            if let Err(error) = peer::identify(socket.as_fd()).and_then(|peer| self.admit(socket, peer)) {
                self.warn_of_descriptors(&error);
            }
        }
    }

    /// Accepts and closes a connection for which there is no descriptor.
    fn turn_away(&mut self) {
        self.reserve = None;
        drop(accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK));
        self.reserve = reserve();
        self.warn_of_descriptors(&Errno::MFILE.into());
    }

    /// At most once a minute: clients could fill the log otherwise.
    fn warn_of_descriptors(&mut self, error: &io::Error) {
        if self.warned_at.is_none_or(|warned| warned.elapsed() > Duration::from_secs(60)) {
            self.warned_at = Some(Instant::now());
            log::warning(&format!("refused a connection: {error} ({} are open)", self.connections.len()));
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
            let mut connection = Connection::new(socket, Caller::new(Rc::new(peer.who), None));
            self.reply.clear();
            protocol::refuse(&Error::TooMany { what, limit: limit as u64 }, &mut self.reply);
            // Not kept for a client that does not read at once.
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
        self.connections.insert(number, Connection::new(socket, Caller::new(Rc::new(peer.who), process)));
        Ok(())
    }

    /// Answers a message that came together with an earlier one.
    fn serve_waiting(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.queued = false;
        if !connection.is_ready() {
            return;
        }
        let mut desk = Desk {
            number,
            registry: &mut self.registry,
            about: &self.about,
            polkit: &mut self.polkit,
            reply: &mut self.reply,
        };
        let mut went = Outcome::Open;
        if connection.is_too_long() {
            went = refuse_length(connection, desk.reply);
        } else {
            connection.next(|connection, message| went = desk.answer(connection, message));
        }
        self.settle(number, went);
    }

    /// Goes on with the message that Polkit was asked about: with its word it is a request as any other, and
    /// the rules decide anew.
    fn resume(&mut self, number: u64, verdict: Verdict) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let Some(Asked { message, plugin, rule }) = connection.asked.take() else { return };
        self.reply.clear();
        match verdict {
            Verdict::Authorised => {
                let caller = Caller { authorised: Some(plugin.into()), ..connection.caller.clone() };
                protocol::answer(&message, &caller, &self.about, &mut self.registry, &mut self.reply);
            }
            Verdict::Denied(reason) => protocol::deny(&message, reason, rule, &mut self.reply),
        }
        let went = connection.send(&self.reply);
        self.settle(number, went);
    }

    fn serve(&mut self, number: u64, ready: Ready) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.asked.is_some() {
            // It is told of its end only: nobody waits for the answer any more.
            if ready.intersects(Ready::HUP | Ready::ERR) {
                self.close(number);
            }
            return;
        }
        if !connection.is_ready() {
            let went = connection.flush();
            self.settle(number, went);
            return;
        }
        // It has its turn in the backlog, and nothing more is read until that is empty.
        if !ready.intersects(Ready::IN | Ready::HUP | Ready::ERR) || connection.has_message() {
            return;
        }
        let mut desk = Desk {
            number,
            registry: &mut self.registry,
            about: &self.about,
            polkit: &mut self.polkit,
            reply: &mut self.reply,
        };
        let mut went = Outcome::Open;
        let received = connection
            .receive(&mut self.buffer, |connection, message| went = desk.answer(connection, message));
        if received == Outcome::Closed {
            connection.closing = true;
            connection.drop_input();
        } else if connection.is_too_long() && !connection.closing {
            went = refuse_length(connection, desk.reply);
        }
        self.settle(number, went);
    }

    /// After whatever happened to a connection: closes it, waits to send, or puts it into the backlog.
    fn settle(&mut self, number: u64, went: Outcome) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if went == Outcome::Closed || connection.closing && !connection.has_output() {
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
        let interest = connection.next_interest();
        if interest != connection.interest {
            connection.interest = interest;
            if self.poll.modify(connection.socket(), Token::Connection(number), interest).is_err() {
                return self.close(number);
            }
        }
        if connection.is_ready() && !connection.queued && connection.has_message() {
            connection.queued = true;
            self.backlog.push_back(number);
        }
    }

    fn close(&mut self, number: u64) {
        let Some(connection) = self.connections.remove(&number) else { return };
        self.polkit.cancel(number);
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

/// What it takes to answer a message of a connection.
struct Desk<'a> {
    number: u64,
    registry: &'a mut Registry,
    about: &'a About,
    polkit: &'a mut Polkit,
    reply: &'a mut Vec<u8>,
}

impl Desk<'_> {
    fn answer(&mut self, connection: &mut Connection, message: &[u8]) -> Outcome {
        self.reply.clear();
        if message.len() > LONGEST_MESSAGE {
            return refuse_length(connection, self.reply);
        }
        match protocol::answer(message, &connection.caller, self.about, self.registry, self.reply) {
            Answered::Yes => {}
            Answered::With(file) => return connection.send_with(self.reply, file),
            Answered::NotVarlink => {
                connection.closing = true;
                connection.drop_input();
            }
            Answered::Asks(question) => {
                let (plugin, rule) = (question.plugin.clone(), question.rule.clone());
                match self.polkit.ask(self.number, *question) {
                    Ok(()) => {
                        connection.asked = Some(Asked { message: message.to_vec(), plugin, rule });
                        return Outcome::Open;
                    }
                    Err(error) => protocol::refuse(&error, self.reply),
                }
            }
        }
        let went = connection.send(self.reply);
        // Do not keep the memory of one long list.
        if self.reply.capacity() > 1 << 20 {
            *self.reply = Vec::new();
        }
        went
    }
}

fn refuse_length(connection: &mut Connection, reply: &mut Vec<u8>) -> Outcome {
    reply.clear();
    let limit = LONGEST_MESSAGE as u64;
    protocol::refuse(&Error::TooMany { what: "bytes in a message".into(), limit }, reply);
    connection.closing = true;
    connection.drop_input();
    connection.send(reply)
}
