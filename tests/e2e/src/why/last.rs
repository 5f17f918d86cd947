//! A program that fails within its last job.

use crate::run::{punctual, run, workload};
use crate::{Outcome, Result, ensure};

/// Neither goes unnoticed. The job is not judged: it may have been the way to the end.
pub fn row() -> Result<Outcome> {
    let mut why = punctual(["why", "--", &workload("last")]);
    why.env("COLUMNS", "200");
    let ended = run(why)?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains("the command ended with exit status: 3"), "{}", ended.all());
    let cut_off = "The thread's end cut off another after ";
    ensure!(ended.stdout.contains(cut_off) && ended.stdout.contains("it is not judged"), "{}", ended.all());
    Ok(Outcome::Completed)
}
