//! The threads of a session: finds those of tasks, binds them to the dispatcher, and gives them again what
//! somebody else has changed.

use super::{Event, Session};
use crate::engine::Engine;
use crate::error::Error;
use crate::freezer::Freezer;
use crate::leftovers;
use crate::threads::{candidates, family};
use crate::undo::{SCHED_EXT, Undo, remove_emptied};
use crate::user::Bound;
use punctual_linux::proc;
use punctual_linux::scheduling::{self, Processors, Scheduling, State};
use punctual_linux::thread::Thread;
use punctual_tables::Candidate;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

const NOT_LENT: &str = "nothing else runs in the idle slots of its processor";

/// A cgroup that was made, and how to remove it.
type Made = (PathBuf, Undo);

/// The thread of a task.
#[derive(Debug)]
pub(super) struct Known {
    pub thread: Thread,
    pub process: u32,
    /// As it was.
    pub before: State,
    /// Its own cgroup, and how to remove that.
    pub cgroup: Option<Made>,
}

impl Session {
    /// Frees the tasks whose threads are gone. Guests may be over then, too: see [`Session::serve_guests`].
    pub(super) fn notice_ends(&mut self) {
        for task in 0..self.plan.tasks.len() {
            let Some(known) = &self.threads[task] else { continue };
            let number = known.thread.number;
            let is_bound = match &self.engine {
                Engine::User(dispatcher) => self.priority.raised(|| {
                    dispatcher.with_task(task, |bound| bound.is_some_and(|bound| bound.tid == number))
                }),
                Engine::Ext(_) => true,
            };
            if !known.thread.lives() || !is_bound {
                match &mut self.engine {
                    Engine::User(dispatcher) => self.priority.raised(|| drop(dispatcher.bind(task, None))),
                    Engine::Ext(ext) => ext.dispatcher.unbind(task),
                }
                if let Some((path, undo)) = self.threads[task].take().and_then(|known| known.cgroup) {
                    // What it has left there goes on without it, and that at once: it may get the task again
                    // right away. Nobody waits for the cgroup to go; what fails is tried again at the end.
                    undo.vacate();
                    std::thread::spawn(move || remove_emptied(&path));
                }
                self.told[task] = false;
                self.announce(task, 0);
            }
        }
    }

    /// Looks for threads of tasks that have none.
    pub(super) fn find_threads(&mut self) -> Result<(), Error> {
        if self.threads[..self.plan.tasks.len()].iter().all(Option::is_some) {
            return Ok(());
        }
        let own = std::process::id();
        let mut found = self.priority.ordinary(|| candidates(self.options.within.map(family).as_ref()));
        found.retain(|thread| thread.process != own);
        let mut taken: BTreeSet<u32> =
            self.threads.iter().flatten().map(|known| known.thread.number).collect();
        for task in 0..self.plan.tasks.len() {
            if self.threads[task].is_some() {
                continue;
            }
            let selector = &self.plan.tasks[task].thread;
            let matching = found.iter().filter(|it| !taken.contains(&it.tid) && selector.matches(it));
            let (held, free): (Vec<_>, Vec<_>) =
                matching.partition(|thread| leftovers::holder(&thread.cgroup, thread.tid).is_some());
            // If there is none but another table's, binding it says so.
            if let Some(&thread) = free.first().or(held.first()) {
                let thread = thread.clone();
                let others = free.len().saturating_sub(1);
                taken.insert(thread.tid);
                self.bind(task, &thread, others)?;
            }
        }
        Ok(())
    }

    /// Gives threads their priority again that lost it before the table began, and were not bound.
    pub(super) fn raise_others(&mut self) -> Result<(), Error> {
        let Session { engine, threads, events, guardian, .. } = self;
        if let Engine::Ext(ext) = engine {
            let is = |tid| threads.iter().flatten().any(|known| known.thread.number == tid);
            events.extend(ext.give_back(is, guardian)?.into_iter().map(Event::Warning));
        }
        Ok(())
    }

    /// Binds a thread to a task. If it cannot be bound, that is said once.
    fn bind(&mut self, task: usize, found: &Candidate, others: usize) -> Result<(), Error> {
        let Some(home) = self.plan.home(task) else { return Ok(()) };
        let name = self.plan.tasks[task].name.clone();
        match self.bind_thread(task, home, found.tid)? {
            Ok(()) if others > 0 => {
                let tid = found.tid;
                self.warn(format!("{name} is thread {tid}; other threads that match: {others}"));
            }
            Ok(()) => {}
            Err(why) => {
                let lives = Thread::pin(found.tid).is_ok_and(|(thread, _)| thread.lives());
                if lives && !std::mem::replace(&mut self.told[task], true) {
                    self.warn(format!("{name} cannot be dispatched: {why}"));
                }
            }
        }
        Ok(())
    }

    /// The same for a task or guest that runs on this lane first. The inner error says in words why it cannot
    /// be bound.
    pub(super) fn bind_thread(
        &mut self,
        task: usize,
        home: usize,
        tid: u32,
    ) -> Result<Result<(), String>, Error> {
        let pinned = Thread::pin(tid).map_err(|error| error.to_string());
        let cgroup = proc::cgroup(tid).unwrap_or_default();
        let found = pinned.and_then(|pinned| {
            if let Some(process) = leftovers::holder(&cgroup, tid) {
                return Err(format!("it belongs to the table that process {process} dispatches"));
            }
            let state = State::read(tid).map_err(|refused| refused.to_string())?;
            // The kernel does not bind such a thread to a processor.
            if state.scheduling.is_deadline() {
                return Err("it is SCHED_DEADLINE: give it another policy first".into());
            }
            Ok((pinned, self.untouched(tid, state)))
        });
        let ((thread, owner), before) = match found {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let bound = match &self.engine {
            Engine::User(_) => self.bind_in_user_space(task, home, (tid, owner.process), &thread, before)?,
            Engine::Ext(_) => self.bind_by_sched_ext(task, owner.process, &thread, before)?,
        };
        Ok(bound.map(|cgroup| {
            self.threads[task] = Some(Known { thread, process: owner.process, before, cgroup });
            self.told[task] = false;
            self.announce(task, tid);
        }))
    }

    /// What a thread was before the table. One that a thread of the table has started has inherited from
    /// that.
    fn untouched(&self, tid: u32, found: State) -> State {
        if found.scheduling.policy != SCHED_EXT {
            return match &self.engine {
                Engine::User(_) => found,
                Engine::Ext(ext) => ext.before(tid, found),
            };
        }
        let parent = self.threads.iter().flatten().map(|known| known.before.processors).next();
        let everywhere = || Processors::from_words([u64::MAX; Processors::MOST / 64]);
        State { scheduling: Scheduling::ordinary(), processors: parent.unwrap_or_else(everywhere) }
    }

    /// Gives a thread to the dispatcher in user space. Returns its own cgroup, if it has one; or what was
    /// refused.
    pub(super) fn bind_in_user_space(
        &mut self,
        task: usize,
        home: usize,
        (tid, process): (u32, u32),
        thread: &Thread,
        before: State,
    ) -> Result<Result<Option<Made>, String>, Error> {
        let priorities = self.options.priorities;
        let processors = self.plan.processors();
        self.guardian.note(self.undo(tid, thread, before))?;
        let processor = self.plan.lanes[home].processor;
        // Moving a thread into a cgroup waits for threads that fork or exec, which may be cut off in the
        // midst of that by the very lane that has to freeze others meanwhile. So no guest is moved.
        let (bound, cgroup) = match task >= self.plan.tasks.len() {
            true => (Bound::guest((tid, process), processor, priorities, before.scheduling), None),
            false => {
                let (freezer, cgroup) = self.freezer(task, tid, before, processors)?.unzip();
                (Bound::new((tid, process), processor, priorities, freezer), cgroup)
            }
        };
        let Engine::User(dispatcher) = &self.engine else { return Ok(Ok(cgroup)) };
        Ok(bound.map(|bound| {
            self.priority.raised(|| drop(dispatcher.bind(task, Some(bound))));
            cgroup
        }))
    }

    /// Gives a thread to the dispatcher in the kernel; or says what was refused.
    fn bind_by_sched_ext(
        &mut self,
        task: usize,
        process: u32,
        thread: &Thread,
        before: State,
    ) -> Result<Result<Option<Made>, String>, Error> {
        self.guardian.note(self.undo(thread.number, thread, before))?;
        let Engine::Ext(ext) = &mut self.engine else { return Ok(Ok(None)) };
        Ok(ext.dispatcher.bind(task, thread, process).map(|()| None))
    }

    /// A cgroup for the thread, with its path and parent; `None`, and a warning, where there can be none.
    fn freezer(
        &mut self,
        task: usize,
        tid: u32,
        before: State,
        processors: Vec<u32>,
    ) -> Result<Option<(Freezer, Made)>, Error> {
        let Some(mount) = &self.cgroups else { return Ok(None) };
        let failed = match Freezer::place(mount, tid) {
            Ok((path, parent)) => {
                let undo = Undo::Cgroup {
                    path: path.clone(),
                    parent,
                    before: Box::new(before),
                    priorities: self.given_priorities(),
                    processors,
                };
                self.guardian.note(undo.clone())?;
                match Freezer::create(&path, tid) {
                    Ok(freezer) => return Ok(Some((freezer, (path, undo)))),
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        if failed.raw_os_error() != Some(libc::ESRCH) && !std::mem::replace(&mut self.told[task], true) {
            let name = self.name(task);
            let message = format!("{name} (thread {tid}) cannot be frozen ({failed}): {NOT_LENT}");
            self.warn(message);
        }
        Ok(None)
    }

    /// How to make a thread what it was.
    pub(super) fn undo(&self, tid: u32, thread: &Thread, before: State) -> Undo {
        let sched_ext = matches!(self.engine, Engine::Ext(_));
        Undo::Thread {
            tid,
            identity: thread.identity,
            before: Box::new(before),
            priorities: if sched_ext { Vec::new() } else { self.given_priorities() },
            processors: self.plan.processors(),
            policies: if sched_ext { vec![SCHED_EXT] } else { Vec::new() },
        }
    }

    /// Gives threads again what somebody has changed.
    pub(super) fn mend(&mut self) {
        for task in 0..self.threads.len() {
            let tid = self.threads[task].as_ref().map_or(0, |known| known.thread.number);
            let changed = match &self.engine {
                Engine::User(dispatcher) => {
                    let found = dispatcher.found(task).map(|what| (tid, what));
                    let mended = self.priority.raised(|| {
                        dispatcher.with_task(task, |bound| Some((bound.as_ref()?.tid, bound?.mend()?)))
                    });
                    found.or(mended)
                }
                Engine::Ext(ext) => ext.dispatcher.mend(task).map(|what| (tid, what)),
            };
            if let Some((tid, what)) = changed {
                let name = self.name(task);
                let message = format!("{name} (thread {tid}): something set {what}; setting it back");
                self.warn(message);
            }
        }
    }

    /// Gives what threads of the table have started the processors that those had before. It stays in their
    /// cgroups: moving it would take a lock for which dispatching threads may have to wait.
    pub(super) fn release_children(&self) {
        if let Engine::Ext(ext) = &self.engine {
            if let Some(known) = self.threads.iter().flatten().next() {
                ext.dispatcher.release_children(&known.before);
            }
            return;
        }
        for known in self.threads.iter().flatten() {
            let Some((path, _)) = &known.cgroup else { continue };
            let parent = known.thread.number;
            let Ok(place) = scheduling::processors(parent) else { continue };
            let list = fs::read_to_string(path.join("cgroup.threads")).unwrap_or_default();
            for tid in list.lines().filter_map(|line| line.parse().ok()).filter(|tid| *tid != parent) {
                // One that has other processors by now has chosen them. One that ends needs nothing.
                if scheduling::processors(tid).is_ok_and(|processors| processors == place) {
                    let _ = scheduling::pin(tid, &known.before.processors);
                }
            }
        }
    }

    /// Priorities of SCHED_FIFO that threads of the table get.
    fn given_priorities(&self) -> Vec<u32> {
        vec![self.options.priorities.turn(), self.options.priorities.waiting()]
    }
}
