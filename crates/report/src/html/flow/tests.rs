//! The structure of what is drawn of a dataflow program.

use super::States;
use crate::example::{model, task};
use crate::html::page;
use punctual_model::dataflow::*;
use punctual_model::{Arrival, Curve, Duration, Instant, TimingModel};
use punctual_trace::flow::About;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>";

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

fn at(us: u64) -> Instant {
    Instant::from_ns(1_000_000_000 + us * 1_000)
}

fn distribution(max: u64) -> Distribution {
    let parts = [max / 10, max / 5, max / 4, max / 2, max].map(us);
    Distribution {
        count: 100,
        min_ns: parts[0],
        quartile_1_ns: parts[1],
        median_ns: parts[2],
        quartile_3_ns: parts[3],
        max_ns: parts[4],
        mean_ns: Some(parts[3]),
        p99_ns: Some(parts[4]),
        p95_ns: None,
        p999_ns: None,
        histogram: Vec::new(),
    }
}

fn flow_task(id: u32, name: &str) -> FlowTask {
    let times =
        |max| Some(Times { distribution: distribution(max), worst: Worst { instance: 7, at_ns: at(500) } });
    FlowTask {
        name: name.into(),
        id,
        activations: 100,
        executions: 100,
        in_flight: 0,
        incomplete: 0,
        unexplained: 0,
        missing_activations: 0,
        execution: times(2_000),
        queuing: times(30),
        by_kernel: None,
        arrival: Arrival {
            curve: Some(Curve {
                delta_min_ns: vec![us(900), us(1_900)],
                delta_max_ns: vec![us(1_100), us(2_100)],
            }),
            ..Arrival::default()
        },
        distances: Vec::new(),
        counts: Vec::new(),
    }
}

fn channel(id: u32, name: &str, from: &[&str], to: &[(&str, u64, bool)]) -> Channel {
    Channel {
        name: name.into(),
        id,
        pushes: 100,
        missing_pushes: 0,
        from_outside: if from.is_empty() { 100 } else { 0 },
        from_unknown: 0,
        pushed_by: from.iter().map(|task| PushedBy { task: (*task).into(), pushes: 100 }).collect(),
        activates: to
            .iter()
            .map(|(task, activations, declared)| Activates {
                task: (*task).into(),
                activations: *activations,
                declared: *declared,
                assumed: false,
                keeps: None,
            })
            .collect(),
        barrier: false,
    }
}

fn step(task: &str, activation: u64, start: u64, until: u64, channel: Option<&str>) -> PathStep {
    let (activation_ns, start_ns, until_ns) = (at(activation), at(start), at(until));
    PathStep {
        task: task.into(),
        instance: 7,
        busy_ns: None,
        activation_ns,
        start_ns,
        until_ns,
        channel: channel.map(Into::into),
    }
}

/// Three tasks: a camera, a tracker with a name that is markup and a feedback to itself, and a sink.
pub(super) fn program() -> Dataflow {
    let mut worst = WorstPath {
        source_instance: 7,
        from_ns: at(100),
        until_ns: at(2_100),
        queuing_ns: Duration::ZERO,
        execution_ns: Duration::ZERO,
        waiting_ns: Duration::ZERO,
        path: vec![
            step("camera", 100, 200, 700, Some("image")),
            step(HOSTILE, 900, 1_000, 1_600, Some("pose")),
            step("sink", 1_600, 1_700, 2_100, None),
        ],
    };
    [worst.queuing_ns, worst.execution_ns, worst.waiting_ns] = worst.parts();
    Dataflow {
        from_ns: at(0),
        until_ns: at(10_000_000),
        program: Some("aton".into()),
        policy: Some("fifo".into()),
        executors: Some(2),
        events: 1_000,
        channels: vec![
            channel(0, "tick", &[], &[("camera", 100, true)]),
            channel(1, "image", &["camera"], &[(HOSTILE, 100, false)]),
            channel(2, "pose", &[HOSTILE], &[("sink", 100, true)]),
            channel(3, "state", &[HOSTILE], &[(HOSTILE, 0, true)]),
        ],
        tasks: vec![flow_task(0, "camera"), flow_task(1, HOSTILE), flow_task(2, "sink")],
        chains: vec![Chain {
            end_to_end: Some(true),
            tasks: vec!["camera".into(), HOSTILE.into(), "sink".into()],
            sources: 101,
            lost: 1,
            sinks: 100,
            reaction: Some(Latency {
                distribution: distribution(2_000),
                worst: worst.clone(),
                series: Vec::new(),
                alternatives: Vec::new(),
            }),
            age: Some(Latency {
                distribution: distribution(2_000),
                worst,
                series: Vec::new(),
                alternatives: Vec::new(),
            }),
            ..Chain::default()
        }],
        ..Dataflow::default()
    }
}

fn model_of(tasks: Vec<punctual_model::Task>, flow: Dataflow) -> TimingModel {
    let all = model(tasks);
    let threads = all.threads.filter(|threads| !threads.tasks.is_empty());
    TimingModel { dataflow: Some(flow), threads, ..all }
}

fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<section id=\"{id}\"")).expect("the section is there");
    rest.split_once("</section>").expect("it ends").0
}

#[test]
fn the_page_of_a_program_alone_does_not_mention_threads() {
    let page = page(&model_of(vec![], program()), None, None, "aton");
    for words in ["All tasks", "No task was seen", "punctual record -o DIR", "Linux"] {
        assert!(!page.contains(words), "{words}");
    }
    assert!(
        page.contains("href=\"#dataflow\"")
            && page.contains("policy fifo, 2 executors")
            && page.contains("Dataflow program aton")
    );
    assert!(section(&page, "flow-states").contains("The tasking graph needs the trace"));
    assert!(
        section(&page, "dataflow").contains("1 time the path of a datum along a chain could not be followed")
    );
}

#[test]
fn threads_and_a_program_share_a_page_with_separate_data() {
    let model = model_of(vec![task("ctl", 7, 80)], program());
    let page = page(&model, None, None, "both");
    assert!(
        page.contains("id=\"overview\"")
            && page.contains("id=\"task-0\"")
            && page.contains("id=\"dataflow\"")
    );
    // The thread's one stream comes first.
    let activations = section(&page, "flow-activations");
    for stream in 1..=3 {
        assert_eq!(activations.matches(&format!("data-stream=\"{stream}\"")).count(), 2, "{stream}");
    }
    let (_, data) = page.split_once("type=\"application/json\">").expect("data");
    let (data, _) = data.split_once("</script>").expect("it ends");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["streams"].as_array().map(Vec::len), Some(4));
    assert_eq!(data["streams"][1]["delta_min"]["value"][0], 900_000);
}

#[test]
fn the_graph_distinguishes_declared_edges_inferred_edges_and_feedback() {
    let page = page(&model_of(vec![], program()), None, None, "aton");
    let graph = section(&page, "dataflow");
    let (_, svg) = graph.split_once("<svg class=\"graph\"").expect("a picture");
    let (svg, _) = svg.split_once("</svg>").expect("it ends");
    let count = |what: &str| svg.matches(what).count();
    assert_eq!((count("node task-node"), count("node channel-node"), count("node outside-node")), (3, 4, 1));
    // Outside → tick → camera → image → tracker → pose → sink, tracker → state → tracker.
    assert_eq!((count("<path d="), count("data-back")), (8, 1));
    assert_eq!(
        (count("class=\"edge inferred\""), count("class=\"edge never\""), count("class=\"edge\"")),
        (1, 1, 6)
    );
    assert!(graph.contains("never what activates") && graph.contains("found from the events alone"));
}

#[test]
fn a_graph_too_large_to_read_is_shown_as_a_table() {
    let mut flow = program();
    flow.channels.extend((4..400).map(|id| channel(id, &format!("channel-{id}"), &["camera"], &[])));
    let page = page(&model_of(vec![], flow), None, None, "aton");
    let graph = section(&page, "dataflow");
    assert!(
        !graph.contains("<svg class=\"graph\"")
            && graph.contains("Too large to draw")
            && graph.contains("channel-399")
    );
}

#[test]
fn times_and_worst_cases_are_drawn_and_printed() {
    let page = page(&model_of(vec![], program()), None, None, "aton");
    let tasks = section(&page, "flow-tasks");
    assert_eq!(
        (tasks.matches("<svg class=\"boxes\"").count(), tasks.matches("class=\"median\"").count()),
        (3, 6)
    );
    assert!(
        tasks.contains("The axis is logarithmic") && tasks.contains("#7") && tasks.contains("+0.000500 s")
    );
    let chains = section(&page, "flow-chains");
    assert_eq!(chains.matches("<svg class=\"boxes\"").count(), 1);
    // Three sums; the way: queued and executed three times, waited once; and the key.
    assert_eq!(chains.matches("class=\"part ").count(), 3 + 7 + 3);
    assert!(
        chains.contains("= queuing 300 µs + execution 1.5 ms + waiting 200 µs")
            && chains.contains("waited 200 µs on the channel, for other inputs")
    );
    assert!(chains.contains("is that of the same datum") && chains.contains("1 lost"));
}

#[test]
fn latencies_are_drawn_by_length_and_over_time() {
    let mut flow = program();
    let drawn = |flow: &Dataflow| {
        let page = page(&model_of(vec![], flow.clone()), None, None, "aton");
        section(&page, "flow-chains").to_owned()
    };
    let without = drawn(&flow);
    assert!(!without.contains("how long") && !without.contains("over time"));
    let reaction = flow.chains[0].reaction.as_mut().unwrap();
    reaction.distribution.histogram =
        [(500, 1), (1_000, 98), (2_000, 1)].map(|(until, count)| Bin { until_ns: us(until), count }).to_vec();
    reaction.series = [(0, 99), (5_000_000, 1)]
        .map(|(from, count)| Moment { from_ns: at(from), count, min_ns: us(200), max_ns: us(2_000) })
        .to_vec();
    let chains = drawn(&flow);
    // One bar for each range and part of the trace, of the reaction time alone.
    assert_eq!(chains.matches("<rect").count(), without.matches("<rect").count() + 3 + 2);
    for text in ["98 times, up to 1 ms", "1 time, up to 2 ms", "99 latencies, 200 µs to 2 ms"] {
        assert!(chains.contains(text), "{text}: {chains}");
    }
}

#[test]
fn the_kernels_part_is_a_table_if_known() {
    let mut flow = program();
    assert!(!page(&model_of(vec![], flow.clone()), None, None, "aton").contains("flow-kernel"));
    let part = |max| Distribution { count: 90, ..distribution(max) };
    flow.tasks[1].by_kernel =
        Some(ByKernel { executions: 90, running: part(1_000), preempted: part(400), suspended: part(20) });
    let page = page(&model_of(vec![], flow), None, None, "aton");
    let (_, table) = page.split_once("id=\"flow-kernel\"").expect("the table");
    let (table, _) = table.split_once("</table>").expect("it ends");
    let cells: Vec<&str> = table
        .split("<td class=\"figure\"")
        .skip(1)
        .filter_map(|cell| Some(cell.split_once('>')?.1.split_once('<')?.0))
        .collect();
    let running = ["250 µs", "500 µs", "1 ms", "1 ms"];
    let preempted = ["100 µs", "200 µs", "400 µs", "400 µs"];
    let suspended = ["5 µs", "10 µs", "20 µs", "20 µs"];
    assert_eq!(cells, [&["90", "10"], &running[..], &preempted, &suspended].concat());
    assert_eq!(table.matches("<th scope=\"row\">").count(), 1);
}

#[test]
fn the_raster_of_states_is_around_the_worst_case() {
    let flow = program();
    let states = States::new(&flow, &About::default(), at(0));
    let page = page(&model_of(vec![], flow), None, Some(&states), "aton");
    assert!(section(&page, "flow-states").contains("around the worst reaction time of camera →"));
}

#[test]
fn names_of_tasks_are_escaped_everywhere() {
    let flow = program();
    let mut about = About::default();
    about.tasks.insert(1, HOSTILE.into());
    let states = States::new(&flow, &about, at(0));
    let page = page(&model_of(vec![], flow), None, Some(&states), HOSTILE);
    assert!(!page.contains("<img"));
}
