//! Error codes of the C interface, and the last failure of each thread.

use crate::error::{Error, Refusal};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The codes of `enum punctual_error`. They are part of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    Invalid = -1,
    Unreachable = -2,
    TimedOut = -3,
    Lost = -4,
    Protocol = -5,
    Forked = -6,
    NotAdmitted = -7,
    NotPermitted = -8,
    OutOfBounds = -9,
    NoSuchSpec = -10,
    NoSuchThread = -11,
    NoSuchPlugin = -12,
    NotOwner = -13,
    AlreadyAttached = -14,
    NotAttached = -15,
    KernelRefused = -16,
    TooMany = -17,
    Internal = -18,
    NotYet = -19,
}

/// Names of the codes -1, -2, …, as in the header.
const NAMES: [&CStr; 19] = [
    c"PUNCTUAL_ERROR_INVALID",
    c"PUNCTUAL_ERROR_UNREACHABLE",
    c"PUNCTUAL_ERROR_TIMED_OUT",
    c"PUNCTUAL_ERROR_LOST",
    c"PUNCTUAL_ERROR_PROTOCOL",
    c"PUNCTUAL_ERROR_FORKED",
    c"PUNCTUAL_ERROR_NOT_ADMITTED",
    c"PUNCTUAL_ERROR_NOT_PERMITTED",
    c"PUNCTUAL_ERROR_OUT_OF_BOUNDS",
    c"PUNCTUAL_ERROR_NO_SUCH_SPEC",
    c"PUNCTUAL_ERROR_NO_SUCH_THREAD",
    c"PUNCTUAL_ERROR_NO_SUCH_PLUGIN",
    c"PUNCTUAL_ERROR_NOT_OWNER",
    c"PUNCTUAL_ERROR_ALREADY_ATTACHED",
    c"PUNCTUAL_ERROR_NOT_ATTACHED",
    c"PUNCTUAL_ERROR_KERNEL_REFUSED",
    c"PUNCTUAL_ERROR_TOO_MANY",
    c"PUNCTUAL_ERROR_INTERNAL",
    c"PUNCTUAL_ERROR_NOT_YET",
];

/// A failure on its way to C.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: Code,
    pub message: String,
}

impl Failure {
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure { code: Code::Invalid, message: message.into() }
    }

    pub fn forked() -> Failure {
        let message = "this connection belongs to the parent process; connect again in the child".into();
        Failure { code: Code::Forked, message }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::Unreachable { .. } => Code::Unreachable,
            Error::TimedOut { .. } => Code::TimedOut,
            Error::Lost { .. } => Code::Lost,
            Error::Protocol(_) => Code::Protocol,
            Error::Refused(refusal) => match refusal {
                Refusal::NotAdmitted { .. } => Code::NotAdmitted,
                Refusal::NotPermitted { .. } | Refusal::PermissionDenied {} => Code::NotPermitted,
                Refusal::OutOfBounds { .. } | Refusal::InvalidParameter { .. } => Code::OutOfBounds,
                Refusal::NoSuchSpec { .. } => Code::NoSuchSpec,
                Refusal::NoSuchThread { .. } => Code::NoSuchThread,
                Refusal::NoSuchPlugin { .. } => Code::NoSuchPlugin,
                Refusal::NotOwner { .. } => Code::NotOwner,
                Refusal::AlreadyAttached { .. } => Code::AlreadyAttached,
                Refusal::NotAttached { .. } => Code::NotAttached,
                Refusal::NotYet { .. } => Code::NotYet,
                Refusal::KernelRefused { .. } => Code::KernelRefused,
                Refusal::TooMany { .. } => Code::TooMany,
                Refusal::MethodNotFound { .. } | Refusal::InterfaceNotFound { .. } => Code::Protocol,
            },
        };
        Failure { code, message: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<(c_int, CString)> = RefCell::new((0, CString::default()));
}

/// Stores a failure for `punctual_last_error` and returns its code. At the very end of a thread it can no
/// longer be stored.
pub(crate) fn record(failure: Failure) -> c_int {
    let code = failure.code as c_int;
    let _ = LAST.try_with(|last| *last.borrow_mut() = (code, text(&failure.message)));
    code
}

/// Runs the body of a C function. A panic is a bug of this library and must not end the caller's process.
pub(crate) fn guarded(work: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => done,
        Ok(Err(failure)) => record(failure),
        Err(_) => record(Failure {
            code: Code::Internal,
            message: "this is a bug in libpunctual, please report it".into(),
        }),
    }
}

/// A C string; C cannot have a NUL inside.
pub(crate) fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

#[unsafe(no_mangle)]
extern "C" fn punctual_last_error() -> c_int {
    LAST.try_with(|last| last.borrow().0).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn punctual_last_error_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().1.as_ptr()).unwrap_or(c"".as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn punctual_error_name(error: c_int) -> *const c_char {
    let index = usize::try_from(-i64::from(error)).ok().and_then(|index| index.checked_sub(1));
    match index.and_then(|index| NAMES.get(index)) {
        Some(name) => name.as_ptr(),
        None if error >= 0 => c"PUNCTUAL_OK".as_ptr(),
        None => c"an unknown error".as_ptr(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_name() {
        let name = |code: c_int| {
            // SAFETY: the function gives a string constant.
            unsafe { CStr::from_ptr(punctual_error_name(code)) }.to_str().expect("ASCII")
        };
        assert_eq!(name(Code::Invalid as c_int), "PUNCTUAL_ERROR_INVALID");
        assert_eq!(name(Code::Forked as c_int), "PUNCTUAL_ERROR_FORKED");
        assert_eq!(name(Code::Internal as c_int), "PUNCTUAL_ERROR_INTERNAL");
        assert_eq!((name(0), name(1)), ("PUNCTUAL_OK", "PUNCTUAL_OK"));
        assert_eq!(name(Code::NotYet as c_int), "PUNCTUAL_ERROR_NOT_YET");
        assert_eq!((name(-20), name(c_int::MIN)), ("an unknown error", "an unknown error"));
    }

    #[test]
    fn a_panic_becomes_an_error() {
        assert_eq!(guarded(|| panic!("on purpose")), Code::Internal as c_int);
        assert_eq!(punctual_last_error(), Code::Internal as c_int);
    }
}
