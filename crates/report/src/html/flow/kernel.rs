//! What the kernel did with executors while they executed tasks.

use crate::figures::SPLIT;
use crate::flow::kernel_rows;
use crate::html::cell;
use maud::{Markup, html};
use punctual_model::dataflow::Dataflow;

/// A line for each task; nothing where no recording of the same time was given.
pub(super) fn split(flow: &Dataflow) -> Markup {
    if kernel_rows(flow).next().is_none() {
        return html! {};
    }
    html! {
        div #flow-kernel {
            h3 { "Execution times by what the kernel did meanwhile" }
            p {
                "Of each execution, the parts sum up to it. Running: on a processor. Preempted: ready to run, without a processor. Suspended: waiting for something. "
                "Not split: executions that the recording does not say everything of."
            }
            (cell::table(SPLIT, kernel_rows(flow), "Execution times by what the kernel did as a table"))
        }
    }
}
