//! Decides whether declared timing needs can be met, and how: admission tests, partitioning among processors,
//! the plugins `EDF`, `RM`, `FP`, `RR`, `GEDF` and `NICE`.
//!
//! Pure: no I/O, no clock, no kernel. The daemon carries out what a plugin decides.
//!
//! | plugin | kernel policy | processor | test `utilization` (the paper's) | test `exact` |
//! |---|---|---|---|---|
//! | EDF | SCHED_DEADLINE | least loaded | Σ Q / min(T, D) ≤ U: sufficient | Σ Q / T ≤ U, processor demand |
//! | RM | SCHED_FIFO | least loaded | Σ Q / min(T, D) ≤ U: necessary only | Σ Q / T ≤ U, response times |
//! | FP, RR | SCHED_FIFO, SCHED_RR | fewest specs | as RM (the paper: none) | as RM |
//! | GEDF | SCHED_DEADLINE | any of its own | Goossens, Funk and Baruah: sufficient | the same |
//! | NICE | SCHED_OTHER | any | none: it promises nothing | none |
//!
//! Q is the runtime of a spec, T its period, D its deadline, U the plugin's threshold (the paper's U^thr).
//!
//! With an exact test, a spec that does not fit the least loaded processor is tested on the others.
//!
//! Admission assumes that tasks are independent, stay within their declarations, and are delayed only by
//! each other, by the kernel where [`Settings::platforms`] says how much, and by what it keeps for ordinary
//! threads ([`Settings::reserves`]). A plugin knows its own specs only: plugins that share a processor must
//! divide it by their thresholds. All else (the kernel, where it is not known; migration) must fit in what
//! a threshold below 1 leaves.
//!
//! With either test, a spec that declares no runtime (FP, RR: or no period) runs below all specs on its
//! processor that declare both: RM places it there, FP and RR refuse it if the declared priorities say
//! otherwise. Specs whose admission test was ignored are a risk to themselves and to others, as in the paper;
//! a spec that declares its needs is not admitted below one whose needs are unknown.

mod books;
mod builtin;
mod demand;
mod edf;
mod fixed;
mod global;
mod levels;
mod nice;
mod partitioned;
mod plugin;
mod reserve;
mod response;
mod rm;
mod settings;
mod task;
mod utilization;
mod work;

pub use builtin::plugin;
pub use plugin::{ANYWHERE, Answer, AssignedPolicy, Assignment, Load, Offer, Plugin, Refusal, SpecId};
pub use punctual_analysis::Platform;
pub use punctual_protocol::{Bound, Limits, Parameters};
pub use reserve::{Reserve, ReserveKind};
pub use settings::{Kind, Settings, Test};
pub use utilization::Utilization;
