//! `<tid>-<version>.infos.json`: what a thread is.

use super::super::error::Error;
use super::super::notes::Notes;
use crate::{Begin, TaskRecord};
use punctual_model::{Duration, Instant, Policy, Reservation};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// What is known of a thread. Every field may be missing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Infos {
    tgid: Option<u32>,
    comm: String,
    cmd: Value,
    policy: Value,
    affinity_mask: Value,
}

impl Infos {
    /// The one that goes with a file of events; without one, a thread of which nothing is known but its number.
    pub fn read(events: &Path, notes: &mut Notes) -> Result<Infos, Error> {
        let name = events.file_name().unwrap_or_default().to_string_lossy().replace(".events.json", ".infos.json");
        let path = events.with_file_name(&name);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                notes.count("events without infos: name and policy of the thread are not known");
                return Ok(Infos::default());
            }
            Err(error) => return Err(Error::io(&path, &error)),
        };
        serde_json::from_slice(&text).map_err(|error| Error::malformed(&path, format!("it does not say what a thread is: {error}")))
    }

    /// The task that begins; `was` is what the thread was before.
    pub fn task(&self, tid: u32, at: Instant, was: Option<&Infos>) -> TaskRecord {
        let (policy, parameters) = self.policy();
        let number = |name: &str| parameters.get(name).and_then(Value::as_u64);
        TaskRecord {
            tid,
            pid: self.tgid.unwrap_or(tid),
            sequence: 0,
            at,
            begin: was.map_or(Begin::Seen, |was| self.begin(was)),
            name: self.comm.trim().to_owned(),
            command: self.command(),
            policy,
            priority: match policy {
                Policy::Fifo | Policy::Rr => number("prio").and_then(|priority| priority.try_into().ok()).unwrap_or(0),
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
        match () {
            () if self.policy().0 != was.policy().0 => Begin::Policy,
            () if self.policy != was.policy => Begin::Priority,
            () if self.affinity_mask != was.affinity_mask => Begin::Affinity,
            () if self.cmd != was.cmd => Begin::Exec,
            // A version that changes nothing: LiME lost sight of the thread.
            () => Begin::Seen,
        }
    }

    /// `{"SCHED_FIFO":{"prio":60}}`, or the name alone.
    fn policy(&self) -> (Policy, &Value) {
        const NOTHING: &Value = &Value::Null;
        let (name, parameters) = match &self.policy {
            Value::Object(object) => object.iter().next().map_or(("", NOTHING), |(name, parameters)| (name.as_str(), parameters)),
            Value::String(name) => (name.as_str(), NOTHING),
            _ => ("", NOTHING),
        };
        let policy = match name {
            "SCHED_FIFO" => Policy::Fifo,
            "SCHED_RR" => Policy::Rr,
            "SCHED_DEADLINE" => Policy::Deadline,
            "SCHED_BATCH" => Policy::Batch,
            "SCHED_IDLE" => Policy::Idle,
            "SCHED_EXT" => Policy::Ext,
            _ => Policy::Other,
        };
        (policy, parameters)
    }

    fn command(&self) -> String {
        match &self.cmd {
            Value::String(line) => line.trim().to_owned(),
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            _ => String::new(),
        }
    }
}

/// A mask, as a number or in hexadecimal digits, or a list of processors: as a list with ranges.
fn affinity(mask: &Value) -> String {
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
    let range = |(first, last): (u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
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
        assert_eq!(affinity(&Value::Null), "");
    }
}
