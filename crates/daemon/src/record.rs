//! What a slot of the journal holds of one spec.

use punctual_linux::scheduling::{Clamped, Processors, Scheduling, State};
use punctual_model::Duration;
use punctual_schedule::{ANYWHERE, Assignment, Parameters};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// Greatest size of an encoded record, in bytes.
pub(crate) const ENCODED: usize = 1008;

pub use punctual_protocol::LONGEST_SPEC_NAME as LONGEST_NAME;

/// A spec, so that it can be admitted again exactly as it was, and undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number.
    pub spec: u64,
    /// The UID of its owner.
    pub user: u32,
    /// The owner's GID.
    pub group: u32,
    /// The process it belongs to.
    pub process: u32,
    /// Start time of that process, in clock ticks since boot.
    pub process_start: u64,
    /// The declared parameters.
    #[serde(with = "AllParameters")]
    pub parameters: Parameters,
    /// The plugin that admitted it.
    #[serde(with = "shared_text")]
    pub plugin: Rc<str>,
    /// The client's name for it.
    #[serde(with = "optional_text")]
    pub name: Option<Rc<str>>,
    /// Its processor.
    pub processor: u32,
    /// Q^a.
    pub accepted_runtime: Option<Duration>,
    /// Whether the answer was `partial`.
    pub partial: bool,
    /// Whether the admission test was ignored.
    pub ignored: bool,
    /// Whether Polkit's word was needed.
    pub authorised: bool,
    /// Whether it ends with its thread.
    pub ends_with_thread: bool,
    /// How its thread is scheduled, or would have been when it was admitted.
    pub assigned: Applied,
    /// Its thread.
    pub thread: Option<Attached>,
}

/// A thread, and what is to be undone of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Its number here.
    pub number: u32,
    /// Its TID as the client gave it, perhaps in another PID namespace.
    pub named: u32,
    /// Tells it from others that had its number before, or get it.
    pub identity: u64,
    /// What it was before.
    pub before: State,
    /// The scheduling being set, or last set.
    pub applied: Applied,
    /// The scheduling before that, which holds until the new one is set.
    pub previous: Option<Applied>,
    /// What was done to its utilization clamps.
    pub clamped: Option<Clamped>,
}

/// Scheduling that was set for a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// How.
    pub scheduling: Scheduling,
    /// Its processor, or [`ANYWHERE`].
    pub processor: u32,
}

impl Applied {
    /// What an assignment is to the kernel.
    pub fn new(assignment: Assignment) -> Self {
        Self { scheduling: Scheduling::from_policy(assignment.policy), processor: assignment.processor }
    }

    /// The assignment that it was.
    pub fn assignment(&self) -> Option<Assignment> {
        Some(Assignment { processor: self.processor, policy: self.scheduling.assigned()? })
    }

    /// As the kernel sees it, of a thread that was `before`.
    pub fn state(&self, before: &State) -> Option<State> {
        let processors = match self.processor {
            ANYWHERE => before.processors,
            processor => Processors::one(processor)?,
        };
        Some(State { scheduling: self.scheduling, processors })
    }

    /// Whether the kernel's own admission test has to be off: it pins no thread under SCHED_DEADLINE.
    pub fn needs_lifted_limit(&self) -> bool {
        self.scheduling.is_deadline() && self.processor != ANYWHERE
    }

    /// Whether it needs a processor that does not exist here.
    pub fn is_beyond(&self) -> bool {
        self.processor != ANYWHERE && Processors::one(self.processor).is_none()
    }
}

impl Record {
    /// Writes it; returns how many bytes that are. Names have at most [`LONGEST_NAME`] bytes, so there is
    /// room.
    pub(crate) fn encode(&self, bytes: &mut [u8; ENCODED]) -> usize {
        postcard::to_slice(self, bytes).expect("names are bounded").len()
    }

    /// Reads it; `None` if these bytes are not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

/// Parameters without what JSON leaves out: every field has its place here.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Parameters")]
struct AllParameters {
    runtime: Option<Duration>,
    desired_runtime: Option<Duration>,
    period: Option<Duration>,
    deadline: Option<Duration>,
    offset: Option<Duration>,
    blocking: Option<Duration>,
    priority: Option<u32>,
    nice: Option<i32>,
    plugin: Option<String>,
    ignore_admission: bool,
}

mod shared_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::rc::Rc;

    pub(super) fn serialize<S: Serializer>(text: &Rc<str>, to: S) -> Result<S::Ok, S::Error> {
        text.as_ref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Rc<str>, D::Error> {
        <&str>::deserialize(from).map(Rc::from)
    }
}

mod optional_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::rc::Rc;

    pub(super) fn serialize<S: Serializer>(text: &Option<Rc<str>>, to: S) -> Result<S::Ok, S::Error> {
        text.as_deref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rc<str>>, D::Error> {
        Option::<&str>::deserialize(from).map(|text| text.map(Rc::from))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use punctual_linux::scheduling::Clamps;

    /// As large as a record can be.
    pub(crate) fn example() -> Record {
        let most = Some(Duration::from_ns(u64::MAX));
        let name = "ä".repeat(LONGEST_NAME / 2);
        let mut scheduling = Scheduling::ordinary();
        (scheduling.policy, scheduling.flags, scheduling.nice) = (u32::MAX, u64::MAX, i32::MIN);
        (scheduling.priority, scheduling.runtime_ns) = (u32::MAX, u64::MAX);
        (scheduling.deadline_ns, scheduling.period_ns) = (u64::MAX, u64::MAX);
        let applied = Applied { scheduling, processor: u32::MAX };
        let clamps = Clamps { min: Some(u32::MAX), max: Some(u32::MAX) };
        Record {
            spec: u64::MAX,
            user: u32::MAX,
            group: u32::MAX,
            process: u32::MAX,
            process_start: u64::MAX,
            parameters: Parameters {
                runtime: most,
                desired_runtime: most,
                period: most,
                deadline: most,
                offset: most,
                blocking: most,
                priority: Some(u32::MAX),
                nice: Some(i32::MIN),
                plugin: Some(name.clone()),
                ignore_admission: true,
            },
            plugin: name.as_str().into(),
            name: Some(name.into()),
            processor: u32::MAX,
            accepted_runtime: most,
            partial: true,
            ignored: true,
            authorised: true,
            ends_with_thread: true,
            assigned: applied,
            thread: Some(Attached {
                number: u32::MAX,
                named: u32::MAX,
                identity: u64::MAX,
                before: State { scheduling, processors: Processors::from_words([u64::MAX; 32]) },
                applied,
                previous: Some(applied),
                clamped: Some(Clamped { before: clamps, applied: clamps, previous: clamps }),
            }),
        }
    }

    #[test]
    fn the_largest_record_fits_and_is_read_back() {
        let mut bytes = [0; ENCODED];
        for record in [example(), Record { thread: None, name: None, ..example() }] {
            let length = record.encode(&mut bytes);
            assert_eq!(Record::decode(&bytes[..length]), Some(record));
            assert_eq!(Record::decode(&bytes[..length - 1]), None);
        }
    }
}
