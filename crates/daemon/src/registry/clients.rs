//! Client processes: specs end with them.

use super::Registry;
use super::process::{Caller, Process};
use crate::access::Who;
use crate::error::Error;
use crate::log;
use crate::poll::Token;
use punctual_linux::thread;
use punctual_schedule::SpecId;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

impl Registry {
    /// Adds a connection of a process, and returns the process's key.
    pub fn connected(&mut self, number: u32, pidfd: OwnedFd, user: u32) -> io::Result<u64> {
        let key = self.process(number, pidfd, user)?;
        self.processes.get_mut(&key).expect("it was looked up").connections += 1;
        Ok(key)
    }

    /// Looks a process up, and watches it if it is new.
    pub(super) fn process(&mut self, number: u32, pidfd: OwnedFd, user: u32) -> io::Result<u64> {
        if let Some(&key) = self.by_number.get(&number) {
            if !thread::has_ended(self.processes[&key].pidfd.as_fd()) {
                return Ok(key);
            }
            // The PID was used again.
            self.process_ended(key);
        }
        let start = thread::process_start(number)?;
        if thread::has_ended(pidfd.as_fd()) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let key = self.next_process;
        self.poll.add(&pidfd, Token::Process(key))?;
        self.next_process += 1;
        self.processes.insert(
            key,
            Process {
                number,
                start,
                specs: BTreeSet::new(),
                connections: 0,
                user,
                shares_namespace: None,
                pidfd,
            },
        );
        self.by_number.insert(number, key);
        Ok(key)
    }

    /// Another process of the user who asks; of any user, if that is root.
    pub(super) fn process_of(&mut self, process: u32, user: u32) -> Result<u64, Error> {
        let gone = |_| Error::NoSuchThread { thread: process };
        let (pidfd, _) = thread::pin_process(process).map_err(gone)?;
        let owner = thread::process_user(process).map_err(gone)?;
        if owner != user && user != 0 {
            return Err(Error::NotOwner { what: format!("process {process} belongs to another user") });
        }
        self.process(process, pidfd, owner).map_err(gone)
    }

    /// A connection of a process was closed.
    pub fn disconnected(&mut self, process: u64) {
        if let Some(it) = self.processes.get_mut(&process) {
            it.connections -= 1;
            self.drop_if_idle(process);
        }
    }

    /// Drops a process without specs and connections.
    pub(super) fn drop_if_idle(&mut self, key: u64) {
        if self
            .processes
            .get(&key)
            .is_some_and(|process| process.connections == 0 && process.specs.is_empty())
        {
            self.drop_process(key);
        }
    }

    fn drop_process(&mut self, key: u64) {
        if let Some(process) = self.processes.remove(&key) {
            if self.by_number.get(&process.number) == Some(&key) {
                self.by_number.remove(&process.number);
            }
        }
    }

    /// Ends a process's specs. Connections that others inherited from it speak for no one.
    pub fn process_ended(&mut self, key: u64) {
        let Some(process) = self.processes.get_mut(&key) else { return };
        let specs: Vec<SpecId> = std::mem::take(&mut process.specs).into_iter().collect();
        self.end_specs(&specs);
        self.drop_process(key);
    }

    /// The process that a caller speaks for, if it lives.
    pub(super) fn live_process(&self, caller: &Caller) -> Result<u64, Error> {
        let refused = |reason: &str| Error::NotPermitted { reason: reason.into(), rule: None };
        let process = caller.process.ok_or_else(|| {
            refused("punctuald cannot see the process that connected: it is in another PID namespace")
        })?;
        if !self.processes.contains_key(&process) {
            return Err(refused(
                "the process that connected has ended; a process that inherited the connection must connect \
                 itself",
            ));
        }
        Ok(process)
    }

    /// A process by its key.
    pub fn client(&self, key: u64) -> Option<&Process> {
        self.processes.get(&key)
    }

    /// The processes that a caller may see, in the order of their numbers.
    pub fn clients(&self, who: &Who) -> Vec<&Process> {
        let mut clients: Vec<&Process> =
            self.processes.values().filter(|process| who.is_root() || process.user == who.user).collect();
        clients.sort_unstable_by_key(|process| process.number);
        clients
    }

    /// How many there are.
    pub fn client_count(&self) -> usize {
        self.processes.len()
    }

    /// Undoes everything: the daemon stops.
    pub fn stop(&mut self) {
        let mut specs: Vec<SpecId> = self.specs.keys().copied().collect();
        specs.sort_unstable();
        // All threads first, so that none is rescheduled while others go.
        for &id in &specs {
            self.restore_thread(id);
        }
        self.end_specs(&specs);
        self.give_all_room();
        self.restore_limit_now();
        if !self.books.is_empty() {
            log::error("the books are not empty after all specs were released; please report this");
        }
    }
}
