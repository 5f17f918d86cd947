//! Explains what the rules allow a user, and which rule decides.

use super::{Property, Rule, Rules, plain};
use crate::access::{Denied, Domain, Grant, Usage, Who};
use punctual_schedule::Parameters;

/// The limits of a user under a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The plugin.
    pub plugin: String,
    /// Allowed, or the line that decides.
    pub outcome: Result<Grant, Denied>,
    /// If it is denied: the line by which Polkit would be asked, and could allow it.
    pub polkit: Option<String>,
    /// What holds beyond this request: for each property its strictest rule; of aggregate utilizations all,
    /// since each has its own sum. Then what holds for requests that Polkit has authorised.
    pub limits: Vec<Limit>,
}

/// A bound and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The property with its value.
    pub property: Property,
    /// Whose sum it bounds; only for aggregate utilizations of interest.
    pub domain: Domain,
    /// The rule, with its file and line.
    pub rule: String,
    /// Whether it holds only for requests that Polkit has authorised.
    pub polkit: bool,
}

impl Rules {
    /// What the rules say to a request, and what else holds for who makes it. Without parameters, whether any
    /// request is allowed.
    pub fn explain(
        &self,
        who: &Who,
        plugin: &str,
        parameters: Option<&Parameters>,
        usage: &dyn Usage,
    ) -> Explanation {
        let all = self.matching(who, plugin);
        let matching = plain(&all);
        let outcome = match parameters {
            _ if who.is_root() => Ok(Grant::default()),
            Some(parameters) => self.decide(&matching, who, plugin, parameters, usage),
            None if matching.iter().any(|rule| rule.property.allows()) => Ok(Grant::default()),
            None => self.decide(&[], who, plugin, &Parameters::default(), usage),
        };
        let polkit = match (&outcome, parameters) {
            (Ok(_), _) => None,
            (Err(_), Some(parameters)) => self
                .decide_authorised(&all, who, plugin, parameters, usage)
                .and_then(|decided| decided.ok().map(|allowed| allowed.rule)),
            (Err(_), None) => {
                all.iter().find(|rule| rule.polkit && rule.property.allows()).map(|rule| self.cite(rule))
            }
        };
        let (left, strictest) = (all.iter().copied().filter(|rule| rule.polkit), strictest(&matching));
        let limits = strictest.into_iter().chain(left).map(|rule| Limit {
            property: rule.property,
            domain: rule.domain,
            rule: self.cite(rule),
            polkit: rule.polkit,
        });
        Explanation {
            plugin: plugin.to_owned(),
            outcome,
            polkit,
            limits: if who.is_root() { Vec::new() } else { limits.collect() },
        }
    }
}

/// Of each property the strictest rule; of aggregate utilizations all.
fn strictest<'a>(rules: &[&'a Rule]) -> Vec<&'a Rule> {
    let is_strictest = |(at, rule): &(usize, &&Rule)| {
        matches!(rule.property, Property::MaxUtilization(_))
            || !rules.iter().enumerate().any(|(other_at, other)| {
                // Of equal ones, the first in the file.
                other.property.is_within(rule.property)
                    && (!rule.property.is_within(other.property) || other_at < *at)
            })
    };
    rules.iter().enumerate().filter(is_strictest).map(|(_, rule)| *rule).collect()
}
