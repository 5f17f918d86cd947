//! What goes over the socket, as types: `crates/daemon/interfaces/io.punctual.Scheduler1.varlink` in Rust.

use punctual_model::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// The name of the interface, and what its methods begin with.
pub(crate) const INTERFACE: &str = "io.punctual.Scheduler1";

/// The daemon's number for a spec; never used again while the daemon runs.
pub type SpecId = u64;

/// What may be declared of a task. Which of them a plugin needs is its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Q: what a job takes at most.
    #[serde(rename = "runtime_ns", default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Duration>,
    /// Q^d ≥ Q: what a job would like to have.
    #[serde(rename = "desired_runtime_ns", default, skip_serializing_if = "Option::is_none")]
    pub desired_runtime: Option<Duration>,
    /// T: the least distance of two releases.
    #[serde(rename = "period_ns", default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Duration>,
    /// D: from a release to the latest end; the period, if not given.
    #[serde(rename = "deadline_ns", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// P: higher is more urgent, as with `sched_setscheduler(2)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// The one plugin to ask; all in their order, if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Take it even if the admission test says no, where the rules allow that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_admission: Option<bool>,
}

/// Whether a recommended parameter was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Everything that the plugin wants to know was declared.
    Ok,
    /// Admitted, though a recommended parameter is missing.
    Partial,
}

/// The kernel's scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
}

/// What was admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// The spec that it is about.
    pub spec: SpecId,
    /// The plugin that took it.
    pub plugin: String,
    /// Whether a recommended parameter was missing.
    pub answer: Answer,
    /// Whether the admission test said no, and was ignored as asked.
    pub admission_ignored: bool,
    /// The processor that its thread is pinned to.
    pub processor: u32,
    /// Q^a, where a runtime was declared.
    #[serde(rename = "accepted_runtime_ns", default, skip_serializing_if = "Option::is_none")]
    pub accepted_runtime: Option<Duration>,
    /// How its thread is scheduled.
    pub policy: Policy,
    /// The priority under SCHED_FIFO and SCHED_RR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_priority: Option<u32>,
}

/// A spec as the daemon knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// What was admitted, as it is now.
    pub admission: Admission,
    /// The name that its creator gave it.
    #[serde(default)]
    pub name: Option<String>,
    /// What was declared.
    pub parameters: Parameters,
    /// Whose it is.
    pub user: u32,
    /// The process that it lives with.
    pub process: u32,
    /// The attached thread.
    #[serde(default)]
    pub thread: Option<u32>,
    /// How that is scheduled, in words, where somebody else has changed it since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_is: Option<String>,
}

/// What a processor carries on behalf of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Its number.
    pub number: u32,
    /// Sum of Q^a / min(T, D) over the specs that declare both.
    pub utilization: f64,
    /// How many specs.
    pub specs: u32,
}

/// A plugin as configured, with its books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plugin {
    /// Its name in the configuration.
    pub name: String,
    /// What it is: `edf`, `rm`, …, or a shared object.
    pub kind: String,
    /// Its admission test.
    pub admission: String,
    /// The least priority that it gives.
    pub priority_min: u32,
    /// The greatest.
    pub priority_max: u32,
    /// The utilization that it fills a processor to.
    pub threshold: f64,
    /// The processors that it has.
    pub processors: Vec<Processor>,
}

/// A process that is connected, or has specs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    /// Its number.
    pub process: u32,
    /// Whose it is.
    pub user: u32,
    /// How many specs it has.
    pub specs: u32,
    /// Its command.
    pub command: String,
}

/// How the daemon is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Since when it runs, on CLOCK_MONOTONIC.
    #[serde(rename = "since_ns")]
    pub since: Instant,
    /// How many specs there are.
    pub specs: u32,
    /// How many clients.
    pub clients: u32,
    /// How many specs have a thread.
    pub attached: u32,
    /// Why the last configuration was not taken over; `None` if it was.
    #[serde(default)]
    pub last_reload_error: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Call<'a, P> {
    pub method: &'a str,
    pub parameters: P,
}

#[derive(Serialize)]
pub(crate) struct NoParameters {}

#[derive(Serialize)]
pub(crate) struct CreateSpec<'a> {
    pub parameters: &'a Parameters,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct ChangeSpec<'a> {
    pub spec: SpecId,
    pub parameters: &'a Parameters,
}

#[derive(Serialize)]
pub(crate) struct OfSpec {
    pub spec: SpecId,
}

#[derive(Serialize)]
pub(crate) struct AttachThread {
    pub spec: SpecId,
    pub thread: u32,
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

#[derive(Deserialize)]
pub(crate) struct OneAdmission {
    pub admission: Admission,
}

#[derive(Deserialize)]
pub(crate) struct OneSpec {
    pub spec: Spec,
}

#[derive(Deserialize)]
pub(crate) struct Specs {
    pub specs: Vec<Spec>,
}

#[derive(Deserialize)]
pub(crate) struct Plugins {
    pub plugins: Vec<Plugin>,
}

#[derive(Deserialize)]
pub(crate) struct Clients {
    pub clients: Vec<ClientInfo>,
}
