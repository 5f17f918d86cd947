//! Clients of the daemon: in Rust ([`Client`]), and in C through `libpunctual` (`include/punctual.h`,
//! `include/retif.h`).
//!
//! Decides nothing: sends requests and returns replies.

mod c;
mod client;
mod connection;
mod error;
mod pace;
mod retif;
mod told;

pub use client::{
    Client, DEFAULT_SOCKET, DEFAULT_TIMEOUT, INTERACTIVE_TIMEOUT, SOCKET_VARIABLE, default_socket,
};
pub use error::{Error, Refusal};
pub use pace::{Ended, Pace};
pub use punctual_protocol::{
    Admission, Answer, ChangeSpec, ClientInfo, Counts, CreateSpec, PARAMETERS, Parameters, Plugin, Policy,
    Processor, ReplaceSpecs, Says, Spec, SpecId, Status, Unit, Used,
};
pub use told::LoopCounts;
