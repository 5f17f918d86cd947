//! `<tid>-<version>.infos.json`: what a thread is.

use super::super::error::Error;
use super::super::notes::Notes;
use punctual_model::{Duration, Instant, Policy, Reservation};
use punctual_trace::{Begin, TaskRecord};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Where there is no name or command line.
const UNKNOWN: &str = punctual_model::threads::UNKNOWN_COMMAND;

/// What is known of a thread. Every field may be missing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Infos {
    pid: Option<u32>,
    tgid: Option<u32>,
    comm: Option<String>,
    cmd: Value,
    policy: Value,
    affinity_mask: Value,
    first_event_time: Option<Time>,
}

/// One moment on two clocks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct Time {
    boottime_ns: u64,
    iso8601: String,
}

impl Infos {
    /// The one that goes with a file of events; without one, a thread of which nothing is known but its
    /// number.
    pub fn read(events: &Path, notes: &mut Notes) -> Result<Infos, Error> {
        let name =
            events.file_name().unwrap_or_default().to_string_lossy().replace(".events.json", ".infos.json");
        let path = events.with_file_name(&name);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                notes.count(
                    "events without infos: name and policy of the thread are not known, it is taken \
                    as SCHED_OTHER",
                );
                return Ok(Infos::default());
            }
            Err(error) => return Err(Error::io(&path, &error)),
        };
        let infos: Infos = match serde_json::from_slice(&text) {
            Ok(infos) => infos,
            // LiME writes the infos last: it may have been killed meanwhile.
            Err(error) if error.is_eof() => {
                notes.say(format!(
                    "{name} ends too early: name and policy of the thread are not known, it \
                    is taken as SCHED_OTHER"
                ));
                return Ok(Infos::default());
            }
            Err(error) => {
                return Err(Error::malformed(&path, format!("it does not say what a thread is: {error}")));
            }
        };
        if infos.policy().is_none() {
            notes.count("infos without a policy that is known: shown as SCHED_OTHER");
        }
        Ok(infos)
    }

    /// The real time (nanoseconds since 1970) at the zero of the trace's clock.
    pub fn clock_zero(&self) -> Option<i64> {
        let time = self.first_event_time.as_ref()?;
        unix_ns(&time.iso8601)?.checked_sub_unsigned(time.boottime_ns)
    }

    /// The task that begins; `was` is what the thread was before.
    pub fn task(&self, tid: u32, at: Instant, was: Option<&Infos>) -> TaskRecord {
        let (policy, parameters) = self.policy().unwrap_or((Policy::Other, &Value::Null));
        let number = |name: &str| parameters.get(name).and_then(Value::as_u64);
        TaskRecord {
            tid,
            pid: self.tgid.unwrap_or(tid),
            sequence: 0,
            at,
            begin: was.map_or(Begin::Seen, |was| self.begin(was)),
            name: self.comm.as_deref().unwrap_or(UNKNOWN).trim().to_owned(),
            command: self.command(),
            policy,
            priority: match policy {
                Policy::Fifo | Policy::Rr => {
                    number("prio").and_then(|priority| priority.try_into().ok()).unwrap_or(0)
                }
                _ => 0,
            },
            nice: parameters.get("nice").and_then(Value::as_i64).and_then(|nice| nice.try_into().ok()),
            reservation: (policy == Policy::Deadline).then(|| Reservation {
                runtime_ns: Duration::from_ns(number("runtime").unwrap_or(0)),
                deadline_ns: Duration::from_ns(number("deadline").unwrap_or(0)),
                period_ns: Duration::from_ns(number("period").unwrap_or(0)),
            }),
            affinity: affinity(&self.affinity_mask),
        }
    }

    fn begin(&self, was: &Infos) -> Begin {
        let policy = |infos: &Infos| infos.policy().map(|(policy, _)| policy);
        match () {
            // A number that was used again.
            () if (self.pid, self.tgid) != (was.pid, was.tgid) => Begin::Seen,
            () if policy(self) != policy(was) => Begin::Policy,
            () if self.policy != was.policy => Begin::Priority,
            () if self.affinity_mask != was.affinity_mask => Begin::Affinity,
            () if self.cmd != was.cmd => Begin::Exec,
            // A version that changes nothing: LiME left the thread out for a while.
            () => Begin::Seen,
        }
    }

    /// `{"SCHED_FIFO":{"prio":60}}`, or the name alone.
    fn policy(&self) -> Option<(Policy, &Value)> {
        let (name, parameters) = match &self.policy {
            Value::Object(object) => {
                object.iter().next().map(|(name, parameters)| (name.as_str(), parameters))?
            }
            Value::String(name) => (name.as_str(), &Value::Null),
            _ => return None,
        };
        Some((Policy::from_name(name)?, parameters))
    }

    fn command(&self) -> String {
        match &self.cmd {
            Value::String(line) => line.trim().to_owned(),
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            _ => UNKNOWN.to_owned(),
        }
    }
}

/// `{"cpu_set":[0,1]}`, the list alone, or a mask as a number or in hexadecimal digits: as a list with
/// ranges.
fn affinity(mask: &Value) -> String {
    let mask = mask.get("cpu_set").unwrap_or(mask);
    let processors: Vec<u64> = match mask {
        Value::Array(list) => list.iter().filter_map(Value::as_u64).collect(),
        other => {
            let hexadecimal = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
            let mask = other.as_u64().or_else(|| other.as_str().and_then(hexadecimal)).unwrap_or(0);
            (0..64).filter(|processor| mask >> processor & 1 == 1).collect()
        }
    };
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for processor in processors {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(processor) => *last = processor,
            _ => ranges.push((processor, processor)),
        }
    }
    let range =
        |(first, last): (u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
}

/// `2026-11-21T04:41:00.123456789Z` in nanoseconds since 1970. LiME writes universal time.
fn unix_ns(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let fields = |text: &str, separator| {
        text.splitn(3, separator).map(|field| field.parse::<i64>().ok()).collect::<Option<Vec<_>>>()
    };
    let (time, fraction) = time.split_once(['.', ',']).unwrap_or((time, "0"));
    let &[year, month, day] = fields(date, '-')?.as_slice() else { return None };
    let &[hour, minute, second] = fields(time, ':')?.as_slice() else { return None };
    let in_range = (1970..=2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range
        || !(0..24).contains(&hour)
        || !(0..60).contains(&minute)
        || !(0..=60).contains(&second)
        || fraction.len() > 9
    {
        return None;
    }
    let fraction: i64 = format!("{fraction:0<9}").parse().ok()?;
    // Years begin with March, so that the day that is added now and then is the last of them.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mask_may_be_written_in_several_ways() {
        assert_eq!(affinity(&json!(0b1_0011)), "0-1,4");
        assert_eq!(affinity(&json!("0xf")), "0-3");
        assert_eq!(affinity(&json!([2, 3, 7])), "2-3,7");
        assert_eq!(affinity(&json!({"cpu_set": [0, 1]})), "0-1");
        assert_eq!(affinity(&Value::Null), "");
    }

    #[test]
    fn times_are_those_of_date() {
        assert_eq!(unix_ns("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_ns("2024-02-29T12:34:56.7Z"), Some(1_709_210_096_700_000_000));
        assert_eq!(unix_ns("2026-11-21T04:41:00.123456789Z"), Some(1_795_236_060_123_456_789));
        for wrong in [
            "",
            "2026-11-21",
            "2026-13-01T00:00:00Z",
            "2026-11-21T04:41:00+01:00",
            "x-y-zTa:b:cZ",
            "2026-11-21T04:41:00.1234567890Z",
        ] {
            assert_eq!(unix_ns(wrong), None, "{wrong}");
        }
    }

    /// As LiME writes them, with what it does not know.
    #[test]
    fn infos_of_lime_s() {
        let read = |value: Value| serde_json::from_value::<Infos>(value).expect("infos");
        let infos = read(json!({"pid": 41, "tgid": 40, "ppid": null, "comm": null, "cmd": null,
            "policy": "SCHED_OTHER", "affinity_mask": null, "last_event_time": null,
            "first_event_time": {"boottime_ns": 1_000, "iso8601": "1970-01-01T00:00:01.000000000Z"}}));
        let task = infos.task(41, Instant::from_ns(5), None);
        let known =
            (task.pid, task.name.as_str(), task.command.as_str(), task.policy, task.affinity.as_str());
        assert_eq!(known, (40, UNKNOWN, UNKNOWN, Policy::Other, ""));
        assert_eq!(infos.clock_zero(), Some(999_999_000));
        let deadline = json!({"SCHED_DEADLINE": {"runtime": 1, "period": 3, "deadline": 2}});
        let later = Infos { policy: deadline, ..infos.clone() };
        let task = later.task(41, Instant::from_ns(9), Some(&infos));
        assert_eq!(
            (task.begin, task.reservation.map(|reservation| reservation.period_ns)),
            (Begin::Policy, Some(Duration::from_ns(3)))
        );
        assert_eq!(infos.task(41, Instant::from_ns(9), Some(&infos)).begin, Begin::Seen);
        assert!(read(json!({"policy": "UNKNOWN"})).policy().is_none());
    }
}
