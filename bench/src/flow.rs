//! Dataflow programs: what an activation costs, beside oneTBB; how long a sleeping executor takes to wake up,
//! beside a bare futex; what tracing adds, from within and from without; and how fast a trace is analysed.

use punctual_bench::{Error, document, measure};
use punctual_trace::flow::{About, Connection, Kind, Writer};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Events of the trace that is analysed.
const EVENTS: u64 = 10_000_000;
/// Activations with probes in them.
const ACTIVATIONS: &str = "100000";
/// Of the times that rounds took, the least is what the machine did not disturb.
const ROUNDS: usize = 5;
/// Rings of tasks that are also measured on oneTBB's flow graph.
const BESIDE_TBB: [(&str, &str); 4] = [
    ("one thread, one token in a ring", "one_thread_one_token"),
    ("two threads, one token", "two_threads_one_token"),
    ("two threads, two tokens", "two_threads_two_tokens"),
    ("two threads, four tokens", "two_threads_four_tokens"),
];
/// Where the executor sleeps that is woken.
const SLEEPING: [(&str, &str); 3] = [
    ("on another processor", "other_processor"),
    ("there with work of low priority", "other_processor_with_work"),
    ("on the pusher's own", "own_processor"),
];
/// A packet of the tracer.
const PACKET_BYTES: usize = 4096;

fn output(command: &mut Command) -> Result<String, Error> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// What a line `name … value …` says; columns are counted from the name.
fn figure(text: &str, name: &str, column: usize) -> Result<f64, Error> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .ok_or_else(|| format!("no {name} in: {text}"))?;
    Ok(line
        .split_whitespace()
        .nth(column)
        .ok_or_else(|| format!("no figure for {name} in: {text}"))?
        .parse()?)
}

/// Nanoseconds for an activation of a program without tracing, and with probes in it.
fn probes(folder: &Path) -> Result<(f64, f64), Error> {
    let program = measure::target().join("workloads/tasking");
    let ns = |text: &str| text.trim().trim_end_matches(" ns").parse::<f64>();
    let (mut without, mut with) = (f64::MAX, f64::MAX);
    for round in 0..ROUNDS {
        without = without.min(ns(&output(Command::new(&program).args([ACTIVATIONS, "alone"]))?)?);
        let mut record = Command::new(measure::built("punctual"));
        record.args(["record", "-q", "--flow-probes", "dist/flow-probes/tasking-framework-1.2.toml", "-o"]);
        record
            .arg(folder.join(format!("probed-{round}")))
            .arg("--")
            .arg(&program)
            .args([ACTIVATIONS, "alone"]);
        with = with.min(ns(&output(&mut record)?)?);
    }
    Ok((without, with))
}

/// A trace of two cameras, two stages of each, and a task that takes both, on two executors.
fn write_trace(folder: &Path) -> Result<(), Error> {
    let mut about = About { program: Some("bench".into()), executors: Some(2), ..About::default() };
    for (number, name) in ["cam1", "cam2", "craT", "feaT", "navi"].into_iter().enumerate() {
        about.tasks.insert(number as u16, name.into());
        about.channels.insert(number as u16, format!("to_{name}"));
    }
    about.channels.insert(5, "features".into());
    let to = |channel, task| Connection { channel, task }.into();
    about.inputs = vec![to(0, 0), to(1, 1), to(2, 2), to(3, 3), to(4, 4), to(5, 4)];
    let mut writer = Writer::create(folder, &about, 2, PACKET_BYTES)?;
    // 10 executions of 4 events less 1 push that each camera's last stage makes for both: 18 events a round,
    // as counted below.
    let mut written = 0;
    let mut at = [1_000u64, 1_000];
    for round in 0u64.. {
        if written >= EVENTS {
            break;
        }
        let mut event = |producer: usize, kind, object, number| {
            at[producer] += 700;
            written += 1;
            writer.event(producer, at[producer], kind, object, number)
        };
        for (producer, camera, stage, channel) in [(0, 0u16, 2u16, 4u16), (1, 1, 3, 5)] {
            event(producer, Kind::Push, camera, round)?;
            event(producer, Kind::Activation, camera, round)?;
            event(producer, Kind::Start, camera, round)?;
            event(producer, Kind::Push, stage, round)?;
            event(producer, Kind::Activation, stage, round)?;
            event(producer, Kind::Stop, camera, round)?;
            event(producer, Kind::Start, stage, round)?;
            event(producer, Kind::Push, channel, round)?;
            if stage == 3 {
                event(producer, Kind::Activation, 4, round)?;
            }
            event(producer, Kind::Stop, stage, round)?;
        }
        event(1, Kind::Start, 4, round)?;
        event(1, Kind::Stop, 4, round)?;
        at = [at[0].max(at[1]); 2];
    }
    writer.finish()?;
    Ok(())
}

/// Seconds for the analysis, and the most memory that it had, in MiB.
fn analysis(folder: &Path) -> Result<(f64, f64), Error> {
    let trace = folder.join("long");
    write_trace(&trace)?;
    let (mut least, mut memory) = (f64::MAX, 0);
    for _ in 0..3 {
        let mut chains = Command::new("taskset");
        chains.args(["-c", "0"]).arg(measure::built("punctual")).args(["chains", "--json"]).arg(&trace);
        let begun = Instant::now();
        let child = chains.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let (success, kib) = measure::end_of(child)?;
        if !success {
            return Err("punctual chains failed on its trace".into());
        }
        least = least.min(begun.elapsed().as_secs_f64());
        memory = memory.max(kib);
    }
    Ok((least, memory as f64 / 1024.0))
}

fn main() -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("punctual-bench-flow-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let built = measure::target().join("flow");
    let find = |name: &str| -> Result<_, Error> {
        let found = ["tests", "bench", "trace/bench", "trace", "."]
            .iter()
            .map(|place| built.join(place).join(name))
            .find(|path| path.is_file());
        Ok(found.ok_or_else(|| format!("{name} is not built; make bench-flow builds it"))?)
    };
    let event = output(Command::new(find("bench-trace-event")?).arg(folder.join("event")))?;
    let activation = output(Command::new(find("flow-bench-activation")?).arg("--trace").arg(&folder))?;
    let wakeup = output(&mut Command::new(find("flow-bench-wakeup")?))?;
    let beside = output(&mut Command::new(find("flow-bench-tbb")?))?;
    let (without, with) = probes(&folder)?;
    let (seconds, mib) = analysis(&folder)?;
    std::fs::remove_dir_all(&folder)?;

    let mut rows = Vec::new();
    let mut row =
        |what: &str, figure: String, goal: &str| rows.push([what.to_owned(), figure, goal.to_owned()]);
    let cost = |name: &str| figure(&activation, name, 0);
    row(
        "an activation (push to execute, empty task), one executor",
        format!("{:.0} ns", cost("activation_one_executor")?),
        "110 ns",
    );
    for (tokens, goal) in [("one token", "–"), ("two tokens", "200 ns"), ("four tokens", "200 ns")] {
        let ns = cost(&format!("activation_two_executors_{}", tokens.replace(' ', "_")))?;
        row(&format!("the same, two executors, {tokens} in a ring"), format!("{ns:.0} ns"), goal);
    }
    for (what, name) in BESIDE_TBB {
        let [ours, tbb] = ["ours", "tbb"].map(|whose| figure(&beside, &format!("{whose}_{name} "), 0));
        let (ours, tbb) = (ours?, tbb?);
        let ratio = format!("{ours:.0} ns, {tbb:.0} ns: {:.2} times", ours / tbb);
        row(&format!("ours, beside oneTBB's flow graph: {what}"), ratio, "1 time");
    }
    for (place, name) in SLEEPING {
        let [ours, floor] = ["wakeup", "floor"].map(|whose| figure(&wakeup, &format!("{whose}_{name} "), 0));
        let (ours, floor) = (ours?, floor?);
        row(
            &format!("push to execute, sleeping executor {place}; a bare futex wake-up"),
            format!("{:.1} µs, {:.1} µs: {:.2} times", ours / 1e3, floor / 1e3, ours / floor),
            "1.3 times",
        );
    }
    row(
        "a cache line, from one processor to the other",
        format!("{:.0} ns", cost("cache_line_one_way")?),
        "–",
    );
    row("the clock alone", format!("{:.1} ns", figure(&event, "clock_gettime(CLOCK_MONOTONIC)", 0)?), "–");
    row(
        "an event, of the calling thread",
        format!("{:.1} ns", figure(&event, "event, of the calling thread", 0)?),
        "40 ns",
    );
    for (us, goal) in [(1, "6 %"), (10, "1 %")] {
        row(
            &format!("what tracing adds to a task of {us} µs"),
            format!("{:.1} %", cost(&format!("tracing_added_to_{us}_us_task"))?),
            goal,
        );
    }
    row(
        "probes (uprobes), all four events of an activation",
        format!("{:.1} µs", (with - without) / 1e3),
        "4 µs",
    );
    row("analysis of 10 million events on one core", format!("{seconds:.1} s, {mib:.0} MiB"), "10 s");
    document::publish("flow", "make bench-flow", &["what", "figure", "goal: at most"], &rows)
}
