//! Comparisons with numbers that were worked by hand, and laws.

use super::{By, Comparison, Input, Outcome, decisions};
use crate::{Page, example};
use proptest::prelude::*;
use punctual_model::dataflow::{Chain, Dataflow, Distribution, FlowTask, Latency, Times, Worst, WorstPath};
use punctual_model::{Arrival, Duration, Instant, Mode, Source};

/// Microseconds, all that a run is made of here: medians and greatest values.
#[derive(Clone, Debug)]
struct Run {
    policy: &'static str,
    executors: u32,
    /// Of task a: execution and queuing, each median and max.
    execution: [u64; 2],
    queuing: [u64; 2],
    /// Of chain a → b and a → c, reaction: max.
    chains: [u64; 2],
}

fn distribution(min: u64, median: u64, max: u64) -> Distribution {
    let [min_ns, median_ns, max_ns] = [min, median, max].map(Duration::from_us);
    Distribution {
        count: 10,
        min_ns,
        quartile_1_ns: min_ns,
        median_ns,
        quartile_3_ns: max_ns,
        max_ns,
        mean_ns: Some(median_ns),
        p99_ns: Some(max_ns),
        p95_ns: None,
        p999_ns: None,
        histogram: Vec::new(),
    }
}

fn times([median, max]: [u64; 2]) -> Option<Times> {
    let worst = Worst { instance: 0, at_ns: Instant::from_ns(0) };
    Some(Times { distribution: distribution(median.min(max), median.min(max), max), worst })
}

fn latency(max: u64) -> Option<Latency> {
    let (from_ns, zero) = (Instant::from_ns(0), Duration::ZERO);
    let worst = WorstPath {
        source_instance: 0,
        from_ns,
        until_ns: from_ns + Duration::from_us(max),
        queuing_ns: zero,
        execution_ns: zero,
        waiting_ns: zero,
        path: Vec::new(),
    };
    Some(Latency {
        distribution: distribution(max / 4, max / 2, max),
        worst,
        series: Vec::new(),
        alternatives: Vec::new(),
    })
}

fn task(name: &str, execution: [u64; 2], queuing: [u64; 2]) -> FlowTask {
    FlowTask {
        name: name.into(),
        id: 0,
        activations: 10,
        executions: 10,
        in_flight: 0,
        incomplete: 0,
        unexplained: 0,
        missing_activations: 0,
        execution: times(execution),
        queuing: times(queuing),
        by_kernel: None,
        arrival: Arrival::default(),
        distances: Vec::new(),
        counts: Vec::new(),
    }
}

fn chain(tasks: [&str; 2], max: u64) -> Chain {
    Chain { tasks: tasks.map(str::to_owned).to_vec(), reaction: latency(max), ..Chain::default() }
}

impl Run {
    fn input(&self, name: &str) -> Input {
        let mut model = example::model(Vec::new());
        model.dataflow = Some(Dataflow {
            program: Some("nav".into()),
            platform: Some("Linux x86_64".into()),
            policy: Some(self.policy.into()),
            executors: Some(self.executors),
            tasks: vec![task("a", self.execution, self.queuing)],
            chains: vec![chain(["a", "b"], self.chains[0]), chain(["a", "c"], self.chains[1])],
            ..Dataflow::default()
        });
        Input { name: name.into(), model }
    }
}

const FIFO: Run =
    Run { policy: "fifo", executors: 1, execution: [100, 200], queuing: [10, 1_000], chains: [4_000, 8_000] };
/// A little more than [`FIFO`].
const FIFO_AGAIN: Run = Run { execution: [102, 220], queuing: [12, 1_100], chains: [4_100, 8_200], ..FIFO };
/// Queuing is less, one chain is better and the other worse.
const PRIORITY: Run =
    Run { policy: "priority", execution: [101, 210], queuing: [5, 500], chains: [6_000, 6_500], ..FIFO };
const PRIORITY_AGAIN: Run =
    Run { execution: [103, 230], queuing: [6, 550], chains: [6_100, 6_150], ..PRIORITY };

fn compared(runs: &[(&str, &Run)], by: &[By]) -> Comparison {
    let inputs: Vec<Input> = runs.iter().map(|(name, run)| run.input(name)).collect();
    Comparison::new(&inputs, by).expect("all have a dataflow program")
}

/// Five runs of each policy, enough to know their spread.
fn five_of_each() -> [(&'static str, &'static Run); 10] {
    [
        ("d/f1", &FIFO),
        ("d/p1", &PRIORITY),
        ("d/p2", &PRIORITY_AGAIN),
        ("d/f2", &FIFO_AGAIN),
        ("d/f3", &FIFO),
        ("d/f4", &FIFO),
        ("d/f5", &FIFO),
        ("d/p3", &PRIORITY),
        ("d/p4", &PRIORITY),
        ("d/p5", &PRIORITY),
    ]
}

fn text(comparison: &Comparison) -> String {
    comparison.text(&Page::default())
}

/// The cells of the rows of the table of this title.
fn cells<'a>(text: &'a str, title: &str) -> Vec<Vec<&'a str>> {
    let lines = text.lines().skip_while(|line| *line != title).skip(2).take_while(|line| !line.is_empty());
    let row = |line: &'a str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    lines.map(row).collect()
}

#[test]
fn differences_beyond_the_spread_are_marked() {
    let found = text(&compared(&five_of_each(), &[]));
    let expected = "\
priority is worse than fifo in 3 of 10 figures, above all min reaction time of a → b (1 ms, then 1.5 ms, +50.0 %); it is better in 5 of 10 figures, above all median queuing of a (10 µs, then 5 µs, −50.0 %).
10 runs in 2 configurations. The same in all: nav, Linux x86_64, 1 executor.
Configuration  Runs  Inputs
fifo              5  f1, f2, f3, f4, f5
priority          5  p1, p2, p3, p4, p5

Decisions
Lowest worst-case reaction time over all 2 chains: priority (6.5 ms); then fifo (8.2 ms, ▲ +26.2 %).
By reaction time, some chains do better elsewhere: a → b under fifo (4.1 ms; priority: 6.1 ms, ▲ +48.8 %).
By data age: no chain has one in all runs, so there is no decision.

Execution times of tasks, from start to stop
Task  Configuration  Median           (runs)  (to first)     Max           (runs)  (to first)
a     fifo           100 µs  100 µs – 102 µs              220 µs  200 µs – 220 µs
      priority       101 µs  101 µs – 103 µs      +1.0 %  230 µs  210 µs – 230 µs      +4.5 %

Queuing times of tasks, from activation to start
Task  Configuration  Median         (runs)  (to first)     Max           (runs)  (to first)
a     fifo            10 µs  10 µs – 12 µs              1.1 ms    1 ms – 1.1 ms
      priority         5 µs    5 µs – 6 µs   ▼ −50.0 %  550 µs  500 µs – 550 µs   ▼ −50.0 %
";
    // Of a → b the worst of fifo is 4.1 ms, of priority 6.1 ms; of a → c 8.2 ms and 6.5 ms.
    assert!(found.starts_with(expected), "{found}");
    assert!(found.contains("chance marks one figure in 126 with 5 and 5 runs"), "{found}");
}

#[test]
fn fewer_than_five_runs_have_no_spread_and_no_mark() {
    let nine = &five_of_each()[..9];
    let found = text(&compared(nine, &[]));
    assert!(!found.contains('▲') && !found.contains('▼'), "{found}");
    assert!(found.contains("Differences are not marked"), "{found}");
    let found = text(&compared(&[("f", &FIFO), ("p", &PRIORITY)], &[]));
    assert!(!found.contains('▲') && !found.contains('▼'), "{found}");
    assert!(found.contains("−50.0 %"), "{found}");
    assert!(found.contains("a mark takes at least 5 runs of both configurations"), "{found}");
    assert!(!found.contains("The runs"), "{found}");
}

#[test]
fn each_decision_is_compared_with_the_others_fixed() {
    let two = Run { executors: 2, chains: [3_000, 7_000], ..FIFO };
    let two_by_priority = Run { executors: 2, chains: [2_000, 9_000], ..PRIORITY };
    let runs: Vec<Input> = (0..5)
        .flat_map(|time| {
            let all = [&FIFO, &PRIORITY, &two, &two_by_priority].into_iter().enumerate();
            all.map(move |(number, run)| run.input(&format!("{number}-{time}")))
        })
        .collect();
    let found = text(&Comparison::new(&runs, &[]).expect("dataflow programs"));
    for line in [
        "over all 2 chains: priority, 1 executor (6.5 ms); then fifo, 2 executors (7 ms, ▲ +7.7 %), \
         fifo, 1 executor (8 ms, ▲ +23.1 %), priority, 2 executors (9 ms, ▲ +38.5 %).\n",
        "Policy (1 executor): lowest with priority (6.5 ms); then fifo (8 ms, ▲ +23.1 %).\n",
        "Policy (2 executors): lowest with fifo (7 ms); then priority (9 ms, ▲ +28.6 %).\n",
        "Number of executors (fifo): lowest with 2 executors (7 ms); then 1 executor (8 ms, ▲ +14.3 %).\n",
        "(priority): lowest with 1 executor (6.5 ms); then 2 executors (9 ms, ▲ +38.5 %).\n",
        "a → b under priority, 2 executors (2 ms; priority, 1 executor: 6 ms, ▲ +200 %).\n",
    ] {
        assert!(found.contains(line), "no {line}in\n{found}");
    }
}

#[test]
fn values_absent_in_some_runs_are_shown_as_missing() {
    let mut other = PRIORITY.input("p");
    let flow = other.model.dataflow.as_mut().expect("a dataflow program");
    flow.tasks.push(task("late", [7, 8], [9, 10]));
    flow.chains.remove(1);
    let found = text(&Comparison::new(&[FIFO.input("f"), other], &[]).expect("dataflow programs"));
    let expected = "\
late  fifo                –                   –              missing
      priority         7 µs                8 µs
";
    assert!(found.contains(expected), "{found}");
    assert!(found.contains("of the one chain that all runs have: fifo (4 ms), priority (6 ms"), "{found}");
}

#[test]
fn losses_of_a_run_are_reported() {
    let mut lossy = PRIORITY.input("p");
    let flow = lossy.model.dataflow.as_mut().expect("a dataflow program");
    (flow.discarded_events, flow.damaged_packets) = (7, 1);
    let found = text(&Comparison::new(&[FIFO.input("f"), lossy], &[]).expect("dataflow programs"));
    assert!(
        found.contains("p is incomplete (7 events discarded, 1 packet missing or damaged): its"),
        "{found}"
    );
    assert!(!found.contains("f is incomplete"), "{found}");
}

#[test]
fn a_narrow_terminal_keeps_what_matters() {
    let found = compared(&five_of_each(), &[]).text(&Page { width: Some(70), colour: false });
    assert!(found.lines().all(|line| line.chars().count() <= 70), "{found}");
    assert!(found.contains(" 3.25 ms  ▼ −18.8 %  6.5 ms  ▼ −20.7 %\n"), "{found}");
    assert!(found.contains("(not shown at this width: (runs), (to first))"), "{found}");
}

#[test]
fn other_groupings() {
    let two = Run { executors: 2, ..FIFO };
    let all = [("1", &FIFO), ("2", &two), ("3", &PRIORITY)];
    let by_policy = compared(&all, &[By::Policy]);
    let labels = |comparison: &Comparison| {
        comparison.configurations.iter().map(|it| it.label.clone()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&by_policy), ["fifo", "priority"]);
    assert!(text(&by_policy).contains("The runs of fifo differ in executors, so"), "{}", text(&by_policy));
    assert_eq!(labels(&compared(&all, &[By::File])), ["1", "2", "3"]);
    assert_eq!(
        labels(&compared(&all, &[])),
        ["fifo, 1 executor", "fifo, 2 executors", "priority, 1 executor"]
    );
    let same = compared(&[("d/1", &FIFO), ("e/1", &FIFO_AGAIN)], &[]);
    assert_eq!(labels(&same), ["nav, Linux x86_64, fifo, 1 executor"]);
    assert!(text(&same).contains("d/1, e/1"), "{}", text(&same));
    assert!(text(&same).contains("These are runs of a single configuration"), "{}", text(&same));
}

/// What is unknown may be anything: runs that do not say it are not taken for runs of one configuration.
#[test]
fn runs_of_unknown_configurations_are_never_merged() {
    type Forget = fn(&mut Dataflow);
    let forgets: [(By, Forget); 4] = [
        (By::Program, |flow| flow.program = None),
        (By::Platform, |flow| flow.platform = None),
        (By::Policy, |flow| flow.policy = None),
        (By::Executors, |flow| flow.executors = None),
    ];
    for (by, forget) in forgets {
        let inputs: Vec<Input> = ["d/known", "d/one", "d/two", "d/known too"]
            .map(|name| {
                let mut input = FIFO.input(name);
                if !name.contains("known") {
                    forget(input.model.dataflow.as_mut().expect("a program"));
                }
                input
            })
            .into();
        let by_default = Comparison::new(&inputs, &[]).expect("dataflow programs");
        let runs: Vec<&[usize]> = by_default.configurations.iter().map(|it| it.runs.as_slice()).collect();
        assert_eq!(runs, [&[0, 3][..], &[1], &[2]], "{by:?}");
        let labels: Vec<&str> = by_default.configurations.iter().map(|it| it.label.as_str()).collect();
        let unknown = format!("{} unknown", by.name());
        assert_eq!(labels[1..], [format!("{unknown}, one"), format!("{unknown}, two")], "{by:?}");
        let told = format!("Of 2 runs, it is not known of which {}:", by.name());
        assert!(text(&by_default).replace('\n', " ").contains(&told), "{}", text(&by_default));
        // Who groups by something else says what they are runs of.
        let by_folder = Comparison::new(&inputs, &[By::Folder]).expect("dataflow programs");
        assert_eq!(by_folder.configurations.len(), 1, "{by:?}");
    }
}

/// A program without a policy, as any of ROS 2: no run says one, so runs do not differ in it.
#[test]
fn what_no_run_says_groups_nothing() {
    let forget = |name: &str, run: &Run| {
        let mut input = run.input(name);
        let flow = input.model.dataflow.as_mut().expect("a program");
        (flow.policy, flow.platform) = (None, None);
        input
    };
    let labels = |found: &Comparison| -> Vec<String> {
        found.configurations.iter().map(|configuration| configuration.label.clone()).collect()
    };
    let inputs = [forget("d/1", &FIFO), forget("d/2", &FIFO_AGAIN)];
    let found = Comparison::new(&inputs, &[]).expect("dataflow programs");
    assert_eq!(labels(&found), ["nav, 1 executor"]);
    assert!(!text(&found).contains("not known"), "{}", text(&found));
    // Whoever asks for it is told that nobody knows.
    let found = Comparison::new(&inputs, &[By::Policy]).expect("dataflow programs");
    assert_eq!(labels(&found), ["1", "2"]);
    assert!(text(&found).contains("it is not known of which policy"), "{}", text(&found));
}

/// Whatever is unknown may be any of the known: it neither wins nor loses.
#[test]
fn unknown_configurations_are_not_ranked() {
    let mut unknown = Run { chains: [1_000, 1_000], ..FIFO }.input("d/u");
    unknown.model.dataflow.as_mut().expect("a program").policy = None;
    let inputs = [unknown.clone(), FIFO.input("d/f"), PRIORITY.input("d/p")];
    let decisions = decisions::all(&Comparison::new(&inputs, &[]).expect("dataflow programs"));
    assert!(
        decisions[0].contains("reaction time over all 2 chains: fifo (8 ms), priority (6.5 ms"),
        "{decisions:?}"
    );
    assert_eq!(decisions[1], "1 run of unknown configuration is not ranked.");
    assert!(decisions.iter().all(|text| !text.contains("policy unknown")), "{decisions:?}");
    let decisions = decisions::all(&Comparison::new(&inputs[..2], &[]).expect("dataflow programs"));
    let none = "By reaction time: fewer than two configurations are known, so there is no decision.";
    assert_eq!(decisions[0], none);
}

#[test]
fn threads_are_compared_by_name() {
    let named = |tasks| Input {
        name: format!("{}.timing.json", if tasks == 1 { "before" } else { "after" }),
        model: example::model(Vec::new()),
    };
    let (mut before, mut after) = (named(1), named(2));
    before.model.threads.as_mut().expect("threads").tasks =
        vec![example::task("ctl", 1_202, 80), example::task("gone", 1_203, 80)];
    let mut slower = example::task("ctl", 1_202, 80);
    slower.streams[0].response.as_mut().expect("a response").max_ns = Duration::from_us(1_350);
    // A short phase before says less of the thread.
    let mut short = example::task("ctl", 1_202, 80);
    short.streams[0].jobs = 1;
    short.streams[0].response = None;
    after.model.threads.as_mut().expect("threads").tasks = vec![short, slower];
    let found = text(&Comparison::new(&[before, after], &[]).expect("threads"));
    assert_eq!(
        cells(&found, "Threads"),
        [
            vec!["ctl", "before", "5 ms", "41 µs", "800 µs", "900 µs"],
            vec!["after", "5 ms", "=", "41 µs", "=", "800 µs", "=", "1.35 ms", "+50.0 %"],
            vec!["gone", "before", "5 ms", "41 µs", "800 µs", "900 µs"],
            vec!["after", "–", "–", "–", "–", "missing"],
        ],
        "{found}"
    );
    assert!(found.contains("models of threads do not say"), "{found}");
}

/// Five runs before a change, five after it: each in a folder.
#[test]
fn runs_of_threads_are_grouped_by_folder() {
    let input = |name: String, cost: u64| {
        let (mut task, mut idle) = (example::task("timer-sigwait12", 1_202, 80), example::task("idle", 9, 1));
        let execution = task.streams[0].execution.as_mut().expect("a cost");
        execution.wcet_ns[0] = Duration::from_us(cost);
        (idle.streams, idle.primary) = (Vec::new(), None);
        Input { name, model: example::model(vec![task, idle]) }
    };
    let runs = |folder: &str, cost: u64| {
        (0..5).map(|run| input(format!("a/{folder}/{run}.timing.json"), cost + run)).collect::<Vec<_>>()
    };
    let inputs = [runs("before", 800), runs("after", 400)].concat();
    let comparison = Comparison::new(&inputs, &[By::Folder]).expect("threads");
    let labels: Vec<&str> = comparison.configurations.iter().map(|it| it.label.as_str()).collect();
    assert_eq!(labels, ["before", "after"]);
    let found = text(&comparison);
    assert!(found.contains("▼ −49.8 %"), "{found}");
    assert!(!found.contains("idle"), "a thread without jobs has no figures\n{found}");
    // Where folders have one name, their paths.
    let other = [runs("x/run", 800), runs("y/run", 400)].concat();
    let other = Comparison::new(&other, &[By::Folder]).expect("threads");
    assert_eq!(other.configurations[0].label, "a/x/run");
    // Differences stay at 80 columns.
    let narrow = comparison.text(&Page { width: Some(80), colour: false });
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    let rows = "\
                 after             5 ms   41 µs    404 µs    900 µs
                 (to first)           =       =  ▼ −49.8 %         =
";
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert!(words(&narrow).contains(&words(rows)), "{narrow}");
}

/// A thread with modes has no period to compare: a sentence says what releases its jobs.
#[test]
fn several_rates_are_compared_in_words() {
    let input = |name: &str, periods: &[u64]| {
        let mut task = example::task("loop", 1_202, 80);
        let source = |period: &u64| Source {
            period_ns: Duration::from_ms(*period),
            period_exact: None,
            offset_ns: 0,
            jitter_ns: Duration::from_us(40),
            usual_jitter_ns: None,
            activations: 100,
            burst: None,
        };
        let arrival = &mut task.streams[0].arrival;
        let at = Instant::from_ns;
        let sources = periods.iter().map(source).collect();
        arrival.modes = vec![Mode { from_ns: at(0), until_ns: at(1_000), releases: 100, sources }];
        arrival.periodic = None;
        Input { name: name.into(), model: example::model(vec![task]) }
    };
    let sentence = |inputs: &[Input]| {
        let found = text(&Comparison::new(inputs, &[]).expect("threads"));
        found.lines().find(|line| line.starts_with("Releases of")).map(str::to_owned)
    };
    let (two, other) = (input("two", &[10, 25]), input("other", &[10, 20]));
    let differ = "Releases of loop: 10 ms + 25 ms (two); 10 ms + 20 ms (other).";
    assert_eq!(sentence(&[two.clone(), other]).as_deref(), Some(differ));
    let same = "Releases of loop: 10 ms + 25 ms, in all.";
    assert_eq!(sentence(&[two.clone(), Input { name: "again".into(), ..two }]).as_deref(), Some(same));
}

/// With both jitters, percentiles and long names.
#[test]
fn tables_of_threads_fit_a_terminal() {
    let input = |name: &str| {
        let mut task = example::task("timer-sigwait12", 1_202, 80);
        task.streams[0].arrival.periodic = Some(example::disturbed());
        task.streams[0].percentiles = Some(example::percentiles());
        Input { name: name.into(), model: example::model(vec![task]) }
    };
    let comparison = Comparison::new(&[input("before"), input("after")], &[]).expect("threads");
    for width in [80, 100, 132] {
        let found = comparison.text(&Page { width: Some(width), colour: false });
        assert!(found.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}\n{found}");
    }
}

#[test]
fn slips_and_percentiles_are_compared_where_there_are_any() {
    let input = |name: &str, change: fn(&mut punctual_model::Stream)| {
        let mut task = example::task("ctl", 1_202, 80);
        change(&mut task.streams[0]);
        Input { name: name.into(), model: example::model(vec![task]) }
    };
    let odd = input("odd", |stream| {
        stream.arrival.periodic = Some(example::disturbed());
        stream.percentiles = Some(example::percentiles());
    });
    let comparison = Comparison::new(&[input("plain", |_| ()), odd], &[]).expect("threads");
    let found = text(&comparison);
    // The typical jitter, and the greatest where it is another in any run: +73,866 %.
    assert_eq!(
        cells(&found, "Threads"),
        [
            vec!["ctl", "plain", "5 ms", "41 µs", "41 µs", "800 µs", "900 µs"],
            vec![
                "odd",
                "1 ms",
                "−80.0 %",
                "16 µs",
                "−61.0 %",
                "30.33 ms",
                "+73,866 %",
                "800 µs",
                "=",
                "900 µs",
                "="
            ],
        ],
        "{found}"
    );
    assert!(found.contains("Max jitter"), "{found}");
    assert_eq!(
        cells(&found, "Threads: skipped activations, extra releases"),
        [vec!["ctl", "plain", "0", "0"], vec!["odd", "3", "+3", "0", "="]]
    );
    assert_eq!(
        cells(&found, "Threads: percentiles of lateness"),
        [vec!["ctl", "plain", "–", "–", "–", "–"], vec!["odd", "6 µs", "12 µs", "14 µs", "16 µs"]]
    );
    assert!(
        found.contains("Threads: percentiles of cost")
            && found.contains("Threads: percentiles of response time"),
        "{found}"
    );
    let json: serde_json::Value = serde_json::from_str(&comparison.json()).expect("JSON");
    let figures = json["figures"].as_array().expect("figures");
    let figure_of = |table: &str, figure: &str| {
        figures.iter().find(|it| it["of"] == table && it["figure"] == figure).expect("a figure")
    };
    let skipped =
        serde_json::json!({"value": 3, "least": 3, "greatest": 3, "runs": 1, "difference": {"amount": 3}});
    assert_eq!(figure_of("slips", "skipped")["configurations"][1], skipped);
    assert_eq!(figure_of("cost", "p99_ns")["configurations"][1]["value_ns"], 790_000);
    assert_eq!(figure_of("threads", "jitter_ns")["configurations"][1]["value_ns"], 16_000);
    assert!(comparison.html().contains("Threads: percentiles of lateness"));
}

#[test]
fn runs_with_nothing_in_common_are_refused() {
    let threads = Input { name: "t".into(), model: example::model(vec![example::task("ctl", 1, 80)]) };
    let refused =
        Comparison::new(&[threads, FIFO.input("f")], &[]).map(|_| ()).expect_err("nothing in common");
    assert_eq!(refused.0.iter().map(|(_, input)| *input).collect::<Vec<_>>(), [Some(1), Some(0), None]);
}

#[test]
fn json_has_the_same_values() {
    let json: serde_json::Value = serde_json::from_str(&compared(&five_of_each(), &[]).json()).expect("JSON");
    assert_eq!(json["configurations"][1]["policy"], "priority");
    assert_eq!(json["configurations"][0]["runs"], serde_json::json!(["f1", "f2", "f3", "f4", "f5"]));
    let figures = json["figures"].as_array().expect("figures");
    let figure_of = |table: &str, figure: &str| {
        figures.iter().find(|it| it["of"] == table && it["figure"] == figure).expect("a figure")
    };
    let queuing = figure_of("queuing", "max_ns");
    assert_eq!(
        queuing["configurations"][1],
        serde_json::json!({"value_ns": 550_000, "least_ns": 500_000, "greatest_ns": 550_000, "runs": 5,
                           "difference": {"amount_ns": -550_000, "ratio": -0.5, "exceeds_spread": true}})
    );
    assert_eq!(figure_of("execution", "max_ns")["configurations"][1]["difference"]["exceeds_spread"], false);
    assert!(figure_of("execution", "max_ns")["configurations"][0].get("difference").is_none());
}

#[test]
fn the_page_holds_boxes_and_escapes_names() {
    let mut hostile = PRIORITY.input("<script>p");
    hostile.model.dataflow.as_mut().expect("a dataflow program").policy = Some("<img src=x>".into());
    let html = Comparison::new(&[FIFO.input("f"), hostile], &[]).expect("dataflow programs").html();
    assert!(!html.contains("<script>p") && !html.contains("<img"), "a name became markup");
    // The script of the button, and no other.
    assert_eq!(html.matches("<script").count(), 1);
    assert!(html.contains("<button id=\"theme\"") && html.contains("script-src 'sha256-"));
    // A box of each run for a task's execution and queuing, and for two chains' reaction; no chain has a data
    // age.
    assert_eq!(html.matches("<rect").count(), 2 * (1 + 1 + 2));
    assert_eq!(html.matches("<svg").count(), 1 + 1 + 2);
    assert!(
        html.contains("&lt;script&gt;p: min 101 µs, quartiles 101 µs, 101 µs, 210 µs, max 210 µs, of 10"),
        "{html}"
    );
}

fn any_run() -> impl Strategy<Value = Run> {
    let policy = prop_oneof![Just("fifo"), Just("priority")];
    let pair = || [0_u64..50, 50_u64..100];
    (policy, 1_u32..3, pair(), pair(), [1_u64..1_000, 1_u64..1_000]).prop_map(
        |(policy, executors, execution, queuing, chains)| Run {
            policy,
            executors,
            execution,
            queuing,
            chains,
        },
    )
}

proptest! {
    #[test]
    fn a_model_does_not_differ_from_itself(run in any_run(), times in 2_usize..5) {
        let inputs: Vec<Input> = (0..times).map(|number| run.input(&number.to_string())).collect();
        for by in [&[By::File][..], &[]] {
            let comparison = Comparison::new(&inputs, by).expect("dataflow programs");
            let found = text(&comparison);
            prop_assert!(!found.contains('%') && !found.contains('▲') && !found.contains('▼'), "{}", found);
        }
    }

    /// The first run of each configuration says in which order they are shown; that of the others says
    /// nothing.
    #[test]
    fn the_order_of_runs_does_not_matter(runs in prop::collection::vec(any_run(), 2..8),
        shuffle in any::<prop::sample::Index>()) {
        let given: Vec<Input> = runs.iter().enumerate()
            .map(|(number, run)| run.input(&format!("run-{number}"))).collect();
        let key = |input: &Input| { let flow = input.model.dataflow.clone()
            .expect("one"); (flow.policy, flow.executors) };
        let mut order = Vec::new();
        for input in &given {
            if !order.contains(&key(input)) {
                order.push(key(input));
            }
        }
        let mut other = given.clone();
        let turned = shuffle.index(other.len());
        other.rotate_left(turned);
        other.reverse();
        other.sort_by_key(|input| order.iter().position(|known| *known == key(input)));
        let compared = |inputs: &[Input]| Comparison::new(inputs, &[]).expect("dataflow programs");
        prop_assert_eq!(text(&compared(&given)), text(&compared(&other)));
    }
}

/// By processor; of several runs the greatest stands for all.
#[test]
fn bounds_of_processors_are_compared() {
    let input = |name: &str, poid: u64| {
        let mut latency = crate::latency::example::figure_24();
        latency.processors[0].variables.as_mut().expect("there").poid.max_ns = Duration::from_ns(poid);
        let model = punctual_model::TimingModel {
            latency: Some(latency),
            ..punctual_model::TimingModel::new("CLOCK_MONOTONIC")
        };
        Input { name: name.into(), model }
    };
    let inputs = [input("before", 22_510), input("after", 40_000)];
    let comparison = Comparison::new(&inputs, &[]).expect("latencies");
    let text = comparison.text(&Page::default());
    assert!(text.contains("Scheduling latency of processors") && text.contains("CPU 1"), "{text}");
    assert!(text.contains("98.042 µs") && text.contains("115.532 µs"), "{text}");
    let json = comparison.json();
    assert!(json.contains("\"bound_ns\"") && json.contains("\"of\": \"latency\""), "{json}");
    let one = Comparison::new(&inputs, &[By::Platform]).expect("latencies").text(&Page::default());
    assert!(one.contains("115.532 µs") && one.contains("98.042 µs – 115.532 µs"), "{one}");
    let other = Input { name: "other".into(), model: punctual_model::TimingModel::new("CLOCK_MONOTONIC") };
    let nothing = Comparison::new(&[inputs[0].clone(), other], &[]).expect_err("nothing in common");
    assert_eq!(nothing.0.iter().map(|(_, input)| *input).collect::<Vec<_>>(), [None, None, Some(0)]);
}

/// A run of threads: jitter, max cost and max response of each, in nanoseconds.
fn run_of_threads(folder: &str, number: usize, threads: &[[u64; 3]]) -> Input {
    let thread = |(place, [jitter, cost, response]): (usize, &[u64; 3])| {
        let mut task = example::task(&format!("t{place}"), 1_202, 80);
        let stream = &mut task.streams[0];
        stream.arrival.periodic.as_mut().expect("periodic").jitter_ns = Duration::from_ns(*jitter);
        stream.execution.as_mut().expect("a cost").wcet_ns[0] = Duration::from_ns(*cost);
        stream.response.as_mut().expect("a response").max_ns = Duration::from_ns(*response);
        task
    };
    let model = example::model(threads.iter().enumerate().map(thread).collect());
    Input { name: format!("{folder}/{number}.timing.json"), model }
}

fn folders<Threads: AsRef<[[u64; 3]]>>(before: &[Threads], after: &[Threads]) -> Comparison {
    let inputs: Vec<Input> = [("before", before), ("after", after)]
        .into_iter()
        .flat_map(|(folder, runs)| {
            let runs = runs.iter().enumerate();
            runs.map(move |(number, threads)| run_of_threads(folder, number, threads.as_ref()))
        })
        .collect();
    Comparison::new(&inputs, &[By::Folder]).expect("threads")
}

#[test]
fn the_verdict_comes_first() {
    let before = [41_000, 41_003, 41_001, 41_002, 41_005].map(|jitter| [[jitter, 800_000, 900_000]; 2]);
    let slower = before.map(|threads| {
        threads.map(|[jitter, cost, response]| [jitter, cost + jitter, response + 2 * jitter])
    });
    let found = folders(&before, &slower);
    assert_eq!(found.outcomes().collect::<Vec<_>>(), [Outcome::Worse]);
    let sentence = "after is worse than before in 4 of 6 figures, above all max response of t0";
    assert!(text(&found).starts_with(sentence), "{}", text(&found));
    let json: serde_json::Value = serde_json::from_str(&found.json()).expect("JSON");
    let verdict = &json["verdicts"][0];
    assert_eq!((&verdict["label"], &verdict["outcome"]), (&"after".into(), &"worse".into()));
    assert_eq!(["tested", "worse", "better"].map(|field| verdict[field].as_u64()), [6, 4, 0].map(Some));
    let html = found.html();
    assert!(html.find("id=\"verdict\"") < html.find("id=\"compared\""), "the verdict is first");
    let found = folders(&slower, &before);
    assert_eq!(found.outcomes().collect::<Vec<_>>(), [Outcome::Better]);
    assert!(text(&found).starts_with("after is better than before in 4 of 6 figures"), "{}", text(&found));
    let found = folders(&before, &before);
    assert_eq!(found.outcomes().collect::<Vec<_>>(), [Outcome::NoDifference]);
    assert!(text(&found).starts_with("No difference found: after is neither"), "{}", text(&found));
    let found = folders(&before[..4], &slower);
    assert_eq!(found.outcomes().collect::<Vec<_>>(), [Outcome::TooFewRuns]);
    assert!(text(&found).starts_with("Too few runs to tell whether after is better"), "{}", text(&found));
}

/// A dot for each run, figure and thread: jitter, max cost and max response.
#[test]
fn the_page_shows_the_runs_of_threads() {
    let runs = [[[41_000, 800_000, 900_000]; 2], [[42_000, 810_000, 910_000]; 2]];
    let html = folders(&runs, &runs[..1]).html();
    assert_eq!(html.matches("<circle").count(), 3 * 3 * 2);
    assert_eq!(html.matches("<svg").count(), 2);
    assert!(html.contains("<title>before/0.timing.json: 41 µs</title>"), "{html}");
}

/// Five runs of each that overlap.
#[test]
fn overlapping_runs_have_no_lowest() {
    let runs: Vec<Input> = (0..10)
        .map(|number| {
            let policy = if number < 5 { "fifo" } else { "priority" };
            Run { policy, chains: [4_000, 8_000 + 100 * (number % 5)], ..FIFO }.input(&number.to_string())
        })
        .collect();
    let found = text(&Comparison::new(&runs, &[]).expect("dataflow programs"));
    assert!(
        found.starts_with("No difference found: priority is neither worse nor better than fifo"),
        "{found}"
    );
    let decision =
        "over all 2 chains: fifo (8.4 ms), priority (8.4 ms, =). None is lowest: no difference found.\n";
    assert!(found.contains(decision), "{found}");
}

/// With fewer runs than the test takes, nothing is called lowest, best or better.
#[test]
fn too_few_runs_name_no_winner() {
    let runs = five_of_each();
    let found = text(&compared(&runs[..6], &[]));
    assert!(
        found.starts_with("Too few runs to tell whether priority is better or worse than fifo"),
        "{found}"
    );
    assert!(!found.contains("Lowest"), "{found}");
    assert!(found.contains("Too few runs to tell which is lowest: it takes at least 5 of each."), "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    /// Of all splits of the same runs in two, at most as many name a difference as the significance allows:
    /// this is the test's error exactly, since all splits are equally likely where nothing differs. Without a
    /// correction for their number, one of 24 figures is marked in every fifth split.
    #[test]
    fn splits_of_the_same_runs_rarely_name_a_difference(
        runs in prop::collection::vec(prop::collection::vec(prop::array::uniform3(1_000..1_000_000_u64), 8), 10)
    ) {
        let (mut splits, mut named) = (0, 0);
        for split in (0_u32..1 << 10).filter(|split| split.count_ones() == 5) {
            let (before, after): (Vec<_>, Vec<_>) =
                runs.iter().enumerate().partition(|(run, _)| split >> run & 1 == 0);
            let [before, after]: [Vec<_>; 2] =
                [before, after].map(|side: Vec<_>| side.into_iter().map(|(_, run)| run).collect());
            let found = folders(&before, &after);
            splits += 1;
            named += u32::from(!found.verdict()[0].starts_with("No difference found"));
        }
        prop_assert_eq!(splits, 252);
        prop_assert!(f64::from(named) <= super::verdict::SIGNIFICANCE * f64::from(splits), "{}", named);
    }

    /// Ranks of ten runs are all different: the first of a split in two is told from the other in two of 252.
    #[test]
    fn splits_of_the_same_runs_rarely_name_the_lowest(
        runs in prop::collection::vec([1_000..2_000_u64, 1_000..2_000_u64], 10)
    ) {
        let lowest = |split: u32| {
            let input = |run: usize| {
                let policy = if split >> run & 1 == 0 { "fifo" } else { "priority" };
                Run { policy, chains: runs[run], ..FIFO }.input(&run.to_string())
            };
            let inputs: Vec<Input> = (0..runs.len()).map(input).collect();
            let found = decisions::all(&Comparison::new(&inputs, &[]).expect("dataflow programs"));
            found.iter().any(|text| text.contains("Lowest"))
        };
        let splits = (0_u32..1 << 10).filter(|split| split.count_ones() == 5);
        prop_assert!(splits.filter(|split| lowest(*split)).count() <= 2);
    }

    #[test]
    fn splits_of_few_runs_name_nothing(
        runs in prop::collection::vec([1_u64..1_000, 1_u64..1_000], 6)
    ) {
        let all = ["fifo", "priority"].map(|policy| move |chains: &[u64; 2]| {
            Run { policy, chains: *chains, ..FIFO }
        });
        let inputs: Vec<Input> = runs.iter().enumerate()
            .map(|(number, chains)| all[number % 2](chains).input(&number.to_string())).collect();
        let found = text(&Comparison::new(&inputs, &[]).expect("dataflow programs"));
        prop_assert!(!found.contains("Lowest") && found.starts_with("Too few runs"), "{}", found);
    }
}
