//! A row of a job list, and why one could not be written.

use super::column::{CAUSES, COLUMNS, Value};
use punctual_model::causes::LateJob;
use punctual_model::{Disturbance, Job, Segment, Separator};
use std::fmt;

/// One job, and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The thread.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// Which of the thread's tasks.
    pub phase: u32,
    /// The thread's name.
    pub name: &'a str,
    /// The stream that it is a job of.
    pub separator: Separator,
    /// Whether that stream is its task's primary one.
    pub primary: bool,
    /// Its place in its stream, from 0.
    pub number: u64,
    /// The job.
    pub job: &'a Job,
    /// Its stretches of execution, with the suspensions between them.
    pub segments: &'a [Segment],
    /// How many expirations of a timer its release stands for; 0 where that is not known.
    pub expirations: u64,
    /// What moved its release, where that was seen.
    pub disturbance: Option<Disturbance>,
    /// Why it was late, if it was and somebody asked.
    pub late: Option<&'a LateJob>,
}

impl<'a> Row<'a> {
    /// The entry of each column ([`super::columns`]).
    pub fn values(&self) -> [Value<'a>; COLUMNS.len()] {
        COLUMNS.each_ref().map(|column| (column.value)(self))
    }

    /// The same, and those of late jobs.
    pub(super) fn values_and_causes(&self) -> Vec<Value<'a>> {
        COLUMNS.iter().chain(&CAUSES).map(|column| (column.value)(self)).collect()
    }
}

/// What the row is of, for messages.
impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} of thread {}", self.number, self.tid)
    }
}

/// A job list that could not be written: on what, and why.
#[derive(Debug)]
pub struct Error(pub(super) String);

impl Error {
    /// A number that signed columns cannot hold.
    pub fn too_large(of: impl fmt::Display, column: &str, number: u64) -> Error {
        Error::write(format!(
            "{of} has a {column} of {number}, and the numbers of a list end at {}",
            i64::MAX
        ))
    }

    pub(super) fn write(why: impl fmt::Display) -> Error {
        Error(format!("cannot write the job list: {why}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
