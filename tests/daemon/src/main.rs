//! Clients of all kinds against a real `punctuald` on this kernel: C programs linked to `libpunctual.so.1`,
//! `punctual ctl`, `varlinkctl`. What the daemon does in itself is tested in its own crate. No test asserts
//! how long something takes.

mod built;
mod ctl;
mod library;
mod models;
mod server;
mod varlink;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::process::ExitCode;

/// How a test ended: done, or not to be done here.
type Outcome = Result<Completion, Failed>;
/// Tests by their names.
type Table = &'static [(&'static str, fn() -> Outcome)];

/// Says why this machine cannot run a test.
fn skip(reason: impl Into<String>) -> Outcome {
    Ok(Completion::ignored_with(reason.into()))
}

/// Done, unless it is not so.
fn ensure(so: bool, otherwise: impl FnOnce() -> String) -> Result<(), Failed> {
    if so { Ok(()) } else { Err(otherwise().into()) }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Real-time threads of two daemons would be in each other's way: each believes that the processors are
    // its own.
    arguments.test_threads = Some(1);
    let root = rustix::process::geteuid().is_root();
    if root && !arguments.list {
        if let Err(message) = built::all() {
            eprintln!("punctual-daemon-tests: {message}");
            return ExitCode::FAILURE;
        }
    }
    let tables: [Table; 4] = [library::ALL, ctl::ALL, models::ALL, varlink::ALL];
    let trials = tables.into_iter().flatten().map(|(name, test)| {
        Trial::ignorable_test(*name, move || {
            if root { test() } else { skip("real-time policies for others need root") }
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
