//! The drivers as a program of 32 bits, whose system calls have other numbers, arguments and times.

use super::together::All;
use super::{Row, check_in, list, rows};
use crate::model::{only_task, primary};
use crate::run::{attach, observe, workload};
use crate::{Outcome, Result, ensure, fail, skip};
use punctual_model::Call;
use std::path::Path;
use std::process::Command;

const DRIVERS: &str = "drivers32";

/// How often rows whose times are wrong are observed again: the machine may have lost its processors.
const ATTEMPTS: usize = 4;

fn reason_to_skip() -> Option<&'static str> {
    if !Path::new(&workload(DRIVERS)).exists() {
        return Some("the C compiler makes no programs of 32 bits");
    }
    let can_run = Command::new(workload(DRIVERS)).arg("list").output().is_ok();
    (!can_run).then_some("this kernel runs no programs of 32 bits")
}

/// Each row must hold that this kind of program has.
pub fn programs_of_32_bits() -> Result<Outcome> {
    if let Some(reason) = reason_to_skip() {
        return skip(reason);
    }
    // What a script starts is not known when the way is chosen, and functions of these calls are not traced.
    let options: &[&str] = match attach().as_deref() {
        None => &["--attach", "tracepoint"],
        Some("fentry") => return skip("functions of calls of 32-bit programs are not traced"),
        Some(_) => &[],
    };
    let drivers = list(DRIVERS)?;
    ensure!(!drivers.is_empty(), "{DRIVERS} has no drivers");
    let mut left: Vec<Row> = rows().filter(|row| drivers.iter().any(|it| it == row.driver)).collect();
    let mut skipped = Vec::new();
    let all = left.len();
    for attempt in 1..=ATTEMPTS {
        let names: Vec<String> = left.iter().map(|row| row.driver.to_owned()).collect();
        let observed = All::observe(DRIVERS, &names, options)?;
        let mut wrong = Vec::new();
        for row in left {
            match check_in(&row, &observed) {
                Ok(Outcome::Completed) => {}
                Ok(_) => skipped.push(row.driver),
                Err(failure) if failure.is_timing && attempt < ATTEMPTS => wrong.push(row),
                Err(failure) => return fail(format!("{}: {}", row.driver, failure.message)),
            }
        }
        left = wrong;
        if left.is_empty() {
            break;
        }
    }
    println!("driver::programs_of_32_bits: {} of {all} drivers", all - skipped.len());
    if !skipped.is_empty() {
        println!("SKIPPED: of the drivers of 32 bits: {}", skipped.join(", "));
    }
    ensure!(skipped.len() < all, "no driver ran");
    Ok(Outcome::Completed)
}

/// A program that is named itself is observed by a way that shows its calls.
pub fn a_program_of_32_bits() -> Result<Outcome> {
    if attach().is_some() {
        return skip("the way of attaching is not chosen, but given");
    }
    if let Some(reason) = reason_to_skip() {
        return skip(reason);
    }
    let command = [&workload(DRIVERS), "run", "sleep_absolute", "--period-us", "10000", "--jobs", "20"];
    let observed = observe(&[], &command)?;
    let separator = primary(only_task(&observed.model, "drv")?)?.separator;
    let is_sleep = separator.call == Call::ClockNanosleep;
    observed.explain(if is_sleep { Ok(Outcome::Completed) } else { fail(format!("it is {separator}")) })
}
