//! A table carried out on this machine: finds the threads of its tasks, binds them to a dispatcher, collects
//! what becomes of every turn, and has everything put back at the end.

mod guests;

use crate::engine::{Choice, Engine, Ext, Scope};
use crate::error::{Error, ErrorKind};
use crate::ext::missed_turn;
use crate::freezer::{self, Freezer};
use crate::guardian::Guardian;
use crate::guests::{Guests, MOST as MOST_GUESTS};
use crate::leftovers;
use crate::managers::Managers;
use crate::plan::{Job, OnOverrun, Plan};
use crate::rows::{Cursor, Rows};
use crate::statistics::{Statistics, TaskStatistics};
use crate::status::{LaneStatus, Server, Status, TaskStatus, statuses};
use crate::threads::{Candidate, candidates, family};
use crate::undo::{SCHED_EXT, Undo, remove_emptied};
use crate::user::{Bound, Dispatcher, LEAST_LOAN, Priorities};
use punctual_daemon::kernel::{self, Processors, Scheduling, State};
use punctual_daemon::thread::Thread;
use punctual_model::{Duration, Instant, processor_list};
use punctual_schedule::AssignedPolicy;
use punctual_trace::dispatch::{Dispatch, Table, Task, Turn};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// From being asked to the first slot, if no start is given: threads are looked for meanwhile.
const LEAD: Duration = Duration::from_ms(200);

/// Ticks between two looks at whether threads have come, changed or gone.
const TICKS_PER_LOOK: u32 = 5;

/// Looks between two searches of the whole machine for threads.
const LOOKS_PER_SEARCH: u32 = 10;

/// With more than this share of a processor's slots owned, real-time throttling would take some of them.
const UNTHROTTLED_PERCENT: u32 = 90;

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// How to carry a table out.
#[derive(Clone, Debug)]
pub struct Options {
    /// When the first slot begins, on the table's clock; soon, if nothing is said.
    pub start: Option<Instant>,
    /// The name of the table's file, for `status`.
    pub table: String,
    /// The dispatcher.
    pub dispatcher: Choice,
    /// Priorities on the table's processors.
    pub priorities: Priorities,
    /// Look for threads only in this process and what it starts.
    pub within: Option<u32>,
    /// The program whose process restores everything, with its words ([`crate::guardian`]).
    pub guardian: Vec<OsString>,
}

/// What a session has to tell.
#[derive(Debug)]
pub enum Event {
    /// For the recording.
    Record(Dispatch),
    /// For the user.
    Warning(String),
}

/// A table that is being carried out. Dropping it without [`Session::finish`] is a kill: the guardian puts
/// everything back, but nobody waits for it.
#[derive(Debug)]
pub struct Session {
    plan: Arc<Plan>,
    start: Instant,
    options: Options,
    engine: Engine,
    /// By lane, the turns from the first that nobody carried out when dispatch went on in user space.
    unread: Vec<Option<Cursor>>,
    guardian: Guardian,
    /// By task, its thread. After those of the table come guests.
    threads: Vec<Option<Known>>,
    guests: Option<Guests>,
    managers: Option<Managers>,
    statistics: Statistics,
    server: Option<Server>,
    cgroups: Option<PathBuf>,
    priority: OwnPriority,
    ticks: u32,
    events: Vec<Event>,
    /// By task, whether it was said that its thread cannot be frozen, or bound.
    told: Vec<bool>,
}

/// A cgroup that was made, and how to remove it.
type Made = (PathBuf, Undo);

/// The thread of a task.
#[derive(Debug)]
struct Known {
    thread: Thread,
    process: u32,
    /// As it was.
    before: State,
    /// Its own cgroup, and how to remove that.
    cgroup: Option<Made>,
}

impl Session {
    /// Begins. `plan` must have been checked.
    pub fn start(plan: Plan, options: Options) -> Result<Session, Error> {
        check_processors(&plan)?;
        crate::status::clear();
        let plan = Arc::new(plan);
        let mut guardian = Guardian::start(options.guardian.clone(), options.priorities.guardian())?;
        let mut events = Vec::new();
        let server = listen(&mut guardian, &mut events)?;
        for path in freezer::mount().iter().flat_map(|mount| leftovers::clear_cgroups(mount)) {
            let path = path.display();
            let message = format!("removing {path}, left behind by a dispatcher that was killed");
            events.push(Event::Warning(message));
        }
        let is_apart = leave_processors(&plan, &mut events);
        lock_memory(&mut events);
        let ext = prepare_ext(&plan, &options, is_apart, &mut guardian, &mut events)?;
        let start = options.start.unwrap_or_else(|| plan.clock.now() + LEAD);
        let (engine, cgroups) = match ext {
            Some(ext) => (Engine::Ext(Box::new(ext)), None),
            None => {
                let lanes = 0..plan.lanes.len();
                let turns = lanes.map(|lane| Cursor::new(Rows::table(&plan, lane), 0)).collect();
                start_user(&plan, start, turns, &options, &mut guardian, &mut events)?
            }
        };
        let priority = OwnPriority::new(is_apart, options.priorities);
        let tasks = plan.tasks.len() + MOST_GUESTS;
        let mut statistics = Statistics::new(&plan);
        statistics.tasks.resize(tasks, TaskStatistics::default());
        let mut session = Session {
            statistics,
            threads: (0..tasks).map(|_| None).collect(),
            guests: None,
            managers: None,
            told: vec![false; tasks],
            unread: plan.lanes.iter().map(|_| None).collect(),
            plan,
            start,
            options,
            engine,
            guardian,
            server,
            cgroups,
            priority,
            ticks: 0,
            events,
        };
        (0..session.plan.tasks.len()).for_each(|task| session.announce(task, 0));
        session.begin()?;
        session.find_threads()?;
        session.listen_for_guests()?;
        Ok(session)
    }

    /// Lets the kernel's dispatcher begin. Not after threads are bound: one that is held while it forks has a
    /// lock that binding the next one waits for.
    fn begin(&mut self) -> Result<(), Error> {
        if let Engine::Ext(ext) = &mut self.engine {
            self.start = self.options.start.unwrap_or_else(|| self.plan.clock.now() + LEAD);
            ext.begin(self.start, self.options.priorities)?;
        }
        let table = self.table();
        self.events.insert(0, table);
        Ok(())
    }

    /// The record of how the table is carried out.
    fn table(&self) -> Event {
        Event::Record(Dispatch::Table(Table {
            start: self.start,
            slot: self.plan.slot,
            slots: self.plan.slots,
            is_tai: self.plan.clock == crate::Clock::Tai,
            is_sched_ext: matches!(self.engine, Engine::Ext(_)),
        }))
    }

    /// Does what is due. Call it at least every 20 ms or so; `each` gets what has happened since.
    pub fn tick(&mut self, each: &mut dyn FnMut(Event)) -> Result<(), Error> {
        self.ticks += 1;
        self.drain()?;
        if let Some(why) = self.engine.ejected() {
            self.go_on_in_user_space(&why)?;
        }
        if let Engine::Ext(ext) = &self.engine {
            ext.dispatcher.watch();
            // One that has left SCHED_EXT runs before all others.
            self.mend();
        }
        if self.ticks % TICKS_PER_LOOK == 0 {
            self.notice_ends();
            // A command has some threads; a machine may have thousands.
            if self.options.within.is_some() || self.ticks % (TICKS_PER_LOOK * LOOKS_PER_SEARCH) == 0 {
                self.find_threads()?;
            }
            self.mend();
            self.release_children();
            if self.guardian.check()? {
                self.warn("the process that restores all settings had ended; another was started".into());
            }
        }
        self.serve_guests()?;
        if let Some(server) = &self.server {
            server.answer(|| self.status());
        }
        self.events.drain(..).for_each(each);
        Ok(())
    }

    /// Stops dispatching and has everything put back. False if something could not be; standard error has
    /// what.
    pub fn finish(mut self, each: &mut dyn FnMut(Event)) -> Result<(Statistics, bool), Error> {
        self.engine.stop();
        self.drain()?;
        self.events.drain(..).for_each(each);
        let Session { guardian, statistics, priority, engine, .. } = self;
        drop(priority);
        // The kernel's dispatcher has gone back to its own cgroup then.
        drop(engine);
        Ok((statistics, guardian.finish()?))
    }

    /// When the first slot begins, on the table's clock.
    pub fn begins(&self) -> Instant {
        self.start
    }

    /// Tasks that have no thread at present.
    pub fn missing(&self) -> Vec<&str> {
        let tasks = self.plan.tasks.iter().zip(&self.threads);
        tasks.filter(|(_, thread)| thread.is_none()).map(|(task, _)| task.name.as_str()).collect()
    }

    /// What has been done so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The present state.
    pub fn status(&self) -> Status {
        let slot = self.plan.slot_at(self.plan.clock.now(), self.start);
        let lanes = self.plan.lanes.iter().zip(&self.statistics.lanes).enumerate();
        let lane = |(number, (lane, statistics)): (usize, (&crate::Lane, &crate::LaneStatistics))| {
            let owner = slot.and_then(|slot| self.owner(number, slot));
            LaneStatus {
                cpu: lane.processor,
                slot,
                task: owner.map(|job| self.name(job.task as usize)),
                turns: statistics.turns,
                missed: statistics.missed,
                error: statistics.errors(),
            }
        };
        let tasks = self.plan.tasks.iter().zip(&self.statistics.tasks).zip(&self.threads);
        let task = |((task, statistics), known): ((&crate::Task, &crate::TaskStatistics), &Option<Known>)| {
            TaskStatus {
                name: task.name.clone(),
                tid: known.as_ref().map(|known| known.thread.number),
                turns: statistics.turns,
                unserved: statistics.unserved,
                overruns: statistics.overruns,
                ran_ns: statistics.ran,
                outside_max_ns: statistics.outside_max,
            }
        };
        Status {
            pid: std::process::id(),
            dispatcher: self.engine.name().into(),
            table: self.options.table.clone(),
            clock: self.plan.clock,
            start_ns: self.start,
            slot_ns: self.plan.slot,
            slots: self.plan.slots,
            processors: lanes.map(lane).collect(),
            tasks: tasks.map(task).collect(),
            guests: self.guest_statuses(),
        }
    }

    fn owner(&self, lane: usize, slot: u64) -> Option<Job> {
        match &self.guests {
            Some(guests) => guests.owner(lane, slot),
            None => self.plan.owner(lane, slot),
        }
    }

    /// The lane on which a task or guest runs first.
    fn home(&self, task: usize) -> Option<usize> {
        let processor = || Some(self.guests.as_ref()?.of_task(task)?.processor);
        let lane = |processor| self.plan.lanes.iter().position(|lane| lane.processor == processor);
        self.plan.home(task).or_else(|| lane(processor()?))
    }

    /// What a task or guest is called.
    fn name(&self, task: usize) -> String {
        let planned = self.plan.tasks.get(task).map(|task| &task.name);
        let guest = || Some(&self.guests.as_ref()?.of_task(task)?.name);
        planned.or_else(guest).map_or_else(|| "a guest".into(), String::clone)
    }

    /// Takes the turns that are over.
    fn drain(&mut self) -> Result<(), Error> {
        let mut overruns = Vec::new();
        let Session { engine, plan, statistics, events, unread, start, .. } = self;
        let mut lost = Vec::new();
        let mut add = |lane: usize, turn: Turn| {
            statistics.add(lane, &turn);
            if turn.is_overrun {
                overruns.push(turn);
            }
            events.push(Event::Record(Dispatch::Turn(turn)));
        };
        engine.drain(
            |turn| {
                let lane =
                    plan.lanes.iter().position(|lane| lane.processor == turn.cpu).unwrap_or(usize::MAX);
                let mut unread = unread.get_mut(lane).and_then(Option::take);
                let missed = unread.iter_mut().flat_map(|turns| turns.until(turn.slot));
                missed
                    .map(|missed| missed_turn(plan, lane, &missed, *start, turn.at))
                    .for_each(|missed| add(lane, missed));
                add(lane, turn);
            },
            |lane, count| lost.push((lane, count)),
        )?;
        for (lane, count) in lost {
            self.statistics.lanes[lane].lost += count;
            let cpu = self.plan.lanes[lane].processor;
            self.events.push(Event::Record(Dispatch::Lost { cpu, count }));
        }
        overruns.iter().try_for_each(|turn| self.overrun(turn))
    }

    /// Does what the table says about an overrun.
    fn overrun(&mut self, turn: &Turn) -> Result<(), Error> {
        let Some(number) = turn.task.map(|task| task as usize) else { return Ok(()) };
        let Some(known) = self.threads[number].as_ref().filter(|known| known.thread.number == turn.tid)
        else {
            return Ok(());
        };
        // Guests have no slots left.
        let Some(task) = self.plan.tasks.get(number) else { return Ok(()) };
        let said = format!("{} (thread {}) was not done at the end of slot", task.name, turn.tid);
        let last = turn.slot + u64::from(turn.slots) - 1;
        match task.on_overrun {
            OnOverrun::Continue | OnOverrun::Skip => {}
            OnOverrun::Stop => {
                let (tid, identity, process) = (turn.tid, known.thread.identity, known.process);
                self.guardian.note(Undo::Stopped { tid, identity })?;
                if known.thread.lives() {
                    // SAFETY: no memory is involved. The process is that of a thread which lives.
                    unsafe { libc::kill(process as i32, libc::SIGSTOP) };
                }
                self.warn(format!("{said} {last}: process {process} is stopped until the table ends"));
            }
            OnOverrun::Tell => self.warn(format!("{said} {last}")),
        }
        Ok(())
    }

    /// Frees the tasks whose threads are gone. Guests may be over then, too: see [`Session::serve_guests`].
    fn notice_ends(&mut self) {
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
    fn find_threads(&mut self) -> Result<(), Error> {
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
            let mut matching =
                found.iter().filter(|thread| !taken.contains(&thread.tid) && selector.matches(thread));
            if let Some(thread) = matching.next().cloned() {
                let others = matching.count();
                taken.insert(thread.tid);
                self.bind(task, &thread, others)?;
            }
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
    fn bind_thread(&mut self, task: usize, home: usize, tid: u32) -> Result<Result<(), String>, Error> {
        let pinned = Thread::pin(tid).map_err(|error| error.to_string());
        let found = pinned.and_then(|pinned| {
            let state = State::read(tid).map_err(|refused| refused.to_string())?;
            Ok((pinned, self.untouched(tid, state)))
        });
        let ((thread, owner), before) = match found {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let bound = match &self.engine {
            Engine::User(_) => self.bind_in_user_space(task, home, (tid, owner.process), &thread, before)?,
            Engine::Ext(_) => self.bind_by_sched_ext(task, (tid, owner.process), &thread, before)?,
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
    fn bind_in_user_space(
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

    /// How to make a thread what it was.
    fn undo(&self, tid: u32, thread: &Thread, before: State) -> Undo {
        let sched_ext = matches!(self.engine, Engine::Ext(_));
        Undo::Thread {
            tid,
            identity: thread.identity,
            before: Box::new(before),
            priorities: if sched_ext { Vec::new() } else { self.given_priorities() },
            processors: self.plan.processors(),
            sched_ext,
        }
    }

    /// Gives a thread to the dispatcher in the kernel; or says what was refused.
    fn bind_by_sched_ext(
        &mut self,
        task: usize,
        (tid, process): (u32, u32),
        thread: &Thread,
        before: State,
    ) -> Result<Result<Option<Made>, String>, Error> {
        self.guardian.note(self.undo(tid, thread, before))?;
        let Engine::Ext(ext) = &mut self.engine else { return Ok(Ok(None)) };
        Ok(ext.dispatcher.bind(task, tid, process).map(|()| None))
    }

    /// Takes the table over from a dispatcher that the kernel has ejected: its threads are ordinary ones by
    /// now.
    fn go_on_in_user_space(&mut self, why: &str) -> Result<(), Error> {
        self.warn(format!(
            "the kernel has ended dispatch by sched_ext ({why}): it goes on in user space, and other threads \
             may run in idle slots"
        ));
        let Engine::Ext(ext) = &mut self.engine else { return Ok(()) };
        let unread = ext.dispatcher.unread();
        self.unread = unread.iter().cloned().map(Some).collect();
        if let Err(why) = ext.end() {
            self.warn(why);
        }
        let Session { plan, start, options, guardian, events, .. } = self;
        (self.engine, self.cgroups) = start_user(plan, *start, unread, options, guardian, events)?;
        let table = self.table();
        self.events.push(table);
        for task in 0..self.threads.len() {
            let (Some(known), Some(home)) = (self.threads[task].take(), self.home(task)) else {
                continue;
            };
            let ids = (known.thread.number, known.process);
            match self.bind_in_user_space(task, home, ids, &known.thread, known.before)? {
                Ok(cgroup) => self.threads[task] = Some(Known { cgroup, ..known }),
                Err(why) => {
                    let message = format!("{} cannot be dispatched: {why}", self.name(task));
                    self.warn(message);
                    self.announce(task, 0);
                }
            }
        }
        Ok(())
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

    /// Gives threads again what somebody has changed.
    fn mend(&mut self) {
        for task in 0..self.threads.len() {
            let changed = match &self.engine {
                Engine::User(dispatcher) => self.priority.raised(|| {
                    dispatcher.with_task(task, |bound| Some((bound.as_ref()?.tid, bound?.mend()?)))
                }),
                Engine::Ext(ext) => {
                    let tid = self.threads[task].as_ref().map_or(0, |known| known.thread.number);
                    ext.dispatcher.mend(task).map(|what| (tid, what))
                }
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
    fn release_children(&self) {
        if let Engine::Ext(ext) = &self.engine {
            if let Some(known) = self.threads.iter().flatten().next() {
                ext.dispatcher.release_children(&known.before);
            }
            return;
        }
        for known in self.threads.iter().flatten() {
            let Some((path, _)) = &known.cgroup else { continue };
            let parent = known.thread.number;
            let Ok(place) = kernel::processors(parent) else { continue };
            let list = fs::read_to_string(path.join("cgroup.threads")).unwrap_or_default();
            for tid in list.lines().filter_map(|line| line.parse().ok()).filter(|tid| *tid != parent) {
                // One that has other processors by now has chosen them. One that ends needs nothing.
                if kernel::processors(tid).is_ok_and(|processors| processors == place) {
                    let _ = kernel::pin(tid, &known.before.processors);
                }
            }
        }
    }

    /// Priorities of SCHED_FIFO that threads of the table get.
    fn given_priorities(&self) -> Vec<u32> {
        vec![self.options.priorities.turn(), self.options.priorities.waiting()]
    }

    fn announce(&mut self, task: usize, tid: u32) {
        let name = self.name(task);
        self.events.push(Event::Record(Dispatch::Task(Box::new(Task { number: task as u32, name, tid }))));
    }

    fn warn(&mut self, message: String) {
        self.events.push(Event::Warning(message));
    }
}

const NO_CGROUPS: &str = "threads cannot be frozen because cgroups of version 2 are not mounted: nothing \
                          else runs in the idle slots of the table's processors";
const NOT_LENT: &str = "nothing else runs in the idle slots of its processor";

/// Sets the kernel's dispatcher up if it is wanted and works here.
fn prepare_ext(
    plan: &Arc<Plan>,
    options: &Options,
    is_apart: bool,
    guardian: &mut Guardian,
    events: &mut Vec<Event>,
) -> Result<Option<Ext>, Error> {
    if options.dispatcher == Choice::User {
        return Ok(None);
    }
    let unsupported = |why: String| Error::unsupported("dispatch by sched_ext", why);
    let is_must = options.dispatcher == Choice::SchedExt;
    match crate::ext::support() {
        Err(why) if is_must => return Err(unsupported(why)),
        Err(_) => return Ok(None),
        Ok(()) => {}
    }
    let until_start = options.start.map_or(LEAD, |start| start.since(plan.clock.now().min(start)));
    let scope = Scope { plan, within: options.within, priorities: options.priorities, until_start };
    let prepared = match is_apart {
        true => Ext::prepare(&scope, guardian),
        false => Err(unsupported(
            "the table uses all processors, and at least one must be left for everything else".into(),
        )),
    };
    match prepared {
        Ok(ext) => Ok(Some(ext)),
        Err(error) if is_must => Err(error),
        Err(error) => {
            events.push(Event::Warning(format!("{error}; dispatching from user space instead")));
            Ok(None)
        }
    }
}

/// Starts the dispatcher in user space with these turns, by lane; also says where cgroups are, by which it
/// freezes threads.
fn start_user(
    plan: &Arc<Plan>,
    start: Instant,
    turns: Vec<Cursor>,
    options: &Options,
    guardian: &mut Guardian,
    events: &mut Vec<Event>,
) -> Result<(Engine, Option<PathBuf>), Error> {
    lift_throttling(plan, guardian)?;
    let dispatcher = Dispatcher::start(Arc::clone(plan), start, options.priorities, turns)?;
    let cgroups = freezer::mount();
    if cgroups.is_none() {
        events.push(Event::Warning(NO_CGROUPS.into()));
    }
    Ok((Engine::User(dispatcher), cgroups))
}

/// Listens for `punctual tt status`; without, everything else works.
fn listen(guardian: &mut Guardian, events: &mut Vec<Event>) -> Result<Option<Server>, Error> {
    guardian.note(Undo::File { path: Server::path() })?;
    match Server::start() {
        Ok(server) => Ok(Some(server)),
        Err(error) => {
            let path = Server::path();
            let message = format!("punctual tt status will not show this table: {}: {error}", path.display());
            events.push(Event::Warning(message));
            Ok(None)
        }
    }
}

/// Refuses processors that are offline, or that another dispatcher uses.
fn check_processors(plan: &Plan) -> Result<(), Error> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let all_online = processor_list(&online).unwrap_or_default();
    let is_online = |processor: u32| all_online.contains(&processor);
    let others = statuses();
    for lane in &plan.lanes {
        let processor = lane.processor;
        if !is_online(processor) {
            let message =
                format!("the table uses processor {processor}, which is not online ({})", online.trim());
            return Err(Error::new(ErrorKind::Target, message));
        }
        let has = |status: &&Status| status.processors.iter().any(|lane| lane.cpu == processor);
        if let Some(other) = others.iter().find(has) {
            let message =
                format!("process {} already dispatches a table on processor {processor}", other.pid);
            return Err(Error::new(ErrorKind::Target, message));
        }
    }
    Ok(())
}

/// Keeps the calling thread off the table's processors. False if there are no others.
fn leave_processors(plan: &Plan, events: &mut Vec<Event>) -> bool {
    let Ok(own) = kernel::processors(0) else { return false };
    let mut words = own.words();
    for lane in &plan.lanes {
        if let Some(word) = words.get_mut(lane.processor as usize / 64) {
            *word &= !(1 << (lane.processor % 64));
        }
    }
    let left = Processors::from_words(words);
    let is_apart = words.iter().any(|word| *word != 0) && kernel::pin(0, &left).is_ok();
    if !is_apart {
        let message = "the table uses all processors: everything else runs in its idle slots only";
        events.push(Event::Warning(message.into()));
    }
    is_apart
}

/// A dispatcher must not wait for a page.
fn lock_memory(events: &mut Vec<Event>) {
    // SAFETY: it takes no pointer.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
        let error = std::io::Error::last_os_error();
        events.push(Event::Warning(format!("cannot lock memory ({error}): slots may begin late")));
    }
}

/// Real-time throttling would take slots from processors that belong to the table most of the time.
fn lift_throttling(plan: &Plan, guardian: &mut Guardian) -> Result<(), Error> {
    let longest = |lane: &crate::Lane| {
        let idle = lane.turns.iter().filter(|turn| turn.job.is_none());
        idle.map(|turn| u64::from(turn.to - turn.from) * plan.slot.ns()).max().unwrap_or(0)
    };
    let is_full = |(number, lane): (usize, &crate::Lane)| {
        plan.percent_owned(number) > UNTHROTTLED_PERCENT || longest(lane) < LEAST_LOAN.ns()
    };
    let Ok(before) = kernel::rt_runtime() else { return Ok(()) };
    if before < 0 || !plan.lanes.iter().enumerate().any(is_full) {
        return Ok(());
    }
    let (path, before) = (Path::new(RT_RUNTIME).to_path_buf(), before.to_string());
    guardian.note(Undo::Setting { path, before, written: "-1".into() })?;
    kernel::set_rt_runtime(-1).map_err(|refused| Error::unsupported("lifting real-time throttling", refused))
}

/// The priority of the session's own thread.
#[derive(Debug)]
struct OwnPriority {
    before: Scheduling,
    above_all: Scheduling,
    /// Whether it has a processor without a table: then it has its priority there all the time, so that a
    /// thread of the table that has set itself free cannot keep it from setting that back.
    is_apart: bool,
}

impl OwnPriority {
    fn new(is_apart: bool, priorities: Priorities) -> OwnPriority {
        let above_all = Scheduling::from_policy(AssignedPolicy::Fifo(priorities.guardian()));
        let before = kernel::scheduling(0).unwrap_or_else(|_| Scheduling::ordinary());
        let own = OwnPriority { before, above_all, is_apart };
        if is_apart {
            own.set(&own.above_all);
        }
        own
    }

    /// Without it, work only takes longer; and the kernel has allowed the same to the dispatching threads.
    fn set(&self, scheduling: &Scheduling) {
        let _ = kernel::schedule(0, scheduling);
    }

    /// Does something for which a dispatching thread may have to wait: nobody else may be in the way.
    fn raised<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.is_apart {
            return work();
        }
        self.set(&self.above_all);
        let result = work();
        self.set(&self.before);
        result
    }

    /// Does something that takes long and that nobody waits for.
    fn ordinary<T>(&self, work: impl FnOnce() -> T) -> T {
        if !self.is_apart {
            return work();
        }
        self.set(&self.before);
        let result = work();
        self.set(&self.above_all);
        result
    }
}

impl Drop for OwnPriority {
    fn drop(&mut self) {
        self.set(&self.before);
    }
}
