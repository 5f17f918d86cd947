//! What is printed of a small program whose figures are easy to follow.

use super::*;
use crate::example;
use punctual_model::Arrival;
use punctual_model::dataflow::*;
use punctual_model::{Curve, Duration};

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

fn at(us: u64) -> Instant {
    Instant::from_ns(1_000_000_000 + us * 1_000)
}

fn distribution(count: u64, values: [u64; 5]) -> Distribution {
    let [min_ns, quartile_1_ns, median_ns, quartile_3_ns, max_ns] = values.map(us);
    let mean_ns = Some(us(values.iter().sum::<u64>() / 5));
    Distribution {
        count,
        min_ns,
        quartile_1_ns,
        median_ns,
        quartile_3_ns,
        max_ns,
        mean_ns,
        p99_ns: Some(max_ns),
        p95_ns: None,
        p999_ns: None,
        histogram: Vec::new(),
    }
}

fn task(name: &str, id: u32) -> FlowTask {
    let times = |values| {
        Some(Times { distribution: distribution(4, values), worst: Worst { instance: 3, at_ns: at(3_010) } })
    };
    let curve = Curve { delta_min_ns: vec![us(900), us(2_000)], delta_max_ns: vec![us(1_100), us(2_050)] };
    FlowTask {
        name: name.into(),
        id,
        activations: 4,
        executions: 4,
        in_flight: 1,
        incomplete: 0,
        unexplained: 0,
        missing_activations: 0,
        execution: times([10, 20, 30, 40, 50]),
        queuing: times([1, 2, 3, 4, 5]),
        by_kernel: None,
        distances: Distance::samples(&curve),
        counts: Count::samples(&curve),
        arrival: Arrival { curve: Some(curve), ..Arrival::default() },
    }
}

fn step(task: &str, from: u64, channel: Option<&str>) -> PathStep {
    PathStep {
        task: task.into(),
        instance: 3,
        busy_ns: None,
        activation_ns: at(from),
        start_ns: at(from + 5),
        until_ns: at(from + 45),
        channel: channel.map(str::to_owned),
    }
}

fn model() -> TimingModel {
    model_with("navi")
}

fn model_with(second: &str) -> TimingModel {
    let mut worst = WorstPath {
        source_instance: 2,
        from_ns: at(2_000),
        until_ns: at(3_145),
        queuing_ns: Duration::ZERO,
        execution_ns: Duration::ZERO,
        waiting_ns: Duration::ZERO,
        path: vec![step("cam", 3_000, Some("image")), step(second, 3_100, None)],
    };
    [worst.queuing_ns, worst.execution_ns, worst.waiting_ns] = worst.parts();
    let reaction = Latency {
        distribution: distribution(3, [100, 100, 145, 145, 1_145]),
        worst,
        series: Vec::new(),
        alternatives: Vec::new(),
    };
    let chain = Chain {
        tasks: vec!["cam".into(), second.into()],
        sources: 5,
        overwritten: 1,
        lost: 1,
        in_flight: 1,
        sinks: 0,
        end_to_end: Some(true),
        reaction: Some(reaction),
        ..Chain::default()
    };
    let channel = Channel {
        name: "image".into(),
        id: 0,
        pushes: 1_234,
        missing_pushes: 1,
        from_outside: 2,
        from_unknown: 0,
        pushed_by: vec![PushedBy { task: "cam".into(), pushes: 1_232 }],
        activates: vec![Activates {
            task: second.into(),
            activations: 0,
            declared: true,
            assumed: false,
            keeps: Some(Keeps::Queue),
        }],
        barrier: false,
    };
    let flow = Dataflow {
        from_ns: Instant::from_ns(1_000_000_000),
        until_ns: Instant::from_ns(11_000_000_000),
        program: Some("rover \"2\"".into()),
        policy: Some("fifo".into()),
        executors: Some(1),
        events: 100,
        discarded_events: 7,
        channels: vec![channel],
        tasks: vec![task("cam", 0), task(second, 1)],
        chains: vec![chain],
        ..Dataflow::default()
    };
    TimingModel { dataflow: Some(flow), ..TimingModel::new("CLOCK_MONOTONIC") }
}

#[test]
fn everything_is_printed_in_order() {
    let text = program(&model(), &Page::default());
    let expected = "\
Dataflow program rover \"2\" (policy fifo, 1 executor): 100 events in 10 s, 2 tasks, 1 channel; 7 events DISCARDED for lack of room; figures leave out what that may have changed.

Graph
From            Channel  Pushes  To    Notes
cam, (outside)  image     1,234  navi  at least 1 push missing; never activates navi

Execution times of tasks, from start to stop
Task  Instances    Min  Quartile 1  Median  Quartile 3   Mean    p99    Max  Worst instance           At  Notes
cam           4  10 µs       20 µs   30 µs       40 µs  30 µs  50 µs  50 µs              #3  +0.003010 s  1 not ended
navi          4  10 µs       20 µs   30 µs       40 µs  30 µs  50 µs  50 µs              #3  +0.003010 s  1 not ended

Queuing times of tasks, from activation to start
Task  Instances   Min  Quartile 1  Median  Quartile 3  Mean   p99   Max  Worst instance           At  Notes
cam           4  1 µs        2 µs    3 µs        4 µs  3 µs  5 µs  5 µs              #3  +0.003010 s  1 not ended
navi          4  1 µs        2 µs    3 µs        4 µs  3 µs  5 µs  5 µs              #3  +0.003010 s  1 not ended

Activations of tasks: distance functions δ⁻(n) – δ⁺(n)
Task  Activations            n = 2       n = 5      n = 10      n = 100   n = 10,000
cam             4  900 µs – 1.1 ms  ≥ 3.8 ms *  ≥ 8.3 ms *  ≥ 89.3 ms *  ≥ 8.999 s *
navi            4  900 µs – 1.1 ms  ≥ 3.8 ms *  ≥ 8.3 ms *  ≥ 89.3 ms *  ≥ 8.999 s *

Activations of tasks: arrival curves η⁻(Δ) – η⁺(Δ)
Task  Activations  Δ = 1 ms  Δ = 10 ms  Δ = 100 ms    Δ = 1 s    Δ = 10 s
cam             4     0 – 2     ≤ 11 *     ≤ 111 *  ≤ 1,111 *  ≤ 11,111 *
navi            4     0 – 2     ≤ 11 *     ≤ 111 *  ≤ 1,111 *  ≤ 11,111 *

*: beyond the observation, extrapolated by δ⁻(n + 1) = δ⁻(n) + δ⁻(2) and its inverse; safe if no two activations ever come closer than the closest observed.
not ended: instances still active at the end of the trace.

Chains: end-to-end latency
Chain       Latency   Count     Min  Quartile 1  Median  Quartile 3    Mean       p99       Max  = queuing  + execution  + waiting  Not followed
cam → navi  reaction      3  100 µs      100 µs  145 µs      145 µs  327 µs  1.145 ms  1.145 ms      10 µs        80 µs   1.055 ms  1 on the way, 1 lost, of cam itself 1 not ended
            age           0       –           –       –           –       –         –         –          –            –          –
";
    assert!(text.starts_with(expected), "{text}");
    let worst = "
Worst reaction of cam → navi: 1.145 ms
  +0.002000 s  cam   #2  a later datum was read as well, or instead
  +0.003000 s  cam   #3  waited 1 ms for that; queued 5 µs, executed 40 µs until it pushed on image
  +0.003100 s  navi  #3  waited 55 µs on the channel; queued 5 µs, executed 40 µs to its end
1 of the 3 data had no reaction of its own: the sink read a later datum as well, or instead.
lost: events are missing that could have changed the path of this datum, or a channel on it is connected to a task twice; no figure counts it.
";
    assert!(text.ends_with(worst), "{text}");
}

#[test]
fn no_control_character_reaches_the_terminal() {
    assert!(!program(&model_with("na\x1bvi"), &Page::default()).contains('\x1b'));
    assert!(!dot(model_with("na\x1bvi").dataflow.as_ref().unwrap()).contains('\x1b'));
}

#[test]
fn no_line_of_a_table_is_wider_than_the_page() {
    for width in [80, 100, 132, 200] {
        let text = program(&model(), &Page { width: Some(width), colour: false });
        let steps = |line: &str| line.starts_with("  +");
        let long: Vec<&str> =
            text.lines().filter(|line| line.chars().count() > usize::from(width) && !steps(line)).collect();
        assert!(long.is_empty(), "{width}: {long:#?}");
    }
}

#[test]
fn eighty_columns_keep_mean_and_p99_beside_the_greatest() {
    let text = program(&model(), &Page { width: Some(80), colour: false });
    let heads: Vec<&str> = text.lines().filter(|line| line.contains("  Max")).collect();
    let have_both = heads.iter().all(|head| head.contains("Mean") && head.contains("p99"));
    assert!(heads.len() == 3 && have_both, "{text}");
}

#[test]
fn the_graph_is_one_of_graphviz() {
    let expected = "digraph \"rover \\\"2\\\"\" {
	rankdir = LR;
	node [fontname = \"sans-serif\"];
	edge [fontname = \"sans-serif\"];
	\"task 0\" [shape = box, label = \"cam\\nC ≤ 50 µs\"];
	\"task 1\" [shape = box, label = \"navi\\nC ≤ 50 µs\"];
	\"channel 0\" [shape = ellipse, label = \"image\"];
	\"outside 0\" [shape = point];
	\"outside 0\" -> \"channel 0\" [label = \"2\"];
	\"task 0\" -> \"channel 0\" [label = \"1,232\"];
	\"channel 0\" -> \"task 1\" [label = \"0\", style = dashed];
}
";
    assert_eq!(dot(model().dataflow.as_ref().unwrap()), expected);
}

#[test]
fn too_many_chains_are_reported() {
    let mut model = model();
    let flow = model.dataflow.as_mut().unwrap();
    (flow.chains, flow.chains_omitted) = (Vec::new(), true);
    let text = program(&model, &Page::default());
    assert!(text.contains("\nChains\nThere are too many paths from sources to sinks"), "{text}");
    assert_eq!(program(&example::model(Vec::new()), &Page::default()), "");
}

#[test]
fn missing_events_are_reported_first() {
    let mut model = model();
    let flow = model.dataflow.as_mut().unwrap();
    flow.discarded_events = 0;
    flow.tasks[1].missing_activations = 2;
    flow.tasks[1].incomplete = 3;
    // The push, and an event of each incomplete instance.
    let text = program(&model, &Page::default());
    assert!(text.contains("; at least 4 events MISSING, by their numbers; figures leave out"), "{text}");
    assert!(text.contains("1 not ended, 3 incomplete, ≥ 2 missing"), "{text}");
    let flow = model.dataflow.as_mut().unwrap();
    flow.channels[0].missing_pushes = 0;
    (flow.tasks[1].missing_activations, flow.tasks[1].incomplete) = (0, 0);
    assert!(
        summary(&model).ends_with("; nothing lost up to the last event, with 2 instances still active.\n"),
        "{}",
        summary(&model)
    );
}

#[test]
fn a_single_value_is_not_shown_as_a_range() {
    let ns = Duration::from_ns;
    let cells_of = |count, values: [u64; 5]| {
        let [min_ns, quartile_1_ns, median_ns, quartile_3_ns, max_ns] = values.map(ns);
        let (mean_ns, p99_ns) = (None, None);
        cells(&Distribution {
            count,
            min_ns,
            quartile_1_ns,
            median_ns,
            quartile_3_ns,
            max_ns,
            mean_ns,
            p99_ns,
            p95_ns: None,
            p999_ns: None,
            histogram: Vec::new(),
        })
    };
    assert_eq!(cells_of(1, [4_961_237; 5]), ["4.961237 ms"; 5]);
    // Bounds to the safe side, quartiles to three digits and never beyond them.
    let cells = cells_of(4, [4_961_237, 4_961_300, 4_987_654, 5_012_345, 5_012_345]);
    assert_eq!(cells, ["4.961 ms", "4.961 ms", "4.99 ms", "5.01 ms", "5.013 ms"]);
}

#[test]
fn only_a_task_with_two_inputs_waits_for_the_other() {
    let mut model = model();
    let flow = model.dataflow.as_mut().unwrap();
    flow.channels.push(Channel { name: "tick".into(), id: 1, ..flow.channels[0].clone() });
    assert!(
        program(&model, &Page::default()).contains("waited 55 µs on the channel, for other inputs; queued")
    );
}

#[test]
fn a_single_task_can_be_described() {
    let text = task_by("cam");
    assert!(text.starts_with("cam (task 0 of dataflow program rover \"2\")\n\nGraph\n"), "{text}");
    assert!(!text.contains("\nnavi "), "{text}");
    assert!(text.contains("cam → navi  reaction") && text.contains("Worst reaction of cam → navi"), "{text}");
    assert_eq!(super::task(&model(), "nobody", &Page::default()), None);
}

fn task_by(name: &str) -> String {
    super::task(&model(), name, &Page::default()).unwrap()
}

#[test]
fn what_a_trace_leaves_open_is_told() {
    let mut model = model();
    let flow = model.dataflow.as_mut().unwrap();
    flow.chains[0].end_to_end = Some(false);
    flow.openings = vec![Opening {
        why: "Callbacks were called".into(),
        before: vec!["cam".into()],
        behind: vec!["cam".into()],
    }];
    let text = program(&model, &Page::default());
    let line = "Callbacks were called. Others may come before or after cam.";
    assert!(text.contains("Chains: latency from the first task to the last"), "{text}");
    assert!(text.replace('\n', " ").contains(line), "{text}");
}

#[test]
fn assumed_connections_are_told() {
    let mut model = model();
    let flow = model.dataflow.as_mut().unwrap();
    assert!(
        !program(
            &TimingModel { dataflow: Some(flow.clone()), ..example::model(Vec::new()) },
            &Page::default()
        )
        .contains("Assumed")
    );
    flow.channels[0].activates[0].assumed = true;
    flow.chains[0].end_to_end = Some(false);
    let text = program(&model, &Page::default()).replace('\n', " ");
    assert!(text.contains("Assumed, and not in the trace: cam → navi. No chain through such"), "{text}");
    assert!(text.contains("or as they rest on what is assumed: cam → navi."), "{text}");
}

#[test]
fn no_chain_is_not_called_end_to_end() {
    let mut model = model();
    model.dataflow.as_mut().unwrap().chains.clear();
    let text = program(&model, &Page::default());
    assert!(text.contains("\nChains\nNo chains: ") && !text.contains("end-to-end"), "{text}");
}
