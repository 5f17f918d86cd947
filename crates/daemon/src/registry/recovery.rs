//! Recovery after a crash: specs of processes that still live are admitted exactly as before, everything else
//! is undone.

use super::{Admission, AttachedThread, Registry, Spec, clamps, cut, reason};
use crate::access::{Share, Who};
use crate::demand::Demand;
use crate::enforce;
use crate::journal::Left;
use crate::log;
use crate::poll::Token;
use crate::record::{Attached, Record};
use punctual_linux::scheduling::{self, State};
use punctual_linux::thread::{self, Owner, Thread};
use punctual_schedule::{ANYWHERE, Answer, Assignment, Offer, Parameters, SpecId};
use std::mem::discriminant;
use std::rc::Rc;
use std::sync::Arc;

impl Registry {
    /// Takes over what an earlier daemon left.
    pub fn recover(&mut self, left: Left) {
        left.warnings.iter().for_each(|warning| log::warning(warning));
        let found = left.records.len();
        let (mut kept, mut pinned) = (Vec::new(), Vec::new());
        let mut records = left.records;
        // Specs that keep their places come first, so that no other takes their room.
        records.sort_unstable_by_key(|(_, record)| {
            let there =
                self.place_of(&record.plugin).is_some_and(|at| self.has_processor(at, record.processor));
            (!there, record.spec)
        });
        for (slot, record) in records {
            let (id, attached) = (SpecId(record.spec), record.thread);
            if let Some(attached) = &attached {
                self.limit.thread_left(&attached.applied);
                if pin(attached).is_some() {
                    let state = attached.applied.state(&attached.before);
                    pinned.extend(state.map(|state| (state.processors, *attached)));
                }
            }
            match self.readmit_record(slot, record) {
                Ok(()) => kept.push((id, attached)),
                Err(why) => {
                    if let Some(why) = why {
                        log::warning(&format!("spec {} of an earlier punctuald is undone: {why}", id.0));
                    }
                    if let Some(attached) = attached {
                        undo(id, &attached);
                    }
                    self.journal.clear(slot);
                }
            }
        }
        // Assignments are known once all specs are there.
        for loaded in &mut self.setup.plugins {
            loaded.plugin.shifted();
        }
        for &(id, attached) in &kept {
            let taken_over = attached.map_or(Ok(()), |attached| self.take_over(id, &attached));
            if let Err(why) = taken_over {
                log::warning(&format!("spec {} has lost its thread: {why}", id.0));
            }
            if self.specs[&id].ends_with_thread && self.specs[&id].thread.is_none() {
                self.end_specs(&[id]);
            }
            self.write_record(id);
        }
        for (from, attached) in pinned {
            self.send_helpers_home(attached.number, &from, &attached.before.processors);
        }
        self.restore_limit();
        if found > 0 {
            log::info(&format!(
                "{} of {found} specs of an earlier punctuald are kept; the others are undone",
                kept.len()
            ));
        }
    }

    /// Admits a spec again: as it was or, if the configuration changed, as it can be now. An error without a
    /// reason means that its process has ended.
    fn readmit_record(&mut self, slot: usize, record: Record) -> Result<(), Option<String>> {
        let (pidfd, start) = thread::pin_process(record.process).map_err(|_| None)?;
        if start != record.process_start {
            return Err(None);
        }
        let plugin =
            self.place_of(&record.plugin).ok_or_else(|| format!("plugin {} is gone", record.plugin))?;
        let groups = thread::groups(record.process).map_err(|_| None)?;
        let process = self
            .process(record.process, pidfd, record.user)
            .map_err(|error| format!("process {}: {error}", record.process))?;
        let id = SpecId(record.spec);
        let offer = Offer {
            processor: record.processor,
            accepted_runtime: record.accepted_runtime,
            ignored: record.ignored,
        };
        let was = record.thread.map_or(record.assigned, |attached| attached.applied);
        let was = was.assignment().filter(|_| self.has_processor(plugin, record.processor));
        let admission = self.admit_again(plugin, id, &record.parameters, offer, record.partial, was);
        let admission = admission.inspect_err(|_| self.drop_if_idle(process))?;
        let admission = Admission { authorised: record.authorised, ..admission };
        let who = Rc::new(Who { user: record.user, group: record.group, groups });
        self.enter(Spec {
            id,
            name: record.name,
            who,
            process,
            parameters: record.parameters,
            admission,
            thread: None,
            ends_with_thread: record.ends_with_thread,
            told: None,
            begins: 0,
            turn: None,
            detached: None,
            slot,
        });
        Ok(())
    }

    /// The place of a plugin in the order.
    fn place_of(&self, name: &str) -> Option<usize> {
        self.setup.plugins.iter().position(|loaded| loaded.plugin.name() == name)
    }

    /// Whether a plugin may use a processor.
    pub(super) fn has_processor(&self, plugin: usize, processor: u32) -> bool {
        processor == ANYWHERE || self.setup.plugins[plugin].config.processors.contains(&processor)
    }

    /// Admits a spec as it was offered and assigned before; without an assignment, or where the plugin gives
    /// another kind of one, as the plugin offers now.
    pub(super) fn admit_again(
        &mut self,
        plugin: usize,
        id: SpecId,
        declared: &Parameters,
        offer: Offer,
        partial: bool,
        was: Option<Assignment>,
    ) -> Result<Admission, String> {
        let plugins = &mut self.setup.plugins[plugin].plugin;
        let as_offered = cut(declared, offer.accepted_runtime);
        let admission = |offer: Offer, partial| Admission {
            plugin,
            offer,
            partial,
            share: Share::new(offer.accepted_runtime, declared),
            demand: Demand::new(&offer, declared),
            authorised: false,
        };
        if let Some(was) = was {
            plugins.restore(id, &as_offered, offer, was);
            let is = plugins.assignment(id);
            if is.is_some_and(|is| discriminant(&is.policy) == discriminant(&was.policy)) {
                return Ok(admission(offer, partial));
            }
            plugins.release(id);
        }
        let (offer, partial) = match plugins.consider(&as_offered, None) {
            Answer::Ok(offer) => (offer, false),
            Answer::Partial(offer) => (offer, true),
            Answer::No(refusal) => return Err(reason(&refusal)),
        };
        plugins.admit(id, &as_offered, offer);
        Ok(admission(offer, partial))
    }

    /// Schedules an attached thread again.
    fn take_over(&mut self, id: SpecId, attached: &Attached) -> Result<(), String> {
        let (thread, is) = pin(attached).ok_or_else(|| format!("thread {} has ended", attached.number))?;
        let now = State::read(attached.number).map_err(|error| error.to_string())?;
        // If the daemon was killed before it called the kernel, the thread is as it was before.
        let mut known = applied_states(attached);
        known.push(attached.before);
        // Or, if it was demoted, almost.
        known.push(State { scheduling: enforce::demoted(&attached.before.scheduling), ..attached.before });
        let is_dispatched = attached.applied.scheduling.is_dispatched();
        if !is_dispatched && !known.iter().any(|known| now.scheduling.matches(&known.scheduling)) {
            return Err(format!("someone else changed thread {} to {}", attached.number, now.scheduling));
        }
        let applied = self.assigned(id).map_err(|error| format!("{error:?}"))?;
        if let Some(pidfd) = thread.pidfd() {
            self.poll.add(pidfd, Token::Thread(id.0)).map_err(|error| error.to_string())?;
        }
        // Until the assignment is applied, the thread may have either of two.
        let previous = [Some(attached.applied), attached.previous].into_iter().flatten().find(|before| {
            let as_before =
                before.state(&attached.before).is_some_and(|state| now.scheduling.matches(&state.scheduling));
            *before != applied && as_before
        });
        // Where that fails, the thread has ended.
        let clamped = attached.clamped.zip(scheduling::clamps(attached.number).ok());
        let clamped = clamped.map(|(clamped, now)| clamped.settled(now));
        self.set_thread(
            id,
            AttachedThread {
                thread: Arc::new(thread),
                named: attached.named,
                process: is.process,
                before: attached.before,
                applied,
                previous,
                clamped,
                used: None,
            },
        );
        self.await_enforcement(id);
        let lifted = if applied.needs_lifted_limit() { self.lift_limit() } else { Ok(()) };
        let enacted = lifted.map_err(|error| format!("{error:?}")).and_then(|()| {
            let state = applied
                .state(&attached.before)
                .ok_or_else(|| format!("there is no processor {}", applied.processor))?;
            state.enact(attached.number, &now).map_err(|error| error.to_string())
        });
        let enacted = enacted.and_then(|()| self.clamp(id).map_err(|error| format!("{error:?}")));
        let enacted = enacted.and_then(|()| self.notify_plugin(id, attached.number));
        match enacted {
            Ok(()) => self.enforce(id),
            Err(_) => self.restore_thread(id),
        }
        enacted
    }
}

/// The attached thread, if it lives.
fn pin(attached: &Attached) -> Option<(Thread, Owner)> {
    Thread::pin(attached.number)
        .ok()
        .filter(|(thread, _)| thread.identity == attached.identity && thread.lives())
}

/// What an earlier daemon may have made of it; it may have been demoted.
fn applied_states(attached: &Attached) -> Vec<State> {
    let applied = [Some(attached.applied), attached.previous].into_iter().flatten();
    let mut states: Vec<State> = applied.filter_map(|applied| applied.state(&attached.before)).collect();
    let demoted = enforce::demoted(&attached.before.scheduling);
    let fixed = states.first().filter(|state| state.scheduling.is_fixed_priority()).copied();
    states.extend(fixed.map(|state| State { scheduling: demoted, ..state }));
    states
}

/// Restores a thread whose spec is not kept.
fn undo(id: SpecId, attached: &Attached) {
    let Some((thread, _)) = pin(attached) else { return };
    match attached.before.restore(thread.number, &applied_states(attached)) {
        Err(error) if !error.is_gone() => {
            log::warning(&format!("thread {} of spec {} cannot be restored: {error}", thread.number, id.0))
        }
        _ => {}
    }
    clamps::undo(thread.number, attached.clamped.as_ref());
}
