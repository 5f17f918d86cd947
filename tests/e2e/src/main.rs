//! Runs the built command, `punctual`, against workloads with known timing, on the real kernel of this
//! machine.
//!
//! Every row of a table is a test. A test that the machine cannot run says so and is counted as ignored. No
//! test asserts how long something takes.

mod beside;
mod bound;
mod chains;
mod circumstances;
mod compare;
mod conservative;
mod demo;
mod demo_tt;
mod disturbed;
mod doctor;
mod drivers;
mod ending;
mod graphs;
mod guests;
mod imported;
mod latency;
mod loss;
mod lttng;
mod metrics;
mod model;
mod periods;
mod probes;
mod proven;
mod recordings;
mod ros2;
mod run;
mod survives;
mod table;
mod targets;
mod tool;
mod top;
mod trace_cmd;
mod transitions;
mod truth;
mod tt;
mod watch;
mod watched_chains;
mod witness;

use libtest_mimic::{Arguments, Trial};
use punctual_test_support::to_harness;
pub use punctual_test_support::{Failure, Outcome, Result, ensure, fail, in_context, skip, timing};
use std::process::ExitCode;
use std::sync::RwLock;
use witness::{Witnesses, undisturbed};

/// A test.
pub type Test = fn() -> Result<Outcome>;

/// Locked for writing by tests that need all processors for themselves.
static MACHINE: RwLock<()> = RwLock::new(());

fn shared(name: impl Into<String>, test: impl FnOnce() -> Result<Outcome> + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || {
        let _shared = MACHINE.read();
        to_harness(test())
    })
}

/// A test of periods, which need a machine that keeps its processors.
fn timed(name: impl Into<String>, test: impl Fn() -> Result<Outcome> + Send + 'static) -> Trial {
    shared(name, || undisturbed(test))
}

fn alone(name: &str, test: Test) -> Trial {
    Trial::ignorable_test(name, move || {
        let _alone = MACHINE.write();
        to_harness(test())
    })
}

fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = circumstances::ALL
        .iter()
        .chain(beside::ALL)
        .chain(chains::ALL)
        .chain(compare::ALL)
        .chain(disturbed::ALL)
        .chain(doctor::ALL)
        .chain(latency::ALL)
        .chain(metrics::ALL)
        .chain(ros2::ALL)
        .chain(table::ALL)
        .chain(top::ALL)
        .chain(watch::ALL)
        .chain(watched_chains::ALL)
        .map(|(name, test)| shared(*name, test))
        .collect();
    trials.extend(periods::ALL.iter().chain(truth::ALL).map(|(name, test)| shared(*name, test)));
    trials.extend(graphs::ALL.iter().map(|(name, test)| shared(*name, test)));
    trials.extend(probes::ALL.iter().map(|(name, test)| shared(*name, test)));
    let tables = [demo::ALL, ending::ALL, recordings::ALL, targets::ALL, transitions::ALL];
    trials.extend(tables.into_iter().flatten().map(|(name, test)| timed(*name, test)));
    trials.extend(drivers::all().into_iter().map(|(name, test)| timed(name, test)));
    trials.extend(
        [
            conservative::ALL,
            bound::ALONE,
            bound::LIVE,
            loss::ALL,
            lttng::ALONE,
            periods::ALONE,
            proven::ALONE,
            recordings::ALONE,
            survives::ALONE,
            trace_cmd::ALONE,
            watch::ALONE,
            truth::ALONE,
            tt::slots::ALONE,
            tt::live::ALONE,
            tt::restored::ALONE,
            tt::beside::ALONE,
            guests::ALONE,
            demo_tt::ALONE,
        ]
        .into_iter()
        .flatten()
        .map(|(name, test)| alone(name, *test)),
    );
    // The harness takes one filter; this takes several, any of which suffices.
    let wanted = std::env::var("PUNCTUAL_E2E_ONLY").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    trials.retain(|trial| wanted.is_empty() || wanted.iter().any(|part| trial.name().contains(part)));
    trials
}

/// If functions cannot be traced, a run that requires it skips everything except the tests of `doctor`, which
/// check that it is true.
fn without_function_tracing(trials: Vec<Trial>) -> Vec<Trial> {
    let reason = match doctor::without_function_tracing() {
        Ok(None) => return trials,
        Ok(Some(reason)) => reason,
        Err(failure) => failure.message,
    };
    let skipped =
        |name: String, reason: String| Trial::ignorable_test(name, move || to_harness(skip(reason)));
    let skipped = |trial: Trial| {
        if trial.name().starts_with("doctor::") {
            trial
        } else {
            skipped(trial.name().to_owned(), reason.clone())
        }
    };
    trials.into_iter().map(skipped).collect()
}

/// What is missing to run any test: clearer than failing or skipping each.
fn missing() -> Option<String> {
    let binary = run::binary();
    if !binary.is_file() {
        return Some(format!(
            "there is no {}: build it first (`make build`), or set PUNCTUAL to where it is",
            binary.display()
        ));
    }
    None
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Tests have two observed threads and machines two processors: more tests at once would delay each other.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    if !arguments.list {
        if let Some(message) = missing() {
            eprintln!("punctual-e2e: {message}");
            return ExitCode::FAILURE;
        }
    }
    let mut trials = trials();
    if !rustix::process::geteuid().is_root() {
        let names: Vec<String> = trials.iter().map(|trial| trial.name().to_owned()).collect();
        let reason = "observing needs root";
        trials = names
            .into_iter()
            .map(|name| Trial::ignorable_test(name, move || to_harness(skip(reason))))
            .collect();
    } else if !arguments.list && run::attach().as_deref() == Some("fentry") {
        trials = without_function_tracing(trials);
    }
    let _witnesses = (!arguments.list).then(Witnesses::start);
    libtest_mimic::run(&arguments, trials).exit_code()
}
