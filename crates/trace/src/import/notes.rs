//! What is to be said of a source: each thing once, with how often it came.

use std::collections::BTreeMap;

/// Different things that are told apart; what a broken source can come up with is without end.
const MOST: usize = 100;

/// Notes, in the order in which they are said.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    said: Vec<String>,
    counted: BTreeMap<String, u64>,
    others: u64,
}

impl Notes {
    /// Says something of the source as a whole.
    pub fn say(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.said.len() < MOST && !self.said.contains(&note) {
            self.said.push(note);
        }
    }

    /// Counts something: `what` is said with its number in front.
    pub fn count(&mut self, what: &str) {
        if let Some(count) = self.counted.get_mut(what) {
            *count += 1;
        } else if self.counted.len() < MOST {
            self.counted.insert(what.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    /// All of them.
    pub fn into_list(self) -> Vec<String> {
        let counted = self.counted.into_iter().map(|(what, count)| format!("{count} × {what}"));
        let others =
            (self.others > 0).then(|| format!("{} × other things that were not understood", self.others));
        self.said.into_iter().chain(counted).chain(others).collect()
    }
}
