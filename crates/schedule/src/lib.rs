//! Whether declared timing needs can be met, and how: admission tests, partitioning among processors, the plugins `EDF`, `RM`, `FP` and `RR`.
//!
//! Pure: no I/O, no clock, no kernel. What a plugin decides, the daemon sets.

mod books;
mod demand;
mod edf;
mod fixed;
mod levels;
mod parameters;
mod partitioned;
mod plugin;
mod response;
mod rm;
mod settings;
mod task;
mod utilization;
mod work;

pub use parameters::{Bound, Limits, Parameters};
pub use plugin::{Answer, Assignment, Load, Offer, Plugin, Policy, Refusal, SpecId};
pub use settings::{Kind, Settings, Test, plugin};
pub use utilization::Utilization;
