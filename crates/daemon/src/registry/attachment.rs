//! Threads of specs: what the kernel is told, always after the journal; and how it is undone.

use super::{Caller, Registry};
use crate::error::Error;
use crate::kernel::{self, Refused, State};
use crate::log;
use crate::poll::Token;
use crate::record::Told;
use crate::thread::{self, Owner, Thread};
use punctual_schedule::SpecId;
use std::io;

/// A thread that a spec has.
#[derive(Debug)]
pub struct Held {
    /// Pinned.
    pub thread: Thread,
    /// Its number as the client said it.
    pub named: u32,
    /// The number of its process.
    pub(super) process: u32,
    pub(super) before: State,
    pub(super) told: Told,
    pub(super) told_before: Option<Told>,
}

impl Held {
    /// How the thread is scheduled, if that is not what it was told: for people.
    pub fn otherwise(&self) -> Option<String> {
        let (is, told) = (State::of(self.thread.number).ok()?, self.told.state()?);
        if !is.scheduling.is_as_told(&told.scheduling) {
            return Some(is.scheduling.to_string());
        }
        (is.processors != told.processors).then(|| format!("on processors {:?}", is.processors))
    }

    /// What the thread may have been made by this daemon.
    fn made(&self) -> Vec<State> {
        [Some(self.told), self.told_before].into_iter().flatten().filter_map(|told| told.state()).collect()
    }
}

fn refused(reason: impl ToString) -> Error {
    Error::KernelRefused { reason: reason.to_string() }
}

impl Registry {
    /// Schedules a thread as admitted.
    pub fn attach(&mut self, caller: &Caller, id: SpecId, named: u32) -> Result<(), Error> {
        let process = self.living(caller)?;
        let spec = self.get(&caller.who, id)?;
        let owner = spec.who.user;
        if let Some(held) = &spec.thread {
            if held.thread.lives() {
                return Err(Error::AlreadyAttached { spec: id.0, thread: held.named });
            }
            self.thread_ended(id);
        }
        let no_such = || Error::NoSuchThread { thread: named };
        let number = self.translate(process, named)?;
        if number == 0 || number > i32::MAX as u32 {
            return Err(no_such());
        }
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::ESRCH | libc::ENOENT) => no_such(),
            Some(libc::EMFILE | libc::ENFILE) => {
                Error::TooMany { what: "open files of punctuald".into(), limit: 0 }
            }
            _ => refused(format!("looking at thread {number}: {error}")),
        };
        let (thread, is) = Thread::pin(number).map_err(failed)?;
        let theirs = |is: Owner| caller.who.is_root() || (is.real, is.effective) == (owner, owner);
        if !theirs(is) {
            return Err(not_theirs(named));
        }
        if let Some(&other) = self.threads.get(&number) {
            if self.specs[&other].thread.as_ref().is_some_and(|held| held.thread.lives()) {
                return Err(Error::AlreadyAttached { spec: other.0, thread: named });
            }
            self.thread_ended(other);
        }
        let before = State::of(number).map_err(|error| fate(error, named))?;
        let told = self.assigned(id)?;
        if let Some(pidfd) = thread.pidfd() {
            self.poll.add(pidfd, Token::Thread(id.0)).map_err(failed)?;
        }
        if told.scheduling.is_deadline() {
            self.lift_limit()?;
        }
        self.hold(id, Held { thread, named, process: is.process, before, told, told_before: None });
        let enacted = match told.state() {
            Some(state) => state.enact(number, &before).map_err(|error| fate(error, named)),
            None => Err(too_far(told.processor)),
        };
        // Looked at again: it may have ended meanwhile, or become another user's.
        let held = self.specs[&id].thread.as_ref().expect("it is held since the lines above");
        let enacted = enacted.and_then(|()| match held.thread.owner() {
            Ok(is) if held.thread.lives() && theirs(is) => Ok(()),
            Ok(_) if held.thread.lives() => Err(not_theirs(named)),
            _ => Err(no_such()),
        });
        match enacted {
            Ok(()) => self.tell_plugin(id, number),
            Err(_) => {
                self.put_back(id);
                self.restore_limit();
            }
        }
        enacted
    }

    /// The number here of a thread that a process names.
    fn translate(&mut self, process: u64, named: u32) -> Result<u32, Error> {
        let Some(process) = self.processes.get_mut(&process) else { return Ok(named) };
        if process.shares_namespace.is_none() {
            let shares = thread::shares_namespace(process.number);
            process.shares_namespace = Some(shares.map_err(|error| {
                refused(format!("the PID namespace of process {}: {error}", process.number))
            })?);
        }
        if process.shares_namespace == Some(true) {
            Ok(named)
        } else {
            thread::translate(process.number, named).map_err(refused)
        }
    }

    /// Puts a spec's thread back to how it was.
    pub fn detach(&mut self, caller: &Caller, id: SpecId) -> Result<(), Error> {
        self.living(caller)?;
        if self.get(&caller.who, id)?.thread.is_none() {
            return Err(Error::NotAttached { spec: id.0 });
        }
        self.put_back(id);
        self.restore_limit();
        Ok(())
    }

    /// Its plugin may look after threads itself.
    pub(super) fn tell_plugin(&mut self, id: SpecId, thread: u32) {
        self.setup.plugins[self.specs[&id].admission.plugin].plugin.attached(id, thread);
    }

    pub(super) fn hold(&mut self, id: SpecId, held: Held) {
        self.threads.insert(held.thread.number, id);
        self.specs.get_mut(&id).expect("it was looked up").thread = Some(held);
        self.note(id);
    }

    /// Undoes what was done to a spec's thread, and lets it go. The kernel first, then the journal.
    pub(super) fn put_back(&mut self, id: SpecId) {
        let Some(held) = self.specs.get(&id).and_then(|spec| spec.thread.as_ref()) else { return };
        if held.thread.lives() {
            match held.before.restore(held.thread.number, &held.made()) {
                Err(error) if !error.is_gone() => {
                    let (number, before) = (held.thread.number, held.before.scheduling);
                    log::warning(&format!(
                        "thread {number} of spec {} cannot be put back to {before}: {error}",
                        id.0
                    ));
                }
                _ => {}
            }
        }
        self.let_go(id);
    }

    fn let_go(&mut self, id: SpecId) {
        let Some(spec) = self.specs.get_mut(&id) else { return };
        if let Some(held) = spec.thread.take() {
            self.threads.remove(&held.thread.number);
            if let Some(loaded) = self.setup.plugins.get_mut(spec.admission.plugin) {
                loaded.plugin.detached(id);
            }
            self.note(id);
        }
    }

    /// A spec's thread is gone; the spec stays. A late event about a thread that was let go is none about the
    /// next one.
    pub fn thread_ended(&mut self, id: SpecId) {
        let Some(held) =
            self.specs.get(&id).and_then(|spec| spec.thread.as_ref()).filter(|held| !held.thread.lives())
        else {
            return;
        };
        let (process, number, before, made) = (held.process, held.thread.number, held.before, held.made());
        self.let_go(id);
        if process != number {
            self.look_after_exec(process, &before, &made);
        }
        self.restore_limit();
    }

    /// A thread that is not its process's first takes that one's number with an exec, and its scheduling with
    /// it: then the first is now what this daemon made of the other, and is put back, or told again what its
    /// own spec says.
    fn look_after_exec(&mut self, process: u32, before: &State, made: &[State]) {
        let Ok(now) = State::of(process) else { return };
        if !made
            .iter()
            .any(|made| now.scheduling.is_as_told(&made.scheduling) && now.processors == made.processors)
        {
            return;
        }
        let own = self
            .threads
            .get(&process)
            .and_then(|id| self.specs[id].thread.as_ref())
            .and_then(|held| held.told.state());
        let done = match own {
            Some(told) => told.enact(process, &now),
            None => before.restore(process, made),
        };
        match done {
            Err(error) if !error.is_gone() => {
                log::warning(&format!("process {process}, after its exec: {error}"))
            }
            _ => {}
        }
    }

    /// Whether threads have to be looked at from time to time, since the kernel does not tell when they end.
    pub fn has_unwatched(&self) -> bool {
        self.threads.values().next().is_some_and(|id| {
            self.specs[id].thread.as_ref().is_some_and(|held| held.thread.pidfd().is_none())
        })
    }

    /// Looks at those.
    pub fn sweep(&mut self) {
        let held: Vec<SpecId> = self.threads.values().copied().collect();
        held.into_iter().for_each(|id| self.thread_ended(id));
    }

    /// What the kernel is to be told of a spec's thread.
    pub(super) fn assigned(&self, id: SpecId) -> Result<Told, Error> {
        let plugin = &self.setup.plugins[self.specs[&id].admission.plugin].plugin;
        plugin
            .assignment(id)
            .map(Told::of)
            .ok_or_else(|| refused(format!("plugin {} has no assignment for spec {}", plugin.name(), id.0)))
    }

    /// Whether what was admitted can be enacted at all, so that it is refused before it is asked for.
    pub(super) fn enactable(&self, id: SpecId) -> Result<(), Error> {
        let told = self.assigned(id)?;
        told.state().ok_or_else(|| too_far(told.processor))?;
        if told.scheduling.is_deadline() && !self.limit_can_be_lifted() {
            Err(refused(NOT_LIFTED))
        } else {
            Ok(())
        }
    }

    /// Whether there can be SCHED_DEADLINE on one processor.
    pub(super) fn limit_can_be_lifted(&self) -> bool {
        self.setup.may_lift_limit
            || self.journal.rt_runtime().is_some()
            || matches!(kernel::rt_runtime(), Ok(-1))
    }

    /// Tells the kernel what a spec's thread is now, if that is something else than before. It is never
    /// unscheduled between.
    pub(super) fn tell(&mut self, id: SpecId) -> Result<(), Error> {
        let now = self.assigned(id)?;
        let Some(held) = self.specs[&id].thread.as_ref() else { return Ok(()) };
        if held.told == now || !held.thread.lives() {
            return Ok(());
        }
        let (number, before) = (held.thread.number, held.told);
        // Whoever changed it since had the right to.
        let Ok(is) = State::of(number) else { return Ok(()) };
        let as_told = is.scheduling.is_as_told(&before.scheduling);
        if now.scheduling.is_deadline() && as_told {
            self.lift_limit()?;
        }
        self.set_told(id, now, Some(before));
        if !as_told {
            return Ok(());
        }
        let error = match now.state().map(|state| state.enact(number, &is)) {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) if error.is_gone() => return Ok(()),
            Some(Err(error)) => refused(error),
            None => too_far(now.processor),
        };
        // Back to what it was told before; the caller puts the books back.
        if let Err(again) =
            State::of(number).and_then(|now| before.state().map_or(Ok(()), |state| state.enact(number, &now)))
        {
            log::error(&format!("thread {number} of spec {} cannot be put back: {again}", id.0));
        }
        self.set_told(id, before, None);
        Err(error)
    }

    fn set_told(&mut self, id: SpecId, told: Told, told_before: Option<Told>) {
        if let Some(held) = self.specs.get_mut(&id).and_then(|spec| spec.thread.as_mut()) {
            (held.told, held.told_before) = (told, told_before);
            self.note(id);
        }
    }

    /// Tells the threads of a plugin's other specs what has shifted for them. The first that the kernel
    /// refuses ends it.
    pub(super) fn settle(&mut self, plugin: usize) -> Result<(), Error> {
        if !self.setup.plugins[plugin].plugin.shifted() {
            return Ok(());
        }
        self.attached_under(plugin).into_iter().try_for_each(|id| self.tell(id))
    }

    /// The same where nothing can be taken back: what the kernel refuses is told to the administrator.
    pub(super) fn settle_anyhow(&mut self, plugin: usize) {
        self.setup.plugins[plugin].plugin.shifted();
        for id in self.attached_under(plugin) {
            if let Err(Error::KernelRefused { reason }) = self.tell(id) {
                log::error(&format!("spec {} is not scheduled as it should be now: {reason}", id.0));
            }
        }
    }

    fn attached_under(&self, plugin: usize) -> Vec<SpecId> {
        let mut ids: Vec<SpecId> =
            self.threads.values().copied().filter(|id| self.specs[id].admission.plugin == plugin).collect();
        ids.sort_unstable();
        ids
    }

    /// SCHED_DEADLINE on one processor needs the kernel's own admission test off.
    pub(super) fn lift_limit(&mut self) -> Result<(), Error> {
        if self.journal.rt_runtime().is_some() {
            return Ok(());
        }
        let now = kernel::rt_runtime().map_err(refused)?;
        if now == -1 {
            return Ok(());
        }
        if !self.setup.may_lift_limit {
            return Err(refused(NOT_LIFTED));
        }
        self.journal.set_rt_runtime(Some(now));
        kernel::set_rt_runtime(-1).map_err(|error| {
            self.journal.set_rt_runtime(None);
            refused(error)
        })
    }

    /// Puts that back with the last thread that needs it, unless somebody else has changed it.
    pub(super) fn restore_limit(&mut self) {
        let Some(before) = self.journal.rt_runtime() else { return };
        let needs = |held: &Held| held.told.scheduling.is_deadline();
        if self.threads.values().any(|id| self.specs[id].thread.as_ref().is_some_and(needs)) {
            return;
        }
        let restored = match kernel::rt_runtime() {
            Ok(-1) => kernel::set_rt_runtime(before),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        match restored {
            Ok(()) => self.journal.set_rt_runtime(None),
            Err(error) => {
                log::warning(&format!("kernel.sched_rt_runtime_us stays -1, it was {before}: {error}"))
            }
        }
    }
}

fn not_theirs(thread: u32) -> Error {
    Error::NotOwner { what: format!("thread {thread} is another user's, really or effectively") }
}

fn fate(error: Refused, named: u32) -> Error {
    if error.is_gone() { Error::NoSuchThread { thread: named } } else { refused(error) }
}

fn too_far(processor: u32) -> Error {
    refused(format!(
        "processor {processor} is beyond the {} that punctuald can name",
        kernel::Processors::MOST
    ))
}

/// Why there is no SCHED_DEADLINE.
pub(super) const NOT_LIFTED: &str = "SCHED_DEADLINE on one processor needs kernel.sched_rt_runtime_us = -1, which the configuration of punctuald forbids it to set \
     (lift_realtime_limit); an administrator can set the one or allow the other";
