//! Explains what the rules allow a user, and which rule decides.

use super::{Property, Rules};
use crate::access::{Denied, Domain, Grant, Usage, Who};
use punctual_schedule::Parameters;

/// The limits of a user under a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The plugin.
    pub plugin: String,
    /// Allowed, or the line that decides.
    pub outcome: Result<Grant, Denied>,
    /// What holds beyond this request: for each property its strictest rule; of aggregate utilizations all,
    /// since each has its own sum.
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
        let matching = self.matching(who, plugin);
        let outcome = match parameters {
            _ if who.is_root() => Ok(Grant::default()),
            Some(parameters) => self.decide(&matching, who, plugin, parameters, usage),
            None if matching.iter().any(|rule| rule.property.allows()) => Ok(Grant::default()),
            None => self.decide(&[], who, plugin, &Parameters::default(), usage),
        };
        let strictest = matching.iter().enumerate().filter(|(at, rule)| {
            matches!(rule.property, Property::MaxUtilization(_))
                || !matching.iter().enumerate().any(|(other_at, other)| {
                    // Of equal ones, the first in the file.
                    other.property.is_within(rule.property)
                        && (!rule.property.is_within(other.property) || other_at < *at)
                })
        });
        let limits = strictest.map(|(_, rule)| Limit {
            property: rule.property,
            domain: rule.domain,
            rule: self.cite(rule),
        });
        Explanation {
            plugin: plugin.to_owned(),
            outcome,
            limits: if who.is_root() { Vec::new() } else { limits.collect() },
        }
    }
}
