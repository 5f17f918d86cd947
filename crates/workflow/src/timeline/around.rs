//! The part of a recording around one job.

use crate::error::{Error, Result};
use crate::monitor::{Monitor, Unit};
use crate::recording::{Recording, TimeRange};
use crate::replay::{self, Primaries, each_job, key_of, processors, task_of};
use punctual_extract::{Options as ExtractOptions, StreamOptions};
use punctual_model::{Duration, Instant};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// What is shown before the job and after it: twice as long as the job itself, within these limits.
const MARGIN: (Duration, Duration) = (Duration::from_ms(20), Duration::from_ms(500));

/// A job by its number, and the thread where several have that many: `control:3150`, `3150`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobName {
    thread: Option<String>,
    number: u64,
}

impl FromStr for JobName {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<JobName, String> {
        // Names of threads may have colons.
        let (thread, number) = match text.rsplit_once(':') {
            Some((thread, number)) => (Some(thread.to_owned()), number),
            None => (None, text),
        };
        let number =
            number.parse().map_err(|_| "expected JOB or THREAD:JOB, as in control:3150".to_owned())?;
        Ok(JobName { thread, number })
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.thread {
            Some(thread) => write!(formatter, "{thread}:{}", self.number),
            None => write!(formatter, "{}", self.number),
        }
    }
}

/// A job that was found.
pub struct Around {
    /// The name of its thread.
    pub thread: String,
    /// Its number.
    pub number: u64,
    /// From its arrival, else its release.
    pub begin: Instant,
    /// To its end.
    pub end: Instant,
    /// From when to when to show what happened.
    pub window: (Instant, Instant),
}

/// Looks for a job in a recording.
pub fn around(path: &Path, name: &JobName, monitor: &dyn Monitor) -> Result<Around> {
    let recording = Recording::open(path, &TimeRange::default())?;
    let stream = StreamOptions::without_curves();
    let options = ExtractOptions { stream, merge_transitions: false };
    let model = replay::model(std::slice::from_ref(&recording), &options, processors(), monitor)?;
    let primaries = Primaries::new(model.tasks());
    let names: HashMap<_, _> = model.tasks().iter().map(|task| (key_of(task), &task.name)).collect();
    let is_meant = |thread: &str| name.thread.as_ref().is_none_or(|meant| meant == thread);
    let progress = monitor.begin("finding the job", recording.activations(), Unit::Activations);
    let mut found: Vec<Around> = Vec::new();
    each_job(
        recording.stopped_by(monitor),
        false,
        &*progress,
        |_, _| {},
        |seen| {
            let thread = names.get(&task_of(seen)).filter(|thread| is_meant(thread));
            if let (Some(thread), true) = (thread, seen.number == name.number && primaries.is_primary(seen)) {
                let release = seen.job.release;
                let begin = release.arrival.unwrap_or(release.window.earliest());
                let (thread, end) = ((*thread).clone(), seen.job.end);
                let (number, window) = (seen.number, window(begin, end));
                found.push(Around { thread, number, begin, end, window });
            }
        },
    )?;
    drop(progress);
    let mut several: Vec<String> = found.iter().map(|it| format!("{}:{}", it.thread, name.number)).collect();
    several.sort_unstable();
    several.dedup();
    if found.len() > 1 && several.len() == 1 {
        monitor.hint(&format!("{} jobs have the name {}: the longest is shown", found.len(), several[0]));
    }
    found.sort_by_key(|it| it.end.since(it.begin));
    match (found.pop(), several.len()) {
        (Some(found), 1) => Ok(found),
        (None, _) => {
            let whose =
                name.thread.as_ref().map_or("no thread".into(), |thread| format!("no thread {thread}"));
            Err(Error::usage(format!("{whose} has a job {}", name.number))
                .advise("jobs count from 0; punctual jobs lists them"))
        }
        (Some(_), _) => Err(Error::usage(format!("several threads have a job {}", name.number))
            .advise(format!("name one: --around {}", several.join(", ")))),
    }
}

fn window(begin: Instant, end: Instant) -> (Instant, Instant) {
    let time = end.since(begin);
    let margin = (time + time).max(MARGIN.0).min(MARGIN.1);
    (Instant::from_ns(begin.ns().saturating_sub(margin.ns())), end + margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_jobs_are_read() {
        let of = |text: &str| text.parse::<JobName>().ok().map(|name| (name.thread, name.number));
        assert_eq!(of("3150"), Some((None, 3150)));
        assert_eq!(of("control:3150"), Some((Some("control".into()), 3150)));
        assert_eq!(of("kworker/0:1:7"), Some((Some("kworker/0:1".into()), 7)));
        assert!([of("control"), of("control:"), of("-1"), of("")].iter().all(Option::is_none));
    }

    #[test]
    fn the_window_is_around_the_job() {
        let ms = |ms: u64| Instant::from_ns(ms * 1_000_000);
        assert_eq!(window(ms(1_100), ms(1_120)), (ms(1_060), ms(1_160)));
        assert_eq!(window(ms(1_002), ms(1_003)), (ms(982), ms(1_023)));
        assert_eq!(window(ms(3_000), ms(5_000)), (ms(2_500), ms(5_500)));
        assert_eq!(window(ms(3), ms(4)), (ms(0), ms(24)));
    }
}
