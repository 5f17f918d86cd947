//! The end-to-end tests on every kernel of the matrix, each way of attaching a run of its own; the daemon's
//! tests one more. Or a little of everything on one kernel.

use crate::error::{Result, cannot};
use crate::lttng;
use crate::machine::Machine;
use crate::matrix::{self, Arch, Kernel};
use crate::programs;
use crate::results::{Outcome, Results};
use crate::root::Root;
use crate::smoke;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How Punctual sees system calls in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Attach {
    /// Programs on the functions of the calls
    Fentry,
    /// Programs on the tracepoints of all calls
    Tracepoint,
}

impl Attach {
    pub fn name(self) -> &'static str {
        match self {
            Attach::Fentry => "fentry",
            Attach::Tracepoint => "tracepoint",
        }
    }
}

/// The tests of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tests {
    /// The end-to-end tests of observing.
    EndToEnd(Attach),
    /// Those of the daemon that need a kernel: its own, and its clients'.
    Daemon,
    /// [`smoke`].
    Smoke,
}

impl Tests {
    pub fn name(self) -> &'static str {
        match self {
            Tests::EndToEnd(attach) => attach.name(),
            Tests::Daemon => "daemon",
            Tests::Smoke => "smoke",
        }
    }

    /// How a run of end-to-end tests sees system calls. What all kernels of the smoke test have is
    /// tracepoints.
    fn attach(self) -> Option<Attach> {
        match self {
            Tests::EndToEnd(attach) => Some(attach),
            Tests::Daemon => None,
            Tests::Smoke => Some(Attach::Tracepoint),
        }
    }
}

/// What is to be run, and how.
pub struct Suite {
    pub kernels: Vec<String>,
    pub suites: Vec<Tests>,
    /// Tests whose name contains one of these; all, if there is none.
    pub tests: Vec<String>,
    pub memory_mib: u64,
    /// One processor counts instructions: its time is whole, whatever else this machine does, and its output
    /// the same every time. More take turns in one thread of QEMU, and their times mean nothing.
    pub processors: u32,
    pub limit: Duration,
}

/// A run: one kernel, one suite.
pub struct Run {
    pub kernel: String,
    pub suite: Tests,
    pub release: Option<String>,
    pub results: Results,
    /// What was wrong beside the tests.
    pub faults: Vec<String>,
    /// What is worth knowing, and no fault.
    pub notes: Vec<String>,
    /// Where the kernel's log was left, if anything was wrong.
    pub folder: Option<PathBuf>,
    pub took: Duration,
}

impl Run {
    pub fn is_good(&self) -> bool {
        self.faults.is_empty()
            && !self.results.tests.values().any(|outcome| matches!(outcome, Outcome::Failed(_)))
    }
}

/// All runs, and the kernels that could not be had, with the reason.
#[derive(Default)]
pub struct Report {
    pub runs: Vec<Run>,
    pub missing: Vec<(String, String)>,
}

impl Report {
    /// Whether everything that could be run was good. Where no kernel could be had, everything was skipped;
    /// but runs without any test are a mistake.
    pub fn is_good(&self) -> bool {
        let has_tests = self.runs.iter().any(|run| !run.results.tests.is_empty());
        (has_tests || self.runs.is_empty()) && self.runs.iter().all(Run::is_good)
    }
}

impl Suite {
    /// Runs everything, telling the progress on standard error.
    pub fn run(&self) -> Result<Report> {
        let mut report = Report::default();
        let mut roots: BTreeMap<Arch, Root> = BTreeMap::new();
        for name in &self.kernels {
            let kernel = match matrix::get(name) {
                Ok(kernel) => kernel,
                Err(missing) => {
                    eprintln!("kernel {name} is skipped: {}", missing.reason);
                    report.missing.push((name.clone(), missing.reason));
                    continue;
                }
            };
            let root = match roots.entry(kernel.arch) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(self.root(kernel.arch)?),
            };
            for suite in &self.suites {
                let has_lttng = self.add_lttng(&kernel, *suite, root);
                report.runs.push(self.one(&kernel, *suite, root, has_lttng)?);
            }
        }
        Ok(report)
    }

    fn root(&self, arch: Arch) -> Result<Root> {
        let has_daemon = self.suites.iter().any(|suite| *suite != Tests::Smoke);
        if has_daemon { programs::root(arch) } else { programs::root_to_observe(arch) }
    }

    /// Adds LTTng's kernel tracer to the root, for a run of the test that needs it. Where that is not
    /// possible, the test is skipped.
    fn add_lttng(&self, kernel: &Kernel, suite: Tests, root: &mut Root) -> bool {
        let is_needed = matches!(suite, Tests::EndToEnd(_)) && lttng::is_for(kernel, &self.tests);
        let layer = is_needed.then(|| lttng::layer(kernel)).transpose().unwrap_or_else(|missing| {
            eprintln!("{}: no LTTng kernel tracer: {}", kernel.name, missing.reason);
            None
        });
        let has_lttng = layer.is_some();
        root.set_layer(layer);
        has_lttng
    }

    fn one(&self, kernel: &Kernel, suite: Tests, root: &mut Root, has_lttng: bool) -> Result<Run> {
        let folder = crate::folder(&format!("{}-{}", kernel.name.replace('/', "_"), suite.name()))?;
        let (memory_mib, limit) = (self.memory_mib, self.limit);
        let machine = Machine {
            kernel,
            processors: if suite == Tests::Smoke { 2 } else { self.processors },
            memory_mib,
            counting: self.is_counting(suite),
            turn_us: None,
            limit,
            append: "",
        };
        let began = Instant::now();
        let mut results = Results::default();
        let mut progress = Progress::new(format!("{} {}", kernel.name, suite.name()));
        let kept = folder.join("output.log");
        let mut output = File::create(&kept).map_err(|error| cannot("create", &kept, error))?;
        let mut lines = Lines::default();
        let (mut skipped, mut notes) = (Vec::new(), Vec::new());
        let ended = machine.run(root, &self.job(kernel, suite, has_lttng), &folder, &mut |_, bytes| {
            output.write_all(bytes)?;
            lines.take(bytes, |line| {
                results.line(line);
                if let Some((_, misses)) = line.split_once("MISSES: ") {
                    skipped.push(format!("the kernel skipped runs of the programs (misses): {misses}"));
                }
                if let Some((_, reason)) = line.split_once("SKIPPED: ") {
                    notes.push(format!("passed without being run: {reason}"));
                }
                if let Some((_, skips)) = line.split_once("SKIPS: ") {
                    notes.push(format!(
                        "skipped by this kernel, as `doctor` says it does where functions are traced: {skips}"
                    ));
                }
            });
            progress.tell(&results);
            Ok(())
        })?;
        progress.end();
        let mut faults = ended.faults();
        faults.extend(skipped);
        faults.extend(refused(kernel, suite, &results));
        let left = results.announced.unwrap_or(0).saturating_sub(results.ended);
        match results.announced {
            None => faults.push("the tests did not begin: see output.log".into()),
            Some(0) => notes.push("no test here has such a name".into()),
            Some(_) if left > 0 => faults.push(format!("{left} tests did not end")),
            Some(_) => {}
        }
        let failed = results.count(|outcome| matches!(outcome, Outcome::Failed(_))) > 0;
        if !failed && faults.is_empty() && ended.code() != 0 {
            faults.push(format!("the tests ended with exit code {}", ended.code()));
        }
        let release = ended.release.clone();
        let mut run = Run {
            kernel: kernel.name.clone(),
            suite,
            release,
            results,
            faults,
            notes,
            folder: None,
            took: began.elapsed(),
        };
        if run.is_good() {
            let _ = std::fs::remove_dir_all(&folder);
        } else {
            run.folder = Some(folder.to_path_buf());
        }
        let (good, release) =
            (if run.is_good() { "good" } else { "NOT GOOD" }, run.release.as_deref().unwrap_or("?"));
        eprintln!("{} ({release}) {}: {good}, {} s", run.kernel, suite.name(), run.took.as_secs());
        Ok(run)
    }

    fn is_counting(&self, suite: Tests) -> bool {
        suite == Tests::Smoke || self.processors == 1
    }

    /// Those of a list that were asked for: all, if none were.
    fn named(&self, list: &[&str]) -> String {
        let is_asked =
            |part: &&str| self.tests.is_empty() || self.tests.iter().any(|test| part.contains(test.as_str()));
        list.iter().copied().filter(is_asked).collect::<Vec<_>>().join(" ")
    }

    fn job(&self, kernel: &Kernel, suite: Tests, has_lttng: bool) -> Vec<String> {
        let Some(attach) = suite.attach() else {
            let job = ["bash", "/lab/daemon.sh"].map(str::to_owned);
            return job.into_iter().chain(self.tests.iter().cloned()).collect();
        };
        let settings = [
            format!("PUNCTUAL_E2E_ATTACH={}", attach.name()),
            format!("PUNCTUAL_E2E_ONLY={}", self.tests.join(" ")),
            "WORKLOADS=/workloads".into(),
            "PUNCTUAL=/usr/local/bin/punctual".into(),
            // Where the tracer was added, it must be able to record.
            format!("PUNCTUAL_E2E_LTTNG={}", u8::from(has_lttng)),
            format!("BABELTRACE2_ROOT={}", if has_lttng { lttng::CONVERTER_ROOT } else { "" }),
            // Several processors are emulated as fast as the host has time.
            format!("PUNCTUAL_TEST_LIMIT={}", if self.is_counting(suite) { 60 } else { 300 }),
        ];
        // One after the other: an observation that begins makes the kernel skip programs of another, and idle
        // time costs nothing where instructions count. Where every section is traced, one load is enough.
        let is_traced = kernel.has("TRACE_PREEMPT_TOGGLE");
        let one = if self.processors == 1 || is_traced { "1" } else { "4" };
        let mut job = vec!["env".to_owned()];
        job.extend(settings);
        if self.is_counting(suite) {
            job.push("PUNCTUAL_E2E_COUNTING=1".into());
        }
        if suite == Tests::Smoke {
            let lists = [smoke::ON_ONE, smoke::ON_TWO].map(|list| self.named(list));
            job.extend(["sh", "/lab/smoke.sh"].map(str::to_owned).into_iter().chain(lists));
        } else {
            job.extend(["e2e", "--color", "never", "--test-threads", one].map(str::to_owned));
        }
        job
    }
}

/// Where a kernel is built to let programs be called from functions and the tests say that it refuses ours,
/// that is no lack of the kernel's: the verifier, most likely. Those that are too old for all of it were not
/// tried.
fn refused(kernel: &Kernel, suite: Tests, results: &Results) -> Option<String> {
    if suite != Tests::EndToEnd(Attach::Fentry) || !kernel.has("DYNAMIC_FTRACE_WITH_DIRECT_CALLS") {
        return None;
    }
    let reasons = results
        .tests
        .values()
        .filter_map(|outcome| if let Outcome::Skipped(reason) = outcome { Some(reason) } else { None });
    let reason = reasons
        .into_iter()
        .find(|reason| reason.starts_with("no function tracing") && !reason.contains("not tried"))?;
    Some(format!("the kernel can trace functions, but refused the programs: {reason}"))
}

/// Bytes in, whole lines out.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn take(&mut self, bytes: &[u8], mut line: impl FnMut(&str)) {
        self.0.extend_from_slice(bytes);
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let whole: Vec<u8> = self.0.drain(..=end).collect();
            line(String::from_utf8_lossy(&whole).trim_end_matches(['\n', '\r']));
        }
    }
}

/// A line on the terminal that says how far a run is.
struct Progress {
    what: String,
    is_shown: bool,
}

impl Progress {
    fn new(what: String) -> Progress {
        Progress { what, is_shown: std::io::stderr().is_terminal() }
    }

    fn tell(&mut self, results: &Results) {
        if self.is_shown {
            let failed = results.count(|outcome| matches!(outcome, Outcome::Failed(_)));
            eprint!(
                "\r\x1b[K{}: {} of {} tests, {failed} failed",
                self.what,
                results.tests.len(),
                results.announced.unwrap_or(0)
            );
        }
    }

    fn end(&mut self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_kernel_is_skipped_and_counted() {
        let missing = vec![("7.2-rt-traced".into(), "it is not built".into())];
        let mut report = Report { runs: vec![], missing };
        assert!(report.is_good());
        let text = crate::table::text(&report);
        assert!(text.contains("7.2-rt-traced: skipped: it is not built"), "{text}");
        assert!(text.contains("test result: ok. 0 passed; 0 failed; 1 ignored"), "{text}");
        report.runs.push(run_without_tests());
        assert!(!report.is_good(), "no test has the name that was asked for");
    }

    fn run_without_tests() -> Run {
        Run {
            kernel: "6.1".into(),
            suite: Tests::Daemon,
            release: None,
            results: Results::default(),
            faults: vec![],
            notes: vec![],
            folder: None,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn a_refused_program_is_a_fault_only_if_the_kernel_supports_it() {
        let config = std::env::temp_dir().join(format!("lab-config-{}", std::process::id()));
        let faults = |config: &PathBuf, reason: &str| {
            let kernel = Kernel {
                name: "6.1".into(),
                arch: Arch::Amd64,
                image: PathBuf::new(),
                config: Some(config.clone()),
                modules: vec![],
            };
            let mut results = Results::default();
            results.line(&format!("test driver::poll ... ignored (no function tracing: {reason})"));
            let by = |attach| refused(&kernel, Tests::EndToEnd(attach), &results);
            (by(Attach::Fentry), by(Attach::Tracepoint))
        };
        std::fs::write(&config, "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y\n").unwrap();
        assert!(
            faults(&config, "loading: the kernel refused it (Invalid argument)")
                .0
                .is_some_and(|fault| fault.contains("Invalid argument"))
        );
        assert_eq!(faults(&config, "loading: the kernel refused it (Invalid argument)").1, None);
        assert_eq!(faults(&config, "not tried").0, None);
        std::fs::write(&config, "# CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS is not set\n").unwrap();
        assert_eq!(faults(&config, "loading: the kernel refused it (unknown error 524)").0, None);
        let _ = std::fs::remove_file(&config);
    }
}
