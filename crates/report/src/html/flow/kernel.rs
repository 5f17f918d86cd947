//! What the kernel did with executors during executions.

use crate::figures::SPLIT;
use crate::flow::kernel_rows;
use crate::html::cell;
use maud::{Markup, html};
use punctual_model::dataflow::Dataflow;

/// A line for each task; nothing without a recording of the same time.
pub(super) fn split(flow: &Dataflow) -> Markup {
    if kernel_rows(flow).next().is_none() {
        return html! {};
    }
    html! {
        div #flow-kernel {
            h3 { "Execution times by what the kernel did meanwhile" }
            p {
                "The parts of each execution sum up to it. Running: on a processor. Preempted: ready, \
                 without a processor. Suspended: waiting for something. Not split: executions that the \
                 recording does not fully cover."
            }
            (cell::table(SPLIT, kernel_rows(flow), "Execution times by what the kernel did as a table"))
        }
    }
}
