//! The graph, drawn and as a table.

use super::layout::{Layout, Point, Route, Size, layout};
use crate::number::{at_most, count, counted};
use crate::visible;
use maud::{Markup, html};
use punctual_model::dataflow::{Activates, Channel, Dataflow};
use std::fmt::Write;

/// A larger graph would be unreadable, so it is not drawn.
const MOST_NODES: usize = 120;
const MOST_EDGES: usize = 360;
/// Letters of a name that are drawn; all of it is in the table, and shown where one points at it.
const MOST_LETTERS: usize = 22;
const LETTER: f64 = 6.9;

enum Shape {
    Task,
    Channel,
    /// Where pushes come from that no task makes.
    Outside,
}

struct Node {
    shape: Shape,
    lines: Vec<String>,
    /// In full.
    title: String,
}

struct Edge {
    ends: (usize, usize),
    class: &'static str,
    label: String,
    title: String,
}

/// What is drawn.
struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// The figure.
pub(super) fn figure(flow: &Dataflow) -> Markup {
    let graph = Graph::new(flow);
    html! {
        figure.wide {
            h4 { "Tasks and channels" }
            @if graph.nodes.len() > MOST_NODES || graph.edges.len() > MOST_EDGES {
                p.missing {
                    "Too large to draw: " (counted(graph.nodes.len() as u64,
                        "node")) " and " (counted(graph.edges.len() as u64, "edge"))
                    ". punctual chains TRACE --graph FILE writes the graph for Graphviz; the table below is \
                     complete."
                }
            } @else {
                div.scroll.drawing tabindex="0" role="region" aria-label="The graph as a picture; the table \
                 below says the same" { (svg(&graph)) }
            }
            (key(flow))
            figcaption {
                "Boxes are tasks, with their greatest execution time C; rounded boxes are channels, with \
                 their pushes. The number at an arrow to a task counts its activations that came in a push \
                 on that channel; at one to a channel, the pushes of that task, where others push on it too. \
                 Data flow from left to right; edges that lead back run below."
            }
            details {
                summary { "As a table" }
                (table(flow))
            }
        }
    }
}

fn is_never_last(activates: &Activates, channel: &Channel) -> bool {
    activates.declared && activates.activations == 0 && channel.pushes > 0
}

fn class(activates: &Activates, channel: &Channel) -> &'static str {
    match activates.declared {
        _ if is_never_last(activates, channel) => "edge never",
        true => "edge",
        false => "edge inferred",
    }
}

/// What the lines mean, of those that there are.
fn key(flow: &Dataflow) -> Markup {
    let classes: Vec<&str> = flow
        .channels
        .iter()
        .flat_map(|channel| channel.activates.iter().map(move |activates| class(activates, channel)))
        .collect();
    let lines = [
        ("edge", "declared, or seen by a probe: data can activate the task"),
        ("edge inferred", "found from the events alone"),
        ("edge never", "the same, but data on it never came last"),
    ];
    html! {
        p.key {
            @for (class, meaning) in lines {
                @if classes.contains(&class) {
                    svg.sample width="32" height="10" aria-hidden="true" {
                        line class=(class) x1="0" y1="5" x2="32" y2="5" {}
                    }
                    (meaning) ". "
                }
            }
        }
    }
}

impl Graph {
    fn new(flow: &Dataflow) -> Graph {
        let task = |name: &str| flow.tasks.iter().position(|task| task.name == name);
        let mut nodes: Vec<Node> = flow
            .tasks
            .iter()
            .map(|task| {
                let cost = task
                    .execution
                    .as_ref()
                    .map(|times| format!("C ≤ {}", at_most(times.distribution.max_ns)));
                let activations = counted(task.activations, "activation");
                let lines = [Some(short(&task.name)), cost].into_iter().flatten().collect();
                Node {
                    shape: Shape::Task,
                    lines,
                    title: format!("Task {}: {activations}", visible(&task.name)),
                }
            })
            .collect();
        let mut edges = Vec::new();
        for channel in &flow.channels {
            let name = visible(&channel.name);
            let here = nodes.len();
            let lines = vec![short(&channel.name), count(channel.pushes)];
            nodes.push(Node {
                shape: Shape::Channel,
                lines,
                title: format!("Channel {name}: {}", counted(channel.pushes, "push")),
            });
            let several = channel.pushed_by.len() + usize::from(channel.from_outside > 0) > 1;
            let label = |pushes: u64| if several { count(pushes) } else { String::new() };
            if channel.from_outside > 0 {
                let pushes = channel.from_outside;
                let title = format!("From outside any task on {name}: {}", counted(pushes, "push"));
                nodes.push(Node { shape: Shape::Outside, lines: Vec::new(), title: title.clone() });
                edges.push(Edge { ends: (here + 1, here), class: "edge", label: label(pushes), title });
            }
            for pushed_by in &channel.pushed_by {
                let Some(from) = task(&pushed_by.task) else { continue };
                let title =
                    format!("{} on {name}: {}", visible(&pushed_by.task), counted(pushed_by.pushes, "push"));
                edges.push(Edge { ends: (from, here), class: "edge", label: label(pushed_by.pushes), title });
            }
            for activates in &channel.activates {
                let Some(to) = task(&activates.task) else { continue };
                let number = activates.activations;
                let title =
                    format!("{name} activates {}: {}", visible(&activates.task), counted(number, "time"));
                edges.push(Edge {
                    ends: (here, to),
                    class: class(activates, channel),
                    label: count(number),
                    title,
                });
            }
        }
        Graph { nodes, edges }
    }
}

fn short(name: &str) -> String {
    let name = visible(name);
    match name.char_indices().nth(MOST_LETTERS) {
        Some(_) => name.chars().take(MOST_LETTERS - 1).chain(['…']).collect(),
        None => name,
    }
}

fn size(node: &Node) -> Size {
    let letters = node.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    match node.shape {
        Shape::Outside => (10.0, 10.0),
        Shape::Task => (letters as f64 * LETTER + 20.0, 46.0),
        Shape::Channel => (letters as f64 * LETTER + 28.0, 40.0),
    }
}

fn svg(graph: &Graph) -> Markup {
    let sizes: Vec<Size> = graph.nodes.iter().map(size).collect();
    let ends: Vec<(usize, usize)> = graph.edges.iter().map(|edge| edge.ends).collect();
    let Layout { nodes, edges, size: (width, height) } = layout(&sizes, &ends);
    html! {
        svg.graph viewBox={ "0 0 " (number(width)) " " (number(height)) }
            width=(number(width)) height=(number(height)) aria-hidden="true" {
            defs {
                marker #arrow viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8"
                    markerUnits="userSpaceOnUse" orient="auto" {
                    path.arrow d="M0 0 L10 5 L0 10 z" {}
                }
            }
            @for (edge, route) in graph.edges.iter().zip(&edges) {
                g class=(edge.class) data-back=[route.is_back.then_some("")] {
                    title { (edge.title) }
                    path d=(path(route)) marker-end="url(#arrow)" {}
                    @if !edge.label.is_empty() {
                        @let (x, y) = label(route);
                        text x=(number(x)) y=(number(y)) { (edge.label) }
                    }
                }
            }
            @for ((node, centre), size) in graph.nodes.iter().zip(&nodes)
                .zip(&sizes) { (shape(node, *centre, *size)) }
        }
    }
}

fn shape(node: &Node, (x, y): Point, (width, height): Size) -> Markup {
    let class = match node.shape {
        Shape::Task => "node task-node",
        Shape::Channel => "node channel-node",
        Shape::Outside => "node outside-node",
    };
    let round = if matches!(node.shape, Shape::Task) { 3.0 } else { height / 2.0 };
    let first = y + 4.0 - 8.0 * (node.lines.len().saturating_sub(1)) as f64;
    html! {
        g class=(class) {
            title { (node.title) }
            rect x=(number(x - width / 2.0)) y=(number(y - height / 2.0))
                width=(number(width)) height=(number(height)) rx=(number(round)) {}
            @for (index, line) in node.lines.iter().enumerate() {
                text x=(number(x)) y=(number(first + 16.0 * index as f64)) class=[(index > 0)
                    .then_some("lesser")] { (line) }
            }
        }
    }
}

/// To a tenth of a pixel.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.trim_end_matches(".0").to_owned()
}

fn path(route: &Route) -> String {
    let mut text = String::new();
    for (index, (from, to)) in route.stretches.iter().enumerate() {
        if index == 0 {
            let _ = write!(text, "M{} {}", number(from.0), number(from.1));
        } else {
            // Leaves and arrives level: to the right, but on its way back in a bow.
            let before = route.stretches[index - 1].1;
            let reach = if route.is_back { LOOP } else { (from.0 - before.0) / 2.0 };
            let (out, into) =
                (before.0 + reach, if route.is_back && index == 1 { from.0 + reach } else { from.0 - reach });
            let points = [out, before.1, into, from.1, from.0, from.1].map(number);
            let _ = write!(
                text,
                "C{} {}, {} {}, {} {}",
                points[0], points[1], points[2], points[3], points[4], points[5]
            );
        }
        if from != to {
            let _ = write!(text, "L{} {}", number(to.0), number(to.1));
        }
    }
    text
}

/// How far a bow reaches into the space beside a layer.
const LOOP: f64 = 40.0;

/// Above the last curve, towards its end, where the lines of different sources are apart.
fn label(route: &Route) -> Point {
    let [.., (_, from), (to, _)] = route.stretches.as_slice() else { return (0.0, 0.0) };
    match route.is_back {
        true => (from.0 + 24.0, from.1 - 4.0),
        false => ((from.0 + 2.0 * to.0) / 3.0 - 2.0, (from.1 + 3.0 * to.1) / 4.0 - 4.0),
    }
}

fn table(flow: &Dataflow) -> Markup {
    let names = |list: Vec<String>| if list.is_empty() { "–".to_owned() } else { list.join(", ") };
    html! {
        div.scroll tabindex="0" role="region" aria-label="The graph as a table" {
            table {
                thead { tr {
                    th scope="col" { "Channel" } th.figure scope="col" { "Pushes" }
                    th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "Notes" }
                } }
                tbody {
                    @for channel in &flow.channels {
                        tr {
                            th scope="row" { bdi { (visible(&channel.name)) } }
                            td.figure { (count(channel.pushes)) }
                            td { bdi { (names(pushers(channel))) } }
                            td { bdi { (names(activated(channel))) } }
                            td { (notes(channel).join("; ")) }
                        }
                    }
                }
            }
        }
    }
}

fn pushers(channel: &Channel) -> Vec<String> {
    let tasks = channel
        .pushed_by
        .iter()
        .map(|pushed_by| format!("{} ({})", visible(&pushed_by.task), count(pushed_by.pushes)));
    let others = [(channel.from_outside, "outside any task"), (channel.from_unknown, "unknown")];
    let others = others
        .into_iter()
        .filter(|(pushes, _)| *pushes > 0)
        .map(|(pushes, who)| format!("{who} ({})", count(pushes)));
    tasks.chain(others).collect()
}

fn activated(channel: &Channel) -> Vec<String> {
    channel
        .activates
        .iter()
        .map(|activates| format!("{} ({})", visible(&activates.task), count(activates.activations)))
        .collect()
}

fn notes(channel: &Channel) -> Vec<String> {
    let mut notes = Vec::new();
    if channel.missing_pushes > 0 {
        notes.push(format!("at least {} missing", counted(channel.missing_pushes, "push")));
    }
    for activates in &channel.activates {
        let task = visible(&activates.task);
        match class(activates, channel) {
            "edge never" => notes.push(format!("never what activates {task}")),
            "edge inferred" => notes.push(format!("that it activates {task} is found from the events alone")),
            _ => {}
        }
    }
    notes
}
