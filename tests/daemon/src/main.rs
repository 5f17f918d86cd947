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
use std::sync::{PoisonError, RwLock};

/// How many tests run beside each other, unless the command line says: they wait most of the time.
const BESIDE: usize = 4;

/// Held for writing by tests that change a setting of the whole machine.
static MACHINE: RwLock<()> = RwLock::new(());

/// Tests by name.
type Table = &'static [(&'static str, fn() -> Result<Outcome>)];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(BESIDE);
    let root = rustix::process::geteuid().is_root();
    if root && !arguments.list {
        if let Err(message) = built::all() {
            eprintln!("punctual-daemon-tests: {message}");
            return ExitCode::FAILURE;
        }
    }
    let tables: [Table; 4] = [library::ALL, ctl::ALL, models::ALL, varlink::ALL];
    let mut tests: Vec<_> = tables.into_iter().flatten().collect();
    tests.sort_by_key(|(name, _)| library::ALONE.contains(name));
    let trials = tests.into_iter().map(|(name, test)| {
        let is_alone = library::ALONE.contains(name);
        Trial::ignorable_test(*name, move || {
            let _beside = (!is_alone).then(|| MACHINE.read().unwrap_or_else(PoisonError::into_inner));
            let _alone = is_alone.then(|| MACHINE.write().unwrap_or_else(PoisonError::into_inner));
            to_harness(measured(name, || match root {
                true => test(),
                false => skip("setting real-time policies of others needs root"),
            }))
        })
    });
    run_all(&arguments, trials.collect()).exit_code()
}
