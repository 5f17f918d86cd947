//! Choosing threads by name: `--thread 'control*'`.

use crate::error::{Error, Result};
use glob::Pattern;
use punctual_model::{Instant, TimingModel};
use punctual_trace::{Begin, Record, TaskRecord};
use std::collections::{HashMap, HashSet};

/// Threads whose names match at least one pattern; all threads if there is no pattern.
///
/// Patterns are those of shells: `*`, `?` and `[...]`.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter(Vec<Pattern>);

impl ThreadFilter {
    /// Fails with [`ErrorKind::Usage`](crate::ErrorKind::Usage) on a malformed pattern.
    pub fn new(patterns: &[String]) -> Result<ThreadFilter> {
        let compile = |text: &String| {
            Pattern::new(text).map_err(|error| {
                Error::usage(format!("{text:?} is not a pattern of thread names: {}", error.msg))
                    .advise("use *, ? and [...] as in a shell")
            })
        };
        Ok(ThreadFilter(patterns.iter().map(compile).collect::<Result<_>>()?))
    }

    /// Whether every thread passes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a thread of this name passes.
    pub fn matches(&self, name: &str) -> bool {
        self.is_empty() || self.0.iter().any(|pattern| pattern.matches(name))
    }

    /// The first pattern that matches none of these names.
    pub fn unmatched<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Option<&str> {
        let pattern = self.0.iter().find(|pattern| !names.clone().any(|name| pattern.matches(name)))?;
        Some(pattern.as_str())
    }

    /// A pattern that matches only this name, quoted for a shell where necessary.
    pub fn literal(name: &str) -> String {
        let pattern = Pattern::escape(name);
        let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+=,".contains(c);
        if !pattern.is_empty() && pattern.chars().all(is_plain) {
            return pattern;
        }
        format!("'{}'", pattern.replace('\'', r"'\''"))
    }

    /// Removes the tasks of all other threads from a model; its dataflow program stays.
    pub fn apply(&self, model: &mut TimingModel) {
        if !self.is_empty() {
            let tasks = model.threads.iter_mut().map(|threads| &mut threads.tasks);
            tasks.for_each(|tasks| tasks.retain(|task| self.matches(&task.name)));
        }
    }

    /// [`ThreadFilter::apply`]; fails with [`ErrorKind::Target`](crate::ErrorKind::Target) if the model has
    /// threads and none passes, as a usage error if it has no such section. `source` names the model.
    pub fn select(&self, model: &mut TimingModel, source: &str) -> Result<()> {
        if model.threads.is_none() {
            self.refuse_without_threads(source)?;
        }
        let had_tasks = !model.tasks().is_empty();
        self.apply(model);
        if had_tasks && model.tasks().is_empty() {
            return Err(self.no_match(source));
        }
        Ok(())
    }

    /// Fails with [`ErrorKind::Usage`](crate::ErrorKind::Usage) if there are patterns: `source` is about
    /// something else than threads.
    pub(crate) fn refuse_without_threads(&self, source: &str) -> Result<()> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(Error::usage(format!("--thread does not apply: {source} has no threads"))),
        }
    }

    /// No thread in `source` passes.
    pub(crate) fn no_match(&self, source: &str) -> Error {
        Error::target(format!("{source} has no thread that matches {self}"))
    }

    /// A filter of a stream of records.
    pub fn records(&self) -> RecordFilter {
        RecordFilter {
            filter: self.clone(),
            keeps_others: false,
            chosen: HashSet::new(),
            others: HashMap::new(),
            now: Instant::from_ns(0),
        }
    }
}

impl std::fmt::Display for ThreadFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let patterns: Vec<String> = self.0.iter().map(|pattern| format!("--thread '{pattern}'")).collect();
        f.write_str(&patterns.join(" "))
    }
}

/// Passes on the records of chosen threads: each from the moment it first has a matching name until its end.
pub struct RecordFilter {
    filter: ThreadFilter,
    /// Whether all others are bystanders.
    keeps_others: bool,
    chosen: HashSet<u32>,
    /// Threads without a matching name so far, as they are. They may be renamed.
    others: HashMap<u32, Box<TaskRecord>>,
    /// The latest time seen.
    now: Instant,
}

impl RecordFilter {
    /// The same, but threads that are not chosen become bystanders: who preempts a chosen thread is of
    /// interest with it.
    pub fn with_others(self) -> RecordFilter {
        RecordFilter { keeps_others: true, ..self }
    }

    /// Passes `record` on to `take` if its thread is chosen.
    pub fn pass<T>(&mut self, record: &Record, take: impl FnOnce(&Record) -> T) -> Option<T> {
        if self.filter.is_empty() {
            return Some(take(record));
        }
        let tid = record.tid();
        self.now = self.now.max(time(record).unwrap_or(self.now));
        match record {
            Record::Task(task) | Record::Known(task) => {
                // The TID may have been reused, though the end of the chosen thread was not seen.
                if matches!(record, Record::Task(_)) && task.begin == Begin::Seen {
                    self.chosen.remove(&tid);
                }
                if self.chosen.contains(&tid) || self.filter.matches(&task.name) {
                    self.chosen.insert(tid);
                    self.others.remove(&tid);
                } else {
                    self.others.insert(tid, task.clone());
                    return self.bystander(tid).map(|bystander| take(&bystander));
                }
            }
            Record::Renamed { sequence, name, .. } if self.others.contains_key(&tid) => {
                return self.rename(tid, sequence.wrapping_add(1), name).map(|known| take(&known));
            }
            Record::Command { command, .. } => {
                if let Some(task) = self.others.get_mut(&tid) {
                    task.command.clone_from(command);
                }
            }
            Record::ClockSet { .. } | Record::Lost { .. } => return Some(take(record)),
            Record::Exit { .. } | Record::Last { .. } => {
                let was_other = self.others.remove(&tid).is_some() && self.keeps_others;
                let at = self.now;
                return match self.chosen.remove(&tid) {
                    true => Some(take(record)),
                    false => was_other.then(|| take(&Record::BystanderExit { tid, at })),
                };
            }
            Record::Bystander(_)
            | Record::BystanderExit { .. }
            | Record::Latency(_)
            | Record::Dispatch(_) => {
                return Some(take(record));
            }
            Record::Switch(_) if self.keeps_others || !self.others.contains_key(&tid) => {
                return Some(take(record));
            }
            Record::Renamed { .. } | Record::Busy { .. } | Record::Activation(_) | Record::Switch(_) => {}
        }
        self.chosen.contains(&tid).then(|| take(record))
    }

    /// What is recorded of a thread that is not chosen.
    fn bystander(&self, tid: u32) -> Option<Record> {
        let task = self.others.get(&tid).filter(|_| self.keeps_others)?;
        Some(Record::Bystander(Box::new(TaskRecord { at: self.now, ..TaskRecord::clone(task) })))
    }

    /// The thread as it now is, if its new name is the first to match. `sequence` is that of its next record.
    fn rename(&mut self, tid: u32, sequence: u32, name: &str) -> Option<Record> {
        name.clone_into(&mut self.others.get_mut(&tid)?.name);
        if !self.filter.matches(name) {
            return self.bystander(tid);
        }
        self.chosen.insert(tid);
        let task = self.others.remove(&tid)?;
        Some(Record::Known(Box::new(TaskRecord { at: self.now, sequence, ..*task })))
    }
}

/// When a record happened, where it says so.
fn time(record: &Record) -> Option<Instant> {
    match record {
        Record::Activation(activation) => Some(activation.stop),
        Record::Task(task) | Record::Known(task) | Record::Bystander(task) => Some(task.at),
        Record::Exit { at, .. } | Record::Last { at, .. } | Record::BystanderExit { at, .. } => Some(*at),
        Record::Switch(switch) => Some(switch.at),
        Record::ClockSet { at, .. } => Some(*at),
        Record::Busy { .. }
        | Record::Lost { .. }
        | Record::Renamed { .. }
        | Record::Command { .. }
        | Record::Latency(_)
        | Record::Dispatch(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use punctual_model::Policy;
    use punctual_trace::{Step, Switch};

    fn filter(patterns: &[&str]) -> ThreadFilter {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        ThreadFilter::new(&patterns).expect("patterns")
    }

    #[test]
    fn patterns_are_those_of_shells() {
        let chosen = filter(&["control*", "cam?"]);
        assert!(chosen.matches("control") && chosen.matches("control-2") && chosen.matches("cam1"));
        assert!(!chosen.matches("my-control") && !chosen.matches("cam10"));
        assert!(filter(&[]).matches("anything"));
        let error = ThreadFilter::new(&["[a".to_owned()]).expect_err("not closed");
        assert_eq!(error.kind(), ErrorKind::Usage);
    }

    #[test]
    fn a_pattern_without_a_match_is_found() {
        let names = ["control", "cam1"];
        let unmatched = |patterns: &[&str]| filter(patterns).unmatched(names.into_iter()).map(str::to_owned);
        assert_eq!(unmatched(&["c*", "cam?"]), None);
        assert_eq!(unmatched(&["c*", "vision"]), Some("vision".into()));
        assert_eq!(unmatched(&[]), None);
    }

    #[test]
    fn literal_patterns_match_one_name_and_are_quoted_for_a_shell() {
        for (name, literal) in [("control", "control"), ("a b", "'a b'"), ("rx*", "'rx[*]'"), ("", "''")] {
            assert_eq!(ThreadFilter::literal(name), literal);
        }
        assert_eq!(ThreadFilter::literal("it's"), r"'it'\''s'");
        assert!(filter(&["rx[*]"]).matches("rx*") && !filter(&["rx[*]"]).matches("rx1"));
    }

    #[test]
    fn others_become_bystanders_where_they_are_kept() {
        let mut records = filter(&["control"]).records().with_others();
        let mut passed = |record: &Record| records.pass(record, Record::clone);
        let begun = passed(&Record::Task(Box::new(task(7, 0, 10, "vision"))));
        assert!(matches!(begun, Some(Record::Bystander(task)) if task.name == "vision"));
        let renamed = passed(&Record::Renamed { tid: 7, sequence: 1, name: "eyes".into() });
        assert!(matches!(renamed, Some(Record::Bystander(task)) if task.name == "eyes"));
        let switch = Record::Switch(Switch { tid: 7, at: Instant::from_ns(20), cpu: 0, step: Step::In });
        assert_eq!(passed(&switch), Some(switch.clone()));
        let at = Instant::from_ns(30);
        let ended = passed(&Record::Exit { tid: 7, sequence: 2, at });
        assert_eq!(ended, Some(Record::BystanderExit { tid: 7, at }));
    }

    fn task(tid: u32, sequence: u32, at: u64, name: &str) -> TaskRecord {
        TaskRecord {
            tid,
            pid: tid,
            sequence,
            at: Instant::from_ns(at),
            begin: Begin::Seen,
            name: name.into(),
            command: "program".into(),
            policy: Policy::Fifo,
            priority: 1,
            nice: None,
            reservation: None,
            affinity: "0".into(),
        }
    }

    fn passed(filter: &mut RecordFilter, record: &Record) -> Option<Record> {
        filter.pass(record, Record::clone)
    }

    #[test]
    fn a_thread_is_recorded_from_its_first_matching_name_on() {
        let mut records = filter(&["control"]).records();
        assert_eq!(passed(&mut records, &Record::Task(Box::new(task(7, 0, 5, "sh")))), None);
        assert_eq!(passed(&mut records, &Record::Task(Box::new(task(8, 0, 9, "other")))), None);
        let renamed = |sequence, name: &str| Record::Renamed { tid: 7, sequence, name: name.into() };
        assert_eq!(passed(&mut records, &renamed(3, "nearly")), None);
        let known = passed(&mut records, &renamed(4, "control"));
        assert_eq!(known, Some(Record::Known(Box::new(task(7, 5, 9, "control")))));
        // It stays chosen under another name, and is forgotten at its end.
        assert_eq!(passed(&mut records, &renamed(5, "later")), Some(renamed(5, "later")));
        let exit = Record::Exit { tid: 7, sequence: 6, at: Instant::from_ns(20) };
        assert_eq!(passed(&mut records, &exit), Some(exit.clone()));
        assert_eq!(passed(&mut records, &Record::Task(Box::new(task(7, 0, 30, "sh")))), None);
        // So it is if another has its TID, though its end was not seen.
        assert!(passed(&mut records, &renamed(1, "control")).is_some());
        assert_eq!(passed(&mut records, &Record::Task(Box::new(task(7, 0, 40, "sh")))), None);
    }
}
