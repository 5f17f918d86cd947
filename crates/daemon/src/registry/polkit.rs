//! Requests that were refused, and that the rules leave to Polkit.

use super::Registry;
use super::process::Caller;
use crate::polkit::{Question, Subject};
use punctual_protocol::one_line;
use punctual_schedule::{Parameters, SpecId};
use std::os::fd::AsFd;

/// A request for Polkit to decide on.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// What is asked for.
    pub parameters: &'a Parameters,
    /// The spec that is to be changed; a new one, if none.
    pub change: Option<SpecId>,
    /// What a new one is to be called.
    pub name: Option<&'a str>,
    /// Whether the user may be asked.
    pub interactive: bool,
}

impl Registry {
    /// What Polkit is to be asked about a request that was refused. Nothing, unless its word is all that is
    /// missing: it would be admitted then.
    pub fn question(&mut self, caller: &Caller, wish: Wish<'_>) -> Option<Question> {
        if caller.authorised.is_some() || !self.setup.access.leaves_to_polkit() {
            return None;
        }
        let process = self.live_process(caller).ok()?;
        if let Some(id) = wish.change {
            self.get(&caller.who, id).ok()?;
        }
        let choice = self.place_if_authorised(&caller.who, wish.parameters, wish.change)?;
        let process = self.processes.get(&process)?;
        let plugin = self.setup.plugins[choice.admission.plugin].name.to_string();
        Some(Question {
            subject: Subject {
                process: process.number,
                start: process.start,
                user: caller.who.user,
                pidfd: process.pidfd.as_fd().try_clone_to_owned().ok()?,
            },
            action: match wish.change {
                None => "io.punctual.scheduler1.create",
                Some(_) => "io.punctual.scheduler1.change",
            },
            details: details(wish, &plugin),
            interactive: wish.interactive,
            plugin,
            rule: choice.rule?,
        })
    }
}

/// What Polkit's rules can look up, and its messages show. Only the names are the client's own words.
fn details(wish: Wish<'_>, plugin: &str) -> Vec<(&'static str, String)> {
    let it = wish.parameters;
    let time = |time: Option<punctual_model::Duration>| time.map(|time| time.ns().to_string());
    let runtime = it.runtime.map_or("no runtime".to_owned(), |runtime| runtime.to_string());
    let period = it.period.map_or(String::new(), |period| format!(" every {period}"));
    let details = [
        ("plugin", Some(plugin.to_owned())),
        ("name", wish.name.map(|name| one_line(name).to_string())),
        ("spec", wish.change.map(|id| id.0.to_string())),
        ("runtime_ns", time(it.runtime)),
        ("desired_runtime_ns", time(it.desired_runtime)),
        ("period_ns", time(it.period)),
        ("deadline_ns", time(it.deadline)),
        ("priority", it.priority.map(|priority| priority.to_string())),
        ("nice", it.nice.map(|nice| nice.to_string())),
        ("ignore_admission", it.ignore_admission.then(|| "true".to_owned())),
        ("needs", Some(format!("{runtime}{period}"))),
    ];
    details.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}
