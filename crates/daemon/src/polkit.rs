//! Questions to Polkit (`org.freedesktop.PolicyKit1` on the system bus) about requests that the rules leave
//! to it. The event loop asks and goes on; answers wake it. docs/design/daemon.md says why so.
//!
//! What a question is about is in `registry/polkit.rs`.

mod ask;

use crate::bus::Slot;
use crate::error::Error;
use crate::poll::{Poll, Token};
use rustc_hash::FxHashMap as HashMap;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use zbus::blocking::Connection;

/// Open questions of one user, and of all.
const MOST: (usize, usize) = (4, 32);
/// How long Polkit has for its answer, alone and where it asks the user. Clients wait for 5 s by default.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(120));

/// What Polkit is asked.
#[derive(Debug)]
pub struct Question {
    /// Who wants it.
    pub subject: Subject,
    /// What for, by Polkit's name: an action of `dist/io.punctual.scheduler1.policy`.
    pub action: &'static str,
    /// What is asked for, for Polkit's own rules and messages.
    pub details: Vec<(&'static str, String)>,
    /// Whether the user may be asked.
    pub interactive: bool,
    /// The plugin that would admit it.
    pub plugin: String,
    /// The line that leaves it to Polkit.
    pub rule: String,
}

/// A process, as the socket said.
#[derive(Debug)]
pub struct Subject {
    /// Its number.
    pub process: u32,
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
    /// Its effective user.
    pub user: u32,
    /// Pins it.
    pub pidfd: OwnedFd,
}

/// What Polkit says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The process may have it.
    Authorised,
    /// It may not, or Polkit cannot be asked: why.
    Denied(String),
}

/// A question without an answer yet.
#[derive(Debug)]
struct Open {
    /// The connection that waits for it.
    connection: u64,
    user: u32,
    patience: Duration,
    until: Instant,
    bus: Arc<Slot<Connection>>,
}

impl Drop for Open {
    /// Who is not there any more asks nothing: Polkit then takes its question to the user back.
    fn drop(&mut self) {
        if let Some(connection) = self.bus.end() {
            // Not here: the bus may be slow.
            std::thread::spawn(move || connection.close());
        }
    }
}

/// All questions.
#[derive(Debug)]
pub struct Polkit {
    open: HashMap<u64, Open>,
    next: u64,
    /// One of its owners for each thread that asks, even if nobody waits for it any more.
    alive: Arc<()>,
    answers: Receiver<(u64, Verdict)>,
    sender: Sender<(u64, Verdict)>,
    bell: Arc<OwnedFd>,
}

impl Polkit {
    /// Asks nothing yet; answers wake `poll`.
    pub fn new(poll: &Poll) -> io::Result<Polkit> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        poll.add(&*bell, Token::Polkit)?;
        let (sender, answers) = channel();
        Ok(Polkit { open: HashMap::default(), next: 1, alive: Arc::new(()), answers, sender, bell })
    }

    /// Asks for a connection, which has no other open question.
    pub fn ask(&mut self, connection: u64, question: Question) -> Result<(), Error> {
        let user = question.subject.user;
        let theirs = self.open.values().filter(|open| open.user == user).count();
        if theirs >= MOST.0 {
            let what = format!("questions to Polkit of user {user}");
            return Err(Error::TooMany { what, limit: MOST.0 as u64 });
        }
        if Arc::strong_count(&self.alive) > MOST.1 {
            return Err(Error::TooMany { what: "questions to Polkit".into(), limit: MOST.1 as u64 });
        }
        let number = self.next;
        self.next += 1;
        let bus = Arc::new(Slot::new());
        let patience = if question.interactive { PATIENCE.1 } else { PATIENCE.0 };
        let (alive, theirs) = (self.alive.clone(), bus.clone());
        let (sender, bell) = (self.sender.clone(), self.bell.clone());
        let run = move || {
            let verdict = ask::ask(&question, &theirs);
            drop(alive);
            // The daemon may have stopped meanwhile.
            let _ = sender.send((number, verdict));
            let _ = rustix::io::write(&*bell, &1u64.to_ne_bytes());
        };
        if let Err(error) = std::thread::Builder::new().name("polkit".into()).spawn(run) {
            let _ = self.sender.send((number, Verdict::Denied(format!("Polkit cannot be asked: {error}"))));
            let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
        }
        self.open.insert(number, Open { connection, user, patience, until: Instant::now() + patience, bus });
        Ok(())
    }

    /// A connection does not wait any more.
    pub fn cancel(&mut self, connection: u64) {
        self.open.retain(|_, open| open.connection != connection);
    }

    /// When the next question is overdue.
    pub fn due(&self) -> Option<Instant> {
        self.open.values().map(|open| open.until).min()
    }

    /// Answers for connections that wait for one, since the last call.
    pub fn answers(&mut self) -> Vec<(u64, Verdict)> {
        // It need not have rung.
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        let mut answers = Vec::new();
        for (number, verdict) in self.answers.try_iter() {
            answers.extend(self.open.remove(&number).map(|open| (open.connection, verdict)));
        }
        let now = Instant::now();
        self.open.retain(|_, open| {
            let is_late = open.until <= now;
            if is_late {
                let why = format!("Polkit has not answered within {} s", open.patience.as_secs());
                answers.push((open.connection, Verdict::Denied(why)));
            }
            !is_late
        });
        answers
    }
}
