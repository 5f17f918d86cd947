//! What explaining late jobs costs: observing the switches and wake-ups of all threads, beside other
//! observers in the same run, and explaining a thousand late jobs.

use punctual_bench::measure::{Programs, Tool, built, end_of, target, workload};
use punctual_bench::{Error, document};
use punctual_trace::ctf::Reader;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Rounds of each measurement; medians are printed.
const ROUNDS: usize = 5;
/// Until observers have loaded what they need.
const LOADING: Duration = Duration::from_secs(3);

const OBSERVERS: usize = 5;

/// What ftrace sees of each switch and wake-up.
const EVENTS: [&str; 2] = ["sched:sched_switch", "sched:sched_waking"];
/// How long threads are off their processors, summed up in the kernel.
const OFF_CPU: &str = "tracepoint:sched:sched_switch { \
    if (args->prev_state != 0) { @since[args->prev_pid] = nsecs; } \
    if (@since[args->next_pid] != 0) { \
        @off[args->next_comm] = sum(nsecs - @since[args->next_pid]); delete(@since[args->next_pid]); } }";

fn main() -> std::process::ExitCode {
    punctual_bench::ended(env!("CARGO_BIN_NAME"), run())
}

fn run() -> Result<(), Error> {
    eprintln!("latency of a 1 kHz thread under {} observers, {ROUNDS} × 5 s each …", Observer::ALL.len());
    let mut rows = latency()?;
    eprintln!("two threads that wake each other as fast as they can, {ROUNDS} × 5 s each …");
    rows.extend(throughput()?);
    let head = Observer::ALL.map(Observer::name);
    let head = [&["what"], &head[..]].concat();
    let head: [&str; 6] = head.try_into().map_err(|_| "a column for each observer")?;
    document::publish("why-beside", "make bench-why", &head, &rows)?;
    eprintln!("time in the kernel's programs, {ROUNDS} × 5 s …");
    let mut rows = in_kernel()?;
    eprintln!("late jobs while they are watched …");
    rows.extend(live()?);
    eprintln!("a thousand late jobs: recorded for a minute, explained …");
    rows.extend(explanation()?);
    document::publish("why", "make bench-why", &["what", "measured", "target"], &rows)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Observer {
    Nobody,
    Punctual,
    Ftrace,
    Perf,
    Bpftrace,
}

impl Observer {
    const ALL: [Observer; OBSERVERS] =
        [Observer::Nobody, Observer::Punctual, Observer::Ftrace, Observer::Perf, Observer::Bpftrace];

    fn name(self) -> &'static str {
        match self {
            Observer::Nobody => "unobserved",
            Observer::Punctual => "punctual",
            Observer::Ftrace => "ftrace",
            Observer::Perf => "perf sched",
            Observer::Bpftrace => "bpftrace",
        }
    }

    /// Has it observe what is done meanwhile; its files are in the folder.
    fn during<T>(self, folder: &Path, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let mut command = match self {
            Observer::Nobody => return act(),
            Observer::Ftrace => {
                let ring = Ftrace::start()?;
                std::thread::sleep(LOADING);
                let outcome = act();
                drop(ring);
                return outcome;
            }
            Observer::Punctual => {
                let mut command = Command::new(built("punctual"));
                command.args(["why", "-q", "--all-rt", "--longer-than", "1h"]);
                command
            }
            Observer::Perf => {
                let mut command = Command::new("perf");
                command.args(["sched", "record", "-q", "-o"]).arg(folder.join("perf.data"));
                command
            }
            Observer::Bpftrace => {
                let mut command = Command::new("bpftrace");
                command.args(["-e", OFF_CPU]);
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut tool = Tool::start(&mut command)?;
        std::thread::sleep(LOADING);
        if !tool.is_running()? {
            return Err(format!("{} has ended: is it installed?", self.name()).into());
        }
        let outcome = act();
        tool.finish()?;
        outcome
    }
}

/// A ring of ftrace's own, which nobody reads.
struct Ftrace;

const INSTANCE: &str = "/sys/kernel/tracing/instances/punctual-bench";

impl Ftrace {
    fn start() -> Result<Ftrace, Error> {
        fs::create_dir_all(INSTANCE)?;
        let ring = Ftrace;
        for event in EVENTS {
            fs::write(format!("{INSTANCE}/events/{}/enable", event.replace(':', "/")), "1")?;
        }
        Ok(ring)
    }
}

impl Drop for Ftrace {
    fn drop(&mut self) {
        let _ = fs::remove_dir(INSTANCE);
    }
}

/// Figures of a workload under each observer, the rounds of all in turn.
fn under_each(workload: impl Fn() -> Result<Value, Error>) -> Result<[Vec<Value>; OBSERVERS], Error> {
    let mut printed = [const { Vec::new() }; OBSERVERS];
    for _ in 0..ROUNDS {
        for (observer, printed) in Observer::ALL.into_iter().zip(&mut printed) {
            let folder = TempDir::new()?;
            printed.push(observer.during(folder.path(), &workload)?);
        }
    }
    Ok(printed)
}

/// Wake-up latency as the thread itself measures it.
fn latency() -> Result<Vec<[String; 6]>, Error> {
    let printed = under_each(|| workload(&["latency", "--for", "5"]))?;
    let figures = ["mean_ns", "p50_ns", "p99_ns"].map(|field| {
        let middle = printed
            .each_ref()
            .map(|printed| median(printed.iter().filter_map(|printed| printed[field].as_f64()).collect()));
        let name = field.trim_end_matches("_ns");
        let title = format!("wake-up latency of a 1 kHz thread, {name}");
        beside(title, middle, |figure| format!("{:.1} µs", figure / 1e3))
    });
    Ok(figures.to_vec())
}

/// Two threads wake each other on one processor as fast as they can.
fn pingpong() -> Result<Value, Error> {
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "0"]).arg(target().join("workloads/pingpong")).args(["--for", "5"]);
    Ok(serde_json::from_slice(&pinned.stderr(Stdio::inherit()).output()?.stdout)?)
}

/// How often two threads wake each other.
fn throughput() -> Result<Vec<[String; 6]>, Error> {
    let printed = under_each(pingpong)?;
    let rate = |printed: &Value| {
        let number = |field: &str| printed[field].as_f64().unwrap_or_default();
        2e9 * number("rounds") / (number("ended_ns") - number("began_ns"))
    };
    let rates = printed.map(|printed| median(printed.iter().map(rate).collect()));
    let title = "wake-ups per second, two threads on one processor".to_owned();
    Ok(vec![beside(title, rates, |rate| format!("{rate:.0}"))])
}

/// A row of figures, each but the first beside that.
fn beside(title: String, figures: [f64; OBSERVERS], text: impl Fn(f64) -> String) -> [String; 6] {
    let alone = figures[0];
    let mut row = [const { String::new() }; 6];
    row[0] = title;
    for (place, figure) in figures.into_iter().enumerate() {
        row[place + 1] = match place {
            0 => text(figure),
            _ => format!("{} ({:.2})", text(figure), figure / alone),
        };
    }
    row
}

/// Nanoseconds in the programs for each switch and for each wake-up, with warm caches.
fn in_kernel() -> Result<Vec<[String; 3]>, Error> {
    let statistics = Programs::count()?;
    let (mut switches, mut wakeups) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let folder = TempDir::new()?;
        Observer::Punctual.during(folder.path(), || {
            let spent = || Ok::<_, Error>((statistics.per_switch()?, statistics.per_wakeup()?));
            pingpong()?;
            let (switch, wakeup) = spent()?;
            switches.push(switch);
            wakeups.push(wakeup);
            Ok(())
        })?;
    }
    let (switch, wakeup) = (median(switches), median(wakeups));
    let row =
        |what: &str, time: f64, target: &str| [what.to_owned(), format!("{time:.0} ns"), target.to_owned()];
    Ok(vec![
        row("BPF programs, per switch", switch, ""),
        row("BPF programs, per wake-up", wakeup, ""),
        row("BPF programs, per switch and wake-up", switch + wakeup, "target ≤ 500 ns"),
    ])
}

/// Explains late jobs of a loop that is late every 50 ms while it runs, beside a program that switches
/// between two threads 100,000 times a second.
fn live() -> Result<Vec<[String; 3]>, Error> {
    let script = "stress-ng --quiet --switch 1 --switch-freq 50000 --taskset 1 --timeout 60 & sleep 1
        \"$1\" why -q --json --thread control -- \"$2\" 2000; kill $!; wait";
    let mut watched = Command::new("sh");
    watched.args(["-c", script, "sh"]).arg(built("punctual")).arg(target().join("workloads/late"));
    let (before, began) = (context_switches()?, Instant::now());
    let output = watched.stderr(Stdio::null()).output()?;
    let rate = (context_switches()? - before) as f64 / began.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    // The program prints its log first or last.
    let json = text.find('{').zip(text.rfind('}')).map(|(from, until)| &text[from..=until]);
    let (late, unknown) = counts(&serde_json::from_str(json.ok_or("nothing was explained")?)?);
    let row = |what: &str, figure: String, target: &str| [what.to_owned(), figure, target.to_owned()];
    Ok(vec![
        row("context switches per second of the machine, while watched", format!("{rate:.0}"), ""),
        row("late jobs explained meanwhile", late.to_string(), ""),
        row("of these with an unknown cause", unknown.to_string(), "target ≤ 1 %"),
    ])
}

/// So far, of all processors.
fn context_switches() -> Result<u64, Error> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().find_map(|line| line.strip_prefix("ctxt "));
    Ok(line.ok_or("the kernel does not count context switches")?.parse()?)
}

/// Late jobs, and those with an unknown cause.
fn counts(explained: &Value) -> (u64, u64) {
    let tasks = || explained["tasks"].as_array().into_iter().flatten();
    let causes = tasks().flat_map(|task| task["causes"].as_array().into_iter().flatten());
    let unknown = causes.filter(|cause| cause["kind"] == "unknown").filter_map(|it| it["jobs"].as_u64());
    (tasks().filter_map(|task| task["late"].as_u64()).sum(), unknown.sum())
}

/// Explains late jobs of a loop that is late every 50 ms, in a recording with the switches of others.
fn explanation() -> Result<Vec<[String; 3]>, Error> {
    let folder = TempDir::new()?;
    let recording = folder.path().join("recording");
    let script = "timeout 60 taskset -c 1 perf bench sched pipe -l 1000000000 >/dev/null &
        \"$1\" 4400 \"$2\" >/dev/null; kill $!; wait";
    let mut record = Command::new(built("punctual"));
    record.args(["record", "-q", "--detail", "switches", "--all-threads", "-o"]).arg(&recording);
    record.args(["--", "sh", "-c", script, "sh"]).arg(target().join("workloads/late"));
    record.arg(folder.path().join("file")).stdout(Stdio::null());
    if !record.status()?.success() {
        return Err("the recording failed".into());
    }
    let reader = Reader::open(&recording)?;
    let mut events = 0_u64;
    reader.read(0..reader.stretches(), &mut |_| events += 1)?;
    let lost = reader.totals().lost;
    let explained = folder.path().join("why.json");
    let began = Instant::now();
    let mut why = Command::new(built("punctual"));
    why.args(["why", "-q", "--json", "--thread", "control"]).arg(&recording);
    let child = why.stdout(fs::File::create(&explained)?).spawn()?;
    let (is_right, kib) = end_of(child)?;
    let took = began.elapsed();
    if !is_right {
        return Err("the explanation failed".into());
    }
    let explained: Value = serde_json::from_str(&fs::read_to_string(&explained)?)?;
    let (late, unknown) = counts(&explained);
    let per_10_million = took.as_secs_f64() * 1e7 / events as f64;
    let row = |what: &str, figure: String, target: &str| [what.to_owned(), figure, target.to_owned()];
    Ok(vec![
        row("events of the recording", format!("{:.1} million, {lost} lost", events as f64 / 1e6), ""),
        row("late jobs explained", format!("{late}, {unknown} with an unknown cause"), ""),
        row("time", format!("{:.1} s", took.as_secs_f64()), ""),
        row("time per 10 million events", format!("{per_10_million:.1} s"), "target ≤ 10 s"),
        row("most resident memory", format!("{:.0} MiB", kib as f64 / 1024.0), "target ≤ 128 MiB"),
    ])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
