//! A table carried out on this machine: finds the threads of its tasks, binds them to a dispatcher, collects
//! what becomes of every turn, and has everything put back at the end.

mod dispatcher;
mod early;
mod guests;
mod kernel_threads;
mod priority;
mod status;
mod surroundings;
mod threads;

use crate::clock::Readable as _;
use crate::engine::{Choice, Engine};
use crate::error::Error;
use crate::ext::missed_turn;
use crate::guardian::Guardian;
use crate::leftovers;
use crate::managers::Managers;
use crate::status::Server;
use crate::undo::Undo;
use crate::user::Priorities;
use priority::OwnPriority;
use punctual_linux::system;
use punctual_model::{Duration, Instant};
use punctual_tables::guests::{Guests, MOST as MOST_GUESTS};
use punctual_tables::rows::{Cursor, Rows};
use punctual_tables::{OnOverrun, Plan};
use punctual_tables::{Statistics, TaskStatistics};
use punctual_trace::dispatch::{Dispatch, Table, Task, Turn};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use threads::Known;

/// From being asked to the first slot, if no start is given: threads are looked for meanwhile.
const LEAD: Duration = Duration::from_ms(200);

/// Ticks between two looks at whether threads have come, changed or gone.
const TICKS_PER_LOOK: u32 = 5;

/// Looks between two searches of the whole machine for threads.
const LOOKS_PER_SEARCH: u32 = 10;

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
    /// By lane, the turns from the first that is owed, until one is carried out: at the beginning, and when
    /// dispatch goes on in user space.
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
    /// By task, the last turn of which it is known that its thread slept in it.
    slept: Vec<Option<u64>>,
    /// By task, whether it was said that its thread cannot be frozen, or bound.
    told: Vec<bool>,
}

impl Session {
    /// Begins. `plan` must have been checked.
    pub fn start(plan: Plan, options: Options) -> Result<Session, Error> {
        let asked = plan.clock.now();
        surroundings::check_processors(&plan)?;
        crate::status::clear();
        let plan = Arc::new(plan);
        let mut guardian = Guardian::start(options.guardian.clone(), options.priorities.guardian())?;
        let mut events = Vec::new();
        let server = surroundings::listen(&mut guardian, &mut events)?;
        for path in system::cgroups().iter().flat_map(|mount| leftovers::clear_cgroups(mount)) {
            let path = path.display();
            let message = format!("removing {path}, left behind by a dispatcher that was killed");
            events.push(Event::Warning(message));
        }
        surroundings::warn_of_short_turns(&plan, &mut events);
        let is_apart = surroundings::leave_processors(&plan, &mut events);
        surroundings::lock_memory(&mut events);
        let ext = dispatcher::prepare_ext(&plan, &options, is_apart, &mut guardian, &mut events)?;
        let start = options.start.unwrap_or_else(|| plan.clock.now() + LEAD);
        let is_joined = options.start.is_some_and(|start| start <= asked);
        let first = if is_joined { plan.joined(plan.clock.now() + LEAD, start) } else { 0 };
        let lanes = 0..plan.lanes.len();
        let turns: Vec<_> = lanes.map(|lane| Cursor::new(Rows::table(&plan, lane), first)).collect();
        // The kernel's scheduler joins a table where the next turn begins.
        let is_owed = ext.is_none() || !is_joined;
        let unread = turns.iter().map(|turns| is_owed.then(|| turns.clone())).collect();
        let (engine, cgroups) = match ext {
            Some(ext) => (Engine::Ext(Box::new(ext)), None),
            None => dispatcher::start_user(&plan, start, turns, &options, &mut guardian, &mut events)?,
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
            slept: vec![None; tasks],
            unread,
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
        session.raise_others()?;
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
            is_tai: self.plan.clock == punctual_tables::Clock::Tai,
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

    /// Stops dispatching and has everything put back. Returns the state with the last turns, and false if
    /// something could not be put back; standard error has what.
    pub fn finish(
        mut self,
        each: &mut dyn FnMut(Event),
    ) -> Result<(punctual_tables::Status, Statistics, bool), Error> {
        // What was found since the last look.
        self.mend();
        self.engine.stop();
        self.drain()?;
        self.events.drain(..).for_each(each);
        let status = self.status();
        let Session { guardian, statistics, priority, engine, .. } = self;
        drop(priority);
        // The kernel's dispatcher has gone back to its own cgroup then.
        drop(engine);
        Ok((status, statistics, guardian.finish()?))
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

    fn announce(&mut self, task: usize, tid: u32) {
        let name = self.name(task);
        self.events.push(Event::Record(Dispatch::Task(Box::new(Task { number: task as u32, name, tid }))));
    }

    fn warn(&mut self, message: String) {
        self.events.push(Event::Warning(message));
    }
}
