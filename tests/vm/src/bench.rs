//! What an observed event costs, in instructions: runs `guest/measure.sh` with `--icount` and puts its
//! figures into `docs/benchmarks.md`. Each kernel is measured until two runs in a row agree in every byte; if
//! none do, nothing is published. The kinds of events are described in `tests/workloads/instructions.c`.

use crate::error::{Error, Result, cannot};
use crate::machine::Machine;
use crate::{matrix, programs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::time::Duration;

const DOCUMENT: &str = "docs/benchmarks.md";
const MARKS: (&str, &str) = ("<!-- vm-bench -->\n", "<!-- /vm-bench -->\n");

/// The names that `measure.sh` has for the first and for the last measurement.
const WITHOUT: &str = "without";
const AGAIN: &str = "without, again";

/// Measures, prints, publishes.
pub fn run(kernels: &[String], batches: u32, memory_mib: u64, limit: Duration) -> Result {
    let mut text = format!(
        "Measured by `make vm-bench` in {}, each kernel until two runs in a row had the same bytes of \
            output.\n",
        qemu()
    );
    for name in kernels {
        let kernel = matrix::get(name).map_err(|missing| Error(format!("{name}: {}", missing.reason)))?;
        let mut root = programs::root_to_measure(kernel.arch)?;
        let machine = Machine {
            kernel: &kernel,
            processors: 1,
            memory_mib,
            counting: true,
            turn_us: None,
            limit,
            append: "",
        };
        let mut outputs: Vec<(String, String)> = Vec::new();
        // Where the host is very busy, QEMU has been seen to serve an interrupt an instruction later.
        for round in ["once", "again", "a third time", "a last time"] {
            if outputs.len() > 1 && outputs[outputs.len() - 1] == outputs[outputs.len() - 2] {
                break;
            }
            eprintln!("{name}: measuring {round} …");
            let job = ["sh".into(), "/lab/measure.sh".into(), batches.to_string()];
            let folder = crate::folder(&format!("bench-{}-{}", name.replace('/', "_"), outputs.len()))?;
            let mut output = Vec::new();
            let ended = machine.run(&mut root, &job, &folder, &mut |_, bytes| {
                output.extend_from_slice(bytes);
                Ok(())
            })?;
            let output = String::from_utf8_lossy(&output).into_owned();
            let faults = ended.faults();
            if ended.code() != 0 || !faults.is_empty() {
                let log = folder.join("kernel.log");
                return Err(Error(format!(
                    "{name}: {}\n{output}the kernel's log is in {}",
                    faults.join("\n"),
                    log.display()
                )));
            }
            let _ = fs::remove_dir_all(&folder);
            outputs.push((ended.release.unwrap_or_default(), output));
        }
        let [.., before, last] = outputs.as_slice() else {
            return Err(Error(format!("{name}: nothing was measured")));
        };
        if before != last {
            return Err(Error(format!(
                "{name}: the figures differ from run to run:\n{}\n{}",
                before.1, last.1
            )));
        }
        let (release, output) = last;
        let measured = Measured::parse(output).map_err(|why| Error(format!("{name}: {why} in\n{output}")))?;
        let _ = write!(text, "\nLinux {release}{}:\n\n{}", measured.tools(), measured.table());
    }
    println!("{text}");
    publish(&text, MARKS)
}

pub fn qemu() -> String {
    let text = Command::new("qemu-system-x86_64")
        .arg("--version")
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned();
    let version = text.split(' ').nth(3).unwrap_or("?").to_owned();
    format!("QEMU {version}")
}

/// Puts the tables between their marks.
pub fn publish(tables: &str, (open, close): (&str, &str)) -> Result {
    let path = programs::repository().join(DOCUMENT);
    let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, error))?;
    let marks = || Error(format!("{} lacks the marks {} and {}", path.display(), open.trim(), close.trim()));
    let (before, rest) = text.split_once(open).ok_or_else(marks)?;
    let (_, after) = rest.split_once(close).ok_or_else(marks)?;
    fs::write(&path, format!("{before}{open}{tables}{close}{after}"))
        .map_err(|error| cannot("write", &path, error))
}

/// What one run of `measure.sh` printed.
struct Measured {
    observers: Vec<Observer>,
    /// Programs that were not there.
    missing: Vec<String>,
    /// Versions of programs of others.
    versions: Vec<String>,
}

/// An observer, or none.
struct Observer {
    name: String,
    observed: Figures,
    /// Of threads that are not observed, while another process is.
    elsewhere: Figures,
}

/// What one run of the workload printed.
#[derive(Default)]
struct Figures {
    /// Nanoseconds, which are instructions, per event; by kind.
    events: BTreeMap<String, f64>,
    /// Processor time of the observer itself, per job.
    own: f64,
}

impl Figures {
    fn cost(&self, kind: &str) -> f64 {
        self.events.get(kind).copied().unwrap_or(f64::NAN)
    }

    fn wake_up(&self) -> f64 {
        self.cost("wake") - self.cost("write")
    }

    fn switch(&self) -> f64 {
        self.cost("switch") - self.cost("yield")
    }

    fn is_whole(&self) -> bool {
        !OBSERVED.iter().any(|row| (row.figure)(self).is_nan())
    }
}

impl Observer {
    fn is_somebody(&self) -> bool {
        self.name != WITHOUT && self.name != AGAIN
    }

    /// A tracer that stops threads lets others run in what is measured, so that nothing can be told apart by
    /// differences.
    fn stops_threads(&self) -> bool {
        self.name.starts_with("strace")
    }

    /// As one would type it, or a description.
    fn heading(&self) -> String {
        match self.name.as_str() {
            WITHOUT => WITHOUT.to_owned(),
            "fentry" | "tracepoint" => format!("Punctual, {}", self.name),
            "ftrace" => "ftrace events".to_owned(),
            other => format!("`{other}`"),
        }
    }
}

/// A line of the table.
struct Row {
    what: &'static str,
    figure: fn(&Figures) -> f64,
    /// A difference of loops.
    is_difference: bool,
}

const fn row(what: &'static str, figure: fn(&Figures) -> f64) -> Row {
    Row { what, figure, is_difference: false }
}

const fn difference(what: &'static str, figure: fn(&Figures) -> f64) -> Row {
    Row { what, figure, is_difference: true }
}

const OBSERVED: &[Row] = &[
    row("a call that separates nothing: `getppid`", |run| run.cost("getppid")),
    row("a call that separates jobs, and need not wait: `read`", |run| run.cost("read")),
    row("1. a call that separates nothing: `write`", |run| run.cost("write")),
    difference("2. a wake-up", Figures::wake_up),
    difference("3. a context switch", Figures::switch),
    difference("4. a call that waits: `read`", |run| {
        run.cost("job") - run.cost("write") - run.wake_up() - run.switch()
    }),
    row("**a job: 1 to 4 together**", |run| run.cost("job")),
];

const ELSEWHERE: &[Row] = &[
    row("not observed, while others are: `getppid`", |run| run.cost("getppid")),
    row("not observed: a wake-up", Figures::wake_up),
    row("not observed: a context switch", Figures::switch),
    row("not observed: a job", |run| run.cost("job")),
];

impl Measured {
    fn parse(output: &str) -> std::result::Result<Measured, String> {
        let mut measured = Measured { observers: Vec::new(), missing: Vec::new(), versions: Vec::new() };
        let mut figures = None;
        for line in output.lines() {
            if let Some(name) = line.strip_prefix("observer elsewhere ") {
                let observer = measured.observers.last_mut().filter(|observer| observer.name == name);
                figures = Some(&mut observer.ok_or(format!("{name} was not measured before"))?.elsewhere);
            } else if let Some(name) = line.strip_prefix("observer ") {
                let observer = Observer {
                    name: name.to_owned(),
                    observed: Figures::default(),
                    elsewhere: Figures::default(),
                };
                measured.observers.push(observer);
                figures = measured.observers.last_mut().map(|observer| &mut observer.observed);
            } else if let Some(name) = line.strip_prefix("missing: ") {
                measured.missing.push(name.to_owned());
            } else if let Some(version) = line.strip_prefix("tool ") {
                measured.versions.push(version.replace(" -- version", "").replace(" version", ""));
            } else if line.starts_with('{') {
                let value: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
                let (Some(kind), Some(ns), Some(own)) =
                    (value["kind"].as_str(), value["ns"].as_f64(), value["observer_ns"].as_f64())
                else {
                    return Err(format!("a line without its fields: {line}"));
                };
                let figures = figures.as_mut().ok_or("figures of nobody")?;
                figures.events.insert(kind.to_owned(), ns);
                if kind == "job" {
                    figures.own = own;
                }
            }
        }
        for observer in &measured.observers {
            if !observer.observed.is_whole() || observer.is_somebody() && !observer.elsewhere.is_whole() {
                return Err(format!("figures with {} are missing", observer.name));
            }
        }
        if measured.without(WITHOUT).is_none() || measured.without(AGAIN).is_none() {
            return Err("figures without an observer are missing".into());
        }
        Ok(measured)
    }

    fn without(&self, name: &str) -> Option<&Figures> {
        self.observers.iter().find(|observer| observer.name == name).map(|observer| &observer.observed)
    }

    fn tools(&self) -> String {
        let missing = self.missing.iter().map(|name| format!("without {name}, which was not there"));
        self.versions
            .iter()
            .map(|version| format!("with {version}"))
            .chain(missing)
            .fold(String::new(), |all, each| all + ", " + &each)
    }

    fn table(&self) -> String {
        let (Some(without), Some(again)) = (self.without(WITHOUT), self.without(AGAIN)) else {
            return String::new();
        };
        let shown: Vec<&Observer> = self.observers.iter().filter(|observer| observer.name != AGAIN).collect();
        let mut out = format!(
            "| instructions per event | {} |\n",
            shown.iter().map(|run| run.heading()).collect::<Vec<_>>().join(" | ")
        );
        let _ = writeln!(out, "| --- |{}", " ---: |".repeat(shown.len()));
        let mut add =
            |row: &Row, figures: fn(&Observer) -> &Figures, is_shown: fn(&Observer, &Row) -> bool| {
                let base = (row.figure)(without);
                let cells = shown.iter().map(|observer| match (row.figure)(figures(observer)) {
                    _ if !observer.is_somebody() => count(base),
                    _ if !is_shown(observer, row) => "–".to_owned(),
                    figure => format!("{} ({})", signed(figure - base), ratio(figure / base)),
                });
                let _ = writeln!(out, "| {} | {} |", row.what, cells.collect::<Vec<_>>().join(" | "));
            };
        for row in OBSERVED {
            add(
                row,
                |observer| &observer.observed,
                |observer, row| !(row.is_difference && observer.stops_threads()),
            );
        }
        for row in ELSEWHERE {
            add(row, |observer| &observer.elsewhere, |_, _| true);
        }
        let own = shown.iter().map(|observer| match observer.name.as_str() {
            WITHOUT => String::new(),
            "ftrace" => "nobody reads".to_owned(),
            _ => count(observer.observed.own),
        });
        let _ = writeln!(
            out,
            "| the observer's own process, per job | {} |",
            own.collect::<Vec<_>>().join(" | ")
        );
        let left = OBSERVED
            .iter()
            .map(|row| ((row.figure)(again) / (row.figure)(without) - 1.0).abs())
            .fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "\nMeasured without an observer again at the end, the figures differ by {:.2} % at most.",
            left * 100.0
        );
        out
    }
}

/// `1234.56` as `1,235`.
fn count(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if number <= -0.5 { format!("−{out}") } else { out }
}

fn signed(number: f64) -> String {
    if number >= 0.5 { format!("+{}", count(number)) } else { count(number) }
}

fn ratio(number: f64) -> String {
    if number.abs() < 10.0 { format!("{number:.2}") } else { format!("{number:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All kinds, with `cost` for each of them.
    fn kinds(cost: f64) -> String {
        let events = [
            ("getppid", 300.0),
            ("write", 1000.0),
            ("read", 900.0),
            ("yield", 800.0),
            ("switch", 1800.0),
            ("job", 5000.0),
            ("wake", 2200.0),
        ];
        let line = |(kind, ns): (&str, f64)| {
            format!("{{\"kind\": \"{kind}\", \"ns\": {}, \"observer_ns\": 7}}\n", ns + cost)
        };
        events.map(line).concat()
    }

    #[test]
    fn a_table_has_absolute_and_relative_costs() {
        let output = [
            ("without", 0.0),
            ("fentry", 1500.0),
            ("elsewhere fentry", 100.0),
            ("strace", 20000.0),
            ("elsewhere strace", 0.0),
        ]
        .map(|(name, cost)| format!("observer {name}\n{}", kinds(cost)))
        .concat();
        let output = format!(
            "{output}missing: perf\ntool strace -- version 6.1\nobserver without, again\n{}",
            kinds(0.0)
        );
        let measured = Measured::parse(&output).unwrap();
        assert_eq!(measured.tools(), ", with strace 6.1, without perf, which was not there");
        let table = measured.table();
        for expected in [
            "| instructions per event | without | Punctual, fentry | `strace` |\n",
            "| a call that separates nothing: `getppid` | 300 | +1,500 (6.00) | +20,000 (68) |\n",
            "| 2. a wake-up | 1,200 | 0 (1.00) | – |\n",
            "| 3. a context switch | 1,000 | 0 (1.00) | – |\n",
            // 5,000 − 1,000 − 1,200 − 1,000, and with 1,500 more in each loop that cancels out.
            "| 4. a call that waits: `read` | 1,800 | 0 (1.00) | – |\n",
            "| not observed: a job | 5,000 | +100 (1.02) | 0 (1.00) |\n",
            "differ by 0.00 % at most",
        ] {
            assert!(table.contains(expected), "no {expected} in\n{table}");
        }
    }

    #[test]
    fn missing_figures_are_an_error() {
        assert!(Measured::parse("observer without\n").is_err_and(|why| why.contains("without")));
        assert!(Measured::parse(&kinds(0.0)).is_err_and(|why| why.contains("nobody")));
        assert!(
            Measured::parse(&format!("observer without\n{}", kinds(0.0)))
                .is_err_and(|why| why.contains("missing"))
        );
        assert!(
            Measured::parse(&format!("observer fentry\n{}", kinds(0.0)))
                .is_err_and(|why| why.contains("fentry"))
        );
        assert!(Measured::parse("observer elsewhere fentry\n").is_err_and(|why| why.contains("before")));
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [0.4, -0.4, 999.6, 1234567.0, -1234.0].map(count),
            ["0", "0", "1,000", "1,234,567", "−1,234"]
        );
        assert_eq!([0.2, 12.0, -12.0].map(signed), ["0", "+12", "−12"]);
    }
}
