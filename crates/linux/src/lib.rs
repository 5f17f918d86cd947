//! What Punctual asks of the kernel and tells it, once for all crates: how threads are scheduled, who they
//! are, what the machine is, counters, sockets, the service manager.

pub mod perf;
pub mod proc;
pub mod scheduling;
pub mod service_manager;
pub mod socket;
pub mod system;
pub mod thread;
