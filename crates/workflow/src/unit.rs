//! The section `[X-Punctual]` of a systemd unit and its drop-ins: what the unit's main process needs in time.
//!
//! Its keys are the parameters of a spec, as systemd writes keys: `Period=10ms`, `DesiredRuntime=3ms`.

use punctual_client::{PARAMETERS, Parameters, Unit};
use punctual_model::Duration;
use serde_json::{Map, Value, json};

const SECTION: &str = "[X-Punctual]";

/// What a unit declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For its main process's first thread.
    pub parameters: Parameters,
    /// Whether the unit fails if it is not admitted (`Required=`, yes by default).
    pub required: bool,
}

/// Reads a unit's files, one after the other, as `systemctl cat` prints them: later assignments win, and an
/// empty one takes an earlier one back. `None` without the section. Errors name the line.
pub fn timing(text: &str) -> Result<Option<Timing>, String> {
    let (mut inside, mut found, mut required) = (false, false, true);
    let mut fields = Map::new();
    for line in text.lines().map(str::trim) {
        match line.chars().next() {
            None | Some('#' | ';') => {}
            Some('[') => {
                inside = line == SECTION;
                found |= inside;
            }
            _ if !inside => {}
            _ => {
                let wrong = |why: &str| format!("{line}: {why}");
                let (key, value) = line.split_once('=').ok_or_else(|| wrong("expected KEY=VALUE"))?;
                let (key, value) = (key.trim(), value.trim());
                if key == "Required" {
                    required = flag(value).ok_or_else(|| wrong("expected yes or no"))?;
                    continue;
                }
                let parameter = PARAMETERS.iter().find(|it| name(it.name) == key).ok_or_else(|| {
                    let keys: Vec<String> = PARAMETERS.iter().map(|it| name(it.name)).collect();
                    wrong(&format!("there is no such key; there are {} and Required", keys.join(", ")))
                })?;
                let value = match value {
                    "" => Value::Null,
                    value => read(parameter.unit, value).map_err(wrong)?,
                };
                fields.insert(parameter.field.to_owned(), value);
            }
        }
    }
    if !found {
        return Ok(None);
    }
    let parameters = serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
    Ok(Some(Timing { parameters, required }))
}

/// `desired_runtime` is `DesiredRuntime` in units.
fn name(parameter: &str) -> String {
    let capitalized = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    };
    parameter.split('_').map(capitalized).collect()
}

fn flag(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Some(true),
        "no" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn read(unit: Unit, value: &str) -> Result<Value, &'static str> {
    Ok(match unit {
        Unit::Time => {
            let span = humantime::parse_duration(value);
            let span = span.map_err(|_| "expected a number with a unit, such as 10ms or 250us")?;
            let ns = u64::try_from(span.as_nanos()).map_err(|_| "expected less than 584 years")?;
            json!(Duration::from_ns(ns))
        }
        Unit::Priority => json!(value.parse::<u32>().map_err(|_| "expected a priority, 1 to 99")?),
        Unit::Nice => json!(value.parse::<i32>().map_err(|_| "expected a nice level, -20 to 19")?),
        Unit::Flag => json!(flag(value).ok_or("expected yes or no")?),
        Unit::Name => json!(value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: &str = "# /etc/systemd/system/control.service\n[Service]\nExecStart=/bin/control\nNice=5\n\n\
        # /etc/systemd/system/control.service.d/timing.conf\n[X-Punctual]\nPeriod=10ms\nRuntime=2ms\n\
        Priority = 7\n; a comment\n# another one\n\n\
        # /etc/systemd/system/control.service.d/zz.conf\n[X-Punctual]\nRuntime=2500us\nPriority=\n\
        IgnoreAdmission=no\nRequired=no\n[Service]\nRestart=no\n";

    #[test]
    fn drop_ins_add_to_each_other() {
        let ms = |ms| Some(Duration::from_ms(ms));
        let runtime = Some(Duration::from_us(2_500));
        let parameters = Parameters { period: ms(10), runtime, ..Parameters::default() };
        assert_eq!(timing(UNIT), Ok(Some(Timing { parameters, required: false })));
        assert_eq!(timing("[Service]\nPeriod=1\n"), Ok(None), "another section");
    }

    #[test]
    fn every_parameter_has_a_key() {
        for parameter in &PARAMETERS {
            let value = match parameter.unit {
                Unit::Time => "1ms",
                Unit::Priority | Unit::Nice => "1",
                Unit::Name => "RM",
                Unit::Flag => "yes",
            };
            let text = format!("[X-Punctual]\n{}={value}\n", name(parameter.name));
            let read = timing(&text).expect("it is read").expect("there is a section");
            let written = serde_json::to_value(&read.parameters).expect("JSON");
            assert!(written.get(parameter.field).is_some(), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (line, why) in [
            ("Period=10", "expected a number with a unit"),
            ("Priority=high", "expected a priority"),
            ("Nice=-30", "nice is -30"),
            ("Budget=1ms", "there are Runtime, DesiredRuntime"),
            ("IgnoreAdmission=maybe", "expected yes or no"),
            ("Period", "expected KEY=VALUE"),
        ] {
            let error = timing(&format!("[X-Punctual]\n{line}\n")).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
