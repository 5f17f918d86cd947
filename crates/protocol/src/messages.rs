//! Requests and replies.
//!
//! The daemon reads requests strictly; clients ignore unknown fields of replies.

use crate::Parameters;
use punctual_model::{Duration, Instant, Policy};
use serde::{Deserialize, Deserializer, Serialize};

/// The daemon's number for a spec; not reused while the daemon runs.
pub type SpecId = u64;

/// The most bytes of a spec's name.
pub const LONGEST_SPEC_NAME: usize = 64;

/// Whether a recommended parameter was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// All parameters that the plugin recommends were declared.
    Ok,
    /// Admitted, though a recommended parameter is missing.
    Partial,
}

/// What was admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// The spec.
    pub spec: SpecId,
    /// The plugin that admitted it.
    pub plugin: String,
    /// Whether a recommended parameter was missing.
    pub answer: Answer,
    /// Whether the admission test failed and was ignored on request.
    pub admission_ignored: bool,
    /// The processor that its thread is pinned to; `None` if it stays where it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<u32>,
    /// Q^a, if a runtime was declared.
    #[serde(rename = "accepted_runtime_ns", default, skip_serializing_if = "Option::is_none")]
    pub accepted_runtime: Option<Duration>,
    /// How its thread is scheduled.
    #[serde(with = "punctual_model::policy::lowercase")]
    pub policy: Policy,
    /// The priority under SCHED_FIFO and SCHED_RR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_priority: Option<u32>,
    /// The nice level under SCHED_OTHER.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_nice: Option<i32>,
    /// How much later its first budget begins, because ended specs have used that time. Until then its
    /// thread is scheduled as before, and under SCHED_DEADLINE not attached.
    #[serde(rename = "begins_in_ns", default, skip_serializing_if = "Option::is_none")]
    pub begins_in: Option<Duration>,
}

/// A spec as the daemon knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The current admission.
    pub admission: Admission,
    /// The name that its creator gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What was declared.
    #[serde(deserialize_with = "crate::parameters::known")]
    pub parameters: Parameters,
    /// The UID of its owner.
    pub user: u32,
    /// The process it belongs to.
    pub process: u32,
    /// The attached thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// How that thread is scheduled, as text, if others have changed it since; or why the daemon has detached
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_is: Option<String>,
    /// What that thread really took, if someone watches it. Nothing depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub used: Option<Used>,
    /// How that thread keeps to its runtime, if the daemon holds it to that, or did until it detached it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced: Option<Enforced>,
    /// What the program itself says of its periodic loop, if it does. Nothing depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<Says>,
}

/// What a program says of its periodic loop, since that began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Says {
    /// Number of jobs that have ended.
    pub jobs: u64,
    /// Number of them that ended after their deadline.
    pub misses: u64,
    /// The longest time from a release to the end of its job.
    #[serde(rename = "worst_response_ns")]
    pub worst_response: Duration,
}

/// How a thread keeps to its runtime, measured by the daemon since it was attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// Number of jobs: activations that begin at least a period after the one before.
    pub jobs: u64,
    /// The greatest processor time of one of them.
    #[serde(rename = "worst_cost_ns")]
    pub worst_cost: Duration,
    /// Number of budgets, one for each period, that were exceeded.
    pub overruns: u64,
    /// Number of activations that ended later than the deadline after they could run; at least.
    pub misses: u64,
    /// Whether it is demoted now, until its next budget.
    pub demoted: bool,
    /// For how long still.
    #[serde(rename = "demoted_for_ns", default, skip_serializing_if = "Option::is_none")]
    pub demoted_for: Option<Duration>,
    /// How often someone else changed its scheduling, and the daemon put it back.
    pub put_back: u64,
    /// Why it is not held to its runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Reads [`Used`] in a reply, where unknown fields are ignored.
fn lenient<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Used>, D::Error> {
    #[derive(Deserialize)]
    struct Told {
        jobs: u64,
        #[serde(rename = "worst_cost_ns")]
        worst_cost: Duration,
        overruns: u64,
        #[serde(default)]
        misses: Option<u64>,
    }
    let told = Option::<Told>::deserialize(from)?;
    Ok(told.map(|Told { jobs, worst_cost, overruns, misses }| Used { jobs, worst_cost, overruns, misses }))
}

/// What a spec's thread really took, by who observed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    /// Number of jobs.
    pub jobs: u64,
    /// The greatest processor time of one of them.
    #[serde(rename = "worst_cost_ns")]
    pub worst_cost: Duration,
    /// Number of jobs that took more than the accepted runtime.
    pub overruns: u64,
    /// Number of jobs that ended later than the deadline after their release, if that was observed; at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<u64>,
}

/// A processor's load from a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Its number.
    pub number: u32,
    /// Sum of Q^a / min(T, D) over the specs that declare both.
    pub utilization: f64,
    /// Number of specs.
    pub specs: u32,
}

/// A plugin: its configuration and loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plugin {
    /// Its name in the configuration.
    pub name: String,
    /// Its kind: `edf`, `rm`, …, or a shared object.
    pub kind: String,
    /// Its admission test.
    pub admission: String,
    /// The lowest priority it assigns.
    pub priority_min: u32,
    /// The highest priority it assigns.
    pub priority_max: u32,
    /// The greatest utilization of a processor.
    pub threshold: f64,
    /// Its processors.
    pub processors: Vec<Processor>,
    /// Why what it admits may not be schedulable: what it counts for the kernel may not be true of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A process that is connected, or has specs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    /// Its number.
    pub process: u32,
    /// The UID of its owner.
    pub user: u32,
    /// Number of its specs.
    pub specs: u32,
    /// Its command.
    pub command: String,
}

/// The daemon's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it started, on CLOCK_MONOTONIC.
    #[serde(rename = "since_ns")]
    pub since: Instant,
    /// Number of specs.
    pub specs: u32,
    /// Number of clients.
    pub clients: u32,
    /// Number of specs with a thread.
    pub attached: u32,
    /// Why the last reload of the configuration failed; `None` if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reload_error: Option<String>,
}

/// The reply of `Count`: how many items the lists have for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Of `ListSpecs`.
    pub specs: u32,
    /// Of `ListPlugins`.
    pub plugins: u32,
    /// Of `ListClients`.
    pub clients: u32,
}

/// The parameters of `CreateSpec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateSpec {
    /// The timing needs.
    pub parameters: Parameters,
    /// A name for lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The process that it belongs to and ends with, in the PID namespace of the client: another one of the
    /// same user, or, for root, any. The client's own, if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Whether Polkit may ask the user, where the rules leave the request to Polkit.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub interactive: bool,
}

/// The parameters of `ChangeSpec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// The spec to change.
    pub spec: SpecId,
    /// All its new parameters.
    pub parameters: Parameters,
    /// Whether Polkit may ask the user, where the rules leave the request to Polkit.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub interactive: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A flag may be null, which means false.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Option::<bool>::deserialize(from).map(Option::unwrap_or_default)
}

/// The parameters of `ReplaceSpecs`: one change of mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaceSpecs {
    /// Specs to release.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub release: Vec<SpecId>,
    /// Specs with new parameters; their threads stay attached.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<ChangeSpec>,
    /// New specs.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub create: Vec<CreateSpec>,
}

/// A list may be null, which means empty.
fn or_none<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(from).map(Option::unwrap_or_default)
}

/// The reply of `ReplaceSpecs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// Of the changed specs and then of the new ones, in their order.
    pub admissions: Vec<Admission>,
}

/// The parameters of `AttachThread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachThread {
    /// The spec to schedule it by.
    pub spec: SpecId,
    /// The TID, in the PID namespace of the client.
    pub thread: u32,
}

/// The parameters of `ReportUse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportUse {
    /// The spec.
    pub spec: SpecId,
    /// Its thread: the TID, in the PID namespace of the client. Says which thread was observed.
    pub thread: u32,
    /// What the thread took since it was attached, or since it has been watched.
    pub used: Used,
}

/// The parameters of `ReleaseSpec`, `DetachThread`, `ShareLoop` and `GetSpec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecNumber {
    /// The spec.
    pub spec: SpecId,
}

/// The parameters of methods and replies without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoParameters {}

/// The reply of `CreateSpec`, `ChangeSpec` and `AttachThread`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// What was admitted.
    pub admission: Admission,
}

/// The reply of `GetSpec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecReply {
    /// The spec.
    pub spec: Spec,
}

/// The reply of `ListSpecs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecList {
    /// In the order of their numbers.
    pub specs: Vec<Spec>,
}

/// The reply of `ListPlugins`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginList {
    /// In the order in which they are asked.
    pub plugins: Vec<Plugin>,
}

/// The reply of `ListClients`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientList {
    /// In the order in which they connected.
    pub clients: Vec<ClientInfo>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec() -> Value {
        json!({
            "admission": {
                "spec": 7, "plugin": "RM", "answer": "partial", "admission_ignored": false, "processor": 1,
                "policy": "fifo", "policy_priority": 30
            },
            "name": "audio",
            "parameters": {"period_ns": 10_000_000, "ignore_admission": true},
            "user": 1000,
            "process": 12,
            "thread": 13
        })
    }

    #[test]
    fn a_spec_is_written_as_it_was_read() {
        let read: Spec = serde_json::from_value(spec()).expect("a spec");
        assert_eq!(read.parameters.period, Some(Duration::from_ms(10)));
        assert!(read.parameters.ignore_admission);
        assert_eq!(serde_json::to_value(&read).expect("JSON"), spec());
    }

    /// A later daemon may send more fields.
    #[test]
    fn unknown_fields_are_accepted_in_replies_and_refused_in_requests() {
        let mut later = spec();
        later["colour"] = json!("red");
        later["parameters"]["jitter_ns"] = json!(7);
        later["used"] = json!({"jobs": 3, "worst_cost_ns": 2, "overruns": 1, "misses": 2, "colour": "red"});
        let used = Some(Used { jobs: 3, worst_cost: Duration::from_ns(2), overruns: 1, misses: Some(2) });
        assert_eq!(
            serde_json::from_value::<Spec>(later).expect("a spec"),
            Spec { used, ..serde_json::from_value::<Spec>(spec()).expect("a spec") }
        );
        let create = json!({"parameters": {"jitter_ns": 7}});
        let error = serde_json::from_value::<CreateSpec>(create).expect_err("an unknown parameter");
        assert!(error.to_string().contains("jitter_ns"), "{error}");
    }

    #[test]
    fn null_is_read_as_absent() {
        let create = json!({
            "parameters": {"period_ns": null, "ignore_admission": null}, "name": null, "interactive": null
        });
        let read: CreateSpec = serde_json::from_value(create).expect("a request");
        let (parameters, interactive) = (Parameters::default(), false);
        assert_eq!(read, CreateSpec { parameters, name: None, process: None, interactive });
    }
}
