//! Measures how often the inference finds the periods and slips of simulated tasks, beside the published
//! algorithm.
//!
//! `bench-accuracy` prints two tables, one of ten series with a period, one of streams with several rates,
//! bursts or modes, and writes them to the documentation. With `--modes` it makes only the second; with
//! `--series FIRST-LAST` it prints counts of other series, which have other seeds; with `--dump FOLDER` it
//! writes the traces of the first one as CSV (earliest and latest bound of each release) with the truth of
//! each, for other implementations.

#[path = "../../crates/extract/tests/extract/common/accuracy.rs"]
mod accuracy;
#[path = "../../crates/extract/tests/extract/common/lime.rs"]
mod lime;
#[allow(dead_code, reason = "the tests use more than this")]
#[path = "../../crates/extract/tests/extract/common/mixed.rs"]
mod mixed;
#[allow(dead_code, reason = "the tests use more than this")]
#[path = "../../crates/extract/tests/extract/common/noise.rs"]
mod noise;
#[path = "../../crates/extract/tests/extract/common/release.rs"]
mod release;
#[path = "../../crates/extract/tests/extract/common/simulated.rs"]
mod simulated;

use accuracy::{Counts, NS_PERIODS, ROWS, judge, judge_published};
use mixed::Mixed;
use punctual_bench::{Error, document};
use punctual_extract::stream::{Circumstances, Options, Stream};
use punctual_model::{Fraction, Separator};
use punctual_test_support::Random;
use simulated::whole;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const HEAD: [&str; 6] =
    ["traces", "number", "period", "period and slips", "goal", "period, LiME's algorithm"];

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            measure()?;
            measure_modes()
        }
        ["--modes"] => measure_modes(),
        ["--series", range] => count_others(range),
        ["--dump", folder] => dump(Path::new(folder)),
        _ => Err("usage: bench-accuracy [--modes | --series FIRST-LAST | --dump FOLDER]".into()),
    }
}

/// Series of the table. One alone has too few traces with nanosecond periods: chance decides about one per
/// cent.
const SERIES: u64 = 10;

fn measure() -> Result<(), Error> {
    let (mut rows, mut total, mut ns) = (Vec::new(), Counts::default(), Counts::default());
    let (ns_rows, ns_goal) = NS_PERIODS;
    for (number, row) in ROWS.iter().enumerate() {
        let counts = count(SERIES * row.traces, |case| {
            let trace = row.trace_of(case / row.traces, case % row.traces);
            let mut counts = judge(&trace);
            counts += judge_published(&trace);
            counts
        });
        let name = row.name.to_owned();
        let mut cells = shown(name, &counts, SERIES * row.target);
        if row.trace(0).period.is_none() {
            // Sporadic streams have no period to find.
            [cells[2], cells[5]] = [String::new(), String::new()];
        }
        rows.push(cells);
        total += counts;
        if ns_rows.contains(&number) {
            ns += counts;
        }
        if number + 1 == ns_rows.end {
            rows.push(shown("these four together".into(), &ns, SERIES * ns_goal));
        }
    }
    let number = total.traces.to_string();
    for (what, found) in [
        ("any: a release breaks the model", total.unsound),
        ("any: whole nanoseconds printed as a fraction", total.fractions),
        ("any: the period printed is wrong, and the true one has less jitter", total.beaten),
    ] {
        let cells = [what, &number, "", &found.to_string(), "0", ""];
        rows.push(cells.map(str::to_owned));
    }
    document::publish("accuracy", "make bench-accuracy", &HEAD, &rows)
}

/// Streams of each kind.
const STREAMS: u64 = 1_000;

/// Seeds of the streams with modes: of no test.
const SEED: u64 = 815_112_801;

/// Simulates a stream by its number.
type Simulate = fn(&mut Random, u64) -> Mixed;

fn measure_modes() -> Result<(), Error> {
    const KINDS: [(&str, u64, Simulate); 5] = [
        ("two or three rates", 950, |random, _| mixed::several_rates(random)),
        ("one rate, then another", 950, |random, _| mixed::change_of_rate(random)),
        ("bursts", 950, |random, _| mixed::bursts(random)),
        ("one rate, with skips and delays", STREAMS, |random, _| mixed::one_rate(random)),
        ("no rate", STREAMS, mixed::no_rate),
    ];
    let rows = (SEED..).zip(KINDS).map(|(seed, (name, least, simulate))| {
        let mut random = Random(seed);
        let (mut right, mut other, mut period, mut published) = (0_u64, 0_u64, 0_u64, 0_u64);
        for number in 0..STREAMS {
            let stream = simulate(&mut random, number);
            let mut sum = Stream::new(&Options::default());
            stream.releases.iter().for_each(|release| sum.release(release, Circumstances::default()));
            let model = sum.to_model(Separator::SUSPENSION);
            let is_named = stream.is_named_by(&model.arrival);
            right += u64::from(is_named);
            other += u64::from(!model.arrival.modes.is_empty() && !is_named);
            period += u64::from(model.nearly_regular().is_some());
            published += u64::from(names_one(&stream));
        }
        let cells = [STREAMS, right, other, period, published].map(|it| it.to_string());
        let [streams, right, other, period, published] = cells;
        // With one rate, the table above compares them.
        let published = if name.starts_with("one rate, with") { String::new() } else { published };
        [name.to_owned(), streams, right, goal(least, STREAMS), other, period, published]
    });
    document::publish("modes", "make bench-accuracy", &MODES_HEAD, &rows.collect::<Vec<_>>())
}

const MODES_HEAD: [&str; 7] = [
    "streams",
    "number",
    "named as they are",
    "goal",
    "named otherwise",
    "one period printed",
    "LiME's algorithm: a period of the stream",
];

/// Whether the one period that the published algorithm finds is one of the stream's.
fn names_one(stream: &Mixed) -> bool {
    let times: Vec<u64> = stream.releases.iter().map(|release| release.window.latest().ns()).collect();
    let found = lime::infer(&times).period as f64;
    stream.modes.iter().flatten().any(|period| (found / *period as f64 - 1.0).abs() < 0.01)
}

/// A row of the table.
fn shown(name: String, counts: &Counts, least: u64) -> [String; 6] {
    let [traces, period, all] = [counts.traces, counts.period, counts.all].map(|count| count.to_string());
    [name, traces, period, all, goal(least, counts.traces), counts.published.to_string()]
}

fn goal(least: u64, all: u64) -> String {
    if least == all { all.to_string() } else { format!("≥ {least}") }
}

/// Counts what is right, and what must not be, in other traces than those of the table.
fn count_others(range: &str) -> Result<(), Error> {
    let (first, last) = range.split_once('-').ok_or("the series are FIRST-LAST")?;
    let (first, last): (u64, u64) = (first.parse()?, last.parse()?);
    let line = |cells: [&str; 7]| println!("| {} |", cells.join(" | "));
    line(["traces", "number", "period", "period and slips", "less jitter", "fractions", "unsound"]);
    line(["---"; 7]);
    let shown = |name: &str, counts: &Counts| {
        let Counts { traces, period, all, beaten, fractions, unsound, .. } = *counts;
        let counts = [traces, period, all, beaten, fractions, unsound].map(|count| count.to_string());
        let [traces, period, all, beaten, fractions, unsound] = counts.each_ref().map(String::as_str);
        line([name, traces, period, all, beaten, fractions, unsound]);
    };
    let mut total = Counts::default();
    for row in ROWS {
        let number = last.saturating_sub(first) + 1;
        let trace = |case: u64| row.trace_of(first + case / row.traces, case % row.traces);
        let counts = count(number * row.traces, |case| judge(&trace(case)));
        shown(row.name, &counts);
        total += counts;
    }
    shown("all", &total);
    Ok(())
}

/// Judges so many traces, on all processors.
fn count(traces: u64, judged: impl Fn(u64) -> Counts + Sync) -> Counts {
    let next = AtomicU64::new(0);
    let work = || {
        let mut counts = Counts::default();
        loop {
            let case = next.fetch_add(1, Ordering::Relaxed);
            if case >= traces {
                return counts;
            }
            counts += judged(case);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, |number| number.get());
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Counts::default();
        running.into_iter().for_each(|worker| all += worker.join().unwrap_or_default());
        all
    })
}

fn dump(folder: &Path) -> Result<(), Error> {
    let mut truth = String::from("file,row,numerator,denominator,skipped,extra,early,jitter\n");
    for (number, row) in ROWS.iter().enumerate() {
        for case in 0..row.traces {
            let trace = row.trace(case);
            let mut csv = String::new();
            for release in trace.releases() {
                // A known arrival replaces its release.
                let at = |bound| release.arrival.unwrap_or(bound);
                let (earliest, latest) = (at(release.window.earliest()), at(release.window.latest()));
                writeln!(csv, "{},{}", earliest.ns(), latest.ns())?;
            }
            let file = format!("{number:02}-{case:04}.csv");
            fs::create_dir_all(folder)?;
            fs::write(folder.join(&file), csv)?;
            let Fraction { numerator, denominator } = trace.period.unwrap_or(whole(0));
            let (skipped, extra, early) = (trace.skipped, trace.extra, trace.early);
            let jitter = trace.true_jitter().map_or(String::new(), |ns| ns.to_string());
            let period = format!("{numerator},{denominator}");
            writeln!(truth, "{file},\"{}\",{period},{skipped},{extra},{early},{jitter}", row.name)?;
        }
    }
    Ok(fs::write(folder.join("truth.csv"), truth)?)
}
