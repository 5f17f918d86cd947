//! What is wrong with a trace, and where.

use std::fmt;

/// Damages that are listed one by one; beyond them there is a count.
const MAX_LISTED: usize = 100;

/// Something that is wrong with a trace. Displayed: the file, the byte, what that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    file: String,
    offset: u64,
    what: String,
    activations: u64,
}

impl Damage {
    /// At a byte of a file of the trace.
    pub fn new(file: impl Into<String>, offset: u64, what: impl Into<String>) -> Damage {
        Damage { file: file.into(), offset, what: what.into(), activations: 0 }
    }

    /// The same, with the number of activations it costs.
    pub(crate) fn with_activations(self, activations: u64) -> Damage {
        Damage { activations, ..self }
    }

    /// The same with more words at its end.
    pub fn and(mut self, more: &str) -> Damage {
        self.what.push_str(more);
        self
    }

    /// The file in the trace's folder.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The byte in that file, from 0.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Activations it costs, as far as the recording says; else 0.
    pub fn activations(&self) -> u64 {
        self.activations
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, byte {}: {}", self.file, self.offset, self.what)
    }
}

/// A bounded list of damages.
#[derive(Clone, Debug, Default)]
pub struct Damages {
    list: Vec<Damage>,
    more: u64,
}

impl Damages {
    /// Adds one.
    pub fn push(&mut self, damage: Damage) {
        if self.list.len() < MAX_LISTED {
            self.list.push(damage);
        } else {
            self.more += 1;
        }
    }

    /// Adds several.
    pub fn extend(&mut self, damages: impl IntoIterator<Item = Damage>) {
        damages.into_iter().for_each(|damage| self.push(damage));
    }

    /// Those that are listed. The last one tells how many more there are.
    pub fn into_list(mut self) -> Vec<Damage> {
        if let (Some(last), true) = (self.list.last_mut(), self.more > 0) {
            last.what.push_str(&format!("; and {} more damaged places after this one", self.more));
        }
        self.list
    }

    /// The same so far.
    pub fn list(&self) -> Vec<Damage> {
        self.clone().into_list()
    }
}
