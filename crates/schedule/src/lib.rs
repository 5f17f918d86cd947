//! Whether declared timing needs can be met, and how: admission tests, partitioning among processors, the plugins `EDF`, `RM`, `FP` and `RR`.
//!
//! Pure: no I/O, no clock, no kernel. What a plugin decides, the daemon sets.

mod parameters;
mod plugin;

pub use parameters::{Bound, Limits, Parameters};
pub use plugin::{Answer, Assignment, Load, Offer, Plugin, Policy, Refusal, SpecId};
