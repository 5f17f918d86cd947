//! One rule: whom it is for, and what of a request it allows (ReTiF, Table 5).

use crate::access::{Domain, Share, Usage};
use punctual_model::Duration;
use punctual_schedule::Parameters;
use std::fmt;

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
    /// What it says.
    pub property: Property,
}

/// An access control property with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// U^max: of all specs of the rule's subject together.
    MaxUtilization(Share),
    /// Q^max, of one spec.
    MaxRuntime(Duration),
    /// T^min.
    MinPeriod(Duration),
    /// T^max.
    MaxPeriod(Duration),
    /// D^min.
    MinDeadline(Duration),
    /// D^max.
    MaxDeadline(Duration),
    /// P^min.
    MinPriority(u32),
    /// P^max.
    MaxPriority(u32),
    /// I.
    IgnoreAdmission(bool),
}

impl Property {
    /// The key in the file.
    pub fn key(self) -> &'static str {
        match self {
            Property::MaxUtilization(_) => "max_utilization",
            Property::MaxRuntime(_) => "max_runtime",
            Property::MinPeriod(_) => "min_period",
            Property::MaxPeriod(_) => "max_period",
            Property::MinDeadline(_) => "min_deadline",
            Property::MaxDeadline(_) => "max_deadline",
            Property::MinPriority(_) => "min_priority",
            Property::MaxPriority(_) => "max_priority",
            Property::IgnoreAdmission(_) => "ignore_adm_test",
        }
    }

    /// Whether a rule with it allows anything by itself. One that only forbids does not: `bob -
    /// ignore_adm_test false` is no way to let bob in.
    pub fn allows(self) -> bool {
        self != Property::IgnoreAdmission(false)
    }

    /// Whether it is at least as strict as another of the same key.
    pub fn is_within(self, other: Property) -> bool {
        use Property::{
            IgnoreAdmission, MaxDeadline, MaxPeriod, MaxPriority, MaxRuntime, MaxUtilization, MinDeadline,
            MinPeriod, MinPriority,
        };
        match (self, other) {
            (MaxUtilization(one), MaxUtilization(other)) => one <= other,
            (MaxRuntime(one), MaxRuntime(other))
            | (MaxPeriod(one), MaxPeriod(other))
            | (MaxDeadline(one), MaxDeadline(other)) => one <= other,
            (MinPeriod(one), MinPeriod(other)) | (MinDeadline(one), MinDeadline(other)) => one >= other,
            (MinPriority(one), MinPriority(other)) => one >= other,
            (MaxPriority(one), MaxPriority(other)) => one <= other,
            (IgnoreAdmission(one), IgnoreAdmission(other)) => one <= other,
            _ => false,
        }
    }
}

/// The value with its unit, for people.
impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Property::MaxUtilization(share) => f.write_str(&decimal(*share)),
            Property::MaxRuntime(time)
            | Property::MinPeriod(time)
            | Property::MaxPeriod(time)
            | Property::MinDeadline(time)
            | Property::MaxDeadline(time) => f.write_str(&microseconds(*time)),
            Property::MinPriority(priority) | Property::MaxPriority(priority) => write!(f, "{priority}"),
            Property::IgnoreAdmission(may) => write!(f, "{may}"),
        }
    }
}

/// Shares are rounded up, each by less than this in all of 16,384 specs; so ten specs of 0.1 are 1, and not a
/// hair more. (A thousandth of a nanosecond in each second.)
const ROUNDING: u128 = 1 << 14;

impl Rule {
    /// Whether it is about that plugin.
    pub fn is_for(&self, plugin: &str) -> bool {
        self.plugin.as_deref().is_none_or(|name| name == plugin)
    }

    /// What it says to a request that it matches: no, with the reason; or yes, perhaps up to a runtime.
    ///
    /// What is not declared is not limited, but for runtimes and utilization: a thread of unknown runtime may
    /// take all there is, so where these are limited they must be declared.
    pub fn check(&self, parameters: &Parameters, usage: &dyn Usage) -> Result<Option<Duration>, String> {
        match self.property {
            Property::MaxUtilization(limit) => {
                return self.check_utilization(limit, parameters, usage).map(Some);
            }
            Property::MaxRuntime(limit) => match parameters.runtime {
                None => {
                    return Err(format!(
                        "max_runtime is {}, and no runtime was declared; declare it",
                        microseconds(limit)
                    ));
                }
                Some(runtime) => at_most("max_runtime", limit, Some(runtime))?,
            },
            Property::MinPeriod(limit) => at_least("min_period", limit, parameters.period)?,
            Property::MaxPeriod(limit) => at_most("max_period", limit, parameters.period)?,
            // The deadline is the period where none is declared.
            Property::MinDeadline(limit) => {
                at_least("min_deadline", limit, parameters.deadline.or(parameters.period))?
            }
            Property::MaxDeadline(limit) => {
                at_most("max_deadline", limit, parameters.deadline.or(parameters.period))?
            }
            Property::MinPriority(limit) => match parameters.priority {
                Some(asked) if asked < limit => {
                    return Err(format!("min_priority is {limit}, and {asked} was asked for"));
                }
                _ => (),
            },
            Property::MaxPriority(limit) => match parameters.priority {
                Some(asked) if asked > limit => {
                    return Err(format!("max_priority is {limit}, and {asked} was asked for"));
                }
                _ => (),
            },
            Property::IgnoreAdmission(may) => {
                if parameters.ignore_admission && !may {
                    return Err("the admission test may not be ignored".into());
                }
            }
        }
        Ok(match self.property {
            Property::MaxRuntime(limit) => Some(limit),
            _ => None,
        })
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
        let of = match &self.plugin {
            Some(plugin) => format!("max_utilization of {subject} on '{plugin}' is {}", decimal(limit)),
            None => format!("max_utilization of {subject} is {}", decimal(limit)),
        };
        if parameters.runtime.is_none() || parameters.period.or(parameters.deadline).is_none() {
            return Err(format!("{of}, and a runtime or a period was not declared; declare both"));
        }
        let used = usage.share(self.domain, self.plugin.as_deref());
        let asked = Share::of(parameters.runtime, parameters);
        let left = Share(limit.0.saturating_add(ROUNDING).saturating_sub(used.0));
        if asked > left {
            return Err(format!("{of}, {} is in use and {} was asked for", decimal(used), decimal(asked)));
        }
        // At least what was declared: the longest runtime is rounded down, and the share that was compared
        // up.
        Ok(left.runtime(parameters).max(parameters.runtime).unwrap_or(Duration::from_ns(u64::MAX)))
    }
}

fn at_most(key: &str, limit: Duration, asked: Option<Duration>) -> Result<(), String> {
    match asked.filter(|asked| *asked > limit) {
        Some(asked) => {
            Err(format!("{key} is {}, and {} was asked for", microseconds(limit), microseconds(asked)))
        }
        None => Ok(()),
    }
}

fn at_least(key: &str, limit: Duration, asked: Option<Duration>) -> Result<(), String> {
    match asked.filter(|asked| *asked < limit) {
        Some(asked) => {
            Err(format!("{key} is {}, and {} was asked for", microseconds(limit), microseconds(asked)))
        }
        None => Ok(()),
    }
}

/// A time in the file's unit, with as many decimals as it needs.
fn microseconds(time: Duration) -> String {
    let (whole, part) = (time.ns() / 1000, time.ns() % 1000);
    match part {
        0 => format!("{whole} µs"),
        _ => format!("{whole}.{} µs", format!("{part:03}").trim_end_matches('0')),
    }
}

/// A share of processors in six decimals.
fn decimal(share: Share) -> String {
    let text = format!("{:.6}", share.0 as f64 / Share::ONE.0 as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
