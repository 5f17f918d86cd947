//! Replaces the configuration. Specs that can stay do; the others are released.

use super::{Registry, Setup};
use crate::books::Books;
use crate::config::Kind;
use crate::log;
use punctual_schedule::SpecId;

impl Registry {
    /// Replaces the setup. Plugins with unchanged settings continue; specs of changed plugins keep their
    /// places or are admitted anew, else they end, as do those of removed plugins. Rules and quotas apply to
    /// later requests.
    pub fn reload(&mut self, setup: Setup) {
        self.give_all_room();
        let mut old = std::mem::replace(&mut self.setup, setup);
        self.enforcer.set_policy(self.setup.enforcement);
        let mut ids: Vec<SpecId> = self.specs.keys().copied().collect();
        ids.sort_unstable();
        // The new place of each old plugin, and whether it is unchanged.
        let mut now = Vec::new();
        for loaded in &mut old.plugins {
            let place = self.setup.plugins.iter().position(|new| new.plugin.name() == loaded.plugin.name());
            // What tables have to give does not depend on the configuration.
            let is_table = loaded.config.kind == Kind::Table;
            let same = place.filter(|&at| {
                let new = &self.setup.plugins[at].config;
                *new == loaded.config || (is_table && new.kind == Kind::Table)
            });
            if let Some(at) = same {
                std::mem::swap(&mut self.setup.plugins[at].plugin, &mut loaded.plugin);
            }
            now.push((place, same.is_some()));
        }
        // Specs that keep their places come first, so that no other takes their room.
        let keeps_place = |id: &SpecId| {
            let was = self.specs[id].admission;
            let (place, same) = now[was.plugin];
            same || place.is_some_and(|at| {
                let kind = &old.plugins[was.plugin].config.kind;
                self.setup.plugins[at].config.kind == *kind && self.has_processor(at, was.offer.processor)
            })
        };
        let (keeping, moving): (Vec<SpecId>, Vec<SpecId>) = ids.iter().copied().partition(keeps_place);
        let order = keeping.into_iter().map(|id| (id, true)).chain(moving.into_iter().map(|id| (id, false)));
        for (id, keeps_place) in order.collect::<Vec<_>>() {
            let spec = &self.specs[&id];
            let was = spec.admission;
            let stays = match now[was.plugin] {
                (Some(plugin), true) => Ok(super::Admission { plugin, ..was }),
                (Some(at), false) => {
                    let parameters = spec.parameters.clone();
                    let assigned = match &spec.thread {
                        Some(attached) => attached.applied.assignment(),
                        None => old.plugins[was.plugin].plugin.assignment(id),
                    };
                    let thread = spec.thread.as_ref().map(|attached| attached.thread.number);
                    let assigned = assigned.filter(|_| keeps_place);
                    let admitted = self.admit_again(at, id, &parameters, was.offer, was.partial, assigned);
                    let authorised = was.authorised;
                    admitted.map(|it| super::Admission { authorised, ..it }).inspect(|_| {
                        if let Some(thread) = thread {
                            if let Err(why) = self.setup.plugins[at].plugin.attached(id, thread) {
                                log::error(&format!("thread {thread} of spec {}: {why}", id.0));
                            }
                        }
                    })
                }
                (None, _) => Err("its plugin was removed".to_owned()),
            };
            match stays {
                Ok(admission) => self.specs.get_mut(&id).expect("it was listed").admission = admission,
                Err(why) => {
                    log::warning(&format!("spec {} ends with the reload: {why}", id.0));
                    self.end_without_plugin(id);
                }
            }
        }
        self.apply_all(&ids);
        self.restore_limit();
    }

    /// Books, records and applies the specs that remain.
    fn apply_all(&mut self, ids: &[SpecId]) {
        self.books = Books::default();
        for spec in self.specs.values() {
            self.books.add(&spec.who, &spec.admission);
        }
        for loaded in &mut self.setup.plugins {
            loaded.plugin.shifted();
        }
        let remaining: Vec<SpecId> = ids.iter().copied().filter(|id| self.specs.contains_key(id)).collect();
        for id in remaining {
            self.write_record(id);
            if let Err(error) = self.apply(id) {
                log::error(&format!("spec {} is not scheduled as it should be: {error}", id.0));
            }
        }
    }

    /// Restores the thread of a spec whose plugin is gone, and forgets the spec. The caller rebuilds the
    /// books.
    fn end_without_plugin(&mut self, id: SpecId) {
        self.specs.get_mut(&id).expect("it was listed").admission.plugin = usize::MAX;
        self.restore_thread(id);
        let Some(spec) = self.specs.remove(&id) else { return };
        self.remove_from_indexes(spec);
    }
}
