//! One rule: whom it is for, and what of a request it allows.

use super::property::{Property, Value, decimal};
use crate::access::{Domain, Share, Usage};
use punctual_model::Duration;
use punctual_schedule::Parameters;

/// One line of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// From 1.
    pub line: usize,
    /// As written, without comment and surplus space.
    pub text: String,
    /// For whom.
    pub domain: Domain,
    /// For which plugin; any, if none.
    pub plugin: Option<String>,
    /// The condition and its value.
    pub property: Property,
    /// Whether it holds only for requests that Polkit has authorised.
    pub polkit: bool,
}

/// Shares are rounded up, each by less than this in all of 16,384 specs; so ten specs of 0.1 are 1, and not a
/// hair more. (A thousandth of a nanosecond in each second.)
const ROUNDING: u128 = 1 << 14;

impl Rule {
    /// Whether it applies to that plugin.
    pub fn is_for(&self, plugin: &str) -> bool {
        self.plugin.as_deref().is_none_or(|name| name == plugin)
    }

    /// Whether it takes the place of another rule once Polkit has authorised a request: with the same subject
    /// and condition.
    pub(super) fn replaces(&self, other: &Rule) -> bool {
        let subject = |it: &Rule| (it.domain, it.plugin.clone(), it.property.key());
        self.polkit && !other.polkit && subject(self) == subject(other)
    }

    /// Its answer to a request that it matches: no, with the reason; or yes, perhaps up to a runtime.
    ///
    /// A parameter that is not declared is not limited, except for runtimes and utilization: a thread of
    /// unknown runtime may take all there is, so where these are limited they must be declared.
    pub fn check(&self, parameters: &Parameters, usage: &dyn Usage) -> Result<Option<Duration>, String> {
        let (condition, limit) = (self.property.condition(), self.property.value());
        match self.property {
            Property::MaxUtilization(limit) => {
                return self.check_utilization(limit, parameters, usage).map(Some);
            }
            Property::MaxRuntime(_) if parameters.runtime.is_none() => {
                return Err(format!("{} is {limit}, and no runtime was declared; declare it", condition.key));
            }
            _ => {}
        }
        match (condition.declared)(parameters).filter(|&asked| !condition.side.admits(limit, asked)) {
            Some(Value::Flag(_)) => Err("the admission test may not be ignored".into()),
            Some(asked) => Err(format!("{} is {limit}, and {asked} was asked for", condition.key)),
            None => Ok(match self.property {
                Property::MaxRuntime(limit) => Some(limit),
                _ => None,
            }),
        }
    }

    fn check_utilization(
        &self,
        limit: Share,
        parameters: &Parameters,
        usage: &dyn Usage,
    ) -> Result<Duration, String> {
        let subject = match self.domain {
            Domain::Everyone => "all users together",
            Domain::User(_) => "this user",
            Domain::Group(_) => "this group",
        };
        let bound = match &self.plugin {
            Some(plugin) => format!("max_utilization of {subject} on '{plugin}' is {}", decimal(limit)),
            None => format!("max_utilization of {subject} is {}", decimal(limit)),
        };
        if parameters.runtime.is_none() || parameters.period.or(parameters.deadline).is_none() {
            return Err(format!("{bound}, and a runtime or a period was not declared; declare both"));
        }
        let used = usage.share(self.domain, self.plugin.as_deref());
        let asked = Share::new(parameters.runtime, parameters);
        let left = Share(limit.0.saturating_add(ROUNDING).saturating_sub(used.0));
        if asked > left {
            return Err(format!("{bound}, {} is in use and {} was asked for", decimal(used), decimal(asked)));
        }
        // At least what was declared: the longest runtime is rounded down, and the share that was compared
        // up.
        Ok(left.runtime(parameters).max(parameters.runtime).unwrap_or(Duration::from_ns(u64::MAX)))
    }
}
