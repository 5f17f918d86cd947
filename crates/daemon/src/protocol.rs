//! Varlink: what a message asks, and what is answered. Bytes in, bytes out; what happens between is the registry's.

mod message;
mod service;

use crate::error::Error;
use crate::registry::{Caller, Registry, Spec};
use crate::thread;
use message::{AttachCall, ChangeCall, CreateCall, SpecCall};
use punctual_model::Instant;
use punctual_schedule::{Policy, SpecId};
use serde::Serialize;
use serde_json::value::RawValue;

pub use message::{Call, parse};

/// Of the daemon itself.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Since when it runs, on CLOCK_MONOTONIC.
    pub since: Instant,
}

impl About {
    /// Of a daemon that begins now.
    pub fn now() -> About {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let ns = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
        About { since: Instant::from_ns(ns) }
    }
}

/// Answers one message, without its NUL. Appends the reply with its NUL to `out`; nothing for a `oneway` call. Whether that was Varlink:
/// if not, the reply says so, and the connection is to be closed after it.
pub fn answer(message: &[u8], caller: &Caller, about: &About, registry: &mut Registry, out: &mut Vec<u8>) -> bool {
    let call = match parse(message) {
        Ok(call) => call,
        Err(error) => {
            reply_error(&error, out);
            return false;
        }
    };
    let before = out.len();
    if let Err(error) = dispatch(&call, caller, about, registry, out) {
        out.truncate(before);
        reply_error(&error, out);
    }
    if call.oneway {
        out.truncate(before);
    }
    true
}

/// An error without a call: to who has too much of something.
pub fn refuse(error: &Error, out: &mut Vec<u8>) {
    reply_error(error, out);
}

fn reply_error(error: &Error, out: &mut Vec<u8>) {
    // Writing to memory fails for nothing that is in an error.
    let _ = serde_json::to_writer(&mut *out, error);
    out.push(0);
}

#[derive(Serialize)]
struct Reply<T> {
    parameters: T,
}

#[derive(Serialize)]
struct Empty {}

fn reply(parameters: impl Serialize, out: &mut Vec<u8>) -> Result<(), Error> {
    // Numbers that are not finite are the only thing that JSON cannot say; then it is null.
    let _ = serde_json::to_writer(&mut *out, &Reply { parameters });
    out.push(0);
    Ok(())
}

fn dispatch(call: &Call<'_>, caller: &Caller, about: &About, registry: &mut Registry, out: &mut Vec<u8>) -> Result<(), Error> {
    let method = call.method.as_ref();
    let parameters = call.parameters;
    if let Some(method) = method.strip_prefix("io.punctual.Scheduler1.") {
        return scheduler(method, parameters, caller, about, registry, out);
    }
    match method {
        "org.varlink.service.GetInfo" => {
            message::none(parameters)?;
            reply(service::info(), out)
        }
        "org.varlink.service.GetInterfaceDescription" => {
            reply(service::description(&message::read::<service::DescriptionCall>(parameters)?.interface)?, out)
        }
        _ => Err(service::unknown(method)),
    }
}

#[derive(Serialize)]
struct Admitted<'a> {
    admission: Admission<'a>,
}

fn scheduler(
    method: &str,
    parameters: Option<&RawValue>,
    caller: &Caller,
    about: &About,
    registry: &mut Registry,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let none = || message::none(parameters);
    let spec = || message::read::<SpecCall>(parameters).map(|call| SpecId(call.spec));
    let who = &*caller.who;
    match method {
        "CreateSpec" => {
            let call: CreateCall = message::read(parameters)?;
            let id = registry.create(caller, call.parameters.into(), call.name)?.id;
            admitted(id, caller, registry, out)
        }
        "ChangeSpec" => {
            let call: ChangeCall = message::read(parameters)?;
            let id = registry.change(caller, SpecId(call.spec), call.parameters.into())?.id;
            admitted(id, caller, registry, out)
        }
        "ReleaseSpec" => {
            registry.release(caller, spec()?)?;
            reply(Empty {}, out)
        }
        "AttachThread" => {
            let call: AttachCall = message::read(parameters)?;
            registry.attach(caller, SpecId(call.spec), call.thread)?;
            admitted(SpecId(call.spec), caller, registry, out)
        }
        "DetachThread" => {
            registry.detach(caller, spec()?)?;
            reply(Empty {}, out)
        }
        "GetSpec" => {
            let spec = registry.get(who, spec()?)?;
            reply(GetSpec { spec: shown(spec, registry) }, out)
        }
        "ListSpecs" => {
            none()?;
            let specs = registry.list(who).into_iter().map(|spec| shown(spec, registry)).collect();
            reply(ListSpecs { specs }, out)
        }
        "ListPlugins" => {
            none()?;
            reply(ListPlugins { plugins: plugins(registry) }, out)
        }
        "ListClients" => {
            none()?;
            let clients = registry.clients(who).into_iter();
            let clients =
                clients.map(|it| Client { process: it.number, user: it.user, specs: it.specs.len(), command: thread::command(it.number) });
            reply(ListClients { clients: clients.collect() }, out)
        }
        "GetStatus" => {
            none()?;
            let (specs, attached) = registry.counts();
            reply(
                Status {
                    version: env!("CARGO_PKG_VERSION"),
                    pid: std::process::id(),
                    since_ns: about.since.ns(),
                    specs,
                    clients: registry.client_count(),
                    attached,
                    last_reload_error: registry.last_reload_error.as_deref(),
                },
                out,
            )
        }
        "Ping" => {
            none()?;
            reply(Empty {}, out)
        }
        _ => Err(Error::MethodNotFound { method: format!("io.punctual.Scheduler1.{method}") }),
    }
}

fn admitted(id: SpecId, caller: &Caller, registry: &Registry, out: &mut Vec<u8>) -> Result<(), Error> {
    let spec = registry.get(&caller.who, id)?;
    reply(Admitted { admission: admission(spec, registry) }, out)
}

#[derive(Serialize)]
struct Admission<'a> {
    spec: u64,
    plugin: &'a str,
    answer: &'static str,
    admission_ignored: bool,
    processor: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_runtime_ns: Option<u64>,
    policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_priority: Option<u32>,
}

fn admission<'a>(spec: &Spec, registry: &'a Registry) -> Admission<'a> {
    let (policy, policy_priority) = match registry.assignment(spec).map(|assignment| assignment.policy) {
        Some(Policy::Fifo(priority)) => ("fifo", Some(priority)),
        Some(Policy::RoundRobin(priority)) => ("rr", Some(priority)),
        Some(Policy::Deadline { .. }) | None => ("deadline", None),
    };
    Admission {
        spec: spec.id.0,
        plugin: &registry.plugins()[spec.admission.plugin].name,
        answer: if spec.admission.partial { "partial" } else { "ok" },
        admission_ignored: spec.admission.offer.ignored,
        processor: spec.admission.offer.processor,
        accepted_runtime_ns: spec.admission.offer.accepted_runtime.map(|runtime| runtime.ns()),
        policy,
        policy_priority,
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    admission: Admission<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    parameters: message::Parameters,
    user: u32,
    process: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
}

fn shown<'a>(spec: &'a Spec, registry: &'a Registry) -> Shown<'a> {
    Shown {
        admission: admission(spec, registry),
        name: spec.name.as_deref(),
        parameters: (&spec.parameters).into(),
        user: spec.who.user,
        process: registry.client(spec.process).map_or(0, |process| process.number),
        thread: spec.thread.as_ref().map(|held| held.named),
    }
}

#[derive(Serialize)]
struct GetSpec<'a> {
    spec: Shown<'a>,
}

#[derive(Serialize)]
struct ListSpecs<'a> {
    specs: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Processor {
    number: u32,
    utilization: f64,
    specs: usize,
}

#[derive(Serialize)]
struct Plugin<'a> {
    name: &'a str,
    kind: String,
    admission: String,
    priority_min: u32,
    priority_max: u32,
    threshold: f64,
    processors: Vec<Processor>,
}

#[derive(Serialize)]
struct ListPlugins<'a> {
    plugins: Vec<Plugin<'a>>,
}

fn plugins(registry: &Registry) -> Vec<Plugin<'_>> {
    let plugins = registry.plugins().iter().map(|loaded| Plugin {
        name: loaded.plugin.name(),
        kind: loaded.config.kind.to_string(),
        admission: loaded.config.test.to_string(),
        priority_min: loaded.config.priorities.0,
        priority_max: loaded.config.priorities.1,
        threshold: loaded.config.threshold,
        processors: loaded
            .plugin
            .loads()
            .into_iter()
            .map(|it| Processor { number: it.processor, utilization: it.utilization, specs: it.specs })
            .collect(),
    });
    plugins.collect()
}

#[derive(Serialize)]
struct Client {
    process: u32,
    user: u32,
    specs: usize,
    command: String,
}

#[derive(Serialize)]
struct ListClients {
    clients: Vec<Client>,
}

#[derive(Serialize)]
struct Status<'a> {
    version: &'a str,
    pid: u32,
    since_ns: u64,
    specs: usize,
    clients: usize,
    attached: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_reload_error: Option<&'a str>,
}
