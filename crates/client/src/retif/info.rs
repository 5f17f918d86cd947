//! ReTiF's queries: the number of clients, plugins and tasks, and each by its index.

use super::parameters::NAME;
use super::{ERROR, answered, ask, published};
use crate::c::{Failure, bounded_text, guarded};
use crate::client::Client;
use punctual_protocol::Counts;
use std::ffi::{c_char, c_int, c_uint};

#[repr(C)]
pub struct RtfClientInfo {
    pid: libc::pid_t,
    state: c_int,
}

#[repr(C)]
pub struct RtfPluginInfo {
    name: [c_char; NAME],
    cputot: c_int,
}

#[repr(C)]
pub struct RtfCpuInfo {
    cpunum: c_int,
    freeu: f32,
    ntask: c_int,
}

#[repr(C)]
pub struct RtfTaskInfo {
    tid: libc::pid_t,
    ppid: libc::pid_t,
    priority: c_int,
    period: c_int,
    util: f32,
    pluginid: c_int,
}

/// `CONNECTED` of `enum CLIENT_STATE`. Clients that disconnected have ended and are not listed.
const CONNECTED: c_int = 1;

fn counted(of: fn(Counts) -> u32) -> c_int {
    let count = guarded(|| Ok(number(of(ask(Client::count)?))));
    if count < 0 { ERROR } else { count }
}

/// A count, saturated to an `int`.
fn number(value: impl TryInto<c_int>) -> c_int {
    value.try_into().unwrap_or(c_int::MAX)
}

fn one<T>(list: Vec<T>, index: c_uint, what: &str) -> Result<T, Failure> {
    let count = list.len();
    list.into_iter()
        .nth(index as usize)
        .ok_or_else(|| Failure::invalid(format!("there is no {what} {index}: there are {count}")))
}

/// # Safety
/// `place` is NULL or valid.
unsafe fn put<T>(place: *mut T, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::invalid("the pointer for the result is NULL"));
    }
    // SAFETY: by this function's contract.
    unsafe { *place = value };
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn rtf_connections_info() -> c_int {
    counted(|counts| counts.clients)
}

#[unsafe(no_mangle)]
extern "C" fn rtf_plugins_info() -> c_int {
    counted(|counts| counts.plugins)
}

#[unsafe(no_mangle)]
extern "C" fn rtf_tasks_info() -> c_int {
    counted(|counts| counts.specs)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_connection_info(desc: c_uint, data: *mut RtfClientInfo) -> c_int {
    answered(published, || {
        let client = one(ask(Client::list_clients)?, desc, "connection")?;
        // SAFETY: the header demands a valid place.
        unsafe { put(data, RtfClientInfo { pid: number(client.process), state: CONNECTED }) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_plugin_info(desc: c_uint, data: *mut RtfPluginInfo) -> c_int {
    answered(published, || {
        let plugin = one(ask(Client::list_plugins)?, desc, "plugin")?;
        let mut name = [0; NAME];
        // SAFETY: there is room for NAME bytes.
        unsafe { bounded_text(plugin.name.as_bytes(), name.as_mut_ptr(), NAME) };
        // SAFETY: the header demands a valid place.
        unsafe { put(data, RtfPluginInfo { name, cputot: number(plugin.processors.len()) }) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_plugin_cpu_info(desc: c_uint, cpu: c_uint, data: *mut RtfCpuInfo) -> c_int {
    answered(published, || {
        let plugin = one(ask(Client::list_plugins)?, desc, "plugin")?;
        let processor = one(plugin.processors, cpu, "processor of that plugin")?;
        let freeu = (plugin.threshold - processor.utilization).max(0.0) as f32;
        // SAFETY: the header demands a valid place.
        unsafe {
            put(data, RtfCpuInfo { cpunum: number(processor.number), freeu, ntask: number(processor.specs) })
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_task_info(desc: c_uint, data: *mut RtfTaskInfo) -> c_int {
    answered(published, || {
        let (specs, plugins) = ask(|client| Ok((client.list_specs()?, client.list_plugins()?)))?;
        let spec = one(specs, desc, "task")?;
        let declared = &spec.parameters;
        let ns = |time: Option<punctual_model::Duration>| time.map(|time| time.ns());
        let least =
            [ns(declared.period), ns(declared.deadline)].into_iter().flatten().min().filter(|ns| *ns > 0);
        let util = match (ns(spec.admission.accepted_runtime), least) {
            (Some(runtime), Some(least)) => (runtime as f64 / least as f64) as f32,
            _ => 0.0,
        };
        let pluginid =
            plugins.iter().position(|plugin| plugin.name == spec.admission.plugin).map_or(-1, number);
        let info = RtfTaskInfo {
            tid: spec.thread.map_or(0, number),
            ppid: number(spec.process),
            priority: number(spec.admission.policy_priority.or(declared.priority).unwrap_or(0)),
            period: number(ns(declared.period).unwrap_or(0) / 1_000),
            util,
            pluginid,
        };
        // SAFETY: the header demands a valid place.
        unsafe { put(data, info) }
    })
}
