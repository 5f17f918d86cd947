//! The daemon's lists as C arrays. Everything a list points to is freed with it.

use super::connection::{Shared, shared};
use super::failure::{Failure, guarded, text};
use super::spec::{ANY_PROCESSOR, policy};
use crate::client::Client;
use punctual_model::Duration;
use punctual_protocol::{Answer, ClientInfo, Parameters, Plugin, Spec};
use std::ffi::{CString, c_char, c_int};
use std::ptr;

/// A list as C sees it: items are pointers, so that later versions can add fields.
#[repr(C)]
pub struct List<T> {
    count: usize,
    items: *const *const T,
}

/// The list and what it points to. The list comes first, so that a pointer to it points to everything.
#[repr(C)]
struct Owned<T> {
    list: List<T>,
    pointers: Vec<*const T>,
    rows: Vec<(T, Behind)>,
}

/// What a row points to. Does not move during the lifetime of the list.
#[derive(Default)]
struct Behind {
    texts: Vec<CString>,
    processors: Vec<CProcessor>,
    declared: Option<Box<Parameters>>,
}

impl Behind {
    fn keep(&mut self, value: &str) -> *const c_char {
        self.texts.push(text(value));
        self.texts.last().map_or(ptr::null(), |text| text.as_ptr())
    }
}

#[repr(C)]
pub struct CProcessor {
    number: u32,
    specs: u32,
    utilization: f64,
}

#[repr(C)]
pub struct CPlugin {
    name: *const c_char,
    kind: *const c_char,
    admission: *const c_char,
    priority_min: u32,
    priority_max: u32,
    threshold: f64,
    processor_count: usize,
    processors: *const CProcessor,
}

#[repr(C)]
pub struct CSpec {
    id: u64,
    name: *const c_char,
    plugin: *const c_char,
    params: *const Parameters,
    user: libc::uid_t,
    process: libc::pid_t,
    thread: libc::pid_t,
    processor: u32,
    policy: c_int,
    policy_priority: u32,
    accepted_runtime_ns: u64,
    partial: bool,
    admission_ignored: bool,
    says: bool,
    says_jobs: u64,
    says_misses: u64,
    says_worst_response_ns: u64,
}

#[repr(C)]
pub struct CClient {
    process: libc::pid_t,
    user: libc::uid_t,
    specs: u32,
    command: *const c_char,
}

fn plugin(plugin: Plugin, behind: &mut Behind) -> CPlugin {
    let processors = plugin.processors.iter();
    behind.processors = processors
        .map(|one| CProcessor { number: one.number, specs: one.specs, utilization: one.utilization })
        .collect();
    CPlugin {
        name: behind.keep(&plugin.name),
        kind: behind.keep(&plugin.kind),
        admission: behind.keep(&plugin.admission),
        priority_min: plugin.priority_min,
        priority_max: plugin.priority_max,
        threshold: plugin.threshold,
        processor_count: behind.processors.len(),
        processors: behind.processors.as_ptr(),
    }
}

fn spec(spec: Spec, behind: &mut Behind) -> CSpec {
    let (admission, says) = (spec.admission, spec.says.unwrap_or_default());
    let declared = behind.declared.insert(Box::new(spec.parameters));
    let params: *const Parameters = &**declared;
    CSpec {
        id: admission.spec,
        name: spec.name.map_or(ptr::null(), |name| behind.keep(&name)),
        plugin: behind.keep(&admission.plugin),
        params,
        user: spec.user,
        process: spec.process as libc::pid_t,
        thread: spec.thread.unwrap_or(0) as libc::pid_t,
        processor: admission.processor.unwrap_or(ANY_PROCESSOR),
        policy: policy(admission.policy),
        policy_priority: admission.policy_priority.unwrap_or(0),
        accepted_runtime_ns: admission.accepted_runtime.map_or(0, Duration::ns),
        partial: admission.answer == Answer::Partial,
        admission_ignored: admission.admission_ignored,
        says: spec.says.is_some(),
        says_jobs: says.jobs,
        says_misses: says.misses,
        says_worst_response_ns: says.worst_response.ns(),
    }
}

fn client(client: ClientInfo, behind: &mut Behind) -> CClient {
    CClient {
        process: client.process as libc::pid_t,
        user: client.user,
        specs: client.specs,
        command: behind.keep(&client.command),
    }
}

/// Requests a list and passes its ownership to C.
///
/// # Safety
/// `connection` is NULL or live, `list` is NULL or a valid place.
unsafe fn give<T, R>(
    connection: *const Shared,
    list: *mut *mut List<T>,
    ask: impl FnOnce(&mut Client) -> Result<Vec<R>, crate::Error>,
    translate: impl Fn(R, &mut Behind) -> T,
) -> c_int {
    guarded(|| {
        if list.is_null() {
            return Err(Failure::invalid("the pointer for the list is NULL"));
        }
        // SAFETY: by this function's contract.
        let found = unsafe { shared(connection) }?.with(ask)?;
        let rows = found.into_iter().map(|row| {
            let mut behind = Behind::default();
            (translate(row, &mut behind), behind)
        });
        let rows: Vec<(T, Behind)> = rows.collect();
        let pointers: Vec<*const T> = rows.iter().map(|(row, _)| ptr::from_ref(row)).collect();
        let list_of_c = List { count: pointers.len(), items: pointers.as_ptr() };
        let owned = Box::into_raw(Box::new(Owned { list: list_of_c, pointers, rows }));
        // SAFETY: by this function's contract; the list is the first field of what was boxed.
        unsafe { *list = owned.cast() };
        Ok(0)
    })
}

/// # Safety
/// `list` is NULL or came from [`give`], and is not used again.
unsafe fn take_back<T>(list: *mut List<T>) {
    if !list.is_null() {
        // SAFETY: by this function's contract it is the first field of a boxed `Owned`.
        let owned: Box<Owned<T>> = unsafe { Box::from_raw(list.cast()) };
        debug_assert_eq!(owned.pointers.len(), owned.rows.len());
    }
}

macro_rules! list {
    ($list:ident, $free:ident, $item:ty, $ask:ident, $translate:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $list(connection: *const Shared, list: *mut *mut List<$item>) -> c_int {
            // SAFETY: the header demands a live connection and a valid place.
            unsafe { give(connection, list, |client| client.$ask(), $translate) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $free(list: *mut List<$item>) {
            // SAFETY: the header demands what the function above gave, and that it is not used again.
            unsafe { take_back(list) }
        }
    };
}

list!(punctual_list_plugins, punctual_plugin_list_free, CPlugin, list_plugins, plugin);
list!(punctual_list_specs, punctual_spec_list_free, CSpec, list_specs, spec);
list!(punctual_list_clients, punctual_client_list_free, CClient, list_clients, client);
