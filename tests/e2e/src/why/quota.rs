//! Threads whose cgroup has used up its quota of processor time (`cpu.max`).

use super::{Detail, Logged, judge};
use crate::run::{punctual, run, workload};
use crate::{Outcome, Result, skip};

/// The program reads from its cgroup how long it was throttled.
pub fn row() -> Result<Outcome> {
    let mut why = punctual(["why", "--json", "--worst", "1000", "--thread", "control"]);
    why.args(["--include-best-effort", "--", &workload("quota"), "500"]);
    let ended = run(why)?;
    if !ended.stderr.lines().any(|line| Logged::of(line).is_some()) {
        return skip("no cgroup with a quota can be made here");
    }
    ended.expect_code(0)?;
    judge(&ended.json()?, &ended.stderr, Detail::Calls)?.is_enough()
}
