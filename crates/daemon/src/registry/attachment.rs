//! Threads of specs: scheduling them, always after writing the journal, and undoing it.

use super::Registry;
use super::attached::{AttachedThread, NOT_LIFTED};
use super::clamps;
use super::ended::Turn;
use super::enforcement::target;
use super::process::Caller;
use crate::error::Error;
use crate::log;
use crate::poll::Token;
use crate::record::Applied;
use punctual_linux::scheduling::{self, Clamped, Refused, State};
use punctual_linux::thread::{self, Owner, Thread};
use punctual_protocol::Used;
use punctual_schedule::{ANYWHERE, SpecId};
use std::io;
use std::sync::Arc;

fn refused(reason: impl ToString) -> Error {
    Error::KernelRefused { reason: reason.to_string() }
}

impl Registry {
    /// Schedules a thread as admitted. Where its cpuset excludes the spec's processor, the spec moves to one
    /// that it has, if that can take it.
    pub fn attach(&mut self, caller: &Caller, id: SpecId, named: u32) -> Result<(), Error> {
        let process = self.live_process(caller)?;
        self.get(&caller.who, id)?;
        let number = self.translate(process, named)?;
        self.attach_number(caller, id, named, number)
    }

    /// The same, for a thread by its number here too.
    pub(super) fn attach_number(
        &mut self,
        caller: &Caller,
        id: SpecId,
        named: u32,
        number: u32,
    ) -> Result<(), Error> {
        let done = self.attach_here(caller, id, named, number);
        let Err(Error::KernelRefused { .. }) = done else { return done };
        let Some(spec) = self.specs.get(&id) else { return done };
        let place = spec.admission.offer.processor;
        match scheduling::cpuset(number) {
            Ok(cpuset) if !cpuset.has(place) => {
                self.move_within(caller, id, &cpuset)?;
                self.attach_here(caller, id, named, number)
            }
            _ => done,
        }
    }

    /// Schedules a thread as admitted, on the processor of its spec.
    fn attach_here(&mut self, caller: &Caller, id: SpecId, named: u32, number: u32) -> Result<(), Error> {
        let spec = self.get(&caller.who, id)?;
        let owner = spec.who.user;
        if let Some(attached) = &spec.thread {
            if attached.thread.lives() {
                return Err(Error::AlreadyAttached { spec: id.0, thread: attached.named });
            }
            self.thread_ended(id);
            // It may have ended with its thread.
            self.get(&caller.who, id)?;
        }
        let no_such = || Error::NoSuchThread { thread: named };
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
            return Err(not_owner(named));
        }
        if let Some(&other) = self.threads.get(&number) {
            if self.specs[&other].thread.as_ref().is_some_and(|attached| attached.thread.lives()) {
                return Err(Error::AlreadyAttached { spec: other.0, thread: named });
            }
            self.thread_ended(other);
        }
        let before = State::read(number).map_err(|error| kernel_error(error, named))?;
        // Before the policy changes, which changes their defaults.
        let clamped = self.unclamped(number).map_err(|error| kernel_error(error, named))?;
        let applied = self.assigned(id)?;
        self.check_cluster(id, &applied, &before)?;
        self.check_turn(id, &thread, &applied)?;
        if let Some(pidfd) = thread.pidfd() {
            self.poll.add(pidfd, Token::Thread(id.0)).map_err(failed)?;
        }
        if applied.needs_lifted_limit() {
            self.lift_limit()?;
        }
        self.await_enforcement(id);
        self.set_thread(
            id,
            AttachedThread {
                thread: Arc::new(thread),
                named,
                process: is.process,
                before,
                applied,
                previous: None,
                clamped,
                used: None,
            },
        );
        let enacted = match applied.state(&before) {
            Some(state) => {
                self.enact_attached(id, &state, &before).map_err(|error| kernel_error(error, named))
            }
            None => Err(no_such_processor(applied.processor)),
        };
        // Check again: it may have ended meanwhile, or belong to another user now.
        let attached = self.specs[&id].thread.as_ref().expect("it was set above");
        let enacted = enacted.and_then(|()| match attached.thread.owner() {
            Ok(is) if attached.thread.lives() && theirs(is) => Ok(()),
            Ok(_) if attached.thread.lives() => Err(not_owner(named)),
            _ => Err(no_such()),
        });
        let enacted = enacted.and_then(|()| self.clamp(id));
        let enacted = enacted.and_then(|()| {
            let plugin = &self.setup.plugins[self.specs[&id].admission.plugin].name;
            let refused = format!("{plugin}: ");
            self.notify_plugin(id, number)
                .map_err(|reason| Error::NotAdmitted { reasons: vec![refused + &reason] })
        });
        // Until then, a thread that an attached one has started was sent to the processors of that.
        let enacted = enacted.and_then(|()| self.reassert(id));
        match enacted {
            Ok(()) => self.forget_detached(id),
            Err(_) => {
                self.restore_thread(id);
                self.restore_limit();
            }
        }
        enacted
    }

    /// Keeps what a spec's thread took, by its owner, root or an observer. A thread that was attached since
    /// is another one.
    pub fn report_use(&mut self, caller: &Caller, id: SpecId, named: u32, used: Used) -> Result<(), Error> {
        let process = self.live_process(caller)?;
        self.may_report(&caller.who, id)?;
        let number = self.translate(process, named)?;
        let spec = self.specs.get_mut(&id).expect("it was looked up");
        match spec.thread.as_mut().filter(|attached| attached.thread.number == number) {
            Some(attached) => attached.used = Some(used),
            None => return Err(Error::NotAttached { spec: id.0 }),
        }
        Ok(())
    }

    /// Translates a TID of a process's PID namespace to this one.
    pub(super) fn translate(&mut self, process: u64, named: u32) -> Result<u32, Error> {
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

    /// Restores the earlier scheduling of a spec's thread.
    pub fn detach(&mut self, caller: &Caller, id: SpecId) -> Result<(), Error> {
        self.live_process(caller)?;
        if self.get(&caller.who, id)?.thread.is_none() {
            return Err(Error::NotAttached { spec: id.0 });
        }
        self.let_go(id);
        Ok(())
    }

    /// Tells the plugin, which may look after threads itself.
    pub(super) fn notify_plugin(&mut self, id: SpecId, thread: u32) -> Result<(), String> {
        self.setup.plugins[self.specs[&id].admission.plugin].plugin.attached(id, thread)
    }

    pub(super) fn set_thread(&mut self, id: SpecId, attached: AttachedThread) {
        self.threads.insert(attached.thread.number, id);
        self.specs.get_mut(&id).expect("it was looked up").thread = Some(attached);
        self.write_record(id);
    }

    /// Restores a spec's thread and forgets it: the kernel first, then the journal.
    pub(super) fn restore_thread(&mut self, id: SpecId) {
        let demoted = self.enforcer.forget(id.0);
        let Some(spec) = self.specs.get(&id) else { return };
        let Some(attached) = &spec.thread else { return };
        if attached.thread.lives() {
            if let Some(loaded) = self.setup.plugins.get_mut(spec.admission.plugin) {
                loaded.plugin.let_go(id);
            }
            match attached.before.restore(attached.thread.number, &attached.applied_states(demoted)) {
                Err(error) if !error.is_gone() => {
                    let (number, before) = (attached.thread.number, attached.before.scheduling);
                    log::warning(&format!(
                        "thread {number} of spec {} cannot be restored to {before}: {error}",
                        id.0
                    ));
                }
                _ => {}
            }
            clamps::undo(attached.thread.number, attached.clamped.as_ref());
        }
        self.forget_thread(id);
    }

    fn forget_thread(&mut self, id: SpecId) {
        let Some(spec) = self.specs.get_mut(&id) else { return };
        if let Some(attached) = spec.thread.take() {
            spec.turn = Turn::of(&attached.thread, &attached.applied).or(spec.turn);
            self.threads.remove(&attached.thread.number);
            self.limit.thread_left(&attached.applied);
            if let Some(loaded) = self.setup.plugins.get_mut(spec.admission.plugin) {
                loaded.plugin.detached(id);
            }
            self.write_record(id);
        }
    }

    /// A spec's thread ended; the spec stays. Ignores a late event about an earlier thread.
    pub fn thread_ended(&mut self, id: SpecId) {
        let Some(attached) = self
            .specs
            .get(&id)
            .and_then(|spec| spec.thread.as_ref())
            .filter(|attached| !attached.thread.lives())
        else {
            return;
        };
        let demoted = self.enforcer.forget(id.0);
        let (process, number, clamped) = (attached.process, attached.thread.number, attached.clamped);
        let (before, applied) = (attached.before, attached.applied_states(demoted));
        self.forget_thread(id);
        if process != number {
            self.repair_after_exec(process, &before, &applied, clamped.as_ref());
        }
        if self.specs.get(&id).is_some_and(|spec| spec.ends_with_thread) {
            self.end_specs(&[id]);
        }
        self.restore_limit();
    }

    /// A thread that calls `exec` and is not its process's first takes over the first one's TID, and keeps
    /// its own scheduling. So the first TID may now have a scheduling that this daemon gave to another
    /// thread: restores it, or applies what the first thread's own spec says.
    fn repair_after_exec(
        &mut self,
        process: u32,
        before: &State,
        applied: &[State],
        clamped: Option<&Clamped>,
    ) {
        let Ok(now) = State::read(process) else { return };
        if !applied.iter().any(|applied| {
            now.scheduling.matches(&applied.scheduling) && now.processors == applied.processors
        }) {
            return;
        }
        let own = self
            .threads
            .get(&process)
            .and_then(|id| self.specs[id].thread.as_ref())
            .and_then(|attached| attached.applied.state(&attached.before));
        let done = match own {
            Some(state) => state.enact(process, &now),
            None => before.restore(process, applied).inspect(|()| clamps::undo(process, clamped)),
        };
        match done {
            Err(error) if !error.is_gone() => {
                log::warning(&format!("process {process}, after its exec: {error}"))
            }
            _ => {}
        }
    }

    /// Whether there are threads whose end the kernel does not report (before 6.9).
    pub fn has_unwatched(&self) -> bool {
        self.threads.values().next().is_some_and(|id| {
            self.specs[id].thread.as_ref().is_some_and(|attached| attached.thread.pidfd().is_none())
        })
    }

    /// Checks whether those have ended.
    pub fn check_unwatched(&mut self) {
        let specs: Vec<SpecId> = self.threads.values().copied().collect();
        specs.into_iter().for_each(|id| self.thread_ended(id));
    }

    /// What a spec's thread should have.
    pub(super) fn assigned(&self, id: SpecId) -> Result<Applied, Error> {
        let plugin = &self.setup.plugins[self.specs[&id].admission.plugin].plugin;
        plugin.assignment(id).map(Applied::new).ok_or_else(|| Error::NotAdmitted {
            reasons: vec![format!("{}: what was admitted is over, or its table has ended", plugin.name())],
        })
    }

    /// A thread that is not pinned may run on all processors that its plugin counts, and on no others.
    fn check_cluster(&self, id: SpecId, applied: &Applied, before: &State) -> Result<(), Error> {
        if !applied.scheduling.is_deadline() || applied.needs_lifted_limit() {
            return Ok(());
        }
        let config = &self.setup.plugins[self.specs[&id].admission.plugin].config;
        let is_its = |processor: u32| config.processors.contains(&processor);
        let most = scheduling::Processors::MOST as u32;
        match (0..most).all(|processor| before.processors.has(processor) == is_its(processor)) {
            true => Ok(()),
            false => Err(Error::NotAdmitted {
                reasons: vec![format!(
                    "{}: the thread may run on processors {:?}, but has to be allowed on those of the plugin \
                     and on no others: see taskset(1), cpuset(7)",
                    config.name, before.processors
                )],
            }),
        }
    }

    /// Refuses what could not be enacted anyway.
    pub(super) fn check_enactable(&self, id: SpecId) -> Result<(), Error> {
        let applied = self.assigned(id)?;
        if applied.is_beyond() {
            return Err(no_such_processor(applied.processor));
        }
        if applied.needs_lifted_limit() && !self.limit_can_be_lifted() {
            Err(refused(NOT_LIFTED))
        } else {
            Ok(())
        }
    }

    /// Whether SCHED_DEADLINE on one processor is possible.
    pub(super) fn limit_can_be_lifted(&self) -> bool {
        self.setup.may_lift_limit
            || self.journal.rt_runtime().is_some()
            || matches!(scheduling::rt_runtime(), Ok(-1))
    }

    /// Applies a spec's assignment to its thread, if it changed, and holds it to its runtime. The thread is
    /// never without a policy in between.
    pub(super) fn apply(&mut self, id: SpecId) -> Result<(), Error> {
        let applied = self.apply_assignment(id).and_then(|()| self.clamp(id));
        self.enforce(id);
        applied
    }

    fn apply_assignment(&mut self, id: SpecId) -> Result<(), Error> {
        let now = self.assigned(id)?;
        let Some(attached) = self.specs[&id].thread.as_ref() else { return Ok(()) };
        if attached.applied == now || !attached.thread.lives() {
            return Ok(());
        }
        let (number, before, first) = (attached.thread.number, attached.applied, attached.before);
        self.check_cluster(id, &now, &first)?;
        let shared = self.enforcer.shared();
        // The thread is not demoted or promoted meanwhile.
        let mut enforced = shared.lock();
        // Whoever changed it since had the right to.
        let Ok(is) = State::read(number) else { return Ok(()) };
        // What a dispatcher made of it, that has put back.
        let is_unchanged = is.scheduling.matches(&before.scheduling)
            || before.scheduling.is_dispatched()
            || enforced.demoted(id.0).is_some_and(|demoted| is.scheduling.matches(&demoted));
        if now.needs_lifted_limit() && is_unchanged {
            self.lift_limit()?;
        }
        self.set_applied(id, now, Some(before));
        self.limit.thread_left(&before);
        self.enforcer.reschedule(&mut enforced, id.0, now.state(&first));
        if !is_unchanged {
            return Ok(());
        }
        let is_fixed = now.scheduling.is_fixed_priority();
        if let Some(target) = target(&self.specs[&id]).filter(|target| is_fixed && target.is_held()) {
            self.enforcer.announce(&mut enforced, id.0, target);
        }
        let demoted = enforced.demoted(id.0).filter(|_| is_fixed);
        // One that is demoted gets its new policy when it is promoted.
        let state = |applied: Applied| {
            let state = applied.state(&first)?;
            Some(State { scheduling: demoted.unwrap_or(state.scheduling), ..state })
        };
        if demoted.is_none() {
            enforced.resume(id.0);
        }
        let error = match state(now).map(|state| state.enact(number, &is)) {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) if error.is_gone() => return Ok(()),
            Some(Err(error)) => refused(error),
            None => no_such_processor(now.processor),
        };
        // Back to the previous assignment; the caller restores the books.
        if let Err(again) = State::read(number)
            .and_then(|now| state(before).map_or(Ok(()), |state| state.enact(number, &now)))
        {
            log::error(&format!("thread {number} of spec {} cannot be restored: {again}", id.0));
        }
        self.set_applied(id, before, None);
        self.enforcer.reschedule(&mut enforced, id.0, before.state(&first));
        Err(error)
    }

    /// Gives a spec's thread what it is assigned, if it has something else meanwhile; unless it is demoted.
    /// Where it may run anywhere, it stays where someone else has sent it.
    pub(super) fn reassert(&mut self, id: SpecId) -> Result<(), Error> {
        let Some(attached) = self.specs.get(&id).and_then(|spec| spec.thread.as_ref()) else { return Ok(()) };
        let (number, named) = (attached.thread.number, attached.named);
        let Some(mut state) = attached.applied.state(&attached.before) else { return Ok(()) };
        let previous = attached.previous.and_then(|previous| previous.state(&attached.before));
        let is_free = attached.applied.processor == ANYWHERE;
        let shared = self.enforcer.shared();
        // The thread is not demoted or promoted meanwhile.
        let enforced = shared.lock();
        if enforced.demoted(id.0).is_some() || state.scheduling.is_dispatched() {
            return Ok(());
        }
        let failed = |error| kernel_error(error, named);
        let is = State::read(number).map_err(failed)?;
        if is_free && previous.is_none_or(|previous| previous.processors != is.processors) {
            state.processors = is.processors;
        }
        if is.scheduling.matches(&state.scheduling) && is.processors == state.processors {
            return Ok(());
        }
        state.enact(number, &is).map_err(failed)
    }

    fn set_applied(&mut self, id: SpecId, applied: Applied, previous: Option<Applied>) {
        if let Some(attached) = self.specs.get_mut(&id).and_then(|spec| spec.thread.as_mut()) {
            (attached.applied, attached.previous) = (applied, previous);
            self.write_record(id);
        }
    }

    /// Applies what shifted for the plugin's other specs. Stops at the first that the kernel refuses.
    pub(super) fn apply_shifted(&mut self, plugin: usize) -> Result<(), Error> {
        if !self.setup.plugins[plugin].plugin.shifted() {
            return Ok(());
        }
        self.attached_under(plugin).into_iter().try_for_each(|id| self.apply(id))
    }

    /// The same where nothing can be undone: logs what the kernel refuses.
    pub(super) fn apply_shifted_or_log(&mut self, plugin: usize) {
        self.setup.plugins[plugin].plugin.shifted();
        for id in self.attached_under(plugin) {
            if let Err(error @ (Error::KernelRefused { .. } | Error::NotAdmitted { .. })) = self.apply(id) {
                log::error(&format!("spec {} is not scheduled as it should be: {error}", id.0));
            }
        }
    }

    pub(super) fn attached_under(&self, plugin: usize) -> Vec<SpecId> {
        let mut ids: Vec<SpecId> =
            self.threads.values().copied().filter(|id| self.specs[id].admission.plugin == plugin).collect();
        ids.sort_unstable();
        ids
    }
}

fn not_owner(thread: u32) -> Error {
    Error::NotOwner { what: format!("thread {thread} belongs to another user, by its real or effective UID") }
}

fn kernel_error(error: Refused, named: u32) -> Error {
    if error.is_gone() { Error::NoSuchThread { thread: named } } else { refused(error) }
}

fn no_such_processor(processor: u32) -> Error {
    refused(format!(
        "processor {processor} is beyond the {} that punctuald supports",
        scheduling::Processors::MOST
    ))
}
