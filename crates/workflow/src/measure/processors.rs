//! Which processors are measured, and which of them go offline meanwhile.

use crate::error::{Error, Result};
use crate::monitor::Monitor;
use punctual_linux::system::{ONLINE, online};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two looks at which processors are online.
const LOOK: Duration = Duration::from_secs(1);

/// Those of `asked` if they are online; all that are online if none was asked for.
pub fn choose(asked: &[u32]) -> Result<Vec<u32>> {
    let online =
        online().ok_or_else(|| Error::file(format!("cannot read which processors are online: {ONLINE}")))?;
    if asked.is_empty() {
        return Ok(online);
    }
    match asked.iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => Err(Error::target(format!("processor {cpu} is not online"))),
        None => Ok(asked.to_vec()),
    }
}

/// What remains of `chosen` right before the measurement begins: to get that far takes seconds, and a
/// processor that has gone offline meanwhile is not measured. An error if it was asked for, or none is left.
pub fn remaining(chosen: &[u32], asked: &[u32], monitor: &dyn Monitor) -> Result<Vec<u32>> {
    let online = online().unwrap_or_else(|| chosen.to_vec());
    let (remaining, gone) = divide(chosen, &online);
    for cpu in gone {
        let what = format!("processor {cpu} went offline before the measurement began");
        if asked.contains(&cpu) || remaining.is_empty() {
            return Err(Error::target(what));
        }
        monitor.warn(&format!("{what} and is not measured"));
    }
    Ok(remaining)
}

/// Those of `chosen` that are online, and those that are not.
fn divide(chosen: &[u32], online: &[u32]) -> (Vec<u32>, Vec<u32>) {
    chosen.iter().partition(|cpu| online.contains(cpu))
}

/// Tells of processors that came online since `measured` were chosen.
pub fn warn_of_newcomers(measured: &[u32], monitor: &dyn Monitor) {
    for cpu in online().unwrap_or_default().iter().filter(|cpu| !measured.contains(cpu)) {
        monitor.warn(&format!("processor {cpu} came online during the measurement and was not measured"));
    }
}

/// Notices processors that go offline.
pub struct Online {
    /// By processor: whether it was online at the last look.
    known: BTreeMap<u32, bool>,
    next: Instant,
}

impl Online {
    /// All of these were online when the measurement began. The first look is the next one: to go offline
    /// takes some milliseconds, and one that was about to is not seen before.
    pub fn new(cpus: &[u32]) -> Online {
        Online { known: cpus.iter().map(|&cpu| (cpu, true)).collect(), next: Instant::now() }
    }

    /// Once in a while looks which processors are online; returns those that no longer are.
    pub fn look(&mut self) -> Vec<u32> {
        if Instant::now() < self.next {
            return Vec::new();
        }
        self.look_now()
    }

    /// The same, at once.
    pub fn look_now(&mut self) -> Vec<u32> {
        self.next = Instant::now() + LOOK;
        online().map_or_else(Vec::new, |now| self.update(&now))
    }

    fn update(&mut self, now: &[u32]) -> Vec<u32> {
        let mut gone = Vec::new();
        for (cpu, was_online) in &mut self.known {
            let is_online = now.contains(cpu);
            if *was_online && !is_online {
                gone.push(*cpu);
            }
            *was_online = is_online;
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_gone_before_the_beginning_is_not_measured() {
        assert_eq!(divide(&[0, 1, 3], &[0, 2, 3]), (vec![0, 3], vec![1]));
        assert_eq!(divide(&[1], &[]), (vec![], vec![1]));
    }

    #[test]
    fn each_time_that_a_processor_goes_offline_counts() {
        let mut online = Online::new(&[0, 1]);
        assert_eq!(online.update(&[0]), vec![1]);
        assert_eq!(online.update(&[0]), Vec::<u32>::new());
        online.update(&[0, 1]);
        assert_eq!(online.update(&[0]), vec![1]);
    }
}
