//! Latencies of chains over time: for each part of the trace, the least and the greatest that ended in it.

use super::chains::name;
use crate::number::{at_least, at_most, counted};
use maud::{Markup, html};
use punctual_model::dataflow::{Chain, Dataflow, Latency, Moment};
use punctual_model::{Duration, Instant};

/// Chains that are drawn.
const MOST_CHAINS: usize = 50;
/// Height of a drawing, in pixels.
const HEIGHT: u64 = 64;

/// A drawing for each chain, of its reaction times and data ages.
pub(super) fn over_time(flow: &Dataflow, begin: Instant) -> Markup {
    let drawn: Vec<_> = flow
        .chains
        .iter()
        .filter(|chain| latencies(chain).any(|(_, latency)| !latency.series.is_empty()))
        .take(MOST_CHAINS)
        .collect();
    if drawn.is_empty() {
        return html! {};
    }
    let span = flow.until_ns.since(flow.from_ns);
    html! {
        div.figures {
            figure.wide {
                h4 { "Latencies over time" }
                p.key {
                    "Each bar reaches from the least to the greatest latency that ended in that part of the \
                     trace. A drawing's top is the greatest of all."
                }
                ul.plain {
                    @for chain in drawn {
                        @for (kind, latency) in latencies(chain) {
                            li {
                                span { (kind) " of " bdi { (name(chain)) } ": up to "
                                    (at_most(latency.distribution.max_ns)) }
                                svg.bars.series height=(HEIGHT) role="img"
                                    aria-label={ (kind) " over time" } {
                                    @for moment in &latency.series {
                                        (bar(moment, latency, begin, span))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Its reaction times and data ages, as far as there are any.
pub(super) fn latencies(chain: &Chain) -> impl Iterator<Item = (&'static str, &Latency)> + '_ {
    let age = chain.age.iter().map(|latency| ("Data age", latency));
    chain.reaction.iter().map(|latency| ("Reaction time", latency)).chain(age)
}

fn bar(moment: &Moment, latency: &Latency, begin: Instant, span: Duration) -> Markup {
    let share = |time: Duration| time.ns() as f64 / span.ns().max(1) as f64 * 100.0;
    let greatest = latency.distribution.max_ns.ns().max(1);
    let down = |time: Duration| HEIGHT as f64 * (1.0 - time.ns() as f64 / greatest as f64);
    let (top, bottom) = (down(moment.max_ns), down(moment.min_ns));
    let at = share(moment.from_ns.since(begin));
    html! {
        rect.part.execution x=(format!("{at:.3}%")) y=(format!("{top:.1}")) width="0.4%"
            height=(format!("{:.1}", (bottom - top).max(1.5))) {
            title {
                (crate::flow::since(begin, moment.from_ns)) ": " (counted(moment.count, "latency")
                    .replace("latencys", "latencies")) ", "
                (at_least(moment.min_ns)) " to " (at_most(moment.max_ns))
            }
        }
    }
}
