//! The dispatcher: a scheduler in the kernel, or threads of this process.

use crate::error::Error;
use crate::guardian::Guardian;
use crate::threads::{candidates, family};
use crate::user::Priorities;
use crate::{ext, user};
use punctual_linux::scheduling::{self, Processors, State};
use punctual_linux::{proc, system};
use punctual_model::{Duration, Instant};
use punctual_tables::Candidate;
use punctual_tables::Plan;
use punctual_tables::rows::Rows;
use punctual_trace::dispatch::Turn;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// Which dispatcher is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// By sched_ext where that works, else from user space.
    #[default]
    Auto,
    /// By sched_ext, or not at all.
    SchedExt,
    /// From user space.
    User,
}

/// A dispatcher at work.
#[derive(Debug)]
pub enum Engine {
    User(user::Dispatcher),
    Ext(Box<Ext>),
}

/// The one in the kernel, and where this process was before.
#[derive(Debug)]
pub struct Ext {
    pub dispatcher: ext::Dispatcher,
    home: Home,
    /// Processors of threads before the partition was made, which takes some from all others.
    before: BTreeMap<u32, Processors>,
    /// Those that had a priority, until they are bound.
    lowered: ext::Lowered,
}

/// Where this process was before it entered the cgroup of the table's threads, if it did.
#[derive(Debug)]
struct Home(Option<PathBuf>);

impl Home {
    fn go_back(&mut self) {
        if let Some(home) = self.0.take() {
            // Where it was may be gone.
            let _ = fs::write(home, std::process::id().to_string());
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.go_back();
    }
}

impl Engine {
    /// As statuses name it.
    pub fn name(&self) -> &'static str {
        match self {
            Engine::User(_) => "user",
            Engine::Ext(_) => "sched_ext",
        }
    }

    /// Hands on the turns that are over, those of each processor in order, and by lane how many are lost.
    pub fn drain(&mut self, each: impl FnMut(Turn), lost: impl FnMut(usize, u64)) -> Result<(), Error> {
        match self {
            Engine::User(dispatcher) => {
                dispatcher.drain(each, lost);
                Ok(())
            }
            Engine::Ext(ext) => ext.dispatcher.drain(each, lost),
        }
    }

    /// Serves these rows on a lane from their first slot on. False, and nothing changes, if that cannot be
    /// done in time.
    pub fn publish(&mut self, lane: usize, rows: Rows) -> bool {
        match self {
            Engine::User(dispatcher) => dispatcher.publish(lane, rows),
            Engine::Ext(ext) => ext.dispatcher.publish(lane, rows),
        }
    }

    /// Ends dispatching. The last turns can still be drained.
    pub fn stop(&mut self) {
        match self {
            Engine::User(dispatcher) => dispatcher.stop(),
            Engine::Ext(ext) => ext.dispatcher.stop(),
        }
    }

    /// Why the kernel has ended its dispatcher, if it has.
    pub fn ejected(&self) -> Option<String> {
        match self {
            Engine::User(_) => None,
            Engine::Ext(ext) => ext.dispatcher.ejected(),
        }
    }
}

/// Where threads of the table are looked for.
pub struct Scope<'a> {
    pub plan: &'a Arc<Plan>,
    /// Only in this process and what it starts.
    pub within: Option<u32>,
    pub priorities: Priorities,
    /// Until the first slot, if that is given.
    pub until_start: Duration,
}

impl Ext {
    /// Sets the kernel's dispatcher up; nothing is dispatched yet. If that fails, everything is as before;
    /// `warn` hears what is not.
    pub fn prepare(
        scope: &Scope<'_>,
        guardian: &mut Guardian,
        warn: &mut dyn FnMut(String),
    ) -> Result<Ext, Error> {
        let unsupported = |why: String| Error::unsupported("dispatch by sched_ext", why);
        ext::longest_wait(scope.plan, scope.until_start).map_err(unsupported)?;
        let mount = system::cgroups().ok_or_else(|| unsupported("cgroups are not mounted".into()))?;
        let matching = scope.matching();
        let cgroup = ext::shared_cgroup(matching.iter()).map_err(unsupported)?;
        let known: Vec<u32> = matching.iter().map(|thread| thread.tid).collect();
        let before = known.iter().filter_map(|tid| Some((*tid, scheduling::processors(*tid).ok()?)));
        let before = before.collect();
        let own = proc::cgroup(std::process::id()).map_err(|error| unsupported(error.to_string()))?;
        let procs = |cgroup: &str| mount.join(cgroup.trim_start_matches('/')).join("cgroup.procs");
        let mut home = Home(None);
        if own != cgroup {
            // The ticks are threads of this process, and belong to the partition.
            let pid = std::process::id().to_string();
            fs::write(procs(&cgroup), pid)
                .map_err(|error| Error::unsupported(&format!("entering the cgroup {cgroup}"), error))?;
            home = Home(Some(procs(&own)));
        }
        let partition = ext::Partition::planned(&mount, &cgroup, scope.plan);
        let undo = partition.undo().clone();
        guardian.note(undo.clone())?;
        let mut lowered = ext::Lowered::default();
        let made = lowered.during(
            || scope.starting().unwrap_or_else(|| known.clone()),
            guardian,
            || {
                partition.make()?;
                ext::Dispatcher::prepare(Arc::clone(scope.plan), partition, scope.priorities)
            },
        );
        match made {
            Ok(dispatcher) => Ok(Ext { dispatcher, home, before, lowered }),
            Err(error) => {
                // Whoever dispatches instead needs its processors.
                let removed = undo.run();
                drop(home);
                if removed.is_ok() {
                    guardian.withdraw(|noted| *noted == undo)?;
                }
                let kept = lowered.give_back(|_| false, guardian)?;
                removed.err().into_iter().chain(kept).for_each(warn);
                Err(error)
            }
        }
    }

    /// Has the table carried out from `start` on.
    pub fn begin(&mut self, start: Instant, priorities: Priorities) -> Result<(), Error> {
        self.dispatcher.begin(start, priorities)
    }

    /// What a thread was before the table, which now is as `found`.
    pub fn before(&self, tid: u32, found: State) -> State {
        let known = self.before.get(&tid).copied();
        let processors = known.unwrap_or_else(|| self.widened(found.processors));
        State { scheduling: self.lowered.before(tid, found.scheduling), processors }
    }

    /// Gives threads that are not bound their priority again. Returns what failed, in words.
    pub fn give_back(
        &mut self,
        is_bound: impl Fn(u32) -> bool,
        guardian: &mut Guardian,
    ) -> Result<Vec<String>, Error> {
        self.lowered.give_back(is_bound, guardian)
    }

    /// Whoever has all processors that the partition has left to it had the partition's, too.
    fn widened(&self, found: Processors) -> Processors {
        let left = scheduling::processors(1).unwrap_or(found);
        let mut words = found.words();
        if found == left {
            let own = self.dispatcher.partition.processors.words();
            words.iter_mut().zip(own).for_each(|(word, own)| *word |= own);
        }
        Processors::from_words(words)
    }

    /// Ends it, and gives the processors of its partition back.
    pub fn end(&mut self) -> Result<(), String> {
        self.dispatcher.stop();
        self.dispatcher.partition.remove()
    }
}

impl Drop for Ext {
    fn drop(&mut self) {
        self.dispatcher.stop();
        self.home.go_back();
    }
}

impl Scope<'_> {
    /// Threads that match a task by now, if few have to be looked at.
    fn starting(&self) -> Option<Vec<u32>> {
        self.within?;
        Some(self.matching().into_iter().map(|thread| thread.tid).collect())
    }

    /// Threads that are here already and match a task.
    fn matching(&self) -> Vec<Candidate> {
        let own = std::process::id();
        let mut found = candidates(self.within.map(family).as_ref());
        let is_meant = |thread: &Candidate| self.plan.tasks.iter().any(|task| task.thread.matches(thread));
        found.retain(|thread| thread.process != own && is_meant(thread));
        found
    }
}
