//! Which threads are held to a runtime, and what becomes of those that exceed it.

use super::{Registry, Spec};
use crate::enforce::{self, Event, Notice, Target};
use crate::log;
use punctual_linux::scheduling::{self, Processors, Refused, State};
use punctual_linux::thread;
use punctual_protocol::Enforced;
use punctual_schedule::SpecId;

/// What was logged about the threads of a user.
#[derive(Debug, Default)]
pub(super) struct ToldOf {
    /// Since when, on CLOCK_MONOTONIC in ns; for a second.
    since: u64,
    /// How many lines since, with those that were left out.
    lines: u64,
}

/// Why the last thread of a spec was detached by the daemon itself, and what it took until then. For people:
/// nothing is decided by it.
#[derive(Debug)]
pub(super) struct Detached {
    pub why: &'static str,
    pub enforced: Option<Enforced>,
}

impl Registry {
    /// Holds the thread of a spec to its runtime from now on, if it has both and the kernel does not.
    pub(super) fn enforce(&mut self, id: SpecId) {
        match self.specs.get(&id).and_then(target) {
            Some(target) => {
                if !target.is_held() {
                    self.promote(id);
                }
                self.enforcer.watch(id.0, target);
            }
            None => self.release_from_enforcement(id),
        }
    }

    /// Gives a thread that is attached the state that it is to have: as admitted, unless it has nothing left.
    pub(super) fn enact_attached(&mut self, id: SpecId, state: &State, is: &State) -> Result<(), Refused> {
        let number = self.specs[&id].thread.as_ref().map_or(0, |attached| attached.thread.number);
        let Some(target) = self.specs.get(&id).and_then(target) else { return state.enact(number, is) };
        self.enforcer.attach(id.0, target, |demoted| {
            let scheduling = demoted.unwrap_or(state.scheduling);
            State { scheduling, ..*state }.enact(number, is)
        })
    }

    /// Its thread is not held to a runtime any longer; if it was demoted, it gets its policy back.
    fn release_from_enforcement(&mut self, id: SpecId) {
        self.promote(id);
        self.enforcer.forget(id.0);
    }

    /// Gives a thread that is demoted its policy back, and forgets what it was held to.
    fn promote(&mut self, id: SpecId) {
        let is_demoted = |core: &enforce::Core| core.demoted(id.0).is_some() && !core.is_barred(id.0);
        if !is_demoted(&self.enforcer.shared().lock()) {
            return;
        }
        let Some(demoted) = self.enforcer.forget(id.0) else { return };
        let Some(attached) = self.specs.get(&id).and_then(|spec| spec.thread.as_ref()) else { return };
        let (number, applied) = (attached.thread.number, attached.applied.state(&attached.before));
        let (Ok(is), Some(applied)) = (State::read(number), applied) else { return };
        if is.scheduling.matches(&demoted) {
            if let Err(error) = applied.enact(number, &is) {
                log::error(&format!("{} is still demoted: {error}", described(&self.specs[&id])));
            }
        }
    }

    /// Prepares for a spec whose thread will be held to its runtime.
    pub(super) fn prepare_to_enforce(&mut self, id: SpecId) {
        if self.will_be_held(id) {
            self.enforcer.prepare();
        }
    }

    /// Waits until its thread can be held to its runtime.
    pub(super) fn await_enforcement(&mut self, id: SpecId) {
        if self.will_be_held(id) {
            self.enforcer.await_ready();
        }
    }

    /// After a crash: threads that an attached thread has started meanwhile still have its processor.
    pub(super) fn send_helpers_home(&self, number: u32, from: &Processors, home: &Processors) {
        for helper in thread::siblings(number) {
            let is_attached = self.threads.contains_key(&helper);
            if !is_attached && from != home && scheduling::processors(helper).is_ok_and(|now| now == *from) {
                // It may have ended meanwhile.
                let _ = scheduling::pin(helper, home);
            }
        }
    }

    fn will_be_held(&self, id: SpecId) -> bool {
        let Some(spec) = self.specs.get(&id) else { return false };
        let is_fixed = self.assigned(id).is_ok_and(|applied| applied.scheduling.is_fixed_priority());
        is_fixed && spec.admission.offer.accepted_runtime.is_some() && spec.parameters.period.is_some()
    }

    /// What the thread of a spec took, if it is held to a runtime, or was until it was detached for that.
    pub fn enforced(&self, spec: &Spec) -> Option<Enforced> {
        match &spec.thread {
            Some(_) => self.enforcer.shared().lock().enforced(spec.id.0),
            None => spec.detached.as_ref()?.enforced.clone(),
        }
    }

    /// Logs what happened to threads, and detaches those that are to be.
    pub fn heed_enforcer(&mut self) {
        for Notice { spec, thread, event } in self.enforcer.notices() {
            let id = SpecId(spec);
            let attached = self.specs.get(&id).and_then(|spec| spec.thread.as_ref());
            // It may have been detached meanwhile.
            if attached.is_some_and(|attached| attached.thread.number == thread) {
                match event {
                    Event::Started { children, since } => self.helpers.were_started(id, children, since),
                    other => self.heed(id, other),
                }
            }
        }
    }

    fn heed(&mut self, id: SpecId, event: Event) {
        if let (Event::Overrun | Event::Exhausted, Some(spec)) = (&event, self.specs.get(&id)) {
            let overruns = self.enforced(spec).map_or(0, |it| it.overruns);
            spec.warn(overruns);
        }
        let detached = match event {
            Event::Exhausted => Some("it took more than its runtime"),
            Event::Changed(_) => Some("someone else changed its scheduling"),
            _ => None,
        };
        let what = match event {
            Event::Overrun => "takes more than its runtime".to_owned(),
            Event::Exhausted => "takes more than its runtime: it is detached".to_owned(),
            Event::PutBack(what) => format!("was changed by someone else to {what}: it was put back"),
            Event::Changed(what) => format!("was changed by someone else to {what}: it is detached"),
            Event::Barred(seconds) => {
                format!("was changed too often: it is scheduled as before it was attached for {seconds} s")
            }
            Event::Failed(reason) => reason,
            // Those of a spec come together.
            Event::Started { .. } => return,
        };
        self.log_of_user(id, &what);
        if let Some(why) = detached {
            // As it is now: with the thread, that is forgotten.
            let enforced = self.enforced(&self.specs[&id]);
            let enforced =
                enforced.map(|it| Enforced { demoted: false, demoted_for: None, problem: None, ..it });
            self.let_go(id);
            if let Some(spec) = self.specs.get_mut(&id) {
                spec.detached = Some(Detached { why, enforced });
            }
        }
    }

    /// A spec has a thread again, or is another one now.
    pub(super) fn forget_detached(&mut self, id: SpecId) {
        if let Some(spec) = self.specs.get_mut(&id) {
            spec.detached = None;
        }
    }

    /// Logs a few lines about the threads of a user in a second, and how many more there were.
    fn log_of_user(&mut self, id: SpecId, what: &str) {
        const MOST: u64 = 5;
        let spec = &self.specs[&id];
        let now = enforce::now();
        let told = self.told_of_users.entry(spec.who.user).or_default();
        let mut left_out = String::new();
        if now.saturating_sub(told.since) >= 1_000_000_000 {
            if told.lines > MOST {
                left_out = format!(" ({} more lines about this user's threads before)", told.lines - MOST);
            }
            *told = ToldOf { since: now, lines: 0 };
        }
        told.lines += 1;
        if told.lines <= MOST {
            log::warning(&format!("{}: {what}{left_out}", described(spec)));
        }
    }

    /// Detaches a spec's thread. A spec that ends with it, ends.
    pub(super) fn let_go(&mut self, id: SpecId) {
        if self.specs.get(&id).is_some_and(|spec| spec.ends_with_thread) {
            return self.end_specs(&[id]);
        }
        self.restore_thread(id);
        self.restore_limit();
    }
}

fn described(spec: &Spec) -> String {
    let name =
        spec.name.as_ref().map_or(String::new(), |name| format!(" ({})", punctual_protocol::one_line(name)));
    let thread = spec.thread.as_ref().map_or(0, |attached| attached.thread.number);
    format!("thread {thread} of spec {}{name} of user {}", spec.id.0, spec.who.user)
}

/// What the thread of a spec is held to.
pub(super) fn target(spec: &Spec) -> Option<Target> {
    let attached = spec.thread.as_ref()?;
    let scheduling = &attached.applied.scheduling;
    // Under sched_ext, its dispatcher does that.
    let is_guest = scheduling.is_dispatched();
    if is_guest && scheduling.priority == 0 {
        return None;
    }
    let declared = spec.admission.offer.accepted_runtime.zip(spec.parameters.period);
    let held = declared.filter(|(_, period)| scheduling.is_fixed_priority() && !period.is_zero());
    let (runtime, period) = held.unwrap_or_default();
    Some(Target {
        thread: attached.thread.clone(),
        user: spec.who.user,
        is_guest,
        applied: attached.applied.state(&attached.before)?,
        home: attached.before.processors,
        demoted: enforce::demoted(&attached.before.scheduling),
        runtime: runtime.ns(),
        period: period.ns(),
        deadline: spec.parameters.deadline.unwrap_or(period).ns(),
        begins: spec.begins,
    })
}
