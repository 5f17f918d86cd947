//! Specs: whose they are, who takes them, how they end. What follows for threads is in `attachment.rs`, for
//! processes in `clients.rs`.

mod attachment;
mod clients;
mod recovery;
mod reload;

pub use attachment::Held;
pub use clients::{Caller, Process};

use crate::access::{Access, Share, Who};
use crate::books::{Books, View};
use crate::config::{self, Config, PluginConfig, Quotas};
use crate::error::Error;
use crate::journal::Journal;
use crate::log;
use crate::poll::Poll;
use crate::record::{Attached, LONGEST_NAME, Record, Told};
use crate::text::Problem;
use punctual_model::Duration;
use punctual_schedule::{Answer, Assignment, Limits, Offer, Parameters, Plugin, Refusal, SpecId};
use rustc_hash::FxHashMap as HashMap;
use std::rc::Rc;

/// A plugin, and how it was configured.
#[derive(Debug)]
pub struct Loaded {
    /// Decides.
    pub plugin: Box<dyn Plugin>,
    /// As it is called.
    pub name: Rc<str>,
    /// Shows at a reload whether it is still the same.
    pub config: PluginConfig,
}

/// What an administrator decides; a reload exchanges all of it at once.
#[derive(Debug)]
pub struct Setup {
    /// In the order in which they are asked.
    pub plugins: Vec<Loaded>,
    /// The rules.
    pub access: Box<dyn Access>,
    /// See there.
    pub quotas: Quotas,
    /// Whether `sched_rt_runtime_us` may be set to −1.
    pub may_lift_limit: bool,
}

impl Setup {
    /// What a configuration and its rules come to, with all plugins made; and what is to be told of it.
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
                plugins: plugins.collect(),
                access,
                quotas: config.quotas,
                may_lift_limit: config.lift_realtime_limit,
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
    /// As the client calls it.
    pub name: Option<Rc<str>>,
    /// Whose it is.
    pub who: Rc<Who>,
    /// The process that it ends with, by its number here.
    pub process: u64,
    /// What was declared.
    pub parameters: Parameters,
    /// What was offered for it, and taken.
    pub admission: Admission,
    /// Its thread.
    pub thread: Option<Held>,
    slot: usize,
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
}

/// An offer that can be taken, with the parameters as the plugin is to see them: rules may have cut the
/// desired runtime.
struct Choice {
    admission: Admission,
    parameters: Parameters,
}

/// All there is.
#[derive(Debug)]
pub struct Registry {
    setup: Setup,
    limits: Limits,
    journal: Journal,
    poll: Poll,
    specs: HashMap<SpecId, Spec>,
    processes: HashMap<u64, Process>,
    /// The process that has a number of the kernel's now.
    by_number: HashMap<u32, u64>,
    next_process: u64,
    /// The spec of each thread.
    threads: HashMap<u32, SpecId>,
    specs_of_user: HashMap<u32, usize>,
    books: Books,
    /// Why the last reload failed, if it did.
    pub last_reload_error: Option<String>,
}

impl Registry {
    /// Nothing yet.
    pub fn new(setup: Setup, limits: Limits, journal: Journal, poll: Poll) -> Self {
        Self {
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
            last_reload_error: None,
        }
    }

    /// In the order in which they are asked.
    pub fn plugins(&self) -> &[Loaded] {
        &self.setup.plugins
    }

    /// See there.
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
        let mut specs: Vec<&Spec> =
            self.specs.values().filter(|spec| who.is_root() || spec.who.user == who.user).collect();
        specs.sort_unstable_by_key(|spec| spec.id);
        specs
    }

    /// A spec that the caller may see, which are those that they may change.
    pub fn get(&self, who: &Who, id: SpecId) -> Result<&Spec, Error> {
        let spec = self.specs.get(&id).ok_or(Error::NoSuchSpec { spec: id.0 })?;
        if who.is_root() || spec.who.user == who.user {
            Ok(spec)
        } else {
            Err(Error::NotOwner { what: format!("spec {} is another user's", id.0) })
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
        let process = self.living(caller)?;
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
        let choice = self.choose(&caller.who, &parameters, None)?;
        let slot = self.journal.take().map_err(|error| {
            log::error(&error.to_string());
            Error::TooMany { what: "specs in the journal".into(), limit: self.specs.len() as u64 }
        })?;
        let id = SpecId(self.journal.number());
        let spec = Spec {
            id,
            name: name.map(Rc::from),
            who: caller.who.clone(),
            process,
            parameters,
            admission: choice.admission,
            thread: None,
            slot,
        };
        self.setup.plugins[choice.admission.plugin].plugin.admit(
            id,
            &choice.parameters,
            choice.admission.offer,
        );
        self.journal.write(slot, &self.record(&spec));
        self.enter(spec);
        if let Err(error) = self.enactable(id).and_then(|()| self.settle(choice.admission.plugin)) {
            self.forget(&[id]);
            return Err(error);
        }
        Ok(&self.specs[&id])
    }

    /// All new parameters, or after an error all old ones.
    pub fn change(&mut self, caller: &Caller, id: SpecId, parameters: Parameters) -> Result<&Spec, Error> {
        self.living(caller)?;
        let spec = self.get(&caller.who, id)?;
        let (old, old_parameters, was) = (spec.admission, spec.parameters.clone(), self.assignment(spec));
        let choice = self.choose(&caller.who, &parameters, Some(spec))?;
        let new = choice.admission;
        self.readmit(id, parameters, &choice.parameters, new, None);
        let enacted = self
            .enactable(id)
            .and_then(|()| self.tell(id))
            .and_then(|()| self.settle(old.plugin))
            .and_then(|()| self.settle(new.plugin));
        if let Err(error) = enacted {
            // The books had room for the old one, as nothing came between; so its offer holds.
            let as_offered = cut(&old_parameters, old.offer.accepted_runtime);
            self.readmit(id, old_parameters, &as_offered, old, was);
            for done in [self.tell(id), self.settle(new.plugin), self.settle(old.plugin)] {
                if let Err(Error::KernelRefused { reason }) = done {
                    log::error(&format!("undoing the change of spec {}: {reason}", id.0));
                }
            }
            self.restore_limit();
            return Err(error);
        }
        self.restore_limit();
        Ok(&self.specs[&id])
    }

    /// Exchanges a spec's admission in all books. Where it goes back, it is to be as it `was`.
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
        let thread = spec.thread.as_ref().map(|held| held.thread.number);
        if thread.is_some() {
            self.setup.plugins[old.plugin].plugin.detached(id);
        }
        self.setup.plugins[old.plugin].plugin.release(id);
        match was {
            Some(was) => self.setup.plugins[new.plugin].plugin.restore(id, as_offered, new.offer, was),
            None => self.setup.plugins[new.plugin].plugin.admit(id, as_offered, new.offer),
        }
        if let Some(thread) = thread {
            self.setup.plugins[new.plugin].plugin.attached(id, thread);
        }
        self.books.remove(&spec.who, old.plugin, old.share);
        self.books.add(&spec.who, new.plugin, new.share);
        self.note(id);
    }

    /// Detaches a spec's thread and forgets it.
    pub fn release(&mut self, caller: &Caller, id: SpecId) -> Result<(), Error> {
        self.living(caller)?;
        self.get(&caller.who, id)?;
        self.forget(&[id]);
        Ok(())
    }

    /// Ends specs: threads are put back, plugins and books are told, those who stay get what they now may.
    fn forget(&mut self, ids: &[SpecId]) {
        let mut told = Vec::new();
        for &id in ids {
            self.put_back(id);
            let Some(spec) = self.specs.remove(&id) else { continue };
            self.setup.plugins[spec.admission.plugin].plugin.release(id);
            if !told.contains(&spec.admission.plugin) {
                told.push(spec.admission.plugin);
            }
            self.books.remove(&spec.who, spec.admission.plugin, spec.admission.share);
            self.leave_everywhere(spec);
        }
        for plugin in told {
            self.settle_anyhow(plugin);
        }
        self.restore_limit();
    }

    /// Enters an admitted spec everywhere but in its plugin and the journal.
    fn enter(&mut self, spec: Spec) {
        self.books.add(&spec.who, spec.admission.plugin, spec.admission.share);
        *self.specs_of_user.entry(spec.who.user).or_default() += 1;
        if let Some(process) = self.processes.get_mut(&spec.process) {
            process.specs.insert(spec.id);
        }
        self.specs.insert(spec.id, spec);
    }

    /// Takes a spec that ended out of everything but its plugin and the books.
    fn leave_everywhere(&mut self, spec: Spec) {
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
        self.leave_if_idle(spec.process);
    }

    /// Asks the plugins in their order: the first that says OK, else the first that says PARTIAL (ReTiF,
    /// Section 3.3).
    fn choose(&self, who: &Who, parameters: &Parameters, replacing: Option<&Spec>) -> Result<Choice, Error> {
        parameters.check(&self.limits)?;
        let asked =
            |loaded: &Loaded| parameters.plugin.as_deref().is_none_or(|name| name == loaded.plugin.name());
        let mut partial = None;
        let (mut reasons, mut denied, mut bound) = (Vec::new(), None, None);
        let mut refused = 0;
        for (at, loaded) in self.setup.plugins.iter().enumerate().filter(|(_, loaded)| asked(loaded)) {
            let name = loaded.plugin.name();
            let seen = match self.permitted(who, name, parameters, replacing) {
                Ok(seen) => seen,
                Err((reason, rule)) => {
                    reasons.push(format!("{name}: not permitted: {reason}"));
                    // The one that a rule decided tells more than those that no rule is about.
                    if denied
                        .as_ref()
                        .is_none_or(|(_, other): &(String, Option<String>)| other.is_none() && rule.is_some())
                    {
                        denied = Some((reason, rule));
                    }
                    continue;
                }
            };
            if loaded.config.kind.is_edf() && !self.limit_can_be_lifted() {
                reasons.push(format!("{name}: {}", attachment::NOT_LIFTED));
                continue;
            }
            refused += 1;
            let admission = |offer: Offer, partial| Admission {
                plugin: at,
                offer,
                partial,
                share: Share::of(offer.accepted_runtime, parameters),
            };
            match loaded
                .plugin
                .consider(&seen, replacing.filter(|spec| spec.admission.plugin == at).map(|spec| spec.id))
            {
                Answer::Ok(offer) => {
                    return Ok(Choice { admission: admission(offer, false), parameters: seen });
                }
                Answer::Partial(offer) => {
                    partial.get_or_insert(Choice { admission: admission(offer, true), parameters: seen });
                }
                Answer::No(refusal) => {
                    reasons.push(format!("{name}: {}", reason(&refusal)));
                    if let Refusal::Bound(it) = refusal {
                        bound.get_or_insert(it);
                    }
                }
            }
        }
        match (partial, denied, bound) {
            (Some(choice), _, _) => Ok(choice),
            (None, Some((reason, rule)), _) if refused == 0 => {
                // Which of the plugins was meant, only the caller knows.
                let reason = if reasons.len() == 1 {
                    reason
                } else {
                    reasons.join("; ").replace(": not permitted: ", ": ")
                };
                Err(Error::NotPermitted { reason, rule })
            }
            (None, None, Some(bound)) if refused == 1 => Err(bound.into()),
            _ => match &parameters.plugin {
                Some(plugin) if reasons.is_empty() => Err(Error::NoSuchPlugin { plugin: plugin.clone() }),
                _ => Err(Error::NotAdmitted { reasons }),
            },
        }
    }

    /// Whether the rules let a spec go to a plugin, and with which parameters.
    #[allow(clippy::type_complexity, reason = "a reason and a rule, for one caller")]
    fn permitted(
        &self,
        who: &Who,
        plugin: &str,
        parameters: &Parameters,
        replacing: Option<&Spec>,
    ) -> Result<Parameters, (String, Option<String>)> {
        if who.is_root() {
            return Ok(parameters.clone());
        }
        let number = |name: &str| self.setup.plugins.iter().position(|loaded| loaded.plugin.name() == name);
        let without = replacing.map(|spec| (&*spec.who, spec.admission.plugin, spec.admission.share));
        let usage = View { books: &self.books, plugin: &number, without };
        let grant = self
            .setup
            .access
            .check(who, plugin, parameters, &usage)
            .map_err(|denied| (denied.reason, denied.rule))?;
        Ok(match grant.greatest_runtime {
            Some(greatest) => cut(parameters, Some(greatest)),
            None => parameters.clone(),
        })
    }

    fn record(&self, spec: &Spec) -> Record {
        let process = self.processes.get(&spec.process);
        // During a reload a spec may have no plugin any more, for a moment.
        let loaded = self.setup.plugins.get(spec.admission.plugin);
        let assigned = spec
            .thread
            .as_ref()
            .map(|held| held.told)
            .or_else(|| loaded?.plugin.assignment(spec.id).map(Told::of));
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
            assigned: assigned.unwrap_or_default(),
            thread: spec.thread.as_ref().map(|held| Attached {
                number: held.thread.number,
                named: held.named,
                identity: held.thread.identity,
                before: held.before,
                told: held.told,
                told_before: held.told_before,
            }),
        }
    }

    /// Writes a spec's slot anew.
    fn note(&mut self, id: SpecId) {
        if let Some(spec) = self.specs.get(&id) {
            let record = self.record(spec);
            self.journal.write(spec.slot, &record);
        }
    }
}

/// Parameters whose desired runtime is not beyond `greatest`.
fn cut(parameters: &Parameters, greatest: Option<Duration>) -> Parameters {
    let desired =
        parameters.desired_runtime.map(|desired| greatest.map_or(desired, |greatest| desired.min(greatest)));
    // Less than what is needed cannot be desired: the plugin then says what it needs.
    let desired = desired.map(|desired| parameters.runtime.map_or(desired, |runtime| desired.max(runtime)));
    Parameters { desired_runtime: desired, ..parameters.clone() }
}

fn reason(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Lacks(parameter) => format!("it needs {parameter}, which is not declared"),
        Refusal::Bound(it) => format!("{} is {}, it must be {}", it.parameter, it.value, it.bound),
        Refusal::Unschedulable(why) => why.clone(),
    }
}
