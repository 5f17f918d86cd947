//! Notes about a source: each once, with a count.

use std::collections::BTreeMap;

/// Most different notes; a broken source could cause any number.
const MOST: usize = 100;

/// Notes, in the order of their first appearance.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    plain: Vec<String>,
    counted: BTreeMap<String, u64>,
    others: u64,
}

impl Notes {
    /// Adds a note about the source as a whole.
    pub fn say(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.plain.len() < MOST && !self.plain.contains(&note) {
            self.plain.push(note);
        }
    }

    /// Counts something; the note is the count, then `what`.
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
        self.plain.into_iter().chain(counted).chain(others).collect()
    }
}
