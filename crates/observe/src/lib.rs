//! Watches live threads: the eBPF program, its loader, and the records that come out of it.
//!
//! Needs a kernel of 5.15 or newer that describes its types (BTF), and CAP_BPF with CAP_PERFMON. Not for:
//! what the records mean (that is `extract`).

mod calls;
mod doctor;
mod error;
mod interface;
#[cfg(test)]
mod machine;
mod observer;
pub mod probes;
mod program;
mod system;

pub use doctor::{Check, Verdict, doctor};
pub use error::{Error, ErrorKind};
pub use observer::{Observer, Options, Statistics, Summary, Target};
pub use program::{Attach, Attached};
