//! Which dispatcher a session has: the kernel's where it works, else the one in user space, and that too once
//! the kernel has ejected its own.

use super::kernel_threads;
use super::surroundings::lift_throttling;
use super::threads::Known;
use super::{Event, LEAD, Options, Session};
use crate::clock::Readable as _;
use crate::engine::{Choice, Engine, Ext, Scope};
use crate::error::Error;
use crate::guardian::Guardian;
use crate::user::Dispatcher;
use punctual_linux::system;
use punctual_model::Instant;
use punctual_tables::Plan;
use punctual_tables::rows::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

const NO_CGROUPS: &str = "threads cannot be frozen because cgroups of version 2 are not mounted: nothing \
                          else runs in the idle slots of the table's processors";

impl Session {
    /// Takes the table over from a dispatcher that the kernel has ejected: its threads are ordinary ones by
    /// now.
    pub(super) fn go_on_in_user_space(&mut self, why: &str) -> Result<(), Error> {
        self.warn(format!(
            "the kernel has ended dispatch by sched_ext ({why}): it goes on in user space, and other threads \
             may run in idle slots"
        ));
        let Engine::Ext(ext) = &mut self.engine else { return Ok(()) };
        let unread = ext.dispatcher.unread();
        self.unread = unread.iter().cloned().map(Some).collect();
        let undo = ext.dispatcher.partition.undo().clone();
        let ended = ext.end();
        let Session { plan, start, options, guardian, events, .. } = self;
        match ended {
            Ok(()) => guardian.withdraw(|noted| *noted == undo)?,
            // It is tried again at the end.
            Err(why) => events.push(Event::Warning(why)),
        }
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
}

/// Sets the kernel's dispatcher up if it is wanted and works here.
pub(super) fn prepare_ext(
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
        true => Ext::prepare(&scope, guardian, &mut |why| events.push(Event::Warning(why))),
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
pub(super) fn start_user(
    plan: &Arc<Plan>,
    start: Instant,
    turns: Vec<Cursor>,
    options: &Options,
    guardian: &mut Guardian,
    events: &mut Vec<Event>,
) -> Result<(Engine, Option<PathBuf>), Error> {
    lift_throttling(plan, guardian)?;
    kernel_threads::raise(plan, options.priorities, guardian, events)?;
    let dispatcher = Dispatcher::start(Arc::clone(plan), start, options.priorities, turns)?;
    let cgroups = system::cgroups();
    if cgroups.is_none() {
        events.push(Event::Warning(NO_CGROUPS.into()));
    }
    Ok((Engine::User(dispatcher), cgroups))
}
