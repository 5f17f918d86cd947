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
use std::process::ExitCode;
use std::sync::RwLock;

/// Held for writing by tests that change a setting of the whole machine.
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

fn tests(tests: &[(&str, fn())], alone: bool) -> Vec<Trial> {
    let trials = tests.iter().map(|&(name, test)| {
        Trial::ignorable_test(name, move || {
            if alone {
                let _machine = MACHINE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
                return run(test);
            }
            let _machine = MACHINE.read().unwrap_or_else(|poisoned| poisoned.into_inner());
            run(test)
        })
    });
    trials.collect()
}

fn main() -> ExitCode {
    if actor::play() {
        return ExitCode::SUCCESS;
    }
    let mut trials = Vec::new();
    for shared in [
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
    ] {
        trials.extend(tests(shared, false));
    }
    trials.extend(bus::TESTS.iter().chain(polkit::TESTS).map(|&(name, needs, test)| {
        Trial::ignorable_test(name, move || {
            let _machine = MACHINE.read().unwrap_or_else(|poisoned| poisoned.into_inner());
            bus::run(needs, test)
        })
    }));
    trials.extend(clamps::TESTS.iter().map(|&(name, needs, test)| {
        Trial::ignorable_test(name, move || {
            let _machine = MACHINE.read().unwrap_or_else(|poisoned| poisoned.into_inner());
            clamps::run(needs, test)
        })
    }));
    for alone in [
        global::ALONE,
        undo::ALONE,
        restart::ALONE,
        faults::ALONE,
        enforcement::ALONE,
        ended::ALONE,
        arrival::ALONE,
    ] {
        trials.extend(tests(alone, true));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
