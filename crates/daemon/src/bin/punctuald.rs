//! The daemon's command line.

use clap::Parser;
use punctual_daemon::daemon::{Options, run};
use punctual_daemon::log;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            log::error(&failure.message);
            ExitCode::from(failure.code)
        }
    }
}
