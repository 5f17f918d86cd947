//! How often the latencies of chains were how long.

use super::chains::name;
use super::series::latencies;
use crate::html::scale::{Scale, percent};
use crate::number::{at_most, counted};
use maud::{Markup, html};
use punctual_model::Duration;
use punctual_model::dataflow::{Chain, Dataflow, Distribution, Latency};

/// Chains that are drawn.
const MOST_CHAINS: usize = 50;
/// Height of a drawing, in pixels.
const HEIGHT: f64 = 64.0;

/// A drawing for each chain, of its reaction times and data ages, all on one axis.
pub(super) fn histograms(flow: &Dataflow) -> Markup {
    let of = |chain| {
        let all = latencies(chain).filter(|(_, latency)| !latency.distribution.histogram.is_empty());
        all.map(move |(kind, latency)| (kind, chain, latency))
    };
    let chains: Vec<&Chain> = flow.chains.iter().filter(|chain| of(chain).next().is_some()).collect();
    let drawn: Vec<_> = chains.iter().take(MOST_CHAINS).flat_map(|chain| of(chain)).collect();
    if drawn.is_empty() {
        return html! {};
    }
    let ends = |(_, _, latency): &(&str, &Chain, &Latency)| {
        [latency.distribution.min_ns, latency.distribution.max_ns]
    };
    let scale = Scale::new(drawn.iter().flat_map(ends));
    html! {
        div.figures {
            figure.wide {
                h4 { "How often a chain took how long" }
                p.key {
                    "Each bar counts the latencies between its edges; its height grows with the logarithm of \
                     their number, so that one of thousands can be seen."
                }
                (scale.axis())
                ul.rows {
                    @for (kind, chain, latency) in drawn {
                        li {
                            span { (kind) " of " bdi { (name(chain)) } ": "
                                (counted(latency.distribution.count, "time")) ", up to "
                                (at_most(latency.distribution.max_ns)) }
                            svg.bars.histogram height=(HEIGHT) role="img"
                                aria-label={ (kind) ", how often how long" } {
                                (scale.grid())
                                (bars(&latency.distribution, &scale))
                            }
                        }
                    }
                }
                (scale.axis())
                @if chains.len() > MOST_CHAINS {
                    @let more = (chains.len() - MOST_CHAINS) as u64;
                    p.missing { (counted(more, "chain")) " more in the table." }
                }
            }
        }
    }
}

fn bars(distribution: &Distribution, scale: &Scale) -> Markup {
    let most = distribution.histogram.iter().map(|bin| bin.count).max().unwrap_or(1);
    let height = |count: u64| HEIGHT * (1.0 + count as f64).log2() / (1.0 + most as f64).log2();
    // Each begins where the one before ends.
    let mut from = distribution.min_ns;
    let bins = distribution.histogram.iter().map(|bin| (std::mem::replace(&mut from, bin.until_ns), bin));
    let bins: Vec<(Duration, _)> = bins.collect();
    html! {
        @for (from, bin) in bins {
            @let (left, right) = (scale.percent(from), scale.percent(bin.until_ns));
            @let height = height(bin.count);
            rect.part.execution x=(percent(left)) y=(format!("{:.1}", HEIGHT - height))
                width=(percent((right - left).max(0.2))) height=(format!("{height:.1}")) {
                title { (counted(bin.count, "time")) ", up to " (at_most(bin.until_ns)) }
            }
        }
    }
}
