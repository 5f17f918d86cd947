//! `struct punctual_spec`: a spec of this process, its admission, and its periodic loop.

use super::connection::{Shared, shared};
use super::failure::{Code, Failure, guarded};
use super::parameters::{bounded_text, name};
use crate::pace::{Ended, Pace, now, sleep_until};
use crate::told::LoopCounts;
use punctual_model::{Duration, Instant};
use punctual_protocol::{Admission, Answer, LONGEST_SPEC_NAME, Parameters, Policy, SpecId};
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// In place of a processor: the thread is not pinned.
pub(super) const ANY_PROCESSOR: u32 = i32::MAX as u32;

/// Marks an undeclared time, or a loop that has not been started.
const NONE: u64 = u64::MAX;

/// The loop uses atomics, so that a real-time thread never waits for one that reads or changes the spec.
#[derive(Debug)]
pub(super) struct Spec {
    client: Arc<Shared>,
    id: SpecId,
    admission: Mutex<Admission>,
    accepted_runtime: AtomicU64,
    period: AtomicU64,
    deadline: AtomicU64,
    release: AtomicU64,
    misses: AtomicU64,
    /// Where the loop is counted for the daemon, since it began.
    counts: OnceLock<LoopCounts>,
}

impl Spec {
    pub(super) fn new(client: Arc<Shared>, declared: &Parameters, admission: Admission) -> Spec {
        let spec = Spec {
            client,
            id: admission.spec,
            admission: Mutex::new(admission.clone()),
            accepted_runtime: AtomicU64::new(NONE),
            period: AtomicU64::new(NONE),
            deadline: AtomicU64::new(NONE),
            release: AtomicU64::new(NONE),
            misses: AtomicU64::new(0),
            counts: OnceLock::new(),
        };
        spec.declare(declared);
        spec.admit(admission);
        spec
    }

    pub(super) fn id(&self) -> SpecId {
        self.id
    }

    /// It has other parameters now.
    pub(super) fn changed(&self, declared: &Parameters, admission: Admission) {
        self.declare(declared);
        self.admit(admission);
    }

    fn declare(&self, declared: &Parameters) {
        let period = declared.period.map_or(NONE, Duration::ns);
        self.period.store(period, Ordering::Relaxed);
        self.deadline.store(declared.deadline.map_or(period, Duration::ns), Ordering::Relaxed);
    }

    fn admit(&self, admission: Admission) {
        self.accepted_runtime.store(admission.accepted_runtime.map_or(NONE, Duration::ns), Ordering::Relaxed);
        *self.admission.lock().unwrap_or_else(PoisonError::into_inner) = admission;
    }

    /// Has the loop counted for the daemon, where the daemon can do that. The loop goes without.
    fn share(&self) {
        let shared = self.client.with(|client| match self.counts.get() {
            None => client.share_loop(self.id).map(|counts| drop(self.counts.set(counts))),
            Some(counts) => client.share_loop_again(self.id, counts),
        });
        if let (Ok(()), Some(counts)) = (shared, self.counts.get()) {
            counts.begin();
        }
    }

    fn admission(&self) -> Result<MutexGuard<'_, Admission>, Failure> {
        if !self.client.is_ours() {
            return Err(Failure::forked());
        }
        Ok(self.admission.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// # Safety
/// `spec` is NULL or what C may use.
unsafe fn with(spec: *const Spec, work: impl FnOnce(&Spec) -> Result<c_int, Failure>) -> c_int {
    guarded(|| {
        // SAFETY: by this function's contract.
        work(unsafe { spec.as_ref() }.ok_or_else(|| Failure::invalid("the spec is NULL"))?)
    })
}

/// # Safety
/// `params` is NULL or what C may read.
pub(super) unsafe fn declared<'a>(params: *const Parameters) -> Result<&'a Parameters, Failure> {
    // SAFETY: by this function's contract.
    unsafe { params.as_ref() }.ok_or_else(|| Failure::invalid("the parameters are NULL"))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_create(
    connection: *const Shared,
    params: *const Parameters,
    called: *const c_char,
    spec: *mut *mut Spec,
) -> c_int {
    guarded(|| {
        if spec.is_null() {
            return Err(Failure::invalid("the pointer for the spec is NULL"));
        }
        // SAFETY: the header demands a live connection, valid parameters, and a string or NULL.
        let (client, params, called) = unsafe {
            (shared(connection)?, declared(params)?, name("the name of the spec", called, LONGEST_SPEC_NAME)?)
        };
        let admission = client.with(|client| client.create_spec(params, called.as_deref()))?;
        let created = Box::new(Spec::new(client, params, admission));
        // SAFETY: the header demands a valid place.
        unsafe { *spec = Box::into_raw(created) };
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_change(spec: *const Spec, params: *const Parameters) -> c_int {
    // SAFETY: the header demands a live spec and valid parameters.
    unsafe {
        with(spec, |spec| {
            let params = declared(params)?;
            let admission = spec.client.with(|client| client.change_spec(spec.id, params))?;
            spec.changed(params, admission);
            Ok(0)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_attach(spec: *const Spec, thread: libc::pid_t) -> c_int {
    // SAFETY: the header demands a live spec.
    unsafe {
        with(spec, |spec| {
            let thread = match thread {
                0 => rustix::thread::gettid().as_raw_nonzero().get(),
                thread => thread,
            };
            let thread =
                u32::try_from(thread).map_err(|_| Failure::invalid(format!("{thread} is not a TID")))?;
            let admission = spec.client.with(|client| client.attach_thread(spec.id, thread))?;
            spec.admit(admission);
            Ok(0)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_detach(spec: *const Spec) -> c_int {
    // SAFETY: the header demands a live spec.
    unsafe { with(spec, |spec| spec.client.with(|client| client.detach_thread(spec.id)).map(|()| 0)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_release(spec: *mut Spec) -> c_int {
    // SAFETY: the header demands a live spec.
    let released =
        unsafe { with(spec, |spec| spec.client.with(|client| client.release_spec(spec.id)).map(|()| 0)) };
    if released == 0 || released == Code::NoSuchSpec as c_int {
        // SAFETY: it is live, not NULL (which is invalid), and by the header not used again.
        unsafe { punctual_spec_free(spec) };
    }
    released
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn punctual_spec_free(spec: *mut Spec) {
    if !spec.is_null() {
        // SAFETY: the header demands what punctual_spec_create gave, and that it is not used again.
        drop(unsafe { Box::from_raw(spec) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_get_id(spec: *const Spec) -> u64 {
    // SAFETY: the header demands a live spec.
    unsafe { spec.as_ref() }.map_or(0, |spec| spec.id)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_get_accepted_runtime(spec: *const Spec, ns: *mut u64) -> c_int {
    // SAFETY: the header demands a live spec and a valid place.
    unsafe {
        with(spec, |spec| {
            let accepted = spec.accepted_runtime.load(Ordering::Relaxed);
            if accepted == NONE {
                return Ok(0);
            }
            if let Some(ns) = ns.as_mut() {
                *ns = accepted;
            }
            Ok(1)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_get_plugin(spec: *const Spec, plugin: *mut c_char, size: usize) -> c_int {
    // SAFETY: the header demands a live spec and a buffer of that size.
    unsafe {
        with(spec, |spec| {
            bounded_text(spec.admission()?.plugin.as_bytes(), plugin, size);
            Ok(0)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_get_processor(spec: *const Spec) -> c_int {
    // SAFETY: the header demands a live spec.
    unsafe { with(spec, |spec| Ok(spec.admission()?.processor.unwrap_or(ANY_PROCESSOR) as c_int)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_get_policy(spec: *const Spec) -> c_int {
    // SAFETY: the header demands a live spec.
    unsafe { with(spec, |spec| Ok(policy(spec.admission()?.policy))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_get_policy_priority(spec: *const Spec) -> c_int {
    // SAFETY: the header demands a live spec.
    unsafe { with(spec, |spec| Ok(spec.admission()?.policy_priority.unwrap_or(0) as c_int)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_is_partial(spec: *const Spec) -> c_int {
    // SAFETY: the header demands a live spec.
    unsafe { with(spec, |spec| Ok((spec.admission()?.answer == Answer::Partial).into())) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_is_admission_ignored(spec: *const Spec) -> c_int {
    // SAFETY: the header demands a live spec.
    unsafe { with(spec, |spec| Ok(spec.admission()?.admission_ignored.into())) }
}

/// `enum punctual_policy`: the numbers of `<sched.h>`.
pub(super) fn policy(policy: Policy) -> c_int {
    policy.number() as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_start(spec: *const Spec) -> c_int {
    // SAFETY: the header demands a live spec.
    unsafe {
        with(spec, |spec| {
            if spec.period.load(Ordering::Relaxed) == NONE {
                return Err(Failure::invalid("the spec has no period"));
            }
            spec.share();
            spec.misses.store(0, Ordering::Relaxed);
            spec.release.store(now().ns(), Ordering::Relaxed);
            Ok(0)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_wait_period(spec: *const Spec) -> c_int {
    // SAFETY: the header demands a live spec.
    unsafe {
        with(spec, |spec| {
            let (period, release) =
                (spec.period.load(Ordering::Relaxed), spec.release.load(Ordering::Relaxed));
            if period == NONE {
                return Err(Failure::invalid("the spec has no period"));
            }
            if release == NONE {
                return Err(Failure::invalid("the loop has not begun: call punctual_spec_start first"));
            }
            let deadline = Duration::from_ns(spec.deadline.load(Ordering::Relaxed));
            let (period, release) = (Duration::from_ns(period), Instant::from_ns(release));
            let mut pace = Pace { period, deadline, release, misses: 0 };
            let end = now();
            let ended = pace.end(end);
            if let Some(counts) = spec.counts.get() {
                counts.end_job(end.since(release), ended == Ended::Late);
            }
            spec.misses.fetch_add(pace.misses, Ordering::Relaxed);
            spec.release.store(pace.release.ns(), Ordering::Relaxed);
            sleep_until(pace.release);
            Ok((ended == Ended::Late).into())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_get_release(spec: *const Spec, ns: *mut u64) -> c_int {
    // SAFETY: the header demands a live spec and a valid place.
    unsafe {
        with(spec, |spec| {
            let release = spec.release.load(Ordering::Relaxed);
            if release == NONE {
                return Ok(0);
            }
            if let Some(ns) = ns.as_mut() {
                *ns = release;
            }
            Ok(1)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_get_overruns(spec: *const Spec) -> u64 {
    // SAFETY: the header demands a live spec.
    let counts = unsafe { spec.as_ref() }.and_then(|spec| spec.counts.get());
    counts.map_or(0, |counts| counts.overruns())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_spec_get_deadline_misses(spec: *const Spec) -> u64 {
    // SAFETY: the header demands a live spec.
    unsafe { spec.as_ref() }.map_or(0, |spec| spec.misses.load(Ordering::Relaxed))
}
