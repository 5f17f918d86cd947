//! Who may have what: the rules that administrators write (ReTiF, Section 4). Default deny; a request must
//! satisfy every matching rule.
//!
//! Who asks and how much is in use comes from the caller.

mod explain;
mod file;
mod property;
mod rule;

pub use explain::{Explanation, Limit};
pub use file::{Names, SystemNames};
pub use property::{CONDITIONS, Condition, Property, Side, Value};
pub use rule::Rule;

use crate::access::{Access, Conditional, Denied, Domain, Grant, Usage, Who};
use crate::machine::Machine;
use crate::text::{self, Error, Problem};
use punctual_schedule::Parameters;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Where the rules are, if the configuration does not say otherwise.
pub const DEFAULT_PATH: &str = "/etc/punctual/rules.conf";
/// The file that is installed: comments that tell its form, and no rule.
pub const DEFAULT_TEXT: &str = include_str!("default_rules.conf");

/// A file of rules. Without any, everything is denied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    path: PathBuf,
    /// In the file's order.
    rules: Vec<Rule>,
    /// Which of them are for a domain: what a request costs does not depend on how many there are for others.
    by_domain: HashMap<Domain, Vec<usize>>,
}

impl Rules {
    /// Reads rules. `plugins` are the names that there are; without them, any name is taken for one. The file
    /// must be root's or the reader's own, and nobody else's to write.
    pub fn load(path: &Path, plugins: Option<&[&str]>) -> Result<(Rules, Vec<Problem>), Error> {
        let text = text::read(path).map_err(|problem| Error(vec![problem]))?;
        Rules::parse(&text, path, plugins, &SystemNames, &Machine::here())
    }

    /// Rules from their text; `path` is for messages.
    pub fn parse(
        text: &str,
        path: &Path,
        plugins: Option<&[&str]>,
        names: &dyn Names,
        machine: &Machine,
    ) -> Result<(Rules, Vec<Problem>), Error> {
        let (rules, warnings) = file::parse(text, path, plugins, names, machine.priorities)?;
        let mut by_domain: HashMap<Domain, Vec<usize>> = HashMap::new();
        for (index, rule) in rules.iter().enumerate() {
            by_domain.entry(rule.domain).or_default().push(index);
        }
        Ok((Rules { path: path.to_owned(), rules, by_domain }, warnings))
    }

    /// All rules that are for somebody, in the file's order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// A rule with its place, as messages show it.
    pub fn cite(&self, rule: &Rule) -> String {
        format!("{}:{}: {}", self.path.display(), rule.line, rule.text)
    }

    /// The rules for somebody and a plugin, in the file's order.
    fn matching(&self, who: &Who, plugin: &str) -> Vec<&Rule> {
        let groups = who.groups.iter().copied().chain([who.group]).map(Domain::Group);
        let domains = [Domain::Everyone, Domain::User(who.user)].into_iter().chain(groups);
        let mut indices: Vec<usize> =
            domains.filter_map(|domain| self.by_domain.get(&domain)).flatten().copied().collect();
        indices.retain(|&index| self.rules[index].is_for(plugin));
        indices.sort_unstable();
        // The effective group may be among the others.
        indices.dedup();
        indices.into_iter().map(|index| &self.rules[index]).collect()
    }

    /// The rules for somebody once Polkit has authorised a request: those for that, and all others whose
    /// place none of them takes. `None` if nothing is left to Polkit.
    fn authorised<'a>(matching: &[&'a Rule]) -> Option<Vec<&'a Rule>> {
        let left = matching.iter().any(|rule| rule.polkit && rule.property.allows());
        let is_replaced = |rule: &Rule| matching.iter().any(|other| other.replaces(rule));
        left.then(|| matching.iter().copied().filter(|rule| !is_replaced(rule)).collect())
    }

    /// What matching rules say to a request that Polkit has authorised.
    fn decide_authorised(
        &self,
        matching: &[&Rule],
        who: &Who,
        plugin: &str,
        parameters: &Parameters,
        usage: &dyn Usage,
    ) -> Option<Result<Conditional, Denied>> {
        let rules = Self::authorised(matching)?;
        let opens = rules.iter().find(|rule| rule.polkit && rule.property.allows())?;
        let decided = self.decide(&rules, who, plugin, parameters, usage);
        Some(decided.map(|grant| Conditional { grant, rule: self.cite(opens) }))
    }

    fn decide(
        &self,
        matching: &[&Rule],
        who: &Who,
        plugin: &str,
        parameters: &Parameters,
        usage: &dyn Usage,
    ) -> Result<Grant, Denied> {
        if !matching.iter().any(|rule| rule.property.allows()) {
            let reason = format!("no rule allows user {} plugin '{plugin}'", who.user);
            return Err(Denied { reason, rule: None });
        }
        let mut grant = Grant::default();
        let mut hold = |rules: &[&Rule]| {
            rules.iter().try_for_each(|rule| match rule.check(parameters, usage) {
                Ok(None) => Ok(()),
                Ok(Some(limit)) => {
                    grant.greatest_runtime =
                        Some(grant.greatest_runtime.map_or(limit, |other| other.min(limit)));
                    Ok(())
                }
                Err(reason) => Err(Denied { reason, rule: Some(self.cite(rule)) }),
            })
        };
        // What no waiting helps against is told first: a sum in use may be less in a moment.
        let (passing, lasting): (Vec<&Rule>, Vec<&Rule>) =
            matching.iter().copied().partition(|rule| matches!(rule.property, Property::MaxUtilization(_)));
        hold(&lasting)?;
        if parameters.ignore_admission
            && !matching.iter().any(|rule| rule.property == Property::IgnoreAdmission(true))
        {
            let reason = format!(
                "no rule lets user {} ignore the admission test of '{plugin}' (ignore_adm_test)",
                who.user
            );
            return Err(Denied { reason, rule: None });
        }
        hold(&passing)?;
        Ok(grant)
    }
}

impl Access for Rules {
    fn check(
        &self,
        who: &Who,
        plugin: &str,
        parameters: &Parameters,
        usage: &dyn Usage,
    ) -> Result<Grant, Denied> {
        self.decide(&plain(&self.matching(who, plugin)), who, plugin, parameters, usage)
    }

    fn check_authorised(
        &self,
        who: &Who,
        plugin: &str,
        parameters: &Parameters,
        usage: &dyn Usage,
    ) -> Option<Result<Conditional, Denied>> {
        self.decide_authorised(&self.matching(who, plugin), who, plugin, parameters, usage)
    }

    fn leaves_to_polkit(&self) -> bool {
        self.rules.iter().any(|rule| rule.polkit)
    }

    fn may_observe(&self, who: &Who, plugin: &str) -> bool {
        let matching = self.matching(who, plugin);
        let says = |may| matching.iter().any(|rule| rule.property == Property::Observe(may));
        says(true) && !says(false)
    }
}

/// The rules that hold whatever Polkit says.
fn plain<'a>(matching: &[&'a Rule]) -> Vec<&'a Rule> {
    matching.iter().copied().filter(|rule| !rule.polkit).collect()
}
