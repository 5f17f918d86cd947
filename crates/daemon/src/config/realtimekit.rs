//! `[realtimekit]`: serving RealtimeKit's interface on the system bus.

use super::plugins::{Kind, PluginConfig};
use punctual_model::Duration;
use punctual_protocol::NICE_LEVELS;
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// The table, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    bus: Option<Spanned<String>>,
    plugin: Option<Spanned<String>>,
    nice_plugin: Option<Spanned<String>>,
    max_realtime_priority: Option<Spanned<i64>>,
    min_nice_level: Option<Spanned<i64>>,
    rttime_usec_max: Option<Spanned<i64>>,
    budget: Option<Spanned<(i64, i64)>>,
}

/// How RealtimeKit's interface is served. The defaults of limits are RTKit's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealtimeKit {
    /// The bus's address; the system bus, if none.
    pub bus: Option<String>,
    /// The plugin that real-time threads are for.
    pub plugin: String,
    /// The plugin that threads with a nice level are for; without one, they are refused.
    pub nice_plugin: Option<String>,
    /// The highest priority that is given.
    pub max_realtime_priority: u32,
    /// The lowest nice level that is given.
    pub min_nice_level: i32,
    /// The greatest hard RLIMIT_RTTIME of a client, in µs.
    pub rttime_usec_max: u64,
    /// The runtime and period that real-time threads count with.
    pub budget: Option<(Duration, Duration)>,
}

/// A mistake, and where.
pub(super) type Wrong = (Range<usize>, String);

impl Table {
    /// What the table means with these plugins; `at` is where it begins.
    pub(super) fn read(self, plugins: &[PluginConfig], at: Range<usize>) -> Result<RealtimeKit, Vec<Wrong>> {
        use punctual_schedule::Kind::{Fp, Nice, Rr};
        let mut wrong = Vec::new();
        let first = |kind| plugins.iter().find(|it| it.kind == Kind::BuiltIn(kind)).map(|it| &it.name);
        let named =
            |given: Option<Spanned<String>>, kinds: &[punctual_schedule::Kind], wrong: &mut Vec<_>| {
                let Some(given) = given else { return first(kinds[0]).cloned() };
                let is_it = |it: &&PluginConfig| {
                    it.name == *given.get_ref() && kinds.iter().any(|kind| it.kind == Kind::BuiltIn(*kind))
                };
                let found = plugins.iter().find(is_it).map(|it| it.name.clone());
                if found.is_none() {
                    let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
                    let message =
                        format!("there is no plugin '{}' of kind {}", given.get_ref(), kinds.join(" or "));
                    wrong.push((given.span(), message));
                }
                found
            };
        let is_named = self.plugin.is_some();
        let plugin = named(self.plugin, &[Rr, Fp], &mut wrong);
        let nice_plugin = named(self.nice_plugin, &[Nice], &mut wrong);
        if plugin.is_none() && !is_named {
            let message =
                "there is no plugin of kind RR for real-time threads; add one, or say plugin = \"…\"";
            wrong.push((at, message.into()));
        }
        let mut number =
            |name: &str, given: Option<Spanned<i64>>, default: i64, range: (i64, i64)| match given {
                Some(given) if !(range.0..=range.1).contains(given.get_ref()) => {
                    let message = format!(
                        "{name} = {} is out of range; expected {} to {}",
                        given.get_ref(),
                        range.0,
                        range.1
                    );
                    wrong.push((given.span(), message));
                    default
                }
                given => given.map_or(default, Spanned::into_inner),
            };
        let highest = number("max_realtime_priority", self.max_realtime_priority, 20, (1, 99));
        let levels = (i64::from(*NICE_LEVELS.start()), i64::from(*NICE_LEVELS.end()));
        let lowest = number("min_nice_level", self.min_nice_level, -15, levels);
        let rttime = number("rttime_usec_max", self.rttime_usec_max, 200_000, (1, i64::MAX));
        let budget = self.budget.map(|given| match *given.get_ref() {
            (runtime, period) if 0 < runtime && runtime <= period && period <= 60_000_000 => {
                (Duration::from_us(runtime as u64), Duration::from_us(period as u64))
            }
            _ => {
                let message = "budget is wrong; expected [runtime, period] in µs, such as [2000, 20000]";
                wrong.push((given.span(), message.into()));
                (Duration::ZERO, Duration::ZERO)
            }
        });
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let plugin = plugin.unwrap_or_default();
        // Of no use to anyone: the plugin would give less than was granted.
        let limit = plugins.iter().find(|it| it.name == plugin).map_or(99, |it| it.priorities.1);
        Ok(RealtimeKit {
            bus: self.bus.map(Spanned::into_inner),
            plugin,
            nice_plugin,
            max_realtime_priority: (highest as u32).min(limit),
            min_nice_level: lowest as i32,
            rttime_usec_max: rttime as u64,
            budget,
        })
    }
}
