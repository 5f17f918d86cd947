//! Observes live threads: eBPF programs, what loads them, and the records that come out.
//!
//! Each eBPF object has a module and a folder: [`jobs`] records the activations of real-time threads,
//! [`flow`] the events of dataflow programs, [`latency`] what the scheduling-latency bound is made of,
//! [`wakeups`] how late threads run where the kernel does not show that. What they share stands beside them:
//! loading, the ring buffer, the command under observation, what must be known of the machine.
//!
//! Needs Linux 5.15 or newer with type information (BTF), CAP_BPF and CAP_PERFMON. Not for interpreting the
//! records: that is `extract`.

mod command;
mod descendants;
mod doctor;
mod error;
pub mod flow;
mod jobs;
pub mod latency;
mod loader;
mod preemption;
mod programs32;
mod ring;
mod system;
pub mod wakeups;

pub use command::Output;
pub use doctor::{Check, Verdict, doctor};
pub use error::{Error, ErrorKind};
pub use jobs::{
    Attach, LastMoments, Moments, Names, Observer, Options, Statistics, Summary, Switches, Target,
};
pub use loader::Attached;
pub use preemption::preemption;
pub use system::{Urgent, require_privileges};
