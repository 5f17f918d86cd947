//! Varlink: what a message asks, and what is answered. Bytes in, bytes out; what happens between is the
//! registry's.

mod message;
mod service;

use crate::access::Who;
use crate::error::Error;
use crate::polkit::Question;
use crate::registry::{AttachedThread, Caller, Loaded, Registry, Spec, Wish};
use punctual_linux::thread;
use punctual_model::Instant;
use punctual_protocol::{
    Admission, Admitted, Answer, AttachThread, ChangeSpec, ClientInfo, ClientList, Counts, CreateSpec,
    METHOD_PREFIX, NoParameters, Plugin, PluginList, Processor, Replaced, ReportUse, SpecList, SpecNumber,
    SpecReply, Status,
};
use punctual_schedule::{ANYWHERE, AssignedPolicy, Load, SpecId};
use serde::Serialize;
use serde_json::value::RawValue;
use std::os::fd::OwnedFd;

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

/// What became of a message.
#[derive(Debug)]
pub enum Answered {
    /// It was answered.
    Yes,
    /// It was not Varlink, which the reply says. The connection is to be closed after that.
    NotVarlink,
    /// It was answered, and this goes with the reply.
    With(OwnedFd),
    /// Polkit has to be asked first. There is no reply yet.
    Asks(Box<Question>),
}

/// Answers one message, without its NUL. Appends the reply with its NUL to `out`; nothing for a `oneway`
/// call.
pub fn answer(
    message: &[u8],
    caller: &Caller,
    about: &About,
    registry: &mut Registry,
    out: &mut Vec<u8>,
) -> Answered {
    let before = out.len();
    let call = match parse(message) {
        Ok(call) => call,
        Err(error) => {
            reply_error(&error, out);
            return Answered::NotVarlink;
        }
    };
    if call.method.strip_prefix(METHOD_PREFIX) == Some("ShareLoop") {
        return share_loop(&call, caller, registry, out);
    }
    if let Err(error) = dispatch(&call, caller, about, registry, out) {
        out.truncate(before);
        let is_refused = matches!(error, Error::NotPermitted { .. } | Error::NotAdmitted { .. });
        if let Some(question) = is_refused.then(|| question(&call, caller, registry)).flatten() {
            return Answered::Asks(Box::new(question));
        }
        reply_error(&error, out);
    }
    if call.oneway {
        out.truncate(before);
    }
    Answered::Yes
}

/// The one method whose reply brings more than bytes. A `oneway` call of it does nothing.
fn share_loop(call: &Call<'_>, caller: &Caller, registry: &mut Registry, out: &mut Vec<u8>) -> Answered {
    if call.oneway {
        return Answered::Yes;
    }
    let number = message::read(call.parameters);
    match number.and_then(|SpecNumber { spec }| registry.share_loop(caller, SpecId(spec))) {
        Ok(memory) => {
            let _ = reply(NoParameters {}, out);
            Answered::With(memory)
        }
        Err(error) => {
            reply_error(&error, out);
            Answered::Yes
        }
    }
}

/// What Polkit is to be asked about a call that was refused, if anything. The call is read again, so that
/// those that are not refused pay nothing for it.
fn question(call: &Call<'_>, caller: &Caller, registry: &mut Registry) -> Option<Question> {
    match call.method.strip_prefix(METHOD_PREFIX)? {
        "CreateSpec" => {
            let CreateSpec { parameters, name, interactive, .. } = message::read(call.parameters).ok()?;
            let wish = Wish { parameters: &parameters, change: None, name: name.as_deref(), interactive };
            registry.question(caller, wish)
        }
        "ChangeSpec" => {
            let ChangeSpec { spec, parameters, interactive } = message::read(call.parameters).ok()?;
            let change = Some(SpecId(spec));
            registry.question(caller, Wish { parameters: &parameters, change, name: None, interactive })
        }
        _ => None,
    }
}

/// The reply to a call that Polkit does not authorise; nothing for a `oneway` call.
pub fn deny(message: &[u8], reason: String, rule: String, out: &mut Vec<u8>) {
    if parse(message).is_ok_and(|call| !call.oneway) {
        reply_error(&Error::NotPermitted { reason, rule: Some(rule) }, out);
    }
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
    if let Some(method) = method.strip_prefix(METHOD_PREFIX) {
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
    match method {
        "CreateSpec" => {
            let CreateSpec { parameters, name, process, .. } = message::read(parameters)?;
            let spec = registry.create_of(caller, process, parameters, name)?;
            admitted(spec, caller, registry, out)
        }
        "ChangeSpec" => {
            let ChangeSpec { spec, parameters, .. } = message::read(parameters)?;
            registry.change(caller, SpecId(spec), parameters)?;
            admitted(SpecId(spec), caller, registry, out)
        }
        "ReplaceSpecs" => {
            let specs = registry.replace(caller, message::read(parameters)?)?;
            let admission = |id| Ok(admission(registry.get(&caller.who, id)?, registry));
            let admissions = specs.into_iter().map(admission).collect::<Result<_, Error>>()?;
            reply(Replaced { admissions }, out)
        }
        "AttachThread" => {
            let AttachThread { spec, thread } = message::read(parameters)?;
            registry.attach(caller, SpecId(spec), thread)?;
            admitted(SpecId(spec), caller, registry, out)
        }
        "ReleaseSpec" => {
            let SpecNumber { spec } = message::read(parameters)?;
            registry.release(caller, SpecId(spec))?;
            reply(NoParameters {}, out)
        }
        "DetachThread" => {
            let SpecNumber { spec } = message::read(parameters)?;
            registry.detach(caller, SpecId(spec))?;
            reply(NoParameters {}, out)
        }
        "ReportUse" => {
            let ReportUse { spec, thread, used } = message::read(parameters)?;
            registry.report_use(caller, SpecId(spec), thread, used)?;
            reply(NoParameters {}, out)
        }
        _ => query(method, parameters, &caller.who, about, registry, out),
    }
}

/// Methods that change nothing.
fn query(
    method: &str,
    parameters: Option<&RawValue>,
    who: &Who,
    about: &About,
    registry: &mut Registry,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let none = || message::none(parameters);
    match method {
        "Ping" => {
            none()?;
            reply(NoParameters {}, out)
        }
        "GetSpec" => {
            let SpecNumber { spec } = message::read(parameters)?;
            let spec = registry.get(who, SpecId(spec))?;
            reply(SpecReply { spec: shown(spec, registry) }, out)
        }
        "ListSpecs" => {
            none()?;
            let specs = registry.list(who).into_iter().map(|spec| shown(spec, registry)).collect();
            reply(SpecList { specs }, out)
        }
        "ListPlugins" => {
            none()?;
            registry.release_due();
            reply(PluginList { plugins: registry.plugins().iter().map(plugin).collect() }, out)
        }
        "ListClients" => {
            none()?;
            let clients = registry.clients(who).into_iter();
            let clients = clients.map(|it| ClientInfo {
                process: it.number,
                user: it.user,
                specs: number(it.specs.len()),
                command: thread::command(it.number),
            });
            reply(ClientList { clients: clients.collect() }, out)
        }
        "Count" => {
            none()?;
            let counts = Counts {
                specs: number(registry.count(who)),
                plugins: number(registry.plugins().len()),
                clients: number(registry.clients(who).len()),
            };
            reply(counts, out)
        }
        "GetStatus" => {
            none()?;
            let (specs, attached) = registry.counts();
            let status = Status {
                version: env!("CARGO_PKG_VERSION").into(),
                pid: std::process::id(),
                since: about.since,
                specs: number(specs),
                clients: number(registry.client_count()),
                attached: number(attached),
                last_reload_error: registry.last_reload_error.clone(),
            };
            reply(status, out)
        }
        _ => Err(Error::MethodNotFound { method: format!("{METHOD_PREFIX}{method}") }),
    }
}

fn admitted(id: SpecId, caller: &Caller, registry: &Registry, out: &mut Vec<u8>) -> Result<(), Error> {
    let admission = admission(registry.get(&caller.who, id)?, registry);
    reply(Admitted { admission }, out)
}

/// There are quotas for all that is counted, far below the type's end.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn admission(spec: &Spec, registry: &Registry) -> Admission {
    let mut policy_nice = None;
    let (policy, policy_priority) = match registry.assignment(spec).map(|assignment| assignment.policy) {
        Some(AssignedPolicy::Fifo(priority)) => (punctual_protocol::Policy::Fifo, Some(priority)),
        Some(AssignedPolicy::RoundRobin(priority)) => (punctual_protocol::Policy::Rr, Some(priority)),
        Some(AssignedPolicy::Other { nice }) => {
            policy_nice = Some(nice);
            (punctual_protocol::Policy::Other, None)
        }
        Some(AssignedPolicy::Dispatched { priority: Some(priority) }) => {
            (punctual_protocol::Policy::Fifo, Some(priority))
        }
        Some(AssignedPolicy::Dispatched { priority: None }) => (punctual_protocol::Policy::Ext, None),
        Some(AssignedPolicy::Deadline { .. }) | None => (punctual_protocol::Policy::Deadline, None),
    };
    Admission {
        spec: spec.id.0,
        plugin: (*registry.plugins()[spec.admission.plugin].name).to_owned(),
        answer: if spec.admission.partial { Answer::Partial } else { Answer::Ok },
        admission_ignored: spec.admission.offer.ignored,
        processor: Some(spec.admission.offer.processor).filter(|&processor| processor != ANYWHERE),
        accepted_runtime: spec.admission.offer.accepted_runtime,
        policy,
        policy_priority,
        policy_nice,
        begins_in: spec.begins_in(),
    }
}

fn shown(spec: &Spec, registry: &Registry) -> punctual_protocol::Spec {
    let enforced = registry.enforced(spec);
    let is_demoted = enforced.as_ref().is_some_and(|enforced| enforced.demoted);
    // A thread may be demoted between the two looks: that is not somebody else's change.
    let is_still_kept = || !registry.enforced(spec).is_some_and(|enforced| enforced.demoted);
    punctual_protocol::Spec {
        admission: admission(spec, registry),
        name: spec.name.as_deref().map(str::to_owned),
        parameters: spec.parameters.clone(),
        user: spec.who.user,
        process: registry.client(spec.process).map_or(0, |process| process.number),
        thread: spec.thread.as_ref().map(|attached| attached.named),
        thread_is: match registry.lost(spec) {
            Some(why) => {
                let is = spec.thread.as_ref().and_then(AttachedThread::scheduling);
                let is = is.map_or(String::new(), |is| format!("; its thread is {is}"));
                Some(format!("without slots: {why}{is}"))
            }
            None => match &spec.thread {
                Some(_) if is_demoted => None,
                Some(attached) => attached.otherwise().filter(|_| is_still_kept()),
                None => spec.detached().map(|why| format!("detached: {why}")),
            },
        },
        used: spec.thread.as_ref().and_then(|attached| attached.used),
        enforced,
        says: spec.says(),
    }
}

fn plugin(loaded: &Loaded) -> Plugin {
    let processor =
        |it: Load| Processor { number: it.processor, utilization: it.utilization, specs: number(it.specs) };
    Plugin {
        name: loaded.plugin.name().to_owned(),
        kind: loaded.config.kind.to_string(),
        admission: loaded.config.test.to_string(),
        priority_min: loaded.config.priorities.0,
        priority_max: loaded.config.priorities.1,
        threshold: loaded.config.threshold,
        processors: loaded.plugin.loads().into_iter().map(processor).collect(),
        warning: loaded.config.doubt.clone(),
    }
}
