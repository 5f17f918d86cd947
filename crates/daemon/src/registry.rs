//! Specs: their owners, their plugins, their ends. `attachment.rs` has their threads, `clients.rs` the
//! processes that they live with.

mod attached;
mod attachment;
mod clamps;
mod clients;
mod ended;
mod enforcement;
mod helpers;
mod hint;
mod limit;
mod polkit;
mod process;
mod realtimekit;
mod recovery;
mod reload;
mod replace;

pub use attached::AttachedThread;
pub use polkit::Wish;
pub use process::{Caller, Process};

use crate::access::{Access, Conditional, Denied, Share, Who};
use crate::books::{Books, View};
use crate::config::{self, Config, PluginConfig, Quotas};
use crate::demand::Demand;
use crate::enforce::{self, Enforcer};
use crate::error::Error;
use crate::journal::Journal;
use crate::log;
use crate::poll::Poll;
use crate::record::{Applied, Attached, LONGEST_NAME, Record};
use crate::text::Problem;
use crate::told::Told;
use ended::{EndedSpecs, Place, Turn};
use enforcement::Detached;
use limit::Limit;
use punctual_linux::scheduling::{self, Processors};
use punctual_model::Duration;
use punctual_protocol::Says;
use punctual_schedule::{Answer, Assignment, Limits, Offer, Parameters, Plugin, Refusal, SpecId};
use rustc_hash::FxHashMap as HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

/// A plugin and its configuration.
#[derive(Debug)]
pub struct Loaded {
    /// The plugin.
    pub plugin: Box<dyn Plugin>,
    /// Its name.
    pub name: Rc<str>,
    /// Compared at a reload: a plugin with the same configuration continues.
    pub config: PluginConfig,
}

/// What an administrator decides; a reload replaces all of it at once.
#[derive(Debug)]
pub struct Setup {
    /// Where it was read from.
    pub path: PathBuf,
    /// In the order in which they are asked.
    pub plugins: Vec<Loaded>,
    /// The rules.
    pub access: Box<dyn Access>,
    /// What each user may have of the daemon.
    pub quotas: Quotas,
    /// Whether `sched_rt_runtime_us` may be set to −1.
    pub may_lift_limit: bool,
    /// How threads are held to their runtime.
    pub enforcement: enforce::Policy,
}

impl Setup {
    /// Loads the plugins and rules of a configuration; also returns warnings.
    pub fn load(config: &Config, limits: Limits) -> Result<(Self, Vec<Problem>), config::Error> {
        let plugins = config.plugins(limits)?;
        let (rules, problems) = config.load_rules()?;
        let plugins = plugins.into_iter().zip(&config.plugins).map(|(plugin, config)| Loaded {
            name: plugin.name().into(),
            plugin,
            config: config.clone(),
        });
        let access = Box::new(rules);
        Ok((
            Self {
                path: config.path.clone(),
                plugins: plugins.collect(),
                access,
                quotas: config.quotas,
                may_lift_limit: config.lift_realtime_limit,
                enforcement: config.enforcement,
            },
            problems,
        ))
    }
}

/// Something declared and admitted.
#[derive(Debug)]
pub struct Spec {
    /// Its number.
    pub id: SpecId,
    /// The name that its client gave it.
    pub name: Option<Rc<str>>,
    /// Its owner.
    pub who: Rc<Who>,
    /// The process that it ends with, as a key of `processes`.
    pub process: u64,
    /// What was declared.
    pub parameters: Parameters,
    /// The offer that was taken.
    pub admission: Admission,
    /// Its thread.
    pub thread: Option<AttachedThread>,
    /// Whether it ends with that.
    ends_with_thread: bool,
    /// What its program says of its loop, since it has asked for the memory.
    told: Option<Told>,
    /// When its first budget begins, on CLOCK_MONOTONIC in ns, if that is later.
    begins: u64,
    /// The last thread under SCHED_DEADLINE that has left it.
    turn: Option<Turn>,
    /// What the enforcer made of its last thread, until it gets another, or is changed.
    detached: Option<Detached>,
    slot: usize,
}

impl Spec {
    /// How much later its first budget begins.
    pub fn begins_in(&self) -> Option<Duration> {
        let ns = self.begins.saturating_sub(crate::enforce::now());
        (self.begins > 0 && ns > 0).then_some(Duration::from_ns(ns))
    }

    /// Why it has no thread any more, if the daemon itself has detached that.
    pub fn detached(&self) -> Option<&'static str> {
        self.detached.as_ref().map(|it| it.why)
    }

    /// What its program says of its periodic loop. For people: nothing is decided by it.
    pub fn says(&self) -> Option<Says> {
        self.told.as_ref().map(Told::read)
    }

    /// Warns its program of overruns, if it has memory for that.
    fn warn(&self, overruns: u64) {
        if let Some(told) = &self.told {
            told.warn(overruns);
        }
    }
}

/// How a spec was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Which plugin, by its place in the order.
    pub plugin: usize,
    /// Its offer.
    pub offer: Offer,
    /// Whether a recommended parameter was missing.
    pub partial: bool,
    /// What it takes of a processor.
    pub share: Share,
    /// What it may ask of its processor.
    pub demand: Demand,
    /// Whether Polkit's word was needed.
    pub authorised: bool,
}

/// An offer that can be taken, with the parameters that the plugin sees: rules may have cut the desired
/// runtime.
struct Choice {
    admission: Admission,
    parameters: Parameters,
    /// The line that left it to Polkit, if its word was needed.
    rule: Option<String>,
}

/// Why no plugin admits a spec.
#[derive(Default)]
struct Refusals {
    /// In words, by plugin.
    reasons: Vec<String>,
    /// Why access is denied, and by which rule.
    denied: Option<(String, Option<String>)>,
    /// The first bound that would be exceeded.
    bound: Option<punctual_schedule::Bound>,
    /// How many plugins considered it.
    considered: usize,
}

impl Refusals {
    fn denied(&mut self, plugin: &str, reason: String, rule: Option<String>) {
        self.reasons.push(format!("{plugin}: not permitted: {reason}"));
        // A denial by a rule says more than "no rule matches".
        if self.denied.as_ref().is_none_or(|(_, other)| other.is_none() && rule.is_some()) {
            self.denied = Some((reason, rule));
        }
    }

    fn refused(&mut self, plugin: &str, refusal: Refusal) {
        self.considered += 1;
        self.reasons.push(format!("{plugin}: {}", reason(&refusal)));
        if let Refusal::Bound(bound) = refusal {
            self.bound.get_or_insert(bound);
        }
    }

    /// What a client that asked for this plugin, or for any, is told.
    fn error(self, asked: Option<&str>, hint: Option<String>) -> Error {
        let Refusals { reasons, denied, bound, considered } = self;
        match (denied, bound) {
            (Some((reason, rule)), _) if considered == 0 => {
                // Only the caller knows which plugin they meant.
                let reason = if reasons.len() == 1 {
                    reason
                } else {
                    reasons.join("; ").replace(": not permitted: ", ": ")
                };
                Error::NotPermitted { reason, rule }
            }
            (None, Some(bound)) if considered == 1 => bound.into(),
            _ => match asked {
                Some(plugin) if reasons.is_empty() => Error::NoSuchPlugin { plugin: plugin.to_owned(), hint },
                _ => Error::NotAdmitted { reasons: reasons.into_iter().chain(hint).collect() },
            },
        }
    }
}

/// All specs, processes and plugins.
#[derive(Debug)]
pub struct Registry {
    setup: Setup,
    limits: Limits,
    journal: Journal,
    poll: Poll,
    specs: HashMap<SpecId, Spec>,
    processes: HashMap<u64, Process>,
    /// The process that has a PID now.
    by_number: HashMap<u32, u64>,
    next_process: u64,
    /// The spec of each thread.
    threads: HashMap<u32, SpecId>,
    specs_of_user: HashMap<u32, usize>,
    books: Books,
    limit: Limit,
    ended: EndedSpecs,
    enforcer: Enforcer,
    helpers: helpers::Helpers,
    told_of_users: HashMap<u32, enforcement::ToldOf>,
    /// Why the last reload failed, if it did.
    pub last_reload_error: Option<String>,
}

impl Registry {
    /// Without any specs.
    pub fn new(setup: Setup, limits: Limits, journal: Journal, poll: Poll) -> std::io::Result<Self> {
        let enforcer = Enforcer::new(setup.enforcement, &poll)?;
        Ok(Self {
            setup,
            limits,
            journal,
            poll,
            specs: HashMap::default(),
            processes: HashMap::default(),
            by_number: HashMap::default(),
            next_process: 1,
            threads: HashMap::default(),
            specs_of_user: HashMap::default(),
            books: Books::default(),
            limit: Limit::default(),
            ended: EndedSpecs::default(),
            enforcer,
            helpers: helpers::Helpers::default(),
            told_of_users: HashMap::default(),
            last_reload_error: None,
        })
    }

    /// In the order in which they are asked.
    pub fn plugins(&self) -> &[Loaded] {
        &self.setup.plugins
    }

    /// What each user may have of the daemon.
    pub fn quotas(&self) -> &Quotas {
        &self.setup.quotas
    }

    /// How many specs there are, and how many have a thread.
    pub fn counts(&self) -> (usize, usize) {
        (self.specs.len(), self.threads.len())
    }

    /// How a spec is scheduled now.
    pub fn assignment(&self, spec: &Spec) -> Option<Assignment> {
        self.setup.plugins[spec.admission.plugin].plugin.assignment(spec.id)
    }

    /// The specs that a caller may see, in the order of their numbers.
    pub fn list(&self, who: &Who) -> Vec<&Spec> {
        let observed: Vec<bool> =
            self.setup.plugins.iter().map(|it| self.setup.access.may_observe(who, &it.name)).collect();
        let may_see = |spec: &&Spec| {
            who.is_root() || spec.who.user == who.user || observed.get(spec.admission.plugin) == Some(&true)
        };
        let mut specs: Vec<&Spec> = self.specs.values().filter(may_see).collect();
        specs.sort_unstable_by_key(|spec| spec.id);
        specs
    }

    /// How many specs a caller may see. Takes no time, unless they may see some of others.
    pub fn count(&self, who: &Who) -> usize {
        let observes = |loaded: &Loaded| self.setup.access.may_observe(who, &loaded.name);
        match who.is_root() {
            true => self.specs.len(),
            false if self.setup.plugins.iter().any(observes) => self.list(who).len(),
            false => self.specs_of_user.get(&who.user).copied().unwrap_or_default(),
        }
    }

    /// Whether a caller may say what the thread of a spec takes.
    fn may_report(&self, who: &Who, id: SpecId) -> Result<(), Error> {
        let own = self.get(who, id).map(drop);
        let plugin = self.specs.get(&id).and_then(|spec| self.setup.plugins.get(spec.admission.plugin));
        match plugin.is_some_and(|plugin| self.setup.access.may_observe(who, &plugin.name)) {
            true => Ok(()),
            false => own,
        }
    }

    /// Memory for the program of a spec to say something of its periodic loop.
    pub fn share_loop(&mut self, caller: &Caller, id: SpecId) -> Result<OwnedFd, Error> {
        self.live_process(caller)?;
        self.get(&caller.who, id)?;
        let spec = self.specs.get_mut(&id).expect("it was looked up");
        let shared = match &mut spec.told {
            Some(told) => told.share(),
            none => Told::new().and_then(|told| none.insert(told).share()),
        };
        shared.map_err(|error| Error::KernelRefused { reason: format!("memory to share: {error}") })
    }

    /// A spec that the caller may see and change.
    pub fn get(&self, who: &Who, id: SpecId) -> Result<&Spec, Error> {
        let spec = self.specs.get(&id).ok_or(Error::NoSuchSpec { spec: id.0 })?;
        if who.is_root() || spec.who.user == who.user {
            Ok(spec)
        } else {
            Err(Error::NotOwner { what: format!("spec {} belongs to another user", id.0) })
        }
    }

    /// Admits a spec.
    pub fn create(
        &mut self,
        caller: &Caller,
        parameters: Parameters,
        name: Option<String>,
    ) -> Result<&Spec, Error> {
        if name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME) {
            return Err(Error::InvalidParameter { parameter: "name".into() });
        }
        let process = self.live_process(caller)?;
        let user = caller.who.user;
        let theirs = self.specs_of_user.get(&user).copied().unwrap_or_default();
        if !caller.who.is_root() && theirs >= self.setup.quotas.specs_per_user {
            return Err(Error::TooMany {
                what: format!("specs of user {user}"),
                limit: self.setup.quotas.specs_per_user as u64,
            });
        }
        if self.specs.len() >= self.setup.quotas.specs {
            return Err(Error::TooMany { what: "specs".into(), limit: self.setup.quotas.specs as u64 });
        }
        let Place { choice, begins } = self.place(caller, &parameters, None, None)?;
        let slot = self.slot()?;
        let id = SpecId(self.journal.number());
        let spec = Spec {
            id,
            name: name.map(Rc::from),
            who: caller.who.clone(),
            process,
            parameters,
            admission: choice.admission,
            thread: None,
            ends_with_thread: false,
            told: None,
            begins,
            turn: None,
            detached: None,
            slot,
        };
        self.setup.plugins[choice.admission.plugin].plugin.admit(
            id,
            &choice.parameters,
            choice.admission.offer,
        );
        self.journal.write(slot, &self.record(&spec));
        self.enter(spec);
        if let Err(error) =
            self.check_enactable(id).and_then(|()| self.apply_shifted(choice.admission.plugin))
        {
            self.end_specs(&[id]);
            return Err(error);
        }
        self.prepare_to_enforce(id);
        Ok(&self.specs[&id])
    }

    /// Why a spec has nothing any more of what it was admitted to, in words.
    pub fn lost(&self, spec: &Spec) -> Option<String> {
        self.setup.plugins[spec.admission.plugin].plugin.lost(spec.id)
    }

    /// Admits a spec that belongs to another process; to the caller's, if none.
    pub fn create_of(
        &mut self,
        caller: &Caller,
        process: Option<u32>,
        parameters: Parameters,
        name: Option<String>,
    ) -> Result<SpecId, Error> {
        let Some(process) = process else {
            return self.create(caller, parameters, name).map(|spec| spec.id);
        };
        let number = self.translate(self.live_process(caller)?, process)?;
        let owner = self.process_of(number, caller.who.user)?;
        let caller = Caller { process: Some(owner), ..caller.clone() };
        let created = self.create(&caller, parameters, name).map(|spec| spec.id);
        self.drop_if_idle(owner);
        created
    }

    /// Replaces all parameters, or none after an error.
    pub fn change(&mut self, caller: &Caller, id: SpecId, parameters: Parameters) -> Result<&Spec, Error> {
        self.live_process(caller)?;
        let mut changed = self.change_within(caller, id, parameters.clone(), None);
        if let Err(Error::KernelRefused { .. }) = changed {
            // Perhaps its thread may not use the processor that was chosen.
            let thread = self.specs[&id].thread.as_ref().map(|attached| attached.thread.number);
            if let Some(cpuset) = thread.and_then(|thread| scheduling::cpuset(thread).ok()) {
                changed = self.change_within(caller, id, parameters, Some(&cpuset));
            }
        }
        changed?;
        self.forget_detached(id);
        Ok(&self.specs[&id])
    }

    /// Replaces all parameters, on a processor of the cpuset if one is given.
    fn change_within(
        &mut self,
        caller: &Caller,
        id: SpecId,
        parameters: Parameters,
        cpuset: Option<&Processors>,
    ) -> Result<(), Error> {
        let spec = self.get(&caller.who, id)?;
        let (old, old_parameters, was) = (spec.admission, spec.parameters.clone(), self.assignment(spec));
        let Place { choice, begins } = self.place(caller, &parameters, Some(id), cpuset)?;
        let due = self.due(&self.specs[&id]).unwrap_or(0);
        let new = choice.admission;
        self.readmit(id, parameters, &choice.parameters, new, None);
        let enacted = self
            .check_enactable(id)
            .and_then(|()| self.apply(id))
            .and_then(|()| self.apply_shifted(old.plugin))
            .and_then(|()| self.apply_shifted(new.plugin));
        if let Err(error) = enacted {
            // Nothing came in between, so there is still room for the old offer.
            let as_offered = cut(&old_parameters, old.offer.accepted_runtime);
            self.readmit(id, old_parameters, &as_offered, old, was);
            for done in [self.apply(id), self.apply_shifted(new.plugin), self.apply_shifted(old.plugin)] {
                if let Err(Error::KernelRefused { reason }) = done {
                    log::error(&format!("undoing the change of spec {}: {reason}", id.0));
                }
            }
            self.restore_limit();
            return Err(error);
        }
        let moved = self.moved(id, &old, &old_parameters);
        if moved.takes {
            self.delay(id, begins);
        }
        if moved.leaves {
            self.leave(self.specs[&id].who.user, old.offer.processor, Some(id), due);
        }
        self.restore_limit();
        Ok(())
    }

    /// Moves a spec to a processor of its thread's cpuset, before the thread is attached.
    fn move_within(&mut self, caller: &Caller, id: SpecId, cpuset: &Processors) -> Result<(), Error> {
        let spec = self.get(&caller.who, id)?;
        let mut parameters = spec.parameters.clone();
        // It stays with its plugin.
        let loaded = &self.setup.plugins[spec.admission.plugin];
        parameters.plugin = Some(loaded.name.to_string());
        let declared = spec.parameters.clone();
        // What Polkit has authorised, it has on any processor.
        let authorised = spec.admission.authorised.then(|| loaded.name.clone());
        let caller = Caller { authorised, ..caller.clone() };
        self.change_within(&caller, id, parameters, Some(cpuset))?;
        self.specs.get_mut(&id).expect("it was changed").parameters = declared;
        self.write_record(id);
        Ok(())
    }

    /// Replaces a spec's admission everywhere. `was` restores an earlier assignment.
    fn readmit(
        &mut self,
        id: SpecId,
        parameters: Parameters,
        as_offered: &Parameters,
        new: Admission,
        was: Option<Assignment>,
    ) {
        let spec = self.specs.get_mut(&id).expect("it was looked up");
        let old = std::mem::replace(&mut spec.admission, new);
        spec.parameters = parameters;
        let thread = spec.thread.as_ref().map(|attached| attached.thread.number);
        if thread.is_some() {
            self.setup.plugins[old.plugin].plugin.detached(id);
        }
        self.setup.plugins[old.plugin].plugin.release(id);
        match was {
            Some(was) => self.setup.plugins[new.plugin].plugin.restore(id, as_offered, new.offer, was),
            None => self.setup.plugins[new.plugin].plugin.admit(id, as_offered, new.offer),
        }
        if let Some(thread) = thread {
            if let Err(why) = self.setup.plugins[new.plugin].plugin.attached(id, thread) {
                log::error(&format!(
                    "thread {thread} of spec {} is not scheduled as it should be: {why}",
                    id.0
                ));
            }
        }
        self.books.remove(&spec.who, &old);
        self.books.add(&spec.who, &new);
        self.write_record(id);
    }

    /// Detaches a spec's thread and forgets it.
    pub fn release(&mut self, caller: &Caller, id: SpecId) -> Result<(), Error> {
        self.live_process(caller)?;
        self.get(&caller.who, id)?;
        self.end_specs(&[id]);
        Ok(())
    }

    /// Ends specs: restores their threads, and applies what shifted for the specs that stay.
    fn end_specs(&mut self, ids: &[SpecId]) {
        self.end_and_give(ids, false);
    }

    /// The same; others may have been given their room.
    fn end_and_give(&mut self, ids: &[SpecId], is_given: bool) {
        let mut plugins = Vec::new();
        for &id in ids {
            self.restore_thread(id);
            let Some(spec) = self.specs.remove(&id) else { continue };
            if !plugins.contains(&spec.admission.plugin) {
                plugins.push(spec.admission.plugin);
            }
            self.end_admission(&spec, is_given);
            self.remove_from_indexes(spec);
        }
        for plugin in plugins {
            self.apply_shifted_or_log(plugin);
        }
        self.restore_limit();
    }

    /// A free slot of the journal.
    fn slot(&mut self) -> Result<usize, Error> {
        self.journal.take().map_err(|error| {
            let reason = format!("{error}; free some space there, or configure another state.directory");
            log::error(&reason);
            Error::KernelRefused { reason }
        })
    }

    /// Adds an admitted spec everywhere except to its plugin and the journal.
    fn enter(&mut self, spec: Spec) {
        self.books.add(&spec.who, &spec.admission);
        *self.specs_of_user.entry(spec.who.user).or_default() += 1;
        if let Some(process) = self.processes.get_mut(&spec.process) {
            process.specs.insert(spec.id);
        }
        self.specs.insert(spec.id, spec);
    }

    /// Removes an ended spec from everything except its plugin and the books.
    fn remove_from_indexes(&mut self, spec: Spec) {
        if let Some(count) = self.specs_of_user.get_mut(&spec.who.user) {
            *count -= 1;
            if *count == 0 {
                self.specs_of_user.remove(&spec.who.user);
            }
        }
        self.journal.clear(spec.slot);
        if let Some(process) = self.processes.get_mut(&spec.process) {
            process.specs.remove(&spec.id);
        }
        self.drop_if_idle(spec.process);
    }

    /// Asks the plugins in their order: the first that says OK, else the first that says PARTIAL (ReTiF,
    /// Section 3.3).
    fn choose(
        &self,
        caller: &Caller,
        parameters: &Parameters,
        replacing: Option<&Spec>,
        cpuset: Option<&Processors>,
    ) -> Result<Choice, Error> {
        let authorised = |plugin: &str| caller.authorised.as_deref() == Some(plugin);
        self.choose_as(&caller.who, &authorised, parameters, replacing, cpuset)
    }

    /// The same, as if Polkit had authorised the request for some plugins.
    fn choose_as(
        &self,
        who: &Who,
        authorised: &dyn Fn(&str) -> bool,
        parameters: &Parameters,
        replacing: Option<&Spec>,
        cpuset: Option<&Processors>,
    ) -> Result<Choice, Error> {
        parameters.check(&self.limits)?;
        let named = parameters.plugin.as_deref();
        // People type `tt` for `TT`; where both exist, they are told apart.
        let is_exact = self.setup.plugins.iter().any(|loaded| named == Some(loaded.plugin.name()));
        let asked = |loaded: &Loaded| {
            let name = loaded.plugin.name();
            named.is_none_or(|named| named == name || (!is_exact && named.eq_ignore_ascii_case(name)))
        };
        let (mut partial, mut refusals) = (None, Refusals::default());
        for (at, loaded) in self.setup.plugins.iter().enumerate().filter(|(_, loaded)| asked(loaded)) {
            let name = loaded.plugin.name();
            let permitted = self.permitted(who, name, authorised(name), parameters, replacing);
            let (seen, rule) = match permitted {
                Ok(permitted) => permitted,
                Err(Denied { reason, rule }) => {
                    refusals.denied(name, reason, rule);
                    continue;
                }
            };
            if parameters.blocking.is_some_and(|it| it > Duration::ZERO) && loaded.config.kind.is_external() {
                refusals.reasons.push(format!("{name}: does not count blocking"));
                continue;
            }
            if loaded.config.kind.is_edf() && !self.limit_can_be_lifted() {
                refusals.reasons.push(format!("{name}: {}", attached::NOT_LIFTED));
                continue;
            }
            let admission = |offer: Offer, partial| Admission {
                plugin: at,
                offer,
                partial,
                share: Share::new(offer.accepted_runtime, parameters),
                demand: Demand::new(&offer, parameters),
                authorised: rule.is_some(),
            };
            let replaced = replacing.filter(|spec| spec.admission.plugin == at).map(|spec| spec.id);
            let answer = match cpuset {
                Some(cpuset) => {
                    loaded.plugin.consider_within(&seen, replaced, &|processor| cpuset.has(processor))
                }
                None => loaded.plugin.consider(&seen, replaced),
            };
            match answer {
                Answer::Ok(offer) => {
                    let admission = admission(offer, false);
                    return Ok(Choice { admission, parameters: seen, rule });
                }
                Answer::Partial(offer) => {
                    let admission = admission(offer, true);
                    partial.get_or_insert(Choice { admission, parameters: seen, rule });
                    refusals.considered += 1;
                }
                Answer::No(refusal) => refusals.refused(name, refusal),
            }
        }
        partial.ok_or_else(|| refusals.error(named, self.setup.hint(parameters)))
    }

    /// Whether the rules permit a spec for a plugin, with which parameters, and which line left it to
    /// Polkit, if its word was needed.
    fn permitted(
        &self,
        who: &Who,
        plugin: &str,
        authorised: bool,
        parameters: &Parameters,
        replacing: Option<&Spec>,
    ) -> Result<(Parameters, Option<String>), Denied> {
        if who.is_root() {
            return Ok((parameters.clone(), None));
        }
        let number = |name: &str| self.setup.plugins.iter().position(|loaded| loaded.plugin.name() == name);
        let without = replacing.map(|spec| (&*spec.who, spec.admission.plugin, spec.admission.share));
        let usage = View { books: &self.books, plugin: &number, without };
        let access = &self.setup.access;
        let (grant, rule) = match access.check(who, plugin, parameters, &usage) {
            Ok(grant) => (grant, None),
            Err(denied) if !authorised => return Err(denied),
            Err(denied) => match access.check_authorised(who, plugin, parameters, &usage) {
                Some(Ok(Conditional { grant, rule })) => (grant, Some(rule)),
                Some(Err(denied)) => return Err(denied),
                None => return Err(denied),
            },
        };
        let seen = match grant.greatest_runtime {
            Some(greatest) => cut(parameters, Some(greatest)),
            None => parameters.clone(),
        };
        Ok((seen, rule))
    }

    fn record(&self, spec: &Spec) -> Record {
        let process = self.processes.get(&spec.process);
        // During a reload a spec may briefly have no plugin.
        let loaded = self.setup.plugins.get(spec.admission.plugin);
        let assigned = spec
            .thread
            .as_ref()
            .map(|attached| attached.applied)
            .or_else(|| loaded?.plugin.assignment(spec.id).map(Applied::new));
        Record {
            spec: spec.id.0,
            user: spec.who.user,
            group: spec.who.group,
            process: process.map_or(0, |process| process.number),
            process_start: process.map_or(0, |process| process.start),
            parameters: spec.parameters.clone(),
            plugin: loaded.map(|loaded| loaded.name.clone()).unwrap_or_default(),
            name: spec.name.clone(),
            processor: spec.admission.offer.processor,
            accepted_runtime: spec.admission.offer.accepted_runtime,
            partial: spec.admission.partial,
            ignored: spec.admission.offer.ignored,
            authorised: spec.admission.authorised,
            ends_with_thread: spec.ends_with_thread,
            assigned: assigned.unwrap_or_default(),
            thread: spec.thread.as_ref().map(|attached| Attached {
                number: attached.thread.number,
                named: attached.named,
                identity: attached.thread.identity,
                before: attached.before,
                applied: attached.applied,
                previous: attached.previous,
                clamped: attached.clamped,
            }),
        }
    }

    /// Writes a spec's record to its slot.
    fn write_record(&mut self, id: SpecId) {
        if let Some(spec) = self.specs.get(&id) {
            let record = self.record(spec);
            self.journal.write(spec.slot, &record);
        }
    }
}

/// Parameters with a desired runtime of at most `greatest`.
fn cut(parameters: &Parameters, greatest: Option<Duration>) -> Parameters {
    let desired =
        parameters.desired_runtime.map(|desired| greatest.map_or(desired, |greatest| desired.min(greatest)));
    // Never below the runtime, so that the plugin's refusal is about the runtime.
    let desired = desired.map(|desired| parameters.runtime.map_or(desired, |runtime| desired.max(runtime)));
    Parameters { desired_runtime: desired, ..parameters.clone() }
}

fn reason(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Lacks(parameter) => {
            format!("needs a declared {}", parameter.strip_suffix("_ns").unwrap_or(parameter))
        }
        Refusal::Bound(it) => format!("{} is {}, it must be {}", it.parameter, it.value, it.bound),
        Refusal::Unschedulable(why) => why.clone(),
    }
}
