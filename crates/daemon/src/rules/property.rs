//! The conditions that rules can set (ReTiF, Table 5), declared once: key, unit, what they are about.

use crate::access::Share;
use punctual_model::Duration;
use punctual_schedule::Parameters;
use std::fmt;

/// A condition with its value.
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
    /// The least nice level.
    MinNice(i32),
    /// I.
    IgnoreAdmission(bool),
    /// Seeing the specs of all users, and reporting what their threads took.
    Observe(bool),
}

/// The value of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Value {
    /// In the file a decimal number of processors.
    Share(Share),
    /// In the file whole microseconds.
    Time(Duration),
    /// One of the kernel's.
    Priority(u32),
    /// One of the kernel's.
    Nice(i32),
    /// `true` or `false`.
    Flag(bool),
}

/// Which values a condition admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// None below its own.
    Least,
    /// None above its own.
    Greatest,
}

/// How the value of a condition is read, and the property that it makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Make {
    Share(fn(Share) -> Property),
    Time(fn(Duration) -> Property),
    Priority(fn(u32) -> Property),
    Nice(fn(i32) -> Property),
    Flag(fn(bool) -> Property),
}

/// One condition.
#[derive(Debug)]
pub struct Condition {
    /// The key in the file.
    pub key: &'static str,
    /// The unit in the file.
    pub unit: &'static str,
    /// What it applies to.
    pub applies_to: &'static str,
    /// Which side it bounds.
    pub side: Side,
    pub(super) make: Make,
    /// The declared value that it bounds; `None` where a request declares none, or where the condition is
    /// about more than one value.
    pub(super) declared: fn(&Parameters) -> Option<Value>,
}

/// All conditions, in the order of the document.
pub const CONDITIONS: [Condition; 11] = [
    Condition {
        key: "max_utilization",
        unit: "processors, above 0",
        applies_to: "the sum of accepted runtime / min(period, deadline) over all specs of the rule's domain \
                     and plugin",
        side: Side::Greatest,
        make: Make::Share(Property::MaxUtilization),
        declared: |_| None,
    },
    Condition {
        key: "max_runtime",
        unit: "µs",
        applies_to: "the runtime; a longer desired runtime is cut, not refused",
        side: Side::Greatest,
        make: Make::Time(Property::MaxRuntime),
        declared: |it| it.runtime.map(Value::Time),
    },
    Condition {
        key: "min_period",
        unit: "µs",
        applies_to: "the period",
        side: Side::Least,
        make: Make::Time(Property::MinPeriod),
        declared: |it| it.period.map(Value::Time),
    },
    Condition {
        key: "max_period",
        unit: "µs",
        applies_to: "the period",
        side: Side::Greatest,
        make: Make::Time(Property::MaxPeriod),
        declared: |it| it.period.map(Value::Time),
    },
    Condition {
        key: "min_deadline",
        unit: "µs",
        applies_to: "the deadline, or the period if none is declared",
        side: Side::Least,
        make: Make::Time(Property::MinDeadline),
        declared: |it| it.relative_deadline().map(Value::Time),
    },
    Condition {
        key: "max_deadline",
        unit: "µs",
        applies_to: "the deadline, or the period if none is declared",
        side: Side::Greatest,
        make: Make::Time(Property::MaxDeadline),
        declared: |it| it.relative_deadline().map(Value::Time),
    },
    Condition {
        key: "min_priority",
        unit: "the kernel's, 1 to 99",
        applies_to: "the declared priority",
        side: Side::Least,
        make: Make::Priority(Property::MinPriority),
        declared: |it| it.priority.map(Value::Priority),
    },
    Condition {
        key: "max_priority",
        unit: "the kernel's, 1 to 99",
        applies_to: "the declared priority",
        side: Side::Greatest,
        make: Make::Priority(Property::MaxPriority),
        declared: |it| it.priority.map(Value::Priority),
    },
    Condition {
        key: "min_nice",
        unit: "the kernel's, -20 to 19",
        applies_to: "the declared nice level: lower is more urgent",
        side: Side::Least,
        make: Make::Nice(Property::MinNice),
        declared: |it| it.nice.map(Value::Nice),
    },
    Condition {
        key: "ignore_adm_test",
        unit: "`true`, `false`",
        applies_to: "whether a spec may be admitted that fails the admission test. Beware: it takes from all \
                     others. Denied unless a rule says `true`; a rule that says `false` opens no door",
        side: Side::Greatest,
        make: Make::Flag(Property::IgnoreAdmission),
        declared: |it| Some(Value::Flag(it.ignore_admission)),
    },
    Condition {
        key: "observe",
        unit: "`true`, `false`",
        applies_to: "whether the specs of all users may be listed, and what their threads took be reported: \
                     for `punctual watch`. It opens no door to anything else, and limits nothing",
        side: Side::Greatest,
        make: Make::Flag(Property::Observe),
        declared: |_| None,
    },
];

impl Property {
    /// Its row of the table.
    pub fn condition(self) -> &'static Condition {
        &CONDITIONS[match self {
            Property::MaxUtilization(_) => 0,
            Property::MaxRuntime(_) => 1,
            Property::MinPeriod(_) => 2,
            Property::MaxPeriod(_) => 3,
            Property::MinDeadline(_) => 4,
            Property::MaxDeadline(_) => 5,
            Property::MinPriority(_) => 6,
            Property::MaxPriority(_) => 7,
            Property::MinNice(_) => 8,
            Property::IgnoreAdmission(_) => 9,
            Property::Observe(_) => 10,
        }]
    }

    /// Its value.
    pub fn value(self) -> Value {
        match self {
            Property::MaxUtilization(share) => Value::Share(share),
            Property::MaxRuntime(time)
            | Property::MinPeriod(time)
            | Property::MaxPeriod(time)
            | Property::MinDeadline(time)
            | Property::MaxDeadline(time) => Value::Time(time),
            Property::MinPriority(priority) | Property::MaxPriority(priority) => Value::Priority(priority),
            Property::MinNice(nice) => Value::Nice(nice),
            Property::IgnoreAdmission(may) | Property::Observe(may) => Value::Flag(may),
        }
    }

    /// The key in the file.
    pub fn key(self) -> &'static str {
        self.condition().key
    }

    /// Whether a rule with it allows specs by itself. One that only forbids does not: `bob -
    /// ignore_adm_test false` does not let bob in; nor one that lets him see those of others.
    pub fn allows(self) -> bool {
        !matches!(self, Property::IgnoreAdmission(false) | Property::Observe(_))
    }

    /// Whether it is at least as strict as another of the same condition.
    pub fn is_within(self, other: Property) -> bool {
        self.key() == other.key() && self.condition().side.admits(other.value(), self.value())
    }

    /// Whether no value satisfies both: a least one above a greatest one.
    pub(super) fn excludes(self, other: Property) -> bool {
        let bounded = |it: Property| it.key().split_once('_').map_or("", |(_, what)| what);
        let (least, greatest) = match (self.condition().side, other.condition().side) {
            (Side::Least, Side::Greatest) => (self, other),
            (Side::Greatest, Side::Least) => (other, self),
            _ => return false,
        };
        bounded(least) == bounded(greatest) && least.value() > greatest.value()
    }
}

impl Side {
    /// Whether a bound at `bound` admits `value`.
    pub(super) fn admits(self, bound: Value, value: Value) -> bool {
        match self {
            Side::Least => value >= bound,
            Side::Greatest => value <= bound,
        }
    }
}

/// The value with its unit, for people.
impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Share(share) => f.write_str(&decimal(*share)),
            Value::Time(time) => f.write_str(&microseconds(*time)),
            Value::Priority(priority) => write!(f, "{priority}"),
            Value::Nice(nice) => write!(f, "{nice}"),
            Value::Flag(flag) => write!(f, "{flag}"),
        }
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
pub(super) fn decimal(share: Share) -> String {
    let text = format!("{:.6}", share.0 as f64 / Share::ONE.0 as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_property_has_its_row() {
        for condition in &CONDITIONS {
            let property = match condition.make {
                Make::Share(make) => make(Share::ONE),
                Make::Time(make) => make(Duration::from_us(1)),
                Make::Priority(make) => make(1),
                Make::Nice(make) => make(1),
                Make::Flag(make) => make(true),
            };
            assert_eq!(property.key(), condition.key);
            let side = if condition.key.starts_with("min_") { Side::Least } else { Side::Greatest };
            assert_eq!(condition.side, side, "{}", condition.key);
        }
    }

    #[test]
    fn the_document_and_the_installed_file_list_all_conditions() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/daemon.md");
        let document = std::fs::read_to_string(path).expect("the document");
        // Conditions about the same have one row.
        let mut rows: Vec<(String, &Condition)> = Vec::new();
        for condition in &CONDITIONS {
            match rows.iter_mut().find(|(_, other)| other.applies_to == condition.applies_to) {
                Some((keys, _)) => *keys += &format!(", `{}`", condition.key),
                None => rows.push((format!("`{}`", condition.key), condition)),
            }
            assert!(crate::rules::DEFAULT_TEXT.contains(condition.key), "rules.conf lacks {}", condition.key);
        }
        for (keys, Condition { unit, applies_to, .. }) in rows {
            let row = format!("| {keys} | {unit} | {applies_to} |\n");
            assert!(document.contains(&row), "docs/daemon.md needs:\n{row}");
        }
    }
}
