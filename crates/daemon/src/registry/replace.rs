//! Changes of mode: several specs released, changed and created as one. All are admitted together, or nothing
//! changes.
//!
//! First the books, where everything can be taken back exactly; then the kernel; at last what is released,
//! which cannot fail.

use super::ended::Moved;
use super::process::Caller;
use super::{Admission, Choice, Registry, Spec, cut};
use crate::error::Error;
use crate::log;
use crate::record::LONGEST_NAME;
use punctual_protocol::{ChangeSpec, CreateSpec, ReplaceSpecs};
use punctual_schedule::{Assignment, Parameters, SpecId};
use std::collections::BTreeSet;
use std::rc::Rc;

/// What a spec was, to restore it.
struct Old {
    id: SpecId,
    admission: Admission,
    parameters: Parameters,
    assignment: Option<Assignment>,
    /// When its next budget is due, if it has taken something of the last; else 0.
    due: u64,
}

impl Registry {
    /// Returns the changed specs, then the new ones.
    pub fn replace(&mut self, caller: &Caller, asked: ReplaceSpecs) -> Result<Vec<SpecId>, Error> {
        self.release_due();
        if !self.keeps_rooms() {
            return self.replace_now(caller, asked, 0);
        }
        match self.replace_now(caller, asked.clone(), 0) {
            Err(Error::NotAdmitted { .. } | Error::NotPermitted { .. } | Error::OutOfBounds { .. }) => {
                let begins = self.give_all_room();
                self.replace_now(caller, asked, begins)
            }
            done => done,
        }
    }

    /// New specs, and changed ones that get more, begin at `begins`, if that is later.
    fn replace_now(
        &mut self,
        caller: &Caller,
        asked: ReplaceSpecs,
        begins: u64,
    ) -> Result<Vec<SpecId>, Error> {
        let ReplaceSpecs { release, change, create } = asked;
        let process = self.live_process(caller)?;
        let released: Vec<SpecId> = release.into_iter().map(SpecId).collect();
        let changed: Vec<SpecId> = change.iter().map(|it| SpecId(it.spec)).collect();
        self.check_replaced(caller, &released, &changed)?;
        self.check_created(caller, &create, released.len())?;
        if change.iter().any(|it| it.interactive) || create.iter().any(|it| it.interactive) {
            return Err(Error::InvalidParameter { parameter: "interactive".into() });
        }
        let old: Vec<Old> = released.iter().chain(&changed).map(|&id| self.take_out(id)).collect();
        let mut made = Vec::new();
        let done = self
            .admit_changes(caller, change)
            .and_then(|()| self.admit_new(caller, process, create, &mut made))
            .and_then(|()| self.enact_all(&released, &old, &changed, &made));
        if let Err(error) = done {
            self.put_back(&old, &made);
            return Err(error);
        }
        for id in &released {
            // Ending takes them from the books.
            let spec = &self.specs[id];
            self.books.add(&spec.who, &spec.admission);
        }
        self.end_and_give(&released, true);
        changed.iter().for_each(|&id| self.forget_detached(id));
        self.delay_replaced(&old[released.len()..], &made, begins);
        Ok(changed.into_iter().chain(made).collect())
    }

    /// Specs that got what others had get their first budgets when the next ones of those are due.
    fn delay_replaced(&mut self, changed: &[Old], made: &[SpecId], begins: u64) {
        let moved = |it: &Old| self.moved(it.id, &it.admission, &it.parameters);
        let changed: Vec<(&Old, Moved)> = changed.iter().map(|it| (it, moved(it))).collect();
        let place = |registry: &Self, id: SpecId| {
            let spec = &registry.specs[&id];
            (spec.who.user, spec.admission.offer.processor)
        };
        for (it, _) in changed.iter().filter(|(_, moved)| moved.takes) {
            let (user, processor) = place(self, it.id);
            let leaves = |(other, moved): &&(&Old, Moved)| {
                other.id != it.id && moved.leaves && other.admission.offer.processor == processor
            };
            let left = changed.iter().filter(leaves).map(|(other, _)| other.due).max().unwrap_or(0);
            self.delay(it.id, begins.max(left).max(self.begins(user, processor, Some(it.id))));
        }
        for (it, _) in changed.iter().filter(|(_, moved)| moved.leaves) {
            let (user, _) = place(self, it.id);
            self.leave(user, it.admission.offer.processor, Some(it.id), it.due);
        }
        for &id in made {
            let (user, processor) = place(self, id);
            self.delay(id, begins.max(self.begins(user, processor, None)));
        }
    }

    /// Each spec once, the caller's, and of a plugin whose decisions can be taken back.
    fn check_replaced(&self, caller: &Caller, released: &[SpecId], changed: &[SpecId]) -> Result<(), Error> {
        let mut seen = BTreeSet::new();
        for &id in released.iter().chain(changed) {
            let spec = self.get(&caller.who, id)?;
            let loaded = &self.setup.plugins[spec.admission.plugin];
            if loaded.config.kind.is_external() {
                let reason = format!("{}: specs of this plugin are changed one by one", loaded.name);
                return Err(Error::NotAdmitted { reasons: vec![reason] });
            }
            if !seen.insert(id) {
                return Err(Error::InvalidParameter {
                    parameter: format!("spec {} stands there twice", id.0),
                });
            }
        }
        Ok(())
    }

    fn check_created(&self, caller: &Caller, create: &[CreateSpec], released: usize) -> Result<(), Error> {
        let too_long = |it: &CreateSpec| it.name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME);
        if create.iter().any(too_long) {
            return Err(Error::InvalidParameter { parameter: "name".into() });
        }
        if create.iter().any(|it| it.process.is_some()) {
            return Err(Error::InvalidParameter { parameter: "process".into() });
        }
        let (user, quotas) = (caller.who.user, &self.setup.quotas);
        let theirs = self.specs_of_user.get(&user).copied().unwrap_or_default();
        if !caller.who.is_root() && theirs + create.len() > quotas.specs_per_user + released {
            let limit = quotas.specs_per_user as u64;
            return Err(Error::TooMany { what: format!("specs of user {user}"), limit });
        }
        match self.specs.len() + create.len() > quotas.specs + released {
            true => Err(Error::TooMany { what: "specs".into(), limit: quotas.specs as u64 }),
            false => Ok(()),
        }
    }

    /// Takes a spec from its plugin and the books; its thread goes on as it is.
    fn take_out(&mut self, id: SpecId) -> Old {
        let spec = &self.specs[&id];
        let (admission, parameters) = (spec.admission, spec.parameters.clone());
        let (assignment, due) = (self.assignment(spec), self.due(spec).unwrap_or(0));
        self.books.remove(&spec.who, &admission);
        self.setup.plugins[admission.plugin].plugin.release(id);
        Old { id, admission, parameters, assignment, due }
    }

    fn admit_changes(&mut self, caller: &Caller, change: Vec<ChangeSpec>) -> Result<(), Error> {
        for ChangeSpec { spec, parameters, .. } in change {
            let whose = |error| of(error, &format!("spec {spec}"));
            let choice = self.choose_internal(caller, &parameters).map_err(whose)?;
            let (id, admission) = (SpecId(spec), choice.admission);
            self.put_in(id, &choice);
            let spec = self.specs.get_mut(&id).expect("it was looked up");
            (spec.admission, spec.parameters) = (admission, parameters);
            self.books.add(&spec.who, &admission);
            self.check_enactable(id)?;
        }
        Ok(())
    }

    fn admit_new(
        &mut self,
        caller: &Caller,
        process: u64,
        create: Vec<CreateSpec>,
        made: &mut Vec<SpecId>,
    ) -> Result<(), Error> {
        for (place, CreateSpec { parameters, name, .. }) in create.into_iter().enumerate() {
            let whose = |error| of(error, &format!("new spec no. {}", place + 1));
            let choice = self.choose_internal(caller, &parameters).map_err(whose)?;
            let slot = self.slot()?;
            let id = SpecId(self.journal.number());
            self.put_in(id, &choice);
            self.enter(Spec {
                id,
                name: name.map(Rc::from),
                who: caller.who.clone(),
                process,
                parameters,
                admission: choice.admission,
                thread: None,
                ends_with_thread: false,
                told: None,
                begins: 0,
                turn: None,
                detached: None,
                slot,
            });
            made.push(id);
            self.check_enactable(id)?;
        }
        Ok(())
    }

    /// A plugin whose decision can be taken back.
    fn choose_internal(&self, caller: &Caller, parameters: &Parameters) -> Result<Choice, Error> {
        let choice = self.choose(caller, parameters, None, None)?;
        let loaded = &self.setup.plugins[choice.admission.plugin];
        match loaded.config.kind.is_external() {
            true => Err(Error::NotAdmitted {
                reasons: vec![format!("{}: specs of this plugin are created one by one", loaded.name)],
            }),
            false => Ok(choice),
        }
    }

    fn put_in(&mut self, id: SpecId, choice: &Choice) {
        let plugin = &mut self.setup.plugins[choice.admission.plugin].plugin;
        plugin.admit(id, &choice.parameters, choice.admission.offer);
    }

    /// The journal, then the kernel: changed specs and whatever shifted in the plugins concerned.
    fn enact_all(
        &mut self,
        released: &[SpecId],
        old: &[Old],
        changed: &[SpecId],
        made: &[SpecId],
    ) -> Result<(), Error> {
        let mut plugins: BTreeSet<usize> = old.iter().map(|it| it.admission.plugin).collect();
        plugins.extend(changed.iter().chain(made).map(|id| self.specs[id].admission.plugin));
        changed.iter().chain(made).for_each(|&id| self.write_record(id));
        changed.iter().try_for_each(|&id| self.apply(id))?;
        for plugin in plugins {
            if self.setup.plugins[plugin].plugin.shifted() {
                // Those that are to be released have no assignment any more.
                let ids = self.attached_under(plugin).into_iter().filter(|id| !released.contains(id));
                ids.collect::<Vec<_>>().into_iter().try_for_each(|id| self.apply(id))?;
            }
        }
        Ok(())
    }

    /// Everything as it was: nothing came in between, so there is still room.
    fn put_back(&mut self, old: &[Old], made: &[SpecId]) {
        for &id in made {
            let Some(spec) = self.specs.remove(&id) else { continue };
            self.setup.plugins[spec.admission.plugin].plugin.release(id);
            self.books.remove(&spec.who, &spec.admission);
            self.remove_from_indexes(spec);
        }
        for it in old {
            let spec = self.specs.get_mut(&it.id).expect("it was looked up");
            let now = std::mem::replace(&mut spec.admission, it.admission);
            spec.parameters = it.parameters.clone();
            let who = spec.who.clone();
            if self.setup.plugins[now.plugin].plugin.assignment(it.id).is_some() {
                self.setup.plugins[now.plugin].plugin.release(it.id);
                self.books.remove(&who, &now);
            }
        }
        for it in old {
            let as_offered = cut(&it.parameters, it.admission.offer.accepted_runtime);
            let plugin = &mut self.setup.plugins[it.admission.plugin].plugin;
            match it.assignment {
                Some(was) => plugin.restore(it.id, &as_offered, it.admission.offer, was),
                None => plugin.admit(it.id, &as_offered, it.admission.offer),
            }
            let who = self.specs[&it.id].who.clone();
            self.books.add(&who, &it.admission);
            self.write_record(it.id);
        }
        let plugins: BTreeSet<usize> = old.iter().map(|it| it.admission.plugin).collect();
        for it in old {
            if let Err(Error::KernelRefused { reason }) = self.apply(it.id) {
                log::error(&format!("undoing the change of spec {}: {reason}", it.id.0));
            }
        }
        plugins.into_iter().for_each(|plugin| self.apply_shifted_or_log(plugin));
        self.restore_limit();
    }
}

/// An error with what it is about, where it has words for that.
fn of(error: Error, what: &str) -> Error {
    match error {
        Error::NotAdmitted { reasons } => {
            Error::NotAdmitted { reasons: reasons.iter().map(|why| format!("{what}: {why}")).collect() }
        }
        Error::NotPermitted { reason, rule } => {
            Error::NotPermitted { reason: format!("{what}: {reason}"), rule }
        }
        Error::OutOfBounds { parameter, value, bound } => {
            Error::OutOfBounds { parameter, value, bound: format!("{bound} ({what})") }
        }
        other => other,
    }
}
