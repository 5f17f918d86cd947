//! What the kernel did with executors while they executed tasks.

use crate::flow::{PARTS, kernel_rows};
use maud::{Markup, html};
use punctual_model::dataflow::Dataflow;

/// A line for each task; nothing where no recording of the same time was given.
pub(super) fn split(flow: &Dataflow) -> Markup {
    let rows = kernel_rows(flow);
    if rows.is_empty() {
        return html! {};
    }
    html! {
        div #flow-kernel {
            h3 { "Execution times by what the kernel did meanwhile" }
            p {
                "Of each execution, the parts sum up to it. Running: on a processor. Preempted: ready to run, without a processor. Suspended: waiting for something. "
                "Not split: executions that the recording does not say everything of."
            }
            div.scroll tabindex="0" role="region" aria-label="Execution times by what the kernel did as a table" {
                table {
                    thead { tr { @for column in &PARTS { th.figure[column.right] scope="col" { (column.title) } } } }
                    tbody {
                        @for row in rows {
                            tr { @for (index, cell) in row.iter().enumerate() { @if index == 0 { th scope="row" { bdi { (cell) } } } @else { td.figure { (cell) } } } }
                        }
                    }
                }
            }
        }
    }
}
