//! What a session needs of the machine before it begins: processors, memory, real-time throttling, a socket
//! for its status.

use super::Event;
use crate::error::{Error, ErrorKind};
use crate::guardian::Guardian;
use crate::status::{Server, statuses};
use crate::undo::Undo;
use crate::user::LEAST_LOAN;
use punctual_linux::scheduling::{self, Processors};
use punctual_linux::system;
use punctual_model::{Duration, list_of_processors};
use punctual_tables::Plan;
use punctual_tables::Status;
use std::path::Path;

/// With more than this share of a processor's slots owned, real-time throttling would take some of them.
const UNTHROTTLED_PERCENT: u32 = 90;

/// Shorter turns are warned of.
const SHORT: Duration = Duration::from_us(50);

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Listens for `punctual tt status`; without, everything else works.
pub(super) fn listen(guardian: &mut Guardian, events: &mut Vec<Event>) -> Result<Option<Server>, Error> {
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
pub(super) fn check_processors(plan: &Plan) -> Result<(), Error> {
    let online = system::online().unwrap_or_default();
    let refused = |error| Error::other("asking whether another table is dispatched", error);
    let others = statuses().map_err(refused)?;
    // One that is stopped has its processors still.
    if let Some(process) = others.silent.first() {
        let message =
            format!("process {process}, which dispatches a table, does not say on which processors");
        return Err(Error::new(ErrorKind::Target, message));
    }
    for lane in &plan.lanes {
        let processor = lane.processor;
        if !online.contains(&processor) {
            let online = list_of_processors(online);
            let message = format!("the table uses processor {processor}, which is not online ({online})");
            return Err(Error::new(ErrorKind::Target, message));
        }
        let has = |status: &&Status| status.processors.iter().any(|lane| lane.cpu == processor);
        if let Some(other) = others.all.iter().find(has) {
            let message =
                format!("process {} already dispatches a table on processor {processor}", other.pid);
            return Err(Error::new(ErrorKind::Target, message));
        }
    }
    Ok(())
}

/// Turns that are hardly longer than what it takes to change threads.
pub(super) fn warn_of_short_turns(plan: &Plan, events: &mut Vec<Event>) {
    let turns = plan.lanes.iter().flat_map(|lane| &lane.turns).filter(|turn| turn.job.is_some());
    let shortest = turns.map(|turn| u64::from(turn.to - turn.from) * plan.slot.ns()).min();
    if let Some(ns) = shortest.filter(|ns| *ns < SHORT.ns()) {
        let message = format!(
            "the table has turns of {}: many may be missed, as to change threads takes some microseconds",
            Duration::from_ns(ns)
        );
        events.push(Event::Warning(message));
    }
}

/// Keeps the calling thread off the table's processors. False if there are no others.
pub(super) fn leave_processors(plan: &Plan, events: &mut Vec<Event>) -> bool {
    let Ok(own) = scheduling::processors(0) else { return false };
    let mut words = own.words();
    for lane in &plan.lanes {
        if let Some(word) = words.get_mut(lane.processor as usize / 64) {
            *word &= !(1 << (lane.processor % 64));
        }
    }
    let left = Processors::from_words(words);
    let is_apart = words.iter().any(|word| *word != 0) && scheduling::pin(0, &left).is_ok();
    if !is_apart {
        let message = "the table uses all processors: everything else runs in its idle slots only";
        events.push(Event::Warning(message.into()));
    }
    is_apart
}

/// A dispatcher must not wait for a page.
pub(super) fn lock_memory(events: &mut Vec<Event>) {
    // SAFETY: it takes no pointer.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
        let error = std::io::Error::last_os_error();
        events.push(Event::Warning(format!("cannot lock memory ({error}): slots may begin late")));
    }
}

/// Real-time throttling would take slots from processors that belong to the table most of the time.
pub(super) fn lift_throttling(plan: &Plan, guardian: &mut Guardian) -> Result<(), Error> {
    let longest = |lane: &punctual_tables::Lane| {
        let idle = lane.turns.iter().filter(|turn| turn.job.is_none());
        idle.map(|turn| u64::from(turn.to - turn.from) * plan.slot.ns()).max().unwrap_or(0)
    };
    let is_full = |(number, lane): (usize, &punctual_tables::Lane)| {
        plan.percent_owned(number) > UNTHROTTLED_PERCENT || longest(lane) < LEAST_LOAN.ns()
    };
    let Ok(before) = scheduling::rt_runtime() else { return Ok(()) };
    if before < 0 || !plan.lanes.iter().enumerate().any(is_full) {
        return Ok(());
    }
    let (path, before) = (Path::new(RT_RUNTIME).to_path_buf(), before.to_string());
    guardian.note(Undo::Setting { path, before, written: "-1".into() })?;
    scheduling::set_rt_runtime(-1)
        .map_err(|refused| Error::unsupported("lifting real-time throttling", refused))
}
