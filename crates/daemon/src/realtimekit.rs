//! RealtimeKit's interface on the system bus, for programs that know no other: what goes from the bus's
//! threads ([`bus`]) to the event loop, and back. docs/design/rtkit.md says why so.
//!
//! What a request means for specs is in `registry/realtimekit.rs`.

mod bus;
mod credentials;

pub use bus::Service;

use crate::access::Who;
use crate::config::RealtimeKit;
use crate::poll::{Poll, Token};
use crate::registry::Registry;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Who asks, according to the bus and the kernel.
#[derive(Debug)]
pub struct Client {
    /// User and groups.
    pub who: Who,
    /// The process that is connected to the bus.
    pub process: u32,
    /// Pins it.
    pub pidfd: OwnedFd,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// SCHED_RR at a priority.
    Realtime(u32),
    /// SCHED_OTHER at a nice level.
    HighPriority(i32),
}

/// A request.
#[derive(Debug)]
pub enum Request {
    /// For a thread.
    Schedule {
        /// Who asks.
        client: Client,
        /// The process of the thread; the client's, if none.
        process: Option<u32>,
        /// Its TID in the client's PID namespace; 0 is the process's first.
        thread: u32,
        /// What for.
        wish: Wish,
        /// What applies.
        kit: Arc<RealtimeKit>,
    },
    /// To end all specs that were made by requests; with `all`, every spec that is not root's.
    Reset {
        /// Whether other specs end too.
        all: bool,
    },
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not allowed, or not admitted.
    Denied(String),
    /// It cannot be done.
    Failed(String),
}

type Answer = Result<(), Refusal>;

/// The bus's end.
#[derive(Clone, Debug)]
struct Desk {
    requests: Sender<(Request, SyncSender<Answer>)>,
    bell: Arc<OwnedFd>,
}

impl Desk {
    /// Has the event loop answer.
    fn ask(&self, request: Request) -> Answer {
        let ended = |_| Refusal::Failed("punctuald is stopping".into());
        let (reply, answer) = sync_channel(1);
        self.requests.send((request, reply)).map_err(|_| ended(()))?;
        rustix::io::write(&*self.bell, &1u64.to_ne_bytes()).map_err(|_| ended(()))?;
        answer.recv().map_err(|_| ended(()))?
    }
}

/// The event loop's end.
#[derive(Debug)]
pub struct Counter {
    requests: Receiver<(Request, SyncSender<Answer>)>,
    bell: Arc<OwnedFd>,
}

impl Counter {
    /// Both ends; the poll hears of requests.
    fn open(poll: &Poll) -> io::Result<(Counter, Desk)> {
        // One read takes one ring, so that the rest stays for the next rounds.
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        let bell = Arc::new(eventfd(0, flags)?);
        poll.add(&*bell, Token::Bus)?;
        let (send, requests) = channel();
        Ok((Counter { requests, bell: bell.clone() }, Desk { requests: send, bell }))
    }

    /// Answers one request, if there is one.
    pub fn serve(&self, registry: &mut Registry) {
        let rung = rustix::io::read(&*self.bell, &mut [0u8; 8]).is_ok();
        if let (true, Ok((request, reply))) = (rung, self.requests.try_recv()) {
            // Nobody waits for it where the bus is gone.
            let _ = reply.send(registry.realtimekit(request));
        }
    }
}
