//! Clients of all kinds against a real `punctuald` on this kernel: C programs linked to `libpunctual.so.1`,
//! `punctual ctl`, `varlinkctl`. The daemon's own crate tests the daemon itself. No test asserts how long
//! something takes.

mod built;
mod ctl;
mod library;
mod models;
mod server;
mod varlink;

use libtest_mimic::{Arguments, Trial};
use punctual_test_support::{Outcome, Result, measured, run_all, skip, to_harness};
use std::process::ExitCode;

/// Tests by name.
type Table = &'static [(&'static str, fn() -> Result<Outcome>)];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Real-time threads of two daemons would interfere: each assumes it has the processors for itself.
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
            to_harness(measured(name, || match root {
                true => test(),
                false => skip("setting real-time policies of others needs root"),
            }))
        })
    });
    run_all(&arguments, trials.collect()).exit_code()
}
