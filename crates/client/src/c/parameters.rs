//! `struct punctual_params`: declared parameters, with getters and setters.

use super::failure::{Failure, guarded};
use punctual_model::Duration;
use punctual_protocol::{NICE_LEVELS, Parameters};
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

/// Longest name of a plugin, in bytes.
const LONGEST_NAME: usize = 256;

/// A path; `None` for NULL.
///
/// # Safety
/// `text` is NULL or a string.
pub(super) unsafe fn path(text: *const c_char) -> Option<PathBuf> {
    // SAFETY: by this function's contract.
    (!text.is_null()).then(|| OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).into())
}

/// A name of at most so many bytes; `None` for NULL.
///
/// # Safety
/// `text` is NULL or a string.
pub(super) unsafe fn name(what: &str, text: *const c_char, most: usize) -> Result<Option<String>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: by this function's contract.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    if bytes.len() > most {
        return Err(Failure::invalid(format!("{what} has {} bytes, but may have {most}", bytes.len())));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(Failure::invalid(format!("{what} is not UTF-8"))),
    }
}

/// Copies as much of `text` as fits into a C buffer, with a NUL.
///
/// # Safety
/// `buffer` has room for `size` bytes.
pub(crate) unsafe fn bounded_text(text: &[u8], buffer: *mut c_char, size: usize) {
    if buffer.is_null() || size == 0 {
        return;
    }
    let length = text.len().min(size - 1);
    // SAFETY: the buffer has room for `size` bytes, of which this writes length + 1.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), length);
        *buffer.add(length) = 0;
    }
}

/// # Safety
/// `params` is NULL or what C may write to.
unsafe fn change(params: *mut Parameters, set: impl FnOnce(&mut Parameters) -> Result<(), Failure>) -> c_int {
    guarded(|| {
        // SAFETY: by this function's contract.
        let params = unsafe { params.as_mut() }.ok_or_else(|| Failure::invalid("the parameters are NULL"))?;
        set(params).map(|()| 0)
    })
}

/// Returns 1 and stores the value if there is one, otherwise 0.
///
/// # Safety
/// Both pointers are NULL or valid.
unsafe fn read<T>(
    params: *const Parameters,
    value: *mut T,
    get: impl FnOnce(&Parameters) -> Option<T>,
) -> c_int {
    guarded(|| {
        // SAFETY: by this function's contract.
        let params = unsafe { params.as_ref() }.ok_or_else(|| Failure::invalid("the parameters are NULL"))?;
        let Some(found) = get(params) else { return Ok(0) };
        if !value.is_null() {
            // SAFETY: by this function's contract.
            unsafe { *value = found };
        }
        Ok(1)
    })
}

#[unsafe(no_mangle)]
extern "C" fn punctual_params_new() -> *mut Parameters {
    Box::into_raw(Box::default())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_free(params: *mut Parameters) {
    if !params.is_null() {
        // SAFETY: the header demands what punctual_params_new gave, and that it is not used again.
        drop(unsafe { Box::from_raw(params) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_clear(params: *mut Parameters) -> c_int {
    // SAFETY: the header demands valid parameters.
    unsafe {
        change(params, |params| {
            *params = Parameters::default();
            Ok(())
        })
    }
}

macro_rules! time {
    ($set:ident, $get:ident, $field:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $set(params: *mut Parameters, ns: u64) -> c_int {
            // SAFETY: the header demands valid parameters.
            unsafe {
                change(params, |params| {
                    params.$field = Some(Duration::from_ns(ns));
                    Ok(())
                })
            }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $get(params: *const Parameters, ns: *mut u64) -> c_int {
            // SAFETY: the header demands valid parameters and a valid place.
            unsafe { read(params, ns, |params| params.$field.map(Duration::ns)) }
        }
    };
}

time!(punctual_params_set_runtime, punctual_params_get_runtime, runtime);
time!(punctual_params_set_desired_runtime, punctual_params_get_desired_runtime, desired_runtime);
time!(punctual_params_set_period, punctual_params_get_period, period);
time!(punctual_params_set_deadline, punctual_params_get_deadline, deadline);
time!(punctual_params_set_offset, punctual_params_get_offset, offset);
time!(punctual_params_set_blocking, punctual_params_get_blocking, blocking);

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_set_priority(params: *mut Parameters, priority: u32) -> c_int {
    // SAFETY: the header demands valid parameters.
    unsafe {
        change(params, |params| {
            params.priority = Some(priority);
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_get_priority(params: *const Parameters, priority: *mut u32) -> c_int {
    // SAFETY: the header demands valid parameters and a valid place.
    unsafe { read(params, priority, |params| params.priority) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_set_nice(params: *mut Parameters, nice: c_int) -> c_int {
    // SAFETY: the header demands valid parameters.
    unsafe {
        change(params, |params| {
            if !NICE_LEVELS.contains(&nice) {
                return Err(Failure::invalid(format!("nice is {nice}, but must be -20 to 19")));
            }
            params.nice = Some(nice);
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_get_nice(params: *const Parameters, nice: *mut c_int) -> c_int {
    // SAFETY: the header demands valid parameters and a valid place.
    unsafe { read(params, nice, |params| params.nice) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_set_plugin(params: *mut Parameters, plugin: *const c_char) -> c_int {
    // SAFETY: the header demands valid parameters and a string or NULL.
    unsafe {
        change(params, |params| {
            params.plugin = name("the name of the plugin", plugin, LONGEST_NAME)?;
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_get_plugin(
    params: *const Parameters,
    plugin: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the header demands valid parameters and a buffer of that size.
    unsafe {
        read(params, ptr::null_mut(), |params| {
            let name = params.plugin.as_ref()?;
            bounded_text(name.as_bytes(), plugin, size);
            Some(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_set_ignore_admission(params: *mut Parameters, ignore: bool) -> c_int {
    // SAFETY: the header demands valid parameters.
    unsafe {
        change(params, |params| {
            params.ignore_admission = ignore;
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_params_get_ignore_admission(params: *const Parameters) -> c_int {
    // SAFETY: the header demands valid parameters.
    unsafe { read(params, ptr::null_mut(), |params| params.ignore_admission.then_some(true)) }
}
