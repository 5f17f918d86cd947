//! What a request is refused with: the errors of the interface.

pub use punctual_protocol::Error;
