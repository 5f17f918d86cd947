//! Checks that several sections share. An error says where, what was expected, and what was found.

use crate::error::ReadError;
use crate::section::Valid;
use crate::time::{Duration, Instant};

pub(crate) fn span(path: &str, from: Instant, until: Instant) -> Valid {
    if until < from {
        return Err(ReadError::value(
            format!("{path}.until_ns"),
            format!("no less than `from_ns` ({})", from.ns()),
            until.ns(),
        ));
    }
    Ok(())
}

pub(crate) fn at_most(path: &str, entries: usize, most: usize) -> Valid {
    match entries > most {
        true => Err(ReadError::value(path, format!("no more than {most} entries of a kind"), entries)),
        false => Ok(()),
    }
}

pub(crate) fn in_order(path: &str, mut instants: impl Iterator<Item = Instant>) -> Valid {
    let mut before = Instant::from_ns(0);
    match instants.position(|at| std::mem::replace(&mut before, at) > at) {
        Some(index) => Err(ReadError::value(
            format!("{path}[{index}].at_ns"),
            "no less than that of the previous entry",
            before.ns(),
        )),
        None => Ok(()),
    }
}

pub(crate) fn not_zero(path: &str, value: u64) -> Valid {
    match value {
        0 => Err(ReadError::value(path, "a number greater than zero", 0)),
        _ => Ok(()),
    }
}

pub(crate) fn never_decreases(path: &str, values: &[Duration]) -> Valid {
    match values.windows(2).position(|pair| pair[1] < pair[0]) {
        Some(index) => Err(ReadError::value(
            format!("{path}[{}]", index + 1),
            format!("no less than the previous value ({})", values[index].ns()),
            values[index + 1].ns(),
        )),
        None => Ok(()),
    }
}

/// Checks fields of a place that must not decrease, each with its name.
pub(crate) fn rising(path: &str, fields: &[(&str, Duration)]) -> Valid {
    match fields.windows(2).find(|pair| pair[1].1 < pair[0].1) {
        Some(pair) => Err(ReadError::value(
            format!("{path}.{}", pair[1].0),
            format!("no less than `{}` ({})", pair[0].0, pair[0].1.ns()),
            pair[1].1.ns(),
        )),
        None => Ok(()),
    }
}
