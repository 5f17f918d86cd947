//! `struct rtf_params`: times in microseconds; zero and the empty string mean undeclared.

use crate::c::{Failure, bounded_text};
use punctual_model::Duration;
use punctual_protocol::Parameters;
use std::ffi::{CStr, c_char};

pub(super) const NAME: usize = 32;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct RtfParams {
    runtime: u64,
    des_runtime: u64,
    period: u64,
    deadline: u64,
    priority: u32,
    sched_plugin: [c_char; NAME],
    ignore_admission: u8,
}

impl RtfParams {
    /// Converts to the daemon's units. A time that overflows nanoseconds is an error.
    pub fn declared(&self) -> Result<Parameters, Failure> {
        let time = |name: &str, us: u64| match us {
            0 => Ok(None),
            us => match us.checked_mul(1_000) {
                Some(ns) => Ok(Some(Duration::from_ns(ns))),
                None => Err(Failure::invalid(format!(
                    "the {name} of {us} µs does not fit 64 bits of nanoseconds"
                ))),
            },
        };
        let name = self.sched_plugin.map(|c| c as u8);
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let name =
            std::str::from_utf8(name).map_err(|_| Failure::invalid("the name of the plugin is not UTF-8"))?;
        Ok(Parameters {
            runtime: time("runtime", self.runtime)?,
            desired_runtime: time("desired runtime", self.des_runtime)?,
            period: time("period", self.period)?,
            deadline: time("deadline", self.deadline)?,
            priority: (self.priority != 0).then_some(self.priority),
            plugin: (!name.is_empty()).then(|| name.to_owned()),
            ignore_admission: self.ignore_admission != 0,
            ..Parameters::default()
        })
    }
}

/// # Safety
/// `params` is NULL or valid.
pub(super) unsafe fn read<'a>(params: *const RtfParams) -> Result<&'a RtfParams, Failure> {
    // SAFETY: by this function's contract.
    unsafe { params.as_ref() }.ok_or_else(|| Failure::invalid("the parameters are NULL"))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_params_init(params: *mut RtfParams) {
    if !params.is_null() {
        // SAFETY: the header demands a valid place, and all zeros are parameters of which none is declared.
        unsafe { std::ptr::write_bytes(params, 0, 1) };
    }
}

/// Setters under the names of Table 3 and of Listing 1, and the getter.
macro_rules! field {
    ($($field:ident: $type:ty, $get:ident, $set:ident, $other:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $get(params: *const RtfParams) -> $type {
            // SAFETY: the header demands valid parameters.
            unsafe { params.as_ref() }.map_or(0, |params| params.$field)
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $set(params: *mut RtfParams, value: $type) {
            // SAFETY: the header demands valid parameters.
            if let Some(params) = unsafe { params.as_mut() } {
                params.$field = value;
            }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $other(params: *mut RtfParams, value: $type) {
            // SAFETY: the header demands valid parameters.
            unsafe { $set(params, value) }
        }
    )*};
}

field! {
    runtime: u64, rtf_params_get_runtime, rtf_params_set_runtime, rtf_param_set_runtime;
    des_runtime: u64, rtf_params_get_des_runtime, rtf_params_set_des_runtime, rtf_param_set_des_runtime;
    period: u64, rtf_params_get_period, rtf_params_set_period, rtf_param_set_period;
    deadline: u64, rtf_params_get_deadline, rtf_params_set_deadline, rtf_param_set_deadline;
    priority: u32, rtf_params_get_priority, rtf_params_set_priority, rtf_param_set_priority;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_params_set_scheduler(params: *mut RtfParams, plugin: *const c_char) {
    // SAFETY: the header demands valid parameters.
    if let Some(params) = unsafe { params.as_mut() } {
        params.sched_plugin = [0; NAME];
        if !plugin.is_null() {
            // SAFETY: the header demands a string.
            let name = unsafe { CStr::from_ptr(plugin) }.to_bytes();
            // SAFETY: the field has room for NAME bytes.
            unsafe { bounded_text(name, params.sched_plugin.as_mut_ptr(), NAME) };
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_param_set_scheduler(params: *mut RtfParams, plugin: *const c_char) {
    // SAFETY: the header demands valid parameters and a string.
    unsafe { rtf_params_set_scheduler(params, plugin) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_params_get_scheduler(params: *const RtfParams, plugin: *mut c_char) {
    // SAFETY: the header demands valid parameters, and room for NAME bytes.
    if let Some(params) = unsafe { params.as_ref() } {
        let name = params.sched_plugin.map(|c| c as u8);
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(NAME - 1);
        // SAFETY: as above.
        unsafe { bounded_text(&name[..length], plugin, NAME) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_params_ignore_admission(params: *mut RtfParams, ignore: u8) {
    // SAFETY: the header demands valid parameters.
    if let Some(params) = unsafe { params.as_mut() } {
        params.ignore_admission = ignore;
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rtf_param_ignore_admission(params: *mut RtfParams, ignore: u8) {
    // SAFETY: the header demands valid parameters.
    unsafe { rtf_params_ignore_admission(params, ignore) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeros() -> RtfParams {
        RtfParams {
            runtime: 0,
            des_runtime: 0,
            period: 0,
            deadline: 0,
            priority: 0,
            sched_plugin: [0; NAME],
            ignore_admission: 0,
        }
    }

    #[test]
    fn microseconds_are_converted_and_zero_means_undeclared() {
        assert_eq!(zeros().declared().expect("nothing"), Parameters::default());
        let mut params = zeros();
        params.period = 10_000;
        // SAFETY: valid parameters and a string.
        unsafe { rtf_params_set_scheduler(&mut params, c"EDF".as_ptr()) };
        let declared = params.declared().expect("in range");
        assert_eq!((declared.period, declared.plugin.as_deref()), (Some(Duration::from_ms(10)), Some("EDF")));
    }

    #[test]
    fn overflows_are_errors() {
        let mut params = zeros();
        params.runtime = u64::MAX / 1_000;
        assert_eq!(
            params.declared().expect("in range").runtime,
            Some(Duration::from_ns(u64::MAX / 1_000 * 1_000))
        );
        params.runtime += 1;
        let failure = params.declared().expect_err("too much");
        assert!(failure.message.contains("the runtime of 18446744073709552 µs"), "{}", failure.message);
    }

    #[test]
    fn a_long_name_is_truncated_and_terminated() {
        let mut params = zeros();
        // SAFETY: valid parameters and a string.
        unsafe {
            rtf_params_set_scheduler(&mut params, c"0123456789012345678901234567890123456789".as_ptr())
        };
        assert_eq!(
            params.declared().expect("a name").plugin.as_deref(),
            Some("0123456789012345678901234567890")
        );
    }
}
