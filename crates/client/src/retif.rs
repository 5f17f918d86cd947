//! ReTiF's interface (`include/retif.h`) on top of the daemon's: one connection per process, microseconds,
//! its codes. It has the names of the paper and those of the published code, which differ.

mod info;
mod parameters;

use crate::c::{Code, Failure, Shared, guarded};
use crate::client::Client;
use crate::error::Error;
use crate::pace::{Pace, now, sleep_until};
use parameters::RtfParams;
use punctual_model::{Duration, Instant};
use punctual_protocol::Admission;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Success.
const OK: c_int = 1;
/// Refused. In ReTiF's published code this number is also RTF_PARTIAL, so partial admission is [`OK`] here.
const FAIL: c_int = 0;
/// The daemon cannot be reached; the paper's RTF_CONNECTION_ERR.
const ERROR: c_int = -1;
/// Denied by the rules. Returned only under the paper's names, since programs written for the published code
/// do not know it.
const ACL_FAIL: c_int = -2;

/// `struct rtf_task`, also called `struct rtf_spec`. Plain data: may be copied, and needs no freeing.
#[repr(C)]
pub struct RtfTask {
    task_id: u32,
    dmiss: u32,
    acc_runtime: u64,
    spec: u64,
    params: RtfParams,
    next: libc::timespec,
    deadline: libc::timespec,
    period_ns: u64,
    deadline_ns: u64,
    release_ns: u64,
    started: u64,
    /// The process that created it.
    owner: u64,
}

/// The connection of this process. A child of fork must not use its parent's, and makes its own with
/// `rtf_connect`.
static CONNECTION: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

fn connection() -> Result<&'static Shared, Failure> {
    // SAFETY: what is stored there is never freed.
    let shared = unsafe { CONNECTION.load(Ordering::Acquire).as_ref() };
    let unconnected =
        || Failure { code: Code::Unreachable, message: "not connected: call rtf_connect first".into() };
    shared.filter(|shared| shared.is_ours()).ok_or_else(unconnected)
}

fn ask<T>(ask: impl FnOnce(&mut Client) -> Result<T, Error>) -> Result<T, Failure> {
    connection()?.with(ask)
}

/// Runs the body of a function; errors become codes by `codes`.
fn answered(codes: fn(Code) -> c_int, work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let mut code = ERROR;
    let done = guarded(|| work().map(|()| OK).inspect_err(|failure| code = codes(failure.code)));
    if done == OK { OK } else { code }
}

/// The codes of the published code.
fn published(code: Code) -> c_int {
    match code {
        Code::Unreachable | Code::TimedOut | Code::Lost | Code::Protocol | Code::Forked | Code::Internal => {
            ERROR
        }
        _ => FAIL,
    }
}

/// The codes of the paper.
fn of_paper(code: Code) -> c_int {
    match code {
        Code::NotPermitted | Code::NotOwner => ACL_FAIL,
        other => published(other),
    }
}

/// # Safety
/// `task` is NULL or valid.
unsafe fn task<'a>(task: *mut RtfTask) -> Result<&'a mut RtfTask, Failure> {
    // SAFETY: by this function's contract.
    unsafe { task.as_mut() }.ok_or_else(|| Failure::invalid("the task is NULL"))
}

impl RtfTask {
    fn is_created(&self) -> Result<u64, Failure> {
        let not = || Failure::invalid("there is no such task: call rtf_task_create or rtf_spec_create first");
        if self.spec != 0 && self.owner != u64::from(std::process::id()) {
            return Err(Failure::invalid("the task is that of another process, whose child this one is"));
        }
        (self.spec != 0).then(|| self.spec - 1).ok_or_else(not)
    }

    fn admitted(&mut self, params: &RtfParams, admission: &Admission) -> Result<(), Failure> {
        let declared = params.declared()?;
        // The daemon may count from 0, which here means none.
        self.spec = admission.spec.saturating_add(1);
        self.owner = std::process::id().into();
        self.task_id = admission.spec as u32;
        self.acc_runtime = admission.accepted_runtime.map_or(0, Duration::ns) / 1_000;
        self.params = *params;
        self.period_ns = declared.period.map_or(0, Duration::ns);
        self.deadline_ns = declared.deadline.map_or(self.period_ns, Duration::ns);
        Ok(())
    }

    fn show(&mut self) {
        let timespec = |ns: u64| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as _,
            tv_nsec: (ns % 1_000_000_000) as _,
        };
        self.next = timespec(self.release_ns.saturating_add(self.period_ns));
        self.deadline = timespec(self.release_ns.saturating_add(self.deadline_ns));
    }
}

unsafe fn create(codes: fn(Code) -> c_int, place: *mut RtfTask, params: *const RtfParams) -> c_int {
    answered(codes, || {
        // SAFETY: the header demands valid places.
        let (task, params) = unsafe { (task(place)?, parameters::read(params)?) };
        let declared = params.declared()?;
        let admission = ask(|client| client.create_spec(&declared, None))?;
        task.started = 0;
        task.dmiss = 0;
        task.admitted(params, &admission)
    })
}

unsafe fn change(codes: fn(Code) -> c_int, place: *mut RtfTask, params: *const RtfParams) -> c_int {
    answered(codes, || {
        // SAFETY: the header demands valid places.
        let (task, params) = unsafe { (task(place)?, parameters::read(params)?) };
        let (spec, declared) = (task.is_created()?, params.declared()?);
        let admission = ask(|client| client.change_spec(spec, &declared))?;
        task.admitted(params, &admission)
    })
}

unsafe fn attach(codes: fn(Code) -> c_int, place: *mut RtfTask, thread: libc::pid_t) -> c_int {
    answered(codes, || {
        // SAFETY: the header demands a valid place.
        let spec = unsafe { task(place) }?.is_created()?;
        let thread = match thread {
            0 => rustix::thread::gettid().as_raw_nonzero().get(),
            thread => thread,
        };
        let thread = u32::try_from(thread).map_err(|_| Failure::invalid(format!("{thread} is not a TID")))?;
        ask(|client| client.attach_thread(spec, thread)).map(|_| ())
    })
}

unsafe fn detach(codes: fn(Code) -> c_int, place: *mut RtfTask) -> c_int {
    answered(codes, || {
        // SAFETY: the header demands a valid place.
        let spec = unsafe { task(place) }?.is_created()?;
        ask(|client| client.detach_thread(spec))
    })
}

unsafe fn release(codes: fn(Code) -> c_int, place: *mut RtfTask) -> c_int {
    answered(codes, || {
        // SAFETY: the header demands a valid place.
        let task = unsafe { task(place) }?;
        let spec = task.is_created()?;
        ask(|client| client.release_spec(spec))?;
        task.spec = 0;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn rtf_connect() -> c_int {
    answered(published, || {
        if let Ok(shared) = connection() {
            return shared.with(Client::ping);
        }
        let new = Box::into_raw(Box::new(Shared::new(Client::connect()?)));
        // The old connection is never freed: another thread may be about to use it, and a child must not
        // touch its parent's lock.
        let old = CONNECTION.load(Ordering::Acquire);
        // SAFETY: what is stored there is never freed.
        let stale = unsafe { old.as_ref() }.is_none_or(|old| !old.is_ours());
        if !stale || CONNECTION.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // Another thread was faster.
            // SAFETY: it came from a box just now and nobody else has it.
            drop(unsafe { Box::from_raw(new) });
        }
        Ok(())
    })
}

/// The same function under the paper's name and under that of the published code.
macro_rules! both {
    ($($work:ident: $paper:ident, $published:ident ($($argument:ident: $type:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $paper(task: *mut RtfTask, $($argument: $type),*) -> c_int {
            // SAFETY: the header demands valid places.
            unsafe { $work(of_paper, task, $($argument),*) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $published(task: *mut RtfTask, $($argument: $type),*) -> c_int {
            // SAFETY: the header demands valid places.
            unsafe { $work(published, task, $($argument),*) }
        }
    )*};
}

both! {
    create: rtf_spec_create, rtf_task_create(params: *const RtfParams);
    change: rtf_spec_change, rtf_task_change(params: *const RtfParams);
    attach: rtf_spec_attach, rtf_task_attach(thread: libc::pid_t);
    detach: rtf_spec_detach, rtf_task_detach();
    release: rtf_spec_release, rtf_task_release();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_task_init(task: *mut RtfTask) {
    if !task.is_null() {
        // SAFETY: the header demands a valid place, and all zeros are a task that was not created.
        unsafe { ptr::write_bytes(task, 0, 1) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_spec_get_accepted_runtime(task: *const RtfTask) -> u64 {
    // SAFETY: the header demands a valid place.
    unsafe { task.as_ref() }.map_or(0, |task| task.acc_runtime)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_task_get_accepted_runtime(task: *const RtfTask) -> u64 {
    // SAFETY: the header demands a valid place.
    unsafe { rtf_spec_get_accepted_runtime(task) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_task_start(place: *mut RtfTask) {
    guarded(|| {
        // SAFETY: the header demands a valid place.
        let task = unsafe { task(place) }?;
        task.release_ns = now().ns();
        task.started = 1;
        task.dmiss = 0;
        task.show();
        Ok(0)
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_task_wait_period(place: *mut RtfTask) {
    guarded(|| {
        // SAFETY: the header demands a valid place.
        let task = unsafe { task(place) }?;
        if task.started == 0 || task.period_ns == 0 {
            return Err(Failure::invalid(
                "there is no period to wait for: declare one, create the task, and call rtf_task_start",
            ));
        }
        let mut pace = Pace {
            period: Duration::from_ns(task.period_ns),
            deadline: Duration::from_ns(task.deadline_ns),
            release: Instant::from_ns(task.release_ns),
            misses: 0,
        };
        pace.end(now());
        task.dmiss = task.dmiss.saturating_add(pace.misses as u32);
        task.release_ns = pace.release.ns();
        task.show();
        sleep_until(pace.release);
        Ok(0)
    });
}
