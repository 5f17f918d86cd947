//! Declared parameters (ReTiF, Table 3), and the bounds that hold for every plugin.

use punctual_model::Duration;
use punctual_model::policy::Reservation;
use serde::{Deserialize, Deserializer, Serialize};

/// Declared timing needs. All are optional; which ones are required depends on the plugin (ReTiF, Table 6).
/// [`PARAMETERS`] documents each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the table below documents them")]
pub struct Parameters {
    #[serde(rename = "runtime_ns", default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Duration>,
    #[serde(rename = "desired_runtime_ns", default, skip_serializing_if = "Option::is_none")]
    pub desired_runtime: Option<Duration>,
    #[serde(rename = "period_ns", default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Duration>,
    #[serde(rename = "deadline_ns", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    #[serde(rename = "offset_ns", default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Duration>,
    #[serde(rename = "blocking_ns", default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    #[serde(default, deserialize_with = "nice_level", skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub ignore_admission: bool,
}

/// The unit of a parameter: its notation in the protocol and on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds; on the command line, a number with a unit.
    Time,
    /// A priority as in `sched_setscheduler(2)`.
    Priority,
    /// A nice level as in `setpriority(2)`.
    Nice,
    /// A name.
    Name,
    /// A flag.
    Flag,
}

/// One of the [`PARAMETERS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; with dashes, the name of its option.
    pub name: &'static str,
    /// The field in the protocol.
    pub field: &'static str,
    /// Its symbol in the literature; empty if it has none.
    pub symbol: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its meaning.
    pub meaning: &'static str,
    /// Its default; empty if it has none.
    pub default: &'static str,
}

impl Parameter {
    /// Its type in the Varlink interface.
    pub fn varlink_type(&self) -> &'static str {
        match self.unit {
            Unit::Time | Unit::Priority | Unit::Nice => "?int",
            Unit::Name => "?string",
            Unit::Flag => "?bool",
        }
    }

    /// The help of its option: symbol, meaning, default.
    pub fn help(&self) -> String {
        let symbol = if self.symbol.is_empty() { String::new() } else { format!("{}: ", self.symbol) };
        let default =
            if self.default.is_empty() { String::new() } else { format!(" [default: {}]", self.default) };
        format!("{symbol}{}{default}", self.meaning)
    }
}

/// All parameters: those of ReTiF's Table 3 in its order, and ours among them. The Varlink interface, the
/// options of `punctual ctl run`
/// and `punctual rules explain`, and `docs/daemon.md` list the same ones: tests compare them.
pub const PARAMETERS: [Parameter; 10] = [
    Parameter {
        name: "runtime",
        field: "runtime_ns",
        symbol: "Q",
        unit: Unit::Time,
        meaning: "The longest processor time of a job",
        default: "",
    },
    Parameter {
        name: "desired_runtime",
        field: "desired_runtime_ns",
        symbol: "Q^d",
        unit: Unit::Time,
        meaning: "The processor time that a job can make use of; the accepted runtime lies between the two",
        default: "the runtime",
    },
    Parameter {
        name: "period",
        field: "period_ns",
        symbol: "T",
        unit: Unit::Time,
        meaning: "The least time between two releases",
        default: "",
    },
    Parameter {
        name: "deadline",
        field: "deadline_ns",
        symbol: "D",
        unit: Unit::Time,
        meaning: "The time from its release in which a job must end",
        default: "the period",
    },
    Parameter {
        name: "offset",
        field: "offset_ns",
        symbol: "φ",
        unit: Unit::Time,
        meaning: "The time from the beginning of a time-triggered table to the first release of a periodic \
                  task (plugins of kind TT). What other plugins guarantee holds for every offset",
        default: "0",
    },
    Parameter {
        name: "blocking",
        field: "blocking_ns",
        symbol: "B",
        unit: Unit::Time,
        meaning: "The longest time that less urgent threads can delay a job, by locks for example",
        default: "0",
    },
    Parameter {
        name: "priority",
        field: "priority",
        symbol: "P",
        unit: Unit::Priority,
        meaning: "The priority; higher is more urgent, as with chrt(1)",
        default: "",
    },
    Parameter {
        name: "nice",
        field: "nice",
        symbol: "",
        unit: Unit::Nice,
        meaning: "The nice level, for plugins of kind NICE; lower is more urgent",
        default: "",
    },
    Parameter {
        name: "plugin",
        field: "plugin",
        symbol: "",
        unit: Unit::Name,
        meaning: "The only plugin to ask",
        default: "all, in their order",
    },
    Parameter {
        name: "ignore_admission",
        field: "ignore_admission",
        symbol: "",
        unit: Unit::Flag,
        meaning: "Admit it even if the admission test fails, where the rules allow that",
        default: "",
    },
];

/// One of the [`PARAMETERS`] by its name.
///
/// # Panics
///
/// If there is no such parameter.
pub fn parameter(name: &str) -> &'static Parameter {
    PARAMETERS.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("there is no parameter {name}"))
}

/// The kernel's nice levels.
pub const NICE_LEVELS: std::ops::RangeInclusive<i32> = -20..=19;

/// A nice level; beyond the kernel's is an error.
fn nice_level<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    match Option::<i32>::deserialize(from)? {
        Some(nice) if !NICE_LEVELS.contains(&nice) => {
            Err(serde::de::Error::custom(format_args!("nice is {nice}, but must be -20 to 19")))
        }
        nice => Ok(nice),
    }
}

/// A flag may be null, which means false.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Option::<bool>::deserialize(from).map(Option::unwrap_or_default)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's contract")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Reads parameters in a reply, ignoring unknown ones.
pub(crate) fn known<'de, D: Deserializer<'de>>(from: D) -> Result<Parameters, D::Error> {
    let mut object = serde_json::Map::deserialize(from)?;
    object.retain(|field, _| PARAMETERS.iter().any(|it| it.field == *field));
    Parameters::deserialize(serde_json::Value::Object(object)).map_err(serde::de::Error::custom)
}

/// What the kernel accepts. The daemon reads it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Least runtime of SCHED_DEADLINE: 1,024 ns (`DL_SCALE`).
    pub least_runtime: Duration,
    /// `sched_deadline_period_min_us`.
    pub least_period: Duration,
    /// `sched_deadline_period_max_us`.
    pub greatest_period: Duration,
    /// `sched_get_priority_min/max(2)` of SCHED_FIFO.
    pub priorities: (u32, u32),
}

/// A parameter is out of bounds. The message names the parameter, its value, the bound and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Its field in the protocol: `runtime_ns`, `period_ns`, …
    pub parameter: &'static str,
    /// Its value.
    pub value: u64,
    /// The bound, as text: "at least 1.024 µs (SCHED_DEADLINE's least runtime)".
    pub bound: String,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}, but must be {}", self.parameter, self.value, self.bound)
    }
}

impl std::error::Error for Bound {}

/// The kernel's times are signed; SCHED_DEADLINE refuses times with the top bit set.
const GREATEST: u64 = i64::MAX as u64;

impl Default for Limits {
    /// The kernel's defaults.
    fn default() -> Self {
        Self {
            least_runtime: Reservation::LEAST_RUNTIME,
            least_period: Reservation::PERIODS.0,
            greatest_period: Reservation::PERIODS.1,
            priorities: (1, 99),
        }
    }
}

impl Parameters {
    /// Checks the bounds that hold for every plugin. Returns the first violation, in the order of Table 3.
    pub fn check(&self, limits: &Limits) -> Result<(), Bound> {
        let times = [
            ("runtime_ns", self.runtime),
            ("desired_runtime_ns", self.desired_runtime),
            ("period_ns", self.period),
            ("deadline_ns", self.deadline),
            ("offset_ns", self.offset),
            ("blocking_ns", self.blocking),
        ];
        const MAY_BE_ZERO: [&str; 2] = ["offset_ns", "blocking_ns"];
        for (parameter, time) in times {
            if let Some(time) = time {
                let least = Duration::from_ns(u64::from(!MAY_BE_ZERO.contains(&parameter)));
                at_least(parameter, time, least, "a declared time cannot be zero")?;
                at_most(
                    parameter,
                    time,
                    Duration::from_ns(GREATEST),
                    "the kernel's times are signed 64-bit numbers",
                )?;
            }
        }
        if let Some(runtime) = self.runtime {
            if let Some(desired) = self.desired_runtime {
                at_least("desired_runtime_ns", desired, runtime, "runtime_ns")?;
            }
            if let Some(period) = self.period {
                at_most("runtime_ns", runtime, period, "period_ns")?;
            }
            if let Some(deadline) = self.deadline {
                at_least("deadline_ns", deadline, runtime, "runtime_ns")?;
            }
        }
        if let Some(priority) = self.priority {
            let (least, greatest) = limits.priorities;
            if !(least..=greatest).contains(&priority) {
                let bound =
                    format!("{least} to {greatest} (the kernel's priorities for SCHED_FIFO and SCHED_RR)");
                return Err(Bound { parameter: "priority", value: priority.into(), bound });
            }
        }
        Ok(())
    }

    /// Checks what SCHED_DEADLINE requires beyond [`check`](Self::check): the kernel's `__checkparam_dl`,
    /// with the period as the deadline if none is declared.
    pub fn check_deadline_class(&self, limits: &Limits) -> Result<(), Bound> {
        if let Some(runtime) = self.runtime {
            at_least("runtime_ns", runtime, limits.least_runtime, "SCHED_DEADLINE's least runtime")?;
        }
        if let Some(period) = self.period {
            at_least("period_ns", period, limits.least_period, "sched_deadline_period_min_us")?;
            at_most("period_ns", period, limits.greatest_period, "sched_deadline_period_max_us")?;
            if let Some(deadline) = self.deadline {
                at_most(
                    "deadline_ns",
                    deadline,
                    period,
                    "period_ns; SCHED_DEADLINE has no longer deadlines",
                )?;
            }
        }
        Ok(())
    }

    /// D, or T if no deadline is declared; `None` without either.
    pub fn relative_deadline(&self) -> Option<Duration> {
        self.deadline.or(self.period)
    }
}

fn at_least(parameter: &'static str, value: Duration, least: Duration, whence: &str) -> Result<(), Bound> {
    if value >= least {
        return Ok(());
    }
    Err(Bound { parameter, value: value.ns(), bound: format!("at least {least} ({whence})") })
}

fn at_most(parameter: &'static str, value: Duration, greatest: Duration, whence: &str) -> Result<(), Bound> {
    if value <= greatest {
        return Ok(());
    }
    Err(Bound { parameter, value: value.ns(), bound: format!("at most {greatest} ({whence})") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ns(value: u64) -> Option<Duration> {
        Some(Duration::from_ns(value))
    }

    /// Everything declared, as it goes over the wire.
    fn everything() -> serde_json::Value {
        let all = Parameters {
            runtime: ns(1),
            desired_runtime: ns(1),
            period: ns(1),
            deadline: ns(1),
            offset: ns(1),
            blocking: ns(1),
            priority: Some(1),
            nice: Some(1),
            plugin: Some("RM".into()),
            ignore_admission: true,
        };
        serde_json::to_value(all).expect("JSON")
    }

    #[test]
    fn the_table_has_all_fields() {
        let object = everything();
        let mut fields: Vec<&str> =
            object.as_object().expect("an object").keys().map(String::as_str).collect();
        let mut table: Vec<&str> = PARAMETERS.iter().map(|it| it.field).collect();
        fields.sort_unstable();
        table.sort_unstable();
        assert_eq!(table, fields);
        for it in PARAMETERS {
            let (is_time, unit) = (it.unit == Unit::Time, &it.field[it.name.len()..]);
            assert!(it.field.starts_with(it.name) && unit == if is_time { "_ns" } else { "" }, "{it:?}");
        }
    }

    #[test]
    fn the_interface_lists_the_same_parameters() {
        let fields: Vec<String> =
            PARAMETERS.iter().map(|it| format!("  {}: {}", it.field, it.varlink_type())).collect();
        let declared = format!("type Parameters (\n{}\n)\n", fields.join(",\n"));
        assert!(crate::INTERFACE_TEXT.contains(&declared), "{declared}");
    }

    #[test]
    fn the_document_lists_the_same_parameters() {
        let rows = PARAMETERS.iter().map(|it| {
            let unit = match it.unit {
                Unit::Time => "ns",
                Unit::Priority => "1 to 99",
                Unit::Nice => "-20 to 19",
                Unit::Name => "name",
                Unit::Flag => "true, false",
            };
            format!("| `{}` | {} | {unit} | {} | {} |\n", it.field, it.symbol, it.meaning, it.default)
        });
        let table = format!(
            "| parameter | symbol | value | meaning | default |\n|---|---|---|---|---|\n{}",
            rows.collect::<String>()
        )
        .replace("|  |", "| |")
        .replace("|  |", "| |");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/daemon.md");
        let document = std::fs::read_to_string(path).expect("the document");
        assert!(document.contains(&table), "docs/daemon.md needs:\n{table}");
    }

    fn broken(parameters: Parameters) -> &'static str {
        parameters.check(&Limits::default()).expect_err("a bound is broken").parameter
    }

    #[test]
    fn nice_levels_are_the_kernels() {
        let read = |nice: i64| serde_json::from_value::<Parameters>(serde_json::json!({ "nice": nice }));
        assert_eq!(read(-20).expect("a level").nice, Some(-20));
        assert_eq!(read(19).expect("a level").nice, Some(19));
        for wrong in [-21, 20, 1 << 40] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    fn broken_for_deadline(parameters: Parameters) -> &'static str {
        parameters.check(&Limits::default()).expect("the general bounds hold");
        parameters.check_deadline_class(&Limits::default()).expect_err("a bound is broken").parameter
    }

    #[test]
    fn every_bound_is_named() {
        let p = Parameters::default;
        assert_eq!(broken(Parameters { runtime: ns(0), ..p() }), "runtime_ns");
        assert_eq!(broken(Parameters { period: ns(0), ..p() }), "period_ns");
        assert_eq!(broken(Parameters { deadline: ns(0), ..p() }), "deadline_ns");
        assert_eq!(broken(Parameters { desired_runtime: ns(0), ..p() }), "desired_runtime_ns");
        assert_eq!(broken(Parameters { runtime: ns(11), period: ns(10), ..p() }), "runtime_ns");
        assert_eq!(
            broken(Parameters { runtime: ns(11), desired_runtime: ns(10), ..p() }),
            "desired_runtime_ns"
        );
        assert_eq!(
            broken(Parameters { runtime: ns(11), period: ns(20), deadline: ns(10), ..p() }),
            "deadline_ns"
        );
        assert_eq!(broken(Parameters { period: ns(1 << 63), ..p() }), "period_ns");
        assert_eq!(broken(Parameters { deadline: ns(u64::MAX), ..p() }), "deadline_ns");
        assert_eq!(broken(Parameters { blocking: ns(1 << 63), ..p() }), "blocking_ns");
        assert_eq!(broken(Parameters { offset: ns(1 << 63), ..p() }), "offset_ns");
        assert_eq!(Parameters { offset: ns(0), ..p() }.check(&Limits::default()), Ok(()));
        assert_eq!(Parameters { blocking: ns(0), ..p() }.check(&Limits::default()), Ok(()));
        assert_eq!(broken(Parameters { priority: Some(0), ..p() }), "priority");
        assert_eq!(broken(Parameters { priority: Some(100), ..p() }), "priority");
        let long = Parameters { runtime: ns(GREATEST), period: ns(GREATEST), deadline: ns(GREATEST), ..p() };
        assert_eq!(long.check(&Limits::default()), Ok(()));
    }

    #[test]
    fn what_sched_deadline_refuses_is_refused() {
        let p = Parameters::default;
        assert_eq!(
            broken_for_deadline(Parameters { runtime: ns(1_023), period: ns(1_000_000), ..p() }),
            "runtime_ns"
        );
        assert_eq!(
            broken_for_deadline(Parameters { runtime: ns(1_024), period: ns(99_999), ..p() }),
            "period_ns"
        );
        assert_eq!(
            broken_for_deadline(Parameters { runtime: ns(1_024), period: ns(4_194_304_001), ..p() }),
            "period_ns"
        );
        assert_eq!(
            broken_for_deadline(Parameters { period: ns(1_000_000), deadline: ns(1_000_001), ..p() }),
            "deadline_ns"
        );
    }

    #[test]
    fn messages_name_the_parameter_the_value_and_the_bound() {
        let bound = Parameters { runtime: ns(1_000), ..Parameters::default() }
            .check_deadline_class(&Limits::default())
            .unwrap_err();
        assert_eq!(
            bound.to_string(),
            "runtime_ns is 1000, but must be at least 1.024 µs (SCHED_DEADLINE's least runtime)"
        );
    }

    /// The kernel's own condition, as written there (kernel/sched/deadline.c, `__checkparam_dl`).
    fn checkparam_dl(runtime: u64, deadline: u64, period: u64, limits: &Limits) -> bool {
        deadline != 0
            && runtime >= 1 << 10
            && deadline & (1 << 63) == 0
            && period & (1 << 63) == 0
            && period >= deadline
            && deadline >= runtime
            && (limits.least_period.ns()..=limits.greatest_period.ns()).contains(&period)
    }

    fn time() -> impl Strategy<Value = u64> {
        let around = |centre: u64| (0..5u64).prop_map(move |d| centre.saturating_sub(2).saturating_add(d));
        prop_oneof![
            around(0),
            around(1 << 10),
            around(100_000),
            around(4_194_304_000),
            around(1 << 63),
            around(u64::MAX),
            any::<u64>()
        ]
    }

    proptest! {
        #[test]
        fn exactly_the_parameters_the_kernel_accepts_pass(runtime in time(), deadline in time(),
            period in time()) {
            let limits = Limits::default();
            let parameters = Parameters { runtime: ns(runtime), deadline: ns(deadline), period: ns(period),
                ..Parameters::default() };
            let passes = parameters.check(&limits).is_ok()
                && parameters.check_deadline_class(&limits).is_ok();
            prop_assert_eq!(passes, checkparam_dl(runtime, deadline, period, &limits));
        }
    }
}
