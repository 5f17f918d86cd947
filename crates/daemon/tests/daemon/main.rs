//! `punctuald` against real processes, sockets and this kernel. Threads are looked at by `/proc`, not by what
//! the daemon says of them.
//!
//! Whoever is not root cannot run these, and is told so.

mod actor;
mod arrival;
mod bus;
mod capabilities;
mod clamps;
mod cpusets;
mod ended;
mod enforcement;
mod faults;
mod global;
mod modes;
mod objects;
mod owners;
mod polkit;
mod restart;
mod rig;
mod start;
mod supply;
mod undo;
mod wire;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use punctual_test_support::{measured, run_all};
use std::process::ExitCode;
use std::sync::{PoisonError, RwLock};

/// How many tests run beside each other, unless the command line says: they wait most of the time.
const BESIDE: usize = 8;

/// Held for writing by tests that change a setting of the whole machine, or need a processor for themselves.
static MACHINE: RwLock<()> = RwLock::new(());

fn run(test: fn()) -> Result<Completion, Failed> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Completion::ignored_with("punctuald's tests need root"));
    }
    match std::panic::catch_unwind(test) {
        Ok(()) => Ok(Completion::Completed),
        Err(what) => {
            let text =
                what.downcast_ref::<String>().map(String::as_str).or(what.downcast_ref::<&str>().copied());
            Err(Failed::from(text.unwrap_or("it panicked")))
        }
    }
}

/// A test beside others, or `alone`.
fn trial(
    name: &'static str,
    alone: bool,
    test: impl FnOnce() -> Result<Completion, Failed> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name, move || {
        if alone {
            let _machine = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
            return measured(name, test);
        }
        let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        measured(name, test)
    })
}

fn main() -> ExitCode {
    if actor::play() {
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(BESIDE);
    let beside = [
        wire::TESTS,
        capabilities::TESTS,
        owners::TESTS,
        undo::TESTS,
        cpusets::TESTS,
        restart::TESTS,
        start::TESTS,
        supply::TESTS,
        objects::TESTS,
        enforcement::TESTS,
        modes::TESTS,
    ];
    let alone = [
        global::ALONE,
        undo::ALONE,
        restart::ALONE,
        faults::ALONE,
        enforcement::ALONE,
        ended::ALONE,
        arrival::ALONE,
    ];
    let on_buses = bus::TESTS.iter().chain(polkit::TESTS);
    let trials = (beside.into_iter().flatten().map(|&(name, test)| trial(name, false, move || run(test))))
        .chain(on_buses.map(|&(name, needs, test)| trial(name, false, move || bus::run(needs, test))))
        .chain(
            clamps::TESTS
                .iter()
                .map(|&(name, needs, test)| trial(name, false, move || clamps::run(needs, test))),
        )
        .chain(alone.into_iter().flatten().map(|&(name, test)| trial(name, true, move || run(test))));
    run_all(&arguments, trials.collect()).exit_code()
}
