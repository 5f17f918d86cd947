//! The page of a dataflow program: figures drawn without a script, and curves drawn with one.

use crate::browser::Opened;
use crate::figures::ink;
use crate::{Result, Row, ensure, look, plant};
use punctual_extract::flow::{Analysis, Chains, GraphBuilder, Options};
use punctual_model::dataflow::{ByKernel, Distribution};
use punctual_model::{Duration, Instant, TimingModel};
use punctual_report::html::{States, page as html};
use punctual_trace::flow::{About, Connection, Event, Item, Kind, Totals};

const WIDE: (u32, u32) = (1400, 1000);
const NARROW: (u32, u32) = (360, 740);

pub const ALL: &[Row] = &[
    ("flow: the graph goes from left to right, and back below", WIDE, graph),
    ("flow: boxes and bars lie where the numbers are", WIDE, boxes),
    ("flow: the kernel's part is below the times of tasks", WIDE, kernel),
    ("flow: curves are drawn, and extrapolation is distinguishable", WIDE, curves),
    ("flow: the raster shows states around the worst case", WIDE, raster),
    ("flow: text has contrast, in light and dark", WIDE, look::contrast_of),
    ("flow: a narrow screen does not scroll sideways, the graph does", NARROW, narrow),
    ("flow: names are escaped", WIDE, hostile),
    ("flow: prints the curves", WIDE, printed),
];

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
/// Rounds of the program: it has a camera, a filter that also feeds itself, and a sink.
const ROUNDS: u64 = 400;

/// Events of one executor: camera (0) → channel 1 → filter (1) → channel 2 → sink (2), and filter → channel 3
/// → filter. Every tenth round the filter takes long, so that the next camera waits.
fn events() -> Vec<Item> {
    let mut events = Vec::new();
    let mut put = |at: u64, kind: Kind, object: u16, number: u64| {
        events.push(Item::Event(Event {
            at: Instant::from_ns(at),
            producer: u32::from(object == 0 && matches!(kind, Kind::Push | Kind::Activation)),
            kind,
            object,
            number,
        }));
    };
    let mut free = 0;
    for round in 0..ROUNDS {
        let tick = 1_000 * MS + round * 10 * MS;
        put(tick, Kind::Push, 0, round);
        put(tick, Kind::Activation, 0, round);
        let mut now = free.max(tick + 5 * US);
        let mut execute = |now: &mut u64, task: u16, pushes: &[u16], takes: u64| {
            put(*now, Kind::Start, task, round);
            *now += takes;
            for channel in pushes {
                put(*now, Kind::Push, *channel, round);
                if *channel < 3 {
                    put(*now, Kind::Activation, *channel, round);
                }
            }
            put(*now + US, Kind::Stop, task, round);
            *now += 10 * US;
        };
        execute(&mut now, 0, &[1], 300 * US + round % 7 * 10 * US);
        execute(&mut now, 1, &[3, 2], if round % 10 == 9 { 9 * MS } else { 2 * MS + round % 13 * 20 * US });
        execute(&mut now, 2, &[], 80 * US + round % 5 * US);
        free = now;
    }
    // As a reader gives them.
    events.sort_by_key(Item::at);
    events
}

/// The model that `punctual report TRACE` makes.
pub fn page() -> Result<String> {
    let names = |names: &[&str]| (0..).zip(names.iter().map(|name| (*name).to_owned())).collect();
    let about = About {
        program: Some("plant".into()),
        policy: Some("fifo".into()),
        executors: Some(1),
        tasks: names(&["camera", plant::HOSTILE, "sink"]),
        channels: names(&["tick", "image", "pose", "state"]),
        inputs: [(0, 0), (1, 1), (2, 2), (3, 1)]
            .map(|(channel, task)| Connection { channel, task }.into())
            .to_vec(),
        ..About::default()
    };
    let items = events();
    let mut builder = GraphBuilder::new();
    items.iter().for_each(|item| builder.item(item));
    let graph = builder.finish(&about);
    let chains = Chains::all(&graph);
    let mut analysis = Analysis::new(&graph, &chains, &Options::default());
    items.iter().for_each(|item| analysis.item(item));
    let totals = Totals { events: items.len() as u64, ..Totals::default() };
    let mut model =
        TimingModel { dataflow: Some(analysis.finish(&about, &totals)), ..TimingModel::new(&about.clock) };
    // As a recording of the same time tells it: of the camera a part was preempted, of the others nothing is
    // known.
    let flow = model.dataflow.as_mut().ok_or("the model has no dataflow")?;
    flow.tasks[0].by_kernel = flow.tasks[0].execution.as_ref().map(|times| split(&times.distribution));
    let flow = &*flow;
    let mut states = States::new(flow, &about, flow.from_ns);
    items.iter().for_each(|item| states.item(item));
    Ok(html(&model, None, Some(&states), "plant.timing.json"))
}

/// All executions except the first five, each with 100 µs preempted.
fn split(whole: &Distribution) -> ByKernel {
    let count = whole.count - 5;
    let every = |ns: u64| {
        let time = Duration::from_ns(ns);
        Distribution {
            count,
            min_ns: time,
            quartile_1_ns: time,
            median_ns: time,
            quartile_3_ns: time,
            max_ns: time,
            mean_ns: Some(time),
            p95_ns: Some(time),
            p99_ns: Some(time),
            p999_ns: Some(time),
            histogram: Vec::new(),
        }
    };
    let part = |time: Duration| time.saturating_sub(Duration::from_ns(100 * US));
    let running = Distribution {
        count,
        min_ns: part(whole.min_ns),
        quartile_1_ns: part(whole.quartile_1_ns),
        ..whole.clone()
    };
    ByKernel { executions: count, running, preempted: every(100 * US), suspended: every(0) }
}

/// The position of a node's text on the screen.
fn left_of(page: &Opened, name: &str) -> Result<f64> {
    page.number(&format!(
        "[...document.querySelectorAll('svg.graph .node')].find((node) => \
         node.querySelector('text')?.textContent === {name:?})
            .querySelector('rect').getBoundingClientRect().left"
    ))
}

fn graph(page: &Opened) -> Result {
    let order = ["tick", "camera", "image", plant::HOSTILE, "pose", "sink"];
    let lefts: Vec<f64> = order.iter().map(|name| left_of(page, name)).collect::<Result<_>>()?;
    ensure!(lefts.windows(2).all(|pair| pair[0] < pair[1]), "{lefts:?}");
    page.expect("document.querySelectorAll('svg.graph g[data-back]').length === 1")?;
    // Below everything that has a box.
    page.expect(
        "(() => {
            const bottom = Math.max(...[...document.querySelectorAll('svg.graph .node rect')]
                .map((node) => node.getBoundingClientRect().bottom));
            const back = document.querySelector('svg.graph g[data-back] path').getBoundingClientRect().bottom;
            return back > bottom && back < document.querySelector('svg.graph').getBoundingClientRect().bottom;
        })()",
    )?;
    page.expect(
        "getComputedStyle(document.querySelector('svg.graph .edge.never path')).strokeDasharray !== 'none'",
    )?;
    page.expect(
        "getComputedStyle(document.querySelector('svg.graph .edge:not(.never) \
                 path')).strokeDasharray === 'none'",
    )?;
    page.expect(
        "[...document.querySelectorAll('svg.graph .node')].every((node) => {
        const box = node.querySelector('rect').getBoundingClientRect();
        return [...node.querySelectorAll('text')]
            .every((text) => text.getBoundingClientRect().width <= box.width);
    })",
    )
}

fn boxes(page: &Opened) -> Result {
    page.expect(
        "document.querySelectorAll('#flow-tasks svg.boxes').length === 3 && \
                 document.querySelectorAll('#flow-chains svg.boxes').length === 1",
    )?;
    // Boxes lie between their whiskers, medians in their boxes, all of it in the figure.
    page.expect(
        "[...document.querySelectorAll('svg.boxes g')].every((plot) => {
            const place = (element) => element.getBoundingClientRect();
            const [least, most] = [...plot.querySelectorAll('.end')].map((end) => place(end).left);
            const box = place(plot.querySelector('.quartiles'));
            const median = place(plot.querySelector('.median')).left;
            const all = place(plot.ownerSVGElement);
            return all.left - 1 <= least && least <= box.left + 1
                && box.left - 1 <= median && median <= box.right + 1
                && box.right <= most + 2 && most <= all.right + 1;
        })",
    )?;
    // Parts of the worst case lie side by side, and are as long as its way.
    page.expect(
        "(() => {
            const bars = [...document.querySelectorAll('svg.bars .part')]
                .map((part) => part.getBoundingClientRect());
            const sums = bars.filter((bar) => bar.height > 15);
            const way = bars.filter((bar) => bar.height <= 15);
            const end = (list) => Math.max(...list.map((bar) => bar.right));
            return sums.length >= 2 && way.length >= 5 && Math.abs(end(sums) - end(way)) < 2;
        })()",
    )?;
    page.scroll_to("#flow-chains .rows details summary")?;
    page.click("#flow-chains .rows details summary")?;
    page.until("document.querySelector('#flow-chains details ol').checkVisibility()")?;
    page.expect("document.querySelectorAll('#flow-chains details ol')[0].children.length === 3")
}

/// The cells have the model's values, figures are right-aligned, and lines do not wrap.
fn kernel(page: &Opened) -> Result {
    page.scroll_to("#flow-kernel")?;
    page.expect(
        "document.querySelector('#flow-tasks').contains(document.querySelector('#flow-kernel')) && \
                 document.querySelector('#flow-kernel table').checkVisibility()",
    )?;
    let cells: Vec<String> = serde_json::from_value(page.ask(
        "[...document.querySelectorAll('#flow-kernel tbody tr > *')].map((cell) => cell.textContent)",
    )?)?;
    ensure!(
        cells.len() == 15
            && cells[..3] == ["camera", "395", "5"]
            && cells[7..11].iter().all(|cell| cell == "100 µs")
            && cells[11..].iter().all(|cell| cell == "0 ns"),
        "{cells:?}"
    );
    page.expect(
        "[...document.querySelectorAll('#flow-kernel td')].every((cell, index) => {
            const head = document.querySelectorAll('#flow-kernel thead th')[index + 1];
            const [a, b] = [cell, head].map((element) => element.getBoundingClientRect().right);
            return Math.abs(a - b) < 1
                && getComputedStyle(cell).textAlign === 'right'
                && getComputedStyle(head).textAlign === 'right';
        })",
    )?;
    page.expect("document.querySelector('#flow-kernel tbody tr').getBoundingClientRect().height < 60")
}

fn drawn(page: &Opened, kind: &str) -> Result<String> {
    let figure = format!("figure[data-kind={kind}]");
    page.scroll_to(&figure)?;
    page.until(&format!("document.querySelector('{figure} .canvas[data-drawn]') !== null"))?;
    page.scroll_to(&figure)?;
    Ok(figure)
}

fn curves(page: &Opened) -> Result {
    page.expect("document.querySelectorAll('figure.plot').length === 6")?;
    for kind in ["activations", "distances"] {
        let figure = drawn(page, kind)?;
        ensure!(ink(page, &figure)? > 2_000.0, "{kind} has too little ink");
        page.expect(&format!(
            "document.querySelector('{figure}').querySelectorAll('.series li').length === 3"
        ))?;
        page.expect(&format!(
            "figures.plots.get(document.querySelector('{figure}')).uplot.series[3].dash.length > 0"
        ))?;
        page.ask(&format!("document.querySelector('{figure} .canvas').focus()"))?;
        page.press("End")?;
        let last: Vec<String> = serde_json::from_value(page.ask(&format!(
            "[...document.querySelector('{figure}').querySelectorAll('.series \
                               output')].map((value) => value.value)"
        ))?)?;
        ensure!(last[0] == "–" && last[1] == "–" && last[2].len() > 1, "at the end {kind} tells {last:?}");
        page.press("Home")?;
        let first: Vec<String> = serde_json::from_value(page.ask(&format!(
            "[...document.querySelector('{figure}').querySelectorAll('.series \
                               output')].map((value) => value.value)"
        ))?)?;
        ensure!(first[0].len() > 1 || first[0] == "1", "at the beginning {kind} tells {first:?}");
        ensure!(first[2] == "–", "at the beginning {kind} tells {first:?}");
    }
    // The camera is activated every 10 ms, 400 times: what the page extrapolates is what that comes to, on
    // the safe side, and each curve is the other's inverse.
    page.expect(
        "(() => {
        const { curves } = figures.streams[0];
        const span = curves.safeDeltaMin(4001);
        const spans = [1, 10e6, 10e6 + 1, 2e9, 3.99e9, 4e9, 7e9, 40e9];
        return span <= 40e9 && span > 39.9e9 && spans.every((span) => {
            const most = curves.safeEtaMax(span);
            return curves.safeDeltaMin(most) < span && curves.safeDeltaMin(most + 1) >= span;
        });
    })()",
    )
}

fn raster(page: &Opened) -> Result {
    let text = page.text("document.querySelector('#flow-states figcaption').textContent")?;
    ensure!(text.contains("around the worst reaction time of camera →"), "{text}");
    page.expect("document.querySelectorAll('#flow-states svg.states').length === 3 + 4")?;
    page.expect("document.querySelectorAll('#flow-states svg.states .executing.of-worst').length === 3")?;
    page.expect(
        "[...document.querySelectorAll('#flow-states svg.states .state')].every((state) => \
                 state.querySelector('title').textContent.startsWith('#'))",
    )
}

fn narrow(page: &Opened) -> Result {
    for selector in
        ["#dataflow", "#flow-chains", "#flow-tasks", "#flow-states", "figure[data-kind=activations]"]
    {
        page.scroll_to(selector)?;
        page.until("[...figures.visible].every((figure) => figure.querySelector('.canvas[data-drawn]'))")?;
        let widest = page.ask("[document.documentElement.scrollWidth, document.body.scrollWidth]")?;
        ensure!(widest == serde_json::json!([360, 360]), "at {selector} the page is {widest} wide");
    }
    page.expect(
        "document.querySelector('.drawing').scrollWidth > \
                 document.querySelector('.drawing').clientWidth && \
                 document.querySelector('.drawing').tabIndex === 0",
    )
}

fn hostile(page: &Opened) -> Result {
    page.expect("document.images.length === 0")?;
    page.expect(&format!(
        "[...document.querySelectorAll('#flow-tasks th bdi')].some((name) => name.textContent === {:?})",
        plant::HOSTILE
    ))
}

fn printed(page: &Opened) -> Result {
    let pdf = page.printed()?;
    ensure!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000, "the printed page has {} bytes", pdf.len());
    page.scroll_to("figure[data-kind=distances]")?;
    page.until("document.querySelector('figure[data-kind=distances] .canvas[data-drawn]') !== null")
}
