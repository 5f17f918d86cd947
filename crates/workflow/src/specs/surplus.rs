//! Threads that share a name with the model but get no spec.

use super::Need;
use super::live::Live;
use super::remarks::{counted, printable};
use std::collections::{BTreeMap, BTreeSet};

/// Reports surplus threads: the first of each name at once, the number of each name at the end.
#[derive(Default)]
pub struct Surplus {
    /// Threads of the last look, which are already counted.
    counted: BTreeSet<u32>,
    /// Number of threads by name.
    counts: BTreeMap<String, usize>,
}

impl Surplus {
    /// Takes the current surplus threads. Returns messages about the first thread of each new name.
    pub fn update(&mut self, threads: &[(u32, &Live)], needs: &[&Need]) -> Vec<String> {
        let mut messages = Vec::new();
        for (tid, thread) in threads.iter().filter(|(tid, _)| !self.counted.contains(tid)) {
            let count = self.counts.entry(thread.name.clone()).or_default();
            *count += 1;
            if *count == 1 {
                messages.push(message(*tid, thread, needs));
            }
        }
        self.counted = threads.iter().map(|(tid, _)| *tid).collect();
        messages
    }

    /// The number of threads of each name that had more than one.
    pub fn summary(&self) -> Vec<String> {
        let several = self.counts.iter().filter(|(_, count)| **count > 1);
        several
            .map(|(name, count)| {
                format!("in total, {} named {} got no spec", counted(*count, "thread"), printable(name))
            })
            .collect()
    }
}

fn message(tid: u32, thread: &Live, needs: &[&Need]) -> String {
    let name = printable(&thread.name);
    let matching = needs.iter().filter(|need| need.name == thread.name && thread.matches(need)).count();
    let why = match matching {
        0 => "it is the first thread of its process, and in the model no thread of that name was".to_owned(),
        1 => format!("the model's only spec for {name} is taken"),
        _ => format!("the model's {matching} specs for {name} are taken"),
    };
    format!("thread {name} ({tid}) keeps its scheduling: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_client::Parameters;

    #[test]
    fn a_name_is_reported_once_and_its_threads_are_counted() {
        let need = Need {
            name: "vision".into(),
            tid: 1,
            first: false,
            jobs: 9,
            together: 1,
            covered: None,
            usual: None,
            has_percentiles: true,
            parameters: Parameters::default(),
        };
        let live = |first| Live { name: "vision".into(), first };
        let (later, first) = (live(false), live(true));
        let mut surplus = Surplus::default();
        let messages = surplus.update(&[(5, &later)], &[&need]);
        assert_eq!(
            messages,
            ["thread vision (5) keeps its scheduling: the model's only spec for vision is taken"]
        );
        let again = surplus.update(&[(5, &later)], &[&need]);
        assert!(again.is_empty() && surplus.summary().is_empty(), "reported once");
        assert!(surplus.update(&[(5, &later), (6, &later)], &[&need]).is_empty(), "the others are counted");
        assert_eq!(surplus.summary(), ["in total, 2 threads named vision got no spec"]);
        let messages = Surplus::default().update(&[(5, &first)], &[&need]);
        assert!(
            messages.len() == 1 && messages[0].contains("it is the first thread of its process"),
            "{messages:?}"
        );
    }
}
