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
mod formats;
mod gate;
mod graphs;
mod guests;
mod imported;
mod latency;
mod loss;
mod lttng;
mod metrics;
mod model;
mod names;
mod periods;
mod probes;
mod proven;
mod rates;
mod recordings;
mod ros2;
mod run;
mod shared;
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
mod why;
mod witness;

use libtest_mimic::{Arguments, Trial};
pub use punctual_test_support::{
    Failure, Outcome, Result, ensure, fail, in_context, is_all_wanted, skip, timing,
};
use punctual_test_support::{measured, run_all, to_harness};
use std::path::Path;
use std::process::ExitCode;
use std::sync::RwLock;
use witness::{Witnesses, undisturbed};

/// A test.
pub type Test = fn() -> Result<Outcome>;

/// Locked for writing by tests that need all processors for themselves.
static MACHINE: RwLock<()> = RwLock::new(());

fn shared(name: impl Into<String>, test: impl Fn() -> Result<Outcome> + Send + 'static) -> Trial {
    let name = name.into();
    Trial::ignorable_test(name.clone(), move || {
        let _shared = MACHINE.read();
        measured(&name, || to_harness(undisturbed(&name, test)))
    })
}

fn alone(name: &'static str, test: Test) -> Trial {
    Trial::ignorable_test(name, move || {
        let _alone = MACHINE.write();
        measured(name, || to_harness(undisturbed(name, test)))
    })
}

fn trials() -> Vec<Trial> {
    // One driver and the demonstration first: others ask of what they observe. Meanwhile, the rest goes on.
    let mut trials: Vec<Trial> = drivers::all().into_iter().map(|(name, test)| shared(name, test)).collect();
    let others = trials.split_off(1);
    trials.extend(
        [
            demo::ALL,
            circumstances::ALL,
            beside::ALL,
            chains::ALL,
            compare::ALL,
            gate::ALL,
            names::ALL,
            disturbed::ALL,
            doctor::ALL,
            latency::ALL,
            metrics::ALL,
            ros2::ALL,
            table::ALL,
            top::ALL,
            watch::ALL,
            watched_chains::ALL,
            periods::ALL,
            truth::ALL,
            graphs::ALL,
            probes::ALL,
            ending::ALL,
            formats::ALL,
            recordings::ALL,
            targets::ALL,
            transitions::ALL,
            why::ALL,
        ]
        .into_iter()
        .flatten()
        .map(|(name, test)| shared(*name, test)),
    );
    trials.extend(others);
    trials.extend(
        [
            conservative::ALL,
            bound::ALONE,
            bound::LIVE,
            doctor::ALONE,
            loss::ALL,
            lttng::ALONE,
            periods::ALONE,
            proven::ALONE,
            rates::ALONE,
            recordings::ALONE,
            survives::ALONE,
            trace_cmd::ALONE,
            watch::ALONE,
            why::ALONE,
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
    if formats::are_all_wanted() {
        trials.extend(formats::ALONE.iter().map(|(name, test)| alone(name, *test)));
    }
    trials.retain(|trial| is_wanted(trial.name()));
    trials
}

/// The harness takes one filter; this takes several, any of which suffices.
pub fn is_wanted(test: &str) -> bool {
    let wanted = std::env::var("PUNCTUAL_E2E_ONLY").unwrap_or_default();
    let mut wanted = wanted.split_whitespace().peekable();
    wanted.peek().is_none() || wanted.any(|part| test.contains(part))
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
    let lacks = |path: &Path, build: &str, variable: &str| {
        let message = format!(
            "there is no {}: build it first (`{build}`), or set {variable} to where it is",
            path.display()
        );
        (!path.exists()).then_some(message)
    };
    lacks(&run::binary(), "make build", "PUNCTUAL")
        .or_else(|| lacks(&run::workloads(), "make workloads", "WORKLOADS"))
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They wait most of the time.
    let processors = std::thread::available_parallelism().map_or(1, |it| it.get());
    arguments.test_threads = arguments.test_threads.or(Some(2 * processors));
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
    let conclusion = run_all(&arguments, trials);
    shared::forget();
    conclusion.exit_code()
}
