//! Varlink: what a message asks, and what is answered. Bytes in, bytes out; what happens between is the
//! registry's.

mod message;
mod service;

use crate::error::Error;
use crate::registry::{Caller, Held, Registry, Spec};
use crate::thread;
use message::{Request, SCHEDULER, SpecCall};
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

/// Answers one message, without its NUL. Appends the reply with its NUL to `out`; nothing for a `oneway`
/// call. Whether that was Varlink: if not, the reply says so, and the connection is to be closed after it.
pub fn answer(
    message: &[u8],
    caller: &Caller,
    about: &About,
    registry: &mut Registry,
    out: &mut Vec<u8>,
) -> bool {
    let before = out.len();
    if let Some(request) = message::request_at_once(message) {
        if let Err(error) = act(request, caller, registry, out) {
            out.truncate(before);
            reply_error(&error, out);
        }
        return true;
    }
    let call = match parse(message) {
        Ok(call) => call,
        Err(error) => {
            reply_error(&error, out);
            return false;
        }
    };
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

fn dispatch(
    call: &Call<'_>,
    caller: &Caller,
    about: &About,
    registry: &mut Registry,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let method = call.method.as_ref();
    let parameters = call.parameters;
    if let Some(method) = method.strip_prefix(SCHEDULER) {
        return scheduler(method, parameters, caller, about, registry, out);
    }
    match method {
        "org.varlink.service.GetInfo" => {
            message::none(parameters)?;
            reply(service::info(), out)
        }
        "org.varlink.service.GetInterfaceDescription" => reply(
            service::description(&message::read::<service::DescriptionCall>(parameters)?.interface)?,
            out,
        ),
        _ => Err(service::unknown(method)),
    }
}

fn scheduler(
    method: &str,
    parameters: Option<&RawValue>,
    caller: &Caller,
    about: &About,
    registry: &mut Registry,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if let Some(request) = message::request(method, parameters)? {
        return act(request, caller, registry, out);
    }
    let none = || message::none(parameters);
    let who = &*caller.who;
    match method {
        "GetSpec" => {
            let spec = registry.get(who, SpecId(message::read::<SpecCall>(parameters)?.spec))?;
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
            let clients = clients.map(|it| Client {
                process: it.number,
                user: it.user,
                specs: it.specs.len(),
                command: thread::command(it.number),
            });
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
        _ => Err(Error::MethodNotFound { method: format!("{SCHEDULER}{method}") }),
    }
}

/// Does what is asked of a spec.
fn act(request: Request, caller: &Caller, registry: &mut Registry, out: &mut Vec<u8>) -> Result<(), Error> {
    match request {
        Request::Create { parameters, name } => {
            let id = registry.create(caller, parameters, name)?.id;
            admitted(id, caller, registry, out)
        }
        Request::Change { spec, parameters } => {
            registry.change(caller, spec, parameters)?;
            admitted(spec, caller, registry, out)
        }
        Request::Attach { spec, thread } => {
            registry.attach(caller, spec, thread)?;
            admitted(spec, caller, registry, out)
        }
        Request::Release { spec } => {
            registry.release(caller, spec)?;
            reply(Empty {}, out)
        }
        Request::Detach { spec } => {
            registry.detach(caller, spec)?;
            reply(Empty {}, out)
        }
        Request::Ping => reply(Empty {}, out),
    }
}

fn admitted(id: SpecId, caller: &Caller, registry: &Registry, out: &mut Vec<u8>) -> Result<(), Error> {
    let spec = registry.get(&caller.who, id)?;
    admission(spec, registry).reply(out);
    Ok(())
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

impl Admission<'_> {
    /// The reply of the methods that programs wait for, as serde would write it, in a fifth of its time.
    fn reply(&self, out: &mut Vec<u8>) {
        let number = |out: &mut Vec<u8>, name: &str, number: u64| {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        };
        number(out, r#"{"parameters":{"admission":{"spec":"#, self.spec);
        out.extend_from_slice(br#","plugin":"#);
        // Any name has its escapes; nothing fails in memory.
        let _ = serde_json::to_writer(&mut *out, self.plugin);
        out.extend_from_slice(br#","answer":""#);
        out.extend_from_slice(self.answer.as_bytes());
        let ignored: &[u8] = if self.admission_ignored {
            br#"","admission_ignored":true"#
        } else {
            br#"","admission_ignored":false"#
        };
        out.extend_from_slice(ignored);
        number(out, r#","processor":"#, self.processor.into());
        if let Some(accepted) = self.accepted_runtime_ns {
            number(out, r#","accepted_runtime_ns":"#, accepted);
        }
        out.extend_from_slice(br#","policy":""#);
        out.extend_from_slice(self.policy.as_bytes());
        out.push(b'"');
        if let Some(priority) = self.policy_priority {
            number(out, r#","policy_priority":"#, priority.into());
        }
        out.extend_from_slice(b"}}}\0");
    }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_is: Option<String>,
}

fn shown<'a>(spec: &'a Spec, registry: &'a Registry) -> Shown<'a> {
    Shown {
        admission: admission(spec, registry),
        name: spec.name.as_deref(),
        parameters: (&spec.parameters).into(),
        user: spec.who.user,
        process: registry.client(spec.process).map_or(0, |process| process.number),
        thread: spec.thread.as_ref().map(|held| held.named),
        thread_is: spec.thread.as_ref().and_then(Held::otherwise),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Serialize)]
    struct Admitted<'a> {
        admission: &'a Admission<'a>,
    }

    proptest! {
        #[test]
        fn an_admission_is_written_as_serde_would(
            spec: u64, plugin: String, ignored: bool, processor: u32, accepted: Option<u64>, priority: Option<u32>,
        ) {
            let admission = Admission {
                spec,
                plugin: &plugin,
                answer: "partial",
                admission_ignored: ignored,
                processor,
                accepted_runtime_ns: accepted,
                policy: "fifo",
                policy_priority: priority,
            };
            let (mut by_hand, mut by_serde) = (Vec::new(), Vec::new());
            admission.reply(&mut by_hand);
            reply(Admitted { admission: &admission }, &mut by_serde).unwrap();
            prop_assert_eq!(String::from_utf8(by_hand), String::from_utf8(by_serde));
        }
    }
}
