//! Threads that have a name of the model, and for which no spec is left.

use super::model::Need;
use super::remarks::{counted, shown};
use super::threads::Live;
use std::collections::{BTreeMap, BTreeSet};

/// Names and threads that were told, and how many there were.
#[derive(Default)]
pub struct Beyond {
    /// Those of the last look: they are counted.
    counted: BTreeSet<u32>,
    /// How many there were of each name.
    counts: BTreeMap<String, usize>,
}

impl Beyond {
    /// One look: these threads have no spec, though needs have their names. In words, the first thread of
    /// each name.
    pub fn look(&mut self, threads: &[(u32, &Live)], needs: &[&Need]) -> Vec<String> {
        let mut said = Vec::new();
        for (tid, thread) in threads.iter().filter(|(tid, _)| !self.counted.contains(tid)) {
            let count = self.counts.entry(thread.name.clone()).or_default();
            *count += 1;
            if *count == 1 {
                said.push(told(*tid, thread, needs));
            }
        }
        self.counted = threads.iter().map(|(tid, _)| *tid).collect();
        said
    }

    /// In words, how many there were of the names of which there was more than one.
    pub fn remarks(&self) -> Vec<String> {
        let several = self.counts.iter().filter(|(_, count)| **count > 1);
        several
            .map(|(name, count)| {
                format!("{} named {} got no spec in all", counted(*count, "thread"), shown(name))
            })
            .collect()
    }
}

fn told(tid: u32, thread: &Live, needs: &[&Need]) -> String {
    let name = shown(&thread.name);
    let fitting = needs.iter().filter(|need| need.name == thread.name && thread.can_be(need)).count();
    let why = match fitting {
        0 => "it is the first thread of its process, and none of that name in the model was".to_owned(),
        1 => format!("the model's one spec for {name} has its thread"),
        _ => format!("the model's {fitting} specs for {name} have their threads"),
    };
    format!("thread {name} ({tid}) stays as it is: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_client::Parameters;

    #[test]
    fn a_name_is_told_once_and_its_threads_are_counted() {
        let need = Need {
            name: "vision".into(),
            tid: 1,
            first: false,
            jobs: 9,
            together: 1,
            covered: None,
            has_percentiles: true,
            parameters: Parameters::default(),
        };
        let live = |first| Live { name: "vision".into(), first };
        let (later, first) = (live(false), live(true));
        let mut beyond = Beyond::default();
        let said = beyond.look(&[(5, &later)], &[&need]);
        assert_eq!(
            said,
            ["thread vision (5) stays as it is: the model's one spec for vision has its thread"]
        );
        assert!(beyond.look(&[(5, &later)], &[&need]).is_empty() && beyond.remarks().is_empty(), "told once");
        assert!(beyond.look(&[(5, &later), (6, &later)], &[&need]).is_empty(), "the others are counted");
        assert_eq!(beyond.remarks(), ["2 threads named vision got no spec in all"]);
        let mut beyond = Beyond::default();
        let said = beyond.look(&[(5, &first)], &[&need]);
        assert!(said.len() == 1 && said[0].contains("it is the first thread of its process"), "{said:?}");
    }
}
