//! The protocol between punctuald and its clients: parameters, requests, replies and errors, each declared
//! once. `interfaces/io.punctual.Scheduler1.varlink` is the same for every other language.
//!
//! Pure: no I/O. Sockets are the business of `daemon` and `client`.

pub mod dispatcher;
mod error;
mod loop_memory;
mod messages;
mod parameters;
mod text;

pub use error::Error;
pub use loop_memory::{LOOP_MEMORY_SIZE, LoopMemory};
pub use messages::{
    Admission, Admitted, Answer, AttachThread, ChangeSpec, ClientInfo, ClientList, Counts, CreateSpec,
    Enforced, LONGEST_SPEC_NAME, NoParameters, Plugin, PluginList, Processor, ReplaceSpecs, Replaced,
    ReportUse, Says, Spec, SpecId, SpecList, SpecNumber, SpecReply, Status, Used,
};
pub use parameters::{Bound, Limits, NICE_LEVELS, PARAMETERS, Parameter, Parameters, Unit, parameter};
pub use punctual_model::Policy;
pub use text::one_line;

/// The name of the interface.
pub const INTERFACE: &str = "io.punctual.Scheduler1";
/// Its text, as `varlinkctl introspect` shows it.
pub const INTERFACE_TEXT: &str = include_str!("../interfaces/io.punctual.Scheduler1.varlink");
/// The interface that every Varlink service has.
pub const SERVICE: &str = "org.varlink.service";
/// Its text.
pub const SERVICE_TEXT: &str = include_str!("../interfaces/org.varlink.service.varlink");
/// What the names of this interface's methods begin with.
pub const METHOD_PREFIX: &str = "io.punctual.Scheduler1.";
