//! Specs that have ended, but stay admitted until their next budget would have been due: else whoever ends a
//! spec and creates another would get a second budget in the same period.
//!
//! No spec is refused for that. One that does not fit beside them is admitted in their place, and gets its
//! first budget only then: docs/design/enforcement.md.

use super::process::Caller;
use super::{Admission, Choice, Registry, Spec, cut};
use crate::access::Who;
use crate::demand::Demand;
use crate::enforce;
use crate::error::Error;
use crate::record::Applied;
use punctual_linux::scheduling::Processors;
use punctual_linux::thread::Thread;
use punctual_model::Duration;
use punctual_schedule::{ANYWHERE, Assignment, Parameters, SpecId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

/// A spec that has ended after it took something of its budget.
#[derive(Debug)]
struct Ended {
    id: SpecId,
    who: Rc<Who>,
    admission: Admission,
    as_offered: Parameters,
    /// When its next budget would have been due, on CLOCK_MONOTONIC in ns.
    due: u64,
}

/// Those that are still admitted, by when their next budgets would have been due.
#[derive(Debug, Default)]
struct StillAdmitted {
    by_due: BTreeMap<(u64, SpecId), Ended>,
    of_users: FxHashMap<u32, usize>,
}

impl StillAdmitted {
    fn insert(&mut self, ended: Ended) {
        *self.of_users.entry(ended.who.user).or_default() += 1;
        self.by_due.insert((ended.due, ended.id), ended);
    }

    /// The first one that would be due by now.
    fn take_due(&mut self, now: u64) -> Option<Ended> {
        let first = self.by_due.first_entry().filter(|it| it.key().0 <= now)?;
        let ended = first.remove();
        if let Entry::Occupied(mut theirs) = self.of_users.entry(ended.who.user) {
            *theirs.get_mut() -= 1;
            if *theirs.get() == 0 {
                theirs.remove();
            }
        }
        Some(ended)
    }

    fn of(&self, user: u32) -> usize {
        self.of_users.get(&user).copied().unwrap_or(0)
    }
}

/// Ended specs, and processor time that others may have before it is due.
#[derive(Debug, Default)]
pub(super) struct EndedSpecs {
    still_admitted: StillAdmitted,
    /// Where others have got their room, or a changed spec has left it: when the next specs of that user on
    /// that processor begin, but for that spec itself.
    given: FxHashMap<Room, u64>,
    /// None of those times is earlier.
    given_until: u64,
}

/// What a user had of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Room {
    user: u32,
    processor: u32,
    /// The spec that had it; none, if that has ended.
    spec: Option<SpecId>,
}

/// An offer, and when its first budget begins: 0 if that is at once.
pub(super) struct Place {
    pub choice: Choice,
    pub begins: u64,
}

/// What a change did to the place of a spec, or to its part of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// It has left some of what it had.
    pub leaves: bool,
    /// It takes what it did not have.
    pub takes: bool,
}

/// Who had the runtime of the current period under SCHED_DEADLINE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    thread: u64,
    number: u32,
    until: u64,
}

impl Turn {
    /// Of a thread that leaves SCHED_DEADLINE now, if it was on one processor. On several, the kernel keeps
    /// its bandwidth itself.
    pub fn of(thread: &Thread, applied: &Applied) -> Option<Turn> {
        let until = enforce::now().saturating_add(applied.scheduling.period_ns);
        let turn = Turn { thread: thread.identity, number: thread.number, until };
        applied.needs_lifted_limit().then_some(turn)
    }
}

impl Registry {
    /// Releases ended specs whose next budgets would be due by now.
    pub fn release_due(&mut self) {
        if !self.keeps_rooms() && self.ended.given.is_empty() {
            return;
        }
        let now = enforce::now();
        if self.ended.given_until <= now {
            self.ended.given.retain(|_, due| *due > now);
            self.ended.given_until = self.ended.given.values().copied().min().unwrap_or(0);
        }
        let mut released = Vec::new();
        while let Some(it) = self.ended.still_admitted.take_due(now) {
            self.clear_room(&it);
            released.push(it.admission.plugin);
        }
        released.sort_unstable();
        released.dedup();
        released.into_iter().for_each(|plugin| self.apply_shifted_or_log(plugin));
    }

    /// Whether there are ended specs whose room stays taken.
    pub(super) fn keeps_rooms(&self) -> bool {
        !self.ended.still_admitted.by_due.is_empty()
    }

    /// Takes an ended spec from its plugin and the books.
    fn clear_room(&mut self, ended: &Ended) {
        self.setup.plugins[ended.admission.plugin].plugin.release(ended.id);
        self.books.remove(&ended.who, &ended.admission);
    }

    /// Until when others may not have what a spec has, if it has taken something of its last budget: until
    /// that is paid at the rate that it was promised, and nothing that it has delayed is still under way; at
    /// the latest until its next budget is due.
    pub(super) fn due(&self, spec: &Spec) -> Option<u64> {
        let now = enforce::now();
        let held = self.enforcer.shared().lock().due(spec.id.0);
        let held = held.filter(|(_, due)| *due > now).map(|(paid, due)| {
            let drained = self.drained_within(spec).map_or(due, |within| now.saturating_add(within));
            paid.max(drained.min(due))
        });
        let attached = spec.thread.as_ref();
        let turn = attached.and_then(|it| Turn::of(&it.thread, &it.applied)).or(spec.turn);
        held.into_iter().chain(turn.map(|turn| turn.until)).max().filter(|due| *due > now)
    }

    /// Within how many ns from now the others on a spec's processor have done, at some instant, all that was
    /// asked of them. `None` if that is not known.
    fn drained_within(&self, spec: &Spec) -> Option<u64> {
        let Admission { plugin, offer, ref demand, .. } = spec.admission;
        let config = &self.setup.plugins[plugin].config;
        if offer.processor == ANYWHERE || !config.platforms.is_empty() {
            return None;
        }
        let mut all = self.books.demand(offer.processor);
        all.remove(demand);
        for reserve in config.reserves.iter().filter(|it| it.processor == offer.processor) {
            all.add(&Demand::reserve(reserve.runtime, reserve.period));
        }
        all.drained_within()
    }

    /// Takes an ended spec from its plugin and the books: at once if others get its room, else when its next
    /// budget would be due.
    pub(super) fn end_admission(&mut self, spec: &Spec, is_given: bool) {
        let ended = Ended {
            id: spec.id,
            who: spec.who.clone(),
            admission: spec.admission,
            as_offered: cut(&spec.parameters, spec.admission.offer.accepted_runtime),
            due: self.due(spec).unwrap_or(0),
        };
        self.enforcer.shared().lock().forget_owed(spec.id.0);
        let left: Vec<Room> =
            self.ended.given.keys().filter(|room| room.spec == Some(spec.id)).copied().collect();
        for room in left {
            let due = self.ended.given.remove(&room).unwrap_or(0);
            self.leave(room.user, room.processor, None, due);
        }
        let (quotas, user) = (&self.setup.quotas, spec.who.user);
        let theirs = self.ended.still_admitted.of(user);
        // What others have written decides on its own, and is told at once.
        let stays = !is_given
            && !self.setup.plugins[spec.admission.plugin].config.kind.is_external()
            && (spec.who.is_root() || theirs < quotas.specs_per_user)
            && self.ended.still_admitted.by_due.len() < quotas.specs;
        if ended.due > 0 && stays {
            return self.ended.still_admitted.insert(ended);
        }
        self.clear_room(&ended);
        self.leave(user, ended.admission.offer.processor, None, ended.due);
    }

    /// Others may have what a spec of a user had on a processor, although its next budget is due only then.
    pub(super) fn leave(&mut self, user: u32, processor: u32, spec: Option<SpecId>, due: u64) {
        if due > 0 {
            let given = self.ended.given.entry(Room { user, processor, spec }).or_default();
            *given = due.max(*given);
            let is_alone = self.ended.given.len() == 1;
            self.ended.given_until = if is_alone { due } else { due.min(self.ended.given_until) };
        }
    }

    /// When a new spec of a user on a processor begins, or this one if it gets more there; 0 if at once.
    pub(super) fn begins(&self, user: u32, processor: u32, spec: Option<SpecId>) -> u64 {
        let others = |room: &Room| {
            (room.user, room.processor) == (user, processor) && (spec.is_none() || room.spec != spec)
        };
        let given = self.ended.given.iter().filter(|(room, _)| others(room));
        given.map(|(_, due)| *due).max().unwrap_or(0)
    }

    /// A place beside ended specs that are still admitted, or else instead of some of them.
    pub(super) fn place(
        &mut self,
        caller: &Caller,
        parameters: &Parameters,
        replacing: Option<SpecId>,
        cpuset: Option<&Processors>,
    ) -> Result<Place, Error> {
        self.release_due();
        let replaced = replacing.and_then(|id| self.specs.get(&id));
        let (choice, mut begins) = match self.choose(caller, parameters, replaced, cpuset) {
            Err(_) if self.keeps_rooms() => self.choose_room(caller, parameters, replacing, cpuset)?,
            chosen => (chosen?, 0),
        };
        begins = begins.max(self.begins(caller.who.user, choice.admission.offer.processor, replacing));
        Ok(Place { choice, begins })
    }

    /// A place as if there were no ended specs, and when the next budgets of those are due that it displaces.
    fn choose_room(
        &mut self,
        caller: &Caller,
        parameters: &Parameters,
        replacing: Option<SpecId>,
        cpuset: Option<&Processors>,
    ) -> Result<(Choice, u64), Error> {
        let ended = self.clear_rooms();
        let replaced = replacing.and_then(|id| self.specs.get(&id));
        let chosen = self.choose(caller, parameters, replaced, cpuset);
        let mut begins = 0;
        for (was, it) in ended {
            let is_same = |admission: &Admission| {
                let (one, other) = (admission, &it.admission);
                (one.plugin, one.offer.processor) == (other.plugin, other.offer.processor)
            };
            // Rules bound sums of a user's specs wherever they are.
            let is_theirs = it.who.user == caller.who.user;
            match chosen.as_ref().is_ok_and(|choice| is_theirs || is_same(&choice.admission)) {
                true => {
                    begins = it.due.max(begins);
                    self.leave(it.who.user, it.admission.offer.processor, None, it.due);
                }
                false => self.restore_room(was, it),
            }
        }
        chosen.map(|choice| (choice, begins))
    }

    /// A place if Polkit authorised the request: beside ended specs, or else instead of them. All stays as it
    /// is.
    pub(super) fn place_if_authorised(
        &mut self,
        who: &Who,
        parameters: &Parameters,
        replacing: Option<SpecId>,
    ) -> Option<Choice> {
        let choose = |registry: &Self| {
            let replaced = replacing.and_then(|id| registry.specs.get(&id));
            registry.choose_as(who, &|_| true, parameters, replaced, None).ok()
        };
        let beside = choose(self);
        if beside.is_some() || !self.keeps_rooms() {
            return beside;
        }
        let ended = self.clear_rooms();
        let instead = choose(self);
        ended.into_iter().for_each(|(was, it)| self.restore_room(was, it));
        instead
    }

    /// Takes all ended specs from their plugins and the books, with what they were assigned.
    fn clear_rooms(&mut self) -> Vec<(Option<Assignment>, Ended)> {
        let ended = std::mem::take(&mut self.ended.still_admitted);
        let of = |it: &Ended| self.setup.plugins[it.admission.plugin].plugin.assignment(it.id);
        let ended: Vec<(Option<Assignment>, Ended)> =
            ended.by_due.into_values().map(|it| (of(&it), it)).collect();
        ended.iter().for_each(|(_, it)| self.clear_room(it));
        ended
    }

    fn restore_room(&mut self, was: Option<Assignment>, ended: Ended) {
        let plugin = &mut self.setup.plugins[ended.admission.plugin].plugin;
        match was {
            Some(was) => plugin.restore(ended.id, &ended.as_offered, ended.admission.offer, was),
            None => plugin.admit(ended.id, &ended.as_offered, ended.admission.offer),
        }
        self.books.add(&ended.who, &ended.admission);
        self.ended.still_admitted.insert(ended);
    }

    /// Gives away the room of all ended specs. Returns when the last of their next budgets is due.
    pub(super) fn give_all_room(&mut self) -> u64 {
        let mut latest = 0;
        for it in std::mem::take(&mut self.ended.still_admitted).by_due.into_values() {
            self.clear_room(&it);
            self.leave(it.who.user, it.admission.offer.processor, None, it.due);
            latest = it.due.max(latest);
        }
        latest
    }

    /// What a change did to the place of a spec.
    pub(super) fn moved(&self, id: SpecId, old: &Admission, parameters: &Parameters) -> Moved {
        let spec = &self.specs[&id];
        let key = |admission: &Admission, it: &Parameters| {
            (admission.plugin, admission.offer.processor, it.period, it.deadline, it.priority)
        };
        let stays = key(old, parameters) == key(&spec.admission, &spec.parameters);
        // Without a runtime, it may take all.
        let runtime = |admission: &Admission| admission.offer.accepted_runtime.map_or(u64::MAX, Duration::ns);
        let (before, after) = (runtime(old), runtime(&spec.admission));
        Moved { leaves: !stays || after < before, takes: !stays || after > before }
    }

    /// A spec gets its first budget at `begins`, if that is later.
    pub(super) fn delay(&mut self, id: SpecId, begins: u64) {
        let Some(spec) = self.specs.get_mut(&id).filter(|spec| spec.begins < begins) else { return };
        spec.begins = begins;
        self.enforce(id);
    }

    /// Whether a thread may have SCHED_DEADLINE on one processor now: the kernel gives each a new runtime at
    /// once.
    pub(super) fn check_turn(&self, id: SpecId, thread: &Thread, applied: &Applied) -> Result<(), Error> {
        if !applied.needs_lifted_limit() {
            return Ok(());
        }
        let (spec, now) = (&self.specs[&id], enforce::now());
        let turn = spec.turn.filter(|turn| turn.thread != thread.identity && turn.until > now);
        let (until, reason) = match turn {
            Some(turn) => (turn.until, format!("thread {} has used the runtime of this period", turn.number)),
            None if spec.begins > now => {
                (spec.begins, "a spec that has ended or changed has used the runtime of this period".into())
            }
            None => return Ok(()),
        };
        Err(Error::NotYet { reason, wait: Duration::from_ns(until - now) })
    }
}
