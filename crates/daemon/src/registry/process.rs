//! Client processes, and who speaks for them.

use crate::access::Who;
use punctual_schedule::SpecId;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// The sender of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// User and groups when they connected.
    pub who: Rc<Who>,
    /// The process that connected, as a key of the registry; `None` if the daemon cannot see it.
    pub process: Option<u64>,
    /// The plugin for which Polkit has authorised this request.
    pub authorised: Option<Rc<str>>,
}

impl Caller {
    /// Without Polkit's word for anything.
    pub fn new(who: Rc<Who>, process: Option<u64>) -> Caller {
        Caller { who, process, authorised: None }
    }
}

/// A process that is connected, or has specs.
#[derive(Debug)]
pub struct Process {
    /// Its PID in the daemon's PID namespace.
    pub number: u32,
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
    /// Its specs.
    pub specs: BTreeSet<SpecId>,
    /// Its connections.
    pub connections: usize,
    /// The user that it connected as.
    pub user: u32,
    /// Whether its PID namespace is the daemon's; `None` until it matters.
    pub(super) shares_namespace: Option<bool>,
    pub(super) pidfd: OwnedFd,
}
