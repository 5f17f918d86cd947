//! Recordings of the kernel's tracepoints, as perf and trace-cmd make them: where fields are, and what they
//! say of threads.

mod format;
pub mod layout;
mod reached;
mod threads;

use super::account::use_of;
use format::ENTER_ONE;
pub use format::{Format, formats, place};
use punctual_trace::account::Use;
pub use reached::Reached;
pub use threads::{Seen, Threads};

/// Tracepoints that say who ran when.
pub const SWITCH: &str = "sched_switch";
/// Those of system calls.
const ENTER: &str = "sys_enter";
/// Which tracepoints of system calls there are: those of all calls at once (`raw_syscalls`), or else those of
/// each call (`syscalls`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    None,
    Each,
    All,
}

impl Calls {
    pub fn of<'a>(formats: impl Iterator<Item = &'a Format>) -> Calls {
        let mut calls = Calls::None;
        for format in formats {
            match format.name.as_str() {
                ENTER => return Calls::All,
                name if name.starts_with(ENTER_ONE) => calls = Calls::Each,
                _ => {}
            }
        }
        calls
    }
}

/// What a trace with system calls lacks if it does not name its machine.
pub const NO_MACHINE: &str =
    "it does not name the machine it was recorded on: punctual import --machine x86_64 (or aarch64) gives it";

/// Tracepoints with how often each was hit, and what it was read for, as an account has them.
pub fn kinds<'a>(
    formats: impl Iterator<Item = &'a Format>,
) -> impl Iterator<Item = (&'a str, u64, Option<Use>)> {
    formats.flat_map(|format| {
        let (name, unread) = (format.name.as_str(), format.unread.get());
        [(name, format.hit.get().saturating_sub(unread), use_of(name)), (name, unread, None)]
    })
}
