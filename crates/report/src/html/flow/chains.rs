//! Chains: box plots of their latencies, and the parts of the worst of each.

use super::boxes::{self, Kinds, Row};
use super::{histograms, series};
use crate::figures::LATENCY;
use crate::flow::{doubts, greatest, latency_rows, since, waited};
use crate::html::cell;
use crate::html::scale::{Scale, percent};
use crate::number::{at_most, count, counted};
use crate::visible;
use maud::{Markup, html};
use punctual_model::dataflow::{Chain, Dataflow, Latency, PathStep, WorstPath};
use punctual_model::{Duration, Instant};

/// Chains whose worst cases are drawn.
const MOST_WORST: usize = 100;

/// The chain, with arrows.
pub(super) fn name(chain: &Chain) -> String {
    chain.tasks.iter().map(|task| visible(task)).collect::<Vec<_>>().join(" → ")
}

/// Everything about chains.
pub(super) fn chains(flow: &Dataflow, begin: Instant) -> Markup {
    if flow.chains_omitted {
        return html! { p { "There are too many paths from sources to sinks to follow them all; name those \
        that you want: punctual chains TRACE --chain TASK,TASK,… -o FILE" } };
    }
    if flow.chains.is_empty() {
        return html! {
            p { "No chains: no task's data activate another." }
            @for line in doubts(flow) { p.missing { (line) } }
        };
    }
    let distribution =
        |latency: &'_ Option<Latency>| latency.as_ref().map(|latency| latency.distribution.clone());
    let found: Vec<_> = flow
        .chains
        .iter()
        .map(|chain| (name(chain), distribution(&chain.reaction), distribution(&chain.age)))
        .collect();
    let rows: Vec<Row> = found
        .iter()
        .map(|(name, reaction, age)| Row { name: name.clone(), boxes: [reaction.as_ref(), age.as_ref()] })
        .collect();
    let kinds = Kinds { names: ["Reaction time", "Data age"], classes: ["reaction", "age"] };
    let caption = "Reaction time: from the activation of a source's instance to the end of the first sink \
                   instance that has read its datum or a later one. Data age: from the activation of the \
                   source instance of the newest datum that a sink instance has read to its end.";
    html! {
        div.figures { (boxes::figure(crate::flow::title(flow), &rows, &kinds, caption)) }
        @for line in doubts(flow) { p.missing { (line) } }
        (table(flow))
        (histograms::histograms(flow))
        (series::over_time(flow, begin))
        (worst(flow, begin))
    }
}

fn table(flow: &Dataflow) -> Markup {
    cell::table(LATENCY, latency_rows(flow), "Latencies of chains as a table")
}

/// What a stretch of a datum's path was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Queuing,
    Execution,
    Waiting,
}

impl Part {
    const ALL: [Part; 3] = [Part::Queuing, Part::Execution, Part::Waiting];

    fn class(self) -> &'static str {
        ["queuing", "execution", "waiting"][self as usize]
    }

    fn meaning(self) -> &'static str {
        [
            "Queuing: for an executor, or behind earlier data. ",
            "Execution. ",
            "Waiting: on a channel, for other inputs or for a later datum. ",
        ][self as usize]
    }
}

/// The path in order: part, begin and end since its own begin, and instance.
fn way(worst: &WorstPath) -> Vec<(Part, Duration, Duration, String)> {
    let mut way = Vec::new();
    let mut add = |part, from: Instant, until: Instant, whose: &PathStep| {
        if until > from {
            way.push((
                part,
                from.since(worst.from_ns),
                until.since(worst.from_ns),
                format!("{} #{}", visible(&whose.task), whose.instance),
            ));
        }
    };
    for stage in worst.stages() {
        let step = stage.step;
        // Where the task was busy now and then, all of that first.
        let free = stage.came + stage.busy;
        add(Part::Queuing, stage.came, free, step);
        add(Part::Waiting, free, stage.activation, step);
        add(Part::Queuing, stage.activation, step.start_ns, step);
        add(Part::Execution, step.start_ns, step.until_ns, step);
    }
    way
}

fn worst(flow: &Dataflow, begin: Instant) -> Markup {
    let drawn: Vec<(&Chain, &Latency)> =
        flow.chains.iter().filter_map(|chain| Some((chain, chain.reaction.as_ref()?))).collect();
    let Some(longest) = drawn.iter().map(|(_, latency)| latency.distribution.max_ns).max() else {
        return html! {};
    };
    let scale = Scale::linear(longest);
    html! {
        div.figures {
            figure.wide {
                h4 { "Worst reaction time of each chain, and its parts" }
                p.key {
                    @for part in Part::ALL {
                        svg.sample width="32" height="14" aria-hidden="true" {
                            rect class={ "part " (part.class()) } x="2" y="1" width="28" height="12" {}
                        }
                        (part.meaning())
                    }
                }
                (scale.axis())
                ol.rows {
                    @for (chain, latency) in drawn.iter()
                        .take(MOST_WORST) { (bars(flow, chain, latency, &scale, begin)) }
                }
                (scale.axis())
                @if drawn.len() > MOST_WORST {
                    p.missing { (counted((drawn.len() - MOST_WORST) as u64, "chain")) " more in the table." }
                }
                figcaption {
                    "The upper bar of each chain shows the sum of each part, the lower one the path of that \
                     datum in time. All are to one scale."
                }
            }
        }
    }
}

/// A chain's worst case: its parts as one bar, its way as another, and both in words.
fn bars(flow: &Dataflow, chain: &Chain, latency: &Latency, scale: &Scale, begin: Instant) -> Markup {
    let worst = &latency.worst;
    let parts = [worst.queuing_ns, worst.execution_ns, worst.waiting_ns];
    let mut edge = Duration::ZERO;
    let sums = Part::ALL.into_iter().zip(parts).map(|(part, length)| {
        let from = edge;
        edge += length;
        (part, from, edge)
    });
    let sums: Vec<(Part, Duration, Duration)> = sums.collect();
    html! {
        li {
            span {
                bdi { (name(chain)) } ": " (greatest(&latency.distribution)) " = " (parts_in_words(worst))
            }
            svg.bars height="44" aria-hidden="true" {
                (scale.grid())
                @for (part, from, until) in sums.iter()
                    .filter(|(_, from, until)| until > from) {
                        @let length = at_most(until.saturating_sub(*from)).to_string();
                        (bar(*part, (*from, *until), scale, (2, 22), &length))
                    }
                @for (part, from, until, whose) in way(worst) {
                    (bar(part, (from, until), scale, (28, 12),
                        &format!("{whose}: {} {}", part.class(), at_most(until.saturating_sub(from)))))
                }
            }
            details {
                summary { "The path of this datum, step by step" }
                (steps(flow, worst, begin))
                @if let Some(age) = &chain.age {
                    @if age.worst == *worst {
                        p { "The worst data age, " (greatest(&age.distribution)) ", is that of the same \
                         datum." }
                    } @else {
                        p {
                            "The worst data age, " (greatest(&age.distribution)) " = "
                            (parts_in_words(&age.worst)) ":"
                        }
                        (steps(flow, &age.worst, begin))
                    }
                }
                @if chain.overwritten > 0 {
                    p { (count(chain.overwritten)) " of the data had no reaction of their own: the sink \
                        read a later datum as well, or instead." }
                }
            }
        }
    }
}

fn parts_in_words(worst: &WorstPath) -> String {
    let [queuing, execution, waiting] = [worst.queuing_ns, worst.execution_ns, worst.waiting_ns].map(at_most);
    format!("queuing {queuing} + execution {execution} + waiting {waiting}")
}

fn bar(
    part: Part,
    (from, until): (Duration, Duration),
    scale: &Scale,
    (top, height): (u32, u32),
    title: &str,
) -> Markup {
    let (left, right) = (scale.percent(from), scale.percent(until));
    html! {
        @let width = percent((right - left).max(0.1));
        rect class={ "part " (part.class()) } x=(percent(left)) y=(top) width=(width) height=(height) {
            title { (title) }
        }
    }
}

fn steps(flow: &Dataflow, worst: &WorstPath, begin: Instant) -> Markup {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (index, stage) in worst.stages().enumerate() {
        let step = stage.step;
        let mut text = String::new();
        let ahead = stage.waiting();
        if index > 0 {
            text += &waited(flow, &stage);
        } else if ahead > Duration::ZERO {
            let source = count(worst.source_instance);
            text += &format!(
                "instance #{source} put a datum on the chain that did not arrive; after {ahead} a later one \
                 did that did; "
            );
        }
        text += &format!("queued {}, executed {}", stage.queuing(), stage.execution());
        text += &match &step.channel {
            Some(channel) => format!(" until it pushed on {}", visible(channel)),
            None => " to its end".into(),
        };
        lines.push((
            format!(
                "{} #{}, activated {}: ",
                visible(&step.task),
                count(step.instance),
                since(begin, step.activation_ns)
            ),
            text,
        ));
    }
    html! { ol { @for (who, what) in lines { li { bdi { (who) } (what) } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_datum_has_no_gap_and_adds_up_to_its_latency() {
        let at = Instant::from_ns;
        let step = |task: &str, activation: u64, start: u64, until: u64| PathStep {
            task: task.into(),
            instance: 7,
            busy_ns: None,
            activation_ns: at(activation),
            start_ns: at(start),
            until_ns: at(until),
            channel: None,
        };
        let mut worst = WorstPath {
            source_instance: 6,
            from_ns: at(100),
            until_ns: at(900),
            queuing_ns: Duration::ZERO,
            execution_ns: Duration::ZERO,
            waiting_ns: Duration::ZERO,
            path: vec![step("a", 150, 150, 400), step("b", 500, 600, 900)],
        };
        [worst.queuing_ns, worst.execution_ns, worst.waiting_ns] = worst.parts();
        let way = way(&worst);
        let parts: Vec<Part> = way.iter().map(|(part, ..)| *part).collect();
        assert_eq!(parts, [Part::Waiting, Part::Execution, Part::Waiting, Part::Queuing, Part::Execution]);
        assert!(way.windows(2).all(|pair| pair[0].2 == pair[1].1));
        assert_eq!((way[0].1, way[4].2), (Duration::ZERO, worst.total()));
        for part in Part::ALL {
            let sum = way
                .iter()
                .filter(|(kind, ..)| *kind == part)
                .fold(Duration::ZERO, |sum, (_, from, until, _)| sum + until.saturating_sub(*from));
            assert_eq!(sum, worst.parts()[part as usize], "{part:?}");
        }
    }
}
