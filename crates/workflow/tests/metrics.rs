//! Metrics over HTTP: scraped as Prometheus does, parsed by the official parser, and by Prometheus itself,
//! where they are installed.

use punctual_model::Duration;
use punctual_test_support::{Running, wait_until};
use punctual_trace::Totals;
use punctual_workflow::metrics::{Endpoint, MOST_TASKS, Metrics, OTHERS};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

const ANY_PORT: &str = "127.0.0.1:0";

fn served() -> (Arc<Metrics>, Endpoint) {
    let metrics = Arc::new(Metrics::new());
    let endpoint = Endpoint::serve(ANY_PORT.parse().expect("an address"), Arc::clone(&metrics));
    (metrics, endpoint.expect("served"))
}

/// Three jobs of one task, one of another with an awkward name.
fn count(metrics: &Metrics) {
    let control = metrics.task("control");
    for ms in [1, 2, 30] {
        control.release(Some(Duration::from_us(7)));
        control.job(Duration::from_ms(ms), Duration::from_us(900));
    }
    metrics.task("a \"b\"\\\n").job(Duration::from_us(1), Duration::from_ns(1));
    metrics.violations("control", "response", 2);
    for culprit in [Some("vision"), Some("vision"), None] {
        metrics.late_job("control", if culprit.is_some() { "preempted" } else { "own" }, culprit);
    }
    metrics.term("control", "response", 0.04, Some(0.03), false);
    metrics.living("control", 2);
    metrics.bound("control", 0.05, Some(0.03));
    metrics.term("control", "separation", 0.01, Some(0.009), true);
    metrics.term("control", "wcet", 0.001, None, false);
    let totals = Totals { lost: 5, untracked: 1, skipped: 2, stolen: Duration::from_ms(1_500) };
    metrics.observation(1_000, &totals, 17);
}

/// The answer to a request: status line and headers, and the body.
fn ask(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

fn scrape(address: SocketAddr) -> String {
    let (head, body) = ask(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    body
}

/// What the official parser of OpenMetrics finds, which accepts nothing that the format does not allow:
/// samples by name and labels. `None` where it is not installed.
fn parsed(text: &str) -> Option<BTreeMap<String, f64>> {
    const SCRIPT: &str = r#"
import sys, json
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
found = {}
for family in parse(sys.stdin.read()):
    for sample in family.samples:
        key = sample.name + json.dumps(sample.labels, sort_keys=True)
        found[key] = float(sample.value)
json.dump(found, sys.stdout)
"#;
    let has_it = |python: &&str| {
        let mut probe = Command::new(python);
        probe.args(["-c", "import prometheus_client.openmetrics.parser"]).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    // The distribution's has what its packages install, even where another comes first.
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_it) else {
        eprintln!("SKIPPED: no python3-prometheus-client here");
        return None;
    };
    let mut parser = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python");
    let mut input = parser.stdin.take().expect("its input");
    input.write_all(text.as_bytes()).expect("sent");
    drop(input);
    let output = parser.wait_with_output().expect("its output");
    assert!(output.status.success(), "not OpenMetrics:\n{text}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn what_was_counted_is_scraped() {
    let (metrics, endpoint) = served();
    count(&metrics);
    let Some(found) = parsed(&scrape(endpoint.address())) else { return };
    for (sample, expected) in [
        (r#"punctual_jobs_total{"task": "control"}"#, 3.0),
        (r#"punctual_jobs_total{"task": "a \"b\"\\\n"}"#, 1.0),
        (r#"punctual_releases_total{"task": "control"}"#, 3.0),
        (r#"punctual_response_seconds_count{"task": "control"}"#, 3.0),
        (r#"punctual_response_seconds_sum{"task": "control"}"#, 0.033),
        (r#"punctual_response_seconds_bucket{"le": "0.002", "task": "control"}"#, 2.0),
        (r#"punctual_response_seconds_bucket{"le": "+Inf", "task": "control"}"#, 3.0),
        (r#"punctual_cost_seconds_bucket{"le": "0.001", "task": "control"}"#, 3.0),
        (r#"punctual_late_jobs_total{"cause": "preempted", "culprit": "vision", "task": "control"}"#, 2.0),
        (r#"punctual_late_jobs_total{"cause": "own", "culprit": "", "task": "control"}"#, 1.0),
        (r#"punctual_lateness_seconds_count{"task": "control"}"#, 3.0),
        (r#"punctual_violations_total{"task": "control", "term": "response"}"#, 2.0),
        (r#"punctual_headroom_ratio{"task": "control", "term": "response"}"#, 0.25),
        (r#"punctual_headroom_ratio{"task": "control", "term": "separation"}"#, -0.1),
        (r#"punctual_agreed{"task": "control", "term": "wcet"}"#, 0.001),
        ("punctual_records_total{}", 1_000.0),
        ("punctual_lost_records_total{}", 5.0),
        ("punctual_skipped_events_total{}", 2.0),
        ("punctual_stolen_seconds_total{}", 1.5),
        ("punctual_threads{}", 17.0),
        ("punctual_untracked_threads{}", 1.0),
    ] {
        let value = found.get(sample).unwrap_or_else(|| panic!("no {sample} in {:?}", found.keys()));
        assert!((value - expected).abs() < 1e-9, "{sample} is {value}, not {expected}");
    }
    assert!(!found.contains_key(r#"punctual_headroom_ratio{"task": "control", "term": "wcet"}"#), "unknown");
}

#[test]
fn threads_by_the_thousand_share_a_label() {
    let metrics = Metrics::new();
    for number in 0..5_000 {
        metrics.task(&format!("worker-{number}")).job(Duration::from_us(1), Duration::from_us(1));
    }
    let text = metrics.text();
    let tasks = text.lines().filter(|line| line.starts_with("punctual_jobs_total{")).count();
    assert_eq!(tasks, MOST_TASKS + 1);
    let others = 5_000 - MOST_TASKS;
    assert!(
        text.contains(&format!("punctual_jobs_total{{task=\"{OTHERS}\"}} {others}\n")),
        "{others} others"
    );
    assert!(text.contains(&format!("punctual_unlabelled_tasks_total {others}\n")), "{others} others");
    assert!(text.len() < 3 << 20, "{} bytes", text.len());
    // A task that has its label keeps it.
    metrics.task("worker-0").job(Duration::from_us(1), Duration::from_us(1));
    assert!(metrics.text().contains("punctual_jobs_total{task=\"worker-0\"} 2\n"));
    if let Some(found) = parsed(&text) {
        assert!(found.len() > 3 * 22 * MOST_TASKS);
    }
}

#[test]
fn stalled_and_vanished_scrapers_disturb_nobody() {
    let (metrics, endpoint) = served();
    (0..MOST_TASKS - 2).for_each(|number| {
        metrics.task(&format!("task-{number}"));
    });
    let address = endpoint.address();
    let connect = || TcpStream::connect(address).expect("connected");
    // Says nothing; stops in the middle; asks and never reads, and the answer does not fit into buffers.
    let silent = connect();
    let mut halting = connect();
    halting.write_all(b"GET /metr").expect("sent");
    let mut deaf = connect();
    deaf.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
    let mut vanished = connect();
    vanished.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
    drop(vanished);
    count(&metrics);
    assert!(scrape(address).contains("punctual_jobs_total{task=\"control\"} 3"));
    // More than it serves at a time: closed, and served again once there is room.
    let crowd: Vec<TcpStream> = (0..50).map(|_| connect()).collect();
    count(&metrics);
    drop((silent, halting, deaf, crowd));
    let again = || -> Option<String> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer).filter(|answer| answer.contains("punctual_jobs_total{task=\"control\"} 6"))
    };
    wait_until("an answer", || again().is_some()).map_err(|failure| failure.message).expect("served again");
}

#[test]
fn other_requests_are_answered() {
    let (_, endpoint) = served();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("hello\r\n\r\n", "400"),
        ("GET /metrics?name=x HTTP/1.0\r\n\r\n", "200"),
    ] {
        let (head, _) = ask(endpoint.address(), request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {head}");
    }
    let (head, body) = ask(endpoint.address(), "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && body.is_empty(), "{head}");
    // Exactly as much as is read of a head that does not end.
    let long = format!("GET /{}", "x".repeat((8 << 10) - 5));
    let (head, _) = ask(endpoint.address(), &long);
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
}

#[test]
fn an_address_that_cannot_be_used_is_refused() {
    let taken = TcpListener::bind(ANY_PORT).expect("a port");
    let address = taken.local_addr().expect("its address");
    let refused = |address: SocketAddr| {
        let refused = Endpoint::serve(address, Arc::default()).err().expect("refused");
        format!("{refused:#}")
    };
    let expected = format!(
        "cannot serve metrics at {address}: address already in use; something else listens there; choose \
         another port"
    );
    assert_eq!(refused(address), expected);
    // An address of documentation, which no machine has.
    let message = refused("192.0.2.1:9464".parse().expect("an address"));
    let advice = "name an address of this machine and a port, such as 127.0.0.1:9464";
    assert!(message.ends_with(advice), "{message}");
}

#[test]
fn a_closed_endpoint_frees_its_port() {
    let (metrics, endpoint) = served();
    let address = endpoint.address();
    let stalled = TcpStream::connect(address).expect("connected");
    drop(endpoint);
    // Nobody waited for who stalls.
    Endpoint::serve(address, metrics).expect("free again");
    drop(stalled);
}

#[test]
fn culprits_without_number_share_a_label() {
    let metrics = Metrics::new();
    (0..1_000).for_each(|number| metrics.late_job("control", "preempted", Some(&format!("worker {number}"))));
    let text = metrics.text();
    let of_late_jobs = text.lines().filter(|line| line.starts_with("punctual_late_jobs_total{"));
    assert_eq!(of_late_jobs.count(), 65);
    let others = "punctual_late_jobs_total{task=\"control\",cause=\"preempted\",culprit=\"(others)\"} 936";
    assert!(text.lines().any(|line| line == others), "{text}");
}

/// What the dashboard and the page name is there.
#[test]
fn documented_metrics_exist() {
    let metrics = Metrics::new();
    count(&metrics);
    let text = metrics.text();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    for file in ["docs/metrics.md", "dist/grafana-dashboard.json"] {
        let document = std::fs::read_to_string(format!("{folder}{file}")).expect(file);
        let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
        let names = document.split(|c| !is_part(c)).filter(|name| name.starts_with("punctual_"));
        let mut number = 0;
        for name in names {
            let is_there = text.lines().any(|line| {
                let rest = line.strip_prefix(name).unwrap_or(".");
                let rest = rest.strip_prefix("_count").unwrap_or(rest);
                rest.starts_with(['{', ' '])
            });
            assert!(is_there, "{file} names {name}, which is not there:\n{text}");
            number += 1;
        }
        assert!(number > 10, "{file}");
    }
    let dashboard = std::fs::read_to_string(format!("{folder}dist/grafana-dashboard.json")).expect("there");
    serde_json::from_str::<serde_json::Value>(&dashboard).expect("JSON");
}

/// A program of Prometheus: installed, or as `scripts/setup` unpacks it beside what is built.
fn tool(name: &str) -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let works = |path: &PathBuf| {
        Command::new(path).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    [name.into(), target.join("tools").join(name)].into_iter().find(works)
}

/// Prometheus' own linter reads what readers of plain text get.
#[test]
fn plain_text_is_served_to_those_who_ask() {
    let (metrics, endpoint) = served();
    count(&metrics);
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\naccept: text/plain\r\n\r\n";
    let (head, body) = ask(endpoint.address(), request);
    assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
    assert!(!body.contains("# EOF") && !body.contains("# UNIT"), "{body}");
    assert!(body.contains("# TYPE punctual_jobs_total counter\n"), "{body}");
    let Some(promtool) = tool("promtool") else {
        eprintln!("SKIPPED: no promtool here");
        return;
    };
    let mut check = Command::new(promtool);
    check.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check = check.spawn().expect("promtool");
    check.stdin.take().expect("its input").write_all(body.as_bytes()).expect("sent");
    let output = check.wait_with_output().expect("its output");
    assert!(output.status.success(), "{output:?}\n{body}");
}

/// A server of Prometheus scrapes, and answers what it has got.
#[test]
fn prometheus_scrapes() {
    let Some(prometheus) = tool("prometheus") else {
        eprintln!("SKIPPED: no prometheus here");
        return;
    };
    let (metrics, endpoint) = served();
    count(&metrics);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("prometheus.yml");
    let target = endpoint.address();
    let config = format!(
        "scrape_configs:\n- job_name: punctual\n  scrape_interval: 1s\n  static_configs:\n  \
         - targets: ['{target}']\n"
    );
    std::fs::write(&file, config).expect("written");
    // Its port must be known before it starts.
    let port = TcpListener::bind(ANY_PORT).and_then(|free| free.local_addr()).expect("a free port");
    let mut command = Command::new(prometheus);
    command
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address={port}"));
    let server = Running::start(command).map_err(|failure| failure.message).expect("prometheus");
    let query = |query: &str| -> Option<serde_json::Value> {
        let mut stream = TcpStream::connect(port).ok()?;
        write!(stream, "GET /api/v1/query?query={query} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    };
    let value = |text: &str| Some(query(text)?["data"]["result"][0]["value"][1].as_str()?.to_owned());
    let scraped = wait_until("a scrape", || {
        value("punctual_jobs_total%7Btask%3D%22control%22%7D").as_deref() == Some("3")
    });
    scraped.map_err(|failure| failure.message).expect("scraped");
    let quantile = "histogram_quantile(0.5,punctual_response_seconds_bucket%7Btask%3D%22control%22%7D)";
    assert_eq!(value(quantile).as_deref(), Some("0.0015"));
    drop(server);
}
