//! The drivers as a program of 32 bits, whose system calls have other numbers, arguments and times.

use super::together::All;
use super::{Row, check_in, list, rows};
use crate::run::{attach, workload};
use crate::{Outcome, Result, fail, skip};
use std::path::Path;

const DRIVERS: &str = "drivers32";

/// How often rows whose times are wrong are observed again: the machine may have lost its processors.
const ATTEMPTS: usize = 4;

/// Each row must hold that this kind of program has.
pub fn programs_of_32_bits() -> Result<Outcome> {
    if !Path::new(&workload(DRIVERS)).exists() {
        return skip("the C compiler makes no programs of 32 bits");
    }
    if attach().as_deref() == Some("fentry") {
        return skip("functions of calls of 32-bit programs are not traced");
    }
    let drivers = list(DRIVERS)?;
    let mut left: Vec<Row> = rows().filter(|row| drivers.iter().any(|it| it == row.driver)).collect();
    for attempt in 1..=ATTEMPTS {
        let names: Vec<String> = left.iter().map(|row| row.driver.to_owned()).collect();
        let all = All::observe(DRIVERS, &names)?;
        let mut wrong = Vec::new();
        for row in left {
            match check_in(&row, &all) {
                Ok(_) => {}
                Err(failure) if failure.is_timing && attempt < ATTEMPTS => wrong.push((row, failure)),
                Err(failure) => return fail(format!("{}: {}", row.driver, failure.message)),
            }
        }
        left = wrong.into_iter().map(|(row, _)| row).collect();
        if left.is_empty() {
            break;
        }
    }
    Ok(Outcome::Completed)
}
