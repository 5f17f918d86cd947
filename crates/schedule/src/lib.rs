//! Whether declared timing needs can be met, and how: admission tests, partitioning among processors, the
//! plugins `EDF`, `RM`, `FP` and `RR`.
//!
//! Pure: no I/O, no clock, no kernel. What a plugin decides, the daemon sets.
//!
//! | plugin | kernel policy | processor | test `utilization` (the paper's) | test `exact` |
//! |---|---|---|---|---|
//! | EDF | SCHED_DEADLINE | least utilization | Σ Q / min(T, D) ≤ U^thr: sufficient | Σ Q / T ≤ U^thr, and processor demand |
//! | RM | SCHED_FIFO | least utilization | Σ Q / min(T, D) ≤ U^thr: necessary only | Σ Q / T ≤ U^thr, and response times |
//! | FP, RR | SCHED_FIFO, SCHED_RR | fewest specs | none | the same |
//!
//! An exact test asks the next processor where the least loaded one cannot take a spec.
//!
//! What a yes rests on: tasks are independent, do what they declared, and are delayed by nothing but each
//! other. A plugin knows its own specs and no others': plugins that share a processor have to share it by
//! their thresholds. What the kernel itself takes (latency, interrupts, migration, the 5 % that it withholds
//! from real-time threads by default) is what a threshold below 1 leaves.
//!
//! With the exact test, a spec that declares no runtime (FP, RR: or no period) runs below all specs on its
//! processor that declare them: RM puts it there, FP and RR refuse it where the declared priorities say
//! otherwise. Specs whose admission was ignored are taken at their own risk and that of others, as the paper
//! has it; a spec that declares its needs is not admitted below one whose needs are unknown.

mod books;
mod demand;
mod edf;
mod fixed;
mod levels;
mod partitioned;
mod plugin;
mod response;
mod rm;
mod settings;
mod task;
mod utilization;
mod work;

pub use plugin::{Answer, AssignedPolicy, Assignment, Load, Offer, Plugin, Refusal, SpecId};
pub use punctual_protocol::{Bound, Limits, Parameters};
pub use settings::{Kind, Settings, Test, plugin};
pub use utilization::Utilization;
