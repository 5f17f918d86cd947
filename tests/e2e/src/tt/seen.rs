//! When the threads of a table ran, by their own logs, against the turns that the dispatcher recorded.
//!
//! Nothing depends on how late a slot begins: a thread may run from the planned beginning of its turn until
//! the dispatcher, on the same processor, noticed the turn's end.

use super::{SLOT, dispatch, table, threads, write};
use crate::run::{directory, punctual, run};
use crate::{Result, ensure, fail};
use punctual_model::table::{Clock, OnOverrun, Table};
use punctual_trace::ctf::Reader;
use punctual_trace::dispatch::{Dispatch, Turn};
use punctual_trace::{Record, dispatch as records};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What threads logged, and what the dispatcher recorded.
pub struct Seen {
    /// By thread, the stretches of time in which it ran.
    pub ran: BTreeMap<String, Vec<(u64, u64)>>,
    pub start: u64,
    pub turns: Vec<Turn>,
    pub tasks: Vec<records::Task>,
    pub stderr: String,
}

/// When a task had no thread.
struct Unbound {
    /// Until this: its first turn with one.
    begin: u64,
    /// And between these, if it had another one later.
    from: u64,
    until: u64,
}

/// Dispatches `slots` with these threads for a while.
pub fn dispatched<const EXT: bool>(kinds: &[&str], on_overrun: OnOverrun, options: &[&str]) -> Result<Seen> {
    let names: Vec<&str> = kinds.iter().filter_map(|kind| kind.split(':').next()).collect();
    carried_out::<EXT>(table(&names, on_overrun), kinds, options)
}

/// The same with any table.
pub fn carried_out<const EXT: bool>(table: Table, kinds: &[&str], options: &[&str]) -> Result<Seen> {
    let folder = directory()?;
    let is_tai = table.clock == Clock::Tai;
    let table = write(table, folder.path())?;
    let (log, recording) = (folder.path().join("log"), folder.path().join("recording"));
    let mut tt = dispatch::<EXT>(&table);
    tt.arg("--record").arg(&recording).args(options).arg("--").args(threads(kinds, &log));
    let ended = run(tt)?;
    ended.expect_code(0)?;
    let (mut start, mut turns, mut tasks) = (0, Vec::new(), Vec::new());
    let reader = Reader::open(&recording).or_else(|error| fail(error.to_string()))?;
    let read = reader.read(0..reader.stretches(), &mut |record| match record {
        Record::Dispatch(Dispatch::Table(table)) => start = table.start.ns(),
        Record::Dispatch(Dispatch::Turn(turn)) => turns.push(*turn),
        Record::Dispatch(Dispatch::Task(task)) => tasks.push((**task).clone()),
        _ => {}
    });
    ensure!(read.is_ok_and(|damage| damage.is_empty()) && reader.complete(), "the recording is damaged");
    ensure!(turns.len() > 20, "only {} turns were recorded: {}", turns.len(), ended.all());
    checked(&recording, &table)?;
    if is_tai {
        start = start.wrapping_sub(ahead_of_monotonic());
    }
    Ok(Seen { ran: stretches(&log)?, start, turns, tasks, stderr: ended.stderr })
}

/// What CLOCK_TAI shows more than CLOCK_MONOTONIC.
fn ahead_of_monotonic() -> u64 {
    use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};
    let ns = |time: Timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    // In this order: what passes in between makes slots begin earlier, not later.
    let monotonic = ns(clock_gettime(ClockId::Monotonic));
    let tai = clock_gettime_dynamic(DynamicClockId::Tai).map_or(monotonic, ns);
    tai.wrapping_sub(monotonic)
}

/// `tt check` must find no wrong owner and no gap; how late this machine makes slots is not its fault.
pub fn checked(recording: &Path, table: &str) -> Result {
    let mut check = punctual(["tt", "check", "--json"]);
    check.arg(recording).arg(table);
    let ended = run(check)?;
    let found = ended.json()?;
    for kind in ["wrong owner", "not recorded", "twice", "against the overrun policy"] {
        ensure!(found["violations"][kind].is_null(), "{kind}: {}", ended.all());
    }
    let is_clean = found["violations"].as_object().is_some_and(serde_json::Map::is_empty);
    ended.expect_code(if is_clean { 0 } else { 9 })
}

fn stretches(log: &Path) -> Result<BTreeMap<String, Vec<(u64, u64)>>> {
    let mut ran: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for line in fs::read_to_string(log)?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, from, to] = words[..] else { return fail(format!("the log has {line:?}")) };
        let (Ok(from), Ok(to)) = (from.parse(), to.parse()) else { return fail(format!("{line:?}")) };
        ran.entry(name.to_owned()).or_default().push((from, to));
    }
    Ok(ran)
}

impl Seen {
    /// Every stretch of running lies within a turn of the thread's own. Returns how many turns each used.
    pub fn check(&self) -> Result<BTreeMap<&str, usize>> {
        let end = self.turns.iter().map(|turn| turn.at.ns()).max().unwrap_or(0);
        for turn in &self.turns {
            let begun = turn.at.ns().saturating_sub(self.start) / SLOT + 1;
            ensure!(turn.slot + u64::from(turn.slots) <= begun, "slots that had not begun: {turn:?}");
        }
        let mut used = BTreeMap::new();
        for (number, task) in self.tasks.iter().enumerate().take_while(|(_, task)| task.tid == 0) {
            let own = self.turns.iter().filter(|turn| turn.task == Some(number as u32) && turn.tid != 0);
            let own = joined(own.collect(), self.start);
            let unbound = self.unbound(number as u32);
            let mut turns = BTreeSet::new();
            for &(from, to) in self.ran.get(&task.name).into_iter().flatten() {
                // Before and after the table it is free.
                if to < unbound.begin || to > end || (unbound.from <= from && to <= unbound.until) {
                    continue;
                }
                let from = from.max(unbound.begin);
                match own.iter().position(|turn| turn.0 <= from && to <= turn.1) {
                    Some(turn) => _ = turns.insert(turn),
                    None => {
                        let us = |at: u64| at.saturating_sub(self.start) / 1_000;
                        let near: Vec<String> = self
                            .turns_of(number as u32)
                            .map(|turn| (us(self.start + turn.slot * SLOT), us(turn.at.ns()), turn.tid))
                            .filter(|turn| turn.1 + 50_000 > us(from) && turn.0 < us(to) + 50_000)
                            .map(|(begin, end, tid)| format!("{begin} to {end} by {tid}"))
                            .collect();
                        return fail(format!(
                            "{} ran from {} to {} µs after the start, in no turn of its own; it was without \
                             a thread from {} to {}; its turns: {near:?}; {}",
                            task.name,
                            us(from),
                            us(to),
                            us(unbound.from),
                            us(unbound.until),
                            self.stderr
                        ));
                    }
                }
            }
            used.insert(task.name.as_str(), turns.len());
        }
        Ok(used)
    }

    /// When a task had no thread: its threads are free then.
    fn unbound(&self, task: u32) -> Unbound {
        let turns: Vec<&Turn> = self.turns_of(task).filter(|turn| turn.tid != 0).collect();
        let begin = |turn: &Turn| self.start + turn.slot * SLOT;
        let (Some(first), Some(last)) = (turns.first(), turns.last()) else {
            return Unbound { begin: u64::MAX, from: 0, until: 0 };
        };
        let mut unbound = Unbound { begin: begin(first), from: 0, until: 0 };
        if first.tid != last.tid {
            let end = turns.iter().rfind(|turn| turn.tid == first.tid);
            let again = turns.iter().find(|turn| turn.tid == last.tid);
            unbound.from = end.map_or(0, |turn| turn.at.ns());
            unbound.until = again.map_or(0, |turn| begin(turn));
        }
        unbound
    }

    pub fn turns_of(&self, task: u32) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(move |turn| turn.task == Some(task))
    }
}

/// From when until when turns are a thread's: those that follow one another, on whatever processors, are one.
fn joined(mut turns: Vec<&Turn>, start: u64) -> Vec<(u64, u64)> {
    turns.sort_by_key(|turn| turn.slot);
    let mut joined: Vec<(u64, u64, u64)> = Vec::new();
    for turn in turns {
        let (end, at) = (turn.slot + u64::from(turn.slots), turn.at.ns());
        match joined.last_mut().filter(|last| last.2 == turn.slot) {
            Some(last) => (last.1, last.2) = (last.1.max(at), end),
            None => joined.push((start + turn.slot * SLOT, at, end)),
        }
    }
    joined.into_iter().map(|(from, to, _)| (from, to)).collect()
}
