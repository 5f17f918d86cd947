//! What punctuald and a running dispatcher of a time-triggered table say to each other: JSON, a line each,
//! one reply for each request, in order. Both are root; no other user may connect.
//!
//! A *guest* is an aperiodic job or a periodic task that runs in the slack of the table. It is reserved by
//! the admission test, confirmed when its spec is admitted, and ends when it is released or its slots are
//! over.

use punctual_model::Duration;
use serde::{Deserialize, Serialize};

/// Where dispatchers listen: each in a file that is named by its process, with [`SUFFIX`].
pub const FOLDER: &str = "/run/punctual-tt";

/// What follows the number of the process.
pub const SUFFIX: &str = ".guests";

/// The dispatcher's number for a guest; not reused while it runs.
pub type GuestId = u64;

/// What a dispatcher is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Test whether a guest can be guaranteed, and take its slots if it can. Given back unless it is
    /// confirmed soon, over the same connection.
    Reserve(Reservation),
    /// A spec is admitted: the guest stays when the connection ends. Also for a guest of a connection that
    /// has ended, which is this one's from now on.
    Confirm {
        /// The guest.
        guest: GuestId,
        /// The spec, by which a later connection finds it.
        spec: u64,
    },
    /// Give a guest's slots to this thread.
    Bind {
        /// The guest.
        guest: GuestId,
        /// The thread, in the PID namespace of both.
        thread: u32,
    },
    /// Put the guest's thread back to what it was. The guest keeps its slots.
    Unbind {
        /// The guest.
        guest: GuestId,
    },
    /// Give back all slots that it has not had, and put its thread back.
    Release {
        /// The guest.
        guest: GuestId,
    },
    /// List the confirmed guests of connections that have ended.
    List,
}

/// What a guest needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// Processor time of a job.
    pub runtime_ns: Duration,
    /// From now, or from each release, to the end of the job; the period if it has one and nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Duration>,
    /// The time between two releases; without, it is one job, released now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<Duration>,
    /// From the beginning of the table to the first release of a periodic task.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub offset_ns: Duration,
}

/// What a dispatcher replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// It is guaranteed.
    Reserved(Place),
    /// It is not.
    Refused {
        /// Why, in words.
        reason: String,
        /// The earliest deadline that would have been accepted; none if there is none within sight.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        earliest_deadline_ns: Option<Duration>,
    },
    /// It is done.
    Done,
    /// It cannot be done; why, in words.
    Failed {
        /// Why.
        reason: String,
    },
    /// The guests.
    Guests {
        /// In the order in which they came.
        guests: Vec<Confirmed>,
    },
}

/// Where a guest runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its number.
    pub guest: GuestId,
    /// The processor that its thread runs on.
    pub processor: u32,
    /// The priority of its thread in its slots under SCHED_FIFO; none: by sched_ext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

/// A guest that was confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// Where it runs.
    pub place: Place,
    /// Its spec.
    pub spec: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_objects_with_their_names() {
        let reserve = json!({
            "request": "reserve", "runtime_ns": 10_000_000, "deadline_ns": 50_000_000
        });
        let read: Request = serde_json::from_value(reserve.clone()).expect("a request");
        assert_eq!(serde_json::to_value(&read).expect("JSON"), reserve);
        let reply = json!({ "reply": "reserved", "guest": 3, "processor": 1, "priority": 80 });
        let read: Reply = serde_json::from_value(reply.clone()).expect("a reply");
        assert_eq!(serde_json::to_value(&read).expect("JSON"), reply);
    }
}
